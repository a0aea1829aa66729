// SPDX-License-Identifier: Apache-2.0
// urdma_mr alone: random regions, rings and requests against a model that walks the same page
// tables in memory. A wrong address or status here means that the NIC would touch memory that is
// not the application's.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
}
#include <deque>
#include <unordered_map>

#include "Vurdma_mr.h"
#include "rtl/bits.h"

enum { CLIENTS = 5, REGIONS = 128 };
enum { MR_OK, MR_BAD_KEY, MR_BAD_PD, MR_BAD_RANGE, MR_BAD_ACCESS, MR_DMA_ERR };

// widths of urdma_pkg's structs
enum { REQ_W = 199, CTX_W = 227, RSP_W = 81, RD_REQ_W = 77 };

struct table {
	uint64_t addr;
	unsigned int levels, page_shift;
};

struct region {
	bool valid;
	unsigned int variant, pd, acc;
	bool all;
	uint64_t va, len;
	struct table pt;
};

struct request {
	bool ring;
	struct table pt;
	uint32_t key;
	unsigned int pd, acc;
	uint64_t va;
	unsigned int len;
};

struct answer {
	unsigned int status;
	uint64_t addr;
	unsigned int len;
	bool last;
};

struct read {
	unsigned int port;
	uint64_t addr, due;
};

struct bench {
	Vurdma_mr dut;
	uint64_t seed, now, next_page;
	std::unordered_map<uint64_t, uint64_t> mem; // 64-bit words by address
	struct region region[REGIONS];
	std::deque<struct answer> expect[CLIENTS];
	std::deque<struct request> todo[CLIENTS];
	std::deque<struct read> reads;
	bool refuse[CLIENTS];
	bool flush;
	unsigned int latency;
	uint64_t taken, answered;
};

// reads of tables at or above fail
static const uint64_t bad_memory = 0xdead00000000ull;

static uint64_t rnd(struct bench *b, uint64_t n)
{
	return rnd_below(&b->seed, n);
}

static void check_answer(struct bench *b, int c)
{
	const uint32_t *w = b->dut.rsp.m_storage;
	unsigned int lsb = c * RSP_W;
	struct answer got, want;

	got.last = bits_get(w, lsb, 1);
	got.len = bits_get(w, lsb + 1, 13);
	got.addr = bits_get(w, lsb + 14, 64);
	got.status = bits_get(w, lsb + 78, 3);
	if (b->expect[c].empty())
		fail_msg("cycle %lu: client %d has an answer that it did not ask for", b->now, c);
	want = b->expect[c].front();
	b->expect[c].pop_front();
	if (got.status != want.status || got.last != want.last ||
	    (want.status == MR_OK && (got.addr != want.addr || got.len != want.len)))
		fail_msg("cycle %lu client %d: status %u addr %lx len %u last %d, "
			 "should be status %u addr %lx len %u last %d",
			 b->now, c, got.status, got.addr, got.len, got.last, want.status, want.addr,
			 want.len, want.last);
	b->answered++;
}

static void put_table(uint32_t *w, unsigned int lsb, const struct table *pt)
{
	bits_set(w, lsb, 6, pt->page_shift);
	bits_set(w, lsb + 6, 2, pt->levels);
	bits_set(w, lsb + 8, 64, pt->addr);
}

static void put_request(uint32_t *w, unsigned int lsb, const struct request *rq)
{
	bits_set(w, lsb, 13, rq->len);
	bits_set(w, lsb + 13, 64, rq->va);
	bits_set(w, lsb + 77, 5, rq->acc);
	bits_set(w, lsb + 82, 12, rq->pd);
	bits_set(w, lsb + 94, 32, rq->key);
	put_table(w, lsb + 126, &rq->pt);
	bits_set(w, lsb + 198, 1, rq->ring);
}

static void drive_reads(struct bench *b)
{
	uint32_t *w = b->dut.rd_rsp.m_storage;

	b->dut.rd_rsp_valid = 0;
	if (b->reads.empty() || b->reads.front().due > b->now)
		return;
	struct read rd = b->reads.front();

	b->reads.pop_front();
	b->dut.rd_rsp_valid = 1u << rd.port;
	bits_set(w, 0, 1, rd.addr >= bad_memory);
	bits_set(w, 1, 1, 1);
	for (int i = 0; i < 8; i++)
		bits_set(w, 2 + 64 * i, 64, rd.addr >= bad_memory ? 0 : b->mem[rd.addr + 8 * i]);
}

static void cycle(struct bench *b)
{
	Vurdma_mr *d = &b->dut;
	unsigned int ready = 0;

	d->clk = 0;
	d->req_valid = 0;
	for (int c = 0; c < CLIENTS; c++) {
		if (!d->rst && !b->todo[c].empty()) {
			d->req_valid |= 1u << c;
			put_request(d->req.m_storage, c * REQ_W, &b->todo[c].front());
		}
		if (!b->refuse[c] && (b->latency == 0 || rnd(b, 8)))
			ready |= 1u << c;
	}
	d->rsp_ready = ready;
	d->rd_req_ready = b->latency ? rnd(b, 4) : 3;
	d->flush_req = b->flush;
	drive_reads(b);
	d->eval();

	for (int c = 0; c < CLIENTS; c++) {
		if ((d->req_valid & d->req_ready) >> c & 1) {
			b->todo[c].pop_front();
			b->taken++;
		}
		if ((d->rsp_valid & d->rsp_ready) >> c & 1)
			check_answer(b, c);
	}
	for (unsigned int p = 0; p < 2; p++) {
		if (!((d->rd_req_valid & d->rd_req_ready) >> p & 1))
			continue;
		struct read rd = { p, bits_get(d->rd_req.m_storage, p * RD_REQ_W + 13, 64), 0 };

		assert_int_equal(bits_get(d->rd_req.m_storage, p * RD_REQ_W, 13), 64);
		assert_int_equal(rd.addr % 64, 0);
		rd.due = b->now + 100 + (b->latency ? rnd(b, b->latency) : 0);
		if (!b->reads.empty() && rd.due < b->reads.back().due)
			rd.due = b->reads.back().due;
		b->reads.push_back(rd);
	}
	d->clk = 1;
	d->eval();
	b->now++;
}

static void start(struct bench *b, uint64_t seed)
{
	print_message("seed %lu\n", seed);
	b->seed = seed;
	b->now = b->taken = b->answered = 0;
	b->next_page = 0x100000000ull;
	b->flush = false;
	b->latency = 200;
	for (int c = 0; c < CLIENTS; c++)
		b->refuse[c] = false;
	b->dut.cfg_valid = 0;
	b->dut.rst = 1;
	for (int i = 0; i < 4; i++)
		cycle(b);
	b->dut.rst = 0;
	while (!b->dut.init_done)
		cycle(b);
}

// Pages at random places, and the tables that list them.
static struct table make_table(struct bench *b, uint64_t pages, unsigned int page_shift,
			       unsigned int levels, bool bad)
{
	struct table pt = { 0, levels, page_shift };
	uint64_t base = b->next_page;

	b->next_page += (pages * 8 + 0x10000) & ~0xfffull;
	if (levels == 0) {
		pt.addr = rnd(b, 1ull << 28) << page_shift;
		return pt;
	}
	if (levels == 1) {
		pt.addr = bad ? bad_memory + (rnd(b, 1000) << 12) : base + 64 * rnd(b, 64);
		for (uint64_t i = 0; i < pages; i++)
			b->mem[pt.addr + 8 * i] = rnd(b, 1ull << 28) << page_shift;
		return pt;
	}
	pt.addr = base;
	b->next_page += 0x100000;
	for (uint64_t i = 0; i < pages; i++) {
		uint64_t leaf = base + 0x10000 + (i / 512) * 0x3000;

		if (bad)
			leaf += bad_memory;
		b->mem[pt.addr + 8 * (i / 512)] = leaf;
		b->mem[leaf + 8 * (i % 512)] = rnd(b, 1ull << 28) << page_shift;
	}
	return pt;
}

static void write_region(struct bench *b, unsigned int idx)
{
	const struct region *r = &b->region[idx];
	uint32_t *w = b->dut.cfg.m_storage;

	put_table(w, 0, &r->pt);
	bits_set(w, 72, 64, r->len);
	bits_set(w, 136, 64, r->va);
	bits_set(w, 200, 1, r->all);
	bits_set(w, 201, 5, r->acc);
	bits_set(w, 206, 12, r->pd);
	bits_set(w, 218, 8, r->variant);
	bits_set(w, 226, 1, r->valid);
	b->dut.cfg_idx = idx;
	b->dut.cfg_valid = 1;
	cycle(b);
	b->dut.cfg_valid = 0;
}

static void make_region(struct bench *b, unsigned int idx)
{
	struct region *r = &b->region[idx];
	unsigned int shift = rnd(b, 3) ? 12 : 12 + rnd(b, 10);
	unsigned int levels = rnd(b, 3);
	uint64_t pages = 1 + rnd(b, levels == 2 ? 2000 : 40);

	r->valid = rnd(b, 16) != 0;
	r->variant = rnd(b, 256);
	r->pd = rnd(b, 3);
	r->acc = rnd(b, 2) ? 31 : rnd(b, 32);
	r->all = rnd(b, 16) == 0;
	r->va = (rnd(b, 1ull << 30) << 12) + rnd(b, 1ull << shift);
	r->len = (pages << shift) - (r->va & ((1ull << shift) - 1));
	if (r->len > 1)
		r->len -= rnd(b, r->len < 4096 ? r->len : 4096);
	r->pt = make_table(b, pages, shift, levels, rnd(b, 16) == 0);
	write_region(b, idx);
}

static bool page_address(struct bench *b, const struct table *pt, uint64_t page, uint64_t *addr)
{
	uint64_t leaf = pt->addr;

	if (pt->levels == 2) {
		leaf = b->mem[pt->addr + 8 * (page / 512)];
		page %= 512;
	}
	if (leaf >= bad_memory)
		return false;
	*addr = b->mem[leaf + 8 * page];
	return true;
}

static unsigned int check(const struct region *r, const struct request *rq)
{
	if (rq->key >> 22 || !r->valid || r->variant != (rq->key & 0xff))
		return MR_BAD_KEY;
	if (r->pd != rq->pd)
		return MR_BAD_PD;
	if (!r->all &&
	    (rq->va < r->va || rq->va - r->va > r->len || r->len - (rq->va - r->va) < rq->len))
		return MR_BAD_RANGE;
	if (rq->acc & ~r->acc)
		return MR_BAD_ACCESS;
	return MR_OK;
}

static void predict(struct bench *b, const struct request *rq, std::deque<struct answer> *out)
{
	const struct region *r = &b->region[(rq->key >> 8) % REGIONS];
	const struct table *pt = rq->ring ? &rq->pt : &r->pt;
	struct answer a = { MR_OK, 0, rq->len, true };
	uint64_t mask, start, va = rq->va;
	unsigned int left = rq->len;

	if (!rq->ring)
		a.status = check(r, rq);
	if (a.status != MR_OK) {
		out->push_back(a);
		return;
	}
	mask = (1ull << pt->page_shift) - 1;
	start = rq->ring ? 0 : r->va & ~mask;
	if (!rq->ring && r->all) {
		a.addr = va;
		out->push_back(a);
		return;
	}
	if (pt->levels == 0) {
		a.addr = pt->addr + (va - start);
		out->push_back(a);
		return;
	}
	while (left) {
		uint64_t room = mask + 1 - (va & mask), page;

		a.len = left < room ? left : room;
		if (!page_address(b, pt, (va - start) >> pt->page_shift, &page)) {
			a.status = MR_DMA_ERR;
			a.last = true;
			out->push_back(a);
			return;
		}
		a.addr = page + (va & mask);
		left -= a.len;
		va += a.len;
		a.last = left == 0;
		out->push_back(a);
	}
}

static struct request random_request(struct bench *b)
{
	unsigned int idx = rnd(b, REGIONS);
	const struct region *r = &b->region[idx];
	struct request rq = {};

	rq.len = 1 + rnd(b, rnd(b, 2) ? 64 : 4096);
	rq.pd = r->pd;
	rq.acc = rnd(b, 32) & r->acc;
	rq.key = idx << 8 | r->variant;
	if (rnd(b, 8) == 0 && r->pt.levels && r->valid) {
		rq.ring = true;
		rq.pt = r->pt;
		rq.va = rnd(b, 1ull << rq.pt.page_shift);
		rq.len = 1 + rnd(b, (1ull << rq.pt.page_shift) - rq.va < 4096
					    ? (1ull << rq.pt.page_shift) - rq.va
					    : 4096);
		return rq;
	}
	if (rq.len > r->len)
		rq.len = r->len;
	rq.va = r->va + rnd(b, r->len - rq.len + 1);
	switch (rnd(b, 16)) {
	case 0:
		rq.va = r->va + r->len - rq.len + 1; // one byte too far
		break;
	case 1:
		rq.va = r->va - 1;
		break;
	case 2:
		rq.pd ^= 1;
		break;
	case 3:
		rq.key ^= 1u << rnd(b, 8);
		break;
	case 4:
		rq.key |= 1u << (22 + rnd(b, 10));
		break;
	case 5:
		rq.acc = rnd(b, 32);
		break;
	case 6:
		rq.va = rnd_next(&b->seed);
		break;
	}
	return rq;
}

static void drain(struct bench *b)
{
	for (int idle = 0; idle < 10;) {
		cycle(b);
		idle = b->dut.busy ? 0 : idle + 1;
		for (int c = 0; c < CLIENTS; c++) {
			if (!b->todo[c].empty())
				idle = 0;
		}
		if (b->now > 50000000)
			fail_msg("no end: a request is stuck");
	}
	for (int c = 0; c < CLIENTS; c++)
		assert_int_equal(b->expect[c].size(), 0);
}

static void test_random(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 1);
	for (unsigned int i = 0; i < REGIONS; i++)
		make_region(b, i);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 400; i++) {
			int c = rnd(b, CLIENTS);
			struct request rq = random_request(b);

			b->todo[c].push_back(rq);
			predict(b, &rq, &b->expect[c]);
		}
		// flushes at any time change nothing that can be seen
		for (int i = 0; i < 200; i++) {
			b->flush = rnd(b, 20) == 0;
			cycle(b);
		}
		b->flush = false;
		drain(b);
		// new regions in the place of old ones, with a flush, as after a destruction
		for (int i = 0; i < 10; i++)
			make_region(b, rnd(b, REGIONS));
		b->flush = true;
		cycle(b);
		b->flush = false;
	}
	print_message("%lu requests, %lu answers, %lu cycles\n", b->taken, b->answered, b->now);
	delete b;
}

// The tables of a region change under the same address: only a flush makes the new ones seen, and
// it does.
static void test_flush(void **state)
{
	struct bench *b = new struct bench;
	struct request rq = {};
	struct region *r;

	(void)state;
	start(b, 2);
	r = &b->region[5];
	*r = { true, 7, 1, 31, false, 0x10000, 0x20000, { 0, 1, 12 } };
	r->pt = make_table(b, 32, 12, 1, false);
	write_region(b, 5);
	rq.key = 5 << 8 | 7;
	rq.pd = 1;
	rq.va = 0x12345;
	rq.len = 4000;
	for (int i = 0; i < 20; i++) {
		for (int n = 0; n < 2; n++) {
			b->todo[0].push_back(rq);
			predict(b, &rq, &b->expect[0]);
		}
		if (i % 3 == 0)
			drain(b);
		else
			for (int n = 0; n < 30; n++)
				cycle(b); // the fill is under way
		drain(b);
		for (int n = 0; n < 32; n++)
			b->mem[r->pt.addr + 8 * n] = rnd(b, 1ull << 28) << 12;
		b->flush = true;
		cycle(b);
		b->flush = false;
	}
	delete b;
}

// A client that takes no answers does not hold up the others.
static void test_independent(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 3);
	for (unsigned int i = 0; i < REGIONS; i++)
		make_region(b, i);
	b->refuse[2] = true;
	for (int i = 0; i < 2000; i++) {
		struct request rq = random_request(b);
		int c = i % 2 ? 2 : (int)rnd(b, 2) * 3;

		b->todo[c].push_back(rq);
		predict(b, &rq, &b->expect[c]);
	}
	for (int i = 0; i < 200000 && !(b->todo[0].empty() && b->todo[3].empty()); i++)
		cycle(b);
	assert_true(b->todo[0].empty() && b->todo[3].empty());
	assert_false(b->todo[2].empty());
	b->refuse[2] = false;
	drain(b);
	delete b;
}

// With warm tables: one request a cycle (the same line is not looked up in successive cycles).
static void test_rate(void **state)
{
	struct bench *b = new struct bench;
	struct request rq = {};
	uint64_t from = 0;

	(void)state;
	start(b, 4);
	b->latency = 0;
	b->region[0] = { true, 1, 1, 31, false, 0, 64 << 12, { 0, 1, 12 } };
	b->region[0].pt = make_table(b, 64, 12, 1, false);
	write_region(b, 0);
	for (int round = 0; round < 2; round++) {
		from = b->now;
		for (int i = 0; i < 5000; i++) {
			rq.key = 1;
			rq.pd = 1;
			rq.va = (uint64_t)(i * 9 % 64) << 12;
			rq.len = 64;
			b->todo[i % CLIENTS].push_back(rq);
			predict(b, &rq, &b->expect[i % CLIENTS]);
		}
		drain(b);
	}
	print_message("5000 requests in %lu cycles\n", b->now - from);
	assert_true(b->now - from < 5600);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_independent),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
