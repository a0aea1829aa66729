/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows events (follow.h) and writes the files made from them. urdma-events passes the events of
 * a file, urdma-cosim those of a run while it goes on. See follow.h for its use of memory.
 */
#ifndef URDMA_EVENTS_RESULTS_H
#define URDMA_EVENTS_RESULTS_H

#include "events/follow.h"

enum urdma_result { URDMA_RESULT_CSV, URDMA_RESULT_PERFETTO, URDMA_RESULTS };

struct urdma_results_config {
	const struct urdma_trace_nic *nic; /* the NICs; must outlive the results */
	unsigned int n_nics;
	const char *trigger;		 /* of the run; must outlive the results. NULL: none */
	const char *path[URDMA_RESULTS]; /* NULL: not wanted */
	struct urdma_sink another;	 /* gets the same calls as the files; all NULL: none */
};

struct urdma_results;

/*
 * Creates the files. Returns 0, or a negative errno with *which set to the file that could not be
 * created, or to URDMA_RESULTS (-ENOMEM).
 */
int urdma_results_open(const struct urdma_results_config *config, struct urdma_results **results,
		       enum urdma_result *which);
/* As urdma_follow_event(). */
int urdma_results_event(struct urdma_results *results, const struct urdma_trace_event *event);
/* Call after the last event. As urdma_follow_end(). */
int urdma_results_end(struct urdma_results *results);
/*
 * Makes the data of a file so far visible to other processes. Returns its first error, or 0; also 0
 * for a file that was not wanted or is closed.
 */
int urdma_results_flush(struct urdma_results *results, enum urdma_result which);
/* Ends a file, after the end of the events. Returns the same. */
int urdma_results_close(struct urdma_results *results, enum urdma_result which);
void urdma_results_destroy(struct urdma_results *results); /* NULL is allowed */

#endif
