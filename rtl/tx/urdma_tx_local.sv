// SPDX-License-Identifier: Apache-2.0
// Local operations: LOCAL_INV, REG_MR, BIND_MW are given to urdma_mr, one at a time, in order of arrival.
//
// Translations after the answer see the new state. An operation that ends the use of a key (LOCAL_INV, or BIND_MW of a bound
// type 1 window) also waits until rx has written all pieces that it checked with the key before (sync), so nothing is written
// after its completion. Both waits are bounded. Each QP has at most one operation here. If DEPTH QPs wait, further operations
// are refused and try again in a later turn.

`resetall
`default_nettype none

module urdma_tx_local
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic        clk,
  input  wire logic        rst,
  output      logic        busy,

  input  wire logic        lop_valid,
  input  wire lop_t        lop,
  output      logic        lop_ready,

  output      logic        mro_valid,
  output      mr_op_t      mro,
  input  wire logic        mro_ready,
  input  wire logic        mro_rsp_valid,
  input  wire mro_status_e mro_rsp,
  output      logic        sync_req,
  input  wire logic        sync_done,

  output      logic        done_valid,
  output      lop_done_t   done,
  input  wire logic        done_ready,

  input  wire logic        fence_start,  // pulse
  output      logic        fence_hit     // level: the operations here at fence_start have been answered
);

  localparam int DEPTH = 64;

  typedef enum logic [2:0] {S_IDLE, S_ASK, S_RSP, S_SYNC, S_DONE} local_state_e;

  logic l_valid, l_pop;
  lop_t l;
  logic [$clog2(DEPTH):0] l_count;
  urdma_fifo #(.WIDTH($bits(lop_t)), .DEPTH(DEPTH), .OUT_REG(1)) fifo (
    .clk, .rst, .in_valid(lop_valid), .in_ready(lop_ready), .in_data(lop),
    .out_valid(l_valid), .out_ready(l_pop), .out_data(l), .count(l_count)
  );

  local_state_e state_reg;
  logic [7:0] status_reg;

  assign mro_valid = (state_reg == S_ASK);
  assign mro = l.op;
  assign sync_req = (state_reg == S_SYNC);
  assign done_valid = (state_reg == S_DONE);
  assign done = '{qpn: l.op.qpn, era: l.era, status: status_reg};
  assign l_pop = done_valid && done_ready;

  always_ff @(posedge clk) begin
    case (state_reg)
      S_IDLE: if (l_valid) state_reg <= S_ASK;
      S_ASK, S_RSP: begin
        if ((state_reg == S_ASK) && mro_ready) state_reg <= S_RSP;
        if (mro_rsp_valid) begin
          // the verbs' name of the "memory management operation error" of IBA volume 1, 11.6.2
          status_reg <= (mro_rsp == MRO_OK || mro_rsp == MRO_ENDED) ? 8'(URDMA_WC_SUCCESS) : 8'(URDMA_WC_MW_BIND_ERR);
          // sync_done of the previous sync must have fallen; it falls at once
          state_reg <= (((l.op.op == MRO_INV_LOCAL) && (mro_rsp == MRO_OK)) || (mro_rsp == MRO_ENDED)) ? S_SYNC : S_DONE;
        end
      end
      S_SYNC: if (sync_done) state_reg <= S_DONE;
      default: if (done_ready) state_reg <= S_IDLE;
    endcase
    if (rst) state_reg <= S_IDLE;
  end

  // ---- fence: operations that were here at its start -------------------------------------------------
  logic [$clog2(DEPTH):0] left_reg;
  assign fence_hit = (left_reg == '0);
  always_ff @(posedge clk) begin
    if (rst) left_reg <= '0;
    else if (fence_start) left_reg <= l_count - ($clog2(DEPTH)+1)'(l_pop);
    else if (l_pop && (left_reg != '0)) left_reg <= left_reg - 1'b1;
  end

  assign busy = (l_count != '0);

endmodule

`resetall
