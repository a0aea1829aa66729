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

#define LANE(lane, member) ((uint32_t)FIELD_OF(o->trace_##lane, tr_##lane##_t, member))

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
	if (!is_ack(k->opcode) && !is_response(k->opcode)) {
		const struct lane_packet *before = l->requests.head == l->requests.tail
							   ? NULL
							   : &l->requests.p[l->requests.tail - 1];

		/* a packet to one QP that looks like the copies before it */
		if (before && before->group && before->psn == k->psn && before->opcode == k->opcode)
			k->group = true;
		put(&l->requests, k);
	} else
		put(&l->answers, k);
}

static void lane_rsp(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	struct lane_packet *k;
	uint32_t qpn = LANE(rsp, qpn), verdict = LANE(rsp, verdict);

	for (; (k = head(&l->requests)); l->requests.head++) {
		if (k->psn == LANE(rsp, psn) && k->opcode == LANE(rsp, opcode) &&
		    (k->group || (k->qpn & 0xfff) == qpn))
			break;
		/* all members of the group have theirs */
		if (!k->group)
			k = NULL;
		if (!k)
			break;
	}
	if (!k) {
		k = head(&l->requests);
		fail_msg("cycle %" PRIu64
			 ": a decision on QP %u, PSN %06x; QP %x, PSN %06x is next",
			 cycle, qpn, LANE(rsp, psn), k ? k->qpn : 0, k ? k->psn : 0);
	}
	assert_in_range(verdict, 0, TRV_DROPPED);
	l->verdict[verdict]++;
	l->by_qp[qpn][verdict]++;
	if (verdict == TRV_TAKEN || (verdict == TRV_REPEATED && is_read(k->opcode))) {
		struct lane_packet t = *k;

		t.may = verdict == TRV_REPEATED;
		put(&l->taken[qpn], &t);
	}
	if (!k->group)
		l->requests.head++;
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
	l->naks += k->syndrome == 0x60 && !LANE(req, drop);
	if (is_response(k->opcode) && !LANE(req, drop)) {
		l->taken_rsp++;
		put(&l->placed[LANE(req, qpn)], k);
	}
}

static void lane_put(struct lanes *l, const struct rx_out *o, uint64_t cycle)
{
	struct lane_queue *q =
		LANE(put, resp) ? &l->placed[LANE(put, qpn)] : &l->taken[LANE(put, qpn)];
	struct lane_packet *k;

	while ((k = head(q))) {
		q->head++;
		if (k->psn == LANE(put, psn))
			break;
		l->not_put += !k->may;
	}
	if (!k)
		fail_msg("cycle %" PRIu64 ": QP %u puts PSN %06x, which it has not taken", cycle,
			 LANE(put, qpn), LANE(put, psn));
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
	if (o->trace_in_valid)
		lane_in(l, o, cycle);
	if (o->trace_rsp_valid)
		lane_rsp(l, o, cycle);
	if (o->trace_req_valid)
		lane_req(l, o, cycle);
	if (o->trace_put_valid)
		lane_put(l, o, cycle);
	assert_int_equal(o->trace_acked_valid, o->acked_valid && in->acked_ready);
	if (o->trace_acked_valid)
		lane_acked(l, o);
	for (int c = 0; c < 2; c++)
		l->excused |= (o->err_valid & in->err_ready) >> c & 1 && !o->err[c].only;
	l->excused |= (in->qpc_valid && o->qpc_ready) || (in->aqc_valid && o->aqc_ready);
}

static void all_put(struct lanes *l, struct lane_queue *q)
{
	for (; q->head != q->tail; q->head++)
		l->not_put += !q->p[q->head].may;
}

void lanes_end(struct lanes *l, const uint64_t *cnt, const uint64_t (*qc)[URDMA_QCNT_TX_PKTS],
	       bool responses)
{
	uint64_t decided;

	for (; head(&l->requests); l->requests.head++)
		assert_true(head(&l->requests)->group);
	assert_null(head(&l->answers));
	for (unsigned int i = 0; i < 4096; i++) {
		all_put(l, &l->taken[i]);
		all_put(l, &l->placed[i]);
	}
	assert_int_equal(l->in, cnt[URDMA_CNT_RX_RDMA_PKTS]);
	assert_int_equal(l->full, cnt[URDMA_CNT_RX_DROP_FULL]);
	assert_int_equal(l->verdict[TRV_REPEATED], cnt[URDMA_CNT_RX_DUP]);
	assert_int_equal(l->taken_rsp, cnt[URDMA_CNT_RX_READ_RSP]);
	assert_in_range(l->verdict[TRV_DROPPED], 0, cnt[URDMA_CNT_RX_NO_QP]);
	/* an UC packet may be out of sequence and refused for another reason */
	assert_in_range(l->verdict[TRV_GAP], 0, cnt[URDMA_CNT_RX_SEQ_ERR]);
	assert_in_range(l->cause[TRC_TIMEOUT], 0, cnt[URDMA_CNT_TX_TIMEOUT]);
	assert_in_range(l->cause[TRC_IMPLIED], 0, cnt[URDMA_CNT_RX_READ_GAP]);
	assert_in_range(l->cause[TRC_NAK], 0, l->naks);
	assert_in_range(cnt[URDMA_CNT_RX_ACK_GHOST], 0, l->dropped);
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
	/* what placement refuses, a WRITE of UC */
	if (!l->excused && !cnt[URDMA_CNT_RX_DROP_UNREL])
		assert_int_equal(l->not_put, 0);
}

void lanes_clear(struct lanes *l)
{
	l->in = l->full = l->taken_rsp = l->dropped = l->naks = l->not_put = 0;
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
	for (unsigned int i = 0; i < 4096; i++) {
		free(l->taken[i].p);
		free(l->placed[i].p);
	}
}
