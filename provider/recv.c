// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma provider: posting of receives. Makes no system call. */
#include <errno.h>

#include "wqe.h"

static inline ALWAYS_INLINE int urdma_put_rqe(struct urdma_wq *rq, uint32_t slot,
					      const struct ibv_recv_wr *wr)
{
	uint64_t length;
	uint32_t num;
	__le64 *w;

	/* A negative number converts to a large one. */
	if (unlikely((uint32_t)wr->num_sge > rq->max_sge))
		return EINVAL;

	w = urdma_wq_slot(rq, slot);
	num = urdma_put_sges(w + URDMA_RQE_DATA_OFFSET / 8, wr->sg_list, wr->num_sge, &length);
	/* Word 1 has been zero since the ring was allocated. */
	w[0] = htole64(FIELD_PREP(URDMA_RQE0_NUM_SGE, (uint64_t)num));
	rq->wr_id[slot] = wr->wr_id;
	return 0;
}

static int urdma_put_recv(struct urdma_wq *rq, uint16_t head, const struct ibv_recv_wr *wr)
{
	/* A queue without a ring is always full: urdma_wq_init_closed(). */
	if (unlikely(urdma_wq_is_full(rq, head)))
		return rq->ring ? ENOMEM : EINVAL;
	return urdma_put_rqe(rq, head & rq->mask, wr);
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
	if (unlikely(!wr))
		return 0;

	urdma_lock(&rq->lock);
	for (head = rq->head; wr; wr = wr->next, head++) {
		err = urdma_put_recv(rq, head, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(!err || head != rq->head)) {
		rq->head = head;
		urdma_ring_wq(rq, head);
	}
	urdma_unlock(&rq->lock);
	return err;
}

static int urdma_put_srq_recv(struct urdma_srq *srq, uint16_t head, const struct ibv_recv_wr *wr)
{
	uint16_t place;
	int err;

	if (unlikely(!srq->num_free))
		return ENOMEM;
	place = srq->free[srq->num_free - 1];
	err = urdma_put_rqe(&srq->wq, place, wr);
	if (unlikely(err))
		return err;
	srq->num_free--;
	srq->index[head & srq->wq.mask] = htole16(place);
	return 0;
}

int urdma_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct urdma_srq *srq = to_usrq(ibsrq);
	uint16_t head;
	int err = 0;

	urdma_lock(&srq->wq.lock);
	for (head = srq->wq.head; wr; wr = wr->next, head++) {
		err = urdma_put_srq_recv(srq, head, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
	}
	if (likely(head != srq->wq.head)) {
		srq->wq.head = head;
		urdma_ring_wq(&srq->wq, head);
	}
	urdma_unlock(&srq->wq.lock);
	return err;
}

/* Frees a place: its completion and its wr_id have been read. */
void urdma_srq_put(struct urdma_srq *srq, uint16_t place)
{
	urdma_lock(&srq->wq.lock);
	if (likely(srq->num_free <= srq->wq.mask))
		srq->free[srq->num_free++] = place & srq->wq.mask;
	urdma_unlock(&srq->wq.lock);
}
