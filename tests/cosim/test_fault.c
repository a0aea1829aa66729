// SPDX-License-Identifier: Apache-2.0
/*
 * Faults of the wire. A failure means that a test does not get the fault it asks for, gets another
 * one, or cannot repeat it, or that the log does not say what happened to a frame.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "eth/fault.h"
#include "eth/pcapng.h"
#include "random.h"
#include "roce_frame.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define DELAY 50u /* cycles of propagation */

struct frame {
	uint32_t len;
	bool error;
	uint64_t at; /* to send: not before this cycle; received: cycle of the last beat */
	uint8_t data[1600];
};

struct frames {
	struct frame *f;
	size_t n, cap;
};

struct net {
	struct urdma_eth_port port[2];
	struct urdma_sim_in in[2];
	struct urdma_wire *wire;
	struct urdma_faults *faults;
	struct frames tx[2], rx[2]; /* rx: by receiving side */
	size_t next[2];
	uint32_t sent[2], part[2];
	uint64_t now;
	struct urdma_fault_record *record;
	size_t records, cap_records;
};

static struct frame *push(struct frames *s)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 16;
		s->f = realloc(s->f, s->cap * sizeof(*s->f));
		assert_non_null(s->f);
	}
	memset(&s->f[s->n], 0, sizeof(*s->f));
	return &s->f[s->n++];
}

static void keep_record(void *ctx, const struct urdma_fault_record *record)
{
	struct net *n = ctx;

	if (n->records == n->cap_records) {
		n->cap_records = n->cap_records ? 2 * n->cap_records : 16;
		n->record = realloc(n->record, n->cap_records * sizeof(*n->record));
		assert_non_null(n->record);
	}
	n->record[n->records++] = *record;
}

static void net_open(struct net *n, uint64_t seed)
{
	memset(n, 0, sizeof(*n));
	for (unsigned int i = 0; i < 2; i++)
		urdma_eth_port_init(&n->port[i], i ? "b" : "a", 100000);
	assert_int_equal(urdma_wire_create(&n->port[0], &n->port[1], DELAY, &n->wire), 0);
	assert_int_equal(urdma_faults_create(seed, &n->faults), 0);
	assert_int_equal(urdma_faults_attach(n->faults, n->wire, 3), 0);
	assert_int_equal(urdma_faults_attach(n->faults, n->wire, 3), -EINVAL);
	urdma_faults_watch(n->faults, keep_record, n);
}

static void net_close(struct net *n)
{
	urdma_wire_destroy(n->wire);
	urdma_faults_destroy(n->faults);
	for (unsigned int i = 0; i < 2; i++) {
		urdma_pcapng_close(n->port[i].capture);
		urdma_eth_port_cleanup(&n->port[i]);
		free(n->tx[i].f);
		free(n->rx[i].f);
	}
	free(n->record);
}

static void net_step(struct net *n)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct urdma_sim_out out = { 0 };
		struct urdma_sim_in *in = &n->in[i];

		urdma_eth_port_drive(&n->port[i], n->now, in);
		if (n->next[i] < n->tx[i].n &&
		    (n->sent[i] || n->tx[i].f[n->next[i]].at <= n->now)) {
			const struct frame *f = &n->tx[i].f[n->next[i]];
			uint32_t k = f->len - n->sent[i] < 64 ? f->len - n->sent[i] : 64;

			memcpy(out.tx.data, f->data + n->sent[i], k);
			out.tx.keep = k == 64 ? ~UINT64_C(0) : (UINT64_C(1) << k) - 1;
			out.tx.last = n->sent[i] + k == f->len;
			out.tx.valid = 1;
			if (in->tx_ready) {
				n->sent[i] += k;
				if (out.tx.last) {
					n->next[i]++;
					n->sent[i] = 0;
				}
			}
		}
		urdma_eth_port_sample(&n->port[i], n->now, in, &out);
		if (in->rx.valid) {
			struct frame *f =
				n->part[i] ? &n->rx[i].f[n->rx[i].n - 1] : push(&n->rx[i]);
			uint32_t k = (uint32_t)__builtin_popcountll(in->rx.keep);

			memcpy(f->data + f->len, in->rx.data, k);
			f->len += k;
			n->part[i] = f->len;
			if (in->rx.last) {
				f->error = in->rx.error;
				f->at = n->now;
				n->part[i] = 0;
			}
		}
		if (urdma_eth_port_error(&n->port[i]))
			fail_msg("%s", urdma_eth_port_error(&n->port[i]));
	}
	n->now++;
}

static void net_run(struct net *n)
{
	uint64_t limit = n->now + 20000000;

	while (n->next[0] < n->tx[0].n || n->next[1] < n->tx[1].n ||
	       urdma_eth_port_next(&n->port[0]) != UINT64_MAX ||
	       urdma_eth_port_next(&n->port[1]) != UINT64_MAX) {
		net_step(n);
		assert_true(n->now < limit);
	}
}

/* ---- frames -------------------------------------------------------------------------------- */

static void roce(struct frame *f, enum roce_shape shape, uint8_t opcode, uint32_t qpn, uint32_t psn,
		 uint8_t syndrome, uint32_t tail)
{
	f->len = roce_frame(f->data, sizeof(f->data), shape, opcode, qpn, psn, syndrome, tail);
	if (f->len < 60)
		f->len = 60;
}

/* n frames of a kind, one after the other, PSN from 0. */
static void send_n(struct net *n, unsigned int side, unsigned int count, uint8_t opcode,
		   uint32_t qpn)
{
	for (unsigned int i = 0; i < count; i++)
		roce(push(&n->tx[side]), (enum roce_shape)(i % ROCE_SHAPES), opcode, qpn, i, 0,
		     20 + i % 300);
}

static void add(struct net *n, const char *text)
{
	struct urdma_fault_rule rule;
	char error[160];

	if (urdma_fault_parse(text, &rule, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	assert_int_equal(urdma_faults_add(n->faults, &rule), 0);
}

static uint32_t psn_of(const struct frame *f)
{
	struct urdma_roce r;

	assert_true(urdma_roce_parse(f->data, f->len, &r));
	return r.psn;
}

static void parsing(void **state)
{
	struct urdma_roce r;
	struct frame f;

	(void)state;
	for (unsigned int s = 0; s < ROCE_SHAPES; s++) {
		roce(&f, (enum roce_shape)s, 0x11, 0x123456, 0xfedcba, 0x63, 8);
		assert_true(urdma_roce_parse(f.data, f.len, &r));
		assert_int_equal(r.qpn, 0x123456);
		assert_int_equal(r.psn, 0xfedcba);
		assert_int_equal(r.opcode, 0x11);
		assert_int_equal(r.ipv6, s == ROCE_IPV6 || s == ROCE_VLAN6);
		assert_true(r.has_aeth);
		assert_int_equal(r.syndrome, 0x63);
		assert_int_equal(r.end, r.bth + 12 + 8);
		/* every shorter frame lacks a header */
		for (uint32_t len = 0; len < r.end; len++) {
			struct urdma_roce none;
			uint8_t *exact = malloc(len + 1);

			memcpy(exact, f.data, len);
			assert_false(urdma_roce_parse(exact, len, &none));
			free(exact);
		}
		roce_put16(f.data + r.bth - 6, 4790);
		assert_false(urdma_roce_parse(f.data, f.len, &r));
	}
	roce(&f, ROCE_IPV4, 4, 1, 2, 0, 8);
	assert_true(urdma_roce_parse(f.data, f.len, &r));
	assert_false(r.has_aeth);
	roce_put16(f.data + 20, 0x2000); /* more fragments */
	assert_false(urdma_roce_parse(f.data, f.len, &r));
	roce(&f, ROCE_IPV4, 4, 1, 2, 0, 8);
	f.data[23] = 6; /* TCP */
	assert_false(urdma_roce_parse(f.data, f.len, &r));
}

/* ---- kinds --------------------------------------------------------------------------------- */

/* Ten frames of side 0, PSN 0 to 9; checks the PSNs that arrive. */
static void arrives(const char *spec, const unsigned int *want, size_t count)
{
	struct net n;

	net_open(&n, 1);
	add(&n, spec);
	send_n(&n, 0, 10, 4, 17);
	net_run(&n);
	if (n.rx[1].n != count)
		fail_msg("%s: %zu frames instead of %zu", spec, n.rx[1].n, count);
	for (size_t i = 0; i < count; i++)
		if (psn_of(&n.rx[1].f[i]) != want[i])
			fail_msg("%s: frame %zu has PSN %u instead of %u", spec, i,
				 psn_of(&n.rx[1].f[i]), want[i]);
	net_close(&n);
}

#define ARRIVES(spec, ...)                                          \
	do {                                                        \
		static const unsigned int want[] = { __VA_ARGS__ }; \
		arrives(spec, want, COUNT(want));                   \
	} while (0)

static void order(void **state)
{
	(void)state;
	ARRIVES("drop,nth=3", 0, 1, 3, 4, 5, 6, 7, 8, 9);
	ARRIVES("drop,nth=3,count=2", 0, 1, 4, 5, 6, 7, 8, 9);
	ARRIVES("drop,nth=8,count=all", 0, 1, 2, 3, 4, 5, 6);
	ARRIVES("dup,psn=4", 0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9);
	ARRIVES("dup,psn=4,copies=3", 0, 1, 2, 3, 4, 4, 4, 4, 5, 6, 7, 8, 9);
	ARRIVES("dup,psn=2,ns=100000", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2);
	ARRIVES("reorder,psn=2", 0, 1, 3, 2, 4, 5, 6, 7, 8, 9);
	ARRIVES("reorder,psn=2,frames=5", 0, 1, 3, 4, 5, 6, 7, 2, 8, 9);
	ARRIVES("reorder,psn=2-3,count=2,frames=2", 0, 1, 4, 5, 2, 3, 6, 7, 8, 9);
	/* no more frames come: it is not held forever */
	ARRIVES("reorder,psn=9,frames=5", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
	ARRIVES("reorder,psn=7,frames=5", 0, 1, 2, 3, 4, 5, 6, 8, 9, 7);
	ARRIVES("delay,psn=0,ns=10000", 1, 2, 3, 4, 5, 6, 7, 8, 9, 0);
}

static void timing(void **state)
{
	struct net n;
	uint64_t base;

	(void)state;
	net_open(&n, 1);
	add(&n, "delay,psn=1,ns=4000");
	add(&n, "reorder,psn=2,ns=8000");
	add(&n, "dup,psn=3,ns=800");
	for (unsigned int i = 0; i < 4; i++) {
		struct frame *f = push(&n.tx[0]);

		roce(f, ROCE_IPV4, 4, 17, i, 0, 20);
		f->at = i * 100000;
	}
	net_run(&n);
	assert_int_equal(n.rx[1].n, 5);
	base = n.rx[1].f[0].at;
	assert_int_equal(n.rx[1].f[1].at, base + 100000 + 1000);
	assert_int_equal(n.rx[1].f[2].at, base + 200000 + 2000);
	assert_int_equal(n.rx[1].f[3].at, base + 300000);
	assert_int_equal(n.rx[1].f[4].at, base + 300000 + 200);
	net_close(&n);
}

static void corruption(void **state)
{
	static const struct {
		const char *spec;
		int32_t byte, bit; /* of the frame; from its end below 0 */
		bool error;
	} cases[] = {
		{ "corrupt,byte=70,bit=5", 70, 5, false },
		{ "corrupt,byte=-1,bit=0", -1, 0, false },
		{ "corrupt,byte=-20,bit=7", -20, 7, false },
		{ "corrupt,byte=0,bit=1", 0, 1, false },
		{ "corrupt", 9999, 9, false },
		{ "fcs,byte=70,bit=5", 70, 5, true },
		{ "fcs", 9999, 9, true },
	};

	(void)state;
	for (unsigned int i = 0; i < COUNT(cases); i++) {
		unsigned int bits = 0;
		const struct urdma_fault_record *r;
		const struct frame *was, *is;
		struct net n;

		net_open(&n, i);
		add(&n, cases[i].spec);
		send_n(&n, 0, 2, 4, 17);
		net_run(&n);
		assert_int_equal(n.rx[1].n, 2);
		was = &n.tx[0].f[0];
		is = &n.rx[1].f[0];
		assert_int_equal(was->len, is->len);
		for (uint32_t k = 0; k < was->len; k++)
			bits += (unsigned int)__builtin_popcount(was->data[k] ^ is->data[k]);
		assert_int_equal(bits, 1);
		assert_int_equal(n.records, 1);
		r = &n.record[0];
		assert_int_equal(was->data[r->byte] ^ is->data[r->byte], 1 << r->bit);
		if (cases[i].bit < 8) {
			assert_int_equal(r->bit, cases[i].bit);
			assert_int_equal(r->byte, cases[i].byte < 0
							  ? (int32_t)was->len + cases[i].byte
							  : cases[i].byte);
		}
		assert_int_equal(is->error, cases[i].error);
		assert_false(n.rx[1].f[1].error);
		assert_memory_equal(n.tx[0].f[1].data, n.rx[1].f[1].data, n.tx[0].f[1].len);
		net_close(&n);
	}
}

/* A frame that is not RoCE has only its FCS: the MAC notices a changed bit. */
static void corruption_of_others(void **state)
{
	struct net n;

	(void)state;
	net_open(&n, 1);
	add(&n, "corrupt");
	send_n(&n, 0, 1, 4, 17);
	roce_put16(n.tx[0].f[0].data + 12, 0x0806);
	net_run(&n);
	assert_int_equal(n.rx[1].n, 1);
	assert_true(n.rx[1].f[0].error);
	assert_int_equal(n.record[0].opcode, -1);
	/* and it has no byte 1500 */
	add(&n, "corrupt,byte=1500");
	add(&n, "corrupt,byte=-1500");
	send_n(&n, 0, 1, 4, 17);
	net_run(&n);
	assert_int_equal(n.records, 1);
	assert_memory_equal(n.rx[1].f[1].data, n.tx[0].f[1].data, n.tx[0].f[1].len);
	net_close(&n);
}

static void ecn(void **state)
{
	struct net n;

	(void)state;
	net_open(&n, 1);
	add(&n, "ecn,count=all");
	send_n(&n, 0, 2 * ROCE_SHAPES, 4, 17);
	/* no IP in one; one is marked already */
	roce_put16(n.tx[0].f[0].data + 12, 0x0806);
	n.tx[0].f[1].data[15] |= 0x30;
	net_run(&n);
	assert_int_equal(n.records, 2 * ROCE_SHAPES - 2);
	assert_memory_equal(n.rx[1].f[0].data, n.tx[0].f[0].data, n.tx[0].f[0].len);
	for (unsigned int i = 1; i < 2 * ROCE_SHAPES; i++) {
		const struct frame *was = &n.tx[0].f[i], *is = &n.rx[1].f[i];
		struct urdma_roce r;

		assert_int_equal(was->len, is->len);
		assert_true(urdma_roce_parse(is->data, is->len, &r));
		if (r.ipv6) {
			assert_int_equal(is->data[r.ip + 1] & 0x30, 0x30);
		} else {
			assert_int_equal(is->data[r.ip + 1], 0x43);
			assert_int_equal(
				ref_fold(ref_sum16(0, is->data + r.ip, (is->data[r.ip] & 15u) * 4)),
				0xffff);
		}
		for (uint32_t k = 0; k < was->len; k++)
			if (k != r.ip + 1 && (r.ipv6 || (k != r.ip + 10 && k != r.ip + 11)))
				assert_int_equal(was->data[k], is->data[k]);
	}
	net_close(&n);
}

/* ---- selectors ----------------------------------------------------------------------------- */

/*
 * Frames of both sides, two QPs, opcodes 4 and 0x11 with each kind of AETH, PSN from 0xfffff8 on.
 */
static void selectors(void **state)
{
	static const struct {
		const char *spec;
		unsigned int hits;
	} cases[] = {
		{ "drop,count=all", 128 },
		{ "drop,count=all,side=0", 64 },
		{ "drop,count=all,side=1", 64 },
		{ "drop,count=all,side=both", 128 },
		{ "drop,count=all,wire=3", 128 },
		{ "drop,count=all,wire=2", 0 },
		{ "drop,count=all,qpn=17", 64 },
		{ "drop,count=all,qpn=0x12", 64 },
		{ "drop,count=all,qpn=19", 0 },
		{ "drop,count=all,op=4", 32 },
		{ "drop,count=all,op=send_only", 32 },
		{ "drop,count=all,op=acknowledge", 96 },
		{ "drop,count=all,op=acknowledge,aeth=ack", 32 },
		{ "drop,count=all,aeth=rnr", 32 },
		{ "drop,count=all,aeth=nak", 32 },
		{ "drop,count=all,psn=0xfffff8", 8 },
		{ "drop,count=all,psn=0xfffffe-1", 32 },
		{ "drop,count=all,psn=0xfffffe-1,side=1,qpn=17,aeth=nak", 2 },
		{ "drop,count=1", 2 }, /* one in each direction */
		{ "drop", 2 },
		{ "drop,nth=65", 0 },
		{ "drop,nth=64", 2 },
		{ "drop,nth=63,count=5", 4 },
		{ "drop,qpn=17,nth=2,count=3,side=0", 3 },
	};

	(void)state;
	for (unsigned int i = 0; i < COUNT(cases); i++) {
		static const uint8_t syndrome[] = { 0x1f, 0x1f, 0x2c, 0x62 };
		struct net n;

		net_open(&n, 1);
		add(&n, cases[i].spec);
		for (unsigned int side = 0; side < 2; side++)
			for (unsigned int k = 0; k < 64; k++)
				roce(push(&n.tx[side]), (enum roce_shape)(k % ROCE_SHAPES),
				     k % 4 ? 0x11 : 4, 17 + k / 4 % 2,
				     (0xfffff8 + k / 4) & 0xffffff, syndrome[k % 4], 8);
		net_run(&n);
		if (n.records != cases[i].hits || n.rx[0].n + n.rx[1].n != 128 - n.records)
			fail_msg("%s: %zu faults, %zu and %zu frames arrive", cases[i].spec,
				 n.records, n.rx[0].n, n.rx[1].n);
		for (size_t k = 0; k < n.records; k++) {
			const struct urdma_fault_record *r = &n.record[k];
			const struct frame *f = &n.tx[r->side].f[r->frame];

			assert_int_equal(psn_of(f), r->psn);
			assert_int_equal(r->wire, 3);
		}
		assert_int_equal(urdma_faults_count(n.faults, 0, URDMA_FAULT_DROP) +
					 urdma_faults_count(n.faults, 1, URDMA_FAULT_DROP),
				 n.records);
		urdma_faults_clear(n.faults);
		send_n(&n, 0, 3, 4, 17);
		net_run(&n);
		assert_int_equal(n.records, cases[i].hits);
		net_close(&n);
	}
}

/* ---- chance -------------------------------------------------------------------------------- */

static const char *const random_specs[] = { "drop,p=%s",    "dup,p=%s", "reorder,p=%s",
					    "corrupt,p=%s", "fcs,p=%s", "delay,p=%s,ns=500",
					    "ecn,p=%s" };

static void random_net(struct net *n, uint64_t seed, const char *percent)
{
	char spec[64];

	net_open(n, seed);
	for (unsigned int k = 0; k < COUNT(random_specs); k++) {
		snprintf(spec, sizeof(spec), random_specs[k], percent);
		add(n, spec);
	}
}

/*
 * Each kind at its rate, within five standard deviations, in each direction. Kinds are independent
 * of each other, except that DROP hides the others.
 */
static void rates(void **state)
{
	static const char *const percent[] = { "0.1", "1", "5", "50" };
	const unsigned int frames = 20000;

	(void)state;
	for (unsigned int i = 0; i < COUNT(percent); i++) {
		double p = atof(percent[i]) / 100;
		struct net n;

		print_message("seed %u, %s %%\n", i, percent[i]);
		random_net(&n, i, percent[i]);
		send_n(&n, 0, frames, 4, 17);
		send_n(&n, 1, frames, 4, 17);
		net_run(&n);
		for (unsigned int side = 0; side < 2; side++) {
			for (unsigned int k = 0; k < URDMA_FAULT_KINDS; k++) {
				double q = k == URDMA_FAULT_DROP ? p : p * (1 - p);
				double mean = frames * q, dev = sqrt(mean * (1 - q));
				double got = (double)urdma_faults_count(n.faults, side,
									(enum urdma_fault_kind)k);

				if (fabs(got - mean) > 5 * dev)
					fail_msg("%s: %.0f of %u frames at %s %%",
						 urdma_fault_name((enum urdma_fault_kind)k), got,
						 frames, percent[i]);
			}
			assert_int_equal(
				n.rx[!side].n,
				frames - urdma_faults_count(n.faults, side, URDMA_FAULT_DROP) +
					urdma_faults_count(n.faults, side, URDMA_FAULT_DUP));
		}
		net_close(&n);
	}
}

static bool same_record(const struct urdma_fault_record *a, const struct urdma_fault_record *b)
{
	return a->cycle == b->cycle && a->side == b->side && a->frame == b->frame &&
	       a->kind == b->kind && a->qpn == b->qpn && a->psn == b->psn && a->n == b->n &&
	       a->ns == b->ns && a->byte == b->byte && a->bit == b->bit;
}

static void repeats(void **state)
{
	struct net a, b, c, d;
	size_t same = 0, k = 0;

	(void)state;
	random_net(&a, 7, "5");
	random_net(&b, 7, "5");
	random_net(&c, 8, "5");
	random_net(&d, 7, "5");
	for (unsigned int side = 0; side < 2; side++) {
		send_n(&a, side, 2000, 4, 17);
		send_n(&b, side, 2000, 4, 17);
		send_n(&c, side, 2000, 4, 17);
	}
	send_n(&d, 0, 2000, 4, 17); /* nothing comes the other way */
	net_run(&a);
	net_run(&b);
	net_run(&c);
	net_run(&d);
	assert_int_equal(a.records, b.records);
	assert_int_equal(a.now, b.now);
	for (size_t i = 0; i < a.records; i++)
		assert_true(same_record(&a.record[i], &b.record[i]));
	for (size_t i = 0; i < a.records && i < c.records; i++)
		same += same_record(&a.record[i], &c.record[i]);
	assert_true(same < a.records / 10);
	for (size_t i = 0; i < a.records; i++)
		if (!a.record[i].side)
			assert_true(k < d.records && same_record(&a.record[i], &d.record[k++]));
	assert_int_equal(k, d.records);
	net_close(&a);
	net_close(&b);
	net_close(&c);
	net_close(&d);
}

/* ---- log and captures ---------------------------------------------------------------------- */

struct captured {
	uint64_t ns;
	bool outbound, crc_error;
	char comment[200];
	struct frame f;
};

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Enhanced packet blocks of one of our captures. */
static struct captured *read_capture(const char *path, size_t *count)
{
	struct captured *c = NULL;
	uint8_t head[8], *body, *option;
	FILE *f = fopen(path, "rb");

	assert_non_null(f);
	*count = 0;
	while (fread(head, 1, 8, f) == 8) {
		uint32_t len = le32(head + 4) - 8, flags;

		body = malloc(len);
		assert_int_equal(fread(body, 1, len, f), len);
		if (le32(head) == 6) {
			c = realloc(c, (*count + 1) * sizeof(*c));
			memset(&c[*count], 0, sizeof(*c));
			c[*count].ns = (uint64_t)le32(body + 4) << 32 | le32(body + 8);
			c[*count].f.len = le32(body + 12);
			memcpy(c[*count].f.data, body + 20, c[*count].f.len);
			option = body + 20 + (c[*count].f.len + 3) / 4 * 4;
			if (option[0] == 1) {
				assert_true(option[2] < sizeof(c->comment));
				memcpy(c[*count].comment, option + 4, option[2]);
			}
			flags = le32(body + len - 12);
			c[*count].outbound = (flags & 3) == 2;
			c[*count].crc_error = flags >> 24 & 1;
			(*count)++;
		}
		free(body);
	}
	fclose(f);
	return c;
}

static const char *const log_keys[] = { "cycle",  "wire", "side", "frame", "qpn", "psn",
					"opcode", "n",	  "ns",	  "byte",  "bit" };

static const char *const comment_of[URDMA_FAULT_KINDS] = {
	"lost",	      "doubled, ",  "overtaken by ", " inverted", " inverted, bad FCS",
	"delayed by", "congestion",
};

/* The log agrees with the callback, and finds each frame in its sender's capture. */
static void log_and_captures(void **state)
{
	char dir[] = "/tmp/urdma-fault-XXXXXX", path[2][64], log[64], line[512];
	struct captured *cap[2], *mine[2][2] = { { NULL } };
	size_t n_cap[2], n_mine[2][2] = { { 0 } }, k = 0;
	bool commented[2][500] = { { false } };
	size_t copies = 0, comments = 0;
	struct net n;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(log, sizeof(log), "%s/faults.log", dir);
	random_net(&n, 3, "5");
	assert_int_equal(urdma_faults_log(n.faults, "/nonexistent/x"), -ENOENT);
	assert_int_equal(urdma_faults_log(n.faults, log), 0);
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/urdma%u.pcapng", dir, i);
		assert_int_equal(urdma_pcapng_open(path[i], "x", 0, &n.port[i].capture), 0);
		send_n(&n, i, 500, 4, 17);
	}
	roce_put16(n.tx[0].f[5].data + 12, 0x0806);
	net_run(&n);
	assert_int_equal(urdma_faults_flush(n.faults), 0);
	for (unsigned int i = 0; i < 2; i++) {
		urdma_pcapng_flush(n.port[i].capture);
		cap[i] = read_capture(path[i], &n_cap[i]);
		for (unsigned int out = 0; out < 2; out++)
			mine[i][out] = malloc(n_cap[i] * sizeof(*cap[i]));
		for (size_t c = 0; c < n_cap[i]; c++)
			mine[i][cap[i][c].outbound][n_mine[i][cap[i][c].outbound]++] = cap[i][c];
	}
	for (unsigned int i = 0; i < 2; i++) {
		/* The sender's capture has all sent frames, unchanged; the receiver's has the
		 * frames as they arrived. */
		assert_int_equal(n_mine[i][1], n.tx[i].n);
		for (size_t c = 0; c < n.tx[i].n; c++) {
			assert_memory_equal(mine[i][1][c].f.data, n.tx[i].f[c].data,
					    n.tx[i].f[c].len);
			assert_false(mine[i][1][c].crc_error);
		}
		assert_int_equal(n_mine[i][0], n.rx[i].n);
		for (size_t c = 0; c < n.rx[i].n; c++) {
			assert_memory_equal(mine[i][0][c].f.data, n.rx[i].f[c].data,
					    n.rx[i].f[c].len);
			assert_int_equal(mine[i][0][c].crc_error, n.rx[i].f[c].error);
			assert_int_equal(mine[i][0][c].ns, n.rx[i].f[c].at * 4);
		}
	}
	f = fopen(log, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		const struct urdma_fault_record *r = &n.record[k++];
		json_t *json = json_loads(line, 0, NULL);
		const int64_t want[] = { (int64_t)r->cycle, r->wire, r->side,
					 (int64_t)r->frame, r->qpn,  r->psn,
					 r->opcode,	    r->n,    (int64_t)r->ns,
					 r->byte,	    r->bit };

		assert_non_null(json);
		assert_int_equal(json_object_size(json), COUNT(log_keys) + 1);
		for (unsigned int i = 0; i < COUNT(log_keys); i++)
			assert_int_equal(json_integer_value(json_object_get(json, log_keys[i])),
					 want[i]);
		assert_string_equal(json_string_value(json_object_get(json, "kind")),
				    urdma_fault_name(r->kind));
		json_decref(json);
		assert_int_equal(mine[r->side][1][r->frame].ns, r->cycle * 4);
		assert_non_null(strstr(mine[r->side][1][r->frame].comment, comment_of[r->kind]));
		commented[r->side][r->frame] = true;
	}
	fclose(f);
	for (unsigned int i = 0; i < 2; i++) {
		/* No other frames have comments; an arriving frame has the sender's comment, and a
		 * copy says that it is one. */
		for (size_t c = 0; c < n.tx[i].n; c++)
			assert_int_equal(mine[i][1][c].comment[0] != 0, commented[i][c]);
		for (size_t c = 0; c < n.rx[i].n; c++) {
			const char *comment = mine[i][0][c].comment;

			assert_null(strstr(comment, "lost"));
			copies += !strncmp(comment, "a copy: fault ", 14);
			comments += !strncmp(comment, "fault ", 6);
			assert_true(!*comment || strstr(comment, "fault "));
		}
	}
	assert_true(copies > 10 && comments > 50);
	assert_true(k > 100);
	assert_int_equal(k, n.records);
	net_close(&n);
	for (unsigned int i = 0; i < 2; i++) {
		free(cap[i]);
		free(mine[i][0]);
		free(mine[i][1]);
		unlink(path[i]);
	}
	unlink(log);
	rmdir(dir);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void text(void **state)
{
	static const struct {
		const char *spec, *words;
	} bad[] = {
		{ "", "is not drop" },
		{ "lose", "is not drop" },
		{ "drop,psn", "KEY=VALUE" },
		{ "drop,pns=3", "unknown key 'pns'" },
		{ "drop,psn=", "no value for 'psn'" },
		{ "drop,psn=0x1000000", "no value for 'psn'" },
		{ "drop,psn=3-", "no value for 'psn'" },
		{ "drop,psn=3-4-5", "no value for 'psn'" },
		{ "drop,qpn=-1", "no value for 'qpn'" },
		{ "drop,op=sned", "no value for 'op'" },
		{ "drop,op=256", "no value for 'op'" },
		{ "drop,aeth=maybe", "no value for 'aeth'" },
		{ "drop,side=2", "no value for 'side'" },
		{ "drop,wire=32", "no value for 'wire'" },
		{ "drop,nth=0", "no value for 'nth'" },
		{ "drop,count=0", "no value for 'count'" },
		{ "drop,p=101", "no value for 'p'" },
		{ "drop,p=0", "no value for 'p'" },
		{ "drop,ns=5", "'ns' means nothing to drop" },
		{ "drop,byte=5", "'byte' means nothing to drop" },
		{ "dup,copies=0", "no value for 'copies'" },
		{ "dup,frames=2", "'frames' means nothing to dup" },
		{ "delay,ns=1000000001", "no value for 'ns'" },
		{ "corrupt,byte=-0", "no value for 'byte'" },
		{ "corrupt,byte=20000", "no value for 'byte'" },
		{ "corrupt,bit=8", "no value for 'bit'" },
	};
	static const struct {
		const char *text;
		uint64_t p;
	} percent[] = {
		{ "0", 0 },
		{ "100", URDMA_FAULT_CERTAIN },
		{ "100%", URDMA_FAULT_CERTAIN },
		{ "50", URDMA_FAULT_CERTAIN / 2 },
		{ "12.5%", URDMA_FAULT_CERTAIN / 8 },
		{ "0.78125", URDMA_FAULT_CERTAIN / 128 },
		{ "100.0", URDMA_FAULT_CERTAIN },
	};
	static const char *const no_percent[] = { "",	  "-1", "x",   "1x",  "101", "100.1",
						  "1..2", "%",	"1%%", "1e1", " 1" };
	struct urdma_fault_rule r;
	char error[160];
	uint64_t p;

	(void)state;
	for (unsigned int i = 0; i < COUNT(bad); i++) {
		if (urdma_fault_parse(bad[i].spec, &r, error, sizeof(error)) != -EINVAL)
			fail_msg("'%s' is accepted", bad[i].spec);
		if (!strstr(error, bad[i].words))
			fail_msg("'%s' is refused with: %s", bad[i].spec, error);
	}
	for (unsigned int i = 0; i < COUNT(percent); i++) {
		assert_int_equal(urdma_fault_percent(percent[i].text, &p), 0);
		assert_true(p == percent[i].p);
	}
	for (unsigned int i = 0; i < COUNT(no_percent); i++)
		if (urdma_fault_percent(no_percent[i], &p) != -EINVAL)
			fail_msg("'%s' is accepted", no_percent[i]);
	assert_int_equal(urdma_fault_parse("reorder,side=1,wire=2,qpn=0x11,psn=7-9,op=read_request,"
					   "nth=4,count=6,p=25,frames=3,ns=99",
					   &r, error, sizeof(error)),
			 0);
	assert_int_equal(r.kind, URDMA_FAULT_REORDER);
	assert_int_equal(r.sides, 2);
	assert_int_equal(r.wire, 2);
	assert_int_equal(r.qpn, 17);
	assert_int_equal(r.psn_first, 7);
	assert_int_equal(r.psn_last, 9);
	assert_int_equal(r.opcode, 0x0c);
	assert_int_equal(r.nth, 4);
	assert_int_equal(r.count, 6);
	assert_true(r.probability == URDMA_FAULT_CERTAIN / 4);
	assert_int_equal(r.frames, 3);
	assert_int_equal(r.ns, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parsing),
		cmocka_unit_test(order),
		cmocka_unit_test(timing),
		cmocka_unit_test(corruption),
		cmocka_unit_test(corruption_of_others),
		cmocka_unit_test(ecn),
		cmocka_unit_test(selectors),
		cmocka_unit_test(rates),
		cmocka_unit_test(repeats),
		cmocka_unit_test(log_and_captures),
		cmocka_unit_test(text),
	};

	return cmocka_run_group_tests_name("cosim/fault", tests, NULL, NULL);
}
