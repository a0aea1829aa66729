// SPDX-License-Identifier: Apache-2.0
/* Sweeps: loads in which one setting changes, in steps. docs/bench.md describes them. */
#include "bench.h"
#include "load.h"

#define STEPS 8u
#define FETCH 16u /* WQEs that a NIC reads at once */

enum axis { LENGTH, QPS, MTU, LATENCY, SGES, PAGES };

static const struct {
	const char *name, *unit;
} axes[] = {
	[LENGTH] = { "message size", "bytes" },
	[QPS] = { "QPs", "" },
	[MTU] = { "MTU", "bytes" },
	[LATENCY] = { "PCIe read latency", "ns" },
	[SGES] = { "SGEs", "" },
	[PAGES] = { "pages in use", "" },
};

struct sweep {
	enum axis axis;
	const char *series;
	bool small; /* the figure is a message rate, otherwise goodput */
	struct load load;
	uint32_t step[STEPS]; /* 0: no more steps */
};

/* clang-format off */

/* One QP. Whole messages count, so each packet has its share of a message's costs. */
#define ONE(op, bytes, in_flight) \
	.load = { .opcode = URDMA_WR_##op, .qps = 1, .mtu = 5, .len = bytes, .doorbell = 1, .signaled = 1, \
		  .window = in_flight }
/* Small messages, 32 in flight on each QP. */
#define SMALL(op, n) \
	.small = true, .load = { .opcode = URDMA_WR_##op, .qps = n, .mtu = 5, .len = 64, .doorbell = 1, \
				 .signaled = 1, .window = 32 }
#define LENGTHS { 64, 256, 1024, 4096, 16384, 65536 }
#define MTUS { 256, 512, 1024, 2048, 4096 }
#define LATENCIES { 125, 250, 500, 1000, 2000, 4000 }

static const struct sweep sweeps[] = {
	{ LENGTH, "SEND", ONE(SEND, 0, 32), .step = LENGTHS },
	{ LENGTH, "WRITE", ONE(WRITE, 0, 32), .step = LENGTHS },
	{ LENGTH, "READ", ONE(READ, 0, 32), .step = LENGTHS },
	{ QPS, "WRITE 64 bytes", SMALL(WRITE, 0), .step = { 1, 4, 16, 64, 256 } },
	{ QPS, "READ 64 bytes", SMALL(READ, 0), .step = { 1, 4, 16, 64 } },
	{ MTU, "WRITE 64 KB", ONE(WRITE, 65536, 8), .step = MTUS },
	{ MTU, "READ 64 KB", ONE(READ, 65536, 8), .step = MTUS },
	{ LATENCY, "WRITE 4 KB", ONE(WRITE, 4096, 16), .step = LATENCIES },
	{ LATENCY, "READ 4 KB", ONE(READ, 4096, 16), .step = LATENCIES },
	{ SGES, "WRITE 4 KB", ONE(WRITE, 4096, 64), .step = { 1, 2, 4, 8, 16 } },
	{ SGES, "WRITE 1 KB", ONE(WRITE, 1024, 64), .step = { 1, 2, 4, 8, 16 } },
	{ PAGES, "WRITE 64 bytes", SMALL(WRITE, 16), .step = { 16, 256, 2048, 8192, 16384, 32768 } },
	{ PAGES, "READ 64 bytes", SMALL(READ, 16), .step = { 16, 256, 2048, 8192, 16384, 32768 } },
};

/* clang-format on */

static void set(struct load *l, enum axis axis, uint32_t x)
{
	switch (axis) {
	case LENGTH:
		l->len = x;
		break;
	case QPS:
		l->qps = x;
		break;
	case MTU:
		for (l->mtu = 1; 128u << l->mtu < x; l->mtu++)
			;
		break;
	case LATENCY:
		l->read_latency = x;
		break;
	case SGES:
		l->sges = x;
		break;
	case PAGES:
		l->places = x / l->qps;
		break;
	}
}

/*
 * Packets before the measurement, and in it. WQEs that were fetched before the first packet left
 * are used up before the measurement, and all pages have been used.
 */
static void count(struct load *l)
{
	uint32_t mtu = 128u << l->mtu, packets = (l->len + mtu - 1) / mtu;
	uint64_t window = (uint64_t)l->window * l->qps,
		 pages = l->qps * (l->places ? l->places : 1);

	/* The measurement may begin or end in the middle of a fetch. */
	l->ahead = packets > 1 ? 0 : FETCH;
	l->warm = packets > 1 ? window * packets : 4 * window + pages;
	l->count = packets > 1 ? 24 * (uint64_t)packets : 2048 + 4 * window + pages;
}

static const char *name_of(const struct sweep *s, uint32_t x)
{
	static char text[TABLE_MAX][64];
	static unsigned int n;

	snprintf(text[n], sizeof(text[n]), "%s, %s %u%s%s", s->series, axes[s->axis].name, x,
		 axes[s->axis].unit[0] ? " " : "", axes[s->axis].unit);
	return text[n++];
}

static void point(const struct sweep *s, uint32_t x, FILE *out)
{
	const char *name = name_of(s, x);
	struct load_result result;
	struct load load = s->load;
	struct row *row;

	if (!bench_wanted(name))
		return;
	set(&load, s->axis, x);
	count(&load);
	load_run(name, &load, &result);
	if (!s->small)
		result.limit.value *= load.len * 8.0 / 1000;
	row = table_add(&bench_table, name, s->small ? result.messages : result.goodput,
			s->small ? "million/s" : "Gb/s", result.limit);
	row->losses = result.losses;
	fprintf(out, "%s,%s,%s,%u,%.3f,%s,%.3f,\"%s\",%.3f\r\n", axes[s->axis].name,
		axes[s->axis].unit, s->series, x, row->value, row->unit, row->limit.value,
		row->limit.by, judge_percent(row));
}

int bench_sweeps(const char *path)
{
	FILE *out = fopen(path, "w");
	int bad;

	if (out) {
		fputs("sweep,x_unit,series,x,value,unit,limit,by,percent\r\n", out);
		for (unsigned int i = 0; i < sizeof(sweeps) / sizeof(*sweeps); i++)
			for (unsigned int k = 0; k < STEPS && sweeps[i].step[k]; k++)
				point(&sweeps[i], sweeps[i].step[k], out);
	}
	bad = !out || ferror(out);
	if (out && fclose(out))
		bad = 1;
	if (bad)
		fprintf(stderr, "urdma-bench: %s cannot be written\n", path);
	return bad ? -1 : 0;
}
