// SPDX-License-Identifier: Apache-2.0
/*
 * rc_write [-n COUNT] [-s SIZE] [FROM [TO]]: RDMA WRITEs over a reliable connection.
 *
 * One process connects two devices, by default urdma0 and urdma1. FROM writes COUNT messages of
 * SIZE bytes into the memory of TO. Each WRITE has immediate data, so it completes at TO as well.
 * The process sleeps until completion events come. Exit status 0 if all data were right.
 */
#include <endian.h>
#include <errno.h>
#include <error.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 1
struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_gid_entry gid;
	uint32_t psn;
	uint8_t *buf;
	bool armed; /* the CQ will send an event */
};

static void check(int err, const char *what)
{
	if (err)
		error(1, err, "%s", what);
}

static void *check_ptr(void *object, const char *what)
{
	check(object ? 0 : errno, what);
	return object;
}

/* A GID of RoCE v2: that of an IPv4 address, if there is one. */
static struct ibv_gid_entry find_gid(struct ibv_context *ctx)
{
	struct ibv_gid_entry e[256], *found = NULL;
	ssize_t n = ibv_query_gid_table(ctx, e, 256, 0);

	for (ssize_t i = 0; i < n && !(found && IN6_IS_ADDR_V4MAPPED(found->gid.raw)); i++)
		if (e[i].gid_type == IBV_GID_TYPE_ROCE_V2 && e[i].port_num == PORT &&
		    (!found || IN6_IS_ADDR_V4MAPPED(e[i].gid.raw)))
			found = &e[i];
	check(found ? 0 : ENOENT, "GID of RoCE v2");
	return *found;
}

static void open_side(struct side *s, const char *name, size_t size)
{
	struct ibv_device **list = check_ptr(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, i = 0;

	while (list[i] && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	check(list[i] ? 0 : ENODEV, name);
	s->ctx = check_ptr(ibv_open_device(list[i]), name);
	ibv_free_device_list(list);
	s->gid = find_gid(s->ctx);
	/* Random, so that packets of an earlier connection do not fit into this one. */
	s->psn = arc4random() & 0xffffff;
	s->buf = check_ptr(calloc(1, size), "calloc");
	s->pd = check_ptr(ibv_alloc_pd(s->ctx), "ibv_alloc_pd");
	s->mr = check_ptr(ibv_reg_mr(s->pd, s->buf, size, access), "ibv_reg_mr");
	s->channel = check_ptr(ibv_create_comp_channel(s->ctx), "ibv_create_comp_channel");
	s->cq = check_ptr(ibv_create_cq(s->ctx, 2, NULL, s->channel, 0), "ibv_create_cq");
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	s->qp = check_ptr(ibv_create_qp(s->pd, &init), "ibv_create_qp");
}

/* Two processes would tell each other GID, QP number, PSN, and address and rkey of the memory. */
static void connect_side(struct side *s, const struct side *peer)
{
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024, /* fits into frames of 1500 bytes */
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.sq_psn = s->psn,
		.ah_attr.is_global = 1,
		.ah_attr.port_num = PORT,
		.ah_attr.grh = { peer->gid.gid, 0, (uint8_t)s->gid.gid_index, 64, 0 },
		.timeout = 14, /* 67 ms */
		.retry_cnt = 7,
		.rnr_retry = 7, /* without end */
	};

	check(ibv_modify_qp(s->qp, &attr, init), "QP to INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(s->qp, &attr, rtr), "QP to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(s->qp, &attr, rts), "QP to RTS");
}

/* Sleeps until one comes. A CQ gives no event for what came before it was armed: so poll again. */
static struct ibv_wc completion(struct side *s)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n;

	while (!(n = ibv_poll_cq(s->cq, 1, &wc))) {
		if (!s->armed) {
			check(ibv_req_notify_cq(s->cq, 0), "ibv_req_notify_cq");
		} else {
			check(ibv_get_cq_event(s->channel, &cq, &context) ? errno : 0,
			      "ibv_get_cq_event");
			ibv_ack_cq_events(cq, 1);
		}
		s->armed = !s->armed;
	}
	check(n < 0 ? EIO : 0, "ibv_poll_cq");
	if (wc.status)
		error(1, 0, "%s", ibv_wc_status_str(wc.status));
	return wc;
}

/* One WRITE, from the buffer of the one side to that of the other. */
static void write_one(struct side *from, struct side *to, uint32_t size, uint32_t number)
{
	struct ibv_sge sge = { (uintptr_t)from->buf, size, from->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(number),
		.wr.rdma = { (uintptr_t)to->buf, to->mr->rkey },
	};
	/* Immediate data take a receive. It needs no buffer. */
	struct ibv_recv_wr *bad_recv, recv = { 0 };
	struct ibv_wc wc;

	for (uint32_t i = 0; i < size; i++)
		from->buf[i] = (uint8_t)(i * 7 + (i >> 8) + number * 29 + 1);
	check(ibv_post_recv(to->qp, &recv, &bad_recv), "ibv_post_recv");
	check(ibv_post_send(from->qp, &wr, &bad), "ibv_post_send");
	completion(from);
	wc = completion(to);
	if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM || be32toh(wc.imm_data) != number ||
	    wc.byte_len != size || memcmp(to->buf, from->buf, size))
		error(1, 0, "WRITE %u: wrong data", number);
}

static void close_side(struct side *s)
{
	check(ibv_destroy_qp(s->qp), "ibv_destroy_qp");
	check(ibv_destroy_cq(s->cq), "ibv_destroy_cq");
	check(ibv_destroy_comp_channel(s->channel), "ibv_destroy_comp_channel");
	check(ibv_dereg_mr(s->mr), "ibv_dereg_mr");
	check(ibv_dealloc_pd(s->pd), "ibv_dealloc_pd");
	check(ibv_close_device(s->ctx), "ibv_close_device");
	free(s->buf);
}

int main(int argc, char **argv)
{
	uint32_t count = 100, size = 4096;
	struct side from = { 0 }, to = { 0 };
	int option, names;

	while ((option = getopt(argc, argv, "n:s:")) == 'n' || option == 's')
		*(option == 'n' ? &count : &size) = (uint32_t)strtoul(optarg, NULL, 0);
	names = argc - optind;
	if (option != -1 || !count || !size || names > 2)
		error(2, 0, "usage: rc_write [-n COUNT] [-s SIZE] [FROM [TO]]");
	open_side(&from, names > 0 ? argv[optind] : "urdma0", size);
	open_side(&to, names > 1 ? argv[optind + 1] : "urdma1", size);
	connect_side(&from, &to);
	connect_side(&to, &from);
	for (uint32_t i = 0; i < count; i++)
		write_one(&from, &to, size, i);
	printf("%u WRITEs of %u bytes from %s to %s: all right\n", count, size,
	       ibv_get_device_name(from.ctx->device), ibv_get_device_name(to.ctx->device));
	close_side(&from);
	close_side(&to);
	return 0;
}
