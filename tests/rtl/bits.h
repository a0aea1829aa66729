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

/*
 * Members of packed structs by their names, TYPE_MEMBER_LSB and _W of the headers that
 * tools/gen-rtl-types.sh makes: of one that begins at bit `at` of a wide port, or is a port of up
 * to 64 bits. FIELD_AT(): where a struct within a struct begins.
 */
#define FIELD_AT(at, type, member) ((at) + type##_##member##_LSB)
#define FIELD_GET(words, at, type, member) \
	bits_get(words, FIELD_AT(at, type, member), type##_##member##_W)
#define FIELD_SET(words, at, type, member, value) \
	bits_set(words, FIELD_AT(at, type, member), type##_##member##_W, value)
#define FIELD_OF(port, type, member) \
	((uint64_t)(port) >> type##_##member##_LSB & UINT64_MAX >> (64 - type##_##member##_W))
#define FIELD_IN(type, member, value) \
	(((uint64_t)(value)&UINT64_MAX >> (64 - type##_##member##_W)) << type##_##member##_LSB)

/* A field of a word of urdma_hw.h, by its mask. */
#define HW_GET(mask, word) (((word) & (mask)) >> __builtin_ctzll(mask))

#endif
