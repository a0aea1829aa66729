// SPDX-License-Identifier: Apache-2.0
/*
 * qp_counters FROM GID-INDEX TO GID-INDEX: two RC QPs of device FROM, each connected to one of
 * device TO. They carry out operations read from standard input. First it prints "ready" and the
 * numbers of the QPs: both of FROM, then both of TO. Each line of input is "PAIR OPERATION NUMBER
 * BYTES", with the operations send, write, read and atomic of FROM; when all are complete it prints
 * "done".
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define WANT(cond)                                                                                \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "qp_counters: line %d: not so: %s, errno %d\n", __LINE__, \
				#cond, errno);                                                    \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#define PAIRS 2u
#define BYTES 65536u

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[PAIRS];
	union ibv_gid gid;
	uint8_t gid_index;
	enum ibv_mtu mtu;
	uint64_t buffer[BYTES / 8];
};

static struct side from, to;

static void open_side(struct side *s, const char *device, const char *gid_index)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_port_attr port;

	WANT(s->ctx = open_device(device));
	s->gid_index = (uint8_t)atoi(gid_index);
	WANT(!ibv_query_gid(s->ctx, 1, s->gid_index, &s->gid));
	WANT(!ibv_query_port(s->ctx, 1, &port));
	s->mtu = port.active_mtu;
	WANT(s->pd = ibv_alloc_pd(s->ctx));
	WANT(s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0));
	WANT(s->mr = ibv_reg_mr(s->pd, s->buffer, sizeof(s->buffer),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
	init.send_cq = init.recv_cq = s->cq;
	for (unsigned int i = 0; i < PAIRS; i++)
		WANT(s->qp[i] = ibv_create_qp(s->pd, &init));
}

static void connect_side(struct side *s, const struct side *peer, const uint32_t *psn)
{
	for (unsigned int i = 0; i < PAIRS; i++) {
		struct rc_end end = { peer->gid, peer->qp[i]->qp_num, psn[i] };

		WANT(!connect_rc(s->qp[i],
				 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
					 IBV_ACCESS_REMOTE_ATOMIC,
				 s->gid_index, s->mtu, psn[i], &end));
	}
}

static void complete(struct side *s)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(s->cq, 1, &wc)))
		sched_yield();
	WANT(n == 1);
	WANT(wc.status == IBV_WC_SUCCESS);
}

static void exchange(unsigned int pair, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)from.buffer, bytes, from.mr->lkey };
	struct ibv_sge place = { (uintptr_t)to.buffer, bytes, to.mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &place, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)to.buffer, to.mr->rkey } },
			   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to.buffer;
		wr.wr.atomic.rkey = to.mr->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	if (opcode == IBV_WR_SEND)
		WANT(!ibv_post_recv(to.qp[pair], &recv, &bad_recv));
	WANT(!ibv_post_send(from.qp[pair], &wr, &bad));
	complete(&from);
	if (opcode == IBV_WR_SEND)
		complete(&to);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
	} operations[] = {
		{ "send", IBV_WR_SEND },
		{ "write", IBV_WR_RDMA_WRITE },
		{ "read", IBV_WR_RDMA_READ },
		{ "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD },
	};
	uint32_t psn[PAIRS];
	unsigned int pair, n, bytes;
	char word[16], line[100];

	if (argc != 5) {
		fprintf(stderr, "usage: qp_counters FROM GID-INDEX TO GID-INDEX\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_side(&from, argv[1], argv[2]);
	open_side(&to, argv[3], argv[4]);
	for (unsigned int i = 0; i < PAIRS; i++)
		psn[i] = random_psn();
	connect_side(&from, &to, psn);
	connect_side(&to, &from, psn);
	printf("ready %u %u %u %u\n", from.qp[0]->qp_num, from.qp[1]->qp_num, to.qp[0]->qp_num,
	       to.qp[1]->qp_num);
	while (fgets(line, sizeof(line), stdin)) {
		unsigned int op = 0;

		WANT(sscanf(line, "%u %15s %u %u", &pair, word, &n, &bytes) == 4);
		WANT(pair < PAIRS && bytes <= BYTES);
		while (op < 4 && strcmp(word, operations[op].name))
			op++;
		WANT(op < 4);
		while (n--)
			exchange(pair, operations[op].opcode, bytes);
		printf("done\n");
	}
	return 0;
}
