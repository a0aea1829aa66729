// SPDX-License-Identifier: Apache-2.0
/*
 * Random mixed traffic of every opcode on many QPs, both ways, on a wire that loses, doubles,
 * reorders, changes, delays and marks frames. Every byte, also around the data, and every CQE is
 * compared; the wire checker judges both ports; the counters have to match what the ports saw.
 * Sometimes receives are posted late. In some runs control operations cross the traffic at random
 * cycles: QPs stop (SQD) and go on, go to ERR, are reset, or are destroyed and made again; the link
 * goes down and up; regions and CQs are made and destroyed.
 *
 * A run is a function of its seed, the percentage of each fault, and the frequency of control
 * operations. All are printed: test_mix SEED PERCENT [MESSAGES [PAIRS [CONTROL]]] makes that run
 * alone. --full sends a million messages. SEED in the environment gives other seeds.
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

#define WINDOW	   16u
#define MAX_INLINE 32u
#define PATIENCE   40000000u /* cycles without any completion */

/* EXHAUSTED: not an operation, but a QP that has used up its retries and is reset like others. */
enum control { SQD, RENEW, RESET, TO_ERR, LINK, OBJECTS, CONTROLS, EXHAUSTED };

/* One direction of a pair. Indexes count messages. */
struct flow {
	uint32_t posted, given, sent, received, checked, total; /* given: receives */
	struct work w[WINDOW];
	bool stopped; /* SQD */
	bool ending;  /* the QPs are about to begin a new life: CQEs do not count */
};

/*
 * A message has eight attempts. Each may be lost on the wire, or because a NIC has no room while
 * ATOMICs hold it up (docs/hardware-interface.md, section 15). With 5 % of each fault the wire
 * loses about one attempt in six. So a QP may use up its retries, but not as often as once in
 * EXHAUST messages: once in some hundred thousand was measured.
 */
#define EXHAUST 5000u

struct mix {
	struct rig rig;
	struct rig_config config;
	struct judge judge;
	uint64_t random;
	uint32_t max_len;
	size_t slot;
	struct flow flow[2][RIG_MAX_QPS];
	uint32_t psn[RIG_MAX_QPS][2]; /* of the pair's next life */
	uint64_t hash, bytes, messages, deadline;
	uint64_t given_up;    /* messages of lives that ended */
	unsigned int control; /* one control operation in so many steps; 0: none */
	unsigned int events[CONTROLS];
	bool lossy;		 /* the wire */
	unsigned int exhausted;	 /* QPs that used up their retries, */
	bool spent[RIG_MAX_QPS]; /* pairs with such a QP, which will begin a new life */
};

static uint32_t draw(struct mix *s, uint32_t n)
{
	return rig_draw(&s->random, n);
}

/* The oldest message of a flow that has not completed on both sides. */
static uint32_t oldest(const struct flow *f)
{
	return f->sent < f->received ? f->sent : f->received;
}

static void put(struct mix *s, unsigned int side, unsigned int pair)
{
	static const unsigned int opcode[] = {
		URDMA_WR_SEND,	    URDMA_WR_SEND_IMM, URDMA_WR_WRITE,	     URDMA_WR_WRITE,
		URDMA_WR_WRITE_IMM, URDMA_WR_READ,     URDMA_WR_READ,	     URDMA_WR_ATOMIC_CS,
		URDMA_WR_ATOMIC_FA, URDMA_WR_FLUSH,    URDMA_WR_ATOMIC_WRITE
	};
	struct flow *f = &s->flow[side][pair];
	struct work *w = &f->w[f->posted % WINDOW];
	bool last = f->posted + 1 == f->total;

	*w = (struct work){
		.opcode = opcode[draw(s, COUNT(opcode))],
		.from = side,
		.pair = pair,
		.at = ((size_t)(pair * 2 + side) * WINDOW + f->posted % WINDOW) * s->slot,
		.len = rig_draw_len(&s->random, 128u << s->config.mtu, s->max_len),
		.seed = (uint32_t)rnd_next(&s->random),
		.pieces = 1 + draw(s, 2) * draw(s, WORK_SGES),
		.odd = draw(s, 2) * draw(s, 100),
		/* the ring has to move on */
		.unsignaled = !last && f->posted % (WINDOW / 2) && draw(s, 3),
		.solicited = !draw(s, 3),
		.fence = !draw(s, 6),
		.late_recv = true,
	};
	if (w->solicited && !work_takes_recv(w->opcode))
		w->solicited = false;
	w->inlined = w->len && w->len <= MAX_INLINE && w->opcode < URDMA_WR_READ && draw(s, 2);
	work_put(&s->rig, w);
	f->posted++;
}

/* Posts receives in the order of the messages; sometimes late. */
static void give(struct mix *s, unsigned int side, unsigned int pair, bool all)
{
	struct flow *f = &s->flow[side][pair];
	bool any = false;

	if (!all && !draw(s, 12))
		return;
	while (f->given < f->posted) {
		struct work *w = &f->w[f->given++ % WINDOW];

		if (!work_takes_recv(w->opcode))
			continue;
		work_put_recv(&s->rig, w);
		any = true;
	}
	if (any)
		urdma_eh_ring_rq(&s->rig.side[!side].qp[pair]);
}

static void post(struct mix *s, unsigned int side, unsigned int pair)
{
	struct flow *f = &s->flow[side][pair];
	uint32_t n = 1 + draw(s, 5), room = WINDOW - (f->posted - f->checked);

	if (n > room)
		n = room;
	if (n > f->total - f->posted)
		n = f->total - f->posted;
	for (uint32_t i = 0; i < n; i++)
		put(s, side, pair);
	give(s, side, pair, false);
	if (n)
		urdma_eh_ring_sq(&s->rig.side[side].qp[pair]);
}

/* The indexes skip messages that need no receive. */
static void pass(struct mix *s, struct flow *f)
{
	while (f->received < f->sent && !work_takes_recv(f->w[f->received % WINDOW].opcode))
		f->received++;
	for (; f->checked < oldest(f); f->checked++) {
		struct work *w = &f->w[f->checked % WINDOW];

		work_check_memory(&s->rig, w);
		s->bytes += w->len;
		s->messages++;
	}
}

/* Whether anything can be lost, on the wire or in a NIC. */
static bool loses(struct mix *s)
{
	return s->lossy || urdma_eh_counter(s->rig.side[0].eh, URDMA_CNT_RX_DROP_FULL) ||
	       urdma_eh_counter(s->rig.side[1].eh, URDMA_CNT_RX_DROP_FULL);
}

static void take(struct mix *s, unsigned int side, bool recv, const struct urdma_eh_cqe *cqe)
{
	unsigned int pair = cqe->qpn - RIG_QPN(0);
	struct flow *f;
	struct work *w;

	assert_in_range(cqe->qpn, RIG_QPN(0), RIG_QPN(s->config.qps - 1));
	f = &s->flow[recv ? !side : side][pair];
	if (f->ending)
		return;
	if (!recv && cqe->status == URDMA_WC_RETRY_EXC_ERR && loses(s)) {
		s->exhausted++;
		s->spent[pair] = s->flow[0][pair].ending = s->flow[1][pair].ending = true;
		return;
	}
	if (cqe->status)
		rig_print_counters(&s->rig);
	if (recv) {
		while (f->received < f->posted &&
		       !work_takes_recv(f->w[f->received % WINDOW].opcode))
			f->received++;
		assert_true(f->received < f->given);
		w = &f->w[f->received % WINDOW];
		work_check_recv(&s->rig, w, cqe);
		f->received++;
	} else {
		while (f->sent < f->posted && f->w[f->sent % WINDOW].unsignaled)
			f->sent++;
		assert_true(f->sent < f->posted);
		w = &f->w[f->sent % WINDOW];
		work_check_send(&s->rig, w, cqe);
		f->sent++;
	}
}

static void poll(struct mix *s)
{
	struct urdma_eh_cqe cqe[16];

	for (unsigned int k = 0; k < 4; k++) {
		struct rig_side *side = &s->rig.side[k / 2];
		unsigned int got;

		while ((got = urdma_eh_poll_cq(k % 2 ? &side->recv_cq : &side->send_cq, cqe,
					       1 + draw(s, COUNT(cqe))))) {
			for (unsigned int i = 0; i < got; i++) {
				s->hash = rig_hash_cqe(s->hash, &cqe[i]);
				take(s, k / 2, k % 2, &cqe[i]);
			}
			s->deadline = urdma_cosim_now(s->rig.cosim) + PATIENCE;
		}
	}
}

/* ---- control ------------------------------------------------------------------------------- */

static void stop_or_go(struct mix *s, unsigned int side, unsigned int pair)
{
	struct flow *f = &s->flow[side][pair];
	struct urdma_eh_qp *qp = &s->rig.side[side].qp[pair];
	struct urdma_eh_qp_info info;

	if (f->stopped ? urdma_eh_sqd_to_rts(qp) : urdma_eh_to_sqd(qp, false)) {
		/* It has used up its retries, and its CQE has not been polled yet. */
		assert_int_equal(urdma_eh_qp_info(qp, &info), 0);
		assert_int_equal(info.state, URDMA_QPS_ERR);
		assert_true(loses(s));
		return;
	}
	f->stopped = !f->stopped;
}

/*
 * The QPs of a pair begin a new life, with work under way. The messages posted to them are given
 * up: their memory may be written until the end of the reset, and none of their CQEs comes
 * afterwards.
 */
static void new_life(struct mix *s, unsigned int pair, enum control how)
{
	struct urdma_eh_conn conn = s->config.conn;
	unsigned int first = draw(s, 2);

	poll(s);
	for (unsigned int n = 0; n < 2; n++)
		s->flow[n][pair].ending = true;
	for (unsigned int k = 0; k < 2; k++) {
		unsigned int side = k ^ first;
		struct urdma_eh_qp *qp = &s->rig.side[side].qp[pair];

		if (how == TO_ERR || how == EXHAUSTED)
			judge_stop(&s->judge, side, pair);
		if (how == TO_ERR) {
			assert_int_equal(urdma_eh_to_err(qp), 0);
			rig_check(
				&s->rig,
				urdma_cosim_run_until(s->rig.cosim, urdma_cosim_now(s->rig.cosim) +
									    draw(s, 2000)),
				"flush");
		}
		if (how == RENEW)
			rig_renew_qp(&s->rig, side, pair);
		else
			assert_int_equal(urdma_eh_to_reset(qp), 0);
	}
	poll(s);
	for (unsigned int n = 0; n < 2; n++) {
		struct flow *f = &s->flow[n][pair];

		for (; f->checked < f->posted; f->checked++) {
			struct work *w = &f->w[f->checked % WINDOW];

			for (unsigned int i = 0; i < 2; i++) {
				free(w->image[i]);
				w->image[i] = NULL;
			}
			s->given_up++;
		}
		f->sent = f->received = f->given = f->posted;
		f->stopped = f->ending = false;
		/* far from what may still be on the wire */
		s->psn[pair][n] = (s->psn[pair][n] + 0x300000 + draw(s, 0x1000)) & 0xffffff;
	}
	s->spent[pair] = false;
	conn.mtu = s->config.mtu;
	conn.sq_psn = s->psn[pair][0];
	conn.rq_psn = s->psn[pair][1];
	judge_connect(&s->judge, pair, conn.sq_psn, conn.rq_psn);
	assert_int_equal(urdma_eh_connect_as(&s->rig.side[0].qp[pair], &s->rig.side[1].qp[pair],
					     &conn, s->config.ipv6),
			 0);
}

/* A region and a CQ are made and destroyed: this flushes translations in use. */
static void objects(struct mix *s)
{
	struct rig_side *side = &s->rig.side[draw(s, 2)];
	struct urdma_eh_mr mr;
	struct urdma_eh_cq cq;

	rig_check(&s->rig,
		  urdma_eh_create_mr(side->eh, 99, 1, RIG_PD, URDMA_ACC_LOCAL_WRITE, side->buffer,
				     8192, (uintptr_t)side->buffer, &mr),
		  "objects");
	rig_check(&s->rig, urdma_eh_create_cq(side->eh, 99, 6, 1, RIG_DB_PAGE, s->config.kind, &cq),
		  "objects");
	rig_check(&s->rig, urdma_eh_destroy_mr(&mr), "objects");
	rig_check(&s->rig, urdma_eh_destroy_cq(&cq), "objects");
}

static void control(struct mix *s)
{
	enum control what = draw(s, CONTROLS);
	unsigned int pair = draw(s, s->config.qps);

	s->events[what]++;
	switch (what) {
	case SQD:
		stop_or_go(s, draw(s, 2), pair);
		break;
	case LINK:
		rig_check(&s->rig, urdma_cosim_link(s->rig.cosim, 0, false), "link down");
		rig_check(&s->rig,
			  urdma_cosim_run_until(s->rig.cosim,
						urdma_cosim_now(s->rig.cosim) + draw(s, 3000)),
			  "link down");
		rig_check(&s->rig, urdma_cosim_link(s->rig.cosim, 0, true), "link up");
		break;
	case OBJECTS:
		objects(s);
		break;
	default:
		new_life(s, pair, what);
		break;
	}
	s->deadline = urdma_cosim_now(s->rig.cosim) + PATIENCE;
}

static bool done(const struct flow *f)
{
	return f->sent == f->total && f->received == f->total;
}

static bool finished(struct mix *s)
{
	bool all = true;

	for (unsigned int k = 0; k < 2 * s->config.qps; k++)
		all &= done(&s->flow[k % 2][k / 2]);
	return all;
}

static bool anything(void *arg)
{
	struct mix *s = arg;

	for (unsigned int n = 0; n < 2; n++)
		if (urdma_eh_cq_ready(&s->rig.side[n].send_cq) ||
		    urdma_eh_cq_ready(&s->rig.side[n].recv_cq))
			return true;
	return false;
}

/* The settings that follow from a seed. */
static void configure(struct mix *s, uint64_t seed, unsigned int qps)
{
	static const unsigned int some[] = { 1, 2, 8, 16, 64 };
	static const uint32_t latency[] = { 300, 500, 900 };
	struct rig_config *c = &s->config;

	memset(s, 0, sizeof(*s));
	s->random = seed * 0x9e3779b97f4a7c15ull + 1;
	for (unsigned int i = 0; i < 8; i++)
		rnd_next(&s->random);
	rig_defaults(c);
	c->qps = qps ? qps : some[draw(s, COUNT(some))];
	c->mtu = 1 + draw(s, 5);
	c->ipv6 = draw(s, 2);
	c->log_stride = 8; /* 14 SGEs */
	c->log_sq = 4 + draw(s, 3);
	c->log_rq = c->log_sq + draw(s, 2);
	c->log_cqe = 12;
	c->conn.timeout = 5 + draw(s, 4);
	c->conn.max_rd_atomic = 1u << draw(s, 5);
	c->conn.max_dest_rd_atomic = 16;
	c->cosim.pcie.seed = seed;
	c->cosim.pcie.latency_ns = latency[draw(s, COUNT(latency))];
	c->cosim.pcie.reorder = draw(s, 2);
	c->cosim.pcie.mps = 256u << draw(s, 2);
	c->faults = true;
	c->fault_seed = seed;
	s->max_len = c->qps > 8 ? 5000 : 20000;
	s->slot = work_slot(s->max_len);
	c->buffer = s->slot * WINDOW * c->qps * 2;
	c->memory.memory = 2 * c->buffer + (32u << 20);
	c->memory.seed = seed;
	s->hash = RIG_HASH_START;
}

struct result {
	uint64_t hash, cycles;
};

static struct result mix(uint64_t seed, const char *percent, unsigned int messages,
			 unsigned int qps, unsigned int control_every, bool no_skip)
{
	static const char *const kinds[] = { "drop",	       "dup", "reorder", "corrupt",
					     "delay,ns=20000", "ecn" };
	struct mix *s = test_malloc(sizeof(*s));
	struct rig_config *c = &s->config;
	struct result result;
	uint64_t faults = 0;
	char what[64];

	configure(s, seed, qps);
	c->cosim.no_skip = no_skip;
	s->control = control_every;
	print_message(
		"seed %lu, %s %% of each fault: %u pairs, MTU %u, IPv%u, time-out %u, %u READs "
		"and atomics, PCIe %u ns%s, control %u\n",
		(unsigned long)seed, percent, c->qps, 128u << c->mtu, c->ipv6 ? 6 : 4,
		c->conn.timeout, c->conn.max_rd_atomic, c->cosim.pcie.latency_ns,
		c->cosim.pcie.reorder ? " reordered" : "", control_every);
	rig_start(&s->rig, c);
	judge_start(&s->judge, &s->rig, false);
	s->lossy = atof(percent) > 0;
	for (unsigned int k = 0; s->lossy && k < COUNT(kinds); k++)
		rig_fault(&s->rig, "%s,p=%s", kinds[k], percent);
	for (unsigned int k = 0; k < 2 * c->qps; k++)
		s->flow[k % 2][k / 2].total = messages / (2 * c->qps) + draw(s, 5);
	s->deadline = urdma_cosim_now(s->rig.cosim) + PATIENCE;
	while (!finished(s)) {
		unsigned int tries = 1 + draw(s, 2 * c->qps);
		bool idle;

		while (tries--)
			post(s, draw(s, 2), draw(s, c->qps));
		for (unsigned int k = 0; k < 2 * c->qps; k++)
			give(s, k % 2, k / 2, false);
		if (s->control && !draw(s, s->control))
			control(s);
		idle = !urdma_cosim_busy(s->rig.cosim);
		if (idle) {
			for (unsigned int k = 0; k < 2 * c->qps; k++)
				if (s->flow[k % 2][k / 2].stopped)
					stop_or_go(s, k % 2, k / 2);
			/* all receives are posted, so only the NICs' timers are waited for */
			for (unsigned int k = 0; k < 2 * c->qps; k++)
				give(s, k % 2, k / 2, true);
			urdma_cosim_run_cond(s->rig.cosim, anything, s,
					     urdma_cosim_now(s->rig.cosim) + 20000);
			rig_check(&s->rig, 0, "run");
		} else {
			rig_check(&s->rig,
				  urdma_cosim_run_until(s->rig.cosim,
							urdma_cosim_now(s->rig.cosim) + 1 +
								draw(s, draw(s, 8) ? 300 : 3000)),
				  "run");
		}
		poll(s);
		for (unsigned int k = 0; k < c->qps; k++)
			if (s->spent[k])
				new_life(s, k, EXHAUSTED);
		for (unsigned int k = 0; k < 2 * c->qps; k++)
			pass(s, &s->flow[k % 2][k / 2]);
		if (urdma_cosim_now(s->rig.cosim) > s->deadline) {
			rig_print_counters(&s->rig);
			for (unsigned int k = 0; k < 2 * c->qps; k++) {
				struct flow *f = &s->flow[k % 2][k / 2];

				if (!done(f))
					print_message("  pair %u from side %u: posted %u, sent %u "
						      "(%s), received %u of %u\n",
						      k / 2, k % 2, f->posted, f->sent,
						      work_name(f->w[f->sent % WINDOW].opcode),
						      f->received, f->total);
			}
			fail_msg("seed %lu: nothing completes any more", (unsigned long)seed);
		}
	}
	/* late packets */
	rig_check(&s->rig,
		  urdma_cosim_run_until(s->rig.cosim, urdma_cosim_now(s->rig.cosim) + 20000),
		  "end");
	rig_check(&s->rig,
		  urdma_cosim_run_while_busy(s->rig.cosim, urdma_cosim_now(s->rig.cosim) + 100000),
		  "end");
	poll(s);
	for (unsigned int k = 0; k < 2 * URDMA_FAULT_KINDS; k++)
		faults += rig_fault_count(&s->rig, k % 2, (enum urdma_fault_kind)(k / 2));
	result.cycles = urdma_cosim_now(s->rig.cosim);
	result.hash = s->hash;
	print_message("  %lu messages, %lu bytes, %lu faults, %lu cycles, digest %016lx\n",
		      (unsigned long)s->messages, (unsigned long)s->bytes, (unsigned long)faults,
		      (unsigned long)result.cycles, (unsigned long)result.hash);
	if (s->control)
		print_message("  %u SQD, %u renewed, %u reset, %u to ERR, %u link, %u objects; %lu "
			      "messages given up\n",
			      s->events[SQD], s->events[RENEW], s->events[RESET], s->events[TO_ERR],
			      s->events[LINK], s->events[OBJECTS], (unsigned long)s->given_up);
	if (s->exhausted)
		print_message("  %u QPs used up their retries\n", s->exhausted);
	assert_true(s->exhausted <= 1 + s->messages / EXHAUST);
	assert_int_equal(urdma_embedded_stats(s->rig.host)->faults, 0);
	snprintf(what, sizeof(what), "seed %lu, %s %%", (unsigned long)seed, percent);
	judge_end(&s->judge, what);
	rig_stop(&s->rig);
	test_free(s);
	return result;
}

static const char *const percents[] = { "0", "0.1", "1", "5" };

static void some(void **state)
{
	const char *percent = *state;

	for (uint64_t seed = 1; seed <= 4; seed++)
		mix(test_seed(seed), percent, 400, 0, 0, false);
	mix(test_seed(5), percent, 2000, 64, 0, false);
}

static void with_control(void **state)
{
	const char *percent = *state;

	for (uint64_t seed = 12; seed <= 13; seed++)
		mix(test_seed(seed), percent, 2000, 0, 20, false);
}

static void repeats(void **state)
{
	struct result a, b, c;

	(void)state;
	a = mix(test_seed(99), "2", 200, 4, 20, false);
	b = mix(test_seed(99), "2", 200, 4, 20, false);
	c = mix(test_seed(99), "2", 200, 4, 20, true);
	assert_true(a.cycles == b.cycles && a.hash == b.hash);
	assert_true(a.cycles == c.cycles && a.hash == c.hash);
}

static void many(void **state)
{
	const char *percent = *state;

	for (uint64_t seed = 1000; seed < 1025; seed++)
		mix(test_seed(seed), percent, 10000, 64, seed % 2 * 20, false);
}

int main(int argc, char **argv)
{
	struct CMUnitTest test[2 * COUNT(percents) + 1];
	bool full = argc > 1 && !strcmp(argv[1], "--full");
	char name[2 * COUNT(percents)][48];
	size_t n = 0;

	if (argc > 2) {
		unsigned int arg[3] = { 400, 0, 0 };

		for (int i = 3; i < argc && i < 6; i++)
			arg[i - 3] = (unsigned int)atoi(argv[i]);
		mix(strtoull(argv[1], NULL, 0), argv[2], arg[0], arg[1], arg[2], false);
		return 0;
	}
	for (unsigned int i = 0; i < COUNT(percents); i++) {
		for (unsigned int with = 0; with < (full ? 1u : 2u); with++) {
			snprintf(name[n], sizeof(name[n]), "%s %% of each fault%s", percents[i],
				 with ? ", control" : "");
			if (rig_left_out(name[n], 3))
				continue;
			test[n] = (struct CMUnitTest){
				.name = name[n],
				.test_func = full   ? many
					     : with ? with_control
						    : some,
				.initial_state = (void *)(uintptr_t)percents[i],
			};
			n++;
		}
	}
	if (!full)
		test[n++] = (struct CMUnitTest)cmocka_unit_test(repeats);
	return _cmocka_run_group_tests("engine/mix", test, n, NULL, NULL);
}
