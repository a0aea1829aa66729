// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma: completion queues. A process polls its CQs itself; this file polls those of the kernel. */
#include <linux/if_vlan.h>
#include <rdma/uverbs_ioctl.h>

#include "urdma-abi.h"
#include "urdma.h"

/* Smallest ring of a kernel CQ: a page. */
#define URDMA_MIN_CQ_LOG 7

/*
 * The poller writes its consumer index to the NIC at each quarter of the ring, so a quarter of the
 * entries is slack.
 */
u32 urdma_cq_max_cqe(struct urdma_dev *dev)
{
	return 3U << (dev->caps.log_cqe - 2);
}

/* A ring of a process, for the given number of CQEs. */
static int urdma_cq_user_ring(struct urdma_dev *dev, struct urdma_mem *mem, u64 addr, u32 len,
			      u8 log, u32 cqe)
{
	if (log > dev->caps.log_cqe || cqe > 1U << log || len < (u64)URDMA_CQE_SIZE << log)
		return -EINVAL;
	return urdma_mem_ring(dev, mem, addr, URDMA_CQE_SIZE << log, IB_ACCESS_LOCAL_WRITE);
}

static int urdma_create_cq_user(struct urdma_dev *dev, struct urdma_cq *cq, u32 cqe,
				struct ib_udata *udata)
{
	struct urdma_create_cq_req req;
	int err;

	err = urdma_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EINVAL;
	cq->log = req.log_entries;
	cq->ibcq.cqe = cqe;
	return urdma_cq_user_ring(dev, &cq->mem, req.buf_addr, req.buf_len, req.log_entries, cqe);
}

static int urdma_create_cq_kernel(struct urdma_dev *dev, struct urdma_cq *cq, u32 cqe)
{
	int err;

	cq->log = min_t(u8, URDMA_MIN_CQ_LOG, dev->caps.log_cqe);
	while (3U << (cq->log - 2) < cqe)
		cq->log++;
	err = urdma_mem_alloc(dev, &cq->mem, (size_t)URDMA_CQE_SIZE << cq->log);
	if (err)
		return err;
	cq->ring = cq->mem.buf;
	cq->ibcq.cqe = 3U << (cq->log - 2);
	return 0;
}

int urdma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs)
{
	struct urdma_dev *dev = to_udev(ibcq->device);
	/* NULL for a CQ of the kernel */
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct urdma_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct urdma_ucontext, ibucontext);
	u64 cmd[URDMA_CMD_WORDS] = {};
	bool overrun = attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	struct urdma_create_cq_resp resp = {};
	struct urdma_cq *cq = to_ucq(ibcq);
	int err;

	/* Every CQE carries a timestamp. */
	if (attr->flags &
	    ~(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN))
		return -EOPNOTSUPP;
	if (overrun && !(dev->caps.features & URDMA_RF_FEAT_CQ_MODIFY))
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > urdma_cq_max_cqe(dev))
		return -EINVAL;
	mutex_init(&cq->resize_lock);
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->send_qps);
	INIT_LIST_HEAD(&cq->recv_qps);
	if (udata)
		err = urdma_create_cq_user(dev, cq, attr->cqe, udata);
	else
		err = urdma_create_cq_kernel(dev, cq, attr->cqe);
	if (err)
		return err;
	/* Only reserve a number for now: an event must not find an unfinished CQ. */
	err = xa_alloc_cyclic(&dev->cq_xa, &cq->cqn, NULL, XA_LIMIT(0, dev->caps.num_cq - 1),
			      &dev->next_cqn, GFP_KERNEL);
	if (err < 0) {
		err = err == -EBUSY ? -ENOSPC : err;
		goto err_mem;
	}
	cq->eq = &dev->eqs[1 + attr->comp_vector % (dev->num_eqs - 1)];

	cmd[0] = urdma_cmd0(URDMA_CMD_CREATE_CQ, cq->cqn);
	cmd[1] = FIELD_PREP(URDMA_CMD_CQ1_RING, urdma_ring_word(&cq->mem, cq->log, URDMA_CQE_LOG)) |
		 FIELD_PREP(URDMA_CMD_CQ1_EQN, cq->eq->eqn) |
		 FIELD_PREP(URDMA_CMD_CQ1_DB_PAGE, uctx ? uctx->db->page : URDMA_KERNEL_DB_PAGE) |
		 FIELD_PREP(URDMA_CMD_CQ1_OVERRUN, overrun);
	cmd[2] = cq->mem.pt.addr;
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err)
		goto err_xa;

	if (udata) {
		resp.cqn = cq->cqn;
		err = urdma_udata_out(udata, &resp, sizeof(resp));
		if (err)
			goto err_destroy;
	}
	/* Cannot fail: the slot is reserved. */
	xa_store(&dev->cq_xa, cq->cqn, cq, GFP_KERNEL);
	return 0;

err_destroy:
	urdma_cmd_destroy(dev, URDMA_CMD_DESTROY_CQ, cq->cqn);
err_xa:
	xa_erase(&dev->cq_xa, cq->cqn);
err_mem:
	urdma_mem_free(dev, &cq->mem);
	return err;
}

int urdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibcq->device);
	struct urdma_cq *cq = to_ucq(ibcq);

	urdma_cmd_destroy(dev, URDMA_CMD_DESTROY_CQ, cq->cqn);
	xa_erase(&dev->cq_xa, cq->cqn);
	/* Wait for its completion events, then for its error events. */
	urdma_cq_quiesce(dev);
	urdma_eq_sync(&dev->eqs[0]);
	urdma_mem_free(dev, &cq->mem);
	return 0;
}

/*
 * The provider takes over the CQEs that are still in the old ring, and keeps that ring mapped as
 * long as it needs. Only rings of processes are replaced: consumers in the kernel do not resize
 * CQs.
 */
int urdma_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibcq->device);
	u64 cmd[URDMA_CMD_WORDS] = {}, cpl[URDMA_CMD_WORDS];
	struct urdma_resize_cq_resp resp = {};
	struct urdma_cq *cq = to_ucq(ibcq);
	struct urdma_resize_cq_req req;
	struct urdma_mem mem = {};
	int err;

	if (!udata || cq->ring)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > urdma_cq_max_cqe(dev))
		return -EINVAL;
	err = urdma_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)) || req.reserved2)
		return -EINVAL;
	err = urdma_cq_user_ring(dev, &mem, req.buf_addr, req.buf_len, req.log_entries, cqe);
	if (err)
		return err;

	mutex_lock(&cq->resize_lock);
	err = -EINVAL;
	if (!cq->mod_period && cq->mod_count > cqe)
		goto err_unlock;
	cmd[0] = urdma_cmd0(URDMA_CMD_RESIZE_CQ, cq->cqn);
	cmd[1] = FIELD_PREP(URDMA_CMD_CQ1_RING,
			    urdma_ring_word(&mem, req.log_entries, URDMA_CQE_LOG));
	cmd[2] = mem.pt.addr;
	cmd[3] = FIELD_PREP(URDMA_CMD_RCQ3_CI, req.ci);
	err = urdma_cmd_exec(dev, cmd, cpl);
	/* More CQEs wait than fit. */
	if (err == -EBUSY)
		err = -EINVAL;
	if (err)
		goto err_unlock;
	swap(cq->mem, mem);
	cq->log = req.log_entries;
	ibcq->cqe = cqe;
	mutex_unlock(&cq->resize_lock);

	/* Free the old ring: the NIC no longer uses it. */
	urdma_mem_free(dev, &mem);
	resp.base = FIELD_GET(URDMA_CPL_CQ1_BASE, cpl[1]);
	/* If the response cannot be copied, only this process loses its CQEs. */
	return urdma_udata_out(udata, &resp, sizeof(resp));

err_unlock:
	mutex_unlock(&cq->resize_lock);
	urdma_mem_free(dev, &mem);
	return err;
}

/* An event waits for the given number of CQEs or microseconds; 0: no such limit. */
int urdma_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct urdma_dev *dev = to_udev(ibcq->device);
	u64 cmd[URDMA_CMD_WORDS] = {};
	struct urdma_cq *cq = to_ucq(ibcq);
	int err = -EINVAL;

	mutex_lock(&cq->resize_lock);
	/* An event must not wait for more CQEs than the CQ can hold. */
	if (!period && count > ibcq->cqe)
		goto out;
	cmd[0] = urdma_cmd0(URDMA_CMD_MODIFY_CQ, cq->cqn);
	cmd[1] =
		FIELD_PREP(URDMA_CMD_MCQ1_COUNT, count) | FIELD_PREP(URDMA_CMD_MCQ1_PERIOD, period);
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err)
		goto out;
	cq->mod_count = count;
	cq->mod_period = period;
out:
	mutex_unlock(&cq->resize_lock);
	return err;
}

/* ---- polling by the kernel ------------------------------------------------------------------ */

/*
 * With the CQ locked: arms it as its consumer has requested, and writes the consumer index. If
 * there already is a CQE after that index, it raises the event at once, unless it has raised one
 * before. Arming again is harmless.
 */
static void urdma_cq_arm(struct urdma_cq *cq, u32 arm)
{
	/* Finish reading the CQEs before the NIC may overwrite them. */
	dma_mb();
	urdma_ring_doorbell(to_udev(cq->ibcq.device), URDMA_DB_CQ, cq->cqn, arm, cq->ci);
	cq->told = cq->ci;
}

/*
 * With the CQ locked, before a QP is added to it. An event of a destroyed QP may have disarmed the
 * CQ without a call, see urdma_cq_wants_call(). So a CQ without QPs is armed again.
 */
static void urdma_cq_rearm_empty(struct urdma_cq *cq)
{
	if (cq->ring && cq->armed && list_empty(&cq->send_qps) && list_empty(&cq->recv_qps))
		urdma_cq_arm(cq, cq->armed);
}

/* Called before anyone else can find the QP. */
void urdma_cq_add_qp(struct urdma_qp *qp)
{
	struct urdma_cq *send = to_ucq(qp->ibqp.send_cq);
	struct urdma_cq *recv = to_ucq(qp->ibqp.recv_cq);

	spin_lock_irq(&send->lock);
	urdma_cq_rearm_empty(send);
	list_add_tail(&qp->sq.list, &send->send_qps);
	spin_unlock_irq(&send->lock);
	spin_lock_irq(&recv->lock);
	urdma_cq_rearm_empty(recv);
	list_add_tail(&qp->rq.list, &recv->recv_qps);
	spin_unlock_irq(&recv->lock);
}

/* The CQE at an index if it has been written; the rest of it is then valid. */
static struct urdma_cqe *urdma_cqe_at(const struct urdma_cq *cq, u32 index)
{
	struct urdma_cqe *cqe = &cq->ring[index & ((1U << cq->log) - 1)];
	u64 w3 = le64_to_cpu(READ_ONCE(cqe->w[3]));

	if (FIELD_GET(URDMA_CQE3_PHASE, w3) != urdma_phase(index, cq->log))
		return NULL;
	/* Read the phase bit first, then the rest and the data that it announces. */
	dma_rmb();
	return cqe;
}

/* With the CQ locked: writes the consumer index to the NIC at each quarter of the ring. */
static void urdma_tell_ci(struct urdma_dev *dev, struct urdma_cq *cq)
{
	if (!((cq->ci - cq->told) >> (cq->log - 2)))
		return;
	/* Finish reading the CQEs before the NIC may overwrite them. */
	dma_mb();
	urdma_ring_doorbell(dev, URDMA_DB_CQ, cq->cqn, URDMA_DB_ARM_NONE, cq->ci);
	cq->told = cq->ci;
}

/*
 * With the CQ locked: drops the CQEs of the QP. The other CQEs move towards the end, with the phase
 * bit of their new entry, so the dropped entries become free for the NIC.
 */
static void urdma_cq_forget(struct urdma_cq *cq, struct urdma_qp *qp)
{
	u32 mask = (1U << cq->log) - 1, from = cq->ci, to;
	struct urdma_cqe *cqe, *place;
	u64 w0, w3;

	while (from - cq->ci <= mask && urdma_cqe_at(cq, from))
		from++;
	for (to = from; from != cq->ci;) {
		cqe = &cq->ring[--from & mask];
		w0 = le64_to_cpu(cqe->w[0]);
		if (FIELD_GET(URDMA_CQE1_QPN, le64_to_cpu(cqe->w[1])) == qp->ibqp.qp_num) {
			if (qp->ibqp.srq && w0 & URDMA_CQE0_RECV)
				urdma_srq_put(to_usrq(qp->ibqp.srq), FIELD_GET(URDMA_CQE0_WQE, w0));
			continue;
		}
		if (--to == from)
			continue;
		place = &cq->ring[to & mask];
		*place = *cqe;
		w3 = le64_to_cpu(place->w[3]) & ~URDMA_CQE3_PHASE;
		w3 |= FIELD_PREP(URDMA_CQE3_PHASE, urdma_phase(to, cq->log));
		place->w[3] = cpu_to_le64(w3);
	}
	cq->ci = to;
	urdma_tell_ci(to_udev(cq->ibcq.device), cq);
}

/* The NIC writes no more CQEs of this QP; drops those not yet polled. */
void urdma_cq_forget_qp(struct urdma_qp *qp)
{
	struct urdma_cq *send = to_ucq(qp->ibqp.send_cq);
	struct urdma_cq *recv = to_ucq(qp->ibqp.recv_cq);

	spin_lock_irq(&send->lock);
	urdma_cq_forget(send, qp);
	spin_unlock_irq(&send->lock);
	if (recv == send)
		return;
	spin_lock_irq(&recv->lock);
	urdma_cq_forget(recv, qp);
	spin_unlock_irq(&recv->lock);
}

/* The same; polling cannot find the QP afterwards, so it may be freed. */
void urdma_cq_remove_qp(struct urdma_qp *qp)
{
	struct urdma_cq *send = to_ucq(qp->ibqp.send_cq);
	struct urdma_cq *recv = to_ucq(qp->ibqp.recv_cq);

	urdma_cq_forget_qp(qp);
	spin_lock_irq(&send->lock);
	list_del(&qp->sq.list);
	spin_unlock_irq(&send->lock);
	spin_lock_irq(&recv->lock);
	list_del(&qp->rq.list);
	spin_unlock_irq(&recv->lock);
}

/*
 * Waits until all running calls of consumers have ended. No new call starts after the CQ's last QP
 * has been removed, see urdma_cq_wants_call(). So nothing calls the consumer of a CQ that is about
 * to be freed. This matters because the core stops the work and the softirq that a call starts
 * before it calls destroy_cq(). The handlers of all EQs must end, not only that of the CQ's EQ: any
 * of them may still hold an event of an earlier CQ with this number, and then it finds this CQ.
 */
void urdma_cq_quiesce(struct urdma_dev *dev)
{
	u32 i;

	for (i = 1; i < dev->num_eqs; i++)
		urdma_eq_sync(&dev->eqs[i]);
	flush_work(&dev->notify_work);
}

static enum ib_wc_status urdma_wc_status(u32 status)
{
	switch (status) {
	case URDMA_WC_SUCCESS:
		return IB_WC_SUCCESS;
	case URDMA_WC_LOC_LEN_ERR:
		return IB_WC_LOC_LEN_ERR;
	case URDMA_WC_LOC_QP_OP_ERR:
		return IB_WC_LOC_QP_OP_ERR;
	case URDMA_WC_LOC_PROT_ERR:
		return IB_WC_LOC_PROT_ERR;
	case URDMA_WC_FLUSH_ERR:
		return IB_WC_WR_FLUSH_ERR;
	case URDMA_WC_MW_BIND_ERR:
		return IB_WC_MW_BIND_ERR;
	case URDMA_WC_BAD_RESP_ERR:
		return IB_WC_BAD_RESP_ERR;
	case URDMA_WC_LOC_ACCESS_ERR:
		return IB_WC_LOC_ACCESS_ERR;
	case URDMA_WC_REM_INV_REQ_ERR:
		return IB_WC_REM_INV_REQ_ERR;
	case URDMA_WC_REM_ACCESS_ERR:
		return IB_WC_REM_ACCESS_ERR;
	case URDMA_WC_REM_OP_ERR:
		return IB_WC_REM_OP_ERR;
	case URDMA_WC_RETRY_EXC_ERR:
		return IB_WC_RETRY_EXC_ERR;
	case URDMA_WC_RNR_RETRY_EXC_ERR:
		return IB_WC_RNR_RETRY_EXC_ERR;
	default:
		return IB_WC_GENERAL_ERR;
	}
}

static enum ib_wc_opcode urdma_wc_opcode(u32 opcode, bool recv)
{
	if (recv)
		return opcode == URDMA_WR_WRITE_IMM ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV;
	switch (opcode) {
	case URDMA_WR_WRITE:
	case URDMA_WR_WRITE_IMM:
		return IB_WC_RDMA_WRITE;
	case URDMA_WR_READ:
		return IB_WC_RDMA_READ;
	case URDMA_WR_ATOMIC_CS:
		return IB_WC_COMP_SWAP;
	case URDMA_WR_ATOMIC_FA:
		return IB_WC_FETCH_ADD;
	case URDMA_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case URDMA_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

/* A datagram was received: the data start with the network header. */
static void urdma_take_grh(u64 w0, struct ib_wc *wc)
{
	u16 tci = FIELD_GET(URDMA_CQE0_TCI, w0);

	wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
	wc->network_hdr_type = w0 & URDMA_CQE0_IPV4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	if (!(w0 & URDMA_CQE0_VLAN))
		return;
	wc->sl = tci >> VLAN_PRIO_SHIFT;
	/* VLAN 0 is a priority tag without a VLAN: the GID belongs to the net device itself. */
	wc->vlan_id = tci & VLAN_VID_MASK;
	if (wc->vlan_id)
		wc->wc_flags |= IB_WC_WITH_VLAN;
}

/* The QP exists: before a QP is freed or reset, its CQEs are dropped with this CQ locked. */
static bool urdma_take_cqe(struct urdma_dev *dev, const struct urdma_cqe *cqe, struct ib_wc *wc)
{
	u64 w0 = le64_to_cpu(cqe->w[0]);
	u64 w1 = le64_to_cpu(cqe->w[1]);
	u64 w2 = le64_to_cpu(cqe->w[2]);
	u16 index = FIELD_GET(URDMA_CQE0_WQE, w0);
	u32 qpn = FIELD_GET(URDMA_CQE1_QPN, w1);
	bool recv = w0 & URDMA_CQE0_RECV;
	struct urdma_srq *srq = NULL;
	struct urdma_wq *wq;
	struct urdma_qp *qp;

	qp = xa_load(&dev->qp_xa, qpn);
	if (!qp || !qp->kernel)
		return false;
	wq = recv ? &qp->rq : &qp->sq;
	if (recv && qp->ibqp.srq) {
		srq = to_usrq(qp->ibqp.srq);
		wq = &srq->wq;
	}

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wq->wr_id[index & ((1U << wq->log) - 1)];
	wc->status = urdma_wc_status(FIELD_GET(URDMA_CQE0_STATUS, w0));
	wc->opcode = urdma_wc_opcode(FIELD_GET(URDMA_CQE0_OPCODE, w0), recv);
	wc->vendor_err = FIELD_GET(URDMA_CQE0_VENDOR, w0);
	wc->byte_len = FIELD_GET(URDMA_CQE1_LENGTH, w1);
	wc->qp = &qp->ibqp;
	wc->src_qp = FIELD_GET(URDMA_CQE2_SRC_QPN, w2);
	wc->port_num = URDMA_PORT;
	if (w0 & URDMA_CQE0_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = urdma_imm_from_hw(FIELD_GET(URDMA_CQE2_IMM, w2));
	} else if (w0 & URDMA_CQE0_INV) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = FIELD_GET(URDMA_CQE2_IMM, w2);
	}
	if (w0 & URDMA_CQE0_GRH)
		urdma_take_grh(w0, wc);

	if (srq) {
		urdma_srq_put(srq, index);
		return true;
	}
	/* Frees this WQE and the unsignaled ones before it. Release: wr_id has been read. */
	smp_store_release(&wq->tail, (u16)(index + 1));
	return true;
}

/* Completes the WQEs that a dead device has left in a work queue as flushed. */
static int urdma_flush_wq(struct urdma_qp *qp, struct urdma_wq *wq, bool recv, int n,
			  struct ib_wc *wc)
{
	int got = 0;

	spin_lock(&wq->lock);
	for (; got < n && wq->tail != wq->head; got++) {
		memset(&wc[got], 0, sizeof(wc[got]));
		wc[got].wr_id = wq->wr_id[wq->tail & ((1U << wq->log) - 1)];
		wc[got].status = IB_WC_WR_FLUSH_ERR;
		wc[got].opcode = recv ? IB_WC_RECV : IB_WC_SEND;
		wc[got].qp = &qp->ibqp;
		/* the locks of head and tail are both held */
		WRITE_ONCE(wq->tail, wq->tail + 1);
	}
	spin_unlock(&wq->lock);
	return got;
}

/* All CQEs have been polled, and no more will come. */
static int urdma_flush_dead(struct urdma_cq *cq, int n, struct ib_wc *wc)
{
	struct urdma_qp *qp;
	int got = 0;

	list_for_each_entry(qp, &cq->send_qps, sq.list)
		got += urdma_flush_wq(qp, &qp->sq, false, n - got, wc + got);
	list_for_each_entry(qp, &cq->recv_qps, rq.list)
		got += urdma_flush_wq(qp, &qp->rq, true, n - got, wc + got);
	return got;
}

int urdma_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct urdma_dev *dev = to_udev(ibcq->device);
	struct urdma_cq *cq = to_ucq(ibcq);
	struct urdma_cqe *cqe = NULL;
	unsigned long flags;
	int got = 0;

	/* A process may call this too, through uverbs, but the kernel does not map its ring. */
	if (!cq->ring)
		return -EINVAL;
	spin_lock_irqsave(&cq->lock, flags);
	while (got < n) {
		cqe = urdma_cqe_at(cq, cq->ci);
		if (!cqe)
			break;
		if (urdma_take_cqe(dev, cqe, &wc[got]))
			got++;
		cq->ci++;
		/* In the loop, because other CPUs may post into the freed slots meanwhile. */
		urdma_tell_ci(dev, cq);
	}
	if (!cqe && unlikely(urdma_is_dead(dev)))
		got += urdma_flush_dead(cq, n - got, wc + got);
	spin_unlock_irqrestore(&cq->lock, flags);
	return got;
}

/* With the CQ locked, on a dead device: does a QP have WQEs that polling would flush? */
static bool urdma_flush_pending(struct urdma_cq *cq)
{
	struct urdma_qp *qp;

	list_for_each_entry(qp, &cq->send_qps, sq.list)
		if (urdma_wq_pending(&qp->sq))
			return true;
	list_for_each_entry(qp, &cq->recv_qps, rq.list)
		if (urdma_wq_pending(&qp->rq))
			return true;
	return false;
}

int urdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct urdma_dev *dev = to_udev(ibcq->device);
	struct urdma_cq *cq = to_ucq(ibcq);
	u32 arm = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ? URDMA_DB_ARM_SOLICITED
								    : URDMA_DB_ARM_ANY;
	unsigned long irq;
	int missed = 0;

	if (!cq->ring)
		return -EINVAL;
	spin_lock_irqsave(&cq->lock, irq);
	urdma_cq_arm(cq, arm);
	/*
	 * As in the NIC, arming for solicited CQEs does not replace an earlier arming for any CQE.
	 */
	if (cq->armed != URDMA_DB_ARM_ANY)
		cq->armed = arm;
	/* Reporting it here too saves the caller the interrupt. */
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = !!urdma_cqe_at(cq, cq->ci);
	/* These WQEs were posted before the CQ was armed; later posts find it armed. */
	if (unlikely(urdma_is_dead(dev)) && urdma_flush_pending(cq))
		queue_work(dev->wq, &dev->notify_work);
	spin_unlock_irqrestore(&cq->lock, irq);
	return missed;
}

/* ---- events --------------------------------------------------------------------------------- */

/*
 * Whether the consumer of a kernel CQ may be called. It must have armed the CQ: the core does not
 * expect a call for a CQ that its owner polls directly, and never arms one. The NIC raises events
 * only for armed CQs, but an event may belong to an earlier CQ with this number. A CQ without QPs
 * has no events to report: it is not complete yet, or about to be destroyed.
 */
static bool urdma_cq_wants_call(struct urdma_cq *cq, bool by_nic)
{
	bool call, dead, waiting;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	dead = urdma_is_dead(to_udev(cq->ibcq.device));
	waiting = urdma_cqe_at(cq, cq->ci) || (dead && urdma_flush_pending(cq));
	call = cq->armed && (by_nic || waiting) &&
	       (!list_empty(&cq->send_qps) || !list_empty(&cq->recv_qps));
	/*
	 * The lost event may have been for CQEs of this CQ that its owner has polled anyway. Then
	 * the NIC has disarmed the CQ, and no CQE would raise another event.
	 */
	if (!by_nic && cq->armed && !waiting && !dead)
		urdma_cq_arm(cq, cq->armed);
	/*
	 * If all CQEs were polled before this call, the CQ may have been armed again since the
	 * event.
	 */
	if (call && waiting)
		cq->armed = 0;
	spin_unlock_irqrestore(&cq->lock, flags);
	return call;
}

/*
 * The only place that calls a consumer: for an event of the NIC, or in place of one that the NIC
 * cannot raise. Processes arm their CQs themselves, so their handlers are called whenever an event
 * may be due. The caller makes sure that the CQ is not destroyed meanwhile: urdma_cq_quiesce().
 */
static void urdma_cq_notify(struct urdma_cq *cq, bool by_nic)
{
	if (cq->ring && !urdma_cq_wants_call(cq, by_nic))
		return;
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/*
 * Raises events in place of the NIC. If an EQ was full, an event of its CQs may be lost. If the
 * device is dead, polling flushes the posted WQEs. Processes learn of a dead device by the device
 * event.
 */
void urdma_cq_notify_work(struct work_struct *work)
{
	struct urdma_dev *dev = container_of(work, struct urdma_dev, notify_work);
	DECLARE_BITMAP(full, URDMA_MAX_EQS) = {};
	struct urdma_cq *cq;
	unsigned long cqn;
	u32 i;

	for (i = 0; i < dev->num_eqs && dev->eqs; i++)
		if (xchg(&dev->eqs[i].overflow, false))
			__set_bit(i, full);
	xa_for_each(&dev->cq_xa, cqn, cq)
		if (test_bit(cq->eq->eqn, full) || (cq->ring && urdma_is_dead(dev)))
			urdma_cq_notify(cq, false);
	if (urdma_is_dead(dev))
		urdma_qp_notify_dead(dev);
}

/*
 * From the interrupt handler of an EQ. The CQ may be gone, or its number may now belong to another
 * CQ with another EQ. That CQ is not destroyed while we use it, see urdma_cq_quiesce(), and a
 * spurious call of its consumer is harmless.
 */
void urdma_cq_event(struct urdma_dev *dev, u32 cqn)
{
	struct urdma_cq *cq = xa_load(&dev->cq_xa, cqn);

	if (cq)
		urdma_cq_notify(cq, true);
}

/* From the interrupt handler of EQ 0: the ring was full, and a CQE is lost. */
void urdma_cq_error(struct urdma_dev *dev, u32 cqn)
{
	struct urdma_cq *cq = xa_load(&dev->cq_xa, cqn);
	struct ib_event event = { .event = IB_EVENT_CQ_ERR };

	if (!cq || !cq->ibcq.event_handler)
		return;
	event.device = cq->ibcq.device;
	event.element.cq = &cq->ibcq;
	cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}
