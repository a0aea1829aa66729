/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of the last cycles, in memory, for a window that looks back. An event takes
 * sizeof(struct urdma_trace_event), 80 bytes. Memory grows with the number of events up to a limit.
 * Beyond it the oldest events are dropped, and the history knows from which cycle on it is
 * complete.
 */
#ifndef URDMA_COSIM_TRACE_HISTORY_H
#define URDMA_COSIM_TRACE_HISTORY_H

#include <stddef.h>

#include "trace/events.h"

struct urdma_history;

/*
 * Keeps the events of the newest cycle and of the `cycles` before it, at most max events, or as
 * many as fit in memory. NULL: no memory.
 */
struct urdma_history *urdma_history_create(uint64_t cycles, size_t max);
/* Cycles may not decrease. */
void urdma_history_add(struct urdma_history *history, const struct urdma_trace_event *event);
/*
 * Calls fn for the events from cycle `from` on, oldest first, and drops all events. Returns the
 * cycle from which they are complete: `from`, or a later one if there was no room for all.
 */
uint64_t urdma_history_take(struct urdma_history *history, uint64_t from, urdma_trace_fn fn,
			    void *ctx);
void urdma_history_destroy(struct urdma_history *history); /* NULL is allowed */

#endif
