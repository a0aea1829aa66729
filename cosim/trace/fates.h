/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fate of frames that a NIC receives, for its capture: a dropped frame gets a comment with the
 * reason and the name of the counter.
 *
 * The NIC decides after the frame's last beat, at the latest when it writes the payload. So each
 * frame of the port is held until the fates of those before it are known. Then it goes to the
 * port's records in order and with its original time. A frame without a decision after
 * URDMA_FATES_HOLD_NS, or with more than URDMA_FATES_HOLD_BYTES held after it, goes without a
 * comment and is counted.
 *
 * Destination QP, PSN and opcode match lane events to frames, in the order of the wire; for other
 * than RDMA frames their length does.
 */
#ifndef URDMA_COSIM_TRACE_FATES_H
#define URDMA_COSIM_TRACE_FATES_H

#include "eth/wire.h"
#include "trace/events.h"

#define URDMA_FATES_HOLD_NS    1000000u
#define URDMA_FATES_HOLD_BYTES (16u << 20)

/* Lanes that report fates, one bit each. */
#define URDMA_FATES_LANES                                                               \
	(1u << URDMA_TRACE_IN | 1u << URDMA_TRACE_RSP | 1u << URDMA_TRACE_REQ |         \
	 1u << URDMA_TRACE_PUT | 1u << URDMA_TRACE_BAD | 1u << URDMA_TRACE_ETH_IN |     \
	 1u << URDMA_TRACE_ETH_BUF | 1u << URDMA_TRACE_VOIDED | 1u << URDMA_TRACE_ASK | \
	 1u << URDMA_TRACE_MUTE)

struct urdma_fates;

/* Holds the frames of a NIC's port from now on. The port must outlive it. NULL: no memory. */
struct urdma_fates *urdma_fates_create(struct urdma_eth_port *port);
/* Flushes it. NULL is allowed. */
void urdma_fates_destroy(struct urdma_fates *fates);
/* An event of one of these lanes of the NIC; in order, after the frames of the cycle. */
void urdma_fates_event(struct urdma_fates *fates, const struct urdma_trace_event *event);
/* The NIC is idle, so no more decisions come. Passes all frames to the records. */
void urdma_fates_flush(struct urdma_fates *fates);
/* A reset of the NIC ends: the NIC has dropped earlier frames. */
void urdma_fates_reset(struct urdma_fates *fates);
/* Number of received frames whose fate is not yet known. */
uint64_t urdma_fates_unknown(const struct urdma_fates *fates);

#endif
