// SPDX-License-Identifier: Apache-2.0
#include "tx_model.h"

#include <cstring>
#include <memory>

#include "Vtx_test_top.h"
#include "rtl/bench.h"
#include "verilated.h"

struct tx_model {
	VerilatedContext ctx;
	Vtx_test_top top{ &ctx };
};

double sc_time_stamp()
{
	return 0;
}

static uint64_t le(const uint8_t *p, int n)
{
	uint64_t x = 0;

	while (n--)
		x = x << 8 | p[n];
	return x;
}

void tx_model_clock(tx_model *m)
{
	bench_edge(m->top);
	bench_settle(m->top);
}

void tx_model_eval(tx_model *m, const tx_in *in, tx_out *out)
{
	Vtx_test_top &t = m->top;

	t.db_valid = in->db_valid;
	t.db_qpn = in->db_qpn;
	t.db_pi = in->db_pi;
	t.qpc_valid = in->qpc_valid;
	t.qpc_op = in->qpc_op;
	t.qpc_qpn = in->qpc_qpn;
	t.qpc_psn = in->qpc_psn;
	t.fence_req = in->fence_req;
	t.qpr_req_ready = in->qpr_req_ready;
	t.qpr_rsp_valid = in->qpr_rsp_valid;
	t.cfg_valid = in->cfg.valid;
	t.cfg_state = in->cfg.state;
	t.cfg_qp_type = in->cfg.qp_type;
	t.cfg_qkey = in->cfg.qkey;
	t.cfg_sig_all = in->cfg.sig_all;
	t.cfg_no_loop = in->cfg.no_loop;
	t.cfg_priv = in->cfg.priv;
	t.cfg_max_rd = in->cfg.max_rd;
	t.cfg_pd = in->cfg.pd;
	t.cfg_sq_addr = in->cfg.sq_addr;
	t.cfg_sq_log_entries = in->cfg.log_entries;
	t.cfg_sq_log_stride = in->cfg.log_stride;
	t.cfg_mtu = in->cfg.mtu;
	t.cfg_dest_qpn = in->cfg.dest_qpn;
	t.cfg_pkey = in->cfg.pkey;
	t.cfg_sgid = in->cfg.sgid;
	t.cfg_dmac = le(in->cfg.dmac, 6);
	t.cfg_dgid_lo = le(in->cfg.dgid, 8);
	t.cfg_dgid_hi = le(in->cfg.dgid + 8, 8);
	t.cfg_tclass = in->cfg.tclass;
	t.cfg_hop_limit = in->cfg.hop_limit;
	t.cfg_pcp = in->cfg.pcp;
	t.cfg_flow_label = in->cfg.flow_label;
	t.cfg_udp_sport = in->cfg.udp_sport;
	t.gid_valid = in->gid.valid;
	t.gid_ipv4 = in->gid.ipv4;
	t.gid_vlan_valid = in->gid.vlan_valid;
	t.gid_vlan = in->gid.vlan;
	t.gid_smac = le(in->gid.smac, 6);
	t.gid_lo = le(in->gid.gid, 8);
	t.gid_hi = le(in->gid.gid + 8, 8);
	t.sent_ready = in->sent_ready;
	t.made_ready = in->made_ready;
	t.acked_valid = in->acked_valid;
	t.acked_qpn = in->acked_qpn;
	t.acked_wqe_done = in->acked_wqe_done;
	t.acked_una_psn = in->acked_una_psn;
	t.acked_kind = in->acked_kind;
	t.acked_first_psn = in->acked_first_psn;
	t.acked_rd_done = in->acked_rd_done;
	t.ack_req_valid = in->ack_req_valid;
	t.ack_req_qpn = in->ack_req_qpn;
	t.ack_req_psn = in->ack_req_psn;
	t.ack_req_syndrome = in->ack_req_syndrome;
	t.ack_req_msn = in->ack_req_msn;
	t.ack_req_kind = in->ack_req_kind;
	t.ack_req_dup = in->ack_req_dup;
	t.ack_req_pd = in->ack_req_pd;
	t.ack_req_key = in->ack_req_key;
	t.ack_req_va = in->ack_req_va;
	t.ack_req_len = in->ack_req_len;
	t.err_ready = in->err_ready;
	t.mro_ready = in->mro_ready;
	t.mro_rsp_valid = in->mro_rsp_valid;
	t.mro_rsp = in->mro_rsp;
	t.sync_done = in->sync_done;
	t.inv_valid = in->inv_valid;
	t.inv_key = in->inv_key;
	t.mr_req_ready = in->mr_req_ready[0] | in->mr_req_ready[1] << 1;
	t.mr_rsp_valid = in->mr_rsp_valid[0] | in->mr_rsp_valid[1] << 1;
	t.mr_rsp_status0 = in->mr_rsp[0].status;
	t.mr_rsp_status1 = in->mr_rsp[1].status;
	t.mr_rsp_addr0 = in->mr_rsp[0].addr;
	t.mr_rsp_addr1 = in->mr_rsp[1].addr;
	t.mr_rsp_len0 = in->mr_rsp[0].len;
	t.mr_rsp_len1 = in->mr_rsp[1].len;
	t.mr_rsp_last = in->mr_rsp[0].last | in->mr_rsp[1].last << 1;
	t.rd_req_ready = in->rd_req_ready[0] | in->rd_req_ready[1] << 1;
	t.rd_rsp_valid = in->rd_rsp_valid[0] | in->rd_rsp_valid[1] << 1;
	std::memcpy(&t.rd_rsp_data[0], in->rd_data, 64);
	t.rd_rsp_last = in->rd_last;
	t.rd_rsp_err = in->rd_err;
	t.mac_ready = in->mac_ready;
	t.eval();

	out->init_done = t.init_done;
	out->busy = t.busy;
	out->db_ready = t.db_ready;
	out->qpc_ready = t.qpc_ready;
	out->fence_done = t.fence_done;
	out->qpc_rsp_psn = t.qpc_rsp_psn;
	out->qpc_rsp_pi = t.qpc_rsp_pi;
	out->qpc_rsp_draining = t.qpc_rsp_draining;
	out->err_valid = t.err_valid;
	out->err_only_event = t.err_only_event;
	out->err_qpn = t.err_qpn;
	out->err_event = t.err_event;
	out->mro_valid = t.mro_valid;
	out->sync_req = t.sync_req;
	out->reads_over = t.reads_over;
	out->mro_op = t.mro_op;
	out->mro_acc = t.mro_acc;
	out->mro_zero_based = t.mro_zero_based;
	out->mro_pt_levels = t.mro_pt_levels;
	out->mro_pt_page_shift = t.mro_pt_page_shift;
	out->mro_key = t.mro_key;
	out->mro_lkey = t.mro_lkey;
	out->mro_pd = t.mro_pd;
	out->mro_qpn = t.mro_qpn;
	out->mro_va = t.mro_va;
	out->mro_len = t.mro_len;
	out->mro_pt_addr = t.mro_pt_addr;
	out->sent_resent = t.sent_resent;
	out->sent_unrel = t.sent_unrel;
	out->qpr_req_valid = t.qpr_req_valid;
	out->qpr_req_qpn = t.qpr_req_qpn;
	out->gid_idx = t.gid_idx;
	out->sent_valid = t.sent_valid;
	out->sent_signaled = t.sent_signaled;
	out->sent_qpn = t.sent_qpn;
	out->sent_wqe = t.sent_wqe;
	out->sent_psn = t.sent_psn;
	out->sent_len = t.sent_len;
	out->sent_opcode = t.sent_opcode;
	out->sent_status = t.sent_status;
	out->made_valid = t.made_valid;
	out->made_asks = t.made_asks;
	out->made_qpn = t.made_qpn;
	out->made_psn = t.made_psn;
	out->acked_ready = t.acked_ready;
	out->ack_req_ready = t.ack_req_ready;
	for (int i = 0; i < 2; i++) {
		out->mr_req_valid[i] = t.mr_req_valid >> i & 1;
		out->mr_ring[i] = t.mr_req_ring >> i & 1;
		out->mr_rsp_ready[i] = t.mr_rsp_ready >> i & 1;
		out->rd_req_valid[i] = t.rd_req_valid >> i & 1;
	}
	out->mr_pt_addr = t.mr_req_pt_addr;
	out->mr_va[0] = t.mr_req_va0;
	out->mr_va[1] = t.mr_req_va1;
	out->mr_len[0] = t.mr_req_len0;
	out->mr_len[1] = t.mr_req_len1;
	out->mr_key = t.mr_req_key;
	out->mr_pd = t.mr_req_pd;
	out->mr_qpn = t.mr_req_qpn;
	out->mr_acc = t.mr_req_acc;
	out->rd_addr[0] = t.rd_req_addr0;
	out->rd_addr[1] = t.rd_req_addr1;
	out->rd_len[0] = t.rd_req_len0;
	out->rd_len[1] = t.rd_req_len1;
	out->mac_valid = t.mac_valid;
	out->mac_last = t.mac_last;
	out->mac_err = t.mac_err;
	out->mac_loop = t.mac_loop;
	std::memcpy(out->mac_data, &t.mac_data[0], 64);
	out->mac_keep = t.mac_keep;
	out->cnt = t.cnt;
	out->qc_valid = t.qc_valid;
	out->qc_qpn = t.qc_qpn;
	out->qc_len = t.qc_bytes;
	out->qc_pkt = t.qc_hit & 1;
	out->qc_bytes = t.qc_hit >> 1 & 1;
	out->qc_again = t.qc_hit >> 2 & 1;
#define LANE(name)                                                                      \
	do {                                                                            \
		out->name.valid = t.trace_##name##_valid;                               \
		static_assert(sizeof(t.trace_##name) <= sizeof(out->name.w), "a lane"); \
		std::memcpy(out->name.w, &t.trace_##name, sizeof(t.trace_##name));      \
	} while (0)
	LANE(turn);
	LANE(wqe);
	LANE(pkt);
	LANE(full);
	LANE(ans);
	LANE(out);
#undef LANE
}

tx_model *tx_model_new(void)
{
	auto m = std::make_unique<tx_model>();
	tx_in in;
	tx_out out;

	std::memset(&in, 0, sizeof(in));
	m->top.rst = 1;
	tx_model_eval(m.get(), &in, &out);
	tx_model_clock(m.get());
	tx_model_clock(m.get());
	m->top.rst = 0;
	for (int i = 0; i < 10000; i++) {
		tx_model_eval(m.get(), &in, &out);
		if (out.init_done)
			return m.release();
		tx_model_clock(m.get());
	}
	return nullptr;
}

void tx_model_free(tx_model *m)
{
	delete m;
}
