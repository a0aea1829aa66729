// SPDX-License-Identifier: Apache-2.0
// The context of a memory region or window in urdma_mr.
/* verilator lint_off UNUSEDPARAM */
package urdma_mr_pkg;
  import urdma_pkg::*;

  typedef struct packed {
    logic             valid;       // the index exists
    logic             usable;      // a REGION always; FAST: registered; WINDOW: bound
    logic [1:0]       kind;        // URDMA_MRK_*
    logic [7:0]       variant;
    logic [PD_W-1:0]  pd;
    logic [QPN_W-1:0] qpn;         // window: the QP it is bound to
    logic [MRI_W-1:0] parent;      // window: the region it is bound to
    logic [MRI_W-1:0] bound;       // region: windows bound to it; less than the number of indexes
    logic [ACC_W-1:0] acc;
    logic             all;         // any address, untranslated
    logic [63:0]      va;          // first byte that the key opens; 0 if it is zero-based
    logic [63:0]      len;
    logic [63:0]      pt_va;       // the key's address of the first byte that the page table describes, modulo 2**64
    pt_t              pt;
  } mr_ctx_t;

  localparam logic [ACC_W-1:0] ACC_LOCAL_WRITE = ACC_W'(1) << urdma_hw_pkg::URDMA_ACC_LOCAL_WRITE_LSB;
  localparam logic [ACC_W-1:0] ACC_MW_BIND = ACC_W'(1) << urdma_hw_pkg::URDMA_ACC_MW_BIND_LSB;
  // rights that let a remote side change memory: the region must also have local write
  localparam logic [ACC_W-1:0] ACC_REMOTE_CHANGE = (ACC_W'(1) << urdma_hw_pkg::URDMA_ACC_REMOTE_WRITE_LSB)
                                             | (ACC_W'(1) << urdma_hw_pkg::URDMA_ACC_REMOTE_ATOMIC_LSB);
  localparam logic [ACC_W-1:0] ACC_REMOTE = ACC_REMOTE_CHANGE | (ACC_W'(1) << urdma_hw_pkg::URDMA_ACC_REMOTE_READ_LSB)
                                             | (ACC_W'(1) << urdma_hw_pkg::URDMA_ACC_FLUSH_GLOBAL_LSB);

endpackage
/* verilator lint_on UNUSEDPARAM */
