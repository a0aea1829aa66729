// SPDX-License-Identifier: Apache-2.0
// Options that say which ports there are besides the NICs, and what is joined with what.
#include <string.h>

#include "options/layers.h"

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

static void add_port(struct argp_state *state, const char *text)
{
	struct urdma_options *o = state->input;
	struct urdma_cosim_config *c = &o->cosim;
	struct urdma_external *e;
	char error[256];

	if (c->n_external == URDMA_COSIM_MAX_EXTERNAL)
		argp_error(state, "--port %s: more than %u", text, URDMA_COSIM_MAX_EXTERNAL);
	if (urdma_external_parse(text, &e, error, sizeof(error)))
		argp_error(state, "--port '%s': %s", text, error);
	for (unsigned int i = 0; i < c->n_external; i++)
		if (!strcmp(urdma_external_name(c->external[i]), urdma_external_name(e)))
			argp_error(state, "--port %s: there is one of this name already", text);
	c->external[c->n_external++] = e;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;

	switch (key) {
	case OPT_PORT:
		add_port(state, arg);
		return 0;
	case OPT_WIRE:
		if (o->n_wires == URDMA_COSIM_MAX_WIRES)
			argp_error(state, "--wire %s: more than %u wires", arg,
				   URDMA_COSIM_MAX_WIRES);
		o->wire[o->n_wires++] = arg;
		return 0;
	case OPT_SWITCH:
		if (o->n_switches == URDMA_COSIM_MAX_SWITCHES)
			argp_error(state, "--switch %s: more than %u switches", arg,
				   URDMA_COSIM_MAX_SWITCHES);
		o->sw[o->n_switches++] = arg;
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

/* An option that is being resolved; a port may have one wire only. */
struct resolver {
	struct argp_state *state;
	const struct urdma_cosim_config *c;
	const char *option, *text;
	bool used[URDMA_COSIM_MAX_PORTS];
};

/* The port that an end of a wire names. */
static unsigned int wire_end(struct resolver *r, const char *name, size_t len)
{
	int port = urdma_options_find_port(r->c, name, len);

	if (port < 0 && len && strspn(name, "0123456789") >= len)
		argp_error(r->state, "--%s %s: there are %u NICs, counted from 0", r->option,
			   r->text, r->c->n_nics);
	if (port < 0)
		argp_error(r->state, "--%s %s: '%.*s' is no NIC, and no --port has this name",
			   r->option, r->text, (int)len, name);
	if (r->used[port])
		argp_error(r->state, "--%s %s: %s%.*s has a wire already", r->option, r->text,
			   port < (int)URDMA_COSIM_MAX_NICS ? "NIC " : "", (int)len, name);
	r->used[port] = true;
	return (unsigned int)port;
}

static void resolve_wire(struct resolver *r, struct urdma_cosim_config *c)
{
	const char *text = r->text, *dash = strchr(text, '-');
	size_t len = dash ? (size_t)(dash - text) : 0;

	if (!strcmp(text, "none"))
		return;
	if (!dash || strchr(dash + 1, '-') || !len || !dash[1])
		argp_error(r->state, "--wire '%s': not of the form A-B", text);
	if (strlen(dash + 1) == len && !memcmp(text, dash + 1, len))
		argp_error(r->state, "--wire %s: joins a NIC with itself", text);
	c->wire[c->n_wires][0] = wire_end(r, text, len);
	c->wire[c->n_wires][1] = wire_end(r, dash + 1, strlen(dash + 1));
	c->n_wires++;
}

static void resolve_switch(struct resolver *r, struct urdma_cosim_config *c)
{
	unsigned int i = c->n_switches++;
	const char *at = r->text;

	for (;;) {
		size_t len = strcspn(at, ",");

		if (c->sw[i].n == URDMA_SWITCH_MAX_PORTS)
			argp_error(r->state, "--switch %s: more than %u ports", r->text,
				   URDMA_SWITCH_MAX_PORTS);
		c->sw[i].port[c->sw[i].n++] = wire_end(r, at, len);
		if (!at[len])
			return;
		at += len + 1;
	}
}

void urdma_topology_resolve(struct argp_state *state, struct urdma_options *o)
{
	struct urdma_cosim_config *c = &o->cosim;
	struct resolver r = { .state = state, .c = c, .option = "wire" };

	for (unsigned int i = 0; i < o->n_wires; i++) {
		r.text = o->wire[i];
		resolve_wire(&r, c);
	}
	r.option = "switch";
	for (unsigned int i = 0; i < o->n_switches; i++) {
		r.text = o->sw[i];
		resolve_switch(&r, c);
	}
	for (unsigned int i = 0; i + 1 < c->n_nics && !o->n_wires && !o->n_switches; i += 2) {
		c->wire[c->n_wires][0] = i;
		c->wire[c->n_wires][1] = i + 1;
		c->n_wires++;
	}
	for (unsigned int i = 0; i < c->n_external; i++)
		if (!r.used[URDMA_COSIM_EXTERNAL(i)])
			argp_error(state, "--port %s=...: no --wire and no --switch has it",
				   urdma_external_name(c->external[i]));
}
