/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moments of the slowest messages: a window of time around each, and a trace of it for
 * ui.perfetto.dev. Such a trace has what happened in the window, and whole the WQEs, frames and
 * packets that lived in it.
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
 * Of each of s->slowest: its life with an eighth of it before and after, 1 us at least. Windows
 * that overlap become one, so two are the same or apart.
 */
void urdma_moments_windows(const struct urdma_stats *s, struct urdma_window window[URDMA_SLOWEST]);

/*
 * Reads the events of [from_ns, to_ns) once more, those that s has, and writes a trace for each
 * window into dir, which must exist: its name is the window's begin in ns, ".perfetto". Where the
 * events end too early, the traces end, too. 0, or a negative errno, with the path of the trace
 * that could not be written, or "" (-ENOMEM).
 */
int urdma_moments_write(const struct urdma_stats *s, struct urdma_events *events, uint64_t from_ns,
			uint64_t to_ns, const char *dir, char path[PATH_MAX]);

#endif
