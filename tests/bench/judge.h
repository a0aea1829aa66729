/* SPDX-License-Identifier: Apache-2.0 */
/* A row of the benchmark, and when it fails. */
#ifndef URDMA_BENCH_JUDGE_H
#define URDMA_BENCH_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench_limits.h"

/* Problems between two NICs that should lose nothing. */
struct losses {
	uint64_t drops;	   /* frames that a NIC had no room for */
	uint64_t timeouts; /* of the ACK timer */
	uint64_t retrans;  /* packets sent again */
};

struct row {
	const char *name, *unit;
	double value;
	struct limit limit; /* the physical one; value NAN: there is none */
	bool less;	    /* a time: smaller is better, and the limit is a lower bound */
	bool inexact;	    /* depends on the machine that simulates: not in the committed table */
	double budget;	    /* what the design demands at least (less: at most); NAN: nothing */
	struct losses losses; /* of a load on a wire without faults */

	/* From the committed table; NAN when the row is not in it. */
	double reached, floor;
};

/*
 * The figure in percent of the physical limit, for throughput and for times. NAN without a limit.
 */
double judge_percent(const struct row *row);

/* The floor for a figure: 10 % worse than the figure. */
double judge_floor(double value, bool less);
/* Whether a figure is worse than a bound. Never, when the bound is NAN. */
bool judge_worse(double value, double bound, bool less);

enum verdict {
	VERDICT_GOOD,
	VERDICT_IMPOSSIBLE, /* above 100 %: the measurement is wrong, or the limit is */
	VERDICT_LOST,	    /* drops, time-outs or retransmissions without a fault */
	VERDICT_BUDGET,	    /* misses the design's budget */
	VERDICT_FLOOR,	    /* 10 % worse than the best figure so far */
};

enum verdict judge(const struct row *row);
const char *judge_text(enum verdict verdict);

#endif
