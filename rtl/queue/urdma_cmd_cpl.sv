// SPDX-License-Identifier: Apache-2.0
// Command completions: 64-byte writes with a phase bit, and EQEs of type CMD.
//
// One EQE serves all completions written before it. It is raised when no completion followed for EV_IDLE cycles, or EV_MAX
// cycles after the first one that requested it. The EQE is handed on after the DMA write of the completion was accepted, and
// the link keeps that order.

`resetall
`default_nettype none

module urdma_cmd_cpl
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_ctl_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic         clk,
  input  wire logic         rst,
  output      logic         busy,

  input  wire logic [63:0]  base,
  input  wire logic [3:0]   log_size,

  input  wire logic [1:0]   cpl_valid,
  input  wire cpl_t [1:0]   cpl,
  output      logic [1:0]   cpl_ready,
  output      logic         done,          // pulse: a completion has been accepted

  output      logic         wr_valid,
  output      dma_wr_t      wr,
  input  wire logic         wr_ready,

  output      logic         ev_valid,
  output      eqe_req_t     ev,
  input  wire logic         ev_ready,

  output      logic         cnt_ok,
  output      logic         cnt_err,
  output      logic         trace_cmd_valid,
  output      tr_cmd_t      trace_cmd
);

  localparam int EV_IDLE = 16;
  localparam int EV_MAX = 256;

  logic in_valid, in_ready, out_valid, out_ready;
  cpl_t in, head;
  logic [15:0] idx_reg;  // of the next completion, free-running

  // The second producer (the QP manager) has priority: it is too slow to starve the first one.
  assign in_valid = |cpl_valid;
  assign in = cpl_valid[1] ? cpl[1] : cpl[0];
  assign cpl_ready = {in_ready, in_ready && !cpl_valid[1]};
  assign done = in_valid && in_ready;

  urdma_fifo #(.WIDTH($bits(cpl_t)), .DEPTH(8)) fifo (
    .clk(clk), .rst(rst),
    .in_valid(in_valid), .in_ready(in_ready), .in_data(in),
    .out_valid(out_valid), .out_ready(out_ready), .out_data(head), .count()
  );

  assign wr_valid = out_valid;
  assign out_ready = wr_ready;

  logic [15:0] slot;
  logic odd_round;
  assign slot = idx_reg & ((16'd1 << log_size) - 16'd1);
  assign odd_round = idx_reg[log_size];  // LOG_SIZE is 8 at most

  always_comb begin
    wr.addr = base + {42'd0, slot, 6'd0};
    wr.len = 13'(URDMA_CMD_SIZE);
    wr.last = 1'b1;
    wr.data = '0;
    if (out_valid) begin
      wr.data[URDMA_CPL7_PHASE_LSB] = !odd_round;
      wr.data[URDMA_CPL0_STATUS_LSB +: URDMA_CPL0_STATUS_W] = head.status;
      wr.data[URDMA_CPL0_TAG_LSB +: URDMA_CPL0_TAG_W] = head.tag;
      wr.data[URDMA_CPL0_OBJ_LSB +: URDMA_CPL0_OBJ_W] = head.obj;
      wr.data[URDMA_CPL_QP1_STATE_LSB +: URDMA_CPL_QP1_STATE_W] = head.state;
      wr.data[URDMA_CPL_QP1_SQ_DRAINING_LSB] = head.draining;
      // in the word of QUERY_QP's state; only one of the three is not 0
      wr.data[URDMA_CPL_SRQ1_LIMIT_LSB +: 48] = wr.data[URDMA_CPL_SRQ1_LIMIT_LSB +: 48] | head.srq | 48'(head.cq_base);
      wr.data[URDMA_CPL_QP2_SQ_PSN_LSB +: URDMA_CPL_QP2_SQ_PSN_W] = head.sq_psn;
      wr.data[URDMA_CPL_QP2_RQ_PSN_LSB +: URDMA_CPL_QP2_RQ_PSN_W] = head.rq_psn;
      wr.data[URDMA_CPL_QP3_SQ_PI_LSB +: URDMA_CPL_QP3_SQ_PI_W] = head.sq_pi;
      wr.data[URDMA_CPL_QP3_SQ_CI_LSB +: URDMA_CPL_QP3_SQ_CI_W] = head.sq_ci;
      wr.data[URDMA_CPL_QP3_RQ_PI_LSB +: URDMA_CPL_QP3_RQ_PI_W] = head.rq_pi;
      wr.data[URDMA_CPL_QP3_RQ_CI_LSB +: URDMA_CPL_QP3_RQ_CI_W] = head.rq_ci;
      // the same words: all are 0 except those of the command
      for (int i = 0; i < URDMA_QCNT_GROUP; i++)
        wr.data[URDMA_CPL_QCNT1_VALUE_LSB + 64 * i +: URDMA_CPL_QCNT1_VALUE_W] =
            wr.data[URDMA_CPL_QCNT1_VALUE_LSB + 64 * i +: URDMA_CPL_QCNT1_VALUE_W] | head.qc[i];
    end
  end

  assign cnt_ok = wr_valid && wr_ready && head.status == 8'(URDMA_CS_OK);
  assign cnt_err = wr_valid && wr_ready && head.status != 8'(URDMA_CS_OK);
  assign trace_cmd_valid = wr_valid && wr_ready;
  assign trace_cmd = '{tag: head.tag, status: head.status};

  // ---- events -------------------------------------------------------------------------------------
  logic pend_reg, ev_valid_reg;
  logic [4:0] idle_reg;
  logic [8:0] age_reg;

  always_ff @(posedge clk) begin
    if (rst) begin
      idx_reg <= '0;
      pend_reg <= 1'b0;
      ev_valid_reg <= 1'b0;
      idle_reg <= '0;
      age_reg <= '0;
    end else begin
      if (ev_valid_reg && ev_ready) ev_valid_reg <= 1'b0;
      if (pend_reg) begin
        age_reg <= age_reg + 1'b1;
        idle_reg <= out_valid ? '0 : idle_reg + 1'b1;
        if (!ev_valid_reg && (idle_reg >= 5'(EV_IDLE - 1) || age_reg >= 9'(EV_MAX - 1))) begin
          ev_valid_reg <= 1'b1;
          pend_reg <= 1'b0;
        end
        // a slow eq must not make the counters wrap
        if (age_reg == '1) age_reg <= age_reg;
        if (idle_reg == '1 && !out_valid) idle_reg <= idle_reg;
      end
      if (wr_valid && wr_ready) begin
        idx_reg <= idx_reg + 1'b1;
        if (head.ev) begin
          pend_reg <= 1'b1;
          if (!pend_reg || (!ev_valid_reg && (idle_reg >= 5'(EV_IDLE - 1) || age_reg >= 9'(EV_MAX - 1)))) begin
            age_reg <= '0;
            idle_reg <= '0;
          end
        end
      end
    end
  end

  assign ev_valid = ev_valid_reg;
  assign ev = '{eqn: '0, ev_type: 8'(URDMA_EV_CMD), obj: '0, data: '0};
  assign busy = in_valid || out_valid || pend_reg || ev_valid_reg;

endmodule

`resetall
