// SPDX-License-Identifier: Apache-2.0
// Requester completion: what acknowledgements and READ responses do to the table of sent messages, and the timers
// (IBA volume 1, 9.7.5, 9.7.6, 9.7.7).
//
//  sent_*, made_*, rdone_*, kick_*   see urdma_rx_told, which holds the tables
//  in_*    found items: acknowledgements, READ responses, kicks (look at the table again), the fence's token
//  rr_*    (WQE fetch) the decision on a READ response or ATOMIC acknowledge: one for each such item, in order
//  acked_* (tx) progress of a QP, and what to do about loss;  cqe_*, err_*: completions, errors
//  aqc_*   control from qp_mgr: taken without waiting for any output of this block
//  timer_* for the simulator: cycles until the earliest armed deadline, never more than the truth
//
// Each QP has 2**INFL_W entries, found by the low bits of the WQE index. Three places in this ring, in order:
//   head  oldest WQE not completed      ack  oldest not acknowledged      tail  next to come from tx
// una is the oldest PSN not acknowledged; it lies in the message of ack, or begins it. Only READs and ATOMICs lie
// between head and ack (with what is behind them): answered to the end, but their data is not yet reported written.
//
// An item is one turn, in three stages:
//
//   L  the QP's state and tables are read, and stay current while the item waits here
//   W  the walk: an entry a cycle; in the cycle that finds the end, the decision (urdma_rx_decide)
//   B  the state is written, the timer set, messages go out
//
// An item may only enter W when no item of its QP is in W or B; it may enter in the cycle in which B writes. So items
// of different QPs follow each other without a gap, items of one QP after one more cycle.
//
// The item sets a goal, the PSN up to which it acknowledges, and walks from head on. Where head waits for a placement a packet's
// walk begins at ack (it finds head and ack apart: each rdone causes a kick, which sees to head), a kick's ends, unless a
// timer has expired: then it goes on from ack, too. An entry between head and ack completes with SUCCESS (a READ after its rdone, or with the rdone's status). Rules for the entry at ack, in this order:
//   sent well, not a READ, behind the goal  -> acknowledged; SUCCESS, a CQE if it was signaled
//   an error waits for it (NAK, retries)    -> that error, whatever tx made of it
//   a READ whose data could not be placed   -> the rdone's status
//   the QP is in error                      -> FLUSH_ERR
//   tx gave it a status                     -> that status; if it is not FLUSH_ERR the QP goes into error
//   otherwise                               -> it waits: the walk ends, and what the item says is decided here
// The first completion in error makes all later ones FLUSH_ERR. An error may come for a message that is not in the table yet
// (partly sent): it then waits for the entry, which comes at last as a flushed one. A decision that fails the QP asks for
// another turn, which completes the entry.
//
// AK_RETRY is sent when head has come to ack, for it names the oldest WQE not completed: placement is all it waits for.
//
// Timers. One deadline a QP (urdma_rx_timer): the ACK timer while a packet that asks for an answer has none, or the RNR timer. An
// expiry is a kick; the deadline is also in the QP's state, so that a turn knows if it is still the one that counts. The ACK
// timer starts anew with progress and with each AK_RETRY.
//
// What is asked of placement: each decision with take and last brings exactly one rdone, sooner or later, unless one with an
// error came for the QP before; head waits for it even in error, so that a READ that was answered before an error is
// not reported as flushed.

`resetall
`default_nettype none

module urdma_rx_cmpl
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_rx_cmpl_pkg::*;
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
  output      logic                   drop_valid,  // acknowledgement or response without effect, for the trace
  output      logic                   ack_valid,   // acknowledgement or response taken
  output      logic [QPN_W-1:0]       ack_qpn,
  output      logic [23:0]            ack_psn,
  output      logic [7:0]             ack_syndrome
);

  logic [QPN_W:0] init_reg;
  logic timer_init;
  assign init_done = init_reg[QPN_W] && timer_init;
  always_ff @(posedge clk) begin
    if (rst) init_reg <= '0;
    else if (!init_reg[QPN_W]) init_reg <= init_reg + 1'b1;
  end

  // ---- tables -----------------------------------------------------------------------------------------------
  // what a turn has done, for its end
  typedef struct packed {
    logic        changed;          // something completed, or is acknowledged
    logic        failed;           // the QP ends by it
    logic        look;             // another turn is needed
    logic        hold;             // tx has to wait
    logic        rnr;              // the RNR timer is set
    logic        rearm;            // the ACK timer starts anew
    logic        hit;              // a packet that counts
    rr_t         rr;
  } did_t;

  /* verilator lint_off UNUSEDSIGNAL */  // the responder's fields
  found_t l_reg, w_it_reg, b_it_reg;
  /* verilator lint_on UNUSEDSIGNAL */
  logic get_en, ent_en, st_we, set_valid, set_arm, timer_busy, told_busy, exp_valid, exp_ready, ctl_en, ctl_reg, w_load, b_fire, b_look;
  logic [QPN_W-1:0] get_qpn, ent_qpn, st_wqpn, exp_qpn, w_qpn, b_qpn;
  logic [INFL_W-1:0] ent_idx;
  logic [2:0] new_sent, new_made;
  logic [23:0] new_psn;
  logic l_valid_reg, w_valid_reg, b_valid_reg;
  st_t mem_st, st_wdata, bk;
  tail_t mem_tail;
  psns_t mem_psns;
  logic [23:0] new_asked;
  placed_t mem_placed;
  ent_t ent;

  urdma_ram_live #(.WIDTH($bits(st_t)), .DEPTH(1 << QPN_W)) u_st (
    .clk, .wr_en(st_we), .wr_addr(st_wqpn), .wr_data(st_wdata), .rd_en(get_en), .rd_addr(get_qpn), .rd_data(mem_st)
  );

  urdma_rx_told u_told (
    .clk, .rst, .init(!init_done), .init_qpn(init_reg[QPN_W-1:0]), .busy(told_busy),
    .sent_valid, .sent, .sent_ready, .made_valid, .made, .made_ready, .rdone_valid, .rdone, .rdone_ready,
    .exp_valid, .exp_qpn, .exp_ready, .kick_valid, .kick_qpn, .kick_ready,
    .get_en, .get_qpn, .tail(mem_tail), .psns(mem_psns), .placed(mem_placed), .ent_en, .ent_qpn, .ent_idx, .ent,
    .put_en(st_we), .put_qpn(st_wqpn), .put(st_wdata), .put_look(b_look),
    .ctl_wait(aqc_valid && (aqc.op == QPC_RESET || aqc.op == QPC_SQ_PSN)), .ctl_en, .ctl(aqc),
    .load(w_load), .load_qpn(l_reg.qpn), .run_valid({b_valid_reg && !b_fire, w_valid_reg}), .run_qpn({b_qpn, w_qpn}),
    .new_sent, .new_psn, .new_made, .new_asked
  );

  urdma_rx_timer u_timer (
    .clk, .rst, .init_done(timer_init), .busy(timer_busy), .cycles,
    .set_valid, .set_qpn(st_wqpn), .set_arm, .set_deadline(bk.deadline),
    .exp_valid, .exp_qpn, .exp_ready, .armed(timer_armed), .wait_cycles(timer_cycles)
  );

  // ---- control: two cycles in which every stage stands still. The first reads the QP's state; the second writes it, or changes the
  // copy of the turn that is under way. ------------------------------------------------------------------------
  logic frozen, ctl_w, ctl_b;
  /* verilator lint_off UNUSEDSIGNAL */
  st_t ctl_st, l_st;               // some of it is looked at
  /* verilator lint_on UNUSEDSIGNAL */
  st_t w_reg, b_reg, d;

  assign frozen = aqc_valid;
  assign ctl_en = ctl_reg;
  assign ctl_w = w_valid_reg && w_qpn == aqc.qpn;
  assign ctl_b = b_valid_reg && b_qpn == aqc.qpn;
  assign ctl_st = ctl_w ? w_reg : ctl_b ? b_reg : mem_st;
  assign aqc_ready = ctl_reg;
  assign aqc_rsp = '{psn: ctl_st.una, pi: mem_tail.idx, ci: ctl_st.head, draining: 1'b0};

  always_ff @(posedge clk) begin
    if (rst) ctl_reg <= 1'b0;
    else ctl_reg <= aqc_valid && !ctl_reg && init_done;
  end

  // ---- L: an item and what is known of its QP --------------------------------------------------------------------
  logic l_fresh_reg, l_take, l_again, l_pkt, l_resp, l_ok, kind_ack, kind_rnr, kind_nak, in_range, resp_range, l_byp, l_apart, l_free;
  says_t l_says, w_says_reg;
  logic w_end, fence_take, b_arm;

  assign l_free = (!l_valid_reg || w_load) && !frozen && init_done;
  assign l_take = in_valid && in.kind != IT_FENCE && l_free;
  // control has read in between
  assign l_again = l_valid_reg && !l_fresh_reg && !frozen;
  assign fence_take = in_valid && in.kind == IT_FENCE && !l_valid_reg && !w_valid_reg && !b_valid_reg
      && !acked_valid && !cqe_valid && !err_valid && !rr_valid && !frozen;
  assign fence_out = fence_take;
  assign in_ready = l_take || fence_take;
  assign get_en = l_take || l_again || (aqc_valid && !ctl_reg);
  assign get_qpn = frozen ? aqc.qpn : l_again ? l_reg.qpn : in.qpn;

  // An item of the QP that B writes in this cycle sees what B had; bk differs from it in the timer only.
  assign l_byp = b_valid_reg && b_qpn == l_reg.qpn;
  assign l_st = l_byp ? b_reg : mem_st;
  assign w_load = l_valid_reg && l_fresh_reg && !frozen && (!w_valid_reg || (w_end && w_qpn != l_reg.qpn)) && (!l_byp || b_fire);

  // ext as it lies on the wire: syndrome, then the MSN
  assign l_pkt = l_reg.kind == IT_PKT;
  assign l_resp = l_pkt && is_response(l_reg.opcode);
  assign kind_ack = l_reg.opcode == BTH_ACK && l_reg.ext[7:5] == 3'b000;
  assign kind_rnr = l_reg.opcode == BTH_ACK && l_reg.ext[7:5] == 3'b001;
  assign kind_nak = l_reg.opcode == BTH_ACK && !kind_ack && !kind_rnr;
  // An answer is to something that was sent and is not acknowledged; a response, to something in the table: a READ is
  // there before its packet goes.
  assign in_range = !psn_before(l_reg.psn, l_st.una) && !psn_before(mem_psns.newest, l_reg.psn);
  assign resp_range = !l_resp || (!psn_before(mem_tail.psn, l_reg.psn) && l_st.ack != mem_tail.idx);
  assign l_ok = l_pkt && l_reg.pass && l_st.active && !l_st.err;
  always_comb begin
    l_says = '0;
    if (l_ok && in_range && resp_range) l_says = '{ack: kind_ack, nak: kind_nak, rnr: kind_rnr, resp: l_resp, expired: 1'b0};
    l_says.expired = l_reg.kind == IT_KICK && l_reg.pass && l_st.active && !l_st.err && l_st.tk != T_NONE
        && cycles >= l_st.deadline && !(l_byp && b_arm);
  end
  // each rdone causes a kick, which looks at what it is for
  assign l_apart = l_pkt && l_st.head != l_st.ack;

  always_ff @(posedge clk) begin
    if (l_take) l_reg <= in;
    if (rst) begin
      l_valid_reg <= 1'b0;
      l_fresh_reg <= 1'b0;
    end else begin
      if (l_take) l_valid_reg <= 1'b1;
      else if (w_load) l_valid_reg <= 1'b0;
      if (aqc_valid) l_fresh_reg <= 1'b0;
      else if (l_take || l_again) l_fresh_reg <= 1'b1;
    end
  end

  // ---- W: the entry that the walk looks at --------------------------------------------------------------------------
  logic w_apart_reg, w_armed_reg, w_new_reg, at_ack, none, is_rd, rd_good, rd_bad, passed, c_done, c_block, a_pass, ent_cqe, go_on, step, stop, decide;
  logic w_resp, due, moved, fail, set_rnr, cnt_gap, cnt_timeout, cnt_retry_exc, cnt_rnr_exc, step_ok;
  logic [15:0] w_tail_reg;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [15:0] step_idx, load_idx; // the table has their low bits
  /* verilator lint_on UNUSEDSIGNAL */
  logic [23:0] w_goal_reg, w_new_psn_reg, w_asked_reg, w_asked;
  logic [7:0] c_status;
  placed_t w_placed_reg;
  did_t w_did_reg, w_did;
  rr_t d_rr;

  assign w_qpn = w_it_reg.qpn;
  assign w_resp = w_it_reg.kind == IT_PKT && is_response(w_it_reg.opcode);
  assign at_ack = w_apart_reg || w_reg.head == w_reg.ack;
  assign none = at_ack && w_reg.ack == w_tail_reg;
  assign is_rd = is_read(ent.opcode);
  assign rd_good = w_placed_reg.cnt != w_reg.rd_done;
  assign rd_bad = !rd_good && w_placed_reg.status != '0;
  assign passed = ent.status == '0 && !is_rd && psn_before(ent.psn, w_goal_reg) && !w_reg.dead;

  always_comb begin
    c_done = 1'b0;
    c_status = '0;
    c_block = 1'b0;
    a_pass = 1'b0;
    if (!at_ack) begin
      c_done = 1'b1;
      if (w_reg.dead) begin
        c_status = 8'(URDMA_WC_FLUSH_ERR);
      end else if (ent.status != '0) begin
        c_status = ent.status;
      end else if (is_rd && !rd_good) begin
        c_status = w_placed_reg.status;
        c_done = rd_bad;
        c_block = !rd_bad;
      end
    end else if (!none) begin
      a_pass = passed;
      if (!w_apart_reg) begin
        c_done = 1'b1;
        if (passed) c_status = '0;
        else if (w_reg.nak != '0) c_status = w_reg.nak;
        else if (is_rd && rd_bad && ent.status == '0 && !w_reg.dead) c_status = w_placed_reg.status;
        else if (w_reg.err) c_status = 8'(URDMA_WC_FLUSH_ERR);
        else if (ent.status != '0) c_status = ent.status;
        else c_done = 1'b0;
        a_pass = c_done;
      end
    end
  end

  assign ent_cqe = c_done && (c_status != '0 || ent.signaled);
  assign step_ok = !frozen && (!ent_cqe || !cqe_valid || cqe_ready);
  // a kick ends where head waits, unless there is something to decide at ack
  assign go_on = w_it_reg.pass && (c_done || a_pass || (c_block && w_says_reg.expired));
  assign step = w_valid_reg && go_on && step_ok;
  assign stop = w_valid_reg && !go_on;
  assign w_end = stop && !frozen && (!b_valid_reg || b_fire);
  assign decide = w_end && w_it_reg.pass && !w_reg.err && !c_block;

  assign ent_en = w_load || step;
  assign ent_qpn = step ? w_qpn : l_reg.qpn;
  assign step_idx = c_block ? w_reg.ack : at_ack ? w_reg.ack + 16'd1 : w_reg.head + 16'd1;
  assign load_idx = l_apart ? l_st.ack : l_st.head;
  assign ent_idx = step ? step_idx[INFL_W-1:0] : load_idx[INFL_W-1:0];

  assign due = !psn_before(w_asked_reg, w_reg.una);
  assign w_asked = new_made[0] ? new_asked : w_asked_reg;

  urdma_rx_decide u_decide (
    .it(w_it_reg), .says(w_says_reg), .is_resp(w_resp), .s(w_reg), .ent, .none, .goal(w_goal_reg), .due,
    .d, .moved, .rr(d_rr), .fail, .rnr(set_rnr), .cnt_gap, .cnt_timeout, .cnt_retry_exc, .cnt_rnr_exc
  );

  always_comb begin
    w_did = w_did_reg;
    if (decide) begin
      w_did.changed = w_did_reg.changed || moved;
      w_did.failed = w_did_reg.failed || fail;
      w_did.look = fail;
      w_did.hold = set_rnr && !(w_reg.tk == T_RNR && d.una == w_reg.una);
      w_did.rnr = set_rnr;
      w_did.rearm = moved || (w_says_reg.expired && w_reg.tk == T_ACK);
      w_did.hit = w_did_reg.hit || d_rr.take;
      w_did.rr = d_rr;
    end
  end

  always_ff @(posedge clk) begin
    if (step) begin
      if (c_block) w_apart_reg <= 1'b1;
      if (c_done) begin
        w_reg.head <= w_reg.head + 16'd1;
        w_reg.first <= ent.psn + 24'd1;
        if (is_rd) w_reg.rd_done <= w_reg.rd_done + 8'd1;
        w_did_reg.changed <= 1'b1;
        if (c_status != '0) begin
          w_reg.nak <= '0;
          w_reg.dead <= 1'b1;
          if (!w_reg.err && c_status != 8'(URDMA_WC_FLUSH_ERR)) begin
            w_reg.err <= 1'b1;
            w_did_reg.failed <= 1'b1;
          end
        end
      end
      if (a_pass) begin
        w_reg.ack <= w_reg.ack + 16'd1;
        w_reg.ack_first <= ent.psn + 24'd1;
      end
    end
    w_asked_reg <= w_asked;
    if (new_sent[0] && !w_new_reg) begin
      w_new_reg <= 1'b1;
      w_new_psn_reg <= new_psn;
    end
    if (w_load) begin
      w_it_reg <= l_reg;
      w_reg <= l_byp ? bk : mem_st;
      w_tail_reg <= mem_tail.idx;
      w_asked_reg <= new_made[2] ? new_asked : mem_psns.asked;
      w_placed_reg <= mem_placed;
      w_says_reg <= l_says;
      w_goal_reg <= (l_says.nak || l_says.rnr || l_says.resp) ? l_reg.psn : l_says.ack ? l_reg.psn + 24'd1 : l_st.una;
      w_apart_reg <= l_apart;
      w_armed_reg <= l_st.tk != T_NONE || (l_byp && b_arm);
      w_new_reg <= new_sent[2];
      w_new_psn_reg <= new_psn;
      w_did_reg <= '0;
      w_did_reg.hit <= l_says.ack || l_says.nak || l_says.rnr;
    end
    if (ctl_en && ctl_w) begin
      w_reg <= control(w_reg, aqc.op, aqc.psn);
      if (aqc.op == QPC_RESET || aqc.op == QPC_SQ_PSN) begin
        w_tail_reg <= (aqc.op == QPC_RESET) ? '0 : w_tail_reg;
        w_placed_reg <= '0;
        w_asked_reg <= aqc.psn - 24'd1;
        w_goal_reg <= (aqc.op == QPC_RESET) ? '0 : aqc.psn;
        w_says_reg <= '0;
        w_apart_reg <= 1'b0;
        w_new_reg <= 1'b0;
        w_did_reg <= '0;
      end
    end
    if (rst) w_valid_reg <= 1'b0;
    else if (w_load) w_valid_reg <= 1'b1;
    else if (w_end) w_valid_reg <= 1'b0;
  end

  // ---- completions ---------------------------------------------------------------------------------------------------
  logic cqe_valid_reg;
  cqe_req_t cqe_reg;
  logic [255:0] cqe_word;

  assign cqe_valid = cqe_valid_reg;
  assign cqe = cqe_reg;
  always_comb begin
    cqe_word = '0;
    cqe_word[URDMA_CQE0_OPCODE_LSB+:8] = ent.opcode;
    cqe_word[URDMA_CQE0_STATUS_LSB+:8] = c_status;
    cqe_word[URDMA_CQE0_WQE_LSB+:16] = w_reg.head;
    cqe_word[URDMA_CQE1_LENGTH_LSB+:32] = ent.len;
    cqe_word[URDMA_CQE1_QPN_LSB+:24] = 24'(w_qpn);
  end

  always_ff @(posedge clk) begin
    if (step && ent_cqe) cqe_reg <= '{cqn: w_it_reg.cqn, solicited: 1'b0, cqe: cqe_word};
    if (rst) cqe_valid_reg <= 1'b0;
    else if (step && ent_cqe) cqe_valid_reg <= 1'b1;
    else if (cqe_ready) cqe_valid_reg <= 1'b0;
  end

  // ---- B: state, timer, messages ---------------------------------------------------------------------------------------
  logic b_armed_reg, b_new_reg, b_retry, b_emit, b_due, b_resp;
  logic acked_valid_reg, err_valid_reg, rr_valid_reg;
  logic [23:0] b_new_psn_reg, b_asked_reg;
  did_t b_did_reg;
  acked_t acked_reg;
  qp_err_t err_reg;
  rr_t rr_reg;
  logic [63:0] rnr_end;

  assign b_qpn = b_it_reg.qpn;
  assign b_resp = b_it_reg.kind == IT_PKT && is_response(b_it_reg.opcode);
  assign b_due = !psn_before(b_asked_reg, b_reg.una);
  assign b_retry = b_it_reg.pass && b_reg.want && b_reg.head == b_reg.ack && b_reg.active && !b_reg.err && b_reg.tk != T_RNR
      && !b_did_reg.rnr;
  assign b_emit = b_did_reg.changed || b_did_reg.hold || b_retry;
  assign rnr_end = cycles + rnr_cycles(b_it_reg.ext[4:0]);

  always_comb begin
    bk = b_reg;
    b_arm = 1'b0;
    if (b_retry) begin
      bk.want = 1'b0;
      bk.restart = 1'b1;
    end
    if (b_reg.err || !b_reg.active) begin
      bk.tk = T_NONE;
      bk.watch = 1'b0;
    end else if (!b_it_reg.pass) begin
      // another's packet: nothing is changed
    end else if (b_did_reg.rnr) begin
      bk.watch = 1'b1;
      bk.tk = T_RNR;
      if (b_reg.tk != T_RNR || rnr_end > b_reg.deadline) bk.deadline = rnr_end;
      b_arm = 1'b1;
    end else if (b_reg.tk == T_RNR) begin
      bk.watch = 1'b1;
    end else if (b_due) begin
      bk.watch = 1'b1;
      bk.tk = (b_it_reg.timeout == '0) ? T_NONE : T_ACK;
      if (b_it_reg.timeout != '0 && (b_reg.tk == T_NONE || b_did_reg.rearm || b_retry)) begin
        bk.deadline = cycles + ack_cycles(b_it_reg.timeout);
        b_arm = 1'b1;
      end
    end else begin
      bk.tk = T_NONE;
      bk.watch = 1'b0;
      bk.restart = 1'b0;
    end
  end

  assign b_fire = b_valid_reg && !frozen && (!b_emit || !acked_valid_reg || acked_ready)
      && (!b_did_reg.failed || !err_valid_reg || err_ready) && (!b_resp || !rr_valid_reg || rr_ready);
  // a message that has come meanwhile is acknowledged already, or flushed; another's packet has seen to no timer
  assign b_look = b_fire && (b_did_reg.look || (b_new_reg && (b_reg.err || psn_before(b_new_psn_reg, b_reg.una)))
      || (b_it_reg.kind == IT_PKT && !b_it_reg.pass && b_due && !b_reg.watch && b_reg.active && !b_reg.err));

  always_comb begin
    set_valid = init_done && ((b_fire && (b_arm || (b_armed_reg && bk.tk == T_NONE)))
        || (ctl_en && (aqc.op == QPC_RESET || aqc.op == QPC_ERR)));
    set_arm = b_fire && b_arm;
    st_we = !init_done || b_fire || (ctl_en && aqc.op != QPC_QUERY && !ctl_w && !ctl_b);
    st_wqpn = !init_done ? init_reg[QPN_W-1:0] : ctl_en ? aqc.qpn : b_qpn;
    st_wdata = bk;
    if (ctl_en) begin
      st_wdata = control(mem_st, aqc.op, aqc.psn);
      if (aqc.op == QPC_ERR) st_wdata.tk = T_NONE;
    end
    if (!init_done) st_wdata = '0;
  end

  always_ff @(posedge clk) begin
    if (new_made[1]) b_asked_reg <= new_asked;
    if (new_sent[1] && !b_new_reg) begin
      b_new_reg <= 1'b1;
      b_new_psn_reg <= new_psn;
    end
    if (w_end) begin
      b_it_reg <= w_it_reg;
      b_reg <= decide ? d : w_reg;
      b_asked_reg <= w_asked;
      b_armed_reg <= w_armed_reg;
      b_new_reg <= w_new_reg || new_sent[0];
      b_new_psn_reg <= w_new_reg ? w_new_psn_reg : new_psn;
      b_did_reg <= w_did;
    end
    if (ctl_en && ctl_b) begin
      b_reg <= control(b_reg, aqc.op, aqc.psn);
      if (aqc.op == QPC_RESET || aqc.op == QPC_SQ_PSN) begin
        b_asked_reg <= aqc.psn - 24'd1;
        b_new_reg <= 1'b0;
        b_did_reg <= '0;
      end
    end
    if (b_fire && b_emit) begin
      acked_reg <= '{kind: (b_did_reg.hold && !b_reg.err) ? AK_HOLD : b_retry ? AK_RETRY : AK_PROGRESS, qpn: b_qpn,
                     wqe_done: b_reg.head, first_psn: b_reg.first,
                     // in the message of wqe_done always: tx may begin anew at any acked_t
                     una_psn: (b_reg.head == b_reg.ack) ? b_reg.una : b_reg.first, rd_done: b_reg.rd_done};
    end
    // an error of the send queue is told by its CQEs, not by an event
    if (b_fire && b_did_reg.failed) err_reg <= '{qpn: b_qpn, only_event: 1'b0, event_type: 8'd0};
    if (b_fire && b_resp) rr_reg <= b_did_reg.rr;
    if (rst) begin
      b_valid_reg <= 1'b0;
      acked_valid_reg <= 1'b0;
      err_valid_reg <= 1'b0;
      rr_valid_reg <= 1'b0;
    end else begin
      if (w_end) b_valid_reg <= 1'b1;
      else if (b_fire) b_valid_reg <= 1'b0;
      if (b_fire && b_emit) acked_valid_reg <= 1'b1;
      else if (acked_ready) acked_valid_reg <= 1'b0;
      if (b_fire && b_did_reg.failed) err_valid_reg <= 1'b1;
      else if (err_ready) err_valid_reg <= 1'b0;
      if (b_fire && b_resp) rr_valid_reg <= 1'b1;
      else if (rr_ready) rr_valid_reg <= 1'b0;
    end
  end

  assign acked_valid = acked_valid_reg;
  assign acked = acked_reg;
  assign err_valid = err_valid_reg;
  assign err = err_reg;
  assign rr_valid = rr_valid_reg;
  assign rr = rr_reg;

  // ---- trace, counters ---------------------------------------------------------------------------------------------
  assign ack_valid = b_fire && b_it_reg.kind == IT_PKT && b_did_reg.hit;
  assign drop_valid = b_fire && b_it_reg.kind == IT_PKT && !b_did_reg.hit;
  assign ack_qpn = b_qpn;
  assign ack_psn = b_it_reg.psn;
  assign ack_syndrome = (b_it_reg.opcode == BTH_READ_RSP_MIDDLE) ? SYN_ACK : b_it_reg.ext[7:0];

  always_ff @(posedge clk) begin
    cnt <= '0;
    if (!rst && w_load && l_pkt) begin
      cnt[URDMA_CNT_RX_NO_QP] <= !l_reg.pass;
      cnt[URDMA_CNT_RX_ACK] <= l_reg.pass && kind_ack;
      cnt[URDMA_CNT_RX_NAK] <= l_reg.pass && kind_nak;
      cnt[URDMA_CNT_RX_NAK_RNR] <= l_reg.pass && kind_rnr;
      cnt[URDMA_CNT_RX_ACK_GHOST] <= l_ok && !(in_range && resp_range);
    end
    if (!rst && decide) begin
      cnt[URDMA_CNT_RX_READ_RSP] <= d_rr.take;
      cnt[URDMA_CNT_RX_READ_GAP] <= cnt_gap;
      cnt[URDMA_CNT_TX_TIMEOUT] <= cnt_timeout;
      cnt[URDMA_CNT_RETRY_EXC] <= cnt_retry_exc;
      cnt[URDMA_CNT_RNR_EXC] <= cnt_rnr_exc;
    end
  end

  assign busy = told_busy || in_valid || l_valid_reg || w_valid_reg || b_valid_reg || acked_valid_reg || cqe_valid_reg
      || err_valid_reg || rr_valid_reg || timer_busy || ctl_reg || !init_done;

endmodule

`resetall
