// SPDX-License-Identifier: Apache-2.0
// Traces of the moments of the slowest messages: each message is complete in one of them, with the
// events around it and nothing else.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "events/moments.h"
#include "nic_pair.h"
#include "perfetto.pb-c.h"
#include "urdma_hw.h"

#define NS(cycle) ((cycle)*URDMA_CYCLE_NS)

static char dir[] = "/tmp/urdma-moments-XXXXXX";
static char events_path[PATH_MAX];

struct moments {
	struct pair p;
	struct urdma_trace_nic nic[2];
	struct urdma_stats *stats;
	struct urdma_window window[URDMA_SLOWEST];
};

/* Single messages, each after the one before; some lose a packet. Two of these overlap. */
static int set_up(void **state)
{
	struct pair_message message = { .bytes = 2500, .op = URDMA_WR_WRITE };
	struct moments *m = calloc(1, sizeof(*m));
	struct urdma_trace_event e;
	struct urdma_events *events;
	struct urdma_follow *f;
	struct urdma_sink sink;
	uint64_t cycle = 1000;
	char *error = NULL;

	*state = m;
	if (!m)
		return -1;
	pair_begin(&m->p);
	for (unsigned int i = 0; i < 400; i++) {
		uint64_t end;

		message.qpn = 2 + 2 * (i % 3);
		message.losses = i % 50 == 7 ? 1 + i / 100 : 0;
		end = pair_send(&m->p, cycle, &message);
		cycle = i == 107 ? cycle + 1000 : end + 3000;
	}
	pair_sort(&m->p);
	snprintf(events_path, sizeof(events_path), "%s/events", dir);
	if (pair_write(&m->p, events_path, 0, UINT64_MAX) ||
	    urdma_events_open(events_path, &events, &error))
		return -1;
	for (unsigned int i = 0; i < 2; i++)
		m->nic[i] = urdma_events_nic(events, i);
	m->stats = urdma_stats_create(m->nic, 2, NULL);
	sink = urdma_stats_sink(m->stats);
	f = urdma_follow_create(2, &sink, 1);
	while (urdma_events_next(events, &e) == 1)
		urdma_follow_event(f, &e);
	urdma_follow_end(f);
	urdma_stats_end(m->stats);
	urdma_follow_destroy(f);
	/* The reader chooses the NICs' names. */
	m->nic[0].name = "urdma0";
	m->nic[1].name = "urdma1";
	urdma_events_close(events);
	urdma_moments_windows(m->stats, m->window);
	return 0;
}

static int tear_down(void **state)
{
	struct moments *m = *state;

	urdma_stats_destroy(m->stats);
	pair_free(&m->p);
	free(m);
	unlink(events_path);
	return 0;
}

static void test_windows(void **state)
{
	struct moments *m = *state;
	unsigned int shared = 0;

	assert_int_equal(m->stats->n_slowest, URDMA_SLOWEST);
	for (unsigned int i = 0; i < URDMA_SLOWEST; i++) {
		const struct urdma_window *a = &m->window[i];
		const struct urdma_wqe *w = &m->stats->slowest[i];
		uint64_t margin = urdma_wqe_whole(w) / 8;
		bool alone = true;

		margin = margin > 250 ? margin : 250;
		assert_true(a->from + margin <= w->at[URDMA_AT_WRITE]);
		assert_true(a->to >= w->at[URDMA_AT_REPORTED] + margin);
		for (unsigned int k = 0; k < URDMA_SLOWEST; k++) {
			const struct urdma_window *b = &m->window[k];

			if (k == i)
				continue;
			if (a->from == b->from && a->to == b->to)
				alone = false;
			else
				assert_true(a->from >= b->to || b->from >= a->to);
		}
		/* A message alone in its window has only its margins around it. */
		if (alone)
			assert_int_equal(a->to - a->from, urdma_wqe_whole(w) + 2 * margin);
		shared += !alone;
	}
	/* Two of the time-outs overlap. */
	assert_in_range(shared, 2, 3);
}

static UrdmaPerfetto__Trace *read_trace(const char *name)
{
	UrdmaPerfetto__Trace *trace;
	FILE *file = fopen(name, "r");
	uint8_t *text = malloc(4 << 20);
	size_t n;

	assert_non_null(file);
	assert_non_null(text);
	n = fread(text, 1, 4 << 20, file);
	assert_in_range(n, 1000, (4 << 20) - 1);
	trace = urdma_perfetto__trace__unpack(NULL, n, text);
	assert_non_null(trace);
	fclose(file);
	free(text);
	return trace;
}

static uint64_t arg(const UrdmaPerfetto__TrackEvent *e, const char *name)
{
	for (size_t i = 0; i < e->n_debug_annotations; i++)
		if (!strcmp(e->debug_annotations[i]->name, name))
			return e->debug_annotations[i]->uint_value;
	return UINT64_MAX;
}

static void check_trace(const struct moments *m, unsigned int i, const char *name)
{
	const struct urdma_window *window = &m->window[i];
	const struct urdma_wqe *w = &m->stats->slowest[i];
	unsigned int sent = 0, frames = 0, events = 0, of_it = 0;
	const uint64_t longest = NS(urdma_wqe_whole(&m->stats->slowest[0]));
	UrdmaPerfetto__Trace *trace = read_trace(name);
	char title[64];

	snprintf(title, sizeof(title), "RDMA WRITE %u", w->index);
	for (size_t k = 0; k < m->p.n; k++) {
		const struct urdma_trace_event *e = &m->p.event[k];

		if (e->cycle >= window->from && e->cycle < window->to)
			sent += e->kind == URDMA_TRACE_TX_END || e->kind == URDMA_TRACE_RX_END;
	}
	for (size_t k = 0; k < trace->n_packet; k++) {
		const UrdmaPerfetto__TrackEvent *e = trace->packet[k]->track_event;
		uint64_t ts = trace->packet[k]->timestamp;

		if (!e)
			continue;
		events++;
		/* A message that lived in the window is complete. */
		assert_true(ts + longest >= NS(window->from) && ts <= NS(window->to) + longest);
		if (!e->name)
			continue;
		frames += arg(e, "frame") != UINT64_MAX && arg(e, "bytes") != UINT64_MAX;
		if (!strcmp(e->name, title) && ts == NS(w->at[URDMA_AT_WRITE])) {
			of_it++;
			assert_int_equal(arg(e, "psn"), w->psn);
		}
	}
	assert_int_equal(of_it, 1);
	assert_true(sent > 5);
	assert_int_equal(frames, sent);
	assert_true(events > 50);
	urdma_perfetto__trace__free_unpacked(trace, NULL);
}

static void test_traces(void **state)
{
	struct moments *m = *state;
	struct urdma_events *events;
	char path[PATH_MAX], *error = NULL;

	assert_int_equal(urdma_events_open(events_path, &events, &error), 0);
	assert_int_equal(urdma_moments_write(m->stats, events, 0, UINT64_MAX, dir, path), 0);
	urdma_events_close(events);
	for (unsigned int i = 0; i < URDMA_SLOWEST; i++) {
		snprintf(path, sizeof(path), "%s/%" PRIu64 ".perfetto", dir, NS(m->window[i].from));
		check_trace(m, i, path);
	}
	for (unsigned int i = 0; i < URDMA_SLOWEST; i++) {
		snprintf(path, sizeof(path), "%s/%" PRIu64 ".perfetto", dir, NS(m->window[i].from));
		unlink(path);
	}
}

static void test_no_place(void **state)
{
	struct moments *m = *state;
	struct urdma_events *events;
	char path[PATH_MAX], want[PATH_MAX], *error = NULL;

	snprintf(want, sizeof(want), "/nowhere/%" PRIu64 ".perfetto", NS(m->window[0].from));
	assert_int_equal(urdma_events_open(events_path, &events, &error), 0);
	assert_int_equal(urdma_moments_write(m->stats, events, 0, UINT64_MAX, "/nowhere", path),
			 -ENOENT);
	assert_string_equal(path, want);
	urdma_events_close(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_traces),
		cmocka_unit_test(test_no_place),
	};
	int ret;

	if (!mkdtemp(dir))
		return 1;
	ret = cmocka_run_group_tests(tests, set_up, tear_down);
	rmdir(dir);
	return ret;
}
