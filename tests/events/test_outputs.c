// SPDX-License-Identifier: Apache-2.0
// Histograms, slices, and the files that urdma-events writes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "events/histogram.h"
#include "events/outputs.h"
#include "events/series.h"
#include "nic_pair.h"
#include "perfetto.pb-c.h"
#include "random.h"
#include "seed.h"
#include "urdma_hw.h"

static const struct urdma_trace_nic nics[] = { { "urdma0", 400000, 500000 },
					       { "a \"NIC\", twice", 400000, 400000 } };
#define TRIGGER 3000u /* cycle */
static const char trigger[] = "2*acked.qpn=2";
static char path[] = "/tmp/urdma-events-XXXXXX";

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void test_histogram(void **state)
{
	(void)state;
	static const double percents[] = { 0.1, 1, 50, 90, 99, 99.9, 100 };
	static uint64_t value[20000];
	const size_t n = sizeof(value) / sizeof(*value);
	struct urdma_histogram h = { 0 };
	struct urdma_random seed = { test_seed(1) };
	uint64_t from, to, sum = 0, count = 0;

	for (size_t i = 0; i < n; i++) {
		value[i] = urdma_random_next(&seed) >> (20 + urdma_random_next(&seed) % 44);
		urdma_histogram_add(&h, value[i]);
		sum += value[i];
	}
	qsort(value, n, sizeof(*value), compare);
	assert_int_equal(h.max, value[n - 1]);
	assert_int_equal(h.sum, sum);
	for (unsigned int i = 0; i < sizeof(percents) / sizeof(*percents); i++) {
		uint64_t got = urdma_histogram_percentile(&h, percents[i]);
		uint64_t want = value[(size_t)((double)n * percents[i] / 100 + 0.999) - 1];

		assert_true((got > want ? got - want : want - got) <= want / 128);
	}
	for (unsigned int i = 0; i < URDMA_HISTOGRAM_BUCKETS * URDMA_HISTOGRAM_OCTAVES; i++) {
		uint64_t in_it = 0, got = urdma_histogram_bucket(&h, i, &from, &to);

		count += got;
		if (!got)
			continue;
		assert_true(to - from == 1 || (to - from) * 64 <= from);
		for (size_t k = 0; k < n; k++)
			in_it += value[k] >= from && value[k] < to;
		assert_int_equal(got, in_it);
	}
	assert_int_equal(count, n);
	urdma_histogram_add(&h, UINT64_MAX);
	assert_int_equal(urdma_histogram_percentile(&h, 100), UINT64_MAX);
	urdma_histogram_free(&h);
}

/* The place of a cycle on a timeline without pauses. */
static uint64_t slice_of(const struct urdma_timeline *t, uint64_t cycle)
{
	uint64_t slice = 0;

	while (slice + 1 < t->n && t->from[slice + 1] <= cycle)
		slice++;
	return slice;
}

static void test_series(void **state)
{
	(void)state;
	enum { BEGIN = 1000, END = 200000 };
	static uint64_t at[END], level[END];
	struct urdma_random seed = { test_seed(2) };
	struct urdma_series s = { 0 }, l = { 0 };
	struct urdma_timeline t;
	uint64_t value = 0, last = BEGIN;

	urdma_timeline_init(&t, URDMA_SLICE_START, URDMA_PAUSE);
	/* Events that are not traffic do not begin it. */
	urdma_timeline_move(&t, 500, false);
	assert_int_equal(t.n, 0);
	for (uint64_t cycle = BEGIN; cycle < END; cycle += 1 + urdma_random_next(&seed) % 1500) {
		urdma_timeline_move(&t, cycle, true);
		urdma_series_add(&s, &t, 7);
		at[cycle] += 7;
		for (uint64_t k = last; k < cycle; k++)
			level[k] = value;
		last = cycle;
		value = urdma_random_next(&seed) % 20;
		urdma_series_level(&l, &t, value);
	}
	urdma_series_end(&s, &t);
	urdma_series_end(&l, &t);
	assert_true(t.n > URDMA_SLICES / 2 && t.n <= URDMA_SLICES);
	assert_int_equal(s.cycles, t.cycles);
	assert_int_equal(l.cycles, t.cycles);
	for (unsigned int i = 0; i < t.n; i++) {
		uint64_t sum = 0, area = 0;

		assert_int_equal(t.from[i], BEGIN + i * t.cycles);
		for (uint64_t k = t.from[i]; k < t.from[i] + t.cycles && k < END; k++) {
			sum += at[k];
			area += level[k];
		}
		assert_int_equal(s.sum[i], sum);
		assert_int_equal(l.sum[i], area);
	}
}

/* Slices leave out pauses, and their `begin` tells where these were. Events that are not traffic do
 * not end a pause. */
static void test_pauses(void **state)
{
	(void)state;
	enum { BURSTS = 50, EVENTS = 1000, STEP = 10 };
	static uint64_t cycle_of[BURSTS * EVENTS];
	uint64_t cycle = 777, used, want[URDMA_SLICES] = { 0 };
	struct urdma_series s = { 0 };
	struct urdma_timeline t;

	urdma_timeline_init(&t, URDMA_SLICE_START, URDMA_PAUSE);
	for (unsigned int i = 0; i < BURSTS; i++) {
		for (unsigned int k = 0; k < EVENTS; k++) {
			cycle += STEP;
			urdma_timeline_move(&t, cycle, true);
			urdma_series_add(&s, &t, 1);
			cycle_of[i * EVENTS + k] = cycle;
		}
		used = t.at;
		/* A command of the driver, after a short time and after a long one. */
		urdma_timeline_move(&t, cycle + 100, false);
		assert_int_equal(t.at, used + 100);
		urdma_timeline_move(&t, cycle + 10 * URDMA_PAUSE, false);
		assert_int_equal(t.at, used + 100);
		cycle += 100 * URDMA_PAUSE + i;
	}
	urdma_series_end(&s, &t);
	assert_int_equal(t.at, (BURSTS * EVENTS - 1) * STEP +
				       (BURSTS - 1) * (URDMA_PAUSE + 100 - STEP) + 100);
	assert_true(t.n > URDMA_SLICES / 2 && t.n <= URDMA_SLICES);
	for (unsigned int i = 0; i < BURSTS * EVENTS; i++)
		want[slice_of(&t, cycle_of[i])]++;
	for (unsigned int i = 0; i < t.n; i++) {
		assert_true(!i || t.from[i] > t.from[i - 1]);
		assert_int_equal(s.sum[i], want[i]);
	}
	assert_int_equal(t.from[0], 777 + STEP);
}

/* Some WRITEs and READs, the sixth with a loss, and a READ in the other direction. */
static void make(struct pair *p)
{
	struct pair_message m = { .qpn = 2, .op = URDMA_WR_WRITE, .bytes = 2500 };
	uint64_t cycle = 1000;

	pair_begin(p);
	for (unsigned int i = 0; i < 20; i++) {
		m.losses = i == 5;
		m.unsignaled = i == 7;
		m.op = i % 3 ? URDMA_WR_WRITE : URDMA_WR_READ;
		m.nic = i == 19;
		cycle = pair_send(p, cycle, &m) - 100;
	}
	pair_trigger(p, TRIGGER, 1, trigger);
	pair_sort(p);
}

static void feed(const struct pair *p, struct urdma_sink sink)
{
	struct urdma_follow *f = urdma_follow_create(2, &sink, 1);

	for (size_t i = 0; i < p->n; i++)
		assert_int_equal(urdma_follow_event(f, &p->event[i]), 0);
	assert_int_equal(urdma_follow_end(f), 0);
	urdma_follow_destroy(f);
}

static char *slurp(size_t *n)
{
	char *text = calloc(1, 4 << 20);
	FILE *file = fopen(path, "rb");

	assert_non_null(file);
	*n = fread(text, 1, (4 << 20) - 1, file);
	fclose(file);
	return text;
}

static void test_csv(void **state)
{
	(void)state;
	unsigned int lines = 0;
	struct urdma_csv *csv;
	struct pair p;
	char *text, *line, *next;
	size_t n;

	make(&p);
	assert_int_equal(urdma_csv_open(path, nics, &csv), 0);
	feed(&p, urdma_csv_sink(csv));
	assert_int_equal(urdma_csv_close(csv), 0);
	text = slurp(&n);
	for (line = text; *line; line = next, lines++) {
		const struct pair_truth *t = &p.truth[lines - 1];
		char want[512];
		int len;

		next = strstr(line, "\r\n");
		assert_non_null(next);
		*next = 0;
		next += 2;
		if (!lines) {
			assert_string_equal(line,
					    "nic,qp,wqe,op,bytes,psn,packets,retries,causes,status,"
					    "start_ns,posted_ns,queued_ns,fetch_ns,held_ns,"
					    "payload_ns,transmit_ns,answer_ns,completion_ns,"
					    "report_ns,whole_ns");
			continue;
		}
		len = snprintf(want, sizeof(want), "%s,%u,%u,%s,%u,%u,%u,%u,%s,success,%llu",
			       t->nic ? "\"a \"\"NIC\"\", twice\"" : "urdma0", t->qpn, t->index,
			       t->op == URDMA_WR_READ ? "RDMA READ" : "RDMA WRITE", t->bytes,
			       t->psn, t->packets, t->timeouts, t->timeouts ? "1 time-out" : "",
			       (unsigned long long)t->at[0] * 4);
		for (unsigned int i = 0; i < URDMA_STAGES; i++)
			len += snprintf(want + len, sizeof(want) - (size_t)len, ",%llu",
					(unsigned long long)(t->at[i + 1] - t->at[i]) * 4);
		snprintf(want + len, sizeof(want) - (size_t)len, ",%llu",
			 (unsigned long long)(t->at[URDMA_AT_REPORTED] - t->at[0]) * 4);
		assert_string_equal(line, want);
	}
	assert_int_equal(lines, p.n_truth + 1);
	free(text);
	pair_free(&p);
}

static json_int_t number(const json_t *json, const char *key)
{
	const json_t *value = json_object_get(json, key);

	if (!json_is_integer(value))
		fail_msg("%s is no integer", key);
	return json_integer_value(value);
}

/* Slices in which the NIC has WQEs that were posted and not acknowledged. */
static uint64_t busy_cycles(const struct pair *p, unsigned int nic)
{
	uint64_t end = 0, sum = 0;

	for (size_t i = 0; i < p->n_truth; i++) {
		const uint64_t *at = p->truth[i].at;
		uint64_t from = at[URDMA_AT_TAKEN] > end ? at[URDMA_AT_TAKEN] : end;

		if (p->truth[i].nic != nic || at[URDMA_AT_ACKED] < from)
			continue;
		end = at[URDMA_AT_ACKED];
		sum += end - from;
	}
	return sum;
}

/*
 * The stages of each bucket, from what is known of the messages: the stages of those whose whole
 * life is in the bucket.
 */
static void check_split(const json_t *nic, const struct pair *p)
{
	const json_t *latency = json_object_get(nic, "latency_ns");
	const json_t *buckets = json_object_get(latency, "buckets");
	const json_t *split = json_object_get(latency, "split");

	assert_true(json_array_size(buckets) >= 2);
	assert_int_equal(json_array_size(split), json_array_size(buckets));
	for (size_t i = 0; i < json_array_size(buckets); i++) {
		const json_t *b = json_array_get(buckets, i), *means = json_array_get(split, i);
		uint64_t from = (uint64_t)json_integer_value(json_array_get(b, 0));
		uint64_t to = (uint64_t)json_integer_value(json_array_get(b, 1));
		double sum[URDMA_STAGES] = { 0 }, n = 0;

		assert_int_equal(json_array_size(means), URDMA_STAGES);
		for (size_t k = 0; k < p->n_truth; k++) {
			const struct pair_truth *t = &p->truth[k];
			uint64_t whole =
				(t->at[URDMA_AT_REPORTED] - t->at[URDMA_AT_WRITE]) * URDMA_CYCLE_NS;

			if (t->nic || whole < from || whole >= to)
				continue;
			n++;
			for (unsigned int m = 0; m < URDMA_STAGES; m++)
				sum[m] += (double)(t->at[m + 1] - t->at[m]) * URDMA_CYCLE_NS;
		}
		assert_true(n == (double)json_integer_value(json_array_get(b, 2)));
		for (unsigned int m = 0; m < URDMA_STAGES; m++)
			assert_true(fabs(json_real_value(json_array_get(means, m)) - sum[m] / n) <
				    1e-6);
	}
}

static void test_json(void **state)
{
	(void)state;
	struct urdma_stats *stats = urdma_stats_create(nics, 2, trigger);
	json_t *json, *nic, *qp, *part;
	double share = 0, sum = 0, whole = 0, resent = 0, depth;
	uint64_t posted = 0, last = 0;
	uint64_t slowest = 0, frames = 0, wire = 0, reads = 0, lookups = 0, misses = 0,
		 dir_misses = 0;
	uint64_t to_host = 0, from_host = 0;
	json_int_t again = 0, counted = 0;
	const char *key;
	struct pair p;

	make(&p);
	/* Two answers of NIC 1 are RNR NAKs, one is a NAK for a gap. */
	for (size_t i = 0, n = 0; i < p.n && n < 3; i++)
		if (p.event[i].kind == URDMA_TRACE_ANS && p.event[i].nic)
			p.event[i].ans.syndrome = n++ < 2 ? 0x2c : 0x60;
	feed(&p, urdma_stats_sink(stats));
	urdma_stats_end(stats);
	json = urdma_stats_json(stats, true);
	assert_true(json_is_true(json_object_get(json, "complete")));
	assert_int_equal(number(json, "events"), p.n);
	part = json_object_get(json, "trigger");
	assert_string_equal(json_string_value(json_object_get(part, "what")), trigger);
	assert_string_equal(json_string_value(json_object_get(part, "nic")), nics[1].name);
	assert_int_equal(number(part, "at_ns"), TRIGGER * URDMA_CYCLE_NS);
	nic = json_array_get(json_object_get(json, "nics"), 0);
	qp = json_array_get(json_object_get(nic, "qps"), 0);
	assert_int_equal(number(nic, "messages"), 19);
	/* The reset was in cycle 0. */
	assert_int_equal(number(nic, "origin_ns"), URDMA_CYCLE_NS);
	assert_int_equal(number(qp, "messages"), 19);
	assert_int_equal(number(qp, "bytes"), 19 * 2500);
	assert_int_equal(number(json_object_get(qp, "retries"), "time-out"), 1);
	assert_int_equal(number(qp, "packets_sent_again"), 1);
	assert_int_equal(number(json_object_get(nic, "retries"), "implied NAK"), 0);
	assert_int_equal(number(json_object_get(nic, "losses"), "implied NAK"), 1);
	assert_int_equal(number(json_object_get(nic, "losses"), "time-out"), 1);
	/* One is not signaled. */
	assert_int_equal(number(nic, "completions"), 18);
	assert_int_equal(number(nic, "send_completions"), 18);
	assert_int_equal(number(nic, "receive_completions"), 0);
	assert_int_equal(number(nic, "doorbells"), 19);
	assert_int_equal(number(qp, "doorbells"), 19);
	/* From the first doorbell on, and there is no pause. */
	assert_int_equal(number(json, "traffic_ns"),
			 number(json, "to_ns") -
				 (json_int_t)p.truth[0].at[URDMA_AT_TAKEN] * URDMA_CYCLE_NS);
	assert_int_equal(json_array_size(json_object_get(json, "slices_ns")),
			 json_array_size(json_object_get(
				 json_object_get(json_object_get(nic, "wire"), "sent"), "gbps")));
	/* Buckets of the picture: they count all messages once, in order, and are not too fine. */
	part = json_object_get(json_object_get(qp, "latency_ns"), "buckets");
	for (size_t i = 0; i < json_array_size(part); i++) {
		const json_t *b = json_array_get(part, i);
		json_int_t from = json_integer_value(json_array_get(b, 0));
		json_int_t to = json_integer_value(json_array_get(b, 1));

		assert_true(from < to && (to - from) * 16 <= from && (to - from) * 32 > from);
		counted += json_integer_value(json_array_get(b, 2));
	}
	assert_int_equal(counted, 19);
	check_split(nic, &p);
	json_object_foreach(json_object_get(qp, "stages_ns"), key, part) share +=
		json_real_value(json_object_get(part, "share"));
	assert_true(share > 0.9999 && share < 1.0001);
	for (size_t i = 0; i < p.n_truth; i++)
		if (!p.truth[i].nic)
			whole += (double)(p.truth[i].at[URDMA_AT_REPORTED] -
					  p.truth[i].at[URDMA_AT_WRITE]) *
				 URDMA_CYCLE_NS;
	whole -= 19 * json_real_value(json_object_get(json_object_get(qp, "latency_ns"), "mean"));
	for (size_t i = 0; i < p.n_truth; i++) {
		const uint64_t *at = p.truth[i].at;

		if (p.truth[i].nic)
			continue;
		posted += at[URDMA_AT_ACKED] - at[URDMA_AT_TAKEN];
		last = at[URDMA_AT_ACKED];
	}
	depth = (double)posted / (double)(last - p.truth[0].at[URDMA_AT_TAKEN]);
	depth -= json_real_value(json_object_get(json_object_get(qp, "depth"), "mean"));
	assert_true(depth > -1e-9 && depth < 1e-9);
	assert_true(whole > -0.01 && whole < 0.01);
	/* Only one QP sends: its figures equal those of its NIC, in total and in slices. */
	assert_true(number(nic, "active_ns") > 0);
	assert_int_equal(number(nic, "active_ns"), number(qp, "active_ns"));
	assert_int_equal(number(nic, "active_ns"), busy_cycles(&p, 0) * URDMA_CYCLE_NS);
	part = json_object_get(nic, "send_queues");
	assert_int_equal(number(part, "max"), number(json_object_get(qp, "depth"), "max"));
	depth = json_real_value(json_object_get(part, "mean")) -
		json_real_value(json_object_get(json_object_get(qp, "depth"), "mean"));
	assert_true(depth > -1e-9 && depth < 1e-9);
	depth = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(part, "wqes")); i++)
		depth += json_real_value(json_array_get(json_object_get(part, "wqes"), i));
	depth = depth * (double)number(part, "slice_ns") / URDMA_CYCLE_NS - (double)posted;
	assert_true(depth > -1e-3 && depth < 1e-3);
	for (size_t i = 0; i < p.n; i++) {
		const struct urdma_trace_event *e = &p.event[i];

		if (e->kind == URDMA_TRACE_TX_END && !e->nic) {
			frames++;
			wire += e->tx_end.len + 24;
		}
		if (e->kind == URDMA_TRACE_RD && !e->nic) {
			reads += e->rd.len;
			to_host += 24;
		}
		if (e->kind == URDMA_TRACE_RD_DONE && !e->nic)
			from_host += 20 * e->rd_done.tlps + 4 * e->rd_done.dwords;
		if (e->kind == URDMA_TRACE_WR && !e->nic)
			to_host += 24 + (e->wr.len + 3) / 4 * 4;
		if (e->kind == URDMA_TRACE_DB_WRITE && !e->nic)
			from_host += 24 + 8;
		if (e->kind == URDMA_TRACE_IRQ && !e->nic)
			to_host += 24 + 4;
		if (e->kind == URDMA_TRACE_XLAT && !e->nic) {
			lookups++;
			misses += e->xlat.pte_miss;
			dir_misses += e->xlat.dir_miss;
		}
	}
	part = json_object_get(nic, "limits_gbps");
	assert_true(json_real_value(json_object_get(part, "wire")) == 400);
	assert_true(json_real_value(json_object_get(part, "pcie")) == 500);
	part = json_object_get(json_array_get(json_object_get(json, "nics"), 1), "responder");
	assert_int_equal(number(part, "rnr_naks"), 2);
	part = json_object_get(json_object_get(nic, "translation"), "transmit payload");
	assert_int_equal(number(part, "lookups"), lookups);
	assert_int_equal(number(part, "misses"), misses);
	assert_int_equal(number(part, "hits"), lookups - misses);
	assert_int_equal(number(part, "directory_misses"), dir_misses);
	assert_int_equal(number(part, "directory_hits"), lookups - dir_misses);
	assert_true(dir_misses > 0 && dir_misses < misses && misses < lookups);
	part = json_object_get(json_object_get(nic, "wire"), "sent");
	assert_int_equal(number(part, "frames"), frames);
	assert_int_equal(number(part, "bytes"), wire);
	for (size_t i = 0; i < json_array_size(json_object_get(part, "gbps")); i++)
		sum += json_real_value(json_array_get(json_object_get(part, "gbps"), i));
	sum *= (double)number(part, "slice_ns") / 8;
	assert_true(sum > (double)wire - 1 && sum < (double)wire + 1);
	/* Each frame belongs to a QP, which has it in the same slices; one packet is sent again. */
	frames = 0;
	for (size_t i = 0; i < json_array_size(json_object_get(nic, "qps")); i++) {
		const json_t *sent =
			json_object_get(json_array_get(json_object_get(nic, "qps"), i), "sent");

		frames += (uint64_t)number(sent, "frames");
		wire -= (uint64_t)number(sent, "bytes");
		for (size_t k = 0; k < json_array_size(json_object_get(sent, "gbps")); k++) {
			sum -= json_real_value(json_array_get(json_object_get(sent, "gbps"), k)) *
			       (double)number(part, "slice_ns") / 8;
			resent +=
				json_real_value(json_array_get(json_object_get(sent, "again"), k));
		}
	}
	assert_int_equal(frames, number(part, "frames"));
	assert_int_equal(wire, 0);
	assert_true(fabs(sum) < 1);
	assert_true(fabs(resent - 1) < 1e-6);
	part = json_object_get(json_object_get(nic, "pcie"), "from_host");
	assert_int_equal(number(part, "dma_bytes"), reads);
	assert_int_equal(number(part, "bytes"), from_host);
	part = json_object_get(json_object_get(nic, "pcie"), "to_host");
	assert_int_equal(number(part, "bytes"), to_host);
	/* The slowest message is the one with the time-out, and its frames are in the captures. */
	for (size_t i = 0; i < p.n_truth; i++)
		if (p.truth[i].timeouts)
			slowest = i;
	part = json_array_get(json_object_get(json, "slowest"), 0);
	assert_int_equal(number(part, "wqe"), p.truth[slowest].index);
	assert_int_equal(json_array_size(json_object_get(json, "slowest")), 10);
	for (size_t i = 0, n = 0; i < p.n; i++) {
		const struct urdma_trace_event *e = &p.event[i];

		if (e->nic || e->kind != URDMA_TRACE_TX_END || e->tx_end.psn < p.truth[slowest].psn)
			continue;
		if (e->tx_end.psn == p.truth[slowest].psn + 2)
			again = (json_int_t)e->tx_end.number;
		if (n == 3)
			continue;
		if (!n)
			assert_int_equal(number(part, "first_frame"), e->tx_end.number);
		if (++n == 3)
			assert_int_equal(number(part, "last_frame"), e->tx_end.number);
	}
	assert_true(number(part, "answer_frame") > 0);
	/* Its last packet was sent twice: the second frame comes after the first, before the
	 * answer. */
	part = json_object_get(part, "frames_again");
	assert_int_equal(json_array_size(part), 1);
	part = json_array_get(part, 0);
	assert_int_equal(json_integer_value(json_array_get(part, 0)), again);
	assert_int_equal(json_integer_value(json_array_get(part, 1)), again);
	json_decref(json);
	urdma_stats_destroy(stats);
	pair_free(&p);
}

/*
 * Frames on a link and its idle times: every byte is in its slice, and no slice has more than fits.
 */
static void test_links(void **state)
{
	static const uint32_t rates[] = { 100000, 7360, 25000 };
	struct urdma_random random = { test_seed(3) };
	unsigned int full = 0;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		const uint32_t mbps = rates[i / 2];
		struct urdma_timeline t;
		struct urdma_flow f = { .mbps = mbps };
		uint64_t total = 0, rest = 0;
		uint64_t free_at = 20000 * URDMA_FLOW_UNITS; /* of the link, in units */

		urdma_timeline_init(&t, URDMA_SLICE_START, URDMA_PAUSE);
		urdma_timeline_move(&t, 0, true);
		for (unsigned int n = 0; n < 3000; n++) {
			uint64_t bytes = 64 + urdma_random_below(&random, 4200), cycle;

			/* Some in a row, then the link rests. Sent packets are reported when they
			 * start, received ones when they end. */
			if (n % 50 == 0)
				free_at += urdma_random_below(&random, 4000000) * mbps / 2000;
			cycle = free_at / mbps;
			free_at += bytes * URDMA_FLOW_UNITS;
			if (i % 2)
				cycle = (free_at + mbps - 1) / mbps;
			if (i % 2 == 0)
				cycle -= urdma_random_below(&random, 3) * (n % 50 == 0 ? 0 : 20);
			if (cycle < t.last)
				cycle = t.last;
			urdma_timeline_move(&t, cycle, true);
			if (i % 2)
				urdma_flow_came(&f, &t, bytes);
			else
				urdma_flow_goes(&f, &t, bytes);
			total += bytes;
		}
		urdma_timeline_move(&t, t.last + URDMA_PAUSE, true);
		urdma_flow_end(&f, &t);
		for (unsigned int k = 0; k < t.n; k++) {
			uint64_t most = t.cycles * mbps / URDMA_FLOW_UNITS;

			assert_true(f.series.sum[k] <= most + 2);
			full += f.series.sum[k] + 2 >= most;
			total -= f.series.sum[k];
		}
		assert_int_equal(total, 0);
		/* A frame after a rest is in the slice in which it came. */
		if (i % 2 == 0)
			continue;
		urdma_timeline_move(&t, t.last + URDMA_PAUSE, true);
		urdma_flow_came(&f, &t, 64);
		urdma_flow_end(&f, &t);
		for (uint64_t k = (t.at - 64 * URDMA_FLOW_UNITS / mbps - 1) / t.cycles; k < t.n;
		     k++)
			rest += f.series.sum[k];
		assert_int_equal(rest, 64);
	}
	print_message("%u slices are full\n", full);
	assert_true(full > 20);
}

/* A trigger without an event, a trigger of a wire, and a run without a trigger. */
static void test_trigger(void **state)
{
	(void)state;
	static const char *const what[] = { "fault", "fault=7", NULL };

	for (unsigned int i = 0; i < sizeof(what) / sizeof(*what); i++) {
		struct urdma_stats *stats = urdma_stats_create(nics, 2, what[i]);
		struct urdma_trace_event e = { .cycle = TRIGGER,
					       .kind = URDMA_TRACE_TRIGGER,
					       .trigger.fault = true };
		struct urdma_sink sink = urdma_stats_sink(stats);
		json_t *json, *part;

		if (i == 1)
			sink.event(sink.ctx, &e);
		urdma_stats_end(stats);
		json = urdma_stats_json(stats, true);
		/* Its moment has a slice, also without traffic. */
		part = json_object_get(json, "slices_ns");
		assert_int_equal(json_array_size(part), i == 1);
		if (i == 1)
			assert_int_equal(json_integer_value(json_array_get(part, 0)),
					 TRIGGER * URDMA_CYCLE_NS);
		part = json_array_get(json_object_get(json, "nics"), 0);
		assert_true(json_is_null(json_object_get(part, "origin_ns")));
		part = json_object_get(json, "trigger");
		if (what[i]) {
			assert_string_equal(json_string_value(json_object_get(part, "what")),
					    what[i]);
			assert_true(json_is_null(json_object_get(part, "nic")));
			if (i == 1)
				assert_int_equal(number(part, "at_ns"), TRIGGER * URDMA_CYCLE_NS);
			else
				assert_true(json_is_null(json_object_get(part, "at_ns")));
		} else {
			assert_true(json_is_null(part));
		}
		json_decref(json);
		urdma_stats_destroy(stats);
	}
}

/* Slices of a track nest, in the order of time and of the file; flows end; a track comes before its
 * events. */
static void test_perfetto(void **state)
{
	(void)state;
	enum { TRACKS = 200 };
	struct {
		uint64_t uuid, ts, end[8];
		unsigned int depth;
		const char *name;
	} track[TRACKS] = { 0 };
	unsigned int n_tracks = 0, slices = 0, wqes = 0, stages = 0, counters = 0, instants = 0;
	unsigned int flows = 0, ends = 0, triggers = 0;
	struct urdma_perfetto *perfetto;
	UrdmaPerfetto__Trace *trace;
	struct pair p;
	char *text;
	size_t n;

	make(&p);
	assert_int_equal(urdma_perfetto_open(path, nics, 2, trigger, &perfetto), 0);
	feed(&p, urdma_perfetto_sink(perfetto));
	assert_int_equal(urdma_perfetto_close(perfetto), 0);
	text = slurp(&n);
	trace = urdma_perfetto__trace__unpack(NULL, n, (uint8_t *)text);
	assert_non_null(trace);
	for (size_t i = 0; i < trace->n_packet; i++) {
		const UrdmaPerfetto__TracePacket *packet = trace->packet[i];
		const UrdmaPerfetto__TrackEvent *e = packet->track_event;
		unsigned int k = 0;

		if (packet->track_descriptor) {
			assert_true(n_tracks < TRACKS);
			track[n_tracks].name = packet->track_descriptor->name;
			track[n_tracks++].uuid = packet->track_descriptor->uuid;
			continue;
		}
		if (!e)
			continue;
		while (k < n_tracks && track[k].uuid != e->track_uuid)
			k++;
		assert_true(k < n_tracks);
		flows += e->n_flow_ids && strstr(e->name, "WRITE");
		ends += e->n_terminating_flow_ids;
		switch (e->type) {
		case URDMA_PERFETTO__TRACK_EVENT__TYPE__SLICE_BEGIN:
			assert_true(packet->timestamp >= track[k].ts || track[k].depth == 0);
			if (track[k].depth)
				stages++;
			else
				slices++;
			wqes += !strncmp(e->name, "RDMA WRITE ", 11) && e->name[11] >= '0' &&
				e->name[11] <= '9';
			track[k].depth++;
			track[k].ts = packet->timestamp;
			break;
		case URDMA_PERFETTO__TRACK_EVENT__TYPE__SLICE_END:
			assert_true(track[k].depth > 0);
			assert_true(packet->timestamp >= track[k].ts);
			track[k].depth--;
			track[k].ts = packet->timestamp;
			break;
		case URDMA_PERFETTO__TRACK_EVENT__TYPE__COUNTER:
			counters++;
			break;
		default:
			instants++;
			if (strncmp(e->name, "trigger", 7))
				break;
			triggers++;
			assert_string_equal(e->name, "trigger: 2*acked.qpn=2");
			assert_string_equal(track[k].name, "trigger");
			assert_int_equal(packet->timestamp, TRIGGER * URDMA_CYCLE_NS);
			assert_string_equal(e->debug_annotations[0]->string_value, nics[1].name);
		}
	}
	for (unsigned int k = 0; k < n_tracks; k++)
		assert_int_equal(track[k].depth, 0);
	assert_int_equal(wqes, 13);
	assert_int_equal(triggers, 1);
	assert_true(stages >= 20 * 8 && slices > 100 && counters > 100 && instants > 20);
	/* One at each end of a WRITE's frames, except for the lost one. */
	assert_true(flows > 2 * 3 * 13);
	assert_int_equal(ends, 20);
	urdma_perfetto__trace__free_unpacked(trace, NULL);
	free(text);
	pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histogram), cmocka_unit_test(test_series),
		cmocka_unit_test(test_links),	  cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_csv),	  cmocka_unit_test(test_json),
		cmocka_unit_test(test_trigger),	  cmocka_unit_test(test_perfetto),
	};
	int fd = mkstemp(path), ret;

	if (fd < 0)
		return 1;
	close(fd);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return ret;
}
