// SPDX-License-Identifier: Apache-2.0
// Counts the pieces of memory that are being read, by key: reports when the last one of an invalidated key has arrived.
//
// mr checks a piece when it takes it (in_*). From then until its data are in the packet buffer the piece is read through its
// key, even if the key is invalidated meanwhile. Pieces are counted in buckets, by the low bits of the key's index. They pass
// a second gate (asked_*) in the same order, when their DMA reads have been requested, and leave when asked_seq fragments
// have arrived.
//
//  inv_valid, inv_bucket  pulse: a key is invalid for mr. At most INVS without an answer
//  reads_over             pulse, for each in order: all pieces that were checked with the key before have been read: its
//                         bucket is empty, or all pieces that were here when the request came have left
//
// As a rule the bucket is empty at once. If other keys of the bucket are in use all the time, the second condition limits the
// wait to a DMA read: a piece has room in the packet buffer before mr takes it. Later requests wait no longer than that
// either, because each has its own end.

`resetall
`default_nettype none

module urdma_tx_keys
  import urdma_tx_pkg::*;
#(
  // requests without an answer, a power of two
  parameter int INVS = 32
) (
  input  wire logic                clk,
  input  wire logic                rst,

  input  wire logic                in_valid,     // pulse: mr takes a piece
  input  wire logic [BUCKET_W-1:0] in_bucket,
  input  wire logic                asked_valid,  // pulse, with asked_ready: the DMA reads of a piece have been requested
  output      logic                asked_ready,
  input  wire logic [BUCKET_W-1:0] asked_bucket,
  input  wire logic [SEQ_W-1:0]    asked_seq,    // its data are here when the count of fragments reaches this
  input  wire logic [SEQ_W-1:0]    frags_here,

  input  wire logic                inv_valid,
  input  wire logic [BUCKET_W-1:0] inv_bucket,
  output      logic                reads_over
);

  localparam int N_W = FRAG_W + 2;      // pieces here: AHEAD of urdma_tx_read and the FIFO below, far less than 2**(N_W-1)

  logic out_valid, out_pop;
  logic [BUCKET_W-1:0] out_bucket;
  logic [SEQ_W-1:0] out_seq;
  /* verilator lint_off UNUSEDSIGNAL */  // its sign
  logic [SEQ_W-1:0] behind;
  /* verilator lint_on UNUSEDSIGNAL */
  urdma_fifo #(.WIDTH(BUCKET_W + SEQ_W), .DEPTH(1 << FRAG_W), .OUT_REG(1)) asked_fifo (
    .clk, .rst, .in_valid(asked_valid), .in_ready(asked_ready), .in_data({asked_bucket, asked_seq}),
    .out_valid, .out_ready(out_pop), .out_data({out_bucket, out_seq}), .count()
  );
  assign behind = frags_here - out_seq;
  assign out_pop = out_valid && !behind[SEQ_W-1];

  // ---- counters -----------------------------------------------------------------------------------------------
  logic [N_W-1:0] n_reg [1 << BUCKET_W]; // in each bucket
  logic [N_W-1:0] in_reg, out_reg;      // pieces that came, pieces that left
  always_ff @(posedge clk) begin
    if (rst) begin
      for (int i = 0; i < (1 << BUCKET_W); i++) n_reg[i] <= '0;
      in_reg <= '0;
      out_reg <= '0;
    end else begin
      if (in_valid) in_reg <= in_reg + 1'b1;
      if (out_pop) out_reg <= out_reg + 1'b1;
      if (!(in_valid && out_pop && (in_bucket == out_bucket))) begin
        if (in_valid) n_reg[in_bucket] <= n_reg[in_bucket] + 1'b1;
        if (out_pop) n_reg[out_bucket] <= n_reg[out_bucket] - 1'b1;
      end
    end
  end

  // ---- the requests ---------------------------------------------------------------------------------------------
  logic head_valid, head_pop, all_left, over_reg, inv_room;
  logic [BUCKET_W-1:0] head_bucket;
  logic [N_W-1:0] head_to;
  /* verilator lint_off UNUSEDSIGNAL */  // its sign
  logic [N_W-1:0] past;
  /* verilator lint_on UNUSEDSIGNAL */
  urdma_fifo #(.WIDTH(BUCKET_W + N_W), .DEPTH(INVS)) inv_fifo (
    .clk, .rst, .in_valid(inv_valid), .in_ready(inv_room), .in_data({inv_bucket, in_reg}),
    .out_valid(head_valid), .out_ready(head_pop), .out_data({head_bucket, head_to}), .count()
  );
  assign past = out_reg - head_to;
  assign all_left = !past[N_W-1];
  assign head_pop = head_valid && ((n_reg[head_bucket] == '0) || all_left);
  assign reads_over = over_reg;
  always_ff @(posedge clk) over_reg <= head_pop && !rst;

`ifndef SYNTHESIS
  logic [N_W-1:0] all, out_n;
  assign all = in_reg - out_reg;
  assign out_n = n_reg[out_bucket];
  always_ff @(posedge clk)
    if (!rst && in_valid) a_in: assert (!all[N_W-1])
      else $error("%m: more pieces than can be counted");
  always_ff @(posedge clk)
    if (!rst && out_pop) a_out: assert ((out_n != '0))
      else $error("%m: more pieces have left than came");
  always_ff @(posedge clk)
    if (!rst && inv_valid) a_room: assert (inv_room)
      else $error("%m: more requests than there is room for");
`endif

endmodule

`resetall
