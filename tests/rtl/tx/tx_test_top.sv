// SPDX-License-Identifier: Apache-2.0
// urdma_tx with its packed ports spread into single fields, so that the test does not depend on their layout.
`resetall
`default_nettype none

module tx_test_top
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
(
  input  wire logic         clk,
  input  wire logic         rst,
  output      logic         init_done,
  output      logic         busy,

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
  output      logic         qpc_rsp_draining,
  input  wire logic         fence_req,
  output      logic         fence_done,

  output      logic         qpr_req_valid,
  output      logic [11:0]  qpr_req_qpn,
  input  wire logic         qpr_req_ready,
  input  wire logic         qpr_rsp_valid,
  input  wire logic         cfg_valid,
  input  wire logic [3:0]   cfg_state,
  input  wire logic [3:0]   cfg_qp_type,
  input  wire logic [31:0]  cfg_qkey,
  input  wire logic         cfg_sig_all,
  input  wire logic         cfg_no_loop,
  input  wire logic         cfg_priv,
  input  wire logic [7:0]   cfg_max_rd,
  input  wire logic [11:0]  cfg_pd,
  input  wire logic [63:0]  cfg_sq_addr,
  input  wire logic [4:0]   cfg_sq_log_entries,
  input  wire logic [3:0]   cfg_sq_log_stride,
  input  wire logic [2:0]   cfg_mtu,
  input  wire logic [23:0]  cfg_dest_qpn,
  input  wire logic [15:0]  cfg_pkey,
  input  wire logic [4:0]   cfg_sgid,
  input  wire logic [47:0]  cfg_dmac,
  input  wire logic [63:0]  cfg_dgid_lo,
  input  wire logic [63:0]  cfg_dgid_hi,
  input  wire logic [7:0]   cfg_tclass,
  input  wire logic [7:0]   cfg_hop_limit,
  input  wire logic [2:0]   cfg_pcp,
  input  wire logic [19:0]  cfg_flow_label,
  input  wire logic [15:0]  cfg_udp_sport,

  output      logic [4:0]   gid_idx,
  input  wire logic         gid_valid,
  input  wire logic         gid_ipv4,
  input  wire logic         gid_vlan_valid,
  input  wire logic [11:0]  gid_vlan,
  input  wire logic [47:0]  gid_smac,
  input  wire logic [63:0]  gid_lo,
  input  wire logic [63:0]  gid_hi,

  output      logic         err_valid,
  output      logic [11:0]  err_qpn,
  output      logic         err_only_event,
  output      logic [7:0]   err_event,
  input  wire logic         err_ready,

  output      logic         mro_valid,
  output      logic [2:0]   mro_op,
  output      logic [31:0]  mro_key,
  output      logic [31:0]  mro_lkey,
  output      logic [11:0]  mro_pd,
  output      logic [11:0]  mro_qpn,
  output      logic [ACC_W-1:0] mro_acc,
  output      logic         mro_zero_based,
  output      logic [63:0]  mro_va,
  output      logic [63:0]  mro_len,
  output      logic [63:0]  mro_pt_addr,
  output      logic [1:0]   mro_pt_levels,
  output      logic [5:0]   mro_pt_page_shift,
  input  wire logic         mro_ready,
  input  wire logic         mro_rsp_valid,
  input  wire logic [2:0]   mro_rsp,
  output      logic         sync_req,
  input  wire logic         sync_done,
  input  wire logic         inv_valid,
  input  wire logic [31:0]  inv_key,
  output      logic         reads_over,

  output      logic         sent_valid,
  output      logic [11:0]  sent_qpn,
  output      logic [15:0]  sent_wqe,
  output      logic [23:0]  sent_psn,
  output      logic [7:0]   sent_opcode,
  output      logic         sent_signaled,
  output      logic [7:0]   sent_status,
  output      logic         sent_resent,
  output      logic         sent_unrel,
  output      logic [31:0]  sent_len,
  input  wire logic         sent_ready,
  output      logic         made_valid,
  output      logic [11:0]  made_qpn,
  output      logic [23:0]  made_psn,
  output      logic         made_asks,
  input  wire logic         made_ready,

  input  wire logic         acked_valid,
  input  wire logic [1:0]   acked_kind,
  input  wire logic [11:0]  acked_qpn,
  input  wire logic [15:0]  acked_wqe_done,
  input  wire logic [23:0]  acked_first_psn,
  input  wire logic [23:0]  acked_una_psn,
  input  wire logic [7:0]   acked_rd_done,
  output      logic         acked_ready,

  input  wire logic         ack_req_valid,
  input  wire logic [1:0]   ack_req_kind,
  input  wire logic         ack_req_dup,
  input  wire logic [11:0]  ack_req_qpn,
  input  wire logic [23:0]  ack_req_psn,
  input  wire logic [7:0]   ack_req_syndrome,
  input  wire logic [23:0]  ack_req_msn,
  input  wire logic [11:0]  ack_req_pd,
  input  wire logic [31:0]  ack_req_key,
  input  wire logic [63:0]  ack_req_va,
  input  wire logic [31:0]  ack_req_len,
  output      logic         ack_req_ready,

  output      logic [1:0]   mr_req_valid,
  output      logic [1:0]   mr_req_ring,
  output      logic [63:0]  mr_req_pt_addr,   // of the ring client
  output      logic [31:0]  mr_req_key,       // of the payload client
  output      logic [11:0]  mr_req_pd,
  output      logic [11:0]  mr_req_qpn,
  output      logic [ACC_W-1:0] mr_req_acc,
  output      logic [63:0]  mr_req_va0,
  output      logic [63:0]  mr_req_va1,
  output      logic [12:0]  mr_req_len0,
  output      logic [12:0]  mr_req_len1,
  input  wire logic [1:0]   mr_req_ready,
  input  wire logic [1:0]   mr_rsp_valid,
  input  wire logic [2:0]   mr_rsp_status0,
  input  wire logic [2:0]   mr_rsp_status1,
  input  wire logic [63:0]  mr_rsp_addr0,
  input  wire logic [63:0]  mr_rsp_addr1,
  input  wire logic [12:0]  mr_rsp_len0,
  input  wire logic [12:0]  mr_rsp_len1,
  input  wire logic [1:0]   mr_rsp_last,
  output      logic [1:0]   mr_rsp_ready,

  output      logic [1:0]   rd_req_valid,
  output      logic [63:0]  rd_req_addr0,
  output      logic [63:0]  rd_req_addr1,
  output      logic [12:0]  rd_req_len0,
  output      logic [12:0]  rd_req_len1,
  input  wire logic [1:0]   rd_req_ready,
  input  wire logic [1:0]   rd_rsp_valid,
  input  wire logic [511:0] rd_rsp_data,
  input  wire logic         rd_rsp_last,
  input  wire logic         rd_rsp_err,

  output      logic         mac_valid,
  output      logic [511:0] mac_data,
  output      logic [63:0]  mac_keep,
  output      logic         mac_last,
  output      logic         mac_err,
  output      logic         mac_loop,
  input  wire logic         mac_ready,

  output      logic [63:0]  cnt,
  output      logic         qc_valid,
  output      logic [QPN_W-1:0] qc_qpn,
  output      logic [12:0]  qc_bytes,
  output      logic [2:0]   qc_hit,      // packet, bytes, sent again

  // lanes, as they are
  output      logic         trace_turn_valid,
  output      tr_turn_t     trace_turn,
  output      logic         trace_wqe_valid,
  output      tr_wqe_t      trace_wqe,
  output      logic         trace_pkt_valid,
  output      tr_pkt_t      trace_pkt,
  output      logic         trace_full_valid,
  output      tr_full_t     trace_full,
  output      logic         trace_ans_valid,
  output      tr_ans_t      trace_ans,
  output      logic         trace_out_valid,
  output      tr_out_t      trace_out,
  output      logic         trace_ask_valid,
  output      tr_ask_t      trace_ask
);

  qp_cfg_t cfg;
  gid_t gid;
  sent_t sent;
  made_t made;
  mr_req_t [1:0] mr_req;
  mr_rsp_t [1:0] mr_rsp;
  dma_rd_req_t [1:0] rd_req;
  mac_beat_t mac;
  qpc_rsp_t qpc_rsp;
  qp_err_t err;
  mr_op_t mro;
  logic [URDMA_CNT_N-1:0] counters;

  always_comb begin
    cfg = '0;
    cfg.valid = cfg_valid;
    cfg.state = cfg_state;
    cfg.qp_type = cfg_qp_type;
    cfg.qkey = cfg_qkey;
    cfg.sig_all = cfg_sig_all;
    cfg.no_loop = cfg_no_loop;
    cfg.priv = cfg_priv;
    cfg.max_rd_atomic = cfg_max_rd;
    cfg.pd = cfg_pd;
    cfg.sq.pt.addr = cfg_sq_addr;
    cfg.sq.pt.page_shift = 6'd12;
    cfg.sq.log_entries = cfg_sq_log_entries;
    cfg.sq.log_stride = cfg_sq_log_stride;
    cfg.mtu = cfg_mtu;
    cfg.dest_qpn = cfg_dest_qpn;
    cfg.pkey = cfg_pkey;
    cfg.sgid = cfg_sgid;
    cfg.dmac = cfg_dmac;
    cfg.dgid = {cfg_dgid_hi, cfg_dgid_lo};
    cfg.tclass = cfg_tclass;
    cfg.hop_limit = cfg_hop_limit;
    cfg.pcp = cfg_pcp;
    cfg.flow_label = cfg_flow_label;
    cfg.udp_sport = cfg_udp_sport;

    gid = '{valid: gid_valid, ipv4: gid_ipv4, vlan_valid: gid_vlan_valid, vlan: gid_vlan, smac: gid_smac,
            gid: {gid_hi, gid_lo}};
    mr_rsp[0] = '{status: mr_status_e'(mr_rsp_status0), addr: mr_rsp_addr0, len: mr_rsp_len0, last: mr_rsp_last[0]};
    mr_rsp[1] = '{status: mr_status_e'(mr_rsp_status1), addr: mr_rsp_addr1, len: mr_rsp_len1, last: mr_rsp_last[1]};
  end

  qc_tx_t qc;
  urdma_tx tx (
    .clk, .rst, .init_done, .busy,
    .sq_db_valid(db_valid), .sq_db('{qpn: db_qpn, pi: db_pi}), .sq_db_ready(db_ready),
    .qpc_valid, .qpc('{op: qpc_op_e'(qpc_op), qpn: qpc_qpn, psn: qpc_psn}), .qpc_ready, .qpc_rsp,
    .fence_req, .fence_done, .qpr_req_valid, .qpr_req_qpn, .qpr_req_ready, .qpr_rsp_valid, .qpr_rsp(cfg),
    .gid_idx, .gid, .err_valid, .err, .err_ready, .mro_valid, .mro, .mro_ready, .mro_rsp_valid,
    .mro_rsp(mro_status_e'(mro_rsp)), .sync_req, .sync_done,
    .inv_valid, .inv_key, .reads_over, .sent_valid, .sent, .sent_ready, .made_valid, .made, .made_ready,
    .acked_valid, .acked('{kind: acked_kind_e'(acked_kind), qpn: acked_qpn, wqe_done: acked_wqe_done,
                            first_psn: acked_first_psn, una_psn: acked_una_psn, rd_done: acked_rd_done}), .acked_ready,
    .ack_req_valid, .ack_req('{kind: rsp_e'(ack_req_kind), dup: ack_req_dup, qpn: ack_req_qpn, psn: ack_req_psn,
                                syndrome: ack_req_syndrome, msn: ack_req_msn, pd: ack_req_pd, key: ack_req_key,
                                va: ack_req_va, len: ack_req_len}),
    .ack_req_ready, .mr_req_valid, .mr_req, .mr_req_ready, .mr_rsp_valid, .mr_rsp, .mr_rsp_ready,
    .rd_req_valid, .rd_req, .rd_req_ready, .rd_rsp_valid,
    .rd_rsp('{data: rd_rsp_data, last: rd_rsp_last, err: rd_rsp_err}),
    .mac_valid, .mac, .mac_loop, .mac_ready, .cnt(counters), .qc_tx_valid(qc_valid), .qc_tx(qc),
    .trace_turn_valid, .trace_turn, .trace_wqe_valid, .trace_wqe, .trace_pkt_valid, .trace_pkt,
    .trace_full_valid, .trace_full, .trace_ans_valid, .trace_ans, .trace_out_valid, .trace_out,
    .trace_ask_valid, .trace_ask
  );

  assign qpc_rsp_psn = qpc_rsp.psn;
  assign qpc_rsp_pi = qpc_rsp.pi;
  assign qpc_rsp_draining = qpc_rsp.draining;
  assign err_qpn = err.qpn;
  assign err_only_event = err.only_event;
  assign err_event = err.event_type;
  assign mro_op = mro.op;
  assign mro_key = mro.key;
  assign mro_lkey = mro.lkey;
  assign mro_pd = mro.pd;
  assign mro_qpn = mro.qpn;
  assign mro_acc = mro.acc;
  assign mro_zero_based = mro.zero_based;
  assign mro_va = mro.va;
  assign mro_len = mro.len;
  assign mro_pt_addr = mro.pt.addr;
  assign mro_pt_levels = mro.pt.levels;
  assign mro_pt_page_shift = mro.pt.page_shift;
  assign sent_resent = sent.resent;
  assign sent_unrel = sent.unrel;
  assign sent_qpn = sent.qpn;
  assign sent_wqe = sent.wqe;
  assign sent_psn = sent.psn;
  assign sent_opcode = sent.opcode;
  assign sent_signaled = sent.signaled;
  assign sent_status = sent.status;
  assign sent_len = sent.len;
  assign made_qpn = made.qpn;
  assign made_psn = made.psn;
  assign made_asks = made.asks;
  assign mr_req_ring = {mr_req[1].ring, mr_req[0].ring};
  assign mr_req_pt_addr = mr_req[1].pt.addr;
  assign mr_req_key = mr_req[0].key;
  assign mr_req_pd = mr_req[0].pd;
  assign mr_req_qpn = mr_req[0].qpn;
  assign mr_req_acc = mr_req[0].acc;
  assign mr_req_va0 = mr_req[0].va;
  assign mr_req_va1 = mr_req[1].va;
  assign mr_req_len0 = mr_req[0].len;
  assign mr_req_len1 = mr_req[1].len;
  assign rd_req_addr0 = rd_req[0].addr;
  assign rd_req_addr1 = rd_req[1].addr;
  assign rd_req_len0 = rd_req[0].len;
  assign rd_req_len1 = rd_req[1].len;
  assign mac_data = mac.data;
  assign mac_keep = mac.keep;
  assign mac_last = mac.last;
  assign mac_err = mac.err;
  assign cnt = 64'(counters);
  assign {qc_qpn, qc_bytes, qc_hit} = qc;

  logic unused;
  assign unused = ^{mr_req, qpc_rsp, mro};

endmodule

`resetall
