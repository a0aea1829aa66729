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

/*
 * A send WQE is made in two steps: urdma_wqe_begin() writes the head of a message without data and
 * takes the slot; one of the setters below puts the data in. The old and the extended verbs are
 * both made of these. Nothing is told to the NIC before the doorbell, so a head that is put back
 * takes its WQEs away again.
 */
static int urdma_wqe_begin(struct urdma_qp *qp, uint32_t opcode, uint64_t wr_id, uint32_t flags)
{
	/* What the NIC has to be able to do. Anything else is refused here, not by a CQE. */
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
	};
	struct urdma_context *ctx = to_uctx(qp->vqp.qp.context);
	struct urdma_wq *sq = &qp->sq;
	uint64_t w0 = FIELD_PREP(URDMA_SQE0_OPCODE, (uint64_t)opcode);
	__le64 *w;

	if (!(ctx->features & feature[opcode]))
		return EOPNOTSUPP;
	if (urdma_wq_is_full(sq))
		return ENOMEM;
	if (qp->sig_all || flags & IBV_SEND_SIGNALED)
		w0 |= URDMA_SQE0_SIGNALED;
	if (flags & IBV_SEND_SOLICITED)
		w0 |= URDMA_SQE0_SOLICITED;
	if (flags & IBV_SEND_FENCE)
		w0 |= URDMA_SQE0_FENCE;
	w = urdma_wq_slot(sq);
	w[0] = htole64(w0);
	w[1] = 0;
	w[2] = 0;
	w[3] = 0;
	sq->wr_id[sq->head & ((1U << sq->log) - 1)] = wr_id;
	sq->wqe = w;
	sq->opcode = opcode;
	sq->head++;
	return 0;
}

static void urdma_wqe_remote(struct urdma_qp *qp, uint32_t rkey, uint64_t addr)
{
	__le64 *w = qp->sq.wqe;

	w[2] = htole64(FIELD_PREP(URDMA_SQE2_RADDR, addr));
	w[3] = htole64(FIELD_PREP(URDMA_SQE3_RKEY, (uint64_t)rkey));
}

/* Immediate data, or a key to invalidate, or one to bind to. */
static void urdma_wqe_imm(struct urdma_qp *qp, uint32_t imm)
{
	qp->sq.wqe[1] = htole64(FIELD_PREP(URDMA_SQE1_IMM, (uint64_t)imm));
}

static void urdma_wqe_atomic(struct urdma_qp *qp, uint64_t swap_add, uint64_t compare)
{
	qp->sq.wqe[6] = htole64(FIELD_PREP(URDMA_SQE6_SWAP_ADD, swap_add));
	qp->sq.wqe[7] = htole64(FIELD_PREP(URDMA_SQE7_COMPARE, compare));
}

static bool urdma_is_atomic(uint32_t opcode)
{
	return opcode == URDMA_WR_ATOMIC_CS || opcode == URDMA_WR_ATOMIC_FA;
}

static int urdma_wqe_sges(struct urdma_qp *qp, const struct ibv_sge *sge, size_t num)
{
	struct urdma_context *ctx = to_uctx(qp->vqp.qp.context);
	struct urdma_wq *sq = &qp->sq;
	uint64_t length;
	uint32_t n;

	/* An ATOMIC has its operands where a second element would be. */
	if (num > (urdma_is_atomic(sq->opcode) ? 1 : sq->max_sge))
		return EINVAL;
	n = urdma_put_sges(sq->wqe + URDMA_SQE_DATA_OFFSET / 8, sge, num, &length);
	if (length > 1ULL << ctx->log_max_msg)
		return EINVAL;
	sq->wqe[0] |= htole64(FIELD_PREP(URDMA_SQE0_NUM_SGE, (uint64_t)n));
	sq->wqe[3] |= htole64(FIELD_PREP(URDMA_SQE3_LENGTH, length));
	return 0;
}

static int urdma_wqe_inline(struct urdma_qp *qp, const struct ibv_data_buf *buf, size_t num)
{
	struct urdma_wq *sq = &qp->sq;
	uint8_t *to = (uint8_t *)sq->wqe + URDMA_SQE_DATA_OFFSET;
	uint64_t n = 0;
	size_t i;

	if (sq->opcode == URDMA_WR_READ || urdma_is_atomic(sq->opcode))
		return EINVAL;
	for (i = 0; i < num; i++) {
		if (buf[i].length > qp->max_inline - n)
			return ENOMEM;
		memcpy(to + n, buf[i].addr, buf[i].length);
		n += buf[i].length;
	}
	sq->wqe[0] |= htole64(URDMA_SQE0_INLINE);
	sq->wqe[3] |= htole64(FIELD_PREP(URDMA_SQE3_LENGTH, n));
	return 0;
}

/* Rights of verbs and of the NIC are the same bits. */
static int urdma_wqe_bind(struct urdma_qp *qp, const struct ibv_mw *mw, uint32_t rkey,
			  const struct ibv_mw_bind_info *bind)
{
	/* Local rights are those of the region: they are allowed here and mean nothing. */
	const unsigned int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	__le64 *w = qp->sq.wqe;

	if (mw->type != IBV_MW_TYPE_2)
		return EINVAL;
	if (bind->mw_access_flags & ~rights)
		return EOPNOTSUPP;
	if (bind->length && (!bind->mr || bind->mr->pd != mw->pd || mw->pd != qp->vqp.qp.pd))
		return EPERM;
	urdma_wqe_imm(qp, bind->mr ? bind->mr->lkey : 0);
	urdma_wqe_remote(qp, rkey, bind->addr);
	w[4] = htole64(FIELD_PREP(URDMA_SQE4_MR_LENGTH, bind->length));
	w[5] = 0;
	w[6] = htole64(FIELD_PREP(URDMA_SQE6_MR_ACCESS, (uint64_t)bind->mw_access_flags));
	w[7] = 0;
	return 0;
}

static int urdma_send_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_SEND:
		return URDMA_WR_SEND;
	case IBV_WR_SEND_WITH_IMM:
		return URDMA_WR_SEND_IMM;
	case IBV_WR_SEND_WITH_INV:
		return URDMA_WR_SEND_INV;
	case IBV_WR_RDMA_WRITE:
		return URDMA_WR_WRITE;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return URDMA_WR_WRITE_IMM;
	case IBV_WR_RDMA_READ:
		return URDMA_WR_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return URDMA_WR_ATOMIC_CS;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return URDMA_WR_ATOMIC_FA;
	case IBV_WR_LOCAL_INV:
		return URDMA_WR_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return URDMA_WR_BIND_MW;
	default:
		return -1;
	}
}

static int urdma_put_data(struct urdma_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buf[URDMA_MAX_SGE];
	int i;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return urdma_wqe_sges(qp, wr->sg_list, wr->num_sge);
	for (i = 0; i < wr->num_sge; i++) {
		buf[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
		buf[i].length = wr->sg_list[i].length;
	}
	return urdma_wqe_inline(qp, buf, wr->num_sge);
}

static int urdma_post_one_send(struct urdma_qp *qp, const struct ibv_send_wr *wr)
{
	uint16_t head = qp->sq.head;
	int opcode = urdma_send_opcode(wr->opcode);
	int err;

	if (opcode < 0)
		return EOPNOTSUPP;
	err = urdma_wqe_begin(qp, opcode, wr->wr_id, wr->send_flags);
	if (err)
		return err;

	switch (opcode) {
	case URDMA_WR_SEND_IMM:
		urdma_wqe_imm(qp, imm_to_hw(wr->imm_data));
		break;
	case URDMA_WR_WRITE_IMM:
		urdma_wqe_imm(qp, imm_to_hw(wr->imm_data));
		urdma_wqe_remote(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case URDMA_WR_SEND_INV:
	case URDMA_WR_LOCAL_INV:
		urdma_wqe_imm(qp, wr->invalidate_rkey);
		break;
	case URDMA_WR_WRITE:
	case URDMA_WR_READ:
		urdma_wqe_remote(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case URDMA_WR_ATOMIC_CS:
		urdma_wqe_remote(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr);
		urdma_wqe_atomic(qp, wr->wr.atomic.swap, wr->wr.atomic.compare_add);
		break;
	case URDMA_WR_ATOMIC_FA:
		urdma_wqe_remote(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr);
		urdma_wqe_atomic(qp, wr->wr.atomic.compare_add, 0);
		break;
	default:
		break;
	}

	if (opcode == URDMA_WR_BIND_MW)
		err = urdma_wqe_bind(qp, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	else if (opcode != URDMA_WR_LOCAL_INV)
		err = urdma_put_data(qp, wr);
	if (err)
		qp->sq.head = head;
	return err;
}

/* With the SQ locked: tells the NIC if WQEs were added since first. */
static void urdma_ring_sq(struct urdma_qp *qp, uint16_t first)
{
	if (qp->sq.head == first)
		return;
	/* WQEs, and the data they point to, before the doorbell */
	udma_to_device_barrier();
	urdma_ring_doorbell(to_uctx(qp->vqp.qp.context), URDMA_DB_SQ, qp->qpn, 0, qp->sq.head);
}

/* Posting in ERR is right: what is posted is flushed. */
static bool urdma_may_send(const struct ibv_qp *qp)
{
	return qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT && qp->state != IBV_QPS_RTR;
}

int urdma_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct urdma_qp *qp = to_uqp(ibqp);
	uint16_t first;
	int err = 0;

	if (!urdma_may_send(ibqp)) {
		*bad = wr;
		return EINVAL;
	}

	pthread_spin_lock(&qp->sq.lock);
	first = qp->sq.head;
	for (; wr; wr = wr->next) {
		err = urdma_post_one_send(qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	urdma_ring_sq(qp, first);
	pthread_spin_unlock(&qp->sq.lock);
	return err;
}

/* ---- extended verbs: WQEs one by one between start and complete ------------------------------ */

static struct urdma_qp *urdma_of_ex(struct ibv_qp_ex *qpx)
{
	return container_of(qpx, struct urdma_qp, vqp.qp_ex);
}

static void urdma_wr_start(struct ibv_qp_ex *qpx)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	pthread_spin_lock(&qp->sq.lock);
	qp->batch = qp->sq.head;
	qp->batch_err = urdma_may_send(&qp->vqp.qp) ? 0 : EINVAL;
}

static int urdma_wr_complete(struct ibv_qp_ex *qpx)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);
	int err = qp->batch_err;

	/* All of them or none. */
	if (err)
		qp->sq.head = qp->batch;
	else
		urdma_ring_sq(qp, qp->batch);
	pthread_spin_unlock(&qp->sq.lock);
	return err;
}

static void urdma_wr_abort(struct ibv_qp_ex *qpx)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	qp->sq.head = qp->batch;
	pthread_spin_unlock(&qp->sq.lock);
}

/* After the first error of a batch nothing more is written. */
static bool urdma_wr_begin(struct urdma_qp *qp, uint32_t opcode)
{
	if (!qp->batch_err)
		qp->batch_err =
			urdma_wqe_begin(qp, opcode, qp->vqp.qp_ex.wr_id, qp->vqp.qp_ex.wr_flags);
	return !qp->batch_err;
}

static void urdma_wr_send(struct ibv_qp_ex *qpx)
{
	urdma_wr_begin(urdma_of_ex(qpx), URDMA_WR_SEND);
}

static void urdma_wr_send_imm(struct ibv_qp_ex *qpx, __be32 imm)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_SEND_IMM))
		urdma_wqe_imm(qp, imm_to_hw(imm));
}

static void urdma_wr_send_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_SEND_INV))
		urdma_wqe_imm(qp, rkey);
}

static void urdma_wr_rdma_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_WRITE))
		urdma_wqe_remote(qp, rkey, addr);
}

static void urdma_wr_rdma_write_imm(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr, __be32 imm)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_WRITE_IMM)) {
		urdma_wqe_remote(qp, rkey, addr);
		urdma_wqe_imm(qp, imm_to_hw(imm));
	}
}

static void urdma_wr_rdma_read(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_READ))
		urdma_wqe_remote(qp, rkey, addr);
}

static void urdma_wr_atomic_cmp_swp(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr,
				    uint64_t compare, uint64_t swap)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_ATOMIC_CS)) {
		urdma_wqe_remote(qp, rkey, addr);
		urdma_wqe_atomic(qp, swap, compare);
	}
}

static void urdma_wr_atomic_fetch_add(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr,
				      uint64_t add)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_ATOMIC_FA)) {
		urdma_wqe_remote(qp, rkey, addr);
		urdma_wqe_atomic(qp, add, 0);
	}
}

static void urdma_wr_local_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_LOCAL_INV))
		urdma_wqe_imm(qp, rkey);
}

static void urdma_wr_bind_mw(struct ibv_qp_ex *qpx, struct ibv_mw *mw, uint32_t rkey,
			     const struct ibv_mw_bind_info *bind)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (urdma_wr_begin(qp, URDMA_WR_BIND_MW))
		qp->batch_err = urdma_wqe_bind(qp, mw, rkey, bind);
}

static void urdma_wr_set_sge_list(struct ibv_qp_ex *qpx, size_t num, const struct ibv_sge *sge)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (!qp->batch_err)
		qp->batch_err = urdma_wqe_sges(qp, sge, num);
}

static void urdma_wr_set_sge(struct ibv_qp_ex *qpx, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	urdma_wr_set_sge_list(qpx, 1, &sge);
}

static void urdma_wr_set_inline_data_list(struct ibv_qp_ex *qpx, size_t num,
					  const struct ibv_data_buf *buf)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	if (!qp->batch_err)
		qp->batch_err = urdma_wqe_inline(qp, buf, num);
}

static void urdma_wr_set_inline_data(struct ibv_qp_ex *qpx, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	urdma_wr_set_inline_data_list(qpx, 1, &buf);
}

void urdma_set_wr_ops(struct urdma_qp *qp)
{
	struct ibv_qp_ex *qpx = &qp->vqp.qp_ex;

	qpx->wr_start = urdma_wr_start;
	qpx->wr_complete = urdma_wr_complete;
	qpx->wr_abort = urdma_wr_abort;
	qpx->wr_send = urdma_wr_send;
	qpx->wr_send_imm = urdma_wr_send_imm;
	qpx->wr_send_inv = urdma_wr_send_inv;
	qpx->wr_rdma_write = urdma_wr_rdma_write;
	qpx->wr_rdma_write_imm = urdma_wr_rdma_write_imm;
	qpx->wr_rdma_read = urdma_wr_rdma_read;
	qpx->wr_atomic_cmp_swp = urdma_wr_atomic_cmp_swp;
	qpx->wr_atomic_fetch_add = urdma_wr_atomic_fetch_add;
	qpx->wr_local_inv = urdma_wr_local_inv;
	qpx->wr_bind_mw = urdma_wr_bind_mw;
	qpx->wr_set_sge = urdma_wr_set_sge;
	qpx->wr_set_sge_list = urdma_wr_set_sge_list;
	qpx->wr_set_inline_data = urdma_wr_set_inline_data;
	qpx->wr_set_inline_data_list = urdma_wr_set_inline_data_list;
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
	case URDMA_WC_MW_BIND_ERR:
		return IBV_WC_MW_BIND_ERR;
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

/* With the CQ locked: the next CQE of a QP that is still there. */
static bool urdma_next_cqe(struct urdma_cq *cq, struct ibv_wc *wc, uint64_t *cycles)
{
	struct urdma_context *ctx = to_uctx(cq->vcq.cq.context);
	struct urdma_cqe *cqe;
	bool took;

	do {
		cqe = urdma_cqe_at(cq, cq->ci);
		if (!cqe)
			return false;
		/* the phase bit before the rest of the CQE and the data that it announces */
		udma_from_device_barrier();
		took = urdma_take_cqe(ctx, cqe, wc);
		if (cycles)
			*cycles = FIELD_GET(URDMA_CQE3_CYCLES, le64toh(cqe->w[3]));
		cq->ci++;
	} while (!took);
	return true;
}

/* With the CQ locked: tells the NIC what was consumed, now and then. */
static void urdma_tell_ci(struct urdma_cq *cq)
{
	if (!((cq->ci - cq->told) >> (cq->log - 2)))
		return;
	/* Reads of CQEs end before the NIC may write there again. */
	udma_to_device_barrier();
	urdma_ring_doorbell(to_uctx(cq->vcq.cq.context), URDMA_DB_CQ, cq->cqn, URDMA_DB_ARM_NONE,
			    cq->ci);
	cq->told = cq->ci;
}

int urdma_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct urdma_cq *cq = to_ucq(ibcq);
	int got = 0;

	pthread_spin_lock(&cq->lock);
	while (got < n && urdma_next_cqe(cq, &wc[got], NULL))
		got++;
	urdma_tell_ci(cq);
	pthread_spin_unlock(&cq->lock);
	return got;
}

/* ---- extended polling: the CQ stays locked from start to end ----------------------------------
 */

static struct urdma_cq *urdma_of_cq_ex(struct ibv_cq_ex *cqx)
{
	return container_of(cqx, struct urdma_cq, vcq.cq_ex);
}

static int urdma_next_poll(struct ibv_cq_ex *cqx)
{
	struct urdma_cq *cq = urdma_of_cq_ex(cqx);

	if (!urdma_next_cqe(cq, &cq->wc, &cq->cycles))
		return ENOENT;
	cqx->wr_id = cq->wc.wr_id;
	cqx->status = cq->wc.status;
	return 0;
}

static void urdma_end_poll(struct ibv_cq_ex *cqx)
{
	struct urdma_cq *cq = urdma_of_cq_ex(cqx);

	urdma_tell_ci(cq);
	pthread_spin_unlock(&cq->lock);
}

static int urdma_start_poll(struct ibv_cq_ex *cqx, struct ibv_poll_cq_attr *attr)
{
	struct urdma_cq *cq = urdma_of_cq_ex(cqx);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	pthread_spin_lock(&cq->lock);
	err = urdma_next_poll(cqx);
	/* Without a completion there is no end_poll. */
	if (err)
		urdma_end_poll(cqx);
	return err;
}

static enum ibv_wc_opcode urdma_read_opcode(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.opcode;
}

static uint32_t urdma_read_vendor_err(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.vendor_err;
}

static uint32_t urdma_read_byte_len(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.byte_len;
}

/* The key that was invalidated shares its place with immediate data. */
static __be32 urdma_read_imm_data(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.imm_data;
}

static uint32_t urdma_read_qp_num(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.qp_num;
}

static uint32_t urdma_read_src_qp(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.src_qp;
}

static unsigned int urdma_read_wc_flags(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.wc_flags;
}

/* RoCE has no LIDs, nor a service level in the packet. */
static uint32_t urdma_read_slid(struct ibv_cq_ex *cqx)
{
	return 0;
}

static uint8_t urdma_read_zero(struct ibv_cq_ex *cqx)
{
	return 0;
}

/* In cycles of the NIC's clock, which query_device_ex names (hca_core_clock). */
static uint64_t urdma_read_completion_ts(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->cycles;
}

void urdma_set_poll_ops(struct urdma_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *cqx = &cq->vcq.cq_ex;

	cqx->start_poll = urdma_start_poll;
	cqx->next_poll = urdma_next_poll;
	cqx->end_poll = urdma_end_poll;
	cqx->read_opcode = urdma_read_opcode;
	cqx->read_vendor_err = urdma_read_vendor_err;
	cqx->read_wc_flags = urdma_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cqx->read_byte_len = urdma_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cqx->read_imm_data = urdma_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cqx->read_qp_num = urdma_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cqx->read_src_qp = urdma_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cqx->read_slid = urdma_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cqx->read_sl = urdma_read_zero;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cqx->read_dlid_path_bits = urdma_read_zero;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cqx->read_completion_ts = urdma_read_completion_ts;
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
