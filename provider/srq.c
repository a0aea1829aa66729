// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: creation, modification and destruction of shared receive queues of both types.
 *
 * CQEs of an XRC SRQ have its number, because their QP may belong to another process or be gone. So
 * the context has a table of its XRC SRQs, which polling reads with the CQ locked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "urdma.h"

static bool urdma_srq_is_xrc(const struct urdma_srq *srq)
{
	return srq->vsrq.srq_type == IBV_SRQT_XRC;
}

static void urdma_srq_uninit(struct urdma_srq *srq)
{
	free(srq->free);
	urdma_wq_uninit(&srq->wq);
}

static int urdma_srq_init(const struct urdma_context *ctx, struct urdma_srq *srq, struct ibv_pd *pd,
			  struct ibv_srq_attr *attr)
{
	const struct urdma_wq_shape shape = {
		.wr = attr->max_wr,
		.log_max = ctx->log_max_rq,
		.wqe_bytes = URDMA_RQE_DATA_OFFSET + attr->max_sge * URDMA_SGE_SIZE,
		.more = sizeof(*srq->index),
		.pd = pd,
		.type = URDMA_RES_SRQ,
	};
	struct urdma_wq *wq = &srq->wq;
	uint32_t i;
	int err;

	if (!attr->max_wr || attr->max_sge > ctx->max_rq_sge)
		return EINVAL;
	err = urdma_wq_init(wq, &shape);
	if (err)
		return err;
	srq->free = calloc(1U << wq->log, sizeof(*srq->free));
	if (!srq->free) {
		urdma_wq_uninit(wq);
		return ENOMEM;
	}
	srq->index = (__le16 *)(wq->ring + ((size_t)1 << (wq->log + wq->log_stride)));
	/* The first place is taken first. */
	srq->num_free = 1U << wq->log;
	for (i = 0; i < srq->num_free; i++)
		srq->free[i] = srq->num_free - 1 - i;
	wq->wc_opcode = urdma_recv_wc_opcode;
	/* Grants all that the places can hold, even beyond the request. */
	wq->max_sge = urdma_rq_max_sge(ctx, wq);
	attr->max_wr = 1U << wq->log;
	attr->max_sge = wq->max_sge;
	return 0;
}

/* Fills in the memory's description, which both commands share. */
static struct urdma_create_srq_req urdma_srq_req(const struct urdma_wq *wq)
{
	return (struct urdma_create_srq_req){
		.buf_addr = (uintptr_t)wq->ring,
		.buf_len = wq->mem.bytes,
		.log_entries = wq->log,
		.log_stride = wq->log_stride,
	};
}

static int urdma_srq_exec(struct ibv_pd *pd, struct urdma_srq *srq, struct ibv_srq_attr *attr,
			  uint32_t *srqn)
{
	struct urdma_cmd_create_srq cmd = { .drv_payload = urdma_srq_req(&srq->wq) };
	struct urdma_cmd_create_srq_resp resp = {};
	struct ibv_srq_init_attr ask = { .attr = *attr };
	int err;

	err = ibv_cmd_create_srq(pd, &srq->vsrq.srq, &ask, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (err)
		return err;
	*attr = ask.attr;
	*srqn = resp.drv_payload.srqn;
	return 0;
}

/* No CQE can name the SRQ before it is in the table. */
static int urdma_xsrq_exec(struct ibv_context *ibctx, struct urdma_srq *srq,
			   const struct ibv_srq_init_attr_ex *attr, struct ibv_srq_attr *given,
			   uint32_t *srqn)
{
	struct urdma_cmd_create_xsrq cmd = { .drv_payload = urdma_srq_req(&srq->wq) };
	struct urdma_context *ctx = to_uctx(ibctx);
	struct urdma_cmd_create_xsrq_resp resp = {};
	struct ibv_srq_init_attr_ex ask = *attr;
	int err;

	ask.attr = *given;
	pthread_mutex_lock(&ctx->qp_mutex);
	err = ibv_cmd_create_srq_ex(ibctx, &srq->vsrq, &ask, &cmd.ibv_cmd, sizeof(cmd),
				    &resp.ibv_resp, sizeof(resp));
	if (!err) {
		*given = ask.attr;
		*srqn = resp.drv_payload.srqn;
		ctx->srq_table[*srqn & ctx->srq_mask] = srq;
	}
	pthread_mutex_unlock(&ctx->qp_mutex);
	return err;
}

/* For both types; the attributes have been checked. */
static struct ibv_srq *urdma_make_srq(struct ibv_context *ibctx, struct ibv_srq_init_attr_ex *attr,
				      bool xrc)
{
	struct urdma_context *ctx = to_uctx(ibctx);
	struct ibv_srq_attr given = attr->attr;
	struct urdma_srq *srq;
	uint32_t srqn;
	int err;

	err = ENOMEM;
	srq = urdma_zalloc(sizeof(*srq));
	if (!srq)
		goto err_errno;
	err = urdma_srq_init(ctx, srq, attr->pd, &given);
	if (err)
		goto err_free;
	if (xrc)
		err = urdma_xsrq_exec(ibctx, srq, attr, &given, &srqn);
	else
		err = urdma_srq_exec(attr->pd, srq, &given, &srqn);
	if (err)
		goto err_places;
	attr->attr = given;
	/* libibverbs does not do this for an SRQ of the extended verb. */
	srq->vsrq.srq.pd = attr->pd;
	srq->vsrq.srq.srq_context = attr->srq_context;
	urdma_wq_set_doorbell(&srq->wq, ctx->db + URDMA_DB_SRQ, srqn);
	urdma_pd_get(attr->pd);
	return &srq->vsrq.srq;

err_places:
	urdma_srq_uninit(srq);
err_free:
	free(srq);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_srq *urdma_create_srq_ex(struct ibv_context *ibctx, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc_mask = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD;
	struct urdma_context *ctx = to_uctx(ibctx);
	bool xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;
	int err = EOPNOTSUPP;

	if (!check_comp_mask(attr->comp_mask,
			     IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | (xrc ? xrc_mask : 0)))
		goto err_errno;
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && !xrc && attr->srq_type != IBV_SRQT_BASIC)
		goto err_errno;
	if (!(ctx->features & (xrc ? URDMA_RF_FEAT_XRC : URDMA_RF_FEAT_SRQ)))
		goto err_errno;
	err = EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
		goto err_errno;
	if (xrc && ((attr->comp_mask & xrc_mask) != xrc_mask || !attr->cq || !attr->xrcd))
		goto err_errno;
	return urdma_make_srq(ibctx, attr, xrc);

err_errno:
	errno = err;
	return NULL;
}

struct ibv_srq *urdma_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq = urdma_create_srq_ex(pd->context, &ex);

	if (srq)
		attr->attr = ex.attr;
	return srq;
}

int urdma_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srqn)
{
	struct urdma_srq *srq = to_usrq(ibsrq);

	/* Only an XRC SRQ has a number for programs. */
	if (!urdma_srq_is_xrc(srq))
		return EINVAL;
	*srqn = srq->vsrq.srq_num;
	return 0;
}

int urdma_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(srq, attr, mask, &cmd, sizeof(cmd));
}

int urdma_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

/* After the destruction the NIC writes no more CQEs of an XRC SRQ. Drops those not yet polled. */
static int urdma_destroy_xsrq(struct urdma_srq *srq)
{
	struct urdma_context *ctx = to_uctx(srq->vsrq.srq.context);
	struct urdma_cq *cq = to_ucq(srq->vsrq.cq);
	uint32_t srqn = srq->vsrq.srq_num;
	int err;

	/* Held until the number is free here too, because the kernel may reuse it at once. */
	pthread_mutex_lock(&ctx->qp_mutex);
	err = ibv_cmd_destroy_srq(&srq->vsrq.srq);
	if (!err) {
		urdma_lock(&cq->lock);
		urdma_cq_forget_srq(cq, srqn);
		ctx->srq_table[srqn & ctx->srq_mask] = NULL;
		urdma_unlock(&cq->lock);
	}
	pthread_mutex_unlock(&ctx->qp_mutex);
	return err;
}

int urdma_destroy_srq(struct ibv_srq *ibsrq)
{
	struct urdma_srq *srq = to_usrq(ibsrq);
	int err = urdma_srq_is_xrc(srq) ? urdma_destroy_xsrq(srq) : ibv_cmd_destroy_srq(ibsrq);

	if (err)
		return err;
	urdma_srq_uninit(srq);
	urdma_pd_put(ibsrq->pd);
	free(srq);
	return 0;
}
