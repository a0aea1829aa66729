/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of each layer, as argp parsers. Their input is the struct urdma_options; each sets
 * the part of its layer. options.c then does the checks that involve more than one layer.
 */
#ifndef URDMA_COSIM_OPTIONS_LAYERS_H
#define URDMA_COSIM_OPTIONS_LAYERS_H

#include <argp.h>

#include "options/options.h"

extern const struct argp urdma_topology_argp; /* ports, wires, switches */
extern const struct argp urdma_eth_argp;      /* rate, delay, queues */
extern const struct argp urdma_fault_argp;
extern const struct argp urdma_pcie_argp;
extern const struct argp urdma_run_argp; /* captures, time, diagnosis */

/* The input of state is the struct urdma_options in all of these. */

/* Call after all options of an object of the file: checks settings that depend on each other. */
void urdma_pcie_options_end(struct argp_state *state);

/*
 * Call after all options: resolves the names in --wire and --switch into the configuration of the
 * simulation.
 */
void urdma_topology_resolve(struct argp_state *state, struct urdma_options *o);

/* Call after all options: parses the trigger. Call after the topology, because it may name NICs. */
void urdma_run_resolve(struct argp_state *state, struct urdma_options *o);

/* The name of a wire's end in messages; the caller frees it. */
char *urdma_topology_name(const struct urdma_cosim_config *c, unsigned int port);

/* Adds a --port, --wire or --switch of the command line or the file. text must stay valid. */
void urdma_topology_add_port(struct argp_state *state, const char *text);
struct urdma_wire_options *urdma_topology_add_wire(struct argp_state *state, const char *text);
struct urdma_switch_options *urdma_topology_add_switch(struct argp_state *state, const char *text);
/* Adds a --fault. text must stay valid. */
void urdma_fault_options_add(struct argp_state *state, const char *text);

/* Reads o->system, before the options of the command line. */
void urdma_system_load(struct argp_state *state);

#endif
