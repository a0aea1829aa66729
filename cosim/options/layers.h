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

/*
 * After all options: resolves the names in --wire and --switch into the configuration of the
 * simulation.
 */
void urdma_topology_resolve(struct argp_state *state, struct urdma_options *o);

#endif
