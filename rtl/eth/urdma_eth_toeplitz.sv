// SPDX-License-Identifier: Apache-2.0
// The Toeplitz hash of receive side scaling over up to 36 bytes, one input a cycle.
//
//  in_*   bytes in the order of the wire, byte 0 in in_data[7:0]; bytes outside the hash input are zero and add nothing
//  key    40 bytes, byte 0 in key[7:0]; sampled with in_valid
//  hash   2 cycles later, for one cycle
//
// Bit i of the input (bit 0 is the most significant bit of byte 0), if set, adds bits i to i + 31 of the key.

`resetall
`default_nettype none

module urdma_eth_toeplitz (
  input  wire logic         clk,

  input  wire logic         in_valid,
  input  wire logic [287:0] in_data,
  input  wire logic [319:0] key,
  output      logic [31:0]  hash
);

  localparam int PARTS = 9;        // of 4 bytes

  logic [PARTS-1:0][31:0] part_reg;
  logic valid_reg;
  logic [31:0] hash_reg;

  assign hash = hash_reg;

  always_ff @(posedge clk) begin
    if (in_valid) begin
      logic [319:0] k;             // bit 0 of the key is the topmost
      for (int b = 0; b < 40; b++) k[319-8*b-:8] = key[8*b+:8];
      for (int p = 0; p < PARTS; p++) begin
        logic [31:0] sum;
        sum = '0;
        for (int i = 32 * p; i < 32 * p + 32; i++)
          sum = sum ^ ({32{in_data[8*(i/8)+7-i%8]}} & k[319-i-:32]);
        part_reg[p] <= sum;
      end
    end
    valid_reg <= in_valid;
    if (valid_reg) begin
      logic [31:0] sum;
      sum = '0;
      for (int p = 0; p < PARTS; p++) sum = sum ^ part_reg[p];
      hash_reg <= sum;
    end
  end

endmodule

`resetall
