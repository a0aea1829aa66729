// SPDX-License-Identifier: Apache-2.0
// The Ethernet function: registers, transmit, receive, completions. See README.md in this folder; for the ports
// docs/rtl-interfaces.md; for the interface to software docs/hardware-interface.md, section 12.

`resetall
`default_nettype none

module urdma_eth
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  input  wire logic                   reg_valid,
  input  wire reg_req_t               reg_req,
  output      logic [63:0]            reg_rdata,
  input  wire logic                   db_valid,
  input  wire eth_db_t                db,

  input  wire logic [47:0]            mac,
  output      logic                   loopback,

  input  wire logic [63:0]            cycles,
  output      logic                   timer_armed,
  output      logic [31:0]            timer_cycles,

  output      logic                   tx_valid,
  output      mac_beat_t              tx,
  input  wire logic                   tx_ready,
  input  wire logic                   rx_valid,
  input  wire mac_beat_t              rx,
  input  wire logic                   class_valid,
  input  wire logic                   class_rdma,
  input  wire logic                   rdma_first,
  output      logic                   loop_room,   // room for a looped frame

  // 0: transmit descriptors, 1: frames to send, 2: receive descriptors
  output      logic [2:0]             rd_req_valid,
  output      dma_rd_req_t [2:0]      rd_req,
  input  wire logic [2:0]             rd_req_ready,
  input  wire logic [2:0]             rd_rsp_valid,
  input  wire dma_rd_rsp_t            rd_rsp,
  // 0: received frames, 1: completions
  output      logic [1:0]             wr_valid,
  output      dma_wr_t [1:0]          wr,
  input  wire logic [1:0]             wr_ready,

  output      logic                   irq_valid,
  output      logic [VEC_W-1:0]       irq_vec,
  input  wire logic                   irq_ready,

  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic                   trace_eth_in_valid,
  output      tr_eth_in_t             trace_eth_in,
  output      logic                   trace_eth_buf_valid,
  output      tr_eth_buf_t            trace_eth_buf
);

  eth_cfg_t cfg;
  eth_ring_t [ETHQ_N-1:0] tx_ring, rx_ring, cq_ring;
  eth_int_t [ETHQ_N-1:0] moderation;
  logic [ETHQ_N-1:0][6:0] buf64;
  logic [ETHQ_N-1:0] tx_active, rx_active, cq_active, tx_err, rx_err;
  logic [ETHQ_N-1:0][15:0] tx_ci, rx_ci;
  logic [ETHQ_N-1:0][31:0] cq_pi;
  logic [11:0] vlan_id;
  logic vlan_member, tx_busy, rx_busy, cq_busy;
  logic txc_valid, txc_ready, rxc_valid, rxc_ready;
  eth_txc_t txc;
  eth_rxc_t rxc;
  logic [URDMA_CNT_N-1:0] tx_cnt, rx_cnt;

  assign busy = tx_busy || rx_busy || cq_busy;
  assign loopback = cfg.loopback;
  assign cnt = tx_cnt | rx_cnt;

  logic regs_clk;
  urdma_clk #(.PART(PART_ETH_REGS)) clk_regs (.clk, .part_clk(regs_clk));
  urdma_eth_regs regs (
    .clk(regs_clk), .rst, .init_done, .reg_valid, .reg_req, .reg_rdata, .mac,
    .cfg, .tx_ring, .rx_ring, .cq_ring, .buf64, .moderation,
    .tx_active, .rx_active, .cq_active, .tx_err, .rx_err, .tx_ci, .rx_ci, .cq_pi, .vlan_id, .vlan_member
  );

  logic transmit_clk;
  urdma_clk #(.PART(PART_ETH_TRANSMIT)) clk_transmit (.clk, .part_clk(transmit_clk));
  urdma_eth_tx transmit (
    .clk(transmit_clk), .rst, .busy(tx_busy), .ring(tx_ring), .active(tx_active), .err(tx_err), .ci(tx_ci),
    .db_valid(db_valid && db.kind == EDB_TX), .db_q(db.q), .db_pi(db.index[15:0]),
    .rd_req_valid(rd_req_valid[1:0]), .rd_req(rd_req[1:0]), .rd_req_ready(rd_req_ready[1:0]),
    .rd_rsp_valid(rd_rsp_valid[1:0]), .rd_rsp,
    .tx_valid, .tx, .tx_ready, .txc_valid, .txc, .txc_ready, .cnt(tx_cnt)
  );

  logic receive_clk;
  urdma_clk #(.PART(PART_ETH_RECEIVE)) clk_receive (.clk, .part_clk(receive_clk));
  urdma_eth_rx receive (
    .clk(receive_clk), .rst, .busy(rx_busy), .cfg, .ring(rx_ring), .buf64, .active(rx_active), .err(rx_err), .ci(rx_ci),
    .vlan_id, .vlan_member,
    .db_valid(db_valid && db.kind == EDB_RX), .db_q(db.q), .db_pi(db.index[15:0]),
    .rx_valid, .rx, .class_valid, .class_rdma, .rdma_first, .loop_room,
    .rd_req_valid(rd_req_valid[2]), .rd_req(rd_req[2]), .rd_req_ready(rd_req_ready[2]), .rd_rsp_valid(rd_rsp_valid[2]), .rd_rsp,
    .wr_valid(wr_valid[0]), .wr(wr[0]), .wr_ready(wr_ready[0]), .rxc_valid, .rxc, .rxc_ready, .cnt(rx_cnt),
    .trace_eth_in_valid, .trace_eth_in, .trace_eth_buf_valid, .trace_eth_buf
  );

  logic completions_clk;
  urdma_clk #(.PART(PART_ETH_COMPLETIONS)) clk_completions (.clk, .part_clk(completions_clk));
  urdma_eth_cq completions (
    .clk(completions_clk), .rst, .busy(cq_busy), .ring(cq_ring), .moderation, .active(cq_active), .pi(cq_pi),
    .db_valid(db_valid && db.kind == EDB_CQ), .db_q(db.q), .db_arm(db.arm), .db_ci(db.index),
    .txc_valid, .txc, .txc_ready, .rxc_valid, .rxc, .rxc_ready,
    .wr_valid(wr_valid[1]), .wr(wr[1]), .wr_ready(wr_ready[1]),
    .irq_valid, .irq_vec, .irq_ready, .cycles, .timer_armed, .timer_cycles
  );

endmodule

`resetall
