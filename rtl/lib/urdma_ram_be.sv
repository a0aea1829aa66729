// SPDX-License-Identifier: Apache-2.0
// Simple dual-port RAM with byte enables, one clock: one write port, one read port, both any cycle.
//
//  wr_en, wr_addr, wr_be, wr_data   the bytes with their bit of wr_be set are written at the clock edge
//  rd_en, rd_addr                   rd_data holds the word from the next cycle on (latency 1), and keeps it until the
//                                   next rd_en
//
// Reading the address that is written in the same cycle gives the old word. Contents are undefined after power-up; reset
// does not touch them.

`resetall
`default_nettype none

module urdma_ram_be #(
  // bytes of a word
  parameter int BYTES = 64,
  // words
  parameter int DEPTH = 512,
  localparam int AW = (DEPTH > 1) ? $clog2(DEPTH) : 1
) (
  input  wire logic               clk,

  input  wire logic               wr_en,
  input  wire logic [AW-1:0]      wr_addr,
  input  wire logic [BYTES-1:0]   wr_be,
  input  wire logic [8*BYTES-1:0] wr_data,

  input  wire logic               rd_en,
  input  wire logic [AW-1:0]      rd_addr,
  output      logic [8*BYTES-1:0] rd_data
);

  logic [8*BYTES-1:0] mem [DEPTH];
  logic [8*BYTES-1:0] rd_data_reg;

  assign rd_data = rd_data_reg;

  always_ff @(posedge clk) begin
    for (int i = 0; i < BYTES; i++)
      if (wr_en && wr_be[i]) mem[wr_addr][8*i +: 8] <= wr_data[8*i +: 8];
  end

  always_ff @(posedge clk) begin
    if (rd_en) rd_data_reg <= mem[rd_addr];
  end

endmodule

`resetall
