// SPDX-License-Identifier: Apache-2.0
// urdma_rx_cmpl alone, in three tests: step by step against a model of the requester's rules (each
// answer, completion, message and counter must be exact); between a sender, a lossy wire and a
// responder (every message completes, none too early, and no QP hangs); and its rate. A failure
// means that an application would see a wrong completion, or a QP would stop forever.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
}
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string.h>
#include <tuple>
#include <vector>

#include "Vurdma_rx_cmpl.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_opcode_pkg.h"
#include "urdma_pkg.h"
#include "urdma_rx_pkg.h"
#include "urdma_trace_pkg.h"

enum {
	SEND = 0,
	WRITE = 3,
	READ = 5,
	CS = 6,
	FA = 7,
	LOCAL_INV = 8,
	MPE_FLUSH = 11,
	MPE_WRITE = 12
};
enum { RR_FIRST = 0x0d, RR_MIDDLE, RR_LAST, RR_ONLY, ACK_OP, ATOMIC_ACK };
enum { PROGRESS = AK_PROGRESS, RETRY = AK_RETRY, HOLD = AK_HOLD };
enum {
	C_RESET = QPC_RESET,
	C_RQ_PSN = QPC_RQ_PSN,
	C_SQ_PSN = QPC_SQ_PSN,
	C_ERR = QPC_ERR,
	C_QUERY = QPC_QUERY
};
enum {
	LOC_PROT = 4,
	FLUSH = 5,
	BAD_RESP = 7,
	REM_INV = 9,
	REM_ACCESS = 10,
	REM_OP = 11,
	RETRY_EXC = 12,
	RNR_EXC = 13
};
enum {
	CNT_TIMEOUT = 41,
	CNT_GAP = 43,
	CNT_RETRY = 44,
	CNT_RNR = 45,
	CNT_RSP = 47,
	CNT_GHOST = 57,
	CNT_N = 58
};

struct config {
	unsigned int timeout, retry, rnr_retry, mtu, cqn;
	bool unrel = false; // UC, UD
};

struct item {
	unsigned int kind, qpn, opcode, psn, syndrome, len;
	bool pass;
};

struct sent {
	unsigned int qpn, wqe, psn, opcode, signaled, status, resent, len;
};

struct made {
	unsigned int qpn, psn;
	bool asks;
};

struct cqe {
	unsigned int cqn, qpn, opcode, status, wqe, len;
};

struct acked {
	unsigned int kind, qpn, wqe_done, first, una, rd_done;
};

struct loss { // a lane's
	unsigned int qpn, psn, cause;
	bool out;
};

struct rr {
	bool take, last;
	unsigned int wqe, off;
};

struct rdone {
	unsigned int qpn, status;
	uint64_t due;
};

struct ctrl {
	unsigned int op, qpn, psn;
};

// bits of qc_req_t.hit, in the order of URDMA_QCNT_RX_ACK and so on
enum { QC_ACK, QC_NAK_SEQ, QC_NAK_RNR, QC_GAP, QC_TIMEOUT, QC_ERR, QC_FLUSH, QC_N };

struct bench {
	Vurdma_rx_cmpl dut;
	uint64_t seed, now, time; // clocks; cycles as the block is told
	bool slow;		  // outputs refuse now and then
	bool frozen;		  // time stands still
	std::vector<struct config> cfg;
	std::deque<struct sent> sents;
	std::deque<struct made> mades;
	std::deque<struct item> items; // found: kicks among packets
	std::deque<struct rdone> rdones;
	std::deque<struct ctrl> ctrls;
	std::vector<struct cqe> cqes;
	std::vector<struct acked> ackeds;
	std::vector<struct loss> losses;
	std::vector<struct rr> rrs;
	std::vector<unsigned int> errs;
	uint64_t query, cnt[CNT_N], in_taken, fences;
	unsigned int qc[4096][QC_N];	// counters of each QP, as the block has told
	unsigned int bad_cqes[4096][2]; // CQEs seen: with an error, with FLUSH_ERR
	bool hold;			// tx takes no acked_t
	uint16_t told[4096];		// so many WQEs tx knows to be completed
	bool told_qp[4096];		// of this life: CQEs of an older one may come until then
	unsigned int rdone_wait, ctrl_wait;
	bool item_on;
	size_t room; // items: kicks find room up to here
};

static int32_t psn_diff(unsigned int a, unsigned int b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static unsigned int psn_add(unsigned int a, int n)
{
	return (a + n) & 0xffffff;
}

// What the parser says of the opcode of an answer (IBA volume 1, table 38).
static void put_bth(uint32_t *w, unsigned int at, unsigned int opcode)
{
	bool atomic = opcode == ATOMIC_ACK;

	FIELD_SET(w, at, bth_t, transport, XP_RC);
	FIELD_SET(w, at, bth_t, valid, 1);
	FIELD_SET(w, at, bth_t, ack, opcode == ACK_OP);
	FIELD_SET(w, at, bth_t, response, opcode != ACK_OP);
	FIELD_SET(w, at, bth_t, atomic_ack, atomic);
	FIELD_SET(w, at, bth_t, first, opcode == RR_FIRST || opcode == RR_ONLY);
	FIELD_SET(w, at, bth_t, last, opcode == RR_LAST || opcode == RR_ONLY);
	FIELD_SET(w, at, bth_t, ext_len, atomic ? 12 : opcode == RR_MIDDLE ? 0 : 4);
}

static void put_item(struct bench *b, const struct item *it)
{
	uint32_t *w = b->dut.in.m_storage;
	const struct config *c = &b->cfg[it->qpn % b->cfg.size()];

	memset(w, 0, sizeof(b->dut.in));
	FIELD_SET(w, 0, found_t, mtu, c->mtu);
	FIELD_SET(w, 0, found_t, cqn, c->cqn);
	FIELD_SET(w, 0, found_t, rnr_retry, c->rnr_retry);
	FIELD_SET(w, 0, found_t, retry, c->retry);
	FIELD_SET(w, 0, found_t, timeout, c->timeout);
	FIELD_SET(w, 0, found_t, state, 3);
	FIELD_SET(w, 0, found_t, len, it->len);
	bits_set(w, found_t_ext_LSB, 8, it->syndrome);
	FIELD_SET(w, 0, found_t, psn, it->psn);
	if (it->kind == IT_PKT)
		put_bth(w, FIELD_AT(0, found_t, bth), it->opcode);
	FIELD_SET(w, 0, found_t, unrel, c->unrel);
	FIELD_SET(w, 0, found_t, qpn, it->qpn);
	FIELD_SET(w, 0, found_t, pass, it->pass);
	FIELD_SET(w, 0, found_t, kind, it->kind);
}

static void put_sent(struct bench *b, const struct sent *s)
{
	uint32_t *w = b->dut.sent.m_storage;

	FIELD_SET(w, 0, sent_t, len, s->len);
	FIELD_SET(w, 0, sent_t, resent, s->resent);
	FIELD_SET(w, 0, sent_t, unrel, b->cfg[s->qpn % b->cfg.size()].unrel);
	FIELD_SET(w, 0, sent_t, status, s->status);
	FIELD_SET(w, 0, sent_t, signaled, s->signaled);
	FIELD_SET(w, 0, sent_t, opcode, s->opcode);
	FIELD_SET(w, 0, sent_t, psn, s->psn);
	FIELD_SET(w, 0, sent_t, wqe, s->wqe);
	FIELD_SET(w, 0, sent_t, qpn, s->qpn);
}

static void take_outputs(struct bench *b)
{
	Vurdma_rx_cmpl *d = &b->dut;

	if (d->cqe_valid && d->cqe_ready) {
		const uint32_t *w = d->cqe.m_storage;
		struct cqe c;

		uint64_t word[2] = { bits_get(w, FIELD_AT(0, cqe_req_t, cqe), 64),
				     bits_get(w, FIELD_AT(64, cqe_req_t, cqe), 64) };

		c.opcode = HW_GET(URDMA_CQE0_OPCODE, word[0]);
		c.status = HW_GET(URDMA_CQE0_STATUS, word[0]);
		c.wqe = HW_GET(URDMA_CQE0_WQE, word[0]);
		c.len = HW_GET(URDMA_CQE1_LENGTH, word[1]);
		c.qpn = HW_GET(URDMA_CQE1_QPN, word[1]);
		c.cqn = FIELD_GET(w, 0, cqe_req_t, cqn);
		assert_int_equal(word[0] & 0xff, 0); /* no flag */
		/*
		 * Software may use the slot again now: tx has to know that it is free. Of a life
		 * that has ended tx is told nothing.
		 */
		if (b->told_qp[c.qpn])
			assert_true((int16_t)(b->told[c.qpn] - c.wqe) > 0);
		if (c.status)
			b->bad_cqes[c.qpn][c.status == FLUSH]++;
		b->cqes.push_back(c);
	}
	if (d->acked_valid && d->acked_ready) {
		const uint32_t *w = d->acked.m_storage;
		struct acked a;

		a.rd_done = FIELD_GET(w, 0, acked_t, rd_done);
		a.una = FIELD_GET(w, 0, acked_t, una_psn);
		a.first = FIELD_GET(w, 0, acked_t, first_psn);
		a.wqe_done = FIELD_GET(w, 0, acked_t, wqe_done);
		a.qpn = FIELD_GET(w, 0, acked_t, qpn);
		a.kind = FIELD_GET(w, 0, acked_t, kind);
		b->told[a.qpn] = (uint16_t)a.wqe_done;
		b->told_qp[a.qpn] = true;
		b->ackeds.push_back(a);
	}
	if (d->rr_valid && d->rr_ready) {
		uint64_t v = d->rr;

		b->rrs.push_back({ (bool)FIELD_OF(v, rr_t, take), (bool)FIELD_OF(v, rr_t, last),
				   (unsigned int)FIELD_OF(v, rr_t, wqe),
				   (unsigned int)FIELD_OF(v, rr_t, off) });
	}
	if (d->err_valid && d->err_ready) {
		assert_int_equal(d->err & 0x1ff, 0);
		b->errs.push_back(d->err >> 9);
	}
	if (d->kick_valid && d->kick_ready)
		b->items.push_back({ IT_KICK, d->kick_qpn, 0, 0, 0, 0, true });
	if (d->qc_valid) {
		unsigned int hit = FIELD_OF(d->qc, qc_req_t, hit);

		assert_true(hit);
		for (int i = 0; i < QC_N; i++)
			b->qc[FIELD_OF(d->qc, qc_req_t, qpn)][i] += hit >> i & 1;
	}
	if (d->trace_loss_valid) {
		uint64_t lane = d->trace_loss;

		b->losses.push_back({ (unsigned int)FIELD_OF(lane, tr_loss_t, qpn),
				      (unsigned int)FIELD_OF(lane, tr_loss_t, psn),
				      (unsigned int)FIELD_OF(lane, tr_loss_t, cause),
				      FIELD_OF(lane, tr_loss_t, out) != 0 });
	}
	if (d->fence_out)
		b->fences++;
	for (int i = 0; i < CNT_N; i++)
		b->cnt[i] += d->cnt >> i & 1;
}

static void cycle(struct bench *b)
{
	Vurdma_rx_cmpl *d = &b->dut;

	d->cycles = b->time;
	d->sent_valid = !b->sents.empty();
	if (d->sent_valid)
		put_sent(b, &b->sents.front());
	b->item_on = b->item_on || (!b->items.empty() && (!b->slow || rnd(b, 4)));
	d->in_valid = b->item_on;
	if (d->in_valid)
		put_item(b, &b->items.front());
	d->made_valid = !b->mades.empty();
	if (d->made_valid) {
		struct made m = b->mades.front();

		d->made = FIELD_IN(made_t, qpn, m.qpn) | FIELD_IN(made_t, psn, m.psn) |
			  FIELD_IN(made_t, asks, m.asks);
	}
	d->rdone_valid = !b->rdones.empty() && b->rdones.front().due <= b->now;
	if (d->rdone_valid)
		d->rdone = FIELD_IN(rdone_t, qpn, b->rdones.front().qpn) |
			   FIELD_IN(rdone_t, status, b->rdones.front().status);
	d->aqc_valid = !b->ctrls.empty();
	if (d->aqc_valid) {
		struct ctrl c = b->ctrls.front();

		d->aqc = FIELD_IN(qpc_t, op, c.op) | FIELD_IN(qpc_t, qpn, c.qpn) |
			 FIELD_IN(qpc_t, psn, c.psn);
	}
	d->kick_ready = b->items.size() < b->room && (!b->slow || rnd(b, 2));
	d->rr_ready = !b->slow || one_in(b, 3);
	d->acked_ready = !b->hold && (!b->slow || rnd(b, 4));
	d->cqe_ready = !b->slow || one_in(b, 2);
	d->err_ready = !b->slow || one_in(b, 8);
	bench_settle(*d);
	take_outputs(b);
	if (d->sent_valid && d->sent_ready)
		b->sents.pop_front();
	if (d->made_valid && d->made_ready)
		b->mades.pop_front();
	if (d->in_valid && d->in_ready) {
		b->items.pop_front();
		b->item_on = false;
		b->in_taken++;
	}
	b->rdone_wait = d->rdone_valid ? b->rdone_wait + 1 : 0;
	if (d->rdone_valid && d->rdone_ready) {
		b->rdones.pop_front();
		b->rdone_wait = 0;
	}
	if (b->rdone_wait > 8)
		fail_msg("cycle %lu: rdone waits", b->now);
	b->ctrl_wait = d->aqc_valid ? b->ctrl_wait + 1 : 0;
	if (d->aqc_valid && d->aqc_ready) {
		b->query = d->aqc_rsp;
		if (b->ctrls.front().op == C_RESET)
			b->told_qp[b->ctrls.front().qpn] = false;
		b->ctrls.pop_front();
		b->ctrl_wait = 0;
	}
	if (b->ctrl_wait > 600)
		fail_msg("cycle %lu: control waits", b->now);
	bench_edge(*d);
	b->now++;
	b->time += !b->frozen;
}

static bool idle(struct bench *b)
{
	return !b->dut.busy && b->sents.empty() && b->mades.empty() && b->items.empty() &&
	       b->rdones.empty() && b->ctrls.empty();
}

static void settle(struct bench *b)
{
	unsigned int n = 0, quiet = 0;

	// busy is seen one cycle late: what it is for was put in front of the block in that cycle
	while (quiet < 3) {
		cycle(b);
		quiet = idle(b) ? quiet + 1 : 0;
		if (++n > 30000)
			fail_msg("cycle %lu: busy without end", b->now);
	}
	for (unsigned int q = 0; q < 4096; q++)
		if (b->qc[q][QC_ERR] != b->bad_cqes[q][0] ||
		    b->qc[q][QC_FLUSH] != b->bad_cqes[q][1])
			fail_msg("cycle %lu, QP %u: %u errors and %u flushes counted, CQEs: %u, %u",
				 b->now, q, b->qc[q][QC_ERR], b->qc[q][QC_FLUSH], b->bad_cqes[q][0],
				 b->bad_cqes[q][1]);
}

static void start(struct bench *b, uint64_t seed, unsigned int qps)
{
	print_message("seed %lu\n", seed);
	b->seed = seed;
	b->now = b->time = 1000;
	b->frozen = false;
	b->slow = false;
	b->item_on = false;
	b->room = SIZE_MAX;
	b->in_taken = b->fences = 0;
	b->losses.clear();
	b->rdone_wait = b->ctrl_wait = 0;
	memset(b->cnt, 0, sizeof(b->cnt));
	memset(b->qc, 0, sizeof(b->qc));
	memset(b->bad_cqes, 0, sizeof(b->bad_cqes));
	memset(b->told, 0, sizeof(b->told));
	b->hold = false;
	memset(b->told_qp, 1, sizeof(b->told_qp));
	b->cfg.assign(qps, { 1, 3, 3, 1, 5 });
	b->dut.rst = 1;
	cycle(b);
	cycle(b);
	b->dut.rst = 0;
	for (int i = 0; i < 5000 && !b->dut.init_done; i++)
		cycle(b);
	assert_true(b->dut.init_done);
	assert_false(b->dut.timer_armed);
}

// ---- the rules, step by step
// -------------------------------------------------------------------------

struct ent {
	unsigned int wqe, first, psn, op, sig, status, len;
};

enum timer { T_NONE, T_ACK, T_RNR };

struct qp {
	unsigned int n;
	bool active, err, dead, gap, restart, want;
	std::deque<struct ent> t; // head..tail
	unsigned int acks;	  // of them, at the front, acknowledged
	unsigned int head, una, first, ack_first, rd_done, placed, placed_bad;
	unsigned int nak, retries, rnrs;
	enum timer tk;
	uint64_t deadline;
	unsigned int newest,
		asked; // PSNs that packets were made of; of those that ask for an answer
	// sender: the next message, how many of its packets are made
	unsigned int next_wqe, next_psn, op, len, npsn, made;
	std::deque<bool> due; // rdones owed
};

struct model {
	struct qp q[8];
	std::vector<struct cqe> cqes;
	std::vector<struct rr> rrs;
	std::vector<struct loss> losses;
	unsigned int errs, retry_msgs, hold_msgs;
	bool moved;
	uint64_t cnt[CNT_N];
	unsigned int qc[8][QC_N];
};

static bool is_atomic(unsigned int op)
{
	return op == CS || op == FA;
}

// answered by a READ response of 0 bytes
static bool is_mpe(unsigned int op)
{
	return op == MPE_FLUSH || op == MPE_WRITE;
}

static bool is_rd(unsigned int op)
{
	return op == READ || is_atomic(op) || is_mpe(op);
}

static uint64_t rnr_wait(unsigned int code)
{
	// tenths of a millisecond / 10, IBA volume 1, 9.7.5.2.8
	static const unsigned int t[32] = { 65536, 1,	 2,    3,     4,     6,	    8,	   12,
					    16,	   24,	 32,   48,    64,    96,    128,   192,
					    256,   384,	 512,  768,   1024,  1536,  2048,  3072,
					    4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152 };

	return 2500ull * t[code];
}

static void finish(struct bench *b, struct model *m, struct qp *q, unsigned int status)
{
	struct ent e = q->t.front();

	q->t.pop_front();
	if (q->acks)
		q->acks--;
	else
		q->ack_first = psn_add(e.psn, 1);
	if (status || e.sig)
		m->cqes.push_back({ b->cfg[q->n].cqn, q->n, e.op, status, e.wqe, e.len });
	q->head = (q->head + 1) & 0xffff;
	q->first = psn_add(e.psn, 1);
	if (is_rd(e.op))
		q->rd_done = (q->rd_done + 1) & 0xff;
	m->moved = true;
	if (!status)
		return;
	q->nak = 0;
	q->dead = true;
	if (!q->err && status != FLUSH) {
		q->err = true;
		m->errs++;
	}
}

static void complete(struct bench *b, struct model *m, struct qp *q)
{
	while (!q->t.empty()) {
		struct ent *e = &q->t.front();
		bool bad = is_rd(e->op) && q->placed == q->rd_done && q->placed_bad;

		if (q->acks) {
			if (q->dead)
				finish(b, m, q, FLUSH);
			else if (e->status)
				finish(b, m, q, e->status);
			else if (bad)
				finish(b, m, q, q->placed_bad);
			else if (is_rd(e->op) && q->placed == q->rd_done)
				return;
			else
				finish(b, m, q, 0);
		} else if (!e->status && !is_rd(e->op) && psn_diff(e->psn, q->una) < 0 &&
			   !q->dead) {
			finish(b, m, q, 0);
		} else if (q->nak) {
			finish(b, m, q, q->nak);
		} else if (bad && !e->status && !q->dead) {
			finish(b, m, q, q->placed_bad);
		} else if (q->err) {
			finish(b, m, q, FLUSH);
		} else if (e->status) {
			finish(b, m, q, e->status);
		} else {
			return;
		}
	}
}

// everything up to goal that is not a READ; the entry it stops at, or none
static struct ent *advance(struct qp *q, unsigned int goal)
{
	for (; q->acks < q->t.size(); q->acks++) {
		struct ent *e = &q->t[q->acks];

		if (e->status || is_rd(e->op) || psn_diff(e->psn, goal) >= 0)
			return e;
		q->ack_first = psn_add(e->psn, 1);
	}
	return NULL;
}

static void move_una(struct model *m, struct qp *q, unsigned int to)
{
	if (q->una == to)
		return;
	q->una = to;
	q->retries = q->rnrs = 0;
	q->gap = false;
	m->moved = true;
	if (q->tk == T_ACK)
		q->tk = T_NONE; // armed anew below
}

static void fail_qp(struct model *m, struct qp *q, unsigned int status)
{
	q->nak = status;
	q->err = true;
	m->errs++;
}

static void want_retry(struct bench *b, struct model *m, struct qp *q, bool miss, bool timeout)
{
	unsigned int cause = timeout ? TRC_TIMEOUT : miss ? TRC_IMPLIED : TRC_NAK;

	if (q->tk == T_RNR || q->gap)
		return;
	m->losses.push_back({ q->n, q->una, cause, q->retries >= b->cfg[q->n].retry });
	if (miss) {
		m->cnt[CNT_GAP]++;
		m->qc[q->n][QC_GAP]++;
	}
	if (q->retries >= b->cfg[q->n].retry) {
		m->cnt[CNT_RETRY]++;
		fail_qp(m, q, RETRY_EXC);
		return;
	}
	q->retries++;
	q->gap = !timeout;
	q->want = true;
}

// 9.7.6.1.3 allows T to 4 T of 4.096 us << timeout since the packet was sent: T, and for its way to
// the wire 2 T, but no more than 32768 cycles
static uint64_t ack_wait(unsigned int timeout)
{
	uint64_t t = 1024ull << timeout;

	return t + (2 * t < 32768 ? 2 * t : 32768);
}

// messages and timer at the end of what one event did
static void end_step(struct bench *b, struct model *m, struct qp *q)
{
	bool again = false;

	complete(b, m, q);
	if (q->want && !q->acks && q->active && !q->err && q->tk != T_RNR) {
		q->want = false;
		q->restart = true;
		m->retry_msgs++;
		again = true;
	}
	if (q->err || !q->active) {
		q->tk = T_NONE;
	} else if (q->tk == T_RNR) {
		;
	} else if (psn_diff(q->asked, q->una) >= 0 && b->cfg[q->n].timeout) {
		if (q->tk == T_NONE || again) {
			q->tk = T_ACK;
			q->deadline = b->time + ack_wait(b->cfg[q->n].timeout);
		}
	} else {
		q->tk = T_NONE;
		if (psn_diff(q->asked, q->una) < 0)
			q->restart = false;
	}
}

static bool fits(struct bench *b, struct qp *q, const struct ent *e, const struct item *it,
		 bool again)
{
	unsigned int mtu = 128u << b->cfg[q->n].mtu, i = psn_diff(it->psn, e->first);
	bool last = it->psn == e->psn;

	// an AETH that is not an ACK's; a MIDDLE has none
	if (it->opcode != RR_MIDDLE && it->syndrome >> 5)
		return false;
	if (is_atomic(e->op))
		return it->opcode == ATOMIC_ACK && last && it->len == 0;
	if (it->len != (last ? e->len - i * mtu : mtu))
		return false;
	switch (it->opcode) {
	case RR_FIRST:
		return !last && (i == 0 || again);
	case RR_MIDDLE:
		return !last && i;
	case RR_LAST:
		return last && i;
	case RR_ONLY:
		return last && (i == 0 || again);
	}
	return false;
}

static void model_rnr(struct bench *b, struct model *m, struct qp *q, unsigned int code, bool moved)
{
	unsigned int most = b->cfg[q->n].rnr_retry;
	uint64_t end = b->time + rnr_wait(code);

	if (q->tk == T_RNR && !moved) {
		if (end > q->deadline)
			q->deadline = end;
		return;
	}
	if (most != 7 && q->rnrs >= most) {
		m->cnt[CNT_RNR]++;
		fail_qp(m, q, RNR_EXC);
		return;
	}
	q->rnrs += most != 7;
	if (q->tk != T_RNR || end > q->deadline)
		q->deadline = end;
	q->tk = T_RNR;
	q->want = false;
	m->hold_msgs++;
}

static void model_item(struct bench *b, struct model *m, struct qp *q, const struct item *it)
{
	bool resp = it->opcode != ACK_OP, live = it->pass && q->active && !q->err, moved, miss,
	     again;
	unsigned int kind = it->syndrome >> 5, old = q->una, goal = it->psn, stop_una;
	struct rr rr = { false, false, 0, 0 };
	struct ent *e;

	m->qc[q->n][QC_ACK] += it->pass && !resp;
	if (live &&
	    (psn_diff(it->psn, q->una) < 0 || psn_diff(q->newest, it->psn) < 0 ||
	     (resp && (q->t.size() == q->acks || psn_diff(q->t.back().psn, it->psn) < 0)))) {
		m->cnt[CNT_GHOST]++;
		live = false;
	}
	if (!live) {
		if (resp)
			m->rrs.push_back(rr);
		return;
	}
	if (!resp && kind == 0)
		goal = psn_add(goal, 1);
	advance(q, goal);
	complete(b, m, q);
	if (q->err) {
		// an entry that tx has found bad came first
		if (resp)
			m->rrs.push_back(rr);
		return;
	}
	e = advance(q, goal);
	if (e && (e->status || !is_rd(e->op)))
		e = NULL;
	stop_una = psn_diff(q->una, q->ack_first) < 0 ? q->ack_first : q->una;
	move_una(m, q, e || resp ? stop_una : goal);
	moved = q->una != old;
	again = q->restart;
	miss = e && goal != q->una;
	if (resp) {
		if (e && miss) {
			want_retry(b, m, q, true, false);
		} else if (e && fits(b, q, e, it, again)) {
			rr = { true, it->psn == e->psn, e->wqe, 0 };
			if (!is_atomic(e->op))
				rr.off = psn_diff(it->psn, e->first) * (128u << b->cfg[q->n].mtu);
			if (rr.last) {
				q->acks++;
				q->due.push_back(true);
				q->ack_first = psn_add(e->psn, 1);
			}
			m->cnt[CNT_RSP]++;
			move_una(m, q, psn_add(it->psn, 1));
			// local operations behind it
			advance(q, q->una);
		} else if (e) {
			fail_qp(m, q, BAD_RESP);
		}
		m->rrs.push_back(rr);
	} else if (kind == 0) {
		if (miss)
			want_retry(b, m, q, true, false);
	} else if (kind != 1) {
		static const unsigned int status[] = { 0, REM_INV, REM_ACCESS, REM_OP, BAD_RESP };
		unsigned int code = it->syndrome & 0x1f;

		// a reserved kind is a bad response, whatever its code
		if (kind != 3)
			code = 4;
		m->qc[q->n][QC_NAK_SEQ] += !code;
		if (miss || !code)
			want_retry(b, m, q, miss, false);
		else
			fail_qp(m, q, status[code < 4 ? code : 4]);
	} else {
		m->qc[q->n][QC_NAK_RNR]++;
		model_rnr(b, m, q, it->syndrome & 0x1f, moved);
	}
}

static void model_expire(struct bench *b, struct model *m, struct qp *q)
{
	if (q->tk == T_RNR) {
		q->tk = T_NONE;
		q->want = true;
		q->gap = false;
		return;
	}
	q->tk = T_NONE;
	if (q->want)
		return;
	m->cnt[CNT_TIMEOUT]++;
	m->qc[q->n][QC_TIMEOUT]++;
	q->gap = false;
	want_retry(b, m, q, false, true);
}

// The lane of losses. The order over QPs is not given when timers of several expire.
static void check_losses(struct bench *b, struct model *m, const char *what)
{
	auto before = [](const struct loss &x, const struct loss &y) {
		return std::tie(x.qpn, x.psn, x.cause) < std::tie(y.qpn, y.psn, y.cause);
	};

	if (b->losses.size() != m->losses.size())
		fail_msg("cycle %lu, %s: %zu losses are told, should be %zu", b->now, what,
			 b->losses.size(), m->losses.size());
	std::sort(b->losses.begin(), b->losses.end(), before);
	std::sort(m->losses.begin(), m->losses.end(), before);
	for (size_t i = 0; i < m->losses.size(); i++) {
		struct loss g = b->losses[i], w = m->losses[i];

		if (g.qpn != w.qpn || g.psn != w.psn || g.cause != w.cause || g.out != w.out)
			fail_msg("cycle %lu, %s: a loss of QP %u, PSN %x, cause %u, out %d, "
				 "should be %u, %x, %u, %d",
				 b->now, what, g.qpn, g.psn, g.cause, g.out, w.qpn, w.psn, w.cause,
				 w.out);
	}
	b->losses.clear();
	m->losses.clear();
}

static void check_step(struct bench *b, struct model *m, const char *what)
{
	unsigned int retries = 0, holds = 0;

	if (b->cqes.size() != m->cqes.size())
		fail_msg("cycle %lu, %s: %zu completions, should be %zu", b->now, what,
			 b->cqes.size(), m->cqes.size());
	// the order over QPs is not given when timers of several expire
	for (unsigned int n = 0; n < 8; n++) {
		size_t i = 0, j = 0;

		for (; i < b->cqes.size(); i++) {
			const struct cqe *g = &b->cqes[i], *w;

			if (g->qpn != n)
				continue;
			while (j < m->cqes.size() && m->cqes[j].qpn != n)
				j++;
			assert_true(j < m->cqes.size());
			w = &m->cqes[j++];
			if (memcmp(g, w, sizeof(*g)))
				fail_msg("cycle %lu, %s, QP %u: CQE of WQE %u opcode %u status %u "
					 "len %u, "
					 "should be WQE %u opcode %u status %u len %u",
					 b->now, what, n, g->wqe, g->opcode, g->status, g->len,
					 w->wqe, w->opcode, w->status, w->len);
		}
	}
	for (struct acked &a : b->ackeds) {
		struct qp *q = &m->q[a.qpn];

		retries += a.kind == RETRY;
		holds += a.kind == HOLD;
		if (&a == &b->ackeds.back() &&
		    (a.wqe_done != q->head || a.rd_done != q->rd_done ||
		     (!q->err && (a.una != (q->acks ? q->first : q->una) || a.first != q->first))))
			fail_msg("cycle %lu, %s, QP %u: acked %u first %x una %x rd_done %u, "
				 "should be %u %x %x %u",
				 b->now, what, a.qpn, a.wqe_done, a.first, a.una, a.rd_done,
				 q->head, q->first, q->una, q->rd_done);
	}
	if (retries != m->retry_msgs || holds != m->hold_msgs)
		fail_msg("cycle %lu, %s: %u AK_RETRY, %u AK_HOLD, should be %u, %u", b->now, what,
			 retries, holds, m->retry_msgs, m->hold_msgs);
	if (m->moved && b->ackeds.empty())
		fail_msg("cycle %lu, %s: progress not told", b->now, what);
	if (b->errs.size() != m->errs)
		fail_msg("cycle %lu, %s: %zu errors, should be %u", b->now, what, b->errs.size(),
			 m->errs);
	if (b->rrs.size() != m->rrs.size())
		fail_msg("cycle %lu, %s: %zu decisions, should be %zu", b->now, what, b->rrs.size(),
			 m->rrs.size());
	for (size_t i = 0; i < m->rrs.size(); i++) {
		struct rr g = b->rrs[i], w = m->rrs[i];

		if (g.take != w.take || g.last != w.last || g.wqe != w.wqe || g.off != w.off)
			fail_msg("cycle %lu, %s: take %d last %d wqe %u off %u, should be %d %d %u "
				 "%u",
				 b->now, what, g.take, g.last, g.wqe, g.off, w.take, w.last, w.wqe,
				 w.off);
	}
	static const int counters[] = {
		CNT_TIMEOUT, CNT_GAP, CNT_RETRY, CNT_RNR, CNT_RSP, CNT_GHOST
	};

	for (int c : counters)
		if (b->cnt[c] != m->cnt[c])
			fail_msg("cycle %lu, %s: counter %d is %lu, should be %lu", b->now, what, c,
				 b->cnt[c], m->cnt[c]);
	for (unsigned int n = 0; n < 8; n++)
		for (int i = 0; i < QC_ERR; i++)
			if (b->qc[n][i] != m->qc[n][i])
				fail_msg("cycle %lu, %s, QP %u: counter %d of the QP is %u, should "
					 "be %u",
					 b->now, what, n, i, b->qc[n][i], m->qc[n][i]);
	check_losses(b, m, what);
	b->cqes.clear();
	b->ackeds.clear();
	b->rrs.clear();
	b->errs.clear();
	m->cqes.clear();
	m->rrs.clear();
	m->errs = m->retry_msgs = m->hold_msgs = 0;
	m->moved = false;
}

static void check_timers(struct bench *b, struct model *m)
{
	bool any = false;

	for (struct qp &q : m->q) {
		if (q.tk == T_NONE)
			continue;
		any = true;
		if (b->dut.timer_armed && b->time + b->dut.timer_cycles > q.deadline)
			fail_msg(
				"cycle %lu: timer_cycles %u is later than QP %u's deadline, in %ld",
				b->now, b->dut.timer_cycles, q.n, (long)(q.deadline - b->time));
	}
	if (any != b->dut.timer_armed)
		fail_msg("cycle %lu: timer_armed %d, should be %d", b->now, b->dut.timer_armed,
			 any);
}

static void next_message(struct bench *b, struct qp *q)
{
	static const unsigned int ops[] = { SEND, SEND, WRITE,	   READ,      READ,
					    CS,	  FA,	LOCAL_INV, MPE_FLUSH, MPE_WRITE };
	unsigned int mtu = 128u << b->cfg[q->n].mtu;

	q->op = ops[rnd(b, 10)];
	if (b->cfg[q->n].unrel && is_rd(q->op))
		q->op = WRITE;
	q->len = one_in(b, 4) ? rnd(b, 3) * mtu : rnd(b, 5 * mtu);
	q->npsn = q->len ? (q->len + mtu - 1) / mtu : 1;
	if (is_atomic(q->op) || is_mpe(q->op)) {
		q->len = is_mpe(q->op) ? 0 : 8;
		q->npsn = 1;
	}
	if (q->op == LOCAL_INV)
		q->len = q->npsn = 0;
	q->made = 0;
}

// Packets of the message that is next, up to n; a READ or ATOMIC is one and takes all its PSNs.
static void make_packets(struct bench *b, struct qp *q, unsigned int n)
{
	while (q->made < n) {
		unsigned int psn;
		bool asks;

		q->made = is_rd(q->op) ? q->npsn : q->made + 1;
		psn = psn_add(q->next_psn, (int)q->made - 1);
		asks = !b->cfg[q->n].unrel && (q->made == q->npsn || one_in(b, 4));
		b->mades.push_back({ q->n, psn, asks });
		// The message before may have failed with packets made, which had these PSNs.
		if (psn_diff(psn, q->newest) > 0)
			q->newest = psn;
		if (asks && psn_diff(psn, q->asked) > 0)
			q->asked = psn;
	}
}

// some, but not the last; now and then one that was made before comes again
static void step_made(struct bench *b, struct qp *q)
{
	if (q->err)
		return;
	if (one_in(b, 4))
		b->mades.push_back({ q->n, psn_add(q->newest, -(int)rnd(b, 40)),
				     one_in(b, 2) && !b->cfg[q->n].unrel });
	else if (q->npsn > 1 && !is_rd(q->op))
		make_packets(b, q, rnd(b, q->npsn));
}

static void begin_life(struct bench *b, struct model *m, struct qp *q)
{
	unsigned int n = q->n, psn = one_in(b, 2) ? psn_add(0, -(int)rnd(b, 20)) : rnd(b, 1 << 24);

	b->ctrls.push_back({ C_RESET, n, 0 });
	settle(b);
	*q = {};
	q->n = n;
	b->cfg[n] = { (unsigned int)rnd(b, 4),	  (unsigned int)rnd(b, 8),
		      (unsigned int)rnd(b, 8),	  1 + (unsigned int)rnd(b, 3),
		      (unsigned int)rnd(b, 4096), one_in(b, 4) };
	b->ctrls.push_back({ C_SQ_PSN, n, psn });
	settle(b);
	q->active = true;
	q->una = q->first = q->ack_first = q->next_psn = psn;
	q->newest = q->asked = psn_add(psn, -1);
	next_message(b, q);
	check_step(b, m, "begin");
}

static void step_sent(struct bench *b, struct model *m, struct qp *q)
{
	unsigned int status = q->err ? FLUSH : one_in(b, 150) ? LOC_PROT : 0, reads = 0;

	for (struct ent &e : q->t)
		reads += is_rd(e.op);
	if (q->t.size() > 100 || reads > 15)
		return;
	struct ent e = { q->next_wqe,
			 q->next_psn,
			 psn_add(q->next_psn, (int)q->npsn - 1),
			 q->op,
			 (unsigned int)rnd(b, 2),
			 status,
			 q->len };

	if (status)
		e.psn = q->next_psn;
	else
		make_packets(b, q, q->npsn);
	b->sents.push_back({ q->n, e.wqe, e.psn, e.op, e.sig, status, 0, e.len });
	q->t.push_back(e);
	q->next_psn = status ? q->next_psn : psn_add(e.psn, 1);
	q->next_wqe = (q->next_wqe + 1) & 0xffff;
	next_message(b, q);
	// of UC and UD all that is told is acknowledged, also of a QP that is in error
	if (b->cfg[q->n].unrel && !q->dead) {
		unsigned int una = psn_add(e.psn, 1);

		advance(q, una);
		if (q->err)
			q->una = una;
		else
			move_una(m, q, una);
	} else if (!q->err) {
		advance(q, q->una);
	}
}

// a message that was sent fails when it is sent again; or one that is completed already
static void step_resent(struct bench *b, struct qp *q)
{
	unsigned int i;

	if (q->t.empty() || q->err || b->cfg[q->n].unrel)
		return;
	i = rnd(b, q->t.size() + 2);
	if (i >= 2) {
		struct ent *e = &q->t[i - 2];

		// A local operation takes no PSN, so the block passes it with the next item, not
		// with the one that came before it: the model passes it at once.
		if (e->status || (psn_diff(e->psn, q->una) < 0 && e->psn + 1 == e->first))
			return;
		e->status = LOC_PROT;
		b->sents.push_back({ q->n, e->wqe, q->una, e->op, e->sig, LOC_PROT, 1, e->len });
	} else {
		b->sents.push_back(
			{ q->n, (q->head - 1 - i) & 0xffff, q->una, SEND, 1, LOC_PROT, 1, 9 });
	}
}

static void step_packet(struct bench *b, struct model *m, struct qp *q)
{
	struct item it = { IT_PKT, q->n, ACK_OP, 0, 0, 0, !one_in(b, 30) };
	unsigned int what = rnd(b, 16);
	int out = psn_diff(psn_add(q->newest, 1), q->una);
	const struct ent *rd = NULL;

	// the look-up lets no answer through to UC and UD
	if (b->cfg[q->n].unrel)
		it.pass = false;
	for (size_t i = q->acks; i < q->t.size() && !rd; i++)
		if (is_rd(q->t[i].op) && !q->t[i].status)
			rd = &q->t[i];
	if (rd && what < 9) {
		unsigned int mtu = 128u << b->cfg[q->n].mtu;
		int at = psn_diff(q->una, rd->first), n = psn_diff(rd->psn, rd->first);

		if (at < 0)
			at = 0;
		if (one_in(b, 8))
			at += (int)rnd(b, 4) - 1; // lost or repeated
		it.psn = psn_add(rd->first, at);
		it.opcode = is_atomic(rd->op) ? ATOMIC_ACK
			    : at == n
				    ? (at == 0 || (q->restart && one_in(b, 2)) ? RR_ONLY : RR_LAST)
			    : at == 0 || (q->restart && one_in(b, 2)) ? RR_FIRST
								      : RR_MIDDLE;
		it.len = is_atomic(rd->op) ? 0 : at == n ? rd->len - n * mtu : mtu;
		if (one_in(b, 100))
			it.opcode = RR_FIRST + rnd(b, 4);
		if (one_in(b, 100))
			it.len = rnd(b, 4097);
		if (one_in(b, 100))
			it.syndrome = rnd(b, 256);
		if (at < 0 || at > n)
			it.len = mtu;
	} else {
		// a little more than what is sent
		it.psn = psn_add(q->una, (int)rnd(b, out + 4) - 2);
		it.syndrome = what < 13	   ? 0x1f
			      : what == 13 ? 0x60
			      : what == 14 ? 0x20 | (1 + rnd(b, 9))
					   : 0x60;
		if (one_in(b, 150))
			it.syndrome = 0x60 | rnd(b, 6);
		if (one_in(b, 150))
			it.syndrome = one_in(b, 2) ? 0x40 | rnd(b, 32) : 0x80 | rnd(b, 128);
		if (one_in(b, 100))
			it.psn = rnd(b, 1 << 24);
		if (one_in(b, 400))
			it.syndrome = 0x20; // the longest
	}
	// of what nobody sent: the next one, or any
	if (one_in(b, 40))
		it.psn = psn_add(q->newest, one_in(b, 2) ? 1 : 1 + (int)rnd(b, 1 << 23));
	b->items.push_back(it);
	model_item(b, m, q, &it);
}

static void step_rdone(struct bench *b, struct qp *q)
{
	unsigned int status = one_in(b, 200) ? LOC_PROT : 0;

	// an error needs no complete READ
	if (q->due.empty() && !(status && q->t.size() > q->acks && is_rd(q->t[q->acks].op)))
		return;
	if (!q->due.empty())
		q->due.pop_front();
	b->rdones.push_back({ q->n, status, 0 });
	if (q->placed_bad)
		return;
	if (status)
		q->placed_bad = status;
	else
		q->placed = (q->placed + 1) & 0xff;
}

// let time pass: to the next deadline, or a little
static void step_time(struct bench *b, struct model *m)
{
	if (!b->dut.timer_armed || one_in(b, 3))
		b->time += rnd(b, 1500);
	else
		b->time += b->dut.timer_cycles;
	for (struct qp &q : m->q) {
		if (q.tk == T_NONE || q.deadline > b->time)
			continue;
		model_expire(b, m, &q);
		end_step(b, m, &q);
	}
}

static void test_rules(void **state)
{
	struct bench *b = new bench;
	struct model *m = new model{};
	uint64_t steps = getenv("STEPS") ? strtoull(getenv("STEPS"), NULL, 0) : 60000, lives = 0;

	(void)state;
	start(b, test_seed(0xc0ffee), 8);
	b->frozen = true;
	for (unsigned int n = 0; n < 8; n++) {
		m->q[n].n = n;
		begin_life(b, m, &m->q[n]);
	}
	for (uint64_t i = 0; i < steps; i++) {
		struct qp *q = &m->q[rnd(b, 8)];
		unsigned int what = rnd(b, 32);
		const char *name = "packet";

		b->slow = one_in(b, 2);
		if (what < 8) {
			name = "sent";
			step_sent(b, m, q);
		} else if (what < 10) {
			name = "made";
			step_made(b, q);
		} else if (what < 24) {
			step_packet(b, m, q);
		} else if (what < 28) {
			name = "rdone";
			step_rdone(b, q);
		} else if (what < 29) {
			name = "time";
			step_time(b, m);
		} else if (one_in(b, 30)) {
			name = "resent";
			step_resent(b, q);
		} else if (one_in(b, 100)) {
			name = "error";
			b->ctrls.push_back({ C_ERR, q->n, 0 });
			q->err = true;
		} else if (what == 30) {
			name = "query";
			b->ctrls.push_back({ C_QUERY, q->n, 0 });
		}
		if (what != 28)
			end_step(b, m, q);
		settle(b);
		if (!strcmp(name, "query") && !q->err) {
			assert_int_equal(FIELD_OF(b->query, qpc_rsp_t, psn), q->una);
			assert_int_equal(FIELD_OF(b->query, qpc_rsp_t, pi), q->next_wqe);
			assert_int_equal(FIELD_OF(b->query, qpc_rsp_t, ci), q->head);
		}
		check_step(b, m, name);
		check_timers(b, m);
		if (q->err && one_in(b, 8)) {
			begin_life(b, m, q);
			check_timers(b, m);
			lives++;
		}
	}
	print_message("%lu lives, %lu time-outs, %lu READ gaps, %lu exhausted, %lu RNR exhausted, "
		      "%lu responses, %lu ghosts\n",
		      lives, b->cnt[CNT_TIMEOUT], b->cnt[CNT_GAP], b->cnt[CNT_RETRY],
		      b->cnt[CNT_RNR], b->cnt[CNT_RSP], b->cnt[CNT_GHOST]);
	assert_true(lives > 10 && b->cnt[CNT_TIMEOUT] > 10 && b->cnt[CNT_GAP] > 10 &&
		    b->cnt[CNT_RETRY] > 1 && b->cnt[CNT_RNR] > 1 && b->cnt[CNT_RSP] > 1000 &&
		    b->cnt[CNT_GHOST] > 1000);
	delete m;
	delete b;
}

// ---- all at once: a sender, a wire that loses, a responder
// --------------------------------------------

struct work {
	unsigned int op, len, first, npsn;
	bool told;		    // its sent_t went
	std::set<unsigned int> got; // READ: packets of the response taken
	bool placed;
};

struct packet {
	uint64_t due;
	unsigned int qpn, psn;
};

struct peer {
	std::vector<struct work> work;
	unsigned int cur, off, done,
		ended; // sender's place; acknowledged; completed in the CQ's order
	bool hold;
	uint64_t hold_until, pause;
	unsigned int epsn;
	bool nak_sent;
	bool killed, flushed; // by control, in the middle; a CQE has said so
};

struct wire {
	struct peer p[8];
	std::deque<struct packet> req; // in order
	std::deque<struct item> rsp;
	std::deque<uint64_t> rsp_due;
	std::deque<unsigned int> take; // QP of each response packet given to the block, in order
	uint64_t rdone_at, retries, holds;
	unsigned int loss;
	std::map<std::pair<unsigned int, unsigned int>, unsigned int> lost; // of QP and PSN
	bool kill;
};

// Does the wire lose it, on either way? It loses no PSN more often than retries can mend.
static bool lose(struct bench *b, struct wire *w, unsigned int n, unsigned int psn)
{
	return rnd(b, 1000) < w->loss && w->lost[{ n, psn }]++ < 4;
}

static struct work *by_psn(struct peer *p, unsigned int psn, unsigned int *index)
{
	for (unsigned int i = p->done; i < p->work.size(); i++) {
		int d = psn_diff(psn, p->work[i].first);

		*index = i;
		if (d >= 0 && d < (int)p->work[i].npsn)
			return &p->work[i];
	}
	return NULL;
}

static void respond(struct bench *b, struct wire *w, struct item it, uint64_t delay)
{
	if (lose(b, w, it.qpn, it.psn))
		return;
	w->rsp.push_back(it);
	w->rsp_due.push_back(b->now + delay);
}

// the responder: a request packet of PSN psn has come
static void serve(struct bench *b, struct wire *w, unsigned int n, unsigned int psn)
{
	struct peer *p = &w->p[n];
	unsigned int i, mtu = 128u << b->cfg[n].mtu;
	struct work *k = by_psn(p, psn, &i);
	int ahead = psn_diff(psn, p->epsn);

	if (!k)
		return;
	if (ahead > 0) {
		if (!p->nak_sent)
			respond(b, w, { IT_PKT, n, ACK_OP, p->epsn, 0x60, 0, true }, 60);
		p->nak_sent = true;
		return;
	}
	if (ahead == 0 && !is_rd(k->op) && one_in(b, 60)) {
		unsigned int code = 1 + rnd(b, 2);

		respond(b, w, { IT_PKT, n, ACK_OP, psn, 0x20 | code, 0, true }, 60);
		p->nak_sent = true;
		return;
	}
	if (ahead == 0) {
		p->nak_sent = false;
		p->epsn = is_rd(k->op) ? psn_add(k->first, k->npsn) : psn_add(psn, 1);
	}
	if (!is_rd(k->op)) {
		if (one_in(b, 3) || psn == psn_add(k->first, k->npsn - 1))
			respond(b, w, { IT_PKT, n, ACK_OP, psn_add(p->epsn, -1), 0x1f, 0, true },
				60);
		return;
	}
	if (is_atomic(k->op)) {
		respond(b, w, { IT_PKT, n, ATOMIC_ACK, psn, 0, 0, true }, 60);
		return;
	}
	for (unsigned int at = psn_diff(psn, k->first), beg = at; at < k->npsn; at++) {
		bool last = at == k->npsn - 1;
		unsigned int op = at == beg ? (last ? RR_ONLY : RR_FIRST)
				  : last    ? RR_LAST
					    : RR_MIDDLE;

		respond(b, w,
			{ IT_PKT, n, op, psn_add(k->first, at), 0, last ? k->len - at * mtu : mtu,
			  true },
			60);
	}
}

static void wire_cycle(struct bench *b, struct wire *w)
{
	unsigned int n = rnd(b, 8), reads = 0;
	struct peer *p = &w->p[n];

	if (w->kill && !p->killed && p->done > 40 && one_in(b, 2000)) {
		p->killed = true;
		b->ctrls.push_back({ C_ERR, n, 0 });
	}
	// what has not been told is flushed, in order
	if (p->killed && b->sents.empty() && b->ctrls.empty()) {
		for (p->cur = p->done; p->cur < p->work.size() && p->work[p->cur].told;)
			p->cur++;
		if (p->cur < p->work.size() && p->cur - p->done < 100) {
			struct work *k = &p->work[p->cur];

			b->sents.push_back({ n, p->cur, k->first, k->op, 1, FLUSH, 0, k->len });
			k->told = true;
		}
	}
	// sender: one packet of a QP now and then, a READ or ATOMIC is one packet
	for (unsigned int i = p->done; i < p->cur && i < p->work.size(); i++)
		reads += is_rd(p->work[i].op);
	if (b->sents.empty() && !p->hold && !p->killed && p->cur < p->work.size() &&
	    p->cur - p->done < 100 && reads < 16 && p->pause <= b->now) {
		struct work *k = &p->work[p->cur];
		bool last = is_rd(k->op) || p->off + 1 >= k->npsn;
		unsigned int psn = psn_add(k->first, is_rd(k->op) ? k->npsn - 1 : p->off);

		if (k->npsn)
			b->mades.push_back({ n, psn, last || psn % 16 == 15 });
		if (k->npsn && !lose(b, w, n, psn_add(k->first, p->off)))
			w->req.push_back({ b->now + 80, n, psn_add(k->first, p->off) });
		if (last && !k->told) {
			b->sents.push_back({ n, p->cur, psn_add(k->first, (int)k->npsn - 1), k->op,
					     1, 0, 0, k->len });
			k->told = true;
		}
		p->off++;
		if (last) {
			p->cur++;
			p->off = 0;
		}
	}
	if (!w->req.empty() && w->req.front().due <= b->now) {
		serve(b, w, w->req.front().qpn, w->req.front().psn);
		w->req.pop_front();
	}
	if (!w->rsp.empty() && w->rsp_due.front() <= b->now && b->items.size() < 16) {
		if (w->rsp.front().opcode != ACK_OP)
			w->take.push_back(w->rsp.front().qpn);
		b->items.push_back(w->rsp.front());
		w->rsp.pop_front();
		w->rsp_due.pop_front();
	}
	cycle(b);
	for (struct rr &r : b->rrs) {
		unsigned int q = w->take.front();

		w->take.pop_front();
		if (!r.take)
			continue;
		assert_true(r.wqe < w->p[q].work.size());
		struct work *k = &w->p[q].work[r.wqe];
		unsigned int at = r.off / (128u << b->cfg[q].mtu);

		if (!is_rd(k->op) || at != k->got.size() || r.last != (at == k->npsn - 1))
			fail_msg("cycle %lu: QP %u WQE %u: response packet %u taken, %zu before it",
				 b->now, q, r.wqe, at, k->got.size());
		k->got.insert(at);
		if (!r.last)
			continue;
		// placed in order over all QPs
		w->rdone_at = (w->rdone_at > b->now ? w->rdone_at : b->now) + rnd(b, 200);
		b->rdones.push_back({ q, 0, w->rdone_at });
		k->placed = true;
	}
	for (struct acked &a : b->ackeds) {
		struct peer *q = &w->p[a.qpn];
		unsigned int i;

		assert_true(a.wqe_done >= q->done);
		q->done = a.wqe_done;
		if (q->killed)
			continue;
		// what is completed is not sent again, as far as that was
		if (q->cur < a.wqe_done) {
			q->cur = a.wqe_done;
			q->off = q->cur < q->work.size() ? psn_diff(a.una, a.first) : 0;
		}
		if (a.kind == HOLD) {
			w->holds++;
			q->hold = true;
			q->hold_until = b->now + 2500 - 100;
		}
		if (a.kind != RETRY)
			continue;
		w->retries++;
		if (q->hold && b->now < q->hold_until)
			fail_msg("cycle %lu: QP %u: retry in the RNR wait", b->now, a.qpn);
		q->hold = false;
		i = a.wqe_done;
		if (i == q->work.size())
			continue;
		if (a.first != q->work[i].first || psn_diff(a.una, a.first) < 0 ||
		    psn_diff(a.una, psn_add(a.first, q->work[i].npsn)) > 0 ||
		    (i > 0 &&
		     !q->work[i - 1].told)) // it may be ahead of what is sent again just now
			fail_msg("cycle %lu: QP %u: AK_RETRY from %x, WQE %u, first %x: WQE begins "
				 "with %x",
				 b->now, a.qpn, a.una, i, a.first, q->work[i].first);
		if (psn_diff(a.una, q->epsn) > 0)
			fail_msg("cycle %lu: QP %u: AK_RETRY from %x, which the responder has not "
				 "reached",
				 b->now, a.qpn, a.una);
		q->cur = i;
		q->off = psn_diff(a.una, a.first);
		q->pause = b->now + 200;
	}
	for (struct cqe &c : b->cqes) {
		struct peer *q = &w->p[c.qpn];
		struct work *k = &q->work[c.wqe];

		if (c.wqe != q->ended++ || (c.status && !(q->killed && c.status == FLUSH)) ||
		    (q->flushed && !c.status))
			fail_msg("cycle %lu: QP %u: CQE of WQE %u status %u, WQE %u is next",
				 b->now, c.qpn, c.wqe, c.status, q->ended - 1);
		q->flushed = c.status != 0;
		if (c.status)
			continue;
		if (is_rd(k->op) ? !k->placed
				 : psn_diff(psn_add(k->first, (int)k->npsn), q->epsn) > 0)
			fail_msg("cycle %lu: QP %u: WQE %u completes too early", b->now, c.qpn,
				 c.wqe);
	}
	b->rrs.clear();
	b->ackeds.clear();
	b->cqes.clear();
	if (!b->errs.empty())
		fail_msg("cycle %lu: QP %u ends: %lu retries used up, %lu RNR retries", b->now,
			 b->errs[0], b->cnt[CNT_RETRY], b->cnt[CNT_RNR]);
}

static void fail_wire(struct bench *b, const struct wire *w, uint64_t left)
{
	for (unsigned int n = 0; n < 8; n++) {
		const struct peer *p = &w->p[n];

		if (p->ended == p->work.size())
			continue;
		print_message("QP %u: WQE %u, packet %u is next to be sent, %u told as done, %u "
			      "completed, first PSN %x, the responder expects %x; hold %d, killed "
			      "%d\n",
			      n, p->cur, p->off, p->done, p->ended, p->work[p->ended].first,
			      p->epsn, p->hold, p->killed);
	}
	fail_msg("cycle %lu: %lu WQEs do not complete", b->now, left);
}

static void run_wire(struct bench *b, unsigned int loss, bool slow, bool kill)
{
	static const unsigned int ops[] = { SEND, SEND,	     WRITE,	READ,
					    CS,	  LOCAL_INV, MPE_FLUSH, MPE_WRITE };
	struct wire *w = new wire{};
	uint64_t left = 1, limit = b->now + 3000000, begin = b->now;

	b->slow = slow;
	w->loss = loss;
	w->kill = kill;
	memset(b->cnt, 0, sizeof(b->cnt));
	for (unsigned int n = 0; n < 8; n++) {
		struct peer *p = &w->p[n];
		unsigned int psn = rnd(b, 1 << 24);

		if (n & 1)
			psn = psn_add(0, -20);
		// retries enough that none is used up
		b->cfg[n] = { 1 + (unsigned int)rnd(b, 3), 7, 7, 1 + (unsigned int)rnd(b, 3), n };
		b->ctrls.push_back({ C_RESET, n, 0 });
		b->ctrls.push_back({ C_SQ_PSN, n, psn });
		p->epsn = psn;
		for (int i = 0; i < 150; i++) {
			unsigned int op = ops[rnd(b, 8)], mtu = 128u << b->cfg[n].mtu;
			unsigned int len = op == CS			   ? 8
					   : op == LOCAL_INV || is_mpe(op) ? 0
									   : rnd(b, 6 * mtu);
			unsigned int np = op == LOCAL_INV ? 0 : len ? (len + mtu - 1) / mtu : 1;

			p->work.push_back({ op, len, psn, np, false, {}, false });
			psn = psn_add(psn, np);
		}
	}
	settle(b);
	while (left) {
		wire_cycle(b, w);
		left = 0;
		for (struct peer &p : w->p)
			left += p.work.size() - p.ended;
		if (b->now > limit)
			fail_wire(b, w, left);
	}
	for (int i = 0; i < 1000; i++)
		wire_cycle(b, w);
	print_message("loss %u/1000: %lu cycles, %lu AK_RETRY, %lu AK_HOLD, %lu time-outs, %lu "
		      "READ gaps\n",
		      loss, b->now - begin, w->retries, w->holds, b->cnt[CNT_TIMEOUT],
		      b->cnt[CNT_GAP]);
	if (!loss)
		assert_int_equal(b->cnt[CNT_TIMEOUT] + b->cnt[CNT_GAP], 0);
	else if (!kill)
		assert_true(w->retries && b->cnt[CNT_GAP] && (loss < 50 || b->cnt[CNT_TIMEOUT]));
	settle(b);
	assert_false(b->dut.timer_armed);
	delete w;
}

static void test_wire(void **state)
{
	struct bench *b = new bench;

	(void)state;
	start(b, test_seed(0xbadcafe), 8);
	run_wire(b, 0, false, false);
	run_wire(b, 10, true, false);
	run_wire(b, 50, false, false);
	run_wire(b, 100, true, false);
	for (int i = 0; i < 6; i++)
		run_wire(b, 20, i & 1, true);
	delete b;
}

// ---- rate, and how late a timer may be
// -------------------------------------------------------------------

static void open_qp(struct bench *b, unsigned int n, struct config c)
{
	b->cfg[n] = c;
	b->ctrls.push_back({ C_RESET, n, 0 });
	b->ctrls.push_back({ C_SQ_PSN, n, 0 });
	settle(b);
}

// A message of one packet, or a READ or ATOMIC of n PSNs.
static void post(struct bench *b, unsigned int qpn, unsigned int wqe, unsigned int psn,
		 unsigned int n, unsigned int op, bool signaled, unsigned int len)
{
	b->mades.push_back({ qpn, psn_add(psn, (int)n - 1), true });
	b->sents.push_back({ qpn, wqe, psn_add(psn, (int)n - 1), op, signaled, 0, 0, len });
}

static uint64_t run_items(struct bench *b)
{
	uint64_t t = b->now;

	while (!b->items.empty())
		cycle(b);
	t = b->now - t;
	settle(b);
	return t;
}

static void test_rate(void **state)
{
	struct bench *b = new bench;
	uint64_t t;

	(void)state;
	start(b, test_seed(1), 64);
	for (unsigned int n = 0; n < 64; n++)
		open_qp(b, n, { 10, 7, 7, 5, 1 });
	for (unsigned int i = 0; i < 64; i++)
		post(b, 1, i, i, 1, SEND, true, 64);
	settle(b);
	for (unsigned int i = 0; i < 64; i++)
		b->items.push_back({ IT_PKT, 1, ACK_OP, i, 0x1f, 0, true });
	t = run_items(b);
	assert_int_equal(b->cqes.size(), 64);
	print_message("64 ACKs of one QP, a CQE each: %lu cycles\n", t);
	assert_true(t <= 64 * 3);

	b->cqes.clear();
	for (unsigned int i = 64; i < 128; i++)
		post(b, 1, i, i, 1, SEND, true, 64);
	settle(b);
	b->items.push_back({ IT_PKT, 1, ACK_OP, 127, 0x1f, 0, true });
	for (t = b->now; b->cqes.size() < 64;)
		cycle(b);
	print_message("one ACK, 64 CQEs: %lu cycles\n", b->now - t);
	// They wait until the turn has ended, and tx knows.
	assert_true(b->now - t <= 2 * 64 + 8);
	settle(b);

	post(b, 1, 128, 128, 64, READ, true, 64 * 4096);
	settle(b);
	for (unsigned int i = 0; i < 64; i++)
		b->items.push_back({ IT_PKT, 1,
				     i == 0    ? RR_FIRST
				     : i == 63 ? RR_LAST
					       : RR_MIDDLE,
				     128 + i, 0, 4096, true });
	t = run_items(b);
	assert_int_equal(b->cnt[CNT_RSP], 64);
	print_message("64 READ responses of one QP: %lu cycles\n", t);
	assert_true(t <= 64 * 2 + 4);

	b->cqes.clear();
	for (unsigned int n = 2; n < 64; n++)
		post(b, n, 0, 0, 1, SEND, true, 64);
	settle(b);
	for (unsigned int n = 2; n < 64; n++)
		b->items.push_back({ IT_PKT, n, ACK_OP, 0, 0x1f, 0, true });
	t = run_items(b);
	assert_int_equal(b->cqes.size(), 62);
	print_message("62 ACKs of as many QPs, a CQE each: %lu cycles\n", t);
	assert_true(t <= 62 * 2 + 4);
	delete b;
}

// As the look-up does it: up to 16 items, packets and kicks by turns.
static void fill_items(struct bench *b, std::deque<struct item> *packets, bool *turn)
{
	bool kick = b->dut.kick_valid && (*turn || packets->empty());

	b->room = kick ? 16 : 0;
	if (!kick && !packets->empty() && b->items.size() < 16) {
		b->items.push_back(packets->front());
		packets->pop_front();
	}
	*turn = !kick;
}

// A packet every three cycles, without end: each answers a message of a QP drawn, and another
// message takes its place. What waits in front of the block stays bounded, and kicks cost no packet
// its place.
static void sustain(struct bench *b, unsigned int qps, unsigned int reads)
{
	std::vector<std::deque<unsigned int>> ops(qps);
	std::vector<unsigned int> psn(qps, 0), wqe(qps, 0), ended(qps, 0);
	std::deque<unsigned int> took; // QPs of READ responses under way
	std::deque<struct item> packets;
	size_t most = 0, count = 0, first = b->in_taken;
	bool turn = false;

	for (unsigned int n = 0; n < qps; n++)
		open_qp(b, n, { 10, 7, 7, 5, n });
	b->cqes.clear();
	b->rrs.clear();
	for (unsigned int i = 0; i < 6000; i++) {
		for (unsigned int k = 0; k < 40; k++) {
			unsigned int n = rnd(b, qps);

			if (wqe[n] - ended[n] >= 30)
				continue;
			ops[n].push_back(rnd(b, 100) < reads ? READ : WRITE);
			post(b, n, wqe[n], wqe[n], 1, ops[n].back(), true, 32);
			wqe[n]++;
			break;
		}
		// what is told in these cycles is not answered before the next ones
		for (unsigned int k = 0, n = rnd(b, qps); k < qps && i > 40;
		     k++, n = (n + 1) % qps) {
			bool read = !ops[n].empty() && ops[n].front() == READ;

			if (ops[n].size() < 3)
				continue;
			packets.push_back({ IT_PKT, n, (unsigned int)(read ? RR_ONLY : ACK_OP),
					    psn[n], read ? 0u : 0x1fu, read ? 32u : 0u, true });
			if (read)
				took.push_back(n);
			ops[n].pop_front();
			psn[n]++;
			count++;
			break;
		}
		for (int k = 0; k < 3; k++) {
			fill_items(b, &packets, &turn);
			cycle(b);
		}
		for (struct rr &r : b->rrs) {
			assert_true(r.take && r.last);
			b->rdones.push_back({ took.front(), 0, b->now + 30 });
			took.pop_front();
		}
		b->rrs.clear();
		for (struct cqe &c : b->cqes)
			if (c.status || c.wqe != ended[c.qpn]++)
				fail_msg("QP %u: CQE of WQE %u, %u is next", c.qpn, c.wqe,
					 ended[c.qpn] - 1);
		b->cqes.clear();
		b->ackeds.clear();
		if (packets.size() > most)
			most = packets.size();
	}
	print_message("%u QPs, %u %% READs: %zu packets in %u cycles, and %zu kicks; at most %zu "
		      "packets wait\n",
		      qps, reads, count, 3 * 6000, b->in_taken - first - count, most);
	assert_true(count > 5800);
	// Up to 21 with 120 seeds. A block that is too slow has hundreds at the end.
	assert_true(most <= 32 && b->sents.size() < 8 && b->mades.size() < 8);
	b->room = SIZE_MAX;
	while (!packets.empty()) {
		b->items.push_back(packets.front());
		packets.pop_front();
	}
	settle(b);
	assert_int_equal(b->cnt[CNT_GAP] + b->cnt[CNT_TIMEOUT] + b->cnt[CNT_GHOST], 0);
}

static void test_sustained(void **state)
{
	struct bench *b = new bench;

	(void)state;
	start(b, test_seed(3), 64);
	for (unsigned int qps : { 1u, 2u, 3u, 8u, 64u }) {
		sustain(b, qps, 0);
		if (qps >= 8) {
			sustain(b, qps, 30);
			sustain(b, qps, 100);
		}
	}
	delete b;
}

// A message comes while the turn of an acknowledgement runs, at each offset: it is watched by a
// timer, or completed if the acknowledgement was for it too.
static void test_race(void **state)
{
	struct bench *b = new bench;
	unsigned int wqe = 0;

	(void)state;
	start(b, test_seed(1), 8);
	b->frozen = true;
	open_qp(b, 3, { 1, 7, 7, 5, 1 });
	for (unsigned int i = 0; i < 80; i++, wqe += 2) {
		bool both = i & 1;

		post(b, 3, wqe, wqe, 1, SEND, true, 64);
		b->mades.push_back({ 3, wqe + 1, true });
		settle(b);
		for (int at = -4; at < (int)(i / 2); at++) {
			if (at == 0)
				b->items.push_back(
					{ IT_PKT, 3, ACK_OP, wqe + both, 0x1f, 0, true });
			if (at == (int)(i / 2) - 4)
				b->sents.push_back({ 3, wqe + 1, wqe + 1, SEND, 1, 0, 0, 64 });
			cycle(b);
		}
		if (i / 2 < 1)
			b->items.push_back({ IT_PKT, 3, ACK_OP, wqe + both, 0x1f, 0, true });
		settle(b);
		if (b->cqes.size() != 1u + both || b->dut.timer_armed == both)
			fail_msg(
				"message %d cycles behind an ACK for %d: %zu completions, timer %d",
				(int)(i / 2) - 4, 1 + both, b->cqes.size(), b->dut.timer_armed);
		b->items.push_back({ IT_PKT, 3, ACK_OP, wqe + 1, 0x1f, 0, true });
		settle(b);
		assert_int_equal(b->cqes.size(), 2);
		assert_false(b->dut.timer_armed);
		b->cqes.clear();
	}
	delete b;
}

// Tx takes no acked_t: no CQE leaves. A QP is reset at each offset behind the acknowledgement of
// its message: what it has completed waits for that of the other QP, which is older.
static void test_gate(void **state)
{
	for (int offset = 0; offset < 12; offset++) {
		struct bench *b = new bench;

		(void)state;
		start(b, test_seed(1), 8);
		for (unsigned int n = 1; n < 4; n++) {
			open_qp(b, n, { 1, 7, 7, 5, 1 });
			post(b, n, 0, 0, 1, SEND, true, 64);
		}
		settle(b);
		b->hold = true;
		for (unsigned int n = 1; n < 4; n++)
			b->items.push_back({ IT_PKT, n, ACK_OP, 0, 0x1f, 0, true });
		for (int i = 0; i < 60; i++) {
			if (i == offset)
				b->ctrls.push_back({ C_RESET, 2, 0 });
			cycle(b);
			assert_true(b->cqes.empty());
		}
		b->hold = false;
		settle(b);
		assert_int_equal(b->cqes.front().qpn, 1);
		assert_int_equal(b->cqes.back().qpn, 3);
		delete b;
	}
}

// Two QPs with many messages go to ERR while tx takes no acked_t. Their CQEs do not all fit before
// the gate: the flush of the second QP waits in the middle, and each of its CQEs counts once.
static void test_flush_waits(void **state)
{
	struct bench *b = new bench;

	(void)state;
	start(b, test_seed(1), 8);
	for (unsigned int n = 1; n < 3; n++) {
		open_qp(b, n, { 10, 7, 7, 5, 1 });
		for (unsigned int i = 0; i < 100; i++)
			post(b, n, i, i, 1, SEND, true, 64);
	}
	settle(b);
	b->hold = true;
	for (unsigned int n = 1; n < 3; n++)
		b->ctrls.push_back({ C_ERR, n, 0 });
	for (int i = 0; i < 1000; i++)
		cycle(b);
	assert_true(b->cqes.empty());
	b->hold = false;
	settle(b);
	assert_int_equal(b->cqes.size(), 200);
	for (unsigned int n = 1; n < 3; n++)
		assert_int_equal(b->qc[n][QC_FLUSH], 100);
	delete b;
}

// Nothing is answered: time-outs, one after the other, then RETRY_EXC_ERR. Each within its time and
// two sweeps.
static void test_timer(void **state)
{
	struct bench *b = new bench;

	(void)state;
	start(b, test_seed(1), 64);
	for (unsigned int n = 0; n < 64; n++)
		open_qp(b, n, { 1 + n % 5, n % 8, 7, 5, n });
	for (unsigned int n = 0; n < 64; n++) {
		uint64_t due = 0, wait = ack_wait(b->cfg[n].timeout), jumps = 0;
		unsigned int retries = 0;

		// the first packet of a long message, or all of a short one
		b->mades.push_back({ n, 0, true });
		if (n & 1)
			b->sents.push_back({ n, 0, 0, SEND, 0, 0, 0, 64 });
		due = b->time + wait;
		while (b->errs.empty()) {
			settle(b);
			assert_true(b->dut.timer_armed);
			assert_true(b->time + b->dut.timer_cycles <= due + 60);
			b->time += b->dut.timer_cycles;
			for (int i = 0; i < 600 && b->ackeds.empty() && b->errs.empty(); i++)
				cycle(b);
			if (++jumps > 100)
				fail_msg("QP %u: no time-out", n);
			if (b->ackeds.empty())
				continue;
			if (b->time < due || b->time > due + 600)
				fail_msg("QP %u: time-out %ld cycles after its time", n,
					 (long)(b->time - due));
			retries += b->ackeds[0].kind == RETRY;
			// a limit that is used up already, from MODIFY_QP
			if (n % 8 >= 4 && retries == 3)
				b->cfg[n].retry = 1;
			b->ackeds.clear();
			due = b->time + wait - 4;
		}
		assert_int_equal(retries, n % 8 >= 4 ? 3 : n % 8);
		// tx is told, and flushes it
		if (!(n & 1))
			b->sents.push_back({ n, 0, 0, SEND, 0, FLUSH, 0, 64 });
		settle(b);
		assert_int_equal(b->cqes.size(), 1);
		assert_int_equal(b->cqes[0].status, RETRY_EXC);
		settle(b);
		b->cqes.clear();
		b->ackeds.clear();
		b->errs.clear();
		assert_false(b->dut.timer_armed);
	}
	delete b;
}

// The end of an RNR wait: the message is sent again.
static void end_rnr_wait(struct bench *b, unsigned int n)
{
	bool again = false;

	for (int jumps = 0; jumps < 10 && !again; jumps++) {
		assert_true(b->dut.timer_armed);
		b->time += b->dut.timer_cycles;
		b->ackeds.clear();
		for (int i = 0; i < 600 && b->ackeds.empty(); i++)
			cycle(b);
		again = !b->ackeds.empty();
	}
	if (!again)
		fail_msg("QP %u: the RNR wait does not end", n);
	assert_int_equal(b->ackeds.size(), 1);
	assert_int_equal(b->ackeds[0].kind, RETRY);
	b->ackeds.clear();
	b->mades.push_back({ n, 0, true });
	settle(b);
}

// A message is sent again after each RNR NAK, until the limit. A limit of 7 is none; RNR NAKs of
// that time do not count when MODIFY_QP sets another.
static void test_rnr(void **state)
{
	struct bench *b = new bench;

	(void)state;
	start(b, test_seed(1), 8);
	for (unsigned int n = 0; n < 8; n++) {
		unsigned int retries = 0;

		open_qp(b, n, { 14, 7, n, 5, n });
		post(b, n, 0, 0, 1, SEND, true, 64);
		settle(b);
		for (;;) {
			b->items.push_back({ IT_PKT, n, ACK_OP, 0, 0x20 | 1, 0, true });
			settle(b);
			if (!b->errs.empty())
				break;
			end_rnr_wait(b, n);
			if (++retries == 20)
				b->cfg[n].rnr_retry = 2;
		}
		assert_int_equal(retries, n < 7 ? n : 22);
		assert_int_equal(b->cqes.size(), 1);
		assert_int_equal(b->cqes[0].status, RNR_EXC);
		assert_int_equal(b->cnt[CNT_RNR], n + 1);
		b->cqes.clear();
		b->ackeds.clear();
		b->errs.clear();
	}
	delete b;
}

// A packet leaves while the one before it is acknowledged, and QUERY_QP comes in any cycle of that:
// the new packet has its ACK timer.
static void test_query(void **state)
{
	enum { SPAN = 14 };
	struct bench *b = new bench;
	unsigned int psn = 0;

	(void)state;
	start(b, test_seed(1), 1);
	open_qp(b, 0, { 1, 7, 7, 5, 0 });
	b->mades.push_back({ 0, psn, true });
	b->sents.push_back({ 0, psn, psn, SEND, 0, 0, 0, 64 });
	settle(b);
	for (unsigned int made = 0; made < SPAN; made++) {
		for (unsigned int query = 0; query < SPAN; query++) {
			b->items.push_back({ IT_PKT, 0, ACK_OP, psn, 0x1f, 0, true });
			psn++;
			for (unsigned int i = 0; i < SPAN; i++) {
				if (i == made)
					b->mades.push_back({ 0, psn, true });
				if (i == query)
					b->ctrls.push_back({ C_QUERY, 0, 0 });
				cycle(b);
			}
			settle(b);
			if (!b->dut.timer_armed)
				fail_msg("packet in cycle %u, query in cycle %u: no timer runs",
					 made, query);
			b->sents.push_back({ 0, psn, psn, SEND, 0, 0, 0, 64 });
			settle(b);
		}
	}
	delete b;
}

// UC and UD: what is told completes, at once and in order, without an answer and without a timer,
// as fast as tx can tell it; also beside a QP of RC, whose ACKs come at the same time.
static void test_unrel(void **state)
{
	struct bench *b = new bench;

	(void)state;
	start(b, test_seed(1), 16);
	for (unsigned int qps : { 1u, 2u, 8u }) {
		std::vector<unsigned int> wqe(16, 0), ended(16, 0);
		unsigned int n = 0, acks = 0, most = 0;
		uint64_t begin;

		// the timeout does not count
		for (unsigned int q = 0; q < 16; q++)
			open_qp(b, q, { 1, 3, 3, 5, q, q < qps });
		begin = b->now;
		while (n < 4000) {
			unsigned int q = n % qps;

			// a message every 4 cycles, signaled or not; one of 15 is long
			if ((b->now - begin) % 4 == 0) {
				unsigned int len = one_in(b, 15) ? 4096 * 3 : 64;

				b->sents.push_back({ q, wqe[q]++, n, SEND,
						     (unsigned int)(n % 3 != 0), 0, 0, len });
				b->mades.push_back({ q, n, false });
				n++;
			}
			if ((b->now - begin) % 12 == 0) {
				post(b, 15, acks, acks, 1, SEND, true, 64);
				if (acks > 8)
					b->items.push_back(
						{ IT_PKT, 15, ACK_OP, acks - 8, 0x1f, 0, true });
				acks++;
			}
			cycle(b);
			for (struct acked &a : b->ackeds) {
				assert_int_equal(a.kind, PROGRESS);
				if (a.qpn < qps)
					ended[a.qpn] = a.wqe_done;
			}
			b->ackeds.clear();
			for (q = 0; q < qps; q++)
				if (wqe[q] - ended[q] > most)
					most = wqe[q] - ended[q];
		}
		settle(b);
		for (struct acked &a : b->ackeds)
			ended[a.qpn] = a.wqe_done;
		b->ackeds.clear();
		std::vector<unsigned int> next(16, 0);
		for (struct cqe &c : b->cqes) {
			assert_int_equal(c.status, 0);
			if (c.qpn == 15)
				continue;
			assert_true(c.wqe >= next[c.qpn]);
			next[c.qpn] = c.wqe + 1;
		}
		for (unsigned int q = 0; q < qps; q++)
			assert_int_equal(ended[q], wqe[q]);
		print_message("%u QPs, a message told every 4 cycles: at most %u of a QP wait\n",
			      qps, most);
		// of 128 that may be under way
		assert_true(most <= 16);
		assert_int_equal(b->cqes.size(), 4000 - (4000 + 2) / 3 + acks - 8);
		b->cqes.clear();
	}
	// PSNs more than half of their range away from the first
	open_qp(b, 15, { 1, 3, 3, 5, 15 });
	open_qp(b, 2, { 1, 3, 3, 1, 2, true });
	for (unsigned int i = 0; i < 40; i++) {
		b->mades.push_back({ 2, psn_add(0, (int)((i + 1) << 19) - 1), false });
		b->sents.push_back(
			{ 2, i, psn_add(0, (int)((i + 1) << 19) - 1), SEND, 1, 0, 0, 1u << 27 });
		settle(b);
		assert_int_equal(b->cqes.size(), i + 1);
		assert_false(b->dut.timer_armed);
		b->time += 100000;
		settle(b);
	}
	for (struct acked &a : b->ackeds)
		assert_int_equal(a.kind, PROGRESS);
	assert_int_equal(b->errs.size(), 0);
	assert_int_equal(b->cnt[CNT_TIMEOUT], 0);
	delete b;
}

// A fence behind an acknowledgement: when it comes out, what the acknowledgement completes has been
// taken, however slow the others are.
static void test_fence(void **state)
{
	struct bench *b = new bench;

	(void)state;
	start(b, test_seed(1), 1);
	open_qp(b, 0, { 1, 7, 7, 5, 0 });
	b->slow = true;
	for (unsigned int round = 0, psn = 0; round < 300; round++) {
		unsigned int n = 1 + rnd(b, 8);

		for (unsigned int i = 0; i < n; i++, psn++) {
			b->mades.push_back({ 0, psn, true });
			b->sents.push_back({ 0, psn, psn, SEND, 1, 0, 0, 64 });
		}
		settle(b);
		b->cqes.clear();
		b->ackeds.clear();
		b->fences = 0;
		b->items.push_back({ IT_PKT, 0, ACK_OP, psn - 1, 0x1f, 0, true });
		b->items.push_back({ IT_FENCE, 0, 0, 0, 0, 0, true });
		for (unsigned int i = 0; !b->fences; i++) {
			cycle(b);
			assert_true(i < 1000);
		}
		assert_int_equal(b->cqes.size(), n);
		assert_int_equal(b->ackeds.size(), 1);
		assert_int_equal(b->ackeds[0].una, psn);
		settle(b);
		assert_int_equal(b->fences, 1);
	}
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fence), cmocka_unit_test(test_query),
		cmocka_unit_test(test_rules), cmocka_unit_test(test_wire),
		cmocka_unit_test(test_rate),  cmocka_unit_test(test_sustained),
		cmocka_unit_test(test_race),  cmocka_unit_test(test_timer),
		cmocka_unit_test(test_unrel), cmocka_unit_test(test_gate),
		cmocka_unit_test(test_rnr),   cmocka_unit_test(test_flush_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
