// SPDX-License-Identifier: Apache-2.0
/*
 * The wire and the capture files. A failure means that frames would arrive in another cycle than
 * the line's arithmetic says, that the line rate would not be reached or would be exceeded, or that
 * Wireshark could not read the captures.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "eth/pcapng.h"
#include "eth/wire.h"
#include "random.h"

#define MAX_FRAMES 4000u

struct side {
	struct urdma_eth_port port;
	struct urdma_sim_in in;
	struct urdma_sim_out out;
	/* To send: len[i] bytes each, not before cycle at[i]. */
	uint32_t len[MAX_FRAMES];
	uint64_t at[MAX_FRAMES];
	uint64_t begun[MAX_FRAMES]; /* cycle in which the first beat was taken */
	unsigned int n, next;
	uint32_t sent;
	/* Received. */
	uint32_t got_len[2 * MAX_FRAMES];
	uint64_t first[2 * MAX_FRAMES], last[2 * MAX_FRAMES];
	uint8_t tag[2 * MAX_FRAMES], error[2 * MAX_FRAMES];
	unsigned int n_got;
	uint32_t part;
};

struct net {
	struct side *s[2];
	struct urdma_wire *wire;
	uint64_t now;
};

static void net_open(struct net *n, uint64_t mbps, uint64_t delay)
{
	memset(n, 0, sizeof(*n));
	for (unsigned int i = 0; i < 2; i++) {
		n->s[i] = calloc(1, sizeof(*n->s[i]));
		assert_non_null(n->s[i]);
		urdma_eth_port_init(&n->s[i]->port, i ? "b" : "a", mbps);
	}
	assert_int_equal(urdma_wire_create(&n->s[0]->port, &n->s[1]->port, delay, &n->wire), 0);
}

static void net_close(struct net *n)
{
	urdma_wire_destroy(n->wire);
	for (unsigned int i = 0; i < 2; i++) {
		urdma_eth_port_cleanup(&n->s[i]->port);
		free(n->s[i]);
	}
}

static void net_step(struct net *n)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct side *s = n->s[i];
		struct urdma_eth_beat *t = &s->out.tx;

		urdma_eth_port_drive(&s->port, n->now, &s->in);
		memset(&s->out, 0, sizeof(s->out));
		if (s->next < s->n && (s->sent || s->at[s->next] <= n->now)) {
			uint32_t k = s->len[s->next] - s->sent;

			if (k > 64)
				k = 64;
			memset(t->data, (int)(s->next & 0xff), sizeof(t->data));
			t->keep = k == 64 ? ~UINT64_C(0) : (UINT64_C(1) << k) - 1;
			t->last = s->sent + k == s->len[s->next];
			t->valid = 1;
			if (s->in.tx_ready) {
				if (!s->sent)
					s->begun[s->next] = n->now;
				s->sent += k;
				if (t->last) {
					s->next++;
					s->sent = 0;
				}
			}
		}
		urdma_eth_port_sample(&s->port, n->now, &s->in, &s->out);
		if (s->in.rx.valid) {
			unsigned int g = s->n_got;

			assert_true(g < 2 * MAX_FRAMES);
			if (!s->part)
				s->first[g] = n->now;
			s->part += (uint32_t)__builtin_popcountll(s->in.rx.keep);
			if (s->in.rx.last) {
				s->last[g] = n->now;
				s->got_len[g] = s->part;
				s->tag[g] = (uint8_t)s->in.rx.data[0];
				s->error[g] = s->in.rx.error;
				s->n_got++;
				s->part = 0;
			} else {
				assert_true(s->in.rx.keep == ~UINT64_C(0));
			}
		}
		if (urdma_eth_port_error(&s->port))
			fail_msg("%s", urdma_eth_port_error(&s->port));
	}
	n->now++;
}

static void net_run(struct net *n)
{
	unsigned int limit = 3000000;

	while (limit-- && (n->s[0]->next < n->s[0]->n || n->s[1]->next < n->s[1]->n ||
			   urdma_eth_port_next(&n->s[0]->port) != UINT64_MAX ||
			   urdma_eth_port_next(&n->s[1]->port) != UINT64_MAX))
		net_step(n);
	assert_true(limit > 0);
}

/* Cycles, rounded up, that `bytes` take, counted from the start of a cycle. */
static uint64_t cycles(uint64_t bytes, uint64_t mbps)
{
	return (bytes * 2000 + mbps - 1) / mbps;
}

/*
 * The cycle of the last beat of a frame after `sum` bytes on the line. One beat arrives per cycle,
 * so a beat that is there together with the one before it arrives later; *prev is the last beat
 * before.
 */
static uint64_t last_beat(uint64_t start, uint64_t sum, uint32_t len, uint64_t mbps, uint64_t *prev)
{
	for (uint32_t at = 0; at < len; at += 64) {
		uint32_t got = len - at > 64 ? at + 64 : len + 4;
		uint64_t due = start + cycles(sum + 8 + got, mbps);

		*prev = due > *prev ? due : *prev + 1;
	}
	return *prev;
}

/* One frame on an idle line: first and last beat arrive when the arithmetic says. */
static void single(void **state)
{
	static const uint32_t len[] = { 20, 60, 64, 65, 128, 129, 1000, 1518, 4178, 9018 };
	static const uint64_t rate[] = { 10000, 25000, 40000, 100000 };

	(void)state;
	for (unsigned int r = 0; r < 4; r++) {
		for (unsigned int i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			struct net n;
			uint32_t wire_len = len[i] < 60 ? 60 : len[i];
			uint64_t start, first, prev = 0;

			net_open(&n, rate[r], 63);
			n.s[0]->len[0] = len[i];
			n.s[0]->at[0] = 10;
			n.s[0]->n = 1;
			net_run(&n);
			assert_int_equal(n.s[1]->n_got, 1);
			assert_int_equal(n.s[1]->got_len[0], wire_len);
			start = n.s[0]->begun[0] + 1 + 63;
			assert_int_equal(n.s[1]->last[0],
					 last_beat(start, 0, wire_len, rate[r], &prev));
			first = wire_len <= 64 ? 8 + wire_len + 4 : 8 + 64;
			assert_int_equal(n.s[1]->first[0], start + cycles(first, rate[r]));
			net_close(&n);
		}
	}
}

/* Back to back: the n-th frame ends exactly where the sum of all bytes and gaps says. */
static void saturated(void **state)
{
	static const uint64_t rate[] = { 10000, 99999, 100000, 127000 };
	struct urdma_random rnd = { .state = 5 };

	(void)state;
	print_message("seed 5\n");
	for (unsigned int r = 0; r < 4; r++) {
		for (unsigned int kind = 0; kind < 3; kind++) {
			struct net n;
			uint64_t sum = 0, start, prev = 0;

			/* Near 128 Gb/s partial beats make the interface the bottleneck, not the
			 * line. */
			if (kind == 2 && rate[r] > 100000)
				continue;
			net_open(&n, rate[r], 10);
			for (unsigned int i = 0; i < 1000; i++) {
				n.s[0]->len[i] = kind == 0   ? 60
						 : kind == 1 ? 4154
							     : 1 + urdma_random_below(&rnd, 2000);
				n.s[1]->len[i] = 60 + i % 100; /* the other direction is apart */
			}
			n.s[0]->n = 1000;
			n.s[1]->n = 1000;
			net_run(&n);
			assert_int_equal(n.s[1]->n_got, 1000);
			assert_int_equal(n.s[0]->n_got, 1000);
			start = n.s[0]->begun[0] + 1 + 10;
			for (unsigned int i = 0; i < 1000; i++) {
				uint32_t len = n.s[0]->len[i] < 60 ? 60 : n.s[0]->len[i];

				assert_int_equal(n.s[1]->tag[i], i & 0xff);
				assert_int_equal(n.s[1]->got_len[i], len);
				assert_int_equal(n.s[1]->last[i],
						 last_beat(start, sum, len, rate[r], &prev));
				sum += len + 24;
			}
			net_close(&n);
		}
	}
}

static void disconnected(void **state)
{
	struct net n;

	(void)state;
	net_open(&n, 100000, 10);
	urdma_wire_destroy(n.wire);
	n.wire = NULL;
	n.s[0]->len[0] = 1000;
	n.s[0]->n = 1;
	net_run(&n);
	assert_int_equal(n.s[0]->port.stats.tx_unconnected, 1);
	assert_int_equal(n.s[0]->in.link_up, 0);
	net_close(&n);
}

/* The NIC is reset inside a frame: the other side gets what was sent, with a bad FCS. */
static void cut(void **state)
{
	struct net n;

	(void)state;
	net_open(&n, 100000, 10);
	n.s[0]->len[0] = 1000;
	n.s[0]->n = 1;
	for (unsigned int i = 0; i < 4; i++)
		net_step(&n);
	urdma_eth_port_reset(&n.s[0]->port, n.now);
	n.s[0]->n = 0;
	n.s[0]->next = 0;
	n.s[0]->sent = 0;
	net_run(&n);
	assert_int_equal(n.s[1]->n_got, 1);
	assert_int_equal(n.s[1]->error[0], 1);
	assert_true(n.s[1]->got_len[0] < 1000);
	net_close(&n);
}

/*
 * A link that goes down in the middle of a frame's arrival: the frame counts once, whether its
 * sender has finished or not. So does a frame whose beginning nobody has seen.
 */
static void link_down(void **state)
{
	static const struct {
		uint32_t len;
		unsigned int frames, delay, begun; /* ends when that many bytes have arrived */
		bool sent;			   /* and the sender has finished */
		unsigned int lost, unconnected, received;
	} cases[] = {
		{ 1000, 1, 200, 64, true, 0, 0, 1 },  { 9000, 1, 10, 64, false, 0, 0, 1 },
		{ 1000, 1, 1000, 0, true, 1, 0, 0 },  { 1000, 3, 200, 64, true, 2, 0, 1 },
		{ 9000, 1, 5000, 0, false, 0, 1, 0 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct urdma_eth_stats *tx, *rx;
		struct net n;

		net_open(&n, 100000, cases[i].delay);
		tx = &n.s[0]->port.stats;
		rx = &n.s[1]->port.stats;
		n.s[0]->n = cases[i].frames;
		for (unsigned int k = 0; k < cases[i].frames; k++)
			n.s[0]->len[k] = cases[i].len;
		while (n.s[1]->part < cases[i].begun || !(cases[i].sent || n.s[0]->sent) ||
		       (cases[i].sent && n.s[0]->next < cases[i].frames))
			net_step(&n);
		assert_int_equal(n.s[0]->next, cases[i].sent ? cases[i].frames : 0);
		assert_int_equal(n.s[1]->n_got, 0);
		assert_int_equal(urdma_wire_set_link(n.wire, false), 0);
		/* Down and up again before the receiver has had its last beat. */
		assert_int_equal(urdma_wire_set_link(n.wire, true), 0);
		assert_int_equal(urdma_wire_set_link(n.wire, false), 0);
		net_run(&n);
		assert_int_equal(tx->tx_frames, cases[i].frames);
		assert_int_equal(rx->rx_lost, cases[i].lost);
		assert_int_equal(tx->tx_unconnected, cases[i].unconnected);
		assert_int_equal(rx->rx_frames, cases[i].received);
		assert_int_equal(rx->rx_errors, cases[i].received);
		net_close(&n);
	}
}

static void hook(void *ctx, unsigned int side, struct urdma_eth_frame *f,
		 struct urdma_wire_verdict *v)
{
	unsigned int *count = ctx;

	assert_int_equal(side, 0);
	assert_true(f->complete);
	switch ((*count)++ % 4) {
	case 0:
		v->drop = true;
		break;
	case 1:
		v->copies = 1;
		break;
	case 2:
		v->delay_cycles = 500; /* after its successor */
		break;
	default:
		f->error = true;
	}
}

static void fault_hook(void **state)
{
	static const uint8_t tags[] = { 1, 1, 3, 2, 5, 5, 7, 6 };
	unsigned int count = 0;
	struct net n;

	(void)state;
	net_open(&n, 100000, 10);
	urdma_wire_set_fault(n.wire, hook, &count);
	for (unsigned int i = 0; i < 8; i++) {
		n.s[0]->len[i] = 200;
		n.s[0]->at[i] = i / 4 * 2000;
	}
	n.s[0]->n = 8;
	net_run(&n);
	assert_int_equal(n.s[1]->n_got, 8);
	for (unsigned int i = 0; i < 8; i++) {
		assert_int_equal(n.s[1]->tag[i], tags[i]);
		assert_int_equal(n.s[1]->error[i], tags[i] % 4 == 3);
	}
	net_close(&n);
}

/* ---- captures ------------------------------------------------------------------------------ */

static void captures(void **state)
{
	char path[] = "/tmp/urdma-test-XXXXXX.pcapng", cmd[512], line[512];
	/* An Ethernet header of the local experimental type, so that the rest is not dissected. */
	uint8_t frame[2000] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5 };
	struct urdma_pcapng *p;
	unsigned int n = 0;
	FILE *f;
	int fd;

	(void)state;
	if (system("command -v tshark >/dev/null 2>&1")) {
		print_message("tshark is not installed\n");
		skip();
	}
	fd = mkstemps(path, 7);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(urdma_pcapng_open(path, "urdma0", UINT64_C(100000000000), &p), 0);
	for (unsigned int i = 0; i < 10; i++)
		urdma_pcapng_write(p, UINT64_C(5000000000) + i * UINT64_C(1000000004), frame,
				   60 + i * 101, i % 2, i == 7, i == 3 ? "what became of it" : "");
	assert_int_equal(urdma_pcapng_close(p), 0);
	snprintf(
		cmd, sizeof(cmd),
		"tshark -r %s -T fields -e frame.time_epoch -e frame.len -e frame.cap_len "
		"-e frame.interface_name -e frame.packet_flags_direction "
		"-e frame.packet_flags_crc_error -e frame.comment 2>&1 | grep -v 'Running as user'",
		path);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long long s, ns;
		unsigned int len, cap, direction;
		char name[64], crc[16], comment[64] = "";

		if (sscanf(line, "%llu.%llu %u %u %63s %x %15s %63[^\n]", &s, &ns, &len, &cap, name,
			   &direction, crc, comment) < 7)
			fail_msg("tshark says: %s", line);
		assert_true(s * 1000000000 + ns == UINT64_C(5000000000) + n * UINT64_C(1000000004));
		assert_int_equal(len, 60 + n * 101);
		assert_int_equal(cap, len);
		assert_string_equal(name, "urdma0");
		assert_int_equal(direction, n % 2 ? 2 : 1);
		assert_int_equal(crc[0] == '1' || crc[0] == 'T', n == 7);
		assert_string_equal(comment, n == 3 ? "what became of it" : "");
		n++;
	}
	pclose(f);
	unlink(path);
	assert_int_equal(n, 10);
	assert_int_equal(urdma_pcapng_open("/nonexistent/x", "urdma0", 0, &p), -ENOENT);
	/* A full disk is noticed at once: the header is written before the first frame arrives. */
	assert_int_equal(urdma_pcapng_open("/dev/full", "urdma0", 0, &p), -ENOSPC);
}

/*
 * Whole frames back to back into the MAC of a NIC, which takes a beat per cycle. Frames that bring
 * beats faster are buffered; when the FIFO is full they are lost as a whole and counted.
 */
static void overrun(void **state)
{
	static const struct {
		uint32_t len;
		bool lost;
	} sizes[] = { { 60, false }, { 64, false },  { 65, true },   { 75, true },
		      { 76, false }, { 129, false }, { 1514, false } };
	static const struct urdma_eth_frame_ops nothing;

	(void)state;
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		static uint8_t data[1514];
		const uint32_t len = sizes[i].len, beats = (len + 63) / 64;
		/* beats of a frame beyond one per cycle: a cycle is 50 bytes of the line */
		const double excess = beats - (len + 24) / 50.0;
		struct urdma_eth_port from;
		struct side *s = calloc(1, sizeof(*s));
		const struct urdma_eth_stats *stats;
		struct urdma_wire *wire;
		uint64_t now, first_lost = 0;
		unsigned int sent = 0;

		assert_non_null(s);
		urdma_eth_port_init(&from, "from", 100000);
		urdma_eth_port_init(&s->port, "to", 100000);
		urdma_eth_port_set_frames(&from, SIZE_MAX, &nothing, NULL);
		assert_int_equal(urdma_wire_create(&from, &s->port, 63, &wire), 0);
		stats = &s->port.stats;
		for (now = 0; now < 200000 || urdma_eth_port_next(&s->port) != UINT64_MAX; now++) {
			while (now < 200000 && from.out_bytes < 20 * 1514 &&
			       !urdma_eth_port_send(&from, now, data, len, false))
				sent++;
			urdma_eth_port_advance(&from, now);
			urdma_eth_port_drive(&s->port, now, &s->in);
			if (s->in.rx.valid)
				s->part += s->in.rx.last ? len - 64 * (beats - 1) : 64;
			if (stats->rx_overrun && !first_lost)
				first_lost = stats->rx_frames;
			assert_true(now < 1000000);
		}
		assert_int_equal(s->part, stats->rx_frames * len);
		assert_int_equal(stats->rx_frames + stats->rx_overrun, sent);
		if (sizes[i].lost) {
			/* a train just short enough for the FIFO gets through completely */
			assert_true(stats->rx_overrun > 100);
			assert_in_range(first_lost, (uint64_t)((URDMA_ETH_RX_FIFO - 4) / excess),
					(uint64_t)((URDMA_ETH_RX_FIFO + 4) / excess) + 4);
			print_message("%u bytes: %u frames in a train, then %u of %u are lost\n",
				      len, (unsigned int)first_lost,
				      (unsigned int)stats->rx_overrun, sent);
		} else {
			assert_int_equal(stats->rx_overrun, 0);
		}
		urdma_wire_destroy(wire);
		urdma_eth_port_cleanup(&from);
		urdma_eth_port_cleanup(&s->port);
		free(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single),	cmocka_unit_test(saturated),
		cmocka_unit_test(disconnected), cmocka_unit_test(cut),
		cmocka_unit_test(fault_hook),	cmocka_unit_test(captures),
		cmocka_unit_test(link_down),	cmocka_unit_test(overrun),
	};

	return cmocka_run_group_tests_name("cosim/wire", tests, NULL, NULL);
}
