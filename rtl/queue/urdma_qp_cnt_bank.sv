// SPDX-License-Identifier: Apache-2.0
// The counters of QPs for one event source: part of urdma_qp_cnt.
//
//  ev_*    an event of a QP: hit selects the counters. They add 1, BYTES adds ev_bytes. In any cycle, never refused
//  bind_*  the QP has this set from now on
//  op_*    the counters of a set are read, or with op_clear set to 0; waits for a cycle without an event
//  q_*     the values read, two cycles after op_ready
//  init_*  the sweep after a reset
//
// Three stages. The first reads the QP's set, the second the line of the set, the third adds and writes. urdma_ram_live shows
// the second stage what the third writes in the same cycle, so events of one set may follow each other in each cycle.

`resetall
`default_nettype none

module urdma_qp_cnt_bank
  import urdma_pkg::*;
#(
  // number of counters
  parameter int N = 2,
  // the counter that adds ev_bytes; N: none
  parameter int BYTES = N
) (
  input  wire logic                         clk,
  input  wire logic                         rst,
  output      logic                         busy,

  input  wire logic                         init_valid,
  input  wire logic [QPN_W-1:0]             init_addr,
  input  wire logic                         bind_valid,
  input  wire logic [QPN_W-1:0]             bind_qpn,
  input  wire logic [CSET_W-1:0]            bind_set,

  input  wire logic                         ev_valid,
  input  wire logic [QPN_W-1:0]             ev_qpn,
  input  wire logic [12:0]                  ev_bytes,
  input  wire logic [N-1:0]                 ev_hit,

  input  wire logic                         op_valid,
  input  wire logic                         op_clear,
  input  wire logic [CSET_W-1:0]            op_set,
  output      logic                         op_ready,
  output      logic                         q_valid,
  output      logic [N-1:0][QC_VALUE_W-1:0] q
);

  // ---- the QP's set ------------------------------------------------------------------------------------
  logic s1_valid_reg;
  logic [12:0] s1_bytes_reg;
  logic [N-1:0] s1_hit_reg;
  logic [CSET_W-1:0] s1_set;

  urdma_ram_sdp #(.WIDTH(CSET_W), .DEPTH(1 << QPN_W)) u_set (
    .clk, .wr_en(init_valid || bind_valid), .wr_addr(init_valid ? init_addr : bind_qpn),
    .wr_data(init_valid ? '0 : bind_set), .rd_en(ev_valid), .rd_addr(ev_qpn), .rd_data(s1_set)
  );

  always_ff @(posedge clk) begin
    if (ev_valid) begin
      s1_bytes_reg <= ev_bytes;
      s1_hit_reg <= ev_hit;
    end
    s1_valid_reg <= ev_valid && !rst;
  end

  // ---- its line ----------------------------------------------------------------------------------------
  logic s2_valid_reg, s2_op_reg, s2_clear_reg;
  logic [12:0] s2_bytes_reg;
  logic [N-1:0] s2_hit_reg;
  logic [CSET_W-1:0] rd_set, s2_set_reg;
  logic [N-1:0][QC_VALUE_W-1:0] line, sum;

  assign op_ready = op_valid && !s1_valid_reg;
  assign rd_set = s1_valid_reg ? s1_set : op_set;

  urdma_ram_live #(.WIDTH(N * QC_VALUE_W), .DEPTH(1 << CSET_W)) u_line (
    .clk, .wr_en(init_valid || s2_valid_reg || (s2_op_reg && s2_clear_reg)),
    .wr_addr(init_valid ? init_addr[CSET_W-1:0] : s2_set_reg), .wr_data((init_valid || s2_op_reg) ? '0 : sum),
    .rd_en(s1_valid_reg || op_ready), .rd_addr(rd_set), .rd_data(line)
  );

  always_ff @(posedge clk) begin
    if (s1_valid_reg || op_ready) s2_set_reg <= rd_set;
    if (s1_valid_reg) begin
      s2_bytes_reg <= s1_bytes_reg;
      s2_hit_reg <= s1_hit_reg;
    end
    if (op_ready) s2_clear_reg <= op_clear;
    s2_valid_reg <= s1_valid_reg && !rst;
    s2_op_reg <= op_ready && !rst;
  end

  // ---- the sum -------------------------------------------------------------------------------------------
  always_comb begin
    for (int i = 0; i < N; i++)
      sum[i] = line[i] + (!s2_hit_reg[i] ? '0 : i == BYTES ? QC_VALUE_W'(s2_bytes_reg) : QC_VALUE_W'(1));
  end

  assign q_valid = s2_op_reg;
  assign q = line;
  assign busy = ev_valid || s1_valid_reg || s2_valid_reg || s2_op_reg;

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_same_set: cover property (@(posedge clk) !rst && s1_valid_reg && s2_valid_reg && s1_set == s2_set_reg);
  c_op_waits: cover property (@(posedge clk) !rst && op_valid && !op_ready);
  c_op_behind: cover property (@(posedge clk) !rst && op_ready && s2_valid_reg && op_set == s2_set_reg);
`endif

endmodule

`resetall
