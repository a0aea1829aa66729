/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * urdma provider: objects.
 *
 * Locks. A CQ's lock covers its ring and consumer index, the table of QPs as polling sees it, and
 * the tails that polling moves in work queues. A work queue's lock covers its head and slots. The
 * order is qp_mutex, CQs by ascending address, SQ, RQ.
 */
#ifndef URDMA_PROVIDER_H
#define URDMA_PROVIDER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>
#include <util/util.h>

#include "urdma-abi.h"
#include "kernel-abi/urdma-abi.h"
#include "urdma_hw.h"

DECLARE_DRV_CMD(urdma_alloc_context, IB_USER_VERBS_CMD_GET_CONTEXT, empty,
		urdma_alloc_ucontext_resp);
DECLARE_DRV_CMD(urdma_cmd_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ, urdma_create_cq_req,
		urdma_create_cq_resp);
DECLARE_DRV_CMD(urdma_cmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP, urdma_create_qp_req,
		urdma_create_qp_resp);

#define URDMA_QP_TABLE_LOG  8
#define URDMA_QP_TABLE_SIZE (1 << URDMA_QP_TABLE_LOG)

/* A WQE is a slot of 2^6 to 2^9 bytes. */
#define URDMA_MIN_WQE_LOG 6
#define URDMA_MAX_WQE_LOG 9
/* Elements that the largest slot could hold */
#define URDMA_MAX_SGE (((1 << URDMA_MAX_WQE_LOG) - URDMA_RQE_DATA_OFFSET) / URDMA_SGE_SIZE)
/* Smallest rings: a page of CQEs, and enough WQEs that a slot more or less does not matter. */
#define URDMA_MIN_CQ_LOG 7
#define URDMA_MIN_WQ_LOG 4

struct urdma_context {
	struct verbs_context ibv_ctx;
	void *db;
	uint32_t db_size;
	uint64_t features;
	uint32_t max_sq_sge;
	uint32_t max_rq_sge;
	uint32_t max_inline;
	uint8_t log_max_sq;
	uint8_t log_max_rq;
	uint8_t log_max_cqe;
	uint8_t log_max_msg;
	uint8_t log_max_qp;

	/* held over creation and destruction, so that a number is not given again in between */
	pthread_mutex_t qp_mutex;
	/* by QP number: a table of tables, made as they are needed and kept */
	struct urdma_qp ***qp_table;
};

struct urdma_pd {
	struct ibv_pd ibv_pd;
};

struct urdma_cqe {
	__le64 w[URDMA_CQE_SIZE / 8];
};

struct urdma_cq {
	struct verbs_cq vcq;
	pthread_spinlock_t lock;
	struct urdma_cqe *ring;
	size_t ring_bytes;
	uint32_t cqn;
	uint8_t log;
	/* consumer index, free running, and what the NIC has been told of it */
	uint32_t ci;
	uint32_t told;
	/* of extended polling: the completion that is looked at, and the cycle when it was made */
	struct ibv_wc wc;
	uint64_t cycles;
};

struct urdma_wq {
	pthread_spinlock_t lock;
	uint8_t *ring;
	size_t ring_bytes;
	uint64_t *wr_id;
	uint32_t max_sge;
	uint8_t log;
	uint8_t log_stride;
	/* next index to post */
	uint16_t head;
	/* SQ: the WQE that is being made (the one before head), and its opcode */
	__le64 *wqe;
	uint32_t opcode;
	/* all before it are completed; moved by polling, which does not hold this lock */
	_Atomic(uint16_t) tail;
};

struct urdma_qp {
	struct verbs_qp vqp;
	uint32_t qpn;
	bool sig_all;
	uint32_t max_inline;
	struct urdma_wq sq;
	struct urdma_wq rq;
	/* extended posting, with the SQ locked: where the batch began, and its first error */
	uint16_t batch;
	int batch_err;
};

static inline struct urdma_context *to_uctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct urdma_context, ibv_ctx.context);
}

static inline struct urdma_cq *to_ucq(struct ibv_cq *cq)
{
	return container_of(cq, struct urdma_cq, vcq.cq);
}

static inline struct urdma_qp *to_uqp(struct ibv_qp *qp)
{
	return container_of(qp, struct urdma_qp, vqp.qp);
}

/* verbs.c */
int urdma_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size);
int urdma_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
struct ibv_pd *urdma_alloc_pd(struct ibv_context *ctx);
int urdma_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *urdma_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
			    int access);
int urdma_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access);
int urdma_dereg_mr(struct verbs_mr *vmr);
struct ibv_mw *urdma_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int urdma_dealloc_mw(struct ibv_mw *mw);
struct ibv_cq *urdma_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel,
			       int comp_vector);
struct ibv_cq_ex *urdma_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int urdma_destroy_cq(struct ibv_cq *cq);
struct ibv_qp *urdma_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *urdma_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int urdma_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int urdma_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init);
int urdma_destroy_qp(struct ibv_qp *qp);

/* datapath.c */
int urdma_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int urdma_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int urdma_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int urdma_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void urdma_set_wr_ops(struct urdma_qp *qp);
void urdma_set_poll_ops(struct urdma_cq *cq, uint64_t wc_flags);
void urdma_cq_forget_qp(struct urdma_cq *cq, uint32_t qpn);

#endif
