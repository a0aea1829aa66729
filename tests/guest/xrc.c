// SPDX-License-Identifier: Apache-2.0
/*
 * xrc TARGET GID INITIATOR GID: two processes share an XRC domain on the device TARGET. One makes a
 * target QP and exits; the other opens the QP, and has SRQs that it fills. Messages come from an
 * initiator QP on INITIATOR. It tests what stock programs do not: SRQs of two processes behind one
 * QP, a QP that outlives its creator, events, SRQs that are destroyed with completions that nobody
 * has polled, or while messages to them arrive.
 *
 * GID is the index in the device's table. Exit status 0 when everything is right.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device.h"

#define WRS	16
#define BYTES	4096
#define SECONDS 60
#define PORT	1

#define WANT(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "xrc: %s, line %d: not so: %s, errno %d\n", who, __LINE__, \
				#cond, errno);                                                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static const char *who = "user";

/* A process's objects on a device. */
struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *buf;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	union ibv_gid gid;
	int gid_index;
};

/* Messages between the two processes, by pipes. */
struct word {
	uint32_t qpn, srqn;
	/* first PSN of an initiator */
	uint32_t psn;
	union ibv_gid gid;
};

static struct side open_side(const char *dev, const char *gid_index)
{
	struct side s = { .ctx = open_device(dev), .gid_index = atoi(gid_index) };

	WANT(s.ctx);
	WANT(!ibv_query_gid(s.ctx, PORT, s.gid_index, &s.gid));
	s.pd = ibv_alloc_pd(s.ctx);
	s.buf = aligned_alloc(BYTES, WRS * BYTES);
	WANT(s.pd && s.buf);
	memset(s.buf, 0, WRS * BYTES);
	s.mr = ibv_reg_mr(s.pd, s.buf, WRS * BYTES,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ);
	s.cq = ibv_create_cq(s.ctx, 4 * WRS, NULL, NULL, 0);
	WANT(s.mr && s.cq);
	return s;
}

static void close_side(struct side *s)
{
	WANT(!s->srq || !ibv_destroy_srq(s->srq));
	WANT(!s->xrcd || !ibv_close_xrcd(s->xrcd));
	WANT(!ibv_destroy_cq(s->cq) && !ibv_dereg_mr(s->mr) && !ibv_dealloc_pd(s->pd));
	WANT(!ibv_close_device(s->ctx));
	free(s->buf);
}

static void join_domain(struct side *s, int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = O_CREAT,
	};

	s->xrcd = ibv_open_xrcd(s->ctx, &attr);
	WANT(s->xrcd);
}

static struct ibv_srq *make_srq(struct side *s)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = WRS, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = s->pd,
		.xrcd = s->xrcd,
		.cq = s->cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(s->ctx, &attr);

	WANT(srq);
	return srq;
}

static uint32_t number(struct ibv_srq *srq)
{
	uint32_t n;

	WANT(!ibv_get_srq_num(srq, &n));
	return n;
}

/* Posts n receives, one after the other in the buffer; wr_id is the place there. */
static void post_receives(const struct side *s, struct ibv_srq *srq, int n)
{
	for (int i = 0; i < n; i++) {
		struct ibv_sge sge = { (uintptr_t)s->buf + (size_t)i * BYTES, BYTES, s->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		WANT(!ibv_post_srq_recv(srq, &wr, &bad));
	}
}

static struct ibv_wc completion(struct ibv_cq *cq)
{
	time_t end = time(NULL) + SECONDS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		WANT(time(NULL) < end);
	WANT(n == 1);
	return wc;
}

static void nothing_polled(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	WANT(!ibv_poll_cq(cq, 1, &wc));
}

/* Also from a context on which other events may arrive. */
static struct ibv_async_event event(struct ibv_context *ctx, enum ibv_event_type type)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event e;

	for (;;) {
		if (poll(&p, 1, SECONDS * 1000) != 1)
			fprintf(stderr, "xrc: no %s\n", ibv_event_type_str(type));
		WANT(p.revents & POLLIN);
		WANT(!ibv_get_async_event(ctx, &e));
		ibv_ack_async_event(&e);
		if (e.event_type == type)
			return e;
	}
}

static void to_init(struct ibv_qp *qp, int access)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = PORT,
				    .qp_access_flags = access };

	WANT(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void to_rtr(struct ibv_qp *qp, int gid_index, const struct word *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = PORT,
			     .grh = { .dgid = peer->gid,
				      .hop_limit = 64,
				      .sgid_index = (uint8_t)gid_index } },
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	WANT(!ibv_modify_qp(qp, &attr, mask));
}

static struct ibv_qp *make_initiator(const struct side *s)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = s->cq,
		.cap = { .max_send_wr = WRS, .max_send_sge = 1 },
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = s->pd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(s->ctx, &attr);

	WANT(qp);
	to_init(qp, 0);
	return qp;
}

static void start_initiator(struct ibv_qp *qp, int gid_index, const struct word *peer, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};

	to_rtr(qp, gid_index, peer);
	WANT(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* One PSN per connection: the wire checker distinguishes connections by it. */
static uint32_t some_psn(void)
{
	uint32_t psn;

	WANT(getrandom(&psn, sizeof(psn), 0) == sizeof(psn));
	return psn & 0xffffff;
}

static struct ibv_qp *make_target(const struct side *s)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = s->xrcd };
	struct ibv_qp *qp = ibv_create_qp_ex(s->ctx, &attr);

	WANT(qp);
	to_init(qp, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	return qp;
}

/* ---- the process that makes the target QP ------------------------------------------------------
 */

static int maker(int fd, int from, int to, char **argv)
{
	struct side s = open_side(argv[1], argv[2]);
	struct word mine, peer;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	who = "maker";
	join_domain(&s, fd);
	s.srq = make_srq(&s);
	post_receives(&s, s.srq, 2);
	qp = make_target(&s);
	WANT(read(from, &peer, sizeof(peer)) == sizeof(peer));
	to_rtr(qp, s.gid_index, &peer);
	mine = (struct word){ .qpn = qp->qp_num, .srqn = number(s.srq), .gid = s.gid };
	WANT(write(to, &mine, sizeof(mine)) == sizeof(mine));

	/* One of the two messages is for this process. */
	wc = completion(s.cq);
	WANT(wc.status == IBV_WC_SUCCESS && wc.qp_num == qp->qp_num && wc.wr_id == 0);
	WANT(wc.byte_len == BYTES && s.buf[0] == 'm' && s.buf[BYTES - 1] == 'm');
	nothing_polled(s.cq);
	/* A domain in use cannot be closed. */
	WANT(ibv_close_xrcd(s.xrcd) == EBUSY);
	WANT(!ibv_destroy_qp(qp));
	close_side(&s);
	return 0;
}

/* ---- the one that opens it --------------------------------------------------------------------
 */

static struct side s, i;
static struct ibv_qp *ini, *tgt;

static void send_to(uint32_t srqn, enum ibv_wr_opcode opcode, char letter, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)i.buf, length, i.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = letter,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.imm_data = htobe32(0x01020304),
		.wr.rdma = { (uintptr_t)s.buf, s.mr->rkey },
		.qp_type.xrc.remote_srqn = srqn,
	}, *bad;

	if (opcode != IBV_WR_RDMA_READ)
		memset(i.buf, letter, length);
	WANT(!ibv_post_send(ini, &wr, &bad));
}

static void sent(char letter, enum ibv_wc_status status)
{
	struct ibv_wc wc = completion(i.cq);

	WANT(wc.wr_id == (uint64_t)letter && wc.qp_num == ini->qp_num);
	if (wc.status != status)
		fprintf(stderr, "xrc: %c: %s\n", letter, ibv_wc_status_str(wc.status));
	WANT(wc.status == status);
}

static void received(uint64_t place, char letter, uint32_t length)
{
	struct ibv_wc wc = completion(s.cq);

	WANT(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
	WANT(wc.qp_num == tgt->qp_num && wc.wr_id == place && wc.byte_len == length);
	WANT(s.buf[place * BYTES] == letter && s.buf[place * BYTES + length - 1] == letter);
}

/* Both processes' SRQs by one QP. The creator has exited when this ends. */
static void share(int fd, int from, int to, pid_t pid)
{
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_TYPE,
					 .qp_type = IBV_QPT_XRC_RECV };
	struct word mine, peer;
	int status;

	join_domain(&s, fd);
	s.srq = make_srq(&s);
	post_receives(&s, s.srq, WRS);
	ini = make_initiator(&i);
	mine = (struct word){ .qpn = ini->qp_num, .psn = some_psn(), .gid = i.gid };
	WANT(write(to, &mine, sizeof(mine)) == sizeof(mine));
	WANT(read(from, &peer, sizeof(peer)) == sizeof(peer));
	open.xrcd = s.xrcd;
	open.qp_num = peer.qpn;
	tgt = ibv_open_qp(s.ctx, &open);
	WANT(tgt && tgt->qp_num == peer.qpn);
	start_initiator(ini, i.gid_index, &peer, mine.psn);

	send_to(number(s.srq), IBV_WR_SEND, 'u', 3000);
	sent('u', IBV_WC_SUCCESS);
	received(0, 'u', 3000);
	send_to(peer.srqn, IBV_WR_SEND, 'm', BYTES);
	sent('m', IBV_WC_SUCCESS);
	WANT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	nothing_polled(s.cq);
}

/* The QP goes on without its creator. */
static void every_operation(void)
{
	uint32_t srqn = number(s.srq);
	struct ibv_wc wc;

	send_to(srqn, IBV_WR_SEND, 'a', 64);
	sent('a', IBV_WC_SUCCESS);
	received(1, 'a', 64);
	send_to(srqn, IBV_WR_RDMA_WRITE_WITH_IMM, 'b', 2500);
	sent('b', IBV_WC_SUCCESS);
	wc = completion(s.cq);
	WANT(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
	WANT(wc.wr_id == 2 && wc.byte_len == 2500 && wc.wc_flags == IBV_WC_WITH_IMM);
	WANT(wc.imm_data == htobe32(0x01020304) && s.buf[0] == 'b' && s.buf[2499] == 'b');
	memset(i.buf, 0, BYTES);
	send_to(srqn, IBV_WR_RDMA_READ, 'c', 2500);
	sent('c', IBV_WC_SUCCESS);
	WANT(i.buf[0] == 'b' && i.buf[2499] == 'b');
}

/* 16 were posted, three are used: the sixth message from now leaves 7. */
static void limit(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 8 };
	struct ibv_async_event e;

	WANT(!ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT));
	for (uint64_t n = 3; n < 9; n++) {
		send_to(number(s.srq), IBV_WR_SEND, 'd', 10);
		sent('d', IBV_WC_SUCCESS);
		received(n, 'd', 10);
	}
	e = event(s.ctx, IBV_EVENT_SRQ_LIMIT_REACHED);
	WANT(e.element.srq == s.srq);
	WANT(!ibv_query_srq(s.srq, &attr) && attr.srq_limit == 0);
}

/* Completions go with their SRQ; those of the other SRQ on the same CQ stay. */
static void destroyed_unpolled(void)
{
	struct ibv_srq *other = make_srq(&s);

	post_receives(&s, other, 4);
	for (int n = 0; n < 4; n++) {
		send_to(number(other), IBV_WR_SEND, 'e', 20);
		sent('e', IBV_WC_SUCCESS);
		if (n != 1)
			continue;
		send_to(number(s.srq), IBV_WR_SEND, 'f', 30);
		sent('f', IBV_WC_SUCCESS);
	}
	WANT(!ibv_destroy_srq(other));
	received(9, 'f', 30);
	nothing_polled(s.cq);
}

/*
 * One more SRQ, which is destroyed before a message to it arrives: the QP goes to ERR, and reports
 * it. The QP is a new one, because Linux 6.12 gives events of a target QP to its creator, and not
 * to those who opened it.
 */
static void destroyed_in_use(void)
{
	struct ibv_srq *other = make_srq(&s);
	struct ibv_qp_init_attr init;
	struct ibv_async_event e;
	struct ibv_qp_attr attr;
	uint32_t gone, psn = some_psn();
	struct word peer;

	WANT(!ibv_destroy_qp(tgt) && !ibv_destroy_qp(ini));
	ini = make_initiator(&i);
	tgt = make_target(&s);
	peer = (struct word){ .qpn = ini->qp_num, .psn = psn, .gid = i.gid };
	to_rtr(tgt, s.gid_index, &peer);
	peer = (struct word){ .qpn = tgt->qp_num, .gid = s.gid };
	start_initiator(ini, i.gid_index, &peer, psn);
	send_to(number(s.srq), IBV_WR_SEND, 'h', 50);
	sent('h', IBV_WC_SUCCESS);
	received(10, 'h', 50);
	e = event(s.ctx, IBV_EVENT_COMM_EST);
	WANT(e.element.qp == tgt);

	gone = number(other);
	WANT(!ibv_destroy_srq(other));
	send_to(gone, IBV_WR_SEND, 'g', 40);
	sent('g', IBV_WC_REM_INV_REQ_ERR);
	e = event(s.ctx, IBV_EVENT_QP_REQ_ERR);
	WANT(e.element.qp == tgt);
	WANT(!ibv_query_qp(tgt, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR);
	nothing_polled(s.cq);
}

int main(int argc, char **argv)
{
	char name[] = "/tmp/xrc.XXXXXX";
	int there[2], back[2], fd;
	pid_t pid;

	if (argc != 5) {
		fprintf(stderr, "usage: xrc TARGET GID INITIATOR GID\n");
		return 2;
	}
	fd = mkstemp(name);
	WANT(fd >= 0 && !pipe(there) && !pipe(back));
	/* Before any verbs: each process opens the device itself. */
	pid = fork();
	WANT(pid >= 0);
	if (!pid)
		return maker(fd, there[0], back[1], argv);
	s = open_side(argv[1], argv[2]);
	i = open_side(argv[3], argv[4]);
	share(fd, back[0], there[1], pid);
	every_operation();
	limit();
	destroyed_unpolled();
	destroyed_in_use();
	WANT(!ibv_destroy_qp(tgt) && !ibv_destroy_qp(ini));
	close_side(&s);
	close_side(&i);
	unlink(name);
	return 0;
}
