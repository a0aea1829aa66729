// SPDX-License-Identifier: Apache-2.0
// Options of the run: captures, time, diagnosis.
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <string.h>

#include "options/layers.h"
#include "options/value.h"

enum {
	OPT_TRACE = 0x500,
	OPT_TRIGGER,
	OPT_SAMPLE,
	OPT_LIVE,
	OPT_STALL,
	OPT_NO_SKIP,
	OPT_THREADS,
	OPT_SLOW_CLOCK,
	OPT_VERBOSE,
};

static const struct argp_option options[] = {
	{ "trace", OPT_TRACE, "KIND[,KIND]...", 0,
	  "What is written besides counters. pcap: a capture of each port, urdma0.pcapng or "
	  "NAME.pcapng. events: what happens in each NIC, and when, in events.urdma. csv: besides, "
	  "a "
	  "line for each send WQE, wqes.csv. perfetto: besides, a trace for ui.perfetto.dev, "
	  "trace.perfetto. fst: waves of each NIC, urdma0.fst. All but pcap take a window: "
	  "fst=FROM-TO or fst=FROM- of time, as 20us-1ms; fst=hold from the command `waves on` on, "
	  "events=hold from `events on` on; fst=last:TIME only the end; events=trigger:20us-50us "
	  "what is around the moment of --trigger. events, csv and perfetto have one window, given "
	  "with any of them. scope=NAME: waves of this instance alone, as nic.tx. none",
	  0 },
	{ "trigger", OPT_TRIGGER, "WHAT", 0,
	  "The moment of the windows KIND=trigger:BEFORE-AFTER. [NIC:][N*]EVENT[.FIELD=VALUE]...: "
	  "the (Nth) such event (of this NIC), as urdma0:acked.qpn=17.cause=time-out; "
	  "docs/tracing.md lists them. [NIC:][N*]error: a CQE or EQE that reports an error. "
	  "fault[=N]: the (Nth) frame that a fault of the wires hits",
	  0 },
	{ "sample-us", OPT_SAMPLE, "US", 0,
	  "Counters over time: a line in samples.jsonl each US of simulated time, if any has "
	  "changed",
	  0 },
	{ "live", OPT_LIVE, NULL, 0,
	  "A FIFO for each port besides, DIR/urdma0.live, that a program follows while the run "
	  "goes "
	  "on: wireshark -k -i DIR/urdma0.live",
	  0 },
	{ "stall-us", OPT_STALL, "US", 0,
	  "Report a stall after that much simulated time, 0: never (1000)", 0 },
	{ "no-skip", OPT_NO_SKIP, NULL, 0, "Evaluate every cycle, also when nothing happens", 0 },
	{ "threads", OPT_THREADS, "N", 0,
	  "Threads that evaluate NICs, at most one a NIC; the results are the same. Default: half "
	  "the "
	  "cores",
	  0 },
	{ "slow-clock", OPT_SLOW_CLOCK, "N", 0,
	  "Simulated time in which NICs only wait passes N times slower than the wall clock (1)",
	  0 },
	{ "verbose", OPT_VERBOSE, NULL, 0, "Log each vfio-user message", 0 },
	{ 0 },
};

static unsigned int cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
}

#define TRACE_KINDS "it is none, or a list of pcap, events, csv, perfetto, fst and scope=NAME"

/* Parses the text after "fst=" or "events=". False: not a window. */
static bool parse_window(struct urdma_window *w, const char *text)
{
	memset(w, 0, sizeof(*w));
	if (!strcmp(text, "hold")) {
		w->hold = true;
		return true;
	}
	if (!strncmp(text, "last:", 5)) {
		text = urdma_option_time(text + 5, &w->last);
		return text && !*text && w->last;
	}
	if (!strncmp(text, "trigger:", 8)) {
		w->trigger = true;
		text = urdma_option_time(text + 8, &w->before);
		text = text && *text == '-' ? urdma_option_time(text + 1, &w->after) : NULL;
		return text && !*text;
	}
	text = urdma_option_time(text, &w->from);
	if (!text || *text++ != '-')
		return false;
	if (!*text)
		return true;
	text = urdma_option_time(text, &w->to);
	return text && !*text && w->to > w->from;
}

/* Parses the window of a kind "NAME=WINDOW". last: "last:" is allowed. */
static struct urdma_window window_of(struct argp_state *state, const char *kind, bool last)
{
	struct urdma_window w;

	if (!parse_window(&w, strchr(kind, '=') + 1) || (w.last && !last))
		argp_error(state,
			   "--trace '%s': a window is FROM-TO, FROM-, %shold, or "
			   "trigger:BEFORE-AFTER, with times as 20us",
			   kind, last ? "last:TIME, " : "");
	return w;
}

/* True if kind is the name, or the name with a window. */
static bool is_kind(const char *kind, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(kind, name, n) && (!kind[n] || kind[n] == '=');
}

/* events, and the files made from them, share one window. */
static void parse_events(struct argp_state *state, struct urdma_events_options *e, const char *kind)
{
	static const struct urdma_window whole_run;
	struct urdma_window w;

	e->on = true;
	e->csv |= is_kind(kind, "csv");
	e->perfetto |= is_kind(kind, "perfetto");
	if (!strchr(kind, '='))
		return;
	w = window_of(state, kind, false);
	if (memcmp(&e->window, &whole_run, sizeof(w)) && memcmp(&e->window, &w, sizeof(w)))
		argp_error(state,
			   "--trace '%s': events, csv and perfetto have one window; give it once",
			   kind);
	e->window = w;
}

/* Handles an element of the list. False: unknown. */
static bool parse_kind(struct argp_state *state, struct urdma_options *o, char *kind)
{
	struct urdma_waves_options *w = &o->waves;

	if (!strcmp(kind, "pcap")) {
		o->trace_pcap = true;
	} else if (is_kind(kind, "events") || is_kind(kind, "csv") || is_kind(kind, "perfetto")) {
		parse_events(state, &o->events, kind);
	} else if (is_kind(kind, "fst")) {
		w->on = true;
		if (kind[3])
			w->window = window_of(state, kind, true);
	} else if (!strncmp(kind, "scope=", 6) && kind[6]) {
		if (w->scope)
			argp_error(state,
				   "--trace '%s': there is scope=%s already; waves are of one "
				   "instance and those inside it",
				   kind, w->scope);
		w->scope = kind + 6;
	} else {
		return false;
	}
	return true;
}

static void parse_trace(struct argp_state *state, struct urdma_options *o, char *list)
{
	struct urdma_waves_options *w = &o->waves;
	char *kind, *save = NULL;
	/* Large enough for the names of the instances in any module. */
	char why[4096];

	o->trace_pcap = false;
	memset(w, 0, sizeof(*w));
	memset(&o->events, 0, sizeof(o->events));
	if (!strcmp(list, "none"))
		return;
	if (!*list)
		argp_error(state, "--trace '': " TRACE_KINDS);
	for (kind = strtok_r(list, ",", &save); kind; kind = strtok_r(NULL, ",", &save))
		if (!parse_kind(state, o, kind))
			argp_error(state, "--trace '%s': " TRACE_KINDS, kind);
	if (w->scope && !w->on)
		argp_error(state, "--trace: scope=%s is for waves, and fst is missing", w->scope);
	if (w->on && !urdma_sim_has_waves())
		argp_error(state, "--trace fst: this urdma-cosim is built without waves; "
				  "tools/host-build.sh --waves makes one with them");
	if (w->scope && urdma_sim_check_scope(w->scope, why, sizeof(why)))
		argp_error(state, "--trace 'scope=%s': %s", w->scope, why);
}

static void parse_trigger(struct argp_state *state, struct urdma_options *o)
{
	const char *text = o->trigger_text, *what = text, *colon = strchr(text, ':');
	int nic = -1;
	/* Large enough for the list of all opcodes. */
	char why[1024];

	if (colon) {
		nic = urdma_options_find_port(&o->cosim, text, (size_t)(colon - text));
		if (nic < 0 || nic >= (int)o->cosim.n_nics)
			urdma_option_bad(state, "trigger", text, "there is no NIC '%.*s'",
					 (int)(colon - text), text);
		what = colon + 1;
	}
	if (urdma_trigger_parse(what, &o->trigger, why, sizeof(why)))
		urdma_option_bad(state, "trigger", text, "%s", why);
	o->trigger.nic = nic;
	if (o->trigger.what != URDMA_TRIGGER_FAULT)
		return;
	if (nic >= 0)
		urdma_option_bad(state, "trigger", text, "a fault is of a wire, not of a NIC");
	if (!o->n_faults)
		urdma_option_bad(state, "trigger", text,
				 "there are no faults: --fault, --loss and so on make them");
}

void urdma_run_resolve(struct argp_state *state, struct urdma_options *o)
{
	bool window = o->events.window.trigger || o->waves.window.trigger;

	if (o->trigger_text && !window)
		urdma_option_bad(state, "trigger", o->trigger_text,
				 "nothing is written around it: --trace needs a window such as "
				 "events=trigger:20us-50us");
	if (window && !o->trigger_text)
		argp_error(state, "--trace: a window waits for a trigger, and --trigger is "
				  "missing");
	if (o->trigger_text)
		parse_trigger(state, o);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		/* The guests need cores too. */
		o->cosim.threads = cores() / 2;
		o->slow_clock = 1;
		return 0;
	case OPT_TRACE:
		parse_trace(state, o, arg);
		return 0;
	case OPT_TRIGGER:
		o->trigger_text = arg;
		return 0;
	case OPT_SAMPLE:
		o->sample_ns = urdma_option_number(state, "sample-us", arg, 1, 1000000000) * 1000;
		return 0;
	case OPT_LIVE:
		o->live = true;
		return 0;
	case OPT_STALL:
		o->cosim.stall_ns =
			urdma_option_number(state, "stall-us", arg, 0, 1000000000) * 1000;
		return 0;
	case OPT_NO_SKIP:
		o->cosim.no_skip = true;
		return 0;
	case OPT_THREADS:
		o->cosim.threads = (unsigned int)urdma_option_number(state, "threads", arg, 1,
								     URDMA_COSIM_MAX_NICS);
		return 0;
	case OPT_SLOW_CLOCK:
		o->slow_clock =
			(unsigned int)urdma_option_number(state, "slow-clock", arg, 1, 1000);
		return 0;
	case OPT_VERBOSE:
		o->verbose = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp urdma_run_argp = { .options = options, .parser = parse };
