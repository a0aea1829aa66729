// SPDX-License-Identifier: Apache-2.0
// Contexts of memory regions and windows.
//
// Two readers share the memory's read port: lookups of requests, and operations, which have priority (two reads in their 7
// or more cycles). Reads are answered in order, by rsp_valid or op_rsp_valid, without back-pressure. The latency is 2
// cycles for on-chip memory; a cache of host memory may replace it. A write takes effect for reads accepted in later
// cycles. After reset a sweep makes all contexts invalid, one a cycle; until init_done no read is accepted.

`resetall
`default_nettype none

module urdma_mr_ctx
  import urdma_pkg::*, urdma_mr_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,

  input  wire logic             wr_valid,
  input  wire logic [MRI_W-1:0] wr_idx,
  input  wire mr_ctx_t          wr_ctx,

  input  wire logic             rd_valid,
  output      logic             rd_ready,
  input  wire logic [MRI_W-1:0] rd_idx,

  // rd_ready falls with it; taken in the cycle in which it is raised
  input  wire logic             op_rd_valid,
  input  wire logic [MRI_W-1:0] op_rd_idx,

  output      logic             rsp_valid,
  output      logic             op_rsp_valid,
  output      mr_ctx_t          rsp_ctx
);

  mr_ctx_t rsp_ctx_reg;
  assign rsp_ctx = rsp_ctx_reg;

  logic op_rsp_valid_reg;
  assign op_rsp_valid = op_rsp_valid_reg;

  logic rsp_valid_reg;
  assign rsp_valid = rsp_valid_reg;

  logic [MRI_W:0] init_reg;
  logic rd_reg, op_rd_reg;
  logic [$bits(mr_ctx_t)-1:0] rd_data;

  assign init_done = init_reg[MRI_W];
  assign rd_ready = init_done && !op_rd_valid;

  urdma_ram_sdp #(
    .WIDTH($bits(mr_ctx_t)),
    .DEPTH(2 ** MRI_W)
  ) ram (
    .clk,
    .wr_en(!init_done || wr_valid),
    .wr_addr(init_done ? wr_idx : init_reg[MRI_W-1:0]),
    .wr_data(init_done ? wr_ctx : '0),
    .rd_en((rd_valid && rd_ready) || op_rd_valid),
    .rd_addr(op_rd_valid ? op_rd_idx : rd_idx),
    .rd_data
  );

  always_ff @(posedge clk) begin
    rsp_ctx_reg <= rd_data;
    if (rst) begin
      init_reg <= '0;
      rd_reg <= 1'b0;
      op_rd_reg <= 1'b0;
      rsp_valid_reg <= 1'b0;
      op_rsp_valid_reg <= 1'b0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      rd_reg <= rd_valid && rd_ready;
      op_rd_reg <= op_rd_valid;
      rsp_valid_reg <= rd_reg;
      op_rsp_valid_reg <= op_rd_reg;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && (wr_valid || op_rd_valid)) a_init: assert (init_done)
      else $error("%m: operation before the contexts are cleared");
`endif

endmodule

`resetall
