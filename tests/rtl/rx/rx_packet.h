/* SPDX-License-Identifier: Apache-2.0 */
/* RoCEv2 frames, built field by field from the specification. */
#ifndef RX_PACKET_H
#define RX_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX 9000

struct packet {
	uint8_t dmac[6], smac[6];
	bool vlan_valid;
	uint16_t vlan;
	bool ipv4;
	uint8_t sip[16], dip[16]; /* GIDs; IPv4 in the last four bytes */
	uint8_t opcode;
	bool se, ackreq;
	uint16_t pkey;
	uint32_t dqpn, psn;
	uint8_t ext[32];
	size_t ext_len;
	const uint8_t *payload;
	size_t len;
	/* raw: len is all that stands before the ICRC, and pad what the BTH says of it */
	bool raw;
	uint8_t pad;
};

struct frame {
	size_t len;
	uint8_t b[FRAME_MAX];
};

/* offsets in the frame */
size_t packet_ip(const struct packet *p);
size_t packet_udp(const struct packet *p);
size_t packet_bth(const struct packet *p);

void packet_build(const struct packet *p, struct frame *f);
/* After a change: set the IPv4 checksum and the ICRC right again. */
void packet_seal(const struct packet *p, struct frame *f);

#endif
