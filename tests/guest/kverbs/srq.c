// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * kverbs: shared receive queues. A QP of side B with an SRQ replaces its RC QP.
 */
#include <linux/delay.h>
#include <linux/slab.h>

#include "kverbs.h"

/* the requested size; the SRQ may be larger */
#define WRS 20
/* Message i is at this offset in the buffers of both sides. */
#define AT(i) ((i)*1024)
#define LEN   1000

struct shared {
	struct ib_srq *srq;
	u32 max_wr;
};

static int post_one(struct shared *sh, struct side *s, u32 i, struct op **opp)
{
	struct ib_sge sge = sge_of(s, AT(i), 1024);
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	const struct ib_recv_wr *bad;
	struct op *op = op_get(s->t);

	wr.wr_cqe = &op->cqe;
	*opp = op;
	return ib_post_srq_recv(sh->srq, &wr, &bad);
}

static int send_one(struct side *s, u32 i)
{
	struct ib_sge sge = sge_of(s, AT(i), LEN);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };

	memset(s->buf + AT(i), 0x10 + i, LEN);
	memset(s->peer->buf + AT(i), 0, 1024);
	return send_wait(s, &wr, IB_WC_SUCCESS);
}

static int want_one(struct side *s, u32 i, struct op *op)
{
	TRY(op_want(s->rcq, op, IB_WC_SUCCESS));
	WANT(op->wc.byte_len == LEN && op->wc.qp == s->qp && op->wc.opcode == IB_WC_RECV);
	WANT(!memchr_inv(s->buf + AT(i), 0x10 + i, LEN) && !s->buf[AT(i) + LEN]);
	return 0;
}

/* More messages than it has places, one after the other, and never more at a time than fit. */
static int want_rounds(struct test *t, struct shared *sh)
{
	struct op *recv[64], *more;
	u32 round, i;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < sh->max_wr; i++)
			TRY(post_one(sh, &t->b, i, &recv[i]));
		WANT(post_one(sh, &t->b, 0, &more) == -ENOMEM);
		for (i = 0; i < sh->max_wr; i++)
			TRY(send_one(&t->a, i));
		for (i = 0; i < sh->max_wr; i++)
			TRY(want_one(&t->b, i, recv[i]));
	}
	return 0;
}

static int want_limit(struct test *t, struct shared *sh)
{
	struct ib_srq_attr attr = { .srq_limit = 3, .max_wr = 1000 };
	struct op *recv[4];
	u32 i;

	for (i = 0; i < 4; i++)
		TRY(post_one(sh, &t->b, i, &recv[i]));
	TRY(ib_modify_srq(sh->srq, &attr, IB_SRQ_LIMIT));
	TRY(ib_query_srq(sh->srq, &attr));
	WANT(attr.srq_limit == 3 && attr.max_wr == sh->max_wr);
	TRY(send_one(&t->a, 0));
	/* Three are left, which is not fewer than the limit. */
	msleep(20);
	WANT(!atomic_read(&t->b.events[IB_EVENT_SRQ_LIMIT_REACHED]));
	TRY(send_one(&t->a, 1));
	TRY(want_event(&t->b, IB_EVENT_SRQ_LIMIT_REACHED));
	/* It is armed for one event only. */
	TRY(send_one(&t->a, 2));
	TRY(send_one(&t->a, 3));
	TRY(ib_query_srq(sh->srq, &attr));
	WANT(!attr.srq_limit);
	WANT(atomic_read(&t->b.events[IB_EVENT_SRQ_LIMIT_REACHED]) == 1);
	for (i = 0; i < 4; i++)
		TRY(want_one(&t->b, i, recv[i]));

	attr.srq_limit = sh->max_wr + 1;
	WANT(ib_modify_srq(sh->srq, &attr, IB_SRQ_LIMIT) == -EINVAL);
	WANT(ib_modify_srq(sh->srq, &attr, IB_SRQ_MAX_WR) == -EOPNOTSUPP);
	return 0;
}

/* A message that finds no WQE waits for one that is posted later. */
static int want_rnr(struct test *t, struct shared *sh)
{
	struct ib_sge sge = sge_of(&t->a, AT(0), LEN);
	struct op *send = op_get(t), *recv;
	struct ib_send_wr wr = {
		.wr_cqe = &send->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};

	memset(t->a.buf + AT(0), 0x10, LEN);
	memset(t->b.buf + AT(0), 0, 1024);
	TRY(ib_post_send(t->a.qp, &wr, NULL));
	msleep(20);
	TRY(post_one(sh, &t->b, 0, &recv));
	TRY(want_one(&t->b, 0, recv));
	return op_want(t->a.scq, send, IB_WC_SUCCESS);
}

/* A QP in ERR takes no more WQEs, and leaves those that others may use. */
static int want_last_wqe(struct test *t, struct shared *sh)
{
	struct ib_qp_attr err = { .qp_state = IB_QPS_ERR };
	struct ib_recv_wr wr = {};
	struct op *recv;

	TRY(post_one(sh, &t->b, 1, &recv));
	TRY(ib_modify_qp(t->b.qp, &err, IB_QP_STATE));
	TRY(want_event(&t->b, IB_EVENT_QP_LAST_WQE_REACHED));
	ib_drain_qp(t->b.qp);
	WANT(ib_post_recv(t->b.qp, &wr, NULL) == -EINVAL);
	WANT(!completion_done(&recv->done));
	TRY(connect_sides(t));
	TRY(send_one(&t->a, 1));
	return want_one(&t->b, 1, recv);
}

static int with_qp(struct test *t, struct shared *sh)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	TRY(ib_query_qp(t->b.qp, &attr, IB_QP_CAP, &init));
	WANT(init.srq == sh->srq && !init.cap.max_recv_wr && !init.cap.max_recv_sge);
	TRY(connect_sides(t));
	TRY(want_rounds(t, sh));
	TRY(want_limit(t, sh));
	TRY(want_rnr(t, sh));
	TRY(want_last_wqe(t, sh));
	/* A QP uses it. */
	WANT(ib_destroy_srq_user(sh->srq, NULL) == -EBUSY);
	return 0;
}

static int with_srq(struct test *t, struct shared *sh)
{
	struct ib_qp_init_attr init = {
		.event_handler = side_event,
		.qp_context = &t->b,
		.send_cq = t->b.scq,
		.recv_cq = t->b.rcq,
		.srq = sh->srq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 77, .max_send_sge = 1 },
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *rc = t->b.qp;
	int err;

	t->b.qp = ib_create_qp(t->b.pd, &init);
	err = PTR_ERR_OR_ZERO(t->b.qp);
	if (!err) {
		err = with_qp(t, sh);
		ib_destroy_qp(t->b.qp);
	}
	t->b.qp = rc;
	return err;
}

int check_srq(struct test *t)
{
	struct ib_srq_init_attr init = {
		.event_handler = side_event,
		.srq_context = &t->b,
		.attr = { .max_wr = WRS, .max_sge = 2 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_device_attr *attrs = &t->b.dev->attrs;
	struct ib_srq_attr attr;
	struct shared sh;
	int err;

	if (!attrs->max_srq) {
		WANT(ib_create_srq(t->b.pd, &init) == ERR_PTR(-EOPNOTSUPP));
		return 0;
	}
	WANT(attrs->max_srq_wr >= WRS && attrs->max_srq_sge >= 2);
	init.attr.max_wr = attrs->max_srq_wr + 1;
	WANT(ib_create_srq(t->b.pd, &init) == ERR_PTR(-EINVAL));
	init.attr.max_wr = WRS;
	sh.srq = ib_create_srq(t->b.pd, &init);
	TRY(PTR_ERR_OR_ZERO(sh.srq));
	sh.max_wr = init.attr.max_wr;
	err = ib_query_srq(sh.srq, &attr);
	if (!err && (attr.max_wr != sh.max_wr || attr.max_sge < 2 || attr.srq_limit ||
		     sh.max_wr < WRS || sh.max_wr > 60))
		err = -EIO;
	if (!err)
		err = with_srq(t, &sh);
	ib_destroy_srq(sh.srq);
	return err;
}
