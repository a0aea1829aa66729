/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows events (follow.h) and writes the files that are made of them. urdma-events gives it the
 * events of a file, urdma-cosim those of a run while the run goes on. Memory grows as follow.h
 * says.
 */
#ifndef URDMA_EVENTS_RESULTS_H
#define URDMA_EVENTS_RESULTS_H

#include "events/follow.h"

enum urdma_result { URDMA_RESULT_CSV, URDMA_RESULT_PERFETTO, URDMA_RESULTS };

struct urdma_results_config {
	const struct urdma_trace_nic *nic; /* the NICs; they live as long as the results */
	unsigned int n_nics;
	const char *trigger; /* of the run; it lives as long, too. NULL: there is none */
	const char *path[URDMA_RESULTS]; /* NULL: not wanted */
	struct urdma_sink another;	 /* hears what the files hear; all NULL: nobody */
};

struct urdma_results;

/*
 * Creates the files. 0, or a negative errno; *which is then the file that could not be created, or
 * URDMA_RESULTS (-ENOMEM).
 */
int urdma_results_open(const struct urdma_results_config *config, struct urdma_results **results,
		       enum urdma_result *which);
/* As urdma_follow_event(). */
int urdma_results_event(struct urdma_results *results, const struct urdma_trace_event *event);
/* There are no more events. As urdma_follow_end(). */
int urdma_results_end(struct urdma_results *results);
/* Makes what a file has so far visible to other processes. 0, also for a file that was not wanted
 * or has been closed, or its first error. */
int urdma_results_flush(struct urdma_results *results, enum urdma_result which);
/* Ends a file, after the end of the events. The same. */
int urdma_results_close(struct urdma_results *results, enum urdma_result which);
void urdma_results_destroy(struct urdma_results *results); /* NULL is allowed */

#endif
