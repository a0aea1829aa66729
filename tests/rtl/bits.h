/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of packed structs in the words of a Verilated port: bit lsb, width bits, at most 64. */
#ifndef URDMA_TESTS_BITS_H
#define URDMA_TESTS_BITS_H

#include <stdint.h>

static inline uint64_t bits_get(const uint32_t *words, unsigned int lsb, unsigned int width)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < width; i++)
		value |= (uint64_t)(words[(lsb + i) / 32] >> ((lsb + i) % 32) & 1) << i;
	return value;
}

static inline void bits_set(uint32_t *words, unsigned int lsb, unsigned int width, uint64_t value)
{
	for (unsigned int i = 0; i < width; i++) {
		uint32_t bit = 1u << ((lsb + i) % 32);

		if (value >> i & 1)
			words[(lsb + i) / 32] |= bit;
		else
			words[(lsb + i) / 32] &= ~bit;
	}
}

/* xorshift64*: the same sequence everywhere for a seed */
static inline uint64_t rnd_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static inline uint64_t rnd_below(uint64_t *state, uint64_t n)
{
	return (rnd_next(state) >> 16) % n;
}

#endif
