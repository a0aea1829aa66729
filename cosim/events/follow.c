// SPDX-License-Identifier: Apache-2.0
#include "events/follow.h"

#include <errno.h>
#include <stdlib.h>

#include "events/state.h"

/*
 * Maximum events of a cycle that are sorted together. A NIC has fewer; a damaged file may have
 * more.
 */
#define MOST_OF_A_CYCLE 2048u

const char *const urdma_stage_name[URDMA_STAGES] = {
	"posted",   "queued", "fetch",	    "held",   "payload",
	"transmit", "answer", "completion", "report",
};

const char *const urdma_packet_stage_name[URDMA_PACKET_STAGES] = {
	"receive", "check", "decide", "place", "answer", "send",
};

const char *const urdma_incomplete_key[URDMA_INCOMPLETES] = {
	"begun_before",
	"lacks_events",
	"abandoned",
	"not_ended",
};

const char *const urdma_incomplete_text[URDMA_INCOMPLETES] = {
	"began before the file does",
	"lack events, or have them in the wrong order",
	"ended with a reset or with their QP",
	"had not ended at the end of the file",
};

uint32_t urdma_wqe_retries(const struct urdma_wqe *w)
{
	uint32_t n = 0;

	for (unsigned int i = 1; i < URDMA_CAUSES; i++)
		n += urdma_cause_resends(i) ? w->retries[i] : 0;
	return n;
}

bool urdma_packet_stage(const struct urdma_packet *p, unsigned int stage, uint64_t *cycles)
{
	const uint64_t from[] = { p->rx, p->rx_end, p->in, p->decided, p->decided, p->answered };
	const uint64_t to[] = { p->rx_end, p->in, p->decided, p->put, p->answered, p->tx };

	if (from[stage] == URDMA_NEVER || to[stage] == URDMA_NEVER || to[stage] < from[stage])
		return false;
	*cycles = to[stage] - from[stage];
	return true;
}

struct urdma_qp *urdma_follow_qp(struct urdma_nic *nic, uint32_t qpn)
{
	struct urdma_qp ***page = &nic->qp[qpn / 256], **qp;

	if (!*page)
		*page = calloc(256, sizeof(**page));
	if (!*page)
		return NULL;
	qp = &(*page)[qpn % 256];
	if (!*qp) {
		*qp = calloc(1, sizeof(**qp));
		if (*qp) {
			(*qp)->qpn = qpn;
			(*qp)->known = nic->reset_seen;
		}
	}
	return *qp;
}

/*
 * The rank of a kind among the events of one cycle: a cause comes before its effect. For example, a
 * frame of one beat has out, tx and tx_end in the same cycle.
 */
static unsigned int place_of(const struct urdma_trace_event *event)
{
	static const uint8_t place[URDMA_TRACE_KINDS] = {
		[URDMA_TRACE_DB_WRITE] = 1, [URDMA_TRACE_SQ_DB] = 2,	[URDMA_TRACE_TURN] = 3,
		[URDMA_TRACE_WQE] = 4,	    [URDMA_TRACE_PKT] = 5,	[URDMA_TRACE_FULL] = 6,
		[URDMA_TRACE_ANS] = 7,	    [URDMA_TRACE_OUT] = 8,	[URDMA_TRACE_TX] = 9,
		[URDMA_TRACE_TX_END] = 10,  [URDMA_TRACE_RX] = 11,	[URDMA_TRACE_RX_END] = 12,
		[URDMA_TRACE_IN] = 13,	    [URDMA_TRACE_RSP] = 14,	[URDMA_TRACE_REQ] = 15,
		[URDMA_TRACE_PUT] = 16,	    [URDMA_TRACE_ACKED] = 17,	[URDMA_TRACE_CQE] = 18,
		[URDMA_TRACE_RD] = 19,	    [URDMA_TRACE_RD_DONE] = 20, [URDMA_TRACE_WR] = 21,
		[URDMA_TRACE_QP_END] = 22,
	};

	return place[event->kind];
}

/* Passes the events of the current cycle to the sinks and the lives. */
static int take_cycle(struct urdma_follow *f)
{
	int ret = 0;

	/* Insertion sort: a cycle has few events, and a file has them nearly in order. */
	for (unsigned int i = 1; i < f->n; i++) {
		struct urdma_trace_event event = f->event[i];
		unsigned int k = i;

		for (; k && place_of(&f->event[k - 1]) > place_of(&event); k--)
			f->event[k] = f->event[k - 1];
		f->event[k] = event;
	}
	for (unsigned int i = 0; i < f->n && !ret; i++) {
		URDMA_TELL(f, event, &f->event[i]);
		ret = urdma_follow_wqe(f, &f->event[i]);
		if (!ret)
			ret = urdma_follow_frame(f, &f->event[i]);
	}
	f->n = 0;
	return ret;
}

/* Object numbers of the NIC are below its limits. */
static bool sane(const struct urdma_follow *f, const struct urdma_trace_event *event)
{
	uint64_t obj = 0;

	switch (event->kind) {
	case URDMA_TRACE_SQ_DB:
	case URDMA_TRACE_RQ_DB:
	case URDMA_TRACE_CQ_DB:
	case URDMA_TRACE_WQE:
	case URDMA_TRACE_PKT:
	case URDMA_TRACE_FULL:
	case URDMA_TRACE_ANS:
	case URDMA_TRACE_OUT:
	case URDMA_TRACE_ACKED:
	case URDMA_TRACE_LOSS:
	case URDMA_TRACE_RSP:
	case URDMA_TRACE_REQ:
	case URDMA_TRACE_PUT:
	case URDMA_TRACE_QP_END:
		obj = event->field[0];
		break;
	case URDMA_TRACE_TURN:
		obj = event->turn.n < 32 ? event->turn.qpn : URDMA_EVENTS_MAX_QPS;
		break;
	case URDMA_TRACE_CQE:
		obj = event->cqe.qpn > event->cqe.cqn ? event->cqe.qpn : event->cqe.cqn;
		break;
	default:
		break;
	}
	return obj < URDMA_EVENTS_MAX_QPS && event->nic < f->n_nics;
}

int urdma_follow_event(struct urdma_follow *f, const struct urdma_trace_event *event)
{
	int ret = 0;

	if (!sane(f, event))
		return -EBADMSG;
	if (f->n && (event->cycle != f->cycle || f->n == MOST_OF_A_CYCLE))
		ret = take_cycle(f);
	if (f->n == f->size) {
		unsigned int size = f->size ? f->size * 2 : 64;
		struct urdma_trace_event *more = realloc(f->event, size * sizeof(*more));

		if (!more)
			return -ENOMEM;
		f->event = more;
		f->size = size;
	}
	f->cycle = event->cycle;
	f->event[f->n++] = *event;
	return ret;
}

int urdma_follow_end(struct urdma_follow *f)
{
	int ret = take_cycle(f);

	for (unsigned int i = 0; i < f->n_nics; i++)
		urdma_wqe_drop(f, i, URDMA_NOT_ENDED);
	urdma_frame_end(f);
	return ret;
}

struct urdma_follow *urdma_follow_create(unsigned int n_nics, const struct urdma_sink *sink,
					 unsigned int n_sinks)
{
	struct urdma_follow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->nic = calloc(n_nics, sizeof(*f->nic));
	if (!f->nic) {
		free(f);
		return NULL;
	}
	f->n_nics = n_nics;
	f->sink = sink;
	f->n_sinks = n_sinks;
	for (unsigned int i = 0; i < n_nics; i++) {
		f->nic[i].tx_begin = f->nic[i].rx_begin = URDMA_NEVER;
		f->nic[i].peer = n_nics;
	}
	return f;
}

void urdma_follow_destroy(struct urdma_follow *f)
{
	if (!f)
		return;
	for (unsigned int i = 0; i < f->n_nics; i++) {
		urdma_wqe_free(&f->nic[i]);
		urdma_frame_free(&f->nic[i]);
	}
	urdma_waiting_free(&f->wire);
	free(f->nic);
	free(f->event);
	free(f);
}
