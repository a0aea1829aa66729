// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: posting of sends by the extended verbs, WQE by WQE between ibv_wr_start() and
 * ibv_wr_complete() with the SQ locked. Makes no system call.
 *
 * Each verb builds the WQE of a message without data; ibv_wr_set_*() adds the data. The doorbell is
 * rung only in ibv_wr_complete(), so restoring the head removes the WQEs.
 */
#include "wqe.h"

static struct urdma_qp *urdma_of_ex(struct ibv_qp_ex *qpx)
{
	return container_of(qpx, struct urdma_qp, vqp.qp_ex);
}

static void urdma_wr_start(struct ibv_qp_ex *qpx)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	urdma_lock(&qp->sq.lock);
	qp->sq.batch = qp->sq.head;
	qp->sq.batch_err = urdma_may_send(&qp->vqp.qp) ? 0 : EINVAL;
}

static int urdma_wr_complete(struct ibv_qp_ex *qpx)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);
	struct urdma_wq *sq = &qp->sq;
	int err = sq->batch_err;

	/* All of them or none. */
	if (err)
		sq->head = sq->batch;
	else if (sq->head != sq->batch)
		urdma_ring_wq(sq, sq->head);
	urdma_unlock(&sq->lock);
	return err;
}

static void urdma_wr_abort(struct ibv_qp_ex *qpx)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);

	qp->sq.head = qp->sq.batch;
	urdma_unlock(&qp->sq.lock);
}

/*
 * The WQE for the verb; NULL after the first error of a batch. Operations that the device or the QP
 * type does not support are refused here, not by an error CQE.
 */
static __le64 *urdma_wr_slot(struct urdma_qp *qp, uint32_t opcode)
{
	struct urdma_wq *sq = &qp->sq;

	if (unlikely(sq->batch_err))
		return NULL;
	if (unlikely(!(qp->opcodes >> opcode & 1)))
		sq->batch_err = EOPNOTSUPP;
	else if (unlikely(urdma_wq_is_full(sq, sq->head)))
		sq->batch_err = ENOMEM;
	return unlikely(sq->batch_err) ? NULL : urdma_wq_slot(sq, sq->head & sq->mask);
}

static void urdma_wr_put(struct urdma_qp *qp, __le64 *w, const struct urdma_op *op)
{
	struct urdma_wq *sq = &qp->sq;

	urdma_put_op(w, urdma_sqe0(qp, op->opcode, qp->vqp.qp_ex.wr_flags), op, 0);
	sq->wr_id[sq->head & sq->mask] = qp->vqp.qp_ex.wr_id;
	sq->wqe = w;
	sq->opcode = op->opcode;
	sq->head++;
}

static void urdma_wr_op(struct ibv_qp_ex *qpx, struct urdma_op op)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);
	__le64 *w = urdma_wr_slot(qp, op.opcode);

	if (w)
		urdma_wr_put(qp, w, &op);
}

static void urdma_wr_send(struct ibv_qp_ex *qpx)
{
	urdma_wr_op(qpx, (struct urdma_op){ .opcode = URDMA_WR_SEND });
}

static void urdma_wr_send_imm(struct ibv_qp_ex *qpx, __be32 imm)
{
	urdma_wr_op(qpx, (struct urdma_op){
				 .opcode = URDMA_WR_SEND_IMM,
				 .imm = urdma_imm_to_hw(imm),
			 });
}

static void urdma_wr_send_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	urdma_wr_op(qpx, (struct urdma_op){ .opcode = URDMA_WR_SEND_INV, .imm = rkey });
}

static void urdma_wr_rdma_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr)
{
	urdma_wr_op(qpx, (struct urdma_op){
				 .opcode = URDMA_WR_WRITE,
				 .raddr = addr,
				 .rkey = rkey,
			 });
}

static void urdma_wr_rdma_write_imm(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr, __be32 imm)
{
	urdma_wr_op(qpx, (struct urdma_op){
				 .opcode = URDMA_WR_WRITE_IMM,
				 .imm = urdma_imm_to_hw(imm),
				 .raddr = addr,
				 .rkey = rkey,
			 });
}

static void urdma_wr_rdma_read(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr)
{
	urdma_wr_op(qpx, (struct urdma_op){
				 .opcode = URDMA_WR_READ,
				 .raddr = addr,
				 .rkey = rkey,
			 });
}

static void urdma_wr_atomic(struct urdma_qp *qp, const struct urdma_op *op, uint64_t swap_add,
			    uint64_t compare)
{
	__le64 *w = urdma_wr_slot(qp, op->opcode);

	if (!w)
		return;
	urdma_put_atomic(w, swap_add, compare);
	urdma_wr_put(qp, w, op);
}

static void urdma_wr_atomic_cmp_swp(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr,
				    uint64_t compare, uint64_t swap)
{
	struct urdma_op op = { .opcode = URDMA_WR_ATOMIC_CS, .raddr = addr, .rkey = rkey };

	urdma_wr_atomic(urdma_of_ex(qpx), &op, swap, compare);
}

static void urdma_wr_atomic_fetch_add(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr,
				      uint64_t add)
{
	struct urdma_op op = { .opcode = URDMA_WR_ATOMIC_FA, .raddr = addr, .rkey = rkey };

	urdma_wr_atomic(urdma_of_ex(qpx), &op, add, 0);
}

/* The peer decides whether it supports FLUSH. */
static void urdma_wr_flush(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr, size_t len,
			   uint8_t type, uint8_t level)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);
	struct urdma_op op = {
		.opcode = URDMA_WR_FLUSH,
		.imm = FIELD_PREP(URDMA_SQE1_FLUSH_TYPE, (uint64_t)type) |
		       FIELD_PREP(URDMA_SQE1_FLUSH_LEVEL, (uint64_t)level),
		.raddr = addr,
		.rkey = rkey,
	};
	__le64 *w = urdma_wr_slot(qp, op.opcode);

	if (!w)
		return;
	/* Larger values would be truncated to valid but different ones. */
	if (type > (IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) || level > IBV_FLUSH_MR ||
	    len > UINT32_MAX) {
		qp->sq.batch_err = EINVAL;
		return;
	}
	w[4] = htole64(FIELD_PREP(URDMA_SQE4_FLUSH_LENGTH, (uint64_t)len));
	urdma_wr_put(qp, w, &op);
}

/* The 8 bytes are sent in memory order. */
static void urdma_wr_atomic_write(struct ibv_qp_ex *qpx, uint32_t rkey, uint64_t addr,
				  const void *value)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);
	struct urdma_op op = { .opcode = URDMA_WR_ATOMIC_WRITE, .raddr = addr, .rkey = rkey };
	__le64 *w = urdma_wr_slot(qp, op.opcode);

	if (!w)
		return;
	memcpy(&w[6], value, sizeof(w[6]));
	urdma_wr_put(qp, w, &op);
}

static void urdma_wr_local_inv(struct ibv_qp_ex *qpx, uint32_t rkey)
{
	urdma_wr_op(qpx, (struct urdma_op){ .opcode = URDMA_WR_LOCAL_INV, .imm = rkey });
}

static void urdma_wr_bind_mw(struct ibv_qp_ex *qpx, struct ibv_mw *mw, uint32_t rkey,
			     const struct ibv_mw_bind_info *bind)
{
	struct urdma_qp *qp = urdma_of_ex(qpx);
	struct urdma_op op = { .opcode = URDMA_WR_BIND_MW };
	__le64 *w = urdma_wr_slot(qp, op.opcode);

	if (!w)
		return;
	qp->sq.batch_err = urdma_put_bind(qp, w, &op, mw, rkey, bind);
	if (!qp->sq.batch_err)
		urdma_wr_put(qp, w, &op);
}

/* For an XRC initiator QP. Without this call the WQE names SRQ 0. */
static void urdma_wr_set_xrc_srqn(struct ibv_qp_ex *qpx, uint32_t remote_srqn)
{
	struct urdma_wq *sq = &urdma_of_ex(qpx)->sq;

	if (!sq->batch_err)
		sq->wqe[1] |= urdma_srqn_word(remote_srqn);
}

/* Sets the destination of a datagram. */
static void urdma_wr_set_ud_addr(struct ibv_qp_ex *qpx, struct ibv_ah *ah, uint32_t remote_qpn,
				 uint32_t remote_qkey)
{
	struct urdma_wq *sq = &urdma_of_ex(qpx)->sq;

	if (sq->batch_err)
		return;
	sq->wqe[2] = htole64(FIELD_PREP(URDMA_SQE2_DEST_QPN, (uint64_t)remote_qpn));
	sq->wqe[3] |= htole64(FIELD_PREP(URDMA_SQE3_QKEY, (uint64_t)remote_qkey));
	urdma_put_av(sq->wqe, ah);
}

/* The data of the WQE begin SHIFT words after SQE_DATA_OFFSET. */
static inline void urdma_set_sge_list(struct urdma_qp *qp, uint32_t shift, size_t num,
				      const struct ibv_sge *sge)
{
	struct urdma_wq *sq = &qp->sq;
	uint64_t length;
	uint32_t n;

	if (sq->batch_err)
		return;
	if (num > (urdma_is_atomic(sq->opcode) ? 1 : sq->max_sge)) {
		sq->batch_err = EINVAL;
		return;
	}
	n = urdma_put_sges(sq->wqe + shift + URDMA_SQE_DATA_OFFSET / 8, sge, num, &length);
	if (length > qp->max_msg) {
		sq->batch_err = EINVAL;
		return;
	}
	sq->wqe[0] |= htole64(FIELD_PREP(URDMA_SQE0_NUM_SGE, (uint64_t)n));
	sq->wqe[3] |= htole64(FIELD_PREP(URDMA_SQE3_LENGTH, length));
}

static void urdma_wr_set_sge_list(struct ibv_qp_ex *qpx, size_t num, const struct ibv_sge *sge)
{
	urdma_set_sge_list(urdma_of_ex(qpx), 0, num, sge);
}

static void urdma_wr_ud_set_sge_list(struct ibv_qp_ex *qpx, size_t num, const struct ibv_sge *sge)
{
	urdma_set_sge_list(urdma_of_ex(qpx), URDMA_UD_SHIFT, num, sge);
}

static void urdma_wr_set_sge(struct ibv_qp_ex *qpx, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	urdma_wr_set_sge_list(qpx, 1, &sge);
}

static void urdma_wr_ud_set_sge(struct ibv_qp_ex *qpx, uint32_t lkey, uint64_t addr,
				uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	urdma_wr_ud_set_sge_list(qpx, 1, &sge);
}

static inline void urdma_set_inline_data_list(struct urdma_qp *qp, uint32_t shift, size_t num,
					      const struct ibv_data_buf *buf)
{
	struct urdma_wq *sq = &qp->sq;
	uint64_t length = 0;
	size_t i;

	if (sq->batch_err)
		return;
	if (!urdma_may_inline(sq->opcode))
		sq->batch_err = EINVAL;
	for (i = 0; i < num && !sq->batch_err; i++)
		sq->batch_err =
			urdma_put_inline(qp, sq->wqe + shift, buf[i].addr, buf[i].length, &length);
	sq->wqe[0] |= htole64(URDMA_SQE0_INLINE);
	sq->wqe[3] |= htole64(FIELD_PREP(URDMA_SQE3_LENGTH, length));
}

static void urdma_wr_set_inline_data_list(struct ibv_qp_ex *qpx, size_t num,
					  const struct ibv_data_buf *buf)
{
	urdma_set_inline_data_list(urdma_of_ex(qpx), 0, num, buf);
}

static void urdma_wr_ud_set_inline_data_list(struct ibv_qp_ex *qpx, size_t num,
					     const struct ibv_data_buf *buf)
{
	urdma_set_inline_data_list(urdma_of_ex(qpx), URDMA_UD_SHIFT, num, buf);
}

static void urdma_wr_set_inline_data(struct ibv_qp_ex *qpx, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	urdma_wr_set_inline_data_list(qpx, 1, &buf);
}

static void urdma_wr_ud_set_inline_data(struct ibv_qp_ex *qpx, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	urdma_wr_ud_set_inline_data_list(qpx, 1, &buf);
}

void urdma_set_wr_ops(struct urdma_qp *qp)
{
	struct ibv_qp_ex *qpx = &qp->vqp.qp_ex;

	qpx->wr_start = urdma_wr_start;
	qpx->wr_complete = urdma_wr_complete;
	qpx->wr_abort = urdma_wr_abort;
	qpx->wr_send = urdma_wr_send;
	qpx->wr_send_imm = urdma_wr_send_imm;
	if (qp->vqp.qp.qp_type == IBV_QPT_UD) {
		qpx->wr_set_ud_addr = urdma_wr_set_ud_addr;
		qpx->wr_set_sge = urdma_wr_ud_set_sge;
		qpx->wr_set_sge_list = urdma_wr_ud_set_sge_list;
		qpx->wr_set_inline_data = urdma_wr_ud_set_inline_data;
		qpx->wr_set_inline_data_list = urdma_wr_ud_set_inline_data_list;
		return;
	}
	if (qp->vqp.qp.qp_type == IBV_QPT_XRC_SEND)
		qpx->wr_set_xrc_srqn = urdma_wr_set_xrc_srqn;
	qpx->wr_send_inv = urdma_wr_send_inv;
	qpx->wr_rdma_write = urdma_wr_rdma_write;
	qpx->wr_rdma_write_imm = urdma_wr_rdma_write_imm;
	qpx->wr_rdma_read = urdma_wr_rdma_read;
	qpx->wr_atomic_cmp_swp = urdma_wr_atomic_cmp_swp;
	qpx->wr_atomic_fetch_add = urdma_wr_atomic_fetch_add;
	qpx->wr_flush = urdma_wr_flush;
	qpx->wr_atomic_write = urdma_wr_atomic_write;
	qpx->wr_local_inv = urdma_wr_local_inv;
	qpx->wr_bind_mw = urdma_wr_bind_mw;
	qpx->wr_set_sge = urdma_wr_set_sge;
	qpx->wr_set_sge_list = urdma_wr_set_sge_list;
	qpx->wr_set_inline_data = urdma_wr_set_inline_data;
	qpx->wr_set_inline_data_list = urdma_wr_set_inline_data_list;
}
