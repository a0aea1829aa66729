// SPDX-License-Identifier: Apache-2.0
// urdma_eth_rx with a port for each field, and the VLAN table, which the test writes word by word.

`resetall
`default_nettype none

module eth_rx_test_top
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic [5:0]        ctrl,         // as in ETH_CTRL
  input  wire logic [3:0]        rss,          // as in ETH_RSS
  input  wire logic [319:0]      key,
  input  wire logic [47:0]       mac,
  input  wire logic [15:0]       uc_valid,
  input  wire logic [15:0][47:0] uc,
  input  wire logic [255:0]      mc_hash,
  input  wire logic [1023:0]     rss_table,    // a byte an entry
  input  wire logic              vlan_we,
  input  wire logic [5:0]        vlan_word,
  input  wire logic [63:0]       vlan_bits,

  input  wire logic [7:0]        enable,
  input  wire logic [7:0][63:0]  base,
  input  wire logic [7:0][7:0]   log_entries,
  input  wire logic [7:0][7:0]   buf64,
  output      logic [7:0]        active,
  output      logic [7:0]        err,
  output      logic [7:0][15:0]  ci,

  input  wire logic              db_valid,
  input  wire logic [2:0]        db_q,
  input  wire logic [15:0]       db_pi,

  input  wire logic              rx_valid,
  input  wire logic [511:0]      rx_data,
  input  wire logic [63:0]       rx_keep,
  input  wire logic              rx_last,
  input  wire logic              rx_err,
  input  wire logic              class_valid,
  input  wire logic              class_rdma,
  input  wire logic              rdma_first,
  output      logic              loop_room,

  output      logic              rd_valid,
  output      logic [63:0]       rd_addr,
  output      logic [12:0]       rd_len,
  input  wire logic              rd_ready,
  input  wire logic              rdr_valid,
  input  wire logic [511:0]      rdr_data,
  input  wire logic              rdr_last,
  input  wire logic              rdr_err,

  output      logic              wr_valid,
  output      logic [63:0]       wr_addr,
  output      logic [12:0]       wr_len,
  output      logic [511:0]      wr_data,
  output      logic              wr_last,
  input  wire logic              wr_ready,

  output      logic              rxc_valid,
  output      logic [2:0]        rxc_q,
  output      logic              rxc_vlan,
  output      logic [15:0]       rxc_tci,
  output      logic [1:0]        rxc_hash_type,
  output      logic [31:0]       rxc_hash,
  output      logic [7:0]        rxc_bufs,
  output      logic [15:0]       rxc_len,
  output      logic [15:0]       rxc_csum,
  output      logic [15:0]       rxc_index,
  input  wire logic              rxc_ready,

  output      logic [63:0]       cnt,

  output      logic              trace_eth_in_valid,
  output      tr_eth_in_t        trace_eth_in,
  output      logic              trace_eth_buf_valid,
  output      tr_eth_buf_t       trace_eth_buf
);

  eth_cfg_t cfg;
  eth_ring_t [7:0] ring;
  logic [7:0][6:0] size;
  logic [63:0] vlan_mem [64];
  logic [11:0] vlan_id;
  logic vlan_member;
  logic [URDMA_CNT_N-1:0] cnt_n;
  dma_rd_req_t rd;
  dma_wr_t wr;
  eth_rxc_t rxc;

  initial for (int i = 0; i < 64; i++) vlan_mem[i] = '0;

  always_ff @(posedge clk) begin
    if (vlan_we) vlan_mem[vlan_word] <= vlan_bits;
    vlan_member <= vlan_mem[vlan_id[11:6]][vlan_id[5:0]];
  end

  always_comb begin
    {cfg.loopback, cfg.vlan_filter, cfg.vlan_strip, cfg.allmulti, cfg.promisc, cfg.rx_enable} = ctrl;
    {cfg.hash_udp, cfg.hash_tcp, cfg.hash_ipv6, cfg.hash_ipv4} = rss;
    cfg.key = key;
    cfg.mac = mac;
    cfg.uc_valid = uc_valid;
    cfg.uc = uc;
    cfg.mc_hash = mc_hash;
    for (int i = 0; i < 128; i++) cfg.table_[i] = rss_table[8*i+:3];
    for (int i = 0; i < 8; i++) begin
      ring[i] = '{enable: enable[i], base: base[i], log_entries: log_entries[i][4:0]};
      size[i] = buf64[i][6:0];
    end
  end

  assign cnt = 64'(cnt_n);
  assign {rd_addr, rd_len} = rd;
  assign {wr_addr, wr_len, wr_data, wr_last} = wr;
  assign {rxc_q, rxc_vlan, rxc_tci, rxc_hash_type, rxc_hash, rxc_bufs, rxc_len, rxc_csum, rxc_index} = rxc;

  urdma_eth_rx u_rx (
    .clk(clk), .rst(rst), .busy(busy),
    .cfg(cfg), .ring(ring), .buf64(size), .active(active), .err(err), .ci(ci),
    .vlan_id(vlan_id), .vlan_member(vlan_member),
    .db_valid(db_valid), .db_q(db_q), .db_pi(db_pi),
    .rx_valid(rx_valid), .rx({rx_data, rx_keep, rx_last, rx_err}),
    .class_valid(class_valid), .class_rdma(class_rdma), .rdma_first(rdma_first), .loop_room(loop_room),
    .rd_req_valid(rd_valid), .rd_req(rd), .rd_req_ready(rd_ready),
    .rd_rsp_valid(rdr_valid), .rd_rsp({rdr_data, rdr_last, rdr_err}),
    .wr_valid(wr_valid), .wr(wr), .wr_ready(wr_ready),
    .rxc_valid(rxc_valid), .rxc(rxc), .rxc_ready(rxc_ready),
    .cnt(cnt_n), .trace_eth_in_valid, .trace_eth_in, .trace_eth_buf_valid, .trace_eth_buf
  );

  logic unused;
  assign unused = &{1'b0, log_entries, buf64, rss_table};

endmodule

`resetall
