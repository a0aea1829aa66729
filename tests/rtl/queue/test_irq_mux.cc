// SPDX-License-Identifier: Apache-2.0
// urdma_irq_mux alone: requests of two sources with back-pressure. Each request must leave once, in
// the order of its source; the sources take turns. SEED=n repeats a run.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
}
#include <deque>

#include "Vurdma_irq_mux.h"
#include "rtl/bench.h"

static void test_random(void **)
{
	Vurdma_irq_mux *d = new Vurdma_irq_mux;
	uint64_t random = bench_state(test_seed(1)), got[2] = {}, waits[2] = {}, full = 0;
	std::deque<unsigned int> in[2], way;
	bool held = false, valid[2] = {};
	unsigned int vec[2] = {}, last = 0;

	for (int i = 0; i < 400000; i++) {
		unsigned int rate[2] = { i / 1000 % 3 * 50u, i / 3000 % 3 * 50u };
		unsigned int ready = i / 9000 % 2 ? 40 : 100;

		d->rst = i < 3;
		d->in_valid = 0;
		for (unsigned int s = 0; s < 2; s++) {
			if (!valid[s] && i > 3 && rnd_below(&random, 100) < rate[s]) {
				valid[s] = true;
				// the source is in the vector, the rest is random
				vec[s] = 2 * rnd_below(&random, 32) + s;
			}
			d->in_valid |= valid[s] << s;
		}
		d->in_vec = vec[1] << 6 | vec[0];
		d->irq_ready = rnd_below(&random, 100) < ready;
		bench_settle(*d);
		if (i >= 3 && (!way.empty() || d->in_valid || d->irq_valid))
			assert_true(d->busy);
		if (i >= 3 && !d->in_valid && way.empty())
			assert_false(d->busy);
		if (held)
			assert_true(d->irq_valid && d->irq_vec == last);
		held = i >= 3 && d->irq_valid && !d->irq_ready;
		last = d->irq_vec;
		full += valid[0] && valid[1] && d->irq_valid && d->irq_ready;
		if (i >= 3 && d->irq_valid && d->irq_ready) {
			if (way.empty())
				fail_msg("cycle %d: an interrupt nobody asked for", i);
			assert_int_equal(d->irq_vec, way.front());
			got[way.front() & 1]++;
			way.pop_front();
		}
		unsigned int take = i < 3 ? 0 : d->in_valid & d->in_ready;

		assert_true(take != 3);
		for (unsigned int s = 0; s < 2; s++) {
			if (take >> s & 1) {
				way.push_back(vec[s]);
				valid[s] = false;
				waits[s] = 0;
			} else if (valid[s] && take) {
				// the other has been served: now it is this one's turn
				assert_true(++waits[s] <= 1);
			}
		}
		assert_true(way.size() <= 2);
		bench_edge(*d);
	}
	print_message("%lu + %lu interrupts\n", got[0], got[1]);
	assert_true(got[0] > 50000 && got[1] > 50000 && full > 10000);
	delete d;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
