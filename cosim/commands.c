// SPDX-License-Identifier: Apache-2.0
// Commands of the control socket.
#define _GNU_SOURCE /* vasprintf */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static char *say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *say(const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	return text;
}

static char *say_json(json_t *json)
{
	char *dumped = json_dumps(json, JSON_COMPACT);
	char *text = dumped ? say("ok %s", dumped) : say("error out of memory");

	free(dumped);
	json_decref(json);
	return text;
}

static char *link_command(struct urdma_program *p, unsigned int port, const char *way)
{
	int ret;

	if (!way)
		return say("ok %s",
			   urdma_wire_link(urdma_cosim_port(p->c, port)->wire) ? "up" : "down");
	ret = urdma_cosim_link(p->c, port, !strcmp(way, "up"));
	return ret ? say("error %s", ret == -ENOTCONN ? "it has no wire" : strerror(-ret)) : NULL;
}

static char *start_command(struct urdma_program *p, unsigned int port, const char *name)
{
	int ret;

	if (port < URDMA_COSIM_EXTERNAL(0))
		return say("error %s is a NIC", name);
	ret = urdma_external_start(p->opt.cosim.external[port - URDMA_COSIM_EXTERNAL(0)],
				   urdma_cosim_now(p->c));
	return !ret ? NULL
		    : say("error %s",
			  ret == -EALREADY ? "it has begun already" : "it is not a replay");
}

static char *all_counters(struct urdma_program *p)
{
	json_t *json = json_object();

	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		json_object_set_new(json, urdma_cosim_port(p->c, i)->name,
				    urdma_program_counters(p, i, true));
	json_object_set_new(json, "ports", urdma_program_ports(p));
	json_object_set_new(json, "switches", urdma_program_switches(p));
	return say_json(json);
}

/* Commands for output in a window. */
static char *gate_command(struct urdma_program *p, const char *what, const char *way)
{
	bool on = !strcmp(way, "on");
	const char *why = !strcmp(what, "waves") ? urdma_program_waves_command(p, on)
						 : urdma_program_events_command(p, on);

	return why ? say("error %s", why) : NULL;
}

char *urdma_program_command(void *ctx, char *line)
{
	struct urdma_program *p = ctx;
	char *word[3] = { NULL }, *more, *save = NULL;
	unsigned int n = 0;
	int port = -1;

	for (more = strtok_r(line, " \t", &save); more; more = strtok_r(NULL, " \t", &save)) {
		if (n == 3)
			return say("error too many words");
		word[n++] = more;
	}
	if (!n)
		return NULL;
	if ((!strcmp(word[0], "waves") || !strcmp(word[0], "events")) && n == 2 &&
	    (!strcmp(word[1], "on") || !strcmp(word[1], "off")))
		return gate_command(p, word[0], word[1]);
	if (n > 1) {
		port = urdma_options_find_port(&p->opt.cosim, word[1], strlen(word[1]));
		if (port < 0)
			return say("error there is no NIC and no port %s", word[1]);
	}
	if (!strcmp(word[0], "link") &&
	    (n == 2 || (n == 3 && (!strcmp(word[2], "up") || !strcmp(word[2], "down")))))
		return link_command(p, (unsigned int)port, word[2]);
	if (!strcmp(word[0], "start") && n == 2)
		return start_command(p, (unsigned int)port, word[1]);
	if (!strcmp(word[0], "counters") && n == 2) {
		if (port >= (int)URDMA_COSIM_MAX_NICS)
			return say("error %s is not a NIC", word[1]);
		return say_json(urdma_program_counters(p, (unsigned int)port, true));
	}
	if (!strcmp(word[0], "counters") && n == 1)
		return all_counters(p);
	if (!strcmp(word[0], "time") && n == 1)
		return say("ok %" PRIu64, urdma_cosim_now(p->c) * URDMA_SIM_CYCLE_NS);
	return say("error not a command: link PORT [up|down], start PORT, counters [NIC], time, "
		   "events on|off, waves on|off");
}
