// SPDX-License-Identifier: Apache-2.0
// Control: registers, doorbells, command queue, QP configurations. Ports: docs/rtl-interfaces.md; README.md here.

`resetall
`default_nettype none

module urdma_ctl
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_ctl_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic                        clk,
  input  wire logic                        rst,
  output      logic                        core_rst,
  input  wire logic                        dma_busy,
  input  wire logic                        blocks_init_done,
  output      logic                        busy,

  input  wire logic                        reg_req_valid,
  input  wire reg_req_t                    reg_req,
  output      logic                        reg_req_ready,
  output      logic                        reg_rsp_valid,
  output      logic [63:0]                 reg_rsp_data,
  output      logic                        eth_reg_valid,
  input  wire logic [63:0]                 eth_reg_rdata,

  input  wire logic                        pcie_db_valid,
  input  wire db_t                         pcie_db,
  output      logic                        pcie_db_ready,

  output      logic                        sq_db_valid,
  output      wq_db_t                      sq_db,
  input  wire logic                        sq_db_ready,
  output      logic                        rq_db_valid,
  output      wq_db_t                      rq_db,
  input  wire logic                        rq_db_ready,
  output      logic                        srq_db_valid,
  output      srq_db_t                     srq_db,
  input  wire logic                        srq_db_ready,
  output      logic                        cq_db_valid,
  output      cq_db_t                      cq_db,
  input  wire logic                        cq_db_ready,
  output      logic                        eq_db_valid,
  output      eq_db_t                      eq_db,
  input  wire logic                        eq_db_ready,
  output      logic                        eth_db_valid,
  output      eth_db_t                     eth_db,

  output      logic                        tx_qpc_valid,
  output      qpc_t                        tx_qpc,
  input  wire logic                        tx_qpc_ready,
  input  wire qpc_rsp_t                    tx_qpc_rsp,
  output      logic                        rx_qpc_valid,
  output      qpc_t                        rx_qpc,
  input  wire logic                        rx_qpc_ready,
  input  wire qpc_rsp_t                    rx_qpc_rsp,
  output      logic                        ack_qpc_valid,
  output      qpc_t                        ack_qpc,
  input  wire logic                        ack_qpc_ready,
  input  wire qpc_rsp_t                    ack_qpc_rsp,

  output      logic                        mro_valid,
  output      mr_op_t                      mro,
  input  wire logic                        mro_ready,
  input  wire logic                        mro_rsp_valid,
  input  wire mro_status_e                 mro_rsp,
  output      logic                        mr_flush_req,
  input  wire logic                        mr_flush_done,
  output      logic                        cq_cfg_valid,
  output      logic [CQN_W-1:0]            cq_cfg_cqn,
  output      cq_cfg_t                     cq_cfg,
  output      cq_cfg_op_e                  cq_cfg_op,
  output      logic [31:0]                 cq_cfg_ci,
  input  wire logic                        cq_cfg_ready,
  input  wire cq_resized_t                 cq_resized,
  output      logic                        eq_cfg_valid,
  output      logic [EQN_W-1:0]            eq_cfg_eqn,
  output      eq_cfg_t                     eq_cfg,
  input  wire logic                        eq_cfg_ready,

  output      logic                        sro_valid,
  output      srq_op_t                     sro,
  input  wire logic                        sro_ready,
  input  wire srq_ans_t                    sro_ans,

  output      logic                        qco_valid,
  output      qc_op_t                      qco,
  input  wire logic                        qco_ready,
  input  wire qc_ans_t                     qco_ans,

  output      logic                        tx_fence_req,
  input  wire logic                        tx_fence_done,
  output      logic                        rx_fence_req,
  input  wire logic                        rx_fence_done,
  output      logic                        cq_fence_req,
  input  wire logic                        cq_fence_done,

  input  wire logic [QPR_N-2:0]            qpr_req_valid,
  input  wire logic [QPR_N-2:0][QPN_W-1:0] qpr_req_qpn,
  output      logic [QPR_N-2:0]            qpr_req_ready,
  output      logic [QPR_N-2:0]            qpr_rsp_valid,
  output      qp_cfg_t [QPR_N-2:0]         qpr_rsp,
  input  wire logic [2:0][GID_W-1:0]       gid_idx,
  output      gid_t [2:0]                  gid,
  output      logic                        gid_wr_valid,
  output      logic [GID_W-1:0]            gid_wr_idx,
  output      gid_t                        gid_wr,

  output      logic                        mco_valid,
  output      mc_op_t                      mco,
  input  wire logic                        mco_ready,
  input  wire mc_status_e                  mco_status,
  input  wire logic                        mc_any,

  input  wire logic [QPE_N-1:0]            qp_err_valid,
  input  wire qp_err_t [QPE_N-1:0]         qp_err,
  output      logic [QPE_N-1:0]            qp_err_ready,
  output      logic                        mgr_ev_valid,
  output      eqe_req_t                    mgr_ev,
  input  wire logic                        mgr_ev_ready,
  output      logic                        cmd_ev_valid,
  output      eqe_req_t                    cmd_ev,
  input  wire logic                        cmd_ev_ready,
  output      logic                        port_ev_valid,
  output      eqe_req_t                    port_ev,
  input  wire logic                        port_ev_ready,

  output      logic                        rd_req_valid,
  output      dma_rd_req_t                 rd_req,
  input  wire logic                        rd_req_ready,
  input  wire logic                        rd_rsp_valid,
  input  wire dma_rd_rsp_t                 rd_rsp,
  output      logic                        wr_valid,
  output      dma_wr_t                     wr,
  input  wire logic                        wr_ready,

  input  wire logic [URDMA_CNT_N-1:0]      cnt,
  input  wire logic [6:0]                  tx_bytes,
  input  wire logic [6:0]                  rx_bytes,
  input  wire logic                        eq0_lost,

  input  wire logic [47:0]                 mac_default,
  output      logic [47:0]                 mac,
  input  wire logic                        link_up,
  input  wire logic                        skip_valid,
  input  wire logic [63:0]                 skip_cycles,
  output      logic [63:0]                 cycles,

  output      logic                        trace_sq_db_valid,
  output      tr_sq_db_t                   trace_sq_db,
  output      logic                        trace_rq_db_valid,
  output      tr_rq_db_t                   trace_rq_db,
  output      logic                        trace_cmd_valid,
  output      tr_cmd_t                     trace_cmd,
  output      logic                        trace_qp_end_valid,
  output      tr_qp_end_t                  trace_qp_end
);

  logic ready, cmdq_enable, cmdq_err, cmdq_init_done, mgr_init_done, merge_init_done;
  logic regs_busy, db_busy, merge_busy, cmdq_busy, cpl_busy, fence_busy, mgr_busy, port_busy, mcast_busy;
  logic [63:0] cmdq_base, cmdq_cpl_base;
  logic [3:0] cmdq_log_size;
  logic [15:0] cmdq_pi, cmdq_ci;
  logic [URDMA_CNT_N-1:0] cnt_own, db_cnt;
  logic cnt_cmd_ok, cnt_cmd_err;

  assign busy = regs_busy || db_busy || merge_busy || cmdq_busy || cpl_busy || fence_busy || mgr_busy || port_busy || mcast_busy;

  always_comb begin
    cnt_own = db_cnt;
    cnt_own[URDMA_CNT_CMD_OK] = cnt_cmd_ok;
    cnt_own[URDMA_CNT_CMD_ERR] = cnt_cmd_err;
  end

  // The one register that changes in every clock.
  logic [63:0] cycles_reg;
  assign cycles = cycles_reg;

  always_ff @(posedge clk) begin
    if (rst) cycles_reg <= '0;
    else if (skip_valid) cycles_reg <= cycles_reg + 64'd1 + skip_cycles;
    else cycles_reg <= cycles_reg + 64'd1;
  end

  logic regs_clk;
  urdma_clk #(.PART(PART_CTL_REGS)) clk_regs (.clk, .part_clk(regs_clk));
  urdma_regs regs (
    .clk(regs_clk), .rst(rst), .core_rst(core_rst), .dma_busy(dma_busy),
    .init_done(blocks_init_done && cmdq_init_done && mgr_init_done && merge_init_done), .ready(ready), .busy(regs_busy),
    .reg_req_valid(reg_req_valid), .reg_req(reg_req), .reg_req_ready(reg_req_ready),
    .reg_rsp_valid(reg_rsp_valid), .reg_rsp_data(reg_rsp_data), .eth_reg_valid(eth_reg_valid), .eth_reg_rdata(eth_reg_rdata),
    .cmdq_enable(cmdq_enable), .cmdq_base(cmdq_base), .cmdq_cpl_base(cmdq_cpl_base), .cmdq_log_size(cmdq_log_size),
    .cmdq_pi(cmdq_pi), .cmdq_ci(cmdq_ci), .cmdq_err(cmdq_err),
    .cnt(cnt), .cnt_own(cnt_own), .tx_bytes(tx_bytes), .rx_bytes(rx_bytes), .eq0_lost(eq0_lost),
    .mac_default(mac_default), .mac(mac), .link_up(link_up),
    .cycles(cycles)
  );

  // ---- QP configurations ---------------------------------------------------------------------------
  logic db_qpr_req_valid, db_qpr_req_ready, db_qpr_rsp_valid;
  logic [QPN_W-1:0] db_qpr_req_qpn;
  qp_cfg_t qpr_rsp_any;
  logic db_flush_req, db_flushed, db_flush_done, rq_in_valid, rq_in_ready;
  wq_db_t rq_in;
  logic srq_req_valid, srq_rsp_valid, srq_rsp_open;
  logic [SRQN_W-1:0] srq_req_srqn;
  logic [DBP_W-1:0] srq_rsp_page;

  assign qpr_rsp = {(QPR_N-1){qpr_rsp_any}};

  logic doorbell_clk;
  urdma_clk #(.PART(PART_CTL_DOORBELL)) clk_doorbell (.clk, .part_clk(doorbell_clk));
  urdma_doorbell doorbell (
    .clk(doorbell_clk), .rst(core_rst), .ready(ready), .busy(db_busy),
    .pcie_db_valid(pcie_db_valid), .pcie_db(pcie_db), .pcie_db_ready(pcie_db_ready),
    .qpr_req_valid(db_qpr_req_valid), .qpr_req_qpn(db_qpr_req_qpn), .qpr_req_ready(db_qpr_req_ready),
    .qpr_rsp_valid(db_qpr_rsp_valid),
    .qpr_rsp_open(qpr_rsp_any.state != 4'(URDMA_QPS_RESET)),
    .qpr_rsp_has_sq(qpr_rsp_any.valid && has_sq(qpr_rsp_any.qp_type)),
    .qpr_rsp_has_rq(qpr_rsp_any.valid && has_rq(qpr_rsp_any.qp_type)),
    .qpr_rsp_page(qpr_rsp_any.db_page),
    .srq_req_valid(srq_req_valid), .srq_req_srqn(srq_req_srqn),
    .srq_rsp_valid(srq_rsp_valid), .srq_rsp_open(srq_rsp_open), .srq_rsp_page(srq_rsp_page),
    .sq_db_valid(sq_db_valid), .sq_db(sq_db), .sq_db_ready(sq_db_ready),
    .srq_db_valid(srq_db_valid), .srq_db(srq_db), .srq_db_ready(srq_db_ready),
    .rq_db_valid(rq_in_valid), .rq_db(rq_in), .rq_db_ready(rq_in_ready),
    .cq_db_valid(cq_db_valid), .cq_db(cq_db), .cq_db_ready(cq_db_ready),
    .eq_db_valid(eq_db_valid), .eq_db(eq_db), .eq_db_ready(eq_db_ready), .eth_db_valid(eth_db_valid), .eth_db(eth_db),
    .flush_req(db_flush_req), .flush_done(db_flushed),
    .cnt(db_cnt), .trace_sq_db_valid, .trace_sq_db, .trace_rq_db_valid, .trace_rq_db
  );

  logic rq_merge_clk;
  urdma_clk #(.PART(PART_CTL_RQ_MERGE)) clk_rq_merge (.clk, .part_clk(rq_merge_clk));
  urdma_db_merge rq_merge (
    .clk(rq_merge_clk), .rst(core_rst), .init_done(merge_init_done), .busy(merge_busy),
    .in_valid(rq_in_valid), .in(rq_in), .in_ready(rq_in_ready),
    .out_valid(rq_db_valid), .out(rq_db), .out_ready(rq_db_ready),
    .flush_req(db_flushed), .flush_done(db_flush_done)
  );

  // ---- commands ---------------------------------------------------------------------------------------
  logic job_valid, job_ready, mgr_job_valid, mgr_job_ready, mgr_cpl_valid, mc_cpl_valid;
  cpl_t mgr_cpl, mc_cpl;
  logic [511:0] job;
  logic cmd_fence_valid, mgr_fence_valid, fin_qp_valid, fin_qp_ready, fin_valid, fin_ready;
  fence_item_t cmd_fence, mgr_fence, fin;
  logic [1:0] cpl_valid, cpl_ready;
  cpl_t [1:0] cpl;
  logic cpl_done;

  logic cmdq_clk;
  urdma_clk #(.PART(PART_CTL_CMDQ)) clk_cmdq (.clk, .part_clk(cmdq_clk));
  urdma_cmdq cmdq (
    .clk(cmdq_clk), .rst(core_rst), .init_done(cmdq_init_done), .busy(cmdq_busy),
    .enable(cmdq_enable), .base(cmdq_base), .log_size(cmdq_log_size), .pi(cmdq_pi), .ci(cmdq_ci), .err(cmdq_err),
    .rd_req_valid(rd_req_valid), .rd_req(rd_req), .rd_req_ready(rd_req_ready),
    .rd_rsp_valid(rd_rsp_valid), .rd_rsp(rd_rsp),
    .mro_valid(mro_valid), .mro(mro), .mro_ready(mro_ready), .mro_rsp_valid(mro_rsp_valid), .mro_rsp(mro_rsp),
    .cq_cfg_valid(cq_cfg_valid), .cq_cfg_cqn(cq_cfg_cqn), .cq_cfg(cq_cfg), .cq_cfg_op, .cq_cfg_ci,
    .cq_cfg_ready(cq_cfg_ready), .cq_resized,
    .eq_cfg_valid(eq_cfg_valid), .eq_cfg_eqn(eq_cfg_eqn), .eq_cfg(eq_cfg), .eq_cfg_ready(eq_cfg_ready),
    .sro_valid(sro_valid), .sro(sro), .sro_ready(sro_ready), .sro_ans(sro_ans),
    .qco_valid, .qco, .qco_ready, .qco_ans,
    .srq_req_valid(srq_req_valid), .srq_req_srqn(srq_req_srqn),
    .srq_rsp_valid(srq_rsp_valid), .srq_rsp_open(srq_rsp_open), .srq_rsp_page(srq_rsp_page),
    .job_valid(job_valid), .job(job), .job_ready(job_ready),
    .fence_valid(cmd_fence_valid), .fence(cmd_fence), .fence_ready(!mgr_fence_valid),
    .fin_valid(fin_valid), .fin(fin), .fin_ready(fin_ready),
    .cpl_valid(cpl_valid[0]), .cpl(cpl[0]), .cpl_ready(cpl_ready[0]), .cpl_done(cpl_done)
  );

  logic qp_mgr_clk;
  urdma_clk #(.PART(PART_CTL_QP_MGR)) clk_qp_mgr (.clk, .part_clk(qp_mgr_clk));
  urdma_qp_mgr qp_mgr (
    .clk(qp_mgr_clk), .rst(core_rst), .init_done(mgr_init_done), .busy(mgr_busy),
    .job_valid(mgr_job_valid), .job(job), .job_ready(mgr_job_ready),
    .cpl_valid(mgr_cpl_valid), .cpl(mgr_cpl), .cpl_ready(cpl_ready[1]),
    .fence_valid(mgr_fence_valid), .fence(mgr_fence),
    .fin_valid(fin_qp_valid), .fin_qpn(fin.obj[QPN_W-1:0]), .fin_ready(fin_qp_ready),
    .qp_err_valid(qp_err_valid), .qp_err(qp_err), .qp_err_ready(qp_err_ready),
    .ev_valid(mgr_ev_valid), .ev(mgr_ev), .ev_ready(mgr_ev_ready),
    .qpc_valid({ack_qpc_valid, rx_qpc_valid, tx_qpc_valid}), .qpc({ack_qpc, rx_qpc, tx_qpc}),
    .qpc_ready({ack_qpc_ready, rx_qpc_ready, tx_qpc_ready}), .qpc_rsp({ack_qpc_rsp, rx_qpc_rsp, tx_qpc_rsp}),
    .qpr_req_valid({qpr_req_valid, db_qpr_req_valid}), .qpr_req_qpn({qpr_req_qpn, db_qpr_req_qpn}),
    .qpr_req_ready({qpr_req_ready, db_qpr_req_ready}), .qpr_rsp_valid({qpr_rsp_valid, db_qpr_rsp_valid}),
    .qpr_rsp(qpr_rsp_any),
    .gid_idx(gid_idx), .gid(gid), .gid_wr_valid(gid_wr_valid), .gid_wr_idx(gid_wr_idx), .gid_wr(gid_wr)
  );

  logic mcast_cmd_clk;
  urdma_clk #(.PART(PART_CTL_MCAST)) clk_mcast_cmd (.clk, .part_clk(mcast_cmd_clk));
  urdma_mcast_cmd mcast_cmd (
    .clk(mcast_cmd_clk), .rst(core_rst), .busy(mcast_busy),
    .job_valid(job_valid), .job(job), .job_ready(job_ready), .mgr_job_valid(mgr_job_valid), .mgr_job_ready(mgr_job_ready),
    .gone_valid(mgr_fence_valid), .gone_qpn(mgr_fence.obj[QPN_W-1:0]), .any(mc_any),
    .mco_valid(mco_valid), .mco(mco), .mco_ready(mco_ready), .mco_status(mco_status),
    .cpl_valid(mc_cpl_valid), .cpl(mc_cpl), .cpl_ready(cpl_ready[1])
  );

  // only one of the two has a command at a time
  assign cpl_valid[1] = mgr_cpl_valid || mc_cpl_valid;
  assign cpl[1] = mc_cpl_valid ? mc_cpl : mgr_cpl;

  logic port_event_clk;
  urdma_clk #(.PART(PART_CTL_PORT_EVENT)) clk_port_event (.clk, .part_clk(port_event_clk));
  urdma_port_event port_event (
    .clk(port_event_clk), .rst(core_rst), .busy(port_busy), .link_up(link_up),
    .eq_set(eq_cfg_valid && eq_cfg_ready && eq_cfg_eqn == '0), .eq_exists(eq_cfg.valid),
    .ev_valid(port_ev_valid), .ev(port_ev), .ev_ready(port_ev_ready)
  );

  logic fence_clk;
  urdma_clk #(.PART(PART_CTL_FENCE)) clk_fence (.clk, .part_clk(fence_clk));
  urdma_cmd_fence fence (
    .clk(fence_clk), .rst(core_rst), .busy(fence_busy),
    .push_valid(mgr_fence_valid || cmd_fence_valid), .push(mgr_fence_valid ? mgr_fence : cmd_fence),
    .db_flush_req(db_flush_req), .db_flush_done(db_flush_done),
    .tx_fence_req(tx_fence_req), .tx_fence_done(tx_fence_done),
    .rx_fence_req(rx_fence_req), .rx_fence_done(rx_fence_done),
    .cq_fence_req(cq_fence_req), .cq_fence_done(cq_fence_done),
    .mr_flush_req(mr_flush_req), .mr_flush_done(mr_flush_done),
    .fin_qp_valid(fin_qp_valid), .fin_valid(fin_valid), .fin(fin),
    .fin_qp_ready(fin_qp_ready), .fin_ready(fin_ready),
    .trace_qp_end_valid, .trace_qp_end
  );

  logic completions_clk;
  urdma_clk #(.PART(PART_CTL_COMPLETIONS)) clk_completions (.clk, .part_clk(completions_clk));
  urdma_cmd_cpl completions (
    .clk(completions_clk), .rst(core_rst), .busy(cpl_busy),
    .base(cmdq_cpl_base), .log_size(cmdq_log_size),
    .cpl_valid(cpl_valid), .cpl(cpl), .cpl_ready(cpl_ready), .done(cpl_done),
    .wr_valid(wr_valid), .wr(wr), .wr_ready(wr_ready),
    .ev_valid(cmd_ev_valid), .ev(cmd_ev), .ev_ready(cmd_ev_ready),
    .cnt_ok(cnt_cmd_ok), .cnt_err(cnt_cmd_err), .trace_cmd_valid, .trace_cmd
  );

endmodule

`resetall
