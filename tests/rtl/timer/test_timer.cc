// SPDX-License-Identifier: Apache-2.0
// urdma_timer alone. A model with a deadline for each QP checks every clock: no timer is lost,
// early, or more than two sweeps late, none expires twice or after it was disarmed, and the time
// that the simulator may skip never passes a deadline. A failure means that a QP would wait forever
// for a lost answer, or retransmit without need.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
}
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "Vurdma_timer.h"
#include "rtl/bench.h"

enum {
	QPS = 4096,
	WORDS = QPS / 64,
	NONE = -1,
	// two cycles a word and the cycle in which the sweep starts; two more for each armed QP
	SWEEP = 2 * WORDS + 1,
	SWEEP_QP = 2
};

// What the model knows of the timer of a QP. Due: the deadline has passed, the expiry may come.
struct timer {
	bool armed, due;
	uint64_t deadline;
	// when it became due: clock, sweeps it may take, timers armed, and the bench's totals
	uint64_t since, sweeps, count, arms, waits;
};

struct set {
	unsigned int qpn;
	bool arm;
	uint64_t deadline;
};

typedef std::set<std::pair<uint64_t, unsigned int>> order;

struct bench {
	Vurdma_timer dut;
	uint64_t first_seed, seed; // the one it began with; now
	uint64_t now, time;	   // clocks; cycles as the block is told
	struct timer t[QPS];
	order pending, dues; // by deadline; by the clock in which they became due
	uint64_t count;
	uint64_t arms, waits;	 // totals: arms; clocks in which an expiry could not be taken
	unsigned int hold;	 // clocks that exp_ready lets an expiry wait
	bool hold_rnd;		 // hold is drawn anew for each expiry
	unsigned int held;	 // clocks that this one has waited
	int offer;		 // QP whose expiry was shown and not taken
	bool busy;		 // in the clock before
	uint64_t low, busy_low;	 // next sweep not before this; the lowest a sweep may have seen
	uint64_t reason;	 // last clock with a reason to be busy afterwards
	uint64_t expired, worst; // how many; how many clocks late at most
	int last;		 // QP that expired last
	char what[160];		 // the case, for messages
};

__attribute__((format(printf, 2, 3))) static void fault(struct bench *b, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail_msg("seed %lu, clock %lu, cycles %lu: %s (%s)", b->first_seed, b->now, b->time, text,
		 b->what);
}

// The header's bound, for this timer: sweeps, and what the block had to wait for.
static uint64_t late_limit(struct bench *b, const struct timer *t)
{
	uint64_t qps = t->count + b->arms - t->arms;

	return t->sweeps * (SWEEP + SWEEP_QP * qps) + b->waits - t->waits;
}

static void check_late(struct bench *b, unsigned int qpn)
{
	const struct timer *t = &b->t[qpn];

	if (b->now - t->since > late_limit(b, t))
		fault(b, "QP %u is %lu clocks late, %lu at most", qpn, b->now - t->since,
		      late_limit(b, t));
}

static uint64_t earliest(struct bench *b)
{
	if (!b->dues.empty())
		return b->time;
	return b->pending.empty() ? UINT64_MAX : b->pending.begin()->first;
}

// Deadlines that time has reached.
static void model_time(struct bench *b)
{
	while (!b->pending.empty() && b->pending.begin()->first <= b->time) {
		unsigned int qpn = b->pending.begin()->second;
		struct timer *t = &b->t[qpn];

		b->pending.erase(b->pending.begin());
		b->dues.insert({ b->now, qpn });
		t->due = true;
		t->since = b->now;
		t->sweeps = b->busy ? 2 : 1; // none is under way: the next one takes it
		t->count = b->count;
		t->arms = b->arms;
		t->waits = b->waits;
		b->reason = b->now;
	}
}

static void model_disarm(struct bench *b, unsigned int qpn)
{
	struct timer *t = &b->t[qpn];

	if (!t->armed)
		return;
	if (t->due)
		b->dues.erase({ t->since, qpn });
	else
		b->pending.erase({ t->deadline, qpn });
	t->armed = t->due = false;
	b->count--;
}

static void model_set(struct bench *b, const struct set *s)
{
	struct timer *t = &b->t[s->qpn];
	bool first = b->count == 0;

	b->reason = b->now;
	if (t->armed)
		b->busy_low = std::min(b->busy_low, t->deadline); // the sweep may have seen it
	model_disarm(b, s->qpn);
	if (!s->arm)
		return;
	t->armed = true;
	t->deadline = s->deadline;
	b->pending.insert({ s->deadline, s->qpn });
	b->count++;
	b->arms++;
	b->low = first ? s->deadline : std::min(b->low, s->deadline);
	b->busy_low = std::min(b->busy_low, s->deadline);
}

// An expiry is shown, and taken if ready.
static void check_expiry(struct bench *b, const struct set *s)
{
	Vurdma_timer *d = &b->dut;
	unsigned int qpn = d->exp_idx;
	const struct timer *t = &b->t[qpn];

	if (s && s->qpn == qpn)
		fault(b, "QP %u expires in the clock in which it is set", qpn);
	if (!t->armed)
		fault(b, "QP %u expires and is not armed", qpn);
	if (!t->due)
		fault(b, "QP %u expires %lu cycles early", qpn, t->deadline - b->time);
	check_late(b, qpn);
	if (!d->exp_ready) {
		b->offer = qpn;
		b->held++;
		b->waits++;
		return;
	}
	b->worst = std::max(b->worst, b->now - t->since);
	model_disarm(b, qpn);
	b->expired++;
	b->last = qpn;
	b->offer = NONE;
	b->held = 0;
	b->reason = b->now;
	if (b->hold_rnd)
		b->hold = one_in(b, 4) ? rnd(b, 12) : 0;
}

// What the block tells of its state. All rules are for the state before this clock's edge.
static void check_state(struct bench *b)
{
	Vurdma_timer *d = &b->dut;
	uint64_t truth = earliest(b) - b->time, least;

	if (d->armed != (b->count != 0))
		fault(b, "armed is %d, %lu timers are", d->armed, b->count);
	if (d->armed && d->wait_cycles > truth)
		fault(b, "wait_cycles is %u, the earliest deadline in %lu", d->wait_cycles, truth);
	if (b->busy && !d->busy)
		b->low = std::min(earliest(b), b->busy_low); // a sweep has found it
	if (!b->busy && d->busy) {
		if (!b->count || b->low > b->time)
			fault(b, "busy, and nothing is due for %lu cycles", b->low - b->time);
		b->busy_low = UINT64_MAX;
		b->reason = b->now;
	}
	if (d->armed && !d->busy) {
		least = b->low > b->time ? std::min(b->low - b->time, (uint64_t)UINT32_MAX) : 0;
		if (d->wait_cycles < least)
			fault(b, "wait_cycles is %u, nothing is due for %lu", d->wait_cycles,
			      least);
		if (!d->wait_cycles)
			fault(b, "not busy, and nothing to wait for");
	}
	if (!b->dues.empty())
		check_late(b, b->dues.begin()->second);
	else if (d->busy && b->now - b->reason > 2 * (SWEEP + SWEEP_QP * b->count))
		fault(b, "busy for %lu clocks without a reason", b->now - b->reason);
	b->busy = d->busy;
}

// One clock, with a set or without; cycles is then jump ahead of what it would be.
static void cycle(struct bench *b, const struct set *s, uint64_t jump = 0)
{
	Vurdma_timer *d = &b->dut;

	model_time(b);
	d->cycles = b->time;
	d->set_valid = s != NULL;
	if (s) {
		d->set_idx = s->qpn;
		d->set_arm = s->arm;
		d->set_deadline = s->deadline;
	}
	d->exp_ready = b->held >= b->hold;
	bench_settle(*d);
	if (jump && d->busy)
		fault(b, "the bench jumps over a busy clock");
	check_state(b);
	// an expiry stays until it is taken; it lets each set go first
	if (b->offer != NONE && !s && !(d->exp_valid && d->exp_idx == b->offer))
		fault(b, "the expiry of QP %d was shown and is gone", b->offer);
	if (d->exp_valid)
		check_expiry(b, s);
	if (s) {
		b->waits++;
		if (b->offer == (int)s->qpn)
			b->offer = NONE;
		model_set(b, s);
	}
	bench_edge(*d);
	b->now++;
	b->time += 1 + jump;
}

static void arm(struct bench *b, unsigned int qpn, uint64_t deadline)
{
	struct set s = { qpn, true, deadline };

	cycle(b, &s);
}

static void disarm(struct bench *b, unsigned int qpn)
{
	struct set s = { qpn, false, 0 };

	cycle(b, &s);
}

static void run(struct bench *b, unsigned int n)
{
	while (n--)
		cycle(b, NULL);
}

// By how much cycles may jump after the next clock, if nothing is set in it. The outputs of the
// last cycle() are from before its edge, so they are looked at anew.
static uint64_t may_jump(struct bench *b)
{
	Vurdma_timer *d = &b->dut;
	uint64_t left = earliest(b) - b->time;

	d->cycles = b->time;
	d->set_valid = 0;
	bench_settle(*d);
	if (d->busy || !d->armed)
		return 0;
	// as many jumps, each as far as the block can say, as there are until it is near
	if (d->wait_cycles == UINT32_MAX && left > 2ull * UINT32_MAX)
		return left - UINT32_MAX;
	return d->wait_cycles - 1;
}

// Until nothing is armed and all is quiet; time jumps where it may.
static void finish(struct bench *b)
{
	uint64_t most = b->now + 100000 + 1000 * b->count;

	do {
		cycle(b, NULL, may_jump(b));
		if (b->now > most)
			fault(b, "%lu timers do not expire", b->count);
	} while (b->busy || b->count);
}

// Until the sweeps that are due are over; timers stay armed.
static void settle(struct bench *b)
{
	cycle(b, NULL);
	do {
		cycle(b, NULL);
	} while (b->busy);
}

static void reset(struct bench *b)
{
	Vurdma_timer *d = &b->dut;
	unsigned int n = 0;

	d->rst = 1;
	d->set_valid = 0;
	d->exp_ready = 0;
	do {
		d->cycles = ++b->time;
		bench_settle(*d);
		// of the clock in which the reset comes the outputs mean nothing
		if (n && (d->exp_valid || d->armed || (!d->rst && !d->init_done && !d->busy)))
			fault(b, "an expiry or an armed timer in reset");
		bench_edge(*d);
		b->now++;
		n++;
		d->rst = n < 3;
		if (n > 4 * WORDS)
			fault(b, "no init_done");
	} while (d->rst || !d->init_done);
	b->time++;
	for (struct timer &t : b->t)
		t.armed = t.due = false;
	b->pending.clear();
	b->dues.clear();
	b->count = 0;
	b->offer = NONE;
	b->held = 0;
	b->busy = false;
	b->reason = b->now;
	b->low = b->busy_low = UINT64_MAX;
}

static struct bench *start(uint64_t seed, uint64_t time)
{
	struct bench *b = new bench;

	snprintf(b->what, sizeof(b->what), "start");
	b->first_seed = b->seed = seed;
	b->now = 1000;
	b->time = time;
	b->arms = b->waits = b->expired = b->worst = 0;
	b->hold = 0;
	b->hold_rnd = false;
	b->last = NONE;
	reset(b);
	return b;
}

static void stop(struct bench *b)
{
	finish(b);
	print_message("seed %lu: %lu clocks, %lu expiries, at most %lu clocks late\n",
		      b->first_seed, b->now, b->expired, b->worst);
	delete b;
}

// ---- every offset ----------------------------------------------------------------------------

// What is done to a QP, one set or two in consecutive clocks. now is of the clock, deadline the one
// it has.
enum op {
	OFF,
	SAME,
	PAST,	// a deadline that was before the one it has
	NOW,	// now
	NEXT,	// the clock after
	SOON,	// a few clocks, while the sweep may be at it
	MID,	// while this sweep or the next one runs
	LATER,	// behind both sweeps
	FAR,	// out of sight
	OFF_ON, // off, and armed in the next clock
	ON_OFF, // armed anew, and off in the next clock
	DOWN,	// later, then soon
	UP,	// soon, then later
	OPS
};

static const char *const op_name[OPS] = { "off",    "same", "past",  "now", "next",
					  "soon",   "mid",  "later", "far", "off on",
					  "on off", "down", "up" };

static unsigned int op_sets(enum op op, unsigned int qpn, uint64_t now, uint64_t deadline,
			    struct set s[2])
{
	uint64_t to[OPS] = {};

	to[SAME] = to[OFF_ON] = to[ON_OFF] = deadline;
	to[PAST] = deadline - 20;
	to[NOW] = now;
	to[NEXT] = now + 1;
	to[SOON] = to[UP] = now + 4;
	to[MID] = now + 70;
	to[LATER] = to[DOWN] = now + 300;
	to[FAR] = now + 100000;
	s[0] = { qpn, op != OFF && op != OFF_ON, to[op] };
	s[1] = { qpn, op != ON_OFF, op == DOWN ? to[SOON] : op == UP ? to[LATER] : deadline };
	return op < OFF_ON ? 1 : 2;
}

enum { BEFORE = 12, AFTER = 146 };

// QPs are armed, the first for the earliest deadline, each other gap later; who of them is set at
// this offset from the deadline.
static void offset_case(struct bench *b, const std::vector<unsigned int> &qps, uint64_t gap,
			enum op op, unsigned int who, int offset, unsigned int hold)
{
	uint64_t deadline = b->time + qps.size() + BEFORE;
	struct set s[2];
	unsigned int n;

	snprintf(b->what, sizeof(b->what),
		 "QPs %u %u.., gap %lu, \"%s\" of %u at %d, exp_ready after %u", qps[0], qps[1],
		 gap, op_name[op], qps[who], offset, hold);
	b->hold = hold;
	for (unsigned int i = 0; i < qps.size(); i++)
		arm(b, qps[i], deadline + i * gap);
	run(b, BEFORE + offset);
	n = op_sets(op, qps[who], b->time, deadline + who * gap, s);
	for (unsigned int i = 0; i < n; i++)
		cycle(b, &s[i]);
	finish(b);
}

static const std::vector<unsigned int> places[] = {
	{ 0, 1 },
	{ 63, 62 },
	{ 130, 140 },
	{ 63, 64 },
	{ 192, 128 },
	{ 0, 4095 },
	{ 4095, 0 },
	{ 4094, 4095 },
	{ 0, 1, 2 },
	{ 62, 63, 64 },
	{ 64, 0, 128 },
	{ 4095, 4093, 4094 },
	{ 4031, 4032, 4095 },
	{ 0, 2048, 4095 },
};

static void test_offsets(void **state)
{
	static const uint64_t gaps[] = { 0, 1, 3, 64, 130, 5000 };
	struct bench *b = start(test_seed(1), 1000);

	(void)state;
	for (const std::vector<unsigned int> &qps : places)
		for (unsigned int who = 0; who < qps.size(); who++)
			for (unsigned int op = 0; op < OPS; op++)
				for (int at = -BEFORE; at <= AFTER; at++)
					for (unsigned int hold = 0; hold < 4; hold++)
						offset_case(b, qps, gaps[rnd(b, 6)], (enum op)op,
							    who, at, hold);
	stop(b);
}

// ---- a QP that is set in the clock of its expiry ---------------------------------------------

static bool shows_expiry(struct bench *b)
{
	Vurdma_timer *d = &b->dut;

	d->cycles = b->time;
	d->set_valid = 0;
	bench_settle(*d);
	return d->exp_valid;
}

// In that clock, and in those of the next expiries: its own set, or one of the QP behind it, or of
// another one.
static void expiry_case(struct bench *b, const std::vector<unsigned int> &qps, enum op op,
			unsigned int who, unsigned int times, unsigned int hold)
{
	const unsigned int idle = 77; // armed for later
	uint64_t deadline = b->time + 20;

	snprintf(b->what, sizeof(b->what),
		 "QPs %u %u.., \"%s\" of %u, %u times, exp_ready after %u", qps[0], qps[1],
		 op_name[op], who, times, hold);
	b->hold = hold;
	for (unsigned int qpn : qps)
		arm(b, qpn, deadline);
	arm(b, idle, deadline + 5000);
	while (times && (b->busy || b->count > 1)) {
		unsigned int qpn = idle, sets;
		struct set s[2];

		if (!shows_expiry(b)) {
			cycle(b, NULL, may_jump(b));
			continue;
		}
		run(b, rnd(b, hold + 1));
		times--;
		if (who < 3)
			qpn = (b->dut.exp_idx + who) % QPS;
		else if (who < 5)
			qpn = qps[who - 3];
		sets = op_sets(op, qpn, b->time, b->time + 60, s);
		for (unsigned int i = 0; i < sets; i++)
			cycle(b, &s[i]);
	}
	finish(b);
}

static void test_expiry(void **state)
{
	struct bench *b = start(test_seed(1), 1000);

	(void)state;
	for (const std::vector<unsigned int> &qps : places)
		for (unsigned int op = 0; op < OPS; op++)
			for (unsigned int who = 0; who < 6; who++)
				for (unsigned int times = 1; times < 5; times++)
					for (unsigned int hold = 0; hold < 4; hold++)
						expiry_case(b, qps, (enum op)op, who, times, hold);
	stop(b);
}

// ---- patterns of the requester ---------------------------------------------------------------

// Acknowledgements: the QP is armed anew in each period-th clock, by a short and a long deadline in
// turn; stopped in between, or not. Another QP expires meanwhile.
static void pattern(struct bench *b, unsigned int qpn, unsigned int other, unsigned int period,
		    unsigned int brief, unsigned int lasting, bool stops)
{
	snprintf(b->what, sizeof(b->what), "QP %u in each %u. clock for %u and %u, stops %d; QP %u",
		 qpn, period, brief, lasting, stops, other);
	b->hold = rnd(b, 3);
	arm(b, other, b->time + 50);
	for (unsigned int i = 0; i < 200; i++) {
		if (i % period)
			cycle(b, NULL);
		else if (stops && i / period % 3 == 2)
			disarm(b, qpn);
		else
			arm(b, qpn, b->time + (i / period & 1 ? lasting : brief));
	}
	if (rnd(b, 2))
		disarm(b, qpn);
	finish(b);
}

static void test_patterns(void **state)
{
	struct bench *b = start(test_seed(2), 1000);

	(void)state;
	for (unsigned int period = 1; period < 8; period++)
		for (unsigned int brief : { 0, 1, 2, 3, 5, 30 })
			for (unsigned int lasting = 0; lasting <= AFTER; lasting += 2)
				for (bool stops : { false, true }) {
					const std::vector<unsigned int> &q =
						places[rnd(b, sizeof(places) / sizeof(*places))];
					bool swap = rnd(b, 2);

					pattern(b, q[swap], q[!swap], period, brief, lasting,
						stops);
				}
	stop(b);
}

// ---- what a sweep costs ----------------------------------------------------------------------

// With n QPs armed, one of them due: two clocks a word, two a QP, one to start. When nothing is
// set, wait_cycles is exact after it. Acknowledgements do not make more sweeps.
static void test_cost(void **state)
{
	struct bench *b = start(test_seed(3), 1000);

	(void)state;
	for (unsigned int n : { 1, 2, 63, 64, 65, 1000, 4096 }) {
		unsigned int clocks = 0, sweeps = 0, step = QPS / n;
		uint64_t far = b->time + 2000000, due = b->time + 2 * n + 10;

		snprintf(b->what, sizeof(b->what), "%u QPs are armed", n);
		for (unsigned int i = 0; i < n; i++)
			arm(b, i * step, i == n / 2 ? due : far + i);
		do {
			cycle(b, NULL);
			clocks += b->busy;
		} while (b->count == n || b->busy);
		assert_int_equal(clocks, SWEEP + SWEEP_QP * n);
		arm(b, 1, b->time + 3000);
		for (unsigned int i = 1; i < 20000; i++) {
			bool busy = b->busy;

			if (i % 50)
				cycle(b, NULL);
			else
				arm(b, 1, b->time + 3000);
			sweeps += b->busy && !busy;
		}
		assert_in_range(sweeps, 1, 20000 / 3000 + 1);
		for (unsigned int i = 0; i < QPS; i++)
			if (i % 64)
				disarm(b, i);
		finish(b);
	}
	stop(b);
}

// ---- reset -----------------------------------------------------------------------------------

// In any clock of a sweep. What was armed is off, and can be armed.
static void test_reset(void **state)
{
	struct bench *b = start(test_seed(4), 1000);

	(void)state;
	for (int at = -2; at <= AFTER; at++) {
		snprintf(b->what, sizeof(b->what), "reset at %d", at);
		b->hold = rnd(b, 4);
		arm(b, 0, b->time + 10);
		arm(b, 1 + rnd(b, QPS - 2), b->time + 9);
		arm(b, QPS - 1, b->time + 8 + rnd(b, 30));
		run(b, 7 + at);
		reset(b);
		run(b, 300);
		for (unsigned int i = rnd(b, 300); i < QPS; i += 300)
			arm(b, i, b->time + 100);
		finish(b);
	}
	stop(b);
}

// ---- large numbers ---------------------------------------------------------------------------

static void test_far(void **state)
{
	static const uint64_t times[] = { (1ull << 32) - 700,  (1ull << 33) - 50,
					  (1ull << 63) - 700,  (1ull << 63) - 20,
					  (1ull << 63) + 3,    UINT64_MAX - (1ull << 40),
					  UINT64_MAX - 100000, (1ull << 62) - 9 };
	static const uint64_t waits[] = { 30,
					  1000,
					  (1ull << 31) - 1,
					  1ull << 31,
					  (1ull << 32) - 2,
					  (1ull << 32) - 1,
					  1ull << 32,
					  (1ull << 32) + 1,
					  (1ull << 33) + 40,
					  1ull << 40,
					  1ull << 62,
					  (1ull << 63) - 1,
					  (1ull << 63) + 5,
					  UINT64_MAX };

	(void)state;
	for (uint64_t time : times) {
		for (uint64_t wait : waits) {
			struct bench *b = start(test_seed(1), time - 4 - WORDS);
			uint64_t at, near;

			snprintf(b->what, sizeof(b->what), "time 0x%lx, wait 0x%lx", time, wait);
			at = wait > UINT64_MAX - b->time ? UINT64_MAX : b->time + wait;
			near = b->time + std::min(wait, (uint64_t)400) / 2;
			arm(b, 5, at);
			run(b, 3);
			arm(b, 4090, near); // nearer than the first
			arm(b, 4091, UINT64_MAX);
			arm(b, 5, at); // arming anew changes nothing
			while (b->count > 2 && b->now < 3000)
				cycle(b, NULL, may_jump(b));
			settle(b);
			// only the far one of them is left, or none
			disarm(b, 4091);
			if (at < UINT64_MAX - 10000)
				finish(b);
			delete b;
		}
	}
}

// ---- random ----------------------------------------------------------------------------------

struct phase {
	std::vector<unsigned int> qps;
	unsigned int sets, burst, jumps; // one set in so many clocks, one jump
	uint64_t range;
	bool far;
};

static struct set random_set(struct bench *b, const struct phase *p)
{
	struct set s = { p->qps[rnd(b, p->qps.size())], rnd(b, 3) != 0, 0 };

	// where the sweep is, or what has just expired
	if (p->qps.size() > 1 && one_in(b, 3))
		s.qpn = (b->dut.exp_idx + rnd(b, 3)) % QPS;
	else if (b->last != NONE && one_in(b, 6))
		s.qpn = b->last;
	switch (rnd(b, 8)) {
	case 0:
		s.deadline = b->time - rnd(b, 100);
		break;
	case 1:
		s.deadline = b->time + rnd(b, 4);
		break;
	case 2:
		s.deadline = b->time + rnd(b, 300);
		break;
	case 3:
		s.deadline = b->t[s.qpn].deadline;
		break;
	case 4:
		s.deadline = b->time + (p->far ? (1ull << 31) + rnd(b, 1ull << 33) : p->range);
		break;
	default:
		s.deadline = b->time + rnd(b, p->range);
		break;
	}
	return s;
}

static void random_phase(struct bench *b, unsigned int n)
{
	static const unsigned int sizes[] = { 1, 2, 3, 8, 64, 512, QPS };
	static const unsigned int sets[] = { 1, 2, 3, 8, 40, 200, 2000 };
	static const uint64_t ranges[] = { 10, 200, 400, 3000, 40000 };
	struct phase p;
	unsigned int size = sizes[rnd(b, 7)], first = rnd(b, QPS), burst = 0;

	for (unsigned int i = 0; i < size; i++)
		p.qps.push_back(first % 3 ? rnd(b, QPS) : (first + i) % QPS);
	p.sets = sets[rnd(b, 7)];
	p.burst = rnd(b, 3) ? 1 : 1 + rnd(b, 20);
	p.jumps = one_in(b, 3) ? 0 : 1 + rnd(b, 30);
	p.range = ranges[rnd(b, 5)];
	p.far = rnd(b, 2);
	b->hold_rnd = rnd(b, 2);
	b->hold = 0;
	for (unsigned int i = 0; i < n; i++) {
		struct set s;
		uint64_t jump = 0;

		if (burst)
			burst--;
		else if (one_in(b, p.sets))
			burst = p.burst;
		if (burst) {
			s = random_set(b, &p);
			cycle(b, &s);
			continue;
		}
		if (p.jumps && one_in(b, p.jumps)) {
			jump = may_jump(b);
			// the whole way, or a part; the simulator may be two cycles late
			if (jump)
				jump = one_in(b, 3) ? rnd(b, jump + 1) : jump + rnd(b, 3);
			else if (!b->count && !b->dut.busy)
				jump = rnd(b, 5000);
		}
		cycle(b, NULL, jump);
	}
	// each far deadline would be a sweep of its own
	for (unsigned int i = 0; i < QPS && b->count > 256; i++)
		if (b->t[i].armed && b->t[i].deadline > b->time + 50000)
			disarm(b, i);
	finish(b);
}

static void test_random(void **state)
{
	struct bench *b = start(test_seed(5), 1000000);

	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		snprintf(b->what, sizeof(b->what), "phase %u", i);
		random_phase(b, 10000);
	}
	stop(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets),	 cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_patterns), cmocka_unit_test(test_cost),
		cmocka_unit_test(test_reset),	 cmocka_unit_test(test_far),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
