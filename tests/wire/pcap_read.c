// SPDX-License-Identifier: Apache-2.0
#include "pcap_read.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u /* enhanced packet */
#define MAX_BLOCK	(1u << 20)
#define ETHERNET	1u
#define OUTBOUND	2u

static uint32_t le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Flags of an enhanced packet block: option 2. */
static uint32_t flags_of(const uint8_t *p, size_t len)
{
	while (len >= 4) {
		unsigned int code = p[0] | p[1] << 8, n = p[2] | p[3] << 8, padded = (n + 3) & ~3u;

		if (!code || len < 4 + padded)
			return 0;
		if (code == 2 && n == 4)
			return le32(p + 4);
		p += 4 + padded;
		len -= 4 + padded;
	}
	return 0;
}

static const char *read_packet(const uint8_t *block, uint32_t len, pcap_frame_fn fn, void *ctx)
{
	struct pcap_frame frame;
	uint32_t cap = len >= 32 ? le32(block + 20) : UINT32_MAX;
	uint32_t padded = (cap + 3) & ~3u, flags;

	if (len < 32 || cap > len - 32 || padded > len - 32)
		return "a packet longer than its block";
	if (cap != le32(block + 24))
		return "packets are not captured in full";
	flags = flags_of(block + 28 + padded, len - 32 - padded);
	frame.data = block + 28;
	frame.len = cap;
	frame.ns = (uint64_t)le32(block + 12) << 32 | le32(block + 16);
	frame.outbound = (flags & 3) == OUTBOUND;
	frame.bad_fcs = flags >> 24 & 1;
	fn(ctx, &frame);
	return NULL;
}

static const char *read_blocks(FILE *f, pcap_frame_fn fn, void *ctx)
{
	static uint8_t block[MAX_BLOCK];
	const char *error = NULL;
	bool begun = false;

	while (!error) {
		size_t got = fread(block, 1, 8, f);
		uint32_t type, len;

		if (!got)
			return begun ? NULL : "empty";
		if (got < 8)
			return "cut off";
		type = le32(block);
		len = le32(block + 4);
		if (!begun && type != BLOCK_SECTION)
			return "not pcapng";
		if (len < 12 || len % 4 || len > MAX_BLOCK)
			return "a block of impossible length (or of a big-endian writer)";
		if (fread(block + 8, 1, len - 8, f) != len - 8)
			return "cut off";
		begun = true;
		if (type == BLOCK_SECTION && (len < 28 || le32(block + 8) != 0x1a2b3c4d))
			return "byte order of a big-endian writer";
		if (type == BLOCK_INTERFACE && (len < 20 || (block[8] | block[9] << 8) != ETHERNET))
			return "an interface that is not Ethernet";
		if (type == BLOCK_PACKET)
			error = read_packet(block, len, fn, ctx);
	}
	return error;
}

const char *pcap_read(const char *path, pcap_frame_fn fn, void *ctx)
{
	FILE *f = fopen(path, "rb");
	const char *error;

	if (!f)
		return strerror(errno);
	error = read_blocks(f, fn, ctx);
	fclose(f);
	return error;
}
