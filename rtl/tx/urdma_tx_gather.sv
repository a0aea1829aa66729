// SPDX-License-Identifier: Apache-2.0
// Payload gather: DMA answers are shifted to their place and written into the packet buffer; inline lines likewise.
//
// DMA data cannot be held up and is not: a beat a cycle goes through. The buffer has two banks, of even and odd
// lines; a beat that ends a packet may fill one line and begin the next, and writes both. What is left of a beat
// in the middle of a packet waits in the accumulator for its neighbour. Inline lines (already in place) are
// written in cycles without DMA data.
//
//  cycle 1  a1_*   which bytes of the beat count, and where they go; rotated by 32, 16, 8 bytes
//  cycle 2  a2_*   rotated by 4, 2, 1 bytes
//  cycle 3         merged with the accumulator, written
//
// frags_here and inls_here count what has been written: commit compares them with issued_t.

`resetall
`default_nettype none

module urdma_tx_gather
  import urdma_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic                  clk,
  input  wire logic                  rst,
  output      logic                  busy,

  input  wire logic                  frag_valid,
  input  wire frag_t                 frag,
  output      logic                  frag_ready,
  input  wire logic                  rsp_valid,
  input  wire dma_rd_rsp_t           rsp,

  input  wire logic                  inl_valid,      // packet: where
  input  wire logic [LINE_W-1:0]     inl_line,
  input  wire logic [12:0]           inl_len,
  output      logic                  inl_ready,
  input  wire logic                  inl_data_valid, // its lines
  input  wire logic [511:0]          inl_data,
  output      logic                  inl_data_ready,

  output      logic [SEQ_W-1:0]      frags_here,
  output      logic [SEQ_W-1:0]      inls_here,
  output      logic [(1<<PKT_W)-1:0] failed,         // by slot: a DMA read of the packet failed
  input  wire logic                  slot_clear,
  input  wire logic [PKT_W-1:0]      slot,

  input  wire logic                  rd_en,
  input  wire logic [LINE_W-1:0]     rd_line,
  output      logic [511:0]          rd_data         // one cycle after rd_en
);

  // ---- fragments on their way ---------------------------------------------------------------------------
  logic f_valid, f_pop;
  frag_t f;
  logic [FRAG_W:0] f_count;
  urdma_fifo #(.WIDTH($bits(frag_t)), .DEPTH(1 << FRAG_W)) frag_fifo (
    .clk, .rst, .in_valid(frag_valid), .in_ready(frag_ready), .in_data(frag),
    .out_valid(f_valid), .out_ready(f_pop), .out_data(f), .count(f_count)
  );

  logic [6:0] beat_reg;          // beats of the head fragment that have come
  logic [12:0] left;
  logic [6:0] n;
  assign f_pop = rsp_valid && rsp.last;
  assign left = f.len - {beat_reg[6:0], 6'd0};
  assign n = (left >= 13'd64) ? 7'd64 : left[6:0];

  // ---- rotation ------------------------------------------------------------------------------------------
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
    logic              frag_last;
    logic              pkt_last;
  } meta_t;

  logic a1_valid_reg, a2_valid_reg;
  meta_t a1_reg, a2_reg;
  logic [511:0] a1_data_reg, a2_data_reg, acc_reg;
  logic [(1<<PKT_W)-1:0] failed_reg;
  logic [SEQ_W-1:0] frags_reg, inls_reg;
  assign failed = failed_reg;
  assign frags_here = frags_reg;
  assign inls_here = inls_reg;

  always_ff @(posedge clk) begin
    if (rsp_valid) begin
      a1_data_reg <= rot_coarse(rsp.data, f.off[5:3]);
      a1_reg <= '{line: f.line + LINE_W'(beat_reg), off: f.off, fill: {2'd0, f.off} + 8'(n), frag_last: rsp.last,
                  pkt_last: f.pkt_last && rsp.last};
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

  // ---- merge, write -----------------------------------------------------------------------------------------
  logic [511:0] merged;
  always_comb begin
    for (int i = 0; i < 64; i++) merged[8*i+:8] = (i < 32'(a2_reg.off)) ? acc_reg[8*i+:8] : a2_data_reg[8*i+:8];
  end

  logic wr_line, wr_next, inl_wr;
  logic [LINE_W-2:0] next_row;    // of line + 1, in the other bank
  logic [LINE_W-1:0] inl_at, inl_at_reg;
  assign wr_line = a2_valid_reg && (a2_reg.fill[6] || a2_reg.fill[7] || a2_reg.pkt_last);
  assign wr_next = a2_valid_reg && a2_reg.pkt_last && (a2_reg.fill > 8'd64);
  assign next_row = a2_reg.line[LINE_W-1:1] + (LINE_W-1)'(a2_reg.line[0]);

  // inline packets: where they go, then their lines
  logic i_valid, i_pop, i_first_reg;
  logic [LINE_W-1:0] i_line;
  logic [12:0] i_len, i_done_reg;
  logic [4:0] i_count;
  urdma_fifo #(.WIDTH(LINE_W + 13), .DEPTH(16)) inl_fifo (
    .clk, .rst, .in_valid(inl_valid), .in_ready(inl_ready), .in_data({inl_line, inl_len}),
    .out_valid(i_valid), .out_ready(i_pop), .out_data({i_line, i_len}), .count(i_count)
  );
  assign inl_data_ready = i_valid && !a2_valid_reg;
  assign inl_wr = inl_data_valid && inl_data_ready;
  assign inl_at = i_first_reg ? i_line : inl_at_reg;
  assign i_pop = inl_wr && (i_done_reg + 13'd64 >= i_len);

  logic [1:0] bank_wr;
  logic [1:0][LINE_W-2:0] bank_addr;
  logic [1:0][511:0] bank_data, bank_q;
  for (genvar b = 0; b < 2; b++) begin : g_bank
    logic mine;
    assign mine = (a2_reg.line[0] == b[0]);
    assign bank_wr[b] = a2_valid_reg ? (mine ? wr_line : wr_next) : (inl_wr && (inl_at[0] == b[0]));
    assign bank_addr[b] = a2_valid_reg ? (mine ? a2_reg.line[LINE_W-1:1] : next_row) : inl_at[LINE_W-1:1];
    assign bank_data[b] = a2_valid_reg ? (mine ? merged : a2_data_reg) : inl_data;
    urdma_ram_sdp #(.WIDTH(512), .DEPTH(1 << (LINE_W - 1))) bank (
      .clk, .wr_en(bank_wr[b]), .wr_addr(bank_addr[b]), .wr_data(bank_data[b]),
      .rd_en(rd_en && (rd_line[0] == b[0])), .rd_addr(rd_line[LINE_W-1:1]), .rd_data(bank_q[b])
    );
  end

  logic rd_bank_reg;
  assign rd_data = bank_q[rd_bank_reg];

  always_ff @(posedge clk) begin
    if (rd_en) rd_bank_reg <= rd_line[0];
    if (a2_valid_reg) acc_reg <= wr_line ? a2_data_reg : merged;
    if (slot_clear) failed_reg[slot] <= 1'b0;
    if (rsp_valid && rsp.last && rsp.err) failed_reg[f.slot] <= 1'b1;
    if (inl_wr) inl_at_reg <= inl_at + 1'b1;
    if (rst) begin
      failed_reg <= '0;
      frags_reg <= '0;
      inls_reg <= '0;
      i_first_reg <= 1'b1;
      i_done_reg <= '0;
    end else begin
      if (a2_valid_reg && a2_reg.frag_last) frags_reg <= frags_reg + 1'b1;
      if (i_pop) inls_reg <= inls_reg + 1'b1;
      if (inl_wr) begin
        i_first_reg <= i_pop;
        i_done_reg <= i_pop ? '0 : i_done_reg + 13'd64;
      end
    end
  end

  assign busy = (f_count != '0) || a1_valid_reg || a2_valid_reg || (i_count != '0);

`ifndef SYNTHESIS
  a_rsp: assert property (@(posedge clk) disable iff (rst) rsp_valid |-> f_valid)
    else $error("%m: payload that nobody asked for");
  a_len: assert property (@(posedge clk) disable iff (rst) rsp_valid |-> (rsp.last == (left <= 13'd64)))
    else $error("%m: a DMA answer is longer or shorter than its request");
`endif

endmodule

`resetall
