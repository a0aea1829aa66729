// SPDX-License-Identifier: Apache-2.0
// Options for faults of the wires.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/layers.h"
#include "options/value.h"

enum {
	OPT_LOSS = 0x400,
	OPT_DUP,
	OPT_REORDER,
	OPT_CORRUPT,
	OPT_ECN,
	OPT_SEED,
	OPT_FAULT,
};

static const struct argp_option options[] = {
	{ "loss", OPT_LOSS, "P", 0, "Lose P percent of the frames of each direction", 0 },
	{ "dup", OPT_DUP, "P", 0, "Double P percent", 0 },
	{ "reorder", OPT_REORDER, "P", 0, "Put P percent behind frames that follow", 0 },
	{ "corrupt", OPT_CORRUPT, "P", 0, "Invert a bit of P percent, with a good FCS", 0 },
	{ "ecn", OPT_ECN, "P", 0, "Mark P percent \"congestion experienced\"", 0 },
	{ "seed", OPT_SEED, "SEED", 0,
	  "Of what is random on the wires (1): the same frames meet the same faults", 0 },
	{ "fault", OPT_FAULT, "SPEC", 0,
	  "A chosen fault, KIND[,KEY=VALUE...], such as drop,side=0,qpn=0x11,op=write_last,nth=3; "
	  "may be repeated; docs/cosim.md has all kinds and keys",
	  0 },
	{ 0 },
};

/* text: the rule in the form of --fault. */
static void add(struct argp_state *state, const char *option, const char *text,
		const struct urdma_fault_rule *rule)
{
	struct urdma_options *o = state->input;

	/* Rules of the command line replace the file's. */
	if (o->faults_of_file && !o->scope.place[0]) {
		o->faults_of_file = false;
		while (o->n_faults)
			free(o->fault_text[--o->n_faults]);
	}
	if (o->n_faults == URDMA_OPTIONS_MAX_FAULTS)
		urdma_option_bad(state, option, NULL, "more than %u faults",
				 URDMA_OPTIONS_MAX_FAULTS);
	o->fault_text[o->n_faults] = strdup(text);
	o->fault[o->n_faults++] = *rule;
}

static error_t add_random(struct argp_state *state, const char *option, enum urdma_fault_kind kind,
			  const char *text)
{
	struct urdma_fault_rule rule;
	char whole[64];

	urdma_fault_rule_defaults(&rule, kind);
	if (urdma_fault_percent(text, &rule.probability))
		urdma_option_bad(state, option, text, "not a number of percent from 0 to 100");
	if (!rule.probability)
		return 0;
	snprintf(whole, sizeof(whole), "%s,p=%s", urdma_fault_name(kind), text);
	add(state, option, whole, &rule);
	return 0;
}

void urdma_fault_options_add(struct argp_state *state, const char *text)
{
	struct urdma_fault_rule rule;
	char error[160];

	if (urdma_fault_parse(text, &rule, error, sizeof(error)))
		urdma_option_bad(state, "fault", text, "%s", error);
	add(state, "fault", text, &rule);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;

	switch (key) {
	case OPT_LOSS:
		return add_random(state, "loss", URDMA_FAULT_DROP, arg);
	case OPT_DUP:
		return add_random(state, "dup", URDMA_FAULT_DUP, arg);
	case OPT_REORDER:
		return add_random(state, "reorder", URDMA_FAULT_REORDER, arg);
	case OPT_CORRUPT:
		return add_random(state, "corrupt", URDMA_FAULT_CORRUPT, arg);
	case OPT_ECN:
		return add_random(state, "ecn", URDMA_FAULT_ECN, arg);
	case OPT_SEED:
		o->seed = urdma_option_number(state, "seed", arg, 0, UINT64_MAX);
		return 0;
	case OPT_FAULT:
		urdma_fault_options_add(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp urdma_fault_argp = { .options = options, .parser = parse };
