// SPDX-License-Identifier: Apache-2.0
// The NIC: PCIe user interface (AMD PG213, 512 bit) on one side, a MAC's AXI-streams on the other.
//
// Blocks and the ports between them: docs/rtl-interfaces.md. One clock, 250 MHz, synchronous reset.
//
//  s_axis_cq, m_axis_cc   the host's requests to the NIC and the NIC's completions
//  m_axis_rq, s_axis_rc   the NIC's requests to the host and the host's completions
//  irq_*                  request for an MSI-X vector; it comes after all writes that RQ has accepted before
//  m_axis_tx, s_axis_rx   frames without FCS; receive cannot be stalled
//  idle                   the NIC has no work: nothing is in flight or pending
//  timer_armed, _cycles   the next timer, after which the NIC may act without any input
//  skip_*                 cycles that passed while the clock was stopped (tie to 0 in hardware). The clock may stop while no
//                         register but the cycle counter changes, until an input changes or until shortly before the timer
//                         expires
//  trace_*                lanes, see urdma_trace_pkg

`resetall
`default_nettype none

module urdma_top
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic               clk,
  input  wire logic               rst,

  // PCIe block: requests from the host, and completions to it
  input  wire logic [511:0]       s_axis_cq_tdata,
  input  wire logic [15:0]        s_axis_cq_tkeep,
  input  wire logic [182:0]       s_axis_cq_tuser,
  input  wire logic               s_axis_cq_tlast,
  input  wire logic               s_axis_cq_tvalid,
  output      logic               s_axis_cq_tready,
  output      logic [511:0]       m_axis_cc_tdata,
  output      logic [15:0]        m_axis_cc_tkeep,
  output      logic [80:0]        m_axis_cc_tuser,
  output      logic               m_axis_cc_tlast,
  output      logic               m_axis_cc_tvalid,
  input  wire logic               m_axis_cc_tready,

  // PCIe block: requests to the host, and completions from it
  output      logic [511:0]       m_axis_rq_tdata,
  output      logic [15:0]        m_axis_rq_tkeep,
  output      logic [136:0]       m_axis_rq_tuser,
  output      logic               m_axis_rq_tlast,
  output      logic               m_axis_rq_tvalid,
  input  wire logic               m_axis_rq_tready,
  input  wire logic [511:0]       s_axis_rc_tdata,
  input  wire logic [15:0]        s_axis_rc_tkeep,
  input  wire logic [160:0]       s_axis_rc_tuser,
  input  wire logic               s_axis_rc_tlast,
  input  wire logic               s_axis_rc_tvalid,
  output      logic               s_axis_rc_tready,

  // PCIe block: configuration and interrupts
  input  wire logic [2:0]         cfg_max_payload,
  input  wire logic [2:0]         cfg_max_read_req,
  input  wire logic               cfg_bus_master_en,
  output      logic               irq_valid,
  output      logic [VEC_W-1:0]   irq_vec,
  input  wire logic               irq_ready,

  // MAC
  output      logic [511:0]       m_axis_tx_tdata,
  output      logic [63:0]        m_axis_tx_tkeep,
  output      logic               m_axis_tx_tlast,
  output      logic               m_axis_tx_tuser,
  output      logic               m_axis_tx_tvalid,
  input  wire logic               m_axis_tx_tready,
  input  wire logic [511:0]       s_axis_rx_tdata,
  input  wire logic [63:0]        s_axis_rx_tkeep,
  input  wire logic               s_axis_rx_tlast,
  input  wire logic               s_axis_rx_tuser,
  input  wire logic               s_axis_rx_tvalid,
  input  wire logic [47:0]        mac_default,
  input  wire logic               link_up,

  // time
  output      logic               idle,
  output      logic               timer_armed,
  output      logic [31:0]        timer_cycles,
  input  wire logic               skip_valid,
  input  wire logic [63:0]        skip_cycles,

  output      logic [TRACE_N-1:0] trace_valid,
  output      trace_lane_t        trace_lane [TRACE_N]
);

  // ---- lanes --------------------------------------------------------------------------------------------------------------
  tr_sq_db_t trace_sq_db;
  tr_rq_db_t trace_rq_db;
  tr_cq_db_t trace_cq_db;
  tr_turn_t trace_turn;
  tr_wqe_t trace_wqe;
  tr_pkt_t trace_pkt;
  tr_full_t trace_full;
  tr_ans_t trace_ans;
  tr_out_t trace_out;
  tr_acked_t trace_acked;
  tr_in_t trace_in;
  tr_rsp_t trace_rsp;
  tr_req_t trace_req;
  tr_put_t trace_put;
  tr_cqe_t trace_cqe;
  tr_eqe_t trace_eqe;
  tr_cmd_t trace_cmd;
  tr_xlat_t trace_xlat;
  tr_bad_t trace_bad;
  tr_eth_in_t trace_eth_in;
  tr_eth_buf_t trace_eth_buf;
  tr_voided_t trace_voided;
  tr_ask_t trace_ask;
  tr_mute_t trace_mute;
  tr_loss_t trace_loss;
  tr_qp_end_t trace_qp_end;

  assign trace_lane[TRACE_SQ_DB] = TRACE_W'(trace_sq_db);
  assign trace_lane[TRACE_RQ_DB] = TRACE_W'(trace_rq_db);
  assign trace_lane[TRACE_CQ_DB] = TRACE_W'(trace_cq_db);
  assign trace_lane[TRACE_TURN] = TRACE_W'(trace_turn);
  assign trace_lane[TRACE_WQE] = TRACE_W'(trace_wqe);
  assign trace_lane[TRACE_PKT] = TRACE_W'(trace_pkt);
  assign trace_lane[TRACE_FULL] = TRACE_W'(trace_full);
  assign trace_lane[TRACE_ANS] = TRACE_W'(trace_ans);
  assign trace_lane[TRACE_OUT] = TRACE_W'(trace_out);
  assign trace_lane[TRACE_ACKED] = TRACE_W'(trace_acked);
  assign trace_lane[TRACE_IN] = TRACE_W'(trace_in);
  assign trace_lane[TRACE_RSP] = TRACE_W'(trace_rsp);
  assign trace_lane[TRACE_REQ] = TRACE_W'(trace_req);
  assign trace_lane[TRACE_PUT] = TRACE_W'(trace_put);
  assign trace_lane[TRACE_CQE] = TRACE_W'(trace_cqe);
  assign trace_lane[TRACE_EQE] = TRACE_W'(trace_eqe);
  assign trace_lane[TRACE_CMD] = TRACE_W'(trace_cmd);
  assign trace_lane[TRACE_XLAT] = TRACE_W'(trace_xlat);
  assign trace_lane[TRACE_BAD] = TRACE_W'(trace_bad);
  assign trace_lane[TRACE_ETH_IN] = TRACE_W'(trace_eth_in);
  assign trace_lane[TRACE_ETH_BUF] = TRACE_W'(trace_eth_buf);
  assign trace_lane[TRACE_VOIDED] = TRACE_W'(trace_voided);
  assign trace_lane[TRACE_ASK] = TRACE_W'(trace_ask);
  assign trace_lane[TRACE_MUTE] = TRACE_W'(trace_mute);
  assign trace_lane[TRACE_LOSS] = TRACE_W'(trace_loss);
  assign trace_lane[TRACE_QP_END] = TRACE_W'(trace_qp_end);

  // ---- reset ------------------------------------------------------------------------------------------------------------
  // A software reset first stops the DMA engine from taking new requests. When the write request under way has ended, the
  // blocks are reset. urdma_ctl holds core_rst until the engine is idle.
  logic core_rst, wr_open, block_rst, reset_clk;

  urdma_clk #(.PART(PART_RESET)) clk_reset (.clk, .part_clk(reset_clk));
  urdma_reset reset (.clk(reset_clk), .req(rst || (core_rst && !wr_open)), .block_rst);

  // ---- PCIe ---------------------------------------------------------------------------------------------------------------
  logic reg_req_valid, reg_req_ready, reg_rsp_valid;
  reg_req_t reg_req;
  logic [63:0] reg_rsp_data;
  logic pcie_db_valid, pcie_db_ready;
  db_t pcie_db;
  logic [RD_N-1:0] rd_req_valid, rd_req_ready, rd_rsp_valid;
  dma_rd_req_t [RD_N-1:0] rd_req;
  dma_rd_rsp_t rd_rsp;
  logic [WR_N-1:0] wr_valid, wr_ready;
  dma_wr_t [WR_N-1:0] wr;
  logic irq_req_valid, irq_req_ready, eq_irq_valid, eq_irq_ready, eth_irq_valid, eth_irq_ready, irq_busy;
  logic [VEC_W-1:0] irq_req_vec, eq_irq_vec, eth_irq_vec;
  logic pcie_busy, dma_busy, pcie_timer_armed;
  logic [31:0] pcie_timer_cycles;
  logic [63:0] cycles;
  logic [URDMA_CNT_N-1:0] pcie_cnt;
  logic cnt_rd_tlp, cnt_wr_tlp, cnt_cpl_err, cnt_cpl_timeout, cnt_cpl_unexpected, cnt_db_bad, cnt_mmio_bad, cnt_dma_drop;

  urdma_pcie pcie (
    .clk, .rst,
    .s_axis_cq_tdata, .s_axis_cq_tkeep, .s_axis_cq_tuser, .s_axis_cq_tlast, .s_axis_cq_tvalid, .s_axis_cq_tready,
    .m_axis_cc_tdata, .m_axis_cc_tkeep, .m_axis_cc_tuser, .m_axis_cc_tlast, .m_axis_cc_tvalid, .m_axis_cc_tready,
    .m_axis_rq_tdata, .m_axis_rq_tkeep, .m_axis_rq_tuser, .m_axis_rq_tlast, .m_axis_rq_tvalid, .m_axis_rq_tready,
    .s_axis_rc_tdata, .s_axis_rc_tkeep, .s_axis_rc_tuser, .s_axis_rc_tlast, .s_axis_rc_tvalid, .s_axis_rc_tready,
    .cfg_max_payload, .cfg_max_read_req, .cfg_bus_master_en,
    .irq_valid, .irq_vec, .irq_ready,
    .reg_req_valid, .reg_req, .reg_req_ready, .reg_rsp_valid, .reg_rsp_data,
    .db_valid(pcie_db_valid), .db(pcie_db), .db_ready(pcie_db_ready),
    .stop(core_rst), .wr_open,
    .rd_req_valid, .rd_req, .rd_req_ready, .rd_rsp_valid, .rd_rsp,
    .wr_valid, .wr, .wr_ready,
    .irq_req_valid, .irq_req_vec, .irq_req_ready,
    .cycles(cycles[31:0]), .timer_armed(pcie_timer_armed), .timer_cycles(pcie_timer_cycles), .busy(pcie_busy), .dma_busy,
    .cnt_rd_tlp, .cnt_wr_tlp, .cnt_dma_drop, .cnt_cpl_err, .cnt_cpl_timeout, .cnt_cpl_unexpected, .cnt_db_bad, .cnt_mmio_bad
  );

  always_comb begin
    pcie_cnt = '0;
    pcie_cnt[URDMA_CNT_RD_TLP] = cnt_rd_tlp;
    pcie_cnt[URDMA_CNT_WR_TLP] = cnt_wr_tlp;
    pcie_cnt[URDMA_CNT_CPL_ERR] = cnt_cpl_err;
    pcie_cnt[URDMA_CNT_CPL_TIMEOUT] = cnt_cpl_timeout;
    pcie_cnt[URDMA_CNT_CPL_UNEXPECTED] = cnt_cpl_unexpected;
    pcie_cnt[URDMA_CNT_DB_BAD] = cnt_db_bad;
    pcie_cnt[URDMA_CNT_MMIO_BAD] = cnt_mmio_bad;
    pcie_cnt[URDMA_CNT_DMA_DROP] = cnt_dma_drop;
  end

  // ---- control ---------------------------------------------------------------------------------------------------------------
  logic sq_db_valid, sq_db_ready, rq_db_valid, rq_db_ready, cq_db_valid, cq_db_ready, eq_db_valid, eq_db_ready;
  wq_db_t sq_db, rq_db;
  cq_db_t cq_db;
  eq_db_t eq_db;
  logic tx_qpc_valid, tx_qpc_ready, rx_qpc_valid, rx_qpc_ready, ack_qpc_valid, ack_qpc_ready;
  qpc_t tx_qpc, rx_qpc, ack_qpc;
  qpc_rsp_t tx_qpc_rsp, rx_qpc_rsp, ack_qpc_rsp;
  logic [MROC_N-1:0] mro_valid, mro_ready, mro_rsp_valid;
  mr_op_t [MROC_N-1:0] mro;
  mro_status_e mro_rsp;
  logic mr_flush_req, mr_flush_done;
  logic cq_cfg_valid, cq_cfg_ready, eq_cfg_valid, eq_cfg_ready;
  logic [CQN_W-1:0] cq_cfg_cqn;
  cq_cfg_t cq_cfg;
  cq_cfg_op_e cq_cfg_op;
  logic [31:0] cq_cfg_ci;
  cq_resized_t cq_resized;
  logic [EQN_W-1:0] eq_cfg_eqn;
  eq_cfg_t eq_cfg;
  logic tx_fence_req, tx_fence_done, rx_fence_req, rx_fence_done, cq_fence_req, cq_fence_done;
  logic [QPR_N-2:0] qpr_req_valid, qpr_req_ready, qpr_rsp_valid;
  logic [QPR_N-2:0][QPN_W-1:0] qpr_req_qpn;
  qp_cfg_t [QPR_N-2:0] qpr_rsp;
  logic [2:0][GID_W-1:0] gid_idx;
  gid_t [2:0] gid;
  logic gid_wr_valid;
  logic [GID_W-1:0] gid_wr_idx;
  gid_t gid_wr;
  logic mco_valid, mco_ready, mc_any;
  mc_op_t mco;
  mc_status_e mco_status;
  logic sro_valid, sro_ready, srq_db_valid, srq_db_ready;
  srq_op_t sro;
  srq_ans_t sro_ans;
  srq_db_t srq_db;
  logic qco_valid, qco_ready, qc_rx_valid, qc_resp_valid, qc_tx_valid, qc_req_valid;
  qc_op_t qco;
  qc_ans_t qco_ans;
  qc_rx_t qc_rx;
  qc_resp_t qc_resp;
  qc_tx_t qc_tx;
  qc_req_t qc_req;
  logic eth_reg_valid, eth_db_valid;
  logic [63:0] eth_reg_rdata;
  eth_db_t eth_db;
  logic [QPE_N-1:0] qp_err_valid, qp_err_ready;
  qp_err_t [QPE_N-1:0] qp_err;
  logic [EQC_N-1:0] ev_valid, ev_ready;
  eqe_req_t [EQC_N-1:0] ev;
  logic [47:0] own_mac;
  logic ctl_busy, eq0_lost, blocks_init_done;
  logic [6:0] tx_bytes, rx_bytes;
  logic [URDMA_CNT_N-1:0] tx_cnt, rx_cnt, mr_cnt, cq_cnt, eq_cnt, eth_cnt, mux_cnt, irq_cnt;
  logic tx_busy, rx_busy, mr_busy, cq_busy, eq_busy, eth_busy, qp_cnt_busy;
  logic tx_init_done, rx_init_done, mr_init_done, cq_init_done, eq_init_done, eth_init_done, qp_cnt_init_done;

  assign blocks_init_done = tx_init_done && rx_init_done && mr_init_done && cq_init_done && eq_init_done
                            && eth_init_done && qp_cnt_init_done && !block_rst;

  urdma_ctl ctl (
    .clk, .rst, .core_rst, .dma_busy, .blocks_init_done, .busy(ctl_busy),
    .reg_req_valid, .reg_req, .reg_req_ready, .reg_rsp_valid, .reg_rsp_data, .eth_reg_valid, .eth_reg_rdata,
    .pcie_db_valid, .pcie_db, .pcie_db_ready, .eth_db_valid, .eth_db,
    .sq_db_valid, .sq_db, .sq_db_ready, .rq_db_valid, .rq_db, .rq_db_ready,
    .srq_db_valid, .srq_db, .srq_db_ready, .sro_valid, .sro, .sro_ready, .sro_ans,
    .qco_valid, .qco, .qco_ready, .qco_ans, .cq_db_valid, .cq_db, .cq_db_ready, .eq_db_valid, .eq_db, .eq_db_ready,
    .tx_qpc_valid, .tx_qpc, .tx_qpc_ready, .tx_qpc_rsp,
    .rx_qpc_valid, .rx_qpc, .rx_qpc_ready, .rx_qpc_rsp,
    .ack_qpc_valid, .ack_qpc, .ack_qpc_ready, .ack_qpc_rsp,
    .mro_valid(mro_valid[MROC_CTL]), .mro(mro[MROC_CTL]), .mro_ready(mro_ready[MROC_CTL]),
    .mro_rsp_valid(mro_rsp_valid[MROC_CTL]), .mro_rsp, .mr_flush_req, .mr_flush_done,
    .cq_cfg_valid, .cq_cfg_cqn, .cq_cfg, .cq_cfg_op, .cq_cfg_ci, .cq_cfg_ready, .cq_resized,
    .eq_cfg_valid, .eq_cfg_eqn, .eq_cfg, .eq_cfg_ready,
    .tx_fence_req, .tx_fence_done, .rx_fence_req, .rx_fence_done, .cq_fence_req, .cq_fence_done,
    .qpr_req_valid, .qpr_req_qpn, .qpr_req_ready, .qpr_rsp_valid, .qpr_rsp,
    .gid_idx, .gid, .gid_wr_valid, .gid_wr_idx, .gid_wr, .mco_valid, .mco, .mco_ready, .mco_status, .mc_any,
    .qp_err_valid, .qp_err, .qp_err_ready,
    .mgr_ev_valid(ev_valid[EQC_MGR]), .mgr_ev(ev[EQC_MGR]), .mgr_ev_ready(ev_ready[EQC_MGR]),
    .cmd_ev_valid(ev_valid[EQC_CMD]), .cmd_ev(ev[EQC_CMD]), .cmd_ev_ready(ev_ready[EQC_CMD]),
    .port_ev_valid(ev_valid[EQC_PORT]), .port_ev(ev[EQC_PORT]), .port_ev_ready(ev_ready[EQC_PORT]),
    .rd_req_valid(rd_req_valid[RD_CMD]), .rd_req(rd_req[RD_CMD]), .rd_req_ready(rd_req_ready[RD_CMD]),
    .rd_rsp_valid(rd_rsp_valid[RD_CMD]), .rd_rsp,
    .wr_valid(wr_valid[WR_CMD]), .wr(wr[WR_CMD]), .wr_ready(wr_ready[WR_CMD]),
    .cnt(pcie_cnt | tx_cnt | rx_cnt | mr_cnt | cq_cnt | eq_cnt | eth_cnt | mux_cnt | irq_cnt), .tx_bytes, .rx_bytes, .eq0_lost,
    .mac_default, .mac(own_mac), .link_up, .skip_valid, .skip_cycles, .cycles,
    .trace_sq_db_valid(trace_valid[TRACE_SQ_DB]), .trace_sq_db, .trace_rq_db_valid(trace_valid[TRACE_RQ_DB]), .trace_rq_db,
    .trace_cmd_valid(trace_valid[TRACE_CMD]), .trace_cmd, .trace_qp_end_valid(trace_valid[TRACE_QP_END]), .trace_qp_end
  );

  // ---- translation ---------------------------------------------------------------------------------------------------------------
  logic [MRC_N-1:0] mr_req_valid, mr_req_ready, mr_rsp_valid, mr_rsp_ready;
  mr_req_t [MRC_N-1:0] mr_req;
  mr_rsp_t [MRC_N-1:0] mr_rsp;

  logic mr_clk;
  urdma_clk #(.PART(PART_MR)) clk_mr (.clk, .part_clk(mr_clk));
  urdma_mr mr (
    .clk(mr_clk), .rst(block_rst), .init_done(mr_init_done), .busy(mr_busy),
    .mro_valid, .mro, .mro_ready, .mro_rsp_valid, .mro_rsp,
    .flush_req(mr_flush_req), .flush_done(mr_flush_done),
    .req_valid(mr_req_valid), .req(mr_req), .req_ready(mr_req_ready),
    .rsp_valid(mr_rsp_valid), .rsp(mr_rsp), .rsp_ready(mr_rsp_ready),
    .rd_req_valid(rd_req_valid[RD_MTT2:RD_MTT1]), .rd_req(rd_req[RD_MTT2:RD_MTT1]),
    .rd_req_ready(rd_req_ready[RD_MTT2:RD_MTT1]), .rd_rsp_valid(rd_rsp_valid[RD_MTT2:RD_MTT1]), .rd_rsp,
    .cnt(mr_cnt), .trace_xlat_valid(trace_valid[TRACE_XLAT]), .trace_xlat
  );

  // ---- completions and events ------------------------------------------------------------------------------------------------------
  logic [CQC_N-1:0] cqe_valid, cqe_ready;
  cqe_req_t [CQC_N-1:0] cqe;

  logic cq_timer_armed;
  logic [31:0] cq_timer_cycles;
  logic cq_clk;
  urdma_clk #(.PART(PART_CQ)) clk_cq (.clk, .part_clk(cq_clk));
  urdma_cq cq (
    .clk(cq_clk), .rst(block_rst), .init_done(cq_init_done), .busy(cq_busy),
    .cfg_valid(cq_cfg_valid), .cfg_cqn(cq_cfg_cqn), .cfg(cq_cfg), .cfg_op(cq_cfg_op), .cfg_ci(cq_cfg_ci),
    .cfg_ready(cq_cfg_ready), .resized(cq_resized),
    .db_valid(cq_db_valid), .db(cq_db), .db_ready(cq_db_ready),
    .fence_req(cq_fence_req), .fence_done(cq_fence_done),
    .cqe_valid, .cqe, .cqe_ready,
    .mr_req_valid(mr_req_valid[MRC_CQ]), .mr_req(mr_req[MRC_CQ]), .mr_req_ready(mr_req_ready[MRC_CQ]),
    .mr_rsp_valid(mr_rsp_valid[MRC_CQ]), .mr_rsp(mr_rsp[MRC_CQ]), .mr_rsp_ready(mr_rsp_ready[MRC_CQ]),
    .wr_valid(wr_valid[WR_CQ]), .wr(wr[WR_CQ]), .wr_ready(wr_ready[WR_CQ]),
    .ev_valid(ev_valid[EQC_CQ]), .ev(ev[EQC_CQ]), .ev_ready(ev_ready[EQC_CQ]),
    .err_valid(qp_err_valid[QPE_CQ]), .err(qp_err[QPE_CQ]), .err_ready(qp_err_ready[QPE_CQ]),
    .cycles, .timer_armed(cq_timer_armed), .timer_cycles(cq_timer_cycles), .cnt(cq_cnt),
    .trace_cq_db_valid(trace_valid[TRACE_CQ_DB]), .trace_cq_db, .trace_cqe_valid(trace_valid[TRACE_CQE]), .trace_cqe
  );

  logic eq_clk;
  urdma_clk #(.PART(PART_EQ)) clk_eq (.clk, .part_clk(eq_clk));
  urdma_eq eq (
    .clk(eq_clk), .rst(block_rst), .init_done(eq_init_done), .busy(eq_busy),
    .cfg_valid(eq_cfg_valid), .cfg_eqn(eq_cfg_eqn), .cfg(eq_cfg), .cfg_ready(eq_cfg_ready),
    .db_valid(eq_db_valid), .db(eq_db), .db_ready(eq_db_ready),
    .ev_valid, .ev, .ev_ready,
    .wr_valid(wr_valid[WR_EQ]), .wr(wr[WR_EQ]), .wr_ready(wr_ready[WR_EQ]),
    .irq_valid(eq_irq_valid), .irq_vec(eq_irq_vec), .irq_ready(eq_irq_ready),
    .eq0_lost, .cycles, .cnt(eq_cnt), .trace_eqe_valid(trace_valid[TRACE_EQE]), .trace_eqe
  );

  logic irq_mux_clk;
  urdma_clk #(.PART(PART_IRQ_MUX)) clk_irq_mux (.clk, .part_clk(irq_mux_clk));
  urdma_irq_mux irq_mux (
    .clk(irq_mux_clk), .rst(block_rst), .busy(irq_busy),
    .in_valid({eth_irq_valid, eq_irq_valid}), .in_vec({eth_irq_vec, eq_irq_vec}), .in_ready({eth_irq_ready, eq_irq_ready}),
    .irq_valid(irq_req_valid), .irq_vec(irq_req_vec), .irq_ready(irq_req_ready), .cnt(irq_cnt)
  );

  // ---- transport ---------------------------------------------------------------------------------------------------------------------
  logic sent_valid, sent_ready, made_valid, made_ready, acked_valid, acked_ready, ack_req_valid, ack_req_ready;
  sent_t sent;
  made_t made;
  acked_t acked;
  ack_req_t ack_req;
  mac_beat_t [1:0] tx_beat;       // 0: RDMA, 1: Ethernet
  logic [1:0] tx_beat_valid, tx_beat_ready;
  mac_beat_t mux_beat, out_beat, mac_tx, mac_rx, rx_beat;
  logic mux_valid, mux_eth, mux_ready, out_valid, out_ready, rx_beat_valid, rx_beat_home, tx_beat_loop, mac_tx_busy, loop_busy;
  logic class_valid, class_rdma, rx_half_full, eth_loopback, rx_loop_room, eth_loop_room;
  logic rx_timer_armed, eth_timer_armed;
  logic [31:0] rx_timer_cycles, eth_timer_cycles;
  logic sync_req, sync_done, inv_valid, reads_over;
  logic [31:0] inv_key;

  logic tx_clk;
  urdma_clk #(.PART(PART_TX)) clk_tx (.clk, .part_clk(tx_clk));
  urdma_tx tx (
    .clk(tx_clk), .rst(block_rst), .init_done(tx_init_done), .busy(tx_busy),
    .sq_db_valid, .sq_db, .sq_db_ready,
    .qpc_valid(tx_qpc_valid), .qpc(tx_qpc), .qpc_ready(tx_qpc_ready), .qpc_rsp(tx_qpc_rsp),
    .fence_req(tx_fence_req), .fence_done(tx_fence_done),
    .qpr_req_valid(qpr_req_valid[QPR_TX-1]), .qpr_req_qpn(qpr_req_qpn[QPR_TX-1]),
    .qpr_req_ready(qpr_req_ready[QPR_TX-1]), .qpr_rsp_valid(qpr_rsp_valid[QPR_TX-1]), .qpr_rsp(qpr_rsp[QPR_TX-1]),
    .gid_idx(gid_idx[0]), .gid(gid[0]),
    .err_valid(qp_err_valid[QPE_TX]), .err(qp_err[QPE_TX]), .err_ready(qp_err_ready[QPE_TX]),
    .mro_valid(mro_valid[MROC_TX]), .mro(mro[MROC_TX]), .mro_ready(mro_ready[MROC_TX]),
    .mro_rsp_valid(mro_rsp_valid[MROC_TX]), .mro_rsp, .sync_req, .sync_done,
    .inv_valid, .inv_key, .reads_over,
    .sent_valid, .sent, .sent_ready, .made_valid, .made, .made_ready, .acked_valid, .acked, .acked_ready,
    .ack_req_valid, .ack_req, .ack_req_ready,
    .mr_req_valid({mr_req_valid[MRC_SQ], mr_req_valid[MRC_TX]}), .mr_req({mr_req[MRC_SQ], mr_req[MRC_TX]}),
    .mr_req_ready({mr_req_ready[MRC_SQ], mr_req_ready[MRC_TX]}),
    .mr_rsp_valid({mr_rsp_valid[MRC_SQ], mr_rsp_valid[MRC_TX]}), .mr_rsp({mr_rsp[MRC_SQ], mr_rsp[MRC_TX]}),
    .mr_rsp_ready({mr_rsp_ready[MRC_SQ], mr_rsp_ready[MRC_TX]}),
    .rd_req_valid({rd_req_valid[RD_SQ], rd_req_valid[RD_PAY]}), .rd_req({rd_req[RD_SQ], rd_req[RD_PAY]}),
    .rd_req_ready({rd_req_ready[RD_SQ], rd_req_ready[RD_PAY]}),
    .rd_rsp_valid({rd_rsp_valid[RD_SQ], rd_rsp_valid[RD_PAY]}), .rd_rsp,
    .mac_valid(tx_beat_valid[0]), .mac(tx_beat[0]), .mac_loop(tx_beat_loop), .mac_ready(tx_beat_ready[0]),
    .cnt(tx_cnt), .qc_tx_valid, .qc_tx,
    .trace_turn_valid(trace_valid[TRACE_TURN]), .trace_turn, .trace_wqe_valid(trace_valid[TRACE_WQE]), .trace_wqe,
    .trace_pkt_valid(trace_valid[TRACE_PKT]), .trace_pkt, .trace_full_valid(trace_valid[TRACE_FULL]), .trace_full,
    .trace_ans_valid(trace_valid[TRACE_ANS]), .trace_ans, .trace_out_valid(trace_valid[TRACE_OUT]), .trace_out,
    .trace_ask_valid(trace_valid[TRACE_ASK]), .trace_ask
  );

  logic frame_mux_clk;
  urdma_clk #(.PART(PART_FRAME_MUX)) clk_frame_mux (.clk, .part_clk(frame_mux_clk));
  urdma_frame_mux frame_mux (
    .clk(frame_mux_clk), .rst(block_rst), .in_valid(tx_beat_valid), .in(tx_beat), .in_ready(tx_beat_ready),
    .out_valid(mux_valid), .out_eth(mux_eth), .out(mux_beat), .out_ready(mux_ready), .cnt(mux_cnt), .bytes(tx_bytes)
  );

  logic loopback_clk;
  urdma_clk #(.PART(PART_LOOPBACK)) clk_loopback (.clk, .part_clk(loopback_clk));
  urdma_loopback loopback (
    .clk(loopback_clk), .rst(block_rst), .busy(loop_busy), .own_mac,
    .tx_valid(mux_valid), .tx_eth(mux_eth), .tx_home(mux_eth && eth_loopback), .tx_copy(!mux_eth && tx_beat_loop && mc_any),
    .tx(mux_beat), .tx_ready(mux_ready),
    .room({eth_loop_room, rx_loop_room}),
    .out_valid, .out(out_beat), .out_ready,
    .mac_valid(s_axis_rx_tvalid), .mac_in(mac_rx), .rx_valid(rx_beat_valid), .rx(rx_beat), .rx_home(rx_beat_home)
  );

  logic mac_out_clk;
  urdma_clk #(.PART(PART_MAC_OUT)) clk_mac_out (.clk, .part_clk(mac_out_clk));
  urdma_mac_tx mac_out (
    .clk(mac_out_clk), .rst, .busy(mac_tx_busy), .cut(block_rst),
    .in_valid(out_valid), .in(out_beat), .in_ready(out_ready),
    .mac_valid(m_axis_tx_tvalid), .mac(mac_tx), .mac_ready(m_axis_tx_tready)
  );

  logic rx_clk;
  urdma_clk #(.PART(PART_RX)) clk_rx (.clk, .part_clk(rx_clk));
  urdma_rx rx (
    .clk(rx_clk), .rst(block_rst), .init_done(rx_init_done), .busy(rx_busy),
    .mac_valid(rx_beat_valid), .mac(rx_beat), .mac_home(rx_beat_home), .class_valid, .class_rdma, .half_full(rx_half_full),
    .loop_room(rx_loop_room), .gid_wr_valid, .gid_wr_idx, .gid_wr, .mco_valid, .mco, .mco_ready, .mco_status, .mc_any,
    .rq_db_valid, .rq_db, .rq_db_ready, .sro_valid, .sro, .sro_ready, .sro_ans, .srq_db_valid, .srq_db, .srq_db_ready,
    .srq_ev_valid(ev_valid[EQC_SRQ]), .srq_ev(ev[EQC_SRQ]), .srq_ev_ready(ev_ready[EQC_SRQ]),
    .qpc_valid(rx_qpc_valid), .qpc(rx_qpc), .qpc_ready(rx_qpc_ready), .qpc_rsp(rx_qpc_rsp),
    .aqc_valid(ack_qpc_valid), .aqc(ack_qpc), .aqc_ready(ack_qpc_ready), .aqc_rsp(ack_qpc_rsp),
    .fence_req(rx_fence_req), .fence_done(rx_fence_done),
    .qpr_req_valid(qpr_req_valid[QPR_ACK-1:QPR_RX-1]), .qpr_req_qpn(qpr_req_qpn[QPR_ACK-1:QPR_RX-1]),
    .qpr_req_ready(qpr_req_ready[QPR_ACK-1:QPR_RX-1]), .qpr_rsp_valid(qpr_rsp_valid[QPR_ACK-1:QPR_RX-1]),
    .qpr_rsp(qpr_rsp[QPR_ACK-1:QPR_RX-1]),
    .gid_idx(gid_idx[2:1]), .gid(gid[2:1]),
    .mro_valid(mro_valid[MROC_RX]), .mro(mro[MROC_RX]), .mro_ready(mro_ready[MROC_RX]),
    .mro_rsp_valid(mro_rsp_valid[MROC_RX]), .mro_rsp, .sync_req, .sync_done,
    .inv_valid, .inv_key, .reads_over,
    .cycles, .timer_armed(rx_timer_armed), .timer_cycles(rx_timer_cycles),
    .sent_valid, .sent, .sent_ready, .made_valid, .made, .made_ready, .acked_valid, .acked, .acked_ready,
    .ack_req_valid, .ack_req, .ack_req_ready,
    .mr_req_valid({mr_req_valid[MRC_RQ], mr_req_valid[MRC_RX]}), .mr_req({mr_req[MRC_RQ], mr_req[MRC_RX]}),
    .mr_req_ready({mr_req_ready[MRC_RQ], mr_req_ready[MRC_RX]}),
    .mr_rsp_valid({mr_rsp_valid[MRC_RQ], mr_rsp_valid[MRC_RX]}), .mr_rsp({mr_rsp[MRC_RQ], mr_rsp[MRC_RX]}),
    .mr_rsp_ready({mr_rsp_ready[MRC_RQ], mr_rsp_ready[MRC_RX]}),
    .rd_req_valid({rd_req_valid[RD_ATM], rd_req_valid[RD_RQ]}), .rd_req({rd_req[RD_ATM], rd_req[RD_RQ]}),
    .rd_req_ready({rd_req_ready[RD_ATM], rd_req_ready[RD_RQ]}),
    .rd_rsp_valid({rd_rsp_valid[RD_ATM], rd_rsp_valid[RD_RQ]}), .rd_rsp,
    .wr_valid({wr_valid[WR_ATM], wr_valid[WR_PAY]}), .wr({wr[WR_ATM], wr[WR_PAY]}),
    .wr_ready({wr_ready[WR_ATM], wr_ready[WR_PAY]}),
    .cqe_valid, .cqe, .cqe_ready,
    .err_valid(qp_err_valid[QPE_ACK:QPE_RX]), .err(qp_err[QPE_ACK:QPE_RX]), .err_ready(qp_err_ready[QPE_ACK:QPE_RX]),
    .cnt(rx_cnt), .rx_bytes, .qc_rx_valid, .qc_rx, .qc_resp_valid, .qc_resp, .qc_req_valid, .qc_req,
    .trace_acked_valid(trace_valid[TRACE_ACKED]), .trace_acked, .trace_in_valid(trace_valid[TRACE_IN]), .trace_in,
    .trace_rsp_valid(trace_valid[TRACE_RSP]), .trace_rsp, .trace_req_valid(trace_valid[TRACE_REQ]), .trace_req,
    .trace_put_valid(trace_valid[TRACE_PUT]), .trace_put, .trace_bad_valid(trace_valid[TRACE_BAD]), .trace_bad,
    .trace_voided_valid(trace_valid[TRACE_VOIDED]), .trace_voided, .trace_mute_valid(trace_valid[TRACE_MUTE]), .trace_mute,
    .trace_loss_valid(trace_valid[TRACE_LOSS]), .trace_loss
  );

  logic qp_cnt_clk;
  urdma_clk #(.PART(PART_QP_CNT)) clk_qp_cnt (.clk, .part_clk(qp_cnt_clk));
  urdma_qp_cnt qp_cnt (
    .clk(qp_cnt_clk), .rst(block_rst), .init_done(qp_cnt_init_done), .busy(qp_cnt_busy),
    .op_valid(qco_valid), .op(qco), .op_ready(qco_ready), .op_ans(qco_ans),
    .rx_valid(qc_rx_valid), .rx(qc_rx), .resp_valid(qc_resp_valid), .resp(qc_resp),
    .tx_valid(qc_tx_valid), .tx(qc_tx), .req_valid(qc_req_valid), .req(qc_req)
  );

  urdma_eth eth (
    .clk, .rst(block_rst), .init_done(eth_init_done), .busy(eth_busy),
    .reg_valid(eth_reg_valid), .reg_req, .reg_rdata(eth_reg_rdata), .db_valid(eth_db_valid), .db(eth_db),
    .mac(own_mac), .loopback(eth_loopback), .cycles, .timer_armed(eth_timer_armed), .timer_cycles(eth_timer_cycles),
    .tx_valid(tx_beat_valid[1]), .tx(tx_beat[1]), .tx_ready(tx_beat_ready[1]),
    .rx_valid(rx_beat_valid), .rx(rx_beat), .class_valid, .class_rdma, .rdma_first(rx_half_full), .loop_room(eth_loop_room),
    .rd_req_valid(rd_req_valid[RD_ERD:RD_ETD]), .rd_req(rd_req[RD_ERD:RD_ETD]), .rd_req_ready(rd_req_ready[RD_ERD:RD_ETD]),
    .rd_rsp_valid(rd_rsp_valid[RD_ERD:RD_ETD]), .rd_rsp,
    .wr_valid(wr_valid[WR_ECQ:WR_ERX]), .wr(wr[WR_ECQ:WR_ERX]), .wr_ready(wr_ready[WR_ECQ:WR_ERX]),
    .irq_valid(eth_irq_valid), .irq_vec(eth_irq_vec), .irq_ready(eth_irq_ready), .cnt(eth_cnt),
    .trace_eth_in_valid(trace_valid[TRACE_ETH_IN]), .trace_eth_in,
    .trace_eth_buf_valid(trace_valid[TRACE_ETH_BUF]), .trace_eth_buf
  );

  assign m_axis_tx_tdata = mac_tx.data;
  assign m_axis_tx_tkeep = mac_tx.keep;
  assign m_axis_tx_tlast = mac_tx.last;
  assign m_axis_tx_tuser = mac_tx.err;
  assign mac_rx.data = s_axis_rx_tdata;
  assign mac_rx.keep = s_axis_rx_tkeep;
  assign mac_rx.last = s_axis_rx_tlast;
  assign mac_rx.err = s_axis_rx_tuser;

  // ---- time -------------------------------------------------------------------------------------------------------------
  // An armed timer keeps no block busy: if the clock is stopped, it must restart in time for the next timer.
  always_comb begin
    timer_armed = rx_timer_armed || cq_timer_armed || eth_timer_armed || pcie_timer_armed;
    timer_cycles = '1;
    if (rx_timer_armed) timer_cycles = rx_timer_cycles;
    if (cq_timer_armed && cq_timer_cycles < timer_cycles) timer_cycles = cq_timer_cycles;
    if (eth_timer_armed && eth_timer_cycles < timer_cycles) timer_cycles = eth_timer_cycles;
    if (pcie_timer_armed && pcie_timer_cycles < timer_cycles) timer_cycles = pcie_timer_cycles;
  end

  assign idle = !(pcie_busy || ctl_busy || mr_busy || cq_busy || eq_busy || eth_busy || irq_busy || tx_busy || rx_busy || qp_cnt_busy || mac_tx_busy
                  || loop_busy || block_rst
                  || s_axis_cq_tvalid || s_axis_rc_tvalid || s_axis_rx_tvalid);

endmodule

`resetall
