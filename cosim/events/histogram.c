// SPDX-License-Identifier: Apache-2.0
#include "events/histogram.h"

#include <math.h>
#include <stdlib.h>

#define BUCKETS URDMA_HISTOGRAM_BUCKETS
#define LOG	6 /* of BUCKETS */

/* Octave 0 has the numbers below BUCKETS, octave o those from 2^(o + LOG - 1) on. */
unsigned int urdma_histogram_number(uint64_t value)
{
	unsigned int octave;

	if (value < BUCKETS)
		return (unsigned int)value;
	octave = 64 - LOG - (unsigned int)__builtin_clzll(value);
	return octave * BUCKETS + (value >> (octave - 1) & (BUCKETS - 1));
}

void urdma_histogram_add(struct urdma_histogram *h, uint64_t value)
{
	unsigned int i = urdma_histogram_number(value), octave = i / BUCKETS;

	h->n++;
	h->sum += value;
	if (value > h->max)
		h->max = value;
	if (!h->octave[octave])
		h->octave[octave] = calloc(BUCKETS, sizeof(uint64_t));
	if (h->octave[octave])
		h->octave[octave][i % BUCKETS]++;
}

uint64_t urdma_histogram_bucket(const struct urdma_histogram *h, unsigned int i, uint64_t *from,
				uint64_t *to)
{
	unsigned int octave = i / BUCKETS, place = i % BUCKETS;

	if (octave >= URDMA_HISTOGRAM_OCTAVES || !h->octave[octave])
		return 0;
	*from = octave ? (uint64_t)(BUCKETS + place) << (octave - 1) : place;
	*to = *from + (octave ? 1ull << (octave - 1) : 1);
	return h->octave[octave][place];
}

uint64_t urdma_histogram_percentile(const struct urdma_histogram *h, double percent)
{
	/* A count times 99.9 / 100 may be slightly above a whole number. */
	uint64_t rank = (uint64_t)ceil((double)h->n * percent / 100 - 1e-6), n = 0, from, to;

	if (!rank)
		rank = 1;
	if (rank >= h->n)
		return h->max;
	for (unsigned int i = 0; i < BUCKETS * URDMA_HISTOGRAM_OCTAVES; i++) {
		uint64_t count = urdma_histogram_bucket(h, i, &from, &to);

		n += count;
		if (count && n >= rank) {
			uint64_t middle = from + (to - from) / 2;

			return middle < h->max ? middle : h->max;
		}
	}
	return h->max;
}

double urdma_histogram_mean(const struct urdma_histogram *h)
{
	return h->n ? (double)h->sum / (double)h->n : 0;
}

void urdma_histogram_free(struct urdma_histogram *h)
{
	for (unsigned int i = 0; i < URDMA_HISTOGRAM_OCTAVES; i++)
		free(h->octave[i]);
}
