// SPDX-License-Identifier: Apache-2.0
// Segmenter: reads and checks WQEs, cuts messages into packets and packets into pieces of contiguous memory.
//
// Owns what a QP sends next: WQE index, byte offset in that message, PSN. It works on one turn at a time; the next waits in
// the pre register with its state already read. A turn produces, in order, packet descriptors (to commit) and pieces (to
// payload read). A small message with one SGE takes 2 cycles, a READ or ATOMIC as well, and each turn 1 cycle more.
//
// A turn ends early when its quantum of bytes is used up, or the next WQE must not be sent yet: no PSNs, too many READs
// outstanding, a fence. The state is saved and the scheduler is told to fetch again from this WQE; turns of the QP that were
// fetched further on carry an old generation and are dropped. When the walk resumes inside a message, the SGEs before the
// offset are skipped, one per cycle.
//
// Retransmission: a turn with rw sets WQE, PSN and offset. hi is the first WQE that was never sent completely. Those before
// it are resent: they give no second sent_t, and their local operations are skipped. A turn whose WQEs have been completed
// since is discarded: the ring slots may have been reused, so the fetched data may be newer than those WQEs.
//
// A local operation is handed to urdma_tx_local and the turn ends; a later turn brings the result and sends its sent_t. By
// then the operation is done, so it is reported as done even in ERR: the flush begins after it, with its result.
//
// An invalid WQE ends its message with a descriptor that has a status; the QP then stops there (only WQEs before it may be
// sent again) until it is flushed.

`resetall
`default_nettype none

module urdma_tx_seg
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  // turns, and the WQEs of those that fetch
  input  wire logic                   turn_valid,
  input  wire turn_t                  turn,
  input  wire logic [(1<<TURN_W)-1:0] here,
  input  wire logic [(1<<TURN_W)-1:0] bad,
  output      logic                   wqe_rd_en,
  output      logic [WQB_W-1:0]       wqe_rd_blk,
  input  wire logic [511:0]           wqe_rd_data,
  output      logic                   turn_end,
  output      logic [4:0]             turn_end_blks,
  output      logic                   rewind_valid,
  output      rewind_t                rewind,
  input  wire logic                   rewind_ready,

  input  wire logic                   query_valid,
  input  wire logic [QPN_W-1:0]       query_qpn,
  output      logic                   query_done,
  output      logic [23:0]            query_psn,
  output      logic [ERA_W-1:0]       query_era,

  output      logic                   head_valid,    // wqe_rd_data is the head of a WQE of UD or XRC
  output      logic [31:0]            head_qkey,     // with head_valid; for urdma_tx_dest
  output      xport_e                 pd_xport,
  output      logic                   pd_valid,
  output      pdesc_t                 pd,
  input  wire logic                   pd_ready,
  output      logic                   piece_valid,
  output      piece_t                 piece,
  input  wire logic                   piece_ready,
  output      logic                   inl_valid,
  output      logic [511:0]           inl_data,
  input  wire logic                   inl_ready,
  output      logic                   want,          // a descriptor or piece could go; does not depend on their ready

  output      logic                   lop_valid,     // local operation
  output      lop_t                   lop,
  input  wire logic                   lop_ready,     // 0: the QP tries again later

  input  wire logic                   look_wr,
  input  wire logic [QPN_W-1:0]       look_wr_qpn,
  input  wire look_t                  look_wr_data,

  output      logic                   trace_wqe_valid,
  output      tr_wqe_t                trace_wqe
);

  typedef struct packed {
    logic [ERA_W-1:0] era;
    logic [GEN_W-1:0] gen;
    logic             fresh;     // commit has had no descriptor of this era
    logic             stop;      // a WQE failed: nothing new until the flush
    logic             lop_asked; // the local operation of WQE hi has been handed on: its opcode, whether it is signaled
    logic [1:0]       lop_op;
    logic             lop_sig;
    logic [15:0]      si;        // next WQE
    logic [15:0]      hi;        // first WQE that was never sent completely
    logic             part;      // some packets of WQE si have been sent
    logic [35:0]      off;       // its bytes sent; after a retry it may reach beyond the message: messages to skip
    logic [23:0]      psn;       // next PSN
    logic [23:0]      hpsn;      // first PSN that was never sent
    logic [7:0]       rd_issued; // READs and ATOMICs sent
  } state_t;

  typedef enum logic [3:0] {
    S_NEXT,          // save the finished turn, load the next
    S_TURN,          // kind of turn; first WQE
    S_HDR,           // head of a further WQE
    S_REQ,           // READ, ATOMIC, local operation
    S_RUN,           // SGEs to pieces
    S_BLK,           // a block with more SGEs arrives
    S_INL,           // inline data, a line a cycle or two
    S_INL_BLK,
    S_SEEK,          // the block where a datagram's data begin, or where inline data resume
    S_FLUSH
  } seg_state_e;

  // ---- sweep, state memory ----------------------------------------------------------------------------
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

  logic g_rd_en, g_wr;
  logic [QPN_W-1:0] g_rd_qpn;
  state_t g_rd_data, g_reg;
  turn_t cur_reg;
  logic cur_valid_reg;

  urdma_ram_sdp #(.WIDTH($bits(state_t)), .DEPTH(1 << QPN_W)) state_ram (
    .clk,
    .wr_en(!init_done_reg || g_wr), .wr_addr(init_done_reg ? cur_reg.qpn : init_qpn_reg),
    .wr_data(init_done_reg ? g_reg : '0),
    .rd_en(g_rd_en), .rd_addr(g_rd_qpn), .rd_data(g_rd_data)
  );

  // The scheduler's view of the QP, read when its turn is loaded: after its WQEs were fetched.
  look_t look;
  logic look_rd;
  turn_t pre_reg;                  // the turn after the present one
  urdma_ram_sdp #(.WIDTH($bits(look_t)), .DEPTH(1 << QPN_W)) look_ram (
    .clk, .wr_en(look_wr), .wr_addr(look_wr_qpn), .wr_data(look_wr_data),
    .rd_en(look_rd), .rd_addr(pre_reg.qpn), .rd_data(look)
  );

  // ---- turn FIFO, pre register ----------------------------------------------------------------------------
  logic t_valid, t_pop, t_in_ready;
  turn_t t;
  logic [TURN_W:0] t_count;
  urdma_fifo #(.WIDTH($bits(turn_t)), .DEPTH(1 << TURN_W), .OUT_REG(1)) turn_fifo (
    .clk, .rst, .in_valid(turn_valid), .in_ready(t_in_ready), .in_data(turn),
    .out_valid(t_valid), .out_ready(t_pop), .out_data(t), .count(t_count)
  );

  logic pre_valid_reg, pre_fresh_reg, pre_take, pre_here;
  state_t pre_g_reg, pre_g;
  logic q_rd_reg, q_done_reg, q_rd;

  // A query reads the state when no turn uses the port; it has priority when both could.
  assign q_rd = query_valid && init_done_reg && !q_rd_reg && !q_done_reg;
  assign t_pop = t_valid && init_done_reg && (!pre_valid_reg || pre_take) && !q_rd;
  assign g_rd_en = t_pop || q_rd;
  assign g_rd_qpn = q_rd ? query_qpn : t.qpn;
  assign query_done = q_done_reg;

  // The state read for pre may be older than what the current turn leaves behind. If both are of one QP, load takes g_reg; if
  // pre has to wait longer, the write of S_NEXT goes to pre as well.
  assign pre_g = pre_fresh_reg ? g_rd_data : pre_g_reg;
  assign pre_here = (pre_reg.kind != TURN_FETCH) || here[pre_reg.slot];

  logic q_hit_reg;
  logic [23:0] q_psn_reg, query_psn_reg;
  logic [ERA_W-1:0] q_era_reg, query_era_reg;
  assign query_psn = query_psn_reg;
  assign query_era = query_era_reg;

  always_ff @(posedge clk) begin
    if (pre_fresh_reg) pre_g_reg <= g_rd_data;
    if (t_pop) pre_reg <= t;
    if (g_wr && (cur_reg.qpn == (t_pop ? t.qpn : pre_reg.qpn))) pre_g_reg <= g_reg;
    if (q_rd) begin
      q_hit_reg <= cur_valid_reg && (cur_reg.qpn == query_qpn);
      q_psn_reg <= g_reg.psn;
      q_era_reg <= g_reg.era;
    end
    if (q_rd_reg) begin
      query_psn_reg <= q_hit_reg ? q_psn_reg : g_rd_data.psn;
      query_era_reg <= q_hit_reg ? q_era_reg : g_rd_data.era;
    end
    if (rst) begin
      pre_valid_reg <= 1'b0;
      pre_fresh_reg <= 1'b0;
      q_rd_reg <= 1'b0;
      q_done_reg <= 1'b0;
    end else begin
      if (t_pop) pre_valid_reg <= 1'b1;
      else if (pre_take) pre_valid_reg <= 1'b0;
      pre_fresh_reg <= t_pop && !(g_wr && (cur_reg.qpn == t.qpn));
      q_rd_reg <= q_rd;
      q_done_reg <= q_rd_reg;
    end
  end

  // ---- the current message ------------------------------------------------------------------------------
  seg_state_e state_reg;
  msg_t m_reg, m, dec;
  sge_t sge_reg;
  logic [511:0] blk_reg;         // current block of the WQE
  logic [WQB_W-1:0] wqe_blk_reg; // first block of this WQE
  logic [2:0] blk_idx_reg;       // its number within the WQE
  logic [1:0] pos_reg;           // which quarter of blk_reg the SGE came from
  logic [7:0] sge_n_reg;         // SGEs taken, this one included
  logic [31:0] skip_reg;         // bytes to skip before the offset to resume at
  logic [31:0] rem_reg;          // bytes of the message not in finished packets
  logic [12:0] pkt_len_reg;      // payload of this packet
  logic [12:0] pkt_rem_reg;      // of which not yet in pieces
  logic pkt_started_reg;         // a piece of it has gone out
  logic [4:0] k_reg;             // WQEs of the turn done
  logic [15:0] used_reg;         // bytes of the quantum used, saturating
  logic rw_reg;
  rewind_kind_e rw_kind_reg;
  logic rewind_valid_reg;
  rewind_t rewind_reg;

  logic [2:0] wqe_shift;         // log2 of blocks in a WQE
  logic [12:0] mtu;
  assign wqe_shift = 3'(cur_reg.log_stride - 4'd6);
  assign mtu = 13'd128 << cur_reg.mtu;
  assign rewind_valid = rewind_valid_reg;
  assign rewind = rewind_reg;

  // ---- decoding of a WQE's head ---------------------------------------------------------------------------
  logic [511:0] d;
  logic [7:0] d_status;
  sge_t d_sge;
  logic ud, seek;                // seek: the WQE continues in another block than its first
  logic [2:0] seek_idx;
  assign d = wqe_rd_data;
  assign d_sge = sge_of(d[8*URDMA_SQE_DATA_OFFSET+:128]);
  always_comb begin
    dec = '{op: d[URDMA_SQE0_OPCODE_LSB+:8], sig: d[URDMA_SQE0_SIGNALED_LSB] || cur_reg.sig_all,
            se: d[URDMA_SQE0_SOLICITED_LSB], inl: d[URDMA_SQE0_INLINE_LSB], fence: d[URDMA_SQE0_FENCE_LSB],
            num_sge: d[URDMA_SQE0_INLINE_LSB] ? 8'd0 : d[URDMA_SQE0_NUM_SGE_LSB+:8], imm: d[URDMA_SQE1_IMM_LSB+:32],
            raddr: d[URDMA_SQE2_RADDR_LSB+:64], rkey: d[URDMA_SQE3_RKEY_LSB+:32], len: d[URDMA_SQE3_LENGTH_LSB+:32], default: '0};
    dec.mpe = (dec.op == 8'(URDMA_WR_FLUSH)) || (dec.op == 8'(URDMA_WR_ATOMIC_WRITE));
    dec.read = (dec.op == 8'(URDMA_WR_READ)) || dec.mpe;
    dec.atomic = (dec.op == 8'(URDMA_WR_ATOMIC_CS)) || (dec.op == 8'(URDMA_WR_ATOMIC_FA));
    dec.local_op = (dec.op >= 8'(URDMA_WR_LOCAL_INV)) && !dec.mpe;
    dec.write = (dec.op == 8'(URDMA_WR_WRITE)) || (dec.op == 8'(URDMA_WR_WRITE_IMM));
    dec.imm_op = (dec.op == 8'(URDMA_WR_SEND_IMM)) || (dec.op == 8'(URDMA_WR_WRITE_IMM));
    dec.inv_op = (dec.op == 8'(URDMA_WR_SEND_INV));
  end
  urdma_tx_wqe_check wqe_check (
    .m(dec), .sge_len(d_sge.left), .xport(cur_reg.xport), .priv(cur_reg.priv), .max_rd(cur_reg.max_rd),
    .log_stride(cur_reg.log_stride), .mtu, .status(d_status)
  );
  // A datagram's data are in the upper half of its second block; resumed inline data are in the block of their offset.
  assign ud = (cur_reg.xport == XP_UD);
  assign seek = ud || (dec.inl && (g_reg.off != '0));
  assign seek_idx = ud ? 3'd1 : g_reg.off[8:6];

  // ---- the work of one cycle ---------------------------------------------------------------------------------
  logic hdr_cycle, void_turn, stale, old_gen, no_psn, resent;
  logic h_halt, h_pass, h_wait;  // head: nothing new after a failure; acknowledged already; not yet
  logic [7:0] rd_out;            // READs and ATOMICs outstanding
  logic [32:0] h_span;           // the message's packets, in bytes of full ones
  logic emit, push, push_inl, go;
  logic e_eom, e_bare;           // ends the message; carries no payload although a packet has begun
  logic [7:0] e_status;
  logic [15:0] e_wqe;
  logic sge_last, take_sge, skip_step, piece_step, end_wqe, end_pkt, need_blk, fail, pass, step_out;
  rewind_kind_e step_kind;
  logic lop_here;                // the result of this WQE's local operation
  logic fl_begin, lop_first;     // the turn that begins a flush; a local operation comes before it
  logic [12:0] p_len;
  logic p_pkt_end, p_sge_end, pkt_is_last;
  logic [12:0] line_len;
  logic inl_more;                // the line of inline data continues in the next block
  logic [31:0] skip_len;
  logic over;                    // the quantum is used up after this packet
  logic [23:0] psn_end;          // PSN after this packet
  logic [32:0] rd_round;

  assign resent = wqe_before(g_reg.si, g_reg.hi);
  assign old_gen = (cur_reg.gen != g_reg.gen);
  assign void_turn = old_gen || (g_reg.stop && !resent) || ((look.era == cur_reg.era) && (look.gen != cur_reg.gen));
  assign stale = (look.era == cur_reg.era) && wqe_before(g_reg.si, look.done);
  // UC and UD have no acknowledgements, so a message may be longer than the window.
  assign no_psn = !is_unrel(cur_reg.xport) && !psn_before(g_reg.psn, cur_reg.una) && ((g_reg.psn - cur_reg.una) >= PSN_WINDOW);
  assign hdr_cycle = (state_reg == S_HDR) || ((state_reg == S_TURN) && (cur_reg.kind == TURN_FETCH) && !void_turn &&
                                              !stale && !bad[cur_reg.slot]);
  assign m = hdr_cycle ? dec : m_reg;

  // Completed may be ahead of sent for a moment: responses to packets sent before the retry.
  always_comb begin
    rd_out = g_reg.rd_issued - cur_reg.rd_done;
    if (rd_out[7]) rd_out = '0;
    h_span = (33'(dec.len) + 33'(mtu) - 33'd1) & ~(33'(mtu) - 33'd1);
    if (dec.len == '0) h_span = 33'(mtu);
    h_halt = (state_reg == S_HDR) && g_reg.stop && !resent;
    h_pass = dec.local_op ? resent : (g_reg.off >= 36'(h_span));
    h_wait = no_psn || (dec.fence && (rd_out != '0)) || ((dec.read || dec.atomic) && (rd_out >= cur_reg.max_rd)) ||
             ((dec.op == 8'(URDMA_WR_LOCAL_INV)) && (cur_reg.done != g_reg.si));
  end

  assign sge_last = (sge_n_reg >= m_reg.num_sge);
  assign p_pkt_end = (sge_reg.left >= 32'(pkt_rem_reg));
  assign p_sge_end = (sge_reg.left <= 32'(pkt_rem_reg));
  assign p_len = p_pkt_end ? pkt_rem_reg : sge_reg.left[12:0];
  assign pkt_is_last = (rem_reg == 32'(pkt_len_reg));
  assign skip_len = (sge_reg.left < skip_reg) ? sge_reg.left : skip_reg;
  assign inl_more = m_reg.inl && (pkt_rem_reg > 13'd32);
  assign line_len = (pkt_rem_reg > 13'd64) ? 13'd64 : pkt_rem_reg;
  assign over = (32'(used_reg) + 32'(pkt_len_reg)) >= QUANTUM;
  assign lop_here = cur_reg.lop_have && (cur_reg.lop_idx == g_reg.si);
  assign fl_begin = (state_reg == S_TURN) && (cur_reg.kind == TURN_FLUSH_START);
  assign lop_first = fl_begin && g_reg.lop_asked && cur_reg.lop_have && (cur_reg.lop_idx == g_reg.hi);
  assign rd_round = 33'(rem_reg) + 33'(mtu) - 33'd1;
  always_comb begin
    psn_end = g_reg.psn + 24'd1;
    if (lop_first) begin
      psn_end = g_reg.hpsn;
    end else if (state_reg == S_REQ) begin
      if (m.local_op) psn_end = g_reg.psn;
      else if (m.read && (rem_reg != '0)) psn_end = g_reg.psn + 24'(rd_round >> (4'd7 + 4'(cur_reg.mtu)));
    end
  end

  always_comb begin
    emit = 1'b0;
    push = 1'b0;
    push_inl = 1'b0;
    e_eom = 1'b1;
    e_bare = 1'b0;
    e_status = 8'(URDMA_WC_SUCCESS);
    take_sge = 1'b0;
    skip_step = 1'b0;
    piece_step = 1'b0;
    end_wqe = 1'b0;
    end_pkt = 1'b0;
    need_blk = 1'b0;
    fail = 1'b0;
    pass = 1'b0;
    step_out = 1'b0;
    step_kind = RW_WAIT;
    e_wqe = g_reg.si;
    lop_valid = 1'b0;
    case (state_reg)
      S_TURN, S_HDR: begin
        if (hdr_cycle) begin
          if (h_halt) begin
            // the turn ends
          end else if (d_status != '0) begin
            emit = 1'b1;
            e_status = d_status;
            fail = 1'b1;
          end else if (h_pass) begin
            pass = 1'b1;
          end else if (h_wait) begin
            step_out = 1'b1;
          end else if (!dec.read && !dec.atomic && !dec.local_op && !ud && (dec.len == '0) && (dec.num_sge == '0)) begin
            emit = 1'b1;
            end_wqe = 1'b1;
          end
        end else begin
          case (cur_reg.kind)
            TURN_FENCE: begin
              emit = 1'b1;
              e_eom = 1'b0;
            end
            // the WQE that would be next; it comes again after the WQEs before it are resent
            TURN_BAD: if (!g_reg.stop && !void_turn) begin
              emit = 1'b1;
              e_status = 8'(URDMA_WC_LOC_QP_OP_ERR);
              fail = 1'b1;
            end
            TURN_FLUSH_START: if (lop_first) begin
              emit = 1'b1;
              e_status = cur_reg.lop_status;
              e_wqe = g_reg.hi;
            end
            TURN_FETCH: if (!void_turn) begin
              if (stale) begin
                step_out = 1'b1;
                step_kind = RW_AGAIN;
              end else begin
                emit = 1'b1;
                e_status = 8'(URDMA_WC_LOC_QP_OP_ERR);
                fail = 1'b1;
              end
            end
            default: ;
          endcase
        end
      end
      S_REQ: begin
        if (!m.local_op) begin
          emit = 1'b1;
          end_wqe = 1'b1;
        end else if (lop_here) begin
          emit = 1'b1;
          e_status = cur_reg.lop_status;
          fail = (cur_reg.lop_status != '0);
          end_wqe = !fail;
        end else begin
          // Requested already, in a turn before a retry: wait for it as well.
          lop_valid = !g_reg.lop_asked;
          step_out = 1'b1;
          step_kind = (g_reg.lop_asked || lop_ready) ? RW_LOCAL : RW_AGAIN;
        end
      end
      S_SEEK: need_blk = ud && inl_more;
      S_RUN: begin
        if (sge_reg.left == '0) begin
          if (!sge_last) begin
            take_sge = 1'b1;
            need_blk = (pos_reg == 2'd3);
          end else begin
            emit = 1'b1;
            if (pkt_rem_reg != '0) begin
              // the SGEs are shorter than LENGTH
              e_status = 8'(URDMA_WC_LOC_LEN_ERR);
              fail = 1'b1;
              push = pkt_started_reg;
            end else begin
              end_wqe = 1'b1;
            end
          end
        end else if (skip_reg != '0) begin
          skip_step = 1'b1;
        end else if (pkt_rem_reg == '0) begin
          // the SGEs are longer than LENGTH
          emit = 1'b1;
          e_status = 8'(URDMA_WC_LOC_LEN_ERR);
          fail = 1'b1;
        end else begin
          push = 1'b1;
          piece_step = 1'b1;
          if (p_pkt_end) begin
            if (!pkt_is_last) begin
              emit = 1'b1;
              e_eom = 1'b0;
              end_pkt = 1'b1;
            end else if (p_sge_end && sge_last) begin
              emit = 1'b1;
              end_wqe = 1'b1;
            end
          end
        end
      end
      S_INL, S_INL_BLK: begin
        if ((state_reg == S_INL) && inl_more) begin
          need_blk = 1'b1;
        end else begin
          push_inl = 1'b1;
          push = !pkt_started_reg;
          if (pkt_rem_reg == line_len) begin
            emit = 1'b1;
            e_eom = pkt_is_last;
            end_wqe = pkt_is_last;
            end_pkt = !pkt_is_last;
          end
        end
      end
      S_FLUSH: begin
        emit = 1'b1;
        e_status = 8'(URDMA_WC_FLUSH_ERR);
      end
      default: ;
    endcase
    e_bare = (e_status != '0) && !((state_reg == S_RUN) && pkt_started_reg);
  end

  assign want = emit || push;
  assign go = (!emit || pd_ready) && (!push || piece_ready) && (!push_inl || inl_ready);
  assign pd_valid = emit && (!push || piece_ready) && (!push_inl || inl_ready);
  assign piece_valid = push && (!emit || pd_ready) && (!push_inl || inl_ready);
  assign inl_valid = push_inl && (!emit || pd_ready) && (!push || piece_ready);
  assign inl_data = {wqe_rd_data[255:0], blk_reg[511:256]};

  always_comb begin
    lop = '0;
    lop.era = cur_reg.era;
    lop.op.qpn = cur_reg.qpn;
    lop.op.pd = cur_reg.pd;
    if (m_reg.op == 8'(URDMA_WR_LOCAL_INV)) begin
      lop.op.op = MRO_INV_LOCAL;
      lop.op.key = m_reg.imm;
    end else begin
      lop.op.op = (m_reg.op == 8'(URDMA_WR_REG_MR)) ? MRO_REG : MRO_BIND;
      lop.op.key = m_reg.rkey;
      lop.op.lkey = m_reg.imm;
      lop.op.zero_based = blk_reg[URDMA_SQE6_MR_ZERO_BASED_LSB];
      lop.op.va = m_reg.raddr;
      lop.op.len = blk_reg[URDMA_SQE4_MR_LENGTH_LSB+:64];
      lop.op.acc = blk_reg[URDMA_SQE6_MR_ACCESS_LSB+:ACC_W];
      lop.op.pt = '{addr: blk_reg[URDMA_SQE5_MR_ADDR_LSB+:64], levels: blk_reg[URDMA_SQE6_MR_LEVELS_LSB+:2],
                    page_shift: blk_reg[URDMA_SQE6_MR_PAGE_SHIFT_LSB+:6]};
    end
  end

  // In the head's cycle a packet is emitted only without payload.
  logic first_pkt, last_pkt, imm_ext;
  logic [127:0] reth;            // also the first 16 bytes of AtomicETH, with the swap's upper half for the length
  assign first_pkt = (g_reg.off == '0);
  assign last_pkt = e_eom;
  assign imm_ext = last_pkt && (m.imm_op || m.inv_op);
  assign reth = {be32((state_reg == S_REQ) ? rem_reg : m.len), be32(m.rkey),
                 be64(m.raddr + ((state_reg == S_REQ) ? 64'(g_reg.off) : 64'd0))};
  always_comb begin
    pd = '0;
    pd.fence = (cur_reg.kind == TURN_FENCE);
    pd.qpn = cur_reg.qpn;
    pd.era = cur_reg.era;
    pd.fresh = g_reg.fresh;
    if (m.write) begin
      pd.opcode = first_pkt ? (last_pkt ? (m.imm_op ? BTH_WRITE_ONLY_IMM : BTH_WRITE_ONLY) : BTH_WRITE_FIRST)
                            : (last_pkt ? (m.imm_op ? BTH_WRITE_LAST_IMM : BTH_WRITE_LAST) : BTH_WRITE_MIDDLE);
    end else begin
      pd.opcode = first_pkt ? (last_pkt ? (m.imm_op ? BTH_SEND_ONLY_IMM : m.inv_op ? BTH_SEND_ONLY_INV : BTH_SEND_ONLY)
                                        : BTH_SEND_FIRST)
                            : (last_pkt ? (m.imm_op ? BTH_SEND_LAST_IMM : m.inv_op ? BTH_SEND_LAST_INV : BTH_SEND_LAST)
                                        : BTH_SEND_MIDDLE);
    end
    // extended headers: RETH; immediate as it stands in the WQE; IETH, a number
    if (m.write && first_pkt) begin
      pd.ext[127:0] = reth;
      pd.ext_len = 6'd16;
      if (imm_ext) begin
        pd.ext[159:128] = m.imm;
        pd.ext_len = 6'd20;
      end
    end else if (imm_ext) begin
      pd.ext[31:0] = m.inv_op ? be32(m.imm) : m.imm;
      pd.ext_len = 6'd4;
    end
    if (state_reg == S_REQ) begin
      if (m.read) begin
        pd.opcode = BTH_READ_REQ;
        pd.ext[127:0] = reth;
        pd.ext_len = 6'd16;
        // the payload that an ATOMIC WRITE has on the wire is sent as a header here: it fits, and needs no packet buffer
        if (m.mpe) begin
          if (m_reg.op == 8'(URDMA_WR_FLUSH)) begin
            pd.opcode = BTH_FLUSH;
            pd.ext[159:0] = {be32(blk_reg[URDMA_SQE4_FLUSH_LENGTH_LSB+:32]), reth[95:0],
                             be32({26'd0, blk_reg[URDMA_SQE1_FLUSH_LEVEL_LSB+:2], blk_reg[URDMA_SQE1_FLUSH_TYPE_LSB+:4]})};
            pd.ext_len = 6'd20;
          end else begin
            pd.opcode = BTH_ATOMIC_WRITE;
            pd.ext[191:0] = {blk_reg[URDMA_SQE6_WRITE_VALUE_LSB+:64], be32(32'd8), reth[95:0]};
            pd.ext_len = 6'd24;
          end
        end
      end else if (m.atomic) begin
        // FETCH_ADD has its operand in the place of the swap value, and compares nothing
        pd.opcode = (m_reg.op == 8'(URDMA_WR_ATOMIC_CS)) ? BTH_CMP_SWAP : BTH_FETCH_ADD;
        pd.ext[223:0] = {(m_reg.op == 8'(URDMA_WR_ATOMIC_CS)) ? be64(blk_reg[URDMA_SQE7_COMPARE_LSB+:64]) : 64'd0,
                  be64(blk_reg[URDMA_SQE6_SWAP_ADD_LSB+:64]), reth[95:0]};
        pd.ext_len = 6'd28;
      end
      pd.local_op = m.local_op;
    end
    pd.se = last_pkt && m.se && (!m.write || m.imm_op) && !m.read && !m.atomic;
    // at the end of a message, and every 16 packets within it, so that the table of sent messages and the PSN window advance
    pd.ackreq = last_pkt || (g_reg.psn[3:0] == 4'd15);
    pd.psn = g_reg.psn;
    pd.plen = (((state_reg == S_RUN) || (state_reg == S_INL) || (state_reg == S_INL_BLK)) && !e_bare) ? pkt_len_reg : 13'd0;
    pd.inl = m.inl;
    pd.resent = wqe_before(e_wqe, g_reg.hi);
    pd.again = psn_before(g_reg.psn, g_reg.hpsn);
    pd.eom = e_eom && !pd.fence;
    pd.status = e_status;
    pd.wqe = e_wqe;
    pd.wr_opcode = m.op;
    pd.signaled = m.sig;
    pd.msg_len = m.len;
    pd.sent_psn = (e_status != '0) ? g_reg.psn : psn_end - 24'd1;
    pd.path = cur_reg.path;
    if ((state_reg == S_TURN) && !hdr_cycle || (state_reg == S_FLUSH)) begin
      // no WQE was read
      pd.wr_opcode = '0;
      pd.msg_len = '0;
    end
    if (lop_first) begin
      pd.local_op = 1'b1;
      pd.wr_opcode = {6'(URDMA_WR_LOCAL_INV >> 2), g_reg.lop_op};
      pd.signaled = g_reg.lop_sig;
    end
  end

  assign head_valid = hdr_cycle && (ud || (cur_reg.xport == XP_XRC));
  assign head_qkey = cur_reg.qkey;
  assign pd_xport = cur_reg.xport;

  always_comb begin
    piece = '0;
    piece.meta.kind = (state_reg == S_RUN) ? (piece_step ? PIECE_MEM : PIECE_NONE) : PIECE_INLINE;
    piece.meta.first = !pkt_started_reg;
    piece.meta.last = !piece_step || p_pkt_end;
    piece.meta.pkt_len = pkt_len_reg;
    piece.qpn = cur_reg.qpn;
    piece.pd = cur_reg.pd;
    piece.key = sge_reg.key;
    piece.va = sge_reg.addr;
    piece.len = p_len;
  end

  // ---- the WQE buffer's read port ----------------------------------------------------------------------------
  logic [WQB_W-1:0] next_wqe_blk;
  logic more_wqes, load, rw_free;
  assign more_wqes = (k_reg + 5'd1 != cur_reg.n);
  assign next_wqe_blk = wqe_blk_reg + (WQB_W'(1) << wqe_shift);
  assign rw_free = !rw_reg || !rewind_valid_reg;
  assign load = (state_reg == S_NEXT) && rw_free && pre_valid_reg && pre_here;
  assign pre_take = load;
  assign look_rd = load;
  assign g_wr = (state_reg == S_NEXT) && rw_free && cur_valid_reg && (cur_reg.kind != TURN_FENCE);
  assign turn_end = (state_reg == S_NEXT) && rw_free && cur_valid_reg;
  assign turn_end_blks = cur_reg.nblk;

  always_comb begin
    wqe_rd_en = 1'b0;
    wqe_rd_blk = pre_reg.blk;
    if (state_reg == S_NEXT) begin
      wqe_rd_en = load;
    end else if (hdr_cycle && seek && !h_pass) begin
      wqe_rd_en = go;
      wqe_rd_blk = wqe_blk_reg + WQB_W'(seek_idx);
    end else if (go && need_blk) begin
      wqe_rd_en = 1'b1;
      wqe_rd_blk = wqe_blk_reg + WQB_W'(blk_idx_reg) + 1'b1;
    end else if (go && (end_wqe || pass) && more_wqes) begin
      wqe_rd_en = 1'b1;
      wqe_rd_blk = next_wqe_blk;
    end
  end

  // ---- registers -------------------------------------------------------------------------------------------------
  state_t ld_g;
  always_comb begin
    ld_g = (cur_valid_reg && (cur_reg.qpn == pre_reg.qpn)) ? g_reg : pre_g;
    if ((pre_reg.kind != TURN_FENCE) && (ld_g.era != pre_reg.era)) begin
      ld_g = '0;
      ld_g.era = pre_reg.era;
      ld_g.gen = pre_reg.gen;
      ld_g.fresh = 1'b1;
      ld_g.psn = pre_reg.psn0;
      ld_g.hpsn = pre_reg.psn0;
    end
    if (pre_reg.rw) begin
      ld_g.gen = pre_reg.gen;
      ld_g.si = pre_reg.widx;
      ld_g.psn = pre_reg.una;
      ld_g.off = 36'(pre_reg.npk) << (4'd7 + 4'(pre_reg.mtu));
      ld_g.rd_issued = pre_reg.rd_done;
    end
  end

  logic [31:0] rem_next;
  assign rem_next = rem_reg - 32'(pkt_len_reg);

  always_ff @(posedge clk) begin
    case (state_reg)
      S_NEXT: if (rw_free) begin
        if (rw_reg) begin
          rewind_reg <= '{kind: rw_kind_reg, qpn: cur_reg.qpn, era: g_reg.era,
                          gen: (rw_kind_reg == RW_FLUSH) ? g_reg.gen : g_reg.gen - 1'b1, idx: g_reg.si,
                          top: g_reg.hi + 16'(g_reg.part || g_reg.lop_asked), acks: cur_reg.acks};
        end
        rw_reg <= 1'b0;
        cur_valid_reg <= load;
        if (load) begin
          cur_reg <= pre_reg;
          g_reg <= ld_g;
          k_reg <= '0;
          used_reg <= '0;
          wqe_blk_reg <= pre_reg.blk;
          state_reg <= S_TURN;
        end
      end
      S_TURN, S_HDR: if (go) begin
        state_reg <= S_NEXT;
        if (hdr_cycle) begin
          m_reg <= dec;
          blk_reg <= d;
          blk_idx_reg <= seek ? seek_idx : '0;
          pos_reg <= 2'd2;
          sge_reg <= d_sge;
          if (dec.num_sge == '0) sge_reg.left <= '0;
          sge_n_reg <= 8'd1;
          skip_reg <= g_reg.off[31:0];
          rem_reg <= dec.len - g_reg.off[31:0];
          pkt_len_reg <= ((dec.len - g_reg.off[31:0]) > 32'(mtu)) ? mtu : 13'(dec.len - g_reg.off[31:0]);
          pkt_rem_reg <= ((dec.len - g_reg.off[31:0]) > 32'(mtu)) ? mtu : 13'(dec.len - g_reg.off[31:0]);
          pkt_started_reg <= 1'b0;
          if (!h_halt && !fail && !end_wqe && !pass && !step_out) begin
            state_reg <= (dec.read || dec.atomic || dec.local_op) ? S_REQ : seek ? S_SEEK : dec.inl ? S_INL : S_RUN;
          end
        end else begin
          case (cur_reg.kind)
            TURN_FLUSH_START: begin
              g_reg.gen <= cur_reg.gen;
              g_reg.stop <= 1'b0;
              g_reg.off <= '0;
              if (resent) g_reg.si <= g_reg.hi;
              rw_reg <= 1'b1;
              rw_kind_reg <= RW_FLUSH;
              if (lop_first) begin
                g_reg.si <= g_reg.hi + 1'b1;
                g_reg.hi <= g_reg.hi + 1'b1;
                g_reg.part <= 1'b0;
                g_reg.lop_asked <= 1'b0;
              end else if (g_reg.lop_asked) begin
                // not yet: ask again when it is done
                g_reg.gen <= cur_reg.gen + 1'b1;
                rw_kind_reg <= RW_LOCAL;
              end
            end
            TURN_FLUSH: if (!old_gen && !g_reg.stop) state_reg <= S_FLUSH;
            default: ;
          endcase
        end
      end
      S_REQ: ;  // see end_wqe, step_out, fail
      S_SEEK: begin
        blk_reg <= wqe_rd_data;
        if (m_reg.num_sge != '0) sge_reg <= sge_of(wqe_rd_data[256+:128]);
        state_reg <= need_blk ? S_INL_BLK : (m_reg.inl && (pkt_rem_reg != '0)) ? S_INL : S_RUN;
      end
      S_RUN: if (go) begin
        if (take_sge) begin
          if (need_blk) begin
            state_reg <= S_BLK;
          end else begin
            pos_reg <= pos_reg + 1'b1;
            sge_reg <= sge_of(blk_reg[128*(32'(pos_reg)+1)+:128]);
            sge_n_reg <= sge_n_reg + 1'b1;
          end
        end
        if (skip_step) begin
          skip_reg <= skip_reg - skip_len;
          sge_reg.addr <= sge_reg.addr + 64'(skip_len);
          sge_reg.left <= sge_reg.left - skip_len;
        end
        if (piece_step) begin
          sge_reg.addr <= sge_reg.addr + 64'(p_len);
          sge_reg.left <= sge_reg.left - 32'(p_len);
          pkt_rem_reg <= pkt_rem_reg - p_len;
          pkt_started_reg <= 1'b1;
        end
      end
      S_BLK: begin
        blk_reg <= wqe_rd_data;
        blk_idx_reg <= blk_idx_reg + 1'b1;
        pos_reg <= '0;
        sge_reg <= sge_of(wqe_rd_data[127:0]);
        sge_n_reg <= sge_n_reg + 1'b1;
        state_reg <= S_RUN;
      end
      S_INL, S_INL_BLK: if (go) begin
        if (need_blk) begin
          state_reg <= S_INL_BLK;
        end else begin
          if (state_reg == S_INL_BLK) begin
            blk_reg <= wqe_rd_data;
            blk_idx_reg <= blk_idx_reg + 1'b1;
          end
          pkt_started_reg <= 1'b1;
          pkt_rem_reg <= pkt_rem_reg - line_len;
          state_reg <= S_INL;
        end
      end
      default: if (go) begin  // S_FLUSH
        g_reg.si <= g_reg.si + 1'b1;
        g_reg.hi <= g_reg.si + 1'b1;
        g_reg.part <= 1'b0;
        k_reg <= k_reg + 1'b1;
        if (!more_wqes) state_reg <= S_NEXT;
      end
    endcase

    if (go && end_pkt) begin
      g_reg.off <= g_reg.off + 36'(pkt_len_reg);
      if (!resent) g_reg.part <= 1'b1;
      rem_reg <= rem_next;
      pkt_len_reg <= (rem_next > 32'(mtu)) ? mtu : rem_next[12:0];
      pkt_rem_reg <= (rem_next > 32'(mtu)) ? mtu : rem_next[12:0];
      pkt_started_reg <= 1'b0;
      used_reg <= used_reg + 16'(pkt_len_reg);
      // Inline data is short and its block is at hand: such a message is not split.
      if (over && !m_reg.inl) begin
        g_reg.gen <= g_reg.gen + 1'b1;
        rw_reg <= 1'b1;
        rw_kind_reg <= RW_AGAIN;
        state_reg <= S_NEXT;
      end
    end
    if (go && (end_pkt || end_wqe)) begin
      g_reg.psn <= psn_end;
      if (psn_before(g_reg.hpsn, psn_end)) g_reg.hpsn <= psn_end;
    end
    if (go && end_wqe) begin
      g_reg.off <= '0;
      g_reg.si <= g_reg.si + 1'b1;
      if (!resent) begin
        g_reg.hi <= g_reg.si + 1'b1;
        g_reg.part <= 1'b0;
        g_reg.lop_asked <= 1'b0;
      end
      k_reg <= k_reg + 1'b1;
      wqe_blk_reg <= wqe_rd_blk;
      if ((state_reg == S_REQ) && !m.local_op) g_reg.rd_issued <= g_reg.rd_issued + 1'b1;
      if (!hdr_cycle && (state_reg != S_REQ)) used_reg <= used_reg + 16'(pkt_len_reg);
      if (!more_wqes) begin
        state_reg <= S_NEXT;
      end else if (over && !hdr_cycle && (state_reg != S_REQ)) begin
        g_reg.gen <= g_reg.gen + 1'b1;
        rw_reg <= 1'b1;
        rw_kind_reg <= RW_AGAIN;
        state_reg <= S_NEXT;
      end else begin
        state_reg <= S_HDR;
      end
    end
    if (go && pass) begin
      if (!dec.local_op) g_reg.off <= g_reg.off - 36'(h_span);
      if (dec.read || dec.atomic) g_reg.rd_issued <= g_reg.rd_issued + 1'b1;
      g_reg.si <= g_reg.si + 1'b1;
      k_reg <= k_reg + 1'b1;
      wqe_blk_reg <= wqe_rd_blk;
      state_reg <= more_wqes ? S_HDR : S_NEXT;
    end
    if (go && fail) begin
      g_reg.off <= '0;
      g_reg.si <= e_wqe + 1'b1;
      if (!wqe_before(e_wqe, g_reg.hi)) begin
        g_reg.hi <= e_wqe + 1'b1;
        g_reg.part <= 1'b0;
        g_reg.lop_asked <= 1'b0;
      end
      g_reg.stop <= 1'b1;
      state_reg <= S_NEXT;
    end
    // the marker of a fence belongs to no QP
    if (pd_valid && pd_ready && !pd.fence) g_reg.fresh <= 1'b0;
    if (go && step_out) begin
      g_reg.gen <= g_reg.gen + 1'b1;
      if (lop_valid && lop_ready) begin
        g_reg.lop_asked <= 1'b1;
        g_reg.lop_op <= m_reg.op[1:0];
        g_reg.lop_sig <= m_reg.sig;
      end
      rw_reg <= 1'b1;
      rw_kind_reg <= step_kind;
      state_reg <= S_NEXT;
    end

    if (rst) begin
      state_reg <= S_NEXT;
      cur_valid_reg <= 1'b0;
      rw_reg <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) rewind_valid_reg <= 1'b0;
    else if ((state_reg == S_NEXT) && rw_reg && rw_free) rewind_valid_reg <= 1'b1;
    else if (rewind_ready) rewind_valid_reg <= 1'b0;
  end

  // The head of a local operation is read twice: when it begins, and when it is done.
  assign trace_wqe_valid = hdr_cycle && go && first_pkt && !resent && !h_halt && !pass;
  assign trace_wqe = '{qpn: cur_reg.qpn, wqe: g_reg.si, psn: g_reg.psn, op: dec.op, len: dec.len,
                       held: step_out || (dec.local_op && (d_status == '0) && !lop_here)};

  assign busy = !init_done_reg || turn_valid || (t_count != '0) || pre_valid_reg || cur_valid_reg || rewind_valid_reg;

  logic unused;
  // ERR changes the generation
  assign unused = ^{look.err, t_in_ready, cur_reg.psn0, cur_reg.blk, cur_reg.rw, cur_reg.npk, m.num_sge, m.fence, d_sge.key};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && (state_reg == S_TURN) && (cur_reg.kind == TURN_FETCH) && !void_turn && !stale) a_idx: assert (cur_reg.widx == g_reg.si)
      else $error("%m: the turn does not begin where the segmenter stands");
  always_ff @(posedge clk)
    if (!rst && turn_valid) a_room: assert (t_in_ready)
      else $error("%m: more turns than there may be");

  // Cases that the tests must reach (make coverage).
  c_completed_before_worked: cover property (@(posedge clk) !rst && state_reg == S_TURN && cur_reg.kind == TURN_FETCH && !void_turn && stale);
  c_local_before_flush: cover property (@(posedge clk) !rst && lop_first);
  c_resumed_in_message: cover property (@(posedge clk) !rst && hdr_cycle && go && g_reg.off != '0 && !h_pass);
`endif

endmodule

`resetall
