// SPDX-License-Identifier: Apache-2.0
/*
 * CQs whose rings are replaced under traffic, whose events are moderated, and which overrun.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

#define COUNT(x)      (sizeof(x) / sizeof((x)[0]))
#define LIMIT	      2000000u /* cycles without a CQE that is awaited */
#define CYCLES_PER_US 250u
/* Two sweeps of the timer (section 15 of the contract), and the time of a CQE. */
#define LATE   (2 * (128 + 2) + 100)
#define QPS    4u
#define WINDOW 6u /* messages of a QP that are not completed */
#define LEN    64u

static void settle(struct rig *rig)
{
	rig_check(rig,
		  urdma_cosim_run_while_busy(rig->cosim, urdma_cosim_now(rig->cosim) + 1000000),
		  "settle");
}

static void pass(struct rig *rig, uint64_t cycles)
{
	rig_check(rig, urdma_cosim_run_until(rig->cosim, urdma_cosim_now(rig->cosim) + cycles),
		  "run");
}

/* ---- traffic: SENDs from side 0 to side 1
 * -------------------------------------------------------- */

struct traffic {
	struct rig rig;
	uint64_t random;
	/* by QP: messages posted; and the next WQE that each side's CQ has to name */
	uint32_t posted[QPS], sent[QPS], received[QPS];
};

static void start(struct traffic *t, uint64_t seed)
{
	struct rig_config config;

	memset(t, 0, sizeof(*t));
	t->random = seed;
	rig_defaults(&config);
	config.qps = QPS;
	config.sig_all = true;
	config.log_sq = config.log_rq = 4;
	config.log_cqe = 6;
	rig_start(&t->rig, &config);
}

static void post(struct traffic *t, unsigned int i)
{
	struct rig_side *tx = &t->rig.side[0], *rx = &t->rig.side[1];
	struct urdma_eh_sge to = { (uintptr_t)rx->buffer, LEN, rx->mr.key };
	uint8_t data[16] = { 0 };
	struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
				    .solicited = true,
				    .inline_data = data,
				    .inline_len = sizeof(data) };

	assert_int_equal(urdma_eh_post_recv(&rx->qp[i], &to, 1), 0);
	assert_int_equal(urdma_eh_post_send(&tx->qp[i], &wr), 0);
	t->posted[i]++;
}

/* Polls up to n CQEs of a side: those of each QP come in order, none missing. */
static unsigned int take(struct traffic *t, unsigned int side, unsigned int n)
{
	struct rig_side *s = &t->rig.side[side];
	uint32_t *next = side ? t->received : t->sent;
	struct urdma_eh_cqe cqe[64];
	unsigned int got = urdma_eh_poll_cq(side ? &s->recv_cq : &s->send_cq, cqe, n);

	for (unsigned int i = 0; i < got; i++) {
		unsigned int qp = cqe[i].qpn - RIG_QPN(0);

		assert_true(qp < QPS);
		assert_int_equal(cqe[i].status, 0);
		assert_int_equal(cqe[i].wqe, next[qp] & 0xffff);
		next[qp]++;
	}
	return got;
}

static void finish(struct traffic *t)
{
	settle(&t->rig);
	for (unsigned int side = 0; side < 2; side++)
		while (take(t, side, 64))
			;
	for (unsigned int i = 0; i < QPS; i++) {
		assert_int_equal(t->sent[i], t->posted[i]);
		assert_int_equal(t->received[i], t->posted[i]);
	}
	for (unsigned int side = 0; side < 2; side++)
		assert_int_equal(urdma_eh_counter(t->rig.side[side].eh, URDMA_CNT_CQ_OVERFLOW), 0);
	rig_stop(&t->rig);
}

/*
 * Rings of 32 to 1024 entries in turn, with a page table of each kind, while CQEs are written and
 * polled at any rate: none is lost, doubled or out of order.
 */
static void test_resize(void **state)
{
	static const enum urdma_eh_ring_kind kind[] = { URDMA_EH_RING_PAGED, URDMA_EH_RING_CONTIG,
							URDMA_EH_RING_LEVELS_2 };
	struct traffic t;
	uint32_t total = 0;

	(void)state;
	start(&t, 41);
	for (unsigned int round = 0; round < 120; round++) {
		unsigned int side = rig_draw(&t.random, 2), log = 5 + rig_draw(&t.random, 6);
		struct rig_side *s = &t.rig.side[side];
		unsigned int steps = 1 + rig_draw(&t.random, 12);

		for (unsigned int k = 0; k < steps; k++) {
			for (unsigned int i = 0; i < QPS; i++)
				while (t.posted[i] - t.sent[i] < WINDOW &&
				       t.posted[i] - t.received[i] < WINDOW)
					post(&t, i);
			pass(&t.rig, rig_draw(&t.random, 1500));
			/* some may wait for the next ring */
			for (unsigned int n = 0; n < 2; n++)
				take(&t, n, rig_draw(&t.random, 2 * WINDOW));
		}
		assert_int_equal(urdma_eh_resize_cq(side ? &s->recv_cq : &s->send_cq, log,
						    kind[rig_draw(&t.random, COUNT(kind))]),
				 0);
	}
	for (unsigned int i = 0; i < QPS; i++)
		total += t.posted[i];
	assert_true(total > 1000);
	finish(&t);
}

/* The waiting CQEs do not fit: the CQ stays as it is. As many as fit are moved along. */
static void test_too_small(void **state)
{
	struct traffic t;

	(void)state;
	start(&t, 42);
	for (unsigned int n = 0; n < WINDOW; n++)
		for (unsigned int i = 0; i < QPS; i++)
			post(&t, i);
	settle(&t.rig);
	for (unsigned int side = 0; side < 2; side++) {
		struct rig_side *s = &t.rig.side[side];
		struct urdma_eh_cq *cq = side ? &s->recv_cq : &s->send_cq;

		assert_int_equal(urdma_eh_resize_cq(cq, 3, URDMA_EH_RING_PAGED), URDMA_CS_BUSY);
		assert_int_equal(urdma_eh_resize_cq(cq, 4, URDMA_EH_RING_PAGED), URDMA_CS_BUSY);
		/* consumed only by the index of the command */
		assert_int_equal(take(&t, side, QPS * WINDOW - 16), QPS * WINDOW - 16);
		assert_int_equal(urdma_eh_resize_cq(cq, 4, URDMA_EH_RING_PAGED), 0);
		assert_int_equal(take(&t, side, 5), 5);
		assert_int_equal(urdma_eh_resize_cq(cq, 8, URDMA_EH_RING_PAGED), 0);
		assert_int_equal(take(&t, side, 64), 11);
	}
	finish(&t);
}

/*
 * The CQ is armed and changes its ring; the next CQE raises the event. A CQE from before the arming
 * that is not polled yet raises the event at the arming, in whichever ring it lies.
 */
static void test_armed(void **state)
{
	struct urdma_eh_event ev[4];
	struct urdma_eh_cq *cq;
	struct traffic t;

	(void)state;
	start(&t, 43);
	cq = &t.rig.side[1].recv_cq;
	for (unsigned int i = 0; i < 40; i++) {
		urdma_eh_arm_cq(cq, i & 1);
		assert_int_equal(urdma_eh_resize_cq(cq, 5 + i % 3, URDMA_EH_RING_PAGED), 0);
		settle(&t.rig);
		assert_int_equal(urdma_eh_eq_poll(t.rig.side[1].eh, 1, ev, 4, false), 0);
		post(&t, 0);
		settle(&t.rig);
		assert_int_equal(urdma_eh_eq_poll(t.rig.side[1].eh, 1, ev, 4, false), 1);
		assert_int_equal(ev[0].obj, cq->cqn);
		post(&t, 1);
		settle(&t.rig);
		assert_int_equal(urdma_eh_resize_cq(cq, 4, URDMA_EH_RING_PAGED), 0);
		urdma_eh_arm_cq(cq, i & 1);
		settle(&t.rig);
		assert_int_equal(urdma_eh_eq_poll(t.rig.side[1].eh, 1, ev, 4, false), 1);
		for (unsigned int side = 0; side < 2; side++)
			assert_int_equal(take(&t, side, 64), 2);
	}
	finish(&t);
}

/* ---- moderation -------------------------------------------------------------------------------
 */

/* Two or three messages at a time under each pair of limits: how many events come, and when. */
static void test_moderation(void **state)
{
	static const struct {
		unsigned int count, period, messages, at_once, at_last;
	} table[] = {
		{ 0, 0, 3, 1, 1 },  { 1, 0, 3, 1, 1 },	{ 4, 0, 3, 0, 0 },   { 4, 0, 4, 1, 1 },
		{ 4, 20, 3, 0, 1 }, { 4, 20, 4, 1, 1 }, { 0, 20, 12, 0, 1 }, { 0, 1000, 1, 0, 1 },
	};
	struct urdma_eh_event ev[4];
	struct urdma_eh_cq *cq;
	struct traffic t;

	(void)state;
	start(&t, 44);
	cq = &t.rig.side[1].recv_cq;
	for (unsigned int i = 0; i < COUNT(table); i++) {
		struct urdma_eh *eh = t.rig.side[1].eh;
		uint64_t first, period = table[i].period * CYCLES_PER_US;
		struct urdma_eh_cqe cqe;
		unsigned int n;

		/* the events of the case before */
		urdma_eh_eq_poll(eh, 1, ev, 4, false);
		assert_int_equal(urdma_eh_modify_cq(cq, table[i].count, table[i].period), 0);
		urdma_eh_arm_cq(cq, i & 1);
		settle(&t.rig);
		urdma_eh_eq_poll(eh, 1, ev, 4, false);
		for (unsigned int k = 0; k < table[i].messages; k++)
			post(&t, k % QPS);
		rig_check(&t.rig, urdma_eh_wait_cq(cq, LIMIT), "wait");
		settle(&t.rig);
		n = urdma_eh_eq_poll(eh, 1, ev, 4, false);
		assert_int_equal(n, table[i].at_once);
		if (!n) {
			pass(&t.rig, period + LATE + 2000);
			n = urdma_eh_eq_poll(eh, 1, ev, 4, false);
			assert_int_equal(n, table[i].at_last);
		}
		first = UINT64_MAX;
		while (urdma_eh_poll_cq(cq, &cqe, 1)) {
			t.received[cqe.qpn - RIG_QPN(0)]++;
			if (cqe.cycles < first)
				first = cqe.cycles;
		}
		take(&t, 0, 64);
		if (table[i].at_once != table[i].at_last &&
		    (ev[0].cycles < first + period || ev[0].cycles > first + period + LATE))
			fail_msg("%u us: the event came %lu cycles after the CQE", table[i].period,
				 (unsigned long)(ev[0].cycles - first));
	}
	/* Errors do not wait. */
	assert_int_equal(urdma_eh_modify_cq(cq, 0xffff, 0), 0);
	urdma_eh_arm_cq(cq, false);
	settle(&t.rig);
	urdma_eh_eq_poll(t.rig.side[1].eh, 1, ev, 4, false);
	post(&t, 0);
	settle(&t.rig);
	assert_int_equal(urdma_eh_eq_poll(t.rig.side[1].eh, 1, ev, 4, false), 0);
	take(&t, 0, 64);
	take(&t, 1, 64);
	struct urdma_eh_sge sge = { (uintptr_t)t.rig.side[1].buffer, LEN, t.rig.side[1].mr.key };

	assert_int_equal(urdma_eh_post_recv(&t.rig.side[1].qp[3], &sge, 1), 0);
	settle(&t.rig);
	assert_int_equal(urdma_eh_to_err(&t.rig.side[1].qp[3]), 0);
	settle(&t.rig);
	assert_int_equal(urdma_eh_eq_poll(t.rig.side[1].eh, 1, ev, 4, false), 1);
	struct urdma_eh_cqe cqe;

	assert_int_equal(urdma_eh_poll_cq(cq, &cqe, 1), 1);
	finish(&t);
}

/*
 * A consumer that sleeps until its event, under streams with changing limits: it always wakes up,
 * and there are fewer events than CQEs.
 */
static void test_sleeper(void **state)
{
	struct urdma_eh_event ev[16];
	struct urdma_eh_cq *cq;
	struct traffic t;
	uint32_t events = 0, total = 0;

	(void)state;
	start(&t, 45);
	cq = &t.rig.side[1].recv_cq;
	for (unsigned int round = 0; round < 150; round++) {
		unsigned int rounds = 0, n = 1 + rig_draw(&t.random, QPS * WINDOW);
		uint32_t taken = 0;

		assert_int_equal(urdma_eh_modify_cq(cq, rig_draw(&t.random, 12),
						    1 + rig_draw(&t.random, 20)),
				 0);
		urdma_eh_arm_cq(cq, false);
		for (unsigned int k = 0; k < n; k++) {
			post(&t, k % QPS);
			pass(&t.rig, rig_draw(&t.random, 800));
		}
		while (taken < n) {
			unsigned int got = urdma_eh_eq_poll(t.rig.side[1].eh, 1, ev, 16, false);

			if (!got) {
				assert_true(++rounds < 1000);
				pass(&t.rig, 300);
				continue;
			}
			events += got;
			taken += take(&t, 1, 64);
			urdma_eh_arm_cq(cq, false);
		}
		settle(&t.rig);
		take(&t, 0, 64);
		total += n;
	}
	assert_true(events < total / 2);
	finish(&t);
}

/* ---- overrun --------------------------------------------------------------------------------- */

/* A send CQ of 8 entries that nobody polls: its QP goes on, and the QP's other CQ gets all its
 * CQEs. */
static void test_overrun(void **state)
{
	struct rig_config config;
	struct urdma_eh_cmd cmd = { 0 };
	struct urdma_eh_event ev[4];
	struct urdma_eh_cqe cqe[8];
	struct urdma_eh_cq cq;
	struct rig rig;

	(void)state;
	rig_defaults(&config);
	config.sig_all = true;
	rig_start(&rig, &config);
	struct rig_side *tx = &rig.side[0];
	struct urdma_eh_qp_attr attr = { .qpn = RIG_QPN(9),
					 .pd = RIG_PD,
					 .send_cq = &cq,
					 .recv_cq = &tx->recv_cq,
					 .db_page = RIG_DB_PAGE,
					 .log_sq = 4,
					 .log_rq = 4,
					 .log_sq_stride = 7,
					 .log_rq_stride = 6,
					 .sig_all = true };

	memset(&cq, 0, sizeof(cq));
	cq.eh = tx->eh;
	cq.cqn = 9;
	cq.db_page = RIG_DB_PAGE;
	assert_int_equal(urdma_eh_ring_create(tx->eh, 3, 5, 0, URDMA_EH_RING_PAGED, &cq.ring), 0);
	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_CREATE_CQ) |
		   URDMA_SET(URDMA_CMD0_OBJ, cq.cqn);
	cmd.w[1] = URDMA_SET(URDMA_CMD_CQ1_RING, urdma_eh_ring_word(&cq.ring)) |
		   URDMA_SET(URDMA_CMD_CQ1_EQN, 1) | URDMA_SET(URDMA_CMD_CQ1_DB_PAGE, RIG_DB_PAGE) |
		   URDMA_CMD_CQ1_OVERRUN;
	cmd.w[2] = cq.ring.map.addr;
	assert_int_equal(urdma_eh_cmd(tx->eh, &cmd, NULL), 0);
	assert_int_equal(urdma_eh_destroy_qp(&tx->qp[0]), 0);
	attr.qpn = RIG_QPN(0);
	assert_int_equal(urdma_eh_create_qp(tx->eh, &attr, &tx->qp[0]), 0);
	assert_int_equal(urdma_eh_to_reset(&rig.side[1].qp[0]), 0);
	rig_check(&rig, urdma_eh_connect(&tx->qp[0], &rig.side[1].qp[0], config.mtu, false),
		  "connect");

	for (unsigned int i = 0; i < 29; i++) {
		struct urdma_eh_sge to = { (uintptr_t)rig.side[1].buffer, LEN, rig.side[1].mr.key };
		uint8_t data[8] = { 0 };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
					    .inline_data = data,
					    .inline_len = sizeof(data) };
		struct urdma_eh_cqe one;

		assert_int_equal(urdma_eh_post_recv(&rig.side[1].qp[0], &to, 1), 0);
		assert_int_equal(urdma_eh_post_send(&tx->qp[0], &wr), 0);
		rig_check(&rig, urdma_eh_next_cqe(&rig.side[1].recv_cq, &one, LIMIT), "receive");
		assert_int_equal(one.status, 0);
		assert_int_equal(one.wqe, i);
	}
	settle(&rig);
	assert_int_equal(rig_qp_state(&tx->qp[0]), URDMA_QPS_RTS);
	assert_int_equal(urdma_eh_counter(tx->eh, URDMA_CNT_CQ_OVERFLOW), 0);
	assert_int_equal(urdma_eh_eq_poll(tx->eh, 0, ev, 4, false), 0);
	/* The ring has the newest CQEs: entries 21 to 28 of 29. */
	cq.ci = 29 - 8;
	assert_int_equal(urdma_eh_poll_cq(&cq, cqe, 8), 8);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(cqe[i].wqe, 21 + i);
	assert_false(urdma_eh_cq_ready(&cq));
	rig_abandon(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resize),	cmocka_unit_test(test_too_small),
		cmocka_unit_test(test_armed),	cmocka_unit_test(test_moderation),
		cmocka_unit_test(test_sleeper), cmocka_unit_test(test_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
