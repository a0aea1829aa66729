// SPDX-License-Identifier: Apache-2.0
#include "trace/history.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 1024u

struct urdma_history {
	uint64_t cycles;
	size_t max;
	struct urdma_trace_event *event; /* a ring */
	size_t size, first, n;
	uint64_t whole_from; /* no event from this cycle on was dropped for lack of room */
};

struct urdma_history *urdma_history_create(uint64_t cycles, size_t max)
{
	struct urdma_history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->cycles = cycles;
	h->max = max;
	h->size = max < FIRST_SIZE ? max : FIRST_SIZE;
	h->event = calloc(h->size, sizeof(*h->event));
	if (!h->event) {
		free(h);
		return NULL;
	}
	return h;
}

static void drop_first(struct urdma_history *h)
{
	h->first = (h->first + 1) % h->size;
	h->n--;
}

/* False: it cannot grow. */
static bool grow(struct urdma_history *h)
{
	size_t size = h->size > h->max / 2 ? h->max : h->size * 2, tail = h->size - h->first;
	struct urdma_trace_event *more;

	if (size == h->size)
		return false;
	more = malloc(size * sizeof(*more));
	if (!more)
		return false;
	/* The ring is full: copy from the first event to its end, then the rest. */
	memcpy(more, h->event + h->first, tail * sizeof(*more));
	memcpy(more + tail, h->event, h->first * sizeof(*more));
	free(h->event);
	h->event = more;
	h->size = size;
	h->first = 0;
	return true;
}

void urdma_history_add(struct urdma_history *h, const struct urdma_trace_event *event)
{
	while (h->n && event->cycle - h->event[h->first].cycle > h->cycles)
		drop_first(h);
	if (h->n == h->size && !grow(h)) {
		h->whole_from = h->event[h->first].cycle + 1;
		drop_first(h);
	}
	h->event[(h->first + h->n++) % h->size] = *event;
}

uint64_t urdma_history_take(struct urdma_history *h, uint64_t from, urdma_trace_fn fn, void *ctx)
{
	for (; h->n; drop_first(h))
		if (h->event[h->first].cycle >= from)
			fn(ctx, &h->event[h->first]);
	return h->whole_from > from ? h->whole_from : from;
}

void urdma_history_destroy(struct urdma_history *h)
{
	if (!h)
		return;
	free(h->event);
	free(h);
}
