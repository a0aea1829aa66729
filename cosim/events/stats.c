// SPDX-License-Identifier: Apache-2.0
// Collects what the report needs, in memory that does not grow with the run.
#include "events/stats.h"

#include <stdlib.h>
#include <string.h>

/* ---- levels ---------------------------------------------------------------------------------- */

static void set_level(struct urdma_level *l, uint64_t cycle, uint64_t value)
{
	if (l->begun == URDMA_NEVER)
		l->begun = l->since = cycle;
	if (cycle > l->since)
		l->area += (double)l->value * (double)(cycle - l->since);
	l->since = cycle;
	l->value = value;
	if (value > l->max)
		l->max = value;
}

double urdma_level_mean(const struct urdma_level *l, uint64_t now)
{
	if (l->begun == URDMA_NEVER || now <= l->begun)
		return 0;
	return (l->area + (double)l->value * (double)(now - l->since)) / (double)(now - l->begun);
}

/* ---- NICs and QPs ---------------------------------------------------------------------------- */

struct urdma_stats *urdma_stats_create(const char *const *name, unsigned int n)
{
	struct urdma_stats *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->nic = calloc(n, sizeof(*s->nic));
	if (!s->nic) {
		free(s);
		return NULL;
	}
	s->name = name;
	s->n = n;
	for (unsigned int i = 0; i < n; i++)
		s->nic[i].reads.begun = URDMA_NEVER;
	return s;
}

static void begin(struct urdma_stats *s, uint64_t cycle)
{
	s->first = cycle;
	for (unsigned int i = 0; i < s->n; i++) {
		for (unsigned int d = 0; d < 2; d++) {
			urdma_series_init(&s->nic[i].pcie.series[d], cycle);
			urdma_series_init(&s->nic[i].wire.series[d], cycle);
		}
		urdma_series_init(&s->nic[i].reads_series, cycle);
	}
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
				if (nic->qp[k][q])
					free_messages(&nic->qp[k][q]->messages);
				free(nic->qp[k][q]);
			}
			free(nic->qp[k]);
		}
		free_messages(&nic->messages);
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
	/* Data of a message that failed is not delivered. */
	if (w->status)
		m->failed++;
	else
		m->bytes += w->bytes;
	m->repeated += w->repeated;
	urdma_histogram_add(&m->whole, urdma_wqe_whole(w) * URDMA_CYCLE_NS);
	for (unsigned int i = 0; i < URDMA_STAGES; i++)
		urdma_histogram_add(&m->stage[i], urdma_wqe_stage(w, i) * URDMA_CYCLE_NS);
}

/* Of equal ones the first stays. */
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

static void depth(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint32_t value)
{
	struct urdma_qp_stats *qp = qp_of(ctx, nic, qpn);

	if (qp)
		set_level(&qp->depth, cycle, value);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void transfer(struct urdma_link_stats *l, unsigned int direction, uint64_t cycle,
		     uint64_t bytes)
{
	l->n[direction]++;
	l->bytes[direction] += bytes;
	urdma_series_add(&l->series[direction], cycle, bytes);
}

/* On the wire: at least 60 bytes, FCS 4, preamble 8, gap 12. */
static void frame(void *ctx, const struct urdma_frame *f)
{
	struct urdma_nic_stats *nic = &((struct urdma_stats *)ctx)->nic[f->nic];

	transfer(&nic->wire, f->received, f->end, (f->len < 60 ? 60 : f->len) + 24);
	nic->bad_frames += f->error;
}

static void change_reads(struct urdma_nic_stats *nic, uint64_t cycle, uint64_t value)
{
	if (nic->reads.begun != URDMA_NEVER)
		urdma_series_span(&nic->reads_series, nic->reads.since, cycle, nic->reads.value);
	set_level(&nic->reads, cycle, value);
}

static void read_begins(struct urdma_nic_stats *nic, const struct urdma_trace_event *e)
{
	if (e->rd.tag < sizeof(nic->read_bytes) / sizeof(*nic->read_bytes))
		nic->read_bytes[e->rd.tag] = e->rd.len;
	change_reads(nic, e->cycle, nic->reads.value + 1);
}

static void read_ends(struct urdma_nic_stats *nic, const struct urdma_trace_event *e)
{
	uint64_t bytes = 0;

	if (e->rd_done.tag < sizeof(nic->read_bytes) / sizeof(*nic->read_bytes))
		bytes = nic->read_bytes[e->rd_done.tag];
	if (e->rd_done.error)
		nic->read_errors++;
	else
		transfer(&nic->pcie, 1, e->cycle, bytes);
	/* The read may have begun before the file. */
	if (nic->reads.value)
		change_reads(nic, e->cycle, nic->reads.value - 1);
}

static void event(void *ctx, const struct urdma_trace_event *e)
{
	struct urdma_stats *s = ctx;
	struct urdma_nic_stats *nic = &s->nic[e->nic];

	if (!s->events++)
		begin(s, e->cycle);
	s->last = e->cycle;
	switch (e->kind) {
	case URDMA_TRACE_RD:
		read_begins(nic, e);
		break;
	case URDMA_TRACE_RD_DONE:
		read_ends(nic, e);
		break;
	case URDMA_TRACE_WR:
		transfer(&nic->pcie, 0, e->cycle, e->wr.len);
		break;
	case URDMA_TRACE_RESET:
		change_reads(nic, e->cycle, 0);
		break;
	case URDMA_TRACE_IRQ:
		nic->irqs++;
		break;
	case URDMA_TRACE_IN:
		nic->dropped_full += e->in.full != 0;
		break;
	case URDMA_TRACE_CQE:
		nic->recv_cqes += !e->cqe.send;
		break;
	case URDMA_TRACE_XLAT:
		if (e->xlat.client >= URDMA_CLIENTS)
			break;
		nic->xlat[e->xlat.client].n++;
		nic->xlat[e->xlat.client].misses += e->xlat.misses;
		nic->xlat[e->xlat.client].refused += e->xlat.refused;
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
	for (unsigned int i = 0; i < s->n; i++)
		if (s->nic[i].reads.begun != URDMA_NEVER)
			change_reads(&s->nic[i], s->last, s->nic[i].reads.value);
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
		.depth = depth,
	};
}
