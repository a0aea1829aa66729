// SPDX-License-Identifier: Apache-2.0
#include "events/series.h"

#include <string.h>

#define SLICES URDMA_SERIES_SLICES

void urdma_series_init(struct urdma_series *s, uint64_t origin)
{
	memset(s, 0, sizeof(*s));
	s->origin = origin;
	s->cycles = URDMA_SERIES_START;
}

static unsigned int slice_of(struct urdma_series *s, uint64_t cycle)
{
	uint64_t at = cycle > s->origin ? cycle - s->origin : 0;
	unsigned int slice;

	while (at / s->cycles >= SLICES) {
		for (unsigned int i = 0; i < SLICES; i += 2)
			s->sum[i / 2] = s->sum[i] + s->sum[i + 1];
		memset(s->sum + SLICES / 2, 0, sizeof(s->sum) / 2);
		s->n = (s->n + 1) / 2;
		s->cycles *= 2;
	}
	slice = (unsigned int)(at / s->cycles);
	if (slice >= s->n)
		s->n = slice + 1;
	return slice;
}

void urdma_series_add(struct urdma_series *s, uint64_t cycle, uint64_t amount)
{
	s->sum[slice_of(s, cycle)] += amount;
}

void urdma_series_span(struct urdma_series *s, uint64_t from, uint64_t to, uint64_t amount)
{
	if (from >= to)
		return;
	slice_of(s, to - 1);
	while (from < to) {
		unsigned int slice = slice_of(s, from);
		uint64_t end = s->origin + (slice + 1) * s->cycles;

		if (end > to)
			end = to;
		s->sum[slice] += amount * (end - from);
		from = end;
	}
}
