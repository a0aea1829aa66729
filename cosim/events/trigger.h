/* SPDX-License-Identifier: Apache-2.0 */
/* A trigger: the moment of a run around which something is written. docs/cosim.md has its form. */
#ifndef URDMA_EVENTS_TRIGGER_H
#define URDMA_EVENTS_TRIGGER_H

#include <stddef.h>

#include "trace/events.h"

enum urdma_trigger_what {
	URDMA_TRIGGER_EVENT, /* an event with these values */
	URDMA_TRIGGER_ERROR, /* an error of a QP */
	URDMA_TRIGGER_FAULT, /* a rule of the wires hits a frame: no event tells this */
};

struct urdma_trigger {
	enum urdma_trigger_what what;
	uint64_t nth; /* of what matches, from 1 */
	int nic;      /* whose event; -1: any */
	uint8_t kind;
	unsigned int n_terms;
	struct urdma_trigger_term {
		unsigned int field;
		uint64_t value;
		const char *(*name_of)(uint64_t value); /* if the value was given by name */
		const char *name;
	} term[URDMA_TRACE_MAX_FIELDS];
};

/* nic[]: names of the n NICs. 0, or -EINVAL with the reason in error. */
int urdma_trigger_parse(const char *text, const char *const *nic, unsigned int n,
			struct urdma_trigger *trigger, char *error, size_t size);
/* Whether it is such an event; the caller counts to nth. Never of URDMA_TRIGGER_FAULT. */
bool urdma_trigger_matches(const struct urdma_trigger *trigger,
			   const struct urdma_trace_event *event);

#endif
