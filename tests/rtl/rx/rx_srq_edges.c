// SPDX-License-Identifier: Apache-2.0
/*
 * Corner cases of shared receive queues: a reset and an operation in the same cycle, a line of
 * indices that is read while earlier lines wait, the last WQE of the SRQ, the protection domains of
 * QP and SRQ, the end of a QP and its last completion.
 */
#include "rx_srq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint64_t rem_at(unsigned int off)
{
	return HOST_VA + REM_OFF + off;
}

/* A WQE of one SGE, that software knows of. */
static uint16_t one_receive(struct bench *b, struct ref_srq *q, uint32_t len)
{
	uint16_t place = srq_post(b, q, &(struct sge){ take(b, len, 64), len, LKEY }, 1);

	srq_ring(b, q);
	bench_drain(b, 1000);
	return place;
}

static unsigned int status_of(const struct bench_cqe *c)
{
	return c->w[0] >> 16 & 0xff;
}

static unsigned int wqe_of(const struct bench_cqe *c)
{
	return c->w[0] >> 32 & 0xffff;
}

/*
 * A WQE is posted for each message when the message before it has taken its own. So each message
 * has a line read for it, and more messages wait for their lines than there are lines.
 */
void test_srq_lines(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 3; round++) {
		struct ref_srq *q = srq_open(b, 0, 8, 6);

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, 100, 0, 4, 2000 + 1000 * round);
		for (int k = 0; k < 2; k++)
			srq_qp(b, k, URDMA_QPT_RC, 3, q);
		for (int i = 0; i < 160; i++) {
			srq_receives(b, q, 1, 64);
			bench_run(b, 4);
			fill(b, 64);
			send_message(b, &refs[rnd(b) % 2], 64, false, false, 1);
			bench_run(b, 24);
		}
		srq_settle(b);
		assert_int_equal(srq_query(b, q), 160);
		srq_close(b, q);
	}
	bench_free(b);
}

/* The keys of WQEs are looked up in the PD of the SRQ, that of a WRITE in the PD of the QP. */
void test_srq_pd(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 12; round++) {
		struct ref_srq *q = srq_open(b, 0, 4, 6);
		struct ref *r = srq_qp(b, 0, round % 2 ? URDMA_QPT_UC : URDMA_QPT_RC, 3, q);

		r->cfg.pd = 8;
		bench_cfg(b, &r->cfg);
		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 3 ? 100 : 50, 0, 4, 60);
		srq_receives(b, q, 8, 4096);
		bench_drain(b, 1000);
		fill(b, 3000);
		send_message(b, r, 3000, true, false, 1);
		send_write(b, r, rem_at(0x100), RKEY_PD, 2500, false, 1);
		send_write(b, r, rem_at(0x1100), RKEY_PD, 500, true, 1);
		send_message(b, r, 10, false, false, 1);
		srq_settle(b);
		assert_int_equal(srq_query(b, q), 3);
		/* the PD of the SRQ does not help a WRITE */
		if (!(round % 2)) {
			send_write(b, r, rem_at(0x2000), RKEY, 100, round % 4, 1);
			bench_drain(b, 10000);
			srq_end_qp(b, r);
			srq_settle(b);
		}
		srq_close(b, q);
	}
	bench_free(b);
}

/* A WRITE with immediate that the QP does not allow uses no WQE of the SRQ. */
void test_srq_no_right(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 12; round++) {
		struct ref_srq *q = srq_open(b, 0, 4, 6);
		struct ref *r = srq_qp(b, 0, URDMA_QPT_RC, 3, q);
		struct ref *other = srq_qp(b, 1, URDMA_QPT_RC, 3, q);
		unsigned int n = round % 3 ? 6 : 1;

		r->cfg.acc = 6;
		bench_cfg(b, &r->cfg);
		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 2 ? 100 : 50, 0, 4, 60);
		srq_receives(b, q, n, 4096);
		bench_drain(b, 1000);
		fill(b, 100);
		send_message(b, r, 100, false, false, 1);
		if (n > 1)
			send_message(b, other, 50, false, false, 1);
		send_write(b, r, rem_at(0), RKEY, 100, true, 1);
		for (unsigned int i = 2; i < n; i++)
			send_message(b, other, 30 + i, false, false, 1);
		bench_drain(b, 10000);
		srq_end_qp(b, r);
		srq_settle(b);
		assert_int_equal(srq_query(b, q), n);
		srq_close(b, q);
	}
	bench_free(b);
}

/* The last WQE of the SRQ is held by a QP of UC whose message was lost: its next one uses it. */
void test_srq_held_last(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 16; round++) {
		struct ref_srq *q = srq_open(b, 0, round % 5, 6);
		struct ref *r = srq_qp(b, 0, URDMA_QPT_UC, 3, q);
		struct ref *other = srq_qp(b, 1, URDMA_QPT_RC, 3, q);

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 3 ? 100 : 50, 0, 4, 60);
		one_receive(b, q, 4096);
		fill(b, 3000);
		send_packet(b, r, 0, r->epsn, payload, 1024, false, false);
		if (round % 2)
			send_packet(b, r, 1, r->epsn + 1, payload, 1024, false, false);
		/* the others find none */
		send_message(b, other, 20, false, false, 1);
		if (round % 4 < 2)
			send_message(b, r, 2100, true, false, 1);
		else
			send_write(b, r, rem_at(0x40), RKEY, 2100, true, 1);
		/* now this one neither */
		send_message(b, r, 60, false, false, 1);
		srq_settle(b);
		assert_int_equal(srq_query(b, q), 1);
		srq_close(b, q);
	}
	bench_free(b);
}

/* A QP with an SRQ has no receive queue. Doorbells of one have no effect, whatever they say. */
void test_srq_doorbells(void **state)
{
	static const uint16_t pi[] = { 1, 0x3fff, 0x8000, 0xffff, 0x7fff, 100 };
	struct bench *b = start();
	struct ref_srq *q = srq_open(b, 0, 6, 6);
	struct ref *r = NULL;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	bench_settings(b, 100, 0, 4, 60);
	srq_receives(b, q, 40, 256);
	bench_drain(b, 1000);
	fill(b, 200);
	for (size_t i = 0; i < sizeof(pi) / sizeof(pi[0]); i++) {
		r = srq_qp(b, 0, URDMA_QPT_RC, 3, q);
		bench_db(b, r->cfg.qpn, pi[i]);
		send_message(b, r, 200, false, false, 1);
		bench_run(b, rnd(b) % 40);
		bench_db(b, r->cfg.qpn, pi[i]);
		send_message(b, r, 100, false, false, 1);
		srq_settle(b);
	}
	assert_int_equal(srq_query(b, q), 12);
	srq_end_qp(b, r);
	srq_settle(b);
	srq_close(b, q);
	bench_free(b);
}

/* LAST_WQE says that no completion comes any more: it waits until the CQ has the last one. */
void test_srq_last_wqe(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 8; round++) {
		struct ref_srq *q = srq_open(b, 0, 4, 6);
		struct ref *r = srq_qp(b, 0, URDMA_QPT_RC, 3, q);

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 2 ? 100 : 50, 0, 4, 60);
		srq_receives(b, q, 4, 4096);
		bench_drain(b, 1000);
		fill(b, 1024);
		b->hold_cqe[0] = true;
		/* the completion of a message, or of the flush */
		if (round % 4 < 2)
			send_packet(b, r, 0, r->epsn, payload, 1024, true, false);
		else
			send_message(b, r, 700, false, false, 1);
		bench_run(b, 1000);
		srq_end_qp(b, r);
		bench_run(b, 1000);
		assert_int_equal(b->n_cqes[0] + b->n_errs[0], 0);
		b->hold_cqe[0] = false;
		srq_settle(b);
		srq_close(b, q);
	}
	bench_free(b);
}

/*
 * A flush is looked up while its QP is in RESET, and waits behind other packets until the QP has a
 * new life that has ended as well: LAST_WQE of this end comes.
 */
void test_srq_flush_of_before(void **state)
{
	struct bench *b = start();
	struct ref_srq *q = srq_open(b, 0, 4, 6);

	(void)state;
	qp_init(b, 1, 1, 4, 6, 0);
	bench_settings(b, 100, 0, 4, 60);
	fill(b, 8);
	for (int n = 260; n < 300; n++) {
		struct ref *r = srq_qp(b, 0, URDMA_QPT_RC, 1, q);

		/* The WQE of the first packet does not come; what is behind it fills the queues. */
		next_va = HOST_VA + DATA_OFF;
		post(b, &refs[1], &(struct sge){ take(b, 64, 1), 64, LKEY }, 1);
		ring(b, &refs[1]);
		bench_drain(b, 1000);
		b->hold_rd = true;
		send_packet(b, &refs[1], 4, refs[1].epsn, payload, 8, true, false);
		for (int i = 0; i < n; i++)
			send_write(b, &refs[1], rem_at(0), RKEY, 0, false, 1);
		bench_run(b, 600 + 12 * (unsigned int)n);
		r->cfg.state = URDMA_QPS_RESET;
		bench_cfg(b, &r->cfg);
		bench_ctl_wait(b, false, QPC_ERR, r->cfg.qpn, 0, 200);
		bench_run(b, 50);
		bench_ctl_wait(b, false, QPC_RESET, r->cfg.qpn, 0, 200);
		r->cfg.state = URDMA_QPS_ERR;
		bench_cfg(b, &r->cfg);
		bench_ctl_wait(b, false, QPC_ERR, r->cfg.qpn, 0, 200);
		bench_run(b, 50);
		b->hold_rd = false;
		bench_drain(b, 5000);
		if (b->n_errs[0] != 1 || b->errs[0][0].event != URDMA_EV_LAST_WQE)
			fail_msg("seed %u, behind %d packets: %u events instead of LAST_WQE", seed,
				 n, b->n_errs[0]);
		bench_clear_logs(b);
	}
	srq_close(b, q);
	bench_free(b);
}

/*
 * A message has begun, and another QP is reset at any time around the cycle in which placement
 * notes the WQE in use. The end of the QP completes this WQE.
 */
void test_srq_reset_beside(void **state)
{
	struct bench *b = start();
	struct ref_srq *q = srq_open(b, 0, 4, 6);

	(void)state;
	qp_init(b, 1, 1, 4, 6, 0);
	bench_settings(b, 100, 0, 1, 5);
	fill(b, 256);
	for (int i = 0; i < 700; i++) {
		struct ref *r = srq_qp(b, 0, URDMA_QPT_RC, 1, q);
		uint16_t place;

		next_va = HOST_VA + DATA_OFF;
		place = one_receive(b, q, 4096);
		r->active = false;
		send_packet(b, r, 0, r->epsn, payload, 256, false, false);
		bench_run(b, 20 + i % 70);
		bench_ctl_wait(b, false, QPC_RESET, QPN0 + 1, 0, 200);
		bench_drain(b, 1000);
		bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
		bench_drain(b, 1000);
		if (b->n_cqes[0] != 1 || status_of(&b->cqes[0][0]) != URDMA_WC_FLUSH_ERR ||
		    wqe_of(&b->cqes[0][0]) != place)
			fail_msg("seed %u, try %d: %u CQEs of the WQE in use", seed, i,
				 b->n_cqes[0]);
		assert_int_equal(b->n_errs[0], 1);
		assert_int_equal(b->errs[0][0].event, URDMA_EV_LAST_WQE);
		bench_clear_logs(b);
		q->ci++;
		q->used[place] = false;
	}
	srq_close(b, q);
	bench_free(b);
}

/* A message and the reset of its QP, at any time: when the reset is done, nothing comes of it. */
void test_srq_reset_own(void **state)
{
	struct bench *b = start();
	struct ref_srq *q = srq_open(b, 0, 4, 6);
	unsigned int before = 0, after = 0;

	(void)state;
	bench_settings(b, 100, 0, 1, 5);
	fill(b, 256);
	for (int i = 0; i < 700; i++) {
		struct ref *r = srq_qp(b, 0, URDMA_QPT_RC, 1, q);
		unsigned int n;

		next_va = HOST_VA + DATA_OFF;
		if (q->ci == q->pi)
			one_receive(b, q, 4096);
		r->active = false;
		send_packet(b, r, 4, r->epsn, payload, 256, true, false);
		bench_run(b, 20 + i % 70);
		bench_ctl_wait(b, false, QPC_RESET, r->cfg.qpn, 0, 200);
		n = b->n_cqes[0] + b->n_acks;
		bench_drain(b, 1000);
		if (b->n_cqes[0] + b->n_acks != n || n % 2 || n > 2)
			fail_msg("seed %u, try %d: %u CQEs and acknowledgements before the reset, "
				 "%u in all",
				 seed, i, n, b->n_cqes[0] + b->n_acks);
		before += n / 2;
		after += !n;
		bench_clear_logs(b);
		q->ci = srq_query(b, q);
		if (q->ci == q->pi)
			memset(q->used, 0, sizeof(q->used));
	}
	assert_true(before > 100 && after > 100);
	srq_close(b, q);
	bench_free(b);
}

/*
 * Messages behind one whose index is beyond the array, all in a line that is still being read. The
 * QP that has met the index ends, and its WQEs come back with FLUSH_ERR; it has none for a second
 * bad index. Messages of another QP find what they have taken.
 */
void test_srq_behind_bad(void **state)
{
	struct bench *b = start();
	unsigned int behind = 0;

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct ref_srq *q = srq_open(b, 0, 4, 6);
		unsigned int seen[16] = { 0 }, flushed = 0, taken = 0, bad = round % 2 + 1;
		unsigned int n = 3 + rnd(b) % 8;
		bool posted[16] = { false };

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, 100, 0, 4, 200);
		for (int k = 0; k < 2; k++) {
			srq_qp(b, k, URDMA_QPT_RC, 3, q);
			refs[k].active = false;
		}
		for (unsigned int i = 0; i < bad; i++)
			srq_index(b, q, 16 + rnd(b) % 1000);
		for (unsigned int i = bad; i < n; i++)
			posted[srq_post(b, q, &(struct sge){ take(b, 64, 64), 64, LKEY }, 1)] =
				true;
		srq_ring(b, q);
		bench_drain(b, 1000);
		fill(b, 64);
		/* bad ones are those of QP 0 */
		for (unsigned int i = 0; i < n; i++) {
			struct ref *r = &refs[i < bad ? 0 : rnd(b) % 2];

			send_packet(b, r, 4, r->epsn++, payload, 64, false, false);
		}
		bench_drain(b, 10000);
		taken = srq_query(b, q);
		bench_ctl(b, false, QPC_ERR, refs[0].cfg.qpn, 0);
		bench_ctl(b, false, QPC_ERR, refs[1].cfg.qpn, 0);
		bench_drain(b, 10000);
		for (unsigned int i = 0; i < b->n_cqes[0]; i++) {
			const struct bench_cqe *c = &b->cqes[0][i];

			assert_true(wqe_of(c) < 16 && posted[wqe_of(c)]);
			assert_int_equal(seen[wqe_of(c)]++, 0);
			flushed += status_of(c) == URDMA_WC_FLUSH_ERR;
			assert_int_equal(status_of(c),
					 c->w[1] >> 32 == refs[0].cfg.qpn ? URDMA_WC_FLUSH_ERR : 0);
		}
		if (b->n_cqes[0] != taken - bad)
			fail_msg("seed %u round %d: %u WQEs taken, %u of them bad, %u completed",
				 seed, round, taken, bad, b->n_cqes[0]);
		assert_int_equal(b->n_srq_evs, 1);
		behind += flushed;
		bench_clear_logs(b);
		memcpy(b->shadow, b->host, HOST_SIZE);
		srq_close(b, q);
	}
	print_message("%u WQEs behind a bad index\n", behind);
	assert_true(behind > 50);
	bench_free(b);
}
