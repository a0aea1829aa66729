/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures what arrives at a port between two equal points of a steady state: the first bit of one
 * frame and the first bit of a later one of the same kind. Everything that arrives in between is
 * counted, including the first of the two frames and excluding the second. The times are those of
 * the wire's model, exact to the fraction of a cycle, so no figure can exceed the rate of the wire.
 */
#ifndef URDMA_BENCH_METER_H
#define URDMA_BENCH_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler.h"

/* Kinds of frames. */
enum meter_kind {
	METER_RDMA,  /* payload of SENDs and WRITEs, READ responses, answers to ATOMICs; in order */
	METER_INV,   /* single SENDs with invalidate, in order */
	METER_ETH,   /* frames of the net device */
	METER_OTHER, /* requests, acknowledgements, packets that are repeated or too early */
	METER_KINDS,
};

struct meter_count {
	uint64_t frames, payload, line; /* line: bytes with FCS, preamble and gap */
};

#define METER_QPS 4096u

struct meter {
	enum meter_kind kind;
	uint64_t warm, count;
	uint64_t seen; /* frames of the kind so far */
	bool closed;
	double start, end; /* cycles */
	struct meter_count of[METER_KINDS];
	uint32_t next_psn[METER_QPS];
	bool known[METER_QPS]; /* next_psn is valid */
};

/*
 * Watches a port from now on, until the simulation ends. The measurement begins when `warm` frames
 * of `kind` have passed, and ends `count` frames later.
 */
void meter_start(struct meter *m, struct urdma_eth_port *port, enum meter_kind kind, uint64_t warm,
		 uint64_t count);
/* For a closed meter: nanoseconds, million frames per second, Gb/s of payload. */
double meter_ns(const struct meter *m);
double meter_frames(const struct meter *m, enum meter_kind kind);
double meter_goodput(const struct meter *m, enum meter_kind kind);

#endif
