// SPDX-License-Identifier: Apache-2.0
// CQEs of the send queue wait here until tx knows that their WQEs are completed.
//
// Software may reuse a WQE's slot, and ring the doorbell for it, as soon as it has read the CQE. Tx must know by then that
// the slot is free: otherwise it takes the doorbell as out of range, or a retransmission reads the new contents of the slot.
// So the CQEs of a turn leave when tx has taken the acked_t of that turn.
//
//  in_*    a CQE of the turn that walks
//  go      this many of the oldest CQEs may leave from now on
//  busy    there are CQEs here
//
// A turn makes at most one CQE for each entry of its QP's table, and all of them fit here: a turn never waits for its own
// end. One CQE per cycle each way; a CQE that may leave at once does so 2 cycles after it came.

`resetall
`default_nettype none

module urdma_rx_cqe_gate
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_cmpl_pkg::*;
(
  input  wire logic            clk,
  input  wire logic            rst,
  output      logic            busy,

  input  wire logic            in_valid,
  input  wire sq_cqe_t         in,
  output      logic            in_ready,
  input  wire logic [INFL_W:0] go,

  output      logic            out_valid,
  output      cqe_req_t        out,
  input  wire logic            out_ready
);

  logic fifo_valid;
  logic [INFL_W:0] go_reg, count;
  logic [255:0] word;
  sq_cqe_t cqe;

  urdma_fifo #(.WIDTH($bits(sq_cqe_t)), .DEPTH(1 << INFL_W), .OUT_REG(1)) fifo (
    .clk, .rst, .in_valid, .in_ready, .in_data(in),
    .out_valid(fifo_valid), .out_ready(out_valid && out_ready), .out_data(cqe), .count
  );

  assign busy = count != '0;
  assign out_valid = fifo_valid && go_reg != '0;
  always_comb begin
    word = '0;
    word[URDMA_CQE0_OPCODE_LSB+:8] = cqe.opcode;
    word[URDMA_CQE0_STATUS_LSB+:8] = cqe.status;
    word[URDMA_CQE0_WQE_LSB+:16] = cqe.wqe;
    word[URDMA_CQE1_LENGTH_LSB+:32] = cqe.len;
    word[URDMA_CQE1_QPN_LSB+:24] = 24'(cqe.qpn);
  end
  assign out = '{cqn: cqe.cqn, solicited: 1'b0, cqe: word};

  always_ff @(posedge clk) begin
    if (rst) go_reg <= '0;
    else if (go != '0 || out_valid) go_reg <= go_reg + go - (INFL_W+1)'(out_valid && out_ready);
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst) a_go: assert (go_reg <= count)
      else $error("%m: more CQEs may leave than there are");
`endif

endmodule

`resetall
