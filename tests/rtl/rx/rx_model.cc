// SPDX-License-Identifier: Apache-2.0
#include "rx_model.h"

#include <cstring>

#include "Vrx_test_top.h"
#include "rtl/bench.h"
#include "verilated.h"

struct rx_model {
	VerilatedContext ctx;
	Vrx_test_top top{ &ctx };
};

// Fields of two side by side in one port: client 1 above client 0.
static uint32_t bits(const WData *w, unsigned int lsb, unsigned int n)
{
	uint64_t v = w[lsb / 32];

	if (lsb % 32 + n > 32)
		v |= (uint64_t)w[lsb / 32 + 1] << 32;
	return (uint32_t)((v >> (lsb % 32)) & (n == 32 ? 0xffffffffu : (1u << n) - 1));
}

extern "C" struct rx_model *rx_model_new(void)
{
	return new rx_model;
}

extern "C" void rx_model_free(struct rx_model *m)
{
	m->top.final();
	delete m;
}

static uint64_t mac48(const uint8_t *p)
{
	uint64_t v = 0;

	memcpy(&v, p, 6);
	return v;
}

extern "C" void rx_model_settle(struct rx_model *m, const struct rx_in *in, struct rx_out *out)
{
	Vrx_test_top &t = m->top;

	t.rst = in->rst;
	t.mac_valid = in->mac_valid;
	memcpy(&t.mac_data, in->mac_data, 64);
	t.mac_keep = in->mac_keep;
	t.mac_last = in->mac_last;
	t.mac_err = in->mac_err;
	t.mac_home = in->mac_home;
	t.mco_valid = in->mco_valid;
	t.mco_kind = in->mco_kind;
	t.mco_qpn = in->mco_qpn;
	memcpy(&t.mco_gid, in->mco_gid, 16);
	t.sro_valid = in->sro_valid;
	t.sro_kind = in->sro.op;
	t.sro_srqn = in->sro.srqn;
	t.sro_limit = in->sro.limit;
	t.sro_pd = in->sro.pd;
	t.sro_xrc = in->sro.xrc;
	t.sro_xrcd = in->sro.xrcd;
	t.sro_cqn = in->sro.cqn;
	t.sro_addr = in->sro.addr;
	t.sro_log_entries = in->sro.log_entries;
	t.sro_log_stride = in->sro.log_stride;
	t.srq_db_valid = in->srq_db_valid;
	t.srq_db_srqn = in->srq_db_srqn;
	t.srq_db_pi = in->srq_db_pi;
	t.srq_ev_ready = in->srq_ev_ready;
	t.db_valid = in->db_valid;
	t.db_qpn = in->db_qpn;
	t.db_pi = in->db_pi;
	t.qpc_valid = in->qpc_valid;
	t.qpc_op = in->qpc.op;
	t.qpc_qpn = in->qpc.qpn;
	t.qpc_psn = in->qpc.psn;
	t.aqc_valid = in->aqc_valid;
	t.aqc_op = in->aqc.op;
	t.aqc_qpn = in->aqc.qpn;
	t.aqc_psn = in->aqc.psn;
	t.fence_req = in->fence_req;
	t.cfg_we = in->cfg_we;
	t.cfg_qpn = in->cfg.qpn;
	t.cfg_exists = in->cfg.exists;
	t.cfg_state = in->cfg.state;
	t.cfg_type = in->cfg.type;
	t.cfg_srq = in->cfg.srq;
	t.cfg_srqn = in->cfg.srqn;
	t.cfg_pd = in->cfg.pd;
	t.cfg_send_cq = in->cfg.send_cq;
	t.cfg_recv_cq = in->cfg.recv_cq;
	t.cfg_rq_addr = in->cfg.rq_addr;
	t.cfg_rq_log_entries = in->cfg.rq_log_entries;
	t.cfg_rq_log_stride = in->cfg.rq_log_stride;
	t.cfg_sq_addr = in->cfg.sq_addr;
	t.cfg_sq_log_entries = in->cfg.sq_log_entries;
	t.cfg_sq_log_stride = in->cfg.sq_log_stride;
	t.cfg_acc = in->cfg.acc;
	t.cfg_max_dest = in->cfg.max_dest;
	t.cfg_timeout = in->cfg.timeout;
	t.cfg_retry = in->cfg.retry;
	t.cfg_rnr_retry = in->cfg.rnr_retry;
	t.cfg_mtu = in->cfg.mtu;
	t.cfg_min_rnr = in->cfg.min_rnr;
	t.cfg_dest_qpn = in->cfg.dest_qpn;
	t.cfg_pkey = in->cfg.pkey;
	t.cfg_qkey = in->cfg.qkey;
	t.cfg_sgid = in->cfg.sgid;
	memcpy(&t.cfg_dgid, in->cfg.dgid, 16);
	t.qpr_ready = in->qpr_ready;
	t.sync_req = in->sync_req;
	t.cycles = in->cycles;
	t.mro_ready = in->mro_ready;
	t.mro_rsp_valid = in->mro_rsp_valid;
	t.mro_rsp = in->mro_rsp;
	t.reads_over = in->reads_over;
	t.gid_we = in->gid_we;
	t.gid_widx = in->gid.idx;
	t.gid_valid = in->gid.valid;
	t.gid_ipv4 = in->gid.ipv4;
	t.gid_vlan_valid = in->gid.vlan_valid;
	t.gid_vlan = in->gid.vlan;
	t.gid_smac = mac48(in->gid.smac);
	memcpy(&t.gid_gid, in->gid.gid, 16);
	t.sent_valid = in->sent_valid;
	t.sent_qpn = in->sent.qpn;
	t.sent_wqe = in->sent.wqe;
	t.sent_psn = in->sent.psn;
	t.sent_opcode = in->sent.opcode;
	t.sent_signaled = in->sent.signaled;
	t.sent_status = in->sent.status;
	t.sent_unrel = in->sent.unrel;
	t.sent_len = in->sent.len;
	t.made_valid = in->made_valid;
	t.made_qpn = in->made_qpn;
	t.made_psn = in->made_psn;
	t.made_asks = in->made_asks;
	t.acked_ready = in->acked_ready;
	t.ack_ready = in->ack_ready;
	t.mr_ready = in->mr_ready;
	t.mrr_valid = in->mrr_valid;
	t.mrr_status = in->mrr[0].status | in->mrr[1].status << 3;
	t.mrr_len = in->mrr[0].len | (uint32_t)in->mrr[1].len << 13;
	t.mrr_last = in->mrr[0].last | in->mrr[1].last << 1;
	for (int i = 0; i < 2; i++)
		memcpy((char *)&t.mrr_addr + 8 * i, &in->mrr[i].addr, 8);
	t.rd_ready = in->rd_ready;
	t.rdr_valid = in->rdr_valid;
	memcpy(&t.rdr_data, in->rdr_data, 64);
	t.rdr_last = in->rdr_last;
	t.rdr_err = in->rdr_err;
	t.wr_ready = in->wr_ready;
	t.cqe_ready = in->cqe_ready;
	t.err_ready = in->err_ready;
	bench_settle(t);

	out->init_done = t.init_done;
	out->sro_ready = t.sro_ready;
	out->sro_ci = t.sro_ans_ci;
	out->sro_pi = t.sro_ans_pi;
	out->sro_limit = t.sro_ans_limit;
	out->srq_db_ready = t.srq_db_ready;
	out->srq_ev_valid = t.srq_ev_valid;
	out->srq_ev_type = t.srq_ev_type;
	out->srq_ev_obj = t.srq_ev_obj;
	out->mco_ready = t.mco_ready;
	out->mco_status = t.mco_status;
	out->mc_any = t.mc_any;
	out->loop_room = t.loop_room;
	out->busy = t.busy;
	out->db_ready = t.db_ready;
	out->qpc_ready = t.qpc_ready;
	out->aqc_ready = t.aqc_ready;
	out->fence_done = t.fence_done;
	out->qpc_psn = t.qpc_rsp_psn;
	out->qpc_pi = t.qpc_rsp_pi;
	out->qpc_ci = t.qpc_rsp_ci;
	out->aqc_psn = t.aqc_rsp_psn;
	out->aqc_pi = t.aqc_rsp_pi;
	out->aqc_ci = t.aqc_rsp_ci;
	out->sent_ready = t.sent_ready;
	out->made_ready = t.made_ready;
	out->acked_valid = t.acked_valid;
	out->acked_qpn = t.acked_qpn;
	out->acked_wqe = t.acked_wqe;
	out->acked_una = t.acked_una;
	out->ack_valid = t.ack_valid;
	out->ack_qpn = t.ack_qpn;
	out->ack_psn = t.ack_psn;
	out->ack_syndrome = t.ack_syndrome;
	out->ack_msn = t.ack_msn;
	out->ack_kind = t.ack_kind;
	out->ack_dup = t.ack_dup;
	out->ack_pd = t.ack_pd;
	out->ack_key = t.ack_key;
	out->ack_va = t.ack_va;
	out->ack_len = t.ack_len;
	out->acked_kind = t.acked_kind;
	out->acked_rd = t.acked_rd;
	out->sync_done = t.sync_done;
	out->timer_armed = t.timer_armed;
	out->timer_cycles = t.timer_cycles;
	out->mro_valid = t.mro_valid;
	out->mro_op = t.mro_op;
	out->mro_key = t.mro_key;
	out->inv_valid = t.inv_valid;
	out->inv_key = t.inv_key;
	out->mro_pd = t.mro_pd;
	out->mro_qpn = t.mro_qpn;
	out->mr_valid = t.mr_valid;
	out->mr_ring = t.mr_ring;
	out->mrr_ready = t.mrr_ready;
	for (int i = 0; i < 2; i++) {
		memcpy(&out->mr[i].pt_addr, (char *)&t.mr_pt_addr + 8 * i, 8);
		memcpy(&out->mr[i].va, (char *)&t.mr_va + 8 * i, 8);
		out->mr[i].key = (uint32_t)(t.mr_key >> (32 * i));
		out->mr[i].pd = t.mr_pd >> (12 * i) & 0xfff;
		out->mr[i].qpn = t.mr_qpn >> (12 * i) & 0xfff;
		out->mr[i].acc = t.mr_acc >> (6 * i) & 0x3f;
		out->mr[i].whole = t.mr_whole >> i & 1;
		out->mr[i].aligned = t.mr_aligned >> i & 1;
		out->mr[i].len = t.mr_len >> (13 * i) & 0x1fff;
		out->cqe[i].cqn = t.cqe_cqn >> (12 * i) & 0xfff;
		for (int k = 0; k < 4; k++)
			out->cqe[i].w[k] = bits(&t.cqe_data[0], 256 * i + 64 * k, 32) |
					   (uint64_t)bits(&t.cqe_data[0], 256 * i + 64 * k + 32, 32)
						   << 32;
		out->err[i].qpn = t.err_qpn >> (12 * i) & 0xfff;
		out->err[i].event = t.err_event >> (8 * i) & 0xff;
		out->err[i].only = t.err_only >> i & 1;
		memcpy(&out->rd_addr[i], (char *)&t.rd_addr + 8 * i, 8);
		memcpy(&out->wr_addr[i], (char *)&t.wr_addr + 8 * i, 8);
		out->rd_len[i] = t.rd_len >> (13 * i) & 0x1fff;
		out->wr_len[i] = t.wr_len >> (13 * i) & 0x1fff;
		memcpy(out->wr_data[i], (char *)&t.wr_data + 64 * i, 64);
	}
	out->rd_valid = t.rd_valid;
	out->wr_valid = t.wr_valid;
	out->wr_last = t.wr_last;
	out->cqe_valid = t.cqe_valid;
	out->cqe_solicited = t.cqe_solicited;
	out->err_valid = t.err_valid;
	out->cnt = t.cnt;
	out->qc_rx_valid = t.qc_rx_valid;
	out->qc_rx_qpn = t.qc_rx_qpn;
	out->qc_rx_bytes = t.qc_rx_bytes;
	out->qc_rx_hit = t.qc_rx_hit;
	out->qc_resp_valid = t.qc_resp_valid;
	out->qc_resp_qpn = t.qc_resp_qpn;
	out->qc_resp_hit = t.qc_resp_hit;
	out->rx_bytes = t.rx_bytes;
#define LANE(name)                                                              \
	do {                                                                    \
		out->name.valid = t.name##_valid;                               \
		static_assert(sizeof(t.name) <= sizeof(out->name.w), "a lane"); \
		std::memset(out->name.w, 0, sizeof(out->name.w));               \
		std::memcpy(out->name.w, &t.name, sizeof(t.name));              \
	} while (0)
	LANE(trace_acked);
	LANE(trace_in);
	LANE(trace_rsp);
	LANE(trace_req);
	LANE(trace_put);
	LANE(trace_bad);
	LANE(trace_voided);
	LANE(trace_mute);
#undef LANE
	out->class_valid = t.class_valid;
	out->class_rdma = t.class_rdma;
}

extern "C" void rx_model_edge(struct rx_model *m)
{
	bench_edge(m->top);
	m->ctx.timeInc(1);
}
