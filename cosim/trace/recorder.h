/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes events to a file and reads them back.
 *
 * The file is a sequence of zstd frames, each with whole records, and begins with a frame of JSON:
 * the version of the format, the NICs, the trigger if the run has one, and the kinds of events with
 * their fields. So a truncated file or a file of another version is recognized. A record is the
 * kind, the NIC, the cycles since the record before it and the fields, all as LEB128.
 */
#ifndef URDMA_COSIM_TRACE_RECORDER_H
#define URDMA_COSIM_TRACE_RECORDER_H

#include <stddef.h>

#include "trace/events.h"

#define URDMA_TRACE_VERSION 2u

struct urdma_recorder;

/*
 * nic[]: the n NICs. trigger: the trigger of the run; NULL: none. Creates or truncates the file. 0,
 * -errno.
 */
int urdma_recorder_open(const char *path, const struct urdma_trace_nic *nic, unsigned int n,
			const char *trigger, struct urdma_recorder **recorder);
/* Cycles may not decrease. After an error no more events are written; they are only counted. */
void urdma_recorder_add(struct urdma_recorder *r, const struct urdma_trace_event *event);
/* Makes everything added so far visible to other processes. 0, or the first error. */
int urdma_recorder_flush(struct urdma_recorder *r);
int urdma_recorder_error(const struct urdma_recorder *r);
uint64_t urdma_recorder_events(const struct urdma_recorder *r);	 /* added so far */
uint64_t urdma_recorder_missing(const struct urdma_recorder *r); /* events lost by an error */
/* Marks the file as complete. 0 if every event is in it, else the first error. Frees it. NULL is
 * allowed. */
int urdma_recorder_close(struct urdma_recorder *r);

struct urdma_events; /* a reader */

/* 0, or a negative errno with a message in *error, which the caller frees. */
int urdma_events_open(const char *path, struct urdma_events **events, char **error);
void urdma_events_close(struct urdma_events *events);
unsigned int urdma_events_nics(const struct urdma_events *events);
struct urdma_trace_nic urdma_events_nic(const struct urdma_events *events, unsigned int nic);
/* The trigger of the run; NULL: none. */
const char *urdma_events_trigger(const struct urdma_events *events);
/* 1: *event is the next one; 0: end of file; -EBADMSG: the file is damaged. */
int urdma_events_next(struct urdma_events *events, struct urdma_trace_event *event);
/* After the last event: true if the writer has closed the file. */
bool urdma_events_complete(const struct urdma_events *events);

#endif
