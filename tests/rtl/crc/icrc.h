/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant CRC of a frame for the block tests, computed with the CRC of ref_hash.h.
 */
#ifndef ICRC_H
#define ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ref_hash.h"

/*
 * ICRC of a RoCEv2 frame (IBA volume 1, annex A17): eight bytes of ones stand for the local route
 * header; fields that may change on the way count as ones. @frame begins with the Ethernet header,
 * @len counts up to the last byte before the ICRC. Returns the value whose low byte goes to the
 * wire first.
 */
static inline uint32_t icrc_of_frame(const uint8_t *frame, size_t len)
{
	static const uint8_t ones[8] = { 255, 255, 255, 255, 255, 255, 255, 255 };
	uint8_t buf[80];
	size_t l3 = 12, head;

	while (frame[l3] == 0x81 && frame[l3 + 1] == 0x00)
		l3 += 4;
	l3 += 2;
	frame += l3;
	len -= l3;
	if (frame[0] >> 4 == 4) {
		head = 20 + 8 + 12;
		memcpy(buf, frame, head);
		buf[1] = 0xff;	/* TOS */
		buf[8] = 0xff;	/* TTL */
		buf[10] = 0xff; /* header checksum */
		buf[11] = 0xff;
		buf[26] = 0xff; /* UDP checksum */
		buf[27] = 0xff;
		buf[32] = 0xff; /* BTH resv8a */
	} else {
		head = 40 + 8 + 12;
		memcpy(buf, frame, head);
		buf[0] |= 0x0f; /* traffic class, flow label */
		buf[1] = 0xff;
		buf[2] = 0xff;
		buf[3] = 0xff;
		buf[7] = 0xff;	/* hop limit */
		buf[46] = 0xff; /* UDP checksum */
		buf[47] = 0xff;
		buf[52] = 0xff; /* BTH resv8a */
	}
	return ~ref_crc32(ref_crc32(ref_crc32(~0u, ones, 8), buf, head), frame + head, len - head);
}

#endif
