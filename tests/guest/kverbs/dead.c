// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * kverbs: a device dies while a consumer uses CQs with every kind of polling.
 *
 * Work requests that were posted before, or are posted afterwards, complete as flushed, in order,
 * and draining ends. The completion handler must not be called for a CQ without news: one that was
 * never armed (the core warns of a call for a CQ that is polled directly), or one whose last QP is
 * gone. In the latter case ib_free_cq() stops the work that a call has started, and a later call
 * would start it again.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "kverbs.h"

/* Number of CQs, for each way of polling, that are freed while the device is dead. */
#define SPARES 24

struct spare {
	struct ib_cqe cqe;
	struct ib_cq *cq;
	struct ib_qp *qp;
	/* of the core, and whether it may still be called */
	void (*handler)(struct ib_cq *cq, void *context);
	bool closed;
};

struct dead_test {
	struct test t[MODES];
	struct spare spare[MODES][SPARES];
	/* work requests of side A, in the order of posting */
	struct op *recv[MODES][5];
	struct op *send[MODES][3];
	/* of side A, too; NULL: the device has no SRQs */
	struct ib_srq *srq;
	struct ib_qp *srq_qp;
	struct task_struct *maker;
};

/* Calls for CQs that have no QP. */
static atomic_t late_calls;

/* Runs before the core's handler. The CQ's context is its struct spare. */
static void spare_comp(struct ib_cq *cq, void *context)
{
	struct spare *spare = context;

	if (READ_ONCE(spare->closed))
		atomic_inc(&late_calls);
	spare->handler(cq, context);
}

static void spare_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

static int qp_to_init(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = PORT };

	return ib_modify_qp(qp, &attr,
			    IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS);
}

static int spare_post(struct spare *spare)
{
	struct ib_recv_wr wr = { .wr_cqe = &spare->cqe };

	return ib_post_recv(spare->qp, &wr, NULL);
}

static int spare_make(struct spare *spare, struct side *s, enum ib_poll_context ctx)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq;
	struct ib_qp *qp;

	spare->cqe.done = spare_done;
	cq = ib_alloc_cq(s->dev, spare, 16, 0, ctx);
	TRY(PTR_ERR_OR_ZERO(cq));
	spare->cq = cq;
	spare->handler = cq->comp_handler;
	cq->comp_handler = spare_comp;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(s->pd, &init);
	TRY(PTR_ERR_OR_ZERO(qp));
	spare->qp = qp;
	TRY(qp_to_init(qp));
	return spare_post(spare);
}

/* The last QP is destroyed. */
static void spare_close(struct spare *spare)
{
	if (spare->qp)
		ib_destroy_qp(spare->qp);
	spare->qp = NULL;
	WRITE_ONCE(spare->closed, true);
}

static void spare_free(struct spare *spare)
{
	spare_close(spare);
	if (spare->cq)
		ib_free_cq(spare->cq);
	spare->cq = NULL;
}

/* Makes and frees CQs until the device refuses; it may die at any step of that. */
static int maker(void *data)
{
	struct ib_device *dev = data;
	struct ib_cq *cq;
	u32 n = 0;

	while (!kthread_should_stop()) {
		cq = ib_alloc_cq(dev, NULL, 16, n % dev->num_comp_vectors,
				 n % 2 ? IB_POLL_WORKQUEUE : IB_POLL_SOFTIRQ);
		n++;
		if (IS_ERR(cq))
			msleep(20);
		else
			ib_free_cq(cq);
	}
	return 0;
}

static int post_before(struct dead_test *d, int m)
{
	struct side *a = &d->t[m].a;
	struct ib_sge sge = sge_of(a, 0, 64);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	int i;

	for (i = 0; i < 4; i++)
		TRY(post_recv(a, i * 64, 64, &d->recv[m][i]));
	/* B has no receives, so these requests wait */
	for (i = 0; i < 3; i++) {
		d->send[m][i] = op_get(&d->t[m]);
		wr.wr_cqe = &d->send[m][i]->cqe;
		wr.send_flags = i & 1 ? 0 : IB_SEND_SIGNALED;
		TRY(ib_post_send(a->qp, &wr, NULL));
	}
	return 0;
}

static int srq_make(struct dead_test *d)
{
	struct side *a = &d->t[0].a;
	struct ib_srq_init_attr srq = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_qp_init_attr init = {
		.send_cq = a->scq,
		.recv_cq = a->rcq,
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.qp_type = IB_QPT_RC,
	};

	if (!a->dev->attrs.max_srq)
		return 0;
	d->srq = ib_create_srq(a->pd, &srq);
	TRY(PTR_ERR_OR_ZERO(d->srq));
	init.srq = d->srq;
	d->srq_qp = ib_create_qp(a->pd, &init);
	TRY(PTR_ERR_OR_ZERO(d->srq_qp));
	return qp_to_init(d->srq_qp);
}

static void srq_free(struct dead_test *d)
{
	if (!IS_ERR_OR_NULL(d->srq_qp))
		ib_destroy_qp(d->srq_qp);
	if (!IS_ERR_OR_NULL(d->srq))
		ib_destroy_srq(d->srq);
}

/* The core waits up to a minute for "last WQE reached", and then goes on without it. */
static int want_srq_drained(struct dead_test *d)
{
	unsigned long end = jiffies + LIMIT;

	if (!d->srq_qp)
		return 0;
	ib_drain_qp(d->srq_qp);
	WANT(time_before(jiffies, end));
	return 0;
}

static int wait_for_end(struct side *a)
{
	unsigned long end = jiffies + 30 * LIMIT; /* the script may be slow */
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	pr_info("waiting for the end of %s\n", dev_name(&a->dev->dev));
	while (!ib_query_qp(a->qp, &attr, IB_QP_STATE, &init)) {
		WANT(time_before(jiffies, end));
		msleep(100);
	}
	return 0;
}

/* Nothing completes normally any more: requests posted before and now complete as flushed. */
static int want_flushed(struct dead_test *d, int m)
{
	struct op **recv = d->recv[m], **send = d->send[m];
	struct side *a = &d->t[m].a;
	int i;

	/* A consumer that does not know of it goes on posting, and waits for completions. */
	TRY(post_recv(a, 0, 64, &recv[4]));
	for (i = 0; i < 5; i++) {
		TRY(op_want(a->rcq, recv[i], IB_WC_WR_FLUSH_ERR));
		WANT(!i || recv[i]->order > recv[i - 1]->order);
	}
	for (i = 0; i < 3; i++) {
		TRY(op_want(a->scq, send[i], IB_WC_WR_FLUSH_ERR));
		WANT(!i || send[i]->order > send[i - 1]->order);
	}
	ib_drain_qp(a->qp);
	return 0;
}

/* CQs are freed while they and others are about to be called, because work was just posted. */
static int free_spares(struct dead_test *d, int m)
{
	struct side *a = &d->t[m].a;
	struct op *op;
	int i;

	for (i = 0; i < SPARES; i++) {
		TRY(post_recv(a, 0, 64, &op));
		TRY(spare_post(&d->spare[m][i]));
		if (i & 1) {
			/* others are called while this one waits for its end */
			spare_close(&d->spare[m][i]);
			TRY(op_want(a->rcq, op, IB_WC_WR_FLUSH_ERR));
			TRY(post_recv(a, 0, 64, &op));
			msleep(2);
		}
		spare_free(&d->spare[m][i]);
		TRY(op_want(a->rcq, op, IB_WC_WR_FLUSH_ERR));
	}
	WANT(!atomic_read(&late_calls));
	return 0;
}

static int make_all(struct dead_test *d, struct ib_device *a, struct ib_device *b)
{
	int m, i;

	for (m = 0; m < MODES; m++) {
		TRY(test_make(&d->t[m], a, b, modes[m].ctx));
		TRY(connect_sides(&d->t[m]));
		for (i = 0; i < SPARES; i++)
			TRY(spare_make(&d->spare[m][i], &d->t[m].a, modes[m].ctx));
		TRY(post_before(d, m));
	}
	TRY(srq_make(d));
	d->maker = kthread_run(maker, a, "kverbs-maker");
	TRY(PTR_ERR_OR_ZERO(d->maker));
	return wait_for_end(&d->t[0].a);
}

static void free_all(struct dead_test *d)
{
	int m, i;

	if (!IS_ERR_OR_NULL(d->maker))
		kthread_stop(d->maker);
	srq_free(d);
	for (m = 0; m < MODES; m++) {
		for (i = 0; i < SPARES; i++)
			spare_free(&d->spare[m][i]);
		test_free(&d->t[m]);
	}
}

unsigned int run_dead(struct ib_device *a, struct ib_device *b, unsigned int *passed)
{
	struct dead_test *d = kzalloc(sizeof(*d), GFP_KERNEL);
	unsigned int failed = 0;
	int err, m;

	if (!d)
		return 1;
	err = make_all(d, a, b);
	if (!err)
		err = want_srq_drained(d);
	for (m = 0; m < MODES; m++) {
		if (!err)
			err = want_flushed(d, m);
		if (!err)
			err = free_spares(d, m);
		if (err) {
			pr_err("%s: dead: FAILED: %d\n", modes[m].name, err);
			failed++;
			break;
		}
		pr_info("%s: dead: ok\n", modes[m].name);
		(*passed)++;
	}
	free_all(d);
	kfree(d);
	return failed;
}
