// SPDX-License-Identifier: Apache-2.0
// Commands of multicast groups: ATTACH_MCAST, DETACH_MCAST, and the end of all memberships of a QP.
//
//  job_*   commands for the QP manager from urdma_cmdq, in order; commands of groups are executed here, the others go on as
//          mgr_job
//  gone_*  the QP manager has reset or unlinked a QP. The QP leaves its groups before the next command begins, so neither an
//          ATTACH after a RESET nor a new QP with the number is affected
//  mco_*   operations, to urdma_rx_mcast
//  any     some group has a member: without one, no LEAVE is needed and no cycle is lost
//
// The QP manager ends a command before it takes the next one, so it has none under way while one is executed here: commands
// keep the order of the ring.

`resetall
`default_nettype none

module urdma_mcast_cmd
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_ctl_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             busy,

  input  wire logic             job_valid,
  input  wire logic [511:0]     job,
  output      logic             job_ready,
  output      logic             mgr_job_valid,
  input  wire logic             mgr_job_ready,

  input  wire logic             gone_valid,
  input  wire logic [QPN_W-1:0] gone_qpn,
  input  wire logic             any,

  output      logic             mco_valid,
  output      mc_op_t           mco,
  input  wire logic             mco_ready,
  input  wire mc_status_e       mco_status,

  output      logic             cpl_valid,
  output      cpl_t             cpl,
  input  wire logic             cpl_ready
);

  typedef enum logic [1:0] {J_IDLE, J_OP, J_LEAVE, J_CPL} state_e;
  state_e state_reg;
  logic [QPN_W-1:0] qpn_reg;
  logic [7:0] status_reg, opcode;
  logic own;                       // the command is one of groups
  logic [127:0] gid;
  logic is_group;

  assign opcode = job[URDMA_CMD0_OPCODE_LSB +: URDMA_CMD0_OPCODE_W];
  assign own = opcode == 8'(URDMA_CMD_ATTACH_MCAST) || opcode == 8'(URDMA_CMD_DETACH_MCAST);
  assign gid = {job[URDMA_CMD_MC6_GID_HI_LSB +: 64], job[URDMA_CMD_MC5_GID_LO_LSB +: 64]};
  // ff00::/8, or 224.0.0.0/4 as ::ffff:a.b.c.d
  assign is_group = gid[7:0] == 8'hff || (gid[95:0] == {16'hffff, 80'd0} && gid[103:100] == 4'he);

  assign mgr_job_valid = job_valid && !own && state_reg == J_IDLE;
  assign job_ready = state_reg == J_CPL ? cpl_ready : mgr_job_ready;

  assign mco_valid = state_reg == J_OP || state_reg == J_LEAVE;
  always_comb begin
    mco.kind = MC_LEAVE;
    mco.qpn = qpn_reg;
    mco.gid = gid;
    if (state_reg == J_OP) begin
      mco.kind = opcode == 8'(URDMA_CMD_ATTACH_MCAST) ? MC_ATTACH : MC_DETACH;
      mco.qpn = job[URDMA_CMD0_OBJ_LSB +: QPN_W];
    end
  end

  assign cpl_valid = state_reg == J_CPL;
  always_comb begin
    cpl = '0;
    cpl.status = status_reg;
    cpl.tag = job[URDMA_CMD0_TAG_LSB +: URDMA_CMD0_TAG_W];
    cpl.obj = job[URDMA_CMD0_OBJ_LSB +: URDMA_CMD0_OBJ_W];
    cpl.ev = job[URDMA_CMD0_EVENT_LSB];
  end

  always_ff @(posedge clk) begin
    if (gone_valid) qpn_reg <= gone_qpn;
    if (rst) begin
      state_reg <= J_IDLE;
    end else begin
      unique case (state_reg)
        J_IDLE: begin
          status_reg <= 8'(URDMA_CS_BAD_ATTR);
          if (gone_valid && any) state_reg <= J_LEAVE;
          else if (job_valid && own) state_reg <= is_group ? J_OP : J_CPL;
        end
        J_OP: if (mco_ready) begin
          case (mco_status)
            MC_OK: status_reg <= 8'(URDMA_CS_OK);
            MC_EXISTS: status_reg <= 8'(URDMA_CS_EXISTS);
            MC_FULL: status_reg <= 8'(URDMA_CS_FULL);
            default: status_reg <= 8'(URDMA_CS_BAD_ATTR);  // MC_NONE
          endcase
          state_reg <= J_CPL;
        end
        J_LEAVE: if (mco_ready) state_reg <= J_IDLE;
        default: if (cpl_ready) state_reg <= J_IDLE;  // J_CPL
      endcase
    end
  end

  // a waiting job keeps the block that reads it busy
  assign busy = state_reg != J_IDLE || (job_valid && own);

  logic unused;
  assign unused = ^job;

endmodule

`resetall
