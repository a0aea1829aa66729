// SPDX-License-Identifier: Apache-2.0
// Keeps interrupts and answers to register reads from overtaking DMA writes. Words stay in order, and each waits until RQ
// has accepted every DMA write request that was accepted before it (or in the same cycle). So software that gets the word
// finds the data. The integrated block keeps the order from there on.
//
// Latency 1 cycle when no write is pending. 16 words wait here, then in_ready falls.

`resetall
`default_nettype none

module urdma_wr_order #(
  // bits of a word
  parameter int WIDTH = 6
) (
  input  wire logic             clk,
  input  wire logic             rst,

  input  wire logic             in_valid,
  input  wire logic [WIDTH-1:0] in_data,
  output      logic             in_ready,

  input  wire logic             wr_accept,  // pulse: last beat of a DMA write request accepted from its client
  input  wire logic             wr_done,    // pulse: a DMA write request taken by RQ

  output      logic             out_valid,
  output      logic [WIDTH-1:0] out_data,
  input  wire logic             out_ready,

  output      logic             busy
);

  // Requests accepted and done so far, modulo 2**SEQ_W. The order of a word becomes ambiguous only if the block does not take
  // it for 2**31 writes (17 s at full rate).
  localparam int SEQ_W = 32;
  logic [SEQ_W-1:0] accepted_reg, done_reg, accepted_now, head_seq, behind;
  logic [WIDTH-1:0] head_data;
  logic head_valid;
  logic [4:0] fifo_count;

  assign accepted_now = accepted_reg + SEQ_W'(wr_accept);

  always_ff @(posedge clk) begin
    if (rst) begin
      accepted_reg <= '0;
      done_reg <= '0;
    end else begin
      accepted_reg <= accepted_now;
      if (wr_done) done_reg <= done_reg + 1'b1;
    end
  end

  urdma_fifo #(.WIDTH(WIDTH + SEQ_W), .DEPTH(16)) u_fifo (
    .clk, .rst,
    .in_valid(in_valid), .in_ready(in_ready), .in_data({accepted_now, in_data}),
    .out_valid(head_valid), .out_ready(out_valid && out_ready), .out_data({head_seq, head_data}),
    .count(fifo_count)
  );

  assign behind = done_reg - head_seq;  // negative while a write is not done
  assign out_valid = head_valid && !behind[SEQ_W-1];
  assign out_data = head_data;
  assign busy = (fifo_count != '0);

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst) a_seq: assert (accepted_reg - done_reg < 32'd512)
      else $error("%m: more writes done than accepted");
`endif

endmodule

`resetall
