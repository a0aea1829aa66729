// SPDX-License-Identifier: Apache-2.0
// urdma_mac_tx alone: frames that are cut at random, and a MAC that stalls. Each beat must stay
// until the MAC takes it. Each frame must end: a complete frame unchanged, a cut frame after its
// beginning with one last beat that has an error. SEED=n repeats a run.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
}

#include "Vurdma_mac_tx.h"
#include "rtl/bench.h"
#include "urdma_pkg.h"

enum { DATA = mac_beat_t_data_LSB, WORDS = (mac_beat_t_W + 31) / 32 };

struct bench {
	Vurdma_mac_tx top;
	uint64_t seed, cycles;
	uint32_t number, at, beats; // the frame that goes in: beats of it taken, in all; 0: none
	bool open, held;	    // the MAC is in the midst of a frame; a beat waits
	uint32_t out_number, out_at;
	uint32_t held_beat[WORDS];
	unsigned int frames, cuts, cut_open, cut_stalled;
};

static void check_out(bench &b, bool cut_before)
{
	const uint32_t *p = b.top.mac.m_storage;

	if (b.held) {
		if (!b.top.mac_valid)
			fail_msg("cycle %lu: a beat vanishes", b.cycles);
		assert_memory_equal(p, b.held_beat, sizeof(b.held_beat));
	}
	if (!b.top.mac_valid)
		return;
	if (!b.top.mac_ready)
		memcpy(b.held_beat, p, sizeof(b.held_beat));
	b.held = !b.top.mac_ready;
	if (!b.top.mac_ready)
		return;
	if (FIELD_GET(p, 0, mac_beat_t, err)) {
		if (!b.open || !cut_before)
			fail_msg("cycle %lu: an error in a frame that was not cut", b.cycles);
		assert_int_equal(FIELD_GET(p, 0, mac_beat_t, last), 1);
		b.open = false;
		return;
	}
	if (!b.open) {
		b.out_number = bits_get(p, DATA, 32);
		b.out_at = 0;
	}
	assert_int_equal(bits_get(p, DATA, 32), b.out_number);
	assert_int_equal(bits_get(p, DATA + 32, 32), b.out_at++);
	b.open = !FIELD_GET(p, 0, mac_beat_t, last);
	b.frames += !b.open;
}

static void test_random(void **)
{
	bench *b = new bench();
	bool cut_seen = false;

	b->seed = bench_state(test_seed(1));
	b->top.rst = 1;
	for (int i = 0; i < 4; i++)
		bench_clock(b->top);
	b->top.rst = 0;
	for (b->cycles = 0; b->cycles < 400000; b->cycles++) {
		unsigned int phase = b->cycles / 1000 % 3; // the MAC is always ready, often, seldom
		uint32_t *in = b->top.in.m_storage;
		bool taken, waits;

		if (!b->beats && one_in(b, 3)) {
			b->number++;
			b->beats = 1 + rnd(b, 8);
			b->at = 0;
		}
		b->top.cut = one_in(b, 40);
		b->top.in_valid = b->beats != 0;
		b->top.mac_ready = !phase || one_in(b, phase == 1 ? 2 : 12);
		memset(in, 0, sizeof(uint32_t) * WORDS);
		bits_set(in, DATA, 32, b->number);
		bits_set(in, DATA + 32, 32, b->at);
		FIELD_SET(in, 0, mac_beat_t, keep, ~0ull);
		FIELD_SET(in, 0, mac_beat_t, last, b->at + 1 == b->beats);
		bench_settle(b->top);
		waits = b->top.mac_valid && !b->top.mac_ready;
		cut_seen |= b->top.cut;
		check_out(*b, cut_seen);
		taken = b->top.in_valid && b->top.in_ready && !b->top.cut;
		if (taken && ++b->at == b->beats)
			b->beats = 0;
		if (b->top.cut) {
			// the transmit side is reset: its frame is gone
			b->cuts++;
			b->cut_open += b->at != 0 && b->beats;
			b->cut_stalled += b->at != 0 && b->beats && waits;
			b->beats = 0;
			b->at = 0;
		}
		if (!b->open && !b->held)
			cut_seen = false;
		bench_edge(b->top);
	}
	// What was begun is ended, also when nothing more comes.
	b->top.cut = 1;
	b->top.in_valid = 0;
	b->top.mac_ready = 1;
	for (int i = 0; i < 4; i++) {
		bench_settle(b->top);
		check_out(*b, true);
		bench_edge(b->top);
		b->top.cut = 0;
	}
	assert_false(b->open);
	bench_settle(b->top);
	assert_false(b->top.busy);
	assert_true(b->frames > 1000 && b->cut_open > 300 && b->cut_stalled > 100);
	delete b;
}

int main()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	return cmocka_run_group_tests_name("mac_tx", tests, NULL, NULL);
}
