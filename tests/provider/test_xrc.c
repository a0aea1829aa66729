// SPDX-License-Identifier: Apache-2.0
/*
 * XRC in the provider. A WQE of an initiator QP is that of RC plus the number of an SRQ, by either
 * kind of verbs. A completion of an XRC SRQ belongs to the SRQ that it names, whatever QP it names:
 * a QP of another process, one that is gone, or one of this process that has the number now.
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
#include "random.h"
#include "seed.h"

#define DEPTH  16
#define SGES   3
#define INLINE 64
#define CQES   96
#define LKEY   0x1234u
#define RKEY   0x4321u
#define RADDR  UINT64_C(0x123456789abcdef0)
#define SRQN   0xabcdefu
#define SRQS   2
/* of a target QP that this process does not know */
#define STRANGER 777u

#define FEATURES                                                                  \
	(URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_RC_WRITE | URDMA_RF_FEAT_RC_READ | \
	 URDMA_RF_FEAT_RC_ATOMIC | URDMA_RF_FEAT_MEM_MGT | URDMA_RF_FEAT_MW_2B |  \
	 URDMA_RF_FEAT_SRQ | URDMA_RF_FEAT_XRC)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_xrcd *xrcd;
/* All SRQs and QPs complete here. */
static struct ibv_cq *cq;
static struct ibv_cq_ex *cq_ex;
static struct ibv_srq *srq[SRQS];
static struct ibv_qp *rc, *ini, *target;
static uint32_t places;
/* The NIC: the taken places of each SRQ with their wr_id, and the number of ring entries taken. */
static uint64_t held[SRQS][4 * DEPTH];
static uint16_t taken[SRQS], posted[SRQS];

static struct ibv_srq_init_attr_ex srq_attr(void)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = DEPTH, .max_sge = SGES },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.xrcd = xrcd,
		.cq = cq,
	};
}

static struct ibv_srq *make_srq(void)
{
	struct ibv_srq_init_attr_ex attr = srq_attr();
	struct ibv_srq *made = fake_ops->create_srq_ex(ctx, &attr);

	assert_non_null(made);
	assert_ptr_equal(made->pd, pd);
	assert_int_equal(attr.attr.max_wr, fake_urdma_srq_places(made));
	assert_in_range(attr.attr.max_wr, DEPTH, sizeof(held[0]) / sizeof(held[0][0]));
	assert_in_range(attr.attr.max_sge, SGES, 16);
	return made;
}

static uint32_t number(struct ibv_srq *of)
{
	uint32_t n;

	assert_int_equal(fake_ops->get_srq_num(of, &n), 0);
	return n;
}

static struct ibv_qp_init_attr_ex qp_attr(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = type };

	if (type == IBV_QPT_XRC_RECV) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = xrcd;
		return attr;
	}
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.pd = pd;
	attr.send_cq = cq;
	if (type == IBV_QPT_RC)
		attr.recv_cq = cq;
	attr.cap = (struct ibv_qp_cap){ 4 * DEPTH, DEPTH, SGES, SGES, INLINE };
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			      IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
			      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
			      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	return attr;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(type);
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp *made = fake_ops->create_qp_ex(ctx, &attr);

	assert_non_null(made);
	assert_int_equal(fake_ops->modify_qp(made, &rts, IBV_QP_STATE), 0);
	return made;
}

static void open_with(uint64_t features)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = CQES, .wc_flags = IBV_WC_STANDARD_FLAGS };

	fake_urdma_features = features;
	fake_error = 0;
	ctx = fake_open();
	assert_non_null(ctx);
	pd = fake_ops->alloc_pd(ctx);
	assert_non_null(pd);
	cq_ex = fake_ops->create_cq_ex(ctx, &attr);
	assert_non_null(cq_ex);
	cq = ibv_cq_ex_to_cq(cq_ex);
}

static void close_all(void)
{
	assert_int_equal(fake_ops->destroy_cq(cq), 0);
	assert_int_equal(fake_ops->dealloc_pd(pd), 0);
	fake_close(ctx);
}

static int setup(void **state)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1
	};

	(void)state;
	open_with(FEATURES);
	memset(held, 0, sizeof(held));
	memset(taken, 0, sizeof(taken));
	memset(posted, 0, sizeof(posted));
	xrcd = fake_ops->open_xrcd(ctx, &domain);
	assert_non_null(xrcd);
	/* Number 0 is valid like any other. */
	for (unsigned int i = 0; i < SRQS; i++)
		srq[i] = make_srq();
	places = fake_urdma_srq_places(srq[0]);
	rc = make_qp(IBV_QPT_RC);
	target = make_qp(IBV_QPT_XRC_RECV);
	ini = make_qp(IBV_QPT_XRC_SEND);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_error = 0;
	if (rc)
		assert_int_equal(fake_ops->destroy_qp(rc), 0);
	if (target)
		assert_int_equal(fake_ops->destroy_qp(target), 0);
	assert_int_equal(fake_ops->destroy_qp(ini), 0);
	for (unsigned int i = 0; i < SRQS; i++)
		if (srq[i])
			assert_int_equal(fake_ops->destroy_srq(srq[i]), 0);
	assert_int_equal(fake_ops->close_xrcd(xrcd), 0);
	close_all();
	return 0;
}

/* ---- posting ---------------------------------------------------------------------------------
 */

static void post_ex(struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *qpx = &container_of(qp, struct verbs_qp, qp)->qp_ex;
	struct ibv_data_buf buf[SGES];

	ibv_wr_start(qpx);
	qpx->wr_id = wr->wr_id;
	qpx->wr_flags = wr->send_flags & ~(unsigned int)IBV_SEND_INLINE;
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
	default:
		ibv_wr_atomic_fetch_add(qpx, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	}
	if (qp->qp_type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(qpx, wr->qp_type.xrc.remote_srqn);
	for (int i = 0; i < wr->num_sge; i++)
		buf[i] = (struct ibv_data_buf){ (void *)(uintptr_t)wr->sg_list[i].addr,
						wr->sg_list[i].length };
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(qpx, wr->num_sge, buf);
	else
		ibv_wr_set_sge_list(qpx, wr->num_sge, wr->sg_list);
	assert_int_equal(ibv_wr_complete(qpx), 0);
}

/* Both kinds of verbs make the same WQE: the operation, and the SRQ in word 1. */
static void test_wqes(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint8_t hw;
		/* word 1, bits 31:0 */
		uint32_t value;
	} t[] = {
		{ IBV_WR_SEND, URDMA_WR_SEND, 0 },
		{ IBV_WR_SEND_WITH_IMM, URDMA_WR_SEND_IMM, 0x04030201 },
		{ IBV_WR_SEND_WITH_INV, URDMA_WR_SEND_INV, 0xabcd },
		{ IBV_WR_RDMA_WRITE, URDMA_WR_WRITE, 0 },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, URDMA_WR_WRITE_IMM, 0x04030201 },
		{ IBV_WR_RDMA_READ, URDMA_WR_READ, 0 },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, URDMA_WR_ATOMIC_CS, 0 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, URDMA_WR_ATOMIC_FA, 0 },
	};
	static const char text[SGES][9] = { "initiate", "", "target" };
	struct ibv_send_wr *bad;
	uint16_t index = 0;

	(void)state;
	for (unsigned int i = 0; i < sizeof(t) / sizeof(*t) * 2; i++) {
		bool atomic =
			t[i / 2].hw == URDMA_WR_ATOMIC_CS || t[i / 2].hw == URDMA_WR_ATOMIC_FA;
		bool in_wqe = i % 2 && t[i / 2].hw != URDMA_WR_READ && !atomic;
		struct ibv_sge sge[SGES] = { { (uintptr_t)text[0], 8, LKEY },
					     { (uintptr_t)text[1], 0, LKEY },
					     { (uintptr_t)text[2], 6, LKEY } };
		struct ibv_send_wr wr = {
			.wr_id = i,
			.sg_list = sge,
			.num_sge = atomic ? 1 : SGES,
			.opcode = t[i / 2].opcode,
			.send_flags = IBV_SEND_SIGNALED | (in_wqe ? IBV_SEND_INLINE : 0) |
				      (i % 2 ? IBV_SEND_SOLICITED : IBV_SEND_FENCE),
			.qp_type.xrc.remote_srqn = SRQN - i,
		};
		uint32_t length = atomic ? 8 : 14;
		const uint64_t *w, *x;

		if (atomic) {
			wr.wr.atomic.remote_addr = RADDR;
			wr.wr.atomic.rkey = RKEY;
			wr.wr.atomic.compare_add = 17;
			wr.wr.atomic.swap = 19;
		} else {
			wr.wr.rdma.remote_addr = RADDR;
			wr.wr.rdma.rkey = RKEY;
		}
		if (wr.opcode == IBV_WR_SEND_WITH_INV)
			wr.invalidate_rkey = 0xabcd;
		else
			wr.imm_data = htobe32(0x01020304);
		assert_int_equal(ibv_post_send(ini, &wr, &bad), 0);
		post_ex(ini, &wr);
		w = fake_urdma_sqe(index++);
		x = fake_urdma_sqe(index++);
		assert_true(*fake_doorbell(URDMA_DB_SQ) == (ini->qp_num | (uint64_t)index << 32));
		assert_memory_equal(w, x, 64);
		assert_int_equal(w[0] & 0xff, t[i / 2].hw);
		assert_true(!!(w[0] & URDMA_SQE0_INLINE) == in_wqe);
		assert_true(w[1] == (t[i / 2].value | (uint64_t)(SRQN - i) << 32));
		assert_true(w[3] >> 32 == length);
		if (in_wqe)
			assert_memory_equal(w + 4, "initiatetarget", 14);
		else
			assert_true(w[4] == (uintptr_t)text[0]);
	}
}

/* An RC WQE names no SRQ, even if the work request has something in its place. */
static void test_rc_wqes(void **state)
{
	struct ibv_sge sge = { 0x1000, 64, LKEY };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .qp_type.xrc.remote_srqn = SRQN };
	struct ibv_send_wr *bad;
	struct ibv_qp *last = make_qp(IBV_QPT_RC);

	(void)state;
	assert_int_equal(ibv_post_send(last, &wr, &bad), 0);
	post_ex(last, &wr);
	assert_true(!fake_urdma_sqe(0)[1] && !fake_urdma_sqe(1)[1]);
	assert_int_equal(fake_ops->destroy_qp(last), 0);
}

static void test_full(void **state)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	(void)state;
	for (uint32_t i = 0; i < fake_urdma_sq_slots(); i++)
		assert_int_equal(ibv_post_send(ini, &wr, &bad), 0);
	assert_int_equal(ibv_post_send(ini, &wr, &bad), ENOMEM);
	fake_urdma_cqe(cq, (uint64_t)3 << 32, (uint64_t)ini->qp_num << 32, 0, 0);
	assert_int_equal(ibv_poll_cq(cq, 1, &(struct ibv_wc){ 0 }), 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ibv_post_send(ini, &wr, &bad), 0);
	assert_int_equal(ibv_post_send(ini, &wr, &bad), ENOMEM);
}

/* ---- completions -----------------------------------------------------------------------------
 */

static int post(unsigned int which, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = wr_id, .length = 64, .lkey = LKEY };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
	int err = ibv_post_srq_recv(srq[which], &wr, &bad);

	if (!err) {
		posted[which]++;
		assert_true(*fake_doorbell(URDMA_DB_SRQ) ==
			    (number(srq[which]) | (uint64_t)posted[which] << 32));
	}
	return err;
}

static void take(unsigned int which)
{
	uint16_t place = fake_urdma_srq_index(srq[which], taken[which]++);

	assert_true(place < places);
	assert_true(!held[which][place]);
	held[which][place] = fake_urdma_srqe(srq[which], place)[2];
}

static void cqe(unsigned int which, uint16_t place, uint32_t qpn, uint64_t w0)
{
	fake_urdma_cqe(cq, URDMA_CQE0_XRC | URDMA_CQE0_RECV | w0 | (uint64_t)place << 32,
		       (uint64_t)qpn << 32 | 64, (uint64_t)number(srq[which]) << 32 | 0x04030201,
		       0);
}

static void expect_polled(uint64_t wr_id, uint32_t qpn)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.qp_num, qpn);
	assert_int_equal(wc.byte_len, 64);
	assert_int_equal(wc.src_qp, 0);
	assert_int_equal(wc.wc_flags, 0);
}

static void expect_nothing(void)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static void fill(unsigned int which)
{
	for (uint32_t i = 0; i < places; i++)
		assert_int_equal(post(which, 1000 * (which + 1) + i), 0);
	assert_int_equal(post(which, 1), ENOMEM);
	while (taken[which] != posted[which])
		take(which);
}

/* At random: two SRQs on one CQ, completions in any order, by QPs of every kind. */
static void test_order(void **state)
{
	struct urdma_random rng = { test_seed(7) };
	const uint32_t qpns[] = { rc->qp_num, ini->qp_num, target->qp_num, STRANGER, 0, 0xffffff };
	uint64_t wr_id = 1, done = 0;

	(void)state;
	while (done < 150000) {
		unsigned int which = urdma_random_below(&rng, SRQS);

		for (uint32_t n = urdma_random_below(&rng, places); n && !post(which, wr_id); n--)
			wr_id++;
		for (uint32_t n = urdma_random_below(&rng, places);
		     n && taken[which] != posted[which]; n--)
			take(which);
		for (uint32_t n = urdma_random_below(&rng, places); n; n--) {
			uint16_t place = (uint16_t)urdma_random_below(&rng, places);
			uint32_t qpn = qpns[urdma_random_below(&rng, 6)];

			which = urdma_random_below(&rng, SRQS);
			if (!held[which][place])
				continue;
			cqe(which, place, qpn, 0);
			expect_polled(held[which][place], qpn);
			held[which][place] = 0;
			done++;
		}
	}
}

/* Other fields of a completion: immediate data, a key, a status; by both ways of polling. */
static void test_fields(void **state)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc;

	(void)state;
	fill(1);
	cqe(1, 3, STRANGER, URDMA_CQE0_IMM | URDMA_WR_WRITE_IMM << 8);
	cqe(1, 4, STRANGER, URDMA_CQE0_INV | URDMA_WR_SEND_INV << 8);
	cqe(1, 5, STRANGER, (uint64_t)URDMA_WC_FLUSH_ERR << 16);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 2003);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(be32toh(wc.imm_data), 0x01020304);
	assert_int_equal(ibv_start_poll(cq_ex, &attr), 0);
	assert_int_equal(cq_ex->wr_id, 2004);
	assert_int_equal(ibv_wc_read_wc_flags(cq_ex), IBV_WC_WITH_INV);
	assert_int_equal(ibv_wc_read_invalidated_rkey(cq_ex), 0x04030201);
	assert_int_equal(ibv_wc_read_qp_num(cq_ex), STRANGER);
	assert_int_equal(ibv_wc_read_src_qp(cq_ex), 0);
	assert_int_equal(ibv_next_poll(cq_ex), 0);
	assert_int_equal(cq_ex->wr_id, 2005);
	assert_int_equal(cq_ex->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_next_poll(cq_ex), ENOENT);
	ibv_end_poll(cq_ex);
	/* Three places are free again. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(post(1, 1), 0);
	assert_int_equal(post(1, 1), ENOMEM);
}

/* An RC QP has the number that a target QP had: its queues are not touched, and its completions are
 * its own. */
static void test_number_of_rc(void **state)
{
	struct ibv_recv_wr wr = { .wr_id = 42 }, *bad;
	struct ibv_wc wc;

	(void)state;
	fill(0);
	for (int i = 0; i < DEPTH; i++)
		assert_int_equal(ibv_post_recv(rc, &wr, &bad), 0);
	cqe(0, 7, rc->qp_num, 0);
	expect_polled(1007, rc->qp_num);
	assert_int_equal(ibv_post_recv(rc, &wr, &bad), ENOMEM);
	fake_urdma_cqe(cq, URDMA_CQE0_RECV, (uint64_t)rc->qp_num << 32, 0, 0);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 42);
	assert_int_equal(ibv_post_recv(rc, &wr, &bad), 0);
}

/* Completions stay when a QP with their number is destroyed, and go with their SRQ. */
static void test_ends(void **state)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	const uint32_t rc_num = rc->qp_num, target_num = target->qp_num;

	(void)state;
	fill(0);
	fill(1);
	for (uint16_t place = 0; place < 8; place++)
		cqe(place % 2, place, place < 4 ? rc_num : target_num, 0);
	fake_urdma_cqe(cq, URDMA_CQE0_RECV, (uint64_t)rc_num << 32, 0, 0);
	assert_int_equal(fake_ops->modify_qp(rc, &reset, IBV_QP_STATE), 0);
	assert_int_equal(fake_ops->modify_qp(target, &reset, IBV_QP_STATE), 0);
	expect_polled(1000, rc_num);
	fake_ops->destroy_qp(target);
	target = NULL;
	fake_error = EBUSY;
	assert_int_equal(fake_ops->destroy_srq(srq[0]), EBUSY);
	fake_error = 0;
	assert_int_equal(fake_ops->destroy_srq(srq[0]), 0);
	/* The next SRQ gets its number. */
	fake_next_srqn = 0;
	srq[0] = make_srq();
	posted[0] = 0;
	taken[0] = 0;
	assert_int_equal(number(srq[0]), 0);
	memset(held[0], 0, sizeof(held[0]));
	expect_polled(2001, rc_num);
	assert_int_equal(fake_ops->destroy_qp(rc), 0);
	rc = NULL;
	expect_polled(2003, rc_num);
	for (uint16_t place = 5; place < 8; place += 2)
		expect_polled(2000 + place, target_num);
	expect_nothing();
	fill(0);
	cqe(0, 9, STRANGER, 0);
	expect_polled(1009, STRANGER);
	/* A completion whose SRQ does not exist or is gone is skipped. */
	assert_int_equal(fake_ops->destroy_srq(srq[1]), 0);
	srq[1] = NULL;
	for (uint64_t n = 1; n < 10; n += 8)
		fake_urdma_cqe(cq, URDMA_CQE0_XRC | URDMA_CQE0_RECV, (uint64_t)STRANGER << 32 | 64,
			       n << 32, 0);
	expect_nothing();
}

/* ---- what is refused -------------------------------------------------------------------------
 */

static void expect_no_srq(struct ibv_srq_init_attr_ex attr, int err)
{
	errno = 0;
	assert_null(fake_ops->create_srq_ex(ctx, &attr));
	assert_int_equal(errno, err);
}

static void expect_no_qp(struct ibv_qp_init_attr_ex attr, int err)
{
	errno = 0;
	assert_null(fake_ops->create_qp_ex(ctx, &attr));
	assert_int_equal(errno, err);
}

static void test_refused(void **state)
{
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_TYPE,
					 .qp_num = STRANGER,
					 .xrcd = xrcd,
					 .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_srq_init_attr_ex s = srq_attr();
	struct ibv_qp_init_attr_ex q;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_qp *opened;

	(void)state;
	/* An initiator does not receive; a target neither sends nor posts receives itself. */
	assert_int_equal(ibv_post_recv(ini, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_recv(target, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_post_send(target, &send, &bad_send), EOPNOTSUPP);
	send.opcode = IBV_WR_TSO;
	assert_int_equal(ibv_post_send(ini, &send, &bad_send), EOPNOTSUPP);

	s.cq = NULL;
	expect_no_srq(s, EINVAL);
	s = srq_attr();
	s.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_XRCD;
	expect_no_srq(s, EINVAL);
	s = srq_attr();
	s.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	expect_no_srq(s, EOPNOTSUPP);
	s = srq_attr();
	s.srq_type = IBV_SRQT_TM;
	s.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	expect_no_srq(s, EOPNOTSUPP);
	s = srq_attr();
	s.attr.max_wr = 0;
	expect_no_srq(s, EINVAL);

	q = qp_attr(IBV_QPT_XRC_RECV);
	q.comp_mask = IBV_QP_INIT_ATTR_PD;
	expect_no_qp(q, EINVAL);
	q = qp_attr(IBV_QPT_XRC_RECV);
	q.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	expect_no_qp(q, EOPNOTSUPP);
	q = qp_attr(IBV_QPT_XRC_SEND);
	q.send_ops_flags |= IBV_QP_EX_WITH_TSO;
	expect_no_qp(q, EOPNOTSUPP);

	opened = fake_ops->open_qp(ctx, &open);
	assert_non_null(opened);
	assert_int_equal(opened->qp_num, STRANGER);
	assert_int_equal(ibv_post_send(opened, &send, &bad_send), EOPNOTSUPP);
	assert_int_equal(fake_ops->destroy_qp(opened), 0);
	open.qp_type = IBV_QPT_RC;
	errno = 0;
	assert_null(fake_ops->open_qp(ctx, &open));
	assert_int_equal(errno, EINVAL);

	fake_error = EDQUOT;
	expect_no_srq(srq_attr(), EDQUOT);
	expect_no_qp(qp_attr(IBV_QPT_XRC_SEND), EDQUOT);
	expect_no_qp(qp_attr(IBV_QPT_XRC_RECV), EDQUOT);
	assert_int_equal(fake_ops->destroy_qp(target), EDQUOT);
	assert_int_equal(fake_ops->close_xrcd(xrcd), EDQUOT);
}

/* An SRQ of the other type, made by the same verb, has no number. */
static void test_basic(void **state)
{
	struct ibv_srq_init_attr_ex attr = srq_attr();
	struct ibv_srq *basic;
	uint32_t n;

	(void)state;
	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	attr.srq_type = IBV_SRQT_BASIC;
	basic = fake_ops->create_srq_ex(ctx, &attr);
	assert_non_null(basic);
	assert_int_equal(fake_ops->get_srq_num(basic, &n), EINVAL);
	assert_int_equal(fake_ops->destroy_srq(basic), 0);
}

static void test_no_feature(void **state)
{
	struct ibv_xrcd_init_attr domain = { 0 };
	struct ibv_xrcd any;

	(void)state;
	open_with(FEATURES & ~URDMA_RF_FEAT_XRC);
	errno = 0;
	assert_null(fake_ops->open_xrcd(ctx, &domain));
	assert_int_equal(errno, EOPNOTSUPP);
	xrcd = &any;
	expect_no_srq(srq_attr(), EOPNOTSUPP);
	expect_no_qp(qp_attr(IBV_QPT_XRC_SEND), EOPNOTSUPP);
	expect_no_qp(qp_attr(IBV_QPT_XRC_RECV), EOPNOTSUPP);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_wqes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rc_wqes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fields, setup, teardown),
		cmocka_unit_test_setup_teardown(test_number_of_rc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_basic, setup, teardown),
		cmocka_unit_test(test_no_feature),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
