/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities over the time in which there is traffic, in slices of the same length. All series of a
 * run share a timeline. Its first slice begins with the first traffic. It stops while there is no
 * traffic for longer than a pause. If a moment is beyond the last slice, pairs of slices are merged
 * and the length of a slice doubles, so memory is constant.
 */
#ifndef URDMA_EVENTS_SERIES_H
#define URDMA_EVENTS_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#define URDMA_SLICES	  200u
#define URDMA_SLICE_START 64u	 /* initial length of a slice of events, in cycles */
#define URDMA_PAUSE	  25000u /* for events, in cycles: 100 us */

struct urdma_timeline {
	uint64_t start, pause; /* cycles: initial length of a slice; longest time without traffic */
	bool begun;
	uint64_t traffic;	     /* cycle of the last traffic */
	uint64_t last;		     /* cycle of the last moment */
	uint64_t at;		     /* its distance from the start of slice 0, in cycles */
	uint64_t cycles;	     /* of a slice */
	unsigned int n;		     /* slices that have begun */
	uint64_t from[URDMA_SLICES]; /* the cycle in which each of them begins */
};

/* start, pause: cycles, not 0. */
void urdma_timeline_init(struct urdma_timeline *t, uint64_t start, uint64_t pause);
/*
 * Advances to this cycle. traffic: there is traffic in it; other moments neither start the timeline
 * nor end a pause. Cycles may not decrease.
 */
void urdma_timeline_move(struct urdma_timeline *t, uint64_t cycle, bool traffic);

struct urdma_series {
	uint64_t cycles; /* of a slice, at most the timeline's */
	uint64_t sum[URDMA_SLICES];
	uint64_t begun, value; /* for a level: position on the timeline of its last change */
};

/* Both apply to the last moment of the timeline. */
void urdma_series_add(struct urdma_series *s, const struct urdma_timeline *t, uint64_t amount);
/* The level kept its value until now, and has a new one from now on. */
void urdma_series_level(struct urdma_series *s, const struct urdma_timeline *t, uint64_t value);
/*
 * Call before reading it: adjusts its slices to the timeline and extends a level to the last
 * moment.
 */
void urdma_series_end(struct urdma_series *s, const struct urdma_timeline *t);

/*
 * Bytes on a link. An event reports many bytes at once, but a link carries them one after another,
 * so they are spread over the slices at the link's rate.
 */
struct urdma_flow {
	struct urdma_series series; /* bytes */
	uint32_t mbps;		    /* 0: unknown; then all bytes are in the slice of their event */
	uint64_t since;		    /* position on the timeline of its last update */
	uint64_t waits, carried;    /* at that time, in 1/URDMA_FLOW_UNITS bytes */
};
/* A cycle carries as many units as the rate has Mb/s. */
#define URDMA_FLOW_UNITS 2000u

/*
 * Adds bytes that came over the link until now, one after another. Bytes before the start of the
 * timeline are in no slice.
 */
void urdma_flow_came(struct urdma_flow *f, const struct urdma_timeline *t, uint64_t bytes);
/* Adds bytes that go over the link from now on, after those already waiting. */
void urdma_flow_goes(struct urdma_flow *f, const struct urdma_timeline *t, uint64_t bytes);
/* Call before reading the series. Bytes that have not gone by the last moment are in no slice. */
void urdma_flow_end(struct urdma_flow *f, const struct urdma_timeline *t);

#endif
