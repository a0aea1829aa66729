// SPDX-License-Identifier: Apache-2.0
/*
 * The reliable connection without loss: every opcode at every size around a boundary and with each
 * path MTU, lists of pieces, both directions at once; operands of atomics; invalidation, fast
 * registration, memory windows and zero-based addresses, each with allowed and forbidden accesses;
 * fences; limits of outstanding READs and atomics; draining. All bytes are compared, also those
 * around the data. A failure says which message went wrong; there is no other input.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "judge.h"
#include "trace.h"
#include "work.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LIMIT	 4000000u

#define FAST   10u /* indices of MRs */
#define WINDOW 20u

static struct rig rig;
static bool running;

static void start(unsigned int qps, const struct urdma_eh_conn *conn)
{
	struct rig_config config;

	if (running)
		rig_abandon(&rig); /* a test has failed */
	rig_defaults(&config);
	config.qps = qps;
	config.log_stride = 9;
	config.buffer = 8u << 20;
	config.memory.memory = 96u << 20;
	config.priv = true;
	if (conn)
		config.conn = *conn;
	rig_start(&rig, &config);
	running = true;
}

static void stop(void)
{
	rig_stop(&rig);
	running = false;
}

static void reconnect(unsigned int pair, unsigned int mtu)
{
	struct urdma_eh_conn conn = rig.config.conn;

	conn.mtu = mtu;
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_to_reset(&rig.side[n].qp[pair]), 0);
	assert_int_equal(
		urdma_eh_connect_as(&rig.side[0].qp[pair], &rig.side[1].qp[pair], &conn, mtu % 2),
		0);
}

static void settle(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
}

/* ---- sizes --------------------------------------------------------------------------------- */

/* Messages of each size, both ways, all posted at once. */
static void batch(unsigned int opcode, unsigned int mtu, const uint32_t *len, size_t n)
{
	struct work *w = test_calloc(2 * n, sizeof(*w));
	size_t at = 0;
	char what[64];

	for (size_t i = 0; i < 2 * n; i++) {
		w[i] = (struct work){ .opcode = opcode,
				      .from = i % 2,
				      .at = at,
				      .len = len[i / 2],
				      .seed = (uint32_t)(mtu * 1000 + i),
				      .pieces =
					      1 + (unsigned int)(i * 5 % WORK_SGES) * (i % 3 != 0),
				      .odd = (unsigned int)(i * 11 % 67),
				      .solicited = i % 5 == 0,
				      .unsignaled = i % 4 == 1 && i + 2 < 2 * n };
		at += work_slot(w[i].len);
	}
	snprintf(what, sizeof(what), "%s, MTU %u", work_name(opcode), 128u << mtu);
	work_run(&rig, w, 2 * n, LIMIT, what);
	test_free(w);
}

static void sizes(void **state)
{
	unsigned int opcode = *(const unsigned int *)*state;

	start(1, NULL);
	for (unsigned int mtu = 1; mtu <= 5; mtu++) {
		const uint32_t m = 128u << mtu, big[] = { (1u << 20) - 1, 1u << 20 };
		const uint32_t small[] = { 0,	      1,      2,	 3,	4,    5,     31,
					   32,	      33,     63,	 64,	65,   127,   128,
					   129,	      m - 65, m - 64,	 m - 1, m,    m + 1, m + 64,
					   2 * m - 1, 2 * m,  2 * m + 1, 3 * m, 4095, 4096,  4097,
					   65535,     65536,  65537 };

		reconnect(0, mtu);
		batch(opcode, mtu, small, COUNT(small));
		batch(opcode, mtu, &big[mtu % 2], 1);
	}
	stop();
}

/* ---- atomics ------------------------------------------------------------------------------- */

static void atomics(void **state)
{
	struct work *w = test_calloc(100, sizeof(*w));

	(void)state;
	start(1, NULL);
	for (unsigned int i = 0; i < 100; i++)
		w[i] = (struct work){ .opcode = i / 2 % 2 ? URDMA_WR_ATOMIC_CS : URDMA_WR_ATOMIC_FA,
				      .from = i % 2,
				      .at = i * work_slot(8),
				      .seed = i / 3,
				      .odd = i % 64 };
	work_run(&rig, w, 100, LIMIT, "atomics");
	test_free(w);
	stop();
}

/* Many QPs add to one number at the same time: no addition is lost, and each gets another old
 * value. */
static void counter(void **state)
{
	enum { PAIRS = 16, EACH = 20 };
	struct rig_side *side = NULL;
	struct urdma_eh_cqe cqe;
	uint64_t *total, *seen;
	uint8_t *once;

	(void)state;
	start(PAIRS, NULL);
	side = &rig.side[0];
	total = (uint64_t *)(rig.side[1].buffer + 4096);
	seen = (uint64_t *)side->buffer;
	*total = 0;
	for (unsigned int i = 0; i < PAIRS * EACH; i++) {
		struct urdma_eh_sge sge = { (uintptr_t)&seen[i], 8, side->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_ATOMIC_FA,
					    .signaled = true,
					    .raddr = (uintptr_t)total,
					    .rkey = rig.side[1].mr.key,
					    .swap_add = 1,
					    .sge = &sge,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_put_send(&side->qp[i % PAIRS], &wr), 0);
	}
	for (unsigned int i = 0; i < PAIRS; i++)
		urdma_eh_ring_sq(&side->qp[i]);
	for (unsigned int i = 0; i < PAIRS * EACH; i++) {
		rig_check(&rig, urdma_eh_next_cqe(&side->send_cq, &cqe, LIMIT), "atomic");
		assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
	}
	assert_int_equal(*total, PAIRS * EACH);
	once = test_calloc(PAIRS * EACH, 1);
	for (unsigned int i = 0; i < PAIRS * EACH; i++) {
		assert_true(seen[i] < PAIRS * EACH);
		assert_false(once[seen[i]]);
		once[seen[i]] = 1;
	}
	test_free(once);
	stop();
}

/* ---- one WR and its CQE -------------------------------------------------------------------- */

static unsigned int send_status(unsigned int n, unsigned int pair)
{
	struct urdma_eh_cqe cqe;

	rig_check(&rig, urdma_eh_next_cqe(&rig.side[n].send_cq, &cqe, LIMIT), "send CQE");
	assert_int_equal(cqe.qpn, RIG_QPN(pair));
	return cqe.status;
}

/*
 * WRITEs or READs len bytes between side 0's region and an address of side 1. Returns the status.
 */
static unsigned int access_status(unsigned int opcode, uint64_t raddr, uint32_t rkey, uint32_t len)
{
	struct rig_side *side = &rig.side[0];
	struct urdma_eh_sge sge = { (uintptr_t)side->buffer, len, side->mr.key };
	struct urdma_eh_send wr = { .opcode = opcode,
				    .signaled = true,
				    .raddr = raddr,
				    .rkey = rkey,
				    .swap_add = 1,
				    .sge = &sge,
				    .n_sge = 1 };

	assert_int_equal(urdma_eh_post_send(&side->qp[0], &wr), 0);
	return send_status(0, 0);
}

/* The operation is refused; the QPs are connected again. */
static void refused(unsigned int opcode, uint64_t raddr, uint32_t rkey, uint32_t len,
		    const char *what)
{
	unsigned int status = access_status(opcode, raddr, rkey, len);

	if (status != URDMA_WC_REM_ACCESS_ERR)
		fail_msg("%s: status %u", what, status);
	settle();
	if (rig_qp_state(&rig.side[0].qp[0]) != URDMA_QPS_ERR ||
	    rig_qp_state(&rig.side[1].qp[0]) != URDMA_QPS_ERR)
		fail_msg("%s: a QP is not in ERR", what);
	reconnect(0, 3);
}

static void granted(unsigned int opcode, uint64_t raddr, uint32_t rkey, uint32_t len,
		    const char *what)
{
	unsigned int status = access_status(opcode, raddr, rkey, len);

	if (status)
		fail_msg("%s: status %u", what, status);
}

/* ---- fast registration --------------------------------------------------------------------- */

#define ALL_ACCESS                                                                \
	(URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE | URDMA_ACC_REMOTE_READ | \
	 URDMA_ACC_REMOTE_ATOMIC | URDMA_ACC_FLUSH_GLOBAL)

static void reg(struct urdma_eh_mr *mr, uint8_t variant, unsigned int access, void *p, size_t len,
		uint64_t va, int levels)
{
	struct urdma_eh_qp *qp = &rig.side[1].qp[0];

	assert_int_equal(urdma_eh_put_reg_mr(qp, mr, variant, access, p, len, va, levels, 12, true),
			 0);
	urdma_eh_ring_sq(qp);
	assert_int_equal(send_status(1, 0), URDMA_WC_SUCCESS);
}

static void local_inv(uint32_t key, unsigned int want)
{
	struct urdma_eh_qp *qp = &rig.side[1].qp[0];

	assert_int_equal(urdma_eh_put_local_inv(qp, key, true), 0);
	urdma_eh_ring_sq(qp);
	assert_int_equal(send_status(1, 0), want);
}

static void fast_registration(void **state)
{
	const uint32_t len = 3 * 4096 + 100;
	struct urdma_eh_mr mr;
	uint8_t *p;

	(void)state;
	start(1, NULL);
	p = rig.side[1].buffer + 0x10000;
	assert_int_equal(
		urdma_eh_create_mr_kind(rig.side[1].eh, FAST, 1, RIG_PD, URDMA_MRK_FAST, &mr), 0);
	refused(URDMA_WR_WRITE, 0x5000, mr.key, 8, "a region before its registration");
	for (unsigned int round = 0; round < 4; round++) {
		uint64_t va = 0x123450000ull + (uintptr_t)p % 4096;
		uint32_t old = mr.key;

		reg(&mr, (uint8_t)(2 + round), ALL_ACCESS, p, len, va, 1 + round % 2);
		rig_fill(rig.side[0].buffer, len, round);
		granted(URDMA_WR_WRITE, va, mr.key, len, "WRITE to a fast region");
		assert_int_equal(rig_verify(p, len, round), len);
		granted(URDMA_WR_READ, va + 1, mr.key, len - 1, "READ of a fast region");
		granted(URDMA_WR_ATOMIC_FA, va + 8, mr.key, 8, "ATOMIC on a fast region");
		refused(URDMA_WR_WRITE, va, old, 8, "the key it had before");
		refused(URDMA_WR_WRITE, va + len - 7, mr.key, 8, "one byte behind");
		refused(URDMA_WR_WRITE, va - 1, mr.key, 8, "one byte before");
		local_inv(mr.key, URDMA_WC_SUCCESS);
		refused(URDMA_WR_READ, va, mr.key, 8, "an invalidated region");
	}
	/* rights */
	reg(&mr, 9, URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE, p, len, 0x1000, 1);
	granted(URDMA_WR_WRITE, 0x1000, mr.key, 64, "WRITE with the right to it");
	refused(URDMA_WR_READ, 0x1000, mr.key, 64, "READ without the right to it");
	refused(URDMA_WR_ATOMIC_FA, 0x1000, mr.key, 8, "ATOMIC without the right to it");
	local_inv(mr.key, URDMA_WC_SUCCESS);
	reg(&mr, 10, URDMA_ACC_REMOTE_READ, p, len, 0x1000, 1);
	granted(URDMA_WR_READ, 0x1000, mr.key, 64, "READ with the right to it");
	refused(URDMA_WR_WRITE, 0x1000, mr.key, 64, "WRITE without the right to it");
	/* registered already; a key of another region; a wrong key to invalidate */
	assert_int_equal(urdma_eh_put_reg_mr(&rig.side[1].qp[0], &mr, 11, ALL_ACCESS, p, len,
					     0x1000, 1, 12, true),
			 0);
	urdma_eh_ring_sq(&rig.side[1].qp[0]);
	assert_int_equal(send_status(1, 0), URDMA_WC_MW_BIND_ERR);
	settle();
	assert_int_equal(rig_qp_state(&rig.side[1].qp[0]), URDMA_QPS_ERR);
	reconnect(0, 3);
	local_inv(rig.side[1].mr.key, URDMA_WC_MW_BIND_ERR); /* not a fast-registration region */
	reconnect(0, 3);
	local_inv(FAST << 8 | 0xee, URDMA_WC_MW_BIND_ERR);
	reconnect(0, 3);
	/* after a WQE that fails nothing is done, not even WQEs that were posted with it */
	local_inv(FAST << 8 | 10, URDMA_WC_SUCCESS);
	assert_int_equal(urdma_eh_put_local_inv(&rig.side[1].qp[0], FAST << 8 | 0xee, true), 0);
	assert_int_equal(urdma_eh_put_reg_mr(&rig.side[1].qp[0], &mr, 12, ALL_ACCESS, p, len,
					     0x1000, 1, 12, true),
			 0);
	urdma_eh_ring_sq(&rig.side[1].qp[0]);
	assert_int_equal(send_status(1, 0), URDMA_WC_MW_BIND_ERR);
	assert_int_equal(send_status(1, 0), URDMA_WC_FLUSH_ERR);
	settle();
	reconnect(0, 3);
	refused(URDMA_WR_WRITE, 0x1000, mr.key, 8, "a region whose registration was flushed");
	assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	stop();
}

static void send_with_invalidate(void **state)
{
	struct urdma_eh_mr mr;
	uint8_t *p;

	(void)state;
	start(1, NULL);
	p = rig.side[1].buffer + (1u << 20);
	assert_int_equal(
		urdma_eh_create_mr_kind(rig.side[1].eh, FAST, 1, RIG_PD, URDMA_MRK_FAST, &mr), 0);
	for (unsigned int i = 0; i < 12; i++) {
		struct work w = { .opcode = URDMA_WR_SEND_INV,
				  .len = i % 4 == 3 ? 0 : i * 700,
				  .pieces = 1 + i % 3,
				  .solicited = i % 2,
				  .seed = i };

		reg(&mr, (uint8_t)i, ALL_ACCESS, p, 4096, 0x1000, 1);
		granted(URDMA_WR_WRITE, 0x1000, mr.key, 4096, "before SEND_INV");
		w.inv = mr.key;
		work_run(&rig, &w, 1, LIMIT, "SEND_INV");
		if (i % 4 == 0)
			refused(URDMA_WR_WRITE, 0x1000, mr.key, 8, "after SEND_INV");
	}
	assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	stop();
}

/* Empties the CQs of a pair that has failed, and connects it again. */
static void revive_pair(unsigned int pair)
{
	struct urdma_eh_cqe cqe;

	settle();
	for (unsigned int n = 0; n < 2; n++) {
		while (urdma_eh_poll_cq(&rig.side[n].send_cq, &cqe, 1))
			assert_int_equal(cqe.qpn, RIG_QPN(pair));
		while (urdma_eh_poll_cq(&rig.side[n].recv_cq, &cqe, 1))
			assert_int_equal(cqe.qpn, RIG_QPN(pair));
	}
	reconnect(pair, 3);
}

/* ---- SENDs with invalidate at line rate -------------------------------------------------------
 */

/* Pair 0 WRITEs through the key of region INTRUDED, which belongs to another pair. */
enum { ANSWERS = 120, ANSWER_LEN = 4096, ANSWER_QPS = 3, INTRUDED = 60 };

static uint8_t *answer_data(unsigned int side, unsigned int i)
{
	return rig.side[side].buffer + (1u << 20) + (size_t)i * ANSWER_LEN;
}

/* Makes the regions of side 1, posts the receives for their answers, then the data and the answers
 * of side 0. */
static void post_answers(struct urdma_eh_mr *mr, unsigned int mtu)
{
	struct rig_side *target = &rig.side[0], *host = &rig.side[1];

	for (unsigned int i = 0; i < ANSWERS; i++) {
		struct urdma_eh_sge recv = { (uintptr_t)host->buffer, 64, host->mr.key };

		reg(&mr[i], (uint8_t)mtu, ALL_ACCESS, answer_data(1, i), ANSWER_LEN, 0, 1);
		assert_int_equal(urdma_eh_post_recv(&host->qp[1 + i % ANSWER_QPS], &recv, 1), 0);
	}
	for (unsigned int i = 0; i < ANSWERS; i++) {
		struct urdma_eh_qp *qp = &target->qp[1 + i % ANSWER_QPS];
		struct urdma_eh_sge sge = { (uintptr_t)answer_data(0, i), ANSWER_LEN,
					    target->mr.key };
		struct urdma_eh_send wr = {
			.opcode = URDMA_WR_WRITE, .rkey = mr[i].key, .sge = &sge, .n_sge = 1
		};

		rig_fill(answer_data(0, i), ANSWER_LEN, 100 * mtu + i);
		assert_int_equal(urdma_eh_put_send(qp, &wr), 0);
		sge.length = 16;
		wr.opcode = URDMA_WR_SEND_INV;
		wr.key = mr[i].key;
		assert_int_equal(urdma_eh_put_send(qp, &wr), 0);
	}
	for (unsigned int q = 0; q < ANSWER_QPS; q++)
		urdma_eh_ring_sq(&target->qp[1 + q]);
}

/* From before the SEND that invalidates the key until after it. */
static void post_intruder(const struct urdma_eh_mr *mr)
{
	struct rig_side *side = &rig.side[0];
	struct urdma_eh_sge sge = { (uintptr_t)side->buffer, 1024, side->mr.key };
	struct urdma_eh_send wr = {
		.opcode = URDMA_WR_WRITE, .rkey = mr->key, .sge = &sge, .n_sge = 1
	};

	memset(side->buffer, 0x11, 1024);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(urdma_eh_put_send(&side->qp[0], &wr), 0);
	urdma_eh_ring_sq(&side->qp[0]);
}

/*
 * No packet is dropped after SENDs with invalidate. From its CQE on, a region keeps what the host
 * writes there, and a later WRITE of another QP is refused.
 */
static void invalidated_at_line_rate(void **state)
{
	struct urdma_eh_mr mr[ANSWERS];
	struct rig_side *host = &rig.side[1];
	struct urdma_eh_cqe cqe;

	(void)state;
	start(1 + ANSWER_QPS, NULL);
	for (unsigned int i = 0; i < ANSWERS; i++)
		assert_int_equal(urdma_eh_create_mr_kind(host->eh, FAST + i, 1, RIG_PD,
							 URDMA_MRK_FAST, &mr[i]),
				 0);
	for (unsigned int mtu = 3; mtu <= 5; mtu += 2) {
		for (unsigned int q = 0; q <= ANSWER_QPS; q++)
			reconnect(q, mtu);
		post_answers(mr, mtu);
		post_intruder(&mr[INTRUDED]);
		for (unsigned int n = 0; n < ANSWERS; n++) {
			unsigned int i;

			rig_check(&rig, urdma_eh_next_cqe(&host->recv_cq, &cqe, LIMIT), "answer");
			i = (cqe.imm >> 8) - FAST;
			assert_true(!cqe.status && cqe.has_inv && i < ANSWERS);
			assert_int_equal(cqe.imm, mr[i].key);
			if (i != INTRUDED)
				assert_int_equal(
					rig_verify(answer_data(1, i), ANSWER_LEN, 100 * mtu + i),
					ANSWER_LEN);
			memset(answer_data(1, i), 0x22, ANSWER_LEN);
		}
		settle();
		for (size_t k = 0; k < (size_t)ANSWERS * ANSWER_LEN; k++)
			if (answer_data(1, 0)[k] != 0x22)
				fail_msg("MTU %u: byte %zu was written after its CQE", 128u << mtu,
					 k);
		assert_int_equal(send_status(0, 0), URDMA_WC_REM_ACCESS_ERR);
		assert_int_equal(urdma_eh_counter(host->eh, URDMA_CNT_RX_DROP_FULL), 0);
		assert_int_equal(urdma_eh_counter(rig.side[0].eh, URDMA_CNT_TX_RETRANS), 0);
		revive_pair(0);
	}
	for (unsigned int i = 0; i < ANSWERS; i++)
		assert_int_equal(urdma_eh_destroy_mr(&mr[i]), 0);
	stop();
}

/* ---- memory windows ------------------------------------------------------------------------ */

static void bind(struct urdma_eh_mr *mw, uint8_t variant, unsigned int access,
		 const struct urdma_eh_mr *region, uint64_t va, size_t len, unsigned int want)
{
	struct urdma_eh_qp *qp = &rig.side[1].qp[0];

	assert_int_equal(urdma_eh_put_bind_mw(qp, mw, variant, access, region, va, len, true), 0);
	urdma_eh_ring_sq(qp);
	assert_int_equal(send_status(1, 0), want);
}

static void windows(void **state)
{
	struct urdma_eh_mr region, mw;
	uint64_t va;
	uint8_t *p;

	(void)state;
	start(2, NULL);
	p = rig.side[1].buffer + (1u << 20);
	va = 0x7000000;
	assert_int_equal(urdma_eh_create_mr(rig.side[1].eh, FAST, 7, RIG_PD,
					    ALL_ACCESS | URDMA_ACC_MW_BIND, p, 65536, va, &region),
			 0);
	assert_int_equal(
		urdma_eh_create_mr_kind(rig.side[1].eh, WINDOW, 1, RIG_PD, URDMA_MRK_WINDOW, &mw),
		0);
	refused(URDMA_WR_WRITE, va, mw.key, 8, "a window before it is bound");
	bind(&mw, 2, URDMA_ACC_REMOTE_WRITE, &region, va + 4000, 5000, URDMA_WC_SUCCESS);
	rig_fill(rig.side[0].buffer, 5000, 3);
	granted(URDMA_WR_WRITE, va + 4000, mw.key, 5000, "WRITE through a window");
	assert_int_equal(rig_verify(p + 4000, 5000, 3), 5000);
	refused(URDMA_WR_WRITE, va + 3999, mw.key, 1, "one byte before the window");
	/* this is another QP with the same number: the window ended with the QP that bound it */
	refused(URDMA_WR_WRITE, va + 4000, mw.key, 8, "a window of the QP before its RESET");
	bind(&mw, 3, URDMA_ACC_REMOTE_WRITE, &region, va + 4000, 5000, URDMA_WC_SUCCESS);
	/* bound already */
	bind(&mw, 4, URDMA_ACC_REMOTE_WRITE, &region, va, 5000, URDMA_WC_MW_BIND_ERR);
	reconnect(0, 3);
	bind(&mw, 5, URDMA_ACC_REMOTE_WRITE, &region, va + 4000, 5000, URDMA_WC_SUCCESS);
	refused(URDMA_WR_WRITE, va + 9000, mw.key, 1, "one byte behind the window");
	bind(&mw, 6, URDMA_ACC_REMOTE_WRITE, &region, va + 4000, 5000, URDMA_WC_SUCCESS);
	refused(URDMA_WR_READ, va + 4000, mw.key, 8, "READ through a window for WRITE");
	bind(&mw, 7, URDMA_ACC_REMOTE_WRITE, &region, va + 4000, 5000, URDMA_WC_SUCCESS);
	/* another QP may not use it */
	{
		struct rig_side *side = &rig.side[0];
		struct urdma_eh_sge sge = { (uintptr_t)side->buffer, 8, side->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
					    .signaled = true,
					    .raddr = va + 4000,
					    .rkey = mw.key,
					    .sge = &sge,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_post_send(&side->qp[1], &wr), 0);
		assert_int_equal(send_status(0, 1), URDMA_WC_REM_ACCESS_ERR);
		settle();
		reconnect(1, 3);
	}
	granted(URDMA_WR_WRITE, va + 4000, mw.key, 8, "its own QP, behind another's RESET");
	local_inv(mw.key, URDMA_WC_SUCCESS);
	refused(URDMA_WR_WRITE, va + 4000, mw.key, 8, "an invalidated window");
	/* errors: no such region, no right to bind, one byte beyond the region, a right that the
	 * region does not have */
	bind(&mw, 4, URDMA_ACC_REMOTE_READ, &rig.side[1].mr, (uintptr_t)p, 10,
	     URDMA_WC_MW_BIND_ERR);
	reconnect(0, 3);
	bind(&mw, 4, URDMA_ACC_REMOTE_READ, &region, va + 65530, 7, URDMA_WC_MW_BIND_ERR);
	reconnect(0, 3);
	bind(&mw, 4, URDMA_ACC_REMOTE_READ, &region, va - 1, 7, URDMA_WC_MW_BIND_ERR);
	reconnect(0, 3);
	/* a region with bound windows cannot be destroyed */
	bind(&mw, 8, URDMA_ACC_REMOTE_READ, &region, va, 65536, URDMA_WC_SUCCESS);
	granted(URDMA_WR_READ, va, mw.key, 65536, "READ through a window");
	assert_int_equal(urdma_eh_destroy_mr(&region), URDMA_CS_BUSY);
	local_inv(mw.key, URDMA_WC_SUCCESS);
	/* to nothing */
	bind(&mw, 5, URDMA_ACC_REMOTE_READ, &region, va, 0, URDMA_WC_MW_BIND_ERR);
	reconnect(0, 3);
	refused(URDMA_WR_READ, va, WINDOW << 8 | 5, 1, "a window that was not bound");
	/* RESET and DESTROY of the QP free the region, too */
	bind(&mw, 9, URDMA_ACC_REMOTE_READ, &region, va, 65536, URDMA_WC_SUCCESS);
	assert_int_equal(urdma_eh_to_reset(&rig.side[1].qp[0]), 0);
	assert_int_equal(urdma_eh_destroy_mr(&region), 0);
	assert_int_equal(urdma_eh_create_mr(rig.side[1].eh, FAST, 7, RIG_PD,
					    ALL_ACCESS | URDMA_ACC_MW_BIND, p, 65536, va, &region),
			 0);
	reconnect(0, 3);
	bind(&mw, 10, URDMA_ACC_REMOTE_READ, &region, va, 65536, URDMA_WC_SUCCESS);
	assert_int_equal(urdma_eh_destroy_mr(&region), URDMA_CS_BUSY);
	rig_renew_qp(&rig, 1, 0);
	reconnect(0, 3);
	refused(URDMA_WR_READ, va, mw.key, 8, "a window of the QP before its DESTROY");
	assert_int_equal(urdma_eh_destroy_mr(&mw), 0);
	assert_int_equal(urdma_eh_destroy_mr(&region), 0);
	stop();
}

/*
 * A window of type 1: any QP of its PD may use it, it outlives the QP that bound it, and it can be
 * bound again while it is bound. WRITEs through the old key may be under way then: once the new
 * binding is reported, none of them changes memory any more.
 */
static void windows_of_type_1(void **state)
{
	struct urdma_eh_mr region, mw;
	const uint64_t va = 0x7000000;
	struct rig_side *owner;
	unsigned int cut = 0;
	uint8_t *p;

	(void)state;
	start(2, NULL);
	owner = &rig.side[1];
	p = owner->buffer + (1u << 20);
	assert_int_equal(urdma_eh_create_mr(owner->eh, FAST, 7, RIG_PD,
					    ALL_ACCESS | URDMA_ACC_MW_BIND, p, 65536, va, &region),
			 0);
	assert_int_equal(
		urdma_eh_create_mr_kind(owner->eh, WINDOW, 1, RIG_PD, URDMA_MRK_WINDOW_1, &mw), 0);
	refused(URDMA_WR_WRITE, va, mw.key, 8, "a window before it is bound");
	bind(&mw, 2, URDMA_ACC_REMOTE_WRITE, &region, va + 4000, 5000, URDMA_WC_SUCCESS);
	for (unsigned int pair = 0; pair < 2; pair++) {
		struct rig_side *side = &rig.side[0];
		struct urdma_eh_sge sge = { (uintptr_t)side->buffer, 5000, side->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
					    .signaled = true,
					    .raddr = va + 4000,
					    .rkey = mw.key,
					    .sge = &sge,
					    .n_sge = 1 };

		rig_fill(side->buffer, 5000, 5 + pair);
		assert_int_equal(urdma_eh_post_send(&side->qp[pair], &wr), 0);
		assert_int_equal(send_status(0, pair), URDMA_WC_SUCCESS);
		assert_int_equal(rig_verify(p + 4000, 5000, 5 + pair), 5000);
	}
	refused(URDMA_WR_WRITE, va + 3999, mw.key, 1, "one byte before the window");
	granted(URDMA_WR_WRITE, va + 4000, mw.key, 8, "behind the RESET of the QP that bound it");
	/* it cannot be invalidated */
	local_inv(mw.key, URDMA_WC_MW_BIND_ERR);
	reconnect(0, 3);
	granted(URDMA_WR_WRITE, va + 4000, mw.key, 8, "behind a LOCAL_INV, which is refused");
	assert_int_equal(urdma_eh_destroy_mr(&region), URDMA_CS_BUSY);
	/* bound again */
	bind(&mw, 3, URDMA_ACC_REMOTE_READ, &region, va, 100, URDMA_WC_SUCCESS);
	granted(URDMA_WR_READ, va, mw.key, 100, "READ through the new binding");
	refused(URDMA_WR_READ, va, WINDOW << 8 | 2, 8, "the key of the old one");
	/* to nothing */
	bind(&mw, 4, 0, &region, 0, 0, URDMA_WC_SUCCESS);
	refused(URDMA_WR_READ, va, mw.key, 1, "a window that is bound to nothing");
	bind(&mw, 5, URDMA_ACC_REMOTE_READ, &region, va, 65537, URDMA_WC_MW_BIND_ERR);
	reconnect(0, 3);
	refused(URDMA_WR_READ, va, WINDOW << 8 | 5, 1, "a binding that was refused");

	for (unsigned int round = 0; round < 60; round++) {
		enum { WRITES = 16, BYTES = 4096 };
		struct rig_side *peer = &rig.side[0];
		struct urdma_eh_sge sge = { (uintptr_t)peer->buffer, BYTES, peer->mr.key };
		struct urdma_eh_send wr = {
			.opcode = URDMA_WR_WRITE, .sge = &sge, .n_sge = 1, .raddr = va
		};
		size_t came = 0;

		bind(&mw, (uint8_t)(10 + 2 * round), URDMA_ACC_REMOTE_WRITE, &region, va,
		     WRITES * BYTES, URDMA_WC_SUCCESS);
		wr.rkey = mw.key;
		memset(p, 0, WRITES * BYTES);
		memset(peer->buffer, 0x5a, BYTES);
		for (unsigned int i = 0; i < WRITES; i++, wr.raddr += BYTES)
			assert_int_equal(urdma_eh_put_send(&peer->qp[1], &wr), 0);
		urdma_eh_ring_sq(&peer->qp[1]);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim,
						urdma_cosim_now(rig.cosim) + 150 + 37 * round),
			  "run");
		bind(&mw, (uint8_t)(11 + 2 * round), URDMA_ACC_REMOTE_READ, &region, va, 8,
		     URDMA_WC_SUCCESS);
		/* reported: memory no longer changes */
		for (size_t i = 0; i < WRITES * BYTES; i++)
			came += p[i] == 0x5a;
		memset(p, 0, WRITES * BYTES);
		settle();
		for (size_t i = 0; i < WRITES * BYTES; i++)
			if (p[i])
				fail_msg("round %u: a byte written behind the new binding", round);
		cut += came > 0 && came < WRITES * BYTES;
		revive_pair(1);
	}
	print_message("%u bindings fell among the WRITEs\n", cut);
	assert_true(cut > 10);
	assert_int_equal(urdma_eh_destroy_mr(&mw), 0);
	assert_int_equal(urdma_eh_destroy_mr(&region), 0);
	stop();
}

/* ---- LOCAL_INV and the end of its QP --------------------------------------------------------- */

/*
 * The peer reads through a window while its owner invalidates it. READs that were accepted are
 * answered first; a later one is refused. That moves the owner's QP to ERR, perhaps before the
 * LOCAL_INV is reported. The LOCAL_INV was done, so it is reported as done; the WQEs after it are
 * flushed.
 */
static void window_invalidated_under_reads(void **state)
{
	enum { READS = 40, ROUNDS = 60, STEP = 41 };
	struct urdma_eh_mr region, mw;
	struct rig_side *peer, *owner;
	const uint64_t va = 0x7000000;
	unsigned int ended = 0;

	(void)state;
	start(1, NULL);
	peer = &rig.side[0];
	owner = &rig.side[1];
	assert_int_equal(urdma_eh_create_mr(owner->eh, FAST, 7, RIG_PD,
					    ALL_ACCESS | URDMA_ACC_MW_BIND,
					    owner->buffer + (1u << 20), 65536, va, &region),
			 0);
	assert_int_equal(
		urdma_eh_create_mr_kind(owner->eh, WINDOW, 1, RIG_PD, URDMA_MRK_WINDOW, &mw), 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct urdma_eh_sge sge = { (uintptr_t)peer->buffer, 4096, peer->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_READ,
					    .raddr = va,
					    .sge = &sge,
					    .n_sge = 1 },
				     next = { .opcode = URDMA_WR_SEND, .signaled = true };
		unsigned int status;

		bind(&mw, (uint8_t)round, URDMA_ACC_REMOTE_READ, &region, va, 65536,
		     URDMA_WC_SUCCESS);
		wr.rkey = mw.key;
		for (unsigned int i = 0; i < READS; i++)
			assert_int_equal(urdma_eh_put_send(&peer->qp[0], &wr), 0);
		urdma_eh_ring_sq(&peer->qp[0]);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim,
						urdma_cosim_now(rig.cosim) + 200 + STEP * round),
			  "run");
		assert_int_equal(urdma_eh_put_local_inv(&owner->qp[0], mw.key, round % 2 == 0), 0);
		assert_int_equal(urdma_eh_put_send(&owner->qp[0], &next), 0);
		urdma_eh_ring_sq(&owner->qp[0]);
		if (round % 2 == 0) {
			status = send_status(1, 0);
			if (status)
				fail_msg("LOCAL_INV %u cycles after the READs: status %u",
					 200 + STEP * round, status);
		}
		settle();
		ended += rig_qp_state(&owner->qp[0]) == URDMA_QPS_ERR;
		revive_pair(0);
	}
	print_message("%u of %u QPs were ended by a READ\n", ended, ROUNDS);
	assert_true(ended > ROUNDS / 2);
	assert_int_equal(urdma_eh_destroy_mr(&mw), 0);
	assert_int_equal(urdma_eh_destroy_mr(&region), 0);
	stop();
}

/*
 * READs through a key that ends while they are answered. Once the end is reported, memory belongs
 * to the program alone: no response contains what the program writes from then on.
 */
static void reads_end_with_their_key(bool type_1)
{
	enum { READS = 16, BYTES = 4096, ROUNDS = 180 };
	struct urdma_eh_mr region, mw;
	struct rig_side *peer, *owner;
	const uint64_t va = 0x7000000;
	unsigned int cut = 0;
	uint8_t *p;

	start(1, NULL);
	peer = &rig.side[0];
	owner = &rig.side[1];
	p = owner->buffer + (1u << 20);
	assert_int_equal(urdma_eh_create_mr(owner->eh, FAST, 7, RIG_PD,
					    ALL_ACCESS | URDMA_ACC_MW_BIND, p, 65536, va, &region),
			 0);
	assert_int_equal(urdma_eh_create_mr_kind(owner->eh, WINDOW, 1, RIG_PD,
						 type_1 ? URDMA_MRK_WINDOW_1 : URDMA_MRK_WINDOW,
						 &mw),
			 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct urdma_eh_send wr = { .opcode = URDMA_WR_READ, .raddr = va, .n_sge = 1 };
		size_t came = 0;

		memset(p, 0x5a, READS * BYTES);
		memset(peer->buffer, 0, READS * BYTES);
		bind(&mw, (uint8_t)(2 * round), URDMA_ACC_REMOTE_READ, &region, va, READS * BYTES,
		     URDMA_WC_SUCCESS);
		wr.rkey = mw.key;
		for (unsigned int i = 0; i < READS; i++, wr.raddr += BYTES) {
			struct urdma_eh_sge sge = { (uintptr_t)peer->buffer + i * BYTES, BYTES,
						    peer->mr.key };

			wr.sge = &sge;
			assert_int_equal(urdma_eh_put_send(&peer->qp[0], &wr), 0);
		}
		urdma_eh_ring_sq(&peer->qp[0]);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim,
						urdma_cosim_now(rig.cosim) + 100 + 7 * round),
			  "run");
		if (type_1)
			bind(&mw, (uint8_t)(2 * round + 1), URDMA_ACC_REMOTE_WRITE, &region, va, 8,
			     URDMA_WC_SUCCESS);
		else
			local_inv(mw.key, URDMA_WC_SUCCESS);
		memset(p, 0xee, READS * BYTES);
		settle();
		for (size_t i = 0; i < READS * BYTES; i++) {
			if (peer->buffer[i] == 0xee)
				fail_msg("round %u: byte %zu was read behind the end of its key",
					 round, i);
			came += peer->buffer[i] == 0x5a;
		}
		cut += came > 0 && came < READS * BYTES;
		revive_pair(0);
	}
	print_message("%u of %u keys ended among the READs\n", cut, ROUNDS);
	assert_true(cut > 10);
	assert_int_equal(urdma_eh_destroy_mr(&mw), 0);
	assert_int_equal(urdma_eh_destroy_mr(&region), 0);
	stop();
}

static void reads_end_with_local_inv(void **state)
{
	(void)state;
	reads_end_with_their_key(false);
}

static void reads_end_with_binding(void **state)
{
	(void)state;
	reads_end_with_their_key(true);
}

/*
 * ERR by command, at moments from before the LOCAL_INV begins until long after it. If it is
 * reported as done, the key is dead; if it is flushed, the key is alive. Another QP verifies this.
 */
static void invalidated_or_flushed(void **state)
{
	struct urdma_eh_mr mr;
	struct urdma_eh_qp *qp, *prover;
	struct rig_side *owner;
	unsigned int count[2] = { 0, 0 };
	uint8_t *p;

	(void)state;
	start(2, NULL);
	owner = &rig.side[1];
	qp = &owner->qp[0];
	prover = &owner->qp[1];
	p = owner->buffer + (1u << 20);
	assert_int_equal(urdma_eh_create_mr_kind(owner->eh, FAST, 1, RIG_PD, URDMA_MRK_FAST, &mr),
			 0);
	for (unsigned int round = 0; round < 60; round++) {
		struct urdma_eh_sge sge = { (uintptr_t)owner->buffer, 64, owner->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
					    .raddr = (uintptr_t)rig.side[0].buffer,
					    .rkey = rig.side[0].mr.key,
					    .sge = &sge,
					    .n_sge = 1 };
		struct urdma_eh_cqe cqe;
		bool done;

		reg(&mr, (uint8_t)round, ALL_ACCESS, p, 4096, 0x1000, 0);
		/* the LOCAL_INV waits for this to be acknowledged */
		assert_int_equal(urdma_eh_put_send(qp, &wr), 0);
		assert_int_equal(urdma_eh_put_local_inv(qp, mr.key, true), 0);
		urdma_eh_ring_sq(qp);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 30 * round),
			  "run");
		assert_int_equal(urdma_eh_to_err(qp), 0);
		do {
			rig_check(&rig, urdma_eh_next_cqe(&owner->send_cq, &cqe, LIMIT), "CQE");
			assert_int_equal(cqe.qpn, RIG_QPN(0));
		} while (cqe.wqe != ((qp->sq_pi - 1) & 0xffff));
		done = cqe.status == URDMA_WC_SUCCESS;
		if (!done)
			assert_int_equal(cqe.status, URDMA_WC_FLUSH_ERR);
		count[done]++;
		if (done) {
			assert_int_equal(urdma_eh_put_reg_mr(prover, &mr, (uint8_t)(round + 100),
							     ALL_ACCESS, p, 4096, 0x1000, 0, 12,
							     true),
					 0);
			urdma_eh_ring_sq(prover);
			if (send_status(1, 1))
				fail_msg("%u cycles: LOCAL_INV is done, and the key is alive",
					 30 * round);
		}
		assert_int_equal(urdma_eh_put_local_inv(prover, mr.key, true), 0);
		urdma_eh_ring_sq(prover);
		if (send_status(1, 1))
			fail_msg("%u cycles: LOCAL_INV is flushed, and the key is dead",
				 30 * round);
		revive_pair(0);
	}
	print_message("%u done, %u flushed\n", count[1], count[0]);
	assert_true(count[0] > 5 && count[1] > 5);
	assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	stop();
}

/* ---- order --------------------------------------------------------------------------------- */

/* A fenced WRITE sends the data that the READ before it has fetched. */
static void fence(void **state)
{
	const uint32_t len = 20000;

	(void)state;
	start(1, NULL);
	for (unsigned int i = 0; i < 8; i++) {
		struct rig_side *a = &rig.side[0], *b = &rig.side[1];
		struct urdma_eh_sge sge = { (uintptr_t)a->buffer, len, a->mr.key };
		struct urdma_eh_send rd = { .opcode = URDMA_WR_READ,
					    .raddr = (uintptr_t)b->buffer,
					    .rkey = b->mr.key,
					    .sge = &sge,
					    .n_sge = 1 };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
					    .signaled = true,
					    .fence = true,
					    .raddr = (uintptr_t)b->buffer + (1u << 20),
					    .rkey = b->mr.key,
					    .sge = &sge,
					    .n_sge = 1 };

		rig_fill(b->buffer, len, i);
		memset(a->buffer, 0, len);
		assert_int_equal(urdma_eh_put_send(&a->qp[0], &rd), 0);
		assert_int_equal(urdma_eh_put_send(&a->qp[0], &wr), 0);
		urdma_eh_ring_sq(&a->qp[0]);
		assert_int_equal(send_status(0, 0), URDMA_WC_SUCCESS);
		assert_int_equal(rig_verify(b->buffer + (1u << 20), len, i), len);
	}
	stop();
}

/*
 * Each READ sees the WRITE before it, over the same bytes of the peer. A WRITE may overtake a READ,
 * unless a fence makes it wait (10.8.3.3).
 */
static void order(void **state)
{
	const uint32_t len = 9000;

	(void)state;
	start(1, NULL);
	for (unsigned int round = 0; round < 4; round++) {
		struct rig_side *a = &rig.side[0], *b = &rig.side[1];

		for (unsigned int i = 0; i < 30; i++) {
			struct urdma_eh_sge sge = { (uintptr_t)a->buffer + i * 16384u, len,
						    a->mr.key };
			struct urdma_eh_send wr = { .opcode =
							    i % 2 ? URDMA_WR_READ : URDMA_WR_WRITE,
						    .signaled = i == 29,
						    .fence = i && i % 2 == 0,
						    .raddr = (uintptr_t)b->buffer,
						    .rkey = b->mr.key,
						    .sge = &sge,
						    .n_sge = 1 };

			if (i % 2)
				memset(a->buffer + i * 16384u, 0, len);
			else
				rig_fill(a->buffer + i * 16384u, len, 100 * round + i);
			assert_int_equal(urdma_eh_put_send(&a->qp[0], &wr), 0);
		}
		urdma_eh_ring_sq(&a->qp[0]);
		assert_int_equal(send_status(0, 0), URDMA_WC_SUCCESS);
		for (unsigned int i = 1; i < 30; i += 2)
			if (rig_verify(a->buffer + i * 16384u, len, 100 * round + i - 1) != len)
				fail_msg("READ %u has not seen what WRITE %u wrote", i, i - 1);
	}
	stop();
}

/*
 * A FLUSH is answered when all earlier data of its QP is in memory; earlier requests are answered
 * before that. Here a DMA write takes longer than an answer to the wire.
 */
static void flush_is_visible(void **state)
{
	static const struct {
		const char *name;
		unsigned int opcode, level;
		bool flush;
	} t[] = {
		{ "WRITE alone", URDMA_WR_WRITE, 0, false },
		{ "ATOMIC WRITE alone", URDMA_WR_ATOMIC_WRITE, 0, false },
		{ "FLUSH of a WRITE", URDMA_WR_WRITE, URDMA_FLUSH_RANGE, true },
		{ "FLUSH of a region after a WRITE", URDMA_WR_WRITE, URDMA_FLUSH_MR, true },
		{ "FLUSH of an ATOMIC WRITE", URDMA_WR_ATOMIC_WRITE, URDMA_FLUSH_RANGE, true },
		{ "FLUSH of an ATOMIC", URDMA_WR_ATOMIC_FA, URDMA_FLUSH_MR, true },
	};
	struct rig_config config;
	struct trace trace;

	(void)state;
	rig_defaults(&config);
	config.cosim.pcie.latency_ns = 8000;
	rig_start(&rig, &config);
	trace_start(&trace, &rig);
	for (unsigned int i = 0; i < COUNT(t); i++) {
		struct rig_side *a = &rig.side[0], *b = &rig.side[1];
		uint64_t *word = (uint64_t *)(void *)(b->buffer + 4096);
		struct urdma_eh_sge sge = { (uintptr_t)a->buffer, 8, a->mr.key };
		struct urdma_eh_send wr = { .opcode = t[i].opcode,
					    .raddr = (uintptr_t)word,
					    .rkey = b->mr.key,
					    .write_value = 1,
					    .swap_add = 1,
					    .sge = &sge,
					    .n_sge = t[i].opcode != URDMA_WR_ATOMIC_WRITE };
		struct urdma_eh_send flush = { .opcode = URDMA_WR_FLUSH,
					       .flush_type = URDMA_FLUSH_GLOBAL,
					       .flush_level = t[i].level,
					       .flush_length = 8,
					       .raddr = (uintptr_t)word,
					       .rkey = b->mr.key };
		const struct trace_packet *answer = NULL;
		unsigned int requests = 0;
		uint32_t psn = 0;
		size_t k = 0;

		memset(a->buffer, 1, 8);
		*word = 0;
		wr.signaled = !t[i].flush;
		flush.signaled = true;
		assert_int_equal(urdma_eh_put_send(&a->qp[0], &wr), 0);
		if (t[i].flush)
			assert_int_equal(urdma_eh_put_send(&a->qp[0], &flush), 0);
		urdma_eh_ring_sq(&a->qp[0]);
		while (!answer) {
			rig_check(&rig,
				  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 16),
				  t[i].name);
			for (; k < trace.n && !answer; k++) {
				const struct trace_packet *p = &trace.packet[k];

				if (p->out && p->side == 0) {
					psn = p->psn;
					requests++;
				} else if (p->out && requests == 1u + t[i].flush && p->psn == psn) {
					answer = p;
				}
			}
		}
		if (t[i].flush != (*word != 0))
			fail_msg("%s: %svisible when it is answered", t[i].name,
				 *word ? "" : "not ");
		assert_int_equal(answer->len, 0);
		assert_int_equal(send_status(0, 0), URDMA_WC_SUCCESS);
		trace_forget(&trace);
	}
	trace_stop(&trace);
	trace_free(&trace);
	rig_stop(&rig);
}

/* FLUSHes and ATOMIC WRITEs that the peer refuses; each ends the QPs. */
static void mpe_refused(void **state)
{
	const unsigned int no_flush = ALL_ACCESS & ~(unsigned int)URDMA_ACC_FLUSH_GLOBAL;
	const unsigned int read_only = URDMA_ACC_REMOTE_READ | URDMA_ACC_FLUSH_GLOBAL;
	struct urdma_eh_mr mr[2];
	struct rig_side *a, *b;

	(void)state;
	start(1, NULL);
	a = &rig.side[0];
	b = &rig.side[1];
	for (unsigned int i = 0; i < 2; i++)
		rig_check(&rig,
			  urdma_eh_create_mr(b->eh, 100 + i, 7, RIG_PD, i ? read_only : no_flush,
					     b->buffer, 4096, 0x10000, &mr[i]),
			  "MR");
	for (unsigned int i = 0;; i++) {
		struct urdma_eh_send wr = { .opcode = URDMA_WR_FLUSH,
					    .signaled = true,
					    .flush_type = URDMA_FLUSH_GLOBAL,
					    .flush_length = 64,
					    .raddr = 0x10000,
					    .rkey = mr[1].key };
		unsigned int want = URDMA_WC_REM_ACCESS_ERR, status;

		switch (i) {
		case 0:
			wr.rkey = mr[0].key;
			break;
		case 1:
			wr.rkey = mr[0].key;
			wr.flush_level = URDMA_FLUSH_MR;
			break;
		case 2:
			wr.raddr = 0x10000 + 4096 - 63;
			break;
		case 3:
			wr.flush_type = URDMA_FLUSH_PERSISTENT;
			break;
		case 4:
			wr.flush_type |= URDMA_FLUSH_PERSISTENT;
			wr.flush_level = URDMA_FLUSH_MR;
			break;
		case 5:
			wr.flush_type = 0;
			want = URDMA_WC_REM_INV_REQ_ERR;
			break;
		case 6:
			wr.flush_level = 2;
			want = URDMA_WC_REM_INV_REQ_ERR;
			break;
		case 7:
			wr.opcode = URDMA_WR_ATOMIC_WRITE;
			break;
		case 8:
			wr.opcode = URDMA_WR_ATOMIC_WRITE;
			wr.rkey = mr[0].key;
			wr.raddr = 0x10004;
			want = URDMA_WC_REM_INV_REQ_ERR;
			break;
		default: /* the whole region: address and length are ignored; an empty range */
			wr.flush_level = URDMA_FLUSH_MR;
			wr.raddr = 0;
			wr.flush_length = UINT32_MAX;
			assert_int_equal(urdma_eh_post_send(&a->qp[0], &wr), 0);
			assert_int_equal(send_status(0, 0), URDMA_WC_SUCCESS);
			wr.flush_level = URDMA_FLUSH_RANGE;
			wr.flush_length = 0;
			assert_int_equal(urdma_eh_post_send(&a->qp[0], &wr), 0);
			assert_int_equal(send_status(0, 0), URDMA_WC_SUCCESS);
			for (unsigned int k = 0; k < 2; k++)
				rig_check(&rig, urdma_eh_destroy_mr(&mr[k]), "MR");
			stop();
			return;
		}
		assert_int_equal(urdma_eh_post_send(&a->qp[0], &wr), 0);
		status = send_status(0, 0);
		if (status != want)
			fail_msg("case %u: status %u", i, status);
		settle();
		assert_int_equal(rig_qp_state(&b->qp[0]), URDMA_QPS_ERR);
		reconnect(0, 3);
	}
}

/* A window with the right to FLUSH, to a region without it, and the other way round. */
static void flush_by_window(void **state)
{
	struct rig_side *a, *b;
	struct urdma_eh_mr mr, mw;

	(void)state;
	start(1, NULL);
	a = &rig.side[0];
	b = &rig.side[1];
	rig_check(&rig,
		  urdma_eh_create_mr(b->eh, 100, 7, RIG_PD,
				     URDMA_ACC_LOCAL_WRITE | URDMA_ACC_MW_BIND, b->buffer, 8192,
				     0x10000, &mr),
		  "MR");
	rig_check(&rig, urdma_eh_create_mr_kind(b->eh, 101, 7, RIG_PD, URDMA_MRK_WINDOW, &mw),
		  "window");
	for (unsigned int right = 0; right < 2; right++) {
		struct urdma_eh_send wr = { .opcode = URDMA_WR_FLUSH,
					    .signaled = true,
					    .flush_type = URDMA_FLUSH_GLOBAL,
					    .flush_level =
						    right ? URDMA_FLUSH_MR : URDMA_FLUSH_RANGE,
					    .flush_length = 64,
					    .raddr = 0x10100 };

		bind(&mw, 8 + right,
		     right ? URDMA_ACC_FLUSH_GLOBAL : (unsigned int)URDMA_ACC_REMOTE_READ, &mr,
		     0x10100, 64, URDMA_WC_SUCCESS);
		wr.rkey = mw.key;
		assert_int_equal(urdma_eh_post_send(&a->qp[0], &wr), 0);
		assert_int_equal(send_status(0, 0),
				 right ? URDMA_WC_SUCCESS : URDMA_WC_REM_ACCESS_ERR);
		settle();
		if (!right)
			reconnect(0, 3);
	}
	local_inv(mw.key, URDMA_WC_SUCCESS);
	rig_check(&rig, urdma_eh_destroy_mr(&mw), "window");
	rig_check(&rig, urdma_eh_destroy_mr(&mr), "MR");
	stop();
}

/* ---- zero-based addresses ------------------------------------------------------------------ */

/* The range of a key of side 1: bytes from p on, with addresses from va. */
struct opened {
	const char *what;
	uint64_t va;
	uint32_t key, len;
	uint8_t *p;
};

/* The first address that is aligned for an ATOMIC. */
static uint64_t word_address(const struct opened *o)
{
	return (o->va + 7) & ~7ull;
}

static bool word_is_aligned(const struct opened *o)
{
	return (uintptr_t)(o->p + (word_address(o) - o->va)) % 8 == 0;
}

static unsigned int word_status(unsigned int opcode, uint64_t raddr, uint32_t rkey)
{
	struct urdma_eh_send wr = { .opcode = opcode,
				    .signaled = true,
				    .raddr = raddr,
				    .rkey = rkey,
				    .write_value = 0x1122334455667788,
				    .flush_type = URDMA_FLUSH_GLOBAL,
				    .flush_level = URDMA_FLUSH_MR };

	assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0], &wr), 0);
	return send_status(0, 0);
}

/* Each byte of the range, by WRITE and READ; a FLUSH of all of it; ATOMICs where allowed. */
static void all_of(const struct opened *o)
{
	uint8_t *near = rig.side[0].buffer, *word = o->p + (word_address(o) - o->va);
	uint64_t value;

	rig_fill(near, o->len, o->key);
	rig_fill(o->p - 64, o->len + 128, 77);
	granted(URDMA_WR_WRITE, o->va, o->key, o->len, o->what);
	assert_int_equal(rig_verify(o->p, o->len, o->key), o->len);
	rig_fill(near, 64, 77);
	assert_memory_equal(o->p - 64, near, 64);
	rig_fill(near, o->len + 128, 77);
	assert_memory_equal(o->p + o->len, near + 64 + o->len, 64);
	granted(URDMA_WR_READ, o->va + 1, o->key, o->len - 1, o->what);
	assert_memory_equal(near, o->p + 1, o->len - 1);
	if (word_status(URDMA_WR_FLUSH, 0, o->key))
		fail_msg("%s: FLUSH", o->what);
	if (!word_is_aligned(o))
		return;
	memcpy(&value, word, 8);
	granted(URDMA_WR_ATOMIC_FA, word_address(o), o->key, 8, o->what);
	assert_memory_equal(near, &value, 8);
	value++;
	assert_memory_equal(word, &value, 8);
	if (word_status(URDMA_WR_ATOMIC_WRITE, word_address(o), o->key))
		fail_msg("%s: ATOMIC WRITE", o->what);
	value = 0x1122334455667788;
	assert_memory_equal(word, &value, 8);
}

#define BEYOND 5u

/* Accesses beyond the range; each one ends the connection. */
static void beyond(const struct opened *o, unsigned int which)
{
	uint8_t before[16];

	memcpy(before, o->p, 16);
	switch (which) {
	case 0:
		refused(URDMA_WR_READ, o->va + o->len - 7, o->key, 8, o->what);
		break;
	case 1:
		refused(URDMA_WR_WRITE, o->va + o->len, o->key, 1, o->what);
		break;
	case 2:
		refused(URDMA_WR_WRITE, o->va - 1, o->key, 1, o->what);
		break;
	default: /* an ATOMIC would reach across two words */
		if (word_is_aligned(o))
			return;
		if (which == 3)
			refused(URDMA_WR_ATOMIC_FA, word_address(o), o->key, 8, o->what);
		else if (word_status(URDMA_WR_ATOMIC_WRITE, word_address(o), o->key) !=
			 URDMA_WC_REM_ACCESS_ERR)
			fail_msg("%s: ATOMIC WRITE", o->what);
		else
			revive_pair(0);
	}
	assert_memory_equal(o->p, before, 16);
}

/* The key in an SGE: to send from, to receive and to READ into. */
static void locally(const struct opened *o)
{
	struct rig_side *near = &rig.side[0], *far = &rig.side[1];
	struct urdma_eh_sge there = { o->va, o->len, o->key };
	struct urdma_eh_sge here = { (uintptr_t)near->buffer, o->len, near->mr.key };
	struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
				    .signaled = true,
				    .raddr = (uintptr_t)near->buffer,
				    .rkey = near->mr.key,
				    .sge = &there,
				    .n_sge = 1 };
	struct urdma_eh_cqe cqe;

	rig_fill(o->p, o->len, 5);
	assert_int_equal(urdma_eh_post_send(&far->qp[0], &wr), 0);
	assert_int_equal(send_status(1, 0), URDMA_WC_SUCCESS);
	assert_int_equal(rig_verify(near->buffer, o->len, 5), o->len);
	rig_fill(near->buffer, o->len, 6);
	wr.opcode = URDMA_WR_READ;
	assert_int_equal(urdma_eh_post_send(&far->qp[0], &wr), 0);
	assert_int_equal(send_status(1, 0), URDMA_WC_SUCCESS);
	assert_int_equal(rig_verify(o->p, o->len, 6), o->len);
	rig_fill(near->buffer, o->len, 7);
	wr = (struct urdma_eh_send){
		.opcode = URDMA_WR_SEND, .signaled = true, .sge = &here, .n_sge = 1
	};
	assert_int_equal(urdma_eh_post_recv(&far->qp[0], &there, 1), 0);
	assert_int_equal(urdma_eh_post_send(&near->qp[0], &wr), 0);
	assert_int_equal(send_status(0, 0), URDMA_WC_SUCCESS);
	rig_check(&rig, urdma_eh_next_cqe(&far->recv_cq, &cqe, LIMIT), "receive CQE");
	assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
	assert_int_equal(rig_verify(o->p, o->len, 7), o->len);
	/* one byte too far */
	there.addr++;
	wr.sge = &there;
	assert_int_equal(urdma_eh_post_send(&far->qp[0], &wr), 0);
	assert_int_equal(send_status(1, 0), URDMA_WC_LOC_PROT_ERR);
	revive_pair(0);
}

/* Offsets in the first page at which regions begin. */
static const uint32_t starts[] = { 0, 8, 100, 2049, 4095 };

static void zero_based(void **state)
{
	const uint32_t len = 3 * 4096 + 100;

	(void)state;
	start(1, NULL);
	for (unsigned int i = 0; i < 3 * COUNT(starts); i++) {
		/* by CREATE_MR with each number of levels, and by REG_MR */
		int levels = (int)(i % 3);
		bool fast = i % 4 == 3;
		struct rig_side *side = &rig.side[1];
		struct opened o = { "a zero-based region", 0, 0, len, NULL };
		struct urdma_eh_mr mr;
		uint64_t va;

		o.p = side->buffer + 0x10000 + starts[i / 3];
		va = 0x7ffff7c00000 + (uintptr_t)o.p % 4096;
		/* one page, without a table */
		if (!levels && starts[i / 3] > 3000)
			continue;
		if (!levels)
			o.len = 4096 - starts[i / 3];
		if (fast) {
			assert_int_equal(urdma_eh_create_mr_kind(side->eh, FAST, 1, RIG_PD,
								 URDMA_MRK_FAST, &mr),
					 0);
			reg(&mr, (uint8_t)(i + 2), ALL_ACCESS | URDMA_EH_ZERO_BASED, o.p, o.len, va,
			    levels);
		} else {
			assert_int_equal(urdma_eh_create_mr_map(side->eh, FAST, (uint8_t)i, RIG_PD,
								ALL_ACCESS | URDMA_EH_ZERO_BASED,
								o.p, o.len, va, levels, 12, &mr),
					 0);
		}
		assert_int_equal(mr.va, 0);
		o.key = mr.key;
		all_of(&o);
		locally(&o);
		for (unsigned int k = 0; k < BEYOND; k++)
			beyond(&o, k);
		/* at the program's address */
		refused(URDMA_WR_READ, va, o.key, 1, "a region by its address");
		assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	}
	stop();
}

/* Windows of both types, based at 0 or not, on both kinds of region. */
static void zero_based_windows(void **state)
{
	const uint32_t len = 5 * 4096;

	(void)state;
	start(1, NULL);
	for (unsigned int i = 0; i < 8 * COUNT(starts); i++) {
		const unsigned int zero = i & 1 ? URDMA_EH_ZERO_BASED : 0;
		const unsigned int region_zero = i & 2 ? URDMA_EH_ZERO_BASED : 0;
		const bool type_1 = i & 4;
		const uint32_t from = 4096 - starts[(i / 8 + 1) % COUNT(starts)];
		struct rig_side *side = &rig.side[1];
		uint8_t *p = side->buffer + 0x10000 + starts[i / 8];
		uint64_t va = 0x7ffff7c00000 + (uintptr_t)p % 4096;
		struct opened o = { "a window", 0, 0, 6000 + i, p + from };
		struct urdma_eh_mr mr, mw;

		assert_int_equal(
			urdma_eh_create_mr_map(side->eh, FAST, (uint8_t)i, RIG_PD,
					       ALL_ACCESS | URDMA_ACC_MW_BIND | region_zero, p, len,
					       va, 1 + (int)(i / 4 % 2), 12, &mr),
			0);
		assert_int_equal(urdma_eh_create_mr_kind(
					 side->eh, WINDOW, 1, RIG_PD,
					 type_1 ? URDMA_MRK_WINDOW_1 : URDMA_MRK_WINDOW, &mw),
				 0);
		for (unsigned int k = 0; k <= BEYOND; k++) {
			/* RESET has unbound one of type 2 */
			bind(&mw, (uint8_t)(2 + k), ALL_ACCESS | zero, &mr, mr.va + from, o.len,
			     URDMA_WC_SUCCESS);
			o.key = mw.key;
			o.va = zero ? 0 : mr.va + from;
			if (!k)
				all_of(&o);
			else
				beyond(&o, k - 1);
			if (!type_1 && (!k || (k > 3 && word_is_aligned(&o))))
				local_inv(mw.key, URDMA_WC_SUCCESS);
		}
		/* its end counts where the region does */
		bind(&mw, 20, ALL_ACCESS | zero, &mr, mr.va + len - 8, 9, URDMA_WC_MW_BIND_ERR);
		reconnect(0, 3);
		bind(&mw, 21, ALL_ACCESS | zero, &mr, mr.va - 1, 9, URDMA_WC_MW_BIND_ERR);
		reconnect(0, 3);
		assert_int_equal(urdma_eh_destroy_mr(&mw), 0);
		assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	}
	stop();
}

/* Never more READs and atomics outstanding than negotiated: the wire checker counts them. */
static void rd_atomic(void **state)
{
	static const unsigned int limit[] = { 1, 2, 7, 16 };

	(void)state;
	for (unsigned int k = 0; k < COUNT(limit); k++) {
		struct urdma_eh_conn conn;
		struct work *w = test_calloc(120, sizeof(*w));
		struct judge judge;

		urdma_eh_conn_defaults(&conn, 5);
		conn.max_rd_atomic = limit[k];
		conn.max_dest_rd_atomic = limit[k];
		start(2, &conn);
		judge_start(&judge, &rig, false);
		for (unsigned int i = 0; i < 120; i++)
			w[i] = (struct work){ .opcode = i % 5 == 4   ? URDMA_WR_WRITE
							: i % 7 == 3 ? URDMA_WR_ATOMIC_FA
							: i % 7 == 4 ? URDMA_WR_FLUSH
							: i % 7 == 5 ? URDMA_WR_ATOMIC_WRITE
								     : URDMA_WR_READ,
					      .from = i / 2 % 2,
					      .pair = i % 2,
					      .len = i % 3 * 5000,
					      .seed = i,
					      .at = i * work_slot(10000) };
		work_run(&rig, w, 120, LIMIT, "limit of READs and atomics");
		judge_end(&judge, "limit of READs and atomics");
		test_free(w);
		stop();
	}
}

static void no_rd_atomic(void **state)
{
	struct urdma_eh_conn conn;

	(void)state;
	urdma_eh_conn_defaults(&conn, 3);
	conn.max_rd_atomic = 0;
	start(1, &conn);
	assert_int_equal(
		access_status(URDMA_WR_READ, (uintptr_t)rig.side[1].buffer, rig.side[1].mr.key, 8),
		URDMA_WC_LOC_QP_OP_ERR);
	settle();
	assert_int_equal(rig_qp_state(&rig.side[0].qp[0]), URDMA_QPS_ERR);
	assert_int_equal(rig_qp_state(&rig.side[1].qp[0]), URDMA_QPS_RTS);
	rig_abandon(&rig);
	conn.max_rd_atomic = 1;
	conn.max_dest_rd_atomic = 0;
	running = false;
	start(1, &conn);
	assert_int_equal(
		access_status(URDMA_WR_READ, (uintptr_t)rig.side[1].buffer, rig.side[1].mr.key, 8),
		URDMA_WC_REM_INV_REQ_ERR);
	rig_abandon(&rig);
	running = false;
}

/* ---- SQD ----------------------------------------------------------------------------------- */

static void draining(void **state)
{
	enum { N = 40 };

	(void)state;
	start(1, NULL);
	for (unsigned int delay = 0; delay < 8000; delay = delay * 2 + 100) {
		struct rig_side *side = &rig.side[0];
		struct urdma_eh_qp_info info;
		struct urdma_eh_event ev[8];
		struct urdma_eh_cqe cqe;
		unsigned int done = 0, drained = 0, n;
		struct work *w = test_calloc(N, sizeof(*w));

		while (urdma_eh_eq_poll(side->eh, 0, ev, 8, true))
			;
		for (unsigned int i = 0; i < N; i++) {
			w[i] = (struct work){ .opcode = i % 4 == 1   ? URDMA_WR_READ
							: i % 4 == 2 ? URDMA_WR_SEND
							: i % 4 == 3 ? URDMA_WR_ATOMIC_FA
								     : URDMA_WR_WRITE,
					      .len = 5000,
					      .seed = delay + i,
					      .at = i * work_slot(5000) };
			work_put(&rig, &w[i]);
		}
		work_ring(&rig, w, N);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + delay),
			  "run");
		assert_int_equal(urdma_eh_to_sqd(&side->qp[0], true), 0);
		settle();
		n = urdma_eh_eq_poll(side->eh, 0, ev, 8, true);
		for (unsigned int i = 0; i < n; i++)
			drained += ev[i].type == URDMA_EV_SQ_DRAINED && ev[i].obj == RIG_QPN(0);
		if (drained != 1)
			fail_msg("delay %u: SQ_DRAINED came %u times", delay, drained);
		assert_int_equal(urdma_eh_qp_info(&side->qp[0], &info), 0);
		assert_int_equal(info.state, URDMA_QPS_SQD);
		assert_false(info.draining);
		/* nothing more in SQD */
		while (urdma_eh_poll_cq(&side->send_cq, &cqe, 1))
			work_check_send(&rig, &w[done++], &cqe);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 20000),
			  "run");
		assert_false(urdma_eh_cq_ready(&side->send_cq));
		assert_int_equal(urdma_eh_sqd_to_rts(&side->qp[0]), 0);
		for (; done < N; done++) {
			rig_check(&rig, urdma_eh_next_cqe(&side->send_cq, &cqe, LIMIT),
				  "after SQD");
			work_check_send(&rig, &w[done], &cqe);
		}
		settle();
		for (unsigned int i = 0; i < N; i++) {
			if (work_takes_recv(w[i].opcode)) {
				rig_check(&rig,
					  urdma_eh_next_cqe(&rig.side[1].recv_cq, &cqe, LIMIT),
					  "receive");
				work_check_recv(&rig, &w[i], &cqe);
			}
			work_check_memory(&rig, &w[i]);
		}
		test_free(w);
	}
	stop();
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void inline_data(void **state)
{
	struct work *w = test_calloc(64, sizeof(*w));
	static const unsigned int opcode[] = { URDMA_WR_WRITE, URDMA_WR_SEND, URDMA_WR_WRITE_IMM,
					       URDMA_WR_SEND_IMM };

	(void)state;
	start(1, NULL);
	for (unsigned int i = 0; i < 64; i++)
		w[i] = (struct work){ .opcode = opcode[i / 2 % 4],
				      .from = i % 2,
				      .len = i < 8 ? i : i * 7 % 481,
				      .inlined = true,
				      .seed = i,
				      .at = i * work_slot(512) };
	work_run(&rig, w, 64, LIMIT, "inline");
	test_free(w);
	stop();
}

/* COMM_EST: the first packet came before the QP was in RTS. Once. */
static void communication_established(void **state)
{
	struct urdma_eh_conn conn;
	struct urdma_eh_event ev[8];
	struct work w = { .opcode = URDMA_WR_SEND, .len = 100, .from = 0 };
	struct urdma_eh_cqe cqe;
	unsigned int n, seen = 0;
	uint8_t mac[2][6];

	(void)state;
	start(1, NULL);
	conn = rig.config.conn;
	for (unsigned int k = 0; k < 2; k++) {
		assert_int_equal(urdma_eh_mac(rig.side[k].eh, mac[k]), 0);
		assert_int_equal(urdma_eh_to_reset(&rig.side[k].qp[0]), 0);
		while (urdma_eh_eq_poll(rig.side[k].eh, 0, ev, 8, true))
			;
	}
	for (unsigned int k = 0; k < 2; k++) {
		conn.dest_qpn = RIG_QPN(0);
		urdma_eh_gid_ipv4(conn.dgid, 0x0a000001u + !k);
		memcpy(conn.dmac, mac[!k], 6);
		assert_int_equal(urdma_eh_to_init(&rig.side[k].qp[0], &conn), 0);
		assert_int_equal(urdma_eh_to_rtr(&rig.side[k].qp[0], &conn), 0);
	}
	assert_int_equal(urdma_eh_to_rts(&rig.side[0].qp[0], &conn), 0);
	for (unsigned int i = 0; i < 3; i++) {
		w.seed = i;
		work_put(&rig, &w);
		work_ring(&rig, &w, 1);
		work_finish(&rig, &w, 1, LIMIT, "to a QP in RTR");
	}
	(void)cqe;
	settle();
	n = urdma_eh_eq_poll(rig.side[1].eh, 0, ev, 8, true);
	for (unsigned int i = 0; i < n; i++)
		seen += ev[i].type == URDMA_EV_COMM_EST && ev[i].obj == RIG_QPN(0);
	assert_int_equal(seen, 1);
	assert_int_equal(rig_qp_state(&rig.side[1].qp[0]), URDMA_QPS_RTR);
	assert_int_equal(urdma_eh_to_rts(&rig.side[1].qp[0], &conn), 0);
	stop();
}

int main(void)
{
	static unsigned int opcode[] = { URDMA_WR_SEND,	     URDMA_WR_SEND_IMM, URDMA_WR_WRITE,
					 URDMA_WR_WRITE_IMM, URDMA_WR_READ,	URDMA_WR_FLUSH };
	const struct CMUnitTest tests[] = {
		{ "SEND of each size", sizes, NULL, NULL, &opcode[0] },
		{ "SEND_IMM of each size", sizes, NULL, NULL, &opcode[1] },
		{ "WRITE of each size", sizes, NULL, NULL, &opcode[2] },
		{ "WRITE_IMM of each size", sizes, NULL, NULL, &opcode[3] },
		{ "READ of each size", sizes, NULL, NULL, &opcode[4] },
		{ "FLUSH of each size", sizes, NULL, NULL, &opcode[5] },
		cmocka_unit_test(atomics),
		cmocka_unit_test(counter),
		cmocka_unit_test(inline_data),
		cmocka_unit_test(fence),
		cmocka_unit_test(order),
		cmocka_unit_test(flush_is_visible),
		cmocka_unit_test(mpe_refused),
		cmocka_unit_test(flush_by_window),
		cmocka_unit_test(rd_atomic),
		cmocka_unit_test(no_rd_atomic),
		cmocka_unit_test(fast_registration),
		cmocka_unit_test(send_with_invalidate),
		cmocka_unit_test(invalidated_at_line_rate),
		cmocka_unit_test(windows),
		cmocka_unit_test(windows_of_type_1),
		cmocka_unit_test(zero_based),
		cmocka_unit_test(zero_based_windows),
		cmocka_unit_test(reads_end_with_local_inv),
		cmocka_unit_test(reads_end_with_binding),
		cmocka_unit_test(window_invalidated_under_reads),
		cmocka_unit_test(invalidated_or_flushed),
		cmocka_unit_test(draining),
		cmocka_unit_test(communication_established),
	};

	return cmocka_run_group_tests_name("engine/rc", tests, NULL, NULL);
}
