// SPDX-License-Identifier: Apache-2.0
// The CQE of a receive WQE, without the phase bit and the cycle word. Combinational.

`resetall
`default_nettype none

module urdma_rx_cqe
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
(
  /* verilator lint_off UNUSEDSIGNAL */
  input  wire op_t         op,             // the last operation of the message
  /* verilator lint_on UNUSEDSIGNAL */
  input  wire logic [7:0]  status,         // URDMA_WC_*: if it is not 0, the other fields are undefined
  input  wire logic [15:0] wqe,
  output      cqe_req_t    cqe
);

  logic good;
  logic [7:0] opcode;
  logic [255:0] w;

  assign good = status == '0;

  always_comb begin
    opcode = 8'(URDMA_WR_SEND);
    if (good) begin
      if (op.kind == OK_WRITE) opcode = 8'(URDMA_WR_WRITE_IMM);
      else if (op.imm_valid) opcode = 8'(URDMA_WR_SEND_IMM);
      else if (op.inv) opcode = 8'(URDMA_WR_SEND_INV);
    end
    w = '0;
    w[URDMA_CQE0_XRC_LSB] = op.xrc;
    w[URDMA_CQE0_IMM_LSB] = op.imm_valid && good;
    w[URDMA_CQE0_INV_LSB] = op.inv && good;
    w[URDMA_CQE0_SOLICITED_LSB] = op.se && good;
    w[URDMA_CQE0_RECV_LSB] = 1'b1;
    w[URDMA_CQE0_GRH_LSB] = op.grh && good;
    w[URDMA_CQE0_IPV4_LSB] = op.grh && op.ipv4 && good;
    w[URDMA_CQE0_VLAN_LSB] = op.grh && op.vlan_valid && good;
    w[URDMA_CQE0_OPCODE_LSB+:8] = opcode;
    w[URDMA_CQE0_STATUS_LSB+:8] = status;
    w[URDMA_CQE0_WQE_LSB+:16] = wqe;
    w[URDMA_CQE0_TCI_LSB+:16] = (op.grh && op.vlan_valid && good) ? op.tci : 16'd0;
    w[URDMA_CQE1_LENGTH_LSB+:32] = good ? op.mlen : 32'd0;
    w[URDMA_CQE1_QPN_LSB+:24] = 24'(op.qpn);
    w[URDMA_CQE2_IMM_LSB+:32] = ((op.imm_valid || op.inv) && good) ? op.imm : 32'd0;
    w[URDMA_CQE2_SRC_QPN_LSB+:24] = op.dest_qpn;  // XRC: CQE2_SRQN, which has the same place
    cqe = '{cqn: op.cqn, solicited: op.se && good, cqe: w};
  end

endmodule

`resetall
