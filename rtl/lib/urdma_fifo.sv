// SPDX-License-Identifier: Apache-2.0
// Synchronous FIFO, first word falls through.
//
//  in_*     a word enters when in_valid and in_ready; in_ready is registered state only (not full).
//  out_*    out_data is valid while out_valid; it leaves when out_valid and out_ready.
//  count    words held, the one on out_data included (0..DEPTH); changes the cycle after a transfer.
//
// Latency, from the cycle of the in transfer to the first cycle of out_valid:
//  OUT_REG = 0   1 cycle. A word that finds the FIFO empty goes straight into the output register.
//  OUT_REG = 1   2 cycles. Every word goes through the memory: no path from in_data to the output register.
// In both the output is a register that changes only when a word leaves or arrives (which also spares the simulator
// from copying wide words in idle cycles). Both move one word a cycle each way, and hold exactly DEPTH words. A
// full FIFO takes no word in the cycle in which one leaves.

`resetall
`default_nettype none

module urdma_fifo #(
  // bits of a word
  parameter int WIDTH = 8,
  // words, a power of two, at least 2
  parameter int DEPTH = 16,
  // 1: registered output
  parameter int OUT_REG = 0,
  localparam int AW = $clog2(DEPTH)
) (
  input  wire logic             clk,
  input  wire logic             rst,

  input  wire logic             in_valid,
  output      logic             in_ready,
  input  wire logic [WIDTH-1:0] in_data,

  output      logic             out_valid,
  input  wire logic             out_ready,
  output      logic [WIDTH-1:0] out_data,

  output      logic [AW:0]      count
);

  if (DEPTH != (1 << AW) || DEPTH < 2) begin : check_depth
    $error("urdma_fifo: DEPTH has to be a power of two, 2 or more");
  end

  logic [WIDTH-1:0] mem [DEPTH];
  logic [AW-1:0] wr_ptr_reg, rd_ptr_reg;
  logic [AW:0] count_reg;
  logic push, pop;

  assign in_ready = !count_reg[AW];
  assign push = in_valid && in_ready;
  assign pop = out_valid && out_ready;
  assign count = count_reg;

  logic out_valid_reg;
  logic [WIDTH-1:0] out_data_reg;
  logic [AW:0] mem_count_reg;  // words in mem, the one in out_data_reg not counted
  logic load, pass;

  assign load = (mem_count_reg != '0) && (!out_valid_reg || out_ready);
  assign pass = (OUT_REG == 0) && push && mem_count_reg == '0 && (!out_valid_reg || out_ready);
  assign out_valid = out_valid_reg;
  assign out_data = out_data_reg;

  always_ff @(posedge clk) begin
    if (push && !pass) mem[wr_ptr_reg] <= in_data;
    if (load) out_data_reg <= mem[rd_ptr_reg];
    else if (pass) out_data_reg <= in_data;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid_reg <= 1'b0;
      rd_ptr_reg <= '0;
      wr_ptr_reg <= '0;
      mem_count_reg <= '0;
      count_reg <= '0;
    end else begin
      if (load || pass) out_valid_reg <= 1'b1;
      else if (out_ready) out_valid_reg <= 1'b0;
      if (load) rd_ptr_reg <= rd_ptr_reg + 1'b1;
      if (push && !pass) wr_ptr_reg <= wr_ptr_reg + 1'b1;
      if (push && !pass && !load) mem_count_reg <= mem_count_reg + 1'b1;
      else if (load && !(push && !pass)) mem_count_reg <= mem_count_reg - 1'b1;
      if (push && !pop) count_reg <= count_reg + 1'b1;
      else if (pop && !push) count_reg <= count_reg - 1'b1;
    end
  end

`ifndef SYNTHESIS
  a_count: assert property (@(posedge clk) disable iff (rst) 32'(count_reg) <= DEPTH)
    else $error("%m: more words than places");
`endif

endmodule

`resetall
