// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: shared receive queues.
 *
 * WQEs of an SRQ complete in any order. So they are in an array of places, and a ring of indices
 * after the array names the posted places: see CREATE_SRQ in urdma_hw.h. For a kernel SRQ, a stack
 * holds the free places. Posting takes a place from it, and polling returns the place when it has
 * read the completion. A process manages its free places itself.
 */
#include <rdma/uverbs_ioctl.h>

#include "urdma-abi.h"
#include "urdma.h"

/* Size in bytes of an index in the ring after the array. */
#define URDMA_SRQ_INDEX_SIZE 2

static size_t urdma_srq_bytes(u8 log_entries, u8 log_stride)
{
	return ((size_t)1 << (log_entries + log_stride)) +
	       ((size_t)URDMA_SRQ_INDEX_SIZE << log_entries);
}

/* The kernel does not use XRC: see urdma_qp_type(). */
static bool urdma_srq_has_type(struct urdma_dev *dev, enum ib_srq_type type, bool kernel)
{
	switch (type) {
	case IB_SRQT_BASIC:
		return true;
	case IB_SRQT_XRC:
		return !kernel && dev->caps.features & URDMA_RF_FEAT_XRC;
	default:
		return false;
	}
}

static int urdma_srq_check(struct urdma_dev *dev, const struct ib_srq_init_attr *init, bool kernel)
{
	if (!urdma_srq_has_type(dev, init->srq_type, kernel))
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > 1U << dev->caps.log_rq ||
	    init->attr.max_sge > dev->caps.max_rq_sge)
		return -EINVAL;
	return 0;
}

/* In the memory of a process; the provider has chosen the size and stride. */
static int urdma_create_srq_user(struct urdma_dev *dev, struct urdma_srq *srq,
				 const struct ib_srq_attr *attr, struct ib_udata *udata)
{
	struct urdma_create_srq_req req;
	size_t bytes;
	int err;

	err = urdma_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (req.reserved)
		return -EINVAL;
	err = urdma_wq_check(req.log_entries, dev->caps.log_rq, req.log_stride, attr->max_wr,
			     urdma_rqe_bytes(attr->max_sge));
	if (err)
		return err;
	bytes = urdma_srq_bytes(req.log_entries, req.log_stride);
	if (req.buf_len < bytes)
		return -EINVAL;
	srq->wq.log = req.log_entries;
	srq->wq.log_stride = req.log_stride;
	/* The NIC only reads it. */
	return urdma_mem_ring(dev, &srq->mem, req.buf_addr, bytes, 0);
}

/* Grants all that the places can hold, even beyond the request. */
static int urdma_create_srq_kernel(struct urdma_dev *dev, struct urdma_srq *srq,
				   struct ib_srq_attr *attr)
{
	struct urdma_wq *wq = &srq->wq;
	u32 i;
	int err;

	err = urdma_wq_init(dev, wq, &srq->mem, attr->max_wr, urdma_rqe_bytes(attr->max_sge),
			    URDMA_SRQ_INDEX_SIZE);
	if (err)
		return err;
	srq->free = kvcalloc(1U << wq->log, sizeof(*srq->free), GFP_KERNEL);
	if (!srq->free) {
		urdma_wq_uninit(dev, wq, &srq->mem);
		return -ENOMEM;
	}
	srq->index = (__le16 *)(wq->ring + ((size_t)1 << (wq->log + wq->log_stride)));
	/* The first place is taken first. */
	srq->num_free = 1U << wq->log;
	for (i = 0; i < srq->num_free; i++)
		srq->free[i] = srq->num_free - 1 - i;
	wq->max_sge = urdma_rq_max_sge(dev, wq);
	attr->max_wr = 1U << wq->log;
	attr->max_sge = wq->max_sge;
	return 0;
}

static void urdma_srq_free(struct urdma_dev *dev, struct urdma_srq *srq)
{
	if (srq->kernel) {
		kvfree(srq->free);
		urdma_wq_uninit(dev, &srq->wq, &srq->mem);
	} else {
		urdma_mem_free(dev, &srq->mem);
	}
}

int urdma_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibsrq->device);
	/* NULL for an SRQ of the kernel */
	struct urdma_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct urdma_ucontext, ibucontext);
	struct urdma_create_srq_resp resp = {};
	struct urdma_srq *srq = to_usrq(ibsrq);
	u64 cmd[URDMA_CMD_WORDS] = {};
	int err;

	srq->kernel = !udata;
	err = urdma_srq_check(dev, init, srq->kernel);
	if (err)
		return err;
	if (srq->kernel)
		err = urdma_create_srq_kernel(dev, srq, &init->attr);
	else
		err = urdma_create_srq_user(dev, srq, &init->attr, udata);
	if (err)
		return err;
	srq->max_wr = init->attr.max_wr;
	srq->max_sge = init->attr.max_sge;

	/* Only reserve a number for now: an event must not find an unfinished SRQ. */
	err = xa_alloc_cyclic(&dev->srq_xa, &srq->srqn, NULL, XA_LIMIT(0, dev->caps.num_srq - 1),
			      &dev->next_srqn, GFP_KERNEL);
	if (err < 0) {
		err = err == -EBUSY ? -ENOSPC : err;
		goto err_mem;
	}
	cmd[0] = urdma_cmd0(URDMA_CMD_CREATE_SRQ, srq->srqn);
	cmd[1] = FIELD_PREP(URDMA_CMD_SRQ1_PD, to_upd(ibsrq->pd)->pdn) |
		 FIELD_PREP(URDMA_CMD_SRQ1_DB_PAGE, uctx ? uctx->db->page : URDMA_KERNEL_DB_PAGE);
	cmd[2] = FIELD_PREP(URDMA_CMD_SRQ2_RING,
			    urdma_ring_word(&srq->mem, srq->wq.log, srq->wq.log_stride));
	cmd[3] = srq->mem.pt.addr;
	if (init->srq_type == IB_SRQT_XRC) {
		cmd[1] |= URDMA_CMD_SRQ1_XRC;
		cmd[4] = FIELD_PREP(URDMA_CMD_SRQ4_XRCD, to_uxrcd(init->ext.xrc.xrcd)->pdn) |
			 FIELD_PREP(URDMA_CMD_SRQ4_CQN, to_ucq(init->ext.cq)->cqn);
		ibsrq->ext.xrc.srq_num = srq->srqn;
	}
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err)
		goto err_xa;

	if (udata) {
		resp.srqn = srq->srqn;
		err = urdma_udata_out(udata, &resp, sizeof(resp));
		if (err)
			goto err_destroy;
	}
	/* Cannot fail: the slot is reserved. */
	xa_store(&dev->srq_xa, srq->srqn, srq, GFP_KERNEL);
	return 0;

err_destroy:
	urdma_cmd_destroy(dev, URDMA_CMD_DESTROY_SRQ, srq->srqn);
err_xa:
	xa_erase(&dev->srq_xa, srq->srqn);
err_mem:
	urdma_srq_free(dev, srq);
	return err;
}

/*
 * The core guarantees that no QP refers to the SRQ. XRC target QPs do not refer to their SRQs:
 * their next packet for this SRQ finds none. The provider drops CQEs not yet polled.
 */
int urdma_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibsrq->device);
	struct urdma_srq *srq = to_usrq(ibsrq);

	urdma_cmd_destroy(dev, URDMA_CMD_DESTROY_SRQ, srq->srqn);
	xa_erase(&dev->srq_xa, srq->srqn);
	urdma_eq_sync(&dev->eqs[0]);
	urdma_srq_free(dev, srq);
	return 0;
}

/* Changes only the limit: an SRQ keeps its size (IB_DEVICE_SRQ_RESIZE is not set). */
int urdma_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata)
{
	struct urdma_srq *srq = to_usrq(ibsrq);
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_MODIFY_SRQ, srq->srqn) };

	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	if (!urdma_udata_is_empty(udata))
		return -EINVAL;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->max_wr)
		return -EINVAL;
	cmd[1] = FIELD_PREP(URDMA_CMD_MSRQ1_LIMIT, attr->srq_limit);
	return urdma_cmd_exec(to_udev(ibsrq->device), cmd, NULL);
}

int urdma_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct urdma_srq *srq = to_usrq(ibsrq);
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_QUERY_SRQ, srq->srqn) };
	u64 cpl[URDMA_CMD_WORDS];
	int err;

	err = urdma_cmd_exec(to_udev(ibsrq->device), cmd, cpl);
	if (err)
		return err;
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = FIELD_GET(URDMA_CPL_SRQ1_LIMIT, cpl[1]);
	return 0;
}

/* With the CQ locked: frees the place named by a completion that has been read. */
void urdma_srq_put(struct urdma_srq *srq, u16 place)
{
	spin_lock(&srq->wq.lock);
	/* A correct NIC completes no more places than were posted; catch a faulty one. */
	if (!WARN_ON_ONCE(srq->num_free >> srq->wq.log))
		srq->free[srq->num_free++] = place & ((1U << srq->wq.log) - 1);
	spin_unlock(&srq->wq.lock);
}

/* From the interrupt handler of EQ 0. */
void urdma_srq_event(struct urdma_dev *dev, u32 srqn, u8 type)
{
	struct urdma_srq *srq = xa_load(&dev->srq_xa, srqn);
	struct ib_event event = {};

	if (!srq || !srq->ibsrq.event_handler)
		return;
	event.event = type == URDMA_EV_SRQ_LIMIT ? IB_EVENT_SRQ_LIMIT_REACHED : IB_EVENT_SRQ_ERR;
	event.device = srq->ibsrq.device;
	event.element.srq = &srq->ibsrq;
	srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}
