/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads pcapng files of one Ethernet interface, block by block, so that they may be of any size.
 */
#ifndef URDMA_TESTS_PCAP_READ_H
#define URDMA_TESTS_PCAP_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pcap_frame {
	const uint8_t *data;
	size_t len;
	uint64_t ns; /* in the file's unit of time; urdma-cosim writes nanoseconds */
	bool outbound;
	bool bad_fcs;
};

typedef void (*pcap_frame_fn)(void *ctx, const struct pcap_frame *frame);

/* NULL when the file was read to its end, otherwise what is wrong with it. */
const char *pcap_read(const char *path, pcap_frame_fn fn, void *ctx);

#endif
