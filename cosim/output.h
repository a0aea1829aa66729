/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result file of a run, written record by record.
 *
 * The first error ends the file: the failed record and all later ones are lost, and the file is cut
 * back to whole records. The error is kept, and flush and close return it, so that an incomplete
 * file is never taken for a complete one.
 */
#ifndef URDMA_COSIM_OUTPUT_H
#define URDMA_COSIM_OUTPUT_H

#include <stddef.h>
#include <sys/uio.h>

#define URDMA_OUTPUT_MAX_RECORD (256u << 10)

struct urdma_output;

/* Creates or truncates the file. Returns 0 or a negative errno. */
int urdma_output_open(const char *path, struct urdma_output **out);
/* Writes one record of at most URDMA_OUTPUT_MAX_RECORD bytes, in n parts. */
void urdma_output_record(struct urdma_output *out, const struct iovec *part, unsigned int n);
/* Makes all records written so far visible to other processes. Returns 0 or the first error. */
int urdma_output_flush(struct urdma_output *out);
/* The first error known so far; records in the buffer may still fail. */
int urdma_output_error(const struct urdma_output *out);
/* Returns 0 if every record is in the file, else the first error. Frees it. NULL is allowed. */
int urdma_output_close(struct urdma_output *out);

#endif
