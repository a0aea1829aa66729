// SPDX-License-Identifier: Apache-2.0
#include "eth_rx_model.h"

#include <cstring>

#include "Veth_rx_test_top.h"
#include "rtl/bench.h"
#include "verilated.h"

struct eth_model {
	VerilatedContext ctx;
	Veth_rx_test_top top{ &ctx };
};

extern "C" struct eth_model *eth_model_new(void)
{
	return new eth_model;
}

extern "C" void eth_model_free(struct eth_model *m)
{
	m->top.final();
	delete m;
}

extern "C" void eth_model_settle(struct eth_model *m, const struct eth_in *in, struct eth_out *out)
{
	Veth_rx_test_top &t = m->top;

	t.rst = in->rst;
	if (in->cfg) {
		const struct eth_cfg *c = in->cfg;

		t.ctrl = c->ctrl;
		t.rss = c->rss;
		memcpy(&t.key, c->key, 40);
		memcpy(&t.mac, c->mac, 6);
		t.uc_valid = c->uc_valid;
		memcpy(&t.uc, c->uc, 96);
		memcpy(&t.mc_hash, c->mc_hash, 32);
		memcpy(&t.rss_table, c->table, 128);
	}
	t.vlan_we = 1;
	t.vlan_word = in->vlan_word;
	t.vlan_bits = in->vlan_bits;
	t.enable = in->enable;
	memcpy(&t.base, in->base, 64);
	memcpy(&t.log_entries, in->log_entries, 8);
	memcpy(&t.buf64, in->buf64, 8);
	t.db_valid = in->db_valid;
	t.db_q = in->db_q;
	t.db_pi = in->db_pi;
	t.rx_valid = in->rx_valid;
	if (in->rx_valid)
		memcpy(&t.rx_data, in->rx_data, 64);
	t.rx_keep = in->rx_keep;
	t.rx_last = in->rx_last;
	t.rx_err = in->rx_err;
	t.class_valid = in->class_valid;
	t.class_rdma = in->class_rdma;
	t.rdma_first = in->rdma_first;
	t.rd_ready = in->rd_ready;
	t.rdr_valid = in->rdr_valid;
	if (in->rdr_valid)
		memcpy(&t.rdr_data, in->rdr_data, 64);
	t.rdr_last = 1;
	t.rdr_err = in->rdr_err;
	t.wr_ready = in->wr_ready;
	t.rxc_ready = in->rxc_ready;
	bench_settle(t);

	out->busy = t.busy;
	out->active = t.active;
	out->err = t.err;
	memcpy(out->ci, &t.ci, 16);
	out->rd_valid = t.rd_valid;
	out->rd_addr = t.rd_addr;
	out->rd_len = t.rd_len;
	out->wr_valid = t.wr_valid;
	if (t.wr_valid) {
		out->wr_addr = t.wr_addr;
		out->wr_len = t.wr_len;
		out->wr_last = t.wr_last;
		memcpy(out->wr_data, &t.wr_data, 64);
	}
	out->rxc_valid = t.rxc_valid;
	if (t.rxc_valid) {
		out->rxc.q = t.rxc_q;
		out->rxc.vlan = t.rxc_vlan;
		out->rxc.tci = t.rxc_tci;
		out->rxc.hash_type = t.rxc_hash_type;
		out->rxc.hash = t.rxc_hash;
		out->rxc.bufs = t.rxc_bufs;
		out->rxc.len = t.rxc_len;
		out->rxc.csum = t.rxc_csum;
		out->rxc.index = t.rxc_index;
	}
	out->cnt = t.cnt;
	out->trace_eth_in_valid = t.trace_eth_in_valid;
	out->trace_eth_in = t.trace_eth_in;
	out->trace_eth_buf_valid = t.trace_eth_buf_valid;
	out->trace_eth_buf = t.trace_eth_buf;
}

extern "C" void eth_model_edge(struct eth_model *m)
{
	bench_edge(m->top);
}
