/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters over time: makes slices of the lines of samples.jsonl (docs/cosim.md), for the report.
 * Memory grows with the number of counters, not with the length of the file.
 *
 * A line has what changed in the time of a sample before it. The slices have the time in which
 * there is traffic, frames at a MAC or CQEs, as series.h says. A pause is as long as for events, or
 * a sample.
 */
#ifndef URDMA_EVENTS_SAMPLES_H
#define URDMA_EVENTS_SAMPLES_H

#include <jansson.h>
#include <stdint.h>

struct urdma_samples_reader;

/* sample_ns: --sample-us of the run, in ns; not 0. NULL: no memory. */
struct urdma_samples_reader *urdma_samples_reader_create(uint64_t sample_ns);
/*
 * The next line. 0, -ENOMEM, or -EBADMSG: it is no line of samples, or its time or a counter goes
 * back.
 */
int urdma_samples_reader_line(struct urdma_samples_reader *r, const char *line);
/* What docs/report.md describes, after the last line. NULL: no memory. */
json_t *urdma_samples_reader_json(struct urdma_samples_reader *r);
void urdma_samples_reader_destroy(struct urdma_samples_reader *r); /* NULL is allowed */

#endif
