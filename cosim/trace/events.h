/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: what happens in which cycle inside a NIC (its lanes, rtl/urdma_trace_pkg.sv) and at its
 * boundary. docs/tracing.md says when each kind happens. lanes.def and boundary.def list the kinds
 * and their fields; everything else about them is made from these lists.
 */
#ifndef URDMA_COSIM_TRACE_EVENTS_H
#define URDMA_COSIM_TRACE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "urdma_sim.h"

#define URDMA_TRACE_MAX_FIELDS 8u

/* URDMA_TRACE_SQ_DB and so on. Lane n is kind n. */
enum urdma_trace_kind {
#define LANE(kind, name)  URDMA_TRACE_##kind,
#define EVENT(kind, name) URDMA_TRACE_##kind,
#define FIELD(name, member)
#define BITS(name, member, width)
#define END(name)
#include "trace/lanes.def"
	URDMA_TRACE_LANES,
	URDMA_TRACE_LAST_LANE = URDMA_TRACE_LANES - 1,
#include "trace/boundary.def"
#undef LANE
#undef EVENT
#undef FIELD
#undef BITS
#undef END
	URDMA_TRACE_KINDS
};

/* Streams that can stall the NIC, or that the NIC can stall. */
enum urdma_trace_stream {
	URDMA_TRACE_STREAM_CQ, /* the NIC does not take a request of the host */
	URDMA_TRACE_STREAM_CC, /* PCIe does not take a completion */
	URDMA_TRACE_STREAM_RQ, /* PCIe does not take a request of the NIC */
	URDMA_TRACE_STREAM_RC, /* the NIC does not take a completion */
	URDMA_TRACE_STREAM_TX, /* the MAC does not take a frame */
	URDMA_TRACE_STREAMS
};

struct urdma_trace_event {
	uint64_t cycle; /* scheduler's; 4 ns each */
	uint8_t kind;	/* enum urdma_trace_kind */
	uint8_t nic;
	union {
		uint64_t field[URDMA_TRACE_MAX_FIELDS]; /* the members below, in their order */
#define LANE(kind, name)	  struct {
#define EVENT(kind, name)	  struct {
#define FIELD(name, member)	  uint64_t member;
#define BITS(name, member, width) uint64_t member;
#define END(name) \
	}         \
	name;
#include "trace/boundary.def"
#include "trace/lanes.def"
#undef LANE
#undef EVENT
#undef FIELD
#undef BITS
#undef END
	};
};

/* A NIC, and what its links carry in each direction, in Mb/s: bytes with preamble, FCS and gap on
 * the wire, of TLPs with framing and headers on PCIe. */
struct urdma_trace_nic {
	const char *name;
	uint32_t wire_mbps, pcie_mbps;
};

typedef void (*urdma_trace_fn)(void *ctx, const struct urdma_trace_event *event);

/* What a kind is called, and its fields. */
struct urdma_trace_desc {
	const char *name;
	unsigned int n_fields;
	struct urdma_trace_field {
		const char *name;
		uint8_t width; /* bits, 1 to 64 */
	} field[URDMA_TRACE_MAX_FIELDS];
};
extern const struct urdma_trace_desc urdma_trace_desc[URDMA_TRACE_KINDS];

/* The largest value that the field can have. */
static inline uint64_t urdma_trace_max(const struct urdma_trace_field *field)
{
	return UINT64_MAX >> (64 - field->width);
}

/* The fields of an event of a lane, kind included. */
void urdma_trace_from_lane(struct urdma_trace_event *event, unsigned int lane,
			   const struct urdma_sim_lane *data);

/*
 * Bytes that the TLPs of this event take on the PCIe link, with their framing and headers; 0 for an
 * event of something else. to_host: they go to the host of the NIC. Of all TLPs only reads of BAR2
 * have no event.
 */
uint32_t urdma_trace_tlp_bytes(const struct urdma_trace_event *event, bool *to_host);

#endif
