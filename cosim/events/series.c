// SPDX-License-Identifier: Apache-2.0
#include "events/series.h"

#include <string.h>

/* ---- the timeline ---------------------------------------------------------------------------- */

void urdma_timeline_init(struct urdma_timeline *t, uint64_t start, uint64_t pause)
{
	memset(t, 0, sizeof(*t));
	t->start = t->cycles = start;
	t->pause = pause;
}

void urdma_timeline_move(struct urdma_timeline *t, uint64_t cycle, bool traffic)
{
	uint64_t before = t->at, step = cycle - t->last;

	if (!traffic && (!t->begun || cycle - t->traffic > t->pause))
		return;
	if (!t->begun)
		step = 0;
	t->begun = true;
	/* The timeline stops until the end of a pause. */
	t->at += step < t->pause ? step : t->pause;
	while (t->at / t->cycles >= URDMA_SLICES) {
		for (unsigned int i = 0; i < t->n; i += 2)
			t->from[i / 2] = t->from[i];
		t->n = (t->n + 1) / 2;
		t->cycles *= 2;
	}
	for (; t->n <= t->at / t->cycles; t->n++) {
		uint64_t begin = t->n * t->cycles;

		t->from[t->n] = begin == t->at ? cycle : t->last + (begin - before);
	}
	t->last = cycle;
	if (traffic)
		t->traffic = cycle;
}

/* ---- series ---------------------------------------------------------------------------------- */

/* Merges its slices until they are as long as the timeline's. */
static void fold(struct urdma_series *s, const struct urdma_timeline *t)
{
	if (!s->cycles)
		s->cycles = t->start;
	for (; s->cycles < t->cycles; s->cycles *= 2) {
		for (unsigned int i = 0; i < URDMA_SLICES; i += 2)
			s->sum[i / 2] = s->sum[i] + s->sum[i + 1];
		memset(s->sum + URDMA_SLICES / 2, 0, sizeof(s->sum) / 2);
	}
}

void urdma_series_add(struct urdma_series *s, const struct urdma_timeline *t, uint64_t amount)
{
	fold(s, t);
	s->sum[t->at / s->cycles] += amount;
}

void urdma_series_level(struct urdma_series *s, const struct urdma_timeline *t, uint64_t value)
{
	uint64_t from = s->begun;

	fold(s, t);
	while (from < t->at) {
		uint64_t slice = from / s->cycles, end = (slice + 1) * s->cycles;

		if (end > t->at)
			end = t->at;
		s->sum[slice] += s->value * (end - from);
		from = end;
	}
	s->begun = t->at;
	s->value = value;
}

void urdma_series_end(struct urdma_series *s, const struct urdma_timeline *t)
{
	urdma_series_level(s, t, s->value);
}

/* ---- flows ----------------------------------------------------------------------------------- */

/*
 * Adds an amount spread evenly between two positions on the timeline, which are not after its last.
 */
static void spread(struct urdma_series *s, const struct urdma_timeline *t, uint64_t from,
		   uint64_t to, uint64_t amount)
{
	uint64_t begin = from, before = 0;

	fold(s, t);
	while (from < to) {
		uint64_t slice = from / s->cycles, end = (slice + 1) * s->cycles, until;

		if (end > to)
			end = to;
		until = amount * (end - begin) / (to - begin);
		s->sum[slice] += until - before;
		before = until;
		from = end;
	}
}

/* The bytes that the link has carried since then, up to that position on the timeline. */
static void carry(struct urdma_flow *f, const struct urdma_timeline *t, uint64_t until)
{
	uint64_t units = (until - f->since) * f->mbps;
	uint64_t before = f->carried / URDMA_FLOW_UNITS, to = until;

	if (units > f->waits) {
		units = f->waits;
		to = f->since + (units + f->mbps - 1) / f->mbps;
	}
	f->waits -= units;
	f->carried += units;
	spread(&f->series, t, f->since, to, f->carried / URDMA_FLOW_UNITS - before);
	f->since = until;
}

void urdma_flow_came(struct urdma_flow *f, const struct urdma_timeline *t, uint64_t bytes)
{
	uint64_t units = bytes * URDMA_FLOW_UNITS, cycles;

	if (!f->mbps) {
		urdma_series_add(&f->series, t, bytes);
		return;
	}
	cycles = (units + f->mbps - 1) / f->mbps;
	if (cycles > t->at) {
		units = t->at * f->mbps;
		cycles = t->at;
	}
	/* Earlier bytes may have come slightly later than the rate allows; these follow them. */
	if (t->at - cycles > f->since)
		carry(f, t, t->at - cycles);
	f->waits += units;
	carry(f, t, t->at);
}

void urdma_flow_goes(struct urdma_flow *f, const struct urdma_timeline *t, uint64_t bytes)
{
	if (!f->mbps) {
		urdma_series_add(&f->series, t, bytes);
		return;
	}
	carry(f, t, t->at);
	f->waits += bytes * URDMA_FLOW_UNITS;
}

void urdma_flow_end(struct urdma_flow *f, const struct urdma_timeline *t)
{
	if (f->mbps)
		carry(f, t, t->at);
	urdma_series_end(&f->series, t);
}
