// SPDX-License-Identifier: Apache-2.0
// CRC-32 over a stream of 512-bit beats, one beat a cycle, for the ICRC of both directions.
//
//  in_*      a beat each cycle with in_valid (gaps allowed, no back-pressure). Byte 0 of the beat is in_data[7:0]. in_len
//            bytes count (1..64, 64 unless in_last), dense from lane 0; later bytes are ignored. in_first loads in_init as
//            the state before the beat: urdma_crc32_pkg has CRC32_INIT and the values for the ICRC.
//  out_*     out_valid for one cycle, 4 cycles after a beat with in_last; out_crc is the finished CRC
//            (inverted), the byte sent first in [7:0]. Messages may follow each other without a gap.
//
// A CRC is linear, so one 512-bit matrix serves every length: a short last beat is padded with zeros at its end, and the
// state is then moved back by that many zero bytes, in 6 conditional steps of 32, 16, 8, 4, 2 and 1 bytes.
//
//  cycle 1  d_reg      contribution of the beat's data to the state after it
//  cycle 2  s_reg      state after the beat (the loop: one 32 by 32 matrix)
//  cycle 3  u_reg      moved back by 32, 16, 8 bytes
//  cycle 4  out_crc    moved back by 4, 2, 1 bytes, inverted

`resetall
`default_nettype none

module urdma_crc32
  import urdma_crc32_pkg::*;
(
  input  wire logic         clk,
  input  wire logic         rst,

  input  wire logic         in_valid,
  input  wire logic [511:0] in_data,
  input  wire logic [6:0]   in_len,
  input  wire logic         in_first,
  input  wire logic [31:0]  in_init,
  input  wire logic         in_last,

  output      logic         out_valid,
  output      logic [31:0]  out_crc
);

  typedef logic [31:0][511:0] data_map_t;
  typedef logic [31:0][31:0] state_map_t;

  // Row b: the bits of a beat that contribute to bit b of the state after the beat.
  function automatic data_map_t data_map();
    logic [31:0] col;
    col = CRC32_POLY;  // a one as the last bit of the beat
    for (int i = 511; i >= 0; i--) begin
      for (int b = 0; b < 32; b++) data_map[b][i] = col[b];
      col = crc32_step(col);
    end
  endfunction

  // Row b: the bits of a state that contribute to bit b of the state n zero bytes earlier.
  function automatic state_map_t back_map(input int n);
    logic [31:0] col;
    for (int i = 0; i < 32; i++) begin
      col = crc32_unadvance(32'd1 << i, n);
      for (int b = 0; b < 32; b++) back_map[b][i] = col[b];
    end
  endfunction

  localparam data_map_t DATA_MAP = data_map();
  localparam state_map_t BACK_32 = back_map(32);
  localparam state_map_t BACK_16 = back_map(16);
  localparam state_map_t BACK_8 = back_map(8);
  localparam state_map_t BACK_4 = back_map(4);
  localparam state_map_t BACK_2 = back_map(2);
  localparam state_map_t BACK_1 = back_map(1);

  function automatic logic [31:0] apply(input state_map_t m, input logic [31:0] s);
    for (int b = 0; b < 32; b++) apply[b] = ^(s & m[b]);
  endfunction

  // A state is the first 32 bits of data XORed with it, and zeros after.
  function automatic logic [31:0] apply_beat(input logic [31:0] s);
    for (int b = 0; b < 32; b++) apply_beat[b] = ^(s & DATA_MAP[b][31:0]);
  endfunction

  logic d_valid_reg, d_first_reg, d_last_reg;
  logic [31:0] d_reg, d_init_reg;
  logic [5:0] d_back_reg;
  logic s_last_reg;
  logic [31:0] s_reg;
  logic [5:0] s_back_reg;
  logic u_last_reg;
  logic [31:0] u_reg;
  logic [2:0] u_back_reg;
  logic out_valid_reg;
  logic [31:0] out_crc_reg;

  assign out_valid = out_valid_reg;
  assign out_crc = out_crc_reg;

  always_ff @(posedge clk) begin
    if (in_valid) begin
      logic [511:0] masked;
      masked = in_data;
      if (!in_len[6])
        for (int i = 0; i < 64; i++) if (i[5:0] >= in_len[5:0]) masked[8*i+:8] = 8'd0;
      for (int b = 0; b < 32; b++) d_reg[b] <= ^(masked & DATA_MAP[b]);
      d_first_reg <= in_first;
      d_init_reg <= in_init;
      d_back_reg <= 6'd0 - in_len[5:0];
    end
    if (d_valid_reg) begin
      s_reg <= apply_beat(d_first_reg ? d_init_reg : s_reg) ^ d_reg;
      s_back_reg <= d_back_reg;
    end
    if (s_last_reg) begin
      logic [31:0] t;
      t = s_reg;
      if (s_back_reg[5]) t = apply(BACK_32, t);
      if (s_back_reg[4]) t = apply(BACK_16, t);
      if (s_back_reg[3]) t = apply(BACK_8, t);
      u_reg <= t;
      u_back_reg <= s_back_reg[2:0];
    end
    if (u_last_reg) begin
      logic [31:0] t;
      t = u_reg;
      if (u_back_reg[2]) t = apply(BACK_4, t);
      if (u_back_reg[1]) t = apply(BACK_2, t);
      if (u_back_reg[0]) t = apply(BACK_1, t);
      out_crc_reg <= ~t;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      d_valid_reg <= 1'b0;
      d_last_reg <= 1'b0;
      s_last_reg <= 1'b0;
      u_last_reg <= 1'b0;
      out_valid_reg <= 1'b0;
    end else begin
      d_valid_reg <= in_valid;
      d_last_reg <= in_valid && in_last;
      s_last_reg <= d_last_reg;
      u_last_reg <= s_last_reg;
      out_valid_reg <= u_last_reg;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && in_valid) a_len: assert ((in_len == 7'd64) || (in_last && (in_len != 7'd0) && !in_len[6]))
      else $error("%m: a beat that is not the last is short, or a length is out of range");
`endif

endmodule

`resetall
