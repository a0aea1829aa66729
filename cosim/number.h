/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers in options, rules and triggers. */
#ifndef URDMA_COSIM_NUMBER_H
#define URDMA_COSIM_NUMBER_H

#include <stdint.h>
#include <stdlib.h>

/*
 * As strtoull(), with hexadecimal after 0x, and decimal otherwise. A leading zero does not mean
 * octal.
 */
static inline uint64_t urdma_number(const char *text, char **end)
{
	return strtoull(text, end, text[0] == '0' && (text[1] | 0x20) == 'x' ? 16 : 10);
}

#endif
