// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: posting of receives. No system call is made here.
 */
#include <errno.h>

#include "wqe.h"

static int urdma_put_recv(struct urdma_wq *rq, uint16_t head, const struct ibv_recv_wr *wr)
{
	uint32_t slot = head & rq->mask;
	uint64_t length;
	uint32_t num;
	__le64 *w;

	if (unlikely(urdma_wq_is_full(rq, head)))
		return ENOMEM;
	/* A negative number is a large one. */
	if (unlikely((uint32_t)wr->num_sge > rq->max_sge))
		return EINVAL;

	w = urdma_wq_slot(rq, slot);
	num = urdma_put_sges(w + URDMA_RQE_DATA_OFFSET / 8, wr->sg_list, wr->num_sge, &length);
	w[0] = htole64(FIELD_PREP(URDMA_RQE0_NUM_SGE, (uint64_t)num));
	w[1] = 0;
	rq->wr_id[slot] = wr->wr_id;
	return 0;
}

int urdma_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct urdma_wq *rq = &to_uqp(ibqp)->rq;
	uint16_t head;
	int err = 0;

	if (unlikely(ibqp->state == IBV_QPS_RESET)) {
		*bad = wr;
		return EINVAL;
	}

	pthread_spin_lock(&rq->lock);
	for (head = rq->head; wr; wr = wr->next, head++) {
		err = urdma_put_recv(rq, head, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(head != rq->head)) {
		rq->head = head;
		urdma_ring_wq(rq, head);
	}
	pthread_spin_unlock(&rq->lock);
	return err;
}
