// SPDX-License-Identifier: Apache-2.0
// Memory region contexts.
//
// A read is answered in order, some cycles later (here 2, for on-chip memory; a cache of host memory may take
// its place), without back-pressure. A write takes effect for reads accepted in later cycles. After reset all
// regions are made invalid, one a cycle; until init_done reads and writes are not accepted.

`resetall
`default_nettype none

module urdma_mr_ctx
  import urdma_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,

  input  wire logic             wr_valid,
  output      logic             wr_ready,
  input  wire logic [MRI_W-1:0] wr_idx,
  input  wire mr_ctx_t          wr_ctx,

  input  wire logic             rd_valid,
  output      logic             rd_ready,
  input  wire logic [MRI_W-1:0] rd_idx,

  output      logic             rsp_valid,
  output      mr_ctx_t          rsp_ctx
);

  logic [MRI_W:0] init_reg;
  logic rd_reg;
  logic [$bits(mr_ctx_t)-1:0] rd_data;

  assign init_done = init_reg[MRI_W];
  assign wr_ready = init_done;
  assign rd_ready = init_done;

  urdma_ram_sdp #(
    .WIDTH($bits(mr_ctx_t)),
    .DEPTH(2 ** MRI_W)
  ) ram (
    .clk,
    .wr_en(!init_done || wr_valid),
    .wr_addr(init_done ? wr_idx : init_reg[MRI_W-1:0]),
    .wr_data(init_done ? wr_ctx : '0),
    .rd_en(rd_valid && rd_ready),
    .rd_addr(rd_idx),
    .rd_data
  );

  always_ff @(posedge clk) begin
    rsp_ctx <= rd_data;
    if (rst) begin
      init_reg <= '0;
      rd_reg <= 1'b0;
      rsp_valid <= 1'b0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      rd_reg <= rd_valid && rd_ready;
      rsp_valid <= rd_reg;
    end
  end

endmodule

`resetall
