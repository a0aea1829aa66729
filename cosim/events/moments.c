// SPDX-License-Identifier: Apache-2.0
#include "events/moments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define MARGIN (1000u / URDMA_CYCLE_NS) /* 1 us */

/* A trace that gets only the contents of its window. */
struct moment {
	struct urdma_window window;
	struct urdma_perfetto *trace;
	struct urdma_sink to; /* the trace's */
	char path[PATH_MAX];
};

static bool overlap(const struct urdma_window *a, const struct urdma_window *b)
{
	return a->from < b->to && b->from < a->to;
}

void urdma_moments_windows(const struct urdma_stats *s, struct urdma_window window[URDMA_SLOWEST])
{
	bool changed;

	for (unsigned int i = 0; i < s->n_slowest; i++) {
		const struct urdma_wqe *w = &s->slowest[i];
		uint64_t margin = urdma_wqe_whole(w) / 8;

		margin = margin < MARGIN ? MARGIN : margin;
		window[i].from = w->at[URDMA_AT_WRITE];
		window[i].from -= window[i].from < margin ? window[i].from : margin;
		window[i].to = w->at[URDMA_AT_REPORTED] + margin;
	}
	do {
		changed = false;
		for (unsigned int i = 0; i < s->n_slowest * s->n_slowest; i++) {
			struct urdma_window *a = &window[i / s->n_slowest];
			const struct urdma_window *b = &window[i % s->n_slowest];

			if (!overlap(a, b) || (a->from <= b->from && a->to >= b->to))
				continue;
			a->from = a->from < b->from ? a->from : b->from;
			a->to = a->to > b->to ? a->to : b->to;
			changed = true;
		}
	} while (changed);
}

/* ---- the traces ------------------------------------------------------------------------------ */

static bool at(const struct moment *m, uint64_t cycle)
{
	return cycle >= m->window.from && cycle < m->window.to;
}

static void event(void *ctx, const struct urdma_trace_event *e)
{
	const struct moment *m = ctx;

	if (at(m, e->cycle))
		m->to.event(m->to.ctx, e);
}

static void wqe(void *ctx, const struct urdma_wqe *w)
{
	const struct urdma_window life = { w->at[URDMA_AT_WRITE], w->at[URDMA_AT_REPORTED] + 1 };
	const struct moment *m = ctx;

	if (overlap(&life, &m->window))
		m->to.wqe(m->to.ctx, w);
}

static void frame(void *ctx, const struct urdma_frame *f)
{
	const struct moment *m = ctx;

	if (at(m, f->end))
		m->to.frame(m->to.ctx, f);
}

static void packet(void *ctx, const struct urdma_packet *packet)
{
	const struct moment *m = ctx;

	if (at(m, packet->rx != URDMA_NEVER ? packet->rx : packet->in))
		m->to.packet(m->to.ctx, packet);
}

static void retry(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint16_t index,
		  unsigned int cause)
{
	const struct moment *m = ctx;

	if (at(m, cycle))
		m->to.retry(m->to.ctx, cycle, nic, qpn, index, cause);
}

static void depth(void *ctx, uint64_t cycle, unsigned int nic, uint32_t qpn, uint32_t value)
{
	const struct moment *m = ctx;

	if (at(m, cycle))
		m->to.depth(m->to.ctx, cycle, nic, qpn, value);
}

static void flight(void *ctx, uint64_t cycle, unsigned int nic, uint64_t bytes)
{
	const struct moment *m = ctx;

	if (at(m, cycle))
		m->to.flight(m->to.ctx, cycle, nic, bytes);
}

static struct urdma_sink sink_of(struct moment *m)
{
	return (struct urdma_sink){
		.ctx = m,
		.event = event,
		.wqe = wqe,
		.frame = frame,
		.packet = packet,
		.retry = retry,
		.depth = depth,
		.flight = flight,
	};
}

/* Problems of the file have already been reported. */
static int read_events(struct urdma_events *events, uint64_t from_ns, uint64_t to_ns,
		       struct urdma_follow *f)
{
	struct urdma_trace_event e = { 0 };
	int ret = 0;

	while (!ret && urdma_events_next(events, &e) == 1 && e.cycle * URDMA_CYCLE_NS < to_ns)
		if (e.cycle * URDMA_CYCLE_NS >= from_ns)
			ret = urdma_follow_event(f, &e);
	if (!ret)
		ret = urdma_follow_end(f);
	return ret == -ENOMEM ? ret : 0;
}

int urdma_moments_write(const struct urdma_stats *s, struct urdma_events *events, uint64_t from_ns,
			uint64_t to_ns, const char *dir, char path[PATH_MAX])
{
	struct urdma_window window[URDMA_SLOWEST];
	struct moment moment[URDMA_SLOWEST] = { 0 };
	struct urdma_sink sink[URDMA_SLOWEST];
	struct urdma_follow *f = NULL;
	unsigned int n = 0;
	uint64_t end_ns = 0; /* of the last window */
	int ret = 0;

	*path = 0;
	urdma_moments_windows(s, window);
	for (unsigned int i = 0; i < s->n_slowest; i++) {
		struct moment *m = &moment[n];
		unsigned int k = 0;

		while (k < n && moment[k].window.from != window[i].from)
			k++;
		if (k < n)
			continue;
		m->window = window[i];
		if (m->window.to * URDMA_CYCLE_NS > end_ns)
			end_ns = m->window.to * URDMA_CYCLE_NS;
		snprintf(m->path, sizeof(m->path), "%s/%" PRIu64 ".perfetto", dir,
			 m->window.from * URDMA_CYCLE_NS);
		ret = urdma_perfetto_open(m->path, s->of, s->n, s->trigger, &m->trace);
		if (ret) {
			snprintf(path, PATH_MAX, "%s", m->path);
			break;
		}
		m->to = urdma_perfetto_sink(m->trace);
		sink[n++] = sink_of(m);
	}
	if (!ret && n) {
		f = urdma_follow_create(s->n, sink, n);
		ret = f ? read_events(events, from_ns, end_ns < to_ns ? end_ns : to_ns, f)
			: -ENOMEM;
	}
	urdma_follow_destroy(f);
	for (unsigned int i = 0; i < n; i++) {
		int closed = urdma_perfetto_close(moment[i].trace);

		if (closed && !ret) {
			ret = closed;
			snprintf(path, PATH_MAX, "%s", moment[i].path);
		}
	}
	return ret;
}
