// SPDX-License-Identifier: Apache-2.0
// The lives of send WQEs, from doorbell to CQE.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "events/state.h"
#include "urdma_hw.h"
#include "urdma_trace_pkg.h"

#define PAGE 4096u

/* A CQE's DMA write is given up after this number of other writes of a CQE's size. */
#define MAX_PASSED 4u

/* True if a is before b, as indices of a send queue. */
static bool before(uint16_t a, uint16_t b)
{
	return (uint16_t)(b - a - 1) < URDMA_MAX_WQES;
}

static struct urdma_wqe *at(struct urdma_qp *qp, uint16_t index)
{
	return &qp->wqe[index & (qp->size - 1)];
}

/* NULL: no such life. */
static struct urdma_wqe *get(struct urdma_qp *qp, uint16_t index)
{
	return (uint16_t)(index - qp->head) < qp->n ? at(qp, index) : NULL;
}

static void first_time(struct urdma_wqe *w, enum urdma_moment moment, uint64_t cycle)
{
	if (w->at[moment] == URDMA_NEVER)
		w->at[moment] = cycle;
}

static void tell_depth(struct urdma_follow *f, unsigned int nic, const struct urdma_qp *qp,
		       uint64_t cycle)
{
	URDMA_TELL(f, depth, cycle, nic, qp->qpn, qp->n - qp->n_acked);
}

static void change_flight(struct urdma_follow *f, unsigned int nic, uint64_t cycle, uint64_t plus,
			  uint64_t minus)
{
	if (plus == minus)
		return;
	f->nic[nic].flight += plus - minus;
	URDMA_TELL(f, flight, cycle, nic, f->nic[nic].flight);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/*
 * Fills in missing moments of the WQE: the stage in which it was gets the time until the next
 * moment, the other stages get length 0. False: a required event is missing.
 */
static bool settle(struct urdma_wqe *w)
{
	bool success = w->status == URDMA_WC_SUCCESS;
	unsigned int must = 1u << URDMA_AT_TAKEN;

	if (!w->has_cqe)
		w->at[URDMA_AT_CQE] = w->at[URDMA_AT_REPORTED] = w->at[URDMA_AT_ACKED];
	if (success)
		must |= 1u << URDMA_AT_WQE | 1u << URDMA_AT_ACKED;
	if (success && urdma_op_sends(w->op) && !w->unreliable)
		must |= 1u << URDMA_AT_PACKET | 1u << URDMA_AT_FULL | 1u << URDMA_AT_SENT;
	for (unsigned int i = URDMA_AT_REPORTED; i--;) {
		if (w->at[i] == URDMA_NEVER) {
			if (must & 1u << i)
				return false;
			w->at[i] = w->at[i + 1];
		}
		if (w->at[i] > w->at[i + 1]) {
			if (success && !w->unreliable)
				return false;
			w->at[i] = w->at[i + 1];
		}
	}
	return true;
}

/* Ends a life. UC and UD complete without an answer, perhaps before the frame has left. */
static void finish(struct urdma_follow *f, struct urdma_wqe *w)
{
	const struct urdma_qp *qp = urdma_follow_qp(&f->nic[w->nic], w->qpn);

	w->unreliable = qp && qp->unreliable;
	if (w->at[URDMA_AT_WRITE] == URDMA_NEVER)
		URDMA_TELL(f, incomplete, w->nic, w->qpn, URDMA_BEGUN_BEFORE, 1);
	else if (!settle(w))
		URDMA_TELL(f, incomplete, w->nic, w->qpn, URDMA_LACKS_EVENTS, 1);
	else
		URDMA_TELL(f, wqe, w);
}

/* Removes the oldest life of a QP, which stays valid until the next one is added. */
static struct urdma_wqe *pop(struct urdma_follow *f, struct urdma_qp *qp, uint64_t cycle)
{
	struct urdma_wqe *w = at(qp, qp->head++);

	qp->n--;
	if (qp->n_acked)
		qp->n_acked--;
	else
		tell_depth(f, w->nic, qp, cycle);
	change_flight(f, w->nic, cycle, 0, w->flight);
	w->flight = 0;
	qp->settled = true;
	return w;
}

/* Ends lives that lack events. */
static void abandon(struct urdma_follow *f, unsigned int nic, struct urdma_qp *qp, uint64_t cycle,
		    enum urdma_incomplete why)
{
	uint64_t begun_before = 0, n = qp->n;

	while (qp->n)
		if (pop(f, qp, cycle)->at[URDMA_AT_WRITE] == URDMA_NEVER)
			begun_before++;
	if (begun_before)
		URDMA_TELL(f, incomplete, nic, qp->qpn, URDMA_BEGUN_BEFORE, begun_before);
	if (n > begun_before)
		URDMA_TELL(f, incomplete, nic, qp->qpn, why, n - begun_before);
	urdma_waiting_clear(&qp->cut);
	qp->settled = false;
	qp->before_n = 0;
}

/* An event of a WQE whose doorbell is not in the file. Each index counts once. */
static void begun_before(struct urdma_follow *f, unsigned int nic, struct urdma_qp *qp,
			 uint16_t index)
{
	uint32_t n = 1;

	if (!qp->before_n) {
		qp->before_lo = index;
	} else if (before(index, qp->before_lo)) {
		n = (uint16_t)(qp->before_lo - index);
		qp->before_lo = index;
	} else {
		uint32_t end = (uint16_t)(index - qp->before_lo) + 1u;

		if (end <= qp->before_n)
			return;
		n = end - qp->before_n;
	}
	qp->before_n += n;
	URDMA_TELL(f, incomplete, nic, qp->qpn, URDMA_BEGUN_BEFORE, n);
}

/* ---- doorbells ------------------------------------------------------------------------------- */

static int db_write(struct urdma_follow *f, const struct urdma_trace_event *e)
{
	uint64_t word = e->db_write.value;
	uint64_t key = (word & URDMA_DBW_OBJ) << 32 | (word >> 32 & 0xffff);
	struct urdma_waiting_item *item;

	if (e->db_write.len != 8 || e->db_write.offset % URDMA_DB_PAGE_SIZE != URDMA_DB_SQ)
		return 0;
	item = urdma_waiting_add(&f->nic[e->nic].doorbells, URDMA_MAX_DOORBELLS, key, e->cycle);
	if (!item)
		return -ENOMEM;
	item->number = e->db_write.offset / URDMA_DB_PAGE_SIZE;
	return 0;
}

static int add(struct urdma_qp *qp, unsigned int nic, uint64_t written, uint64_t taken)
{
	struct urdma_wqe *w;

	if (qp->n == qp->size) {
		uint32_t size = qp->size ? qp->size * 2 : 16;
		struct urdma_wqe *more = calloc(size, sizeof(*more));

		if (!more)
			return -ENOMEM;
		for (uint32_t i = 0; i < qp->n; i++) {
			uint16_t index = (uint16_t)(qp->head + i);

			more[index & (size - 1)] = *at(qp, index);
		}
		free(qp->wqe);
		qp->wqe = more;
		qp->size = size;
	}
	if (!qp->n)
		qp->head = qp->pi;
	w = at(qp, qp->pi);
	memset(w, 0, sizeof(*w));
	for (unsigned int i = 0; i < URDMA_MOMENTS; i++)
		w->at[i] = URDMA_NEVER;
	w->at[URDMA_AT_WRITE] = written;
	w->at[URDMA_AT_TAKEN] = taken;
	w->nic = (uint8_t)nic;
	w->qpn = qp->qpn;
	w->index = qp->pi++;
	qp->n++;
	return 0;
}

/* Indexes restart at 0. */
static void new_life(struct urdma_follow *f, unsigned int nic, struct urdma_qp *qp, uint64_t cycle)
{
	abandon(f, nic, qp, cycle, URDMA_ABANDONED);
	qp->pi = 0;
	qp->known = true;
	qp->settled = true;
}

/* The QP is destroyed or reset. Acknowledged WQEs are complete: they were unsignaled. */
static void qp_end(struct urdma_follow *f, const struct urdma_trace_event *e, struct urdma_qp *qp)
{
	struct urdma_waiting *doorbells = &f->nic[e->nic].doorbells;
	struct urdma_waiting_item *item = NULL;

	while (qp->n_acked)
		finish(f, pop(f, qp, e->cycle));
	new_life(f, e->nic, qp, e->cycle);
	while ((item = urdma_waiting_next(doorbells, item)))
		if (item->key >> 32 == qp->qpn)
			urdma_waiting_remove(doorbells, item);
}

/*
 * WQEs up to pi begin. The NIC may merge doorbells, so each WQE begins with the first write that
 * covered it in the doorbell page of the accepted one.
 */
static int sq_db(struct urdma_follow *f, const struct urdma_trace_event *e, struct urdma_qp *qp)
{
	struct urdma_waiting *doorbells = &f->nic[e->nic].doorbells;
	struct urdma_waiting_item *last, *item = NULL;
	uint16_t pi = (uint16_t)e->sq_db.pi;
	int ret = 0;

	last = urdma_waiting_find(doorbells, (uint64_t)qp->qpn << 32 | pi, NULL);
	if (!qp->known) {
		qp->pi = pi;
		qp->known = true;
	} else if (pi != qp->pi && !before(qp->pi, pi)) {
		/* The event of the QP's end is missing. */
		new_life(f, e->nic, qp, e->cycle);
	}
	/* A slot of the ring is reused, so its WQE is completed. */
	while (qp->n && qp->n + (uint16_t)(pi - qp->pi) > URDMA_MAX_WQES)
		finish(f, pop(f, qp, e->cycle));
	while (last && (item = urdma_waiting_next(doorbells, item))) {
		uint16_t end = (uint16_t)item->key;

		if (item->key >> 32 == qp->qpn && item->number == last->number) {
			while (!ret && before(qp->pi, end) && !before(pi, end))
				ret = add(qp, e->nic, item->cycle, e->cycle);
			urdma_waiting_remove(doorbells, item);
		}
		if (item == last)
			break;
	}
	while (!ret && qp->pi != pi)
		ret = add(qp, e->nic, URDMA_NEVER, e->cycle);
	tell_depth(f, e->nic, qp, e->cycle);
	return ret;
}

/* ---- requester ------------------------------------------------------------------------------- */

static void turn(struct urdma_follow *f, const struct urdma_trace_event *e, struct urdma_qp *qp)
{
	for (uint16_t i = 0; i < e->turn.n; i++) {
		uint16_t index = (uint16_t)(e->turn.wqe + i);
		struct urdma_wqe *w = get(qp, index);

		if (w)
			first_time(w, URDMA_AT_TURN, e->cycle);
		else if (!qp->settled && !f->nic[e->nic].reset_seen)
			begun_before(f, e->nic, qp, index);
	}
}

static void wqe(struct urdma_follow *f, const struct urdma_trace_event *e, struct urdma_qp *qp)
{
	struct urdma_wqe *w = get(qp, (uint16_t)e->wqe.wqe);

	if (!w) {
		if (!qp->settled && !f->nic[e->nic].reset_seen)
			begun_before(f, e->nic, qp, (uint16_t)e->wqe.wqe);
		return;
	}
	first_time(w, URDMA_AT_WQE, e->cycle);
	w->psn = (uint32_t)e->wqe.psn;
	w->op = (uint8_t)e->wqe.op;
	w->bytes = (uint32_t)e->wqe.len;
}

/* Not all these opcodes include the transport, so the key within a QP uses five bits. */
static uint64_t key_of(uint64_t psn, uint64_t opcode)
{
	return urdma_packet_key(0, psn, opcode & 0x1f);
}

static int pkt(struct urdma_follow *f, const struct urdma_trace_event *e, struct urdma_qp *qp)
{
	struct urdma_waiting_item *item = urdma_waiting_add(
		&qp->cut, URDMA_MAX_PACKETS, key_of(e->pkt.psn, e->pkt.opcode), e->cycle);
	struct urdma_wqe *w = e->pkt.resp ? NULL : get(qp, (uint16_t)e->pkt.wqe);

	if (!item)
		return -ENOMEM;
	item->qpn = qp->qpn;
	item->wqe = (uint16_t)e->pkt.wqe;
	item->nic = e->nic;
	item->resp = e->pkt.resp;
	item->again = e->pkt.again;
	item->last = e->pkt.last;
	if (!w)
		return 0;
	first_time(w, URDMA_AT_PACKET, e->cycle);
	item->first = e->pkt.psn == w->psn;
	if (e->pkt.again)
		return 0;
	w->packets++;
	w->flight += (uint32_t)e->pkt.len;
	change_flight(f, e->nic, e->cycle, e->pkt.len, 0);
	return 0;
}

static void full(struct urdma_follow *f, const struct urdma_trace_event *e, struct urdma_qp *qp)
{
	uint64_t key = key_of(e->full.psn, e->full.opcode);
	struct urdma_waiting_item *item = urdma_waiting_find(&qp->cut, key, NULL);
	struct urdma_wqe *w;

	while (item && item->full)
		item = urdma_waiting_find(&qp->cut, key, item);
	if (!item)
		return;
	if (e->full.drop) {
		urdma_waiting_remove(&qp->cut, item);
		return;
	}
	item->full = true;
	if (item->again && !item->resp)
		URDMA_TELL(f, resent, e->nic, qp->qpn);
	w = item->resp ? NULL : get(qp, item->wqe);
	if (w && item->first)
		first_time(w, URDMA_AT_FULL, e->cycle);
}

static void note_again(struct urdma_wqe *w, uint64_t number)
{
	if (w->n_again && number == w->again[w->n_again - 1].last + 1) {
		w->again[w->n_again - 1].last = number;
	} else if (w->n_again < URDMA_AGAIN_RANGES) {
		w->again[w->n_again].first = w->again[w->n_again].last = number;
		w->n_again++;
	} else {
		w->more_again = true;
	}
}

void urdma_wqe_sent(struct urdma_follow *f, unsigned int nic,
		    const struct urdma_waiting_item *frame, uint64_t cycle, uint64_t number)
{
	struct urdma_qp *qp = urdma_follow_qp(&f->nic[nic], frame->qpn);
	struct urdma_wqe *w = qp ? get(qp, frame->wqe) : NULL;

	if (!w)
		return;
	if (!w->first_frame)
		w->first_frame = number;
	if (frame->again && number && !w->more_again)
		note_again(w, number);
	if (frame->last && w->at[URDMA_AT_SENT] == URDMA_NEVER) {
		w->at[URDMA_AT_SENT] = cycle;
		w->last_frame = number;
	}
}

static void acked(struct urdma_follow *f, const struct urdma_trace_event *e, struct urdma_qp *qp)
{
	uint16_t index = (uint16_t)e->acked.wqe;
	uint32_t n_acked = qp->n_acked;
	uint64_t done = 0;

	for (; qp->n_acked < qp->n; qp->n_acked++) {
		struct urdma_wqe *w = at(qp, (uint16_t)(qp->head + qp->n_acked));

		if (!before(w->index, index))
			break;
		first_time(w, URDMA_AT_ACKED, e->cycle);
		w->answer_frame = qp->answer_frame;
		done += w->flight;
		w->flight = 0;
	}
	if (qp->n_acked != n_acked)
		tell_depth(f, e->nic, qp, e->cycle);
	change_flight(f, e->nic, e->cycle, 0, done);
	if (e->acked.cause == TRC_PROGRESS || e->acked.cause >= URDMA_CAUSES)
		return;
	for (uint32_t i = qp->n_acked; i < qp->n; i++) {
		struct urdma_wqe *w = at(qp, (uint16_t)(qp->head + i));

		if (w->at[URDMA_AT_PACKET] == URDMA_NEVER)
			break;
		w->retries[e->acked.cause]++;
	}
	URDMA_TELL(f, retry, e->cycle, e->nic, qp->qpn, index, (unsigned int)e->acked.cause);
}

/* ---- completions ----------------------------------------------------------------------------- */

/* NULL: no memory. */
static struct urdma_cq_place *place_of(struct urdma_nic *nic, uint32_t cqn)
{
	struct urdma_cq_place **page = &nic->cq[cqn / 256];

	if (!*page)
		*page = calloc(256, sizeof(**page));
	return *page ? &(*page)[cqn % 256] : NULL;
}

static struct urdma_cqe_wait *oldest_cqe(struct urdma_nic *nic)
{
	return nic->cqe_n ? &nic->cqe[nic->cqe_head % URDMA_MAX_CQES] : NULL;
}

static void next_cqe(struct urdma_nic *nic)
{
	nic->cqe_head++;
	nic->cqe_n--;
}

static void lose_cqe(struct urdma_follow *f, unsigned int nic, enum urdma_incomplete why)
{
	struct urdma_cqe_wait *c = oldest_cqe(&f->nic[nic]);

	if (c->send)
		URDMA_TELL(f, incomplete, nic, c->wqe.qpn, why, 1);
	next_cqe(&f->nic[nic]);
}

static int cqe(struct urdma_follow *f, const struct urdma_trace_event *e, struct urdma_qp *qp)
{
	struct urdma_nic *nic = &f->nic[e->nic];
	uint16_t index = (uint16_t)e->cqe.wqe;
	bool known = e->cqe.send && get(qp, index);
	struct urdma_cqe_wait *c;

	if (e->cqe.send && !known)
		begun_before(f, e->nic, qp, index);
	if (!nic->cqe)
		nic->cqe = calloc(URDMA_MAX_CQES, sizeof(*nic->cqe));
	if (!nic->cqe)
		return -ENOMEM;
	if (nic->cqe_n == URDMA_MAX_CQES)
		lose_cqe(f, e->nic, URDMA_LACKS_EVENTS);
	c = &nic->cqe[(nic->cqe_head + nic->cqe_n++) % URDMA_MAX_CQES];
	memset(c, 0, sizeof(*c));
	c->cqn = (uint32_t)e->cqe.cqn;
	c->send = known;
	if (!c->send)
		return 0;
	/* CQEs come in the order of the WQEs, so earlier WQEs have none. */
	while (qp->head != index)
		finish(f, pop(f, qp, e->cycle));
	c->wqe = *pop(f, qp, e->cycle);
	c->wqe.at[URDMA_AT_CQE] = e->cycle;
	c->wqe.status = (uint8_t)e->cqe.status;
	c->wqe.has_cqe = true;
	return 0;
}

/* True if a write of this size can be the next CQE of a CQ, whose ring has whole pages. */
static bool is_cqe(const struct urdma_cq_place *place, uint64_t addr)
{
	if (!place->next || addr == place->next)
		return true;
	if (place->first % PAGE == 0 && addr == place->first)
		return true; /* the ring wraps around */
	return (place->next % PAGE == 0 || place->first % PAGE) && addr % PAGE == 0;
}

/*
 * A DMA write leaves the NIC. CQEs leave in the order of their events. Size and address distinguish
 * them from payload: each CQE directly follows the one before it.
 */
static int wr(struct urdma_follow *f, const struct urdma_trace_event *e)
{
	struct urdma_nic *nic = &f->nic[e->nic];
	struct urdma_cqe_wait *c = oldest_cqe(nic);
	struct urdma_cq_place *place;
	uint64_t addr = e->wr.addr;

	if (!c || e->wr.len != URDMA_CQE_SIZE || addr % URDMA_CQE_SIZE)
		return 0;
	place = place_of(nic, c->cqn);
	if (!place)
		return -ENOMEM;
	if (!is_cqe(place, addr)) {
		if (++c->passed < MAX_PASSED)
			return 0;
		/* The CQ number now belongs to another CQ. */
		place->next = place->first = 0;
		while (nic->cqe_n)
			lose_cqe(f, e->nic, URDMA_LACKS_EVENTS);
		return 0;
	}
	if (!place->next || (place->first % PAGE && addr % PAGE == 0))
		place->first = addr;
	place->next = addr + URDMA_CQE_SIZE;
	if (c->send) {
		c->wqe.at[URDMA_AT_REPORTED] = e->cycle;
		finish(f, &c->wqe);
	}
	next_cqe(nic);
	return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

void urdma_wqe_drop(struct urdma_follow *f, unsigned int n, enum urdma_incomplete why)
{
	struct urdma_nic *nic = &f->nic[n];

	for (uint32_t i = 0; i < URDMA_EVENTS_MAX_QPS; i++) {
		struct urdma_qp *qp = nic->qp[i / 256] ? nic->qp[i / 256][i % 256] : NULL;

		if (!nic->qp[i / 256])
			i |= 255;
		if (!qp)
			continue;
		abandon(f, n, qp, f->cycle, why);
		qp->pi = 0;
		qp->known = true;
	}
	while (nic->cqe_n)
		lose_cqe(f, n, why);
	for (uint32_t i = 0; i < URDMA_EVENTS_MAX_QPS / 256; i++) {
		free(nic->cq[i]);
		nic->cq[i] = NULL;
	}
	urdma_waiting_clear(&nic->doorbells);
}

void urdma_wqe_free(struct urdma_nic *nic)
{
	for (uint32_t i = 0; i < URDMA_EVENTS_MAX_QPS / 256; i++) {
		for (uint32_t k = 0; nic->qp[i] && k < 256; k++) {
			struct urdma_qp *qp = nic->qp[i][k];

			if (!qp)
				continue;
			urdma_waiting_free(&qp->cut);
			free(qp->wqe);
			free(qp);
		}
		free(nic->qp[i]);
		free(nic->cq[i]);
	}
	urdma_waiting_free(&nic->doorbells);
	free(nic->cqe);
}

int urdma_follow_wqe(struct urdma_follow *f, const struct urdma_trace_event *e)
{
	struct urdma_nic *nic = &f->nic[e->nic];
	struct urdma_qp *qp = NULL;

	switch (e->kind) {
	case URDMA_TRACE_RESET:
		urdma_wqe_drop(f, e->nic, URDMA_ABANDONED);
		nic->reset_seen = true;
		return 0;
	case URDMA_TRACE_DB_WRITE:
		return db_write(f, e);
	case URDMA_TRACE_WR:
		return wr(f, e);
	case URDMA_TRACE_CQE:
		qp = urdma_follow_qp(nic, (uint32_t)e->cqe.qpn);
		return qp ? cqe(f, e, qp) : -ENOMEM;
	case URDMA_TRACE_SQ_DB:
	case URDMA_TRACE_TURN:
	case URDMA_TRACE_WQE:
	case URDMA_TRACE_PKT:
	case URDMA_TRACE_FULL:
	case URDMA_TRACE_ACKED:
	case URDMA_TRACE_QP_END:
		break;
	default:
		return 0;
	}
	/* qpn is the first field of all these events. */
	qp = urdma_follow_qp(nic, (uint32_t)e->field[0]);
	if (!qp)
		return -ENOMEM;
	switch (e->kind) {
	case URDMA_TRACE_SQ_DB:
		return sq_db(f, e, qp);
	case URDMA_TRACE_PKT:
		return pkt(f, e, qp);
	case URDMA_TRACE_TURN:
		turn(f, e, qp);
		break;
	case URDMA_TRACE_WQE:
		wqe(f, e, qp);
		break;
	case URDMA_TRACE_FULL:
		full(f, e, qp);
		break;
	case URDMA_TRACE_QP_END:
		qp_end(f, e, qp);
		break;
	default:
		acked(f, e, qp);
		break;
	}
	return 0;
}
