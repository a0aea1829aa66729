// SPDX-License-Identifier: Apache-2.0
// One port for two clients that read from receive rings: 0, the WQE fetch; 1, urdma_rx_srq_idx, which has priority because
// the other one waits for it.
//
//  c_*     the clients. Each follows the rules of the port as if it were alone: addresses from rtl/mr in order, and a read
//          for each good one, in the same order
//  mr_* rd_*  the port
//
// No client waits for the other one here: each has room for what it requests, and takes it when it arrives.

`resetall
`default_nettype none

module urdma_rx_ring_mux
  import urdma_pkg::*;
#(
  // addresses and reads under way, of both, a power of two
  parameter int DEPTH = 256
) (
  input  wire logic              clk,
  input  wire logic              rst,

  input  wire logic [1:0]        c_mr_req_valid,
  input  wire mr_req_t [1:0]     c_mr_req,
  output      logic [1:0]        c_mr_req_ready,
  output      logic [1:0]        c_mr_rsp_valid,
  input  wire logic [1:0]        c_mr_rsp_ready,
  input  wire logic [1:0]        c_rd_req_valid,
  input  wire dma_rd_req_t [1:0] c_rd_req,
  output      logic [1:0]        c_rd_req_ready,
  output      logic [1:0]        c_rd_rsp_valid,

  output      logic              mr_req_valid,
  output      mr_req_t           mr_req,
  input  wire logic              mr_req_ready,
  input  wire logic              mr_rsp_valid,
  output      logic              mr_rsp_ready,
  output      logic              rd_req_valid,
  output      dma_rd_req_t       rd_req,
  input  wire logic              rd_req_ready,
  input  wire logic              rd_rsp_valid,
  input  wire logic              rd_rsp_last
);

  // A choice, once made, holds until it is taken.
  logic hold_reg, sel_reg, sel, mr_room, mr_who_valid, mr_who, rd_room, rd_who_valid, rd_who;

  assign sel = hold_reg ? sel_reg : c_mr_req_valid[1];
  assign mr_req_valid = c_mr_req_valid[sel] && mr_room;
  assign mr_req = c_mr_req[sel];
  assign c_mr_req_ready = {sel && mr_req_ready && mr_room, !sel && mr_req_ready && mr_room};

  always_ff @(posedge clk) begin
    if (rst) hold_reg <= 1'b0;
    else hold_reg <= mr_req_valid && !mr_req_ready;
    sel_reg <= sel;
  end

  urdma_fifo #(.WIDTH(1), .DEPTH(DEPTH)) u_mr_who (
    .clk, .rst,
    .in_valid(mr_req_valid && mr_req_ready), .in_ready(mr_room), .in_data(sel),
    .out_valid(mr_who_valid), .out_ready(mr_rsp_valid && mr_rsp_ready), .out_data(mr_who), .count()
  );
  // A ring's slot and a line are one fragment each, so an answer is one response.
  assign c_mr_rsp_valid = {mr_rsp_valid && mr_who, mr_rsp_valid && !mr_who};
  assign mr_rsp_ready = c_mr_rsp_ready[mr_who];
  assign rd_req_valid = c_rd_req_valid[mr_who] && rd_room;
  assign rd_req = c_rd_req[mr_who];
  assign c_rd_req_ready = {mr_who && rd_req_ready && rd_room, !mr_who && rd_req_ready && rd_room};

  urdma_fifo #(.WIDTH(1), .DEPTH(DEPTH)) u_rd_who (
    .clk, .rst,
    .in_valid(rd_req_valid && rd_req_ready), .in_ready(rd_room), .in_data(mr_who),
    .out_valid(rd_who_valid), .out_ready(rd_rsp_valid && rd_rsp_last), .out_data(rd_who), .count()
  );
  assign c_rd_rsp_valid = {rd_rsp_valid && rd_who, rd_rsp_valid && !rd_who};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && (mr_rsp_valid || rd_rsp_valid)) a_who: assert ((!mr_rsp_valid || mr_who_valid) && (!rd_rsp_valid || rd_who_valid))
      else $error("%m: an answer that nobody asked for");
`else
  logic unused;
  assign unused = &{1'b0, mr_who_valid, rd_who_valid};
`endif

endmodule

`resetall
