// SPDX-License-Identifier: Apache-2.0
/* Block test of the small parts in rtl/lib. SEED=n repeats a run; the seed is printed. */
#include "lib_model.h"
#include "seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static uint64_t rng;

static uint32_t rnd(uint32_t n)
{
	return rnd_below(&rng, n);
}

static struct lib_model *start(struct lib_pins *p)
{
	struct lib_model *m = lib_model_new();

	memset(p, 0, sizeof(*p));
	p->rst = true;
	for (int i = 0; i < 3; i++) {
		lib_model_eval(m, p);
		lib_model_edge(m);
	}
	p->rst = false;
	lib_model_eval(m, p);
	lib_model_edge(m); /* the register slice opens a cycle after reset */
	return m;
}

/* What goes in comes out, in order; full and count say what is inside. */
static void test_queues_random(void **state)
{
	static const uint32_t places[3] = { 8, 8, 2 };
	uint32_t q[3][1024];
	uint32_t head[3] = { 0 }, tail[3] = { 0 };
	struct lib_pins p;
	struct lib_model *m = start(&p);

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint8_t old_valid = p.out_valid & ~p.out_ready;
		uint32_t speed = i / 10000;

		p.in_valid = 0;
		p.out_ready = 0;
		for (int k = 0; k < 3; k++) {
			p.in_valid |= (rnd(10) <= speed) << k;
			p.out_ready |= (rnd(10) >= speed) << k;
		}
		p.in_data = rnd(~0u);
		lib_model_eval(m, &p);
		assert_int_equal(p.out_valid & old_valid, old_valid);
		for (int k = 0; k < 3; k++) {
			uint32_t inside = tail[k] - head[k];

			assert_int_equal(p.in_ready >> k & 1, inside < places[k]);
			if (k < 2)
				assert_int_equal(p.count[k], inside);
			if (p.out_valid >> k & 1) {
				assert_true(inside > 0);
				assert_int_equal(p.out_data[k], q[k][head[k] % 1024]);
				head[k] += p.out_ready >> k & 1;
			}
			if (p.in_valid & p.in_ready & 1 << k)
				q[k][tail[k]++ % 1024] = p.in_data;
		}
		lib_model_edge(m);
	}
	for (int k = 0; k < 3; k++)
		assert_true(tail[k] > 20000);
	lib_model_free(m);
}

/* The latencies of the headers, and a word a cycle. */
static void test_queues_speed(void **state)
{
	static const int latency[3] = { 1, 2, 1 };
	struct lib_pins p;
	struct lib_model *m = start(&p);

	(void)state;
	p.in_valid = p.out_ready = 7;
	for (int i = 0; i < 100; i++) {
		p.in_data = i;
		lib_model_eval(m, &p);
		assert_int_equal(p.in_ready, 7);
		for (int k = 0; k < 3; k++) {
			assert_int_equal(p.out_valid >> k & 1, i >= latency[k]);
			if (i >= latency[k])
				assert_int_equal(p.out_data[k], i - latency[k]);
		}
		lib_model_edge(m);
	}
	lib_model_free(m);
}

static void test_arbiter(void **state)
{
	struct lib_pins p;
	struct lib_model *m = start(&p);
	int last = 4, waited[5] = { 0 };

	(void)state;
	for (int i = 0; i < 20000; i++) {
		int want = -1;

		p.req = rnd(32);
		p.advance = rnd(2);
		lib_model_eval(m, &p);
		for (int k = 1; k <= 5 && want < 0; k++)
			if (p.req >> (last + k) % 5 & 1)
				want = (last + k) % 5;
		assert_int_equal(p.grant_valid, want >= 0);
		assert_int_equal(p.grant, want < 0 ? 0 : 1 << want);
		if (want >= 0) {
			assert_int_equal(p.grant_idx, want);
			if (p.advance) {
				last = want;
				for (int k = 0; k < 5; k++)
					waited[k] = p.req >> k & 1 && k != want ? waited[k] + 1 : 0;
			}
		}
		for (int k = 0; k < 5; k++) {
			if (!(p.req >> k & 1))
				waited[k] = 0;
			assert_true(waited[k] < 5);
		}
		lib_model_edge(m);
	}
	lib_model_free(m);
}

static void test_ram(void **state)
{
	uint32_t mem[16] = { 0 }, want = 0;
	bool read = false;
	struct lib_pins p;
	struct lib_model *m = start(&p);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		p.wr_en = rnd(2);
		p.wr_addr = rnd(16);
		p.wr_data = rnd(~0u);
		p.rd_en = rnd(2);
		p.rd_addr = rnd(3) ? rnd(16) : p.wr_addr;
		lib_model_eval(m, &p);
		if (read)
			assert_int_equal(p.rd_data, want);
		if (p.rd_en) {
			want = mem[p.rd_addr]; /* the old word if it is written now */
			read = true;
		}
		if (p.wr_en)
			mem[p.wr_addr] = p.wr_data;
		lib_model_edge(m);
	}
	lib_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queues_random),
		cmocka_unit_test(test_queues_speed),
		cmocka_unit_test(test_arbiter),
		cmocka_unit_test(test_ram),
	};

	rng = test_seed(1) * 0x9e3779b97f4a7c15ull + 1;
	return cmocka_run_group_tests_name("lib", tests, NULL, NULL);
}
