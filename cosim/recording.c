// SPDX-License-Identifier: Apache-2.0
// The events of a run: their file, and the files made from them during the run.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/results.h"
#include "program.h"
#include "trace/history.h"
#include "trace/recorder.h"

/*
 * Maximum time that events wait in memory before a program that follows the files sees them. A
 * guest pauses many times per second, and a zstd frame for each pause would make the file much
 * larger.
 */
#define FLUSH_NS UINT64_C(2000000000)
/* Maximum events kept for the trigger: 160 MiB. */
#define MAX_HISTORY (UINT64_C(2) << 20)

static const char *const result_name[URDMA_RESULTS] = {
	[URDMA_RESULT_CSV] = URDMA_WQES,
	[URDMA_RESULT_PERFETTO] = URDMA_PERFETTO,
};

struct urdma_recording {
	struct urdma_gate gate;
	struct urdma_trace_nic nic[URDMA_COSIM_MAX_NICS];
	struct urdma_recorder *recorder; /* NULL: its file has ended */
	struct urdma_results *results;	 /* NULL: none requested, or they have ended */
	bool wanted[URDMA_RESULTS];
	bool recorder_failed, failed[URDMA_RESULTS]; /* already reported */
	enum urdma_gate_state state;
	struct urdma_history *history; /* while waiting for the trigger */
	bool marked;		       /* the trigger's event is not yet written: */
	struct urdma_trace_event mark;
	uint64_t flushed;    /* number of events visible to other processes */
	uint64_t flush_at;   /* wall ns when the others must be visible; 0: no others */
	uint64_t n, missing; /* after the end: number of events, and of those not in the file */
};

/* Closes the result files, except the event file. */
static void give_up_results(struct urdma_program *p, int error)
{
	struct urdma_recording *r = p->recording;

	for (unsigned int i = 0; i < URDMA_RESULTS; i++)
		if (r->wanted[i] && !r->failed[i])
			urdma_program_not_whole(p, result_name[i], error);
	memset(r->failed, true, sizeof(r->failed));
	urdma_results_destroy(r->results);
	r->results = NULL;
}

static void write_event(struct urdma_program *p, const struct urdma_trace_event *e)
{
	struct urdma_recording *r = p->recording;
	int ret;

	urdma_recorder_add(r->recorder, e);
	ret = r->results ? urdma_results_event(r->results, e) : 0;
	if (ret)
		give_up_results(p, ret);
}

/* Writes the trigger's event before the first event of a later cycle. */
static void write_mark(struct urdma_program *p, uint64_t before)
{
	struct urdma_recording *r = p->recording;

	if (!r->marked || r->mark.cycle >= before)
		return;
	r->marked = false;
	write_event(p, &r->mark);
}

static void put(void *ctx, const struct urdma_trace_event *e)
{
	write_mark(ctx, e->cycle);
	write_event(ctx, e);
}

void urdma_program_mark_trigger(struct urdma_program *p, const struct urdma_trace_event *mark)
{
	struct urdma_recording *r = p->recording;

	if (!r || !r->recorder || r->state == URDMA_GATE_SHUT)
		return;
	r->mark = *mark;
	r->marked = true;
}

static void event(void *ctx, const struct urdma_trace_event *e)
{
	struct urdma_program *p = ctx;

	if (p->recording->state == URDMA_GATE_WAITS)
		urdma_history_add(p->recording->history, e);
	else
		put(p, e);
}

/* The trigger has occurred: writes the events before it. */
static void look_back(struct urdma_program *p)
{
	struct urdma_recording *r = p->recording;
	uint64_t before = p->opt.events.window.before / URDMA_SIM_CYCLE_NS;
	uint64_t from = p->trigger.cycle > before ? p->trigger.cycle - before : 0;
	uint64_t whole = urdma_history_take(r->history, from, put, p);

	p->trigger.events_cycle = whole;
	if (whole != from)
		fprintf(stderr,
			"urdma-cosim: " URDMA_EVENTS " begins %" PRIu64 " ns before the trigger: "
			"there was no memory for the events before that\n",
			(p->trigger.cycle - whole) * URDMA_SIM_CYCLE_NS);
	urdma_history_destroy(r->history);
	r->history = NULL;
}

static void flush(struct urdma_program *p)
{
	struct urdma_recording *r = p->recording;
	int ret = urdma_recorder_flush(r->recorder);

	/* It counts the missing events until the end. */
	if (ret && !r->recorder_failed)
		urdma_program_not_whole(p, URDMA_EVENTS, ret);
	r->recorder_failed = ret;
	for (unsigned int i = 0; i < URDMA_RESULTS && r->results; i++) {
		ret = urdma_results_flush(r->results, i);
		if (ret && !r->failed[i])
			urdma_program_not_whole(p, result_name[i], ret);
		r->failed[i] |= ret != 0;
	}
	r->flushed = urdma_recorder_events(r->recorder);
	r->flush_at = 0;
}

uint64_t urdma_program_watch_events(struct urdma_program *p)
{
	struct urdma_recording *r = p->recording;
	uint64_t now;

	if (!r || !r->recorder || r->flushed == urdma_recorder_events(r->recorder))
		return UINT64_MAX;
	now = urdma_program_wall_ns();
	if (!r->flush_at)
		r->flush_at = now + FLUSH_NS;
	if (now < r->flush_at)
		return r->flush_at - now;
	flush(p);
	return UINT64_MAX;
}

static void set(struct urdma_program *p, enum urdma_gate_state state)
{
	struct urdma_recording *r = p->recording;
	int ret = 0;

	if (state == r->state || !r->recorder)
		return;
	if (r->state == URDMA_GATE_SHUT)
		ret = urdma_cosim_listen(p->c, event, p);
	else if (state == URDMA_GATE_SHUT)
		urdma_cosim_unlisten(p->c, event, p);
	else
		look_back(p);
	/* Otherwise the event would not be written after the end of the window. */
	if (state == URDMA_GATE_SHUT)
		write_mark(p, urdma_cosim_now(p->c));
	if (ret)
		urdma_program_fail(p, "cannot listen to events: %s", strerror(-ret));
	else
		r->state = state;
}

static void cannot_write(const struct urdma_program *p, const char *name, int error)
{
	fprintf(stderr, "urdma-cosim: cannot write %s/%s: %s\n", p->opt.out, name,
		strerror(-error));
}

static int open_results(struct urdma_program *p)
{
	const struct urdma_events_options *o = &p->opt.events;
	struct urdma_recording *r = p->recording;
	struct urdma_results_config config = { .nic = r->nic,
					       .n_nics = p->opt.cosim.n_nics,
					       .trigger = p->opt.trigger_text };
	char path[URDMA_RESULTS][4096];
	enum urdma_result which;
	int ret;

	r->wanted[URDMA_RESULT_CSV] = o->csv;
	r->wanted[URDMA_RESULT_PERFETTO] = o->perfetto;
	if (!o->csv && !o->perfetto)
		return 0;
	for (unsigned int i = 0; i < URDMA_RESULTS; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%s", p->opt.out, result_name[i]);
		config.path[i] = r->wanted[i] ? path[i] : NULL;
	}
	ret = urdma_results_open(&config, &r->results, &which);
	if (ret)
		cannot_write(p, which < URDMA_RESULTS ? result_name[which] : URDMA_EVENTS, ret);
	return ret;
}

int urdma_program_open_events(struct urdma_program *p)
{
	struct urdma_recording *r;
	char path[4096];
	int ret;

	if (!p->opt.events.on)
		return 0;
	p->recording = r = calloc(1, sizeof(*r));
	if (!r) {
		cannot_write(p, URDMA_EVENTS, -ENOMEM);
		return 1;
	}
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++) {
		const struct urdma_eth_port *port = urdma_cosim_port(p->c, i);

		r->nic[i] = (struct urdma_trace_nic){ port->name, port->line.mbps,
						      p->opt.nic[i].pcie.mbps };
	}
	snprintf(path, sizeof(path), "%s/" URDMA_EVENTS, p->opt.out);
	ret = urdma_recorder_open(path, r->nic, p->opt.cosim.n_nics, p->opt.trigger_text,
				  &r->recorder);
	if (!ret && open_results(p))
		return 1;
	if (!ret && p->opt.events.window.trigger) {
		r->history = urdma_history_create(p->opt.events.window.before / URDMA_SIM_CYCLE_NS,
						  MAX_HISTORY);
		ret = r->history ? 0 : -ENOMEM;
	}
	if (!ret)
		ret = urdma_program_gate(p, &r->gate, &p->opt.events.window, set);
	if (ret)
		cannot_write(p, URDMA_EVENTS, ret);
	return ret != 0;
}

static void end_results(struct urdma_program *p)
{
	struct urdma_recording *r = p->recording;
	int ret = urdma_results_end(r->results);

	if (ret) {
		give_up_results(p, ret);
		return;
	}
	for (unsigned int i = 0; i < URDMA_RESULTS; i++) {
		ret = urdma_results_close(r->results, i);
		if (ret && !r->failed[i])
			urdma_program_not_whole(p, result_name[i], ret);
	}
	urdma_results_destroy(r->results);
	r->results = NULL;
}

void urdma_program_close_events(struct urdma_program *p)
{
	struct urdma_recording *r = p->recording;
	int ret;

	if (!r || !r->recorder)
		return;
	set(p, URDMA_GATE_SHUT);
	write_mark(p, UINT64_MAX);
	flush(p);
	if (r->results)
		end_results(p);
	r->n = urdma_recorder_events(r->recorder);
	r->missing = urdma_recorder_missing(r->recorder);
	ret = urdma_recorder_close(r->recorder);
	if (ret && !r->recorder_failed)
		urdma_program_not_whole(p, URDMA_EVENTS, ret);
	r->recorder = NULL;
}

void urdma_program_free_events(struct urdma_program *p)
{
	if (!p->recording)
		return;
	urdma_results_destroy(p->recording->results);
	urdma_recorder_close(p->recording->recorder);
	urdma_history_destroy(p->recording->history);
	free(p->recording);
	p->recording = NULL;
}

const char *urdma_program_events_command(struct urdma_program *p, bool on)
{
	if (!p->recording)
		return "there are no events in this run: it needs --trace events";
	if (p->opt.events.window.trigger)
		return "the events of this run are those around its trigger";
	set(p, on ? URDMA_GATE_OPEN : URDMA_GATE_SHUT);
	if (!on)
		flush(p);
	return NULL;
}

json_t *urdma_program_events(const struct urdma_program *p)
{
	const struct urdma_recording *r = p->recording;
	json_t *json;

	if (!r)
		return json_null();
	json = json_pack("{s:s, s:I, s:I}", "file", URDMA_EVENTS, "events", (json_int_t)r->n,
			 "missing", (json_int_t)r->missing);
	for (unsigned int i = 0; i < URDMA_RESULTS; i++)
		json_object_set_new(json, i == URDMA_RESULT_CSV ? "csv" : "perfetto",
				    r->wanted[i] ? json_string(result_name[i]) : json_null());
	return json;
}
