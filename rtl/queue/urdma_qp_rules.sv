// SPDX-License-Identifier: Apache-2.0
// MODIFY_QP: the transitions of a QP, and the attributes of each (IBA volume 1, 10.3.1 and the table in 11.2.5.2).
// Combinational.
//
// XRC: an initiator has the requester attributes of RC, a target the responder attributes. Port and alternate path are not
// supported as attributes, and the state SQE is not used. The path MTU of a UD QP is that of the port: the specification
// leaves it to the channel adapter. CUR_STATE may always be given.

`resetall
`default_nettype none

module urdma_qp_rules
  import urdma_hw_pkg::*;
#(
  // attributes: bits of MODIFY_QP's mask
  parameter int ATTR_W = 17
) (
  input  wire logic [3:0]        qp_type,
  input  wire logic [3:0]        old_state,
  input  wire logic [3:0]        new_state,
  output      logic              transition_ok,
  output      logic [ATTR_W-1:0] required,
  output      logic [ATTR_W-1:0] allowed
);

  typedef logic [ATTR_W-1:0] attr_t;
  localparam attr_t M_STATES = attr_t'(1 << URDMA_QPM_STATE_LSB | 1 << URDMA_QPM_CUR_STATE_LSB);
  localparam attr_t M_ACCESS = attr_t'(1 << URDMA_QPM_ACCESS_LSB);
  localparam attr_t M_PKEY = attr_t'(1 << URDMA_QPM_PKEY_LSB);
  localparam attr_t M_QKEY = attr_t'(1 << URDMA_QPM_QKEY_LSB);
  localparam attr_t M_MIN_RNR = attr_t'(1 << URDMA_QPM_MIN_RNR_LSB);
  localparam attr_t M_AV = attr_t'(1 << URDMA_QPM_AV_LSB);
  localparam attr_t M_MTU = attr_t'(1 << URDMA_QPM_MTU_LSB);
  localparam attr_t M_SQ_PSN = attr_t'(1 << URDMA_QPM_SQ_PSN_LSB);
  localparam attr_t M_PEER = attr_t'(1 << URDMA_QPM_DEST_QPN_LSB | 1 << URDMA_QPM_RQ_PSN_LSB) | M_AV;
  localparam attr_t M_TIMEOUT = attr_t'(1 << URDMA_QPM_TIMEOUT_LSB);
  localparam attr_t M_RETRY = attr_t'(1 << URDMA_QPM_RETRY_LSB | 1 << URDMA_QPM_RNR_RETRY_LSB) | M_TIMEOUT;
  localparam attr_t M_RD = attr_t'(1 << URDMA_QPM_MAX_RD_ATOMIC_LSB);
  localparam attr_t M_DEST_RD = attr_t'(1 << URDMA_QPM_MAX_DEST_RD_ATOMIC_LSB);

  logic rel, ini, tgt, ud;         // reliable: RC, XRC
  attr_t own;                      // what each transition from INIT on may change, and RESET to INIT must set
  attr_t key;                      // the part of it that may change while the QP is in use

  assign ini = qp_type == 4'(URDMA_QPT_XRC_INI);
  assign tgt = qp_type == 4'(URDMA_QPT_XRC_TGT);
  assign rel = qp_type == 4'(URDMA_QPT_RC) || ini || tgt;
  assign ud = qp_type == 4'(URDMA_QPT_UD);
  assign key = ud ? M_QKEY : M_ACCESS;
  assign own = key | M_PKEY;

  always_comb begin
    transition_ok = 1'b1;
    required = '0;
    allowed = M_STATES;
    unique case (new_state)
      4'(URDMA_QPS_RESET): ;
      4'(URDMA_QPS_ERR): ;
      4'(URDMA_QPS_INIT): begin
        transition_ok = old_state == 4'(URDMA_QPS_RESET) || old_state == 4'(URDMA_QPS_INIT);
        required = (old_state == 4'(URDMA_QPS_RESET)) ? own : '0;
        allowed = M_STATES | own;
      end
      4'(URDMA_QPS_RTR): begin
        transition_ok = old_state == 4'(URDMA_QPS_INIT);
        required = M_MTU | (ud ? '0 : M_PEER) | (rel && !ini ? M_DEST_RD | M_MIN_RNR : '0);
        allowed = M_STATES | own | required;
      end
      4'(URDMA_QPS_RTS): begin
        transition_ok = old_state == 4'(URDMA_QPS_RTR) || old_state == 4'(URDMA_QPS_RTS) || old_state == 4'(URDMA_QPS_SQD);
        if (old_state == 4'(URDMA_QPS_RTR)) required = M_SQ_PSN | (tgt ? M_TIMEOUT : rel ? M_RETRY | M_RD : '0);
        allowed = M_STATES | key | required;
        if (rel && !(ini && old_state == 4'(URDMA_QPS_RTR))) allowed |= M_MIN_RNR;
      end
      4'(URDMA_QPS_SQD): begin
        transition_ok = old_state == 4'(URDMA_QPS_RTS) || old_state == 4'(URDMA_QPS_SQD);
        if (old_state == 4'(URDMA_QPS_RTS)) allowed = M_STATES | attr_t'(1 << URDMA_QPM_SQD_EVENT_LSB);
        else allowed = M_STATES | own | (ud ? '0 : M_AV) | (rel ? M_RETRY | M_RD | M_DEST_RD | M_MIN_RNR : '0);
      end
      default: transition_ok = 1'b0;
    endcase
  end

endmodule

`resetall
