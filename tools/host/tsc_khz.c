// SPDX-License-Identifier: Apache-2.0
/*
 * tsc-khz: prints the frequency of this host's time stamp counter in kHz. Under TCG it is also the
 * guest's. Exit status 1 on a machine without the counter.
 *
 * A guest's kernel compares the counter with timers that QEMU emulates. When a busy host takes the
 * CPU away from QEMU at that moment, the guest computes a wrong frequency, and its clock stays
 * wrong.
 */
#include <stdio.h>

#if defined(__x86_64__)
#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

struct point {
	uint64_t tsc, ns;
};

/* Reads both counters at one moment: of several readings, the one that took least time was not
 * interrupted. */
static struct point now(void)
{
	struct point best = { 0 };
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		uint64_t before = __rdtsc(), after;
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC_RAW, &t);
		after = __rdtsc();
		if (after - before >= least)
			continue;
		least = after - before;
		best.tsc = before + least / 2;
		best.ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	}
	return best;
}

int main(void)
{
	const struct timespec a_while = { .tv_nsec = 50000000 };
	struct point from = now(), to;

	nanosleep(&a_while, NULL);
	to = now();
	printf("%.0f\n", (double)(to.tsc - from.tsc) * 1e6 / (double)(to.ns - from.ns));
	return 0;
}
#else
int main(void)
{
	fprintf(stderr, "tsc-khz: this machine has no time stamp counter\n");
	return 1;
}
#endif
