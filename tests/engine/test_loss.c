// SPDX-License-Identifier: Apache-2.0
/*
 * Loss, duplication, disorder, corruption and delay on the wire, each at a chosen packet of each
 * kind of message, with other messages after it and without; RNR and its timers; time-outs and
 * retries to their end. Every byte and every CQE is compared, NAKs and time-outs are counted, and
 * the wire checker watches both ports. Meanwhile another pair of QPs works and must not be
 * disturbed.
 *
 * Each case has a name. A failure names the message and the byte, or the counter with its value and
 * the expected one. Arguments choose cases: those whose names contain one of them, or equal one
 * after a '='.
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

#include "judge.h"
#include "seed.h"
#include "work.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define MTU	3u /* 1024 */
#define LEN	4500u
#define PACKETS 5u
#define TIMEOUT 6u /* 262 us, 65536 cycles */
#define LIMIT	20000000u

/* ---- the rig that cases share -------------------------------------------------------------- */

static struct rig rig;
static struct judge judge;
static bool running;

static void leave(void)
{
	if (!running)
		return;
	judge_drop(&judge);
	rig_abandon(&rig);
	running = false;
}

/* conn NULL: a connection that recovers from everything that the cases do. */
static void enter(unsigned int qps, const struct urdma_eh_conn *conn)
{
	struct rig_config config;

	leave();
	rig_defaults(&config);
	config.qps = qps;
	config.mtu = MTU;
	config.log_stride = 8;
	config.faults = true;
	config.fault_seed = test_seed(1);
	config.priv = true;
	config.conn.timeout = TIMEOUT;
	if (conn)
		config.conn = *conn;
	rig_start(&rig, &config);
	judge_start(&judge, &rig, true);
	running = true;
}

/* The counts since a given moment, on both sides. */
struct tally {
	uint64_t nak_seq, nak_rnr, timeouts, gaps, icrc, mac_err, dups, retry_exc, rnr_exc;
};

static void tally(struct tally *t)
{
	static const unsigned int index[] = { URDMA_CNT_TX_NAK_SEQ,  URDMA_CNT_TX_NAK_RNR,
					      URDMA_CNT_TX_TIMEOUT,  URDMA_CNT_RX_READ_GAP,
					      URDMA_CNT_RX_ICRC_ERR, URDMA_CNT_RX_MAC_ERR,
					      URDMA_CNT_RX_DUP,	     URDMA_CNT_RETRY_EXC,
					      URDMA_CNT_RNR_EXC };
	uint64_t *value = &t->nak_seq;

	for (unsigned int i = 0; i < COUNT(index); i++)
		value[i] = urdma_eh_counter(rig.side[0].eh, index[i]) +
			   urdma_eh_counter(rig.side[1].eh, index[i]);
}

static void tally_since(struct tally *t)
{
	struct tally now;
	uint64_t *value = &t->nak_seq;
	const uint64_t *n = &now.nak_seq;

	tally(&now);
	for (unsigned int i = 0; i < sizeof(now) / sizeof(now.nak_seq); i++)
		value[i] = n[i] - value[i];
}

static uint64_t faults(void)
{
	uint64_t sum = 0;

	for (unsigned int k = 0; k < 2 * URDMA_FAULT_KINDS; k++)
		sum += rig_fault_count(&rig, k % 2, (enum urdma_fault_kind)(k / 2));
	return sum;
}

static uint32_t next_psn(unsigned int side, unsigned int pair)
{
	struct urdma_eh_qp_info info;

	assert_int_equal(urdma_eh_qp_info(&rig.side[side].qp[pair], &info), 0);
	return info.sq_psn;
}

static void settle(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
}

/* ---- one fault in one message -------------------------------------------------------------- */

enum where { FIRST, MIDDLE, LAST, EVERY };
enum { STREAM = 1, READ = 2, ATOMIC = 4, ALL = 7 };

#define ANY (-1)

/* Expected counts, with messages after it and with none. ANY: not compared. */
struct often {
	int behind, alone;
};

struct pattern {
	const char *name;
	unsigned int of; /* classes of opcodes */
	bool answer;	 /* hit a packet of the responder */
	enum where where;
	const char *fault; /* its kind, and keys other than side, qpn, psn */
	const char *other; /* another fault, as written, on the pair */
	struct often naks, timeouts, gaps;
};

#define NONE         \
	{            \
		0, 0 \
	}
#define ONCE         \
	{            \
		1, 1 \
	}
#define AGAIN        \
	{            \
		1, 0 \
	} /* noticed by what follows */
#define LATE         \
	{            \
		0, 1 \
	} /* not noticed if nothing follows */
#define OPEN             \
	{                \
		ANY, ANY \
	}

/*
 * Offsets in a frame (IPv4): 42 BTH, 42 opcode, 47 destination QP, 51 PSN, 54 what follows.
 */
static const struct pattern patterns[] = {
	/* requests */
	{ "first packet lost", STREAM, false, FIRST, "drop", NULL, ONCE, NONE, NONE },
	{ "middle packet lost", STREAM, false, MIDDLE, "drop", NULL, ONCE, NONE, NONE },
	{ "last packet lost", STREAM, false, LAST, "drop", NULL, AGAIN, LATE, NONE },
	{ "request lost", READ | ATOMIC, false, FIRST, "drop", NULL, AGAIN, LATE, NONE },
	{ "every packet lost once", STREAM, false, EVERY, "drop", NULL, AGAIN, LATE, NONE },
	{ "packet lost twice", STREAM, false, MIDDLE, "drop,count=2", NULL, ONCE, ONCE, NONE },
	{ "request lost twice",
	  READ | ATOMIC,
	  false,
	  FIRST,
	  "drop,count=2",
	  NULL,
	  AGAIN,
	  { 1, 2 },
	  NONE },
	{ "packet and NAK lost", STREAM, false, MIDDLE, "drop", "drop,side=1,aeth=nak", ONCE, ONCE,
	  NONE },
	{ "request and NAK lost", READ | ATOMIC, false, FIRST, "drop", "drop,side=1,aeth=nak",
	  AGAIN, ONCE, OPEN },
	{ "first and last packet lost", STREAM, false, FIRST, "drop", "drop,side=0,op=send_last",
	  OPEN, OPEN, NONE },
	{ "packet lost, NAK doubled", STREAM, false, FIRST, "drop", "dup,side=1,aeth=nak", ONCE,
	  NONE, NONE },
	{ "packet lost, NAK late", STREAM, false, FIRST, "drop", "delay,ns=100000,side=1,aeth=nak",
	  ONCE, NONE, NONE },
	{ "requests doubled", ALL, false, EVERY, "dup", NULL, NONE, NONE, NONE },
	{ "requests come again late", ALL, false, EVERY, "dup,ns=50000", NULL, NONE, NONE, NONE },
	{ "requests come thrice", ALL, false, EVERY, "dup,copies=2,ns=900", NULL, NONE, NONE,
	  NONE },
	{ "first packet behind the second", STREAM, false, FIRST, "reorder", NULL, OPEN, NONE,
	  NONE },
	{ "middle packet behind the next", STREAM, false, MIDDLE, "reorder", NULL, OPEN, NONE,
	  NONE },
	{ "packet far behind", STREAM, false, FIRST, "reorder,frames=9", NULL, OPEN, NONE, NONE },
	{ "request behind the next", READ | ATOMIC, false, FIRST, "reorder", NULL, OPEN, OPEN,
	  OPEN },
	{ "ICRC wrong", ALL, false, FIRST, "corrupt,byte=-1", NULL, AGAIN, OPEN, NONE },
	{ "payload changed", STREAM, false, MIDDLE, "corrupt,byte=500", NULL, ONCE, NONE, NONE },
	{ "opcode changed", ALL, false, FIRST, "corrupt,byte=42,bit=0", NULL, AGAIN, OPEN, NONE },
	{ "PSN changed", ALL, false, FIRST, "corrupt,byte=53,bit=1", NULL, AGAIN, OPEN, NONE },
	{ "address or operand changed", ALL, false, FIRST, "corrupt,byte=60,bit=4", NULL, AGAIN,
	  OPEN, NONE },
	{ "FCS wrong", ALL, false, FIRST, "fcs", NULL, AGAIN, OPEN, NONE },
	{ "first packet late", STREAM, false, FIRST, "delay,ns=30000", NULL, OPEN, NONE, NONE },
	{ "packet later than the time-out", STREAM, false, FIRST, "delay,ns=400000", NULL, OPEN,
	  NONE, NONE },
	{ "all packets later than the time-out", ALL, false, EVERY, "delay,ns=400000", NULL, OPEN,
	  OPEN, OPEN },
	{ "requests marked", ALL, false, EVERY, "ecn", NULL, NONE, NONE, NONE },

	/* answers */
	{ "ACK lost", STREAM, true, LAST, "drop", NULL, NONE, LATE, NONE },
	{ "ACK lost twice", STREAM, true, LAST, "drop,count=2", NULL, NONE, OPEN, NONE },
	{ "ACK doubled", STREAM, true, LAST, "dup", NULL, NONE, NONE, NONE },
	{ "ACK comes again late", STREAM, true, LAST, "dup,ns=50000", NULL, NONE, NONE, NONE },
	{ "ACK behind the next", STREAM, true, LAST, "reorder", NULL, NONE, NONE, NONE },
	{ "ACK changed", STREAM, true, LAST, "corrupt,byte=55", NULL, NONE, LATE, NONE },
	{ "ACK later than the time-out",
	  STREAM,
	  true,
	  LAST,
	  "delay,ns=400000",
	  NULL,
	  NONE,
	  { ANY, 1 },
	  NONE },
	{ "ACK marked", STREAM, true, LAST, "ecn", NULL, NONE, NONE, NONE },
	{ "answer lost", ATOMIC, true, FIRST, "drop", NULL, NONE, LATE, AGAIN },
	{ "answer lost twice", ATOMIC, true, FIRST, "drop,count=2", NULL, NONE, OPEN, OPEN },
	{ "answer doubled", ATOMIC, true, FIRST, "dup", NULL, NONE, NONE, NONE },
	{ "answer comes again late", ATOMIC, true, FIRST, "dup,ns=50000", NULL, NONE, NONE, NONE },
	{ "answer behind the next", ATOMIC, true, FIRST, "reorder", NULL, NONE, NONE, OPEN },
	{ "answer changed", ATOMIC, true, FIRST, "corrupt,byte=56", NULL, NONE, LATE, AGAIN },
	{ "first response lost", READ, true, FIRST, "drop", NULL, NONE, NONE, ONCE },
	{ "middle response lost", READ, true, MIDDLE, "drop", NULL, NONE, NONE, ONCE },
	{ "last response lost", READ, true, LAST, "drop", NULL, NONE, LATE, AGAIN },
	{ "every response lost once", READ, true, EVERY, "drop", NULL, NONE, LATE, AGAIN },
	{ "response lost twice", READ, true, MIDDLE, "drop,count=2", NULL, NONE, OPEN, OPEN },
	{ "responses doubled", READ, true, EVERY, "dup", NULL, NONE, NONE, NONE },
	{ "responses come again late", READ, true, EVERY, "dup,ns=50000", NULL, NONE, NONE, NONE },
	{ "first response behind the second", READ, true, FIRST, "reorder", NULL, NONE, NONE,
	  OPEN },
	{ "response far behind", READ, true, MIDDLE, "reorder,frames=9", NULL, NONE, NONE, OPEN },
	{ "response's ICRC wrong", READ, true, MIDDLE, "corrupt,byte=-2", NULL, NONE, NONE, ONCE },
	{ "response's payload changed", READ, true, FIRST, "corrupt,byte=80", NULL, NONE, NONE,
	  ONCE },
	{ "response's FCS wrong", READ, true, MIDDLE, "fcs", NULL, NONE, NONE, ONCE },
	{ "response later than the time-out", READ, true, MIDDLE, "delay,ns=400000", NULL, NONE,
	  NONE, ONCE },
	{ "all responses later than the time-out", READ | ATOMIC, true, EVERY, "delay,ns=400000",
	  NULL, NONE, OPEN, OPEN },
	{ "responses marked", READ | ATOMIC, true, EVERY, "ecn", NULL, NONE, NONE, NONE },
};

static unsigned int class_of(unsigned int opcode)
{
	if (work_is_atomic(opcode) || work_is_mpe(opcode))
		return ATOMIC;
	return opcode == URDMA_WR_READ ? READ : STREAM;
}

struct one_case {
	char name[96];
	const struct pattern *pattern;
	unsigned int opcode;
	bool alone; /* nothing after the message */
};

static void expect(const char *name, uint64_t got, struct often often, bool alone)
{
	int want = alone ? often.alone : often.behind;

	if (want != ANY && got != (uint64_t)want)
		fail_msg("%s: %llu instead of %d", name, (unsigned long long)got, want);
}

static void one_fault(void **state)
{
	const struct one_case *c = *state;
	const struct pattern *p = c->pattern;
	unsigned int messages = c->alone ? 2 : 3, side = p->answer;
	bool atomic = class_of(c->opcode) == ATOMIC;
	uint32_t first, last, hits;
	bool last_packet = class_of(c->opcode) != STREAM || p->where >= LAST;
	uint64_t before;
	struct work w[16];
	struct tally t;
	size_t n = 0;

	if (!running)
		enter(2, NULL);
	before = faults();
	for (; n < messages; n++)
		w[n] = (struct work){ .opcode = c->opcode,
				      .len = LEN,
				      .pieces = 1 + (unsigned int)n,
				      .odd = 5 + 3 * (unsigned int)n,
				      .seed = (uint32_t)(before + n),
				      .at = n * work_slot(LEN) };
	/* the second message is hit */
	first = next_psn(0, 0) + work_psns(c->opcode, LEN, MTU);
	last = first + (atomic ? 0 : PACKETS - 1);
	if (p->where == LAST)
		first = last;
	else if (p->where == MIDDLE)
		first = first + 2, last = first;
	else if (p->where == FIRST || (c->opcode == URDMA_WR_READ && !p->answer))
		last = first;
	hits = last - first + 1;
	for (uint32_t psn = first; psn != last + 1; psn++)
		rig_fault(&rig, "%s,side=%u,qpn=%u,psn=%u", p->fault, side, RIG_QPN(0),
			  psn & 0xffffff);
	if (p->other)
		rig_fault(&rig, "%s,qpn=%u", p->other, RIG_QPN(0));
	n += work_bystanders(w + n, 1, 4 * work_slot(LEN));
	running = false; /* if this fails, the next case starts with a new rig */
	tally(&t);
	work_run(&rig, w, n, LIMIT, c->name);
	/* late packets */
	rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 150000),
		  "run");
	settle();
	for (size_t i = 0; i < 2; i++) {
		struct urdma_eh_cqe cqe;

		assert_int_equal(urdma_eh_poll_cq(&rig.side[i].send_cq, &cqe, 1), 0);
		assert_int_equal(urdma_eh_poll_cq(&rig.side[i].recv_cq, &cqe, 1), 0);
	}
	tally_since(&t);
	urdma_faults_clear(rig.faults);
	/* one ACK may stand for several packets, so not each one existed and could be hit */
	if (faults() - before < (p->answer && class_of(c->opcode) == STREAM ? 0 : hits))
		fail_msg("%llu faults happened, which has to be %u",
			 (unsigned long long)(faults() - before), hits);
	expect("sequence NAKs", t.nak_seq, p->naks, c->alone && last_packet);
	expect("time-outs", t.timeouts, p->timeouts, c->alone);
	expect("gaps in READ responses", t.gaps, p->gaps, c->alone);
	assert_int_equal(t.nak_rnr, 0);
	assert_int_equal(t.retry_exc, 0);
	running = true;
}

/* The verdict of the wire checker over all cases so far. */
static void verdict(void **state)
{
	(void)state;
	if (!running)
		skip();
	running = false;
	judge_end(&judge, "single faults");
	rig_stop(&rig);
}

/* ---- SEND with invalidate under loss ------------------------------------------------------- */

static void send_inv(void **state)
{
	static const char *const fault[] = { "drop,side=0,op=send_first",
					     "drop,side=0,op=send_last_inv",
					     "dup,side=0,op=send_last_inv",
					     "dup,side=0,op=send_last_inv,ns=50000",
					     "drop,side=1,op=acknowledge",
					     "drop,side=1,op=acknowledge,count=2",
					     "corrupt,side=0,op=send_last_inv,byte=-1" };
	struct urdma_eh_mr mr;

	(void)state;
	enter(1, NULL);
	assert_int_equal(
		urdma_eh_create_mr_kind(rig.side[1].eh, 10, 1, RIG_PD, URDMA_MRK_FAST, &mr), 0);
	for (unsigned int i = 0; i < COUNT(fault); i++) {
		struct work w = { .opcode = URDMA_WR_SEND_INV, .len = LEN, .seed = i };
		struct urdma_eh_cqe cqe;

		assert_int_equal(urdma_eh_put_reg_mr(&rig.side[1].qp[0], &mr, (uint8_t)(2 + i),
						     URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE,
						     rig.side[1].buffer + (1u << 20), 4096, 0x1000,
						     1, 12, true),
				 0);
		urdma_eh_ring_sq(&rig.side[1].qp[0]);
		rig_check(&rig, urdma_eh_next_cqe(&rig.side[1].send_cq, &cqe, LIMIT), "REG_MR");
		assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
		w.inv = mr.key;
		rig_fault(&rig, "%s", fault[i]);
		work_run(&rig, &w, 1, LIMIT, fault[i]);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 50000),
			  "run");
		urdma_faults_clear(rig.faults);
		assert_int_equal(faults(), i + 1 + (i > 4));
	}
	assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	judge_end(&judge, "SEND with invalidate");
	rig_stop(&rig);
	running = false;
}

/*
 * Local operations are not repeated when messages around them are sent again: to register a region
 * twice, or invalidate it twice, would be an error.
 */
static void local_operations(void **state)
{
	(void)state;
	enter(1, NULL);
	for (unsigned int nth = 1; nth < 12; nth++) {
		struct rig_side *side = &rig.side[0];
		struct work w[6];
		struct urdma_eh_mr mr;
		struct urdma_eh_cqe cqe;

		assert_int_equal(
			urdma_eh_create_mr_kind(side->eh, 10, 1, RIG_PD, URDMA_MRK_FAST, &mr), 0);
		rig_fault(&rig, "drop,side=0,nth=%u", nth);
		for (unsigned int i = 0; i < 6; i++) {
			w[i] = (struct work){ .opcode = i % 2 ? URDMA_WR_SEND : URDMA_WR_WRITE,
					      .len = 2000,
					      .seed = nth * 8 + i,
					      .at = i * work_slot(2000) };
			work_put(&rig, &w[i]);
			if (i == 1 || i == 3)
				assert_int_equal(urdma_eh_put_reg_mr(&side->qp[0], &mr,
								     (uint8_t)(2 + i),
								     URDMA_ACC_REMOTE_READ,
								     side->buffer + (1u << 20),
								     4096, 0x1000, 1, 12, true),
						 0);
			if (i == 2 || i == 4)
				assert_int_equal(urdma_eh_put_local_inv(&side->qp[0], mr.key, true),
						 0);
		}
		work_ring(&rig, w, 6);
		for (unsigned int i = 0; i < 10; i++) {
			rig_check(&rig, urdma_eh_next_cqe(&side->send_cq, &cqe, LIMIT), "send CQE");
			assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
			assert_int_equal(cqe.wqe, (10 * (nth - 1) + i) & 0xffff);
		}
		for (unsigned int i = 0; i < 6; i++) {
			if (work_takes_recv(w[i].opcode)) {
				rig_check(&rig,
					  urdma_eh_next_cqe(&rig.side[1].recv_cq, &cqe, LIMIT),
					  "receive CQE");
				work_check_recv(&rig, &w[i], &cqe);
			}
			work_check_memory(&rig, &w[i]);
		}
		urdma_faults_clear(rig.faults);
		assert_int_equal(faults(), nth);
		assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	}
	judge_end(&judge, "local operations");
	rig_stop(&rig);
	running = false;
}

/* ---- time ---------------------------------------------------------------------------------- */

/* When a port sent frames of an opcode, and when it received them. */
#define MAX_MOMENTS 64u
struct moments {
	uint64_t ns[2][MAX_MOMENTS]; /* inbound, outbound */
	unsigned int n[2];
	uint8_t opcode[2]; /* the opcode to look for, the first of a range of one */
};

static void note_moment(void *ctx, uint64_t ns, const struct urdma_eth_frame *frame, bool outbound)
{
	struct moments *m = ctx;
	struct urdma_roce r;

	if (!urdma_roce_parse(frame->data, frame->len, &r) || r.opcode != m->opcode[outbound] ||
	    m->n[outbound] == MAX_MOMENTS)
		return;
	m->ns[outbound][m->n[outbound]++] = ns;
}

static void watch(unsigned int side, struct moments *m, uint8_t inbound, uint8_t outbound)
{
	struct urdma_eth_port *port = urdma_cosim_port(rig.cosim, side);

	judge_drop(&judge);
	memset(m, 0, sizeof(*m));
	m->opcode[0] = inbound;
	m->opcode[1] = outbound;
	assert_int_equal(urdma_eth_port_tap(port, note_moment, m), 0);
}

static void unwatch(unsigned int side, struct moments *m)
{
	urdma_eth_port_untap(urdma_cosim_port(rig.cosim, side), note_moment, m);
}

static unsigned int wait_status(unsigned int side)
{
	struct urdma_eh_cqe cqe;

	rig_check(&rig, urdma_eh_next_cqe(&rig.side[side].send_cq, &cqe, UINT64_C(100000000000)),
		  "wait for the end of retries");
	return cqe.status;
}

static void post_write(uint32_t len)
{
	struct urdma_eh_sge sge = { (uintptr_t)rig.side[0].buffer, len, rig.side[0].mr.key };
	struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
				    .signaled = true,
				    .raddr = (uintptr_t)rig.side[1].buffer,
				    .rkey = rig.side[1].mr.key,
				    .sge = &sge,
				    .n_sge = 1 };

	assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0], &wr), 0);
}

/* Nothing arrives: the message is sent retry + 1 times, each time-out within its bounds; then QP
 * and WQE fail. */
static void retries_used_up(void **state)
{
	static const unsigned int timeout[] = { 1, 2, 4, 6, 8, 11, 14, 18 };

	(void)state;
	for (unsigned int i = 0; i < COUNT(timeout); i++) {
		if (4096ull << timeout[i] > rig_longest_wait())
			break;

		struct urdma_eh_conn conn;
		struct urdma_eh_event ev[8];
		struct moments m;
		struct tally t;
		double least = 4096.0 * (1u << timeout[i]);

		urdma_eh_conn_defaults(&conn, MTU);
		conn.timeout = timeout[i];
		conn.retry = i % 8;
		enter(1, &conn);
		watch(0, &m, 0x11, 0x0a);
		tally(&t);
		rig_fault(&rig, "drop,side=0,count=all");
		post_write(100);
		post_write(100);
		assert_int_equal(wait_status(0), URDMA_WC_RETRY_EXC_ERR);
		assert_int_equal(wait_status(0), URDMA_WC_FLUSH_ERR);
		settle();
		unwatch(0, &m);
		assert_int_equal(rig_qp_state(&rig.side[0].qp[0]), URDMA_QPS_ERR);
		assert_int_equal(rig_qp_state(&rig.side[1].qp[0]), URDMA_QPS_RTS);
		tally_since(&t);
		assert_int_equal(t.retry_exc, 1);
		/* the first transmission has two packets, one per message, and so has each
		 * repetition */
		if (m.n[1] != 2 * (conn.retry + 1))
			fail_msg("time-out %u, retry %u: %u packets were sent", timeout[i],
				 conn.retry, m.n[1]);
		for (unsigned int k = 2; k < m.n[1]; k += 2) {
			double gap = (double)(m.ns[1][k] - m.ns[1][k - 2]);

			if (gap < least || gap > 4 * least + 20000)
				fail_msg("time-out %u: sent again after %.0f ns", timeout[i], gap);
		}
		while (urdma_eh_eq_poll(rig.side[0].eh, 0, ev, 8, true))
			;
		leave();
	}
}

/* Time-out 0: nothing is sent again without a reason; a later packet reveals the gap. */
static void no_timeout(void **state)
{
	struct urdma_eh_conn conn;
	struct urdma_eh_cqe cqe;
	struct moments m;

	(void)state;
	urdma_eh_conn_defaults(&conn, MTU);
	conn.timeout = 0;
	enter(1, &conn);
	watch(0, &m, 0x11, 0x0a);
	rig_fault(&rig, "drop,side=0");
	post_write(100);
	rig_check(&rig,
		  urdma_cosim_run_until(
			  rig.cosim,
			  urdma_cosim_now(rig.cosim) +
				  (rig_longest_wait() == UINT64_MAX ? 1000000000 : 500000)),
		  "run");
	assert_int_equal(m.n[1], 1);
	assert_false(urdma_eh_cq_ready(&rig.side[0].send_cq));
	post_write(100);
	for (unsigned int i = 0; i < 2; i++) {
		rig_check(&rig, urdma_eh_next_cqe(&rig.side[0].send_cq, &cqe, LIMIT), "WRITE");
		assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
	}
	unwatch(0, &m);
	rig_stop(&rig);
	running = false;
}

/* ---- RNR ----------------------------------------------------------------------------------- */

/* Nanoseconds of each code of the RNR NAK timer field (table 45 of the specification). */
static const uint32_t rnr_ns[32] = {
	655360000, 10000,    20000,    30000,	  40000,     60000,	80000,	   120000,
	160000,	   240000,   320000,   480000,	  640000,    960000,	1280000,   1920000,
	2560000,   3840000,  5120000,  7680000,	  10240000,  15360000,	20480000,  30720000,
	40960000,  61440000, 81920000, 122880000, 163840000, 245760000, 327680000, 491520000,
};

static void put_rnr(struct work *w, unsigned int opcode, uint32_t len, uint32_t seed)
{
	*w = (struct work){ .opcode = opcode, .len = len, .seed = seed, .late_recv = true };
	work_put(&rig, w);
	urdma_eh_ring_sq(&rig.side[0].qp[0]);
}

static void give_recv(struct work *w)
{
	work_put_recv(&rig, w);
	urdma_eh_ring_rq(&rig.side[1].qp[0]);
}

/* Nothing is sent again before the timer ends, and soon after it is: each code. */
static void rnr_timers(void **state)
{
	(void)state;
	for (unsigned int code = 0; code < 32; code += code < 16 ? 1 : 5) {
		if (rnr_ns[code] > rig_longest_wait())
			continue;

		struct urdma_eh_conn conn;
		struct moments m;
		struct work w;

		urdma_eh_conn_defaults(&conn, MTU);
		conn.min_rnr = code;
		conn.timeout = 1; /* expires while the RNR timer runs */
		conn.rnr_retry = 6;
		enter(1, &conn);
		watch(0, &m, 0x11, 0x04);
		put_rnr(&w, URDMA_WR_SEND, 100, code);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) +
								   rnr_ns[code] / 4 * 5 / 2 + 4000),
			  "run");
		if (m.n[0] < 2 || m.n[1] < 3)
			fail_msg("code %u: %u RNR NAKs, sent %u times", code, m.n[0], m.n[1]);
		give_recv(&w);
		work_finish(&rig, &w, 1, UINT64_C(1000000000), "after RNR");
		for (unsigned int k = 0; k + 1 < m.n[1] && k < m.n[0]; k++) {
			double gap = (double)(m.ns[1][k + 1] - m.ns[0][k]);

			if (gap < rnr_ns[code] || gap > 1.3 * rnr_ns[code] + 20000)
				fail_msg("code %u: sent again after %.0f ns instead of %u", code,
					 gap, rnr_ns[code]);
		}
		unwatch(0, &m);
		rig_stop(&rig);
		running = false;
	}
}

static void rnr_used_up(void **state)
{
	(void)state;
	for (unsigned int retry = 0; retry < 7; retry++) {
		struct urdma_eh_conn conn;
		struct urdma_eh_cqe cqe;
		struct tally t;
		struct work w;

		urdma_eh_conn_defaults(&conn, MTU);
		conn.rnr_retry = retry;
		enter(1, &conn);
		tally(&t);
		put_rnr(&w, retry % 2 ? URDMA_WR_WRITE_IMM : URDMA_WR_SEND, 2 * LEN, retry);
		assert_int_equal(wait_status(0), URDMA_WC_RNR_RETRY_EXC_ERR);
		settle();
		assert_int_equal(rig_qp_state(&rig.side[0].qp[0]), URDMA_QPS_ERR);
		assert_int_equal(rig_qp_state(&rig.side[1].qp[0]), URDMA_QPS_RTS);
		assert_false(urdma_eh_poll_cq(&rig.side[1].recv_cq, &cqe, 1));
		tally_since(&t);
		assert_int_equal(t.nak_rnr, retry + 1);
		assert_int_equal(t.rnr_exc, 1);
		judge_end(&judge, "RNR retries");
		leave();
	}
}

/* Without end; with more messages after it; with the NAK lost; with other losses in between. */
static void rnr_recovers(void **state)
{
	static const char *const fault[] = { NULL,
					     "drop,side=1,aeth=rnr",
					     "drop,side=1,aeth=rnr,nth=2,count=2",
					     "dup,side=1,aeth=rnr,count=3",
					     "delay,side=1,aeth=rnr,ns=300000",
					     "drop,side=0,nth=6,count=3",
					     "drop,side=0,p=10",
					     "drop,side=1,p=20" };

	(void)state;
	enter(1, NULL);
	for (unsigned int i = 0; i < COUNT(fault); i++) {
		static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE,
						       URDMA_WR_WRITE_IMM, URDMA_WR_READ,
						       URDMA_WR_SEND_IMM };
		struct work w[COUNT(opcode)];

		if (fault[i])
			rig_fault(&rig, "%s", fault[i]);
		for (unsigned int k = 0; k < COUNT(opcode); k++) {
			w[k] = (struct work){ .opcode = opcode[k],
					      .len = 2000,
					      .seed = i * 8 + k,
					      .late_recv = true,
					      .at = k * work_slot(2000) };
			work_put(&rig, &w[k]);
		}
		urdma_eh_ring_sq(&rig.side[0].qp[0]);
		for (unsigned int k = 0; k < COUNT(opcode); k++) {
			rig_check(&rig,
				  urdma_cosim_run_until(rig.cosim,
							urdma_cosim_now(rig.cosim) + 60000),
				  "run");
			if (work_takes_recv(opcode[k]))
				give_recv(&w[k]);
		}
		work_finish(&rig, w, COUNT(opcode), UINT64_C(200000000), "RNR");
		urdma_faults_clear(rig.faults);
	}
	settle();
	judge_end(&judge, "RNR");
	rig_stop(&rig);
	running = false;
}

/* ---- READs that wait ----------------------------------------------------------------------- */

/*
 * Sixteen READs of several packets outstanding each way. When the requester goes back it repeats
 * READs whose first answer still waits at the responder. None is left out, and all come in order.
 */
static void many_reads(void **state)
{
	enum { N = 200 };
	struct work *w = test_calloc(N, sizeof(*w));

	(void)state;
	for (unsigned int round = 0; round < 3; round++) {
		enter(1, NULL);
		rig_fault(&rig, "drop,p=%u", 1 + round);
		for (unsigned int i = 0; i < N; i++)
			w[i] = (struct work){ .opcode = URDMA_WR_READ,
					      .from = i % 2,
					      .len = 8192,
					      .seed = i,
					      .at = i * work_slot(8192) };
		work_run(&rig, w, N, 10 * LIMIT, "READs both ways");
		settle();
		for (unsigned int n = 0; n < 2; n++)
			assert_int_equal(urdma_eh_counter(rig.side[n].eh, URDMA_CNT_RX_READ_DROP),
					 0);
		judge_end(&judge, "READs both ways");
		rig_stop(&rig);
		running = false;
	}
	test_free(w);
}

/* ---- counters of what the wire has changed ------------------------------------------------- */

static void corrupt_frames_are_counted(void **state)
{
	struct work w[40];
	struct tally t;

	(void)state;
	enter(1, NULL);
	tally(&t);
	rig_fault(&rig, "corrupt,byte=-2,p=5");
	rig_fault(&rig, "fcs,p=5");
	rig_fault(&rig, "ecn,p=30");
	for (unsigned int i = 0; i < 40; i++)
		w[i] = (struct work){ .opcode = i / 2 % 3 ? URDMA_WR_WRITE : URDMA_WR_READ,
				      .from = i % 2,
				      .len = 6000,
				      .seed = i,
				      .at = i * work_slot(6000) };
	work_run(&rig, w, 40, 10 * LIMIT, "corruption");
	settle();
	tally_since(&t);
	/* a frame that both rules hit has a bad FCS, and only the FCS error is counted */
	assert_true(t.icrc > 0 && t.mac_err > 0);
	assert_int_equal(t.mac_err, rig_fault_count(&rig, 0, URDMA_FAULT_FCS) +
					    rig_fault_count(&rig, 1, URDMA_FAULT_FCS));
	assert_true(t.icrc <= rig_fault_count(&rig, 0, URDMA_FAULT_CORRUPT) +
				      rig_fault_count(&rig, 1, URDMA_FAULT_CORRUPT));
	judge_end(&judge, "corruption");
	rig_stop(&rig);
	running = false;
}

/* ---- all of it ----------------------------------------------------------------------------- */

#define MAX_TESTS 1024u

static struct CMUnitTest test[MAX_TESTS];
static unsigned int n_tests;

static void add(const char *name, CMUnitTestFunction fn, void *state, int argc, char **argv)
{
	if (!rig_wanted(name, argc - 1, argv + 1))
		return;
	test[n_tests++] =
		(struct CMUnitTest){ .name = name, .test_func = fn, .initial_state = state };
}

int main(int argc, char **argv)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND,	     URDMA_WR_SEND_IMM,
					       URDMA_WR_WRITE,	     URDMA_WR_WRITE_IMM,
					       URDMA_WR_READ,	     URDMA_WR_ATOMIC_CS,
					       URDMA_WR_ATOMIC_FA,   URDMA_WR_FLUSH,
					       URDMA_WR_ATOMIC_WRITE };
	static struct one_case one[COUNT(opcode) * COUNT(patterns) * 2];
	struct one_case *c = one;
	int ret;

	for (unsigned int o = 0; o < COUNT(opcode); o++) {
		for (unsigned int p = 0; p < 2 * COUNT(patterns); p++) {
			if (!(patterns[p / 2].of & class_of(opcode[o])))
				continue;
			c->pattern = &patterns[p / 2];
			c->opcode = opcode[o];
			c->alone = p % 2;
			snprintf(c->name, sizeof(c->name), "%s: %s%s", work_name(opcode[o]),
				 c->pattern->name, c->alone ? ", nothing behind" : "");
			if (rig_left_out(c->name, 9))
				continue;
			add(c->name, one_fault, c, argc, argv);
			c++;
		}
	}
	if (n_tests)
		add("the wire checker's verdict", verdict, NULL, 1, NULL);
	add("SEND_INV under loss", send_inv, NULL, argc, argv);
	add("local operations are done once", local_operations, NULL, argc, argv);
	add("retries used up", retries_used_up, NULL, argc, argv);
	add("no time-out", no_timeout, NULL, argc, argv);
	add("RNR timers", rnr_timers, NULL, argc, argv);
	add("RNR retries used up", rnr_used_up, NULL, argc, argv);
	add("RNR recovers", rnr_recovers, NULL, argc, argv);
	add("sixteen READs each way", many_reads, NULL, argc, argv);
	add("corrupt frames are counted", corrupt_frames_are_counted, NULL, argc, argv);
	ret = _cmocka_run_group_tests("engine/loss", test, n_tests, NULL, NULL);
	leave();
	return ret;
}
