// SPDX-License-Identifier: Apache-2.0
// urdma_cq alone: random CQEs, doorbells and configurations against a model of the contract. A
// failure means lost, duplicate or misplaced completions, or events that are missing or come before
// their CQE.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
}
#include <algorithm>
#include <deque>
#include <vector>

#include "Vurdma_cq.h"
#include "Vurdma_cq___024root.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"
#include "urdma_trace_pkg.h"

enum { CQS = 6, CYCLES_PER_US = 250 };
// An expiry is late by two sweeps of the timer at most, and by the doorbells that go first.
enum { LATE = 2 * (128 + 2 * CQS) + 40 };

struct model {
	bool valid, dead;
	unsigned int log, eqn, page, arm;
	bool due;	// a doorbell raised an event that is not among the items yet
	bool due_stale; // of an earlier life of the CQ, or a CQE's event has told all of it
	uint32_t pi, ci;
	uint32_t told;	// behind the last CQE that is consumed or had its event
	uint32_t sol;	// behind the last CQE that a solicited arming waits for
	uint32_t first; // index of the first CQE in the ring
	uint64_t base;
	bool overrun;
	// moderation: its limits; an event waits; a CQE that failed waits; when the period ends
	unsigned int count, period;
	bool held, urgent;
	uint64_t deadline;
};

struct item {
	bool write, event, lost, phase, waits;
	uint64_t addr, word[4];
	unsigned int cqn, eqn, type, qpn;
	bool fail; // the ring's page cannot be translated
};

struct cqe_req {
	unsigned int cqn;
	bool solicited;
	uint64_t word[4];
};

// What software sees of a CQ: CQEs in memory, events.
struct view {
	std::vector<bool> waits; // of each CQE that is in memory: solicited, or not successful
	unsigned int events;	 // not taken by the consumer yet
	size_t at_event;	 // CQEs in memory when the last event came
};

struct bench {
	Vurdma_cq dut;
	uint64_t seed, now;
	struct model cq[CQS];
	std::deque<struct item> items;	// not yet over
	std::deque<struct item> asks;	// translations asked for
	std::deque<uint64_t> translate; // answered in order: ring offset, or -1 to fail
	std::deque<struct cqe_req> todo[2];
	std::deque<uint64_t> doorbell;
	bool db_good; // the one taken in the cycle before, good_db, passed its check
	uint64_t good_db;
	unsigned int doorbell_percent; // of cycles in which one that waits is shown
	struct view view[CQS];
	unsigned int fail_percent, hold_percent;
	unsigned int changes; // one in so many cycles, or none
	unsigned int sparse;  // of CQEs and doorbells
	uint64_t writes, events, errs, lost, expired;
};

static uint32_t later(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) > 0 ? a : b;
}

// Armed, and a CQE is there that the event would tell of.
static bool wants(const struct model *m)
{
	if (m->arm == URDMA_DB_ARM_ANY)
		return m->pi != m->told;
	return m->arm == URDMA_DB_ARM_SOLICITED && later(m->sol, m->told) != m->told;
}

// The event need not wait for more.
static bool may_tell(const struct model *m)
{
	return (!m->count && !m->period) || (m->count && m->pi - m->told >= m->count) || m->urgent;
}

// The event waits, or not. In the model time begins two cycles after an operation is taken.
static void hold(struct bench *b, struct model *m, bool on, bool anew)
{
	if (on && (!m->held || anew))
		m->deadline = m->period ? b->now + 1 + m->period * CYCLES_PER_US : UINT64_MAX;
	m->held = on;
}

static void model_cqe(struct bench *b, const struct cqe_req *rq)
{
	struct model *m = &b->cq[rq->cqn];
	struct item it = {};
	bool waits = rq->solicited || (rq->word[0] & URDMA_CQE0_STATUS);

	if (!m->valid)
		return;
	it.cqn = rq->cqn;
	it.eqn = m->eqn;
	it.type = URDMA_EV_CQ;
	it.qpn = rq->word[1] >> 32 & 0xfff;
	if (m->dead || (!m->overrun && m->pi - m->ci >= 1u << m->log)) {
		it.lost = true;
		it.event = !m->dead;
		it.type = URDMA_EV_CQ_ERR;
		m->dead = true;
		b->items.push_back(it);
		return;
	}
	it.write = true;
	it.waits = waits;
	it.addr = m->base + 32ull * ((m->pi - m->first) & ((1u << m->log) - 1));
	for (int i = 0; i < 4; i++)
		it.word[i] = rq->word[i];
	it.phase = !((m->pi - m->first) >> m->log & 1);
	it.fail = rnd(b, 100) < b->fail_percent;
	if (m->pi - m->ci >= 1u << m->log)
		m->ci++;
	m->told = later(m->told, m->ci);
	m->sol = later(m->sol, m->ci);
	m->pi++;
	if (waits)
		m->sol = m->pi;
	if (rq->word[0] & URDMA_CQE0_STATUS)
		m->urgent = true;
	if (wants(m) && may_tell(m)) {
		m->arm = 0;
		m->told = m->pi;
		m->due_stale = m->due;
		m->urgent = false;
		it.event = true;
		hold(b, m, false, false);
	} else if (wants(m)) {
		hold(b, m, true, false);
	}
	b->items.push_back(it);
	b->asks.push_back(it);
}

// An event that no CQE brings.
static void fire(struct bench *b, struct model *m)
{
	m->arm = 0;
	m->due = true;
	m->due_stale = false;
	hold(b, m, false, false);
}

static void consumed(struct model *m, uint32_t ci)
{
	if (ci - m->ci > m->pi - m->ci)
		return;
	m->ci = ci;
	m->told = later(m->told, ci);
	m->sol = later(m->sol, ci);
	if (ci == m->pi)
		m->urgent = false;
}

static uint64_t doorbell_of(unsigned int cqn, unsigned int page, unsigned int arm, uint32_t ci)
{
	return FIELD_IN(cq_db_t, cqn, cqn) | FIELD_IN(cq_db_t, page, page) |
	       FIELD_IN(cq_db_t, arm, arm) | FIELD_IN(cq_db_t, ci, ci);
}

static void model_doorbell(struct bench *b, uint64_t db)
{
	unsigned int cqn = FIELD_OF(db, cq_db_t, cqn), page = FIELD_OF(db, cq_db_t, page),
		     arm = FIELD_OF(db, cq_db_t, arm);
	struct model *m = &b->cq[cqn];
	uint32_t ci = FIELD_OF(db, cq_db_t, ci);

	if (!m->valid || m->page != page)
		return;
	b->db_good = true;
	b->good_db = db;
	consumed(m, ci);
	if (arm != URDMA_DB_ARM_ANY && arm != URDMA_DB_ARM_SOLICITED)
		return;
	if (m->arm != URDMA_DB_ARM_ANY)
		m->arm = arm;
	if (wants(m) && may_tell(m))
		fire(b, m);
	else
		hold(b, m, wants(m), false);
}

// The end of a period.
static void model_time(struct bench *b, unsigned int cqn)
{
	struct model *m = &b->cq[cqn];

	if (!m->held)
		return;
	if (b->now - 1 < m->deadline)
		fail_msg("cycle %lu: CQ %u: the period ends %lu cycles early", b->now, cqn,
			 m->deadline - b->now + 1);
	b->expired++;
	if (wants(m))
		fire(b, m);
	else
		hold(b, m, false, false);
}

static void check_time(const struct bench *b)
{
	for (unsigned int i = 0; i < CQS; i++)
		if (b->cq[i].held && b->cq[i].deadline != UINT64_MAX &&
		    b->now > b->cq[i].deadline + LATE)
			fail_msg("cycle %lu: CQ %u: the period ended at %lu", b->now, i,
				 b->cq[i].deadline);
}

// The event of a doorbell takes its place behind the CQEs of before.
static void model_due(struct bench *b, unsigned int cqn)
{
	struct model *m = &b->cq[cqn];
	struct item it = {};

	assert_true(m->due);
	m->due = false;
	if (!m->valid || m->due_stale)
		return;
	m->told = m->pi;
	m->urgent = false;
	it.cqn = cqn;
	it.eqn = m->eqn;
	it.type = URDMA_EV_CQ;
	it.event = true;
	b->items.push_back(it);
}

// Items with nothing left to show are over.
static void settle(struct bench *b)
{
	while (!b->items.empty()) {
		struct item *it = &b->items.front();

		if (it->write || it->event)
			return;
		b->lost += it->lost;
		b->items.pop_front();
	}
}

static void take_write(struct bench *b)
{
	const uint32_t *w = b->dut.wr.m_storage;

	settle(b);
	if (b->items.empty() || !b->items.front().write)
		fail_msg("cycle %lu: a write that no CQE asked for, or before the event of an "
			 "earlier one",
			 b->now);
	struct item *it = &b->items.front();

	assert_true(FIELD_GET(w, 0, dma_wr_t, last));
	assert_int_equal(FIELD_GET(w, 0, dma_wr_t, len), 32);
	if (FIELD_GET(w, 0, dma_wr_t, addr) != it->addr)
		fail_msg("cycle %lu: CQE at %lx, should be at %lx", b->now,
			 FIELD_GET(w, 0, dma_wr_t, addr), it->addr);
	for (int i = 0; i < 3; i++)
		assert_int_equal(bits_get(w, FIELD_AT(64 * i, dma_wr_t, data), 64), it->word[i]);
	assert_int_equal(bits_get(w, FIELD_AT(255, dma_wr_t, data), 1), it->phase);
	assert_int_equal(FIELD_OF(b->dut.trace_cqe, tr_cqe_t, cqn), it->cqn);
	assert_int_equal(FIELD_OF(b->dut.trace_cqe, tr_cqe_t, qpn), it->qpn);
	assert_int_equal(FIELD_OF(b->dut.trace_cqe, tr_cqe_t, wqe),
			 HW_GET(URDMA_CQE0_WQE, it->word[0]));
	assert_int_equal(FIELD_OF(b->dut.trace_cqe, tr_cqe_t, send),
			 !(it->word[0] & URDMA_CQE0_RECV));
	assert_int_equal(FIELD_OF(b->dut.trace_cqe, tr_cqe_t, status),
			 HW_GET(URDMA_CQE0_STATUS, it->word[0]));
	b->view[it->cqn].waits.push_back(it->waits);
	it->write = false;
	b->writes++;
	settle(b);
}

static void take_event(struct bench *b)
{
	uint64_t ev = b->dut.ev;
	struct view *v;

	settle(b);
	if (b->items.empty() || b->items.front().write)
		fail_msg("cycle %lu: an event too many, or before its CQE", b->now);
	struct item *it = &b->items.front();

	assert_int_equal(FIELD_OF(ev, eqe_req_t, eqn), it->eqn);
	assert_int_equal(FIELD_OF(ev, eqe_req_t, ev_type), it->type);
	assert_int_equal(FIELD_OF(ev, eqe_req_t, obj), it->cqn);
	v = &b->view[it->cqn];
	if (it->type == URDMA_EV_CQ) {
		if (v->waits.size() == v->at_event)
			fail_msg("cycle %lu: CQ %u: an event without a CQE that is new since the "
				 "event before",
				 b->now, it->cqn);
		v->at_event = v->waits.size();
		v->events++;
	}
	it->event = false;
	b->events++;
	settle(b);
}

// A good doorbell, in the cycle after it was taken.
static void check_cq_db(struct bench *b)
{
	const Vurdma_cq *d = &b->dut;
	uint64_t db = b->good_db;
	unsigned int arm = FIELD_OF(db, cq_db_t, arm);

	assert_int_equal(d->trace_cq_db_valid, b->db_good);
	if (!b->db_good)
		return;
	b->db_good = false;
	assert_int_equal(FIELD_OF(d->trace_cq_db, tr_cq_db_t, cqn), FIELD_OF(db, cq_db_t, cqn));
	assert_int_equal(FIELD_OF(d->trace_cq_db, tr_cq_db_t, ci), FIELD_OF(db, cq_db_t, ci));
	assert_int_equal(FIELD_OF(d->trace_cq_db, tr_cq_db_t, arm),
			 arm == URDMA_DB_ARM_ANY || arm == URDMA_DB_ARM_SOLICITED);
}

static void put_cqe(uint32_t *w, unsigned int lsb, const struct cqe_req *rq)
{
	for (int i = 0; i < 4; i++)
		bits_set(w, FIELD_AT(lsb, cqe_req_t, cqe) + 64 * i, 64, rq->word[i]);
	FIELD_SET(w, lsb, cqe_req_t, solicited, rq->solicited);
	FIELD_SET(w, lsb, cqe_req_t, cqn, rq->cqn);
}

static void cycle(struct bench *b)
{
	Vurdma_cq *d = &b->dut;
	bool hold = b->hold_percent != 0;

	d->cqe_valid = 0;
	for (int c = 0; c < 2; c++) {
		if (!b->todo[c].empty()) {
			d->cqe_valid |= 1u << c;
			put_cqe(d->cqe.m_storage, c * cqe_req_t_W, &b->todo[c].front());
		}
	}
	// one that is shown stays
	d->db_valid = !b->doorbell.empty() && (d->db_valid || rnd(b, 100) < b->doorbell_percent);
	if (d->db_valid)
		d->db = b->doorbell.front();
	d->mr_req_ready = !hold || rnd(b, 100) >= b->hold_percent;
	d->wr_ready = !hold || rnd(b, 100) >= b->hold_percent;
	d->ev_ready = !hold || rnd(b, 100) >= b->hold_percent;
	d->err_ready = !hold || rnd(b, 100) >= b->hold_percent;
	d->mr_rsp_valid = !b->translate.empty();
	if (d->mr_rsp_valid) {
		bool bad = b->translate.front() == UINT64_MAX;

		FIELD_SET(d->mr_rsp.m_storage, 0, mr_rsp_t, last, 1);
		FIELD_SET(d->mr_rsp.m_storage, 0, mr_rsp_t, len, 32);
		FIELD_SET(d->mr_rsp.m_storage, 0, mr_rsp_t, addr, b->translate.front());
		FIELD_SET(d->mr_rsp.m_storage, 0, mr_rsp_t, status, bad ? MR_DMA_ERR : 0);
	}
	d->cycles = b->now;
	bench_settle(*d);

	bool cfg = d->cfg_valid && d->cfg_ready, db = d->db_valid && d->db_ready;
	bool mr_req = d->mr_req_valid && d->mr_req_ready,
	     mr_rsp = d->mr_rsp_valid && d->mr_rsp_ready;
	uint64_t offset = FIELD_GET(d->mr_req.m_storage, 0, mr_req_t, va),
		 base = FIELD_GET(d->mr_req.m_storage, mr_req_t_pt_LSB, pt_t, addr);
	unsigned int cqe = d->cqe_valid & d->cqe_ready;
	bool due = d->rootp->urdma_cq__DOT__due_valid && d->rootp->urdma_cq__DOT__due_pop;
	unsigned int due_cqn = d->rootp->urdma_cq__DOT__due_cqn;
	bool time = d->rootp->urdma_cq__DOT__t_go && !d->cfg_valid && !d->db_valid;
	unsigned int time_cqn = d->rootp->urdma_cq__DOT__t_cqn_reg;

	assert_true(cfg + db + !!(cqe & 1) + !!(cqe & 2) <= 1);
	check_cq_db(b);
	assert_int_equal(d->trace_cqe_valid, d->wr_valid && d->wr_ready);
	if (d->wr_valid && d->wr_ready)
		take_write(b);
	if (d->ev_valid && d->ev_ready)
		take_event(b);
	if (d->err_valid && d->err_ready) {
		assert_int_equal(d->err & ((1u << qp_err_t_qpn_LSB) - 1),
				 URDMA_EV_QP_FATAL); /* an error, no mere event */
		b->errs++;
	}
	bench_edge(*d);
	b->now++;

	if (mr_rsp) {
		if (b->translate.front() == UINT64_MAX) {
			struct item *it;

			settle(b);
			it = &b->items.front();
			it->write = false;
			it->event = true;
			it->type = URDMA_EV_CQ_ERR;
			it->lost = true;
			b->view[it->cqn].waits.push_back(true);
		}
		b->translate.pop_front();
	}
	if (mr_req) {
		struct item it = b->asks.front();

		b->asks.pop_front();
		assert_int_equal(base + offset, it.addr);
		b->translate.push_back(it.fail ? UINT64_MAX : it.addr);
	}
	for (int c = 0; c < 2; c++) {
		if (cqe >> c & 1) {
			model_cqe(b, &b->todo[c].front());
			b->todo[c].pop_front();
		}
	}
	if (db) {
		model_doorbell(b, b->doorbell.front());
		b->doorbell.pop_front();
		d->db_valid = 0;
	}
	if (due)
		model_due(b, due_cqn);
	if (time)
		model_time(b, time_cqn);
	check_time(b);
}

static void start(struct bench *b, uint64_t seed)
{
	print_message("seed %lu\n", seed);
	b->seed = test_seed(seed);
	b->now = b->writes = b->events = b->errs = b->lost = b->expired = 0;
	b->fail_percent = 0;
	b->changes = 0;
	b->sparse = 1;
	b->hold_percent = 30;
	b->doorbell_percent = 100;
	b->db_good = false;
	for (int i = 0; i < CQS; i++) {
		b->cq[i] = {};
		b->view[i] = {};
	}
	b->dut.cfg_valid = b->dut.fence_req = 0;
	b->dut.rst = 1;
	for (int i = 0; i < 3; i++)
		cycle(b);
	b->dut.rst = 0;
	while (!b->dut.init_done)
		cycle(b);
}

// Until nothing moves. Time that no timer needs is not spent.
static void drain(struct bench *b)
{
	for (int idle = 0; idle < 20; idle = b->dut.busy ? 0 : idle + 1)
		cycle(b);
	settle(b);
	assert_true(b->items.empty());
	for (int i = 0; i < CQS; i++)
		assert_false(b->cq[i].due);
}

// The same, and then to the end of each period that runs.
static void settle_time(struct bench *b)
{
	drain(b);
	for (;;) {
		bench_settle(b->dut);
		if (!b->dut.timer_armed)
			break;
		if (b->dut.timer_cycles > 2)
			b->now += b->dut.timer_cycles - 2;
		for (int i = 0; i < 4; i++)
			cycle(b);
		drain(b);
	}
	for (int i = 0; i < CQS; i++)
		assert_false(b->cq[i].held && b->cq[i].period);
}

// One that is shown is taken at once: it goes before all others.
static void show_cfg(struct bench *b, unsigned int cqn, unsigned int op)
{
	b->dut.cfg_cqn = cqn;
	b->dut.cfg_op = op;
	b->dut.cfg_valid = 1;
	bench_settle(b->dut);
	assert_true(b->dut.cfg_ready);
	cycle(b);
	b->dut.cfg_valid = 0;
}

static void put_ring(struct bench *b, unsigned int log, uint64_t base)
{
	uint32_t *w = b->dut.cfg.m_storage;

	memset(w, 0, sizeof(b->dut.cfg.m_storage));
	FIELD_SET(w, cq_cfg_t_ring_LSB, ring_t, log_stride, 5);
	FIELD_SET(w, cq_cfg_t_ring_LSB, ring_t, log_entries, log);
	FIELD_SET(w, cq_cfg_t_ring_LSB + ring_t_pt_LSB, pt_t, page_shift, 12);
	FIELD_SET(w, cq_cfg_t_ring_LSB + ring_t_pt_LSB, pt_t, levels, 0);
	FIELD_SET(w, cq_cfg_t_ring_LSB + ring_t_pt_LSB, pt_t, addr, base);
}

static void configure(struct bench *b, unsigned int cqn, bool valid, unsigned int log)
{
	struct model *m = &b->cq[cqn];
	uint32_t *w = b->dut.cfg.m_storage;

	// a destroyed CQ's items must be over before the model forgets it
	bool due = m->due, overrun = m->overrun;

	*m = {};
	m->due = m->due_stale = due;
	if (valid)
		b->view[cqn] = {};
	m->valid = valid;
	m->overrun = overrun;
	m->log = log;
	m->eqn = rnd(b, 64);
	m->page = rnd(b, 1024);
	m->base = rnd(b, 1ull << 40) << 12;
	put_ring(b, log, m->base);
	FIELD_SET(w, 0, cq_cfg_t, db_page, m->page);
	FIELD_SET(w, 0, cq_cfg_t, eqn, m->eqn);
	FIELD_SET(w, 0, cq_cfg_t, overrun, overrun);
	FIELD_SET(w, 0, cq_cfg_t, valid, valid);
	show_cfg(b, cqn, CQO_SET);
}

static void moderate(struct bench *b, unsigned int cqn, unsigned int count, unsigned int period)
{
	struct model *m = &b->cq[cqn];
	uint32_t *w = b->dut.cfg.m_storage;
	bool held = m->held;

	put_ring(b, 31, UINT64_MAX); // none of it counts
	FIELD_SET(w, 0, cq_cfg_t, valid, 1);
	FIELD_SET(w, 0, cq_cfg_t, count, count);
	FIELD_SET(w, 0, cq_cfg_t, period, period);
	// the model before the cycle, whose other operations come after it
	m->count = count;
	m->period = period;
	b->now++;
	if (held && wants(m) && may_tell(m))
		fire(b, m);
	else if (held)
		hold(b, m, true, true);
	b->now--;
	show_cfg(b, cqn, CQO_MODERATE);
}

// False if the CQ refuses, which it does when more waits than the ring takes.
static bool resize(struct bench *b, unsigned int cqn, unsigned int log, uint32_t ci)
{
	struct model *m = &b->cq[cqn];
	uint64_t base = rnd(b, 1ull << 40) << 12;
	uint32_t left = ci - m->ci <= m->pi - m->ci ? m->pi - ci : m->pi - m->ci, pi = m->pi;
	bool fits = left <= 1u << log;

	put_ring(b, log, base);
	FIELD_SET(b->dut.cfg.m_storage, 0, cq_cfg_t, valid, 1);
	FIELD_SET(b->dut.cfg.m_storage, 0, cq_cfg_t, count, 0xffff); // does not count
	b->dut.cfg_ci = ci;
	if (fits) {
		consumed(m, ci);
		m->first = m->pi;
		m->log = log;
		m->base = base;
	}
	show_cfg(b, cqn, CQO_RESIZE);
	cycle(b);
	bench_settle(b->dut);
	assert_int_equal(FIELD_OF(b->dut.resized, cq_resized_t, busy), !fits);
	if (fits)
		assert_int_equal(FIELD_OF(b->dut.resized, cq_resized_t, base), pi);
	return fits;
}

static struct cqe_req random_cqe(struct bench *b)
{
	struct cqe_req rq = {};

	rq.cqn = rnd(b, CQS);
	rq.solicited = rnd(b, 4) == 0;
	for (int i = 0; i < 4; i++)
		rq.word[i] = rnd_next(&b->seed);
	if (rnd(b, 8))
		rq.word[0] &= ~URDMA_CQE0_STATUS;
	return rq;
}

static void random_doorbell(struct bench *b, bool consume)
{
	unsigned int cqn = rnd(b, CQS);
	struct model *m = &b->cq[cqn];
	uint32_t ci = m->ci + rnd(b, m->pi - m->ci + 1);
	unsigned int page = m->page;

	if (consume)
		ci = m->pi;
	if (rnd(b, 10) == 0)
		ci -= rnd(b, 20); // repeated
	if (rnd(b, 20) == 0)
		page ^= 1;
	if (rnd(b, 40) == 0)
		ci = rnd_next(&b->seed);
	b->doorbell.push_back(doorbell_of(cqn, page, rnd(b, 3), ci));
}

// A change of a CQ while all else goes on.
static void random_change(struct bench *b)
{
	unsigned int cqn = rnd(b, CQS);
	const struct model *m = &b->cq[cqn];

	if (!m->valid)
		return;
	if (rnd(b, 2))
		moderate(b, cqn, rnd(b, 3) ? rnd(b, 8) : 0, rnd(b, 3) ? rnd(b, 4) : 0);
	else
		resize(b, cqn, 3 + rnd(b, 5),
		       rnd(b, 8) ? m->ci + rnd(b, m->pi - m->ci + 1) : rnd_next(&b->seed));
}

static void random_traffic(struct bench *b, int steps, bool consume)
{
	for (int i = 0; i < steps; i++) {
		if (b->changes && rnd(b, b->changes) == 0)
			random_change(b);
		if (rnd(b, 3 * b->sparse) == 0 && b->todo[0].size() + b->todo[1].size() < 20)
			b->todo[rnd(b, 2)].push_back(random_cqe(b));
		if (rnd(b, 4 * b->sparse) == 0 && b->doorbell.empty())
			random_doorbell(b, consume && rnd(b, 2));
		cycle(b);
	}
	settle_time(b);
}

static void test_random(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 11);
	for (int round = 0; round < 120; round++) {
		b->hold_percent = round % 3 * 40;
		b->changes = round % 2 ? 40 << rnd(b, 6) : 0;
		b->sparse = 1 << rnd(b, 7);
		for (unsigned int i = 0; i < CQS; i++) {
			b->cq[i].overrun = rnd(b, 4) == 0;
			configure(b, i, rnd(b, 8) != 0, 3 + rnd(b, 5));
			if (b->changes && b->cq[i].valid)
				moderate(b, i, rnd(b, 8), rnd(b, 4));
		}
		random_traffic(b, 2000 + 150 * b->sparse, true);
	}
	print_message("%lu CQEs, %lu events, %lu lost, %lu periods ended\n", b->writes, b->events,
		      b->lost, b->expired);
	assert_true(b->writes > 10000 && b->events > 1000 && b->expired > 50);
	delete b;
}

static void test_overflow(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 12);
	configure(b, 0, true, 2);
	for (int i = 0; i < 7; i++) {
		struct cqe_req rq = random_cqe(b);

		rq.cqn = 0;
		b->todo[0].push_back(rq);
	}
	drain(b);
	assert_int_equal(b->writes, 4);
	assert_int_equal(b->events, 1);
	assert_int_equal(b->lost, 3);
	assert_int_equal(b->errs, 3);
	// it stays dead though the consumer catches up
	b->doorbell.push_back(doorbell_of(0, b->cq[0].page, 0, 4));
	b->todo[0].push_back(random_cqe(b));
	b->todo[0].back().cqn = 0;
	drain(b);
	assert_int_equal(b->writes, 4);
	delete b;
}

// The same with a CQ that may be overrun: nothing is lost, and what is overwritten counts as
// consumed, so that software's old index does not move it back.
static void test_overrun(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 23);
	b->cq[0].overrun = true;
	configure(b, 0, true, 2);
	for (int i = 0; i < 23; i++) {
		struct cqe_req rq = random_cqe(b);

		rq.cqn = 0;
		rq.word[0] = 0;
		b->todo[0].push_back(rq);
	}
	drain(b);
	assert_int_equal(b->writes, 23);
	assert_int_equal(b->events, 0);
	assert_int_equal(b->lost + b->errs, 0);
	assert_int_equal(b->cq[0].ci, 19);
	// four of them wait, whatever software says
	moderate(b, 0, 5, 0);
	b->doorbell.push_back(doorbell_of(0, b->cq[0].page, URDMA_DB_ARM_ANY, 3));
	drain(b);
	assert_int_equal(b->events, 0);
	moderate(b, 0, 0, 0);
	drain(b);
	assert_int_equal(b->events, 1);
	b->doorbell.push_back(doorbell_of(0, b->cq[0].page, URDMA_DB_ARM_ANY, 3));
	drain(b);
	assert_int_equal(b->events, 1);
	b->todo[0].push_back(random_cqe(b));
	b->todo[0].back().cqn = 0;
	drain(b);
	assert_int_equal(b->events, 2);
	delete b;
}

// ---- change of ring
// ------------------------------------------------------------------------------

// Small and large rings in turn, in the middle of a round of the old one: the model says where each
// CQE lies, how much room there is, and that the arming stays.
static void test_resize(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	for (unsigned int before = 0; before < 9; before++) {
		start(b, 24);
		configure(b, 0, true, 3);
		for (unsigned int log = 2; log < 6; log++) {
			struct model *m = &b->cq[0];
			uint32_t first = m->pi;
			struct cqe_req rq = {};

			b->doorbell.push_back(
				doorbell_of(0, m->page, URDMA_DB_ARM_SOLICITED, m->pi));
			for (unsigned int i = 0; i < before && i < 1u << m->log; i++)
				b->todo[0].push_back(rq);
			drain(b);
			// all that waits has to fit; one that is told as consumed does not wait
			bool fits = m->pi - first <= 1u << log;
			assert_int_equal(resize(b, 0, log, first), fits);
			if (!fits)
				assert_true(resize(b, 0, log, m->pi - (1u << log)));
			for (unsigned int i = m->pi - m->ci; i < 1u << log; i++)
				b->todo[0].push_back(rq);
			drain(b);
			assert_int_equal(b->lost, 0);
			assert_int_equal(b->events, log - 2);
			// full: the arming has survived, and room is as much as the new ring has
			b->doorbell.push_back(doorbell_of(0, m->page, URDMA_DB_ARM_NONE, m->pi));
			rq.solicited = true;
			b->todo[0].push_back(rq);
			drain(b);
			assert_int_equal(b->events, log - 1);
		}
		// one too many
		for (unsigned int i = 0; i < 32; i++)
			b->todo[0].push_back({});
		drain(b);
		assert_int_equal(b->lost, 1);
		// a dead CQ stays dead in its new ring
		assert_true(resize(b, 0, 8, b->cq[0].pi));
		b->todo[0].push_back({});
		drain(b);
		assert_int_equal(b->lost, 2);
	}
	delete b;
}

// ---- moderation
// ----------------------------------------------------------------------------------

// What count and period say, each alone and both.
static void test_moderation(void **state)
{
	static const struct {
		unsigned int count, period, cqes;
		bool solicited, failed;
		uint64_t at_once, in_time;
	} cases[] = {
		{ 0, 0, 1, false, false, 1, 1 },
		{ 1, 0, 1, false, false, 1, 1 },
		{ 1, 9, 1, false, false, 1, 1 },
		{ 4, 0, 3, false, false, 0, 0 },
		{ 4, 0, 4, false, false, 1, 1 },
		{ 4, 9, 3, false, false, 0, 1 },
		{ 4, 9, 4, false, false, 1, 1 },
		{ 0, 9, 20, false, false, 0, 1 },
		{ 4, 9, 3, true, false, 0, 1 },
		{ 4, 9, 3, false, true, 1, 1 },
		{ 4, 0, 1, false, true, 1, 1 },
		{ 0, 9, 1, false, true, 1, 1 },
		{ 0xffff, 0xffff, 9, false, false, 0, 1 },
	};
	struct bench *b = new struct bench;

	(void)state;
	// armed before the CQEs, or after them; for any, or for solicited
	for (int late = 0; late < 2; late++) {
		for (unsigned int arm = URDMA_DB_ARM_ANY; arm <= URDMA_DB_ARM_SOLICITED; arm++) {
			for (const auto &c : cases) {
				struct cqe_req rq = {};
				bool sleeps =
					arm == URDMA_DB_ARM_SOLICITED && !c.solicited && !c.failed;

				start(b, 25);
				configure(b, 0, true, 6);
				moderate(b, 0, c.count, c.period);
				uint64_t db = doorbell_of(0, b->cq[0].page, arm, 0);
				if (!late)
					b->doorbell.push_back(db);
				drain(b);
				for (unsigned int i = 0; i < c.cqes; i++) {
					rq.solicited = c.solicited && i == 0;
					rq.word[0] = c.failed && i == 0 ? URDMA_CQE0_STATUS : 0;
					b->todo[0].push_back(rq);
				}
				drain(b);
				if (late)
					b->doorbell.push_back(db);
				drain(b);
				uint64_t from = b->now;
				assert_int_equal(b->events, sleeps ? 0 : c.at_once);
				settle_time(b);
				assert_int_equal(b->events, sleeps ? 0 : c.in_time);
				if (!sleeps && c.in_time != c.at_once)
					assert_true(b->now - from + 100 >
						    (uint64_t)c.period * CYCLES_PER_US);
			}
		}
	}
	delete b;
}

// What meets the end of a period, at each offset around it.
enum meets { MORE, FAILED, CONSUMED, REARMED, FASTER, SLOWER, PLAIN, RESIZED, AGAIN, MEETS };

static void meet(struct bench *b, enum meets what)
{
	struct model *m = &b->cq[0];
	struct cqe_req rq = {};

	switch (what) {
	case MORE:
		for (int i = 0; i < 3; i++)
			b->todo[i & 1].push_back(rq);
		return;
	case FAILED:
		rq.word[0] = URDMA_CQE0_STATUS;
		b->todo[0].push_back(rq);
		return;
	case CONSUMED:
		b->doorbell.push_back(doorbell_of(0, m->page, URDMA_DB_ARM_NONE, m->pi));
		return;
	case REARMED:
		b->doorbell.push_back(doorbell_of(0, m->page, URDMA_DB_ARM_ANY, m->pi));
		b->todo[0].push_back(rq);
		return;
	case FASTER:
		moderate(b, 0, 1, 1);
		return;
	case SLOWER:
		moderate(b, 0, 9, 2);
		return;
	case PLAIN:
		moderate(b, 0, 0, 0);
		return;
	case RESIZED:
		resize(b, 0, 7, m->ci);
		return;
	default:
		configure(b, 0, false, 5);
		drain(b);
		configure(b, 0, true, 5);
		moderate(b, 0, 2, 1);
		b->doorbell.push_back(doorbell_of(0, m->page, URDMA_DB_ARM_ANY, 0));
		b->todo[0].push_back(rq);
	}
}

static void test_offsets(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	for (int what = 0; what < MEETS; what++) {
		// the whole way of an expiry, and the time in which the timer looks around
		for (int offset = 220; offset < 220 + 330; offset++) {
			start(b, 26);
			b->hold_percent = 0;
			configure(b, 0, true, 6);
			moderate(b, 0, 3, 1);
			b->doorbell.push_back(doorbell_of(0, b->cq[0].page, URDMA_DB_ARM_ANY, 0));
			b->todo[0].push_back({});
			drain(b);
			uint64_t from = b->cq[0].deadline - CYCLES_PER_US;
			while (b->now < from + offset)
				cycle(b);
			meet(b, (enum meets)what);
			settle_time(b);
			// whoever is armed sleeps beside nothing
			assert_false(wants(&b->cq[0]) && b->cq[0].period);
			assert_true(b->cq[0].arm || b->events >= 1);
		}
	}
	delete b;
}

// A ring whose page table cannot be read: the CQE is lost, reported, and nothing hangs.
static void test_translation_error(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 13);
	for (unsigned int i = 0; i < CQS; i++)
		configure(b, i, true, 6);
	b->fail_percent = 20;
	random_traffic(b, 3000, true);
	assert_true(b->errs > 0);
	delete b;
}

// The fence waits for all of before and not for what comes after it.
static void test_fence(void **state)
{
	struct bench *b = new struct bench;
	uint64_t before;
	int waited = 0;

	(void)state;
	start(b, 14);
	for (unsigned int i = 0; i < CQS; i++)
		configure(b, i, true, 14);
	b->hold_percent = 70;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 40; i++)
			b->todo[rnd(b, 2)].push_back(random_cqe(b));
		for (int i = 0; i < 10; i++)
			cycle(b);
		before = b->writes + b->items.size();
		b->dut.fence_req = 1;
		for (waited = 0; waited < 2000; waited++) {
			cycle(b);
			bench_settle(b->dut);
			if (b->dut.fence_done)
				break;
			// no end of new work
			if (b->todo[0].size() < 4)
				b->todo[0].push_back(random_cqe(b));
		}
		assert_true(waited < 2000);
		assert_true(b->writes >= before - 1);
		b->dut.fence_req = 0;
		for (int i = 0; i < 200; i++) {
			random_doorbell(b, true);
			b->doorbell.back() &= ~FIELD_IN(cq_db_t, arm, 3);
			cycle(b);
		}
		drain(b);
	}
	delete b;
}

// ---- consumers ------------------------------------------------------------------------------

// Words of a context that a test sets: producer and consumer index, and what is told of.
enum { CTX_AHEAD_W = 21, CTX_SOL = 0, CTX_TOLD = 21, CTX_CI = 42, CTX_PI = 74, CTX_POS = 108 };

// As if so many CQEs had come and gone since the CQ was made.
static void set_index(struct bench *b, unsigned int cqn, uint32_t index)
{
	struct model *m = &b->cq[cqn];
	uint32_t *w;

	for (int i = 0; i < 4; i++)
		cycle(b); // the configuration is written
	w = b->dut.rootp->urdma_cq__DOT__ram__DOT__mem[cqn].m_storage;
	m->pi = m->ci = m->told = m->sol = index;
	bits_set(w, CTX_PI, 32, index);
	bits_set(w, CTX_CI, 32, index);
	bits_set(w, CTX_TOLD, CTX_AHEAD_W, index);
	bits_set(w, CTX_SOL, CTX_AHEAD_W, index);
	bits_set(w, CTX_POS, CTX_AHEAD_W, index);
}

// Software as the verbs have it: it arms, then polls, and sleeps when the poll found nothing; an
// event wakes it. What is between is chance.
struct consumer {
	unsigned int cqn;
	uint32_t start;	  // index of the first CQE
	size_t polled;	  // CQEs
	unsigned int arm; // the last arming
	bool armed, asleep;
	uint64_t slept, woken;
};

static void ring(struct bench *b, const struct consumer *u, unsigned int arm)
{
	b->doorbell.push_back(doorbell_of(u->cqn, b->cq[u->cqn].page, arm, u->start + u->polled));
}

static void consume(struct bench *b, struct consumer *u, bool repeats)
{
	struct view *v = &b->view[u->cqn];
	size_t found = v->waits.size() - u->polled;

	if (u->asleep) {
		if (!v->events)
			return;
		v->events = 0;
		u->asleep = u->armed = false;
		u->woken++;
	}
	switch (rnd(b, 4)) {
	case 0: // poll, all or some
		u->polled += rnd(b, 2) ? found : rnd(b, found + 1);
		if (u->armed && !found) {
			u->asleep = true;
			u->slept++;
		}
		break;
	case 1: // tell the NIC of it, or not yet
		if (rnd(b, 2))
			ring(b, u, URDMA_DB_ARM_NONE);
		break;
	case 2: // arm once more than needed, or weaker
		if (repeats && u->armed && !rnd(b, 8))
			ring(b, u, 1 + rnd(b, 2));
		break;
	default:
		if (!u->armed) {
			u->arm = rnd(b, 3) ? URDMA_DB_ARM_ANY : URDMA_DB_ARM_SOLICITED;
			u->armed = true;
			ring(b, u, u->arm);
		}
	}
}

// Nothing moves any more: nobody sleeps beside a CQE that it waits for.
static void check_awake(struct bench *b, const struct consumer *u)
{
	const struct view *v = &b->view[u->cqn];

	if (!u->asleep || v->events)
		return;
	for (size_t i = u->polled; i < v->waits.size(); i++)
		if (u->arm == URDMA_DB_ARM_ANY || v->waits[i])
			fail_msg("CQ %u: CQE %lu waits, armed for %u, and no event came", u->cqn, i,
				 u->arm);
}

static void run_consumers(struct bench *b, uint64_t seed, uint32_t index, bool repeats,
			  bool changes)
{
	struct consumer user[CQS] = {};
	uint64_t slept = 0, woken = 0;

	start(b, seed);
	for (unsigned int i = 0; i < CQS; i++) {
		configure(b, i, true, 4 + rnd(b, 3));
		set_index(b, i, index);
		user[i].cqn = i;
		user[i].start = index;
	}
	for (int round = 0; round < 1500; round++) {
		int steps = 20 + rnd(b, 100), busy = 2 + rnd(b, 12);

		b->hold_percent = rnd(b, 3) * 40;
		b->doorbell_percent = rnd(b, 2) ? 100 : 5;
		for (unsigned int i = 0; changes && i < CQS; i++) {
			moderate(b, i, rnd(b, 6), rnd(b, 3) ? 1 + rnd(b, 3) : 0);
			if (!b->cq[i].period)
				moderate(b, i, 0, 0);
			if (!rnd(b, 4))
				resize(b, i, 4 + rnd(b, 3), b->cq[i].ci);
		}
		for (int i = 0; i < steps; i++) {
			struct consumer *u = &user[rnd(b, CQS)];
			struct cqe_req rq = random_cqe(b);
			const struct model *m = &b->cq[rq.cqn];

			// no CQ overflows
			if (rnd(b, busy) == 0 && b->todo[0].size() + b->todo[1].size() < 4 &&
			    m->pi - m->ci + 6 < 1u << m->log)
				b->todo[rnd(b, 2)].push_back(rq);
			if (b->doorbell.size() < 8)
				consume(b, u, repeats);
			cycle(b);
		}
		b->doorbell_percent = 100;
		settle_time(b);
		for (unsigned int i = 0; i < CQS; i++)
			check_awake(b, &user[i]);
	}
	assert_int_equal(b->lost, 0);
	for (unsigned int i = 0; i < CQS; i++) {
		slept += user[i].slept;
		woken += user[i].woken;
	}
	print_message("%lu CQEs, %lu events, slept %lu times, woken %lu times\n", b->writes,
		      b->events, slept, woken);
	assert_true(woken > 300 && b->events < b->writes);
}

static void test_consumers(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	run_consumers(b, 16, 0, false, false);
	run_consumers(b, 17, 0, true, false);
	run_consumers(b, 27, 0, true, true);
	delete b;
}

// The index of CQEs and its low part, by which the CQ remembers what it has told, come round.
static void test_wrap(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	run_consumers(b, 18, UINT32_C(0) - 300, true, true);
	run_consumers(b, 19, (1u << CTX_AHEAD_W) - 300, true, true);
	run_consumers(b, 20, (1u << 31) - 300, true, false);
	delete b;
}

// After an event software arms, then polls one CQE, and asks its peer for the next one: each CQE
// has one event, whenever the arming arrives.
static void test_one_each(void **state)
{
	struct bench *b = new struct bench;
	struct consumer u = {};

	(void)state;
	start(b, 21);
	configure(b, 0, true, 6);
	ring(b, &u, URDMA_DB_ARM_ANY);
	for (unsigned int i = 0; i < 500; i++) {
		struct cqe_req rq = random_cqe(b);

		rq.cqn = 0;
		b->hold_percent = i % 2 * 50;
		b->todo[0].push_back(rq);
		drain(b);
		if (b->events != i + 1)
			fail_msg("%u CQEs had %lu events", i + 1, b->events);
		ring(b, &u, i % 3 ? URDMA_DB_ARM_ANY : URDMA_DB_ARM_SOLICITED);
		u.polled++;
		if (i % 3 == 0) { // asked for more after all
			drain(b);
			ring(b, &u, URDMA_DB_ARM_ANY);
		}
	}
	delete b;
}

// A solicited arming sleeps through CQEs that are not; one for any that follows tells of them at
// once, and once.
static void test_solicited_then_any(void **state)
{
	struct bench *b = new struct bench;
	struct consumer u = {};
	struct cqe_req rq = {};

	(void)state;
	start(b, 22);
	configure(b, 0, true, 6);
	ring(b, &u, URDMA_DB_ARM_SOLICITED);
	drain(b);
	for (int i = 0; i < 3; i++)
		b->todo[0].push_back(rq);
	drain(b);
	assert_int_equal(b->events, 0);
	ring(b, &u, URDMA_DB_ARM_SOLICITED);
	drain(b);
	assert_int_equal(b->events, 0);
	ring(b, &u, URDMA_DB_ARM_ANY);
	drain(b);
	assert_int_equal(b->events, 1);
	ring(b, &u, URDMA_DB_ARM_ANY); // nothing new
	drain(b);
	assert_int_equal(b->events, 1);
	ring(b, &u, URDMA_DB_ARM_SOLICITED); // does not take back the one for any
	drain(b);
	b->todo[0].push_back(rq);
	drain(b);
	assert_int_equal(b->events, 2);
	// a solicited one that an event for any has told of is no reason for another
	rq.solicited = true;
	ring(b, &u, URDMA_DB_ARM_ANY);
	b->todo[0].push_back(rq);
	drain(b);
	assert_int_equal(b->events, 3);
	ring(b, &u, URDMA_DB_ARM_SOLICITED);
	drain(b);
	assert_int_equal(b->events, 3);
	// one that came while nothing was armed is
	rq.solicited = false;
	b->todo[0].push_back(rq);
	drain(b);
	assert_int_equal(b->events, 3);
	rq.solicited = true;
	b->todo[0].push_back(rq);
	drain(b);
	assert_int_equal(b->events, 4); // armed above
	b->todo[0].push_back(rq);
	drain(b);
	assert_int_equal(b->events, 4);
	ring(b, &u, URDMA_DB_ARM_SOLICITED);
	drain(b);
	assert_int_equal(b->events, 5);
	// and is not when it is consumed
	b->todo[0].push_back(rq);
	drain(b);
	u.polled = b->view[0].waits.size();
	ring(b, &u, URDMA_DB_ARM_SOLICITED);
	drain(b);
	assert_int_equal(b->events, 5);
	delete b;
}

static void test_rate(void **state)
{
	struct bench *b = new struct bench;
	uint64_t from;

	(void)state;
	start(b, 15);
	for (unsigned int i = 0; i < CQS; i++)
		configure(b, i, true, 12);
	b->hold_percent = 0;
	for (int i = 0; i < 2000; i++)
		b->todo[i % 2].push_back(random_cqe(b));
	from = b->now;
	drain(b);
	print_message("2000 CQEs in %lu cycles\n", b->now - from);
	assert_true(b->now - from < 2100);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_moderation),
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_translation_error),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_one_each),
		cmocka_unit_test(test_solicited_then_any),
		cmocka_unit_test(test_consumers),
		cmocka_unit_test(test_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
