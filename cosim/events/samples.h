/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters over time: converts the lines of samples.jsonl (docs/cosim.md) into slices for the
 * report. Memory grows with the number of counters, not with the length of the file.
 *
 * A line has the changes of the sample period before it. The slices cover the time with traffic
 * (frames at a MAC, or CQEs), see series.h. The pause is that for events, rounded up to whole
 * samples.
 */
#ifndef URDMA_EVENTS_SAMPLES_H
#define URDMA_EVENTS_SAMPLES_H

#include <jansson.h>
#include <stdint.h>

struct urdma_samples_reader;

/* sample_ns: --sample-us of the run, in ns; not 0. NULL: no memory. */
struct urdma_samples_reader *urdma_samples_reader_create(uint64_t sample_ns);
/*
 * Takes the next line. 0, -ENOMEM, or -EBADMSG: not a line of samples, or its time or a counter
 * decreases.
 */
int urdma_samples_reader_line(struct urdma_samples_reader *r, const char *line);
/* Call after the last line. The object that docs/report.md describes. NULL: no memory. */
json_t *urdma_samples_reader_json(struct urdma_samples_reader *r);
void urdma_samples_reader_destroy(struct urdma_samples_reader *r); /* NULL is allowed */

#endif
