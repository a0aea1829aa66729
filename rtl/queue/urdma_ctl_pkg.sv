// SPDX-License-Identifier: Apache-2.0
// Types between the parts of urdma_ctl.

package urdma_ctl_pkg;
  import urdma_pkg::*;

  // What a command completion says; the words of QUERY_QP are 0 otherwise.
  typedef struct packed {
    logic [7:0]  status;     // URDMA_CS_*
    logic [15:0] tag;
    logic [23:0] obj;
    logic        ev;         // raise an EQE
    logic [3:0]  state;
    logic        draining;
    logic [23:0] sq_psn;
    logic [23:0] rq_psn;
    logic [15:0] sq_pi;
    logic [15:0] sq_ci;
    logic [15:0] rq_pi;
    logic [15:0] rq_ci;
  } cpl_t;

  // A command that completes after a fence.
  typedef enum logic [2:0] {
    FK_EQ,
    FK_CQ,
    FK_MR,
    FK_QP,       // DESTROY_QP
    FK_RESET     // MODIFY_QP to RESET
  } fence_kind_e;

  typedef struct packed {
    fence_kind_e kind;
    logic [15:0] tag;
    logic [23:0] obj;
    logic        ev;
  } fence_item_t;

  // Commands between fetch and completion; every queue of urdma_ctl that holds commands has this many places,
  // so none of them can be full.
  localparam int CMD_INFLIGHT = 64;

endpackage
