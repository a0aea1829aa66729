// SPDX-License-Identifier: Apache-2.0
// Synchronous FIFO, first word falls through.
//
//  in_*     a word enters when in_valid and in_ready; in_ready depends on registers only (not full).
//  out_*    out_data is valid while out_valid; it leaves when out_valid and out_ready.
//  count    words held, including the one on out_data (0..DEPTH); changes in the cycle after a transfer.
//
// Latency, from the cycle of the in transfer to the first cycle of out_valid:
//  OUT_REG = 0   1 cycle. A word that finds the FIFO empty goes straight into the output register.
//  OUT_REG = 1   2 cycles. Every word goes through the memory: no path from in_data to the output register.
// In both cases the output is a register that changes only when a word leaves or arrives, so the simulator copies no wide
// words in idle cycles. Both move one word a cycle each way, and hold exactly DEPTH words. A full FIFO accepts no word in
// the cycle in which one leaves.

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
  // All state in one register, updated only while there is a word: an idle FIFO costs the simulator almost nothing.
  typedef struct packed {
    logic out_valid;
    logic [AW-1:0] wr_ptr, rd_ptr;
    logic [AW:0] mem_count;  // words in mem, not counting the one in out_data_reg
    logic [AW:0] count;
  } state_t;
  state_t state_reg;
  logic [WIDTH-1:0] out_data_reg;
  logic push, pop, load, pass;

  assign in_ready = !state_reg.count[AW];
  assign count = state_reg.count;
  assign out_valid = state_reg.out_valid;
  assign out_data = out_data_reg;

  assign push = in_valid && in_ready;
  assign pop = out_valid && out_ready;
  assign load = (state_reg.mem_count != '0) && (!out_valid || out_ready);
  assign pass = (OUT_REG == 0) && push && state_reg.mem_count == '0 && (!out_valid || out_ready);

  always_ff @(posedge clk) begin
    if (push && !pass) mem[state_reg.wr_ptr] <= in_data;
    if (load) out_data_reg <= mem[state_reg.rd_ptr];
    else if (pass) out_data_reg <= in_data;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state_reg <= '0;
    end else if (in_valid || state_reg.count != '0) begin
      if (load || pass) state_reg.out_valid <= 1'b1;
      else if (out_ready) state_reg.out_valid <= 1'b0;
      if (load) state_reg.rd_ptr <= state_reg.rd_ptr + 1'b1;
      if (push && !pass) state_reg.wr_ptr <= state_reg.wr_ptr + 1'b1;
      if (push && !pass && !load) state_reg.mem_count <= state_reg.mem_count + 1'b1;
      else if (load && !(push && !pass)) state_reg.mem_count <= state_reg.mem_count - 1'b1;
      if (push && !pop) state_reg.count <= state_reg.count + 1'b1;
      else if (pop && !push) state_reg.count <= state_reg.count - 1'b1;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && state_reg.count != '0) a_count: assert (32'(state_reg.count) <= DEPTH)
      else $error("%m: more words than places");
`endif

endmodule

`resetall
