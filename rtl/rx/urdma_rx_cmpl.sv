// SPDX-License-Identifier: Apache-2.0
// Requester completion: the table of sent messages, what acknowledgements and READ responses do to it, and the timers
// (IBA volume 1, 9.7.5, 9.7.6, 9.7.7).
//
//  sent_*  (tx) a message whose last packet is made, or a WQE that failed or was flushed, in order of the QP
//  in_*    found items: acknowledgements, READ responses, kicks (look at the table again), the fence's token
//  rr_*    (WQE fetch) the decision on a READ response or ATOMIC acknowledge: one for each such item, in order
//  rdone_* (placement) the data of a READ or ATOMIC is written, or could not be: taken whatever else waits
//  kick_*  (to the look-up) QPs to look at; each stands in the queue at most once, so it never fills
//  acked_* (tx) progress of a QP, and what to do about loss;  cqe_*, err_*: completions, errors
//  aqc_*   control from qp_mgr: taken without waiting for any output of this block
//  timer_* for the simulator: cycles until the earliest armed deadline, never more than the truth
//
// Each QP has 2**INFL_W entries, found by the low bits of the WQE index. Three places in this ring, in order:
//   head  oldest WQE not completed      ack  oldest not acknowledged      tail  next to come from tx
// una is the oldest PSN not acknowledged; it lies in the message of ack, or begins it. Only READs and ATOMICs lie
// between head and ack (with what is behind them): answered to the end, but their data is not yet reported written.
//
// An item is one turn. It sets a goal (the PSN up to which it acknowledges) and walks over the entries, one a cycle,
// from head on; where head waits for a placement, the walk goes on from ack. An entry between head and ack completes with SUCCESS
// (a READ after its rdone, or with the rdone's status). Rules for the entry at ack, in this order:
//   sent well, not a READ, behind the goal  -> acknowledged; SUCCESS, a CQE if it was signaled
//   an error waits for it (NAK, retries)    -> that error, whatever tx made of it
//   a READ whose data could not be placed   -> the rdone's status
//   the QP is in error                      -> FLUSH_ERR
//   tx gave it a status                     -> that status; if it is not FLUSH_ERR the QP goes into error
//   otherwise                               -> it waits: the walk ends, and what the item says is decided here
// The first completion in error makes all later ones FLUSH_ERR. An error may come for a message that is not in the table yet
// (partly sent): it then waits for the entry, which comes at last as a flushed one.
//
// Decision. A walk that a READ has stopped in front of its goal has seen that a response is missing: the implied NAK.
// A response must fit its READ: opcode by place (FIRST inside of the READ only if tx was sent back), length, else
// BAD_RESP_ERR; so is one with an AETH that is not an ACK's, and an ACK packet with a reserved kind of AETH counts as a NAK with a
// reserved code. NAK, implied NAK and time-out count down from cfg.retry and set `want`. AK_RETRY itself is
// sent when head has come to ack, for it names the oldest WQE not completed: placement is all it waits for. gap
// makes the second NAK for the same PSN silent, until something moves or a time-out. During an RNR wait nothing is sent
// again: NAKs count only by what they acknowledge, an RNR NAK for the same PSN can only make the wait longer.
//
// Timers. One deadline a QP (urdma_rx_timer): the ACK timer while ack != tail, or the RNR timer. An expiry is a kick;
// the deadline is also in the QP's state, so that a turn knows if it is still the one that counts. The ACK
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

  typedef enum logic [1:0] {T_NONE, T_ACK, T_RNR} timer_e;

  typedef struct packed {
    logic        active;           // from RTS on
    logic        err;
    logic        dead;             // something completed in error: the rest is flushed
    logic        gap;              // a retry has begun, nothing has moved since
    logic        restart;          // tx was sent back and may begin anew at any una since: so may a READ's responses
    logic        want;             // AK_RETRY is due when head has come to ack
    logic        watch;            // a turn has seen that something is outstanding
    logic [7:0]  nak;              // error that waits for the entry at ack
    logic [2:0]  retries;          // used since the last progress
    logic [2:0]  rnrs;
    timer_e      tk;
    logic [63:0] deadline;
    logic [7:0]  rd_done;          // READs and ATOMICs completed
    logic [23:0] una;              // oldest PSN not acknowledged
    logic [23:0] first;            // first PSN of head's message
    logic [23:0] ack_first;        // first PSN of ack's message
    logic [15:0] head;             // oldest WQE not completed
    logic [15:0] ack;              // oldest WQE not acknowledged
  } st_t;

  // what the messages that come in have to know of it
  typedef struct packed {
    logic        err;
    logic        watch;
    logic [23:0] una;
    logic [15:0] head;
  } copy_t;

  typedef struct packed {
    logic [23:0] psn;
    logic [7:0]  opcode;
    logic        signaled;
    logic [7:0]  status;
    logic [31:0] len;
  } ent_t;

  typedef struct packed {
    logic [15:0] idx;
    logic [23:0] psn;              // of the entry before
  } tail_t;

  // READs and ATOMICs of a QP that are placed, counted as st_t.rd_done; a status ends the count
  typedef struct packed {
    logic [7:0]  cnt;
    logic [7:0]  status;
  } placed_t;

  typedef enum logic [1:0] {E_IDLE, E_LOAD, E_WALK, E_BACK} e_e;

  // IBA volume 1, 9.7.5.2.8: 10 us are 2500 cycles; code 0 is the longest
  function automatic logic [63:0] rnr_cycles(input logic [4:0] code);
    logic [16:0] units;
    if (code == 5'd0) units = 17'd65536;
    else if (code == 5'd1) units = 17'd1;
    else if (code[0]) units = 17'd3 << ((code - 5'd3) >> 1);
    else units = 17'd1 << (code >> 1);
    return 64'(units) * 64'd2500;
  endfunction

  // IBA volume 1, 9.7.6.1.3: T = 1024 * 2**timeout cycles at least, 4 T at most, since the packet was sent. The timer starts when it is
  // decided to send (again): the way to the wire, with a WQE and payload to read, has 2 T but no more than 32768 cycles.
  function automatic logic [63:0] ack_cycles(input logic [4:0] timeout);
    logic [63:0] t;
    t = 64'd1024 << timeout;
    return t + (timeout < 5'd4 ? t << 1 : 64'd32768);
  endfunction

  logic [QPN_W:0] init_reg;
  logic timer_init;
  assign init_done = init_reg[QPN_W] && timer_init;
  always_ff @(posedge clk) begin
    if (rst) init_reg <= '0;
    else if (!init_reg[QPN_W]) init_reg <= init_reg + 1'b1;
  end

  // ---- state, tails, entries ------------------------------------------------------------------------------
  e_e e_reg;
  logic aq_reg;                    // the control message's read is done: it is applied in this cycle
  logic rd_en, st_we, tail_we, sent_take, ent_we, ent_rd, placed_we;
  logic [QPN_W-1:0] rd_qpn, st_wqpn, tail_wqpn, cur_reg, placed_wqpn;
  st_t rd_st, st_wdata, w_reg, bk;
  /* verilator lint_off UNUSEDSIGNAL */  // signs of differences, an index in the table
  logic [23:0] s1_ahead, ent_ahead, una_behind, una_over, last_ahead, diff;
  logic [15:0] ent_idx, s1_back, s1_off, s1_span;
  tail_t s1_tail;
  /* verilator lint_on UNUSEDSIGNAL */
  copy_t s1_copy;
  tail_t rd_tail, tail_wdata;
  logic [15:0] tail_reg;
  ent_t ent;
  placed_t rd_placed, r1_placed, placed_wdata, placed_reg;

  urdma_ram_sdp #(.WIDTH($bits(st_t)), .DEPTH(1 << QPN_W)) u_st (
    .clk(clk), .wr_en(st_we), .wr_addr(st_wqpn), .wr_data(st_wdata),
    .rd_en(rd_en), .rd_addr(rd_qpn), .rd_data(rd_st)
  );

  // A copy for the messages that come in: is there something to do for them at once?
  urdma_ram_sdp #(.WIDTH($bits(copy_t)), .DEPTH(1 << QPN_W)) u_copy (
    .clk(clk), .wr_en(st_we), .wr_addr(st_wqpn),
    .wr_data({st_wdata.err, st_wdata.watch, st_wdata.una, st_wdata.head}),
    .rd_en(sent_take), .rd_addr(sent.qpn), .rd_data(s1_copy)
  );

  urdma_ram_sdp #(.WIDTH($bits(tail_t)), .DEPTH(1 << QPN_W)) u_tail (
    .clk(clk), .wr_en(tail_we), .wr_addr(tail_wqpn), .wr_data(tail_wdata),
    .rd_en(rd_en), .rd_addr(rd_qpn), .rd_data(rd_tail)
  );

  urdma_ram_sdp #(.WIDTH($bits(tail_t)), .DEPTH(1 << QPN_W)) u_tail2 (
    .clk(clk), .wr_en(tail_we), .wr_addr(tail_wqpn), .wr_data(tail_wdata),
    .rd_en(sent_take), .rd_addr(sent.qpn), .rd_data(s1_tail)
  );

  sent_t s1_reg;
  urdma_ram_sdp #(.WIDTH($bits(ent_t)), .DEPTH(1 << (QPN_W + INFL_W))) u_ent (
    .clk(clk),
    .wr_en(ent_we), .wr_addr({s1_reg.qpn, s1_reg.wqe[INFL_W-1:0]}),
    .wr_data({s1_reg.psn, s1_reg.opcode, s1_reg.signaled, s1_reg.status, s1_reg.len}),
    .rd_en(ent_rd), .rd_addr({cur_reg, ent_idx[INFL_W-1:0]}), .rd_data(ent)
  );

  urdma_ram_sdp #(.WIDTH($bits(placed_t)), .DEPTH(1 << QPN_W)) u_placed (
    .clk(clk), .wr_en(placed_we), .wr_addr(placed_wqpn), .wr_data(placed_wdata),
    .rd_en(rd_en), .rd_addr(rd_qpn), .rd_data(rd_placed)
  );

  logic r0_take;
  urdma_ram_sdp #(.WIDTH($bits(placed_t)), .DEPTH(1 << QPN_W)) u_placed2 (
    .clk(clk), .wr_en(placed_we), .wr_addr(placed_wqpn), .wr_data(placed_wdata),
    .rd_en(r0_take), .rd_addr(rdone.qpn), .rd_data(r1_placed)
  );

  // ---- kicks: a queue with each QP at most once. queued = set differs from cleared; each array has one writer.
  logic q_set [1 << QPN_W];
  logic q_clr [1 << QPN_W];
  logic push_aq, push_r, push_s, push_t, push, push_new, kick_pop, r1_fire;
  logic [QPN_W-1:0] push_qpn, kick_out, r1_qpn_reg, exp_qpn;
  logic [QPN_W:0] kick_count;
  logic exp_valid, exp_ready;

  assign push = push_aq || push_r || push_s || push_t;
  assign push_qpn = push_aq ? aqc.qpn : push_r ? r1_qpn_reg : push_s ? s1_reg.qpn : exp_qpn;
  // A QP that leaves the queue in this very cycle still counts as queued: its turn is yet to come.
  assign push_new = push && q_set[push_qpn] == q_clr[push_qpn];
  assign kick_pop = kick_valid && kick_ready;
  assign kick_qpn = kick_out;

  always_ff @(posedge clk) begin
    if (!init_done) q_set[init_reg[QPN_W-1:0]] <= 1'b0;
    else if (push_new) q_set[push_qpn] <= !q_set[push_qpn];
  end
  always_ff @(posedge clk) begin
    if (!init_done) q_clr[init_reg[QPN_W-1:0]] <= 1'b0;
    else if (kick_pop) q_clr[kick_out] <= !q_clr[kick_out];
  end

  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(1 << QPN_W), .OUT_REG(1)) u_kick (
    .clk(clk), .rst(rst),
    .in_valid(push_new), .in_ready(), .in_data(push_qpn),
    .out_valid(kick_valid), .out_ready(kick_ready), .out_data(kick_out), .count(kick_count)
  );

  // ---- timers -------------------------------------------------------------------------------------------
  logic set_valid, set_arm, timer_busy;
  logic [QPN_W-1:0] set_qpn;

  urdma_rx_timer u_timer (
    .clk(clk), .rst(rst), .init_done(timer_init), .busy(timer_busy), .cycles(cycles),
    .set_valid(set_valid), .set_qpn(set_qpn), .set_arm(set_arm), .set_deadline(bk.deadline),
    .exp_valid(exp_valid), .exp_qpn(exp_qpn), .exp_ready(exp_ready),
    .armed(timer_armed), .wait_cycles(timer_cycles)
  );

  assign exp_ready = init_done && !push_aq && !push_r && !push_s;
  assign push_t = exp_valid && exp_ready;

  // ---- messages from tx: written in the second cycle, when it is known if there is an entry to change -----------
  logic e_start, s1_valid_reg, s1_new_reg, s1_race_reg, s1_kick_reg, s1_kick;

  // not while a reset writes the tail, and not while the one before waits to kick
  assign sent_ready = init_done && !(push_s && (push_aq || push_r)) && !(aqc_valid && aqc.op == QPC_RESET);
  assign sent_take = sent_valid && sent_ready;
  assign s1_ahead = s1_reg.psn - s1_copy.una;
  assign s1_back = s1_tail.idx - s1_reg.wqe;
  assign s1_off = s1_reg.wqe - s1_copy.head;
  assign s1_span = s1_tail.idx - s1_copy.head;
  // An entry to change lies within [head, tail). head may have moved on since: then the entry is dead, but not yet
  // another message's, if the tail is no more than a ring ahead of it.
  assign ent_we = s1_new_reg && (!s1_reg.resent
      || (s1_off < s1_span && s1_back != '0 && s1_back <= 16'(1 << INFL_W)));
  // A turn that runs for this QP may have read the tail before, and may be about to change what the copy says.
  assign s1_kick = s1_reg.status != '0 || s1_race_reg || (e_start && in.qpn == s1_reg.qpn)
      || (e_reg != E_IDLE && cur_reg == s1_reg.qpn) || s1_copy.err || s1_ahead[23] || !s1_copy.watch;
  assign push_s = s1_valid_reg && (s1_new_reg ? s1_kick : s1_kick_reg);

  always_ff @(posedge clk) begin
    if (sent_take) begin
      s1_reg <= sent;
      s1_race_reg <= e_reg != E_IDLE && cur_reg == sent.qpn;
    end
    if (s1_new_reg) s1_kick_reg <= s1_kick;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      s1_valid_reg <= 1'b0;
      s1_new_reg <= 1'b0;
    end else begin
      s1_new_reg <= sent_take;
      if (sent_take) s1_valid_reg <= 1'b1;
      else if (!(push_s && (push_aq || push_r))) s1_valid_reg <= 1'b0;
    end
  end

  // ---- from placement: count and kick, in two cycles ------------------------------------------------------
  logic r1_valid_reg, placed_clr;
  logic [7:0] r1_status_reg;

  assign placed_clr = aqc_ready && (aqc.op == QPC_RESET || aqc.op == QPC_SQ_PSN);
  assign rdone_ready = init_done && !r1_valid_reg;
  assign r0_take = rdone_valid && rdone_ready;
  assign r1_fire = r1_valid_reg && !placed_clr && !push_aq;
  assign push_r = r1_fire;

  always_comb begin
    placed_we = !init_done || placed_clr || r1_fire;
    placed_wqpn = !init_done ? init_reg[QPN_W-1:0] : placed_clr ? aqc.qpn : r1_qpn_reg;
    placed_wdata = r1_placed;
    if (r1_placed.status == '0) begin
      if (r1_status_reg == '0) placed_wdata.cnt = r1_placed.cnt + 8'd1;
      else placed_wdata.status = r1_status_reg;
    end
    if (!init_done || placed_clr) placed_wdata = '0;
  end

  always_ff @(posedge clk) begin
    if (r0_take) begin
      r1_qpn_reg <= rdone.qpn;
      r1_status_reg <= rdone.status;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) r1_valid_reg <= 1'b0;
    else if (r0_take) r1_valid_reg <= !(placed_clr && aqc.qpn == rdone.qpn);
    else if (r1_fire || (placed_clr && aqc.qpn == r1_qpn_reg)) r1_valid_reg <= 1'b0;
  end

  // ---- control -------------------------------------------------------------------------------------------
  // For the QP whose turn runs, the message changes the turn's own copy, at once; else it reads and writes the memory,
  // in two cycles in which no turn begins and none ends.
  logic e_hold, back_fire, aq_cur, aq_read;
  st_t aq_out;
  logic [23:0] aq_una;
  logic [15:0] aq_head;

  assign e_hold = e_reg == E_WALK || e_reg == E_BACK;
  assign aq_cur = aqc_valid && !aq_reg && init_done && e_hold && cur_reg == aqc.qpn && !back_fire
      && !(s1_new_reg && aqc.op == QPC_RESET);
  assign aq_read = aqc_valid && !aq_reg && init_done && (e_reg == E_IDLE || (e_hold && cur_reg != aqc.qpn && !back_fire));
  assign aqc_ready = aq_cur || aq_reg;
  assign aq_una = aq_reg ? rd_st.una : w_reg.una;
  assign aq_head = aq_reg ? rd_st.head : w_reg.head;
  assign aqc_rsp = '{psn: aq_una, pi: aq_reg ? rd_tail.idx : tail_reg, ci: aq_head, draining: 1'b0};
  assign push_aq = aqc_ready && aqc.op == QPC_ERR;

  // applied to the memory's word or to the turn's
  function automatic st_t control(input st_t s, input qpc_op_e op, input logic [23:0] psn);
    control = s;
    case (op)
      QPC_RESET: control = '0;
      QPC_SQ_PSN: begin
        control.active = 1'b1;
        control.una = psn;
        control.first = psn;
        control.ack_first = psn;
        control.rd_done = '0;
      end
      QPC_ERR: control.err = 1'b1;
      default: ;
    endcase
  endfunction

  always_comb begin
    aq_out = control(rd_st, aqc.op, aqc.psn);
    if (aqc.op == QPC_ERR) aq_out.tk = T_NONE;
  end

  always_ff @(posedge clk) begin
    if (rst) aq_reg <= 1'b0;
    else aq_reg <= aq_read;
  end

  // ---- a turn: what the item says ---------------------------------------------------------------------------
  /* verilator lint_off UNUSEDSIGNAL */  // the responder's fields
  found_t it_reg;
  /* verilator lint_on UNUSEDSIGNAL */
  logic it_pkt, it_resp, load_ok, kind_ack, kind_nak, kind_rnr, kind_bad, fence_take;
  logic m_ack_reg, m_nak_reg, m_rnr_reg, m_resp_reg, m_exp_reg;   // it counts: ACK, NAK, ...; the timer has expired
  logic in_range, resp_range;
  logic [23:0] goal_reg;
  logic acked_valid_reg, cqe_valid_reg, err_valid_reg, rr_valid_reg;
  acked_t acked_reg;
  cqe_req_t cqe_reg;
  qp_err_t err_reg;
  rr_t rr_reg, rr_next_reg;

  assign fence_take = in_valid && in.kind == IT_FENCE && e_reg == E_IDLE && !acked_valid_reg && !cqe_valid_reg
      && !err_valid_reg && !rr_valid_reg && !aqc_valid;
  assign fence_out = fence_take;
  assign e_start = in_valid && in.kind != IT_FENCE && e_reg == E_IDLE && !aqc_valid && !aq_reg && init_done;
  assign in_ready = e_start || fence_take;
  assign rd_en = e_start || aq_read;
  assign rd_qpn = aq_read ? aqc.qpn : in.qpn;

  // it_reg.ext as it lies on the wire: syndrome, then the MSN
  assign diff = it_reg.psn - rd_st.una;
  assign it_pkt = it_reg.kind == IT_PKT;
  assign it_resp = it_pkt && (it_reg.opcode == BTH_READ_RSP_FIRST || it_reg.opcode == BTH_READ_RSP_MIDDLE
      || it_reg.opcode == BTH_READ_RSP_LAST || it_reg.opcode == BTH_READ_RSP_ONLY || it_reg.opcode == BTH_ATOMIC_ACK);
  assign kind_ack = it_reg.opcode == BTH_ACK && it_reg.ext[7:5] == 3'b000;
  assign kind_rnr = it_reg.opcode == BTH_ACK && it_reg.ext[7:5] == 3'b001;
  assign kind_bad = it_reg.ext[7:5] != 3'b000 && it_reg.ext[7:5] != 3'b001 && it_reg.ext[7:5] != 3'b011;
  assign kind_nak = it_reg.opcode == BTH_ACK && (it_reg.ext[7:5] == 3'b011 || kind_bad);
  // No more than the PSN window of tx is outstanding. How much less is not known here: a message whose last packet is
  // not made is not in the table. A READ is, before its packet goes.
  assign in_range = diff[23:22] == '0;
  assign last_ahead = rd_tail.psn - it_reg.psn;
  assign resp_range = in_range && !last_ahead[23] && rd_st.ack != rd_tail.idx;
  assign load_ok = it_pkt && it_reg.pass && rd_st.active && !rd_st.err;

  // ---- the entry the walk looks at ---------------------------------------------------------------------------
  logic blk_reg;                   // head waits for placement, the walk goes on from ack
  logic decided_reg, changed_reg, qerr_reg, hold_reg, wait_reg, rearm_reg, hit_reg, was_armed_reg;
  logic at_ack, none, is_rd, rd_good, rd_bad, passed, c_done, c_block, a_pass, ent_cqe, step_ready, step, stop;
  logic [7:0] c_status;
  logic [15:0] next_idx;
  logic [255:0] cqe_word;

  assign at_ack = blk_reg || w_reg.head == w_reg.ack;
  assign none = at_ack && w_reg.ack == tail_reg;
  assign is_rd = ent.opcode == 8'(URDMA_WR_READ) || ent.opcode == 8'(URDMA_WR_ATOMIC_CS)
      || ent.opcode == 8'(URDMA_WR_ATOMIC_FA);
  assign rd_good = placed_reg.cnt != w_reg.rd_done;
  assign rd_bad = !rd_good && placed_reg.status != '0;
  assign ent_ahead = ent.psn - goal_reg;
  assign passed = ent.status == '0 && !is_rd && ent_ahead[23] && !w_reg.dead;

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
        c_status = placed_reg.status;
        c_done = rd_bad;
        c_block = !rd_bad;
      end
    end else if (!none) begin
      a_pass = passed;
      if (!blk_reg) begin
        c_done = 1'b1;
        if (passed) c_status = '0;
        else if (w_reg.nak != '0) c_status = w_reg.nak;
        else if (is_rd && rd_bad && ent.status == '0 && !w_reg.dead) c_status = placed_reg.status;
        else if (w_reg.err) c_status = 8'(URDMA_WC_FLUSH_ERR);
        else if (ent.status != '0) c_status = ent.status;
        else c_done = 1'b0;
        a_pass = c_done;
      end
    end
  end

  assign ent_cqe = c_done && (c_status != '0 || ent.signaled);
  assign step_ready = !ent_cqe || !cqe_valid_reg || cqe_ready;
  assign step = e_reg == E_WALK && (c_done || a_pass || c_block) && step_ready;
  assign stop = e_reg == E_WALK && !(c_done || a_pass || c_block);
  assign next_idx = c_block ? w_reg.ack : at_ack ? w_reg.ack + 16'd1 : w_reg.head + 16'd1;

  // ---- the decision where the walk ends ----------------------------------------------------------------------
  logic rd_stop, miss, retry_want, fail, moved, r_fit, r_last, r_take, out_left, set_rnr, again;
  logic cnt_gap, cnt_tmo, cnt_retry, cnt_rnr;
  logic [7:0] fail_status, nak_status;
  logic [23:0] una_next, r_ahead;
  logic [31:0] r_off, r_rest, mtu_bytes;
  logic [3:0] mtu_shift;
  st_t d;

  // una as far as the walk has come. Behind a READ it can only be through an acknowledgement of what was never sent.
  assign una_behind = w_reg.una - w_reg.ack_first;
  assign una_over = ent.psn - w_reg.una;
  assign rd_stop = !none && is_rd && ent.status == '0;
  assign una_next = rd_stop ? ((una_behind[23] || una_over[23]) ? w_reg.ack_first : w_reg.una)
      : it_resp ? (una_behind[23] ? w_reg.ack_first : w_reg.una) : goal_reg;
  assign moved = una_next != w_reg.una;
  assign miss = rd_stop && goal_reg != una_next;
  assign out_left = w_reg.ack != tail_reg;

  // a response that is for una: does it fit the READ?
  assign mtu_shift = 4'd7 + 4'(it_reg.mtu);
  assign mtu_bytes = 32'd1 << mtu_shift;
  assign r_ahead = it_reg.psn - w_reg.ack_first;
  assign r_off = 32'(r_ahead) << mtu_shift;
  assign r_rest = ent.len - r_off;
  assign r_last = it_reg.psn == ent.psn;
  always_comb begin
    again = w_reg.restart;
    case (it_reg.opcode)
      BTH_READ_RSP_FIRST: r_fit = !r_last && (r_ahead == '0 || again);
      BTH_READ_RSP_MIDDLE: r_fit = !r_last && r_ahead != '0;
      BTH_READ_RSP_LAST: r_fit = r_last && r_ahead != '0;
      BTH_READ_RSP_ONLY: r_fit = r_last && (r_ahead == '0 || again);
      default: r_fit = 1'b0;
    endcase
    if (32'(it_reg.len) != (r_last ? r_rest : mtu_bytes)) r_fit = 1'b0;
    if (ent.opcode != 8'(URDMA_WR_READ)) r_fit = it_reg.opcode == BTH_ATOMIC_ACK && r_last && it_reg.len == '0;
    // all but the MIDDLE have an AETH
    if (it_reg.opcode != BTH_READ_RSP_MIDDLE && it_reg.ext[7:5] != 3'b000) r_fit = 1'b0;
  end

  always_comb begin
    case (it_reg.ext[4:0])
      5'd1: nak_status = 8'(URDMA_WC_REM_INV_REQ_ERR);
      5'd2: nak_status = 8'(URDMA_WC_REM_ACCESS_ERR);
      5'd3: nak_status = 8'(URDMA_WC_REM_OP_ERR);
      default: nak_status = 8'(URDMA_WC_BAD_RESP_ERR);
    endcase
    if (kind_bad) nak_status = 8'(URDMA_WC_BAD_RESP_ERR);
  end

  always_comb begin
    d = w_reg;
    d.una = una_next;
    if (moved) begin
      d.retries = '0;
      d.rnrs = '0;
      d.gap = 1'b0;
    end
    retry_want = 1'b0;
    fail = 1'b0;
    fail_status = nak_status;
    r_take = 1'b0;
    set_rnr = 1'b0;
    {cnt_gap, cnt_tmo, cnt_retry, cnt_rnr} = '0;
    if (m_ack_reg) retry_want = miss;
    if (m_nak_reg) begin
      if (miss || (it_reg.ext[4:0] == '0 && !kind_bad)) retry_want = 1'b1;
      else fail = 1'b1;
    end
    if (m_resp_reg && rd_stop) begin
      retry_want = miss;
      r_take = !miss && r_fit;
      if (!miss && !r_fit) begin
        fail = 1'b1;
        fail_status = 8'(URDMA_WC_BAD_RESP_ERR);
      end
    end
    if (m_rnr_reg) begin
      if (w_reg.tk == T_RNR && !moved) begin
        set_rnr = 1'b1;
      end else if (it_reg.rnr_retry != 3'd7 && d.rnrs == it_reg.rnr_retry) begin
        fail = 1'b1;
        fail_status = 8'(URDMA_WC_RNR_RETRY_EXC_ERR);
        cnt_rnr = 1'b1;
      end else begin
        if (it_reg.rnr_retry != 3'd7) d.rnrs = d.rnrs + 3'd1;
        set_rnr = 1'b1;
        d.want = 1'b0;             // comes with the timer's end
      end
    end
    if (m_exp_reg && w_reg.tk == T_RNR) begin
      d.tk = T_NONE;
      d.want = 1'b1;
      d.gap = 1'b0;
    end
    if (m_exp_reg && w_reg.tk == T_ACK && out_left && !w_reg.want) begin
      retry_want = 1'b1;
      d.gap = 1'b0;
      cnt_tmo = 1'b1;
    end
    if (retry_want && w_reg.tk != T_RNR && !d.gap) begin
      cnt_gap = miss && !cnt_tmo;
      if (d.retries == it_reg.retry) begin
        fail = 1'b1;
        fail_status = 8'(URDMA_WC_RETRY_EXC_ERR);
        cnt_retry = 1'b1;
      end else begin
        d.retries = d.retries + 3'd1;
        d.gap = !cnt_tmo;
        d.want = 1'b1;
      end
    end
    if (r_take) begin
      d.una = it_reg.psn + 24'd1;
      d.retries = '0;
      d.rnrs = '0;
      d.gap = 1'b0;
      if (r_last) begin
        d.ack = w_reg.ack + 16'd1;
        d.ack_first = d.una;
      end
    end
    if (fail) begin
      d.nak = fail_status;
      d.err = 1'b1;
    end
  end

  logic decide, walk_on;
  assign decide = stop && !decided_reg && !w_reg.err;
  assign walk_on = decide && ((r_take && r_last) || fail);
  assign ent_rd = e_reg == E_LOAD || step || walk_on;
  assign ent_idx = (e_reg == E_LOAD) ? rd_st.head : (walk_on && !fail) ? next_idx : walk_on ? w_reg.ack : next_idx;

  // ---- the end of a turn: timer, messages ---------------------------------------------------------------------
  logic emit_retry, emit, arm;
  logic [63:0] rnr_end;

  assign emit_retry = it_reg.pass && w_reg.want && w_reg.head == w_reg.ack && w_reg.active && !w_reg.err && w_reg.tk != T_RNR
      && !wait_reg;
  assign emit = changed_reg || hold_reg || emit_retry;
  assign rnr_end = cycles + rnr_cycles(it_reg.ext[4:0]);

  always_comb begin
    bk = w_reg;
    arm = 1'b0;
    if (emit_retry) begin
      bk.want = 1'b0;
      bk.restart = 1'b1;
    end
    if (w_reg.err || !w_reg.active) begin
      bk.tk = T_NONE;
      bk.watch = 1'b0;
    end else if (!it_reg.pass) begin
      // another's packet: nothing is changed
    end else if (wait_reg) begin
      bk.watch = 1'b1;
      bk.tk = T_RNR;
      if (w_reg.tk != T_RNR || rnr_end > w_reg.deadline) bk.deadline = rnr_end;
      arm = 1'b1;
    end else if (w_reg.tk == T_RNR) begin
      bk.watch = 1'b1;
    end else if (out_left) begin
      bk.watch = 1'b1;
      bk.tk = (it_reg.timeout == '0) ? T_NONE : T_ACK;
      if (it_reg.timeout != '0 && (w_reg.tk == T_NONE || rearm_reg || emit_retry)) begin
        bk.deadline = cycles + ack_cycles(it_reg.timeout);
        arm = 1'b1;
      end
    end else begin
      bk.tk = T_NONE;
      bk.watch = 1'b0;
      bk.restart = 1'b0;
    end
  end

  assign back_fire = e_reg == E_BACK && !aq_reg && (!emit || !acked_valid_reg || acked_ready)
      && (!qerr_reg || !err_valid_reg || err_ready) && (!it_resp || !rr_valid_reg || rr_ready);

  always_comb begin
    set_valid = init_done && ((back_fire && (arm || (was_armed_reg && bk.tk == T_NONE)))
        || (aq_reg && (aqc.op == QPC_RESET || aqc.op == QPC_ERR)));
    set_arm = back_fire && arm;
    set_qpn = aq_reg ? aqc.qpn : cur_reg;
    st_we = !init_done || back_fire || (aq_reg && aqc.op != QPC_QUERY);
    st_wqpn = !init_done ? init_reg[QPN_W-1:0] : aq_reg ? aqc.qpn : cur_reg;
    st_wdata = !init_done ? '0 : aq_reg ? aq_out : bk;
    tail_we = !init_done || (s1_new_reg && !s1_reg.resent) || (aqc_ready && aqc.op == QPC_RESET);
    tail_wqpn = !init_done ? init_reg[QPN_W-1:0] : s1_new_reg ? s1_reg.qpn : aqc.qpn;
    tail_wdata = (init_done && s1_new_reg) ? '{idx: s1_reg.wqe + 16'd1, psn: s1_reg.psn} : '0;
  end

  always_comb begin
    cqe_word = '0;
    cqe_word[URDMA_CQE0_OPCODE_LSB+:8] = ent.opcode;
    cqe_word[URDMA_CQE0_STATUS_LSB+:8] = c_status;
    cqe_word[URDMA_CQE0_WQE_LSB+:16] = w_reg.head;
    cqe_word[URDMA_CQE1_LENGTH_LSB+:32] = ent.len;
    cqe_word[URDMA_CQE1_QPN_LSB+:24] = 24'(cur_reg);
  end

  always_ff @(posedge clk) begin
    if (e_start) begin
      it_reg <= in;
      cur_reg <= in.qpn;
    end
    if (e_reg == E_LOAD) begin
      w_reg <= rd_st;
      tail_reg <= rd_tail.idx;
      placed_reg <= rd_placed;
      blk_reg <= 1'b0;
      decided_reg <= 1'b0;
      changed_reg <= 1'b0;
      qerr_reg <= 1'b0;
      hold_reg <= 1'b0;
      wait_reg <= 1'b0;
      rearm_reg <= 1'b0;
      rr_next_reg <= '0;
      was_armed_reg <= rd_st.tk != T_NONE;
      m_ack_reg <= load_ok && kind_ack && in_range;
      m_nak_reg <= load_ok && kind_nak && in_range;
      m_rnr_reg <= load_ok && kind_rnr && in_range;
      m_resp_reg <= load_ok && it_resp && resp_range;
      hit_reg <= load_ok && (kind_ack || kind_nak || kind_rnr) && in_range;
      m_exp_reg <= it_reg.kind == IT_KICK && it_reg.pass && rd_st.active && !rd_st.err && rd_st.tk != T_NONE
          && cycles >= rd_st.deadline;
      goal_reg <= rd_st.una;
      if (load_ok && in_range) begin
        if (kind_ack) goal_reg <= it_reg.psn + 24'd1;
        else if (kind_nak || kind_rnr || (it_resp && resp_range)) goal_reg <= it_reg.psn;
      end
    end
    if (step) begin
      if (c_block) blk_reg <= 1'b1;
      if (c_done) begin
        w_reg.head <= w_reg.head + 16'd1;
        w_reg.first <= ent.psn + 24'd1;
        if (is_rd) w_reg.rd_done <= w_reg.rd_done + 8'd1;
        changed_reg <= 1'b1;
        if (c_status != '0) begin
          w_reg.nak <= '0;
          w_reg.dead <= 1'b1;
          if (!w_reg.err && c_status != 8'(URDMA_WC_FLUSH_ERR)) begin
            w_reg.err <= 1'b1;
            qerr_reg <= 1'b1;
          end
        end
      end
      if (a_pass) begin
        w_reg.ack <= w_reg.ack + 16'd1;
        w_reg.ack_first <= ent.psn + 24'd1;
      end
    end
    if (stop) decided_reg <= 1'b1;
    if (decide) begin
      w_reg <= d;
      if (moved || r_take) changed_reg <= 1'b1;
      rearm_reg <= moved || r_take || (m_exp_reg && w_reg.tk == T_ACK);
      wait_reg <= set_rnr;
      hold_reg <= set_rnr && !(w_reg.tk == T_RNR && !moved);
      if (fail) qerr_reg <= 1'b1;
      if (r_take) begin
        rr_next_reg <= '{take: 1'b1, last: r_last, wqe: w_reg.ack,
                         off: (ent.opcode == 8'(URDMA_WR_READ)) ? r_off : 32'd0};
        hit_reg <= 1'b1;
        goal_reg <= it_reg.psn + 24'd1;
        if (r_last) blk_reg <= 1'b1;
      end
    end
    if (aq_cur) begin
      case (aqc.op)
        QPC_RESET: begin
          w_reg <= '0;
          tail_reg <= '0;
          placed_reg <= '0;
          blk_reg <= 1'b0;
          decided_reg <= 1'b1;
          changed_reg <= 1'b0;
          qerr_reg <= 1'b0;
          hold_reg <= 1'b0;
          wait_reg <= 1'b0;
          rr_next_reg <= '0;
        end
        QPC_SQ_PSN: begin
          w_reg <= control(w_reg, aqc.op, aqc.psn);
          placed_reg <= '0;
          goal_reg <= aqc.psn;
          decided_reg <= 1'b1;
        end
        QPC_ERR: w_reg.err <= 1'b1;
        default: ;
      endcase
    end
    if (step && ent_cqe) begin
      cqe_reg.cqn <= it_reg.cqn;
      cqe_reg.solicited <= 1'b0;
      cqe_reg.cqe <= cqe_word;
    end
    if (back_fire && emit) begin
      acked_reg <= '{kind: (hold_reg && !w_reg.err) ? AK_HOLD : emit_retry ? AK_RETRY : AK_PROGRESS, qpn: cur_reg,
                     wqe_done: w_reg.head, first_psn: w_reg.first,
                     // in the message of wqe_done always: tx may begin anew at any acked_t
                     una_psn: (w_reg.head == w_reg.ack) ? w_reg.una : w_reg.first, rd_done: w_reg.rd_done};
    end
    // an error of the send queue is told by its CQEs, not by an event
    if (back_fire && qerr_reg) err_reg <= '{qpn: cur_reg, only_event: 1'b0, event_type: 8'd0};
    if (back_fire && it_resp) rr_reg <= rr_next_reg;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      e_reg <= E_IDLE;
      acked_valid_reg <= 1'b0;
      cqe_valid_reg <= 1'b0;
      err_valid_reg <= 1'b0;
      rr_valid_reg <= 1'b0;
    end else begin
      case (e_reg)
        E_IDLE: if (e_start) e_reg <= E_LOAD;
        E_LOAD: e_reg <= it_reg.pass ? E_WALK : E_BACK;
        E_WALK: if (stop && !walk_on) e_reg <= E_BACK;
        default: if (back_fire) e_reg <= E_IDLE;
      endcase
      if (step && ent_cqe) cqe_valid_reg <= 1'b1;
      else if (cqe_ready) cqe_valid_reg <= 1'b0;
      if (back_fire && emit) acked_valid_reg <= 1'b1;
      else if (acked_ready) acked_valid_reg <= 1'b0;
      if (back_fire && qerr_reg) err_valid_reg <= 1'b1;
      else if (err_ready) err_valid_reg <= 1'b0;
      if (back_fire && it_resp) rr_valid_reg <= 1'b1;
      else if (rr_ready) rr_valid_reg <= 1'b0;
    end
  end

  assign acked_valid = acked_valid_reg;
  assign acked = acked_reg;
  assign cqe_valid = cqe_valid_reg;
  assign cqe = cqe_reg;
  assign err_valid = err_valid_reg;
  assign err = err_reg;
  assign rr_valid = rr_valid_reg;
  assign rr = rr_reg;

  assign ack_valid = back_fire && it_pkt && hit_reg;
  assign drop_valid = back_fire && it_pkt && !hit_reg;
  assign ack_qpn = cur_reg;
  assign ack_psn = it_reg.psn;
  assign ack_syndrome = (it_reg.opcode == BTH_READ_RSP_MIDDLE) ? SYN_ACK : it_reg.ext[7:0];

  always_ff @(posedge clk) begin
    cnt <= '0;
    if (!rst && e_reg == E_LOAD && it_pkt) begin
      cnt[URDMA_CNT_RX_NO_QP] <= !it_reg.pass;
      cnt[URDMA_CNT_RX_ACK] <= it_reg.pass && kind_ack;
      cnt[URDMA_CNT_RX_NAK] <= it_reg.pass && kind_nak;
      cnt[URDMA_CNT_RX_NAK_RNR] <= it_reg.pass && kind_rnr;
    end
    if (!rst && decide) begin
      cnt[URDMA_CNT_RX_READ_RSP] <= r_take;
      cnt[URDMA_CNT_RX_READ_GAP] <= cnt_gap;
      cnt[URDMA_CNT_TX_TIMEOUT] <= cnt_tmo;
      cnt[URDMA_CNT_RETRY_EXC] <= cnt_retry;
      cnt[URDMA_CNT_RNR_EXC] <= cnt_rnr;
    end
  end

  assign busy = sent_valid || in_valid || s1_valid_reg || kick_count != '0 || e_reg != E_IDLE || aq_reg
      || acked_valid_reg || cqe_valid_reg || err_valid_reg || rr_valid_reg || rdone_valid || r1_valid_reg
      || timer_busy || !init_done;

endmodule

`resetall
