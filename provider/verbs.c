// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma provider: creation, modification and destruction of objects. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "urdma.h"

int urdma_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp = {};
	size_t resp_size = sizeof(resp);
	uint64_t fw;
	int err;

	err = ibv_cmd_query_device_any(ctx, input, attr, attr_size, &resp, &resp_size);
	if (err)
		return err;
	fw = resp.base.fw_ver;
	snprintf(attr->orig_attr.fw_ver, sizeof(attr->orig_attr.fw_ver), "%u.%u",
		 (unsigned int)(fw >> 32), (unsigned int)(fw >> 16) & 0xffff);
	return 0;
}

int urdma_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ctx, port, attr, &cmd, sizeof(cmd));
}

/* Completes a registration: err is the kernel's result. */
struct ibv_mr *urdma_mr_made(struct ibv_pd *pd, struct verbs_mr *vmr, int err)
{
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	/* urdma_dereg_mr() needs it; libibverbs sets it again after this */
	vmr->ibv_mr.pd = pd;
	urdma_pd_get(pd);
	return &vmr->ibv_mr;
}

struct ibv_mr *urdma_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
			    int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	return urdma_mr_made(pd, vmr, err);
}

struct ibv_mr *urdma_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				   int fd, int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, vmr, NULL);
	return urdma_mr_made(pd, vmr, err);
}

int urdma_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;
	int err;

	err = ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr, access, pd, &cmd,
			       sizeof(cmd), &resp, sizeof(resp));
	if (!err && flags & IBV_REREG_MR_CHANGE_PD) {
		urdma_pd_get(pd);
		urdma_pd_put(vmr->ibv_mr.pd);
	}
	return err;
}

int urdma_dereg_mr(struct verbs_mr *vmr)
{
	int err = ibv_cmd_dereg_mr(vmr);

	if (err)
		return err;
	urdma_pd_put(vmr->ibv_mr.pd);
	free(vmr);
	return 0;
}

struct ibv_mw *urdma_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	uint64_t needed = type == IBV_MW_TYPE_1 ? URDMA_RF_FEAT_MW_1 : URDMA_RF_FEAT_MW_2B;
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw;
	int err = EINVAL;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		goto err_errno;
	err = EOPNOTSUPP;
	if (!(to_uctx(pd->context)->features & needed))
		goto err_errno;
	err = ENOMEM;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		goto err_errno;
	err = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto err_free;
	urdma_pd_get(pd);
	return mw;

err_free:
	free(mw);
err_errno:
	errno = err;
	return NULL;
}

int urdma_dealloc_mw(struct ibv_mw *mw)
{
	int err = ibv_cmd_dealloc_mw(mw);

	if (err)
		return err;
	urdma_pd_put(mw->pd);
	free(mw);
	return 0;
}

struct ibv_ah *urdma_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct urdma_cmd_create_ah_resp resp = {};
	struct urdma_ah *ah;
	int err, i;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	err = ibv_cmd_create_ah(pd, &ah->ibv_ah, attr, &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	for (i = 0; i < 4; i++)
		ah->av[i] = htole64(resp.av[2 * i] | (uint64_t)resp.av[2 * i + 1] << 32);
	return &ah->ibv_ah;
}

int urdma_destroy_ah(struct ibv_ah *ibah)
{
	int err = ibv_cmd_destroy_ah(ibah);

	if (err)
		return err;
	free(to_uah(ibah));
	return 0;
}

/*
 * The NIC gets the consumer index at each quarter of the ring, so up to a quarter of the entries
 * may look used to it although they are free. So the ring is at least a third larger than
 * requested, rounded up to a power of two.
 */
static uint32_t urdma_cq_size(uint8_t log)
{
	return 3U << (log - 2);
}

static uint8_t urdma_cq_log(const struct urdma_context *ctx, uint32_t cqe)
{
	uint8_t log = ctx->log_max_cqe > URDMA_MIN_CQ_LOG ? URDMA_MIN_CQ_LOG : ctx->log_max_cqe;

	while (urdma_cq_size(log) < cqe)
		log++;
	return log;
}

static struct urdma_cq *urdma_make_cq(struct ibv_context *ibctx,
				      const struct ibv_cq_init_attr_ex *attr)
{
	struct urdma_context *ctx = to_uctx(ibctx);
	struct ibv_cq_init_attr_ex ask = *attr;
	struct urdma_cmd_create_cq_resp resp = {};
	struct urdma_cmd_create_cq cmd = {};
	struct urdma_cq *cq;
	bool with_domain = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD;
	bool single = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
		      attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	struct urdma_ring mem;
	int err = EINVAL;
	uint8_t log;

	if (attr->cqe == 0 || attr->cqe > urdma_cq_size(ctx->log_max_cqe))
		goto err_errno;
	if (with_domain && (!attr->parent_domain || !to_upd(attr->parent_domain)->contained))
		goto err_errno;
	err = ENOMEM;
	cq = urdma_zalloc(sizeof(*cq));
	if (!cq)
		goto err_errno;
	cq->domain = with_domain ? attr->parent_domain : NULL;
	urdma_lock_init(&cq->lock, !single && !(cq->domain && urdma_pd_has_td(cq->domain)));
	log = urdma_cq_log(ctx, attr->cqe);
	cq->db = ctx->db + URDMA_DB_CQ;
	cq->qp_table = ctx->qp_table;
	cq->qp_mask = (1U << ctx->log_max_qp) - 1;
	cq->srq_table = ctx->srq_table;
	cq->srq_mask = ctx->srq_mask;
	mem.bytes = (size_t)URDMA_CQE_SIZE << log;
	err = urdma_alloc_ring(&mem, cq->domain, URDMA_RES_CQ);
	if (err)
		goto err_free;
	urdma_cq_set_ring(cq, &mem, log);

	cmd.buf_addr = (uintptr_t)mem.at;
	cmd.buf_len = mem.bytes;
	cmd.log_entries = log;
	ask.cqe = urdma_cq_size(log);
	/* The kernel does not know parent domains. */
	ask.comp_mask &= ~IBV_CQ_INIT_ATTR_MASK_PD;
	err = ibv_cmd_create_cq_ex(ibctx, &ask, &cq->vcq, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				   sizeof(resp), 0);
	if (err)
		goto err_ring;
	cq->cqn = resp.cqn;
	if (cq->domain)
		urdma_pd_get(cq->domain);
	return cq;

err_ring:
	urdma_free_ring(&cq->mem);
err_free:
	urdma_lock_destroy(&cq->lock);
	free(cq);
err_errno:
	errno = err;
	return NULL;
}

struct ibv_cq *urdma_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel,
			       int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct urdma_cq *cq = urdma_make_cq(ctx, &attr);

	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *urdma_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	struct urdma_clock clock = {};
	struct urdma_cq *cq;
	int err;

	if (to_uctx(ctx)->features & URDMA_RF_FEAT_CQ_MODIFY)
		flags |= IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	if (!check_comp_mask(attr->comp_mask,
			     IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    !check_comp_mask(attr->wc_flags,
			     IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
				     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     !check_comp_mask(attr->flags, flags))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) {
		err = urdma_clock_init(ctx, &clock);
		if (err) {
			errno = err;
			return NULL;
		}
	}
	cq = urdma_make_cq(ctx, attr);
	if (!cq)
		return NULL;
	cq->clock = clock;
	urdma_set_poll_ops(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/*
 * Polling continues meanwhile in the old ring, and changes to the new one when it finds a CQE
 * there. ci is the consumer index, and may be out of date.
 */
static int urdma_replace_ring(struct urdma_cq *cq, uint8_t log, uint32_t ci)
{
	struct urdma_ring mem = { .bytes = (size_t)URDMA_CQE_SIZE << log }, old = cq->mem;
	struct urdma_cmd_resize_cq_resp resp = {};
	struct urdma_cmd_resize_cq cmd = {};
	int err;

	err = urdma_alloc_ring(&mem, cq->domain, URDMA_RES_CQ);
	if (err)
		return err;
	urdma_lock(&cq->lock);
	cq->next = mem;
	cq->next_log = log;
	urdma_unlock(&cq->lock);
	cmd.buf_addr = (uintptr_t)mem.at;
	cmd.buf_len = mem.bytes;
	cmd.log_entries = log;
	cmd.ci = ci;
	err = ibv_cmd_resize_cq(&cq->vcq.cq, urdma_cq_size(log), &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	urdma_lock(&cq->lock);
	if (!err && cq->next.at)
		urdma_cq_change_ring(cq, resp.base);
	cq->next.at = NULL;
	urdma_unlock(&cq->lock);
	/* Polling may have changed to the new ring even if the command failed. */
	urdma_free_ring(cq->mem.at == mem.at ? &old : &mem);
	return err;
}

/*
 * Keeps the ring if its size also fits the new number; else replaces it. qp_mutex keeps other
 * threads from dropping CQEs of a QP or an SRQ, and from resizing, meanwhile.
 */
int urdma_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct urdma_context *ctx = to_uctx(ibcq->context);
	struct urdma_cq *cq = to_ucq(ibcq);
	uint32_t ci;
	uint8_t log;
	int err = 0;

	if (cqe < 1 || (uint32_t)cqe > urdma_cq_size(ctx->log_max_cqe))
		return EINVAL;
	log = urdma_cq_log(ctx, cqe);
	pthread_mutex_lock(&ctx->qp_mutex);
	urdma_lock(&cq->lock);
	if (urdma_cq_pending(cq) > (uint32_t)cqe)
		err = EINVAL;
	else if (log < cq->log)
		/* From now on the index is sent to the NIC often enough for both rings. */
		cq->slack = ((1U << log) - 1) / 4;
	ci = cq->base + cq->ci;
	urdma_unlock(&cq->lock);
	if (!err && log != cq->log)
		err = urdma_replace_ring(cq, log, ci);
	urdma_lock(&cq->lock);
	cq->slack = cq->mask / 4;
	urdma_unlock(&cq->lock);
	pthread_mutex_unlock(&ctx->qp_mutex);
	return err;
}

int urdma_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd;

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

int urdma_destroy_cq(struct ibv_cq *ibcq)
{
	struct urdma_cq *cq = to_ucq(ibcq);
	int err = ibv_cmd_destroy_cq(ibcq);

	if (err)
		return err;
	urdma_free_ring(&cq->mem);
	if (cq->domain)
		urdma_pd_put(cq->domain);
	urdma_lock_destroy(&cq->lock);
	free(cq);
	return 0;
}

static int urdma_rq_init(const struct urdma_context *ctx, struct urdma_qp *qp,
			 struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_cap *cap = &attr->cap;
	const struct urdma_wq_shape shape = {
		.wr = cap->max_recv_wr,
		.log_max = ctx->log_max_rq,
		.wqe_bytes = URDMA_RQE_DATA_OFFSET + cap->max_recv_sge * URDMA_SGE_SIZE,
		.pd = attr->pd,
		.type = URDMA_RES_QP,
	};
	struct urdma_wq *rq = &qp->rq;
	int err;

	rq->wc_opcode = urdma_recv_wc_opcode;
	if (attr->qp_type == IBV_QPT_XRC_SEND || attr->srq) {
		urdma_wq_init_closed(rq);
		if (attr->qp_type == IBV_QPT_XRC_SEND)
			return 0;
		/* The mask keeps all bits of an index, which is a place of the SRQ. */
		rq->srq = to_usrq(attr->srq);
		rq->wr_id = rq->srq->wq.wr_id;
		return 0;
	}
	err = urdma_wq_init(rq, &shape);
	if (err)
		return err;
	rq->max_sge = urdma_rq_max_sge(ctx, rq);
	cap->max_recv_wr = 1U << rq->log;
	cap->max_recv_sge = rq->max_sge;
	return 0;
}

static int urdma_qp_init_wqs(struct urdma_context *ctx, struct urdma_qp *qp,
			     struct ibv_qp_init_attr_ex *attr)
{
	uint32_t data =
		attr->qp_type == IBV_QPT_UD ? URDMA_SQE_UD_DATA_OFFSET : URDMA_SQE_DATA_OFFSET;
	struct ibv_qp_cap *cap = &attr->cap;
	struct urdma_wq_shape shape = {
		.wr = cap->max_send_wr,
		.log_max = ctx->log_max_sq,
		.pd = attr->pd,
		.type = URDMA_RES_QP,
	};
	uint32_t bytes;
	int err;

	/* With an SRQ, the requested receive limits are ignored (volume 1, 11.2.5.1). */
	if (attr->srq || attr->qp_type == IBV_QPT_XRC_SEND) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
	if (cap->max_send_sge > ctx->max_sq_sge || cap->max_recv_sge > ctx->max_rq_sge ||
	    cap->max_inline_data > ctx->max_inline)
		return EINVAL;
	bytes = cap->max_send_sge * URDMA_SGE_SIZE;
	if (bytes < cap->max_inline_data)
		bytes = cap->max_inline_data;
	shape.wqe_bytes = data + bytes;
	err = urdma_wq_init(&qp->sq, &shape);
	if (err)
		return err;
	err = urdma_rq_init(ctx, qp, attr);
	if (err) {
		urdma_wq_uninit(&qp->sq);
		return err;
	}

	qp->sq.wc_opcode = urdma_send_wc_opcode;
	/* Grants all that the slots can hold, even beyond the request. */
	bytes = (1U << qp->sq.log_stride) - data;
	qp->sq.max_sge = min_u32(bytes / URDMA_SGE_SIZE, ctx->max_sq_sge);
	qp->max_inline = min_u32(bytes, ctx->max_inline);
	cap->max_send_wr = 1U << qp->sq.log;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->max_inline;
	return 0;
}

/* An XRC initiator QP has no receive queue, even if the program named a receive CQ. */
static struct ibv_cq *urdma_recv_cq(const struct urdma_qp *qp)
{
	const struct ibv_qp *ibqp = &qp->vqp.qp;

	return ibqp->qp_type == IBV_QPT_XRC_SEND ? ibqp->send_cq : ibqp->recv_cq;
}

static void urdma_lock_cqs(struct urdma_qp *qp)
{
	struct urdma_cq *a = to_ucq(qp->vqp.qp.send_cq);
	struct urdma_cq *b = to_ucq(urdma_recv_cq(qp));

	urdma_lock(a < b ? &a->lock : &b->lock);
	if (a != b)
		urdma_lock(a < b ? &b->lock : &a->lock);
}

static void urdma_unlock_cqs(struct urdma_qp *qp)
{
	struct urdma_cq *a = to_ucq(qp->vqp.qp.send_cq);
	struct urdma_cq *b = to_ucq(urdma_recv_cq(qp));

	urdma_unlock(&a->lock);
	if (a != b)
		urdma_unlock(&b->lock);
}

/* With the CQs locked: drops completions of the QP not yet polled. */
static void urdma_forget_cqes(struct urdma_qp *qp)
{
	urdma_cq_forget_qp(to_ucq(qp->vqp.qp.send_cq), qp);
	if (urdma_recv_cq(qp) != qp->vqp.qp.send_cq)
		urdma_cq_forget_qp(to_ucq(qp->vqp.qp.recv_cq), qp);
}

/* Work requests of the extended verbs, by QP type. */
#define URDMA_UD_SEND_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define URDMA_UC_SEND_OPS \
	(URDMA_UD_SEND_OPS | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define URDMA_RC_SEND_OPS                                                              \
	(URDMA_UC_SEND_OPS | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ | \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |     \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)

/* For RC and XRC. */
static uint64_t urdma_rc_send_ops(const struct urdma_context *ctx)
{
	return URDMA_RC_SEND_OPS |
	       (ctx->features & URDMA_RF_FEAT_FLUSH ? IBV_QP_EX_WITH_FLUSH : 0) |
	       (ctx->features & URDMA_RF_FEAT_ATOMIC_WRITE ? IBV_QP_EX_WITH_ATOMIC_WRITE : 0);
}

/* 0 for a QP type that the device does not support. */
static uint64_t urdma_send_ops(const struct urdma_context *ctx, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return urdma_rc_send_ops(ctx);
	case IBV_QPT_UC:
		return ctx->features & URDMA_RF_FEAT_UC ? URDMA_UC_SEND_OPS : 0;
	case IBV_QPT_UD:
		return ctx->features & URDMA_RF_FEAT_UD ? URDMA_UD_SEND_OPS : 0;
	case IBV_QPT_XRC_SEND:
		return ctx->features & URDMA_RF_FEAT_XRC ? urdma_rc_send_ops(ctx) : 0;
	default:
		return 0;
	}
}

static void urdma_qp_init_opcodes(const struct urdma_context *ctx, struct urdma_qp *qp,
				  enum ibv_qp_type type)
{
	/* The feature bits UC and UD each include all opcodes of the type. */
	const uint32_t sends = 1U << URDMA_WR_SEND | 1U << URDMA_WR_SEND_IMM;

	switch (type) {
	case IBV_QPT_UC:
		qp->opcodes = sends | 1U << URDMA_WR_WRITE | 1U << URDMA_WR_WRITE_IMM;
		break;
	case IBV_QPT_UD:
		qp->opcodes = sends;
		break;
	default: /* RC, XRC_SEND */
		qp->opcodes = ctx->opcodes;
		break;
	}
	if (type == IBV_QPT_RC || type == IBV_QPT_UC)
		qp->plain_opcodes = qp->opcodes;
}

/* Creation flags that this QP type supports. */
static uint32_t urdma_create_flags(const struct urdma_context *ctx, enum ibv_qp_type type)
{
	return type == IBV_QPT_UD && ctx->features & URDMA_RF_FEAT_MCAST
		       ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
		       : 0;
}

/* Only the extended command has a flags field. */
static int urdma_qp_exec(struct ibv_context *ibctx, struct urdma_qp *qp,
			 struct ibv_qp_init_attr_ex *ask, struct urdma_cmd_create_qp *cmd)
{
	struct urdma_cmd_create_qp_ex cmd_ex = { .drv_payload = cmd->drv_payload };
	struct urdma_cmd_create_qp_ex_resp resp_ex = {};
	struct urdma_cmd_create_qp_resp resp = {};
	int err;

	if (ask->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) {
		err = ibv_cmd_create_qp_ex2(ibctx, &qp->vqp, ask, &cmd_ex.ibv_cmd, sizeof(cmd_ex),
					    &resp_ex.ibv_resp, sizeof(resp_ex));
		qp->qpn = resp_ex.drv_payload.qpn;
	} else {
		err = ibv_cmd_create_qp_ex(ibctx, &qp->vqp, ask, &cmd->ibv_cmd, sizeof(*cmd),
					   &resp.ibv_resp, sizeof(resp));
		qp->qpn = resp.drv_payload.qpn;
	}
	return err;
}

struct ibv_qp *urdma_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct urdma_context *ctx = to_uctx(ibctx);
	struct urdma_cmd_create_qp cmd = {};
	struct ibv_qp_init_attr_ex ask;
	struct ibv_qp_cap wish = attr->cap;
	uint64_t send_ops = urdma_send_ops(ctx, attr->qp_type);
	struct urdma_qp *qp;
	int err = EOPNOTSUPP;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return urdma_create_target(ibctx, attr);
	if (!send_ops ||
	    !check_comp_mask(attr->comp_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
						      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		goto err_errno;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    attr->create_flags & ~urdma_create_flags(ctx, attr->qp_type))
		goto err_errno;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    !check_comp_mask(attr->send_ops_flags, send_ops))
		goto err_errno;
	err = EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
		goto err_errno;
	err = ENOMEM;
	qp = urdma_zalloc(sizeof(*qp));
	if (!qp)
		goto err_errno;
	urdma_qp_init_opcodes(ctx, qp, attr->qp_type);
	err = urdma_qp_init_wqs(ctx, qp, attr);
	if (err)
		goto err_free;
	qp->max_msg = 1ULL << ctx->log_max_msg;
	if (attr->sq_sig_all)
		qp->sqe0 |= URDMA_SQE0_SIGNALED;

	cmd.sq_addr = (uintptr_t)qp->sq.ring;
	cmd.rq_addr = (uintptr_t)qp->rq.ring;
	cmd.sq_len = qp->sq.mem.bytes;
	cmd.rq_len = qp->rq.mem.bytes;
	cmd.sq_log_entries = qp->sq.log;
	cmd.sq_log_stride = qp->sq.log_stride;
	cmd.rq_log_entries = qp->rq.log;
	cmd.rq_log_stride = qp->rq.log_stride;

	ask = *attr;
	if (!(ask.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) || !ask.create_flags)
		ask.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	pthread_mutex_lock(&ctx->qp_mutex);
	err = urdma_qp_exec(ibctx, qp, &ask, &cmd);
	if (err)
		goto err_unlock;
	urdma_wq_set_doorbell(&qp->sq, ctx->db + URDMA_DB_SQ, qp->qpn);
	urdma_wq_set_doorbell(&qp->rq, ctx->db + URDMA_DB_RQ, qp->qpn);
	/* No CQE can name the QP before this. */
	ctx->qp_table[qp->qpn] = qp;
	pthread_mutex_unlock(&ctx->qp_mutex);
	urdma_pd_get(attr->pd);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->vqp.comp_mask |= VERBS_QP_EX;
		urdma_set_wr_ops(qp);
	}
	return &qp->vqp.qp;

err_unlock:
	pthread_mutex_unlock(&ctx->qp_mutex);
	urdma_wq_uninit(&qp->rq);
	urdma_wq_uninit(&qp->sq);
err_free:
	free(qp);
err_errno:
	attr->cap = wish;
	errno = err;
	return NULL;
}

struct ibv_qp *urdma_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = urdma_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

int urdma_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct urdma_context *ctx = to_uctx(ibqp->context);
	struct urdma_qp *qp = to_uqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int err;

	err = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (err || !(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RESET ||
	    ibqp->qp_type == IBV_QPT_XRC_RECV)
		return err;

	/*
	 * The NIC has dropped the posted WQEs and restarts at index 0. During a resize, CQEs of the
	 * QP may be in both rings of a CQ, so qp_mutex excludes a resize here.
	 */
	pthread_mutex_lock(&ctx->qp_mutex);
	urdma_lock_cqs(qp);
	urdma_lock(&qp->sq.lock);
	urdma_lock(&qp->rq.lock);
	urdma_forget_cqes(qp);
	urdma_wq_reset(&qp->sq);
	urdma_wq_reset(&qp->rq);
	urdma_unlock(&qp->rq.lock);
	urdma_unlock(&qp->sq.lock);
	urdma_unlock_cqs(qp);
	pthread_mutex_unlock(&ctx->qp_mutex);
	return 0;
}

int urdma_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibqp, attr, mask, init, &cmd, sizeof(cmd));
}

/* The order of a message's data in host memory: docs/hardware-interface.md, section 13. */
int urdma_query_qp_data_in_order(struct ibv_qp *ibqp, enum ibv_wr_opcode op, uint32_t flags)
{
	if (ibqp->qp_type == IBV_QPT_UD)
		return 0;
	switch (op) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		break;
	default:
		return 0;
	}
	return flags & IBV_QUERY_QP_DATA_IN_ORDER_RETURN_CAPS
		       ? IBV_QUERY_QP_DATA_IN_ORDER_WHOLE_MSG |
				 IBV_QUERY_QP_DATA_IN_ORDER_ALIGNED_128_BYTES
		       : 1;
}

int urdma_destroy_qp(struct ibv_qp *ibqp)
{
	struct urdma_context *ctx = to_uctx(ibqp->context);
	struct urdma_qp *qp = to_uqp(ibqp);
	int err;

	if (ibqp->qp_type == IBV_QPT_XRC_RECV)
		return urdma_destroy_target(qp);
	pthread_mutex_lock(&ctx->qp_mutex);
	err = ibv_cmd_destroy_qp(ibqp);
	if (err) {
		pthread_mutex_unlock(&ctx->qp_mutex);
		return err;
	}
	/* From now on the NIC writes no CQE of this QP. */
	urdma_lock_cqs(qp);
	urdma_forget_cqes(qp);
	ctx->qp_table[qp->qpn] = NULL;
	urdma_unlock_cqs(qp);
	pthread_mutex_unlock(&ctx->qp_mutex);

	urdma_wq_uninit(&qp->rq);
	urdma_wq_uninit(&qp->sq);
	urdma_pd_put(ibqp->pd);
	free(qp);
	return 0;
}
