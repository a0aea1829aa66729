// SPDX-License-Identifier: Apache-2.0
/*
 * Shared receive queues in the provider. The NIC takes the places that the ring of indices names,
 * in order, and completes them in any order. Each posted place has to have the WQE that was posted
 * for it, and no place may be posted again before its completion was polled.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_nic.h"
#include "fake_urdma.h"
#include "fake_verbs.h"
#include "random.h"
#include "seed.h"

#define DEPTH 16
#define SGES  3
#define CQES  96
#define LKEY  0x1234u
#define QPS   2

#define FEATURES (URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_UD | URDMA_RF_FEAT_SRQ)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
/* A QP has a CQ of its own; the SRQ is that of both. */
static struct ibv_cq *cq[QPS];
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp *qp[QPS];
static struct ibv_srq *srq;
static uint32_t places;

/* ---- the NIC -----------------------------------------------------------------------------------
 */

/* The places that it has, with their wr_id; 0: none. */
static uint64_t held[4 * DEPTH];
/* entries of the ring that it has taken */
static uint16_t taken;

static uint16_t producer(void)
{
	uint64_t db = *(volatile uint64_t *)fake_doorbell(URDMA_DB_SRQ);

	assert_int_equal(db & 0xffffffff, srq->handle);
	return (uint16_t)(db >> 32);
}

/* The next place of the ring; wr_id is in the address of the WQE's first element. */
static uint16_t take(void)
{
	uint16_t place = fake_urdma_srq_index(srq, taken++);
	const uint64_t *w = fake_urdma_srqe(srq, place);

	assert_true(place < places);
	assert_true(!held[place]);
	assert_true(w[0] == 1);
	assert_true(w[1] == 0);
	assert_true(w[3] == (64 | (uint64_t)LKEY << 32));
	held[place] = w[2];
	return place;
}

static uint64_t complete(unsigned int which, uint16_t place)
{
	uint64_t wr_id = held[place];

	assert_true(wr_id);
	held[place] = 0;
	fake_urdma_cqe(cq[which], URDMA_CQE0_RECV | (uint64_t)place << 32,
		       (uint64_t)qp[which]->qp_num << 32 | 64, 0, 0);
	return wr_id;
}

/* ---- the program -------------------------------------------------------------------------------
 */

static struct ibv_qp *make_qp(struct ibv_cq *of, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = of,
		.recv_cq = of,
		.srq = srq,
		/* The requested receives do not count. */
		.cap = { 4, 1u << 20, 1, 1u << 20, 0 },
		.qp_type = type,
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp *made = fake_ops->create_qp(pd, &attr);

	assert_non_null(made);
	assert_false(fake_urdma_has_rq());
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(attr.cap.max_recv_sge, 0);
	assert_int_equal(fake_ops->modify_qp(made, &rts, IBV_QP_STATE), 0);
	return made;
}

static struct ibv_srq *make_srq(uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = wr, .max_sge = sge } };
	struct ibv_srq *made = fake_ops->create_srq(pd, &attr);

	assert_non_null(made);
	assert_true(attr.attr.max_wr >= wr);
	assert_true(attr.attr.max_sge >= sge);
	assert_int_equal(attr.attr.max_wr, fake_urdma_srq_places(made));
	return made;
}

static int setup(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = CQES, .wc_flags = IBV_WC_STANDARD_FLAGS };

	(void)state;
	fake_urdma_features = FEATURES;
	fake_error = 0;
	memset(held, 0, sizeof(held));
	taken = 0;
	ctx = fake_open();
	assert_non_null(ctx);
	pd = fake_ops->alloc_pd(ctx);
	assert_non_null(pd);
	srq = make_srq(DEPTH, SGES);
	places = fake_urdma_srq_places(srq);
	assert_in_range(places, DEPTH, sizeof(held) / sizeof(*held));
	cq_ex = fake_ops->create_cq_ex(ctx, &attr);
	assert_non_null(cq_ex);
	cq[0] = ibv_cq_ex_to_cq(cq_ex);
	cq[1] = fake_ops->create_cq(ctx, CQES, NULL, 0);
	assert_non_null(cq[1]);
	qp[0] = make_qp(cq[0], IBV_QPT_RC);
	qp[1] = make_qp(cq[1], IBV_QPT_UD);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_error = 0;
	for (unsigned int i = 0; i < QPS; i++) {
		if (qp[i])
			assert_int_equal(fake_ops->destroy_qp(qp[i]), 0);
		assert_int_equal(fake_ops->destroy_cq(cq[i]), 0);
	}
	assert_int_equal(fake_ops->destroy_srq(srq), 0);
	assert_int_equal(fake_ops->dealloc_pd(pd), 0);
	fake_close(ctx);
	return 0;
}

static int post(uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = wr_id, .length = 64, .lkey = LKEY };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	int err = ibv_post_srq_recv(srq, &wr, &bad);

	assert_ptr_equal(bad, err ? &wr : NULL);
	return err;
}

static void expect_polled(unsigned int which, uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq[which], 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.qp_num, qp[which]->qp_num);
	assert_int_equal(wc.byte_len, 64);
}

/* All places can be posted, and not one more. */
static void expect_all_free(void)
{
	uint16_t from = producer();

	for (uint32_t i = 0; i < places; i++)
		assert_int_equal(post(1000 + i), 0);
	assert_int_equal(post(1), ENOMEM);
	assert_int_equal((uint16_t)(producer() - from), places);
	while (taken != producer())
		take();
}

/* ---- tests -------------------------------------------------------------------------------------
 */

static void test_full(void **state)
{
	(void)state;
	*fake_doorbell(URDMA_DB_SRQ) = srq->handle;
	expect_all_free();
	/* One completion is polled, so one WQE may be posted. */
	complete(1, 3);
	assert_int_equal(post(1), ENOMEM);
	expect_polled(1, 1003);
	assert_int_equal(post(7), 0);
	assert_int_equal(take(), 3);
	assert_int_equal(post(1), ENOMEM);
}

/* At random: posted, taken, and completed in any order by either QP, until the indices have
 * wrapped. */
static void test_order(void **state)
{
	struct urdma_random rng = { test_seed(5) };
	uint64_t wr_id = 1, posted = 0, done = 0;
	uint16_t place;

	(void)state;
	*fake_doorbell(URDMA_DB_SRQ) = srq->handle;
	while (done < 140000) {
		for (uint32_t n = urdma_random_below(&rng, places); n; n--) {
			int err = post(wr_id);

			assert_int_equal(err, posted - done == places ? ENOMEM : 0);
			if (err)
				break;
			wr_id++;
			posted++;
			assert_int_equal(producer(), (uint16_t)posted);
		}
		for (uint32_t n = urdma_random_below(&rng, places); n && taken != producer(); n--)
			take();
		for (uint32_t n = urdma_random_below(&rng, places); n; n--) {
			unsigned int which = urdma_random_below(&rng, QPS);

			place = (uint16_t)urdma_random_below(&rng, places);
			if (!held[place])
				continue;
			expect_polled(which, complete(which, place));
			done++;
		}
	}
}

/* Requests before the bad one of a list are posted; a refused one takes no place. */
static void test_list(void **state)
{
	struct ibv_sge sge[64];
	struct ibv_recv_wr wr[4], *bad = NULL;

	(void)state;
	*fake_doorbell(URDMA_DB_SRQ) = srq->handle;
	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 4; i++) {
			sge[i] = (struct ibv_sge){ 10 + i, 64, LKEY };
			wr[i] = (struct ibv_recv_wr){ 10 + i, &wr[i + 1], &sge[i], 1 };
		}
		wr[3].next = NULL;
		wr[2].num_sge = round == 0 ? 64 : round == 1 ? -1 : 1;
		if (round == 2) {
			assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), 0);
		} else {
			assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
			assert_ptr_equal(bad, &wr[2]);
		}
		assert_int_equal(producer(), round == 2 ? 8 : 2 * (round + 1));
		while (taken != producer())
			complete(0, take());
		for (unsigned int i = 0; i < (round == 2 ? 4 : 2); i++)
			expect_polled(0, 10 + i);
	}
	expect_all_free();
}

/* Several elements, and empty ones, as in a receive queue. */
static void test_elements(void **state)
{
	struct ibv_sge sge[SGES] = { { 0x1000, 64, 1 }, { 0x2000, 0, 2 }, { 0x3000, 5, 3 } };
	struct ibv_recv_wr wr = { 9, NULL, sge, SGES }, *bad;
	const uint64_t *w;

	(void)state;
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	w = fake_urdma_srqe(srq, fake_urdma_srq_index(srq, 0));
	assert_true(w[0] == 2);
	assert_true(w[2] == 0x1000 && w[3] == (64 | UINT64_C(1) << 32));
	assert_true(w[4] == 0x3000 && w[5] == (5 | UINT64_C(3) << 32));
}

/* Completions that nobody polls before the QP is destroyed: their places are free. */
static void test_qp_ends(void **state)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_wc wc;

	(void)state;
	*fake_doorbell(URDMA_DB_SRQ) = srq->handle;
	expect_all_free();
	for (uint16_t place = 0; place < places; place++)
		complete(place % 2, place);
	assert_int_equal(fake_ops->modify_qp(qp[0], &reset, IBV_QP_STATE), 0);
	assert_int_equal(fake_ops->destroy_qp(qp[1]), 0);
	qp[1] = NULL;
	assert_int_equal(ibv_poll_cq(cq[0], 1, &wc), 0);
	assert_int_equal(ibv_poll_cq(cq[1], 1, &wc), 0);
	expect_all_free();
	/* Such a QP works again. */
	assert_int_equal(fake_ops->modify_qp(qp[0], &rts, IBV_QP_STATE), 0);
	expect_polled(0, complete(0, 2));
}

static void test_poll_ex(void **state)
{
	struct ibv_poll_cq_attr attr = { 0 };

	(void)state;
	*fake_doorbell(URDMA_DB_SRQ) = srq->handle;
	expect_all_free();
	complete(0, 5);
	complete(0, 1);
	assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
	assert_int_equal(cq_ex->wr_id, 1005);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(cq_ex->wr_id, 1001);
	assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
	ibv_end_poll(cq_ex);
	assert_int_equal(post(1), 0);
	assert_int_equal(post(2), 0);
	assert_int_equal(post(3), ENOMEM);
}

static void expect_no_srq(uint32_t wr, uint32_t sge, int err)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = wr, .max_sge = sge } };

	errno = 0;
	assert_null(fake_ops->create_srq(pd, &attr));
	assert_int_equal(errno, err);
	assert_int_equal(attr.attr.max_wr, wr);
	assert_int_equal(attr.attr.max_sge, sge);
}

static void test_refused(void **state)
{
	struct ibv_sge sge = { 0x1000, 64, LKEY };
	struct ibv_recv_wr wr = { 9, NULL, &sge, 1 }, *bad = NULL;
	struct ibv_srq_attr limit = { .srq_limit = 3 };

	(void)state;
	/* A QP with an SRQ has no receive queue of its own. */
	assert_int_equal(ibv_post_recv(qp[0], &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);

	expect_no_srq(0, 1, EINVAL);
	expect_no_srq((1u << 12) + 1, 1, EINVAL);
	expect_no_srq(16, 17, EINVAL);
	fake_error = ENOSPC;
	expect_no_srq(16, 1, ENOSPC);
	assert_int_equal(fake_ops->modify_srq(srq, &limit, IBV_SRQ_LIMIT), ENOSPC);
	assert_int_equal(fake_ops->query_srq(srq, &limit), ENOSPC);
	/* An SRQ that the kernel does not destroy stays. */
	assert_int_equal(fake_ops->destroy_srq(srq), ENOSPC);
	fake_error = 0;
	*fake_doorbell(URDMA_DB_SRQ) = srq->handle;
	expect_all_free();
	assert_int_equal(fake_ops->destroy_srq(make_srq(1u << 12, 16)), 0);
}

static void test_no_feature(void **state)
{
	(void)state;
	fake_urdma_features = FEATURES & ~URDMA_RF_FEAT_SRQ;
	ctx = fake_open();
	pd = fake_ops->alloc_pd(ctx);
	expect_no_srq(16, 1, EOPNOTSUPP);
	assert_int_equal(fake_ops->dealloc_pd(pd), 0);
	fake_close(ctx);
}

/* ---- threads -----------------------------------------------------------------------------------
 */

#define PER_POLLER 100000

static pthread_mutex_t nic = PTHREAD_MUTEX_INITIALIZER;
/* how often each wr_id was polled */
static uint8_t *seen;

/* Completes the posted WQEs through its own QP, and polls them. */
static void *poller(void *arg)
{
	unsigned int which = (unsigned int)(uintptr_t)arg;
	struct ibv_wc wc;

	for (unsigned int done = 0; done < PER_POLLER;) {
		uint64_t wr_id = 0;

		pthread_mutex_lock(&nic);
		if (taken != producer())
			wr_id = complete(which, take());
		pthread_mutex_unlock(&nic);
		if (!wr_id)
			continue;
		if (ibv_poll_cq(cq[which], 1, &wc) != 1 || wc.wr_id != wr_id)
			return (void *)1;
		__atomic_fetch_add(&seen[wr_id], 1, __ATOMIC_RELAXED);
		done++;
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t thread[QPS];
	void *bad;

	(void)state;
	seen = calloc(QPS * PER_POLLER + 1, 1);
	assert_non_null(seen);
	*fake_doorbell(URDMA_DB_SRQ) = srq->handle;
	for (uintptr_t i = 0; i < QPS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, poller, (void *)i), 0);
	for (uint64_t wr_id = 1; wr_id <= QPS * PER_POLLER;)
		wr_id += post(wr_id) == 0;
	for (unsigned int i = 0; i < QPS; i++) {
		pthread_join(thread[i], &bad);
		assert_null(bad);
	}
	for (uint64_t wr_id = 1; wr_id <= QPS * PER_POLLER; wr_id++)
		assert_int_equal(seen[wr_id], 1);
	free(seen);
	expect_all_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list, setup, teardown),
		cmocka_unit_test_setup_teardown(test_elements, setup, teardown),
		cmocka_unit_test_setup_teardown(test_qp_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_poll_ex, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test(test_no_feature),
		cmocka_unit_test_setup_teardown(test_threads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
