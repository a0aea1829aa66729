// SPDX-License-Identifier: Apache-2.0
// External port: sends the frames of a capture. It only counts received frames.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eth/external_ops.h"
#include "eth/pcapng.h"

struct replay {
	char *path;
	bool fast, held;
	bool only_in, only_out;
	uint64_t begin; /* cycle of the first frame */
	struct urdma_pcapng_reader *reader;
	uint64_t first_ns;
	/* The next frame. */
	struct urdma_pcapng_packet next;
	bool have;
};

static int parse(struct urdma_external *e, char *args, char *error, size_t size)
{
	struct replay *r;
	char *path = strsep(&args, ","), *word;

	if (!path[0])
		return urdma_external_bad(error, size, "replay: no file");
	r = calloc(1, sizeof(*r) + strlen(path) + 1);
	if (!r)
		return -ENOMEM;
	e->impl = r;
	r->path = strcpy((char *)(r + 1), path);
	while ((word = strsep(&args, ","))) {
		unsigned long long ns;
		int n = 0;

		if (!strcmp(word, "fast"))
			r->fast = true;
		else if (!strcmp(word, "hold"))
			r->held = true;
		else if (!strcmp(word, "only=in"))
			r->only_in = true;
		else if (!strcmp(word, "only=out"))
			r->only_out = true;
		else if (sscanf(word, "at=%18llu%n", &ns, &n) == 1 && !word[n] && word[3] != '-' &&
			 word[3] != '+')
			r->begin = urdma_ns_to_cycles(ns);
		else
			return urdma_external_bad(error, size,
						  "replay: '%s' is none of fast, hold, at=NS, "
						  "only=in, only=out",
						  word);
	}
	if (r->only_in && r->only_out)
		return urdma_external_bad(error, size, "replay: only=in excludes only=out");
	return 0;
}

/* The next frame that can be sent. 1, 0, negative. */
static int load(struct urdma_external *e, char *error, size_t size, uint64_t *skipped)
{
	struct replay *r = e->impl;
	int ret;

	for (;;) {
		const struct urdma_pcapng_packet *p = &r->next;

		ret = urdma_pcapng_read(r->reader, &r->next, error, size);
		r->have = ret == 1;
		if (ret <= 0)
			return ret;
		if ((r->only_in && !p->inbound) || (r->only_out && !p->outbound))
			continue;
		if (p->ethernet && !p->truncated && p->len >= URDMA_EXTERNAL_MIN_FRAME &&
		    p->len <= URDMA_ETH_MAX_FRAME)
			return 1;
		++*skipped;
	}
}

/* Checks the whole file before the replay begins. */
static int open_replay(struct urdma_external *e, char *error, size_t size)
{
	struct replay *r = e->impl;
	uint64_t frames = 0, skipped = 0;
	char why[160];
	int ret;

	ret = urdma_pcapng_reader_open(r->path, &r->reader, why, sizeof(why));
	while (!ret) {
		ret = load(e, why, sizeof(why), &skipped);
		if (ret <= 0)
			break;
		if (!frames++)
			r->first_ns = r->next.ns;
		ret = 0;
	}
	if (ret) {
		urdma_external_bad(error, size, "cannot replay %s: %s", r->path, why);
		return ret;
	}
	if (!frames)
		return urdma_external_bad(error, size, "cannot replay %s: no frame in it is fit",
					  r->path);
	urdma_pcapng_rewind(r->reader);
	ret = load(e, why, sizeof(why), &e->stats.skipped);
	e->stats.up = ret == 1;
	return ret == 1 ? 0 : urdma_external_bad(error, size, "%s has changed", r->path);
}

static void close_replay(struct urdma_external *e)
{
	struct replay *r = e->impl;

	urdma_pcapng_reader_close(r->reader);
}

static uint64_t due(const struct urdma_external *e)
{
	const struct replay *r = e->impl;

	if (!r->have || r->held)
		return UINT64_MAX;
	/* A time before the first frame's is taken as the first frame's. */
	if (r->fast || r->next.ns < r->first_ns)
		return r->begin;
	return r->begin + urdma_ns_to_cycles(r->next.ns - r->first_ns);
}

static void push(struct urdma_external *e, uint64_t now)
{
	struct replay *r = e->impl;
	char why[160];

	urdma_eth_port_send(&e->port, now, r->next.data, r->next.len, r->next.crc_error);
	if (load(e, why, sizeof(why), &e->stats.skipped) < 0)
		urdma_external_say(e, "the replay ends: %s", why);
	e->stats.up = r->have;
}

static int start(struct urdma_external *e, uint64_t now)
{
	struct replay *r = e->impl;

	if (!r->held)
		return -EALREADY;
	r->held = false;
	r->begin = now;
	return 0;
}

static const char *file(const struct urdma_external *e)
{
	const struct replay *r = e->impl;

	return r->path;
}

const struct urdma_external_ops urdma_external_replay = {
	.kind = "replay",
	.parse = parse,
	.open = open_replay,
	.close = close_replay,
	.due = due,
	.push = push,
	.start = start,
	.file = file,
};
