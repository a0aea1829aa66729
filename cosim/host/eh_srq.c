// SPDX-License-Identifier: Apache-2.0
// The embedded host's driver for shared receive queues. See eh_srq.h.
#include "host/eh_srq.h"

#include <errno.h>
#include <string.h>

static struct urdma_eh_cmd command(const struct urdma_eh_srq *srq, unsigned int opcode)
{
	return (struct urdma_eh_cmd){ { URDMA_SET(URDMA_CMD0_OPCODE, opcode) |
					URDMA_SET(URDMA_CMD0_OBJ, srq->srqn) } };
}

static void release(struct urdma_eh_srq *srq)
{
	urdma_eh_ring_destroy(srq->eh, &srq->ring);
	urdma_embedded_free(urdma_eh_host(srq->eh), srq->free);
	srq->free = NULL;
}

int urdma_eh_create_srq(struct urdma_eh *eh, const struct urdma_eh_srq_attr *attr,
			struct urdma_eh_srq *srq)
{
	unsigned int n = 1u << attr->log_entries;
	struct urdma_eh_cmd cmd;
	int ret;

	memset(srq, 0, sizeof(*srq));
	srq->eh = eh;
	srq->srqn = attr->srqn;
	srq->db_page = attr->db_page;
	ret = urdma_eh_ring_create(eh, attr->log_entries, attr->log_stride, n * sizeof(*srq->index),
				   attr->kind, &srq->ring);
	if (ret)
		return ret;
	srq->index = (uint16_t *)(srq->ring.base + ((size_t)n << attr->log_stride));
	srq->free = urdma_embedded_alloc(urdma_eh_host(eh), n * sizeof(*srq->free));
	if (!srq->free) {
		release(srq);
		return -ENOMEM;
	}
	while (srq->n_free < n) {
		srq->free[srq->n_free] = (uint16_t)(n - 1 - srq->n_free);
		srq->n_free++;
	}
	cmd = command(srq, URDMA_CMD_CREATE_SRQ);
	cmd.w[1] = URDMA_SET(URDMA_CMD_SRQ1_PD, attr->pd) |
		   URDMA_SET(URDMA_CMD_SRQ1_DB_PAGE, attr->db_page);
	cmd.w[2] = URDMA_SET(URDMA_CMD_SRQ2_RING, urdma_eh_ring_word(&srq->ring));
	cmd.w[3] = srq->ring.map.addr;
	if (attr->xrc) {
		cmd.w[1] |= URDMA_CMD_SRQ1_XRC;
		cmd.w[4] = URDMA_SET(URDMA_CMD_SRQ4_XRCD, attr->xrcd) |
			   URDMA_SET(URDMA_CMD_SRQ4_CQN, attr->cq->cqn);
	}
	ret = urdma_eh_cmd(eh, &cmd, NULL);
	if (ret)
		release(srq);
	return ret;
}

int urdma_eh_destroy_srq(struct urdma_eh_srq *srq)
{
	struct urdma_eh_cmd cmd = command(srq, URDMA_CMD_DESTROY_SRQ);
	int ret = urdma_eh_cmd(srq->eh, &cmd, NULL);

	if (!ret)
		release(srq);
	return ret;
}

int urdma_eh_modify_srq(struct urdma_eh_srq *srq, unsigned int limit)
{
	struct urdma_eh_cmd cmd = command(srq, URDMA_CMD_MODIFY_SRQ);

	cmd.w[1] = URDMA_SET(URDMA_CMD_MSRQ1_LIMIT, limit);
	return urdma_eh_cmd(srq->eh, &cmd, NULL);
}

int urdma_eh_query_srq(struct urdma_eh_srq *srq, struct urdma_eh_srq_info *info)
{
	struct urdma_eh_cmd cmd = command(srq, URDMA_CMD_QUERY_SRQ), cpl;
	int ret = urdma_eh_cmd(srq->eh, &cmd, &cpl);

	if (ret)
		return ret;
	info->limit = (unsigned int)URDMA_GET(URDMA_CPL_SRQ1_LIMIT, cpl.w[1]);
	info->pi = (uint16_t)URDMA_GET(URDMA_CPL_SRQ1_PI, cpl.w[1]);
	info->ci = (uint16_t)URDMA_GET(URDMA_CPL_SRQ1_CI, cpl.w[1]);
	return 0;
}

int urdma_eh_put_srq_recv(struct urdma_eh_srq *srq, const struct urdma_eh_sge *sge,
			  unsigned int n_sge)
{
	uint16_t place;
	int ret;

	if (!srq->n_free)
		return -ENOBUFS;
	place = srq->free[srq->n_free - 1];
	ret = urdma_eh_put_rqe(&srq->ring, place, sge, n_sge);
	if (ret)
		return ret;
	srq->n_free--;
	srq->index[srq->pi++ & ((1u << srq->ring.log_entries) - 1)] = place;
	return place;
}

void urdma_eh_srq_give_back(struct urdma_eh_srq *srq, unsigned int place)
{
	srq->free[srq->n_free++] = (uint16_t)place;
}

void urdma_eh_ring_srq(struct urdma_eh_srq *srq)
{
	urdma_eh_doorbell(srq->eh, srq->db_page, URDMA_DB_SRQ,
			  URDMA_SET(URDMA_DBW_OBJ, srq->srqn) |
				  URDMA_SET(URDMA_DBW_INDEX, srq->pi));
}
