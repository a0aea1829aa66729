// SPDX-License-Identifier: Apache-2.0
/*
 * Random traffic on many QPs, both ways: sizes, scatter-gather lists, inline data, immediate data,
 * solicited, signaled or not, several WQEs a doorbell, rings that wrap, PCIe settings of all kinds.
 * Every byte and every CQE is compared with what was posted. A run is a function of its seed, which
 * is printed: test_stress SEED [MESSAGES [storm]] makes only that run. --full makes many runs. SEED
 * in the environment gives all of them other seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"
#include "seed.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define MAX_WINDOW 32u
#define MAX_SGES   30u
/*
 * A receiver that cannot keep up with the wire loses packets (stalls, small TLPs, long lists of
 * short pieces). Nothing may be sent again here. So the amount of data under way to a NIC stays
 * below what its buffer holds: 64-byte lines, and messages.
 */
#define MAX_LINES    1700u
#define MAX_MESSAGES 200u

/* A message: what was posted, and the expected result. */
struct message {
	uint32_t len, imm, seed;
	bool with_imm, solicited, signaled, inlined;
	unsigned int n_rx;
	struct urdma_eh_sge rx[MAX_SGES];
};

/* One direction of a pair. Indexes count messages. */
struct flow {
	unsigned int side, pair; /* of the sender */
	uint32_t posted, sent, received, total;
	struct message msg[MAX_WINDOW];
	uint8_t *tx, *rx; /* a slot for each message of the window */
};

struct stress {
	struct rig rig;
	struct rig_config config;
	uint64_t random;
	unsigned int window;
	uint32_t max_len, slot;
	unsigned int tx_sges, rx_sges, max_inline;
	struct flow flow[2][RIG_MAX_QPS];
	uint32_t lines[2], under_way[2]; /* from a side */
	uint64_t hash, bytes, messages;
	uint64_t deadline; /* cycle by which the next CQE has to come */
};

static uint32_t draw(struct stress *s, uint32_t n)
{
	return rig_draw(&s->random, n);
}

/*
 * Cuts len bytes into at most max pieces from base on, with gaps; some are empty. The slot has room
 * for the bytes, the gaps and the odd start.
 */
static unsigned int cut(struct stress *s, const struct urdma_eh_mr *mr, uint8_t *base, uint32_t len,
			unsigned int max, struct urdma_eh_sge *sge)
{
	uint64_t at = (uintptr_t)base + draw(s, 2) * draw(s, 128);
	unsigned int n = 0, pieces = 1 + (draw(s, 2) ? draw(s, max) : 0);

	while (n + 1 < pieces) {
		uint32_t part = draw(s, 6) ? draw(s, len + 1) : 0;

		if (draw(s, 2) && part > 100)
			part = draw(s, 100);
		/* the key of an empty piece is not checked */
		sge[n++] = (struct urdma_eh_sge){ at, part, part ? mr->key : 0xdeadbeef };
		at += part + draw(s, 40);
		len -= part;
	}
	if (!len && draw(s, 2))
		return n;
	sge[n++] = (struct urdma_eh_sge){ at, len, mr->key };
	return n;
}

static void fill(const struct urdma_eh_sge *sge, unsigned int n, const uint8_t *data)
{
	for (unsigned int i = 0; i < n; i++) {
		memcpy((void *)(uintptr_t)sge[i].addr, data, sge[i].length);
		data += sge[i].length;
	}
}

static uint32_t compare(const struct message *m, const uint8_t *data)
{
	uint32_t at = 0;

	for (unsigned int i = 0; i < m->n_rx && at < m->len; i++) {
		const uint8_t *p = (const uint8_t *)(uintptr_t)m->rx[i].addr;

		for (uint32_t k = 0; k < m->rx[i].length && at < m->len; k++, at++)
			if (p[k] != data[at])
				return at;
	}
	return at;
}

static uint8_t *scratch(struct stress *s)
{
	static uint8_t *p;
	static size_t size;

	if (size < s->max_len + 8u) {
		size = s->max_len + 8u;
		p = realloc(p, size);
	}
	return p;
}

static uint32_t lines_of(const struct stress *s, uint32_t len)
{
	uint32_t mtu = 128u << s->config.mtu, packets = len ? (len + mtu - 1) / mtu : 1;

	/* headers and ICRC, and the last line of each packet */
	return packets * 3 + len / 64;
}

/* Posts one message, its receive first. The caller rings. */
static void put(struct stress *s, struct flow *f)
{
	struct rig_side *tx = &s->rig.side[f->side], *rx = &s->rig.side[!f->side];
	struct message *m = &f->msg[f->posted % s->window];
	uint8_t *to = f->rx + (size_t)(f->posted % s->window) * s->slot;
	uint8_t *from = f->tx + (size_t)(f->posted % s->window) * s->slot;
	uint8_t *data = scratch(s);
	struct urdma_eh_sge sge[MAX_SGES];
	struct urdma_eh_send wr = { 0 };
	bool last = f->posted + 1 == f->total;

	m->len = rig_draw_len(&s->random, 128u << s->config.mtu, s->max_len);
	s->lines[f->side] += lines_of(s, m->len);
	s->under_way[f->side]++;
	m->seed = (uint32_t)rnd_next(&s->random);
	m->imm = (uint32_t)rnd_next(&s->random);
	m->with_imm = !draw(s, 3);
	m->solicited = !draw(s, 3);
	/* the ring has to move on */
	m->signaled = s->config.sig_all || last || !draw(s, 3) || f->posted % (s->window / 2) == 0;
	m->inlined = m->len && m->len <= s->max_inline && draw(s, 2);
	rig_fill(data, m->len, m->seed);

	memset(to, 0xee, s->slot);
	m->n_rx = cut(s, &rx->mr, to, m->len + (draw(s, 2) ? draw(s, 50) : 0), s->rx_sges, m->rx);
	assert_int_equal(urdma_eh_put_recv(&rx->qp[f->pair], m->rx, m->n_rx), 0);

	wr.opcode = m->with_imm ? URDMA_WR_SEND_IMM : URDMA_WR_SEND;
	wr.imm = m->imm;
	wr.signaled = m->signaled && !s->config.sig_all;
	wr.solicited = m->solicited;
	if (m->inlined) {
		wr.inline_data = data;
		wr.inline_len = m->len;
	} else {
		wr.n_sge = cut(s, &tx->mr, from, m->len, s->tx_sges, sge);
		wr.sge = sge;
		fill(sge, wr.n_sge, data);
	}
	assert_int_equal(urdma_eh_put_send(&tx->qp[f->pair], &wr), 0);
	f->posted++;
}

static void post(struct stress *s, struct flow *f)
{
	uint32_t done = f->sent < f->received ? f->sent : f->received;
	uint32_t room = s->window - (f->posted - done), left = f->total - f->posted;
	uint32_t n = 1 + draw(s, 4);

	if (n > room)
		n = room;
	if (n > left)
		n = left;
	if (!n)
		return;
	if (s->lines[f->side] + n * lines_of(s, s->max_len) > MAX_LINES ||
	    s->under_way[f->side] + n > MAX_MESSAGES)
		return;
	for (uint32_t i = 0; i < n; i++)
		put(s, f);
	urdma_eh_ring_rq(&s->rig.side[!f->side].qp[f->pair]);
	urdma_eh_ring_sq(&s->rig.side[f->side].qp[f->pair]);
}

/* A lost packet ends a QP here: prints the cause. */
static void diagnose(struct stress *s)
{
	static const struct {
		unsigned int index;
		const char *name;
	} counter[] = {
		{ URDMA_CNT_RX_DROP_FULL, "rx_drop_full" },
		{ URDMA_CNT_RX_ICRC_ERR, "rx_icrc_err" },
		{ URDMA_CNT_RX_MALFORMED, "rx_malformed" },
		{ URDMA_CNT_RX_SEQ_ERR, "rx_seq_err" },
		{ URDMA_CNT_TX_NAK_RNR, "tx_nak_rnr" },
		{ URDMA_CNT_TX_NAK_OTHER, "tx_nak_other" },
		{ URDMA_CNT_MR_ERR, "mr_err" },
		{ URDMA_CNT_CQ_OVERFLOW, "cq_overflow" },
	};

	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int i = 0; i < COUNT(counter); i++)
			print_message("  side %u: %s %lu\n", n, counter[i].name,
				      (unsigned long)urdma_eh_counter(s->rig.side[n].eh,
								      counter[i].index));
}

static void take_recv(struct stress *s, unsigned int n, const struct urdma_eh_cqe *cqe)
{
	struct flow *f = &s->flow[!n][cqe->qpn - RIG_QPN(0)];
	struct message *m = &f->msg[f->received % s->window];
	uint8_t *data = scratch(s);
	uint32_t same;

	if (cqe->status)
		diagnose(s);
	if (cqe->status)
		fail_msg("receive %u of pair %u, side %u: status %u", f->received, f->pair, n,
			 cqe->status);
	assert_true(f->received < f->posted);
	assert_int_equal(cqe->wqe, f->received & 0xffff);
	assert_int_equal(cqe->length, m->len);
	assert_int_equal(cqe->has_imm, m->with_imm);
	if (m->with_imm)
		assert_int_equal(cqe->imm, m->imm);
	assert_int_equal(cqe->solicited, m->solicited);
	rig_fill(data, m->len, m->seed);
	same = compare(m, data);
	if (same != m->len)
		fail_msg("receive %u of pair %u, side %u: byte %u of %u is wrong", f->received,
			 f->pair, n, same, m->len);
	f->received++;
	s->lines[f->side] -= lines_of(s, m->len);
	s->under_way[f->side]--;
	s->bytes += m->len;
	s->messages++;
}

static void take_send(struct stress *s, unsigned int n, const struct urdma_eh_cqe *cqe)
{
	struct flow *f = &s->flow[n][cqe->qpn - RIG_QPN(0)];

	if (cqe->status)
		diagnose(s);
	if (cqe->status)
		fail_msg("send %u of pair %u, side %u: status %u", cqe->wqe, f->pair, n,
			 cqe->status);
	/* Earlier WQEs that asked for no CQE are done as well; none that asked may be missing. */
	while ((f->sent & 0xffff) != cqe->wqe) {
		assert_true(f->sent < f->posted);
		assert_false(f->msg[f->sent % s->window].signaled);
		f->sent++;
	}
	assert_true(f->msg[f->sent % s->window].signaled);
	f->sent++;
}

static void poll(struct stress *s)
{
	struct urdma_eh_cqe cqe[16];

	for (unsigned int n = 0; n < 2; n++) {
		for (unsigned int recv = 0; recv < 2; recv++) {
			struct urdma_eh_cq *cq =
				recv ? &s->rig.side[n].recv_cq : &s->rig.side[n].send_cq;
			unsigned int got;

			while ((got = urdma_eh_poll_cq(cq, cqe, 1 + draw(s, COUNT(cqe))))) {
				for (unsigned int i = 0; i < got; i++) {
					s->hash = rig_hash_cqe(s->hash, &cqe[i]);
					assert_in_range(cqe[i].qpn, RIG_QPN(0),
							RIG_QPN(s->config.qps - 1));
					if (recv)
						take_recv(s, n, &cqe[i]);
					else
						take_send(s, n, &cqe[i]);
				}
				s->deadline = urdma_cosim_now(s->rig.cosim) + 1000000;
			}
		}
	}
}

static bool finished(const struct stress *s)
{
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int i = 0; i < s->config.qps; i++)
			if (s->flow[n][i].sent != s->flow[n][i].total ||
			    s->flow[n][i].received != s->flow[n][i].total)
				return false;
	return true;
}

/* The settings that follow from a seed. */
static void configure(struct stress *s, uint64_t seed)
{
	static const unsigned int qps[] = { 1, 2, 7, 16, 33, 64 };
	static const uint32_t latency[] = { 100, 300, 500, 900, 2000 };
	struct rig_config *c = &s->config;
	struct urdma_pcie_config *p = &c->cosim.pcie;

	memset(s, 0, sizeof(*s));
	s->random = seed * 0x9e3779b97f4a7c15ull + 1;
	for (unsigned int i = 0; i < 8; i++)
		rnd_next(&s->random);
	rig_defaults(c);
	c->qps = qps[draw(s, COUNT(qps))];
	c->mtu = 1 + draw(s, 5);
	c->ipv6 = draw(s, 2);
	c->kind = draw(s, 3);
	c->sig_all = !draw(s, 5);
	c->log_stride = 6 + draw(s, 4);
	c->log_sq = 4 + draw(s, 3);
	c->log_rq = c->log_sq + draw(s, 2);
	c->log_cqe = 12;
	p->seed = seed;
	p->latency_ns = latency[draw(s, COUNT(latency))];
	p->reorder = draw(s, 2);
	p->mps = 128u << draw(s, 3);
	p->mrrs = 128u << draw(s, 6);
	p->rcb = 64u << draw(s, 2);
	p->stall_percent = draw(s, 3) ? 0 : (uint8_t)(5 + draw(s, 40));
	s->window = 1u << c->log_sq;
	if (s->window > MAX_WINDOW)
		s->window = MAX_WINDOW;
	s->max_len = c->qps > 7 ? 6000 : 16000;
	s->slot = (s->max_len + 50 + 128 + 40 * MAX_SGES + 4095) & ~4095u;
	s->tx_sges = ((1u << c->log_stride) - URDMA_SQE_DATA_OFFSET) / URDMA_SGE_SIZE;
	s->rx_sges = ((1u << c->log_stride) - URDMA_RQE_DATA_OFFSET) / URDMA_SGE_SIZE;
	if (s->rx_sges > MAX_SGES)
		s->rx_sges = MAX_SGES;
	s->max_inline = (1u << c->log_stride) - URDMA_SQE_DATA_OFFSET;
	c->buffer = (size_t)s->slot * s->window * c->qps * 2;
	c->memory.memory = 2 * c->buffer + (32u << 20);
	c->memory.seed = seed;
	s->hash = RIG_HASH_START;
}

struct result {
	uint64_t hash, cycles;
};

/*
 * Doorbells repeated without end, on top of the traffic. They are harmless, but every read
 * completion has to wait for them, because it may not pass posted writes. A NIC in which a doorbell
 * waits for a read deadlocks.
 */
static void storm(struct stress *s)
{
	for (unsigned int i = 0; i < 300; i++) {
		unsigned int n = draw(s, 2);
		struct rig_side *side = &s->rig.side[n];
		struct urdma_eh_qp *qp = &side->qp[draw(s, s->config.qps)];

		switch (draw(s, 4)) {
		case 0:
			urdma_eh_ring_sq(qp);
			break;
		case 1:
			urdma_eh_ring_rq(qp);
			break;
		case 2:
			urdma_eh_arm_cq(draw(s, 2) ? &side->send_cq : &side->recv_cq, draw(s, 2));
			break;
		default:
			urdma_eh_eq_poll(side->eh, 1, NULL, 0, true);
		}
	}
}

static struct result stress(uint64_t seed, unsigned int messages, bool no_skip, bool stormy)
{
	struct stress *s = test_malloc(sizeof(*s));
	struct rig_config *c = &s->config;
	struct result result;

	configure(s, seed);
	c->cosim.no_skip = no_skip;
	print_message(
		"seed %lu: %u pairs, MTU %u, IPv%u, stride %u, rings %u, PCIe %u ns%s, payload %u, "
		"request %u, stalls %u %%, %lu Gb/s\n",
		(unsigned long)seed, c->qps, 128u << c->mtu, c->ipv6 ? 6 : 4, 1u << c->log_stride,
		1u << c->log_sq, c->cosim.pcie.latency_ns,
		c->cosim.pcie.reorder ? " reordered" : "", c->cosim.pcie.mps, c->cosim.pcie.mrrs,
		c->cosim.pcie.stall_percent, (unsigned long)c->cosim.rate_mbps / 1000);
	rig_start(&s->rig, c);
	for (unsigned int n = 0; n < 2; n++) {
		for (unsigned int i = 0; i < c->qps; i++) {
			struct flow *f = &s->flow[n][i];
			size_t at = (size_t)s->slot * s->window * i * 2;

			f->side = n;
			f->pair = i;
			f->total = messages / (2 * c->qps) + draw(s, 5);
			f->tx = s->rig.side[n].buffer + at;
			f->rx = s->rig.side[!n].buffer + at + (size_t)s->slot * s->window;
		}
	}
	s->deadline = urdma_cosim_now(s->rig.cosim) + 1000000;
	while (!finished(s)) {
		unsigned int tries = 1 + draw(s, 2 * c->qps);

		while (tries--)
			post(s, &s->flow[draw(s, 2)][draw(s, c->qps)]);
		if (stormy && !draw(s, 3))
			storm(s);
		rig_check(&s->rig,
			  urdma_cosim_run_until(s->rig.cosim,
						urdma_cosim_now(s->rig.cosim) + 1 +
							draw(s, draw(s, 8) ? 300 : 3000)),
			  "run");
		poll(s);
		if (urdma_cosim_now(s->rig.cosim) > s->deadline)
			fail_msg("seed %lu: nothing completes any more", (unsigned long)seed);
	}
	rig_check(&s->rig,
		  urdma_cosim_run_while_busy(s->rig.cosim, urdma_cosim_now(s->rig.cosim) + 100000),
		  "end");
	poll(s);
	result.cycles = urdma_cosim_now(s->rig.cosim);
	result.hash = s->hash;
	print_message("  %lu messages, %lu bytes, %lu cycles, digest %016lx\n",
		      (unsigned long)s->messages, (unsigned long)s->bytes,
		      (unsigned long)result.cycles, (unsigned long)result.hash);
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_embedded_stats(s->rig.host)->faults, 0);
	rig_stop(&s->rig);
	test_free(s);
	return result;
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++)
		stress(test_seed(seed), 500, false, false);
}

static void test_storm(void **state)
{
	(void)state;
	for (uint64_t seed = 301; seed <= 304; seed++)
		stress(test_seed(seed), 400, false, true);
}

/*
 * The hardest case of this: slow reads of long receive WQEs, small messages, and RQ doorbells in
 * between that come before every completion.
 */
static void test_flood(void **state)
{
	struct rig_config config;
	struct urdma_eh_cqe cqe[32];
	struct rig rig;

	(void)state;
	rig_defaults(&config);
	config.qps = 8;
	config.log_stride = 9;
	config.log_sq = 6;
	config.log_rq = 6;
	config.log_cqe = 12;
	config.cosim.pcie.latency_ns = 2000;
	rig_start(&rig, &config);
	for (unsigned int round = 0; round < 6; round++) {
		uint64_t deadline;
		unsigned int got = 0, n;

		for (unsigned int q = 0; q < 8; q++) {
			struct urdma_eh_sge dst = { (uintptr_t)rig.side[1].buffer, 64,
						    rig.side[1].mr.key };

			for (unsigned int i = 0; i < 32; i++)
				assert_int_equal(urdma_eh_put_recv(&rig.side[1].qp[q], &dst, 1), 0);
			urdma_eh_ring_rq(&rig.side[1].qp[q]);
		}
		rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 3000),
			  "run");
		for (unsigned int q = 0; q < 8; q++) {
			struct urdma_eh_sge src = { (uintptr_t)rig.side[0].buffer, 64,
						    rig.side[0].mr.key };

			for (unsigned int i = 0; i < 32; i++) {
				struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
							    .signaled = i == 31,
							    .sge = &src,
							    .n_sge = 1 };

				assert_int_equal(urdma_eh_put_send(&rig.side[0].qp[q], &wr), 0);
			}
			urdma_eh_ring_sq(&rig.side[0].qp[q]);
		}
		deadline = urdma_cosim_now(rig.cosim) + 100000;
		while (got < 256) {
			/* fewer than the NIC can take, otherwise the host's queue grows without
			 * bound */
			for (unsigned int k = 0; k < 60; k++)
				urdma_eh_ring_rq(&rig.side[1].qp[k % 8]);
			rig_check(
				&rig,
				urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 200),
				"run");
			n = urdma_eh_poll_cq(&rig.side[1].recv_cq, cqe, 32);
			for (unsigned int i = 0; i < n; i++)
				assert_int_equal(cqe[i].status, URDMA_WC_SUCCESS);
			got += n;
			if (urdma_cosim_now(rig.cosim) > deadline)
				fail_msg("doorbells hold up the traffic: %u of 256 messages", got);
		}
		while (urdma_eh_poll_cq(&rig.side[0].send_cq, cqe, 32))
			;
	}
	rig_stop(&rig);
}

static void test_repeat(void **state)
{
	struct result a, b, c;

	(void)state;
	a = stress(99, 300, false, false);
	b = stress(99, 300, false, false);
	c = stress(99, 300, true, false);
	assert_int_equal(a.cycles, b.cycles);
	assert_true(a.hash == b.hash);
	assert_int_equal(a.cycles, c.cycles);
	assert_true(a.hash == c.hash);
}

static void test_full(void **state)
{
	(void)state;
	for (uint64_t seed = 1000; seed < 1200; seed++)
		stress(test_seed(seed), 1500, false, false);
}

/*
 * One pair sends messages of 1 MB without a pause, the other one single messages of 64 bytes. The
 * latter's latency is bounded by the turns of the scheduler, not by the long messages (21000 cycles
 * each at line rate).
 */
static uint64_t small_latency(bool loaded, uint64_t *worst)
{
	const uint32_t len = 1u << 20;
	struct rig_config config;
	struct urdma_eh_cqe cqe;
	struct rig rig;
	uint64_t sum = 0, n = 0;
	unsigned int big = 0;

	*worst = 0;
	rig_defaults(&config);
	config.qps = 2;
	rig_start(&rig, &config);
	while (n < 40) {
		struct urdma_eh_sge src = { (uintptr_t)rig.side[0].buffer, len,
					    rig.side[0].mr.key };
		struct urdma_eh_sge dst = { (uintptr_t)rig.side[1].buffer, len,
					    rig.side[1].mr.key };
		struct urdma_eh_sge to = { (uintptr_t)rig.side[1].buffer + (2u << 20), 64,
					   rig.side[1].mr.key };
		struct urdma_eh_sge from = { (uintptr_t)rig.side[0].buffer + (2u << 20), 64,
					     rig.side[0].mr.key };
		struct urdma_eh_send wr = {
			.opcode = URDMA_WR_SEND, .signaled = true, .sge = &src, .n_sge = 1
		};
		uint64_t start;

		while (loaded && big < 3) {
			assert_int_equal(urdma_eh_post_recv(&rig.side[1].qp[0], &dst, 1), 0);
			assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0], &wr), 0);
			big++;
		}
		assert_int_equal(urdma_eh_post_recv(&rig.side[1].qp[1], &to, 1), 0);
		rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 400),
			  "run");
		start = urdma_cosim_now(rig.cosim);
		wr.sge = &from;
		assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[1], &wr), 0);
		for (;;) {
			rig_check(&rig, urdma_eh_next_cqe(&rig.side[1].recv_cq, &cqe, 1000000),
				  "receive");
			assert_int_equal(cqe.status, 0);
			if (cqe.qpn == RIG_QPN(1))
				break;
		}
		start = urdma_cosim_now(rig.cosim) - start;
		sum += start;
		if (start > *worst)
			*worst = start;
		n++;
		while (urdma_eh_poll_cq(&rig.side[0].send_cq, &cqe, 1)) {
			assert_int_equal(cqe.status, 0);
			big -= cqe.qpn == RIG_QPN(0);
		}
	}
	rig_abandon(&rig);
	return sum / n;
}

static void test_fair(void **state)
{
	uint64_t idle, loaded, worst_idle, worst;

	(void)state;
	idle = small_latency(false, &worst_idle);
	loaded = small_latency(true, &worst);
	print_message(
		"64 bytes alone: %lu cycles, worst %lu; beside 1 MB messages: %lu, worst %lu\n",
		(unsigned long)idle, (unsigned long)worst_idle, (unsigned long)loaded,
		(unsigned long)worst);
	assert_true(worst < 10000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random), cmocka_unit_test(test_storm),
		cmocka_unit_test(test_flood),  cmocka_unit_test(test_repeat),
		cmocka_unit_test(test_fair),
	};
	const struct CMUnitTest full[] = { cmocka_unit_test(test_full) };

	if (argc > 1 && !strcmp(argv[1], "--full"))
		return cmocka_run_group_tests(full, NULL, NULL);
	if (argc > 1) {
		stress(strtoull(argv[1], NULL, 0), argc > 2 ? (unsigned int)atoi(argv[2]) : 500,
		       false, argc > 3);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
