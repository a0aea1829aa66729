// SPDX-License-Identifier: Apache-2.0
#include "rx_packet.h"

#include <string.h>

#include "ref_hash.h"
#include "rtl/crc/icrc.h"

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void put24(uint8_t *p, uint32_t v)
{
	p[0] = v >> 16;
	put16(p + 1, v);
}

size_t packet_ip(const struct packet *p)
{
	return p->vlan_valid ? 18 : 14;
}

size_t packet_udp(const struct packet *p)
{
	return packet_ip(p) + (p->ipv4 ? 20 : 40);
}

size_t packet_bth(const struct packet *p)
{
	return packet_udp(p) + 8;
}

void packet_build(const struct packet *p, struct frame *f)
{
	uint8_t *ip = f->b + packet_ip(p), *udp = f->b + packet_udp(p), *bth = f->b + packet_bth(p);
	size_t pad = p->raw ? 0 : -p->len & 3;
	size_t udp_len = 8 + 12 + p->ext_len + p->len + pad + 4;

	memset(f->b, 0, 128);
	memcpy(f->b, p->dmac, 6);
	memcpy(f->b + 6, p->smac, 6);
	if (p->vlan_valid) {
		put16(f->b + 12, 0x8100);
		put16(f->b + 14, p->vlan | 0x6000); /* with a priority */
	}
	put16(ip - 2, p->ipv4 ? 0x0800 : 0x86dd);
	if (p->ipv4) {
		ip[0] = 0x45;
		ip[1] = 0x68;
		put16(ip + 2, 20 + udp_len);
		put16(ip + 4, 0x1234);
		ip[6] = 0x40;
		ip[8] = 63;
		ip[9] = 17;
		memcpy(ip + 12, p->sip + 12, 4);
		memcpy(ip + 16, p->dip + 12, 4);
	} else {
		ip[0] = 0x66;
		put24(ip + 1, 0x812345);
		put16(ip + 4, udp_len);
		ip[6] = 17;
		ip[7] = 63;
		memcpy(ip + 8, p->sip, 16);
		memcpy(ip + 24, p->dip, 16);
	}
	put16(udp, 0xc123);
	put16(udp + 2, 4791);
	put16(udp + 4, udp_len);
	bth[0] = p->opcode;
	bth[1] = p->se << 7 | 1 << 6 | (p->raw ? p->pad : pad) << 4;
	put16(bth + 2, p->pkey);
	bth[4] = 0x40; /* BECN: not part of the ICRC */
	put24(bth + 5, p->dqpn);
	bth[8] = p->ackreq << 7;
	put24(bth + 9, p->psn);
	memcpy(bth + 12, p->ext, p->ext_len);
	if (p->len)
		memcpy(bth + 12 + p->ext_len, p->payload, p->len);
	memset(bth + 12 + p->ext_len + p->len, 0, pad + 4);
	f->len = packet_udp(p) + udp_len;
	packet_seal(p, f);
}

void packet_seal(const struct packet *p, struct frame *f)
{
	uint8_t *ip = f->b + packet_ip(p);
	uint32_t crc;

	if (p->ipv4)
		ref_ip_checksum(ip);
	crc = icrc_of_frame(f->b, f->len - 4);
	for (int i = 0; i < 4; i++)
		f->b[f->len - 4 + i] = crc >> (8 * i);
}
