// SPDX-License-Identifier: Apache-2.0
// Sends frames from the buffer, in order: checksum, tag, padding.
//
//  cycle 1        the next line of a complete frame (first in its FIFO) is read
//  cycle 2  l_*   the line: bytes after the frame's end set to 0, the checksum inserted
//  cycle 3  w_*   the beat: with a tag, shifted by 4 bytes after byte 12
//  cycle 4  tx    a register slice
//
// One beat per cycle, also from one frame to the next. A frame begins when it is complete, so there are no gaps. Bad frames,
// and frames with a failed read, free their lines in one cycle. fin reports all frames in order; a sent frame is reported
// when its last beat has been accepted.

`resetall
`default_nettype none

module urdma_eth_tx_out
  import urdma_pkg::*;
  import urdma_eth_tx_pkg::*;
(
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic              sent_valid,
  input  wire etx_sent_t             sent,
  output      logic              sent_ready,
  input  wire logic              here_valid,
  input  wire etx_here_t             here,

  output      logic              rd_en,
  output      logic [LINE_W-1:0] rd_line,
  input  wire logic [511:0]      rd_data,
  output      logic [7:0]        free_n,       // lines freed

  output      logic              tx_valid,
  output      mac_beat_t         tx,
  input  wire logic              tx_ready,

  output      logic              fin_valid,
  output      etx_fin_t              fin
);

  localparam int FIN_DEPTH = 16;               // more than the frames between here and tx

  // ---- frames in order, and those whose data are here -------------------------------------------------------------
  logic s_valid, s_pop, h_valid, h_pop, h_in_ready;
  etx_sent_t s;
  etx_here_t h;
  logic [FLY_W:0] s_count, h_count;
  urdma_fifo #(.WIDTH($bits(etx_sent_t)), .DEPTH(1 << FLY_W)) sent_fifo (
    .clk, .rst, .in_valid(sent_valid), .in_ready(sent_ready), .in_data(sent),
    .out_valid(s_valid), .out_ready(s_pop), .out_data(s), .count(s_count)
  );
  urdma_fifo #(.WIDTH($bits(etx_here_t)), .DEPTH(1 << FLY_W)) here_fifo (
    .clk, .rst, .in_valid(here_valid), .in_ready(h_in_ready), .in_data(here),
    .out_valid(h_valid), .out_ready(h_pop), .out_data(h), .count(h_count)
  );

  // ---- 1: a line ----------------------------------------------------------------------------------------------------
  logic [7:0] beat_reg;                        // of the frame at the head
  logic [LINE_W-1:0] line_reg;
  logic [13:0] wire_len;
  logic [7:0] lines, beats;
  logic drop, step, last_beat, l_free, f_ready, fin_in_valid;
  assign wire_len = (s.len + {11'd0, s.vlan, 2'd0} < 14'(ETH_MIN_FRAME)) ? 14'(ETH_MIN_FRAME) : s.len + {11'd0, s.vlan, 2'd0};
  assign lines = 8'((s.len + 14'd63) >> 6);
  assign beats = 8'((wire_len + 14'd63) >> 6);
  assign last_beat = (beat_reg + 1'b1 == beats);
  assign drop = s_valid && f_ready && (s.bad || (h_valid && h.err));
  assign step = s_valid && !s.bad && h_valid && !h.err && l_free && (f_ready || (beat_reg != '0));
  assign s_pop = drop || (step && last_beat);
  assign h_pop = s_pop && !s.bad;
  assign fin_in_valid = drop || (step && (beat_reg == '0));

  assign rd_en = step;
  assign rd_line = line_reg;
  // with a tag there may be one beat more than lines: the data read for it are ignored
  assign free_n = (drop && !s.bad) ? lines : (step && (beat_reg < lines)) ? 8'd1 : 8'd0;

  always_ff @(posedge clk) begin
    if (rst) begin
      beat_reg <= '0;
      line_reg <= '0;
    end else begin
      if (step) beat_reg <= last_beat ? '0 : beat_reg + 1'b1;
      line_reg <= line_reg + LINE_W'(free_n);
    end
  end

  // ---- 2: the line --------------------------------------------------------------------------------------------------
  typedef struct packed {
    logic        first;
    logic        last;
    logic        vlan;
    logic [15:0] tci;
    logic [5:0]  keep;                         // of the last beat; 0: all
  } beat_t;

  logic l_valid_reg, w_valid_reg, w_free;
  beat_t l_reg, w_reg;
  logic [6:0] l_n_reg;                         // bytes of the frame in the line
  logic l_hi_reg, l_lo_reg;                    // first, second byte of the checksum is in the line
  logic [5:0] l_at_reg;
  logic [15:0] l_csum_reg;
  logic [511:0] w_data_reg, l_data;
  logic [13:0] rest;
  logic [12:0] at_lo;
  logic [15:0] csum;

  assign rest = s.len - {beat_reg, 6'd0};
  assign at_lo = {1'b0, s.at} + 13'd1;
  assign csum = (h.sum == 16'hffff) ? 16'hffff : ~h.sum;
  assign l_free = !l_valid_reg || w_free;

  always_ff @(posedge clk) begin
    if (step) begin
      l_reg <= '{first: beat_reg == '0, last: last_beat, vlan: s.vlan, tci: s.tci, keep: wire_len[5:0]};
      l_n_reg <= (beat_reg >= lines) ? 7'd0 : (rest >= 14'd64) ? 7'd64 : rest[6:0];
      l_hi_reg <= s.csum && (beat_reg == {2'd0, s.at[11:6]});
      l_lo_reg <= s.csum && (beat_reg == {1'b0, at_lo[12:6]});
      l_at_reg <= s.at[5:0];
      l_csum_reg <= csum;
    end
    if (rst) l_valid_reg <= 1'b0;
    else if (l_free) l_valid_reg <= step;
  end

  always_comb begin
    l_data = rd_data;
    if (l_valid_reg && (l_n_reg != 7'd64))
      for (int i = 0; i < 64; i++) if (7'(i) >= l_n_reg) l_data[8*i+:8] = 8'd0;
    if (l_hi_reg) l_data[9'({l_at_reg, 3'd0})+:8] = l_csum_reg[7:0];
    if (l_lo_reg) l_data[9'({l_at_reg + 6'd1, 3'd0})+:8] = l_csum_reg[15:8];
  end

  // ---- 3: the beat --------------------------------------------------------------------------------------------------
  mac_beat_t w;
  logic skid_ready;
  logic [31:0] carry_reg;                      // last four bytes of the line before
  assign w_free = !w_valid_reg || skid_ready;
  always_ff @(posedge clk) begin
    if (l_valid_reg && w_free) begin
      w_data_reg <= l_data;
      w_reg <= l_reg;
      carry_reg <= w_data_reg[511:480];
    end
    if (rst) w_valid_reg <= 1'b0;
    else if (w_free) w_valid_reg <= l_valid_reg;
  end

  always_comb begin
    w.data = w_data_reg;
    if (w_valid_reg && w_reg.vlan) begin
      if (w_reg.first) w.data = {w_data_reg[479:96], w_reg.tci[7:0], w_reg.tci[15:8], 16'h0081, w_data_reg[95:0]};
      else w.data = {w_data_reg[479:0], carry_reg};
    end
    w.keep = (w_reg.last && (w_reg.keep != 6'd0)) ? ~({64{1'b1}} << w_reg.keep) : {64{1'b1}};
    w.last = w_reg.last;
    w.err = 1'b0;
  end

  urdma_skid #(.WIDTH($bits(mac_beat_t))) out_skid (
    .clk, .rst, .in_valid(w_valid_reg), .in_ready(skid_ready), .in_data(w),
    .out_valid(tx_valid), .out_ready(tx_ready), .out_data(tx)
  );

  // ---- finished frames, in order ------------------------------------------------------------------------------------
  logic fin_head;
  logic [$clog2(FIN_DEPTH):0] fin_count, gone_reg;  // gone: frames taken whose fin has not left
  urdma_fifo #(.WIDTH($bits(etx_fin_t)), .DEPTH(FIN_DEPTH)) fin_fifo (
    .clk, .rst, .in_valid(fin_in_valid), .in_ready(f_ready), .in_data({s.q, drop, s.ci}),
    .out_valid(fin_head), .out_ready(fin_valid), .out_data(fin), .count(fin_count)
  );
  assign fin_valid = fin_head && (fin.bad || (gone_reg != '0));
  always_ff @(posedge clk) begin
    if (rst) gone_reg <= '0;
    else gone_reg <= gone_reg + ($clog2(FIN_DEPTH)+1)'(tx_valid && tx_ready && tx.last)
                     - ($clog2(FIN_DEPTH)+1)'(fin_valid && !fin.bad);
  end

  // a frame is in one of the two until its last beat is taken
  assign busy = (s_count != '0) || (fin_count != '0);

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && here_valid) a_here: assert (h_in_ready)
      else $error("%m: more frames here than asked for");
`endif

  logic unused;
  assign unused = ^{h_in_ready, h_count, at_lo[5:0]};

endmodule

`resetall
