// SPDX-License-Identifier: Apache-2.0
// Counters over time: slices of samples.jsonl, compared with its lines.
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "events/outputs.h"
#include "events/samples.h"
#include "events/series.h"
#include "random.h"
#include "seed.h"

#define SAMPLE_NS 10000u
#define PAUSE_NS  (URDMA_PAUSE * URDMA_CYCLE_NS)

static void line(struct urdma_samples_reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void line(struct urdma_samples_reader *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	assert_int_equal(urdma_samples_reader_line(r, text), 0);
}

static json_int_t number(const json_t *json, const char *key)
{
	assert_true(json_is_integer(json_object_get(json, key)));
	return json_integer_value(json_object_get(json, key));
}

/* For NIC urdma0: a counter's slices. NULL: there are none. */
static json_t *slices_of(const json_t *json, const char *kind, const char *name)
{
	json_t *nic = json_object_get(json_object_get(json, "nics"), "urdma0");

	return json_object_get(json_object_get(nic, kind), name);
}

static json_int_t at(const json_t *list, size_t i)
{
	assert_true(i < json_array_size(list));
	return json_integer_value(json_array_get(list, i));
}

/* A few samples: the counts of each are in its slice. */
static void test_few(void **state)
{
	(void)state;
	struct urdma_samples_reader *r = urdma_samples_reader_create(SAMPLE_NS);
	json_t *json, *list;

	/* The driver's commands are not traffic, and come before it. */
	line(r, "{\"ns\":10000,\"urdma0\":{\"pcie\":{\"register_reads\":500}}}");
	line(r, "{\"ns\":500000,\"urdma0\":{\"port\":{\"tx_frames\":3,\"tx_bytes\":300},"
		"\"pcie\":{\"register_reads\":501}},\"urdma1\":{\"port\":{\"rx_frames\":3}}}");
	/* Nothing changed in the sample between. */
	line(r, "{\"ns\":520000,\"urdma0\":{\"counters\":{\"cqe\":1}}}");
	/* A pause: counts that are not traffic are in no slice. */
	line(r, "{\"ns\":900000,\"urdma0\":{\"pcie\":{\"register_reads\":600}}}");
	line(r, "{\"ns\":2000000,\"urdma0\":{\"port\":{\"tx_frames\":10}}}");
	line(r, "{\"ns\":2003212,\"urdma0\":{\"pcie\":{\"register_reads\":605}}}");
	json = urdma_samples_reader_json(r);
	assert_int_equal(number(json, "slice_ns"), SAMPLE_NS);
	list = json_object_get(json, "slices_ns");
	assert_int_equal(json_array_size(list), 3 + PAUSE_NS / SAMPLE_NS);
	assert_int_equal(at(list, 0), 490000);
	assert_int_equal(at(list, 2), 510000);
	assert_int_equal(at(list, 2 + PAUSE_NS / SAMPLE_NS), 1990000);
	list = slices_of(json, "port", "tx_frames");
	assert_int_equal(json_array_size(list), 3 + PAUSE_NS / SAMPLE_NS);
	assert_int_equal(at(list, 0), 3);
	assert_int_equal(at(list, 1), 0);
	assert_int_equal(at(list, 2 + PAUSE_NS / SAMPLE_NS), 7);
	assert_int_equal(at(slices_of(json, "counters", "cqe"), 2), 1);
	list = slices_of(json, "pcie", "register_reads");
	assert_int_equal(at(list, 0), 1);
	for (size_t i = 1; i < 2 + PAUSE_NS / SAMPLE_NS; i++)
		assert_int_equal(at(list, i), 0);
	assert_int_equal(at(list, 2 + PAUSE_NS / SAMPLE_NS), 5);
	json_decref(json);
	urdma_samples_reader_destroy(r);
}

/*
 * A sample after a pause begins with a slice, also if the pause is not a multiple of the samples.
 */
static void test_pause(void **state)
{
	(void)state;
	struct urdma_samples_reader *r = urdma_samples_reader_create(30000);
	json_t *json, *list;

	line(r, "{\"ns\":30000,\"urdma0\":{\"port\":{\"rx_frames\":1}}}");
	line(r, "{\"ns\":3000000,\"urdma0\":{\"port\":{\"rx_frames\":3}}}");
	json = urdma_samples_reader_json(r);
	list = json_object_get(json, "slices_ns");
	assert_int_equal(json_array_size(list), 5);
	assert_int_equal(at(list, 4), 2970000);
	assert_int_equal(at(slices_of(json, "port", "rx_frames"), 4), 2);
	json_decref(json);
	urdma_samples_reader_destroy(r);
}

/* Counters that have not changed since the traffic began have no slices. */
static void test_unchanged(void **state)
{
	(void)state;
	struct urdma_samples_reader *r = urdma_samples_reader_create(SAMPLE_NS);
	json_t *json;

	line(r, "{\"ns\":10000,\"urdma0\":{\"counters\":{\"cmd_ok\":5}}}");
	json = urdma_samples_reader_json(r);
	assert_int_equal(json_array_size(json_object_get(json, "slices_ns")), 0);
	json_decref(json);
	line(r, "{\"ns\":20000,\"urdma0\":{\"port\":{\"rx_frames\":5}}}");
	json = urdma_samples_reader_json(r);
	assert_null(slices_of(json, "counters", "cmd_ok"));
	assert_int_equal(at(slices_of(json, "port", "rx_frames"), 0), 5);
	json_decref(json);
	urdma_samples_reader_destroy(r);
}

/* A long run with pauses, and samples of any length: never too many slices, and nothing is lost. */
static void test_long(void **state)
{
	(void)state;
	static const uint64_t samples[] = { 1000, 10000, 30000, 1000000 };

	for (size_t k = 0; k < sizeof(samples) / sizeof(*samples); k++) {
		struct urdma_samples_reader *r = urdma_samples_reader_create(samples[k]);
		uint64_t ns = 0, frames = 0, reads = 0, sum[2] = { 0 };
		struct urdma_random seed = { test_seed(k) };
		json_t *json, *list[2];

		for (unsigned int i = 0; i < 20000; i++) {
			ns += samples[k] * (urdma_random_next(&seed) % 10 ? 1 : 1000);
			frames += 1 + urdma_random_next(&seed) % 1000;
			reads += urdma_random_next(&seed) % 10;
			line(r,
			     "{\"ns\":%" PRIu64 ",\"urdma0\":{\"port\":{\"tx_frames\":%" PRIu64
			     "},\"pcie\":{\"dma_reads\":%" PRIu64 "}}}\n",
			     ns, frames, reads);
		}
		json = urdma_samples_reader_json(r);
		list[0] = slices_of(json, "port", "tx_frames");
		list[1] = slices_of(json, "pcie", "dma_reads");
		assert_in_range(json_array_size(list[0]), URDMA_SLICES / 2, URDMA_SLICES);
		for (size_t i = 0; i < json_array_size(list[0]); i++) {
			json_t *begins = json_object_get(json, "slices_ns");

			sum[0] += (uint64_t)at(list[0], i);
			sum[1] += (uint64_t)at(list[1], i);
			assert_true(!i || at(begins, i) > at(begins, i - 1));
		}
		assert_int_equal(sum[0], frames);
		assert_int_equal(sum[1], reads);
		/* A pause counts for up to PAUSE_NS, a longer sample for its length. */
		assert_true(
			(json_int_t)json_array_size(list[0]) * number(json, "slice_ns") <=
			2 * (json_int_t)(20000 * (samples[k] > PAUSE_NS ? samples[k] : PAUSE_NS)));
		json_decref(json);
		urdma_samples_reader_destroy(r);
	}
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"ns\":50000",
		"{\"ns\":-4}",
		"{\"ns\":\"50000\"}",
		"{\"ns\":39996}",
		"{\"ns\":50000,\"urdma0\":7}",
		"{\"ns\":50000,\"urdma0\":{\"port\":7}}",
		"{\"ns\":50000,\"urdma0\":{\"port\":{\"tx_frames\":2.5}}}",
		"{\"ns\":50000,\"urdma0\":{\"port\":{\"tx_frames\":6}}}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct urdma_samples_reader *r = urdma_samples_reader_create(SAMPLE_NS);

		line(r, "{\"ns\":40000,\"urdma0\":{\"port\":{\"tx_frames\":7}}}");
		if (urdma_samples_reader_line(r, bad[i]) != -EBADMSG)
			fail_msg("%s is taken", bad[i]);
		urdma_samples_reader_destroy(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few),	  cmocka_unit_test(test_pause),
		cmocka_unit_test(test_unchanged), cmocka_unit_test(test_long),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
