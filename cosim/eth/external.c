// SPDX-License-Identifier: Apache-2.0
// Code shared by all external ports. See external.h.
#include "eth/external.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eth/external_ops.h"

/* Maximum bytes from the peer that wait for the line; beyond it, the peer waits. */
#define IN_LIMIT (256u << 10)
/* Maximum bytes that wait for the peer; beyond it, frames are dropped. */
#define OUT_LIMIT (1024u << 10)
/* Maximum frames from the peer, good or bad, per call, so that other ports get their turn. */
#define IN_FRAMES 256u

struct urdma_external_waiting {
	struct urdma_external_waiting *next;
	size_t len;
	uint8_t data[];
};

static const struct urdma_external_ops *const kinds[] = {
	&urdma_external_stream,
	&urdma_external_dgram,
	&urdma_external_tap,
	&urdma_external_replay,
};

void urdma_external_say(const struct urdma_external *e, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "urdma-cosim: port %s: ", e->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int urdma_external_bad(char *error, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int urdma_external_ip_port(const char *text)
{
	unsigned long v;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return -1;
	v = strtoul(text, &end, 10);
	return *end || !v || v > 65535 ? -1 : (int)v;
}

bool urdma_external_name_ok(const char *name, size_t len)
{
	bool letter = false;

	if (!len || len >= sizeof(((struct urdma_external *)NULL)->name))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '.')
			return false;
		letter |= isalpha((unsigned char)name[i]) != 0;
	}
	/* Not a number, not the name of a NIC or a switch, and usable as the name of a capture. */
	return letter && name[0] != '.' && strncmp(name, "urdma", 5) && strncmp(name, "switch", 6);
}

/* ---- to the peer --------------------------------------------------------------------------- */

static void forget_queue(struct urdma_external *e, bool count)
{
	while (e->queue) {
		struct urdma_external_waiting *w = e->queue;

		e->queue = w->next;
		free(w);
		e->stats.no_peer += count;
	}
	e->queue_end = &e->queue;
	e->queue_bytes = 0;
}

static void to_peer(struct urdma_external *e, const void *data, size_t len)
{
	struct urdma_external_waiting *w;

	if (!e->queue) {
		int ret = e->ops->send(e, data, len);

		if (!ret)
			return;
		if (ret != -EAGAIN) {
			e->stats.no_peer++;
			return;
		}
	}
	w = e->queue_bytes + len <= OUT_LIMIT ? malloc(sizeof(*w) + len) : NULL;
	if (!w) {
		e->stats.peer_full++;
		return;
	}
	w->next = NULL;
	w->len = len;
	memcpy(w->data, data, len);
	*e->queue_end = w;
	e->queue_end = &w->next;
	e->queue_bytes += len;
}

static bool flush(struct urdma_external *e)
{
	bool any = false;

	while (e->queue) {
		struct urdma_external_waiting *w = e->queue;
		int ret = e->ops->send(e, w->data, w->len);

		if (ret == -EAGAIN)
			break;
		if (ret) {
			forget_queue(e, true);
			break;
		}
		e->queue = w->next;
		if (!e->queue)
			e->queue_end = &e->queue;
		e->queue_bytes -= w->len;
		free(w);
		any = true;
	}
	return any;
}

static void deliver(void *ctx, struct urdma_eth_port *port, uint64_t now,
		    const struct urdma_eth_frame *f)
{
	struct urdma_external *e = ctx;

	(void)port;
	(void)now;
	if (f->error)
		e->stats.bad_fcs++;
	else if (e->ops->send)
		to_peer(e, f->data, f->len);
}

static const struct urdma_eth_frame_ops frame_ops = { .deliver = deliver };

/* ---- from the peer ------------------------------------------------------------------------- */

bool urdma_external_process(struct urdma_external *e, uint64_t now)
{
	uint8_t frame[URDMA_ETH_MAX_FRAME + 1];
	unsigned int frames = 0;
	bool any = false;

	if (!e->ops->receive)
		return false;
	any = flush(e);
	e->more = false;
	while (e->port.out_bytes < IN_LIMIT) {
		int n;

		if (frames++ == IN_FRAMES) {
			e->more = true;
			break;
		}
		n = e->ops->receive(e, frame);

		if (n < 0)
			break;
		any = true;
		if (n < (int)URDMA_EXTERNAL_MIN_FRAME || n > (int)URDMA_ETH_MAX_FRAME)
			e->stats.bad_length++;
		else
			urdma_eth_port_send(&e->port, now, frame, (size_t)n, false);
	}
	return any;
}

unsigned int urdma_external_pollfds(const struct urdma_external *e, struct pollfd *fds)
{
	return e->ops->pollfds ? e->ops->pollfds(e, fds, e->queue != NULL) : 0;
}

bool urdma_external_waiting(const struct urdma_external *e)
{
	return e->more || (e->queue && e->ops->no_pollout);
}

/* ---- time ---------------------------------------------------------------------------------- */

uint64_t urdma_external_due(const struct urdma_external *e)
{
	return e->ops->due && !e->port.out ? e->ops->due(e) : UINT64_MAX;
}

bool urdma_external_advance(struct urdma_external *e, uint64_t now)
{
	bool moved = urdma_eth_port_advance(&e->port, now);

	/* One frame at a time: the next is read when the line has accepted it. */
	while (urdma_external_due(e) <= now) {
		e->ops->push(e, now);
		moved |= urdma_eth_port_advance(&e->port, now);
	}
	return moved;
}

int urdma_external_start(struct urdma_external *e, uint64_t now)
{
	return e->ops->start ? e->ops->start(e, now) : -EINVAL;
}

const char *urdma_external_file(const struct urdma_external *e)
{
	return e->ops->file ? e->ops->file(e) : NULL;
}

/* ---- making and ending --------------------------------------------------------------------- */

int urdma_external_parse(const char *text, struct urdma_external **ext, char *error, size_t size)
{
	const char *eq = strchr(text, '=');
	struct urdma_external *e;
	char *args, *colon;
	int ret = -ENOMEM;

	if (!eq)
		return urdma_external_bad(error, size, "not of the form NAME=KIND:...");
	if (!urdma_external_name_ok(text, (size_t)(eq - text)))
		return urdma_external_bad(
			error, size,
			"the name has to be 1 to %zu letters, digits, '_' and '.', "
			"not only digits, and not begin with urdma or switch",
			sizeof(e->name) - 1);
	e = calloc(1, sizeof(*e));
	args = strdup(eq + 1);
	if (!e || !args) {
		urdma_external_bad(error, size, "out of memory");
		goto err;
	}
	memcpy(e->name, text, (size_t)(eq - text));
	e->queue_end = &e->queue;
	colon = strchr(args, ':');
	if (colon)
		*colon = '\0';
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(args, kinds[i]->kind))
			e->ops = kinds[i];
	if (!e->ops || !colon) {
		ret = urdma_external_bad(error, size,
					 "the kind '%s' is none of stream:, dgram:, "
					 "tap:, replay:",
					 args);
		goto err;
	}
	ret = e->ops->parse(e, colon + 1, error, size);
	if (ret)
		goto err;
	free(args);
	*ext = e;
	return 0;
err:
	if (e)
		free(e->impl);
	free(e);
	free(args);
	return ret;
}

int urdma_external_open(struct urdma_external *e, uint64_t rate_mbps, char *error, size_t size)
{
	urdma_eth_port_init(&e->port, e->name, rate_mbps);
	urdma_eth_port_set_frames(&e->port, IN_LIMIT + URDMA_ETH_MAX_FRAME, &frame_ops, e);
	return e->ops->open(e, error, size);
}

void urdma_external_destroy(struct urdma_external *e)
{
	if (!e)
		return;
	e->ops->close(e);
	forget_queue(e, false);
	urdma_eth_port_cleanup(&e->port);
	free(e->impl);
	free(e);
}

const char *urdma_external_name(const struct urdma_external *e)
{
	return e->name;
}

const char *urdma_external_kind(const struct urdma_external *e)
{
	return e->ops->kind;
}

struct urdma_eth_port *urdma_external_port(struct urdma_external *e)
{
	return &e->port;
}

const struct urdma_external_stats *urdma_external_stats(const struct urdma_external *e)
{
	return &e->stats;
}
