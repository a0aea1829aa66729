/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the ends of frames among the events of a NIC (tx_end, rx_end) with the capture of its
 * port: the same frames in the same order, with equal numbers, times, lengths, directions and
 * fields of the BTH.
 */
#ifndef URDMA_TESTS_AGREE_H
#define URDMA_TESTS_AGREE_H

#include "eth/pcapng.h"
#include "trace/events.h"

struct agree {
	struct urdma_pcapng_reader *capture;
	uint64_t received, sent; /* frames so far */
	char wrong[400];	 /* the disagreement */
};

/* Each of these returns false if there is a disagreement, and a->wrong describes it. */
bool agree_open(struct agree *a, const char *path);
/* An event tx_end or rx_end, in the order of the file. */
bool agree_frame(struct agree *a, const struct urdma_trace_event *e);
/* There are no more events. Closes the capture, also if it was not opened. */
bool agree_close(struct agree *a);

#endif
