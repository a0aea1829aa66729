// SPDX-License-Identifier: Apache-2.0
#include "icrc.h"

#include <string.h>

#include "ref_hash.h"

#define UDP_ROCE 4791u

static bool sum_good(uint32_t sum)
{
	return ref_fold(sum) == 0xffff;
}

static int broken(const char **why, const char *text)
{
	*why = text;
	return -1;
}

int roce_parse(const uint8_t *frame, size_t len, struct roce_frame *roce, const char **why)
{
	size_t at = 12, ip_len;
	unsigned int type;
	uint32_t sum;

	memset(roce, 0, sizeof(*roce));
	*why = "";
	if (len < at + 2)
		return 1;
	type = roce_be(frame + at, 2);
	if (type == 0x8100 && len >= at + 6) {
		roce->vlan = true;
		at += 4;
		type = roce_be(frame + at, 2);
	}
	at += 2;
	roce->ip = at;
	if (type == 0x0800) {
		if (len < at + 28 || frame[at] != 0x45 || frame[at + 9] != 17)
			return 1;
		if (roce_be(frame + at + 6, 2) & 0x3fff)
			return 1; /* a fragment */
		roce->udp = at + 20;
		ip_len = roce_be(frame + at + 2, 2);
	} else if (type == 0x86dd) {
		if (len < at + 48 || frame[at] >> 4 != 6 || frame[at + 6] != 17)
			return 1;
		roce->ipv6 = true;
		roce->udp = at + 40;
		ip_len = 40 + roce_be(frame + at + 4, 2);
	} else {
		return 1;
	}
	if (roce_be(frame + roce->udp + 2, 2) != UDP_ROCE)
		return 1;
	roce->bth = roce->udp + 8;
	roce->end = at + ip_len;
	if (roce->end > len)
		return broken(why, "the IP packet is longer than the frame");
	if (roce->end < roce->bth + 12 + 4)
		return broken(why, "no room for BTH and ICRC");
	roce->tail = len > roce->end && len > 60;
	if (roce_be(frame + roce->udp + 4, 2) != roce->end - roce->udp)
		return broken(why, "the UDP length does not agree with IP's");
	if (!roce->ipv6 && !sum_good(ref_sum16(0, frame + at, 20)))
		return broken(why, "IPv4 header checksum");
	if (roce_be(frame + roce->udp + 6, 2)) {
		/* pseudo header: addresses, protocol, length */
		sum = ref_sum16(17, frame + at + (roce->ipv6 ? 8 : 12), roce->ipv6 ? 32 : 8);
		sum += (uint32_t)(roce->end - roce->udp);
		roce->udp_sum = !sum_good(ref_sum16(sum, frame + roce->udp, roce->end - roce->udp));
	}
	if ((roce->end - roce->bth) % 4)
		return broken(why, "not a multiple of four bytes from BTH to ICRC");
	if (frame[roce->bth + 1] & 0x0f)
		return broken(why, "transport header version");
	roce->opcode = frame[roce->bth];
	roce->pad = frame[roce->bth + 1] >> 4 & 3;
	if (roce->opcode == 0x11 || roce->opcode == 0xb1) { /* of RC, of XRC */
		if (roce->end != roce->bth + 12 + 4 + 4)
			return broken(why, "length of an acknowledgement");
		roce->syndrome = frame[roce->bth + 12];
	}
	return 0;
}

/* CRC-32 of IEEE 802.3, least significant bit of each byte first, without the final inversion. */
static uint32_t crc_byte(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	for (int i = 0; i < 8; i++)
		crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xedb88320) : 0);
	return crc;
}

/* For the ICRC, fields that routers may change are all ones. */
static bool masked(const struct roce_frame *r, size_t at, uint8_t *mask)
{
	*mask = 0xff;
	if (at < r->udp) {
		size_t k = at - r->ip;

		if (!r->ipv6)
			/* DSCP and ECN, TTL, header checksum */
			return k == 1 || k == 8 || k == 10 || k == 11;
		/* traffic class and flow label, without the version; hop limit */
		if (k == 0)
			*mask = 0x0f;
		return k <= 3 || k == 7;
	}
	/* UDP checksum; FECN, BECN and the reserved bits beside them */
	return at == r->udp + 6 || at == r->udp + 7 || at == r->bth + 4;
}

void roce_icrc(const uint8_t *frame, const struct roce_frame *roce, uint8_t icrc[4])
{
	uint32_t crc = 0xffffffff;

	/* in place of an LRH, which RoCE does not have */
	for (int i = 0; i < 8; i++)
		crc = crc_byte(crc, 0xff);
	for (size_t at = roce->ip; at < roce->end - 4; at++) {
		uint8_t mask;

		crc = crc_byte(crc, masked(roce, at, &mask) ? frame[at] | mask : frame[at]);
	}
	crc = ~crc;
	for (int i = 0; i < 4; i++)
		icrc[i] = (uint8_t)(crc >> 8 * i);
}
