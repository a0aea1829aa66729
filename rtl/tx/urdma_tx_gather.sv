// SPDX-License-Identifier: Apache-2.0
// Payload gather: the packet buffer (urdma_gather). The fragments say where DMA completions are written; inline lines are
// aligned already.
//
// frags_here and inls_here count the completed writes: commit compares them with issued_t.

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

  input  wire logic                  inl_valid,      // place of an inline packet
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

  // ---- fragments under way ------------------------------------------------------------------------------
  logic f_valid, f_pop;
  frag_t f;
  logic [FRAG_W:0] f_count;
  urdma_fifo #(.WIDTH($bits(frag_t)), .DEPTH(1 << FRAG_W)) frag_fifo (
    .clk, .rst, .in_valid(frag_valid), .in_ready(frag_ready), .in_data(frag),
    .out_valid(f_valid), .out_ready(f_pop), .out_data(f), .count(f_count)
  );

  logic [(1<<PKT_W)-1:0] failed_reg;
  logic [SEQ_W-1:0] frags_reg, inls_reg;
  logic [1:0] frag_end_reg;      // of the beats in cycle 1 and 2 of the gathering
  logic gather_busy, whole_ready;
  assign f_pop = rsp_valid && rsp.last;
  assign failed = failed_reg;
  assign frags_here = frags_reg;
  assign inls_here = inls_reg;

  // inline packets: their places, then their lines
  logic i_valid, i_pop, i_first_reg, inl_wr;
  logic [LINE_W-1:0] i_line, inl_at, inl_at_reg;
  logic [12:0] i_len, i_done_reg;
  logic [4:0] i_count;
  urdma_fifo #(.WIDTH(LINE_W + 13), .DEPTH(16)) inl_fifo (
    .clk, .rst, .in_valid(inl_valid), .in_ready(inl_ready), .in_data({inl_line, inl_len}),
    .out_valid(i_valid), .out_ready(i_pop), .out_data({i_line, i_len}), .count(i_count)
  );
  assign inl_data_ready = i_valid && whole_ready;
  assign inl_wr = inl_data_valid && inl_data_ready;
  assign inl_at = i_first_reg ? i_line : inl_at_reg;
  assign i_pop = inl_wr && (i_done_reg + 13'd64 >= i_len);

  urdma_gather #(.LINE_W(LINE_W)) gather (
    .clk, .rst, .busy(gather_busy),
    .rsp_valid, .rsp, .line(f.line), .off(f.off), .len(f.len), .last(f.pkt_last), .beat(), .n(),
    .whole_valid(inl_data_valid && i_valid), .whole_line(inl_at), .whole_data(inl_data), .whole_ready,
    .rd_en, .rd_line, .rd_data
  );

  always_ff @(posedge clk) begin
    if (slot_clear) failed_reg[slot] <= 1'b0;
    if (rsp_valid && rsp.last && rsp.err) failed_reg[f.slot] <= 1'b1;
    if (inl_wr) inl_at_reg <= inl_at + 1'b1;
    if (rst) begin
      failed_reg <= '0;
      frags_reg <= '0;
      frag_end_reg <= '0;
      inls_reg <= '0;
      i_first_reg <= 1'b1;
      i_done_reg <= '0;
    end else begin
      frag_end_reg <= {frag_end_reg[0], f_pop};
      if (frag_end_reg[1]) frags_reg <= frags_reg + 1'b1;
      if (i_pop) inls_reg <= inls_reg + 1'b1;
      if (inl_wr) begin
        i_first_reg <= i_pop;
        i_done_reg <= i_pop ? '0 : i_done_reg + 13'd64;
      end
    end
  end

  assign busy = (f_count != '0) || gather_busy || (i_count != '0);

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && rsp_valid) a_rsp: assert (f_valid)
      else $error("%m: payload that nobody asked for");
`endif

endmodule

`resetall
