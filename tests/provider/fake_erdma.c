// SPDX-License-Identifier: Apache-2.0
/*
 * Fakes Alibaba's erdma, whose provider in rdma-core ours is compared with: see instructions.c.
 */
#include <errno.h>
#include <endian.h>
#include <stdlib.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>
#include <util/util.h>

#include "erdma.h"
#include "erdma_abi.h"
#include "erdma_verbs.h"

#include "fake_nic.h"

#define CQES   128
#define WQEBBS 256
#define RQES   64

static uint32_t written;
/* For each QP the next WQEs to complete; for sends, their first basic block. */
static struct {
	uint16_t sq, rq;
} next[FAKE_QPNS];

void fake_nic_context(struct ib_uverbs_get_context_resp *resp)
{
	struct erdma_cmd_alloc_context_resp *r =
		container_of(resp, struct erdma_cmd_alloc_context_resp, ibv_resp);

	r->sdb_type = ERDMA_SDB_SHARED;
	r->sdb = 0;
	r->rdb = ERDMA_PAGE_SIZE;
	r->cdb = 2 * ERDMA_PAGE_SIZE;
}

/* It has no UD. */
void fake_nic_create_ah(const struct ibv_ah_attr *attr, void *resp)
{
	abort();
}

void fake_nic_create_cq(const void *cmd, void *resp, uint32_t cqn)
{
	struct erdma_cmd_create_cq_resp *r = resp;

	written = 0;
	r->cq_id = cqn;
	r->num_cqe = CQES;
}

int fake_nic_resize_cq(const void *cmd, void *resp, uint32_t cqn)
{
	return EOPNOTSUPP;
}

void fake_nic_create_qp(const void *cmd, void *resp, uint32_t qpn)
{
	struct erdma_cmd_create_qp_resp *r = resp;

	if (qpn >= FAKE_QPNS)
		abort();
	next[qpn].sq = 0;
	next[qpn].rq = 0;
	r->qp_id = qpn;
	r->num_sqe = WQEBBS;
	r->num_rqe = RQES;
	r->rq_offset = WQEBBS * SQEBB_SIZE;
}

/* It has no SRQs. */
void fake_nic_create_srq(const void *cmd, void *resp, uint32_t srqn)
{
	abort();
}

/* It has no device memory. */
void fake_nic_alloc_dm(uint64_t length, struct ibv_command_buffer *driver)
{
	abort();
}

void fake_nic_ioctl(struct ibv_command_buffer *cmd)
{
	abort();
}

void fake_nic_complete(struct ibv_cq *ibcq, struct ibv_qp *qp, bool recv)
{
	struct erdma_cq *cq = to_ecq(ibcq);
	struct erdma_cqe *cqe = &cq->queue[written % CQES];
	uint32_t owner = written / CQES & 1 ? 0 : 1;

	uint32_t index = recv ? next[qp->qp_num].rq++ : next[qp->qp_num].sq;

	written++;
	if (!recv) {
		uint64_t *hdr = get_sq_wqebb(to_eqp(qp), index);

		next[qp->qp_num].sq += FIELD_GET(ERDMA_SQE_HDR_WQEBB_CNT_MASK, *hdr) + 1;
	}
	cqe->qpn = htobe32(qp->qp_num);
	cqe->qe_idx = htobe32(index);
	cqe->size = htobe32(64);
	cqe->hdr = htobe32(
		FIELD_PREP(ERDMA_CQE_HDR_OWNER_MASK, owner) |
		FIELD_PREP(ERDMA_CQE_HDR_OPCODE_MASK, recv ? ERDMA_OP_RECEIVE : ERDMA_OP_WRITE) |
		FIELD_PREP(ERDMA_CQE_HDR_QTYPE_MASK,
			   recv ? ERDMA_CQE_QTYPE_RQ : ERDMA_CQE_QTYPE_SQ));
}
