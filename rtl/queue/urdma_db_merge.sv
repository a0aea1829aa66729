// SPDX-License-Identifier: Apache-2.0
// Receive doorbells on their way to the responder, each QP at most once.
//
// The responder takes doorbells in order with packets, and packets wait for the reads of receive WQEs. A doorbell is a posted
// write of the host, and the completion of a read must not overtake it (PCI Express, 2.4.1): if doorbells waited for the
// responder all the way back to PCIe, there would be a deadlock. So they are taken here at once: the newest index of each QP
// is kept, and the QP is queued.
//
//   c0 read the QP's entry, for a doorbell or for the head of the queue -> c1 write it; queue up or hand out
//
// Doorbells and the queue take turns. 3 cycles from in to out when nothing waits. flush_req/flush_done: done when all
// doorbells inside at the rise of flush_req have left.

`resetall
`default_nettype none

module urdma_db_merge
  import urdma_pkg::*;
(
  input  wire logic   clk,
  input  wire logic   rst,
  output      logic   init_done,
  output      logic   busy,

  input  wire logic   in_valid,
  input  wire wq_db_t in,
  output      logic   in_ready,     // waits for no other block

  output      logic   out_valid,
  output      wq_db_t out,
  input  wire logic   out_ready,

  input  wire logic   flush_req,
  output      logic   flush_done
);

  typedef struct packed {
    logic        queued;
    logic [15:0] pi;
  } ent_t;

  // ---- c0 --------------------------------------------------------------------------------------------
  logic [QPN_W:0] init_reg, count;
  logic head_valid, head_pop, push, fifo_ready, take_in, take_out, turn_reg;
  logic [QPN_W-1:0] head, c0_qpn, c1_qpn_reg;
  logic c1_valid_reg, c1_out_reg, c1_fwd_reg, out_valid_reg;
  logic [15:0] c1_pi_reg;
  logic [15:0] step;
  ent_t ram_ent, fwd_ent_reg, ent, ent_next;
  wq_db_t out_reg;

  assign init_done = init_reg[QPN_W];
  // the place of the output is free when the entry arrives in it
  assign take_out = init_done && head_valid && !(c1_valid_reg && c1_out_reg) && (!out_valid_reg || out_ready)
                    && !(in_valid && turn_reg);
  assign take_in = init_done && in_valid && !take_out;
  assign in_ready = init_done && !take_out;
  assign head_pop = take_out;
  assign c0_qpn = take_out ? head : in.qpn;

  urdma_ram_sdp #(.WIDTH($bits(ent_t)), .DEPTH(1 << QPN_W)) ram (
    .clk,
    .wr_en(!init_done || c1_valid_reg), .wr_addr(init_done ? c1_qpn_reg : init_reg[QPN_W-1:0]),
    .wr_data(init_done ? ent_next : '0),
    .rd_en(take_in || take_out), .rd_addr(c0_qpn), .rd_data(ram_ent)
  );

  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(1 << QPN_W), .OUT_REG(1)) fifo (
    .clk, .rst,
    .in_valid(push), .in_ready(fifo_ready), .in_data(c1_qpn_reg),
    .out_valid(head_valid), .out_ready(head_pop), .out_data(head), .count(count)
  );

  // ---- c1 --------------------------------------------------------------------------------------------
  assign ent = c1_fwd_reg ? fwd_ent_reg : ram_ent;
  assign step = c1_pi_reg - ent.pi;
  assign push = c1_valid_reg && !c1_out_reg && !ent.queued;
  always_comb begin
    ent_next = ent;
    if (c1_out_reg) begin
      ent_next.queued = 1'b0;
    end else begin
      ent_next.queued = 1'b1;
      // an older, repeated doorbell does not replace a newer one; a whole ring of 2**15 may be posted at once
      if (!ent.queued || step <= 16'h8000) ent_next.pi = c1_pi_reg;
    end
  end

  assign out_valid = out_valid_reg;
  assign out = out_reg;

  always_ff @(posedge clk) begin
    if (take_in || take_out) begin
      c1_out_reg <= take_out;
      c1_qpn_reg <= c0_qpn;
      c1_pi_reg <= in.pi;
      c1_fwd_reg <= c1_valid_reg && c1_qpn_reg == c0_qpn;
      fwd_ent_reg <= ent_next;
    end
    if (c1_valid_reg && c1_out_reg) out_reg <= '{qpn: c1_qpn_reg, pi: ent.pi};
    if (rst) begin
      init_reg <= '0;
      c1_valid_reg <= 1'b0;
      out_valid_reg <= 1'b0;
      turn_reg <= 1'b0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      c1_valid_reg <= take_in || take_out;
      if (c1_valid_reg && c1_out_reg) out_valid_reg <= 1'b1;
      else if (out_ready) out_valid_reg <= 1'b0;
      turn_reg <= take_out;
    end
  end

  assign busy = in_valid || count != '0 || c1_valid_reg || out_valid_reg;

  // ---- flush: all doorbells that were inside must leave ----------------------------------------------
  logic flush_seen_reg, flush_done_reg, leave;
  logic [QPN_W+1:0] flush_left_reg, now_inside;
  assign leave = out_valid_reg && out_ready;
  // A doorbell in c1 whose QP is already queued is counted once too often; then the flush ends when the block is empty.
  assign now_inside = (QPN_W+2)'(count) + (QPN_W+2)'(c1_valid_reg) + (QPN_W+2)'(out_valid_reg) - (QPN_W+2)'(leave);
  assign flush_done = flush_done_reg;

  always_ff @(posedge clk) begin
    if (rst || !flush_req) begin
      flush_seen_reg <= 1'b0;
      flush_done_reg <= 1'b0;
    end else begin
      flush_seen_reg <= 1'b1;
      if (!flush_seen_reg) flush_left_reg <= now_inside;
      else if (flush_left_reg == '0 || (count == '0 && !c1_valid_reg && !out_valid_reg)) flush_done_reg <= 1'b1;
      else if (leave) flush_left_reg <= flush_left_reg - 1'b1;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && push) a_queue: assert (fifo_ready)
      else $error("%m: a QP stands in the queue twice");
  always_ff @(posedge clk)
    if (!rst && c1_valid_reg && c1_out_reg) a_out: assert (!out_valid_reg || out_ready)
      else $error("%m: a doorbell is lost");

  // Cases that the tests must reach (make coverage).
  c_merged: cover property (@(posedge clk) !rst && c1_valid_reg && !c1_out_reg && ent.queued);
  c_old: cover property (@(posedge clk) !rst && c1_valid_reg && !c1_out_reg && ent.queued && step > 16'h8000);
  c_whole_ring: cover property (@(posedge clk) !rst && c1_valid_reg && !c1_out_reg && ent.queued && step == 16'h8000);
`else
  logic unused_bits;
  assign unused_bits = &{1'b0, fifo_ready};
`endif

endmodule

`resetall
