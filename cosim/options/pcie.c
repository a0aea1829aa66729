// SPDX-License-Identifier: Apache-2.0
// Options of the PCIe link and of the root complex.
#include "options/layers.h"
#include "options/value.h"

enum {
	OPT_GEN = 0x300,
	OPT_LANES,
	OPT_GBPS,
	OPT_LATENCY,
	OPT_MPS,
	OPT_MRRS,
	OPT_RCB,
	OPT_COMPLETION,
	OPT_REORDER,
	OPT_STALL,
};

static const struct argp_option options[] = {
	{ "pcie-gen", OPT_GEN, "N", 0, "Generation, 1 to 5 (3)", 0 },
	{ "pcie-lanes", OPT_LANES, "N", 0, "Width, 1 to 16 lanes (16)", 0 },
	{ "pcie-gbps", OPT_GBPS, "G", 0,
	  "TLP bandwidth each way, instead of that of generation and lanes", 0 },
	{ "pcie-latency", OPT_LATENCY, "NS", 0, "Latency of a DMA read (500)", 0 },
	{ "mps", OPT_MPS, "BYTES", 0,
	  "Maximum payload that the firmware programs: 128, 256, 512 (256)", 0 },
	{ "mrrs", OPT_MRRS, "BYTES", 0,
	  "Maximum read request that the firmware programs: 128 to 4096 (4096)", 0 },
	{ "rcb", OPT_RCB, "BYTES", 0,
	  "Read completion boundary of the root complex: 64 or 128 (64)", 0 },
	{ "completion", OPT_COMPLETION, "BYTES", 0,
	  "Cut completions at multiples of it (the maximum payload)", 0 },
	{ "reorder-completions", OPT_REORDER, "SEED", 0,
	  "Completions out of order and in varying pieces", 0 },
	{ "pcie-stall", OPT_STALL, "PERCENT", 0,
	  "Cycles in which the PCIe block accepts nothing, 0 to 95 (0)", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;
	struct urdma_pcie_config *c = &o->cosim.pcie;

	switch (key) {
	case OPT_GEN:
		c->gen = (uint8_t)urdma_option_number(state, "pcie-gen", arg, 1, 5);
		o->link_given = true;
		return 0;
	case OPT_LANES:
		c->lanes = (uint8_t)urdma_option_power_of_two(state, "pcie-lanes", arg, 1, 16);
		o->link_given = true;
		return 0;
	case OPT_GBPS:
		c->mbps = (uint32_t)urdma_option_gbps(state, "pcie-gbps", arg);
		o->gbps_given = true;
		return 0;
	case OPT_LATENCY:
		c->latency_ns =
			(uint32_t)urdma_option_number(state, "pcie-latency", arg, 16, 100000);
		return 0;
	case OPT_MPS:
		c->mps = urdma_option_power_of_two(state, "mps", arg, 128, 512);
		return 0;
	case OPT_MRRS:
		c->mrrs = urdma_option_power_of_two(state, "mrrs", arg, 128, 4096);
		return 0;
	case OPT_RCB:
		c->rcb = urdma_option_power_of_two(state, "rcb", arg, 64, 128);
		return 0;
	case OPT_COMPLETION:
		c->cpl = urdma_option_power_of_two(state, "completion", arg, 64, 512);
		return 0;
	case OPT_REORDER:
		c->reorder = 1;
		c->seed = urdma_option_number(state, "reorder-completions", arg, 0, UINT64_MAX);
		return 0;
	case OPT_STALL:
		c->stall_percent = (uint8_t)urdma_option_number(state, "pcie-stall", arg, 0, 95);
		return 0;
	case ARGP_KEY_END:
		if (o->link_given && o->gbps_given)
			argp_error(state, "--pcie-gbps excludes --pcie-gen and --pcie-lanes");
		if (!o->gbps_given)
			c->mbps = urdma_pcie_link_mbps(c->gen, c->lanes);
		if (c->cpl && c->cpl < c->rcb)
			argp_error(state,
				   "--completion %u: below the read completion boundary of %u",
				   c->cpl, c->rcb);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp urdma_pcie_argp = { .options = options, .parser = parse };
