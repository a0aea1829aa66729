// SPDX-License-Identifier: Apache-2.0
// A line for each completed WQE, as in RFC 4180.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/outputs.h"
#include "output.h"

struct urdma_csv {
	struct urdma_output *out;
	const struct urdma_trace_nic *nic;
	size_t n;
	char line[8192];
};

static void put(struct urdma_csv *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct urdma_csv *c, const char *fmt, ...)
{
	size_t room = sizeof(c->line) - c->n;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(c->line + c->n, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		c->n += (size_t)n < room ? (size_t)n : room - 1;
}

/* A text field, in quotes if a character needs them. */
static void put_text(struct urdma_csv *c, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		put(c, "%.1000s,", text);
		return;
	}
	put(c, "\"");
	for (unsigned int i = 0; text[i] && i < 1000; i++)
		put(c, text[i] == '"' ? "\"\"" : "%c", text[i]);
	put(c, "\",");
}

static void end_line(struct urdma_csv *c)
{
	struct iovec part = { .iov_base = c->line };

	put(c, "\r\n");
	part.iov_len = c->n;
	urdma_output_record(c->out, &part, 1);
	c->n = 0;
}

int urdma_csv_open(const char *path, const struct urdma_trace_nic *nic, struct urdma_csv **csv)
{
	struct urdma_csv *c = calloc(1, sizeof(*c));
	int ret = c ? urdma_output_open(path, &c->out) : -ENOMEM;

	if (ret) {
		free(c);
		return ret;
	}
	c->nic = nic;
	put(c, "nic,qp,wqe,op,bytes,psn,packets,retries,causes,status,start_ns");
	for (unsigned int i = 0; i < URDMA_STAGES; i++)
		put(c, ",%s_ns", urdma_stage_name[i]);
	put(c, ",whole_ns");
	end_line(c);
	*csv = c;
	return 0;
}

static void wqe(void *ctx, const struct urdma_wqe *w)
{
	struct urdma_csv *c = ctx;
	char causes[256] = "";
	size_t n = 0;

	for (unsigned int i = 0; i < URDMA_CAUSES; i++)
		if (w->retries[i] && urdma_cause_resends(i))
			n += (size_t)snprintf(causes + n, sizeof(causes) - n, "%s%u %s",
					      n ? "; " : "", w->retries[i], urdma_name_cause(i));
	put_text(c, c->nic[w->nic].name);
	put(c, "%u,%u,", w->qpn, w->index);
	put_text(c, urdma_name_op(w->op));
	put(c, "%u,%u,%u,%u,", w->bytes, w->psn, w->packets, urdma_wqe_retries(w));
	put_text(c, causes);
	put_text(c, urdma_name_status(w->status));
	put(c, "%llu", (unsigned long long)w->at[URDMA_AT_WRITE] * URDMA_CYCLE_NS);
	for (unsigned int i = 0; i < URDMA_STAGES; i++)
		put(c, ",%llu", (unsigned long long)urdma_wqe_stage(w, i) * URDMA_CYCLE_NS);
	put(c, ",%llu", (unsigned long long)urdma_wqe_whole(w) * URDMA_CYCLE_NS);
	end_line(c);
}

struct urdma_sink urdma_csv_sink(struct urdma_csv *csv)
{
	return (struct urdma_sink){ .ctx = csv, .wqe = wqe };
}

int urdma_csv_flush(struct urdma_csv *c)
{
	return c ? urdma_output_flush(c->out) : 0;
}

int urdma_csv_close(struct urdma_csv *c)
{
	int ret;

	if (!c)
		return 0;
	ret = urdma_output_close(c->out);
	free(c);
	return ret;
}
