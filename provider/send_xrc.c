// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: posting to XRC initiator QPs by ibv_post_send(). Makes no system call.
 *
 * A WQE is as for RC, and also names the SRQ at the peer. This is a separate file for the same
 * reason as send_ud.c.
 */
#include "wqe.h"

/* A WQE for urdma_post_send(), of an initiator QP. */
int urdma_put_xrc(struct urdma_qp *qp, uint16_t head, const struct ibv_send_wr *wr,
		  struct urdma_op *op)
{
	struct urdma_wq *sq = &qp->sq;
	uint32_t slot = head & sq->mask;
	uint64_t length = 0;
	uint64_t w0;
	__le64 *w;
	int err;

	if (unlikely(!(qp->opcodes >> op->opcode & 1)))
		return EOPNOTSUPP;
	if (unlikely(urdma_wq_is_full(sq, head)))
		return ENOMEM;
	w = urdma_wq_slot(sq, slot);
	w0 = urdma_sqe0(qp, op->opcode, wr->send_flags);
	err = urdma_put_payload(qp, w, wr, op, &w0, &length);
	if (unlikely(err))
		return err;
	urdma_put_op(w, w0, op, length);
	w[1] |= urdma_srqn_word(wr->qp_type.xrc.remote_srqn);
	sq->wr_id[slot] = wr->wr_id;
	return 0;
}
