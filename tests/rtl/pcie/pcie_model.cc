// SPDX-License-Identifier: Apache-2.0
#include "pcie_model.h"

#include <cstring>

#include "Vurdma_pcie.h"
#include "rtl/bench.h"
#include "verilated.h"

struct pcie_model {
	VerilatedContext ctx;
	Vurdma_pcie top{ &ctx };
};

double sc_time_stamp()
{
	return 0;
}

/* Bit fields of packed structs: urdma_pkg's, whose first field is the most significant. */
template <class W> static void put(W &w, unsigned pos, unsigned len, uint64_t v)
{
	for (unsigned i = 0; i < len; i++, pos++) {
		uint32_t bit = 1u << (pos % 32);

		w[pos / 32] = (v >> i & 1) ? w[pos / 32] | bit : w[pos / 32] & ~bit;
	}
}

template <class W> static uint64_t get(const W &w, unsigned pos, unsigned len)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < len; i++, pos++)
		v |= static_cast<uint64_t>(w[pos / 32] >> (pos % 32) & 1) << i;
	return v;
}

template <class W> static void put_words(W &w, unsigned pos, const uint8_t *data)
{
	uint32_t v[16];

	std::memcpy(v, data, sizeof(v));
	for (unsigned i = 0; i < 16; i++)
		put(w, pos + 32 * i, 32, v[i]);
}

static const unsigned WR_BITS = 64 + 13 + 512 + 1;
static const unsigned RD_BITS = 64 + 13;

pcie_model *pcie_model_new(void)
{
	return new pcie_model;
}

void pcie_model_free(pcie_model *m)
{
	m->top.final();
	delete m;
}

void pcie_model_eval(pcie_model *m, const pcie_in *in, pcie_out *out)
{
	Vurdma_pcie &t = m->top;

	t.rst = in->rst;
	t.cycles = in->cycles;
	t.s_axis_cq_tvalid = in->cq.valid;
	if (in->cq.valid) {
		std::memcpy(&t.s_axis_cq_tdata[0], in->cq.data, 64);
		std::memcpy(&t.s_axis_cq_tuser[0], in->cq.user, 24);
		t.s_axis_cq_tkeep = in->cq.keep;
		t.s_axis_cq_tlast = in->cq.last;
	}
	t.s_axis_rc_tvalid = in->rc.valid;
	if (in->rc.valid) {
		std::memcpy(&t.s_axis_rc_tdata[0], in->rc.data, 64);
		std::memcpy(&t.s_axis_rc_tuser[0], in->rc.user, 24);
		t.s_axis_rc_tkeep = in->rc.keep;
		t.s_axis_rc_tlast = in->rc.last;
	}
	t.m_axis_cc_tready = in->cc_ready;
	t.m_axis_rq_tready = in->rq_ready;
	t.cfg_max_payload = in->max_payload;
	t.cfg_max_read_req = in->max_read_req;
	t.cfg_bus_master_en = in->bus_master_en;
	t.stop = in->stop;
	t.irq_ready = in->irq_ready;
	t.reg_req_ready = in->reg_req_ready;
	t.reg_rsp_valid = in->reg_rsp_valid;
	t.reg_rsp_data = in->reg_rsp_data;
	t.db_ready = in->db_ready;
	t.irq_req_valid = in->irq_req_valid;
	t.irq_req_vec = in->irq_req_vec;

	uint32_t v = 0;

	for (unsigned i = 0; i < RD_N; i++) {
		v |= static_cast<uint32_t>(in->rd[i].valid) << i;
		if (in->rd[i].valid) {
			put(t.rd_req, i * RD_BITS, 13, in->rd[i].len);
			put(t.rd_req, i * RD_BITS + 13, 64, in->rd[i].addr);
		}
	}
	t.rd_req_valid = v;
	v = 0;
	for (unsigned i = 0; i < WR_N; i++) {
		const dma_wr_beat *w = &in->wr[i];

		v |= static_cast<uint32_t>(w->valid) << i;
		if (w->valid) {
			put(t.wr, i * WR_BITS, 1, w->last);
			put_words(t.wr, i * WR_BITS + 1, w->data);
			put(t.wr, i * WR_BITS + 513, 13, w->len);
			put(t.wr, i * WR_BITS + 526, 64, w->addr);
		}
	}
	t.wr_valid = v;

	bench_settle(t);

	out->cq_ready = t.s_axis_cq_tready;
	out->rc_ready = t.s_axis_rc_tready;
	std::memset(out->cc.user, 0, sizeof(out->cc.user));
	std::memset(out->rq.user, 0, sizeof(out->rq.user));
	out->cc.valid = t.m_axis_cc_tvalid;
	std::memcpy(out->cc.data, &t.m_axis_cc_tdata[0], 64);
	std::memcpy(out->cc.user, &t.m_axis_cc_tuser[0], 12);
	out->cc.keep = t.m_axis_cc_tkeep;
	out->cc.last = t.m_axis_cc_tlast;
	out->rq.valid = t.m_axis_rq_tvalid;
	std::memcpy(out->rq.data, &t.m_axis_rq_tdata[0], 64);
	std::memcpy(out->rq.user, &t.m_axis_rq_tuser[0], 20);
	out->rq.keep = t.m_axis_rq_tkeep;
	out->rq.last = t.m_axis_rq_tlast;
	out->irq_valid = t.irq_valid;
	out->irq_vec = t.irq_vec;
	out->reg_req_valid = t.reg_req_valid;
	out->reg_strb = get(t.reg_req, 0, 8);
	out->reg_wdata = get(t.reg_req, 8, 64);
	out->reg_addr = get(t.reg_req, 72, 16);
	out->reg_write = get(t.reg_req, 88, 1);
	out->db_valid = t.db_valid;
	out->db_data = get(t.db, 0, 64);
	out->db_offset = get(t.db, 64, 12);
	out->db_page = get(t.db, 76, 10);
	out->rd_ready = t.rd_req_ready;
	out->rd_rsp_valid = t.rd_rsp_valid;
	out->rd_err = get(t.rd_rsp, 0, 1);
	out->rd_last = get(t.rd_rsp, 1, 1);
	for (unsigned i = 0; i < 16; i++) {
		uint32_t w = get(t.rd_rsp, 2 + 32 * i, 32);

		std::memcpy(out->rd_data + 4 * i, &w, 4);
	}
	out->wr_ready = t.wr_ready;
	out->irq_req_ready = t.irq_req_ready;
	out->wr_open = t.wr_open;
	out->busy = t.busy;
	out->timer_armed = t.timer_armed;
	out->timer_cycles = t.timer_cycles;
	out->rd_tlp = t.cnt_rd_tlp;
	out->wr_tlp = t.cnt_wr_tlp;
	out->dma_drop = t.cnt_dma_drop;
	out->cpl_err = t.cnt_cpl_err;
	out->cpl_timeout = t.cnt_cpl_timeout;
	out->cpl_unexpected = t.cnt_cpl_unexpected;
	out->db_bad = t.cnt_db_bad;
	out->mmio_bad = t.cnt_mmio_bad;
}

void pcie_model_edge(pcie_model *m)
{
	bench_edge(m->top);
}
