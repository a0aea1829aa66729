// SPDX-License-Identifier: Apache-2.0
#include "nic_pair.h"

#include <stdlib.h>
#include <string.h>

#include "urdma_hw.h"
#include "urdma_pkg.h"
#include "urdma_trace_pkg.h"

#define CQ_RING	   0x100000000ull
#define CQ_ENTRIES 256u
#define BUFFER	   0x200000000ull

static void *grow(void *list, size_t n, size_t *size, size_t each)
{
	if (n < *size)
		return list;
	*size = *size ? *size * 2 : 1024;
	list = realloc(list, *size * each);
	if (!list)
		abort();
	return list;
}

static struct urdma_trace_event *add(struct pair *p, uint64_t cycle, unsigned int nic,
				     enum urdma_trace_kind kind)
{
	struct urdma_trace_event *e;

	p->event = grow(p->event, p->n, &p->size, sizeof(*p->event));
	e = &p->event[p->n++];
	memset(e, 0, sizeof(*e));
	e->cycle = cycle;
	e->nic = (uint8_t)nic;
	e->kind = (uint8_t)kind;
	return e;
}

#define ADD(p, cycle, nic, kind, name, ...) /* name: for the reader */           \
	do {                                                                     \
		const uint64_t field_[] = { __VA_ARGS__ };                       \
		memcpy(add(p, cycle, nic, kind)->field, field_, sizeof(field_)); \
	} while (0)

void pair_begin(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	add(p, 0, 0, URDMA_TRACE_RESET);
	add(p, 0, 1, URDMA_TRACE_RESET);
}

void pair_trigger(struct pair *p, uint64_t cycle, uint8_t nic, const char *trigger)
{
	p->trigger = trigger;
	add(p, cycle, nic, URDMA_TRACE_TRIGGER);
}

void pair_frame(struct pair *p, uint64_t cycle, uint8_t nic)
{
	add(p, cycle, nic, URDMA_TRACE_RX);
	ADD(p, cycle + 1, nic, URDMA_TRACE_RX_END, rx_end, 0, 100, 0, 0, 0, 0, 0);
}

uint64_t pair_qp_end(struct pair *p, uint64_t cycle, uint8_t nic, uint32_t qpn)
{
	ADD(p, cycle, nic, URDMA_TRACE_QP_END, qp_end, qpn, 0);
	p->qp[nic][qpn].pi = 0;
	return cycle + 1000;
}

/* A frame of `len` bytes from NIC n, not before `cycle`. Returns its last beat. */
static uint64_t frame(struct pair *p, unsigned int n, uint64_t cycle, uint32_t qpn, uint32_t dqpn,
		      uint32_t psn, uint32_t opcode, uint32_t len, bool lost)
{
	uint64_t begin = cycle > p->tx_free[n] ? cycle : p->tx_free[n];
	uint64_t end = begin + (len + 63) / 64 - 1;

	p->tx_free[n] = end + 1;
	ADD(p, begin, n, URDMA_TRACE_OUT, out, qpn, dqpn, psn, opcode);
	add(p, begin, n, URDMA_TRACE_TX);
	ADD(p, end, n, URDMA_TRACE_TX_END, tx_end, 0, len, 0, 1, dqpn, psn, opcode);
	if (lost)
		return end;
	add(p, begin + PAIR_WIRE, !n, URDMA_TRACE_RX);
	ADD(p, end + PAIR_WIRE, !n, URDMA_TRACE_RX_END, rx_end, 0, len, 0, 1, dqpn, psn, opcode);
	ADD(p, end + PAIR_WIRE + 12, !n, URDMA_TRACE_IN, in, dqpn, psn, opcode, 0);
	return end;
}

/* A PCIe read of one packet's payload. Every eighth one misses the page table, every 16th also its
 * directory. */
static uint64_t fetch(struct pair *p, unsigned int n, uint64_t cycle, uint32_t len)
{
	if (!len)
		return cycle + 2;
	ADD(p, cycle + 1, n, URDMA_TRACE_XLAT, xlat, MRC_TX, 1, p->tag[n] % 16 != 0,
	    p->tag[n] % 16 == 0, p->tag[n] % 8 != 0, p->tag[n] % 8 == 0, 0);
	ADD(p, cycle + 1, n, URDMA_TRACE_RD, rd, p->tag[n], BUFFER, len);
	ADD(p, cycle + 131, n, URDMA_TRACE_RD_DONE, rd_done, p->tag[n], 0, 1 + len / 300,
	    (len + 3) / 4);
	p->tag[n]++;
	return cycle + 133;
}

static uint32_t opcode_of(uint8_t op, uint32_t i, uint32_t n)
{
	uint32_t base = op == URDMA_WR_WRITE ? 6 : 0;

	if (op == URDMA_WR_READ)
		return 0x0c;
	if (n == 1)
		return base + 4;
	return !i ? base : i == n - 1 ? base + 2 : base + 1;
}

static uint32_t part(uint32_t bytes, uint32_t i)
{
	uint32_t left = bytes - i * PAIR_MTU;

	return left < PAIR_MTU ? left : PAIR_MTU;
}

/*
 * Sends the request packets from number `first` on. Returns when the receiver has placed the last.
 */
static uint64_t requests(struct pair *p, const struct pair_message *m, struct pair_truth *t,
			 uint64_t cycle, uint32_t first, bool again, bool lose_last)
{
	uint64_t placed = cycle;

	for (uint32_t i = first; i < t->packets; i++) {
		uint32_t len = m->op == URDMA_WR_READ ? 0 : part(m->bytes, i);
		uint32_t opcode = opcode_of(m->op, i, t->packets), psn = t->psn + i;
		bool last = i == t->packets - 1, lost = last && lose_last;
		uint64_t cut = cycle + 16 * (i - first), full, end;

		ADD(p, cut, m->nic, URDMA_TRACE_PKT, pkt, m->qpn, t->index, psn, opcode, len, 0,
		    again, last);
		full = fetch(p, m->nic, cut, len);
		ADD(p, full, m->nic, URDMA_TRACE_FULL, full, m->qpn, psn, opcode, 0);
		end = frame(p, m->nic, full + 4, m->qpn, m->qpn + 1, psn, opcode, len + 62, lost);
		if (!again && !i) {
			t->at[URDMA_AT_PACKET] = cut;
			t->at[URDMA_AT_FULL] = full;
		}
		if (!again && last)
			t->at[URDMA_AT_SENT] = end;
		if (lost)
			return end;
		placed = end + PAIR_WIRE + 26;
		ADD(p, placed - 8, !m->nic, URDMA_TRACE_RSP, rsp, m->qpn + 1, psn, opcode,
		    TRV_TAKEN);
		ADD(p, placed, !m->nic, URDMA_TRACE_PUT, put, m->qpn + 1, psn, 0);
		if (len)
			ADD(p, placed + 4, !m->nic, URDMA_TRACE_WR, wr, BUFFER, len);
	}
	return placed;
}

/* Sends the peer's READ responses or ACK. Returns when the requester has taken the last. */
static uint64_t answers(struct pair *p, const struct pair_message *m, const struct pair_truth *t,
			uint64_t cycle)
{
	uint32_t n = m->op == URDMA_WR_READ ? (m->bytes + PAIR_MTU - 1) / PAIR_MTU : 0;
	uint64_t end = cycle;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t opcode = n == 1 ? 0x10 : !i ? 0x0d : i == n - 1 ? 0x0f : 0x0e;
		uint32_t len = part(m->bytes, i), psn = t->psn + i;
		uint64_t full;

		ADD(p, cycle + 16 * i, !m->nic, URDMA_TRACE_PKT, pkt, m->qpn + 1, 0, psn, opcode,
		    len, 1, 0, i == n - 1);
		full = fetch(p, !m->nic, cycle + 16 * i, len);
		ADD(p, full, !m->nic, URDMA_TRACE_FULL, full, m->qpn + 1, psn, opcode, 0);
		end = frame(p, !m->nic, full + 4, m->qpn + 1, m->qpn, psn, opcode, len + 62,
			    false) +
		      PAIR_WIRE + 18;
		ADD(p, end, m->nic, URDMA_TRACE_REQ, req, m->qpn, psn, 0, 0);
		ADD(p, end + 2, m->nic, URDMA_TRACE_PUT, put, m->qpn, psn, 1);
		ADD(p, end + 4, m->nic, URDMA_TRACE_WR, wr, BUFFER, len);
	}
	if (n)
		return end + 4;
	ADD(p, cycle + 2, !m->nic, URDMA_TRACE_ANS, ans, m->qpn + 1, t->psn + t->packets - 1, 0);
	end = frame(p, !m->nic, cycle + 4, m->qpn + 1, m->qpn, t->psn + t->packets - 1, 0x11, 62,
		    false) +
	      PAIR_WIRE + 18;
	ADD(p, end, m->nic, URDMA_TRACE_REQ, req, m->qpn, t->psn + t->packets - 1, 0, 0);
	return end;
}

static uint64_t complete(struct pair *p, const struct pair_message *m, struct pair_truth *t,
			 uint64_t cycle)
{
	t->has_cqe = true;
	t->at[URDMA_AT_CQE] = cycle;
	t->at[URDMA_AT_REPORTED] = cycle + 5;
	/* The host gets the CQE's event, and tells the NIC that it has seen the CQE. */
	ADD(p, cycle + 6, m->nic, URDMA_TRACE_EQE, eqe, 1, URDMA_EV_CQ, 3);
	ADD(p, cycle + 9, m->nic, URDMA_TRACE_IRQ, irq, 1);
	ADD(p, cycle + 90, m->nic, URDMA_TRACE_CQ_DB, cq_db, 3, ++p->ci[m->nic], 1);
	ADD(p, cycle, m->nic, URDMA_TRACE_CQE, cqe, 3, m->qpn, t->index, 1, t->status);
	ADD(p, cycle + 5, m->nic, URDMA_TRACE_WR, wr, CQ_RING, URDMA_CQE_SIZE);
	return cycle + 5;
}

uint64_t pair_send(struct pair *p, uint64_t cycle, const struct pair_message *m)
{
	struct pair_qp *qp = &p->qp[m->nic][m->qpn];
	struct pair_truth *t;
	uint64_t at = cycle;

	p->truth = grow(p->truth, p->n_truth, &p->size_truth, sizeof(*p->truth));
	t = &p->truth[p->n_truth++];
	memset(t, 0, sizeof(*t));
	t->nic = m->nic;
	t->qpn = m->qpn;
	t->index = qp->pi++;
	t->op = m->op;
	t->bytes = m->bytes;
	t->psn = qp->psn;
	t->packets = m->op == URDMA_WR_READ ? 1 : (m->bytes + PAIR_MTU - 1) / PAIR_MTU;
	t->packets += !t->packets;
	qp->psn += m->op == URDMA_WR_READ ? (m->bytes + PAIR_MTU - 1) / PAIR_MTU : t->packets;

	t->at[URDMA_AT_WRITE] = at;
	ADD(p, at, m->nic, URDMA_TRACE_DB_WRITE, db_write, 4096 * 7 + URDMA_DB_SQ, 8,
	    m->qpn | (uint64_t)qp->pi << 32);
	t->at[URDMA_AT_TAKEN] = at += 10;
	ADD(p, at, m->nic, URDMA_TRACE_SQ_DB, sq_db, m->qpn, qp->pi);
	if (m->flush) {
		t->status = URDMA_WC_FLUSH_ERR;
		t->op = 0;
		t->bytes = t->psn = t->packets = 0;
		for (unsigned int i = URDMA_AT_TURN; i < URDMA_AT_CQE; i++)
			t->at[i] = at + 20;
		return complete(p, m, t, at + 20);
	}
	t->at[URDMA_AT_TURN] = at += 4;
	ADD(p, at, m->nic, URDMA_TRACE_TURN, turn, m->qpn, t->index, 1, 0);
	t->at[URDMA_AT_WQE] = at += 120;
	ADD(p, at, m->nic, URDMA_TRACE_WQE, wqe, m->qpn, t->index, t->psn, m->op, m->bytes);
	at = requests(p, m, t, at + 3, 0, false, m->losses);
	while (t->timeouts < m->losses) {
		t->timeouts++;
		at += PAIR_TIMEOUT;
		/* Two losses, one retry. */
		ADD(p, at - 9, m->nic, URDMA_TRACE_LOSS, loss, m->qpn, t->psn, TRC_IMPLIED, 0);
		ADD(p, at - 8, m->nic, URDMA_TRACE_LOSS, loss, m->qpn, t->psn, TRC_TIMEOUT, 0);
		ADD(p, at, m->nic, URDMA_TRACE_ACKED, acked, m->qpn, t->index,
		    t->psn + t->packets - 1, TRC_TIMEOUT);
		ADD(p, at + 4, m->nic, URDMA_TRACE_TURN, turn, m->qpn, t->index, 1, 1);
		at = requests(p, m, t, at + 130, t->packets - 1, true, t->timeouts < m->losses);
	}
	at = answers(p, m, t, at) + 6;
	t->at[URDMA_AT_ACKED] = t->at[URDMA_AT_CQE] = t->at[URDMA_AT_REPORTED] = at;
	ADD(p, at, m->nic, URDMA_TRACE_ACKED, acked, m->qpn, (uint16_t)(t->index + 1),
	    t->psn + t->packets, TRC_PROGRESS);
	return m->unsignaled ? at : complete(p, m, t, at + 6);
}

static int compare(const void *a, const void *b)
{
	const struct urdma_trace_event *x = a, *y = b;

	if (x->cycle != y->cycle)
		return x->cycle < y->cycle ? -1 : 1;
	/* The file does not promise an order inside a cycle: not the causal one. */
	return (int)y->kind - (int)x->kind;
}

void pair_sort(struct pair *p)
{
	uint64_t number[2] = { 0 }, cqes[2] = { 0 };

	qsort(p->event, p->n, sizeof(*p->event), compare);
	for (size_t i = 0; i < p->n; i++) {
		struct urdma_trace_event *e = &p->event[i];

		if (e->kind == URDMA_TRACE_TX_END || e->kind == URDMA_TRACE_RX_END)
			e->tx_end.number = ++number[e->nic];
		if (e->kind == URDMA_TRACE_WR && e->wr.addr == CQ_RING)
			e->wr.addr += cqes[e->nic]++ % CQ_ENTRIES * URDMA_CQE_SIZE;
	}
}

int pair_write(const struct pair *p, const char *path, uint64_t from, uint64_t to)
{
	/* Frames follow one another at the rate of the pins, which is below that of their links. */
	static const struct urdma_trace_nic nics[] = { { "urdma0", 200000, 200000 },
						       { "urdma1", 200000, 200000 } };
	struct urdma_recorder *r;
	int ret = urdma_recorder_open(path, nics, 2, p->trigger, &r);

	if (ret)
		return ret;
	for (size_t i = 0; i < p->n; i++)
		if (p->event[i].cycle >= from && p->event[i].cycle < to)
			urdma_recorder_add(r, &p->event[i]);
	return urdma_recorder_close(r);
}

void pair_free(struct pair *p)
{
	free(p->event);
	free(p->truth);
}
