// SPDX-License-Identifier: Apache-2.0
// Interrupt requests of several blocks, in turn. One cycle of latency.

`resetall
`default_nettype none

module urdma_irq_mux
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
#(
  parameter int N = 2
) (
  input  wire logic                     clk,
  input  wire logic                     rst,
  output      logic                     busy,

  input  wire logic [N-1:0]             in_valid,
  input  wire logic [N-1:0][VEC_W-1:0]  in_vec,
  output      logic [N-1:0]             in_ready,

  output      logic                     irq_valid,
  output      logic [VEC_W-1:0]         irq_vec,
  input  wire logic                     irq_ready,

  output      logic [URDMA_CNT_N-1:0]   cnt
);

  logic [N-1:0] grant;
  logic [$clog2(N)-1:0] idx;
  logic free, any, valid_reg;
  logic [VEC_W-1:0] vec_reg;

  assign free = !valid_reg || irq_ready;
  assign in_ready = free ? grant : '0;
  assign irq_valid = valid_reg;
  assign irq_vec = vec_reg;
  assign busy = valid_reg || (|in_valid);

  always_comb begin
    cnt = '0;
    cnt[URDMA_CNT_IRQ] = valid_reg && irq_ready;
  end

  urdma_arb_rr #(.N(N)) arb (.clk, .rst, .req(in_valid), .advance(free), .grant, .grant_idx(idx), .grant_valid(any));

  always_ff @(posedge clk) begin
    if (free && any) vec_reg <= in_vec[idx];
    if (rst) valid_reg <= 1'b0;
    else if (free) valid_reg <= any;
  end

endmodule

`resetall
