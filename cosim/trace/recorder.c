// SPDX-License-Identifier: Apache-2.0
#include "trace/recorder.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "output.h"
#include "trace/format.h"

#define LEVEL 1 /* of zstd: must keep up with the simulation */

struct urdma_recorder {
	struct urdma_output *out;
	ZSTD_CCtx *zstd;
	int error;
	uint64_t cycle;	  /* of the last record */
	uint64_t events;  /* added */
	uint64_t waiting; /* of these, in raw */
	uint64_t missing;
	size_t n; /* bytes in raw */
	uint8_t raw[URDMA_TRACE_BLOCK];
	uint8_t packed[ZSTD_COMPRESSBOUND(URDMA_TRACE_BLOCK)];
};

static_assert(ZSTD_COMPRESSBOUND(URDMA_TRACE_BLOCK) <= URDMA_OUTPUT_MAX_RECORD,
	      "a frame is a record");

/* Writes raw as a separate frame, so that the events in the file are known. */
static void put_block(struct urdma_recorder *r)
{
	struct iovec part = { .iov_base = r->packed };

	if (!r->n)
		return;
	part.iov_len =
		ZSTD_compressCCtx(r->zstd, r->packed, sizeof(r->packed), r->raw, r->n, LEVEL);
	if (ZSTD_isError(part.iov_len)) {
		r->error = -ENOMEM;
	} else {
		urdma_output_record(r->out, &part, 1);
		r->error = urdma_output_flush(r->out);
	}
	if (r->error)
		r->missing += r->waiting;
	r->waiting = 0;
	r->n = 0;
}

static void put_number(struct urdma_recorder *r, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		r->raw[r->n++] = (uint8_t)(value | 0x80);
	r->raw[r->n++] = (uint8_t)value;
}

static int put_header(struct urdma_recorder *r, const struct urdma_trace_nic *nic, unsigned int n,
		      const char *trigger)
{
	json_t *nics = json_array(), *json;
	char *text;
	size_t len;

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(nics, json_pack("{s:s, s:I, s:I}", "name", nic[i].name,
						      "wire_mbps", (json_int_t)nic[i].wire_mbps,
						      "pcie_mbps", (json_int_t)nic[i].pcie_mbps));
	json = json_pack("{s:s, s:i, s:i, s:o, s:s?, s:o}", "file", URDMA_TRACE_WHAT, "version",
			 (int)URDMA_TRACE_VERSION, "cycle_ns", (int)URDMA_SIM_CYCLE_NS, "nics",
			 nics, "trigger", trigger, "kinds", urdma_trace_kinds());
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	if (!text)
		return -ENOMEM;
	len = strlen(text);
	if (len <= sizeof(r->raw)) {
		memcpy(r->raw, text, len);
		r->n = len;
	}
	free(text);
	put_block(r);
	return len <= sizeof(r->raw) ? r->error : -EMSGSIZE;
}

int urdma_recorder_open(const char *path, const struct urdma_trace_nic *nic, unsigned int n,
			const char *trigger, struct urdma_recorder **recorder)
{
	struct urdma_recorder *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return -ENOMEM;
	r->zstd = ZSTD_createCCtx();
	ret = r->zstd ? urdma_output_open(path, &r->out) : -ENOMEM;
	if (!ret)
		ret = put_header(r, nic, n, trigger);
	if (ret) {
		urdma_output_close(r->out);
		ZSTD_freeCCtx(r->zstd);
		free(r);
		return ret;
	}
	*recorder = r;
	return 0;
}

void urdma_recorder_add(struct urdma_recorder *r, const struct urdma_trace_event *event)
{
	unsigned int n = urdma_trace_desc[event->kind].n_fields;

	assert(event->cycle >= r->cycle);
	r->events++;
	if (r->error) {
		r->missing++;
		return;
	}
	if (r->n + URDMA_TRACE_MAX_RECORD > sizeof(r->raw)) {
		put_block(r);
		if (r->error) {
			r->missing++;
			return;
		}
	}
	put_number(r, event->kind);
	put_number(r, event->nic);
	put_number(r, event->cycle - r->cycle);
	for (unsigned int i = 0; i < n; i++)
		put_number(r, event->field[i]);
	r->cycle = event->cycle;
	r->waiting++;
}

int urdma_recorder_flush(struct urdma_recorder *r)
{
	if (!r->error)
		put_block(r);
	return r->error;
}

int urdma_recorder_error(const struct urdma_recorder *r)
{
	return r->error;
}

uint64_t urdma_recorder_events(const struct urdma_recorder *r)
{
	return r->events;
}

uint64_t urdma_recorder_missing(const struct urdma_recorder *r)
{
	return r->missing;
}

int urdma_recorder_close(struct urdma_recorder *r)
{
	int ret, closed;

	if (!r)
		return 0;
	ret = urdma_recorder_flush(r);
	if (!ret) {
		put_number(r, URDMA_TRACE_END);
		ret = urdma_recorder_flush(r);
	}
	closed = urdma_output_close(r->out);
	ZSTD_freeCCtx(r->zstd);
	free(r);
	return ret ? ret : closed;
}
