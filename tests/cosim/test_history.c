// SPDX-License-Identifier: Apache-2.0
// The events of the last cycles, compared with a list of all events.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "random.h"
#include "seed.h"
#include "trace/history.h"

#define EVENTS 20000u

static struct urdma_trace_event all[EVENTS];
static unsigned int n_all;

static struct urdma_trace_event got[EVENTS];
static unsigned int n_got;

static void take(void *ctx, const struct urdma_trace_event *event)
{
	assert_ptr_equal(ctx, all);
	got[n_got++] = *event;
}

static void add(struct urdma_history *h, uint64_t cycle)
{
	struct urdma_trace_event event = { .cycle = cycle,
					   .kind = URDMA_TRACE_IRQ,
					   .irq.vector = n_all };

	all[n_all++] = event;
	urdma_history_add(h, &event);
}

/* The taken events are the last n of all. */
static void taken(struct urdma_history *h, uint64_t from, unsigned int n, uint64_t whole_from)
{
	n_got = 0;
	assert_int_equal(urdma_history_take(h, from, take, all), whole_from);
	assert_int_equal(n_got, n);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(got[i].cycle, all[n_all - n + i].cycle);
		assert_int_equal(got[i].irq.vector, n_all - n + i);
	}
}

static unsigned int since(uint64_t from)
{
	unsigned int n = 0;

	while (n < n_all && all[n_all - 1 - n].cycle >= from)
		n++;
	return n;
}

static struct urdma_history *create(uint64_t cycles, size_t max)
{
	struct urdma_history *h = urdma_history_create(cycles, max);

	assert_non_null(h);
	n_all = 0;
	return h;
}

static void test_none(void **state)
{
	(void)state;
	struct urdma_history *h = create(10, 5);

	taken(h, 3, 0, 3);
	urdma_history_destroy(h);
	urdma_history_destroy(NULL);
}

/* The newest cycle, and this many before it. */
static void test_cycles(void **state)
{
	(void)state;
	static const uint64_t cycles[] = { 0, 1, 7, 100, 5000, UINT64_MAX };

	for (unsigned int i = 0; i < sizeof(cycles) / sizeof(*cycles); i++) {
		struct urdma_history *h = create(cycles[i], EVENTS);
		struct urdma_random seed = { test_seed(i + 1) };
		uint64_t cycle = 0, from;

		for (unsigned int k = 0; k < EVENTS; k++) {
			/* Bursts and pauses. */
			if (urdma_random_next(&seed) % 4 == 0)
				cycle += urdma_random_next(&seed) % (k % 1000 ? 3 : 300);
			add(h, cycle);
		}
		from = cycle > cycles[i] ? cycle - cycles[i] : 0;
		taken(h, from, since(from), from);
		/* Nothing is left. */
		taken(h, from, 0, from);
		urdma_history_destroy(h);
	}
}

/* Fewer than are kept. */
static void test_from(void **state)
{
	(void)state;
	struct urdma_history *h = create(100, EVENTS);

	for (uint64_t cycle = 0; cycle < 5000; cycle++)
		add(h, cycle);
	taken(h, 4990, 10, 4990);
	urdma_history_destroy(h);
}

/*
 * When there are more than max, the last ones stay. A cycle that has lost an event is not complete.
 */
static void test_full(void **state)
{
	(void)state;
	static const size_t max[] = { 1, 2, 1000, 1024, 1500, 2048, 3000 };

	for (unsigned int i = 0; i < sizeof(max) / sizeof(*max); i++) {
		struct urdma_history *h = create(UINT64_MAX, max[i]);

		for (unsigned int k = 0; k < max[i]; k++)
			add(h, k / 2);
		taken(h, 0, (unsigned int)max[i], 0);
		urdma_history_destroy(h);

		h = create(UINT64_MAX, max[i]);
		/* Before the ring grows for the first time, its first event is not at its
		 * beginning. */
		for (unsigned int k = 0; k < 3 * max[i] + 1; k++)
			add(h, k / 2);
		/* The first one that is left has the number 2 * max + 1: the second one of its
		 * cycle. */
		taken(h, 0, (unsigned int)max[i], max[i] + 1);
		urdma_history_destroy(h);
	}
}

/* A burst that was too large has passed. */
static void test_full_before(void **state)
{
	(void)state;
	struct urdma_history *h = create(1000, 500);

	for (unsigned int k = 0; k < 600; k++)
		add(h, k);
	for (unsigned int k = 0; k < 200; k++)
		add(h, 5000 + k);
	taken(h, 4199, 200, 4199);
	urdma_history_destroy(h);
}

/* The ring grows while its first event is in the middle. */
static void test_grow(void **state)
{
	(void)state;
	struct urdma_history *h = create(1000, EVENTS);

	for (unsigned int k = 0; k < 700; k++)
		add(h, k);
	for (unsigned int k = 0; k < 5000; k++)
		add(h, 1500);
	taken(h, 500, 5200, 500);
	urdma_history_destroy(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none), cmocka_unit_test(test_cycles),
		cmocka_unit_test(test_from), cmocka_unit_test(test_full),
		cmocka_unit_test(test_grow), cmocka_unit_test(test_full_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
