// SPDX-License-Identifier: Apache-2.0
/*
 * Block test of rtl/pcie. The bench checks every beat while it runs; the tests choose the traffic,
 * and set the required rate and fairness. SEED=n sets the random numbers of a run (the seed is
 * printed); a failure names the cycle.
 */
#include "pcie_bench.h"
#include "seed.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static uint64_t seed = 1;

static struct bench *start(uint64_t variant)
{
	return bench_new(seed * 1000 + variant);
}

static void finish(struct bench *b)
{
	bench_drain(b, 400000);
	bench_check_counters(b);
	bench_free(b);
}

static void rough_host(struct bench *b)
{
	b->rq_stall = 60;
	b->cc_stall = 60;
	b->rc_gap = 40;
	b->cq_gap = 80;
	b->reg_stall = 100;
	b->db_stall = 100;
	b->irq_stall = 100;
	b->lat_min = 20;
	b->lat_rand = 400;
	b->random_cuts = true;
}

static void readers(struct bench *b, int n, int prob, uint32_t left, uint32_t min, uint32_t max)
{
	for (int i = 0; i < n; i++)
		b->rdc[i] =
			(struct rd_client){ .prob = prob, .left = left, .min = min, .max = max };
}

static void writers(struct bench *b, int n, int prob, uint32_t left, uint32_t min, uint32_t max)
{
	for (int i = 0; i < n; i++)
		b->wrc[i] =
			(struct wr_client){ .prob = prob, .left = left, .min = min, .max = max };
}

/* ---- MMIO -------------------------------------------------------------------------------------
 */

static void reg_access(struct bench *b, bool write, uint64_t addr, uint32_t dw, uint8_t fbe,
		       uint8_t lbe)
{
	uint32_t data[2] = { bench_rnd(b, ~0u), bench_rnd(b, ~0u) };

	bench_host_request(b, &(struct host_request){ .type = write,
						      .addr = addr,
						      .dw = dw,
						      .first_be = fbe,
						      .last_be = lbe,
						      .data = write ? data : NULL });
}

/* Every access of 1 to 8 bytes inside a qword, with every set of byte enables. */
static void test_registers_all_sizes(void **state)
{
	struct bench *b = start(1);

	(void)state;
	for (uint64_t addr = 0x40; addr < 0x48; addr += 4)
		for (unsigned fbe = 0; fbe < 16; fbe++) {
			reg_access(b, true, addr, 1, fbe, 0);
			reg_access(b, false, addr, 1, fbe, 0);
			reg_access(b, false, 0x40, 2, 0xf, 0xf);
		}
	for (unsigned fbe = 1; fbe < 16; fbe++)
		for (unsigned lbe = 1; lbe < 16; lbe++) {
			reg_access(b, true, 0xfff8, 2, fbe, lbe);
			reg_access(b, false, 0xfff8, 2, fbe, lbe);
		}
	bench_drain(b, 20000);
	assert_int_equal(b->have.mmio_bad, 0);
	finish(b);
}

/* What is no register access: completer abort for reads, nothing for writes, and counted. */
static void test_registers_bad(void **state)
{
	struct bench *b = start(2);
	uint32_t data[64] = { 0 };

	(void)state;
	for (uint32_t dw = 2; dw <= 64; dw += dw < 18 ? 1 : 23) {
		uint64_t addr = dw == 2 ? 0x104 : 0x100;

		bench_host_request(b, &(struct host_request){ .type = 1,
							      .addr = addr,
							      .dw = dw,
							      .first_be = 0xf,
							      .last_be = 0xf,
							      .data = data });
		bench_host_request(b, &(struct host_request){ .type = 0,
							      .addr = addr,
							      .dw = dw,
							      .first_be = 0xe,
							      .last_be = 0x3 });
		reg_access(b, false, 0x108, 2, 0xf, 0xf);
	}
	bench_host_request(b, &(struct host_request){ .type = 1,
						      .addr = 0x200,
						      .dw = 2,
						      .first_be = 0xf,
						      .last_be = 0xf,
						      .data = data,
						      .discontinue = true });
	bench_drain(b, 20000);
	assert_true(b->have.mmio_bad > 30);
	finish(b);
}

/* Request types and BARs that nobody offers: UR for non-posted ones, messages are ignored. */
static void test_unsupported(void **state)
{
	struct bench *b = start(3);
	uint32_t data[2] = { 1, 2 };

	(void)state;
	b->cc_stall = 100;
	for (unsigned type = 0; type < 16; type++) {
		bool has_data = type == 1 || (type >= 3 && type <= 6);

		for (unsigned bar = type < 2 ? 3 : 0; bar < 7; bar++)
			bench_host_request(
				b, &(struct host_request){ .type = type,
							   .bar = bar,
							   .addr = 0x10,
							   .dw = 1,
							   .first_be = 0xf,
							   .data = has_data ? data : NULL });
		reg_access(b, false, 0x10, 2, 0xf, 0xf);
	}
	finish(b);
}

static void test_doorbells(void **state)
{
	struct bench *b = start(4);
	uint32_t data[64];

	(void)state;
	for (int i = 0; i < 64; i++)
		data[i] = bench_rnd(b, ~0u);
	for (int stall = 0; stall <= 200; stall += 200) {
		b->db_stall = stall;
		for (int i = 0; i < 500; i++)
			bench_host_request(
				b, &(struct host_request){ .type = 1,
							   .bar = 2,
							   .addr = bench_rnd(b, 1024) << 12 |
								   bench_rnd(b, 256) << 3,
							   .dw = 2,
							   .first_be = 0xf,
							   .last_be = 0xf,
							   .data = data + bench_rnd(b, 60) });
		bench_drain(b, 20000);
	}
	assert_int_equal(b->db_head, 1000);
	assert_int_equal(b->have.db_bad, 0);
	/* partial, misaligned, too long, in the push space: no doorbell */
	for (int i = 0; i < 500; i++) {
		struct host_request r = { .type = 1,
					  .bar = 2,
					  .addr = bench_rnd(b, DM_BAR) & ~3u,
					  .dw = 1 + bench_rnd(b, 4),
					  .first_be = 0xf,
					  .last_be = 0xf,
					  .data = data };

		if (bench_rnd(b, 10) == 0)
			r.dw = 17 + bench_rnd(b, 16);
		if (bench_rnd(b, 4) == 0)
			r.first_be = r.dw == 1 ? bench_rnd(b, 16) : 1 + bench_rnd(b, 15);
		if (r.dw == 1)
			r.last_be = 0;
		bench_host_request(b, &r);
	}
	/* reads of any length give zeros */
	for (int i = 0; i < 100; i++) {
		struct host_request r = { .bar = 2,
					  .addr = bench_rnd(b, 1u << 22) & ~3u,
					  .first_be = 0xf,
					  .last_be = 0xf };

		r.dw = i % 2 ? 1 + bench_rnd(b, 4) : 1 + bench_rnd(b, 1024 - (r.addr & 0xfff) / 4);
		if (r.dw == 1)
			r.first_be = bench_rnd(b, 16), r.last_be = 0;
		else if (i % 3 == 0)
			r.first_be = 0xf & 0xf << bench_rnd(b, 4),
			r.last_be = 0xf >> bench_rnd(b, 4);
		bench_host_request(b, &r);
	}
	bench_drain(b, 20000);
	assert_true(b->have.db_bad > 100);
	finish(b);
}

static void test_mmio_random(void **state)
{
	(void)state;
	for (int v = 0; v < 4; v++) {
		struct bench *b = start(10 + v);

		if (v)
			rough_host(b);
		if (v == 2)
			b->cc_stall = 240;
		for (int i = 0; i < 3000; i++) {
			bool write = bench_rnd(b, 2);
			uint64_t addr = bench_rnd(b, 16) * 4;

			if (bench_rnd(b, 4) == 0) {
				uint32_t data[2] = { bench_rnd(b, ~0u), i };

				bench_host_request(b, &(struct host_request){ .type = 1,
									      .bar = 2,
									      .addr = addr & ~7ull,
									      .dw = 2,
									      .first_be = 0xf,
									      .last_be = 0xf,
									      .data = data });
			} else if (addr & 4 || bench_rnd(b, 2)) {
				reg_access(b, write, addr, 1, bench_rnd(b, 16), 0);
			} else {
				reg_access(b, write, addr, 2, 0xf, 0xf);
			}
		}
		finish(b);
	}
}

/* ---- DMA --------------------------------------------------------------------------------------
 */

static void test_reads_random(void **state)
{
	(void)state;
	for (int v = 0; v < 12; v++) {
		struct bench *b = start(20 + v);

		if (v % 3)
			rough_host(b);
		b->in.max_read_req = v % 6;
		b->rcb = v & 1 ? 128 : 64;
		b->max_cpl = 128u << v % 3;
		if (v % 3 == 2)
			b->lat_rand = 2000;
		readers(b, RD_N, 128, 200, 1, v & 4 ? 4096 : 200);
		finish(b);
	}
}

static void test_writes_random(void **state)
{
	(void)state;
	for (int v = 0; v < 12; v++) {
		struct bench *b = start(40 + v);

		if (v % 3)
			b->rq_stall = 60 * (v % 3);
		b->in.max_payload = v % 4;
		writers(b, WR_N, v & 1 ? 255 : 30, 250, 1, v & 4 ? 4096 : 150);
		for (int i = 0; i < WR_N; i++)
			b->wrc[i].gap = v & 2 ? 100 : 0;
		finish(b);
	}
}

/* Each offset in a dword and in a line, each short length. */
static void test_alignments(void **state)
{
	struct bench *b = start(60);

	(void)state;
	b->in.max_payload = 0;
	b->in.max_read_req = 0;
	b->lat_min = 10;
	for (uint32_t off = 0; off < 64; off++)
		for (uint32_t len = 1; len <= 200; len += len < 12 ? 1 : len < 60 ? 7 : 29) {
			uint64_t at = 64 * 63 + off; /* 64 bytes before a page's end */

			b->rdc[0] = (struct rd_client){ .prob = 256,
							.left = 1,
							.min = len,
							.max = len,
							.next_addr = RD_BASE + at };
			b->wrc[0] = (struct wr_client){ .prob = 256,
							.left = 1,
							.min = len,
							.max = len,
							.next_addr = WR_BASE + at };
			while (b->rdc[0].left || b->wrc[0].left || b->in.rd[0].valid ||
			       b->wrc[0].active)
				bench_cycle(b);
		}
	finish(b);
}

/* Everything at once, with interrupts behind the writes. */
static void test_all_traffic(void **state)
{
	(void)state;
	for (int v = 0; v < 6; v++) {
		struct bench *b = start(70 + v);

		if (v)
			rough_host(b);
		if (v & 1)
			b->rq_stall = 200;
		readers(b, RD_N, 40, 150, 1, v & 2 ? 4096 : 128);
		writers(b, WR_N, 40, 150, 1, v & 2 ? 4096 : 128);
		b->irq_left = 300;
		b->irq_prob = 60;
		for (int i = 0; i < 500; i++)
			reg_access(b, bench_rnd(b, 2), bench_rnd(b, 16) * 8, 2, 0xf, 0xf);
		finish(b);
	}
}

/*
 * A read does not pass a write that was accepted before it was offered (the bench checks each),
 * and does not wait for one that comes later, however many keep coming.
 */
static void test_read_behind_write(void **state)
{
	(void)state;
	/* one of each, the write still in the engine when the read comes, RQ stalled meanwhile */
	for (uint32_t len = 1; len <= 2048; len += 89) {
		struct bench *b = start(500 + len);

		b->rq_stall = 256;
		b->wrc[len % WR_N] =
			(struct wr_client){ .prob = 256, .left = 1, .min = len, .max = len };
		for (int i = 0; i < 200 && !b->wr_accepted; i++)
			bench_cycle(b);
		assert_int_equal(b->wr_accepted, 1);
		b->rdc[len % RD_N] =
			(struct rd_client){ .prob = 256, .left = 1, .min = 8, .max = 8 };
		bench_run(b, 20);
		assert_int_equal(b->want.rd_tlp, 0);
		b->rq_stall = len & 1 ? 0 : 128;
		finish(b);
	}
	/* many small writes, many reads of some clients only */
	for (int v = 0; v < 8; v++) {
		struct bench *b = start(600 + v);

		b->rq_stall = v & 1 ? 100 : 0;
		writers(b, WR_N, v & 2 ? 256 : 60, 400, 1, v & 4 ? 64 : 1024);
		for (int i = v % 3; i < RD_N; i += 3)
			b->rdc[i] = (struct rd_client){
				.prob = 200, .left = 300, .min = 1, .max = 300
			};
		bench_drain(b, 400000);
		assert_true(b->rd_waited > 100);
		finish(b);
	}
}

/* ---- device memory ----------------------------------------------------------------------------
 */

static void dm_access(struct bench *b, bool write, uint32_t off, uint32_t dw, uint8_t fbe,
		      uint8_t lbe)
{
	uint32_t data[2] = { bench_rnd(b, ~0u), bench_rnd(b, ~0u) };

	bench_host_request(b, &(struct host_request){ .type = write,
						      .bar = 2,
						      .addr = DM_BAR + off,
						      .dw = dw,
						      .first_be = fbe,
						      .last_be = lbe,
						      .data = write ? data : NULL });
}

/* A DMA write, until it is accepted; a read, until it is granted. */
static void dm_dma_write(struct bench *b, uint64_t from, uint32_t len)
{
	b->wrc[0] = (struct wr_client){ .prob = 256,
					.left = 1,
					.min = len,
					.max = len,
					.dm = 256,
					.dm_from = from,
					.dm_span = 1 };
	while (b->wrc[0].left || b->wrc[0].active)
		bench_cycle(b);
}

static void dm_dma_read(struct bench *b, uint64_t from, uint32_t len)
{
	b->rdc[0] = (struct rd_client){ .prob = 256,
					.left = 1,
					.min = len,
					.max = len,
					.dm = 256,
					.dm_from = from,
					.dm_span = 1 };
	while (b->rdc[0].left || b->in.rd[0].valid)
		bench_cycle(b);
}

/* Every access of the host inside a word, in its first, second and last lines; what is none is
 * refused. */
static void test_dm_host(void **state)
{
	static const uint32_t at[] = { DM_HALF, DM_HALF + 8, DM_HALF + 120, DM_SIZE - 64,
				       DM_SIZE - 8 };
	struct bench *b = start(700);

	(void)state;
	for (unsigned k = 0; k < sizeof(at) / sizeof(*at); k++) {
		dm_access(b, true, at[k], 2, 0xf, 0xf);
		for (unsigned fbe = 0; fbe < 16; fbe++) {
			for (unsigned lbe = 0; lbe < 16; lbe++) {
				bool two = fbe && lbe;

				dm_access(b, true, at[k] + (two ? 0 : lbe % 2 * 4), two ? 2 : 1,
					  fbe, two ? lbe : 0);
				dm_access(b, false, at[k], 2, 0xf, 0xf);
				dm_access(b, false, at[k] + 4, 1, fbe, 0);
			}
			bench_drain(b, 20000);
		}
	}
	assert_int_equal(b->have.mmio_bad + b->have.db_bad, 0);
	assert_int_equal(b->dm_unknown, 0);
	for (uint32_t dw = 2; dw <= 40; dw++) {
		uint32_t data[40] = { 0 };

		for (int write = 0; write < 2; write++)
			bench_host_request(b, &(struct host_request){
						      .type = write,
						      .bar = 2,
						      .addr = DM_BAR + DM_HALF + (dw == 2 ? 4 : 0),
						      .dw = dw,
						      .first_be = 0xf,
						      .last_be = 0xf,
						      .data = write ? data : NULL });
		dm_access(b, false, DM_HALF, 2, 0xf, 0xf);
	}
	bench_drain(b, 20000);
	assert_int_equal(b->have.mmio_bad, 2 * 39);
	/* behind its end, and in the half of the BAR behind it, there is nothing */
	for (uint32_t off = DM_SIZE; off < DM_BAR; off *= 2) {
		dm_access(b, true, off, 2, 0xf, 0xf);
		dm_access(b, false, off, 2, 0xf, 0xf);
	}
	bench_drain(b, 20000);
	assert_int_equal(b->have.db_bad, 5);
	finish(b);
}

/* Each offset in a line, each short length, also across the end: written by DMA, read by DMA and by
 * the host. */
static void test_dm_alignments(void **state)
{
	struct bench *b = start(701);

	(void)state;
	/* where a write that goes on behind the end must not land */
	dm_dma_write(b, 0, 512);
	for (uint32_t off = 0; off < 64; off++)
		for (uint32_t len = 1; len <= 200; len += len < 12 ? 1 : len < 60 ? 7 : 29)
			for (int end = 0; end < 2; end++) {
				uint32_t from = end ? DM_SIZE - 128 + off : 4096 + off;

				dm_dma_write(b, from, len);
				if (!end)
					dm_access(b, false, from & ~7u, 2, 0xf, 0xf);
				dm_dma_read(b, from - 2, len + bench_rnd(b, 9));
			}
	bench_drain(b, 20000);
	assert_int_equal(b->have.rd_tlp + b->have.wr_tlp, 0);
	assert_in_range(b->dm_unknown, 0, b->dm_bytes / 20);
	/* far beyond the end */
	for (int bit = 17; bit < 63; bit++) {
		dm_dma_write(b, 1ull << bit, 100);
		dm_dma_read(b, 1ull << bit, 100);
	}
	dm_dma_read(b, 0, 512);
	finish(b);
}

/* Device memory and the host's, by all clients and the host at once. */
static void test_dm_random(void **state)
{
	(void)state;
	for (int v = 0; v < 8; v++) {
		struct bench *b = start(710 + v);
		int dm = v & 4 ? 256 : 128;
		uint32_t span = v & 2 ? 300 : 3000;

		if (v & 1)
			rough_host(b);
		b->in.max_read_req = v % 3;
		/* fill both halves */
		b->wrc[0] = (struct wr_client){
			.prob = 256, .left = 2, .min = 4096, .max = 4096, .dm = 256, .dm_span = 1
		};
		for (uint32_t off = 0; off < 4096; off += 8)
			dm_access(b, true, DM_HALF + off, 2, 0xf, 0xf);
		bench_drain(b, 40000);
		readers(b, RD_N, 60, 200, 1, v & 2 ? 400 : 900);
		writers(b, WR_N, 60, 200, 1, v & 2 ? 400 : 900);
		for (int i = 0; i < RD_N; i++) {
			b->rdc[i].dm = dm;
			b->rdc[i].dm_from = i & 1 ? DM_HALF : 0;
			b->rdc[i].dm_span = span;
		}
		for (int i = 0; i < WR_N; i++) {
			b->wrc[i].dm = dm;
			b->wrc[i].dm_span = span;
			b->wrc[i].gap = v & 2 ? 100 : 0;
		}
		b->irq_left = 100;
		b->irq_prob = 60;
		for (int i = 0; i < 3000; i++) {
			uint32_t word = bench_rnd(b, span / 8) * 8;

			if (bench_rnd(b, 3) == 0)
				dm_access(b, true, DM_HALF + word, 1 + bench_rnd(b, 2), 0xf, 0);
			else if (bench_rnd(b, 8) == 0)
				reg_access(b, bench_rnd(b, 2), bench_rnd(b, 16) * 8, 2, 0xf, 0xf);
			else
				dm_access(b, false, word + (i & 1) * DM_HALF, 2, 0xf, 0xf);
		}
		bench_drain(b, 400000);
		print_message("%llu bytes of device memory read, %llu of them unknown\n",
			      (unsigned long long)b->dm_bytes, (unsigned long long)b->dm_unknown);
		/* what overlaps with a write under way: in a small span 0.5 to 1.2 % */
		assert_in_range(b->dm_unknown, 0, b->dm_bytes / (v & 2 ? 50 : 1000));
		finish(b);
	}
}

/* A read that is offered as soon as a write is accepted returns what was written, while the host
 * keeps the ports busy. */
static void test_dm_read_behind_write(void **state)
{
	(void)state;
	for (int busy = 0; busy < 3; busy++)
		for (uint32_t len = 1; len <= 260; len += 7) {
			struct bench *b = start(720 + len);

			for (int i = 0; i < 60 * busy; i++)
				dm_access(b, busy == 2 || i % 2, DM_HALF + 8 * (i % 8), 2, 0xf,
					  0xf);
			bench_run(b, 30);
			for (int round = 0; round < 4; round++) {
				dm_dma_write(b, 64 + len % 64, len);
				dm_dma_read(b, 64 + len % 64, len);
			}
			finish(b);
		}
}

/* Without bus mastering, reads and writes of device memory work, and no TLP goes out. */
static void test_dm_bus_master_off(void **state)
{
	struct bench *b = start(760);

	(void)state;
	b->in.bus_master_en = false;
	readers(b, RD_N, 100, 50, 1, 1000);
	writers(b, WR_N, 100, 50, 1, 1000);
	for (int i = 0; i < RD_N; i++)
		b->rdc[i].dm = 256, b->rdc[i].dm_span = 500;
	for (int i = 0; i < WR_N; i++)
		b->wrc[i].dm = 256, b->wrc[i].dm_span = 500;
	finish(b);
}

/* A line a cycle each way, whatever the alignment, and at least half of that beside a host that
 * wants each port. */
static void test_dm_rate(void **state)
{
	(void)state;
	for (int v = 0; v < 8; v++) {
		struct bench *b = start(770 + v);
		uint32_t from = v & 1 ? 37 : 0;
		bool write = v & 2, host = v & 4;
		uint64_t cycles, t0;

		for (int i = 0; host && i < 3000; i++)
			dm_access(b, write, DM_HALF + 8 * (i % 100), 2, 0xf, 0xf);
		bench_run(b, 20);
		t0 = b->cycle;
		if (write)
			b->wrc[0] = (struct wr_client){ .prob = 256,
							.left = 20,
							.min = 4096,
							.max = 4096,
							.dm = 256,
							.dm_from = from,
							.dm_span = 1 };
		else
			b->rdc[0] = (struct rd_client){ .prob = 256,
							.left = 20,
							.min = 4096,
							.max = 4096,
							.dm = 256,
							.dm_from = from,
							.dm_span = 1 };
		while (write ? b->wrc[0].done < 20 : b->rdc[0].done < 20)
			bench_cycle(b);
		cycles = b->cycle - t0;
		print_message("20 x 4096 bytes %s device memory at +%u%s: %u cycles\n",
			      write ? "to" : "from", from, host ? ", beside the host" : "",
			      (unsigned)cycles);
		assert_in_range(cycles, 20 * 64, (host ? 2 : 1) * 20 * (from ? 65 : 64) + 20);
		/* nor does DMA shut out the host */
		bench_drain(b, 20000);
		finish(b);
	}
}

/* ---- errors -----------------------------------------------------------------------------------
 */

static void test_faults_each(void **state)
{
	(void)state;
	for (int f = F_NONE + 1; f < F_N; f++) {
		struct bench *b = start(100 + f);

		b->lat_rand = 100;
		b->random_cuts = true;
		b->fault_prob = 200;
		b->fault_mask = 1u << f;
		readers(b, RD_N, 60, 60, 1, 2048);
		bench_drain(b, 400000);
		assert_true(b->have.cpl_err + b->have.cpl_timeout > 20);
		/* and afterwards all is well */
		b->fault_prob = 0;
		readers(b, RD_N, 60, 60, 1, 2048);
		finish(b);
	}
}

static void test_faults_mixed(void **state)
{
	(void)state;
	for (int v = 0; v < 6; v++) {
		struct bench *b = start(120 + v);

		rough_host(b);
		b->lat_rand = v & 1 ? 2000 : 50;
		b->fault_prob = 40;
		b->fault_mask = ~0u;
		b->in.max_read_req = v % 4;
		readers(b, RD_N, 100, 60, 1, v & 2 ? 4096 : 600);
		writers(b, WR_N, 20, 50, 1, 4096);
		finish(b);
	}
}

/* All 256 tags lost: reads wait for the end of the quarantine, then go on. */
static void test_all_tags_lost(void **state)
{
	struct bench *b = start(130);

	(void)state;
	b->fault_prob = 1024;
	b->fault_mask = 1u << F_LOST;
	readers(b, 1, 256, 256, 64, 64);
	b->rdc[0].align = 64;
	bench_drain(b, 20000);
	assert_int_equal(b->have.cpl_timeout, 256);
	/* The timer had told of the sweep in which they were given up. */
	assert_in_range(b->timeout_after, 0, 3);
	b->fault_prob = 0;
	readers(b, 2, 256, 300, 1, 1024);
	bench_run(b, 200);
	assert_int_equal(b->have.rd_tlp, 256);
	assert_true(b->out.busy);
	finish(b);
}

/*
 * One tag of eight lost, so that there are nowhere eight in a row: long reads are cut, and go on
 * before the end of the quarantine.
 */
static void test_long_reads_around_lost_tags(void **state)
{
	struct bench *b = start(133);
	uint64_t lost;

	(void)state;
	b->in.max_read_req = 2;
	readers(b, 1, 256, 256, 64, 64);
	b->rdc[0].align = 64;
	b->fault_mask = 1u << F_LOST;
	b->lose_each = 8;
	bench_drain(b, 20000);
	lost = b->cycle;
	assert_int_equal(b->have.cpl_timeout, 32);
	b->lose_each = 0;
	b->in.max_read_req = 5;
	readers(b, RD_N, 256, 15, 2000, 4096);
	while (b->rd_head != b->rd_tail || b->rdc[0].left || b->rdc[RD_N - 1].left)
		bench_cycle(b);
	assert_in_range(b->cycle - lost, 1, TAG_QUARANTINE / 2);
	assert_true(b->rd_cut > 60);
	finish(b);
}

/* Long reads with all tags in use, and short ones between them. */
static void test_long_reads(void **state)
{
	(void)state;
	for (int v = 0; v < 6; v++) {
		struct bench *b = start(150 + v);

		b->in.max_read_req = 3 + v % 4;
		b->lat_min = 600;
		b->lat_rand = v & 1 ? 0 : 3000;
		b->random_cuts = v & 2;
		b->max_cpl = 512;
		readers(b, RD_N, 256, 150, 1, 4096);
		b->rdc[0].max = 100;
		b->rdc[1].min = 4096;
		finish(b);
	}
}

/*
 * All tags are in use, and a read of device memory waits for one, while any number of writes to
 * device memory comes and goes.
 */
static void test_dm_read_waits_for_tags(void **state)
{
	(void)state;
	for (uint32_t n = 0; n <= 80; n++) {
		struct bench *b = start(800 + n);

		b->in.max_read_req = 2;
		b->lat_min = 4000;
		readers(b, 1, 256, 32, 4096, 4096);
		b->rdc[0].align = 512;
		while (b->have.rd_tlp < 256)
			bench_cycle(b);
		b->rdc[1] = (struct rd_client){ .prob = 256,
						.left = 1,
						.min = 64,
						.max = 64,
						.dm = 256,
						.dm_from = 1024,
						.dm_span = 1 };
		while (b->rdc[1].left)
			bench_cycle(b);
		b->wrc[0] = (struct wr_client){
			.prob = 256, .left = n, .min = 64, .max = 64, .dm = 256, .dm_span = 1
		};
		bench_run(b, 1000);
		assert_int_equal(b->wrc[0].left, 0);
		assert_int_equal(b->rdc[1].done, 0);
		finish(b);
	}
}

/* A completion for a tag that is not in use is dropped and counted. */
static void test_unexpected(void **state)
{
	struct bench *b = start(131);

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct axis_beat x = { .keep = 0x7f, .last = true, .valid = true };

		memset(x.data, 0, sizeof(x.data));
		x.data[2] = 16;	  /* byte count */
		x.data[3] = 0x40; /* request completed */
		x.data[4] = 4;	  /* dwords */
		x.data[8] = bench_rnd(b, 256);
		b->in.rc = x;
		pcie_model_eval(b->m, &b->in, &b->out);
		pcie_model_edge(b->m);
		b->want.cpl_unexpected++;
		b->in.rc.valid = false;
		bench_run(b, 3);
	}
	readers(b, 2, 256, 300, 1, 1024);
	finish(b);
}

/* Bus master enable 0: reads fail at once, writes vanish, nothing goes out, interrupts still pass.
 */
static void test_bus_master_off(void **state)
{
	struct bench *b = start(132);
	uint32_t asked;

	(void)state;
	readers(b, RD_N, 100, 50, 1, 4096);
	writers(b, WR_N, 100, 50, 1, 4096);
	bench_drain(b, 100000);
	asked = b->have.rd_tlp + b->have.wr_tlp;
	b->in.bus_master_en = false;
	b->rq_stall = 256; /* the block has nothing to wait for */
	b->irq_left = 50;
	b->irq_prob = 50;
	readers(b, RD_N, 100, 50, 1, 4096);
	writers(b, WR_N, 100, 50, 1, 4096);
	bench_drain(b, 100000);
	assert_int_equal(b->have.rd_tlp + b->have.wr_tlp, asked);
	assert_true(b->have.dma_drop > 300);
	b->want.dma_drop = b->have.dma_drop;
	b->in.bus_master_en = true;
	b->rq_stall = 0;
	readers(b, RD_N, 100, 50, 1, 4096);
	writers(b, WR_N, 100, 50, 1, 4096);
	finish(b);
}

/* Bus master enable changes at any beat of a write: the TLP goes out whole, or not at all. */
static void test_bus_master_moves(void **state)
{
	(void)state;
	for (int stall = 0; stall <= 200; stall += 100) {
		struct bench *b = start(136 + stall);

		b->rq_stall = stall;
		b->master_moves = true;
		b->wrc[0] = (struct wr_client){
			.prob = 256, .left = 1000, .min = 256, .max = 256, .next_addr = WR_BASE
		};
		while (b->wrc[0].left > 20) {
			bench_run(b, 1 + bench_rnd(b, 12));
			b->in.bus_master_en = !b->in.bus_master_en;
		}
		b->in.bus_master_en = true;
		bench_drain(b, 100000);
		assert_in_range(b->have.dma_drop, 100, 900);
		finish(b);
	}
}

/*
 * stop, as before a reset of the NIC's blocks: the write under way is finished, nothing else
 * begins, all that was taken is completed; requests that were not taken may be withdrawn.
 */
static void test_stop(void **state)
{
	struct bench *b = start(140);
	int open = 0;

	(void)state;
	rough_host(b);
	for (int round = 0; round < 100; round++) {
		uint64_t end;

		readers(b, RD_N, 128, 20, 1, 2048);
		writers(b, WR_N, 128, 20, 1, 2048);
		bench_run(b, bench_rnd(b, 600));
		b->in.stop = true;
		bench_cycle(b);
		open += b->out.wr_open;
		for (end = b->cycle + 200; b->out.wr_open; bench_cycle(b))
			assert_true(b->cycle < end);
		for (int i = 0; i < RD_N; i++) {
			b->in.rd[i].valid = false;
			b->rdc[i].left = 0;
		}
		for (int i = 0; i < WR_N; i++) {
			assert_true(!b->wrc[i].active || b->wrc[i].pos == 0);
			b->in.wr[i].valid = b->wrc[i].active = false;
			b->wrc[i].left = 0;
		}
		bench_drain(b, 20000);
		b->in.stop = false;
	}
	assert_true(open > 20);
	finish(b);
}

/* ---- speed ------------------------------------------------------------------------------------
 */

/* 256 bytes of payload are 5 beats; no beat of RQ may stay unused. */
static void test_write_rate(void **state)
{
	static const struct {
		uint32_t len;
		uint64_t at;
		uint8_t mps;
		uint32_t beats; /* of a request on RQ */
	} t[] = {
		{ 4096, 0, 1, 80 }, /* aligned, 16 TLPs of 256 bytes */
		{ 4096, 0, 2, 72 }, /* 8 of 512 */
		{ 4096, 0, 0, 96 }, /* 32 of 128 */
		{ 4096, 0, 3, 68 }, /* 4 of 1024 */
		{ 64, 0, 1, 2 },      { 48, 0, 1, 1 },
		{ 4096, 36, 1, 80 },  /* 220 bytes, 15 of 256, 36 bytes */
		{ 4096, 255, 1, 81 }, /* 1 byte, 15 of 256, 255 bytes */
		{ 1, 0, 1, 1 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct bench *b = start(200 + i);
		uint32_t n = t[i].len == 4096 ? 50 : 1000;
		uint64_t cycles;

		b->in.max_payload = t[i].mps;
		for (int k = 0; k < WR_N; k++)
			b->wrc[k] =
				(struct wr_client){ .prob = 256,
						    .left = n,
						    .min = t[i].len,
						    .max = t[i].len,
						    .align = 4096,
						    .next_addr = t[i].at ? WR_BASE + t[i].at : 0 };
		bench_drain(b, 400000);
		cycles = b->rq_last_cycle - b->rq_first + 1;
		print_message("write %4u bytes at +%3u, payload %4u: %u beats, %llu cycles\n",
			      t[i].len, (unsigned)t[i].at, 128u << t[i].mps, (unsigned)b->rq_beats,
			      (unsigned long long)cycles);
		assert_int_equal(b->rq_beats, (uint64_t)WR_N * n * t[i].beats);
		/* the first requests need not find the pipeline full */
		assert_in_range(cycles, b->rq_beats, b->rq_beats + 8);
		finish(b);
	}
}

/* RC takes 9 beats for 512 bytes, 5 for 256, 2 for 64: the host has to be the limit, not we. */
static void test_read_rate(void **state)
{
	static const struct {
		uint32_t len, max_cpl, beats, mrrs;
	} t[] = {
		{ 4096, 512, 72, 2 }, { 4096, 256, 80, 2 }, { 4096, 64, 128, 2 },
		{ 512, 512, 9, 2 },   { 64, 64, 2, 2 },	    { 4096, 512, 72, 5 },
		{ 4096, 256, 80, 5 }, { 4096, 64, 128, 5 }, { 1536, 256, 30, 4 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(t) / sizeof(*t); i++) {
		for (int ordered = 0; ordered < 2; ordered++) {
			struct bench *b = start(220 + i);
			uint32_t n = t[i].len >= 1536 ? 40 : 400;
			uint64_t cycles, ideal = (uint64_t)4 * n * t[i].beats;

			b->max_cpl = t[i].max_cpl;
			b->in.max_read_req = t[i].mrrs;
			b->in_order = ordered;
			b->reorder = 4;
			b->lat_min = 100;
			for (int k = 0; k < 4; k++)
				b->rdc[k] = (struct rd_client){ .prob = 256,
								.left = n,
								.min = t[i].len,
								.max = t[i].len,
								.align = 4096 };
			bench_drain(b, 400000);
			cycles = b->rsp_last - b->rsp_first;
			print_message("read %4u bytes, completions of %3u%s: %llu cycles, RC needs "
				      "%llu\n",
				      t[i].len, t[i].max_cpl, ordered ? ", in order" : "",
				      (unsigned long long)cycles, (unsigned long long)ideal);
			/* Out of order: an old tag that comes last holds up all 256 now and then.
			 */
			assert_true(cycles <= ideal + (ordered ? 10 : ideal / 16 + 300));
			finish(b);
		}
	}
}

/* With all data but the first tag's in the buffer, it comes out at 64 bytes a cycle without a
 * break. */
static void test_read_drain_rate(void **state)
{
	static const uint32_t len[] = { 4096, 64, 512 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct bench *b = start(240 + i);
		uint32_t n = len[i] == 4096 ? 32 : 200;

		b->hold_first = true;
		b->hold_tag = 0;
		b->rdc[0] = (struct rd_client){
			.prob = 256, .left = n, .min = len[i], .max = len[i], .align = 512
		};
		bench_run(b, 6000);
		assert_int_equal(b->rsp_beats, 0);
		b->hold_first = false;
		bench_drain(b, 10000);
		assert_int_equal(b->rsp_beats, n * len[i] / 64);
		/* 4096-byte TLPs: the first tag's 512 bytes still have to come in */
		assert_true(b->rsp_last - b->rsp_first + 1 <= b->rsp_beats + 10);
		finish(b);
	}
}

/* A read gives back all of its tags as soon as its data are out: 32 of eight tags each are all that
 * there are, and the next one follows the first one's end. */
static void test_read_tags(void **state)
{
	struct bench *b = start(247);

	(void)state;
	b->in.max_read_req = 5;
	b->hold_first = true;
	b->hold_tag = 8; /* the second read's first one */
	b->rdc[0] = (struct rd_client){
		.prob = 256, .left = 40, .min = 4096, .max = 4096, .align = 4096
	};
	bench_run(b, 6000);
	assert_int_equal(b->have.rd_tlp, 33);
	b->hold_first = false;
	bench_drain(b, 10000);
	assert_int_equal(b->have.rd_tlp, 40);
	finish(b);
}

/* Read requests go out one a cycle. */
static void test_read_issue_rate(void **state)
{
	struct bench *b = start(245);

	(void)state;
	readers(b, RD_N, 256, 240 / RD_N, 64, 64);
	for (int i = 0; i < RD_N; i++)
		b->rdc[i].align = 64;
	bench_run(b, 300);
	/* fewer than there are tags: nothing has to come back first */
	assert_int_equal(b->have.rd_tlp, 240 / RD_N * RD_N);
	assert_in_range(b->rq_last_cycle - b->rq_first + 1, b->have.rd_tlp, b->have.rd_tlp + 2);
	finish(b);
}

static uint64_t first_cycle(struct bench *b, const bool *flag, uint32_t limit)
{
	while (limit--) {
		bench_cycle(b);
		if (*flag)
			return b->cycle - 1;
	}
	fail_msg("nothing came");
	return 0;
}

static void test_latency(void **state)
{
	struct bench *b = start(250);
	uint64_t t0, rq, rsp;
	uint32_t data[2] = { 1, 2 };

	(void)state;
	bench_run(b, 20);
	b->rdc[0] = (struct rd_client){ .prob = 256, .left = 1, .min = 64, .max = 64, .align = 64 };
	t0 = b->cycle;
	rq = first_cycle(b, &b->out.rq.valid, 20) - t0;
	while (!b->out.rd_rsp_valid)
		bench_cycle(b);
	rsp = b->cycle - 1 - b->rc_last_sent;
	print_message("read request to RQ %u cycles, last beat of RC to data %u\n", (unsigned)rq,
		      (unsigned)rsp);
	assert_true(rq <= 3);
	assert_true(rsp <= 4);
	bench_drain(b, 100);

	b->wrc[0] = (struct wr_client){ .prob = 256, .left = 1, .min = 64, .max = 64, .align = 64 };
	t0 = b->cycle;
	rq = first_cycle(b, &b->out.rq.valid, 20) - t0;
	print_message("64-byte write to RQ %u cycles\n", (unsigned)rq);
	assert_true(rq <= 4);
	bench_drain(b, 100);

	t0 = b->cycle;
	bench_host_request(b, &(struct host_request){ .type = 1,
						      .bar = 2,
						      .dw = 2,
						      .first_be = 0xf,
						      .last_be = 0xf,
						      .data = data });
	rq = first_cycle(b, &b->out.db_valid, 20) - t0;
	bench_drain(b, 100);
	t0 = b->cycle;
	reg_access(b, false, 0, 2, 0xf, 0xf);
	rsp = first_cycle(b, &b->out.reg_req_valid, 20) - t0;
	bench_drain(b, 100);
	print_message("CQ to doorbell %u cycles, to the register bus %u\n", (unsigned)rq,
		      (unsigned)rsp);
	assert_true(rq <= 2 && rsp <= 2);

	b->rdc[0] = (struct rd_client){
		.prob = 256, .left = 1, .min = 64, .max = 64, .dm = 256, .align = 64
	};
	t0 = b->cycle;
	while (!b->out.rd_rsp_valid)
		bench_cycle(b);
	rq = b->cycle - 1 - t0;
	bench_drain(b, 100);
	t0 = b->cycle;
	dm_access(b, false, 0, 2, 0xf, 0xf);
	rsp = first_cycle(b, &b->out.cc.valid, 20) - t0;
	print_message("read of device memory: %u cycles, through the BAR %u\n", (unsigned)rq,
		      (unsigned)rsp);
	assert_true(rq <= 4 && rsp <= 6);
	finish(b);
}

/* ---- fairness ---------------------------------------------------------------------------------
 */

/* Reads and writes both want more than RQ has: TLPs alternate, and clients get equal turns. */
static void test_fairness(void **state)
{
	struct bench *b = start(260);
	uint64_t rd = 0, wr = 0;

	(void)state;
	b->lat_min = 50;
	b->max_cpl = 512;
	readers(b, RD_N, 256, ~0u, 64, 64);
	writers(b, WR_N, 256, ~0u, 4096, 4096);
	for (int i = 0; i < RD_N; i++)
		b->rdc[i].align = 64;
	for (int i = 0; i < WR_N; i++)
		b->wrc[i].align = 4096;
	bench_run(b, 1000);
	b->rd_tlp_gap = 0;
	for (int i = 0; i < RD_N; i++)
		b->rdc[i].max_wait = 0;
	rd = b->have.rd_tlp;
	wr = b->have.wr_tlp;
	bench_run(b, 12000);
	rd = b->have.rd_tlp - rd;
	wr = b->have.wr_tlp - wr;
	print_message("12000 cycles: %u read TLPs, %u write TLPs of 256 bytes; longest pause "
		      "between reads %u\n",
		      (unsigned)rd, (unsigned)wr, (unsigned)b->rd_tlp_gap);
	assert_in_range(rd, 1990, 2010); /* 6 cycles: 1 for the read, 5 for the write */
	assert_in_range(wr, 1990, 2010);
	assert_in_range(b->rd_tlp_gap, 6, 6);
	for (int i = 0; i < RD_N; i++) {
		assert_in_range(b->rdc[i].bytes, b->rdc[0].bytes - 128, b->rdc[0].bytes + 128);
		assert_true(b->rdc[i].max_wait <= 6 * RD_N + 2);
	}
	for (int i = 0; i < WR_N; i++)
		assert_in_range(b->wrc[i].done + 1, b->wrc[0].done, b->wrc[0].done + 2);
	readers(b, RD_N, 0, 0, 1, 1);
	for (int i = 0; i < WR_N; i++)
		b->wrc[i].left = 0;
	finish(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers_all_sizes),
		cmocka_unit_test(test_registers_bad),
		cmocka_unit_test(test_unsupported),
		cmocka_unit_test(test_doorbells),
		cmocka_unit_test(test_mmio_random),
		cmocka_unit_test(test_reads_random),
		cmocka_unit_test(test_writes_random),
		cmocka_unit_test(test_alignments),
		cmocka_unit_test(test_all_traffic),
		cmocka_unit_test(test_read_behind_write),
		cmocka_unit_test(test_dm_host),
		cmocka_unit_test(test_dm_alignments),
		cmocka_unit_test(test_dm_random),
		cmocka_unit_test(test_dm_read_behind_write),
		cmocka_unit_test(test_dm_bus_master_off),
		cmocka_unit_test(test_dm_rate),
		cmocka_unit_test(test_faults_each),
		cmocka_unit_test(test_faults_mixed),
		cmocka_unit_test(test_all_tags_lost),
		cmocka_unit_test(test_dm_read_waits_for_tags),
		cmocka_unit_test(test_long_reads_around_lost_tags),
		cmocka_unit_test(test_long_reads),
		cmocka_unit_test(test_unexpected),
		cmocka_unit_test(test_bus_master_off),
		cmocka_unit_test(test_bus_master_moves),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_write_rate),
		cmocka_unit_test(test_read_rate),
		cmocka_unit_test(test_read_drain_rate),
		cmocka_unit_test(test_read_tags),
		cmocka_unit_test(test_read_issue_rate),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_fairness),
	};

	seed = test_seed(seed);
	return cmocka_run_group_tests_name("pcie", tests, NULL, NULL);
}
