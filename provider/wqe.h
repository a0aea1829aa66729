/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* urdma provider: slots of work queues, parts common to send and receive WQEs, doorbells. */
#ifndef URDMA_PROVIDER_WQE_H
#define URDMA_PROVIDER_WQE_H

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "urdma.h"

/* With the work queue locked: hands the WQEs before head to the NIC. */
static inline void urdma_ring_wq(struct urdma_wq *wq, uint16_t head)
{
	/* orders WQEs and the data they point to before the doorbell */
	udma_to_device_barrier();
	mmio_write64_le(wq->db, htole64(wq->db_word | FIELD_PREP(URDMA_DBW_INDEX, (uint64_t)head)));
}

/* With the queue locked: true if the slot of index head is not free. */
static inline bool urdma_wq_is_full(struct urdma_wq *wq, uint16_t head)
{
	if (likely(head != wq->limit))
		return false;
	/* Acquire: a slot must not be written before its completion has been read. */
	wq->limit = atomic_load_explicit(&wq->tail, memory_order_acquire) + wq->mask + 1;
	return head == wq->limit;
}

static inline void *urdma_wq_slot(const struct urdma_wq *wq, uint32_t slot)
{
	return wq->ring + (size_t)slot * wq->stride;
}

/* On a little-endian CPU an SGE of the API equals one of the NIC, byte for byte. */
static inline void urdma_put_sge(__le64 *w, const struct ibv_sge *sge)
{
	static_assert(sizeof(*sge) == URDMA_SGE_SIZE, "an element of the API is one of the NIC");
	static_assert(offsetof(struct ibv_sge, addr) == 0, "SGE0_ADDR");
	static_assert(offsetof(struct ibv_sge, length) == 8, "SGE1_LENGTH");
	static_assert(GENMASK_ULL(31, 0) == URDMA_SGE1_LENGTH, "SGE1_LENGTH");
	static_assert(offsetof(struct ibv_sge, lkey) == 12, "SGE1_LKEY");
	static_assert(GENMASK_ULL(63, 32) == URDMA_SGE1_LKEY, "SGE1_LKEY");

#if __BYTE_ORDER == __LITTLE_ENDIAN
	memcpy(w, sge, sizeof(*sge));
#else
	w[0] = htole64(sge->addr);
	w[1] = htole64(FIELD_PREP(URDMA_SGE1_LENGTH, (uint64_t)sge->length) |
		       FIELD_PREP(URDMA_SGE1_LKEY, (uint64_t)sge->lkey));
#endif
}

/* Skips empty SGEs. Returns the number written. */
static inline uint32_t urdma_put_sges(__le64 *w, const struct ibv_sge *sge, uint32_t num,
				      uint64_t *length)
{
	uint64_t sum = 0;
	uint32_t n = 0;

	/* Most lists have one SGE. */
	if (likely(num == 1 && sge->length)) {
		urdma_put_sge(w, sge);
		*length = sge->length;
		return 1;
	}
	for (; num; num--, sge++) {
		if (!sge->length)
			continue;
		urdma_put_sge(w, sge);
		w += URDMA_SGE_SIZE / 8;
		sum += sge->length;
		n++;
	}
	*length = sum;
	return n;
}

/* The operation of a send WQE: its first 32 bytes without the number of SGEs and bytes. */
struct urdma_op {
	uint32_t opcode;
	/* immediate data, key to invalidate, or key of the region to bind */
	uint32_t imm;
	uint64_t raddr;
	uint32_t rkey;
};

/* Immediate data is big-endian in the API; the NIC takes its first byte from the low bits. */
static inline uint32_t urdma_imm_to_hw(__be32 imm)
{
	return le32toh((__force __le32)imm);
}

/*
 * Number of words by which the data of a UD WQE start later than in other types. The destination is
 * between; bytes 64 to 95 have been zero since the ring was allocated.
 */
#define URDMA_UD_SHIFT ((URDMA_SQE_UD_DATA_OFFSET - URDMA_SQE_DATA_OFFSET) / 8)

/* Writes the address handle's part of a UD WQE's destination. */
static inline void urdma_put_av(__le64 *w, struct ibv_ah *ah)
{
	memcpy(w + 4, to_uah(ah)->av, sizeof(to_uah(ah)->av));
}

static inline uint64_t urdma_sqe0(const struct urdma_qp *qp, uint32_t opcode, unsigned int flags)
{
	uint64_t w0 = qp->sqe0 | FIELD_PREP(URDMA_SQE0_OPCODE, (uint64_t)opcode);

	if (flags & IBV_SEND_SIGNALED)
		w0 |= URDMA_SQE0_SIGNALED;
	if (flags & IBV_SEND_SOLICITED)
		w0 |= URDMA_SQE0_SOLICITED;
	if (flags & IBV_SEND_FENCE)
		w0 |= URDMA_SQE0_FENCE;
	return w0;
}

/* The first 32 bytes of a send WQE. */
static inline void urdma_put_op(__le64 *w, uint64_t w0, const struct urdma_op *op, uint64_t length)
{
	w[0] = htole64(w0);
	w[1] = htole64(FIELD_PREP(URDMA_SQE1_IMM, (uint64_t)op->imm));
	w[2] = htole64(FIELD_PREP(URDMA_SQE2_RADDR, op->raddr));
	w[3] = htole64(FIELD_PREP(URDMA_SQE3_RKEY, (uint64_t)op->rkey) |
		       FIELD_PREP(URDMA_SQE3_LENGTH, length));
}

/* For an XRC initiator QP: the SRQ number in word 1. */
static inline __le64 urdma_srqn_word(uint32_t srqn)
{
	return htole64(FIELD_PREP(URDMA_SQE1_XRC_SRQN, (uint64_t)srqn));
}

static inline bool urdma_is_atomic(uint32_t opcode)
{
	return opcode == URDMA_WR_ATOMIC_CS || opcode == URDMA_WR_ATOMIC_FA;
}

/* Operands of an ATOMIC, in the place of a second SGE. */
static inline void urdma_put_atomic(__le64 *w, uint64_t swap_add, uint64_t compare)
{
	w[6] = htole64(FIELD_PREP(URDMA_SQE6_SWAP_ADD, swap_add));
	w[7] = htole64(FIELD_PREP(URDMA_SQE7_COMPARE, compare));
}

/* Operations that send data may have inline data. */
static inline bool urdma_may_inline(uint32_t opcode)
{
	return opcode != URDMA_WR_READ && !urdma_is_atomic(opcode);
}

/* Appends one piece of inline data after the first *length bytes. */
static inline int urdma_put_inline(const struct urdma_qp *qp, __le64 *w, const void *data,
				   size_t bytes, uint64_t *length)
{
	if (unlikely(bytes > qp->max_inline - *length))
		return ENOMEM;
	memcpy((uint8_t *)w + URDMA_SQE_DATA_OFFSET + *length, data, bytes);
	*length += bytes;
	return 0;
}

/* send.c */
int urdma_put_bind(const struct urdma_qp *qp, __le64 *w, struct urdma_op *op,
		   const struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *bind);
bool urdma_may_send(const struct ibv_qp *qp);

/* Writes the data or other second half of a work request of a QP that is not UD. Adds to word 0. */
static inline ALWAYS_INLINE int urdma_put_payload(const struct urdma_qp *qp, __le64 *w,
						  const struct ibv_send_wr *wr, struct urdma_op *op,
						  uint64_t *w0, uint64_t *length)
{
	uint32_t max_sge = qp->sq.max_sge;
	int err = 0;
	int i;

	if (op->opcode == URDMA_WR_LOCAL_INV)
		return 0;
	if (op->opcode == URDMA_WR_BIND_MW)
		return urdma_put_bind(qp, w, op, wr->bind_mw.mw, wr->bind_mw.rkey,
				      &wr->bind_mw.bind_info);
	if (op->opcode == URDMA_WR_ATOMIC_CS)
		urdma_put_atomic(w, wr->wr.atomic.swap, wr->wr.atomic.compare_add);
	if (op->opcode == URDMA_WR_ATOMIC_FA)
		urdma_put_atomic(w, wr->wr.atomic.compare_add, 0);
	if (urdma_is_atomic(op->opcode))
		max_sge = 1;
	/* A negative number converts to a large one. */
	if (unlikely((uint32_t)wr->num_sge > max_sge))
		return EINVAL;

	if (wr->send_flags & IBV_SEND_INLINE) {
		if (!urdma_may_inline(op->opcode))
			return EINVAL;
		*w0 |= URDMA_SQE0_INLINE;
		for (i = 0; i < wr->num_sge && !err; i++)
			err = urdma_put_inline(qp, w, (void *)(uintptr_t)wr->sg_list[i].addr,
					       wr->sg_list[i].length, length);
		return err;
	}
	*w0 |= FIELD_PREP(URDMA_SQE0_NUM_SGE,
			  (uint64_t)urdma_put_sges(w + URDMA_SQE_DATA_OFFSET / 8, wr->sg_list,
						   wr->num_sge, length));
	return *length > qp->max_msg ? EINVAL : 0;
}

/* send_ud.c */
int urdma_put_datagram(struct urdma_qp *qp, uint16_t head, const struct ibv_send_wr *wr,
		       struct urdma_op *op);

/* send_xrc.c */
int urdma_put_xrc(struct urdma_qp *qp, uint16_t head, const struct ibv_send_wr *wr,
		  struct urdma_op *op);

#endif
