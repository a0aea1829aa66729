// SPDX-License-Identifier: Apache-2.0
// The program's own options, and checks that involve more than one layer.
#define _GNU_SOURCE /* asprintf */
#include "options/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "options/layers.h"
#include "options/value.h"
#include "urdma_hw.h"

#define TEXT_OF(x)  #x
#define TEXT(macro) TEXT_OF(macro)

enum {
	OPT_SYSTEM = 0x600,
	OPT_SOCKET,
	OPT_NICS_OF_HOSTS,
	OPT_OUT,
	OPT_CONTROL,
	OPT_TELL,
	OPT_CHECK,
	OPT_HELP_SETTINGS,
};

static const struct argp_option options[] = {
	{ "system", OPT_SYSTEM, "FILE", 0,
	  "What is simulated: hosts, their NICs, wires and so on, as JSON; see docs/cosim.md. "
	  "Other "
	  "options go before what it says",
	  0 },
	{ "socket", OPT_SOCKET, "PATH", 0,
	  "vfio-user socket of the next NIC (urdma0, urdma1, ...). With --system the default is "
	  "urdma0.sock and so on in the directory of --out",
	  0 },
	{ "nics-of-hosts", OPT_NICS_OF_HOSTS, "N,N...", 0,
	  "How many of the NICs each host has, as system.json tells it. Without it all are of one "
	  "host",
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

/*
 * Options that apply to every run, independent of its topology: those that the launcher passes on.
 */
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

/* The rest of the command line is a command for another simulator. */
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
	unsigned int max = o->loaded ? o->cosim.n_nics : URDMA_COSIM_MAX_NICS;

	if (o->n_sockets == max)
		urdma_option_bad(state, "socket", path, "more than %u NICs%s%s", max,
				 o->loaded ? ", which is what there are in " : "",
				 o->loaded ? o->system : "");
	o->nic[o->n_sockets++].socket = path;
}

/* The sockets of NICs without --socket. */
static void default_sockets(struct urdma_options *o)
{
	for (unsigned int i = o->n_sockets; i < o->cosim.n_nics; i++) {
		char *path;

		o->nic[i].socket = asprintf(&path, "%s/urdma%u.sock", o->out, i) < 0 ? NULL : path;
	}
}

/* Assigns the NICs to the hosts of --nics-of-hosts. */
static void share_out(struct argp_state *state, struct urdma_options *o)
{
	static const char option[] = "nics-of-hosts";
	const char *text = o->nics_of_hosts, *at = text;
	unsigned int n = 0;
	char *end;

	if (!text)
		return;
	if (o->system)
		urdma_option_bad(state, option, text, "%s tells the hosts", o->system);
	for (o->n_hosts = 0; o->n_hosts < URDMA_COSIM_MAX_NICS; at = end + 1) {
		unsigned long nics = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : ULONG_MAX;

		if (nics > o->cosim.n_nics - n)
			break;
		for (; nics; nics--)
			o->nic[n++].host = o->n_hosts;
		o->n_hosts++;
		if (!*end && n == o->cosim.n_nics)
			return;
		if (*end != ',')
			break;
	}
	urdma_option_bad(state, option, text,
			 "not a list of numbers that add up to %u, for %u hosts at most",
			 o->cosim.n_nics, URDMA_COSIM_MAX_NICS);
}

static bool same_file(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

/* A capture of this run would overwrite a file that the run replays. */
static void check_replays(struct argp_state *state, const struct urdma_options *o)
{
	const struct urdma_cosim_config *c = &o->cosim;

	for (unsigned int i = 0; i < c->n_external && o->trace_pcap; i++) {
		const char *file = urdma_external_file(c->external[i]);

		for (unsigned int port = 0; port < c->n_nics + c->n_external && file; port++) {
			char *name = urdma_topology_name(
				c,
				port < c->n_nics ? port : URDMA_COSIM_EXTERNAL(port - c->n_nics));
			char *capture;

			if (name && asprintf(&capture, "%s/%s.pcapng", o->out, name) >= 0) {
				if (same_file(file, capture))
					argp_error(state,
						   "--port '%s': the capture of %s would be "
						   "written over this file; choose another --out",
						   o->port_text[i], name);
				free(capture);
			}
			free(name);
		}
	}
}

static void check(struct argp_state *state, struct urdma_options *o)
{
	if (o->tell)
		return;
	if (!o->loaded)
		o->cosim.n_nics = o->n_sockets;
	if (!o->cosim.n_nics)
		argp_error(state, "no --socket: nothing to simulate");
	share_out(state, o);
	if (!o->out || !o->out[0])
		argp_error(state, "--out is missing");
	default_sockets(o);
	urdma_topology_resolve(state, o);
	check_replays(state, o);
	urdma_run_resolve(state, o);
	for (unsigned int i = 0; i < o->cosim.n_nics; i++)
		o->cosim.nic_pcie[i] = &o->nic[i].pcie;
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
		if (o->loaded) {
			/*
			 * argp sets it only after this, but errors of the file are reported before.
			 */
			char *slash = strrchr(state->argv[0], '/');

			state->name = slash ? slash + 1 : state->argv[0];
			urdma_system_load(state);
		}
		return 0;
	case OPT_SYSTEM:
		if (o->system && strcmp(o->system, arg))
			urdma_option_bad(state, "system", arg, "there is one already: %s",
					 o->system);
		o->system = arg;
		return 0;
	case OPT_SOCKET:
		add_socket(state, o, arg);
		return 0;
	case OPT_NICS_OF_HOSTS:
		o->nics_of_hosts = arg;
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
	case ARGP_KEY_END: /* comes after the end of the layers' parsers */
		if (!o->system || o->loaded)
			check(state, o);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void set_defaults(struct urdma_options *o)
{
	memset(o, 0, sizeof(*o));
	urdma_cosim_config_defaults(&o->cosim, 0);
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_NICS; i++)
		o->nic[i].pcie = o->cosim.pcie;
	o->scope.n_nics = URDMA_COSIM_MAX_NICS;
	o->n_hosts = 1;
	o->seed = 1;
}

/* Frees memory allocated by the first parse. */
static void forget(struct urdma_options *o)
{
	for (unsigned int i = 0; i < o->cosim.n_external; i++) {
		urdma_external_destroy(o->cosim.external[i]);
		free(o->port_text[i]);
	}
	for (unsigned int i = 0; i < o->n_faults; i++)
		free(o->fault_text[i]);
}

/* Option parsers may modify a word. */
static char **copy_words(int n, char **word)
{
	char **copy = calloc((size_t)n + 1, sizeof(*copy));

	for (int i = 0; copy && i < n; i++)
		copy[i] = strdup(word[i]);
	return copy;
}

static void free_words(char **word)
{
	for (size_t i = 0; word && word[i]; i++)
		free(word[i]);
	free(word);
}

void urdma_options_parse(struct urdma_options *o, int argc, char **argv)
{
	const char *file;
	char **again;
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = layers,
		.args_doc = "--socket PATH [--socket PATH ...] --out DIR\n--system FILE --out DIR\n"
			    "--tell PATH COMMAND...",
		.doc = "Simulates one urdma NIC for each socket, to be used by QEMU's "
		       "vfio-user-pci device.\v"
		       "Prints \"ready\" when all sockets listen. SIGTERM, SIGINT or SIGHUP ends "
		       "it: it "
		       "writes its reports and exits 0; 1 after a simulation error, or when a file "
		       "of the results could not be written; 2 for bad options.",
	};

	argp_program_version =
		"urdma-cosim " URDMA_COSIM_VERSION
		" (hardware contract " TEXT(URDMA_VERSION_MAJOR) "." TEXT(URDMA_VERSION_MINOR) ")";
	argp_err_exit_status = 2;
	again = copy_words(argc, argv);
	set_defaults(o);
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, o);
	if (!o->system || o->tell) {
		free_words(again);
		return;
	}
	/* Parse again, on top of the file. */
	file = o->system;
	forget(o);
	set_defaults(o);
	o->words = again;
	o->system = file;
	o->loaded = true;
	argp_parse(&argp, argc, again, ARGP_IN_ORDER, NULL, o);
}

/* ---- what they come to ----------------------------------------------------------------------- */

static json_t *integer(uint64_t v)
{
	return json_integer((json_int_t)v);
}

static json_t *names_of(const struct urdma_cosim_config *c, const unsigned int *port,
			unsigned int n)
{
	json_t *names = json_array();

	for (unsigned int i = 0; i < n; i++) {
		char *name = urdma_topology_name(c, port[i]);

		json_array_append_new(names, json_string(name));
		free(name);
	}
	return names;
}

static json_t *window_json(const struct urdma_window *w)
{
	json_t *json = json_object();

	if (w->trigger) {
		json_object_set_new(json, "before_ns", integer(w->before));
		json_object_set_new(json, "after_ns", integer(w->after));
		return json;
	}
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
	json_object_set_new(json, "system", urdma_system_json(o));
	json_object_set_new(json, "captures", json_boolean(o->trace_pcap));
	json_object_set_new(json, "events",
			    o->events.on ? window_json(&o->events.window) : json_null());
	json_object_set_new(json, "csv", json_boolean(o->events.csv));
	json_object_set_new(json, "perfetto", json_boolean(o->events.perfetto));
	json_object_set_new(json, "waves", waves_json(&o->waves));
	json_object_set_new(json, "trigger",
			    o->trigger_text ? json_string(o->trigger_text) : json_null());
	json_object_set_new(json, "sample_us",
			    o->sample_ns ? integer(o->sample_ns / 1000) : json_null());
	json_object_set_new(json, "live", json_boolean(o->live));
	json_object_set_new(json, "stall_us", integer(c->stall_ns / 1000));
	json_object_set_new(json, "skip", json_boolean(!c->no_skip));
	json_object_set_new(json, "threads", integer(c->threads));
	json_object_set_new(json, "slow_clock", integer(o->slow_clock));
	return json;
}
