// SPDX-License-Identifier: Apache-2.0
// Merges the packets of two sources, segmenter and responses, into one order of descriptors and pieces.
//
// Pieces and descriptors must have the same order of packets. The segmenter gives the pieces of a packet over many cycles and
// its descriptor with the last piece, so it owns the path from the first piece to the descriptor. A response is one
// descriptor and at most one piece, in one cycle. The two take turns between packets; the segmenter's path has no register.

`resetall
`default_nettype none

module urdma_tx_merge
  import urdma_tx_pkg::*;
(
  input  wire logic   clk,
  input  wire logic   rst,
  output      logic   busy,

  // segmenter: want does not depend on the ready signals, the valid signals do
  input  wire logic   a_want,
  input  wire logic   a_pd_valid,
  input  wire pdesc_t a_pd,
  output      logic   a_pd_ready,
  input  wire logic   a_piece_valid,
  input  wire piece_t a_piece,
  output      logic   a_piece_ready,

  // responses: a piece only together with its descriptor
  input  wire logic   b_pd_valid,
  input  wire pdesc_t b_pd,
  output      logic   b_pd_ready,
  input  wire logic   b_piece_valid,
  input  wire piece_t b_piece,
  output      logic   b_piece_ready,

  output      logic   pd_valid,
  output      pdesc_t pd,
  input  wire logic   pd_ready,
  output      logic   piece_valid,
  output      piece_t piece,
  input  wire logic   piece_ready
);

  logic fp_ready, fq_ready, p_valid, q_valid, b_go, q_pop;
  pdesc_t p;
  piece_t q;
  logic [1:0] p_count, q_count;
  assign b_pd_ready = fp_ready && fq_ready;
  assign b_piece_ready = b_pd_ready;
  urdma_fifo #(.WIDTH($bits(pdesc_t)), .DEPTH(2)) pd_fifo (
    .clk, .rst, .in_valid(b_pd_valid && b_pd_ready), .in_ready(fp_ready), .in_data(b_pd),
    .out_valid(p_valid), .out_ready(b_go), .out_data(p), .count(p_count)
  );
  urdma_fifo #(.WIDTH($bits(piece_t)), .DEPTH(2)) piece_fifo (
    .clk, .rst, .in_valid(b_piece_valid && b_piece_ready), .in_ready(fq_ready), .in_data(b_piece),
    .out_valid(q_valid), .out_ready(q_pop), .out_data(q), .count(q_count)
  );

  logic open_reg, last_b_reg;    // a packet of the segmenter has pieces but no descriptor; source of the last packet
  logic sel_b, has_piece;
  assign sel_b = p_valid && !open_reg && (!a_want || !last_b_reg);
  assign has_piece = (p.plen != '0);
  assign b_go = sel_b && pd_ready && (!has_piece || piece_ready);
  assign q_pop = b_go && has_piece;

  assign a_pd_ready = pd_ready && !sel_b;
  assign a_piece_ready = piece_ready && !sel_b;
  assign pd_valid = sel_b ? b_go : a_pd_valid;
  assign pd = sel_b ? p : a_pd;
  assign piece_valid = sel_b ? q_pop : a_piece_valid;
  assign piece = sel_b ? q : a_piece;

  always_ff @(posedge clk) begin
    if (rst) begin
      open_reg <= 1'b0;
      last_b_reg <= 1'b0;
    end else if (b_go) begin
      last_b_reg <= 1'b1;
    end else if (a_pd_valid && a_pd_ready) begin
      open_reg <= 1'b0;
      last_b_reg <= 1'b0;
    end else if (a_piece_valid && a_piece_ready) begin
      open_reg <= 1'b1;
    end
  end

  assign busy = (p_count != '0);

  logic unused;
  assign unused = ^{q_valid, q_count};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && b_piece_valid) a_piece_pd: assert (b_pd_valid)
      else $error("%m: a piece of a response without its descriptor");
  always_ff @(posedge clk)
    if (!rst && q_pop) a_both: assert (q_valid)
      else $error("%m: a response's piece is missing");
`endif

endmodule

`resetall
