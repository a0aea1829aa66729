// SPDX-License-Identifier: Apache-2.0
/*
 * Shared receive queues (volume 1, 10.2.9): the WQE that a message takes, its fate when the QP
 * goes to ERR, and the behaviour of an SRQ in error. The reference (rx_ref.c) takes WQEs in the
 * order of the packets, and all QPs of a test share its SRQ.
 */
#include "rx_srq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SRQN 5u

static struct ref_srq srqs[4];

static uint64_t rem_at(unsigned int off)
{
	return HOST_VA + REM_OFF + off;
}

static uint64_t ring_off(const struct ref_srq *q)
{
	return q->cfg.addr - HOST_BUS + (1ull << (q->cfg.log_entries + q->cfg.log_stride));
}

/* SRQ i of a test, in memory where QP i would have its own ring. */
struct ref_srq *srq_open(struct bench *b, int i, uint8_t log_entries, uint8_t log_stride)
{
	struct ref_srq *q = &srqs[i];

	memset(q, 0, sizeof(*q));
	q->cfg = (struct rx_sro){ .op = SRO_CREATE,
				  .srqn = SRQN + i,
				  .pd = 7,
				  .addr = HOST_BUS + RING_OFF + 0x10000 * i,
				  .log_entries = log_entries,
				  .log_stride = log_stride };
	assert_true(ring_off(q) + (2u << log_entries) <= SQ_OFF);
	bench_srq(b, &q->cfg);
	return q;
}

void srq_close(struct bench *b, struct ref_srq *q)
{
	struct rx_sro op = { .op = SRO_DESTROY, .srqn = q->cfg.srqn };

	bench_srq(b, &op);
}

void srq_attach(struct bench *b, struct ref *r, struct ref_srq *q)
{
	r->srq = q;
	r->cfg.srq = true;
	r->cfg.srqn = q->cfg.srqn;
	bench_cfg(b, &r->cfg);
}

struct ref *srq_qp(struct bench *b, int i, uint8_t type, uint8_t mtu, struct ref_srq *q)
{
	qp_type = type;
	qp_init(b, i, mtu, 6, 6, 0xfffff0 + i);
	qp_type = URDMA_QPT_RC;
	srq_attach(b, &refs[i], q);
	return &refs[i];
}

static unsigned int posted(const struct ref_srq *q)
{
	return (uint16_t)(q->pi - q->ci);
}

/* Put a number into the ring of indices. */
void srq_index(struct bench *b, struct ref_srq *q, uint16_t place)
{
	uint16_t at = q->pi++ & ((1u << q->cfg.log_entries) - 1);

	q->ring[at] = place;
	bench_put(b, HOST_VA + ring_off(q) + 2 * at, &place, 2);
}

/* Post a WQE to a place that is free. */
uint16_t srq_post(struct bench *b, struct ref_srq *q, const struct sge *s, unsigned int num)
{
	uint16_t place, mask = (1u << q->cfg.log_entries) - 1;
	uint8_t w[512] = { num };

	for (place = rnd(b) & mask; q->used[place];)
		place = (place + 1) & mask;
	q->used[place] = true;
	for (unsigned int i = 0; i < num && i < 31; i++) {
		memcpy(w + 16 + 16 * i, &s[i].va, 8);
		memcpy(w + 24 + 16 * i, &s[i].len, 4);
		memcpy(w + 28 + 16 * i, &s[i].key, 4);
	}
	bench_put(b, HOST_VA + q->cfg.addr - HOST_BUS + ((uint64_t)place << q->cfg.log_stride), w,
		  1u << q->cfg.log_stride);
	srq_index(b, q, place);
	return place;
}

void srq_ring(struct bench *b, struct ref_srq *q)
{
	bench_srq_db(b, q->cfg.srqn, q->pi);
}

/* WQEs for any message of the tests, n more, or as many as there is room for. */
void srq_receives(struct bench *b, struct ref_srq *q, unsigned int n, uint32_t len)
{
	unsigned int room = 1u << q->cfg.log_entries, most = (1u << q->cfg.log_stride) / 16 - 1;

	for (unsigned int i = 1u << q->cfg.log_entries; i--;)
		room -= q->used[i];
	for (n = n < room ? n : room; n; n--) {
		struct sge s[4];
		unsigned int k = 1 + rnd(b) % (most < 4 ? most : 4);

		for (unsigned int i = 0; i < k; i++)
			s[i] = (struct sge){ take(b, len / k + 1, 64), len / k + 1, LKEY };
		srq_post(b, q, s, k);
	}
	srq_ring(b, q);
}

/* All that is posted or held is in use; when the NIC is idle. */
static void recycle(struct ref_srq *q)
{
	memset(q->used, 0, sizeof(q->used));
	for (uint16_t i = q->ci; i != q->pi; i++)
		q->used[q->ring[i & ((1u << q->cfg.log_entries) - 1)]] = true;
	for (int i = 0; i < QPS; i++)
		if (refs[i].srq == q && refs[i].held)
			q->used[refs[i].held_idx] = true;
}

void srq_settle(struct bench *b)
{
	bench_drain(b, 100000);
	check(b);
	for (size_t i = 0; i < sizeof(srqs) / sizeof(srqs[0]); i++)
		recycle(&srqs[i]);
}

uint64_t srq_query(struct bench *b, const struct ref_srq *q)
{
	struct rx_sro op = { .op = SRO_QUERY, .srqn = q->cfg.srqn };

	bench_srq(b, &op);
	assert_int_equal(b->sro.sro_pi, q->pi);
	return b->sro.sro_ci;
}

/* As qp_mgr ends a QP. */
void srq_end_qp(struct bench *b, struct ref *r)
{
	bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
	r->err = true;
	ref_flush(r);
}

/* Each size and kind of message, on rings of each size; the smallest ones wrap at every message. */
void test_srq(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (unsigned int log = 0; log <= 7; log++) {
		struct ref_srq *q = srq_open(b, 0, log, 6 + log % 3);
		size_t sizes[] = { 0, 1, 64, 255, 256, 257, 1000, 1024 };

		bench_settings(b, log & 1 ? 50 : 100, log & 1 ? 20 : 0, 4, 60);
		for (int k = 0; k < 3; k++)
			srq_qp(b, k, k == 2 ? URDMA_QPT_UC : URDMA_QPT_RC, 1 + k, q);
		/* none: RNR of RC, silence of UC */
		for (int k = 0; k < 3; k++) {
			fill(b, 64);
			send_message(b, &refs[k], 64, false, false, 1);
			send_write(b, &refs[k], rem_at(0x1000), RKEY, 64, true, 1);
		}
		srq_settle(b);
		assert_int_equal(srq_query(b, q), 0);
		for (unsigned int i = 0; i < 200; i++) {
			struct ref *r = &refs[i % 3];
			size_t len = sizes[rnd(b) % 8];

			if (!posted(q)) {
				srq_settle(b);
				srq_receives(b, q, 1 + rnd(b) % (1u << log), 2048);
				bench_drain(b, 1000);
			}
			fill(b, len);
			if (rnd(b) % 3)
				send_message(b, r, len, rnd(b) % 2, rnd(b) % 2, 2);
			else
				send_write(b, r, rem_at(0x40 * i), RKEY, len, rnd(b) % 2, 2);
		}
		srq_settle(b);
		assert_int_equal(srq_query(b, q), q->ci);
		assert_int_equal(b->n_srq_evs, 0);
		srq_close(b, q);
	}
	bench_free(b);
}

/* Three SRQs, RC, UC and UD on them, messages of all QPs mixed packet by packet, posts among them.
 */
void test_srq_traffic(void **state)
{
	struct bench *b = start();
	static const uint8_t types[] = { URDMA_QPT_RC, URDMA_QPT_RC, URDMA_QPT_UC, URDMA_QPT_RC,
					 URDMA_QPT_RC, URDMA_QPT_UC, URDMA_QPT_RC, URDMA_QPT_RC };
	unsigned int took = 0;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int i = 0; i < 3; i++)
		srq_open(b, i, 4 + 2 * i, 6 + i);
	/* the last QP has a queue of its own */
	for (int k = 0; k < QPS; k++)
		if (k < QPS - 1)
			srq_qp(b, k, types[k], 2, &srqs[k % 3]);
		else
			qp_init(b, k, 2, 6, 6, 77);
	for (unsigned int round = 0; round < 60; round++) {
		unsigned int left[QPS] = { 0 }, budget[3];

		bench_settings(b, round % 3 ? 30 + rnd(b) % 70 : 100, rnd(b) % 30, 2 + rnd(b) % 20,
			       20 + rnd(b) % 200);
		for (int i = 0; i < 3; i++) {
			srq_receives(b, &srqs[i], rnd(b) % 48, 4096);
			budget[i] = posted(&srqs[i]);
		}
		for (int i = 0; i < 4; i++)
			post(b, &refs[QPS - 1], &(struct sge){ take(b, 4096, 64), 4096, LKEY }, 1);
		ring(b, &refs[QPS - 1]);
		bench_drain(b, 3000);
		/* packets of messages that are begun and not ended lie between those of others */
		for (unsigned int n = 0; n < 60; n++) {
			struct ref *r = &refs[rnd(b) % QPS];
			unsigned int k = r - refs;
			bool first = !left[k], last;

			if (first) {
				if (k < QPS - 1 && !ref_posted(r))
					continue;
				if (k == QPS - 1 && r->ci == r->pi)
					continue;
				left[k] = 1 + rnd(b) % 4;
			}
			last = !--left[k];
			fill(b, 512);
			send_packet(b, r,
				    first  ? (last ? 4 : 0)
				    : last ? 2
					   : 1,
				    r->epsn, payload, last ? 1 + rnd(b) % 512 : 512, rnd(b) % 2,
				    false);
			/* a WRITE with immediate of one that is not in a message */
			r = &refs[rnd(b) % (QPS - 1)];
			if (!left[r - refs] && ref_posted(r))
				send_write(b, r, rem_at(0x200 * (unsigned int)(r - refs)), RKEY,
					   rnd(b) % 513, true, 1);
		}
		/* what is begun goes on in the next round, or ends */
		for (unsigned int k = 0; k < QPS; k++)
			if (left[k])
				send_packet(b, &refs[k], 2, refs[k].epsn, payload, 100, true,
					    false);
		srq_settle(b);
		for (int i = 0; i < 3; i++) {
			took += budget[i] - posted(&srqs[i]);
			assert_int_equal(srq_query(b, &srqs[i]), srqs[i].ci);
		}
	}
	print_message("%u WQEs taken\n", took);
	assert_true(took > 1000);
	bench_free(b);
}

/* A message of UC that loses a packet leaves its WQE to the next one of its QP, and not to others.
 */
void test_srq_uc(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct ref_srq *q = srq_open(b, 0, 4, 6);
		struct ref *r = srq_qp(b, 0, URDMA_QPT_UC, 3, q);
		struct ref *other = srq_qp(b, 1, URDMA_QPT_RC, 3, q);

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 2 ? 100 : 50, 0, 4, 60);
		srq_receives(b, q, 8, 8192);
		bench_drain(b, 1000);
		fill(b, 4096);
		for (int i = 0; i < 5; i++) {
			/* FIRST, and the end is lost */
			send_packet(b, r, 0, r->epsn, payload, 1024, false, false);
			if (rnd(b) % 2)
				send_packet(b, r, 1, r->epsn, payload, 1024, false, false);
			if (rnd(b) % 2)
				send_packet(b, r, 2, r->epsn + 1, payload, 100, false, false);
			else
				r->epsn = r->epsn;
			if (i < 3)
				send_message(b, other, 1500, true, false, 1);
		}
		assert_int_equal(q->ci, 4);
		/* what is held serves an immediate as well */
		if (round % 3)
			send_message(b, r, 2000, false, false, 1);
		else
			send_write(b, r, rem_at(0), RKEY, 2000, true, 1);
		assert_int_equal(q->ci, 4);
		send_message(b, r, 64, false, false, 1);
		assert_int_equal(q->ci, 5);
		if (round % 4 == 0) {
			send_packet(b, r, 0, r->epsn, payload, 1024, false, false);
			bench_drain(b, 20000);
			srq_end_qp(b, r);
		}
		srq_settle(b);
		assert_int_equal(srq_query(b, q), q->ci);
		srq_close(b, q);
	}
	/* A key that is refused ends the QP if the WRITE has a WQE for its immediate, else not. */
	for (int k = 0; k < 3; k++) {
		struct ref_srq *q = srq_open(b, 0, 4, 6);
		struct ref *r = srq_qp(b, 0, URDMA_QPT_UC, 3, q);
		unsigned int cqes = 0;

		bench_settings(b, 100, 0, 4, 60);
		srq_receives(b, q, 8, 8192);
		bench_drain(b, 1000);
		/* the reference would have the message dropped: look here */
		r->active = false;
		send_write(b, r, rem_at(0), RKEY + 0x4000, k ? 3000 : 500, k < 2, 1);
		r->epsn += k ? 2 : 0;
		bench_drain(b, 20000);
		for (unsigned int i = 0; i < b->n_cqes[0]; i++) {
			assert_int_equal(b->cqes[0][i].w[0] >> 16 & 0xff, URDMA_WC_LOC_ACCESS_ERR);
			assert_int_equal(b->cqes[0][i].w[0] >> 32 & 0xffff, q->ring[0]);
			cqes++;
		}
		assert_int_equal(cqes, k < 2);
		assert_int_equal(b->n_errs[0], (k < 2) + 1 - 1);
		assert_int_equal(srq_query(b, q), k < 2);
		bench_clear_logs(b);
		srq_close(b, q);
	}
	bench_free(b);
}

/* A QP that ends in the midst of a message: its WQE, LAST_WQE once, and nothing of the others. */
void test_srq_flush(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct ref_srq *q = srq_open(b, 0, 5, 6);
		bool open = round % 2;

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 3 ? 100 : 40, 0, 4, 60);
		for (int k = 0; k < 3; k++)
			srq_qp(b, k, URDMA_QPT_RC, 3, q);
		srq_receives(b, q, 20, 4096);
		bench_drain(b, 1000);
		fill(b, 2048);
		for (int k = 0; k < 3; k++)
			send_packet(b, &refs[k], 0, refs[k].epsn, payload, 1024, true, false);
		if (!open)
			send_packet(b, &refs[0], 2, refs[0].epsn, payload, 77, true, false);
		/* the message of QP 0 is in placement, or has been there */
		if (round % 4 < 2)
			bench_drain(b, 20000);
		else
			bench_run(b, 40 + rnd(b) % 100);
		if (round % 4 < 2) {
			srq_end_qp(b, &refs[0]);
			/* more than once: a doorbell of a receive queue that it has not, ERR again
			 */
			bench_db(b, refs[0].cfg.qpn, 1);
			bench_ctl(b, false, QPC_ERR, refs[0].cfg.qpn, 0);
		} else {
			bench_drain(b, 20000);
			srq_end_qp(b, &refs[0]);
		}
		bench_drain(b, 20000);
		bench_ctl(b, false, QPC_ERR, refs[0].cfg.qpn, 0);
		for (int k = 1; k < 3; k++) {
			send_packet(b, &refs[k], 2, refs[k].epsn, payload, 1000, true, false);
			send_message(b, &refs[k], 10, true, true, 1);
		}
		srq_settle(b);
		assert_int_equal(srq_query(b, q), q->ci);
		/* nobody has asked for one, so none has been taken by a QP that is gone */
		fill(b, 64);
		send_message(b, &refs[0], 64, false, false, 1);
		srq_settle(b);
		/* the same QP in a new life */
		bench_ctl_wait(b, false, QPC_RESET, refs[0].cfg.qpn, 0, 200);
		srq_qp(b, 0, URDMA_QPT_RC, 3, q);
		send_message(b, &refs[0], 64, false, false, 1);
		srq_settle(b);
		assert_int_equal(srq_query(b, q), q->ci);
		srq_close(b, q);
	}
	bench_free(b);
}

/*
 * An error of placement, with messages of the QP behind it that have taken WQEs, and messages of
 * others: each WQE that was taken completes once, that of the error with its status, those behind
 * it with FLUSH_ERR.
 */
void test_srq_behind_error(void **state)
{
	static const char *const kinds[] = { "key", "length", "list" };
	struct bench *b = start();
	unsigned int behind = 0;

	(void)state;
	for (int round = 0; round < 90; round++) {
		unsigned int kind = round % 3, n = 3 + rnd(b) % 20, seen[32] = { 0 }, flushed = 0;
		unsigned int first = 0, good = 0, bad = 0;
		struct ref_srq *q = srq_open(b, 0, 5, 6);
		uint16_t at;

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 2 ? 100 : 50, 0, 4 + rnd(b) % 50, 60 + rnd(b) % 200);
		for (int k = 0; k < 2; k++)
			srq_qp(b, k, URDMA_QPT_RC, 3, q);
		at = srq_post(b, q,
			      &(struct sge){ take(b, 4096, 64), kind == 1 ? 600 : 4096,
					     kind == 0 ? LKEY + 0x7700 : LKEY },
			      kind == 2 ? 31 : 1);
		srq_receives(b, q, 31, 4096);
		bench_drain(b, 1000);
		fill(b, 2000);
		/* the reference knows no order of what is behind the error: look here */
		refs[0].active = refs[1].active = false;
		send_message(b, &refs[0], round % 4 ? 1000 : 2000, false, false, 1);
		refs[0].epsn += round % 4 ? 1 : 2;
		for (unsigned int i = 0; i < n; i++) {
			unsigned int k = rnd(b) % 2;
			bool write = rnd(b) % 3 == 0, two = rnd(b) % 2;

			if (write)
				send_write(b, &refs[k], rem_at(0x1000 * k), RKEY, two ? 1100 : 50,
					   true, 1);
			else
				send_message(b, &refs[k], two ? 1100 : 50, false, false, 1);
			refs[k].epsn += two ? 2 : 1;
			first += k;
		}
		/* the report comes to the responder as late as it likes */
		for (int i = 0; i < 3000 && !b->n_errs[0]; i++)
			bench_cycle(b);
		bench_run(b, rnd(b) % 200);
		if (b->n_errs[0] != 1)
			fail_msg("seed %u round %d (%s): %u reports", seed, round, kinds[kind],
				 b->n_errs[0]);
		bench_ctl(b, false, QPC_ERR, refs[0].cfg.qpn, 0);
		bench_drain(b, 100000);
		for (unsigned int i = 0; i < b->n_cqes[0]; i++) {
			const struct bench_cqe *c = &b->cqes[0][i];
			unsigned int wqe = c->w[0] >> 32 & 0xffff, status = c->w[0] >> 16 & 0xff;
			bool mine = (c->w[1] >> 32) == refs[0].cfg.qpn;

			assert_true(wqe < 32);
			if (seen[wqe]++)
				fail_msg("seed %u round %d: WQE %u completes twice", seed, round,
					 wqe);
			if (!mine)
				good += status == 0;
			else if (wqe == at)
				bad += status == (kind == 0   ? URDMA_WC_LOC_PROT_ERR
						  : kind == 1 ? URDMA_WC_LOC_LEN_ERR
							      : URDMA_WC_LOC_QP_OP_ERR);
			else
				flushed += status == URDMA_WC_FLUSH_ERR;
		}
		assert_int_equal(bad, 1);
		assert_int_equal(good, first);
		assert_int_equal(b->n_cqes[0], 1 + good + flushed);
		/* all that was taken */
		if (srq_query(b, q) != b->n_cqes[0])
			fail_msg("seed %u round %d (%s): %u WQEs taken, %u completed", seed, round,
				 kinds[kind], b->sro.sro_ci, b->n_cqes[0]);
		assert_int_equal(b->n_errs[0], 2);
		assert_int_equal(b->errs[0][1].event, URDMA_EV_LAST_WQE);
		assert_true(b->errs[0][1].only && b->errs[0][1].qpn == refs[0].cfg.qpn);
		behind += flushed;
		memcpy(b->shadow, b->host, HOST_SIZE);
		bench_clear_logs(b);
		srq_close(b, q);
	}
	print_message("%u WQEs behind an error\n", behind);
	assert_true(behind > 100);
	bench_free(b);
}

/* The QP ends at its message, which has no WQE: NAK of RC, event; the SRQ is dead, told once. */
static void expect_dead(struct bench *b, struct ref_srq *q, struct ref *r, unsigned int packets)
{
	bool rc = r->cfg.type == URDMA_QPT_RC;
	unsigned int nak = 0;

	bench_drain(b, 100000);
	for (unsigned int i = 0; i < b->n_acks; i++)
		nak += b->acks[i].syndrome == 0x63;
	assert_int_equal(nak, rc);
	assert_int_equal(b->n_cqes[0], 0);
	assert_int_equal(b->n_errs[0], 1);
	assert_int_equal(b->errs[0][0].event, URDMA_EV_QP_FATAL);
	assert_int_equal(b->errs[0][0].qpn, r->cfg.qpn);
	assert_false(b->errs[0][0].only);
	assert_int_equal(b->n_srq_evs, 1);
	assert_int_equal(b->srq_evs[0].event, URDMA_EV_SRQ_ERR);
	assert_int_equal(b->srq_evs[0].qpn, q->cfg.srqn);
	bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
	bench_drain(b, 10000);
	assert_int_equal(b->n_cqes[0], 0);
	assert_int_equal(b->n_errs[0], 2);
	assert_int_equal(b->errs[0][1].event, URDMA_EV_LAST_WQE);
	(void)packets;
}

/* A packet whose effect this test looks at itself. */
static void unseen(struct bench *b, struct ref *r, uint8_t op, size_t len)
{
	uint32_t psn = r->epsn;

	r->active = false;
	if (op >= 6)
		send_reth(b, r, op, psn, rem_at(0x100), RKEY, (uint32_t)len, payload, len, true);
	else
		send_packet(b, r, op, psn, payload, len, true, false);
	r->active = true;
	r->epsn = (psn + 1) & 0xffffff;
}

/*
 * The ring is wrong: an index beyond the array, a doorbell beyond the ring. A neighbour with
 * another SRQ notices nothing, and the dead SRQ gives nobody anything.
 */
void test_srq_index(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 36; round++) {
		struct ref_srq *q = srq_open(b, 0, 4, 6), *fine = srq_open(b, 1, 4, 6);
		bool uc = round % 3 == 2, write = round % 3 == 1, doorbell = round % 2;
		struct ref *r = srq_qp(b, 0, uc ? URDMA_QPT_UC : URDMA_QPT_RC, 3, q);
		struct ref *other = srq_qp(b, 1, URDMA_QPT_RC, 3, fine);
		struct ref *late = srq_qp(b, 2, URDMA_QPT_RC, 3, q);
		unsigned int flushed = 0;

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 4 < 2 ? 100 : 50, 0, 4, 60);
		srq_receives(b, fine, 8, 4096);
		fill(b, 4096);
		if (doorbell) {
			srq_receives(b, q, 16, 4096);
			bench_drain(b, 1000);
			bench_srq_db(b, q->cfg.srqn, 17);
			bench_drain(b, 1000);
			assert_int_equal(b->n_srq_evs, 1);
		} else {
			srq_receives(b, q, 3, 4096);
			srq_index(b, q, round % 4 ? 16 : 0xffff);
			srq_index(b, q, 0);
			srq_ring(b, q);
			bench_drain(b, 1000);
			/* the three before it are good */
			for (int i = 0; i < 3; i++)
				send_message(b, r, 100 + i, false, false, 1);
			srq_settle(b);
		}
		unseen(b, r, write ? 0x0b : 4, 500);
		unseen(b, r, 4, 500);
		send_message(b, other, 2000, true, false, 1);
		bench_drain(b, 100000);
		/* the neighbour's, for it is not the reference's business here; the second message
		 * may have taken the WQE behind the bad index before the SRQ was dead: it is
		 * flushed */
		for (unsigned int i = 0; i < b->n_cqes[0]; i++) {
			const struct bench_cqe *c = &b->cqes[0][i];

			if (c->w[1] >> 32 == other->cfg.qpn) {
				assert_int_equal(c->w[0] >> 16 & 0xff, URDMA_WC_SUCCESS);
				continue;
			}
			flushed++;
			assert_false(doorbell);
			assert_int_equal(c->w[0] >> 16 & 0xff, URDMA_WC_FLUSH_ERR);
			assert_int_equal(c->w[0] >> 32 & 0xffff, 0);
		}
		assert_in_range(flushed, 0, 1);
		assert_int_equal(b->n_cqes[0] - flushed, 1);
		b->n_cqes[0] = 0;
		expect_dead(b, q, r, 2);
		bench_clear_logs(b);
		/* who comes later */
		unseen(b, late, 4, 10);
		bench_drain(b, 10000);
		assert_int_equal(b->n_errs[0], 1);
		assert_int_equal(b->errs[0][0].event, URDMA_EV_QP_FATAL);
		assert_int_equal(b->n_srq_evs, 0);
		bench_clear_logs(b);
		for (int k = 0; k < 3; k++)
			ref_clear(&refs[k]);
		memcpy(b->shadow, b->host, HOST_SIZE);
		srq_close(b, q);
		srq_close(b, fine);
	}
	bench_free(b);
}

/* The ring cannot be read: no translation, no answer from memory. */
void test_srq_unread(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 24; round++) {
		struct ref_srq *q = srq_open(b, 0, 4, 6);
		struct ref *r = srq_qp(b, 0, round % 3 ? URDMA_QPT_RC : URDMA_QPT_UC, 3, q);

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, round % 4 < 2 ? 100 : 50, 0, 4, 60);
		fill(b, 4096);
		srq_receives(b, q, 10, 4096);
		bench_drain(b, 1000);
		if (round % 2) {
			b->fail_rd = 0;
		} else {
			/* the page table ends in front of the ring */
			struct rx_sro op = q->cfg;

			srq_close(b, q);
			op.addr = HOST_BUS + HOST_SIZE - 1024;
			bench_srq(b, &op);
			srq_ring(b, q);
			bench_drain(b, 1000);
		}
		unseen(b, r, 0, 1024);
		unseen(b, r, 2, 10);
		unseen(b, r, 4, 500);
		expect_dead(b, q, r, 3);
		b->fail_rd = -1;
		bench_clear_logs(b);
		ref_clear(r);
		memcpy(b->shadow, b->host, HOST_SIZE);
		srq_close(b, q);
	}
	bench_free(b);
}

/*
 * An SRQ that is gone while packets to its QPs come, and one with its number behind it: nothing of
 * the first one's ring is used, nor does a message go on in the second one.
 */
void test_srq_gone(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct ref_srq *q = srq_open(b, 0, 5, 6);
		struct ref *r = srq_qp(b, 0, URDMA_QPT_RC, 3, q);
		unsigned int n = 1 + rnd(b) % 8;
		uint32_t psn;

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, 100, 0, 4, 60);
		fill(b, 4096);
		srq_receives(b, q, 32, 4096);
		bench_drain(b, 1000);
		/* the line of indices is known here, and more of it than is used */
		for (unsigned int i = 0; i < n; i++)
			send_message(b, r, 100, false, false, 1);
		if (round % 2)
			send_packet(b, r, 0, r->epsn, payload, 1024, true, false);
		srq_settle(b);
		srq_close(b, q);
		psn = r->epsn;
		if (round % 2) {
			unseen(b, r, 2, 50);
			unseen(b, r, 4, 50);
			bench_drain(b, 10000);
			assert_int_equal(b->cnt[URDMA_CNT_RX_NO_QP], 2);
			assert_int_equal(b->n_cqes[0] + b->n_acks + b->n_errs[0], 0);
			r->epsn = psn;
		}
		bench_clear_logs(b);
		r->held = false;
		q = srq_open(b, 0, 5, 6);
		r = srq_qp(b, 0, URDMA_QPT_RC, 3, q);
		srq_receives(b, q, 20, 4096);
		bench_drain(b, 1000);
		for (int i = 0; i < 20; i++)
			send_message(b, r, 100 + i, false, false, 1);
		srq_settle(b);
		srq_close(b, q);
	}
	bench_free(b);
}

/* The limit, and more SRQs in turn than lines are kept. */
void test_srq_many(void **state)
{
	struct bench *b = start();
	struct rx_sro op = { .op = SRO_MODIFY, .srqn = SRQN, .limit = 5 };
	struct ref_srq *q = srq_open(b, 0, 5, 6);
	struct ref *r = srq_qp(b, 0, URDMA_QPT_RC, 3, q);

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	bench_settings(b, 100, 0, 4, 60);
	fill(b, 4096);
	srq_receives(b, q, 10, 4096);
	bench_drain(b, 1000);
	bench_srq(b, &op);
	for (int i = 0; i < 7; i++) {
		send_message(b, r, 2000, false, false, 1);
		bench_drain(b, 10000);
		assert_int_equal(b->n_srq_evs, i >= 5);
	}
	assert_int_equal(b->srq_evs[0].event, URDMA_EV_SRQ_LIMIT);
	srq_settle(b);
	srq_close(b, q);

	/* 40 SRQs over the same memory, each with one WQE in turn; all packets at once */
	for (int round = 0; round < 4; round++) {
		static struct ref_srq all[40];
		struct ref *qp[QPS];

		bench_settings(b, round % 2 ? 100 : 60, 0, 10, 300);
		for (int i = 0; i < 40; i++) {
			memset(&all[i], 0, sizeof(all[i]));
			all[i].cfg = (struct rx_sro){ .op = SRO_CREATE,
						      .srqn = 100 + i,
						      .pd = 7,
						      .addr = HOST_BUS + RING_OFF + 0x2000 * i,
						      .log_entries = 5,
						      .log_stride = 6 };
			bench_srq(b, &all[i].cfg);
			srq_receives(b, &all[i], 32, 128);
		}
		bench_drain(b, 20000);
		for (int i = 0; i < QPS; i++)
			qp[i] = srq_qp(b, i, URDMA_QPT_RC, 3, &all[i]);
		for (int i = 0; i < 40 * 20; i++) {
			struct ref *t = qp[i % QPS];
			struct ref_srq *next = &all[rnd(b) % 40];

			/* The QP is another one each time, as far as the NIC can see. */
			if (i >= QPS && i % 16 == 0) {
				srq_settle(b);
				for (int k = 0; k < QPS; k++)
					srq_attach(b, qp[k], &all[(i / 16 * QPS + k) % 40]);
			}
			(void)next;
			if (ref_posted(t))
				send_message(b, t, rnd(b) % 128, false, false, 1);
		}
		srq_settle(b);
		for (int i = 0; i < 40; i++) {
			assert_int_equal(srq_query(b, &all[i]), all[i].ci);
			srq_close(b, &all[i]);
		}
	}
	bench_free(b);
}

/* 64-byte messages back to back: as many a second as the wire brings. */
void test_srq_rates(void **state)
{
	static const struct {
		const char *name;
		int qps;
		size_t len;
		unsigned int spacing;
	} runs[] = {
		{ "64-byte SENDs, SRQ, 8 QPs", 8, 64, 3 },
		{ "64-byte SENDs, SRQ, one QP", 1, 64, 3 },
		{ "4096-byte SENDs, SRQ, 64 bytes a cycle", 2, 4096, 67 },
	};
	struct bench *b = start();

	(void)state;
	for (size_t k = 0; k < sizeof(runs) / sizeof(runs[0]); k++) {
		unsigned int n = runs[k].len > 64 ? 400 : 1000;
		struct ref_srq *q;
		double per;

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, 100, 0, 8, 100);
		memset(&srqs[0], 0, sizeof(srqs[0]));
		q = srq_open(b, 0, 9, 6);
		/* one after the other in memory: an array of 1024 */
		q->cfg.log_entries = 10;
		srq_close(b, q);
		bench_srq(b, &q->cfg);
		for (int i = 0; i < runs[k].qps; i++)
			srq_qp(b, i, URDMA_QPT_RC, 5, q);
		for (unsigned int i = 0; i < n; i++)
			srq_post(b, q, &(struct sge){ take(b, runs[k].len, 64), runs[k].len, LKEY },
				 1);
		srq_ring(b, q);
		bench_drain(b, 3000);
		bench_clear_logs(b);
		for (unsigned int i = 0; i < n; i++) {
			fill(b, runs[k].len);
			send_message(b, &refs[i % runs[k].qps], runs[k].len, false, false, 1);
			bench_run(b, runs[k].spacing);
		}
		bench_drain(b, 200000);
		per = (double)(b->last_wr - b->first_wr) / (n - 1);
		print_message("%-38s %6.2f cycles a packet\n", runs[k].name, per);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		assert_true(per < runs[k].spacing + 0.5);
		check(b);
		srq_close(b, q);
	}
	bench_free(b);
}
