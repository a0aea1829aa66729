// SPDX-License-Identifier: Apache-2.0
// urdma-events: evaluates the events of a run.
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events/moments.h"
#include "events/outputs.h"
#include "events/results.h"
#include "options/value.h"
#include "output.h"
#include "trace/recorder.h"

#define MAX_NICS 255u

enum { OPT_CSV = 0x600, OPT_PERFETTO, OPT_JSON, OPT_MOMENTS, OPT_FROM, OPT_TO };

struct program {
	const char *file, *json_path, *moments_dir;
	uint64_t from_ns, to_ns; /* reads events from the first time to before the second */
	struct urdma_events *events;
	struct urdma_trace_nic nic[MAX_NICS];
	struct urdma_results_config config;
	struct urdma_results *results;
	struct urdma_stats *stats;
	bool complete;
	bool failed;
};

static uint64_t parse_time(struct argp_state *state, const char *option, const char *arg)
{
	uint64_t ns = 0;
	const char *rest = urdma_option_time(arg, &ns);

	if (!rest || *rest)
		argp_error(state, "--%s %s: not a time, as 20us", option, arg);
	return ns;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct program *p = state->input;

	switch (key) {
	case OPT_CSV:
		p->config.path[URDMA_RESULT_CSV] = arg;
		return 0;
	case OPT_PERFETTO:
		p->config.path[URDMA_RESULT_PERFETTO] = arg;
		return 0;
	case OPT_JSON:
		p->json_path = arg;
		return 0;
	case OPT_MOMENTS:
		p->moments_dir = arg;
		return 0;
	case OPT_FROM:
		p->from_ns = parse_time(state, "from", arg);
		return 0;
	case OPT_TO:
		p->to_ns = parse_time(state, "to", arg);
		return 0;
	case ARGP_KEY_ARG:
		if (p->file)
			argp_error(state, "unexpected argument '%s': one file of events at a time",
				   arg);
		p->file = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which file? A run with --trace events writes events.urdma");
		return EINVAL;
	case ARGP_KEY_SUCCESS:
		if (p->from_ns >= p->to_ns)
			argp_error(state, "--from and --to: there is no time between them");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void parse_options(struct program *p, int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "csv", OPT_CSV, "FILE", 0, "Write a line for each completed send WQE", 0 },
		{ "perfetto", OPT_PERFETTO, "FILE", 0, "Write a trace for ui.perfetto.dev", 0 },
		{ "json", OPT_JSON, "FILE", 0, "Write the data of the report", 0 },
		{ "moments", OPT_MOMENTS, "DIR", 0,
		  "Write a trace of the moment of each of the slowest messages into DIR", 0 },
		{ "from", OPT_FROM, "TIME", 0, "Read events from this simulated time on, as 20us",
		  0 },
		{ "to", OPT_TO, "TIME", 0, "Read events before this simulated time", 0 },
		{ 0 },
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "EVENTS",
		.doc = "Reads a file of events (events.urdma of a run with --trace events). Prints "
		       "a table, or writes the files that are asked for.\v"
		       "Exits with 0; with 1 if the file is damaged or was cut off, after it has "
		       "written what it could read, if a file could not be written, or if there "
		       "are "
		       "no events between --from and --to; with 2 for bad options.",
	};

	argp_program_version = "urdma-events " URDMA_COSIM_VERSION;
	argp_err_exit_status = 2;
	p->to_ns = UINT64_MAX;
	argp_parse(&argp, argc, argv, 0, NULL, p);
}

static void complain(struct program *p, const char *what, const char *path, int error)
{
	fprintf(stderr, "urdma-events: cannot %s %s: %s\n", what, path, strerror(-error));
	p->failed = true;
}

/* 0, or 1 after a message. */
static int set_up(struct program *p)
{
	struct urdma_results_config *config = &p->config;
	enum urdma_result which;
	char *error = NULL;
	int ret = urdma_events_open(p->file, &p->events, &error);

	if (ret) {
		fprintf(stderr, "urdma-events: %s\n", error ? error : strerror(-ret));
		free(error);
		return 1;
	}
	config->n_nics = urdma_events_nics(p->events);
	for (unsigned int i = 0; i < config->n_nics; i++)
		p->nic[i] = urdma_events_nic(p->events, i);
	config->nic = p->nic;
	config->trigger = urdma_events_trigger(p->events);
	if (p->json_path || p->moments_dir ||
	    (!config->path[URDMA_RESULT_CSV] && !config->path[URDMA_RESULT_PERFETTO])) {
		p->stats = urdma_stats_create(p->nic, config->n_nics, config->trigger);
		if (!p->stats) {
			fprintf(stderr, "urdma-events: no memory\n");
			return 1;
		}
		config->another = urdma_stats_sink(p->stats);
	}
	ret = urdma_results_open(config, &p->results, &which);
	if (ret && which < URDMA_RESULTS)
		complain(p, "write", config->path[which], ret);
	else if (ret)
		fprintf(stderr, "urdma-events: no memory\n");
	return ret != 0;
}

static void run(struct program *p)
{
	struct urdma_trace_event event = { 0 };
	unsigned long long n = 0, first = 0, ns = 0;
	bool any = false, to = false;
	int ret, end;

	while ((ret = urdma_events_next(p->events, &event)) == 1) {
		ns = event.cycle * URDMA_CYCLE_NS;
		first = any ? first : ns;
		any = true;
		if (ns < p->from_ns)
			continue;
		if (ns >= p->to_ns) {
			to = true;
			break;
		}
		ret = urdma_results_event(p->results, &event);
		if (ret)
			break;
		n++;
	}
	end = urdma_results_end(p->results);
	if (!ret || to)
		ret = end;
	p->complete = !ret && (to || urdma_events_complete(p->events));
	if (p->complete && any && !n) {
		p->failed = true;
		fprintf(stderr, "urdma-events: there are no events from %llu ns on",
			(unsigned long long)p->from_ns);
		if (to)
			fprintf(stderr, " until %llu ns; the next one is at %llu ns\n",
				(unsigned long long)p->to_ns, ns);
		else
			fprintf(stderr, "; the file has those from %llu to %llu ns\n", first, ns);
	}
	if (p->complete)
		return;
	p->failed = true;
	if (ret == -ENOMEM)
		fprintf(stderr, "urdma-events: no memory");
	else if (ret == -EIO)
		fprintf(stderr, "urdma-events: cannot read %s to its end", p->file);
	else if (ret)
		fprintf(stderr, "urdma-events: %s is damaged", p->file);
	else
		fprintf(stderr,
			"urdma-events: %s is not complete: the simulation goes on, was killed, or "
			"its disk was full",
			p->file);
	fprintf(stderr, "; the results are those of the %llu events until %llu ns\n", n,
		(unsigned long long)event.cycle * URDMA_CYCLE_NS);
}

static int put_text(const char *text, size_t n, void *out)
{
	struct iovec part = { .iov_base = (void *)text, .iov_len = n };

	urdma_output_record(out, &part, 1);
	return urdma_output_error(out);
}

static void write_json(struct program *p)
{
	json_t *json = urdma_stats_json(p->stats, p->complete);
	struct urdma_output *out;
	int ret = json ? urdma_output_open(p->json_path, &out) : -ENOMEM;

	if (!ret) {
		json_dump_callback(json, put_text, out, JSON_INDENT(1));
		put_text("\n", 1, out);
		ret = urdma_output_close(out);
	}
	json_decref(json);
	if (ret)
		complain(p, "write", p->json_path, ret);
}

/* Reads the file again. */
static void write_moments(struct program *p)
{
	struct urdma_events *events = NULL;
	char path[PATH_MAX] = "";
	char *error = NULL;
	int ret = 0;

	if (mkdir(p->moments_dir, 0777) && errno != EEXIST) {
		complain(p, "make", p->moments_dir, -errno);
		return;
	}
	ret = urdma_events_open(p->file, &events, &error);
	if (!ret)
		ret = urdma_moments_write(p->stats, events, p->from_ns, p->to_ns, p->moments_dir,
					  path);
	if (ret)
		complain(p, *path ? "write" : "read", *path ? path : p->file, ret);
	free(error);
	urdma_events_close(events);
}

static void finish(struct program *p)
{
	for (unsigned int i = 0; i < URDMA_RESULTS; i++) {
		int ret = urdma_results_close(p->results, i);

		if (ret)
			complain(p, "write", p->config.path[i], ret);
	}
	if (p->stats)
		urdma_stats_end(p->stats);
	if (p->json_path)
		write_json(p);
	if (p->moments_dir)
		write_moments(p);
	if (p->stats && !p->json_path && !p->moments_dir)
		urdma_stats_table(p->stats);
	if (fflush(stdout) || ferror(stdout))
		complain(p, "write", "the table", -errno);
}

int main(int argc, char **argv)
{
	static struct program p;

	parse_options(&p, argc, argv);
	signal(SIGPIPE, SIG_IGN);
	/* A file that grows beyond its limit is an error of that file. */
	signal(SIGXFSZ, SIG_IGN);
	if (!set_up(&p)) {
		run(&p);
		finish(&p);
	} else {
		p.failed = true;
	}
	urdma_results_destroy(p.results);
	urdma_stats_destroy(p.stats);
	urdma_events_close(p.events);
	return p.failed;
}
