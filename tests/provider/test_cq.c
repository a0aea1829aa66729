// SPDX-License-Identifier: Apache-2.0
/*
 * CQs of the provider whose ring is replaced. Each completion is polled once and in order, whether
 * it was in the old ring, came during the command, or came to the new ring before the command
 * ended. Also moderation, and CQs that may overrun.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_nic.h"
#include "fake_urdma.h"
#include "fake_verbs.h"

#define SQ_DEPTH 1024
#define SMALLEST 96

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
/* completions: written, polled */
static uint64_t written;
static _Atomic(uint64_t) polled;

static int setup(void **state)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = SQ_DEPTH, .max_recv_wr = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_RTS };

	fake_error = 0;
	fake_urdma_at_resize = NULL;
	written = polled = 0;
	fake_urdma_features =
		URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_RC_WRITE | URDMA_RF_FEAT_CQ_MODIFY;
	ctx = fake_open();
	assert_non_null(ctx);
	pd = fake_ops->alloc_pd(ctx);
	cq = fake_ops->create_cq(ctx, 1, NULL, 0);
	assert_non_null(cq);
	attr.send_cq = attr.recv_cq = cq;
	qp = fake_ops->create_qp(pd, &attr);
	assert_non_null(qp);
	qp->send_cq = qp->recv_cq = cq;
	assert_int_equal(fake_ops->modify_qp(qp, &to, IBV_QP_STATE), 0);
	return 0;
}

static int teardown(void **state)
{
	fake_error = 0;
	if (qp)
		assert_int_equal(fake_ops->destroy_qp(qp), 0);
	assert_int_equal(fake_ops->destroy_cq(cq), 0);
	assert_int_equal(fake_ops->dealloc_pd(pd), 0);
	fake_close(ctx);
	return 0;
}

/* The NIC completes n WQEs. */
static void complete(unsigned int n)
{
	while (n--) {
		/* wr_id is that of the slot, so the slot tells the index */
		struct ibv_send_wr wr = { .wr_id = written, .opcode = IBV_WR_RDMA_WRITE }, *bad;

		assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
		fake_nic_complete(cq, qp, false);
		written++;
	}
}

static unsigned int poll_some(unsigned int n)
{
	struct ibv_wc wc[256];
	int got = ibv_poll_cq(cq, n, wc);

	assert_true(got >= 0);
	for (int i = 0; i < got; i++) {
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_int_equal(wc[i].wr_id, polled + (uint64_t)i);
	}
	polled += (uint64_t)got;
	return (unsigned int)got;
}

static int resize(unsigned int cqe)
{
	return fake_ops->resize_cq(cq, (int)cqe);
}

/* What the NIC writes before and after the change of the ring. */
static unsigned int before_change, after_change;

static void at_resize(bool done)
{
	complete(done ? after_change : before_change);
}

/*
 * The ring in each state: this many CQEs polled, waiting, and arriving during the command; to a
 * larger ring and to a smaller one.
 */
static void every_place(void **state)
{
	static const unsigned int sizes[] = { 1000, SMALLEST, 97, 400, SMALLEST };

	fake_urdma_at_resize = at_resize;
	for (unsigned int gone = 0; gone < 300; gone += 7) {
		for (unsigned int waiting = 0; waiting < 5; waiting++) {
			for (size_t i = 0; i < 5; i++) {
				uint32_t entries;

				for (unsigned int n = 0; n < gone % 90; n++) {
					complete(1);
					assert_int_equal(poll_some(4), 1);
				}
				before_change = gone % 3;
				after_change = gone % 5;
				complete(waiting);
				assert_int_equal(resize(sizes[i]), 0);
				entries = fake_urdma_cqes(cq);
				assert_true((uint32_t)cq->cqe == entries / 4 * 3);
				assert_true((uint32_t)cq->cqe >= sizes[i]);
				poll_some(2);
				/* the rest of it, and once around the ring */
				while (poll_some(3))
					;
				assert_int_equal(polled, written);
			}
		}
	}
}

/* Full to the last possible entry, and the index told to the NIC counts on. */
static void full(void **state)
{
	complete(SMALLEST);
	assert_int_equal(resize(SMALLEST + 1), 0);
	complete(SMALLEST);
	*fake_doorbell(URDMA_DB_CQ) = 0;
	assert_int_equal(resize(300), 0);
	/* the NIC is told at once of the room in the old ring: none here */
	assert_true(*fake_doorbell(URDMA_DB_CQ) >> 32 == 0);
	complete(10);
	assert_int_equal(poll_some(256), 2 * SMALLEST + 10);
	assert_int_equal(poll_some(1), 0);
	/* at each quarter of a ring of 512 */
	assert_true(written - (*fake_doorbell(URDMA_DB_CQ) >> 32) < 128);
	assert_int_equal(fake_ops->req_notify_cq(cq, 0), 0);
	assert_true(*fake_doorbell(URDMA_DB_CQ) >> 32 == written);
	/* down to the smallest size, as full as that may be */
	complete(SMALLEST);
	assert_int_equal(resize(SMALLEST), 0);
	assert_int_equal(fake_urdma_cqes(cq), 128);
	assert_int_equal(poll_some(256), SMALLEST);
}

static void refused(void **state)
{
	int cqe;

	assert_int_equal(fake_ops->resize_cq(cq, 0), EINVAL);
	assert_int_equal(fake_ops->resize_cq(cq, -1), EINVAL);
	assert_int_equal(resize((3u << 14) + 1), EINVAL);
	assert_int_equal(resize(3u << 14), 0);
	cqe = cq->cqe;
	assert_int_equal(cqe, 3 << 14);
	complete(200);
	/* more CQEs wait than the requested size: the provider refuses, though the ring would have
	 * room */
	assert_int_equal(resize(199), EINVAL);
	assert_int_equal(resize(1), EINVAL);
	/* it comes during the command: the NIC refuses */
	before_change = 400;
	after_change = 0;
	fake_urdma_at_resize = at_resize;
	assert_int_equal(resize(200), EINVAL);
	fake_urdma_at_resize = NULL;
	/* the kernel may have other reasons */
	fake_error = ENOMEM;
	assert_int_equal(resize(700), ENOMEM);
	fake_error = 0;
	assert_int_equal(cq->cqe, cqe);
	assert_int_equal(fake_urdma_cqes(cq), 1 << 16);
	while (poll_some(7))
		;
	assert_int_equal(polled, written);
	/* the same ring, whatever size is requested */
	assert_int_equal(resize((3u << 13) + 1), 0);
	assert_int_equal(cq->cqe, cqe);
}

/* Before the NIC has its smaller ring, it is told the consumer index at each quarter of that ring's
 * size. */
static void told_in_time(void **state)
{
	assert_int_equal(resize(1000), 0);
	complete(10);
	assert_int_equal(poll_some(256), 10);
	*fake_doorbell(URDMA_DB_CQ) = 0;
	assert_int_equal(resize(SMALLEST), 0);
	/* at the change, however few were polled */
	assert_true(*fake_doorbell(URDMA_DB_CQ) >> 32 == 10);
	complete(31);
	assert_int_equal(poll_some(256), 31);
	assert_true(*fake_doorbell(URDMA_DB_CQ) >> 32 == 10);
	complete(1);
	assert_int_equal(poll_some(256), 1);
	assert_true(*fake_doorbell(URDMA_DB_CQ) >> 32 == 42);
}

/*
 * A CQE comes to the new ring while the command runs, and its event wakes a program that polls.
 * There is no other event for this CQE, so the poll has to find it. CQEs in the old ring come
 * first.
 */
static bool found;

static void poll_at_resize(bool done)
{
	complete(done ? after_change : before_change);
	if (done) {
		while (poll_some(3))
			;
		/* checked later: the provider holds a mutex here */
		found = polled == written;
		complete(2);
	}
}

static void seen_before_the_end(void **state)
{
	fake_urdma_at_resize = poll_at_resize;
	for (unsigned int i = 0; i < 64; i++) {
		before_change = i & 3;
		after_change = i >> 2 & 3;
		complete(i >> 4 & 3);
		assert_int_equal(resize(i & 1 ? SMALLEST : 700), 0);
		assert_true(found);
		assert_int_equal(poll_some(64), 2);
		assert_int_equal(poll_some(64), 0);
	}
}

static void die_at_resize(bool done)
{
	poll_at_resize(done);
	if (done)
		fake_error = EIO;
}

/* The device dies when polling has changed to the new ring: the new ring stays, and the old one is
 * freed. */
static void dies_behind_the_change(void **state)
{
	before_change = 2;
	after_change = 1;
	fake_urdma_at_resize = die_at_resize;
	complete(3);
	assert_int_equal(resize(700), EIO);
	assert_true(found);
	assert_int_equal(poll_some(64), 2);
	assert_int_equal(poll_some(64), 0);
}

/*
 * A QP is destroyed: its CQEs are dropped in the new ring, also those taken over from the old one.
 */
static void forgets(void **state)
{
	before_change = 3;
	after_change = 4;
	fake_urdma_at_resize = at_resize;
	complete(5);
	assert_int_equal(resize(500), 0);
	fake_urdma_at_resize = NULL;
	assert_int_equal(fake_ops->destroy_qp(qp), 0);
	qp = NULL;
	assert_int_equal(poll_some(256), 0);
}

static pthread_t resetter;
static _Atomic(bool) was_reset;

static void *reset_qp(void *arg)
{
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_RESET };
	int err = fake_ops->modify_qp(qp, &to, IBV_QP_STATE);

	was_reset = true;
	return (void *)(intptr_t)err;
}

/* A thread resets the QP while the command runs. It has the time to, and may have to wait for the
 * command's end. */
static void reset_at_resize(bool done)
{
	complete(done ? after_change : before_change);
	if (!done)
		return;
	assert_int_equal(pthread_create(&resetter, NULL, reset_qp, NULL), 0);
	for (unsigned int i = 0; i < 50 && !was_reset; i++)
		usleep(1000);
}

/* A QP is reset meanwhile: its CQEs are dropped in both rings. */
static void forgets_beside(void **state)
{
	void *err;

	before_change = 3;
	after_change = 4;
	was_reset = false;
	fake_urdma_at_resize = reset_at_resize;
	complete(5);
	assert_int_equal(resize(500), 0);
	assert_int_equal(pthread_join(resetter, &err), 0);
	assert_null(err);
	assert_int_equal(poll_some(256), 0);
}

/* Another thread polls all the time, with and without extended polling. */
static _Atomic(bool) stop;

static void *poller(void *arg)
{
	while (!stop) {
		poll_some(5);
		sched_yield();
	}
	return NULL;
}

static void beside_a_poller(void **state)
{
	static const unsigned int sizes[] = { 96, 2000, 200, 97, 4000, 96, 300 };
	pthread_t thread;

	before_change = after_change = 2;
	fake_urdma_at_resize = at_resize;
	assert_int_equal(pthread_create(&thread, NULL, poller, NULL), 0);
	for (unsigned int i = 0; i < 3000; i++) {
		complete(i % 17);
		while (written - polled > 60)
			sched_yield();
		assert_int_equal(resize(sizes[i % 7]), 0);
	}
	while (polled != written)
		sched_yield();
	stop = true;
	pthread_join(thread, NULL);
}

static void moderation(void **state)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { 12, 34 } };

	assert_int_equal(fake_ops->modify_cq(cq, &attr), 0);
	assert_int_equal(fake_moderation.cq_count, 12);
	assert_int_equal(fake_moderation.cq_period, 34);
	fake_error = EINVAL;
	assert_int_equal(fake_ops->modify_cq(cq, &attr), EINVAL);
}

/* The flag reaches the kernel if the NIC supports it. */
static void overrun(void **state)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN | IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	struct ibv_cq_ex *made = fake_ops->create_cq_ex(ctx, &attr);

	assert_non_null(made);
	assert_true(fake_cq_flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
	assert_int_equal(fake_ops->destroy_cq(ibv_cq_ex_to_cq(made)), 0);
	attr.flags |= 1 << 30;
	assert_null(fake_ops->create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);

	teardown(state);
	fake_urdma_features = URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_RC_WRITE;
	ctx = fake_open();
	attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	assert_null(fake_ops->create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	fake_close(ctx);
	setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_place),
		TEST(full),
		TEST(refused),
		TEST(seen_before_the_end),
		TEST(told_in_time),
		TEST(forgets),
		TEST(dies_behind_the_change),
		TEST(forgets_beside),
		TEST(moderation),
		TEST(overrun),
		TEST(beside_a_poller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
