/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moments of the slowest messages: a window of time around each, and a trace of it for
 * ui.perfetto.dev. Such a trace has the events of the window, and the complete lives of WQEs,
 * frames and packets that overlap it.
 */
#ifndef URDMA_EVENTS_MOMENTS_H
#define URDMA_EVENTS_MOMENTS_H

#include <limits.h>

#include "events/stats.h"
#include "trace/recorder.h"

/* Cycles [from, to). */
struct urdma_window {
	uint64_t from, to;
};

/*
 * For each of s->slowest: its life, extended before and after by an eighth, at least 1 us.
 * Overlapping windows are merged, so two windows are either the same or disjoint.
 */
void urdma_moments_windows(const struct urdma_stats *s, struct urdma_window window[URDMA_SLOWEST]);

/*
 * Reads the events of [from_ns, to_ns) again and writes a trace for each window into dir, which
 * must exist. The name of a trace is the start of its window in ns, with the suffix ".perfetto". If
 * the events end before the window, so does the trace. Returns 0, or a negative errno with the path
 * of the trace that could not be written, or "" (-ENOMEM).
 */
int urdma_moments_write(const struct urdma_stats *s, struct urdma_events *events, uint64_t from_ns,
			uint64_t to_ns, const char *dir, char path[PATH_MAX]);

#endif
