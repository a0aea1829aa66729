// SPDX-License-Identifier: Apache-2.0
#include "fake_urdma.h"

#include <errno.h>
#include <endian.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "urdma.h"

#include "fake_nic.h"
#include "fake_verbs.h"

uint64_t fake_urdma_features = URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_RC_WRITE |
			       URDMA_RF_FEAT_RC_READ | URDMA_RF_FEAT_RC_ATOMIC |
			       URDMA_RF_FEAT_MEM_MGT | URDMA_RF_FEAT_MW_2B | URDMA_RF_FEAT_UC |
			       URDMA_RF_FEAT_UD | URDMA_RF_FEAT_SRQ | URDMA_RF_FEAT_XRC |
			       URDMA_RF_FEAT_DM | URDMA_RF_FEAT_CQ_MODIFY;
uint64_t fake_urdma_dm_offset;

static struct {
	struct urdma_create_cq_req req;
	/* number of CQEs so far, and of the first one in the ring */
	uint32_t written, first;
} cqs[FAKE_CQS];

/* For each QP the next WQEs to complete, and the QP that was created last. */
static struct {
	uint16_t sq, rq;
} next[FAKE_QPNS];
static struct urdma_create_qp_req qp_req;

static struct urdma_create_srq_req srqs[FAKE_SRQS];

void fake_nic_context(struct ib_uverbs_get_context_resp *resp)
{
	struct urdma_alloc_context_resp *r =
		container_of(resp, struct urdma_alloc_context_resp, ibv_resp);

	r->db_offset = 0;
	r->db_size = URDMA_DB_PAGE_SIZE;
	r->features = fake_urdma_features;
	r->max_sq_sge = 16;
	r->max_rq_sge = 16;
	r->max_inline = 256;
	r->log_max_sq = 12;
	r->log_max_rq = 12;
	r->log_max_cqe = 16;
	r->log_max_msg = 30;
	r->log_max_qp = 10;
	r->log_max_srq = 6;
}

/* Distinct words: in word w the low half is 2 w, the high half 2 w + 1. */
void fake_nic_create_ah(const struct ibv_ah_attr *attr, void *resp)
{
	struct urdma_cmd_create_ah_resp *r = resp;

	for (uint32_t i = 0; i < 8; i++)
		r->av[i] = 0xa0000000u | (uint32_t)attr->sl << 8 | i;
}

void fake_nic_create_cq(const void *cmd, void *resp, uint32_t cqn)
{
	const struct urdma_cmd_create_cq *c = cmd;
	struct urdma_cmd_create_cq_resp *r = resp;

	if (cqn >= FAKE_CQS)
		abort();
	cqs[cqn].req = c->drv_payload;
	cqs[cqn].written = cqs[cqn].first = 0;
	r->cqn = cqn;
}

void (*fake_urdma_at_resize)(bool done);

int fake_nic_resize_cq(const void *cmd, void *resp, uint32_t cqn)
{
	const struct urdma_cmd_resize_cq *c = cmd;
	struct urdma_cmd_resize_cq_resp *r = resp;
	const struct urdma_resize_cq_req *req = &c->drv_payload;
	const uint8_t *ring = (const uint8_t *)(uintptr_t)req->buf_addr;

	/* zeroed, and of the given size */
	for (uint64_t i = 0; i < req->buf_len; i++)
		if (ring[i])
			abort();
	if (req->buf_len < (uint64_t)URDMA_CQE_SIZE << req->log_entries || req->reserved[0] ||
	    req->reserved[1] || req->reserved[2] || req->reserved2)
		abort();
	if (fake_urdma_at_resize)
		fake_urdma_at_resize(false);
	if (cqs[cqn].written - req->ci > 1U << req->log_entries)
		return EINVAL;
	cqs[cqn].req.buf_addr = req->buf_addr;
	cqs[cqn].req.buf_len = req->buf_len;
	cqs[cqn].req.log_entries = req->log_entries;
	cqs[cqn].first = cqs[cqn].written;
	r->base = cqs[cqn].written;
	/* CQEs of the new ring may come before the command has ended. */
	if (fake_urdma_at_resize)
		fake_urdma_at_resize(true);
	return 0;
}

void fake_nic_create_qp(const void *cmd, void *resp, uint32_t qpn)
{
	const struct urdma_cmd_create_qp *c = cmd;
	struct urdma_cmd_create_qp_resp *r = resp;

	if (qpn >= FAKE_QPNS)
		abort();
	qp_req = c->drv_payload;
	next[qpn].sq = 0;
	next[qpn].rq = 0;
	r->qpn = qpn;
}

void fake_nic_create_srq(const void *cmd, void *resp, uint32_t srqn)
{
	const struct urdma_cmd_create_srq *c = cmd;
	struct urdma_cmd_create_srq_resp *r = resp;

	if (srqn >= FAKE_SRQS)
		abort();
	srqs[srqn] = c->drv_payload;
	r->srqn = srqn;
}

/* Device memory is given out once, from its start on. The last answer is that of a query. */
static struct urdma_dm_resp dm;

static void dm_answer(struct ibv_command_buffer *cmd, uint32_t attr, uint16_t id)
{
	struct ib_uverbs_attr *a = &cmd->hdr.attrs[attr];

	if (a->attr_id != id || a->len != sizeof(dm))
		abort();
	memcpy((void *)(uintptr_t)a->data, &dm, sizeof(dm));
}

void fake_nic_alloc_dm(uint64_t length, struct ibv_command_buffer *driver)
{
	static uint64_t next;

	/* The first device memory of this context. */
	if (fake_dms == 1)
		next = FAKE_DOORBELL_BYTES;
	dm.mmap_offset = fake_urdma_dm_offset ? fake_urdma_dm_offset : next;
	dm.length = length;
	dm.page_size = FAKE_PAGE;
	next += (length + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
	if (next > FAKE_DOORBELL_BYTES + FAKE_DM_BYTES)
		abort();
	dm_answer(driver, 0, URDMA_ATTR_ALLOC_DM_RESP);
}

void fake_nic_ioctl(struct ibv_command_buffer *cmd)
{
	if (cmd->hdr.object_id == UVERBS_OBJECT_DEVICE &&
	    cmd->hdr.method_id == URDMA_METHOD_QUERY_CLOCK) {
		const struct ib_uverbs_attr *a = &cmd->hdr.attrs[0];
		uint64_t cycles = FAKE_CYCLES;

		if (a->attr_id != URDMA_ATTR_QUERY_CLOCK_CYCLES || a->len != sizeof(cycles))
			abort();
		memcpy((void *)(uintptr_t)a->data, &cycles, sizeof(cycles));
		return;
	}
	if (cmd->hdr.object_id != UVERBS_OBJECT_DM || cmd->hdr.method_id != URDMA_METHOD_QUERY_DM ||
	    cmd->hdr.attrs[0].attr_id != URDMA_ATTR_QUERY_DM_HANDLE ||
	    cmd->hdr.attrs[0].data != 0x70)
		abort();
	dm_answer(cmd, 1, URDMA_ATTR_QUERY_DM_RESP);
}

uint32_t fake_urdma_cqes(const struct ibv_cq *cq)
{
	return 1U << cqs[cq->handle].req.log_entries;
}

uint32_t fake_urdma_sq_slots(void)
{
	return 1U << qp_req.sq_log_entries;
}

static const uint64_t *slot(uint64_t ring, uint8_t log_entries, uint8_t log_stride, uint16_t index)
{
	uint64_t at = index & ((1U << log_entries) - 1);

	return (const uint64_t *)(uintptr_t)(ring + (at << log_stride));
}

const uint64_t *fake_urdma_sqe(uint16_t index)
{
	return slot(qp_req.sq_addr, qp_req.sq_log_entries, qp_req.sq_log_stride, index);
}

const uint64_t *fake_urdma_rqe(uint16_t index)
{
	return slot(qp_req.rq_addr, qp_req.rq_log_entries, qp_req.rq_log_stride, index);
}

bool fake_urdma_has_rq(void)
{
	return qp_req.rq_addr || qp_req.rq_len || qp_req.rq_log_entries || qp_req.rq_log_stride;
}

uint32_t fake_urdma_srq_places(const struct ibv_srq *srq)
{
	return 1U << srqs[srq->handle].log_entries;
}

uint16_t fake_urdma_srq_index(const struct ibv_srq *srq, uint16_t n)
{
	const struct urdma_create_srq_req *req = &srqs[srq->handle];
	uint64_t array = UINT64_C(1) << (req->log_entries + req->log_stride);
	const uint16_t *ring = (const uint16_t *)(uintptr_t)(req->buf_addr + array);
	uint32_t at = n & (fake_urdma_srq_places(srq) - 1);

	if (array + (at + 1) * sizeof(*ring) > req->buf_len)
		abort();
	return le16toh(ring[at]);
}

const uint64_t *fake_urdma_srqe(const struct ibv_srq *srq, uint16_t place)
{
	const struct urdma_create_srq_req *req = &srqs[srq->handle];

	if (place >> req->log_entries)
		abort();
	return slot(req->buf_addr, req->log_entries, req->log_stride, place);
}

void fake_urdma_cqe(struct ibv_cq *cq, uint64_t w0, uint64_t w1, uint64_t w2, uint64_t cycles)
{
	uint32_t n = cqs[cq->handle].written++ - cqs[cq->handle].first;
	uint64_t *w = (uint64_t *)(uintptr_t)cqs[cq->handle].req.buf_addr;
	uint64_t phase = n / fake_urdma_cqes(cq) % 2 ? 0 : URDMA_CQE3_PHASE;

	w += n % fake_urdma_cqes(cq) * (URDMA_CQE_SIZE / 8);
	w[0] = htole64(w0);
	w[1] = htole64(w1);
	w[2] = htole64(w2);
	w[3] = htole64(FIELD_PREP(URDMA_CQE3_CYCLES, cycles) | phase);
}

void fake_nic_complete(struct ibv_cq *cq, struct ibv_qp *qp, bool recv)
{
	uint64_t opcode = recv ? URDMA_WR_SEND : URDMA_WR_WRITE;
	uint64_t index = recv ? next[qp->qp_num].rq++ : next[qp->qp_num].sq++;

	fake_urdma_cqe(cq,
		       (recv ? URDMA_CQE0_RECV : 0) | FIELD_PREP(URDMA_CQE0_OPCODE, opcode) |
			       FIELD_PREP(URDMA_CQE0_WQE, index),
		       FIELD_PREP(URDMA_CQE1_QPN, (uint64_t)qp->qp_num), 0, 0);
}
