// SPDX-License-Identifier: Apache-2.0
// The small modules of rtl/lib side by side: three queues (0: FIFO, 1: FIFO with registered output, 2: register
// slice) with ports of their own, an arbiter, a RAM.

`resetall
`default_nettype none

module lib_test_top (
  input  wire logic        clk,
  input  wire logic        rst,

  input  wire logic [2:0]  in_valid,
  output      logic [2:0]  in_ready,
  input  wire logic [31:0] in_data,
  output      logic [2:0]  out_valid,
  input  wire logic [2:0]  out_ready,
  output      logic [31:0] out_data0,
  output      logic [31:0] out_data1,
  output      logic [31:0] out_data2,
  output      logic [3:0]  count0,
  output      logic [3:0]  count1,

  input  wire logic [4:0]  req,
  input  wire logic        advance,
  output      logic [4:0]  grant,
  output      logic [2:0]  grant_idx,
  output      logic        grant_valid,

  input  wire logic        wr_en,
  input  wire logic [3:0]  wr_addr,
  input  wire logic [31:0] wr_data,
  input  wire logic        rd_en,
  input  wire logic [3:0]  rd_addr,
  output      logic [31:0] rd_data
);

  urdma_fifo #(.WIDTH(32), .DEPTH(8)) u_fifo (
    .clk, .rst,
    .in_valid(in_valid[0]), .in_ready(in_ready[0]), .in_data,
    .out_valid(out_valid[0]), .out_ready(out_ready[0]), .out_data(out_data0), .count(count0)
  );

  urdma_fifo #(.WIDTH(32), .DEPTH(8), .OUT_REG(1)) u_fifo_reg (
    .clk, .rst,
    .in_valid(in_valid[1]), .in_ready(in_ready[1]), .in_data,
    .out_valid(out_valid[1]), .out_ready(out_ready[1]), .out_data(out_data1), .count(count1)
  );

  urdma_skid #(.WIDTH(32)) u_skid (
    .clk, .rst,
    .in_valid(in_valid[2]), .in_ready(in_ready[2]), .in_data,
    .out_valid(out_valid[2]), .out_ready(out_ready[2]), .out_data(out_data2)
  );

  urdma_arb_rr #(.N(5)) u_arb (.clk, .rst, .req, .advance, .grant, .grant_idx, .grant_valid);

  urdma_ram_sdp #(.WIDTH(32), .DEPTH(16), .INIT_ZERO(1)) u_ram (
    .clk, .wr_en, .wr_addr, .wr_data, .rd_en, .rd_addr, .rd_data
  );

endmodule

`resetall
