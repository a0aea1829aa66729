// SPDX-License-Identifier: Apache-2.0
// The frame buffer, and what fills it: DMA answers are shifted to their place in the frame and written, and their sum is taken.
//
// DMA data cannot be held up and is not: a beat a cycle goes through. The buffer has two banks, of even and odd lines; a beat
// that ends a frame may fill one line and begin the next, and writes both. What is left of a beat in the middle of a frame waits
// in the accumulator for its neighbour.
//
//  cycle 1  a1_*  rotated by 32, 16, 8 bytes      s1_*  the bytes that count for the checksum, others 0
//  cycle 2  a2_*  rotated by 4, 2, 1 bytes        s2_*  eight sums of four words
//  cycle 3        merged, written                 s3_*  their sum in 16 bits, bytes swapped if it begins at an odd distance from CSUM_START
//  cycle 4                                        here  added to the frame's
//
// here tells, in order, that a frame is complete; its last line is written a cycle before. Sums are of words with the first byte
// in [7:0]: a sum of ones' complement has its bytes swapped if those of all words are.

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

  output      logic              here_valid,     // never refused: as many frames as may be on their way have room
  output      etx_here_t             here,

  input  wire logic              rd_en,
  input  wire logic [LINE_W-1:0] rd_line,
  output      logic [511:0]      rd_data         // one cycle after rd_en, kept
);

  // ---- reads on their way -------------------------------------------------------------------------------------
  logic f_valid, f_pop;
  etx_frag_t f;
  logic [FRAG_W:0] f_count;
  urdma_fifo #(.WIDTH($bits(etx_frag_t)), .DEPTH(1 << FRAG_W)) frag_fifo (
    .clk, .rst, .in_valid(frag_valid), .in_ready(frag_ready), .in_data(frag),
    .out_valid(f_valid), .out_ready(f_pop), .out_data(f), .count(f_count)
  );

  logic [6:0] beat_reg;          // beats of the read at the head that have come
  logic [12:0] left;
  logic [6:0] n;
  logic [5:0] off;
  logic [13:0] pos;              // of the beat in the frame
  logic end_of_frame;
  assign f_pop = rsp_valid && rsp.last;
  assign left = f.len - {beat_reg[6:0], 6'd0};
  assign n = (left >= 13'd64) ? 7'd64 : left[6:0];
  assign off = f.pos[5:0];
  assign pos = f.pos + {1'b0, beat_reg, 6'd0};
  assign end_of_frame = f.last && rsp.last;

  // ---- rotation -------------------------------------------------------------------------------------------------
  function automatic logic [511:0] rot_coarse(input logic [511:0] d, input logic [2:0] by);
    logic [511:0] t;
    t = d;
    if (by[2]) t = {t[255:0], t[511:256]};
    if (by[1]) t = {t[383:0], t[511:384]};
    if (by[0]) t = {t[447:0], t[511:448]};
    return t;
  endfunction

  function automatic logic [511:0] rot_fine(input logic [511:0] d, input logic [2:0] by);
    logic [511:0] t;
    t = d;
    if (by[2]) t = {t[479:0], t[511:480]};
    if (by[1]) t = {t[495:0], t[511:496]};
    if (by[0]) t = {t[503:0], t[511:504]};
    return t;
  endfunction

  typedef struct packed {
    logic [LINE_W-1:0] line;
    logic [5:0]        off;
    logic [7:0]        fill;      // bytes of the line in use behind this beat; above 64: of the next
    logic              last;      // of the frame
  } meta_t;

  logic a1_valid_reg, a2_valid_reg;
  meta_t a1_reg, a2_reg;
  logic [511:0] a1_data_reg, a2_data_reg, acc_reg;

  always_ff @(posedge clk) begin
    if (rsp_valid) begin
      a1_data_reg <= rot_coarse(rsp.data, off[5:3]);
      a1_reg <= '{line: f.line + LINE_W'(beat_reg), off: off, fill: {2'd0, off} + 8'(n), last: end_of_frame};
    end
    if (a1_valid_reg) begin
      a2_data_reg <= rot_fine(a1_data_reg, a1_reg.off[2:0]);
      a2_reg <= a1_reg;
    end
    if (rst) begin
      a1_valid_reg <= 1'b0;
      a2_valid_reg <= 1'b0;
      beat_reg <= '0;
    end else begin
      a1_valid_reg <= rsp_valid;
      a2_valid_reg <= a1_valid_reg;
      if (rsp_valid) beat_reg <= rsp.last ? 7'd0 : beat_reg + 1'b1;
    end
  end

  // ---- merge, write -------------------------------------------------------------------------------------------
  logic [511:0] merged;
  logic wr_line, wr_next;
  logic [LINE_W-2:0] next_row;    // of line + 1, in the other bank
  always_comb begin
    merged = a2_data_reg;
    if (a2_valid_reg && (a2_reg.off != 6'd0))
      for (int i = 0; i < 64; i++) if (i < 32'(a2_reg.off)) merged[8*i+:8] = acc_reg[8*i+:8];
  end
  assign wr_line = a2_valid_reg && (a2_reg.fill[6] || a2_reg.fill[7] || a2_reg.last);
  assign wr_next = a2_valid_reg && a2_reg.last && (a2_reg.fill > 8'd64);
  assign next_row = a2_reg.line[LINE_W-1:1] + (LINE_W-1)'(a2_reg.line[0]);

  logic [1:0][511:0] bank_q;
  logic rd_bank_reg;
  for (genvar b = 0; b < 2; b++) begin : g_bank
    logic mine;
    assign mine = (a2_reg.line[0] == b[0]);
    urdma_ram_sdp #(.WIDTH(512), .DEPTH(1 << (LINE_W - 1))) bank (
      .clk, .wr_en(mine ? wr_line : wr_next), .wr_addr(mine ? a2_reg.line[LINE_W-1:1] : next_row),
      .wr_data(mine ? merged : a2_data_reg),
      .rd_en(rd_en && (rd_line[0] == b[0])), .rd_addr(rd_line[LINE_W-1:1]), .rd_data(bank_q[b])
    );
  end
  assign rd_data = bank_q[rd_bank_reg];

  always_ff @(posedge clk) begin
    if (rd_en) rd_bank_reg <= rd_line[0];
    if (a2_valid_reg) acc_reg <= wr_line ? a2_data_reg : merged;
  end

  // ---- checksum -------------------------------------------------------------------------------------------------
  typedef struct packed {
    logic sum;                    // there are bytes that count
    logic swap;
    logic last;                   // of the frame
    logic err;                    // with last of a read
  } smeta_t;

  logic [13:0] skip;            // bytes of the beat in front of CSUM_START
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

  assign busy = (f_count != '0) || s1_valid_reg || s2_valid_reg || s3_valid_reg;

  logic unused;
  assign unused = s3_reg.swap;

`ifndef SYNTHESIS
  a_rsp: assert property (@(posedge clk) disable iff (rst) rsp_valid |-> f_valid)
    else $error("%m: data that nobody asked for");
  a_len: assert property (@(posedge clk) disable iff (rst) rsp_valid |-> (rsp.last == (left <= 13'd64)))
    else $error("%m: a DMA answer is longer or shorter than its request");
`endif

endmodule

`resetall
