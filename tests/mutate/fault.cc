// SPDX-License-Identifier: Apache-2.0
// The number of the planted fault of this run, for urdma_mutate_pkg.
#include <cstdlib>

extern "C" int urdma_fault(void);

int urdma_fault(void)
{
	const char *number = getenv("URDMA_FAULT");

	return number ? atoi(number) : 0;
}
