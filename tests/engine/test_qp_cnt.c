// SPDX-License-Identifier: Apache-2.0
/*
 * Counters of QPs: the counts of a set are compared with the packets of both ports, with the CQEs,
 * and with the counters of the port.
 *
 * A failure says which counter of which set is wrong. SEED in the environment changes what is
 * random: the faults of the wire. Everything else is deterministic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "seed.h"
#include "trace.h"
#include "work.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MTU	 3u /* 1024 */
#define MTU_SIZE 1024u
#define TIMEOUT	 6u /* 262 us */
#define LIMIT	 20000000u
#define QPS	 6u
#define ACK_OP	 0x11

static struct rig rig;
static struct trace trace;

/* The set of each QP of a test. */
static uint32_t sets[2][QPS];

static void config(struct rig_config *c, unsigned int qps)
{
	rig_defaults(c);
	c->qps = qps;
	c->mtu = MTU;
	c->log_stride = 8;
	c->faults = true;
	c->fault_seed = test_seed(1);
	c->conn.timeout = TIMEOUT;
}

static void enter_as(const struct rig_config *c)
{
	rig_start(&rig, c);
	trace_start(&trace, &rig);
	memset(sets, 0, sizeof(sets));
}

static void enter(unsigned int qps)
{
	struct rig_config c;

	config(&c, qps);
	enter_as(&c);
}

static void leave(void)
{
	trace_stop(&trace);
	trace_free(&trace);
	rig_stop(&rig);
}

static void settle(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
}

static void set_cnt(unsigned int side, unsigned int i, uint32_t set)
{
	assert_int_equal(urdma_eh_set_qp_cnt(&rig.side[side].qp[i], set), 0);
	sets[side][i] = set;
}

static void query(unsigned int side, uint32_t set, uint64_t v[URDMA_QCNT_N])
{
	assert_int_equal(urdma_eh_query_cnt(rig.side[side].eh, set, v), 0);
}

static uint64_t port(unsigned int side, unsigned int counter)
{
	return urdma_eh_counter(rig.side[side].eh, counter);
}

static const char *name_of(unsigned int counter)
{
	static const char *const name[URDMA_QCNT_N] = {
		"RX_PKTS",    "RX_BYTES",   "RX_SEND",	 "RX_WRITE",   "RX_READ",    "RX_ATOMIC",
		"RX_DUP",     "RX_SEQ_ERR", "RX_NO_WQE", "RESP_ERR",   "RESP_FLUSH", "TX_PKTS",
		"TX_BYTES",   "TX_RETRANS", "RX_ACK",	 "RX_NAK_SEQ", "RX_NAK_RNR", "RX_READ_GAP",
		"TX_TIMEOUT", "REQ_ERR",    "REQ_FLUSH",
	};

	return name[counter];
}

/* Compares a set with pairs of counter and value; all other counters have to be 0. -1 ends the
 * list. */
static void check_set(int line, unsigned int side, uint32_t set, ...)
{
	uint64_t v[URDMA_QCNT_N], want[URDMA_QCNT_N] = { 0 };
	va_list ap;
	int c;

	va_start(ap, set);
	while ((c = va_arg(ap, int)) >= 0)
		want[c] = va_arg(ap, unsigned int);
	va_end(ap);
	query(side, set, v);
	for (unsigned int i = 0; i < URDMA_QCNT_N; i++)
		if (v[i] != want[i])
			fail_msg("line %d: side %u, set %u: %s is %llu instead of %llu", line, side,
				 set, name_of(i), (unsigned long long)v[i],
				 (unsigned long long)want[i]);
}
#define CHECK_SET(side, set, ...) check_set(__LINE__, side, set, __VA_ARGS__, -1)

/* ---- the wire -------------------------------------------------------------------------------- */

/* QPs have the same number on both sides. */
static unsigned int qp_of(const struct trace_packet *p)
{
	assert_in_range(p->qpn, RIG_QPN(0), RIG_QPN(QPS - 1));
	return p->qpn - RIG_QPN(0);
}

/* What the ports saw of the QPs with a given set: the expected counts of that set. */
static void count_wire(unsigned int side, uint32_t set, uint64_t v[URDMA_QCNT_N])
{
	for (size_t i = 0; i < trace.n; i++) {
		const struct trace_packet *p = &trace.packet[i];

		if (p->bad || p->side != side || sets[side][qp_of(p)] != set)
			continue;
		if (p->out) {
			v[URDMA_QCNT_TX_PKTS]++;
			v[URDMA_QCNT_TX_BYTES] += p->len;
		} else if (p->opcode == ACK_OP) {
			v[URDMA_QCNT_RX_ACK]++;
		} else {
			v[URDMA_QCNT_RX_PKTS]++;
			v[URDMA_QCNT_RX_BYTES] += p->len;
		}
	}
}

static void check_wire(unsigned int side, uint32_t set)
{
	static const unsigned int counters[] = { URDMA_QCNT_RX_PKTS, URDMA_QCNT_RX_BYTES,
						 URDMA_QCNT_TX_PKTS, URDMA_QCNT_TX_BYTES,
						 URDMA_QCNT_RX_ACK };
	uint64_t v[URDMA_QCNT_N], want[URDMA_QCNT_N] = { 0 };

	query(side, set, v);
	count_wire(side, set, want);
	/* the NIC does not know the QP of a packet for which it had no room */
	if (port(side, URDMA_CNT_RX_DROP_FULL))
		memcpy(want, v, 2 * sizeof(*v));
	for (unsigned int i = 0; i < COUNT(counters); i++)
		if (v[counters[i]] != want[counters[i]])
			fail_msg("side %u, set %u: %s is %llu, the port saw %llu", side, set,
				 name_of(counters[i]), (unsigned long long)v[counters[i]],
				 (unsigned long long)want[counters[i]]);
	assert_true(v[URDMA_QCNT_TX_PKTS] && v[URDMA_QCNT_RX_PKTS] + v[URDMA_QCNT_RX_ACK]);
}

/* Messages received, by the counter of the QP's set that counts them. */
static int kind_of(unsigned int opcode)
{
	switch (opcode) {
	case URDMA_WR_WRITE:
	case URDMA_WR_WRITE_IMM:
	case URDMA_WR_ATOMIC_WRITE:
		return URDMA_QCNT_RX_WRITE;
	case URDMA_WR_READ:
		return URDMA_QCNT_RX_READ;
	case URDMA_WR_ATOMIC_CS:
	case URDMA_WR_ATOMIC_FA:
		return URDMA_QCNT_RX_ATOMIC;
	case URDMA_WR_FLUSH:
		return -1;
	}
	return URDMA_QCNT_RX_SEND;
}

static void check_messages(const struct work *w, size_t n, unsigned int side, uint32_t set)
{
	uint64_t v[URDMA_QCNT_N], want[URDMA_QCNT_N] = { 0 };

	for (size_t i = 0; i < n; i++)
		if (w[i].from != side && sets[side][w[i].pair] == set && kind_of(w[i].opcode) >= 0)
			want[kind_of(w[i].opcode)]++;
	query(side, set, v);
	for (unsigned int c = URDMA_QCNT_RX_SEND; c <= URDMA_QCNT_RX_ATOMIC; c++)
		if (v[c] != want[c])
			fail_msg("side %u, set %u: %s is %llu instead of %llu", side, set,
				 name_of(c), (unsigned long long)v[c], (unsigned long long)want[c]);
}

/* Each QP has a set: the sums over all sets equal the port's counters. */
static void check_port(unsigned int side)
{
	static const struct {
		unsigned int qp, port;
	} same[] = {
		{ URDMA_QCNT_RX_DUP, URDMA_CNT_RX_DUP },
		{ URDMA_QCNT_RX_SEQ_ERR, URDMA_CNT_RX_SEQ_ERR },
		{ URDMA_QCNT_TX_PKTS, URDMA_CNT_TX_RDMA_PKTS },
		{ URDMA_QCNT_TX_RETRANS, URDMA_CNT_TX_RETRANS },
		{ URDMA_QCNT_TX_TIMEOUT, URDMA_CNT_TX_TIMEOUT },
		{ URDMA_QCNT_RX_READ_GAP, URDMA_CNT_RX_READ_GAP },
		{ URDMA_QCNT_RX_NO_WQE, URDMA_CNT_TX_NAK_RNR },
	};
	uint64_t sum[URDMA_QCNT_N] = { 0 }, v[URDMA_QCNT_N];
	bool done[256] = { false };

	for (unsigned int i = 0; i < QPS; i++) {
		if (done[sets[side][i]])
			continue;
		done[sets[side][i]] = true;
		query(side, sets[side][i], v);
		for (unsigned int c = 0; c < URDMA_QCNT_N; c++)
			sum[c] += v[c];
	}
	assert_int_equal(port(side, URDMA_CNT_RX_NO_QP), 0);
	for (unsigned int i = 0; i < COUNT(same); i++)
		if (sum[same[i].qp] != port(side, same[i].port))
			fail_msg("side %u: %s of all sets is %llu, that of the port %llu", side,
				 name_of(same[i].qp), (unsigned long long)sum[same[i].qp],
				 (unsigned long long)port(side, same[i].port));
	assert_int_equal(sum[URDMA_QCNT_RX_ACK], port(side, URDMA_CNT_RX_ACK) +
							 port(side, URDMA_CNT_RX_NAK) +
							 port(side, URDMA_CNT_RX_NAK_RNR));
	assert_int_equal(sum[URDMA_QCNT_RX_PKTS] + sum[URDMA_QCNT_RX_ACK],
			 port(side, URDMA_CNT_RX_RDMA_PKTS));
	/* some of these may have had no effect */
	assert_true(sum[URDMA_QCNT_RX_NAK_SEQ] <= port(side, URDMA_CNT_RX_NAK));
	assert_true(sum[URDMA_QCNT_RX_NAK_RNR] <= port(side, URDMA_CNT_RX_NAK_RNR));
}

/*
 * All kinds of messages on a wire with all kinds of faults: each set counts what the ports saw of
 * its QPs, and the messages that these received.
 */
static void test_wire(void **state)
{
	static const uint32_t given[2][QPS] = { { 1, 2, 3, 3, 255, 128 }, { 9, 9, 9, 10, 11, 0 } };
	static const unsigned int opcode[] = { URDMA_WR_SEND,	   URDMA_WR_WRITE,
					       URDMA_WR_READ,	   URDMA_WR_ATOMIC_FA,
					       URDMA_WR_WRITE_IMM, URDMA_WR_ATOMIC_WRITE,
					       URDMA_WR_SEND_IMM,  URDMA_WR_FLUSH,
					       URDMA_WR_ATOMIC_CS };
	static struct work w[QPS * 20];
	uint64_t random = test_seed(7);

	(void)state;
	enter(QPS);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < QPS; i++)
			set_cnt(side, i, given[side][i]);
	rig_fault(&rig, "drop,p=2");
	rig_fault(&rig, "dup,ns=4000,p=4");
	rig_fault(&rig, "reorder,p=2");
	rig_fault(&rig, "corrupt,p=1,byte=-1"); /* the ICRC: another byte may make it no RoCE */
	for (unsigned int i = 0; i < COUNT(w); i++) {
		unsigned int op = opcode[rig_draw(&random, COUNT(opcode))];
		uint32_t len = rig_draw_len(&random, MTU_SIZE, 6000);

		if (op == URDMA_WR_ATOMIC_FA || op == URDMA_WR_ATOMIC_CS ||
		    op == URDMA_WR_ATOMIC_WRITE)
			len = 8;
		w[i] = (struct work){ .opcode = op,
				      .len = len,
				      .seed = 300 + i,
				      .pair = i % QPS,
				      .from = rig_draw(&random, 2),
				      .at = i * work_slot(6000) };
	}
	work_run(&rig, w, COUNT(w), 20 * LIMIT, "faults");
	urdma_faults_clear(rig.faults);
	settle();
	for (unsigned int side = 0; side < 2; side++) {
		for (unsigned int i = 0; i < QPS; i++) {
			check_wire(side, given[side][i]);
			check_messages(w, COUNT(w), side, given[side][i]);
		}
		check_port(side);
	}
	leave();
}

/* ---- one kind of fault at a time ---------------------------------------------------------------
 */

static uint32_t next_psn(unsigned int side, unsigned int pair)
{
	struct urdma_eh_qp_info info;

	assert_int_equal(urdma_eh_qp_info(&rig.side[side].qp[pair], &info), 0);
	return info.sq_psn;
}

/* Sends the same message from side 0 on pairs 0 and 1, which have sets 1 and 2 on both sides. */
static void two_messages(unsigned int opcode, uint32_t len)
{
	struct work w[2];

	for (unsigned int i = 0; i < 2; i++) {
		w[i] = (struct work){ .opcode = opcode,
				      .len = len,
				      .seed = 5 + i,
				      .pair = i,
				      .at = i * work_slot(len) };
		for (unsigned int side = 0; side < 2; side++)
			set_cnt(side, i, i + 1);
	}
	work_run(&rig, w, 2, LIMIT, work_name(opcode));
	settle();
}

static uint32_t acks(unsigned int side, unsigned int pair)
{
	return (uint32_t)(trace_count(&trace, side, false, TRACE_ACK, RIG_QPN(pair), -1) +
			  trace_count(&trace, side, false, TRACE_NAK_SEQ, RIG_QPN(pair), -1) +
			  trace_count(&trace, side, false, TRACE_RNR, RIG_QPN(pair), -1) +
			  trace_count(&trace, side, false, TRACE_NAK_OTHER, RIG_QPN(pair), -1));
}

static uint32_t requests(unsigned int side, bool out, unsigned int pair)
{
	return (uint32_t)trace_count(&trace, side, out, TRACE_REQUEST, RIG_QPN(pair), -1);
}

/* A lost packet in the middle: pair 0 has a gap, a NAK and packets sent again; pair 1 nothing. */
static void test_gap(void **state)
{
	const uint32_t len = 20 * MTU_SIZE;

	(void)state;
	enter(2);
	rig_fault(&rig, "drop,side=0,qpn=%u,psn=%u", RIG_QPN(0), next_psn(0, 0) + 5);
	two_messages(URDMA_WR_SEND, len);
	CHECK_SET(0, 2, URDMA_QCNT_TX_PKTS, 20, URDMA_QCNT_TX_BYTES, len, URDMA_QCNT_RX_ACK,
		  acks(0, 1));
	CHECK_SET(1, 2, URDMA_QCNT_RX_PKTS, 20, URDMA_QCNT_RX_BYTES, len, URDMA_QCNT_RX_SEND, 1,
		  URDMA_QCNT_TX_PKTS, acks(0, 1));
	CHECK_SET(0, 1, URDMA_QCNT_TX_PKTS, requests(0, true, 0), URDMA_QCNT_TX_BYTES,
		  requests(0, true, 0) * MTU_SIZE, URDMA_QCNT_TX_RETRANS, requests(0, true, 0) - 20,
		  URDMA_QCNT_RX_ACK, acks(0, 0), URDMA_QCNT_RX_NAK_SEQ, 1);
	CHECK_SET(1, 1, URDMA_QCNT_RX_PKTS, requests(1, false, 0), URDMA_QCNT_RX_BYTES,
		  requests(1, false, 0) * MTU_SIZE, URDMA_QCNT_RX_SEND, 1, URDMA_QCNT_RX_SEQ_ERR,
		  (unsigned int)port(1, URDMA_CNT_RX_SEQ_ERR), URDMA_QCNT_TX_PKTS, acks(0, 0));
	assert_true(port(1, URDMA_CNT_RX_SEQ_ERR) > 0);
	leave();
}

/* The last packet is lost: a time-out. The ACK is lost: a time-out, and a duplicate. */
static void test_timeout(void **state)
{
	(void)state;
	enter(2);
	rig_fault(&rig, "drop,side=0,qpn=%u,psn=%u", RIG_QPN(0), next_psn(0, 0));
	two_messages(URDMA_WR_WRITE, 100);
	CHECK_SET(0, 1, URDMA_QCNT_TX_PKTS, 2, URDMA_QCNT_TX_BYTES, 200, URDMA_QCNT_TX_RETRANS, 1,
		  URDMA_QCNT_TX_TIMEOUT, 1, URDMA_QCNT_RX_ACK, 1);
	CHECK_SET(1, 1, URDMA_QCNT_RX_PKTS, 1, URDMA_QCNT_RX_BYTES, 100, URDMA_QCNT_RX_WRITE, 1,
		  URDMA_QCNT_TX_PKTS, 1);
	CHECK_SET(0, 2, URDMA_QCNT_TX_PKTS, 1, URDMA_QCNT_TX_BYTES, 100, URDMA_QCNT_RX_ACK, 1);
	leave();

	enter(2);
	rig_fault(&rig, "drop,side=1,qpn=%u,psn=%u", RIG_QPN(0), next_psn(0, 0));
	two_messages(URDMA_WR_SEND, 100);
	CHECK_SET(0, 1, URDMA_QCNT_TX_PKTS, 2, URDMA_QCNT_TX_BYTES, 200, URDMA_QCNT_TX_RETRANS, 1,
		  URDMA_QCNT_TX_TIMEOUT, 1, URDMA_QCNT_RX_ACK, 1);
	CHECK_SET(1, 1, URDMA_QCNT_RX_PKTS, 2, URDMA_QCNT_RX_BYTES, 200, URDMA_QCNT_RX_SEND, 1,
		  URDMA_QCNT_RX_DUP, 1, URDMA_QCNT_TX_PKTS, 2);
	leave();
}

/* A READ response is lost: an implied NAK. Both sides count the response's payload. */
static void test_read_gap(void **state)
{
	const uint32_t len = 20 * MTU_SIZE;
	uint32_t sent, came;

	(void)state;
	enter(2);
	rig_fault(&rig, "drop,side=1,qpn=%u,psn=%u,op=read_response_middle", RIG_QPN(0),
		  next_psn(0, 0) + 4);
	two_messages(URDMA_WR_READ, len);
	CHECK_SET(0, 2, URDMA_QCNT_TX_PKTS, 1, URDMA_QCNT_RX_PKTS, 20, URDMA_QCNT_RX_BYTES, len);
	CHECK_SET(1, 2, URDMA_QCNT_RX_PKTS, 1, URDMA_QCNT_RX_READ, 1, URDMA_QCNT_TX_PKTS, 20,
		  URDMA_QCNT_TX_BYTES, len);
	sent = (uint32_t)trace_count(&trace, 1, true, TRACE_RESPONSE, RIG_QPN(0), -1);
	came = (uint32_t)trace_count(&trace, 0, false, TRACE_RESPONSE, RIG_QPN(0), -1);
	assert_int_equal(came, sent - 1);
	CHECK_SET(0, 1, URDMA_QCNT_TX_PKTS, 2, URDMA_QCNT_TX_RETRANS, 1, URDMA_QCNT_RX_READ_GAP, 1,
		  URDMA_QCNT_RX_PKTS, came, URDMA_QCNT_RX_BYTES, came * MTU_SIZE);
	CHECK_SET(1, 1, URDMA_QCNT_RX_PKTS, 2, URDMA_QCNT_RX_READ, 1, URDMA_QCNT_RX_DUP, 1,
		  URDMA_QCNT_TX_PKTS, sent, URDMA_QCNT_TX_BYTES, sent * MTU_SIZE);
	leave();
}

/* No receive is posted at first: RNR NAKs. */
static void test_rnr(void **state)
{
	struct work w = { .opcode = URDMA_WR_SEND, .len = 200, .seed = 3, .late_recv = true };
	struct rig_config c;
	uint32_t n;

	(void)state;
	config(&c, 2);
	c.conn.min_rnr = 1; /* 10 us */
	c.conn.rnr_retry = 7;
	enter_as(&c);
	for (unsigned int side = 0; side < 2; side++)
		set_cnt(side, 0, 6);
	work_put(&rig, &w);
	work_ring(&rig, &w, 1);
	rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 15000),
		  "run");
	work_put_recv(&rig, &w);
	urdma_eh_ring_rq(&rig.side[1].qp[0]);
	work_finish(&rig, &w, 1, LIMIT, "late receive");
	settle();
	n = (uint32_t)trace_count(&trace, 1, true, TRACE_RNR, RIG_QPN(0), -1);
	assert_true(n >= 2);
	CHECK_SET(0, 6, URDMA_QCNT_TX_PKTS, n + 1, URDMA_QCNT_TX_BYTES, 200 * (n + 1),
		  URDMA_QCNT_TX_RETRANS, n, URDMA_QCNT_RX_NAK_RNR, n, URDMA_QCNT_RX_ACK, n + 1);
	CHECK_SET(1, 6, URDMA_QCNT_RX_PKTS, n + 1, URDMA_QCNT_RX_BYTES, 200 * (n + 1),
		  URDMA_QCNT_RX_SEND, 1, URDMA_QCNT_RX_NO_WQE, n, URDMA_QCNT_TX_PKTS, n + 1);
	leave();
}

/* ---- errors --------------------------------------------------------------------------------- */

static unsigned int drop_cqes(struct urdma_eh_cq *cq)
{
	struct urdma_eh_cqe cqe[16];
	unsigned int n = 0, got;

	while ((got = urdma_eh_poll_cq(cq, cqe, COUNT(cqe))))
		n += got;
	return n;
}

/*
 * The peer refuses a key: the message fails, three after it are flushed, and so are the two
 * receives of the peer. A SEND that is too long fails on both sides.
 */
static void test_errors(void **state)
{
	struct urdma_eh_sge from, to;

	(void)state;
	enter(2);
	from = (struct urdma_eh_sge){ (uintptr_t)rig.side[0].buffer, 64, rig.side[0].mr.key };
	to = (struct urdma_eh_sge){ (uintptr_t)rig.side[1].buffer, 32, rig.side[1].mr.key };
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < 2; i++)
			set_cnt(side, i, 1 + i);
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < 2; k++)
			assert_int_equal(urdma_eh_post_recv(&rig.side[1].qp[i], &to, 1), 0);
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int k = 0; k < 4; k++) {
			struct urdma_eh_send wr = { .opcode = i ? URDMA_WR_SEND : URDMA_WR_WRITE,
						    .signaled = true,
						    .raddr = (uintptr_t)rig.side[1].buffer,
						    .rkey = rig.side[1].mr.key ^ 1,
						    .fence = k,
						    .sge = &from,
						    .n_sge = 1 };

			assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[i], &wr), 0);
			if (!k)
				settle();
		}
	settle();
	assert_int_equal(drop_cqes(&rig.side[0].send_cq), 8);
	assert_int_equal(drop_cqes(&rig.side[1].recv_cq), 4);
	CHECK_SET(0, 1, URDMA_QCNT_TX_PKTS, 1, URDMA_QCNT_TX_BYTES, 64, URDMA_QCNT_RX_ACK, 1,
		  URDMA_QCNT_REQ_ERR, 1, URDMA_QCNT_REQ_FLUSH, 3);
	CHECK_SET(1, 1, URDMA_QCNT_RX_PKTS, 1, URDMA_QCNT_RX_BYTES, 64, URDMA_QCNT_RX_WRITE, 1,
		  URDMA_QCNT_TX_PKTS, 1, URDMA_QCNT_RESP_FLUSH, 2);
	CHECK_SET(0, 2, URDMA_QCNT_TX_PKTS, 1, URDMA_QCNT_TX_BYTES, 64, URDMA_QCNT_RX_ACK, 1,
		  URDMA_QCNT_REQ_ERR, 1, URDMA_QCNT_REQ_FLUSH, 3);
	CHECK_SET(1, 2, URDMA_QCNT_RX_PKTS, 1, URDMA_QCNT_RX_BYTES, 64, URDMA_QCNT_RX_SEND, 1,
		  URDMA_QCNT_TX_PKTS, 1, URDMA_QCNT_RESP_ERR, 1, URDMA_QCNT_RESP_FLUSH, 1);
	leave();
}

/* ---- UC, UD -----------------------------------------------------------------------------------
 */

/* UC: a lost packet loses its message; nothing is answered. */
static void test_uc(void **state)
{
	struct rig_config c;

	(void)state;
	config(&c, 2);
	c.type = URDMA_QPT_UC;
	enter_as(&c);
	for (unsigned int side = 0; side < 2; side++)
		set_cnt(side, 0, 4);
	rig_fault(&rig, "drop,side=0,qpn=%u,psn=%u", RIG_QPN(0), next_psn(0, 0) + 1);
	for (unsigned int i = 0; i < 2; i++) {
		struct urdma_eh_sge from = { (uintptr_t)rig.side[0].buffer, 3 * MTU_SIZE,
					     rig.side[0].mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
					    .signaled = true,
					    .raddr = (uintptr_t)rig.side[1].buffer,
					    .rkey = rig.side[1].mr.key,
					    .sge = &from,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0], &wr), 0);
	}
	settle();
	assert_int_equal(drop_cqes(&rig.side[0].send_cq), 2);
	CHECK_SET(0, 4, URDMA_QCNT_TX_PKTS, 6, URDMA_QCNT_TX_BYTES, 6 * MTU_SIZE);
	CHECK_SET(1, 4, URDMA_QCNT_RX_PKTS, 5, URDMA_QCNT_RX_BYTES, 5 * MTU_SIZE,
		  URDMA_QCNT_RX_WRITE, 2, URDMA_QCNT_RX_SEQ_ERR, 1);
	leave();
}

/* ---- sets come and go -------------------------------------------------------------------------
 */

static void one_message(unsigned int pair, unsigned int from, uint32_t seed)
{
	rig_message(&rig, pair, from, pair * 65536, 5000, seed);
	settle();
}

/* 5000 bytes are 5 packets, with 1 to 5 ACKs. */
#define PACKETS 5u

static uint64_t count(unsigned int side, uint32_t set, unsigned int counter)
{
	uint64_t v[URDMA_QCNT_N];

	query(side, set, v);
	return v[counter];
}

/*
 * A QP with set 0, one that gets another set and returns to the first, and sets that are cleared.
 */
static void test_give(void **state)
{
	(void)state;
	enter(2);
	assert_int_equal(urdma_eh_caps(rig.side[0].eh)->log_cnt_sets, 8);
	assert_true(urdma_eh_caps(rig.side[0].eh)->features & URDMA_RF_FEAT_QP_CNT);
	one_message(0, 0, 1);
	CHECK_SET(0, 1, -1, 0);
	set_cnt(0, 0, 1);
	one_message(0, 0, 2);
	one_message(1, 0, 3);
	assert_int_equal(count(0, 1, URDMA_QCNT_TX_PKTS), PACKETS);
	assert_int_equal(count(0, 1, URDMA_QCNT_TX_BYTES), 5000);
	set_cnt(0, 1, 1);
	one_message(1, 0, 4);
	assert_int_equal(count(0, 1, URDMA_QCNT_TX_PKTS), 2 * PACKETS);
	set_cnt(0, 0, 2);
	one_message(0, 0, 5);
	assert_int_equal(count(0, 1, URDMA_QCNT_TX_PKTS), 2 * PACKETS);
	assert_int_equal(count(0, 2, URDMA_QCNT_TX_PKTS), PACKETS);
	assert_int_equal(urdma_eh_clear_cnt(rig.side[0].eh, 1), 0);
	CHECK_SET(0, 1, -1, 0);
	assert_int_equal(count(0, 2, URDMA_QCNT_TX_PKTS), PACKETS);
	set_cnt(0, 1, 0);
	one_message(1, 0, 6);
	CHECK_SET(0, 1, -1, 0);
	set_cnt(0, 0, 0);
	one_message(0, 0, 7);
	assert_int_equal(count(0, 2, URDMA_QCNT_TX_PKTS), PACKETS);
	/* messages 1, 3, 6, 7 */
	assert_int_equal(count(0, 0, URDMA_QCNT_TX_PKTS), 4 * PACKETS);
	assert_int_equal(count(1, 0, URDMA_QCNT_RX_PKTS), 7 * PACKETS);
	assert_int_equal(urdma_eh_clear_cnt(rig.side[0].eh, 0), 0);
	CHECK_SET(0, 0, -1, 0);
	assert_int_equal(urdma_eh_set_qp_cnt(&rig.side[0].qp[0], 256), URDMA_CS_BAD_ATTR);
	leave();
}

/* RESET keeps the set; another QP with the same number has set 0. */
static void test_again(void **state)
{
	uint64_t before;

	(void)state;
	enter(1);
	set_cnt(0, 0, 7);
	set_cnt(1, 0, 7);
	for (unsigned int side = 0; side < 2; side++)
		assert_int_equal(urdma_eh_to_reset(&rig.side[side].qp[0]), 0);
	assert_int_equal(urdma_eh_connect(&rig.side[0].qp[0], &rig.side[1].qp[0], MTU, false), 0);
	one_message(0, 0, 1);
	assert_int_equal(count(0, 7, URDMA_QCNT_TX_PKTS), PACKETS);
	before = count(1, 7, URDMA_QCNT_RX_PKTS);
	assert_int_equal(before, PACKETS);
	rig_renew_qp(&rig, 0, 0);
	assert_int_equal(urdma_eh_to_reset(&rig.side[1].qp[0]), 0);
	assert_int_equal(urdma_eh_connect(&rig.side[0].qp[0], &rig.side[1].qp[0], MTU, false), 0);
	one_message(0, 0, 2);
	one_message(0, 1, 3);
	assert_int_equal(count(0, 7, URDMA_QCNT_TX_PKTS), PACKETS);
	assert_int_equal(count(0, 7, URDMA_QCNT_RX_PKTS), 0);
	assert_int_equal(count(1, 7, URDMA_QCNT_RX_PKTS), 2 * PACKETS);
	/* and it can have one */
	set_cnt(0, 0, 8);
	one_message(0, 0, 4);
	assert_int_equal(count(0, 8, URDMA_QCNT_TX_PKTS), PACKETS);
	leave();
}

/* A reset of the function: all counters are 0, and all QPs have set 0. */
static void test_restart(void **state)
{
	(void)state;
	enter(1);
	set_cnt(0, 0, 7);
	set_cnt(1, 0, 7);
	one_message(0, 0, 1);
	rig_restart_side(&rig, 0);
	CHECK_SET(0, 7, -1, 0);
	assert_int_equal(urdma_eh_to_reset(&rig.side[1].qp[0]), 0);
	assert_int_equal(urdma_eh_connect(&rig.side[0].qp[0], &rig.side[1].qp[0], MTU, false), 0);
	CHECK_SET(0, 0, -1, 0);
	one_message(0, 0, 2);
	CHECK_SET(0, 7, -1, 0);
	assert_int_equal(count(0, 0, URDMA_QCNT_TX_PKTS), PACKETS);
	assert_int_equal(count(1, 7, URDMA_QCNT_RX_PKTS), 2 * PACKETS);
	leave();
}

/*
 * Under traffic in both directions, with losses, the QPs move from set to set, and sets are read:
 * no packet is lost or counted twice, no counter goes back, and messages arrive.
 */
static void test_under_way(void **state)
{
	static struct work w[QPS * 24];
	uint64_t v[URDMA_QCNT_N], last[2][4][URDMA_QCNT_N] = { 0 };
	uint64_t sum[URDMA_QCNT_N], want[URDMA_QCNT_N];
	uint64_t random = test_seed(9), full;

	(void)state;
	enter(QPS);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < QPS; i++)
			assert_int_equal(urdma_eh_set_qp_cnt(&rig.side[side].qp[i], 1 + i % 3), 0);
	rig_fault(&rig, "drop,p=1");
	for (unsigned int i = 0; i < COUNT(w); i++) {
		w[i] = (struct work){ .opcode = i % 5 ? URDMA_WR_SEND : URDMA_WR_READ,
				      .len = 1 + rig_draw(&random, 12000),
				      .seed = 300 + i,
				      .pair = i % QPS,
				      .from = i / QPS % 2,
				      .at = i * work_slot(12000) };
		work_put(&rig, &w[i]);
	}
	work_ring(&rig, w, COUNT(w));
	for (unsigned int k = 0; k < 300; k++) {
		unsigned int side = rig_draw(&random, 2), set = 1 + rig_draw(&random, 3);

		assert_int_equal(
			urdma_eh_set_qp_cnt(&rig.side[side].qp[rig_draw(&random, QPS)], set), 0);
		query(side, set, v);
		for (unsigned int c = 0; c < URDMA_QCNT_N; c++) {
			assert_true(v[c] >= last[side][set][c]);
			last[side][set][c] = v[c];
		}
	}
	work_finish(&rig, w, COUNT(w), 20 * LIMIT, "under way");
	urdma_faults_clear(rig.faults);
	settle();
	for (unsigned int side = 0; side < 2; side++) {
		memset(sum, 0, sizeof(sum));
		memset(want, 0, sizeof(want));
		for (unsigned int set = 1; set < 4; set++) {
			query(side, set, v);
			assert_true(v[URDMA_QCNT_TX_PKTS]);
			for (unsigned int c = 0; c < URDMA_QCNT_N; c++)
				sum[c] += v[c];
		}
		count_wire(side, 0, want); /* sets[] is all 0 here: this counts all packets */
		/* an ACK needs no room */
		full = port(side, URDMA_CNT_RX_DROP_FULL);
		assert_int_equal(sum[URDMA_QCNT_RX_PKTS] + full, want[URDMA_QCNT_RX_PKTS]);
		if (full)
			want[URDMA_QCNT_RX_PKTS] = want[URDMA_QCNT_RX_BYTES] = 0;
		for (unsigned int c = 0; c < URDMA_QCNT_N; c++)
			if (want[c] && sum[c] != want[c])
				fail_msg("side %u: %s of all sets is %llu, the port saw %llu", side,
					 name_of(c), (unsigned long long)sum[c],
					 (unsigned long long)want[c]);
		assert_int_equal(sum[URDMA_QCNT_RX_SEQ_ERR], port(side, URDMA_CNT_RX_SEQ_ERR));
		assert_int_equal(sum[URDMA_QCNT_TX_RETRANS], port(side, URDMA_CNT_TX_RETRANS));
	}
	leave();
}

/* The cycle in which the work of QPs with this set ends. The commands are the same for any set. */
static uint64_t end_of_work(uint32_t set)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ,
					       URDMA_WR_ATOMIC_FA };
	static struct work w[QPS * 12];
	uint64_t end;

	enter(QPS);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < QPS; i++)
			set_cnt(side, i, set);
	rig_fault(&rig, "drop,p=1");
	for (unsigned int i = 0; i < COUNT(w); i++) {
		unsigned int op = opcode[i / QPS % COUNT(opcode)];

		w[i] = (struct work){ .opcode = op,
				      .len = op == URDMA_WR_ATOMIC_FA ? 8 : 64 + 500 * i,
				      .seed = i,
				      .pair = i % QPS,
				      .from = i % 2,
				      .at = i * work_slot(64 + 500 * COUNT(w)) };
	}
	work_run(&rig, w, COUNT(w), LIMIT, "work");
	end = urdma_cosim_now(rig.cosim);
	urdma_faults_clear(rig.faults);
	settle();
	leave();
	return end;
}

/* Counting does not slow down the traffic. */
static void test_no_cycle(void **state)
{
	uint64_t end = end_of_work(0);

	(void)state;
	assert_int_equal(end_of_work(1), end);
	assert_int_equal(end_of_work(255), end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire),	  cmocka_unit_test(test_gap),
		cmocka_unit_test(test_timeout),	  cmocka_unit_test(test_read_gap),
		cmocka_unit_test(test_rnr),	  cmocka_unit_test(test_errors),
		cmocka_unit_test(test_uc),	  cmocka_unit_test(test_give),
		cmocka_unit_test(test_again),	  cmocka_unit_test(test_restart),
		cmocka_unit_test(test_under_way), cmocka_unit_test(test_no_cycle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
