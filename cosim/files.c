// SPDX-License-Identifier: Apache-2.0
// The files that a run writes as it goes: captures, the log of faults, events.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

void urdma_program_fail(struct urdma_program *p, const char *fmt, ...)
{
	size_t n = strlen(p->error);
	char text[2560];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "urdma-cosim: %s\n", text);
	snprintf(p->error + n, sizeof(p->error) - n, "%s%s", n ? "; " : "", text);
}

static void not_whole(struct urdma_program *p, const char *name, int error)
{
	urdma_program_fail(p, "%s/%s could not be written whole: %s", p->opt.out, name,
			   strerror(-error));
}

static int capture(struct urdma_program *p, unsigned int port)
{
	char path[4096];
	int ret;

	snprintf(path, sizeof(path), "%s/%s.pcapng", p->opt.out,
		 urdma_cosim_port(p->c, port)->name);
	ret = urdma_cosim_capture(p->c, port, path);
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(-ret));
	return ret;
}

static void event(void *ctx, const struct urdma_trace_event *e)
{
	struct urdma_program *p = ctx;

	urdma_recorder_add(p->recorder, e);
}

static void set_events(struct urdma_program *p, bool on)
{
	int ret = 0;

	if (on == p->listening || !p->recorder)
		return;
	if (on)
		ret = urdma_cosim_listen(p->c, event, p);
	else
		urdma_cosim_unlisten(p->c, event, p);
	if (ret)
		urdma_program_fail(p, "cannot listen to events: %s", strerror(-ret));
	else
		p->listening = on;
}

static int open_events(struct urdma_program *p)
{
	const char *name[URDMA_COSIM_MAX_NICS];
	char path[4096];
	int ret;

	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		name[i] = urdma_cosim_port(p->c, i)->name;
	snprintf(path, sizeof(path), "%s/" URDMA_EVENTS, p->opt.out);
	ret = urdma_recorder_open(path, name, p->opt.cosim.n_nics, &p->recorder);
	if (!ret)
		ret = urdma_program_gate(p, &p->events, &p->opt.events.window, set_events);
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(-ret));
	return ret;
}

int urdma_program_open_files(struct urdma_program *p)
{
	char path[4096];
	int ret;

	if (p->faults) {
		snprintf(path, sizeof(path), "%s/" URDMA_FAULT_LOG, p->opt.out);
		ret = urdma_faults_log(p->faults, path);
		if (ret) {
			fprintf(stderr, "urdma-cosim: cannot write %s: %s\n", path, strerror(-ret));
			return 1;
		}
	}
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_PORTS && p->opt.trace_pcap; i++)
		if (urdma_cosim_port(p->c, i) && capture(p, i))
			return 1;
	return p->opt.events.on && open_events(p) ? 1 : 0;
}

void urdma_program_flush_files(struct urdma_program *p)
{
	urdma_cosim_flush_captures(p->c);
	if (p->faults)
		urdma_faults_flush(p->faults);
	if (p->recorder)
		urdma_recorder_flush(p->recorder);
}

static void end_capture(struct urdma_program *p, unsigned int port)
{
	int ret = urdma_cosim_end_capture(p->c, port);
	char name[80];

	if (!ret)
		return;
	snprintf(name, sizeof(name), "%s.pcapng", urdma_cosim_port(p->c, port)->name);
	not_whole(p, name, ret);
}

static void end_log(struct urdma_program *p)
{
	int ret = p->faults ? urdma_faults_end_log(p->faults) : 0;

	if (ret)
		not_whole(p, URDMA_FAULT_LOG, ret);
}

/* Said once. */
static void events_failed(struct urdma_program *p, int error)
{
	if (!p->events_failed)
		not_whole(p, URDMA_EVENTS, error);
	p->events_failed = true;
}

static void end_events(struct urdma_program *p)
{
	int ret;

	if (!p->recorder)
		return;
	set_events(p, false);
	urdma_recorder_flush(p->recorder);
	p->n_events = urdma_recorder_events(p->recorder);
	p->n_missing = urdma_recorder_missing(p->recorder);
	ret = urdma_recorder_close(p->recorder);
	p->recorder = NULL;
	if (ret)
		events_failed(p, ret);
}

void urdma_program_watch_files(struct urdma_program *p)
{
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_PORTS; i++)
		if (urdma_cosim_capture_error(p->c, i))
			end_capture(p, i);
	if (p->faults && urdma_faults_log_error(p->faults))
		end_log(p);
	/* It counts what is missing until the end. */
	if (p->recorder && urdma_recorder_error(p->recorder))
		events_failed(p, urdma_recorder_error(p->recorder));
}

const char *urdma_program_events_command(struct urdma_program *p, bool on)
{
	if (!p->recorder)
		return "there are no events in this run: it needs --trace events";
	set_events(p, on);
	if (!on)
		urdma_recorder_flush(p->recorder);
	return NULL;
}

void urdma_program_close_files(struct urdma_program *p)
{
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_PORTS; i++)
		end_capture(p, i);
	end_log(p);
	end_events(p);
}
