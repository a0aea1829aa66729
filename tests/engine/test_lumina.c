// SPDX-License-Identifier: Apache-2.0
/*
 * Mistakes that NICs are known to make: the behaviours that Lumina measured ("Understanding the
 * Micro-Behaviors of Hardware Offloaded Network Stacks with Lumina", SIGCOMM 2023) and those of bug
 * reports. Each has its own test, which looks at the packets of both ports. The wire checker
 * watches as well.
 *
 * A failure says which packet, byte or count was wrong. Arguments choose tests: those whose names
 * contain one of them, or equal one after a '='. SEED in the environment changes what is random:
 * some faults of the wire, and PCIe's timing. All else is deterministic.
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

#include "icrc.h"
#include "judge.h"
#include "seed.h"
#include "trace.h"
#include "work.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define MTU	 3u /* 1024 */
#define MTU_SIZE 1024u
#define PACKETS	 20u
#define LEN	 (PACKETS * MTU_SIZE - 100)
#define TIMEOUT	 6u /* 262 us, 65536 cycles */
#define LIMIT	 20000000u
#define NEVER	 UINT64_C(100000000000)
#define PSN_MASK 0xffffffu

static struct rig rig;
static struct judge judge;
static struct trace trace;
static bool running, keyed; /* keyed: make_keys() has run */

/* ---- a rig for each test ------------------------------------------------------------------- */

static void leave(void)
{
	if (running) {
		trace_stop(&trace);
		judge_drop(&judge);
		rig_abandon(&rig);
	}
	trace_free(&trace);
	running = false;
	keyed = false;
}

static void config(struct rig_config *c, unsigned int qps)
{
	rig_defaults(c);
	c->qps = qps;
	c->mtu = MTU;
	c->log_stride = 8;
	c->faults = true;
	c->fault_seed = test_seed(1);
	c->priv = true;
	c->conn.timeout = TIMEOUT;
}

static void enter_as(const struct rig_config *c)
{
	leave();
	rig_start(&rig, c);
	judge_start(&judge, &rig, true);
	trace_start(&trace, &rig);
	running = true;
}

static void enter(unsigned int qps)
{
	struct rig_config c;

	config(&c, qps);
	enter_as(&c);
}

static void run_for(uint64_t cycles)
{
	rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + cycles),
		  "run");
}

static void settle(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
}

static bool cqs_empty(void)
{
	for (unsigned int n = 0; n < 2; n++)
		if (urdma_eh_cq_ready(&rig.side[n].send_cq) ||
		    urdma_eh_cq_ready(&rig.side[n].recv_cq))
			return false;
	return true;
}

/* Fetches the judge's verdict, and checks that every object can be destroyed. */
static void end(const char *what)
{
	settle();
	assert_true(cqs_empty());
	trace_stop(&trace);
	running = false;
	judge_end(&judge, what);
	rig_stop(&rig);
	trace_free(&trace);
}

static uint32_t next_psn(unsigned int side, unsigned int pair)
{
	struct urdma_eh_qp_info info;

	assert_int_equal(urdma_eh_qp_info(&rig.side[side].qp[pair], &info), 0);
	return info.sq_psn;
}

static uint64_t counter(unsigned int side, unsigned int index)
{
	return urdma_eh_counter(rig.side[side].eh, index);
}

#define EQUAL(got, want)                                                                         \
	do {                                                                                     \
		if ((uint64_t)(got) != (uint64_t)(want))                                         \
			fail_msg("line %d: " #got " is %llu (0x%llx) instead of %llu (0x%llx)",  \
				 __LINE__, (unsigned long long)(got), (unsigned long long)(got), \
				 (unsigned long long)(want), (unsigned long long)(want));        \
	} while (0)

/* Packets by or to a side, of the first pair. */
#define SEEN(side, out, kind, psn) trace_count(&trace, side, out, kind, (int)RIG_QPN(0), psn)

static struct work message(unsigned int opcode, uint32_t len, unsigned int index)
{
	return (struct work){ .opcode = opcode,
			      .len = len,
			      .seed = 100 + index,
			      .odd = 3 * index,
			      .at = index * work_slot(LEN) };
}

/* Posts n messages of side 0, all at once. */
static void messages(unsigned int opcode, unsigned int n)
{
	struct work w[8];

	assert_true(n <= COUNT(w));
	for (unsigned int i = 0; i < n; i++)
		w[i] = message(opcode, LEN, i);
	work_run(&rig, w, n, LIMIT, work_name(opcode));
	settle();
}

static int put_simple(unsigned int pair, unsigned int opcode, uint64_t laddr, uint32_t lkey,
		      uint64_t raddr, uint32_t rkey, uint32_t len)
{
	struct urdma_eh_sge sge = { laddr, len, lkey };
	struct urdma_eh_send wr = { .opcode = opcode,
				    .signaled = true,
				    .raddr = raddr,
				    .rkey = rkey,
				    .swap_add = 1,
				    .sge = &sge,
				    .n_sge = 1 };

	return urdma_eh_post_send(&rig.side[0].qp[pair], &wr);
}

static struct urdma_eh_cqe next_cqe(struct urdma_eh_cq *cq, const char *what)
{
	struct urdma_eh_cqe cqe;

	rig_check(&rig, urdma_eh_next_cqe(cq, &cqe, NEVER), what);
	return cqe;
}

/* ---- NAKs and what follows ----------------------------------------------------------------- */

/* One NAK per gap, however many packets follow it. */
static void one_nak_for_a_gap(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_WRITE_IMM };

	(void)state;
	for (unsigned int o = 0; o < COUNT(opcode); o++) {
		const struct trace_packet *nak, *late;
		uint32_t first, gap;

		enter(1);
		first = next_psn(0, 0);
		gap = first + 5;
		/* more is lost after it */
		rig_fault(&rig, "drop,side=0,psn=%u-%u,nth=1,count=2", gap, gap + 1);
		rig_fault(&rig, "drop,side=0,psn=%u", first + 9);
		messages(opcode[o], 3);
		EQUAL(SEEN(1, true, TRACE_NAK_SEQ, -1), 1);
		nak = trace_find(&trace, 0, 1, true, TRACE_NAK_SEQ, -1, -1);
		EQUAL(nak->psn, gap);
		/* it left before the requested packet came, and others came meanwhile */
		late = trace_find(&trace, 0, 1, false, TRACE_REQUEST, -1, (int)gap);
		assert_true(late > nak);
		assert_true(counter(1, URDMA_CNT_RX_SEQ_ERR) > 10);
		EQUAL(counter(1, URDMA_CNT_TX_NAK_SEQ), 1);
		EQUAL(counter(0, URDMA_CNT_RX_NAK), 1);
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 0);
		end("one NAK");
	}
}

/* A gap that opens when the first one closes is another gap. */
static void a_new_gap_has_a_new_nak(void **state)
{
	uint32_t first;

	(void)state;
	enter(1);
	first = next_psn(0, 0);
	rig_fault(&rig, "drop,side=0,psn=%u", first + 3);
	rig_fault(&rig, "drop,side=0,psn=%u,nth=2", first + 8);
	rig_fault(&rig, "drop,side=0,psn=%u,nth=3", first + 15);
	messages(URDMA_WR_WRITE, 2);
	EQUAL(SEEN(1, true, TRACE_NAK_SEQ, -1), 3);
	EQUAL(SEEN(1, true, TRACE_NAK_SEQ, (int)first + 3), 1);
	EQUAL(SEEN(1, true, TRACE_NAK_SEQ, (int)first + 8), 1);
	EQUAL(SEEN(1, true, TRACE_NAK_SEQ, (int)first + 15), 1);
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 0);
	end("new gaps");
}

static void acks_never_go_back(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ,
					       URDMA_WR_ATOMIC_FA, URDMA_WR_WRITE_IMM };
	static struct work w[40];
	uint32_t last[2][2];
	bool known[2][2] = { { false } };
	size_t acks = 0;

	(void)state;
	enter(2);
	rig_fault(&rig, "drop,p=3");
	rig_fault(&rig, "dup,ns=4000,p=5");
	rig_fault(&rig, "reorder,p=2");
	for (unsigned int i = 0; i < COUNT(w); i++) {
		w[i] = message(opcode[i % COUNT(opcode)], 4500, i);
		w[i].at = i * work_slot(4500);
		w[i].from = i / 2 % 2;
		w[i].pair = i % 2;
	}
	work_run(&rig, w, COUNT(w), 10 * LIMIT, "loss");
	run_for(20000);
	for (size_t i = 0; i < trace.n; i++) {
		const struct trace_packet *p = &trace.packet[i];
		uint32_t *before = &last[p->side][p->qpn & 1];

		if (!trace_is(p, p->side, true, TRACE_ACK, -1, -1))
			continue;
		if (known[p->side][p->qpn & 1] && roce_psn_diff(p->psn, *before) < 0)
			fail_msg("side %u acknowledges PSN 0x%06x behind 0x%06x", p->side, p->psn,
				 *before);
		known[p->side][p->qpn & 1] = true;
		*before = p->psn;
		acks++;
	}
	assert_true(acks > 20);
	urdma_faults_clear(rig.faults);
	end("ACKs");
}

/* And nothing before it is sent again; from there to the end there is no hole. */
static void resends_from_the_naked_psn(void **state)
{
	static const unsigned int lost[] = { 0, 1, 7, PACKETS - 2, PACKETS - 1 };

	(void)state;
	for (unsigned int k = 0; k < COUNT(lost); k++) {
		const struct trace_packet *p, *nak;
		uint32_t first, want;
		bool again = false;

		enter(1);
		first = next_psn(0, 0);
		rig_fault(&rig, "drop,side=0,psn=%u", first + lost[k]);
		messages(URDMA_WR_SEND, 2);
		nak = trace_find(&trace, 0, 0, false, TRACE_NAK_SEQ, -1, -1);
		assert_non_null(nak);
		EQUAL(nak->psn, first + lost[k]);
		want = first;
		for (p = trace.packet; p < trace.packet + trace.n; p++) {
			if (!trace_is(p, 0, true, TRACE_REQUEST, -1, -1))
				continue;
			if (!again && p->psn != want) {
				/*
				 * the packets that were already leaving when the NAK came are out
				 */
				assert_true(p > nak);
				again = true;
				want = nak->psn;
			}
			EQUAL(p->psn, want);
			want++;
		}
		assert_true(again);
		EQUAL(want, first + 2 * PACKETS);
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 0);
		end("resend");
	}
}

/* The NAK is lost: there is no second one, and the time-out repairs the gap. */
static void lost_nak(void **state)
{
	const struct trace_packet *nak, *sent;
	uint32_t first;

	(void)state;
	enter(1);
	first = next_psn(0, 0);
	rig_fault(&rig, "drop,side=0,psn=%u", first + 4);
	rig_fault(&rig, "drop,side=1,aeth=nak");
	messages(URDMA_WR_WRITE, 2);
	EQUAL(SEEN(1, true, TRACE_NAK_SEQ, -1), 1);
	EQUAL(SEEN(0, false, TRACE_NAK_SEQ, -1), 0);
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 1);
	EQUAL(counter(0, URDMA_CNT_RX_NAK), 0);
	/*
	 * all before the gap was received: an ACK may have said so, and then sending resumes there
	 */
	nak = trace_find(&trace, 0, 1, true, TRACE_NAK_SEQ, -1, -1);
	sent = trace_find(&trace, trace_behind(&trace, nak), 0, true, TRACE_REQUEST, -1,
			  (int)first + 4);
	assert_non_null(sent);
	assert_true(sent->ns - nak->ns >= 4096u << TIMEOUT);
	end("lost NAK");
}

/*
 * The same early in a long message: the ACK timer runs from the message's first packets on, and
 * expires while most of the message is still to be sent.
 */
static void lost_in_a_long_message(void **state)
{
	const uint32_t len = 3u << 20; /* 68000 cycles at 100 Gb/s */
	struct rig_config c;
	uint32_t first;

	(void)state;
	config(&c, 1);
	c.conn.timeout = 3; /* 8192 cycles; 24576 with the time to the wire */
	enter_as(&c);
	first = next_psn(0, 0);
	rig_fill(rig.side[0].buffer, len, 7);
	rig_fault(&rig, "drop,side=0,psn=%u", first + 4);
	rig_fault(&rig, "drop,side=1,aeth=nak");
	assert_int_equal(put_simple(0, URDMA_WR_WRITE, (uintptr_t)rig.side[0].buffer,
				    rig.side[0].mr.key, (uintptr_t)rig.side[1].buffer,
				    rig.side[1].mr.key, len),
			 0);
	run_for(45000);
	assert_false(urdma_eh_cq_ready(&rig.side[0].send_cq));
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 1);
	EQUAL(next_cqe(&rig.side[0].send_cq, "send").status, URDMA_WC_SUCCESS);
	EQUAL(rig_verify(rig.side[1].buffer, len, 7), len);
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 1);
	end("lost in a long message");
}

/* A packet that was sent again is lost again: only the time-out can reveal that, and does. */
static void lost_retransmission(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE };

	(void)state;
	for (unsigned int o = 0; o < COUNT(opcode); o++) {
		uint32_t lost;

		enter(1);
		lost = next_psn(0, 0) + 6;
		rig_fault(&rig, "drop,side=0,psn=%u,count=2", lost);
		messages(opcode[o], 1);
		EQUAL(SEEN(0, true, TRACE_REQUEST, (int)lost), 3);
		EQUAL(SEEN(1, false, TRACE_REQUEST, (int)lost), 1);
		EQUAL(SEEN(1, true, TRACE_NAK_SEQ, -1), 1);
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 1);
		end("lost retransmission");
	}
}

/* A READ request that is sent again because of a gap is lost. */
static void lost_read_again(void **state)
{
	uint32_t first;

	(void)state;
	enter(1);
	first = next_psn(0, 0);
	rig_fault(&rig, "drop,side=1,psn=%u,op=read_response_middle", first + 4);
	rig_fault(&rig, "drop,side=0,psn=%u,op=read_request", first + 4);
	messages(URDMA_WR_READ, 1);
	EQUAL(SEEN(0, true, TRACE_READ, (int)first + 4), 2);
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 1);
	EQUAL(counter(0, URDMA_CNT_RX_READ_GAP), 1);
	end("lost READ");
}

/* Nothing follows the last packet to reveal its loss. T to 4 T, 9.7.6.1.3. */
static void lost_last_packet(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ,
					       URDMA_WR_ATOMIC_FA };

	(void)state;
	for (unsigned int o = 0; o < COUNT(opcode); o++) {
		const struct trace_packet *a, *b;
		uint32_t last;
		double t = 4096.0 * (1u << TIMEOUT);

		enter(1);
		last = next_psn(0, 0) +
		       (opcode[o] == URDMA_WR_READ ? 0 : work_psns(opcode[o], LEN, MTU) - 1);
		rig_fault(&rig, "drop,side=0,psn=%u", last);
		messages(opcode[o], 1);
		EQUAL(SEEN(0, true, TRACE_REQUEST, (int)last), 2);
		EQUAL(SEEN(1, true, TRACE_NAK_SEQ, -1), 0);
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 1);
		a = trace_find(&trace, 0, 0, true, TRACE_REQUEST, -1, (int)last);
		b = trace_find(&trace, trace_behind(&trace, a), 0, true, TRACE_REQUEST, -1,
			       (int)last);
		if (b->ns - a->ns < t || b->ns - a->ns > 4 * t)
			fail_msg("%s: sent again after %llu ns", work_name(opcode[o]),
				 (unsigned long long)(b->ns - a->ns));
		end("lost last packet");
	}
}

/*
 * Nothing arrives: the message is sent retry + 1 times, no more. The interval is the same each
 * time, and never below the time-out.
 */
static void timeouts_do_not_adapt(void **state)
{
	for (unsigned int retry = 0; retry < 8; retry += retry ? 6 : 1) {
		struct rig_config c;
		const struct trace_packet *p;
		uint64_t least = UINT64_MAX, most = 0, before = 0;
		unsigned int n = 0;

		(void)state;
		config(&c, 1);
		c.conn.retry = retry;
		enter_as(&c);
		rig_fault(&rig, "drop,side=0,count=all");
		assert_int_equal(put_simple(0, URDMA_WR_WRITE, (uintptr_t)rig.side[0].buffer,
					    rig.side[0].mr.key, (uintptr_t)rig.side[1].buffer,
					    rig.side[1].mr.key, 100),
				 0);
		EQUAL(next_cqe(&rig.side[0].send_cq, "end of retries").status,
		      URDMA_WC_RETRY_EXC_ERR);
		for (p = trace.packet; p < trace.packet + trace.n; p++) {
			if (!trace_is(p, 0, true, TRACE_REQUEST, -1, -1))
				continue;
			if (n++) {
				least = p->ns - before < least ? p->ns - before : least;
				most = p->ns - before > most ? p->ns - before : most;
			}
			before = p->ns;
		}
		EQUAL(n, retry + 1);
		if (retry) {
			assert_true(least >= 4096u << TIMEOUT && most <= 4 * 4096u << TIMEOUT);
			assert_true(most < least + least / 8);
		}
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), retry + 1);
		EQUAL(counter(0, URDMA_CNT_RETRY_EXC), 1);
		end("retries");
	}
}

/* ---- duplicates ---------------------------------------------------------------------------- */

/* Below the expected PSN: memory, receive queue, expected PSN and MSN do not change, and no CQE
 * comes. */
static void duplicates_change_nothing(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_SEND_IMM, URDMA_WR_WRITE,
					       URDMA_WR_WRITE_IMM };

	(void)state;
	for (unsigned int o = 0; o < COUNT(opcode); o++) {
		struct rig_side *peer = &rig.side[1];
		struct urdma_eh_qp_info before, after;
		const struct trace_packet *p;
		struct urdma_eh_sge sge;
		struct work w[2];
		size_t dups;
		uint32_t last;

		enter(1);
		rig_fault(&rig, "dup,side=0,ns=100000,count=all");
		last = next_psn(0, 0) + 2 * PACKETS - 1;
		for (unsigned int i = 0; i < 2; i++)
			w[i] = message(opcode[o], LEN, i);
		work_run(&rig, w, 2, LIMIT, "first");
		/* a receive that a duplicate might consume */
		sge = (struct urdma_eh_sge){ (uintptr_t)peer->buffer + (1u << 20), 100,
					     peer->mr.key };
		assert_int_equal(urdma_eh_post_recv(&peer->qp[0], &sge, 1), 0);
		run_for(1000);
		dups = trace.n;
		memset(peer->buffer, 0x3c, 2 * work_slot(LEN));
		assert_int_equal(urdma_eh_qp_info(&peer->qp[0], &before), 0);
		run_for(60000);
		settle();
		assert_int_equal(urdma_eh_qp_info(&peer->qp[0], &after), 0);
		/* the duplicates did arrive */
		assert_non_null(trace_find(&trace, dups, 1, false, TRACE_REQUEST, -1, (int)last));
		EQUAL(counter(1, URDMA_CNT_RX_DUP), 2 * PACKETS);
		EQUAL(after.rq_psn, before.rq_psn);
		EQUAL(after.rq_psn, (last + 1) & PSN_MASK);
		EQUAL(after.rq_ci, before.rq_ci);
		EQUAL(after.rq_pi, before.rq_pi);
		EQUAL(after.state, URDMA_QPS_RTS);
		for (size_t i = 0; i < 2 * work_slot(LEN); i++)
			if (peer->buffer[i] != 0x3c)
				fail_msg("%s: a duplicate has written byte %zu",
					 work_name(opcode[o]), i);
		assert_true(cqs_empty());
		/* ACKs, and the PSN and MSN that they carry */
		for (size_t i = dups; i < trace.n; i++) {
			p = &trace.packet[i];
			if (!p->out || p->side != 1)
				continue;
			assert_true(trace_is(p, 1, true, TRACE_ACK, -1, -1));
			EQUAL(p->psn, last);
			EQUAL(p->msn, 2);
		}
		EQUAL(SEEN(1, true, TRACE_NAK_SEQ, -1), 0);
		/* the connection goes on */
		urdma_faults_clear(rig.faults);
		assert_int_equal(put_simple(0, URDMA_WR_SEND, (uintptr_t)rig.side[0].buffer,
					    rig.side[0].mr.key, 0, 0, 100),
				 0);
		EQUAL(next_cqe(&peer->recv_cq, "receive").status, URDMA_WC_SUCCESS);
		EQUAL(next_cqe(&rig.side[0].send_cq, "send").status, URDMA_WC_SUCCESS);
		end("duplicates");
	}
}

/* A READ that is repeated is executed again, from the PSN of the repetition. */
static void duplicate_reads_are_executed_again(void **state)
{
	uint32_t first;

	(void)state;
	enter(1);
	first = next_psn(0, 0);
	rig_fault(&rig, "dup,side=0,ns=50000,op=read_request");
	messages(URDMA_WR_READ, 1);
	run_for(30000);
	EQUAL(SEEN(1, false, TRACE_READ, (int)first), 2);
	EQUAL(SEEN(1, true, TRACE_RESPONSE, -1), 2 * PACKETS);
	for (uint32_t i = 0; i < PACKETS; i++)
		EQUAL(SEEN(1, true, TRACE_RESPONSE, (int)(first + i)), 2);
	EQUAL(counter(1, URDMA_CNT_RX_DUP), 1);
	EQUAL(counter(1, URDMA_CNT_TX_READ_RSP), 2 * PACKETS);
	end("duplicate READ");
}

/* ---- READ responses ------------------------------------------------------------------------ */

/* The READ resumes at its first missing response: PSN, address and length. */
static void read_gap_asks_from_there(void **state)
{
	static const unsigned int lost[] = { 0, 1, 10, PACKETS - 1 };

	(void)state;
	for (unsigned int k = 0; k < COUNT(lost); k++) {
		const struct trace_packet *a, *b, *rsp;
		uint32_t first;

		enter(1);
		first = next_psn(0, 0);
		rig_fault(&rig, "drop,side=1,psn=%u", first + lost[k]);
		messages(URDMA_WR_READ, 2); /* the second reveals the loss of the last one */
		a = trace_find(&trace, 0, 0, true, TRACE_READ, -1, (int)first);
		b = trace_find(&trace, trace_behind(&trace, a), 0, true, TRACE_READ, -1,
			       (int)(first + lost[k]));
		assert_non_null(b);
		EQUAL(b->va, a->va + lost[k] * MTU_SIZE);
		EQUAL(b->dma_len, a->dma_len - lost[k] * MTU_SIZE);
		EQUAL(b->rkey, a->rkey);
		/* its answer is that of a READ: FIRST, or ONLY, at that PSN */
		rsp = trace_find(&trace, trace_behind(&trace, b), 1, true, TRACE_RESPONSE, -1,
				 (int)(first + lost[k]));
		assert_non_null(rsp);
		EQUAL(rsp->opcode, lost[k] == PACKETS - 1 ? 0x10 : 0x0d);
		/*
		 * no response that had arrived is requested again, and the rest is requested once
		 */
		EQUAL(SEEN(0, true, TRACE_READ, (int)first), lost[k] ? 1 : 2);
		EQUAL(SEEN(0, true, TRACE_READ, (int)(first + PACKETS)), 2);
		EQUAL(SEEN(0, true, TRACE_READ, -1), 4);
		EQUAL(counter(0, URDMA_CNT_RX_READ_GAP), 1);
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 0);
		EQUAL(SEEN(0, true, TRACE_NAK_SEQ, -1), 0);
		end("READ gap");
	}
}

/* An ACK of something after a READ reveals that its responses are lost. */
static void ack_behind_a_read_is_a_gap(void **state)
{
	struct work w[2];
	uint32_t first;

	(void)state;
	enter(1);
	first = next_psn(0, 0);
	rig_fault(&rig, "drop,side=1,psn=%u-%u,nth=1,count=%u", first, first + PACKETS - 1,
		  PACKETS);
	w[0] = message(URDMA_WR_READ, LEN, 0);
	w[1] = message(URDMA_WR_WRITE, 100, 1);
	work_run(&rig, w, 2, LIMIT, "READ, WRITE");
	EQUAL(SEEN(0, true, TRACE_READ, (int)first), 2);
	EQUAL(counter(0, URDMA_CNT_RX_READ_GAP), 1);
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 0);
	end("ACK behind a READ");
}

/* ---- atomics ------------------------------------------------------------------------------- */

/* The answer is lost, another QP changes the number, and the first QP repeats the request. */
static void duplicate_atomics_have_the_stored_result(void **state)
{
	for (unsigned int cs = 0; cs < 2; cs++) {
		const struct trace_packet *a, *b;
		struct rig_side *side = &rig.side[0];
		volatile uint64_t *target, *seen;
		uint32_t first;

		(void)state;
		enter(2);
		first = next_psn(0, 0);
		target = (uint64_t *)(rig.side[1].buffer + 64);
		seen = (uint64_t *)side->buffer;
		*target = 5;
		rig_fault(&rig, "drop,side=1,op=atomic_acknowledge,count=2,qpn=%u", RIG_QPN(0));
		for (unsigned int pair = 0; pair < 2; pair++) {
			struct urdma_eh_sge sge = { (uintptr_t)&seen[pair], 8, side->mr.key };
			struct urdma_eh_send wr = { .opcode = cs && !pair ? URDMA_WR_ATOMIC_CS
									  : URDMA_WR_ATOMIC_FA,
						    .signaled = true,
						    .raddr = (uintptr_t)target,
						    .rkey = rig.side[1].mr.key,
						    .swap_add = pair ? 1000 : 9,
						    .compare = 5,
						    .sge = &sge,
						    .n_sge = 1 };

			assert_int_equal(urdma_eh_post_send(&side->qp[pair], &wr), 0);
			if (!pair) {
				run_for(3000);
				EQUAL(*target, cs ? 9 : 14);
				assert_true(cqs_empty());
			}
		}
		EQUAL(next_cqe(&side->send_cq, "other QP").qpn, RIG_QPN(1));
		EQUAL(seen[1], cs ? 9 : 14);
		EQUAL(next_cqe(&side->send_cq, "ATOMIC").status, URDMA_WC_SUCCESS);
		EQUAL(seen[0], 5);
		EQUAL(*target, 1000 + (cs ? 9 : 14));
		EQUAL(SEEN(1, true, TRACE_ATOMIC_ACK, (int)first), 3);
		a = trace_find(&trace, 0, 1, true, TRACE_ATOMIC_ACK, (int)RIG_QPN(0), -1);
		for (b = a; b; b = trace_find(&trace, trace_behind(&trace, b), 1, true,
					      TRACE_ATOMIC_ACK, (int)RIG_QPN(0), -1)) {
			EQUAL(b->va, 5);
			EQUAL(b->msn, a->msn);
		}
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 2);
		EQUAL(counter(1, URDMA_CNT_RX_DUP), 2);
		end("duplicate ATOMIC");
	}
}

/* As many ATOMICs as may be outstanding, and all answers are lost. */
static void sixteen_duplicate_atomics(void **state)
{
	struct rig_side *side = &rig.side[0];
	volatile uint64_t *target, *seen;

	(void)state;
	enter(1);
	target = (uint64_t *)(rig.side[1].buffer + 64);
	seen = (uint64_t *)side->buffer;
	*target = 0;
	rig_fault(&rig, "drop,side=1,op=atomic_acknowledge,count=16");
	for (unsigned int i = 0; i < 16; i++) {
		struct urdma_eh_sge sge = { (uintptr_t)&seen[i], 8, side->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_ATOMIC_FA,
					    .signaled = true,
					    .raddr = (uintptr_t)target,
					    .rkey = rig.side[1].mr.key,
					    .swap_add = 1,
					    .sge = &sge,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_put_send(&side->qp[0], &wr), 0);
	}
	urdma_eh_ring_sq(&side->qp[0]);
	for (unsigned int i = 0; i < 16; i++) {
		EQUAL(next_cqe(&side->send_cq, "ATOMIC").status, URDMA_WC_SUCCESS);
		EQUAL(seen[i], i);
	}
	EQUAL(*target, 16);
	EQUAL(SEEN(1, true, TRACE_ATOMIC_ACK, -1), 32);
	EQUAL(counter(1, URDMA_CNT_RX_DUP), 16);
	end("duplicate ATOMICs");
}

/* ---- RNR ----------------------------------------------------------------------------------- */

/* Nanoseconds of some codes of the RNR NAK timer field, table 45. */
static const struct {
	unsigned int code;
	uint32_t ns;
} rnr_timer[] = { { 1, 10000 }, { 5, 60000 }, { 10, 320000 }, { 14, 1280000 }, { 0, 655360000 } };

/* Packets that are already leaving when a NAK comes are still sent. */
#define PIPELINE_NS 3000u

/* No packet of the QP leaves between the NAK and the timer's end, not even for a WQE posted
 * meanwhile. */
static void nothing_is_sent_before_an_rnr_timer_ends(void **state)
{
	(void)state;
	for (unsigned int k = 0; k < COUNT(rnr_timer) && rnr_timer[k].ns < rig_longest_wait();
	     k++) {
		const struct trace_packet *rnr, *p;
		struct rig_config c;
		struct work w[3];

		config(&c, 2);
		c.conn.min_rnr = rnr_timer[k].code;
		c.conn.timeout = 14;
		enter_as(&c);
		for (unsigned int i = 0; i < 2; i++) {
			w[i] = message(i ? URDMA_WR_WRITE : URDMA_WR_SEND, 2500, i);
			w[i].late_recv = true;
			work_put(&rig, &w[i]);
		}
		urdma_eh_ring_sq(&rig.side[0].qp[0]);
		run_for(2000);
		rnr = trace_find(&trace, 0, 0, false, TRACE_RNR, -1, -1);
		assert_non_null(rnr);
		EQUAL(rnr->syndrome, 0x20 | rnr_timer[k].code);
		work_put_recv(&rig, &w[0]);
		urdma_eh_ring_rq(&rig.side[1].qp[0]);
		w[2] = message(URDMA_WR_READ, 2500, 2);
		work_put(&rig, &w[2]);
		urdma_eh_ring_sq(&rig.side[0].qp[0]);
		work_finish(&rig, w, 3, NEVER, "RNR");
		EQUAL(SEEN(0, false, TRACE_RNR, -1), 1);
		rnr = trace_find(&trace, 0, 0, false, TRACE_RNR, -1, -1);
		for (p = rnr; p < trace.packet + trace.n; p++)
			if (trace_is(p, 0, true, TRACE_ANY, (int)RIG_QPN(0), -1) &&
			    p->ns > rnr->ns + PIPELINE_NS)
				break;
		if (p->ns < rnr->ns + rnr_timer[k].ns)
			fail_msg("code %u: sent after %llu ns", rnr_timer[k].code,
				 (unsigned long long)(p->ns - rnr->ns));
		if (p->ns > rnr->ns + rnr_timer[k].ns + rnr_timer[k].ns / 8 + 20000)
			fail_msg("code %u: sent not before %llu ns", rnr_timer[k].code,
				 (unsigned long long)(p->ns - rnr->ns));
		EQUAL(p->psn, rnr->psn);
		end("RNR timer");
	}
}

/* A time-out of 8 us and an RNR wait of 1.28 ms: neither ends the other. */
static void ack_timer_waits_for_the_rnr_timer(void **state)
{
	struct rig_config c;
	struct work w;

	(void)state;
	config(&c, 1);
	c.conn.timeout = 1;
	c.conn.min_rnr = 14;
	enter_as(&c);
	w = message(URDMA_WR_SEND, 2500, 0);
	w.late_recv = true;
	work_put(&rig, &w);
	urdma_eh_ring_sq(&rig.side[0].qp[0]);
	run_for(3 * 320000 + 20000);
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 0);
	/* the first at once */
	EQUAL(SEEN(0, false, TRACE_RNR, -1), 4);
	EQUAL(SEEN(0, true, TRACE_REQUEST, -1), 4 * 3);
	work_put_recv(&rig, &w);
	urdma_eh_ring_rq(&rig.side[1].qp[0]);
	work_finish(&rig, &w, 1, NEVER, "RNR");
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 0);
	EQUAL(counter(0, URDMA_CNT_RX_NAK_RNR), 4);
	EQUAL(counter(1, URDMA_CNT_TX_NAK_RNR), 4);
	end("timers");
}

/*
 * Several QPs send in both directions, one message after another; each waits for receives of its
 * peer, and RNR NAKs are lost, too.
 */
static void nested_rnrs(void **state)
{
	enum { EACH = 4, QPS = 3, N = EACH * QPS * 2 };
	static struct work w[N];

	(void)state;
	enter(QPS);
	rig_fault(&rig, "drop,aeth=rnr,p=20");
	for (unsigned int i = 0; i < N; i++) {
		w[i] = message(i % 3 == 2 ? URDMA_WR_WRITE_IMM : URDMA_WR_SEND, 3000, i);
		w[i].at = i * work_slot(3000);
		w[i].from = i % 2;
		w[i].pair = i / 2 % QPS;
		w[i].late_recv = true;
		work_put(&rig, &w[i]);
	}
	for (unsigned int k = 0; k < 2 * QPS; k++)
		urdma_eh_ring_sq(&rig.side[k % 2].qp[k / 2]);
	/*
	 * one receive of each QP at a time, so each message except the first comes too early again
	 */
	for (unsigned int i = 0; i < N; i++) {
		if (i % (2 * QPS) == 0)
			run_for(12000);
		work_put_recv(&rig, &w[i]);
		urdma_eh_ring_rq(&rig.side[!w[i].from].qp[w[i].pair]);
	}
	work_finish(&rig, w, N, 10 * LIMIT, "nested RNRs");
	for (unsigned int n = 0; n < 2; n++) {
		/* receives accumulate while the NIC waits for the time-out of a lost NAK */
		assert_true(counter(n, URDMA_CNT_TX_NAK_RNR) >= 2 * QPS);
		EQUAL(counter(n, URDMA_CNT_RNR_EXC), 0);
	}
	urdma_faults_clear(rig.faults);
	end("nested RNRs");
}

/* ---- lengths ------------------------------------------------------------------------------- */

/* Exactly n times the MTU are n packets, and none of them is empty. */
static void exactly_the_mtu(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_SEND_IMM, URDMA_WR_WRITE,
					       URDMA_WR_WRITE_IMM, URDMA_WR_READ };

	(void)state;
	for (unsigned int mtu = 1; mtu <= 5; mtu++) {
		uint32_t bytes = 128u << mtu;
		struct rig_config c;

		config(&c, 1);
		c.mtu = mtu;
		enter_as(&c);
		for (unsigned int k = 0; k < 4 * COUNT(opcode); k++) {
			unsigned int op = opcode[k / 4], n = 1 + k % 2;
			bool read = op == URDMA_WR_READ;
			const struct trace_packet *p;
			struct work w = { .opcode = op, .len = n * bytes, .seed = k };
			uint32_t first = next_psn(0, 0);
			unsigned int packets = 0;
			size_t from = trace.n;

			if (k / 2 % 2) /* the last one is lost */
				rig_fault(&rig, "drop,side=%u,psn=%u", read,
					  (first + n - 1) & PSN_MASK);
			work_run(&rig, &w, 1, LIMIT, "MTU");
			settle();
			for (p = trace.packet + from; p < trace.packet + trace.n; p++) {
				if (!trace_is(p, read, true, read ? TRACE_RESPONSE : TRACE_REQUEST,
					      -1, -1))
					continue;
				EQUAL(p->len, bytes);
				assert_true(((p->psn - first) & PSN_MASK) < n);
				packets++;
			}
			/* requests again from the oldest that is not acknowledged: no ACK tells of
			 * the first of two */
			EQUAL(packets, n + k / 2 % 2 * (read ? 1 : n));
			EQUAL(next_psn(0, 0), (first + n) & PSN_MASK);
			urdma_faults_clear(rig.faults);
		}
		end("exactly the MTU");
	}
}

/* A message of no bytes is one packet. Its key is not checked (C9-88), and nothing is written. */
static void zero_bytes(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_SEND_IMM, URDMA_WR_WRITE,
					       URDMA_WR_WRITE_IMM, URDMA_WR_READ };
	static const char *const fault[] = { NULL, "drop,side=0", "drop,side=1", "dup",
					     "dup,ns=50000" };

	(void)state;
	enter(1);
	for (unsigned int k = 0; k < COUNT(opcode) * COUNT(fault); k++) {
		unsigned int op = opcode[k % COUNT(opcode)];
		const char *f = fault[k / COUNT(opcode)];
		struct rig_side *side = &rig.side[0], *peer = &rig.side[1];
		struct urdma_eh_send wr = { .opcode = op,
					    .signaled = true,
					    .raddr = 0xdead0000beefull,
					    .rkey = 0xbad00,
					    .imm = 0x1234 };
		struct urdma_eh_cqe cqe;
		uint32_t first = next_psn(0, 0);
		const struct trace_packet *p;
		size_t from = trace.n;

		if (f)
			rig_fault(&rig, "%s", f);
		memset(side->buffer, 0x77, 4096);
		memset(peer->buffer, 0x77, 4096);
		if (work_takes_recv(op))
			assert_int_equal(urdma_eh_post_recv(&peer->qp[0], NULL, 0), 0);
		assert_int_equal(urdma_eh_post_send(&side->qp[0], &wr), 0);
		if (work_takes_recv(op)) {
			cqe = next_cqe(&peer->recv_cq, "receive");
			EQUAL(cqe.status, URDMA_WC_SUCCESS);
			EQUAL(cqe.length, 0);
			EQUAL(cqe.has_imm, op == URDMA_WR_SEND_IMM || op == URDMA_WR_WRITE_IMM);
		}
		EQUAL(next_cqe(&side->send_cq, "send").status, URDMA_WC_SUCCESS);
		run_for(20000);
		for (p = trace.packet + from; p < trace.packet + trace.n; p++) {
			EQUAL(p->psn, first);
			EQUAL(p->len, 0);
		}
		EQUAL(next_psn(0, 0), (first + 1) & PSN_MASK);
		for (unsigned int i = 0; i < 4096; i++)
			assert_true(side->buffer[i] == 0x77 && peer->buffer[i] == 0x77);
		assert_true(cqs_empty());
		urdma_faults_clear(rig.faults);
	}
	end("no bytes");
}

/* ---- a peer of another make ---------------------------------------------------------------- */

/* How a frame is changed on its way; through the wire's hook instead of rules. */
enum odd { CUT_4, CUT_64, CUT_TO_BTH, LONGER, FOREIGN };

struct odd_wire {
	enum odd odd;
	unsigned int side;  /* of the sender */
	unsigned int every; /* one frame in so many */
	unsigned int n, hits;
};

static void seal(uint8_t *frame, size_t len)
{
	struct roce_frame roce;
	const char *why;

	assert_int_equal(roce_parse(frame, len, &roce, &why), 0);
	roce_icrc(frame, &roce, frame + roce.end - 4);
}

static void odd_frames(void *ctx, unsigned int side, struct urdma_eth_frame *frame,
		       struct urdma_wire_verdict *verdict)
{
	struct odd_wire *o = ctx;
	struct urdma_roce r;

	(void)verdict;
	if (side != o->side || !urdma_roce_parse(frame->data, frame->len, &r) || ++o->n % o->every)
		return;
	switch (o->odd) {
	case CUT_4:
		frame->len -= 4;
		break;
	case CUT_64:
		if (frame->len < 200)
			return;
		frame->len -= 64;
		break;
	case CUT_TO_BTH:
		if (frame->len < 100)
			return;
		frame->len = 64;
		break;
	case LONGER:
		memset(frame->data + frame->len, 0x55, 64);
		frame->len += 64;
		break;
	case FOREIGN:
		/* migration state, reserved bits that routers may use, UDP source port */
		frame->data[r.bth + 1] ^= 0x40;
		frame->data[r.bth + 4] ^= (uint8_t)(o->n * 5);
		frame->data[r.bth + 8] ^= (uint8_t)(o->n & 0x7f);
		frame->data[r.ip + (r.ipv6 ? 40 : 20) + 1] ^= (uint8_t)o->n;
		seal(frame->data, frame->len);
		break;
	}
	o->hits++;
}

static void odd_traffic(const struct odd_wire *how, unsigned int bound, unsigned int index,
			const char *what)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_READ, URDMA_WR_WRITE,
					       URDMA_WR_ATOMIC_FA, URDMA_WR_WRITE_IMM };
	struct odd_wire o = *how;
	static struct work w[20];
	struct rig_config c;

	config(&c, 1);
	c.faults = false;
	enter_as(&c);
	urdma_wire_set_fault(urdma_cosim_wire(rig.cosim, 0), odd_frames, &o);
	for (unsigned int i = 0; i < COUNT(w); i++) {
		w[i] = message(opcode[i % COUNT(opcode)], 3000, i);
		w[i].at = i * work_slot(3000);
	}
	work_run(&rig, w, COUNT(w), 10 * LIMIT, what);
	settle();
	urdma_wire_set_fault(urdma_cosim_wire(rig.cosim, 0), NULL, NULL);
	assert_true(o.hits >= bound);
	if (index != URDMA_CNT_N)
		EQUAL(counter(!how->side, index), o.hits);
}

/*
 * A frame that ends early, with a good FCS: it is dropped and counted, and the traffic recovers.
 * The next frame is not taken for a part of it. Bytes after the IP packet are padding and ignored.
 */
static void wrong_ends_of_frames(void **state)
{
	static const enum odd odd[] = { CUT_4, CUT_64, CUT_TO_BTH, LONGER };

	(void)state;
	for (unsigned int k = 0; k < 2 * COUNT(odd); k++) {
		const struct odd_wire o = { .odd = odd[k / 2], .side = k % 2, .every = 7 };

		odd_traffic(&o, 3, o.odd == LONGER ? URDMA_CNT_N : URDMA_CNT_RX_MALFORMED,
			    "wrong ends");
		if (o.odd == LONGER)
			for (unsigned int n = 0; n < 2; n++) {
				EQUAL(counter(n, URDMA_CNT_RX_MALFORMED), 0);
				EQUAL(counter(n, URDMA_CNT_TX_RETRANS), 0);
			}
		end("wrong ends");
	}
}

/* BTH bits that peers may set freely do not matter, nor does the UDP source port. */
static void a_peer_of_another_make(void **state)
{
	(void)state;
	for (unsigned int side = 0; side < 2; side++) {
		const struct odd_wire o = { .odd = FOREIGN, .side = side, .every = 1 };

		odd_traffic(&o, 20, URDMA_CNT_N, "another make");
		for (unsigned int n = 0; n < 2; n++) {
			EQUAL(counter(n, URDMA_CNT_RX_MALFORMED), 0);
			EQUAL(counter(n, URDMA_CNT_RX_ICRC_ERR), 0);
			EQUAL(counter(n, URDMA_CNT_TX_RETRANS), 0);
			EQUAL(counter(n, URDMA_CNT_TX_NAK_SEQ), 0);
		}
		end("another make");
	}
}

/*
 * The first answer is changed to one for a PSN that was not sent; the second message is lost once.
 */
struct ghost_wire {
	uint32_t first, ahead;
	uint8_t syndrome;
	bool answered, lost;
};

static void ghost_answers(void *ctx, unsigned int side, struct urdma_eth_frame *frame,
			  struct urdma_wire_verdict *verdict)
{
	struct ghost_wire *g = ctx;
	struct urdma_roce r;
	uint32_t psn;

	if (!urdma_roce_parse(frame->data, frame->len, &r))
		return;
	if (side == 0 && r.psn == g->first + 1 && !g->lost) {
		verdict->drop = true;
		g->lost = true;
	} else if (side == 1 && r.opcode == 0x11 && !g->answered) {
		psn = r.psn + g->ahead;
		frame->data[r.bth + 9] = (uint8_t)(psn >> 16);
		frame->data[r.bth + 10] = (uint8_t)(psn >> 8);
		frame->data[r.bth + 11] = (uint8_t)psn;
		frame->data[r.bth + 12] = g->syndrome;
		seal(frame->data, frame->len);
		g->answered = true;
	}
}

/*
 * An ACK or NAK for a PSN that was not sent completes nothing. A lost message that it seems to
 * cover is sent again, after the time-out, before it completes.
 */
static void answers_to_what_was_not_sent(void **state)
{
	static const uint32_t ahead[] = {
		2, 3, 1000, 1u << 21, 1u << 22, (1u << 23) - 1, 1u << 23
	};

	(void)state;
	for (unsigned int k = 0; k < 2 * COUNT(ahead); k++) {
		struct ghost_wire g = { .ahead = ahead[k / 2], .syndrome = k % 2 ? 0x60 : 0x1f };
		struct rig_config c;
		struct work w[2];

		config(&c, 1);
		c.faults = false;
		enter_as(&c);
		g.first = next_psn(0, 0);
		urdma_wire_set_fault(urdma_cosim_wire(rig.cosim, 0), ghost_answers, &g);
		for (unsigned int i = 0; i < 2; i++)
			w[i] = message(URDMA_WR_WRITE, 100, i);
		work_run(&rig, w, 2, LIMIT, "ghosts");
		settle();
		urdma_wire_set_fault(urdma_cosim_wire(rig.cosim, 0), NULL, NULL);
		assert_true(g.answered && g.lost);
		EQUAL(counter(0, URDMA_CNT_RX_ACK_GHOST), 1);
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 1);
		end("ghosts");
	}
}

/* ---- keys ---------------------------------------------------------------------------------- */

enum wrong { BAD, STALE, OTHER_PD, BEHIND, BEFORE, NO_RIGHT, GONE, FINE };
enum whose { LOCAL, REMOTE, RECEIVE };

static const char *const wrong_name[] = { "of nothing",
					  "with another variant",
					  "of another PD",
					  "and one byte behind its region",
					  "and one byte before its region",
					  "without the right",
					  "of a region that is gone" };

struct key_case {
	char name[96];
	unsigned int opcode;
	enum whose whose;
	enum wrong wrong;
};

/*
 * The region is placed such that an aligned word crosses each of its ends, by one byte or seven:
 * REGION is 1 modulo 8, its end 7.
 */
#define ZONE	   (1u << 20) /* in the buffer: 8 KB that are compared */
#define ZONE_LEN   8192u
#define REGION	   (ZONE + 105u)
#define REGION_LEN 5006u
#define KEY_LEN	   3000u
#define OTHER	   9u /* PD */

static struct {
	struct urdma_eh_mr good, other_pd;
	struct urdma_eh_mr no_right[4]; /* no WRITE, no READ, no ATOMIC from afar, none at all */
	uint32_t gone;
} keys[2];
static unsigned int next_pair;

static void make_keys(unsigned int n)
{
	static const unsigned int right[] = { URDMA_ACC_REMOTE_WRITE, URDMA_ACC_REMOTE_READ,
					      URDMA_ACC_REMOTE_ATOMIC };
	const unsigned int all = URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE |
				 URDMA_ACC_REMOTE_READ | URDMA_ACC_REMOTE_ATOMIC;
	struct rig_side *side = &rig.side[n];
	uint8_t *p = side->buffer + REGION;
	struct urdma_eh_mr gone;

	assert_int_equal(urdma_eh_alloc_pd(side->eh, OTHER), 0);
	assert_int_equal(urdma_eh_create_mr(side->eh, 20, 1, RIG_PD, all, p, REGION_LEN,
					    (uintptr_t)p, &keys[n].good),
			 0);
	assert_int_equal(urdma_eh_create_mr(side->eh, 21, 1, OTHER, all, p, REGION_LEN,
					    (uintptr_t)p, &keys[n].other_pd),
			 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(urdma_eh_create_mr(side->eh, 22 + i, 1, RIG_PD,
						    i < 3 ? all & ~right[i] : 0, p, REGION_LEN,
						    (uintptr_t)p, &keys[n].no_right[i]),
				 0);
	assert_int_equal(urdma_eh_create_mr(side->eh, 26, 1, RIG_PD, all, p, REGION_LEN,
					    (uintptr_t)p, &gone),
			 0);
	keys[n].gone = gone.key;
	assert_int_equal(urdma_eh_destroy_mr(&gone), 0);
}

static void drop_keys(unsigned int n)
{
	assert_int_equal(urdma_eh_destroy_mr(&keys[n].good), 0);
	assert_int_equal(urdma_eh_destroy_mr(&keys[n].other_pd), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(urdma_eh_destroy_mr(&keys[n].no_right[i]), 0);
	assert_int_equal(urdma_eh_dealloc_pd(rig.side[n].eh, OTHER), 0);
}

static uint32_t key_of(unsigned int n, enum wrong wrong, enum whose whose, unsigned int opcode)
{
	switch (wrong) {
	case BAD:
		return 0x7777701;
	case STALE:
		return keys[n].good.key ^ 0x80;
	case OTHER_PD:
		return keys[n].other_pd.key;
	case NO_RIGHT:
		if (whose != REMOTE)
			return keys[n].no_right[3].key;
		if (opcode == URDMA_WR_WRITE)
			return keys[n].no_right[0].key;
		return keys[n].no_right[opcode == URDMA_WR_READ ? 1 : 2].key;
	case GONE:
		return keys[n].gone;
	default:
		return keys[n].good.key;
	}
}

static uint64_t address_of(unsigned int n, enum wrong wrong, uint32_t len)
{
	uint64_t region = (uintptr_t)rig.side[n].buffer + REGION;

	if (wrong == BEFORE)
		return region - 1;
	if (wrong == BEHIND)
		return region + REGION_LEN + 1 - len;
	return region + 7; /* aligned for ATOMICs */
}

static void wrong_key(void **state)
{
	const struct key_case *c = *state;
	bool atomic = work_is_atomic(c->opcode);
	uint32_t len = atomic ? 8 : KEY_LEN, first;
	struct rig_side *side = &rig.side[0], *peer = &rig.side[1];
	enum wrong local = c->whose == LOCAL ? c->wrong : FINE;
	enum wrong remote = c->whose == REMOTE ? c->wrong : FINE;
	struct urdma_eh_sge sge;
	struct urdma_eh_cqe cqe;
	unsigned int pair, status;
	size_t naks;
	int qpn;

	if (!keyed) {
		enter(RIG_MAX_QPS);
		make_keys(0);
		make_keys(1);
		next_pair = 0;
	}
	keyed = false; /* if this fails, the next case starts with a new rig */
	pair = next_pair++;
	assert_true(pair < RIG_MAX_QPS - 1);
	qpn = (int)RIG_QPN(pair);
	first = next_psn(0, pair);
	memset(side->buffer + ZONE, 0x11, ZONE_LEN);
	memset(peer->buffer + ZONE, 0x22, ZONE_LEN);
	if (work_takes_recv(c->opcode)) {
		enum wrong w = c->whose == RECEIVE ? c->wrong : FINE;

		sge = (struct urdma_eh_sge){ address_of(1, w, len), len, key_of(1, w, RECEIVE, 0) };
		assert_int_equal(urdma_eh_post_recv(&peer->qp[pair], &sge, 1), 0);
	}
	assert_int_equal(put_simple(pair, c->opcode, address_of(0, local, len),
				    key_of(0, local, LOCAL, c->opcode), address_of(1, remote, len),
				    key_of(1, remote, REMOTE, c->opcode), len),
			 0);
	cqe = next_cqe(&side->send_cq, "the error");
	EQUAL(cqe.qpn, qpn);
	status = c->whose == LOCAL     ? URDMA_WC_LOC_PROT_ERR
		 : c->whose == RECEIVE ? URDMA_WC_REM_OP_ERR
				       : URDMA_WC_REM_ACCESS_ERR;
	EQUAL(cqe.status, status);
	settle();
	EQUAL(rig_qp_state(&side->qp[pair]), URDMA_QPS_ERR);
	EQUAL(rig_qp_state(&peer->qp[pair]), c->whose == LOCAL ? URDMA_QPS_RTS : URDMA_QPS_ERR);
	/* one NAK with the right syndrome, and no other */
	naks = trace_count(&trace, 1, true, TRACE_NAK_OTHER, qpn, -1);
	EQUAL(naks, c->whose != LOCAL);
	EQUAL(trace_count(&trace, 1, true, TRACE_NAK_SEQ, qpn, -1), 0);
	if (naks) {
		const struct trace_packet *p =
			trace_find(&trace, 0, 1, true, TRACE_NAK_OTHER, qpn, -1);

		EQUAL(p->syndrome, c->whose == RECEIVE ? 0x63 : 0x62);
		/* a later packet only where the key is good for the first one */
		assert_true(((p->psn - first) & PSN_MASK) <=
			    (c->wrong == BEHIND && !atomic ? 2 : 0));
	}
	if (c->whose == RECEIVE) {
		cqe = next_cqe(&peer->recv_cq, "receive");
		EQUAL(cqe.status, URDMA_WC_LOC_PROT_ERR);
		EQUAL(cqe.qpn, qpn);
	}
	/* packets are sent only with a good key */
	if (c->whose == LOCAL && c->opcode <= URDMA_WR_WRITE && c->wrong != BEHIND)
		EQUAL(trace_count(&trace, 0, true, TRACE_REQUEST, qpn, -1), 0);
	/* nothing changed in the zone outside the region, nor inside where nothing may */
	for (unsigned int i = 0; i < 2 * ZONE_LEN; i++) {
		uint32_t at = i / 2, in_region = ZONE + at - REGION;
		bool may = in_region < REGION_LEN && (c->wrong == BEHIND || i % 2);

		if (c->whose == REMOTE && c->wrong != BEHIND)
			may = false;
		if (!may && rig.side[i % 2].buffer[ZONE + at] != (i % 2 ? 0x22 : 0x11))
			fail_msg("byte %u of side %u's zone, %d of the region, is written", at,
				 i % 2, (int)in_region);
	}
	while (urdma_eh_cq_ready(&peer->recv_cq)) /* flushed */
		assert_int_equal(next_cqe(&peer->recv_cq, "flush").status, URDMA_WC_FLUSH_ERR);
	assert_true(cqs_empty());
	/* other QPs are not disturbed */
	rig_message(&rig, RIG_MAX_QPS - 1, pair % 2, 0, 2000, pair);
	keyed = true;
}

static void keys_verdict(void **state)
{
	(void)state;
	if (!keyed)
		skip();
	keyed = false;
	drop_keys(0);
	drop_keys(1);
	end("keys");
}

/* ---- invalidated while in use -------------------------------------------------------------- */

enum end_of_key { LOCAL_INV, REMOTE_INV, DEREG };

struct in_use {
	const char *name;
	unsigned int opcode;
	unsigned int owner; /* of the region: 0 the requester */
	enum end_of_key how;
};

static const struct in_use in_use[] = {
	{ "invalidated under a stream of WRITEs", URDMA_WR_WRITE, 1, LOCAL_INV },
	{ "invalidated under a stream of READs", URDMA_WR_READ, 1, LOCAL_INV },
	{ "invalidated by a SEND under a stream of WRITEs", URDMA_WR_WRITE, 1, REMOTE_INV },
	{ "invalidated by a SEND under a stream of READs", URDMA_WR_READ, 1, REMOTE_INV },
	{ "deregistered under a stream of WRITEs", URDMA_WR_WRITE, 1, DEREG },
	{ "deregistered under a stream of READs", URDMA_WR_READ, 1, DEREG },
	{ "source of WRITEs invalidated", URDMA_WR_WRITE, 0, LOCAL_INV },
	{ "target of READs invalidated", URDMA_WR_READ, 0, LOCAL_INV },
	{ "source of SENDs deregistered", URDMA_WR_SEND, 0, DEREG },
	{ "target of READs deregistered", URDMA_WR_READ, 0, DEREG },
	{ "target of SENDs invalidated", URDMA_WR_SEND, 1, LOCAL_INV },
};

#define STREAM	  (1u << 20)
#define STREAM_AT (2u << 20)

static bool stream_is_flowing(void *arg)
{
	return trace.n > *(size_t *)arg;
}

static void invalidate_once(const struct in_use *u, unsigned int round)
{
	struct rig_side *owner, *other;
	struct urdma_eh_mr mr;
	struct urdma_eh_cqe cqe;
	struct urdma_eh_sge sge;
	uint8_t *zone, *peer_zone, *snapshot;
	bool into = (u->opcode == URDMA_WR_READ) != (u->owner == 1); /* data go to the region */
	size_t some = 120 + 77 * round, left = 0;
	int status = -1;
	struct rig_config c;
	uint64_t late;

	config(&c, 2);
	c.cosim.pcie.latency_ns = 300 + 300 * (round % 3);
	c.cosim.pcie.reorder = round % 2;
	c.cosim.pcie.seed = test_seed(round + 1);
	enter_as(&c);
	owner = &rig.side[u->owner];
	other = &rig.side[!u->owner];
	zone = owner->buffer + STREAM_AT;
	peer_zone = other->buffer + STREAM_AT;
	memset(zone, 0x11, STREAM);
	memset(peer_zone, 0x22, STREAM);
	assert_int_equal(urdma_eh_create_mr_kind(owner->eh, 10, 1, RIG_PD, URDMA_MRK_FAST, &mr), 0);
	assert_int_equal(urdma_eh_put_reg_mr(&owner->qp[1], &mr, 2,
					     URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE |
						     URDMA_ACC_REMOTE_READ,
					     zone, STREAM, (uintptr_t)zone, 1, 12, true),
			 0);
	urdma_eh_ring_sq(&owner->qp[1]);
	EQUAL(next_cqe(&owner->send_cq, "REG_MR").status, URDMA_WC_SUCCESS);
	if (u->opcode == URDMA_WR_SEND) {
		sge = (struct urdma_eh_sge){ (uintptr_t)rig.side[1].buffer + STREAM_AT, STREAM,
					     u->owner ? mr.key : rig.side[1].mr.key };
		assert_int_equal(urdma_eh_post_recv(&rig.side[1].qp[0], &sge, 1), 0);
	}
	if (u->how == REMOTE_INV)
		assert_int_equal(urdma_eh_post_recv(&owner->qp[1], NULL, 0), 0);
	assert_int_equal(put_simple(0, u->opcode, (uintptr_t)rig.side[0].buffer + STREAM_AT,
				    u->owner ? rig.side[0].mr.key : mr.key,
				    (uintptr_t)rig.side[1].buffer + STREAM_AT,
				    u->owner ? mr.key : rig.side[1].mr.key, STREAM),
			 0);
	rig_check(&rig,
		  urdma_cosim_run_cond(rig.cosim, stream_is_flowing, &some,
				       urdma_cosim_now(rig.cosim) + LIMIT),
		  "stream");
	switch (u->how) {
	case LOCAL_INV:
		assert_int_equal(urdma_eh_put_local_inv(&owner->qp[1], mr.key, true), 0);
		urdma_eh_ring_sq(&owner->qp[1]);
		cqe = next_cqe(&owner->send_cq, "LOCAL_INV");
		/* the requester's own key: the stream may end first */
		if (!u->owner && cqe.qpn == RIG_QPN(0)) {
			status = (int)cqe.status;
			cqe = next_cqe(&owner->send_cq, "LOCAL_INV");
		}
		EQUAL(cqe.qpn, RIG_QPN(1));
		EQUAL(cqe.status, URDMA_WC_SUCCESS);
		break;
	case REMOTE_INV: {
		struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND_INV, .key = mr.key };

		assert_int_equal(urdma_eh_post_send(&other->qp[1], &wr), 0);
		cqe = next_cqe(&owner->recv_cq, "SEND_INV");
		EQUAL(cqe.qpn, RIG_QPN(1));
		EQUAL(cqe.status, URDMA_WC_SUCCESS);
		assert_true(cqe.has_inv);
		break;
	}
	case DEREG:
		assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
		break;
	}
	late = urdma_cosim_now(rig.cosim);
	snapshot = test_malloc(STREAM);
	memcpy(snapshot, zone, STREAM);
	if (!into) /* changes are seen by reads from now on */
		memset(zone, 0xdd, STREAM);
	if (status < 0) {
		cqe = next_cqe(&rig.side[0].send_cq, "the stream's end");
		EQUAL(cqe.qpn, RIG_QPN(0));
		status = (int)cqe.status;
	}
	EQUAL(status, !u->owner			   ? URDMA_WC_LOC_PROT_ERR
		      : u->opcode == URDMA_WR_SEND ? URDMA_WC_REM_OP_ERR
						   : URDMA_WC_REM_ACCESS_ERR);
	settle();
	if (into) {
		for (size_t i = 0; i < STREAM; i++) {
			left += zone[i] == 0x11;
			if (zone[i] != snapshot[i])
				fail_msg("byte %zu was written after cycle %llu", i,
					 (unsigned long long)late);
		}
	} else {
		for (size_t i = 0; i < STREAM; i++) {
			left += peer_zone[i] == 0x22;
			if (peer_zone[i] == 0xdd)
				fail_msg("byte %zu was read after cycle %llu", i,
					 (unsigned long long)late);
		}
	}
	/* the end came in the middle */
	assert_true(left > 0 && left < STREAM);
	test_free(snapshot);
	for (unsigned int n = 0; n < 2; n++) {
		while (urdma_eh_poll_cq(&rig.side[n].recv_cq, &cqe, 1))
			assert_true(cqe.qpn == RIG_QPN(0) && cqe.status);
	}
	/* the other QP goes on */
	rig_message(&rig, 1, 0, 0, 2000, 1);
	if (u->how != DEREG)
		assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
	end(u->name);
}

/*
 * When the end of the key is reported, by the CQE or by the command, no more byte is written to or
 * read from where it led. At several moments of the stream, with fast and slow reads of host
 * memory.
 */
static void invalidated_in_use(void **state)
{
	for (unsigned int round = 0; round < 3; round++)
		invalidate_once(*state, round);
}

/*
 * A repeated READ may come after its key has ended: the first one was answered, and whoever has the
 * answer may end the key, as an NVMe target does by a SEND with invalidate. The repetition has no
 * effect.
 */
static void duplicate_read_of_an_ended_key(void **state)
{
	static const int how[] = { LOCAL_INV, REMOTE_INV, DEREG };

	(void)state;
	for (unsigned int k = 0; k < COUNT(how); k++) {
		struct urdma_eh_send inv = { .opcode = URDMA_WR_SEND_INV };
		struct rig_side *peer;
		struct urdma_eh_mr mr;

		enter(2);
		peer = &rig.side[1];
		assert_int_equal(
			urdma_eh_create_mr_kind(peer->eh, 10, 1, RIG_PD, URDMA_MRK_FAST, &mr), 0);
		assert_int_equal(urdma_eh_put_reg_mr(&peer->qp[1], &mr, 2, URDMA_ACC_REMOTE_READ,
						     peer->buffer, LEN, (uintptr_t)peer->buffer, 1,
						     12, true),
				 0);
		urdma_eh_ring_sq(&peer->qp[1]);
		EQUAL(next_cqe(&peer->send_cq, "REG_MR").status, URDMA_WC_SUCCESS);
		rig_fault(&rig, "dup,side=0,ns=50000,op=read_request");
		assert_int_equal(put_simple(0, URDMA_WR_READ, (uintptr_t)rig.side[0].buffer,
					    rig.side[0].mr.key, (uintptr_t)peer->buffer, mr.key,
					    LEN),
				 0);
		EQUAL(next_cqe(&rig.side[0].send_cq, "READ").status, URDMA_WC_SUCCESS);
		switch (how[k]) {
		case LOCAL_INV:
			assert_int_equal(urdma_eh_put_local_inv(&peer->qp[1], mr.key, true), 0);
			urdma_eh_ring_sq(&peer->qp[1]);
			EQUAL(next_cqe(&peer->send_cq, "LOCAL_INV").status, URDMA_WC_SUCCESS);
			break;
		case REMOTE_INV:
			assert_int_equal(urdma_eh_post_recv(&peer->qp[0], NULL, 0), 0);
			inv.key = mr.key;
			inv.signaled = true;
			assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0], &inv), 0);
			EQUAL(next_cqe(&peer->recv_cq, "SEND_INV").status, URDMA_WC_SUCCESS);
			EQUAL(next_cqe(&rig.side[0].send_cq, "SEND_INV").status, URDMA_WC_SUCCESS);
			break;
		default:
			assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
			break;
		}
		EQUAL(counter(1, URDMA_CNT_RX_DUP), 0);
		run_for(30000);
		EQUAL(counter(1, URDMA_CNT_RX_DUP), 1);
		EQUAL(SEEN(1, true, TRACE_RESPONSE, -1), PACKETS);
		EQUAL(SEEN(1, true, TRACE_NAK_OTHER, -1), 0);
		/* the QPs go on */
		rig_message(&rig, 0, 0, 0, 2000, 1);
		rig_message(&rig, 1, 0, 0, 2000, 1);
		if (how[k] != DEREG)
			assert_int_equal(urdma_eh_destroy_mr(&mr), 0);
		end("duplicate READ of an ended key");
	}
}

static bool nak_came(void *ctx)
{
	(void)ctx;
	return SEEN(0, false, TRACE_NAK_SEQ, -1) != 0;
}

/*
 * A QP that goes to ERR stops sending at once, including packets on their way to the wire: the
 * flush completes its messages one after the other, and packets of those that are not completed yet
 * would come after a gap.
 */
static void err_amid_a_retransmission(void **state)
{
	unsigned int met = 0;

	(void)state;
	for (uint64_t offset = 0; offset < 1000; offset += 20) {
		struct urdma_eh_cmd cmd = { 0 };
		struct urdma_eh_cqe cqe;
		size_t sent;

		enter(1);
		rig_fault(&rig, "drop,side=0,psn=%u", next_psn(0, 0));
		for (unsigned int i = 0; i < 48; i++)
			assert_int_equal(
				put_simple(0, URDMA_WR_WRITE, (uintptr_t)rig.side[0].buffer,
					   rig.side[0].mr.key, (uintptr_t)rig.side[1].buffer,
					   rig.side[1].mr.key, MTU_SIZE),
				0);
		rig_check(&rig,
			  urdma_cosim_run_cond(rig.cosim, nak_came, NULL,
					       urdma_cosim_now(rig.cosim) + LIMIT),
			  "NAK");
		run_for(offset);
		cmd.w[1] = URDMA_SET(URDMA_CMD_MOD1_MASK, URDMA_QPM_STATE) |
			   URDMA_SET(URDMA_CMD_MOD1_STATE, URDMA_QPS_ERR);
		assert_int_equal(urdma_eh_modify_qp(&rig.side[0].qp[0], &cmd), 0);
		/* frames that were already made may leave */
		run_for(200);
		sent = SEEN(0, true, TRACE_REQUEST, -1);
		settle();
		EQUAL(SEEN(0, true, TRACE_REQUEST, -1), sent);
		met += sent > 48 && sent < 96;
		while (urdma_eh_poll_cq(&rig.side[0].send_cq, &cqe, 1))
			assert_true(!cqe.status || cqe.status == URDMA_WC_FLUSH_ERR);
		end("ERR amid a retransmission");
	}
	assert_true(met > 5);
}

/* ---- counters ------------------------------------------------------------------------------ */

/* What a side did and saw, by its port. */
struct seen {
	uint64_t ahead, duplicate, again, bad;
};

static void look(unsigned int side, unsigned int pair, uint32_t tx_psn, uint32_t rx_psn,
		 struct seen *s)
{
	for (size_t i = 0; i < trace.n; i++) {
		const struct trace_packet *p = &trace.packet[i];
		uint32_t *next = p->out ? &tx_psn : &rx_psn, n = 1;
		int32_t d;

		if (p->bad || !trace_is(p, side, p->out, TRACE_REQUEST, (int)RIG_QPN(pair), -1))
			continue;
		if (trace_is(p, side, p->out, TRACE_READ, -1, -1))
			n = work_psns(URDMA_WR_READ, p->dma_len, MTU);
		d = roce_psn_diff(p->psn, *next);
		if (!d)
			*next = (*next + n) & PSN_MASK;
		else if (p->out)
			s->again++;
		else if (d < 0)
			s->duplicate++;
		else
			s->ahead++;
	}
}

static void counters_are_the_trace(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND,	   URDMA_WR_WRITE,
					       URDMA_WR_READ,	   URDMA_WR_ATOMIC_FA,
					       URDMA_WR_WRITE_IMM, URDMA_WR_READ,
					       URDMA_WR_SEND_IMM };
	static struct work w[56];
	uint32_t psn[2][2];
	uint64_t dropped = 0, answers[2] = { 0, 0 };

	(void)state;
	enter(2);
	for (unsigned int k = 0; k < 4; k++)
		psn[k / 2][k % 2] = next_psn(k / 2, k % 2);
	rig_fault(&rig, "drop,p=3");
	rig_fault(&rig, "dup,ns=3000,p=3");
	rig_fault(&rig, "reorder,p=2");
	rig_fault(&rig, "corrupt,byte=-2,p=3");
	for (unsigned int i = 0; i < COUNT(w); i++) {
		w[i] = message(opcode[i / 4 % COUNT(opcode)], 4500, i);
		w[i].at = i * work_slot(4500);
		w[i].from = i % 2;
		w[i].pair = i / 2 % 2;
		w[i].late_recv = i >= 40; /* the last ones make RNR NAKs */
		if (w[i].opcode == URDMA_WR_READ || work_is_atomic(w[i].opcode))
			answers[i % 2] += work_psns(w[i].opcode, 4500, MTU);
		work_put(&rig, &w[i]);
	}
	work_ring(&rig, w, COUNT(w));
	for (unsigned int i = 40; i < COUNT(w); i++)
		if (work_takes_recv(w[i].opcode)) {
			run_for(5000);
			work_put_recv(&rig, &w[i]);
			urdma_eh_ring_rq(&rig.side[!w[i].from].qp[w[i].pair]);
		}
	work_finish(&rig, w, COUNT(w), 20 * LIMIT, "loss");
	urdma_faults_clear(rig.faults);
	run_for(20000);
	settle();
	for (unsigned int n = 0; n < 2; n++) {
		struct seen s = { 0 };
		uint64_t good[2] = { 0, 0 };

		for (unsigned int pair = 0; pair < 2; pair++)
			look(n, pair, psn[n][pair], psn[!n][pair], &s);
		for (size_t i = 0; i < trace.n; i++) {
			const struct trace_packet *p = &trace.packet[i];

			if (p->side != n)
				continue;
			good[p->out] += !p->bad;
			s.bad += !p->out && p->bad;
		}
#define ALL(out, kind) trace_count(&trace, n, out, kind, -1, -1)
		dropped += counter(n, URDMA_CNT_RX_DROP_FULL);
		EQUAL(counter(n, URDMA_CNT_TX_RDMA_PKTS), good[1]);
		EQUAL(counter(n, URDMA_CNT_RX_RDMA_PKTS), good[0]);
		EQUAL(counter(n, URDMA_CNT_RX_ICRC_ERR), s.bad);
		EQUAL(counter(n, URDMA_CNT_TX_ACK), ALL(true, TRACE_ACK));
		EQUAL(counter(n, URDMA_CNT_RX_ACK), ALL(false, TRACE_ACK));
		EQUAL(counter(n, URDMA_CNT_TX_NAK_SEQ), ALL(true, TRACE_NAK_SEQ));
		EQUAL(counter(n, URDMA_CNT_RX_NAK), ALL(false, TRACE_NAK_SEQ));
		EQUAL(counter(n, URDMA_CNT_TX_NAK_RNR), ALL(true, TRACE_RNR));
		EQUAL(counter(n, URDMA_CNT_RX_NAK_RNR), ALL(false, TRACE_RNR));
		EQUAL(counter(n, URDMA_CNT_TX_NAK_OTHER), 0);
		EQUAL(counter(n, URDMA_CNT_TX_READ_RSP),
		      ALL(true, TRACE_RESPONSE) + ALL(true, TRACE_ATOMIC_ACK));
		/* accepted messages: each counted once, however often it came */
		EQUAL(counter(n, URDMA_CNT_RX_READ_RSP), answers[n]);
		EQUAL(counter(n, URDMA_CNT_TX_RETRANS), s.again);
		/* packets of a message without a receive are neither ahead nor duplicates; with
		 * other seeds one of these counters may stay 0 */
		assert_true(getenv("SEED") ||
			    (s.bad && s.ahead && s.duplicate && ALL(true, TRACE_RNR)));
#undef ALL
	}
	EQUAL(dropped, 0);
	end("counters");
}

/* The same for messages that need receives, which are posted: ahead, duplicate, and time-outs. */
static void sequence_counters_are_the_trace(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ,
					       URDMA_WR_ATOMIC_FA };
	static struct work w[40];
	uint32_t psn[2], last;

	(void)state;
	enter(1);
	psn[0] = next_psn(0, 0);
	psn[1] = next_psn(1, 0);
	rig_fault(&rig, "drop,p=2");
	rig_fault(&rig, "dup,ns=3000,p=3");
	rig_fault(&rig, "reorder,p=2");
	for (unsigned int i = 0; i < COUNT(w); i++) {
		w[i] = message(opcode[i / 2 % COUNT(opcode)], 4500, i);
		w[i].at = i * work_slot(4500);
		w[i].from = i % 2;
	}
	work_run(&rig, w, COUNT(w), 20 * LIMIT, "loss");
	urdma_faults_clear(rig.faults);
	run_for(20000);
	settle();
	for (unsigned int n = 0; n < 2; n++) {
		struct seen s = { 0 };

		look(n, 0, psn[n], psn[!n], &s);
		EQUAL(counter(n, URDMA_CNT_RX_SEQ_ERR), s.ahead);
		EQUAL(counter(n, URDMA_CNT_RX_DUP), s.duplicate);
		EQUAL(counter(n, URDMA_CNT_TX_RETRANS), s.again);
	}
	/* each loss of the last packet costs a time-out */
	{
		uint64_t before = counter(0, URDMA_CNT_TX_TIMEOUT);

		last = next_psn(0, 0) + PACKETS - 1;
		rig_fault(&rig, "drop,side=0,psn=%u,count=3", last);
		messages(URDMA_WR_WRITE, 1);
		EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT) - before, 3);
		EQUAL(SEEN(0, true, TRACE_REQUEST, (int)last), 4);
	}
	end("counters");
}

/* ---- neighbours ---------------------------------------------------------------------------- */

enum { NOISY = 8, CLEAN = 8, EACH = 6 };
#define NEIGHBOUR_LEN 16000u

/* Cycles until the last message of the clean QPs completes. fault: of each noisy QP, or NULL. */
static uint64_t clean_ones(unsigned int opcode, const char *fault, bool no_receives,
			   bool expect_all)
{
	static struct work w[(NOISY + CLEAN) * EACH];
	unsigned int left = CLEAN * EACH, noisy_left = NOISY * EACH, n = 0;
	struct rig_config c;
	uint64_t begun, last = 0;

	config(&c, NOISY + CLEAN);
	c.conn.min_rnr = 14;
	enter_as(&c);
	for (unsigned int i = 0; i < EACH; i++)
		for (unsigned int pair = 0; pair < NOISY + CLEAN; pair++) {
			w[n] = message(opcode, NEIGHBOUR_LEN, n);
			w[n].at = n * work_slot(NEIGHBOUR_LEN);
			w[n].odd = 0; /* a full line, without more TLPs than PCIe has room for */
			w[n].pair = pair;
			w[n].late_recv = no_receives && pair < NOISY;
			work_put(&rig, &w[n]);
			n++;
		}
	for (unsigned int pair = 0; fault && pair < NOISY; pair++)
		rig_fault(&rig, "%s,qpn=%u", fault, RIG_QPN(pair));
	begun = urdma_cosim_now(rig.cosim);
	work_ring(&rig, w, n);
	while (left || (expect_all && noisy_left)) {
		struct urdma_eh_cqe cqe = next_cqe(&rig.side[0].send_cq, "neighbours");

		EQUAL(cqe.status, URDMA_WC_SUCCESS);
		if (cqe.qpn - RIG_QPN(0) >= NOISY) {
			left--;
			last = urdma_cosim_now(rig.cosim);
		} else {
			noisy_left--;
		}
	}
	for (unsigned int i = 0; i < n; i++)
		if (w[i].pair >= NOISY || expect_all)
			work_check_memory(&rig, &w[i]);
	EQUAL(counter(0, URDMA_CNT_RX_DROP_FULL) + counter(1, URDMA_CNT_RX_DROP_FULL), 0);
	/* QPs that never recover are left as they are */
	if (expect_all) {
		struct urdma_eh_cqe cqe;

		while (urdma_eh_poll_cq(&rig.side[1].recv_cq, &cqe, 1))
			EQUAL(cqe.status, URDMA_WC_SUCCESS);
		urdma_faults_clear(rig.faults);
		end("neighbours");
	} else {
		leave();
	}
	return last - begun;
}

/*
 * QPs that lose packets, wait for a time-out, or wait for receives of their peer, on the same NICs
 * as QPs that do not. The latter take at most RATIO of their time without losses.
 */
#define RATIO 110u /* percent */

static void noisy_neighbours(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_WRITE, URDMA_WR_READ, URDMA_WR_SEND };
	static const struct {
		const char *name, *fault;
		bool no_receives, all;
	} noise[] = {
		{ "5 % lost", "drop,p=5", false, true },
		{ "5 % of the requests lost", "drop,side=0,p=5", false, true },
		{ "5 % of the answers lost", "drop,side=1,p=5", false, true },
		{ "all lost", "drop,count=all", false, false },
		{ "no receives", NULL, true, false },
	};

	(void)state;
	for (unsigned int o = 0; o < COUNT(opcode); o++) {
		uint64_t quiet = clean_ones(opcode[o], NULL, false, true);

		for (unsigned int k = 0; k < COUNT(noise); k++) {
			uint64_t noisy;

			if (noise[k].no_receives && opcode[o] != URDMA_WR_SEND)
				continue;
			noisy = clean_ones(opcode[o], noise[k].fault, noise[k].no_receives,
					   noise[k].all);
			print_message("  %s, neighbours with %s: %lu cycles, undisturbed %lu\n",
				      work_name(opcode[o]), noise[k].name, (unsigned long)noisy,
				      (unsigned long)quiet);
			if (noisy * 100 > quiet * RATIO)
				fail_msg("%s, neighbours with %s: %lu cycles instead of %lu",
					 work_name(opcode[o]), noise[k].name, (unsigned long)noisy,
					 (unsigned long)quiet);
		}
	}
}

/* ---- latency of loss recovery -------------------------------------------------------------- */

#define CYCLE_NS    4u
#define PIPELINE    75u	 /* cycles, the design's budget from the MAC to a DMA write, or back */
#define PCIE_CYCLES 125u /* of a DMA read on an idle link */
#define ROUNDS	    20u

struct latency {
	const char *name;
	uint64_t least, most, sum, n, bound;
};

static void note(struct latency *l, const struct trace_packet *a, const struct trace_packet *b)
{
	uint64_t cycles;

	assert_non_null(a);
	assert_non_null(b);
	cycles = (b->ns - a->ns) / CYCLE_NS;
	l->least = !l->n || cycles < l->least ? cycles : l->least;
	l->most = cycles > l->most ? cycles : l->most;
	l->sum += cycles;
	l->n++;
}

static bool tell(const struct latency *l)
{
	print_message("  %s: %lu to %lu cycles, %lu on average (bound %lu)\n", l->name,
		      (unsigned long)l->least, (unsigned long)l->most,
		      (unsigned long)(l->sum / l->n), (unsigned long)l->bound);
	return l->most <= l->bound;
}

/*
 * On NICs that have nothing else to do. Times run from the end of one frame at the MAC to the end
 * of the other; a full packet has 17 beats of the line, about 22 cycles.
 */
static void latency_of_recovery(void **state)
{
	enum { FRAME = 24 };
	struct latency nak = { .name = "packet behind a gap, to the NAK", .bound = PIPELINE };
	struct latency resend = { .name = "NAK, to the packet sent again",
				  .bound = 2 * PIPELINE + 2 * PCIE_CYCLES + FRAME };
	struct latency read = { .name = "response behind a gap, to the READ sent again",
				.bound = 2 * PIPELINE + PCIE_CYCLES };
	struct latency answer = { .name = "READ sent again, to its first response",
				  .bound = 2 * PIPELINE + PCIE_CYCLES + FRAME };
	bool good = true;

	(void)state;
	enter(1);
	messages(URDMA_WR_WRITE, 1); /* page tables are in the caches */
	messages(URDMA_WR_READ, 1);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		const struct trace_packet *a, *b, *c;
		uint32_t lost = (next_psn(0, 0) + 2 + i % 12) & PSN_MASK;
		bool is_read = i % 2;
		struct work w = message(is_read ? URDMA_WR_READ : URDMA_WR_WRITE, LEN, 0);

		trace_forget(&trace);
		rig_fault(&rig, "drop,side=%u,psn=%u", is_read, lost);
		work_run(&rig, &w, 1, LIMIT, "latency");
		settle();
		a = trace_find(&trace, 0, !is_read, false, is_read ? TRACE_RESPONSE : TRACE_REQUEST,
			       -1, (int)((lost + 1) & PSN_MASK));
		if (!is_read) {
			b = trace_find(&trace, 0, 1, true, TRACE_NAK_SEQ, -1, (int)lost);
			note(&nak, a, b);
			c = trace_find(&trace, trace_behind(&trace, b), 0, false, TRACE_NAK_SEQ, -1,
				       (int)lost);
			b = trace_find(&trace, trace_behind(&trace, c), 0, true, TRACE_REQUEST, -1,
				       (int)lost);
			note(&resend, c, b);
		} else {
			b = trace_find(&trace, 0, 0, true, TRACE_READ, -1, (int)lost);
			note(&read, a, b);
			c = trace_find(&trace, 0, 1, false, TRACE_READ, -1, (int)lost);
			b = trace_find(&trace, trace_behind(&trace, c), 1, true, TRACE_RESPONSE, -1,
				       (int)lost);
			note(&answer, c, b);
		}
	}
	EQUAL(counter(0, URDMA_CNT_TX_TIMEOUT), 0);
	good &= tell(&nak);
	good &= tell(&resend);
	good &= tell(&read);
	good &= tell(&answer);
	if (!good)
		fail_msg("a latency is beyond its bound");
	end("latency");
}

/* ---- all of it ----------------------------------------------------------------------------- */

#define MAX_TESTS 256u

static struct CMUnitTest test[MAX_TESTS];
static unsigned int n_tests;

static bool add(const char *name, CMUnitTestFunction fn, const void *state, int argc, char **argv)
{
	if (!rig_wanted(name, argc - 1, argv + 1) || rig_left_out(name, 3))
		return false;
	test[n_tests++] = (struct CMUnitTest){ .name = name,
					       .test_func = fn,
					       .initial_state = (void *)(uintptr_t)state };
	return true;
}

static void add_keys(int argc, char **argv)
{
	static const struct {
		enum whose whose;
		unsigned int opcode;
		bool no_right; /* may be missing */
	} kind[] = {
		{ LOCAL, URDMA_WR_SEND, false },      { LOCAL, URDMA_WR_WRITE, false },
		{ LOCAL, URDMA_WR_READ, true },	      { LOCAL, URDMA_WR_ATOMIC_FA, true },
		{ REMOTE, URDMA_WR_WRITE, true },     { REMOTE, URDMA_WR_READ, true },
		{ REMOTE, URDMA_WR_ATOMIC_CS, true }, { RECEIVE, URDMA_WR_SEND, true },
	};
	static const char *const whose[] = { "lkey", "rkey", "receive's lkey" };
	static struct key_case cases[COUNT(kind) * COUNT(wrong_name)];
	struct key_case *c = cases;
	bool any = false;

	for (unsigned int k = 0; k < COUNT(kind); k++) {
		for (unsigned int w = 0; w < COUNT(wrong_name); w++) {
			if (w == NO_RIGHT && !kind[k].no_right)
				continue;
			*c = (struct key_case){ .opcode = kind[k].opcode,
						.whose = kind[k].whose,
						.wrong = (enum wrong)w };
			snprintf(c->name, sizeof(c->name), "%s: %s %s", work_name(c->opcode),
				 whose[c->whose], wrong_name[w]);
			any |= add(c->name, wrong_key, c, argc, argv);
			c++;
		}
	}
	if (any)
		add("keys: the wire checker's verdict", keys_verdict, NULL, 1, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		CMUnitTestFunction fn;
	} plain[] = {
		{ "one NAK for a gap, with the first missing PSN", one_nak_for_a_gap },
		{ "a new gap has a new NAK", a_new_gap_has_a_new_nak },
		{ "ACK PSNs never go back", acks_never_go_back },
		{ "resends from the NAKed PSN", resends_from_the_naked_psn },
		{ "lost NAK", lost_nak },
		{ "lost in a long message", lost_in_a_long_message },
		{ "lost retransmission", lost_retransmission },
		{ "lost READ request that was sent again", lost_read_again },
		{ "lost last packet", lost_last_packet },
		{ "time-outs do not adapt, retries are counted", timeouts_do_not_adapt },
		{ "duplicates change no receive state", duplicates_change_nothing },
		{ "duplicate READs are executed again", duplicate_reads_are_executed_again },
		{ "duplicate READ of a key that has ended", duplicate_read_of_an_ended_key },
		{ "ERR amid a retransmission", err_amid_a_retransmission },
		{ "a gap in READ responses re-issues the READ from there",
		  read_gap_asks_from_there },
		{ "an ACK behind a READ is a gap", ack_behind_a_read_is_a_gap },
		{ "duplicate atomics answer from the stored result",
		  duplicate_atomics_have_the_stored_result },
		{ "sixteen duplicate atomics", sixteen_duplicate_atomics },
		{ "nothing is sent before an RNR timer ends",
		  nothing_is_sent_before_an_rnr_timer_ends },
		{ "the ACK timer waits while the RNR timer runs",
		  ack_timer_waits_for_the_rnr_timer },
		{ "nested RNRs", nested_rnrs },
		{ "packets exactly at the MTU", exactly_the_mtu },
		{ "zero-byte messages", zero_bytes },
		{ "wrong ends of frames", wrong_ends_of_frames },
		{ "a peer of another make", a_peer_of_another_make },
		{ "answers to what was not sent", answers_to_what_was_not_sent },
		{ "counters equal the trace", counters_are_the_trace },
		{ "counters of sequence and time-outs equal the trace",
		  sequence_counters_are_the_trace },
		{ "noisy neighbours", noisy_neighbours },
		{ "latency of loss recovery", latency_of_recovery },
	};
	int ret;

	for (unsigned int i = 0; i < COUNT(plain); i++)
		add(plain[i].name, plain[i].fn, NULL, argc, argv);
	add_keys(argc, argv);
	for (unsigned int i = 0; i < COUNT(in_use); i++)
		add(in_use[i].name, invalidated_in_use, &in_use[i], argc, argv);
	ret = _cmocka_run_group_tests("engine/lumina", test, n_tests, NULL, NULL);
	leave();
	return ret;
}
