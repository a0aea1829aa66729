// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_RECORDS 4096u /* in the buffer */

struct urdma_output {
	int fd;
	int error;
	off_t size; /* size of the file in whole records */
	unsigned int n_records;
	size_t end[MAX_RECORDS]; /* end of each record in the buffer */
	uint8_t buffer[URDMA_OUTPUT_MAX_RECORD];
};

int urdma_output_open(const char *path, struct urdma_output **out)
{
	struct urdma_output *o = malloc(sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (o->fd < 0) {
		int ret = -errno;

		free(o);
		return ret;
	}
	o->error = 0;
	o->size = 0;
	o->n_records = 0;
	*out = o;
	return 0;
}

/* Bytes in the buffer. */
static size_t buffered(const struct urdma_output *o)
{
	return o->n_records ? o->end[o->n_records - 1] : 0;
}

/* Writes the buffer; returns how many bytes of it. */
static size_t put(struct urdma_output *o)
{
	size_t done = 0, len = buffered(o);

	while (done < len && !o->error) {
		ssize_t n = write(o->fd, o->buffer + done, len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			o->error = n ? -errno : -EIO;
	}
	return done;
}

/*
 * The first done bytes of the buffer were written: removes a partly written record from the file.
 */
static void cut(struct urdma_output *o, size_t done)
{
	size_t whole = 0;

	for (unsigned int i = 0; i < o->n_records && o->end[i] <= done; i++)
		whole = o->end[i];
	/* A device or a sealed file cannot be truncated; the first error is kept anyway. */
	if (whole < done && ftruncate(o->fd, o->size + (off_t)whole))
		whole = done;
	o->size += (off_t)whole;
}

int urdma_output_flush(struct urdma_output *o)
{
	size_t done;

	if (!o->n_records || o->error)
		return o->error;
	done = put(o);
	cut(o, done);
	o->n_records = 0;
	return o->error;
}

void urdma_output_record(struct urdma_output *o, const struct iovec *part, unsigned int n)
{
	size_t len = 0, at;

	for (unsigned int i = 0; i < n; i++)
		len += part[i].iov_len;
	if (len > URDMA_OUTPUT_MAX_RECORD - buffered(o) || o->n_records == MAX_RECORDS)
		urdma_output_flush(o);
	if (!o->error && len > URDMA_OUTPUT_MAX_RECORD)
		o->error = -EMSGSIZE;
	if (o->error)
		return;
	at = buffered(o);
	for (unsigned int i = 0; i < n; i++) {
		if (part[i].iov_len)
			memcpy(o->buffer + at, part[i].iov_base, part[i].iov_len);
		at += part[i].iov_len;
	}
	o->end[o->n_records++] = at;
}

int urdma_output_error(const struct urdma_output *o)
{
	return o->error;
}

int urdma_output_close(struct urdma_output *o)
{
	int ret;

	if (!o)
		return 0;
	ret = urdma_output_flush(o);
	/* Some file systems report an error only here. */
	if (close(o->fd) && !ret)
		ret = -errno;
	free(o);
	return ret;
}
