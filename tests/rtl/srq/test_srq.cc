// SPDX-License-Identifier: Apache-2.0
// urdma_srq alone: takes, doorbells, kills and operations against a model of the contract, which
// processes them in the order in which they enter. A failure means a WQE that is given out twice or
// never, a doorbell wrongly accepted or refused, or an event that is lost, duplicate or of a
// destroyed SRQ.

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
#include <deque>

#include "Vurdma_srq.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"

enum { SRQS = 1 << SRQN_W, CFG_WORDS = 3 };
enum kind { TAKE, KILL, DOORBELL, OP };

struct model {
	bool valid, dead;
	uint16_t pi, ci, limit;
	unsigned int log;
	uint64_t cfg[2]; // the word of CREATE, as it was given
	bool used;
	unsigned int life; // creations; it outlives the SRQ
};

struct item {
	enum kind kind;
	unsigned int srqn;
	uint16_t pi;
	uint64_t at; // cycle in which it entered
};

struct event {
	unsigned int type, srqn;
};

struct bench {
	Vurdma_srq dut;
	uint64_t seed, now;
	struct model srq[SRQS];
	std::deque<struct item> stages;
	std::deque<struct event> events;
	unsigned int hold_percent; // of the events
	// what the test wants to enter, and keeps until it has
	bool want_db, want_kill, want_op, want_take, commit;
	unsigned int take_srqn, db_srqn, kill_srqn;
	uint16_t db_pi;
	struct {
		unsigned int kind, srqn, log;
		uint16_t limit;
		uint64_t cfg[2];
	} op;
	// of the last cycle, and of the last operation
	bool got, took, op_done;
	unsigned int got_index, got_left;
	uint16_t ans_pi, ans_ci, ans_limit;
	bool calm; // random traffic ends no SRQ
	uint64_t n_limit, n_err, n_take, n_row, n_old, n_kill, n_wait, n_wrap;
};

static void raise(struct bench *b, unsigned int type, unsigned int srqn)
{
	b->events.push_back({ type, srqn });
}

static unsigned int entries(const struct model *m)
{
	return 1u << m->log;
}

// Fewer are left than the limit: once, and the limit is gone.
static void check_limit(struct bench *b, unsigned int srqn)
{
	struct model *m = &b->srq[srqn];

	if (m->limit && (uint16_t)(m->pi - m->ci) < m->limit) {
		m->limit = 0;
		raise(b, URDMA_EV_SRQ_LIMIT, srqn);
	}
}

static void model_kill(struct bench *b, unsigned int srqn)
{
	if (!b->srq[srqn].valid || b->srq[srqn].dead)
		return;
	b->srq[srqn].dead = true;
	b->n_kill++;
	raise(b, URDMA_EV_SRQ_ERR, srqn);
}

static void model_db(struct bench *b, unsigned int srqn, uint16_t pi)
{
	struct model *m = &b->srq[srqn];
	uint32_t posted = (uint16_t)(m->pi - m->ci), ahead = (uint16_t)(pi - m->ci);

	if (!m->valid || m->dead)
		return;
	// up to 2^15 indexes behind the producer, and those that wait to be taken
	if (ahead < posted || (uint16_t)(m->pi - pi - 1) < 0x7fff) {
		b->n_old++;
		return;
	}
	if (ahead > entries(m))
		model_kill(b, srqn);
	else
		m->pi = pi;
}

static void set_ports(struct bench *b)
{
	Vurdma_srq *d = &b->dut;
	uint32_t op[(srq_op_t_W + 31) / 32] = {};

	d->take_valid = b->want_take;
	d->take_srqn = b->want_take ? b->take_srqn : rnd(b, SRQS);
	d->kill_valid = b->want_kill;
	d->kill_srqn = b->kill_srqn;
	d->db_valid = b->want_db;
	d->db = FIELD_IN(srq_db_t, srqn, b->db_srqn) | FIELD_IN(srq_db_t, pi, b->db_pi);
	d->op_valid = b->want_op;
	FIELD_SET(op, 0, srq_op_t, kind, b->op.kind);
	FIELD_SET(op, 0, srq_op_t, srqn, b->op.srqn);
	FIELD_SET(op, 0, srq_op_t, limit, b->op.limit);
	bits_set(op, FIELD_AT(0, srq_op_t, cfg), 64, b->op.cfg[0]);
	bits_set(op, FIELD_AT(64, srq_op_t, cfg), srq_cfg_t_W - 64, b->op.cfg[1]);
	memcpy(&d->op, op, sizeof(op));
	d->ev_ready = rnd(b, 100) >= b->hold_percent;
	d->got_commit = 0;
}

static void check_got(struct bench *b, const struct item *it)
{
	Vurdma_srq *d = &b->dut;
	const uint32_t *got = (const uint32_t *)&d->got;
	struct model *m = &b->srq[it->srqn];
	unsigned int left = (uint16_t)(m->pi - m->ci);
	bool has = m->valid && !m->dead && left;

	b->got = true;
	b->got_index = FIELD_GET(got, 0, srq_got_t, index);
	b->got_left = FIELD_GET(got, 0, srq_got_t, left);
	assert_int_equal(FIELD_GET(got, 0, srq_got_t, exists), m->valid);
	assert_int_equal(FIELD_GET(got, 0, srq_got_t, has_wqe), has);
	assert_int_equal(FIELD_GET(got, 0, srq_got_t, life), m->life % (1u << SRQ_LIFE_W));
	assert_int_equal(FIELD_GET(got, 0, srq_got_t, fresh), !m->used);
	if (m->valid) {
		assert_int_equal(FIELD_GET(got, 0, srq_got_t, dead), m->dead);
		assert_int_equal(b->got_index, m->ci & (entries(m) - 1));
		assert_int_equal(b->got_left, left);
		assert_int_equal(bits_get(got, FIELD_AT(0, srq_got_t, cfg), 64), m->cfg[0]);
		assert_int_equal(bits_get(got, FIELD_AT(64, srq_got_t, cfg), srq_cfg_t_W - 64),
				 m->cfg[1]);
	}
	b->took = has && b->commit;
	if (!b->took)
		return;
	d->got_commit = 1;
	m->used = true;
	m->ci++;
	b->n_take++;
	b->n_wrap += !m->ci;
	check_limit(b, it->srqn);
}

// An operation is in its last stage.
static void check_op(struct bench *b, bool quiet)
{
	Vurdma_srq *d = &b->dut;
	struct model *m = &b->srq[b->op.srqn];
	unsigned int life = m->life;

	switch (b->op.kind) {
	case SRO_CREATE:
		*m = {};
		m->life = life + 1;
		m->valid = true;
		m->log = b->op.log;
		memcpy(m->cfg, b->op.cfg, sizeof(m->cfg));
		break;
	case SRO_MODIFY:
		b->op_done = quiet;
		if (!quiet)
			break;
		m->limit = b->op.limit;
		check_limit(b, b->op.srqn);
		break;
	case SRO_DESTROY:
		b->op_done = quiet;
		*m = {};
		m->life = life;
		break;
	default:
		b->ans_ci = FIELD_OF(d->op_ans, srq_ans_t, ci);
		b->ans_pi = FIELD_OF(d->op_ans, srq_ans_t, pi);
		b->ans_limit = FIELD_OF(d->op_ans, srq_ans_t, limit);
		assert_int_equal(b->ans_ci, m->ci);
		assert_int_equal(b->ans_pi, m->pi);
		assert_int_equal(b->ans_limit, m->limit);
	}
	b->n_wait += !b->op_done;
}

// One cycle: what enters, what is decided, the event that leaves.
static void cycle(struct bench *b)
{
	Vurdma_srq *d = &b->dut;
	bool quiet = b->events.empty(), op_entered = false;
	struct event ev = {};

	set_ports(b);
	bench_settle(*d);
	b->got = b->took = b->op_done = false;
	if (d->ev_valid && d->ev_ready) {
		assert_false(b->events.empty());
		ev = b->events.front();
		b->events.pop_front();
		assert_int_equal(FIELD_OF(d->ev, eqe_req_t, ev_type), ev.type);
		assert_int_equal(FIELD_OF(d->ev, eqe_req_t, obj), ev.srqn);
		assert_int_equal(FIELD_OF(d->ev, eqe_req_t, eqn), 0);
		assert_int_equal(FIELD_OF(d->ev, eqe_req_t, data), 0);
		b->n_limit += ev.type == URDMA_EV_SRQ_LIMIT;
		b->n_err += ev.type == URDMA_EV_SRQ_ERR;
	}
	// two cycles behind S0
	bool got = false;
	for (const struct item &it : b->stages)
		if (it.kind == OP)
			op_entered = true;
	if (!b->stages.empty() && b->stages.front().at + 2 == b->now) {
		struct item it = b->stages.front();

		b->stages.pop_front();
		got = it.kind == TAKE;
		if (got) {
			assert_true(d->got_valid);
			check_got(b, &it);
			if (b->took && !b->stages.empty() && b->stages.front().kind == TAKE &&
			    b->stages.front().srqn == it.srqn)
				b->n_row++;
		} else if (it.kind == KILL) {
			model_kill(b, it.srqn);
		} else if (it.kind == DOORBELL) {
			model_db(b, it.srqn, it.pi);
		} else {
			b->op_done = true;
			check_op(b, quiet);
		}
	}
	assert_int_equal(d->got_valid, got);
	assert_int_equal(d->op_ready, b->op_done);
	// takes, kills, doorbells, operations
	if (b->want_take) {
		b->stages.push_back({ TAKE, b->take_srqn, 0, b->now });
	} else if (b->want_kill) {
		b->stages.push_back({ KILL, b->kill_srqn, 0, b->now });
	} else if (b->want_db) {
		b->stages.push_back({ DOORBELL, b->db_srqn, b->db_pi, b->now });
	} else if (b->want_op && !op_entered) {
		b->stages.push_back({ OP, b->op.srqn, 0, b->now });
	}
	assert_int_equal(d->kill_valid && d->kill_ready, b->want_kill && !b->want_take);
	assert_int_equal(d->db_valid && d->db_ready, b->want_db && !b->want_take && !b->want_kill);
	if (b->want_db && d->db_ready)
		b->want_db = false;
	if (b->want_kill && d->kill_ready)
		b->want_kill = false;
	b->want_take = false;
	bench_settle(*d); // with the commit
	bench_edge(*d);
	if (b->op_done)
		b->want_op = false;
	b->now++;
}

static void bench_start(struct bench *b, uint64_t own)
{
	b->seed = bench_state(test_seed(own));
	b->commit = true;
	b->dut.rst = 1;
	for (int i = 0; i < 3; i++)
		bench_clock(b->dut);
	b->dut.rst = 0;
	// until the sweep is over nothing is taken; takes do not come before the NIC is ready
	b->dut.db_valid = b->dut.kill_valid = b->dut.op_valid = 1;
	for (int i = 0; i < SRQS; i++) {
		bench_settle(b->dut);
		assert_false(b->dut.init_done || b->dut.db_ready || b->dut.kill_ready ||
			     b->dut.op_ready);
		bench_edge(b->dut);
	}
	b->dut.db_valid = b->dut.kill_valid = b->dut.op_valid = 0;
	bench_settle(b->dut);
	assert_true(b->dut.init_done && !b->dut.busy);
}

static void settle(struct bench *b)
{
	for (int i = 0; i < 4; i++)
		cycle(b);
	if (!b->hold_percent)
		assert_true(b->events.empty() || b->dut.busy);
}

static void drain(struct bench *b)
{
	unsigned int hold = b->hold_percent;

	b->hold_percent = 0;
	for (int i = 0; i < 5000 && (!b->events.empty() || b->want_op || i < 8); i++)
		cycle(b);
	assert_true(b->events.empty() && !b->want_op);
	bench_settle(b->dut);
	assert_false(b->dut.ev_valid || b->dut.busy);
	b->hold_percent = hold;
}

static void put_op(struct bench *b, unsigned int kind, unsigned int srqn, uint16_t limit)
{
	assert_false(b->want_op);
	b->op.kind = kind;
	b->op.srqn = srqn;
	b->op.limit = limit;
	b->want_op = true;
}

static void put_create(struct bench *b, unsigned int srqn, unsigned int log)
{
	uint32_t cfg[CFG_WORDS + 1];

	for (unsigned int i = 0; i <= CFG_WORDS; i++)
		cfg[i] = rnd_next(&b->seed) >> 16;
	FIELD_SET(cfg, srq_cfg_t_ring_LSB, ring_t, log_entries, log);
	b->op.log = log;
	b->op.cfg[0] = bits_get(cfg, 0, 64);
	b->op.cfg[1] = bits_get(cfg, 64, srq_cfg_t_W - 64);
	put_op(b, SRO_CREATE, srqn, rnd(b, 65536));
}

static void finish_op(struct bench *b)
{
	for (int i = 0; i < 5000 && b->want_op; i++)
		cycle(b);
	assert_false(b->want_op);
}

static void create(struct bench *b, unsigned int srqn, unsigned int log)
{
	put_create(b, srqn, log);
	finish_op(b);
}

static void modify(struct bench *b, unsigned int srqn, uint16_t limit)
{
	put_op(b, SRO_MODIFY, srqn, limit);
	finish_op(b);
}

static void destroy(struct bench *b, unsigned int srqn)
{
	put_op(b, SRO_DESTROY, srqn, 0);
	finish_op(b);
}

static void query(struct bench *b, unsigned int srqn)
{
	put_op(b, SRO_QUERY, srqn, 0);
	finish_op(b);
}

static void doorbell(struct bench *b, unsigned int srqn, uint16_t pi)
{
	b->want_db = true;
	b->db_srqn = srqn;
	b->db_pi = pi;
	while (b->want_db)
		cycle(b);
	settle(b);
}

// n takes in n cycles, and until they are decided
static void takes(struct bench *b, unsigned int srqn, unsigned int n)
{
	while (n--) {
		b->want_take = true;
		b->take_srqn = srqn;
		cycle(b);
	}
	settle(b);
}

// an SRQ whose consumer and producer are at `to`
static void bring(struct bench *b, unsigned int srqn, unsigned int log, uint32_t to)
{
	struct model *m = &b->srq[srqn];
	uint32_t at = 0;

	create(b, srqn, log);
	while (at < to) {
		uint32_t step = to - at < entries(m) ? to - at : entries(m);

		at += step;
		doorbell(b, srqn, at);
		takes(b, srqn, step);
		assert_int_equal(m->ci, (uint16_t)at);
	}
}

static void test_takes(void **state)
{
	struct bench *b = new bench();

	(void)state;
	bench_start(b, 1);
	takes(b, 5, 2); // there is none
	create(b, 5, 4);
	takes(b, 5, 2); // empty
	doorbell(b, 5, 9);
	b->commit = false;
	takes(b, 5, 3); // a look takes nothing
	b->commit = true;
	// one a cycle
	for (unsigned int i = 0; i < 9 + 2; i++) {
		b->want_take = i < 9;
		b->take_srqn = 5;
		cycle(b);
		assert_int_equal(b->took, i >= 2);
		if (i >= 2)
			assert_int_equal(b->got_index, i - 2);
	}
	takes(b, 5, 1);
	assert_int_equal(b->n_take, 9);
	// a doorbell that comes with takes is between them
	for (unsigned int i = 0; i < 40; i++) {
		b->want_take = i % 3;
		b->take_srqn = 5;
		b->want_db = true;
		b->db_srqn = 5;
		b->db_pi = b->srq[5].ci + 16 - i % 5;
		cycle(b);
	}
	b->want_db = false;
	settle(b);
	assert_false(b->srq[5].dead);
	// the ring's round
	doorbell(b, 5, b->srq[5].ci + 16);
	takes(b, 5, 16);
	destroy(b, 5);
	takes(b, 5, 1);
	create(b, 5, 0);
	query(b, 5);
	drain(b);
	assert_int_equal(b->n_limit + b->n_err, 0);
	assert_true(b->n_row > 20);
	delete b;
}

static void test_limit(void **state)
{
	struct bench *b = new bench();

	(void)state;
	bench_start(b, 2);
	// around the places where indexes wrap, too
	for (uint32_t base : { 0u, 0x7ffau, 0x8000u, 0xfffbu, 0x10000u }) {
		uint64_t n = b->n_limit;

		bring(b, 7, 15, base);
		doorbell(b, 7, base + 10);
		modify(b, 7, 4);
		query(b, 7);
		assert_int_equal(b->ans_limit, 4);
		takes(b, 7, 6);
		drain(b);
		assert_int_equal(b->n_limit, n); // as many as the limit are left
		takes(b, 7, 1);
		drain(b);
		assert_int_equal(b->n_limit, n + 1);
		query(b, 7);
		assert_int_equal(b->ans_limit, 0);
		takes(b, 7, 1);
		drain(b);
		assert_int_equal(b->n_limit, n + 1);
		// two are left
		modify(b, 7, 2);
		drain(b);
		assert_int_equal(b->n_limit, n + 1);
		modify(b, 7, 3);
		drain(b);
		assert_int_equal(b->n_limit, n + 2);
		query(b, 7);
		assert_int_equal(b->ans_limit, 0);
		// disarmed in time
		modify(b, 7, 2);
		modify(b, 7, 0);
		takes(b, 7, 3);
		drain(b);
		assert_int_equal(b->n_limit, n + 2);
		// the whole ring; nothing is left
		modify(b, 7, 0x8000);
		doorbell(b, 7, base + 10 + 0x8000);
		modify(b, 7, 0x8000);
		drain(b);
		assert_int_equal(b->n_limit, n + 3);
		takes(b, 7, 1);
		drain(b);
		assert_int_equal(b->n_limit, n + 4);
		// a destroyed one raises none, and the next life begins without a limit
		modify(b, 7, 5);
		destroy(b, 7);
		create(b, 7, 3);
		doorbell(b, 7, 3);
		takes(b, 7, 3);
		drain(b);
		assert_int_equal(b->n_limit, n + 4);
		destroy(b, 7);
	}
	// An event of each arming, though the first has not been taken.
	create(b, 9, 3);
	b->hold_percent = 100;
	modify(b, 9, 1);
	put_op(b, SRO_MODIFY, 9, 2);
	for (int i = 0; i < 50; i++)
		cycle(b);
	assert_true(b->want_op);
	uint64_t n = b->n_limit;
	drain(b);
	assert_int_equal(b->n_limit, n + 2);
	assert_int_equal(b->n_err, 0);
	delete b;
}

static void test_doorbells(void **state)
{
	struct bench *b = new bench();

	(void)state;
	bench_start(b, 3);
	doorbell(b, 3, 1); // there is none
	for (unsigned int log : { 0u, 1u, 4u, 14u, 15u }) {
		for (uint32_t base : { 0u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, 0x10000u }) {
			uint64_t n = b->n_err;
			struct model *m = &b->srq[3];
			unsigned int size = 1u << log;

			bring(b, 3, log, base);
			doorbell(b, 3, base);	  // repeated
			doorbell(b, 3, base - 1); // old
			doorbell(b, 3, base - 0x7fff);
			assert_int_equal(m->pi, (uint16_t)base);
			doorbell(b, 3, base + size); // the whole ring at once
			assert_int_equal(m->pi, (uint16_t)(base + size));
			doorbell(b, 3, base + size - 1);
			doorbell(b, 3, base);
			assert_int_equal(m->pi, (uint16_t)(base + size));
			query(b, 3);
			assert_int_equal(b->ans_pi, (uint16_t)(base + size));
			assert_int_equal(b->ans_ci, (uint16_t)base);
			drain(b);
			assert_int_equal(b->n_err, n);
			takes(b, 3, 1);
			// one more than there is room for
			doorbell(b, 3, base + size + 2);
			assert_true(m->dead);
			doorbell(b, 3, base + size + 2);
			doorbell(b, 3, base + size + 1);
			takes(b, 3, 2);
			drain(b);
			assert_int_equal(b->n_err, n + 1);
			query(b, 3);
			modify(b, 3, 1); // fewer are left if the ring was of one
			drain(b);
			destroy(b, 3);
			assert_int_equal(b->n_err, n + 1);
		}
	}
	// a new life
	create(b, 3, 2);
	doorbell(b, 3, 4);
	takes(b, 3, 4);
	assert_false(b->srq[3].dead);
	delete b;
}

static void test_kill(void **state)
{
	struct bench *b = new bench();

	(void)state;
	bench_start(b, 4);
	create(b, 11, 4);
	create(b, 12, 4);
	doorbell(b, 11, 8);
	doorbell(b, 12, 8);
	for (int i = 0; i < 3; i++) {
		b->want_kill = true;
		b->kill_srqn = i == 2 ? 13 : 11; // there is no 13
		b->want_take = true;
		b->take_srqn = 11;
		cycle(b);
		while (b->want_kill)
			cycle(b);
	}
	takes(b, 11, 2);
	takes(b, 12, 2);
	drain(b);
	assert_int_equal(b->n_err, 1);
	assert_true(b->srq[11].dead && !b->srq[12].dead);
	assert_int_equal(b->srq[12].ci, 2);
	delete b;
}

// Every SRQ has both events, and nobody takes them.
static void test_full(void **state)
{
	struct bench *b = new bench();

	(void)state;
	bench_start(b, 5);
	for (unsigned int i = 0; i < SRQS; i++) {
		create(b, i, 2);
		modify(b, i, 0);
		doorbell(b, i, 2);
		modify(b, i, 2);
	}
	b->hold_percent = 100;
	for (unsigned int i = 0; i < SRQS; i++) {
		takes(b, i, 1);
		doorbell(b, i, 100);
	}
	assert_int_equal(b->events.size(), 2 * SRQS);
	put_op(b, SRO_DESTROY, 77, 0);
	for (int i = 0; i < 100; i++)
		cycle(b);
	// it is gone, and waits for its events
	assert_true(b->want_op && !b->srq[77].valid);
	takes(b, 77, 2);
	b->hold_percent = 50;
	finish_op(b);
	assert_true(b->events.empty());
	assert_int_equal(b->n_limit, SRQS);
	assert_int_equal(b->n_err, SRQS);
	drain(b);
	delete b;
}

static uint16_t random_pi(struct bench *b, const struct model *m)
{
	uint32_t posted = (uint16_t)(m->pi - m->ci), room = entries(m) - posted;

	switch (rnd(b, 16)) {
	case 0:
		return m->pi; // repeated
	case 1:
		return m->pi - 1 - rnd(b, 0x7fff);
	case 2:
		return m->pi - 1 - rnd(b, 4);
	case 3:
	case 4:
		return m->ci + entries(m);
	case 5:
		if (b->calm) // the consumer's of a full ring of 2^15 may be too old before it
			     // enters
			return m->pi;
		return m->ci + (one_in(b, 60) ? entries(m) + 1 + rnd(b, 3) : 0);
	case 6:
		return !b->calm && one_in(b, 60) ? rnd(b, 65536) : m->pi;
	default:
		return m->pi + rnd(b, room + 1);
	}
}

// A doorbell on its way would make another one older than it was meant to be.
static bool may_ring(const struct bench *b, unsigned int srqn)
{
	for (const struct item &it : b->stages)
		if (b->calm && it.kind == DOORBELL && it.srqn == srqn)
			return false;
	return !b->want_db;
}

static void random_op(struct bench *b, unsigned int srqn)
{
	static const unsigned int logs[] = { 0, 1, 2, 5, 9, 13, 14, 15, 15, 15 };
	const struct model *m = &b->srq[srqn];
	unsigned int left = (uint16_t)(m->pi - m->ci);

	if (!m->valid)
		put_create(b, srqn, logs[rnd(b, sizeof(logs) / sizeof(logs[0]))]);
	else if (m->dead ? one_in(b, 4) : !b->calm && one_in(b, 200))
		put_op(b, SRO_DESTROY, srqn, 0);
	else if (one_in(b, 3))
		put_op(b, SRO_QUERY, srqn, 0);
	else
		put_op(b, SRO_MODIFY, srqn,
		       one_in(b, 3) ? rnd(b, entries(m) + 1)
		       : left > 2   ? left - rnd(b, 3)
				    : 1);
}

static void test_random(void **state)
{
	static const unsigned int numbers[] = { 0, 1, 2, 511, 512, SRQS - 1 };
	struct bench *b = new bench();

	(void)state;
	bench_start(b, 6);
	for (unsigned int round = 0; round < 300; round++) {
		// now many lives, now lives long enough for indexes to wrap
		b->calm = round % 150 >= 40;
		if (round % 150 == 40) {
			drain(b);
			destroy(b, numbers[0]);
			create(b, numbers[0], 15);
		}
		unsigned int take = rnd(b, 60), bell = rnd(b, 60), ops = 1 + rnd(b, 200);
		unsigned int n = 1 + rnd(b, 6);

		if (b->calm)
			take += 40;

		b->hold_percent = one_in(b, 4) ? 95 : rnd(b, 60);
		for (unsigned int i = 0; i < 2000; i++) {
			unsigned int srqn = numbers[rnd(b, n)];

			b->want_take = rnd(b, 100) < take;
			b->take_srqn = numbers[one_in(b, 3) ? rnd(b, n) : 0];
			b->commit = !one_in(b, 5);
			if (may_ring(b, srqn) && rnd(b, 100) < bell) {
				b->want_db = true;
				b->db_srqn = srqn;
				b->db_pi = random_pi(b, &b->srq[srqn]);
			}
			if (!b->want_kill && !b->calm && one_in(b, 5000)) {
				b->want_kill = true;
				b->kill_srqn = numbers[rnd(b, 6)];
			}
			if (!b->want_op && one_in(b, ops))
				random_op(b, numbers[rnd(b, 6)]);
			cycle(b);
		}
	}
	b->want_kill = b->want_db = false;
	drain(b);
	assert_true(b->n_wrap > 0);
	assert_true(b->n_limit > 100 && b->n_err > 20 && b->n_take > 50000);
	assert_true(b->n_row > 1000 && b->n_old > 1000 && b->n_kill == b->n_err && b->n_wait > 100);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes),	  cmocka_unit_test(test_limit),
		cmocka_unit_test(test_doorbells), cmocka_unit_test(test_kill),
		cmocka_unit_test(test_full),	  cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, nullptr, nullptr);
}
