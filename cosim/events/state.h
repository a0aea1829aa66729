/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions shared by the files that implement follow.h. */
#ifndef URDMA_EVENTS_STATE_H
#define URDMA_EVENTS_STATE_H

#include "events/follow.h"
#include "events/waiting.h"

/* Maximum numbers of items that wait for their next event. */
#define URDMA_MAX_DOORBELLS 4096u
#define URDMA_MAX_PACKETS   1024u /* of a QP or a NIC, between two events */
#define URDMA_MAX_CQES	    1024u
#define URDMA_MAX_WQES	    32768u /* of a send queue: its largest ring */

struct urdma_qp {
	uint32_t qpn;
	bool known;	 /* pi is the index after the last WQE posted */
	bool settled;	 /* a WQE of this file is completed, so those before the file are too */
	bool unreliable; /* UC, UD */
	uint16_t pi;
	/* Live WQEs: indices head to head + n - 1, at index % size. */
	struct urdma_wqe *wqe;
	uint32_t size; /* power of two, 0 before the first */
	uint32_t n;
	uint32_t n_acked; /* the first of these are acknowledged */
	uint16_t head;
	/* Indices of lives that began before the file: before_lo to before_lo + before_n - 1. */
	uint16_t before_lo;
	uint32_t before_n;
	uint64_t answer_frame;	  /* of the last answer taken */
	struct urdma_waiting cut; /* packets until their frame begins */
};

/* A CQE between its event and its DMA write. */
struct urdma_cqe_wait {
	struct urdma_wqe wqe;
	bool send; /* a send CQE: it ends the life wqe */
	uint32_t cqn;
	uint32_t passed; /* possible DMA writes of it that had another address */
};

/* A packet at its receiver. */
struct urdma_packet_wait {
	struct urdma_packet p;
	bool live;
};

/* Expected address of the next CQE of a CQ. */
struct urdma_cq_place {
	uint64_t first, next; /* 0: not known */
};

struct urdma_nic {
	bool reset_seen; /* all QPs begin at index 0 */
	struct urdma_qp **qp[URDMA_EVENTS_MAX_QPS / 256];
	struct urdma_waiting doorbells;
	struct urdma_cqe_wait *cqe; /* URDMA_MAX_CQES, at cqe_head % URDMA_MAX_CQES */
	uint32_t cqe_head, cqe_n;
	struct urdma_cq_place *cq[URDMA_EVENTS_MAX_QPS / 256];
	uint64_t flight;
	/* frame.c */
	uint64_t tx_begin, rx_begin;	  /* first beat of the current frame, or URDMA_NEVER */
	struct urdma_waiting leaving;	  /* RDMA frames between `out` and tx_end */
	struct urdma_waiting arrived;	  /* RDMA frames between rx_end and `in` */
	struct urdma_waiting requests;	  /* received, for the flow of their answers */
	struct urdma_packet_wait *packet; /* URDMA_MAX_PACKETS, at packet_head % that */
	uint32_t packet_head, packet_n;
	unsigned int peer; /* NIC that sent the last received frame; none: n_nics */
};

struct urdma_follow {
	unsigned int n_nics, n_sinks;
	const struct urdma_sink *sink;
	struct urdma_nic *nic;
	struct urdma_waiting wire; /* RDMA frames sent, not yet received */
	uint64_t flows;
	/* The events of the current cycle. */
	struct urdma_trace_event *event;
	unsigned int n, size;
	uint64_t cycle;
};

#define URDMA_TELL(f, function, ...)                                                    \
	do {                                                                            \
		for (unsigned int s_ = 0; s_ < (f)->n_sinks; s_++)                      \
			if ((f)->sink[s_].function)                                     \
				(f)->sink[s_].function((f)->sink[s_].ctx, __VA_ARGS__); \
	} while (0)

/* follow.c: NULL: no memory. */
struct urdma_qp *urdma_follow_qp(struct urdma_nic *nic, uint32_t qpn);

/* Each handles events of its kinds and ignores the others. 0, -ENOMEM. */
int urdma_follow_wqe(struct urdma_follow *f, const struct urdma_trace_event *event);
int urdma_follow_frame(struct urdma_follow *f, const struct urdma_trace_event *event);

/* wqe.c, called by frame.c: a frame of the QP has left (number 0: by the loopback of the NIC). */
void urdma_wqe_sent(struct urdma_follow *f, unsigned int nic,
		    const struct urdma_waiting_item *frame, uint64_t cycle, uint64_t number);
/* Ends all lives of a NIC, at its reset or at the end of the file. */
void urdma_wqe_drop(struct urdma_follow *f, unsigned int nic, enum urdma_incomplete why);
void urdma_wqe_free(struct urdma_nic *nic);
void urdma_frame_end(struct urdma_follow *f);
void urdma_frame_free(struct urdma_nic *nic);

#endif
