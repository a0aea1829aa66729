// SPDX-License-Identifier: Apache-2.0
// urdma_eth_cq alone: random completions, doorbells, moderation, disabling, and jumps of time
// against a model of docs/hardware-interface.md, section 12. A failure means a lost, duplicate or
// wrong completion, or an interrupt that is missing, early, late, without cause, or before its
// completion. SEED=n repeats a run.

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

#include "Vurdma_eth_cq.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"

#define FIELD(mask, val) (((uint64_t)(val) << __builtin_ctzll(mask)) & (mask))

enum { QUEUES = ETHQ_N, TX = 0, RX = 1, CYCLES_PER_US = 250 };
// Cycles until an armed queue pair has been looked at for sure; until its interrupt is out.
enum { SCAN = QUEUES, LATE = 16 };

struct completion {
	unsigned int q, err, vlan, tci, hash_type, bufs, len, csum, index;
	uint32_t hash;
};

struct write {
	unsigned int q, kind;
	uint64_t addr, word[3], begun;
	bool phase;
};

// An arming that has become due: an interrupt has to come, or, when optional, may.
struct credit {
	uint64_t due;
	bool optional;
};

struct queue {
	bool enable, active, armed;
	unsigned int log;
	uint64_t base;
	uint32_t taken, written, ci;
	unsigned int vec, frames[2], usecs[2];
	unsigned int n[2];
	uint64_t since[2];
	std::deque<credit> credits;
};

struct bench {
	Vurdma_eth_cq dut;
	uint64_t seed, now, open; // since when interrupts find no back-pressure
	struct queue q[QUEUES];
	std::deque<struct write> writes;
	bool valid[2], irq_held, wr_held;
	unsigned int irq_quiet, irq_vec;
	struct completion next[2];
	unsigned int rate[2], wr_percent, irq_percent, db_percent, arm_percent;
	uint32_t wr_words[19];
	// what happened
	uint64_t n_writes, n_irqs, n_arms, n_kind[2], n_jumps, n_timer, worst;
};

static void put_ring(struct bench *b, unsigned int i)
{
	uint32_t *w = b->dut.ring.m_storage;

	FIELD_SET(w, eth_ring_t_W * i, eth_ring_t, log_entries, b->q[i].log);
	FIELD_SET(w, eth_ring_t_W * i, eth_ring_t, base, b->q[i].base);
	FIELD_SET(w, eth_ring_t_W * i, eth_ring_t, enable, b->q[i].enable);
}

static void put_int(struct bench *b, unsigned int i)
{
	uint32_t *w = b->dut.moderation.m_storage;
	struct queue *q = &b->q[i];

	FIELD_SET(w, eth_int_t_W * i, eth_int_t, tx_usecs, q->usecs[TX]);
	FIELD_SET(w, eth_int_t_W * i, eth_int_t, rx_usecs, q->usecs[RX]);
	FIELD_SET(w, eth_int_t_W * i, eth_int_t, tx_frames, q->frames[TX]);
	FIELD_SET(w, eth_int_t_W * i, eth_int_t, rx_frames, q->frames[RX]);
	FIELD_SET(w, eth_int_t_W * i, eth_int_t, vec, q->vec);
}

static void new_completion(struct bench *b, unsigned int kind, unsigned int q)
{
	struct completion *c = &b->next[kind];

	c->q = q;
	c->err = rnd(b, 2);
	c->vlan = rnd(b, 2);
	c->tci = rnd(b, 65536);
	c->hash_type = rnd(b, 3);
	c->bufs = rnd(b, 256);
	c->len = rnd(b, 65536);
	c->csum = rnd(b, 65536);
	c->index = rnd(b, 65536);
	c->hash = rnd_next(&b->seed) >> 32;
	if (kind == TX) {
		b->dut.txc = FIELD_IN(eth_txc_t, q, q) | FIELD_IN(eth_txc_t, err, c->err) |
			     FIELD_IN(eth_txc_t, ci, c->index);
		return;
	}
	uint32_t *w = b->dut.rxc.m_storage;

	FIELD_SET(w, 0, eth_rxc_t, index, c->index);
	FIELD_SET(w, 0, eth_rxc_t, csum, c->csum);
	FIELD_SET(w, 0, eth_rxc_t, len, c->len);
	FIELD_SET(w, 0, eth_rxc_t, bufs, c->bufs);
	FIELD_SET(w, 0, eth_rxc_t, hash, c->hash);
	FIELD_SET(w, 0, eth_rxc_t, hash_type, c->hash_type);
	FIELD_SET(w, 0, eth_rxc_t, tci, c->tci);
	FIELD_SET(w, 0, eth_rxc_t, vlan, c->vlan);
	FIELD_SET(w, 0, eth_rxc_t, q, q);
}

static void model_completion(struct bench *b, unsigned int kind)
{
	struct completion *c = &b->next[kind];
	struct queue *q = &b->q[c->q];
	struct write w = {};

	if (!q->active || !q->enable)
		return; // nobody's
	w.q = c->q;
	w.kind = kind;
	w.addr = q->base + URDMA_ECQE_SIZE * (uint64_t)(q->taken & ((1u << q->log) - 1));
	w.phase = !(q->taken >> q->log & 1);
	w.begun = b->now;
	if (kind == RX) {
		w.word[0] = FIELD(URDMA_ECQE0_KIND, URDMA_ECQE_RX) |
			    FIELD(URDMA_ECQE0_VLAN, c->vlan) |
			    FIELD(URDMA_ECQE0_HASH_TYPE, c->hash_type) |
			    FIELD(URDMA_ECQE0_BUFS, c->bufs) | FIELD(URDMA_ECQE0_LENGTH, c->len) |
			    FIELD(URDMA_ECQE0_TCI, c->tci) | FIELD(URDMA_ECQE0_CSUM, c->csum);
		w.word[1] = FIELD(URDMA_ECQE1_HASH, c->hash) | FIELD(URDMA_ECQE1_INDEX, c->index);
	} else {
		w.word[0] = FIELD(URDMA_ECQE0_KIND, URDMA_ECQE_TX) | FIELD(URDMA_ECQE0_ERR, c->err);
		w.word[1] = FIELD(URDMA_ECQE1_INDEX, c->index);
	}
	q->taken++;
	b->n_kind[kind]++;
	b->writes.push_back(w);
}

static void model_count(struct queue *q, unsigned int kind, unsigned int n, uint64_t now)
{
	if (!q->n[kind])
		q->since[kind] = now;
	q->n[kind] += n;
}

static bool model_due(const struct queue *q, uint64_t now)
{
	for (int k = 0; k < 2; k++) {
		if (!q->n[k])
			continue;
		if (!q->frames[k] && !q->usecs[k])
			return true;
		if (q->frames[k] && q->n[k] >= q->frames[k])
			return true;
		if (q->usecs[k] && now - q->since[k] >= q->usecs[k] * (uint64_t)CYCLES_PER_US)
			return true;
	}
	return false;
}

static void check_write(struct bench *b)
{
	const uint32_t *p = b->dut.wr.m_storage;

	if (b->writes.empty())
		fail_msg("cycle %lu: a write that no completion asked for", b->now);
	const struct write &w = b->writes.front();
	uint64_t when = bits_get(p, FIELD_AT(192, dma_wr_t, data), 63);

	assert_int_equal(FIELD_GET(p, 0, dma_wr_t, addr), w.addr);
	assert_int_equal(FIELD_GET(p, 0, dma_wr_t, len), URDMA_ECQE_SIZE);
	assert_int_equal(FIELD_GET(p, 0, dma_wr_t, last), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(bits_get(p, FIELD_AT(64 * i, dma_wr_t, data), 64), w.word[i]);
	assert_int_equal(bits_get(p, FIELD_AT(255, dma_wr_t, data), 1), w.phase);
	assert_in_range(when, w.begun, b->now);
}

// An interrupt shows up: some arming has to be due, and all that are surely fired are served.
static void check_irq(struct bench *b)
{
	struct queue *q = &b->q[b->dut.irq_vec / 8];
	bool any = false;

	assert_int_equal(b->dut.irq_vec, q->vec);
	b->n_irqs++;
	while (!q->credits.empty() && q->credits.front().due < b->now &&
	       (!any || q->credits.front().due + SCAN + 1 < b->now)) {
		if (!q->credits.front().optional && q->credits.front().due > b->open + LATE &&
		    b->now - q->credits.front().due > b->worst)
			b->worst = b->now - q->credits.front().due;
		q->credits.pop_front();
		any = true;
	}
	if (!any)
		fail_msg("cycle %lu: an interrupt of queue pair %ld without cause, or early",
			 b->now, (long)(q - b->q));
	// one that became due a moment ago may be served by it too
	for (auto &c : q->credits)
		c.optional = true;
}

// What has to be out by now, while nothing holds interrupts up.
static void check_late(struct bench *b)
{
	for (auto &q : b->q) {
		while (!q.credits.empty() && q.credits.front().optional && b->irq_quiet > LATE &&
		       b->now - q.credits.front().due > LATE)
			q.credits.pop_front();
		if (q.credits.empty() || q.credits.front().optional)
			continue;
		uint64_t due = q.credits.front().due;

		// nothing has held interrupts up since then, or all that was held up is out
		if ((due > b->open + LATE || b->irq_quiet > LATE) && b->now - due >= LATE)
			fail_msg("cycle %lu: the interrupt due at %lu is missing", b->now, due);
	}
}

// The time until a queue pair fires when nothing else happens; UINT64_MAX: never.
static uint64_t model_timer(struct bench *b)
{
	uint64_t at = UINT64_MAX;

	for (auto &q : b->q) {
		for (int k = 0; k < 2; k++) {
			uint64_t t = q.since[k] + q.usecs[k] * (uint64_t)CYCLES_PER_US - b->now;

			if (q.active && q.armed && q.n[k] && q.usecs[k] && t < at)
				at = t;
		}
	}
	return at;
}

static void check_timer(struct bench *b)
{
	uint64_t at = model_timer(b);

	assert_true(b->writes.empty());
	assert_false(b->dut.irq_valid);
	for (auto &q : b->q)
		assert_true(q.credits.empty() || q.credits.back().optional);
	assert_int_equal(b->dut.timer_armed, at != UINT64_MAX);
	if (at == UINT64_MAX)
		return;
	b->n_timer++;
	if (b->dut.timer_cycles > at || at - b->dut.timer_cycles > LATE)
		fail_msg("cycle %lu: timer says %u, it fires after %lu", b->now,
			 b->dut.timer_cycles, at);
}

static void cycle(struct bench *b)
{
	Vurdma_eth_cq *d = &b->dut;
	bool db = false, arm = false;
	unsigned int db_q = 0;
	uint32_t db_ci = 0;

	for (unsigned int k = 0; k < 2; k++) {
		if (!b->valid[k] && rnd(b, 100) < b->rate[k]) {
			b->valid[k] = true;
			new_completion(b, k, rnd(b, QUEUES));
		}
	}
	d->txc_valid = b->valid[TX];
	d->rxc_valid = b->valid[RX];
	d->wr_ready = rnd(b, 100) < b->wr_percent;
	d->irq_ready = rnd(b, 100) < b->irq_percent;
	if (!d->irq_ready)
		b->open = b->now;
	if (rnd(b, 100) < b->db_percent) {
		db_q = rnd(b, QUEUES);
		struct queue *q = &b->q[db_q];

		db = true;
		arm = rnd(b, 100) < b->arm_percent;
		db_ci = rnd(b, 2) ? q->written : q->ci + rnd(b, q->written - q->ci + 1);
	}
	d->db_valid = db;
	d->db_q = db_q;
	d->db_arm = arm;
	d->db_ci = db_ci;
	d->cycles = b->now;
	bench_settle(*d);

	// what stands does not change
	if (b->wr_held) {
		assert_true(d->wr_valid);
		assert_memory_equal(b->wr_words, d->wr.m_storage, sizeof(b->wr_words));
	}
	b->wr_held = d->wr_valid && !d->wr_ready;
	memcpy(b->wr_words, d->wr.m_storage, sizeof(b->wr_words));
	if (b->irq_held)
		assert_true(d->irq_valid && d->irq_vec == b->irq_vec);
	else if (d->irq_valid)
		check_irq(b);
	b->irq_held = d->irq_valid && !d->irq_ready;
	b->irq_vec = d->irq_vec;
	b->irq_quiet = d->irq_valid ? 0 : b->irq_quiet + 1;

	// armings that are due in this cycle
	for (auto &q : b->q) {
		if (q.active && q.armed && model_due(&q, b->now)) {
			q.armed = false;
			q.credits.push_back({ b->now, !q.enable });
		}
	}
	check_late(b);
	for (unsigned int i = 0; i < QUEUES; i++) {
		if (b->q[i].active)
			assert_int_equal(bits_get(d->pi.m_storage, 32 * i, 32), b->q[i].taken);
		assert_int_equal(d->active >> i & 1, b->q[i].active);
	}

	bool taken[2] = { d->txc_valid && d->txc_ready, d->rxc_valid && d->rxc_ready };
	bool wrote = d->wr_valid && d->wr_ready;

	if (taken[TX] && taken[RX])
		fail_msg("cycle %lu: two completions at once", b->now);
	if (wrote) {
		check_write(b);
		struct queue *q = &b->q[b->writes.front().q];

		q->written++;
		if (q->armed)
			model_count(q, b->writes.front().kind, 1, b->now);
		b->writes.pop_front();
		b->n_writes++;
	}
	if (db && b->q[db_q].active) {
		struct queue *q = &b->q[db_q];

		q->ci = db_ci;
		if (arm) {
			b->n_arms++;
			// not looked at yet for sure: it may have been replaced
			for (auto &c : q->credits)
				c.optional |= b->now - c.due <= SCAN;
			q->armed = true;
			q->n[TX] = q->n[RX] = 0;
			if (q->written != db_ci)
				model_count(q, RX, q->written - db_ci, b->now);
		}
	}
	for (unsigned int k = 0; k < 2; k++) {
		if (taken[k]) {
			model_completion(b, k);
			b->valid[k] = false;
		}
	}
	// busy says all that is under way
	if (!d->busy && !d->rst)
		check_timer(b);
	bench_edge(*d);
	// active is seen as it is: it rises with enable, it falls when nothing is left
	for (unsigned int i = 0; i < QUEUES; i++) {
		struct queue *q = &b->q[i];
		bool active = d->active >> i & 1;

		if (active && !q->active) {
			assert_true(q->enable);
			q->taken = q->written = q->ci = 0;
			q->armed = false;
		}
		if (!active && q->active) {
			assert_false(q->enable);
			for (auto &w : b->writes)
				assert_int_not_equal(w.q, i);
			q->armed = false;
			for (auto &c : q->credits)
				c.optional = true;
		}
		q->active = active;
	}
	b->now++;
}

static void quiet(struct bench *b)
{
	b->rate[TX] = b->rate[RX] = b->db_percent = 0;
}

// Until nothing is to do but to wait for a timer.
static void drain(struct bench *b)
{
	unsigned int wr = b->wr_percent, irq = b->irq_percent;

	quiet(b);
	b->wr_percent = b->irq_percent = 100;
	for (int idle = 0, i = 0; idle < 3 * LATE; i++) {
		cycle(b);
		idle = b->dut.busy ? 0 : idle + 1;
		assert_true(i < 1000);
	}
	assert_true(b->writes.empty());
	for (auto &q : b->q)
		for (auto &c : q.credits)
			assert_true(c.optional);
	b->wr_percent = wr;
	b->irq_percent = irq;
}

static struct bench *start(void)
{
	struct bench *b = new struct bench();

	b->seed = bench_state(test_seed(1));
	b->now = 0xffffff00; // the low word of the time wraps early
	b->wr_percent = b->irq_percent = b->arm_percent = 100;
	for (unsigned int i = 0; i < QUEUES; i++) {
		b->q[i].log = 6;
		b->q[i].vec = 8 * i + rnd(b, 8);
		put_ring(b, i);
		put_int(b, i);
	}
	b->dut.rst = 1;
	for (int i = 0; i < 3; i++)
		cycle(b);
	b->dut.rst = 0;
	return b;
}

static void set_enable(struct bench *b, unsigned int i, bool enable)
{
	if (enable) {
		b->q[i].log = 6 + rnd(b, 4);
		b->q[i].base = rnd_next(&b->seed) << 12;
	}
	b->q[i].enable = enable;
	put_ring(b, i);
}

static void enable_all(struct bench *b)
{
	for (unsigned int i = 0; i < QUEUES; i++)
		set_enable(b, i, true);
	cycle(b);
	cycle(b);
	assert_int_equal(b->dut.active, 0xff);
}

// A change never meets an arming that is just due: that could be taken both ways.
static void set_moderation(struct bench *b, unsigned int i, unsigned int frames, unsigned int usecs)
{
	struct queue *q = &b->q[i];

	for (auto &c : q->credits)
		if (b->now - c.due <= SCAN)
			return;
	for (int k = 0; k < 2; k++) {
		q->frames[k] = rnd(b, 2) ? rnd(b, frames + 1) : 0;
		q->usecs[k] = rnd(b, 2) ? rnd(b, usecs + 1) : 0;
	}
	put_int(b, i);
}

// Time that nothing disturbs passes at once, to the timer or to somewhere before it.
static void jump(struct bench *b, uint64_t most)
{
	uint64_t n = most;

	b->dut.cycles = b->now;
	b->dut.txc_valid = b->dut.rxc_valid = b->dut.db_valid = 0;
	bench_settle(b->dut);
	if (b->dut.busy || b->valid[TX] || b->valid[RX])
		return;
	check_timer(b);
	if (b->dut.timer_armed && b->dut.timer_cycles < n)
		n = b->dut.timer_cycles;
	if (rnd(b, 4) == 0)
		n = rnd(b, n + 1);
	b->now += n;
	b->n_jumps++;
}

static void test_random(void **)
{
	struct bench *b = start();

	enable_all(b);
	for (int round = 0; round < 600; round++) {
		b->wr_percent = round % 5 == 3 ? 30 : round % 5 == 4 ? 5 : 100;
		b->irq_percent = round % 7 == 3 ? 30 : round % 7 == 5 ? 3 : 100;
		b->rate[TX] = rnd(b, 3) ? rnd(b, 8) : rnd(b, 101);
		b->rate[RX] = rnd(b, 3) ? rnd(b, 8) : rnd(b, 101);
		b->db_percent = rnd(b, 3) ? 1 + rnd(b, 4) : 20;
		b->arm_percent = 30 + rnd(b, 71);
		for (unsigned int i = 0; i < QUEUES; i++)
			set_moderation(b, i, rnd(b, 3) ? 10 : 255, rnd(b, 3) ? 3 : 100);
		for (int i = 0; i < 500; i++) {
			unsigned int which = rnd(b, QUEUES);

			if (rnd(b, 40) == 0)
				set_moderation(b, which, 20, 4);
			if (round >= 200 && rnd(b, 60) == 0) {
				if (b->q[which].enable)
					set_enable(b, which, false);
				else if (!b->q[which].active)
					set_enable(b, which, true);
			}
			cycle(b);
		}
		if (round % 3 == 0) {
			drain(b);
			for (int i = 0; i < 20; i++) {
				jump(b, 1u << rnd(b, 24));
				for (int j = 0; j < 30; j++)
					cycle(b);
			}
		}
	}
	drain(b);
	print_message("%lu + %lu completions, %lu interrupts of %lu armings, the latest after %lu "
		      "cycles, "
		      "%lu jumps, %lu looks at the timer\n",
		      b->n_kind[TX], b->n_kind[RX], b->n_irqs, b->n_arms, b->worst, b->n_jumps,
		      b->n_timer);
	assert_int_equal(b->n_writes, b->n_kind[TX] + b->n_kind[RX]);
	assert_true(b->n_kind[TX] > 20000 && b->n_kind[RX] > 20000);
	assert_true(b->n_irqs > 3000 && b->n_jumps > 1000 && b->n_timer > 1000);
	delete b;
}

// One completion a cycle, also of one queue pair, through several rounds of each size of ring.
static void test_rounds(void **)
{
	struct bench *b = start();

	for (unsigned int log = 6; log <= 16; log++) {
		unsigned int n = (5u << log) / 2, i = rnd(b, QUEUES);
		struct queue *q = &b->q[i];

		q->log = log;
		q->base = rnd_next(&b->seed) << 12;
		q->enable = true;
		put_ring(b, i);
		cycle(b);
		cycle(b);
		uint64_t writes = b->n_writes, kind[2] = { b->n_kind[TX], b->n_kind[RX] };

		for (unsigned int k = 0; k < n; k++) {
			for (int s = 0; s < 2; s++) {
				if (!b->valid[s])
					new_completion(b, s, i);
				b->valid[s] =
					log % 3 != (unsigned int)s; // one of them, the other, both
			}
			cycle(b);
		}
		assert_int_equal(b->n_writes - writes, n - 1);
		// sources that both have one take turns
		if (log % 3 == 2)
			assert_int_equal(b->n_kind[TX] - kind[TX], b->n_kind[RX] - kind[RX]);
		drain(b);
		q->enable = false;
		put_ring(b, i);
		cycle(b);
		cycle(b);
		assert_false(q->active);
	}
	delete b;
}

// The queue pair's side of the bench, by hand.
static void feed(struct bench *b, unsigned int kind, unsigned int q, unsigned int n)
{
	while (n--) {
		b->valid[kind] = true;
		new_completion(b, kind, q);
		while (b->valid[kind])
			cycle(b);
	}
	while (!b->writes.empty())
		cycle(b);
}

static void arm(struct bench *b, unsigned int q)
{
	uint64_t arms = b->n_arms;

	// the generator draws until it is this queue pair's; all consume all they see
	while (b->n_arms == arms) {
		b->db_percent = 0;
		b->dut.db_valid = 1;
		b->dut.db_q = q;
		b->dut.db_arm = 1;
		b->dut.db_ci = b->q[q].ci;
		b->dut.cycles = b->now;
		b->dut.txc_valid = b->dut.rxc_valid = 0;
		bench_settle(b->dut);
		assert_true(b->dut.busy);
		bench_edge(b->dut);
		b->now++;
		b->n_arms++;
		b->q[q].armed = true;
		b->q[q].n[TX] = b->q[q].n[RX] = 0;
		if (b->q[q].written != b->q[q].ci)
			model_count(&b->q[q], RX, b->q[q].written - b->q[q].ci, b->now - 1);
	}
}

static uint64_t irqs_after(struct bench *b, unsigned int cycles)
{
	uint64_t before = b->n_irqs;

	while (cycles--)
		cycle(b);
	return b->n_irqs - before;
}

// The cases of the contract one by one.
static void test_arming(void **)
{
	struct bench *b = start();
	struct queue *q = &b->q[3];

	enable_all(b);
	// not armed: none
	feed(b, RX, 3, 2);
	assert_int_equal(irqs_after(b, 100), 0);
	// armed afterwards: those there count, once
	arm(b, 3);
	assert_int_equal(irqs_after(b, 100), 1);
	feed(b, TX, 3, 2);
	assert_int_equal(irqs_after(b, 100), 0);
	// all seen: none until the next
	q->ci = q->written;
	arm(b, 3);
	assert_int_equal(irqs_after(b, 100), 0);
	feed(b, TX, 3, 1);
	assert_int_equal(irqs_after(b, 100), 1);
	// frames only, without a time: less than these wait for more
	q->ci = q->written;
	q->frames[RX] = 3;
	q->frames[TX] = 200;
	put_int(b, 3);
	arm(b, 3);
	feed(b, TX, 3, 2);
	feed(b, RX, 3, 2);
	assert_int_equal(irqs_after(b, 100000), 0);
	assert_false(b->dut.busy);
	assert_false(b->dut.timer_armed);
	feed(b, RX, 3, 1);
	assert_int_equal(irqs_after(b, 100), 1);
	// unseen ones count as received: the two of the transmit kind, three with one more
	q->ci = q->written - 2;
	arm(b, 3);
	assert_int_equal(irqs_after(b, 100), 0);
	feed(b, RX, 3, 1);
	assert_int_equal(irqs_after(b, 100), 1);
	// the greatest values; more unseen than can be counted
	q->frames[RX] = 255;
	q->usecs[RX] = 65535;
	put_int(b, 3);
	feed(b, TX, 3, 300);
	q->ci = q->written - 254;
	arm(b, 3);
	assert_int_equal(irqs_after(b, 100), 0);
	assert_in_range(b->dut.timer_cycles, 65535 * CYCLES_PER_US - 120, 65535 * CYCLES_PER_US);
	q->ci = q->written - 280;
	arm(b, 3);
	assert_int_equal(irqs_after(b, 100), 1);
	// the time of the oldest, not of the youngest
	q->ci = q->written;
	q->usecs[RX] = 2;
	put_int(b, 3);
	arm(b, 3);
	feed(b, RX, 3, 1);
	assert_int_equal(irqs_after(b, 400), 0);
	feed(b, RX, 3, 1);
	assert_int_equal(irqs_after(b, 80), 0);
	assert_int_equal(irqs_after(b, 40), 1);
	// another time while it waits: what counts is how long the oldest has waited
	q->ci = q->written;
	q->frames[RX] = 9;
	q->usecs[RX] = 0;
	put_int(b, 3);
	arm(b, 3);
	feed(b, RX, 3, 1);
	assert_int_equal(irqs_after(b, 1000), 0);
	q->usecs[RX] = 1000;
	put_int(b, 3);
	assert_int_equal(irqs_after(b, 1000), 0);
	q->usecs[RX] = 10;
	put_int(b, 3);
	assert_int_equal(irqs_after(b, 300), 0);
	assert_int_equal(irqs_after(b, 300), 1);
	// more than can be counted are more than any number
	q->ci = q->written;
	q->frames[RX] = 0;
	q->usecs[RX] = 65535;
	put_int(b, 3);
	arm(b, 3);
	feed(b, RX, 3, 300);
	assert_int_equal(irqs_after(b, 100), 0);
	q->frames[RX] = 255;
	put_int(b, 3);
	assert_int_equal(irqs_after(b, 100), 1);
	// a second doorbell begins anew: only the later ones count, and there is one interrupt
	q->ci = q->written;
	q->frames[RX] = 4;
	q->usecs[RX] = 0;
	put_int(b, 3);
	arm(b, 3);
	feed(b, RX, 3, 3);
	q->ci = q->written;
	arm(b, 3);
	feed(b, RX, 3, 3);
	assert_int_equal(irqs_after(b, 100), 0);
	feed(b, RX, 3, 1);
	assert_int_equal(irqs_after(b, 100), 1);
	feed(b, RX, 3, 9);
	assert_int_equal(irqs_after(b, 100), 0);
	drain(b);
	delete b;
}

// A queue pair that is disabled under sustained traffic comes to rest all the same.
static void test_disable(void **)
{
	struct bench *b = start();

	enable_all(b);
	for (int round = 0; round < 200; round++) {
		unsigned int i = rnd(b, QUEUES), n = 0;

		b->wr_percent = 10 + rnd(b, 91);
		for (int k = 0; k < 20; k++) {
			for (int s = 0; s < 2; s++) {
				if (!b->valid[s])
					new_completion(b, s, i);
				b->valid[s] = true;
			}
			cycle(b);
		}
		set_enable(b, i, false);
		while (b->q[i].active) {
			for (int s = 0; s < 2; s++) {
				if (!b->valid[s])
					new_completion(b, s, i);
				b->valid[s] = true;
			}
			cycle(b);
			if (n++ > 300)
				fail_msg("cycle %lu: it stays active", b->now);
		}
		for (int k = 0; k < 10; k++)
			cycle(b);
		set_enable(b, i, true);
	}
	drain(b);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arming),
		cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_disable),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
