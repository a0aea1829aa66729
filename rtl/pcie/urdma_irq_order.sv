// SPDX-License-Identifier: Apache-2.0
// Interrupt requests, in order, each held back until every DMA write request that was accepted before it (or in
// the same cycle) has been taken by RQ, so that software which gets the interrupt finds the data.
//
// Latency 1 cycle when no write is under way. 16 requests wait here, then irq_req_ready falls.

`resetall
`default_nettype none

module urdma_irq_order #(
  // bits of a vector
  parameter int VEC_W = 6
) (
  input  wire logic             clk,
  input  wire logic             rst,

  input  wire logic             irq_req_valid,
  input  wire logic [VEC_W-1:0] irq_req_vec,
  output      logic             irq_req_ready,

  input  wire logic             wr_accept,  // pulse: last beat of a DMA write request accepted from its client
  input  wire logic             wr_done,    // pulse: a DMA write request taken by RQ

  output      logic             irq_valid,
  output      logic [VEC_W-1:0] irq_vec,
  input  wire logic             irq_ready,

  output      logic             busy
);

  // Requests accepted and done so far, modulo 2**SEQ_W. An interrupt that the block does not take would have to
  // wait for 2**31 writes (17 s at full rate) before its place in the order became ambiguous.
  localparam int SEQ_W = 32;
  logic [SEQ_W-1:0] accepted_reg, done_reg, accepted_now, head_seq, behind;
  logic [VEC_W-1:0] head_vec;
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

  urdma_fifo #(.WIDTH(VEC_W + SEQ_W), .DEPTH(16)) u_fifo (
    .clk, .rst,
    .in_valid(irq_req_valid), .in_ready(irq_req_ready), .in_data({accepted_now, irq_req_vec}),
    .out_valid(head_valid), .out_ready(irq_valid && irq_ready), .out_data({head_seq, head_vec}),
    .count(fifo_count)
  );

  assign behind = done_reg - head_seq;  // negative while a write is missing
  assign irq_valid = head_valid && !behind[SEQ_W-1];
  assign irq_vec = head_vec;
  assign busy = (fifo_count != '0);

`ifndef SYNTHESIS
  a_seq: assert property (@(posedge clk) disable iff (rst) accepted_reg - done_reg < 32'd512)
    else $error("%m: more writes done than accepted");
`endif

endmodule

`resetall
