// SPDX-License-Identifier: Apache-2.0
#include "team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Number of polls before a member sleeps: about 50 us. */
#define SPINS 2000u

/* Each on its own cache lines: waiting threads read nothing else. */
struct member {
	_Alignas(128) atomic_uint go;	/* number of the work item to do; or STOP */
	_Alignas(128) atomic_uint done; /* the last one done */
	atomic_bool asleep;
	pthread_mutex_t lock; /* with wake, only for sleeping */
	pthread_cond_t wake;
	pthread_t thread;
	struct urdma_team *team;
	unsigned int index;
};

struct urdma_team {
	unsigned int size;
	unsigned int work; /* number of the current piece, never STOP */
	urdma_team_fn fn;
	void *const *items;
	unsigned int n;
	struct member member[]; /* from index 1 on */
};

#define STOP UINT32_MAX

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

static void share(const struct urdma_team *t, unsigned int index)
{
	for (unsigned int i = index; i < t->n; i += t->size)
		t->fn(t->items[i]);
}

static unsigned int next_work(struct member *m, unsigned int seen)
{
	unsigned int go;

	for (unsigned int i = 0; i < SPINS; i++) {
		go = atomic_load_explicit(&m->go, memory_order_acquire);
		if (go != seen)
			return go;
		relax();
	}
	pthread_mutex_lock(&m->lock);
	/*
	 * The caller writes go, then reads asleep; so one of the two threads sees the other's
	 * write.
	 */
	atomic_store(&m->asleep, true);
	while ((go = atomic_load(&m->go)) == seen)
		pthread_cond_wait(&m->wake, &m->lock);
	atomic_store(&m->asleep, false);
	pthread_mutex_unlock(&m->lock);
	return go;
}

static void *run(void *arg)
{
	struct member *m = arg;
	unsigned int seen = 0;

	while ((seen = next_work(m, seen)) != STOP) {
		share(m->team, m->index);
		atomic_store_explicit(&m->done, seen, memory_order_release);
	}
	return NULL;
}

static void tell(struct member *m, unsigned int work)
{
	atomic_store(&m->go, work);
	if (!atomic_load(&m->asleep))
		return;
	pthread_mutex_lock(&m->lock);
	pthread_cond_signal(&m->wake);
	pthread_mutex_unlock(&m->lock);
}

static void stop(struct urdma_team *t, unsigned int members)
{
	for (unsigned int i = 1; i < members; i++) {
		tell(&t->member[i], STOP);
		pthread_join(t->member[i].thread, NULL);
		pthread_cond_destroy(&t->member[i].wake);
		pthread_mutex_destroy(&t->member[i].lock);
	}
	free(t);
}

struct urdma_team *urdma_team_create(unsigned int size)
{
	struct urdma_team *t;
	size_t bytes = sizeof(*t) + size * sizeof(t->member[0]);

	/* aligned_alloc() needs a multiple of the alignment. */
	bytes = (bytes + _Alignof(struct urdma_team) - 1) / _Alignof(struct urdma_team) *
		_Alignof(struct urdma_team);
	t = aligned_alloc(_Alignof(struct urdma_team), bytes);
	if (!t)
		return NULL;
	t->size = size;
	t->work = 0;
	for (unsigned int i = 1; i < size; i++) {
		struct member *m = &t->member[i];

		atomic_init(&m->go, 0);
		atomic_init(&m->done, 0);
		atomic_init(&m->asleep, false);
		m->team = t;
		m->index = i;
		pthread_mutex_init(&m->lock, NULL);
		pthread_cond_init(&m->wake, NULL);
		if (pthread_create(&m->thread, NULL, run, m)) {
			pthread_cond_destroy(&m->wake);
			pthread_mutex_destroy(&m->lock);
			stop(t, i);
			return NULL;
		}
	}
	return t;
}

void urdma_team_destroy(struct urdma_team *team)
{
	if (team)
		stop(team, team->size);
}

void urdma_team_run(struct urdma_team *t, urdma_team_fn fn, void *const *items, unsigned int n)
{
	unsigned int helpers = n < t->size ? n : t->size;

	t->fn = fn;
	t->items = items;
	t->n = n;
	if (++t->work == STOP)
		t->work = 1;
	for (unsigned int i = 1; i < helpers; i++)
		tell(&t->member[i], t->work);
	share(t, 0);
	for (unsigned int i = 1; i < helpers; i++) {
		/* A member that takes this long has lost its core, perhaps to this thread. */
		for (unsigned int k = 0;
		     atomic_load_explicit(&t->member[i].done, memory_order_acquire) != t->work;
		     k++) {
			if (k < SPINS)
				relax();
			else
				sched_yield();
		}
	}
}
