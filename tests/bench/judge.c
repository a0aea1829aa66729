// SPDX-License-Identifier: Apache-2.0
#include "judge.h"

#include <math.h>

#define FLOOR_SHARE 0.9
/* Figures and limits are exact except for the last digits of floating point. */
#define ROUNDING 1e-9

double judge_percent(const struct row *row)
{
	if (isnan(row->limit.value))
		return NAN;
	return (row->less ? row->limit.value / row->value : row->value / row->limit.value) * 100;
}

double judge_floor(double value, bool less)
{
	return less ? value / FLOOR_SHARE : value * FLOOR_SHARE;
}

bool judge_worse(double value, double bound, bool less)
{
	if (isnan(bound))
		return false;
	/* A figure that is not a number is worse than any bound. */
	return less ? !(value <= bound * (1 + ROUNDING)) : !(value >= bound * (1 - ROUNDING));
}

enum verdict judge(const struct row *row)
{
	if (judge_percent(row) > 100 * (1 + ROUNDING))
		return VERDICT_IMPOSSIBLE;
	if (row->losses.drops || row->losses.timeouts || row->losses.retrans)
		return VERDICT_LOST;
	if (judge_worse(row->value, row->budget, row->less))
		return VERDICT_BUDGET;
	if (judge_worse(row->value, row->floor, row->less))
		return VERDICT_FLOOR;
	return VERDICT_GOOD;
}

const char *judge_text(enum verdict verdict)
{
	static const char *const text[] = {
		[VERDICT_GOOD] = "",
		[VERDICT_IMPOSSIBLE] = "ABOVE THE LIMIT",
		[VERDICT_LOST] = "LOSSES",
		[VERDICT_BUDGET] = "MISSES THE BUDGET",
		[VERDICT_FLOOR] = "BELOW THE FLOOR",
	};

	return text[verdict];
}
