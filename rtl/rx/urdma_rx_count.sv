// SPDX-License-Identifier: Apache-2.0
// A counter that two blocks raise: when both raise it in one cycle, the second pulse follows in a later cycle.

`resetall
`default_nettype none

module urdma_rx_count #(
  // log2 of pulses that may wait. Each is for a packet, and less than one comes per cycle: the packets under way bound them.
  parameter int W = 6
) (
  input  wire logic clk,
  input  wire logic rst,
  input  wire logic a,
  input  wire logic b,
  output      logic out
);

  logic [W-1:0] wait_reg;
  logic [W:0] n;

  assign n = (W+1)'(wait_reg) + (W+1)'(a) + (W+1)'(b);
  assign out = n != '0;

  always_ff @(posedge clk) begin
    if (rst) wait_reg <= '0;
    else wait_reg <= out ? W'(n - (W+1)'(1)) : '0;
  end

endmodule

`resetall
