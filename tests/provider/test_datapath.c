// SPDX-License-Identifier: Apache-2.0
/*
 * The provider's data path in memory: WQEs, doorbells and completions are compared with urdma_hw.h,
 * word by word. A failure means that the NIC would read another work request than the one that was
 * posted, or that a program would see another completion than the one the NIC wrote.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_nic.h"
#include "fake_urdma.h"
#include "fake_verbs.h"
#include "seed.h"

#define SQ_DEPTH 16
#define RQ_DEPTH 16
#define SGES	 4
#define INLINE	 96
#define CQES	 96
#define LKEY	 0x1234u
#define RKEY	 0x5678u
#define RADDR	 UINT64_C(0x123456789abcdef0)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq, *recv_cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp *qp;
static struct ibv_qp_ex *qpx;
/* index of the WQE that expect_wqe() posts next */
static uint16_t next_sqe;

/* ---- the NIC's side ----------------------------------------------------------------------------
 */

static void move_to(struct ibv_qp *to, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	assert_int_equal(fake_ops->modify_qp(to, &attr, IBV_QP_STATE), 0);
}

static struct ibv_qp *make_qp(struct ibv_cq *send, struct ibv_cq *recv, bool sig_all)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = send,
		.recv_cq = recv,
		.cap = { SQ_DEPTH, RQ_DEPTH, SGES, SGES, INLINE },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW,
	};
	struct ibv_qp *made = fake_ops->create_qp_ex(ctx, &attr);

	assert_non_null(made);
	move_to(made, IBV_QPS_RTS);
	return made;
}

static int open_with(uint64_t features)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = CQES,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
	};

	fake_urdma_features = features;
	fake_error = 0;
	next_sqe = 0;
	ctx = fake_open();
	assert_non_null(ctx);
	pd = fake_ops->alloc_pd(ctx);
	assert_non_null(pd);
	cq_ex = fake_ops->create_cq_ex(ctx, &attr);
	assert_non_null(cq_ex);
	cq = ibv_cq_ex_to_cq(cq_ex);
	recv_cq = fake_ops->create_cq(ctx, CQES, NULL, 0);
	assert_non_null(recv_cq);
	qp = make_qp(cq, recv_cq, false);
	qpx = &container_of(qp, struct verbs_qp, qp)->qp_ex;
	return 0;
}

#define ALL_FEATURES                                                                      \
	(URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_RC_WRITE | URDMA_RF_FEAT_RC_READ |         \
	 URDMA_RF_FEAT_RC_ATOMIC | URDMA_RF_FEAT_MEM_MGT | URDMA_RF_FEAT_MW_2B |          \
	 URDMA_RF_FEAT_MW_1 | URDMA_RF_FEAT_UC | URDMA_RF_FEAT_UD | URDMA_RF_FEAT_FLUSH | \
	 URDMA_RF_FEAT_ATOMIC_WRITE | URDMA_RF_FEAT_ZERO_BASED)

static int setup(void **state)
{
	return open_with(ALL_FEATURES);
}

static int teardown(void **state)
{
	fake_error = 0;
	if (qp)
		assert_int_equal(fake_ops->destroy_qp(qp), 0);
	assert_int_equal(fake_ops->destroy_cq(cq), 0);
	assert_int_equal(fake_ops->destroy_cq(recv_cq), 0);
	assert_int_equal(fake_ops->dealloc_pd(pd), 0);
	fake_close(ctx);
	return 0;
}

/* The doorbell of a kind must have been written with this value since the last check. */
static void expect_doorbell(uint32_t which, uint32_t obj, uint64_t arm, uint32_t index)
{
	uint64_t *db = fake_doorbell(which);

	assert_true(*db == (obj | arm << 24 | (uint64_t)index << 32));
	*db = ~UINT64_C(0);
}

static void silence(void)
{
	static const uint32_t kinds[] = { URDMA_DB_SQ, URDMA_DB_RQ, URDMA_DB_CQ };

	for (size_t i = 0; i < 3; i++)
		*fake_doorbell(kinds[i]) = ~UINT64_C(0);
}

static void expect_silence(uint32_t which)
{
	assert_true(*fake_doorbell(which) == ~UINT64_C(0));
}

struct cqe {
	struct ibv_qp *qp;
	bool recv;
	uint8_t opcode, status, vendor;
	uint16_t wqe;
	uint32_t length, imm, src_qp;
	uint64_t flags;
};

static void complete(struct ibv_cq *to, const struct cqe *c)
{
	fake_urdma_cqe(to,
		       c->flags | (c->recv ? UINT64_C(1) << 4 : 0) | (uint64_t)c->opcode << 8 |
			       (uint64_t)c->status << 16 | (uint64_t)c->vendor << 24 |
			       (uint64_t)c->wqe << 32,
		       c->length | (uint64_t)c->qp->qp_num << 32,
		       c->imm | (uint64_t)c->src_qp << 32, c->wqe + 1000u);
}

static void complete_send(uint16_t wqe)
{
	complete(cq, &(struct cqe){ .qp = qp, .opcode = URDMA_WR_WRITE, .wqe = wqe });
}

static void expect_poll(struct ibv_cq *of, uint64_t wr_id)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(of, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
}

static void expect_empty(struct ibv_cq *of)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(of, 1, &wc), 0);
}

/* ---- sends -------------------------------------------------------------------------------------
 */

static struct ibv_sge one_sge = { .addr = 0x1000, .length = 64, .lkey = LKEY };

static struct ibv_send_wr wr_of(enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.sg_list = &one_sge,
		.num_sge = 1,
		.opcode = opcode,
	};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = RADDR;
		wr.wr.atomic.rkey = RKEY;
		wr.wr.atomic.compare_add = UINT64_C(0x1111111122222222);
		wr.wr.atomic.swap = UINT64_C(0x3333333344444444);
	} else {
		wr.wr.rdma.remote_addr = RADDR;
		wr.wr.rdma.rkey = RKEY;
	}
	if (opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = 0xabcd;
	else
		wr.imm_data = htobe32(0x01020304);
	return wr;
}

static int post(struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = NULL;
	return ibv_post_send(qp, wr, bad);
}

/* Refused; the NIC gets no doorbell. */
static void expect_refused(struct ibv_send_wr *wr, int err)
{
	struct ibv_send_wr *bad;

	silence();
	assert_int_equal(post(wr, &bad), err);
	assert_ptr_equal(bad, wr);
	expect_silence(URDMA_DB_SQ);
}

/* Posts the same work request by the extended verbs; returns their result. */
static int post_ex(const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buf[16];

	ibv_wr_start(qpx);
	qpx->wr_id = wr->wr_id;
	qpx->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qpx);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qpx, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qpx, wr->invalidate_rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qpx, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qpx, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qpx, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qpx, wr->invalidate_rkey);
		return ibv_wr_complete(qpx);
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(qpx, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		return ibv_wr_complete(qpx);
	default:
		fail();
	}
	if (wr->send_flags & IBV_SEND_INLINE) {
		for (int i = 0; i < wr->num_sge; i++) {
			buf[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
			buf[i].length = wr->sg_list[i].length;
		}
		ibv_wr_set_inline_data_list(qpx, wr->num_sge, buf);
	} else if (wr->num_sge == 1) {
		ibv_wr_set_sge(qpx, wr->sg_list->lkey, wr->sg_list->addr, wr->sg_list->length);
	} else {
		ibv_wr_set_sge_list(qpx, wr->num_sge, wr->sg_list);
	}
	return ibv_wr_complete(qpx);
}

/* Posts by both kinds of verbs: WQEs of these words, a doorbell for each, the caller's wr_id. */
static void expect_wqe(struct ibv_send_wr *wr, const uint64_t *words, size_t n)
{
	struct ibv_send_wr *bad;

	for (unsigned int ex = 0; ex < 2; ex++) {
		/* The WQE must not contain what was in the slot before. */
		memset((void *)fake_urdma_sqe(next_sqe), 0xee, n * sizeof(*words));
		silence();
		assert_int_equal(ex ? post_ex(wr) : post(wr, &bad), 0);
		assert_memory_equal(fake_urdma_sqe(next_sqe), words, n * sizeof(*words));
		expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, (uint16_t)(next_sqe + 1));
		complete_send(next_sqe++);
		expect_poll(cq, wr->wr_id);
	}
}

/* Words 0 to 3, and one element. */
#define W0(opcode, flags) ((uint64_t)(opcode) | (flags))
#define ONE_SGE		  (UINT64_C(1) << 16)
#define W3(rkey, length)  ((uint64_t)(rkey) | (uint64_t)(length) << 32)
#define SGE_WORDS	  0x1000, W3(64, LKEY)
#define IMM		  UINT64_C(0x04030201)

static void wqe_of_each_opcode(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint64_t words[8];
		size_t n;
	} t[] = {
		{ IBV_WR_SEND, { W0(0, ONE_SGE), 0, 0, W3(0, 64), SGE_WORDS }, 6 },
		{ IBV_WR_SEND_WITH_IMM, { W0(1, ONE_SGE), IMM, 0, W3(0, 64), SGE_WORDS }, 6 },
		{ IBV_WR_SEND_WITH_INV, { W0(2, ONE_SGE), 0xabcd, 0, W3(0, 64), SGE_WORDS }, 6 },
		{ IBV_WR_RDMA_WRITE, { W0(3, ONE_SGE), 0, RADDR, W3(RKEY, 64), SGE_WORDS }, 6 },
		{ IBV_WR_RDMA_WRITE_WITH_IMM,
		  { W0(4, ONE_SGE), IMM, RADDR, W3(RKEY, 64), SGE_WORDS },
		  6 },
		{ IBV_WR_RDMA_READ, { W0(5, ONE_SGE), 0, RADDR, W3(RKEY, 64), SGE_WORDS }, 6 },
		{ IBV_WR_ATOMIC_CMP_AND_SWP,
		  { W0(6, ONE_SGE), 0, RADDR, W3(RKEY, 64), SGE_WORDS, 0x3333333344444444,
		    0x1111111122222222 },
		  8 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD,
		  { W0(7, ONE_SGE), 0, RADDR, W3(RKEY, 64), SGE_WORDS, 0x1111111122222222, 0 },
		  8 },
		{ IBV_WR_LOCAL_INV, { W0(8, 0), 0xabcd, 0, 0 }, 4 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct ibv_send_wr wr = wr_of(t[i].opcode);

		wr.wr_id = 100 + i;
		expect_wqe(&wr, t[i].words, t[i].n);
	}
}

static void flags_of_a_wqe(void **state)
{
	static const struct {
		unsigned int flags;
		uint64_t w0;
	} t[] = {
		{ IBV_SEND_SIGNALED, 1 << 8 },
		{ IBV_SEND_SOLICITED, 1 << 9 },
		{ IBV_SEND_FENCE, 1 << 10 },
		{ IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE, 7 << 8 },
	};
	struct ibv_send_wr wr = wr_of(IBV_WR_RDMA_WRITE), *bad;
	struct ibv_qp *all;

	for (size_t i = 0; i < 4; i++) {
		uint64_t words[] = { W0(3, ONE_SGE | t[i].w0), 0, RADDR, W3(RKEY, 64), SGE_WORDS };

		wr.send_flags = t[i].flags;
		expect_wqe(&wr, words, 6);
	}
	/* A QP that signals all signals each WQE. */
	all = make_qp(cq, cq, true);
	wr.send_flags = 0;
	assert_int_equal(ibv_post_send(all, &wr, &bad), 0);
	assert_int_equal(fake_urdma_sqe(0)[0], W0(3, ONE_SGE | 1 << 8));
	assert_int_equal(fake_ops->destroy_qp(all), 0);
}

static void lists_of_elements(void **state)
{
	struct ibv_sge sge[SGES] = {
		{ 0x1000, 10, 1 },
		{ 0x2000, 0, 2 },
		{ 0x3000, 30, 3 },
		{ 0x4000, 0, 4 },
	};
	struct ibv_send_wr wr = wr_of(IBV_WR_RDMA_WRITE);
	/* Elements without bytes are left out. */
	const uint64_t two[] = { W0(3, 2 << 16), 0,	    RADDR,  W3(RKEY, 40),
				 0x1000,	 W3(10, 1), 0x3000, W3(30, 3) };
	const uint64_t none[] = { W0(3, 0), 0, RADDR, W3(RKEY, 0) };
	const uint64_t four[] = {
		W0(3, 4 << 16), 0,	  RADDR,  W3(RKEY, 60), 0x1000, W3(10, 1),
		0x2000,		W3(8, 2), 0x3000, W3(30, 3),	0x4000, W3(12, 4)
	};

	wr.sg_list = sge;
	wr.num_sge = SGES;
	expect_wqe(&wr, two, 8);
	sge[1].length = 8;
	sge[3].length = 12;
	expect_wqe(&wr, four, 12);
	sge[0].length = 0;
	wr.num_sge = 1;
	expect_wqe(&wr, none, 4);
	wr.num_sge = 0;
	wr.sg_list = NULL;
	expect_wqe(&wr, none, 4);
}

static void bad_lists_of_elements(void **state)
{
	struct ibv_sge sge[64];
	struct ibv_send_wr wr = wr_of(IBV_WR_RDMA_WRITE);
	struct ibv_send_wr atomic = wr_of(IBV_WR_ATOMIC_FETCH_AND_ADD);

	for (size_t i = 0; i < 64; i++)
		sge[i] = one_sge;
	wr.sg_list = sge;
	wr.num_sge = -1;
	expect_refused(&wr, EINVAL);
	/* The slot holds a little more than requested, but never this much. */
	wr.num_sge = 17;
	expect_refused(&wr, EINVAL);
	assert_int_equal(post_ex(&wr), EINVAL);
	/* The operands are in the place of a second element. */
	atomic.sg_list = sge;
	atomic.num_sge = 2;
	expect_refused(&atomic, EINVAL);
	assert_int_equal(post_ex(&atomic), EINVAL);
	/* The longest message has 2^30 bytes. */
	wr.num_sge = 2;
	sge[0].length = 1U << 30;
	sge[1].length = 1;
	expect_refused(&wr, EINVAL);
	assert_int_equal(post_ex(&wr), EINVAL);
	wr.num_sge = 1;
	sge[0].length++;
	expect_refused(&wr, EINVAL);
	assert_int_equal(post_ex(&wr), EINVAL);
	expect_silence(URDMA_DB_SQ);
}

static void inline_data(void **state)
{
	uint8_t data[INLINE + 64];
	struct ibv_sge sge[3] = {
		{ (uintptr_t)data, 5, 0 },
		{ (uintptr_t)(data + 5), 0, 0 },
		{ (uintptr_t)(data + 5), INLINE - 5, 0 },
	};
	struct ibv_send_wr wr = wr_of(IBV_WR_RDMA_WRITE);
	struct ibv_send_wr read = wr_of(IBV_WR_RDMA_READ);
	struct ibv_send_wr atomic = wr_of(IBV_WR_ATOMIC_CMP_AND_SWP);
	uint64_t words[4 + INLINE / 8] = { W0(3, 1 << 11), 0, RADDR, W3(RKEY, INLINE) };

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 1);
	memcpy(&words[4], data, INLINE);
	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list = sge;
	wr.num_sge = 3;
	expect_wqe(&wr, words, sizeof(words) / 8);
	words[3] = W3(RKEY, 0);
	wr.num_sge = 0;
	expect_wqe(&wr, words, 4);

	/* More than the slot holds, in one piece and in several. */
	wr.num_sge = 1;
	sge[0].length = INLINE + 1;
	expect_refused(&wr, ENOMEM);
	assert_int_equal(post_ex(&wr), ENOMEM);
	wr.num_sge = 3;
	sge[0].length = 6;
	expect_refused(&wr, ENOMEM);
	assert_int_equal(post_ex(&wr), ENOMEM);
	/* These send no data that could be inline. */
	read.send_flags = IBV_SEND_INLINE;
	expect_refused(&read, EINVAL);
	assert_int_equal(post_ex(&read), EINVAL);
	atomic.send_flags = IBV_SEND_INLINE;
	expect_refused(&atomic, EINVAL);
	assert_int_equal(post_ex(&atomic), EINVAL);
}

/* No struct ibv_send_wr exists for these: only the extended verbs post them. */
static int post_flush(size_t len, uint8_t type, uint8_t level)
{
	ibv_wr_start(qpx);
	qpx->wr_id = 5;
	qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	ibv_wr_flush(qpx, RKEY, RADDR, len, type, level);
	return ibv_wr_complete(qpx);
}

static int post_atomic_write(const void *value)
{
	ibv_wr_start(qpx);
	qpx->wr_id = 6;
	qpx->wr_flags = 0;
	ibv_wr_atomic_write(qpx, RKEY, RADDR, value);
	return ibv_wr_complete(qpx);
}

static void flush_and_atomic_write(void **state)
{
	static const uint8_t value[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const struct {
		size_t len;
		uint8_t type, level;
		uint64_t imm;
	} t[] = {
		{ 4096, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, 0x01 },
		{ 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, 0x11 },
		{ UINT32_MAX, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR, 0x12 },
		{ 1, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE, 0x03 },
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		uint64_t words[] = { W0(11, 5 << 8), t[i].imm, RADDR, W3(RKEY, 0), t[i].len };

		memset((void *)fake_urdma_sqe(next_sqe), 0xee, sizeof(words));
		assert_int_equal(post_flush(t[i].len, t[i].type, t[i].level), 0);
		assert_memory_equal(fake_urdma_sqe(next_sqe), words, sizeof(words));
		expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, (uint16_t)(next_sqe + 1));
		complete_send(next_sqe++);
		expect_poll(cq, 5);
	}
	for (int i = 0; i < 2; i++) {
		const uint64_t words[] = { W0(12, 0), 0, RADDR, W3(RKEY, 0) };

		memset((void *)fake_urdma_sqe(next_sqe), 0xee, 64);
		assert_int_equal(post_atomic_write(value), 0);
		assert_memory_equal(fake_urdma_sqe(next_sqe), words, sizeof(words));
		assert_memory_equal(&fake_urdma_sqe(next_sqe)[6], value, sizeof(value));
		complete_send(next_sqe++);
		expect_poll(cq, 6);
	}
	/* requests for which the WQE has no place */
	silence();
	assert_int_equal(post_flush((size_t)UINT32_MAX + 1, IBV_FLUSH_GLOBAL, 0), EINVAL);
	assert_int_equal(post_flush(1, 4, 0), EINVAL);
	assert_int_equal(post_flush(1, IBV_FLUSH_GLOBAL, 2), EINVAL);
	expect_silence(URDMA_DB_SQ);
}

/* A QP may use each of these only if the NIC supports it. */
static void flush_and_atomic_write_without_the_features(void **state)
{
	static const uint64_t features[] = { URDMA_RF_FEAT_FLUSH, URDMA_RF_FEAT_ATOMIC_WRITE };
	static const uint64_t ops[] = { IBV_QP_EX_WITH_FLUSH, IBV_QP_EX_WITH_ATOMIC_WRITE };
	const uint64_t value = 0;

	for (int missing = 0; missing < 2; missing++) {
		teardown(NULL);
		open_with(ALL_FEATURES & ~features[missing]);
		for (int i = 0; i < 2; i++) {
			struct ibv_qp_init_attr_ex attr = {
				.send_cq = cq,
				.recv_cq = recv_cq,
				.cap = { SQ_DEPTH, RQ_DEPTH, SGES, SGES, INLINE },
				.qp_type = IBV_QPT_RC,
				.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
				.pd = pd,
				.send_ops_flags = ops[i],
			};
			struct ibv_qp *made;

			errno = 0;
			made = fake_ops->create_qp_ex(ctx, &attr);
			if (i == missing) {
				assert_null(made);
				assert_int_equal(errno, EOPNOTSUPP);
			} else {
				assert_non_null(made);
				assert_int_equal(fake_ops->destroy_qp(made), 0);
			}
		}
		assert_int_equal(post_flush(8, IBV_FLUSH_GLOBAL, 0), missing ? 0 : EOPNOTSUPP);
		assert_int_equal(post_atomic_write(&value), missing ? EOPNOTSUPP : 0);
	}
}

static void binding_takes_the_windows_index(void **state)
{
	struct ibv_mr *mr = fake_ops->reg_mr(pd, &one_sge, 4096, 0, IBV_ACCESS_MW_BIND);
	struct ibv_mw *a = fake_ops->alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw *b = fake_ops->alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .wr_id = 3, .opcode = IBV_WR_BIND_MW };
	uint64_t words[] = { W0(10, 0), 0, 0x2000, 0, 512, 0, IBV_ACCESS_REMOTE_WRITE, 0 };

	assert_true(mr && a && b && a->rkey >> 8 != b->rkey >> 8);
	words[1] = mr->lkey;
	/* Key of B, variant 0x5a: window A of variant 0x5a. */
	words[3] = (a->rkey & ~0xffu) | 0x5a;
	wr.bind_mw.mw = a;
	wr.bind_mw.rkey = (b->rkey & ~0xffu) | 0x5a;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr,
		.addr = 0x2000,
		.length = 512,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	expect_wqe(&wr, words, 8);
	/* The right to FLUSH has another position. */
	wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_FLUSH_GLOBAL;
	words[6] |= URDMA_ACC_FLUSH_GLOBAL;
	expect_wqe(&wr, words, 8);
	/* Addresses from 0. In the NIC this bit is the right to FLUSH. */
	words[6] |= URDMA_SQE6_MR_ZERO_BASED;
	wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	expect_wqe(&wr, words, 8);
	words[6] &= ~URDMA_ACC_FLUSH_GLOBAL;
	wr.bind_mw.bind_info.mw_access_flags &= ~IBV_ACCESS_FLUSH_GLOBAL;
	expect_wqe(&wr, words, 8);
	words[6] |= URDMA_ACC_LOCAL_WRITE;
	wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_LOCAL_WRITE;
	expect_wqe(&wr, words, 8);
	/* The key that A has anyway. */
	wr.bind_mw.rkey = ibv_inc_rkey(a->rkey);
	words[3] = ibv_inc_rkey(a->rkey);
	expect_wqe(&wr, words, 8);
	/* No region: a window without bytes. */
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ .addr = 0x2000 };
	words[1] = 0;
	words[4] = 0;
	words[6] = 0;
	expect_wqe(&wr, words, 8);

	fake_ops->dealloc_mw(a);
	fake_ops->dealloc_mw(b);
	fake_ops->dereg_mr(container_of(mr, struct verbs_mr, ibv_mr));
}

static void expect_bind(struct ibv_mw *mw, struct ibv_mw_bind *bind, const uint64_t *words)
{
	uint32_t key = ibv_inc_rkey(mw->rkey);

	memset((void *)fake_urdma_sqe(next_sqe), 0xee, 64);
	silence();
	assert_int_equal(fake_ops->bind_mw(qp, mw, bind), 0);
	assert_memory_equal(fake_urdma_sqe(next_sqe), words, 64);
	assert_int_equal(words[3], key);
	assert_int_equal(mw->rkey, key);
	assert_int_equal(mw->type, IBV_MW_TYPE_1);
	expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, (uint16_t)(next_sqe + 1));
	complete_send(next_sqe++);
	expect_poll(cq, bind->wr_id);
}

/* A type 1 window is bound by its own verb, which chooses the key. */
static void binding_of_type_1(void **state)
{
	struct ibv_mr *mr = fake_ops->reg_mr(pd, &one_sge, 4096, 0, IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = fake_ops->alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw *other = fake_ops->alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = {
		.wr_id = 77,
		.bind_info = { mr, 0x2000, 512, IBV_ACCESS_REMOTE_READ },
	};
	uint64_t words[8] = { W0(10, 0), 0, 0x2000, 0, 512, 0, IBV_ACCESS_REMOTE_READ, 0 };
	uint64_t nothing[8] = { W0(10, 0) };
	uint32_t key;

	assert_true(mr && mw && other && mw->type == IBV_MW_TYPE_1);
	words[1] = mr->lkey;
	words[3] = ibv_inc_rkey(mw->rkey);
	expect_bind(mw, &bind, words);
	bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	words[3] = ibv_inc_rkey(mw->rkey);
	words[6] |= URDMA_SQE6_MR_ZERO_BASED;
	expect_bind(mw, &bind, words);
	bind.bind_info = (struct ibv_mw_bind_info){ 0 };
	nothing[3] = ibv_inc_rkey(mw->rkey);
	expect_bind(mw, &bind, nothing);
	/* A request that is not posted changes no key. */
	key = other->rkey;
	assert_int_equal(fake_ops->bind_mw(qp, other, &bind), EINVAL);
	assert_int_equal(other->rkey, key);
	do
		key = mw->rkey;
	while (!fake_ops->bind_mw(qp, mw, &bind));
	assert_int_equal(fake_ops->bind_mw(qp, mw, &bind), ENOMEM);
	assert_int_equal(mw->rkey, key);

	fake_ops->dealloc_mw(mw);
	fake_ops->dealloc_mw(other);
	fake_ops->dereg_mr(container_of(mr, struct verbs_mr, ibv_mr));
}

static void bad_bindings(void **state)
{
	struct ibv_pd *other = fake_ops->alloc_pd(ctx);
	struct ibv_mr *mr = fake_ops->reg_mr(pd, &one_sge, 4096, 0, IBV_ACCESS_MW_BIND);
	struct ibv_mr *foreign = fake_ops->reg_mr(other, &one_sge, 4096, 0, IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = fake_ops->alloc_mw(pd, IBV_MW_TYPE_2);
	const struct ibv_send_wr good = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw, .rkey = mw->rkey, .bind_info = { mr, 0x2000, 512, 0 } },
	};
	struct ibv_send_wr wr = good;

	wr.bind_mw.bind_info.mr = foreign;
	expect_refused(&wr, EPERM);
	assert_int_equal(post_ex(&wr), EPERM);
	wr.bind_mw.bind_info.mr = NULL;
	expect_refused(&wr, EPERM);
	assert_int_equal(post_ex(&wr), EPERM);
	wr = good;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_ON_DEMAND;
	expect_refused(&wr, EOPNOTSUPP);
	assert_int_equal(post_ex(&wr), EOPNOTSUPP);
	wr = good;
	mw->type = IBV_MW_TYPE_1;
	expect_refused(&wr, EINVAL);
	assert_int_equal(post_ex(&wr), EINVAL);

	fake_ops->dealloc_mw(mw);
	fake_ops->dereg_mr(container_of(mr, struct verbs_mr, ibv_mr));
	fake_ops->dereg_mr(container_of(foreign, struct verbs_mr, ibv_mr));
	fake_ops->dealloc_pd(other);
}

/* Of both types. Any other binding is posted. */
static void cannot_bind_zero_based(void)
{
	struct ibv_mr *mr = fake_ops->reg_mr(pd, &one_sge, 4096, 0, IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = fake_ops->alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw *one = fake_ops->alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw,
			     .rkey = mw->rkey,
			     .bind_info = { mr, 0x2000, 512, IBV_ACCESS_ZERO_BASED } },
	};
	struct ibv_mw_bind bind = { .bind_info = wr.bind_mw.bind_info };
	uint32_t key = one->rkey;

	expect_refused(&wr, EOPNOTSUPP);
	assert_int_equal(post_ex(&wr), EOPNOTSUPP);
	assert_int_equal(fake_ops->bind_mw(qp, one, &bind), EOPNOTSUPP);
	assert_int_equal(one->rkey, key);
	bind.bind_info.mw_access_flags = 0;
	assert_int_equal(fake_ops->bind_mw(qp, one, &bind), 0);

	fake_ops->dealloc_mw(mw);
	fake_ops->dealloc_mw(one);
	fake_ops->dereg_mr(container_of(mr, struct verbs_mr, ibv_mr));
}

static void what_the_device_cannot_do(void **state)
{
	static const struct {
		uint64_t feature;
		enum ibv_wr_opcode opcode[4];
		size_t n;
	} t[] = {
		{ URDMA_RF_FEAT_RC_SEND, { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM }, 2 },
		{ URDMA_RF_FEAT_RC_WRITE, { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM }, 2 },
		{ URDMA_RF_FEAT_RC_READ, { IBV_WR_RDMA_READ }, 1 },
		{ URDMA_RF_FEAT_RC_ATOMIC,
		  { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD },
		  2 },
		{ URDMA_RF_FEAT_MEM_MGT, { IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV }, 2 },
		{ URDMA_RF_FEAT_MW_2B, { IBV_WR_BIND_MW }, 1 },
	};
	static const enum ibv_wr_opcode unknown[] = { IBV_WR_TSO, IBV_WR_FLUSH, IBV_WR_ATOMIC_WRITE,
						      31,	  32,		4000 };
	struct ibv_send_wr wr;

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		wr = wr_of(IBV_WR_SEND);
		wr.opcode = unknown[i];
		expect_refused(&wr, EOPNOTSUPP);
	}
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		teardown(NULL);
		open_with(ALL_FEATURES & ~t[i].feature);
		for (size_t k = 0; k < t[i].n; k++) {
			wr = wr_of(t[i].opcode[k]);
			expect_refused(&wr, EOPNOTSUPP);
			assert_int_equal(post_ex(&wr), EOPNOTSUPP);
		}
	}
	errno = 0;
	assert_null(fake_ops->alloc_mw(pd, IBV_MW_TYPE_2));
	assert_int_equal(errno, EOPNOTSUPP);
	teardown(NULL);
	open_with(ALL_FEATURES & ~URDMA_RF_FEAT_ZERO_BASED);
	cannot_bind_zero_based();
	teardown(NULL);
	open_with(ALL_FEATURES & ~URDMA_RF_FEAT_MW_1);
	errno = 0;
	assert_null(fake_ops->alloc_mw(pd, IBV_MW_TYPE_1));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void states_that_may_post(void **state)
{
	static const enum ibv_qp_state no_send[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR };
	static const enum ibv_qp_state send[] = { IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE,
						  IBV_QPS_ERR };
	struct ibv_send_wr wr = wr_of(IBV_WR_SEND), *bad_wr;
	struct ibv_recv_wr recv = { .sg_list = &one_sge, .num_sge = 1 }, *bad_recv;

	for (size_t i = 0; i < 3; i++) {
		move_to(qp, no_send[i]);
		expect_refused(&wr, EINVAL);
		assert_int_equal(post_ex(&wr), EINVAL);
		expect_silence(URDMA_DB_SQ);
	}
	for (size_t i = 0; i < 4; i++) {
		move_to(qp, send[i]);
		assert_int_equal(post(&wr, &bad_wr), 0);
		assert_int_equal(post_ex(&wr), 0);
		assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	}
	move_to(qp, IBV_QPS_INIT);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	move_to(qp, IBV_QPS_RESET);
	silence();
	bad_recv = NULL;
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	expect_silence(URDMA_DB_RQ);
}

static void a_list_ends_at_its_first_error(void **state)
{
	struct ibv_send_wr wr[4], *bad;

	for (size_t i = 0; i < 4; i++) {
		wr[i] = wr_of(IBV_WR_RDMA_WRITE);
		wr[i].wr_id = i;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = -1;
	silence();
	assert_int_equal(post(wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	/* Those before it are posted. */
	expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, 2);
	wr[2].num_sge = 1;
	assert_int_equal(post(bad, &bad), 0);
	expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, 4);
	for (uint16_t i = 0; i < 4; i++)
		complete_send(i);
	for (uint64_t i = 0; i < 4; i++)
		expect_poll(cq, i);
	assert_int_equal(post(NULL, &bad), 0);
	expect_silence(URDMA_DB_SQ);
}

/* More than 2^16 WQEs, in batches that do not divide the ring, which is full each time. */
static void send_queue_wraps(void **state)
{
	const uint32_t slots = fake_urdma_sq_slots();
	struct ibv_send_wr wr = wr_of(IBV_WR_RDMA_WRITE), *bad;
	uint32_t head = 0, tail = 0;

	assert_int_equal(slots, SQ_DEPTH);
	while (head < 70000) {
		while (head - tail < slots) {
			wr.wr_id = head;
			wr.wr.rdma.remote_addr = head;
			assert_int_equal(post(&wr, &bad), 0);
			assert_int_equal(fake_urdma_sqe((uint16_t)head)[2], head);
			head++;
			expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, (uint16_t)head);
		}
		expect_refused(&wr, ENOMEM);
		assert_int_equal(post_ex(&wr), ENOMEM);
		expect_silence(URDMA_DB_SQ);
		/* One completion ends five WQEs, because four were not signaled. */
		tail += 5;
		complete_send((uint16_t)(tail - 1));
		expect_poll(cq, tail - 1);
	}
}

static void a_batch_is_posted_whole_or_not(void **state)
{
	struct ibv_sge sge = one_sge;
	const uint64_t *w;

	/* Three, the last without data. */
	silence();
	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	for (uint64_t i = 0; i < 3; i++) {
		qpx->wr_id = 10 + i;
		ibv_wr_rdma_write(qpx, RKEY, RADDR + i);
		if (i < 2)
			ibv_wr_set_sge(qpx, sge.lkey, sge.addr, sge.length);
	}
	expect_silence(URDMA_DB_SQ);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, 3);
	w = fake_urdma_sqe(2);
	assert_true(w[0] == W0(3, 1 << 8) && w[2] == RADDR + 2 && w[3] == W3(RKEY, 0));

	/* An error in the middle, and an abort. */
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, sge.lkey, sge.addr, (1U << 30) + 1);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, &sge, 8);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, sge.lkey, sge.addr, 1);
	ibv_wr_abort(qpx);
	expect_silence(URDMA_DB_SQ);
	ibv_wr_start(qpx);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	expect_silence(URDMA_DB_SQ);

	/* The next one takes the slot after the first batch. */
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, &sge, 8);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, 4);
	w = fake_urdma_sqe(3);
	assert_true(w[0] == W0(0, 9 << 8) && w[3] == W3(0, 8));
	for (uint16_t i = 0; i < 3; i++)
		complete_send(i);
	for (uint64_t i = 0; i < 3; i++)
		expect_poll(cq, 10 + i);
}

/* ---- receives ----------------------------------------------------------------------------------
 */

static void receive_queue(void **state)
{
	struct ibv_sge sge[SGES] = {
		{ 0x1000, 10, 1 },
		{ 0x2000, 0, 2 },
		{ 0x3000, 30, 3 },
		{ 0x4000, 0, 4 },
	};
	struct ibv_recv_wr wr[3] = {
		{ .wr_id = 1, .next = &wr[1], .sg_list = sge, .num_sge = SGES },
		{ .wr_id = 2, .next = &wr[2], .sg_list = &one_sge, .num_sge = 1 },
		{ .wr_id = 3, .num_sge = 0 },
	};
	const uint64_t words[3][6] = {
		{ 2, 0, 0x1000, W3(10, 1), 0x3000, W3(30, 3) },
		{ 1, 0, 0x1000, W3(64, LKEY) },
		{ 0, 0 },
	};
	static const size_t n[3] = { 6, 4, 2 };
	struct ibv_recv_wr *bad = NULL;
	uint32_t head = 3, tail = 0;

	silence();
	for (uint16_t i = 0; i < 3; i++) {
		/* Word 1 belongs to the new ring: nobody writes it. */
		memset((void *)fake_urdma_rqe(i), 0xee, 8);
		memset((void *)(fake_urdma_rqe(i) + 2), 0xee, 32);
	}
	assert_int_equal(ibv_post_recv(qp, wr, &bad), 0);
	expect_doorbell(URDMA_DB_RQ, qp->qp_num, 0, 3);
	for (uint16_t i = 0; i < 3; i++)
		assert_memory_equal(fake_urdma_rqe(i), words[i], n[i] * 8);

	/* Bad numbers of elements, in the middle of a list. */
	for (unsigned int k = 0; k < 2; k++) {
		wr[1].num_sge = k ? 17 : -1;
		assert_int_equal(ibv_post_recv(qp, wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr[1]);
		expect_doorbell(URDMA_DB_RQ, qp->qp_num, 0, ++head);
		assert_int_equal(ibv_post_recv(qp, &wr[1], &bad), EINVAL);
		expect_silence(URDMA_DB_RQ);
	}
	assert_int_equal(ibv_post_recv(qp, NULL, &bad), 0);
	expect_silence(URDMA_DB_RQ);

	/* Full, again and again, until the index has wrapped. */
	wr[2].sg_list = &one_sge;
	wr[2].num_sge = 1;
	while (head < 70000) {
		while (head - tail < RQ_DEPTH) {
			wr[2].wr_id = head;
			assert_int_equal(ibv_post_recv(qp, &wr[2], &bad), 0);
			head++;
			expect_doorbell(URDMA_DB_RQ, qp->qp_num, 0, (uint16_t)head);
		}
		bad = NULL;
		assert_int_equal(ibv_post_recv(qp, &wr[2], &bad), ENOMEM);
		assert_ptr_equal(bad, &wr[2]);
		expect_silence(URDMA_DB_RQ);
		for (unsigned int i = 0; i < 5; i++, tail++) {
			complete(recv_cq,
				 &(struct cqe){ .qp = qp, .recv = true, .wqe = (uint16_t)tail });
			if (tail >= 5)
				expect_poll(recv_cq, tail);
			else
				expect_poll(recv_cq, tail < 3 ? tail + 1 : 1);
		}
	}
}

/* ---- polling -----------------------------------------------------------------------------------
 */

static void status_of_a_completion(void **state)
{
	static const struct {
		uint8_t nic;
		enum ibv_wc_status wc;
	} t[] = {
		{ 0, IBV_WC_SUCCESS },
		{ 1, IBV_WC_LOC_LEN_ERR },
		{ 2, IBV_WC_LOC_QP_OP_ERR },
		{ 4, IBV_WC_LOC_PROT_ERR },
		{ 5, IBV_WC_WR_FLUSH_ERR },
		{ 6, IBV_WC_MW_BIND_ERR },
		{ 7, IBV_WC_BAD_RESP_ERR },
		{ 8, IBV_WC_LOC_ACCESS_ERR },
		{ 9, IBV_WC_REM_INV_REQ_ERR },
		{ 10, IBV_WC_REM_ACCESS_ERR },
		{ 11, IBV_WC_REM_OP_ERR },
		{ 12, IBV_WC_RETRY_EXC_ERR },
		{ 13, IBV_WC_RNR_RETRY_EXC_ERR },
		{ 3, IBV_WC_GENERAL_ERR },
		{ 14, IBV_WC_GENERAL_ERR },
		{ 255, IBV_WC_GENERAL_ERR },
	};
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_wc wc;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct cqe c = { .qp = qp, .status = t[i].nic, .vendor = 0x5a };

		complete(cq, &c);
		complete(cq, &c);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.status, t[i].wc);
		assert_int_equal(wc.vendor_err, 0x5a);
		assert_int_equal(ibv_start_poll(cq_ex, &poll), 0);
		assert_int_equal(cq_ex->status, t[i].wc);
		assert_int_equal(ibv_wc_read_vendor_err(cq_ex), 0x5a);
		ibv_end_poll(cq_ex);
	}
}

static void opcode_of_a_completion(void **state)
{
	static const struct {
		uint8_t nic;
		bool recv;
		enum ibv_wc_opcode wc;
	} t[] = {
		{ 0, false, IBV_WC_SEND },
		{ 1, false, IBV_WC_SEND },
		{ 2, false, IBV_WC_SEND },
		{ 3, false, IBV_WC_RDMA_WRITE },
		{ 4, false, IBV_WC_RDMA_WRITE },
		{ 5, false, IBV_WC_RDMA_READ },
		{ 6, false, IBV_WC_COMP_SWAP },
		{ 7, false, IBV_WC_FETCH_ADD },
		{ 8, false, IBV_WC_LOCAL_INV },
		{ 10, false, IBV_WC_BIND_MW },
		{ 11, false, IBV_WC_FLUSH },
		{ 12, false, IBV_WC_ATOMIC_WRITE },
		{ 0, true, IBV_WC_RECV },
		{ 1, true, IBV_WC_RECV },
		{ 2, true, IBV_WC_RECV },
		{ 4, true, IBV_WC_RECV_RDMA_WITH_IMM },
		/* flushed ones, whose other fields are not valid */
		{ 3, true, IBV_WC_RECV },
		{ 255, true, IBV_WC_RECV },
		{ 255, false, IBV_WC_SEND },
	};
	struct ibv_wc wc;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		complete(cq, &(struct cqe){ .qp = qp, .opcode = t[i].nic, .recv = t[i].recv });
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.opcode, t[i].wc);
	}
}

static void fields_of_a_completion(void **state)
{
	struct ibv_recv_wr recv[3], *bad;
	struct ibv_poll_cq_attr poll = { 0 };
	struct cqe c = {
		.qp = qp,
		.recv = true,
		.opcode = URDMA_WR_SEND_IMM,
		.length = 0xfedcba98,
		.imm = IMM,
		.src_qp = 0xabcdef,
		.flags = URDMA_CQE0_IMM | URDMA_CQE0_SOLICITED,
	};
	struct ibv_wc wc[4];

	for (size_t i = 0; i < 3; i++) {
		recv[i] = (struct ibv_recv_wr){ .wr_id = 50 + i };
		assert_int_equal(ibv_post_recv(qp, &recv[i], &bad), 0);
	}
	memset(wc, 0xee, sizeof(wc));
	complete(cq, &c);
	c.wqe = 1;
	c.opcode = URDMA_WR_SEND_INV;
	c.flags = URDMA_CQE0_INV;
	complete(cq, &c);
	c.wqe = 2;
	c.opcode = URDMA_WR_SEND;
	c.flags = 0;
	complete(cq, &c);
	assert_int_equal(ibv_poll_cq(cq, 4, wc), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(wc[i].wr_id, 50 + i);
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		assert_int_equal(wc[i].byte_len, 0xfedcba98);
		assert_int_equal(wc[i].qp_num, qp->qp_num);
		assert_int_equal(wc[i].src_qp, 0xabcdef);
		assert_int_equal(wc[i].pkey_index, 0);
		assert_int_equal(wc[i].slid, 0);
		assert_int_equal(wc[i].sl, 0);
		assert_int_equal(wc[i].dlid_path_bits, 0);
	}
	assert_int_equal(wc[0].wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc[0].imm_data, htobe32(0x01020304));
	assert_int_equal(wc[1].wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc[1].invalidated_rkey, IMM);
	assert_int_equal(wc[2].wc_flags, 0);
	assert_int_equal(wc[2].imm_data, 0);

	/* By the extended verbs, with the cycle of the CQE. */
	c.opcode = URDMA_WR_WRITE_IMM;
	c.flags = URDMA_CQE0_IMM;
	complete(cq, &c);
	complete(cq, &c);
	assert_int_equal(ibv_start_poll(cq_ex, &poll), 0);
	assert_int_equal(cq_ex->wr_id, 52);
	assert_int_equal(cq_ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq_ex), IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(ibv_wc_read_byte_len(cq_ex), 0xfedcba98);
	assert_int_equal(ibv_wc_read_imm_data(cq_ex), htobe32(0x01020304));
	assert_int_equal(ibv_wc_read_qp_num(cq_ex), qp->qp_num);
	assert_int_equal(ibv_wc_read_src_qp(cq_ex), 0xabcdef);
	assert_int_equal(ibv_wc_read_wc_flags(cq_ex), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_slid(cq_ex), 0);
	assert_int_equal(ibv_wc_read_sl(cq_ex), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq_ex), 0);
	assert_int_equal(ibv_wc_read_completion_ts(cq_ex), 1002);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
	ibv_end_poll(cq_ex);
	assert_int_equal(ibv_start_poll(cq_ex, &poll), ENOENT);
	poll.comp_mask = 1;
	assert_int_equal(ibv_start_poll(cq_ex, &poll), EINVAL);
	expect_empty(cq);
}

/* The ring wraps several times; CQEs of the round before are not taken. */
static void phase_and_consumer_index(void **state)
{
	const uint32_t n = fake_urdma_cqes(recv_cq);
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_wc wc[128];
	uint32_t ci = 0, told = 0;

	assert_int_equal(n, 128);
	silence();
	while (ci < 5 * n) {
		expect_empty(recv_cq);
		for (uint16_t i = 0; i < 5; i++)
			complete(recv_cq, &(struct cqe){ .qp = qp, .wqe = i });
		assert_int_equal(ibv_poll_cq(recv_cq, 3, wc), 3);
		ci += 3;
		if (ci - told >= n / 4) {
			told += n / 4;
			expect_doorbell(URDMA_DB_CQ, recv_cq->handle, 0, told);
		}
		assert_int_equal(ibv_poll_cq(recv_cq, 8, wc), 2);
		ci += 2;
		/* The NIC is told at each quarter of the ring. */
		if (ci - told >= n / 4) {
			told += n / 4;
			expect_doorbell(URDMA_DB_CQ, recv_cq->handle, 0, told);
		}
		expect_silence(URDMA_DB_CQ);
	}
	assert_int_equal(ibv_poll_cq(recv_cq, 0, wc), 0);

	/* Within a call as well: the NIC writes more CQEs meanwhile. */
	for (uint32_t i = 0; i < n; i++)
		complete(recv_cq, &(struct cqe){ .qp = qp, .wqe = (uint16_t)i });
	assert_int_equal(ibv_poll_cq(recv_cq, (int)(told + n / 4 - ci + 8), wc),
			 told + n / 4 - ci + 8);
	expect_doorbell(URDMA_DB_CQ, recv_cq->handle, 0, told + n / 4);
	assert_int_equal(ibv_poll_cq(recv_cq, (int)n, wc), ci + 3 * n / 4 - told - 8);
	expect_doorbell(URDMA_DB_CQ, recv_cq->handle, 0,
			told + (ci + n - told) / (n / 4) * (n / 4));

	/* A whole ring, also by extended polling. */
	for (uint32_t i = 0; i < n; i++)
		complete_send(0);
	assert_int_equal(ibv_start_poll(cq_ex, &poll), 0);
	for (uint32_t i = 1; i < n; i++) {
		/* Within a batch, which may go on forever. */
		if (i % (n / 4) == 0)
			expect_doorbell(URDMA_DB_CQ, cq->handle, 0, i);
		expect_silence(URDMA_DB_CQ);
		assert_int_equal(ibv_next_poll(cq_ex), 0);
	}
	expect_doorbell(URDMA_DB_CQ, cq->handle, 0, n);
	assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
	ibv_end_poll(cq_ex);
	expect_silence(URDMA_DB_CQ);
}

static void arming(void **state)
{
	silence();
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	expect_doorbell(URDMA_DB_CQ, cq->handle, 1, 0);
	complete_send(0);
	expect_poll(cq, 0);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	expect_doorbell(URDMA_DB_CQ, cq->handle, 2, 1);
	assert_int_equal(ibv_req_notify_cq(recv_cq, 0), 0);
	expect_doorbell(URDMA_DB_CQ, recv_cq->handle, 1, 0);
}

static void flushed_requests(void **state)
{
	struct ibv_send_wr wr = wr_of(IBV_WR_SEND), *bad;
	struct ibv_recv_wr recv = { .num_sge = 0 }, *bad_recv;
	struct ibv_wc wc[2 * SQ_DEPTH];

	move_to(qp, IBV_QPS_ERR);
	for (unsigned int round = 0; round < 3; round++) {
		for (uint16_t i = 0; i < SQ_DEPTH; i++) {
			wr.wr_id = 100 + i;
			recv.wr_id = 200 + i;
			assert_int_equal(post(&wr, &bad), 0);
			assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
		}
		for (uint16_t i = 0; i < SQ_DEPTH; i++) {
			struct cqe c = {
				.qp = qp,
				.status = URDMA_WC_FLUSH_ERR,
				.wqe = (uint16_t)(i + round * SQ_DEPTH),
			};

			complete(cq, &c);
			c.recv = true;
			complete(cq, &c);
		}
		assert_int_equal(ibv_poll_cq(cq, 2 * SQ_DEPTH, wc), 2 * SQ_DEPTH);
		for (unsigned int i = 0; i < 2 * SQ_DEPTH; i++) {
			assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
			assert_int_equal(wc[i].wr_id, (i % 2 ? 200 : 100) + i / 2);
			assert_int_equal(wc[i].opcode, i % 2 ? IBV_WC_RECV : IBV_WC_SEND);
		}
	}
}

/* ---- objects that come and go ------------------------------------------------------------------
 */

static void reset_forgets(void **state)
{
	struct ibv_send_wr wr = wr_of(IBV_WR_RDMA_WRITE), *bad;

	for (uint16_t i = 0; i < 37; i++) {
		assert_int_equal(post(&wr, &bad), 0);
		complete_send(i);
		expect_poll(cq, wr.wr_id);
	}
	for (uint16_t i = 0; i < SQ_DEPTH; i++)
		assert_int_equal(post(&wr, &bad), 0);
	expect_refused(&wr, ENOMEM);
	complete_send(38);
	move_to(qp, IBV_QPS_RESET);
	expect_empty(cq);
	/* All slots are free and no more, and the first index is 0. */
	move_to(qp, IBV_QPS_RTS);
	for (uint16_t i = 0; i < SQ_DEPTH; i++) {
		wr.wr_id = i;
		assert_int_equal(post(&wr, &bad), 0);
		expect_doorbell(URDMA_DB_SQ, qp->qp_num, 0, i + 1u);
	}
	expect_refused(&wr, ENOMEM);
	complete_send(0);
	expect_poll(cq, 0);
}

/* CQEs of a QP that is destroyed are dropped from among others; its number may be given again. */
static void a_destroyed_qp_is_forgotten(void **state)
{
	struct ibv_qp *gone = make_qp(cq, cq, false), *again, *first = qp;
	struct ibv_recv_wr recv = { .wr_id = 9 }, *bad;
	uint32_t qpn = gone->qp_num;
	struct ibv_wc wc[8];

	for (uint16_t i = 0; i < 3; i++) {
		complete(cq, &(struct cqe){ .qp = first, .wqe = i, .vendor = (uint8_t)i });
		complete(cq, &(struct cqe){ .qp = gone, .wqe = i });
		complete(cq, &(struct cqe){ .qp = gone, .recv = true, .wqe = i });
	}
	/* Polling has looked at it last when it is destroyed. */
	assert_int_equal(ibv_poll_cq(cq, 3, wc), 3);
	assert_int_equal(wc[2].qp_num, qpn);
	assert_int_equal(fake_ops->destroy_qp(gone), 0);
	assert_int_equal(ibv_poll_cq(cq, 8, wc), 2);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(wc[i].qp_num, first->qp_num);
		assert_int_equal(wc[i].vendor_err, i + 1);
	}

	for (unsigned int i = 0; i < 2; i++) {
		fake_next_qpn = qpn;
		again = make_qp(cq, cq, false);
		assert_int_equal(again->qp_num, qpn);
		recv.wr_id = 9 + i;
		assert_int_equal(ibv_post_recv(again, &recv, &bad), 0);
		complete(cq, &(struct cqe){ .qp = again, .recv = true });
		expect_poll(cq, 9 + i);
		assert_int_equal(fake_ops->destroy_qp(again), 0);
		expect_empty(cq);
	}
}

/* A ring full of CQEs of a destroyed QP is room for the NIC again, without a poll. */
static void dropped_cqes_are_told(void **state)
{
	struct ibv_qp *gone = make_qp(recv_cq, recv_cq, false);

	for (uint32_t i = 0; i < fake_urdma_cqes(recv_cq); i++)
		complete(recv_cq, &(struct cqe){ .qp = gone });
	silence();
	assert_int_equal(fake_ops->destroy_qp(gone), 0);
	expect_doorbell(URDMA_DB_CQ, recv_cq->handle, 0, fake_urdma_cqes(recv_cq));
	expect_empty(recv_cq);
}

/*
 * CQEs of a QP are dropped from among those of another, at each place of the ring and in each
 * round. The remaining ones are polled in order, and the room of the dropped ones is used again.
 */
static void dropped_cqes_are_room(void **state)
{
	const uint32_t n = fake_urdma_cqes(recv_cq);
	struct ibv_qp *gone = make_qp(recv_cq, recv_cq, false);
	uint64_t random = test_seed(1);
	uint32_t ci = 0;
	struct ibv_wc wc[256];

	for (unsigned int round = 0; round < 500; round++) {
		unsigned int share = round % 9, want = 0, more;

		silence();
		for (uint32_t i = 0; i < n; i++) {
			if (rnd_below(&random, 8) && rnd_below(&random, 8) < share)
				complete(recv_cq, &(struct cqe){ .qp = gone, .wqe = (uint16_t)i });
			else
				complete(recv_cq,
					 &(struct cqe){ .qp = qp, .vendor = (uint8_t)want++ });
		}
		move_to(gone, IBV_QPS_RESET);
		ci += n - want;
		/* The ring has this room now, whether the NIC was told of it or not. */
		more = rnd_below(&random, 2) ? n - want : (n - want) / 2;
		for (unsigned int i = 0; i < more; i++)
			complete(recv_cq, &(struct cqe){ .qp = qp, .vendor = (uint8_t)want++ });
		assert_int_equal(ibv_poll_cq(recv_cq, 256, wc), want);
		for (unsigned int i = 0; i < want; i++) {
			assert_int_equal(wc[i].qp_num, qp->qp_num);
			assert_int_equal(wc[i].vendor_err, (uint8_t)i);
		}
		ci += want;
		move_to(gone, IBV_QPS_RTS);
	}
	assert_int_equal(ibv_req_notify_cq(recv_cq, 0), 0);
	expect_doorbell(URDMA_DB_CQ, recv_cq->handle, 1, ci);
	assert_int_equal(fake_ops->destroy_qp(gone), 0);
}

/* A refusal by the kernel leaves nothing behind: the address sanitizer looks for leaks. */
static void the_kernel_refuses(void **state)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { SQ_DEPTH, RQ_DEPTH, SGES, SGES, INLINE },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_init_attr bad = attr;
	struct ibv_pd *unused = fake_ops->alloc_pd(ctx);

	assert_int_equal(fake_ops->dealloc_pd(pd), EBUSY);
	fake_error = EDQUOT;
	errno = 0;
	assert_null(fake_ops->create_qp(pd, &attr));
	assert_int_equal(errno, EDQUOT);
	errno = 0;
	assert_null(fake_ops->create_cq(ctx, CQES, NULL, 0));
	assert_int_equal(errno, EDQUOT);
	assert_null(fake_ops->alloc_pd(ctx));
	assert_null(fake_ops->alloc_mw(pd, IBV_MW_TYPE_2));
	assert_null(fake_ops->reg_mr(pd, NULL, 0, 0, 0));
	assert_int_equal(fake_ops->destroy_qp(qp), EDQUOT);
	assert_int_equal(fake_ops->destroy_cq(cq), EDQUOT);
	assert_int_equal(fake_ops->dealloc_pd(unused), EDQUOT);
	fake_error = 0;
	assert_int_equal(fake_ops->dealloc_pd(unused), 0);

	bad.cap.max_inline_data = 257;
	assert_null(fake_ops->create_qp(pd, &bad));
	bad = attr;
	bad.cap.max_send_sge = 17;
	assert_null(fake_ops->create_qp(pd, &bad));
	bad = attr;
	bad.cap.max_recv_wr = 4097;
	assert_null(fake_ops->create_qp(pd, &bad));
	bad = attr;
	bad.qp_type = IBV_QPT_RAW_PACKET;
	assert_null(fake_ops->create_qp(pd, &bad));
	assert_null(fake_ops->create_cq(ctx, 0, NULL, 0));
	assert_null(fake_ops->create_cq(ctx, 65536, NULL, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The NIC's clock, in the unit of completions' times, and nothing that was not requested. */
static void the_time_now(void **state)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 1u << 31,
					.raw_clock = { -1, -1 } };

	(void)state;
	assert_int_equal(fake_ops->query_rt_values(ctx, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_int_equal(values.raw_clock.tv_sec, 0);
	assert_int_equal(values.raw_clock.tv_nsec, FAKE_CYCLES);
	values = (struct ibv_values_ex){ .comp_mask = 1u << 31 };
	assert_int_equal(fake_ops->query_rt_values(ctx, &values), EINVAL);
	assert_int_equal(values.comp_mask, 0);
	values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	fake_error = EIO;
	assert_int_equal(fake_ops->query_rt_values(ctx, &values), EIO);
	fake_error = 0;
	assert_int_equal(values.comp_mask, 0);
}

static int64_t wall_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The wall-clock time of a completion that the NIC makes this many cycles from now. */
static int64_t wall_time_of(struct ibv_cq_ex *with, int64_t ahead)
{
	struct ibv_poll_cq_attr poll = { 0 };
	int64_t ns;

	fake_urdma_cqe(ibv_cq_ex_to_cq(with), URDMA_CQE0_RECV,
		       FIELD_PREP(URDMA_CQE1_QPN, (uint64_t)qp->qp_num), 0,
		       (FAKE_CYCLES + (uint64_t)ahead) & (UINT64_MAX >> 1));
	assert_int_equal(ibv_start_poll(with, &poll), 0);
	ns = (int64_t)ibv_wc_read_completion_wallclock_ns(with);
	ibv_end_poll(with);
	return ns;
}

/* The NIC's clock stands still here. A cycle is 4 ns. The last completion is from before the clock
 * wrapped to 0. */
static void the_date_of_a_completion(void **state)
{
	static const int64_t ahead[] = { 0, 250000, -250000, 1, -(int64_t)FAKE_CYCLES - 5 };
	struct ibv_cq_init_attr_ex attr = {
		.cqe = CQES,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	int64_t before = wall_now(), ns;
	struct ibv_cq_ex *with = fake_ops->create_cq_ex(ctx, &attr);

	(void)state;
	assert_non_null(with);
	for (size_t i = 0; i < sizeof(ahead) / sizeof(ahead[0]); i++) {
		ns = wall_time_of(with, ahead[i]) - 4 * ahead[i];
		assert_true(ns >= before && ns <= wall_now());
	}
	/* The clocks are compared again. */
	usleep(11000);
	before = wall_now();
	ns = wall_time_of(with, 0);
	assert_true(ns >= before && ns <= wall_now());
	/* The device dies: the last comparison stays valid. */
	usleep(11000);
	fake_error = EIO;
	assert_int_equal(wall_time_of(with, 10), ns + 40);
	assert_null(fake_ops->create_cq_ex(ctx, &attr));
	assert_int_equal(errno, EIO);
	fake_error = 0;
	assert_int_equal(fake_ops->destroy_cq(ibv_cq_ex_to_cq(with)), 0);
}

/* A program may poll for data that the NIC writes in order. */
static void the_order_of_data(void **state)
{
	static const enum ibv_wr_opcode yes[] = {
		IBV_WR_SEND,	   IBV_WR_SEND_WITH_IMM,       IBV_WR_SEND_WITH_INV,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ
	};
	static const enum ibv_wr_opcode no[] = { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_BIND_MW,
						 IBV_WR_LOCAL_INV, IBV_WR_FLUSH };
	const uint32_t caps = IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS;

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		assert_int_equal(fake_ops->query_qp_data_in_order(qp, yes[i], 0), 1);
		assert_int_equal(fake_ops->query_qp_data_in_order(qp, yes[i], caps),
				 IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG |
					 IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		assert_int_equal(fake_ops->query_qp_data_in_order(qp, no[i], 0), 0);
		assert_int_equal(fake_ops->query_qp_data_in_order(qp, no[i], caps), 0);
	}
	qp->qp_type = IBV_QPT_UD;
	assert_int_equal(fake_ops->query_qp_data_in_order(qp, IBV_WR_SEND, caps), 0);
	qp->qp_type = IBV_QPT_RC;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_time_now),
		TEST(the_date_of_a_completion),
		TEST(the_order_of_data),
		TEST(wqe_of_each_opcode),
		TEST(flags_of_a_wqe),
		TEST(lists_of_elements),
		TEST(bad_lists_of_elements),
		TEST(inline_data),
		TEST(flush_and_atomic_write),
		TEST(flush_and_atomic_write_without_the_features),
		TEST(binding_takes_the_windows_index),
		TEST(binding_of_type_1),
		TEST(bad_bindings),
		TEST(what_the_device_cannot_do),
		TEST(states_that_may_post),
		TEST(a_list_ends_at_its_first_error),
		TEST(send_queue_wraps),
		TEST(a_batch_is_posted_whole_or_not),
		TEST(receive_queue),
		TEST(status_of_a_completion),
		TEST(opcode_of_a_completion),
		TEST(fields_of_a_completion),
		TEST(phase_and_consumer_index),
		TEST(arming),
		TEST(flushed_requests),
		TEST(reset_forgets),
		TEST(a_destroyed_qp_is_forgotten),
		TEST(dropped_cqes_are_told),
		TEST(dropped_cqes_are_room),
		TEST(the_kernel_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
