// SPDX-License-Identifier: Apache-2.0
// Receive side of the NIC: see README.md in this folder, ports in docs/rtl-interfaces.md.

`resetall
`default_nettype none

module urdma_rx
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  // frames from the MAC
  input  wire logic                   mac_valid,
  input  wire mac_beat_t              mac,
  input  wire logic                   mac_home,    // the frame is an RDMA frame of this NIC, looped back

  // class of each frame, for urdma_eth; entries of the GID table as they are written
  output      logic                   class_valid,
  output      logic                   class_rdma,
  output      logic                   half_full,   // more than half of the packet buffer is in use
  output      logic                   loop_room,   // room for a looped frame
  input  wire logic                   gid_wr_valid,
  input  wire logic [GID_W-1:0]       gid_wr_idx,
  input  wire gid_t                   gid_wr,

  // multicast groups
  input  wire logic                   mco_valid,
  input  wire mc_op_t                 mco,
  output      logic                   mco_ready,
  output      mc_status_e             mco_status,
  output      logic                   mc_any,      // some group has a member

  // receive doorbells
  input  wire logic                   rq_db_valid,
  input  wire wq_db_t                 rq_db,
  output      logic                   rq_db_ready,

  // shared receive queues
  input  wire logic                   sro_valid,
  input  wire srq_op_t                sro,
  output      logic                   sro_ready,
  output      srq_ans_t               sro_ans,
  input  wire logic                   srq_db_valid,
  input  wire srq_db_t                srq_db,
  output      logic                   srq_db_ready,
  output      logic                   srq_ev_valid,
  output      eqe_req_t               srq_ev,
  input  wire logic                   srq_ev_ready,

  // control: responder, requester completion
  input  wire logic                   qpc_valid,
  input  wire qpc_t                   qpc,
  output      logic                   qpc_ready,
  output      qpc_rsp_t               qpc_rsp,
  input  wire logic                   aqc_valid,
  input  wire qpc_t                   aqc,
  output      logic                   aqc_ready,
  output      qpc_rsp_t               aqc_rsp,
  input  wire logic                   fence_req,
  output      logic                   fence_done,

  // QP configuration and GID table, 0: responder, 1: requester completion
  output      logic [1:0]             qpr_req_valid,
  output      logic [1:0][QPN_W-1:0]  qpr_req_qpn,
  input  wire logic [1:0]             qpr_req_ready,
  input  wire logic [1:0]             qpr_rsp_valid,
  input  wire qp_cfg_t [1:0]          qpr_rsp,
  output      logic [1:0][GID_W-1:0]  gid_idx,
  input  wire gid_t [1:0]             gid,

  // SEND with invalidate. sync: the pieces checked before are written. inv: a key is invalid. reads_over: tx has finished the
  // reads that it checked with that key
  output      logic                   mro_valid,
  output      mr_op_t                 mro,
  input  wire logic                   mro_ready,
  input  wire logic                   mro_rsp_valid,
  input  wire mro_status_e            mro_rsp,
  input  wire logic                   sync_req,
  output      logic                   sync_done,
  output      logic                   inv_valid,
  output      logic [31:0]            inv_key,
  input  wire logic                   reads_over,

  // time, for the timers of requester completion
  input  wire logic [63:0]            cycles,
  output      logic                   timer_armed,
  output      logic [31:0]            timer_cycles,

  // tx
  input  wire logic                   sent_valid,
  input  wire sent_t                  sent,
  output      logic                   sent_ready,
  input  wire logic                   made_valid,
  input  wire made_t                  made,
  output      logic                   made_ready,
  output      logic                   acked_valid,
  output      acked_t                 acked,
  input  wire logic                   acked_ready,
  output      logic                   ack_req_valid,
  output      ack_req_t               ack_req,
  input  wire logic                   ack_req_ready,

  // translation, 0: payload, 1: receive rings
  output      logic [1:0]             mr_req_valid,
  output      mr_req_t [1:0]          mr_req,
  input  wire logic [1:0]             mr_req_ready,
  input  wire logic [1:0]             mr_rsp_valid,
  input  wire mr_rsp_t [1:0]          mr_rsp,
  output      logic [1:0]             mr_rsp_ready,

  // DMA, 0: receive WQEs, payload; 1: ATOMICs
  output      logic [1:0]             rd_req_valid,
  output      dma_rd_req_t [1:0]      rd_req,
  input  wire logic [1:0]             rd_req_ready,
  input  wire logic [1:0]             rd_rsp_valid,
  input  wire dma_rd_rsp_t            rd_rsp,
  output      logic [1:0]             wr_valid,
  output      dma_wr_t [1:0]          wr,
  input  wire logic [1:0]             wr_ready,

  // completions and errors, 0: responder, 1: requester completion
  output      logic [CQC_N-1:0]       cqe_valid,
  output      cqe_req_t [CQC_N-1:0]   cqe,
  input  wire logic [CQC_N-1:0]       cqe_ready,
  output      logic [1:0]             err_valid,
  output      qp_err_t [1:0]          err,
  input  wire logic [1:0]             err_ready,

  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic [6:0]             rx_bytes,

  // counters of QPs
  output      logic                   qc_rx_valid,
  output      qc_rx_t                 qc_rx,
  output      logic                   qc_resp_valid,
  output      qc_resp_t               qc_resp,
  output      logic                   qc_req_valid,
  output      qc_req_t                qc_req,

  output      logic                   trace_acked_valid,
  output      tr_acked_t              trace_acked,
  output      logic                   trace_in_valid,
  output      tr_in_t                 trace_in,
  output      logic                   trace_rsp_valid,
  output      tr_rsp_t                trace_rsp,
  output      logic                   trace_req_valid,
  output      tr_req_t                trace_req,
  output      logic                   trace_put_valid,
  output      tr_put_t                trace_put,
  output      logic                   trace_bad_valid,
  output      tr_bad_t                trace_bad,
  output      logic                   trace_voided_valid,
  output      tr_voided_t             trace_voided,
  output      logic                   trace_mute_valid,
  output      tr_mute_t               trace_mute,
  output      logic                   trace_loss_valid,
  output      tr_loss_t               trace_loss
);

  logic loop_room_reg;
  assign loop_room = loop_room_reg;

  // ---- parser --------------------------------------------------------------------------------------------
  logic [1:0] pkt_valid, pkt_ready, pq_valid, pq_ready;
  pkt_t pkt;
  pkt_t [1:0] pq;
  logic [1:0][$clog2(PKT_QUEUE):0] pq_count;
  logic buf_rd_en, free_valid, parse_busy;
  logic [BUF_W-1:0] buf_rd_line;
  logic [511:0] buf_rd_data;
  logic [6:0] free_lines;
  logic [BUF_W:0] buf_free;
  logic [URDMA_CNT_N-1:0] cnt_parse, cnt_resp, cnt_cmpl;
  logic mc_look_valid, mc_hit, mc_full, mc_loop_room, copy_valid, copy_last;
  mc_look_t mc_look;
  logic [MCG_W-1:0] mc_hit_idx;
  logic [MCM_W:0] mc_hit_copies;
  logic [23:0] copy_qpn;

  logic parse_clk;
  urdma_clk #(.PART(PART_RX_PARSE)) clk_u_parse (.clk, .part_clk(parse_clk));
  urdma_rx_parse u_parse (
    .clk(parse_clk), .rst(rst), .busy(parse_busy),
    .mac_valid(mac_valid), .mac(mac), .mac_home,
    .pkt_valid(pkt_valid), .pkt(pkt), .pkt_ready(pkt_ready),
    .req_ready(pq_count[0] < ($clog2(PKT_QUEUE)+1)'(PKT_QUEUE - RSP_PLACES)),
    .rd_en(buf_rd_en), .rd_line(buf_rd_line), .rd_data(buf_rd_data),
    .free_valid(free_valid), .free_lines(free_lines),
    .gid_wr_valid(gid_wr_valid), .gid_wr_idx(gid_wr_idx), .gid_wr(gid_wr),
    .mc_look_valid, .mc_look, .mc_hit, .mc_hit_idx, .mc_hit_copies, .mc_full,
    .class_valid(class_valid), .class_rdma(class_rdma), .free(buf_free),
    .cnt(cnt_parse), .rx_bytes(rx_bytes), .trace_in_valid, .trace_in, .trace_bad_valid, .trace_bad
  );

  for (genvar i = 0; i < 2; i++) begin : g_pq
    urdma_fifo #(.WIDTH($bits(pkt_t)), .DEPTH(PKT_QUEUE), .OUT_REG(1)) u_pq (
      .clk(clk), .rst(rst),
      .in_valid(pkt_valid[i]), .in_ready(pkt_ready[i]), .in_data(pkt),
      .out_valid(pq_valid[i]), .out_ready(pq_ready[i]), .out_data(pq[i]), .count(pq_count[i])
    );
  end

  // Looped frames may fill 3/8 of each store for packets; the rest is for the MAC, which cannot be stalled. When a looped
  // frame begins, earlier ones may not be counted yet: one that has just ended, and the packets in the parser's stages.
  localparam int LOOP_LINES = (3 << BUF_W) / 8;
  localparam int LOOP_PKTS = (3 * PKT_QUEUE) / 8;

  assign half_full = !buf_free[BUF_W] && !buf_free[BUF_W-1];
  always_ff @(posedge clk) begin
    loop_room_reg <= buf_free >= (BUF_W+1)'((1 << BUF_W) - LOOP_LINES) && pq_count[0] <= ($clog2(PKT_QUEUE)+1)'(LOOP_PKTS)
        && pq_count[1] <= ($clog2(PKT_QUEUE)+1)'(LOOP_PKTS) && mc_loop_room;
  end

  // ---- look-ups: packets, doorbells, QPs to look at again; the fence has priority -------------------------
  logic [1:0] fence_sent_reg, fence_back_reg, fence_out;
  logic flush_valid, flush_ready, kick_valid, kick_ready;
  logic [QPN_W-1:0] flush_qpn, kick_qpn;
  logic [1:0] it_valid, it_ready, found_valid, found_ready;
  item_t [1:0] it;
  found_t [1:0] found;
  logic [2:0] rq_grant;
  logic [1:0] rk_grant;
  logic rq_grant_valid, rk_grant_valid;
  logic [1:0] fence_put, is_fence;   // a token is to go; it goes next, as the look-up holds no item

  // Decisions that may wait: one for each packet between the parser and the WQE fetch, and those in the stages in between.
  localparam int RR_DEPTH = 2 * PKT_QUEUE;
  localparam int RR_CW = $clog2(RR_DEPTH) + 1;

  // The responder's half comes second. A READ response that requester completion has decided on before its own token may
  // still wait in front of the other look-up. Its result must be reported before the fence is done; otherwise a later life of
  // the QP would get it.
  logic [RR_CW:0] rr_made_reg, rr_used_reg, rr_to_reg;
  /* verilator lint_off UNUSEDSIGNAL */  // its sign
  logic [RR_CW:0] rr_past;
  /* verilator lint_on UNUSEDSIGNAL */
  logic rr_in_valid, rr_in_ready, rr_ready;

  assign rr_past = rr_used_reg - rr_to_reg;
  assign fence_put[1] = fence_req && !fence_sent_reg[1];
  assign fence_put[0] = fence_req && !fence_sent_reg[0] && fence_back_reg[1] && !rr_past[RR_CW];
  assign fence_done = fence_req && (&fence_back_reg);

  always_ff @(posedge clk) begin
    if (rst) begin
      rr_made_reg <= '0;
      rr_used_reg <= '0;
    end else begin
      rr_made_reg <= rr_made_reg + (RR_CW+1)'(rr_in_valid && rr_in_ready);
      rr_used_reg <= rr_used_reg + (RR_CW+1)'(rr_ready);
    end
    if (!fence_back_reg[1]) rr_to_reg <= rr_made_reg + (RR_CW+1)'(rr_in_valid && rr_in_ready);
  end

  always_ff @(posedge clk) begin
    if (rst || !fence_req) begin
      fence_sent_reg <= '0;
      fence_back_reg <= '0;
    end else begin
      fence_sent_reg <= fence_sent_reg | (is_fence & it_ready);
      fence_back_reg <= fence_back_reg | fence_out;
    end
  end

  function automatic item_t plain(input item_e kind, input logic [QPN_W-1:0] qpn, input logic [15:0] pi);
    item_t r;
    r = '0;
    r.kind = kind;
    r.pkt.dqpn = 24'(qpn);
    r.pkt.ext[15:0] = pi;
    return r;
  endfunction

  // A choice, once made, holds until it is taken: the request to the configuration must not change.
  logic [2:0] rq_hold_reg;
  logic [1:0] rk_hold_reg;
  logic [2:0] rq_req, rq_sel;
  logic [1:0] rk_req, rk_sel;

  assign rq_req = {flush_valid, rq_db_valid, pq_valid[0] && (!pq[0].mc || copy_valid)};
  assign rk_req = {kick_valid, pq_valid[1]};
  assign is_fence[0] = fence_put[0] && (rq_hold_reg == '0);
  assign is_fence[1] = fence_put[1] && (rk_hold_reg == '0);
  assign rq_sel = is_fence[0] ? 3'd0 : (rq_hold_reg != '0) ? rq_hold_reg : rq_grant;
  assign rk_sel = is_fence[1] ? 2'd0 : (rk_hold_reg != '0) ? rk_hold_reg : rk_grant;
  assign it_valid = {is_fence[1] || rk_sel != '0, is_fence[0] || rq_sel != '0};

  urdma_arb_rr #(.N(3)) u_rq_arb (
    .clk(clk), .rst(rst), .req(rq_req), .advance(it_ready[0] && !is_fence[0]),
    .grant(rq_grant), .grant_idx(), .grant_valid(rq_grant_valid)
  );
  urdma_arb_rr #(.N(2)) u_rk_arb (
    .clk(clk), .rst(rst), .req(rk_req), .advance(it_ready[1] && !is_fence[1]),
    .grant(rk_grant), .grant_idx(), .grant_valid(rk_grant_valid)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      rq_hold_reg <= '0;
      rk_hold_reg <= '0;
    end else begin
      rq_hold_reg <= it_ready[0] ? '0 : rq_sel;
      rk_hold_reg <= it_ready[1] ? '0 : rk_sel;
    end
  end

  always_comb begin
    it[0] = '{kind: IT_PKT, pkt: pq[0]};
    if (pq[0].mc) begin
      // the last copy frees the lines that all copies have read
      it[0].pkt.dqpn = copy_qpn;
      if (!copy_last) it[0].pkt.lines = '0;
      it[0].pkt.mc = !copy_last;
    end
    if (is_fence[0]) it[0] = plain(IT_FENCE, '0, '0);
    else if (rq_sel[1]) it[0] = plain(IT_DB, rq_db.qpn, rq_db.pi);
    else if (rq_sel[2]) it[0] = plain(IT_KICK, flush_qpn, '0);
    it[1] = '{kind: IT_PKT, pkt: pq[1]};
    if (is_fence[1]) it[1] = plain(IT_FENCE, '0, '0);
    else if (rk_sel[1]) it[1] = plain(IT_KICK, kick_qpn, '0);
  end

  assign pq_ready = {it_ready[1] && rk_sel[0], it_ready[0] && rq_sel[0] && (!pq[0].mc || copy_last)};
  assign rq_db_ready = it_ready[0] && rq_sel[1];
  assign flush_ready = it_ready[0] && rq_sel[2];
  assign kick_ready = it_ready[1] && rk_sel[1];

  // ---- multicast: a datagram stays at the head of the queue until its last copy has gone -------------------------------
  logic mcast_clk;
  urdma_clk #(.PART(PART_RX_MCAST)) clk_u_mcast (.clk, .part_clk(mcast_clk));
  urdma_rx_mcast u_mcast (
    .clk(mcast_clk), .rst(rst),
    .look_valid(mc_look_valid), .look(mc_look), .hit(mc_hit), .hit_idx(mc_hit_idx), .hit_copies(mc_hit_copies),
    .took_valid(pkt_valid[0] && pkt.mc), .took('{copies: pkt.mc_copies, lines: pkt.lines}), .full(mc_full),
    .loop_room(mc_loop_room),
    .dgram_valid(pq_valid[0] && pq[0].mc), .dgram_idx(pq[0].mc_idx), .dgram_dip(pq[0].dip),
    .dgram_cost('{copies: pq[0].mc_copies, lines: pq[0].lines}),
    .copy_valid, .copy_qpn, .copy_last, .copy_ready(it_ready[0] && rq_sel[0] && pq[0].mc),
    .op_valid(mco_valid), .op(mco), .op_ready(mco_ready), .op_status(mco_status), .any(mc_any)
  );

  /* verilator lint_off UNUSEDSIGNAL */  // flush tokens of the responder only
  logic [1:0] tok_en;
  logic [1:0][QPN_W-1:0] tok_qpn;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [SRQN_W-1:0] tok_srqn;

  localparam logic [15:0] RESP_STATES = (16'd1 << URDMA_QPS_RTR) | (16'd1 << URDMA_QPS_RTS)
      | (16'd1 << URDMA_QPS_SQD) | (16'd1 << URDMA_QPS_SQE);
  localparam logic [15:0] CMPL_STATES = (16'd1 << URDMA_QPS_RTS) | (16'd1 << URDMA_QPS_SQD);

  for (genvar i = 0; i < 2; i++) begin : g_lookup
    urdma_rx_lookup #(
      .STATES(i == 0 ? RESP_STATES : CMPL_STATES), .RSP_STATES(CMPL_STATES), .RSP_DECIDED(i == 0), .SEND_CQ(i)
    ) u_lookup (
      .clk(clk), .rst(rst),
      .in_valid(it_valid[i]), .in_ready(it_ready[i]), .in(it[i]),
      .qpr_req_valid(qpr_req_valid[i]), .qpr_req_qpn(qpr_req_qpn[i]), .qpr_req_ready(qpr_req_ready[i]),
      .qpr_rsp_valid(qpr_rsp_valid[i]), .qpr_rsp(qpr_rsp[i]),
      .gid_idx(gid_idx[i]), .gid(gid[i]), .tok_en(tok_en[i]), .tok_qpn(tok_qpn[i]), .tok_srqn,
      .out_valid(found_valid[i]), .out_ready(found_ready[i]), .out(found[i])
    );
  end

  // ---- responder -------------------------------------------------------------------------------------------
  logic r_op_valid, r_op_ready, w_op_valid, w_op_ready, no_op, place_valid, place_ready, piece_valid, piece_ready;
  op_t r_op, w_op, place_op;
  fetch_t r_fetch, w_fetch;
  find_t r_find;
  logic take_valid, got_commit, srq_init, srq_busy, idx_busy, kill_valid, kill_ready;
  logic [SRQN_W-1:0] take_srqn, kill_srqn;
  srq_got_t got;
  piece_t piece;
  logic rst_valid, done_en, rekick_valid, rekick_ready, unrel_bad;
  kick_t rekick;
  logic [1:0] op_done;
  logic [PIECE_W-1:0] issued, written;
  logic [INV_W:0] invs_done, invs_kept;
  logic [QPN_W-1:0] rst_qpn, done_qpn;
  logic [1:0] rst_gen;
  logic [15:0] done_idx, rst_idx;
  logic resp_busy, wqe_busy, place_busy, cmpl_busy, atm_unit_busy, resp_init, place_init, cmpl_init, atm_init;
  logic rr_valid, rdone_valid, rdone_ready;
  rr_t rr_in, rr;
  rdone_t rdone;
  logic atm_valid, atm_ready, atm_busy, atm_hold, chk_busy, chk_writes, atm_ended, dead_valid, dead_ready, dead_fifo_ready;
  atm_t atm;
  logic [QPN_W-1:0] chk_qpn;
  logic [1:0] ack_valid, ack_ready, rerr_valid, rerr_ready;
  ack_req_t [1:0] ack;
  qp_err_t [1:0] rerr;
  qp_err_t dead;

  logic resp_clk;
  urdma_clk #(.PART(PART_RX_RESP)) clk_u_resp (.clk, .part_clk(resp_clk));
  urdma_rx_resp u_resp (
    .clk(resp_clk), .rst(rst), .init_done(resp_init), .busy(resp_busy),
    .in_valid(found_valid[0]), .in_ready(found_ready[0]), .in(found[0]),
    .out_valid(r_op_valid), .out_ready(r_op_ready), .out(r_op), .out_fetch(r_fetch), .out_find(r_find), .no_op(no_op),
    .qpc_valid(qpc_valid), .qpc(qpc), .qpc_ready(qpc_ready), .qpc_rsp(qpc_rsp),
    .kick_valid(rekick_valid), .kick(rekick), .kick_ready(rekick_ready),
    .flush_valid(flush_valid), .flush_qpn(flush_qpn), .flush_ready(flush_ready),
    .rst_valid(rst_valid), .rst_qpn(rst_qpn), .rst_gen(rst_gen), .rst_idx(rst_idx),
    .done_en(done_en), .done_qpn(done_qpn), .done_idx(done_idx),
    .take_valid, .take_srqn, .got, .got_commit, .tok_en(tok_en[0]), .tok_qpn(tok_qpn[0]), .tok_srqn,
    .cnt(cnt_resp), .qc_valid(qc_rx_valid), .qc(qc_rx), .trace_rsp_valid, .trace_rsp
  );

  logic srq_clk;
  urdma_clk #(.PART(PART_RX_SRQ)) clk_u_srq (.clk, .part_clk(srq_clk));
  urdma_srq u_srq (
    .clk(srq_clk), .rst(rst), .init_done(srq_init), .busy(srq_busy),
    .op_valid(sro_valid), .op(sro), .op_ready(sro_ready), .op_ans(sro_ans),
    .db_valid(srq_db_valid), .db(srq_db), .db_ready(srq_db_ready),
    .take_valid, .take_srqn, .got_valid(), .got, .got_commit,
    .kill_valid, .kill_srqn, .kill_ready,
    .ev_valid(srq_ev_valid), .ev(srq_ev), .ev_ready(srq_ev_ready)
  );

  // Two clients read rings through one port: 0, the WQE fetch; 1, the SRQ indices.
  logic [1:0] ring_mr_req_valid, ring_mr_req_ready, ring_mr_rsp_valid, ring_mr_rsp_ready;
  logic [1:0] ring_rd_req_valid, ring_rd_req_ready, ring_rd_rsp_valid;
  mr_req_t [1:0] ring_mr_req;
  dma_rd_req_t [1:0] ring_rd_req;

  logic idx_clk;
  urdma_clk #(.PART(PART_RX_SRQ_IDX)) clk_u_idx (.clk, .part_clk(idx_clk));
  urdma_rx_srq_idx u_idx (
    .clk(idx_clk), .rst(rst), .busy(idx_busy),
    .in_valid(r_op_valid), .in_ready(r_op_ready), .in(r_op), .in_fetch(r_fetch), .in_find(r_find),
    .out_valid(w_op_valid), .out_ready(w_op_ready), .out(w_op), .out_fetch(w_fetch),
    .kill_valid, .kill_srqn, .kill_ready,
    .mr_req_valid(ring_mr_req_valid[1]), .mr_req(ring_mr_req[1]), .mr_req_ready(ring_mr_req_ready[1]),
    .mr_rsp_valid(ring_mr_rsp_valid[1]), .mr_rsp(mr_rsp[1]), .mr_rsp_ready(ring_mr_rsp_ready[1]),
    .rd_req_valid(ring_rd_req_valid[1]), .rd_req(ring_rd_req[1]), .rd_req_ready(ring_rd_req_ready[1]),
    .rd_rsp_valid(ring_rd_rsp_valid[1]), .rd_rsp(rd_rsp)
  );

  urdma_rx_ring_mux u_ring_mux (
    .clk, .rst,
    .c_mr_req_valid(ring_mr_req_valid), .c_mr_req(ring_mr_req), .c_mr_req_ready(ring_mr_req_ready),
    .c_mr_rsp_valid(ring_mr_rsp_valid), .c_mr_rsp_ready(ring_mr_rsp_ready),
    .c_rd_req_valid(ring_rd_req_valid), .c_rd_req(ring_rd_req), .c_rd_req_ready(ring_rd_req_ready),
    .c_rd_rsp_valid(ring_rd_rsp_valid),
    .mr_req_valid(mr_req_valid[1]), .mr_req(mr_req[1]), .mr_req_ready(mr_req_ready[1]),
    .mr_rsp_valid(mr_rsp_valid[1]), .mr_rsp_ready(mr_rsp_ready[1]),
    .rd_req_valid(rd_req_valid[0]), .rd_req(rd_req[0]), .rd_req_ready(rd_req_ready[0]),
    .rd_rsp_valid(rd_rsp_valid[0]), .rd_rsp_last(rd_rsp.last)
  );

  logic wqe_clk;
  urdma_clk #(.PART(PART_RX_WQE)) clk_u_wqe (.clk, .part_clk(wqe_clk));
  urdma_rx_wqe u_wqe (
    .clk(wqe_clk), .rst(rst), .busy(wqe_busy),
    .in_valid(w_op_valid), .in_ready(w_op_ready), .in(w_op), .in_fetch(w_fetch),
    .rr_valid(rr_valid), .rr(rr), .rr_ready(rr_ready), .invs_done, .invs_kept, .issued(issued),
    .op_valid(place_valid), .op_ready(place_ready), .op(place_op),
    .piece_valid(piece_valid), .piece_ready(piece_ready), .piece(piece),
    .mr1_req_valid(ring_mr_req_valid[0]), .mr1_req(ring_mr_req[0]), .mr1_req_ready(ring_mr_req_ready[0]),
    .mr1_rsp_valid(ring_mr_rsp_valid[0]), .mr1_rsp(mr_rsp[1]), .mr1_rsp_ready(ring_mr_rsp_ready[0]),
    .rd_req_valid(ring_rd_req_valid[0]), .rd_req(ring_rd_req[0]), .rd_req_ready(ring_rd_req_ready[0]),
    .rd_rsp_valid(ring_rd_rsp_valid[0]), .rd_rsp(rd_rsp),
    .mr0_req_valid(mr_req_valid[0]), .mr0_req(mr_req[0]), .mr0_req_ready(mr_req_ready[0])
  );

  logic place_clk;
  urdma_clk #(.PART(PART_RX_PLACE)) clk_u_place (.clk, .part_clk(place_clk));
  urdma_rx_place u_place (
    .clk(place_clk), .rst(rst), .init_done(place_init), .busy(place_busy),
    .op_valid(place_valid), .op_ready(place_ready), .op(place_op),
    .piece_valid(piece_valid), .piece_ready(piece_ready), .piece(piece),
    .mr_rsp_valid(mr_rsp_valid[0]), .mr_rsp_ready(mr_rsp_ready[0]), .mr_rsp(mr_rsp[0]),
    .rd_en(buf_rd_en), .rd_line(buf_rd_line), .rd_data(buf_rd_data),
    .free_valid(free_valid), .free_lines(free_lines),
    .wr_valid(wr_valid[0]), .wr(wr[0]), .wr_ready(wr_ready[0]),
    .invs_done, .invs_kept, .written(written), .inv_valid, .inv_key, .reads_over,
    .mro_valid(mro_valid), .mro(mro), .mro_ready(mro_ready), .mro_rsp_valid(mro_rsp_valid), .mro_rsp(mro_rsp),
    .atm_valid(atm_valid), .atm(atm), .atm_ready(atm_ready), .atm_busy(atm_busy), .atm_hold(atm_hold), .atm_ended,
    .chk_qpn(chk_qpn), .chk_busy(chk_busy), .chk_writes(chk_writes),
    .dead_valid(dead_valid && dead_fifo_ready), .dead_qpn(dead.qpn), .dead_ready(dead_ready),
    .rdone_valid(rdone_valid), .rdone(rdone), .rdone_ready(rdone_ready),
    .cqe_valid(cqe_valid[0]), .cqe(cqe[0]), .cqe_ready(cqe_ready[0]),
    .ack_valid(ack_valid[0]), .ack(ack[0]), .ack_ready(ack_ready[0]),
    .err_valid(rerr_valid[0]), .err(rerr[0]), .err_ready(rerr_ready[0]),
    .rst_valid(rst_valid), .rst_qpn(rst_qpn), .rst_gen(rst_gen), .rst_idx(rst_idx),
    .done_en(done_en), .done_qpn(done_qpn), .done_idx(done_idx),
    .kick_valid(rekick_valid), .kick(rekick), .kick_ready(rekick_ready),
    .unrel_bad(unrel_bad), .op_done(op_done), .fence_out(fence_out[0]), .trace_put_valid, .trace_put,
    .trace_voided_valid, .trace_voided
  );

  // ---- ATOMICs ----------------------------------------------------------------------------------------------
  logic atomic_clk;
  urdma_clk #(.PART(PART_RX_ATOMIC)) clk_u_atomic (.clk, .part_clk(atomic_clk));
  urdma_rx_atomic u_atomic (
    .clk(atomic_clk), .rst(rst), .init_done(atm_init), .busy(atm_unit_busy), .ended(atm_ended),
    .in_valid(atm_valid), .in(atm), .in_ready(atm_ready),
    .rd_req_valid(rd_req_valid[1]), .rd_req(rd_req[1]), .rd_req_ready(rd_req_ready[1]),
    .rd_rsp_valid(rd_rsp_valid[1]), .rd_rsp(rd_rsp),
    .wr_valid(wr_valid[1]), .wr(wr[1]), .wr_ready(wr_ready[1]),
    .rsp_valid(ack_valid[1]), .rsp(ack[1]), .rsp_ready(ack_ready[1]),
    .err_valid(dead_valid), .err(dead), .err_ready(dead_ready && dead_fifo_ready),
    .chk_qpn(chk_qpn), .chk_busy(chk_busy), .chk_writes(chk_writes),
    .rst_valid(rst_valid), .rst_qpn(rst_qpn), .trace_mute_valid, .trace_mute
  );

  // A failed ATOMIC moves its QP to ERR here before the error is reported.
  urdma_fifo #(.WIDTH($bits(qp_err_t)), .DEPTH(2)) u_dead (
    .clk(clk), .rst(rst),
    .in_valid(dead_valid && dead_ready), .in_ready(dead_fifo_ready), .in_data(dead),
    .out_valid(rerr_valid[1]), .out_ready(rerr_ready[1]), .out_data(rerr[1]), .count()
  );

  assign atm_busy = atm_unit_busy || rerr_valid[1];

  // Two sources of answers, two of errors. A choice, once made, holds until it is taken. The ATOMIC unit is rarely used and
  // goes first.
  logic ack_hold_reg, ack_sel_reg, ack_sel, err_hold_reg, err_sel_reg, err_sel;

  assign ack_sel = ack_hold_reg ? ack_sel_reg : ack_valid[1];
  assign ack_req_valid = ack_valid[ack_sel];
  assign ack_req = ack[ack_sel];
  assign ack_ready = {ack_sel && ack_req_ready, !ack_sel && ack_req_ready};
  assign err_sel = err_hold_reg ? err_sel_reg : rerr_valid[1];
  assign err_valid[0] = rerr_valid[err_sel];
  assign err[0] = rerr[err_sel];
  assign rerr_ready = {err_sel && err_ready[0], !err_sel && err_ready[0]};

  always_ff @(posedge clk) begin
    if (rst) begin
      ack_hold_reg <= 1'b0;
      err_hold_reg <= 1'b0;
    end else begin
      ack_hold_reg <= ack_req_valid && !ack_req_ready;
      err_hold_reg <= err_valid[0] && !err_ready[0];
    end
    ack_sel_reg <= ack_sel;
    err_sel_reg <= err_sel;
  end

  // ---- sync -------------------------------------------------------------------------------------------------------
  // First wait until the pieces given to translation before are written, then until the ATOMICs under way have ended; meanwhile
  // no ATOMIC begins.
  typedef enum logic [1:0] {Y_IDLE, Y_PIECES, Y_ATOMICS, Y_DONE} sync_e;
  sync_e sync_reg;
  logic [PIECE_W-1:0] sync_to_reg;
  /* verilator lint_off UNUSEDSIGNAL */  // its sign
  logic [PIECE_W-1:0] sync_left;
  /* verilator lint_on UNUSEDSIGNAL */

  assign sync_left = written - sync_to_reg;
  assign atm_hold = sync_reg == Y_ATOMICS;
  assign sync_done = sync_reg == Y_DONE && sync_req;

  always_ff @(posedge clk) begin
    if (rst || !sync_req) begin
      sync_reg <= Y_IDLE;
    end else begin
      case (sync_reg)
        Y_IDLE: begin
          sync_reg <= Y_PIECES;
          sync_to_reg <= issued;
        end
        Y_PIECES: if (!sync_left[PIECE_W-1]) sync_reg <= Y_ATOMICS;
        Y_ATOMICS: if (!atm_busy) sync_reg <= Y_DONE;
        default: ;
      endcase
    end
  end

  // ---- decisions on READ responses ----------------------------------------------------------------------------
  urdma_fifo #(.WIDTH($bits(rr_t)), .DEPTH(RR_DEPTH), .OUT_REG(1)) u_rr (
    .clk(clk), .rst(rst),
    .in_valid(rr_in_valid), .in_ready(rr_in_ready), .in_data(rr_in),
    .out_valid(rr_valid), .out_ready(rr_ready), .out_data(rr), .count()
  );

  // ---- requester completion -----------------------------------------------------------------------------------
  logic cmpl_clk;
  urdma_clk #(.PART(PART_RX_CMPL)) clk_u_cmpl (.clk, .part_clk(cmpl_clk));
  urdma_rx_cmpl u_cmpl (
    .clk(cmpl_clk), .rst(rst), .init_done(cmpl_init), .busy(cmpl_busy),
    .sent_valid(sent_valid), .sent(sent), .sent_ready(sent_ready),
    .made_valid(made_valid), .made(made), .made_ready(made_ready),
    .in_valid(found_valid[1]), .in_ready(found_ready[1]), .in(found[1]),
    .kick_valid(kick_valid), .kick_qpn(kick_qpn), .kick_ready(kick_ready),
    .aqc_valid(aqc_valid), .aqc(aqc), .aqc_ready(aqc_ready), .aqc_rsp(aqc_rsp),
    .acked_valid(acked_valid), .acked(acked), .acked_ready(acked_ready),
    .cqe_valid(cqe_valid[1]), .cqe(cqe[1]), .cqe_ready(cqe_ready[1]),
    .err_valid(err_valid[1]), .err(err[1]), .err_ready(err_ready[1]),
    .cycles(cycles), .timer_armed(timer_armed), .timer_cycles(timer_cycles),
    .rr_valid(rr_in_valid), .rr(rr_in), .rr_ready(rr_in_ready),
    .rdone_valid(rdone_valid), .rdone(rdone), .rdone_ready(rdone_ready),
    .fence_out(fence_out[1]),
    .cnt(cnt_cmpl), .qc_valid(qc_req_valid), .qc(qc_req),
    .trace_acked_valid, .trace_acked, .trace_req_valid, .trace_req, .trace_loss_valid, .trace_loss
  );

  // ---- counters; two blocks raise some of them ----------------------------------------------------------------
  logic no_qp, drop_unrel;

  urdma_rx_count u_no_qp (
    .clk, .rst, .a(cnt_resp[URDMA_CNT_RX_NO_QP]), .b(cnt_cmpl[URDMA_CNT_RX_NO_QP]), .out(no_qp)
  );
  // packets between the responder and the end of placement
  urdma_rx_count #(.W(9)) u_drop_unrel (
    .clk, .rst, .a(cnt_resp[URDMA_CNT_RX_DROP_UNREL]), .b(unrel_bad), .out(drop_unrel)
  );

  always_comb begin
    cnt = cnt_parse | cnt_resp | cnt_cmpl;
    cnt[URDMA_CNT_RX_NO_QP] = no_qp;
    cnt[URDMA_CNT_RX_DROP_UNREL] = drop_unrel;
  end

  // The responder's CQEs with an error, for the counters of their QPs.
  logic qc_resp_valid_reg;
  qc_resp_t qc_resp_reg;
  logic [7:0] cqe_status;
  assign cqe_status = cqe[0].cqe[URDMA_CQE0_STATUS_LSB+:8];
  assign qc_resp_valid = qc_resp_valid_reg;
  assign qc_resp = qc_resp_reg;
  always_ff @(posedge clk) begin
    if (cqe_valid[0])
      qc_resp_reg <= '{qpn: cqe[0].cqe[URDMA_CQE1_QPN_LSB+:QPN_W], hit: '{err: cqe_status != 8'(URDMA_WC_FLUSH_ERR),
                       flush: cqe_status == 8'(URDMA_WC_FLUSH_ERR)}};
    qc_resp_valid_reg <= cqe_valid[0] && cqe_ready[0] && cqe_status != '0 && !rst;
  end

  // ---- busy: the number of items between the look-up and their end ----------------------------------------------
  logic [11:0] inflight_reg;
  always_ff @(posedge clk) begin
    if (rst) inflight_reg <= '0;
    else inflight_reg <= inflight_reg + 12'(it_valid[0] && it_ready[0]) - 12'(no_op) - 12'(op_done[0])
        - 12'(op_done[1]);
  end

  logic [4:0] look1_reg;
  always_ff @(posedge clk) begin
    if (rst) look1_reg <= '0;
    else look1_reg <= look1_reg + 5'(it_valid[1] && it_ready[1]) - 5'(found_valid[1] && found_ready[1]);
  end

  assign init_done = resp_init && place_init && cmpl_init && atm_init && srq_init;
  assign busy = !init_done || parse_busy || pq_count[0] != '0 || pq_count[1] != '0 || (|it_valid) || inflight_reg != '0 || look1_reg != '0
      || resp_busy || srq_busy || idx_busy || wqe_busy || place_busy || cmpl_busy || atm_busy || rr_valid || (fence_req && !fence_done)
      || (sync_req && !sync_done);

  logic unused;
  assign unused = &{1'b0, rq_grant_valid, rk_grant_valid};

endmodule

`resetall
