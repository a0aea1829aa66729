/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Items that wait for a later event with the same key, in the order in which they began: packets
 * wait for their frame, frames for their reception. At most `most` items wait; then the oldest is
 * given up.
 */
#ifndef URDMA_EVENTS_WAITING_H
#define URDMA_EVENTS_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urdma_waiting_item {
	uint64_t key;
	uint64_t cycle;	 /* when it began */
	uint64_t id;	 /* flow; value of a doorbell */
	uint64_t number; /* of a frame */
	uint32_t qpn;
	uint32_t place; /* in the queue */
	uint16_t wqe;
	uint8_t nic;
	bool live;
	bool again, first, last, resp, full;
};

struct urdma_waiting {
	struct urdma_waiting_item *item;
	uint32_t size;	     /* power of two, 0 before the first */
	uint32_t head, tail; /* free running */
};

/* A packet as both sides see it: destination QP, PSN and opcode. */
static inline uint64_t urdma_packet_key(uint64_t qpn, uint64_t psn, uint64_t opcode)
{
	return qpn << 32 | (psn & 0xffffff) << 8 | (opcode & 0xff);
}

/* An empty item at the end. NULL: no memory. Valid until the next urdma_waiting_add(). */
struct urdma_waiting_item *urdma_waiting_add(struct urdma_waiting *w, uint32_t most, uint64_t key,
					     uint64_t cycle);
/* The oldest item with the key, after item `after` (NULL: of all). NULL: there is none. */
struct urdma_waiting_item *urdma_waiting_find(struct urdma_waiting *w, uint64_t key,
					      const struct urdma_waiting_item *after);
/* The next live item, from the oldest on. */
struct urdma_waiting_item *urdma_waiting_next(struct urdma_waiting *w,
					      const struct urdma_waiting_item *after);
void urdma_waiting_remove(struct urdma_waiting *w, struct urdma_waiting_item *item);
void urdma_waiting_clear(struct urdma_waiting *w);
void urdma_waiting_free(struct urdma_waiting *w);

#endif
