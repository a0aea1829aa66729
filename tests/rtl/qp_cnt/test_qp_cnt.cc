// SPDX-License-Identifier: Apache-2.0
// urdma_qp_cnt alone: events of all sources, with operations among them, against a model. The model
// has a lower and an upper bound for each counter. They differ only by events that come while a
// SET_QP_CNT or a CLEAR_CNT is under way. A failure means an event that is lost, counted twice, or
// counted for another QP.

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
#include <vector>

#include "Vurdma_qp_cnt.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"

enum { QPS = 1 << QPN_W, SETS = 1 << CSET_W, GROUPS = 3 };
enum source { RX, RESP, TX, REQ, SOURCES };

static const unsigned int first_of[SOURCES + 1] = { URDMA_QCNT_RX_PKTS, URDMA_QCNT_RESP_ERR,
						    URDMA_QCNT_TX_PKTS, URDMA_QCNT_RX_ACK,
						    URDMA_QCNT_N };

struct range {
	uint64_t least, most;
};

struct event {
	unsigned int qpn, bytes;
	uint32_t hit; // bit i: the i-th counter of the source
};

struct bench {
	Vurdma_qp_cnt dut;
	uint64_t seed, now;
	unsigned int set[QPS];
	struct range count[SETS][URDMA_QCNT_N];
	bool ev_on[SOURCES];
	struct event ev[SOURCES];
	// the operation that waits
	bool op_on;
	unsigned int op_kind, op_qpn, op_set, op_group, op_wait, op_slowest;
	struct range asked[URDMA_QCNT_GROUP];
	uint64_t ans[URDMA_QCNT_GROUP];
	uint64_t n_events, n_ops[3];
};

static unsigned int counters(unsigned int source)
{
	return first_of[source + 1] - first_of[source];
}

static uint64_t step_of(unsigned int counter, const struct event *e)
{
	if (counter == URDMA_QCNT_RX_BYTES || counter == URDMA_QCNT_TX_BYTES)
		return e->bytes;
	return 1;
}

static void model_add(struct bench *b, unsigned int set, unsigned int counter, uint64_t n,
		      bool sure)
{
	b->count[set][counter].most += n;
	if (sure)
		b->count[set][counter].least += n;
}

// What an event does. During a SET_QP_CNT it may count to either set; one that comes during a
// CLEAR_CNT may survive it.
static void model_event(struct bench *b, unsigned int source)
{
	const struct event *e = &b->ev[source];
	bool moves = b->op_on && b->op_kind == QCO_BIND && b->op_qpn == e->qpn;

	b->n_events++;
	for (unsigned int i = 0; i < counters(source); i++) {
		unsigned int c = first_of[source] + i;

		if (!(e->hit >> i & 1))
			continue;
		model_add(b, b->set[e->qpn], c, step_of(c, e), !moves);
		if (moves && b->op_set != b->set[e->qpn])
			model_add(b, b->op_set, c, step_of(c, e), false);
	}
}

static void model_op_begin(struct bench *b)
{
	for (unsigned int i = 0; i < URDMA_QCNT_GROUP; i++) {
		struct range *r = &b->count[b->op_set][b->op_group * URDMA_QCNT_GROUP + i];

		if (b->op_kind == QCO_QUERY)
			b->asked[i] = *r;
	}
	if (b->op_kind == QCO_CLEAR)
		memset(b->count[b->op_set], 0, sizeof(b->count[0]));
}

static void model_op_end(struct bench *b)
{
	Vurdma_qp_cnt *d = &b->dut;
	const uint32_t *w = d->op_ans.m_storage;

	b->n_ops[b->op_kind]++;
	if (b->op_kind == QCO_BIND)
		b->set[b->op_qpn] = b->op_set;
	if (b->op_kind != QCO_QUERY)
		return;
	for (unsigned int i = 0; i < URDMA_QCNT_GROUP; i++) {
		unsigned int c = b->op_group * URDMA_QCNT_GROUP + i;
		struct range *r = &b->count[b->op_set][c];

		b->ans[i] = bits_get(w, QC_VALUE_W * i, QC_VALUE_W);
		if (b->ans[i] < b->asked[i].least || b->ans[i] > r->most)
			fail_msg("clock %lu: counter %u of set %u is %lu, not %lu to %lu", b->now,
				 c, b->op_set, b->ans[i], b->asked[i].least, r->most);
	}
}

// The range of a clear begins when it is asked for: what comes until it is done may stay or not.
static void model_clear_events(struct bench *b)
{
	if (b->op_on && b->op_kind == QCO_CLEAR)
		for (unsigned int c = 0; c < URDMA_QCNT_N; c++)
			b->count[b->op_set][c].least = 0;
}

static void put_ports(struct bench *b)
{
	Vurdma_qp_cnt *d = &b->dut;
	struct event e[SOURCES];

	// the payload means nothing without its valid
	for (unsigned int s = 0; s < SOURCES; s++) {
		e[s] = b->ev[s];
		if (!b->ev_on[s])
			e[s] = { (unsigned int)rnd(b, QPS), (unsigned int)rnd(b, 8192),
				 (uint32_t)rnd(b, 1u << counters(s)) };
	}
	d->rx_valid = b->ev_on[RX];
	d->rx = FIELD_IN(qc_rx_t, qpn, e[RX].qpn) | FIELD_IN(qc_rx_t, bytes, e[RX].bytes) |
		FIELD_IN(qc_rx_t, hit, e[RX].hit);
	d->resp_valid = b->ev_on[RESP];
	d->resp = FIELD_IN(qc_resp_t, qpn, e[RESP].qpn) | FIELD_IN(qc_resp_t, hit, e[RESP].hit);
	d->tx_valid = b->ev_on[TX];
	d->tx = FIELD_IN(qc_tx_t, qpn, e[TX].qpn) | FIELD_IN(qc_tx_t, bytes, e[TX].bytes) |
		FIELD_IN(qc_tx_t, hit, e[TX].hit);
	d->req_valid = b->ev_on[REQ];
	d->req = FIELD_IN(qc_req_t, qpn, e[REQ].qpn) | FIELD_IN(qc_req_t, hit, e[REQ].hit);
	d->op_valid = b->op_on;
	d->op = FIELD_IN(qc_op_t, kind, b->op_on ? b->op_kind : rnd(b, 3)) |
		FIELD_IN(qc_op_t, qpn, b->op_on ? b->op_qpn : rnd(b, QPS)) |
		FIELD_IN(qc_op_t, cset, b->op_on ? b->op_set : rnd(b, SETS)) |
		FIELD_IN(qc_op_t, group, b->op_on ? b->op_group : rnd(b, GROUPS));
}

// One clock. The events of ev_on come in it, and the operation that waits stays until it is done.
static void cycle(struct bench *b)
{
	Vurdma_qp_cnt *d = &b->dut;
	bool done;

	put_ports(b);
	bench_settle(*d);
	done = b->op_on && d->op_ready;
	if (d->op_ready && !b->op_on)
		fail_msg("clock %lu: an answer to no operation", b->now);
	for (unsigned int s = 0; s < SOURCES; s++) {
		if (!b->ev_on[s])
			continue;
		if (!d->busy)
			fail_msg("clock %lu: not busy with an event", b->now);
		model_event(b, s);
		b->ev_on[s] = false;
	}
	model_clear_events(b);
	if (done)
		model_op_end(b);
	if (b->op_on && ++b->op_wait > b->op_slowest)
		b->op_slowest = b->op_wait;
	if (done)
		b->op_on = false;
	bench_edge(*d);
	b->now++;
}

static void idle(struct bench *b)
{
	for (unsigned int i = 0; i < 8; i++)
		cycle(b);
	if (b->dut.busy)
		fail_msg("clock %lu: busy without work", b->now);
}

static void raise(struct bench *b, unsigned int source, unsigned int qpn, uint32_t hit,
		  unsigned int bytes)
{
	b->ev_on[source] = true;
	b->ev[source] = { qpn, bytes, hit };
}

static void begin_op(struct bench *b, unsigned int kind, unsigned int qpn, unsigned int set,
		     unsigned int group)
{
	assert_false(b->op_on);
	b->op_on = true;
	b->op_kind = kind;
	b->op_qpn = qpn;
	b->op_set = set;
	b->op_group = group;
	b->op_wait = 0;
	model_op_begin(b);
}

// Without events it has an end soon.
static void finish_op(struct bench *b)
{
	unsigned int n = 0;

	while (b->op_on) {
		cycle(b);
		if (++n > 8)
			fail_msg("clock %lu: an operation has no end", b->now);
	}
}

static void run_op(struct bench *b, unsigned int kind, unsigned int qpn, unsigned int set,
		   unsigned int group)
{
	begin_op(b, kind, qpn, set, group);
	finish_op(b);
}

static void bind(struct bench *b, unsigned int qpn, unsigned int set)
{
	run_op(b, QCO_BIND, qpn, set, 0);
}

// All counters of a set at rest, within their ranges; from now on they are known.
static void read_set(struct bench *b, unsigned int set, uint64_t value[URDMA_QCNT_N])
{
	for (unsigned int g = 0; g < GROUPS; g++) {
		run_op(b, QCO_QUERY, 0, set, g);
		for (unsigned int i = 0; i < URDMA_QCNT_GROUP; i++) {
			unsigned int c = g * URDMA_QCNT_GROUP + i;

			if (value)
				value[c] = b->ans[i];
			b->count[set][c] = { b->ans[i], b->ans[i] };
		}
	}
}

static void start(struct bench *b, uint64_t seed)
{
	Vurdma_qp_cnt *d = &b->dut;
	unsigned int n = 0;

	b->seed = bench_state(seed);
	b->now = 0;
	b->op_on = false;
	b->n_events = b->op_slowest = 0;
	memset(b->n_ops, 0, sizeof(b->n_ops));
	memset(b->ev_on, 0, sizeof(b->ev_on));
	memset(b->set, 0, sizeof(b->set));
	memset(b->count, 0, sizeof(b->count));
	d->rst = 1;
	for (unsigned int i = 0; i < 3; i++) {
		put_ports(b);
		bench_clock(*d);
	}
	d->rst = 0;
	do {
		put_ports(b);
		bench_settle(*d);
		if (!d->init_done && !d->busy)
			fail_msg("not busy in the sweep");
		bench_edge(*d);
		if (++n > QPS + 10)
			fail_msg("no init_done");
	} while (!d->init_done);
}

static struct bench *create(uint64_t seed)
{
	struct bench *b = new bench;

	start(b, seed);
	return b;
}

// ---- each counter by itself --------------------------------------------------------------------

static void test_each(void **state)
{
	struct bench *b = create(test_seed(1));
	static const unsigned int qps[] = { 0, 1, 2047, 4095 }, sets[] = { 0, 255, 128, 77 };
	uint64_t v[URDMA_QCNT_N];

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		bind(b, qps[i], sets[i]);
	for (unsigned int s = 0; s < SOURCES; s++) {
		for (unsigned int i = 0; i < counters(s); i++) {
			unsigned int c = first_of[s] + i, k = rnd(b, 4);
			unsigned int bytes = 1 + rnd(b, 8191);

			raise(b, s, qps[k], 1u << i, bytes);
			cycle(b);
			idle(b);
			read_set(b, sets[k], v);
			for (unsigned int other = 0; other < URDMA_QCNT_N; other++)
				if (v[other] != (other == c ? step_of(c, &b->ev[s]) : 0))
					fail_msg("an event of counter %u: counter %u is %lu", c,
						 other, v[other]);
			run_op(b, QCO_CLEAR, 0, sets[k], 0);
		}
	}
	delete b;
}

// ---- events in each clock ----------------------------------------------------------------------

// n clocks with an event of each source, of QPs from the list, in turn or drawn.
static void burst(struct bench *b, const std::vector<unsigned int> &qps, unsigned int n,
		  bool in_turn)
{
	for (unsigned int i = 0; i < n; i++) {
		for (unsigned int s = 0; s < SOURCES; s++)
			raise(b, s, qps[in_turn ? i % qps.size() : rnd(b, qps.size())],
			      rnd(b, 1u << counters(s)), rnd(b, 8192));
		cycle(b);
	}
}

static void test_burst(void **state)
{
	struct bench *b = create(test_seed(2));
	// 5 and 6 share a set, 9 has set 0 from the start
	static const std::vector<unsigned int> lists[] = {
		{ 5 }, { 5, 6 }, { 5, 7 }, { 5, 9 }, { 5, 7, 5, 8 }, { 5, 6, 7, 8, 9 }, { 9 },
	};

	(void)state;
	bind(b, 5, 200);
	bind(b, 6, 200);
	bind(b, 7, 201);
	bind(b, 8, 1);
	for (const std::vector<unsigned int> &list : lists) {
		for (unsigned int n = 1; n < 12; n++) {
			burst(b, list, n, true);
			idle(b);
			for (unsigned int set : { 200, 201, 1, 2, 0 })
				read_set(b, set, NULL);
		}
		burst(b, list, 3000, false);
		idle(b);
		for (unsigned int set : { 200, 201, 1, 2, 0 })
			read_set(b, set, NULL);
	}
	delete b;
}

// Sums that carry over 32 bits.
static void test_carry(void **state)
{
	struct bench *b = create(test_seed(3));
	uint64_t v[URDMA_QCNT_N];

	(void)state;
	bind(b, 4095, 255);
	for (unsigned int i = 0; i < 530000; i++) {
		raise(b, RX, 4095, 3, 8191);
		raise(b, TX, 4095, 3, 8190);
		cycle(b);
	}
	idle(b);
	read_set(b, 255, v);
	assert_int_equal(v[URDMA_QCNT_RX_PKTS], 530000);
	assert_int_equal(v[URDMA_QCNT_RX_BYTES], 530000ull * 8191);
	assert_int_equal(v[URDMA_QCNT_TX_BYTES], 530000ull * 8190);
	delete b;
}

// ---- operations among events -------------------------------------------------------------------

// A query, a clear, a SET_QP_CNT at each distance from a burst; the events leave one clock in
// `gap` free.
static void test_ops(void **state)
{
	struct bench *b = create(test_seed(4));

	(void)state;
	for (unsigned int kind = QCO_BIND; kind <= QCO_CLEAR; kind++) {
		for (unsigned int gap = 2; gap < 6; gap++) {
			for (unsigned int at = 0; at < 14; at++) {
				bind(b, 5, 7);
				bind(b, 6, 8);
				for (unsigned int i = 0; i < 24; i++) {
					if (i % gap)
						for (unsigned int s = 0; s < SOURCES; s++)
							raise(b, s, 5 + rnd(b, 2),
							      rnd(b, 1u << counters(s)),
							      rnd(b, 8192));
					if (i == at)
						begin_op(b, kind, 5, 7 + (kind == QCO_BIND),
							 rnd(b, GROUPS));
					cycle(b);
				}
				finish_op(b);
				idle(b);
				read_set(b, 7, NULL);
				read_set(b, 8, NULL);
			}
		}
	}
	// it waits for the events that are in front of it, and for no more
	assert_in_range(b->op_slowest, 5, 12);
	delete b;
}

// A QP that goes to and fro between two sets loses nothing, and nothing counts twice.
static void test_move(void **state)
{
	struct bench *b = create(test_seed(5));
	uint64_t v[2][URDMA_QCNT_N], want[URDMA_QCNT_N] = {};

	(void)state;
	bind(b, 100, 3);
	for (unsigned int i = 0; i < 20000; i++) {
		for (unsigned int s = 0; s < SOURCES; s++) {
			if (one_in(b, 5))
				continue;
			raise(b, s, 100, rnd(b, 1u << counters(s)), rnd(b, 8192));
			for (unsigned int k = 0; k < counters(s); k++)
				if (b->ev[s].hit >> k & 1)
					want[first_of[s] + k] +=
						step_of(first_of[s] + k, &b->ev[s]);
		}
		if (!b->op_on && one_in(b, 4))
			begin_op(b, QCO_BIND, 100, 7 - b->set[100], 0);
		cycle(b);
	}
	finish_op(b);
	idle(b);
	read_set(b, 3, v[0]);
	read_set(b, 4, v[1]);
	for (unsigned int c = 0; c < URDMA_QCNT_N; c++)
		if (v[0][c] + v[1][c] != want[c])
			fail_msg("counter %u: %lu and %lu of %lu", c, v[0][c], v[1][c], want[c]);
	delete b;
}

// Every QP, in set 0 first, then in another, and in set 0 again.
static void test_all(void **state)
{
	struct bench *b = create(test_seed(6));

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < QPS; i++) {
			raise(b, rnd(b, SOURCES), i, 3, 1 + i % 8191);
			cycle(b);
		}
		idle(b);
		for (unsigned int set = 0; set < SETS; set++)
			read_set(b, set, NULL);
		for (unsigned int i = 0; i < QPS; i++)
			bind(b, i, round ? 0 : i % SETS);
	}
	delete b;
}

// A reset at any time: sets, counters and operations are gone.
static void test_reset(void **state)
{
	struct bench *b = create(test_seed(7));

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		for (unsigned int qpn = 0; qpn < 64; qpn++)
			bind(b, qpn * 65 % QPS, 1 + qpn * 4);
		for (unsigned int n = 0; n < 50 + i; n++) {
			for (unsigned int s = 0; s < SOURCES; s++)
				raise(b, s, rnd(b, 64) * 65 % QPS, rnd(b, 1u << counters(s)), 9);
			cycle(b);
		}
		if (i & 1)
			begin_op(b, i & 2 ? QCO_QUERY : QCO_CLEAR, 0, 5, 1);
		start(b, i);
		for (unsigned int qpn = 0; qpn < 64; qpn++)
			raise(b, RX, qpn * 65 % QPS, 3, 100), cycle(b);
		for (unsigned int set = 0; set < SETS; set += 4)
			read_set(b, set, NULL);
	}
	delete b;
}

// ---- random
// --------------------------------------------------------------------------------------

static void random_op(struct bench *b, unsigned int qps, unsigned int sets)
{
	unsigned int kind = one_in(b, 8) ? QCO_CLEAR : one_in(b, 2) ? QCO_BIND : QCO_QUERY;
	unsigned int set = rnd(b, sets + 1);

	begin_op(b, kind, rnd(b, qps), set, rnd(b, GROUPS));
}

static void test_random(void **state)
{
	struct bench *b = create(test_seed(8));
	unsigned int phases = 60;

	(void)state;
	for (unsigned int phase = 0; phase < phases; phase++) {
		static const unsigned int few[] = { 1, 2, 4, 40, QPS };
		unsigned int qps = few[rnd(b, 5)], sets = 1 + rnd(b, rnd(b, 2) ? 3 : 255);
		unsigned int gap = 1 + rnd(b, 20), ops = 1 + rnd(b, 40);

		for (unsigned int i = 0; i < 5000; i++) {
			for (unsigned int s = 0; s < SOURCES; s++)
				if (rnd(b, gap + 1))
					raise(b, s, rnd(b, qps), rnd(b, 1u << counters(s)),
					      rnd(b, 8192));
			if (!b->op_on && one_in(b, ops))
				random_op(b, qps, sets);
			cycle(b);
		}
		finish_op(b);
		idle(b);
		for (unsigned int set = 0; set <= sets; set++)
			read_set(b, set, NULL);
	}
	print_message(
		"%lu clocks, %lu events, %lu queries, %lu clears, %lu binds, at most %u clocks\n",
		b->now, b->n_events, b->n_ops[QCO_QUERY], b->n_ops[QCO_CLEAR], b->n_ops[QCO_BIND],
		b->op_slowest);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),  cmocka_unit_test(test_burst),
		cmocka_unit_test(test_carry), cmocka_unit_test(test_ops),
		cmocka_unit_test(test_move),  cmocka_unit_test(test_all),
		cmocka_unit_test(test_reset), cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
