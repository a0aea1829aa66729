// SPDX-License-Identifier: Apache-2.0
// urdma_ram_sdp whose read word stays current: a write to the address of the last read appears on rd_data from the next cycle
// on, also if it is in the cycle of the read itself. So a reader may use the word for any time.

`resetall
`default_nettype none

module urdma_ram_live #(
  // bits of a word
  parameter int WIDTH = 64,
  // words
  parameter int DEPTH = 512,
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

  logic [WIDTH-1:0] ram_data, new_reg;
  logic [AW-1:0] addr_reg;
  logic newer_reg, hit;

  urdma_ram_sdp #(.WIDTH(WIDTH), .DEPTH(DEPTH)) u_ram (
    .clk, .wr_en, .wr_addr, .wr_data, .rd_en, .rd_addr, .rd_data(ram_data)
  );

  assign hit = wr_en && wr_addr == (rd_en ? rd_addr : addr_reg);
  assign rd_data = newer_reg ? new_reg : ram_data;

  always_ff @(posedge clk) begin
    if (rd_en) addr_reg <= rd_addr;
    if (hit) new_reg <= wr_data;
    if (rd_en || hit) newer_reg <= hit;
  end

endmodule

`resetall
