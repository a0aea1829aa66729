// SPDX-License-Identifier: Apache-2.0
/*
 * Drives the data path of the provider that is linked in, for callgrind to count: instructions.sh
 * runs this. callgrind counts while ?rdma_post_send(), ?rdma_post_recv() or ?rdma_poll_cq() runs,
 * and writes out and clears its count when row_end() is called. Each such count has a line on
 * stdout: the number to divide it by (of work requests, completions or empty polls), and a name.
 * Counts with the same name add up; "-" is not counted.
 *
 * Several rounds of all rings are counted, so that occasional work has its share.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake_nic.h"
#include "fake_verbs.h"

#define BYTES  64
#define LIST   16
#define DEPTH  64
#define CQES   96
#define ROUNDS 8

static struct ibv_cq *cq;
/* All rows except one use only the first. */
static struct ibv_qp *qps[2];
static uint8_t data[BYTES];

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "instructions: %s\n", what);
	exit(2);
}

static void open_nic(void)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = BYTES,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_context *ctx = fake_open();
	struct ibv_pd *pd;

	check(ctx, "open");
	pd = fake_ops->alloc_pd(ctx);
	check(pd, "alloc_pd");
	cq = fake_ops->create_cq(ctx, CQES, NULL, 0);
	check(cq, "create_cq");
	attr.send_cq = cq;
	attr.recv_cq = cq;
	for (unsigned int i = 0; i < 2; i++) {
		qps[i] = fake_ops->create_qp(pd, &attr);
		check(qps[i], "create_qp");
		check(!fake_ops->modify_qp(qps[i], &rts, IBV_QP_STATE), "modify_qp");
	}
}

static void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	check(!ibv_post_send(qp, wr, &bad), "post_send");
}

static void post_recv(struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	check(!ibv_post_recv(qps[0], wr, &bad), "post_recv");
}

static void poll(int n)
{
	struct ibv_wc wc[LIST];

	check(ibv_poll_cq(cq, n ? n : 1, wc) == n, "poll_cq");
	for (int i = 0; i < n; i++)
		check(wc[i].status == IBV_WC_SUCCESS, "status");
}

/* Completes n WQEs, and polls for their completions at once. */
static void poll_for(bool recv, int n)
{
	for (int i = 0; i < n; i++)
		fake_nic_complete(cq, qps[0], recv);
	poll(n);
}

/* callgrind writes out here: the function must not be inlined, copied or removed. */
__attribute__((noinline)) static void row_end(void)
{
	__asm__ volatile("");
}

/* Assigns the counts since the last call to this row. */
static void row(const char *name, unsigned int n)
{
	printf("%u %s\n", n, name);
	row_end();
}

int main(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = BYTES, .lkey = 0x100 };
	struct ibv_send_wr write = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = 0x10000, .rkey = 0x200 },
	};
	struct ibv_send_wr write_inline = write, list[LIST];
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };

	write_inline.send_flags = IBV_SEND_INLINE;
	for (unsigned int i = 0; i < LIST; i++) {
		list[i] = write;
		list[i].next = i + 1 < LIST ? &list[i + 1] : NULL;
	}
	open_nic();
	/* The first calls resolve the symbols of libc. */
	post_send(qps[0], &write_inline);
	post_recv(&recv);
	poll_for(false, 1);
	poll_for(true, 1);
	row("-", 1);

	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (unsigned int i = 0; i < DEPTH; i++)
			post_send(qps[0], &write);
		row("WRITE", DEPTH);
		for (unsigned int i = 0; i < DEPTH; i++)
			poll_for(false, 1);
		row("poll of 1", DEPTH);

		for (unsigned int i = 0; i < DEPTH / LIST; i++)
			post_send(qps[0], list);
		row("WRITE in a list of 16, each", DEPTH);
		for (unsigned int i = 0; i < DEPTH / LIST; i++)
			poll_for(false, LIST);
		row("poll of 16, each", DEPTH);

		for (unsigned int i = 0; i < DEPTH; i++)
			post_send(qps[i % 2], &write);
		row("-", 1);
		for (unsigned int i = 0; i < DEPTH; i++) {
			fake_nic_complete(cq, qps[i % 2], false);
			if (i % LIST == LIST - 1)
				poll(LIST);
		}
		row("poll of 16 of two QPs in turn, each", DEPTH);

		for (unsigned int i = 0; i < DEPTH; i++)
			post_send(qps[0], &write_inline);
		row("WRITE inline", DEPTH);
		for (unsigned int i = 0; i < DEPTH / LIST; i++)
			poll_for(false, LIST);
		row("-", 1);

		for (unsigned int i = 0; i < DEPTH; i++)
			post_recv(&recv);
		row("receive", DEPTH);
		for (unsigned int i = 0; i < DEPTH / LIST; i++)
			poll_for(true, LIST);
		row("poll of 16 receives, each", DEPTH);

		for (unsigned int i = 0; i < DEPTH; i++)
			poll(0);
		row("empty poll", DEPTH);
	}
	return 0;
}
