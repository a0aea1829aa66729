// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: posting to the work queues of kernel QPs. Processes post without the driver.
 *
 * Each WQE is written into its slot. After the last one of a list, the doorbell sends the producer
 * index to the NIC. In ERR posting works the same, and the NIC flushes the WQEs in order. Draining
 * relies on this.
 */
#include <linux/slab.h>

#include "urdma.h"

/* Smallest work queue: a few extra slots cost little. */
#define URDMA_MIN_WQ_LOG 4

/* Does a ring hold wr WQEs of at least bytes each? */
int urdma_wq_check(u8 log_entries, u8 log_max, u8 log_stride, u32 wr, u32 bytes)
{
	if (log_entries > log_max || log_stride < URDMA_MIN_WQE_LOG ||
	    log_stride > URDMA_MAX_WQE_LOG)
		return -EINVAL;
	return wr > 1U << log_entries || bytes > 1U << log_stride ? -EINVAL : 0;
}

/*
 * A queue of at least wr WQEs of at least wqe_bytes each. The device allows both. After the WQEs
 * there is room for "more" bytes per WQE.
 */
int urdma_wq_init(struct urdma_dev *dev, struct urdma_wq *wq, struct urdma_mem *mem, u32 wr,
		  u32 wqe_bytes, u32 more)
{
	size_t bytes;
	int err;

	spin_lock_init(&wq->lock);
	INIT_LIST_HEAD(&wq->list);
	wq->log = max_t(u8, order_base_2(wr), URDMA_MIN_WQ_LOG);
	wq->log_stride = max_t(u8, order_base_2(wqe_bytes), URDMA_MIN_WQE_LOG);
	wq->wr_id = kvcalloc(1U << wq->log, sizeof(*wq->wr_id), GFP_KERNEL);
	if (!wq->wr_id)
		return -ENOMEM;
	bytes = ((size_t)1 << (wq->log + wq->log_stride)) + ((size_t)more << wq->log);
	err = urdma_mem_alloc(dev, mem, bytes);
	if (err) {
		kvfree(wq->wr_id);
		return err;
	}
	wq->ring = mem->buf;
	return 0;
}

/* Number of SGEs that fit a receive WQE. */
u32 urdma_rq_max_sge(struct urdma_dev *dev, const struct urdma_wq *wq)
{
	u32 room = (1U << wq->log_stride) - URDMA_RQE_DATA_OFFSET;

	return min(room / URDMA_SGE_SIZE, dev->caps.max_rq_sge);
}

void urdma_wq_uninit(struct urdma_dev *dev, struct urdma_wq *wq, struct urdma_mem *mem)
{
	urdma_mem_free(dev, mem);
	kvfree(wq->wr_id);
}

/* The QP is in RESET: the NIC has dropped all posted WQEs and restarts at index 0. */
void urdma_wq_reset(struct urdma_wq *wq)
{
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	wq->head = 0;
	wq->tail = 0;
	spin_unlock_irqrestore(&wq->lock, flags);
}

/* Are there posted WQEs that have not completed? With the CQ locked, so the tail is stable. */
bool urdma_wq_pending(struct urdma_wq *wq)
{
	bool pending;

	/*
	 * With the lock: a caller that arms the CQ either sees the posted WQEs here, or has armed
	 * the CQ before urdma_wq_ring() queues the work that checks it.
	 */
	spin_lock(&wq->lock);
	pending = wq->tail != wq->head;
	spin_unlock(&wq->lock);
	return pending;
}

static bool urdma_wq_is_full(const struct urdma_wq *wq)
{
	/* Acquire: a slot must not be written before its completion has been read. */
	u16 tail = smp_load_acquire(&wq->tail);

	return (u16)(wq->head - tail) >> wq->log != 0;
}

static __le64 *urdma_wq_slot(const struct urdma_wq *wq, u16 index)
{
	u32 slot = index & ((1U << wq->log) - 1);

	return (__le64 *)(wq->ring + ((size_t)slot << wq->log_stride));
}

static void urdma_wq_posted(struct urdma_wq *wq, u64 wr_id)
{
	wq->wr_id[wq->head & ((1U << wq->log) - 1)] = wr_id;
	wq->head++;
}

/*
 * With the queue locked: rings the doorbell for the WQEs posted from index first on. A dead NIC
 * completes nothing, so the work calls the consumer, whose polling flushes. The lock makes sure
 * that either this sees the flag, or the work queued when the flag is set sees the new WQEs.
 */
static void urdma_wq_ring(struct urdma_dev *dev, struct urdma_qp *qp, struct urdma_wq *wq,
			  u16 first, u32 which)
{
	if (wq->head == first)
		return;
	urdma_ring_doorbell(dev, which, qp->ibqp.qp_num, 0, wq->head);
	if (urdma_is_dead(dev))
		queue_work(dev->wq, &dev->notify_work);
}

/* Skips empty SGEs. Returns the number written. */
static u32 urdma_put_sges(__le64 *w, const struct ib_sge *sge, int num, u64 *total)
{
	u32 n = 0;
	int i;

	*total = 0;
	for (i = 0; i < num; i++) {
		if (!sge[i].length)
			continue;
		w[2 * n] = cpu_to_le64(sge[i].addr);
		w[2 * n + 1] = cpu_to_le64(FIELD_PREP(URDMA_SGE1_LENGTH, sge[i].length) |
					   FIELD_PREP(URDMA_SGE1_LKEY, sge[i].lkey));
		*total += sge[i].length;
		n++;
	}
	return n;
}

/* Inline data are given by virtual address. */
static int urdma_put_inline(u8 *to, u32 room, const struct ib_sge *sge, int num, u64 *total)
{
	u32 n = 0;
	int i;

	for (i = 0; i < num; i++) {
		if (sge[i].length > room - n)
			return -EINVAL;
		memcpy(to + n, (void *)(uintptr_t)sge[i].addr, sge[i].length);
		n += sge[i].length;
	}
	*total = n;
	return 0;
}

/* Data of SEND, WRITE, READ: SGEs or inline data. */
static int urdma_put_data(struct urdma_dev *dev, struct urdma_qp *qp, const struct ib_send_wr *wr,
			  __le64 *w, u64 *w0, u64 *length)
{
	__le64 *data = w + urdma_sqe_data(qp->type) / 8;
	int err;

	if (wr->num_sge < 0 || (u32)wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	if (wr->send_flags & IB_SEND_INLINE) {
		if (wr->opcode == IB_WR_RDMA_READ)
			return -EINVAL;
		err = urdma_put_inline((u8 *)data, qp->cap.max_inline_data, wr->sg_list,
				       wr->num_sge, length);
		if (err)
			return err;
		*w0 |= URDMA_SQE0_INLINE;
		return 0;
	}
	*w0 |= FIELD_PREP(URDMA_SQE0_NUM_SGE,
			  urdma_put_sges(data, wr->sg_list, wr->num_sge, length));
	return *length > 1ULL << dev->caps.log_max_msg ? -EINVAL : 0;
}

static int urdma_put_atomic(const struct ib_atomic_wr *wr, __le64 *w, u64 *w0)
{
	u64 length;

	if (wr->wr.num_sge != 1 || wr->wr.sg_list[0].length != sizeof(u64) ||
	    wr->wr.send_flags & IB_SEND_INLINE)
		return -EINVAL;
	*w0 |= FIELD_PREP(URDMA_SQE0_NUM_SGE, urdma_put_sges(w + URDMA_SQE_DATA_OFFSET / 8,
							     wr->wr.sg_list, 1, &length));
	if (wr->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP) {
		w[6] = cpu_to_le64(FIELD_PREP(URDMA_SQE6_SWAP_ADD, wr->swap));
		w[7] = cpu_to_le64(FIELD_PREP(URDMA_SQE7_COMPARE, wr->compare_add));
	} else {
		w[6] = cpu_to_le64(FIELD_PREP(URDMA_SQE6_SWAP_ADD, wr->compare_add));
		w[7] = 0;
	}
	return 0;
}

static int urdma_put_reg_mr(struct urdma_qp *qp, const struct ib_reg_wr *wr, __le64 *w)
{
	struct urdma_mr *mr = to_umr(wr->mr);

	/* The key has the region's index; the consumer chooses the variant. */
	if (!mr->page || !mr->num_pages || (wr->key ^ mr->ibmr.lkey) >> 8 ||
	    wr->mr->pd != qp->ibqp.pd)
		return -EINVAL;
	if (!urdma_access_ok(to_udev(qp->ibqp.device), wr->access))
		return -EOPNOTSUPP;
	w[4] = cpu_to_le64(FIELD_PREP(URDMA_SQE4_MR_LENGTH, wr->mr->length));
	w[5] = cpu_to_le64(FIELD_PREP(URDMA_SQE5_MR_ADDR, mr->page_dma));
	w[6] = cpu_to_le64(FIELD_PREP(URDMA_SQE6_MR_ACCESS, urdma_access(wr->access)) |
			   FIELD_PREP(URDMA_SQE6_MR_ZERO_BASED, !!(wr->access & IB_ZERO_BASED)) |
			   FIELD_PREP(URDMA_SQE6_MR_LEVELS, 1) |
			   FIELD_PREP(URDMA_SQE6_MR_PAGE_SHIFT, ilog2(wr->mr->page_size)));
	return 0;
}

/* Does the QP type support an opcode of the NIC? For RC the feature bits decide. */
static bool urdma_type_has_opcode(const struct urdma_qp *qp, int hw)
{
	u32 opcodes = BIT(URDMA_WR_SEND) | BIT(URDMA_WR_SEND_IMM);

	switch (qp->type) {
	case URDMA_QPT_RC:
		return true;
	case URDMA_QPT_UC:
		opcodes |= BIT(URDMA_WR_WRITE) | BIT(URDMA_WR_WRITE_IMM);
		break;
	default: /* UD */
		/* ib_drain_sq() posts a WRITE to a QP of any type; in ERR the NIC flushes it. */
		if (READ_ONCE(qp->state) == IB_QPS_ERR)
			opcodes |= BIT(URDMA_WR_WRITE);
		break;
	}
	return BIT(hw) & opcodes;
}

/* The NIC's opcode, if it has the feature; others are refused here, not by an error CQE. */
static int urdma_send_opcode(const struct urdma_caps *caps, const struct urdma_qp *qp,
			     enum ib_wr_opcode opcode)
{
	u64 feature;
	int hw;

	switch (opcode) {
	case IB_WR_SEND:
		feature = URDMA_RF_FEAT_RC_SEND;
		hw = URDMA_WR_SEND;
		break;
	case IB_WR_SEND_WITH_IMM:
		feature = URDMA_RF_FEAT_RC_SEND;
		hw = URDMA_WR_SEND_IMM;
		break;
	case IB_WR_SEND_WITH_INV:
		feature = URDMA_RF_FEAT_MEM_MGT;
		hw = URDMA_WR_SEND_INV;
		break;
	case IB_WR_RDMA_WRITE:
		feature = URDMA_RF_FEAT_RC_WRITE;
		hw = URDMA_WR_WRITE;
		break;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		feature = URDMA_RF_FEAT_RC_WRITE;
		hw = URDMA_WR_WRITE_IMM;
		break;
	case IB_WR_RDMA_READ:
		feature = URDMA_RF_FEAT_RC_READ;
		hw = URDMA_WR_READ;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		feature = URDMA_RF_FEAT_RC_ATOMIC;
		hw = URDMA_WR_ATOMIC_CS;
		break;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		feature = URDMA_RF_FEAT_RC_ATOMIC;
		hw = URDMA_WR_ATOMIC_FA;
		break;
	case IB_WR_LOCAL_INV:
		feature = URDMA_RF_FEAT_MEM_MGT;
		hw = URDMA_WR_LOCAL_INV;
		break;
	case IB_WR_REG_MR:
		feature = URDMA_RF_FEAT_MEM_MGT;
		hw = URDMA_WR_REG_MR;
		break;
	default:
		return -EOPNOTSUPP;
	}
	return caps->features & feature && urdma_type_has_opcode(qp, hw) ? hw : -EOPNOTSUPP;
}

/* The destination of a datagram. Returns the QP number in raddr and the Q_Key in rkey. */
static void urdma_put_dest(const struct ib_ud_wr *wr, __le64 *w, u64 *raddr, u32 *rkey)
{
	const struct urdma_ah *ah = to_uah(wr->ah);

	*raddr = FIELD_PREP(URDMA_SQE2_DEST_QPN, wr->remote_qpn);
	*rkey = wr->remote_qkey;
	/* Bytes 64 to 95 have been zero since the ring was allocated. */
	memcpy(w + 4, ah->av, sizeof(ah->av));
}

static int urdma_post_one_send(struct urdma_dev *dev, struct urdma_qp *qp,
			       const struct ib_send_wr *wr)
{
	u64 w0, imm = 0, raddr = 0, length = 0;
	struct urdma_wq *sq = &qp->sq;
	int opcode, err = 0;
	u32 rkey = 0;
	__le64 *w;

	opcode = urdma_send_opcode(&dev->caps, qp, wr->opcode);
	if (opcode < 0)
		return opcode;
	if (urdma_wq_is_full(sq))
		return -ENOMEM;

	w = urdma_wq_slot(sq, sq->head);
	w0 = FIELD_PREP(URDMA_SQE0_OPCODE, opcode);
	if (qp->sig_all || wr->send_flags & IB_SEND_SIGNALED)
		w0 |= URDMA_SQE0_SIGNALED;
	if (wr->send_flags & IB_SEND_SOLICITED)
		w0 |= URDMA_SQE0_SOLICITED;
	if (wr->send_flags & IB_SEND_FENCE)
		w0 |= URDMA_SQE0_FENCE;
	if (qp->type == URDMA_QPT_UD && opcode != URDMA_WR_WRITE)
		urdma_put_dest(ud_wr(wr), w, &raddr, &rkey);

	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
		imm = urdma_imm_to_hw(wr->ex.imm_data);
		err = urdma_put_data(dev, qp, wr, w, &w0, &length);
		break;
	case IB_WR_SEND_WITH_INV:
		imm = wr->ex.invalidate_rkey;
		err = urdma_put_data(dev, qp, wr, w, &w0, &length);
		break;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		imm = urdma_imm_to_hw(wr->ex.imm_data);
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
		raddr = rdma_wr(wr)->remote_addr;
		rkey = rdma_wr(wr)->rkey;
		err = urdma_put_data(dev, qp, wr, w, &w0, &length);
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		raddr = atomic_wr(wr)->remote_addr;
		rkey = atomic_wr(wr)->rkey;
		length = sizeof(u64);
		err = urdma_put_atomic(atomic_wr(wr), w, &w0);
		break;
	case IB_WR_LOCAL_INV:
		imm = wr->ex.invalidate_rkey;
		break;
	case IB_WR_REG_MR:
		raddr = reg_wr(wr)->mr->iova;
		rkey = reg_wr(wr)->key;
		err = urdma_put_reg_mr(qp, reg_wr(wr), w);
		break;
	default: /* SEND */
		err = urdma_put_data(dev, qp, wr, w, &w0, &length);
		break;
	}
	if (err)
		return err;

	w[0] = cpu_to_le64(w0);
	w[1] = cpu_to_le64(FIELD_PREP(URDMA_SQE1_IMM, imm));
	w[2] = cpu_to_le64(FIELD_PREP(URDMA_SQE2_RADDR, raddr));
	w[3] = cpu_to_le64(FIELD_PREP(URDMA_SQE3_RKEY, rkey) |
			   FIELD_PREP(URDMA_SQE3_LENGTH, length));
	urdma_wq_posted(sq, wr->wr_id);
	return 0;
}

int urdma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct urdma_dev *dev = to_udev(ibqp->device);
	struct urdma_qp *qp = to_uqp(ibqp);
	enum ib_qp_state state = READ_ONCE(qp->state);
	unsigned long flags;
	int err = 0;
	u16 first;

	/* A process may call this too, through uverbs, but the kernel does not map its rings. */
	if (!qp->kernel || state == IB_QPS_RESET || state == IB_QPS_INIT || state == IB_QPS_RTR) {
		*bad = wr;
		return -EINVAL;
	}

	spin_lock_irqsave(&qp->sq.lock, flags);
	first = qp->sq.head;
	for (; wr; wr = wr->next) {
		err = urdma_post_one_send(dev, qp, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	urdma_wq_ring(dev, qp, &qp->sq, first, URDMA_DB_SQ);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	return err;
}

static int urdma_put_recv(const struct urdma_wq *rq, __le64 *w, const struct ib_recv_wr *wr)
{
	u64 length;
	u32 num;

	if (wr->num_sge < 0 || (u32)wr->num_sge > rq->max_sge)
		return -EINVAL;
	num = urdma_put_sges(w + URDMA_RQE_DATA_OFFSET / 8, wr->sg_list, wr->num_sge, &length);
	w[0] = cpu_to_le64(FIELD_PREP(URDMA_RQE0_NUM_SGE, num));
	w[1] = 0;
	return 0;
}

static int urdma_post_one_recv(struct urdma_wq *rq, const struct ib_recv_wr *wr)
{
	int err;

	if (urdma_wq_is_full(rq))
		return -ENOMEM;
	err = urdma_put_recv(rq, urdma_wq_slot(rq, rq->head), wr);
	if (err)
		return err;
	urdma_wq_posted(rq, wr->wr_id);
	return 0;
}

static int urdma_post_one_srq_recv(struct urdma_srq *srq, const struct ib_recv_wr *wr)
{
	struct urdma_wq *wq = &srq->wq;
	u16 place;
	int err;

	if (!srq->num_free)
		return -ENOMEM;
	place = srq->free[srq->num_free - 1];
	err = urdma_put_recv(wq, urdma_wq_slot(wq, place), wr);
	if (err)
		return err;
	srq->num_free--;
	wq->wr_id[place] = wr->wr_id;
	srq->index[wq->head & ((1U << wq->log) - 1)] = cpu_to_le16(place);
	wq->head++;
	return 0;
}

int urdma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct urdma_dev *dev = to_udev(ibqp->device);
	struct urdma_qp *qp = to_uqp(ibqp);
	unsigned long flags;
	int err = 0;
	u16 first;

	if (!qp->kernel || ibqp->srq || READ_ONCE(qp->state) == IB_QPS_RESET) {
		*bad = wr;
		return -EINVAL;
	}

	spin_lock_irqsave(&qp->rq.lock, flags);
	first = qp->rq.head;
	for (; wr; wr = wr->next) {
		err = urdma_post_one_recv(&qp->rq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	urdma_wq_ring(dev, qp, &qp->rq, first, URDMA_DB_RQ);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	return err;
}

int urdma_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad)
{
	struct urdma_srq *srq = to_usrq(ibsrq);
	unsigned long flags;
	int err = 0;
	u16 first;

	if (!srq->kernel) {
		*bad = wr;
		return -EINVAL;
	}

	spin_lock_irqsave(&srq->wq.lock, flags);
	first = srq->wq.head;
	for (; wr; wr = wr->next) {
		err = urdma_post_one_srq_recv(srq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	if (srq->wq.head != first)
		urdma_ring_doorbell(to_udev(ibsrq->device), URDMA_DB_SRQ, srq->srqn, 0,
				    srq->wq.head);
	spin_unlock_irqrestore(&srq->wq.lock, flags);
	return err;
}
