/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the events of two NICs that a wire joins, as plausible NICs would report them, and knows
 * the truth about each WQE. Delays are constants; frames of a NIC do not overlap.
 */
#ifndef URDMA_TESTS_NIC_PAIR_H
#define URDMA_TESTS_NIC_PAIR_H

#include "events/follow.h"
#include "trace/recorder.h"

#define PAIR_MTU     1024u
#define PAIR_WIRE    63u /* cycles */
#define PAIR_TIMEOUT 5000u

struct pair_truth {
	uint64_t at[URDMA_MOMENTS];
	uint32_t qpn, bytes, psn, packets, timeouts;
	uint16_t index;
	uint8_t nic, op, status;
	bool has_cqe;
};

struct pair {
	struct urdma_trace_event *event; /* unsorted until pair_sort() */
	size_t n, size;
	struct pair_truth *truth;
	size_t n_truth, size_truth;
	uint64_t tx_free[2];
	struct pair_qp {
		uint16_t pi;
		uint32_t psn;
	} qp[2][64];
	uint8_t tag[2];
	uint32_t ci[2];	     /* of the CQ */
	const char *trigger; /* of the run; NULL: none */
};

struct pair_message {
	uint8_t nic; /* the requester; QP n of one NIC is connected to QP n + 1 of the other */
	uint32_t qpn;
	uint8_t op; /* URDMA_WR_* */
	uint32_t bytes;
	bool unsignaled;
	unsigned int losses; /* losses of its last packet, each followed by a time-out */
	bool flush;	     /* the QP is in ERR */
};

/* Starts with the events of a reset of both NICs in cycle 0. */
void pair_begin(struct pair *p);
/* The message's doorbell is written in this cycle. Returns the cycle of its last event. */
uint64_t pair_send(struct pair *p, uint64_t cycle, const struct pair_message *m);
/* A command destroys the QP. Returns the first cycle in which a new QP may have its number. */
uint64_t pair_qp_end(struct pair *p, uint64_t cycle, uint8_t nic, uint32_t qpn);
/* The NIC receives a frame that is not RDMA. */
void pair_frame(struct pair *p, uint64_t cycle, uint8_t nic);
/* The run's trigger, an event of the NIC, occurs in this cycle. Once. */
void pair_trigger(struct pair *p, uint64_t cycle, uint8_t nic, const char *trigger);
/* Sorts by time; frames get their numbers, CQEs their places. No messages may follow. */
void pair_sort(struct pair *p);
/* Writes the events of [from, to) to a file. Returns 0 or -errno. */
int pair_write(const struct pair *p, const char *path, uint64_t from, uint64_t to);
void pair_free(struct pair *p);

#endif
