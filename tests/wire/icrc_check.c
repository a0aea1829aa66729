// SPDX-License-Identifier: Apache-2.0
/*
 * icrc_check FILE...: reads pcapng files and judges every RoCEv2 frame: lengths, checksums,
 * padding, ICRC. Prints each fault, and a line of counts a file. Ends with 1 when there was a
 * fault, 2 when a file could not be read. With -s it prints what was sent instead: frames, ACKs,
 * RNR NAKs, other NAKs.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icrc.h"

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u /* enhanced packet */
#define MAX_BLOCK	(1u << 20)
#define ETHERNET	1u
#define OUTBOUND	2u
#define MAX_REPORTS	20u

struct counts {
	uint64_t frames, roce, other, fcs, faults;
	uint64_t sent, acks, rnr, naks;
};

static uint32_t le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void fault(struct counts *c, const char *file, const char *what)
{
	if (c->faults++ < MAX_REPORTS)
		fprintf(stderr, "%s: frame %" PRIu64 ": %s\n", file, c->frames, what);
}

static void judge(struct counts *c, const char *file, const uint8_t *frame, size_t len,
		  uint32_t flags)
{
	struct roce_frame roce;
	uint8_t icrc[4];
	char text[80];
	const char *why;
	int ret;

	c->frames++;
	if (flags >> 24 & 1) {
		c->fcs++; /* spoiled on purpose: nobody has to make sense of it */
		return;
	}
	ret = roce_parse(frame, len, &roce, &why);
	if (ret > 0) {
		c->other++;
		return;
	}
	c->roce++;
	if (ret < 0) {
		fault(c, file, why);
		return;
	}
	if ((flags & 3) == OUTBOUND) {
		c->sent++;
		if (roce.opcode == 0x11) {
			c->acks += roce.syndrome >> 5 == 0;
			c->rnr += roce.syndrome >> 5 == 1;
			c->naks += roce.syndrome >> 5 == 3;
		}
	}
	roce_icrc(frame, &roce, icrc);
	if (memcmp(icrc, frame + roce.end - 4, 4)) {
		snprintf(text, sizeof(text), "ICRC %02x%02x%02x%02x, should be %02x%02x%02x%02x",
			 frame[roce.end - 4], frame[roce.end - 3], frame[roce.end - 2],
			 frame[roce.end - 1], icrc[0], icrc[1], icrc[2], icrc[3]);
		fault(c, file, text);
	}
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

static const char *read_file(FILE *f, const char *name, struct counts *c)
{
	static uint8_t block[MAX_BLOCK];
	bool begun = false;

	for (;;) {
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
		if (type == BLOCK_PACKET) {
			uint32_t cap = len >= 32 ? le32(block + 20) : UINT32_MAX;
			uint32_t padded = (cap + 3) & ~3u;

			if (cap > len - 32 || padded > len - 32)
				return "a packet longer than its block";
			if (cap != le32(block + 24))
				return "packets are not captured in full";
			judge(c, name, block + 28, cap,
			      flags_of(block + 28 + padded, len - 32 - padded));
		}
	}
}

int main(int argc, char **argv)
{
	bool sent = false;
	int opt, status = 0;

	while ((opt = getopt(argc, argv, "s")) != -1) {
		if (opt != 's') {
			fprintf(stderr, "usage: %s [-s] FILE...\n", argv[0]);
			return 2;
		}
		sent = true;
	}
	for (int i = optind; i < argc; i++) {
		struct counts c = { 0 };
		FILE *f = fopen(argv[i], "rb");
		const char *error;

		if (!f) {
			perror(argv[i]);
			return 2;
		}
		error = read_file(f, argv[i], &c);
		fclose(f);
		if (error) {
			fprintf(stderr, "%s: %s\n", argv[i], error);
			return 2;
		}
		if (sent)
			printf("%" PRIu64 " frames, %" PRIu64 " ACKs, %" PRIu64
			       " RNR NAKs, %" PRIu64 " other NAKs\n",
			       c.sent, c.acks, c.rnr, c.naks);
		else
			printf("%s: %" PRIu64 " frames, %" PRIu64 " RoCEv2, %" PRIu64
			       " others, %" PRIu64 " with bad FCS, %" PRIu64 " faults\n",
			       argv[i], c.frames, c.roce, c.other, c.fcs, c.faults);
		if (c.faults)
			status = 1;
	}
	return status;
}
