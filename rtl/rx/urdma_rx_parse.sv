// SPDX-License-Identifier: Apache-2.0
// Frames from the MAC: decoding, checks and ICRC; the payload goes to the packet buffer.
//
//  mac_*     up to one beat per cycle; gaps are allowed anywhere. It cannot be stalled.
//  pkt_*     a packet whose frame was good; 0: to the responder, 1: to requester completion. An acknowledgement goes to 1, a
//            READ response or ATOMIC acknowledge to both or to none. req_ready: 0 has room for a request, too.
//  rd_*      read port of the packet buffer, latency 1. Payload begins at lane 0 of line pkt.line.
//  free_*    lines given back, in the order of the packets on port 0
//  gid_*     entries of the GID table as they are written
//  mac_home  with mac: an RDMA frame of this NIC, looped back
//  mc_*      is the frame to a group of urdma_rx_mcast? The answer comes a cycle later. mc_full: no room for datagrams to
//            groups
//  class_*   once for each frame, in order: is it RDMA's? 5 cycles after its first beat, 4 after its second if there is one
//  free      lines of the packet buffer that are free
//
// The stream runs through fixed stages. A frame's beats keep their order, and a frame of one beat can follow another in the
// next cycle. Stages and their cycle, counted from the first beat on mac_*:
//
//   1  d0      beat as it came (urdma_window)
//   2  d1      with the next beat, the window of 128 bytes that holds all headers
//   3  x0      stream shifted by 2 bytes: after the 14 or 18 bytes of Ethernet header, every part of a RoCE packet then lies
//              at a multiple of 4
//   4  x1      headers decoded (dec); with x0, the window from which the payload is aligned
//   5  y0      payload line, and the beat as the ICRC sees it; the XRCETH is taken out of the extended headers, and a FETH is
//              put after the RETH
//   6-9 y1-4   the ICRC engine's stages
//   10         y4: payload line to the buffer; with the frame's last beat the verdict, and the packet goes on.
//
// Lines are written after the last accepted line. A frame that fails never accepts its lines, so the next frame's first line,
// at least one cycle later, overwrites them.

`resetall
`default_nettype none

module urdma_rx_parse
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_crc32_pkg::*;
  import urdma_opcode_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   busy,

  input  wire logic                   mac_valid,
  input  wire mac_beat_t              mac,
  input  wire logic                   mac_home,

  output      logic [1:0]             pkt_valid,
  output      pkt_t                   pkt,
  input  wire logic [1:0]             pkt_ready,
  input  wire logic                   req_ready,

  input  wire logic                   rd_en,
  input  wire logic [BUF_W-1:0]       rd_line,
  output      logic [511:0]           rd_data,
  input  wire logic                   free_valid,
  input  wire logic [6:0]             free_lines,

  input  wire logic                   gid_wr_valid,
  input  wire logic [GID_W-1:0]       gid_wr_idx,
  input  wire gid_t                   gid_wr,
  output      logic                   mc_look_valid,
  output      mc_look_t               mc_look,
  input  wire logic                   mc_hit,
  input  wire logic [MCG_W-1:0]       mc_hit_idx,
  input  wire logic [MCM_W:0]         mc_hit_copies,
  input  wire logic                   mc_full,
  output      logic                   class_valid,
  output      logic                   class_rdma,
  output      logic [BUF_W:0]         free,

  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic [6:0]             rx_bytes,
  output      logic                   trace_in_valid,
  output      tr_in_t                 trace_in,
  output      logic                   trace_bad_valid,
  output      tr_bad_t                trace_bad
);

  logic [URDMA_CNT_N-1:0] cnt_reg;
  assign cnt = cnt_reg;

  logic class_valid_reg;
  assign class_valid = class_valid_reg;

  // ---- d0, d1: the raw beats -----------------------------------------------------------------------
  logic d_busy, d_go, d1_first, d0_valid, absorb;
  mac_window_t d0, d1;
  urdma_window window (
    .clk, .rst, .busy(d_busy), .in_valid(mac_valid), .in(mac),
    .go(d_go), .head(d1), .first(d1_first), .next_valid(d0_valid), .next(d0), .absorb
  );
  // the last beat has at most the two bytes that the shifted stream carries with the beat before
  assign absorb = !d1.last && d0.last && d0.n <= 7'd2;
  assign rx_bytes = d0_valid ? d0.n : 7'd0;

  // ---- x0: shifted stream ----------------------------------------------------------------------------
  // Bytes of the headers from the IP header on: 40 IPv6, 8 UDP, 12 BTH, 4 XRCETH, 28 of what follows.
  localparam int L4 = 24 + EXT_BYTES;
  localparam int HDR = 40 + L4;

  logic x0_valid_reg, x0_first_reg, x0_last_reg, x0_err_reg;
  logic [511:0] x0_reg;
  logic [7:0] x0_idx_reg;          // number of the beat, no further than 255
  logic [6:0] x0_n_reg;            // raw bytes of the beat that decide the frame's length
  logic [7:0] x0_n_idx_reg;
  logic [8*HDR-1:0] x0_hdr_reg;
  logic [47:0] x0_dmac_reg, x0_smac_reg;
  logic next_home_reg, head_home_reg, x0_home_reg;
  logic x0_vlan_reg;
  logic [6:0] x0_have_reg;         // bytes of a frame of one beat, else more than any header needs
  logic [15:0] x0_tci_reg;
  logic [15:0] x0_etype_reg;
  logic [7:0] idx_next_reg;

  /* verilator lint_off UNUSEDSIGNAL */  // without the addresses
  logic [8*(18+HDR)-1:0] d_win;
  /* verilator lint_on UNUSEDSIGNAL */
  logic d_vlan;
  assign d_win = {d0.data[8*(18+HDR-64)-1:0], d1.data};
  assign d_vlan = be16(d1.data[8*12+:16]) == 16'h8100;

  // beside the window
  always_ff @(posedge clk) begin
    if (mac_valid) next_home_reg <= mac_home;
    if (d0_valid) head_home_reg <= next_home_reg;
  end

  always_ff @(posedge clk) begin
    if (d_go) begin
      x0_reg <= {d0.data[15:0], d1.data[511:16]};
      x0_first_reg <= d1_first;
      x0_last_reg <= d1.last || absorb;
      x0_err_reg <= d1.err || (absorb && d0.err);
      x0_idx_reg <= d1_first ? 8'd0 : idx_next_reg;
      x0_n_idx_reg <= (d1_first ? 8'd0 : idx_next_reg) + 8'(absorb);
      x0_n_reg <= absorb ? d0.n : d1.n;
      idx_next_reg <= d1_first ? 8'd1 : (&idx_next_reg[7:1]) ? idx_next_reg : idx_next_reg + 8'd1;
      if (d1_first) begin
        x0_dmac_reg <= d1.data[47:0];
        x0_home_reg <= head_home_reg;
        if (d1.data[0]) x0_smac_reg <= d1.data[95:48];
        x0_vlan_reg <= d_vlan;
        x0_have_reg <= d1.last ? d1.n : '1;
        x0_tci_reg <= be16(d1.data[8*14+:16]);
        x0_etype_reg <= d_vlan ? be16(d1.data[8*16+:16]) : be16(d1.data[8*12+:16]);
        x0_hdr_reg <= d_vlan ? d_win[8*18+:8*HDR] : d_win[8*14+:8*HDR];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) x0_valid_reg <= 1'b0;
    else x0_valid_reg <= d_go;
  end

  // ---- x1: decoded -------------------------------------------------------------------------------------
  typedef struct packed {
    logic        rdma;             // UDP to port 4791, not a fragment, no IP options
    logic        bad;              // a header is wrong
    logic        back;             // to a group, and neither RDMA's nor the Ethernet function's; for the lane
    logic        v6;
    logic [13:0] xlen;             // bytes of the shifted stream up to the end of the ICRC
    logic [6:0]  off;              // where the payload begins in it
    pkt_t        pkt;              // in this stage ext begins with the XRCETH, if there is one
    logic [31:0] tail;             // bytes after ext
  } dec_t;

  function automatic logic [15:0] ip_sum(input logic [159:0] h);
    logic [19:0] s;
    s = '0;
    for (int i = 0; i < 10; i++) s = s + 20'(be16(h[16*i+:16]));
    s = 20'(s[15:0]) + 20'(s[19:16]);
    return s[15:0] + 16'(s[16]);
  endfunction

  // h from the IP header on
  function automatic dec_t decode(input logic [8*HDR-1:0] h, input logic [15:0] etype, input logic vlan, input logic [6:0] have);
    dec_t d;
    /* verilator lint_off UNUSEDSIGNAL */  // ports, checksum, reserved bits are not used
    logic [8*L4-1:0] l4;           // UDP, BTH, extended headers
    /* verilator lint_on UNUSEDSIGNAL */
    logic [6:0] ipl;
    logic [5:0] ext_len;           // all extended headers
    logic [15:0] tot, ulen;
    bth_t bth;
    logic [16:0] room;             // payload with pad; negative if bit 16
    logic [1:0] pad;
    logic ip4, ip6, ud;
    ip4 = etype == 16'h0800 && h[7:0] == 8'h45 && {h[8*6+:5], h[8*7+:8]} == 13'd0 && !h[8*6+5];
    ip6 = etype == 16'h86dd && h[7:4] == 4'd6;
    d.back = 1'b0;                                    // known later
    d.v6 = ip6;
    ipl = ip6 ? 7'd40 : 7'd20;
    l4 = ip6 ? h[8*40+:8*L4] : h[8*20+:8*L4];
    tot = ip6 ? be16(h[8*4+:16]) + 16'd40 : be16(h[8*2+:16]);
    ulen = be16(l4[8*4+:16]);
    d.rdma = ((ip4 && h[8*9+:8] == 8'd17) || (ip6 && h[8*6+:8] == 8'd17)) && be16(l4[8*2+:16]) == 16'd4791
        && have >= (vlan ? 7'd18 : 7'd14) + ipl + 7'd4;  // else the frame ends before the port number
    d.pkt = '0;
    d.pkt.opcode = l4[8*8+:8];
    bth = bth_decode(d.pkt.opcode);
    d.pkt.bth = bth;
    ud = bth.valid && bth.transport == XP_UD;
    pad = l4[8*9+4+:2];
    ext_len = 6'(bth.ext_len) + {3'd0, bth.xrceth, 2'd0};
    room = 17'(ulen) - 17'd24 - 17'(ext_len);
    // The value of an ATOMIC acknowledge counts as payload for the packet buffer. So does the GRH of a datagram, which is
    // written over the 40 bytes before its payload.
    d.off = (vlan ? 7'd16 : 7'd12) + ipl + (ud ? 7'(20 - GRH_BYTES) : 7'd20) + (bth.atomic_ack ? 7'd4 : 7'(ext_len));
    d.xlen = 14'(tot) + (vlan ? 14'd16 : 14'd12);
    d.pkt.len = 13'(room) - 13'(pad) + (ud ? 13'(GRH_BYTES) : 13'd0);
    d.pkt.lines = bth.atomic_ack ? 7'd1 : 7'((d.pkt.len + 13'd63) >> 6);
    d.bad = (ip4 && ip_sum(h[159:0]) != 16'hffff) || (ip6 && be16(h[8*4+:16]) != ulen)
        || (ip4 && tot != ulen + 16'd20)
        || l4[8*9+:4] != 4'd0                             // BTH version
        || room[16] || room[1:0] != 2'd0 || room > 17'd4096 || room < 17'(pad)
        || ((bth.ack || bth.atomic_ack) && room != 17'd0);
    d.pkt.ipv4 = ip4;
    d.pkt.sip = ip6 ? h[8*8+:128] : {h[8*12+:32], 16'hffff, 80'd0};
    d.pkt.dip = ip6 ? h[8*24+:128] : {h[8*16+:32], 16'hffff, 80'd0};
    d.pkt.se = l4[8*9+7];
    d.pkt.pkey = be16(l4[8*10+:16]);
    d.pkt.dqpn = {l4[8*13+:8], l4[8*14+:8], l4[8*15+:8]};
    d.pkt.ackreq = l4[8*16+7];
    d.pkt.psn = {l4[8*17+:8], l4[8*18+:8], l4[8*19+:8]};
    {d.tail, d.pkt.ext} = l4[8*20+:8*(4+EXT_BYTES)];
    return d;
  endfunction

  logic x1_valid_reg, x1_first_reg, x1_last_reg, x1_err_reg;
  logic [511:0] x1_reg;
  logic [7:0] x1_idx_reg, x1_n_idx_reg;
  logic [6:0] x1_n_reg;
  dec_t dec_reg;
  logic x1_go, x1_home_reg;
  logic [47:0] x1_smac_reg;        // of a frame to a group

  assign x1_go = x1_valid_reg && (x1_last_reg || x0_valid_reg);

  always_ff @(posedge clk) begin
    if (x0_valid_reg) begin
      x1_reg <= x0_reg;
      x1_first_reg <= x0_first_reg;
      x1_last_reg <= x0_last_reg;
      x1_err_reg <= x0_err_reg;
      x1_idx_reg <= x0_idx_reg;
      x1_n_idx_reg <= x0_n_idx_reg;
      x1_n_reg <= x0_n_reg;
      if (x0_first_reg) begin
        dec_reg <= decode(x0_hdr_reg, x0_etype_reg, x0_vlan_reg, x0_have_reg);
        dec_reg.pkt.dmac <= x0_dmac_reg;
        dec_reg.pkt.vlan_valid <= x0_vlan_reg;
        dec_reg.pkt.tci <= x0_tci_reg;
        x1_home_reg <= x0_home_reg;
        if (x0_dmac_reg[0]) x1_smac_reg <= x0_smac_reg;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) x1_valid_reg <= 1'b0;
    else if (x0_valid_reg) x1_valid_reg <= 1'b1;
    else if (x1_go) x1_valid_reg <= 1'b0;
  end

  // ---- class of the frame ---------------------------------------------------------------------------------------------
  // A frame is RDMA's if it has the addresses and the VLAN of an entry of the GID table, or if it is to a group of this NIC in
  // the VLAN of an entry. own_reg is valid for a frame from the second cycle of its first beat in x1 on, and while that beat
  // is in y0.
  //
  // A frame of this port to a group is received once: looped back, not from the wire. A frame to a group that comes from the
  // wire with the port's own source address was sent back by the network, and a looped one may have no member here. Neither
  // is for the Ethernet function: both end here, as RX_NOT_RDMA.
  gid_t [(1<<GID_W)-1:0] gid_reg;
  logic x1_look_reg, own_reg, mc_vlan_reg, mc_looked_reg, mc_mine_reg, mc_home_reg, mc, back;

  function automatic logic is_own(input gid_t [(1<<GID_W)-1:0] t, input logic ipv4, input logic [127:0] dip,
                                  input logic [47:0] dmac, input logic [11:0] vlan);
    logic hit;
    hit = 1'b0;
    for (int i = 0; i < (1 << GID_W); i++)
      if (t[i].valid && t[i].smac == dmac && t[i].gid == dip && t[i].ipv4 == ipv4
          && (t[i].vlan_valid ? t[i].vlan : 12'd0) == vlan) hit = 1'b1;
    return hit;
  endfunction

  // the VLAN is that of an entry; the source address is
  function automatic logic [1:0] is_port(input gid_t [(1<<GID_W)-1:0] t, input logic [47:0] smac, input logic [11:0] vlan);
    is_port = '0;
    for (int i = 0; i < (1 << GID_W); i++)
      if (t[i].valid) is_port |= {(t[i].vlan_valid ? t[i].vlan : 12'd0) == vlan, t[i].smac == smac};
  endfunction

  assign mc_look_valid = x1_look_reg && dec_reg.rdma && dec_reg.pkt.dmac[0];
  assign mc_look = '{ipv4: dec_reg.pkt.ipv4, dmac: dec_reg.pkt.dmac, dip: dec_reg.pkt.dip};
  assign mc = mc_looked_reg && mc_hit && mc_vlan_reg
      && mc_home_reg == mc_mine_reg;
  assign back = mc_looked_reg && ((mc_home_reg && !mc) || (mc_hit && mc_mine_reg && !mc_home_reg));
  assign class_rdma = own_reg || mc || back;

  always_ff @(posedge clk) begin
    if (x1_look_reg) mc_looked_reg <= mc_look_valid;
    if (mc_look_valid) begin
      {mc_vlan_reg, mc_mine_reg} <= is_port(gid_reg, x1_smac_reg, dec_reg.pkt.vlan_valid ? dec_reg.pkt.tci[11:0] : 12'd0);
      mc_home_reg <= x1_home_reg;
    end
    if (x1_look_reg) own_reg <= dec_reg.rdma && is_own(gid_reg, dec_reg.pkt.ipv4, dec_reg.pkt.dip, dec_reg.pkt.dmac,
                                                       dec_reg.pkt.vlan_valid ? dec_reg.pkt.tci[11:0] : 12'd0);
    if (gid_wr_valid) gid_reg[gid_wr_idx] <= gid_wr;
    if (rst) begin
      x1_look_reg <= 1'b0;
      class_valid_reg <= 1'b0;
      mc_looked_reg <= 1'b0;
      gid_reg <= '0;
    end else begin
      x1_look_reg <= x0_valid_reg && x0_first_reg;
      class_valid_reg <= x1_look_reg;
    end
  end

  // ---- y0: aligned payload, and the stream that the ICRC covers --------------------------------------------
  typedef struct packed {
    logic first;
    logic last;
    logic err;                     // MAC error, so far in the frame
    logic short_;                  // with last: the frame ends before the packet does
    logic crc;                     // the beat belongs to the packet
    logic crc_last;
    logic line;                    // this beat has a payload line
  } slot_t;

  // Bytes that may change on the way count as ones (annex A17, 17.3.3), at their places in the beats of the shifted stream.
  function automatic logic [511:0] variant_ones(input logic v6, input logic vlan);
    logic [511:0] m;
    int ip;
    m = '0;
    ip = vlan ? 16 : 12;
    if (v6) begin
      m[8*ip+:8] = 8'h0f;                    // traffic class, flow label
      m[8*ip+8+:24] = '1;
      m[8*(ip+7)+:8] = '1;                   // hop limit
      m[8*(ip+46)+:16] = '1;                 // UDP checksum; the BTH's byte lies in the second beat
    end else begin
      m[8*(ip+1)+:8] = '1;                   // type of service
      m[8*(ip+8)+:8] = '1;                   // time to live
      m[8*(ip+10)+:16] = '1;                 // header checksum
      m[8*(ip+26)+:16] = '1;                 // UDP checksum
      m[8*(ip+32)+:8] = '1;                  // BTH: FECN, BECN and reserved
    end
    return m;
  endfunction

  localparam logic [511:0] ONES_4 = variant_ones(1'b0, 1'b0);
  localparam logic [511:0] ONES_4V = variant_ones(1'b0, 1'b1);
  localparam logic [511:0] ONES_6 = variant_ones(1'b1, 1'b0);
  localparam logic [511:0] ONES_6V = variant_ones(1'b1, 1'b1);
  localparam logic [31:0] INIT_12 = crc32_unadvance(ICRC_INIT, 12);
  localparam logic [31:0] INIT_16 = crc32_unadvance(ICRC_INIT, 16);

  slot_t y_next;
  logic [13:0] x1_left;            // bytes of the packet in this beat and later ones
  logic [14:0] x1_flen;            // raw length of the frame if this is its last beat
  logic [7:0] x1_pl;               // number of the payload line that begins in this beat
  logic x1_err_all;
  logic err_reg;

  assign x1_left = dec_reg.xlen - {x1_idx_reg, 6'd0};
  assign x1_flen = {1'b0, x1_n_idx_reg, 6'd0} + 15'(x1_n_reg);
  assign x1_pl = x1_idx_reg - 8'(dec_reg.off[6]);
  assign x1_err_all = x1_err_reg || (!x1_first_reg && err_reg);

  always_comb begin
    y_next.first = x1_first_reg;
    y_next.last = x1_last_reg;
    y_next.err = x1_err_all;
    y_next.short_ = x1_flen < 15'(dec_reg.xlen) + 15'd2;
    y_next.crc = dec_reg.xlen > {x1_idx_reg, 6'd0};
    y_next.crc_last = y_next.crc && x1_left <= 14'd64;
    y_next.line = dec_reg.rdma && !dec_reg.bad && !x1_pl[7] && x1_pl[6:0] < dec_reg.pkt.lines && !x1_idx_reg[7];
  end

  logic y0_valid_reg;
  slot_t y0_reg;
  logic [511:0] y0_line_reg, y0_crc_reg;
  logic [6:0] y0_n_reg;
  logic [31:0] y0_init_reg;
  dec_t y0_dec_reg;

  always_ff @(posedge clk) begin
    if (x1_go) begin
      logic [991:0] w;
      logic [511:0] c;
      y0_reg <= y_next;
      err_reg <= x1_err_all;
      if (x1_first_reg) begin
        y0_dec_reg <= dec_reg;
        if (dec_reg.pkt.bth.xrceth) begin
          y0_dec_reg.pkt.srqn <= be24(dec_reg.pkt.ext[31:8]);
          y0_dec_reg.pkt.ext <= {dec_reg.tail, dec_reg.pkt.ext[8*EXT_BYTES-1:32]};
        end
        // the FETH goes after the RETH, so the RETH is where other requests have it
        if (dec_reg.pkt.bth.flush)
          y0_dec_reg.pkt.ext[159:0] <= dec_reg.pkt.bth.xrceth ? {dec_reg.pkt.ext[63:32], dec_reg.pkt.ext[191:64]}
              : {dec_reg.pkt.ext[31:0], dec_reg.pkt.ext[159:32]};
      end
      if (y_next.line) begin
        w = {x0_reg[479:0], x1_reg};
        if (dec_reg.off[5]) w[735:0] = w[991:256];
        if (dec_reg.off[4]) w[607:0] = w[735:128];
        if (dec_reg.off[3]) w[543:0] = w[607:64];
        if (dec_reg.off[2]) w[511:0] = w[543:32];
        // The first line of a datagram begins in the first beat, which has the IP header, at 12 or 16 of the shifted stream. An
        // IPv4 header is the second half of the 40 bytes (annex A17).
        if (x1_first_reg && dec_reg.pkt.bth.transport == XP_UD && dec_reg.pkt.bth.valid) begin
          w[8*GRH_BYTES-1:0] = dec_reg.pkt.vlan_valid ? x1_reg[8*16+:8*GRH_BYTES] : x1_reg[8*12+:8*GRH_BYTES];
          if (!dec_reg.v6) w[8*GRH_BYTES-1:0] = {w[159:0], 160'd0};
        end
        y0_line_reg <= w[511:0];
      end
      if (y_next.crc && dec_reg.rdma) begin
        c = x1_reg;
        if (x1_first_reg) begin
          case ({dec_reg.v6, dec_reg.pkt.vlan_valid})
            2'b00: c = c | ONES_4;
            2'b01: c = c | ONES_4V;
            2'b10: c = c | ONES_6;
            default: c = c | ONES_6V;
          endcase
          c[95:0] = '0;
          if (dec_reg.pkt.vlan_valid) c[127:96] = '0;
        end else if (x1_idx_reg == 8'd1 && dec_reg.v6) begin
          if (dec_reg.pkt.vlan_valid) c[32+:8] = '1;
          else c[0+:8] = '1;
        end
        y0_crc_reg <= c;
        y0_init_reg <= dec_reg.pkt.vlan_valid ? INIT_16 : INIT_12;
        y0_n_reg <= y_next.crc_last ? x1_left[6:0] : 7'd64;
      end
    end
  end

  // ---- y1..y4: in parallel to the ICRC engine -----------------------------------------------------------
  localparam int CRC_STAGES = 4;
  localparam logic [31:0] CRC_RESIDUE = 32'h2144df1c;  // CRC over a message and its own CRC

  logic [CRC_STAGES:1] y_valid_reg;
  slot_t y_reg [1:CRC_STAGES];
  dec_t y_dec_reg [1:CRC_STAGES];
  logic [511:0] y_line_reg [1:CRC_STAGES];
  logic crc_valid;
  logic [31:0] crc;

  urdma_crc32 u_crc (
    .clk(clk), .rst(rst),
    .in_valid(y0_valid_reg && y0_reg.crc && y0_dec_reg.rdma),
    .in_data(y0_crc_reg), .in_len(y0_n_reg),
    .in_first(y0_reg.first), .in_init(y0_init_reg), .in_last(y0_reg.crc_last),
    .out_valid(crc_valid), .out_crc(crc)
  );

  always_ff @(posedge clk) begin
    if (y0_valid_reg) begin
      y_reg[1] <= y0_reg;
      if (y0_reg.first) begin
        y_dec_reg[1] <= y0_dec_reg;
        y_dec_reg[1].rdma <= own_reg || mc;
        y_dec_reg[1].back <= back && !own_reg && !mc;
        if (mc && y0_dec_reg.pkt.bth.valid && y0_dec_reg.pkt.bth.transport == XP_UD) begin
          y_dec_reg[1].pkt.mc <= 1'b1;
          y_dec_reg[1].pkt.mc_idx <= mc_hit_idx;
          y_dec_reg[1].pkt.mc_copies <= (&y0_dec_reg.pkt.dqpn) ? mc_hit_copies : '0;
        end
      end
      if (y0_reg.line) y_line_reg[1] <= y0_line_reg;
    end
    for (int i = 2; i <= CRC_STAGES; i++) begin
      if (y_valid_reg[i-1]) begin
        y_reg[i] <= y_reg[i-1];
        if (y_reg[i-1].first) y_dec_reg[i] <= y_dec_reg[i-1];
        if (y_reg[i-1].line) y_line_reg[i] <= y_line_reg[i-1];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      y0_valid_reg <= 1'b0;
      y_valid_reg <= '0;
    end else begin
      y0_valid_reg <= x1_go;
      y_valid_reg <= {y_valid_reg[CRC_STAGES-1:1], y0_valid_reg};
    end
  end

  // ---- buffer and verdict -----------------------------------------------------------------------------
  /* verilator lint_off UNUSEDSIGNAL */  // parts of it were used in earlier stages
  slot_t z;
  dec_t z_dec;
  /* verilator lint_on UNUSEDSIGNAL */
  logic z_valid, z_req, z_fits, z_full, z_full_reg, z_crc_ok, crc_ok_reg, z_end, z_good, z_commit, line_we;
  logic [1:0] z_to;
  logic [BUF_W-1:0] base_reg, wp_reg, wp;
  logic [BUF_W:0] free_reg;

  assign z = y_reg[CRC_STAGES];
  assign z_dec = y_dec_reg[CRC_STAGES];
  assign z_valid = y_valid_reg[CRC_STAGES];
  // Only requests leave room for others: under overload, packets that end work are not dropped first.
  assign z_req = !z_to[1];
  assign z_fits = free_reg >= (BUF_W+1)'(z_dec.pkt.lines) + (z_req ? (BUF_W+1)'(RSP_LINES) : '0);
  assign free = free_reg;
  assign z_full = z.first ? !z_fits : z_full_reg;
  assign z_crc_ok = crc_valid ? (crc == CRC_RESIDUE) : (!z.first && crc_ok_reg);
  assign z_to = {z_dec.pkt.bth.ack || z_dec.pkt.bth.response, !z_dec.pkt.bth.ack};
  assign z_end = z_valid && z.last;
  assign z_good = z_end && !z.err && z_dec.rdma && !z_dec.bad && !z.short_ && z_crc_ok;
  assign z_commit = z_good && !z_full && (z_to & ~pkt_ready) == '0 && (!z_req || req_ready) && !(z_dec.pkt.mc && mc_full);
  assign line_we = z_valid && z.line && !z_full;
  assign wp = z.first ? base_reg : wp_reg;

  urdma_ram_sdp #(.WIDTH(512), .DEPTH(1 << BUF_W)) u_buf (
    .clk(clk),
    .wr_en(line_we), .wr_addr(wp), .wr_data(y_line_reg[CRC_STAGES]),
    .rd_en(rd_en), .rd_addr(rd_line), .rd_data(rd_data)
  );

  assign pkt_valid = {2{z_commit}} & z_to;
  always_comb begin
    pkt = z_dec.pkt;
    pkt.line = base_reg;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      base_reg <= '0;
      wp_reg <= '0;
      free_reg <= (BUF_W+1)'(1 << BUF_W);
      z_full_reg <= 1'b0;
      crc_ok_reg <= 1'b0;
    end else begin
      if (z_valid) begin
        z_full_reg <= z_full;
        crc_ok_reg <= z_crc_ok;
        wp_reg <= wp + (BUF_W)'(line_we);
      end
      if (z_commit) base_reg <= base_reg + (BUF_W)'(z_dec.pkt.lines);
      free_reg <= free_reg + (free_valid ? (BUF_W+1)'(free_lines) : '0)
          - (z_commit ? (BUF_W+1)'(z_dec.pkt.lines) : '0);
    end
  end

  always_ff @(posedge clk) begin
    cnt_reg <= '0;
    if (!rst && z_end) begin
      cnt_reg[URDMA_CNT_RX_FRAMES] <= 1'b1;
      if (z.err) cnt_reg[URDMA_CNT_RX_MAC_ERR] <= 1'b1;
      // frames for urdma_eth
      else if (!z_dec.rdma) cnt_reg[URDMA_CNT_RX_NOT_RDMA] <= 1'b1;
      else if (z_dec.bad || z.short_) cnt_reg[URDMA_CNT_RX_MALFORMED] <= 1'b1;
      else if (!z_crc_ok) cnt_reg[URDMA_CNT_RX_ICRC_ERR] <= 1'b1;
      else if (!z_commit) cnt_reg[URDMA_CNT_RX_DROP_FULL] <= 1'b1;
      else cnt_reg[URDMA_CNT_RX_RDMA_PKTS] <= 1'b1;
    end
  end

  assign trace_in_valid = z_good;
  assign trace_in = '{qpn: z_dec.pkt.dqpn, psn: z_dec.pkt.psn, opcode: z_dec.pkt.opcode, full: !z_commit};
  assign trace_bad_valid = z_end && !z_good && (z.err || z_dec.rdma || z_dec.back);
  always_comb begin
    trace_bad = '{qpn: z_dec.pkt.dqpn, psn: z_dec.pkt.psn, opcode: z_dec.pkt.opcode, why: TRB_ICRC};
    if (z.err) trace_bad.why = TRB_MAC;
    else if (!z_dec.rdma) trace_bad.why = TRB_BACK;
    else if (z_dec.bad || z.short_) trace_bad.why = TRB_MALFORMED;
  end

  assign busy = mac_valid || d_busy || x0_valid_reg || x1_valid_reg || y0_valid_reg
      || y_valid_reg != '0;

endmodule

`resetall
