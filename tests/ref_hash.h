/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32, Toeplitz hash and the IP checksum, from their definitions. They are slow, and their
 * structure differs from the RTL's on purpose: they are the references for blocks and frames.
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

/* The hash of receive side scaling: XORs, for each bit i that is set, the 32 bits of key from bit i
 * on. At most 36 bytes. */
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

/* Adds to sum: 16-bit words in network order, an odd last byte followed by 0 (RFC 1071); len is at
 * most 128 KB. */
static inline uint32_t ref_sum16(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i % 2 ? 0 : 8);
	return sum;
}

/* Folds the sum to 16 bits, in ones' complement arithmetic. */
static inline uint16_t ref_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sets the checksum of an IPv4 header. */
static inline void ref_ip_checksum(uint8_t *ip)
{
	uint16_t sum;

	ip[10] = ip[11] = 0;
	sum = (uint16_t)~ref_fold(ref_sum16(0, ip, (ip[0] & 15u) * 4));
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

#endif
