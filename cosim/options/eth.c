// SPDX-License-Identifier: Apache-2.0
// Options of all ports, wires and switches alike.
#include "options/layers.h"
#include "options/value.h"

enum {
	OPT_RATE = 0x200,
	OPT_DELAY,
	OPT_SWITCH_QUEUE,
	OPT_SWITCH_LATENCY,
	OPT_SWITCH_AGE,
};

static const struct argp_option options[] = {
	{ "rate", OPT_RATE, "GBPS", 0, "Line rate of the ports, 0.1 to 1000 (100)", 0 },
	{ "delay", OPT_DELAY, "NS", 0, "Propagation delay of the wires (250)", 0 },
	{ "switch-queue", OPT_SWITCH_QUEUE, "BYTES", 0,
	  "What each port of a switch can store (524288)", 0 },
	{ "switch-latency", OPT_SWITCH_LATENCY, "NS", 0,
	  "Of a switch, from a frame's last bit to its first (500)", 0 },
	{ "switch-age", OPT_SWITCH_AGE, "S", 0, "Until a switch forgets an address (300)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;
	struct urdma_cosim_config *c = &o->cosim;

	switch (key) {
	case OPT_RATE:
		c->rate_mbps = urdma_option_gbps(state, "rate", arg);
		return 0;
	case OPT_DELAY:
		c->delay_ns = urdma_option_number(state, "delay", arg, 4, 1000000000);
		return 0;
	case OPT_SWITCH_QUEUE:
		c->switch_queue = urdma_option_number(state, "switch-queue", arg,
						      URDMA_ETH_MAX_FRAME, 1u << 30);
		return 0;
	case OPT_SWITCH_LATENCY:
		c->switch_latency_ns =
			urdma_option_number(state, "switch-latency", arg, 4, 1000000000);
		return 0;
	case OPT_SWITCH_AGE:
		c->switch_age_ns = urdma_option_number(state, "switch-age", arg, 1, 1000000) *
				   UINT64_C(1000000000);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp urdma_eth_argp = { .options = options, .parser = parse };
