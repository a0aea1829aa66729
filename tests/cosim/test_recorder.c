// SPDX-License-Identifier: Apache-2.0
// Files of events: every added event is read back, and an incomplete file is recognized.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <errno.h>
#include <cmocka.h>

#include "random.h"
#include "trace/recorder.h"

static char path[] = "/tmp/urdma-recorder-XXXXXX";
static const struct urdma_trace_nic nics[] = { { "urdma0", 100000, 115920 },
					       { "urdma1", 25000, 7360 } };

static struct urdma_trace_event draw(struct urdma_random *seed, uint64_t *cycle)
{
	struct urdma_trace_event event = { 0 };

	/* Now and then a long pause: delays of more than one byte. */
	*cycle += urdma_random_next(seed) % 4 ? urdma_random_next(seed) % 3
					      : urdma_random_next(seed) >> 24;
	event.cycle = *cycle;
	event.kind = (uint8_t)(urdma_random_next(seed) % URDMA_TRACE_KINDS);
	event.nic = (uint8_t)(urdma_random_next(seed) % 2);
	for (unsigned int i = 0; i < urdma_trace_desc[event.kind].n_fields; i++)
		event.field[i] = urdma_random_next(seed) >> (urdma_random_next(seed) % 64);
	return event;
}

static struct urdma_recorder *create(const char *trigger)
{
	struct urdma_recorder *r;

	assert_int_equal(urdma_recorder_open(path, nics, 2, trigger, &r), 0);
	return r;
}

static void fill(struct urdma_recorder *r, uint64_t start, unsigned int n)
{
	struct urdma_random seed = { start };
	uint64_t cycle = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct urdma_trace_event event = draw(&seed, &cycle);

		urdma_recorder_add(r, &event);
	}
}

static struct urdma_events *open_events(void)
{
	struct urdma_events *e = NULL;
	char *error;

	if (urdma_events_open(path, &e, &error))
		fail_msg("%s", error ? error : "no memory");
	return e;
}

/* Compares as many events of seed as the file has. Returns their number; *last is the result of the
 * read after them. */
static unsigned int compare(struct urdma_events *e, uint64_t start, int *last)
{
	struct urdma_random seed = { start };
	struct urdma_trace_event got = { 0 };
	uint64_t cycle = 0;
	unsigned int n = 0;

	while ((*last = urdma_events_next(e, &got)) == 1) {
		struct urdma_trace_event want = draw(&seed, &cycle);

		assert_int_equal(got.cycle, want.cycle);
		assert_int_equal(got.kind, want.kind);
		assert_int_equal(got.nic, want.nic);
		assert_memory_equal(got.field, want.field,
				    sizeof(uint64_t) * urdma_trace_desc[want.kind].n_fields);
		n++;
	}
	return n;
}

static void test_same(void **state)
{
	(void)state;
	static const unsigned int counts[] = { 0, 1, 1000, 200000 };

	for (unsigned int i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		struct urdma_recorder *r = create(i % 2 ? "3*error" : NULL);
		struct urdma_events *e;
		int last;

		fill(r, 7 + i, counts[i]);
		assert_int_equal(urdma_recorder_events(r), counts[i]);
		assert_int_equal(urdma_recorder_missing(r), 0);
		assert_int_equal(urdma_recorder_close(r), 0);
		e = open_events();
		assert_int_equal(urdma_events_nics(e), 2);
		assert_string_equal(urdma_events_nic(e, 1).name, nics[1].name);
		assert_int_equal(urdma_events_nic(e, 1).wire_mbps, nics[1].wire_mbps);
		assert_int_equal(urdma_events_nic(e, 1).pcie_mbps, nics[1].pcie_mbps);
		if (i % 2)
			assert_string_equal(urdma_events_trigger(e), "3*error");
		else
			assert_null(urdma_events_trigger(e));
		assert_int_equal(compare(e, 7 + i, &last), counts[i]);
		assert_int_equal(last, 0);
		assert_true(urdma_events_complete(e));
		urdma_events_close(e);
	}
}

/* Reads a run that still goes on, or that a signal has ended. */
static void test_flush(void **state)
{
	(void)state;
	struct urdma_recorder *r = create(NULL);
	struct urdma_events *e;
	int last;

	fill(r, 1, 5000);
	assert_int_equal(urdma_recorder_flush(r), 0);
	e = open_events();
	assert_int_equal(compare(e, 1, &last), 5000);
	assert_int_equal(last, 0);
	assert_false(urdma_events_complete(e));
	urdma_events_close(e);
	assert_int_equal(urdma_recorder_close(r), 0);
}

/* The disk is full: complete records stay, and the other events are counted. */
static void test_full(void **state)
{
	(void)state;
	struct rlimit old, limit = { .rlim_cur = 200000, .rlim_max = RLIM_INFINITY };
	struct urdma_recorder *r = create(NULL);
	unsigned int there, all = 200000;
	struct urdma_events *e;
	uint64_t missing;
	int last;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fill(r, 3, all);
	assert_int_equal(urdma_recorder_flush(r), -EFBIG);
	missing = urdma_recorder_missing(r);
	assert_int_equal(urdma_recorder_events(r), all);
	assert_int_equal(urdma_recorder_close(r), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	e = open_events();
	there = compare(e, 3, &last);
	assert_int_equal(last, 0);
	assert_false(urdma_events_complete(e));
	assert_true(there > 1000);
	assert_int_equal(there + missing, all);
	urdma_events_close(e);
}

/* Cut at any byte, the file yields events that were added, then reports that it is incomplete. */
static void test_cut(void **state)
{
	(void)state;
	struct urdma_recorder *r = create(NULL);
	struct stat st;

	fill(r, 5, 300);
	assert_int_equal(urdma_recorder_flush(r), 0);
	fill(r, 5, 0);
	assert_int_equal(urdma_recorder_close(r), 0);
	assert_int_equal(stat(path, &st), 0);
	for (off_t size = st.st_size - 1; size >= 0; size--) {
		struct urdma_events *e = NULL;
		char *error;
		int last;

		assert_int_equal(truncate(path, size), 0);
		if (urdma_events_open(path, &e, &error)) {
			assert_non_null(strstr(error, "no file of events"));
			free(error);
			continue;
		}
		compare(e, 5, &last);
		assert_false(urdma_events_complete(e));
		urdma_events_close(e);
	}
}

static void test_refused(void **state)
{
	(void)state;
	struct urdma_events *e = NULL;
	char *error;

	assert_int_equal(urdma_events_open("/nonexistent/events", &e, &error), -ENOENT);
	assert_non_null(strstr(error, "cannot read /nonexistent/events"));
	free(error);
	assert_int_equal(urdma_events_open("/proc/self/exe", &e, &error), -EINVAL);
	assert_non_null(strstr(error, "no file of events"));
	free(error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),	cmocka_unit_test(test_flush),
		cmocka_unit_test(test_full),	cmocka_unit_test(test_cut),
		cmocka_unit_test(test_refused),
	};
	int fd = mkstemp(path), ret;

	if (fd < 0)
		return 1;
	close(fd);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return ret;
}
