/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A quantity over the run, in slices of the same length. When a moment lies behind the last slice,
 * pairs of slices become one, and the length doubles: memory is constant.
 */
#ifndef URDMA_EVENTS_SERIES_H
#define URDMA_EVENTS_SERIES_H

#include <stdint.h>

#define URDMA_SERIES_SLICES 200u
#define URDMA_SERIES_START  64u /* cycles of a slice at first */

struct urdma_series {
	uint64_t origin; /* cycle in which slice 0 begins */
	uint64_t cycles; /* of a slice */
	unsigned int n;	 /* slices that have begun */
	uint64_t sum[URDMA_SERIES_SLICES];
};

void urdma_series_init(struct urdma_series *s, uint64_t origin);
/* Cycles before the origin count for slice 0. */
void urdma_series_add(struct urdma_series *s, uint64_t cycle, uint64_t amount);
/* The amount in each cycle of [from, to). */
void urdma_series_span(struct urdma_series *s, uint64_t from, uint64_t to, uint64_t amount);

#endif
