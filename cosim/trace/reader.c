// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* vasprintf */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "trace/format.h"
#include "trace/recorder.h"

#define MAX_NICS 255u

struct urdma_events {
	FILE *file;
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer in;
	uint64_t cycle;
	json_t *nics, *trigger;
	unsigned int n_nics;
	bool at_end;   /* of the file */
	bool complete; /* the writer's end record was seen */
	uint8_t *buffer;
	size_t size;
	size_t at, n; /* of raw */
	uint8_t raw[URDMA_TRACE_BLOCK];
};

/* Reads the next frame into raw. 1; 0 at the end of the file; -EBADMSG, -EIO. */
static int get_block(struct urdma_events *e)
{
	ZSTD_outBuffer out = { .dst = e->raw, .size = sizeof(e->raw) };
	bool begun = false;
	size_t left = 1;

	while (left) {
		size_t before = out.pos;

		if (e->in.pos == e->in.size && !e->at_end) {
			e->in.size = fread(e->buffer, 1, e->size, e->file);
			e->in.pos = 0;
			e->at_end = !e->in.size;
			if (ferror(e->file))
				return -EIO;
		}
		if (e->at_end)
			return begun ? -EBADMSG : 0;
		begun = true;
		left = ZSTD_decompressStream(e->zstd, &out, &e->in);
		if (ZSTD_isError(left) || (left && out.pos == out.size && out.pos == before))
			return -EBADMSG;
	}
	e->at = 0;
	e->n = out.pos;
	return 1;
}

static int get_number(struct urdma_events *e, uint64_t *value)
{
	unsigned int shift = 0;
	uint8_t byte;

	*value = 0;
	do {
		if (e->at == e->n || shift > 63)
			return -EBADMSG;
		byte = e->raw[e->at++];
		*value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return 0;
}

static int say(char **error, int ret, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(error, fmt, ap) < 0)
		*error = NULL;
	va_end(ap);
	return ret;
}

static int get_header(struct urdma_events *e, const char *path, char **error)
{
	int ret = get_block(e), version = 0, ns = 0;
	json_t *json = NULL, *kinds, *mine = urdma_trace_kinds();
	const char *what = "";

	if (ret == 1)
		json = json_loadb((const char *)e->raw, e->n, 0, NULL);
	e->at = e->n;
	if (!json ||
	    json_unpack(json, "{s:s, s:i, s:i, s:O, s?O, s:o}", "file", &what, "version", &version,
			"cycle_ns", &ns, "nics", &e->nics, "trigger", &e->trigger, "kinds",
			&kinds) ||
	    strcmp(what, URDMA_TRACE_WHAT))
		ret = say(error, -EINVAL, "%s is no file of events", path);
	else if (version != (int)URDMA_TRACE_VERSION || ns != (int)URDMA_SIM_CYCLE_NS ||
		 !json_equal(kinds, mine))
		ret = say(error, -EINVAL,
			  "%s was written by another version: use the urdma-events that was built "
			  "with the urdma-cosim that wrote it",
			  path);
	else
		ret = 0;
	if (!ret && (!json_array_size(e->nics) || json_array_size(e->nics) > MAX_NICS))
		ret = say(error, -EINVAL, "%s names no NICs", path);
	e->n_nics = (unsigned int)json_array_size(e->nics);
	json_decref(mine);
	json_decref(json);
	return ret;
}

int urdma_events_open(const char *path, struct urdma_events **events, char **error)
{
	struct urdma_events *e = calloc(1, sizeof(*e));
	int ret;

	*error = NULL;
	if (!e)
		return -ENOMEM;
	e->size = ZSTD_DStreamInSize();
	e->buffer = malloc(e->size);
	e->in.src = e->buffer;
	e->zstd = ZSTD_createDCtx();
	e->file = fopen(path, "rbe");
	if (!e->buffer || !e->zstd)
		ret = say(error, -ENOMEM, "no memory");
	else if (!e->file)
		ret = say(error, -errno, "cannot read %s: %s", path, strerror(errno));
	else
		ret = get_header(e, path, error);
	if (ret)
		urdma_events_close(e);
	else
		*events = e;
	return ret;
}

void urdma_events_close(struct urdma_events *e)
{
	if (!e)
		return;
	if (e->file)
		fclose(e->file);
	json_decref(e->nics);
	json_decref(e->trigger);
	ZSTD_freeDCtx(e->zstd);
	free(e->buffer);
	free(e);
}

unsigned int urdma_events_nics(const struct urdma_events *e)
{
	return e->n_nics;
}

struct urdma_trace_nic urdma_events_nic(const struct urdma_events *e, unsigned int nic)
{
	json_t *json = json_array_get(e->nics, nic);
	const char *name = json_string_value(json_object_get(json, "name"));

	return (struct urdma_trace_nic){
		.name = name ? name : "?",
		.wire_mbps = (uint32_t)json_integer_value(json_object_get(json, "wire_mbps")),
		.pcie_mbps = (uint32_t)json_integer_value(json_object_get(json, "pcie_mbps")),
	};
}

const char *urdma_events_trigger(const struct urdma_events *e)
{
	return json_string_value(e->trigger);
}

int urdma_events_next(struct urdma_events *e, struct urdma_trace_event *event)
{
	uint64_t kind, nic, cycles;

	while (e->at == e->n) {
		int ret = e->complete ? 0 : get_block(e);

		if (ret <= 0)
			return ret;
	}
	if (get_number(e, &kind))
		return -EBADMSG;
	if (kind == URDMA_TRACE_END) {
		e->complete = true;
		return e->at == e->n ? 0 : -EBADMSG;
	}
	if (kind > URDMA_TRACE_END || get_number(e, &nic) || nic >= e->n_nics ||
	    get_number(e, &cycles))
		return -EBADMSG;
	for (unsigned int i = 0; i < urdma_trace_desc[kind].n_fields; i++)
		if (get_number(e, &event->field[i]))
			return -EBADMSG;
	e->cycle += cycles;
	event->cycle = e->cycle;
	event->kind = (uint8_t)kind;
	event->nic = (uint8_t)nic;
	return 1;
}

bool urdma_events_complete(const struct urdma_events *e)
{
	return e->complete;
}
