// SPDX-License-Identifier: Apache-2.0
// Requester completion: how acknowledgements and READ responses change the table of sent messages, and the timers (IBA volume
// 1, 9.7.5, 9.7.6, 9.7.7).
//
//  sent_*, made_*, rdone_*, kick_*   see urdma_rx_told, which holds the tables
//  in_*    found items: acknowledgements, READ responses, kicks (look at the table again), the fence's token
//  rr_*    (WQE fetch) the decision on a READ response or ATOMIC acknowledge: one for each such item, in order
//  acked_* (tx) progress of a QP, and how to react to loss;  cqe_*, err_*: completions, errors
//  aqc_*   control from qp_mgr: taken without waiting for any output of this block
//  qc_*    (urdma_qp_cnt) for the counters of the QP
//  timer_* for the simulator: cycles until the earliest armed deadline, never too many
//
// Each QP has 2**INFL_W entries, indexed by the low bits of the WQE index. Three positions in this ring, in order:
//   head  oldest WQE not completed      ack  oldest not acknowledged      tail  next to come from tx
// una is the oldest PSN not acknowledged; it lies in the message at ack, possibly at its start. Only READs and ATOMICs, and
// the WQEs queued after them, lie between head and ack: all responses have arrived, but placement has not reported their data
// as written.
//
// An item makes one turn, in three stages:
//
//   here             the QP's state and tables are read, and stay current while the item waits
//   urdma_rx_walk    one entry per cycle, then the decision (urdma_rx_decide)
//   urdma_rx_settle  the state is written, the timer set, messages go out
//
// The CQEs of a turn wait in urdma_rx_cqe_gate until tx has taken its acked_t.
//
// An item may begin its walk only when no item of its QP is in a stage ahead; it may begin in the cycle that writes the
// state. So items of different QPs follow each other without a gap, and items of one QP with a gap of one cycle.
//
// Timers. Each QP has one deadline (urdma_timer): the ACK timer or the RNR timer. An expiry is a kick. The deadline is also
// in the QP's state, so that a turn can tell whether an expiry is stale. UC and UD have no timer: sent_t kicks, and the turn
// treats all messages in the table as acknowledged.
//
// Contract with placement: each decision with take and last produces exactly one rdone, sooner or later, unless an rdone with
// an error came for the QP before. head waits for it even in error, so that a READ that was answered before an error is not
// reported as flushed.

`resetall
`default_nettype none

module urdma_rx_cmpl
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_rx_cmpl_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  input  wire logic [63:0]            cycles,
  output      logic                   timer_armed,
  output      logic [31:0]            timer_cycles,

  input  wire logic                   sent_valid,
  input  wire sent_t                  sent,
  output      logic                   sent_ready,
  input  wire logic                   made_valid,
  input  wire made_t                  made,
  output      logic                   made_ready,

  input  wire logic                   in_valid,
  output      logic                   in_ready,
  input  wire found_t                 in,
  output      logic                   kick_valid,
  output      logic [QPN_W-1:0]       kick_qpn,
  input  wire logic                   kick_ready,

  output      logic                   rr_valid,
  output      rr_t                    rr,
  input  wire logic                   rr_ready,
  input  wire logic                   rdone_valid,
  input  wire rdone_t                 rdone,
  output      logic                   rdone_ready,

  input  wire logic                   aqc_valid,
  input  wire qpc_t                   aqc,
  output      logic                   aqc_ready,
  output      qpc_rsp_t               aqc_rsp,

  output      logic                   acked_valid,
  output      acked_t                 acked,
  input  wire logic                   acked_ready,
  output      logic                   cqe_valid,
  output      cqe_req_t               cqe,
  input  wire logic                   cqe_ready,
  output      logic                   err_valid,
  output      qp_err_t                err,
  input  wire logic                   err_ready,

  output      logic                   fence_out,
  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic                   qc_valid,
  output      qc_req_t                qc,
  output      logic                   trace_acked_valid,
  output      tr_acked_t              trace_acked,
  output      logic                   trace_req_valid,
  output      tr_req_t                trace_req,
  output      logic                   trace_loss_valid,
  output      tr_loss_t               trace_loss
);

  logic [URDMA_CNT_N-1:0] cnt_reg;
  assign cnt = cnt_reg;

  logic [QPN_W:0] init_reg;
  logic timer_init;
  assign init_done = init_reg[QPN_W] && timer_init;
  always_ff @(posedge clk) begin
    if (rst) init_reg <= '0;
    else if (!init_reg[QPN_W]) init_reg <= init_reg + 1'b1;
  end

  // ---- tables, timers -----------------------------------------------------------------------------------------
  // stages: 0 walks, 1 settles
  logic [1:0] run_valid;
  run_t [1:0] run;
  news_t [2:0] news;
  logic get_en, st_we, ent_en, walk_ent_en, told_busy, timer_busy, exp_valid, exp_ready, load, fire, look, set, arm;
  logic ctl_en_reg, frozen;
  logic [1:0] ctl_run;
  logic [QPN_W-1:0] get_qpn, st_wqpn, exp_qpn;
  logic [INFL_W-1:0] ent_idx, walk_ent_idx;
  st_t mem_st, st_wdata, settle_st;
  tail_t mem_tail;
  psns_t mem_psns;
  placed_t mem_placed;
  ent_t ent;
  /* verilator lint_off UNUSEDSIGNAL */  // the responder's fields
  found_t l_reg;
  /* verilator lint_on UNUSEDSIGNAL */

  urdma_ram_live #(.WIDTH($bits(st_t)), .DEPTH(1 << QPN_W)) u_st (
    .clk, .wr_en(st_we), .wr_addr(st_wqpn), .wr_data(st_wdata), .rd_en(get_en), .rd_addr(get_qpn), .rd_data(mem_st)
  );

  urdma_rx_told u_told (
    .clk, .rst, .init(!init_done), .init_qpn(init_reg[QPN_W-1:0]), .busy(told_busy),
    .sent_valid, .sent, .sent_ready, .made_valid, .made, .made_ready, .rdone_valid, .rdone, .rdone_ready,
    .exp_valid, .exp_qpn, .exp_ready, .kick_valid, .kick_qpn, .kick_ready,
    .get_en, .get_qpn, .tail(mem_tail), .psns(mem_psns), .placed(mem_placed),
    .ent_en, .ent_qpn(load ? l_reg.qpn : run[0].it.qpn), .ent_idx, .ent,
    .put_en(st_we), .put_qpn(st_wqpn), .put(st_wdata), .put_look(look),
    .ctl_wait(aqc_valid && new_life(aqc.op)), .ctl_en(ctl_en_reg), .ctl(aqc),
    .run_valid({load, run_valid[1] && !fire, run_valid[0]}), .run_qpn({l_reg.qpn, run[1].it.qpn, run[0].it.qpn}), .news
  );

  urdma_timer #(.IDX_W(QPN_W)) u_timer (
    .clk, .rst, .init_done(timer_init), .busy(timer_busy), .cycles,
    .set_valid(init_done && (set || (ctl_en_reg && (aqc.op == QPC_RESET || aqc.op == QPC_ERR)))),
    .set_idx(st_wqpn), .set_arm(set && arm), .set_deadline(settle_st.deadline),
    .exp_valid, .exp_idx(exp_qpn), .exp_ready, .armed(timer_armed), .wait_cycles(timer_cycles)
  );

  // ---- control -----------------------------------------------------------------------------------------------------
  // Two cycles in which every stage stalls. The first reads the QP's state; the second writes it, or changes the copy in the
  // turn under way.
  /* verilator lint_off UNUSEDSIGNAL */  // only some fields are used
  st_t ctl_st;
  /* verilator lint_on UNUSEDSIGNAL */

  assign frozen = aqc_valid;
  always_comb begin
    for (int i = 0; i < 2; i++) ctl_run[i] = ctl_en_reg && run_valid[i] && run[i].it.qpn == aqc.qpn;
  end
  assign ctl_st = ctl_run[0] ? run[0].st : ctl_run[1] ? run[1].st : mem_st;
  assign aqc_ready = ctl_en_reg;
  assign aqc_rsp = '{psn: ctl_st.una, pi: mem_tail.idx, ci: ctl_st.head, draining: 1'b0};

  always_ff @(posedge clk) begin
    if (rst) ctl_en_reg <= 1'b0;
    else ctl_en_reg <= aqc_valid && !ctl_en_reg && init_done;
  end

  always_comb begin
    st_we = !init_done || fire || (ctl_en_reg && aqc.op != QPC_QUERY && ctl_run == '0);
    st_wqpn = !init_done ? init_reg[QPN_W-1:0] : ctl_en_reg ? aqc.qpn : run[1].it.qpn;
    st_wdata = settle_st;
    if (ctl_en_reg) begin
      st_wdata = control(mem_st, aqc.op, aqc.psn);
      if (aqc.op == QPC_ERR) st_wdata.tk = T_NONE;
    end
    if (!init_done) st_wdata = '0;
  end

  // ---- an item and the state of its QP ---------------------------------------------------------------------------
  logic l_valid_reg, l_fresh_reg, l_take, l_again, l_free, l_pkt, l_resp, l_ok, l_same, l_apart, l_known;
  logic kind_ack, kind_rnr, kind_nak, walk_end, walk_end_ready, gate_busy;
  /* verilator lint_off UNUSEDSIGNAL */
  st_t l_st;                       // only some fields are used
  logic [15:0] load_idx;           // the table uses its low bits
  /* verilator lint_on UNUSEDSIGNAL */
  says_t l_says;
  run_t load_run;
  logic [23:0] load_goal;

  assign l_free = (!l_valid_reg || load) && !frozen && init_done;
  assign l_take = in_valid && in.kind != IT_FENCE && l_free;
  // a control message has used the read port in between
  assign l_again = l_valid_reg && !l_fresh_reg && !frozen;
  assign fence_out = in_valid && in.kind == IT_FENCE && !l_valid_reg && run_valid == '0
      && !acked_valid && !gate_busy && !err_valid && !rr_valid && !frozen;
  assign in_ready = l_take || fence_out;
  assign get_en = l_take || l_again || (aqc_valid && !ctl_en_reg);
  assign get_qpn = frozen ? aqc.qpn : l_again ? l_reg.qpn : in.qpn;

  // The item sees the state that is written in this cycle; against run[1].st that differs in the timer only.
  assign l_same = run_valid[1] && run[1].it.qpn == l_reg.qpn;
  assign l_st = l_same ? run[1].st : mem_st;
  assign load = l_valid_reg && l_fresh_reg && !frozen && (!l_same || fire)
      && (!run_valid[0] || (walk_end && walk_end_ready && run[0].it.qpn != l_reg.qpn));

  // ext as on the wire: syndrome, then the MSN
  assign l_pkt = l_reg.kind == IT_PKT;
  assign l_resp = l_pkt && l_reg.bth.response;
  assign kind_ack = l_reg.bth.ack && l_reg.ext[7:5] == 3'b000;
  assign kind_rnr = l_reg.bth.ack && l_reg.ext[7:5] == 3'b001;
  assign kind_nak = l_reg.bth.ack && !kind_ack && !kind_rnr;
  // An acknowledgement must be for a PSN that was sent and is not acknowledged. A response must be for a message in the
  // table: a READ is entered before its packet goes.
  assign l_known = !psn_before(l_reg.psn, l_st.una) && !psn_before(mem_psns.newest, l_reg.psn)
      && (!l_resp || (!psn_before(mem_tail.psn, l_reg.psn) && l_st.ack != mem_tail.idx));
  assign l_ok = l_pkt && l_reg.pass && l_st.active && !l_st.err;
  always_comb begin
    l_says = '0;
    if (l_ok && l_known) l_says = '{ack: kind_ack, nak: kind_nak, rnr: kind_rnr, resp: l_resp, expired: 1'b0};
    l_says.expired = l_reg.kind == IT_KICK && l_reg.pass && l_st.active && !l_st.err && l_st.tk != T_NONE
        && cycles >= l_st.deadline && !(l_same && arm);
    load_goal = (l_says.nak || l_says.rnr || l_says.resp) ? l_reg.psn : l_says.ack ? l_reg.psn + 24'd1
        : (l_reg.unrel && l_st.head != mem_tail.idx) ? mem_tail.psn + 24'd1 : l_st.una;
    load_run = '{it: l_reg, st: l_same ? settle_st : mem_st, armed: l_st.tk != T_NONE || (l_same && arm), asked: mem_psns.asked,
                 fresh: 1'b0, fresh_psn: '0, ghost: l_ok && !l_known};
  end
  // each rdone causes a kick, whose turn looks at the status
  assign l_apart = l_pkt && l_st.head != l_st.ack;
  assign load_idx = l_apart ? l_st.ack : l_st.head;
  assign ent_en = load || walk_ent_en;
  assign ent_idx = walk_ent_en ? walk_ent_idx : load_idx[INFL_W-1:0];

  always_ff @(posedge clk) begin
    if (l_take) l_reg <= in;
    if (rst) begin
      l_valid_reg <= 1'b0;
      l_fresh_reg <= 1'b0;
    end else begin
      if (l_take) l_valid_reg <= 1'b1;
      else if (load) l_valid_reg <= 1'b0;
      if (aqc_valid) l_fresh_reg <= 1'b0;
      else if (l_take || l_again) l_fresh_reg <= 1'b1;
    end
  end

  // ---- the walk, the end ------------------------------------------------------------------------------------------
  run_t end_run;
  did_t end_did;
  sq_cqe_t made_cqe;
  logic made_cqe_valid, made_cqe_ready;
  logic [INFL_W:0] cqe_go;
  logic cnt_rsp, cnt_gap, cnt_timeout, cnt_retry_exc, cnt_rnr_exc;

  urdma_rx_walk u_walk (
    .clk, .rst, .frozen, .load, .load_run(follow(load_run, news[2])), .load_tail(mem_tail.idx), .load_placed(mem_placed),
    .load_says(l_says), .load_goal, .load_apart(l_apart), .news(news[0]), .ctl_en(ctl_run[0]), .ctl_op(aqc.op),
    .ctl_psn(aqc.psn), .ent_en(walk_ent_en), .ent_idx(walk_ent_idx), .ent, .valid(run_valid[0]), .run(run[0]),
    .end_valid(walk_end), .end_ready(walk_end_ready), .end_run, .end_did,
    .cqe_valid(made_cqe_valid), .cqe(made_cqe), .cqe_ready(made_cqe_ready),
    .cnt_rsp, .cnt_gap, .cnt_timeout, .cnt_retry_exc, .cnt_rnr_exc, .qc_valid, .qc, .trace_loss_valid, .trace_loss
  );

  urdma_rx_settle u_settle (
    .clk, .rst, .frozen, .cycles, .in_valid(walk_end), .in_ready(walk_end_ready), .in(end_run), .in_did(end_did),
    .news(news[1]), .ctl_en(ctl_run[1]), .ctl_op(aqc.op), .ctl_psn(aqc.psn), .valid(run_valid[1]), .run(run[1]),
    .fire, .look, .st(settle_st), .set, .arm,
    .rr_valid, .rr, .rr_ready, .acked_valid, .acked, .acked_ready, .cqe_go, .err_valid, .err, .err_ready,
    .trace_acked_valid, .trace_acked, .trace_req_valid, .trace_req
  );

  urdma_rx_cqe_gate u_cqe_gate (
    .clk, .rst, .busy(gate_busy), .in_valid(made_cqe_valid), .in(made_cqe), .in_ready(made_cqe_ready), .go(cqe_go),
    .out_valid(cqe_valid), .out(cqe), .out_ready(cqe_ready)
  );

  // ---- counters ----------------------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    cnt_reg <= '0;
    if (!rst && load && l_pkt) begin
      cnt_reg[URDMA_CNT_RX_NO_QP] <= !l_reg.pass;
      cnt_reg[URDMA_CNT_RX_ACK] <= l_reg.pass && kind_ack;
      cnt_reg[URDMA_CNT_RX_NAK] <= l_reg.pass && kind_nak;
      cnt_reg[URDMA_CNT_RX_NAK_RNR] <= l_reg.pass && kind_rnr;
      cnt_reg[URDMA_CNT_RX_ACK_GHOST] <= l_ok && !l_known;
    end
    if (!rst) begin
      cnt_reg[URDMA_CNT_RX_READ_RSP] <= cnt_rsp;
      cnt_reg[URDMA_CNT_RX_READ_GAP] <= cnt_gap;
      cnt_reg[URDMA_CNT_TX_TIMEOUT] <= cnt_timeout;
      cnt_reg[URDMA_CNT_RETRY_EXC] <= cnt_retry_exc;
      cnt_reg[URDMA_CNT_RNR_EXC] <= cnt_rnr_exc;
    end
  end

  assign busy = told_busy || in_valid || l_valid_reg || run_valid != '0 || acked_valid || gate_busy || err_valid || rr_valid
      || timer_busy || ctl_en_reg || !init_done;

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_control_in_walk: cover property (@(posedge clk) !rst && ctl_run[0]);
  c_control_in_settle: cover property (@(posedge clk) !rst && ctl_run[1]);
`endif

endmodule

`resetall
