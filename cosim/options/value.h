/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of options. A bad value ends the program as argp_error() does: a line names the option and
 * the reason, and the exit status is 2.
 */
#ifndef URDMA_COSIM_OPTIONS_VALUE_H
#define URDMA_COSIM_OPTIONS_VALUE_H

#include <argp.h>
#include <stdint.h>

uint64_t urdma_option_number(struct argp_state *state, const char *option, const char *text,
			     uint64_t min, uint64_t max);
uint32_t urdma_option_power_of_two(struct argp_state *state, const char *option, const char *text,
				   uint32_t min, uint32_t max);
/*
 * A time in ns at the beginning of a text: a number and ns, us, ms or s. Returns what follows, or
 * NULL.
 */
const char *urdma_option_time(const char *text, uint64_t *ns);
/* A decimal number of Gb/s from 0.1 to 1000, with up to three digits behind the point, as Mb/s. */
uint64_t urdma_option_gbps(struct argp_state *state, const char *option, const char *text);

#endif
