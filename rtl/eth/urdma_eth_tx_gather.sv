// SPDX-License-Identifier: Apache-2.0
// The frame buffer (urdma_gather), which stores DMA data at their place in the frame, and in parallel their checksum:
//
//  cycle 1  s1_*  the bytes that the checksum covers, others 0
//  cycle 2  s2_*  eight sums of four words
//  cycle 3  s3_*  their sum in 16 bits, bytes swapped if it begins at an odd distance from CSUM_START; the line is written
//  cycle 4  here  added to the frame's sum
//
// here reports, in order, that a frame is complete; its last line is written a cycle before. Sums are of words with the first
// byte in [7:0]: if the bytes of all words are swapped, the bytes of the ones' complement sum are swapped.

`resetall
`default_nettype none

module urdma_eth_tx_gather
  import urdma_pkg::*;
  import urdma_eth_tx_pkg::*;
(
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic              frag_valid,
  input  wire etx_frag_t             frag,
  output      logic              frag_ready,
  input  wire logic              rsp_valid,
  input  wire dma_rd_rsp_t       rsp,

  output      logic              here_valid,     // never refused: there is room for all frames that can be under way
  output      etx_here_t             here,

  input  wire logic              rd_en,
  input  wire logic [LINE_W-1:0] rd_line,
  output      logic [511:0]      rd_data         // one cycle after rd_en, kept
);

  // ---- reads under way ----------------------------------------------------------------------------------------
  logic f_valid, f_pop;
  etx_frag_t f;
  logic [FRAG_W:0] f_count;
  urdma_fifo #(.WIDTH($bits(etx_frag_t)), .DEPTH(1 << FRAG_W)) frag_fifo (
    .clk, .rst, .in_valid(frag_valid), .in_ready(frag_ready), .in_data(frag),
    .out_valid(f_valid), .out_ready(f_pop), .out_data(f), .count(f_count)
  );

  logic [6:0] beat, n;
  logic [13:0] pos;              // of the beat in the frame
  logic end_of_frame, gather_busy;
  assign f_pop = rsp_valid && rsp.last;
  assign pos = f.pos + {1'b0, beat, 6'd0};
  assign end_of_frame = f.last && rsp.last;

  urdma_gather #(.LINE_W(LINE_W)) gather (
    .clk, .rst, .busy(gather_busy),
    .rsp_valid, .rsp, .line(f.line), .off(f.pos[5:0]), .len(f.len), .last(f.last), .beat, .n,
    .whole_valid(1'b0), .whole_line('0), .whole_data('0), .whole_ready(),
    .rd_en, .rd_line, .rd_data
  );

  // ---- checksum -------------------------------------------------------------------------------------------------
  typedef struct packed {
    logic sum;                    // the checksum covers some of the bytes
    logic swap;
    logic last;                   // of the frame
    logic err;                    // with last of a read
  } smeta_t;

  logic [13:0] skip;            // bytes of the beat before CSUM_START
  logic counts;
  assign skip = (14'(f.start) > pos) ? 14'(f.start) - pos : 14'd0;
  assign counts = f.csum && (skip < 14'(n));

  logic s1_valid_reg, s2_valid_reg, s3_valid_reg, err_reg;
  smeta_t s1_reg, s2_reg, s3_reg;
  logic [511:0] s1_data_reg;
  logic [7:0][17:0] s2_sum_reg;
  logic [15:0] s3_sum_reg, frame_sum_reg;
  logic [20:0] s2_total;
  logic [15:0] s2_folded;

  always_comb begin
    s2_total = '0;
    if (s2_reg.sum) for (int i = 0; i < 8; i++) s2_total += 21'(s2_sum_reg[i]);
    s2_folded = oc_add(s2_total[15:0], 16'(s2_total[20:16]));
  end

  always_ff @(posedge clk) begin
    if (rsp_valid) begin
      if (counts) begin
        s1_data_reg <= rsp.data;
        if (skip != 14'd0 || n != 7'd64)
          for (int i = 0; i < 64; i++) if ((14'(i) < skip) || (14'(i) >= 14'(n))) s1_data_reg[8*i+:8] <= 8'd0;
      end
      s1_reg <= '{sum: counts, swap: pos[0] ^ f.start[0], last: end_of_frame, err: rsp.last && rsp.err};
    end
    if (s1_valid_reg) begin
      if (s1_reg.sum)
        for (int i = 0; i < 8; i++)
          s2_sum_reg[i] <= (18'(s1_data_reg[64*i+:16]) + 18'(s1_data_reg[64*i+16+:16])) +
                           (18'(s1_data_reg[64*i+32+:16]) + 18'(s1_data_reg[64*i+48+:16]));
      s2_reg <= s1_reg;
    end
    if (s2_valid_reg) begin
      s3_sum_reg <= s2_reg.swap ? {s2_folded[7:0], s2_folded[15:8]} : s2_folded;
      s3_reg <= s2_reg;
    end
    if (rst) begin
      s1_valid_reg <= 1'b0;
      s2_valid_reg <= 1'b0;
      s3_valid_reg <= 1'b0;
      frame_sum_reg <= '0;
      err_reg <= 1'b0;
    end else begin
      s1_valid_reg <= rsp_valid;
      s2_valid_reg <= s1_valid_reg;
      s3_valid_reg <= s2_valid_reg;
      if (s3_valid_reg) begin
        frame_sum_reg <= s3_reg.last ? '0 : here.sum;
        err_reg <= !s3_reg.last && here.err;
      end
    end
  end

  assign here_valid = s3_valid_reg && s3_reg.last;
  assign here = '{err: err_reg || s3_reg.err, sum: s3_reg.sum ? oc_add(frame_sum_reg, s3_sum_reg) : frame_sum_reg};

  assign busy = (f_count != '0) || gather_busy || s3_valid_reg;  // the first checksum stages run in parallel to it

  logic unused;
  assign unused = s3_reg.swap;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && rsp_valid) a_rsp: assert (f_valid)
      else $error("%m: data that nobody asked for");

  // Cases that the tests must reach (make coverage).
  c_failed_before_end: cover property (@(posedge clk) !rst && err_reg);
`endif

endmodule

`resetall
