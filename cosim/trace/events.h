/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: records of what happens in a cycle inside a NIC (its lanes, rtl/urdma_trace_pkg.sv) and
 * at its boundary. docs/tracing.md defines each kind. lanes.def and boundary.def list the kinds and
 * their fields; all other definitions are generated from these lists.
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

/* Streams that stall the NIC, or that the NIC stalls. */
enum urdma_trace_stream {
	URDMA_TRACE_STREAM_CQ, /* the NIC does not accept a request of the host */
	URDMA_TRACE_STREAM_CC, /* PCIe does not accept a completion */
	URDMA_TRACE_STREAM_RQ, /* PCIe does not accept a request of the NIC */
	URDMA_TRACE_STREAM_RC, /* the NIC does not accept a completion */
	URDMA_TRACE_STREAM_TX, /* the MAC does not accept a frame */
	URDMA_TRACE_STREAMS
};

struct urdma_trace_event {
	uint64_t cycle; /* of the scheduler; 4 ns each */
	uint8_t kind;	/* enum urdma_trace_kind */
	uint8_t nic;
	union {
		uint64_t field[URDMA_TRACE_MAX_FIELDS]; /* the members below, in order */
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

/*
 * A NIC, and the rate of its links in each direction, in Mb/s. The wire's counts bytes with
 * preamble, FCS and gap; that of PCIe counts TLPs with framing and headers.
 */
struct urdma_trace_nic {
	const char *name;
	uint32_t wire_mbps, pcie_mbps;
};

typedef void (*urdma_trace_fn)(void *ctx, const struct urdma_trace_event *event);

/* The name of a kind, and its fields. */
struct urdma_trace_desc {
	const char *name;
	unsigned int n_fields;
	struct urdma_trace_field {
		const char *name;
		uint8_t width; /* bits, 1 to 64 */
	} field[URDMA_TRACE_MAX_FIELDS];
};
extern const struct urdma_trace_desc urdma_trace_desc[URDMA_TRACE_KINDS];

/* The largest value of the field. */
static inline uint64_t urdma_trace_max(const struct urdma_trace_field *field)
{
	return UINT64_MAX >> (64 - field->width);
}

/* Sets the fields of an event of a lane, and its kind. */
void urdma_trace_from_lane(struct urdma_trace_event *event, unsigned int lane,
			   const struct urdma_sim_lane *data);

/*
 * Bytes of this event's TLPs on the PCIe link, with framing and headers; 0 for an event without
 * TLPs. to_host: towards the host of the NIC. Only TLPs of BAR2 reads have no event.
 */
uint32_t urdma_trace_tlp_bytes(const struct urdma_trace_event *event, bool *to_host);

#endif
