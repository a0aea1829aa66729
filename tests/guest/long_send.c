// SPDX-License-Identifier: Apache-2.0
/*
 * long_send DEVICE GID-INDEX MEGABYTES: one SEND of this many MB from one QP of the device to
 * another one of the same device. Both lists of SGEs name the same memory again and again, so that
 * even 1 GB fits into a guest. Exit status 0 if both sides completed and the data are right.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define PIECES 16u /* SGEs of each list */

struct side {
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t *memory;
	struct ibv_sge sge[PIECES];
};

static void die(const char *what)
{
	fprintf(stderr, "long_send: %s\n", what);
	exit(1);
}

static void make(struct side *s, struct ibv_pd *pd, struct ibv_cq *cq, size_t piece)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 1,
			 .max_send_sge = PIECES,
			 .max_recv_sge = PIECES },
	};

	s->qp = ibv_create_qp(pd, &init);
	s->memory = calloc(1, piece);
	s->mr = s->memory ? ibv_reg_mr(pd, s->memory, piece, IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!s->qp || !s->mr)
		die("no QP, or no memory");
	for (unsigned int i = 0; i < PIECES; i++)
		s->sge[i] = (struct ibv_sge){ .addr = (uintptr_t)s->memory,
					      .length = (uint32_t)piece,
					      .lkey = s->mr->lkey };
}

int main(int argc, char **argv)
{
	struct ibv_recv_wr recv = { .num_sge = PIECES }, *bad_recv;
	struct ibv_send_wr send = { .num_sge = PIECES,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad_send;
	struct ibv_context *ctx = argc == 4 ? open_device(argv[1]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 2, NULL, NULL, 0) : NULL;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct side from, to;
	struct ibv_wc wc;
	const uint32_t psn = random_psn();
	size_t piece;
	int index;

	if (!cq || ibv_query_port(ctx, 1, &port))
		die("usage: long_send DEVICE GID-INDEX MEGABYTES");
	index = atoi(argv[2]);
	piece = ((size_t)atoi(argv[3]) << 20) / PIECES;
	if (!piece || ibv_query_gid(ctx, 1, index, &gid))
		die("no such GID, or no bytes");
	make(&from, pd, cq, piece);
	make(&to, pd, cq, piece);
	if (connect_rc(from.qp, 0, (uint8_t)index, port.active_mtu, psn,
		       &(struct rc_end){ gid, to.qp->qp_num, psn }) ||
	    connect_rc(to.qp, 0, (uint8_t)index, port.active_mtu, psn,
		       &(struct rc_end){ gid, from.qp->qp_num, psn }))
		die("the QPs cannot be connected");
	for (size_t i = 0; i < piece / 8; i++)
		from.memory[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	recv.sg_list = to.sge;
	send.sg_list = from.sge;
	if (ibv_post_recv(to.qp, &recv, &bad_recv) || ibv_post_send(from.qp, &send, &bad_send))
		die("posting failed");
	for (unsigned int done = 0; done < 2;) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			die(n < 0 ? "polling failed" : ibv_wc_status_str(wc.status));
		if (n && wc.opcode == IBV_WC_RECV && wc.byte_len != piece * PIECES)
			die("the receiver's completion has another length");
		done += (unsigned int)n;
	}
	if (memcmp(from.memory, to.memory, piece))
		die("the data are wrong");
	printf("%zu bytes in one SEND, MTU %d\n", piece * PIECES, 128 << port.active_mtu);
	return 0;
}
