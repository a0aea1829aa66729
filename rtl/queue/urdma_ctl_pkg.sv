// SPDX-License-Identifier: Apache-2.0
// Types between the parts of urdma_ctl.

package urdma_ctl_pkg;
  import urdma_pkg::*, urdma_hw_pkg::*;

  // Contents of a command completion; the words of QUERY_QP, QUERY_SRQ, RESIZE_CQ and QUERY_CNT are 0 otherwise.
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
    srq_ans_t    srq;
    logic [31:0] cq_base;
    qc_ans_t     qc;
  } cpl_t;

  // Objects that an SRQ refers to.
  typedef struct packed {
    logic [PD_W-1:0]  pd;
    logic             xrc;     // with it:
    logic [PD_W-1:0]  xrcd;
    logic [CQN_W-1:0] cqn;
  } srq_held_t;

  // A command that completes after a fence.
  typedef enum logic [2:0] {
    FK_EQ,
    FK_CQ,
    FK_RESIZE,   // RESIZE_CQ: the old ring is no longer used
    FK_MR,
    FK_SRQ,
    FK_QP,       // DESTROY_QP
    FK_RESET     // MODIFY_QP to RESET
  } fence_kind_e;

  typedef struct packed {
    fence_kind_e kind;
    logic [15:0] tag;
    logic [23:0] obj;
    logic        ev;
    logic [31:0] cq_base;          // of FK_RESIZE
  } fence_item_t;

  // Commands between fetch and completion. Every queue of urdma_ctl that holds commands has this many places, so none of them
  // can overflow.
  localparam int CMD_INFLIGHT = 64;

  // CREATE_*: size and alignment of a ring, URDMA_CS_*
  function automatic logic [7:0] check_ring(input logic [16:0] r, input logic [11:0] addr, input logic [4:0] log_max,
                                            input logic [3:0] stride_min, input logic [3:0] stride_max);
    logic [4:0] log_entries;
    logic [3:0] stride;
    logic [1:0] levels;
    logic [5:0] shift;
    log_entries = r[URDMA_RING_LOG_ENTRIES_LSB +: URDMA_RING_LOG_ENTRIES_W];
    stride = r[URDMA_RING_LOG_STRIDE_LSB +: URDMA_RING_LOG_STRIDE_W];
    levels = r[URDMA_RING_LEVELS_LSB +: URDMA_RING_LEVELS_W];
    shift = r[URDMA_RING_PAGE_SHIFT_LSB +: URDMA_RING_PAGE_SHIFT_W];
    check_ring = 8'(URDMA_CS_OK);
    if (log_entries > log_max || stride < stride_min || stride > stride_max || levels == 2'd3
        || (levels != 2'd0 && (shift < 6'd12 || shift > 6'd31)))
      check_ring = 8'(URDMA_CS_BAD_SIZE);
    else if (levels == 2'd0 ? addr != '0 : addr[5:0] != '0)
      check_ring = 8'(URDMA_CS_BAD_ALIGN);
  endfunction

  // The queues that a QP of this type owns. A side without a queue has no CQ either, and takes no doorbells.
  function automatic logic has_sq(input logic [3:0] qp_type);
    return qp_type != 4'(URDMA_QPT_XRC_TGT);
  endfunction
  function automatic logic has_rq(input logic [3:0] qp_type);
    return qp_type != 4'(URDMA_QPT_XRC_INI) && qp_type != 4'(URDMA_QPT_XRC_TGT);
  endfunction

  function automatic logic type_ok(input logic [3:0] qp_type);
    return qp_type inside {4'(URDMA_QPT_RC), 4'(URDMA_QPT_UC), 4'(URDMA_QPT_UD), 4'(URDMA_QPT_XRC_INI), 4'(URDMA_QPT_XRC_TGT)};
  endfunction

  // a ring as a command describes it
  function automatic ring_t get_ring(input logic [16:0] r, input logic [63:0] addr);
    get_ring.pt.addr = addr;
    get_ring.pt.levels = r[URDMA_RING_LEVELS_LSB +: URDMA_RING_LEVELS_W];
    get_ring.pt.page_shift = r[URDMA_RING_PAGE_SHIFT_LSB +: URDMA_RING_PAGE_SHIFT_W];
    get_ring.log_entries = r[URDMA_RING_LOG_ENTRIES_LSB +: URDMA_RING_LOG_ENTRIES_W];
    get_ring.log_stride = r[URDMA_RING_LOG_STRIDE_LSB +: URDMA_RING_LOG_STRIDE_W];
  endfunction

endpackage
