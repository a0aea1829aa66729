/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definitions shared by the writer and the reader of events.urdma: recorder.h describes the file.
 */
#ifndef URDMA_COSIM_TRACE_FORMAT_H
#define URDMA_COSIM_TRACE_FORMAT_H

#include <jansson.h>

#include "trace/recorder.h"

#define URDMA_TRACE_BLOCK      (128u << 10) /* maximum bytes of records in a zstd frame */
#define URDMA_TRACE_MAX_RECORD (10u * (3u + URDMA_TRACE_MAX_FIELDS))
#define URDMA_TRACE_END	       URDMA_TRACE_KINDS /* kind of the last record, which has no fields */
#define URDMA_TRACE_WHAT       "urdma events"

/* "kinds" of the first frame, as in this version. NULL: no memory. */
static inline json_t *urdma_trace_kinds(void)
{
	json_t *kinds = json_array();

	for (unsigned int i = 0; i < URDMA_TRACE_KINDS; i++) {
		const struct urdma_trace_desc *desc = &urdma_trace_desc[i];
		json_t *kind = json_array();

		json_array_append_new(kind, json_string(desc->name));
		for (unsigned int k = 0; k < desc->n_fields; k++)
			json_array_append_new(kind, json_string(desc->field[k].name));
		json_array_append_new(kinds, kind);
	}
	return kinds;
}

#endif
