// SPDX-License-Identifier: Apache-2.0
// Assembles the data of DMA reads, each starting at any byte of a line, into lines of 64 bytes, and stores the lines.
//
//  rsp_*      at most a beat each cycle; it cannot be stalled
//  line, off, len, last   of the read that is being answered: position of its first byte, its bytes; last: it ends a packet
//  beat, n    of the beat on rsp: its number in the read, its bytes
//  whole_*    complete lines: written in cycles in which no answer uses the memory
//  rd_*       read port, data one cycle later, kept
//
// The memory has two banks, of even and odd lines; a beat that ends a packet may fill one line and begin the next, and writes
// both. Within a packet the rest of a beat waits in the accumulator for the next beat. The reads of a packet follow one
// another without a gap in its bytes.
//
//  cycle 1  a1_*   rotated by 32, 16, 8 bytes
//  cycle 2  a2_*   rotated by 4, 2, 1 bytes
//  cycle 3         merged with the accumulator, written

`resetall
`default_nettype none

module urdma_gather
  import urdma_pkg::*;
#(
  // log2 of the lines
  parameter int LINE_W = 10
) (
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic              rsp_valid,
  input  wire dma_rd_rsp_t       rsp,
  input  wire logic [LINE_W-1:0] line,
  input  wire logic [5:0]        off,
  input  wire logic [12:0]       len,
  input  wire logic              last,
  output      logic [6:0]        beat,
  output      logic [6:0]        n,

  input  wire logic              whole_valid,
  input  wire logic [LINE_W-1:0] whole_line,
  input  wire logic [511:0]      whole_data,
  output      logic              whole_ready,

  input  wire logic              rd_en,
  input  wire logic [LINE_W-1:0] rd_line,
  output      logic [511:0]      rd_data
);

  typedef struct packed {
    logic [LINE_W-1:0] line;
    logic [5:0]        off;
    logic [7:0]        fill;      // bytes of the line filled after this beat; above 64: of the next
    logic              last;      // of the packet
  } meta_t;

  logic [6:0] beat_reg;
  logic [12:0] left;
  logic a1_valid_reg, a2_valid_reg;
  meta_t a1_reg, a2_reg;
  logic [511:0] a1_data_reg, a2_data_reg, acc_reg;

  assign beat = beat_reg;
  assign left = len - {beat_reg, 6'd0};
  assign n = (left >= 13'd64) ? 7'd64 : left[6:0];
  assign busy = a1_valid_reg || a2_valid_reg;

  always_ff @(posedge clk) begin
    if (rsp_valid) begin
      a1_data_reg <= rol_bytes(rsp.data, {off[5:3], 3'd0});
      a1_reg <= '{line: line + LINE_W'(beat_reg), off: off, fill: {2'd0, off} + 8'(n), last: last && rsp.last};
    end
    if (a1_valid_reg) begin
      a2_data_reg <= rol_bytes(a1_data_reg, {3'd0, a1_reg.off[2:0]});
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

  // ---- merge, write -----------------------------------------------------------------------------------------
  logic [511:0] merged;
  logic wr_line, wr_next, whole_wr;
  logic [LINE_W-2:0] next_row;    // of line + 1, in the other bank

  always_comb begin
    merged = a2_data_reg;
    if (a2_valid_reg && (a2_reg.off != 6'd0))
      for (int i = 0; i < 64; i++) if (i < 32'(a2_reg.off)) merged[8*i+:8] = acc_reg[8*i+:8];
  end
  assign wr_line = a2_valid_reg && (a2_reg.fill[6] || a2_reg.fill[7] || a2_reg.last);
  assign wr_next = a2_valid_reg && a2_reg.last && (a2_reg.fill > 8'd64);
  assign next_row = a2_reg.line[LINE_W-1:1] + (LINE_W-1)'(a2_reg.line[0]);
  assign whole_ready = !a2_valid_reg;
  assign whole_wr = whole_valid && whole_ready;

  logic [1:0] bank_wr;
  logic [1:0][LINE_W-2:0] bank_addr;
  logic [1:0][511:0] bank_data, bank_q;
  logic rd_bank_reg;
  for (genvar b = 0; b < 2; b++) begin : g_bank
    logic mine;
    assign mine = (a2_reg.line[0] == b[0]);
    assign bank_wr[b] = a2_valid_reg ? (mine ? wr_line : wr_next) : (whole_wr && (whole_line[0] == b[0]));
    assign bank_addr[b] = a2_valid_reg ? (mine ? a2_reg.line[LINE_W-1:1] : next_row) : whole_line[LINE_W-1:1];
    assign bank_data[b] = a2_valid_reg ? (mine ? merged : a2_data_reg) : whole_data;
    urdma_ram_sdp #(.WIDTH(512), .DEPTH(1 << (LINE_W - 1))) bank (
      .clk, .wr_en(bank_wr[b]), .wr_addr(bank_addr[b]), .wr_data(bank_data[b]),
      .rd_en(rd_en && (rd_line[0] == b[0])), .rd_addr(rd_line[LINE_W-1:1]), .rd_data(bank_q[b])
    );
  end
  assign rd_data = bank_q[rd_bank_reg];

  always_ff @(posedge clk) begin
    if (rd_en) rd_bank_reg <= rd_line[0];
    if (a2_valid_reg) acc_reg <= wr_line ? a2_data_reg : merged;
  end

  logic unused;                   // the FIFO of the reads knows which packet the error belongs to
  assign unused = rsp.err;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && rsp_valid) a_len: assert ((rsp.last == (left <= 13'd64)))
      else $error("%m: a DMA answer is longer or shorter than its request");
`endif

endmodule

`resetall
