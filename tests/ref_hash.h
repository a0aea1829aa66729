/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32 and Toeplitz hash, bit by bit from their definitions. Slow, and on purpose of another
 * shape than the RTL: the references that blocks and frames are measured against.
 */
#ifndef URDMA_TESTS_REF_HASH_H
#define URDMA_TESTS_REF_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Ethernet's CRC (IEEE 802.3, 3.2.9): begin with ~0; not inverted at the end. */
static inline uint32_t ref_crc32(uint32_t state, const uint8_t *p, size_t len)
{
	while (len--) {
		state ^= *p++;
		for (int i = 0; i < 8; i++)
			state = (state >> 1) ^ (state & 1 ? 0xedb88320 : 0);
	}
	return state;
}

/* The hash of receive side scaling: the 32 bits of key from bit i on, for each bit i that is set.
 * At most 36 bytes. */
static inline uint32_t ref_toeplitz(const uint8_t key[40], const uint8_t *data, size_t len)
{
	uint32_t hash = 0;

	for (size_t bit = 0; bit < 8 * len; bit++) {
		if (!(data[bit / 8] >> (7 - bit % 8) & 1))
			continue;
		for (size_t i = 0; i < 32; i++)
			hash ^= (uint32_t)(key[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1)
				<< (31 - i);
	}
	return hash;
}

#endif
