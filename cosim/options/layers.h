/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of each layer, as argp parsers. Their input is the struct urdma_options; each sets
 * the part of its layer. options.c then makes the checks that need more than one layer.
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

/* After all options of an object of the file: checks of settings that depend on each other. */
void urdma_pcie_options_end(struct argp_state *state);

/*
 * After all options: resolves the names in --wire and --switch into the configuration of the
 * simulation.
 */
void urdma_topology_resolve(struct argp_state *state, struct urdma_options *o);

/* After all options: parses the trigger. After the topology, whose NICs it may name. */
void urdma_run_resolve(struct argp_state *state, struct urdma_options *o);

/* An end of a wire as it is named in texts; the caller frees it. */
char *urdma_topology_name(const struct urdma_cosim_config *c, unsigned int port);

/* Another --port, --wire or --switch, of the command line or of the file. text stays. */
void urdma_topology_add_port(struct argp_state *state, const char *text);
struct urdma_wire_options *urdma_topology_add_wire(struct argp_state *state, const char *text);
struct urdma_switch_options *urdma_topology_add_switch(struct argp_state *state, const char *text);
/* Another --fault. text stays. */
void urdma_fault_options_add(struct argp_state *state, const char *text);

/* Reads o->system, before the options of the command line. */
void urdma_system_load(struct argp_state *state);

#endif
