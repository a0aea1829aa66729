// SPDX-License-Identifier: Apache-2.0
// urdma_rx_atomic alone, with DMA of random latency, against a model that executes one ATOMIC after
// the other in the order of acceptance. A difference means that two ATOMICs on one word were not
// atomic towards each other, or that a repetition was executed again or answered wrongly.

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
#include <unordered_map>

#include "Vurdma_rx_atomic.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"
#include "urdma_rx_pkg.h"
#include "urdma_trace_pkg.h"

enum { QPS = 6, KEPT = 16, IN_FLIGHT = 16 };

// reads at or above fail
static const uint64_t bad_memory = 0xdead00000000ull;
static const uint64_t ring_base = 0x5500001000ull;

struct atomic {
	unsigned int qpn;
	bool dup, fetch_add, flush;
	uint64_t addr, swap_add, compare;
	unsigned int psn, msn;
};

struct answer {
	unsigned int kind, qpn, psn, msn, syndrome;
	uint64_t value, writes; // writes that have to be accepted before
};

// told by the lane
struct mute {
	unsigned int qpn, psn, why;
	bool reset; // of its QP since: that may be why
};

struct write {
	uint64_t addr, value;
	unsigned int qpn;
};

struct stored {
	unsigned int psn;
	uint64_t value;
};

struct read {
	uint64_t addr, due, value;
	bool late; // memory is looked at when the answer comes, not when the request goes
};

struct bench {
	Vurdma_rx_atomic dut;
	uint64_t seed, now;
	std::unordered_map<uint64_t, uint64_t> mem, model; // the host's; what it will be
	std::deque<struct atomic> todo;
	std::deque<struct read> reads;
	std::deque<struct write> writes;
	std::deque<struct answer> answers;
	std::deque<struct mute> mutes;
	std::deque<unsigned int> errors;
	std::deque<struct stored> kept[QPS];
	bool doomed[QPS];	  // a failure is accepted, not yet told
	bool failed[QPS];	  // it has been told
	unsigned int owed[QPS];	  // answers
	unsigned int silent[QPS]; // accepted without an answer to come, since the unit was idle
	unsigned int psn[QPS];
	unsigned int latency, jitter; // of reads
	unsigned int stall;	      // of 8 cycles in which a ready is 0, about
	int reset_qpn;
	bool loose; // resets while under way: effects are not predicted
	uint64_t taken, answered, muted, naks, written, told, read_count, found, missed, flushed;
	unsigned int most_reads;
};

// ---- model
// ----------------------------------------------------------------------------------------

static void accept(struct bench *b, const struct atomic *a)
{
	struct answer ans = { RSP_ATOMIC, a->qpn, a->psn, a->msn, SYN_ACK, 0, 0 };
	std::deque<struct stored> *kept = &b->kept[a->qpn];
	bool answer = !b->doomed[a->qpn];

	b->taken++;
	if (!answer)
		b->mutes.push_back({ a->qpn, a->psn, TRM_ENDED, false });
	if (answer && a->dup) {
		answer = false;
		for (const struct stored &s : *kept) {
			if (s.psn != a->psn)
				continue;
			ans.value = s.value;
			answer = true;
		}
		if (answer) {
			b->found++;
		} else {
			b->missed++;
			b->mutes.push_back({ a->qpn, a->psn, TRM_OLD, false });
		}
	} else if (answer && a->addr >= bad_memory) {
		ans.kind = RSP_ACK;
		ans.msn = (a->msn - 1) & 0xffffff; // what failed is not completed
		ans.syndrome = SYN_NAK_OP;
		b->errors.push_back(a->qpn);
		b->mutes.push_back({ a->qpn, a->psn, TRM_NAK, false });
		b->doomed[a->qpn] = true;
	} else if (answer && a->flush) {
		ans.kind = RSP_READ;
		b->flushed++;
	} else if (answer) {
		uint64_t old = b->model[a->addr];

		ans.value = old;
		if (a->fetch_add || old == a->compare) {
			uint64_t now = a->fetch_add ? old + a->swap_add : a->swap_add;

			b->model[a->addr] = now;
			b->writes.push_back({ a->addr, now, a->qpn });
		}
		kept->push_back({ a->psn, old });
		if (kept->size() > KEPT)
			kept->pop_front();
	}
	if (!answer) {
		b->silent[a->qpn]++;
		return;
	}
	ans.writes = b->written + b->writes.size();
	b->owed[a->qpn]++;
	b->answers.push_back(ans);
}

// ---- the block's surroundings
// ---------------------------------------------------------------------

static bool go(struct bench *b)
{
	return rnd(b, 8) >= b->stall;
}

static void check_answer(struct bench *b)
{
	const uint32_t *w = b->dut.rsp.m_storage;
	struct answer want, got = {};

	got.kind = FIELD_GET(w, 0, ack_req_t, kind);
	got.qpn = FIELD_GET(w, 0, ack_req_t, qpn);
	got.psn = FIELD_GET(w, 0, ack_req_t, psn);
	got.syndrome = FIELD_GET(w, 0, ack_req_t, syndrome);
	got.msn = FIELD_GET(w, 0, ack_req_t, msn);
	got.value = FIELD_GET(w, 0, ack_req_t, va);
	if (b->loose) {
		b->answered++;
		return;
	}
	if (b->answers.empty())
		fail_msg("cycle %lu: answer to QP %u PSN %u that is not due", b->now, got.qpn,
			 got.psn);
	want = b->answers.front();
	b->answers.pop_front();
	if (got.kind != want.kind || got.qpn != want.qpn || got.psn != want.psn ||
	    got.msn != want.msn || got.syndrome != want.syndrome ||
	    (want.kind == RSP_ATOMIC && got.value != want.value))
		fail_msg("cycle %lu: answer kind %u QP %u PSN %u MSN %u syndrome %x value %lx, "
			 "should be kind %u QP %u PSN %u MSN %u syndrome %x value %lx",
			 b->now, got.kind, got.qpn, got.psn, got.msn, got.syndrome, got.value,
			 want.kind, want.qpn, want.psn, want.msn, want.syndrome, want.value);
	if (b->written < want.writes)
		fail_msg("cycle %lu: answer to QP %u PSN %u before its write", b->now, got.qpn,
			 got.psn);
	b->owed[want.qpn]--;
	b->answered++;
}

static void check_mute(struct bench *b)
{
	uint64_t lane = b->dut.trace_mute;
	struct mute want, got = { (unsigned int)FIELD_OF(lane, tr_mute_t, qpn),
				  (unsigned int)FIELD_OF(lane, tr_mute_t, psn),
				  (unsigned int)FIELD_OF(lane, tr_mute_t, why), false };

	b->muted++;
	b->naks += got.why == TRM_NAK;
	if (b->loose)
		return;
	if (b->mutes.empty())
		fail_msg("cycle %lu: the lane tells of QP %u PSN %u, why %u, and nothing is due",
			 b->now, got.qpn, got.psn, got.why);
	want = b->mutes.front();
	if (want.qpn != got.qpn || want.psn != got.psn ||
	    (want.why != got.why && !(want.reset && got.why == TRM_ENDED)))
		fail_msg("cycle %lu: the lane tells of QP %u PSN %u, why %u, should be QP %u "
			 "PSN %u, why %u",
			 b->now, got.qpn, got.psn, got.why, want.qpn, want.psn, want.why);
	b->mutes.pop_front();
}

static void check_write(struct bench *b)
{
	const uint32_t *w = b->dut.wr.m_storage;
	struct write want, got = { FIELD_GET(w, 0, dma_wr_t, addr),
				   bits_get(w, FIELD_AT(0, dma_wr_t, data), 64), 0 };

	assert_int_equal(FIELD_GET(w, 0, dma_wr_t, len), 8);
	assert_int_equal(FIELD_GET(w, 0, dma_wr_t, last), 1);
	b->mem[got.addr] = got.value;
	b->written++;
	if (b->loose)
		return;
	if (b->writes.empty())
		fail_msg("cycle %lu: write of %lx to %lx that is not due", b->now, got.value,
			 got.addr);
	want = b->writes.front();
	b->writes.pop_front();
	if (got.addr != want.addr || got.value != want.value)
		fail_msg("cycle %lu: write of %lx to %lx, should be %lx to %lx", b->now, got.value,
			 got.addr, want.value, want.addr);
}

static void check_error(struct bench *b)
{
	unsigned int qpn = b->dut.err >> 9;

	assert_int_equal(b->dut.err & 0x1ff, URDMA_EV_QP_FATAL);
	if (b->errors.empty() || b->errors.front() != qpn)
		fail_msg("cycle %lu: failure of QP %u is told, none is due", b->now, qpn);
	b->errors.pop_front();
	b->doomed[qpn] = false;
	b->failed[qpn] = true;
	b->told++;
}

static void drive(struct bench *b)
{
	Vurdma_rx_atomic *d = &b->dut;

	d->in_valid = !d->rst && !b->todo.empty() && b->reset_qpn < 0;
	if (d->in_valid) {
		const struct atomic *a = &b->todo.front();
		uint32_t *w = d->in.m_storage;

		FIELD_SET(w, 0, atm_t, msn, a->msn);
		FIELD_SET(w, 0, atm_t, psn, a->psn);
		FIELD_SET(w, 0, atm_t, compare, a->compare);
		FIELD_SET(w, 0, atm_t, swap_add, a->swap_add);
		FIELD_SET(w, 0, atm_t, addr, a->addr);
		FIELD_SET(w, 0, atm_t, fetch_add, a->fetch_add);
		FIELD_SET(w, 0, atm_t, flush, a->flush);
		FIELD_SET(w, 0, atm_t, dup, a->dup);
		FIELD_SET(w, 0, atm_t, qpn, a->qpn);
	}
	d->rst_valid = b->reset_qpn >= 0;
	d->rst_qpn = b->reset_qpn >= 0 ? b->reset_qpn : 0;
	d->rd_req_ready = go(b);
	d->wr_ready = go(b);
	d->rsp_ready = go(b);
	d->err_ready = go(b);
	d->chk_qpn = rnd(b, QPS);
	d->rd_rsp_valid = 0;
	if (!b->reads.empty() && b->reads.front().due <= b->now) {
		struct read rd = b->reads.front();
		uint32_t *w = d->rd_rsp.m_storage;

		b->reads.pop_front();
		d->rd_rsp_valid = 1;
		FIELD_SET(w, 0, dma_rd_rsp_t, err, rd.addr >= bad_memory);
		FIELD_SET(w, 0, dma_rd_rsp_t, last, 1);
		bits_set(w, FIELD_AT(0, dma_rd_rsp_t, data), 64,
			 rd.late ? b->mem[rd.addr] : rd.value);
	}
}

static void cycle(struct bench *b)
{
	Vurdma_rx_atomic *d = &b->dut;

	drive(b);
	bench_settle(*d);

	if (!d->rst && !b->loose) {
		unsigned int q = d->chk_qpn;
		bool must = b->owed[q] || b->doomed[q], may = must || b->silent[q];

		if ((must && !d->chk_busy) || (!may && d->chk_busy))
			fail_msg("cycle %lu: chk_busy of QP %u is %u, %u answers are due", b->now,
				 q, d->chk_busy, b->owed[q]);

		// with no write to come it may be 1, until that is known; of FLUSHes alone it is
		// not
		bool due = false, plain = b->silent[q] || b->doomed[q];
		for (const struct write &wr : b->writes)
			due |= wr.qpn == q;
		for (const struct answer &a : b->answers)
			plain |= a.qpn == q && a.kind != RSP_READ;
		if (due ? !d->chk_writes : d->chk_writes && !plain)
			fail_msg("cycle %lu: chk_writes of QP %u is %u", b->now, q, d->chk_writes);
	}
	if (!d->rst && !d->busy) {
		for (unsigned int &s : b->silent)
			s = 0;
	}
	bool took = d->in_valid && d->in_ready;
	bool asked = d->rd_req_valid && d->rd_req_ready;
	// as it was before this cycle's write: that may be on its way still
	if (asked) {
		uint64_t addr = FIELD_GET(d->rd_req.m_storage, 0, dma_rd_req_t, addr);
		struct read rd = { addr, 0, b->mem[addr], rnd(b, 2) == 0 };

		assert_int_equal(FIELD_GET(d->rd_req.m_storage, 0, dma_rd_req_t, len), 8);
		assert_int_equal(addr % 8, 0);
		rd.due = b->now + b->latency + (b->jitter ? rnd(b, b->jitter) : 0);
		if (!b->reads.empty() && rd.due <= b->reads.back().due)
			rd.due = b->reads.back().due + 1;
		b->reads.push_back(rd);
		b->read_count++;
		if (b->reads.size() > b->most_reads)
			b->most_reads = b->reads.size();
	}
	if (d->wr_valid && d->wr_ready)
		check_write(b);
	if (d->rsp_valid && d->rsp_ready)
		check_answer(b);
	// one that leaves in the cycle of the reset, too
	for (struct mute &m : b->mutes)
		m.reset |= d->rst_valid && m.qpn == d->rst_qpn;
	if (!d->rst && d->trace_mute_valid)
		check_mute(b);
	if (d->err_valid && d->rsp_valid)
		fail_msg("cycle %lu: an error before its NAK", b->now);
	if (d->err_valid && d->err_ready)
		check_error(b);
	if (d->rst_valid) {
		b->kept[b->reset_qpn].clear();
		b->failed[b->reset_qpn] = false;
		b->reset_qpn = -1;
	}
	if (took) {
		accept(b, &b->todo.front());
		b->todo.pop_front();
	}
	bench_edge(*d);
	b->now++;
}

static struct bench *start(uint64_t seed)
{
	struct bench *b = new struct bench();

	print_message("seed %lu\n", seed);
	b->seed = test_seed(seed);
	b->latency = 100;
	b->jitter = 100;
	b->stall = 2;
	b->reset_qpn = -1;
	for (int i = 0; i < QPS; i++)
		b->psn[i] = rnd(b, 1 << 24);
	b->dut.rst = 1;
	for (int i = 0; i < 4; i++)
		cycle(b);
	b->dut.rst = 0;
	while (!b->dut.init_done)
		cycle(b);
	return b;
}

static void drain(struct bench *b)
{
	uint64_t limit = b->now + 100000 + 1000 * b->todo.size();

	while (b->dut.busy || !b->todo.empty() || b->reset_qpn >= 0) {
		cycle(b);
		if (b->now > limit)
			fail_msg("no end: an ATOMIC is stuck");
	}
	cycle(b);
	// each has an answer or an event of the lane; a NAK has both
	assert_int_equal(b->taken + b->naks, b->answered + b->muted);
	if (b->loose)
		return;
	assert_int_equal(b->answers.size(), 0);
	assert_int_equal(b->mutes.size(), 0);
	assert_int_equal(b->writes.size(), 0);
	assert_int_equal(b->errors.size(), 0);
	for (const auto &word : b->model)
		assert_int_equal(b->mem[word.first], word.second);
}

static uint64_t word(struct bench *b, uint64_t i)
{
	uint64_t addr = ring_base + 8 * i;

	if (!b->mem.count(addr))
		b->mem[addr] = b->model[addr] = rnd(b, 4);
	return addr;
}

static struct atomic next(struct bench *b, unsigned int qpn, uint64_t words)
{
	struct atomic a = {};

	a.qpn = qpn;
	a.addr = word(b, rnd(b, words));
	a.fetch_add = rnd(b, 2);
	// small numbers, so that comparisons meet; and the carry's whole way
	a.swap_add = rnd(b, 8) ? rnd(b, 4) : rnd_next(&b->seed);
	a.compare = rnd(b, 4);
	b->psn[qpn] = (b->psn[qpn] + 1 + rnd(b, 3)) & 0xffffff;
	a.psn = b->psn[qpn];
	a.msn = rnd(b, 1 << 24);
	return a;
}

// ---- tests
// ------------------------------------------------------------------------------------------

// Everything at once: one to many words, repetitions, failures, resets of QPs at rest.
static void test_random(void **state)
{
	struct bench *b = start(1);
	uint64_t failures;

	(void)state;
	for (int round = 0; round < 160; round++) {
		uint64_t words = round % 3 == 0 ? 1 : round % 3 == 1 ? 5 : 1000;
		uint64_t bad = round % 4 == 0 ? 20 : 0;
		unsigned int qps = bad ? 1 + round / 8 % 3 : QPS;
		uint64_t pace = round % 8 < 4 ? 1 : 6; // so that the ring is full, or not

		b->stall = rnd(b, 7);
		b->latency = 1 + rnd(b, 200);
		b->jitter = rnd(b, 3) * 60;
		for (int i = 0; i < 4000; i++) {
			unsigned int q = rnd(b, qps);

			// as placement does: nothing of a QP whose failure has been told
			while (!b->todo.empty() && b->failed[b->todo.front().qpn])
				b->todo.pop_front();
			if (b->reset_qpn < 0 && rnd(b, 50) == 0 && !b->owed[q] && !b->doomed[q])
				b->reset_qpn = q;
			else if (b->todo.size() < 3 && rnd(b, pace + 1) == 0 && !b->failed[q]) {
				struct atomic a = next(b, q, words);

				if (bad && rnd(b, bad) == 0)
					a.addr = bad_memory + 8 * rnd(b, 4);
				a.dup = rnd(b, 5) == 0;
				// of any address, also where ATOMICs are under way
				if (!a.dup && rnd(b, 4) == 0) {
					a.flush = true;
					a.addr += rnd(b, 8);
				}
				if (a.dup && !b->kept[q].empty()) {
					size_t n = rnd(b, b->kept[q].size());

					a.psn = b->kept[q][n].psn;
				} else if (a.dup) {
					a.psn = (a.psn - rnd(b, 60)) & 0xffffff;
				}
				b->todo.push_back(a);
			}
			cycle(b);
		}
		while (!b->todo.empty() && b->dut.busy)
			cycle(b);
		b->todo.clear();
		drain(b);
		for (unsigned int q = 0; q < QPS; q++) {
			if (!b->failed[q])
				continue;
			b->reset_qpn = q;
			cycle(b);
		}
	}
	failures = b->told;
	print_message(
		"%lu ATOMICs, %lu answers, %lu reads, %lu writes, repetitions %lu found %lu not, "
		"%lu failures, up to %u reads at once, %lu cycles\n",
		b->taken, b->answered, b->read_count, b->written, b->found, b->missed, failures,
		b->most_reads, b->now);
	assert_true(b->found > 1000 && b->missed > 100 && failures > 50 && b->flushed > 10000);
	assert_int_equal(b->most_reads, IN_FLIGHT);
	delete b;
}

// A read that fails, and ATOMICs of the same QP that come at each moment before and after it is
// told: none of them happens. Those of another QP do.
static void test_failure(void **state)
{
	struct bench *b = start(6);

	(void)state;
	b->latency = 60;
	b->jitter = 0;
	for (unsigned int i = 0; i < 400; i++) {
		struct atomic a = next(b, 0, 4);

		b->stall = i < 200 ? 0 : 5;
		a.addr = bad_memory;
		b->todo.push_back(a);
		while (!b->todo.empty())
			cycle(b);
		for (unsigned int wait = i % 100; wait; wait--)
			cycle(b);
		for (unsigned int n = 0; n < 4 && !b->failed[0]; n++) {
			b->todo.push_back(next(b, n == 2, 4));
			while (!b->todo.empty()) {
				if (b->failed[b->todo.front().qpn])
					b->todo.pop_front();
				else
					cycle(b);
			}
		}
		drain(b);
		assert_true(b->failed[0]);
		b->reset_qpn = 0;
		cycle(b);
	}
	assert_int_equal(b->told, 400);
	delete b;
}

// A FLUSH reads, also where an ATOMIC on the same bytes is under way whose result others take; and
// no ATOMIC takes anything from it.
static void test_flush_reads(void **state)
{
	struct bench *b = start(7);

	(void)state;
	for (int i = 0; i < 200; i++) {
		uint64_t addr = word(b, i % 3), reads = b->read_count;

		for (int n = 0; n < 4; n++) {
			struct atomic a = next(b, n % 2, 1);

			a.addr = addr + (n % 2 ? i % 8 : 0);
			a.flush = n % 2;
			a.fetch_add = true;
			b->todo.push_back(a);
		}
		b->stall = i % 4;
		drain(b);
		// the ATOMICs read once, or twice if the first was done by then
		assert_in_range(b->read_count - reads, 3, 4);
	}
	delete b;
}

// A QP keeps exactly 16 results; a reset takes those of one QP only.
static void test_kept(void **state)
{
	struct bench *b = start(2);
	struct atomic sent[40];

	(void)state;
	for (unsigned int q = 0; q < 2; q++) {
		for (int i = 0; i < 40; i++) {
			struct atomic a = next(b, q, 10);

			if (q == 0)
				sent[i] = a;
			b->todo.push_back(a);
		}
	}
	drain(b);
	for (int i = 0; i < 40; i++) {
		sent[i].dup = true;
		b->todo.push_back(sent[i]);
	}
	drain(b);
	assert_int_equal(b->found, KEPT);
	assert_int_equal(b->missed, 40 - KEPT);
	assert_int_equal(b->answered, 80 + KEPT);
	b->reset_qpn = 1;
	cycle(b);
	b->todo.push_back(sent[39]);
	drain(b);
	assert_int_equal(b->found, KEPT + 1);
	b->reset_qpn = 0;
	cycle(b);
	b->todo.push_back(sent[39]);
	drain(b);
	assert_int_equal(b->found, KEPT + 1);
	delete b;
}

// A QP that is reset while its ATOMICs are under way: each of them happens or does not, the unit
// comes to rest, others are not touched, and nothing of it is left for the next life.
static void test_reset_under_way(void **state)
{
	struct bench *b = start(3);

	(void)state;
	b->loose = true;
	for (int i = 0; i < 400; i++) {
		uint64_t before = b->answered, added;
		struct atomic a[8];
		uint64_t addr[2] = { word(b, 2 * i), word(b, 2 * i + 1) };
		uint64_t old[2] = { b->mem[addr[0]], b->mem[addr[1]] };

		for (int n = 0; n < 8; n++) {
			a[n] = next(b, n % 2, 1);
			a[n].addr = addr[n % 2];
			a[n].fetch_add = true;
			a[n].swap_add = 1ull << 32;
			b->todo.push_back(a[n]);
		}
		while (!b->todo.empty())
			cycle(b);
		for (unsigned int wait = rnd(b, 350); wait; wait--)
			cycle(b);
		b->reset_qpn = 0;
		drain(b);
		added = (b->mem[addr[0]] - old[0]) >> 32;
		assert_true(added <= 4);
		assert_int_equal((b->mem[addr[1]] - old[1]) >> 32, 4);
		assert_true(b->answered - before >= 4 && b->answered - before <= 4 + added);

		before = b->answered;
		for (int n = 0; n < 8; n += 2) {
			a[n].dup = true;
			b->todo.push_back(a[n]);
		}
		drain(b);
		assert_int_equal(b->answered, before);
	}
	delete b;
}

// What somebody else writes to a word that ATOMICs never leave alone is seen soon: a lock that its
// holder clears by a WRITE.
static void test_lock(void **state)
{
	struct bench *b = start(4);
	uint64_t addr = word(b, 0), longest = 0;

	(void)state;
	b->loose = true;
	for (int i = 0; i < 200; i++) {
		uint64_t from;

		b->mem[addr] = 1; // held
		for (int n = 0; n < 600; n++) {
			if (b->todo.size() < 2) {
				struct atomic a = next(b, rnd(b, QPS), 1);

				a.fetch_add = false;
				a.compare = 0;
				a.swap_add = 77;
				b->todo.push_back(a);
			}
			cycle(b);
		}
		assert_int_equal(b->mem[addr], 1);
		b->mem[addr] = 0;
		from = b->taken;
		while (b->mem[addr] == 0) {
			if (b->todo.size() < 2) {
				struct atomic a = next(b, rnd(b, QPS), 1);

				a.fetch_add = false;
				a.compare = 0;
				a.swap_add = 77;
				b->todo.push_back(a);
			}
			cycle(b);
			if (b->taken - from > 100)
				fail_msg("a cleared lock is not seen by %lu ATOMICs",
					 b->taken - from);
		}
		if (b->taken - from > longest)
			longest = b->taken - from;
		b->todo.clear();
		drain(b);
	}
	print_message("a change by others is seen after at most %lu ATOMICs\n", longest);
	assert_true(longest <= 2 * IN_FLIGHT);
	delete b;
}

static double rate(struct bench *b, uint64_t words)
{
	enum { COUNT = 4000 };
	uint64_t from = b->now;

	for (int i = 0; i < COUNT; i++) {
		struct atomic a = next(b, i % QPS, 1);

		a.addr = word(b, i % words);
		b->todo.push_back(a);
	}
	drain(b);
	return (double)(b->now - from) / COUNT;
}

static void test_rate(void **state)
{
	struct bench *b = start(5);
	double apart, same;

	(void)state;
	b->latency = 125;
	b->jitter = 0;
	b->stall = 0;
	apart = rate(b, 1000);
	same = rate(b, 1);
	print_message("cycles an ATOMIC: %.1f on different words, %.1f on one\n", apart, same);
	assert_true(apart <= 10);
	assert_true(same <= 30);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_flush_reads),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_reset_under_way),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
