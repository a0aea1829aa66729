// SPDX-License-Identifier: Apache-2.0
// Header assembly: Ethernet, VLAN, IPv4 or IPv6, UDP, BTH and extended headers of a packet. 3 cycles, one packet per cycle
// (RoCEv2: IBA volume 1, annex A17; BTH: 9.2).
//
// Cycle 1 requests the GID table entry (source MAC, source address, VLAN), cycle 2 uses it. The stages never stall: a packet
// is taken only when the output FIFO has a place for it. An acknowledgement has priority over a data packet.
//
// UDP checksum 0 with both IP versions: the ICRC covers more than it would (rdma_rxe and adapters do the same; RFC 6935).
// IPv4: DF set, identification 0, because the packet must not be fragmented. BTH: MigReq 1 (migrated), TVer 0.

`resetall
`default_nettype none

module urdma_tx_hdr
  import urdma_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             busy,

  input  wire logic             data_valid,
  input  wire pkt_t             data,
  output      logic             data_ready,
  input  wire logic             ack_valid,
  input  wire pkt_t             ack,
  output      logic             ack_ready,

  output      logic [GID_W-1:0] gid_idx,
  input  wire gid_t             gid,

  // for the counters of the QP: a packet that becomes a frame
  output      logic             qc_valid,
  output      qc_tx_t           qc,

  output      logic             hdr_valid,
  output      hdr_t             hdr,
  input  wire logic             hdr_ready
);

  localparam int DEPTH = 8;

  logic room, take;
  logic [3:0] used_reg;          // packets in the stages and in the FIFO
  pkt_t in;
  assign room = (32'(used_reg) < DEPTH);
  assign ack_ready = room;
  assign data_ready = room && !ack_valid;
  assign take = room && (ack_valid || data_valid);
  assign in = ack_valid ? ack : data;

  // ---- cycle 1 ----------------------------------------------------------------------------------------------
  logic h1_valid_reg, h2_valid_reg, h3_valid_reg;
  pkt_t h1_reg, h2_reg;
  assign gid_idx = h1_reg.path.sgid;

  // ---- cycle 2: gid is h2's ------------------------------------------------------------------------------------
  logic v4, vlan;
  logic [1:0] pad;
  logic [5:0] xlen;              // UDP, BTH, extended header
  logic [15:0] udp_len, ip_len;
  logic [6:0] hlen;
  logic [19:0] sum;              // of the IPv4 header's 16-bit words, big-endian
  assign v4 = gid.ipv4;
  assign vlan = gid.vlan_valid;
  assign pad = 2'd0 - h2_reg.plen[1:0];
  assign xlen = 6'd20 + 6'(h2_reg.ext_len);
  assign udp_len = 16'(xlen) + 16'(h2_reg.plen) + 16'(pad) + 16'd4;
  assign ip_len = udp_len + 16'd20;
  assign hlen = 7'd34 + (vlan ? 7'd4 : 7'd0) + (v4 ? 7'd0 : 7'd20) + 7'(xlen);

  // bytes 12 to 15 of ::ffff:a.b.c.d
  logic [31:0] sip, dip;
  assign sip = gid.gid[127:96];
  assign dip = h2_reg.path.dgid[127:96];
  assign sum = 20'h4500 + 20'(h2_reg.path.tclass) + 20'(ip_len) + 20'h4000 + {4'd0, h2_reg.path.hop_limit, 8'd17}
               + 20'({sip[7:0], sip[15:8]}) + 20'({sip[23:16], sip[31:24]})
               + 20'({dip[7:0], dip[15:8]}) + 20'({dip[23:16], dip[31:24]});

  // ---- cycle 3 -----------------------------------------------------------------------------------------------------
  pkt_t h3_reg;
  gid_t h3_gid_reg;
  logic [1:0] h3_pad_reg;
  logic [15:0] h3_udp_len_reg, h3_ip_len_reg;
  logic [6:0] h3_hlen_reg;
  logic [19:0] h3_sum_reg;
  logic [16:0] fold1;
  logic [15:0] csum;
  assign fold1 = 17'(h3_sum_reg[15:0]) + 17'(h3_sum_reg[19:16]);
  assign csum = ~(fold1[15:0] + 16'(fold1[16]));

  logic [14*8-1:0] l2;           // Ethernet, without the tag
  logic [18*8-1:0] l2v;          // with the tag
  logic [20*8-1:0] ip4;
  logic [40*8-1:0] ip6;
  logic [52*8-1:0] xp;           // UDP, BTH, extended headers
  logic [15:0] ethertype;
  logic [7:0] opcode;
  logic [HDR_BYTES*8-1:0] bytes;

  assign opcode = {h3_reg.path.service, h3_reg.opcode[4:0]};
  assign ethertype = be16(h3_gid_reg.ipv4 ? 16'h0800 : 16'h86dd);
  assign l2 = {ethertype, h3_gid_reg.smac, h3_reg.path.dmac};
  assign l2v = {ethertype, be16({h3_reg.path.pcp, 1'b0, h3_gid_reg.vlan}), be16(16'h8100), h3_gid_reg.smac, h3_reg.path.dmac};
  assign ip4 = {h3_reg.path.dgid[127:96], h3_gid_reg.gid[127:96], be16(csum), 8'd17, h3_reg.path.hop_limit,
                be16(16'h4000), 16'd0, be16(h3_ip_len_reg), h3_reg.path.tclass, 8'h45};
  assign ip6 = {h3_reg.path.dgid, h3_gid_reg.gid, h3_reg.path.hop_limit, 8'd17, be16(h3_udp_len_reg),
                be32({4'd6, h3_reg.path.tclass, h3_reg.path.flow_label})};
  assign xp = {h3_reg.ext,
               be24(h3_reg.psn), h3_reg.ackreq, 7'd0, be24(h3_reg.path.dest_qpn), 8'd0,
               be16(h3_reg.path.pkey), h3_reg.se, 1'b1, h3_pad_reg, 4'd0, opcode,
               16'd0, be16(h3_udp_len_reg), be16(16'd4791), be16(h3_reg.path.udp_sport)};

  always_comb begin
    case ({h3_gid_reg.vlan_valid, h3_gid_reg.ipv4})
      2'b01: bytes = (HDR_BYTES*8)'({xp, ip4, l2});
      2'b11: bytes = (HDR_BYTES*8)'({xp, ip4, l2v});
      2'b00: bytes = (HDR_BYTES*8)'({xp, ip6, l2});
      default: bytes = (HDR_BYTES*8)'({xp, ip6, l2v});
    endcase
  end

  hdr_t out;
  logic [12:0] total;
  always_comb begin
    out = '0;
    out.qpn = h3_reg.qpn;
    out.opcode = opcode;
    out.dqpn = h3_reg.path.dest_qpn;
    out.psn = h3_reg.psn;
    out.vlan = h3_gid_reg.vlan_valid;
    out.ipv6 = !h3_gid_reg.ipv4;
    // a source address that has been removed from the table must not be used any more
    out.drop = h3_reg.drop || !h3_gid_reg.valid || h3_reg.path.no_sgid;
    out.loop = h3_reg.path.dmac[0] && !h3_reg.path.no_loop;
    out.hlen = h3_hlen_reg;
    out.plen = h3_reg.plen;
    out.icrc_at = 13'(h3_hlen_reg) + h3_reg.plen + 13'(h3_pad_reg);
    total = out.icrc_at + 13'd4;
    if (total < 13'd60) total = 13'd60;  // minimum Ethernet frame, without FCS
    out.beats = 7'((total + 13'd63) >> 6);
    out.last_len = (total[5:0] == '0) ? 7'd64 : {1'b0, total[5:0]};
    out.hdr = bytes;
  end

  logic qc_valid_reg;
  qc_tx_t qc_reg;
  assign qc_valid = qc_valid_reg;
  assign qc = qc_reg;
  always_ff @(posedge clk) begin
    // the payload of an ATOMIC WRITE is kept with its headers
    if (h3_valid_reg)
      qc_reg <= '{qpn: h3_reg.qpn, bytes: (opcode[4:0] == BTH_ATOMIC_WRITE[4:0]) ? 13'd8 : h3_reg.plen,
                  hit: '{pkt: 1'b1, bytes: 1'b1, again: h3_reg.again}};
    qc_valid_reg <= h3_valid_reg && !out.drop && !rst;
  end

  logic fifo_ready;
  logic [3:0] fifo_count;
  urdma_fifo #(.WIDTH($bits(hdr_t)), .DEPTH(DEPTH)) fifo (
    .clk, .rst, .in_valid(h3_valid_reg), .in_ready(fifo_ready), .in_data(out),
    .out_valid(hdr_valid), .out_ready(hdr_ready), .out_data(hdr), .count(fifo_count)
  );

  always_ff @(posedge clk) begin
    if (take) h1_reg <= in;
    if (h1_valid_reg) h2_reg <= h1_reg;
    if (h2_valid_reg) begin
      h3_reg <= h2_reg;
      h3_gid_reg <= gid;
      h3_pad_reg <= pad;
      h3_udp_len_reg <= udp_len;
      h3_ip_len_reg <= ip_len;
      h3_hlen_reg <= hlen;
      h3_sum_reg <= sum;
    end
    if (rst) begin
      h1_valid_reg <= 1'b0;
      h2_valid_reg <= 1'b0;
      h3_valid_reg <= 1'b0;
      used_reg <= '0;
    end else begin
      h1_valid_reg <= take;
      h2_valid_reg <= h1_valid_reg;
      h3_valid_reg <= h2_valid_reg;
      used_reg <= used_reg + 4'(take) - 4'(hdr_valid && hdr_ready);
    end
  end

  assign busy = (used_reg != '0);

  logic unused;
  assign unused = ^{fifo_ready, fifo_count, h3_reg.ext_len, h3_reg.opcode[7:5]};

endmodule

`resetall
