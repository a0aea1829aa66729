// SPDX-License-Identifier: Apache-2.0
// Simple dual-port RAM, one clock: one write port, one read port, both any cycle.
//
//  wr_en, wr_addr, wr_data   written at the clock edge
//  rd_en, rd_addr            rd_data holds the word from the next cycle on (latency 1), and keeps it until the
//                            next rd_en
//
// Reading the address that is written in the same cycle gives the old word. Contents are undefined after power-up
// unless INIT_ZERO; reset does not touch them.

`resetall
`default_nettype none

module urdma_ram_sdp #(
  // bits of a word
  parameter int WIDTH = 64,
  // words
  parameter int DEPTH = 512,
  // 1: all words start as zero (simulation, and FPGA memories that can be initialised)
  parameter int INIT_ZERO = 0,
  localparam int AW = (DEPTH > 1) ? $clog2(DEPTH) : 1
) (
  input  wire logic             clk,

  input  wire logic             wr_en,
  input  wire logic [AW-1:0]    wr_addr,
  input  wire logic [WIDTH-1:0] wr_data,

  input  wire logic             rd_en,
  input  wire logic [AW-1:0]    rd_addr,
  output      logic [WIDTH-1:0] rd_data
);

  logic [WIDTH-1:0] mem [DEPTH];
  logic [WIDTH-1:0] rd_data_reg;

  assign rd_data = rd_data_reg;

  if (INIT_ZERO != 0) begin : g_init
    initial for (int i = 0; i < DEPTH; i++) mem[i] = '0;
  end

  always_ff @(posedge clk) begin
    if (wr_en) mem[wr_addr] <= wr_data;
  end

  always_ff @(posedge clk) begin
    if (rd_en) rd_data_reg <= mem[rd_addr];
  end

endmodule

`resetall
