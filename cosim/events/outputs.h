/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs made from events: each is a sink of follow.h. Functions that open return 0 or a negative
 * errno. Functions that flush make the data written so far visible to other processes, and return 0
 * or the first error of the file. Functions that close free the output and return the same. Both
 * allow NULL.
 */
#ifndef URDMA_EVENTS_OUTPUTS_H
#define URDMA_EVENTS_OUTPUTS_H

#include <jansson.h>

#include "events/follow.h"

#define URDMA_CYCLE_NS 4u

/* nic[]: the n NICs. trigger: the trigger of the run, NULL: none. They must outlive the outputs. */

struct urdma_csv;
int urdma_csv_open(const char *path, const struct urdma_trace_nic *nic, struct urdma_csv **csv);
struct urdma_sink urdma_csv_sink(struct urdma_csv *csv);
int urdma_csv_flush(struct urdma_csv *csv);
int urdma_csv_close(struct urdma_csv *csv);

struct urdma_perfetto;
int urdma_perfetto_open(const char *path, const struct urdma_trace_nic *nic, unsigned int n,
			const char *trigger, struct urdma_perfetto **perfetto);
struct urdma_sink urdma_perfetto_sink(struct urdma_perfetto *perfetto);
int urdma_perfetto_flush(struct urdma_perfetto *perfetto);
int urdma_perfetto_close(struct urdma_perfetto *perfetto);

struct urdma_stats;
struct urdma_stats *urdma_stats_create(const struct urdma_trace_nic *nic, unsigned int n,
				       const char *trigger);
struct urdma_sink urdma_stats_sink(struct urdma_stats *stats);
/* Call after the last event. */
void urdma_stats_end(struct urdma_stats *stats);
/* NULL: no memory. complete: the file has its end record and was read up to it. */
json_t *urdma_stats_json(const struct urdma_stats *stats, bool complete);
void urdma_stats_table(const struct urdma_stats *stats);
void urdma_stats_destroy(struct urdma_stats *stats);

#endif
