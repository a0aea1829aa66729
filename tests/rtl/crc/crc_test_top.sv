// SPDX-License-Identifier: Apache-2.0
// urdma_crc32 with the start value selected by number, so that the package's constants are tested, too.
`resetall
`default_nettype none

module crc_test_top
  import urdma_crc32_pkg::*;
(
  input  wire logic         clk,
  input  wire logic         rst,
  input  wire logic         in_valid,
  input  wire logic [511:0] in_data,
  input  wire logic [6:0]   in_len,
  input  wire logic         in_first,
  input  wire logic [1:0]   in_init_sel,  // 0: CRC32, 1: ICRC behind 14 bytes, 2: behind 18 bytes, 3: in_init
  input  wire logic [31:0]  in_init,
  input  wire logic         in_last,
  output      logic         out_valid,
  output      logic [31:0]  out_crc
);

  logic [31:0] init;
  assign init = (in_init_sel == 2'd0) ? CRC32_INIT :
                (in_init_sel == 2'd1) ? ICRC_INIT_ETH :
                (in_init_sel == 2'd2) ? ICRC_INIT_VLAN : in_init;

  urdma_crc32 crc (
    .clk, .rst, .in_valid, .in_data, .in_len, .in_first, .in_init(init), .in_last, .out_valid, .out_crc
  );

endmodule

`resetall
