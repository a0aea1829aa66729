/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trigger: the moment of a run around which something is written. docs/cosim.md has its form.
 */
#ifndef URDMA_EVENTS_TRIGGER_H
#define URDMA_EVENTS_TRIGGER_H

#include <stddef.h>

#include "trace/events.h"

enum urdma_trigger_what {
	URDMA_TRIGGER_EVENT, /* an event with these values */
	URDMA_TRIGGER_ERROR, /* an error that software sees, see urdma_trigger_matches() */
	URDMA_TRIGGER_FAULT, /* a rule of the wires hits a frame: no event tells this */
};

struct urdma_trigger {
	enum urdma_trigger_what what;
	uint64_t nth; /* of what matches, from 1 */
	int nic;      /* whose event; -1: of any. urdma_trigger_parse() says any */
	uint8_t kind;
	unsigned int n_terms;
	struct urdma_trigger_term {
		unsigned int field;
		uint64_t value;
		/* Instead, if the value was given by name: those that have this name. */
		const char *(*name_of)(uint64_t value);
		const char *name;
	} term[URDMA_TRACE_MAX_FIELDS];
};

/* [N*]EVENT[.FIELD=VALUE]..., [N*]error, fault[=N]. 0, or -EINVAL with the reason in error. */
int urdma_trigger_parse(const char *text, struct urdma_trigger *trigger, char *error, size_t size);
/*
 * Whether it is such an event; the caller counts to nth. Never of URDMA_TRIGGER_FAULT. An error is
 * a CQE with an error status, or the event of an error in the EQ. Flushed WQEs are no error: they
 * follow one, or software has ended their QP.
 */
bool urdma_trigger_matches(const struct urdma_trigger *trigger,
			   const struct urdma_trace_event *event);

#endif
