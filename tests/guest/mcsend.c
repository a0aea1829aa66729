// SPDX-License-Identifier: Apache-2.0
/*
 * mcsend ADDRESS GROUP COUNT: COUNT datagrams to a multicast group, by the RDMA CM, for receivers
 * of `mckey -m GROUP -C COUNT`. Exit status 0 if all completed without an error.
 *
 * `mckey -s` posts its datagrams without asking for completions and destroys the QP at once. A
 * device may drop datagrams of a QP that is destroyed, and rdma_rxe does: they are sent by a work
 * item, and if that runs late it finds neither address handle nor QP. This program leaves the group
 * when all datagrams have completed.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN 100u /* mckey's */

static void die(const char *what)
{
	fprintf(stderr, "mcsend: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1) {
		fprintf(stderr, "mcsend: %s is no IPv4 address\n", text);
		exit(2);
	}
	return a;
}

static struct rdma_cm_event *expect(struct rdma_event_channel *channel,
				    enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(channel, &event))
		die("event");
	if (event->event != type) {
		fprintf(stderr, "mcsend: %s, status %d\n", rdma_event_str(event->event),
			event->status);
		exit(1);
	}
	return event;
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD };
	struct sockaddr_in from, group;
	static uint8_t memory[LEN];
	unsigned int count, done = 0;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;

	if (argc != 4) {
		fprintf(stderr, "usage: mcsend ADDRESS GROUP COUNT\n");
		return 2;
	}
	from = address(argv[1]);
	group = address(argv[2]);
	count = (unsigned int)atoi(argv[3]);
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_UDP))
		die("id");
	if (rdma_bind_addr(id, (struct sockaddr *)&from) ||
	    rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&group, 2000))
		die("address");
	rdma_ack_cm_event(expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
	pd = ibv_alloc_pd(id->verbs);
	cq = ibv_create_cq(id->verbs, (int)count, NULL, NULL, 0);
	if (!pd || !cq)
		die("objects");
	init.send_cq = cq;
	init.recv_cq = cq;
	init.cap.max_send_wr = count;
	init.cap.max_recv_wr = 1;
	init.cap.max_send_sge = 1;
	init.cap.max_recv_sge = 1;
	if (rdma_create_qp(id, pd, &init))
		die("QP");
	mr = ibv_reg_mr(pd, memory, LEN, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		die("memory");
	if (rdma_join_multicast(id, (struct sockaddr *)&group, NULL))
		die("join");
	event = expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ah = ibv_create_ah(pd, &event->param.ud.ah_attr);
	if (!ah)
		die("address handle");
	for (unsigned int i = 0; i < count; i++) {
		struct ibv_sge sge = { (uintptr_t)memory, LEN, mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data = htobe32(id->qp->qp_num),
			.wr.ud = { ah, event->param.ud.qp_num, event->param.ud.qkey },
		};

		if (ibv_post_send(id->qp, &wr, &bad))
			die("post");
	}
	rdma_ack_cm_event(event);
	while (done < count) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0)
			die("CQ");
		if (n && wc.status) {
			fprintf(stderr, "mcsend: datagram %u: %s\n", done,
				ibv_wc_status_str(wc.status));
			return 1;
		}
		done += (unsigned int)n;
	}
	if (rdma_leave_multicast(id, (struct sockaddr *)&group))
		die("leave");
	ibv_destroy_ah(ah);
	rdma_destroy_qp(id);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return 0;
}
