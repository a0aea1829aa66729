// SPDX-License-Identifier: Apache-2.0
/*
 * Every opcode at every size around a boundary, from 0 to 1 MB, with each path MTU, on a wire with
 * each kind of fault at each place of a message. Within a case all opcodes and sizes are under way
 * at once, on several QPs, half of them in each direction. Every byte and every CQE is compared,
 * the wire checker watches both ports, and the counters have to match what the ports saw.
 *
 * A case is one MTU and one pattern of faults; it is a function of these and the fixed seed that it
 * prints. --full runs the whole product, except that each pattern meets messages longer than 64 KB
 * with one MTU only, because they take most of the time. This MTU depends on the opcode and the
 * pattern, so that every pair of values occurs. Without --full each pattern meets one MTU and every
 * sixth pair of opcode and size, a different sixth each time, so that every value of each axis
 * occurs.
 *
 * Further arguments choose cases: those whose names contain one of them, or equal one after a '='.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "judge.h"
#include "seed.h"
#include "work.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define PAIRS	 8u
#define MTUS	 5u
#define BIG	 65537u /* longer ones are not in every case */
#define STRIDE	 6u	/* of the short form */
#define TIMEOUT	 7u	/* 0.52 ms */
#define LIMIT	 UINT64_C(400000000)
#define FIRST_MR 10u

/* ---- the faults ------------------------------------------------------------------------------ */

enum where {
	NOWHERE,
	FIRST,
	MIDDLE,
	LAST,
	BURST,	 /* eight packets from the middle on */
	SEVENTH, /* each seventh packet of a QP */
};

struct pattern {
	const char *name;
	bool answer; /* faults hit the responder's packets; else requests */
	enum where where;
	const char *fault;    /* its kind, and keys other than side, qpn, psn */
	const char *other[5]; /* faults as written */
	bool late;	      /* receives come late */
	bool big;	      /* 1 MB also in the short form */
};

static const struct pattern patterns[] = {
	{ .name = "nothing lost", .big = true },
	{ .name = "first packets lost", .where = FIRST, .fault = "drop" },
	{ .name = "middle packets lost", .where = MIDDLE, .fault = "drop" },
	{ .name = "last packets lost", .where = LAST, .fault = "drop" },
	{ .name = "middle packets lost twice", .where = MIDDLE, .fault = "drop,count=2" },
	{ .name = "eight packets lost in a row", .where = BURST, .fault = "drop" },
	{ .name = "every 7th packet lost", .where = SEVENTH, .fault = "drop", .big = true },
	{ .name = "first packets lost, NAKs too",
	  .where = FIRST,
	  .fault = "drop",
	  .other = { "drop,aeth=nak,p=50" } },
	{ .name = "every 7th packet doubled", .where = SEVENTH, .fault = "dup" },
	{ .name = "last packets come again late", .where = LAST, .fault = "dup,ns=30000" },
	{ .name = "every 7th packet comes again late", .where = SEVENTH, .fault = "dup,ns=7000" },
	{ .name = "every 7th packet behind the next", .where = SEVENTH, .fault = "reorder" },
	{ .name = "middle packets far behind", .where = MIDDLE, .fault = "reorder,frames=9" },
	{ .name = "every 7th packet's ICRC wrong", .where = SEVENTH, .fault = "corrupt,byte=-1" },
	{ .name = "every 7th packet has a wrong bit", .where = SEVENTH, .fault = "corrupt" },
	{ .name = "last packets' FCS wrong", .where = LAST, .fault = "fcs" },
	{ .name = "every 7th packet late", .where = SEVENTH, .fault = "delay,ns=3000" },
	{ .name = "all marked", .other = { "ecn,count=all" } },
	{ .name = "first answers lost", .answer = true, .where = FIRST, .fault = "drop" },
	{ .name = "middle answers lost", .answer = true, .where = MIDDLE, .fault = "drop" },
	{ .name = "last answers lost", .answer = true, .where = LAST, .fault = "drop" },
	{ .name = "last answers lost twice",
	  .answer = true,
	  .where = LAST,
	  .fault = "drop,count=2" },
	{ .name = "every 7th answer lost",
	  .answer = true,
	  .where = SEVENTH,
	  .fault = "drop",
	  .big = true },
	{ .name = "eight answers lost in a row", .answer = true, .where = BURST, .fault = "drop" },
	{ .name = "every 7th answer doubled", .answer = true, .where = SEVENTH, .fault = "dup" },
	{ .name = "every 7th answer comes again late",
	  .answer = true,
	  .where = SEVENTH,
	  .fault = "dup,ns=7000" },
	{ .name = "every 7th answer behind the next",
	  .answer = true,
	  .where = SEVENTH,
	  .fault = "reorder" },
	{ .name = "every 7th answer's ICRC wrong",
	  .answer = true,
	  .where = SEVENTH,
	  .fault = "corrupt,byte=-2" },
	{ .name = "every 7th answer late",
	  .answer = true,
	  .where = SEVENTH,
	  .fault = "delay,ns=3000" },
	{ .name = "receives come late", .late = true },
	{ .name = "receives come late, every 7th packet and RNR NAKs lost",
	  .where = SEVENTH,
	  .fault = "drop",
	  .other = { "drop,aeth=rnr,p=30" },
	  .late = true },
	{ .name = "2 % lost", .other = { "drop,p=2" }, .big = true },
	{ .name = "1 % of everything",
	  .other = { "drop,p=1", "dup,p=1", "reorder,p=1", "corrupt,p=1", "delay,ns=5000,p=1" } },
};

static const unsigned int opcodes[] = { URDMA_WR_SEND,	      URDMA_WR_SEND_IMM,  URDMA_WR_SEND_INV,
					URDMA_WR_WRITE,	      URDMA_WR_WRITE_IMM, URDMA_WR_READ,
					URDMA_WR_ATOMIC_CS,   URDMA_WR_ATOMIC_FA, URDMA_WR_FLUSH,
					URDMA_WR_ATOMIC_WRITE };

#define SIZES 23u

static void sizes(uint32_t m, uint32_t len[SIZES])
{
	const uint32_t all[SIZES] = {
		0,	  1,	 2,    3,     4,	 63,	64,
		65,	  m - 1, m,    m + 1, 2 * m - 1, 2 * m, 2 * m + 1,
		4095,	  4096,	 4097, 65535, 65536,	 65537, (1u << 20) - 1,
		1u << 20, m / 2,
	};

	memcpy(len, all, sizeof(all));
}

/* ---- one case ------------------------------------------------------------------------------ */

struct one_case {
	char name[128];
	unsigned int pattern, mtu;
	bool full;
};

struct matrix {
	struct rig rig;
	struct judge judge;
	const struct pattern *pattern;
	struct work w[COUNT(opcodes) * SIZES];
	size_t n, at;
	uint64_t bytes;
	struct urdma_eh_mr mr[COUNT(opcodes) * SIZES]; /* what a SEND_INV invalidates, by message */
	uint32_t psn[PAIRS];			       /* of the next request */
	unsigned int packets[PAIRS];
	uint64_t rules;
};

/* State of the present case; a failed case leaves it behind. */
static struct matrix *matrix;

static void leave(void)
{
	if (!matrix)
		return;
	judge_drop(&matrix->judge);
	rig_abandon(&matrix->rig);
	test_free(matrix);
	matrix = NULL;
}

static void choose(struct matrix *x, const struct one_case *c)
{
	uint32_t len[SIZES];

	sizes(128u << c->mtu, len);
	for (unsigned int s = 0; s < SIZES; s++) {
		for (unsigned int o = 0; o < COUNT(opcodes); o++) {
			size_t k = x->n;
			unsigned int pair = (unsigned int)(k + k / PAIRS) % PAIRS;

			if (!c->full && (o * 5 + s * 7 + c->pattern) % STRIDE)
				continue;
			if (len[s] > BIG &&
			    (c->full ? (o + s + c->pattern + c->mtu) % MTUS : !x->pattern->big))
				continue;
			x->w[k] = (struct work){
				.opcode = opcodes[o],
				.from = (pair + c->pattern) % 2,
				.pair = pair,
				.at = x->at,
				.len = len[s],
				.seed = (uint32_t)(c->pattern * 4096 + k * 8 + c->mtu),
				.pieces = 1 + (unsigned int)(k * 5 % WORK_SGES) * (k % 3 != 0),
				.odd = (unsigned int)(k * 11 % 67),
				.solicited = k % 5 == 0 && work_takes_recv(opcodes[o]),
				.unsignaled = k % 4 == 1,
				.fence = k % 13 == 5,
				.late_recv = x->pattern->late
			};
			x->at += work_slot(len[s] < 8 ? 8 : len[s]);
			x->n++;
		}
	}
	/* the last message of each QP completes all before it */
	for (size_t k = x->n > PAIRS * 2 ? x->n - PAIRS * 2 : 0; k < x->n; k++)
		x->w[k].unsignaled = false;
}

/* Registers the regions that SEND_INVs will invalidate, or registers them again afterwards. */
static void keys(struct matrix *x, uint8_t variant)
{
	unsigned int n[2] = { 0, 0 };
	struct urdma_eh_cqe cqe;

	for (size_t k = 0; k < x->n; k++) {
		struct work *w = &x->w[k];
		struct rig_side *peer = &x->rig.side[!w->from];

		if (w->opcode != URDMA_WR_SEND_INV)
			continue;
		if (!x->mr[k].eh)
			assert_int_equal(urdma_eh_create_mr_kind(peer->eh, FIRST_MR + n[!w->from],
								 1, RIG_PD, URDMA_MRK_FAST,
								 &x->mr[k]),
					 0);
		n[!w->from]++;
		assert_int_equal(urdma_eh_put_reg_mr(&peer->qp[w->pair], &x->mr[k], variant,
						     URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE,
						     peer->buffer, 4096, 0x1000, 1, 12, true),
				 0);
		w->inv = x->mr[k].key;
		urdma_eh_ring_sq(&peer->qp[w->pair]);
		rig_check(&x->rig, urdma_eh_next_cqe(&peer->send_cq, &cqe, LIMIT), "REG_MR");
		/* a region that is still registered refuses it */
		if (cqe.status)
			fail_msg("REG_MR for SEND_INV %zu, variant %u: status %u", k, variant,
				 cqe.status);
	}
}

/* The PSNs of a message's packets in the direction of the faults, and their number. */
static void harm(struct matrix *x, const struct work *w)
{
	const struct pattern *p = x->pattern;
	uint32_t psns = work_psns(w->opcode, w->len, x->rig.config.mtu), from = 0, n = psns;
	uint32_t base = x->psn[w->pair];

	x->psn[w->pair] += psns;
	if (!p->fault)
		return;
	if (p->answer && w->opcode != URDMA_WR_READ && !work_is_atomic(w->opcode) &&
	    !work_is_mpe(w->opcode))
		from = n - 1; /* its ACK, if it has an ACK of its own */
	else if (!p->answer && w->opcode == URDMA_WR_READ)
		n = 1;
	for (uint32_t i = from; i < n; i++) {
		uint32_t half = from + (n - from) / 2;
		bool hit = false;

		switch (p->where) {
		case FIRST:
			hit = i == from;
			break;
		case MIDDLE:
			hit = i == half;
			break;
		case LAST:
			hit = i == n - 1;
			break;
		case BURST:
			hit = i >= half && i < half + 8;
			break;
		case SEVENTH:
			hit = x->packets[w->pair]++ % 7 == 3;
			break;
		case NOWHERE:
			break;
		}
		if (!hit)
			continue;
		rig_fault(&x->rig, "%s,side=%u,qpn=%u,psn=%u", p->fault,
			  p->answer ? !w->from : w->from, RIG_QPN(w->pair), (base + i) & 0xffffff);
		x->rules++;
	}
}

/* Posts a few at a time, long after they were needed. */
static void late_receives(struct matrix *x)
{
	for (size_t k = 0; k < x->n; k++) {
		struct work *w = &x->w[k];

		if (!work_takes_recv(w->opcode))
			continue;
		work_put_recv(&x->rig, w);
		urdma_eh_ring_rq(&x->rig.side[!w->from].qp[w->pair]);
		if (k % 3 == 0)
			rig_check(&x->rig,
				  urdma_cosim_run_until(x->rig.cosim,
							urdma_cosim_now(x->rig.cosim) + 1500),
				  "run");
	}
}

static uint64_t faults(const struct matrix *x)
{
	uint64_t sum = 0;

	for (unsigned int k = 0; k < 2 * URDMA_FAULT_KINDS; k++)
		sum += rig_fault_count(&x->rig, k % 2, (enum urdma_fault_kind)(k / 2));
	return sum;
}

static void run(struct matrix *x, const struct one_case *c)
{
	struct urdma_eh_cqe cqe;
	uint64_t begun, done;

	for (unsigned int i = 0; i < PAIRS; i++) {
		struct urdma_eh_qp_info info;

		assert_int_equal(urdma_eh_qp_info(&x->rig.side[(i + c->pattern) % 2].qp[i], &info),
				 0);
		x->psn[i] = info.sq_psn;
	}
	keys(x, 2);
	for (size_t k = 0; k < x->n; k++) {
		work_put(&x->rig, &x->w[k]);
		harm(x, &x->w[k]);
		x->bytes += x->w[k].len;
	}
	for (unsigned int k = 0; k < COUNT(x->pattern->other) && x->pattern->other[k]; k++)
		rig_fault(&x->rig, "%s", x->pattern->other[k]);
	begun = urdma_cosim_now(x->rig.cosim);
	work_ring(&x->rig, x->w, x->n);
	if (x->pattern->late)
		late_receives(x);
	work_finish(&x->rig, x->w, x->n, LIMIT, c->name);
	done = urdma_cosim_now(x->rig.cosim);
	/* late packets */
	rig_check(&x->rig, urdma_cosim_run_until(x->rig.cosim, done + 20000), "run");
	rig_check(&x->rig,
		  urdma_cosim_run_while_busy(x->rig.cosim, urdma_cosim_now(x->rig.cosim) + 3000000),
		  "settle");
	for (unsigned int n = 0; n < 2; n++) {
		assert_int_equal(urdma_eh_poll_cq(&x->rig.side[n].send_cq, &cqe, 1), 0);
		assert_int_equal(urdma_eh_poll_cq(&x->rig.side[n].recv_cq, &cqe, 1), 0);
	}
	print_message("  %zu messages, %lu bytes, %lu faults, %lu cycles\n", x->n,
		      (unsigned long)x->bytes, (unsigned long)faults(x),
		      (unsigned long)(done - begun));
	/* each request packet is on the wire at least once; an ACK may stand for several */
	if (!x->pattern->answer)
		assert_true(faults(x) >= x->rules);
	urdma_faults_clear(x->rig.faults);
	keys(x, 3);
	for (size_t k = 0; k < x->n; k++)
		if (x->mr[k].eh)
			assert_int_equal(urdma_eh_destroy_mr(&x->mr[k]), 0);
	assert_int_equal(urdma_embedded_stats(x->rig.host)->faults, 0);
}

static void one(void **state)
{
	const struct one_case *c = *state;
	struct rig_config config;
	struct matrix *x;

	leave();
	x = test_calloc(1, sizeof(*x));
	x->pattern = &patterns[c->pattern];
	choose(x, c);
	rig_defaults(&config);
	config.qps = PAIRS;
	config.mtu = c->mtu;
	config.ipv6 = (c->pattern + c->mtu) % 2;
	config.log_stride = 8;
	config.buffer = (x->at + 4095) & ~(size_t)4095;
	if (config.buffer < 65536)
		config.buffer = 65536;
	config.memory.memory = 2 * config.buffer + (32u << 20);
	config.priv = true;
	config.cosim.rate_mbps = 50000;
	config.conn.timeout = TIMEOUT;
	config.faults = true;
	config.fault_seed = test_seed(1 + c->pattern * MTUS + c->mtu);
	print_message("  seed %lu, IPv%u\n", (unsigned long)config.fault_seed, config.ipv6 ? 6 : 4);
	rig_start(&x->rig, &config);
	judge_start(&x->judge, &x->rig, false);
	matrix = x;
	run(x, c);
	matrix = NULL;
	judge_end(&x->judge, c->name);
	rig_stop(&x->rig);
	test_free(x);
}

/* ---- all of it ----------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	bool full = argc > 1 && !strcmp(argv[1], "--full");
	static struct one_case c[COUNT(patterns) * MTUS];
	static struct CMUnitTest test[COUNT(patterns) * MTUS];
	size_t n = 0;
	int ret;

	for (unsigned int p = 0; p < COUNT(patterns); p++) {
		for (unsigned int mtu = 1; mtu <= MTUS; mtu++) {
			if (!full && mtu != 1 + (p * 2 + p / MTUS) % MTUS)
				continue;
			c[n] = (struct one_case){ .pattern = p, .mtu = mtu, .full = full };
			snprintf(c[n].name, sizeof(c[n].name), "MTU %u: %s", 128u << mtu,
				 patterns[p].name);
			if (!rig_wanted(c[n].name, argc - 1 - full, argv + 1 + full))
				continue;
			test[n] = (struct CMUnitTest){ .name = c[n].name,
						       .test_func = one,
						       .initial_state = &c[n] };
			n++;
		}
	}
	ret = _cmocka_run_group_tests("engine/matrix", test, n, NULL, NULL);
	leave();
	return ret;
}
