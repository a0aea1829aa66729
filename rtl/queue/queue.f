// SPDX-License-Identifier: Apache-2.0
queue/urdma_ctl_pkg.sv
queue/urdma_regs.sv
queue/urdma_doorbell.sv
queue/urdma_db_merge.sv
queue/urdma_cmd_cpl.sv
queue/urdma_cmd_fence.sv
queue/urdma_srq_cmd.sv
queue/urdma_cmdq.sv
queue/urdma_qp_rules.sv
queue/urdma_qp_mgr.sv
queue/urdma_port_event.sv
queue/urdma_mcast_cmd.sv
queue/urdma_ctl.sv
queue/urdma_cq.sv
queue/urdma_eq.sv
queue/urdma_irq_mux.sv
