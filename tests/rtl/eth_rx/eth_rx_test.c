// SPDX-License-Identifier: Apache-2.0
/*
 * urdma_eth_rx alone. In: frames from the MAC, and their classes. Out: bytes in buffers,
 * completions and counters, checked against a reference written from docs/hardware-interface.md,
 * section 12. SEED=n repeats a run. A failure here means that a frame was accepted, dropped,
 * counted, hashed or placed in a way that differs from that section.
 */
#include "eth_rx_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ref_hash.h"
#include "rtl/bits.h"
#include "seed.h"
#include "urdma_hw.h"

static unsigned int below(struct bench *b, unsigned int n)
{
	return (unsigned int)rnd_below(&b->rnd, n);
}

/* ---- the reference itself -------------------------------------------------------------------- */

static const uint8_t default_key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* The vectors that Microsoft publishes for receive side scaling. */
static const struct {
	bool v6;
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint32_t addresses, ports;
} vectors[] = {
	{ false, { 66, 9, 149, 187 }, { 161, 142, 100, 80 }, 2794, 1766, 0x323e8fc2, 0x51ccc178 },
	{ false, { 199, 92, 111, 2 }, { 65, 69, 140, 83 }, 14230, 4739, 0xd718262a, 0xc626b0ea },
	{ false, { 24, 19, 198, 95 }, { 12, 22, 207, 184 }, 12898, 38024, 0xd2d0a5de, 0x5c2b394a },
	{ false, { 38, 27, 205, 30 }, { 209, 142, 163, 6 }, 48228, 2217, 0x82989176, 0xafc7327f },
	{ false, { 153, 39, 163, 191 }, { 202, 188, 127, 2 }, 44251, 1303, 0x5d1809c5, 0x10e828a2 },
	{ true,
	  { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7 },
	  { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1 },
	  2794,
	  1766,
	  0x2cc18cd5,
	  0x40207d3d },
	{ true,
	  { 0x3f, 0xfe, 0x05, 0x01, 0, 8, 0, 0, 0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab },
	  { 0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
	  14230,
	  4739,
	  0x0f0c461c,
	  0xdde51bbf },
	{ true,
	  { 0x3f, 0xfe, 0x19, 0x00, 0x45, 0x45, 0, 3, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67,
	    0xcf },
	  { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf },
	  44251,
	  38024,
	  0x4b61e985,
	  0x02d1feef },
};

#define VECTORS (sizeof(vectors) / sizeof(*vectors))

static unsigned int vector_frame(struct bench *b, uint8_t *data)
{
	unsigned int *at = b->source_arg, i = *at / 2, len = 100;
	uint8_t *p = data + 14;

	if (i == VECTORS)
		return 0;
	frame_plain(b, data, len);
	if (vectors[i].v6) {
		data[12] = 0x86;
		data[13] = 0xdd;
		p[0] = 0x60;
		p[6] = *at % 2 ? 6 : 59;
		memcpy(p + 8, vectors[i].src, 16);
		memcpy(p + 24, vectors[i].dst, 16);
		p += 40;
	} else {
		p[9] = *at % 2 ? 6 : 1;
		memcpy(p + 12, vectors[i].src, 4);
		memcpy(p + 16, vectors[i].dst, 4);
		p += 20;
	}
	p[0] = (uint8_t)(vectors[i].sport >> 8);
	p[1] = (uint8_t)vectors[i].sport;
	p[2] = (uint8_t)(vectors[i].dport >> 8);
	p[3] = (uint8_t)vectors[i].dport;
	++*at;
	return len;
}

static void test_vectors(void **state)
{
	struct bench *b = bench_new(test_seed(1));
	unsigned int at = 0;
	struct ref_frame r;

	(void)state;
	assert_int_equal(~ref_crc32(~0u, (const uint8_t *)"123456789", 9), 0xcbf43926);
	config_simple(b, 8);
	memcpy(b->cfg.key, default_key, 40);
	bench_config(b);
	/* the reference against what is published, and the block against the reference */
	b->source_arg = &at;
	for (unsigned int i = 0; i < 2 * VECTORS; i++) {
		unsigned int len = vector_frame(b, b->data);

		ref_receive(&b->cfg, b->data, len, &r);
		assert_int_equal(r.hash_type, 1 + i % 2);
		assert_int_equal(r.hash, i % 2 ? vectors[i / 2].ports : vectors[i / 2].addresses);
	}
	at = 0;
	for (unsigned int q = 0; q < ETH_QUEUES; q++) {
		bench_enable(b, q, 6, 2);
		bench_run(b, 2);
		bench_post(b, q, 63);
	}
	bench_run(b, 10);
	b->must = 1;
	b->source = vector_frame;
	while (at < 2 * VECTORS || b->len)
		bench_step(b);
	bench_drain(b);
	assert_int_equal(b->got, 2 * VECTORS);
	bench_free(b);
}

/* Sums that are hard to fold: three words of 32 bits, anywhere, make 0x1ffffffff, so carries come
 * twice. */
static unsigned int sum_frame(struct bench *b, uint8_t *data)
{
	unsigned int *n = b->source_arg, len = 64 + below(b, 400), at[3];

	if (!*n)
		return 0;
	--*n;
	frame_plain(b, data, len);
	memset(data + 12, 0, len - 12);
	for (unsigned int i = 0; i < 3; i++) {
		do
			at[i] = 16 + below(b, (len - 16) / 4) * 4;
		while (data[at[i]]);
		memset(data + at[i], 255, 4);
	}
	memset(data + at[2], 0, 4);
	data[at[2]] = 1;
	return len;
}

static void test_sums(void **state)
{
	struct bench *b = bench_new(test_seed(1));
	unsigned int n = 200;

	(void)state;
	config_simple(b, 1);
	bench_config(b);
	bench_enable(b, 0, 9, 32);
	bench_run(b, 2);
	bench_post(b, 0, 500);
	bench_run(b, 300);
	b->must = 1;
	b->source_arg = &n;
	b->source = sum_frame;
	while (n || b->len)
		bench_step(b);
	bench_drain(b);
	assert_int_equal(b->got, 200);
	bench_free(b);
}

/* ---- everything at random -------------------------------------------------------------------- */

static unsigned int pick_rate(struct bench *b)
{
	return below(b, 3) ? 100 : 10 + below(b, 90);
}

/* Queues come and go, buffers run out or not, all ports stall. */
static void random_round(struct bench *b, bool errors)
{
	unsigned int post = below(b, 4);

	config_random(b);
	bench_config(b);
	b->p_beat = pick_rate(b);
	b->p_begin = below(b, 2) ? 100 : 1 + below(b, 60);
	b->p_class = below(b, 2) ? 0 : below(b, 101);
	b->p_wr = pick_rate(b);
	b->p_rxc = pick_rate(b);
	b->p_rd = pick_rate(b);
	b->p_db = pick_rate(b);
	b->p_rdma = below(b, 30);
	b->p_err = below(b, 10);
	b->p_rdma_first = below(b, 4) ? 0 : below(b, 101);
	b->rd_error = errors ? 5 : 0;
	b->latency = 1 + below(b, 200);
	b->latency_var = below(b, 3) ? 0 : below(b, 50);
	b->source = below(b, 2) ? frame_random : frame_short;
	for (unsigned int i = 0; i < 4000; i++) {
		unsigned int q = below(b, ETH_QUEUES);
		bool on = b->in.enable >> q & 1;

		bench_step(b);
		if (!b->q[q].enabled) {
			if (!below(b, 10))
				bench_enable(b, q, 6 + below(b, 4), 1 + below(b, 64));
		} else if (!(b->out.active >> q & 1)) {
			; /* just enabled */
		} else if (on && !below(b, b->out.err >> q & 1 ? 50 : 1500)) {
			bench_disable(b, q);
		} else if (on && b->db_tail - b->db_head < 100) {
			if (post == 0)
				bench_post(b, q, 1 + below(b, 3));
			else if (post < 3 && !below(b, 20))
				bench_post(b, q, below(b, 80));
			else if (!below(b, 200))
				bench_post(b, q, 1000);
			if (!below(b, 50)) /* an old one again */
				bench_doorbell(b, q, (uint16_t)(b->q[q].pi - below(b, 20)));
			if (errors && !below(b, 2000)) /* nonsense */
				bench_doorbell(b, q,
					       (uint16_t)(b->q[q].pi + (1u << b->q[q].log) + 1));
		}
	}
	bench_drain(b);
}

static void random_run(bool errors, unsigned int rounds)
{
	struct bench *b = bench_new(test_seed(1) + errors);

	for (unsigned int i = 0; i < rounds; i++)
		random_round(b, errors);
	b->in.enable = 0;
	for (unsigned int q = 0; q < ETH_QUEUES; q++)
		bench_wait_inactive(b, q);
	bench_drain(b);
	assert_int_equal(b->out.err, 0);
	print_message("%llu frames sent, %llu received, %llu filtered, %llu of wrong length, %llu "
		      "without buffer, "
		      "%llu without room, %llu reads\n",
		      (unsigned long long)b->sent, (unsigned long long)b->got,
		      (unsigned long long)b->want_filtered, (unsigned long long)b->want_length,
		      (unsigned long long)b->cnt[URDMA_CNT_ETH_RX_NO_BUF],
		      (unsigned long long)b->cnt[URDMA_CNT_ETH_RX_DROP_FULL],
		      (unsigned long long)b->reads);
	assert_true(b->got > b->sent / 50);
	bench_free(b);
}

static void test_random(void **state)
{
	(void)state;
	random_run(false, 60);
}

static void test_random_errors(void **state)
{
	(void)state;
	random_run(true, 60);
}

/* ---- filters and lengths: nothing may be lost ------------------------------------------------ */

static unsigned int next_len;

static unsigned int each_length(struct bench *b, uint8_t *data)
{
	unsigned int len = next_len;

	if (!len)
		return 0;
	frame_plain(b, data, len + 64);
	if (below(b, 2)) {
		data[12] = 0x81;
		data[13] = 0;
	}
	next_len = len == 420	  ? 1400
		   : len == 1600  ? 9180
		   : len == 9300  ? 16320
		   : len == 16460 ? 0
				  : len + 1;
	return len;
}

static void test_lengths(void **state)
{
	struct bench *b = bench_new(test_seed(1));

	(void)state;
	for (unsigned int strip = 0; strip < 2; strip++) {
		config_simple(b, 1);
		b->cfg.ctrl |= strip ? URDMA_RF_ETH_VLAN_STRIP : 0;
		bench_config(b);
		for (unsigned int size = 1; size <= 64; size = size == 1    ? 23
							       : size == 23 ? 24
									    : size + 40) {
			bench_enable(b, 0, 9, size);
			bench_run(b, 2);
			b->must = 1;
			b->p_begin = size == 1 ? 4 : 20; /* so that posting keeps up */
			next_len = 14;
			b->source = each_length;
			while (next_len || b->len) {
				bench_post(b, 0, 1000);
				bench_run(b, 8);
			}
			bench_drain(b);
			bench_disable(b, 0);
			bench_wait_inactive(b, 0);
		}
	}
	assert_true(b->want_length > 500);
	bench_free(b);
}

/* Each frame sees ETH_CTRL as a whole before or after a write to it. */
static void test_changes(void **state)
{
	struct bench *b = bench_new(test_seed(1));
	struct eth_cfg alt;

	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		config_simple(b, 8);
		bench_config(b);
		alt = b->cfg;
		b->cfg.ctrl = (uint8_t)(URDMA_RF_ETH_RX_ENABLE | below(b, 32));
		alt.ctrl = (uint8_t)~b->cfg.ctrl;
		if (round % 4)
			alt.ctrl |= URDMA_RF_ETH_RX_ENABLE;
		b->alt = &alt;
		for (unsigned int q = 0; q < ETH_QUEUES; q++)
			bench_enable(b, q, 9, 32);
		bench_run(b, 2);
		b->p_beat = 80;
		b->source = frame_short;
		for (unsigned int i = 0; i < 2000; i++) {
			bench_post(b, below(b, 8), 500);
			bench_step(b);
		}
		bench_drain(b);
		b->alt = NULL;
		for (unsigned int q = 0; q < ETH_QUEUES; q++) {
			bench_disable(b, q);
			bench_wait_inactive(b, q);
		}
	}
	assert_true(b->got > b->sent / 10);
	bench_free(b);
}

/* ---- buffers run out ------------------------------------------------------------------------- */

static struct {
	unsigned int frames, len[64], at;
	int must[64];
} script;

static unsigned int scripted(struct bench *b, uint8_t *data)
{
	if (script.at == script.frames)
		return 0;
	b->must = script.must[script.at];
	return frame_plain(b, data, script.len[script.at++]);
}

/* With n buffers posted, what comes out is known before: each frame that finds as many as it needs.
 */
static void test_no_buffer(void **state)
{
	struct bench *b = bench_new(test_seed(1));
	uint64_t no_buf = 0;

	(void)state;
	config_simple(b, 1);
	bench_config(b);
	b->p_beat = 90;
	for (unsigned int round = 0; round < 200; round++) {
		unsigned int size = 1 + below(b, 64), left, off = 0;

		bench_enable(b, 0, 9, size);
		bench_run(b, 2);
		if (round % 3) { /* begin in the middle of a line */
			off = below(b, 200);
			bench_post(b, 0, off);
			bench_run(b, 10);
			script.frames = script.at = 0;
			while (off >= (60 + size * 64 - 1) / (size * 64) && script.frames < 60) {
				script.len[script.frames] = 60;
				script.must[script.frames++] = 1;
				off--;
			}
			b->source = scripted;
			b->latency = below(b, 300);
			bench_run(b, 400);
			bench_drain(b);
		}
		left = off + bench_post(b, 0, below(b, 60));
		bench_step(b); /* the doorbell; the frames follow at once, before any address is on
				  chip */
		script.at = 0;
		script.frames = 1 + below(b, 60);
		for (unsigned int i = 0; i < script.frames; i++) {
			unsigned int need;

			script.len[i] = below(b, 5) ? 60 + below(b, 600) : 60 + below(b, 5000);
			need = (script.len[i] + size * 64 - 1) / (size * 64);
			script.must[i] = need <= left;
			if (need <= left)
				left -= need;
			else
				no_buf++;
		}
		/* 64 KB of frames wait at most: not more than that at once */
		b->p_begin = 3;
		b->source = scripted;
		while (script.at < script.frames || b->len)
			bench_step(b);
		bench_drain(b);
		b->p_begin = 100;
		bench_disable(b, 0);
		bench_wait_inactive(b, 0);
	}
	assert_int_equal(b->cnt[URDMA_CNT_ETH_RX_NO_BUF], no_buf);
	assert_int_equal(b->cnt[URDMA_CNT_ETH_RX_DROP_FULL], 0);
	/* a queue that is not enabled */
	script.at = 0;
	script.frames = 5;
	for (int i = 0; i < 5; i++)
		script.must[i] = 0;
	b->source = scripted;
	bench_run(b, 3000);
	bench_drain(b);
	assert_int_equal(b->cnt[URDMA_CNT_ETH_RX_NO_BUF], no_buf + 5);
	bench_free(b);
}

/* ---- no room on the NIC ---------------------------------------------------------------------- */

static unsigned int plain_len;

static unsigned int plain(struct bench *b, uint8_t *data)
{
	return frame_plain(b, data, plain_len);
}

static void test_full(void **state)
{
	static const unsigned int lens[] = { 60, 64, 65, 1514, 9018, 9216 };
	struct bench *b = bench_new(test_seed(1));

	(void)state;
	config_simple(b, 1);
	bench_config(b);
	bench_enable(b, 0, 10, 64);
	bench_run(b, 2);
	for (unsigned int i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		uint64_t got = b->got, full = b->cnt[URDMA_CNT_ETH_RX_DROP_FULL], sent = b->sent;
		unsigned int lines = (lens[i] + 63) / 64, fit = 1024 / lines;

		bench_post(b, 0, 1000);
		bench_run(b, 400);
		plain_len = lens[i];
		b->p_wr = 0;
		b->source = plain;
		b->must = -1;
		bench_run(b, 4000);
		full = b->cnt[URDMA_CNT_ETH_RX_DROP_FULL] - full;
		if (full < 3)
			fail_msg("%u bytes: memory that never fills", lens[i]);
		b->p_wr = 100;
		bench_drain(b);
		got = b->got - got;
		sent = b->sent - sent;
		assert_int_equal(b->cnt[URDMA_CNT_ETH_RX_NO_BUF], 0);
		print_message("%u bytes: %llu of %llu frames wait without a write\n", lens[i],
			      (unsigned long long)got, (unsigned long long)sent);
		/* as many as there are lines, or 256 and those on their way */
		if (got < (fit < 256 ? fit : 256) || got > fit + 1)
			fail_msg("%u bytes: %llu frames found room", lens[i],
				 (unsigned long long)got);
	}
	bench_free(b);
}

/* ---- ends of a queue's life ------------------------------------------------------------------ */

/* A frame of more buffers than are fetched ahead has begun; it is finished, one behind it is not.
 */
static void test_disable(void **state)
{
	struct bench *b = bench_new(test_seed(1));

	(void)state;
	config_simple(b, 1);
	bench_config(b);
	for (unsigned int round = 0; round < 60; round++) {
		uint64_t begins;

		bench_enable(b, 0, 9, 1);
		bench_run(b, 2);
		bench_post(b, 0, 511);
		b->latency = below(b, 200);
		bench_run(b, below(b, 400));
		script.at = 0;
		script.frames = 3;
		script.len[0] = script.len[1] = script.len[2] = 9216;
		script.must[0] = 1;
		script.must[1] = script.must[2] = -1;
		b->source = scripted;
		begins = b->wr_begins;
		while (b->wr_begins == begins)
			bench_step(b);
		bench_run(b, below(b, 100));
		bench_disable(b, 0);
		bench_wait_inactive(b, 0);
		if (b->got + b->cnt[URDMA_CNT_ETH_RX_NO_BUF] < 3 * round + 1)
			fail_msg("inactive, and the frame that had begun is not there");
		bench_run(b, 600); /* what comes behind finds no queue */
		bench_drain(b);
		assert_int_equal(b->got + b->cnt[URDMA_CNT_ETH_RX_NO_BUF], 3 * (round + 1));
	}
	assert_true(b->cnt[URDMA_CNT_ETH_RX_NO_BUF] >= 60);
	bench_free(b);
}

/* Disabled in the midst of fetching: nothing more is asked for, and what comes is forgotten. */
static void test_disable_fetch(void **state)
{
	struct bench *b = bench_new(test_seed(1));
	uint64_t reads;

	(void)state;
	config_simple(b, 1);
	bench_config(b);
	for (unsigned int round = 0; round < 2; round++) {
		bench_enable(b, 0, 9, 8);
		bench_run(b, 2);
		bench_post(b, 0, 511);
		bench_run(b, 8);
		bench_disable(b, 0);
		bench_run(b, 2);
		reads = b->reads;
		assert_true(reads > 0);
		bench_wait_inactive(b, 0);
		assert_int_equal(b->reads, reads);
	}
	/* a new life begins at 0 */
	bench_enable(b, 0, 9, 8);
	bench_run(b, 2);
	bench_post(b, 0, 3);
	plain_len = 100;
	b->source = plain;
	bench_run(b, 40);
	bench_drain(b);
	assert_int_equal(b->got, 3);
	bench_free(b);
}

/* A frame waits behind another while its queue begins anew with smaller buffers: it is not written
 * as for the old. */
static void test_other_size(void **state)
{
	struct bench *b = bench_new(test_seed(1));

	(void)state;
	config_simple(b, 2);
	bench_config(b);
	for (unsigned int q = 0; q < 2; q++) {
		bench_enable(b, q, 9, 64);
		bench_run(b, 2);
		bench_post(b, q, 500);
	}
	bench_run(b, 300);
	b->p_wr = 0;
	plain_len = 9000;
	b->must = -1;
	/* three of queue 0 fill the way to the writer; those behind are of queue 1 */
	for (unsigned int q = 0; q < 2; q++) {
		memset(b->cfg.table, (int)q, 128);
		bench_config(b);
		b->source = plain;
		while (b->sent < 3 + 4 * q || b->len) {
			bench_step(b);
			if (b->sent == 3 + 4 * q)
				b->source = NULL;
		}
		bench_run(b, 300);
	}
	for (unsigned int q = 0; q < 2; q++)
		bench_disable(b, q);
	bench_run(b, 10);
	/* the queue of the frame being written stays; the other one has a new life, if its frame
	 * had not begun */
	for (unsigned int q = 0; q < 2; q++) {
		if (b->q[q].enabled)
			continue;
		bench_enable(b, q, 9, 1);
		bench_run(b, 2);
		bench_post(b, q, 500);
	}
	bench_run(b, 300);
	b->p_wr = 100;
	bench_drain(b);
	assert_int_equal(b->got + b->cnt[URDMA_CNT_ETH_RX_NO_BUF], 7);
	bench_free(b);
}

/* One queue's ring cannot be read: it stops, the others go on; enabling it anew helps. */
static void test_errors(void **state)
{
	struct bench *b = bench_new(test_seed(1));

	(void)state;
	config_simple(b, 2);
	bench_config(b);
	plain_len = 300;
	for (unsigned int far = 0; far < 2; far++) {
		uint64_t got, no_buf;

		for (unsigned int q = 0; q < 2; q++) {
			bench_enable(b, q, 8, 8);
			bench_run(b, 2);
			bench_post(b, q, 100);
		}
		bench_run(b, 400);
		assert_int_equal(b->out.err, 0);
		if (far) {
			/* one more than the ring has, from what is taken; before that, all of it */
			bench_doorbell(b, 1, 256);
			bench_run(b, 300);
			assert_int_equal(b->out.err, 0);
			bench_doorbell(b, 1, 257);
		} else {
			b->rd_error = 1000;
			bench_post(b, 1, 100);
			bench_run(b, 40);
			b->rd_error = 0;
		}
		bench_run(b, 300);
		assert_int_equal(b->out.err, 2);
		got = b->got;
		no_buf = b->cnt[URDMA_CNT_ETH_RX_NO_BUF];
		b->must = -1;
		b->p_begin = 5;
		b->source = plain;
		bench_run(b, 1000);
		bench_drain(b);
		assert_true(b->got > got && b->q[1].ci == 0);
		assert_true(b->cnt[URDMA_CNT_ETH_RX_NO_BUF] > no_buf);
		assert_int_equal(b->out.err, 2);
		bench_disable(b, 1);
		bench_run(b, 1);
		bench_step(b);
		assert_int_equal(b->out.err, 0);
		bench_wait_inactive(b, 1);
		bench_enable(b, 1, 8, 8);
		bench_run(b, 2);
		bench_post(b, 1, 255);
		bench_post(b, 0, 255);
		bench_run(b, 300);
		assert_int_equal(b->out.err, 0);
		b->must = 1;
		b->source = plain;
		bench_run(b, 1000);
		bench_drain(b);
		assert_true(b->q[1].ci > 0);
		for (unsigned int q = 0; q < 2; q++) {
			bench_disable(b, q);
			bench_wait_inactive(b, q);
		}
	}
	bench_free(b);
}

/* A frame has begun, and the read that it waits for fails; those behind are good. Writes stall
 * meanwhile. */
static void test_error_begun(void **state)
{
	struct bench *b = bench_new(test_seed(1));

	(void)state;
	config_simple(b, 1);
	bench_config(b);
	for (unsigned int n = 1; n < 30; n++) {
		uint64_t reads, no_buf = b->cnt[URDMA_CNT_ETH_RX_NO_BUF];

		bench_fast(b);
		bench_enable(b, 0, 9, 1);
		bench_run(b, 2);
		bench_post(b, 0, n);
		bench_run(b, 300);
		b->latency = 300;
		b->p_wr = 0;
		b->rd_error = 1000;
		reads = b->reads;
		bench_post(b, 0, 400);
		while (b->reads == reads)
			bench_step(b);
		b->rd_error = 0;
		script.at = 0;
		script.frames = 2;
		script.len[0] = script.len[1] = 6400;
		script.must[0] = script.must[1] = 0;
		b->source = scripted;
		bench_run(b, 600);
		b->p_wr = 100;
		bench_drain(b);
		assert_int_equal(b->out.err, 1);
		assert_int_equal(b->cnt[URDMA_CNT_ETH_RX_NO_BUF], no_buf + 2);
		b->rd_error = 1; /* a frame of the queue is not completed */
		bench_disable(b, 0);
		bench_wait_inactive(b, 0);
		b->rd_error = 0;
	}
	bench_free(b);
}

/* A reset at any moment leaves nothing behind. */
static void test_reset(void **state)
{
	struct bench *b = bench_new(test_seed(1));

	(void)state;
	for (unsigned int round = 0; round < 60; round++) {
		config_simple(b, 4);
		bench_config(b);
		bench_fast(b);
		b->latency = below(b, 200);
		for (unsigned int life = 0; life < 2; life++) {
			for (unsigned int q = 0; q < 4; q++) {
				bench_enable(b, q, 8, 1 + below(b, 64));
				bench_run(b, 2);
				bench_post(b, q, 255);
			}
			b->source = below(b, 2) ? frame_random : frame_short;
			b->p_wr = life ? 100 : below(b, 101);
			bench_run(b, 10 + below(b, 500));
			if (life) {
				b->p_rdma_first = 0;
				bench_drain(b);
				if (!b->got && !b->dropped && !b->want_filtered && !b->want_length)
					fail_msg("nothing is received after a reset");
			}
			bench_reset(b);
		}
	}
	bench_free(b);
}

/* ---- RDMA first ------------------------------------------------------------------------------ */

static void test_rdma_first(void **state)
{
	struct bench *b = bench_new(test_seed(1));
	uint64_t begins, last = 0;
	unsigned int n = 0;

	(void)state;
	config_simple(b, 1);
	bench_config(b);
	bench_enable(b, 0, 9, 64);
	bench_run(b, 2);
	bench_post(b, 0, 500);
	bench_run(b, 300);
	/* one that has begun goes on */
	script.at = 0;
	script.frames = 1;
	script.len[0] = 9000;
	script.must[0] = 1;
	b->source = scripted;
	begins = b->wr_begins;
	while (b->wr_begins == begins)
		bench_step(b);
	b->p_rdma_first = 100;
	bench_run(b, 300);
	assert_int_equal(b->got, 1);
	b->source = plain;
	plain_len = 100;
	bench_run(b, 60);
	b->source = NULL;
	begins = b->wr_begins;
	for (unsigned int i = 0; i < 20000; i++) {
		bench_step(b);
		if (b->wr_begins == begins)
			continue;
		begins = b->wr_begins;
		if (n++ && (b->cycle - last > 2048 || b->cycle - last < 1024))
			fail_msg("while RDMA goes first a frame begins after %llu cycles",
				 (unsigned long long)(b->cycle - last));
		last = b->cycle;
	}
	assert_in_range(n, 9, 11);
	b->p_rdma_first = 0;
	bench_run(b, 200);
	assert_int_equal(b->got, b->sent);
	bench_drain(b);
	bench_free(b);
}

/* ---- speed ----------------------------------------------------------------------------------- */

/* Cycles a frame: frames of len bytes to some queues, one each cycles cycles (0: as fast as beats
 * come). */
static double speed(unsigned int len, unsigned int queues, unsigned int size, unsigned int every,
		    unsigned int frames)
{
	struct bench *b = bench_new(test_seed(1));
	uint64_t start, first = 0;
	double result;

	config_simple(b, queues);
	bench_config(b);
	for (unsigned int q = 0; q < queues; q++) {
		bench_enable(b, q, 10, size);
		bench_run(b, 2);
		bench_post(b, q, 1023);
	}
	bench_run(b, 10);
	b->must = 1;
	plain_len = len;
	start = b->cycle;
	while (b->got < frames) {
		/* software puts buffers back as it gets completions */
		if (b->cycle % 8 == 0)
			bench_post(b, (unsigned int)(b->cycle / 8) % queues, 64);
		/* so that the first is on chip, and what waits does not overflow */
		b->source = b->cycle - start > 300 && b->sent < frames &&
					    (!every || (b->cycle - start - 300) / every >= b->sent)
				    ? plain
				    : NULL;
		bench_step(b);
		if (!first && b->got == 100)
			first = b->last_rxc;
	}
	result = (double)(b->last_rxc - first) / (frames - 100);
	bench_drain(b);
	bench_free(b);
	return result;
}

static void check_speed(const char *what, double got, double most)
{
	print_message("%s: one in %.2f cycles (at most %.2f)\n", what, got, most);
	if (got > most)
		fail_msg("%s: one in %.2f cycles instead of %.2f", what, got, most);
}

static void test_speed(void **state)
{
	(void)state;
	check_speed("64 bytes, one queue", speed(64, 1, 32, 2, 10000), 2.1);
	check_speed("64 bytes, eight queues", speed(64, 8, 32, 2, 10000), 2.1);
	check_speed("65 bytes, eight queues", speed(65, 8, 32, 2, 10000), 2.1);
	check_speed("1514 bytes in 2 KB, one queue", speed(1514, 1, 32, 0, 3000), 24.01);
	check_speed("1514 bytes in 2 KB, eight queues", speed(1514, 8, 32, 0, 3000), 24.01);
	check_speed("9018 bytes in 4 KB, one queue", speed(9018, 1, 64, 0, 1000), 141.01);
	check_speed("9018 bytes in 4 KB, eight queues", speed(9018, 8, 64, 0, 1000), 141.01);
}

/* From the first beat to the first beat of the DMA write, with addresses on chip. */
static void test_latency(void **state)
{
	struct bench *b = bench_new(test_seed(1));
	uint64_t start;

	(void)state;
	config_simple(b, 1);
	bench_config(b);
	bench_enable(b, 0, 10, 32);
	bench_run(b, 2);
	bench_post(b, 0, 1000);
	bench_run(b, 400);
	plain_len = 64;
	b->must = 1;
	start = b->cycle;
	b->source = plain;
	bench_step(b);
	b->source = NULL;
	bench_drain(b);
	assert_int_equal(b->got, 1);
	print_message("first beat to DMA write: %llu cycles\n",
		      (unsigned long long)(b->first_wr - start));
	assert_true(b->first_wr - start <= 20);
	bench_free(b);
}

/* All indexes go round: 16 bits, in rings of the smallest and of the greatest size. */
static void test_wraparound(void **state)
{
	(void)state;
	for (unsigned int log = 6; log <= 15; log += 9) {
		struct bench *b = bench_new(test_seed(1));

		config_simple(b, 1);
		bench_config(b);
		bench_enable(b, 0, log, 1);
		bench_run(b, 2);
		b->latency = 5;
		b->must = 1;
		b->p_begin = 30;
		plain_len = 128;
		while (b->got < 36000) {
			bench_post(b, 0, 1000);
			b->source =
				(uint16_t)(b->q[0].pi - b->q[0].ci) > 40 && b->sent - b->got < 10
					? plain
					: NULL;
			bench_run(b, 4);
		}
		bench_drain(b);
		bench_disable(b, 0);
		bench_wait_inactive(b, 0);
		bench_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	      cmocka_unit_test(test_sums),
		cmocka_unit_test(test_lengths),	      cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_errors), cmocka_unit_test(test_changes),
		cmocka_unit_test(test_no_buffer),     cmocka_unit_test(test_full),
		cmocka_unit_test(test_disable),	      cmocka_unit_test(test_other_size),
		cmocka_unit_test(test_disable_fetch), cmocka_unit_test(test_errors),
		cmocka_unit_test(test_error_begun),   cmocka_unit_test(test_reset),
		cmocka_unit_test(test_rdma_first),    cmocka_unit_test(test_speed),
		cmocka_unit_test(test_latency),	      cmocka_unit_test(test_wraparound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
