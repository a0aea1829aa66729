/* SPDX-License-Identifier: Apache-2.0 */
/* A trigger: the moment of a run around which output is written. docs/cosim.md has its syntax. */
#ifndef URDMA_EVENTS_TRIGGER_H
#define URDMA_EVENTS_TRIGGER_H

#include <stddef.h>

#include "trace/events.h"

enum urdma_trigger_what {
	URDMA_TRIGGER_EVENT, /* an event with these values */
	URDMA_TRIGGER_ERROR, /* an error that software sees, see urdma_trigger_matches() */
	URDMA_TRIGGER_FAULT, /* a rule of the wires hits a frame; there is no event for it */
};

struct urdma_trigger {
	enum urdma_trigger_what what;
	uint64_t nth; /* the nth match triggers, from 1 */
	int nic;      /* NIC of the event; -1: any, as set by urdma_trigger_parse() */
	uint8_t kind;
	unsigned int n_terms;
	struct urdma_trigger_term {
		unsigned int field;
		uint64_t value;
		/*
		 * If the value was given by name, this replaces value: all values with that name.
		 */
		const char *(*name_of)(uint64_t value);
		const char *name;
	} term[URDMA_TRACE_MAX_FIELDS];
};

/* [N*]EVENT[.FIELD=VALUE]..., [N*]error, fault[=N]. 0, or -EINVAL with the reason in error. */
int urdma_trigger_parse(const char *text, struct urdma_trigger *trigger, char *error, size_t size);
/*
 * True if the event matches; the caller counts to nth. Never true for URDMA_TRIGGER_FAULT. An error
 * is a CQE with an error status, or an error event in the EQ. A flushed WQE is not an error: it
 * follows one, or software has ended its QP.
 */
bool urdma_trigger_matches(const struct urdma_trigger *trigger,
			   const struct urdma_trace_event *event);

#endif
