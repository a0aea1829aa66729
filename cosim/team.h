/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A team of threads that shares a short piece of work many thousand times per second: the
 * evaluation of the NICs in one cycle.
 *
 * Member i % size does item i; the caller is member 0. Two items must not touch the same data. A
 * member spins for about 50 us while it waits for its next items. Then it sleeps until new work
 * wakes it.
 */
#ifndef URDMA_COSIM_TEAM_H
#define URDMA_COSIM_TEAM_H

#include <stddef.h>

struct urdma_team;

typedef void (*urdma_team_fn)(void *item);

/* size threads, including the caller's. Returns NULL if there is no memory or no thread. */
struct urdma_team *urdma_team_create(unsigned int size);
void urdma_team_destroy(struct urdma_team *team);

/* Calls fn for each of n items, and returns when all are done. */
void urdma_team_run(struct urdma_team *team, urdma_team_fn fn, void *const *items, unsigned int n);

#endif
