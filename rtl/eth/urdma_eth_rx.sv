// SPDX-License-Identifier: Apache-2.0
// Receive side of the Ethernet function: moves frames that do not belong to RDMA from the wire to the buffers of receive
// rings. See docs/hardware-interface.md section 12 and, for the ports, docs/rtl-interfaces.md.
//
//   rx, class -> parse -> frame buffer, frames -> place -> DMA writes, completions
//                              doorbells -> desc --^  addresses of buffers

`resetall
`default_nettype none

module urdma_eth_rx
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
  import urdma_eth_rx_pkg::*;
(
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    busy,

  input  wire eth_cfg_t                cfg,
  input  wire eth_ring_t [ETHQ_N-1:0]  ring,
  input  wire logic [ETHQ_N-1:0][6:0]  buf64,
  output      logic [ETHQ_N-1:0]       active,
  output      logic [ETHQ_N-1:0]       err,
  output      logic [ETHQ_N-1:0][15:0] ci,
  output      logic [11:0]             vlan_id,
  input  wire logic                    vlan_member,

  input  wire logic                    db_valid,
  input  wire logic [ETHQ_W-1:0]       db_q,
  input  wire logic [15:0]             db_pi,

  input  wire logic                    rx_valid,
  input  wire mac_beat_t               rx,
  input  wire logic                    class_valid,
  input  wire logic                    class_rdma,
  input  wire logic                    rdma_first,
  output      logic                    loop_room,     // room for a looped frame

  output      logic                    rd_req_valid,
  output      dma_rd_req_t             rd_req,
  input  wire logic                    rd_req_ready,
  input  wire logic                    rd_rsp_valid,
  input  wire dma_rd_rsp_t             rd_rsp,
  output      logic                    wr_valid,
  output      dma_wr_t                 wr,
  input  wire logic                    wr_ready,

  output      logic                    rxc_valid,
  output      eth_rxc_t                rxc,
  input  wire logic                    rxc_ready,

  output      logic [URDMA_CNT_N-1:0]  cnt,
  output      logic                    trace_eth_in_valid,
  output      tr_eth_in_t              trace_eth_in,
  output      logic                    trace_eth_buf_valid,
  output      tr_eth_buf_t             trace_eth_buf
);

  logic parse_busy, desc_busy, place_busy;
  logic [URDMA_CNT_N-1:0] parse_cnt, place_cnt;
  logic frm_valid, frm_ready, line_en, free_valid;
  frame_t frm;
  logic [LINE_W-1:0] line_idx;
  logic [511:0] line_data;
  logic [7:0] free_lines;
  logic [ETHQ_N-1:0] open, failed;
  logic [ETHQ_N-1:0][6:0] size;
  logic [ETHQ_N-1:0][15:0] pi, ap, rp;
  logic take_valid, back_valid, want_valid, begun_valid;
  logic [ETHQ_W-1:0] take_q, back_q, want_q, begun_q;
  logic [1:0] done_valid;
  logic [1:0][ETHQ_W-1:0] done_q;
  logic [63:0] addr;
  logic [15:0] back_rp;

  assign busy = parse_busy || desc_busy || place_busy;
  assign cnt = parse_cnt | place_cnt;
  assign ci = rp;

  urdma_eth_rx_parse u_parse (
    .clk(clk), .rst(rst), .busy(parse_busy),
    .cfg(cfg), .vlan_id(vlan_id), .vlan_member(vlan_member),
    .rx_valid(rx_valid), .rx(rx), .class_valid(class_valid), .class_rdma(class_rdma),
    .frm_valid(frm_valid), .frm(frm), .frm_ready(frm_ready),
    .rd_en(line_en), .rd_line(line_idx), .rd_data(line_data),
    .free_valid(free_valid), .free_lines(free_lines), .loop_room(loop_room), .cnt(parse_cnt),
    .trace_eth_in_valid, .trace_eth_in
  );

  urdma_eth_rx_desc u_desc (
    .clk(clk), .rst(rst), .busy(desc_busy),
    .ring(ring), .buf64(buf64), .active(active), .err(err),
    .db_valid(db_valid), .db_q(db_q), .db_pi(db_pi),
    .rd_req_valid(rd_req_valid), .rd_req(rd_req), .rd_req_ready(rd_req_ready),
    .rd_rsp_valid(rd_rsp_valid), .rd_rsp(rd_rsp),
    .open(open), .failed(failed), .size(size), .pi(pi), .ap(ap), .rp(rp),
    .take_valid(take_valid), .take_q(take_q), .addr(addr),
    .back_valid(back_valid), .back_q(back_q), .back_rp(back_rp),
    .want_valid(want_valid), .want_q(want_q),
    .begun_valid(begun_valid), .begun_q(begun_q), .done_valid(done_valid), .done_q(done_q)
  );

  urdma_eth_rx_place u_place (
    .clk(clk), .rst(rst), .busy(place_busy),
    .frm_valid(frm_valid), .frm(frm), .frm_ready(frm_ready),
    .rd_en(line_en), .rd_line(line_idx), .rd_data(line_data),
    .free_valid(free_valid), .free_lines(free_lines),
    .open(open), .failed(failed), .size(size), .pi(pi), .ap(ap), .rp(rp),
    .take_valid(take_valid), .take_q(take_q), .addr(addr),
    .back_valid(back_valid), .back_q(back_q), .back_rp(back_rp),
    .want_valid(want_valid), .want_q(want_q),
    .begun_valid(begun_valid), .begun_q(begun_q), .done_valid(done_valid), .done_q(done_q),
    .rdma_first(rdma_first),
    .wr_valid(wr_valid), .wr(wr), .wr_ready(wr_ready),
    .rxc_valid(rxc_valid), .rxc(rxc), .rxc_ready(rxc_ready),
    .cnt(place_cnt), .trace_eth_buf_valid, .trace_eth_buf
  );

endmodule

`resetall
