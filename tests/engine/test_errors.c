// SPDX-License-Identifier: Apache-2.0
/*
 * What can happen to QPs at work: doorbells out of range, flushing, destruction of objects in use,
 * DMA that fails, a CQ that is full. Pair 0 meets it; pair 1 exchanges messages meanwhile, and its
 * data have to be intact. Each case checks the status of every CQE of pair 0 in order, the states
 * of its QPs, and the event. Afterwards the pair is reset and connected again, and has to work.
 * test_status.c covers messages that are wrong themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "rig.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* an MR besides the rig's */
#define MR_FRESH 4u

#define VICTIM (1u << 20) /* where pair 0's messages lie */
#define STEP   65536u
#define N_BG   6u
#define BG_LEN 9001u

/* What came out of the CQs, by side, pair and queue. */
#define MAX_CQES 1200u
struct outcome {
	struct urdma_eh_cqe cqe[2][2][2][MAX_CQES];
	unsigned int n[2][2][2];
	struct urdma_eh_event ev[2][16];
	unsigned int n_ev[2];
};

struct scene {
	struct rig rig;
	struct outcome out;
	uint32_t bg_seed;
};

static void collect(struct scene *s)
{
	struct urdma_eh_cqe cqe;

	for (unsigned int n = 0; n < 2; n++) {
		struct rig_side *side = &s->rig.side[n];

		for (unsigned int recv = 0; recv < 2; recv++) {
			struct urdma_eh_cq *cq = recv ? &side->recv_cq : &side->send_cq;

			while (urdma_eh_poll_cq(cq, &cqe, 1)) {
				unsigned int pair = cqe.qpn - RIG_QPN(0);
				unsigned int *count;

				assert_in_range(pair, 0, 1);
				assert_int_equal(cqe.recv, recv);
				count = &s->out.n[n][pair][recv];
				assert_true(*count < MAX_CQES);
				s->out.cqe[n][pair][recv][(*count)++] = cqe;
			}
		}
		s->out.n_ev[n] += urdma_eh_eq_poll(side->eh, 0, s->out.ev[n] + s->out.n_ev[n],
						   16 - s->out.n_ev[n], true);
	}
}

static void settle(struct scene *s)
{
	struct rig *rig = &s->rig;

	rig_check(rig,
		  urdma_cosim_run_while_busy(rig->cosim, urdma_cosim_now(rig->cosim) + 3000000),
		  "settle");
	collect(s);
	/* the doorbells of the collection */
	rig_check(rig,
		  urdma_cosim_run_while_busy(rig->cosim, urdma_cosim_now(rig->cosim) + 3000000),
		  "settle");
}

static void scene_start(struct scene *s)
{
	struct rig_config config;

	memset(s, 0, sizeof(*s));
	rig_defaults(&config);
	config.qps = 2;
	config.mtu = 3;
	rig_start(&s->rig, &config);
	collect(s);
	memset(&s->out, 0, sizeof(s->out));
}

static void scene_stop(struct scene *s)
{
	rig_stop(&s->rig);
}

/* ---- the pair that goes on ---- */

static void bg_post(struct scene *s)
{
	s->bg_seed += 100;
	for (unsigned int n = 0; n < 2; n++) {
		struct rig_side *tx = &s->rig.side[n], *rx = &s->rig.side[!n];

		for (unsigned int i = 0; i < N_BG; i++) {
			uint8_t *from = tx->buffer + (2u << 20) + i * 16384,
				*to = rx->buffer + (3u << 20) + i * 16384;
			struct urdma_eh_sge src = { (uintptr_t)from, BG_LEN, tx->mr.key };
			struct urdma_eh_sge dst = { (uintptr_t)to, BG_LEN, rx->mr.key };
			struct urdma_eh_send wr = {
				.opcode = URDMA_WR_SEND, .signaled = true, .sge = &src, .n_sge = 1
			};

			rig_fill(from, BG_LEN, s->bg_seed + 10 * n + i);
			memset(to, 0, BG_LEN);
			assert_int_equal(urdma_eh_post_recv(&rx->qp[1], &dst, 1), 0);
			assert_int_equal(urdma_eh_post_send(&tx->qp[1], &wr), 0);
		}
	}
}

static void bg_check(struct scene *s, const char *what)
{
	for (unsigned int n = 0; n < 2; n++) {
		for (unsigned int recv = 0; recv < 2; recv++) {
			if (s->out.n[n][1][recv] != N_BG)
				fail_msg("%s: the other pair has %u of %u CQEs", what,
					 s->out.n[n][1][recv], N_BG);
			for (unsigned int i = 0; i < N_BG; i++)
				if (s->out.cqe[n][1][recv][i].status)
					fail_msg("%s: the other pair failed: %u", what,
						 s->out.cqe[n][1][recv][i].status);
			s->out.n[n][1][recv] = 0;
		}
		for (unsigned int i = 0; i < N_BG; i++)
			if (rig_verify(s->rig.side[n].buffer + (3u << 20) + i * 16384, BG_LEN,
				       s->bg_seed + 10 * !n + i) != BG_LEN)
				fail_msg("%s: data of the other pair are wrong", what);
		assert_int_equal(rig_qp_state(&s->rig.side[n].qp[1]), URDMA_QPS_RTS);
	}
}

/* ---- the pair that fails ---- */

static struct urdma_eh_sge piece(struct scene *s, unsigned int n, unsigned int slot, uint32_t len)
{
	struct rig_side *side = &s->rig.side[n];

	return (struct urdma_eh_sge){ (uintptr_t)side->buffer + VICTIM + slot * STEP, len,
				      side->mr.key };
}

static uint64_t *sq_slot(struct urdma_eh_qp *qp, uint32_t index)
{
	return (uint64_t *)(qp->sq.base + ((size_t)(index & ((1u << qp->sq.log_entries) - 1))
					   << qp->sq.log_stride));
}

static uint64_t *rq_slot(struct urdma_eh_qp *qp, uint32_t index)
{
	return (uint64_t *)(qp->rq.base + ((size_t)(index & ((1u << qp->rq.log_entries) - 1))
					   << qp->rq.log_stride));
}

static void put_good_send(struct scene *s, unsigned int slot, uint32_t len)
{
	struct urdma_eh_sge sge = piece(s, 0, slot, len);
	struct urdma_eh_send wr = {
		.opcode = URDMA_WR_SEND, .signaled = true, .sge = &sge, .n_sge = 1
	};

	rig_fill(s->rig.side[0].buffer + VICTIM + slot * STEP, len, 7 + slot);
	assert_int_equal(urdma_eh_put_send(&s->rig.side[0].qp[0], &wr), 0);
}

static void put_good_recv(struct scene *s, unsigned int slot, uint32_t len)
{
	struct urdma_eh_sge sge = piece(s, 1, slot, len);

	memset(s->rig.side[1].buffer + VICTIM + slot * STEP, 0x5a, len);
	assert_int_equal(urdma_eh_put_recv(&s->rig.side[1].qp[0], &sge, 1), 0);
}

static void check_cqes(struct scene *s, const char *what, unsigned int n, bool recv,
		       const unsigned int *status, unsigned int count)
{
	const struct urdma_eh_cqe *cqe = s->out.cqe[n][0][recv];

	if (s->out.n[n][0][recv] != count)
		fail_msg("%s: side %u has %u %s CQEs instead of %u (first status %u)", what, n,
			 s->out.n[n][0][recv], recv ? "receive" : "send", count, cqe[0].status);
	for (unsigned int i = 0; i < count; i++) {
		if (cqe[i].status != status[i])
			fail_msg("%s: side %u, %s CQE %u: status %u instead of %u", what, n,
				 recv ? "receive" : "send", i, cqe[i].status, status[i]);
		if (cqe[i].wqe != i)
			fail_msg("%s: side %u, %s CQE %u is of WQE %u", what, n,
				 recv ? "receive" : "send", i, cqe[i].wqe);
	}
}

static void check_event(struct scene *s, const char *what, unsigned int n, unsigned int type)
{
	if (s->out.n_ev[n] != !!type ||
	    (type && (s->out.ev[n][0].type != type || s->out.ev[n][0].obj != RIG_QPN(0))))
		fail_msg("%s: side %u has %u events, first type %u object %u, instead of type %u",
			 what, n, s->out.n_ev[n], s->out.ev[n][0].type, s->out.ev[n][0].obj, type);
}

static void check_state(struct scene *s, const char *what, unsigned int n, unsigned int want)
{
	unsigned int state = rig_qp_state(&s->rig.side[n].qp[0]);

	if (state != want)
		fail_msg("%s: the QP of side %u is in state %u instead of %u", what, n, state,
			 want);
}

/* Reset and connected again, the pair works. */
static void revive(struct scene *s)
{
	settle(s);
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_to_reset(&s->rig.side[n].qp[0]), 0);
	settle(s);
	memset(&s->out, 0, sizeof(s->out));
	assert_int_equal(urdma_eh_connect(&s->rig.side[0].qp[0], &s->rig.side[1].qp[0], 3, false),
			 0);
	rig_message(&s->rig, 0, 0, VICTIM, 5000, 1);
	rig_message(&s->rig, 0, 1, VICTIM, 5000, 2);
	/* index 0 again for the next case */
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_to_reset(&s->rig.side[n].qp[0]), 0);
	assert_int_equal(urdma_eh_connect(&s->rig.side[0].qp[0], &s->rig.side[1].qp[0], 3, false),
			 0);
	collect(s);
	memset(&s->out, 0, sizeof(s->out));
}

/* ---- WQEs that fail ---- */

#define LEN 3000u

static void set_sge(uint64_t *sge, uint64_t addr, uint32_t len, uint32_t key)
{
	sge[0] = addr;
	sge[1] = URDMA_SET(URDMA_SGE1_LENGTH, len) | URDMA_SET(URDMA_SGE1_LKEY, key);
}

#define SEND_SGE(w) ((w) + URDMA_SQE_DATA_OFFSET / 8)
#define RECV_SGE(w) ((w) + URDMA_RQE_DATA_OFFSET / 8)

static void bad_send(struct scene *s, const char *what, unsigned int status)
{
	const unsigned int send[] = { 0, status, URDMA_WC_FLUSH_ERR, URDMA_WC_FLUSH_ERR };
	const unsigned int recv[] = { 0 };

	check_cqes(s, what, 0, false, send, 4);
	check_cqes(s, what, 1, true, recv, 1);
	check_state(s, what, 0, URDMA_QPS_ERR);
	check_state(s, what, 1, URDMA_QPS_RTS);
	check_event(s, what, 0, 0);
	check_event(s, what, 1, 0);
	if (rig_verify(s->rig.side[1].buffer + VICTIM, LEN, 7) != LEN)
		fail_msg("%s: the message before it is wrong", what);
}

static void bad_recv(struct scene *s, const char *what, unsigned int status, unsigned int remote)
{
	const unsigned int send[] = { 0, remote, URDMA_WC_FLUSH_ERR, URDMA_WC_FLUSH_ERR };
	const unsigned int recv[] = { 0, status, URDMA_WC_FLUSH_ERR, URDMA_WC_FLUSH_ERR };

	check_cqes(s, what, 1, true, recv, 4);
	check_cqes(s, what, 0, false, send, 4);
	check_state(s, what, 0, URDMA_QPS_ERR);
	check_state(s, what, 1, URDMA_QPS_ERR);
	check_event(s, what, 0, 0);
	check_event(s, what, 1, 0);
	if (rig_verify(s->rig.side[1].buffer + VICTIM, LEN, 7) != LEN)
		fail_msg("%s: the message before it is wrong", what);
	/* and nothing was written after it */
	for (unsigned int k = 2; k < 4; k++)
		for (unsigned int i = 0; i < LEN; i++)
			if (s->rig.side[1].buffer[VICTIM + k * STEP + i] != 0x5a)
				fail_msg("%s: a later message was written", what);
}

/* ---- doorbells out of range ---- */

static void test_doorbell_range(void **state)
{
	struct scene *s = test_malloc(sizeof(*s));

	(void)state;
	scene_start(s);
	for (unsigned int way = 0; way < 6; way++) {
		static const uint32_t index[] = { 257, 0x7fff, 0x8000 };
		bool rq = way >= 3;
		struct urdma_eh_qp *qp = &s->rig.side[0].qp[0];

		bg_post(s);
		urdma_eh_doorbell(s->rig.side[0].eh, RIG_DB_PAGE, rq ? URDMA_DB_RQ : URDMA_DB_SQ,
				  URDMA_SET(URDMA_DBW_OBJ, qp->qpn) |
					  URDMA_SET(URDMA_DBW_INDEX, index[way % 3]));
		settle(s);
		check_state(s, "doorbell too far", 0, URDMA_QPS_ERR);
		check_state(s, "doorbell too far", 1, URDMA_QPS_RTS);
		if (rq) {
			check_event(s, "doorbell too far", 0, URDMA_EV_QP_FATAL);
		} else {
			assert_true(s->out.n[0][0][0] >= 1);
			assert_int_equal(s->out.cqe[0][0][0][0].status, URDMA_WC_LOC_QP_OP_ERR);
			for (unsigned int i = 1; i < s->out.n[0][0][0]; i++)
				assert_int_equal(s->out.cqe[0][0][0][i].status, URDMA_WC_FLUSH_ERR);
		}
		bg_check(s, "doorbell too far");
		revive(s);
	}
	scene_stop(s);
	test_free(s);
}

/* ---- flush, reset, destruction ---- */

static void test_flush(void **state)
{
	struct scene *s = test_malloc(sizeof(*s));

	(void)state;
	scene_start(s);
	for (unsigned int delay = 0; delay < 4000; delay = delay * 2 + 150) {
		struct urdma_eh_qp *tx = &s->rig.side[0].qp[0], *rx = &s->rig.side[1].qp[0];
		unsigned int done[2];

		for (unsigned int k = 0; k < 10; k++) {
			put_good_recv(s, k, LEN);
			put_good_send(s, k, LEN);
		}
		urdma_eh_ring_rq(rx);
		urdma_eh_ring_sq(tx);
		bg_post(s);
		rig_check(
			&s->rig,
			urdma_cosim_run_until(s->rig.cosim, urdma_cosim_now(s->rig.cosim) + delay),
			"run");
		assert_int_equal(urdma_eh_to_err(tx), 0);
		assert_int_equal(urdma_eh_to_err(rx), 0);
		/* posted in ERR: flushed too, after the others */
		for (unsigned int k = 0; k < 5; k++) {
			put_good_recv(s, k, LEN);
			put_good_send(s, k, LEN);
		}
		urdma_eh_ring_rq(rx);
		urdma_eh_ring_sq(tx);
		settle(s);
		for (unsigned int q = 0; q < 2; q++) {
			const struct urdma_eh_cqe *cqe = s->out.cqe[q][0][q];

			assert_int_equal(s->out.n[q][0][q], 15);
			for (done[q] = 0; done[q] < 15 && !cqe[done[q]].status; done[q]++)
				;
			for (unsigned int i = 0; i < 15; i++) {
				assert_int_equal(cqe[i].wqe, i);
				assert_int_equal(cqe[i].status,
						 i < done[q] ? 0 : URDMA_WC_FLUSH_ERR);
			}
		}
		/* no message that did not arrive is reported as sent */
		assert_true(done[0] <= done[1]);
		for (unsigned int k = 5; k < done[1]; k++)
			assert_int_equal(
				rig_verify(s->rig.side[1].buffer + VICTIM + k * STEP, LEN, 7 + k),
				LEN);
		check_state(s, "flush", 0, URDMA_QPS_ERR);
		check_event(s, "flush", 0, 0);
		bg_check(s, "flush");
		revive(s);
	}
	scene_stop(s);
	test_free(s);
}

static void test_destroy_in_use(void **state)
{
	struct scene *s = test_malloc(sizeof(*s));

	(void)state;
	scene_start(s);
	for (unsigned int delay = 1; delay < 12000; delay = delay * 2 + 300) {
		uint64_t faults;

		for (unsigned int n = 0; n < 2; n++) {
			for (unsigned int k = 0; k < 6; k++) {
				struct urdma_eh_sge src = piece(s, n, k, 60000),
						    dst = piece(s, !n, k, 60000);
				struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
							    .signaled = true,
							    .sge = &src,
							    .n_sge = 1 };

				urdma_eh_put_recv(&s->rig.side[!n].qp[0], &dst, 1);
				urdma_eh_put_send(&s->rig.side[n].qp[0], &wr);
			}
		}
		for (unsigned int n = 0; n < 2; n++) {
			urdma_eh_ring_rq(&s->rig.side[n].qp[0]);
			urdma_eh_ring_sq(&s->rig.side[n].qp[0]);
		}
		bg_post(s);
		rig_check(
			&s->rig,
			urdma_cosim_run_until(s->rig.cosim, urdma_cosim_now(s->rig.cosim) + delay),
			"run");
		/*
		 * The rings are given back as soon as the command completes: the NIC may not touch
		 * them.
		 */
		faults = urdma_embedded_stats(s->rig.host)->faults;
		assert_int_equal(urdma_eh_destroy_qp(&s->rig.side[0].qp[0]), 0);
		/* and no CQE of the QP is written from now on */
		collect(s);
		memset(s->out.n[0][0], 0, sizeof(s->out.n[0][0]));
		settle(s);
		assert_int_equal(s->out.n[0][0][0], 0);
		assert_int_equal(s->out.n[0][0][1], 0);
		assert_int_equal(urdma_embedded_stats(s->rig.host)->faults - faults, 0);
		bg_check(s, "destroy under traffic");
		/* the same number again */
		struct urdma_eh_qp_attr attr = { .qpn = RIG_QPN(0),
						 .pd = RIG_PD,
						 .send_cq = &s->rig.side[0].send_cq,
						 .recv_cq = &s->rig.side[0].recv_cq,
						 .db_page = RIG_DB_PAGE,
						 .log_sq = 8,
						 .log_rq = 8,
						 .log_sq_stride = 6,
						 .log_rq_stride = 6 };

		assert_int_equal(
			urdma_eh_create_qp(s->rig.side[0].eh, &attr, &s->rig.side[0].qp[0]), 0);
		revive(s);
	}
	scene_stop(s);
	test_free(s);
}

/* A region is destroyed while a long message uses it; its memory is given back at once. */
static void test_mr_in_use(void **state)
{
	static const uint32_t len = 1u << 20;
	struct scene *s = test_malloc(sizeof(*s));
	unsigned int cut = 0;

	(void)state;
	scene_start(s);
	for (unsigned int way = 0; way < 6; way++) {
		unsigned int n = way % 2; /* whose region */
		struct rig_side *side = &s->rig.side[n];
		uint8_t *p = urdma_embedded_alloc(s->rig.host, len);
		struct urdma_eh_sge fresh, mine;
		struct urdma_eh_mr mr;
		uint64_t faults;

		assert_int_equal(urdma_eh_create_mr(side->eh, MR_FRESH, 9, RIG_PD,
						    URDMA_ACC_LOCAL_WRITE, p, len, 0x1000, &mr),
				 0);
		fresh = (struct urdma_eh_sge){ 0x1000, len, mr.key };
		mine = piece(s, !n, 0, len);
		struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
					    .signaled = true,
					    .sge = n ? &mine : &fresh,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_post_recv(&s->rig.side[1].qp[0], n ? &fresh : &mine, 1),
				 0);
		assert_int_equal(urdma_eh_post_send(&s->rig.side[0].qp[0], &wr), 0);
		bg_post(s);
		rig_check(&s->rig,
			  urdma_cosim_run_until(s->rig.cosim,
						urdma_cosim_now(s->rig.cosim) + 1000 + 3000 * way),
			  "run");
		assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
		urdma_embedded_free(s->rig.host, p);
		faults = urdma_embedded_stats(s->rig.host)->faults;
		settle(s);
		assert_int_equal(urdma_embedded_stats(s->rig.host)->faults - faults, 0);
		assert_int_equal(s->out.n[0][0][0], 1);
		if (s->out.cqe[0][0][0][0].status) {
			cut++;
			assert_int_equal(s->out.cqe[0][0][0][0].status,
					 n ? URDMA_WC_REM_OP_ERR : URDMA_WC_LOC_PROT_ERR);
			if (n)
				assert_int_equal(s->out.cqe[1][0][1][0].status,
						 URDMA_WC_LOC_PROT_ERR);
		}
		bg_check(s, "MR destroyed in use");
		revive(s);
	}
	assert_true(cut >= 4); /* otherwise the delays miss the message */
	scene_stop(s);
	test_free(s);
}

/* ---- DMA ---- */

struct trap {
	uint64_t first, last; /* bus addresses */
	enum urdma_pcie_fault kind;
	unsigned int skip, hits; /* so many reads pass first */
};

static enum urdma_pcie_fault spring(void *ctx, uint64_t addr, size_t len)
{
	struct trap *t = ctx;

	if (addr > t->last || addr + len <= t->first)
		return URDMA_PCIE_FAULT_NONE;
	if (t->skip) {
		t->skip--;
		return URDMA_PCIE_FAULT_NONE;
	}
	t->hits++;
	return t->kind;
}

static void arm(struct scene *s, unsigned int n, struct trap *t, const void *p, size_t len,
		enum urdma_pcie_fault kind)
{
	uint64_t bus = urdma_embedded_bus(s->rig.host, p);

	*t = (struct trap){ .first = bus, .last = bus + len - 1, .kind = kind };
	urdma_pcie_set_fault(urdma_cosim_pcie(s->rig.cosim, n), spring, t);
}

static void disarm(struct scene *s)
{
	for (unsigned int n = 0; n < 2; n++)
		urdma_pcie_set_fault(urdma_cosim_pcie(s->rig.cosim, n), NULL, NULL);
}

static void test_dma(void **state)
{
	static const enum urdma_pcie_fault kinds[] = { URDMA_PCIE_FAULT_UR, URDMA_PCIE_FAULT_CA,
						       URDMA_PCIE_FAULT_CA_LATE,
						       URDMA_PCIE_FAULT_POISON,
						       URDMA_PCIE_FAULT_TIMEOUT };
	struct scene *s = test_malloc(sizeof(*s));
	struct trap trap;
	char what[80];

	(void)state;
	scene_start(s);
	for (unsigned int k = 0; k < COUNT(kinds); k++) {
		for (unsigned int place = 0; place < 5; place++) {
			struct rig_side *tx = &s->rig.side[0], *rx = &s->rig.side[1];
			bool at_rx = place >= 3;
			uint8_t *p = urdma_embedded_alloc(s->rig.host, 8192);
			struct urdma_eh_mr mr;
			struct urdma_eh_sge sge;

			snprintf(what, sizeof(what), "DMA fault %u at %s", kinds[k],
				 place == 0   ? "payload"
				 : place == 1 ? "a send WQE"
				 : place == 2 ? "the page table of the sender"
				 : place == 3 ? "a receive WQE"
					      : "the page table of the receiver");
			assert_int_equal(urdma_eh_create_mr_map(s->rig.side[at_rx].eh, MR_FRESH, 9,
								RIG_PD, URDMA_ACC_LOCAL_WRITE, p,
								8192, 0x1000, 1, 12, &mr),
					 0);
			for (unsigned int i = 0; i < 4; i++) {
				put_good_recv(s, i, LEN);
				put_good_send(s, i, LEN);
			}
			sge = (struct urdma_eh_sge){ 0x1000, LEN, mr.key };
			switch (place) {
			case 0: /* second page of the payload */
				set_sge(SEND_SGE(sq_slot(&tx->qp[0], 1)), sge.addr + 3000, LEN,
					sge.lkey);
				arm(s, 0, &trap, p + 4096, 4096, kinds[k]);
				break;
			case 1:
				arm(s, 0, &trap, sq_slot(&tx->qp[0], 0), 4 * 64, kinds[k]);
				break;
			case 2:
				set_sge(SEND_SGE(sq_slot(&tx->qp[0], 1)), sge.addr, LEN, sge.lkey);
				arm(s, 0, &trap, mr.map.table[0], 16, kinds[k]);
				break;
			case 3:
				arm(s, 1, &trap, rq_slot(&rx->qp[0], 1), 64, kinds[k]);
				break;
			default:
				set_sge(RECV_SGE(rq_slot(&rx->qp[0], 1)), sge.addr, LEN, sge.lkey);
				arm(s, 1, &trap, mr.map.table[0], 16, kinds[k]);
			}
			bg_post(s);
			urdma_eh_ring_rq(&rx->qp[0]);
			urdma_eh_ring_sq(&tx->qp[0]);
			settle(s);
			if (!trap.hits)
				fail_msg("%s: nothing was read there", what);
			if (place == 1) {
				/* the whole batch was lost */
				const unsigned int send[] = { URDMA_WC_LOC_QP_OP_ERR,
							      URDMA_WC_FLUSH_ERR,
							      URDMA_WC_FLUSH_ERR,
							      URDMA_WC_FLUSH_ERR };

				check_cqes(s, what, 0, false, send, 4);
				check_state(s, what, 0, URDMA_QPS_ERR);
			} else if (!at_rx) {
				bad_send(s, what, URDMA_WC_LOC_QP_OP_ERR);
			} else {
				bad_recv(s, what, URDMA_WC_LOC_QP_OP_ERR, URDMA_WC_REM_OP_ERR);
			}
			bg_check(s, what);
			disarm(s);
			assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
			urdma_embedded_free(s->rig.host, p);
			revive(s);
		}
	}
	scene_stop(s);
	test_free(s);
}

/* ---- a CQ too small for its QPs ---- */

static void test_cq_overflow(void **state)
{
	struct scene *s = test_malloc(sizeof(*s));
	struct rig_side *side;
	struct urdma_eh_event ev[8];
	struct urdma_eh_qp_attr attr;
	struct urdma_eh_cq small;
	unsigned int n;

	(void)state;
	scene_start(s);
	side = &s->rig.side[0];
	assert_int_equal(urdma_eh_destroy_qp(&side->qp[0]), 0);
	assert_int_equal(
		urdma_eh_create_cq(side->eh, 7, 3, 1, RIG_DB_PAGE, URDMA_EH_RING_PAGED, &small), 0);
	attr = (struct urdma_eh_qp_attr){ .qpn = RIG_QPN(0),
					  .pd = RIG_PD,
					  .send_cq = &small,
					  .recv_cq = &side->recv_cq,
					  .db_page = RIG_DB_PAGE,
					  .log_sq = 8,
					  .log_rq = 8,
					  .log_sq_stride = 6,
					  .log_rq_stride = 6 };
	assert_int_equal(urdma_eh_create_qp(side->eh, &attr, &side->qp[0]), 0);
	assert_int_equal(urdma_eh_to_reset(&s->rig.side[1].qp[0]), 0);
	assert_int_equal(urdma_eh_connect(&side->qp[0], &s->rig.side[1].qp[0], 3, false), 0);
	settle(s);
	memset(&s->out, 0, sizeof(s->out));
	for (unsigned int k = 0; k < 12; k++) {
		put_good_recv(s, k, LEN);
		put_good_send(s, k, LEN);
	}
	bg_post(s);
	urdma_eh_ring_rq(&s->rig.side[1].qp[0]);
	urdma_eh_ring_sq(&side->qp[0]);
	settle(s);
	n = urdma_eh_eq_poll(side->eh, 1, ev, 8, true);
	assert_int_equal(n, 1);
	assert_int_equal(ev[0].type, URDMA_EV_CQ_ERR);
	assert_int_equal(ev[0].obj, 7);
	check_event(s, "CQ overflow", 0, URDMA_EV_QP_FATAL);
	check_state(s, "CQ overflow", 0, URDMA_QPS_ERR);
	bg_check(s, "CQ overflow");
	assert_int_equal(urdma_eh_destroy_qp(&side->qp[0]), 0);
	assert_int_equal(urdma_eh_destroy_cq(&small), 0);
	attr.send_cq = &side->send_cq;
	assert_int_equal(urdma_eh_create_qp(side->eh, &attr, &side->qp[0]), 0);
	revive(s);
	scene_stop(s);
	test_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doorbell_range),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_destroy_in_use),
		cmocka_unit_test(test_mr_in_use),
		cmocka_unit_test(test_dma),
		cmocka_unit_test(test_cq_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
