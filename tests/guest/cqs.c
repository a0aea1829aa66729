// SPDX-License-Identifier: Apache-2.0
/*
 * cqs DEVICE GID-INDEX: completion queues of two QPs of the device, which are connected to each
 * other. Their rings are replaced while threads poll them and sleep on their events; their events
 * are moderated and counted; and one overruns. Exit status 0 if each completion came once and in
 * order, no event was missing, and invalid requests were refused.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define WANT(cond)                                                                               \
	do {                                                                                     \
		if (!(cond)) {                                                                   \
			fprintf(stderr, "cqs: line %d: not so: %s, errno %d\n", __LINE__, #cond, \
				errno);                                                          \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)

#define DEPTH	 2048u
#define WINDOW	 60u   /* messages in flight; the smallest CQ has room for 96 */
#define MESSAGES 6000u /* at least; they go on until the CQs have been resized RESIZES times */
#define RESIZES	 40u
#define WAIT_MS	 60000

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static union ibv_gid gid;
static int gid_index;
static struct ibv_mr *mr;
static uint8_t buffer[64];

struct pair {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_comp_channel *channel;
	struct ibv_qp *from, *to;
	/* messages: posted, sent, received, and the total: unknown before the last */
	_Atomic(uint64_t) posted, sent, received, total;
	atomic_bool enough; /* the stream may end */
	unsigned int events;
};

static void open_pair(struct pair *p, struct ibv_cq *send_cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 8 },
	};
	struct ibv_port_attr port;
	const uint32_t psn = random_psn();

	memset(p, 0, sizeof(*p));
	WANT(!ibv_query_port(ctx, 1, &port));
	WANT(p->channel = ibv_create_comp_channel(ctx));
	p->send_cq = send_cq;
	if (!send_cq)
		WANT(p->send_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0));
	WANT(p->recv_cq = ibv_create_cq(ctx, 1, NULL, p->channel, 0));
	init.send_cq = p->send_cq;
	init.recv_cq = p->recv_cq;
	WANT(p->from = ibv_create_qp(pd, &init));
	WANT(p->to = ibv_create_qp(pd, &init));
	WANT(!connect_rc(p->from, 0, (uint8_t)gid_index, port.active_mtu, psn,
			 &(struct rc_end){ gid, p->to->qp_num, psn }));
	WANT(!connect_rc(p->to, 0, (uint8_t)gid_index, port.active_mtu, psn,
			 &(struct rc_end){ gid, p->from->qp_num, psn }));
}

static void close_pair(struct pair *p)
{
	WANT(!ibv_destroy_qp(p->from));
	WANT(!ibv_destroy_qp(p->to));
	WANT(!ibv_destroy_cq(p->send_cq));
	WANT(!ibv_destroy_cq(p->recv_cq));
	WANT(!ibv_destroy_comp_channel(p->channel));
}

static void post(struct pair *p)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer, .length = 8, .lkey = mr->lkey };
	struct ibv_recv_wr recv = { .wr_id = p->posted, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = p->posted,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_INLINE },
			   *bad_send;

	WANT(!ibv_post_recv(p->to, &recv, &bad_recv));
	WANT(!ibv_post_send(p->from, &send, &bad_send));
	p->posted++;
}

/* The next completions of a CQ, which belong to one QP: one by one, in order. */
static int take(struct ibv_cq *cq, _Atomic(uint64_t) *next, int n)
{
	struct ibv_wc wc[16];
	int got = ibv_poll_cq(cq, n < 16 ? n : 16, wc);

	WANT(got >= 0);
	for (int i = 0; i < got; i++) {
		WANT(wc[i].status == IBV_WC_SUCCESS);
		WANT(wc[i].wr_id == *next);
		(*next)++;
	}
	return got;
}

static bool event_comes(struct pair *p, int ms)
{
	struct pollfd fd = { .fd = p->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) != 1)
		return false;
	WANT(!ibv_get_cq_event(p->channel, &cq, &context));
	WANT(cq == p->recv_cq);
	ibv_ack_cq_events(cq, 1);
	p->events++;
	return true;
}

static void *poller(void *arg)
{
	struct pair *p = arg;

	while (p->sent < p->total)
		if (!take(p->send_cq, &p->sent, 16))
			sched_yield();
	return NULL;
}

/* Arms, polls everything, sleeps: a missing event causes a time-out. */
static void *sleeper(void *arg)
{
	struct pair *p = arg;

	while (p->received < p->total) {
		WANT(!ibv_req_notify_cq(p->recv_cq, 0));
		while (take(p->recv_cq, &p->received, 5))
			;
		if (p->received < p->total)
			WANT(event_comes(p, WAIT_MS));
	}
	return NULL;
}

static void *stream(void *arg)
{
	struct pair *p = arg;

	while (p->posted < p->total) {
		while (p->posted - p->received >= WINDOW || p->posted - p->sent >= WINDOW)
			sched_yield();
		/* The last message wakes a sleeper that does not know the total yet. */
		if (p->enough && p->posted + 1 >= MESSAGES)
			p->total = p->posted + 1;
		post(p);
	}
	return NULL;
}

static void check_resize(void)
{
	static const int sizes[] = { 96, 1000, 97, 5000, 300, 96, 20000, 400 };
	pthread_t thread[3];
	unsigned int resized = 0;
	struct pair p;

	open_pair(&p, NULL);
	p.total = UINT64_MAX;
	WANT(!pthread_create(&thread[0], NULL, poller, &p));
	WANT(!pthread_create(&thread[1], NULL, sleeper, &p));
	WANT(!pthread_create(&thread[2], NULL, stream, &p));
	for (; p.sent < p.total || p.received < p.total; resized++) {
		struct ibv_cq *cq = resized & 1 ? p.send_cq : p.recv_cq;
		int size = sizes[resized / 2 % 8];

		WANT(!ibv_resize_cq(cq, size));
		WANT(cq->cqe >= size);
		p.enough = resized + 1 >= RESIZES;
	}
	for (int i = 0; i < 3; i++)
		WANT(!pthread_join(thread[i], NULL));
	printf("%" PRIu64 " messages, CQs resized %u times, %u events\n", p.total, resized,
	       p.events);
	WANT(resized >= RESIZES);

	/* A size that is too small is refused, and completions stay. */
	WANT(!ibv_resize_cq(p.send_cq, 300));
	WANT(!ibv_resize_cq(p.recv_cq, 300));
	for (int i = 0; i < 90; i++)
		post(&p);
	while (p.received < p.posted - 60)
		take(p.recv_cq, &p.received, 1);
	while (p.sent < p.posted - 60)
		take(p.send_cq, &p.sent, 1);
	/* The last message is sent after all others have been received. */
	while (ibv_resize_cq(p.send_cq, 59) != EINVAL)
		sched_yield();
	while (ibv_resize_cq(p.recv_cq, 59) != EINVAL)
		sched_yield();
	WANT(ibv_resize_cq(p.recv_cq, 0) == EINVAL);
	WANT(ibv_resize_cq(p.recv_cq, 1 << 24) == EINVAL);
	WANT(!ibv_resize_cq(p.send_cq, 60));
	WANT(!ibv_resize_cq(p.recv_cq, 60));
	while (p.received < p.posted)
		take(p.recv_cq, &p.received, 16);
	while (p.sent < p.posted)
		take(p.send_cq, &p.sent, 16);
	WANT(!take(p.recv_cq, &p.received, 1) && !take(p.send_cq, &p.sent, 1));
	close_pair(&p);
}

static int moderate(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { count, period } };

	return ibv_modify_cq(cq, &attr);
}

/* Sends n messages; their completions are left in the receive CQ. */
static void send_some(struct pair *p, unsigned int n)
{
	while (n--)
		post(p);
	while (p->sent < p->posted)
		take(p->send_cq, &p->sent, 16);
}

static void check_moderation(void)
{
	struct ibv_device_attr_ex attr;
	struct pair p;
	unsigned int before;

	WANT(!ibv_query_device_ex(ctx, NULL, &attr));
	WANT(attr.cq_mod_caps.max_cq_count == 0xffff && attr.cq_mod_caps.max_cq_period == 0xffff);
	open_pair(&p, NULL);
	WANT(moderate(p.recv_cq, (uint16_t)(p.recv_cq->cqe + 1), 0) == EINVAL);
	WANT(!moderate(p.recv_cq, (uint16_t)(p.recv_cq->cqe + 1), 1));

	/* By number only. */
	WANT(!moderate(p.recv_cq, 8, 0));
	WANT(!ibv_req_notify_cq(p.recv_cq, 0));
	send_some(&p, 7);
	WANT(!event_comes(&p, 300));
	send_some(&p, 1);
	WANT(event_comes(&p, WAIT_MS));
	/* These have had their event: arming again gives none for them, and 8 more give one. */
	WANT(!ibv_req_notify_cq(p.recv_cq, 0));
	send_some(&p, 7);
	WANT(!event_comes(&p, 300));
	/* A new limit takes effect at once for waiting completions. */
	WANT(!moderate(p.recv_cq, 5, 0));
	WANT(event_comes(&p, WAIT_MS));

	/* By time only, and when the time comes before the number. */
	WANT(!moderate(p.recv_cq, 0, 50000));
	WANT(!ibv_req_notify_cq(p.recv_cq, 0));
	send_some(&p, 1);
	WANT(event_comes(&p, WAIT_MS));
	WANT(!moderate(p.recv_cq, 90, 1000));
	WANT(!ibv_req_notify_cq(p.recv_cq, 0));
	send_some(&p, 2);
	WANT(event_comes(&p, WAIT_MS));
	/* Moderation belongs to the CQ: it stays when the ring is replaced. */
	while (take(p.recv_cq, &p.received, 16))
		;
	WANT(!moderate(p.recv_cq, 8, 0));
	WANT(!ibv_resize_cq(p.recv_cq, 1000));
	WANT(!ibv_req_notify_cq(p.recv_cq, 0));
	send_some(&p, 7);
	WANT(!event_comes(&p, 300));
	send_some(&p, 1);
	WANT(event_comes(&p, WAIT_MS));
	while (take(p.recv_cq, &p.received, 16))
		;
	/* A limit that a ring of this size can never reach. */
	WANT(!moderate(p.recv_cq, 700, 0));
	WANT(ibv_resize_cq(p.recv_cq, 96) == EINVAL);

	/* A stream: one event per 16 messages, and one for the rest. */
	WANT(!moderate(p.recv_cq, 16, 20000));
	before = p.events;
	WANT(!ibv_req_notify_cq(p.recv_cq, 0));
	for (int i = 0; i < 40; i++) {
		send_some(&p, 16);
		WANT(event_comes(&p, WAIT_MS));
		while (take(p.recv_cq, &p.received, 16))
			;
		WANT(!ibv_req_notify_cq(p.recv_cq, 0));
	}
	printf("640 messages, %u events\n", p.events - before);
	WANT(p.events - before == 40);

	/* Without moderation it is as before. */
	WANT(!moderate(p.recv_cq, 0, 0));
	send_some(&p, 1);
	WANT(event_comes(&p, WAIT_MS));
	close_pair(&p);
}

static void check_overrun(bool ignored)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 1,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = ignored ? IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN : 0,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_qp_init_attr init;
	struct ibv_async_event event;
	struct ibv_qp_attr qp;
	struct pair p;

	WANT(cq);
	open_pair(&p, ibv_cq_ex_to_cq(cq));
	WANT(!ibv_resize_cq(p.recv_cq, DEPTH));
	/* the send CQ has room for 128 */
	for (int i = 0; i < 1000; i++)
		post(&p);
	if (ignored) {
		while (p.received < p.posted)
			take(p.recv_cq, &p.received, 16);
		WANT(poll(&fd, 1, 300) == 0);
		WANT(!ibv_query_qp(p.from, &qp, IBV_QP_STATE, &init));
		WANT(qp.qp_state == IBV_QPS_RTS);
	} else {
		bool cq_err = false;

		while (!cq_err) {
			WANT(poll(&fd, 1, WAIT_MS) == 1 && !ibv_get_async_event(ctx, &event));
			cq_err = event.event_type == IBV_EVENT_CQ_ERR &&
				 event.element.cq == p.send_cq;
			ibv_ack_async_event(&event);
		}
	}
	close_pair(&p);
	/* other events of the dead CQ's QPs */
	while (poll(&fd, 1, 0) == 1 && !ibv_get_async_event(ctx, &event))
		ibv_ack_async_event(&event);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	ctx = argc == 3 ? open_device(argv[1]) : NULL;
	if (!ctx) {
		fprintf(stderr, "usage: cqs DEVICE GID-INDEX\n");
		return 2;
	}
	gid_index = atoi(argv[2]);
	WANT(!ibv_query_gid(ctx, 1, gid_index, &gid));
	WANT(pd = ibv_alloc_pd(ctx));
	WANT(mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE));
	check_resize();
	check_moderation();
	check_overrun(true);
	check_overrun(false);
	return 0;
}
