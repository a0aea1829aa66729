// SPDX-License-Identifier: Apache-2.0
// Transmit side of the NIC: from send doorbells to frames. See README.md for the stages and docs/rtl-interfaces.md
// for the ports.

`resetall
`default_nettype none

module urdma_tx
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              init_done,
  output      logic              busy,

  input  wire logic              sq_db_valid,
  input  wire wq_db_t            sq_db,
  output      logic              sq_db_ready,
  input  wire logic              qpc_valid,
  input  wire qpc_t              qpc,
  output      logic              qpc_ready,
  output      qpc_rsp_t          qpc_rsp,
  input  wire logic              fence_req,
  output      logic              fence_done,

  output      logic              qpr_req_valid,
  output      logic [QPN_W-1:0]  qpr_req_qpn,
  input  wire logic              qpr_req_ready,
  input  wire logic              qpr_rsp_valid,
  input  wire qp_cfg_t           qpr_rsp,
  output      logic [GID_W-1:0]  gid_idx,
  input  wire gid_t              gid,

  output      logic              err_valid,
  output      qp_err_t           err,
  input  wire logic              err_ready,
  output      logic              mro_valid,
  output      mr_op_t            mro,
  input  wire logic              mro_ready,
  input  wire logic              mro_rsp_valid,
  input  wire mro_status_e       mro_rsp,
  output      logic              sync_req,
  input  wire logic              sync_done,
  input  wire logic              inv_valid,
  input  wire logic [31:0]       inv_key,
  output      logic              reads_over,

  output      logic              sent_valid,
  output      sent_t             sent,
  input  wire logic              sent_ready,
  output      logic              made_valid,
  output      made_t             made,
  input  wire logic              made_ready,
  input  wire logic              acked_valid,
  input  wire acked_t            acked,
  output      logic              acked_ready,
  input  wire logic              ack_req_valid,
  input  wire ack_req_t          ack_req,
  output      logic              ack_req_ready,

  // 0: payload, 1: WQE ring
  output      logic [1:0]        mr_req_valid,
  output      mr_req_t [1:0]     mr_req,
  input  wire logic [1:0]        mr_req_ready,
  input  wire logic [1:0]        mr_rsp_valid,
  input  wire mr_rsp_t [1:0]     mr_rsp,
  output      logic [1:0]        mr_rsp_ready,
  output      logic [1:0]        rd_req_valid,
  output      dma_rd_req_t [1:0] rd_req,
  input  wire logic [1:0]        rd_req_ready,
  input  wire logic [1:0]        rd_rsp_valid,
  input  wire dma_rd_rsp_t       rd_rsp,

  output      logic              mac_valid,
  output      mac_beat_t         mac,
  output      logic              mac_loop,     // the frame is to a group and is looped back as well
  input  wire logic              mac_ready,

  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic              qc_tx_valid,
  output      qc_tx_t            qc_tx,

  output      logic              trace_turn_valid,
  output      tr_turn_t          trace_turn,
  output      logic              trace_wqe_valid,
  output      tr_wqe_t           trace_wqe,
  output      logic              trace_pkt_valid,
  output      tr_pkt_t           trace_pkt,
  output      logic              trace_full_valid,
  output      tr_full_t          trace_full,
  output      logic              trace_ans_valid,
  output      tr_ans_t           trace_ans,
  output      logic              trace_out_valid,
  output      tr_out_t           trace_out,
  output      logic              trace_ask_valid,
  output      tr_ask_t           trace_ask
);

  logic sched_init, seg_init, commit_init, resp_init;
  logic sched_busy, fetch_busy, seg_busy, read_busy, gather_busy, commit_busy, resp_busy, hdr_busy, frame_busy;
  logic merge_busy, local_busy;

  // ---- fence: a marker through the pipeline, earlier responses, and earlier local operations -------------------------
  logic fence_req_reg, fence_start, fence_hit, fence_passed_reg, resp_fence_hit, local_fence_hit, fence_done_reg;
  assign fence_start = fence_req && !fence_req_reg && init_done;
  assign fence_done = fence_done_reg;
  always_ff @(posedge clk) begin
    if (rst) begin
      fence_req_reg <= 1'b0;
      fence_passed_reg <= 1'b0;
      fence_done_reg <= 1'b0;
    end else begin
      fence_req_reg <= fence_req && (fence_req_reg || init_done);
      if (!fence_req) fence_passed_reg <= 1'b0;
      else if (fence_hit) fence_passed_reg <= 1'b1;
      fence_done_reg <= fence_req && fence_passed_reg && resp_fence_hit && local_fence_hit;
    end
  end

  // ---- configuration reads: scheduler and responses share the port -----------------------------------------
  logic s_cfg_req_valid, s_cfg_req_ready, a_cfg_req_valid, a_cfg_req_ready;
  logic [QPN_W-1:0] s_cfg_req_qpn, a_cfg_req_qpn;
  logic cfg_free, who_valid, who_ready, who, who_in_ready;
  logic [4:0] who_count;
  logic qpr_valid_reg;
  logic [QPN_W-1:0] qpr_qpn_reg;

  assign cfg_free = (!qpr_valid_reg || qpr_req_ready) && who_in_ready;
  assign a_cfg_req_ready = cfg_free;
  assign s_cfg_req_ready = cfg_free && !a_cfg_req_valid;
  assign qpr_req_valid = qpr_valid_reg;
  assign qpr_req_qpn = qpr_qpn_reg;
  assign who_ready = qpr_rsp_valid;
  urdma_fifo #(.WIDTH(1), .DEPTH(16)) who_fifo (
    .clk, .rst, .in_valid((a_cfg_req_valid || s_cfg_req_valid) && cfg_free), .in_ready(who_in_ready),
    .in_data(a_cfg_req_valid), .out_valid(who_valid), .out_ready(who_ready), .out_data(who), .count(who_count)
  );
  always_ff @(posedge clk) begin
    if (cfg_free) qpr_qpn_reg <= a_cfg_req_valid ? a_cfg_req_qpn : s_cfg_req_qpn;
    if (rst) qpr_valid_reg <= 1'b0;
    else if (cfg_free) qpr_valid_reg <= a_cfg_req_valid || s_cfg_req_valid;
    else if (qpr_req_ready) qpr_valid_reg <= 1'b0;
  end

  // ---- a new life of a QP: urdma_tx_resp gets it first, so it is done there when the scheduler has taken it --------------
  logic qpc_is_reset, resp_told_reg, resp_rst_valid, resp_rst_ready;
  assign qpc_is_reset = (qpc.op == QPC_RESET);
  assign resp_rst_valid = qpc_valid && qpc_is_reset && !resp_told_reg;
  always_ff @(posedge clk) begin
    if (rst || qpc_ready) resp_told_reg <= 1'b0;
    else if (resp_rst_valid && resp_rst_ready) resp_told_reg <= 1'b1;
  end

  // ---- scheduler ------------------------------------------------------------------------------------------------
  logic query_valid, query_done;
  logic [QPN_W-1:0] query_qpn;
  logic [23:0] query_psn;
  logic [ERA_W-1:0] query_era;
  logic turn_valid, fetch_valid, turn_end, rewind_valid, rewind_ready;
  turn_t turn;
  fetch_t fetch;
  logic [4:0] turn_end_blks;
  rewind_t rewind;
  logic lop_valid, lop_ready, lop_done_valid, lop_done_ready, look_wr, drained_valid, drained_ready;
  lop_t lop;
  lop_done_t lop_done;
  look_t look_wr_data;
  logic [QPN_W-1:0] look_wr_qpn, drained_qpn;

  logic sched_clk;
  urdma_clk #(.PART(PART_TX_SCHED)) clk_sched (.clk, .part_clk(sched_clk));
  urdma_tx_sched sched (
    .clk(sched_clk), .rst, .init_done(sched_init), .busy(sched_busy),
    .sq_db_valid, .sq_db, .sq_db_ready, .acked_valid, .acked, .acked_ready,
    .qpc_valid(qpc_valid && (!qpc_is_reset || resp_told_reg)), .qpc, .qpc_ready, .qpc_rsp, .fence_start,
    .cfg_req_valid(s_cfg_req_valid), .cfg_req_qpn(s_cfg_req_qpn), .cfg_req_ready(s_cfg_req_ready),
    .cfg_rsp_valid(qpr_rsp_valid && !who), .cfg_rsp(qpr_rsp),
    .query_valid, .query_qpn, .query_done, .query_psn, .query_era,
    .turn_valid, .turn, .fetch_valid, .fetch, .turn_end, .turn_end_blks,
    .rewind_valid, .rewind, .rewind_ready, .lop_done_valid, .lop_done, .lop_done_ready,
    .look_wr, .look_wr_qpn, .look_wr_data, .drained_valid, .drained_qpn, .drained_ready
  );

  // ---- WQE fetch -------------------------------------------------------------------------------------------------
  logic [(1<<TURN_W)-1:0] here, bad;
  logic wqe_rd_en;
  logic [WQB_W-1:0] wqe_rd_blk;
  logic [511:0] wqe_rd_data;

  logic wqe_fetch_clk;
  urdma_clk #(.PART(PART_TX_WQE_FETCH)) clk_wqe_fetch (.clk, .part_clk(wqe_fetch_clk));
  urdma_tx_fetch wqe_fetch (
    .clk(wqe_fetch_clk), .rst, .busy(fetch_busy), .fetch_valid, .fetch,
    .mr_req_valid(mr_req_valid[1]), .mr_req(mr_req[1]), .mr_req_ready(mr_req_ready[1]),
    .mr_rsp_valid(mr_rsp_valid[1]), .mr_rsp(mr_rsp[1]), .mr_rsp_ready(mr_rsp_ready[1]),
    .rd_req_valid(rd_req_valid[1]), .rd_req(rd_req[1]), .rd_req_ready(rd_req_ready[1]),
    .rd_rsp_valid(rd_rsp_valid[1]), .rd_rsp,
    .here, .bad, .rd_en(wqe_rd_en), .rd_blk(wqe_rd_blk), .rd_data(wqe_rd_data)
  );

  // ---- segmenter ----------------------------------------------------------------------------------------------------
  logic pd_valid, pd_ready, piece_valid, piece_ready, inl_valid, inl_ready;
  logic s_want, s_pd_valid, s_pd_ready, s_piece_valid, s_piece_ready, head_valid;
  logic r_pd_valid, r_pd_ready, r_piece_valid, r_piece_ready;
  pdesc_t pd, s_pd, x_pd, r_pd;
  xport_e s_pd_xport;
  logic [31:0] head_qkey;
  piece_t piece, s_piece, r_piece;
  logic [511:0] inl_data;

  logic seg_clk;
  urdma_clk #(.PART(PART_TX_SEG)) clk_seg (.clk, .part_clk(seg_clk));
  urdma_tx_seg seg (
    .clk(seg_clk), .rst, .init_done(seg_init), .busy(seg_busy),
    .turn_valid, .turn, .here, .bad, .wqe_rd_en, .wqe_rd_blk, .wqe_rd_data, .turn_end, .turn_end_blks,
    .rewind_valid, .rewind, .rewind_ready,
    .query_valid, .query_qpn, .query_done, .query_psn, .query_era,
    .head_valid, .head_qkey, .pd_xport(s_pd_xport), .pd_valid(s_pd_valid), .pd(s_pd), .pd_ready(s_pd_ready),
    .piece_valid(s_piece_valid), .piece(s_piece), .piece_ready(s_piece_ready), .inl_valid, .inl_data, .inl_ready,
    .want(s_want), .lop_valid, .lop, .lop_ready, .look_wr, .look_wr_qpn, .look_wr_data,
    .trace_wqe_valid, .trace_wqe
  );

  urdma_tx_local local_ops (
    .clk, .rst, .busy(local_busy), .lop_valid, .lop, .lop_ready,
    .mro_valid, .mro, .mro_ready, .mro_rsp_valid, .mro_rsp, .sync_req, .sync_done,
    .done_valid(lop_done_valid), .done(lop_done), .done_ready(lop_done_ready),
    .fence_start(fence_hit), .fence_hit(local_fence_hit)
  );

  urdma_tx_dest dest (
    .clk, .head_valid, .head(wqe_rd_data), .head_qkey, .in_xport(s_pd_xport), .in(s_pd), .out(x_pd)
  );

  urdma_tx_merge merge (
    .clk, .rst, .busy(merge_busy), .a_want(s_want),
    .a_pd_valid(s_pd_valid), .a_pd(x_pd), .a_pd_ready(s_pd_ready),
    .a_piece_valid(s_piece_valid), .a_piece(s_piece), .a_piece_ready(s_piece_ready),
    .b_pd_valid(r_pd_valid), .b_pd(r_pd), .b_pd_ready(r_pd_ready),
    .b_piece_valid(r_piece_valid), .b_piece(r_piece), .b_piece_ready(r_piece_ready),
    .pd_valid, .pd, .pd_ready, .piece_valid, .piece, .piece_ready
  );

  logic il_valid, il_ready;
  logic [511:0] il_data;
  logic [4:0] il_count;
  urdma_fifo #(.WIDTH(512), .DEPTH(16)) inline_fifo (
    .clk, .rst, .in_valid(inl_valid), .in_ready(inl_ready), .in_data(inl_data),
    .out_valid(il_valid), .out_ready(il_ready), .out_data(il_data), .count(il_count)
  );

  // ---- payload ---------------------------------------------------------------------------------------------------------
  logic frag_valid, frag_ready, ip_valid, ip_ready, issued_valid, issued_ready, line_free, line_rd_en, slot_clear;
  frag_t frag;
  logic [LINE_W-1:0] ip_line, line_rd;
  logic [12:0] ip_len;
  issued_t issued;
  logic [6:0] line_free_n;
  logic [SEQ_W-1:0] frags_here, inls_here, asked_seq;
  logic chk_valid, asked_valid, asked_ready;
  logic [BUCKET_W-1:0] chk_bucket, asked_bucket;
  logic [(1<<PKT_W)-1:0] failed;
  logic [PKT_W-1:0] slot;
  logic [511:0] line_data;

  logic read_clk;
  urdma_clk #(.PART(PART_TX_READ)) clk_read (.clk, .part_clk(read_clk));
  urdma_tx_read read (
    .clk(read_clk), .rst, .busy(read_busy), .piece_valid, .piece, .piece_ready,
    .mr_req_valid(mr_req_valid[0]), .mr_req(mr_req[0]), .mr_req_ready(mr_req_ready[0]),
    .mr_rsp_valid(mr_rsp_valid[0]), .mr_rsp(mr_rsp[0]), .mr_rsp_ready(mr_rsp_ready[0]),
    .rd_req_valid(rd_req_valid[0]), .rd_req(rd_req[0]), .rd_req_ready(rd_req_ready[0]),
    .frag_valid, .frag, .frag_ready, .inl_valid(ip_valid), .inl_line(ip_line), .inl_len(ip_len), .inl_ready(ip_ready),
    .chk_valid, .chk_bucket, .asked_valid, .asked_bucket, .asked_seq, .asked_ready,
    .issued_valid, .issued, .issued_ready, .line_free, .line_free_n, .pkt_gone(slot_clear)
  );

  logic keys_clk;
  urdma_clk #(.PART(PART_TX_KEYS)) clk_keys (.clk, .part_clk(keys_clk));
  urdma_tx_keys keys (
    .clk(keys_clk), .rst, .in_valid(chk_valid), .in_bucket(chk_bucket), .asked_valid, .asked_ready, .asked_bucket, .asked_seq, .frags_here,
    .inv_valid, .inv_bucket(inv_key[8+:BUCKET_W]), .reads_over
  );

  logic gather_clk;
  urdma_clk #(.PART(PART_TX_GATHER)) clk_gather (.clk, .part_clk(gather_clk));
  urdma_tx_gather gather (
    .clk(gather_clk), .rst, .busy(gather_busy), .frag_valid, .frag, .frag_ready, .rsp_valid(rd_rsp_valid[0]), .rsp(rd_rsp),
    .inl_valid(ip_valid), .inl_line(ip_line), .inl_len(ip_len), .inl_ready(ip_ready),
    .inl_data_valid(il_valid), .inl_data(il_data), .inl_data_ready(il_ready),
    .frags_here, .inls_here, .failed, .slot_clear, .slot,
    .rd_en(line_rd_en), .rd_line(line_rd), .rd_data(line_data)
  );

  // ---- commit, responses, headers, frames ---------------------------------------------------------------------------
  logic retrans, resp_gone, rfail_valid, read_drop, r_err_valid, r_err_ready;
  logic [QPN_W-1:0] rfail_qpn;
  logic [ERA_W-1:0] rfail_era;
  logic [23:0] rfail_psn;
  logic [7:0] rfail_status;
  qp_err_t r_err;
  logic data_valid, data_ready, ack_valid, ack_ready, hdr_valid, hdr_ready, mac_frame;
  pkt_t data, ack;
  hdr_t hdr;

  logic commit_clk;
  urdma_clk #(.PART(PART_TX_COMMIT)) clk_commit (.clk, .part_clk(commit_clk));
  urdma_tx_commit commit (
    .clk(commit_clk), .rst, .init_done(commit_init), .busy(commit_busy),
    .pd_valid, .pd, .pd_ready, .issued_valid, .issued, .issued_ready, .frags_here, .inls_here, .failed,
    .slot_clear, .slot, .pkt_valid(data_valid), .pkt(data), .pkt_ready(data_ready),
    .retrans, .sent_valid, .sent, .sent_ready, .made_valid, .made, .made_ready,
    .resp_gone, .rfail_valid, .rfail_qpn, .rfail_era, .rfail_psn, .rfail_status,
    .look_wr, .look_wr_qpn, .look_wr_data, .fence_hit, .trace_full_valid, .trace_full
  );

  logic resp_clk;
  urdma_clk #(.PART(PART_TX_RESP)) clk_resp (.clk, .part_clk(resp_clk));
  urdma_tx_resp resp (
    .clk(resp_clk), .rst, .init_done(resp_init), .busy(resp_busy), .ack_req_valid, .ack_req, .ack_req_ready,
    .cfg_req_valid(a_cfg_req_valid), .cfg_req_qpn(a_cfg_req_qpn), .cfg_req_ready(a_cfg_req_ready),
    .cfg_rsp_valid(qpr_rsp_valid && who), .cfg_rsp(qpr_rsp),
    .pkt_valid(ack_valid), .pkt(ack), .pkt_ready(ack_ready),
    .pd_valid(r_pd_valid), .pd(r_pd), .pd_ready(r_pd_ready),
    .piece_valid(r_piece_valid), .piece(r_piece), .piece_ready(r_piece_ready),
    .resp_gone, .rfail_valid, .rfail_qpn, .rfail_era, .rfail_psn, .rfail_status,
    .rst_valid(resp_rst_valid), .rst_qpn(qpc.qpn), .rst_ready(resp_rst_ready),
    .err_valid(r_err_valid), .err(r_err), .err_ready(r_err_ready), .cnt_read_drop(read_drop), .trace_ask_valid, .trace_ask,
    .fence_start, .fence_hit(resp_fence_hit)
  );

  logic headers_clk;
  urdma_clk #(.PART(PART_TX_HEADERS)) clk_headers (.clk, .part_clk(headers_clk));
  urdma_tx_hdr headers (
    .clk(headers_clk), .rst, .busy(hdr_busy), .data_valid, .data, .data_ready, .ack_valid, .ack, .ack_ready,
    .gid_idx, .gid, .qc_valid(qc_tx_valid), .qc(qc_tx), .hdr_valid, .hdr, .hdr_ready
  );

  logic frame_clk;
  urdma_clk #(.PART(PART_TX_FRAME)) clk_frame (.clk, .part_clk(frame_clk));
  urdma_tx_frame frame (
    .clk(frame_clk), .rst, .busy(frame_busy), .hdr_valid, .hdr, .hdr_ready,
    .line_rd_en, .line_rd, .line_data, .line_free, .line_free_n,
    .mac_valid, .mac, .mac_loop, .mac_ready, .mac_frame, .trace_out_valid, .trace_out
  );

  // ---- errors: the report of a refused READ has priority over SQ_DRAINED ---------------------------------------------------
  logic err_valid_reg, err_room;
  qp_err_t err_reg;
  assign err_room = !err_valid_reg || err_ready;
  assign r_err_ready = err_room;
  assign drained_ready = err_room && !r_err_valid;
  assign err_valid = err_valid_reg;
  assign err = err_reg;
  always_ff @(posedge clk) begin
    if (err_room) err_reg <= r_err_valid ? r_err : '{qpn: drained_qpn, only_event: 1'b1, event_type: 8'(URDMA_EV_SQ_DRAINED)};
    if (rst) err_valid_reg <= 1'b0;
    else if (err_room) err_valid_reg <= r_err_valid || drained_valid;
  end

  // ---- counters, lanes --------------------------------------------------------------------------------------------------
  // An acknowledgement goes directly to header assembly or, after READ responses, through commit; one of the two per cycle.
  logic ack_sent, data_sent, ack_one;
  logic [7:0] syndrome;
  assign ack_sent = ack_valid && ack_ready;
  assign data_sent = data_valid && data_ready && !data.drop;
  assign ack_one = ack_sent || (data_sent && (data.opcode == BTH_ACK));
  assign syndrome = ack_sent ? ack.ext[7:0] : data.ext[7:0];
  always_comb begin
    cnt = '0;
    cnt[URDMA_CNT_TX_RDMA_PKTS] = mac_frame;
    // syndrome bits 6:5: 0 ACK, 1 RNR NAK, 3 NAK, whose code 0 is a sequence error
    cnt[URDMA_CNT_TX_ACK] = ack_one && (syndrome[6:5] == 2'd0);
    cnt[URDMA_CNT_TX_NAK_RNR] = ack_one && (syndrome[6:5] == 2'd1);
    cnt[URDMA_CNT_TX_NAK_SEQ] = ack_one && (syndrome[6:5] == 2'd3) && (syndrome[4:0] == 5'd0);
    cnt[URDMA_CNT_TX_NAK_OTHER] = ack_one && (syndrome[6:5] == 2'd3) && (syndrome[4:0] != 5'd0);
    cnt[URDMA_CNT_TX_RETRANS] = retrans;
    cnt[URDMA_CNT_TX_READ_RSP] = data_sent && (((data.opcode >= BTH_READ_RSP_FIRST) && (data.opcode <= BTH_READ_RSP_ONLY)) ||
                                               (data.opcode == BTH_ATOMIC_ACK));
    cnt[URDMA_CNT_RX_READ_DROP] = read_drop;
  end

  assign trace_turn_valid = fetch_valid;
  assign trace_turn = '{qpn: turn.qpn, wqe: turn.widx, n: turn.n, again: turn.rw};

  logic pd_last;
  assign pd_last = pd.resp ? (pd.opcode inside {BTH_READ_RSP_LAST, BTH_READ_RSP_ONLY, BTH_ATOMIC_ACK}) : pd.eom;
  assign trace_pkt_valid = pd_valid && pd_ready && is_packet(pd);
  assign trace_pkt = '{qpn: pd.qpn, wqe: pd.wqe, psn: pd.psn, opcode: pd.opcode, len: pd.plen, resp: pd.resp, again: pd.again,
                       last: pd_last};

  assign trace_ans_valid = ack_one;
  assign trace_ans = '{qpn: ack_sent ? ack.qpn : data.qpn, psn: ack_sent ? ack.psn : data.psn, syndrome: syndrome};

  assign init_done = sched_init && seg_init && commit_init && resp_init;
  assign busy = sched_busy || fetch_busy || seg_busy || read_busy || gather_busy || commit_busy || resp_busy ||
                hdr_busy || frame_busy || (il_count != '0) || merge_busy || local_busy || err_valid_reg || (fence_req && !fence_done_reg);

  logic unused;
  assign unused = ^{who_valid, who_count, syndrome[7], inv_key};

endmodule

`resetall
