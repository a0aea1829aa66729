// SPDX-License-Identifier: Apache-2.0
// The program's own options, and what concerns more than one layer.
#include "options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/layers.h"
#include "options/value.h"
#include "urdma_hw.h"

#define TEXT_OF(x)  #x
#define TEXT(macro) TEXT_OF(macro)

enum {
	OPT_SOCKET = 0x600,
	OPT_OUT,
	OPT_CONTROL,
	OPT_TELL,
	OPT_CHECK,
	OPT_HELP_SETTINGS,
};

static const struct argp_option options[] = {
	{ "socket", OPT_SOCKET, "PATH", 0, "vfio-user socket of the next NIC (urdma0, urdma1, ...)",
	  0 },
	{ "out", OPT_OUT, "DIR", 0, "Where counters.json, cosim.json and captures go", 0 },
	{ "control", OPT_CONTROL, "PATH", 0, "Socket that takes commands; see docs/cosim.md", 0 },
	{ "tell", OPT_TELL, "PATH", 0,
	  "Give a running urdma-cosim the command that follows by that socket, and end", 0 },
	{ "check", OPT_CHECK, NULL, 0,
	  "Check all options, print what they come to as JSON, and end", 0 },
	{ "help-settings", OPT_HELP_SETTINGS, NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

/* What holds for every run, however its NICs are joined: what the launcher hands through. */
#define SETTINGS                                                      \
	{ &urdma_eth_argp, 0, "Ports, wires and switches:", 12 },     \
		{ &urdma_fault_argp, 0, "Faults of the wires:", 13 }, \
		{ &urdma_pcie_argp, 0, "PCIe:", 14 },                 \
		{ &urdma_run_argp, 0, "Captures, time, diagnosis:", 15 },

static const struct argp_child settings[] = { SETTINGS{ 0 } };
static const struct argp_child layers[] = {
	{ &urdma_topology_argp, 0, "What is joined with what:", 11 },
	SETTINGS{ 0 },
};
static const struct argp settings_argp = { .children = settings };

/* The rest of the command line is a command for another. */
static void take_command(struct argp_state *state, struct urdma_options *o)
{
	if (state->next >= state->argc)
		argp_error(state, "--tell %s: tell it what?", o->tell);
	for (; state->next < state->argc; state->next++) {
		const char *word = state->argv[state->next];

		if (strlen(o->tell_line) + strlen(word) + 2 > sizeof(o->tell_line))
			argp_error(state, "--tell: the command is too long");
		if (o->tell_line[0])
			strcat(o->tell_line, " ");
		strcat(o->tell_line, word);
	}
}

static void add_socket(struct argp_state *state, struct urdma_options *o, const char *path)
{
	if (o->cosim.n_nics == URDMA_COSIM_MAX_NICS)
		argp_error(state, "--socket: more than %u NICs", URDMA_COSIM_MAX_NICS);
	o->socket[o->cosim.n_nics++] = path;
}

static void check(struct argp_state *state, struct urdma_options *o)
{
	if (o->tell)
		return;
	if (!o->cosim.n_nics)
		argp_error(state, "no --socket: nothing to simulate");
	if (!o->out || !o->out[0])
		argp_error(state, "--out is missing");
	urdma_topology_resolve(state, o);
	if (o->n_faults && !o->cosim.n_wires && !o->cosim.n_switches)
		argp_error(state, "there is no wire for the faults that are asked for");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		for (size_t i = 0; layers[i].argp; i++)
			state->child_inputs[i] = o;
		return 0;
	case OPT_SOCKET:
		add_socket(state, o, arg);
		return 0;
	case OPT_OUT:
		o->out = arg;
		return 0;
	case OPT_CONTROL:
		o->control = arg;
		return 0;
	case OPT_TELL:
		o->tell = arg;
		take_command(state, o);
		return 0;
	case OPT_CHECK:
		o->check = true;
		return 0;
	case OPT_HELP_SETTINGS:
		argp_help(&settings_argp, stdout, ARGP_HELP_LONG, state->name);
		exit(0);
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	case ARGP_KEY_END: /* comes after that of the layers */
		check(state, o);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void urdma_options_parse(struct urdma_options *o, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = layers,
		.args_doc = "--socket PATH [--socket PATH ...] --out DIR\n--tell PATH COMMAND...",
		.doc = "Simulates one urdma NIC for each socket, to be used by QEMU's "
		       "vfio-user-pci device.\v"
		       "Prints \"ready\" when all sockets listen. SIGTERM or SIGINT ends it: it "
		       "writes its reports and exits 0; 1 after a simulation error, or when a file "
		       "of the results could not be written; 2 for bad options.",
	};

	argp_program_version =
		"urdma-cosim " URDMA_COSIM_VERSION
		" (hardware contract " TEXT(URDMA_VERSION_MAJOR) "." TEXT(URDMA_VERSION_MINOR) ")";
	argp_err_exit_status = 2;
	memset(o, 0, sizeof(*o));
	urdma_cosim_config_defaults(&o->cosim, 0);
	o->seed = 1;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, o);
}

/* ---- what they come to ----------------------------------------------------------------------- */

static json_t *integer(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *gbps(uint64_t mbps)
{
	return json_real((double)mbps / 1000);
}

static json_t *name_of(const struct urdma_cosim_config *c, unsigned int port)
{
	if (port < URDMA_COSIM_MAX_NICS)
		return json_sprintf("urdma%u", port);
	return json_string(urdma_external_name(c->external[port - URDMA_COSIM_EXTERNAL(0)]));
}

static json_t *names_of(const struct urdma_cosim_config *c, const unsigned int *port,
			unsigned int n)
{
	json_t *names = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(names, name_of(c, port[i]));
	return names;
}

static json_t *pcie_json(const struct urdma_pcie_config *c)
{
	json_t *json = json_object();

	json_object_set_new(json, "generation", integer(c->gen));
	json_object_set_new(json, "lanes", integer(c->lanes));
	json_object_set_new(json, "gbps", gbps(c->mbps));
	json_object_set_new(json, "latency_ns", integer(c->latency_ns));
	json_object_set_new(json, "max_payload", integer(c->mps));
	json_object_set_new(json, "max_read_request", integer(c->mrrs));
	json_object_set_new(json, "read_completion_boundary", integer(c->rcb));
	json_object_set_new(json, "completion", integer(c->cpl ? c->cpl : c->mps));
	json_object_set_new(json, "reorder_seed", c->reorder ? integer(c->seed) : json_null());
	json_object_set_new(json, "stall_percent", integer(c->stall_percent));
	return json;
}

static json_t *window_json(const struct urdma_window *w)
{
	json_t *json = json_object();

	json_object_set_new(json, "from_ns", integer(w->from));
	json_object_set_new(json, "to_ns", w->to ? integer(w->to) : json_null());
	json_object_set_new(json, "hold", json_boolean(w->hold));
	return json;
}

static json_t *waves_json(const struct urdma_waves_options *w)
{
	json_t *json;

	if (!w->on)
		return json_null();
	json = window_json(&w->window);
	json_object_set_new(json, "last_ns",
			    w->window.last ? integer(w->window.last) : json_null());
	json_object_set_new(json, "scope", w->scope ? json_string(w->scope) : json_null());
	return json;
}

json_t *urdma_options_json(const struct urdma_options *o)
{
	const struct urdma_cosim_config *c = &o->cosim;
	json_t *json = json_object(), *wires = json_array(), *switches = json_array();

	for (unsigned int i = 0; i < c->n_wires; i++)
		json_array_append_new(wires, names_of(c, c->wire[i], 2));
	for (unsigned int i = 0; i < c->n_switches; i++)
		json_array_append_new(switches, names_of(c, c->sw[i].port, c->sw[i].n));
	json_object_set_new(json, "nics", integer(c->n_nics));
	json_object_set_new(json, "wires", wires);
	json_object_set_new(json, "switches", switches);
	json_object_set_new(json, "rate_gbps", gbps(c->rate_mbps));
	json_object_set_new(json, "delay_ns", integer(c->delay_ns));
	json_object_set_new(json, "switch_queue", integer(c->switch_queue));
	json_object_set_new(json, "switch_latency_ns", integer(c->switch_latency_ns));
	json_object_set_new(json, "switch_age_s", integer(c->switch_age_ns / 1000000000));
	json_object_set_new(json, "pcie", pcie_json(&c->pcie));
	json_object_set_new(json, "faults", integer(o->n_faults));
	json_object_set_new(json, "seed", integer(o->seed));
	json_object_set_new(json, "captures", json_boolean(o->trace_pcap));
	json_object_set_new(json, "events",
			    o->events.on ? window_json(&o->events.window) : json_null());
	json_object_set_new(json, "csv", json_boolean(o->events.csv));
	json_object_set_new(json, "perfetto", json_boolean(o->events.perfetto));
	json_object_set_new(json, "waves", waves_json(&o->waves));
	json_object_set_new(json, "live", json_boolean(o->live));
	json_object_set_new(json, "stall_us", integer(c->stall_ns / 1000));
	json_object_set_new(json, "skip", json_boolean(!c->no_skip));
	json_object_set_new(json, "threads", integer(c->threads));
	json_object_set_new(json, "slow_clock", integer(o->slow_clock));
	return json;
}
