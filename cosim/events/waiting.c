// SPDX-License-Identifier: Apache-2.0
#include "events/waiting.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 16u

static struct urdma_waiting_item *at(struct urdma_waiting *w, uint32_t i)
{
	return &w->item[i & (w->size - 1)];
}

static void skip_dead(struct urdma_waiting *w)
{
	while (w->head != w->tail && !at(w, w->head)->live)
		w->head++;
}

/* Makes room for one more: doubles the size, or drops the oldest. */
static bool make_room(struct urdma_waiting *w, uint32_t most)
{
	uint32_t size = w->size ? w->size * 2 : FIRST;
	struct urdma_waiting_item *item;

	if (w->tail - w->head < w->size)
		return true;
	if (w->size >= most) {
		w->head++;
		skip_dead(w);
		return true;
	}
	item = calloc(size, sizeof(*item));
	if (!item)
		return false;
	for (uint32_t i = w->head; i != w->tail; i++)
		item[i & (size - 1)] = *at(w, i);
	free(w->item);
	w->item = item;
	w->size = size;
	return true;
}

struct urdma_waiting_item *urdma_waiting_add(struct urdma_waiting *w, uint32_t most, uint64_t key,
					     uint64_t cycle)
{
	struct urdma_waiting_item *item;

	if (!make_room(w, most))
		return NULL;
	item = at(w, w->tail);
	memset(item, 0, sizeof(*item));
	item->place = w->tail++;
	item->key = key;
	item->cycle = cycle;
	item->live = true;
	return item;
}

struct urdma_waiting_item *urdma_waiting_next(struct urdma_waiting *w,
					      const struct urdma_waiting_item *after)
{
	for (uint32_t i = after ? after->place + 1 : w->head; i != w->tail; i++)
		if (at(w, i)->live)
			return at(w, i);
	return NULL;
}

struct urdma_waiting_item *urdma_waiting_find(struct urdma_waiting *w, uint64_t key,
					      const struct urdma_waiting_item *after)
{
	struct urdma_waiting_item *item = urdma_waiting_next(w, after);

	while (item && item->key != key)
		item = urdma_waiting_next(w, item);
	return item;
}

void urdma_waiting_remove(struct urdma_waiting *w, struct urdma_waiting_item *item)
{
	item->live = false;
	skip_dead(w);
}

void urdma_waiting_clear(struct urdma_waiting *w)
{
	w->head = w->tail;
}

void urdma_waiting_free(struct urdma_waiting *w)
{
	free(w->item);
}
