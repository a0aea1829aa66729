/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random numbers of the tests, and their seeds. Each test has its own seeds, so that a run
 * repeats. SEED=n in the environment gives all tests other seeds; make test-full draws n at random
 * and prints it.
 */
#ifndef URDMA_TESTS_SEED_H
#define URDMA_TESTS_SEED_H

#include <stdint.h>
#include <stdlib.h>

/* Returns own, or a seed that follows from SEED and own; it is not 0 unless own is. */
static inline uint64_t test_seed(uint64_t own)
{
	const char *s = getenv("SEED");
	uint64_t seed;

	if (!s || !*s)
		return own;
	seed = strtoull(s, NULL, 0) * 0x9e3779b97f4a7c15ull ^ own;
	return seed ? seed : own;
}

/* xorshift64*: a state, which must not be 0, gives the same sequence everywhere. */
static inline uint64_t rnd_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

/* A number below n; 0 if n is 0. */
static inline uint64_t rnd_below(uint64_t *state, uint64_t n)
{
	return n ? (rnd_next(state) >> 16) % n : 0;
}

#endif
