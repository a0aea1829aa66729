// SPDX-License-Identifier: Apache-2.0
// urdma_eth_tx alone: random rings in host memory, against a reference that makes each frame's
// bytes from its descriptors. Every good frame must come out once, whole, in the order of its ring;
// every frame, good or bad, must complete, but not before it is done; only posted descriptors and
// their data may be read, and nothing at all for a ring that is no longer active.

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
#include <memory>
#include <vector>

#include "Vurdma_eth_tx.h"
#include "ref_hash.h"
#include "rtl/bench.h"
#include "urdma_pkg.h"
#include "urdma_hw.h"

enum { QUEUES = 8, MAX_DESCS = 32, MAX_FRAME = 9216, MIN_FRAME = 60 };
enum { DESC, DATA };

// Buffers are nowhere: their bytes follow from their address. Bits of it: 59:57 the queue, which is
// in the low bits of each byte; 56:55 what else: 0 random, 1 ones, 2 zeros; 62: reading it fails.
static const unsigned int ADDR_QUEUE = 57, ADDR_KIND = 55, ADDR_FAIL = 62;

static uint8_t mem_byte(uint64_t addr)
{
	uint64_t word = (addr >> 3) * 0x9e3779b97f4a7c15ull;

	switch (addr >> ADDR_KIND & 3) {
	case 1:
		return 0xff;
	case 2:
		return 0;
	}
	word ^= word >> 29;
	word *= 0xbf58476d1ce4e5b9ull;
	word ^= word >> 32;
	return (word >> 8 * (addr & 7) & 0xf8) | (addr >> ADDR_QUEUE & 7);
}

struct desc {
	uint64_t w[2];
};

struct frame {
	uint64_t end = 0; // index behind its last descriptor, counted from the ring's start on
	bool bad = false, sent = false;
	std::vector<uint8_t> wire;
};

struct queue {
	bool on = false; // enable
	unsigned int log = 0;
	uint64_t base = 0;
	std::vector<desc> ring;
	uint64_t written = 0, posted = 0, asked = 0, arrived = 0, completed = 0;
	uint64_t fail_at = UINT64_MAX; // reading the line of this descriptor fails
	bool failed = false;
	uint64_t failed_at = 0;	  // cycle
	std::deque<frame> frames; // written, not completed
	uint64_t changed = 0;	  // cycle of the last change of enable
	uint64_t sent = 0;
	unsigned int next_kind = 0; // a bad frame that waits for room
};

struct read_job {
	int port;
	unsigned int q;
	uint64_t addr, end, ready;
	unsigned int len, at;
	bool fails;
};

// What a test wants. Percents of cycles, or of frames.
struct knobs {
	unsigned int queues = QUEUES;
	unsigned int log_min = 6, log_max = 9;
	unsigned int latency = 10;
	unsigned int rd_ready = 100, rsp = 100, tx_ready = 100, txc_ready = 100;
	unsigned int post = 30;	    // chance of a doorbell in a cycle
	bool whole = false;	    // doorbells at ends of frames, as far as is written
	unsigned int bad = 0;	    // frames that are wrong in some way
	unsigned int dma_fail = 0;  // frames one of whose reads fails
	unsigned int desc_fail = 0; // lives of a queue that end with a failed descriptor read
	unsigned int flips = 0;	    // one in so many cycles: a queue is switched off or on
	unsigned int vlan = 30, csum = 50;
	unsigned int fixed_len = 0, fixed_pieces = 0; // all frames alike
	bool small = false;
};

struct bench {
	Vurdma_eth_tx top;
	knobs k;
	uint64_t seed = 1, cycles = 0;
	queue q[QUEUES];
	std::deque<read_job> reads;
	std::vector<uint8_t> now; // beats of the frame that is coming out
	bool stall_tx = false, stop = false;
	bool idle = false; // not busy, no input in the cycle before
	uint64_t idle_cycles = 0;
	// what was offered and not taken has to stay
	bool held[2] = {}, tx_held = false, txc_held = false;
	uint32_t held_req[8] = {}, held_tx[20] = {}, held_txc = 0;
	unsigned int rr_port = 0;
	// figures
	uint64_t frames_sent = 0, frames_bad = 0, cnt_sent = 0, cnt_bad = 0, beats = 0,
		 completions = 0;
	uint64_t gaps = 0, tagged = 0, summed = 0, straddled = 0, sum_zero = 0, errs = 0, many = 0;
	uint64_t kinds[8] = {}; // bad frames by what is wrong
	uint64_t first_beat = 0, last_gap = 0, max_gap = 0;
	bool in_frame = false;
};

static bool chance(bench &b, unsigned int percent)
{
	return percent >= 100 || rnd(&b, 100) < percent;
}

// ---- the reference -----------------------------------------------------------------------------

struct piece {
	uint64_t addr;
	unsigned int len;
};

struct offload {
	bool vlan, csum;
	unsigned int tci, start, at;
};

// A frame's bytes on the wire; nothing if its descriptors are none.
static std::vector<uint8_t> make_wire(const std::vector<piece> &pieces, const offload &o)
{
	std::vector<uint8_t> bytes, none;

	if (pieces.size() > MAX_DESCS)
		return none;
	for (const piece &p : pieces) {
		if (!p.len)
			return none;
		for (unsigned int i = 0; i < p.len; i++)
			bytes.push_back(mem_byte(p.addr + i));
	}
	if (bytes.size() > MAX_FRAME)
		return none;
	if (o.csum) {
		uint32_t sum = 0;

		if (o.start > bytes.size() || o.at + 2 > bytes.size())
			return none;
		sum = ref_fold(ref_sum16(0, bytes.data() + o.start, bytes.size() - o.start));
		sum = ~sum & 0xffff;
		if (!sum)
			sum = 0xffff;
		bytes[o.at] = sum >> 8;
		bytes[o.at + 1] = sum & 0xff;
	}
	if (o.vlan) {
		const uint8_t tag[4] = { 0x81, 0, (uint8_t)(o.tci >> 8), (uint8_t)o.tci };

		if (bytes.size() < 12)
			bytes.resize(12);
		bytes.insert(bytes.begin() + 12, tag, tag + 4);
	}
	if (bytes.size() < MIN_FRAME)
		bytes.resize(MIN_FRAME);
	return bytes;
}

// ---- stimulus
// ------------------------------------------------------------------------------------

static uint64_t buffer(bench &b, unsigned int qn)
{
	return (uint64_t)qn << ADDR_QUEUE | (rnd_next(&b.seed) & 0x007fffffffffffull);
}

static unsigned int frame_len(bench &b)
{
	if (b.k.fixed_len)
		return b.k.fixed_len;
	switch (rnd(&b, b.k.small ? 3 : 8)) {
	case 0:
		return 1 + rnd(&b, 64);
	case 1:
		return 54 + rnd(&b, 16);
	case 2:
		return 14 + rnd(&b, 200);
	case 3:
	case 4:
		return 1400 + rnd(&b, 119);
	case 5:
		return 64 * (1 + rnd(&b, 20)) - 4 + rnd(&b, 8);
	case 6:
		return 3 + rnd(&b, MAX_FRAME - 2);
	default:
		return MAX_FRAME - (rnd(&b, 2) ? 0 : rnd(&b, 130));
	}
}

static void garbage(bench &b, queue &q, uint64_t index)
{
	desc &d = q.ring[index % q.ring.size()];

	d.w[0] = rnd_next(&b.seed);
	d.w[1] = rnd_next(&b.seed);
}

// Cut len bytes into n pieces, none empty.
static std::vector<piece> cut(bench &b, unsigned int qn, unsigned int len, unsigned int n)
{
	std::vector<piece> pieces;
	unsigned int left = len;

	if (n > len)
		n = len;
	for (unsigned int i = 0; i < n; i++) {
		unsigned int rest = n - 1 - i;
		unsigned int l =
			rest ? 1 + rnd(&b, rnd(&b, 2) ? left - rest : (left - rest) / n + 1) : left;

		if (b.k.fixed_len && rest)
			l = len / n;
		if (l > left - rest)
			l = left - rest;
		pieces.push_back({ buffer(b, qn), l });
		left -= l;
	}
	return pieces;
}

static bool write_frame(bench &b, unsigned int qn)
{
	queue &q = b.q[qn];
	unsigned int len = frame_len(b), n = 1, kind = 0;
	offload o = {};
	frame f;

	if (b.k.fixed_pieces)
		n = b.k.fixed_pieces;
	else if (rnd(&b, 4) == 0)
		n = MAX_DESCS - (rnd(&b, 4) ? rnd(&b, MAX_DESCS) : 0);
	else
		n = 1 + rnd(&b, 4);
	std::vector<piece> pieces = cut(b, qn, len, n);
	// bytes that lead the sum to its edges, behind enough that tell the queue
	if (rnd(&b, 4) == 0 && pieces[0].len >= 3)
		for (size_t i = 1; i < pieces.size(); i++)
			pieces[i].addr |= (1 + rnd(&b, 2)) << ADDR_KIND;
	o.vlan = chance(b, b.k.vlan);
	o.tci = rnd(&b, 65536);
	o.csum = len >= 4 && chance(b, b.k.csum);
	o.start = rnd(&b, 4096);
	o.at = rnd(&b, 4096);
	if (o.csum) {
		unsigned int most = len < 4096 ? len : 4095;

		o.start = rnd(&b, 3) ? rnd(&b, most < 80 ? most : 80) : rnd(&b, most + 1);
		o.at = rnd(&b, (most < 100 || rnd(&b, 2) ? most : 100) - 1);
		if (rnd(&b, 3) == 0 && most > 130)
			o.at = 64 * (1 + rnd(&b, most / 64 - 1)) - 1; // in two lines
		if (rnd(&b, 8) == 0 && most == len)
			o.at = len - 2;
		if (rnd(&b, 16) == 0 && most == len)
			o.start = len;
	}
	if (q.next_kind || chance(b, b.k.bad)) {
		kind = q.next_kind ? q.next_kind : 1 + rnd(&b, 6);
		switch (kind) {
		case 1: // empty piece
			pieces[rnd(&b, pieces.size())].len = 0;
			break;
		case 2: // too long
			pieces.back().len += MAX_FRAME + 1 - len + (rnd(&b, 2) ? 0 : rnd(&b, 4000));
			if (rnd(&b, 2) && pieces.size() < MAX_DESCS)
				pieces.push_back({ buffer(b, qn), 16383 });
			for (piece &p : pieces)
				if (p.len > 16383)
					p.len = 16383;
			break;
		case 3: // too many
			n = MAX_DESCS + 1 + (rnd(&b, 2) ? 0 : rnd(&b, q.ring.size() - MAX_DESCS));
			pieces.clear();
			for (unsigned int i = 0; i < n; i++)
				pieces.push_back(
					{ buffer(b, qn), (unsigned int)(1 + rnd(&b, 100)) });
			break;
		case 4: // the checksum's place is beyond the end
			if (len > 4000)
				return false;
			o.csum = true;
			o.at = len - 1 + rnd(&b, 3);
			o.start = rnd(&b, len);
			break;
		case 5: // the sum begins beyond the end
			if (len > 4000 || len < 2)
				return false;
			o.csum = true;
			o.at = rnd(&b, len - 1);
			o.start = len + 1 + rnd(&b, 90);
			break;
		default: // too many, all of them long
			n = MAX_DESCS + 1 + rnd(&b, 20);
			pieces.assign(n, { buffer(b, qn), 16383 });
			break;
		}
	}
	if (q.written + pieces.size() > q.completed + q.ring.size()) {
		q.next_kind = kind;
		return false;
	}
	q.next_kind = 0;
	f.wire = make_wire(pieces, o);
	f.bad = f.wire.empty();
	if (!f.bad && chance(b, b.k.dma_fail)) {
		// The bytes stay what they are: a mistake would send them.
		pieces[rnd(&b, pieces.size())].addr |= 1ull << ADDR_FAIL;
		f.bad = true;
		kind = 7;
	}
	if (f.bad) {
		b.kinds[kind]++;
	} else {
		b.tagged += o.vlan;
		b.summed += o.csum;
		b.straddled += o.csum && o.at % 64 == 63;
		b.sum_zero += o.csum && f.wire[o.at + (o.vlan && o.at >= 12 ? 4 : 0)] == 0xff &&
			      f.wire[o.at + 1 + (o.vlan && o.at + 1 >= 12 ? 4 : 0)] == 0xff;
		b.many += pieces.size() == MAX_DESCS;
	}
	for (size_t i = 0; i < pieces.size(); i++) {
		desc &d = q.ring[q.written % q.ring.size()];

		d.w[0] = pieces[i].addr;
		d.w[1] = rnd_next(&b.seed) & (1ull << 14 | 1ull << 15 | 1ull << 19 | 0xfull << 48);
		d.w[1] |= pieces[i].len;
		if (i + 1 == pieces.size())
			d.w[1] |= URDMA_ETXD1_LAST;
		if (i) // of no meaning there
			d.w[1] |= rnd_next(&b.seed) &
				  (URDMA_ETXD1_VLAN | URDMA_ETXD1_CSUM | URDMA_ETXD1_CSUM_START |
				   URDMA_ETXD1_TCI | URDMA_ETXD1_CSUM_AT);
		else
			d.w[1] |= (o.vlan ? URDMA_ETXD1_VLAN : 0) |
				  (o.csum ? URDMA_ETXD1_CSUM : 0) | (uint64_t)o.start << 20 |
				  (uint64_t)o.tci << 32 | (uint64_t)o.at << 52;
		q.written++;
	}
	f.end = q.written;
	q.frames.push_back(f);
	return true;
}

static void set_ring(bench &b, unsigned int qn)
{
	queue &q = b.q[qn];

	FIELD_SET(b.top.ring, qn * eth_ring_t_W, eth_ring_t, log_entries, q.log);
	FIELD_SET(b.top.ring, qn * eth_ring_t_W, eth_ring_t, base, q.base);
	FIELD_SET(b.top.ring, qn * eth_ring_t_W, eth_ring_t, enable, q.on);
	q.changed = b.cycles;
}

static void switch_on(bench &b, unsigned int qn)
{
	queue &q = b.q[qn], fresh;

	fresh.sent = q.sent;
	q = fresh;
	q.on = true;
	q.log = b.k.log_min + rnd(&b, b.k.log_max - b.k.log_min + 1);
	// rings end 4 GB areas, so that carries matter
	q.base = ((uint64_t)qn + 1) << 48 | 0x7ff00000000ull |
		 (0x100000000ull - (rnd(&b, 2) ? 0x1000 : 16ull << q.log));
	q.ring.resize(1ull << q.log);
	for (uint64_t i = 0; i < q.ring.size(); i++)
		garbage(b, q, i);
	if (chance(b, b.k.desc_fail))
		q.fail_at = rnd(&b, 3 * q.ring.size());
	set_ring(b, qn);
}

static void switch_off(bench &b, unsigned int qn)
{
	b.q[qn].on = false;
	set_ring(b, qn);
}

// ---- checks of what comes out
// ------------------------------------------------------------------------

static uint64_t load(const uint32_t *w, unsigned int lsb, uint8_t *bytes)
{
	// 64 bytes from bit lsb on, lsb % 32 is 2
	w += lsb / 32;
	for (int i = 0; i < 16; i++) {
		uint32_t x = w[i] >> 2 | w[i + 1] << 30;

		memcpy(bytes + 4 * i, &x, 4);
	}
	return 0;
}

static void take_read(bench &b, int port)
{
	uint64_t addr = FIELD_GET(b.top.rd_req, port * dma_rd_req_t_W, dma_rd_req_t, addr);
	unsigned int len = FIELD_GET(b.top.rd_req, port * dma_rd_req_t_W, dma_rd_req_t, len);
	read_job j = { port, 0, addr, 0, b.cycles + b.k.latency, len, 0, false };

	assert_in_range(len, 1, 4096);
	if (port == DATA) {
		j.q = addr >> ADDR_QUEUE & 7;
		j.fails = addr >> ADDR_FAIL & 1;
	} else {
		j.q = (addr >> 48) - 1;
		assert_in_range(j.q, 0, QUEUES - 1);
		queue &q = b.q[j.q];
		uint64_t first = q.asked & ~3ull;

		if (addr != q.base + first % q.ring.size() * 16)
			fail_msg("queue %u: descriptors are read at %llx, not where the last read "
				 "ended",
				 j.q, (unsigned long long)addr);
		assert_int_equal(len % 16, 0);
		j.end = first + len / 16;
		if (j.end > q.posted)
			fail_msg("queue %u: descriptors are read that are not posted", j.q);
		assert_true(j.end > q.asked);
		assert_true(first % q.ring.size() + len / 16 <= q.ring.size());
		j.fails = q.fail_at >= first && q.fail_at < j.end;
		q.asked = j.end;
	}
	if (!(b.top.active >> j.q & 1))
		fail_msg("a read for queue %u, which is not active", j.q);
	b.reads.push_back(j);
}

static void sent_frame(bench &b)
{
	for (unsigned int i = 0; i < QUEUES; i++) {
		queue &q = b.q[i];
		size_t n = 0;

		while (n < q.frames.size() && (q.frames[n].bad || q.frames[n].sent))
			n++;
		if (n == q.frames.size() || q.frames[n].wire != b.now)
			continue;
		if (q.frames[n].end > q.arrived)
			fail_msg("queue %u: a frame is sent whose descriptors are not here", i);
		q.frames[n].sent = true;
		q.sent++;
		b.frames_sent++;
		return;
	}
	printf("frame of %zu bytes:", b.now.size());
	for (size_t i = 0; i < b.now.size(); i++)
		printf("%s%02x", i % 32 ? " " : "\n", b.now[i]);
	printf("\nexpected next:\n");
	for (unsigned int i = 0; i < QUEUES; i++)
		for (const frame &f : b.q[i].frames)
			if (!f.bad && !f.sent) {
				printf("queue %u, %zu bytes:", i, f.wire.size());
				for (size_t n = 0; n < f.wire.size() && n < 160; n++)
					printf("%s%02x", n % 32 ? " " : "\n", f.wire[n]);
				printf("\n");
				break;
			}
	fail_msg("a frame is not the next one of any queue");
}

static void take_beat(bench &b)
{
	uint64_t keep = FIELD_GET(b.top.tx, 0, mac_beat_t, keep);
	bool last = FIELD_GET(b.top.tx, 0, mac_beat_t, last);
	uint8_t data[64];

	load(b.top.tx, mac_beat_t_data_LSB, data);
	assert_int_equal(FIELD_GET(b.top.tx, 0, mac_beat_t, err), 0);
	assert_true(last || !~keep);
	assert_true(keep && !(keep & (keep + 1)));
	for (int i = 0; i < 64 && keep >> i & 1; i++)
		b.now.push_back(data[i]);
	b.beats++;
	if (!b.first_beat)
		b.first_beat = b.cycles;
	b.in_frame = !last;
	if (last) {
		sent_frame(b);
		b.now.clear();
	}
}

static void take_completion(bench &b)
{
	unsigned int qn = FIELD_OF(b.top.txc, eth_txc_t, q),
		     ci = FIELD_OF(b.top.txc, eth_txc_t, ci);
	bool err = FIELD_OF(b.top.txc, eth_txc_t, err), bad = false;
	queue &q = b.q[qn];
	size_t n = 0;

	while (n < q.frames.size() && (q.frames[n].end & 0xffff) != ci)
		n++;
	if (n == q.frames.size())
		fail_msg("queue %u: completion to %u, which is no frame's end", qn, ci);
	for (size_t i = 0; i <= n; i++) {
		frame &f = q.frames.front();

		if (!f.bad && !f.sent)
			fail_msg("queue %u: completion to %u before the frame to %u is sent", qn,
				 ci, (unsigned int)(f.end & 0xffff));
		if (f.end > q.arrived)
			fail_msg("queue %u: completion of a frame that is not here", qn);
		bad = bad || f.bad;
		b.frames_bad += f.bad;
		for (; q.completed < f.end; q.completed++)
			garbage(b, q, q.completed);
		q.frames.pop_front();
	}
	if (err != bad)
		fail_msg("queue %u: completion to %u has ERR %d", qn, ci, err);
	b.completions++;
}

// ---- a cycle
// ----------------------------------------------------------------------------------------

static void doorbell(bench &b, unsigned int qn, uint64_t pi)
{
	b.top.db_valid = 1;
	b.top.db_q = qn;
	b.top.db_pi = pi & 0xffff;
}

static void stimulate(bench &b)
{
	b.top.db_valid = 0;
	if (b.k.flips && rnd(&b, b.k.flips) == 0) {
		unsigned int n = rnd(&b, b.k.queues);

		if (b.q[n].on)
			switch_off(b, n);
		else if (!b.stop && !(b.top.active >> n & 1))
			switch_on(b, n);
	}
	for (unsigned int i = 0; i < b.k.queues && !b.stop; i++) {
		queue &q = b.q[i];

		if (q.on && !q.failed && (b.k.whole || rnd(&b, 4) == 0))
			while (q.written - q.posted < (b.k.whole ? 64 : 40) && write_frame(b, i))
				;
	}
	if (chance(b, b.k.post)) {
		unsigned int n = rnd(&b, b.k.queues);
		queue &q = b.q[n];

		if (b.k.whole) // the one with most to post
			for (unsigned int i = 0; i < b.k.queues; i++)
				if (b.q[i].written - b.q[i].posted > b.q[n].written - b.q[n].posted)
					n = i;
		if (b.q[n].on && (b.top.active >> n & 1)) {
			queue &p = b.q[n];

			if (!b.k.whole && rnd(&b, 16) == 0) { // an old one again
				doorbell(b, n,
					 p.posted -
						 rnd(&b, p.posted < 30000 ? p.posted + 1 : 30000));
			} else {
				if (b.k.whole || b.stop)
					p.posted = p.written;
				else if (p.written > p.posted)
					p.posted += 1 + rnd(&b, p.written - p.posted);
				doorbell(b, n, p.posted);
			}
		} else if (!q.on && !(b.top.active >> n & 1)) {
			doorbell(b, n, rnd(&b, 65536)); // to be ignored
		}
	}
}

// Not busy means: without an input nothing happens, and nothing is left that could be done.
static void check_idle(bench &b, bool respond)
{
	bool changed = false;

	for (unsigned int i = 0; i < QUEUES; i++)
		changed = changed || b.q[i].changed == b.cycles;
	if (b.idle && !changed &&
	    (b.top.busy || b.top.rd_req_valid || b.top.tx_valid || b.top.txc_valid))
		fail_msg("something happens that was not foretold by busy");
	if (!b.top.busy) {
		if (b.top.rd_req_valid || b.top.tx_valid || b.top.txc_valid || !b.reads.empty() ||
		    respond)
			fail_msg("not busy, but something is under way");
		for (unsigned int i = 0; i < QUEUES; i++) {
			const queue &q = b.q[i];
			bool rung = b.top.db_valid && b.top.db_q == i;

			if (q.on && !q.failed && !rung && !q.frames.empty() &&
			    q.frames.front().end <= q.posted)
				fail_msg("not busy, but queue %u has a frame to send", i);
		}
	}
	b.idle = !b.top.busy && !b.top.db_valid;
	b.idle_cycles += b.idle;
}

static void cycle(bench &b)
{
	Vurdma_eth_tx &t = b.top;
	bool respond = false;

	stimulate(b);
	t.rd_req_ready = 0;
	// one request a cycle, in turn
	if (chance(b, b.k.rd_ready))
		t.rd_req_ready = 1 << (b.rr_port ^= 1);
	t.rd_rsp_valid = 0;
	if (!b.reads.empty() && b.reads.front().ready <= b.cycles && chance(b, b.k.rsp)) {
		read_job &j = b.reads.front();
		queue &q = b.q[j.q];
		uint8_t bytes[64] = {};

		respond = true;
		for (unsigned int i = 0; i < 64; i++)
			if (j.at + i >= j.len || j.fails) {
				bytes[i] = rnd_next(&b.seed); // of no meaning
			} else if (j.port == DATA) {
				bytes[i] = mem_byte(j.addr + j.at + i);
			} else {
				uint64_t at = j.addr - q.base + j.at + i;

				bytes[i] = q.ring[at / 16].w[at / 8 % 2] >> 8 * (at % 8);
			}
		j.at += 64;
		bool last = j.at >= j.len, err = last && j.fails;
		FIELD_SET(t.rd_rsp, 0, dma_rd_rsp_t, err, err);
		FIELD_SET(t.rd_rsp, 0, dma_rd_rsp_t, last, last);
		for (int i = 0; i < 64; i++)
			bits_set(t.rd_rsp, FIELD_AT(8 * i, dma_rd_rsp_t, data), 8, bytes[i]);
		t.rd_rsp_valid = 1 << j.port;
	}
	t.tx_ready = !b.stall_tx && chance(b, b.k.tx_ready);
	t.txc_ready = chance(b, b.k.txc_ready);
	bench_settle(t);

	// both read ports may be taken in a cycle only one after the other: a port without a
	// request gives its turn away
	if (t.rd_req_ready && !(t.rd_req_ready & t.rd_req_valid) && t.rd_req_valid) {
		t.rd_req_ready ^= 3;
		b.rr_port ^= 1;
		t.eval();
	}
	for (int i = 0; i < 2; i++) {
		bool valid = t.rd_req_valid >> i & 1, ready = t.rd_req_ready >> i & 1;
		uint64_t addr = FIELD_GET(t.rd_req, i * dma_rd_req_t_W, dma_rd_req_t, addr);
		uint32_t len = FIELD_GET(t.rd_req, i * dma_rd_req_t_W, dma_rd_req_t, len);
		uint32_t req[3] = { (uint32_t)addr, (uint32_t)(addr >> 32), len };

		if (b.held[i] && (!valid || memcmp(req, b.held_req + 4 * i, sizeof(req))))
			fail_msg("read request %d changes while it waits", i);
		if (valid && !b.held[i] && i == DESC) {
			unsigned int n = (addr >> 48) - 1;

			// The last cycle in which a read may be decided is that in which enable
			// falls.
			if (n < QUEUES && !b.q[n].on && b.cycles > b.q[n].changed + 1)
				fail_msg("queue %u: a descriptor read after enable fell", n);
			if (n < QUEUES && b.q[n].failed && b.cycles > b.q[n].failed_at + 1)
				fail_msg("queue %u: a descriptor read after one has failed", n);
		}
		b.held[i] = valid && !ready;
		memcpy(b.held_req + 4 * i, req, sizeof(req));
		if (valid && ready)
			take_read(b, i);
	}
	if (b.tx_held && (!t.tx_valid || memcmp(b.held_tx, t.tx, 73)))
		fail_msg("a beat changes while it waits");
	if (b.txc_held && (!t.txc_valid || b.held_txc != t.txc))
		fail_msg("a completion changes while it waits");
	b.tx_held = t.tx_valid && !t.tx_ready;
	memcpy(b.held_tx, t.tx, 73);
	b.txc_held = t.txc_valid && !t.txc_ready;
	b.held_txc = t.txc;
	if (b.in_frame && !t.tx_valid)
		fail_msg("a gap within a frame");
	if (t.tx_ready && !t.tx_valid)
		b.gaps++;
	if (t.tx_valid && t.tx_ready) {
		take_beat(b);
		if (b.last_gap && b.cycles - b.last_gap > b.max_gap)
			b.max_gap = b.cycles - b.last_gap;
		b.last_gap = b.cycles;
	}
	if (t.txc_valid && t.txc_ready)
		take_completion(b);
	check_idle(b, respond);
	b.cnt_sent += t.cnt >> URDMA_CNT_ETH_TX_FRAMES & 1;
	b.cnt_bad += t.cnt >> URDMA_CNT_ETH_TX_BAD & 1;
	assert_true(!(t.cnt & ~(1ull << URDMA_CNT_ETH_TX_FRAMES | 1ull << URDMA_CNT_ETH_TX_BAD)));
	for (unsigned int i = 0; i < QUEUES; i++) {
		queue &q = b.q[i];

		if (!q.on && !(t.active >> i & 1) && !q.frames.empty()) {
			for (const frame &f : q.frames)
				if (f.sent)
					fail_msg("queue %u is not active, but a frame sent has not "
						 "completed",
						 i);
			q.frames.clear();
		}
		if (!q.on && !(t.active >> i & 1))
			for (const read_job &j : b.reads)
				if (j.q == i)
					fail_msg("queue %u is not active, but a read is under way",
						 i);
		if ((t.err >> i & 1) && !q.failed && q.on)
			fail_msg("queue %u has an error that nobody made", i);
	}
	if (respond) {
		read_job &j = b.reads.front();

		if (j.at >= j.len) {
			queue &q = b.q[j.q];

			if (j.port == DESC && j.fails) {
				q.failed = true;
				q.failed_at = b.cycles;
				b.errs++;
			} else if (j.port == DESC && !q.failed) {
				q.arrived = j.end;
			}
			b.reads.pop_front();
		}
	}
	bench_edge(t);
	b.cycles++;
}

static std::unique_ptr<bench> start(const knobs &k, uint64_t salt)
{
	auto b = std::make_unique<bench>();

	b->k = k;
	b->seed = bench_state(test_seed(1) * 1000 + salt);
	for (int i = 0; i < 10; i++)
		rnd(b.get(), 2);
	b->top.rst = 1;
	for (int i = 0; i < 2; i++) {
		bench_clock(b->top);
	}
	b->top.rst = 0;
	for (unsigned int i = 0; i < k.queues; i++)
		switch_on(*b, i);
	return b;
}

// Let everything end, then nothing may be left.
static void drain(bench &b)
{
	uint64_t flips = b.k.flips;

	b.stop = true;
	b.k.flips = 0;
	b.k.post = 100;
	b.k.tx_ready = 100;
	b.k.txc_ready = 100;
	b.k.rd_ready = 100;
	b.k.rsp = 100;
	for (int i = 0; i < 400000; i++) {
		bool more = b.top.busy;

		cycle(b);
		for (unsigned int n = 0; n < b.k.queues; n++)
			more = more || (b.q[n].on && b.q[n].posted != b.q[n].written);
		if (!more && i > 100)
			break;
	}
	if (b.top.busy)
		fail_msg("still busy when everything has ended");
	assert_true(b.reads.empty());
	for (unsigned int n = 0; n < b.k.queues; n++) {
		queue &q = b.q[n];

		assert_int_equal(b.top.err >> n & 1, q.on && q.failed);
		assert_int_equal(b.top.active >> n & 1, q.on);
		for (const frame &f : q.frames)
			if (q.on && f.end <= q.arrived)
				fail_msg("queue %u: a frame never completes (index %u, arrived %u)",
					 n, (unsigned int)f.end, (unsigned int)q.arrived);
		if (q.on && !q.failed)
			assert_true(q.frames.empty());
		if (q.on) {
			uint64_t ci = bits_get(b.top.ci, 16 * n, 16);

			assert_int_equal(ci, q.completed & 0xffff);
		}
		b.top.db_valid = 0;
		switch_off(b, n);
	}
	b.k.post = 0;
	for (int i = 0; i < 20; i++)
		cycle(b);
	assert_int_equal(b.top.active, 0);
	assert_false(b.top.busy);
	assert_int_equal(b.cnt_sent, b.frames_sent);
	assert_int_equal(b.cnt_bad, b.frames_bad);
	b.k.flips = flips;
}

static void run(const knobs &k, uint64_t salt, unsigned int cycles)
{
	auto b = start(k, salt);

	while (b->cycles < cycles)
		cycle(*b);
	drain(*b);
	printf("%llu cycles: %llu frames sent (%llu tagged, %llu with checksum, %llu of them in "
	       "two lines, "
	       "%llu ffff), %llu with 32 pieces; %llu bad (",
	       (unsigned long long)b->cycles, (unsigned long long)b->frames_sent,
	       (unsigned long long)b->tagged, (unsigned long long)b->summed,
	       (unsigned long long)b->straddled, (unsigned long long)b->sum_zero,
	       (unsigned long long)b->many, (unsigned long long)b->frames_bad);
	for (int i = 1; i < 8; i++)
		printf("%s%llu", i > 1 ? " " : "", (unsigned long long)b->kinds[i]);
	printf("), %llu completions, %llu failed descriptor reads, %llu cycles idle\n",
	       (unsigned long long)b->completions, (unsigned long long)b->errs,
	       (unsigned long long)b->idle_cycles);
	for (unsigned int i = 0; i < k.queues; i++)
		if (!k.flips && !k.desc_fail && !b->q[i].sent)
			fail_msg("queue %u sent nothing", i);
	assert_true(b->frames_sent > 100);
}

// ---- tests
// --------------------------------------------------------------------------------------------

static void test_good(void **)
{
	knobs k;

	run(k, 1, 40000);
	k.rd_ready = 50;
	k.rsp = 70;
	k.tx_ready = 60;
	k.txc_ready = 10;
	k.latency = 100;
	run(k, 2, 60000);
	// now and then a doorbell, everything idle in between
	k.post = 1;
	k.small = true;
	k.tx_ready = 100;
	run(k, 10, 60000);
}

static void test_bad(void **)
{
	knobs k;

	k.bad = 40;
	k.dma_fail = 10;
	run(k, 3, 60000);
	k.small = true;
	k.rd_ready = 60;
	k.rsp = 60;
	k.tx_ready = 50;
	k.txc_ready = 30;
	k.latency = 60;
	run(k, 4, 60000);
	k.queues = 1;
	run(k, 5, 30000);
}

static void test_on_off(void **)
{
	knobs k;

	k.flips = 200;
	k.small = true;
	k.bad = 10;
	k.dma_fail = 5;
	k.desc_fail = 20;
	k.latency = 80;
	run(k, 6, 150000);
	k.flips = 50;
	k.tx_ready = 40;
	k.txc_ready = 20;
	k.rsp = 50;
	k.small = false;
	run(k, 7, 100000);
	// off again before the first frame is through
	k = knobs();
	k.queues = 2;
	k.flips = 25;
	k.small = true;
	k.latency = 3;
	k.post = 20;
	run(k, 11, 60000);
}

static void test_desc_fail(void **)
{
	for (int i = 0; i < 10; i++) {
		knobs k;

		k.desc_fail = 70;
		k.small = true;
		k.log_max = 7;
		run(k, 20 + i, 8000);
	}
}

// Indexes have 16 bits.
static void test_wrap(void **)
{
	knobs k;

	k.queues = 1;
	k.small = true;
	k.fixed_len = 64;
	k.fixed_pieces = 0;
	k.log_max = 6;
	k.post = 60;
	auto b = start(k, 8);
	while (b->q[0].completed < 150000)
		cycle(*b);
	drain(*b);
	// the largest ring, filled at once
	k.log_min = k.log_max = 15;
	k.post = 0;
	k.fixed_pieces = 1;
	k.latency = 1;
	b = start(k, 9);
	cycle(*b);
	for (int round = 0; round < 3; round++) {
		queue &q = b->q[0];

		while (write_frame(*b, 0))
			;
		q.posted = q.written;
		assert_int_equal(q.posted - q.completed, 32768);
		b->stop = true;
		b->k.post = 0;
		stimulate(*b);
		b->k.post = 100;
		while (q.completed != q.posted)
			cycle(*b);
	}
	drain(*b);
}

// A producer that is further ahead than the ring is long.
static void test_far_doorbell(void **)
{
	knobs k;

	k.queues = 2;
	k.small = true;
	k.log_max = 6;
	k.whole = true;
	for (int i = 0; i < 20; i++) {
		auto b = start(k, 40 + i);

		for (int n = 0; n < 1000; n++)
			cycle(*b);
		b->stop = true;
		for (int n = 0; n < 2000; n++)
			cycle(*b);
		assert_int_equal(b->q[0].completed, b->q[0].posted);
		b->k.post = 0;
		// as far as allowed, then one more
		doorbell(*b, 0, b->q[0].posted + (i ? 65 + rnd(b.get(), 30000) : 65));
		b->q[0].failed = true;
		b->top.eval();
		bench_clock(b->top);
		b->cycles++;
		for (int n = 0; n < 20; n++)
			cycle(*b);
		assert_int_equal(b->top.err, 1);
		drain(*b);
		assert_int_equal(b->top.err, 0);
	}
}

// The data bus of DMA is shared with descriptors: a read of 16 is a gap of 4 beats. When frames
// wait in the buffer there may be none.
static void rate(const char *what, const knobs &k, unsigned int frames, double limit,
		 bool back_to_back)
{
	auto b = start(k, 60);

	while (b->frames_sent < frames / 4)
		cycle(*b);
	uint64_t cycles = b->cycles, sent = b->frames_sent, beats = b->beats, before[QUEUES];

	for (unsigned int i = 0; i < k.queues; i++)
		before[i] = b->q[i].sent;

	b->max_gap = 0;
	while (b->frames_sent < frames)
		cycle(*b);
	double per = (double)(b->cycles - cycles) / (b->frames_sent - sent);

	printf("%s: %.2f cycles a frame, %.2f beats a frame, at most %llu cycles from beat to "
	       "beat\n",
	       what, per, (double)(b->beats - beats) / (b->frames_sent - sent),
	       (unsigned long long)b->max_gap);
	uint64_t least = UINT64_MAX, most = 0;

	for (unsigned int i = 0; i < k.queues; i++) {
		uint64_t n = b->q[i].sent - before[i];

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	if (most - least > 1)
		fail_msg("%s: one queue sent %llu frames, another %llu", what,
			 (unsigned long long)most, (unsigned long long)least);
	if (per > limit)
		fail_msg("%s: %.2f cycles a frame, more than %.2f", what, per, limit);
	if (back_to_back && b->max_gap > 4 * k.queues + 2)
		fail_msg("%s: %llu cycles from beat to beat", what, (unsigned long long)b->max_gap);
	if (back_to_back) {
		b->stall_tx = true;
		for (int i = 0; i < 2000; i++)
			cycle(*b);
		b->stall_tx = false;
		b->last_gap = b->max_gap = 0;
		for (int i = 0; i < 700; i++)
			cycle(*b);
		if (b->max_gap != 1)
			fail_msg("%s: gaps between frames that wait", what);
	}
	drain(*b);
}

static void test_rate(void **)
{
	knobs k;

	k.log_min = k.log_max = 10;
	k.latency = 150;
	k.whole = true;
	k.post = 100;
	k.fixed_len = 64;
	k.fixed_pieces = 1;
	k.queues = 1;
	rate("64 bytes, one queue", k, 4000, 4.0, false);
	k.latency = 250;
	rate("64 bytes, one queue, 250 cycles", k, 4000, 4.0, false);
	k.latency = 150;
	k.queues = 8;
	rate("64 bytes, 8 queues", k, 4000, 4.0, false);
	k.fixed_pieces = 2;
	rate("64 bytes in two pieces, 8 queues", k, 4000, 5.0, false);
	k.fixed_pieces = 1;
	for (k.queues = 1; k.queues <= 8; k.queues += 7) {
		k.fixed_len = 1514;
		k.fixed_pieces = 1;
		k.vlan = 0;
		rate("1514 bytes", k, 1000, 24.3, true);
		k.fixed_pieces = 2;
		rate("1514 bytes in two pieces", k, 1000, 25.5, true);
		k.fixed_pieces = 3;
		k.fixed_len = 9018;
		rate("9018 bytes in three pieces", k, 200, 142.8, true);
	}
}

static void test_latency(void **)
{
	knobs k;

	k.queues = 1;
	k.latency = 1;
	k.fixed_len = 64;
	k.fixed_pieces = 1;
	k.post = 0;
	auto b = start(k, 70);
	cycle(*b);
	cycle(*b);
	b->stop = true;
	write_frame(*b, 0);
	b->k.post = 100;
	uint64_t from = b->cycles;

	while (!b->frames_sent && b->cycles < from + 1000)
		cycle(*b);
	printf("doorbell to first beat: %u cycles, with both reads answered after 1\n",
	       (unsigned int)(b->first_beat - from));
	assert_true(b->first_beat - from <= 25);
	drain(*b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),   cmocka_unit_test(test_bad),
		cmocka_unit_test(test_on_off), cmocka_unit_test(test_desc_fail),
		cmocka_unit_test(test_wrap),   cmocka_unit_test(test_far_doorbell),
		cmocka_unit_test(test_rate),   cmocka_unit_test(test_latency),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
