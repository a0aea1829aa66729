// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Figures are kept with three decimals. */
#define DECIMALS 1000.0
#define SAME	 0.0005

static double rounded(double value)
{
	return round(value * DECIMALS) / DECIMALS;
}

struct row *table_add(struct table *t, const char *name, double value, const char *unit,
		      struct limit limit)
{
	struct row *row = &t->row[t->n];

	if (t->n++ == TABLE_MAX) {
		fprintf(stderr, "urdma-bench: more than %u rows\n", TABLE_MAX);
		exit(2);
	}
	*row = (struct row){ .name = name,
			     .unit = unit,
			     .value = value,
			     .limit = limit,
			     .budget = NAN,
			     .reached = NAN,
			     .floor = NAN };
	return row;
}

/* ---- the committed table ------------------------------------------------------------------- */

static json_t *load(const char *path)
{
	json_error_t error;
	json_t *list = json_load_file(path, 0, &error);

	if (json_is_array(list))
		return list;
	fprintf(stderr, "urdma-bench: %s: %s\n", path, list ? "not a list" : error.text);
	json_decref(list);
	return NULL;
}

static const char *item_name(const json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "name"));

	return name ? name : "";
}

/* The row's index in a table; the table's size if it is not there. */
static size_t find(const json_t *list, const char *name)
{
	size_t i = 0;

	while (i < json_array_size(list) && strcmp(item_name(json_array_get(list, i)), name))
		i++;
	return i;
}

static double item_number(const json_t *item, const char *key)
{
	const json_t *v = json_object_get(item, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static void take_committed(struct table *t, const json_t *list)
{
	for (unsigned int k = 0; k < t->n; k++) {
		struct row *row = &t->row[k];
		const json_t *item = json_array_get(list, find(list, row->name));

		if (row->inexact)
			continue;
		row->reached = item_number(item, "value");
		row->floor = item_number(item, "floor");
	}
}

int table_load(struct table *t, const char *path)
{
	json_t *list = load(path);

	if (!list)
		return -1;
	take_committed(t, list);
	json_decref(list);
	return 0;
}

unsigned int table_judge(const struct table *t)
{
	unsigned int bad = 0;

	for (unsigned int k = 0; k < t->n; k++) {
		const struct row *row = &t->row[k];

		switch (judge(row)) {
		case VERDICT_GOOD:
			continue;
		case VERDICT_IMPOSSIBLE:
			fprintf(stderr,
				"urdma-bench: %s: %.3f %s is %.3f %% of what is possible: the "
				"measurement is wrong, or the limit (%s)\n",
				row->name, row->value, row->unit, judge_percent(row),
				row->limit.by);
			break;
		case VERDICT_LOST:
			fprintf(stderr,
				"urdma-bench: %s: without a fault of the wire %llu frames were "
				"dropped, %llu ACK timers ran out, %llu packets were sent again\n",
				row->name, (unsigned long long)row->losses.drops,
				(unsigned long long)row->losses.timeouts,
				(unsigned long long)row->losses.retrans);
			break;
		case VERDICT_BUDGET:
			fprintf(stderr, "urdma-bench: %s: %.3f %s, the design demands at %s %.3f\n",
				row->name, row->value, row->unit, row->less ? "most" : "least",
				row->budget);
			break;
		case VERDICT_FLOOR:
			fprintf(stderr, "urdma-bench: %s: %.3f %s, the floor is %.3f\n", row->name,
				row->value, row->unit, row->floor);
			break;
		}
		bad++;
	}
	return bad;
}

/* Number of the table's rows that this run does not have. */
static unsigned int strangers(const struct table *t, const char *path)
{
	json_t *list = load(path), *item;
	unsigned int bad = 0;
	size_t i;

	json_array_foreach(list, i, item)
	{
		bool found = false;

		for (unsigned int k = 0; k < t->n && !found; k++)
			found = !strcmp(item_name(item), t->row[k].name);
		if (found)
			continue;
		fprintf(stderr, "urdma-bench: %s is in the table and not in the benchmark\n",
			item_name(item));
		bad++;
	}
	json_decref(list);
	return bad;
}

unsigned int table_compare(const struct table *t, const char *path)
{
	unsigned int bad = t->part ? 0 : strangers(t, path);

	for (unsigned int k = 0; k < t->n; k++) {
		const struct row *row = &t->row[k];

		if (row->inexact)
			continue;
		if (isnan(row->reached)) {
			fprintf(stderr, "urdma-bench: %s is not in the table\n", row->name);
			bad++;
			continue;
		}
		if (fabs(row->reached - row->value) > SAME) {
			fprintf(stderr, "urdma-bench: %s: %.3f, the table has %.3f\n", row->name,
				row->value, row->reached);
			bad++;
		}
		if (isnan(row->floor) ||
		    judge_worse(row->floor + (row->less ? -2 * SAME : 2 * SAME),
				judge_floor(row->reached, row->less), row->less)) {
			fprintf(stderr,
				"urdma-bench: %s: the floor of the table is more than 10 %% from "
				"its figure\n",
				row->name);
			bad++;
		}
	}
	if (bad)
		fprintf(stderr,
			"urdma-bench: %u differences from %s. If they are meant, run \"make "
			"bench-update\" and commit the table with the change.\n",
			bad, path);
	return bad;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *number(double v)
{
	return isnan(v) ? json_null() : json_real(rounded(v));
}

static int dump(json_t *list, const char *path)
{
	FILE *f = fopen(path, "w");
	int ret = f ? json_dumpf(list, f, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : -1;

	if (f && (fputc('\n', f) == EOF || ret))
		ret = -1;
	if (f && fclose(f))
		ret = -1;
	if (ret)
		fprintf(stderr, "urdma-bench: %s cannot be written\n", path);
	json_decref(list);
	return ret;
}

static json_t *to_json(const struct row *row)
{
	return json_pack("{s:s, s:o, s:s, s:o, s:s, s:o, s:o}", "name", row->name, "value",
			 number(row->value), "unit", row->unit, "limit", number(row->limit.value),
			 "by", row->limit.by, "percent", number(judge_percent(row)), "floor",
			 number(row->floor));
}

int table_save(const struct table *t, const char *path)
{
	json_t *list = json_array();

	for (unsigned int k = 0; k < t->n; k++) {
		const struct row *row = &t->row[k];
		json_t *item = to_json(row);

		json_object_set_new(item, "budget", number(row->budget));
		json_object_set_new(item, "drops", json_integer((json_int_t)row->losses.drops));
		json_object_set_new(item, "timeouts",
				    json_integer((json_int_t)row->losses.timeouts));
		json_object_set_new(item, "retrans", json_integer((json_int_t)row->losses.retrans));
		json_array_append_new(list, item);
	}
	return dump(list, path);
}

/* A table that does not exist yet is empty. */
static json_t *load_old(const char *path)
{
	FILE *f = fopen(path, "r");

	if (!f)
		return json_array();
	fclose(f);
	return load(path);
}

static void put(json_t *list, const char *name, json_t *item)
{
	size_t at = find(list, name);

	if (at < json_array_size(list))
		json_array_set_new(list, at, item);
	else
		json_array_append_new(list, item);
}

int table_update(const struct table *run, const char *path)
{
	json_t *old = load_old(path), *list;
	struct table t = *run;
	unsigned int bad;

	if (!old)
		return -1;
	take_committed(&t, old);
	bad = table_judge(&t);
	/* Rows that were not asked for stay. */
	list = t.part ? json_deep_copy(old) : json_array();
	for (unsigned int k = 0; k < t.n; k++) {
		struct row *row = &t.row[k];
		double floor = judge_floor(row->value, row->less);
		size_t at = find(old, row->name);

		if (row->inexact)
			continue;
		if (judge(row)) {
			if (at < json_array_size(old))
				put(list, row->name, json_deep_copy(json_array_get(old, at)));
			continue;
		}
		if (isnan(row->floor) || judge_worse(row->floor, floor, row->less))
			row->floor = floor;
		put(list, row->name, to_json(row));
	}
	json_decref(old);
	if (bad)
		fprintf(stderr,
			"urdma-bench: %u rows are bad, and %s keeps what it had of them. Floors "
			"never fall by themselves: if a row may become so much worse, take it out "
			"of the table by hand, and say why in the commit.\n",
			bad, path);
	return dump(list, path) || bad ? -1 : 0;
}

/* ---- the screen ---------------------------------------------------------------------------- */

static const char *cell(char *text, size_t size, const char *format, double v)
{
	if (isnan(v))
		snprintf(text, size, "-");
	else
		snprintf(text, size, format, v);
	return text;
}

void table_print(const struct table *t, FILE *out)
{
	fprintf(out, "%-44s %10s %-12s %10s %8s %10s  %s\n", "", "value", "unit", "limit",
		"percent", "floor", "limited by");
	for (unsigned int k = 0; k < t->n; k++) {
		const struct row *row = &t->row[k];
		enum verdict verdict = judge(row);
		double bound = row->floor;
		char limit[32], percent[32], floor[32];

		/* the stricter of both */
		if (isnan(bound) || judge_worse(bound, row->budget, row->less))
			bound = row->budget;
		fprintf(out, "%-44s %10.3f %-12s %10s %8s %10s  %s%s%s\n", row->name, row->value,
			row->unit, cell(limit, sizeof(limit), "%.3f", row->limit.value),
			cell(percent, sizeof(percent), "%.2f", judge_percent(row)),
			cell(floor, sizeof(floor), "%.3f", bound), row->limit.by,
			verdict ? "  " : "", judge_text(verdict));
	}
}
