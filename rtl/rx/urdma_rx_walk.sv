// SPDX-License-Identifier: Apache-2.0
// The walk of a turn of requester completion over the table of sent messages: one entry per cycle. The cycle that finds the
// end also makes the decision. See urdma_rx_cmpl for the positions head, ack and tail.
//
//  load_*  a turn begins: the state of its QP, and the PSN up to which it acknowledges. Its first entry is read in this cycle.
//  ent_*   the next entry to read
//  end_*   the walk is complete; its turn leaves when end_ready
//  ctl_*   control for the QP of the turn; frozen: nothing moves
//  cqe_*   to urdma_rx_cqe_gate, where the CQEs wait for the end of the turn
//  qc_*    acknowledgements, time-outs, CQEs with an error, for the counters of the QP
//
// A walk begins at head. If head waits for a placement, a packet's walk begins at ack instead (apart: head and ack differ,
// and each rdone causes a kick, which handles head). A kick's walk ends there, unless a timer has expired: then it continues
// at ack, too. An entry between head and ack completes with SUCCESS (a READ after its rdone, or with the rdone's status).
// Rules for the entry at ack, in this order:
//   sent well, not a READ, before the goal  -> acknowledged; SUCCESS, a CQE if it was signaled
//   an error waits for it (NAK, retries)    -> that error, whatever status tx gave it
//   a READ whose data could not be placed   -> the rdone's status
//   the QP is in error                      -> FLUSH_ERR
//   tx gave it a status                     -> that status; if it is not FLUSH_ERR the QP goes to ERR
//   otherwise                               -> it waits: the walk ends, and the item is decided on here
// The first completion in error turns all later ones into FLUSH_ERR. An error may come for a message that is not in the table
// yet (partly sent): it then waits for the entry, which arrives as a flushed one. A decision that fails the QP requests
// another turn, which completes the entry.

`resetall
`default_nettype none

module urdma_rx_walk
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_rx_cmpl_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic              clk,
  input  wire logic              rst,
  input  wire logic              frozen,

  input  wire logic              load,
  input  wire run_t              load_run,
  input  wire logic [15:0]       load_tail,
  input  wire placed_t           load_placed,
  input  wire says_t             load_says,
  input  wire logic [23:0]       load_goal,
  input  wire logic              load_apart,
  input  wire news_t             news,
  input  wire logic              ctl_en,
  input  wire qpc_op_e           ctl_op,
  input  wire logic [23:0]       ctl_psn,

  output      logic              ent_en,
  output      logic [INFL_W-1:0] ent_idx,
  input  wire ent_t              ent,

  output      logic              valid,
  output      run_t              run,
  output      logic              end_valid,
  input  wire logic              end_ready,
  output      run_t              end_run,
  output      did_t              end_did,

  output      logic              cqe_valid,
  output      sq_cqe_t           cqe,
  input  wire logic              cqe_ready,

  output      logic              cnt_rsp,        // pulses
  output      logic              cnt_gap,
  output      logic              cnt_timeout,
  output      logic              cnt_retry_exc,
  output      logic              cnt_rnr_exc,
  output      logic              qc_valid,
  output      qc_req_t           qc,
  output      logic              trace_loss_valid,
  output      tr_loss_t          trace_loss
);

  logic valid_reg;
  assign valid = valid_reg;

  logic apart_reg, at_ack, none, is_rd, rd_good, rd_bad, passed, c_done, c_block, a_pass, ent_cqe, go_on, step, decide, is_resp;
  logic due, moved, fail, rnr, loss, c_gap, c_timeout, c_retry_exc, c_rnr_exc;
  trace_cause_e loss_cause;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [15:0] next_idx;           // the table uses its low bits
  /* verilator lint_on UNUSEDSIGNAL */
  logic [15:0] tail_reg;
  logic [23:0] goal_reg;
  logic [7:0] c_status;
  placed_t placed_reg;
  says_t says_reg;
  run_t run_reg;
  did_t did_reg;
  st_t st, d;
  rr_t rr;

  assign run = run_reg;
  assign st = run_reg.st;
  assign is_resp = run_reg.it.kind == IT_PKT && run_reg.it.bth.response;
  assign at_ack = apart_reg || st.head == st.ack;
  assign none = at_ack && st.ack == tail_reg;
  assign is_rd = is_read(ent.opcode);
  assign rd_good = placed_reg.cnt != st.rd_done;
  assign rd_bad = !rd_good && placed_reg.status != '0;
  assign passed = ent.status == '0 && !is_rd && psn_before(ent.psn, goal_reg) && !st.dead;

  always_comb begin
    c_done = 1'b0;
    c_status = '0;
    c_block = 1'b0;
    a_pass = 1'b0;
    if (!at_ack) begin
      c_done = 1'b1;
      if (st.dead) begin
        c_status = 8'(URDMA_WC_FLUSH_ERR);
      end else if (ent.status != '0) begin
        c_status = ent.status;
      end else if (is_rd && !rd_good) begin
        c_status = placed_reg.status;
        c_done = rd_bad;
        c_block = !rd_bad;
      end
    end else if (!none) begin
      a_pass = passed;
      if (!apart_reg) begin
        c_done = 1'b1;
        if (passed) c_status = '0;
        else if (st.nak != '0) c_status = st.nak;
        else if (is_rd && rd_bad && ent.status == '0 && !st.dead) c_status = placed_reg.status;
        else if (st.err) c_status = 8'(URDMA_WC_FLUSH_ERR);
        else if (ent.status != '0) c_status = ent.status;
        else c_done = 1'b0;
        a_pass = c_done;
      end
    end
  end

  assign go_on = run_reg.it.pass && (c_done || a_pass || (c_block && says_reg.expired));
  assign ent_cqe = c_done && (c_status != '0 || ent.signaled);
  assign step = valid_reg && go_on && !frozen && (!ent_cqe || cqe_ready);
  assign end_valid = valid_reg && !go_on && !frozen;
  assign decide = end_valid && end_ready && run_reg.it.pass && !st.err && !c_block;
  assign next_idx = c_block ? st.ack : at_ack ? st.ack + 16'd1 : st.head + 16'd1;
  assign ent_en = step;
  assign ent_idx = next_idx[INFL_W-1:0];
  assign due = !psn_before(run_reg.asked, st.una) && !run_reg.it.unrel;

  urdma_rx_decide u_decide (
    .it(run_reg.it), .says(says_reg), .is_resp, .s(st), .ent, .none, .goal(goal_reg), .due,
    .d, .moved, .rr, .fail, .rnr, .loss, .loss_cause, .cnt_gap(c_gap), .cnt_timeout(c_timeout), .cnt_retry_exc(c_retry_exc),
    .cnt_rnr_exc(c_rnr_exc)
  );

  always_comb begin
    end_run = follow(run_reg, news);
    end_did = did_reg;
    if (decide) begin
      end_run.st = d;
      end_did.changed = did_reg.changed || moved;
      end_did.failed = did_reg.failed || fail;
      end_did.look = fail;
      end_did.hold = rnr && !(st.tk == T_RNR && d.una == st.una);
      end_did.rnr = rnr;
      end_did.rearm = moved || (says_reg.expired && st.tk == T_ACK);
      end_did.hit = did_reg.hit || rr.take;
      end_did.rr = rr;
    end
  end
  assign cnt_rsp = decide && rr.take;
  assign cnt_gap = decide && c_gap;
  assign cnt_timeout = decide && c_timeout;
  assign cnt_retry_exc = decide && c_retry_exc;
  assign cnt_rnr_exc = decide && c_rnr_exc;
  assign trace_loss_valid = decide && loss;
  assign trace_loss = '{qpn: run_reg.it.qpn, psn: d.una, cause: loss_cause, out: c_retry_exc};

  always_ff @(posedge clk) begin
    run_reg <= follow(run_reg, news);
    if (step) begin
      if (c_block) apart_reg <= 1'b1;
      if (ent_cqe) did_reg.cqes <= did_reg.cqes + 1'b1;
      if (c_done) begin
        run_reg.st.head <= st.head + 16'd1;
        run_reg.st.first <= ent.psn + 24'd1;
        if (is_rd) run_reg.st.rd_done <= st.rd_done + 8'd1;
        did_reg.changed <= 1'b1;
        if (c_status != '0) begin
          run_reg.st.nak <= '0;
          run_reg.st.dead <= 1'b1;
          if (!st.err && c_status != 8'(URDMA_WC_FLUSH_ERR)) begin
            run_reg.st.err <= 1'b1;
            did_reg.failed <= 1'b1;
          end
        end
      end
      if (a_pass) begin
        run_reg.st.ack <= st.ack + 16'd1;
        run_reg.st.ack_first <= ent.psn + 24'd1;
      end
    end
    if (load) begin
      run_reg <= load_run;
      tail_reg <= load_tail;
      placed_reg <= load_placed;
      says_reg <= load_says;
      goal_reg <= load_goal;
      apart_reg <= load_apart;
      did_reg <= '0;
      did_reg.hit <= load_says.ack || load_says.nak || load_says.rnr;
    end
    if (ctl_en) begin
      run_reg <= control_run(follow(run_reg, news), ctl_op, ctl_psn);
      if (ctl_op == QPC_RESET) tail_reg <= '0;
      if (new_life(ctl_op)) begin
        placed_reg <= '0;
        says_reg <= '0;
        goal_reg <= (ctl_op == QPC_RESET) ? '0 : ctl_psn;
        apart_reg <= 1'b0;
        did_reg <= '0;
        did_reg.cqes <= did_reg.cqes;
      end
    end
    if (rst) valid_reg <= 1'b0;
    else if (load) valid_reg <= 1'b1;
    else if (end_valid && end_ready) valid_reg <= 1'b0;
  end

  // ---- counters of the QP: one entry or the end of the walk per cycle ------------------------------------------------
  logic qc_valid_reg, says_nak_seq;
  qc_req_t qc_reg;
  qc_req_hit_t qc_hit;
  assign qc_valid = qc_valid_reg;
  assign qc = qc_reg;

  assign says_nak_seq = says_reg.nak && run_reg.it.ext[7:0] == SYN_NAK_SEQ;
  always_comb begin
    qc_hit = '0;
    qc_hit.ack = end_valid && end_ready && run_reg.it.kind == IT_PKT && run_reg.it.pass && run_reg.it.bth.ack;
    qc_hit.nak_seq = decide && says_nak_seq;
    qc_hit.nak_rnr = decide && says_reg.rnr;
    qc_hit.read_gap = cnt_gap;
    qc_hit.timeout = cnt_timeout;
    qc_hit.err = step && ent_cqe && c_status != '0 && c_status != 8'(URDMA_WC_FLUSH_ERR);
    qc_hit.flush = step && ent_cqe && c_status == 8'(URDMA_WC_FLUSH_ERR);
  end
  always_ff @(posedge clk) begin
    if (valid_reg) qc_reg <= '{qpn: run_reg.it.qpn, hit: qc_hit};
    qc_valid_reg <= valid_reg && qc_hit != '0 && !rst;
  end

  assign cqe_valid = valid_reg && go_on && !frozen && ent_cqe;
  assign cqe = '{cqn: run_reg.it.cqn, qpn: run_reg.it.qpn, opcode: ent.opcode, status: c_status, wqe: st.head, len: ent.len};

endmodule

`resetall
