/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded host's driver: shared receive queues, see CREATE_SRQ in docs/hardware-interface.md.
 * Waiting and errors are as in eh.h.
 *
 * A WQE occupies a place of the array until its CQE has been read; then the caller frees the place.
 * WQEs complete in any order.
 */
#ifndef URDMA_COSIM_EH_SRQ_H
#define URDMA_COSIM_EH_SRQ_H

#include "host/eh.h"

struct urdma_eh_srq_attr {
	uint32_t srqn, pd; /* pd of the keys in its WQEs */
	unsigned int db_page;
	unsigned int log_entries, log_stride; /* stride: 6 to 9 */
	enum urdma_eh_ring_kind kind;
	/* An XRC SRQ has an XRC domain, which is a PD, and its own CQ. */
	bool xrc;
	uint32_t xrcd;
	const struct urdma_eh_cq *cq;
};

struct urdma_eh_srq {
	struct urdma_eh *eh;
	uint32_t srqn;
	unsigned int db_page;
	struct urdma_eh_ring ring; /* the WQEs */
	uint16_t *index;	   /* the ring of places after them */
	uint32_t pi;		   /* of that ring, free running */
	uint16_t *free;		   /* places without a WQE, a stack */
	unsigned int n_free;
};

int urdma_eh_create_srq(struct urdma_eh *eh, const struct urdma_eh_srq_attr *attr,
			struct urdma_eh_srq *srq);
int urdma_eh_destroy_srq(struct urdma_eh_srq *srq);
/* Arms the limit; 0 disarms it. */
int urdma_eh_modify_srq(struct urdma_eh_srq *srq, unsigned int limit);
struct urdma_eh_srq_info {
	unsigned int limit; /* 0: not armed */
	uint16_t pi, ci;    /* of the ring of places */
};
int urdma_eh_query_srq(struct urdma_eh_srq *srq, struct urdma_eh_srq_info *info);

/*
 * Writes a receive WQE into a free place; urdma_eh_ring_srq() then passes it to the NIC. Returns
 * the place; -ENOBUFS if none is free, -E2BIG if the SGEs do not fit. Does not wait.
 */
int urdma_eh_put_srq_recv(struct urdma_eh_srq *srq, const struct urdma_eh_sge *sge,
			  unsigned int n_sge);
/* Frees a place (urdma_eh_cqe.wqe) after the CQE of its WQE has been read. */
void urdma_eh_srq_give_back(struct urdma_eh_srq *srq, unsigned int place);
void urdma_eh_ring_srq(struct urdma_eh_srq *srq);

#endif
