/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a run: on the screen, as JSON, and against the committed table. That table has for
 * each row the figure reached last, and a floor: what is 10 % worse than the best figure that was
 * ever committed. docs/bench.md tells the rules.
 */
#ifndef URDMA_BENCH_TABLE_H
#define URDMA_BENCH_TABLE_H

#include <stdio.h>

#include "judge.h"

#define TABLE_MAX 128u

struct table {
	struct row row[TABLE_MAX];
	unsigned int n;
	bool part; /* not all rows were asked for */
};

/* A row without budget, floor and losses; the caller may fill in more. The strings are kept. */
struct row *table_add(struct table *t, const char *name, double value, const char *unit,
		      struct limit limit);

/* Reached figures and floors out of the committed table. -1: it cannot be read. */
int table_load(struct table *t, const char *path);
/* How many rows judge() finds bad; each is told on stderr. */
unsigned int table_judge(const struct table *t);
/*
 * How many rows differ from the committed table, which was loaded: figures that are not the same,
 * rows that only one of them has, floors that are not those of the figures. Each is told on stderr.
 */
unsigned int table_compare(const struct table *t, const char *path);

/*
 * Writes the committed table anew, from the rows that judge() finds good. Floors rise with the
 * figures and never fall. A row that is bad, its floor among the reasons, keeps what the table had
 * of it; -1 then, and when the table cannot be read or written.
 */
int table_update(const struct table *t, const char *path);
/* All rows with all that is known of them. -1: cannot be written. */
int table_save(const struct table *t, const char *path);
void table_print(const struct table *t, FILE *out);

#endif
