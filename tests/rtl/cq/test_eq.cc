// SPDX-License-Identifier: Apache-2.0
// urdma_eq alone: random events, doorbells and configurations against a model of the contract. A
// failure means lost or duplicate events, or an interrupt that is missing or overtakes its EQE.

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

#include "Vurdma_eq.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"
#include "urdma_trace_pkg.h"

enum { EQS = 4, CLIENTS = EQC_N };

struct model {
	bool valid, armed;
	unsigned int log, vec;
	uint32_t pi, ci;
	uint64_t base;
};

struct item {
	bool write, irq, phase;
	uint64_t addr, word;
	unsigned int eqn, vec;
};

struct bench {
	Vurdma_eq dut;
	uint64_t seed, now;
	struct model eq[EQS];
	std::deque<struct item> items;
	std::deque<uint64_t> todo[CLIENTS], doorbell;
	unsigned int hold_percent;
	uint64_t writes, irqs, lost, lost0, lost_seen, lost0_seen;
};

static void settle(struct bench *b)
{
	while (!b->items.empty() && !b->items.front().write && !b->items.front().irq)
		b->items.pop_front();
}

static void model_event(struct bench *b, uint64_t ev)
{
	struct model *m = &b->eq[FIELD_OF(ev, eqe_req_t, eqn)];
	struct item it = {};

	if (!m->valid || m->pi - m->ci >= 1u << m->log) {
		b->lost++;
		b->lost0 += FIELD_OF(ev, eqe_req_t, eqn) == 0;
		return;
	}
	it.write = true;
	it.addr = m->base + 16ull * (m->pi & ((1u << m->log) - 1));
	it.phase = !(m->pi >> m->log & 1);
	it.word = FIELD_OF(ev, eqe_req_t, ev_type) << 8 | FIELD_OF(ev, eqe_req_t, obj) << 16 |
		  FIELD_OF(ev, eqe_req_t, data) << 40;
	it.eqn = FIELD_OF(ev, eqe_req_t, eqn);
	it.irq = m->armed;
	it.vec = m->vec;
	m->armed = false;
	m->pi++;
	b->items.push_back(it);
}

static void model_doorbell(struct bench *b, uint64_t db)
{
	struct model *m = &b->eq[FIELD_OF(db, eq_db_t, eqn)];
	uint32_t ci = FIELD_OF(db, eq_db_t, ci);
	struct item it = {};

	if (!m->valid)
		return;
	if (ci - m->ci <= m->pi - m->ci)
		m->ci = ci;
	if (!FIELD_OF(db, eq_db_t, arm))
		return;
	m->armed = m->pi == ci;
	if (!m->armed) {
		it.irq = true;
		it.vec = m->vec;
		b->items.push_back(it);
	}
}

static void cycle(struct bench *b)
{
	Vurdma_eq *d = &b->dut;

	d->ev_valid = 0;
	for (int c = 0; c < CLIENTS; c++) {
		if (!b->todo[c].empty()) {
			d->ev_valid |= 1u << c;
			bits_set(d->ev.m_storage, c * eqe_req_t_W, eqe_req_t_W, b->todo[c].front());
		}
	}
	d->db_valid = !b->doorbell.empty();
	if (d->db_valid)
		d->db = b->doorbell.front();
	d->wr_ready = rnd(b, 100) >= b->hold_percent;
	d->irq_ready = rnd(b, 100) >= b->hold_percent;
	d->cycles = b->now;
	bench_settle(*d);

	unsigned int ev = d->ev_valid & d->ev_ready;
	bool db = d->db_valid && d->db_ready;

	assert_int_equal(d->trace_eqe_valid, d->wr_valid && d->wr_ready);
	if (d->wr_valid && d->wr_ready) {
		settle(b);
		if (b->items.empty() || !b->items.front().write)
			fail_msg("cycle %lu: an EQE that no event asked for", b->now);
		struct item *it = &b->items.front();

		assert_int_equal(FIELD_GET(d->wr.m_storage, 0, dma_wr_t, addr), it->addr);
		assert_int_equal(FIELD_GET(d->wr.m_storage, 0, dma_wr_t, len), 16);
		assert_int_equal(bits_get(d->wr.m_storage, dma_wr_t_data_LSB, 64), it->word);
		assert_int_equal(bits_get(d->wr.m_storage, dma_wr_t_data_LSB + 127, 1), it->phase);
		assert_int_equal(FIELD_OF(d->trace_eqe, tr_eqe_t, eqn), it->eqn);
		assert_int_equal(FIELD_OF(d->trace_eqe, tr_eqe_t, kind), it->word >> 8 & 0xff);
		assert_int_equal(FIELD_OF(d->trace_eqe, tr_eqe_t, obj), it->word >> 16 & 0xffffff);
		it->write = false;
		b->writes++;
	}
	if (d->irq_valid && d->irq_ready) {
		settle(b);
		if (b->items.empty() || b->items.front().write || !b->items.front().irq)
			fail_msg("cycle %lu: an interrupt too many, or before its EQE", b->now);
		assert_int_equal(d->irq_vec, b->items.front().vec);
		b->items.front().irq = false;
		b->irqs++;
	}
	b->lost_seen += d->cnt >> URDMA_CNT_EQ_LOST & 1;
	b->lost0_seen += d->eq0_lost;
	bench_edge(*d);
	b->now++;

	for (int c = 0; c < CLIENTS; c++) {
		if (ev >> c & 1) {
			model_event(b, b->todo[c].front());
			b->todo[c].pop_front();
		}
	}
	if (db) {
		model_doorbell(b, b->doorbell.front());
		b->doorbell.pop_front();
	}
}

static void drain(struct bench *b)
{
	for (int idle = 0; idle < 20; idle = b->dut.busy ? 0 : idle + 1)
		cycle(b);
	settle(b);
	assert_true(b->items.empty());
	assert_int_equal(b->lost_seen, b->lost);
	assert_int_equal(b->lost0_seen, b->lost0);
}

static void configure(struct bench *b, unsigned int eqn, bool valid)
{
	struct model *m = &b->eq[eqn];
	uint32_t *w = b->dut.cfg.m_storage;
	bool done = false;

	b->dut.cfg_eqn = eqn;
	b->dut.cfg_valid = 1;
	FIELD_SET(w, 0, eq_cfg_t, valid, valid);
	struct model next = {};

	next.valid = valid;
	next.log = 2 + rnd(b, 6);
	next.vec = rnd(b, 64);
	next.base = rnd(b, 1ull << 40) << 12;
	FIELD_SET(w, 0, eq_cfg_t, vec, next.vec);
	FIELD_SET(w, 0, eq_cfg_t, addr, next.base);
	FIELD_SET(w, 0, eq_cfg_t, log_entries, next.log);
	while (!done) {
		bench_settle(b->dut);
		done = b->dut.cfg_ready;
		if (done && !valid)
			assert_int_equal(b->dut.wr_valid || b->dut.irq_valid, 0);
		cycle(b);
	}
	b->dut.cfg_valid = 0;
	*m = next;
}

static void test_random(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	b->seed = test_seed(21);
	b->now = b->writes = b->irqs = b->lost = b->lost0 = b->lost_seen = b->lost0_seen = 0;
	b->hold_percent = 0;
	for (int i = 0; i < EQS; i++)
		b->eq[i] = {};
	b->dut.cfg_valid = 0;
	b->dut.rst = 1;
	for (int i = 0; i < 3; i++)
		cycle(b);
	b->dut.rst = 0;
	while (!b->dut.init_done)
		cycle(b);
	for (int round = 0; round < 100; round++) {
		b->hold_percent = round % 3 * 40;
		for (int i = 0; i < EQS; i++)
			configure(b, i, rnd(b, 6) != 0);
		for (int i = 0; i < 1000; i++) {
			if (rnd(b, 4) == 0 && b->todo[0].size() < 8)
				b->todo[rnd(b, CLIENTS)].push_back(
					FIELD_IN(eqe_req_t, eqn, rnd(b, EQS)) |
					FIELD_IN(eqe_req_t, ev_type, rnd_next(&b->seed) >> 8) |
					FIELD_IN(eqe_req_t, obj, rnd_next(&b->seed) >> 8) |
					FIELD_IN(eqe_req_t, data, rnd_next(&b->seed) >> 8));
			if (rnd(b, 5) == 0 && b->doorbell.empty()) {
				unsigned int eqn = rnd(b, EQS);
				struct model *m = &b->eq[eqn];
				uint32_t ci = rnd(b, 2) ? m->pi : m->ci + rnd(b, m->pi - m->ci + 1);

				if (rnd(b, 10) == 0)
					ci -= 3; // repeated
				b->doorbell.push_back(FIELD_IN(eq_db_t, eqn, eqn) |
						      FIELD_IN(eq_db_t, arm, rnd(b, 2)) |
						      FIELD_IN(eq_db_t, ci, ci));
			}
			cycle(b);
		}
		if (round % 2)
			drain(b); // else the next configuration meets work in progress
	}
	drain(b);
	print_message("%lu EQEs, %lu interrupts, %lu lost\n", b->writes, b->irqs, b->lost);
	assert_true(b->writes > 5000 && b->irqs > 1000 && b->lost > 100);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
