// SPDX-License-Identifier: Apache-2.0
// The reset of the blocks: one register for all of them.
//
//  req        reset them
//  block_rst  req, a cycle later

`resetall
`default_nettype none

module urdma_reset (
  input  wire logic clk,
  input  wire logic req,
  output      logic block_rst
);

  logic block_rst_reg;
  assign block_rst = block_rst_reg;

  always_ff @(posedge clk) block_rst_reg <= req;

endmodule

`resetall
