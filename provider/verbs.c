// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: creation, change and destruction of objects.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

struct ibv_pd *urdma_alloc_pd(struct ibv_context *ctx)
{
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	struct urdma_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(ctx, &pd->ibv_pd, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return &pd->ibv_pd;
}

int urdma_dealloc_pd(struct ibv_pd *ibpd)
{
	int err = ibv_cmd_dealloc_pd(ibpd);

	if (err)
		return err;
	free(container_of(ibpd, struct urdma_pd, ibv_pd));
	return 0;
}

struct ibv_mr *urdma_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
			    int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct verbs_mr *vmr;
	struct ibv_reg_mr cmd;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_mr(pd, addr, length, hca_va, access, vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

int urdma_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;

	return ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr, access, pd, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
}

int urdma_dereg_mr(struct verbs_mr *vmr)
{
	int err = ibv_cmd_dereg_mr(vmr);

	if (err)
		return err;
	free(vmr);
	return 0;
}

struct ibv_mw *urdma_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_alloc_mw cmd;
	struct ibv_mw *mw;
	int err = EINVAL;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		goto err_errno;
	/* Windows are bound by work requests only. */
	err = EOPNOTSUPP;
	if (type != IBV_MW_TYPE_2 || !(to_uctx(pd->context)->features & URDMA_RF_FEAT_MW_2B))
		goto err_errno;
	err = ENOMEM;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		goto err_errno;
	err = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err)
		goto err_free;
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

/* Zeroed memory that begins with a cache line, for free(). */
static void *urdma_zalloc(size_t bytes)
{
	void *p = aligned_alloc(URDMA_CACHE_LINE, bytes);

	if (p)
		memset(p, 0, bytes);
	return p;
}

/* Zeroed pages for a ring; *bytes is rounded up to them. A child of fork() does not get them. */
static void *urdma_alloc_ring(size_t *bytes)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *ring;

	*bytes = align(*bytes, page);
	ring = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ring == MAP_FAILED)
		return NULL;
	if (ibv_dontfork_range(ring, *bytes)) {
		munmap(ring, *bytes);
		return NULL;
	}
	return ring;
}

static void urdma_free_ring(void *ring, size_t bytes)
{
	ibv_dofork_range(ring, bytes);
	munmap(ring, bytes);
}

/*
 * The NIC is told what has been consumed at each quarter of the ring, so as many entries may look
 * used to it that are not: the ring is a third larger than what is asked for, and then a power of
 * two.
 */
static struct urdma_cq *urdma_make_cq(struct ibv_context *ibctx,
				      const struct ibv_cq_init_attr_ex *attr)
{
	struct urdma_context *ctx = to_uctx(ibctx);
	struct ibv_cq_init_attr_ex ask = *attr;
	struct urdma_cmd_create_cq_resp resp = {};
	struct urdma_cmd_create_cq cmd = {};
	struct urdma_cq *cq;
	int err = EINVAL;

	if (attr->cqe == 0 || attr->cqe > 3U << (ctx->log_max_cqe - 2))
		goto err_errno;
	err = ENOMEM;
	cq = urdma_zalloc(sizeof(*cq));
	if (!cq)
		goto err_errno;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	cq->log = ctx->log_max_cqe > URDMA_MIN_CQ_LOG ? URDMA_MIN_CQ_LOG : ctx->log_max_cqe;
	while (3U << (cq->log - 2) < attr->cqe)
		cq->log++;
	cq->mask = (1U << cq->log) - 1;
	cq->phase_shift = 63 - cq->log;
	cq->db = ctx->db + URDMA_DB_CQ;
	cq->qp_table = ctx->qp_table;
	cq->qp_mask = (1U << ctx->log_max_qp) - 1;
	cq->ring_bytes = (size_t)URDMA_CQE_SIZE << cq->log;
	cq->ring = urdma_alloc_ring(&cq->ring_bytes);
	if (!cq->ring)
		goto err_free;

	cmd.buf_addr = (uintptr_t)cq->ring;
	cmd.buf_len = cq->ring_bytes;
	cmd.log_entries = cq->log;
	ask.cqe = 3U << (cq->log - 2);
	err = ibv_cmd_create_cq_ex(ibctx, &ask, &cq->vcq, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				   sizeof(resp), 0);
	if (err)
		goto err_ring;
	cq->cqn = resp.cqn;
	return cq;

err_ring:
	urdma_free_ring(cq->ring, cq->ring_bytes);
err_free:
	pthread_spin_destroy(&cq->lock);
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
	struct urdma_cq *cq;

	/* One that is told to be used by one thread at a time is locked all the same. */
	if (!check_comp_mask(attr->comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS) ||
	    !check_comp_mask(attr->wc_flags,
			     IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     !check_comp_mask(attr->flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = urdma_make_cq(ctx, attr);
	if (!cq)
		return NULL;
	urdma_set_poll_ops(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

int urdma_destroy_cq(struct ibv_cq *ibcq)
{
	struct urdma_cq *cq = to_ucq(ibcq);
	int err = ibv_cmd_destroy_cq(ibcq);

	if (err)
		return err;
	urdma_free_ring(cq->ring, cq->ring_bytes);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

/* As it is when nothing was posted yet. With the queue and its CQ locked, if others know them. */
static void urdma_wq_reset(struct urdma_wq *wq)
{
	wq->head = 0;
	wq->limit = wq->mask + 1;
	atomic_store(&wq->tail, 0);
}

/*
 * Shape of a work queue of at least wr WQEs of at least bytes, up to the limit of the device.
 * Behind the WQEs there is room for "more" bytes a WQE.
 */
static int urdma_wq_init(struct urdma_wq *wq, uint32_t wr, uint8_t log_max, uint32_t bytes,
			 uint32_t more)
{
	if (wr > 1U << log_max || bytes > 1U << URDMA_MAX_WQE_LOG)
		return EINVAL;
	wq->log = log_max > URDMA_MIN_WQ_LOG ? URDMA_MIN_WQ_LOG : log_max;
	while (1U << wq->log < wr)
		wq->log++;
	wq->mask = (1U << wq->log) - 1;
	wq->log_stride = URDMA_MIN_WQE_LOG;
	while (1U << wq->log_stride < bytes)
		wq->log_stride++;
	wq->stride = 1U << wq->log_stride;
	urdma_wq_reset(wq);

	wq->wr_id = calloc(1U << wq->log, sizeof(*wq->wr_id));
	if (!wq->wr_id)
		return ENOMEM;
	wq->ring_bytes = ((size_t)1 << (wq->log + wq->log_stride)) + ((size_t)more << wq->log);
	wq->ring = urdma_alloc_ring(&wq->ring_bytes);
	if (!wq->ring) {
		free(wq->wr_id);
		return ENOMEM;
	}
	pthread_spin_init(&wq->lock, PTHREAD_PROCESS_PRIVATE);
	return 0;
}

static void urdma_wq_uninit(struct urdma_wq *wq)
{
	pthread_spin_destroy(&wq->lock);
	urdma_free_ring(wq->ring, wq->ring_bytes);
	free(wq->wr_id);
}

static void urdma_wq_set_doorbell(struct urdma_wq *wq, void *db, uint32_t obj)
{
	wq->db = db;
	wq->db_word = FIELD_PREP(URDMA_DBW_OBJ, (uint64_t)obj);
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* SGEs that a receive WQE has room for. */
static uint32_t urdma_rq_max_sge(const struct urdma_context *ctx, const struct urdma_wq *rq)
{
	return min_u32((rq->stride - URDMA_RQE_DATA_OFFSET) / URDMA_SGE_SIZE, ctx->max_rq_sge);
}

static int urdma_rq_init(const struct urdma_context *ctx, struct urdma_wq *rq,
			 struct ibv_qp_cap *cap, struct ibv_srq *srq)
{
	int err;

	rq->wc_opcode = urdma_recv_wc_opcode;
	if (srq) {
		rq->srq = to_usrq(srq);
		rq->wr_id = rq->srq->wq.wr_id;
		/* All of an index, which is a place of the SRQ. And head is the limit, modulo 2^16.
		 */
		rq->mask = UINT16_MAX;
		pthread_spin_init(&rq->lock, PTHREAD_PROCESS_PRIVATE);
		return 0;
	}
	err = urdma_wq_init(rq, cap->max_recv_wr, ctx->log_max_rq,
			    URDMA_RQE_DATA_OFFSET + cap->max_recv_sge * URDMA_SGE_SIZE, 0);
	if (err)
		return err;
	rq->max_sge = urdma_rq_max_sge(ctx, rq);
	cap->max_recv_wr = 1U << rq->log;
	cap->max_recv_sge = rq->max_sge;
	return 0;
}

static void urdma_rq_uninit(struct urdma_wq *rq)
{
	if (rq->srq)
		pthread_spin_destroy(&rq->lock);
	else
		urdma_wq_uninit(rq);
}

static int urdma_qp_init_wqs(struct urdma_context *ctx, struct urdma_qp *qp, struct ibv_qp_cap *cap,
			     struct ibv_srq *srq)
{
	uint32_t data = qp->ud_opcodes ? URDMA_SQE_UD_DATA_OFFSET : URDMA_SQE_DATA_OFFSET;
	uint32_t bytes;
	int err;

	/* With an SRQ, what is asked for in receives does not count (volume 1, 11.2.5.1). */
	if (srq) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
	if (cap->max_send_sge > ctx->max_sq_sge || cap->max_recv_sge > ctx->max_rq_sge ||
	    cap->max_inline_data > ctx->max_inline)
		return EINVAL;
	bytes = cap->max_send_sge * URDMA_SGE_SIZE;
	if (bytes < cap->max_inline_data)
		bytes = cap->max_inline_data;
	err = urdma_wq_init(&qp->sq, cap->max_send_wr, ctx->log_max_sq, data + bytes, 0);
	if (err)
		return err;
	err = urdma_rq_init(ctx, &qp->rq, cap, srq);
	if (err) {
		urdma_wq_uninit(&qp->sq);
		return err;
	}

	qp->sq.wc_opcode = urdma_send_wc_opcode;
	/* What the slots hold beyond the wish is given too. */
	bytes = (1U << qp->sq.log_stride) - data;
	qp->sq.max_sge = min_u32(bytes / URDMA_SGE_SIZE, ctx->max_sq_sge);
	qp->max_inline = min_u32(bytes, ctx->max_inline);
	cap->max_send_wr = 1U << qp->sq.log;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->max_inline;
	return 0;
}

static void urdma_lock_cqs(struct urdma_qp *qp)
{
	struct urdma_cq *a = to_ucq(qp->vqp.qp.send_cq);
	struct urdma_cq *b = to_ucq(qp->vqp.qp.recv_cq);

	pthread_spin_lock(a < b ? &a->lock : &b->lock);
	if (a != b)
		pthread_spin_lock(a < b ? &b->lock : &a->lock);
}

static void urdma_unlock_cqs(struct urdma_qp *qp)
{
	struct urdma_cq *a = to_ucq(qp->vqp.qp.send_cq);
	struct urdma_cq *b = to_ucq(qp->vqp.qp.recv_cq);

	pthread_spin_unlock(&a->lock);
	if (a != b)
		pthread_spin_unlock(&b->lock);
}

/* With the CQs locked: completions of the QP that nobody has polled yet are dropped. */
static void urdma_forget_cqes(struct urdma_qp *qp)
{
	urdma_cq_forget_qp(to_ucq(qp->vqp.qp.send_cq), qp);
	if (qp->vqp.qp.recv_cq != qp->vqp.qp.send_cq)
		urdma_cq_forget_qp(to_ucq(qp->vqp.qp.recv_cq), qp);
}

/* Work requests that can be made by the extended verbs, by type. */
#define URDMA_UD_SEND_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define URDMA_UC_SEND_OPS \
	(URDMA_UD_SEND_OPS | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define URDMA_RC_SEND_OPS                                                              \
	(URDMA_UC_SEND_OPS | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ | \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |     \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)

/* Of a type that the device has; 0 of another. */
static uint64_t urdma_send_ops(const struct urdma_context *ctx, enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return URDMA_RC_SEND_OPS;
	case IBV_QPT_UC:
		return ctx->features & URDMA_RF_FEAT_UC ? URDMA_UC_SEND_OPS : 0;
	case IBV_QPT_UD:
		return ctx->features & URDMA_RF_FEAT_UD ? URDMA_UD_SEND_OPS : 0;
	default:
		return 0;
	}
}

static void urdma_qp_init_opcodes(const struct urdma_context *ctx, struct urdma_qp *qp,
				  enum ibv_qp_type type)
{
	/* The feature of UC, and that of UD, stands for all that the type has. */
	const uint32_t sends = 1U << URDMA_WR_SEND | 1U << URDMA_WR_SEND_IMM;

	if (type == IBV_QPT_RC)
		qp->opcodes = ctx->opcodes;
	else if (type == IBV_QPT_UC)
		qp->opcodes = sends | 1U << URDMA_WR_WRITE | 1U << URDMA_WR_WRITE_IMM;
	else
		qp->ud_opcodes = sends;
}

/* Flags of creation that a QP of this type may have. */
static uint32_t urdma_create_flags(const struct urdma_context *ctx, enum ibv_qp_type type)
{
	return type == IBV_QPT_UD && ctx->features & URDMA_RF_FEAT_MCAST
		       ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
		       : 0;
}

/* Only the extended command has a word for flags. */
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
	err = urdma_qp_init_wqs(ctx, qp, &attr->cap, attr->srq);
	if (err)
		goto err_free;
	qp->max_msg = 1ULL << ctx->log_max_msg;
	if (attr->sq_sig_all)
		qp->sqe0 |= URDMA_SQE0_SIGNALED;

	cmd.sq_addr = (uintptr_t)qp->sq.ring;
	cmd.rq_addr = (uintptr_t)qp->rq.ring;
	cmd.sq_len = qp->sq.ring_bytes;
	cmd.rq_len = qp->rq.ring_bytes;
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
	/* No CQE can speak of the QP before this. */
	ctx->qp_table[qp->qpn] = qp;
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		qp->vqp.comp_mask |= VERBS_QP_EX;
		urdma_set_wr_ops(qp);
	}
	return &qp->vqp.qp;

err_unlock:
	pthread_mutex_unlock(&ctx->qp_mutex);
	urdma_rq_uninit(&qp->rq);
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
	struct urdma_qp *qp = to_uqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int err;

	err = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (err || !(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RESET)
		return err;

	/* The NIC has forgotten what was posted, and starts again at index 0. */
	urdma_lock_cqs(qp);
	pthread_spin_lock(&qp->sq.lock);
	pthread_spin_lock(&qp->rq.lock);
	urdma_forget_cqes(qp);
	urdma_wq_reset(&qp->sq);
	urdma_wq_reset(&qp->rq);
	pthread_spin_unlock(&qp->rq.lock);
	pthread_spin_unlock(&qp->sq.lock);
	urdma_unlock_cqs(qp);
	return 0;
}

int urdma_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibqp, attr, mask, init, &cmd, sizeof(cmd));
}

int urdma_destroy_qp(struct ibv_qp *ibqp)
{
	struct urdma_context *ctx = to_uctx(ibqp->context);
	struct urdma_qp *qp = to_uqp(ibqp);
	int err;

	pthread_mutex_lock(&ctx->qp_mutex);
	err = ibv_cmd_destroy_qp(ibqp);
	if (err) {
		pthread_mutex_unlock(&ctx->qp_mutex);
		return err;
	}
	/* From now on there is no new CQE of this QP. */
	urdma_lock_cqs(qp);
	urdma_forget_cqes(qp);
	ctx->qp_table[qp->qpn] = NULL;
	urdma_unlock_cqs(qp);
	pthread_mutex_unlock(&ctx->qp_mutex);

	urdma_rq_uninit(&qp->rq);
	urdma_wq_uninit(&qp->sq);
	free(qp);
	return 0;
}

struct ibv_srq *urdma_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct urdma_context *ctx = to_uctx(pd->context);
	struct urdma_cmd_create_srq_resp resp = {};
	struct urdma_cmd_create_srq cmd = {};
	struct ibv_srq_init_attr ask = *attr;
	struct urdma_srq *srq;
	struct urdma_wq *wq;
	uint32_t i;
	int err = EOPNOTSUPP;

	if (!(ctx->features & URDMA_RF_FEAT_SRQ))
		goto err_errno;
	err = EINVAL;
	if (!attr->attr.max_wr || attr->attr.max_sge > ctx->max_rq_sge)
		goto err_errno;
	err = ENOMEM;
	srq = urdma_zalloc(sizeof(*srq));
	if (!srq)
		goto err_errno;
	wq = &srq->wq;
	err = urdma_wq_init(wq, attr->attr.max_wr, ctx->log_max_rq,
			    URDMA_RQE_DATA_OFFSET + attr->attr.max_sge * URDMA_SGE_SIZE,
			    sizeof(*srq->index));
	if (err)
		goto err_free;
	err = ENOMEM;
	srq->free = calloc(1U << wq->log, sizeof(*srq->free));
	if (!srq->free)
		goto err_wq;
	srq->index = (__le16 *)(wq->ring + ((size_t)1 << (wq->log + wq->log_stride)));
	/* The first place is taken first. */
	srq->num_free = 1U << wq->log;
	for (i = 0; i < srq->num_free; i++)
		srq->free[i] = srq->num_free - 1 - i;
	/* What the places hold beyond the wish is given too. */
	wq->max_sge = urdma_rq_max_sge(ctx, wq);
	ask.attr.max_wr = 1U << wq->log;
	ask.attr.max_sge = wq->max_sge;

	cmd.buf_addr = (uintptr_t)wq->ring;
	cmd.buf_len = wq->ring_bytes;
	cmd.log_entries = wq->log;
	cmd.log_stride = wq->log_stride;
	err = ibv_cmd_create_srq(pd, &srq->ibv_srq, &ask, &cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				 sizeof(resp));
	if (err)
		goto err_places;
	attr->attr = ask.attr;
	urdma_wq_set_doorbell(wq, ctx->db + URDMA_DB_SRQ, resp.srqn);
	return &srq->ibv_srq;

err_places:
	free(srq->free);
err_wq:
	urdma_wq_uninit(wq);
err_free:
	free(srq);
err_errno:
	errno = err;
	return NULL;
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

int urdma_destroy_srq(struct ibv_srq *ibsrq)
{
	struct urdma_srq *srq = to_usrq(ibsrq);
	int err = ibv_cmd_destroy_srq(ibsrq);

	if (err)
		return err;
	free(srq->free);
	urdma_wq_uninit(&srq->wq);
	free(srq);
	return 0;
}
