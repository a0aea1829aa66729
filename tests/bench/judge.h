/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the benchmark, and when it fails. */
#ifndef URDMA_BENCH_JUDGE_H
#define URDMA_BENCH_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench_limits.h"

/* What went wrong between two NICs that should have lost nothing. */
struct losses {
	uint64_t drops;	   /* frames that a NIC had no room for */
	uint64_t timeouts; /* of the ACK timer */
	uint64_t retrans;  /* packets sent again */
};

struct row {
	const char *name, *unit;
	double value;
	struct limit limit; /* the physical one; value NAN: there is none */
	bool less;	    /* a time: smaller is better, and the limit is the least one */
	bool inexact;	    /* depends on the machine that simulates: not in the committed table */
	double budget;	    /* what the design demands at least (less: at most); NAN: nothing */
	struct losses losses; /* of a load on a wire without faults */

	/* Of the committed table; NAN when the row is not in it. */
	double reached, floor;
};

/* How good a figure is: 100 is the physical limit, for throughput and for times. NAN without one.
 */
double judge_percent(const struct row *row);

/* The floor that goes with a figure: what is 10 % worse than it. */
double judge_floor(double value, bool less);
/* Is a figure worse than a bound? Never, when the bound is NAN. */
bool judge_worse(double value, double bound, bool less);

enum verdict {
	VERDICT_GOOD,
	VERDICT_IMPOSSIBLE, /* above 100 %: the measurement is wrong, or the limit is */
	VERDICT_LOST,	    /* drops, time-outs or retransmissions without a fault */
	VERDICT_BUDGET,	    /* misses what the design demands */
	VERDICT_FLOOR,	    /* 10 % worse than the best that was reached */
};

enum verdict judge(const struct row *row);
const char *judge_text(enum verdict verdict);

#endif
