// SPDX-License-Identifier: Apache-2.0
// Options of the PCIe link and of the root complex.
#include <stdlib.h>
#include <string.h>

#include "options/layers.h"
#include "options/value.h"

enum {
	OPT_PCIE = 0x300,
	OPT_GEN,
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

/*
 * Cards with a PG213 block and QSFP28 cages, and the fastest link of the block with 512 bits at 250
 * MHz: Gen3 x16 of PCIE4, Gen4 x8 of PCIE4C (PG213, "Minimum Device Requirements").
 */
#define URDMA_PCIE_CARDS "vcu118, alveo-u200, alveo-u250, alveo-u50, alveo-u55c, alveo-u280"
static const struct {
	const char *name;
	uint8_t gen, lanes;
} cards[] = {
	{ "vcu118", 3, 16 },   { "alveo-u200", 3, 16 }, { "alveo-u250", 3, 16 },
	{ "alveo-u50", 4, 8 }, { "alveo-u55c", 4, 8 },	{ "alveo-u280", 4, 8 },
};

static const struct argp_option options[] = {
	{ "pcie", OPT_PCIE, "SLOT", 0,
	  "Generation and width of a slot, gen1x1 to gen5x16, or of a card: " URDMA_PCIE_CARDS, 0 },
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

/* Parses a number without sign and leading zero at the start of a text. NULL: no number. */
static const char *small_number(const char *text, uint8_t *v)
{
	char *end;

	if (*text < '1' || *text > '9' || strspn(text, "0123456789") > 2)
		return NULL;
	*v = (uint8_t)strtoul(text, &end, 10);
	return end;
}

/* A slot such as "gen3x8", or the name of a card. */
static void set_slot(struct argp_state *state, struct urdma_pcie_config *c, const char *text)
{
	const char *at = strncmp(text, "gen", 3) ? NULL : small_number(text + 3, &c->gen);

	for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
		if (strcmp(text, cards[i].name))
			continue;
		c->gen = cards[i].gen;
		c->lanes = cards[i].lanes;
		return;
	}
	at = at && *at == 'x' ? small_number(at + 1, &c->lanes) : NULL;
	if (!at || *at || c->lanes > 16 || !urdma_pcie_link_mbps(c->gen, c->lanes))
		urdma_option_bad(
			state, "pcie", text,
			"neither a slot, from gen1x1 to gen5x16, nor a card: " URDMA_PCIE_CARDS);
}

/* Generation and width, or the bandwidth, set the link: a later one replaces the other. */
static void set_link(struct urdma_pcie_config *c)
{
	c->mbps = 0;
}

static void set_bandwidth(struct urdma_pcie_config *c, uint32_t mbps)
{
	struct urdma_pcie_config defaults;

	urdma_pcie_config_defaults(&defaults);
	c->gen = defaults.gen;
	c->lanes = defaults.lanes;
	c->mbps = mbps;
}

/* A setting of one NIC. */
static error_t set(struct urdma_pcie_config *c, int key, const char *arg, struct argp_state *state)
{
	switch (key) {
	case OPT_PCIE:
		set_slot(state, c, arg);
		set_link(c);
		return 0;
	case OPT_GEN:
		c->gen = (uint8_t)urdma_option_number(state, "pcie-gen", arg, 1, 5);
		set_link(c);
		return 0;
	case OPT_LANES:
		c->lanes = (uint8_t)urdma_option_power_of_two(state, "pcie-lanes", arg, 1, 16);
		set_link(c);
		return 0;
	case OPT_GBPS:
		set_bandwidth(c, (uint32_t)urdma_option_gbps(state, "pcie-gbps", arg, 1000));
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
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

void urdma_pcie_options_end(struct argp_state *state)
{
	struct urdma_options *o = state->input;

	if (o->scope.gbps_given && o->scope.link_given)
		urdma_option_bad(state, "pcie-gbps", NULL,
				 "excludes pcie, pcie-gen and pcie-lanes");
	o->scope.gbps_given = false;
	o->scope.link_given = false;
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_NICS; i++) {
		struct urdma_pcie_config *c = &o->nic[i].pcie;

		if (!c->mbps)
			c->mbps = urdma_pcie_link_mbps(c->gen, c->lanes);
		if (c->cpl && c->cpl < c->rcb)
			urdma_option_bad(state, "completion", NULL,
					 "%u is below the read completion boundary of %u", c->cpl,
					 c->rcb);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;
	error_t ret = ARGP_ERR_UNKNOWN;

	if (key == ARGP_KEY_END) {
		urdma_pcie_options_end(state);
		return 0;
	}
	for (unsigned int i = o->scope.nic; i < o->scope.nic + o->scope.n_nics; i++)
		ret = set(&o->nic[i].pcie, key, arg, state);
	o->scope.gbps_given |= key == OPT_GBPS;
	o->scope.link_given |= key == OPT_PCIE || key == OPT_GEN || key == OPT_LANES;
	return ret;
}

const struct argp urdma_pcie_argp = { .options = options, .parser = parse };
