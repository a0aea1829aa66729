// SPDX-License-Identifier: Apache-2.0
// Frames from the wire: owner, filters, tag removal, RSS, checksum, and storage of the frame in the buffer.
//
//  rx_*      at most a beat each cycle; gaps are allowed anywhere. The stream cannot be stalled.
//  class_*   once for each frame, in order: the frame belongs to RDMA
//  frm_*     frames in the buffer, in order, each at the line after the one before
//  rd_*      read port of the buffer, latency 1
//  free_*    lines freed, in the order of the frames
//  loop_room  room for a looped frame: such frames leave a large part of the memory to the MAC, which cannot wait
//
// The stream runs through fixed stages. Stages and their cycle, counted from the first beat on rx_*:
//
//   1  d0   beat as it came, bytes after the end set to zero (urdma_window)
//   2  d1   waits for the next beat: both hold all headers, and the bytes that move up when a tag is taken out
//   3  x0   stream as delivered to the host; header extracted, VLAN looked up
//   4  x1   decoded: input of the hash, address compared; checksum: 4 partial sums
//   5  x2   filters' verdict; hash: 9 parts; checksum: sum of the beat
//   6  x3   hash; checksum: sum of the frame
//   7  x4   queue; checksum folded to 18 bits
//   8  x5   line to the buffer; with the frame's last beat the verdict
//
// A class arrives at the latest 6 cycles after the second, or only, beat. If the last beat was absorbed by the beat before,
// the frame is decided 7 cycles after that last beat arrived: then the class reaches its FIFO just in time, and earlier for
// all other frames.
//
// Lines are written after the committed position. A frame that fails does not move that position, so the next frame
// overwrites its lines.

`resetall
`default_nettype none

module urdma_eth_rx_parse
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
  import urdma_crc32_pkg::*;
  import urdma_eth_rx_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   busy,

  input  wire eth_cfg_t               cfg,
  output      logic [11:0]            vlan_id,
  input  wire logic                   vlan_member,

  input  wire logic                   rx_valid,
  input  wire mac_beat_t              rx,
  input  wire logic                   class_valid,
  input  wire logic                   class_rdma,

  output      logic                   frm_valid,
  output      frame_t                 frm,
  input  wire logic                   frm_ready,

  input  wire logic                   rd_en,
  input  wire logic [LINE_W-1:0]      rd_line,
  output      logic [511:0]           rd_data,
  input  wire logic                   free_valid,
  input  wire logic [7:0]             free_lines,
  output      logic                   loop_room,

  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic                   trace_eth_in_valid,
  output      tr_eth_in_t             trace_eth_in
);

  logic loop_room_reg;
  assign loop_room = loop_room_reg;

  logic [URDMA_CNT_N-1:0] cnt_reg;
  assign cnt = cnt_reg;

  localparam int LOOP_LINES = (3 << LINE_W) / 8;
  localparam int LOOP_FRMS = (3 << FRM_W) / 8;

  localparam int STAGES = 5;       // x1 to x5

  // ---- d0, d1: the raw beats -----------------------------------------------------------------------
  logic d_busy, d_go, d1_first, d_tag, d_strip, strip_reg, absorb;
  mac_window_t d0, d1;
  urdma_window window (
    .clk, .rst, .busy(d_busy), .in_valid(rx_valid), .in(rx),
    .go(d_go), .head(d1), .first(d1_first), .next_valid(), .next(d0), .absorb
  );
  assign d_tag = d1.data[8*12+:16] == be16(16'h8100);
  assign d_strip = d1_first ? d_tag && cfg.vlan_strip : strip_reg;
  // the last beat has at most the four bytes that move up to the beat before
  assign absorb = !d1.last && d_strip && d0.last && d0.n <= 7'd4;

  always_ff @(posedge clk) if (d_go) strip_reg <= d_strip;

  // ---- x0: the stream as delivered -------------------------------------------------------------------
  // Bytes from the IP header on that the hash may need: 40 of IPv6, 4 of ports.
  localparam int HDR = 44;

  typedef struct packed {
    logic        first;
    logic        last;
    logic        err;              // MAC error, so far in the frame
    logic [14:0] len;              // bytes of the frame up to the end of this beat
  } slot_t;

  logic x0_valid_reg;
  slot_t x0_slot_reg;
  logic [511:0] x0_reg;
  logic [7:0] idx_next_reg;        // beats of the frame, no more than 255
  logic [8*HDR-1:0] x0_hdr_reg;
  logic [47:0] x0_dmac_reg;
  logic x0_tag_reg, x0_strip_reg;
  logic x0_enable_reg, x0_promisc_reg, x0_allmulti_reg, x0_vlan_filter_reg;  // ETH_CTRL, sampled once per frame
  logic [15:0] x0_tci_reg, x0_etype_reg;
  logic [7:0] d_idx;
  logic [6:0] d_n;

  assign d_idx = d1_first ? 8'd0 : idx_next_reg;
  assign d_n = absorb ? 7'd60 + d0.n : (d1.last && d_strip) ? d1.n - 7'd4 : d1.n;

  always_ff @(posedge clk) begin
    if (d_go) begin
      logic [31:0] up;             // of the frame's next beat
      up = d1.last ? '0 : d0.data[31:0];
      if (!d_strip) x0_reg <= d1.data;
      else if (d1_first) x0_reg <= {up, d1.data[511:128], d1.data[95:0]};
      else x0_reg <= {up, d1.data[511:32]};
      x0_slot_reg.first <= d1_first;
      x0_slot_reg.last <= d1.last || absorb;
      x0_slot_reg.err <= d1.err || (absorb && d0.err) || (!d1_first && x0_slot_reg.err);
      x0_slot_reg.len <= {1'b0, d_idx, 6'd0} + 15'(d_n);
      idx_next_reg <= (&d_idx) ? d_idx : d_idx + 8'd1;
      if (d1_first) begin
        logic [8*HDR-1:0] hdr;
        x0_dmac_reg <= d1.data[47:0];
        x0_tag_reg <= d_tag;
        x0_strip_reg <= d_strip;
        x0_enable_reg <= cfg.rx_enable;
        x0_promisc_reg <= cfg.promisc;
        x0_allmulti_reg <= cfg.allmulti;
        x0_vlan_filter_reg <= cfg.vlan_filter;
        x0_tci_reg <= be16(d1.data[8*14+:16]);
        x0_etype_reg <= be16(d_tag ? d1.data[8*16+:16] : d1.data[8*12+:16]);
        hdr = d1.data[8*14+:8*HDR];
        if (d_tag) hdr = d1.data[8*18+:8*HDR];
        x0_hdr_reg <= hdr;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) x0_valid_reg <= 1'b0;
    else x0_valid_reg <= d_go;
  end

  assign vlan_id = x0_tci_reg[11:0];

  // ---- x1 to x5: in parallel to hash and checksum ----------------------------------------------------
  logic [STAGES:1] x_valid_reg;
  slot_t x_slot_reg [1:STAGES];
  logic [511:0] x_reg [1:STAGES];

  always_ff @(posedge clk) begin
    if (x0_valid_reg) begin
      x_slot_reg[1] <= x0_slot_reg;
      x_reg[1] <= x0_reg;
    end
    for (int i = 2; i <= STAGES; i++) begin
      if (x_valid_reg[i-1]) begin
        x_slot_reg[i] <= x_slot_reg[i-1];
        x_reg[i] <= x_reg[i-1];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) x_valid_reg <= '0;
    else x_valid_reg <= {x_valid_reg[STAGES-1:1], x0_valid_reg};
  end

  // ---- decoding and filters --------------------------------------------------------------------------
  // What bit i of an address adds to the low byte of its CRC-32.
  typedef logic [47:0][7:0] mc_map_t;

  function automatic mc_map_t mc_map();
    logic [31:0] s;
    s = 32'd1;
    for (int i = 47; i >= 0; i--) begin
      s = crc32_step(s);
      mc_map[i] = s[7:0];
    end
  endfunction

  function automatic logic [7:0] mc_start();
    logic [31:0] s;
    s = CRC32_INIT;
    for (int i = 0; i < 48; i++) s = crc32_step(s);
    return s[7:0];
  endfunction

  localparam mc_map_t MC_MAP = mc_map();
  localparam logic [7:0] MC_START = mc_start();

  function automatic logic [7:0] mc_of(input logic [47:0] a);
    mc_of = MC_START;
    for (int i = 0; i < 48; i++) mc_of = mc_of ^ ({8{a[i]}} & MC_MAP[i]);
  endfunction

  // of a frame: sampled with its first beat
  typedef struct packed {
    logic        tag;
    logic        strip;
    logic [15:0] tci;
    logic        mcast;
    logic        enable;           // RX_ENABLE
    logic        pass;             // no filter refuses it
    logic [1:0]  hash_type;
    logic [31:0] hash;
  } dec_t;

  dec_t x_dec_reg [1:STAGES];
  logic [287:0] x1_tin_reg;
  logic x1_all_reg;                // every group address is accepted
  logic x1_promisc_reg, x1_vlan_check_reg;
  logic [7:0] x1_mc_hash_reg;
  logic [ETH_UC_N:0] x1_uc_reg;    // which of the addresses it is; the topmost bit is the port's own
  logic [31:0] x3_hash;

  always_ff @(posedge clk) begin
    if (x0_valid_reg && x0_slot_reg.first) begin
      logic ip4, ip6, ports;
      logic [287:0] tin;
      ip4 = x0_etype_reg == 16'h0800 && x0_hdr_reg[7:4] == 4'd4 && cfg.hash_ipv4;
      ip6 = x0_etype_reg == 16'h86dd && x0_hdr_reg[7:4] == 4'd6 && cfg.hash_ipv6;
      if (ip6) ports = (x0_hdr_reg[8*6+:8] == 8'd6 && cfg.hash_tcp) || (x0_hdr_reg[8*6+:8] == 8'd17 && cfg.hash_udp);
      else ports = ((x0_hdr_reg[8*9+:8] == 8'd6 && cfg.hash_tcp) || (x0_hdr_reg[8*9+:8] == 8'd17 && cfg.hash_udp))
          && x0_hdr_reg[3:0] == 4'd5                                             // no options
          && {x0_hdr_reg[8*6+:5], x0_hdr_reg[8*7+:8]} == 13'd0 && !x0_hdr_reg[8*6+5];  // not a fragment
      tin = '0;
      if (ip6) begin
        tin[255:0] = x0_hdr_reg[8*8+:256];
        if (ports) tin[287:256] = x0_hdr_reg[8*40+:32];
      end else if (ip4) begin
        tin[63:0] = x0_hdr_reg[8*12+:64];
        if (ports) tin[95:64] = x0_hdr_reg[8*20+:32];
      end
      x1_tin_reg <= tin;
      x_dec_reg[1].hash_type <= (ip4 || ip6) ? (ports ? 2'd2 : 2'd1) : 2'd0;
      x_dec_reg[1].tag <= x0_tag_reg;
      x_dec_reg[1].strip <= x0_strip_reg;
      x_dec_reg[1].tci <= x0_tci_reg;
      x_dec_reg[1].mcast <= x0_dmac_reg[0];
      x_dec_reg[1].enable <= x0_enable_reg;
      x1_all_reg <= &x0_dmac_reg || x0_allmulti_reg;
      x1_promisc_reg <= x0_promisc_reg;
      x1_vlan_check_reg <= x0_vlan_filter_reg && x0_tag_reg && x0_tci_reg[11:0] != 12'd0;
      x1_mc_hash_reg <= mc_of(x0_dmac_reg);
      for (int i = 0; i < ETH_UC_N; i++) x1_uc_reg[i] <= cfg.uc_valid[i] && x0_dmac_reg == cfg.uc[i];
      x1_uc_reg[ETH_UC_N] <= x0_dmac_reg == cfg.mac;
    end
    if (x_valid_reg[1] && x_slot_reg[1].first) begin
      logic addr;
      if (x_dec_reg[1].mcast) addr = x1_all_reg || cfg.mc_hash[x1_mc_hash_reg];
      else addr = x1_uc_reg != '0;
      x_dec_reg[2] <= x_dec_reg[1];
      x_dec_reg[2].pass <= (addr || x1_promisc_reg) && !(x1_vlan_check_reg && !vlan_member);
    end
    for (int i = 3; i <= STAGES; i++)
      if (x_valid_reg[i-1] && x_slot_reg[i-1].first) x_dec_reg[i] <= x_dec_reg[i-1];
    if (x_valid_reg[3] && x_slot_reg[3].first) x_dec_reg[4].hash <= x_dec_reg[3].hash_type != 2'd0 ? x3_hash : '0;
  end

  urdma_eth_toeplitz u_hash (
    .clk(clk),
    .in_valid(x_valid_reg[1] && x_slot_reg[1].first && x_dec_reg[1].hash_type != 2'd0),
    .in_data(x1_tin_reg), .key(cfg.key), .hash(x3_hash)
  );

  logic [ETHQ_W-1:0] x5_q_reg;

  always_ff @(posedge clk) begin
    if (x_valid_reg[4] && x_slot_reg[4].first) x5_q_reg <= cfg.table_[x_dec_reg[4].hash[6:0]];
  end

  // ---- checksum ----------------------------------------------------------------------------------------
  // In words of 32 bits: the ones' complement sum of 16-bit words is the same after folding.
  logic [3:0][33:0] x1_sum_reg;
  logic [35:0] x2_sum_reg;
  logic [43:0] x3_sum_reg;
  logic [17:0] x4_sum_reg;
  logic [15:0] x5_sum_reg;

  always_ff @(posedge clk) begin
    if (x0_valid_reg) begin
      logic [511:0] d;
      d = x0_reg;
      if (x0_slot_reg.first) d[111:0] = '0;
      for (int i = 0; i < 4; i++)
        x1_sum_reg[i] <= 34'(d[128*i+:32]) + 34'(d[128*i+32+:32]) + 34'(d[128*i+64+:32]) + 34'(d[128*i+96+:32]);
    end
    if (x_valid_reg[1]) x2_sum_reg <= 36'(x1_sum_reg[0]) + 36'(x1_sum_reg[1]) + 36'(x1_sum_reg[2]) + 36'(x1_sum_reg[3]);
    if (x_valid_reg[2]) x3_sum_reg <= (x_slot_reg[2].first ? '0 : x3_sum_reg) + 44'(x2_sum_reg);
    if (x_valid_reg[3]) x4_sum_reg <= 18'(x3_sum_reg[15:0]) + 18'(x3_sum_reg[31:16]) + 18'(x3_sum_reg[43:32]);
    if (x_valid_reg[4]) begin
      logic [16:0] s;
      s = 17'(x4_sum_reg[15:0]) + 17'(x4_sum_reg[17:16]);
      x5_sum_reg <= s[15:0] + 16'(s[16]);
    end
  end

  // ---- buffer and verdict ------------------------------------------------------------------------------
  slot_t z;
  dec_t z_dec;
  logic z_valid, z_end, z_full, z_length, z_mine, z_commit, line_we, full_reg;
  logic z_class_valid, z_class_rdma, class_ready;
  logic frm_in_ready;
  frame_t z_frm;
  logic [LINE_W-1:0] base_reg, wp_reg, wp;
  logic [LINE_W:0] free_reg, lines, lines_reg;   // lines: of the frame, before this one
  logic [4:0] class_count;
  logic [FRM_W:0] frm_count;

  urdma_fifo #(.WIDTH(1), .DEPTH(16)) u_class (
    .clk(clk), .rst(rst), .in_valid(class_valid), .in_ready(class_ready), .in_data(class_rdma),
    .out_valid(z_class_valid), .out_ready(z_end), .out_data(z_class_rdma), .count(class_count)
  );

  assign z = x_slot_reg[STAGES];
  assign z_dec = x_dec_reg[STAGES];
  assign z_valid = x_valid_reg[STAGES];
  assign z_end = z_valid && z.last;
  assign lines = z.first ? '0 : lines_reg;
  assign wp = z.first ? base_reg : wp_reg;
  assign z_full = (!z.first && full_reg) || lines >= free_reg;
  // from 60 bytes with the tag, if there is one, to ETH_MAX_FRAME without it
  assign z_length = z.len + (z_dec.strip ? 15'd4 : 15'd0) < 15'(ETH_MIN_FRAME)
      || z.len > 15'(ETH_MAX_FRAME) + ((z_dec.tag && !z_dec.strip) ? 15'd4 : 15'd0);
  assign z_mine = z_end && !z.err && !z_class_rdma;
  assign z_commit = z_mine && z_dec.enable && !z_length && z_dec.pass && !z_full && frm_in_ready;
  assign line_we = z_valid && !z_full;

  urdma_ram_sdp #(.WIDTH(512), .DEPTH(1 << LINE_W)) u_buf (
    .clk(clk),
    .wr_en(line_we), .wr_addr(wp), .wr_data(x_reg[STAGES]),
    .rd_en(rd_en), .rd_addr(rd_line), .rd_data(rd_data)
  );

  assign z_frm = '{q: x5_q_reg, mcast: z_dec.mcast, vlan: z_dec.strip, tci: z_dec.strip ? z_dec.tci : 16'd0,
      hash_type: z_dec.hash_type, hash: z_dec.hash, len: z.len[13:0], csum: x5_sum_reg};

  urdma_fifo #(.WIDTH($bits(frame_t)), .DEPTH(1 << FRM_W), .OUT_REG(1)) u_frm (
    .clk(clk), .rst(rst), .in_valid(z_commit), .in_ready(frm_in_ready), .in_data(z_frm),
    .out_valid(frm_valid), .out_ready(frm_ready), .out_data(frm), .count(frm_count)
  );

  always_ff @(posedge clk) begin
    loop_room_reg <= free_reg >= (LINE_W+1)'((1 << LINE_W) - LOOP_LINES) && frm_count <= (FRM_W+1)'(LOOP_FRMS);
    if (rst) begin
      base_reg <= '0;
      wp_reg <= '0;
      lines_reg <= '0;
      full_reg <= 1'b0;
      free_reg <= (LINE_W+1)'(1 << LINE_W);
    end else begin
      if (z_valid) begin
        full_reg <= z_full;
        wp_reg <= wp + (LINE_W)'(line_we);
        lines_reg <= lines + (LINE_W+1)'(line_we);
      end
      if (z_commit) base_reg <= wp + 1'b1;
      free_reg <= free_reg + (free_valid ? (LINE_W+1)'(free_lines) : '0) - (z_commit ? lines + 1'b1 : '0);
    end
  end

  always_ff @(posedge clk) begin
    cnt_reg <= '0;
    if (!rst && z_mine) begin
      if (!z_dec.enable) cnt_reg[URDMA_CNT_ETH_RX_FILTERED] <= 1'b1;
      else if (z_length) cnt_reg[URDMA_CNT_ETH_RX_LENGTH] <= 1'b1;
      else if (!z_dec.pass) cnt_reg[URDMA_CNT_ETH_RX_FILTERED] <= 1'b1;
      else if (!z_commit) cnt_reg[URDMA_CNT_ETH_RX_DROP_FULL] <= 1'b1;
    end
  end

  assign trace_eth_in_valid = z_mine;
  always_comb begin
    trace_eth_in = '{len: z.len + (z_dec.strip ? 15'd4 : 15'd0), verdict: TRE_TAKEN};
    if (!z_dec.enable) trace_eth_in.verdict = TRE_FILTERED;
    else if (z_length) trace_eth_in.verdict = TRE_LENGTH;
    else if (!z_dec.pass) trace_eth_in.verdict = TRE_FILTERED;
    else if (!z_commit) trace_eth_in.verdict = TRE_FULL;
  end

  assign busy = rx_valid || d_busy || x0_valid_reg || x_valid_reg != '0 || frm_count != '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && z_end) a_class: assert (z_class_valid)
      else $error("%m: the end of a frame comes before its class");
  always_ff @(posedge clk)
    if (!rst && class_valid) a_class_full: assert (class_ready)
      else $error("%m: more classes than frames");
`endif

  logic unused;
  assign unused = &{1'b0, class_ready, z_class_valid, class_count, cfg.loopback, x0_hdr_reg, z.len[14]};

endmodule

`resetall
