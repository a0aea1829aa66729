// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: completion queues of user contexts.
 */
#include <rdma/uverbs_ioctl.h>

#include "urdma-abi.h"
#include "urdma.h"

/* The provider tells the NIC what it has consumed at each quarter of the ring: that is slack. */
u32 urdma_cq_max_cqe(struct urdma_dev *dev)
{
	return 3U << (dev->caps.log_cqe - 2);
}

int urdma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs)
{
	struct urdma_dev *dev = to_udev(ibcq->device);
	struct ib_udata *udata = &attrs->driver_udata;
	struct urdma_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct urdma_ucontext, ibucontext);
	u64 cmd[URDMA_CMD_WORDS] = {};
	struct urdma_create_cq_resp resp = {};
	struct urdma_create_cq_req req;
	struct urdma_cq *cq = to_ucq(ibcq);
	int err;

	if (!uctx)
		return -EOPNOTSUPP;
	if (attr->flags)
		return -EOPNOTSUPP;
	err = urdma_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (memchr_inv(req.reserved, 0, sizeof(req.reserved)))
		return -EINVAL;
	if (!attr->cqe || attr->cqe > urdma_cq_max_cqe(dev) ||
	    req.log_entries > dev->caps.log_cqe || attr->cqe > 1U << req.log_entries)
		return -EINVAL;
	if (req.buf_len < (u64)URDMA_CQE_SIZE << req.log_entries)
		return -EINVAL;

	err = urdma_mem_ring(dev, &cq->mem, req.buf_addr, URDMA_CQE_SIZE << req.log_entries,
			     IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	/* Only a number for now: an event must not find a CQ that is half made. */
	err = xa_alloc_cyclic(&dev->cq_xa, &cq->cqn, NULL, XA_LIMIT(0, dev->caps.num_cq - 1),
			      &dev->next_cqn, GFP_KERNEL);
	if (err < 0) {
		err = err == -EBUSY ? -ENOSPC : err;
		goto err_mem;
	}
	cq->eq = &dev->eqs[1 + attr->comp_vector % (dev->num_eqs - 1)];
	cq->ibcq.cqe = attr->cqe;

	cmd[0] = urdma_cmd0(URDMA_CMD_CREATE_CQ, cq->cqn);
	cmd[1] = FIELD_PREP(URDMA_CMD_CQ1_RING,
			    urdma_ring_word(&cq->mem, req.log_entries, URDMA_CQE_LOG)) |
		 FIELD_PREP(URDMA_CMD_CQ1_EQN, cq->eq->eqn) |
		 FIELD_PREP(URDMA_CMD_CQ1_DB_PAGE, uctx->db->page);
	cmd[2] = cq->mem.pt.addr;
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err)
		goto err_xa;

	resp.cqn = cq->cqn;
	err = ib_copy_to_udata(udata, &resp, min(sizeof(resp), udata->outlen));
	if (err)
		goto err_destroy;
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
	urdma_eqs_sync(dev);
	urdma_mem_free(dev, &cq->mem);
	return 0;
}

/* From the interrupt handler of an EQ. The CQ may be gone, or be another one: then nobody minds. */
void urdma_cq_event(struct urdma_dev *dev, u32 cqn)
{
	struct urdma_cq *cq = xa_load(&dev->cq_xa, cqn);

	if (cq && cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* The same for all CQs of an EQ. */
void urdma_cq_event_all(struct urdma_eq *eq)
{
	struct urdma_cq *cq;
	unsigned long cqn;

	xa_for_each(&eq->dev->cq_xa, cqn, cq) {
		if (cq->eq == eq)
			urdma_cq_event(eq->dev, cqn);
	}
}

/* From the interrupt handler of EQ 0: the ring was full, and a completion is lost. */
void urdma_cq_error(struct urdma_dev *dev, u32 cqn)
{
	struct urdma_cq *cq = xa_load(&dev->cq_xa, cqn);
	struct ib_event event = { .device = &dev->ibdev, .event = IB_EVENT_CQ_ERR };

	if (!cq || !cq->ibcq.event_handler)
		return;
	event.element.cq = &cq->ibcq;
	cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}
