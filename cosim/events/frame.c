// SPDX-License-Identifier: Apache-2.0
// Frames at the MACs, exchanges between NICs, packets at their receiver.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "events/state.h"
#include "urdma_trace_pkg.h"

/* ---- packets at their receiver --------------------------------------------------------------- */

static struct urdma_packet_wait *packet_at(struct urdma_nic *nic, uint32_t i)
{
	return &nic->packet[i % URDMA_MAX_PACKETS];
}

static void end_packet(struct urdma_follow *f, struct urdma_nic *nic, struct urdma_packet_wait *w)
{
	w->live = false;
	URDMA_TELL(f, packet, &w->p);
	while (nic->packet_n && !packet_at(nic, nic->packet_head)->live) {
		nic->packet_head++;
		nic->packet_n--;
	}
}

/* True if the life has every moment that it can have. */
static bool is_over(const struct urdma_packet *p)
{
	unsigned int op = p->opcode & 0x1f;

	if (p->decided == URDMA_NEVER)
		return false;
	if (op == 0x11 || p->verdict == TRV_DROPPED) /* acknowledge */
		return true;
	if (urdma_opcode_answers(p->opcode) || urdma_opcode_unreliable(p->opcode))
		return p->put != URDMA_NEVER;
	if (op == 0x0c || op == 0x13 || op == 0x14) /* READ, ATOMICs: the data is in the answer */
		return p->tx != URDMA_NEVER;
	return p->put != URDMA_NEVER && p->tx != URDMA_NEVER;
}

static struct urdma_packet *begin_packet(struct urdma_follow *f, struct urdma_nic *nic)
{
	struct urdma_packet_wait *w;

	if (!nic->packet)
		nic->packet = calloc(URDMA_MAX_PACKETS, sizeof(*nic->packet));
	if (!nic->packet)
		return NULL;
	if (nic->packet_n == URDMA_MAX_PACKETS)
		end_packet(f, nic, packet_at(nic, nic->packet_head));
	w = packet_at(nic, nic->packet_head + nic->packet_n++);
	memset(w, 0, sizeof(*w));
	w->live = true;
	w->p.rx = w->p.rx_end = w->p.in = w->p.decided = URDMA_NEVER;
	w->p.put = w->p.answered = w->p.tx = URDMA_NEVER;
	return &w->p;
}

static bool is_before(uint64_t psn, uint64_t other)
{
	return ((other - psn) & 0xffffff) < 0x800000;
}

/* The moments of packets, by event. */
static void move_packets(struct urdma_follow *f, unsigned int n, uint64_t qpn, uint64_t psn,
			 const struct urdma_trace_event *e)
{
	struct urdma_nic *nic = &f->nic[n];
	uint32_t end = nic->packet_head + nic->packet_n;

	for (uint32_t i = nic->packet_head; i != end; i++) {
		struct urdma_packet_wait *w = packet_at(nic, i);
		struct urdma_packet *p = &w->p;
		bool answer = urdma_opcode_answers(p->opcode), moved = false;

		if (!w->live || p->qpn != qpn)
			continue;
		switch (e->kind) {
		case URDMA_TRACE_RSP:
			if (p->decided == URDMA_NEVER && p->psn == psn && !answer &&
			    (p->opcode & 0x1f) == (e->rsp.opcode & 0x1f)) {
				p->decided = e->cycle;
				p->verdict = (uint8_t)e->rsp.verdict;
				moved = true;
			}
			break;
		case URDMA_TRACE_REQ:
			if (p->decided == URDMA_NEVER && p->psn == psn && answer) {
				struct urdma_qp *qp = urdma_follow_qp(nic, (uint32_t)qpn);

				p->decided = e->cycle;
				p->verdict = e->req.drop ? TRV_DROPPED : TRV_TAKEN;
				if (qp && !e->req.drop)
					qp->answer_frame = p->number;
				moved = true;
			}
			break;
		case URDMA_TRACE_PUT:
			if (p->decided != URDMA_NEVER && p->put == URDMA_NEVER && p->psn == psn &&
			    answer == !!e->put.resp) {
				p->put = e->cycle;
				moved = true;
			}
			break;
		case URDMA_TRACE_ANS: /* this one and all before it */
			if (p->decided != URDMA_NEVER && p->answered == URDMA_NEVER && !answer &&
			    is_before(p->psn, psn))
				p->answered = e->cycle;
			continue;
		case URDMA_TRACE_PKT: /* a response */
			if (p->decided != URDMA_NEVER && p->answered == URDMA_NEVER && !answer &&
			    p->psn == psn)
				p->answered = e->cycle;
			continue;
		default: /* tx_end of an answer: only its first beat counts */
			if (p->answered == URDMA_NEVER || p->tx != URDMA_NEVER ||
			    !is_before(p->psn, psn))
				continue;
			p->tx = nic->tx_begin == URDMA_NEVER ? e->cycle : nic->tx_begin;
			if (is_over(p))
				end_packet(f, nic, w);
			continue;
		}
		if (!moved)
			continue;
		if (is_over(p))
			end_packet(f, nic, w);
		return;
	}
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* A packet becomes a frame of a WQE, a response, or an ACK or NAK. */
static int out(struct urdma_follow *f, const struct urdma_trace_event *e)
{
	struct urdma_nic *nic = &f->nic[e->nic];
	struct urdma_qp *qp = urdma_follow_qp(nic, (uint32_t)e->out.qpn);
	uint64_t key = urdma_packet_key(0, e->out.psn, e->out.opcode & 0x1f);
	struct urdma_waiting_item *item = urdma_waiting_add(
		&nic->leaving, URDMA_MAX_PACKETS,
		urdma_packet_key(e->out.dqpn, e->out.psn, e->out.opcode), e->cycle);
	struct urdma_waiting_item *packet;

	if (!qp || !item)
		return -ENOMEM;
	item->nic = e->nic;
	item->qpn = qp->qpn;
	qp->unreliable = urdma_opcode_unreliable(e->out.opcode);
	packet = urdma_waiting_find(&qp->cut, key, NULL);
	while (packet && !packet->full)
		packet = urdma_waiting_find(&qp->cut, key, packet);
	if (!packet) {
		item->resp = true;
		return 0;
	}
	item->wqe = packet->wqe;
	item->resp = packet->resp;
	item->again = packet->again;
	item->last = packet->last;
	urdma_waiting_remove(&qp->cut, packet);
	return 0;
}

static struct urdma_frame frame_of(const struct urdma_trace_event *e, uint64_t begin)
{
	/* tx_end and rx_end have the same fields. */
	return (struct urdma_frame){
		.begin = begin == URDMA_NEVER ? e->cycle : begin,
		.end = e->cycle,
		.number = e->tx_end.number,
		.len = e->tx_end.len,
		.dqpn = (uint32_t)e->tx_end.dqpn,
		.psn = (uint32_t)e->tx_end.psn,
		.opcode = (uint8_t)e->tx_end.opcode,
		.qpn = URDMA_NO_QP,
		.nic = e->nic,
		.received = e->kind == URDMA_TRACE_RX_END,
		.rdma = e->tx_end.rdma,
		.error = e->tx_end.error,
	};
}

/*
 * The frames of a NIC leave in the order of `out`. Earlier ones still waiting did not go to the
 * MAC.
 */
static void leave(struct urdma_follow *f, struct urdma_frame *frame, uint64_t key)
{
	struct urdma_nic *nic = &f->nic[frame->nic];
	struct urdma_waiting_item *item = urdma_waiting_find(&nic->leaving, key, NULL), *old;

	if (!item)
		return;
	while ((old = urdma_waiting_next(&nic->leaving, NULL)) != item)
		urdma_waiting_remove(&nic->leaving, old);
	frame->qpn = item->qpn;
	frame->again = item->again;
	if (!item->resp) {
		frame->has_wqe = true;
		frame->wqe = item->wqe;
		urdma_wqe_sent(f, frame->nic, item, frame->end, frame->number);
	}
	urdma_waiting_remove(&nic->leaving, item);
}

static int tx_end(struct urdma_follow *f, const struct urdma_trace_event *e)
{
	struct urdma_nic *nic = &f->nic[e->nic];
	struct urdma_frame frame = frame_of(e, nic->tx_begin);
	uint64_t key = urdma_packet_key(frame.dqpn, frame.psn, frame.opcode);
	bool answer = urdma_opcode_answers(frame.opcode);
	struct urdma_waiting_item *item;

	if (frame.rdma)
		leave(f, &frame, key);
	if (frame.qpn != URDMA_NO_QP && answer) {
		item = urdma_waiting_find(&nic->requests, urdma_packet_key(frame.qpn, frame.psn, 0),
					  NULL);
		if (item) {
			frame.flow = item->id;
			urdma_waiting_remove(&nic->requests, item);
		}
		move_packets(f, e->nic, frame.qpn, frame.psn, e);
	} else if (frame.rdma && !frame.error) {
		frame.flow = ++f->flows;
	}
	nic->tx_begin = URDMA_NEVER;
	if (frame.rdma && !frame.error) {
		item = urdma_waiting_add(&f->wire, URDMA_MAX_PACKETS, key, e->cycle);
		if (!item)
			return -ENOMEM;
		item->nic = e->nic;
		item->id = frame.flow;
	}
	URDMA_TELL(f, frame, &frame);
	return 0;
}

/*
 * The oldest matching frame that another NIC has sent, preferably the NIC whose frames arrived here
 * last: other NICs may use the same QPs and PSNs.
 */
static struct urdma_waiting_item *sent_to(struct urdma_follow *f, unsigned int n, uint64_t key)
{
	struct urdma_waiting_item *item = NULL, *best = NULL;

	while ((item = urdma_waiting_find(&f->wire, key, item))) {
		if (item->nic == f->nic[n].peer)
			return item;
		if (item->nic != n && !best)
			best = item;
	}
	return best;
}

static int rx_end(struct urdma_follow *f, const struct urdma_trace_event *e)
{
	struct urdma_nic *nic = &f->nic[e->nic];
	struct urdma_frame frame = frame_of(e, nic->rx_begin);
	uint64_t key = urdma_packet_key(frame.dqpn, frame.psn, frame.opcode);
	struct urdma_waiting_item *item;

	nic->rx_begin = URDMA_NEVER;
	if (frame.rdma)
		frame.qpn = frame.dqpn;
	if (frame.rdma && !frame.error) {
		item = sent_to(f, e->nic, key);
		if (item) {
			frame.flow = item->id;
			nic->peer = item->nic;
			urdma_waiting_remove(&f->wire, item);
		}
		frame.flow_ends = frame.flow && urdma_opcode_answers(frame.opcode);
		item = urdma_waiting_add(&nic->arrived, URDMA_MAX_PACKETS, key, frame.begin);
		if (!item)
			return -ENOMEM;
		item->id = frame.end;
		item->number = frame.number;
		if (frame.flow && !frame.flow_ends) {
			item = urdma_waiting_add(&nic->requests, URDMA_MAX_PACKETS,
						 urdma_packet_key(frame.dqpn, frame.psn, 0),
						 e->cycle);
			if (!item)
				return -ENOMEM;
			item->id = frame.flow;
		}
	}
	URDMA_TELL(f, frame, &frame);
	return 0;
}

/*
 * The receiver has checked a packet. The parser keeps the order, so earlier frames that it has not
 * reported were dropped. A packet that has not arrived was looped back inside the NIC.
 */
static int in(struct urdma_follow *f, const struct urdma_trace_event *e)
{
	struct urdma_nic *nic = &f->nic[e->nic];
	uint64_t key = urdma_packet_key(e->in.qpn, e->in.psn, e->in.opcode);
	struct urdma_waiting_item *item = urdma_waiting_find(&nic->arrived, key, NULL), *old;
	uint64_t rx = URDMA_NEVER, rx_end = URDMA_NEVER, number = 0;
	struct urdma_packet *p;

	if (item) {
		while ((old = urdma_waiting_next(&nic->arrived, NULL)) != item)
			urdma_waiting_remove(&nic->arrived, old);
		rx = item->cycle;
		rx_end = item->id;
		number = item->number;
		urdma_waiting_remove(&nic->arrived, item);
	} else {
		item = urdma_waiting_find(&nic->leaving, key, NULL);
		if (item) {
			if (!item->resp)
				urdma_wqe_sent(f, e->nic, item, item->cycle, 0);
			urdma_waiting_remove(&nic->leaving, item);
		}
	}
	if (e->in.full)
		return 0;
	p = begin_packet(f, nic);
	if (!p)
		return -ENOMEM;
	p->nic = e->nic;
	p->qpn = (uint32_t)e->in.qpn;
	p->psn = (uint32_t)e->in.psn;
	p->opcode = (uint8_t)e->in.opcode;
	p->number = number;
	p->rx = rx;
	p->rx_end = rx_end;
	p->in = e->cycle;
	return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void end_packets(struct urdma_follow *f, struct urdma_nic *nic)
{
	while (nic->packet_n)
		end_packet(f, nic, packet_at(nic, nic->packet_head));
}

static void reset(struct urdma_follow *f, struct urdma_nic *nic)
{
	end_packets(f, nic);
	urdma_waiting_clear(&nic->leaving);
	urdma_waiting_clear(&nic->arrived);
	urdma_waiting_clear(&nic->requests);
}

void urdma_frame_end(struct urdma_follow *f)
{
	for (unsigned int i = 0; i < f->n_nics; i++)
		end_packets(f, &f->nic[i]);
}

void urdma_frame_free(struct urdma_nic *nic)
{
	urdma_waiting_free(&nic->leaving);
	urdma_waiting_free(&nic->arrived);
	urdma_waiting_free(&nic->requests);
	free(nic->packet);
}

int urdma_follow_frame(struct urdma_follow *f, const struct urdma_trace_event *e)
{
	struct urdma_nic *nic = &f->nic[e->nic];

	switch (e->kind) {
	case URDMA_TRACE_RESET:
		reset(f, nic);
		return 0;
	case URDMA_TRACE_OUT:
		return out(f, e);
	case URDMA_TRACE_TX:
		nic->tx_begin = e->cycle;
		return 0;
	case URDMA_TRACE_TX_END:
		return tx_end(f, e);
	case URDMA_TRACE_RX:
		nic->rx_begin = e->cycle;
		return 0;
	case URDMA_TRACE_RX_END:
		return rx_end(f, e);
	case URDMA_TRACE_IN:
		return in(f, e);
	case URDMA_TRACE_PKT:
		if (e->pkt.resp)
			move_packets(f, e->nic, e->pkt.qpn, e->pkt.psn, e);
		return 0;
	case URDMA_TRACE_RSP:
	case URDMA_TRACE_REQ:
	case URDMA_TRACE_PUT:
	case URDMA_TRACE_ANS:
		/* qpn and psn are the first fields of all these events. */
		move_packets(f, e->nic, e->field[0], e->field[1], e);
		return 0;
	default:
		return 0;
	}
}
