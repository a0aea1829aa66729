/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities over the time in which there is traffic, in slices of the same length. All series of a
 * run share a timeline. Its first slice begins with the first traffic, and it stands still while
 * there is none for longer than a pause. When a moment lies behind the last slice, pairs of
 * slices become one, and the length doubles: memory is constant.
 */
#ifndef URDMA_EVENTS_SERIES_H
#define URDMA_EVENTS_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#define URDMA_SLICES	  200u
#define URDMA_SLICE_START 64u	 /* cycles of a slice of events, at first */
#define URDMA_PAUSE	  25000u /* cycles, of events: 100 us */

struct urdma_timeline {
	uint64_t start, pause; /* cycles: a slice at first; the longest time without traffic */
	bool begun;
	uint64_t traffic;	     /* cycle of the last traffic */
	uint64_t last;		     /* cycle of the last moment, */
	uint64_t at;		     /* which is so many cycles behind the begin of slice 0 */
	uint64_t cycles;	     /* of a slice */
	unsigned int n;		     /* slices that have begun */
	uint64_t from[URDMA_SLICES]; /* of each of these, the cycle in which it begins */
};

/* start, pause: cycles, not 0. */
void urdma_timeline_init(struct urdma_timeline *t, uint64_t start, uint64_t pause);
/*
 * Goes on to this cycle. traffic: there is some; what is none neither begins the timeline nor ends
 * a pause. Cycles may not decrease.
 */
void urdma_timeline_move(struct urdma_timeline *t, uint64_t cycle, bool traffic);

struct urdma_series {
	uint64_t cycles; /* of a slice, at most the timeline's */
	uint64_t sum[URDMA_SLICES];
	uint64_t begun, value; /* a level: where on the timeline it took its present value */
};

/* Both are for the last moment of the timeline. */
void urdma_series_add(struct urdma_series *s, const struct urdma_timeline *t, uint64_t amount);
/* The level had its value in each cycle until now, and has another from now on. */
void urdma_series_level(struct urdma_series *s, const struct urdma_timeline *t, uint64_t value);
/* Before a look at it: its slices are the timeline's, and a level goes to the last moment. */
void urdma_series_end(struct urdma_series *s, const struct urdma_timeline *t);

/*
 * Bytes on a link. An event tells of many bytes at once, but a link carries them one after the
 * other: so each has its place in the slices at the link's rate.
 */
struct urdma_flow {
	struct urdma_series series; /* bytes */
	uint32_t mbps;		 /* 0: not known; then all bytes are in the slice of their event */
	uint64_t since;		 /* where on the timeline it was brought up to date */
	uint64_t waits, carried; /* then, in 1/URDMA_FLOW_UNITS bytes */
};
/* A cycle carries as many units as the rate has Mb/s. */
#define URDMA_FLOW_UNITS 2000u

/* They came over the link until now, one after the other. What came before the timeline began is in
 * no slice. */
void urdma_flow_came(struct urdma_flow *f, const struct urdma_timeline *t, uint64_t bytes);
/* They go from now on, behind those that wait for the link. */
void urdma_flow_goes(struct urdma_flow *f, const struct urdma_timeline *t, uint64_t bytes);
/* Before a look at the series. What has not gone until the last moment is in no slice. */
void urdma_flow_end(struct urdma_flow *f, const struct urdma_timeline *t);

#endif
