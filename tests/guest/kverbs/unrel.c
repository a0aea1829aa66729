// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * kverbs: QPs of type UD and UC. They replace the sides' RC QPs, and use the same CQs.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "kverbs.h"

#define QKEY 0x1234567
#define SL   5
/* Of the 40 bytes in front of a datagram; the data after them are at this offset in the buffer. */
#define AT   4096
#define DATA (AT + sizeof(struct ib_grh))

static int unrel_init(struct side *s, enum ib_qp_type type)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = PORT,
		.qkey = QKEY,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE,
	};

	return ib_modify_qp(s->qp, &attr,
			    IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX |
				    (type == IB_QPT_UD ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS));
}

static void path_to(struct side *s, struct rdma_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_grh(ah, &s->peer->gid, 0x12345, s->gid_index, 64, 0x20);
	rdma_ah_set_port_num(ah, PORT);
	rdma_ah_set_sl(ah, SL);
	ether_addr_copy(ah->roce.dmac, s->peer->mac);
}

static int unrel_rts(struct side *s, enum ib_qp_type type)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = s->mtu,
		.dest_qp_num = s->peer->qp->qp_num,
		.rq_psn = 100,
		.sq_psn = 100,
	};
	int mask = IB_QP_STATE;

	path_to(s, &attr.ah_attr);
	if (type == IB_QPT_UC)
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	TRY(ib_modify_qp(s->qp, &attr, mask));
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(s->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

static int unrel_make(struct side *s, enum ib_qp_type type)
{
	struct ib_qp_init_attr init = {
		.send_cq = s->scq,
		.recv_cq = s->rcq,
		.cap = {
			.max_send_wr = 8,
			.max_recv_wr = 8,
			.max_send_sge = 3,
			.max_recv_sge = 1,
			.max_inline_data = INLINE,
		},
		.qp_type = type,
	};

	s->qp = ib_create_qp(s->pd, &init);
	TRY(PTR_ERR_OR_ZERO(s->qp));
	WANT(init.cap.max_send_sge >= 3 && init.cap.max_inline_data >= INLINE);
	return 0;
}

static void unrel_free(struct side *s, struct ib_qp *rc)
{
	if (!IS_ERR_OR_NULL(s->qp) && s->qp != rc)
		ib_destroy_qp(s->qp);
	s->qp = rc;
}

static int with_unrel(struct test *t, enum ib_qp_type type, int (*fn)(struct test *t))
{
	struct ib_qp *a = t->a.qp, *b = t->b.qp;
	int err;

	err = unrel_make(&t->a, type);
	if (!err)
		err = unrel_make(&t->b, type);
	if (!err)
		err = unrel_init(&t->a, type);
	if (!err)
		err = unrel_init(&t->b, type);
	if (!err)
		err = unrel_rts(&t->a, type);
	if (!err)
		err = unrel_rts(&t->b, type);
	if (!err)
		err = fn(t);
	unrel_free(&t->a, a);
	unrel_free(&t->b, b);
	return err;
}

/* Requests that are posted while a QP drains, and afterwards, are flushed; then the drain ends. */
static int want_drained(struct test *t)
{
	struct ib_sge sge = sge_of(&t->a, 0, 8);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
	};
	struct op *recv;

	TRY(post_recv(&t->a, AT, 64, &recv));
	ib_drain_qp(t->a.qp);
	TRY(op_want(t->a.rcq, recv, IB_WC_WR_FLUSH_ERR));
	return send_wait(&t->a, &wr.wr, IB_WC_WR_FLUSH_ERR);
}

static int want_refused(struct side *s, const enum ib_wr_opcode *opcodes, int n)
{
	struct ib_rdma_wr wr = {};
	int i;

	for (i = 0; i < n; i++) {
		wr.wr.opcode = opcodes[i];
		WANT(ib_post_send(s->qp, &wr.wr, NULL) == -EOPNOTSUPP);
	}
	return 0;
}

/* ---- UD ------------------------------------------------------------------------------------- */

static int want_ah(struct side *s, struct ib_ah *ah)
{
	struct rdma_ah_attr want, got;

	path_to(s, &want);
	TRY(rdma_query_ah(ah, &got));
	WANT(got.type == want.type && rdma_ah_get_sl(&got) == SL);
	WANT(rdma_ah_get_port_num(&got) == PORT && rdma_ah_get_ah_flags(&got) == IB_AH_GRH);
	WANT(!memcmp(&got.grh.dgid, &want.grh.dgid, sizeof(got.grh.dgid)));
	WANT(got.grh.flow_label == 0x12345 && got.grh.hop_limit == 64);
	WANT(got.grh.traffic_class == 0x20 && got.grh.sgid_index == s->gid_index);
	WANT(ether_addr_equal(got.roce.dmac, want.roce.dmac));
	return 0;
}

/* Sends one datagram to the other side. Returns the fields of its completion. */
static int send_ud(struct side *s, struct ib_ah *ah, u32 len, int flags, struct ib_wc *wc)
{
	struct side *to = s->peer;
	/* inline data are named by their virtual address */
	struct ib_sge sge = { .addr = (uintptr_t)s->buf, .length = len };
	struct ib_ud_wr wr = {
		.wr = {
			.opcode = IB_WR_SEND_WITH_IMM,
			.sg_list = &sge,
			.num_sge = 1,
			.send_flags = flags,
			.ex.imm_data = cpu_to_be32(0x01020304),
		},
		.ah = ah,
		.remote_qpn = to->qp->qp_num,
		.remote_qkey = QKEY,
	};
	struct op *recv;
	u32 i;

	if (!(flags & IB_SEND_INLINE))
		sge = sge_of(s, 0, len);
	for (i = 0; i < len; i++)
		s->buf[i] = i * 7 + len;
	memset(to->buf + AT, 0, 8192);
	TRY(post_recv(to, AT, 8192, &recv));
	TRY(send_wait(s, &wr.wr, IB_WC_SUCCESS));
	TRY(op_want(to->rcq, recv, IB_WC_SUCCESS));
	for (i = 0; i < len; i++)
		WANT(to->buf[DATA + i] == (u8)(i * 7 + len));
	WANT(!to->buf[DATA + len]);
	*wc = recv->wc;
	WANT(wc->byte_len == len + sizeof(struct ib_grh) && wc->src_qp == s->qp->qp_num);
	WANT(wc->wc_flags == (IB_WC_GRH | IB_WC_WITH_IMM | IB_WC_WITH_NETWORK_HDR_TYPE));
	WANT(wc->network_hdr_type == RDMA_NETWORK_IPV4);
	WANT(wc->ex.imm_data == cpu_to_be32(0x01020304) && wc->port_num == PORT);
	return 0;
}

static int ud_with_ah(struct test *t, struct ib_ah *ah)
{
	static const enum ib_wr_opcode not_ud[] = {
		IB_WR_RDMA_WRITE,	  IB_WR_RDMA_WRITE_WITH_IMM, IB_WR_RDMA_READ,
		IB_WR_ATOMIC_CMP_AND_SWP, IB_WR_SEND_WITH_INV,	     IB_WR_LOCAL_INV,
	};
	struct ib_ah *back;
	struct ib_wc wc;
	int err;

	TRY(want_ah(&t->a, ah));
	TRY(send_ud(&t->a, ah, 200, 0, &wc));
	TRY(send_ud(&t->a, ah, 0, 0, &wc));
	TRY(send_ud(&t->a, ah, INLINE, IB_SEND_INLINE, &wc));
	TRY(send_ud(&t->a, ah, ib_mtu_enum_to_int(t->a.mtu), 0, &wc));
	/* An answer is addressed by the completion and the 40 bytes. */
	back = ib_create_ah_from_wc(t->b.pd, &wc, (struct ib_grh *)(t->b.buf + AT), PORT);
	TRY(PTR_ERR_OR_ZERO(back));
	err = send_ud(&t->b, back, 100, 0, &wc);
	rdma_destroy_ah(back, RDMA_DESTROY_AH_SLEEPABLE);
	if (err)
		return err;
	TRY(want_refused(&t->a, not_ud, ARRAY_SIZE(not_ud)));
	return want_drained(t);
}

static int do_ud(struct test *t)
{
	struct rdma_ah_attr attr;
	struct ib_ah *ah;
	int err;

	path_to(&t->a, &attr);
	/* A VLAN tag has no more than seven priorities above 0. */
	rdma_ah_set_sl(&attr, 8);
	ah = rdma_create_ah(t->a.pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	WANT(PTR_ERR_OR_ZERO(ah) == -EINVAL);
	path_to(&t->a, &attr);
	ah = rdma_create_ah(t->a.pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	TRY(PTR_ERR_OR_ZERO(ah));
	err = ud_with_ah(t, ah);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	return err;
}

int check_ud(struct test *t)
{
	return with_unrel(t, IB_QPT_UD, do_ud);
}

/* QP 1 belongs to the MAD layer, and exists. */
int check_gsi(struct test *t)
{
	struct ib_qp_init_attr init = {
		.send_cq = t->a.scq,
		.recv_cq = t->a.rcq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IB_QPT_GSI,
		.port_num = PORT,
	};

	WANT(rdma_cap_ib_mad(t->a.dev, PORT) && rdma_cap_ib_cm(t->a.dev, PORT));
	WANT(ib_create_qp(t->a.pd, &init) == ERR_PTR(-EBUSY));
	init.qp_type = IB_QPT_SMI;
	WANT(ib_create_qp(t->a.pd, &init) == ERR_PTR(-EOPNOTSUPP));
	return 0;
}

/* XRC is for processes: a work request of the kernel cannot name an SRQ. */
int check_no_xrc(struct test *t)
{
	struct ib_qp_init_attr init = {
		.send_cq = t->a.scq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IB_QPT_XRC_INI,
	};
	struct ib_srq_init_attr srq = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.srq_type = IB_SRQT_XRC,
		.ext.cq = t->a.rcq,
	};

	WANT(ib_create_qp(t->a.pd, &init) == ERR_PTR(-EOPNOTSUPP));
	WANT(ib_create_srq(t->a.pd, &srq) == ERR_PTR(-EOPNOTSUPP));
	return 0;
}

/* ---- UC ------------------------------------------------------------------------------------- */

static int do_uc(struct test *t)
{
	static const enum ib_wr_opcode not_uc[] = {
		IB_WR_RDMA_READ,     IB_WR_ATOMIC_CMP_AND_SWP, IB_WR_ATOMIC_FETCH_AND_ADD,
		IB_WR_SEND_WITH_INV, IB_WR_LOCAL_INV,	       IB_WR_REG_MR,
	};
	struct ib_sge sge = sge_of(&t->a, 0, 4 * ib_mtu_enum_to_int(t->a.mtu) + 4);
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_IMM,
		.sg_list = &sge,
		.num_sge = 1,
		.ex.imm_data = cpu_to_be32(0x01020304),
	};
	struct ib_rdma_wr write = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
	};
	struct op *recv;

	memset(t->a.buf, 0x5a, sge.length);
	memset(t->b.buf, 0, sge.length + 1);
	TRY(post_recv(&t->b, 0, BUF_SIZE, &recv));
	TRY(send_wait(&t->a, &wr, IB_WC_SUCCESS));
	TRY(op_want(t->b.rcq, recv, IB_WC_SUCCESS));
	WANT(!memchr_inv(t->b.buf, 0x5a, sge.length) && !t->b.buf[sge.length]);
	WANT(recv->wc.byte_len == sge.length && recv->wc.wc_flags == IB_WC_WITH_IMM);
	WANT(recv->wc.ex.imm_data == cpu_to_be32(0x01020304));
	/* A WRITE that the other side refuses succeeds here: it has been sent. */
	sge.length = 64;
	TRY(send_wait(&t->a, &write.wr, IB_WC_SUCCESS));
	TRY(want_refused(&t->a, not_uc, ARRAY_SIZE(not_uc)));
	return want_drained(t);
}

int check_uc(struct test *t)
{
	return with_unrel(t, IB_QPT_UC, do_uc);
}
