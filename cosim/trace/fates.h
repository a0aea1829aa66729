/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the frames that a NIC receives, for its capture: a frame that the NIC drops gets
 * a comment with the reason and the name of the counter.
 *
 * The NIC decides after the frame's last beat, at the latest when its payload is written. So each
 * frame of the port is held back until the fates of those before it are known, and then goes to the
 * port's records in its order and with its time. A frame that is not decided within
 * URDMA_FATES_HOLD_NS, or in front of more than URDMA_FATES_HOLD_BYTES, goes without a comment and
 * is counted.
 *
 * Frames and events of lanes belong together by destination QP, PSN and opcode, in the order of the
 * wire; frames that are not RDMA's by their length.
 */
#ifndef URDMA_COSIM_TRACE_FATES_H
#define URDMA_COSIM_TRACE_FATES_H

#include "eth/wire.h"
#include "trace/events.h"

#define URDMA_FATES_HOLD_NS    1000000u
#define URDMA_FATES_HOLD_BYTES (16u << 20)

/* Lanes that tell fates, a bit each. */
#define URDMA_FATES_LANES                                                               \
	(1u << URDMA_TRACE_IN | 1u << URDMA_TRACE_RSP | 1u << URDMA_TRACE_REQ |         \
	 1u << URDMA_TRACE_PUT | 1u << URDMA_TRACE_BAD | 1u << URDMA_TRACE_ETH_IN |     \
	 1u << URDMA_TRACE_ETH_BUF | 1u << URDMA_TRACE_VOIDED | 1u << URDMA_TRACE_ASK | \
	 1u << URDMA_TRACE_MUTE)

struct urdma_fates;

/* Holds the frames of a NIC's port from now on. The port outlives it. NULL: no memory. */
struct urdma_fates *urdma_fates_create(struct urdma_eth_port *port);
/* Flushes it. NULL is allowed. */
void urdma_fates_destroy(struct urdma_fates *fates);
/* An event of one of these lanes, of the NIC; in their order, behind the frames of the cycle. */
void urdma_fates_event(struct urdma_fates *fates, const struct urdma_trace_event *event);
/* Nothing more will be decided, since the NIC is idle. Gives all frames to the records. */
void urdma_fates_flush(struct urdma_fates *fates);
/* A reset of the NIC ends: it has forgotten the frames before it. */
void urdma_fates_reset(struct urdma_fates *fates);
/* Received frames whose fate is not known. */
uint64_t urdma_fates_unknown(const struct urdma_fates *fates);

#endif
