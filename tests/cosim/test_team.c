// SPDX-License-Identifier: Apache-2.0
/*
 * The team of threads. A failure means that a NIC would be left out of a cycle or evaluated twice,
 * or that a run hangs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "team.h"

#define ITEMS 16u

struct item {
	unsigned int runs;
};

static void once(void *arg)
{
	struct item *item = arg;

	item->runs++;
}

static void each_item_once(void **state)
{
	(void)state;
	for (unsigned int size = 1; size <= 5; size++) {
		struct urdma_team *team = urdma_team_create(size);
		struct item item[ITEMS] = { 0 };
		unsigned int want[ITEMS] = { 0 };
		void *items[ITEMS];

		assert_non_null(team);
		for (unsigned int i = 0; i < ITEMS; i++)
			items[i] = &item[i];
		for (unsigned int k = 0; k < 600; k++) {
			unsigned int n = k * 7 % (ITEMS + 1);

			if (k % 100 == 99)
				usleep(2000); /* the members fall asleep */
			urdma_team_run(team, once, items, n);
			for (unsigned int i = 0; i < ITEMS; i++) {
				want[i] += i < n;
				assert_int_equal(item[i].runs, want[i]);
			}
		}
		urdma_team_destroy(team);
	}
}

/* Members that never had work, and sleeping ones, are ended, too. */
static void ends(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < 20; k++) {
		struct urdma_team *team = urdma_team_create(4);

		assert_non_null(team);
		if (k % 2)
			usleep(2000);
		urdma_team_destroy(team);
	}
	urdma_team_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_item_once),
		cmocka_unit_test(ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
