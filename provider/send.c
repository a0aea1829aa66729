// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma provider: posting of sends by ibv_post_send(). Makes no system call. */
#include <ccan/array_size.h>

#include "wqe.h"

/* Opcodes that a device with these features supports. */
uint32_t urdma_opcodes(uint64_t features)
{
	static const uint64_t feature[] = {
		[URDMA_WR_SEND] = URDMA_RF_FEAT_RC_SEND,
		[URDMA_WR_SEND_IMM] = URDMA_RF_FEAT_RC_SEND,
		[URDMA_WR_SEND_INV] = URDMA_RF_FEAT_MEM_MGT,
		[URDMA_WR_WRITE] = URDMA_RF_FEAT_RC_WRITE,
		[URDMA_WR_WRITE_IMM] = URDMA_RF_FEAT_RC_WRITE,
		[URDMA_WR_READ] = URDMA_RF_FEAT_RC_READ,
		[URDMA_WR_ATOMIC_CS] = URDMA_RF_FEAT_RC_ATOMIC,
		[URDMA_WR_ATOMIC_FA] = URDMA_RF_FEAT_RC_ATOMIC,
		[URDMA_WR_LOCAL_INV] = URDMA_RF_FEAT_MEM_MGT,
		[URDMA_WR_BIND_MW] = URDMA_RF_FEAT_MW_2B,
		[URDMA_WR_FLUSH] = URDMA_RF_FEAT_FLUSH,
		[URDMA_WR_ATOMIC_WRITE] = URDMA_RF_FEAT_ATOMIC_WRITE,
	};
	uint32_t opcodes = 0;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(feature); i++)
		if (features & feature[i])
			opcodes |= 1U << i;
	return opcodes;
}

/* The operation of a work request; false if the NIC has none. */
static bool urdma_op_of(const struct ibv_send_wr *wr, struct urdma_op *op)
{
	op->imm = 0;
	op->raddr = 0;
	op->rkey = 0;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		op->opcode = URDMA_WR_SEND;
		return true;
	case IBV_WR_SEND_WITH_IMM:
		op->opcode = URDMA_WR_SEND_IMM;
		op->imm = urdma_imm_to_hw(wr->imm_data);
		return true;
	case IBV_WR_SEND_WITH_INV:
		op->opcode = URDMA_WR_SEND_INV;
		op->imm = wr->invalidate_rkey;
		return true;
	case IBV_WR_RDMA_WRITE:
		op->opcode = URDMA_WR_WRITE;
		op->raddr = wr->wr.rdma.remote_addr;
		op->rkey = wr->wr.rdma.rkey;
		return true;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		op->opcode = URDMA_WR_WRITE_IMM;
		op->imm = urdma_imm_to_hw(wr->imm_data);
		op->raddr = wr->wr.rdma.remote_addr;
		op->rkey = wr->wr.rdma.rkey;
		return true;
	case IBV_WR_RDMA_READ:
		op->opcode = URDMA_WR_READ;
		op->raddr = wr->wr.rdma.remote_addr;
		op->rkey = wr->wr.rdma.rkey;
		return true;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		op->opcode = URDMA_WR_ATOMIC_CS;
		op->raddr = wr->wr.atomic.remote_addr;
		op->rkey = wr->wr.atomic.rkey;
		return true;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		op->opcode = URDMA_WR_ATOMIC_FA;
		op->raddr = wr->wr.atomic.remote_addr;
		op->rkey = wr->wr.atomic.rkey;
		return true;
	case IBV_WR_LOCAL_INV:
		op->opcode = URDMA_WR_LOCAL_INV;
		op->imm = wr->invalidate_rkey;
		return true;
	case IBV_WR_BIND_MW:
		op->opcode = URDMA_WR_BIND_MW;
		return true;
	default:
		return false;
	}
}

/*
 * Writes a binding into op and the WQE's second half. The new key has the window's index and the
 * variant of the caller's key. Access rights have the same bits in the verbs and the NIC, except
 * FLUSH: the NIC's bit for it means zero-based addresses in the verbs.
 */
int urdma_put_bind(const struct urdma_qp *qp, __le64 *w, struct urdma_op *op,
		   const struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind)
{
	/* The region determines local rights: they are accepted here and ignored. */
	const unsigned int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				    IBV_ACCESS_FLUSH_GLOBAL;
	const bool zero_based = bind->mw_access_flags & IBV_ACCESS_ZERO_BASED;
	uint64_t access = bind->mw_access_flags & rights & ~IBV_ACCESS_FLUSH_GLOBAL;

	if (mw->type != IBV_MW_TYPE_2)
		return EINVAL;
	if (bind->mw_access_flags & ~(rights | IBV_ACCESS_ZERO_BASED))
		return EOPNOTSUPP;
	if (zero_based && !(to_uctx(qp->vqp.qp.context)->features & URDMA_RF_FEAT_ZERO_BASED))
		return EOPNOTSUPP;
	if (bind->length && (!bind->mr || bind->mr->pd->handle != mw->pd->handle ||
			     mw->pd->handle != qp->vqp.qp.pd->handle))
		return EPERM;
	if (bind->mw_access_flags & IBV_ACCESS_FLUSH_GLOBAL)
		access |= URDMA_ACC_FLUSH_GLOBAL;
	op->imm = bind->mr ? bind->mr->lkey : 0;
	op->raddr = bind->addr;
	op->rkey = (mw->rkey & ~URDMA_KEY_VARIANT) | (rkey & URDMA_KEY_VARIANT);
	w[4] = htole64(FIELD_PREP(URDMA_SQE4_MR_LENGTH, bind->length));
	w[5] = 0;
	w[6] = htole64(FIELD_PREP(URDMA_SQE6_MR_ACCESS, access) |
		       FIELD_PREP(URDMA_SQE6_MR_ZERO_BASED, zero_based));
	w[7] = 0;
	return 0;
}

static int urdma_put_send(struct urdma_qp *qp, uint16_t head, const struct ibv_send_wr *wr)
{
	struct urdma_wq *sq = &qp->sq;
	uint32_t slot = head & sq->mask;
	uint64_t length = 0;
	struct urdma_op op;
	uint64_t w0;
	__le64 *w;
	int err;

	if (unlikely(!urdma_op_of(wr, &op)))
		return EOPNOTSUPP;
	/* plain_opcodes is 0 for UD and XRC QPs, so other types need no check of the type. */
	if (unlikely(!(qp->plain_opcodes >> op.opcode & 1)))
		return qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND
			       ? urdma_put_xrc(qp, head, wr, &op)
			       : urdma_put_datagram(qp, head, wr, &op);
	if (unlikely(urdma_wq_is_full(sq, head)))
		return ENOMEM;
	w = urdma_wq_slot(sq, slot);
	w0 = urdma_sqe0(qp, op.opcode, wr->send_flags);
	err = urdma_put_payload(qp, w, wr, &op, &w0, &length);
	if (unlikely(err))
		return err;
	urdma_put_op(w, w0, &op, length);
	sq->wr_id[slot] = wr->wr_id;
	return 0;
}

/*
 * Binds a type 1 window, which the program may not bind by a work request. The NIC knows the type,
 * so the WQE is the same as for a type 2 window. Each binding gives the window its next key.
 */
int urdma_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_mw window = *mw;
	struct ibv_send_wr *bad, wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = { &window, ibv_inc_rkey(mw->rkey), bind->bind_info },
	};
	int err;

	if (mw->type != IBV_MW_TYPE_1)
		return EINVAL;
	window.type = IBV_MW_TYPE_2;
	err = urdma_post_send(qp, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

/* Posting in ERR is allowed: the NIC flushes the WQEs. */
bool urdma_may_send(const struct ibv_qp *qp)
{
	return qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT && qp->state != IBV_QPS_RTR;
}

int urdma_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct urdma_qp *qp = to_uqp(ibqp);
	struct urdma_wq *sq = &qp->sq;
	uint16_t head;
	int err = 0;

	if (unlikely(!urdma_may_send(ibqp))) {
		*bad = wr;
		return EINVAL;
	}

	urdma_lock(&sq->lock);
	for (head = sq->head; wr; wr = wr->next, head++) {
		err = urdma_put_send(qp, head, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(head != sq->head)) {
		sq->head = head;
		urdma_ring_wq(sq, head);
	}
	urdma_unlock(&sq->lock);
	return err;
}
