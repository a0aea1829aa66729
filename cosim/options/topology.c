// SPDX-License-Identifier: Apache-2.0
// Options for ports besides the NICs, and for the connections between ports.
#define _GNU_SOURCE /* asprintf */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/layers.h"
#include "options/value.h"

enum {
	OPT_PORT = 0x100,
	OPT_WIRE,
	OPT_SWITCH,
};

static const struct argp_option options[] = {
	{ "port", OPT_PORT, "NAME=KIND:...", 0,
	  "A port that is no NIC, by this name: stream:unix:PATH[,listen], "
	  "stream:tcp:PORT[,listen], dgram:unix:PATH[,peer=PATH], dgram:udp:PORT[,peer=PORT], "
	  "tap:IFNAME, replay:FILE[,fast][,at=NS][,hold][,only=in|only=out]",
	  0 },
	{ "wire", OPT_WIRE, "A-B", 0,
	  "Join A and B, each the number of a NIC or the name of a port; \"none\": no wires. "
	  "Without any --wire and --switch: 0-1, 2-3, ...",
	  0 },
	{ "switch", OPT_SWITCH, "A,B,...", 0, "These are on a switch; again for another", 0 },
	{ 0 },
};

void urdma_topology_add_port(struct argp_state *state, const char *text)
{
	struct urdma_options *o = state->input;
	struct urdma_cosim_config *c = &o->cosim;
	struct urdma_external *e;
	char error[256];

	if (urdma_external_parse(text, &e, error, sizeof(error)))
		urdma_option_bad(state, "port", text, "%s", error);
	for (unsigned int i = 0; i < c->n_external; i++) {
		if (strcmp(urdma_external_name(c->external[i]), urdma_external_name(e)))
			continue;
		if (i >= o->n_file_ports || o->scope.place[0])
			urdma_option_bad(state, "port", text, "there is one of this name already");
		/* A port of the command line replaces the file's. */
		urdma_external_destroy(c->external[i]);
		c->external[i] = e;
		free(o->port_text[i]);
		o->port_text[i] = strdup(text);
		return;
	}
	if (c->n_external == URDMA_COSIM_MAX_EXTERNAL)
		urdma_option_bad(state, "port", text, "more than %u ports",
				 URDMA_COSIM_MAX_EXTERNAL);
	o->port_text[c->n_external] = strdup(text);
	c->external[c->n_external++] = e;
}

/* Wires and switches of the command line replace all those of the file. */
static void forget_those_of_file(struct urdma_options *o)
{
	if (!o->wires_of_file || o->scope.place[0])
		return;
	o->wires_of_file = false;
	for (unsigned int i = 0; i < o->n_wires; i++)
		free(o->wire[i].place);
	for (unsigned int i = 0; i < o->n_switches; i++)
		free(o->sw[i].place);
	o->n_wires = 0;
	o->n_switches = 0;
}

/* Copies the place in the file. */
static char *place_of(const struct urdma_options *o)
{
	return o->scope.place[0] ? strdup(o->scope.place) : NULL;
}

struct urdma_wire_options *urdma_topology_add_wire(struct argp_state *state, const char *text)
{
	struct urdma_options *o = state->input;

	forget_those_of_file(o);
	if (o->n_wires == URDMA_COSIM_MAX_WIRES)
		urdma_option_bad(state, "wire", text, "more than %u wires", URDMA_COSIM_MAX_WIRES);
	o->wire[o->n_wires] = (struct urdma_wire_options){ .text = text, .place = place_of(o) };
	return &o->wire[o->n_wires++];
}

struct urdma_switch_options *urdma_topology_add_switch(struct argp_state *state, const char *text)
{
	struct urdma_options *o = state->input;

	forget_those_of_file(o);
	if (o->n_switches == URDMA_COSIM_MAX_SWITCHES)
		urdma_option_bad(state, "switch", text, "more than %u switches",
				 URDMA_COSIM_MAX_SWITCHES);
	o->sw[o->n_switches] = (struct urdma_switch_options){ .text = text, .place = place_of(o) };
	return &o->sw[o->n_switches++];
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case OPT_PORT:
		urdma_topology_add_port(state, arg);
		return 0;
	case OPT_WIRE:
		urdma_topology_add_wire(state, arg);
		return 0;
	case OPT_SWITCH:
		urdma_topology_add_switch(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp urdma_topology_argp = { .options = options, .parser = parse };

/* ---- names ----------------------------------------------------------------------------------- */

int urdma_options_find_port(const struct urdma_cosim_config *c, const char *text, size_t len)
{
	unsigned int v = 0;

	for (unsigned int i = 0; i < c->n_external; i++) {
		const char *name = urdma_external_name(c->external[i]);

		if (strlen(name) == len && !memcmp(name, text, len))
			return (int)URDMA_COSIM_EXTERNAL(i);
	}
	if (len > 5 && !memcmp(text, "urdma", 5)) {
		text += 5;
		len -= 5;
	}
	if (!len || len > 4)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		v = v * 10 + (unsigned int)(text[i] - '0');
	}
	return v < c->n_nics ? (int)v : -1;
}

char *urdma_topology_name(const struct urdma_cosim_config *c, unsigned int port)
{
	char *name;

	if (port >= URDMA_COSIM_MAX_NICS)
		return strdup(urdma_external_name(c->external[port - URDMA_COSIM_EXTERNAL(0)]));
	return asprintf(&name, "urdma%u", port) < 0 ? NULL : name;
}

/* The option being resolved; a port may have only one wire. */
struct resolver {
	struct argp_state *state;
	const struct urdma_cosim_config *c;
	const char *option, *text;
	bool used[URDMA_COSIM_MAX_PORTS];
};

/* The port that an end of a wire names. */
static unsigned int port_named(struct resolver *r, const char *name, size_t len)
{
	int port = urdma_options_find_port(r->c, name, len);
	const char *digits = len > 5 && !memcmp(name, "urdma", 5) ? name + 5 : name;

	if (port >= 0)
		return (unsigned int)port;
	if (len && strspn(digits, "0123456789") >= len - (size_t)(digits - name))
		urdma_option_bad(r->state, r->option, r->text,
				 "there %s %u NIC%s, counted from 0; '%.*s' is none of them",
				 r->c->n_nics == 1 ? "is" : "are", r->c->n_nics,
				 r->c->n_nics == 1 ? "" : "s", (int)len, name);
	urdma_option_bad(r->state, r->option, r->text,
			 "'%.*s' is no NIC, and no port has this name", (int)len, name);
}

/* The same, for a port that has no wire yet; it gets one. */
static unsigned int wire_end(struct resolver *r, const char *name, size_t len)
{
	unsigned int port = port_named(r, name, len);

	if (r->used[port])
		urdma_option_bad(r->state, r->option, r->text, "%s%.*s has a wire already",
				 port < URDMA_COSIM_MAX_NICS ? "NIC " : "", (int)len, name);
	r->used[port] = true;
	return port;
}

static void resolve_wire(struct resolver *r, struct urdma_cosim_config *c,
			 const struct urdma_wire_options *w)
{
	const char *text = r->text, *dash = strchr(text, '-');
	size_t len = dash ? (size_t)(dash - text) : 0;

	if (!strcmp(text, "none"))
		return;
	if (!dash || strchr(dash + 1, '-') || !len || !dash[1])
		urdma_option_bad(r->state, r->option, text, "not of the form A-B");
	if (strlen(dash + 1) == len && !memcmp(text, dash + 1, len))
		urdma_option_bad(r->state, r->option, text, "joins a NIC with itself");
	c->wire[c->n_wires][0] = wire_end(r, text, len);
	c->wire[c->n_wires][1] = wire_end(r, dash + 1, strlen(dash + 1));
	c->line[c->n_wires++] = w->line;
}

/* The settings of single wires of the switch, whose names are already resolved. */
static void set_own(struct resolver *r, struct urdma_cosim_config *c, unsigned int i,
		    const struct urdma_switch_options *sw)
{
	for (unsigned int k = 0; k < sw->n_own; k++) {
		const char *name = sw->own[k].port;
		struct urdma_cosim_line *line;
		unsigned int port, p = 0;

		r->option = "wires";
		r->text = name;
		port = port_named(r, name, strlen(name));
		while (p < c->sw[i].n && c->sw[i].port[p] != port)
			p++;
		if (p == c->sw[i].n)
			urdma_option_bad(r->state, r->option, name, "it is not on this switch");
		line = &c->sw[i].line[p];
		if (sw->own[k].line.rate_mbps)
			line->rate_mbps = sw->own[k].line.rate_mbps;
		if (sw->own[k].line.delay_ns)
			line->delay_ns = sw->own[k].line.delay_ns;
	}
}

static void resolve_switch(struct resolver *r, struct urdma_cosim_config *c,
			   const struct urdma_switch_options *sw)
{
	unsigned int i = c->n_switches++;
	const char *at = r->text;

	c->sw[i].latency_ns = sw->latency_ns;
	c->sw[i].queue = sw->queue;
	c->sw[i].age_ns = sw->age_ns;
	for (;; at++) {
		size_t len = strcspn(at, ",");

		if (c->sw[i].n == URDMA_SWITCH_MAX_PORTS)
			urdma_option_bad(r->state, r->option, r->text, "more than %u ports",
					 URDMA_SWITCH_MAX_PORTS);
		c->sw[i].line[c->sw[i].n] = sw->line;
		c->sw[i].port[c->sw[i].n++] = wire_end(r, at, len);
		at += len;
		if (!*at)
			break;
	}
	set_own(r, c, i, sw);
}

/* Messages from here on refer to an option there. */
static void go_to(struct resolver *r, struct urdma_options *o, const char *option, const char *text,
		  const char *place)
{
	r->option = option;
	r->text = text;
	snprintf(o->scope.place, sizeof(o->scope.place), "%s", place ? place : "");
}

void urdma_topology_resolve(struct argp_state *state, struct urdma_options *o)
{
	struct urdma_cosim_config *c = &o->cosim;
	struct resolver r = { .state = state, .c = c };

	for (unsigned int i = 0; i < o->n_wires; i++) {
		go_to(&r, o, "wire", o->wire[i].text, o->wire[i].place);
		resolve_wire(&r, c, &o->wire[i]);
	}
	for (unsigned int i = 0; i < o->n_switches; i++) {
		go_to(&r, o, "switch", o->sw[i].text, o->sw[i].place);
		resolve_switch(&r, c, &o->sw[i]);
	}
	for (unsigned int i = 0; i + 1 < c->n_nics && !o->n_wires && !o->n_switches; i += 2) {
		c->wire[c->n_wires][0] = i;
		c->wire[c->n_wires][1] = i + 1;
		c->n_wires++;
	}
	for (unsigned int i = 0; i < c->n_external; i++) {
		if (r.used[URDMA_COSIM_EXTERNAL(i)])
			continue;
		go_to(&r, o, "port", NULL, i < o->n_file_ports ? o->system : NULL);
		urdma_option_bad(state, "port", urdma_external_name(c->external[i]),
				 "no wire and no switch has it");
	}
	go_to(&r, o, NULL, NULL, NULL);
}
