// SPDX-License-Identifier: Apache-2.0
/*
 * The switch, between ports that carry whole frames, and the link of a wire. A failure means that a
 * frame would arrive at a wrong port, be missing at a right one, leave faster or slower than the
 * line allows, or that a run would not repeat.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "eth/switch.h"
#include "random.h"
#include "seed.h"

#define PORTS	6u
#define MAX_GOT 20000u
#define DELAY	25u
#define LATENCY 125u
#define GROUP	0xff

struct got {
	uint64_t cycle;
	uint32_t len;
	uint32_t id;
	uint8_t from;
};

struct end {
	struct urdma_eth_port port;
	struct got *got;
	unsigned int n;
};

struct net {
	struct urdma_switch *sw;
	struct end end[PORTS];
	struct urdma_wire *wire[PORTS];
	unsigned int ports;
	uint64_t mbps;
	uint64_t now;
	bool every_cycle;
};

static void deliver(void *ctx, struct urdma_eth_port *port, uint64_t now,
		    const struct urdma_eth_frame *f)
{
	struct end *e = ctx;
	struct got *g = &e->got[e->n++];

	(void)port;
	assert_true(e->n <= MAX_GOT);
	g->cycle = now;
	g->len = f->len;
	g->from = f->data[11];
	memcpy(&g->id, f->data + 14, 4);
	/* The bytes after the header are a function of the number; padding is zero. */
	for (uint32_t i = 18; i < f->len; i++)
		if (f->data[i] != (uint8_t)(g->id + i) && !(f->len == 60 && !f->data[i]))
			fail_msg("byte %u of frame %u is wrong", i, g->id);
}

static const struct urdma_eth_frame_ops ops = { .deliver = deliver };

static void net_open(struct net *n, unsigned int ports, uint64_t mbps, size_t queue, uint64_t age)
{
	struct urdma_switch_config config = {
		.name = "switch0",
		.n_ports = ports,
		.rate_mbps = mbps,
		.latency_cycles = LATENCY,
		.queue_bytes = queue,
		.age_cycles = age,
	};

	memset(n, 0, sizeof(*n));
	n->ports = ports;
	n->mbps = mbps;
	assert_int_equal(urdma_switch_create(&config, &n->sw), 0);
	for (unsigned int i = 0; i < ports; i++) {
		char name[8];

		snprintf(name, sizeof(name), "e%u", i);
		urdma_eth_port_init(&n->end[i].port, name, mbps);
		urdma_eth_port_set_frames(&n->end[i].port, 64 << 20, &ops, &n->end[i]);
		n->end[i].got = calloc(MAX_GOT + 1, sizeof(struct got));
		assert_non_null(n->end[i].got);
		assert_int_equal(urdma_wire_create(&n->end[i].port, urdma_switch_port(n->sw, i),
						   DELAY, &n->wire[i]),
				 0);
	}
}

static void net_close(struct net *n)
{
	for (unsigned int i = 0; i < n->ports; i++) {
		urdma_wire_destroy(n->wire[i]);
		urdma_eth_port_cleanup(&n->end[i].port);
		free(n->end[i].got);
	}
	urdma_switch_destroy(n->sw);
}

static uint64_t net_next(struct net *n)
{
	uint64_t next = urdma_switch_next(n->sw);

	for (unsigned int i = 0; i < n->ports; i++) {
		uint64_t t = urdma_eth_port_next(&n->end[i].port);

		if (t < next)
			next = t;
	}
	return next;
}

/* Runs until cycle, or, with UINT64_MAX, until nothing is on its way. */
static void net_run(struct net *n, uint64_t until)
{
	for (;;) {
		uint64_t next = net_next(n);

		if (next == UINT64_MAX && until == UINT64_MAX)
			return;
		if (!n->every_cycle && next > n->now)
			n->now = next < until ? next : until;
		if (n->now >= until)
			return;
		urdma_switch_advance(n->sw, n->now);
		for (unsigned int i = 0; i < n->ports; i++)
			urdma_eth_port_advance(&n->end[i].port, n->now);
		assert_null(urdma_switch_error(n->sw));
		n->now++;
	}
}

/* From station `from` to station `to`, which is behind a port, or to a group. */
static void send_as(struct net *n, unsigned int port, unsigned int from, unsigned int to,
		    uint32_t id, uint32_t len)
{
	uint8_t f[URDMA_ETH_MAX_FRAME] = { 0x02, 0, 0, 0, 0, (uint8_t)to,
					   0x02, 0, 0, 0, 0, (uint8_t)from };

	if (to == GROUP)
		memset(f, 0xff, 6);
	/* The switch treats a tag like any other two bytes. */
	f[12] = 0x81;
	f[13] = 0x00;
	memcpy(f + 14, &id, 4);
	for (uint32_t i = 18; i < len; i++)
		f[i] = (uint8_t)(id + i);
	assert_int_equal(urdma_eth_port_send(&n->end[port].port, n->now, f, len, false), 0);
}

static void send(struct net *n, unsigned int from, unsigned int to, uint32_t id, uint32_t len)
{
	send_as(n, from, from, to, id, len);
}

/* Each port has received that many since the last call. */
static void expect(struct net *n, const unsigned int *counts)
{
	for (unsigned int i = 0; i < n->ports; i++) {
		if (n->end[i].n != counts[i])
			fail_msg("port %u got %u frames, not %u", i, n->end[i].n, counts[i]);
		n->end[i].n = 0;
	}
}

#define EXPECT(n, ...) expect(n, (const unsigned int[]){ __VA_ARGS__ })

static uint64_t cycles(uint64_t bytes, uint64_t mbps)
{
	return (bytes * 2000 + mbps - 1) / mbps;
}

static void learning(void **state)
{
	const struct urdma_switch_stats *s;
	struct net n;

	(void)state;
	net_open(&n, 4, 100000, 1 << 20, 1000000);
	s = urdma_switch_stats(n.sw);
	send(&n, 0, 1, 1, 100); /* 1 is not known */
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 1, 1, 1);
	send(&n, 1, 0, 2, 100); /* 0 is, and now 1 */
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 1, 0, 0, 0);
	send(&n, 0, 1, 3, 100);
	send(&n, 0, GROUP, 4, 100);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 2, 1, 1);
	/* A second station behind port 0: frames between the two do not concern the switch. */
	send_as(&n, 0, 9, 0, 5, 60);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 0, 0, 0);
	assert_int_equal(s->filtered, 1);
	send(&n, 2, 9, 6, 60);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 1, 0, 0, 0);
	/* It moves to port 3. */
	send_as(&n, 3, 9, 2, 7, 60);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 0, 1, 0);
	send(&n, 2, 9, 8, 60);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 0, 0, 1);
	assert_int_equal(s->moved, 1);
	assert_int_equal(s->learned, 4);
	assert_int_equal(s->unknown, 1);
	assert_int_equal(s->group, 1);
	assert_int_equal(s->frames, 8);
	assert_int_equal(s->forwarded, 5);
	net_close(&n);
}

static void ageing(void **state)
{
	struct net n;

	(void)state;
	net_open(&n, 3, 100000, 1 << 20, 50000);
	send(&n, 0, 1, 1, 100);
	net_run(&n, 1000);
	EXPECT(&n, 0, 1, 1);
	/* Heard again before its time is up, so remembered for longer. */
	net_run(&n, 40000);
	send(&n, 0, 1, 2, 100);
	net_run(&n, 80000);
	EXPECT(&n, 0, 1, 1);
	send(&n, 1, 0, 3, 100);
	net_run(&n, 81000);
	EXPECT(&n, 1, 0, 0);
	net_run(&n, 90600);
	send(&n, 1, 0, 4, 100);
	net_run(&n, 92000);
	EXPECT(&n, 1, 0, 1);
	assert_int_equal(urdma_switch_stats(n.sw)->aged, 1);
	net_close(&n);
}

/* More addresses than the table has room for: the newest are remembered, and no frame is lost. */
static void full_table(void **state)
{
	unsigned int known = 0;
	struct net n;

	(void)state;
	net_open(&n, 3, 100000, 64 << 20, UINT64_MAX);
	for (uint32_t i = 0; i < 10000; i++) {
		uint8_t f[60] = {
			0x02, 0, 0, 0, 0, 1, 0x02, 0, 7, 0, (uint8_t)(i >> 8), (uint8_t)i
		};

		assert_int_equal(urdma_eth_port_send(&n.end[0].port, n.now, f, 60, false), 0);
	}
	net_run(&n, UINT64_MAX);
	assert_int_equal(n.end[1].n, 10000);
	assert_int_equal(urdma_switch_stats(n.sw)->learned, 10000);
	assert_in_range(urdma_switch_stats(n.sw)->evicted, 10000 - 4096, 8000);
	n.end[1].n = n.end[2].n = 0;
	for (uint32_t i = 9500; i < 10000; i++) {
		uint8_t f[60] = {
			0x02, 0, 7, 0, (uint8_t)(i >> 8), (uint8_t)i, 0x02, 0, 0, 0, 0, 1
		};

		assert_int_equal(urdma_eth_port_send(&n.end[1].port, n.now, f, 60, false), 0);
	}
	net_run(&n, UINT64_MAX);
	assert_int_equal(n.end[0].n, 500);
	known = 500 - n.end[2].n;
	if (known < 450)
		fail_msg("of the newest 500 addresses only %u are known", known);
	net_close(&n);
}

/* Frames that end at the switch: bad FCS, addresses that no bridge forwards; a group is not a
 * source. */
static void not_forwarded(void **state)
{
	static const uint8_t pause[60] = {
		0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0x08
	};
	static const uint8_t lacp[60] = { 0x01, 0x80, 0xc2, 0, 0, 0x0f, 2, 0, 0, 0, 0, 1 };
	static const uint8_t above[60] = { 0x01, 0x80, 0xc2, 0, 0, 0x10, 2, 0, 0, 0, 0, 1 };
	static const uint8_t group[60] = { 0x02, 0, 0, 0, 0, 7, 0x03, 0, 0, 0, 0, 5 };
	static const uint8_t to_it[60] = { 0x03, 0, 0, 0, 0, 5, 0x02, 0, 0, 0, 0, 9 };
	struct net n;

	(void)state;
	net_open(&n, 3, 100000, 1 << 20, 1000000);
	urdma_eth_port_send(&n.end[0].port, 0, pause, 60, false);
	urdma_eth_port_send(&n.end[0].port, 0, lacp, 60, false);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 0, 0);
	assert_int_equal(urdma_switch_stats(n.sw)->reserved, 2);
	urdma_eth_port_send(&n.end[0].port, 0, above, 60, true);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 0, 0);
	assert_int_equal(urdma_switch_stats(n.sw)->bad_fcs, 1);
	n.end[1].got[0].id = n.end[2].got[0].id = 0;
	urdma_eth_port_send(&n.end[0].port, 0, group, 60, false);
	urdma_eth_port_send(&n.end[1].port, 0, to_it, 60, false);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 1, 1, 2);
	net_close(&n);
}

/* One frame: when its last bit arrives at the other end. */
static void latency(void **state)
{
	static const uint32_t len[] = { 18, 60, 64, 65, 1514, 9018, 16384 };
	static const uint64_t rate[] = { 1000, 25000, 99900, 100000, 400000 };

	(void)state;
	for (unsigned int r = 0; r < 5; r++) {
		for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			uint64_t once = cycles(8 + (len[i] < 60 ? 60 : len[i]) + 4, rate[r]);
			struct net n;

			net_open(&n, 2, rate[r], 1 << 20, 1000000);
			n.now = 77;
			send(&n, 0, 1, i, len[i]);
			net_run(&n, UINT64_MAX);
			assert_int_equal(n.end[1].n, 1);
			assert_int_equal(n.end[1].got[0].len, len[i] < 60 ? 60 : len[i]);
			assert_int_equal(n.end[1].got[0].cycle,
					 77 + once + DELAY + LATENCY + once + DELAY);
			net_close(&n);
		}
	}
}

/* Frames that arrive without a gap leave without one: the line rate, exact to the byte. */
static void line_rate(void **state)
{
	static const uint64_t rate[] = { 10000, 99900, 100000 };

	(void)state;
	for (unsigned int r = 0; r < 3; r++) {
		uint64_t bytes = 0, first;
		struct net n;

		net_open(&n, 2, rate[r], 8 << 20, 1000000);
		for (uint32_t i = 0; i < 1000; i++) {
			uint32_t len = 60 + i * 37 % 1500;

			send(&n, 0, 1, i, len);
			if (i)
				bytes += 8 + len + 4 + (i < 999 ? 12 : 0);
			else
				first = cycles(8 + len + 4, rate[r]);
		}
		net_run(&n, UINT64_MAX);
		assert_int_equal(n.end[1].n, 1000);
		for (unsigned int i = 0; i < 1000; i++)
			assert_int_equal(n.end[1].got[i].id, i);
		assert_true(n.end[1].got[999].cycle >= first + cycles(bytes, rate[r]));
		/* Store and forward costs at most one frame more, the longest one. */
		assert_true(n.end[1].got[999].cycle <=
			    2 * DELAY + LATENCY + first +
				    cycles(bytes + 12 + 8 + 1560 + 4, rate[r]) + 2);
		net_close(&n);
	}
}

/* Two ports into one: half of the frames find the queue full, the rest leaves at the line rate. */
static void tail_drop(void **state)
{
	const unsigned int per_side = 3000;
	struct got *g;
	struct net n;
	unsigned int from[3] = { 0 };
	uint64_t span;

	(void)state;
	net_open(&n, 3, 100000, 64 << 10, 1000000);
	send(&n, 2, 0, 0, 100);
	net_run(&n, UINT64_MAX);
	n.end[0].n = n.end[1].n = 0;
	for (uint32_t i = 0; i < per_side; i++) {
		send(&n, 0, 2, i, 1000);
		send(&n, 1, 2, i, 1000);
	}
	net_run(&n, UINT64_MAX);
	g = n.end[2].got;
	for (unsigned int i = 0; i < n.end[2].n; i++)
		from[g[i].from]++;
	assert_int_equal(from[0] + from[1], n.end[2].n);
	assert_int_equal(n.end[2].n + urdma_switch_stats(n.sw)->tail_drops, 2 * per_side);
	assert_int_equal(urdma_switch_port(n.sw, 2)->stats.tx_dropped,
			 urdma_switch_stats(n.sw)->tail_drops);
	assert_in_range(urdma_switch_port(n.sw, 2)->stats.tx_queue_max, (64 << 10) - 1000,
			64 << 10);
	/*
	 * In the time of per_side frames that many leave, and then the 65 that were stored. None
	 * leaves during the latency at the start (6 frames).
	 */
	assert_in_range(n.end[2].n, per_side + 57, per_side + 61);
	/* Without a gap from the first to the last. */
	span = g[n.end[2].n - 1].cycle - g[0].cycle;
	assert_in_range(span, cycles((uint64_t)(n.end[2].n - 1) * 1024, 100000) - 1,
			cycles((uint64_t)(n.end[2].n - 1) * 1024, 100000) + 1);
	net_close(&n);
}

static void set_link(void **state)
{
	struct net n;

	(void)state;
	net_open(&n, 3, 100000, 1 << 20, 1000000);
	send(&n, 0, 1, 1, 100);
	send(&n, 1, 0, 2, 100);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 1, 1, 1);
	/* While frames are in each stage: at the sender, on the wire, in the switch, on the way
	 * out. */
	for (uint32_t i = 0; i < 100; i++)
		send(&n, 1, 0, i, 1500);
	net_run(&n, n.now + 2000);
	assert_in_range(n.end[0].n, 5, 95);
	assert_int_equal(urdma_wire_set_link(n.wire[0], false), 0);
	assert_false(urdma_wire_link(n.wire[0]));
	urdma_switch_forget(n.sw, 0);
	net_run(&n, UINT64_MAX);
	assert_true(n.end[0].n < 95);
	assert_true(urdma_switch_port(n.sw, 0)->stats.tx_unconnected > 0);
	assert_int_equal(n.end[0].n + urdma_switch_port(n.sw, 0)->stats.tx_unconnected +
				 n.end[0].port.stats.rx_lost,
			 100);
	/* Frames to forgotten addresses are flooded. */
	assert_true(n.end[2].n > 0);
	n.end[0].n = n.end[1].n = n.end[2].n = 0;
	send(&n, 0, 1, 1, 100);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 0, 0);
	assert_int_equal(n.end[0].port.stats.tx_unconnected, 1);
	assert_int_equal(urdma_wire_set_link(n.wire[0], true), 0);
	send(&n, 0, 1, 1, 100);
	net_run(&n, UINT64_MAX);
	EXPECT(&n, 0, 1, 0);
	net_close(&n);
}

static void fault(void *ctx, unsigned int side, struct urdma_eth_frame *f,
		  struct urdma_wire_verdict *v)
{
	unsigned int *seen = ctx;

	seen[side]++;
	/* Every other frame of the station is lost, every fourth corrupted. */
	v->drop = !side && f->number % 2;
	f->error |= !side && f->number % 4 == 2;
	v->delay_cycles = side ? 1000 : 0;
	v->copies = side;
}

/* Faults on a station's wire: separate for each direction, whole frames, in order. */
static void faults(void **state)
{
	unsigned int seen[2] = { 0 };
	uint64_t start, once = cycles(8 + 500 + 4, 100000);
	struct net n;

	(void)state;
	net_open(&n, 2, 100000, 1 << 20, 1000000);
	urdma_wire_set_fault(n.wire[0], fault, seen);
	for (uint32_t i = 0; i < 100; i++)
		send(&n, 0, 1, i, 500);
	net_run(&n, UINT64_MAX);
	assert_int_equal(seen[0], 100);
	assert_int_equal(n.end[1].n, 25);
	for (uint32_t i = 0; i < 25; i++)
		assert_int_equal(n.end[1].got[i].id, 4 * i);
	assert_int_equal(urdma_switch_stats(n.sw)->bad_fcs, 25);
	start = n.now;
	send(&n, 1, 0, 7, 500);
	net_run(&n, UINT64_MAX);
	assert_int_equal(seen[1], 1);
	/* With a hook the wire stores the frame too; the line counts on in fractions of a cycle. */
	EXPECT(&n, 2, 25);
	assert_int_equal(n.end[0].got[0].cycle, start + once + DELAY + LATENCY + DELAY + 1000 +
							cycles(2 * (8 + 500 + 4), 100000));
	net_close(&n);
}

/* Random traffic with a link that goes down and up: a hash over which port got which frame when. */
static uint64_t random_run(uint64_t seed, bool every_cycle, unsigned int *frames)
{
	struct urdma_random rnd = { seed };
	uint64_t hash = 0;
	struct net n;

	net_open(&n, PORTS, 40000 + 20000 * (seed % 4) + seed % 7, 32 << 10, 40000);
	n.every_cycle = every_cycle;
	for (uint32_t i = 0; i < 2000; i++) {
		unsigned int from = urdma_random_below(&rnd, PORTS);
		uint32_t to = urdma_random_below(&rnd, PORTS + 1),
			 r = urdma_random_below(&rnd, 100);

		send(&n, from, to == PORTS ? GROUP : to, i, 18 + urdma_random_below(&rnd, 2000));
		if (r == 0)
			urdma_wire_set_link(n.wire[i % PORTS], false);
		else if (r < 10)
			urdma_wire_set_link(n.wire[i % PORTS], true);
		net_run(&n, n.now + urdma_random_below(&rnd, r > 95 ? 20000 : 100));
	}
	net_run(&n, UINT64_MAX);
	*frames = 0;
	for (unsigned int p = 0; p < PORTS; p++) {
		*frames += n.end[p].n;
		for (unsigned int i = 0; i < n.end[p].n; i++) {
			const struct got *g = &n.end[p].got[i];

			hash = (hash ^ (g->cycle << 24 ^ g->id << 8 ^ p)) * UINT64_C(0x100000001b3);
		}
	}
	hash ^= urdma_switch_stats(n.sw)->tail_drops;
	net_close(&n);
	return hash;
}

static void repeats(void **state)
{
	(void)state;
	for (unsigned int i = 1; i <= 8; i++) {
		const uint64_t seed = test_seed(i);
		unsigned int a, b, c;
		uint64_t x = random_run(seed, false, &a), y = random_run(seed, false, &b),
			 z = random_run(seed, true, &c);

		print_message("seed %#llx: %u frames\n", (unsigned long long)seed, a);
		assert_true(x == y && a == b);
		if (x != z || a != c)
			fail_msg("seed %#llx: skipping cycles changes what comes when",
				 (unsigned long long)seed);
		assert_true(a > 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learning),   cmocka_unit_test(ageing),
		cmocka_unit_test(full_table), cmocka_unit_test(not_forwarded),
		cmocka_unit_test(latency),    cmocka_unit_test(line_rate),
		cmocka_unit_test(tail_drop),  cmocka_unit_test(set_link),
		cmocka_unit_test(faults),     cmocka_unit_test(repeats),
	};

	return cmocka_run_group_tests_name("cosim/switch", tests, NULL, NULL);
}
