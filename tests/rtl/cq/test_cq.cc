// SPDX-License-Identifier: Apache-2.0
// urdma_cq alone: random CQEs, doorbells and configurations against a model of the contract. A
// failure means lost, doubled or misplaced completions, or events that do not come or come before
// their CQE.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
}
#include <deque>

#include "Vurdma_cq.h"
#include "rtl/bits.h"
#include "urdma_hw.h"

enum { CQS = 6, CQE_REQ_W = 269, MR_DMA_ERR = 5 };

struct model {
	bool valid, dead;
	unsigned int log, eqn, page, arm;
	// Events raised by doorbells: some of them may come as one. Items they may not go before;
	// cycles.
	unsigned int due;
	uint64_t due_after, raised_at, event_at;
	uint32_t pi, ci, sol;
	uint64_t base;
};

struct item {
	bool write, event, lost, phase;
	uint64_t addr, word[4];
	unsigned int cqn, eqn, type, qpn;
	bool fail; // the ring's page cannot be translated
};

struct cqe_req {
	unsigned int cqn;
	bool solicited;
	uint64_t word[4];
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
	bool wrote;
	unsigned int fail_percent, hold_percent;
	uint64_t writes, events, errs, lost;
	uint64_t pushed, popped; // items
};

static uint64_t rnd(struct bench *b, uint64_t n)
{
	return rnd_below(&b->seed, n);
}

static void push(struct bench *b, const struct item &it)
{
	b->items.push_back(it);
	b->pushed++;
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
	if (m->dead || m->pi - m->ci >= 1u << m->log) {
		it.lost = true;
		it.event = !m->dead;
		it.type = URDMA_EV_CQ_ERR;
		m->dead = true;
		push(b, it);
		return;
	}
	it.write = true;
	it.addr = m->base + 32ull * (m->pi & ((1u << m->log) - 1));
	for (int i = 0; i < 4; i++)
		it.word[i] = rq->word[i];
	it.phase = !(m->pi >> m->log & 1);
	it.fail = rnd(b, 100) < b->fail_percent;
	m->pi++;
	if (waits)
		m->sol = m->pi;
	if (m->arm == URDMA_DB_ARM_ANY || (m->arm == URDMA_DB_ARM_SOLICITED && waits)) {
		m->arm = 0;
		it.event = true;
	}
	push(b, it);
	b->asks.push_back(it);
}

static void model_doorbell(struct bench *b, uint64_t db)
{
	unsigned int cqn = db >> 44, page = db >> 34 & 0x3ff, arm = db >> 32 & 3;
	struct model *m = &b->cq[cqn];
	uint32_t ci = db;

	if (!m->valid || m->page != page)
		return;
	if (ci - m->ci <= m->pi - m->ci)
		m->ci = ci;
	if ((arm == URDMA_DB_ARM_ANY && m->pi != ci) ||
	    (arm == URDMA_DB_ARM_SOLICITED && (int32_t)(m->sol - ci) > 0)) {
		m->arm = 0;
		if (!m->due++)
			m->due_after = b->pushed;
		m->raised_at = b->now;
	} else if (arm == URDMA_DB_ARM_ANY ||
		   (arm == URDMA_DB_ARM_SOLICITED && m->arm != URDMA_DB_ARM_ANY)) {
		m->arm = arm;
	}
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
		b->popped++;
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

	assert_true(bits_get(w, 0, 1));
	assert_int_equal(bits_get(w, 513, 13), 32);
	if (bits_get(w, 526, 64) != it->addr)
		fail_msg("cycle %lu: CQE at %lx, should be at %lx", b->now, bits_get(w, 526, 64),
			 it->addr);
	for (int i = 0; i < 3; i++)
		assert_int_equal(bits_get(w, 1 + 64 * i, 64), it->word[i]);
	assert_int_equal(bits_get(w, 1 + 255, 1), it->phase);
	it->write = false;
	b->writes++;
	settle(b);
}

static void take_event(struct bench *b)
{
	unsigned int cqn = b->dut.ev >> 24 & 0xffffff;
	bool in_turn;

	settle(b);
	in_turn = !b->items.empty() && !b->items.front().write && b->items.front().event &&
		  b->items.front().cqn == cqn;
	if (!in_turn && cqn < CQS && b->cq[cqn].due && b->popped >= b->cq[cqn].due_after) {
		assert_int_equal(b->dut.ev >> 56, b->cq[cqn].eqn);
		assert_int_equal(b->dut.ev >> 48 & 0xff, URDMA_EV_CQ);
		b->cq[cqn].due--;
		b->cq[cqn].event_at = b->now;
		b->events++;
		return;
	}
	if (b->items.empty() || b->items.front().write || !b->items.front().event)
		fail_msg("cycle %lu: an event too many, or before its CQE", b->now);
	struct item *it = &b->items.front();
	uint64_t ev = b->dut.ev;

	assert_int_equal(ev >> 56, it->eqn);
	assert_int_equal(ev >> 48 & 0xff, it->type);
	assert_int_equal(ev >> 24 & 0xffffff, it->cqn);
	it->event = false;
	b->events++;
	settle(b);
}

static void put_cqe(uint32_t *w, unsigned int lsb, const struct cqe_req *rq)
{
	for (int i = 0; i < 4; i++)
		bits_set(w, lsb + 64 * i, 64, rq->word[i]);
	bits_set(w, lsb + 256, 1, rq->solicited);
	bits_set(w, lsb + 257, 12, rq->cqn);
}

static void cycle(struct bench *b)
{
	Vurdma_cq *d = &b->dut;
	bool hold = b->hold_percent != 0;

	d->clk = 0;
	d->cqe_valid = 0;
	for (int c = 0; c < 2; c++) {
		if (!b->todo[c].empty()) {
			d->cqe_valid |= 1u << c;
			put_cqe(d->cqe.m_storage, c * CQE_REQ_W, &b->todo[c].front());
		}
	}
	d->db_valid = !b->doorbell.empty();
	if (d->db_valid)
		d->db = b->doorbell.front();
	d->mr_req_ready = !hold || rnd(b, 100) >= b->hold_percent;
	d->wr_ready = !hold || rnd(b, 100) >= b->hold_percent;
	d->ev_ready = !hold || rnd(b, 100) >= b->hold_percent;
	d->err_ready = !hold || rnd(b, 100) >= b->hold_percent;
	d->mr_rsp_valid = !b->translate.empty();
	if (d->mr_rsp_valid) {
		bool bad = b->translate.front() == UINT64_MAX;

		bits_set(d->mr_rsp.m_storage, 0, 1, 1);
		bits_set(d->mr_rsp.m_storage, 1, 13, 32);
		bits_set(d->mr_rsp.m_storage, 14, 64, b->translate.front());
		bits_set(d->mr_rsp.m_storage, 78, 3, bad ? MR_DMA_ERR : 0);
	}
	d->cycles = b->now;
	d->eval();

	bool cfg = d->cfg_valid && d->cfg_ready, db = d->db_valid && d->db_ready;
	bool mr_req = d->mr_req_valid && d->mr_req_ready,
	     mr_rsp = d->mr_rsp_valid && d->mr_rsp_ready;
	uint64_t offset = bits_get(d->mr_req.m_storage, 13, 64),
		 base = bits_get(d->mr_req.m_storage, 146, 64);
	unsigned int cqe = d->cqe_valid & d->cqe_ready;

	assert_true(cfg + db + !!(cqe & 1) + !!(cqe & 2) <= 1);
	if (d->wr_valid && d->wr_ready)
		take_write(b);
	if (d->ev_valid && d->ev_ready)
		take_event(b);
	if (d->err_valid && d->err_ready) {
		assert_int_equal(d->err & 0x1ff, URDMA_EV_QP_FATAL); /* an error, no mere event */
		b->errs++;
	}
	d->clk = 1;
	d->eval();
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
	}
}

static void start(struct bench *b, uint64_t seed)
{
	print_message("seed %lu\n", seed);
	b->seed = seed;
	b->now = b->writes = b->events = b->errs = b->lost = 0;
	b->pushed = b->popped = 0;
	b->fail_percent = 0;
	b->hold_percent = 30;
	for (int i = 0; i < CQS; i++)
		b->cq[i] = {};
	b->dut.cfg_valid = b->dut.fence_req = 0;
	b->dut.rst = 1;
	for (int i = 0; i < 3; i++)
		cycle(b);
	b->dut.rst = 0;
	while (!b->dut.init_done)
		cycle(b);
}

static void drain(struct bench *b)
{
	for (int idle = 0; idle < 20; idle = b->dut.busy ? 0 : idle + 1)
		cycle(b);
	settle(b);
	assert_true(b->items.empty());
	for (int i = 0; i < CQS; i++)
		if (b->cq[i].due) {
			assert_true(b->cq[i].event_at >= b->cq[i].raised_at);
			b->cq[i].due = 0;
		}
}

static void configure(struct bench *b, unsigned int cqn, bool valid, unsigned int log)
{
	struct model *m = &b->cq[cqn];
	uint32_t *w = b->dut.cfg.m_storage;
	bool done = false;

	// a destroyed CQ's items must be over before the model forgets it
	*m = {};
	m->valid = valid;
	m->log = log;
	m->eqn = rnd(b, 64);
	m->page = rnd(b, 1024);
	m->base = rnd(b, 1ull << 40) << 12;
	bits_set(w, 0, 10, m->page);
	bits_set(w, 10, 6, m->eqn);
	bits_set(w, 16, 4, 5);
	bits_set(w, 20, 5, log);
	bits_set(w, 25, 6, 12);
	bits_set(w, 31, 2, 0);
	bits_set(w, 33, 64, m->base);
	bits_set(w, 97, 1, valid);
	b->dut.cfg_cqn = cqn;
	b->dut.cfg_valid = 1;
	while (!done) {
		b->dut.clk = 0;
		b->dut.eval();
		done = b->dut.cfg_ready;
		cycle(b);
	}
	b->dut.cfg_valid = 0;
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
	b->doorbell.push_back((uint64_t)cqn << 44 | (uint64_t)page << 34 | rnd(b, 3) << 32 | ci);
}

static void random_traffic(struct bench *b, int steps, bool consume)
{
	for (int i = 0; i < steps; i++) {
		if (rnd(b, 3) == 0 && b->todo[0].size() + b->todo[1].size() < 20)
			b->todo[rnd(b, 2)].push_back(random_cqe(b));
		if (rnd(b, 4) == 0 && b->doorbell.empty())
			random_doorbell(b, consume && rnd(b, 2));
		cycle(b);
	}
	drain(b);
}

static void test_random(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 11);
	for (int round = 0; round < 60; round++) {
		b->hold_percent = round % 3 * 40;
		for (unsigned int i = 0; i < CQS; i++)
			configure(b, i, rnd(b, 8) != 0, 3 + rnd(b, 5));
		random_traffic(b, 2000, true);
	}
	print_message("%lu CQEs, %lu events, %lu lost\n", b->writes, b->events, b->lost);
	assert_true(b->writes > 10000 && b->events > 1000);
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
	b->doorbell.push_back((uint64_t)b->cq[0].page << 34 | 4);
	b->todo[0].push_back(random_cqe(b));
	b->todo[0].back().cqn = 0;
	drain(b);
	assert_int_equal(b->writes, 4);
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
			b->dut.clk = 0;
			b->dut.eval();
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
			b->doorbell.back() &= ~(3ull << 32);
			cycle(b);
		}
		drain(b);
	}
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
		cmocka_unit_test(test_translation_error),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
