// SPDX-License-Identifier: Apache-2.0
// Counters of QPs: sets of counters in memory, and the set of each QP. After a reset all QPs have set 0, and all counters are 0.
//
//  rx_*, resp_*, tx_*, req_*   events of the sources, see urdma_pkg
//  op_*    from urdma_cmdq: one operation at a time
//
// Each source has a bank with its own counters of every set, and counts only there. A bank takes an event in each cycle, and
// a source raises at most one. So there is no queue, and no event is lost or delayed.
//
// An operation waits for a cycle in which the bank has no event. A source with an event in every cycle would block it, but no
// source does so for long: frames come from the wire no faster than one in 1.7 cycles, tx sends at most one in 2 cycles, and
// the other events are CQEs with errors, which must be written to the host.

`resetall
`default_nettype none

module urdma_qp_cnt
  import urdma_pkg::*, urdma_hw_pkg::*;
(
  input  wire logic     clk,
  input  wire logic     rst,
  output      logic     init_done,
  output      logic     busy,

  input  wire logic     op_valid,
  input  wire qc_op_t   op,
  output      logic     op_ready,
  output      qc_ans_t  op_ans,

  input  wire logic     rx_valid,
  input  wire qc_rx_t   rx,
  input  wire logic     resp_valid,
  input  wire qc_resp_t resp,
  input  wire logic     tx_valid,
  input  wire qc_tx_t   tx,
  input  wire logic     req_valid,
  input  wire qc_req_t  req
);

  localparam int BANKS = 4;
  localparam int RX = 0;
  localparam int RESP = 1;
  localparam int TX = 2;
  localparam int REQ = 3;
  localparam int GROUPS = (URDMA_QCNT_N + URDMA_QCNT_GROUP - 1) / URDMA_QCNT_GROUP;

  function automatic int bank_of(input int counter);
    if (counter >= URDMA_QCNT_RX_ACK) return REQ;
    if (counter >= URDMA_QCNT_TX_PKTS) return TX;
    return counter >= URDMA_QCNT_RESP_ERR ? RESP : RX;
  endfunction

  // ---- sweep after a reset ------------------------------------------------------------------------------
  logic [QPN_W:0] init_reg;
  assign init_done = init_reg[QPN_W];
  always_ff @(posedge clk) begin
    if (rst) init_reg <= '0;
    else if (!init_done) init_reg <= init_reg + 1'b1;
  end

  // ---- operations -----------------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    Q_IDLE,
    Q_BANKS,     // the banks have the operation
    Q_DONE
  } state_e;
  state_e state_reg;
  logic start, binds;
  logic [BANKS-1:0] ask_reg, left_reg, bank_ready, bank_q_valid, bank_busy;
  logic [URDMA_QCNT_N-1:0][QC_VALUE_W-1:0] q;
  qc_ans_t ans_reg;

  assign start = state_reg == Q_IDLE && op_valid && init_done;
  assign binds = start && op.kind == QCO_BIND;
  assign op_ready = state_reg == Q_DONE;
  assign op_ans = ans_reg;

  always_ff @(posedge clk) begin
    if (start) begin
      ans_reg <= '0;
    end else begin
      for (int g = 0; g < GROUPS; g++)
        for (int w = 0; w < URDMA_QCNT_GROUP; w++)
          if (op.group == 2'(g) && bank_q_valid[bank_of(g * URDMA_QCNT_GROUP + w)])
            ans_reg[w] <= q[g * URDMA_QCNT_GROUP + w];
    end
    if (rst) begin
      state_reg <= Q_IDLE;
      ask_reg <= '0;
      left_reg <= '0;
    end else begin
      ask_reg <= ask_reg & ~bank_ready;
      left_reg <= left_reg & ~bank_q_valid;
      case (state_reg)
        Q_IDLE: if (start) begin
          state_reg <= binds ? Q_DONE : Q_BANKS;
          if (!binds) {ask_reg, left_reg} <= '1;
        end
        Q_BANKS: if ((left_reg & ~bank_q_valid) == '0) state_reg <= Q_DONE;
        default: state_reg <= Q_IDLE;
      endcase
    end
  end

  // ---- banks -------------------------------------------------------------------------------------------------
  logic [BANKS-1:0] ev_valid;
  logic [BANKS-1:0][QPN_W-1:0] ev_qpn;
  logic [BANKS-1:0][12:0] ev_bytes;
  logic [URDMA_QCNT_N-1:0] ev_hit;

  assign ev_valid = {req_valid, tx_valid, resp_valid, rx_valid};
  assign ev_qpn = {req.qpn, tx.qpn, resp.qpn, rx.qpn};
  assign ev_bytes = {13'd0, tx.bytes, 13'd0, rx.bytes};
  assign ev_hit = {req.hit, tx.hit, resp.hit, rx.hit};

  for (genvar i = 0; i < BANKS; i++) begin : g_bank
    localparam int FIRST = i == RX ? URDMA_QCNT_RX_PKTS : i == RESP ? URDMA_QCNT_RESP_ERR
        : i == TX ? URDMA_QCNT_TX_PKTS : URDMA_QCNT_RX_ACK;
    localparam int END = i == RX ? URDMA_QCNT_RESP_ERR : i == RESP ? URDMA_QCNT_TX_PKTS
        : i == TX ? URDMA_QCNT_RX_ACK : URDMA_QCNT_N;
    localparam int BYTES = i == RX ? URDMA_QCNT_RX_BYTES - FIRST : i == TX ? URDMA_QCNT_TX_BYTES - FIRST : END - FIRST;

    urdma_qp_cnt_bank #(.N(END - FIRST), .BYTES(BYTES)) u_bank (
      .clk, .rst, .busy(bank_busy[i]),
      .init_valid(!init_done), .init_addr(init_reg[QPN_W-1:0]),
      .bind_valid(binds), .bind_qpn(op.qpn), .bind_set(op.cset),
      .ev_valid(ev_valid[i]), .ev_qpn(ev_qpn[i]), .ev_bytes(ev_bytes[i]), .ev_hit(ev_hit[END-1:FIRST]),
      .op_valid(ask_reg[i]), .op_clear(op.kind == QCO_CLEAR), .op_set(op.cset), .op_ready(bank_ready[i]),
      .q_valid(bank_q_valid[i]), .q(q[END-1:FIRST])
    );
  end

  assign busy = !init_done || op_valid || state_reg != Q_IDLE || (|bank_busy);

endmodule

`resetall
