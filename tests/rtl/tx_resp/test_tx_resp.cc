// SPDX-License-Identifier: Apache-2.0
// urdma_tx_resp alone: random requests of many QPs, with a model of commit behind it, against a
// reference that follows each QP. A wrong packet here is a READ answered with other data, an answer
// out of order, or a NAK that the requester never sees.
//
// The ports do not show when an acknowledgement leaves the state of its QP, and requests that come
// around that time may or may not have merged with it. So the reference keeps all possible times,
// as positions in the log of the QP's requests. A packet is correct if it was pending at one of
// them.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
}
#include <deque>
#include <vector>

#include "Vurdma_tx_resp.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"
#include "urdma_trace_pkg.h"
#include "urdma_tx_pkg.h"

enum { QPS = 4096, OUTSTANDING = 16, RING = 2 * OUTSTANDING, PSN_MASK = 0xffffff };
enum { OP_FIRST = 0x0d, OP_MIDDLE, OP_LAST, OP_ONLY, OP_ACK, OP_ATOMIC_ACK };

static const uint32_t bad_key = 0xbad00000; // READs with it fail; lowest bit: how

struct request {
	unsigned int kind, qpn, psn, syndrome, msn;
	unsigned int pd; // of the key: with XRC not the QP's
	uint32_t key;
	uint64_t va;
	uint32_t len;
	bool dup; // READ, ATOMIC: repeated
};

// what happened to a QP, in order
struct event {
	struct request rq;
	bool fail;    // not a request: an rfail
	bool dropped; // READ or ATOMIC that found no room
	bool left;    // READ or ATOMIC: all its packets made, or forgotten
};

struct pending {
	bool on;
	bool fatal;
	unsigned int psn, syndrome, msn;
};

struct qp {
	unsigned int state, mtu, pd;
	bool valid;
	unsigned int epsn, era, wish;
	std::deque<struct event> log;
	uint64_t base;		       // index of log's first event
	std::vector<uint64_t> moments; // where the last acknowledgement may have been taken
	uint64_t next;		       // first READ or ATOMIC that may not have left
	unsigned int held;	       // READs and ATOMICs in the ring, by our count
	unsigned int npk;	       // packets made of `next`
	uint64_t fence_at;
	bool failed;	   // an rfail, its NAK not yet seen
	bool closed;	   // ended by a NAK: takes nothing until its next life
	bool ending;	   // by one of the responder, in a state that answers READs: these still go
	unsigned int home; // state of its next life
	bool cut;	   // READs were dropped in ERR: the same
	bool told_ok; // its configuration answered READs when it was last read, before the last
		      // fence
	bool lost;    // a new READ or ATOMIC was dropped, this one:
	struct request lost_rq;
	uint64_t fail_seq, fail_at; // packet that failed, cycle
	unsigned int early_err;	    // event reported, its NAK not yet seen
	unsigned int dead_era;	    // commit: this life is dead
	bool dead;
	uint64_t acks, last_cycle;
};

struct flight {
	uint64_t due, seq;
	unsigned int qpn, era, psn;
	uint32_t key;
	bool payload;
};

struct bench {
	Vurdma_tx_resp dut;
	uint64_t seed, now, msn;
	struct qp qp[QPS];
	std::deque<struct request> todo;
	std::deque<std::pair<uint64_t, unsigned int>> cfg;
	std::deque<struct flight> commit;
	std::deque<std::pair<unsigned int, unsigned int>> errs;
	std::deque<struct request> stale; // rfail of a life that is over: no effect
	std::deque<unsigned int> resets;
	std::deque<std::pair<uint64_t, unsigned int>> erring; // a QP goes to ERR then
	uint64_t seq_in, seq_out, fence_seq;
	unsigned int last_qpn, last_psn; // of the request that was taken in the cycle before
	bool offering, last_ask, last_ended, last_entry, last_behind, pkt_was, fence_want, fencing;
	uint64_t fence_since, fences;
	uint32_t pkt_old[18];
	// knobs, in 1/16
	unsigned int p_req, p_pd, p_piece, p_pkt, p_cfg, p_err, cfg_latency, commit_latency;
	unsigned int err_latency; // cycles from a NAK that ends a QP to its ERR, at most; 0: no ERR
	// seen
	uint64_t behind, again, ended;
	uint64_t pds, pkts, bytes, drops, fails, slow_acks, naks, taken, ends, refused;
	unsigned int turn_qpn;
	uint64_t turn_bytes, turn_max;
	std::vector<unsigned int> turns;
};

static bool chance(struct bench *b, unsigned int p)
{
	return p >= 16 || rnd(b, 16) < p;
}

// QPs of type XRC_TGT stand among those of RC.
static bool is_xrc(unsigned int qpn)
{
	return qpn % 3 == 1;
}

static unsigned int mtu_bytes(const struct qp *q)
{
	return 128u << q->mtu;
}

static bool reads_ok(const struct qp *q)
{
	return q->valid && q->state >= URDMA_QPS_RTR && q->state <= URDMA_QPS_SQE;
}

static bool acks_ok(const struct qp *q)
{
	return q->valid && q->state >= URDMA_QPS_RTR;
}

// READs and ATOMICs have to be answered. A NAK that ends the QP waits for them, whatever the state
// of the QP is meanwhile.
static bool answers(const struct qp *q)
{
	return reads_ok(q) || (q->ending && acks_ok(q));
}

static bool not_before(unsigned int a, unsigned int c)
{
	return !((a - c) >> 23 & 1);
}

static bool is_nak(unsigned int syndrome)
{
	return syndrome >> 5 & 3;
}

// NAK that ends the QP
static bool is_end(unsigned int syndrome)
{
	return syndrome > 0x60 && syndrome < 0x80;
}

static uint64_t log_end(const struct qp *q)
{
	return q->base + q->log.size();
}

// A QP in ERR drops READs and ATOMICs, and acknowledges nothing from the first of them on, but for
// a NAK that ends the QP. Returns where it is in the log, or the end of the log if there is none.
static uint64_t cut_at(const struct qp *q)
{
	if (q->cut)
		return q->base;
	if (answers(q) || !acks_ok(q))
		return log_end(q);
	for (uint64_t i = q->base; i < log_end(q); i++) {
		const struct event *e = &q->log[i - q->base];

		if (!e->fail && !e->dropped && e->rq.kind != RSP_ACK)
			return i;
	}
	return log_end(q);
}

// The rules: what one event makes of the pending acknowledgement.
static void apply(struct pending *p, const struct event *e)
{
	if (e->fail) {
		p->on = true;
		p->fatal = true;
		p->psn = e->rq.psn;
		p->syndrome = e->rq.syndrome;
		return;
	}
	if (p->on && p->fatal)
		return;
	if (e->rq.kind != RSP_ACK) {
		if (!e->dropped && p->on && not_before(e->rq.psn, p->psn))
			p->on = false;
		return;
	}
	if (p->on && !is_nak(e->rq.syndrome) && !not_before(e->rq.psn, p->psn))
		return;
	*p = { true, false, e->rq.psn, e->rq.syndrome, e->rq.msn };
}

static struct pending run(const struct qp *q, uint64_t from, uint64_t to)
{
	struct pending p = {};

	for (uint64_t i = from; i < to; i++)
		apply(&p, &q->log[i - q->base]);
	return p;
}

// Events before all moments, whose READs have left or are dropped, are of no more use.
static void prune(struct qp *q)
{
	uint64_t low = q->moments.front();

	if (answers(q) && q->next < low)
		low = q->next;
	if (cut_at(q) < low)
		low = cut_at(q);
	while (q->base < low) {
		q->log.pop_front();
		q->base++;
	}
	if (q->next < q->base)
		q->next = q->base;
}

static void skip_left(struct qp *q)
{
	while (q->next < log_end(q)) {
		struct event *e = &q->log[q->next - q->base];

		if (!e->fail && e->rq.kind != RSP_ACK && !e->dropped && !e->left)
			break;
		q->next++;
	}
}

static void check_ack(struct bench *b, unsigned int qpn, unsigned int psn, const uint32_t *w,
		      unsigned int ext, unsigned int path)
{
	struct qp *q = &b->qp[qpn];
	unsigned int syndrome = bits_get(w, ext, 8);
	unsigned int msn = bits_get(w, ext + 8, 8) << 16 | bits_get(w, ext + 16, 8) << 8 |
			   bits_get(w, ext + 24, 8);
	std::vector<uint64_t> moments;
	bool fatal = false;
	uint64_t first = q->base, limit = log_end(q), cut;

	assert_true(acks_ok(q));
	assert_int_equal(FIELD_GET(w, path, path_t, dest_qpn), qpn ^ 0xabc);
	assert_int_equal(FIELD_GET(w, path, path_t, udp_sport), qpn ^ 0x1234);
	assert_int_equal(FIELD_GET(w, path, path_t, service), is_xrc(qpn) ? 5 : 0);
	// It comes after the answers to all READs before it, and before those to all READs behind
	// it.
	if (answers(q) && !q->failed) {
		for (uint64_t i = q->base; i < log_end(q); i++) {
			struct event *e = &q->log[i - q->base];

			if (e->fail || e->rq.kind == RSP_ACK || e->dropped)
				continue;
			if (e->left) {
				first = i + 1;
			} else {
				limit = i;
				break;
			}
		}
	}
	// An ACK must not cover a new READ that is dropped.
	cut = cut_at(q);
	if (!is_end(syndrome) && cut < limit)
		limit = cut;
	for (uint64_t k = first; k <= limit; k++) {
		for (uint64_t s : q->moments) {
			struct pending p;

			if (s > k)
				break;
			p = run(q, s, k);
			if (p.on && p.psn == psn && p.syndrome == syndrome &&
			    (p.fatal || p.msn == msn)) {
				moments.push_back(k);
				fatal = p.fatal;
				break;
			}
		}
	}
	if (moments.empty())
		fail_msg("cycle %lu QP %u: acknowledgement PSN %x syndrome %x MSN %x was never "
			 "pending at this place",
			 b->now, qpn, psn, syndrome, msn);
	if (fatal) {
		unsigned int type = syndrome == 0x63 ? URDMA_EV_QP_FATAL : URDMA_EV_QP_ACCESS_ERR;

		if (q->early_err && q->early_err != type)
			fail_msg("cycle %lu QP %u: event %u with NAK %x", b->now, qpn, q->early_err,
				 syndrome);
		if (!q->early_err)
			b->errs.push_back({ qpn, type });
		q->early_err = 0;
		q->failed = false;
	}
	b->naks += is_nak(syndrome);
	q->moments = moments;
	q->acks++;
	q->last_cycle = b->now;
	prune(q);
}

static void check_pkt(struct bench *b)
{
	const uint32_t *w = b->dut.pkt.m_storage;
	unsigned int qpn;

	if (b->pkt_was && (!b->dut.pkt_valid || memcmp(w, b->pkt_old, sizeof(b->pkt_old))))
		fail_msg("cycle %lu: packet of the fast path changed before it was taken", b->now);
	b->pkt_was = b->dut.pkt_valid && !b->dut.pkt_ready;
	memcpy(b->pkt_old, w, sizeof(b->pkt_old));
	if (!b->dut.pkt_valid || !b->dut.pkt_ready)
		return;
	if (!b->commit.empty())
		fail_msg("cycle %lu: the fast path overtakes %zu packets", b->now,
			 b->commit.size());
	assert_int_equal(FIELD_GET(w, 0, pkt_t, opcode), OP_ACK);
	assert_int_equal(FIELD_GET(w, 0, pkt_t, ext_len), 4);
	assert_int_equal(FIELD_GET(w, 0, pkt_t, plen), 0);
	assert_int_equal(FIELD_GET(w, 0, pkt_t, drop), 0);
	qpn = FIELD_GET(w, 0, pkt_t, qpn);
	// what was taken before an rfail goes through commit, which drops it
	if (b->qp[qpn].failed && (bits_get(w, pkt_t_ext_LSB, 8) & ~1) != 0x62)
		fail_msg("cycle %lu QP %u: acknowledgement of a life that is over", b->now, qpn);
	check_ack(b, qpn, FIELD_GET(w, 0, pkt_t, psn), w, pkt_t_ext_LSB, pkt_t_path_LSB);
	b->pkts++;
}

static void check_entry(struct bench *b, struct qp *q, unsigned int qpn)
{
	const uint32_t *w = b->dut.pd.m_storage, *pi = b->dut.piece.m_storage;
	unsigned int opcode = FIELD_GET(w, 0, pdesc_t, opcode),
		     plen = FIELD_GET(w, 0, pdesc_t, plen), m = mtu_bytes(q);
	unsigned int want_op, want_len, want_ext;
	struct event *e;
	uint64_t off = (uint64_t)q->npk * m;
	bool last;

	skip_left(q);
	if (q->next == log_end(q))
		fail_msg("cycle %lu QP %u: response packet, opcode %x PSN %lx, that nobody asked "
			 "for",
			 b->now, qpn, opcode, FIELD_GET(w, 0, pdesc_t, psn));
	// one in ERR, too, if the NAK came before its turn
	assert_true(answers(q) || q->told_ok || (acks_ok(q) && q->closed));
	e = &q->log[q->next - q->base];
	if (e->rq.kind == RSP_ATOMIC) {
		last = true;
		want_op = OP_ATOMIC_ACK;
		want_len = 0;
		want_ext = 12;
	} else {
		last = e->rq.len - off <= m;
		want_len = last ? e->rq.len - off : m;
		want_op = off ? (last ? OP_LAST : OP_MIDDLE) : (last ? OP_ONLY : OP_FIRST);
		want_ext = want_op == OP_MIDDLE ? 0 : 4;
	}
	if (opcode != want_op || plen != want_len ||
	    FIELD_GET(w, 0, pdesc_t, psn) != ((e->rq.psn + q->npk) & PSN_MASK) ||
	    FIELD_GET(w, 0, pdesc_t, ext_len) != want_ext)
		fail_msg("cycle %lu QP %u: opcode %x of %u bytes PSN %lx, should be %x of %u bytes "
			 "PSN %x",
			 b->now, qpn, opcode, plen, FIELD_GET(w, 0, pdesc_t, psn), want_op,
			 want_len, (e->rq.psn + q->npk) & PSN_MASK);
	if (want_ext) {
		assert_int_equal(bits_get(w, pdesc_t_ext_LSB, 8), 0x1f);
		assert_int_equal(bits_get(w, pdesc_t_ext_LSB + 8, 8), e->rq.msn >> 16);
		assert_int_equal(bits_get(w, pdesc_t_ext_LSB + 16, 8), e->rq.msn >> 8 & 0xff);
		assert_int_equal(bits_get(w, pdesc_t_ext_LSB + 24, 8), e->rq.msn & 0xff);
	}
	if (want_ext == 12)
		assert_int_equal(bits_get(w, pdesc_t_ext_LSB + 32, 64),
				 __builtin_bswap64(e->rq.va));
	if (plen) {
		assert_int_equal(FIELD_GET(pi, 0, piece_t, len), plen);
		assert_int_equal(FIELD_GET(pi, piece_t_meta_LSB, piece_meta_t, pkt_len), plen);
		assert_int_equal(FIELD_GET(pi, 0, piece_t, va), e->rq.va + off);
		assert_int_equal(FIELD_GET(pi, 0, piece_t, key), e->rq.key);
		assert_int_equal(FIELD_GET(pi, 0, piece_t, pd), e->rq.pd);
		assert_int_equal(FIELD_GET(pi, 0, piece_t, qpn), qpn);
		assert_int_equal(FIELD_GET(pi, piece_t_meta_LSB, piece_meta_t, kind), 0);
		assert_true(FIELD_GET(pi, 0, piece_t, remote) &&
			    FIELD_GET(pi, piece_t_meta_LSB, piece_meta_t, first) &&
			    FIELD_GET(pi, piece_t_meta_LSB, piece_meta_t, last));
	}
	q->npk++;
	if (last) {
		e->left = true;
		q->held--;
		q->npk = 0;
		skip_left(q);
		prune(q);
	}
	q->last_cycle = b->now;
}

static void check_pd(struct bench *b)
{
	const uint32_t *w = b->dut.pd.m_storage;
	bool fire = b->dut.pd_valid && b->dut.pd_ready,
	     with = b->dut.piece_valid && b->dut.piece_ready;
	unsigned int qpn, plen, opcode, era;
	struct flight f;
	struct qp *q;

	if (b->dut.pd_valid && FIELD_GET(w, 0, pdesc_t, plen))
		assert_true(b->dut.piece_ready);
	if (b->dut.piece_valid)
		assert_true(b->dut.pd_ready);
	if (!fire) {
		assert_false(with);
		return;
	}
	qpn = FIELD_GET(w, 0, pdesc_t, qpn);
	plen = FIELD_GET(w, 0, pdesc_t, plen);
	opcode = FIELD_GET(w, 0, pdesc_t, opcode);
	era = FIELD_GET(w, 0, pdesc_t, era);
	if (with != (plen != 0))
		fail_msg("cycle %lu QP %u: piece and descriptor do not go together", b->now, qpn);
	assert_true(FIELD_GET(w, 0, pdesc_t, resp) && !FIELD_GET(w, 0, pdesc_t, fence) &&
		    !FIELD_GET(w, 0, pdesc_t, eom));
	assert_int_equal(FIELD_GET(w, 0, pdesc_t, status), 0);
	assert_int_equal(FIELD_GET(w, pdesc_t_path_LSB, path_t, dest_qpn), qpn ^ 0xabc);
	assert_int_equal(FIELD_GET(w, pdesc_t_path_LSB, path_t, service), is_xrc(qpn) ? 5 : 0);
	q = &b->qp[qpn];
	f = { b->now + 1 + rnd(b, b->commit_latency),
	      b->seq_in++,
	      qpn,
	      era,
	      (unsigned int)FIELD_GET(w, 0, pdesc_t, psn),
	      (uint32_t)FIELD_GET(b->dut.piece.m_storage, 0, piece_t, key),
	      plen != 0 };
	b->commit.push_back(f);
	b->pds++;
	b->bytes += plen;
	if (qpn != b->turn_qpn) {
		b->turn_qpn = qpn;
		b->turn_bytes = 0;
		if (b->turns.size() < 1000)
			b->turns.push_back(qpn);
	}
	b->turn_bytes += plen;
	if (b->turn_bytes > b->turn_max)
		b->turn_max = b->turn_bytes;
	if (opcode == OP_ACK) {
		b->slow_acks++;
		assert_int_equal(plen, 0);
		assert_int_equal(FIELD_GET(w, 0, pdesc_t, ext_len), 4);
		check_ack(b, qpn, f.psn, w, pdesc_t_ext_LSB, pdesc_t_path_LSB);
		return;
	}
	if (era != q->era) {
		// the rest of a turn that an rfail overtook
		assert_int_equal((era + 1) & 63, q->era);
		return;
	}
	check_entry(b, q, qpn);
}

static void start_life(struct bench *b, unsigned int qpn, const struct request *rq)
{
	struct qp *q = &b->qp[qpn];
	struct event e = { *rq, true, false, false };

	for (uint64_t i = q->base; i < log_end(q); i++)
		q->log[i - q->base].left = true;
	q->log.push_back(e);
	q->held = 0;
	q->npk = 0;
	q->era = (q->era + 1) & 63;
	q->failed = true;
	q->closed = true;
	skip_left(q);
	b->fails++;
}

// Commit: packets leave in order; one with a bad key ends the life of its QP's responses.
static void drive_commit(struct bench *b)
{
	b->dut.resp_gone = 0;
	b->dut.rfail_valid = 0;
	if (b->dut.rst)
		return;
	if (b->commit.empty() || b->commit.front().due > b->now) {
		if (!b->stale.empty() && rnd(b, 8) == 0) {
			struct request rq = b->stale.front();

			b->stale.pop_front();
			b->dut.rfail_valid = 1;
			b->dut.rfail_qpn = rq.qpn;
			b->dut.rfail_era = rq.len;
			b->dut.rfail_psn = rq.psn;
			b->dut.rfail_status = URDMA_WC_REM_ACCESS_ERR;
		}
		return;
	}
	struct flight f = b->commit.front();
	struct qp *q = &b->qp[f.qpn];

	b->commit.pop_front();
	b->seq_out = f.seq + 1;
	b->dut.resp_gone = 1;
	if (q->dead && q->dead_era != f.era)
		q->dead = false;
	if (!f.payload || q->dead || (f.key & 0xfff00000) != bad_key)
		return;
	q->dead = true;
	q->dead_era = f.era;
	b->dut.rfail_valid = 1;
	b->dut.rfail_qpn = f.qpn;
	b->dut.rfail_era = f.era;
	b->dut.rfail_psn = f.psn;
	b->dut.rfail_status = f.key & 1 ? URDMA_WC_REM_OP_ERR : URDMA_WC_REM_ACCESS_ERR;
	if (f.era == q->era) {
		struct request rq = {};

		rq.qpn = f.qpn;
		rq.psn = f.psn;
		rq.syndrome = f.key & 1 ? 0x63 : 0x62;
		start_life(b, f.qpn, &rq);
		q->fail_seq = f.seq;
		q->fail_at = b->now;
		rq.len = f.era;
		if (rnd(b, 2))
			b->stale.push_back(rq);
	}
}

static void drive_cfg(struct bench *b)
{
	uint32_t *w = b->dut.cfg_rsp.m_storage;
	struct qp *q;

	b->dut.cfg_rsp_valid = 0;
	if (b->cfg.empty() || b->cfg.front().first > b->now)
		return;
	q = &b->qp[b->cfg.front().second];
	memset(w, 0, (qp_cfg_t_W + 31) / 32 * 4);
	FIELD_SET(w, 0, qp_cfg_t, valid, q->valid);
	FIELD_SET(w, 0, qp_cfg_t, state, q->state);
	FIELD_SET(w, 0, qp_cfg_t, mtu, q->mtu);
	FIELD_SET(w, 0, qp_cfg_t, pd, q->pd);
	FIELD_SET(w, 0, qp_cfg_t, qp_type,
		  is_xrc(b->cfg.front().second) ? URDMA_QPT_XRC_TGT : URDMA_QPT_RC);
	FIELD_SET(w, 0, qp_cfg_t, dest_qpn, b->cfg.front().second ^ 0xabc);
	FIELD_SET(w, 0, qp_cfg_t, udp_sport, b->cfg.front().second ^ 0x1234);
	q->told_ok = reads_ok(q);
	b->dut.cfg_rsp_valid = 1;
	b->cfg.pop_front();
}

// A QP begins a new life when nothing of it is left.
static void drive_reset(struct bench *b)
{
	b->dut.rst_valid = !b->resets.empty();
	if (b->dut.rst_valid)
		b->dut.rst_qpn = b->resets.front();
}

static void drive_request(struct bench *b)
{
	uint32_t *w = b->dut.ack_req.m_storage;

	b->dut.ack_req_valid = 0;
	if (b->dut.rst || b->todo.empty())
		return;
	if (!b->offering && !chance(b, b->p_req))
		return;
	b->offering = true;
	const struct request *r = &b->todo.front();

	FIELD_SET(w, 0, ack_req_t, len, r->len);
	FIELD_SET(w, 0, ack_req_t, va, r->va);
	FIELD_SET(w, 0, ack_req_t, pd, r->pd);
	FIELD_SET(w, 0, ack_req_t, key, r->key);
	FIELD_SET(w, 0, ack_req_t, msn, r->msn);
	FIELD_SET(w, 0, ack_req_t, syndrome, r->syndrome);
	FIELD_SET(w, 0, ack_req_t, psn, r->psn);
	FIELD_SET(w, 0, ack_req_t, qpn, r->qpn);
	FIELD_SET(w, 0, ack_req_t, kind, r->kind);
	FIELD_SET(w, 0, ack_req_t, dup, r->dup);
	b->dut.ack_req_valid = 1;
}

// Answers keep the order of their requests: until a new READ or ATOMIC that was dropped is asked
// for again, what is behind it has none, but for a NAK that ends the QP.
static bool is_behind(const struct qp *q, const struct request *r)
{
	return q->lost && r->psn != q->lost_rq.psn && not_before(r->psn, q->lost_rq.psn) &&
	       !(r->kind == RSP_ACK && is_end(r->syndrome));
}

static void take_request(struct bench *b)
{
	struct request r = b->todo.front();
	struct qp *q = &b->qp[r.qpn];
	struct event e = { r, false, false, false };

	b->todo.pop_front();
	b->offering = false;
	b->last_qpn = r.qpn;
	b->last_psn = r.psn;
	b->last_ask = r.kind != RSP_ACK;
	b->last_ended = q->closed || q->cut;
	b->last_entry = b->last_ask && !b->last_ended;
	b->last_behind = is_behind(q, &r);
	b->taken++;
	if (q->closed || q->cut) {
		b->refused++;
		return;
	}
	if (b->last_behind) {
		b->behind++;
		if (r.kind == RSP_ACK)
			return;
	}
	q->log.push_back(e);
	if (b->last_entry)
		q->held++;
	else if (is_end(r.syndrome)) {
		q->closed = true;
		q->ending = reads_ok(q);
		b->ends++;
		if (q->ending && b->err_latency)
			b->erring.push_back({ b->now + 1 + rnd(b, b->err_latency), r.qpn });
	}
}

// One cycle after a READ or ATOMIC was taken the lane tells what becomes of it.
static void check_lane(struct bench *b)
{
	uint64_t lane = b->dut.trace_ask, verdict = FIELD_OF(lane, tr_ask_t, verdict);
	const struct qp *q = &b->qp[b->last_qpn];

	assert_int_equal(b->dut.trace_ask_valid, b->last_ask);
	if (!b->last_ask)
		return;
	assert_int_equal(FIELD_OF(lane, tr_ask_t, qpn), b->last_qpn);
	assert_int_equal(FIELD_OF(lane, tr_ask_t, psn), b->last_psn);
	assert_int_equal(verdict == TRA_FULL, b->dut.cnt_read_drop);
	// a QP whose state has changed, or whose READ has failed, may have ended meanwhile
	if (verdict == TRA_ENDED ? !b->last_ended && reads_ok(q) && !q->failed : b->last_ended)
		fail_msg("cycle %lu QP %u: the lane has verdict %lu", b->now, b->last_qpn, verdict);
	b->ended += verdict == TRA_ENDED;
}

// One cycle after a READ or ATOMIC was taken the counter says whether there was room.
static void check_drop(struct bench *b)
{
	struct qp *q = &b->qp[b->last_qpn];

	check_lane(b);

	if (!b->last_entry) {
		assert_int_equal(b->dut.cnt_read_drop, 0);
		return;
	}
	// What is behind a lost one has no answer. It is not counted if the QP has ended, which may
	// be seen here only later.
	if (b->dut.cnt_read_drop || b->last_behind) {
		// a rfail may stand behind it
		for (uint64_t i = log_end(q); i-- > q->base;) {
			struct event *e = &q->log[i - q->base];

			if (e->fail)
				continue;
			e->dropped = true;
			if (!q->lost && !e->rq.dup) {
				q->lost = true;
				q->lost_rq = e->rq;
			}
			break;
		}
		if (q->held)
			q->held--;
		b->drops += b->dut.cnt_read_drop;
	} else if (q->lost && b->last_psn == q->lost_rq.psn) {
		q->lost = false;
		b->again++;
	} else if (q->held > RING + 1 && reads_ok(q)) {
		// one that has left the ring may wait to be taken
		fail_msg("cycle %lu QP %u: %u READs taken", b->now, b->last_qpn, q->held);
	}
	b->last_entry = false;
}

static void check_fence(struct bench *b)
{
	if (b->fence_want && b->dut.fence_hit && !b->fencing && !b->dut.rst) {
		b->dut.fence_start = 1;
		return;
	}
	b->dut.fence_start = 0;
	if (!b->fencing || b->now < b->fence_since + 2)
		return;
	if (!b->dut.fence_hit) {
		if (b->now > b->fence_since + 2000000)
			fail_msg("fence takes more than %lu cycles", b->now - b->fence_since);
		return;
	}
	b->fencing = false;
	b->fences++;
	if (!b->commit.empty() && b->commit.front().seq < b->fence_seq)
		fail_msg("cycle %lu: fence passed with packets in commit", b->now);
	for (unsigned int n = 0; n < QPS; n++) {
		struct qp *q = &b->qp[n];
		bool ok = !acks_ok(q) || cut_at(q) < log_end(q);

		q->told_ok = q->told_ok && reads_ok(q);
		// READs are not waited for, nor is an acknowledgement behind them
		for (uint64_t i = q->base; i < log_end(q); i++) {
			struct event *e = &q->log[i - q->base];

			ok |= !e->fail && e->rq.kind != RSP_ACK;
		}
		// what failed as the fence came through may be of after it
		if (q->failed && (q->fail_seq < b->fence_seq || q->fail_at + 4 < b->now))
			fail_msg("cycle %lu QP %u: fence passed a NAK", b->now, n);
		for (uint64_t s : q->moments) {
			for (uint64_t k = q->fence_at; k <= log_end(q) && !ok; k++)
				ok = s >= q->fence_at || !run(q, s, k).on;
		}
		if (!ok)
			fail_msg("cycle %lu QP %u: fence passed an acknowledgement", b->now, n);
	}
}

static void check_err(struct bench *b)
{
	if (!b->dut.err_valid || !b->dut.err_ready)
		return;
	if (b->errs.empty()) {
		// the NAK may wait to be taken by the pipeline
		struct qp *q = &b->qp[b->dut.err >> 9];

		if (!q->failed || q->early_err)
			fail_msg("cycle %lu: error of QP %u without NAK", b->now, b->dut.err >> 9);
		q->early_err = b->dut.err & 0x1ff;
		return;
	}
	assert_int_equal(b->dut.err >> 9, b->errs.front().first);
	assert_int_equal(b->dut.err & 0x1ff, b->errs.front().second);
	b->errs.pop_front();
}

static void cycle(struct bench *b)
{
	Vurdma_tx_resp *d = &b->dut;
	struct qp *q;

	for (size_t n = b->erring.size(); n--;) {
		std::pair<uint64_t, unsigned int> e = b->erring.front();

		b->erring.pop_front();
		if (e.first <= b->now)
			b->qp[e.second].state = URDMA_QPS_ERR;
		else
			b->erring.push_back(e);
	}
	drive_request(b);
	drive_reset(b);
	drive_cfg(b);
	drive_commit(b);
	d->cfg_req_ready = chance(b, b->p_cfg);
	d->pd_ready = chance(b, b->p_pd) && b->commit.size() < 250;
	d->piece_ready = chance(b, b->p_piece);
	d->pkt_ready = chance(b, b->p_pkt);
	d->err_ready = chance(b, b->p_err);
	bench_settle(*d);
	check_fence(b);
	d->eval();

	if (!d->rst) {
		check_drop(b);
		if (d->fence_start) {
			b->fencing = true;
			b->fence_want = false;
			b->fence_since = b->now;
		}
		if (d->rst_valid && d->rst_ready) {
			q = &b->qp[b->resets.front()];
			if (q->ending)
				q->state = q->home;
			q->closed = q->cut = q->lost = q->ending = false;
			b->resets.pop_front();
		}
		if (d->ack_req_valid && d->ack_req_ready) {
			take_request(b);
		} else {
			b->last_ask = b->last_entry = false;
		}
		if (d->fence_start) {
			// what is offered in this cycle may count either way
			b->fence_seq = b->seq_in;
			for (unsigned int n = 0; n < QPS; n++)
				b->qp[n].fence_at = log_end(&b->qp[n]);
		}
		check_pkt(b);
		check_pd(b);
		check_err(b);
		if (d->cfg_req_valid && d->cfg_req_ready) {
			uint64_t due = b->now + b->cfg_latency +
				       (b->cfg_latency > 4 ? rnd(b, b->cfg_latency) : 0);

			if (!b->cfg.empty() && due <= b->cfg.back().first)
				due = b->cfg.back().first + 1;
			b->cfg.push_back({ due, d->cfg_req_qpn });
		}
	}
	bench_edge(*d);
	b->now++;
}

static void easy(struct bench *b)
{
	b->p_req = b->p_pd = b->p_piece = b->p_pkt = b->p_cfg = b->p_err = 16;
	b->cfg_latency = 3;
	b->commit_latency = 1;
}

static struct bench *start(uint64_t seed)
{
	struct bench *b = new bench();

	print_message("seed %lu\n", seed);
	b->seed = test_seed(seed);
	b->turn_qpn = QPS;
	easy(b);
	for (unsigned int n = 0; n < QPS; n++) {
		struct qp *q = &b->qp[n];

		q->valid = true;
		q->state = q->home = URDMA_QPS_RTS;
		q->mtu = 1 + n % 5;
		q->pd = n ^ 0x55;
		q->epsn = (0xffff00 + n * 7) & PSN_MASK;
		q->moments.push_back(0);
	}
	b->dut.rst = 1;
	for (int i = 0; i < 4; i++)
		cycle(b);
	b->dut.rst = 0;
	while (!b->dut.init_done)
		cycle(b);
	return b;
}

// All has been sent that should be.
// Nothing comes any more of what was asked of the QP.
static void forget(struct qp *q)
{
	q->base = log_end(q);
	q->log.clear();
	q->next = q->base;
	q->moments.assign(1, q->base);
	q->held = q->npk = 0;
}

static void drain(struct bench *b)
{
	uint64_t since = b->now;

	for (int idle = 0; idle < 20;) {
		cycle(b);
		idle = b->dut.busy || !b->todo.empty() || !b->commit.empty() ||
				       !b->resets.empty() || !b->erring.empty()
			       ? 0
			       : idle + 1;
		if (b->now > since + 5000000)
			fail_msg("still busy after %lu cycles", b->now - since);
	}
	if (!b->errs.empty())
		fail_msg("error of QP %u not reported", b->errs.front().first);
	assert_int_equal(b->dut.fence_hit, 1);
	for (unsigned int n = 0; n < QPS; n++) {
		struct qp *q = &b->qp[n];
		bool ok = !acks_ok(q) || cut_at(q) < log_end(q);

		q->cut = q->cut || cut_at(q) < log_end(q);
		skip_left(q);
		if (answers(q) && q->next != log_end(q))
			fail_msg("QP %u: a READ or ATOMIC has no answer", n);
		for (uint64_t s : q->moments)
			ok = ok || !run(q, s, log_end(q)).on;
		if (!ok)
			fail_msg("QP %u: an acknowledgement is lost", n);
		if (q->failed)
			fail_msg("QP %u: the NAK of a failure is lost", n);
		forget(q);
	}
}

static struct request request(struct bench *b, unsigned int kind, unsigned int qpn, uint32_t len)
{
	struct qp *q = &b->qp[qpn];
	struct request r = {};
	unsigned int m = mtu_bytes(q);

	r.kind = kind;
	r.qpn = qpn;
	r.msn = b->msn++ & 0xffffff;
	r.psn = q->epsn;
	r.syndrome = 0x1f;
	r.pd = is_xrc(qpn) ? rnd(b, 1 << PD_W) : q->pd;
	r.key = rnd(b, 1u << 30);
	r.va = rnd_next(&b->seed);
	r.len = len;
	if (kind == RSP_ACK)
		r.psn = (q->epsn - 1) & PSN_MASK;
	else if (kind == RSP_READ && len)
		q->epsn = (q->epsn + (len + m - 1) / m) & PSN_MASK;
	else
		q->epsn = (q->epsn + 1) & PSN_MASK;
	return r;
}

static struct request random_request(struct bench *b, unsigned int qpn, bool failures)
{
	struct qp *q = &b->qp[qpn];
	unsigned int m = mtu_bytes(q);
	struct request r;
	uint32_t len = 0;

	// one that was dropped is asked for again
	if (q->lost && rnd(b, 3) == 0) {
		r = q->lost_rq;
		r.dup = true;
		return r;
	}
	switch (rnd(b, 12)) {
	case 0:
		return request(b, RSP_ATOMIC, qpn, 0);
	case 1:
	case 2:
	case 3: // a SEND was taken
		q->epsn = (q->epsn + 1 + rnd(b, 4)) & PSN_MASK;
		return request(b, RSP_ACK, qpn, 0);
	case 4: // a duplicate
		return request(b, RSP_ACK, qpn, 0);
	case 5: // a gap, or no receive WQE
		r = request(b, RSP_ACK, qpn, 0);
		r.psn = q->epsn;
		r.syndrome = rnd(b, 2) ? 0x60 : 0x20 | rnd(b, 32);
		if (failures && rnd(b, 20) == 0)
			r.syndrome = 0x61 + rnd(b, 3);
		return r;
	case 6: // READ that comes again
		len = rnd(b, 3 * m);
		r = request(b, RSP_READ, qpn, len);
		r.dup = true;
		q->epsn = r.psn;
		r.psn = (r.psn - 3 - rnd(b, 100)) & PSN_MASK;
		return r;
	case 7:
		len = rnd(b, 16) ? rnd(b, 10000) : rnd(b, 150000);
		break;
	default:
		len = rnd(b, 4) * m;
		if (rnd(b, 2))
			len += rnd(b, 3) - 1;
		if (len > 1u << 30)
			len = rnd(b, 64);
	}
	r = request(b, RSP_READ, qpn, len);
	if (failures && rnd(b, 120) == 0)
		r.key = bad_key | rnd(b, 2);
	return r;
}

static void random_knobs(struct bench *b)
{
	easy(b);
	if (rnd(b, 4)) {
		b->p_req = 1 + rnd(b, 16);
		b->p_pd = 1 + rnd(b, 16);
		b->p_piece = 1 + rnd(b, 16);
		b->p_pkt = 1 + rnd(b, 16);
		b->p_cfg = 1 + rnd(b, 16);
		b->p_err = 1 + rnd(b, 16);
	}
	b->cfg_latency = 1 + rnd(b, 2) * rnd(b, 60);
	b->commit_latency = 1 + rnd(b, 2) * rnd(b, 300);
	b->err_latency = rnd(b, 3) * rnd(b, 40);
}

static void random_run(uint64_t seed, bool failures)
{
	static const unsigned int states[] = { URDMA_QPS_RTR, URDMA_QPS_RTS, URDMA_QPS_RTS,
					       URDMA_QPS_RTS, URDMA_QPS_SQD, URDMA_QPS_SQE,
					       URDMA_QPS_ERR, URDMA_QPS_INIT };
	struct bench *b = start(seed);

	for (unsigned int n = 0; n < QPS; n++) {
		b->qp[n].state = b->qp[n].home = n < 4 ? URDMA_QPS_RTS : states[n % 8];
		b->qp[n].valid = n % 13 != 12;
	}
	// on until what is rare has come often enough
	for (int round = 0; round < 60 || (b->again <= 10 && round < 600); round++) {
		unsigned int qps = rnd(b, 3) == 0 ? 1 + rnd(b, 4) : rnd(b, 2) ? 16 : QPS;
		unsigned int count = 100 + rnd(b, 1200);

		random_knobs(b);
		while (count || !b->todo.empty()) {
			if (b->todo.empty()) {
				b->todo.push_back(random_request(b, rnd(b, qps), failures));
				count--;
			}
			if (rnd(b, 200) == 0)
				b->fence_want = true;
			cycle(b);
		}
		if (!failures && rnd(b, 2))
			continue;
		drain(b);
		for (unsigned int n = 0; n < QPS; n++)
			if (b->qp[n].closed)
				b->resets.push_back(n);
		if (rnd(b, 2))
			drain(b);
		else // beside the requests of other QPs
			while (b->resets.size() > 1)
				cycle(b);
	}
	drain(b);
	print_message("%lu requests, %lu packets, %lu + %lu acknowledgements (%lu NAKs), %lu "
		      "dropped, %lu failed, %lu ended, %lu not taken any more, %lu fences\n",
		      b->taken, b->pds, b->pkts, b->slow_acks, b->naks, b->drops, b->fails, b->ends,
		      b->refused, b->fences);
	print_message("%lu behind one that was dropped, %lu asked for again\n", b->behind,
		      b->again);
	assert_true(b->pkts > 100 && b->slow_acks > 100 && b->drops > 10 && b->fences > 10 &&
		    b->naks > 100 && b->behind > 10 && b->again > 10);
	assert_true(!failures || (b->fails > 20 && b->ends > 20 && b->refused > 100));
	delete b;
}

// URDMA_TEST_RUNS=n for a longer hunt
static uint64_t runs(void)
{
	const char *s = getenv("URDMA_TEST_RUNS");

	return s ? strtoul(s, NULL, 0) : 3;
}

static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= runs(); seed++)
		random_run(seed * 7919, false);
}

static void test_random_failures(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= runs(); seed++)
		random_run(seed * 104729, true);
}

// Every length around the borders of packets, each MTU, across the end of the PSNs and across a
// quantum.
static void test_lengths(void **state)
{
	struct bench *b = start(11);

	(void)state;
	for (unsigned int n = 0; n < 5; n++) {
		unsigned int m = mtu_bytes(&b->qp[n]);

		for (unsigned int k = 0; k < 4; k++) {
			for (int d = -2; d <= 2; d++) {
				if ((int)(k * m) + d < 0)
					continue;
				b->qp[n].epsn = (PSN_MASK - k) & PSN_MASK;
				b->todo.push_back(request(b, RSP_READ, n, k * m + d));
				drain(b);
			}
		}
		for (int d = -1; d <= 1; d++) {
			b->todo.push_back(request(b, RSP_READ, n, QUANTUM + d));
			b->todo.push_back(request(b, RSP_READ, n, 3 * QUANTUM + d * (int)m));
			drain(b);
		}
	}
	delete b;
}

// With nothing leaving, exactly two generations find room, and the rest is counted.
static void test_ring_full(void **state)
{
	struct bench *b = start(12);

	(void)state;
	b->p_pd = 0;
	for (unsigned int i = 0; i < 80; i++)
		b->todo.push_back(request(b, i % 3 ? RSP_READ : RSP_ATOMIC, 5, 100));
	for (int i = 0; i < 300; i++)
		cycle(b);
	assert_true(b->todo.empty()); // requests wait for nobody
	assert_int_equal(b->drops, 80 - RING);
	b->p_pd = 16;
	drain(b);
	assert_int_equal(b->pds, RING);
	delete b;
}

// A third time while all of these wait, with new ones behind: the new ones find no room, and what
// is behind the first of them goes after it, when that has been asked for again.
static void test_lost(void **state)
{
	struct bench *b = start(19);
	struct request r, first[2];
	uint64_t pds;

	(void)state;
	b->p_pd = b->p_pkt = 0;
	for (unsigned int i = 0; i < OUTSTANDING; i++)
		b->todo.push_back(request(b, RSP_READ, 5, 300));
	for (unsigned int i = 0; i < 2 * OUTSTANDING; i++) {
		r = b->todo[i % OUTSTANDING];
		r.dup = true;
		b->todo.push_back(r);
	}
	for (unsigned int i = 0; i < 2; i++) {
		first[i] = request(b, i ? RSP_ATOMIC : RSP_READ, 5, 300);
		b->todo.push_back(first[i]);
	}
	for (int i = 0; i < 300; i++)
		cycle(b);
	assert_int_equal(b->drops, OUTSTANDING + 2);
	assert_true(b->qp[5].lost && b->qp[5].lost_rq.psn == first[0].psn);
	b->p_pd = b->p_pkt = 16;
	drain(b);
	// There is room now, and still nothing goes: READ, ATOMIC, ACK, NAK for a gap.
	pds = b->pds;
	b->todo.push_back(request(b, RSP_READ, 5, 300));
	b->todo.push_back(request(b, RSP_ATOMIC, 5, 0));
	b->qp[5].epsn++;
	b->todo.push_back(request(b, RSP_ACK, 5, 0));
	r = request(b, RSP_ACK, 5, 0);
	r.psn = b->qp[5].epsn;
	r.syndrome = 0x60;
	b->todo.push_back(r);
	first[1].dup = true;
	b->todo.push_back(first[1]);
	drain(b);
	assert_true(b->pds == pds && !b->pkts);
	// what is before it is answered
	r = first[0];
	r.psn = (r.psn - 40) & PSN_MASK;
	r.dup = true;
	b->todo.push_back(r);
	drain(b);
	assert_true(b->pds > pds);
	pds = b->pds;
	first[0].dup = true;
	b->todo.push_back(first[0]);
	b->todo.push_back(first[1]);
	b->todo.push_back(request(b, RSP_ACK, 5, 0));
	drain(b);
	assert_true(b->pds > pds && !b->qp[5].lost);
	assert_int_equal(b->pkts + b->slow_acks, 1);

	// A NAK that ends the QP goes, and the next life knows nothing of it.
	b->p_pd = b->p_pkt = 0;
	for (unsigned int i = 0; i < RING + 1; i++)
		b->todo.push_back(request(b, RSP_READ, 6, 0));
	r = request(b, RSP_ACK, 6, 0);
	r.syndrome = 0x61;
	b->todo.push_back(r);
	for (int i = 0; i < 300; i++)
		cycle(b);
	assert_true(b->qp[6].lost);
	b->p_pd = b->p_pkt = 16;
	drain(b);
	assert_int_equal(b->naks, 1);
	b->resets.push_back(6);
	drain(b);
	b->todo.push_back(request(b, RSP_READ, 6, 0));
	pds = b->pds;
	drain(b);
	assert_int_equal(b->pds, pds + 1);
	delete b;
}

// All that may be outstanding waits and is asked for again, and a new one comes behind as each is
// answered: none is dropped, none is passed over.
static void test_again(void **state)
{
	struct bench *b = start(17);
	std::vector<struct request> first;

	(void)state;
	for (unsigned int qpn = 5; qpn < 10; qpn++) {
		first.clear();
		b->p_pd = 0;
		b->drops = 0;
		for (unsigned int i = 0; i < OUTSTANDING; i++) {
			first.push_back(request(b, i % 3 ? RSP_READ : RSP_ATOMIC, qpn, 3000));
			b->todo.push_back(first.back());
		}
		for (unsigned int k = qpn - 5; k < OUTSTANDING; k++)
			b->todo.push_back(first[k]);
		for (unsigned int k = 0; k < qpn - 5; k++)
			b->todo.push_back(request(b, RSP_READ, qpn, 3000));
		for (int i = 0; i < 300; i++)
			cycle(b);
		assert_true(b->todo.empty());
		assert_int_equal(b->drops, 0);
		b->p_pd = 16;
		drain(b);
	}
	delete b;
}

// Of a QP that is being reset nothing is sent, and nothing is left for its next life.
static void test_dead(void **state)
{
	struct bench *b = start(13);
	uint64_t pds;

	(void)state;
	b->p_pd = b->p_pkt = 0;
	b->todo.push_back(request(b, RSP_READ, 1, 8 * QUANTUM));
	for (unsigned int n = 2; n < 200; n++) {
		b->todo.push_back(request(b, RSP_READ, n, 1000));
		b->todo.push_back(request(b, RSP_ACK, n, 0));
	}
	for (int i = 0; i < 2000; i++)
		cycle(b);
	for (unsigned int n = 60; n < 200; n++)
		b->qp[n].state = n & 1 ? URDMA_QPS_RESET : URDMA_QPS_ERR;
	b->fence_want = true;
	b->p_pd = b->p_pkt = 16;
	drain(b);
	assert_int_equal(b->fences, 1);
	pds = b->pds;
	for (unsigned int n = 60; n < 200; n++)
		b->resets.push_back(n);
	drain(b);
	for (unsigned int n = 60; n < 200; n++) {
		b->qp[n].state = URDMA_QPS_RTR;
		b->todo.push_back(request(b, RSP_READ, n, 0));
	}
	drain(b);
	assert_int_equal(b->pds - pds, 140);
	delete b;
}

// A fence beside READs that take long does not wait for them, and nothing is left of a QP that has
// ended with as many.
static void test_long_reads(void **state)
{
	enum { FIRST = 1, READERS = 12 };
	struct bench *b = start(29);
	unsigned int victim = 0;
	uint64_t before;

	(void)state;
	for (unsigned int qpn = FIRST; qpn < FIRST + READERS; qpn++)
		for (unsigned int i = 0; i < RING; i++)
			b->todo.push_back(request(b, RSP_READ, qpn, 1u << 22));
	for (int i = 0; i < 2000; i++)
		cycle(b);
	assert_true(b->todo.empty());
	for (unsigned int fence = 1; fence <= 20; fence++) {
		if (fence == 10) {
			// in the middle of its turn
			b->p_pd = 0;
			for (int i = 0; i < 100; i++)
				cycle(b);
			victim = b->turns.back();
			b->qp[victim].state = URDMA_QPS_RESET;
			b->p_pd = 16;
		}
		b->fence_want = true;
		before = b->bytes;
		for (int i = 0; i < 100000 && b->fences < fence; i++)
			cycle(b);
		assert_int_equal(b->fences, fence);
		assert_true(b->bytes - before <= READERS * 4 * (QUANTUM + 4096));
	}
	b->resets.push_back(victim);
	for (int i = 0; i < 100; i++)
		cycle(b);
	forget(&b->qp[victim]);
	b->qp[victim].state = URDMA_QPS_RTR;
	before = b->qp[victim].acks;
	b->todo.push_back(request(b, RSP_ACK, victim, 0));
	for (int i = 0; i < 20000 && b->qp[victim].acks == before; i++)
		cycle(b);
	assert_int_equal(b->qp[victim].acks, before + 1);
	delete b;
}

// A NAK that ends the QP waits for the READs before it, whenever the QP goes to ERR behind it:
// before their turn, with the turn's configuration asked for, or between two turns.
static void test_closing(void **state)
{
	struct bench *b = start(21);
	uint64_t pds;
	unsigned int want;

	(void)state;
	for (unsigned int delay = 0; delay < 60; delay++) {
		unsigned int qpn = 5 + delay % 7;
		struct qp *q = &b->qp[qpn];
		struct request r;

		b->cfg_latency = 1 + delay % 5 * 8;
		b->p_pd = delay % 3 ? 16 : 4;
		pds = b->pds;
		want = 0;
		for (unsigned int i = 0; i < 1 + delay % 4; i++) {
			uint32_t len = i == 2 ? 3 * QUANTUM : 100 + 3000 * (delay % 2);

			b->todo.push_back(request(b, i == 1 ? RSP_ATOMIC : RSP_READ, qpn, len));
			want += i == 1 ? 1 : (len + mtu_bytes(q) - 1) / mtu_bytes(q);
		}
		r = request(b, RSP_ACK, qpn, 0);
		r.psn = q->epsn;
		r.syndrome = 0x61 + delay % 3;
		b->todo.push_back(r);
		while (!q->ending)
			cycle(b);
		for (unsigned int i = 0; i < delay; i++)
			cycle(b);
		q->state = URDMA_QPS_ERR;
		drain(b);
		assert_int_equal(b->naks, delay + 1);
		assert_in_range(b->pds - pds, want, want + 1); // the NAK may be among them
		b->resets.push_back(qpn);
		drain(b);
		assert_int_equal(q->state, URDMA_QPS_RTS);
	}
	delete b;
}

// Long READs of several QPs take turns, and an acknowledgement waits for a round at most.
static void test_fair(void **state)
{
	struct bench *b = start(14);
	uint64_t since;

	(void)state;
	for (unsigned int n = 0; n < 5; n++)
		b->todo.push_back(request(b, RSP_READ, n, 20 * QUANTUM));
	for (int i = 0; i < 500; i++)
		cycle(b);
	b->turns.clear();
	b->todo.push_back(request(b, RSP_ACK, 100, 0));
	since = b->bytes;
	while (!b->qp[100].acks)
		cycle(b);
	print_message("an acknowledgement waits for %lu bytes, a turn is %lu bytes at most\n",
		      b->bytes - since, b->turn_max);
	assert_true(b->bytes - since <= 6 * (QUANTUM + 4096));
	while (b->turns.size() < 30)
		cycle(b);
	for (unsigned int i = 10; i < 25; i++)
		assert_int_equal(b->turns[i], b->turns[i + 5]);
	drain(b);
	assert_true(b->turn_max < QUANTUM + 4096 || b->bytes < 6 * QUANTUM);
	delete b;
}

// The NAK of a failure goes in any state but a dead one.
static void test_fail(void **state)
{
	struct bench *b = start(15);
	struct request r;

	(void)state;
	r = request(b, RSP_READ, 3, 5000);
	r.key = bad_key;
	b->todo.push_back(r);
	b->todo.push_back(request(b, RSP_READ, 3, 5000));
	while (!b->fails) {
		if (b->pds)
			b->p_cfg = 0;
		cycle(b);
	}
	b->qp[3].state = URDMA_QPS_ERR;
	b->todo.push_back(request(b, RSP_ACK, 3, 0));
	b->todo.push_back(request(b, RSP_READ, 3, 100));
	b->todo.push_back(request(b, RSP_ACK, 3, 0));
	for (int i = 0; i < 200; i++)
		cycle(b);
	assert_true(b->todo.empty());
	b->p_cfg = 16;
	drain(b);
	assert_int_equal(b->naks, 1);
	assert_int_equal(b->qp[3].acks, 1);
	delete b;
}

// Behind a NAK that ends the QP nothing is sent, whoever made it, until the QP's next life: what
// was taken before is answered first, what comes behind is forgotten.
static void test_closed(void **state)
{
	(void)state;
	for (unsigned int syndrome = 0x61; syndrome < 0x66; syndrome++) {
		struct bench *b = start(18 + syndrome);
		bool refused = syndrome > 0x63; // a READ by tx, else what rx says
		struct request r;
		uint64_t pds;

		print_message("NAK %x\n", refused ? syndrome - 2 : syndrome);
		for (unsigned int qpn = 0; qpn < 8; qpn++) {
			b->p_pd = b->p_pkt = 0;
			b->naks = b->errs.size();
			pds = b->pds;
			b->todo.push_back(request(b, RSP_READ, qpn, 100));
			if (refused) {
				r = request(b, RSP_READ, qpn, 100);
				r.key = bad_key | (syndrome & 1);
				b->todo.push_back(r);
			} else {
				r = request(b, RSP_ACK, qpn, 0);
				if (qpn & 1) {
					r.syndrome = qpn & 2 ? 0x60 : 0x25;
					b->todo.push_back(r);
				} else if (qpn & 2) {
					b->todo.push_back(r);
				}
				r.syndrome = syndrome;
				b->todo.push_back(r);
			}
			// in rx already
			for (int i = 0; i < 3; i++) {
				b->todo.push_back(request(b, RSP_ACK, qpn, 0));
				b->todo.push_back(request(b, RSP_READ, qpn, 100));
			}
			for (int i = 0; i < 100; i++)
				cycle(b);
			b->p_pd = b->p_pkt = 16;
			drain(b);
			assert_int_equal(b->naks, 1);
			assert_true(b->qp[qpn].closed);
			pds = b->pds - pds;
			// later ones, with the QP in ERR or not yet
			if (qpn & 4)
				b->qp[qpn].state = URDMA_QPS_ERR;
			b->todo.push_back(request(b, RSP_ACK, qpn, 0));
			b->todo.push_back(request(b, RSP_READ, qpn, 100));
			b->todo.push_back(request(b, RSP_ATOMIC, qpn, 0));
			drain(b);
			assert_int_equal(b->naks, 1);
			assert_int_equal(b->qp[qpn].acks, 1);
			// one READ, its slow NAK; of what waited behind a READ that fails, what
			// commit drops
			assert_in_range(pds, 1, refused ? 6 : 2);
			b->resets.push_back(qpn);
			drain(b);
			b->qp[qpn].state = URDMA_QPS_RTR;
			b->todo.push_back(request(b, RSP_READ, qpn, 100));
			b->todo.push_back(request(b, RSP_ACK, qpn, 0));
			pds = b->pds;
			drain(b);
			assert_in_range(b->pds - pds, 1, 2);
			assert_int_equal(b->qp[qpn].acks, 2);
		}
		delete b;
	}
}

static double rate(struct bench *b, unsigned int qps, uint32_t len, uint64_t packets)
{
	uint64_t since = 0, from = 0, n = 0;

	b->turns.clear();
	while (b->pds < from + packets || !since) {
		if (b->todo.empty() && b->qp[n % qps].held < OUTSTANDING) {
			b->todo.push_back(request(b, RSP_READ, n % qps, len));
			n++;
		} else if (b->todo.empty()) {
			n++;
		}
		cycle(b);
		if (!since && b->taken > 200) {
			since = b->now;
			from = b->pds;
		}
	}
	return (double)(b->now - since) / (b->pds - from);
}

static void test_rates(void **state)
{
	struct bench *b = start(16);
	uint64_t since;
	double r;

	(void)state;
	// an acknowledgement, nothing else under way
	b->todo.push_back(request(b, RSP_ACK, 9, 0));
	since = b->now;
	while (!b->pkts)
		cycle(b);
	print_message("acknowledgement: %lu cycles with a configuration read of 3\n",
		      b->now - since);
	assert_true(b->now - since <= 10);
	drain(b);

	since = b->now;
	for (unsigned int n = 0; n < 1000; n++)
		b->todo.push_back(request(b, RSP_ACK, n, 0));
	while (b->pkts < 1001)
		cycle(b);
	r = (b->now - since) / 1000.0;
	print_message("acknowledgements of many QPs: %.2f cycles each\n", r);
	assert_true(r <= 2.5);
	drain(b);

	b->commit_latency = 200;
	b->qp[0].mtu = 3;
	since = b->now;
	b->todo.push_back(request(b, RSP_READ, 0, 4 << 20));
	b->pds = 0;
	while (b->pds < 4096)
		cycle(b);
	r = (b->now - since) / 4096.0;
	print_message("packets of a long READ: %.2f cycles each\n", r);
	assert_true(r <= 2);
	drain(b);

	b->commit_latency = 1;
	for (unsigned int qps = 1; qps <= 4096; qps *= 8) {
		b->taken = 0;
		b->pds = 0;
		r = rate(b, qps, 64, 4000);
		print_message("READs of 64 bytes over %u QPs: %.2f cycles each\n", qps, r);
		assert_true(r <= 4);
		drain(b);
	}
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_ring_full),
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_closed),
		cmocka_unit_test(test_dead),
		cmocka_unit_test(test_long_reads),
		cmocka_unit_test(test_closing),
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_random_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
