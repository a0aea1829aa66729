// SPDX-License-Identifier: Apache-2.0
/*
 * urdma_tx alone. Every frame is compared byte by byte, ICRC included, with one built from the
 * specification in tx_bench.c; every sent_t with what was posted. A failure names the cycle, the QP
 * and the first byte that differs. SEED=n repeats a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tx_bench.h"
#include "urdma_hw.h"
#include "seed.h"

static uint64_t seed = 1;

static struct msg simple(uint64_t va, uint32_t len)
{
	return (struct msg){
		.sig = true, .len = len, .num_sge = 1, .sge = { { va, len, KEY_GOOD } }
	};
}

static uint64_t rnd64(struct bench *b)
{
	return (uint64_t)bench_rnd(b, UINT32_MAX) << 32 | bench_rnd(b, UINT32_MAX);
}

/* A message cut into n SGEs at random places, each at a random address, some empty. */
static struct msg scattered(struct bench *b, uint32_t len, int n)
{
	struct msg m = { .op = bench_rnd(b, 5),
			 .raddr = rnd64(b),
			 .rkey = bench_rnd(b, UINT32_MAX),
			 .imm = bench_rnd(b, UINT32_MAX),
			 .len = len,
			 .num_sge = n };
	uint32_t left = len;

	m.sig = bench_rnd(b, 2);
	m.se = bench_rnd(b, 2);
	for (int i = 0; i < n; i++) {
		uint32_t part = i == n - 1	  ? left
				: bench_rnd(b, 4) ? bench_rnd(b, 2 * left / (n - i) + 1)
						  : 0;

		if (part > left)
			part = left;
		m.sge[i] = (struct sge){ bench_rnd(b, MEM_SIZE - part), part, KEY_GOOD };
		left -= part;
	}
	return m;
}

static struct msg inlined(struct bench *b, uint32_t len)
{
	struct msg m = { .op = bench_rnd(b, 5),
			 .raddr = rnd64(b),
			 .rkey = bench_rnd(b, UINT32_MAX),
			 .imm = bench_rnd(b, UINT32_MAX),
			 .len = len,
			 .inl = true,
			 .sig = true };

	for (uint32_t i = 0; i < len && i < sizeof(m.inl_data); i++)
		m.inl_data[i] = bench_rnd(b, 256);
	return m;
}

static struct msg reading(struct bench *b, uint32_t len)
{
	struct msg m = simple(bench_rnd(b, 1 << 20), len);

	m.op = URDMA_WR_READ;
	m.raddr = rnd64(b);
	m.rkey = bench_rnd(b, UINT32_MAX);
	return m;
}

static struct msg atomic(struct bench *b)
{
	struct msg m = reading(b, 8);

	m.op = bench_rnd(b, 2) ? URDMA_WR_ATOMIC_CS : URDMA_WR_ATOMIC_FA;
	/* the responder refuses an address that is not aligned, not tx */
	if (bench_rnd(b, 4))
		m.raddr &= ~7ull;
	m.swap = rnd64(b);
	m.compare = rnd64(b);
	return m;
}

/* FLUSH, ATOMIC WRITE; types and levels that only the responder refuses are among them */
static struct msg mpe(struct bench *b)
{
	return (struct msg){ .op = bench_rnd(b, 2) ? URDMA_WR_FLUSH : URDMA_WR_ATOMIC_WRITE,
			     .raddr = rnd64(b),
			     .rkey = bench_rnd(b, UINT32_MAX),
			     .imm = bench_rnd(b, UINT32_MAX),
			     .mr_len = rnd64(b),
			     .swap = rnd64(b),
			     .se = bench_rnd(b, 2),
			     .sig = bench_rnd(b, 2) };
}

/* What takes READ credit and is one packet. */
static struct msg single(struct bench *b)
{
	return bench_rnd(b, 2) ? atomic(b) : mpe(b);
}

static struct msg local(struct bench *b)
{
	struct msg m = { .op = URDMA_WR_LOCAL_INV + bench_rnd(b, 3),
			 .imm = bench_rnd(b, UINT32_MAX),
			 .raddr = rnd64(b),
			 .rkey = bench_rnd(b, UINT32_MAX),
			 .mr_len = rnd64(b),
			 .mr_addr = rnd64(b),
			 .acc = bench_rnd(b, 64),
			 .levels = bench_rnd(b, 3),
			 .page_shift = 12 + bench_rnd(b, 20),
			 .zero_based = bench_rnd(b, 2),
			 .sig = bench_rnd(b, 2) };

	return m;
}

/* An address handle. */
static struct ud_dest dest(struct bench *b)
{
	struct ud_dest u = { .qpn = bench_rnd(b, 1 << 24),
			     .qkey = bench_rnd(b, UINT32_MAX),
			     .tclass = bench_rnd(b, 256),
			     .hop_limit = bench_rnd(b, 256),
			     .sgid = bench_rnd(b, 4),
			     .pcp = bench_rnd(b, 8),
			     .flow_label = bench_rnd(b, 1 << 20),
			     .udp_sport = bench_rnd(b, 1 << 16) };

	for (int i = 0; i < 6; i++)
		u.dmac[i] = bench_rnd(b, 256);
	for (int i = 0; i < 16; i++)
		u.dgid[i] = bench_rnd(b, 256);
	if (bench_gid(b, u.sgid)->ipv4) {
		memset(u.dgid, 0, 10);
		memset(u.dgid + 10, 0xff, 2);
	}
	return u;
}

/* What UC and UD have: SEND, WRITE (not UD), each with immediate or not; to anywhere. */
static uint8_t unrel_op(struct bench *b, const struct tx_cfg *cfg)
{
	static const uint8_t ops[] = { URDMA_WR_SEND, URDMA_WR_SEND_IMM, URDMA_WR_WRITE,
				       URDMA_WR_WRITE_IMM };

	return ops[bench_rnd(b, cfg->qp_type == URDMA_QPT_UD ? 2 : 4)];
}

/* A message that a QP of UC or UD can send: SGEs or inline, of UD within the MTU. */
static struct msg unrel(struct bench *b, const struct tx_cfg *cfg, uint32_t max_len)
{
	uint32_t room = bench_room(cfg), mtu = 128u << cfg->mtu;
	struct msg m;

	if (cfg->qp_type == URDMA_QPT_UD && max_len > mtu + 1)
		max_len = mtu + 1;
	if (room > mtu)
		room = mtu;
	if (bench_rnd(b, 3) == 0)
		m = inlined(b, bench_rnd(b, 4) ? bench_rnd(b, room + 1) : room);
	else
		m = scattered(b, bench_rnd(b, max_len), bench_rnd(b, bench_room(cfg) / 16 + 1));
	if (m.inl)
		m.num_sge = bench_rnd(b, 256); /* has no meaning then */
	else if (!m.num_sge)
		m.len = 0;
	m.se = bench_rnd(b, 2);
	m.op = unrel_op(b, cfg);
	m.ud = dest(b);
	return m;
}

/* XRC sends what RC sends. */
static uint8_t reliable(struct bench *b)
{
	return bench_rnd(b, 2) ? URDMA_QPT_XRC_INI : URDMA_QPT_RC;
}

/* Any work request, of a QP with this stride. */
static struct msg any(struct bench *b, const struct tx_cfg *cfg, uint32_t max_len)
{
	uint32_t stride = 1u << cfg->log_stride, max = (stride - 32) / 16;
	struct msg m;

	if (cfg->qp_type == URDMA_QPT_UC || cfg->qp_type == URDMA_QPT_UD) {
		m = bench_rnd(b, 12) ? unrel(b, cfg, max_len) : local(b);
		m.fence = bench_rnd(b, 8) == 0;
		return m;
	}
	switch (bench_rnd(b, 12)) {
	case 0:
	case 1:
		m = reading(b, bench_rnd(b, 5) ? bench_rnd(b, max_len) : 0);
		break;
	case 2:
		m = single(b);
		break;
	case 3:
		m = local(b);
		break;
	case 4:
	case 5:
		m = inlined(b, bench_rnd(b, stride - 31));
		break;
	default:
		m = scattered(b, bench_rnd(b, 3) ? bench_rnd(b, 700) : bench_rnd(b, max_len),
			      1 + bench_rnd(b, max));
	}
	m.fence = bench_rnd(b, 8) == 0;
	return m;
}

/* First light: one byte, one packet, nothing special. */
static void test_one(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { 0 };
	struct msg m = simple(0x12345, 64);

	(void)state;
	bench_open(b, 3, &cfg, 0x123456);
	bench_post(b, 3, &m);
	bench_doorbell(b, 3, 1);
	bench_drain(b, 3000);
	assert_int_equal(bench_stats(b)->frames, 1);
	bench_free(b);
}

/* Sizes around every border x MTU x kind of address, one SGE, unaligned. */
static void test_sizes(void **state)
{
	struct bench *b = bench_new(seed);
	int qpn = 0;

	(void)state;
	for (int mtu = 1; mtu <= 5; mtu++)
		for (int sgid = 0; sgid < 4; sgid++, qpn++) {
			struct tx_cfg cfg = { .mtu = mtu, .sgid = sgid };
			uint32_t m = 128u << mtu;
			uint32_t sizes[] = { 0,		1,     2,	  3,	    4, 63,
					     64,	65,    127,	  m - 1,    m, m + 1,
					     2 * m - 1, 2 * m, 2 * m + 1, 3 * m + 5 };
			int n = sizeof(sizes) / sizeof(sizes[0]);

			bench_open(b, qpn, &cfg, bench_rnd(b, 1 << 24));
			for (int i = 0; i < n; i++) {
				struct msg msg = simple(bench_rnd(b, MEM_SIZE - 65536), sizes[i]);

				msg.op = (i + sgid) % 5;
				msg.raddr = rnd64(b);
				msg.rkey = bench_rnd(b, UINT32_MAX);
				msg.imm = bench_rnd(b, UINT32_MAX);
				msg.se = i & 2;
				bench_post(b, qpn, &msg);
			}
			bench_doorbell(b, qpn, n);
		}
	bench_drain(b, 200000);
	bench_free(b);
}

/* SGE lists of each length a stride holds, inline data of each length, all mixed, in bad weather.
 */
static void test_shapes(void **state)
{
	(void)state;
	for (int round = 0; round < 6; round++) {
		struct bench *b = bench_new(seed + 100 * round);
		struct weather *w = bench_weather(b);

		if (round) {
			w->dma_latency = 25 + bench_rnd(b, 500);
			w->dma_jitter = 50;
			w->dma_gap = bench_rnd(b, 60);
			w->stall = bench_rnd(b, 70);
			w->mac_stall = bench_rnd(b, 70);
			w->mr_latency = 1 + bench_rnd(b, 30);
			w->ack_delay = 1 + bench_rnd(b, 1000);
		}
		for (int qpn = 0; qpn < 16; qpn++) {
			struct tx_cfg cfg = { .qp_type = reliable(b),
					      .mtu = 1 + bench_rnd(b, 5),
					      .sgid = bench_rnd(b, 4),
					      .log_stride = 6 + qpn % 4,
					      .log_entries = 2 + bench_rnd(b, 5),
					      .sig_all = bench_rnd(b, 2) };

			bench_open(b, qpn, &cfg, 0xffffff - bench_rnd(b, 100));
		}
		for (int turn = 0; turn < 12; turn++) {
			for (int qpn = 0; qpn < 16; qpn++) {
				struct qp *q = bench_qp(b, qpn);
				uint32_t room =
					(1u << q->cfg.log_entries) - (uint16_t)(q->pi - q->acked);
				uint32_t stride = 1u << q->cfg.log_stride, max = (stride - 32) / 16;
				uint32_t n = bench_rnd(b, room + 1);

				for (uint32_t i = 0; i < n; i++) {
					struct msg m;

					if (bench_rnd(b, 3) == 0)
						m = inlined(b, bench_rnd(b, 4)
								       ? bench_rnd(b, stride - 31)
								       : stride - 32);
					else
						m = scattered(b,
							      bench_rnd(b, 8) ? bench_rnd(b, 2000)
									      : bench_rnd(b, 20000),
							      bench_rnd(b, max + 1));
					if (!m.inl && !m.num_sge)
						m.len = 0;
					bench_post(b, qpn, &m);
				}
				bench_doorbell(b, qpn, q->pi);
			}
			bench_steps(b, bench_rnd(b, 3000));
		}
		bench_drain(b, 400000);
		bench_free(b);
	}
}

/* A WQE that is wrong: the packets before the fault go out, then the status, then everything is
 * flushed. */
static void test_errors(void **state)
{
	struct {
		const char *what;
		uint8_t status;
		uint32_t packets;
	} c[] = {
		{ "bad opcode", URDMA_WC_LOC_QP_OP_ERR, 0 },
		{ "too many SGEs", URDMA_WC_LOC_QP_OP_ERR, 0 },
		{ "inline too long", URDMA_WC_LOC_QP_OP_ERR, 0 },
		{ "message above 1 GB", URDMA_WC_LOC_LEN_ERR, 0 },
		{ "SGEs too short in the first packet", URDMA_WC_LOC_LEN_ERR, 0 },
		{ "SGEs too short in the third packet", URDMA_WC_LOC_LEN_ERR, 2 },
		{ "SGEs end with the second packet", URDMA_WC_LOC_LEN_ERR, 2 },
		{ "SGEs too long", URDMA_WC_LOC_LEN_ERR, 2 },
		{ "SGE of a zero length message", URDMA_WC_LOC_LEN_ERR, 0 },
		{ "no SGE", URDMA_WC_LOC_LEN_ERR, 0 },
		{ "bad key", URDMA_WC_LOC_PROT_ERR, 0 },
		{ "bad key in the third packet", URDMA_WC_LOC_PROT_ERR, 2 },
		{ "bad key in the middle of the third packet of five", URDMA_WC_LOC_PROT_ERR, 2 },
		{ "page table unreadable", URDMA_WC_LOC_QP_OP_ERR, 1 },
		{ "payload unreadable", URDMA_WC_LOC_QP_OP_ERR, 1 },
		{ "WQE unreadable", URDMA_WC_LOC_QP_OP_ERR, 0 },
		{ "page table of the send queue unreadable", URDMA_WC_LOC_QP_OP_ERR, 0 },
	};

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(c) / sizeof(c[0]); i++) {
		unsigned int k = i / 2;
		struct bench *b = bench_new(seed + i);
		struct tx_cfg cfg = {
			.qp_type = reliable(b), .mtu = 1, .log_stride = 7, .log_entries = 5
		};
		struct msg m = simple(0x2000, 300), good;
		struct qp *q;

		if (i & 1) {
			bench_weather(b)->stall = 30;
			bench_weather(b)->mac_stall = 30;
			bench_weather(b)->dma_jitter = 60;
		}
		bench_open(b, 1, &cfg, 77);
		bench_open(b, 2, &cfg, 99);
		q = bench_qp(b, 1);
		for (int n = 0; n < 3; n++) {
			good = scattered(b, bench_rnd(b, 1500), 4);
			bench_post(b, 1, &good);
		}
		switch (k) {
		case 0:
			m.op = 77;
			break;
		case 1:
			m.num_sge = 7;
			for (int n = 0; n < 7; n++)
				m.sge[n] = m.sge[0];
			break;
		case 2:
			m.inl = true;
			m.len = 97;
			m.num_sge = 0;
			break;
		case 3:
			m.len = (1u << 30) + 1;
			break;
		case 4:
			m.len = 301;
			m.sge[0].len = 100;
			break;
		case 5:
			m.len = 800;
			m.sge[0].len = 600;
			break;
		case 6:
			m.len = 800;
			m.sge[0].len = 512;
			break;
		case 7:
			m.len = 700;
			m.sge[0].len = 700;
			m.num_sge = 3;
			m.sge[1] = (struct sge){ 0, 0, KEY_GOOD };
			m.sge[2] = (struct sge){ 0x7000, 1, KEY_GOOD };
			break;
		case 8:
			m.len = 0;
			break;
		case 9:
			m.num_sge = 0;
			break;
		case 10:
			m.sge[0].key = KEY_BAD;
			break;
		case 11:
			m.len = 700;
			m.num_sge = 2;
			m.sge[0].len = 512;
			m.sge[1] = (struct sge){ 0x7000, 188, KEY_BAD };
			break;
		case 12:
			m.len = 1280;
			m.num_sge = 3;
			m.sge[0].len = 600;
			m.sge[1] = (struct sge){ 0x7000, 10, KEY_BAD };
			m.sge[2] = (struct sge){ 0x8000, 670, KEY_GOOD };
			break;
		case 13:
			m.num_sge = 2;
			m.sge[0].len = 299;
			m.sge[1] = (struct sge){ 0x7000, 1, KEY_MTT_ERR };
			break;
		case 14:
			m.num_sge = 2;
			m.sge[0].len = 260;
			m.sge[1] = (struct sge){ 15 << 20, 40, KEY_GOOD };
			bench_poison(b, bench_bus(15 << 20), bench_bus(15 << 20) + 40);
			break;
		default:
			/* it is the first of those that are fetched together */
			bench_doorbell(b, 1, q->pi);
			bench_drain(b, 30000);
			if (k == 15)
				bench_poison(b, bench_wqe_bus(b, 1, q->pi) + 100,
					     bench_wqe_bus(b, 1, q->pi) + 104);
			else
				bench_no_table(b, 1);
			break;
		}
		m.status = c[k].status;
		m.packets = c[k].packets;
		bench_post(b, 1, &m);
		/* what follows must not reach the wire */
		for (int n = 0; n < 6; n++) {
			good = simple(bench_rnd(b, 1 << 20), 200);
			bench_post(b, 1, &good)->packets = 0;
		}
		bench_doorbell(b, 1, q->pi);
		/* the neighbour is not disturbed */
		for (int n = 0; n < 20; n++) {
			good = simple(bench_rnd(b, 1 << 20), 333);
			bench_post(b, 2, &good);
		}
		bench_doorbell(b, 2, 20);
		for (int n = 0; n < 8000 && !q->err; n++)
			bench_step(b);
		if (!q->err)
			fail_msg("%s: no error reported", c[k].what);
		bench_steps(b, bench_rnd(b, 300));
		bench_set_err(b, 1);
		/* posted in ERR: flushed as well */
		good = simple(0, 100);
		bench_post(b, 1, &good)->packets = 0;
		bench_doorbell(b, 1, q->pi);
		bench_drain(b, 30000);
		assert_int_equal(q->f_psn, q->s_psn);
		/* a new life after RESET */
		bench_fence(b, 5000);
		bench_qpc(b, 1, QPC_RESET, 0);
		bench_poison(b, 0, 0);
		bench_no_table(b, QPS);
		bench_open(b, 1, &cfg, 0x500000);
		good = simple(0x111, 1000);
		bench_post(b, 1, &good);
		bench_doorbell(b, 1, 1);
		bench_drain(b, 5000);
		bench_free(b);
	}
}

/* At most 128 messages unacknowledged; all go when acknowledgements come again. */
static void test_window(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .log_entries = 9, .mtu = 3 };
	struct qp *q = bench_qp(b, 5);

	(void)state;
	bench_open(b, 5, &cfg, 0xfffff0);
	bench_weather(b)->acks_off = true;
	for (int i = 0; i < 512; i++) {
		struct msg m = simple(bench_rnd(b, 1 << 20), 1 + i % 100);

		bench_post(b, 5, &m);
	}
	bench_doorbell(b, 5, q->pi);
	bench_steps(b, 6000);
	assert_int_equal(q->s_msg, 128);
	/* a QP that waits for the wire is not busy: the clock may stop */
	assert_false(bench_out(b)->busy);
	bench_weather(b)->acks_off = false;
	bench_drain(b, 60000);
	assert_int_equal(bench_stats(b)->max_unacked, 128);
	assert_int_equal(q->s_msg, 512);
	bench_free(b);
}

/* Without free PSNs a QP waits, in the middle of a message as well; an acknowledgement sets it
 * going again. */
static void test_psn_window(void **state)
{
	static const uint8_t types[] = { URDMA_QPT_RC, URDMA_QPT_XRC_INI };

	(void)state;
	for (int t = 0; t < 2; t++) {
		struct bench *b = bench_new(seed);
		struct tx_cfg cfg = { .qp_type = types[t], .log_entries = 4, .mtu = 1 };
		struct msg m = simple(0x7123, 120000);
		struct qp *q = bench_qp(b, 6);
		uint32_t seen;

		bench_open(b, 6, &cfg, 0x000123);
		/* as if 4 million packets were not acknowledged, but for 80 */
		bench_acked(b, 6, 0, (0x000123 - 4194304 + 256 + 80) & 0xffffff);
		bench_post(b, 6, &m);
		bench_post(b, 6, &m);
		bench_doorbell(b, 6, 2);
		bench_steps(b, 4000);
		seen = (q->f_psn - 0x000123) & 0xffffff;
		assert_in_range(seen, 80, 80 + 144);
		assert_false(bench_out(b)->busy);
		bench_steps(b, 1000);
		assert_int_equal((q->f_psn - 0x000123) & 0xffffff, seen);
		bench_acked(b, 6, 0, q->f_psn);
		bench_drain(b, 40000);
		assert_int_equal(q->s_msg, 2);
		bench_free(b);
	}
}

/* A producer index that cannot be: the QP's error, and nobody else's. */
static void test_bad_doorbell(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .log_entries = 4 };
	struct msg m = simple(0x300, 700);
	struct qp *q = bench_qp(b, 7);

	(void)state;
	bench_open(b, 7, &cfg, 1);
	bench_open(b, 8, &cfg, 1);
	m.status = URDMA_WC_LOC_QP_OP_ERR;
	bench_post(b, 7, &m)->packets = 0;
	bench_doorbell(b, 7, 17);
	m.status = 0;
	for (int i = 0; i < 16; i++)
		bench_post(b, 8, &m);
	bench_doorbell(b, 8, 16);
	for (int i = 0; i < 2000 && !q->err; i++)
		bench_step(b);
	assert_true(q->err);
	bench_set_err(b, 7);
	bench_doorbell(b, 7, 0x8000);
	bench_drain(b, 20000);
	bench_fence(b, 3000);
	bench_qpc(b, 7, QPC_RESET, 0);
	bench_open(b, 7, &cfg, 5);
	bench_post(b, 7, &m);
	bench_doorbell(b, 7, 1);
	bench_drain(b, 5000);
	bench_free(b);
}

/* A doorbell behind the last one is late or repeated: nothing happens, wherever the QP stands. */
static void test_old_doorbell(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .log_entries = 4 };
	struct qp *q = bench_qp(b, 7);
	uint16_t rung = 0;

	(void)state;
	bench_open(b, 7, &cfg, 0xfffff0);
	for (int round = 0; round < 200; round++) {
		int n = 1 + (int)bench_rnd(b, 16);

		for (int i = 0; i < n; i++) {
			struct msg m = simple(0x300, 8 + bench_rnd(b, 200));

			bench_post(b, 7, &m);
			if (bench_rnd(b, 3) == 0) {
				rung = q->pi;
				bench_doorbell(b, 7, rung);
				bench_steps(b, bench_rnd(b, 30));
			}
			if (bench_rnd(b, 2))
				bench_doorbell(b, 7, (uint16_t)(rung - 1 - bench_rnd(b, 0x7fff)));
		}
		rung = q->pi;
		bench_doorbell(b, 7, rung);
		if (bench_rnd(b, 2))
			bench_doorbell(b, 7, (uint16_t)(rung - 1 - bench_rnd(b, 40)));
		bench_drain(b, 20000);
		bench_doorbell(b, 7, (uint16_t)(rung - 1 - bench_rnd(b, 0x7fff)));
		bench_drain(b, 1000);
	}
	assert_false(q->err);
	bench_free(b);
}

/* ERR in the middle of traffic: all that is posted ends, in order, sent or flushed. */
static void test_err_midway(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct bench *b = bench_new(seed + round);
		struct tx_cfg cfg = { .qp_type = reliable(b), .log_entries = 6, .mtu = 2 };
		struct qp *q = bench_qp(b, 9);

		bench_open(b, 9, &cfg, 10);
		for (int i = 0; i < 60; i++) {
			struct msg m = simple(bench_rnd(b, 1 << 20), bench_rnd(b, 4) ? 100 : 50000);

			bench_post(b, 9, &m);
		}
		bench_doorbell(b, 9, 60);
		bench_steps(b, bench_rnd(b, 4000));
		/* What is begun may still be sent. */
		bench_set_err(b, 9);
		for (int i = 0; i < 60000 && (uint16_t)q->s_msg != q->pi; i++)
			bench_step(b);
		assert_int_equal(q->s_msg, 60);
		bench_steps(b, 500);
		assert_false(bench_out(b)->busy);
		bench_free(b);
	}
}

static void test_acks(void **state)
{
	struct bench *b = bench_new(seed);
	struct weather *w = bench_weather(b);
	uint32_t seen, psn[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		psn[i] = bench_rnd(b, 1 << 24);
	for (int i = 0; i < 8; i++) {
		struct tx_cfg cfg = { .qp_type = i > 4 ? URDMA_QPT_XRC_TGT : URDMA_QPT_RC,
				      .sgid = i % 4 };

		bench_open(b, i, &cfg, 0);
	}
	for (int i = 0; i < 3000; i++) {
		int qpn = bench_rnd(b, 8);
		static const uint8_t syndromes[] = {
			0x1f, 0x00, 0x1f, 0x1e, 0x01, 0x1f, 0x25, 0x60
		};

		/* PSNs go up: an older acknowledgement would be left out */
		psn[qpn] = (psn[qpn] + 1 + bench_rnd(b, 5)) & 0xffffff;
		bench_ack(b, qpn, psn[qpn], syndromes[bench_rnd(b, 8)], bench_rnd(b, 1 << 24));
		if (bench_rnd(b, 20) == 0 && qpn <= 4) {
			struct msg m = simple(bench_rnd(b, 1 << 20), bench_rnd(b, 5000));

			if ((uint16_t)(bench_qp(b, qpn)->pi - bench_qp(b, qpn)->acked) < 64) {
				bench_post(b, qpn, &m);
				bench_doorbell(b, qpn, bench_qp(b, qpn)->pi);
			}
		}
		bench_steps(b, bench_rnd(b, 5));
		if (i % 500 == 0) {
			w->mac_stall = bench_rnd(b, 90);
			w->stall = bench_rnd(b, 50);
		}
	}
	bench_drain(b, 60000);
	assert_true(bench_stats(b)->acks > 100);
	assert_true(bench_stats(b)->naks > 100);
	/* an acknowledgement of a QP that is gone is not sent */
	seen = bench_qp(b, 3)->acks_seen;
	bench_qp(b, 3)->cfg.valid = false;
	bench_ack(b, 3, 1, 0x1f, 1);
	bench_steps(b, 100);
	assert_int_equal(bench_qp(b, 3)->acks_seen, seen);
	bench_free(b);
}

/* A 1 MB message on one QP; small messages on another must not wait for its end. */
static void test_fairness(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .mtu = 5 };
	struct msg big = simple(0, 1 << 20), small = simple(0x5000, 64);
	uint64_t worst = 0;

	(void)state;
	bench_open(b, 1, &cfg, 0);
	bench_open(b, 2, &cfg, 0);
	bench_post(b, 1, &big);
	bench_post(b, 1, &big);
	bench_doorbell(b, 1, 2);
	bench_steps(b, 3000);
	for (int i = 0; i < 10; i++) {
		struct msg *m = bench_post(b, 2, &small);

		bench_doorbell(b, 2, bench_qp(b, 2)->pi);
		bench_steps(b, 6000);
		assert_true(m->first_beat != 0);
		if (m->first_beat - m->posted > worst)
			worst = m->first_beat - m->posted;
	}
	printf("64 bytes beside two messages of 1 MB: worst %lu cycles from doorbell to first "
	       "beat\n",
	       worst);
	/* quantum, read-ahead and packet buffer of the other, about 200 KB, and the round trips */
	assert_true(worst < 4500);
	bench_drain(b, 60000);
	bench_free(b);
}

static void test_fence(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .log_entries = 8, .mtu = 4 };

	(void)state;
	bench_fence(b, 200); /* idle */
	for (int i = 0; i < 4; i++)
		bench_open(b, i, &cfg, 0);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 4; i++) {
			for (int k = 0; k < 40; k++) {
				struct msg m = simple(bench_rnd(b, 1 << 20), bench_rnd(b, 6000));

				bench_post(b, i, &m);
			}
			bench_doorbell(b, i, bench_qp(b, i)->pi);
			bench_ack(b, i, round, 0x1f, round);
		}
		bench_steps(b, bench_rnd(b, 800));
		bench_fence(b, 8000); /* under load, and in bounded time */
		bench_drain(b, 80000);
	}
	bench_free(b);
}

static void test_query(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .mtu = 1 };
	struct msg m = simple(0x900, 1000);

	(void)state;
	bench_open(b, 4, &cfg, 0xabcdef);
	bench_qpc(b, 4, QPC_QUERY, 0);
	assert_int_equal(bench_out(b)->qpc_rsp_psn, 0xabcdef);
	assert_int_equal(bench_out(b)->qpc_rsp_pi, 0);
	bench_post(b, 4, &m);
	bench_post(b, 4, &m);
	bench_doorbell(b, 4, 2);
	bench_drain(b, 5000);
	bench_qpc(b, 4, QPC_QUERY, 0);
	assert_int_equal(bench_out(b)->qpc_rsp_psn, 0xabcdef + 8);
	assert_int_equal(bench_out(b)->qpc_rsp_pi, 2);
	bench_free(b);
}

/*
 * A life in which nothing is sent, of one kind each: in RTS; reset at once; in RTS and then in ERR;
 * in ERR and never in RTS.
 */
static void idle_life(struct bench *b, int qpn, int kind)
{
	struct tx_cfg cfg = { 0 };

	bench_qpc(b, qpn, QPC_RESET, 0);
	if (kind == 1)
		return;
	if (kind < 3)
		bench_open(b, qpn, &cfg, 0x777777);
	if (kind < 2)
		return;
	bench_set_err(b, qpn);
	bench_steps(b, 50);
	assert_false(bench_out(b)->busy);
}

/* However many lives of a QP pass in which it sends nothing: the next one begins anew, also behind
 * one that ended with an error. */
static void test_idle_lives(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct bench *b = bench_new(seed + kind);
		struct tx_cfg cfg = { .mtu = 2 };
		struct msg good = simple(0x500, 1000), bad = simple(0, 1000);
		struct qp *q = bench_qp(b, 6);

		bad.sge[0].key = KEY_BAD;
		bad.status = URDMA_WC_LOC_PROT_ERR;
		for (int n = 0; n <= 65; n++) {
			uint32_t psn = 0xfffffe + 5 * n;

			bench_open(b, 6, &cfg, psn & 0xffffff);
			bench_qpc(b, 6, QPC_QUERY, 0);
			assert_int_equal(bench_out(b)->qpc_rsp_psn, psn & 0xffffff);
			bench_post(b, 6, &good);
			bench_post(b, 6, &good);
			bench_doorbell(b, 6, 2);
			bench_drain(b, 5000);
			bench_qpc(b, 6, QPC_QUERY, 0);
			assert_int_equal(bench_out(b)->qpc_rsp_psn, (psn + 4) & 0xffffff);
			bench_post(b, 6, &bad);
			bench_doorbell(b, 6, 3);
			for (int i = 0; i < 2000 && !q->err; i++)
				bench_step(b);
			bench_set_err(b, 6);
			bench_drain(b, 5000);
			assert_int_equal(q->s_msg, 3);
			for (int i = 0; i < n; i++)
				idle_life(b, 6, kind);
			bench_qpc(b, 6, QPC_RESET, 0);
		}
		bench_free(b);
	}
}

/* READ at each size and MTU; ATOMIC; what follows them takes the right PSN. */
static void test_read_requests(void **state)
{
	struct bench *b = bench_new(seed);
	int qpn = 0;

	(void)state;
	for (int mtu = 1; mtu <= 5; mtu++)
		for (int sgid = 0; sgid < 4; sgid++, qpn++) {
			struct tx_cfg cfg = { .mtu = mtu, .sgid = sgid };
			uint32_t m = 128u << mtu;
			uint32_t sizes[] = { 0, 1, m - 1, m, m + 1, 2 * m, 2 * m + 1, 1u << 30, 5 };

			bench_open(b, qpn, &cfg, 0xffffe0 + qpn);
			for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
				struct msg msg = reading(b, sizes[i]);

				bench_post(b, qpn, &msg);
				msg = single(b);
				bench_post(b, qpn, &msg);
				msg = simple(64, 64);
				msg.op = URDMA_WR_WRITE;
				bench_post(b, qpn, &msg);
			}
			bench_doorbell(b, qpn, bench_qp(b, qpn)->pi);
		}
	bench_drain(b, 100000);
	bench_free(b);
}

/* What a READ, ATOMIC or local operation must not be. */
static void test_request_errors(void **state)
{
	(void)state;
	for (int k = 0; k < 14; k++) {
		struct bench *b = bench_new(seed + k);
		struct tx_cfg cfg = { .mtu = 2, .log_stride = 7 };
		struct msg m = k < 2 ? reading(b, 100) : atomic(b), good = simple(0, 100);
		struct qp *q = bench_qp(b, 1);

		bench_open(b, 1, &cfg, 5);
		q->cfg.priv = false;
		m.status = URDMA_WC_LOC_QP_OP_ERR;
		switch (k) {
		case 0:
			m.inl = true;
			break;
		case 1:
			m.len = (1u << 30) + 1;
			m.status = URDMA_WC_LOC_LEN_ERR;
			break;
		case 2:
			m.len = 9;
			m.status = URDMA_WC_LOC_LEN_ERR;
			break;
		case 3:
			m.sge[0].len = 4;
			m.status = URDMA_WC_LOC_LEN_ERR;
			break;
		case 4:
			m.num_sge = 0;
			m.status = URDMA_WC_LOC_LEN_ERR;
			break;
		case 5:
			m.num_sge = 2;
			break;
		case 6:
			m = local(b);
			m.op = URDMA_WR_REG_MR;
			m.status = URDMA_WC_LOC_QP_OP_ERR;
			break;
		case 7:
			q->cfg.max_rd = 0;
			break;
		default: /* FLUSH, ATOMIC WRITE */
			m = mpe(b);
			m.op = k & 1 ? URDMA_WR_FLUSH : URDMA_WR_ATOMIC_WRITE;
			m.status = URDMA_WC_LOC_QP_OP_ERR;
			if (k < 10) {
				m.len = 8;
				m.status = URDMA_WC_LOC_LEN_ERR;
			} else if (k < 12) {
				m.num_sge = 1;
				m.sge[0] = (struct sge){ 0, 8, KEY_GOOD };
			} else {
				q->cfg.max_rd = 0;
			}
			break;
		}
		bench_post(b, 1, &good);
		bench_post(b, 1, &m);
		bench_post(b, 1, &good)->packets = 0;
		bench_doorbell(b, 1, 3);
		for (int n = 0; n < 2000 && !q->err; n++)
			bench_step(b);
		assert_true(q->err);
		bench_set_err(b, 1);
		bench_drain(b, 5000);
		assert_int_equal(bench_stats(b)->mros, 0);
		bench_free(b);
	}
}

/* Ten messages of all kinds are sent; then again from each PSN, at rest or in flight, once or
 * twice. */
static void test_retry_points(void **state)
{
	(void)state;
	for (int round = 0; round < 4; round++)
		for (uint32_t at = 0;; at++) {
			struct bench *b = bench_new(seed + round);
			struct tx_cfg cfg = { .qp_type = (round ^ at) & 1 ? URDMA_QPT_XRC_INI
									  : URDMA_QPT_RC,
					      .mtu = 1 + round % 2,
					      .log_stride = 9,
					      .log_entries = 5,
					      .priv = true };
			struct qp *q = bench_qp(b, 4);
			uint32_t total, n;
			struct msg m;

			bench_weather(b)->acks_off = true;
			bench_open(b, 4, &cfg, 0xffffe0);
			for (int i = 0; i < 10; i++) {
				m = i == 2   ? reading(b, 1300)
				    : i == 4 ? inlined(b, 480)
				    : i == 6 ? single(b)
				    : i == 7 ? local(b)
					     : scattered(b, 300 + bench_rnd(b, 1500),
							 1 + bench_rnd(b, 20));
				if (m.op == URDMA_WR_LOCAL_INV)
					m.op = URDMA_WR_BIND_MW;
				bench_post(b, 4, &m);
			}
			total = (q->post_psn - q->psn0) & 0xffffff;
			if (at >= total) {
				bench_free(b);
				break;
			}
			bench_doorbell(b, 4, q->pi);
			if (round < 2)
				bench_steps(b, 3000);
			else /* in flight */
				while (((q->hpsn - q->psn0) & 0xffffff) <= at)
					bench_step(b);
			n = q->frames;
			bench_retry(b, 4, q->psn0 + at);
			if (round & 1) {
				bench_steps(b, bench_rnd(b, 400));
				bench_retry(b, 4, q->psn0 + at);
			}
			bench_steps(b, 4000);
			assert_false(bench_out(b)->busy);
			assert_int_equal(q->s_msg, 10);
			/* the last packet went last; all from the place on went again */
			assert_int_equal(q->f_psn, q->post_psn);
			assert_true(q->frames > n);
			if (!round)
				assert_true(q->resent > 0);
			assert_int_equal(bench_stats(b)->cnt_retrans, q->resent);
			assert_int_equal(bench_stats(b)->mros, 1);
			bench_free(b);
		}
}

/* All opcodes on 16 QPs, a peer that loses requests and responses and is not ready now and then. */
static void test_loss(void **state)
{
	uint64_t retries = 0, resent = 0, frames = 0, holds = 0;

	(void)state;
	for (int round = 0; round < 12; round++) {
		struct bench *b = bench_new(seed + 1000 * round);
		struct weather *w = bench_weather(b);
		struct stats *st = bench_stats(b);

		w->peer = true;
		w->loss = round & 1 ? bench_rnd(b, 8) : 0;
		w->rsp_loss = round & 2 ? bench_rnd(b, 20) : 0;
		w->rnr = round & 4 ? 5 + bench_rnd(b, 15) : 0;
		w->late_read = 1 + bench_rnd(b, 400);
		w->ack_delay = 50 + bench_rnd(b, 600);
		w->mro_latency = 1 + bench_rnd(b, 60);
		w->sync_latency = 1 + bench_rnd(b, 300);
		if (round & 8) {
			w->dma_latency = 25 + bench_rnd(b, 400);
			w->dma_jitter = 50;
			w->stall = bench_rnd(b, 50);
			w->mac_stall = bench_rnd(b, 50);
		}
		for (int qpn = 0; qpn < 16; qpn++) {
			struct tx_cfg cfg = { .qp_type = reliable(b),
					      .mtu = 1 + bench_rnd(b, 5),
					      .sgid = bench_rnd(b, 4),
					      .log_stride = 6 + qpn % 4,
					      .log_entries = 2 + bench_rnd(b, 6),
					      .max_rd = 1 + bench_rnd(b, 16),
					      .priv = true,
					      .sig_all = bench_rnd(b, 2) };

			bench_open(b, qpn, &cfg, 0xffffff - bench_rnd(b, 100));
		}
		for (int turn = 0; turn < 20; turn++) {
			for (int qpn = 0; qpn < 16; qpn++) {
				struct qp *q = bench_qp(b, qpn);
				uint32_t room =
					(1u << q->cfg.log_entries) - (uint16_t)(q->pi - q->acked);

				for (uint32_t n = bench_rnd(b, room + 1); n; n--) {
					struct msg m =
						any(b, &q->cfg, bench_rnd(b, 9) ? 5000 : 60000);

					bench_post(b, qpn, &m);
				}
				bench_doorbell(b, qpn, q->pi);
			}
			bench_steps(b, bench_rnd(b, 4000));
		}
		bench_drain(b, 3000000);
		for (int qpn = 0; qpn < 16; qpn++) {
			struct qp *q = bench_qp(b, qpn);

			assert_int_equal(q->acked_psn, q->post_psn);
			assert_int_equal(q->hpsn, q->post_psn);
		}
		assert_int_equal(st->errs, 0);
		retries += st->retries;
		holds += st->holds;
		resent += st->resent;
		frames += st->frames;
		bench_free(b);
	}
	printf("%lu frames, %lu sent again, %lu retries, %lu holds\n", frames, resent, retries,
	       holds);
	assert_true(retries > 100 && holds > 20);
}

/* RNR: nothing new until AK_RETRY, and the block rests. */
static void test_hold(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .mtu = 2, .log_entries = 7 };
	struct qp *q = bench_qp(b, 2);
	uint32_t seen;

	(void)state;
	bench_weather(b)->acks_off = true;
	bench_open(b, 2, &cfg, 10);
	for (int i = 0; i < 100; i++) {
		struct msg m = simple(bench_rnd(b, 1 << 20), 20000);

		bench_post(b, 2, &m);
	}
	bench_doorbell(b, 2, 60);
	bench_steps(b, 1500);
	bench_ak(b, 2, AK_HOLD, 0, 10);
	bench_steps(b, 4000);
	seen = q->frames;
	assert_true(seen < 2000);
	assert_false(bench_out(b)->busy);
	bench_doorbell(b, 2, 100);
	bench_ak(b, 2, AK_HOLD, 0, 12);
	bench_steps(b, 1000);
	assert_int_equal(q->frames, seen);
	bench_retry(b, 2, 12);
	bench_weather(b)->acks_off = false;
	bench_drain(b, 100000);
	assert_int_equal(q->hpsn, q->post_psn);
	bench_free(b);
}

/* Acknowledgements of what was sent before overtake what is being sent again; the ring is used anew
 * at once. */
static void test_overtaken(void **state)
{
	(void)state;
	for (int round = 0; round < 40; round++) {
		struct bench *b = bench_new(seed + round);
		struct tx_cfg cfg = { .qp_type = reliable(b), .mtu = 2, .log_entries = 4 };
		struct qp *q = bench_qp(b, 2);
		uint32_t una;

		bench_weather(b)->acks_off = true;
		bench_open(b, 2, &cfg, 0);
		for (int i = 0; i < 16; i++) {
			struct msg m = simple(bench_rnd(b, 1 << 20), bench_rnd(b, 4000));

			bench_post(b, 2, &m);
		}
		bench_doorbell(b, 2, 16);
		bench_steps(b, 6000);
		assert_int_equal(q->hpsn, q->post_psn);
		/* long, so that WQEs may be overwritten between their turn and their read */
		bench_weather(b)->dma_latency = round & 1 ? 700 : 125;
		bench_retry(b, 2, q->msgs[bench_rnd(b, 3)].psn);
		bench_steps(b, bench_rnd(b, 500));
		una = q->msgs[8 + bench_rnd(b, 7)].psn;
		bench_acked(b, 2, 8, q->msgs[8].psn);
		/* other messages, of other sizes, in the places of the completed ones */
		for (int i = 0; i < 8; i++) {
			struct msg m = simple(bench_rnd(b, 1 << 20), bench_rnd(b, 9000));

			bench_post(b, 2, &m);
		}
		bench_doorbell(b, 2, 24);
		bench_steps(b, round & 2 ? 2500 : bench_rnd(b, 300));
		bench_retry(b, 2, una);
		bench_weather(b)->acks_off = false;
		bench_steps(b, 20000);
		assert_false(bench_out(b)->busy);
		assert_int_equal(q->s_msg, 24);
		assert_int_equal(q->f_psn, q->post_psn);
		bench_free(b);
	}
}

/* READ credit and fence: exactly as many as allowed, then rest until completion goes on. */
static void test_credit(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .max_rd = 3, .log_entries = 6 };
	struct qp *q = bench_qp(b, 2);
	struct msg m;

	(void)state;
	bench_weather(b)->acks_off = true;
	bench_open(b, 2, &cfg, 100);
	for (int i = 0; i < 8; i++) {
		m = i & 1 ? single(b) : reading(b, 64);
		bench_post(b, 2, &m);
	}
	m = simple(0, 64);
	bench_post(b, 2, &m);
	m.fence = true;
	bench_post(b, 2, &m);
	bench_doorbell(b, 2, q->pi);
	for (int i = 0; i < 8; i++) {
		uint32_t want = i < 5 ? 3 + i : 9;

		bench_steps(b, 1500);
		assert_false(bench_out(b)->busy);
		assert_int_equal(q->frames, want);
		bench_acked(b, 2, i + 1, 101 + i);
	}
	bench_steps(b, 1500);
	assert_int_equal(q->frames, 10);
	bench_free(b);
}

/* Local operations: granted and refused; LOCAL_INV syncs with rx; more QPs than the unit holds. */
static void test_local(void **state)
{
	static const uint8_t ops[] = { URDMA_WR_LOCAL_INV, URDMA_WR_REG_MR, URDMA_WR_BIND_MW };

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct bench *b = bench_new(seed + k);
		struct tx_cfg cfg = { .priv = true };
		struct qp *q = bench_qp(b, 2);
		struct msg m = local(b), s = simple(0, 3000), good;
		uint64_t mros;

		bench_open(b, 2, &cfg, 100);
		bench_post(b, 2, &s);
		m.op = ops[k];
		bench_post(b, 2, &m);
		bench_post(b, 2, &m);
		bench_post(b, 2, &s);
		bench_doorbell(b, 2, 4);
		bench_drain(b, 5000);
		assert_int_equal(bench_stats(b)->mros, 2);
		assert_int_equal(bench_stats(b)->syncs, k ? 0 : 2);
		/* BIND of a type 1 window that was bound ends the use of a key, too */
		if (m.op == URDMA_WR_BIND_MW) {
			m.answer = MRO_ENDED;
			bench_post(b, 2, &m);
			bench_doorbell(b, 2, 5);
			bench_drain(b, 5000);
			assert_int_equal(bench_stats(b)->syncs, 1);
		}
		/* what is behind one that fails is not carried out, however late ERR comes */
		mros = bench_stats(b)->mros;
		good = m;
		m.answer = MRO_BAD_KEY;
		m.status = URDMA_WC_MW_BIND_ERR;
		bench_post(b, 2, &m);
		bench_post(b, 2, &good);
		bench_post(b, 2, &s)->packets = 0;
		bench_doorbell(b, 2, q->pi);
		for (int n = 0; n < 2000 && !q->err; n++)
			bench_step(b);
		assert_true(q->err);
		bench_steps(b, 300);
		assert_int_equal(bench_stats(b)->mros, mros + 1);
		bench_set_err(b, 2);
		bench_drain(b, 4000);
		bench_free(b);
	}
	{
		struct bench *b = bench_new(seed);
		struct tx_cfg cfg = { .log_entries = 6 };

		bench_weather(b)->mro_latency = 100;
		for (int qpn = 0; qpn < QPS; qpn++) {
			bench_open(b, qpn, &cfg, qpn);
			bench_qp(b, qpn)->cfg.priv = true;
			for (int i = 0; i < 6; i++) {
				struct msg m = i % 2 ? simple(0, 100) : local(b);

				bench_post(b, qpn, &m);
			}
			bench_doorbell(b, qpn, 6);
		}
		bench_steps(b, 500);
		bench_fence(b, 100000);
		bench_drain(b, 200000);
		assert_int_equal(bench_stats(b)->mros, 3 * QPS);
		bench_free(b);
	}
}

/*
 * ERR at each moment of a local operation, with nothing in front of it or a SEND: one that
 * urdma_mr was asked for is reported with its result, and what is behind it flushed.
 */
static void test_local_in_err(void **state)
{
	unsigned int done = 0, flushed = 0;

	(void)state;
	for (unsigned int at = 0; at < 240; at++) {
		struct bench *b = bench_new(seed + at);
		struct tx_cfg cfg = { .priv = true };
		struct qp *q = bench_qp(b, 2);
		struct msg m = local(b), s = simple(0, 300);

		bench_weather(b)->mro_latency = at % 2 ? 60 : 10;
		bench_weather(b)->stall = at % 3 * 30;
		bench_open(b, 2, &cfg, 0xfffffe);
		bench_open(b, 3, &cfg, 1);
		bench_post(b, 2, &s);
		bench_doorbell(b, 2, 1);
		if (at % 5)
			bench_drain(b, 5000);
		m.op = URDMA_WR_LOCAL_INV + at / 2 % 3;
		m.sig = at % 7 > 2;
		bench_post(b, 2, &m);
		bench_post(b, 2, &s);
		/* another QP's operation may be in front of it */
		bench_post(b, 3, &m);
		bench_doorbell(b, 3, 1);
		bench_doorbell(b, 2, 3);
		bench_steps(b, at);
		bench_set_err(b, 2);
		bench_drain(b, 5000);
		bench_fence(b, 3000);
		assert_int_equal(q->s_msg, 3);
		done += q->msgs[1].asked;
		flushed += !q->msgs[1].asked;
		assert_int_equal(bench_stats(b)->mros, 1 + q->msgs[1].asked);
		/* the next life knows nothing of it */
		bench_qpc(b, 2, QPC_RESET, 0);
		bench_open(b, 2, &cfg, 7);
		bench_post(b, 2, &m);
		bench_post(b, 2, &s);
		bench_doorbell(b, 2, 2);
		bench_drain(b, 5000);
		assert_int_equal(q->s_msg, 2);
		bench_free(b);
	}
	print_message("%u operations were done, %u were not\n", done, flushed);
	assert_true(done > 20 && flushed > 20);
}

/* SQD: what is begun is completed, also by sending it again; then the event; RTS sets it going
 * again. */
static void test_sqd(void **state)
{
	(void)state;
	for (int round = 0; round < 12; round++) {
		struct bench *b = bench_new(seed + round);
		struct tx_cfg cfg = { .mtu = 2, .log_entries = 7 };
		struct qp *q = bench_qp(b, 2);
		bool event = round & 1;
		uint16_t done;

		bench_weather(b)->acks_off = true;
		bench_open(b, 2, &cfg, 0xfffff0);
		for (int i = 0; i < 100; i++) {
			struct msg m = simple(bench_rnd(b, 1 << 20), round & 2 ? 20000 : 300);

			bench_post(b, 2, &m);
		}
		bench_doorbell(b, 2, 50);
		bench_steps(b, round == 0 ? 10 : bench_rnd(b, 3000));
		q->cfg.state = URDMA_QPS_SQD;
		bench_steps(b, 3);
		bench_qpc(b, 2, QPC_SQD, event);
		bench_doorbell(b, 2, 100);
		bench_steps(b, bench_rnd(b, 3000));
		bench_qpc(b, 2, QPC_QUERY, 0);
		done = q->s_msg;
		if (done)
			assert_true(bench_out(b)->qpc_rsp_draining);
		if (round & 4)
			bench_retry(b, 2, 0xfffff0);
		bench_weather(b)->acks_off = false;
		bench_steps(b, 30000);
		done = q->s_msg;
		assert_true(done <= 50);
		assert_int_equal(q->acked, done);
		assert_false(bench_out(b)->busy);
		bench_qpc(b, 2, QPC_QUERY, 0);
		assert_false(bench_out(b)->qpc_rsp_draining);
		assert_int_equal(bench_stats(b)->errs, event);
		if (event) {
			assert_int_equal(bench_stats(b)->err_qpn, 2);
			assert_int_equal(bench_stats(b)->err_event, URDMA_EV_SQ_DRAINED);
			assert_true(bench_stats(b)->err_only);
		}
		bench_steps(b, 2000);
		assert_int_equal(q->s_msg, done);
		q->cfg.state = URDMA_QPS_RTS;
		bench_steps(b, 3);
		bench_qpc(b, 2, QPC_SQ_RUN, 0);
		bench_drain(b, 60000);
		assert_int_equal(q->s_msg, 100);
		bench_free(b);
	}
}

/*
 * SQD while a message is sent again whose turn was cut: the one behind it, of which some packets
 * have gone, or which is a local operation that urdma_mr was asked for, has begun as well.
 */
static void test_sqd_resent(void **state)
{
	(void)state;
	for (int k = 0; k < 3; k++) {
		struct bench *b = bench_new(seed + k);
		struct tx_cfg cfg = { .priv = true };
		struct qp *q = bench_qp(b, 2);
		struct msg first = simple(0x1000, k < 2 ? 40000 : 100), m = simple(0x20000, 200000);

		bench_weather(b)->acks_off = true;
		bench_weather(b)->mro_latency = k < 2 ? 60 : 1000;
		bench_open(b, 2, &cfg, 0xfffff0);
		bench_post(b, 2, &first);
		if (k) {
			m = local(b);
			m.op = URDMA_WR_REG_MR;
		}
		bench_post(b, 2, &m);
		bench_post(b, 2, &first);
		bench_doorbell(b, 2, 3);
		for (int n = 0; n < 5000 && (k ? !q->msgs[1].asked : q->frames < 15); n++)
			bench_step(b);
		assert_false(q->msgs[2].begun);
		if (k < 2) {
			bench_retry(b, 2, 0xfffff1);
			for (int n = 0; n < 5000 && q->turn_owed; n++)
				bench_step(b);
			assert_false(q->turn_owed);
		}
		/* between this and the control message no turn begins: the cut is the last that
		 * the scheduler hears of */
		q->cfg.state = URDMA_QPS_SQD;
		bench_steps(b, k < 2 ? 2000 : 3);
		bench_qpc(b, 2, QPC_SQD, 1);
		bench_qpc(b, 2, QPC_QUERY, 0);
		assert_true(bench_out(b)->qpc_rsp_draining);
		bench_steps(b, 5000);
		bench_weather(b)->acks_off = false;
		for (int n = 0; n < 20000 && !bench_stats(b)->errs; n++)
			bench_step(b);
		assert_int_equal(bench_stats(b)->err_event, URDMA_EV_SQ_DRAINED);
		assert_int_equal(q->acked, 2);
		bench_steps(b, 3000);
		assert_false(bench_out(b)->busy);
		assert_int_equal(q->s_msg, 2);
		q->cfg.state = URDMA_QPS_RTS;
		bench_steps(b, 3);
		bench_qpc(b, 2, QPC_SQ_RUN, 0);
		bench_drain(b, 5000);
		assert_int_equal(q->s_msg, 3);
		bench_free(b);
	}
}

/* ERR while messages are sent again: each WQE has one sent_t. */
static void test_flush_after_retry(void **state)
{
	(void)state;
	for (int round = 0; round < 60; round++) {
		struct bench *b = bench_new(seed + round);
		struct tx_cfg cfg = {
			.qp_type = reliable(b), .log_entries = 6, .mtu = 2, .priv = true
		};
		struct qp *q = bench_qp(b, 9);

		bench_weather(b)->acks_off = true;
		bench_open(b, 9, &cfg, 10);
		for (int i = 0; i < 60; i++) {
			struct msg m = bench_rnd(b, 9) == 0 ? local(b)
				       : bench_rnd(b, 5)    ? simple(bench_rnd(b, 1 << 20),
								     bench_rnd(b, 4) ? 100 : 50000)
							    : reading(b, 1000);

			if (m.op == URDMA_WR_LOCAL_INV)
				m.op = URDMA_WR_REG_MR;
			bench_post(b, 9, &m);
		}
		bench_doorbell(b, 9, 60);
		bench_steps(b, 200 + bench_rnd(b, 4000));
		if (q->hpsn != 10 && !(round & 1))
			bench_retry(b, 9, 10 + bench_rnd(b, (q->hpsn - 10) & 0xffffff));
		else
			bench_ak(b, 9, AK_HOLD, 0, 10);
		bench_steps(b, bench_rnd(b, 2000));
		bench_set_err(b, 9);
		bench_weather(b)->acks_off = false;
		for (int i = 0; i < 60000 && (uint16_t)q->s_msg != q->pi; i++)
			bench_step(b);
		assert_int_equal(q->s_msg, 60);
		bench_steps(b, 1500);
		assert_false(bench_out(b)->busy);
		bench_free(b);
	}
}

/*
 * A message that fails at a packet that is not its last is reported at that packet, so its end is
 * not. The WQE that has its index 65536 WQEs later is another one.
 */
static void test_told_once(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .mtu = 1, .log_entries = 9 };
	struct msg m = simple(0, 200);
	struct qp *q = bench_qp(b, 3);

	(void)state;
	bench_weather(b)->ack_delay = 20;
	bench_open(b, 3, &cfg, 1);
	bench_post(b, 3, &m);
	m.len = m.sge[0].len = 1000;
	m.sge[0].key = KEY_BAD;
	m.status = URDMA_WC_LOC_PROT_ERR;
	bench_post(b, 3, &m);
	m.status = 0;
	bench_doorbell(b, 3, 2);
	for (int n = 0; n < 2000 && !q->err; n++)
		bench_step(b);
	assert_true(q->err);
	bench_set_err(b, 3);
	for (unsigned int left = 65600; left;) {
		for (int i = 0; i < 100 && left; i++, left--)
			bench_post(b, 3, &m);
		bench_doorbell(b, 3, q->pi);
		for (int n = 0; n < 5000 && (uint16_t)(q->pi - q->acked) > 400; n++)
			bench_step(b);
	}
	bench_drain(b, 20000);
	assert_int_equal(q->s_msg, (uint16_t)65602);
	bench_free(b);
}

/* A message that is sent again fails in its midst, and ERR comes before its end: what is posted
 * then is flushed all the same. */
static void test_flush_after_failed_retry(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .log_entries = 6 };
	struct msg m = simple(0, 1 << 20), s = simple(0, 100);
	struct qp *q = bench_qp(b, 3);

	(void)state;
	bench_weather(b)->acks_off = true;
	bench_open(b, 3, &cfg, 1);
	bench_post(b, 3, &m);
	bench_post(b, 3, &s);
	bench_doorbell(b, 3, 2);
	for (int n = 0; n < 40000 && q->s_msg != 2; n++)
		bench_step(b);
	assert_int_equal(q->s_msg, 2);
	bench_steps(b, 1000);
	bench_poison(b, bench_bus(2 * 4096), bench_bus(2 * 4096) + 1);
	bench_retry(b, 3, 1);
	for (int n = 0; n < 5000 && !q->err; n++)
		bench_step(b);
	assert_true(q->err);
	bench_set_err(b, 3);
	bench_weather(b)->acks_off = false;
	bench_post(b, 3, &s);
	bench_post(b, 3, &s);
	bench_doorbell(b, 3, 4);
	bench_drain(b, 20000);
	assert_int_equal(q->s_msg, 4);
	bench_free(b);
}

/* A bad WQE behind good ones: these can still be sent again; itself and what follows is not sent.
 */
static void test_retry_before_bad(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct bench *b = bench_new(seed);
		struct tx_cfg cfg = { .mtu = 1 };
		struct qp *q = bench_qp(b, 2);
		struct msg good = simple(0x1000, 1000), bad = simple(0x3000, 700);

		bench_weather(b)->acks_off = true;
		bench_open(b, 2, &cfg, 0);
		for (int i = 0; i < 4; i++)
			bench_post(b, 2, &good);
		if (k) {
			bad.sge[0].key = KEY_BAD;
			bad.status = URDMA_WC_LOC_PROT_ERR;
		} else {
			bad.op = 99;
			bad.status = URDMA_WC_LOC_QP_OP_ERR;
		}
		bench_post(b, 2, &bad);
		for (int i = 0; i < 4; i++)
			bench_post(b, 2, &good)->packets = 0;
		bench_doorbell(b, 2, 9);
		bench_steps(b, 3000);
		assert_int_equal(q->frames, 16);
		bench_retry(b, 2, 6);
		bench_steps(b, 3000);
		assert_int_equal(q->frames, 26);
		bench_retry(b, 2, 9);
		bench_steps(b, 3000);
		assert_int_equal(q->frames, 33);
		bench_set_err(b, 2);
		bench_steps(b, 3000);
		assert_int_equal(q->s_msg, 9);
		bench_free(b);
	}
}

/*
 * A QP goes to ERR while packets wait for their payload, for the first time or to be sent again.
 * None of them leaves; only the oldest one may. tx still reports the end of all messages, because
 * requester completion flushes them.
 */
static void test_err_amid_reads(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		struct bench *b = bench_new(seed);
		struct tx_cfg cfg = { .mtu = 3 };
		struct qp *q = bench_qp(b, 2);
		struct msg m = simple(0x1000, 1024);
		uint64_t reads;

		bench_weather(b)->dma_latency = 2000;
		bench_weather(b)->acks_off = true;
		bench_open(b, 2, &cfg, 0);
		for (int i = 0; i < 8; i++)
			bench_post(b, 2, &m);
		reads = bench_stats(b)->reads[0];
		bench_doorbell(b, 2, 8);
		if (again) {
			bench_steps(b, 10000);
			assert_int_equal(q->frames, 8);
			reads = bench_stats(b)->reads[0];
			bench_retry(b, 2, 0);
		}
		for (int n = 0; n < 5000 && bench_stats(b)->reads[0] < reads + 8; n++)
			bench_step(b);
		assert_int_equal(bench_stats(b)->reads[0], reads + 8);
		assert_int_equal(q->frames, again ? 8 : 0);
		bench_set_err(b, 2);
		bench_steps(b, 5000);
		assert_in_range(q->frames, again ? 8 : 0, again ? 9 : 1);
		assert_int_equal(q->s_msg, 8);
		bench_free(b);
	}
}

/*
 * A doorbell beyond the ring, behind messages that are under way, all of the ring or some. They are
 * sent again when the peer has lost them, before tx knows of the doorbell or after; the WQE behind
 * them ends with the error.
 */
static void test_far_doorbell(void **state)
{
	(void)state;
	for (int k = 0; k < 6; k++) {
		struct bench *b = bench_new(seed);
		struct tx_cfg cfg = { .mtu = 1, .log_entries = 6 };
		struct qp *q = bench_qp(b, 2);
		struct msg good = simple(0x1000, 200), bad = good;
		uint16_t n = k % 2 ? 20 : 64;

		bench_weather(b)->acks_off = true;
		bench_open(b, 2, &cfg, 0);
		for (int i = 0; i < n; i++)
			bench_post(b, 2, &good);
		bench_doorbell(b, 2, n);
		bench_steps(b, 6000);
		assert_int_equal(q->frames, n);
		bad.status = URDMA_WC_LOC_QP_OP_ERR;
		bench_post(b, 2, &bad)->packets = 0;
		if (k / 2 == 0)
			bench_retry(b, 2, 3);
		bench_doorbell(b, 2, n + 65);
		if (k / 2 == 1)
			bench_retry(b, 2, 3);
		bench_steps(b, 6000);
		if (k / 2 == 2) {
			bench_retry(b, 2, 3);
			bench_steps(b, 6000);
		}
		assert_int_equal(q->frames, 2 * n - 3);
		bench_set_err(b, 2);
		bench_steps(b, 3000);
		assert_int_equal(q->s_msg, n + 1);
		bench_free(b);
	}
}

/* READ responses and ATOMIC acknowledgements beside traffic of the same and other QPs. */
static void test_responses(void **state)
{
	(void)state;
	for (int round = 0; round < 4; round++) {
		struct bench *b = bench_new(seed + round);
		uint32_t psn[8] = { 0 };

		if (round & 1) {
			bench_weather(b)->mac_stall = 30;
			bench_weather(b)->stall = 30;
			bench_weather(b)->dma_jitter = 60;
		}
		for (int i = 0; i < 8; i++) {
			struct tx_cfg cfg = { .qp_type = i > 3 ? URDMA_QPT_XRC_TGT : URDMA_QPT_RC,
					      .mtu = 1 + i % 5,
					      .sgid = (i + round) % 4,
					      .log_entries = 8 };

			bench_open(b, i, &cfg, 0);
		}
		for (int n = 0; n < 400; n++) {
			int i = bench_rnd(b, 8);
			struct qp *q = bench_qp(b, i);
			uint32_t len = bench_rnd(b, 4) ? bench_rnd(b, 9000) : 0,
				 mtu = 128u << q->cfg.mtu;

			if (q->rsp_tail == q->rsp_head || bench_rnd(b, 2) == 0) {
				bool at = bench_rnd(b, 4) == 0;

				/* the key of a repeated READ may have ended */
				if (bench_rnd(b, 8) == 0)
					bench_read_again(b, i, psn[i] - 9, n, KEY_BAD,
							 bench_rnd(b, 1 << 20),
							 1 + bench_rnd(b, 9000));
				if (bench_rnd(b, 8) == 0)
					bench_read_again(b, i, psn[i] - 9, n, KEY_REMOTE,
							 bench_rnd(b, 1 << 20), bench_rnd(b, 9000));
				/* a target answers each READ with the PD of its SRQ */
				bench_read(b, i, at, psn[i], n,
					   i > 3 ? KEY_XRC(bench_rnd(b, 16)) : KEY_REMOTE,
					   at ? rnd64(b) : bench_rnd(b, 1 << 20), len, 0);
				psn[i] += at || !len ? 1 : (len + mtu - 1) / mtu;
			}
			if (i < 4 && (uint16_t)(q->pi - q->acked) < 100) {
				struct msg m = simple(bench_rnd(b, 1 << 20), bench_rnd(b, 6000));

				bench_post(b, i, &m);
				bench_doorbell(b, i, q->pi);
			}
			bench_steps(b, bench_rnd(b, 300));
		}
		bench_drain(b, 100000);
		assert_true(bench_stats(b)->read_rsps > 500);
		/* refused, and unreadable: a NAK each, an event, and the QP's own sending goes on
		 */
		bench_read(b, 3, false, psn[3], 1, KEY_BAD, 0, 5000, 0x62);
		bench_drain(b, 5000);
		assert_int_equal(bench_stats(b)->errs, 1);
		assert_int_equal(bench_stats(b)->err_event, URDMA_EV_QP_ACCESS_ERR);
		bench_poison(b, bench_bus(0x9000), bench_bus(0x9000) + 64);
		bench_read(b, 4, false, psn[4], 1, KEY_REMOTE, 0x9000, 100, 0x63);
		bench_drain(b, 5000);
		assert_int_equal(bench_stats(b)->naks_seen, 2);
		/* only the first of its packets is unreadable: the others do not come either */
		bench_read(b, 6, false, psn[6], 1, KEY_REMOTE, 0x9000, 5000, 0x63);
		bench_drain(b, 5000);
		assert_int_equal(bench_stats(b)->naks_seen, 3);
		/* an ACK behind a READ response does not overtake it, and is counted all the same
		 */
		bench_read(b, 5, false, 0x1000, 1, KEY_REMOTE, 0, 9000, 0);
		bench_ack(b, 5, 0x2000, 0x1f, 2);
		bench_drain(b, 5000);
		assert_int_equal(bench_stats(b)->acks, 1);
		bench_free(b);
	}
}

/* A READ that is refused ends the responses of its QP, whatever rx holds behind it, until its next
 * life. */
static void test_closed(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .mtu = 3 };
	struct qp *q = bench_qp(b, 3);
	uint32_t seen;

	(void)state;
	for (int life = 0; life < 70; life++) {
		cfg.qp_type = life & 1 ? URDMA_QPT_XRC_TGT : URDMA_QPT_RC;
		bench_open(b, 3, &cfg, 0);
		bench_read(b, 3, false, 100, 1, KEY_REMOTE, 0x5000, 2000, 0);
		bench_drain(b, 3000);
		bench_read(b, 3, false, 102, 2, KEY_BAD, 0, 5000, 0x62);
		bench_drain(b, 3000);
		assert_int_equal(bench_stats(b)->naks_seen, life + 1);
		assert_int_equal(bench_stats(b)->errs, life + 1);
		seen = q->acks_seen;
		bench_ack(b, 3, 107, 0x1f, 3);
		bench_steps(b, 100);
		assert_int_equal(q->acks_seen, seen);
		bench_ack(b, 3, 108, 0x60, 3);
		bench_set_err(b, 3);
		bench_steps(b, 100);
		assert_int_equal(q->acks_seen, seen);
		q->ack_head = q->ack_tail; /* they will not come */
		bench_drain(b, 3000);
		bench_fence(b, 1000);
		bench_qpc(b, 3, QPC_RESET, 0);
	}
	bench_free(b);
}

/* Requests about a key that is in use without end wait side by side, not one after the other. */
static void many_invalidated(void)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .mtu = 3 };
	unsigned int n;

	bench_weather(b)->dma_latency = 1000;
	bench_open(b, 1, &cfg, 0);
	for (int i = 0; i < 16; i++)
		bench_read(b, 1, false, 64 * i, i, KEY_REMOTE, 0, 65536, 0);
	bench_steps(b, 3000);
	for (int i = 0; i < INVS - 1; i++) {
		bench_inv_ask(b, KEY_REMOTE);
		bench_steps(b, 10);
	}
	n = bench_inv(b, KEY_REMOTE, 3000);
	assert_in_range(n, 300, 2000);
	bench_drain(b, 400000);
	bench_free(b);
}

/* The end of reads through a key: not too early, at once if the key is not in use, and in bounded
 * time if its bucket is in use without end. */
static void test_invalidated(void **state)
{
	struct bench *b;
	unsigned int n, max = 0;

	(void)state;
	for (int round = 0; round < 6; round++) {
		struct tx_cfg cfg = { .mtu = 1 + round % 5, .log_entries = 8 };
		uint32_t psn = 0, mtu;
		uint64_t inv = 0, rsps;

		b = bench_new(seed + round);
		if (round & 1) {
			bench_weather(b)->mac_stall = 40;
			bench_weather(b)->stall = 30;
		}
		if (round & 2)
			bench_weather(b)->dma_latency = 1000;
		bench_weather(b)->dma_jitter = 60;
		bench_open(b, 1, &cfg, 0);
		bench_open(b, 2, &cfg, 0);
		mtu = 128u << bench_qp(b, 1)->cfg.mtu;
		assert_in_range(bench_inv(b, KEY_REMOTE, 100), 1, 3); /* idle */
		for (int i = 0; i < 300 || (i < 600 && inv <= 50); i++) {
			uint32_t len = bench_rnd(b, 4000);
			struct qp *q = bench_qp(b, 1);

			if (q->rsp_tail - q->rsp_head < 100) {
				bench_read(b, 1, false, psn, i, KEY_REMOTE, bench_rnd(b, 1 << 20),
					   len, 0);
				psn += len ? (len + mtu - 1) / mtu : 1;
			}
			q = bench_qp(b, 2);
			if ((uint16_t)(q->pi - q->acked) < 60) {
				struct msg m = simple(bench_rnd(b, 1 << 20), bench_rnd(b, 6000));

				bench_post(b, 2, &m);
				bench_doorbell(b, 2, q->pi);
			}
			bench_steps(b, bench_rnd(b, 60));
			switch (bench_rnd(b, 4)) {
			case 0:
				n = bench_inv(b, KEY_REMOTE, 20000);
				max = n > max ? n : max;
				inv++;
				break;
			case 1:
				bench_inv(b, KEY_GOOD, 20000);
				break;
			case 2: /* many, of any keys */
				for (n = bench_rnd(b, INVS - 1); n; n--)
					bench_inv_ask(b, bench_rnd(b, 2) ? KEY_REMOTE : KEY_GOOD);
				bench_inv(b, bench_rnd(b, KEYS) << 8, 20000);
				break;
			default: /* not in use */
				assert_in_range(bench_inv(b, 0x300, 3), 1, 3);
			}
		}
		rsps = bench_stats(b)->read_rsps;
		bench_drain(b, 400000);
		assert_true(inv > 50 && rsps > 50 && max > 100);
		printf("reads through a key in use end in %u cycles at most\n", max);
		bench_free(b);
	}
	/* pieces that mr refuses hold nobody up and are not counted for ever */
	b = bench_new(seed);
	for (int i = 0; i < 8; i++) {
		struct tx_cfg cfg = { 0 };

		bench_open(b, i, &cfg, 0);
		bench_read(b, i, false, 0, 1, KEY_BAD, 0, 100, 0x62);
	}
	bench_drain(b, 5000);
	assert_in_range(bench_inv(b, KEY_BAD, 100), 1, 3);
	bench_free(b);
	many_invalidated();
}

/* ---- UC and UD
 * ------------------------------------------------------------------------------------- */
static const uint8_t unrel_types[] = { URDMA_QPT_UC, URDMA_QPT_UD };
static const uint8_t senders[] = { URDMA_QPT_RC, URDMA_QPT_UC, URDMA_QPT_UD, URDMA_QPT_XRC_INI };

/* Sizes around every border x MTU x kind of address x opcode, by one SGE and, as far as they fit,
 * inline. */
static void test_unrel_sizes(void **state)
{
	(void)state;
	for (int t = 0; t < 2; t++) {
		struct bench *b = bench_new(seed + t);
		int qpn = 0;

		for (int mtu = 1; mtu <= 5; mtu++)
			for (int sgid = 0; sgid < 4; sgid++, qpn++) {
				struct tx_cfg cfg = { .qp_type = unrel_types[t],
						      .mtu = mtu,
						      .sgid = sgid,
						      .log_stride = 9,
						      .log_entries = 7 };
				uint32_t m = 128u << mtu;
				uint32_t sizes[] = { 0,	       1,     2,	 3,	4,
						     31,       32,    33,	 63,	64,
						     65,       127,   128,	 129,	m - 1,
						     m,	       m + 1, 2 * m - 1, 2 * m, 2 * m + 1,
						     3 * m + 5 };
				int n = sizeof(sizes) / sizeof(sizes[0]);

				bench_open(b, qpn, &cfg, bench_rnd(b, 1 << 24));
				for (int i = 0; i < 4 * n; i++) {
					uint32_t len = sizes[i % n];
					struct msg msg =
						simple(bench_rnd(b, MEM_SIZE - 65536), len);
					static const uint8_t ops[] = { URDMA_WR_SEND,
								       URDMA_WR_SEND_IMM,
								       URDMA_WR_WRITE,
								       URDMA_WR_WRITE_IMM };

					if (t && len > m)
						continue;
					if (i & 1 && len <= bench_room(&cfg))
						msg = inlined(b, len);
					msg.op = ops[t ? i / n % 2 : i / n];
					msg.raddr = rnd64(b);
					msg.rkey = bench_rnd(b, UINT32_MAX);
					msg.imm = bench_rnd(b, UINT32_MAX);
					msg.se = bench_rnd(b, 2);
					msg.ud = dest(b);
					msg.ud.sgid = sgid;
					if (bench_gid(b, sgid)->ipv4) {
						memset(msg.ud.dgid, 0, 10);
						memset(msg.ud.dgid + 10, 0xff, 2);
					}
					bench_post(b, qpn, &msg);
				}
				bench_doorbell(b, qpn, bench_qp(b, qpn)->pi);
			}
		bench_drain(b, 200000);
		bench_free(b);
	}
}

/* The controlled Q_Key: bit 31 of the WQE's word chooses, whatever the other bits are. */
static void test_qkey(void **state)
{
	static const uint32_t wqe[] = { 0, 1, 0x7fffffff, 0x80000000, 0x80010000, 0xffffffff };
	static const uint32_t own[] = { 1, 0x12345678, 0x7fffffff, 0x80010000 };
	struct bench *b = bench_new(seed);

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct tx_cfg cfg = { .qp_type = URDMA_QPT_UD, .qkey = own[k], .log_stride = 7 };

		bench_open(b, k, &cfg, k);
		for (int i = 0; i < 6; i++) {
			struct msg m = simple(0x100, 20);

			m.ud = dest(b);
			m.ud.qkey = wqe[i];
			bench_post(b, k, &m);
		}
		bench_doorbell(b, k, 6);
	}
	bench_drain(b, 10000);
	assert_int_equal(bench_stats(b)->frames, 24);
	bench_free(b);
}

/* Lists of each length a stride holds and inline data of each length, of all types beside each
 * other, in bad weather, with acknowledgements and READ responses. */
static void test_unrel_shapes(void **state)
{
	(void)state;
	for (int round = 0; round < 6; round++) {
		struct bench *b = bench_new(seed + 100 * round);
		struct weather *w = bench_weather(b);
		uint32_t psn = 0;

		if (round) {
			w->dma_latency = 25 + bench_rnd(b, 500);
			w->dma_jitter = 50;
			w->dma_gap = bench_rnd(b, 60);
			w->stall = bench_rnd(b, 70);
			w->mac_stall = bench_rnd(b, 70);
			w->mr_latency = 1 + bench_rnd(b, 30);
			w->ack_delay = 1 + bench_rnd(b, 1000);
			w->told = 1 + bench_rnd(b, 100);
		}
		for (int qpn = 0; qpn < 24; qpn++) {
			struct tx_cfg cfg = { .qp_type = senders[qpn % 4],
					      .mtu = 1 + bench_rnd(b, 5),
					      .sgid = bench_rnd(b, 4),
					      .log_entries = 2 + bench_rnd(b, 5),
					      .sig_all = bench_rnd(b, 2) };

			cfg.log_stride =
				cfg.qp_type == URDMA_QPT_UD ? 7 + qpn / 4 % 3 : 6 + qpn / 4 % 4;
			bench_open(b, qpn, &cfg, 0xffffff - bench_rnd(b, 100));
		}
		for (int turn = 0; turn < 12; turn++) {
			for (int qpn = 0; qpn < 24; qpn++) {
				struct qp *q = bench_qp(b, qpn);
				uint32_t room =
					(1u << q->cfg.log_entries) - (uint16_t)(q->pi - q->acked);

				for (uint32_t n = bench_rnd(b, room + 1); n; n--) {
					uint32_t len = bench_rnd(b, 8) ? 2000 : 20000;
					struct msg m = any(b, &q->cfg, len);

					if (m.op == URDMA_WR_REG_MR)
						m.op = URDMA_WR_BIND_MW;
					bench_post(b, qpn, &m);
				}
				bench_doorbell(b, qpn, q->pi);
			}
			bench_read(b, 0, false, psn, turn, KEY_REMOTE, bench_rnd(b, 1 << 20), 200,
				   0);
			bench_ack(b, 4, turn, 0x1f, turn);
			psn++;
			bench_steps(b, bench_rnd(b, 3000));
		}
		bench_drain(b, 400000);
		for (int qpn = 0; qpn < 24; qpn++)
			assert_int_equal(bench_qp(b, qpn)->hpsn, bench_qp(b, qpn)->post_psn);
		assert_int_equal(bench_stats(b)->errs, 0);
		bench_free(b);
	}
}

/* Posts good messages, a bad one and good ones to a QP and looks at what becomes of them: the
 * status at its place, packets of it, the rest flushed. */
static void expect_status(struct bench *b, struct tx_cfg *cfg, struct msg *m, uint8_t status,
			  uint32_t packets, const char *what)
{
	struct msg good = simple(0x4000, 100);
	struct qp *q = bench_qp(b, 1);

	if (cfg->log_stride == 6 && cfg->qp_type == URDMA_QPT_UD)
		good = local(b), good.op = URDMA_WR_BIND_MW;
	bench_open(b, 1, cfg, 77);
	bench_open(b, 2, &(struct tx_cfg){ .log_entries = 5 }, 99);
	good.ud = dest(b);
	m->status = status;
	m->packets = packets;
	if (cfg->log_stride > 6 || cfg->qp_type != URDMA_QPT_UD)
		for (int n = 0; n < 3; n++)
			bench_post(b, 1, &good);
	m->ud = dest(b);
	bench_post(b, 1, m);
	for (int n = 0; status && n < 6; n++)
		bench_post(b, 1, &good)->packets = 0;
	bench_doorbell(b, 1, q->pi);
	/* the neighbour is not disturbed */
	for (int n = 0; n < 10; n++) {
		good = simple(bench_rnd(b, 1 << 20), 333);
		bench_post(b, 2, &good);
	}
	bench_doorbell(b, 2, 10);
	if (status) {
		for (int n = 0; n < 8000 && !q->err; n++)
			bench_step(b);
		if (!q->err)
			fail_msg("%s: no error reported", what);
		bench_steps(b, bench_rnd(b, 300));
		bench_set_err(b, 1);
		good = simple(0, 100);
		bench_post(b, 1, &good)->packets = 0;
		bench_doorbell(b, 1, q->pi);
	}
	bench_drain(b, 30000);
	if (q->err != !!status)
		fail_msg("%s: status %u expected", what, status);
	assert_int_equal(q->f_psn, q->s_psn);
	bench_fence(b, 5000);
	bench_qpc(b, 1, QPC_RESET, 0);
	bench_qpc(b, 2, QPC_RESET, 0);
	bench_poison(b, 0, 0);
}

/* Each opcode of a WQE, by SGE and inline, of each type of QP: table 92 of volume 1. */
static void test_unrel_opcodes(void **state)
{
	struct bench *b = bench_new(seed);
	char what[80];

	(void)state;
	for (int t = 0; t < 4; t++)
		for (int op = 0; op <= URDMA_WR_ATOMIC_WRITE + 1; op++)
			for (int inl = 0; inl < 2; inl++) {
				struct tx_cfg cfg = { .qp_type = senders[t],
						      .mtu = 1,
						      .log_stride = 7,
						      .log_entries = 5,
						      .priv = true };
				bool is_local = op >= URDMA_WR_LOCAL_INV && op <= URDMA_WR_BIND_MW;
				bool is_mpe = op == URDMA_WR_FLUSH || op == URDMA_WR_ATOMIC_WRITE;
				bool rc_only = op == URDMA_WR_SEND_INV || op == URDMA_WR_READ ||
					       op == URDMA_WR_ATOMIC_CS ||
					       op == URDMA_WR_ATOMIC_FA || is_mpe;
				bool write = op == URDMA_WR_WRITE || op == URDMA_WR_WRITE_IMM;
				bool ok = op <= URDMA_WR_ATOMIC_WRITE;
				struct msg m = is_local ? local(b)
					       : is_mpe ? mpe(b)
					       : inl	? inlined(b, 8)
							: simple(0x300, 8);

				m.op = op;
				m.raddr = 0x1000;
				m.inl = inl;
				if ((t == 1 || t == 2) && rc_only)
					ok = false;
				if (t == 2 && write)
					ok = false;
				if (inl && rc_only && op != URDMA_WR_SEND_INV)
					ok = false;
				snprintf(what, sizeof(what), "QP type %d, opcode %d, inline %d",
					 cfg.qp_type, op, inl);
				expect_status(b, &cfg, &m, ok ? 0 : URDMA_WC_LOC_QP_OP_ERR, ok,
					      what);
			}
	bench_free(b);
}

/* Local operations of UC and UD: in order with messages, LOCAL_INV behind all before it; REG_MR for
 * the kernel only. */
static void test_unrel_local(void **state)
{
	(void)state;
	for (int i = 0; i < 12; i++) {
		struct bench *b = bench_new(seed + i);
		struct tx_cfg cfg = { .qp_type = unrel_types[i & 1],
				      .log_stride = 7,
				      .log_entries = 5,
				      .priv = true };

		bench_weather(b)->told = 1 + bench_rnd(b, 100);
		bench_open(b, 5, &cfg, 0xfffffe);
		for (int k = 0; k < 24; k++) {
			struct msg m = k % 3 ? unrel(b, &cfg, 3000) : local(b);

			m.op = k % 3 ? m.op : (uint8_t)(URDMA_WR_LOCAL_INV + i / 2 % 3);
			bench_post(b, 5, &m);
			if (bench_rnd(b, 2))
				bench_doorbell(b, 5, bench_qp(b, 5)->pi);
		}
		bench_doorbell(b, 5, 24);
		bench_drain(b, 20000);
		assert_int_equal(bench_stats(b)->mros, 8);
		assert_int_equal(bench_stats(b)->syncs, i / 2 % 3 ? 0 : 8);
		bench_free(b);
	}
	for (int t = 0; t < 2; t++) {
		struct bench *b = bench_new(seed);
		struct tx_cfg cfg = { .qp_type = unrel_types[t],
				      .log_stride = 7,
				      .log_entries = 5 };
		struct msg m = local(b);

		m.op = URDMA_WR_REG_MR;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_QP_OP_ERR, 0, "REG_MR of a user");
		assert_int_equal(bench_stats(b)->mros, 0);
		bench_free(b);
	}
}

/* Lengths of UD: the path MTU, the stride, SGEs against LENGTH; memory that cannot be read. */
static void test_ud_errors(void **state)
{
	(void)state;
	for (int round = 0; round < 2; round++) {
		struct bench *b = bench_new(seed + round);
		struct tx_cfg cfg = { .qp_type = URDMA_QPT_UD, .log_entries = 4 };
		struct msg m;

		if (round) {
			bench_weather(b)->stall = 30;
			bench_weather(b)->mac_stall = 30;
			bench_weather(b)->dma_jitter = 60;
		}
		for (cfg.mtu = 1; cfg.mtu <= 5; cfg.mtu++) {
			uint32_t mtu = 128u << cfg.mtu;

			cfg.log_stride = 7;
			m = simple(0x123, mtu);
			expect_status(b, &cfg, &m, 0, 1, "as long as the MTU");
			m = simple(0x123, mtu + 1);
			expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "MTU + 1");
			m = simple(0x123, (1u << 30) + 1);
			expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "1 GB + 1");
			m = simple(0x123, UINT32_MAX);
			expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "4 GB - 1");
		}
		cfg.mtu = 1;
		/* inline is no way round it: 257 bytes fit the stride */
		cfg.log_stride = 9;
		m = inlined(b, 256);
		m.op = URDMA_WR_SEND;
		expect_status(b, &cfg, &m, 0, 1, "inline as long as the MTU");
		m = inlined(b, 257);
		m.op = URDMA_WR_SEND;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "inline MTU + 1");
		cfg.mtu = 5;
		for (cfg.log_stride = 7; cfg.log_stride <= 9; cfg.log_stride++) {
			uint32_t room = bench_room(&cfg);

			for (uint32_t more = 0; more < 2; more++) {
				uint8_t status = more ? URDMA_WC_LOC_QP_OP_ERR : 0;

				m = inlined(b, room + more);
				m.op = URDMA_WR_SEND_IMM;
				expect_status(b, &cfg, &m, status, !more, "inline in the stride");
				m = simple(0, 0);
				m.num_sge = room / 16 + more;
				m.len = 100 * m.num_sge;
				for (int i = 0; i < m.num_sge; i++)
					m.sge[i] = (struct sge){ 0x1234 * i, 100, KEY_GOOD };
				expect_status(b, &cfg, &m, status, !more, "SGEs in the stride");
			}
		}
		cfg.log_stride = 6;
		for (int i = 0; i < 5; i++) {
			m = i == 4 ? local(b) : i & 1 ? inlined(b, 0) : simple(0x1000, 0);
			m.op = i == 4 ? URDMA_WR_BIND_MW : URDMA_WR_SEND + i / 2;
			if (!(i & 1) && i < 4)
				m.num_sge = 0;
			expect_status(b, &cfg, &m, URDMA_WC_LOC_QP_OP_ERR, 0, "a stride of 64");
		}
		cfg.log_stride = 7;
		m = simple(0x100, 300);
		m.sge[0].len = 299;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "SGE too short");
		m.sge[0].len = 301;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "SGE too long");
		m.sge[0].len = 300;
		m.num_sge = 2;
		m.sge[1] = (struct sge){ 0x7000, 1, KEY_GOOD };
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "one SGE too many");
		m.num_sge = 0;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "no SGE");
		m = simple(0x100, 1);
		m.len = 0;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "an SGE of nothing");
		m = simple(0x100, 0);
		m.num_sge = 2;
		expect_status(b, &cfg, &m, 0, 1, "empty SGEs of nothing");
		m = simple(0x100, 300);
		m.sge[0].key = KEY_BAD;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_PROT_ERR, 0, "bad key");
		m.sge[0] = (struct sge){ 0x100, 299, KEY_GOOD };
		m.sge[1] = (struct sge){ 0x7000, 1, KEY_MTT_ERR };
		m.num_sge = 2;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_QP_OP_ERR, 0, "page table unreadable");
		m.sge[1] = (struct sge){ 15 << 20, 1, KEY_GOOD };
		bench_poison(b, bench_bus(15 << 20), bench_bus(15 << 20) + 40);
		expect_status(b, &cfg, &m, URDMA_WC_LOC_QP_OP_ERR, 0, "payload unreadable");
		bench_free(b);
	}
}

/* UC in its third packet; what is wrong is found where it is with RC. */
static void test_uc_errors(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = {
		.qp_type = URDMA_QPT_UC, .mtu = 1, .log_stride = 7, .log_entries = 5
	};
	struct msg m = simple(0x2000, 600);

	(void)state;
	for (int op = 0; op < 5; op++) {
		if (op == URDMA_WR_SEND_INV)
			continue;
		m = simple(0x2000, 600);
		m.op = op;
		m.len = 800;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 2, "SGEs too short");
		m = simple(0x2000, 600);
		m.op = op;
		m.len = 520;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 2, "SGEs too long");
		m.num_sge = 2;
		m.len = 700;
		m.sge[0].len = 512;
		m.sge[1] = (struct sge){ 0x7000, 188, KEY_BAD };
		expect_status(b, &cfg, &m, URDMA_WC_LOC_PROT_ERR, 2, "bad key");
		m.sge[1] = (struct sge){ 15 << 20, 188, KEY_GOOD };
		bench_poison(b, bench_bus(15 << 20), bench_bus(15 << 20) + 40);
		expect_status(b, &cfg, &m, URDMA_WC_LOC_QP_OP_ERR, 2, "payload unreadable");
		m = simple(0, (1u << 30) + 1);
		m.op = op;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_LEN_ERR, 0, "1 GB + 1");
		m = inlined(b, 97);
		m.op = op;
		expect_status(b, &cfg, &m, URDMA_WC_LOC_QP_OP_ERR, 0, "inline too long");
	}
	bench_free(b);
}

/* A source that the port does not have, because its entry is not valid or the table is shorter: no
 * packet, and the message completes. */
static void test_ud_source(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .qp_type = URDMA_QPT_UD, .log_stride = 8, .log_entries = 7 };
	struct qp *q = bench_qp(b, 3);
	unsigned int seen = 0;

	(void)state;
	bench_open(b, 3, &cfg, 0xfffff0);
	cfg.sgid = 1;
	cfg.qp_type = URDMA_QPT_RC;
	bench_open(b, 4, &cfg, 5);
	for (int i = 0; i < 120; i++) {
		struct msg m = i & 1 ? inlined(b, bench_rnd(b, 100)) : simple(0x3000, 1 + i * 8);

		m.op = i % 3 == 0;
		m.ud = dest(b);
		switch (i % 5) {
		case 1:
			m.ud.sgid = 4 + bench_rnd(b, 28); /* not valid */
			break;
		case 3:
			m.ud.sgid += 32 << bench_rnd(b, 3); /* beyond the table */
			break;
		case 4:
			m.ud.sgid = 32 + bench_rnd(b, 224);
			break;
		default:
			seen++;
		}
		m.no_frame = m.ud.sgid > 3;
		bench_post(b, 3, &m);
		if (i % 10 == 0) {
			m = simple(0x5000, 100);
			bench_post(b, 4, &m);
			bench_doorbell(b, 4, bench_qp(b, 4)->pi);
			seen++;
		}
		if (bench_rnd(b, 4) == 0)
			bench_doorbell(b, 3, q->pi);
		bench_steps(b, bench_rnd(b, 30));
	}
	bench_doorbell(b, 3, q->pi);
	bench_drain(b, 20000);
	assert_int_equal(bench_stats(b)->frames, seen);
	assert_int_equal(q->acked, 120);
	assert_false(q->err);
	/* an entry that is taken out of the table meanwhile */
	bench_gid(b, 2)->valid = false;
	for (int i = 0; i < 4; i++) {
		struct msg m = simple(0x3000, 200);

		m.ud = dest(b);
		m.ud.sgid = i;
		m.no_frame = i == 2;
		bench_post(b, 3, &m);
	}
	bench_doorbell(b, 3, q->pi);
	bench_drain(b, 3000);
	assert_int_equal(bench_stats(b)->frames, seen + 3);
	bench_free(b);
}

/* UC needs no acknowledgement to go on: neither at the 128th message more than completion allows,
 * nor at the end of the PSN window, in the middle of a message. */
static void test_uc_window(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .qp_type = URDMA_QPT_UC, .log_entries = 4, .mtu = 1 };
	struct msg m = simple(0x7123, 120000);
	struct qp *q = bench_qp(b, 6);

	(void)state;
	bench_open(b, 6, &cfg, 0x000123);
	bench_weather(b)->acks_off = true;
	bench_acked(b, 6, 0, (0x000123 - 4194304 + 256 + 80) & 0xffffff);
	bench_post(b, 6, &m);
	bench_post(b, 6, &m);
	bench_doorbell(b, 6, 2);
	bench_steps(b, 6000);
	assert_int_equal(q->s_msg, 2);
	assert_int_equal(q->f_psn, q->post_psn);
	bench_weather(b)->acks_off = false;
	bench_drain(b, 1000);
	bench_free(b);
}

/* ERR, SQD and fence in the midst of UC and UD. */
static void test_unrel_end(void **state)
{
	(void)state;
	for (int round = 0; round < 40; round++) {
		struct bench *b = bench_new(seed + round);
		struct tx_cfg cfg = { .qp_type = unrel_types[round & 1],
				      .mtu = 2,
				      .log_stride = 7,
				      .log_entries = 6,
				      .priv = true };
		struct qp *q = bench_qp(b, 9);
		bool sqd = round & 2;
		uint16_t done;

		bench_open(b, 9, &cfg, 10);
		for (int i = 0; i < 60; i++) {
			struct msg m = any(b, &q->cfg, bench_rnd(b, 4) ? 100 : 50000);

			bench_post(b, 9, &m);
		}
		bench_doorbell(b, 9, 60);
		bench_steps(b, bench_rnd(b, 2500));
		if (round & 4) {
			bench_fence(b, 8000);
			bench_steps(b, bench_rnd(b, 500));
		}
		if (sqd) {
			q->cfg.state = URDMA_QPS_SQD;
			bench_steps(b, 3);
			bench_qpc(b, 9, QPC_SQD, 1);
			bench_steps(b, 20000);
			done = q->s_msg;
			assert_int_equal(q->acked, done);
			assert_int_equal(bench_stats(b)->errs, 1);
			assert_int_equal(bench_stats(b)->err_event, URDMA_EV_SQ_DRAINED);
			bench_steps(b, 1000);
			assert_int_equal(q->s_msg, done);
			q->cfg.state = URDMA_QPS_RTS;
			bench_steps(b, 3);
			bench_qpc(b, 9, QPC_SQ_RUN, 0);
			bench_steps(b, bench_rnd(b, 1500));
		}
		if (round & 8)
			bench_set_err(b, 9);
		bench_drain(b, 60000);
		assert_int_equal(q->s_msg, 60);
		bench_free(b);
	}
}

/* RC and XRC that lose and are not ready, beside UC and UD, which nobody answers. */
static void test_unrel_loss(void **state)
{
	uint64_t retries = 0, frames = 0, others = 0;

	(void)state;
	for (int round = 0; round < 6; round++) {
		struct bench *b = bench_new(seed + 1000 * round);
		struct weather *w = bench_weather(b);

		w->peer = true;
		w->loss = bench_rnd(b, 8);
		w->rsp_loss = bench_rnd(b, 20);
		w->rnr = bench_rnd(b, 20);
		w->late_read = 1 + bench_rnd(b, 400);
		w->ack_delay = 50 + bench_rnd(b, 600);
		w->told = 1 + bench_rnd(b, 60);
		w->mro_latency = 1 + bench_rnd(b, 60);
		w->sync_latency = 1 + bench_rnd(b, 300);
		if (round & 1) {
			w->dma_latency = 25 + bench_rnd(b, 400);
			w->dma_jitter = 50;
			w->stall = bench_rnd(b, 50);
			w->mac_stall = bench_rnd(b, 50);
		}
		for (int qpn = 0; qpn < 18; qpn++) {
			struct tx_cfg cfg = { .qp_type = senders[qpn % 4],
					      .mtu = 1 + bench_rnd(b, 5),
					      .sgid = bench_rnd(b, 4),
					      .log_stride = 7 + qpn / 4 % 3,
					      .log_entries = 2 + bench_rnd(b, 6),
					      .max_rd = 1 + bench_rnd(b, 16),
					      .priv = true,
					      .sig_all = bench_rnd(b, 2) };

			bench_open(b, qpn, &cfg, 0xffffff - bench_rnd(b, 100));
		}
		for (int turn = 0; turn < 15; turn++) {
			for (int qpn = 0; qpn < 18; qpn++) {
				struct qp *q = bench_qp(b, qpn);
				uint32_t room =
					(1u << q->cfg.log_entries) - (uint16_t)(q->pi - q->acked);

				for (uint32_t n = bench_rnd(b, room + 1); n; n--) {
					struct msg m =
						any(b, &q->cfg, bench_rnd(b, 9) ? 5000 : 60000);

					bench_post(b, qpn, &m);
				}
				bench_doorbell(b, qpn, q->pi);
			}
			bench_steps(b, bench_rnd(b, 4000));
		}
		bench_drain(b, 3000000);
		for (int qpn = 0; qpn < 18; qpn++) {
			struct qp *q = bench_qp(b, qpn);

			assert_int_equal(q->acked_psn, q->post_psn);
			assert_int_equal(q->hpsn, q->post_psn);
			if (qpn % 4 == 1 || qpn % 4 == 2)
				others += q->frames;
		}
		retries += bench_stats(b)->retries;
		frames += bench_stats(b)->frames;
		bench_free(b);
	}
	printf("%lu frames, %lu of UC and UD, %lu retries\n", frames, others, retries);
	assert_true(retries > 50 && others > 5000);
}

/* ---- XRC
 * ------------------------------------------------------------------------------------- */
/*
 * Each opcode x sizes around every border x MTU x kind of address, by one SGE, by none, and inline.
 * Each message has an SRQ of its own, so a packet with that of a neighbour is found.
 */
static void test_xrc_sizes(void **state)
{
	struct bench *b = bench_new(seed);
	int qpn = 0;

	(void)state;
	for (int mtu = 1; mtu <= 5; mtu++)
		for (int sgid = 0; sgid < 4; sgid++, qpn++) {
			struct tx_cfg cfg = { .qp_type = URDMA_QPT_XRC_INI,
					      .mtu = mtu,
					      .sgid = sgid,
					      .log_stride = 9,
					      .log_entries = 7 };
			uint32_t m = 128u << mtu;
			uint32_t sizes[] = { 0,	 1,	2,	   3,	  4,	     31,
					     32, 33,	63,	   64,	  127,	     m - 1,
					     m,	 m + 1, 2 * m - 1, 2 * m, 2 * m + 1, 0 };
			int n = sizeof(sizes) / sizeof(sizes[0]);

			bench_open(b, qpn, &cfg, bench_rnd(b, 1 << 24));
			for (int i = 0; i < 7 * n; i++) {
				uint32_t len = sizes[i % n];
				struct msg msg = simple(bench_rnd(b, MEM_SIZE - 65536), len);

				if (i & 1 && len <= bench_room(&cfg))
					msg = inlined(b, len);
				else if (!len)
					msg.num_sge = i & 2 ? 0 : 1;
				msg.op = i / n;
				msg.raddr = rnd64(b);
				msg.rkey = bench_rnd(b, UINT32_MAX);
				msg.imm = bench_rnd(b, UINT32_MAX);
				msg.se = bench_rnd(b, 2);
				if (i / n == 5)
					msg = reading(b, len);
				else if (i / n == 6)
					msg = single(b);
				bench_post(b, qpn, &msg);
			}
			bench_doorbell(b, qpn, bench_qp(b, qpn)->pi);
		}
	bench_drain(b, 400000);
	bench_free(b);
}

/* Empty messages leave in the cycle of their head; between them others, of RC as well. */
static void test_xrc_empty(void **state)
{
	(void)state;
	for (int round = 0; round < 4; round++) {
		struct bench *b = bench_new(seed + round);

		if (round & 1) {
			bench_weather(b)->mac_stall = 60;
			bench_weather(b)->stall = 40;
		}
		for (int qpn = 0; qpn < 6; qpn++) {
			struct tx_cfg cfg = { .qp_type = qpn & 1 ? URDMA_QPT_RC : URDMA_QPT_XRC_INI,
					      .mtu = 1,
					      .sgid = qpn % 4,
					      .log_entries = 8 };

			bench_open(b, qpn, &cfg, bench_rnd(b, 1 << 24));
			for (int i = 0; i < 200; i++) {
				struct msg m = i % 5 == 4 ? simple(0x3000, bench_rnd(b, 900))
					       : i & 1	  ? inlined(b, 0)
							  : simple(0, 0);

				if (!m.len && !m.inl)
					m.num_sge = bench_rnd(b, 2);
				bench_post(b, qpn, &m);
			}
			bench_doorbell(b, qpn, 200);
		}
		bench_drain(b, 60000);
		assert_true(bench_stats(b)->frames >= 1200);
		bench_free(b);
	}
}

/* A READ of a target that is refused: NAK, event; the QP of the SRQ's PD does not matter. */
static void test_xrc_refused(void **state)
{
	struct bench *b = bench_new(seed);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct tx_cfg cfg = { .qp_type = URDMA_QPT_XRC_TGT, .mtu = 2, .sgid = i };

		bench_open(b, i, &cfg, 0);
		bench_read(b, i, false, 5, 1, KEY_XRC(i), 0x5000, 2000, 0);
		bench_read(b, i, true, 9, 2, 0, rnd64(b), 8, 0);
		bench_drain(b, 4000);
		bench_read(b, i, false, 10, 3, KEY_BAD, 0, 3000, 0x62);
		bench_drain(b, 4000);
		assert_int_equal(bench_stats(b)->naks_seen, i + 1);
		assert_int_equal(bench_stats(b)->errs, i + 1);
		assert_int_equal(bench_stats(b)->err_event, URDMA_EV_QP_ACCESS_ERR);
		assert_int_equal(bench_stats(b)->err_qpn, i);
	}
	assert_int_equal(bench_stats(b)->read_rsps, 4 * 5);
	bench_free(b);
}

/* ---- rates: what the pipeline has to hold
 * ------------------------------------------------------------ */
static double small_rate(uint8_t type, int batch, unsigned int latency, uint32_t len, bool inl)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .qp_type = type, .log_entries = 9 };
	struct stats *st;
	double r;
	int total = 0;

	bench_weather(b)->dma_latency = latency;
	bench_weather(b)->made_at_once = !len;
	for (int q = 0; q < 8; q++)
		bench_open(b, q, &cfg, 0);
	while (total < 3200) {
		for (int q = 0; q < 8; q++) {
			struct qp *p = bench_qp(b, q);

			for (int k = 0; k < batch && (uint16_t)(p->pi - p->acked) < 256;
			     k++, total++) {
				struct msg m =
					inl ? inlined(b, len) : simple(bench_rnd(b, 1 << 20), len);

				m.op = 0;
				bench_post(b, q, &m);
			}
			bench_doorbell(b, q, p->pi);
		}
		bench_steps(b, 2 * 8 * batch);
	}
	bench_drain(b, 50000);
	st = bench_stats(b);
	r = (double)(st->last_cycle - st->first_cycle) / st->frames;
	bench_free(b);
	return r;
}

static double op_rate(uint8_t type, uint8_t op)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .qp_type = type, .log_entries = 8, .max_rd = 255 };
	struct stats *st;
	double r;

	for (int q = 0; q < 16; q++) {
		bench_open(b, q, &cfg, 0);
		for (int i = 0; i < 100; i++) {
			struct msg m = simple(bench_rnd(b, 1 << 20), 64);

			m.op = op;
			bench_post(b, q, &m);
		}
		bench_doorbell(b, q, 100);
	}
	bench_drain(b, 50000);
	st = bench_stats(b);
	r = (double)(st->last_cycle - st->first_cycle) / st->frames;
	bench_free(b);
	return r;
}

static double big_rate(uint8_t type, uint32_t len, uint32_t align, unsigned int latency, int mtu)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .qp_type = type, .mtu = mtu };
	struct stats *st;
	double r;

	bench_weather(b)->dma_latency = latency;
	bench_open(b, 1, &cfg, 0);
	for (int i = 0; i < (1 << 20) / (int)len && i < 64; i++) {
		struct msg m = simple(i * 65536 + align, len);

		bench_post(b, 1, &m);
	}
	bench_doorbell(b, 1, bench_qp(b, 1)->pi);
	bench_drain(b, 200000);
	st = bench_stats(b);
	r = (double)st->beats / (st->last_cycle - st->first_cycle + 1);
	bench_free(b);
	return r;
}

/* Cycles a message of n QPs that send without end. */
static double unrel_rate(uint8_t type, int n, uint8_t op, uint32_t len, bool inl)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .qp_type = type };
	struct stats *st;
	double r;

	cfg.log_stride = type != URDMA_QPT_UD ? 6 : inl && len > 32 ? 8 : 7;
	cfg.log_entries = 8;
	for (int q = 0; q < n; q++) {
		bench_open(b, q, &cfg, 0);
		for (int i = 0; i < 256; i++) {
			struct msg m = inl ? inlined(b, len) : simple(bench_rnd(b, 1 << 20), len);

			m.op = op;
			m.ud = dest(b);
			m.ud.sgid = 0;
			bench_post(b, q, &m);
		}
		bench_doorbell(b, q, 256);
	}
	/* the ring is filled as it becomes empty */
	for (int round = 0; round < 2000 / n; round++) {
		bench_steps(b, 4);
		for (int q = 0; q < n; q++) {
			struct qp *p = bench_qp(b, q);
			struct msg m = inl ? inlined(b, len) : simple(bench_rnd(b, 1 << 20), len);

			if ((uint16_t)(p->pi - p->acked) == 256)
				continue;
			m.op = op;
			m.ud = dest(b);
			m.ud.sgid = 0;
			bench_post(b, q, &m);
			bench_doorbell(b, q, p->pi);
		}
	}
	bench_drain(b, 50000);
	st = bench_stats(b);
	r = (double)(st->last_cycle - st->first_cycle) / st->frames;
	bench_free(b);
	return r;
}

static void test_unrel_rates(void **state)
{
	static const struct {
		const char *what;
		uint8_t type;
		uint8_t op;
		uint8_t len;
		bool inl;
		double one, many; /* limits */
	} c[] = {
		{ "UD SEND of 64 bytes", URDMA_QPT_UD, URDMA_WR_SEND, 64, false, 4.0, 3.3 },
		{ "UD SEND of 64 bytes inline", URDMA_QPT_UD, URDMA_WR_SEND, 64, true, 4.2, 4.2 },
		{ "UD SEND of 32 bytes inline", URDMA_QPT_UD, URDMA_WR_SEND, 32, true, 4.0, 3.3 },
		{ "UC SEND of 64 bytes", URDMA_QPT_UC, URDMA_WR_SEND, 64, false, 4.0, 2.5 },
		{ "UC WRITE of 64 bytes", URDMA_QPT_UC, URDMA_WR_WRITE, 64, false, 4.0, 3.1 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		double one = unrel_rate(c[i].type, 1, c[i].op, c[i].len, c[i].inl);
		double many = unrel_rate(c[i].type, 16, c[i].op, c[i].len, c[i].inl);

		printf("%s: %.2f cycles a packet of 1 QP, %.2f of 16\n", c[i].what, one, many);
		assert_true(one <= c[i].one && many <= c[i].many);
	}
}

static void test_rates(void **state)
{
	double r;

	(void)state;
	r = small_rate(URDMA_QPT_RC, 16, 125, 64, false);
	printf("64 bytes, 8 QPs, 16 WQEs a doorbell: %.2f cycles a packet\n", r);
	assert_true(r <= 4.0);
	r = small_rate(URDMA_QPT_RC, 1, 125, 64, false);
	printf("64 bytes, 8 QPs, 1 WQE a doorbell: %.2f cycles a packet\n", r);
	assert_true(r <= 4.0);
	r = small_rate(URDMA_QPT_RC, 16, 125, 32, true);
	printf("32 bytes inline, 8 QPs: %.2f cycles a packet\n", r);
	assert_true(r <= 4.0);
	for (int op = URDMA_WR_WRITE; op <= URDMA_WR_READ; op += 2) {
		r = op_rate(URDMA_QPT_RC, op);
		printf("64-byte %s, 16 QPs: %.2f cycles a packet\n",
		       op == URDMA_WR_READ ? "READ requests" : "WRITEs", r);
		assert_true(r <= 3.3);
	}
	r = big_rate(URDMA_QPT_RC, 65536, 0, 125, 5);
	printf("64 KB, 1 QP, MTU 4096, 500 ns: %.3f beats a cycle\n", r);
	assert_true(r >= 0.9);
	r = big_rate(URDMA_QPT_RC, 65536, 13, 125, 5);
	printf("64 KB unaligned, 1 QP, MTU 4096, 500 ns: %.3f beats a cycle\n", r);
	assert_true(r >= 0.9);
	r = big_rate(URDMA_QPT_RC, 65536, 0, 500, 5);
	printf("64 KB, 1 QP, MTU 4096, 2 us: %.3f beats a cycle\n", r);
	assert_true(r >= 0.85);
	r = big_rate(URDMA_QPT_RC, 65536, 0, 125, 3);
	printf("64 KB, 1 QP, MTU 1024: %.3f beats a cycle\n", r);
	assert_true(r >= 0.9);
	r = big_rate(URDMA_QPT_RC, 16384, 0, 125, 5);
	printf("16 KB, 1 QP, MTU 4096: %.3f beats a cycle\n", r);
	assert_true(r >= 0.85);
}

/* XRC has the rates of RC. */
static void test_xrc_rates(void **state)
{
	static const uint8_t ops[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ };
	static const uint8_t types[] = { URDMA_QPT_RC, URDMA_QPT_XRC_INI };
	double r[2];

	(void)state;
	for (unsigned int i = 0; i < sizeof(ops); i++) {
		for (int t = 0; t < 2; t++)
			r[t] = op_rate(types[t], ops[i]);
		printf("XRC, 64 bytes, opcode %d, 16 QPs: %.2f cycles a packet, RC %.2f\n", ops[i],
		       r[1], r[0]);
		assert_true(r[1] <= r[0] + 0.05);
	}
	for (int batch = 1; batch <= 16; batch += 15) {
		for (int t = 0; t < 2; t++)
			r[t] = small_rate(types[t], batch, 125, 64, false);
		printf("XRC, 64 bytes, 8 QPs, %d WQEs a doorbell: %.2f cycles a packet, RC %.2f\n",
		       batch, r[1], r[0]);
		assert_true(r[1] <= r[0] + 0.05);
	}
	for (int t = 0; t < 2; t++)
		r[t] = small_rate(types[t], 16, 125, 0, true);
	printf("XRC, empty, 8 QPs: %.2f cycles a packet, RC %.2f\n", r[1], r[0]);
	assert_true(r[1] <= r[0] + 0.05);
	for (int t = 0; t < 2; t++)
		r[t] = big_rate(types[t], 65536, 0, 125, 3);
	printf("XRC, 64 KB, 1 QP, MTU 1024: %.3f beats a cycle, RC %.3f\n", r[1], r[0]);
	assert_true(r[1] >= r[0] - 0.01);
}

/* Doorbell to first beat, without the PCIe round trips. */
static void latency_of(uint8_t type, const char *what)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .qp_type = type };
	struct msg m = simple(0x40, 32), *p;
	uint64_t lat, inl;

	bench_weather(b)->dma_latency = 1;
	bench_open(b, 0, &cfg, 0);
	p = bench_post(b, 0, &m);
	bench_doorbell(b, 0, 1);
	bench_drain(b, 2000);
	lat = p->first_beat - p->posted;
	m = inlined(b, 32);
	p = bench_post(b, 0, &m);
	bench_doorbell(b, 0, 2);
	bench_drain(b, 2000);
	inl = p->first_beat - p->posted;
	printf("%s, doorbell to first beat: %lu cycles with one DMA payload, %lu inline (DMA "
	       "latency 1, mr 6)\n",
	       what, lat, inl);
	assert_true(inl <= 40);
	assert_true(lat <= 49);
	bench_free(b);
}

static void test_latency(void **state)
{
	(void)state;
	latency_of(URDMA_QPT_RC, "RC");
	latency_of(URDMA_QPT_XRC_INI, "XRC");
}

/* A datagram's data are two cycles further away than RC's: its WQE has two beats, and two blocks.
 */
static void test_ud_latency(void **state)
{
	struct bench *b = bench_new(seed);
	struct tx_cfg cfg = { .qp_type = URDMA_QPT_UD, .log_stride = 7 };
	uint64_t lat[2];

	(void)state;
	bench_weather(b)->dma_latency = 1;
	bench_open(b, 0, &cfg, 0);
	for (int i = 0; i < 2; i++) {
		struct msg m = i ? inlined(b, 32) : simple(0x40, 32), *p;

		m.op = URDMA_WR_SEND;
		m.ud = dest(b);
		p = bench_post(b, 0, &m);
		bench_doorbell(b, 0, i + 1);
		bench_drain(b, 2000);
		lat[i] = p->first_beat - p->posted;
	}
	printf("UD, doorbell to first beat: %lu cycles with one DMA payload, %lu inline\n", lat[0],
	       lat[1]);
	assert_true(lat[0] <= 51 && lat[1] <= 42);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_psn_window),
		cmocka_unit_test(test_bad_doorbell),
		cmocka_unit_test(test_old_doorbell),
		cmocka_unit_test(test_err_midway),
		cmocka_unit_test(test_acks),
		cmocka_unit_test(test_fairness),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_idle_lives),
		cmocka_unit_test(test_read_requests),
		cmocka_unit_test(test_request_errors),
		cmocka_unit_test(test_retry_points),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_credit),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_local_in_err),
		cmocka_unit_test(test_sqd),
		cmocka_unit_test(test_sqd_resent),
		cmocka_unit_test(test_flush_after_retry),
		cmocka_unit_test(test_told_once),
		cmocka_unit_test(test_flush_after_failed_retry),
		cmocka_unit_test(test_retry_before_bad),
		cmocka_unit_test(test_err_amid_reads),
		cmocka_unit_test(test_far_doorbell),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_invalidated),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_unrel_sizes),
		cmocka_unit_test(test_qkey),
		cmocka_unit_test(test_unrel_shapes),
		cmocka_unit_test(test_unrel_opcodes),
		cmocka_unit_test(test_unrel_local),
		cmocka_unit_test(test_ud_errors),
		cmocka_unit_test(test_uc_errors),
		cmocka_unit_test(test_ud_source),
		cmocka_unit_test(test_uc_window),
		cmocka_unit_test(test_unrel_end),
		cmocka_unit_test(test_unrel_loss),
		cmocka_unit_test(test_unrel_rates),
		cmocka_unit_test(test_ud_latency),
		cmocka_unit_test(test_xrc_sizes),
		cmocka_unit_test(test_xrc_empty),
		cmocka_unit_test(test_xrc_refused),
		cmocka_unit_test(test_xrc_rates),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	seed = test_seed(seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
