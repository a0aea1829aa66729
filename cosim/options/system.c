// SPDX-License-Identifier: Apache-2.0
// The file of --system: reads it, and writes the resulting settings in the same form. The settings
// in its objects are the options of the layers, with the same names, values and checks.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/layers.h"
#include "options/value.h"

/* ---- values ---------------------------------------------------------------------------------- */

static const char *type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "true or false";
	default:
		return "null";
	}
}

/* key: in the current object; empty: the object itself. */
static void expect(struct argp_state *state, const char *key, const json_t *v, bool ok,
		   const char *what)
{
	if (!ok)
		urdma_option_bad(state, key, NULL, "has to be %s, and is %s", what, type_name(v));
}

static char *copy_of(struct argp_state *state, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		argp_failure(state, 1, ENOMEM, "--system");
	return copy;
}

/* The text of a setting, as on the command line; the caller frees it. */
static char *text_of(struct argp_state *state, const struct argp_option *option, const json_t *v)
{
	bool seed = !strcmp(option->arg, "SEED"), slot = !strcmp(option->arg, "SLOT");
	char text[40];

	if (slot || (seed && json_is_string(v))) {
		expect(state, option->name, v, json_is_string(v), "a string");
		return copy_of(state, json_string_value(v));
	}
	expect(state, option->name, v, json_is_number(v), "a number");
	if (json_is_integer(v))
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(v));
	else
		snprintf(text, sizeof(text), "%.15g", json_real_value(v));
	return copy_of(state, text);
}

/* ---- places and objects ---------------------------------------------------------------------- */

/* Enters a member of the current object; pass the return value to leave(). */
static size_t enter(struct urdma_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static size_t enter(struct urdma_options *o, const char *fmt, ...)
{
	size_t n = strlen(o->scope.place);
	bool top = !strcmp(o->scope.place, o->system);
	va_list ap;

	snprintf(o->scope.place + n, sizeof(o->scope.place) - n, "%s", top ? ": " : ".");
	va_start(ap, fmt);
	vsnprintf(o->scope.place + strlen(o->scope.place),
		  sizeof(o->scope.place) - strlen(o->scope.place), fmt, ap);
	va_end(ap);
	return n;
}

static void leave(struct urdma_options *o, size_t n)
{
	o->scope.place[n] = '\0';
}

/* A kind of object: the layers whose options it takes, and other keys. */
struct kind {
	const struct argp *argp[4];
	const char *except; /* list of options it does not accept, as " a b " */
	const char *keys;   /* a list */
};

static bool in_list(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
		if (at > list && at[-1] == ' ' && at[n] == ' ')
			return true;
	return false;
}

/* The n-th option that objects of this kind accept, and its layer. NULL: no more. */
static const struct argp_option *nth_option(const struct kind *kind, unsigned int n,
					    const struct argp **layer)
{
	for (size_t l = 0; kind->argp[l]; l++) {
		const struct argp_option *option = kind->argp[l]->options;

		for (; option->name; option++)
			if (!in_list(kind->except, option->name) && !n--) {
				*layer = kind->argp[l];
				return option;
			}
	}
	return NULL;
}

static void unknown(struct argp_state *state, const struct kind *kind, const char *key)
{
	const struct argp_option *option;
	const struct argp *layer;
	char known[768];
	size_t n = (size_t)snprintf(known, sizeof(known), "%s", kind->keys);

	for (unsigned int i = 0; (option = nth_option(kind, i, &layer)) && n < sizeof(known); i++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s ", option->name);
	urdma_option_bad(state, "", key, "no such key; here are known:%.*s", (int)strlen(known) - 1,
			 known);
}

/* Applies the settings of an object to the current scope, and checks its other keys. */
static void read_settings(struct argp_state *state, const struct kind *kind, json_t *object)
{
	const struct argp_option *option;
	const struct argp *layer;
	const char *key;
	json_t *v;

	expect(state, "", object, json_is_object(object), "an object");
	json_object_foreach(object, key, v)
	{
		char *text;

		if (in_list(kind->keys, key))
			continue;
		for (unsigned int i = 0; (option = nth_option(kind, i, &layer)); i++)
			if (!strcmp(option->name, key))
				break;
		if (!option)
			unknown(state, kind, key);
		text = text_of(state, option, v);
		layer->parser(option->key, text, state);
		free(text);
	}
	urdma_pcie_options_end(state);
}

/* The list of this key, or NULL. */
static json_t *list(struct argp_state *state, json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	if (v)
		expect(state, key, v, json_is_array(v), "a list");
	return v;
}

/* ---- what the file has ----------------------------------------------------------------------- */

#define OF_SWITCHES " switch-queue switch-latency switch-age "

static const struct kind top_kind = {
	.argp = { &urdma_eth_argp, &urdma_fault_argp, &urdma_pcie_argp },
	.except = " fault ",
	.keys = " comment hosts ports wires switches faults ",
};
static const struct kind host_kind = { .except = "", .keys = " comment nics " };
static const struct kind nic_kind = {
	.argp = { &urdma_pcie_argp },
	.except = "",
	.keys = " comment ",
};
static const struct kind wire_kind = {
	.argp = { &urdma_eth_argp },
	.except = OF_SWITCHES,
	.keys = " comment wire ",
};
static const struct kind switch_kind = {
	.argp = { &urdma_eth_argp },
	.except = "",
	.keys = " comment switch wires ",
};
static const struct kind switch_wire_kind = {
	.argp = { &urdma_eth_argp },
	.except = OF_SWITCHES,
	.keys = " comment ",
};

static void read_nic(struct argp_state *state, json_t *json)
{
	struct urdma_options *o = state->input;
	unsigned int n = o->cosim.n_nics;

	if (n == URDMA_COSIM_MAX_NICS)
		urdma_option_bad(state, "", NULL, "more than %u NICs", URDMA_COSIM_MAX_NICS);
	o->scope.nic = n;
	o->scope.n_nics = 1;
	read_settings(state, &nic_kind, json);
	o->nic[n].host = o->n_hosts;
	o->cosim.n_nics++;
}

static void read_hosts(struct argp_state *state, json_t *top)
{
	struct urdma_options *o = state->input;
	json_t *hosts = list(state, top, "hosts"), *host, *nics, *nic;
	size_t i, k;

	if (!hosts)
		urdma_option_bad(state, "", NULL, "there are no hosts");
	o->n_hosts = 0;
	json_array_foreach(hosts, i, host)
	{
		size_t place = enter(o, "hosts[%zu]", i);

		read_settings(state, &host_kind, host);
		nics = list(state, host, "nics");
		if (!nics)
			urdma_option_bad(state, "", NULL, "there are no nics");
		json_array_foreach(nics, k, nic)
		{
			size_t place_nic = enter(o, "nics[%zu]", k);

			read_nic(state, nic);
			leave(o, place_nic);
		}
		leave(o, place);
		o->n_hosts++;
	}
	o->scope.nic = 0;
	o->scope.n_nics = URDMA_COSIM_MAX_NICS;
	if (!o->cosim.n_nics)
		urdma_option_bad(state, "", NULL, "no host has a NIC: nothing to simulate");
}

/* Applies an option for each string of a list. */
static void read_strings(struct argp_state *state, json_t *top, const char *key,
			 void (*add)(struct argp_state *state, const char *text))
{
	struct urdma_options *o = state->input;
	json_t *strings = list(state, top, key), *v;
	size_t i;

	json_array_foreach(strings, i, v)
	{
		size_t place = enter(o, "%s[%zu]", key, i);

		expect(state, "", v, json_is_string(v), "a string");
		add(state, json_string_value(v));
		leave(o, place);
	}
}

/* A string, or an object with this key and a string value. */
static const char *name_in(struct argp_state *state, json_t *v, const char *key)
{
	json_t *name = json_is_object(v) ? json_object_get(v, key) : v;

	expect(state, "", v, json_is_object(v) || json_is_string(v), "a string or an object");
	if (!name)
		urdma_option_bad(state, "", NULL, "%s is missing", key);
	expect(state, key, name, json_is_string(name), "a string");
	return json_string_value(name);
}

static void read_wires(struct argp_state *state, json_t *top)
{
	struct urdma_options *o = state->input;
	json_t *wires = list(state, top, "wires"), *v;
	size_t i;

	json_array_foreach(wires, i, v)
	{
		size_t place = enter(o, "wires[%zu]", i);
		const char *text = name_in(state, v, "wire");
		struct urdma_wire_options *w = urdma_topology_add_wire(state, text);

		o->scope.line = &w->line;
		if (json_is_object(v))
			read_settings(state, &wire_kind, v);
		o->scope.line = NULL;
		leave(o, place);
	}
}

static void read_switch_wires(struct argp_state *state, struct urdma_switch_options *sw,
			      json_t *wires)
{
	struct urdma_options *o = state->input;
	const char *port;
	json_t *v;

	expect(state, "wires", wires, json_is_object(wires), "an object: settings for each port");
	json_object_foreach(wires, port, v)
	{
		size_t place = enter(o, "wires.%s", port);

		if (sw->n_own == URDMA_SWITCH_MAX_PORTS)
			urdma_option_bad(state, "", NULL, "more than %u wires",
					 URDMA_SWITCH_MAX_PORTS);
		sw->own[sw->n_own].port = port;
		o->scope.line = &sw->own[sw->n_own++].line;
		read_settings(state, &switch_wire_kind, v);
		leave(o, place);
	}
}

static void read_switches(struct argp_state *state, json_t *top)
{
	struct urdma_options *o = state->input;
	json_t *switches = list(state, top, "switches"), *v;
	size_t i;

	json_array_foreach(switches, i, v)
	{
		size_t place = enter(o, "switches[%zu]", i);
		const char *text = name_in(state, v, "switch");
		struct urdma_switch_options *sw = urdma_topology_add_switch(state, text);

		if (json_is_object(v)) {
			json_t *wires = json_object_get(v, "wires");

			o->scope.sw = sw;
			o->scope.line = &sw->line;
			read_settings(state, &switch_kind, v);
			if (wires)
				read_switch_wires(state, sw, wires);
			o->scope.line = NULL;
			o->scope.sw = NULL;
		}
		leave(o, place);
	}
}

static json_t *load(struct argp_state *state, const char *path)
{
	json_error_t error;
	json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

	if (json)
		return json;
	/* Line 0: the file cannot be read, and the text names it. */
	if (error.line < 0)
		argp_failure(state, argp_err_exit_status, 0, "--system: %s", error.text);
	argp_failure(state, argp_err_exit_status, 0, "%s:%d:%d: %s", path, error.line, error.column,
		     error.text);
	exit(argp_err_exit_status);
}

void urdma_system_load(struct argp_state *state)
{
	struct urdma_options *o = state->input;
	/* Keep it: port names and other texts point into it. */
	static json_t *json;

	json = load(state, o->system);
	snprintf(o->scope.place, sizeof(o->scope.place), "%s", o->system);
	read_settings(state, &top_kind, json);
	read_hosts(state, json);
	read_strings(state, json, "ports", urdma_topology_add_port);
	o->n_file_ports = o->cosim.n_external;
	read_wires(state, json);
	read_switches(state, json);
	/* Empty lists mean no wires. Without the lists the default wires are used. */
	if (!o->n_wires && !o->n_switches &&
	    (json_object_get(json, "wires") || json_object_get(json, "switches")))
		urdma_topology_add_wire(state, "none");
	o->wires_of_file = o->n_wires || o->n_switches;
	read_strings(state, json, "faults", urdma_fault_options_add);
	o->faults_of_file = o->n_faults;
	o->scope.place[0] = '\0';
}

/* ---- and back -------------------------------------------------------------------------------- */

static json_t *integer(uint64_t v)
{
	return json_integer((json_int_t)v);
}

/* Seeds too large for a JSON number are strings. */
static json_t *seed_json(uint64_t v)
{
	return v > INT64_MAX ? json_sprintf("%llu", (unsigned long long)v) : integer(v);
}

static json_t *gbps_json(uint64_t mbps)
{
	return mbps % 1000 ? json_real((double)mbps / 1000) : integer(mbps / 1000);
}

static json_t *pcie_json(const struct urdma_pcie_config *c)
{
	json_t *json = json_object();

	if (c->mbps == urdma_pcie_link_mbps(c->gen, c->lanes)) {
		json_object_set_new(json, "pcie-gen", integer(c->gen));
		json_object_set_new(json, "pcie-lanes", integer(c->lanes));
	} else {
		json_object_set_new(json, "pcie-gbps", gbps_json(c->mbps));
	}
	json_object_set_new(json, "pcie-latency", integer(c->latency_ns));
	json_object_set_new(json, "mps", integer(c->mps));
	json_object_set_new(json, "mrrs", integer(c->mrrs));
	json_object_set_new(json, "rcb", integer(c->rcb));
	if (c->cpl)
		json_object_set_new(json, "completion", integer(c->cpl));
	if (c->reorder)
		json_object_set_new(json, "reorder-completions", seed_json(c->seed));
	json_object_set_new(json, "pcie-stall", integer(c->stall_percent));
	return json;
}

static json_t *hosts_json(const struct urdma_options *o)
{
	json_t *hosts = json_array();

	for (unsigned int h = 0; h < o->n_hosts; h++) {
		json_t *host = json_object(), *nics = json_array();

		for (unsigned int i = 0; i < o->cosim.n_nics; i++)
			if (o->nic[i].host == h)
				json_array_append_new(nics, pcie_json(&o->nic[i].pcie));
		json_object_set_new(host, "nics", nics);
		json_array_append_new(hosts, host);
	}
	return hosts;
}

static void put_line(json_t *json, const struct urdma_cosim_config *c,
		     const struct urdma_cosim_line *line)
{
	json_object_set_new(json, "rate",
			    gbps_json(line->rate_mbps ? line->rate_mbps : c->rate_mbps));
	json_object_set_new(json, "delay", integer(line->delay_ns ? line->delay_ns : c->delay_ns));
}

static json_t *wires_json(const struct urdma_cosim_config *c)
{
	json_t *wires = json_array();

	for (unsigned int i = 0; i < c->n_wires; i++) {
		char *a = urdma_topology_name(c, c->wire[i][0]);
		char *b = urdma_topology_name(c, c->wire[i][1]);
		json_t *wire = json_object();

		json_object_set_new(wire, "wire", json_sprintf("%s-%s", a, b));
		put_line(wire, c, &c->line[i]);
		json_array_append_new(wires, wire);
		free(a);
		free(b);
	}
	return wires;
}

static json_t *switch_json(const struct urdma_cosim_config *c, unsigned int i)
{
	json_t *json = json_object(), *wires = json_object(), *names = NULL;
	uint64_t latency = c->sw[i].latency_ns, age = c->sw[i].age_ns;
	size_t queue = c->sw[i].queue;

	for (unsigned int k = 0; k < c->sw[i].n; k++) {
		char *name = urdma_topology_name(c, c->sw[i].port[k]);
		json_t *line = json_object(), *longer;

		put_line(line, c, &c->sw[i].line[k]);
		json_object_set_new(wires, name, line);
		longer = names ? json_sprintf("%s,%s", json_string_value(names), name)
			       : json_string(name);
		json_decref(names);
		names = longer;
		free(name);
	}
	json_object_set_new(json, "switch", names);
	json_object_set_new(json, "switch-queue", integer(queue ? queue : c->switch_queue));
	json_object_set_new(json, "switch-latency",
			    integer(latency ? latency : c->switch_latency_ns));
	json_object_set_new(json, "switch-age",
			    integer((age ? age : c->switch_age_ns) / 1000000000));
	json_object_set_new(json, "wires", wires);
	return json;
}

static json_t *strings_json(char *const *text, unsigned int n)
{
	json_t *strings = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(strings, json_string(text[i]));
	return strings;
}

json_t *urdma_system_json(const struct urdma_options *o)
{
	const struct urdma_cosim_config *c = &o->cosim;
	json_t *json = json_object(), *switches = json_array();

	for (unsigned int i = 0; i < c->n_switches; i++)
		json_array_append_new(switches, switch_json(c, i));
	/* Settings of a port without a wire. */
	put_line(json, c, &(struct urdma_cosim_line){ 0 });
	json_object_set_new(json, "hosts", hosts_json(o));
	json_object_set_new(json, "ports", strings_json(o->port_text, c->n_external));
	json_object_set_new(json, "wires", wires_json(c));
	json_object_set_new(json, "switches", switches);
	json_object_set_new(json, "faults", strings_json(o->fault_text, o->n_faults));
	json_object_set_new(json, "seed", seed_json(o->seed));
	return json;
}
