/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds of random tests. Each test has seeds of its own, so that a run repeats. SEED=n in the
 * environment gives others to all of them; make test-full draws n, and prints it.
 */
#ifndef URDMA_TESTS_SEED_H
#define URDMA_TESTS_SEED_H

#include <stdint.h>
#include <stdlib.h>

/* own, or what follows from SEED and own; not 0 if own is not. */
static inline uint64_t test_seed(uint64_t own)
{
	const char *s = getenv("SEED");
	uint64_t seed;

	if (!s || !*s)
		return own;
	seed = strtoull(s, NULL, 0) * 0x9e3779b97f4a7c15ull ^ own;
	return seed ? seed : own;
}

#endif
