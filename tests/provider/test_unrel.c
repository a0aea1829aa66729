// SPDX-License-Identifier: Apache-2.0
/*
 * UD and UC in the provider's data path: WQEs and completions word by word. test_datapath.c covers
 * what all types have in common.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fake_nic.h"
#include "fake_urdma.h"
#include "fake_verbs.h"

#define DEPTH  16
#define SGES   4
#define INLINE 96
#define CQES   96
#define LKEY   0x1234u
#define QPN    0xabcdefu
#define QKEY   0x87654321u
#define RADDR  UINT64_C(0x123456789abcdef0)
#define IMM    UINT64_C(0x04030201)

/* Words of a UD WQE: the reserved ones, and the first of the data. */
#define RESERVED 8
#define DATA	 12

#define FEATURES (URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_UC | URDMA_RF_FEAT_UD)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_qp *qp;
static struct ibv_ah *ah;
static uint16_t next_sqe;

static struct ibv_sge one_sge = { .addr = 0x1000, .length = 64, .lkey = LKEY };

#define W3(low, high) ((uint64_t)(low) | (uint64_t)(high) << 32)

static struct ibv_qp_init_attr_ex attr_of(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { DEPTH, DEPTH, SGES, SGES, INLINE },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = attr_of(type);
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp *made = fake_ops->create_qp_ex(ctx, &attr);

	assert_non_null(made);
	assert_int_equal(fake_ops->modify_qp(made, &rts, IBV_QP_STATE), 0);
	return made;
}

static void expect_no_qp(struct ibv_qp_init_attr_ex attr, int err)
{
	errno = 0;
	assert_null(fake_ops->create_qp_ex(ctx, &attr));
	assert_int_equal(errno, err);
}

static void open_with(uint64_t features)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = CQES, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_ah_attr to = { .sl = 5 };

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
	ah = fake_ops->create_ah(pd, &to);
	assert_non_null(ah);
	qp = NULL;
}

static int setup_ud(void **state)
{
	open_with(FEATURES);
	qp = make_qp(IBV_QPT_UD);
	return 0;
}

static int setup_uc(void **state)
{
	open_with(FEATURES);
	qp = make_qp(IBV_QPT_UC);
	return 0;
}

static int teardown(void **state)
{
	fake_error = 0;
	if (qp)
		assert_int_equal(fake_ops->destroy_qp(qp), 0);
	assert_int_equal(fake_ops->destroy_ah(ah), 0);
	assert_int_equal(fake_ops->destroy_cq(cq), 0);
	assert_int_equal(fake_ops->dealloc_pd(pd), 0);
	fake_close(ctx);
	return 0;
}

static struct ibv_send_wr datagram(enum ibv_wr_opcode opcode)
{
	return (struct ibv_send_wr){
		.wr_id = 7,
		.sg_list = &one_sge,
		.num_sge = 1,
		.opcode = opcode,
		.imm_data = htobe32(0x01020304),
		/* of the QP number only 24 bits count */
		.wr.ud = { .ah = ah, .remote_qpn = 0x55000000 | QPN, .remote_qkey = QKEY },
	};
}

static int post_ex(const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *qpx = &container_of(qp, struct verbs_qp, qp)->qp_ex;
	struct ibv_data_buf buf[16];

	ibv_wr_start(qpx);
	qpx->wr_id = wr->wr_id;
	qpx->wr_flags = wr->send_flags & ~IBV_SEND_INLINE;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM)
		ibv_wr_send_imm(qpx, wr->imm_data);
	else
		ibv_wr_send(qpx);
	/* Data and destination are set in any order. */
	if (wr->wr_id % 2)
		ibv_wr_set_ud_addr(qpx, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (wr->send_flags & IBV_SEND_INLINE) {
		for (int i = 0; i < wr->num_sge; i++) {
			buf[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
			buf[i].length = wr->sg_list[i].length;
		}
		if (wr->num_sge == 1)
			ibv_wr_set_inline_data(qpx, buf[0].addr, buf[0].length);
		else
			ibv_wr_set_inline_data_list(qpx, wr->num_sge, buf);
	} else if (wr->num_sge == 1) {
		ibv_wr_set_sge(qpx, wr->sg_list->lkey, wr->sg_list->addr, wr->sg_list->length);
	} else {
		ibv_wr_set_sge_list(qpx, wr->num_sge, wr->sg_list);
	}
	if (!(wr->wr_id % 2))
		ibv_wr_set_ud_addr(qpx, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	return ibv_wr_complete(qpx);
}

/* Both kinds of verbs refuse it with this errno, and the NIC gets no doorbell. */
static void expect_refused(struct ibv_send_wr *wr, int err)
{
	struct ibv_send_wr *bad = NULL;
	uint64_t *db = fake_doorbell(URDMA_DB_SQ);

	*db = ~UINT64_C(0);
	assert_int_equal(ibv_post_send(qp, wr, &bad), err);
	assert_ptr_equal(bad, wr);
	if (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM)
		assert_int_equal(post_ex(wr), err);
	assert_true(*db == ~UINT64_C(0));
}

static void complete_next(void)
{
	struct ibv_wc wc;

	fake_urdma_cqe(cq, (uint64_t)next_sqe++ << 32, (uint64_t)qp->qp_num << 32, 0, 0);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 7);
}

/* By both kinds of verbs: a WQE with these first words, the destination, and n words of data. */
static void expect_datagram(struct ibv_send_wr *wr, uint64_t w0, uint64_t w1, uint32_t length,
			    const uint64_t *data, size_t n)
{
	uint64_t words[64] = { w0, w1, QPN, W3(QKEY, length) };
	uint64_t *slot;

	for (uint64_t i = 0; i < 4; i++)
		words[4 + i] = W3(0xa0000500 + 2 * i, 0xa0000500 + 2 * i + 1);
	memcpy(words + DATA, data, n * 8);
	for (unsigned int ex = 0; ex < 2; ex++) {
		struct ibv_send_wr *bad;

		/* No old contents are left; the reserved words are never written. */
		slot = (uint64_t *)fake_urdma_sqe(next_sqe);
		memset(slot, 0xee, RESERVED * 8);
		memset(slot + DATA, 0xee, n * 8);
		assert_int_equal(ex ? post_ex(wr) : ibv_post_send(qp, wr, &bad), 0);
		assert_memory_equal(slot, words, (DATA + n) * 8);
		assert_true(*fake_doorbell(URDMA_DB_SQ) ==
			    W3(qp->qp_num, (uint16_t)(next_sqe + 1)));
		complete_next();
	}
}

/* ---- UD ----------------------------------------------------------------------------------------
 */

static void wqe_of_a_datagram(void **state)
{
	static const struct {
		unsigned int flags;
		uint64_t w0;
	} t[] = {
		{ 0, 0 },
		{ IBV_SEND_SIGNALED, 1 << 8 },
		{ IBV_SEND_SOLICITED, 1 << 9 },
		{ IBV_SEND_FENCE, 1 << 10 },
	};
	const uint64_t data[] = { 0x1000, W3(64, LKEY) };
	struct ibv_send_wr wr;

	for (size_t i = 0; i < 4; i++) {
		wr = datagram(IBV_WR_SEND);
		wr.send_flags = t[i].flags;
		expect_datagram(&wr, 0 | t[i].w0 | 1 << 16, 0, 64, data, 2);
		wr = datagram(IBV_WR_SEND_WITH_IMM);
		wr.send_flags = t[i].flags;
		expect_datagram(&wr, 1 | t[i].w0 | 1 << 16, IMM, 64, data, 2);
	}
}

static void elements_of_a_datagram(void **state)
{
	struct ibv_sge sge[17] = {
		{ 0x1000, 10, 1 },
		{ 0x2000, 0, 2 },
		{ 0x3000, 30, 3 },
		{ 0x4000, 12, 4 },
	};
	const uint64_t data[] = { 0x1000, W3(10, 1), 0x3000, W3(30, 3), 0x4000, W3(12, 4) };
	struct ibv_send_wr wr = datagram(IBV_WR_SEND);

	wr.sg_list = sge;
	wr.num_sge = 4;
	expect_datagram(&wr, 3 << 16, 0, 52, data, 6);
	wr.num_sge = 0;
	expect_datagram(&wr, 0, 0, 0, data, 0);
	wr.num_sge = 17;
	expect_refused(&wr, EINVAL);
}

static void inline_datagram(void **state)
{
	uint8_t bytes[512];
	struct ibv_sge sge[2] = {
		{ (uintptr_t)bytes, 5, 0 },
		{ (uintptr_t)(bytes + 5), INLINE - 5, 0 },
	};
	struct ibv_send_wr wr = datagram(IBV_WR_SEND_WITH_IMM);
	uint64_t data[INLINE / 8];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + 1);
	memcpy(data, bytes, INLINE);
	wr.send_flags = IBV_SEND_INLINE;
	wr.sg_list = sge;
	wr.num_sge = 2;
	expect_datagram(&wr, 1 | 1 << 11, IMM, INLINE, data, INLINE / 8);
	wr.num_sge = 1;
	sge[0].length = INLINE;
	expect_datagram(&wr, 1 | 1 << 11, IMM, INLINE, data, INLINE / 8);
	/* A slot of 256 bytes holds 160. */
	sge[0].length = 161;
	expect_refused(&wr, ENOMEM);
}

static void a_list_of_datagrams(void **state)
{
	struct ibv_ah_attr to = { .sl = 3 };
	struct ibv_ah *other = fake_ops->create_ah(pd, &to);
	struct ibv_send_wr wr[3], *bad = NULL;

	assert_non_null(other);
	for (size_t i = 0; i < 3; i++) {
		wr[i] = datagram(IBV_WR_SEND);
		wr[i].wr.ud.remote_qpn = 100 + i;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[1].wr.ud.ah = other;
	wr[2].opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(ibv_post_send(qp, wr, &bad), EOPNOTSUPP);
	assert_ptr_equal(bad, &wr[2]);
	assert_true(*fake_doorbell(URDMA_DB_SQ) == W3(qp->qp_num, 2));
	assert_int_equal(fake_urdma_sqe(0)[2], 100);
	assert_int_equal(fake_urdma_sqe(1)[2], 101);
	assert_true(fake_urdma_sqe(0)[4] == W3(0xa0000500, 0xa0000501));
	assert_true(fake_urdma_sqe(1)[4] == W3(0xa0000300, 0xa0000301));
	assert_int_equal(fake_ops->destroy_ah(other), 0);

	/* The rest of the ring, and no more. */
	wr[0].next = NULL;
	for (size_t i = 2; i < DEPTH; i++)
		assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
	expect_refused(wr, ENOMEM);
	complete_next();
	assert_int_equal(post_ex(wr), 0);
	expect_refused(wr, ENOMEM);
}

static void what_ud_has_not(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,
		IBV_WR_SEND_WITH_INV,
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_LOCAL_INV,
		IBV_WR_BIND_MW,
		IBV_WR_TSO,
	};
	struct ibv_send_wr wr;

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		wr = datagram(opcodes[i]);
		expect_refused(&wr, EOPNOTSUPP);
	}
	wr = datagram(IBV_WR_SEND);
	fake_ops->modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR }, IBV_QP_STATE);
	expect_refused(&wr, EINVAL);
}

static void completion_of_a_datagram(void **state)
{
	static const struct {
		uint64_t w0;
		unsigned int flags;
		uint8_t sl;
	} t[] = {
		{ URDMA_CQE0_GRH, IBV_WC_GRH, 0 },
		{ URDMA_CQE0_GRH | URDMA_CQE0_IPV4, IBV_WC_GRH, 0 },
		{ URDMA_CQE0_GRH | URDMA_CQE0_IMM, IBV_WC_GRH | IBV_WC_WITH_IMM, 0 },
		/* priority 6, VLAN 0xfff; without VLAN the tag has no meaning */
		{ URDMA_CQE0_GRH | URDMA_CQE0_VLAN | UINT64_C(0xdfff) << 48, IBV_WC_GRH, 6 },
		{ URDMA_CQE0_GRH | UINT64_C(0xdfff) << 48, IBV_WC_GRH, 0 },
		/* of another type of QP */
		{ 0, 0, 0 },
	};
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_recv_wr recv, *bad;
	struct ibv_wc wc;

	for (uint64_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		recv = (struct ibv_recv_wr){ .wr_id = 50 + i };
		for (unsigned int ex = 0; ex < 2; ex++) {
			assert_int_equal(ibv_post_recv(qp, &recv, &bad), 0);
			fake_urdma_cqe(cq, t[i].w0 | URDMA_CQE0_RECV | (2 * i + ex) << 32,
				       104 | (uint64_t)qp->qp_num << 32, IMM | (uint64_t)QPN << 32,
				       0);
		}
		memset(&wc, 0xee, sizeof(wc));
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, 50 + i);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, 104);
		assert_int_equal(wc.wc_flags, t[i].flags);
		assert_int_equal(wc.src_qp, QPN);
		assert_int_equal(wc.sl, t[i].sl);
		assert_int_equal(wc.pkey_index, 0);
		assert_int_equal(wc.slid, 0);
		assert_int_equal(wc.imm_data,
				 t[i].flags & IBV_WC_WITH_IMM ? htobe32(0x01020304) : 0);

		assert_int_equal(ibv_start_poll(cq_ex, &poll), 0);
		assert_int_equal(ibv_wc_read_wc_flags(cq_ex), t[i].flags);
		assert_int_equal(ibv_wc_read_src_qp(cq_ex), QPN);
		assert_int_equal(ibv_wc_read_sl(cq_ex), t[i].sl);
		assert_int_equal(ibv_wc_read_slid(cq_ex), 0);
		assert_int_equal(ibv_wc_read_dlid_path_bits(cq_ex), 0);
		ibv_end_poll(cq_ex);
	}
}

/* ---- UC ----------------------------------------------------------------------------------------
 */

static void wqe_of_uc(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint64_t words[4];
	} t[] = {
		{ IBV_WR_SEND, { 0 | 1 << 16, 0, 0, W3(0, 64) } },
		{ IBV_WR_SEND_WITH_IMM, { 1 | 1 << 16, IMM, 0, W3(0, 64) } },
		{ IBV_WR_RDMA_WRITE, { 3 | 1 << 16, 0, RADDR, W3(0x5678, 64) } },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, { 4 | 1 << 16, IMM, RADDR, W3(0x5678, 64) } },
	};
	static const enum ibv_wr_opcode missing[] = {
		IBV_WR_RDMA_READ,	   IBV_WR_SEND_WITH_INV,
		IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_LOCAL_INV,	   IBV_WR_BIND_MW,
	};
	struct ibv_send_wr wr, *bad;

	for (size_t i = 0; i < 4; i++) {
		wr = datagram(t[i].opcode);
		wr.wr.rdma.remote_addr = RADDR;
		wr.wr.rdma.rkey = 0x5678;
		assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
		assert_memory_equal(fake_urdma_sqe(next_sqe), t[i].words, 32);
		assert_true(fake_urdma_sqe(next_sqe)[4] == 0x1000);
		assert_true(fake_urdma_sqe(next_sqe)[5] == W3(64, LKEY));
		complete_next();
	}
	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		wr = datagram(missing[i]);
		expect_refused(&wr, EOPNOTSUPP);
	}
}

/* ---- objects -----------------------------------------------------------------------------------
 */

static int setup(void **state)
{
	open_with(FEATURES);
	return 0;
}

static void types_follow_features(void **state)
{
	static const enum ibv_qp_type unknown[] = { IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND,
						    IBV_QPT_DRIVER, 0, 7 };

	for (size_t i = 0; i < 5; i++)
		expect_no_qp(attr_of(unknown[i]), EOPNOTSUPP);
	teardown(NULL);
	open_with(FEATURES & ~URDMA_RF_FEAT_UC);
	expect_no_qp(attr_of(IBV_QPT_UC), EOPNOTSUPP);
	teardown(NULL);
	open_with(FEATURES & ~URDMA_RF_FEAT_UD);
	expect_no_qp(attr_of(IBV_QPT_UD), EOPNOTSUPP);
	qp = make_qp(IBV_QPT_UC);
}

static void extended_verbs_follow_types(void **state)
{
	struct ibv_qp_init_attr_ex uc = attr_of(IBV_QPT_UC), ud = attr_of(IBV_QPT_UD);

	ud.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE;
	expect_no_qp(ud, EOPNOTSUPP);
	uc.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	qp = fake_ops->create_qp_ex(ctx, &uc);
	assert_non_null(qp);
	uc.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ;
	expect_no_qp(uc, EOPNOTSUPP);
}

/* A UD WQE has 96 bytes before its data, and a slot is at most 512 bytes. */
static void room_in_a_datagrams_slot(void **state)
{
	static const struct {
		uint32_t sge, inline_data;
		/* what is given */
		uint32_t got_sge, got_inline;
	} t[] = {
		/* 128 bytes, the least */
		{ 0, 0, 2, 32 },    { 1, 0, 2, 32 },	{ 2, 32, 2, 32 },     { 3, 0, 10, 160 },
		{ 1, 33, 10, 160 }, { 11, 0, 16, 256 }, { 16, 256, 16, 256 },
	};
	struct ibv_qp_init_attr_ex attr;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		fake_next_qpn = 2;
		attr = attr_of(IBV_QPT_UD);
		attr.cap.max_send_sge = t[i].sge;
		attr.cap.max_inline_data = t[i].inline_data;
		qp = fake_ops->create_qp_ex(ctx, &attr);
		assert_non_null(qp);
		assert_int_equal(attr.cap.max_send_sge, t[i].got_sge);
		assert_int_equal(attr.cap.max_inline_data, t[i].got_inline);
		assert_int_equal(fake_ops->destroy_qp(qp), 0);
	}
	qp = NULL;
}

/* Flags reach the kernel unchanged, for a type and a device that have them. */
static void flags_of_a_qp(void **state)
{
	struct ibv_qp_init_attr_ex attr = attr_of(IBV_QPT_UD);
	uint32_t no_loop = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_send_wr wr, *bad;

	fake_create_flags = 0;
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = no_loop;
	expect_no_qp(attr, EOPNOTSUPP);
	assert_int_equal(teardown(state), 0);
	open_with(FEATURES | URDMA_RF_FEAT_MCAST);
	attr = attr_of(IBV_QPT_UD);
	attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = no_loop | IBV_QP_CREATE_SCATTER_FCS;
	expect_no_qp(attr, EOPNOTSUPP);
	attr.create_flags = no_loop;
	attr.qp_type = IBV_QPT_UC;
	expect_no_qp(attr, EOPNOTSUPP);
	attr.qp_type = IBV_QPT_RC;
	expect_no_qp(attr, EOPNOTSUPP);
	assert_int_equal(fake_create_flags, 0);
	attr.qp_type = IBV_QPT_UD;
	qp = fake_ops->create_qp_ex(ctx, &attr);
	assert_non_null(qp);
	assert_int_equal(fake_create_flags, no_loop);
	/* the driver's answer comes through the other command, too: the number in doorbells */
	assert_int_equal(fake_ops->modify_qp(qp, &rts, IBV_QP_STATE), 0);
	wr = datagram(IBV_WR_SEND);
	assert_int_equal(fake_ops->post_send(qp, &wr, &bad), 0);
	assert_int_equal(*fake_doorbell(URDMA_DB_SQ) & URDMA_DBW_OBJ, qp->qp_num);
	assert_int_equal(fake_ops->destroy_qp(qp), 0);
	fake_error = EDQUOT;
	expect_no_qp(attr, EDQUOT);
	fake_error = 0;
	attr.create_flags = 0;
	fake_create_flags = 1;
	qp = fake_ops->create_qp_ex(ctx, &attr);
	assert_non_null(qp);
	assert_int_equal(fake_create_flags, 1);
}

/* The kernel keeps the table of groups. */
static void members_of_groups(void **state)
{
	union ibv_gid gid = { .raw = { 0xff } };

	fake_members = 0;
	assert_int_equal(fake_ops->attach_mcast(qp, &gid, 0), 0);
	assert_int_equal(fake_members, 1);
	assert_int_equal(fake_ops->detach_mcast(qp, &gid, 0), 0);
	assert_int_equal(fake_members, 0);
	fake_error = ENOSPC;
	assert_int_equal(fake_ops->attach_mcast(qp, &gid, 0), ENOSPC);
	fake_error = 0;
}

static void the_kernel_refuses(void **state)
{
	struct ibv_ah_attr to = { .sl = 0 };

	fake_error = EDQUOT;
	errno = 0;
	assert_null(fake_ops->create_ah(pd, &to));
	assert_int_equal(errno, EDQUOT);
	assert_int_equal(fake_ops->destroy_ah(ah), EDQUOT);
	expect_no_qp(attr_of(IBV_QPT_UD), EDQUOT);
}

#define UD(name)  cmocka_unit_test_setup_teardown(name, setup_ud, teardown)
#define UC(name)  cmocka_unit_test_setup_teardown(name, setup_uc, teardown)
#define ANY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UD(wqe_of_a_datagram),
		UD(elements_of_a_datagram),
		UD(inline_datagram),
		UD(a_list_of_datagrams),
		UD(what_ud_has_not),
		UD(completion_of_a_datagram),
		UC(wqe_of_uc),
		ANY(types_follow_features),
		ANY(extended_verbs_follow_types),
		ANY(room_in_a_datagrams_slot),
		ANY(flags_of_a_qp),
		UD(members_of_groups),
		ANY(the_kernel_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
