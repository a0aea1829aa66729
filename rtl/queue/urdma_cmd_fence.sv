// SPDX-License-Identifier: Apache-2.0
// Destroys, resets of QPs and resizes of CQs wait here until the NIC can no longer access the object's memory.
//
// When a command comes here, its object is already unlinked or has its new ring: no new work with the old memory starts. All
// commands that wait when a round begins share the round; commands that come later wait for the next one. A round:
//
//   doorbells  doorbells checked against the old configuration have reached tx or rx
//   tx         earlier work of tx has finished; its messages are in rx
//   rx         these messages and earlier work of rx have finished; rx's messages are in tx, its CQEs in cq
//   tx, cq     tx has taken the last messages of rx; all CQEs and completion events have left
//   mr flush   no earlier page table entry is cached (left out if the round has only resets)
//
// After the round each command is finished: QPC_RESET by the QP manager for QPs, then directory and completion by
// urdma_cmdq.

`resetall
`default_nettype none

module urdma_cmd_fence
  import urdma_pkg::*, urdma_ctl_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic        clk,
  input  wire logic        rst,
  output      logic        busy,

  input  wire logic        push_valid,   // never refused, see CMD_INFLIGHT
  input  wire fence_item_t push,

  output      logic        db_flush_req,
  input  wire logic        db_flush_done,
  output      logic        tx_fence_req,
  input  wire logic        tx_fence_done,
  output      logic        rx_fence_req,
  input  wire logic        rx_fence_done,
  output      logic        cq_fence_req,
  input  wire logic        cq_fence_done,
  output      logic        mr_flush_req,
  input  wire logic        mr_flush_done,

  // QPs: the owners of QP state must forget it
  output      logic        fin_qp_valid,
  output      logic        fin_valid,    // the other objects: directory entry, completion
  output      fence_item_t fin,
  input  wire logic        fin_qp_ready,
  input  wire logic        fin_ready,

  output      logic        trace_qp_end_valid,
  output      tr_qp_end_t  trace_qp_end
);

  typedef enum logic [2:0] {F_IDLE, F_LOW, F_WAIT, F_NEXT, F_QP, F_FIN} state_e;
  typedef enum logic [2:0] {P_DB, P_TX, P_RX, P_TXCQ, P_MR} step_e;

  localparam int CW = $clog2(CMD_INFLIGHT) + 1;

  state_e state_reg;
  step_e step_reg;
  logic [CW-1:0] left_reg, count;
  logic flush_next_reg, flush_reg;  // the next round, this round needs a flush
  logic head_valid, pop, any_done, step_done, is_qp;

  urdma_fifo #(.WIDTH($bits(fence_item_t)), .DEPTH(CMD_INFLIGHT)) fifo (
    .clk(clk), .rst(rst),
    .in_valid(push_valid), .in_ready(), .in_data(push),
    .out_valid(head_valid), .out_ready(pop), .out_data(fin), .count(count)
  );

  assign is_qp = fin.kind == FK_QP || fin.kind == FK_RESET;
  assign any_done = db_flush_done || tx_fence_done || rx_fence_done || cq_fence_done || mr_flush_done;

  always_comb begin
    unique case (step_reg)
      P_DB: step_done = db_flush_done;
      P_TX: step_done = tx_fence_done;
      P_RX: step_done = rx_fence_done;
      P_TXCQ: step_done = tx_fence_done && cq_fence_done;
      default: step_done = mr_flush_done;
    endcase
  end

  assign db_flush_req = state_reg == F_WAIT && step_reg == P_DB;
  assign tx_fence_req = state_reg == F_WAIT && (step_reg == P_TX || step_reg == P_TXCQ);
  assign rx_fence_req = state_reg == F_WAIT && step_reg == P_RX;
  assign cq_fence_req = state_reg == F_WAIT && step_reg == P_TXCQ;
  assign mr_flush_req = state_reg == F_WAIT && step_reg == P_MR;
  assign fin_qp_valid = state_reg == F_QP;
  assign fin_valid = state_reg == F_FIN;
  assign pop = fin_valid && fin_ready;
  assign trace_qp_end_valid = pop && is_qp;
  assign trace_qp_end = '{qpn: fin.obj[QPN_W-1:0], reset: fin.kind == FK_RESET};
  assign busy = state_reg != F_IDLE || head_valid || push_valid;

  always_ff @(posedge clk) begin
    if (rst) begin
      state_reg <= F_IDLE;
      flush_next_reg <= 1'b0;
    end else begin
      if (push_valid && push.kind != FK_RESET && push.kind != FK_EQ) flush_next_reg <= 1'b1;
      unique case (state_reg)
        F_IDLE: begin
          left_reg <= count;
          step_reg <= P_DB;
          if (head_valid) begin
            state_reg <= F_LOW;
            flush_reg <= flush_next_reg;
            flush_next_reg <= push_valid && push.kind != FK_RESET && push.kind != FK_EQ;
          end
        end
        // A done signal stays up until its request has fallen: do not take an old one for the answer.
        F_LOW: if (!any_done) state_reg <= F_WAIT;
        F_WAIT: begin
          if (step_done) begin
            state_reg <= F_LOW;
            unique case (step_reg)
              P_DB: step_reg <= P_TX;
              P_TX: step_reg <= P_RX;
              P_RX: step_reg <= P_TXCQ;
              P_TXCQ: begin
                if (flush_reg) step_reg <= P_MR;
                else state_reg <= is_qp ? F_QP : F_FIN;
              end
              default: state_reg <= is_qp ? F_QP : F_FIN;
            endcase
          end
        end
        F_QP: if (fin_qp_ready) state_reg <= F_FIN;
        F_FIN: begin
          if (fin_ready) begin
            left_reg <= left_reg - 1'b1;
            state_reg <= (left_reg == CW'(1)) ? F_IDLE : F_NEXT;
          end
        end
        default: state_reg <= is_qp ? F_QP : F_FIN;
      endcase
    end
  end

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_flush_of_next: cover property (@(posedge clk) !rst && state_reg == F_IDLE && head_valid && push_valid && push.kind != FK_RESET && push.kind != FK_EQ);
`endif

endmodule

`resetall
