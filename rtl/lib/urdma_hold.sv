// SPDX-License-Identifier: Apache-2.0
// A check, not hardware: a valid/ready stream keeps an offered item unchanged until it is accepted.
//
// Reports an error when valid falls, or data changes, in a cycle after one with valid and without ready. Nothing is checked
// while rst is set. Instantiate it between `ifndef SYNTHESIS and `endif. A module with a register costs a simulator less
// than $stable, which samples all of data in each cycle.

`resetall
`default_nettype none

module urdma_hold #(
  // bits of data
  parameter int WIDTH = 8
) (
  input  wire logic             clk,
  input  wire logic             rst,
  input  wire logic             valid,
  input  wire logic             ready,
  input  wire logic [WIDTH-1:0] data
);

  logic stalled_reg;
  logic [WIDTH-1:0] data_reg;

  always_ff @(posedge clk) begin
    stalled_reg <= !rst && valid && !ready;
    if (valid && !ready && !stalled_reg) data_reg <= data;
    if (!rst && stalled_reg)
      a_hold: assert (valid && data == data_reg)
        else $error("%m: what is offered was withdrawn or changed");
  end

endmodule

`resetall
