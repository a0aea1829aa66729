/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In each block test and each engine test: URDMA_TEST=PATTERN in the environment runs only the
 * cases whose name matches; * and ? stand for other characters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void choose_cases(void)
{
	const char *pattern = getenv("URDMA_TEST");

	if (pattern && *pattern)
		cmocka_set_test_filter(pattern);
}
