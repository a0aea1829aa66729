/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of the last cycles, in memory: what a window that looks back needs. An event takes
 * sizeof(struct urdma_trace_event), 80 bytes. Memory grows up to the most events that there were at
 * a time, and not beyond a limit; then the oldest go, and it is known since when all are there.
 */
#ifndef URDMA_COSIM_TRACE_HISTORY_H
#define URDMA_COSIM_TRACE_HISTORY_H

#include <stddef.h>

#include "trace/events.h"

struct urdma_history;

/* Keeps the events of the newest one's cycle and the `cycles` before it; max of them at most, or as
 * many as there is memory for. NULL: no memory. */
struct urdma_history *urdma_history_create(uint64_t cycles, size_t max);
/* Cycles may not decrease. */
void urdma_history_add(struct urdma_history *history, const struct urdma_trace_event *event);
/*
 * Calls fn for the events from cycle `from` on, oldest first, and forgets all. Returns the cycle
 * from which on they are complete: `from`, or a later one, if there was no room for all.
 */
uint64_t urdma_history_take(struct urdma_history *history, uint64_t from, urdma_trace_fn fn,
			    void *ctx);
void urdma_history_destroy(struct urdma_history *history); /* NULL is allowed */

#endif
