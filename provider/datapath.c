// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: posting, polling, arming. No system call is made here.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "urdma.h"

/* Immediate data is big-endian in the API; the NIC takes its first byte from the low bits. */
static uint32_t imm_to_hw(__be32 imm)
{
	return le32toh((__force __le32)imm);
}

static __be32 imm_from_hw(uint32_t imm)
{
	return (__force __be32)htole32(imm);
}

static void urdma_ring_doorbell(struct urdma_context *ctx, uint32_t which, uint32_t obj,
				uint32_t arm, uint32_t index)
{
	mmio_write64_le(ctx->db + which, htole64(FIELD_PREP(URDMA_DBW_OBJ, (uint64_t)obj) |
						 FIELD_PREP(URDMA_DBW_ARM, (uint64_t)arm) |
						 FIELD_PREP(URDMA_DBW_INDEX, (uint64_t)index)));
}

static bool urdma_wq_is_full(struct urdma_wq *wq)
{
	/* Acquire: the slot is not written before its completion was read. */
	uint16_t tail = atomic_load_explicit(&wq->tail, memory_order_acquire);

	return (uint16_t)(wq->head - tail) >> wq->log != 0;
}

static void *urdma_wq_slot(struct urdma_wq *wq)
{
	uint32_t slot = wq->head & ((1U << wq->log) - 1);

	return wq->ring + ((size_t)slot << wq->log_stride);
}

/* Elements without bytes are left out. The number of those written. */
static uint32_t urdma_put_sges(__le64 *w, const struct ibv_sge *sge, int num, uint64_t *total)
{
	uint32_t n = 0;
	int i;

	*total = 0;
	for (i = 0; i < num; i++) {
		if (!sge[i].length)
			continue;
		w[2 * n] = htole64(sge[i].addr);
		w[2 * n + 1] = htole64(FIELD_PREP(URDMA_SGE1_LENGTH, (uint64_t)sge[i].length) |
				       FIELD_PREP(URDMA_SGE1_LKEY, (uint64_t)sge[i].lkey));
		*total += sge[i].length;
		n++;
	}
	return n;
}

static int urdma_put_inline(uint8_t *to, uint32_t room, const struct ibv_sge *sge, int num,
			    uint64_t *total)
{
	uint32_t n = 0;
	int i;

	for (i = 0; i < num; i++) {
		if (sge[i].length > room - n)
			return ENOMEM;
		memcpy(to + n, (void *)(uintptr_t)sge[i].addr, sge[i].length);
		n += sge[i].length;
	}
	*total = n;
	return 0;
}

/* What the NIC can do by its feature bits. Anything else is refused here, not by a CQE. */
static int urdma_send_opcode(struct urdma_context *ctx, enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
		return ctx->features & URDMA_RF_FEAT_RC_SEND ? URDMA_WR_SEND : -1;
	case IBV_WR_SEND_WITH_IMM:
		return ctx->features & URDMA_RF_FEAT_RC_SEND ? URDMA_WR_SEND_IMM : -1;
	default:
		return -1;
	}
}

static int urdma_post_one_send(struct urdma_context *ctx, struct urdma_qp *qp,
			       const struct ibv_send_wr *wr)
{
	struct urdma_wq *sq = &qp->sq;
	int opcode = urdma_send_opcode(ctx, wr->opcode);
	uint64_t w0, imm = 0, length;
	__le64 *w;
	int err;

	if (opcode < 0)
		return EOPNOTSUPP;
	if (urdma_wq_is_full(sq))
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > sq->max_sge)
		return EINVAL;

	w = urdma_wq_slot(sq);
	w0 = FIELD_PREP(URDMA_SQE0_OPCODE, (uint64_t)opcode);
	if (qp->sig_all || wr->send_flags & IBV_SEND_SIGNALED)
		w0 |= URDMA_SQE0_SIGNALED;
	if (wr->send_flags & IBV_SEND_SOLICITED)
		w0 |= URDMA_SQE0_SOLICITED;
	if (wr->send_flags & IBV_SEND_FENCE)
		w0 |= URDMA_SQE0_FENCE;
	if (wr->send_flags & IBV_SEND_INLINE) {
		err = urdma_put_inline((uint8_t *)w + URDMA_SQE_DATA_OFFSET, qp->max_inline,
				       wr->sg_list, wr->num_sge, &length);
		if (err)
			return err;
		w0 |= URDMA_SQE0_INLINE;
	} else {
		w0 |= FIELD_PREP(URDMA_SQE0_NUM_SGE,
				 (uint64_t)urdma_put_sges(w + URDMA_SQE_DATA_OFFSET / 8,
							  wr->sg_list, wr->num_sge, &length));
		if (length > 1ULL << ctx->log_max_msg)
			return EINVAL;
	}
	if (opcode == URDMA_WR_SEND_IMM)
		imm = imm_to_hw(wr->imm_data);
	w[0] = htole64(w0);
	w[1] = htole64(FIELD_PREP(URDMA_SQE1_IMM, imm));
	w[2] = 0;
	w[3] = htole64(FIELD_PREP(URDMA_SQE3_LENGTH, length));
	sq->wr_id[sq->head & ((1U << sq->log) - 1)] = wr->wr_id;
	sq->head++;
	return 0;
}

int urdma_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct urdma_context *ctx = to_uctx(ibqp->context);
	struct urdma_qp *qp = to_uqp(ibqp);
	uint16_t first;
	int err = 0;

	/* Posting in ERR is right: what is posted is flushed. */
	if (ibqp->state == IBV_QPS_RESET || ibqp->state == IBV_QPS_INIT ||
	    ibqp->state == IBV_QPS_RTR) {
		*bad = wr;
		return EINVAL;
	}

	pthread_spin_lock(&qp->sq.lock);
	first = qp->sq.head;
	for (; wr; wr = wr->next) {
		err = urdma_post_one_send(ctx, qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->sq.head != first) {
		/* WQEs, and the data they point to, before the doorbell */
		udma_to_device_barrier();
		urdma_ring_doorbell(ctx, URDMA_DB_SQ, qp->qpn, 0, qp->sq.head);
	}
	pthread_spin_unlock(&qp->sq.lock);
	return err;
}

static int urdma_post_one_recv(struct urdma_wq *rq, const struct ibv_recv_wr *wr)
{
	uint64_t length;
	uint32_t num;
	__le64 *w;

	if (urdma_wq_is_full(rq))
		return ENOMEM;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return EINVAL;

	w = urdma_wq_slot(rq);
	num = urdma_put_sges(w + URDMA_RQE_DATA_OFFSET / 8, wr->sg_list, wr->num_sge, &length);
	w[0] = htole64(FIELD_PREP(URDMA_RQE0_NUM_SGE, (uint64_t)num));
	w[1] = 0;
	rq->wr_id[rq->head & ((1U << rq->log) - 1)] = wr->wr_id;
	rq->head++;
	return 0;
}

int urdma_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct urdma_context *ctx = to_uctx(ibqp->context);
	struct urdma_qp *qp = to_uqp(ibqp);
	uint16_t first;
	int err = 0;

	if (ibqp->state == IBV_QPS_RESET) {
		*bad = wr;
		return EINVAL;
	}

	pthread_spin_lock(&qp->rq.lock);
	first = qp->rq.head;
	for (; wr; wr = wr->next) {
		err = urdma_post_one_recv(&qp->rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (qp->rq.head != first) {
		udma_to_device_barrier();
		urdma_ring_doorbell(ctx, URDMA_DB_RQ, qp->qpn, 0, qp->rq.head);
	}
	pthread_spin_unlock(&qp->rq.lock);
	return err;
}

static enum ibv_wc_status urdma_wc_status(uint32_t status)
{
	switch (status) {
	case URDMA_WC_SUCCESS:
		return IBV_WC_SUCCESS;
	case URDMA_WC_LOC_LEN_ERR:
		return IBV_WC_LOC_LEN_ERR;
	case URDMA_WC_LOC_QP_OP_ERR:
		return IBV_WC_LOC_QP_OP_ERR;
	case URDMA_WC_LOC_PROT_ERR:
		return IBV_WC_LOC_PROT_ERR;
	case URDMA_WC_FLUSH_ERR:
		return IBV_WC_WR_FLUSH_ERR;
	case URDMA_WC_BAD_RESP_ERR:
		return IBV_WC_BAD_RESP_ERR;
	case URDMA_WC_LOC_ACCESS_ERR:
		return IBV_WC_LOC_ACCESS_ERR;
	case URDMA_WC_REM_INV_REQ_ERR:
		return IBV_WC_REM_INV_REQ_ERR;
	case URDMA_WC_REM_ACCESS_ERR:
		return IBV_WC_REM_ACCESS_ERR;
	case URDMA_WC_REM_OP_ERR:
		return IBV_WC_REM_OP_ERR;
	case URDMA_WC_RETRY_EXC_ERR:
		return IBV_WC_RETRY_EXC_ERR;
	case URDMA_WC_RNR_RETRY_EXC_ERR:
		return IBV_WC_RNR_RETRY_EXC_ERR;
	default:
		return IBV_WC_GENERAL_ERR;
	}
}

static enum ibv_wc_opcode urdma_wc_opcode(uint32_t opcode, bool recv)
{
	if (recv)
		return opcode == URDMA_WR_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	switch (opcode) {
	case URDMA_WR_WRITE:
	case URDMA_WR_WRITE_IMM:
		return IBV_WC_RDMA_WRITE;
	case URDMA_WR_READ:
		return IBV_WC_RDMA_READ;
	case URDMA_WR_ATOMIC_CS:
		return IBV_WC_COMP_SWAP;
	case URDMA_WR_ATOMIC_FA:
		return IBV_WC_FETCH_ADD;
	case URDMA_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case URDMA_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	default:
		return IBV_WC_SEND;
	}
}

/* The CQE at an index if it is there: its phase bit is 1 in the first round, and alternates. */
static struct urdma_cqe *urdma_cqe_at(struct urdma_cq *cq, uint32_t index)
{
	struct urdma_cqe *cqe = &cq->ring[index & ((1U << cq->log) - 1)];
	uint64_t w3 = le64toh(*(volatile __le64 *)&cqe->w[3]);

	if (FIELD_GET(URDMA_CQE3_PHASE, w3) == ((index >> cq->log) & 1))
		return NULL;
	return cqe;
}

/* Number of a CQE whose QP is no more; 0 is no QP of ours. */
#define URDMA_NO_QPN 0

static struct urdma_qp *urdma_table_find(struct urdma_context *ctx, uint32_t qpn)
{
	struct urdma_qp **chunk;

	if (qpn == URDMA_NO_QPN || qpn >> ctx->log_max_qp)
		return NULL;
	chunk = ctx->qp_table[qpn >> URDMA_QP_TABLE_LOG];
	return chunk ? chunk[qpn & (URDMA_QP_TABLE_SIZE - 1)] : NULL;
}

static bool urdma_take_cqe(struct urdma_context *ctx, const struct urdma_cqe *cqe,
			   struct ibv_wc *wc)
{
	uint64_t w0 = le64toh(cqe->w[0]);
	uint64_t w1 = le64toh(cqe->w[1]);
	uint64_t w2 = le64toh(cqe->w[2]);
	bool recv = w0 & URDMA_CQE0_RECV;
	uint16_t index = FIELD_GET(URDMA_CQE0_WQE, w0);
	struct urdma_wq *wq;
	struct urdma_qp *qp;

	qp = urdma_table_find(ctx, FIELD_GET(URDMA_CQE1_QPN, w1));
	if (!qp)
		return false;
	wq = recv ? &qp->rq : &qp->sq;

	wc->wr_id = wq->wr_id[index & ((1U << wq->log) - 1)];
	wc->status = urdma_wc_status(FIELD_GET(URDMA_CQE0_STATUS, w0));
	wc->opcode = urdma_wc_opcode(FIELD_GET(URDMA_CQE0_OPCODE, w0), recv);
	wc->vendor_err = FIELD_GET(URDMA_CQE0_VENDOR, w0);
	wc->byte_len = FIELD_GET(URDMA_CQE1_LENGTH, w1);
	wc->qp_num = qp->qpn;
	wc->src_qp = FIELD_GET(URDMA_CQE2_SRC_QPN, w2);
	wc->wc_flags = 0;
	wc->imm_data = 0;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
	if (w0 & URDMA_CQE0_IMM) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		wc->imm_data = imm_from_hw(FIELD_GET(URDMA_CQE2_IMM, w2));
	} else if (w0 & URDMA_CQE0_INV) {
		wc->wc_flags |= IBV_WC_WITH_INV;
		wc->invalidated_rkey = FIELD_GET(URDMA_CQE2_IMM, w2);
	}

	/* This WQE and all before it, for those were not signaled. Release: wr_id has been read. */
	atomic_store_explicit(&wq->tail, (uint16_t)(index + 1), memory_order_release);
	return true;
}

int urdma_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct urdma_context *ctx = to_uctx(ibcq->context);
	struct urdma_cq *cq = to_ucq(ibcq);
	struct urdma_cqe *cqe;
	int got = 0;

	pthread_spin_lock(&cq->lock);
	while (got < n) {
		cqe = urdma_cqe_at(cq, cq->ci);
		if (!cqe)
			break;
		/* the phase bit before the rest of the CQE and the data that it announces */
		udma_from_device_barrier();
		if (urdma_take_cqe(ctx, cqe, &wc[got]))
			got++;
		cq->ci++;
	}
	if ((cq->ci - cq->told) >> (cq->log - 2)) {
		/* Reads of CQEs end before the NIC may write there again. */
		udma_to_device_barrier();
		urdma_ring_doorbell(ctx, URDMA_DB_CQ, cq->cqn, URDMA_DB_ARM_NONE, cq->ci);
		cq->told = cq->ci;
	}
	pthread_spin_unlock(&cq->lock);
	return got;
}

int urdma_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct urdma_cq *cq = to_ucq(ibcq);

	pthread_spin_lock(&cq->lock);
	udma_to_device_barrier();
	/* Says what was polled: a CQE that came after that raises the event at once. */
	urdma_ring_doorbell(to_uctx(ibcq->context), URDMA_DB_CQ, cq->cqn,
			    solicited_only ? URDMA_DB_ARM_SOLICITED : URDMA_DB_ARM_ANY, cq->ci);
	cq->told = cq->ci;
	pthread_spin_unlock(&cq->lock);
	return 0;
}

/* With the CQ locked. The NIC writes no more CQEs of this QP; those not polled yet are dropped. */
void urdma_cq_forget_qp(struct urdma_cq *cq, uint32_t qpn)
{
	struct urdma_cqe *cqe;
	uint32_t index;

	for (index = cq->ci; (index - cq->ci) >> cq->log == 0; index++) {
		cqe = urdma_cqe_at(cq, index);
		if (!cqe)
			break;
		udma_from_device_barrier();
		if (FIELD_GET(URDMA_CQE1_QPN, le64toh(cqe->w[1])) == qpn)
			cqe->w[1] = htole64(FIELD_PREP(URDMA_CQE1_QPN, (uint64_t)URDMA_NO_QPN));
	}
}
