// SPDX-License-Identifier: Apache-2.0
// urdma_loopback alone: random frames from both sides. Every frame has to arrive once, whole, in
// the order of its source, at the right side; no beat of the MAC may be lost, and neither source
// may starve. A frame turns round by its address or because tx_home says so, and what stands in its
// later beats does not matter. URDMA_SEED=n repeats a run.

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

#include "Vurdma_loopback.h"
#include "rtl/bits.h"

// mac_beat_t: data, keep, last, err
enum { ERR = 0, LAST = 1, KEEP = 2, DATA = 66 };
enum { FROM_TX, FROM_MAC };
static const uint64_t OWN = 0x0a0b0c0d0e0f;
// 9216 bytes and a tag
enum { MAX_BEATS = (9220 + 63) / 64 };

struct frame {
	unsigned int source, beats;
	bool home, forced; // forced: by tx_home
	uint32_t number;
};

struct bench {
	Vurdma_loopback top;
	uint64_t random, cycles = 0;
	// what was begun on each input, and what has to come out
	std::deque<frame> to_rx[2], to_out;
	frame tx_now = {}, mac_now = {};
	unsigned int tx_at = 0, mac_at = 0;
	uint32_t number = 0;
	frame rx_now = {}, out_now = {};
	unsigned int rx_at = 0, out_at = 0;
	uint64_t rx_frames[2] = {};
	unsigned int home_percent, tx_percent, mac_percent, out_percent;
	unsigned int line_percent;    // a beat of the MAC in a cycle, in a frame
	unsigned int gap_percent = 0; // pauses of the transmit side
	uint64_t forced;
};

static uint64_t seed(void)
{
	const char *s = getenv("URDMA_SEED");

	return s ? strtoull(s, NULL, 0) : 1;
}

static void put_beat(uint32_t *port, const frame &f, unsigned int at)
{
	bits_set(port, DATA, 48,
		 (at ? (f.number + at) % 2 : f.home && !f.forced) ? OWN : 0x111111111111);
	bits_set(port, DATA + 64, 32, f.number);
	bits_set(port, DATA + 96, 32, at);
	bits_set(port, KEEP, 64, ~0ull);
	bits_set(port, LAST, 1, at + 1 == f.beats);
	bits_set(port, ERR, 1, 0);
}

// A beat that came out belongs to the oldest frame of its queue.
static void take_beat(const uint32_t *port, frame &now, unsigned int &at, std::deque<frame> *queues,
		      unsigned int n)
{
	uint32_t number = bits_get(port, DATA + 64, 32);

	if (!at) {
		unsigned int i;

		for (i = 0; i < n && (queues[i].empty() || queues[i].front().number != number); i++)
			;
		if (i == n)
			fail_msg("frame %u comes out of order, or where it should not", number);
		now = queues[i].front();
		queues[i].pop_front();
	}
	if (number != now.number || bits_get(port, DATA + 96, 32) != at)
		fail_msg("beat %u of frame %u: got beat %u of %u", at, now.number,
			 (unsigned int)bits_get(port, DATA + 96, 32), number);
	at++;
	assert_int_equal(bits_get(port, LAST, 1), at == now.beats);
	if (at == now.beats)
		at = 0;
}

static frame new_frame(bench &b, unsigned int source)
{
	frame f = { source,
		    (unsigned int)(1 +
				   rnd_below(&b.random, rnd_below(&b.random, 2) ? 4 : MAX_BEATS)),
		    false, false, b.number++ };

	if (rnd_below(&b.random, 8) == 0)
		f.beats = MAX_BEATS;

	f.home = source == FROM_TX && rnd_below(&b.random, 100) < b.home_percent;
	f.forced = f.home && rnd_below(&b.random, 2);
	b.forced += f.forced;
	return f;
}

static void cycle(bench &b)
{
	bool start_tx = b.tx_at == 0 && !b.top.tx_valid && rnd_below(&b.random, 100) < b.tx_percent;

	if (start_tx) {
		b.tx_now = new_frame(b, FROM_TX);
		(b.tx_now.home ? b.to_rx[FROM_TX] : b.to_out).push_back(b.tx_now);
	}
	// the transmit side may pause in a frame, but takes back no beat
	if (start_tx || b.top.tx_valid || (b.tx_at && rnd_below(&b.random, 100) >= b.gap_percent)) {
		b.top.tx_valid = 1;
		put_beat(b.top.tx, b.tx_now, b.tx_at);
		// it counts with the first beat
		b.top.tx_home = b.tx_at ? b.cycles & 1 : b.tx_now.forced;
	}
	b.top.mac_valid = 0;
	if (b.mac_at == 0 && rnd_below(&b.random, 100) < b.mac_percent) {
		b.mac_now = new_frame(b, FROM_MAC);
		b.to_rx[FROM_MAC].push_back(b.mac_now);
		b.top.mac_valid = 1;
	} else if (b.mac_at) {
		// a line is slower than a beat a cycle
		b.top.mac_valid = rnd_below(&b.random, 100) < b.line_percent;
	}
	if (b.top.mac_valid)
		put_beat(b.top.mac_in, b.mac_now, b.mac_at);
	b.top.out_ready = rnd_below(&b.random, 100) < b.out_percent;
	b.top.clk = 0;
	b.top.eval();
	if (b.rx_at && b.rx_now.source == FROM_TX && !b.top.rx_valid)
		fail_msg("a gap in frame %u, which turned round", b.rx_now.number);
	if (b.top.rx_valid) {
		take_beat(b.top.rx, b.rx_now, b.rx_at, b.to_rx, 2);
		if (!b.rx_at)
			b.rx_frames[b.rx_now.source]++;
	}
	if (b.top.out_valid && b.top.out_ready)
		take_beat(b.top.out, b.out_now, b.out_at, &b.to_out, 1);
	if (b.top.mac_valid)
		b.mac_at = (b.mac_at + 1) % b.mac_now.beats;
	bool taken = b.top.tx_valid && b.top.tx_ready;
	b.top.clk = 1;
	b.top.eval();
	if (taken) {
		b.top.tx_valid = 0;
		b.tx_at = (b.tx_at + 1) % b.tx_now.beats;
	}
	b.cycles++;
}

static void run(unsigned int home, unsigned int tx, unsigned int mac, unsigned int out,
		unsigned int line, unsigned int gap)
{
	bench b;

	b.random = seed() * 0x9e3779b97f4a7c15ull + 1;
	b.home_percent = home;
	b.tx_percent = tx;
	b.mac_percent = mac;
	b.out_percent = out;
	b.line_percent = line;
	b.gap_percent = gap;
	b.forced = 0;
	b.top.mac = OWN;
	b.top.rst = 1;
	b.top.clk = 0;
	b.top.eval();
	b.top.clk = 1;
	b.top.eval();
	b.top.rst = 0;
	for (int i = 0; i < 200000; i++)
		cycle(b);
	print_message("%lu frames of the MAC, %lu that turned round, %lu by tx_home\n",
		      b.rx_frames[FROM_MAC], b.rx_frames[FROM_TX], b.forced);
	if (mac)
		assert_true(b.rx_frames[FROM_MAC] > 500);
	if (home && tx)
		assert_true(b.rx_frames[FROM_TX] > 500 && b.forced > 200);
	// what is begun ends, and nothing is left
	b.tx_percent = 0;
	b.mac_percent = 0;
	b.out_percent = 100;
	for (int i = 0; i < 2000; i++)
		cycle(b);
	assert_true(b.to_rx[0].empty() && b.to_rx[1].empty() && b.to_out.empty());
	assert_false(b.top.busy);
}

static void test_mixed(void **)
{
	run(50, 50, 50, 70, 80, 30);
}

static void test_full_load(void **)
{
	run(100, 100, 100, 100, 80, 0);
}

static void test_no_loopback(void **)
{
	run(0, 100, 100, 50, 80, 0);
}

static void test_only_loopback(void **)
{
	run(100, 100, 0, 100, 80, 50);
}

// Frames of the MAC without a gap, in bursts: what comes while the longest frame turns round has to
// find room.
static void test_bursts(void **)
{
	run(100, 100, 2, 100, 100, 0);
	run(100, 100, 10, 100, 100, 0);
	run(80, 100, 5, 50, 100, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed),	    cmocka_unit_test(test_full_load),
		cmocka_unit_test(test_no_loopback), cmocka_unit_test(test_only_loopback),
		cmocka_unit_test(test_bursts),
	};

	printf("URDMA_SEED=%llu\n", (unsigned long long)seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
