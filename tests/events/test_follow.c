// SPDX-License-Identifier: Apache-2.0
// The lives of WQEs that urdma-events finds in a stream are compared with those of the NICs that
// made it.
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nic_pair.h"
#include "random.h"
#include "seed.h"
#include "urdma_hw.h"
#include "urdma_trace_pkg.h"

/* Bytes allocated by malloc(). The build for coverage has no ASan. */
#ifdef __SANITIZE_ADDRESS__
/* Declared here because only clang has a header for it. */
size_t __sanitizer_get_current_allocated_bytes(void);

static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes();
}
#else
static size_t allocated(void)
{
	const struct mallinfo2 all = mallinfo2();

	return all.uordblks + all.hblkhd;
}
#endif

struct seen {
	struct urdma_wqe *wqe;
	size_t n, size;
	uint64_t incomplete[URDMA_INCOMPLETES];
	uint64_t retries[URDMA_CAUSES], resent;
	uint64_t depth, max_depth, flight, max_flight;
	uint64_t sent, received, flows_begun, flows_ended, packets, stages[URDMA_PACKET_STAGES];
};

static void on_wqe(void *ctx, const struct urdma_wqe *w)
{
	struct seen *s = ctx;
	uint64_t sum = 0;

	if (s->n == s->size) {
		s->size = s->size ? s->size * 2 : 256;
		s->wqe = realloc(s->wqe, s->size * sizeof(*w));
	}
	s->wqe[s->n++] = *w;
	for (unsigned int i = 0; i < URDMA_STAGES; i++) {
		assert_true(w->at[i] <= w->at[i + 1]);
		sum += urdma_wqe_stage(w, i);
	}
	assert_int_equal(sum, urdma_wqe_whole(w));
}

static void on_incomplete(void *ctx, unsigned int nic, uint32_t qpn, enum urdma_incomplete why,
			  uint64_t n)
{
	(void)nic;
	(void)qpn;
	((struct seen *)ctx)->incomplete[why] += n;
}

static void on_retry(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint16_t index,
		     unsigned int cause)
{
	(void)cycle;
	(void)nic;
	(void)qpn;
	(void)index;
	((struct seen *)ctx)->retries[cause]++;
}

static void on_resent(void *ctx, unsigned int nic, uint32_t qpn)
{
	(void)nic;
	(void)qpn;
	((struct seen *)ctx)->resent++;
}

static void on_depth(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint32_t depth)
{
	struct seen *s = ctx;

	(void)cycle;
	(void)nic;
	(void)qpn;
	s->depth = depth;
	if (depth > s->max_depth)
		s->max_depth = depth;
}

static void on_flight(void *ctx, uint64_t cycle, unsigned int nic, uint64_t bytes)
{
	struct seen *s = ctx;

	(void)cycle;
	(void)nic;
	s->flight = bytes;
	if (bytes > s->max_flight)
		s->max_flight = bytes;
}

static void on_frame(void *ctx, const struct urdma_frame *f)
{
	struct seen *s = ctx;

	if (f->received)
		s->received++;
	else
		s->sent++;
	if (f->flow && !f->received && !urdma_opcode_answers(f->opcode))
		s->flows_begun++;
	if (f->flow_ends)
		s->flows_ended++;
}

static void on_packet(void *ctx, const struct urdma_packet *p)
{
	struct seen *s = ctx;
	uint64_t cycles;

	if (urdma_opcode_answers(p->opcode))
		return;
	s->packets++;
	for (unsigned int i = 0; i < URDMA_PACKET_STAGES; i++)
		if (urdma_packet_stage(p, i, &cycles))
			s->stages[i]++;
}

static struct urdma_sink sink_of(struct seen *s)
{
	return (struct urdma_sink){
		.ctx = s,
		.wqe = on_wqe,
		.incomplete = on_incomplete,
		.frame = on_frame,
		.packet = on_packet,
		.retry = on_retry,
		.resent = on_resent,
		.depth = on_depth,
		.flight = on_flight,
	};
}

/* Follows the events of [from, to), except those that `skip` names. */
static void follow(const struct pair *p, uint64_t from, uint64_t to, int skip, struct seen *s)
{
	struct urdma_sink sink = sink_of(s);
	struct urdma_follow *f = urdma_follow_create(2, &sink, 1);

	memset(s, 0, sizeof(*s));
	assert_non_null(f);
	for (size_t i = 0; i < p->n; i++)
		if (p->event[i].cycle >= from && p->event[i].cycle < to && p->event[i].kind != skip)
			assert_int_equal(urdma_follow_event(f, &p->event[i]), 0);
	assert_int_equal(urdma_follow_end(f), 0);
	urdma_follow_destroy(f);
}

static uint64_t all_incomplete(const struct seen *s)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < URDMA_INCOMPLETES; i++)
		n += s->incomplete[i];
	return n;
}

static const struct pair_truth *truth_of(const struct pair *p, const struct urdma_wqe *w)
{
	for (size_t i = 0; i < p->n_truth; i++)
		if (p->truth[i].nic == w->nic && p->truth[i].qpn == w->qpn &&
		    p->truth[i].index == w->index &&
		    p->truth[i].at[URDMA_AT_WRITE] == w->at[URDMA_AT_WRITE])
			return &p->truth[i];
	fail_msg("QP %u: WQE %u of cycle %llu was never posted", w->qpn, w->index,
		 (unsigned long long)w->at[URDMA_AT_WRITE]);
	return NULL;
}

static void compare(const struct pair *p, const struct seen *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct urdma_wqe *w = &s->wqe[i];
		const struct pair_truth *t = truth_of(p, w);

		for (unsigned int k = 0; k < URDMA_MOMENTS; k++)
			if (w->at[k] != t->at[k])
				fail_msg("QP %u, WQE %u, moment %u: cycle %llu, not %llu", w->qpn,
					 w->index, k, (unsigned long long)w->at[k],
					 (unsigned long long)t->at[k]);
		assert_int_equal(w->op, t->op);
		assert_int_equal(w->bytes, t->bytes);
		assert_int_equal(w->psn, t->psn);
		assert_int_equal(w->packets, t->packets);
		assert_int_equal(w->status, t->status);
		assert_int_equal(w->has_cqe, t->has_cqe);
		assert_int_equal(urdma_wqe_retries(w), t->timeouts);
		assert_int_equal(w->retries[TRC_TIMEOUT], t->timeouts);
	}
}

/* n messages of all kinds in both directions; some overlap. */
static void mix(struct pair *p, unsigned int n, bool faults)
{
	static const uint8_t ops[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ };
	struct urdma_random seed = { 9 };
	uint64_t free[2][64] = { 0 }, cycle = 100;

	pair_begin(p);
	for (unsigned int i = 0; i < n; i++) {
		struct pair_message m = {
			.nic = urdma_random_next(&seed) % 2,
			.qpn = 2 * (urdma_random_next(&seed) % 3),
			.op = ops[urdma_random_next(&seed) % 3],
			.bytes = (uint32_t)(urdma_random_next(&seed) % 5000),
		};

		/* QPs of the two directions are different ones. */
		m.qpn += m.nic * 10;
		m.bytes += m.op == URDMA_WR_READ;
		if (faults) {
			m.losses = !(urdma_random_next(&seed) % 10);
			m.unsignaled = i + 60 < n && !(urdma_random_next(&seed) % 4);
		}
		cycle += urdma_random_next(&seed) % 200;
		if (cycle < free[m.nic][m.qpn])
			cycle = free[m.nic][m.qpn];
		free[m.nic][m.qpn] = pair_send(p, cycle, &m) + 1;
	}
	pair_sort(p);
}

static void end(struct pair *p, struct seen *s)
{
	free(s->wqe);
	pair_free(p);
}

static void test_mix(void **state)
{
	(void)state;
	struct seen s;
	struct pair p;
	uint64_t lost = 0;

	mix(&p, 3000, true);
	follow(&p, 0, UINT64_MAX, -1, &s);
	compare(&p, &s);
	assert_int_equal(all_incomplete(&s), 0);
	assert_int_equal(s.n, p.n_truth);
	for (size_t i = 0; i < p.n_truth; i++)
		lost += p.truth[i].timeouts;
	assert_true(lost > 100);
	assert_int_equal(s.retries[TRC_TIMEOUT], lost);
	assert_int_equal(s.resent, lost);
	assert_int_equal(s.depth, 0);
	assert_int_equal(s.flight, 0);
	assert_true(s.max_depth >= 1 && s.max_flight >= 4000);
	/* Each frame except the lost ones arrives, and each exchange ends with an answer. */
	assert_int_equal(s.sent - s.received, lost);
	assert_true(s.flows_begun > s.n);
	assert_int_equal(s.flows_ended, s.n);
	for (unsigned int i = 0; i < URDMA_PACKET_STAGES; i++)
		assert_int_equal(s.stages[i], s.packets);
	end(&p, &s);
}

/* A READ resumes after the responses that have arrived: with a PSN that no request had before. */
static void test_resumed(void **state)
{
	(void)state;
	struct pair_message m = { .qpn = 4, .op = URDMA_WR_READ, .bytes = 3000, .losses = 1 };
	uint64_t again = UINT64_MAX;
	struct seen s;
	struct pair p;

	pair_begin(&p);
	pair_send(&p, 1000, &m);
	pair_sort(&p);
	for (size_t i = 0; i < p.n; i++) {
		struct urdma_trace_event *e = &p.event[i];

		if (e->kind == URDMA_TRACE_PKT && e->pkt.again) {
			again = e->cycle;
			e->pkt.psn++;
		} else if (e->cycle > again && e->kind == URDMA_TRACE_FULL && !e->nic) {
			e->full.psn++;
		} else if (e->cycle > again && e->kind == URDMA_TRACE_OUT && !e->nic) {
			e->out.psn++;
		}
	}
	follow(&p, 0, UINT64_MAX, -1, &s);
	compare(&p, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.resent, 1);
	end(&p, &s);
}

/*
 * A packet is sent again and again, with other frames in between: each time is a range of its own.
 * The frames of 16 times are recorded, and that there were more.
 */
static void sent_again(unsigned int times)
{
	struct pair_message m = { .qpn = 4, .op = URDMA_WR_SEND, .bytes = 3000, .losses = times };
	const struct urdma_wqe *w = NULL;
	unsigned int n = 0;
	struct seen s;
	struct pair p;

	pair_begin(&p);
	pair_send(&p, 1000, &m);
	for (size_t i = 0, sent = p.n; i < sent; i++)
		if (p.event[i].kind == URDMA_TRACE_LOSS && p.event[i].loss.cause == TRC_TIMEOUT)
			pair_frame(&p, p.event[i].cycle - 100, 0);
	pair_sort(&p);
	follow(&p, 0, UINT64_MAX, -1, &s);
	compare(&p, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.resent, times);
	for (size_t i = 0; i < s.n; i++)
		if (s.wqe[i].qpn == 4)
			w = &s.wqe[i];
	assert_non_null(w);
	assert_int_equal(w->n_again, times < URDMA_AGAIN_RANGES ? times : URDMA_AGAIN_RANGES);
	assert_true(w->more_again == (times > URDMA_AGAIN_RANGES));
	/* The last of its three packets; its first transmission is not a resend. */
	for (size_t i = 0; i < p.n; i++) {
		const struct urdma_trace_event *e = &p.event[i];

		if (e->kind != URDMA_TRACE_TX_END || e->nic || e->tx_end.dqpn != 5 ||
		    e->tx_end.psn != 2 || !n++ || n - 2 >= w->n_again)
			continue;
		assert_int_equal(w->again[n - 2].first, e->tx_end.number);
		assert_int_equal(w->again[n - 2].last, e->tx_end.number);
	}
	assert_int_equal(n, times + 1);
	end(&p, &s);
}

static void test_sent_again(void **state)
{
	(void)state;
	sent_again(1);
	sent_again(URDMA_AGAIN_RANGES);
	sent_again(URDMA_AGAIN_RANGES + 1);
	sent_again(40);
}

/* A write to a page of BAR2, for QP 4 of NIC 0. */
static struct urdma_trace_event doorbell(uint64_t cycle, uint64_t page, uint64_t pi)
{
	return (struct urdma_trace_event){
		.cycle = cycle,
		.kind = URDMA_TRACE_DB_WRITE,
		.db_write = { page * URDMA_DB_PAGE_SIZE + URDMA_DB_SQ, 8, 4 | pi << 32 },
	};
}

/* One doorbell for several WQEs; doorbells that the NIC merges; doorbells that it refuses. */
static void test_doorbells(void **state)
{
	(void)state;
	struct pair_message m = { .qpn = 4, .op = URDMA_WR_SEND, .bytes = 64 };
	uint64_t cycle = 1000;
	struct seen s;
	struct pair p;

	pair_begin(&p);
	for (unsigned int i = 0; i < 4; i++)
		cycle = pair_send(&p, cycle, &m) + 50;
	/* The doorbells of 1 and 2 come early and are merged; the one of 3 is not needed. */
	for (size_t i = 0; i < p.n; i++) {
		struct urdma_trace_event *e = &p.event[i];

		if (e->kind == URDMA_TRACE_DB_WRITE && e->db_write.value >> 32 >= 2)
			e->cycle = 1001 + (e->db_write.value >> 32);
		/* Instead: a write for the QP by another process, and one with an index that is too
		 * high. */
		if (e->kind == URDMA_TRACE_SQ_DB && e->sq_db.pi >= 2 && e->sq_db.pi <= 3)
			*e = e->sq_db.pi == 2 ? doorbell(1002, 9, 2) : doorbell(1002, 7, 50);
		if (e->kind == URDMA_TRACE_SQ_DB && e->sq_db.pi == 4)
			e->cycle = 1012;
	}
	p.event[p.n - 1] = doorbell(900, 9, 77);
	pair_sort(&p);
	follow(&p, 0, UINT64_MAX, -1, &s);
	/* The last event reported the last WQE. */
	assert_int_equal(s.n, 3);
	assert_int_equal(s.incomplete[URDMA_NOT_ENDED], 1);
	assert_int_equal(s.wqe[0].at[URDMA_AT_WRITE], 1000);
	for (unsigned int i = 1; i < 3; i++) {
		assert_int_equal(s.wqe[i].at[URDMA_AT_WRITE], 1002 + i);
		assert_int_equal(s.wqe[i].at[URDMA_AT_TAKEN], 1012);
	}
	assert_int_equal(s.max_depth, 4);
	end(&p, &s);
}

/* A QP in ERR: the time belongs to the stage in which the WQE was. */
static void test_flush(void **state)
{
	(void)state;
	struct pair_message m = { .qpn = 4, .flush = true };
	struct seen s;
	struct pair p;

	pair_begin(&p);
	pair_send(&p, 100, &m);
	pair_sort(&p);
	follow(&p, 0, UINT64_MAX, -1, &s);
	compare(&p, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.wqe[0].status, URDMA_WC_FLUSH_ERR);
	assert_int_equal(urdma_wqe_stage(&s.wqe[0], 1), 20);
	end(&p, &s);
}

/* A file that begins and ends in the middle: complete lives are right, the rest is counted. */
static void test_window(void **state)
{
	(void)state;
	uint64_t last, inside, touched;
	struct seen s;
	struct pair p;

	mix(&p, 600, false);
	last = p.event[p.n - 1].cycle;
	for (unsigned int i = 1; i < 40; i++) {
		uint64_t from = last * i / 80, to = last - from;

		inside = touched = 0;
		for (size_t k = 0; k < p.n_truth; k++) {
			const struct pair_truth *t = &p.truth[k];

			inside += t->at[URDMA_AT_WRITE] >= from && t->at[URDMA_AT_REPORTED] < to;
			touched += t->at[URDMA_AT_REPORTED] >= from && t->at[URDMA_AT_WRITE] < to;
		}
		follow(&p, from, to, -1, &s);
		compare(&p, &s);
		/* The first WQE of a QP is lost: it is not known what its doorbell covers. */
		assert_true(s.n <= inside && s.n + 6 >= inside);
		assert_true(s.n + all_incomplete(&s) <= touched);
		assert_true(s.n + all_incomplete(&s) + 6 >= touched);
		assert_true(s.incomplete[URDMA_BEGUN_BEFORE] > 0);
		free(s.wqe);
	}
	pair_free(&p);
}

/* If a kind of event that lives need is missing, there are no lives, and each WQE is counted. */
static void test_missing(void **state)
{
	(void)state;
	static const struct {
		int kind;
		enum urdma_incomplete why;
	} need[] = {
		{ URDMA_TRACE_DB_WRITE, URDMA_BEGUN_BEFORE },
		{ URDMA_TRACE_WQE, URDMA_LACKS_EVENTS },
		{ URDMA_TRACE_PKT, URDMA_LACKS_EVENTS },
		{ URDMA_TRACE_FULL, URDMA_LACKS_EVENTS },
		{ URDMA_TRACE_TX_END, URDMA_LACKS_EVENTS },
		{ URDMA_TRACE_ACKED, URDMA_LACKS_EVENTS },
		{ URDMA_TRACE_CQE, URDMA_NOT_ENDED },
	};
	struct seen s;
	struct pair p;

	mix(&p, 500, false);
	for (unsigned int i = 0; i < sizeof(need) / sizeof(*need); i++) {
		follow(&p, 0, UINT64_MAX, need[i].kind, &s);
		print_message("without %s\n", urdma_trace_desc[need[i].kind].name);
		assert_int_equal(s.n, 0);
		assert_int_equal(s.incomplete[need[i].why], p.n_truth);
		assert_int_equal(all_incomplete(&s), p.n_truth);
		free(s.wqe);
	}
	pair_free(&p);
}

/* The QP is destroyed with work under way and made again: its indices begin at 0 again. */
static void test_destroyed(void **state)
{
	(void)state;
	struct pair_message m = { .qpn = 4, .op = URDMA_WR_SEND, .bytes = 3000 };
	uint64_t cycle = 1000;
	struct seen s;
	struct pair p;

	pair_begin(&p);
	for (unsigned int i = 0; i < 5; i++)
		cycle = pair_send(&p, cycle, &m);
	p.n -= 40; /* the last WQE does not get far */
	p.qp[0][4].pi = 0;
	p.qp[0][4].psn = 777;
	cycle += 10000;
	for (unsigned int i = 0; i < 3; i++)
		cycle = pair_send(&p, cycle, &m);
	pair_sort(&p);
	follow(&p, 0, UINT64_MAX, -1, &s);
	compare(&p, &s);
	assert_int_equal(s.n, 4 + 3);
	assert_int_equal(s.incomplete[URDMA_ABANDONED], 1);
	assert_int_equal(all_incomplete(&s), 1);
	end(&p, &s);
}

/*
 * QPs end by a command. WQEs under way are abandoned, acknowledged ones without a CQE are complete,
 * and a new life begins, even if the indices do not show it.
 */
static void test_qp_end(void **state)
{
	(void)state;
	struct pair_message m = { .qpn = 4, .op = URDMA_WR_SEND, .bytes = 3000 };
	struct pair_message quiet = {
		.qpn = 6, .op = URDMA_WR_SEND, .bytes = 3000, .unsignaled = true
	};
	uint64_t cycle = 1000;
	struct seen s;
	struct pair p;

	pair_begin(&p);
	cycle = pair_send(&p, cycle, &quiet);
	cycle = pair_qp_end(&p, cycle + 10000, 0, 6);
	pair_send(&p, cycle, &m);
	p.n -= 40; /* it does not get far */
	p.n_truth--;
	cycle = pair_qp_end(&p, cycle + 10000, 0, 4);
	cycle = pair_send(&p, cycle, &m);
	pair_send(&p, cycle, &m);
	p.n -= 40;
	p.n_truth--;
	pair_qp_end(&p, cycle + 10000, 0, 4);
	pair_sort(&p);
	follow(&p, 0, UINT64_MAX, -1, &s);
	compare(&p, &s);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.incomplete[URDMA_ABANDONED], 2);
	assert_int_equal(all_incomplete(&s), 2);
	end(&p, &s);
}

/* Events are lost at random: no life is made up, and nothing fails. */
static void test_holes(void **state)
{
	(void)state;
	struct urdma_random seed = { test_seed(4) };
	struct seen s;
	struct pair p;

	mix(&p, 1500, true);
	for (size_t i = 0; i < p.n; i++)
		if (!(urdma_random_next(&seed) % 50))
			p.event[i].kind = URDMA_TRACE_REG_DONE;
	follow(&p, 0, UINT64_MAX, -1, &s);
	assert_true(s.n > 100 && s.n < 1400);
	assert_true(all_incomplete(&s) > 100);
	assert_true(s.n + all_incomplete(&s) <= 2 * p.n_truth);
	for (size_t i = 0; i < s.n; i++)
		assert_true(urdma_wqe_whole(&s.wqe[i]) < 100000);
	end(&p, &s);
}

/* Random events, as from a damaged file that still decodes. */
static void test_random(void **state)
{
	(void)state;
	struct urdma_random seed = { test_seed(6) };
	struct seen s = { 0 };
	struct urdma_sink sink = sink_of(&s);
	struct urdma_follow *f = urdma_follow_create(2, &sink, 1);
	uint64_t refused = 0;

	for (unsigned int i = 0; i < 20000; i++) {
		struct urdma_trace_event e = { .cycle = i / 3 };

		e.kind = (uint8_t)(urdma_random_next(&seed) % URDMA_TRACE_KINDS);
		e.nic = (uint8_t)(urdma_random_next(&seed) % 2);
		for (unsigned int k = 0; k < URDMA_TRACE_MAX_FIELDS; k++)
			e.field[k] = urdma_random_next(&seed) >>
				     (urdma_random_next(&seed) % 8 ? 60 : 40);
		refused += urdma_follow_event(f, &e) != 0;
	}
	assert_true(refused > 0);
	assert_int_equal(urdma_follow_end(f), 0);
	urdma_follow_destroy(f);
	free(s.wqe);
}

/* A run ten times as long takes the same memory, also with frames that never arrive. */
static void test_memory(void **state)
{
	(void)state;
	struct urdma_sink none = { 0 };
	size_t used[2];

	for (unsigned int k = 0; k < 2; k++) {
		struct urdma_follow *f;
		size_t before;
		struct pair p;

		mix(&p, k ? 40000 : 4000, true);
		before = allocated();
		f = urdma_follow_create(2, &none, 1);
		for (size_t i = 0; i < p.n; i++)
			assert_int_equal(urdma_follow_event(f, &p.event[i]), 0);
		used[k] = allocated() - before;
		urdma_follow_destroy(f);
		pair_free(&p);
	}
	print_message("%zu and %zu bytes\n", used[0], used[1]);
	assert_true(used[1] < used[0] + 100000);
	assert_true(used[1] < 2000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix),	   cmocka_unit_test(test_resumed),
		cmocka_unit_test(test_doorbells),  cmocka_unit_test(test_flush),
		cmocka_unit_test(test_window),	   cmocka_unit_test(test_missing),
		cmocka_unit_test(test_destroyed),  cmocka_unit_test(test_qp_end),
		cmocka_unit_test(test_sent_again), cmocka_unit_test(test_holes),
		cmocka_unit_test(test_random),	   cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
