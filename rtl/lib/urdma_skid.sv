// SPDX-License-Identifier: Apache-2.0
// Register slice: cuts valid, data and ready with registers, keeps full throughput (two places).
//
//  in_*    a word enters when in_valid and in_ready; in_ready is a register.
//  out_*   out_valid and out_data are registers.
//
// Latency 1 cycle, one word a cycle; a word taken while the output is stalled waits in the second place.

`resetall
`default_nettype none

module urdma_skid #(
  // bits of a word
  parameter int WIDTH = 8
) (
  input  wire logic             clk,
  input  wire logic             rst,

  input  wire logic             in_valid,
  output      logic             in_ready,
  input  wire logic [WIDTH-1:0] in_data,

  output      logic             out_valid,
  input  wire logic             out_ready,
  output      logic [WIDTH-1:0] out_data
);

  logic in_ready_reg, out_valid_reg, hold_valid_reg;
  logic [WIDTH-1:0] out_data_reg, hold_data_reg;

  assign in_ready = in_ready_reg;
  assign out_valid = out_valid_reg;
  assign out_data = out_data_reg;

  logic in_xfer, out_free;
  assign in_xfer = in_valid && in_ready_reg;
  assign out_free = !out_valid_reg || out_ready;

  always_ff @(posedge clk) begin
    if (out_free) begin
      if (hold_valid_reg) out_data_reg <= hold_data_reg;
      else if (in_xfer) out_data_reg <= in_data;
    end else if (in_xfer) begin
      hold_data_reg <= in_data;
    end
  end

  // in_ready_reg is the inverse of hold_valid_reg except during reset, when nothing may enter.
  always_ff @(posedge clk) begin
    if (rst) begin
      in_ready_reg <= 1'b0;
      out_valid_reg <= 1'b0;
      hold_valid_reg <= 1'b0;
    end else if (out_free) begin
      out_valid_reg <= hold_valid_reg || in_xfer;
      hold_valid_reg <= 1'b0;
      in_ready_reg <= 1'b1;
    end else if (in_xfer) begin
      hold_valid_reg <= 1'b1;
      in_ready_reg <= 1'b0;
    end
  end

endmodule

`resetall
