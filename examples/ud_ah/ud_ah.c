// SPDX-License-Identifier: Apache-2.0
/*
 * ud_ah [-n COUNT] [-s SIZE] [CLIENT [SERVER]]: datagrams and their answers.
 *
 * One process opens two devices, by default urdma0 and urdma1, each with a QP for datagrams. CLIENT
 * sends to an address handle that it makes from SERVER's GID. SERVER knows no client beforehand: it
 * makes its address handle from the first datagram that comes. It answers with all bits inverted.
 * Exit status 0 if COUNT datagrams of SIZE bytes and their answers were right.
 */
#include <errno.h>
#include <error.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PORT	1
#define SECONDS 10
/* A receiver drops datagrams with another Q_Key. Those with the high bit are for the kernel. */
#define QKEY 0x11111111u
/* Each receive begins with this area, for the header of the network layer. */
#define GRH sizeof(struct ibv_grh)
struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* of the peer */
	struct ibv_gid_entry gid;
	uint32_t size;
	uint8_t *in, *out; /* in: the area of the GRH, then the data */
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

static void open_side(struct side *s, const char *name, uint32_t size)
{
	struct ibv_device **list = check_ptr(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = QKEY };
	int to_init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, i = 0;
	size_t bytes = GRH + 2 * (size_t)size;
	struct ibv_port_attr port;

	while (list[i] && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	check(list[i] ? 0 : ENODEV, name);
	s->ctx = check_ptr(ibv_open_device(list[i]), name);
	ibv_free_device_list(list);
	s->gid = find_gid(s->ctx);
	check(ibv_query_port(s->ctx, PORT, &port), "ibv_query_port");
	/* A datagram is one packet. 128 << IBV_MTU_256 is 256, and so on. */
	check(size > 128u << port.active_mtu ? EMSGSIZE : 0, name);
	s->size = size;
	s->in = check_ptr(calloc(1, bytes), "calloc");
	s->out = s->in + GRH + size;
	s->pd = check_ptr(ibv_alloc_pd(s->ctx), "ibv_alloc_pd");
	s->mr = check_ptr(ibv_reg_mr(s->pd, s->in, bytes, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
	s->cq = check_ptr(ibv_create_cq(s->ctx, 2, NULL, NULL, 0), "ibv_create_cq");
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	s->qp = check_ptr(ibv_create_qp(s->pd, &init), "ibv_create_qp");
	check(ibv_modify_qp(s->qp, &attr, to_init), "QP to INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE), "QP to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "QP to RTS");
}

static void post_recv(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->in, (uint32_t)GRH + s->size, s->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	check(ibv_post_recv(s->qp, &wr, &bad), "ibv_post_recv");
}

/* Nobody repeats a datagram that is lost, so wait with a limit. */
static struct ibv_wc completion(struct side *s, enum ibv_wc_opcode opcode)
{
	time_t end = time(NULL) + SECONDS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(s->cq, 1, &wc)))
		check(time(NULL) > end ? ETIMEDOUT : 0, "ibv_poll_cq");
	check(n < 0 ? EIO : 0, "ibv_poll_cq");
	if (wc.status)
		error(1, 0, "%s", ibv_wc_status_str(wc.status));
	/* The length of a receive includes the area of the GRH. */
	if (wc.opcode != opcode || (opcode == IBV_WC_RECV && wc.byte_len != GRH + s->size))
		error(1, 0, "completion of opcode %d, %u bytes", wc.opcode, wc.byte_len);
	return wc;
}

static void send_to(struct side *s, uint32_t qpn)
{
	struct ibv_sge sge = { (uintptr_t)s->out, s->size, s->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { s->ah, qpn, QKEY },
	};

	check(ibv_post_send(s->qp, &wr, &bad), "ibv_post_send");
	completion(s, IBV_WC_SEND);
}

static void exchange(struct side *client, struct side *server, uint32_t number)
{
	struct ibv_grh *grh = (struct ibv_grh *)server->in;
	struct ibv_wc wc;

	for (uint32_t i = 0; i < client->size; i++)
		client->out[i] = (uint8_t)(i * 7 + (i >> 8) + number * 29);
	post_recv(client);
	post_recv(server);
	send_to(client, server->qp->qp_num);
	wc = completion(server, IBV_WC_RECV);
	if (!server->ah)
		server->ah = check_ptr(ibv_create_ah_from_wc(server->pd, &wc, grh, PORT),
				       "ibv_create_ah_from_wc");
	for (uint32_t i = 0; i < server->size; i++)
		server->out[i] = (uint8_t)~server->in[GRH + i];
	send_to(server, wc.src_qp);
	completion(client, IBV_WC_RECV);
	for (uint32_t i = 0; i < client->size; i++)
		if (client->in[GRH + i] != (uint8_t)~client->out[i])
			error(1, 0, "answer %u: wrong data at byte %u", number, i);
}

static void close_side(struct side *s)
{
	check(ibv_destroy_ah(s->ah), "ibv_destroy_ah");
	check(ibv_destroy_qp(s->qp), "ibv_destroy_qp");
	check(ibv_destroy_cq(s->cq), "ibv_destroy_cq");
	check(ibv_dereg_mr(s->mr), "ibv_dereg_mr");
	check(ibv_dealloc_pd(s->pd), "ibv_dealloc_pd");
	check(ibv_close_device(s->ctx), "ibv_close_device");
	free(s->in);
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr to = { .is_global = 1, .port_num = PORT, .grh.hop_limit = 64 };
	struct side client = { 0 }, server = { 0 };
	uint32_t count = 100, size = 1024;
	int option, names;

	while ((option = getopt(argc, argv, "n:s:")) == 'n' || option == 's')
		*(option == 'n' ? &count : &size) = (uint32_t)strtoul(optarg, NULL, 0);
	names = argc - optind;
	if (option != -1 || !count || !size || names > 2)
		error(2, 0, "usage: ud_ah [-n COUNT] [-s SIZE] [CLIENT [SERVER]]");
	open_side(&client, names > 0 ? argv[optind] : "urdma0", size);
	open_side(&server, names > 1 ? argv[optind + 1] : "urdma1", size);
	/* Two processes would agree on GID, QP number and Q_Key of the server. */
	to.grh.dgid = server.gid.gid;
	to.grh.sgid_index = (uint8_t)client.gid.gid_index;
	client.ah = check_ptr(ibv_create_ah(client.pd, &to), "ibv_create_ah");
	for (uint32_t i = 0; i < count; i++)
		exchange(&client, &server, i);
	printf("%u datagrams of %u bytes from %s to %s, each answered: all right\n", count, size,
	       ibv_get_device_name(client.ctx->device), ibv_get_device_name(server.ctx->device));
	close_side(&client);
	close_side(&server);
	return 0;
}
