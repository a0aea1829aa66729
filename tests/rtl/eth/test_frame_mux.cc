// SPDX-License-Identifier: Apache-2.0
// urdma_frame_mux alone: frames of both sources with back-pressure. Every frame must leave whole,
// once, without a gap, in the order of its source; while both have frames, each gets half of the
// bytes; the counters match the frames that left. SEED=n repeats a run.

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
#include <deque>

#include "Vurdma_frame_mux.h"
#include "rtl/bench.h"
#include "urdma_pkg.h"
#include "urdma_hw.h"

enum { DATA = mac_beat_t_data_LSB };
enum { RDMA, ETH, MAX_FRAME = 9220, BURST = 18432 };

struct frame {
	unsigned int bytes, number;
	bool err;
};

struct bench {
	Vurdma_frame_mux top;
	uint64_t seed, cycles;
	frame now[2];
	unsigned int at[2], percent[2], size[2], ready_percent;
	bool valid[2], open, open_eth, held;
	uint32_t number, out_at, held_words[19];
	std::deque<frame> sent[2];
	uint64_t bytes[2], frames[2];
	unsigned int waits[2], worst[2]; // bytes of the other since a frame waits
};

static unsigned int beats(const frame &f)
{
	return (f.bytes + 63) / 64;
}

static void put_beat(bench &b, unsigned int s)
{
	uint32_t *p = b.top.in.m_storage;
	const frame &f = b.now[s];
	unsigned int base = mac_beat_t_W * s, n = f.bytes - 64 * b.at[s];
	bool last = b.at[s] + 1 == beats(f);

	bits_set(p, base + DATA, 32, f.number);
	bits_set(p, base + DATA + 32, 32, b.at[s]);
	bits_set(p, base + DATA + 448, 64, f.number * 0x9e3779b97f4a7c15ull + b.at[s]);
	FIELD_SET(p, base, mac_beat_t, keep, n >= 64 ? ~0ull : (1ull << n) - 1);
	FIELD_SET(p, base, mac_beat_t, last, last);
	FIELD_SET(p, base, mac_beat_t, err, last && f.err);
}

static void check_beat(bench &b)
{
	const uint32_t *p = b.top.out.m_storage;
	unsigned int s = b.top.out_eth, n;

	if (!b.open) {
		if (b.sent[s].empty())
			fail_msg("cycle %lu: a frame nobody sent", b.cycles);
		b.open_eth = s;
		b.out_at = 0;
	}
	if (s != b.open_eth)
		fail_msg("cycle %lu: a frame of %u in a frame of %u", b.cycles, s, b.open_eth);
	const frame &f = b.sent[s].front();

	assert_int_equal(bits_get(p, DATA, 32), f.number);
	assert_int_equal(bits_get(p, DATA + 32, 32), b.out_at);
	assert_int_equal(bits_get(p, DATA + 448, 64), f.number * 0x9e3779b97f4a7c15ull + b.out_at);
	n = f.bytes - 64 * b.out_at > 64 ? 64 : f.bytes - 64 * b.out_at;
	b.out_at++;
	b.open = b.out_at < beats(f);
	assert_int_equal(FIELD_GET(p, 0, mac_beat_t, last), !b.open);
	assert_int_equal(FIELD_GET(p, 0, mac_beat_t, err), !b.open && f.err);
	assert_int_equal(FIELD_GET(p, 0, mac_beat_t, keep), n == 64 ? ~0ull : (1ull << n) - 1);
	assert_int_equal(b.top.bytes, n);
	assert_int_equal(b.top.cnt, b.open ? 0 : 1ull << URDMA_CNT_TX_FRAMES);
	b.bytes[s] += n;
	if (b.valid[!s])
		b.waits[!s] += n;
	if (b.waits[!s] > b.worst[!s])
		b.worst[!s] = b.waits[!s];
	b.waits[s] = 0;
	if (!b.open) {
		b.frames[s]++;
		b.sent[s].pop_front();
	}
}

static void cycle(bench &b)
{
	b.top.in_valid = 0;
	for (unsigned int s = 0; s < 2; s++) {
		if (!b.valid[s] && rnd(&b, 100) < b.percent[s]) {
			unsigned int bytes = b.size[s];

			if (!bytes)
				bytes = rnd(&b, 2) ? 1 + rnd(&b, MAX_FRAME) : 60 + rnd(&b, 200);
			b.now[s] = { bytes, b.number++, rnd(&b, 20) == 0 };
			b.sent[s].push_back(b.now[s]);
			b.valid[s] = true;
			b.waits[s] = 0;
		}
		if (b.valid[s]) {
			b.top.in_valid |= 1u << s;
			put_beat(b, s);
		}
	}
	b.top.out_ready = rnd(&b, 100) < b.ready_percent;
	bench_settle(b.top);
	unsigned int take = b.top.in_valid & b.top.in_ready;
	bool taken[2] = { (take & 1) != 0, take >> 1 != 0 };

	if (taken[0] && taken[1])
		fail_msg("cycle %lu: two beats at once", b.cycles);
	assert_int_equal(taken[0] || taken[1], b.top.out_valid && b.top.out_ready);
	// no latency: who has something to send is served
	assert_int_equal(b.top.out_valid, b.top.in_valid != 0);
	if (b.held)
		assert_memory_equal(b.held_words, b.top.out.m_storage, sizeof(b.held_words));
	b.held = b.top.out_valid && !b.top.out_ready;
	memcpy(b.held_words, b.top.out.m_storage, sizeof(b.held_words));
	if (b.top.out_valid && b.top.out_ready) {
		assert_true(taken[b.top.out_eth]);
		check_beat(b);
	} else {
		assert_int_equal(b.top.bytes, 0);
		assert_int_equal(b.top.cnt, 0);
	}
	bench_edge(b.top);
	b.cycles++;
	for (unsigned int s = 0; s < 2; s++) {
		if (taken[s] && ++b.at[s] == beats(b.now[s])) {
			b.at[s] = 0;
			b.valid[s] = false;
		}
	}
}

static void start(bench &b)
{
	b.seed = bench_state(test_seed(1));
	b.top.rst = 1;
	for (int i = 0; i < 2; i++) {
		bench_clock(b.top);
	}
	b.top.rst = 0;
}

static void drain(bench &b)
{
	b.percent[0] = b.percent[1] = 0;
	for (int i = 0; i < 400; i++)
		cycle(b);
	assert_true(b.sent[0].empty() && b.sent[1].empty() && !b.open);
}

static void test_random(void **)
{
	bench *b = new bench();

	start(*b);
	for (int round = 0; round < 100; round++) {
		b->ready_percent = round % 3 ? 100 : 30;
		for (int s = 0; s < 2; s++)
			b->percent[s] = rnd(b, 3) ? rnd(b, 101) : rnd(b, 3);
		for (int i = 0; i < 3000; i++)
			cycle(*b);
	}
	b->ready_percent = 100;
	drain(*b);
	print_message(
		"%lu + %lu frames, %lu + %lu bytes, longest wait for %u, %u bytes of the other\n",
		b->frames[0], b->frames[1], b->bytes[0], b->bytes[1], b->worst[0], b->worst[1]);
	assert_true(b->frames[0] > 1000 && b->frames[1] > 1000);
	// what may be ahead, the frame that ends this, the one that is under way
	for (auto w : b->worst)
		assert_in_range(w, 1, 2 * BURST + 2 * MAX_FRAME);
	delete b;
}

// Both always have a frame: each gets half of the bytes whatever their sizes.
static void fair(unsigned int rdma, unsigned int eth, bool rest)
{
	bench *b = new bench();
	uint64_t from[2];
	double ratio;

	start(*b);
	b->size[RDMA] = rdma;
	b->size[ETH] = eth;
	b->ready_percent = 100;
	if (rest) {
		// one of them alone for long: that gives the other no right to as much
		b->percent[ETH] = 100;
		for (int i = 0; i < 100000; i++)
			cycle(*b);
	}
	b->percent[RDMA] = b->percent[ETH] = 100;
	b->worst[RDMA] = b->worst[ETH] = 0;
	from[RDMA] = b->bytes[RDMA];
	from[ETH] = b->bytes[ETH];
	for (int i = 0; i < 400000; i++)
		cycle(*b);
	ratio = (double)(b->bytes[RDMA] - from[RDMA]) / (b->bytes[ETH] - from[ETH]);
	print_message(
		"%u against %u bytes: ratio %.4f, longest wait for %u, %u bytes of the other\n",
		rdma, eth, ratio, b->worst[RDMA], b->worst[ETH]);
	assert_true(ratio > 0.99 && ratio < 1.01);
	// what it was ahead when the other came counts, as far as BURST goes
	assert_in_range(b->worst[ETH], rest ? BURST : 1, BURST + MAX_FRAME);
	assert_in_range(b->worst[RDMA], 1, 2 * MAX_FRAME);
	drain(*b);
	delete b;
}

static void test_fair(void **)
{
	fair(64, MAX_FRAME, false);
	fair(MAX_FRAME, 64, false);
	fair(1500, 0, false);
	fair(61, 65, true);
	fair(64, MAX_FRAME, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_fair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
