// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * kernel_loop: a consumer of kernel verbs. On each device whose name begins with urdma it connects
 * two RC QPs with each other, sends messages from one to the other, and compares them. The objects
 * stay until the device or the module is removed. The kernel's log has a line for each device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#define PORT  1
#define BYTES 4096

static unsigned int messages = 100;
module_param(messages, uint, 0444);
MODULE_PARM_DESC(messages, "number of messages on each device");
static struct ib_client loop_client;

struct loop {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *tx, *rx;
	struct ib_cqe cqe;
	struct completion done;
	int err;
	u64 dma;
	/* One message to send, one received; no other data in their cache lines. */
	u8 buf[2 * BYTES] __aligned(ARCH_DMA_MINALIGN);
};

static int loop_connect(struct ib_qp *qp, struct ib_qp *peer, const struct rdma_ah_attr *ah)
{
	const int init = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
	const int rtr = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	const int rts = IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = PORT,
		.ah_attr = *ah,
		.path_mtu = IB_MTU_1024, /* fits into frames of 1500 bytes */
		.dest_qp_num = peer->qp_num,
		.rq_psn = peer->qp_num,
		.sq_psn = qp->qp_num, /* any, but each connection its own */
		.timeout = 14,	      /* 67 ms */
		.retry_cnt = 7,
	};
	int err = ib_modify_qp(qp, &attr, init);

	attr.qp_state = IB_QPS_RTR;
	err = err ?: ib_modify_qp(qp, &attr, rtr);
	attr.qp_state = IB_QPS_RTS;
	return err ?: ib_modify_qp(qp, &attr, rts);
}

/* By the port's first GID, as the device has it for RoCE v2. */
static int loop_connect_both(struct loop *l)
{
	struct rdma_ah_attr ah = { .type = RDMA_AH_ATTR_TYPE_ROCE, .port_num = PORT };
	struct ib_device *dev = l->pd->device;
	const struct ib_gid_attr *attr;
	union ib_gid gid;
	int err = rdma_query_gid(dev, PORT, 0, &gid);

	if (err)
		return err;
	attr = rdma_find_gid_by_port(dev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, PORT, NULL);
	if (IS_ERR(attr))
		return PTR_ERR(attr);
	rdma_ah_set_grh(&ah, &gid, 0, attr->index, 64, 0);
	/* The kernel looks up the peer's MAC address for processes, not for its own consumers. */
	err = rdma_read_gid_l2_fields(attr, NULL, ah.roce.dmac);
	rdma_put_gid_attr(attr);
	return err ?: loop_connect(l->tx, l->rx, &ah) ?: loop_connect(l->rx, l->tx, &ah);
}

static void loop_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct loop *l = container_of(wc->wr_cqe, struct loop, cqe);

	if (wc->status != IB_WC_SUCCESS)
		l->err = -EIO;
	complete(&l->done);
}

static int loop_message(struct loop *l, unsigned int number)
{
	struct ib_sge from = { l->dma, BYTES, l->pd->local_dma_lkey };
	struct ib_sge to = { l->dma + BYTES, BYTES, l->pd->local_dma_lkey };
	struct ib_send_wr send = { .wr_cqe = &l->cqe, .sg_list = &from, .num_sge = 1 };
	struct ib_recv_wr recv = { .wr_cqe = &l->cqe, .sg_list = &to, .num_sge = 1 };
	int i, err;

	for (i = 0; i < BYTES; i++)
		l->buf[i] = number * 29 + i * 7 + (i >> 8) + 1;
	ib_dma_sync_single_for_device(l->pd->device, l->dma, 2 * BYTES, DMA_BIDIRECTIONAL);
	send.opcode = IB_WR_SEND;
	err = ib_post_recv(l->rx, &recv, NULL) ?: ib_post_send(l->tx, &send, NULL);
	for (i = 0; i < 2 && !err; i++)
		err = wait_for_completion_timeout(&l->done, 10 * HZ) ? l->err : -ETIMEDOUT;
	ib_dma_sync_single_for_cpu(l->pd->device, l->dma, 2 * BYTES, DMA_BIDIRECTIONAL);
	if (!err && memcmp(l->buf + BYTES, l->buf, BYTES))
		err = -EBADMSG;
	return err;
}

/* Also for what loop_add() has begun: what it has not created is NULL or an error. */
static void loop_remove(struct ib_device *dev, void *data)
{
	struct loop *l = data;

	if (!IS_ERR_OR_NULL(l->rx))
		ib_destroy_qp(l->rx);
	if (!IS_ERR_OR_NULL(l->tx))
		ib_destroy_qp(l->tx);
	if (!IS_ERR_OR_NULL(l->cq))
		ib_free_cq(l->cq);
	if (!IS_ERR_OR_NULL(l->pd))
		ib_dealloc_pd(l->pd);
	ib_dma_unmap_single(dev, l->dma, 2 * BYTES, DMA_BIDIRECTIONAL);
	kfree(l);
}

static int loop_add(struct ib_device *dev)
{
	/* One request on each QP, and one more for ib_drain_qp(). */
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	unsigned int n;
	struct loop *l;
	int err;

	if (strncmp(dev_name(&dev->dev), "urdma", 5))
		return -EOPNOTSUPP;
	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	l->cqe.done = loop_done;
	init_completion(&l->done);
	l->dma = ib_dma_map_single(dev, l->buf, 2 * BYTES, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, l->dma)) {
		pr_err("%s: no DMA mapping\n", dev_name(&dev->dev));
		kfree(l);
		return -ENOMEM;
	}
	l->pd = ib_alloc_pd(dev, 0);
	l->cq = ib_alloc_cq_any(dev, NULL, 8, IB_POLL_WORKQUEUE);
	err = PTR_ERR_OR_ZERO(l->pd) ?: PTR_ERR_OR_ZERO(l->cq);
	if (err)
		goto remove;
	init.send_cq = l->cq;
	init.recv_cq = l->cq;
	l->tx = ib_create_qp(l->pd, &init);
	l->rx = ib_create_qp(l->pd, &init);
	err = PTR_ERR_OR_ZERO(l->tx) ?: PTR_ERR_OR_ZERO(l->rx) ?: loop_connect_both(l);
	if (err)
		goto remove;
	for (n = 0; n < messages && !err; n++)
		err = loop_message(l, n);
	/* After a failure requests may still be under way. */
	ib_drain_qp(l->tx);
	ib_drain_qp(l->rx);
	if (err)
		goto remove;
	ib_set_client_data(dev, &loop_client, l);
	pr_info("%s: %u messages of %u bytes: all right\n", dev_name(&dev->dev), n, BYTES);
	return 0;
remove:
	pr_err("%s: failed: %d\n", dev_name(&dev->dev), err);
	loop_remove(dev, l);
	return err;
}

static struct ib_client loop_client = {
	.name = "kernel_loop",
	.add = loop_add,
	.remove = loop_remove,
};

static int __init loop_init(void)
{
	return ib_register_client(&loop_client);
}

static void __exit loop_exit(void)
{
	ib_unregister_client(&loop_client);
}

module_init(loop_init);
module_exit(loop_exit);
MODULE_DESCRIPTION("Example: two RC QPs in loopback on each urdma device");
MODULE_LICENSE("Dual BSD/GPL");
