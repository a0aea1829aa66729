// SPDX-License-Identifier: Apache-2.0
/*
 * icrc_check [-o | -s] FILE...: reads pcapng files and judges every RoCEv2 frame: lengths,
 * checksums, padding, ICRC. With -o only those that the port has sent. Prints each fault, and a
 * line of counts per file. Exit status 1: there was a fault; 2: a file could not be read. With -s
 * it prints instead how many frames, ACKs, RNR NAKs and other NAKs were sent.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icrc.h"
#include "pcap_read.h"

#define MAX_REPORTS 20u

struct counts {
	const char *file;
	bool sent_only;
	uint64_t number; /* number of the frame in the file */
	uint64_t frames, roce, other, fcs, faults;
	uint64_t sent, acks, rnr, naks;
};

static void fault(struct counts *c, const char *what)
{
	if (c->faults++ < MAX_REPORTS)
		fprintf(stderr, "%s: frame %" PRIu64 ": %s\n", c->file, c->number, what);
}

static void judge(void *ctx, const struct pcap_frame *frame)
{
	struct counts *c = ctx;
	struct roce_frame roce;
	const uint8_t *at;
	uint8_t icrc[4];
	char text[80];
	const char *why;
	int ret;

	c->number++;
	if (c->sent_only && !frame->outbound)
		return;
	c->frames++;
	if (frame->bad_fcs) {
		c->fcs++; /* damaged on purpose: it need not be valid */
		return;
	}
	ret = roce_parse(frame->data, frame->len, &roce, &why);
	if (ret > 0) {
		c->other++;
		return;
	}
	c->roce++;
	if (ret < 0) {
		fault(c, why);
		return;
	}
	if (roce.udp_sum)
		fault(c, "UDP checksum");
	if (roce.tail)
		fault(c, "bytes behind the IP packet of a frame that needs no padding");
	if (frame->outbound) {
		c->sent++;
		if (roce.opcode == 0x11 || roce.opcode == 0xb1) {
			c->acks += roce.syndrome >> 5 == 0;
			c->rnr += roce.syndrome >> 5 == 1;
			c->naks += roce.syndrome >> 5 == 3;
		}
	}
	at = frame->data + roce.end - 4;
	roce_icrc(frame->data, &roce, icrc);
	if (memcmp(icrc, at, 4)) {
		snprintf(text, sizeof(text), "ICRC %02x%02x%02x%02x, should be %02x%02x%02x%02x",
			 at[0], at[1], at[2], at[3], icrc[0], icrc[1], icrc[2], icrc[3]);
		fault(c, text);
	}
}

int main(int argc, char **argv)
{
	bool sent = false, sent_only = false;
	int opt, status = 0;

	while ((opt = getopt(argc, argv, "os")) != -1) {
		switch (opt) {
		case 'o':
			sent_only = true;
			break;
		case 's':
			sent = true;
			break;
		default:
			fprintf(stderr, "usage: %s [-o | -s] FILE...\n", argv[0]);
			return 2;
		}
	}
	for (int i = optind; i < argc; i++) {
		struct counts c = { .file = argv[i], .sent_only = sent_only };
		const char *error = pcap_read(argv[i], judge, &c);

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
