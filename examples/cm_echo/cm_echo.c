// SPDX-License-Identifier: Apache-2.0
/*
 * cm_echo -s [-p PORT]: serve one client. Send each message back until the client disconnects.
 * cm_echo [-p PORT] [-n COUNT] ADDRESS: send COUNT messages to the server at ADDRESS and compare
 * what comes back.
 *
 * The RDMA connection manager finds the device for ADDRESS, exchanges what the QPs need to know,
 * and connects them. Exit status 0 if every message has come back as it was sent.
 */
#include <errno.h>
#include <error.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 4096u /* of the longest message */
#define SLOTS 4u    /* receives of the server: it posts one again while the client uses the next */

static uint8_t memory[SLOTS][BYTES];

static void check(bool ok, const char *what)
{
	if (!ok)
		error(1, errno, "%s", what);
}

static void check_comp(int n, const struct ibv_wc *wc, const char *what)
{
	check(n == 1, what);
	if (wc->status)
		error(1, 0, "%s: %s", what, ibv_wc_status_str(wc->status));
}

/* An endpoint: an id with a device, PD, CQs with channels, and a QP (a listener: none of its own).
 */
static struct rdma_cm_id *create_ep(const char *address, const char *port)
{
	struct rdma_addrinfo *info,
		hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = address ? 0 : RAI_PASSIVE };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { SLOTS, SLOTS, 1, 1, 0 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;
	int err;

	err = rdma_getaddrinfo(address, port, &hints, &info);
	if (err)
		error(1, 0, "rdma_getaddrinfo: %s", gai_strerror(err));
	check(!rdma_create_ep(&id, info, NULL, &init), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

/*
 * Wait for a message, or for an event of the connection: then false. A CQ gives no event for what
 * came before it was armed, so poll it again after arming.
 */
static bool next_message(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	struct pollfd fd[2] = { { .fd = id->recv_cq_channel->fd, .events = POLLIN },
				{ .fd = id->channel->fd, .events = POLLIN } };
	static bool armed;
	struct ibv_cq *cq;
	void *context;
	int n;

	while (!(n = ibv_poll_cq(id->recv_cq, 1, wc))) {
		if (!armed) {
			errno = ibv_req_notify_cq(id->recv_cq, 0);
			check(!errno, "ibv_req_notify_cq");
			armed = true;
			continue;
		}
		check(poll(fd, 2, -1) > 0, "poll");
		if (!fd[0].revents)
			return false;
		check(!ibv_get_cq_event(id->recv_cq_channel, &cq, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		armed = false;
	}
	check_comp(n, wc, "receive");
	return true;
}

static void serve(const char *port)
{
	struct rdma_cm_id *listener = create_ep(NULL, port), *id;
	unsigned int messages = 0;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	check(!rdma_listen(listener, 1), "rdma_listen");
	check(!rdma_get_request(listener, &id), "rdma_get_request");
	mr = rdma_reg_msgs(id, memory, sizeof(memory));
	check(mr, "rdma_reg_msgs");
	/* Before accepting: the client may send at once. */
	for (unsigned int i = 0; i < SLOTS; i++)
		check(!rdma_post_recv(id, memory[i], memory[i], BYTES, mr), "rdma_post_recv");
	check(!rdma_accept(id, NULL), "rdma_accept");
	while (next_message(id, &wc)) {
		void *slot = (void *)(uintptr_t)wc.wr_id;

		check(!rdma_post_send(id, slot, slot, wc.byte_len, mr, 0), "rdma_post_send");
		check_comp(rdma_get_send_comp(id, &wc), &wc, "send");
		check(!rdma_post_recv(id, slot, slot, BYTES, mr), "rdma_post_recv");
		messages++;
	}
	/* This takes the event that has come, and answers the client. */
	check(!rdma_disconnect(id), "rdma_disconnect");
	if (id->event->event != RDMA_CM_EVENT_DISCONNECTED)
		error(1, 0, "event %s", rdma_event_str(id->event->event));
	printf("server on %s: %u messages sent back, the client has disconnected\n",
	       ibv_get_device_name(id->verbs->device), messages);
	check(!rdma_dereg_mr(mr), "rdma_dereg_mr");
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
}

static void send_messages(const char *address, const char *port, unsigned int count)
{
	struct rdma_cm_id *id = create_ep(address, port);
	uint8_t *out = memory[0], *in = memory[1];
	struct ibv_wc wc;
	struct ibv_mr *mr;

	mr = rdma_reg_msgs(id, memory, sizeof(memory));
	check(mr, "rdma_reg_msgs");
	check(!rdma_connect(id, NULL), "rdma_connect");
	for (unsigned int i = 0; i < count; i++) {
		uint32_t bytes = i * 997 % BYTES + 1;

		for (uint32_t j = 0; j < bytes; j++)
			out[j] = (uint8_t)(i * 29 + j * 7 + (j >> 8) + 1);
		memset(in, 0, bytes);
		check(!rdma_post_recv(id, NULL, in, BYTES, mr), "rdma_post_recv");
		check(!rdma_post_send(id, NULL, out, bytes, mr, 0), "rdma_post_send");
		check_comp(rdma_get_send_comp(id, &wc), &wc, "send");
		check_comp(rdma_get_recv_comp(id, &wc), &wc, "receive");
		if (wc.byte_len != bytes || memcmp(in, out, bytes))
			error(1, 0, "message %u has come back wrong", i);
	}
	printf("client on %s: %u messages to %s and back: all right\n",
	       ibv_get_device_name(id->verbs->device), count, address);
	check(!rdma_disconnect(id), "rdma_disconnect");
	check(!rdma_dereg_mr(mr), "rdma_dereg_mr");
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	const char *port = "7471";
	unsigned int count = 100;
	bool server = false;
	int option;

	while ((option = getopt(argc, argv, "sp:n:")) != -1) {
		if (option == 's')
			server = true;
		else if (option == 'p')
			port = optarg;
		else
			count = option == 'n' ? (unsigned int)strtoul(optarg, NULL, 0) : 0;
	}
	if (!count || argc - optind != !server)
		error(2, 0, "usage: cm_echo -s [-p PORT] | cm_echo [-p PORT] [-n COUNT] ADDRESS");
	if (server)
		serve(port);
	else
		send_messages(argv[optind], port, count);
	return 0;
}
