// SPDX-License-Identifier: Apache-2.0
/*
 * The NICs' lanes over a run of mixed traffic. No event is doubled or missing, the moments of a
 * send WQE come in the order of docs/tracing.md, and the lanes agree with the NIC's counters and,
 * across the wire, with the lanes of the other NIC.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"
#include "urdma_hw.h"
#include "urdma_trace_pkg.h"
#include "work.h"

#define QPS	 4u
#define ROUNDS	 6u
#define MESSAGES 96u /* a round */
#define WQES	 (ROUNDS * MESSAGES)
#define MAX_LEN	 9000u
#define LIMIT	 40000000u
#define NOT_YET	 UINT64_MAX

/* Moments of a WQE: cycles. */
struct life {
	uint64_t db, turn, wqe, go, pkt, full, acked, cqe;
	unsigned int begun, completed;
	bool signaled;
};

struct packet {
	uint64_t qpn, psn, opcode;
	uint64_t wqe;
	bool resp, again;
};

struct queue {
	struct packet *p;
	size_t head, tail, size;
};

struct nic {
	uint64_t n[URDMA_TRACE_LANES];
	struct life wqe[QPS][WQES];
	uint16_t posted[QPS], done[QPS];
	bool retried[QPS];
	struct queue cut, wire; /* packets without payload; frames that have to arrive */
	struct queue out;	/* frames that have arrived, for the other NIC */
	struct queue requests, answers;
	uint64_t ans[4], cause[TRC_RNR + 1], loss[TRC_RNR + 1], verdict[TRV_DROPPED + 1];
	uint64_t full_drop, again, rsp_packets, in_full, taken_rsp, refused;
	uint64_t hits[2], misses[2]; /* of page tables, of directories */
	uint64_t ended[QPS], reset[QPS];
	uint64_t puts[2], to_put; /* requests, responses; requests that have to be put */
	uint64_t before[URDMA_CNT_N];
};

struct lanes {
	struct rig rig;
	struct nic nic[2];
	bool lossy;
	/* Found by a listener, which must not leave the simulation: the test fails later. */
	char wrong[160];
};

static void add(struct queue *q, const struct packet *p)
{
	if (q->tail == q->size) {
		q->size = q->size ? 2 * q->size : 64;
		q->p = realloc(q->p, q->size * sizeof(*q->p));
		if (!q->p)
			abort();
	}
	q->p[q->tail++] = *p;
}

static struct packet *take(struct queue *q)
{
	return q->head == q->tail ? NULL : &q->p[q->head++];
}

static bool same(const struct packet *p, uint64_t qpn, uint64_t psn, uint64_t opcode)
{
	return p && p->qpn == qpn && p->psn == psn && (p->opcode & 0x1f) == (opcode & 0x1f);
}

#define WRONG(l, e, ...)                                                                          \
	do {                                                                                      \
		if (!(l)->wrong[0]) {                                                             \
			int at = snprintf((l)->wrong, sizeof((l)->wrong),                         \
					  "cycle %llu, NIC %u: ", (unsigned long long)(e)->cycle, \
					  (e)->nic);                                              \
			snprintf((l)->wrong + at, sizeof((l)->wrong) - (size_t)at, __VA_ARGS__);  \
		}                                                                                 \
	} while (0)

static bool is_response(uint64_t opcode)
{
	return (opcode >= 0x0d && opcode <= 0x10) || opcode == 0x12;
}

static bool is_read(uint64_t opcode)
{
	return opcode == 0x0c || opcode == 0x13 || opcode == 0x14 || opcode == 0x1c ||
	       opcode == 0x1d;
}

static void first(uint64_t *moment, uint64_t cycle)
{
	if (*moment == NOT_YET)
		*moment = cycle;
}

static struct life *life(struct lanes *l, const struct urdma_trace_event *e, uint64_t qpn,
			 uint64_t wqe)
{
	static struct life none;

	if (qpn < RIG_QPN(0) || qpn >= RIG_QPN(QPS) || wqe >= WQES) {
		WRONG(l, e, "QP %llu, WQE %llu is not posted", (unsigned long long)qpn,
		      (unsigned long long)wqe);
		return &none;
	}
	return &l->nic[e->nic].wqe[qpn - RIG_QPN(0)][wqe];
}

static void heard(void *ctx, const struct urdma_trace_event *e)
{
	struct lanes *l = ctx;
	struct nic *nic = &l->nic[e->nic];
	struct packet *p, k;
	struct life *w;

	if (e->kind >= URDMA_TRACE_LANES)
		return;
	nic->n[e->kind]++;
	switch (e->kind) {
	case URDMA_TRACE_SQ_DB:
		for (uint16_t i = nic->posted[e->sq_db.qpn - RIG_QPN(0)]; i != e->sq_db.pi; i++)
			first(&life(l, e, e->sq_db.qpn, i)->db, e->cycle);
		nic->posted[e->sq_db.qpn - RIG_QPN(0)] = (uint16_t)e->sq_db.pi;
		break;
	case URDMA_TRACE_TURN:
		for (uint64_t i = 0; i < e->turn.n; i++)
			first(&life(l, e, e->turn.qpn, e->turn.wqe + i)->turn, e->cycle);
		if (e->turn.again && !nic->retried[e->turn.qpn - RIG_QPN(0)])
			WRONG(l, e, "a turn begins again without a cause");
		break;
	case URDMA_TRACE_WQE:
		w = life(l, e, e->wqe.qpn, e->wqe.wqe);
		first(&w->wqe, e->cycle);
		if (e->wqe.held)
			break;
		first(&w->go, e->cycle);
		if (w->begun++ && !nic->retried[e->wqe.qpn - RIG_QPN(0)])
			WRONG(l, e, "QP %u begins WQE %u twice", (unsigned int)e->wqe.qpn,
			      (unsigned int)e->wqe.wqe);
		break;
	case URDMA_TRACE_PKT:
		add(&nic->cut, &(struct packet){ e->pkt.qpn, e->pkt.psn, e->pkt.opcode, e->pkt.wqe,
						 e->pkt.resp, e->pkt.again });
		if (!e->pkt.resp)
			first(&life(l, e, e->pkt.qpn, e->pkt.wqe)->pkt, e->cycle);
		break;
	case URDMA_TRACE_FULL:
		p = take(&nic->cut);
		if (!same(p, e->full.qpn, e->full.psn, e->full.opcode)) {
			WRONG(l, e, "PSN %06x is full, and was not cut next",
			      (unsigned int)e->full.psn);
			break;
		}
		if (!p->resp)
			first(&life(l, e, p->qpn, p->wqe)->full, e->cycle);
		if (e->full.drop) {
			nic->full_drop++;
			break;
		}
		nic->again += p->again && !p->resp;
		nic->rsp_packets += p->resp;
		add(&nic->wire, p);
		break;
	case URDMA_TRACE_ANS:
		/* 0 ACK, 1 RNR NAK, 2 NAK for a gap, 3 another */
		nic->ans[e->ans.syndrome >> 5 == 0   ? 0
			 : e->ans.syndrome >> 5 == 1 ? 1
			 : e->ans.syndrome == 0x60   ? 2
						     : 3]++;
		add(&nic->wire,
		    &(struct packet){ .qpn = e->ans.qpn, .psn = e->ans.psn, .opcode = 0x11 });
		break;
	case URDMA_TRACE_OUT:
		p = take(&nic->wire);
		if (!same(p, e->out.qpn, e->out.psn, e->out.opcode))
			WRONG(l, e, "a frame with PSN %06x, which was not next",
			      (unsigned int)e->out.psn);
		add(&nic->out, &(struct packet){ .qpn = e->out.dqpn,
						 .psn = e->out.psn,
						 .opcode = e->out.opcode });
		break;
	case URDMA_TRACE_ACKED:
		nic->cause[e->acked.cause]++;
		if (e->acked.cause != TRC_PROGRESS)
			nic->retried[e->acked.qpn - RIG_QPN(0)] = true;
		for (uint16_t i = nic->done[e->acked.qpn - RIG_QPN(0)]; i != e->acked.wqe; i++)
			first(&life(l, e, e->acked.qpn, i)->acked, e->cycle);
		nic->done[e->acked.qpn - RIG_QPN(0)] = (uint16_t)e->acked.wqe;
		break;
	case URDMA_TRACE_LOSS:
		nic->loss[e->loss.cause]++;
		break;
	case URDMA_TRACE_IN:
		k = (struct packet){ .qpn = e->in.qpn, .psn = e->in.psn, .opcode = e->in.opcode };
		/* a lost packet does not come; what comes was sent before */
		do
			p = take(&l->nic[!e->nic].out);
		while (l->lossy && p && !same(p, k.qpn, k.psn, k.opcode));
		if (!same(p, k.qpn, k.psn, k.opcode))
			WRONG(l, e, "a packet with PSN %06x that the other NIC has not sent",
			      (unsigned int)k.psn);
		if (e->in.full)
			nic->in_full++;
		else
			add(is_response(k.opcode) || k.opcode == 0x11 ? &nic->answers
								      : &nic->requests,
			    &k);
		break;
	case URDMA_TRACE_RSP:
		if (!same(take(&nic->requests), e->rsp.qpn, e->rsp.psn, e->rsp.opcode))
			WRONG(l, e, "a decision on PSN %06x, which is not next",
			      (unsigned int)e->rsp.psn);
		nic->verdict[e->rsp.verdict]++;
		nic->to_put += e->rsp.verdict == TRV_TAKEN ||
			       (e->rsp.verdict == TRV_REPEATED && is_read(e->rsp.opcode));
		break;
	case URDMA_TRACE_REQ:
		p = take(&nic->answers);
		if (!p || p->qpn != e->req.qpn || p->psn != e->req.psn)
			WRONG(l, e, "an answer to PSN %06x, which is not next",
			      (unsigned int)e->req.psn);
		else
			nic->taken_rsp += is_response(p->opcode) && !e->req.drop;
		break;
	case URDMA_TRACE_PUT:
		nic->puts[e->put.resp]++;
		break;
	case URDMA_TRACE_CQE:
		if (!e->cqe.send)
			break;
		w = life(l, e, e->cqe.qpn, e->cqe.wqe);
		first(&w->cqe, e->cycle);
		w->completed++;
		if (e->cqe.status)
			WRONG(l, e, "status %u", (unsigned int)e->cqe.status);
		break;
	case URDMA_TRACE_XLAT:
		nic->hits[0] += e->xlat.pte_hit;
		nic->hits[1] += e->xlat.dir_hit;
		nic->misses[0] += e->xlat.pte_miss;
		nic->misses[1] += e->xlat.dir_miss;
		nic->refused += e->xlat.refused;
		break;
	case URDMA_TRACE_QP_END:
		nic->ended[e->qp_end.qpn - RIG_QPN(0)]++;
		nic->reset[e->qp_end.qpn - RIG_QPN(0)] += e->qp_end.reset;
		break;
	default:
		break;
	}
}

static void draw_round(struct lanes *l, struct work *w, uint64_t *random, unsigned int round,
		       bool reliable)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND,	  URDMA_WR_WRITE,
					       URDMA_WR_SEND_IMM, URDMA_WR_WRITE_IMM,
					       URDMA_WR_READ,	  URDMA_WR_ATOMIC_CS,
					       URDMA_WR_READ,	  URDMA_WR_ATOMIC_FA,
					       URDMA_WR_FLUSH,	  URDMA_WR_ATOMIC_WRITE };
	uint16_t index[2][QPS];

	for (unsigned int k = 0; k < 2 * QPS; k++)
		index[k % 2][k / 2] = l->nic[k % 2].posted[k / 2];
	for (unsigned int i = 0; i < MESSAGES; i++) {
		unsigned int pair = rig_draw(random, QPS), from = rig_draw(random, 2);

		/* the last message of each flow has a CQE, for work_finish() */
		if (i >= MESSAGES - 2 * QPS) {
			pair = i % QPS;
			from = i / QPS % 2;
		}
		w[i] = (struct work){
			.opcode = opcode[rig_draw(random, reliable ? 10 : 4)],
			.from = from,
			.pair = pair,
			.at = i * work_slot(MAX_LEN),
			.len = rig_draw_len(random, 1024, MAX_LEN),
			.seed = (uint32_t)rnd_next(random) + round,
			.pieces = 1 + rig_draw(random, WORK_SGES),
			.unsignaled = i < MESSAGES - 2 * QPS && rig_draw(random, 3),
			.fence = reliable && !rig_draw(random, 8),
		};
		l->nic[from].wqe[pair][index[from][pair]++].signaled = !w[i].unsignaled;
	}
}

/* Each moment is at or after the one before it; a CQE need not wait for `acked`. */
static void check_life(const struct life *w, unsigned int nic, unsigned int qp, unsigned int wqe)
{
	const struct {
		const char *name;
		uint64_t at;
	} moment[] = { { "sq_db", w->db },	   { "turn", w->turn }, { "wqe", w->wqe },
		       { "wqe, not held", w->go }, { "pkt", w->pkt },	{ "full", w->full },
		       { "acked", w->acked },	   { "cqe", w->cqe } };
	unsigned int n = w->signaled ? 8 : 7;

	for (unsigned int i = 0; i < n; i++) {
		if (moment[i].at == NOT_YET)
			fail_msg("NIC %u, QP %u, WQE %u has no %s", nic, qp, wqe, moment[i].name);
		if (i && moment[i].at < moment[i == 7 ? 5 : i - 1].at)
			fail_msg("NIC %u, QP %u, WQE %u: %s in cycle %llu is too early", nic, qp,
				 wqe, moment[i].name, (unsigned long long)moment[i].at);
	}
	if (w->completed != w->signaled || !w->begun)
		fail_msg("NIC %u, QP %u, WQE %u began %u times and has %u CQEs", nic, qp, wqe,
			 w->begun, w->completed);
}

static void check_nic(struct lanes *l, unsigned int n)
{
	struct nic *nic = &l->nic[n];
	uint64_t now[URDMA_CNT_N];

	for (unsigned int i = 0; i < URDMA_CNT_N; i++)
		now[i] = urdma_eh_counter(l->rig.side[n].eh, i) - nic->before[i];
#define EQUAL(lanes, counters)                                             \
	do {                                                               \
		uint64_t told = (lanes), counted = (counters);             \
		if (told != counted)                                       \
			fail_msg("NIC %u: %s is %llu, %s %llu", n, #lanes, \
				 (unsigned long long)told, #counters,      \
				 (unsigned long long)counted);             \
	} while (0)
#define N(lane) nic->n[URDMA_TRACE_##lane]
	EQUAL(N(FULL), N(PKT));
	EQUAL(N(OUT), N(FULL) - nic->full_drop + N(ANS));
	EQUAL(N(OUT), now[URDMA_CNT_TX_RDMA_PKTS]);
	EQUAL(nic->ans[0], now[URDMA_CNT_TX_ACK]);
	EQUAL(nic->ans[1], now[URDMA_CNT_TX_NAK_RNR]);
	EQUAL(nic->ans[2], now[URDMA_CNT_TX_NAK_SEQ]);
	EQUAL(nic->ans[3], now[URDMA_CNT_TX_NAK_OTHER]);
	EQUAL(nic->again, now[URDMA_CNT_TX_RETRANS]);
	EQUAL(nic->rsp_packets, now[URDMA_CNT_TX_READ_RSP]);
	EQUAL(N(IN) - nic->in_full, now[URDMA_CNT_RX_RDMA_PKTS]);
	EQUAL(nic->in_full, now[URDMA_CNT_RX_DROP_FULL]);
	EQUAL(N(RSP) + N(REQ), N(IN) - nic->in_full);
	EQUAL(nic->verdict[TRV_REPEATED], now[URDMA_CNT_RX_DUP]);
	EQUAL(nic->verdict[TRV_GAP], now[URDMA_CNT_RX_SEQ_ERR]);
	EQUAL(nic->verdict[TRV_REFUSED] + nic->verdict[TRV_DROPPED], 0);
	EQUAL(nic->taken_rsp, now[URDMA_CNT_RX_READ_RSP]);
	EQUAL(nic->puts[0], nic->to_put);
	EQUAL(nic->puts[1], nic->taken_rsp);
	EQUAL(nic->loss[TRC_TIMEOUT], now[URDMA_CNT_TX_TIMEOUT]);
	EQUAL(nic->loss[TRC_IMPLIED], now[URDMA_CNT_RX_READ_GAP]);
	/* one retry covers everything that was noticed before it */
	assert_true(nic->cause[TRC_TIMEOUT] <= nic->loss[TRC_TIMEOUT]);
	assert_true(nic->cause[TRC_IMPLIED] <= nic->loss[TRC_IMPLIED]);
	assert_true(nic->cause[TRC_NAK] <= nic->loss[TRC_NAK]);
	EQUAL(N(CQE), now[URDMA_CNT_CQE]);
	EQUAL(N(EQE), now[URDMA_CNT_EQE]);
	EQUAL(N(CMD), now[URDMA_CNT_CMD_OK] + now[URDMA_CNT_CMD_ERR]);
	EQUAL(N(SQ_DB) + N(RQ_DB) + N(CQ_DB), now[URDMA_CNT_DB_OK]);
	EQUAL(nic->refused, now[URDMA_CNT_MR_ERR]);
	EQUAL(nic->hits[0], now[URDMA_CNT_PTE_HIT]);
	EQUAL(nic->misses[0], now[URDMA_CNT_PTE_MISS]);
	EQUAL(nic->hits[1], now[URDMA_CNT_DIR_HIT]);
	EQUAL(nic->misses[1], now[URDMA_CNT_DIR_MISS]);
	assert_true(nic->hits[0] && nic->misses[0]);
	for (unsigned int qp = 0; qp < QPS; qp++) {
		assert_int_equal(nic->posted[qp], nic->done[qp]);
		for (unsigned int i = 0; i < nic->posted[qp]; i++)
			check_life(&nic->wqe[qp][i], n, qp, i);
	}
	assert_int_equal(nic->wire.head, nic->wire.tail);
}

/* A QP is destroyed, another one is reset: one event each, before the completion. */
static void check_ends(struct lanes *l, unsigned int n)
{
	struct nic *nic = &l->nic[n];
	struct urdma_eh_cmd cmd = { 0 };

	for (unsigned int qp = 0; qp < QPS; qp++)
		assert_int_equal(nic->ended[qp], 0);
	rig_renew_qp(&l->rig, n, 0);
	assert_int_equal(nic->ended[0], 1);
	assert_int_equal(nic->reset[0], 0);
	cmd.w[1] = URDMA_SET(URDMA_CMD_MOD1_MASK, URDMA_QPM_STATE) |
		   URDMA_SET(URDMA_CMD_MOD1_STATE, URDMA_QPS_RESET);
	rig_check(&l->rig, urdma_eh_modify_qp(&l->rig.side[n].qp[1], &cmd), "reset QP");
	assert_int_equal(nic->ended[1], 1);
	assert_int_equal(nic->reset[1], 1);
	for (unsigned int qp = 2; qp < QPS; qp++)
		assert_int_equal(nic->ended[qp], 0);
}

static void run(uint64_t seed, unsigned int type, const char *const *fault)
{
	struct lanes *l = test_calloc(1, sizeof(*l));
	struct work *w = test_calloc(MESSAGES, sizeof(*w));
	struct rig_config c;
	uint64_t random = seed;

	l->lossy = fault != NULL;
	rig_defaults(&c);
	c.qps = QPS;
	c.type = type;
	c.mtu = 3;
	c.log_stride = 8;
	c.buffer = MESSAGES * work_slot(MAX_LEN);
	c.memory.memory = 2 * c.buffer + (32u << 20);
	c.conn.timeout = 6;
	c.conn.retry = 7;
	c.conn.max_rd_atomic = 4;
	c.faults = l->lossy;
	c.fault_seed = seed;
	rig_start(&l->rig, &c);
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int i = 0; i < URDMA_CNT_N; i++)
			l->nic[n].before[i] = urdma_eh_counter(l->rig.side[n].eh, i);
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int k = 0; k < QPS * WQES; k++) {
			struct life *k_life = &l->nic[n].wqe[k / WQES][k % WQES];

			memset(k_life, 0xff, offsetof(struct life, begun));
		}
	assert_int_equal(urdma_cosim_listen(l->rig.cosim, heard, l), 0);
	for (; fault && *fault; fault++)
		rig_fault(&l->rig, "%s", *fault);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		draw_round(l, w, &random, round, type == URDMA_QPT_RC);
		work_run(&l->rig, w, MESSAGES, LIMIT, "lanes");
		if (l->wrong[0])
			fail_msg("%s", l->wrong);
	}
	rig_check(&l->rig,
		  urdma_cosim_run_while_busy(l->rig.cosim, urdma_cosim_now(l->rig.cosim) + LIMIT),
		  "rest");
	for (unsigned int n = 0; n < 2; n++)
		check_nic(l, n);
	for (unsigned int n = 0; n < 2; n++)
		check_ends(l, n);
	if (l->lossy)
		for (unsigned int i = TRC_NAK; i <= TRC_TIMEOUT; i++)
			assert_true(l->nic[0].cause[i] + l->nic[1].cause[i] > 0);
	urdma_cosim_unlisten(l->rig.cosim, heard, l);
	rig_stop(&l->rig);
	for (unsigned int n = 0; n < 2; n++) {
		struct nic *nic = &l->nic[n];

		free(nic->cut.p);
		free(nic->wire.p);
		free(nic->out.p);
		free(nic->requests.p);
		free(nic->answers.p);
	}
	test_free(w);
	test_free(l);
}

static void test_reliable(void **state)
{
	(void)state;
	run(1, URDMA_QPT_RC, NULL);
	run(2, URDMA_QPT_RC, NULL);
}

static void test_loss(void **state)
{
	static const char *const fault[] = { "drop,p=3", "corrupt,p=1", NULL };

	(void)state;
	run(3, URDMA_QPT_RC, fault);
	run(4, URDMA_QPT_RC, fault);
}

static void test_unreliable(void **state)
{
	(void)state;
	run(5, URDMA_QPT_UC, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reliable),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_unreliable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
