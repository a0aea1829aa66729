// SPDX-License-Identifier: Apache-2.0
/* Judging of rows, and the committed table: planted figures have to fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "table.h"

static const struct limit wire = { 100, "wire" };

static struct row throughput(double value)
{
	struct table t = { 0 };

	return *table_add(&t, "throughput", value, "Gb/s", wire);
}

static struct row latency(double value)
{
	struct row row = throughput(value);

	row.less = true;
	return row;
}

static void percent(void **state)
{
	struct row row = throughput(25);

	(void)state;
	assert_float_equal(judge_percent(&row), 25, 1e-9);
	row = latency(400);
	assert_float_equal(judge_percent(&row), 25, 1e-9);
	row.limit.value = NAN;
	assert_true(isnan(judge_percent(&row)));
}

/* A figure above 100 % fails, however little it exceeds it, and nothing makes up for it. */
static void impossible(void **state)
{
	struct row row = throughput(100);

	(void)state;
	assert_int_equal(judge(&row), VERDICT_GOOD);
	row = throughput(100.0001);
	assert_int_equal(judge(&row), VERDICT_IMPOSSIBLE);
	row.floor = 50;
	row.budget = 50;
	row.reached = 100.0001;
	assert_int_equal(judge(&row), VERDICT_IMPOSSIBLE);
	row = throughput(INFINITY);
	assert_int_equal(judge(&row), VERDICT_IMPOSSIBLE);
	row = latency(100);
	assert_int_equal(judge(&row), VERDICT_GOOD);
	row = latency(99.9999);
	assert_int_equal(judge(&row), VERDICT_IMPOSSIBLE);
	row = latency(0);
	assert_int_equal(judge(&row), VERDICT_IMPOSSIBLE);
}

static void bounds(void **state)
{
	struct row row = throughput(80);

	(void)state;
	row.floor = 80;
	assert_int_equal(judge(&row), VERDICT_GOOD);
	row.floor = 80.01;
	assert_int_equal(judge(&row), VERDICT_FLOOR);
	row.budget = 90;
	assert_int_equal(judge(&row), VERDICT_BUDGET);
	row = throughput(NAN);
	row.floor = 1;
	assert_int_equal(judge(&row), VERDICT_FLOOR);
	row = latency(200);
	row.floor = 200;
	assert_int_equal(judge(&row), VERDICT_GOOD);
	row.floor = 199;
	assert_int_equal(judge(&row), VERDICT_FLOOR);
	row.budget = 150;
	assert_int_equal(judge(&row), VERDICT_BUDGET);
}

static void losses(void **state)
{
	struct row row = throughput(80);

	(void)state;
	row.losses.drops = 1;
	assert_int_equal(judge(&row), VERDICT_LOST);
	row = throughput(80);
	row.losses.timeouts = 1;
	assert_int_equal(judge(&row), VERDICT_LOST);
	row = throughput(80);
	row.losses.retrans = 1;
	assert_int_equal(judge(&row), VERDICT_LOST);
}

/* ---- the committed table ------------------------------------------------------------------- */

static char path[] = "/tmp/urdma-bench-XXXXXX";

static int temporary(void **state)
{
	int fd = mkstemp(strcpy(path, "/tmp/urdma-bench-XXXXXX"));

	(void)state;
	return fd < 0 || close(fd) || unlink(path);
}

static int removed(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

/* A run with one throughput and one latency. */
static struct table run(double gbps, double ns)
{
	struct table t = { 0 };

	table_add(&t, "throughput", gbps, "Gb/s", wire);
	table_add(&t, "latency", ns, "ns", wire)->less = true;
	table_add(&t, "speed", 1, "kcycles/s", (struct limit){ NAN, "" })->inexact = true;
	return t;
}

static double floor_of(unsigned int row)
{
	struct table t = run(90, 200);

	assert_int_equal(table_load(&t, path), 0);
	return t.row[row].floor;
}

/* Floors rise with the figures, and stay when the figures get worse within the floors. */
static void floors_never_fall(void **state)
{
	struct table t = run(80, 200);

	(void)state;
	assert_int_equal(table_update(&t, path), 0);
	assert_float_equal(floor_of(0), 72, 1e-3);
	assert_float_equal(floor_of(1), 222.222, 1e-3);
	t = run(90, 180);
	assert_int_equal(table_update(&t, path), 0);
	assert_float_equal(floor_of(0), 81, 1e-3);
	assert_float_equal(floor_of(1), 200, 1e-3);
	/* repeated updates lose 10 % at most, in however small steps */
	t = run(85, 190);
	assert_int_equal(table_update(&t, path), 0);
	t = run(82, 199);
	assert_int_equal(table_update(&t, path), 0);
	assert_float_equal(floor_of(0), 81, 1e-3);
	assert_float_equal(floor_of(1), 200, 1e-3);
	t = run(80, 201);
	assert_int_equal(table_update(&t, path), -1);
	t = run(82, 199);
	assert_int_equal(table_load(&t, path), 0);
	assert_int_equal(table_compare(&t, path), 0);
}

/* Bad figures do not get into the table; good ones of the same run do. */
static void bad_rows_stay_out(void **state)
{
	struct table t = run(100.5, 200);

	(void)state;
	assert_int_equal(table_update(&t, path), -1);
	assert_true(isnan(floor_of(0)));
	assert_false(isnan(floor_of(1)));
	t = run(80, 200);
	t.row[0].losses.drops = 3;
	assert_int_equal(table_update(&t, path), -1);
	assert_true(isnan(floor_of(0)));
	t = run(80, 200);
	t.row[0].budget = 81;
	assert_int_equal(table_update(&t, path), -1);
	assert_true(isnan(floor_of(0)));
}

static unsigned int differences(const struct table *run)
{
	struct table t = *run;

	assert_int_equal(table_load(&t, path), 0);
	return table_compare(&t, path);
}

static void compared(void **state)
{
	struct table t = run(80, 200), more, less = { 0 };
	FILE *f;

	(void)state;
	assert_int_equal(table_update(&t, path), 0);
	assert_int_equal(differences(&t), 0);
	t = run(80.001, 200);
	assert_int_equal(differences(&t), 1);
	t = run(80.001, 199);
	assert_int_equal(differences(&t), 2);
	/* rows that only one of them has */
	more = run(80, 200);
	table_add(&more, "new", 1, "Gb/s", wire);
	assert_int_equal(differences(&more), 1);
	table_add(&less, "throughput", 80, "Gb/s", wire);
	assert_int_equal(differences(&less), 1);
	less.part = true;
	assert_int_equal(differences(&less), 0);
	/* a floor that was lowered by hand */
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("[{\"name\":\"throughput\",\"value\":80,\"floor\":27},"
	      "{\"name\":\"latency\",\"value\":200,\"floor\":600}]",
	      f);
	assert_int_equal(fclose(f), 0);
	t = run(80, 200);
	assert_int_equal(differences(&t), 2);
}

static void part_of_a_table(void **state)
{
	struct table t = run(80, 200), part = { 0 };

	(void)state;
	assert_int_equal(table_update(&t, path), 0);
	table_add(&part, "latency", 150, "ns", wire)->less = true;
	part.part = true;
	assert_int_equal(table_update(&part, path), 0);
	t = run(80, 150);
	assert_int_equal(differences(&t), 0);
}

static void broken_table(void **state)
{
	struct table t = run(80, 200);
	FILE *f = fopen(path, "w");

	(void)state;
	assert_non_null(f);
	fputs("{}", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(table_load(&t, path), -1);
	assert_int_equal(table_update(&t, path), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(percent),
		cmocka_unit_test(impossible),
		cmocka_unit_test(bounds),
		cmocka_unit_test(losses),
		cmocka_unit_test_setup_teardown(floors_never_fall, temporary, removed),
		cmocka_unit_test_setup_teardown(bad_rows_stay_out, temporary, removed),
		cmocka_unit_test_setup_teardown(compared, temporary, removed),
		cmocka_unit_test_setup_teardown(part_of_a_table, temporary, removed),
		cmocka_unit_test_setup_teardown(broken_table, temporary, removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
