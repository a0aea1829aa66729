// SPDX-License-Identifier: Apache-2.0
/*
 * Shared receive queues, from the specification (volume 1, 10.2.9): a message of any QP takes the
 * oldest WQE, whatever other QPs do; each WQE completes once, at one QP, or is still in the queue;
 * a QP that goes to ERR or is destroyed takes no other QP's WQE with it; the limit event comes
 * once.
 *
 * Every byte of every receive buffer is compared, also those after the message. At the end the
 * NIC's indices are compared with the WQEs that have not completed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "judge.h"
#include "rig.h"
#include "seed.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define QPS	64u
#define SRQS	4u
#define WINDOW	4u /* messages of a QP under way */
#define TURN	200u
#define LIMIT	4000000u /* cycles in which something has to complete */
#define GRH	40u
#define GUARD	64u
#define PATTERN 0xa5
#define QKEY	0x11111111u

struct plan {
	const char *name;
	unsigned int qps, srqs, log_srq;
	unsigned int messages; /* of each QP and direction */
	uint32_t max_len;
	const uint8_t *types; /* NULL: RC */
	const char *faults[5];
	bool starve;	   /* WQEs come late, a few at a time */
	unsigned int ends; /* QPs that go to ERR in the traffic, and are made again */
};

#define PLAN(name_, qps_, srqs_, log_srq_, messages_, max_len_, ...)            \
	{                                                                       \
		.name = name_, .qps = qps_, .srqs = srqs_, .log_srq = log_srq_, \
		.messages = messages_, .max_len = max_len_, __VA_ARGS__         \
	}

struct side {
	unsigned int posted[QPS], sent[QPS], got[QPS]; /* messages from here; with CQE; to here */
	unsigned int life[QPS];
	uint8_t *owned[SRQS]; /* by place: the NIC has its WQE */
	unsigned int taken[SRQS];
	unsigned int flushed[QPS];
	bool last_wqe[QPS];
};

static struct rig rig;
static struct judge judge;
static bool running, judged;
static const struct plan *plan;
static struct side sides[2];
static uint64_t random_state;
static size_t slot, recv_slot; /* bytes of a message's source or target; of a place's buffer */

/* ---- memory: sources, targets of WRITEs, buffers of places ---------------------------------- */

static uint8_t *source(unsigned int side, unsigned int q, unsigned int i)
{
	return rig.side[side].buffer + ((size_t)q * WINDOW + i % WINDOW) * slot;
}

static uint8_t *target(unsigned int side, unsigned int q, unsigned int i)
{
	return source(side, q, i) + plan->qps * WINDOW * slot;
}

static uint8_t *place_buffer(unsigned int side, unsigned int s, unsigned int place)
{
	return rig.side[side].buffer + 2 * plan->qps * WINDOW * slot +
	       (((size_t)s << plan->log_srq) + place) * recv_slot;
}

static uint32_t content(unsigned int from, unsigned int q, unsigned int i)
{
	return ((from * QPS + q) << 20) + (sides[from].life[q] << 15) + i + 1;
}

static unsigned int type_of(unsigned int q)
{
	return plan->types ? plan->types[q] : URDMA_QPT_RC;
}

static uint32_t len_of(unsigned int from, unsigned int q, unsigned int i)
{
	uint64_t state = content(from, q, i) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t max = plan->max_len, mtu = 128u << rig.config.mtu;

	if (type_of(q) == URDMA_QPT_UD && max > mtu)
		max = mtu;
	return rig_draw_len(&state, mtu, max);
}

static unsigned int opcode_of(unsigned int q, unsigned int i)
{
	static const unsigned int opcodes[] = { URDMA_WR_SEND, URDMA_WR_SEND_IMM,
						URDMA_WR_WRITE_IMM, URDMA_WR_SEND };

	return opcodes[type_of(q) == URDMA_QPT_UD ? i % 2 : (i + q) % COUNT(opcodes)];
}

/* ---- a rig ---------------------------------------------------------------------------------- */

static void forget(void)
{
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int s = 0; s < SRQS; s++)
			test_free(sides[n].owned[s]);
	memset(sides, 0, sizeof(sides));
}

static void begin(const struct plan *p, uint64_t seed)
{
	struct rig_config config;

	if (running) { /* a test has failed */
		if (judged)
			judge_drop(&judge);
		rig_abandon(&rig);
		forget();
	}
	plan = p;
	slot = (p->max_len + GUARD + 63) & ~63u;
	recv_slot = slot + GRH + 24;
	random_state = test_seed(seed);
	rig_defaults(&config);
	config.qps = p->qps;
	config.types = p->types;
	config.srqs = p->srqs;
	config.log_srq = p->log_srq;
	config.mtu = 3;
	config.log_sq = 4;
	config.log_stride = 7;
	config.log_cqe = 16;
	config.buffer = 2 * p->qps * WINDOW * slot + ((size_t)p->srqs << p->log_srq) * recv_slot;
	config.buffer = (config.buffer + 65535) & ~(size_t)65535;
	config.memory.memory = 2 * config.buffer + (64u << 20);
	config.faults = true;
	config.fault_seed = random_state;
	config.conn.timeout = 7;
	for (unsigned int n = 0; n < 2; n++) {
		for (unsigned int s = 0; s < p->srqs; s++)
			sides[n].owned[s] = test_calloc(1u << p->log_srq, 1);
	}
	rig_start(&rig, &config);
	running = true;
	judged = !p->ends && !p->types;
	if (judged)
		judge_start(&judge, &rig, false);
	for (unsigned int i = 0; i < COUNT(p->faults) && p->faults[i]; i++)
		rig_fault(&rig, "%s", p->faults[i]);
}

static void run_for(uint64_t cycles)
{
	rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + cycles),
		  plan->name);
}

/* The NIC holds exactly the WQEs that have not completed. */
static void check_indices(void)
{
	for (unsigned int n = 0; n < 2; n++) {
		for (unsigned int s = 0; s < plan->srqs; s++) {
			struct urdma_eh_srq *srq = &rig.side[n].srq[s];
			struct urdma_eh_srq_info info;
			unsigned int owned = 0;

			for (unsigned int k = 0; k < 1u << plan->log_srq; k++)
				owned += sides[n].owned[s][k];
			assert_int_equal(urdma_eh_query_srq(srq, &info), 0);
			assert_int_equal(info.pi, (uint16_t)srq->pi);
			assert_int_equal(info.ci, (uint16_t)sides[n].taken[s]);
			assert_int_equal((uint16_t)(info.pi - info.ci), (uint16_t)owned);
			assert_int_equal(srq->n_free + owned, 1u << plan->log_srq);
		}
	}
}

static void end(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
	check_indices();
	assert_int_equal(urdma_embedded_stats(rig.host)->faults, 0);
	if (judged)
		judge_end(&judge, plan->name);
	rig_stop(&rig);
	forget();
	running = false;
}

/* ---- receives ------------------------------------------------------------------------------- */

/* One WQE of one or two pieces. */
static int put_recv(unsigned int n, unsigned int s, unsigned int pieces)
{
	struct urdma_eh_srq *srq = &rig.side[n].srq[s];
	uint32_t first = pieces > 1 ? 24 : 0, len = (uint32_t)(recv_slot - 24);
	struct urdma_eh_sge sge[2] = { { 0, len - first, rig.side[n].mr.key },
				       { 0, first, rig.side[n].mr.key } };
	unsigned int place;
	int ret;

	if (!srq->n_free)
		return -1;
	place = srq->free[srq->n_free - 1];
	sge[0].addr = (uintptr_t)place_buffer(n, s, place);
	if (pieces > 1) {
		sge[0].length = first;
		sge[1] = (struct urdma_eh_sge){ sge[0].addr + first, len - first, sge[0].lkey };
	}
	memset(place_buffer(n, s, place), PATTERN, recv_slot);
	ret = urdma_eh_put_srq_recv(srq, sge, pieces);
	assert_int_equal(ret, place);
	assert_false(sides[n].owned[s][place]);
	sides[n].owned[s][place] = true;
	return 0;
}

/* Posts as many WQEs as there is room for; with `starve` seldom, and a few. */
static void refill(unsigned int n, unsigned int s)
{
	unsigned int k, most = 1u << plan->log_srq;

	if (plan->starve)
		most = rig_draw(&random_state, 8) ? 0 : 1 + rig_draw(&random_state, 3);
	for (k = 0; k < most; k++)
		if (put_recv(n, s, 1 + rig_draw(&random_state, 2)))
			break;
	if (k)
		urdma_eh_ring_srq(&rig.side[n].srq[s]);
}

static void check_data(unsigned int n, unsigned int q, const struct urdma_eh_cqe *cqe,
		       const uint8_t *buffer)
{
	unsigned int i = sides[n].got[q]++, opcode = opcode_of(q, i);
	uint32_t len = len_of(!n, q, i), seed = content(!n, q, i), used = len;

	assert_int_equal(cqe->has_imm, opcode != URDMA_WR_SEND);
	if (cqe->has_imm)
		assert_int_equal(cqe->imm, i);
	if (opcode == URDMA_WR_WRITE_IMM) {
		assert_int_equal(rig_verify(target(n, q, i), len, seed), len);
		used = 0;
	} else if (type_of(q) == URDMA_QPT_UD) {
		assert_true(cqe->grh);
		assert_int_equal(cqe->src_qpn, RIG_QPN(q));
		assert_int_equal(rig_verify(buffer + GRH, len, seed), len);
		len += GRH;
		used = len;
	} else {
		assert_int_equal(rig_verify(buffer, len, seed), len);
	}
	assert_int_equal(cqe->length, len);
	for (size_t k = used; k < recv_slot; k++)
		assert_int_equal(buffer[k], PATTERN);
}

static void look_recv(unsigned int n)
{
	struct urdma_eh_cqe cqe;

	while (urdma_eh_poll_cq(&rig.side[n].recv_cq, &cqe, 1)) {
		unsigned int q = cqe.qpn - RIG_QPN(0), s = q % plan->srqs;

		assert_true(q < plan->qps && cqe.recv && cqe.wqe < 1u << plan->log_srq);
		assert_true(sides[n].owned[s][cqe.wqe]);
		sides[n].owned[s][cqe.wqe] = false;
		sides[n].taken[s]++;
		if (cqe.status == URDMA_WC_FLUSH_ERR) {
			/* of a message in progress, before the last event */
			assert_true(plan->ends && !sides[n].flushed[q]++);
		} else {
			assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
			check_data(n, q, &cqe, place_buffer(n, s, cqe.wqe));
		}
		urdma_eh_srq_give_back(&rig.side[n].srq[s], cqe.wqe);
	}
	for (unsigned int s = 0; s < plan->srqs; s++)
		refill(n, s);
}

/* ---- sends ---------------------------------------------------------------------------------- */

static void put_send(unsigned int from, unsigned int q)
{
	unsigned int i = sides[from].posted[q]++;
	struct urdma_eh_sge sge = { (uintptr_t)source(from, q, i), len_of(from, q, i),
				    rig.side[from].mr.key };
	struct urdma_eh_send wr = {
		.opcode = opcode_of(q, i),
		.signaled = true,
		.raddr = (uintptr_t)target(!from, q, i),
		.rkey = rig.side[!from].mr.key,
		.imm = i,
		.sge = &sge,
		.n_sge = 1,
	};
	struct urdma_eh_ah ah;

	if (type_of(q) == URDMA_QPT_UD) {
		assert_int_equal(urdma_eh_ah_to(rig.side[!from].eh, false, &ah), 0);
		wr.ah = &ah;
		wr.dest_qpn = RIG_QPN(q);
		wr.qkey = QKEY;
	}
	rig_fill(source(from, q, i), sge.length, content(from, q, i));
	assert_int_equal(urdma_eh_put_send(&rig.side[from].qp[q], &wr), 0);
}

/* The memory of a message is reused when both ends have completed it. */
static void fill_window(unsigned int from, unsigned int q)
{
	struct side *s = &sides[from];
	unsigned int n = 0,
		     done = s->sent[q] < sides[!from].got[q] ? s->sent[q] : sides[!from].got[q];

	while (s->posted[q] < plan->messages && s->posted[q] - done < WINDOW) {
		put_send(from, q);
		n++;
	}
	if (n)
		urdma_eh_ring_sq(&rig.side[from].qp[q]);
}

static void look_send(unsigned int from, bool more)
{
	struct urdma_eh_cqe cqe;

	while (urdma_eh_poll_cq(&rig.side[from].send_cq, &cqe, 1)) {
		unsigned int q = cqe.qpn - RIG_QPN(0);

		if (cqe.status == URDMA_WC_FLUSH_ERR && plan->ends)
			continue;
		assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
		sides[from].sent[q]++;
	}
	for (unsigned int q = 0; more && q < plan->qps; q++)
		fill_window(from, q);
}

static uint64_t progress(void)
{
	uint64_t sum = 0;

	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int q = 0; q < plan->qps; q++)
			sum += sides[n].sent[q] + sides[n].got[q];
	return sum;
}

static void look(bool more)
{
	for (unsigned int n = 0; n < 2; n++)
		look_recv(n);
	for (unsigned int n = 0; n < 2; n++)
		look_send(n, more);
}

/* ---- QPs that go to ERR --------------------------------------------------------------------- */

static void events(unsigned int n)
{
	struct urdma_eh_event ev;

	while (urdma_eh_eq_poll(rig.side[n].eh, 0, &ev, 1, true)) {
		assert_int_equal(ev.type, URDMA_EV_LAST_WQE);
		assert_true(ev.obj >= RIG_QPN(0) && ev.obj < RIG_QPN(plan->qps));
		assert_false(sides[n].last_wqe[ev.obj - RIG_QPN(0)]);
		sides[n].last_wqe[ev.obj - RIG_QPN(0)] = true;
	}
}

/* Both ends of pair q go to ERR while all others go on; after the event they are made again. */
static void end_pair(unsigned int q)
{
	uint64_t limit = urdma_cosim_now(rig.cosim) + LIMIT;

	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_to_err(&rig.side[n].qp[q]), 0);
	while (!sides[0].last_wqe[q] || !sides[1].last_wqe[q]) {
		if (urdma_cosim_now(rig.cosim) > limit)
			fail_msg("QP %u: no event that it uses no WQE any more", q);
		run_for(TURN);
		events(0);
		events(1);
	}
	/* The CQE before the event has been written. */
	look(false);
	for (unsigned int n = 0; n < 2; n++)
		rig_renew_qp(&rig, n, q);
	/* The CQEs of the flushed sends belong to the old life. */
	look(false);
	for (unsigned int n = 0; n < 2; n++) {
		struct side *s = &sides[n];

		s->posted[q] = s->sent[q] = s->got[q] = s->flushed[q] = 0;
		s->last_wqe[q] = false;
		s->life[q]++;
	}
	rig_check(&rig,
		  urdma_eh_connect_as(&rig.side[0].qp[q], &rig.side[1].qp[q], &rig.config.conn,
				      rig.config.ipv6),
		  "connect");
	for (unsigned int n = 0; n < 2; n++)
		fill_window(n, q);
}

/* ---- traffic -------------------------------------------------------------------------------- */

static void traffic(void)
{
	uint64_t start = urdma_cosim_now(rig.cosim), seen = start, last, now;
	uint64_t total = UINT64_C(4) * plan->qps * plan->messages;
	unsigned int ends = plan->ends;

	look(true);
	last = progress();
	while (progress() < total) {
		run_for(TURN);
		if (ends && !rig_draw(&random_state, 20)) {
			end_pair(rig_draw(&random_state, plan->qps));
			ends--;
		}
		look(true);
		now = progress();
		if (now != last)
			seen = urdma_cosim_now(rig.cosim);
		last = now;
		if (urdma_cosim_now(rig.cosim) > seen + LIMIT)
			fail_msg("%s: %lu of %lu completions are missing", plan->name,
				 (unsigned long)(total - now), (unsigned long)total);
	}
	print_message("  %lu messages, %lu cycles\n", (unsigned long)(total / 2),
		      (unsigned long)(urdma_cosim_now(rig.cosim) - start));
}

static void test_traffic(void **state)
{
	begin(*state, 1);
	traffic();
	end();
}

static const uint8_t mixed[24] = {
	URDMA_QPT_RC, URDMA_QPT_UD, URDMA_QPT_UC, URDMA_QPT_RC, URDMA_QPT_UD, URDMA_QPT_UC,
	URDMA_QPT_RC, URDMA_QPT_UD, URDMA_QPT_UC, URDMA_QPT_RC, URDMA_QPT_UD, URDMA_QPT_UC,
	URDMA_QPT_RC, URDMA_QPT_UD, URDMA_QPT_UC, URDMA_QPT_RC, URDMA_QPT_UD, URDMA_QPT_UC,
	URDMA_QPT_RC, URDMA_QPT_UD, URDMA_QPT_UC, URDMA_QPT_RC, URDMA_QPT_UD, URDMA_QPT_UC,
};

static const struct plan plans[] = {
	PLAN("64 QPs on one SRQ", 64, 1, 8, 40, 5000),
	PLAN("64 QPs on four SRQs, small messages", 64, 4, 6, 60, 64),
	PLAN("RC, UC and UD on the same SRQs", 24, 2, 6, 60, 3000, .types = mixed),
	PLAN("a ring of one WQE", 2, 1, 0, 40, 3000),
	PLAN("rings of two WQEs", 8, 4, 1, 40, 3000),
	PLAN("a ring of 16 WQEs, which come late", 16, 1, 4, 40, 3000, .starve = true),
	/* filled by one doorbell; the indices wrap */
	PLAN("the largest ring", 16, 1, 15, 4200, 32),
	PLAN("1 % of everything", 16, 2, 7, 60, 5000,
	     .faults = { "drop,p=1", "dup,p=1", "reorder,p=1", "corrupt,p=1",
			 "delay,ns=5000,p=1" }),
	PLAN("WQEs come late, and 3 % of packets are lost", 16, 2, 5, 30, 5000,
	     .faults = { "drop,p=3" }, .starve = true),
	PLAN("QPs end in the traffic", 16, 2, 6, 250, 9000, .ends = 40),
	PLAN("QPs end, WQEs come late, and 2 % of packets are lost", 16, 2, 4, 60, 9000,
	     .faults = { "drop,p=2" }, .starve = true, .ends = 20),
};

/* ---- one thing at a time -------------------------------------------------------------------- */

static const struct plan single = PLAN("one pair", 1, 1, 4, 1000, 256);
static const struct plan two = PLAN("two pairs on two SRQs", 2, 2, 4, 1000, 256);

static unsigned int limit_events(void)
{
	struct urdma_eh_event ev;
	unsigned int n = 0;

	run_for(5000);
	while (urdma_eh_eq_poll(rig.side[1].eh, 0, &ev, 1, true)) {
		assert_int_equal(ev.type, URDMA_EV_SRQ_LIMIT);
		assert_int_equal(ev.obj, RIG_SRQN(0));
		n++;
	}
	return n;
}

static void one_message(unsigned int q)
{
	unsigned int s = q % plan->srqs;
	struct urdma_eh_cqe cqe;

	put_send(0, q);
	urdma_eh_ring_sq(&rig.side[0].qp[q]);
	rig_check(&rig, urdma_eh_next_cqe(&rig.side[1].recv_cq, &cqe, LIMIT), "receive CQE");
	assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
	assert_true(sides[1].owned[s][cqe.wqe]);
	sides[1].owned[s][cqe.wqe] = false;
	sides[1].taken[s]++;
	check_data(1, q, &cqe, place_buffer(1, s, cqe.wqe));
	urdma_eh_srq_give_back(&rig.side[1].srq[s], cqe.wqe);
	rig_check(&rig, urdma_eh_next_cqe(&rig.side[0].send_cq, &cqe, LIMIT), "send CQE");
	assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
	sides[0].sent[q]++;
}

static unsigned int armed_limit(void)
{
	struct urdma_eh_srq_info info;

	assert_int_equal(urdma_eh_query_srq(&rig.side[1].srq[0], &info), 0);
	return info.limit;
}

/* Fewer WQEs than the limit: one event, and the limit is disarmed (volume 1, 10.2.9.3). */
static void test_limit(void **state)
{
	struct urdma_eh_srq *srq;

	(void)state;
	begin(&single, 2);
	srq = &rig.side[1].srq[0];
	for (unsigned int i = 0; i < 10; i++)
		put_recv(1, 0, 1);
	urdma_eh_ring_srq(srq);
	assert_int_equal(urdma_eh_modify_srq(srq, 4), 0);
	for (unsigned int left = 9; left >= 4; left--) {
		one_message(0);
		assert_int_equal(limit_events(), 0);
		assert_int_equal(armed_limit(), 4);
	}
	one_message(0);
	assert_int_equal(limit_events(), 1);
	assert_int_equal(armed_limit(), 0);
	one_message(0);
	assert_int_equal(limit_events(), 0);
	/* two are left */
	assert_int_equal(urdma_eh_modify_srq(srq, 2), 0);
	assert_int_equal(limit_events(), 0);
	assert_int_equal(urdma_eh_modify_srq(srq, 3), 0);
	assert_int_equal(limit_events(), 1);
	assert_int_equal(urdma_eh_modify_srq(srq, 16), 0);
	assert_int_equal(limit_events(), 1);
	assert_int_equal(urdma_eh_modify_srq(srq, 17), URDMA_CS_BAD_ATTR);
	assert_int_equal(urdma_eh_modify_srq(srq, 2), 0);
	assert_int_equal(urdma_eh_modify_srq(srq, 0), 0);
	one_message(0);
	one_message(0);
	assert_int_equal(limit_events(), 0);
	end();
}

/* An SRQ cannot be destroyed while a QP uses it; afterwards it is made again, elsewhere, with other
 * strides and levels. */
static void test_again(void **state)
{
	static const struct plan lives = PLAN("two lives", 4, 1, 7, 20, 3000);

	(void)state;
	begin(&lives, 3);
	traffic();
	for (unsigned int n = 0; n < 2; n++) {
		struct rig_side *side = &rig.side[n];
		struct urdma_eh_srq_attr attr = { .srqn = RIG_SRQN(0),
						  .pd = RIG_PD,
						  .db_page = RIG_DB_PAGE,
						  .log_entries = 7,
						  .log_stride = 8,
						  .kind = URDMA_EH_RING_LEVELS_2 };

		assert_int_equal(urdma_eh_destroy_srq(&side->srq[0]), URDMA_CS_BUSY);
		assert_int_equal(urdma_eh_dealloc_pd(side->eh, RIG_PD), URDMA_CS_BUSY);
		for (unsigned int q = 0; q < plan->qps; q++)
			assert_int_equal(urdma_eh_destroy_qp(&side->qp[q]), 0);
		assert_int_equal(urdma_eh_destroy_srq(&side->srq[0]), 0);
		assert_int_equal(urdma_eh_create_srq(side->eh, &attr, &side->srq[0]), 0);
		memset(sides[n].owned[0], 0, 1u << plan->log_srq);
		sides[n].taken[0] = 0;
		for (unsigned int q = 0; q < plan->qps; q++) {
			rig_make_qp(&rig, n, q);
			sides[n].posted[q] = sides[n].sent[q] = sides[n].got[q] = 0;
			sides[n].life[q]++;
		}
	}
	for (unsigned int q = 0; q < plan->qps; q++) {
		judge_connect(&judge, q, 100 + q, 200 + q);
		rig.config.conn.sq_psn = 100 + q;
		rig.config.conn.rq_psn = 200 + q;
		rig_check(&rig,
			  urdma_eh_connect_as(&rig.side[0].qp[q], &rig.side[1].qp[q],
					      &rig.config.conn, rig.config.ipv6),
			  "connect");
	}
	traffic();
	end();
}

static void wait_state(struct urdma_eh_qp *qp, unsigned int want)
{
	uint64_t limit = urdma_cosim_now(rig.cosim) + LIMIT;

	while (rig_qp_state(qp) != want) {
		if (urdma_cosim_now(rig.cosim) > limit)
			fail_msg("QP 0x%x does not come to state %u", qp->qpn, want);
		run_for(1000);
	}
}

/* A dead SRQ ends the QP that needs a WQE of it, and no other. */
static void dead(void (*kill)(struct urdma_eh_srq *srq))
{
	struct urdma_eh_srq *srq;
	struct urdma_eh_event ev;
	bool srq_err = false;

	begin(&two, 4);
	judge_drop(&judge);
	judged = false;
	srq = &rig.side[1].srq[0];
	for (unsigned int i = 0; i < 4; i++) {
		put_recv(1, 0, 1);
		put_recv(1, 1, 2);
	}
	urdma_eh_ring_srq(&rig.side[1].srq[1]);
	urdma_eh_ring_srq(srq);
	one_message(0);
	one_message(1);
	kill(srq);
	/* WQEs before a bad index are good, and may have been read already */
	for (unsigned int i = 0; i < 5; i++)
		put_send(0, 0);
	urdma_eh_ring_sq(&rig.side[0].qp[0]);
	wait_state(&rig.side[1].qp[0], URDMA_QPS_ERR);
	while (urdma_eh_eq_poll(rig.side[1].eh, 0, &ev, 1, true)) {
		if (ev.type == URDMA_EV_SRQ_ERR) {
			assert_int_equal(ev.obj, RIG_SRQN(0));
			assert_false(srq_err);
			srq_err = true;
		} else {
			assert_int_equal(ev.obj, RIG_QPN(0));
		}
	}
	assert_true(srq_err);
	assert_int_equal(urdma_eh_to_err(&rig.side[0].qp[0]), 0);
	run_for(20000);
	for (struct urdma_eh_cqe cqe; urdma_eh_poll_cq(&rig.side[0].send_cq, &cqe, 1);)
		assert_int_equal(cqe.qpn, RIG_QPN(0));
	for (struct urdma_eh_cqe cqe; urdma_eh_poll_cq(&rig.side[1].recv_cq, &cqe, 1);)
		assert_int_equal(cqe.qpn, RIG_QPN(0));
	for (unsigned int i = 0; i < 3; i++)
		one_message(1);
	assert_int_equal(urdma_embedded_stats(rig.host)->faults, 0);
	rig_stop(&rig);
	forget();
	running = false;
}

static void bad_index(struct urdma_eh_srq *srq)
{
	put_recv(1, 0, 1);
	srq->index[(srq->pi - 1) & 15] = 16;
	urdma_eh_ring_srq(srq);
}

static void far_doorbell(struct urdma_eh_srq *srq)
{
	srq->pi += 17;
	urdma_eh_ring_srq(srq);
}

static void test_bad_index(void **state)
{
	(void)state;
	dead(bad_index);
}

static void test_far_doorbell(void **state)
{
	(void)state;
	dead(far_doorbell);
}

/* The keys of its WQEs belong to its own PD, whatever the QP's PD is. */
static void test_pd(void **state)
{
	struct urdma_eh_srq_attr attr = {
		.srqn = 0x20, .pd = 2, .db_page = RIG_DB_PAGE, .log_entries = 4, .log_stride = 6
	};
	struct urdma_eh_qp_attr qp = { .qpn = RIG_QPN(0),
				       .pd = RIG_PD,
				       .db_page = RIG_DB_PAGE,
				       .log_sq = 4,
				       .log_sq_stride = 7 };
	struct urdma_eh_srq srq;
	struct urdma_eh_mr mr;
	struct urdma_eh_sge sge;
	struct urdma_eh_cqe cqe;
	struct rig_side *b;

	(void)state;
	begin(&single, 5);
	judge_drop(&judge);
	judged = false;
	b = &rig.side[1];
	qp.send_cq = &b->send_cq;
	qp.recv_cq = &b->recv_cq;
	qp.srq = &srq;
	assert_int_equal(urdma_eh_alloc_pd(b->eh, 2), 0);
	assert_int_equal(urdma_eh_create_srq(b->eh, &attr, &srq), 0);
	assert_int_equal(urdma_eh_create_mr(b->eh, 2, 1, 2, URDMA_ACC_LOCAL_WRITE, b->buffer, 8192,
					    (uintptr_t)b->buffer, &mr),
			 0);
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_destroy_qp(&rig.side[n].qp[0]), 0);
	rig_make_qp(&rig, 0, 0);
	assert_int_equal(urdma_eh_create_qp(b->eh, &qp, &b->qp[0]), 0);
	rig_check(&rig, urdma_eh_connect_as(&rig.side[0].qp[0], &b->qp[0], &rig.config.conn, false),
		  "connect");
	sge = (struct urdma_eh_sge){ (uintptr_t)b->buffer, 4096, mr.key };
	assert_int_equal(urdma_eh_put_srq_recv(&srq, &sge, 1), 0);
	sge.lkey = b->mr.key;
	assert_int_equal(urdma_eh_put_srq_recv(&srq, &sge, 1), 1);
	urdma_eh_ring_srq(&srq);
	for (unsigned int i = 0; i < 2; i++) {
		struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND, .signaled = true };

		sge = (struct urdma_eh_sge){ (uintptr_t)rig.side[0].buffer, 100,
					     rig.side[0].mr.key };
		wr.sge = &sge;
		wr.n_sge = 1;
		assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0], &wr), 0);
		rig_check(&rig, urdma_eh_next_cqe(&b->recv_cq, &cqe, LIMIT), "receive CQE");
		assert_int_equal(cqe.status, i ? URDMA_WC_LOC_PROT_ERR : URDMA_WC_SUCCESS);
		assert_int_equal(cqe.wqe, i);
		rig_check(&rig, urdma_eh_next_cqe(&rig.side[0].send_cq, &cqe, LIMIT), "send CQE");
		assert_int_equal(cqe.status, i ? URDMA_WC_REM_OP_ERR : URDMA_WC_SUCCESS);
	}
	assert_int_equal(urdma_eh_destroy_qp(&b->qp[0]), 0);
	assert_int_equal(urdma_eh_destroy_srq(&srq), 0);
	assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	assert_int_equal(urdma_eh_dealloc_pd(b->eh, 2), 0);
	rig_make_qp(&rig, 1, 0);
	rig_stop(&rig);
	forget();
	running = false;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest others[] = {
		{ "limit", test_limit, NULL, NULL, NULL },
		{ "made anew", test_again, NULL, NULL, NULL },
		{ "an index beyond the array", test_bad_index, NULL, NULL, NULL },
		{ "a doorbell too far ahead", test_far_doorbell, NULL, NULL, NULL },
		{ "protection domain", test_pd, NULL, NULL, NULL },
	};
	struct CMUnitTest test[COUNT(plans) + COUNT(others)];
	size_t n = 0;
	int ret;

	for (size_t i = 0; i < COUNT(plans); i++)
		if (rig_wanted(plans[i].name, argc - 1, argv + 1))
			test[n++] = (struct CMUnitTest){
				.name = plans[i].name,
				.test_func = test_traffic,
				.initial_state = (void *)(uintptr_t)&plans[i],
			};
	for (size_t i = 0; i < COUNT(others); i++)
		if (rig_wanted(others[i].name, argc - 1, argv + 1))
			test[n++] = others[i];
	ret = _cmocka_run_group_tests("engine/srq", test, n, NULL, NULL);
	if (running) {
		if (judged)
			judge_drop(&judge);
		rig_abandon(&rig);
		forget();
	}
	return ret;
}
