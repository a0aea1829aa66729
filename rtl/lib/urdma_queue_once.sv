// SPDX-License-Identifier: Apache-2.0
// A queue that holds each object at most once, so it has room for all objects and never overflows.
//
//  init_*   sweep after reset: each object's mark is cleared
//  in_*     an object to queue; no effect if the queue holds it already. Always accepted.
//  out_*    the oldest object; it may be queued again from the cycle after it has left
//
// An object is queued while its two marks differ. Each mark has one writer, so both ends work in the same cycle. An object
// that is put in during the cycle in which it leaves counts as still queued: its turn comes after that cycle and serves this
// request, too.

`resetall
`default_nettype none

module urdma_queue_once #(
  // log2 of the number of objects
  parameter int W = 12
) (
  input  wire logic         clk,
  input  wire logic         rst,

  input  wire logic         init,
  input  wire logic [W-1:0] init_obj,

  input  wire logic         in_valid,
  input  wire logic [W-1:0] in_obj,

  output      logic         out_valid,
  output      logic [W-1:0] out_obj,
  input  wire logic         out_ready,

  output      logic         empty
);

  logic put_mark [1 << W];
  logic got_mark [1 << W];
  logic push, pop, room;
  logic [W:0] count;

  assign push = in_valid && put_mark[in_obj] == got_mark[in_obj];
  assign pop = out_valid && out_ready;
  assign empty = count == '0;

  always_ff @(posedge clk) begin
    if (init) put_mark[init_obj] <= 1'b0;
    else if (push) put_mark[in_obj] <= !put_mark[in_obj];
  end
  always_ff @(posedge clk) begin
    if (init) got_mark[init_obj] <= 1'b0;
    else if (pop) got_mark[out_obj] <= !got_mark[out_obj];
  end

  urdma_fifo #(.WIDTH(W), .DEPTH(1 << W), .OUT_REG(1)) u_fifo (
    .clk, .rst, .in_valid(push), .in_ready(room), .in_data(in_obj),
    .out_valid, .out_ready, .out_data(out_obj), .count
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && push) a_once: assert (room)
      else $error("%m: an object stands in the queue twice");
`else
  logic unused_bits;
  assign unused_bits = &{1'b0, room};
`endif

endmodule

`resetall
