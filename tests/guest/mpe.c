// SPDX-License-Identifier: Apache-2.0
/*
 * mpe -d DEVICE -x GID-INDEX -p PORT [-m MTU] [-n N] [-t ACK-TIME-OUT] [-F] [-a] [SERVER]: FLUSH
 * and ATOMIC WRITE; with -a ATOMIC WRITE alone. Its arguments are those of perftest's programs, so
 * that `meet` can call it; without SERVER it is the server. N times the client sends a WRITE, a
 * FLUSH and an ATOMIC WRITE. The server's CPU has to see them in this order: when it sees a number
 * written by ATOMIC WRITE, the data before it are there, and all bytes belong to the same number.
 * Then the client sends requests that the server has to refuse, each on its own QP. Exit status 0
 * if all this holds.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define DATA 3000u /* bytes of a WRITE; the number follows them */
#define WORD 4096u
#define SIZE 8192u
#define QPS  5u /* the first one works, the requests on the others fail */

/* What the two sides exchange over TCP. */
struct side {
	struct rc_end end[QPS];
	uint64_t addr;
	uint32_t rkey, no_flush; /* no_flush: of a region without that right */
};

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_qp *qp[QPS];
static uint8_t *memory;
static struct ibv_mr *mr;
static struct side own, peer;
static bool no_flush;

static void die(const char *what)
{
	fprintf(stderr, "mpe: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must(int err, const char *what)
{
	if (!err)
		return;
	errno = err > 0 ? err : errno;
	die(what);
}

/* ---- the connection --------------------------------------------------------------------------
 */

static int meet(const char *server, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *a;
	int fd, on = 1, got;

	hints.ai_flags = server ? 0 : AI_PASSIVE;
	if (getaddrinfo(server, port, &hints, &a))
		die("address");
	fd = socket(a->ai_family, a->ai_socktype, 0);
	if (fd < 0)
		die("socket");
	if (server) {
		must(connect(fd, a->ai_addr, a->ai_addrlen), "connect");
		freeaddrinfo(a);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	must(bind(fd, a->ai_addr, a->ai_addrlen), "bind");
	must(listen(fd, 1), "listen");
	freeaddrinfo(a);
	got = accept(fd, NULL, NULL);
	if (got < 0)
		die("accept");
	close(fd);
	return got;
}

/* Waits until both sides are here. */
static void swap(int fd, const void *to, void *from, size_t len)
{
	if (write(fd, to, len) != (ssize_t)len)
		die("the other side");
	for (size_t at = 0; at < len;) {
		ssize_t n = read(fd, (char *)from + at, len - at);

		if (n <= 0)
			die("the other side has gone");
		at += n;
	}
}

static void make(uint8_t gid_index)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *other;

	memory = aligned_alloc(4096, SIZE);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	if (!pd || !memory || !cq)
		die("PD, memory, CQ");
	memset(memory, 0, SIZE);
	mr = ibv_reg_mr(pd, memory, SIZE, all | IBV_ACCESS_FLUSH_GLOBAL);
	other = ibv_reg_mr(pd, memory, SIZE, all);
	if (!mr || !other)
		die("MR");
	own.addr = (uintptr_t)memory;
	own.rkey = mr->rkey;
	own.no_flush = other->rkey;
	for (unsigned int i = 0; i < QPS; i++) {
		struct ibv_qp_init_attr_ex attr = {
			.qp_type = IBV_QPT_RC,
			.send_cq = cq,
			.recv_cq = cq,
			.cap = { 16, 1, 1, 1, 0 },
			.pd = pd,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH |
					  IBV_QP_EX_WITH_ATOMIC_WRITE,
		};

		qp[i] = ibv_create_qp_ex(ctx, &attr);
		if (!qp[i])
			die("QP with FLUSH and ATOMIC WRITE");
		must(ibv_query_gid(ctx, 1, gid_index, &own.end[i].gid), "GID");
		own.end[i].qpn = qp[i]->qp_num;
		own.end[i].psn = random_psn();
	}
}

/* ---- the client -------------------------------------------------------------------------------
 */

static void completion(enum ibv_wc_opcode opcode, enum ibv_wc_status status, const char *what)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	if (n < 0)
		die("poll");
	if (wc.status != status || (!status && wc.opcode != opcode)) {
		fprintf(stderr, "mpe: %s: opcode %d, %s, expected %d, %s\n", what, wc.opcode,
			ibv_wc_status_str(wc.status), opcode, ibv_wc_status_str(status));
		exit(1);
	}
}

/* Numbers of which each byte differs from that of the number before. */
static uint64_t number(uint64_t i)
{
	return i * UINT64_C(0x0101010101010101);
}

static void send_round(uint64_t i)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(qp[0]);
	const uint64_t value = number(i);

	memset(memory, (int)(uint8_t)i, DATA);
	ibv_wr_start(x);
	x->wr_flags = 0;
	ibv_wr_rdma_write(x, peer.rkey, peer.addr);
	ibv_wr_set_sge(x, mr->lkey, own.addr, DATA);
	x->wr_flags = IBV_SEND_SIGNALED;
	if (!no_flush)
		ibv_wr_flush(x, peer.rkey, peer.addr, i % 5 ? DATA : 1, IBV_FLUSH_GLOBAL,
			     i % 3 ? IBV_FLUSH_RANGE : IBV_FLUSH_MR);
	ibv_wr_atomic_write(x, peer.rkey, peer.addr + WORD, &value);
	must(ibv_wr_complete(x), "post");
	if (!no_flush)
		completion(IBV_WC_FLUSH, IBV_WC_SUCCESS, "FLUSH");
	completion(IBV_WC_ATOMIC_WRITE, IBV_WC_SUCCESS, "ATOMIC WRITE");
}

static void refused(unsigned int i, enum ibv_wc_status want)
{
	static const char *const name[QPS] = { "", "FLUSH of a region without the right",
					       "FLUSH beyond a region", "FLUSH to persistence",
					       "ATOMIC WRITE that is not aligned" };
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(qp[i]);
	const uint64_t value = 0;

	ibv_wr_start(x);
	x->wr_flags = IBV_SEND_SIGNALED;
	switch (i) {
	case 1:
		ibv_wr_flush(x, peer.no_flush, peer.addr, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
		break;
	case 2:
		ibv_wr_flush(x, peer.rkey, peer.addr + SIZE - 8, 9, IBV_FLUSH_GLOBAL,
			     IBV_FLUSH_RANGE);
		break;
	case 3:
		ibv_wr_flush(x, peer.rkey, peer.addr, 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
		break;
	default:
		ibv_wr_atomic_write(x, peer.rkey, peer.addr + WORD + 4, &value);
	}
	must(ibv_wr_complete(x), "post");
	completion(0, want, name[i]);
}

/* ---- the server: its CPU watches memory ------------------------------------------------------ */

static void watch(uint64_t n)
{
	volatile uint64_t *word = (volatile uint64_t *)(memory + WORD);
	time_t end = time(NULL) + 300;
	uint64_t seen = 0, v;

	while (seen < n) {
		v = *word;
		__sync_synchronize();
		if (v % number(1) || v / number(1) < seen || v / number(1) > n) {
			fprintf(stderr, "mpe: number %llx behind %llx\n", (unsigned long long)v,
				(unsigned long long)seen);
			exit(1);
		}
		/* data of a later round may be there, data of an earlier one may not */
		for (unsigned int k = 0; v / number(1) != seen && k < DATA; k++) {
			uint8_t b = ((volatile uint8_t *)memory)[k];

			if (b < v / number(1)) {
				fprintf(stderr, "mpe: byte %u of round %llu is %u\n", k,
					(unsigned long long)(v / number(1)), b);
				exit(1);
			}
		}
		seen = v / number(1);
		if (time(NULL) > end) {
			fprintf(stderr, "mpe: nothing comes behind number %llu\n",
				(unsigned long long)seen);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	const char *name = NULL, *port = "18515", *server;
	unsigned int mtu = 1024, gid_index = 0, n = 100;
	enum ibv_mtu code = IBV_MTU_256;
	char bye = 0;
	int opt, fd;

	while ((opt = getopt(argc, argv, "d:x:p:m:n:t:Fa")) != -1)
		switch (opt) {
		case 'd':
			name = optarg;
			break;
		case 'x':
			gid_index = (unsigned int)atoi(optarg);
			break;
		case 'p':
			port = optarg;
			break;
		case 'm':
			mtu = (unsigned int)atoi(optarg);
			break;
		case 'n':
			n = (unsigned int)atoi(optarg);
			break;
		case 't':
			ack_timeout = (uint8_t)atoi(optarg);
			break;
		case 'F':
			break;
		case 'a':
			no_flush = true;
			break;
		default:
			return 2;
		}
	server = argv[optind];
	/* one byte identifies a round */
	if (!name || n > 200)
		return 2;
	while (code < IBV_MTU_4096 && 128u << code < mtu)
		code++;
	ctx = open_device(name);
	if (!ctx)
		return 1;
	make((uint8_t)gid_index);
	fd = meet(server, port);
	swap(fd, &own, &peer, sizeof(own));
	for (unsigned int i = 0; i < QPS; i++)
		/* to persistence, too: the region's rights decide then */
		must(connect_rc(qp[i],
				IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL |
					IBV_ACCESS_FLUSH_PERSISTENT,
				(uint8_t)gid_index, code, own.end[i].psn, &peer.end[i]),
		     "connection");
	swap(fd, &bye, &bye, 1);
	if (server) {
		for (uint64_t i = 1; i <= n; i++)
			send_round(i);
		for (unsigned int i = no_flush ? QPS - 1 : 1; i < QPS; i++)
			refused(i, i < 4 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR);
	} else {
		watch(n);
	}
	swap(fd, &bye, &bye, 1);
	if (!server && *(volatile uint64_t *)(memory + WORD) != number(n)) {
		fprintf(stderr, "mpe: what was refused has been written\n");
		return 1;
	}
	printf("mpe: %u rounds\n", n);
	return 0;
}
