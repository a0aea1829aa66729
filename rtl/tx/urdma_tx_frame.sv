// SPDX-License-Identifier: Apache-2.0
// Frame assembly: header and payload become beats, the ICRC is added, and the frame goes to the MAC.
//
// One beat per cycle, no gap between packets. The payload is dense in the packet buffer and is rotated to its place after the
// header. Header lengths are 2 modulo 4, so the rotation is by an even number of bytes.
//
//  G0  chooses the line of the buffer and the part of the header
//  G1  the line arrives, cut to the payload's length; rotated by 32, 16, 8 bytes
//  G2  rotated by 4, 2 bytes
//  G3  merged with the end of the line before, or the header: a beat. It goes to the output FIFO and to the CRC engine, there
//      with ones for the variable fields and zeros for the Ethernet header.
//
// Each beat stays CRC_WAIT cycles in the output FIFO, until the CRC of a frame that ends with it is done. The beats of one
// frame enter without a gap (they stop only while the FIFO is well filled), so they leave without a gap.

`resetall
`default_nettype none

module urdma_tx_frame
  import urdma_pkg::*;
  import urdma_trace_pkg::*;
  import urdma_crc32_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic              hdr_valid,
  input  wire hdr_t              hdr,
  output      logic              hdr_ready,

  output      logic              line_rd_en,
  output      logic [LINE_W-1:0] line_rd,
  input  wire logic [511:0]      line_data,
  output      logic              line_free,
  output      logic [6:0]        line_free_n,

  output      logic              mac_valid,
  output      mac_beat_t         mac,
  output      logic              mac_loop,     // of the frame: it is looped back as well
  input  wire logic              mac_ready,
  output      logic              mac_frame,    // pulse: a frame has left
  output      logic              trace_out_valid,
  output      tr_out_t           trace_out
);

  localparam int OUT = 32;       // beats in the output FIFO
  localparam int CRC_WAIT = 5;   // cycles that a beat waits in it: CRC latency 4, the result's FIFO 1

  // ---- G0 ------------------------------------------------------------------------------------------------
  logic [6:0] beat_reg;
  logic [12:0] left_reg;         // payload not yet read, from the second beat on
  logic [LINE_W-1:0] line_reg;
  logic [5:0] used_reg;          // beats in G1..G3 and the FIFO
  logic o_pop;                   // a beat leaves the output FIFO
  logic room, step, first, last, long_hdr, has_line;
  logic [12:0] left;
  logic [6:0] drop_lines;

  assign room = (32'(used_reg) < OUT);
  assign first = (beat_reg == '0);
  assign last = (beat_reg + 7'd1 == hdr.beats);
  assign long_hdr = hdr.hlen[6];
  assign left = first ? hdr.plen : left_reg;
  assign has_line = (left != '0) && !(first && long_hdr);
  assign step = hdr_valid && !hdr.drop && room;
  assign hdr_ready = hdr.drop || (room && last);
  assign drop_lines = 7'((hdr.plen + 13'd63) >> 6);

  assign line_rd_en = step && has_line;
  assign line_rd = line_reg;
  assign line_free = line_rd_en || (hdr_valid && hdr.drop);
  assign line_free_n = hdr.drop ? drop_lines : 7'd1;

  typedef struct packed {
    logic        first;
    logic        second;
    logic        last;
    logic        loop;
    tr_out_t     what;           // the frame, for its lane
    logic        has_line;
    logic [6:0]  line_bytes;     // payload bytes in the line
    logic        long_hdr;
    logic [5:0]  shift;          // header length modulo 64
    logic        vlan;
    logic        ipv6;
    logic        crc_last;       // the last byte before the ICRC is in this beat
    logic        crc_next;       // the ICRC's second half, in lanes 0 and 1
    logic [5:0]  crc_at;
    logic [6:0]  len;
    logic        hdr_part;       // g*_hdr has bytes for this beat
  } g_t;

  g_t g0, g1_reg, g2_reg, g3_reg;
  logic g1_valid_reg, g2_valid_reg, g3_valid_reg;
  logic [511:0] g1_hdr_reg, g2_hdr_reg, g3_hdr_reg, g2_line_reg, g3_line_reg, g3_carry_reg;
  logic [6:0] icrc_beat;
  assign icrc_beat = 7'((hdr.icrc_at - 13'd1) >> 6);

  always_comb begin
    g0.first = first;
    g0.second = (beat_reg == 7'd1);
    g0.last = last;
    g0.loop = hdr.loop;
    g0.what = '{qpn: hdr.qpn, dqpn: hdr.dqpn, psn: hdr.psn, opcode: hdr.opcode};
    g0.has_line = has_line;
    g0.line_bytes = (left >= 13'd64) ? 7'd64 : left[6:0];
    g0.long_hdr = long_hdr;
    g0.shift = hdr.hlen[5:0];
    g0.vlan = hdr.vlan;
    g0.ipv6 = hdr.ipv6;
    g0.crc_last = (beat_reg == icrc_beat);
    g0.crc_at = hdr.icrc_at[5:0];
    g0.crc_next = (hdr.icrc_at[5:0] == 6'd62) && (beat_reg == icrc_beat + 7'd1);
    g0.len = last ? hdr.last_len : 7'd64;
    g0.hdr_part = first || (long_hdr && (beat_reg == 7'd1));
  end

  // ---- rotation -----------------------------------------------------------------------------------------------
  logic [511:0] cut;
  always_comb begin
    cut = line_data;
    if (!g1_reg.has_line) cut = '0;
    else if (!g1_reg.line_bytes[6])
      for (int i = 0; i < 64; i++) if (i >= 32'(g1_reg.line_bytes)) cut[8*i+:8] = 8'd0;
  end

  always_ff @(posedge clk) begin
    if (step) begin
      g1_reg <= g0;
      if (first) g1_hdr_reg <= hdr.hdr[511:0];
      else if (beat_reg == 7'd1) g1_hdr_reg <= 512'(hdr.hdr[HDR_BYTES*8-1:512]);
      left_reg <= has_line ? ((left >= 13'd64) ? left - 13'd64 : '0) : left;
    end
    if (g1_valid_reg) begin
      g2_reg <= g1_reg;
      if (g1_reg.hdr_part) g2_hdr_reg <= g1_hdr_reg;
      g2_line_reg <= rol_bytes(cut, {g1_reg.shift[5:3], 3'd0});
    end
    if (g2_valid_reg) begin
      g3_reg <= g2_reg;
      if (g2_reg.hdr_part) g3_hdr_reg <= g2_hdr_reg;
      g3_line_reg <= rol_bytes(g2_line_reg, {3'd0, g2_reg.shift[2:1], 1'b0});
    end
    if (g3_valid_reg) g3_carry_reg <= g3_line_reg;
    if (rst) begin
      beat_reg <= '0;
      line_reg <= '0;
      used_reg <= '0;
      g1_valid_reg <= 1'b0;
      g2_valid_reg <= 1'b0;
      g3_valid_reg <= 1'b0;
    end else begin
      if (step) beat_reg <= last ? 7'd0 : beat_reg + 1'b1;
      if (line_free) line_reg <= line_reg + LINE_W'(line_free_n);
      used_reg <= used_reg + 6'(step) - 6'(o_pop);
      g1_valid_reg <= step;
      g2_valid_reg <= g1_valid_reg;
      g3_valid_reg <= g2_valid_reg;
    end
  end

  // ---- G3: the beat -------------------------------------------------------------------------------------------
  logic [511:0] beat, low;
  assign low = g3_reg.hdr_part ? g3_hdr_reg : g3_carry_reg;
  always_comb begin
    for (int i = 0; i < 64; i += 2)
      beat[8*i+:16] = ((i < 32'(g3_reg.shift)) || (g3_reg.first && g3_reg.long_hdr)) ? low[8*i+:16]
                                                                                      : g3_line_reg[8*i+:16];
  end

  // Bytes that count as ones in the ICRC, from the start of the frame: IPv4 TOS, TTL, header checksum; IPv6 traffic class,
  // flow label, hop limit; UDP checksum; BTH resv8a.
  typedef logic [1023:0] mask_t;
  function automatic mask_t ones_of(input int l2, input logic ipv6);
    mask_t m;
    int x;
    m = '0;
    x = l2 + (ipv6 ? 40 : 20);   // UDP
    if (ipv6) begin
      m[8*l2+:4] = '1;
      m[8*(l2+1)+:24] = '1;
      m[8*(l2+7)+:8] = '1;
    end else begin
      m[8*(l2+1)+:8] = '1;
      m[8*(l2+8)+:8] = '1;
      m[8*(l2+10)+:16] = '1;
    end
    m[8*(x+6)+:16] = '1;
    m[8*(x+12)+:8] = '1;
    return m;
  endfunction
  localparam mask_t ONES_4 = ones_of(14, 1'b0);
  localparam mask_t ONES_4V = ones_of(18, 1'b0);
  localparam mask_t ONES_6 = ones_of(14, 1'b1);
  localparam mask_t ONES_6V = ones_of(18, 1'b1);

  logic [511:0] crc_data;
  always_comb begin
    crc_data = beat;
    if (g3_reg.first) begin
      case ({g3_reg.ipv6, g3_reg.vlan})
        2'b00: crc_data = crc_data | ONES_4[511:0];
        2'b01: crc_data = crc_data | ONES_4V[511:0];
        2'b10: crc_data = crc_data | ONES_6[511:0];
        default: crc_data = crc_data | ONES_6V[511:0];
      endcase
      crc_data[111:0] = '0;
      if (g3_reg.vlan) crc_data[143:112] = '0;
    end else if (g3_reg.second) begin
      case ({g3_reg.ipv6, g3_reg.vlan})
        2'b10: crc_data = crc_data | ONES_6[1023:512];
        2'b11: crc_data = crc_data | ONES_6V[1023:512];
        default: ;
      endcase
    end
  end

  logic crc_valid;
  logic [31:0] crc;
  urdma_crc32 crc_engine (
    .clk, .rst, .in_valid(g3_valid_reg && !g3_reg.crc_next), .in_data(crc_data),
    .in_len(g3_reg.crc_last ? {1'b0, g3_reg.crc_at} : 7'd64), .in_first(g3_reg.first),
    .in_init(g3_reg.vlan ? ICRC_INIT_VLAN : ICRC_INIT_ETH), .in_last(g3_reg.crc_last),
    .out_valid(crc_valid), .out_crc(crc)
  );

  // ---- output FIFOs: beats, CRCs ---------------------------------------------------------------------------------
  typedef struct packed {
    logic         first;
    logic         last;
    logic         loop;
    tr_out_t      what;
    logic         crc_here;      // ICRC begins in this beat
    logic         crc_next;      // lanes 0 and 1 are its second half
    logic [3:0]   crc_group;     // it begins at lane 4 * crc_group + 2
    logic [6:0]   len;
    logic [511:0] data;
  } o_t;

  logic o_valid, o_in_ready, c_valid, c_in_ready;
  o_t o_in, o;
  logic [31:0] c;
  logic [$clog2(OUT):0] o_count, c_count;
  assign o_in = '{first: g3_reg.first, last: g3_reg.last, loop: g3_reg.loop, what: g3_reg.what, crc_here: g3_reg.crc_last, crc_next: g3_reg.crc_next,
                  crc_group: g3_reg.crc_at[5:2], len: g3_reg.len, data: beat};
  urdma_fifo #(.WIDTH($bits(o_t)), .DEPTH(OUT)) out_fifo (
    .clk, .rst, .in_valid(g3_valid_reg), .in_ready(o_in_ready), .in_data(o_in),
    .out_valid(o_valid), .out_ready(o_pop), .out_data(o), .count(o_count)
  );
  urdma_fifo #(.WIDTH(32), .DEPTH(OUT)) crc_fifo (
    .clk, .rst, .in_valid(crc_valid), .in_ready(c_in_ready), .in_data(crc),
    .out_valid(c_valid), .out_ready(o_pop && o.last), .out_data(c), .count(c_count)
  );

  // beats that are old enough
  logic [CRC_WAIT-2:0] age_reg;
  logic [5:0] ripe_reg;
  logic mac_valid_reg, mac_first_reg, mac_last_reg, mac_loop_reg;
  tr_out_t mac_what_reg;
  logic [511:0] mac_data_reg, mac_data;
  logic [63:0] mac_keep_reg;
  assign o_pop = o_valid && (ripe_reg != '0) && (!mac_valid_reg || mac_ready);

  always_comb begin
    mac_data = o.data;
    if (o.crc_here) begin
      for (int k = 0; k < 15; k++) if (o.crc_group == k[3:0]) mac_data[32*k+16+:32] = c;
      if (o.crc_group == 4'd15) mac_data[511:496] = c[15:0];
    end
    if (o.crc_next) mac_data[15:0] = c[31:16];
  end

  always_ff @(posedge clk) begin
    if (o_pop) begin
      mac_data_reg <= mac_data;
      mac_first_reg <= o.first;
      mac_last_reg <= o.last;
      mac_what_reg <= o.what;
      mac_loop_reg <= o.loop;
      mac_keep_reg <= {64{1'b1}} >> (7'd64 - o.len);
    end
    if (rst) begin
      age_reg <= '0;
      ripe_reg <= '0;
      mac_valid_reg <= 1'b0;
    end else begin
      age_reg <= {age_reg[CRC_WAIT-3:0], g3_valid_reg};
      ripe_reg <= ripe_reg + 6'(age_reg[CRC_WAIT-2]) - 6'(o_pop);
      if (o_pop) mac_valid_reg <= 1'b1;
      else if (mac_ready) mac_valid_reg <= 1'b0;
    end
  end

  assign mac_valid = mac_valid_reg;
  assign mac = '{data: mac_data_reg, keep: mac_keep_reg, last: mac_last_reg, err: 1'b0};
  assign mac_loop = mac_loop_reg;
  assign mac_frame = mac_valid_reg && mac_ready && mac_last_reg;

  assign trace_out_valid = mac_valid_reg && mac_ready && mac_first_reg;
  assign trace_out = mac_what_reg;

  assign busy = hdr_valid || (used_reg != '0) || mac_valid_reg;

  logic unused;
  assign unused = ^{o_in_ready, o_count, c_in_ready, c_count, g3_reg.has_line, g3_reg.line_bytes};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && (o_pop && (o.crc_here || o.crc_next))) a_crc: assert (c_valid)
      else $error("%m: a frame's last beat leaves before its CRC is known");
  logic mac_more_reg;  // the last beat was not the end of its frame
  always_ff @(posedge clk) begin
    mac_more_reg <= !rst && mac_valid_reg && mac_ready && !mac_last_reg;
    if (!rst && mac_more_reg) a_gap: assert (mac_valid_reg)
      else $error("%m: a gap inside a frame");
  end
  always_ff @(posedge clk)
    if (!rst && hdr_valid) a_hdr: assert (hdr.hlen[1:0] == 2'd2)
      else $error("%m: header length is not 2 modulo 4");
`endif

endmodule

`resetall
