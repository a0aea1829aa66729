// SPDX-License-Identifier: Apache-2.0
// Responder: the state of each QP's receive side, and how a packet changes it (IBA volume 1, 9.7.4).
//
//  in_*    found items: packets, receive doorbells, flush tokens (IT_KICK), the fence's token
//  out_*   operations for placement, with the inputs of the WQE fetch and urdma_rx_srq_idx
//  qpc_*   control from qp_mgr; the answer waits only for the three stages of this block
//  kick_*  (from placement) a QP whose flush was cut short: it queues up again; or a QP of UC whose WRITE with immediate was
//          refused: its WQE becomes the next one again. Taken within a few cycles
//  flush_* (to the look-up) QPs to flush. The queue holds each QP at most once, so it never overflows.
//  rst_*   (to placement) a QP begins a new life with WQE rst_idx: the operations of its earlier lives have no effect
//  done_*  read of placement's count of completed WQEs, for QUERY; latency 1
//  take_*  (to urdma_srq) a request to a QP with an SRQ is being checked; got is the answer, valid when the request is
//          decided on, and got_commit takes the WQE. A flush token of XRC asks, too
//  tok_*   (from the look-up) the SRQ of such a token; latency 1
//  qc_*    packets, for the counters of their QPs
//
// A request is checked in the order of volume 1, 9.7.4.1: PSN, opcode sequence, opcode and length, the access right of the
// QP, the key, and only then the receive WQE. The key is not checked here: a WRITE with immediate that finds no WQE goes on
// as a check of its key, and its RNR NAK is sent after that check.
//
// A READ moves the expected PSN past its last response. READ responses and ATOMIC acknowledges pass through only to keep
// their place in order; requester completion decides on them.
//
// FLUSH and ATOMIC WRITE (annex A19) are answered like a READ of 0 bytes: an ATOMIC WRITE when it is placed, a FLUSH by the
// ATOMIC unit. A FLUSH of 0 bytes and a repeated request are only answered.
//
// urdma_rx_unrel decides on packets of UC and UD. If placement refuses the key of a WRITE of UC, the QP goes on. The WQE
// meant for its immediate is taken back, and messages that have begun to use later WQEs meanwhile are lost, as an unreliable
// service may do; `gen` separates them from later ones.
//
// A QP with an SRQ takes a WQE when a message begins to use one. It has at most one (`held`), until that is completed: a
// message of UC that is dropped leaves its WQE to the next message. The SRQ may be gone while its QP is being destroyed; the
// packet then counts as one without a QP. A request of XRC names its SRQ, and urdma_rx_xrc decides whether it may use it. PD,
// CQ and ring are then those of the SRQ.
//
// Three stages: S0 reads, S1 waits, S2 decides and writes. An item whose QP is in S1 waits before S0, and S0 sees what S2
// writes in the same cycle: one item per cycle for different QPs, one every 2 cycles for one QP. Items enter only when the
// output has room.

`resetall
`default_nettype none

module urdma_rx_resp
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_opcode_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  input  wire logic                   in_valid,
  output      logic                   in_ready,
  input  wire found_t                 in,

  output      logic                   out_valid,
  input  wire logic                   out_ready,
  output      op_t                    out,
  output      fetch_t                 out_fetch,
  output      find_t                  out_find,
  output      logic                   no_op,       // an item ended here without an operation

  input  wire logic                   qpc_valid,
  input  wire qpc_t                   qpc,
  output      logic                   qpc_ready,
  output      qpc_rsp_t               qpc_rsp,

  input  wire logic                   kick_valid,
  input  wire kick_t                  kick,
  output      logic                   kick_ready,
  output      logic                   flush_valid,
  output      logic [QPN_W-1:0]       flush_qpn,
  input  wire logic                   flush_ready,

  output      logic                   rst_valid,
  output      logic [QPN_W-1:0]       rst_qpn,
  output      logic [1:0]             rst_gen,
  output      logic [15:0]            rst_idx,
  output      logic                   done_en,
  output      logic [QPN_W-1:0]       done_qpn,
  input  wire logic [15:0]            done_idx,

  output      logic                   take_valid,
  output      logic [SRQN_W-1:0]      take_srqn,
  input  wire srq_got_t               got,
  output      logic                   got_commit,
  input  wire logic                   tok_en,
  input  wire logic [QPN_W-1:0]       tok_qpn,
  output      logic [SRQN_W-1:0]      tok_srqn,

  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic                   qc_valid,
  output      qc_rx_t                 qc,
  output      logic                   trace_rsp_valid,
  output      tr_rsp_t                trace_rsp
);

  logic [URDMA_CNT_N-1:0] cnt_reg;
  assign cnt = cnt_reg;

  typedef enum logic [1:0] {S_ITEM, S_QPC, S_KICK} src_e;

  // ---- S0 ------------------------------------------------------------------------------------------------
  logic [QPN_W:0] init_reg;
  logic s0_valid, s0_room, s1_valid_reg, s2_valid_reg, qpc_busy_reg;
  src_e s0_src, s1_src_reg, s2_src_reg;
  logic [QPN_W-1:0] s0_qpn, s1_qpn_reg, s2_qpn_reg;
  /* verilator lint_off UNUSEDSIGNAL */  // some fields pass unread
  found_t s1_in_reg, s2_in_reg;
  kick_t s1_kick_reg, s2_kick_reg;
  bth_t h;
  /* verilator lint_on UNUSEDSIGNAL */
  resp_st_t rd, s2_st_reg, wd, taken, u_next;
  logic [4:0] out_count;

  assign init_done = init_reg[QPN_W];
  assign s0_room = out_count < 5'd12;

  always_comb begin
    s0_src = S_ITEM;
    s0_qpn = in.qpn;
    s0_valid = in_valid && s0_room;
    if (kick_valid) begin
      s0_src = S_KICK;
      s0_qpn = kick.qpn;
      s0_valid = 1'b1;
    end else if (qpc_valid && !qpc_busy_reg) begin
      s0_src = S_QPC;
      s0_qpn = qpc.qpn;
      s0_valid = 1'b1;
    end
    // S0 reads what S2 writes in this cycle
    if (!init_done || (s1_valid_reg && s1_qpn_reg == s0_qpn)) s0_valid = 1'b0;
  end

  assign in_ready = s0_valid && s0_src == S_ITEM;
  assign take_valid = in_ready && (in.kind == IT_PKT || (in.kind == IT_KICK && in.xrc)) && in.pass && in.srq && !in.bth.response;
  assign take_srqn = in.srqn;
  assign kick_ready = s0_valid && s0_src == S_KICK;
  assign done_en = s0_valid && s0_src == S_QPC;
  assign done_qpn = s0_qpn;

  urdma_ram_live #(.WIDTH($bits(resp_st_t)), .DEPTH(1 << QPN_W)) u_st (
    .clk(clk),
    .wr_en(!init_done || s2_valid_reg),
    .wr_addr(init_done ? s2_qpn_reg : init_reg[QPN_W-1:0]),
    .wr_data(init_done ? wd : '0),
    .rd_en(s0_valid), .rd_addr(s0_qpn), .rd_data(rd)
  );

  logic [15:0] s2_done_reg;
  logic [23:0] s2_npk_reg;         // PSNs of a READ
  logic [31:0] s1_rlen, s1_rsum;

  // a READ of length 0 takes one; a READ of more than 2^30 is refused anyway
  assign s1_rlen = be32(s1_in_reg.ext[127:96]);
  assign s1_rsum = s1_rlen + (32'd128 << s1_in_reg.mtu) - 32'd1;

  always_ff @(posedge clk) begin
    if (s0_valid) begin
      s1_src_reg <= s0_src;
      s1_qpn_reg <= s0_qpn;
      if (s0_src == S_ITEM) s1_in_reg <= in;
      if (s0_src == S_KICK) s1_kick_reg <= kick;
    end
    if (s1_valid_reg) begin
      s2_src_reg <= s1_src_reg;
      s2_qpn_reg <= s1_qpn_reg;
      s2_st_reg <= rd;
      if (s1_src_reg == S_ITEM) begin
        s2_in_reg <= s1_in_reg;
        s2_npk_reg <= (s1_rlen == '0 || s1_in_reg.bth.flush) ? 24'd1 : 24'((s1_rsum >> 7) >> s1_in_reg.mtu);
      end
      if (s1_src_reg == S_KICK) s2_kick_reg <= s1_kick_reg;
      if (s1_src_reg == S_QPC) s2_done_reg <= done_idx;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      init_reg <= '0;
      s1_valid_reg <= 1'b0;
      s2_valid_reg <= 1'b0;
      qpc_busy_reg <= 1'b0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      s1_valid_reg <= s0_valid;
      s2_valid_reg <= s1_valid_reg;
      if (s0_valid && s0_src == S_QPC) qpc_busy_reg <= 1'b1;
      else if (qpc_ready) qpc_busy_reg <= 1'b0;
    end
  end

  // ---- S2 ------------------------------------------------------------------------------------------------
  logic push, flush_push;
  op_t op, op_base, u_op;
  fetch_t fe;
  logic [1:0] feth_plt, feth_sel;
  logic whole, flushes;
  logic is_dup, bad_seq, bad_len, bad_req, no_right, no_persist, need_wqe, has_wqe, posted, srq, srq_dead, use_wqe, c_dup, c_seq, c_noqp, c_no_wqe, c_begun, alive, u_en, u_seq, xrc, x_missing, x_other, x_open;
  drop_why_e u_why;
  trace_verdict_e verdict;
  trace_why_e why;
  logic [12:0] mtu;
  logic [PD_W-1:0] pd;
  logic [23:0] psn_diff, rd_diff;
  logic [31:0] mlen, left, wr_key, aeth_key;
  logic [63:0] wr_va;
  logic [15:0] db_pi, db_step, db_ahead, db_left;
  logic db_old, db_bad;

  assign h = s2_in_reg.bth;
  assign mtu = 13'd128 << s2_in_reg.mtu;
  assign psn_diff = s2_in_reg.psn - s2_st_reg.epsn;
  assign is_dup = psn_diff[23];

  // RETH, and where an ATOMIC has the same fields
  assign aeth_key = be32(s2_in_reg.ext[95:64]);
  assign wr_va = h.first || !h.write ? be64(s2_in_reg.ext[63:0]) : s2_st_reg.va;
  assign wr_key = h.first || !h.write ? aeth_key : s2_st_reg.key;
  assign left = h.first || h.read ? be32(s2_in_reg.ext[127:96]) : s2_st_reg.left;
  // a repeated READ is executed if all its PSNs have been used
  assign rd_diff = psn_diff + s2_npk_reg;

  assign bad_seq = (h.send || h.write)
      ? (h.first == s2_st_reg.in_msg || (s2_st_reg.in_msg && h.write != s2_st_reg.write)) : s2_st_reg.in_msg;
  // FIRST and MIDDLE are full, LAST is not empty; no message is longer than 2^31 (IBA 9.7.4.1.6). The parser has checked that
  // the pad matches the length. The packets of a WRITE add up to the length in its RETH.
  always_comb begin
    bad_len = (h.last ? s2_in_reg.len > mtu : s2_in_reg.len != mtu) || (h.last && !h.first && s2_in_reg.len == '0);
    if (h.write) begin
      if (h.last ? 32'(s2_in_reg.len) != left : left <= 32'(s2_in_reg.len)) bad_len = 1'b1;
      if (left[31] && left[30:0] != '0) bad_len = 1'b1;
    end else if (!h.send) begin
      bad_len = s2_in_reg.len != '0 || (h.read && left[31:30] != '0 && left != 32'h4000_0000);
      if (h.awrite) bad_len = s2_in_reg.len != 13'd8 || left != 32'd8;
      if (h.flush) bad_len = s2_in_reg.len != '0 || (left[31] && left[30:0] != '0 && !whole);
    end else if (s2_st_reg.moff[31] && !h.first) begin
      bad_len = 1'b1;
    end
  end
  assign bad_req = bad_len || !(h.send || h.write || h.read || h.atomic)
      || ((h.read || h.atomic) && s2_in_reg.max_dest_rd_atomic == '0)
      || ((h.atomic || h.awrite) && wr_va[2:0] != 3'd0) || (h.flush && (feth_sel[1] || feth_plt == '0));
  // The QP does not allow the operation: the peer gets a NAK for an invalid request.
  always_comb begin
    no_right = h.atomic && !s2_in_reg.acc[2];
    if (h.write || h.awrite) no_right = !s2_in_reg.acc[0];
    else if (h.flush) no_right = !s2_in_reg.acc[3];
    else if (h.read) no_right = !s2_in_reg.acc[1];
  end
  // no region has the right to be made persistent (docs/hardware-interface.md, section 13)
  assign no_persist = h.flush && feth_plt[1];
  // FETH (annex A19): PLT in bits 3:0, of which 1:0 are used, SEL in 5:4
  assign feth_plt = s2_in_reg.ext[153:152];
  assign feth_sel = s2_in_reg.ext[157:156];
  assign whole = h.flush && feth_sel[0];
  // only a FLUSH of at least one byte needs more than an answer
  assign flushes = h.flush && (whole || left != '0) && !is_dup;
  // the message begins to use a WQE; has one in use
  assign need_wqe = h.write ? h.imm : (h.send && h.first);
  assign has_wqe = s2_st_reg.in_msg && !s2_st_reg.write;
  assign srq = s2_in_reg.srq && !h.response;
  assign xrc = s2_in_reg.xrc;
  assign pd = xrc ? got.cfg.pd : s2_in_reg.pd;
  assign posted = srq ? s2_st_reg.held || got.has_wqe : s2_st_reg.ci != s2_st_reg.pi;
  assign srq_dead = srq && got.dead;
  assign mlen = (h.first ? 32'd0 : s2_st_reg.moff) + 32'(s2_in_reg.len);

  // A doorbell with an index behind the last one is stale: late or repeated. In a full ring of 2**15 the oldest WQE is as far
  // behind the last doorbell as a whole new ring would be ahead of it.
  assign db_pi = s2_in_reg.ext[15:0];
  assign db_step = db_pi - s2_st_reg.pi;
  assign db_ahead = db_pi - s2_st_reg.ci;
  assign db_left = s2_st_reg.pi - s2_st_reg.ci;
  assign db_old = db_step > 16'h8000 || db_ahead < db_left;
  assign db_bad = 17'(db_ahead) > (17'd1 << s2_in_reg.rq.log_entries);

  always_comb begin
    fe.moff = h.first ? 32'd0 : s2_st_reg.moff;
    // with an SRQ, the keys in its WQEs are of the SRQ's PD; the key of a RETH is of the QP's PD, except for XRC
    fe.pd = (srq && h.send) ? got.cfg.pd : pd;
    fe.rq = srq ? got.cfg.ring : s2_in_reg.rq;
    fe.key = wr_key;
    fe.va = wr_va;
    fe.whole = whole;

    op_base = '0;
    op_base.kind = OK_NONE;
    op_base.qpn = s2_qpn_reg;
    op_base.gen = s2_st_reg.gen;
    op_base.unrel = s2_in_reg.unrel;
    op_base.srq = srq;
    op_base.xrc = xrc;
    op_base.len = s2_in_reg.len;
    op_base.line = s2_in_reg.line;
    op_base.lines = s2_in_reg.lines;
    op_base.psn = s2_in_reg.psn;
    op_base.syndrome = SYN_ACK;
    op_base.msn = s2_st_reg.msn;
    op_base.imm_valid = h.imm;
    // immediate data as on the wire, after the RETH or DETH if there is one; a key as a number
    if (h.inv) op_base.imm = be32(s2_in_reg.ext[31:0]);
    else if (h.transport == XP_UD) op_base.imm = s2_in_reg.ext[95:64];
    else op_base.imm = (h.write && h.first) ? s2_in_reg.ext[159:128] : s2_in_reg.ext[31:0];
    op_base.fetch_add = h.fetch_add;
    op_base.arg = h.atomic ? {be64(s2_in_reg.ext[159:96]), be64(s2_in_reg.ext[223:160])} : {wr_va, aeth_key, left};
    // the answer has no bytes
    if (h.awrite || (h.flush && !flushes)) op_base.arg[31:0] = '0;
    op_base.se = s2_in_reg.se;
    op_base.mlen = mlen;
    op_base.wqe = srq ? got.index : s2_st_reg.ci;
    op_base.cqn = xrc ? got.cfg.cqn : s2_in_reg.cqn;
    op_base.pd = pd;
    op_base.dest_qpn = xrc ? 24'(s2_in_reg.srqn) : s2_in_reg.dest_qpn;
    op_base.first = h.first;
    op_base.grh = h.transport == XP_UD;
    op_base.ipv4 = s2_in_reg.ipv4;
    op_base.vlan_valid = s2_in_reg.vlan_valid;
    op_base.tci = s2_in_reg.tci;

    // state after a packet of a SEND or WRITE that is taken; epsn and the rest depend on the transport
    taken = s2_st_reg;
    taken.in_msg = !h.last;
    taken.write = h.write;
    taken.moff = mlen;
    taken.left = left - 32'(s2_in_reg.len);
    taken.va = wr_va + 64'(s2_in_reg.len);
    taken.key = wr_key;
    taken.est = 1'b1;
    if (h.last && (h.send || h.imm)) taken.ci = s2_st_reg.ci + 16'd1;
  end

  assign alive = s2_in_reg.pass && s2_st_reg.active && !s2_st_reg.err && (!srq || xrc || got.exists);
  assign u_en = s2_valid_reg && s2_src_reg == S_ITEM && s2_in_reg.kind == IT_PKT && s2_in_reg.unrel && alive;
  urdma_rx_unrel u_unrel (
    .en(u_en), .in(s2_in_reg), .s(s2_st_reg), .taken, .base(op_base), .bad_len, .no_right, .no_wqe(need_wqe && !posted),
    .next(u_next), .op(u_op), .why(u_why), .seq(u_seq)
  );

  urdma_rx_xrc u_xrc (
    .clk, .look(s0_valid), .look_qpn(s0_qpn), .s1_valid(s1_valid_reg), .s1_srqn(s1_in_reg.srqn),
    .in(s2_in_reg), .s(s2_st_reg), .got,
    .begins(s2_valid_reg && s2_src_reg == S_ITEM && op.xrc && op.first && op.kind inside {OK_DATA, OK_WRITE}),
    .missing(x_missing), .other(x_other), .open(x_open), .tok_en, .tok_qpn, .tok_srqn
  );

  always_comb begin
    wd = s2_st_reg;
    op = op_base;
    push = 1'b0;
    flush_push = 1'b0;
    rst_valid = 1'b0;
    rst_idx = '0;
    c_dup = 1'b0;
    c_seq = 1'b0;
    c_noqp = 1'b0;
    c_no_wqe = 1'b0;
    c_begun = 1'b0;
    verdict = TRV_TAKEN;
    why = TRW_NONE;
    use_wqe = 1'b0;

    case (s2_src_reg)
      S_QPC: begin
        case (qpc.op)
          QPC_RESET: begin
            wd = '0;
            wd.gen = s2_st_reg.gen + 2'd1;
            wd.queued = s2_st_reg.queued;
            rst_valid = s2_valid_reg;
          end
          QPC_RQ_PSN: begin
            wd.active = 1'b1;
            wd.nak = 1'b0;
            wd.in_msg = 1'b0;
            wd.skip = DW_NONE;
            wd.est = 1'b0;
            wd.epsn = qpc.psn;
            wd.msn = '0;
          end
          QPC_ERR: begin
            wd.err = 1'b1;
            flush_push = !s2_st_reg.queued;
          end
          default: ;
        endcase
      end

      S_KICK: begin
        flush_push = !s2_st_reg.queued && s2_st_reg.err;
        // in ERR there is no need: a flush begins with the oldest WQE that is not completed
        if (s2_kick_reg.back && s2_kick_reg.gen == s2_st_reg.gen && !s2_st_reg.err) begin
          wd.gen = s2_st_reg.gen + 2'd1;
          wd.ci = s2_kick_reg.wqe;
          wd.in_msg = 1'b0;
          if (s2_st_reg.in_msg) wd.skip = DW_BAD;
          rst_valid = s2_valid_reg;
          rst_idx = s2_kick_reg.wqe;
        end
      end

      default: begin
        case (s2_in_reg.kind)
          IT_FENCE: begin
            push = 1'b1;
            op.kind = OK_FENCE;
          end

          IT_KICK: begin
            wd.queued = 1'b0;
            // The look-up saw RESET, but the QP has begun and ended a new life since then.
            flush_push = s2_st_reg.err && !s2_in_reg.pass;
            if (s2_in_reg.pass && s2_st_reg.err && !s2_st_reg.flushed && (!xrc || x_open)) begin
              push = 1'b1;
              op.kind = OK_FLUSH;
              op.wqe = s2_st_reg.pi;
              op.est = srq && !xrc;
              wd.flushed = srq;
            end
          end

          IT_DB: begin
            if (s2_in_reg.pass && !srq && !db_old) begin
              if (db_bad) begin
                wd.err = 1'b1;
                push = 1'b1;
                op.err = 1'b1;
                op.ev = 8'(URDMA_EV_QP_FATAL);
              end else begin
                wd.pi = db_pi;
                flush_push = s2_st_reg.err && !s2_st_reg.queued;
              end
            end
          end

          default: begin  // IT_PKT: in every case placement frees the lines
            push = 1'b1;
            if (h.response) begin
              // requester completion decides and counts
              op.kind = OK_RSP;
              op.pass = alive;
              op.swap = h.atomic_ack;
              if (op.swap) op.len = 13'd8;
            end else if (!alive) begin
              c_noqp = 1'b1;
              verdict = TRV_DROPPED;
              why = s2_in_reg.pass ? TRW_ERROR : trace_why_e'(s2_in_reg.why);
            end else if (u_en) begin
              wd = u_next;
              op = u_op;
              c_seq = u_seq;
              c_no_wqe = u_why == DW_NO_WQE;
              c_begun = u_why == DW_NONE && h.first;
              case (u_why)
                DW_NONE: verdict = TRV_TAKEN;
                DW_SEQ: verdict = TRV_GAP;
                DW_NO_WQE: verdict = TRV_RNR;
                default: verdict = TRV_REFUSED;
              endcase
              if (u_why == DW_QKEY) why = TRW_QKEY;
              use_wqe = u_why == DW_NONE && need_wqe;
              if (u_why == DW_NO_WQE && srq_dead) begin
                wd.err = 1'b1;
                op.err = 1'b1;
                op.ev = 8'(URDMA_EV_QP_FATAL);
              end
            end else if (is_dup) begin
              c_dup = 1'b1;
              verdict = TRV_REPEATED;
              if (h.read) begin
                // an invalid repeated request does not move the QP to ERR
                if (!bad_req && !no_right && !no_persist && !x_missing && (rd_diff[23] || rd_diff == '0)) begin
                  op.kind = OK_READ;
                  op.dup = 1'b1;
                  op.ack = 1'b1;
                end else begin
                  why = TRW_OLD;
                end
              end else if (h.atomic) begin
                if (!x_missing) begin
                  op.kind = OK_ATOMIC;
                  op.dup = 1'b1;
                end else begin
                  why = TRW_OLD;
                end
              end else begin
                op.ack = 1'b1;
                op.psn = s2_st_reg.epsn - 24'd1;
              end
            end else if (psn_diff != '0) begin
              c_seq = 1'b1;
              wd.nak = 1'b1;
              op.ack = !s2_st_reg.nak;
              op.psn = s2_st_reg.epsn;
              op.syndrome = SYN_NAK_SEQ;
              verdict = TRV_GAP;
            end else if (bad_seq || bad_req || no_right || x_missing || x_other) begin
              wd.err = 1'b1;
              op.ack = 1'b1;
              op.syndrome = SYN_NAK_INV;
              op.err = 1'b1;
              // reported by the WQE of the message; by an event if there is no WQE, or it is of another SRQ
              op.cqe = has_wqe && !x_missing && !x_other;
              op.status = 8'(URDMA_WC_REM_INV_REQ_ERR);
              op.ev = op.cqe ? 8'd0 : 8'(URDMA_EV_QP_REQ_ERR);
              verdict = TRV_REFUSED;
            end else if (no_persist) begin
              wd.err = 1'b1;
              op.ack = 1'b1;
              op.syndrome = SYN_NAK_ACCESS;
              op.err = 1'b1;
              op.ev = 8'(URDMA_EV_QP_ACCESS_ERR);
              verdict = TRV_REFUSED;
            end else if (need_wqe && !posted && srq_dead) begin
              wd.err = 1'b1;
              op.ack = 1'b1;
              op.syndrome = SYN_NAK_OP;
              op.err = 1'b1;
              op.ev = 8'(URDMA_EV_QP_FATAL);
              verdict = TRV_REFUSED;
            end else if (need_wqe && !posted) begin
              c_no_wqe = 1'b1;
              wd.nak = 1'b1;
              // placement sends another NAK if the key of a WRITE is refused
              op.kind = h.write ? OK_WRITE : OK_NONE;
              op.check = 1'b1;
              op.ack = 1'b1;
              op.syndrome = SYN_RNR | 8'(s2_in_reg.min_rnr);
              verdict = TRV_RNR;
            end else begin
              wd.nak = 1'b0;
              wd.est = 1'b1;
              op.est = !s2_st_reg.est && s2_in_reg.state == 4'(URDMA_QPS_RTR);
              c_begun = h.first || h.read || h.atomic;
              if (h.read || h.atomic) begin
                op.kind = h.awrite ? OK_WRITE : (h.read && !flushes) ? OK_READ : OK_ATOMIC;
                op.mpe = h.awrite || flushes;
                op.ack = h.read && !flushes;
                op.last = h.awrite;
                if (!h.awrite) op.msn = s2_st_reg.msn + 24'd1;
                wd.msn = s2_st_reg.msn + 24'd1;
                wd.epsn = s2_st_reg.epsn + (h.read ? s2_npk_reg : 24'd1);
              end else begin
                use_wqe = need_wqe;
                op.kind = h.write ? OK_WRITE : OK_DATA;
                op.ack = s2_in_reg.ackreq;
                op.last = h.last;
                op.cqe = h.last && (h.send || h.imm);
                op.inv = h.inv;
                wd = taken;
                wd.nak = 1'b0;
                wd.epsn = s2_st_reg.epsn + 24'd1;
                if (h.last) wd.msn = s2_st_reg.msn + 24'd1;
              end
            end
          end
        endcase
      end
    endcase
    if (flush_push) wd.queued = 1'b1;
    op.srq_new = srq && use_wqe && !s2_st_reg.held;
    if (srq && s2_src_reg == S_ITEM && s2_in_reg.kind == IT_PKT) wd.held = (s2_st_reg.held || use_wqe) && !op.cqe;
  end
  assign got_commit = s2_valid_reg && s2_src_reg == S_ITEM && op.srq_new;

  assign no_op = s2_valid_reg && s2_src_reg == S_ITEM && !push;
  assign qpc_ready = s2_valid_reg && s2_src_reg == S_QPC;
  assign qpc_rsp = '{psn: s2_st_reg.epsn, pi: s2_st_reg.pi, ci: s2_done_reg, draining: 1'b0};
  assign rst_qpn = s2_qpn_reg;
  assign rst_gen = s2_st_reg.gen + 2'd1;
  assign trace_rsp_valid = s2_valid_reg && s2_src_reg == S_ITEM && s2_in_reg.kind == IT_PKT && !h.response;
  assign trace_rsp = '{qpn: s2_qpn_reg, psn: s2_in_reg.psn, opcode: s2_in_reg.opcode, verdict: verdict, why: why,
                       more: s2_in_reg.more};

  always_ff @(posedge clk) begin
    cnt_reg <= '0;
    if (s2_valid_reg && s2_src_reg == S_ITEM && !rst) begin
      cnt_reg[URDMA_CNT_RX_DUP] <= c_dup;
      cnt_reg[URDMA_CNT_RX_SEQ_ERR] <= c_seq;
      cnt_reg[URDMA_CNT_RX_NO_QP] <= c_noqp;
      if (u_en) begin
        cnt_reg[URDMA_CNT_RX_DROP_UNREL] <= u_why == DW_BAD;
        cnt_reg[URDMA_CNT_RX_DROP_NO_WQE] <= u_why == DW_NO_WQE;
        cnt_reg[URDMA_CNT_RX_BAD_QKEY] <= u_why == DW_QKEY;
      end
    end
  end

  // ---- counters of the QP -------------------------------------------------------------------------------
  logic qc_valid_reg;
  qc_rx_t qc_reg;
  assign qc_valid = qc_valid_reg;
  assign qc = qc_reg;

  always_ff @(posedge clk) begin
    if (s2_valid_reg) begin
      qc_reg.qpn <= s2_qpn_reg;
      qc_reg.bytes <= (h.valid && h.transport == XP_UD) ? s2_in_reg.len - 13'(GRH_BYTES) : s2_in_reg.len;
      qc_reg.hit <= '{pkt: 1'b1, bytes: 1'b1, send: c_begun && h.send, write: c_begun && (h.write || h.awrite),
                      read: c_begun && h.read && !h.flush && !h.awrite, atomic: c_begun && h.atomic, dup: c_dup, seq_err: c_seq,
                      no_wqe: c_no_wqe};
    end
    qc_valid_reg <= s2_valid_reg && s2_src_reg == S_ITEM && s2_in_reg.kind == IT_PKT && alive && !rst;
  end

  // ---- queues --------------------------------------------------------------------------------------------
  logic out_fifo_ready, flush_fifo_ready;
  logic [QPN_W:0] flush_count;

  find_t find;
  assign find = '{srqn: s2_in_reg.srqn, fresh: got.fresh, left: got.left};

  urdma_fifo #(.WIDTH($bits(op_t) + $bits(fetch_t) + $bits(find_t)), .DEPTH(16)) u_out (
    .clk(clk), .rst(rst),
    .in_valid(s2_valid_reg && push), .in_ready(out_fifo_ready), .in_data({op, fe, find}),
    .out_valid(out_valid), .out_ready(out_ready), .out_data({out, out_fetch, out_find}), .count(out_count)
  );

  // Set once a QP is queued, in the same write that pushes it.
  logic queue_set;
  assign queue_set = s2_valid_reg && flush_push;

  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(1 << QPN_W), .OUT_REG(1)) u_flush (
    .clk(clk), .rst(rst),
    .in_valid(queue_set), .in_ready(flush_fifo_ready), .in_data(s2_qpn_reg),
    .out_valid(flush_valid), .out_ready(flush_ready), .out_data(flush_qpn), .count(flush_count)
  );

  assign busy = s1_valid_reg || s2_valid_reg || out_valid || flush_count != '0 || !init_done;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && s2_valid_reg && push) a_out: assert (out_fifo_ready)
      else $error("%m: an operation is lost");
  always_ff @(posedge clk)
    if (!rst && queue_set) a_flush: assert (flush_fifo_ready)
      else $error("%m: a flush is lost");
`endif

endmodule

`resetall
