// SPDX-License-Identifier: Apache-2.0
// Responses to send: READ responses, ATOMIC acknowledgements, ACKs and NAKs.
//
// Each QP has a ring of READs and ATOMICs that wait for their answer, and one acknowledgement. The ring has room for twice
// the maximum number of outstanding requests: a requester that goes back repeats all of them while the first ones still wait,
// and continues with new ones, which must not be lost. A request is one event on the QP's state, so it is taken at once,
// whatever else waits:
//
//  READ, ATOMIC  appended. No room: dropped and counted; the requester will repeat it. Until it does, no request after a
//                dropped new one is answered, because answers keep the order of their requests. A pending ACK or NAK of this
//                PSN or of an earlier one is dropped: the answer implies the same, and an ACK must not go back (a NAK's gap
//                is closed). A repeated request that finds no room is only dropped, although its first copy may have been
//                dropped, too: then a later answer is sent first, and the requester repeats the missing one.
//  ACK, NAK      replaces the pending one, which it covers. A pending NAK stays if an ACK of an earlier PSN comes: that ACK
//                is of a duplicate, and the responder gives only one NAK for a gap.
//  NAK with a fatal code (0x61 and up): replaces any other, and the QP is closed.
//
// A QP with something to send is in the ready queue once. Its turn sends the entries that the ring held at its beginning, at
// most 32 KB (and the packet that exceeds them); then the QP queues up again. The acknowledgement goes in a turn of its own
// when the ring is empty. Several QPs are taken ahead of their turn, which hides the latency of reading their configuration.
//
// Packets go in the order of the turns: those with payload as descriptor and piece into the sender's pipeline. An ACK goes
// directly to header assembly if no packet of this module is in that pipeline, else after those packets.
//
// When commit finds that a READ cannot be answered (rfail), the ring is emptied and the QP's `era` changes, so that commit
// drops packets under way. A NAK replaces everything pending, and the QP is closed.
//
// A closed QP takes no request: later packets may still be in rx, and nothing after the fatal NAK may be acknowledged
// (9.9.3). Requests taken before are answered, then the NAK goes, although the QP is in ERR by then. Without these answers
// the NAK would tell the requester that they are lost, and it would repeat those requests in vain. So a block that ends a QP
// by a NAK must report the error only after the NAK has been taken here. A QP in ERR for another reason answers no more READs
// or ATOMICs. It still acknowledges the packets that it has placed, up to the first request dropped for this reason. rst_*
// opens the QP for its next life; a fence always precedes the reset. Requests of a QP that has been destroyed or reset are
// dropped when their turn comes.

`resetall
`default_nettype none

module urdma_tx_resp
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,
  output      logic             busy,

  input  wire logic             ack_req_valid,
  input  wire ack_req_t         ack_req,
  output      logic             ack_req_ready,

  output      logic             cfg_req_valid,
  output      logic [QPN_W-1:0] cfg_req_qpn,
  input  wire logic             cfg_req_ready,
  input  wire logic             cfg_rsp_valid,
  input  wire qp_cfg_t          cfg_rsp,

  // directly to header assembly
  output      logic             pkt_valid,
  output      pkt_t             pkt,
  input  wire logic             pkt_ready,

  // through the pipeline: descriptor and piece of a packet are given in the same cycle
  output      logic             pd_valid,
  output      pdesc_t           pd,
  input  wire logic             pd_ready,
  output      logic             piece_valid,
  output      piece_t           piece,
  input  wire logic             piece_ready,
  input  wire logic             resp_gone,     // pulse: a descriptor of this module has left commit

  // pulse, always taken, not after the resp_gone of its packet: a packet of this life cannot be sent
  input  wire logic             rfail_valid,
  input  wire logic [QPN_W-1:0] rfail_qpn,
  input  wire logic [ERA_W-1:0] rfail_era,
  input  wire logic [23:0]      rfail_psn,
  input  wire logic [7:0]       rfail_status,  // URDMA_WC_REM_ACCESS_ERR, URDMA_WC_REM_OP_ERR

  // a QP begins a new life (QPC_RESET); waits only for an rfail
  input  wire logic             rst_valid,
  input  wire logic [QPN_W-1:0] rst_qpn,
  output      logic             rst_ready,

  output      logic             err_valid,
  output      qp_err_t          err,
  input  wire logic             err_ready,

  output      logic             cnt_read_drop, // pulse: a READ or ATOMIC found the ring full
  output      logic             trace_ask_valid,
  output      tr_ask_t          trace_ask,

  input  wire logic             fence_start,   // pulse
  // level: answers to requests taken before fence_start have left, and nothing waits of QPs that had ended
  output      logic             fence_hit
);

  localparam int RING_W = RDA_W + 1;     // log2 of READs and ATOMICs that wait for their answer: two generations
  localparam int PEND = 8;               // QPs taken from the queue and not served
  localparam int PEND_W = $clog2(PEND);
  localparam int FLY_W = PKT_W + 2;      // packets between here and commit
  localparam int LATE_W = 21;            // log2 of the bytes of a repeated READ that may come after its key has ended
  localparam logic [7:0] AETH_ACK = 8'h1f;  // ACK, credits not used (IBA volume 1, 9.7.5.2.2)
  localparam logic [7:0] AETH_NAK_ACCESS = 8'h62;
  localparam logic [7:0] AETH_NAK_OP = 8'h63;

  typedef struct packed {
    logic             queued;      // in the queue, or its turn is under way
    logic [RING_W-1:0] head;       // ring
    logic [RING_W:0]  count;
    logic [23:0]      npk;         // packets of the head entry that have been made
    logic [ERA_W-1:0] era;         // life of the responses
    logic             ack;         // an acknowledgement is pending
    logic             fatal;       // it is the NAK after an rfail
    logic             closed;      // it is, or was, a fatal NAK, or a request was dropped in ERR: no more
                                   // requests are taken in this life
    logic             op_err;      // fatal: remote operation error, else remote access
    logic             lost;        // a new request found no room; its PSN:
    logic [23:0]      lost_psn;    // the next one after those that are taken
    logic [23:0]      psn;
    logic [7:0]       syndrome;
    logic [23:0]      msn;         // with no ack: the last one seen
    // fence
    logic             epoch;       // queued: counts in this epoch
    logic             marked;      // the epoch is over, and the QP has not had all its turns since
    logic [1:0]       old_turns;   // turns left
  } state_t;

  typedef struct packed {
    logic             atomic;
    logic             dup;
    logic [23:0]      psn;
    logic [23:0]      msn;
    logic [PD_W-1:0]  pd;          // of the key: the QP's, of XRC the SRQ's
    logic [31:0]      key;
    logic [63:0]      va;          // ATOMIC: original value
    logic [31:0]      len;
  } entry_t;

  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [ERA_W-1:0] era;
    logic             ack;         // else n entries from head on
    logic             fatal;
    logic             op_err;
    logic             closing;     // entries: a fatal NAK waits after them
    logic [23:0]      psn;
    logic [7:0]       syndrome;
    logic [23:0]      msn;
    logic [RING_W-1:0] head;
    logic [RING_W:0]  n;
    logic [23:0]      npk;
  } work_t;

  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    logic [ERA_W-1:0] era;
    logic [RING_W:0]  done;        // entries answered
    logic [23:0]      npk;         // packets of the next one
    logic             cut;         // entries were dropped, the QP is in ERR
  } end_t;

  typedef struct packed {
    logic             ack_ok;      // ACKs and NAKs may be sent
    logic             read_ok;     // READ responses and ATOMIC acknowledgements may be sent
    logic [2:0]       mtu;
    path_t            path;
  } conf_t;

  // AETH: syndrome, MSN with the high byte first
  function automatic logic [31:0] aeth(input logic [7:0] syndrome, input logic [23:0] msn);
    aeth = {msn[7:0], msn[15:8], msn[23:16], syndrome};
  endfunction

  // a equals b or comes after it
  function automatic logic not_before(input logic [23:0] a, input logic [23:0] b);
    not_before = ((a - b) & 24'h80_0000) == '0;
  endfunction

  logic init_done_reg;
  logic [QPN_W-1:0] init_qpn_reg;
  assign init_done = init_done_reg;

  // ---- queue -------------------------------------------------------------------------------------------------
  logic q_push, q_in_ready, q_valid, q_pop;
  logic [QPN_W-1:0] q_qpn, e1_qpn_reg;
  logic [QPN_W:0] q_count;
  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(1 << QPN_W), .OUT_REG(1)) queue (
    .clk, .rst, .in_valid(q_push), .in_ready(q_in_ready), .in_data(e1_qpn_reg),
    .out_valid(q_valid), .out_ready(q_pop), .out_data(q_qpn), .count(q_count)
  );

  // The head requests its configuration, then takes its state as the event POP.
  logic [PEND_W:0] pend_reg;
  logic p_valid, p_pop, p_in_ready;
  logic [QPN_W-1:0] p_qpn;
  logic [PEND_W:0] p_count;
  assign cfg_req_valid = q_valid && (pend_reg < (PEND_W+1)'(PEND)) && init_done_reg;
  assign cfg_req_qpn = q_qpn;
  assign q_pop = cfg_req_valid && cfg_req_ready;
  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(PEND)) pop_fifo (
    .clk, .rst, .in_valid(q_pop), .in_ready(p_in_ready), .in_data(q_qpn),
    .out_valid(p_valid), .out_ready(p_pop), .out_data(p_qpn), .count(p_count)
  );

  // ---- events, one a cycle. E0 reads the state, E1 writes it. -----------------------------------------------------
  typedef enum logic [2:0] {EV_REQ, EV_POP, EV_END, EV_RESET, EV_FAIL} event_e;
  logic e0_valid;
  event_e e0_ev;
  logic [QPN_W-1:0] e0_qpn;
  logic end_in_valid, end_in_ready, end_valid, end_pop;
  end_t end_in, end_out;
  logic [PEND_W:0] end_count;
  logic pop_last_reg;

  urdma_fifo #(.WIDTH($bits(end_t)), .DEPTH(PEND)) end_fifo (
    .clk, .rst, .in_valid(end_in_valid), .in_ready(end_in_ready), .in_data(end_in),
    .out_valid(end_valid), .out_ready(end_pop), .out_data(end_out), .count(end_count)
  );

  // Failures cannot wait. Pops and requests take turns; there are at most as many ends as pops.
  logic first;                 // events with priority over all others
  assign first = rfail_valid || rst_valid;
  assign rst_ready = init_done_reg && !rfail_valid;
  assign end_pop = end_valid && !first;
  assign p_pop = p_valid && !first && !end_valid && !(pop_last_reg && ack_req_valid);
  assign ack_req_ready = init_done_reg && !first && !end_valid && (!p_valid || pop_last_reg);
  assign e0_valid = init_done_reg && (first || end_valid || p_valid || ack_req_valid);
  always_comb begin
    e0_ev = EV_REQ;
    e0_qpn = ack_req.qpn;
    if (rfail_valid) begin
      e0_ev = EV_FAIL;
      e0_qpn = rfail_qpn;
    end else if (rst_valid) begin
      e0_ev = EV_RESET;
      e0_qpn = rst_qpn;
    end else if (end_valid) begin
      e0_ev = EV_END;
      e0_qpn = end_out.qpn;
    end else if (p_pop) begin
      e0_ev = EV_POP;
      e0_qpn = p_qpn;
    end
  end

  logic e1_valid_reg;
  event_e e1_ev_reg;
  ack_req_t e1_req_reg;       // REQ
  end_t e1_end_reg;           // END; FAIL: era
  logic [23:0] e1_fail_psn_reg;
  logic e1_fail_op_reg, e1_epoch_reg;

  state_t st_q, st, nx, byp_reg;
  logic st_wr, byp_valid_reg;
  logic [QPN_W-1:0] byp_qpn_reg;

  urdma_ram_sdp #(.WIDTH($bits(state_t)), .DEPTH(1 << QPN_W)) state_ram (
    .clk,
    .wr_en(!init_done_reg || st_wr), .wr_addr(init_done_reg ? e1_qpn_reg : init_qpn_reg),
    .wr_data(init_done_reg ? nx : '0), .rd_en(e0_valid), .rd_addr(e0_qpn), .rd_data(st_q)
  );
  assign st = (byp_valid_reg && (byp_qpn_reg == e1_qpn_reg)) ? byp_reg : st_q;
  assign st_wr = e1_valid_reg;

  // ---- ring --------------------------------------------------------------------------------------------------------
  logic ring_wr, ring_rd;
  logic [RING_W-1:0] ring_rd_idx;
  entry_t ring_q;
  work_t work;
  urdma_ram_sdp #(.WIDTH($bits(entry_t)), .DEPTH(1 << (QPN_W + RING_W))) ring_ram (
    .clk, .wr_en(ring_wr), .wr_addr({e1_qpn_reg, RING_W'(st.head + st.count[RING_W-1:0])}),
    .wr_data({e1_req_reg.kind == RSP_ATOMIC, e1_req_reg.dup, e1_req_reg.psn, e1_req_reg.msn, e1_req_reg.pd, e1_req_reg.key,
              e1_req_reg.va, e1_req_reg.len}),
    .rd_en(ring_rd), .rd_addr({work.qpn, ring_rd_idx}), .rd_data(ring_q)
  );

  // ---- the event ------------------------------------------------------------------------------------------------------
  logic epoch_reg;             // flips with each fence
  logic fence_on, is_ack, is_end, closing, behind, requeue, ack_now, work_push;
  logic [1:0] enter, leave;    // of an epoch
  work_t work_in;
  assign fence_on = !fence_hit;
  assign is_ack = (e1_req_reg.kind == RSP_ACK);
  // syndrome bits 6:5: 0 ACK, 1 RNR NAK, 3 NAK: code 0 asks for a repetition, the other codes are fatal for the QP (IBA
  // volume 1, 9.7.5.2.1)
  assign is_end = (e1_req_reg.syndrome[6:5] == 2'd3) && (e1_req_reg.syndrome[4:0] != 5'd0);

  assign trace_ask_valid = e1_valid_reg && e1_ev_reg == EV_REQ && !is_ack;
  assign trace_ask = '{qpn: e1_qpn_reg, psn: e1_req_reg.psn,
                      verdict: st.closed ? TRA_ENDED : cnt_read_drop ? TRA_FULL : TRA_TAKEN};

  assign closing = st.closed && st.ack;
  assign behind = st.lost && (e1_req_reg.psn != st.lost_psn) && not_before(e1_req_reg.psn, st.lost_psn) && !(is_ack && is_end);

  always_comb begin
    nx = st;
    requeue = 1'b0;
    ring_wr = 1'b0;
    cnt_read_drop = 1'b0;
    ack_now = 1'b0;
    work_push = 1'b0;
    // the first event of a new epoch marks a QP that belongs to the old one
    if (st.queued && (st.epoch != e1_epoch_reg) && !st.marked) begin
      nx.marked = 1'b1;
      nx.old_turns = 2'd3;
    end
    case (e1_ev_reg)
      EV_REQ: if (!st.closed) begin
        if (is_ack) begin
          if (!behind && (!st.ack || (e1_req_reg.syndrome[6:5] != 2'd0) || not_before(e1_req_reg.psn, st.psn))) begin
            nx.ack = 1'b1;
            nx.closed = is_end;
            nx.psn = e1_req_reg.psn;
            nx.syndrome = e1_req_reg.syndrome;
            nx.msn = e1_req_reg.msn;
          end
          nx.queued = st.queued || nx.ack;
        end else if (st.count[RING_W] || behind) begin
          cnt_read_drop = e1_valid_reg;
          if (!st.lost && !e1_req_reg.dup) nx.lost_psn = e1_req_reg.psn;
          nx.lost = st.lost || !e1_req_reg.dup;
        end else begin
          if (e1_req_reg.psn == st.lost_psn) nx.lost = 1'b0;
          ring_wr = e1_valid_reg;
          nx.count = st.count + 1'b1;
          if (st.ack && not_before(e1_req_reg.psn, st.psn)) nx.ack = 1'b0;
          if (!nx.ack) nx.msn = e1_req_reg.msn;
          nx.queued = 1'b1;
        end
        requeue = nx.queued && !st.queued;
      end
      EV_POP: begin
        work_push = 1'b1;
        if (st.count == '0) begin
          ack_now = st.ack;
          nx.ack = 1'b0;
          nx.fatal = 1'b0;
          nx.queued = 1'b0;
        end
      end
      EV_END: begin
        // a fatal NAK came meanwhile: entries before it go in the next turn
        if (st.era == e1_end_reg.era && !(e1_end_reg.cut && closing)) begin
          nx.head = st.head + e1_end_reg.done[RING_W-1:0];
          nx.count = st.count - e1_end_reg.done;
          nx.npk = e1_end_reg.npk;
        end
        // an ACK would acknowledge the requests that were dropped
        if (e1_end_reg.cut && !st.closed) begin
          nx.closed = 1'b1;
          nx.ack = 1'b0;
        end
        nx.queued = (nx.count != '0) || nx.ack;
        requeue = nx.queued;
        nx.old_turns = nx.old_turns - 2'd1;
      end
      // After the fence nothing of the old life is left; the QP's next turn finds a configuration that forbids old answers.
      EV_RESET: begin
        nx.closed = 1'b0;
        nx.fatal = 1'b0;
        nx.lost = 1'b0;
        nx.ack = 1'b0;
      end
      default: if (st.era == e1_end_reg.era) begin
        nx.era = st.era + 1'b1;
        nx.count = '0;
        nx.npk = '0;
        nx.ack = 1'b1;
        nx.fatal = 1'b1;
        nx.closed = 1'b1;
        nx.op_err = e1_fail_op_reg;
        nx.psn = e1_fail_psn_reg;
        nx.syndrome = e1_fail_op_reg ? AETH_NAK_OP : AETH_NAK_ACCESS;
        nx.queued = 1'b1;
        requeue = !st.queued;
      end
    endcase
    if (!st.queued) nx.epoch = e1_epoch_reg;
    // the failed packet may be from before the fence: the fence waits for the NAK
    if ((e1_ev_reg == EV_FAIL) && (st.era == e1_end_reg.era) && fence_on) begin
      nx.epoch = !epoch_reg;
      nx.marked = 1'b1;
      nx.old_turns = 2'd3;
    end
    if (nx.marked && (nx.old_turns == '0)) begin
      nx.epoch = e1_epoch_reg;
      nx.marked = 1'b0;
    end
    if (!nx.queued) nx.marked = 1'b0;
    enter = '0;
    leave = '0;
    if (e1_valid_reg) begin
      enter[nx.epoch] = nx.queued;
      leave[st.epoch] = st.queued;
    end
  end
  assign q_push = e1_valid_reg && requeue;
  assign work_in = '{qpn: e1_qpn_reg, era: st.era, ack: ack_now, fatal: st.fatal, op_err: st.op_err, closing: closing,
                     psn: st.psn, syndrome: st.syndrome, msn: st.msn, head: st.head, n: st.count, npk: st.npk};

  always_ff @(posedge clk) begin
    if (e0_valid) begin
      e1_ev_reg <= e0_ev;
      e1_qpn_reg <= e0_qpn;
      e1_epoch_reg <= epoch_reg;
      if (e0_ev == EV_REQ) e1_req_reg <= ack_req;
      if (e0_ev == EV_END) e1_end_reg <= end_out;
      if (rfail_valid) begin
        e1_end_reg <= '{qpn: rfail_qpn, era: rfail_era, done: '0, npk: '0, cut: 1'b0};
        e1_fail_psn_reg <= rfail_psn;
        e1_fail_op_reg <= (rfail_status == 8'(URDMA_WC_REM_OP_ERR));
      end
    end
    if (st_wr) begin
      byp_qpn_reg <= e1_qpn_reg;
      byp_reg <= nx;
    end
    if (rst) begin
      e1_valid_reg <= 1'b0;
      byp_valid_reg <= 1'b0;
      pop_last_reg <= 1'b0;
      init_done_reg <= 1'b0;
      init_qpn_reg <= '0;
    end else begin
      e1_valid_reg <= e0_valid;
      byp_valid_reg <= st_wr;
      if (p_pop) pop_last_reg <= 1'b1;
      else if (e0_valid && (e0_ev == EV_REQ)) pop_last_reg <= 1'b0;
      if (!init_done_reg) begin
        init_qpn_reg <= init_qpn_reg + 1'b1;
        init_done_reg <= &init_qpn_reg;
      end
    end
  end

  // ---- work and its configuration ------------------------------------------------------------------------------------
  logic w_valid, w_in_ready, c_valid, c_in_ready, w_pop, start;
  conf_t c, c_in;
  logic [PEND_W:0] w_count, c_count;
  urdma_fifo #(.WIDTH($bits(work_t)), .DEPTH(PEND)) work_fifo (
    .clk, .rst, .in_valid(e1_valid_reg && work_push), .in_ready(w_in_ready), .in_data(work_in),
    .out_valid(w_valid), .out_ready(w_pop), .out_data(work), .count(w_count)
  );
  assign c_in.ack_ok = cfg_rsp.valid && (cfg_rsp.state >= 4'(URDMA_QPS_RTR));
  assign c_in.read_ok = cfg_rsp.valid && (cfg_rsp.state >= 4'(URDMA_QPS_RTR)) && (cfg_rsp.state <= 4'(URDMA_QPS_SQE));
  assign c_in.mtu = cfg_rsp.mtu;
  assign c_in.path = path_of(cfg_rsp);
  urdma_fifo #(.WIDTH($bits(conf_t)), .DEPTH(PEND)) conf_fifo (
    .clk, .rst, .in_valid(cfg_rsp_valid), .in_ready(c_in_ready), .in_data(c_in),
    .out_valid(c_valid), .out_ready(w_pop), .out_data(c), .count(c_count)
  );

  // ---- packets: X0 reads the ring, X1 has the entry in cur, X2 offers the packet ----------------------------------------
  logic x_on_reg;                // a turn of entries is under way
  logic [RING_W:0] x_idx_reg;    // entry that ring_q holds (r_valid_reg) or will hold
  logic r_valid_reg;
  logic cur_valid_reg, cur_first_reg;
  entry_t cur_reg;               // va, len, psn: of the remaining part
  logic [RING_W:0] done_reg;
  logic [23:0] npk_reg;          // packets of cur made
  logic [15:0] bytes_reg;        // of this turn
  logic o_valid_reg, o_piece_reg;
  pdesc_t o_pd_reg;
  piece_t o_piece_data_reg;
  logic [FLY_W-1:0] fly_reg;     // packets handed on that have not left commit
  // Turns that were taken before the latest rfail. An acknowledgement among them may be of the life that has ended: it goes
  // through commit, which can tell.
  logic [PEND_W:0] doubt_reg;
  logic err_valid_reg;
  qp_err_t err_reg;

  logic ready, o_fire, o_free, fast, ack_go, slow_ack, load, emit, cur_last, turn_end, reads_go, no_reads;
  logic [12:0] mtu, plen;
  logic [31:0] skip;
  logic [RING_W:0] done;
  logic [15:0] bytes;

  assign ready = w_valid && c_valid;
  assign o_fire = o_valid_reg && pd_ready && (!o_piece_reg || piece_ready);
  assign o_free = !o_valid_reg || o_fire;
  assign pd_valid = o_valid_reg && (!o_piece_reg || piece_ready);
  assign piece_valid = o_valid_reg && o_piece_reg && pd_ready;
  assign pd = o_pd_reg;
  assign piece = o_piece_data_reg;

  // acknowledgement
  assign fast = (fly_reg == '0) && !o_valid_reg && (doubt_reg == '0);
  assign ack_go = ready && work.ack && c.ack_ok && !(work.fatal && err_valid_reg);
  assign pkt_valid = ack_go && fast;
  assign slow_ack = ack_go && !fast && o_free;
  always_comb begin
    pkt = '0;
    pkt.qpn = work.qpn;
    pkt.opcode = BTH_ACK;
    pkt.psn = work.psn;
    pkt.ext_len = 6'd4;
    pkt.ext[31:0] = aeth(work.syndrome, work.msn);
    pkt.path = c.path;
  end

  // entries
  assign mtu = 13'd128 << c.mtu;  // 1 is 256 bytes
  assign skip = {1'b0, work.npk, 7'd0} << c.mtu;
  assign reads_go = c.read_ok || (work.closing && c.ack_ok);
  assign start = ready && !work.ack && (work.n != '0) && reads_go && !x_on_reg && end_in_ready;
  assign cur_last = cur_reg.atomic || (cur_reg.len <= 32'(mtu));
  assign plen = cur_reg.atomic ? 13'd0 : cur_last ? cur_reg.len[12:0] : mtu;
  assign emit = cur_valid_reg && o_free;
  assign load = r_valid_reg && (!cur_valid_reg || (emit && cur_last));
  assign done = done_reg + (RING_W+1)'(cur_last);
  assign bytes = bytes_reg + 16'(plen);
  assign turn_end = emit && ((done == work.n) || (bytes >= 16'(QUANTUM)));
  assign ring_rd = start || (load && (x_idx_reg + 1'b1 != work.n));
  assign ring_rd_idx = work.head + (start ? '0 : x_idx_reg[RING_W-1:0] + 1'b1);

  // the turn is over: all is sent, or the quantum is used up, or sending is not allowed
  assign no_reads = ready && !work.ack && (work.n != '0) && !reads_go && end_in_ready;
  assign end_in_valid = turn_end || no_reads;
  assign end_in = '{qpn: work.qpn, era: work.era, done: no_reads ? work.n : done,
                    npk: (no_reads || cur_last) ? 24'd0 : npk_reg + 1'b1, cut: no_reads && c.ack_ok};
  always_comb begin
    if (work.ack) w_pop = ready && (!c.ack_ok || (pkt_valid && pkt_ready) || slow_ack);
    else w_pop = ready && ((work.n == '0) || no_reads || turn_end);
  end

  pdesc_t o_pd;
  always_comb begin
    o_pd = '0;
    o_pd.resp = 1'b1;
    o_pd.qpn = work.qpn;
    o_pd.era = work.era;
    o_pd.path = c.path;
    if (work.ack) begin
      o_pd.opcode = BTH_ACK;
      o_pd.psn = work.psn;
      o_pd.ext_len = 6'd4;
      o_pd.ext[31:0] = aeth(work.syndrome, work.msn);
    end else begin
      o_pd.psn = cur_reg.psn;
      o_pd.plen = plen;
      // commit drops the packets of a repeated READ one by one: only a few thousand
      o_pd.again = cur_reg.dup && cur_reg.len[31:LATE_W] == '0;
      if (cur_reg.atomic) begin
        o_pd.opcode = BTH_ATOMIC_ACK;
        o_pd.ext_len = 6'd12;
        o_pd.ext[95:0] = {be64(cur_reg.va), aeth(AETH_ACK, cur_reg.msn)};
      end else begin
        if (cur_first_reg) o_pd.opcode = cur_last ? BTH_READ_RSP_ONLY : BTH_READ_RSP_FIRST;
        else o_pd.opcode = cur_last ? BTH_READ_RSP_LAST : BTH_READ_RSP_MIDDLE;
        if (cur_first_reg || cur_last) begin
          o_pd.ext_len = 6'd4;
          o_pd.ext[31:0] = aeth(AETH_ACK, cur_reg.msn);
        end
      end
    end
  end

  always_ff @(posedge clk) begin
    if (load) begin
      // the first entry of a turn may have been begun in an earlier one
      cur_reg <= ring_q;
      cur_first_reg <= 1'b1;
      npk_reg <= '0;
      if (x_idx_reg == '0) begin
        if (!ring_q.atomic) begin
          cur_reg.va <= ring_q.va + 64'(skip);
          cur_reg.len <= ring_q.len - skip;
        end
        cur_reg.psn <= ring_q.psn + work.npk;
        cur_first_reg <= (work.npk == '0);
        npk_reg <= work.npk;
      end
    end else if (emit) begin
      cur_reg.va <= cur_reg.va + 64'(mtu);
      cur_reg.len <= cur_reg.len - 32'(mtu);
      cur_reg.psn <= cur_reg.psn + 1'b1;
      cur_first_reg <= 1'b0;
      npk_reg <= npk_reg + 1'b1;
    end
    if (start) begin
      bytes_reg <= '0;
      done_reg <= '0;
      x_idx_reg <= '0;
    end else begin
      if (emit) begin
        bytes_reg <= bytes;
        done_reg <= done;
      end
      if (load) x_idx_reg <= x_idx_reg + 1'b1;
    end
    if (emit || slow_ack) begin
      o_pd_reg <= o_pd;
      o_piece_reg <= !work.ack && (plen != '0);
      o_piece_data_reg <= '{meta: '{kind: PIECE_MEM, first: 1'b1, last: 1'b1, pkt_len: plen}, remote: 1'b1, qpn: work.qpn,
                            pd: cur_reg.pd, key: cur_reg.key, va: cur_reg.va, len: plen};
    end
    if (w_pop && work.ack && work.fatal && c.ack_ok)
      err_reg <= '{qpn: work.qpn, only_event: 1'b0,
                   event_type: work.op_err ? 8'(URDMA_EV_QP_FATAL) : 8'(URDMA_EV_QP_ACCESS_ERR)};
    if (rst) begin
      x_on_reg <= 1'b0;
      r_valid_reg <= 1'b0;
      cur_valid_reg <= 1'b0;
      o_valid_reg <= 1'b0;
      err_valid_reg <= 1'b0;
      fly_reg <= '0;
      pend_reg <= '0;
      doubt_reg <= '0;
    end else begin
      if (start) x_on_reg <= 1'b1;
      else if (turn_end) x_on_reg <= 1'b0;
      if (turn_end) r_valid_reg <= 1'b0;
      else if (ring_rd) r_valid_reg <= 1'b1;
      else if (load) r_valid_reg <= 1'b0;
      if (turn_end) cur_valid_reg <= 1'b0;
      else if (load) cur_valid_reg <= 1'b1;
      else if (emit && cur_last) cur_valid_reg <= 1'b0;
      if (emit || slow_ack) o_valid_reg <= 1'b1;
      else if (o_fire) o_valid_reg <= 1'b0;
      if (w_pop && work.ack && work.fatal && c.ack_ok) err_valid_reg <= 1'b1;
      else if (err_ready) err_valid_reg <= 1'b0;
      if (rfail_valid && (fly_reg != '0))
        doubt_reg <= w_count + (PEND_W+1)'(e1_valid_reg && work_push) - (PEND_W+1)'(w_pop);
      else if (w_pop && (doubt_reg != '0)) doubt_reg <= doubt_reg - 1'b1;
      fly_reg <= fly_reg + FLY_W'(o_fire) - FLY_W'(resp_gone);
      pend_reg <= pend_reg + (PEND_W+1)'(q_pop) - (PEND_W+1)'(w_pop);
    end
  end
  assign err_valid = err_valid_reg;
  assign err = err_reg;

  // ---- fence -------------------------------------------------------------------------------------------------------------
  // An epoch begins. Each QP that was queued counts until it has had three turns, or has nothing left. The first turn may
  // have begun with the old configuration; the second drops all READs of a QP that has ended, and the third its
  // acknowledgement. So a fence does not wait until READs of other QPs are answered, which takes seconds if they are long.
  // Then the fence waits for the turns under way, then for the packets in the pipeline. A failure among these adds its NAK.
  typedef enum logic [2:0] {F_IDLE, F_BEGIN, F_QPS, F_TURNS, F_PKTS, F_SETTLE} fence_e;
  fence_e fence_reg;
  logic [1:0][QPN_W:0] qps_reg;      // queued QPs of each epoch
  logic [FLY_W-1:0] left_reg;
  logic [1:0] settle_reg;
  logic old_left;
  assign fence_hit = (fence_reg == F_IDLE);
  assign old_left = (qps_reg[!epoch_reg] != '0);

  always_ff @(posedge clk) begin
    if (rst) begin
      fence_reg <= F_IDLE;
      epoch_reg <= 1'b0;
      qps_reg <= '0;
      left_reg <= '0;
      settle_reg <= '0;
    end else begin
      for (int e = 0; e < 2; e++) qps_reg[e] <= qps_reg[e] + (QPN_W+1)'(enter[e]) - (QPN_W+1)'(leave[e]);
      if (fence_reg != F_IDLE) settle_reg <= settle_reg + 1'b1;
      case (fence_reg)
        F_IDLE: if (fence_start) begin
          fence_reg <= F_BEGIN;
          epoch_reg <= !epoch_reg;
          settle_reg <= '0;
        end
        F_BEGIN: if (&settle_reg) fence_reg <= F_QPS;  // the earlier events are written
        F_QPS: if (!old_left) begin
          fence_reg <= F_TURNS;
          left_reg <= FLY_W'(w_count) - FLY_W'(w_pop);
        end
        F_TURNS: if (left_reg == '0) begin
          fence_reg <= F_PKTS;
          left_reg <= fly_reg + FLY_W'(o_valid_reg) - FLY_W'(resp_gone);
        end else if (w_pop) begin
          left_reg <= left_reg - 1'b1;
        end
        F_PKTS: if (left_reg == '0) begin
          fence_reg <= F_SETTLE;
          settle_reg <= '0;
        end else if (resp_gone) begin
          left_reg <= left_reg - 1'b1;
        end
        default: if (&settle_reg) fence_reg <= F_IDLE;
      endcase
      if (((fence_reg == F_TURNS) || (fence_reg == F_PKTS) || (fence_reg == F_SETTLE)) && old_left) fence_reg <= F_QPS;
    end
  end

  assign busy = !init_done_reg || ack_req_valid || (q_count != '0) || e1_valid_reg || (pend_reg != '0) || x_on_reg
                || (end_count != '0) || o_valid_reg || (fly_reg != '0) || err_valid_reg || first || fence_on;

  logic unused;
  assign unused = ^{q_in_ready, p_in_ready, w_in_ready, c_in_ready, p_count, c_count, e1_req_reg.qpn,
                    e1_end_reg.qpn, cfg_rsp};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && q_push) a_queue: assert (q_in_ready)
      else $error("%m: queue full: a QP stands in it twice");
  always_ff @(posedge clk)
    if (!rst && (e1_valid_reg && work_push)) a_work: assert (w_in_ready)
      else $error("%m: more turns than places");
  always_ff @(posedge clk)
    if (!rst && cfg_rsp_valid) a_conf: assert (c_in_ready)
      else $error("%m: more configurations than asked for");
  always_ff @(posedge clk)
    if (!rst && end_in_valid) a_end: assert (end_in_ready)
      else $error("%m: the end of a turn is lost");
  always_ff @(posedge clk)
    if (!rst && o_fire) a_fly: assert (!(&fly_reg))
      else $error("%m: more packets on their way to commit than can be counted");
  always_ff @(posedge clk)
    if (!rst && resp_gone) a_gone: assert ((fly_reg != '0))
      else $error("%m: more packets have left commit than were sent");
`endif

endmodule

`resetall
