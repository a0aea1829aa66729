/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pseudo-random numbers of the simulator: SplitMix64 (Steele, Lea, Flood 2014). Each user has
 * its own 64-bit state, so that the draws of one model never change those of another.
 */
#ifndef URDMA_COSIM_RANDOM_H
#define URDMA_COSIM_RANDOM_H

#include <stdint.h>

struct urdma_random {
	uint64_t state;
};

static inline uint64_t urdma_random_next(struct urdma_random *r)
{
	uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* 0 to bound - 1. The bias of the multiplication is below 2^-32 for the bounds used here. */
static inline uint32_t urdma_random_below(struct urdma_random *r, uint32_t bound)
{
	return (uint32_t)(((urdma_random_next(r) >> 32) * bound) >> 32);
}

#endif
