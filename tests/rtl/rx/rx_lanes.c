// SPDX-License-Identifier: Apache-2.0
#include "rx_lanes.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "opcode_rules.h"
#include "rtl/bits.h"

/* of urdma_rx_place, behind its decision */
#define PUT_STAGES 3

#define LANE(lane, member) ((uint32_t)FIELD_GET(o->trace_##lane.w, 0, tr_##lane##_t, member))

static void put(struct lane_queue *q, const struct lane_packet *p)
{
	if (q->head == q->tail)
		q->head = q->tail = 0;
	if (q->tail == q->size) {
		q->size = q->size ? 2 * q->size : 16;
		q->p = realloc(q->p, q->size * sizeof(*q->p));
		assert_non_null(q->p);
	}
	q->p[q->tail++] = *p;
}

static struct lane_packet *head(struct lane_queue *q)
{
	return q->head == q->tail ? NULL : &q->p[q->head];
}

/* By opcode; XRC has those of RC. */
static bool is_ack(uint8_t opcode)
{
	return opcode == 0x11 || opcode == 0xb1;
}

static bool is_response(uint8_t opcode)
{
	uint8_t transport = opcode >> 5, op = opcode & 0x1f;

	return (transport == OPC_T_RC || opcode >> 5 == 5) &&
	       ((op >= 0x0d && op <= 0x10) || op == 0x12);
}

static bool is_read(uint8_t opcode)
{
	uint8_t op = opcode & 0x1f;

	return op == 0x0c || op == 0x13 || op == 0x14 || op == 0x1c || op == 0x1d;
}

static bool is_unrel(uint8_t opcode)
{
	return opcode >> 5 == 1 || opcode >> 5 == 3; /* UC, UD */
}

static bool is_atomic(uint8_t opcode)
{
	uint8_t op = opcode & 0x1f;

	return op == 0x13 || op == 0x14 || op == 0x1c;
}

void lanes_frame(struct lanes *l, const struct frame *f)
{
	size_t ip = f->b[12] == 0x81 ? 18 : 14, bth = ip + (f->b[ip] >> 4 == 4 ? 20 : 40) + 8;
	const uint8_t *p = f->b + bth;
	struct lane_packet k = { .group = f->b[0] & 1 };

	if (bth + 16 > f->len)
		return;
	k.opcode = p[0];
	k.qpn = p[5] << 16 | p[6] << 8 | p[7];
	k.psn = p[9] << 16 | p[10] << 8 | p[11];
	if (is_ack(k.opcode) || (is_response(k.opcode) && (k.opcode & 0x1f) != 0x0e))
		k.syndrome = p[12];
	put(&l->frames, &k);
}

/* Frames that are no packets, or broken, are left out. */
static void lane_in(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	struct lane_packet *k;

	while ((k = head(&l->frames))) {
		l->frames.head++;
		if (k->qpn == LANE(in, qpn) && k->psn == LANE(in, psn) &&
		    k->opcode == LANE(in, opcode))
			break;
	}
	if (!k)
		fail_msg("cycle %" PRIu64 ": a packet to QP %x, PSN %06x, opcode %02x was not sent",
			 cycle, LANE(in, qpn), LANE(in, psn), LANE(in, opcode));
	if (LANE(in, full)) {
		l->full++;
		return;
	}
	l->in++;
	if (is_ack(k->opcode) || is_response(k->opcode))
		put(&l->answers, k);
	else
		put(&l->requests, k);
}

static void lane_bad(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	uint32_t why = LANE(bad, why);
	unsigned int at = l->frames.head;

	l->bad[why]++;
	/* A frame that is marked, or too short, may have no names. */
	while (at != l->frames.tail &&
	       (l->frames.p[at].qpn != LANE(bad, qpn) || l->frames.p[at].psn != LANE(bad, psn) ||
		l->frames.p[at].opcode != LANE(bad, opcode)))
		at++;
	if (at != l->frames.tail)
		l->frames.head = at + 1;
	else if (why == TRB_ICRC || why == TRB_BACK)
		fail_msg("cycle %" PRIu64 ": a bad packet to QP %x, PSN %06x was not sent", cycle,
			 LANE(bad, qpn), LANE(bad, psn));
}

/* Each verdict has its reasons. */
static void check_why(struct lanes *l, uint32_t verdict, uint32_t why, uint64_t cycle)
{
	bool good = why == TRW_NONE;

	switch (verdict) {
	case TRV_DROPPED:
		good = (why >= TRW_NO_QP && why <= TRW_PKEY) || why == TRW_ERROR;
		break;
	case TRV_REPEATED:
		good |= why == TRW_OLD;
		break;
	case TRV_REFUSED:
		good |= why == TRW_QKEY;
		break;
	}
	if (!good)
		fail_msg("cycle %" PRIu64 ": verdict %u with reason %u", cycle, verdict, why);
	l->why[why]++;
}

static void lane_rsp(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	struct lane_packet *k;
	uint32_t qpn = LANE(rsp, qpn), verdict = LANE(rsp, verdict);

	k = head(&l->requests);
	if (!k || k->psn != LANE(rsp, psn) || k->opcode != LANE(rsp, opcode) ||
	    (!k->group && (k->qpn & 0xfff) != qpn))
		fail_msg("cycle %" PRIu64
			 ": a decision on QP %u, PSN %06x; QP %x, PSN %06x is next",
			 cycle, qpn, LANE(rsp, psn), k ? k->qpn : 0, k ? k->psn : 0);
	assert_in_range(verdict, 0, TRV_DROPPED);
	l->verdict[verdict]++;
	l->refused_unrel +=
		verdict == TRV_REFUSED && is_unrel(k->opcode) && LANE(rsp, why) == TRW_NONE;
	l->by_qp[qpn][verdict]++;
	check_why(l, verdict, LANE(rsp, why), cycle);
	if (verdict == TRV_TAKEN ||
	    (verdict == TRV_REPEATED && is_read(k->opcode) && LANE(rsp, why) == TRW_NONE))
		put(&l->taken[qpn], k);
	if (LANE(rsp, more) && !k->group)
		fail_msg("cycle %" PRIu64 ": QP %u is no group", cycle, qpn);
	l->requests.head += !LANE(rsp, more);
}

static void lane_req(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	struct lane_packet *k = head(&l->answers);

	if (!k || (k->qpn & 0xfff) != LANE(req, qpn) || k->psn != LANE(req, psn) ||
	    k->syndrome != LANE(req, syndrome))
		fail_msg("cycle %" PRIu64 ": an answer to QP %u, PSN %06x, syndrome %02x, which is "
			 "not next",
			 cycle, LANE(req, qpn), LANE(req, psn), LANE(req, syndrome));
	l->answers.head++;
	l->dropped += LANE(req, drop);
	if ((LANE(req, why) != TRW_NONE) != LANE(req, drop))
		fail_msg("cycle %" PRIu64 ": an answer is dropped: %u, and why: %u", cycle,
			 LANE(req, drop), LANE(req, why));
	l->ghosts += LANE(req, why) == TRW_GHOST;
	l->strangers += LANE(req, why) >= TRW_NO_QP && LANE(req, why) <= TRW_PKEY;
	l->naks += k->syndrome == 0x60 && !LANE(req, drop);
	if (is_response(k->opcode) && !LANE(req, drop)) {
		l->taken_rsp++;
		put(&l->placed[LANE(req, qpn)], k);
	}
}

/* The next of a queue has this PSN. */
static void must_be_next(struct lane_queue *q, uint32_t qpn, uint32_t psn, const char *what,
			 uint64_t cycle)
{
	struct lane_packet *k = head(q);

	if (!k || k->psn != psn)
		fail_msg("cycle %" PRIu64 ": QP %u %s PSN %06x; %06x is next", cycle, qpn, what,
			 psn, k ? k->psn : 0);
}

static void lane_put(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	uint32_t qpn = LANE(put, qpn), psn = LANE(put, psn);
	struct lane_queue *q = &l->taken[qpn];
	struct lane_packet *k;

	if (LANE(put, resp)) {
		/* those before it have failed */
		for (q = &l->placed[qpn]; (k = head(q)) && k->psn != psn; q->head++)
			l->not_put++;
	}
	must_be_next(q, qpn, psn, "puts", cycle);
	k = head(q);
	q->head++;
	if (!LANE(put, resp) && is_atomic(k->opcode))
		put(&l->atomics, k);
}

static void lane_voided(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	uint32_t qpn = LANE(voided, qpn);
	struct lane_queue *q = &l->taken[qpn];
	unsigned int at = q->head;

	/* put comes some cycles later, beside the last beat */
	while (at != q->tail && at - q->head < PUT_STAGES && q->p[at].psn != LANE(voided, psn))
		at++;
	if (at != q->tail && q->p[at].psn == LANE(voided, psn)) {
		struct lane_packet k = q->p[at];

		memmove(&q->p[q->head + 1], &q->p[q->head], (at - q->head) * sizeof(k));
		q->p[q->head] = k;
	}
	must_be_next(q, qpn, LANE(voided, psn), "voids", cycle);
	q->head++;
	l->voided[LANE(voided, why)]++;
}

/* It stands for the answer of an ATOMIC or FLUSH, and comes in their order. */
static void lane_mute(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	for (struct lane_packet *k; (k = head(&l->atomics)); l->atomics.head++)
		if ((k->qpn & 0xfff) == LANE(mute, qpn) && k->psn == LANE(mute, psn))
			break;
	must_be_next(&l->atomics, LANE(mute, qpn), LANE(mute, psn), "leaves unanswered", cycle);
	l->atomics.head++;
}

static void lane_acked(struct lanes *l, const struct rx_out *o)
{
	uint32_t cause = LANE(acked, cause);

	assert_int_equal(LANE(acked, qpn), o->acked_qpn);
	assert_int_equal(LANE(acked, wqe), o->acked_wqe);
	assert_int_equal(LANE(acked, psn), o->acked_una);
	assert_in_range(cause, 0, TRC_RNR);
	l->cause[cause]++;
	switch (o->acked_kind) {
	case 0: /* AK_PROGRESS */
		assert_int_equal(cause, TRC_PROGRESS);
		break;
	case 1: /* AK_RETRY */
		assert_true(cause == TRC_NAK || cause == TRC_IMPLIED || cause == TRC_TIMEOUT ||
			    cause == TRC_RNR);
		break;
	default: /* AK_HOLD */
		assert_int_equal(cause, TRC_RNR_WAIT);
	}
}

void lanes_cycle(struct lanes *l, const struct rx_in *in, const struct rx_out *o, uint64_t cycle)
{
	/* In the order of a packet: it may be decided on at once. */
	if (o->trace_in.valid)
		lane_in(l, o, cycle);
	if (o->trace_rsp.valid)
		lane_rsp(l, o, cycle);
	if (o->trace_req.valid)
		lane_req(l, o, cycle);
	if (o->trace_bad.valid)
		lane_bad(l, o, cycle);
	if (o->trace_put.valid)
		lane_put(l, o, cycle);
	if (o->trace_voided.valid)
		lane_voided(l, o, cycle);
	if (o->trace_mute.valid)
		lane_mute(l, o, cycle);
	assert_int_equal(o->trace_acked.valid, o->acked_valid && in->acked_ready);
	if (o->trace_acked.valid)
		lane_acked(l, o);
	for (int c = 0; c < 2; c++)
		l->excused |= (o->err_valid & in->err_ready) >> c & 1 && !o->err[c].only;
	l->excused |= (in->qpc_valid && o->qpc_ready) || (in->aqc_valid && o->aqc_ready);
}

void lanes_end(struct lanes *l, const uint64_t *cnt, const uint64_t (*qc)[URDMA_QCNT_TX_PKTS],
	       bool responses)
{
	uint64_t decided;

	assert_null(head(&l->requests));
	assert_null(head(&l->answers));
	for (unsigned int i = 0; i < 4096; i++) {
		/* each is put or voided */
		assert_null(head(&l->taken[i]));
		for (; head(&l->placed[i]); l->placed[i].head++)
			l->not_put++;
	}
	l->atomics.head = l->atomics.tail;
	assert_int_equal(l->bad[TRB_MAC], cnt[URDMA_CNT_RX_MAC_ERR]);
	assert_int_equal(l->bad[TRB_MALFORMED], cnt[URDMA_CNT_RX_MALFORMED]);
	assert_int_equal(l->bad[TRB_ICRC], cnt[URDMA_CNT_RX_ICRC_ERR]);
	assert_in_range(l->bad[TRB_BACK], 0, cnt[URDMA_CNT_RX_NOT_RDMA]);
	assert_int_equal(l->refused_unrel + l->voided[TRO_UNREL], cnt[URDMA_CNT_RX_DROP_UNREL]);
	assert_int_equal(l->why[TRW_QKEY], cnt[URDMA_CNT_RX_BAD_QKEY]);
	assert_int_equal(l->ghosts, cnt[URDMA_CNT_RX_ACK_GHOST]);
	assert_int_equal(l->in, cnt[URDMA_CNT_RX_RDMA_PKTS]);
	assert_int_equal(l->full, cnt[URDMA_CNT_RX_DROP_FULL]);
	assert_int_equal(l->verdict[TRV_REPEATED], cnt[URDMA_CNT_RX_DUP]);
	assert_int_equal(l->taken_rsp, cnt[URDMA_CNT_RX_READ_RSP]);
	assert_int_equal(l->verdict[TRV_DROPPED] + l->strangers, cnt[URDMA_CNT_RX_NO_QP]);
	/* an UC packet may be out of sequence and refused for another reason */
	assert_in_range(l->verdict[TRV_GAP], 0, cnt[URDMA_CNT_RX_SEQ_ERR]);
	assert_in_range(l->cause[TRC_TIMEOUT], 0, cnt[URDMA_CNT_TX_TIMEOUT]);
	assert_in_range(l->cause[TRC_IMPLIED], 0, cnt[URDMA_CNT_RX_READ_GAP]);
	assert_in_range(l->cause[TRC_NAK], 0, l->naks);
	for (unsigned int i = 0; i < 4096; i++) {
		decided = 0;
		for (unsigned int v = TRV_TAKEN; v < TRV_DROPPED; v++)
			decided += l->by_qp[i][v];
		if (responses)
			assert_in_range(decided, 0, qc[i][URDMA_QCNT_RX_PKTS]);
		else if (decided != qc[i][URDMA_QCNT_RX_PKTS])
			fail_msg("QP %u: %d decisions, %d packets counted", i, (int)decided,
				 (int)qc[i][URDMA_QCNT_RX_PKTS]);
		assert_int_equal(l->by_qp[i][TRV_RNR], qc[i][URDMA_QCNT_RX_NO_WQE]);
		assert_int_equal(l->by_qp[i][TRV_REPEATED], qc[i][URDMA_QCNT_RX_DUP]);
	}
	/* nothing has failed, nor has UC gone back to a WQE */
	if (!l->excused && !cnt[URDMA_CNT_RX_DROP_UNREL])
		assert_int_equal(l->not_put + l->voided[TRO_DEAD] + l->voided[TRO_REFUSED], 0);
}

void lanes_clear(struct lanes *l)
{
	l->in = l->full = l->taken_rsp = l->dropped = l->naks = l->not_put = 0;
	l->ghosts = l->strangers = l->refused_unrel = 0;
	memset(l->bad, 0, sizeof(l->bad));
	memset(l->why, 0, sizeof(l->why));
	memset(l->voided, 0, sizeof(l->voided));
	memset(l->verdict, 0, sizeof(l->verdict));
	memset(l->by_qp, 0, sizeof(l->by_qp));
	memset(l->cause, 0, sizeof(l->cause));
	l->excused = false;
}

void lanes_free(struct lanes *l)
{
	free(l->frames.p);
	free(l->requests.p);
	free(l->answers.p);
	free(l->atomics.p);
	for (unsigned int i = 0; i < 4096; i++) {
		free(l->taken[i].p);
		free(l->placed[i].p);
	}
}
