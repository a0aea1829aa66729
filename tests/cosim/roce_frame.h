/* SPDX-License-Identifier: Apache-2.0 */
/* RoCEv2 frames for tests of the simulator. Their ICRC is wrong. */
#ifndef URDMA_TESTS_ROCE_FRAME_H
#define URDMA_TESTS_ROCE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ref_hash.h"

enum roce_shape { ROCE_IPV4, ROCE_IPV6, ROCE_VLAN4, ROCE_VLAN6, ROCE_OPTIONS, ROCE_SHAPES };

static inline void roce_put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/*
 * A frame with a BTH and `tail` bytes after it, ICRC included; byte 0 of the tail is the syndrome.
 * Fills all `size` bytes. Returns the length, without padding.
 */
static inline uint32_t roce_frame(uint8_t *p, size_t size, enum roce_shape shape, uint8_t opcode,
				  uint32_t qpn, uint32_t psn, uint8_t syndrome, uint32_t tail)
{
	bool v6 = shape == ROCE_IPV6 || shape == ROCE_VLAN6;
	uint32_t at = 12, ihl = v6 ? 40 : shape == ROCE_OPTIONS ? 28 : 20, udp = 8 + 12 + tail;

	for (uint32_t i = 0; i < size; i++)
		p[i] = (uint8_t)(i * 7 + psn);
	if (shape == ROCE_VLAN4 || shape == ROCE_VLAN6) {
		roce_put16(p + at, 0x8100);
		at += 4;
	}
	roce_put16(p + at, v6 ? 0x86dd : 0x0800);
	at += 2;
	if (v6) {
		memset(p + at, 0, 8);
		p[at] = 0x60;
		roce_put16(p + at + 4, udp);
		p[at + 6] = 17;
	} else {
		p[at] = (uint8_t)(0x40 | ihl / 4);
		p[at + 1] = 0x40;
		roce_put16(p + at + 2, ihl + udp);
		roce_put16(p + at + 6, 0x4000);
		p[at + 9] = 17;
		ref_ip_checksum(p + at);
	}
	at += ihl;
	roce_put16(p + at + 2, 4791);
	roce_put16(p + at + 4, udp);
	at += 8;
	memset(p + at, 0, 12);
	p[at] = opcode;
	roce_put16(p + at + 6, qpn);
	p[at + 5] = (uint8_t)(qpn >> 16);
	roce_put16(p + at + 10, psn);
	p[at + 9] = (uint8_t)(psn >> 16);
	p[at + 12] = syndrome;
	return at + 12 + tail;
}

#endif
