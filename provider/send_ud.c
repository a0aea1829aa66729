// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: posting of datagrams by ibv_post_send(). Makes no system call.
 *
 * A separate file keeps the compiler from inlining this into the path of the other types.
 */
#include "wqe.h"

/*
 * A WQE for urdma_post_send() to a UD QP. QPs of other types come here only with an opcode that
 * they do not support. op is the operation without the destination.
 */
int urdma_put_datagram(struct urdma_qp *qp, uint16_t head, const struct ibv_send_wr *wr,
		       struct urdma_op *op)
{
	struct urdma_wq *sq = &qp->sq;
	uint32_t slot = head & sq->mask;
	uint64_t length = 0;
	uint64_t w0;
	__le64 *w;
	int err;
	int i;

	if (unlikely(!(qp->opcodes >> op->opcode & 1)))
		return EOPNOTSUPP;
	if (unlikely(urdma_wq_is_full(sq, head)))
		return ENOMEM;
	/* A negative number is a large one. */
	if (unlikely((uint32_t)wr->num_sge > sq->max_sge))
		return EINVAL;

	w = urdma_wq_slot(sq, slot);
	w0 = urdma_sqe0(qp, op->opcode, wr->send_flags);
	if (wr->send_flags & IBV_SEND_INLINE) {
		w0 |= URDMA_SQE0_INLINE;
		for (i = 0; i < wr->num_sge; i++) {
			err = urdma_put_inline(qp, w + URDMA_UD_SHIFT,
					       (void *)(uintptr_t)wr->sg_list[i].addr,
					       wr->sg_list[i].length, &length);
			if (unlikely(err))
				return err;
		}
	} else {
		w0 |= FIELD_PREP(URDMA_SQE0_NUM_SGE,
				 (uint64_t)urdma_put_sges(w + URDMA_SQE_UD_DATA_OFFSET / 8,
							  wr->sg_list, wr->num_sge, &length));
		if (unlikely(length > qp->max_msg))
			return EINVAL;
	}
	/*
	 * The QP number and its Q_Key take the place of the remote address and key of other WQEs.
	 */
	op->raddr = FIELD_PREP(URDMA_SQE2_DEST_QPN, (uint64_t)wr->wr.ud.remote_qpn);
	op->rkey = wr->wr.ud.remote_qkey;
	urdma_put_op(w, w0, op, length);
	urdma_put_av(w, wr->wr.ud.ah);
	sq->wr_id[slot] = wr->wr_id;
	return 0;
}
