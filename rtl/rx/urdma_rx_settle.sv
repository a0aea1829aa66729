// SPDX-License-Identifier: Apache-2.0
// The end of a turn of requester completion: it writes the QP's state, sets its timer, and sends messages.
//
//  in_*    a turn whose walk is complete, and its results
//  fire    the turn ends in this cycle: st is written; look: the QP has to be looked at again
//  set, arm   of the QP's timer; st.deadline
//  rr_*    (WQE fetch) the decision on a READ response or ATOMIC acknowledge
//  acked_* (tx) progress of a QP, and how to react to loss;  err_*: the QP has failed
//  cqe_go  this many CQEs may leave, because tx knows that their WQEs are completed
//  ctl_*   control for the QP of the turn; frozen: nothing moves
//
// AK_RETRY is sent when head reaches ack, because it names the oldest WQE not completed; it waits only for placement. The ACK
// timer runs while a packet that requests an acknowledgement has none. It restarts with progress and with each AK_RETRY, and
// does not run during an RNR wait.

`resetall
`default_nettype none

module urdma_rx_settle
  import urdma_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_rx_cmpl_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic         clk,
  input  wire logic         rst,
  input  wire logic         frozen,
  input  wire logic [63:0]  cycles,

  input  wire logic         in_valid,
  output      logic         in_ready,
  input  wire run_t         in,
  input  wire did_t         in_did,
  input  wire news_t        news,
  input  wire logic         ctl_en,
  input  wire qpc_op_e      ctl_op,
  input  wire logic [23:0]  ctl_psn,

  output      logic         valid,
  output      run_t         run,
  output      logic         fire,
  output      logic         look,
  output      st_t          st,
  output      logic         set,
  output      logic         arm,

  output      logic         rr_valid,
  output      rr_t          rr,
  input  wire logic         rr_ready,
  output      logic         acked_valid,
  output      acked_t       acked,
  input  wire logic         acked_ready,
  output      logic [INFL_W:0] cqe_go,
  output      logic         err_valid,
  output      qp_err_t      err,
  input  wire logic         err_ready,

  output      logic         trace_acked_valid,
  output      tr_acked_t    trace_acked,
  output      logic         trace_req_valid,
  output      tr_req_t      trace_req
);

  logic valid_reg;
  assign valid = valid_reg;

  logic retry, emit, late, due, is_resp, acked_valid_reg, err_valid_reg, rr_valid_reg;
  run_t run_reg;
  did_t did_reg;
  acked_t acked_reg;
  logic [INFL_W:0] acked_cqes_reg;
  trace_cause_e acked_cause_reg;
  trace_why_e why;
  qp_err_t err_reg;
  rr_t rr_reg;
  logic [63:0] rnr_end;
  st_t s;

  assign run = run_reg;
  assign s = run_reg.st;
  assign is_resp = run_reg.it.kind == IT_PKT && run_reg.it.bth.response;
  assign due = !psn_before(run_reg.asked, s.una) && !run_reg.it.unrel;
  assign retry = run_reg.it.pass && s.want && s.head == s.ack && s.active && !s.err && s.tk != T_RNR && !did_reg.rnr;
  assign emit = did_reg.changed || did_reg.hold || retry;
  assign rnr_end = cycles + rnr_cycles(run_reg.it.ext[4:0]);

  always_comb begin
    st = s;
    arm = 1'b0;
    if (retry) begin
      st.want = 1'b0;
      st.restart = 1'b1;
    end
    if (s.err || !s.active) begin
      st.tk = T_NONE;
      st.watch = 1'b0;
    end else if (!run_reg.it.pass) begin
      // a packet that failed the look-up: nothing changes
    end else if (did_reg.rnr) begin
      st.watch = 1'b1;
      st.tk = T_RNR;
      if (s.tk != T_RNR || rnr_end > s.deadline) st.deadline = rnr_end;
      arm = 1'b1;
    end else if (s.tk == T_RNR) begin
      st.watch = 1'b1;
    end else if (due) begin
      st.watch = 1'b1;
      st.tk = (run_reg.it.timeout == '0) ? T_NONE : T_ACK;
      if (run_reg.it.timeout != '0 && (s.tk == T_NONE || did_reg.rearm || retry)) begin
        st.deadline = cycles + ack_cycles(run_reg.it.timeout);
        arm = 1'b1;
      end
    end else begin
      st.tk = T_NONE;
      st.watch = 1'b0;
      st.restart = 1'b0;
    end
  end

  // A new life of the QP has begun after the walk: tx is not told which WQEs of the old life have completed.
  assign late = !emit && did_reg.cqes != '0;
  assign cqe_go = (acked_valid_reg && acked_ready) ? acked_cqes_reg : (fire && late) ? did_reg.cqes : '0;
  assign fire = valid_reg && !frozen && (!emit || !acked_valid_reg || acked_ready) && (!late || !acked_valid_reg)
      && (!did_reg.failed || !err_valid_reg || err_ready) && (!is_resp || !rr_valid_reg || rr_ready);
  assign in_ready = !valid_reg || fire;
  assign set = fire && (arm || (run_reg.armed && st.tk == T_NONE));
  // a message entered meanwhile is already acknowledged, or must be flushed; a packet that failed the look-up has set no timer
  assign look = fire && (did_reg.look || (run_reg.fresh && (s.err || psn_before(run_reg.fresh_psn, s.una)))
      || (run_reg.it.kind == IT_PKT && !run_reg.it.pass && due && !s.watch && s.active && !s.err));

  always_ff @(posedge clk) begin
    run_reg <= follow(run_reg, news);
    if (in_valid && in_ready) begin
      run_reg <= in;
      did_reg <= in_did;
    end
    if (ctl_en) begin
      run_reg <= control_run(follow(run_reg, news), ctl_op, ctl_psn);
      if (new_life(ctl_op)) begin
        did_reg <= '0;
        did_reg.cqes <= did_reg.cqes;
      end
    end
    if (fire && emit) begin
      acked_reg <= '{kind: (did_reg.hold && !s.err) ? AK_HOLD : retry ? AK_RETRY : AK_PROGRESS, qpn: run_reg.it.qpn,
                     wqe_done: s.head, first_psn: s.first,
                     // always in the message of wqe_done: tx may begin anew at any acked_t
                     una_psn: (s.head == s.ack) ? s.una : s.first, rd_done: s.rd_done};
      acked_cqes_reg <= did_reg.cqes;
      acked_cause_reg <= (did_reg.hold && !s.err) ? TRC_RNR_WAIT : retry ? s.cause : TRC_PROGRESS;
    end
    // CQEs report an error of the send queue, not an event
    if (fire && did_reg.failed) err_reg <= '{qpn: run_reg.it.qpn, only_event: 1'b0, event_type: 8'd0};
    if (fire && is_resp) rr_reg <= did_reg.rr;
    if (rst) begin
      valid_reg <= 1'b0;
      acked_valid_reg <= 1'b0;
      err_valid_reg <= 1'b0;
      rr_valid_reg <= 1'b0;
    end else begin
      if (in_valid && in_ready) valid_reg <= 1'b1;
      else if (fire) valid_reg <= 1'b0;
      if (fire && emit) acked_valid_reg <= 1'b1;
      else if (acked_ready) acked_valid_reg <= 1'b0;
      if (fire && did_reg.failed) err_valid_reg <= 1'b1;
      else if (err_ready) err_valid_reg <= 1'b0;
      if (fire && is_resp) rr_valid_reg <= 1'b1;
      else if (rr_ready) rr_valid_reg <= 1'b0;
    end
  end

  assign acked_valid = acked_valid_reg;
  assign acked = acked_reg;
  assign err_valid = err_valid_reg;
  assign err = err_reg;
  assign rr_valid = rr_valid_reg;
  assign rr = rr_reg;

  assign trace_acked_valid = acked_valid_reg && acked_ready;
  assign trace_acked = '{qpn: acked_reg.qpn, wqe: acked_reg.wqe_done, psn: acked_reg.una_psn, cause: acked_cause_reg};
  // a MIDDLE of a READ response has no AETH
  assign trace_req_valid = fire && run_reg.it.kind == IT_PKT;
  assign trace_req = '{qpn: run_reg.it.qpn, psn: run_reg.it.psn,
                       syndrome: (run_reg.it.bth.ext_len == '0) ? 8'd0 : run_reg.it.ext[7:0], drop: !did_reg.hit, why: why};
  always_comb begin
    why = TRW_NONE;
    if (did_reg.hit) why = TRW_NONE;
    else if (!run_reg.it.pass) why = trace_why_e'(run_reg.it.why);
    else if (run_reg.ghost) why = TRW_GHOST;
    else if (s.err || !s.active) why = TRW_ERROR;
    else if (is_resp) why = TRW_LOST;
  end

endmodule

`resetall
