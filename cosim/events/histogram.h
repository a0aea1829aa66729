/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A distribution of numbers, in memory that does not grow with their count.
 *
 * Each number below 64 has its own bucket. Above, each power of two is divided into 64 buckets of
 * the same width, so a bucket is at most 1/64 as wide as its lowest number. The buckets of a power
 * of two are allocated when the first number falls into it. Without memory the number counts for
 * sum, maximum and n only.
 */
#ifndef URDMA_EVENTS_HISTOGRAM_H
#define URDMA_EVENTS_HISTOGRAM_H

#include <stdint.h>

#define URDMA_HISTOGRAM_BUCKETS 64u
#define URDMA_HISTOGRAM_OCTAVES 59u

struct urdma_histogram {
	uint64_t n, sum, max;
	uint64_t *octave[URDMA_HISTOGRAM_OCTAVES];
};

void urdma_histogram_add(struct urdma_histogram *h, uint64_t value);
/*
 * The middle of the bucket that contains the percentile, at most the maximum: within 1/128 of the
 * true value. The maximum itself if the percentile is the largest number. percent: above 0, at most
 * 100. 0 if there are no numbers.
 */
uint64_t urdma_histogram_percentile(const struct urdma_histogram *h, double percent);
double urdma_histogram_mean(const struct urdma_histogram *h);
/* The number of the bucket that contains the value. */
unsigned int urdma_histogram_number(uint64_t value);
/* Bucket number i, from 0: its lowest number, one more than its highest, numbers in it. 0: none. */
uint64_t urdma_histogram_bucket(const struct urdma_histogram *h, unsigned int i, uint64_t *from,
				uint64_t *to);
void urdma_histogram_free(struct urdma_histogram *h);

#endif
