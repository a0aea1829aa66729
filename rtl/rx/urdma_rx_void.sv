// SPDX-License-Identifier: Apache-2.0
// WRITEs of UC whose key placement has refused: the rest of such a message has no effect, and the QP goes on (IBA volume 1,
// 9.9.3, class D). One bit per QP; the first packet of each message writes it, and so does a refused one.
//
//  load_*  an operation enters the stage before the last one; move: it moves to the last stage, where it is completed
//  o1, o2  the operations in these two stages
//  refused with done: the operation in o2 is refused in this cycle
//  dead    the operation in o2 belongs to a message that was refused before
//
// No sweep: only packets after a first one read the bit.

`resetall
`default_nettype none

module urdma_rx_void
  import urdma_pkg::*;
  import urdma_rx_pkg::*;
(
  input  wire logic             clk,

  input  wire logic             load,
  input  wire logic [QPN_W-1:0] load_qpn,
  input  wire logic             move,
  input  wire logic             done,
  input  wire logic             refused,
  /* verilator lint_off UNUSEDSIGNAL */
  input  wire op_t              o1,
  input  wire op_t              o2,
  /* verilator lint_on UNUSEDSIGNAL */
  output      logic             dead
);

  logic we, wdata, rdata, dead_reg;

  assign we = done && o2.unrel && (o2.first || refused);
  assign wdata = refused && !o2.last;
  assign dead = dead_reg;

  urdma_ram_live #(.WIDTH(1), .DEPTH(1 << QPN_W)) u_void (
    .clk, .wr_en(we), .wr_addr(o2.qpn), .wr_data(wdata), .rd_en(load), .rd_addr(load_qpn), .rd_data(rdata)
  );

  always_ff @(posedge clk) begin
    if (move) dead_reg <= o1.kind == OK_WRITE && o1.unrel && !o1.first && ((we && o2.qpn == o1.qpn) ? wdata : rdata);
  end

endmodule

`resetall
