// SPDX-License-Identifier: Apache-2.0
// urdma_loopback alone: random frames from both sides. Every frame must arrive once, whole, in the
// order of its source, at the right side; no beat of the MAC may be lost, and neither source may
// starve. A frame is looped back because of its address or tx_home; its later beats have no
// influence. A looped frame begins when the receive side has room for it, or when MAX_WAIT beats of
// the MAC have gone before it. An RDMA frame with tx_copy goes both ways, and to the MAC without a
// gap. SEED=n repeats a run.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
}
#include <algorithm>
#include <deque>

#include "Vurdma_loopback.h"
#include "rtl/bench.h"
#include "urdma_pkg.h"

enum { DATA = mac_beat_t_data_LSB };
enum { FROM_TX, FROM_MAC };
static const uint64_t OWN = 0x0a0b0c0d0e0f;
// 9216 bytes and a tag
enum { MAX_BEATS = (9220 + 63) / 64 };
enum { MAX_WAIT = 4096 }; // as of urdma_loopback
enum { RDMA_BEATS = (18 + 40 + 8 + 12 + 12 + 4096 + 4 + 63) / 64 };
// 100 Gb/s: bytes of the line in a cycle of 4 ns; preamble, FCS and gap of a frame
enum { LINE_BYTES = 50, LINE_OVERHEAD = 24 };

struct frame {
	unsigned int source, beats;
	bool home, forced, eth; // forced: by tx_home
	uint32_t number;
	bool copy; // to the MAC and round
};

struct bench {
	Vurdma_loopback top;
	uint64_t seed, cycles = 0;
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
	unsigned int room_percent = 100, copy_percent = 0;
	uint64_t forced, copies = 0;
	uint64_t waited = 0, overdue = 0; // beats of the MAC since the oldest frame found no room
	// the MAC at line rate: frames of so many bytes, back to back
	unsigned int line_from = 0, line_to = 0;
	uint64_t line_at = 0; // bytes of the line until the beat that is next has arrived
	unsigned int line_len = 0;
	bool offered = false; // a beat waits for the MAC
};

static void put_beat(uint32_t *port, const frame &f, unsigned int at)
{
	bits_set(port, DATA, 48,
		 (at ? (f.number + at) % 2 : f.home && !f.forced) ? OWN : 0x111111111111);
	bits_set(port, DATA + 64, 32, f.number);
	bits_set(port, DATA + 96, 32, at);
	FIELD_SET(port, 0, mac_beat_t, keep, ~0ull);
	FIELD_SET(port, 0, mac_beat_t, last, at + 1 == f.beats);
	FIELD_SET(port, 0, mac_beat_t, err, 0);
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
	assert_int_equal(FIELD_GET(port, 0, mac_beat_t, last), at == now.beats);
	if (at == now.beats)
		at = 0;
}

static frame new_frame(bench &b, unsigned int source)
{
	frame f = { source,
		    (unsigned int)(1 + rnd(&b, rnd(&b, 2) ? 4 : MAX_BEATS)),
		    false,
		    false,
		    rnd(&b, 2) == 0,
		    b.number++,
		    false };

	if (rnd(&b, 8) == 0)
		f.beats = MAX_BEATS;

	f.home = source == FROM_TX && rnd(&b, 100) < b.home_percent;
	f.forced = f.home && f.eth && rnd(&b, 2);
	b.forced += f.forced;
	if (source == FROM_TX && !f.home && rnd(&b, 100) < b.copy_percent) {
		f.copy = true;
		f.eth = false;
		f.beats = std::min(f.beats, (unsigned int)RDMA_BEATS);
		b.copies++;
	}
	return f;
}

// The MAC at line rate. A frame of 65 to 75 bytes has two beats and comes in less than two cycles:
// then one beat follows the other in each cycle, and the line runs ahead.
static void drive_line(bench &b)
{
	if (!b.mac_at && !b.line_len) {
		b.line_len = b.line_from + rnd(&b, b.line_to - b.line_from + 1);
		b.mac_now = new_frame(b, FROM_MAC);
		b.mac_now.beats = (b.line_len + 63) / 64;
		b.to_rx[FROM_MAC].push_back(b.mac_now);
	}
	// a beat is here when its last byte is
	uint64_t bytes = b.line_at + 8 + std::min(b.line_len, 64 * (b.mac_at + 1));

	if (b.cycles * LINE_BYTES < bytes)
		return;
	b.top.mac_valid = 1;
	if (b.mac_at + 1 == b.mac_now.beats) {
		b.line_at += b.line_len + LINE_OVERHEAD;
		b.line_len = 0;
	}
}

// A frame that turns round begins only with room, or when it has waited for long.
static void judge_begin(bench &b, bool begins)
{
	if (b.rx_now.source == FROM_MAC) {
		b.waited++;
		return;
	}
	if (begins && !(b.top.room >> b.rx_now.eth & 1)) {
		if (b.waited < MAX_WAIT)
			fail_msg("frame %u begins without room, after %lu beats of the MAC",
				 b.rx_now.number, (unsigned long)b.waited);
		b.overdue++;
	}
	b.waited = 0;
}

static void cycle(bench &b)
{
	bool start_tx = b.tx_at == 0 && !b.top.tx_valid && rnd(&b, 100) < b.tx_percent;

	if (start_tx) {
		b.tx_now = new_frame(b, FROM_TX);
		if (b.tx_now.home || b.tx_now.copy)
			b.to_rx[FROM_TX].push_back(b.tx_now);
		if (!b.tx_now.home)
			b.to_out.push_back(b.tx_now);
	}
	// the transmit side may pause in a frame, but takes back no beat
	if (start_tx || b.top.tx_valid || (b.tx_at && rnd(&b, 100) >= b.gap_percent)) {
		b.top.tx_valid = 1;
		put_beat(b.top.tx, b.tx_now, b.tx_at);
		// it counts with the first beat
		b.top.tx_home = b.tx_at ? b.cycles & 1 : b.tx_now.forced;
		b.top.tx_eth = b.tx_now.eth;
		// of one that turns round anyway it says nothing
		b.top.tx_copy = b.tx_at || b.tx_now.home ? b.cycles & 1 : b.tx_now.copy;
	}
	if (rnd(&b, 50) == 0)
		b.top.room = (rnd(&b, 100) < b.room_percent) | (rnd(&b, 100) < b.room_percent) << 1;
	b.top.mac_valid = 0;
	if (b.line_to) {
		drive_line(b);
	} else if (b.mac_at == 0 && rnd(&b, 100) < b.mac_percent) {
		b.mac_now = new_frame(b, FROM_MAC);
		b.to_rx[FROM_MAC].push_back(b.mac_now);
		b.top.mac_valid = 1;
	} else if (b.mac_at) {
		// a line is slower than a beat a cycle
		b.top.mac_valid = rnd(&b, 100) < b.line_percent;
	}
	if (b.top.mac_valid)
		put_beat(b.top.mac_in, b.mac_now, b.mac_at);
	b.top.out_ready = rnd(&b, 100) < b.out_percent;
	bench_settle(b.top);
	if (b.rx_at && b.rx_now.source == FROM_TX && !b.top.rx_valid)
		fail_msg("a gap in frame %u, which turned round", b.rx_now.number);
	if (b.top.rx_valid) {
		bool begins = !b.rx_at;

		take_beat(b.top.rx, b.rx_now, b.rx_at, b.to_rx, 2);
		assert_int_equal(b.top.rx_home, b.rx_now.source == FROM_TX && !b.rx_now.eth);
		judge_begin(b, begins);
		if (!b.rx_at)
			b.rx_frames[b.rx_now.source]++;
	}
	// a frame that goes both ways has no gap of its own, and nothing that was offered is taken
	// back
	if (b.out_at && b.out_now.copy && b.top.tx_valid && !b.top.out_valid)
		fail_msg("a gap in frame %u, which goes both ways", b.out_now.number);
	if (b.offered && !b.top.out_valid)
		fail_msg("a beat to the MAC is taken back");
	b.offered = b.top.out_valid && !b.top.out_ready;
	if (b.top.out_valid && b.top.out_ready)
		take_beat(b.top.out, b.out_now, b.out_at, &b.to_out, 1);
	if (b.top.mac_valid)
		b.mac_at = (b.mac_at + 1) % b.mac_now.beats;
	bool taken = b.top.tx_valid && b.top.tx_ready;
	bench_edge(b.top);
	if (taken) {
		b.top.tx_valid = 0;
		b.tx_at = (b.tx_at + 1) % b.tx_now.beats;
	}
	b.cycles++;
}

static void reset(bench &b)
{
	b.top.own_mac = OWN;
	b.top.room = 3;
	b.top.rst = 1;
	bench_clock(b.top);
	b.top.rst = 0;
}

// What is begun ends, and nothing is left.
static void drain(bench &b)
{
	b.tx_percent = 0;
	b.mac_percent = 0;
	// a frame of the line of which no beat has come
	if (b.line_to && b.line_len && !b.mac_at)
		b.to_rx[FROM_MAC].pop_back();
	b.line_to = 0;
	b.out_percent = 100;
	b.room_percent = 100;
	b.line_percent = 100;
	for (int i = 0; i < 3000; i++)
		cycle(b);
	assert_true(b.to_rx[0].empty() && b.to_rx[1].empty() && b.to_out.empty());
	assert_false(b.top.busy);
}

static void run(unsigned int home, unsigned int tx, unsigned int mac, unsigned int out,
		unsigned int line, unsigned int gap, unsigned int room = 100)
{
	bool few = true;
	bench b;

	b.room_percent = room;
	b.seed = bench_state(test_seed(1));
	b.home_percent = home;
	b.tx_percent = tx;
	b.mac_percent = mac;
	b.out_percent = out;
	b.line_percent = line;
	b.gap_percent = gap;
	b.forced = 0;
	reset(b);
	// As many as the checks want; chance may give fewer in the first half.
	for (int i = 0; i < 400000 && (i < 200000 || few); i++) {
		cycle(b);
		few = (mac && b.rx_frames[FROM_MAC] <= 500) ||
		      (home && tx && (b.rx_frames[FROM_TX] <= 500 || b.forced <= 100));
	}
	print_message("%lu frames of the MAC, %lu that turned round, %lu by tx_home\n",
		      b.rx_frames[FROM_MAC], b.rx_frames[FROM_TX], b.forced);
	assert_false(few);
	drain(b);
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

// Frames that go both ways, among others; and nothing else, with a receive side that is slow.
static void test_copies(void **)
{
	static const unsigned int t[][5] = {
		/* home, copies, MAC, out, room: percent */
		{ 30, 50, 50, 70, 100 }, { 50, 100, 100, 100, 60 }, { 10, 100, 0, 100, 30 },
		{ 0, 100, 50, 40, 50 },	 { 20, 60, 100, 100, 80 },
	};

	for (auto &x : t) {
		bench b;

		b.seed = bench_state(test_seed(1));
		b.home_percent = x[0];
		b.copy_percent = x[1];
		b.tx_percent = 100;
		b.mac_percent = x[2];
		b.out_percent = x[3];
		b.room_percent = x[4];
		b.line_percent = 80;
		b.forced = 0;
		reset(b);
		for (int i = 0; i < 200000; i++)
			cycle(b);
		print_message("%lu frames of %lu that turned round went to the MAC as well\n",
			      (unsigned long)b.copies, (unsigned long)b.rx_frames[FROM_TX]);
		assert_true(b.copies > 150);
		drain(b);
	}
}

// The receive side has room now and then, for one kind of frames or the other.
static void test_room(void **)
{
	run(100, 100, 0, 100, 80, 0, 50);
	run(50, 100, 30, 50, 80, 30, 50);
	run(80, 100, 100, 100, 80, 0, 80);
}

// Without room nothing turns round, for as long as it takes, and the transmit side waits.
static void test_no_room(void **)
{
	bench b;

	b.seed = test_seed(1);
	b.home_percent = b.tx_percent = b.out_percent = b.line_percent = 100;
	b.mac_percent = 0;
	b.room_percent = 0;
	b.forced = 0;
	reset(b);
	b.top.room = 0;
	for (int i = 0; i < 100000; i++)
		cycle(b);
	assert_int_equal(b.rx_frames[FROM_TX], 0);
	assert_true(b.top.tx_valid && !b.top.tx_ready && b.top.busy);
	drain(b);
	assert_true(b.rx_frames[FROM_TX] > 0);
}

// Without room beside frames of the MAC: each frame goes when MAX_WAIT beats have gone first.
static void test_starved(void **)
{
	bench b;

	b.seed = test_seed(1);
	b.home_percent = b.tx_percent = b.out_percent = 100;
	b.mac_percent = 100;
	b.line_percent = 80;
	b.room_percent = 0;
	b.forced = 0;
	reset(b);
	b.top.room = 0;
	for (int i = 0; i < 200000; i++)
		cycle(b);
	print_message("%lu frames have gone without room\n", (unsigned long)b.overdue);
	assert_true(b.overdue >= 25 && b.overdue == b.rx_frames[FROM_TX]);
	drain(b);
}

// Frames of all small sizes at line rate, 100 Gb/s, beside as much as wants to turn round. Where
// the line is faster than a beat a cycle nothing of the MAC is lost either, and what turns round
// waits for the end of the train.
static void test_line_rate(void **)
{
	static const unsigned int sizes[][2] = { { 60, 64 },   { 65, 65 },    { 65, 75 },
						 { 76, 76 },   { 77, 90 },    { 60, 1514 },
						 { 128, 140 }, { 4154, 4154 } };

	for (auto s : sizes) {
		bench b;
		uint64_t from_tx, longest = 0;
		// frames of 65 to 76 bytes leave no cycle without a beat
		const bool gaps = s[0] < 65 || s[1] > 76;

		b.seed = test_seed(1);
		b.home_percent = b.tx_percent = b.out_percent = 100;
		b.mac_percent = b.line_percent = 100;
		b.forced = 0;
		reset(b);
		b.line_from = s[0];
		b.line_to = s[1];
		from_tx = b.cycles;
		for (int i = 0; i < 100000 || (gaps && i < 200000 && b.rx_frames[FROM_TX] <= 100);
		     i++) {
			uint64_t n = b.rx_frames[FROM_TX];

			cycle(b);
			if (b.rx_frames[FROM_TX] != n)
				from_tx = b.cycles;
			longest = std::max(longest, b.cycles - from_tx);
		}
		print_message("%4u to %4u bytes: %lu frames of the MAC, %lu turned round, the "
			      "longest pause %lu cycles, the line %ld bytes ahead\n",
			      s[0], s[1], (unsigned long)b.rx_frames[FROM_MAC],
			      (unsigned long)b.rx_frames[FROM_TX], (unsigned long)longest,
			      (long)(b.cycles * LINE_BYTES) - (long)b.line_at);
		if (gaps)
			assert_true(b.rx_frames[FROM_TX] > 100 && longest < 10000);
		drain(b);
		assert_true(b.rx_frames[FROM_TX] > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mixed),	    cmocka_unit_test(test_full_load),
		cmocka_unit_test(test_no_loopback), cmocka_unit_test(test_only_loopback),
		cmocka_unit_test(test_bursts),	    cmocka_unit_test(test_room),
		cmocka_unit_test(test_no_room),	    cmocka_unit_test(test_starved),
		cmocka_unit_test(test_copies),	    cmocka_unit_test(test_line_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
