// SPDX-License-Identifier: Apache-2.0
// C interface to the ports of urdma_ctl, and the stand-ins around it. Bit positions are those of
// urdma_pkg's structs.
#include <cstring>
#include <deque>
#include <memory>

#include "Vurdma_ctl.h"
#include "rtl/bench.h"
#include "ctl_model.h"
#include "urdma_hw.h"
#include "urdma_trace_pkg.h"

namespace
{

template <class T> uint64_t get(const T &port, unsigned lsb, unsigned width)
{
	uint32_t words[(sizeof(T) + 3) / 4] = {};
	memcpy(words, &port, sizeof(T));
	return bits_get(words, lsb, width);
}

#define FIELD_PUT(port, at, type, member, value) \
	put(port, FIELD_AT(at, type, member), type##_##member##_W, value)
#define FIELD(port, at, type, member) get(port, FIELD_AT(at, type, member), type##_##member##_W)

template <class T> void put(T &port, unsigned lsb, unsigned width, uint64_t value)
{
	uint32_t words[(sizeof(T) + 3) / 4] = {};
	memcpy(words, &port, sizeof(T));
	bits_set(words, lsb, width, value);
	memcpy(&port, words, sizeof(T));
}

template <class T> seen_ring ring(const T &p, unsigned lsb)
{
	seen_ring r = {};
	r.log_stride = FIELD(p, lsb, ring_t, log_stride);
	r.log_entries = FIELD(p, lsb, ring_t, log_entries);
	r.page_shift = FIELD(p, FIELD_AT(lsb, ring_t, pt), pt_t, page_shift);
	r.levels = FIELD(p, FIELD_AT(lsb, ring_t, pt), pt_t, levels);
	r.addr = FIELD(p, FIELD_AT(lsb, ring_t, pt), pt_t, addr);
	return r;
}

template <class T> seen_gid gid_of(const T &p, unsigned lsb)
{
	seen_gid g = {};
	g.lo = get(p, FIELD_AT(lsb, gid_t, gid), 64);
	g.hi = get(p, FIELD_AT(lsb + 64, gid_t, gid), 64);
	g.smac = FIELD(p, lsb, gid_t, smac);
	g.vlan = FIELD(p, lsb, gid_t, vlan);
	g.vlan_valid = FIELD(p, lsb, gid_t, vlan_valid);
	g.ipv4 = FIELD(p, lsb, gid_t, ipv4);
	g.valid = FIELD(p, lsb, gid_t, valid);
	return g;
}

struct read_req {
	uint64_t addr, due;
	uint32_t len, sent;
};
struct doorbell {
	uint32_t page, offset;
	uint64_t data;
};
struct report {
	uint32_t qpn, event;
	bool only_event;
};
struct fence {
	bool up, done;
	uint64_t due;
};

} // namespace

struct ctl {
	std::unique_ptr<VerilatedContext> context{ new VerilatedContext };
	std::unique_ptr<Vurdma_ctl> m;
	world w = {};
	std::deque<read_req> reads;
	std::deque<doorbell> dbs;
	std::deque<report> errs[ERR_SRCS];
	bool mro_taken = false; /* an operation waits for its answer */
	uint64_t mro_due = 0;
	uint32_t mro_idx = 0, mro_op = 0, mro_qpn = 0;
	seen_mr mro_new = {};
	bool sro_up = false; /* an operation on an SRQ waits for its answer */
	uint64_t sro_due = 0;
	bool qco_up = false; /* an operation on counters waits for its answer */
	uint64_t qco_due = 0;
	bool mco_up = false; /* an operation of groups waits for its answer */
	uint64_t mco_due = 0;
	unsigned int resized_age = 2; /* cycles since the last configuration of a CQ */
	uint64_t resized_next = 0;
	fence fences[FENCE_N] = {};
	uint64_t qpc_due[OWN_N] = {};
	bool qpc_up[OWN_N] = {};
	bool reg_rsp = false;
	uint64_t reg_data = 0;
	bool qpr_rsp[3] = {};
	bool wr_held = false;
	uint64_t wr_held_addr = 0;
	uint64_t tx_rise_of_round = 0;
	bool in_round = false;
};

static bool ready(ctl *c)
{
	return rnd_below(&c->w.rnd, 100) >= c->w.stall_percent;
}

// Groups: members in a list, each operation after some cycles.
static void groups(ctl *c, bool rst)
{
	Vurdma_ctl *m = c->m.get();
	world *w = &c->w;

	if (rst)
		w->n_members = 0;
	m->mc_any = w->n_members != 0;
	m->mco_ready = 0;
	if (rst || !m->mco_valid) {
		c->mco_up = false;
		return;
	}
	if (!c->mco_up) {
		c->mco_up = true;
		c->mco_due = w->cycle + rnd_below(&w->rnd, w->mco_delay_max + 1);
	}
	if (w->cycle < c->mco_due)
		return;
	unsigned kind = FIELD(m->mco, 0, mc_op_t, kind), kept = 0;
	seen_member op = { (uint32_t)FIELD(m->mco, 0, mc_op_t, qpn),
			   get(m->mco, FIELD_AT(0, mc_op_t, gid), 64),
			   get(m->mco, FIELD_AT(64, mc_op_t, gid), 64) };
	for (unsigned i = 0; i < w->n_members; i++) {
		const seen_member &s = w->members[i];

		if (s.qpn != op.qpn || (kind != MC_LEAVE && (s.lo != op.lo || s.hi != op.hi)))
			w->members[kept++] = s;
	}
	bool was = kept != w->n_members;
	c->mco_up = false;
	m->mco_ready = 1;
	m->mco_status = MC_OK;
	w->n_mco[kind]++;
	if (kind == MC_ATTACH && was) {
		m->mco_status = MC_EXISTS;
	} else if (kind == MC_ATTACH && (w->members_full || kept == 64)) {
		m->mco_status = MC_FULL;
	} else if (kind == MC_ATTACH) {
		w->members[w->n_members++] = op;
	} else {
		if (kind == MC_DETACH && !was)
			m->mco_status = MC_NONE;
		w->n_members = kept;
	}
}

// SRQs: each operation after some cycles.
static void srqs(ctl *c, bool rst)
{
	Vurdma_ctl *m = c->m.get();
	world *w = &c->w;

	m->sro_ready = 0;
	put(m->sro_ans, 0, srq_ans_t_W, rnd_next(&w->rnd));
	if (rst || !m->sro_valid) {
		if (rst)
			memset(w->srq, 0, sizeof(w->srq));
		c->sro_up = false;
		return;
	}
	if (!c->sro_up) {
		c->sro_up = true;
		c->sro_due = w->cycle + rnd_below(&w->rnd, w->sro_delay_max + 1);
	}
	if (w->cycle < c->sro_due)
		return;
	unsigned kind = FIELD(m->sro, 0, srq_op_t, kind);
	unsigned srqn = FIELD(m->sro, 0, srq_op_t, srqn);
	unsigned cfg = FIELD_AT(0, srq_op_t, cfg);
	seen_srq &q = w->srq[srqn];
	c->sro_up = false;
	m->sro_ready = 1;
	w->n_sro++;
	if (q.valid == (kind == SRO_CREATE))
		w->protocol_errors++; // creates what is, or is about one that is not
	if (kind == SRO_QUERY) {
		FIELD_PUT(m->sro_ans, 0, srq_ans_t, pi, q.pi);
		FIELD_PUT(m->sro_ans, 0, srq_ans_t, ci, q.ci);
		FIELD_PUT(m->sro_ans, 0, srq_ans_t, limit, q.limit);
		return;
	}
	if (kind == SRO_MODIFY) {
		q.limit = FIELD(m->sro, 0, srq_op_t, limit);
	} else {
		q = seen_srq{};
		q.valid = kind == SRO_CREATE;
		q.ring = ring(m->sro, FIELD_AT(cfg, srq_cfg_t, ring));
		q.pd = FIELD(m->sro, cfg, srq_cfg_t, pd);
		q.xrc = FIELD(m->sro, cfg, srq_cfg_t, xrc);
		q.xrcd = FIELD(m->sro, cfg, srq_cfg_t, xrcd);
		q.cqn = FIELD(m->sro, cfg, srq_cfg_t, cqn);
	}
	w->srq_at[srqn] = w->cycle;
	w->n_cfg++;
}

// Counters of QPs: each operation after some cycles.
static void counters(ctl *c, bool rst)
{
	Vurdma_ctl *m = c->m.get();
	world *w = &c->w;

	m->qco_ready = 0;
	for (unsigned i = 0; i < URDMA_QCNT_GROUP; i++)
		put(m->qco_ans, QC_VALUE_W * i, QC_VALUE_W, rnd_next(&w->rnd));
	if (rst || !m->qco_valid) {
		if (rst)
			memset(w->qp_set, 0, sizeof(w->qp_set));
		c->qco_up = false;
		return;
	}
	if (!c->qco_up) {
		c->qco_up = true;
		c->qco_due = w->cycle + rnd_below(&w->rnd, w->qco_delay_max + 1);
	}
	if (w->cycle < c->qco_due)
		return;
	unsigned kind = FIELD(m->qco, 0, qc_op_t, kind), set = FIELD(m->qco, 0, qc_op_t, cset);
	c->qco_up = false;
	m->qco_ready = 1;
	w->n_qco[kind]++;
	if (kind == QCO_BIND) {
		unsigned qpn = FIELD(m->qco, 0, qc_op_t, qpn);

		w->qp_set[qpn] = set;
		w->qp_set_at[qpn] = w->cycle;
	}
	if (kind == QCO_CLEAR)
		w->cleared = set;
	if (kind == QCO_QUERY)
		for (unsigned i = 0; i < URDMA_QCNT_GROUP; i++)
			put(m->qco_ans, QC_VALUE_W * i, QC_VALUE_W,
			    seen_count(set, FIELD(m->qco, 0, qc_op_t, group), i));
	w->n_cfg += kind != QCO_BIND || set; // a QP that ends is told of by the fence
}

extern "C" {

struct ctl *ctl_new(uint64_t seed)
{
	ctl *c = new ctl;
	c->context->randSeed(1);
	c->m.reset(new Vurdma_ctl{ c->context.get() });
	c->w.rnd = seed * 0x9e3779b97f4a7c15ull + 1;
	c->w.rd_latency_min = 20;
	c->w.rd_latency_max = 200;
	c->w.stall_percent = 20;
	c->w.fence_delay_max = 300;
	c->w.qpc_delay_max = 6;
	c->w.mro_delay_max = 12;
	c->w.mco_delay_max = 12;
	c->w.sro_delay_max = 12;
	c->w.qco_delay_max = 12;
	c->m->mac_default = 0x665544332202ull;
	c->m->link_up = 1;
	c->m->rst = 1;
	for (int i = 0; i < 5; i++)
		ctl_tick(c);
	c->m->rst = 0;
	return c;
}

void ctl_free(struct ctl *c)
{
	c->m->final();
	delete c;
}

struct world *ctl_world(struct ctl *c)
{
	return &c->w;
}
bool ctl_busy(struct ctl *c)
{
	return c->m->busy;
}
bool ctl_core_rst(struct ctl *c)
{
	return c->m->core_rst;
}
uint64_t ctl_cycles(struct ctl *c)
{
	return c->m->cycles;
}

void ctl_tick(struct ctl *c)
{
	Vurdma_ctl *m = c->m.get();
	world *w = &c->w;
	bool rst = m->core_rst;

	w->cycle++;
	// inputs of this cycle
	m->blocks_init_done = !rst;
	m->rd_req_ready = ready(c);
	m->wr_ready = ready(c);
	m->mro_ready = !c->mro_taken && ready(c);
	m->mro_rsp_valid = 0;
	if (rst)
		c->mro_taken = false;
	if (c->mro_taken && w->cycle >= c->mro_due) {
		seen_mr &r = w->mr[c->mro_idx];

		c->mro_taken = false;
		m->mro_rsp_valid = 1;
		m->mro_rsp = MRO_OK;
		if (c->mro_op == MRO_QP_END) {
			if (w->windows[c->mro_qpn]) {
				w->windows[c->mro_qpn]--;
				m->mro_rsp = MRO_BUSY;
			}
		} else if (c->mro_op == MRO_DESTROY && r.bound) {
			m->mro_rsp = MRO_BUSY;
		} else {
			if (c->mro_op > MRO_DESTROY || r.valid == (c->mro_op == MRO_CREATE))
				w->protocol_errors++; /* creates what is, destroys what is not */
			c->mro_new.bound = r.bound;
			r = c->mro_new;
			w->mr_at[c->mro_idx] = w->cycle;
			w->n_cfg++;
		}
	}
	groups(c, rst);
	srqs(c, rst);
	counters(c, rst);
	m->cq_cfg_ready = ready(c);
	if (c->resized_age < 2 && ++c->resized_age == 2)
		m->cq_resized = c->resized_next;
	else if (c->resized_age < 2)
		m->cq_resized = ~UINT64_C(0) >> 31;
	m->eq_cfg_ready = ready(c);
	m->mgr_ev_ready = ready(c);
	m->cmd_ev_ready = ready(c);
	m->port_ev_ready = ready(c);
	m->sq_db_ready = !w->hold_db && ready(c);
	m->rq_db_ready = !w->hold_db && ready(c);
	m->srq_db_ready = !w->hold_db && ready(c);
	m->cq_db_ready = !w->hold_db && ready(c);
	m->eq_db_ready = !w->hold_db && ready(c);

	m->rd_rsp_valid = 0;
	if (!c->reads.empty() && w->cycle >= c->reads.front().due) {
		read_req &r = c->reads.front();
		bool last = r.sent + 64 >= r.len;
		bool bad = r.addr < w->err_hi && r.addr + r.len > w->err_lo;

		m->rd_rsp_valid = 1;
		FIELD_PUT(m->rd_rsp, 0, dma_rd_rsp_t, err, last && bad);
		FIELD_PUT(m->rd_rsp, 0, dma_rd_rsp_t, last, last);
		for (unsigned i = 0; i < 8; i++) {
			uint64_t word = ~0ull;
			uint64_t at = r.addr + r.sent + 8 * i;
			if (at + 8 <= MEM_SIZE)
				memcpy(&word, w->mem + at, 8);
			put(m->rd_rsp, FIELD_AT(64 * i, dma_rd_rsp_t, data), 64, word);
		}
		r.sent += 64;
		if (last)
			c->reads.pop_front();
	}
	m->dma_busy = w->hold_dma_busy || !c->reads.empty() || m->rd_rsp_valid;

	m->pcie_db_valid = !c->dbs.empty();
	if (!c->dbs.empty()) {
		FIELD_PUT(m->pcie_db, 0, db_t, data, c->dbs.front().data);
		FIELD_PUT(m->pcie_db, 0, db_t, offset, c->dbs.front().offset);
		FIELD_PUT(m->pcie_db, 0, db_t, page, c->dbs.front().page);
	}
	m->qp_err_valid = 0;
	for (int i = 0; i < ERR_SRCS; i++) {
		if (c->errs[i].empty())
			continue;
		m->qp_err_valid |= 1 << i;
		FIELD_PUT(m->qp_err, qp_err_t_W * i, qp_err_t, event_type,
			  c->errs[i].front().event);
		FIELD_PUT(m->qp_err, qp_err_t_W * i, qp_err_t, only_event,
			  c->errs[i].front().only_event);
		FIELD_PUT(m->qp_err, qp_err_t_W * i, qp_err_t, qpn, c->errs[i].front().qpn);
	}

	bool req[FENCE_N] = { (bool)m->tx_fence_req, (bool)m->rx_fence_req, (bool)m->cq_fence_req,
			      (bool)m->mr_flush_req };
	for (int i = 0; i < FENCE_N; i++) {
		fence &f = c->fences[i];
		if (rst) {
			f = fence{};
			c->in_round = false;
			continue;
		}
		if (req[i] && !f.up) {
			f.up = true;
			f.due = w->cycle + 1 + rnd_below(&w->rnd, w->fence_delay_max + 1);
			w->fence_rise[i] = w->cycle;
			if (i == FENCE_TX && !c->in_round) {
				c->in_round = true;
				c->tx_rise_of_round = w->cycle;
			}
		}
		if (!req[i] && f.up && !f.done)
			w->protocol_errors++; // a request that fell without its answer
		if (req[i] && !f.done && w->cycle >= f.due && !w->hold_fence) {
			f.done = true;
			w->fence_done[i] = w->cycle;
		}
		if (!req[i] && f.done && rnd_below(&w->rnd, 3) == 0)
			f.up = f.done = false;
	}
	// a round's last common stage is tx and cq together
	if (c->in_round && req[FENCE_CQ] && c->fences[FENCE_CQ].done && c->fences[FENCE_TX].done) {
		c->in_round = false;
		w->round_start = c->tx_rise_of_round;
		w->n_rounds++;
	}
	m->tx_fence_done = c->fences[FENCE_TX].done;
	m->rx_fence_done = c->fences[FENCE_RX].done;
	m->cq_fence_done = c->fences[FENCE_CQ].done;
	m->mr_flush_done = c->fences[FENCE_MR].done;

	uint8_t qv[OWN_N] = { m->tx_qpc_valid, m->rx_qpc_valid, m->ack_qpc_valid };
	uint64_t qp[OWN_N] = { m->tx_qpc, m->rx_qpc, m->ack_qpc };
	uint8_t qr[OWN_N] = {};
	for (int i = 0; i < OWN_N; i++) {
		if (rst || !qv[i]) {
			c->qpc_up[i] = false;
			continue;
		}
		if (!c->qpc_up[i]) {
			c->qpc_up[i] = true;
			c->qpc_due[i] = w->cycle + rnd_below(&w->rnd, w->qpc_delay_max + 1);
		}
		qr[i] = !w->hold_qpc && w->cycle >= c->qpc_due[i];
		if (!qr[i])
			continue;
		owner &o = w->own[i][FIELD_OF(qp[i], qpc_t, qpn)];
		uint64_t rsp = FIELD_IN(qpc_rsp_t, psn, o.psn) | FIELD_IN(qpc_rsp_t, pi, o.pi) |
			       FIELD_IN(qpc_rsp_t, ci, o.ci) |
			       FIELD_IN(qpc_rsp_t, draining, o.draining);
		if (i == OWN_TX)
			m->tx_qpc_rsp = rsp;
		else if (i == OWN_RX)
			m->rx_qpc_rsp = rsp;
		else
			m->ack_qpc_rsp = rsp;
		unsigned op = FIELD_OF(qp[i], qpc_t, op);
		o.at[op] = w->cycle;
		o.count[op]++;
		w->n_qpc++;
		c->qpc_up[i] = false;
		if (op == QPC_RESET) {
			o.psn = o.pi = o.ci = 0;
			o.err = false;
		} else if (op == QPC_RQ_PSN || op == QPC_SQ_PSN) {
			o.psn = qp[i] & 0xffffff;
		} else if (op == QPC_ERR) {
			o.err = true;
		} else if (op == QPC_SQD) {
			o.sqd_psn = qp[i] & 0xffffff;
		}
	}
	m->tx_qpc_ready = qr[OWN_TX];
	m->rx_qpc_ready = qr[OWN_RX];
	m->ack_qpc_ready = qr[OWN_ACK];

	m->eval();
	rst = m->core_rst;

	// what moves at this edge
	if (!rst && m->rd_req_valid && m->rd_req_ready) {
		read_req r = {};
		r.addr = FIELD(m->rd_req, 0, dma_rd_req_t, addr);
		r.len = FIELD(m->rd_req, 0, dma_rd_req_t, len);
		r.due = w->cycle + w->rd_latency_min +
			rnd_below(&w->rnd, w->rd_latency_max - w->rd_latency_min + 1);
		c->reads.push_back(r);
		w->n_rd++;
		w->last_rd_addr = r.addr;
		w->last_rd_len = r.len;
	}
	// the owners of QP state have forgotten it
	if (!rst && m->trace_qp_end_valid) {
		uint32_t qpn = FIELD_OF(m->trace_qp_end, tr_qp_end_t, qpn);

		for (int i = 0; i < OWN_N; i++)
			w->protocol_errors += w->own[i][qpn].at[QPC_RESET] <= w->qp_end_at[qpn];
		w->n_qp_end[qpn]++;
		w->qp_end_at[qpn] = w->cycle;
		w->qp_end_reset[qpn] = FIELD_OF(m->trace_qp_end, tr_qp_end_t, reset);
	}
	// one event for each completion, in its cycle
	w->protocol_errors += !rst && m->trace_cmd_valid != (m->wr_valid && m->wr_ready);
	if (!rst && c->wr_held &&
	    (!m->wr_valid || FIELD(m->wr, 0, dma_wr_t, addr) != c->wr_held_addr))
		w->protocol_errors++;
	c->wr_held = !rst && m->wr_valid && !m->wr_ready;
	if (!rst && m->wr_valid) {
		c->wr_held_addr = FIELD(m->wr, 0, dma_wr_t, addr);
		if (m->wr_ready) {
			uint64_t addr = c->wr_held_addr;
			if (FIELD(m->wr, 0, dma_wr_t, len) != 64 ||
			    !FIELD(m->wr, 0, dma_wr_t, last))
				w->protocol_errors++;
			for (unsigned i = 0; i < 8 && addr + 64 <= MEM_SIZE; i++) {
				uint64_t word = get(m->wr, FIELD_AT(64 * i, dma_wr_t, data), 64);
				memcpy(w->mem + addr + 8 * i, &word, 8);
			}
			uint64_t word = get(m->wr, dma_wr_t_data_LSB, 64);
			if (FIELD_OF(m->trace_cmd, tr_cmd_t, tag) != HW_GET(URDMA_CPL0_TAG, word) ||
			    FIELD_OF(m->trace_cmd, tr_cmd_t, status) !=
				    HW_GET(URDMA_CPL0_STATUS, word))
				w->protocol_errors++;
			w->wr_addr[w->n_wr % LOG_SIZE] = addr;
			w->wr_at[w->n_wr++ % LOG_SIZE] = w->cycle;
		}
	}
	if (!rst && m->mro_valid && m->mro_ready) {
		seen_mr r = {};

		c->mro_taken = true;
		c->mro_due = w->cycle + 1 + rnd_below(&w->rnd, w->mro_delay_max + 1);
		c->mro_op = FIELD(m->mro, 0, mr_op_t, op);
		c->mro_idx = get(m->mro, FIELD_AT(8, mr_op_t, key), 24);
		c->mro_qpn = FIELD(m->mro, 0, mr_op_t, qpn);
		w->n_mro++;
		if (c->mro_idx >= N_MR) {
			w->protocol_errors++;
			c->mro_idx = 0;
		}
		if (c->mro_op == MRO_CREATE) {
			r.valid = true;
			r.page_shift = FIELD(m->mro, mr_op_t_pt_LSB, pt_t, page_shift);
			r.levels = FIELD(m->mro, mr_op_t_pt_LSB, pt_t, levels);
			r.addr = FIELD(m->mro, mr_op_t_pt_LSB, pt_t, addr);
			r.len = FIELD(m->mro, 0, mr_op_t, len);
			r.va = FIELD(m->mro, 0, mr_op_t, va);
			r.all = FIELD(m->mro, 0, mr_op_t, all);
			r.zero_based = FIELD(m->mro, 0, mr_op_t, zero_based);
			r.acc = FIELD(m->mro, 0, mr_op_t, acc);
			r.pd = FIELD(m->mro, 0, mr_op_t, pd);
			r.variant = get(m->mro, mr_op_t_key_LSB, 8);
			r.kind = FIELD(m->mro, 0, mr_op_t, kind);
		}
		c->mro_new = r;
	}
	if (!rst && m->cq_cfg_valid && m->cq_cfg_ready) {
		seen_cq &q = w->cq[m->cq_cfg_cqn];
		seen_ring new_ring = ring(m->cq_cfg, cq_cfg_t_ring_LSB);
		bool busy = new_ring.log_entries < q.room;

		switch (m->cq_cfg_op) {
		case CQO_SET:
			q.db_page = FIELD(m->cq_cfg, 0, cq_cfg_t, db_page);
			q.eqn = FIELD(m->cq_cfg, 0, cq_cfg_t, eqn);
			q.overrun = FIELD(m->cq_cfg, 0, cq_cfg_t, overrun);
			q.count = FIELD(m->cq_cfg, 0, cq_cfg_t, count);
			q.period = FIELD(m->cq_cfg, 0, cq_cfg_t, period);
			q.ring = new_ring;
			q.valid = FIELD(m->cq_cfg, 0, cq_cfg_t, valid);
			break;
		case CQO_MODERATE:
			q.count = FIELD(m->cq_cfg, 0, cq_cfg_t, count);
			q.period = FIELD(m->cq_cfg, 0, cq_cfg_t, period);
			w->protocol_errors += !q.valid;
			break;
		default:
			q.ci = m->cq_cfg_ci;
			if (!busy)
				q.ring = new_ring;
			w->protocol_errors += !q.valid;
		}
		/* two cycles later; in between it may be anything */
		c->resized_next = (uint64_t)busy << cq_resized_t_busy_LSB | q.pi;
		c->resized_age = 0;
		w->cq_at[m->cq_cfg_cqn] = w->cycle;
		w->n_cfg++;
	}
	if (!rst && m->eq_cfg_valid && m->eq_cfg_ready) {
		seen_eq &q = w->eq[m->eq_cfg_eqn];
		q.vec = FIELD(m->eq_cfg, 0, eq_cfg_t, vec);
		q.addr = FIELD(m->eq_cfg, 0, eq_cfg_t, addr);
		q.log_entries = FIELD(m->eq_cfg, 0, eq_cfg_t, log_entries);
		q.valid = FIELD(m->eq_cfg, 0, eq_cfg_t, valid);
		w->eq_at[m->eq_cfg_eqn] = w->cycle;
		w->n_cfg++;
	}
	struct {
		bool on;
		uint64_t v;
		bool cmd;
	} evs[3] = { { m->mgr_ev_valid && m->mgr_ev_ready, m->mgr_ev, false },
		     { m->cmd_ev_valid && m->cmd_ev_ready, m->cmd_ev, true },
		     { m->port_ev_valid && m->port_ev_ready, m->port_ev, false } };
	for (auto &e : evs) {
		if (rst || !e.on)
			continue;
		seen_ev &s = w->ev[w->n_ev++ % LOG_SIZE];
		s.cmd = e.cmd;
		s.obj = FIELD_OF(e.v, eqe_req_t, obj);
		s.type = FIELD_OF(e.v, eqe_req_t, ev_type);
		s.eqn = FIELD_OF(e.v, eqe_req_t, eqn);
		s.data = FIELD_OF(e.v, eqe_req_t, data);
		s.at = w->cycle;
	}
	struct {
		bool on;
		seen_db d;
	} d[6] = {
		{ m->srq_db_valid && m->srq_db_ready,
		  { 'S', (uint32_t)FIELD_OF(m->srq_db, srq_db_t, srqn), 0, 0,
		    (uint32_t)FIELD_OF(m->srq_db, srq_db_t, pi) } },
		{ m->sq_db_valid && m->sq_db_ready,
		  { 's', (uint32_t)FIELD_OF(m->sq_db, wq_db_t, qpn), 0, 0,
		    (uint32_t)FIELD_OF(m->sq_db, wq_db_t, pi) } },
		{ m->rq_db_valid && m->rq_db_ready,
		  { 'r', (uint32_t)FIELD_OF(m->rq_db, wq_db_t, qpn), 0, 0,
		    (uint32_t)FIELD_OF(m->rq_db, wq_db_t, pi) } },
		{ m->cq_db_valid && m->cq_db_ready,
		  { 'c', (uint32_t)FIELD_OF(m->cq_db, cq_db_t, cqn),
		    (uint32_t)FIELD_OF(m->cq_db, cq_db_t, page),
		    (uint32_t)FIELD_OF(m->cq_db, cq_db_t, arm),
		    (uint32_t)FIELD_OF(m->cq_db, cq_db_t, ci) } },
		{ m->eq_db_valid && m->eq_db_ready,
		  { 'e', (uint32_t)FIELD_OF(m->eq_db, eq_db_t, eqn), 0,
		    (uint32_t)FIELD_OF(m->eq_db, eq_db_t, arm),
		    (uint32_t)FIELD_OF(m->eq_db, eq_db_t, ci) } },
		{ (bool)m->eth_db_valid,
		  { "TRC?"[FIELD_OF(m->eth_db, eth_db_t, kind)],
		    (uint32_t)FIELD_OF(m->eth_db, eth_db_t, q), 0,
		    (uint32_t)FIELD_OF(m->eth_db, eth_db_t, arm),
		    (uint32_t)FIELD_OF(m->eth_db, eth_db_t, index) } },
	};
	for (auto &e : d)
		if (!rst && e.on)
			w->db[w->n_db++ % LOG_SIZE] = e.d;
	w->protocol_errors += !rst && (m->trace_sq_db_valid != d[1].on ||
				       (d[1].on && m->trace_sq_db != m->sq_db));
	if (!rst && m->trace_rq_db_valid)
		w->rq_lane[w->n_rq_lane++ % LOG_SIZE] = {
			'r', (uint32_t)FIELD_OF(m->trace_rq_db, tr_rq_db_t, qpn), 0, 0,
			(uint32_t)FIELD_OF(m->trace_rq_db, tr_rq_db_t, pi)
		};
	if (!rst && m->gid_wr_valid) {
		w->last_gid_wr = m->gid_wr_idx;
		w->gid_wr[m->gid_wr_idx] = gid_of(m->gid_wr, 0);
		w->n_gid_wr++;
	}
	if (m->reg_rsp_valid)
		w->reg_rsp[w->n_reg_rsp++ % LOG_SIZE] = m->reg_rsp_data;
	// the data of a read stand there in the next cycle and in no other
	uint64_t eth_rdata = rnd_next(&w->rnd);
	if (m->eth_reg_valid) {
		uint32_t addr = FIELD(m->reg_req, 0, reg_req_t, addr) - ETH_REGS;

		if (addr >= ETH_REGS_SIZE || !m->reg_req_valid) {
			w->protocol_errors++;
		} else if (FIELD(m->reg_req, 0, reg_req_t, write)) {
			for (int i = 0; i < 8; i++)
				if (get(m->reg_req, FIELD_AT(i, reg_req_t, strb), 1))
					((uint8_t *)&w->eth_reg[addr / 8])[i] = get(
						m->reg_req, FIELD_AT(8 * i, reg_req_t, wdata), 8);
			w->n_eth_wr++;
		} else {
			eth_rdata = w->eth_reg[addr / 8];
			w->n_eth_rd++;
		}
	}
	if (m->pcie_db_valid && m->pcie_db_ready)
		c->dbs.pop_front();
	for (int i = 0; i < ERR_SRCS; i++)
		if (!rst && (m->qp_err_valid & m->qp_err_ready) >> i & 1)
			c->errs[i].pop_front();

	bench_edge(*m);
	m->eth_reg_rdata = eth_rdata;
	bench_settle(*m);
	m->skip_valid = 0;
	m->cnt = 0;
	m->tx_bytes = 0;
	m->rx_bytes = 0;
}

static bool reg_access(ctl *c, bool write, uint32_t addr, uint64_t data, uint64_t *out)
{
	Vurdma_ctl *m = c->m.get();

	m->reg_req_valid = 1;
	FIELD_PUT(m->reg_req, 0, reg_req_t, strb, 0xff);
	FIELD_PUT(m->reg_req, 0, reg_req_t, wdata, data);
	FIELD_PUT(m->reg_req, 0, reg_req_t, addr, addr);
	FIELD_PUT(m->reg_req, 0, reg_req_t, write, write);
	do
		ctl_tick(c);
	while (!m->reg_req_ready);
	m->reg_req_valid = 0;
	if (write)
		return true;
	for (int i = 0; i < 16; i++) {
		m->eval();
		if (m->reg_rsp_valid) {
			*out = m->reg_rsp_data;
			return true;
		}
		ctl_tick(c);
	}
	return false;
}

uint64_t ctl_reg_read(struct ctl *c, uint32_t addr)
{
	uint64_t v = 0xdeaddeaddeaddeadull;

	reg_access(c, false, addr, 0, &v);
	return v;
}

void ctl_reg_write(struct ctl *c, uint32_t addr, uint64_t data)
{
	reg_access(c, true, addr, data, nullptr);
}

void ctl_reg_post(struct ctl *c, bool write, uint32_t addr, uint64_t data, uint32_t strb)
{
	Vurdma_ctl *m = c->m.get();

	m->reg_req_valid = 1;
	FIELD_PUT(m->reg_req, 0, reg_req_t, strb, strb);
	FIELD_PUT(m->reg_req, 0, reg_req_t, wdata, data);
	FIELD_PUT(m->reg_req, 0, reg_req_t, addr, addr);
	FIELD_PUT(m->reg_req, 0, reg_req_t, write, write);
	do
		ctl_tick(c);
	while (!m->reg_req_ready);
	m->reg_req_valid = 0;
}

void ctl_db(struct ctl *c, uint32_t page, uint32_t offset, uint64_t data)
{
	c->dbs.push_back({ page, offset, data });
}

uint32_t ctl_db_waiting(struct ctl *c)
{
	return c->dbs.size();
}

void ctl_qp_err(struct ctl *c, int src, uint32_t qpn, uint32_t event)
{
	c->errs[src].push_back({ qpn, event, false });
}

void ctl_qp_event(struct ctl *c, int src, uint32_t qpn, uint32_t event)
{
	c->errs[src].push_back({ qpn, event, true });
}

uint32_t ctl_qp_err_waiting(struct ctl *c)
{
	uint32_t n = 0;

	for (const auto &q : c->errs)
		n += q.size();
	return n;
}

void ctl_qp_cfg(struct ctl *c, int reader, uint32_t qpn, struct seen_qp *q)
{
	Vurdma_ctl *m = c->m.get();
	bool granted = false;

	m->qpr_req_valid = 1 << reader;
	put(m->qpr_req_qpn, QPN_W * reader, QPN_W, qpn);
	while (!granted) {
		m->eval();
		granted = m->qpr_req_ready >> reader & 1;
		ctl_tick(c);
	}
	m->qpr_req_valid = 0;
	m->eval();
	while (!(m->qpr_rsp_valid >> reader & 1))
		ctl_tick(c);
	unsigned b = qp_cfg_t_W * reader;
	auto &p = m->qpr_rsp;
	memset(q, 0, sizeof(*q));
	q->udp_sport = FIELD(p, b, qp_cfg_t, udp_sport);
	q->flow_label = FIELD(p, b, qp_cfg_t, flow_label);
	q->hop_limit = FIELD(p, b, qp_cfg_t, hop_limit);
	q->pcp = FIELD(p, b, qp_cfg_t, pcp);
	q->tclass = FIELD(p, b, qp_cfg_t, tclass);
	q->dgid_lo = get(p, FIELD_AT(b, qp_cfg_t, dgid), 64);
	q->dgid_hi = get(p, FIELD_AT(b + 64, qp_cfg_t, dgid), 64);
	q->dmac = FIELD(p, b, qp_cfg_t, dmac);
	q->sgid = FIELD(p, b, qp_cfg_t, sgid);
	q->acc = FIELD(p, b, qp_cfg_t, acc);
	q->pkey = FIELD(p, b, qp_cfg_t, pkey);
	q->qkey = FIELD(p, b, qp_cfg_t, qkey);
	q->max_dest_rd = FIELD(p, b, qp_cfg_t, max_dest_rd_atomic);
	q->max_rd = FIELD(p, b, qp_cfg_t, max_rd_atomic);
	q->dest_qpn = FIELD(p, b, qp_cfg_t, dest_qpn);
	q->min_rnr = FIELD(p, b, qp_cfg_t, min_rnr);
	q->rnr_retry = FIELD(p, b, qp_cfg_t, rnr_retry);
	q->retry = FIELD(p, b, qp_cfg_t, retry);
	q->timeout = FIELD(p, b, qp_cfg_t, timeout);
	q->mtu = FIELD(p, b, qp_cfg_t, mtu);
	q->rq = ring(p, FIELD_AT(b, qp_cfg_t, rq));
	q->sq = ring(p, FIELD_AT(b, qp_cfg_t, sq));
	q->recv_cq = FIELD(p, b, qp_cfg_t, recv_cq);
	q->send_cq = FIELD(p, b, qp_cfg_t, send_cq);
	q->db_page = FIELD(p, b, qp_cfg_t, db_page);
	q->pd = FIELD(p, b, qp_cfg_t, pd);
	q->priv = FIELD(p, b, qp_cfg_t, priv);
	q->no_loop = FIELD(p, b, qp_cfg_t, no_loop);
	q->sig_all = FIELD(p, b, qp_cfg_t, sig_all);
	q->srq = FIELD(p, b, qp_cfg_t, srq);
	q->srqn = FIELD(p, b, qp_cfg_t, srqn);
	q->type = FIELD(p, b, qp_cfg_t, qp_type);
	q->state = FIELD(p, b, qp_cfg_t, state);
	q->valid = FIELD(p, b, qp_cfg_t, valid);
}

void ctl_link(struct ctl *c, bool up)
{
	c->m->link_up = up;
}

void ctl_gid(struct ctl *c, int reader, uint32_t idx, struct seen_gid *g)
{
	Vurdma_ctl *m = c->m.get();

	put(m->gid_idx, GID_W * reader, GID_W, idx);
	ctl_tick(c);
	*g = gid_of(m->gid, gid_t_W * reader);
}

void ctl_skip(struct ctl *c, uint64_t cycles)
{
	c->m->skip_valid = 1;
	c->m->skip_cycles = cycles;
}

void ctl_count(struct ctl *c, uint64_t mask, uint32_t tx_bytes, uint32_t rx_bytes)
{
	c->m->cnt = mask;
	c->m->tx_bytes = tx_bytes;
	c->m->rx_bytes = rx_bytes;
}

} // extern "C"
