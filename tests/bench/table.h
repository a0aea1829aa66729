/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a run: on the screen, as JSON, and compared with the committed table. For each row
 * that table has the last figure, and a floor: 10 % worse than the best figure that was ever
 * committed. docs/bench.md has the rules.
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

/* Adds a row without budget, floor and losses; the caller may fill in more. It keeps the strings'
 * pointers. */
struct row *table_add(struct table *t, const char *name, double value, const char *unit,
		      struct limit limit);

/* Reads figures and floors from the committed table. -1: it cannot be read. */
int table_load(struct table *t, const char *path);
/* The number of rows that judge() finds bad; prints each on stderr. */
unsigned int table_judge(const struct table *t);
/*
 * The number of rows that differ from the committed table, which was loaded: other figures, rows
 * that only one of them has, floors that do not match the figures. Prints each on stderr.
 */
unsigned int table_compare(const struct table *t, const char *path);

/*
 * Rewrites the committed table from the rows that judge() finds good. Floors rise with the figures
 * and never fall. A row that is bad, also by its floor, keeps its old entry, and the result is -1.
 * It is also -1 if the table cannot be read or written.
 */
int table_update(const struct table *t, const char *path);
/* Writes all rows with everything that is known of them. -1: cannot be written. */
int table_save(const struct table *t, const char *path);
void table_print(const struct table *t, FILE *out);

#endif
