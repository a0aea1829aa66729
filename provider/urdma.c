// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: match and context.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "urdma.h"

static void urdma_free_context(struct ibv_context *ibctx);

static const struct verbs_context_ops urdma_ops = {
	.alloc_dm = urdma_alloc_dm,
	.alloc_mw = urdma_alloc_mw,
	.bind_mw = urdma_bind_mw,
	.alloc_parent_domain = urdma_alloc_parent_domain,
	.alloc_pd = urdma_alloc_pd,
	.alloc_td = urdma_alloc_td,
	.attach_mcast = ibv_cmd_attach_mcast,
	.close_xrcd = urdma_close_xrcd,
	.create_ah = urdma_create_ah,
	.create_cq = urdma_create_cq,
	.create_cq_ex = urdma_create_cq_ex,
	.create_qp = urdma_create_qp,
	.create_qp_ex = urdma_create_qp_ex,
	.create_srq = urdma_create_srq,
	.create_srq_ex = urdma_create_srq_ex,
	.dealloc_mw = urdma_dealloc_mw,
	.dealloc_pd = urdma_dealloc_pd,
	.dealloc_td = urdma_dealloc_td,
	.dereg_mr = urdma_dereg_mr,
	.destroy_ah = urdma_destroy_ah,
	.destroy_cq = urdma_destroy_cq,
	.destroy_qp = urdma_destroy_qp,
	.destroy_srq = urdma_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = urdma_free_context,
	.free_dm = urdma_free_dm,
	.get_srq_num = urdma_get_srq_num,
	.import_dm = urdma_import_dm,
	.import_mr = urdma_import_mr,
	.import_pd = urdma_import_pd,
	.modify_cq = urdma_modify_cq,
	.modify_qp = urdma_modify_qp,
	.modify_srq = urdma_modify_srq,
	.open_qp = urdma_open_qp,
	.open_xrcd = urdma_open_xrcd,
	.poll_cq = urdma_poll_cq,
	.post_recv = urdma_post_recv,
	.post_send = urdma_post_send,
	.post_srq_recv = urdma_post_srq_recv,
	.query_device_ex = urdma_query_device_ex,
	.query_port = urdma_query_port,
	.query_qp = urdma_query_qp,
	.query_qp_data_in_order = urdma_query_qp_data_in_order,
	.query_rt_values = urdma_query_rt_values,
	.query_srq = urdma_query_srq,
	.reg_dm_mr = urdma_reg_dm_mr,
	.reg_dmabuf_mr = urdma_reg_dmabuf_mr,
	.reg_mr = urdma_reg_mr,
	.req_notify_cq = urdma_req_notify_cq,
	.rereg_mr = urdma_rereg_mr,
	.resize_cq = urdma_resize_cq,
	.unimport_dm = urdma_unimport_dm,
	.unimport_mr = urdma_unimport_mr,
	.unimport_pd = urdma_unimport_pd,
};

/* The kernel's description of the device and of the context's doorbell page. */
static void urdma_take_limits(struct urdma_context *ctx,
			      const struct urdma_alloc_ucontext_resp *resp)
{
	ctx->db_size = resp->db_size;
	ctx->features = resp->features;
	ctx->opcodes = urdma_opcodes(resp->features);
	ctx->max_sq_sge = resp->max_sq_sge;
	ctx->max_rq_sge = resp->max_rq_sge;
	ctx->max_inline = resp->max_inline;
	ctx->log_max_sq = resp->log_max_sq;
	ctx->log_max_rq = resp->log_max_rq;
	ctx->log_max_cqe = resp->log_max_cqe;
	ctx->log_max_msg = resp->log_max_msg;
	ctx->log_max_qp = resp->log_max_qp;
	ctx->log_max_srq = resp->log_max_srq;
	/* A kernel that does not report the number of SRQs does not support XRC. */
	if (!ctx->log_max_srq)
		ctx->features &= ~URDMA_RF_FEAT_XRC;
}

/* Tables of QPs and XRC SRQs by number, and the doorbell page. */
static int urdma_init_context(struct urdma_context *ctx,
			      const struct urdma_alloc_ucontext_resp *resp, int cmd_fd)
{
	urdma_take_limits(ctx, resp);
	/* Numbers have 24 bits; log_max_qp 0 means that the response lacks the field. */
	if (!ctx->log_max_qp || ctx->log_max_qp > 24 || ctx->log_max_srq > 24) {
		errno = EPROTO;
		return errno;
	}
	ctx->qp_table = calloc(1U << ctx->log_max_qp, sizeof(*ctx->qp_table));
	if (!ctx->qp_table)
		return ENOMEM;
	ctx->srq_mask = (1U << ctx->log_max_srq) - 1;
	ctx->srq_table = calloc(1U << ctx->log_max_srq, sizeof(*ctx->srq_table));
	if (!ctx->srq_table)
		goto err_qps;
	ctx->db = mmap(NULL, ctx->db_size, PROT_WRITE, MAP_SHARED, cmd_fd, resp->db_offset);
	if (ctx->db == MAP_FAILED)
		goto err_srqs;
	pthread_mutex_init(&ctx->qp_mutex, NULL);
	verbs_set_ops(&ctx->ibv_ctx, &urdma_ops);
	return 0;

err_srqs:
	free(ctx->srq_table);
err_qps:
	free(ctx->qp_table);
	return errno;
}

static struct verbs_context *urdma_alloc_context(struct ibv_device *ibdev, int cmd_fd,
						 void *private_data)
{
	struct urdma_alloc_context_resp resp = {};
	struct ibv_get_context cmd = {};
	struct urdma_context *ctx;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, ibv_ctx, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	if (ibv_cmd_get_context(&ctx->ibv_ctx, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp)) ||
	    urdma_init_context(ctx, &resp.drv_payload, cmd_fd)) {
		verbs_uninit_context(&ctx->ibv_ctx);
		free(ctx);
		return NULL;
	}
	return &ctx->ibv_ctx;
}

/* Imports an existing context by its file. */
static struct verbs_context *urdma_import_context(struct ibv_device *ibdev, int cmd_fd)
{
	DECLARE_COMMAND_BUFFER_LINK(attr, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 1,
				    NULL);
	struct urdma_alloc_ucontext_resp resp = {};
	struct urdma_context *ctx;

	ctx = verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, ibv_ctx, RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;
	fill_attr_out_ptr(attr, URDMA_ATTR_QUERY_CONTEXT_RESP, &resp);
	if (ibv_cmd_query_context(&ctx->ibv_ctx.context, attr) ||
	    urdma_init_context(ctx, &resp, cmd_fd)) {
		verbs_uninit_context(&ctx->ibv_ctx);
		free(ctx);
		return NULL;
	}
	return &ctx->ibv_ctx;
}

static void urdma_free_context(struct ibv_context *ibctx)
{
	struct urdma_context *ctx = to_uctx(ibctx);

	munmap(ctx->db, ctx->db_size);
	free(ctx->srq_table);
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
	.import_context = urdma_import_context,
};

PROVIDER_DRIVER(urdma, urdma_dev_ops);
