// SPDX-License-Identifier: Apache-2.0
// urdma_rx with a port for each field, and with a QP configuration and a GID table that the test writes. A
// configuration is answered CFG_LATENCY cycles after its request.

`resetall
`default_nettype none

module rx_test_top
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
#(
  parameter int CFG_LATENCY = 4
) (
  input  wire logic         clk,
  input  wire logic         rst,
  output      logic         init_done,
  output      logic         busy,

  input  wire logic         mac_valid,
  input  wire logic [511:0] mac_data,
  input  wire logic [63:0]  mac_keep,
  input  wire logic         mac_last,
  input  wire logic         mac_err,
  input  wire logic         mac_home,

  input  wire logic         mco_valid,
  input  wire logic [1:0]   mco_kind,
  input  wire logic [11:0]  mco_qpn,
  input  wire logic [127:0] mco_gid,
  output      logic         mco_ready,
  output      logic [1:0]   mco_status,
  output      logic         mc_any,

  input  wire logic         sro_valid,
  input  wire logic [1:0]   sro_kind,
  input  wire logic [9:0]   sro_srqn,
  input  wire logic [15:0]  sro_limit,
  input  wire logic [11:0]  sro_pd,
  input  wire logic         sro_xrc,
  input  wire logic [11:0]  sro_xrcd,
  input  wire logic [11:0]  sro_cqn,
  input  wire logic [63:0]  sro_addr,
  input  wire logic [4:0]   sro_log_entries,
  input  wire logic [3:0]   sro_log_stride,
  output      logic         sro_ready,
  output      logic [15:0]  sro_ans_ci,
  output      logic [15:0]  sro_ans_pi,
  output      logic [15:0]  sro_ans_limit,
  input  wire logic         srq_db_valid,
  input  wire logic [9:0]   srq_db_srqn,
  input  wire logic [15:0]  srq_db_pi,
  output      logic         srq_db_ready,
  output      logic         srq_ev_valid,
  output      logic [7:0]   srq_ev_type,
  output      logic [23:0]  srq_ev_obj,
  input  wire logic         srq_ev_ready,

  input  wire logic         db_valid,
  input  wire logic [11:0]  db_qpn,
  input  wire logic [15:0]  db_pi,
  output      logic         db_ready,

  input  wire logic         qpc_valid,
  input  wire logic [2:0]   qpc_op,
  input  wire logic [11:0]  qpc_qpn,
  input  wire logic [23:0]  qpc_psn,
  output      logic         qpc_ready,
  output      logic [23:0]  qpc_rsp_psn,
  output      logic [15:0]  qpc_rsp_pi,
  output      logic [15:0]  qpc_rsp_ci,
  input  wire logic         aqc_valid,
  input  wire logic [2:0]   aqc_op,
  input  wire logic [11:0]  aqc_qpn,
  input  wire logic [23:0]  aqc_psn,
  output      logic         aqc_ready,
  output      logic [23:0]  aqc_rsp_psn,
  output      logic [15:0]  aqc_rsp_pi,
  output      logic [15:0]  aqc_rsp_ci,
  input  wire logic         fence_req,
  output      logic         fence_done,

  input  wire logic         cfg_we,
  input  wire logic [11:0]  cfg_qpn,
  input  wire logic         cfg_exists,
  input  wire logic [3:0]   cfg_state,
  input  wire logic [3:0]   cfg_type,
  input  wire logic         cfg_srq,
  input  wire logic [9:0]   cfg_srqn,
  input  wire logic [11:0]  cfg_pd,
  input  wire logic [11:0]  cfg_send_cq,
  input  wire logic [11:0]  cfg_recv_cq,
  input  wire logic [63:0]  cfg_rq_addr,
  input  wire logic [4:0]   cfg_rq_log_entries,
  input  wire logic [3:0]   cfg_rq_log_stride,
  input  wire logic [63:0]  cfg_sq_addr,
  input  wire logic [4:0]   cfg_sq_log_entries,
  input  wire logic [3:0]   cfg_sq_log_stride,
  input  wire logic [3:0]   cfg_acc,
  input  wire logic [7:0]   cfg_max_dest,
  input  wire logic [4:0]   cfg_timeout,
  input  wire logic [2:0]   cfg_retry,
  input  wire logic [2:0]   cfg_rnr_retry,
  input  wire logic [2:0]   cfg_mtu,
  input  wire logic [4:0]   cfg_min_rnr,
  input  wire logic [23:0]  cfg_dest_qpn,
  input  wire logic [15:0]  cfg_pkey,
  input  wire logic [31:0]  cfg_qkey,
  input  wire logic [4:0]   cfg_sgid,
  input  wire logic [127:0] cfg_dgid,
  input  wire logic [1:0]   qpr_ready,
  input  wire logic         sync_req,
  output      logic         sync_done,
  input  wire logic [63:0]  cycles,
  output      logic         timer_armed,
  output      logic [31:0]  timer_cycles,
  output      logic         mro_valid,
  output      logic [2:0]   mro_op,
  output      logic [31:0]  mro_key,
  output      logic [11:0]  mro_pd,
  output      logic [11:0]  mro_qpn,
  input  wire logic         mro_ready,
  input  wire logic         mro_rsp_valid,
  input  wire logic [2:0]   mro_rsp,
  output      logic         inv_valid,
  output      logic [31:0]  inv_key,
  input  wire logic         reads_over,

  input  wire logic         gid_we,
  input  wire logic [4:0]   gid_widx,
  input  wire logic         gid_valid,
  input  wire logic         gid_ipv4,
  input  wire logic         gid_vlan_valid,
  input  wire logic [11:0]  gid_vlan,
  input  wire logic [47:0]  gid_smac,
  input  wire logic [127:0] gid_gid,
  output      logic         class_valid,
  output      logic         class_rdma,
  output      logic         half_full, loop_room,

  input  wire logic         sent_valid,
  input  wire logic [11:0]  sent_qpn,
  input  wire logic [15:0]  sent_wqe,
  input  wire logic [23:0]  sent_psn,
  input  wire logic [7:0]   sent_opcode,
  input  wire logic         sent_signaled,
  input  wire logic [7:0]   sent_status,
  input  wire logic         sent_unrel,
  input  wire logic [31:0]  sent_len,
  output      logic         sent_ready,
  input  wire logic         made_valid,
  input  wire logic [11:0]  made_qpn,
  input  wire logic [23:0]  made_psn,
  input  wire logic         made_asks,
  output      logic         made_ready,
  output      logic         acked_valid,
  output      logic [1:0]   acked_kind,
  output      logic [11:0]  acked_qpn,
  output      logic [15:0]  acked_wqe,
  output      logic [23:0]  acked_una,
  output      logic [7:0]   acked_rd,
  input  wire logic         acked_ready,
  output      logic         ack_valid,
  output      logic [11:0]  ack_qpn,
  output      logic [23:0]  ack_psn,
  output      logic [7:0]   ack_syndrome,
  output      logic [23:0]  ack_msn,
  output      logic [1:0]   ack_kind,
  output      logic         ack_dup,
  output      logic [11:0]  ack_pd,
  output      logic [31:0]  ack_key,
  output      logic [63:0]  ack_va,
  output      logic [31:0]  ack_len,
  input  wire logic         ack_ready,

  output      logic [1:0]       mr_valid,
  output      logic [1:0]       mr_ring,
  output      logic [1:0][63:0] mr_pt_addr,
  output      logic [1:0][31:0] mr_key,
  output      logic [1:0][11:0] mr_pd,
  output      logic [1:0][11:0] mr_qpn,
  output      logic [1:0][ACC_W-1:0] mr_acc,
  output      logic [1:0]       mr_whole,
  output      logic [1:0]       mr_aligned,
  output      logic [1:0][63:0] mr_va,
  output      logic [1:0][12:0] mr_len,
  input  wire logic [1:0]       mr_ready,
  input  wire logic [1:0]       mrr_valid,
  input  wire logic [1:0][2:0]  mrr_status,
  input  wire logic [1:0][63:0] mrr_addr,
  input  wire logic [1:0][12:0] mrr_len,
  input  wire logic [1:0]       mrr_last,
  output      logic [1:0]       mrr_ready,

  output      logic [1:0]        rd_valid,
  output      logic [1:0][63:0]  rd_addr,
  output      logic [1:0][12:0]  rd_len,
  input  wire logic [1:0]        rd_ready,
  input  wire logic [1:0]        rdr_valid,
  input  wire logic [511:0]      rdr_data,
  input  wire logic              rdr_last,
  input  wire logic              rdr_err,
  output      logic [1:0]        wr_valid,
  output      logic [1:0][63:0]  wr_addr,
  output      logic [1:0][12:0]  wr_len,
  output      logic [1:0][511:0] wr_data,
  output      logic [1:0]        wr_last,
  input  wire logic [1:0]        wr_ready,

  output      logic [1:0]        cqe_valid,
  output      logic [1:0][11:0]  cqe_cqn,
  output      logic [1:0]        cqe_solicited,
  output      logic [1:0][255:0] cqe_data,
  input  wire logic [1:0]        cqe_ready,
  output      logic [1:0]        err_valid,
  output      logic [1:0][11:0]  err_qpn,
  output      logic [1:0][7:0]   err_event,
  output      logic [1:0]        err_only,
  input  wire logic [1:0]        err_ready,

  output      logic [63:0]  cnt,
  output      logic         qc_rx_valid,
  output      logic [QPN_W-1:0] qc_rx_qpn,
  output      logic [12:0]  qc_rx_bytes,
  output      logic [8:0]   qc_rx_hit,
  output      logic         qc_resp_valid,
  output      logic [QPN_W-1:0] qc_resp_qpn,
  output      logic [1:0]   qc_resp_hit,
  output      logic [6:0]   rx_bytes,

  // lanes, as they are
  output      logic         trace_acked_valid,
  output      tr_acked_t    trace_acked,
  output      logic         trace_in_valid,
  output      tr_in_t       trace_in,
  output      logic         trace_rsp_valid,
  output      tr_rsp_t      trace_rsp,
  output      logic         trace_req_valid,
  output      tr_req_t      trace_req,
  output      logic         trace_put_valid,
  output      tr_put_t      trace_put,
  output      logic         trace_bad_valid,
  output      tr_bad_t      trace_bad,
  output      logic         trace_voided_valid,
  output      tr_voided_t   trace_voided,
  output      logic         trace_mute_valid,
  output      tr_mute_t     trace_mute
);

  // ---- configuration ------------------------------------------------------------------------------------
  qp_cfg_t cfg_mem [4096];
  gid_t gid_mem [32];
  qp_cfg_t cfg_in;
  logic [1:0] qpr_valid;
  logic [1:0][QPN_W-1:0] qpr_qpn;
  logic [CFG_LATENCY-1:0][1:0] pipe_valid;
  logic [CFG_LATENCY-1:0][1:0][QPN_W-1:0] pipe_qpn;
  logic [1:0] qpr_rsp_valid;
  qp_cfg_t [1:0] qpr_rsp;
  logic [1:0][GID_W-1:0] gid_idx;
  gid_t [1:0] gid;

  initial for (int i = 0; i < 4096; i++) cfg_mem[i] = '0;
  gid_t gid_in;
  assign gid_in = '{valid: gid_valid, ipv4: gid_ipv4, vlan_valid: gid_vlan_valid, vlan: gid_vlan, smac: gid_smac, gid: gid_gid};
  initial for (int i = 0; i < 32; i++) gid_mem[i] = '0;

  always_comb begin
    cfg_in = '0;
    cfg_in.valid = cfg_exists;
    cfg_in.state = cfg_state;
    cfg_in.qp_type = cfg_type;
    cfg_in.srq = cfg_srq;
    cfg_in.srqn = cfg_srqn;
    cfg_in.pd = cfg_pd;
    cfg_in.send_cq = cfg_send_cq;
    cfg_in.recv_cq = cfg_recv_cq;
    cfg_in.rq = '{pt: '{addr: cfg_rq_addr, levels: 2'd0, page_shift: 6'd12},
        log_entries: cfg_rq_log_entries, log_stride: cfg_rq_log_stride};
    cfg_in.sq = '{pt: '{addr: cfg_sq_addr, levels: 2'd0, page_shift: 6'd12},
        log_entries: cfg_sq_log_entries, log_stride: cfg_sq_log_stride};
    cfg_in.acc = cfg_acc;
    cfg_in.max_dest_rd_atomic = cfg_max_dest;
    cfg_in.max_rd_atomic = 8'd16;
    cfg_in.timeout = cfg_timeout;
    cfg_in.retry = cfg_retry;
    cfg_in.rnr_retry = cfg_rnr_retry;
    cfg_in.mtu = cfg_mtu;
    cfg_in.min_rnr = cfg_min_rnr;
    cfg_in.dest_qpn = cfg_dest_qpn;
    cfg_in.pkey = cfg_pkey;
    cfg_in.qkey = cfg_qkey;
    cfg_in.sgid = cfg_sgid;
    cfg_in.dgid = cfg_dgid;
  end

  always_ff @(posedge clk) begin
    if (cfg_we) cfg_mem[cfg_qpn] <= cfg_in;
    if (gid_we) gid_mem[gid_widx] <= gid_in;
    for (int i = 0; i < 2; i++) begin
      gid[i] <= gid_mem[gid_idx[i]];
      qpr_rsp_valid[i] <= pipe_valid[CFG_LATENCY-1][i] && !rst;
      if (pipe_valid[CFG_LATENCY-1][i]) qpr_rsp[i] <= cfg_mem[pipe_qpn[CFG_LATENCY-1][i]];
    end
    pipe_valid <= rst ? '0 : {pipe_valid[CFG_LATENCY-2:0], qpr_valid & qpr_ready};
    pipe_qpn <= {pipe_qpn[CFG_LATENCY-2:0], qpr_qpn};
  end

  // ---- the block ------------------------------------------------------------------------------------------
  acked_t acked;
  ack_req_t ack;
  mr_req_t [1:0] mr_req;
  mr_rsp_t [1:0] mr_rsp;
  dma_rd_req_t [1:0] rd;
  dma_wr_t [1:0] wr;
  mr_op_t mro;
  cqe_req_t [1:0] cqe;
  qp_err_t [1:0] err;
  qpc_rsp_t qpc_rsp, aqc_rsp;
  logic [URDMA_CNT_N-1:0] cnt_n;
  srq_op_t sro;
  srq_ans_t sro_ans;
  eqe_req_t srq_ev;
  mc_status_e mc_status;
  assign sro = '{kind: sro_e'(sro_kind), srqn: sro_srqn, limit: sro_limit,
      cfg: '{ring: '{pt: '{addr: sro_addr, levels: 2'd0, page_shift: 6'd12}, log_entries: sro_log_entries,
                     log_stride: sro_log_stride}, pd: sro_pd, xrc: sro_xrc, xrcd: sro_xrcd, cqn: sro_cqn}};
  assign {sro_ans_ci, sro_ans_pi, sro_ans_limit} = sro_ans;
  assign srq_ev_type = srq_ev.ev_type;
  assign srq_ev_obj = srq_ev.obj;
  assign mco_status = mc_status;

  qc_rx_t qc_rx;
  qc_resp_t qc_resp;
  assign cnt = 64'(cnt_n);
  assign {qc_rx_qpn, qc_rx_bytes, qc_rx_hit} = qc_rx;
  assign {qc_resp_qpn, qc_resp_hit} = qc_resp;
  assign qpc_rsp_psn = qpc_rsp.psn;
  assign qpc_rsp_pi = qpc_rsp.pi;
  assign qpc_rsp_ci = qpc_rsp.ci;
  assign aqc_rsp_psn = aqc_rsp.psn;
  assign aqc_rsp_pi = aqc_rsp.pi;
  assign aqc_rsp_ci = aqc_rsp.ci;
  assign acked_kind = acked.kind;
  assign acked_qpn = acked.qpn;
  assign acked_wqe = acked.wqe_done;
  assign acked_una = acked.una_psn;
  assign acked_rd = acked.rd_done;
  assign ack_kind = ack.kind;
  assign ack_dup = ack.dup;
  assign ack_qpn = ack.qpn;
  assign ack_psn = ack.psn;
  assign ack_syndrome = ack.syndrome;
  assign ack_msn = ack.msn;
  assign ack_pd = ack.pd;
  assign ack_key = ack.key;
  assign ack_va = ack.va;
  assign ack_len = ack.len;
  assign mro_op = mro.op;
  assign mro_key = mro.key;
  assign mro_pd = mro.pd;
  assign mro_qpn = mro.qpn;
  for (genvar i = 0; i < 2; i++) begin : g_i
    assign mr_ring[i] = mr_req[i].ring;
    assign mr_pt_addr[i] = mr_req[i].pt.addr;
    assign mr_key[i] = mr_req[i].key;
    assign mr_pd[i] = mr_req[i].pd;
    assign mr_qpn[i] = mr_req[i].qpn;
    assign {rd_addr[i], rd_len[i]} = rd[i];
    assign {wr_addr[i], wr_len[i], wr_data[i], wr_last[i]} = wr[i];
    assign mr_acc[i] = mr_req[i].acc;
    assign mr_whole[i] = mr_req[i].whole;
    assign mr_aligned[i] = mr_req[i].aligned;
    assign mr_va[i] = mr_req[i].va;
    assign mr_len[i] = mr_req[i].len;
    assign mr_rsp[i] = '{status: mr_status_e'(mrr_status[i]), addr: mrr_addr[i], len: mrr_len[i], last: mrr_last[i]};
    assign {cqe_cqn[i], cqe_solicited[i], cqe_data[i]} = cqe[i];
    assign {err_qpn[i], err_only[i], err_event[i]} = err[i];
  end

  urdma_rx u_rx (
    .clk(clk), .rst(rst), .init_done(init_done), .busy(busy),
    .mac_valid(mac_valid), .mac({mac_data, mac_keep, mac_last, mac_err}), .mac_home,
    .mco_valid, .mco('{kind: mc_kind_e'(mco_kind), qpn: mco_qpn, gid: mco_gid}), .mco_ready, .mco_status(mc_status), .mc_any,
    .sro_valid, .sro, .sro_ready, .sro_ans, .srq_db_valid, .srq_db({srq_db_srqn, srq_db_pi}), .srq_db_ready,
    .srq_ev_valid, .srq_ev, .srq_ev_ready,
    .rq_db_valid(db_valid), .rq_db({db_qpn, db_pi}), .rq_db_ready(db_ready),
    .qpc_valid(qpc_valid), .qpc('{op: qpc_op_e'(qpc_op), qpn: qpc_qpn, psn: qpc_psn}),
    .qpc_ready(qpc_ready), .qpc_rsp(qpc_rsp),
    .aqc_valid(aqc_valid), .aqc('{op: qpc_op_e'(aqc_op), qpn: aqc_qpn, psn: aqc_psn}),
    .aqc_ready(aqc_ready), .aqc_rsp(aqc_rsp),
    .fence_req(fence_req), .fence_done(fence_done),
    .qpr_req_valid(qpr_valid), .qpr_req_qpn(qpr_qpn), .qpr_req_ready(qpr_ready),
    .qpr_rsp_valid(qpr_rsp_valid), .qpr_rsp(qpr_rsp), .gid_idx(gid_idx), .gid(gid),
    .gid_wr_valid(gid_we), .gid_wr_idx(gid_widx), .gid_wr(gid_in), .class_valid, .class_rdma, .half_full, .loop_room,
    .mro_valid(mro_valid), .mro(mro), .mro_ready(mro_ready), .mro_rsp_valid(mro_rsp_valid),
    .mro_rsp(mro_status_e'(mro_rsp)), .sync_req(sync_req), .sync_done(sync_done),
    .inv_valid(inv_valid), .inv_key(inv_key), .reads_over(reads_over),
    .cycles(cycles), .timer_armed(timer_armed), .timer_cycles(timer_cycles),
    .sent_valid(sent_valid),
    .sent('{qpn: sent_qpn, wqe: sent_wqe, psn: sent_psn, opcode: sent_opcode, signaled: sent_signaled,
        status: sent_status, resent: 1'b0, unrel: sent_unrel, len: sent_len}),
    .sent_ready(sent_ready),
    .made_valid(made_valid), .made('{qpn: made_qpn, psn: made_psn, asks: made_asks}), .made_ready(made_ready),
    .acked_valid(acked_valid), .acked(acked), .acked_ready(acked_ready),
    .ack_req_valid(ack_valid), .ack_req(ack), .ack_req_ready(ack_ready),
    .mr_req_valid(mr_valid), .mr_req(mr_req), .mr_req_ready(mr_ready),
    .mr_rsp_valid(mrr_valid), .mr_rsp(mr_rsp), .mr_rsp_ready(mrr_ready),
    .rd_req_valid(rd_valid), .rd_req(rd), .rd_req_ready(rd_ready),
    .rd_rsp_valid(rdr_valid), .rd_rsp({rdr_data, rdr_last, rdr_err}),
    .wr_valid(wr_valid), .wr(wr), .wr_ready(wr_ready),
    .cqe_valid(cqe_valid), .cqe(cqe), .cqe_ready(cqe_ready),
    .err_valid(err_valid), .err(err), .err_ready(err_ready),
    .qc_rx_valid, .qc_rx, .qc_resp_valid, .qc_resp, .qc_req_valid(), .qc_req(),
    .cnt(cnt_n), .rx_bytes(rx_bytes), .trace_acked_valid, .trace_acked, .trace_in_valid, .trace_in,
    .trace_rsp_valid, .trace_rsp, .trace_req_valid, .trace_req, .trace_put_valid, .trace_put, .trace_bad_valid, .trace_bad,
    .trace_voided_valid, .trace_voided, .trace_mute_valid, .trace_mute,
    .trace_loss_valid(), .trace_loss()
  );

  logic unused;
  assign unused = &{1'b0, mr_req[0].pt.levels, mr_req[0].pt.page_shift, mr_req[1].pt.levels, mr_req[1].pt.page_shift,
      qpc_rsp.draining, aqc_rsp.draining, acked.first_psn, mro,
      srq_ev.eqn, srq_ev.data};

endmodule

`resetall
