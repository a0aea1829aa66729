/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of options, from the command line or from the file of --system. A bad value ends the
 * program with status 2, after a line with its place and the reason: "--mps '300': not a power of
 * two", or "FILE: hosts[0].nics[1].mps '300': not a power of two". The input of the parser must be
 * the struct urdma_options.
 */
#ifndef URDMA_COSIM_OPTIONS_VALUE_H
#define URDMA_COSIM_OPTIONS_VALUE_H

#include <argp.h>
#include <stdint.h>

/* text: the value; NULL: do not print it. */
void urdma_option_bad(struct argp_state *state, const char *option, const char *text,
		      const char *fmt, ...) __attribute__((format(printf, 4, 5), noreturn));
uint64_t urdma_option_number(struct argp_state *state, const char *option, const char *text,
			     uint64_t min, uint64_t max);
uint32_t urdma_option_power_of_two(struct argp_state *state, const char *option, const char *text,
				   uint32_t min, uint32_t max);
/*
 * Parses a time at the start of a text: a number with ns, us, ms or s, in ns. Returns the rest of
 * the text, or NULL.
 */
const char *urdma_option_time(const char *text, uint64_t *ns);
/* Parses a number of Gb/s from 0.1 to max, with up to three decimal places. Returns Mb/s. */
uint64_t urdma_option_gbps(struct argp_state *state, const char *option, const char *text,
			   unsigned int max);

#endif
