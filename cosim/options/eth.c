// SPDX-License-Identifier: Apache-2.0
// Options common to all ports, wires and switches.
#include "options/layers.h"
#include "options/value.h"

/* Rate of the NIC's streams: 512 bits in each 4 ns cycle. */
#define NIC_GBPS 128u

enum {
	OPT_RATE = 0x200,
	OPT_DELAY,
	OPT_SWITCH_QUEUE,
	OPT_SWITCH_LATENCY,
	OPT_SWITCH_AGE,
};

static const struct argp_option options[] = {
	{ "rate", OPT_RATE, "GBPS", 0, "Line rate of the wires, 0.1 to 128 (100)", 0 },
	{ "delay", OPT_DELAY, "NS", 0, "Propagation delay of the wires (250)", 0 },
	{ "switch-queue", OPT_SWITCH_QUEUE, "BYTES", 0,
	  "What each port of a switch can store (524288)", 0 },
	{ "switch-latency", OPT_SWITCH_LATENCY, "NS", 0,
	  "Of a switch, from a frame's last bit to its first (500)", 0 },
	{ "switch-age", OPT_SWITCH_AGE, "S", 0, "Until a switch forgets an address (300)", 0 },
	{ 0 },
};

/* A faster line would exceed the rate that a NIC can accept. */
static uint64_t parse_rate(struct argp_state *state, const char *text)
{
	uint64_t mbps = urdma_option_gbps(state, "rate", text, 1000);

	if (mbps > NIC_GBPS * 1000)
		urdma_option_bad(state, "rate", text,
				 "a NIC takes at most %u Gb/s, 512 bits in each cycle of 4 ns",
				 NIC_GBPS);
	return mbps;
}

/* Sets the wire or switch of the scope, or all wires, including those with their own settings. */
static void set_rate(struct urdma_options *o, uint64_t mbps)
{
	if (o->scope.line) {
		o->scope.line->rate_mbps = mbps;
		return;
	}
	o->cosim.rate_mbps = mbps;
	for (unsigned int i = 0; i < o->n_wires; i++)
		o->wire[i].line.rate_mbps = 0;
	for (unsigned int i = 0; i < o->n_switches; i++) {
		o->sw[i].line.rate_mbps = 0;
		for (unsigned int k = 0; k < o->sw[i].n_own; k++)
			o->sw[i].own[k].line.rate_mbps = 0;
	}
}

static void set_delay(struct urdma_options *o, uint64_t ns)
{
	if (o->scope.line) {
		o->scope.line->delay_ns = ns;
		return;
	}
	o->cosim.delay_ns = ns;
	for (unsigned int i = 0; i < o->n_wires; i++)
		o->wire[i].line.delay_ns = 0;
	for (unsigned int i = 0; i < o->n_switches; i++) {
		o->sw[i].line.delay_ns = 0;
		for (unsigned int k = 0; k < o->sw[i].n_own; k++)
			o->sw[i].own[k].line.delay_ns = 0;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;
	struct urdma_switch_options *sw = o->scope.sw;
	struct urdma_cosim_config *c = &o->cosim;

	switch (key) {
	case OPT_RATE:
		set_rate(o, parse_rate(state, arg));
		return 0;
	case OPT_DELAY:
		set_delay(o, urdma_option_number(state, "delay", arg, 4, 1000000000));
		return 0;
	case OPT_SWITCH_QUEUE:
		*(sw ? &sw->queue : &c->switch_queue) = urdma_option_number(
			state, "switch-queue", arg, URDMA_ETH_MAX_FRAME, 1u << 30);
		for (unsigned int i = 0; i < o->n_switches && !sw; i++)
			o->sw[i].queue = 0;
		return 0;
	case OPT_SWITCH_LATENCY:
		*(sw ? &sw->latency_ns : &c->switch_latency_ns) =
			urdma_option_number(state, "switch-latency", arg, 4, 1000000000);
		for (unsigned int i = 0; i < o->n_switches && !sw; i++)
			o->sw[i].latency_ns = 0;
		return 0;
	case OPT_SWITCH_AGE:
		*(sw ? &sw->age_ns : &c->switch_age_ns) =
			urdma_option_number(state, "switch-age", arg, 1, 1000000) *
			UINT64_C(1000000000);
		for (unsigned int i = 0; i < o->n_switches && !sw; i++)
			o->sw[i].age_ns = 0;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp urdma_eth_argp = { .options = options, .parser = parse };
