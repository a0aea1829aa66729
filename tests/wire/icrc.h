/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant CRC of RoCEv2, written from the InfiniBand Architecture Specification alone (volume
 * 1, 7.8.1, and annex A17.3.3), bit by bit. It is the reference for RTL and captures, not a fast
 * routine.
 */
#ifndef URDMA_TESTS_ICRC_H
#define URDMA_TESTS_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Unsigned numbers of n bytes in wire order; at most 4 to read, 8 to write. */
static inline uint32_t roce_be(const uint8_t *p, unsigned int n)
{
	uint32_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static inline uint64_t roce_be64(const uint8_t *p)
{
	return (uint64_t)roce_be(p, 4) << 32 | roce_be(p + 4, 4);
}

static inline void roce_put(uint8_t *p, uint64_t v, unsigned int n)
{
	while (n--) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

/* Distance of PSNs: positive when a is ahead of b. */
static inline int32_t roce_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* The contents of a frame. Offsets are from the frame's first byte. */
struct roce_frame {
	bool ipv6, vlan;
	bool udp_sum; /* there is a UDP checksum, and it is wrong: the receiver may ignore it, the
		       * ICRC is there for this (annex A17.3.1) */
	bool tail;    /* bytes after the IP packet in a frame that needs no padding: a receiver
		       * ignores them, we send none */
	size_t ip, udp, bth;
	size_t end; /* behind the ICRC, where the IP packet ends; padding of short frames may follow
		     */
	unsigned int opcode, pad, syndrome; /* syndrome: of an acknowledgement */
};

/* 0; 1 when the frame is not RoCEv2 (UDP to 4791); -1 when it is, but broken: *why gives the
 * reason. */
int roce_parse(const uint8_t *frame, size_t len, struct roce_frame *roce, const char **why);

/* The four bytes in wire order. */
void roce_icrc(const uint8_t *frame, const struct roce_frame *roce, uint8_t icrc[4]);

#endif
