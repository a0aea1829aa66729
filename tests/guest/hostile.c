// SPDX-License-Identifier: Apache-2.0
/*
 * hostile DEVICE SECONDS SEED: a process that may use the device, and misuses it. It bypasses the
 * provider and writes to its doorbell page and its rings: random doorbells and nearly right ones,
 * WQEs with a changed field, keys near its own, address handles that it makes up. It overwrites
 * rings while the NIC reads them, and also uses device memory and windows of both types. QPs in ERR
 * are started again, and objects are made and destroyed all the time, XRC SRQs even in the middle
 * of messages; the CQ is resized. SECONDS are measured by the guest's clock.
 *
 * Exit status 0 when its own objects could be used and destroyed until the end. The caller checks
 * the other processes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "device.h"
#include "urdma_hw.h"

#define QPS	10
#define SRQS	3
#define WQES	64
#define BUFFER	65536
#define DM	8192 /* bytes of device memory */
#define WINDOWS 4    /* the first half are of type 1 */
#define PORT	1
#define SETTLED 16 /* attacks on a QP between two checks of its state */

struct ring {
	uint8_t *at;
	size_t bytes;
};

struct victim_qp {
	struct ibv_qp *qp;
	enum ibv_qp_type type;
	/* at is NULL: it has none */
	struct ring sq, rq;
	uint32_t sq_stride, sq_head, rq_head;
};

/* The first is that of QPs, the others are of XRC, and have numbers that are told. */
struct victim_srq {
	struct ibv_srq *srq;
	struct ring ring;
	uint32_t number;
};

static struct {
	uint64_t rnd;
	struct ibv_context *ctx;
	volatile uint64_t *page;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *buffer;
	struct ibv_dm *dm;
	struct ibv_mr *dm_mr;
	struct ibv_mw *windows[WINDOWS];
	struct ibv_cq *cq;
	struct ring cq_ring;
	bool cq_spoilt; /* overwritten: it must not be polled */
	union ibv_gid gid;
	int gid_index;
	struct victim_qp qps[QPS];
	unsigned int num_qps; /* without XRC, the last two do not exist */
	struct ibv_xrcd *xrcd;
	struct victim_srq srqs[SRQS];
	unsigned int num_srqs;
	uint64_t doorbells, wqes, restarts, renewals, srq_renewals, window_renewals, resizes,
		moderations, statuses[32];
} h;

/* The types of the QPs. Those from WITH_SRQ on have no receive queue; the last two are a pair. */
static const enum ibv_qp_type types[QPS] = {
	IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RC,	      IBV_QPT_UC,
	IBV_QPT_UD, IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
};
#define WITH_SRQ 6
#define INI	 (&h.qps[8])
#define TGT	 (&h.qps[9])

/* The last two anonymous mappings: the provider allocates the rings of an object this way. */
static struct ring mapped[2];

void *mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	static void *(*next)(void *, size_t, int, int, int, off_t);
	void *p;

	if (!next)
		next = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	p = next(addr, length, prot, flags, fd, offset);
	if (p != MAP_FAILED && flags & MAP_ANONYMOUS) {
		mapped[0] = mapped[1];
		mapped[1] = (struct ring){ p, length };
	}
	return p;
}

static uint64_t draw64(void)
{
	/* xorshift64 */
	h.rnd ^= h.rnd << 13;
	h.rnd ^= h.rnd >> 7;
	h.rnd ^= h.rnd << 17;
	return h.rnd;
}

static uint32_t draw(uint32_t n)
{
	return (uint32_t)(draw64() >> 16) % n;
}

static int fail(const char *what)
{
	fprintf(stderr, "hostile: %s\n", what);
	return -1;
}

static volatile uint64_t *doorbell_page(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	volatile uint64_t *page = NULL;
	unsigned long start;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/dev/infiniband/uverbs") && sscanf(line, "%lx-", &start) == 1)
			page = (volatile uint64_t *)start;
	if (maps)
		fclose(maps);
	return page;
}

static int find_gid(void)
{
	struct ibv_gid_entry entries[64];
	ssize_t n = ibv_query_gid_table(h.ctx, entries, 64, 0);

	for (ssize_t i = 0; i < n; i++) {
		if (entries[i].gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		h.gid = entries[i].gid;
		h.gid_index = (int)entries[i].gid_index;
		return 0;
	}
	return fail("no RoCEv2 GID");
}

static bool is_xrc(const struct victim_qp *v)
{
	return v->type == IBV_QPT_XRC_SEND || v->type == IBV_QPT_XRC_RECV;
}

/* Moves it to RTS, connected to itself: a UC or RC QP gets what its own WQEs send. An XRC QP is
 * connected to the other one. */
static int start_qp(struct victim_qp *v)
{
	const struct victim_qp *peer = v->type == IBV_QPT_XRC_SEND   ? TGT
				       : v->type == IBV_QPT_XRC_RECV ? INI
								     : v;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = 0x1234 };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	v->sq_head = v->rq_head = 0;
	if (v->type == IBV_QPT_UD) {
		mask |= IBV_QP_QKEY;
	} else {
		mask |= IBV_QP_ACCESS_FLAGS;
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (v->type == IBV_QPT_RC || is_xrc(v))
			attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
						IBV_ACCESS_FLUSH_GLOBAL;
	}
	if (ibv_modify_qp(v->qp, &attr, mask))
		return fail("INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = PORT,
			     .grh = { .dgid = h.gid,
				      .hop_limit = 1,
				      .sgid_index = (uint8_t)h.gid_index } },
	};
	mask = IBV_QP_STATE;
	if (v->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (v->type == IBV_QPT_RC || v->type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (ibv_modify_qp(v->qp, &attr, mask))
		return fail("RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 8,
		.retry_cnt = 1,
		.rnr_retry = 1,
		.max_rd_atomic = 4,
	};
	/* A target QP sends only answers. */
	if (v->type == IBV_QPT_XRC_RECV)
		return 0;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (v->type == IBV_QPT_RC || is_xrc(v))
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(v->qp, &attr, mask) ? fail("RTS") : 0;
}

static int make_target(struct victim_qp *v)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = h.xrcd,
	};

	*v = (struct victim_qp){ .type = IBV_QPT_XRC_RECV, .qp = ibv_create_qp_ex(h.ctx, &init) };
	return v->qp ? 0 : fail("no target QP");
}

static int make_qp(struct victim_qp *v)
{
	enum ibv_qp_type type = types[v - h.qps];
	bool with_rq = v - h.qps < WITH_SRQ;
	struct ibv_qp_init_attr init = {
		.send_cq = h.cq,
		.recv_cq = h.cq,
		.srq = with_rq || type == IBV_QPT_XRC_SEND ? NULL : h.srqs[0].srq,
		.qp_type = type,
		.cap = { .max_send_wr = WQES,
			 .max_recv_wr = WQES,
			 .max_send_sge = 2,
			 .max_recv_sge = 2 },
	};

	if (type == IBV_QPT_XRC_RECV)
		return make_target(v);
	memset(mapped, 0, sizeof(mapped));
	*v = (struct victim_qp){ .type = type, .qp = ibv_create_qp(h.pd, &init) };
	if (!v->qp)
		return fail("no QP");
	v->sq = mapped[with_rq ? 0 : 1];
	if (with_rq)
		v->rq = mapped[1];
	if (!v->sq.at || (with_rq && !v->rq.at))
		return fail("the rings of a QP were not found");
	v->sq_stride = type == IBV_QPT_UD ? 128 : 64;
	return 0;
}

static int make_srq(struct victim_srq *v)
{
	bool xrc = v != h.srqs;
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = WQES, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = xrc ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = h.pd,
		.xrcd = h.xrcd,
		.cq = h.cq,
	};

	if (xrc)
		init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	*v = (struct victim_srq){ .srq = ibv_create_srq_ex(h.ctx, &init) };
	if (!v->srq || (xrc && ibv_get_srq_num(v->srq, &v->number)))
		return fail("no SRQ");
	v->ring = mapped[1];
	return 0;
}

/* Destroys an XRC SRQ at any time: the target QP may be in the middle of a message to it. */
static int renew_srq(struct victim_srq *v)
{
	h.srq_renewals++;
	if (ibv_destroy_srq(v->srq))
		return fail("an XRC SRQ cannot be destroyed");
	return make_srq(v);
}

static int make_window(unsigned int i)
{
	h.windows[i] = ibv_alloc_mw(h.pd, i < WINDOWS / 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	return h.windows[i] ? 0 : fail("no window");
}

/* Bound or not, and in use: its key ends. */
static int renew_window(unsigned int i)
{
	h.window_renewals++;
	if (ibv_dealloc_mw(h.windows[i]))
		return fail("a window cannot be freed");
	return make_window(i);
}

static void ring_doorbell(uint32_t offset, uint64_t word)
{
	h.page[offset / 8] = word;
	h.doorbells++;
}

/* A key: one of ours, one near it, or any. */
static uint32_t some_key(void)
{
	switch (draw(6)) {
	case 0:
		return h.mr->lkey;
	case 1:
		return h.dm_mr->lkey;
	case 2:
		return (h.windows[draw(WINDOWS)]->rkey & ~0xffu) | draw(256);
	case 3:
		return h.mr->lkey + (draw(9) << 8) - (4 << 8);
	case 4:
		return h.mr->lkey ^ (1u << draw(32));
	default:
		return (uint32_t)draw64();
	}
}

/* An address: in the buffer, in device memory or beyond it, or any. */
static uint64_t some_address(void)
{
	return draw(4) ? (uintptr_t)h.buffer + draw(BUFFER) : draw(2) ? draw(4 * DM) : draw64();
}

/* Operands of a WQE that binds a window: to a part of one of the regions, or to any range if it is
 * to be wrong. */
static void bind_window(uint64_t *w, bool right)
{
	const struct ibv_mr *mr = draw(2) ? h.mr : h.dm_mr;
	uint32_t size = mr == h.mr ? BUFFER : DM, from = draw(size);

	w[0] &= ~URDMA_SQE0_NUM_SGE;
	w[1] = right ? mr->lkey : some_key();
	w[2] = right ? (mr == h.mr ? (uintptr_t)h.buffer : 0) + from : some_address();
	w[3] = right ? (h.windows[draw(WINDOWS)]->rkey & ~0xffu) | draw(8) : some_key();
	w[4] = right ? 1 + draw(size - from) : draw64();
	w[6] = draw(32);
}

/*
 * Operands of FLUSH, of a range of that length or of a region, and of ATOMIC WRITE: without SGEs.
 */
static void no_data(uint64_t *w, bool right, uint32_t length)
{
	w[0] &= ~URDMA_SQE0_NUM_SGE;
	if (right)
		w[3] &= 0xffffffff;
	w[1] = (w[1] & ~0xffffffffull) | (right ? URDMA_FLUSH_GLOBAL | draw(2) << 4 : draw(256));
	w[4] = right ? length : draw64();
}

/* An XRC SRQ: one of ours, one near it, an SRQ that is not of XRC, or any. */
static uint32_t some_srqn(bool right)
{
	uint32_t ours = h.srqs[1 + draw(SRQS - 1)].number;

	if (right)
		return ours;
	return draw(2) ? ours + draw(5) - 2 : draw(1 << 24);
}

/* Posts the next WQE of a QP, which is right except for random changes, and rings. */
static void send_wqe(struct victim_qp *v)
{
	static const uint8_t rc[] = { URDMA_WR_SEND,	  URDMA_WR_SEND_IMM,	URDMA_WR_WRITE,
				      URDMA_WR_WRITE_IMM, URDMA_WR_READ,	URDMA_WR_ATOMIC_FA,
				      URDMA_WR_LOCAL_INV, URDMA_WR_BIND_MW,	URDMA_WR_REG_MR,
				      URDMA_WR_FLUSH,	  URDMA_WR_ATOMIC_WRITE };
	uint32_t slots = (uint32_t)(v->sq.bytes / v->sq_stride);
	uint32_t slot = v->sq_head % slots;
	uint64_t *w = (uint64_t *)(v->sq.at + (size_t)slot * v->sq_stride);
	uint32_t length = draw(2) ? draw(64) : draw(BUFFER);
	bool right = draw(16) != 0;
	uint32_t data = 4;

	memset(w, 0, v->sq_stride);
	w[0] = rc[draw(v->type == IBV_QPT_UD   ? 2
		       : v->type == IBV_QPT_UC ? 4
					       : 11)] |
	       URDMA_SQE0_SIGNALED | 1 << 16;
	if (v->type == IBV_QPT_XRC_SEND)
		w[1] = (uint64_t)some_srqn(right) << 32 | (uint32_t)draw64();
	if (v->type == IBV_QPT_UD) {
		w[2] = right ? h.qps[draw(h.num_qps)].qp->qp_num : draw(1 << 24);
		w[3] = right ? 0x1234 : (uint32_t)draw64();
		memcpy(&w[4], &h.gid, 16);
		if (!right)
			for (int i = 4; i < 8; i++)
				w[i] = draw(2) ? draw64() : w[i];
		w[7] = (w[7] & ~0xff000000000ull) | (uint64_t)(uint32_t)h.gid_index << 36;
		length = draw(1025);
		data = 12;
	} else {
		bool dm = draw(4) == 0;

		/* In device memory, length may reach beyond our part. */
		w[2] = !right ? some_address() : dm ? 0 : (uintptr_t)h.buffer;
		w[3] = !right ? some_key() : dm ? h.dm_mr->rkey : h.mr->rkey;
	}
	w[3] |= (uint64_t)length << 32;
	w[data] = right ? (uintptr_t)h.buffer : some_address();
	w[data + 1] = length | (uint64_t)(right ? h.mr->lkey : some_key()) << 32;
	if ((w[0] & 0xff) == URDMA_WR_BIND_MW)
		bind_window(w, right);
	else if ((w[0] & 0xff) == URDMA_WR_LOCAL_INV)
		w[1] = some_key();
	else if ((w[0] & 0xff) >= URDMA_WR_FLUSH)
		no_data(w, right, length);
	if (!draw(16))
		w[draw(v->sq_stride / 8)] ^= 1ull << draw(64);
	__sync_synchronize();
	v->sq_head++;
	ring_doorbell(URDMA_DB_SQ, (uint64_t)(v->sq_head & 0xffff) << 32 | v->qp->qp_num);
	h.wqes++;
}

static void receive_wqe(struct victim_qp *v)
{
	uint64_t *w = (uint64_t *)(v->rq.at + (size_t)(v->rq_head % (v->rq.bytes / 64)) * 64);

	memset(w, 0, 64);
	w[0] = draw(32) ? 1 : draw(256);
	w[2] = draw(32) ? (uintptr_t)h.buffer : some_address();
	w[3] = (draw(32) ? BUFFER : (uint32_t)draw64()) |
	       (uint64_t)(draw(32) ? h.mr->lkey : some_key()) << 32;
	__sync_synchronize();
	v->rq_head++;
	ring_doorbell(URDMA_DB_RQ, (uint64_t)(v->rq_head & 0xffff) << 32 | v->qp->qp_num);
}

/* The provider manages the places of an SRQ, so most of the posted WQEs are right. */
static void receive_shared(struct victim_srq *v)
{
	struct ibv_sge sge = {
		.addr = draw(32) ? (uintptr_t)h.buffer : some_address(),
		.length = draw(32) ? BUFFER : (uint32_t)draw64(),
		.lkey = draw(32) ? h.mr->lkey : some_key(),
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	/*
	 * It may be full of WQEs that the NIC has lost: then it stays full until it is destroyed.
	 */
	if (!ibv_post_srq_recv(v->srq, &wr, &bad))
		h.wqes++;
}

static void bad_doorbell(struct victim_qp *v)
{
	static const uint32_t offsets[] = { URDMA_DB_SQ,     URDMA_DB_RQ,     URDMA_DB_SRQ,
					    URDMA_DB_CQ,     URDMA_DB_EQ,     URDMA_DB_ETH_TX,
					    URDMA_DB_ETH_RX, URDMA_DB_ETH_CQ, URDMA_DB_PUSH };
	uint32_t offset = draw(8) ? offsets[draw(9)] : draw(512) * 8;
	uint32_t object = draw(2)   ? v->qp->qp_num
			  : draw(2) ? draw(64)
			  : draw(2) ? h.srqs[draw(h.num_srqs)].number
				    : draw(1 << 24);
	uint64_t index = draw(2) ? v->sq_head + draw(5) - 2 : draw64() >> 32;

	ring_doorbell(offset, (index & 0xffffffff) << 32 | (uint64_t)draw(4) << 24 | object);
}

static void scribble(const struct ring *r)
{
	uint64_t *w = (uint64_t *)r->at;

	for (unsigned int i = 0; i < 64; i++)
		w[draw((uint32_t)(r->bytes / 8))] = draw64();
}

static int attack(struct victim_qp *v)
{
	struct victim_srq *srq = &h.srqs[draw(h.num_srqs)];

	switch (draw(16)) {
	case 0:
		bad_doorbell(&h.qps[draw(h.num_qps)]);
		break;
	case 1:
		if (!draw(4) && v->rq.at)
			scribble(draw(2) ? &v->sq : &v->rq);
		else if (!draw(32))
			scribble(&srq->ring);
		break;
	case 2:
		if (!draw(64)) {
			scribble(&h.cq_ring);
			h.cq_spoilt = true;
		} else if (srq != h.srqs && !draw(4)) {
			return renew_srq(srq);
		} else if (!draw(4)) {
			return renew_window(draw(WINDOWS));
		}
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		if (v->rq.at)
			receive_wqe(v);
		else
			receive_shared(srq);
		break;
	default:
		send_wqe(v->sq.at ? v : INI);
		break;
	}
	return 0;
}

static void poll_all(void)
{
	struct ibv_wc wc[16];
	int n;

	while (!h.cq_spoilt && (n = ibv_poll_cq(h.cq, 16, wc)) > 0)
		for (int i = 0; i < n; i++)
			h.statuses[wc[i].status % 32]++;
}

/*
 * Changes the CQ's size and moderation during traffic. This may be refused, because random
 * doorbells have given the NIC invalid indexes.
 */
static void change_cq(void)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { .cq_count = (uint16_t)draw(20),
							 .cq_period = (uint16_t)draw(100) } };

	memset(mapped, 0, sizeof(mapped));
	if (!ibv_resize_cq(h.cq, 64 + (int)draw(1000))) {
		h.resizes++;
		/* It has a new ring, or the old one has that size. */
		if (mapped[1].at)
			h.cq_ring = mapped[1];
	}
	if (!ibv_modify_cq(h.cq, &attr))
		h.moderations++;
}

/* -1: the query failed. */
static int state_of(struct victim_qp *v)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(v->qp, &attr, IBV_QP_STATE, &init))
		return fail("a QP cannot be queried");
	return attr.qp_state;
}

static int reset_qp(struct victim_qp *v)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(v->qp, &attr, IBV_QP_STATE) ? fail("a QP cannot be reset") : 0;
}

static int destroy_qp(struct victim_qp *v)
{
	return ibv_destroy_qp(v->qp) ? fail("a QP cannot be destroyed") : 0;
}

/*
 * Starts QPs that have failed again; sometimes makes one anew. For the XRC pair, both, because
 * otherwise their PSNs would not match.
 */
static int look_after(struct victim_qp *v)
{
	struct victim_qp *first = is_xrc(v) ? INI : v, *last = is_xrc(v) ? TGT : v;
	int state = state_of(first);
	bool anew = !draw(8);

	if (state < 0)
		return -1;
	if (!anew && state == IBV_QPS_RTS && state_of(last) != IBV_QPS_ERR && draw(4))
		return 0;
	if (anew)
		h.renewals++;
	else
		h.restarts++;
	for (v = first; v <= last; v++)
		if (anew ? destroy_qp(v) || make_qp(v) : reset_qp(v))
			return -1;
	for (v = first; v <= last; v++)
		if (start_qp(v))
			return -1;
	return 0;
}

/* Makes all QPs, SRQs and the CQ, again if the old ones are full or overwritten. */
static int make_all(void)
{
	h.cq = ibv_create_cq(h.ctx, 256, NULL, NULL, 0);
	if (!h.cq)
		return fail("no CQ");
	h.cq_ring = mapped[1];
	h.cq_spoilt = false;
	for (unsigned int i = 0; i < h.num_srqs; i++)
		if (make_srq(&h.srqs[i]))
			return -1;
	for (unsigned int i = 0; i < h.num_qps; i++)
		if (make_qp(&h.qps[i]))
			return -1;
	for (unsigned int i = 0; i < h.num_qps; i++)
		if (start_qp(&h.qps[i]))
			return -1;
	return 0;
}

static int destroy_all(void)
{
	for (unsigned int i = 0; i < h.num_qps; i++)
		if (destroy_qp(&h.qps[i]))
			return -1;
	for (unsigned int i = 0; i < h.num_srqs; i++)
		if (ibv_destroy_srq(h.srqs[i].srq))
			return fail("an SRQ cannot be destroyed");
	return ibv_destroy_cq(h.cq) ? fail("the CQ cannot be destroyed") : 0;
}

/* An XRC domain of this process alone, if the device has XRC. */
static int find_xrc(void)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_device_attr attr;

	h.num_qps = QPS - 2;
	h.num_srqs = 1;
	if (ibv_query_device(h.ctx, &attr))
		return fail("the device cannot be queried");
	if (!(attr.device_cap_flags & IBV_DEVICE_XRC))
		return 0;
	h.xrcd = ibv_open_xrcd(h.ctx, &init);
	if (!h.xrcd)
		return fail("no XRC domain");
	h.num_qps = QPS;
	h.num_srqs = SRQS;
	return 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end;

	if (argc != 4) {
		fprintf(stderr, "usage: hostile DEVICE SECONDS SEED\n");
		return 2;
	}
	h.rnd = strtoull(argv[3], NULL, 0) * 2 + 1;
	h.ctx = open_device(argv[1]);
	if (!h.ctx || find_gid() || find_xrc())
		return 1;
	h.page = doorbell_page();
	h.pd = ibv_alloc_pd(h.ctx);
	h.buffer = aligned_alloc(4096, BUFFER);
	if (!h.page || !h.pd || !h.buffer)
		return fail("no doorbell page, PD or memory") ? 1 : 0;
	memset(h.buffer, 0x5a, BUFFER);
	h.mr = ibv_reg_mr(h.pd, h.buffer, BUFFER,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				  IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_MW_BIND);
	h.dm = ibv_alloc_dm(h.ctx, &(struct ibv_alloc_dm_attr){ .length = DM });
	if (h.dm)
		h.dm_mr = ibv_reg_dm_mr(h.pd, h.dm, 0, DM,
					IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
						IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
						IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL |
						IBV_ACCESS_MW_BIND);
	if (!h.mr || !h.dm_mr)
		return fail("no region") ? 1 : 0;
	for (unsigned int i = 0; i < WINDOWS; i++)
		if (make_window(i))
			return 1;
	if (make_all())
		return 1;
	for (end = now() + atof(argv[2]); now() < end;) {
		struct victim_qp *v = &h.qps[draw(h.num_qps)];

		for (unsigned int i = 0; i < SETTLED; i++)
			if (attack(v))
				return 1;
		poll_all();
		if (!h.cq_spoilt && !draw(16))
			change_cq();
		if (look_after(v))
			return 1;
		if (!draw(h.cq_spoilt ? 4 : 64) && (destroy_all() || make_all()))
			return 1;
	}
	for (unsigned int i = 0; i < WINDOWS; i++)
		if (ibv_dealloc_mw(h.windows[i]))
			return fail("a window cannot be freed") ? 1 : 0;
	if (destroy_all() || (h.xrcd && ibv_close_xrcd(h.xrcd)) || ibv_dereg_mr(h.mr) ||
	    ibv_dereg_mr(h.dm_mr) || ibv_free_dm(h.dm) || ibv_dealloc_pd(h.pd) ||
	    ibv_close_device(h.ctx))
		return fail("the end") ? 1 : 0;
	printf("hostile: %llu doorbells, %llu WQEs, %llu QPs started again, %llu made anew, "
	       "%llu SRQs, %llu windows, %llu resizes and %llu moderations of CQs\n",
	       (unsigned long long)h.doorbells, (unsigned long long)h.wqes,
	       (unsigned long long)h.restarts, (unsigned long long)h.renewals,
	       (unsigned long long)h.srq_renewals, (unsigned long long)h.window_renewals,
	       (unsigned long long)h.resizes, (unsigned long long)h.moderations);
	for (int i = 0; i < 32; i++)
		if (h.statuses[i])
			printf("hostile: %llu times %s\n", (unsigned long long)h.statuses[i],
			       ibv_wc_status_str(i));
	return 0;
}
