// SPDX-License-Identifier: Apache-2.0
// Transmit side of the Ethernet function: turns descriptors of eight rings into frames on the MAC. See rtl/eth/README.md.
//
//  desc -> frames, pieces -> read -> DMA -> gather (frame buffer, sum) -> out -> tx
//                                                                          +-> done -> txc

`resetall
`default_nettype none

module urdma_eth_tx
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_eth_tx_pkg::*;
(
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    busy,

  input  wire eth_ring_t [ETHQ_N-1:0]  ring,
  output      logic [ETHQ_N-1:0]       active,
  output      logic [ETHQ_N-1:0]       err,
  output      logic [ETHQ_N-1:0][15:0] ci,

  input  wire logic                    db_valid,
  input  wire logic [ETHQ_W-1:0]       db_q,
  input  wire logic [15:0]             db_pi,

  output      logic [1:0]              rd_req_valid,   // 0: descriptors (RD_ETD), 1: frames (RD_ETX)
  output      dma_rd_req_t [1:0]       rd_req,
  input  wire logic [1:0]              rd_req_ready,
  input  wire logic [1:0]              rd_rsp_valid,
  input  wire dma_rd_rsp_t             rd_rsp,

  output      logic                    tx_valid,
  output      mac_beat_t               tx,
  input  wire logic                    tx_ready,

  output      logic                    txc_valid,
  output      eth_txc_t                txc,
  input  wire logic                    txc_ready,

  output      logic [URDMA_CNT_N-1:0]  cnt
);

  logic desc_busy, read_busy, gather_busy, out_busy, done_busy;
  assign busy = desc_busy || read_busy || gather_busy || out_busy || done_busy;

  logic [ETHQ_N-1:0] start, told;
  logic piece_valid, piece_room, frame_valid, frame_room, frag_valid, frag_ready, sent_valid, sent_ready, here_valid, fin_valid;
  logic buf_rd_en;
  logic [LINE_W-1:0] buf_rd_line;
  logic [511:0] buf_rd_data;
  logic [7:0] free_n;
  etx_piece_t piece;
  etx_frame_t frame;
  etx_frag_t frag;
  etx_sent_t sent;
  etx_here_t here;
  etx_fin_t fin;

  urdma_eth_tx_desc desc (
    .clk, .rst, .busy(desc_busy), .ring, .active, .err, .start, .db_valid, .db_q, .db_pi,
    .rd_req_valid(rd_req_valid[0]), .rd_req(rd_req[0]), .rd_req_ready(rd_req_ready[0]),
    .rd_rsp_valid(rd_rsp_valid[0]), .rd_rsp,
    .piece_valid, .piece, .piece_room, .frame_valid, .frame, .frame_room, .ci, .told
  );

  urdma_eth_tx_read read (
    .clk, .rst, .busy(read_busy), .piece_valid, .piece, .piece_room, .frame_valid, .frame, .frame_room,
    .rd_req_valid(rd_req_valid[1]), .rd_req(rd_req[1]), .rd_req_ready(rd_req_ready[1]),
    .frag_valid, .frag, .frag_ready, .sent_valid, .sent, .sent_ready, .free_n
  );

  urdma_eth_tx_gather gather (
    .clk, .rst, .busy(gather_busy), .frag_valid, .frag, .frag_ready, .rsp_valid(rd_rsp_valid[1]), .rsp(rd_rsp),
    .here_valid, .here, .rd_en(buf_rd_en), .rd_line(buf_rd_line), .rd_data(buf_rd_data)
  );

  urdma_eth_tx_out out (
    .clk, .rst, .busy(out_busy), .sent_valid, .sent, .sent_ready, .here_valid, .here,
    .rd_en(buf_rd_en), .rd_line(buf_rd_line), .rd_data(buf_rd_data), .free_n,
    .tx_valid, .tx, .tx_ready, .fin_valid, .fin
  );

  urdma_eth_tx_done done (
    .clk, .rst, .busy(done_busy), .start, .fin_valid, .fin, .ci, .told, .txc_valid, .txc, .txc_ready
  );

  always_comb begin
    cnt = '0;
    cnt[URDMA_CNT_ETH_TX_FRAMES] = fin_valid && !fin.bad;
    cnt[URDMA_CNT_ETH_TX_BAD] = fin_valid && fin.bad;
  end

endmodule

`resetall
