// SPDX-License-Identifier: Apache-2.0
// Send scheduler: decides which QP fetches WQEs next.
//
// Owns the scheduling state of each QP: producer index, completed index, fetch index. Every change (doorbell,
// acknowledgement, turn, rewind from the segmenter, control) is an event. One event per cycle goes through two stages: E0
// reads the state, E1 computes and writes it. If the next event is for the same QP, it takes the value from the write
// register, so no event waits for another.
//
// A QP that could fetch is in the ready FIFO once. A turn takes its head, reads the QP's configuration (urdma_qp_mgr), and
// then, as an event, takes up to TURN_BLKS blocks of WQEs and requeues the QP if more is left; so several turns of a QP may
// be under way. The fetch index stays within 2**INFL_W of the completed index: every fetched WQE has a place in the table of
// unacknowledged messages.
//
// Loss: AK_RETRY sets the fetch index back to the oldest WQE that is not completed; the next turn (rw) tells the segmenter
// where to begin in it. The same happens when completion overtakes a retransmission. fmax holds the highest fetch index so
// far: WQEs before it count as begun in SQD.
//
// urdma_tx_local executes local operations (LOCAL_INV, REG_MR, BIND_MW). Their QP leaves the ready FIFO; the result comes
// with its next turns. If an operation is under way when the QP goes to ERR, the flush waits for it: the turn that begins the
// flush carries its result.
//
// era changes at RESET and at SQ_PSN, if a turn of the present era has gone out. The segmenter takes the first turn of a new
// era as the start of a new life, so the pipeline needs no sweep. Each era has a turn, so the segmenter sees every era, and a
// new one cannot be mistaken for an old one with the same number. Work of the old era that is under way still runs to its
// end; the fence of the reset waits for it before the QP is used again. gen counts rewinds: the segmenter discards WQEs
// fetched in an older generation.

`resetall
`default_nettype none

module urdma_tx_sched
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,
  output      logic             busy,

  // doorbells, acknowledgements, control
  input  wire logic             sq_db_valid,
  input  wire wq_db_t           sq_db,
  output      logic             sq_db_ready,
  input  wire logic             acked_valid,
  input  wire acked_t           acked,
  output      logic             acked_ready,
  input  wire logic             qpc_valid,
  input  wire qpc_t             qpc,
  output      logic             qpc_ready,
  output      qpc_rsp_t         qpc_rsp,
  input  wire logic             fence_start,   // pulse: send a fence down the pipeline

  // configuration of the QP whose turn it is
  output      logic             cfg_req_valid,
  output      logic [QPN_W-1:0] cfg_req_qpn,
  input  wire logic             cfg_req_ready,
  input  wire logic             cfg_rsp_valid,
  input  wire qp_cfg_t          cfg_rsp,

  // QUERY: the segmenter's PSN of a QP, and its era
  output      logic             query_valid,
  output      logic [QPN_W-1:0] query_qpn,
  input  wire logic             query_done,
  input  wire logic [23:0]      query_psn,
  input  wire logic [ERA_W-1:0] query_era,

  // turns; their room is reserved here
  output      logic             turn_valid,
  output      turn_t            turn,
  output      logic             fetch_valid,
  output      fetch_t           fetch,
  input  wire logic             turn_end,      // pulse: a turn has been segmented
  input  wire logic [4:0]       turn_end_blks, // blocks it held

  input  wire logic             rewind_valid,
  input  wire rewind_t          rewind,
  output      logic             rewind_ready,

  input  wire logic             lop_done_valid,
  input  wire lop_done_t        lop_done,
  output      logic             lop_done_ready,

  // copies of the state that the segmenter and commit must see at once
  output      logic             look_wr,
  output      logic [QPN_W-1:0] look_wr_qpn,
  output      look_t            look_wr_data,

  // QPs in SQD that have drained
  output      logic             drained_valid,
  output      logic [QPN_W-1:0] drained_qpn,
  input  wire logic             drained_ready
);

  typedef struct packed {
    logic [15:0]      pi;        // producer, from the doorbell
    logic [15:0]      done;      // all WQEs before it are completed
    logic [15:0]      fi;        // next to fetch (in ERR: to flush)
    logic [15:0]      fmax;      // highest fetch index so far; WQEs before it count as begun
    logic [15:0]      sqd_lim;
    logic [15:0]      lop_idx;
    logic [7:0]       lop_status;
    logic [15:0]      acks;      // acked_t seen
    logic [7:0]       rd_done;
    logic [23:0]      una;
    logic [23:0]      first;     // first PSN of WQE `done`
    logic [23:0]      psn0;
    logic [ERA_W-1:0] era;
    logic [GEN_W-1:0] gen;
    logic             fresh;     // no turn of this era has gone out
    logic             queued;    // is in the ready FIFO
    logic             run;       // has been brought to RTS
    logic             bad;       // producer index was out of range: nothing more is fetched
    logic             psn_wait;  // until the next acknowledgement
    logic             rw;        // the next turn begins at una
    logic             hold;      // until AK_RETRY
    logic             lop_wait;  // the local operation of lop_idx is under way
    logic             lop_have;  // it is done
    logic             sqd;       // no WQE from sqd_lim on
    logic             sqd_ev;    // SQ_DRAINED is to be reported
    logic             one;       // the last turn was cut by its quantum: fetch only one WQE
    logic             err;
    logic             fl_asked;  // TURN_FLUSH_START is under way
    logic             fl_on;     // fi is where to flush from
  } state_t;

  typedef enum logic [2:0] {EV_DB, EV_ACKED, EV_LOCAL, EV_TURN, EV_REWIND, EV_QPC, EV_FENCE} ev_e;

  localparam int PEND = 8;       // configuration reads under way

  // ---- initialisation sweep ----------------------------------------------------------------------
  logic init_done_reg;
  logic [QPN_W-1:0] init_qpn_reg;
  assign init_done = init_done_reg;

  always_ff @(posedge clk) begin
    if (rst) begin
      init_done_reg <= 1'b0;
      init_qpn_reg <= '0;
    end else if (!init_done_reg) begin
      init_qpn_reg <= init_qpn_reg + 1'b1;
      init_done_reg <= &init_qpn_reg;
    end
  end

  // ---- ready FIFO and the configuration of its head -------------------------------------------------
  logic ready_push, ready_push_ok, ready_valid, ready_pop;
  logic [QPN_W-1:0] ready_push_qpn, ready_qpn;
  logic [QPN_W:0] ready_count;
  logic [3:0] pend_reg;          // popped, but not yet an event
  logic [TURN_W:0] turns_reg;    // turns under way, including reserved ones
  logic [WQB_W:0] blks_reg;      // blocks in use, TURN_BLKS for each reserved turn
  logic ctl_wait;                // control waits until the popped QPs have become events
  logic room;
  logic ev_turn_take;            // a turn with its configuration becomes an event

  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(1 << QPN_W), .OUT_REG(1)) ready_fifo (
    .clk, .rst,
    .in_valid(ready_push), .in_ready(ready_push_ok), .in_data(ready_push_qpn),
    .out_valid(ready_valid), .out_ready(ready_pop), .out_data(ready_qpn), .count(ready_count)
  );

  assign room = (32'(pend_reg) < PEND) && (turns_reg < (TURN_W+1)'((1 << TURN_W) - 2)) &&
                (blks_reg <= (WQB_W+1)'((1 << WQB_W) - TURN_BLKS));
  assign cfg_req_valid = ready_valid && room && !ctl_wait && init_done_reg;
  assign cfg_req_qpn = ready_qpn;
  assign ready_pop = cfg_req_valid && cfg_req_ready;

  logic pend_valid, pend_in_ready;
  logic [QPN_W-1:0] pend_qpn;
  logic [3:0] pend_count;
  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(PEND)) pend_fifo (
    .clk, .rst,
    .in_valid(ready_pop), .in_ready(pend_in_ready), .in_data(ready_qpn),
    .out_valid(pend_valid), .out_ready(ev_turn_take), .out_data(pend_qpn), .count(pend_count)
  );

  logic cfg_valid, cfg_in_ready;
  qp_cfg_t cfg;
  logic [3:0] cfg_count;
  urdma_fifo #(.WIDTH($bits(qp_cfg_t)), .DEPTH(PEND)) cfg_fifo (
    .clk, .rst,
    .in_valid(cfg_rsp_valid), .in_ready(cfg_in_ready), .in_data(cfg_rsp),
    .out_valid(cfg_valid), .out_ready(ev_turn_take), .out_data(cfg), .count(cfg_count)
  );

  // ---- E0: choose an event -------------------------------------------------------------------------
  logic e1_valid_reg;
  ev_e e1_ev_reg;
  logic [QPN_W-1:0] e1_qpn_reg;
  qp_cfg_t e1_cfg_reg;
  /* verilator lint_off UNUSEDSIGNAL */  // the QP number is in e1_qpn_reg
  wq_db_t e1_db_reg;
  acked_t e1_acked_reg;
  rewind_t e1_rewind_reg;
  lop_done_t e1_lop_reg;
  /* verilator lint_on UNUSEDSIGNAL */
  qpc_t e1_qpc_reg;
  logic qpc_busy_reg;            // accepted into the pipeline, not yet answered
  logic fence_wait_reg;

  logic ev_rewind_take, ev_qpc_take, ev_fence_take;
  logic [3:0] arb_req, arb_grant;
  logic [1:0] arb_idx;
  logic arb_valid, arb_advance;

  assign ctl_wait = (qpc_valid && !qpc_busy_reg) || fence_wait_reg;
  assign arb_req = {lop_done_valid, pend_valid && cfg_valid, acked_valid, sq_db_valid};

  urdma_arb_rr #(.N(4)) arb (
    .clk, .rst, .req(arb_req), .advance(arb_advance), .grant(arb_grant), .grant_idx(arb_idx), .grant_valid(arb_valid)
  );

  // A turn that is already popped goes first, so everything before a fence stays before it.
  assign ev_rewind_take = init_done_reg && rewind_valid;
  assign ev_qpc_take = init_done_reg && !rewind_valid && qpc_valid && !qpc_busy_reg && (pend_reg == '0);
  assign ev_fence_take = init_done_reg && !rewind_valid && !ev_qpc_take && fence_wait_reg && (pend_reg == '0) &&
                         !turns_reg[TURN_W];
  assign arb_advance = init_done_reg && !ev_rewind_take && !ev_qpc_take && !ev_fence_take;
  assign rewind_ready = init_done_reg;
  assign sq_db_ready = arb_advance && arb_grant[0];
  assign acked_ready = arb_advance && arb_grant[1];
  assign ev_turn_take = arb_advance && arb_grant[2];
  assign lop_done_ready = arb_advance && arb_grant[3];

  logic e0_valid;
  logic [QPN_W-1:0] e0_qpn;
  ev_e e0_ev;
  always_comb begin
    e0_valid = 1'b1;
    e0_ev = EV_FENCE;
    e0_qpn = '0;
    if (ev_rewind_take) begin
      e0_ev = EV_REWIND;
      e0_qpn = rewind.qpn;
    end else if (ev_qpc_take) begin
      e0_ev = EV_QPC;
      e0_qpn = qpc.qpn;
    end else if (ev_fence_take) begin
      e0_ev = EV_FENCE;
    end else if (arb_advance && arb_valid) begin
      case (arb_idx)
        2'd0: begin
          e0_ev = EV_DB;
          e0_qpn = sq_db.qpn;
        end
        2'd1: begin
          e0_ev = EV_ACKED;
          e0_qpn = acked.qpn;
        end
        2'd2: begin
          e0_ev = EV_TURN;
          e0_qpn = pend_qpn;
        end
        default: begin
          e0_ev = EV_LOCAL;
          e0_qpn = lop_done.qpn;
        end
      endcase
    end else begin
      e0_valid = 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (e0_valid) begin
      e1_ev_reg <= e0_ev;
      e1_qpn_reg <= e0_qpn;
      case (e0_ev)
        EV_DB: e1_db_reg <= sq_db;
        EV_ACKED: e1_acked_reg <= acked;
        EV_TURN: e1_cfg_reg <= cfg;
        EV_LOCAL: e1_lop_reg <= lop_done;
        EV_REWIND: e1_rewind_reg <= rewind;
        EV_QPC: e1_qpc_reg <= qpc;
        default: ;
      endcase
    end
    if (rst) e1_valid_reg <= 1'b0;
    else e1_valid_reg <= e0_valid;
  end

  // ---- E1: the state of the QP, changed and written ------------------------------------------------
  logic ram_wr;
  logic [QPN_W-1:0] ram_wr_qpn;
  state_t ram_wr_data, ram_rd_data, st, nx;
  logic byp_valid_reg;
  logic [QPN_W-1:0] byp_qpn_reg;
  state_t byp_reg;

  urdma_ram_sdp #(.WIDTH($bits(state_t)), .DEPTH(1 << QPN_W)) state_ram (
    .clk,
    .wr_en(ram_wr), .wr_addr(ram_wr_qpn), .wr_data(ram_wr_data),
    .rd_en(e0_valid), .rd_addr(e0_qpn), .rd_data(ram_rd_data)
  );

  // the value written in the cycle of the read
  assign st = (byp_valid_reg && (byp_qpn_reg == e1_qpn_reg)) ? byp_reg : ram_rd_data;

  always_ff @(posedge clk) begin
    byp_valid_reg <= ram_wr && init_done_reg;
    if (ram_wr) begin
      byp_qpn_reg <= ram_wr_qpn;
      byp_reg <= ram_wr_data;
    end
  end

  // What a turn may take. lim: WQEs between two borders that a read must not cross: of 4 KB (the smallest page size) or of
  // the ring.
  logic [6:0] t_lim, t_to_border;
  logic [4:0] t_max, t_n;
  logic [15:0] t_avail, t_window, t_posted, t_used, t_end;
  logic [16:0] t_ring;
  logic [2:0] t_shift;           // log2 of blocks in a WQE
  logic t_far;
  logic [15:0] t_bad;            // the WQE that ends with the error

  // Strides are 64 to 512 bytes (CREATE_QP checks it).
  assign t_shift = 3'(e1_cfg_reg.sq.log_stride - 4'd6);
  assign t_ring = 17'd1 << e1_cfg_reg.sq.log_entries;
  assign t_lim = (t_ring > (17'd64 >> t_shift)) ? (7'd64 >> t_shift) : t_ring[6:0];
  assign t_to_border = t_lim - (7'(st.fi) & (t_lim - 7'd1));
  assign t_posted = st.pi - st.done;
  assign t_used = st.fi - st.done;
  // A doorbell went beyond the ring. WQEs fetched before it are sent, again if need be; the next WQE ends with the error and
  // is the last one.
  assign t_far = !st.err && !st.sqd && (st.bad || ({1'b0, t_posted} > t_ring));
  assign t_bad = st.bad ? st.pi - 16'd1 : st.fmax;
  assign t_end = t_far ? t_bad : (st.sqd && !st.err) ? st.sqd_lim : st.pi;
  assign t_avail = t_end - st.fi;
  assign t_window = 16'(1 << INFL_W) - t_used;

  always_comb begin
    t_max = (st.err) ? 5'd16 : (5'd16 >> t_shift);
    if (st.one) t_max = 5'd1;
    t_n = t_max;
    if (t_avail < 16'(t_n)) t_n = t_avail[4:0];
    if (t_window < 16'(t_n)) t_n = t_window[4:0];
    if (t_to_border < 7'(t_n)) t_n = t_to_border[4:0];
  end

  /* verilator lint_off UNUSEDSIGNAL */
  function automatic logic wants(input state_t s);
  /* verilator lint_on UNUSEDSIGNAL */
    logic [15:0] posted, used;
    posted = ((s.sqd && !s.err) ? s.sqd_lim : s.pi) - s.done;
    used = s.fi - s.done;
    if (s.err && !s.fl_on) return !s.fl_asked && !s.lop_wait;
    return (s.err || (s.run && !s.psn_wait && !s.hold && !s.lop_wait)) && (posted > used) &&
           (used < 16'(1 << INFL_W));
  endfunction


  logic turn_out, fetch_out;
  turn_kind_e turn_kind;
  logic rewind_ok;

  // qp_mgr changes the configuration first and sends the control message after it; between the two nothing new begins. The
  // control message puts the QP into the ready FIFO again.
  logic state_ok;
  assign state_ok = e1_cfg_reg.valid && (st.err ? (e1_cfg_reg.state == 4'(URDMA_QPS_ERR))
                                                : (e1_cfg_reg.state == 4'(URDMA_QPS_RTS)) ||
                                                  (st.sqd && (e1_cfg_reg.state == 4'(URDMA_QPS_SQD))));
  assign rewind_ok = (st.era == e1_rewind_reg.era) && (st.gen == e1_rewind_reg.gen);

  logic una_back;
  assign una_back = ((e1_acked_reg.una_psn - st.una) & 24'h80_0000) != '0;

  logic drained_push, drained_in_ready;
  logic [QPN_W:0] drained_count;
  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(1 << QPN_W), .OUT_REG(1)) drained_fifo (
    .clk, .rst, .in_valid(drained_push), .in_ready(drained_in_ready), .in_data(e1_qpn_reg),
    .out_valid(drained_valid), .out_ready(drained_ready), .out_data(drained_qpn), .count(drained_count)
  );

  // A doorbell with an index behind the last one is stale: late or repeated. In a full ring of 2**15 the oldest WQE is as far
  // behind the last doorbell as a whole new ring would be ahead of it.
  logic [15:0] db_step, db_ahead, db_left;
  logic db_old;
  assign db_step = e1_db_reg.pi - st.pi;
  assign db_ahead = e1_db_reg.pi - st.done;
  assign db_left = st.pi - st.done;
  assign db_old = db_step > 16'h8000 || db_ahead < db_left;

  // An era that no turn has carried to the segmenter is used again: the next era always differs from the last that it knows.
  logic [ERA_W-1:0] next_era;
  assign next_era = st.fresh ? st.era : st.era + 1'b1;

  always_comb begin
    nx = st;
    drained_push = 1'b0;
    turn_out = 1'b0;
    fetch_out = 1'b0;
    turn_kind = TURN_FETCH;
    if (e1_valid_reg) begin
      case (e1_ev_reg)
        EV_DB: if (!st.bad && !db_old) nx.pi = e1_db_reg.pi;
        EV_ACKED: begin
          nx.done = e1_acked_reg.wqe_done;
          // For a message that is answered and waits only for its data, una is reported no further than the message's start:
          // a pending rw turn does not go back for it.
          if (!st.rw || (e1_acked_reg.wqe_done != st.done) || !una_back) nx.una = e1_acked_reg.una_psn;
          nx.first = e1_acked_reg.first_psn;
          nx.rd_done = e1_acked_reg.rd_done;
          nx.acks = st.acks + 1'b1;
          nx.psn_wait = 1'b0;
          if (!st.err) begin
            case (e1_acked_reg.kind)
              AK_RETRY: nx.hold = 1'b0;
              AK_HOLD: nx.hold = 1'b1;
              default: ;
            endcase
            // Until a turn has taken it, the point to begin at moves on with acknowledgements.
            if ((e1_acked_reg.kind != AK_PROGRESS) || st.rw || wqe_before(st.fi, e1_acked_reg.wqe_done)) begin
              nx.rw = 1'b1;
              nx.fi = e1_acked_reg.wqe_done;
              nx.one = 1'b0;
              if (!st.rw) nx.gen = st.gen + 1'b1;
            end
          end
          if (wqe_before(st.lop_idx, nx.done)) nx.lop_have = 1'b0;
        end
        // of an older life: no turn waits for it
        EV_LOCAL: if (st.era == e1_lop_reg.era) begin
          nx.lop_wait = 1'b0;
          nx.lop_have = 1'b1;
          nx.lop_status = e1_lop_reg.status;
        end
        EV_TURN: begin
          nx.queued = 1'b0;
          if (wants(st) && state_ok) begin
            turn_out = 1'b1;
            nx.fresh = 1'b0;
            if (st.err && !st.fl_on) begin
              turn_kind = TURN_FLUSH_START;
              nx.fl_asked = 1'b1;
            end else if (st.err) begin
              turn_kind = TURN_FLUSH;
              nx.fi = st.fi + 16'(t_n);
            end else begin
              if (t_far && !wqe_before(st.fi, t_bad)) begin
                turn_kind = TURN_BAD;
                nx.bad = 1'b1;
                nx.fi = st.fi + 16'd1;
                nx.pi = nx.fi;
              end else begin
                fetch_out = 1'b1;
                nx.fi = st.fi + 16'(t_n);
              end
              if (wqe_before(st.fmax, nx.fi)) nx.fmax = nx.fi;
              nx.one = 1'b0;
              nx.rw = 1'b0;
            end
          end
        end
        EV_REWIND: begin
          // A local operation is under way, whatever became of the turn that began it.
          if ((st.era == e1_rewind_reg.era) && (e1_rewind_reg.kind == RW_LOCAL) &&
              !(st.lop_have && (st.lop_idx == e1_rewind_reg.idx))) begin
            nx.lop_wait = 1'b1;
            nx.lop_have = 1'b0;
            nx.lop_idx = e1_rewind_reg.idx;
          end
          if (rewind_ok) begin
            nx.fi = e1_rewind_reg.idx;
            if (e1_rewind_reg.kind == RW_FLUSH) begin
              nx.fl_on = 1'b1;
            end else begin
              nx.gen = st.gen + 1'b1;
              nx.one = !st.err;
              nx.fl_asked = 1'b0;   // RW_LOCAL instead of RW_FLUSH: the flush waits for the local operation
              nx.psn_wait = (e1_rewind_reg.kind == RW_WAIT) && (st.acks == e1_rewind_reg.acks);
              nx.fmax = e1_rewind_reg.top;
              if (wqe_before(e1_rewind_reg.idx, st.done)) begin
                nx.rw = 1'b1;
                nx.fi = st.done;
              end
            end
          end
        end
        EV_QPC: begin
          case (e1_qpc_reg.op)
            QPC_RESET: begin
              nx = '0;
              nx.queued = st.queued;
              nx.era = next_era;
              nx.fresh = 1'b1;
            end
            QPC_SQ_PSN: begin
              nx.run = 1'b1;
              nx.psn0 = e1_qpc_reg.psn;
              nx.una = e1_qpc_reg.psn;
              nx.first = e1_qpc_reg.psn;
              nx.rd_done = '0;
              nx.era = next_era;
              nx.fresh = 1'b1;
            end
            QPC_ERR: begin
              if (!st.err) begin
                nx.err = 1'b1;
                nx.one = 1'b0;
                nx.psn_wait = 1'b0;
                nx.rw = 1'b0;
                nx.hold = 1'b0;
                nx.sqd_ev = 1'b0;
                nx.gen = st.gen + 1'b1;
              end
            end
            QPC_SQD: begin
              nx.sqd = 1'b1;
              nx.sqd_ev = st.sqd_ev || e1_qpc_reg.psn[0];
              if (!st.sqd) nx.sqd_lim = wqe_before(st.fmax, st.done) ? st.done : st.fmax;
            end
            QPC_SQ_RUN: begin
              nx.sqd = 1'b0;
              nx.sqd_ev = 1'b0;
            end
            default: ;
          endcase
        end
        default: turn_out = 1'b1;
      endcase
      if (nx.sqd && nx.sqd_ev && (nx.done == nx.sqd_lim) && (e1_ev_reg != EV_FENCE)) begin
        drained_push = 1'b1;
        nx.sqd_ev = 1'b0;
      end
      if ((e1_ev_reg == EV_FENCE)) turn_kind = TURN_FENCE;
    end
    ready_push = e1_valid_reg && (e1_ev_reg != EV_FENCE) && !nx.queued && wants(nx) &&
                 ((e1_ev_reg != EV_TURN) || turn_out);
    if (ready_push) nx.queued = 1'b1;
  end

  assign ready_push_qpn = e1_qpn_reg;
  assign ram_wr = !init_done_reg || (e1_valid_reg && (e1_ev_reg != EV_FENCE));
  assign ram_wr_qpn = init_done_reg ? e1_qpn_reg : init_qpn_reg;
  assign ram_wr_data = init_done_reg ? nx : '0;
  assign look_wr = ram_wr;
  assign look_wr_qpn = ram_wr_qpn;
  assign look_wr_data = '{era: ram_wr_data.era, gen: ram_wr_data.gen, done: ram_wr_data.done, err: ram_wr_data.err};

  // ---- the turn goes out -------------------------------------------------------------------------------
  logic [TURN_W-1:0] slot_reg;
  logic [WQB_W-1:0] blk_reg;
  logic [4:0] t_blks;
  logic turn_valid_reg, fetch_valid_reg;
  turn_t turn_reg;
  fetch_t fetch_reg;
  logic [31:0] t_index;
  logic e1_turn;

  assign t_blks = fetch_out ? (t_n << t_shift) : 5'd0;
  assign t_index = 32'(st.fi) & (32'(t_ring) - 32'd1);
  assign e1_turn = e1_valid_reg && (e1_ev_reg == EV_TURN);
  assign turn_valid = turn_valid_reg;
  assign turn = turn_reg;
  assign fetch_valid = fetch_valid_reg;
  assign fetch = fetch_reg;

  always_ff @(posedge clk) begin
    if (turn_out) begin
      turn_reg <= '{kind: turn_kind, slot: slot_reg, qpn: e1_qpn_reg, widx: st.fi, n: t_n, blk: blk_reg, nblk: t_blks,
                    era: st.era, gen: st.gen, rw: st.rw && (fetch_out || turn_kind == TURN_BAD), npk: st.una - st.first,
                    una: st.una, done: st.done, rd_done: st.rd_done, acks: st.acks, lop_have: st.lop_have, lop_idx: st.lop_idx,
                    lop_status: st.lop_status, psn0: st.psn0, mtu: e1_cfg_reg.mtu, pd: e1_cfg_reg.pd,
                    sig_all: e1_cfg_reg.sig_all, priv: e1_cfg_reg.priv, xport: xport_of(e1_cfg_reg.qp_type),
                    qkey: e1_cfg_reg.qkey, max_rd: e1_cfg_reg.max_rd_atomic, log_stride: e1_cfg_reg.sq.log_stride,
                    path: path_of(e1_cfg_reg)};
    end
    if (fetch_out) begin
      fetch_reg <= '{slot: slot_reg, blk: blk_reg, pt: e1_cfg_reg.sq.pt, va: t_index << e1_cfg_reg.sq.log_stride,
                     len: {2'd0, t_blks, 6'd0}};
    end
    if (rst) begin
      turn_valid_reg <= 1'b0;
      fetch_valid_reg <= 1'b0;
      slot_reg <= '0;
      blk_reg <= '0;
      pend_reg <= '0;
      turns_reg <= '0;
      blks_reg <= '0;
    end else begin
      turn_valid_reg <= turn_out;
      fetch_valid_reg <= fetch_out;
      if (turn_out) slot_reg <= slot_reg + 1'b1;
      blk_reg <= blk_reg + WQB_W'(t_blks);
      // a popped QP holds a turn and TURN_BLKS blocks until its event knows the true number
      pend_reg <= pend_reg + 4'(ready_pop) - 4'(e1_turn);
      turns_reg <= turns_reg + (TURN_W+1)'(ready_pop) + (TURN_W+1)'(ev_fence_take)
                   - (TURN_W+1)'(e1_turn && !turn_out) - (TURN_W+1)'(turn_end);
      blks_reg <= blks_reg + (ready_pop ? (WQB_W+1)'(TURN_BLKS) : '0)
                  - (e1_turn ? (WQB_W+1)'(TURN_BLKS) - (WQB_W+1)'(t_blks) : '0)
                  - (turn_end ? (WQB_W+1)'(turn_end_blks) : '0);
    end
  end

  // ---- control: the answer, and the fence --------------------------------------------------------------
  logic qpc_ready_reg, query_reg;
  qpc_rsp_t qpc_rsp_reg;
  logic [23:0] q_psn0_reg;
  logic [ERA_W-1:0] q_era_reg;

  assign qpc_ready = qpc_ready_reg;
  assign qpc_rsp = qpc_rsp_reg;
  assign query_valid = query_reg;
  assign query_qpn = e1_qpc_reg.qpn;

  always_ff @(posedge clk) begin
    if (e1_valid_reg && (e1_ev_reg == EV_QPC)) begin
      qpc_rsp_reg.pi <= st.pi;
      qpc_rsp_reg.ci <= st.done;
      qpc_rsp_reg.draining <= st.sqd && (st.done != st.sqd_lim);
      q_psn0_reg <= st.psn0;
      q_era_reg <= st.era;
    end
    if (query_done) qpc_rsp_reg.psn <= (query_era == q_era_reg) ? query_psn : q_psn0_reg;
    if (rst) begin
      qpc_ready_reg <= 1'b0;
      query_reg <= 1'b0;
      qpc_busy_reg <= 1'b0;
      fence_wait_reg <= 1'b0;
    end else begin
      qpc_ready_reg <= (e1_valid_reg && (e1_ev_reg == EV_QPC) && (e1_qpc_reg.op != QPC_QUERY)) || query_done;
      if (e1_valid_reg && (e1_ev_reg == EV_QPC) && (e1_qpc_reg.op == QPC_QUERY)) query_reg <= 1'b1;
      else if (query_done) query_reg <= 1'b0;
      if (ev_qpc_take) qpc_busy_reg <= 1'b1;
      else if (qpc_ready_reg) qpc_busy_reg <= 1'b0;
      if (fence_start) fence_wait_reg <= 1'b1;
      else if (ev_fence_take) fence_wait_reg <= 1'b0;
    end
  end

  assign busy = !init_done_reg || sq_db_valid || acked_valid || (qpc_valid && !qpc_ready_reg) || e1_valid_reg ||
                ready_valid || (ready_count != '0) || (turns_reg != '0) || turn_valid_reg || fence_wait_reg ||
                lop_done_valid || (drained_count != '0);

  // unused outputs of FIFOs whose room is reserved by counters
  logic unused;
  assign unused = ^{pend_in_ready, pend_count, cfg_in_ready, cfg_count, ready_push_ok, drained_in_ready};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && ready_push) a_ready: assert (ready_push_ok)
      else $error("%m: ready FIFO full: a QP stands in it twice");
`endif

endmodule

`resetall
