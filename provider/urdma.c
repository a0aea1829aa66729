// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: match and context.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "urdma.h"

static void urdma_free_context(struct ibv_context *ibctx);

static const struct verbs_context_ops urdma_ops = {
	.alloc_mw = urdma_alloc_mw,
	.alloc_pd = urdma_alloc_pd,
	.attach_mcast = ibv_cmd_attach_mcast,
	.create_ah = urdma_create_ah,
	.create_cq = urdma_create_cq,
	.create_cq_ex = urdma_create_cq_ex,
	.create_qp = urdma_create_qp,
	.create_qp_ex = urdma_create_qp_ex,
	.create_srq = urdma_create_srq,
	.dealloc_mw = urdma_dealloc_mw,
	.dealloc_pd = urdma_dealloc_pd,
	.dereg_mr = urdma_dereg_mr,
	.destroy_ah = urdma_destroy_ah,
	.destroy_cq = urdma_destroy_cq,
	.destroy_qp = urdma_destroy_qp,
	.destroy_srq = urdma_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = urdma_free_context,
	.modify_qp = urdma_modify_qp,
	.modify_srq = urdma_modify_srq,
	.poll_cq = urdma_poll_cq,
	.post_recv = urdma_post_recv,
	.post_send = urdma_post_send,
	.post_srq_recv = urdma_post_srq_recv,
	.query_device_ex = urdma_query_device_ex,
	.query_port = urdma_query_port,
	.query_qp = urdma_query_qp,
	.query_srq = urdma_query_srq,
	.reg_mr = urdma_reg_mr,
	.req_notify_cq = urdma_req_notify_cq,
	.rereg_mr = urdma_rereg_mr,
};

static struct verbs_context *urdma_alloc_context(struct ibv_device *ibdev, int cmd_fd,
						 void *private_data)
{
	struct urdma_alloc_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct urdma_context *ctx;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, ibv_ctx, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	if (ibv_cmd_get_context(&ctx->ibv_ctx, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp)))
		goto err_uninit;

	ctx->db_size = resp.db_size;
	ctx->features = resp.features;
	ctx->opcodes = urdma_opcodes(resp.features);
	ctx->max_sq_sge = resp.max_sq_sge;
	ctx->max_rq_sge = resp.max_rq_sge;
	ctx->max_inline = resp.max_inline;
	ctx->log_max_sq = resp.log_max_sq;
	ctx->log_max_rq = resp.log_max_rq;
	ctx->log_max_cqe = resp.log_max_cqe;
	ctx->log_max_msg = resp.log_max_msg;
	ctx->log_max_qp = resp.log_max_qp;

	/* QP numbers have 24 bits; a kernel that says less than this has not said it. */
	if (!ctx->log_max_qp || ctx->log_max_qp > 24) {
		errno = EPROTO;
		goto err_uninit;
	}
	ctx->qp_table = calloc(1U << ctx->log_max_qp, sizeof(*ctx->qp_table));
	if (!ctx->qp_table)
		goto err_uninit;
	ctx->db = mmap(NULL, ctx->db_size, PROT_WRITE, MAP_SHARED, cmd_fd, resp.db_offset);
	if (ctx->db == MAP_FAILED)
		goto err_table;
	pthread_mutex_init(&ctx->qp_mutex, NULL);
	verbs_set_ops(&ctx->ibv_ctx, &urdma_ops);
	return &ctx->ibv_ctx;

err_table:
	free(ctx->qp_table);
err_uninit:
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
	return NULL;
}

static void urdma_free_context(struct ibv_context *ibctx)
{
	struct urdma_context *ctx = to_uctx(ibctx);

	munmap(ctx->db, ctx->db_size);
	free(ctx->qp_table);
	pthread_mutex_destroy(&ctx->qp_mutex);
	verbs_uninit_context(&ctx->ibv_ctx);
	free(ctx);
}

static struct verbs_device *urdma_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void urdma_uninit_device(struct verbs_device *vdev)
{
	free(vdev);
}

static const struct verbs_match_ent urdma_match_table[] = {
	VERBS_PCI_MATCH(URDMA_PCI_VENDOR_ID, URDMA_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops urdma_dev_ops = {
	.name = "urdma",
	.match_min_abi_version = URDMA_ABI_VERSION,
	.match_max_abi_version = URDMA_ABI_VERSION,
	.match_table = urdma_match_table,
	.alloc_device = urdma_alloc_device,
	.uninit_device = urdma_uninit_device,
	.alloc_context = urdma_alloc_context,
};

PROVIDER_DRIVER(urdma, urdma_dev_ops);
