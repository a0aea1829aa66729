// SPDX-License-Identifier: Apache-2.0
// The clock of a part of the NIC. A part is an instance whose clock the simulator skips while nothing moves in it.
//
//  clk       the NIC's clock
//  part_clk  the same net. In the simulator's model, which defines URDMA_PART_CLOCKS, a bit of urdma_sim_top.part_clk: the
//            driver raises the bit together with clk, or not at all (sim/parts.h)
//
// The instance has the name clk_ plus the name of the part, and comes directly before the part (tools/model-parts.sh). PART
// is the part's value in part_e. A part is instantiated once in the NIC, and so is each module that contains a part.

`resetall
`default_nettype none

module urdma_clk #(
  // part_e of urdma_pkg
  parameter int PART = 0
) (
  input  wire logic clk,
  output      logic part_clk
);

`ifdef URDMA_PART_CLOCKS
  logic unused;
  assign unused = clk;
  assign part_clk = urdma_sim_top.part_clk[PART];
`else
  assign part_clk = clk;
  if (PART < 0) begin : check_part
    $error("urdma_clk: PART is negative");
  end
`endif

endmodule

`resetall
