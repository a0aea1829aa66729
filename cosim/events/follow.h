/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows send WQEs, frames and packets through a stream of events, and tells sinks about them.
 * docs/tracing.md defines their lives. Memory grows with the number of objects in flight and of
 * QPs, but not with the length of the stream: lives that never end are given up and counted.
 */
#ifndef URDMA_EVENTS_FOLLOW_H
#define URDMA_EVENTS_FOLLOW_H

#include "events/names.h"
#include "trace/events.h"

#define URDMA_EVENTS_MAX_QPS 65536u /* per NIC; the lanes have narrower numbers */
#define URDMA_NEVER	     UINT64_MAX
#define URDMA_NO_QP	     UINT32_MAX

/* The moments of a send WQE's life. Stage n is from moment n to moment n + 1. */
enum urdma_moment {
	URDMA_AT_WRITE, /* of the doorbell */
	URDMA_AT_TAKEN, /* doorbell */
	URDMA_AT_TURN,
	URDMA_AT_WQE,
	URDMA_AT_PACKET,
	URDMA_AT_FULL,
	URDMA_AT_SENT,
	URDMA_AT_ACKED,
	URDMA_AT_CQE,
	URDMA_AT_REPORTED,
	URDMA_MOMENTS
};
#define URDMA_STAGES (URDMA_MOMENTS - 1)

/* posted, queued and so on. */
extern const char *const urdma_stage_name[URDMA_STAGES];

/* Maximum ranges of retransmitted frames kept for a WQE. */
#define URDMA_AGAIN_RANGES 16u

struct urdma_wqe {
	uint64_t at[URDMA_MOMENTS];	  /* cycles. A sink sees them in ascending order */
	uint64_t first_frame, last_frame; /* numbers in the sender's capture, 0: none */
	uint64_t answer_frame;		  /* received frame that acknowledged it */
	/* Its retransmitted frames, in the order of the sender's capture. */
	struct {
		uint64_t first, last;
	} again[URDMA_AGAIN_RANGES];
	uint8_t n_again;
	bool more_again; /* there are more than fit */
	uint32_t qpn;
	uint32_t bytes;
	uint32_t psn;
	uint32_t packets;		/* each counts once; a READ has one request packet */
	uint32_t retries[URDMA_CAUSES]; /* retries that began between its sending and completion */
	uint32_t flight;		/* unacknowledged bytes of its packets */
	uint16_t index;
	uint8_t nic, op, status;
	bool has_cqe;
	bool unreliable; /* UC, UD */
};

static inline uint64_t urdma_wqe_whole(const struct urdma_wqe *w)
{
	return w->at[URDMA_AT_REPORTED] - w->at[URDMA_AT_WRITE];
}

static inline uint64_t urdma_wqe_stage(const struct urdma_wqe *w, unsigned int stage)
{
	return w->at[stage + 1] - w->at[stage];
}

/* Sum of the retries whose cause makes packets be sent again. */
uint32_t urdma_wqe_retries(const struct urdma_wqe *w);

/* A frame at a MAC, when its last beat has passed. */
struct urdma_frame {
	uint64_t begin, end; /* cycles of its first and last beat */
	uint64_t number;     /* in the capture */
	uint64_t len;	     /* bytes without FCS */
	uint64_t flow;	     /* id of its exchange: request, reception, answer; 0: none */
	uint32_t dqpn, psn;
	uint32_t qpn; /* the NIC's own QP: the sender's, or dqpn. URDMA_NO_QP: unknown, not RDMA */
	uint16_t wqe;
	uint8_t nic, opcode;
	bool received, rdma, error;
	bool has_wqe; /* sent for WQE number wqe of qpn */
	bool again;
	bool flow_ends;
};

/* The life of a packet at its receiver; a request unless `answer`. Cycles, or URDMA_NEVER. */
struct urdma_packet {
	uint64_t rx, rx_end, in, decided, put, answered, tx;
	uint64_t number; /* of its frame */
	uint32_t qpn, psn;
	uint8_t nic, opcode, verdict;
};
enum urdma_packet_stage {
	URDMA_PACKET_RECEIVE, /* rx to rx_end */
	URDMA_PACKET_CHECK,   /* to in */
	URDMA_PACKET_DECIDE,  /* to rsp */
	URDMA_PACKET_PLACE,   /* to put */
	URDMA_PACKET_ANSWER,  /* rsp to ans */
	URDMA_PACKET_SEND,    /* to tx of the answer */
	URDMA_PACKET_STAGES
};
extern const char *const urdma_packet_stage_name[URDMA_PACKET_STAGES];
/* False: the packet does not have this stage. */
bool urdma_packet_stage(const struct urdma_packet *p, unsigned int stage, uint64_t *cycles);

/* The reason why a life is not in the results. */
enum urdma_incomplete {
	URDMA_BEGUN_BEFORE, /* its doorbell is not in the file */
	URDMA_LACKS_EVENTS, /* some of its events are not in the file, or not in order */
	URDMA_ABANDONED,    /* its QP or NIC was reset or destroyed */
	URDMA_NOT_ENDED,    /* the file ends first, or before it is clear whether a CQE follows */
	URDMA_INCOMPLETES
};
/* A key for JSON, and a readable sentence. */
extern const char *const urdma_incomplete_key[URDMA_INCOMPLETES];
extern const char *const urdma_incomplete_text[URDMA_INCOMPLETES];

/*
 * Callbacks of a listener, each with ctx; NULL: not wanted. Arguments are valid only during a call.
 */
struct urdma_sink {
	void *ctx;
	/* Called for each event. Within a cycle a cause comes before its effect. */
	void (*event)(void *ctx, const struct urdma_trace_event *event);
	void (*wqe)(void *ctx, const struct urdma_wqe *wqe); /* completed */
	void (*incomplete)(void *ctx, unsigned int nic, uint32_t qpn, enum urdma_incomplete why,
			   uint64_t n);
	void (*frame)(void *ctx, const struct urdma_frame *frame);
	void (*packet)(void *ctx, const struct urdma_packet *packet);
	/* An acked event with a cause: a retry of the QP, from WQE `index` on. */
	void (*retry)(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint16_t index,
		      unsigned int cause);
	/* A packet of a request is sent again. */
	void (*resent)(void *ctx, unsigned int nic, uint32_t qpn);
	/* WQEs posted and not completed; called for changes only. */
	void (*depth)(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint32_t depth);
	/* Payload bytes of a NIC cut into packets and not acknowledged; called for changes only. */
	void (*flight)(void *ctx, uint64_t cycle, unsigned int nic, uint64_t bytes);
};

struct urdma_follow;

/* NULL: no memory. The sinks must outlive it. */
struct urdma_follow *urdma_follow_create(unsigned int n_nics, const struct urdma_sink *sink,
					 unsigned int n_sinks);
/* Cycles may not decrease. 0, -ENOMEM, or -EBADMSG: a field has a value that no NIC reports. */
int urdma_follow_event(struct urdma_follow *f, const struct urdma_trace_event *event);
/* Call after the last event: counts lives that have not ended. 0, or as above. */
int urdma_follow_end(struct urdma_follow *f);
void urdma_follow_destroy(struct urdma_follow *f);

#endif
