// SPDX-License-Identifier: Apache-2.0
// Collects the data of the report, in memory that does not grow with the run.
#include "events/stats.h"

#include <stdlib.h>
#include <string.h>

/* ---- levels ---------------------------------------------------------------------------------- */

uint64_t urdma_level_busy(const struct urdma_level *l, uint64_t until)
{
	return l->busy + (l->value ? until - l->since : 0);
}

static void set_level(struct urdma_level *l, const struct urdma_timeline *t, uint64_t value)
{
	if (l->begun == URDMA_NEVER)
		l->begun = l->since = t->at;
	l->area += (double)l->value * (double)(t->at - l->since);
	l->busy = urdma_level_busy(l, t->at);
	l->since = t->at;
	l->value = value;
	if (value > l->max)
		l->max = value;
}

double urdma_level_mean(const struct urdma_level *l, uint64_t until)
{
	if (l->begun == URDMA_NEVER || until == l->begun)
		return 0;
	return (l->area + (double)l->value * (double)(until - l->since)) /
	       (double)(until - l->begun);
}

/* A level that also has means per slice. */
static void change(const struct urdma_stats *s, struct urdma_level *l, struct urdma_series *series,
		   uint64_t value)
{
	urdma_series_level(series, &s->timeline, value);
	set_level(l, &s->timeline, value);
}

/* ---- NICs and QPs ---------------------------------------------------------------------------- */

struct urdma_stats *urdma_stats_create(const struct urdma_trace_nic *nic, unsigned int n,
				       const char *trigger)
{
	struct urdma_stats *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->nic = calloc(n, sizeof(*s->nic));
	if (!s->nic) {
		free(s);
		return NULL;
	}
	s->of = nic;
	s->n = n;
	s->trigger = trigger;
	s->trigger_cycle = URDMA_NEVER;
	urdma_timeline_init(&s->timeline, URDMA_SLICE_START, URDMA_PAUSE);
	for (unsigned int i = 0; i < n; i++) {
		s->nic[i].reads.begun = s->nic[i].posted.begun = s->nic[i].origin = URDMA_NEVER;
		for (unsigned int d = 0; d < 2; d++) {
			s->nic[i].wire.flow[d].mbps = nic[i].wire_mbps;
			s->nic[i].pcie.flow[d].mbps = nic[i].pcie_mbps;
		}
	}
	return s;
}

const struct urdma_qp_stats *urdma_stats_qp(const struct urdma_stats *s, unsigned int n,
					    uint32_t qpn)
{
	struct urdma_qp_stats **page = s->nic[n].qp[qpn / 256];

	return page ? page[qpn % 256] : NULL;
}

/* NULL: no memory. */
static struct urdma_qp_stats *qp_of(struct urdma_stats *s, unsigned int n, uint32_t qpn)
{
	struct urdma_qp_stats ***page = &s->nic[n].qp[qpn / 256];

	if (!*page)
		*page = calloc(256, sizeof(**page));
	if (*page && !(*page)[qpn % 256]) {
		(*page)[qpn % 256] = calloc(1, sizeof(struct urdma_qp_stats));
		if ((*page)[qpn % 256])
			(*page)[qpn % 256]->depth.begun = URDMA_NEVER;
	}
	if (!*page || !(*page)[qpn % 256]) {
		s->no_memory = true;
		return NULL;
	}
	return (*page)[qpn % 256];
}

static void free_messages(struct urdma_messages *m)
{
	urdma_histogram_free(&m->whole);
	for (unsigned int i = 0; i < URDMA_STAGES; i++)
		urdma_histogram_free(&m->stage[i]);
}

void urdma_stats_destroy(struct urdma_stats *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < s->n; i++) {
		struct urdma_nic_stats *nic = &s->nic[i];

		for (unsigned int k = 0; k < URDMA_EVENTS_MAX_QPS / 256; k++) {
			for (unsigned int q = 0; nic->qp[k] && q < 256; q++) {
				if (nic->qp[k][q]) {
					free_messages(&nic->qp[k][q]->messages);
					free(nic->qp[k][q]->times);
				}
				free(nic->qp[k][q]);
			}
			free(nic->qp[k]);
		}
		free_messages(&nic->messages);
		for (unsigned int k = 0; k < URDMA_HISTOGRAM_OCTAVES; k++)
			free(nic->split[k]);
		for (unsigned int k = 0; k < URDMA_PACKET_STAGES; k++)
			urdma_histogram_free(&nic->packet[k]);
	}
	free(s->nic);
	free(s);
}

/* ---- WQEs ------------------------------------------------------------------------------------ */

static void count_wqe(struct urdma_messages *m, const struct urdma_wqe *w)
{
	uint64_t end = w->at[URDMA_AT_REPORTED];

	if (!m->n || w->at[URDMA_AT_WRITE] < m->first)
		m->first = w->at[URDMA_AT_WRITE];
	if (end > m->last)
		m->last = end;
	m->n++;
	/* The data of a failed message is not delivered. */
	if (w->status)
		m->failed++;
	else
		m->bytes += w->bytes;
	m->completions += w->has_cqe;
	urdma_histogram_add(&m->whole, urdma_wqe_whole(w) * URDMA_CYCLE_NS);
	for (unsigned int i = 0; i < URDMA_STAGES; i++)
		urdma_histogram_add(&m->stage[i], urdma_wqe_stage(w, i) * URDMA_CYCLE_NS);
}

static void note_split(struct urdma_stats *s, const struct urdma_wqe *w)
{
	unsigned int i = urdma_histogram_number(urdma_wqe_whole(w) * URDMA_CYCLE_NS);
	urdma_split **split = &s->nic[w->nic].split[i / URDMA_HISTOGRAM_BUCKETS];

	if (!*split)
		*split = calloc(1, sizeof(**split));
	if (!*split) {
		s->no_memory = true;
		return;
	}
	for (unsigned int k = 0; k < URDMA_STAGES; k++)
		(**split)[i % URDMA_HISTOGRAM_BUCKETS / URDMA_MERGED][k] +=
			urdma_wqe_stage(w, k) * URDMA_CYCLE_NS;
}

/* Of equal ones the first is kept. */
static void note_slow(struct urdma_stats *s, const struct urdma_wqe *w)
{
	unsigned int i = s->n_slowest;

	while (i && urdma_wqe_whole(&s->slowest[i - 1]) < urdma_wqe_whole(w))
		i--;
	if (i == URDMA_SLOWEST)
		return;
	if (s->n_slowest < URDMA_SLOWEST)
		s->n_slowest++;
	memmove(s->slowest + i + 1, s->slowest + i, (s->n_slowest - 1 - i) * sizeof(*w));
	s->slowest[i] = *w;
}

static void wqe(void *ctx, const struct urdma_wqe *w)
{
	struct urdma_stats *s = ctx;
	struct urdma_qp_stats *qp = qp_of(s, w->nic, w->qpn);

	count_wqe(&s->nic[w->nic].messages, w);
	if (qp)
		count_wqe(&qp->messages, w);
	note_split(s, w);
	note_slow(s, w);
}

static void incomplete(void *ctx, unsigned int nic, uint32_t qpn, enum urdma_incomplete why,
		       uint64_t n)
{
	struct urdma_stats *s = ctx;
	struct urdma_qp_stats *qp = qp_of(s, nic, qpn);

	s->nic[nic].messages.incomplete[why] += n;
	if (qp)
		qp->messages.incomplete[why] += n;
}

static void retry(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint16_t index,
		  unsigned int cause)
{
	struct urdma_stats *s = ctx;
	struct urdma_qp_stats *qp = qp_of(s, nic, qpn);

	(void)cycle;
	(void)index;
	s->nic[nic].messages.retries[cause]++;
	if (qp)
		qp->messages.retries[cause]++;
}

static void resent(void *ctx, unsigned int nic, uint32_t qpn)
{
	struct urdma_stats *s = ctx;
	struct urdma_qp_stats *qp = qp_of(s, nic, qpn);

	s->nic[nic].messages.resent++;
	if (!qp)
		return;
	qp->messages.resent++;
	if (qp->times)
		urdma_series_add(&qp->times->resent, &s->timeline, 1);
}

static void depth(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint32_t value)
{
	struct urdma_stats *s = ctx;
	struct urdma_qp_stats *qp = qp_of(s, nic, qpn);
	struct urdma_nic_stats *n = &s->nic[nic];

	(void)cycle;
	if (!qp)
		return;
	change(s, &n->posted, &n->posted_series, n->posted.value + value - qp->depth.value);
	set_level(&qp->depth, &s->timeline, value);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void transfer(const struct urdma_stats *s, struct urdma_link_stats *l,
		     unsigned int direction, uint64_t bytes)
{
	l->bytes[direction] += bytes;
	/* Bytes during a pause are in no slice. */
	if (!s->timeline.begun || s->timeline.last != s->last)
		return;
	if (direction)
		urdma_flow_came(&l->flow[1], &s->timeline, bytes);
	else
		urdma_flow_goes(&l->flow[0], &s->timeline, bytes);
}

/* A frame of the QP has left. */
static void sent(struct urdma_stats *s, unsigned int nic, uint32_t qpn, uint64_t bytes)
{
	struct urdma_qp_stats *qp = qp_of(s, nic, qpn);

	if (!qp)
		return;
	if (!qp->times) {
		qp->times = calloc(1, sizeof(*qp->times));
		if (!qp->times) {
			s->no_memory = true;
			return;
		}
		qp->times->sent.mbps = s->of[nic].wire_mbps;
	}
	urdma_flow_came(&qp->times->sent, &s->timeline, bytes);
	qp->frames++;
	qp->bytes += bytes;
}

/* On the wire: at least 60 bytes, plus FCS 4, preamble 8, gap 12. */
static void frame(void *ctx, const struct urdma_frame *f)
{
	struct urdma_stats *s = ctx;
	struct urdma_nic_stats *nic = &s->nic[f->nic];

	uint64_t bytes = (f->len < 60 ? 60 : f->len) + 24;

	transfer(s, &nic->wire, f->received, bytes);
	nic->frames[f->received]++;
	nic->bad_frames += f->error;
	if (!f->received && f->qpn != URDMA_NO_QP)
		sent(s, f->nic, f->qpn, bytes);
}

static void change_reads(const struct urdma_stats *s, struct urdma_nic_stats *nic, uint64_t value)
{
	change(s, &nic->reads, &nic->reads_series, value);
}

static void read_begins(const struct urdma_stats *s, struct urdma_nic_stats *nic,
			const struct urdma_trace_event *e)
{
	if (e->rd.tag < sizeof(nic->read_bytes) / sizeof(*nic->read_bytes))
		nic->read_bytes[e->rd.tag] = e->rd.len;
	change_reads(s, nic, nic->reads.value + 1);
}

static void read_ends(const struct urdma_stats *s, struct urdma_nic_stats *nic,
		      const struct urdma_trace_event *e)
{
	if (e->rd_done.error) {
		nic->read_errors++;
	} else {
		nic->dma[1]++;
		if (e->rd_done.tag < sizeof(nic->read_bytes) / sizeof(*nic->read_bytes))
			nic->dma_payload[1] += nic->read_bytes[e->rd_done.tag];
	}
	/* The read may have begun before the file. */
	if (nic->reads.value)
		change_reads(s, nic, nic->reads.value - 1);
}

/*
 * Traffic: frames, and the events that start and end WQEs, but not commands and registers of a
 * driver. The trigger also counts, so that its moment is in the slices.
 */
static bool is_traffic(const struct urdma_trace_event *e)
{
	return e->kind == URDMA_TRACE_SQ_DB || e->kind == URDMA_TRACE_CQE ||
	       e->kind == URDMA_TRACE_OUT || e->kind == URDMA_TRACE_TX_END ||
	       e->kind == URDMA_TRACE_RX_END || e->kind == URDMA_TRACE_TRIGGER;
}

static void doorbell(struct urdma_stats *s, struct urdma_nic_stats *nic,
		     const struct urdma_trace_event *e)
{
	struct urdma_qp_stats *qp = qp_of(s, e->nic, (uint32_t)e->sq_db.qpn);

	nic->messages.doorbells++;
	if (qp)
		qp->messages.doorbells++;
}

static void lookup(struct urdma_nic_stats *nic, const struct urdma_trace_event *e)
{
	if (e->xlat.client >= URDMA_CLIENTS)
		return;
	nic->xlat[e->xlat.client].n++;
	nic->xlat[e->xlat.client].hits += e->xlat.pte_hit;
	nic->xlat[e->xlat.client].misses += e->xlat.pte_miss;
	nic->xlat[e->xlat.client].dir_hits += e->xlat.dir_hit;
	nic->xlat[e->xlat.client].dir_misses += e->xlat.dir_miss;
	nic->xlat[e->xlat.client].refused += e->xlat.refused;
}

static void event(void *ctx, const struct urdma_trace_event *e)
{
	struct urdma_stats *s = ctx;
	struct urdma_nic_stats *nic = &s->nic[e->nic];
	uint32_t tlp_bytes;
	bool to_host;

	if (!s->events++)
		s->first = e->cycle;
	s->last = e->cycle;
	urdma_timeline_move(&s->timeline, e->cycle, is_traffic(e));
	tlp_bytes = urdma_trace_tlp_bytes(e, &to_host);
	if (tlp_bytes)
		transfer(s, &nic->pcie, !to_host, tlp_bytes);
	switch (e->kind) {
	case URDMA_TRACE_RD:
		read_begins(s, nic, e);
		break;
	case URDMA_TRACE_RD_DONE:
		read_ends(s, nic, e);
		break;
	case URDMA_TRACE_WR:
		nic->dma[0]++;
		nic->dma_payload[0] += e->wr.len;
		break;
	case URDMA_TRACE_RESET:
		nic->origin = e->cycle + 1;
		change_reads(s, nic, 0);
		break;
	case URDMA_TRACE_IRQ:
		nic->irqs++;
		break;
	case URDMA_TRACE_SQ_DB:
		doorbell(s, nic, e);
		break;
	case URDMA_TRACE_IN:
		nic->dropped_full += e->in.full != 0;
		break;
	case URDMA_TRACE_ANS: /* bits 6:5 of the syndrome: 1 is an RNR NAK */
		nic->rnr_naks += (e->ans.syndrome >> 5 & 3) == 1;
		break;
	case URDMA_TRACE_CQE:
		nic->cqes[e->cqe.send != 0]++;
		break;
	case URDMA_TRACE_XLAT:
		lookup(nic, e);
		break;
	case URDMA_TRACE_LOSS:
		if (e->loss.cause < URDMA_CAUSES)
			nic->losses[e->loss.cause]++;
		break;
	case URDMA_TRACE_TRIGGER:
		s->trigger_cycle = e->cycle;
		s->trigger_nic = e->trigger.fault ? s->n : e->nic;
		break;
	case URDMA_TRACE_STALL:
		if (e->stall.stream >= URDMA_TRACE_STREAMS)
			break;
		nic->stall[e->stall.stream].n++;
		nic->stall[e->stall.stream].cycles += e->stall.cycles;
		if (e->stall.cycles > nic->stall[e->stall.stream].max)
			nic->stall[e->stall.stream].max = e->stall.cycles;
		break;
	default:
		break;
	}
}

static void packet(void *ctx, const struct urdma_packet *p)
{
	struct urdma_nic_stats *nic = &((struct urdma_stats *)ctx)->nic[p->nic];
	uint64_t cycles;

	if (urdma_opcode_answers(p->opcode) || p->decided == URDMA_NEVER)
		return;
	if (p->verdict < URDMA_VERDICTS)
		nic->verdicts[p->verdict]++;
	for (unsigned int i = 0; i < URDMA_PACKET_STAGES; i++)
		if (urdma_packet_stage(p, i, &cycles))
			urdma_histogram_add(&nic->packet[i], cycles * URDMA_CYCLE_NS);
}

void urdma_stats_end(struct urdma_stats *s)
{
	for (unsigned int i = 0; i < s->n; i++) {
		struct urdma_nic_stats *nic = &s->nic[i];

		for (unsigned int d = 0; d < 2; d++) {
			urdma_flow_end(&nic->pcie.flow[d], &s->timeline);
			urdma_flow_end(&nic->wire.flow[d], &s->timeline);
		}
		urdma_series_end(&nic->reads_series, &s->timeline);
		urdma_series_end(&nic->posted_series, &s->timeline);
		for (uint32_t qpn = 0; qpn < URDMA_EVENTS_MAX_QPS; qpn++) {
			const struct urdma_qp_stats *qp = urdma_stats_qp(s, i, qpn);

			if (!qp || !qp->times)
				continue;
			urdma_flow_end(&qp->times->sent, &s->timeline);
			urdma_series_end(&qp->times->resent, &s->timeline);
		}
	}
}

struct urdma_sink urdma_stats_sink(struct urdma_stats *stats)
{
	return (struct urdma_sink){
		.ctx = stats,
		.event = event,
		.wqe = wqe,
		.incomplete = incomplete,
		.frame = frame,
		.packet = packet,
		.retry = retry,
		.resent = resent,
		.depth = depth,
	};
}
