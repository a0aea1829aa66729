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
#include <string.h>
#include <cmocka.h>
}
#include <deque>
#include <unordered_map>
#include <vector>

#include "Vurdma_mr.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"
#include "urdma_trace_pkg.h"

enum { CLIENTS = MRC_N, REGIONS = 128 };

enum { OP_CLIENTS = MROC_N };
enum {
	CREATE = MRO_CREATE,
	DESTROY = MRO_DESTROY,
	REG = MRO_REG,
	INV_LOCAL = MRO_INV_LOCAL,
	INV_REMOTE = MRO_INV_REMOTE,
	BIND = MRO_BIND,
	QP_END = MRO_QP_END,
	OPS
};
enum { KIND_REGION, KIND_FAST, KIND_WINDOW, KIND_WINDOW_1 };
enum {
	LOCAL_WRITE = 1,
	REMOTE_WRITE = 2,
	REMOTE_READ = 4,
	REMOTE_ATOMIC = 8,
	MW_BIND = 16,
	FLUSH = 32,
	ALL_RIGHTS = 63
};
enum { REMOTE = REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC | FLUSH };

struct table {
	uint64_t addr;
	unsigned int levels, page_shift;
};

struct region {
	bool valid;
	unsigned int variant, pd, acc;
	bool all;
	uint64_t va, len; // of a zero-based one 0, len
	struct table pt;
	uint64_t first; // where its first byte is in what the table describes
	bool usable;
	unsigned int kind, qpn, parent, bound;
	uint64_t age;	 // of a window: BINDs before its own
	bool zero_based; // only of one that is to be created
};

struct op {
	unsigned int op, kind;
	uint32_t key, lkey;
	unsigned int pd, qpn, acc;
	bool all, zero_based;
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
	unsigned int qpn;
	bool whole;   // instead of va: the start of the region or window
	bool aligned; // to 8 bytes in memory
};

struct answer {
	unsigned int status;
	uint64_t addr;
	unsigned int len;
	bool last;
};

// What may be answered to a request: one taken while an operation is under way may see the
// contexts from before or from after it, but not a mixture. BIND of a type 1 window that is bound
// has a state between: unbound.
enum { STATES = 3 };
struct expected {
	uint32_t key; // 0 of a ring
	std::vector<struct answer> may[STATES];
	bool alive[STATES];
	unsigned int given;
};

struct read {
	unsigned int port;
	uint64_t addr, due;
	uint64_t word[8]; // as it was when the read was sent
};

struct bench {
	Vurdma_mr dut;
	uint64_t seed, now, next_page;
	std::unordered_map<uint64_t, uint64_t> mem; // 64-bit words by address
	struct region region[REGIONS];
	struct region after[REGIONS]; // when the operation under way is done
	struct region between[REGIONS];
	bool ended; // the operation under way ends a binding first
	std::deque<struct expected> expect[CLIENTS];
	std::deque<struct op> ops[OP_CLIENTS];
	int op_client; // whose operation is under way, -1: none
	unsigned int op_status, last_status;
	uint64_t last_addr;
	uint64_t op_taken, op_done, op_longest, op_refused;
	std::deque<struct request> todo[CLIENTS];
	std::deque<struct read> reads;
	bool refuse[CLIENTS];
	bool flush;
	unsigned int delay; // of a read, in cycles, and up to latency more
	unsigned int latency;
	bool no_tables; // reads of tables are not taken, those of directories are
	uint64_t taken, answered, fills;
	// Lanes: pages told of, those that were refused, look-ups by cache. Answers: refused, of a
	// table that could not be read. Requests by client and key that are not answered to the
	// end.
	uint64_t told, told_refused, told_hits[2], told_misses[2], refused, unread;
	uint64_t counted[URDMA_CNT_N]; // the counters
	std::unordered_map<uint64_t, int> open;
};

// reads of tables at or above fail
static const uint64_t bad_memory = 1ull << 62;

static void check_answer(struct bench *b, int c)
{
	const uint32_t *w = b->dut.rsp.m_storage;
	unsigned int lsb = c * mr_rsp_t_W;
	struct expected *e;
	struct answer got;
	bool any = false;

	got.last = FIELD_GET(w, lsb, mr_rsp_t, last);
	got.len = FIELD_GET(w, lsb, mr_rsp_t, len);
	got.addr = FIELD_GET(w, lsb, mr_rsp_t, addr);
	got.status = FIELD_GET(w, lsb, mr_rsp_t, status);
	if (b->expect[c].empty())
		fail_msg("cycle %lu: client %d has an answer that it did not ask for", b->now, c);
	e = &b->expect[c].front();
	for (int i = 0; i < STATES; i++) {
		const struct answer *want = &e->may[i][e->given];

		e->alive[i] =
			e->alive[i] && got.status == want->status && got.last == want->last &&
			(want->status != MR_OK || (got.addr == want->addr && got.len == want->len));
		any |= e->alive[i];
	}
	if (!any) {
		const struct answer *want = &e->may[0][e->given];

		fail_msg("cycle %lu client %d: status %u addr %lx len %u last %d, "
			 "should be status %u addr %lx len %u last %d",
			 b->now, c, got.status, got.addr, got.len, got.last, want->status,
			 want->addr, want->len, want->last);
	}
	e->given++;
	b->refused += got.status != MR_OK;
	b->unread += got.status == MR_DMA_ERR;
	if (got.last) {
		b->open[(uint64_t)c << 32 | e->key]--;
		b->expect[c].pop_front();
	}
	b->last_status = got.status;
	b->last_addr = got.addr;
	b->answered++;
}

static void put_table(uint32_t *w, unsigned int lsb, const struct table *pt)
{
	FIELD_SET(w, lsb, pt_t, page_shift, pt->page_shift);
	FIELD_SET(w, lsb, pt_t, levels, pt->levels);
	FIELD_SET(w, lsb, pt_t, addr, pt->addr);
}

static void put_request(uint32_t *w, unsigned int lsb, const struct request *rq)
{
	FIELD_SET(w, lsb, mr_req_t, len, rq->len);
	FIELD_SET(w, lsb, mr_req_t, va, rq->va);
	FIELD_SET(w, lsb, mr_req_t, aligned, rq->aligned);
	FIELD_SET(w, lsb, mr_req_t, whole, rq->whole);
	FIELD_SET(w, lsb, mr_req_t, acc, rq->acc);
	FIELD_SET(w, lsb, mr_req_t, qpn, rq->qpn);
	FIELD_SET(w, lsb, mr_req_t, pd, rq->pd);
	FIELD_SET(w, lsb, mr_req_t, key, rq->key);
	put_table(w, FIELD_AT(lsb, mr_req_t, pt), &rq->pt);
	FIELD_SET(w, lsb, mr_req_t, ring, rq->ring);
}

static void put_op(uint32_t *w, unsigned int lsb, const struct op *op)
{
	put_table(w, FIELD_AT(lsb, mr_op_t, pt), &op->pt);
	FIELD_SET(w, lsb, mr_op_t, len, op->len);
	FIELD_SET(w, lsb, mr_op_t, va, op->va);
	FIELD_SET(w, lsb, mr_op_t, zero_based, op->zero_based);
	FIELD_SET(w, lsb, mr_op_t, all, op->all);
	FIELD_SET(w, lsb, mr_op_t, acc, op->acc);
	FIELD_SET(w, lsb, mr_op_t, qpn, op->qpn);
	FIELD_SET(w, lsb, mr_op_t, pd, op->pd);
	FIELD_SET(w, lsb, mr_op_t, lkey, op->lkey);
	FIELD_SET(w, lsb, mr_op_t, key, op->key);
	FIELD_SET(w, lsb, mr_op_t, kind, op->kind);
	FIELD_SET(w, lsb, mr_op_t, op, op->op);
}

// ---- model: contexts ---------------------------------------------------------------------------

// QP_END: the newest of the windows that are bound to the QP is unbound.
static unsigned int end_of_qp(struct region *r, unsigned int qpn)
{
	struct region *newest = NULL;

	for (struct region *w = r; w < r + REGIONS; w++)
		if (w->valid && w->usable && w->kind == KIND_WINDOW && w->qpn == qpn &&
		    (!newest || w->age > newest->age))
			newest = w;
	if (!newest)
		return MRO_OK;
	newest->usable = false;
	r[newest->parent].bound--;
	return MRO_BUSY;
}

static bool is_window(unsigned int kind)
{
	return kind == KIND_WINDOW || kind == KIND_WINDOW_1;
}

// BIND of a type 1 window that is bound first ends that binding, whatever comes of the new one.
static bool end_of_binding(struct region *r, const struct op *op)
{
	struct region *own = &r[(op->key >> 8) % REGIONS];

	if (op->op != BIND || op->key >> 8 >= REGIONS || !own->valid || !own->usable ||
	    own->kind != KIND_WINDOW_1 || own->pd != op->pd)
		return false;
	own->usable = false;
	r[own->parent].bound--;
	return true;
}

// The rules of mr_op_e and mro_status_e; changes r only if all of them hold.
static unsigned int apply(struct region *r, const struct op *op)
{
	struct region *own = &r[(op->key >> 8) % REGIONS], *par = &r[(op->lkey >> 8) % REGIONS];
	bool change = op->acc & (REMOTE_WRITE | REMOTE_ATOMIC);
	unsigned int variant = op->key & 0xff;

	if (op->op == QP_END)
		return end_of_qp(r, op->qpn);
	if (op->key >> 8 >= REGIONS)
		return MRO_BAD_KEY;
	if (op->op == CREATE ? own->valid : !own->valid)
		return MRO_BAD_KEY;
	switch (op->op) {
	case CREATE:
		*own = {};
		own->valid = true;
		own->kind = op->kind;
		own->variant = variant;
		own->pd = op->pd;
		if (op->kind != KIND_REGION)
			return MRO_OK;
		own->acc = op->acc;
		own->all = op->all;
		break;
	case REG:
		if (own->kind != KIND_FAST || own->usable)
			return MRO_BAD_KEY;
		if (own->pd != op->pd)
			return MRO_BAD_PD;
		if (op->pt.page_shift < 12 || op->pt.page_shift > 31 || op->pt.levels > 2 ||
		    (op->len && op->va + (op->len - 1) < op->va))
			return MRO_BAD_RANGE;
		if (change && !(op->acc & LOCAL_WRITE))
			return MRO_BAD_ACCESS;
		own->acc = op->acc;
		break;
	case INV_LOCAL:
	case INV_REMOTE:
		if (!own->usable || own->variant != variant || own->kind == KIND_REGION ||
		    own->kind == KIND_WINDOW_1)
			return MRO_BAD_KEY;
		if (own->pd != op->pd || (own->kind == KIND_WINDOW && own->qpn != op->qpn))
			return MRO_BAD_PD;
		if (op->op == INV_REMOTE && own->kind == KIND_FAST && !(own->acc & REMOTE))
			return MRO_BAD_ACCESS;
		if (own->bound)
			return MRO_BUSY;
		own->usable = false;
		if (own->kind == KIND_WINDOW)
			r[own->parent].bound--;
		return MRO_OK;
	case DESTROY:
		if (own->bound)
			return MRO_BUSY;
		if (is_window(own->kind) && own->usable)
			r[own->parent].bound--;
		*own = {};
		return MRO_OK;
	default: // BIND
		if (!is_window(own->kind))
			return MRO_BAD_KEY;
		if (own->kind == KIND_WINDOW_1 && (own->usable || !op->len))
			return own->pd == op->pd ? MRO_OK : MRO_BAD_PD;
		if (own->usable || op->lkey >> 8 >= REGIONS || !par->valid || !par->usable ||
		    is_window(par->kind) || par->all || par->variant != (op->lkey & 0xff))
			return MRO_BAD_KEY;
		if (own->pd != op->pd || par->pd != op->pd)
			return MRO_BAD_PD;
		if (!op->len || op->va < par->va ||
		    (unsigned __int128)op->va + op->len > (unsigned __int128)par->va + par->len)
			return MRO_BAD_RANGE;
		if (!(par->acc & MW_BIND) || (change && !(par->acc & LOCAL_WRITE)))
			return MRO_BAD_ACCESS;
		par->bound++;
		own->age = 0;
		for (const struct region *w = r; w < r + REGIONS; w++)
			own->age = w->age >= own->age ? w->age + 1 : own->age;
		own->acc = op->acc & REMOTE;
		own->qpn = op->qpn;
		own->parent = par - r;
		own->variant = variant;
		own->usable = true;
		own->va = op->zero_based ? 0 : op->va;
		own->len = op->len;
		own->first = par->first + (op->va - par->va);
		own->pt = par->pt;
		return MRO_OK;
	}
	own->usable = true;
	own->variant = variant;
	own->va = op->zero_based ? 0 : op->va;
	own->first = op->va & ((1ull << op->pt.page_shift) - 1);
	own->len = op->len;
	own->pt = op->pt;
	return MRO_OK;
}

static void predict(struct bench *b, const struct region *regions, const struct request *rq,
		    std::vector<struct answer> *out);

static void drive_reads(struct bench *b)
{
	uint32_t *w = b->dut.rd_rsp.m_storage;

	b->dut.rd_rsp_valid = 0;
	if (b->reads.empty() || b->reads.front().due > b->now)
		return;
	struct read rd = b->reads.front();

	b->reads.pop_front();
	b->dut.rd_rsp_valid = 1u << rd.port;
	FIELD_SET(w, 0, dma_rd_rsp_t, err, rd.addr >= bad_memory);
	FIELD_SET(w, 0, dma_rd_rsp_t, last, 1);
	for (int i = 0; i < 8; i++)
		bits_set(w, FIELD_AT(64 * i, dma_rd_rsp_t, data), 64, rd.word[i]);
}

static void drive_ops(struct bench *b)
{
	Vurdma_mr *d = &b->dut;

	d->mro_valid = 0;
	for (int c = 0; c < OP_CLIENTS && !d->rst; c++) {
		if (b->ops[c].empty() || c == b->op_client)
			continue;
		d->mro_valid |= 1u << c;
		put_op(d->mro.m_storage, c * mr_op_t_W, &b->ops[c].front());
	}
}

static void check_ops(struct bench *b)
{
	Vurdma_mr *d = &b->dut;
	unsigned int took = d->mro_valid & d->mro_ready;

	if (d->mro_rsp_valid) {
		if (b->op_client < 0 || d->mro_rsp_valid != 1u << b->op_client)
			fail_msg("cycle %lu: answer of an operation to mask %x", b->now,
				 d->mro_rsp_valid);
		if (d->mro_rsp != b->op_status)
			fail_msg("cycle %lu: operation %u of key %x: status %u, should be %u",
				 b->now, b->ops[b->op_client].front().op,
				 b->ops[b->op_client].front().key, d->mro_rsp, b->op_status);
		if (b->now - b->op_taken > b->op_longest)
			b->op_longest = b->now - b->op_taken;
		memcpy(b->region, b->after, sizeof(b->region));
		b->op_refused += b->op_status != MRO_OK && b->op_status != MRO_ENDED &&
				 b->ops[b->op_client].front().op != QP_END;
		b->ops[b->op_client].pop_front();
		b->op_client = -1;
		b->op_done++;
	}
	for (int c = 0; c < OP_CLIENTS; c++) {
		if (!(took >> c & 1))
			continue;
		assert_int_equal(b->op_client, -1);
		b->op_client = c;
		b->op_taken = b->now;
		memcpy(b->between, b->region, sizeof(b->region));
		b->ended = end_of_binding(b->between, &b->ops[c].front());
		memcpy(b->after, b->between, sizeof(b->region));
		b->op_status = apply(b->after, &b->ops[c].front());
		if (b->op_status != MRO_OK && b->ops[c].front().op != QP_END)
			assert_memory_equal(b->after, b->between, sizeof(b->region));
		if (b->op_status == MRO_OK && b->ended)
			b->op_status = MRO_ENDED;
	}
}

static void expect_answer(struct bench *b, int c, const struct request *rq)
{
	bool busy = b->op_client >= 0;
	struct expected e = { rq->ring ? 0 : rq->key, {}, { true, busy, busy && b->ended }, 0 };

	b->open[(uint64_t)c << 32 | e.key]++;

	predict(b, b->region, rq, &e.may[0]);
	if (e.alive[1])
		predict(b, b->after, rq, &e.may[1]);
	if (e.alive[2])
		predict(b, b->between, rq, &e.may[2]);
	// past the end of the shorter one
	for (int i = 0; i < STATES; i++)
		e.may[i].resize(2, { ~0u, 0, 0, false });
	b->expect[c].push_back(e);
}

// A page of a request. Its answer is given out later; the one of a second page, behind a first that
// failed, never.
static void check_xlat(struct bench *b)
{
	uint64_t x = b->dut.trace_xlat, client = FIELD_OF(x, tr_xlat_t, client);

	if (!b->dut.trace_xlat_valid)
		return;
	if (b->open[client << 32 | FIELD_OF(x, tr_xlat_t, key)] <= 0 && !b->unread)
		fail_msg("cycle %lu: client %lu: key %lx that nobody asked for", b->now, client,
			 FIELD_OF(x, tr_xlat_t, key));
	b->told++;
	b->told_refused += FIELD_OF(x, tr_xlat_t, refused);
	b->told_hits[0] += FIELD_OF(x, tr_xlat_t, pte_hit);
	b->told_hits[1] += FIELD_OF(x, tr_xlat_t, dir_hit);
	b->told_misses[0] += FIELD_OF(x, tr_xlat_t, pte_miss);
	b->told_misses[1] += FIELD_OF(x, tr_xlat_t, dir_miss);
	// a table is found in the directory first
	assert_false(FIELD_OF(x, tr_xlat_t, pte_hit) && FIELD_OF(x, tr_xlat_t, pte_miss));
	assert_false(FIELD_OF(x, tr_xlat_t, dir_hit) && FIELD_OF(x, tr_xlat_t, dir_miss));
	if (!FIELD_OF(x, tr_xlat_t, refused) &&
	    (FIELD_OF(x, tr_xlat_t, dir_hit) || FIELD_OF(x, tr_xlat_t, dir_miss)))
		assert_true(FIELD_OF(x, tr_xlat_t, pte_hit) || FIELD_OF(x, tr_xlat_t, pte_miss));
}

static void cycle(struct bench *b)
{
	Vurdma_mr *d = &b->dut;
	unsigned int ready = 0;

	d->req_valid = 0;
	for (int c = 0; c < CLIENTS; c++) {
		if (!d->rst && !b->todo[c].empty()) {
			d->req_valid |= 1u << c;
			put_request(d->req.m_storage, c * mr_req_t_W, &b->todo[c].front());
		}
		if (!b->refuse[c] && (b->latency == 0 || rnd(b, 8)))
			ready |= 1u << c;
	}
	d->rsp_ready = ready;
	d->rd_req_ready = b->no_tables ? 2 : b->latency ? rnd(b, 4) : 3;
	d->flush_req = b->flush;
	drive_reads(b);
	drive_ops(b);
	bench_settle(*d);

	check_ops(b);
	check_xlat(b);
	for (unsigned int i = 0; i < URDMA_CNT_N; i++)
		b->counted[i] += d->cnt >> i & 1;
	for (int c = 0; c < CLIENTS; c++) {
		if ((d->req_valid & d->req_ready) >> c & 1) {
			expect_answer(b, c, &b->todo[c].front());
			b->todo[c].pop_front();
			b->taken++;
		}
		if ((d->rsp_valid & d->rsp_ready) >> c & 1)
			check_answer(b, c);
	}
	for (unsigned int p = 0; p < 2; p++) {
		if (!((d->rd_req_valid & d->rd_req_ready) >> p & 1))
			continue;
		struct read rd = { p,
				   FIELD_GET(d->rd_req.m_storage, p * dma_rd_req_t_W, dma_rd_req_t,
					     addr),
				   0,
				   {} };

		assert_int_equal(
			FIELD_GET(d->rd_req.m_storage, p * dma_rd_req_t_W, dma_rd_req_t, len), 64);
		assert_int_equal(rd.addr % 64, 0);
		rd.due = b->now + b->delay + (b->latency ? rnd(b, b->latency) : 0);
		if (!b->reads.empty() && rd.due < b->reads.back().due)
			rd.due = b->reads.back().due;
		for (int i = 0; i < 8; i++)
			rd.word[i] = rd.addr >= bad_memory ? 0 : b->mem[rd.addr + 8 * i];
		b->reads.push_back(rd);
		b->fills++;
	}
	bench_edge(*d);
	b->now++;
}

static void start(struct bench *b, uint64_t seed)
{
	print_message("seed %lu\n", seed);
	b->seed = test_seed(seed);
	b->now = b->taken = b->answered = b->fills = 0;
	b->told = b->told_refused = b->refused = b->unread = 0;
	memset(b->told_hits, 0, sizeof(b->told_hits));
	memset(b->told_misses, 0, sizeof(b->told_misses));
	memset(b->counted, 0, sizeof(b->counted));
	b->open.clear();
	b->next_page = 0x100000000ull;
	b->flush = false;
	b->delay = 100;
	b->latency = 200;
	b->no_tables = false;
	for (int c = 0; c < CLIENTS; c++)
		b->refuse[c] = false;
	b->op_client = -1;
	b->op_done = b->op_longest = b->op_refused = 0;
	memset((void *)b->region, 0, sizeof(b->region));
	b->dut.rst = 1;
	for (int i = 0; i < 4; i++)
		cycle(b);
	b->dut.rst = 0;
	while (!b->dut.init_done)
		cycle(b);
}

// The address of a page of 2^shift bytes, anywhere below bad_memory.
static uint64_t rnd_page(struct bench *b, unsigned int shift)
{
	return rnd(b, 1ull << (62 - shift)) << shift;
}

// Pages at random places, and the tables that list them.
static struct table make_table(struct bench *b, uint64_t pages, unsigned int page_shift,
			       unsigned int levels, bool bad)
{
	struct table pt = { 0, levels, page_shift };
	uint64_t base = b->next_page | rnd(b, 1ull << 22) << 40;

	b->next_page += (pages * 8 + 0x10000) & ~0xfffull;
	if (levels == 0) {
		pt.addr = rnd_page(b, page_shift);
		return pt;
	}
	if (levels == 1) {
		pt.addr = bad ? bad_memory + (rnd(b, 1000) << 12) : base + 64 * rnd(b, 64);
		for (uint64_t i = 0; i < pages; i++)
			b->mem[pt.addr + 8 * i] = rnd_page(b, page_shift);
		return pt;
	}
	// the directory cannot be read, or the tables that it lists
	bool bad_directory = bad && rnd(b, 2);

	pt.addr = base + (bad_directory ? bad_memory : 0);
	b->next_page += 0x100000;
	for (uint64_t i = 0; i < pages; i++) {
		uint64_t leaf = base + 0x10000 + (i / 512) * 0x3000;

		if (bad && !bad_directory)
			leaf += bad_memory;
		b->mem[pt.addr + 8 * (i / 512)] = leaf;
		b->mem[leaf + 8 * (i % 512)] = rnd_page(b, page_shift);
	}
	return pt;
}

// An operation by client c, to its end; the status.
static unsigned int do_op(struct bench *b, int c, const struct op *op)
{
	uint64_t done = b->op_done, limit = b->now + 1000;

	b->ops[c].push_back(*op);
	while (b->op_done == done) {
		cycle(b);
		if (b->now > limit)
			fail_msg("operation %u is not answered", op->op);
	}
	return b->op_status;
}

// A region with the contents given, in the place of what was there.
static void write_region(struct bench *b, unsigned int idx, const struct region *r)
{
	struct op op = {};

	op.key = idx << 8 | r->variant;
	if (b->region[idx].valid) {
		op.op = DESTROY;
		assert_int_equal(do_op(b, 0, &op), MRO_OK);
	}
	if (!r->valid)
		return;
	op.op = CREATE;
	op.pd = r->pd;
	op.acc = r->acc;
	op.all = r->all;
	op.zero_based = r->zero_based;
	op.va = r->va;
	op.len = r->len;
	op.pt = r->pt;
	assert_int_equal(do_op(b, 0, &op), MRO_OK);
}

static void make_region(struct bench *b, unsigned int idx)
{
	struct region region = {}, *r = &region;
	unsigned int shift = rnd(b, 3) ? 12 : 12 + rnd(b, 10);
	unsigned int levels = rnd(b, 3);
	uint64_t pages = 1 + rnd(b, levels == 2 ? 2000 : 40);

	r->valid = rnd(b, 16) != 0;
	r->variant = rnd(b, 256);
	r->pd = rnd(b, 3);
	r->acc = rnd(b, 2) ? ALL_RIGHTS : rnd(b, ALL_RIGHTS + 1);
	r->all = rnd(b, 16) == 0;
	r->zero_based = !r->all && rnd(b, 2);
	r->va = (rnd(b, 1ull << 30) << 12) + rnd(b, 1ull << shift);
	r->len = (pages << shift) - (r->va & ((1ull << shift) - 1));
	if (r->len > 1)
		r->len -= rnd(b, r->len < 4096 ? r->len : 4096);
	r->pt = make_table(b, pages, shift, levels, rnd(b, 16) == 0);
	write_region(b, idx, r);
}

static bool page_address(struct bench *b, const struct table *pt, uint64_t page, uint64_t *addr)
{
	uint64_t leaf = pt->addr;

	if (pt->levels == 2) {
		if (pt->addr >= bad_memory)
			return false;
		leaf = b->mem[pt->addr + 8 * (page / 512)];
		page %= 512;
	}
	if (leaf >= bad_memory)
		return false;
	*addr = b->mem[leaf + 8 * page];
	return true;
}

// Where in what its table describes the request begins.
static uint64_t place(const struct region *r, const struct request *rq)
{
	if (rq->ring || r->all)
		return rq->va;
	return r->first + (rq->whole ? 0 : rq->va - r->va);
}

static unsigned int check(const struct region *r, const struct request *rq)
{
	if (rq->key >> 22 || !r->valid || !r->usable || r->variant != (rq->key & 0xff))
		return MR_BAD_KEY;
	if (is_window(r->kind) && !(rq->acc & REMOTE))
		return MR_BAD_KEY;
	if (r->pd != rq->pd || (r->kind == KIND_WINDOW && r->qpn != rq->qpn))
		return MR_BAD_PD;
	if (rq->whole ? r->all || r->len < rq->len
		      : !r->all && (rq->va < r->va || rq->va - r->va > r->len ||
				    r->len - (rq->va - r->va) < rq->len))
		return MR_BAD_RANGE;
	if (rq->aligned && place(r, rq) % 8)
		return MR_BAD_RANGE;
	if (rq->acc & ~r->acc)
		return MR_BAD_ACCESS;
	return MR_OK;
}

static void predict(struct bench *b, const struct region *regions, const struct request *rq,
		    std::vector<struct answer> *out)
{
	const struct region *r = &regions[(rq->key >> 8) % REGIONS];
	const struct table *pt = rq->ring ? &rq->pt : &r->pt;
	struct answer a = { MR_OK, 0, rq->len, true };
	uint64_t mask, at = place(r, rq);
	unsigned int left = rq->len;

	if (!rq->ring)
		a.status = check(r, rq);
	if (a.status != MR_OK) {
		out->push_back(a);
		return;
	}
	mask = (1ull << pt->page_shift) - 1;
	if (!rq->ring && r->all) {
		a.addr = at;
		out->push_back(a);
		return;
	}
	if (pt->levels == 0) {
		a.addr = pt->addr + at;
		out->push_back(a);
		return;
	}
	while (left) {
		uint64_t room = mask + 1 - (at & mask), page;

		a.len = left < room ? left : room;
		if (!page_address(b, pt, at >> pt->page_shift, &page)) {
			a.status = MR_DMA_ERR;
			a.last = true;
			out->push_back(a);
			return;
		}
		a.addr = page + (at & mask);
		left -= a.len;
		at += a.len;
		a.last = left == 0;
		out->push_back(a);
	}
}

static struct request random_request(struct bench *b)
{
	unsigned int idx = rnd(b, REGIONS);
	const struct region *r = &b->region[idx];
	uint64_t r_len = r->len ? r->len : 1; // one that does not exist is asked for all the same
	struct request rq = {};

	rq.len = 1 + rnd(b, rnd(b, 2) ? 64 : 4096);
	rq.pd = r->pd;
	rq.acc = rnd(b, ALL_RIGHTS + 1) & r->acc;
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
	if (rq.len > r_len)
		rq.len = r_len;
	rq.va = r->va + rnd(b, r_len - rq.len + 1);
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
		rq.acc = rnd(b, ALL_RIGHTS + 1);
		break;
	case 6:
		rq.va = rnd_next(&b->seed);
		break;
	case 7:
	case 8:
		rq.va = rnd_next(&b->seed);
		rq.whole = true;
		break;
	case 9:
	case 10:
		rq.aligned = true;
		rq.len = 8;
		rq.va = r->va + rnd(b, r_len);
		break;
	case 11: // aligned in memory
		rq.aligned = true;
		rq.len = 8;
		rq.va += -place(r, &rq) % 8;
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
		for (int c = 0; c < OP_CLIENTS; c++) {
			if (!b->ops[c].empty())
				idle = 0;
		}
		if (b->now > 50000000)
			fail_msg("no end: a request is stuck");
	}
	for (int c = 0; c < CLIENTS; c++)
		assert_int_equal(b->expect[c].size(), 0);
	assert_in_range(b->told - b->answered, 0, b->unread);
	assert_in_range(b->told_refused - b->refused, 0, b->told - b->answered);
	// who asks for an entry waits for it, and others may
	assert_true(b->told_misses[0] + b->told_misses[1] >= b->fills);
	assert_int_equal(b->counted[URDMA_CNT_PTE_HIT], b->told_hits[0]);
	assert_int_equal(b->counted[URDMA_CNT_PTE_MISS], b->told_misses[0]);
	assert_int_equal(b->counted[URDMA_CNT_DIR_HIT], b->told_hits[1]);
	assert_int_equal(b->counted[URDMA_CNT_DIR_MISS], b->told_misses[1]);
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
	struct region region = { true, 7,    1, ALL_RIGHTS, false, 0x10000, 0x20000, {},
				 0,    true, 0, 0,	    0,	   0,	    0,	     false };
	struct region *r = &region;

	(void)state;
	start(b, 2);
	r->pt = make_table(b, 32, 12, 1, false);
	write_region(b, 5, r);
	rq.key = 5 << 8 | 7;
	rq.pd = 1;
	rq.va = 0x12345;
	rq.len = 4000;
	for (int i = 0; i < 20; i++) {
		for (int n = 0; n < 2; n++) {
			b->todo[0].push_back(rq);
		}
		if (i % 3 == 0)
			drain(b);
		else
			for (int n = 0; n < 30; n++)
				cycle(b); // the fill is under way
		drain(b);
		for (int n = 0; n < 32; n++)
			b->mem[r->pt.addr + 8 * n] = rnd_page(b, 12);
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
	}
	for (int i = 0; i < 200000 && !(b->todo[0].empty() && b->todo[3].empty()); i++)
		cycle(b);
	assert_true(b->todo[0].empty() && b->todo[3].empty());
	assert_false(b->todo[2].empty());
	b->refuse[2] = false;
	drain(b);
	delete b;
}

// Region `idx` begins at 0, has this table, and gives every right to the key idx << 8 | 1 and PD 1.
static void open_region(struct bench *b, unsigned int idx, uint64_t pages, const struct table *pt)
{
	struct region region = { true, 1,    1, ALL_RIGHTS, false, 0, pages << 12, *pt,
				 0,    true, 0, 0,	    0,	   0, 0,	   false };

	write_region(b, idx, &region);
}

// A table of `pages` pages that nobody has read.
static void make_cold(struct bench *b, unsigned int idx, uint64_t pages, unsigned int levels)
{
	struct table pt = make_table(b, pages, 12, levels, false);

	open_region(b, idx, pages, &pt);
}

static void push_page(struct bench *b, int c, unsigned int idx, uint64_t page)
{
	struct request rq = {};

	rq.key = idx << 8 | 1;
	rq.pd = 1;
	rq.va = page << 12;
	rq.len = 64;
	b->todo[c].push_back(rq);
}

// Clients whose tables are cached do not wait for one whose tables are not, whichever cache misses.
// The client that misses still gets its own answers in order (check_answer). The tables are where
// their lines have no place of the cache in common.
static void test_overtake(void **state)
{
	enum { ROUNDS = 40 };
	const uint64_t base = 1ull << 36, dir = 2ull << 36;
	struct bench *b = new struct bench;
	unsigned int longest = 0, asked = 0;

	(void)state;
	start(b, 10);
	b->latency = 0;
	for (unsigned int idx = 0; idx < 3; idx++) {
		// lines 0 to 7; from 64 on; a directory
		struct table pt = { idx == 0   ? base
				    : idx == 1 ? base + 4096
					       : dir,
				    idx == 2 ? 2u : 1u, 12 };

		open_region(b, idx, 1 << 20, &pt);
	}
	for (unsigned int page = 0; page < 64; page++)
		b->mem[base + 8 * page] = rnd_page(b, 12);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t leaf = base + (9 << 12) + ((uint64_t)round << 16);

		b->mem[base + 4096 + 64 * round] = rnd_page(b, 12);
		b->mem[dir + 64 * round] = leaf;
		b->mem[leaf] = rnd_page(b, 12);
	}
	for (unsigned int page = 0; page < 64; page++)
		push_page(b, 0, 0, page);
	drain(b);
	b->delay = 700;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		// a line of the table, or one of the directory and one of the table, and then hits
		push_page(b, 1, round % 2 + 1, round % 2 ? round << 12 : round << 3);
		for (unsigned int page = 0; page < 20; page++)
			push_page(b, 1, 0, page);
		for (unsigned int i = 0; i < 30; i++) {
			for (int c = 0; c < CLIENTS; c += 2) {
				push_page(b, c, 0, rnd(b, 64));
				asked++;
			}
			uint64_t from = b->now;

			while (!b->todo[0].empty() || !b->expect[0].empty() ||
			       !b->todo[2].empty() || !b->expect[2].empty() ||
			       !b->todo[4].empty() || !b->expect[4].empty())
				cycle(b);
			if (b->now - from > longest)
				longest = b->now - from;
		}
		assert_false(b->expect[1].empty());
		assert_true(b->expect[3].empty());
		drain(b);
	}
	print_message("%u requests of others while one waits: %u cycles at most\n", asked, longest);
	// 12, two others at the same time, and the requests of the one that waits
	assert_true(longest <= 18);
	delete b;
}

// Nearly every request misses one cache or both: nothing is lost or mixed up, and the reads
// overlap.
static void test_misses(void **state)
{
	enum { REQUESTS = 6000, PAGES = 1 << 20 };
	struct bench *b = new struct bench;
	uint64_t from, looked[2];

	(void)state;
	start(b, 11);
	b->latency = 0;
	make_cold(b, 0, PAGES, 2);
	make_cold(b, 1, PAGES, 1);
	for (unsigned int idx = 0; idx < 2; idx++) {
		from = b->now;
		b->fills = 0;
		for (unsigned int i = 0; i < 2; i++)
			looked[i] = b->told_hits[i] + b->told_misses[i];
		for (unsigned int i = 0; i < REQUESTS; i++)
			push_page(b, (int)(i % CLIENTS), idx, rnd(b, PAGES));
		drain(b);
		for (unsigned int i = 0; i < 2; i++)
			assert_int_equal(b->told_hits[i] + b->told_misses[i] - looked[i],
					 i && idx ? 0 : REQUESTS);
		print_message("%u levels: %u requests, %lu reads in %lu cycles\n", 2 - idx,
			      REQUESTS, b->fills, b->now - from);
		// the directory has four times as many lines as its cache
		assert_true(b->fills > (idx ? REQUESTS * 9 / 10 : REQUESTS * 16 / 10));
		assert_true(b->now - from < b->fills * 11 / 10);
	}
	// Requests that have their directory line cannot go on, while lines for others still come.
	b->no_tables = true;
	for (unsigned int i = 0; i < REQUESTS; i++) // a line of the directory has 4096 pages
		push_page(b, (int)(i % CLIENTS), 0, ((uint64_t)i * 4096 + rnd(b, 4096)) % PAGES);
	for (unsigned int i = 0; i < 2000; i++)
		cycle(b);
	b->no_tables = false;
	drain(b);
	// and with reads that arrive in bursts, and clients that take their time
	b->latency = 1000;
	for (unsigned int i = 0; i < REQUESTS; i++)
		push_page(b, (int)(i % CLIENTS), i % 2, i % 7 ? i * 8 % PAGES : rnd(b, PAGES));
	drain(b);
	delete b;
}

// The tables of many small regions, each in a page of its own and two lines long, have room in the
// cache at the same time: none takes the place of another one.
static void test_small_tables(void **state)
{
	enum { PAGES = 16 };
	struct bench *b = new struct bench;

	(void)state;
	start(b, 13);
	b->latency = 0;
	for (unsigned int idx = 0; idx < REGIONS; idx++) {
		struct table pt = { 0x40000000ull + 4096 * idx, 1, 12 };

		for (unsigned int i = 0; i < PAGES; i++)
			b->mem[pt.addr + 8 * i] = rnd_page(b, 12);
		open_region(b, idx, PAGES, &pt);
	}
	for (unsigned int round = 0; round < 2; round++) {
		b->fills = 0;
		for (unsigned int i = 0; i < 2 * REGIONS; i++)
			push_page(b, (int)(i % CLIENTS), i / 2, i % 2 * 8);
		drain(b);
		assert_int_equal(b->fills, round ? 0 : 2 * REGIONS);
	}
	delete b;
}

// While a read takes long, 64 requests of each client are taken and wait for it, of received
// payload 128. Each touches two pages, so there are more answers to wait for than the cache lets
// wait.
static void test_under_way(void **state)
{
	struct bench *b = new struct bench;
	uint64_t taken;

	(void)state;
	start(b, 12);
	b->latency = 0;
	b->delay = 3000;
	make_cold(b, 0, 8, 1);
	for (unsigned int round = 0; round < 2; round++) {
		bool split = round == 1;

		for (unsigned int i = 0; i < 200 * CLIENTS; i++) {
			push_page(b, (int)(i % CLIENTS), 0, i % 7);
			if (split) {
				b->todo[i % CLIENTS].back().va += 2048;
				b->todo[i % CLIENTS].back().len = 4096;
			}
		}
		taken = b->taken;
		for (unsigned int i = 0; i < 1500; i++)
			cycle(b);
		taken = b->taken - taken;
		print_message("%lu requests taken\n", taken);
		if (!split)
			assert_int_equal(taken, 128 + 64 * (CLIENTS - 1));
		drain(b);
		b->flush = true;
		cycle(b);
		b->flush = false;
	}
	delete b;
}

// With warm tables: one request a cycle (the same line is not looked up in successive cycles).
static void test_rate(void **state)
{
	struct bench *b = new struct bench;
	struct request rq = {};
	uint64_t from = 0, misses = 0, hits = 0;

	(void)state;
	start(b, 4);
	b->latency = 0;
	make_cold(b, 0, 64, 1);
	for (int round = 0; round < 2; round++) {
		from = b->now;
		misses = b->told_misses[0];
		hits = b->told_hits[0];
		for (int i = 0; i < 5000; i++) {
			rq.key = 1;
			rq.pd = 1;
			rq.va = (uint64_t)(i * 9 % 64) << 12;
			rq.len = 64;
			b->todo[i % CLIENTS].push_back(rq);
		}
		drain(b);
	}
	print_message("5000 requests in %lu cycles\n", b->now - from);
	assert_true(b->now - from < 5600);
	assert_int_equal(b->told_misses[0], misses); // all is in the cache
	assert_int_equal(b->told_hits[0], hits + 5000);

	// all of them in one line of the cache, that is not there
	b->flush = true;
	cycle(b);
	b->flush = false;
	from = b->now;
	b->fills = 0;
	for (int i = 0; i < 5000; i++) {
		rq.va = (uint64_t)(i % 3) << 12;
		b->todo[i % CLIENTS].push_back(rq);
	}
	drain(b);
	print_message("5000 requests of one line in %lu cycles\n", b->now - from);
	// also the second one, which comes before the first has written the tag
	assert_int_equal(b->fills, 1);
	assert_true(b->now - from < 5600);

	// one alone
	rq.va = 0;
	b->todo[0].push_back(rq);
	while (!b->todo[0].empty())
		cycle(b);
	from = b->now - 1; // the cycle in which it was taken
	while (!b->expect[0].empty())
		cycle(b);
	print_message("request to answer: %lu cycles\n", b->now - 1 - from);
	assert_true(b->now - 1 - from <= 13);

	// with three clients that ask for operations without a pause, each of which reads twice
	for (int i = 0; i < 2000; i++)
		b->ops[i % OP_CLIENTS].push_back(
			{ BIND, 0, 9 << 8, 9 << 8, 1, 1, 0, false, false, 0, 0, {} });
	from = b->now;
	for (int i = 0; i < 5000; i++) {
		rq.va = (uint64_t)(i * 9 % 64) << 12;
		b->todo[i % CLIENTS].push_back(rq);
	}
	for (bool left = true; left;) {
		cycle(b);
		left = false;
		for (int c = 0; c < CLIENTS; c++)
			left |= !b->expect[c].empty() || !b->todo[c].empty();
	}
	print_message("with %lu operations: 5000 requests in %lu cycles\n", b->op_done,
		      b->now - from);
	assert_true(b->now - from < 6700);
	delete b;
}

// ---- operations ---------------------------------------------------------------------------------

static struct request make_request(uint32_t key, unsigned int pd, unsigned int qpn,
				   unsigned int acc, uint64_t va, unsigned int len)
{
	struct request rq = {};

	rq.key = key;
	rq.pd = pd;
	rq.qpn = qpn;
	rq.acc = acc;
	rq.va = va;
	rq.len = len;
	return rq;
}

// One request to its end; its (last) status. What is answered is compared with the model.
static unsigned int ask(struct bench *b, const struct request *rq)
{
	b->todo[0].push_back(*rq);
	drain(b);
	return b->last_status;
}

// Everything that lookups can tell of the first n indexes: each right, the ends of the range, the
// owner, the key. Compared with the model, so with what was before if that did not change.
static void probe(struct bench *b, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		const struct region *r = &b->region[i];
		uint32_t key = i << 8 | r->variant;

		for (unsigned int acc = 0; acc <= ALL_RIGHTS; acc = acc ? acc << 1 : 1)
			b->todo[0].push_back(make_request(key, r->pd, r->qpn, acc, r->va, 1));
		b->todo[0].push_back(make_request(key, r->pd, r->qpn, FLUSH, 0, 1));
		b->todo[0].back().whole = true;
		b->todo[0].push_back(make_request(key, r->pd, r->qpn, REMOTE_ATOMIC, r->va, 8));
		b->todo[0].back().aligned = true;
		for (unsigned int acc = 1; acc < 5; acc += 3) {
			b->todo[1].push_back(make_request(key, r->pd, r->qpn, acc, r->va - 1, 1));
			b->todo[1].push_back(
				make_request(key, r->pd, r->qpn, acc, r->va + r->len - 1, 1));
			b->todo[1].push_back(
				make_request(key, r->pd, r->qpn, acc, r->va + r->len, 1));
			b->todo[2].push_back(make_request(key, r->pd ^ 1, r->qpn, acc, r->va, 1));
			b->todo[2].push_back(make_request(key, r->pd, r->qpn ^ 1, acc, r->va, 1));
			b->todo[3].push_back(make_request(key ^ 1, r->pd, r->qpn, acc, r->va, 1));
		}
	}
	drain(b);
}

static struct op make_op(unsigned int kind_of_op, uint32_t key)
{
	struct op op = {};

	op.op = kind_of_op;
	op.key = key;
	op.pd = 1;
	op.qpn = 9;
	op.pt.page_shift = 12;
	return op;
}

// The cast of the directed tests. All in protection domain 1 but where it says otherwise.
enum {
	R_FULL,	     // region, all rights
	R_NO_BIND,   // region without MW_BIND
	R_READ_ONLY, // region with MW_BIND, without local write
	R_ALL,	     // any address
	R_PD2,	     // region of another domain
	F_FREE,	     // fast region, invalid
	F_USED,	     // fast region, registered, all rights
	F_LOCAL,     // fast region, registered without remote rights
	F_WINDOWED,  // fast region with a window bound
	F_PD2,	     // fast region of another domain, invalid
	F_PD2_USED,  // the same, registered
	W_FREE,	     // window, unbound
	W_BOUND,     // window on R_FULL, QP 9
	W_ON_FAST,   // window on F_WINDOWED, QP 9
	W_PD2,	     // window of another domain, unbound
	W1_FREE,     // window of type 1, unbound
	W1_BOUND,    // the same, on R_FULL
	NOTHING,     // no such region
	CAST
};

enum { VA = 0x7f0000012345, LEN = 0x9000 };

static void make_cast(struct bench *b)
{
	static const unsigned int acc[CAST] = {
		ALL_RIGHTS,
		ALL_RIGHTS & ~MW_BIND,
		MW_BIND | REMOTE_READ,
		ALL_RIGHTS,
		ALL_RIGHTS,
		0,
		ALL_RIGHTS,
		LOCAL_WRITE,
		ALL_RIGHTS,
		0,
		ALL_RIGHTS,
	};

	for (unsigned int i = 0; i < NOTHING; i++) {
		struct op op = make_op(CREATE, i << 8 | (0x20 + i));

		op.kind = i < F_FREE	? KIND_REGION
			  : i < W_FREE	? KIND_FAST
			  : i < W1_FREE ? KIND_WINDOW
					: KIND_WINDOW_1;
		op.pd = i == R_PD2 || i == F_PD2 || i == F_PD2_USED || i == W_PD2 ? 2 : 1;
		op.acc = acc[i];
		op.all = i == R_ALL;
		op.va = VA;
		op.len = LEN;
		op.pt = make_table(b, 16, 12, 1, false);
		assert_int_equal(do_op(b, 0, &op), MRO_OK);
		if (i != F_USED && i != F_LOCAL && i != F_WINDOWED && i != F_PD2_USED)
			continue;
		op.op = REG;
		op.kind = 0;
		op.key ^= 0x80; // a new variant
		assert_int_equal(do_op(b, 1, &op), MRO_OK);
	}
	for (unsigned int i : { W_BOUND, W_ON_FAST, W1_BOUND }) {
		struct op op = make_op(BIND, i << 8 | (0xa0 + i));
		unsigned int par = i == W_ON_FAST ? F_WINDOWED : R_FULL;

		op.lkey = par << 8 | b->region[par].variant;
		op.va = VA + 0x1003;
		op.len = 0x3456;
		op.acc = REMOTE_READ | REMOTE_WRITE | LOCAL_WRITE;
		assert_int_equal(do_op(b, 1, &op), MRO_OK);
	}
}

static uint32_t key_of(struct bench *b, unsigned int idx)
{
	return idx << 8 | b->region[idx].variant;
}

static void refused(struct bench *b, const char *what, const struct op *op, unsigned int status)
{
	unsigned int got = do_op(b, rnd(b, OP_CLIENTS), op);

	if (got != status)
		fail_msg("%s: status %u, should be %u", what, got, status);
	probe(b, CAST);
}

// Each refusal of each operation: the status, and that lookups find everything as it was.
static void test_refusals(void **state)
{
	struct bench *b = new struct bench;
	struct op op, good;
	uint64_t done;

	(void)state;
	start(b, 5);
	b->latency = 0;
	make_cast(b);
	probe(b, CAST);
	done = b->op_done;

	for (unsigned int i = 0; i < NOTHING; i++) {
		op = make_op(CREATE, i << 8 | 1);
		op.kind = i % 4;
		refused(b, "CREATE of one that exists", &op, MRO_BAD_KEY);
	}
	op = make_op(CREATE, 1u << 22 | NOTHING << 8);
	refused(b, "CREATE out of range", &op, MRO_BAD_KEY);
	op = make_op(CREATE, NOTHING << 8);

	op = make_op(DESTROY, NOTHING << 8);
	refused(b, "DESTROY of nothing", &op, MRO_BAD_KEY);
	op = make_op(DESTROY, 1u << 22 | R_FULL << 8);
	refused(b, "DESTROY out of range", &op, MRO_BAD_KEY);
	op = make_op(DESTROY, R_FULL << 8);
	refused(b, "DESTROY of a region with a window", &op, MRO_BUSY);
	op = make_op(DESTROY, F_WINDOWED << 8);
	refused(b, "DESTROY of a fast region with a window", &op, MRO_BUSY);

	good = make_op(REG, F_FREE << 8 | 0x77);
	good.va = VA;
	good.len = LEN;
	good.acc = ALL_RIGHTS;
	good.pt = make_table(b, 16, 12, 1, false);
	for (unsigned int i = 0; i < CAST; i++) {
		if (i == F_FREE || i == F_PD2)
			continue;
		op = good;
		op.key = i << 8 | 0x77;
		refused(b, "REG of wrong kind or in use", &op, MRO_BAD_KEY);
	}
	op = good;
	op.key |= 1u << 31;
	refused(b, "REG out of range", &op, MRO_BAD_KEY);
	op.key = F_PD2 << 8 | 0x77;
	refused(b, "REG in another domain", &op, MRO_BAD_PD);
	for (unsigned int shift = 0; shift < 64; shift++) {
		if (shift >= 12 && shift <= 31)
			continue;
		op = good;
		op.pt.page_shift = shift;
		refused(b, "REG with a page size", &op, MRO_BAD_RANGE);
	}
	op = good;
	op.pt.levels = 3;
	refused(b, "REG with 3 levels", &op, MRO_BAD_RANGE);
	op = good;
	op.len = -good.va + 1;
	refused(b, "REG beyond 2**64", &op, MRO_BAD_RANGE);
	op = good;
	op.acc = REMOTE_WRITE;
	refused(b, "REG for remote write without local", &op, MRO_BAD_ACCESS);
	op.acc = REMOTE_ATOMIC | REMOTE_READ | MW_BIND;
	refused(b, "REG for atomics without local write", &op, MRO_BAD_ACCESS);

	for (unsigned int inv = INV_LOCAL; inv <= INV_REMOTE; inv++) {
		for (unsigned int i = 0; i < CAST; i++) {
			op = make_op(inv, key_of(b, i));
			op.pd = b->region[i].pd;
			if (i < F_FREE || !b->region[i].usable)
				refused(b, "INV of one not in use", &op, MRO_BAD_KEY);
			op.key ^= 0x40;
			refused(b, "INV with another variant", &op, MRO_BAD_KEY);
		}
		op = make_op(inv, 1u << 22 | key_of(b, F_USED));
		refused(b, "INV out of range", &op, MRO_BAD_KEY);
		op = make_op(inv, key_of(b, F_USED));
		op.pd = 2;
		refused(b, "INV from another domain", &op, MRO_BAD_PD);
		op = make_op(inv, key_of(b, F_PD2_USED));
		refused(b, "INV in another domain", &op, MRO_BAD_PD);
		op = make_op(inv, key_of(b, W_BOUND));
		op.pd = 2;
		refused(b, "INV of a window from another domain", &op, MRO_BAD_PD);
		op = make_op(inv, key_of(b, W_BOUND));
		op.qpn = 8;
		refused(b, "INV of a window through another QP", &op, MRO_BAD_PD);
		op = make_op(inv, key_of(b, F_WINDOWED));
		refused(b, "INV of a region with a window", &op, MRO_BUSY);
	}
	op = make_op(INV_REMOTE, key_of(b, F_LOCAL));
	refused(b, "INV_REMOTE without a remote right", &op, MRO_BAD_ACCESS);

	good = make_op(BIND, W_FREE << 8 | 0x55);
	good.lkey = key_of(b, R_FULL);
	good.va = VA + 5;
	good.len = 0x1000;
	good.acc = REMOTE;
	for (unsigned int i = 0; i < CAST; i++) {
		if (i == W_FREE || i == W_PD2 || i == W1_FREE || i == W1_BOUND)
			continue;
		op = good;
		op.key = i << 8 | 0x55;
		refused(b, "BIND of wrong kind or in use", &op, MRO_BAD_KEY);
	}
	op = good;
	op.key |= 1u << 22;
	refused(b, "BIND out of range", &op, MRO_BAD_KEY);
	for (unsigned int i = 0; i < CAST; i++) {
		op = good;
		op.lkey = key_of(b, i);
		op.pd = b->region[i].pd;
		if (i == R_ALL || i >= W_FREE || !b->region[i].usable)
			refused(b, "BIND to what is no usable region", &op, MRO_BAD_KEY);
		op.lkey ^= 0x40;
		refused(b, "BIND with another variant of the lkey", &op, MRO_BAD_KEY);
	}
	op = good;
	op.lkey |= 1u << 22;
	refused(b, "BIND to a region out of range", &op, MRO_BAD_KEY);
	op = good;
	op.pd = 2;
	refused(b, "BIND from another domain", &op, MRO_BAD_PD);
	op = good;
	op.key = W_PD2 << 8;
	refused(b, "BIND of a window of another domain", &op, MRO_BAD_PD);
	op = good;
	op.lkey = key_of(b, R_PD2);
	refused(b, "BIND to a region of another domain", &op, MRO_BAD_PD);
	op = good;
	op.va = VA - 1;
	refused(b, "BIND below the region", &op, MRO_BAD_RANGE);
	op = good;
	op.len = LEN - 4;
	refused(b, "BIND beyond the region", &op, MRO_BAD_RANGE);
	op.len = ~0ull;
	refused(b, "BIND that wraps around", &op, MRO_BAD_RANGE);
	op.len = 0;
	refused(b, "BIND of nothing", &op, MRO_BAD_RANGE);
	op.va = VA + LEN + 1;
	refused(b, "BIND of nothing beyond the region", &op, MRO_BAD_RANGE);
	op = good;
	op.lkey = key_of(b, R_NO_BIND);
	refused(b, "BIND without MW_BIND", &op, MRO_BAD_ACCESS);
	op = good;
	op.lkey = key_of(b, R_READ_ONLY);
	op.acc = REMOTE_WRITE;
	refused(b, "BIND for write without local write", &op, MRO_BAD_ACCESS);
	op.acc = REMOTE_ATOMIC;
	refused(b, "BIND for atomics without local write", &op, MRO_BAD_ACCESS);
	print_message("%lu operations refused\n", b->op_done - done);

	// the refused ones were as near to good ones as can be: one step back, and they are taken
	assert_int_equal(do_op(b, 0, &good), MRO_OK);
	op = make_op(BIND, W_PD2 << 8);
	op.pd = 2;
	op.lkey = key_of(b, R_PD2);
	op.va = VA;
	op.len = LEN;
	assert_int_equal(do_op(b, 0, &op), MRO_OK);
	probe(b, CAST);

	// and the counts of windows have not moved: each region goes when its last window has gone
	for (unsigned int i = 0; i < W_FREE; i++) {
		op = make_op(DESTROY, i << 8);
		do_op(b, 0, &op);
	}
	for (unsigned int i = W_FREE; i < NOTHING; i++) {
		op = make_op(DESTROY, i << 8);
		assert_int_equal(do_op(b, 0, &op), MRO_OK);
	}
	for (unsigned int i = 0; i < W_FREE; i++) {
		op = make_op(DESTROY, i << 8);
		do_op(b, 0, &op);
		assert_false(b->region[i].valid);
	}
	probe(b, CAST);
	delete b;
}

// What a window opens, to whom, and until when.
static void test_window(void **state)
{
	struct bench *b = new struct bench;
	struct request rq;
	struct op op;
	uint32_t key;

	(void)state;
	start(b, 6);
	make_cast(b);
	for (unsigned int i = W_BOUND; i <= W_ON_FAST; i++) {
		unsigned int par = i == W_BOUND ? R_FULL : F_WINDOWED;
		uint64_t va = VA + 0x1003;
		uint64_t len = 0x3456;

		key = key_of(b, i);
		// addresses are those of the region
		rq = make_request(key, 1, 9, REMOTE_WRITE, va, len > 4096 ? 4096 : len);
		assert_int_equal(ask(b, &rq), MR_OK);
		rq = make_request(key, 1, 9, REMOTE_READ, va + len - 100, 100);
		assert_int_equal(ask(b, &rq), MR_OK);
		rq.va++;
		assert_int_equal(ask(b, &rq), MR_BAD_RANGE);
		rq.va = va - 1;
		assert_int_equal(ask(b, &rq), MR_BAD_RANGE);
		rq.va = va;
		rq.acc = REMOTE_ATOMIC;
		assert_int_equal(ask(b, &rq), MR_BAD_ACCESS);
		// BIND asked for local write too: a window has no local rights
		rq.acc = REMOTE_WRITE | LOCAL_WRITE;
		assert_int_equal(ask(b, &rq), MR_BAD_ACCESS);
		rq.acc = LOCAL_WRITE;
		assert_int_equal(ask(b, &rq), MR_BAD_KEY);
		rq.acc = 0;
		assert_int_equal(ask(b, &rq), MR_BAD_KEY);
		rq.acc = REMOTE_WRITE;
		rq.qpn = 8;
		assert_int_equal(ask(b, &rq), MR_BAD_PD);
		rq.qpn = 9;
		rq.pd = 2;
		assert_int_equal(ask(b, &rq), MR_BAD_PD);
		rq.pd = 1;

		op = make_op(i == W_BOUND ? INV_LOCAL : INV_REMOTE, key);
		assert_int_equal(do_op(b, 1, &op), MRO_OK);
		assert_int_equal(ask(b, &rq), MR_BAD_KEY);
		assert_int_equal(do_op(b, 1, &op), MRO_BAD_KEY);
		assert_int_equal(b->region[par].bound, par == R_FULL); // by W1_BOUND
	}
	// nothing is bound to the fast region any more: it can be invalidated and registered again
	op = make_op(INV_REMOTE, key_of(b, F_WINDOWED));
	assert_int_equal(do_op(b, 2, &op), MRO_OK);
	op = make_op(BIND, W_ON_FAST << 8);
	op.lkey = key_of(b, F_WINDOWED);
	op.va = VA;
	op.len = 8;
	assert_int_equal(do_op(b, 1, &op), MRO_BAD_KEY);
	op = make_op(REG, F_WINDOWED << 8 | 3);
	op.va = ~0ull - 0xfff;
	op.len = 0x1000; // to the last byte of the address space
	op.acc = MW_BIND;
	op.pt = make_table(b, 1, 12, 1, false);
	assert_int_equal(do_op(b, 1, &op), MRO_OK);

	// a window of no bytes is not bound; one of a byte opens that one
	op = make_op(BIND, W_ON_FAST << 8 | 1);
	op.lkey = key_of(b, F_WINDOWED);
	op.va = ~0ull - 0xfff;
	op.acc = REMOTE_READ;
	assert_int_equal(do_op(b, 1, &op), MRO_BAD_RANGE);
	op.len = 1;
	assert_int_equal(do_op(b, 1, &op), MRO_OK);
	rq = make_request(W_ON_FAST << 8 | 1, 1, 9, REMOTE_READ, op.va + 1, 1);
	assert_int_equal(ask(b, &rq), MR_BAD_RANGE);
	op = make_op(INV_LOCAL, key_of(b, F_WINDOWED));
	assert_int_equal(do_op(b, 1, &op), MRO_BUSY);
	op = make_op(DESTROY, W_ON_FAST << 8);
	assert_int_equal(do_op(b, 0, &op), MRO_OK);
	op = make_op(INV_LOCAL, key_of(b, F_WINDOWED));
	assert_int_equal(do_op(b, 1, &op), MRO_OK);
	probe(b, CAST);
	delete b;
}

// The end of a QP: its windows are unbound, newest first, whichever were unbound before by other
// ways, and no other QP's; what they were bound to is free.
static void test_qp_end(void **state)
{
	enum { WINDOWS = 40, MR = 0, W0 = 1 };
	struct bench *b = new struct bench;
	struct op op;

	(void)state;
	start(b, 9);
	op = make_op(CREATE, MR << 8);
	op.acc = ALL_RIGHTS;
	op.va = VA;
	op.len = LEN;
	op.pt = make_table(b, 16, 12, 1, false);
	assert_int_equal(do_op(b, 0, &op), MRO_OK);
	for (unsigned int i = 0; i < WINDOWS; i++) {
		op = make_op(CREATE, (W0 + i) << 8);
		op.kind = KIND_WINDOW;
		assert_int_equal(do_op(b, 0, &op), MRO_OK);
	}
	for (unsigned int round = 0; round < 20; round++) {
		unsigned int left = 0;

		for (unsigned int i = 0; i < WINDOWS; i++) {
			op = make_op(BIND, (W0 + i) << 8 | round);
			op.lkey = key_of(b, MR);
			op.va = VA + i;
			op.len = 1;
			op.acc = REMOTE_READ;
			op.qpn = rnd(b, 3) ? 9 : 4095 - rnd(b, 2);
			assert_int_equal(do_op(b, 1, &op), MRO_OK);
		}
		// some go before, from the head, the middle and the end of the lists
		for (unsigned int i = 0; i < WINDOWS; i++) {
			struct region *w = &b->region[W0 + i];
			unsigned int how = rnd(b, 4);

			if (how == 0) {
				op = make_op(rnd(b, 2) ? INV_LOCAL : INV_REMOTE, key_of(b, W0 + i));
				op.qpn = w->qpn;
				assert_int_equal(do_op(b, 1, &op), MRO_OK);
			} else if (how == 1) {
				op = make_op(DESTROY, key_of(b, W0 + i));
				assert_int_equal(do_op(b, 0, &op), MRO_OK);
				op = make_op(CREATE, (W0 + i) << 8);
				op.kind = KIND_WINDOW;
				assert_int_equal(do_op(b, 0, &op), MRO_OK);
			} else {
				left += w->qpn == 9;
			}
		}
		op = make_op(QP_END, 0);
		for (unsigned int i = 0; i < left; i++)
			assert_int_equal(do_op(b, 0, &op), MRO_BUSY);
		assert_int_equal(do_op(b, 0, &op), MRO_OK);
		assert_int_equal(do_op(b, 0, &op), MRO_OK);
		for (unsigned int i = 0; i < WINDOWS; i++) {
			struct region *w = &b->region[W0 + i];
			struct request rq =
				make_request(key_of(b, W0 + i), 1, w->qpn, REMOTE_READ, VA + i, 1);

			assert_int_equal(ask(b, &rq), w->usable ? MR_OK : MR_BAD_KEY);
			assert_true(!w->usable || w->qpn != 9);
		}
		op.qpn = 4095;
		while (do_op(b, 0, &op) == MRO_BUSY)
			;
		op.qpn = 4094;
		while (do_op(b, 0, &op) == MRO_BUSY)
			;
		assert_int_equal(b->region[MR].bound, 0);
	}
	op = make_op(DESTROY, MR << 8);
	assert_int_equal(do_op(b, 0, &op), MRO_OK);
	delete b;
}

// A window of type 1: any QP of its domain may use it, and it is bound again while it is bound.
static void test_window_1(void **state)
{
	struct bench *b = new struct bench;
	const uint64_t va = VA + 0x1003;
	struct request rq;
	struct op op;

	(void)state;
	start(b, 7);
	make_cast(b);
	for (unsigned int qpn : { 9, 8, 0 }) {
		rq = make_request(key_of(b, W1_BOUND), 1, qpn, REMOTE_WRITE, va, 100);
		assert_int_equal(ask(b, &rq), MR_OK);
	}
	rq.acc = LOCAL_WRITE;
	assert_int_equal(ask(b, &rq), MR_BAD_KEY);
	rq.acc = REMOTE_ATOMIC;
	assert_int_equal(ask(b, &rq), MR_BAD_ACCESS);
	rq.acc = REMOTE_WRITE;
	rq.pd = 2;
	assert_int_equal(ask(b, &rq), MR_BAD_PD);
	rq.pd = 1;

	// The end of the QP that bound it is not its own, and nobody invalidates it.
	op = make_op(QP_END, 0);
	op.qpn = 9;
	while (do_op(b, 0, &op) == MRO_BUSY)
		;
	assert_int_equal(ask(b, &rq), MR_OK);
	for (unsigned int inv : { INV_LOCAL, INV_REMOTE }) {
		op = make_op(inv, key_of(b, W1_BOUND));
		refused(b, "INV of a type 1 window", &op, MRO_BAD_KEY);
	}
	op = make_op(DESTROY, R_FULL << 8);
	refused(b, "DESTROY of a region with a type 1 window", &op, MRO_BUSY);

	// bound anew, to another range and region
	op = make_op(BIND, W1_BOUND << 8 | 0x11);
	op.lkey = key_of(b, F_USED);
	op.va = VA;
	op.len = 16;
	op.acc = REMOTE_WRITE;
	op.pd = 2;
	refused(b, "BIND of a bound window from another domain", &op, MRO_BAD_PD);
	assert_int_equal(ask(b, &rq), MR_OK);
	op.pd = 1;
	assert_int_equal(do_op(b, 1, &op), MRO_ENDED);
	assert_int_equal(ask(b, &rq), MR_BAD_KEY);
	rq = make_request(key_of(b, W1_BOUND), 1, 3, REMOTE_WRITE, VA, 16);
	assert_int_equal(ask(b, &rq), MR_OK);
	assert_int_equal(b->region[R_FULL].bound, 0);
	assert_int_equal(b->region[F_USED].bound, 1);
	op.key ^= 0x30; // to the same region
	assert_int_equal(do_op(b, 1, &op), MRO_ENDED);
	assert_int_equal(b->region[F_USED].bound, 1);

	// to nothing: unbound, without a region
	op.len = 0;
	op.lkey = ~0u;
	assert_int_equal(do_op(b, 1, &op), MRO_ENDED);
	assert_int_equal(ask(b, &rq), MR_BAD_KEY);
	assert_int_equal(b->region[F_USED].bound, 0);
	assert_int_equal(do_op(b, 1, &op), MRO_OK);
	op.pd = 2;
	refused(b, "BIND of an unbound window to nothing, from another domain", &op, MRO_BAD_PD);

	// What is refused after the old binding has ended leaves the window unbound.
	op = make_op(BIND, W1_BOUND << 8 | 0x12);
	op.lkey = key_of(b, R_FULL);
	op.va = VA;
	op.len = 16;
	op.acc = REMOTE_READ;
	assert_int_equal(do_op(b, 1, &op), MRO_OK);
	op.key ^= 0x30;
	op.len = LEN + 1;
	assert_int_equal(do_op(b, 1, &op), MRO_BAD_RANGE);
	assert_int_equal(b->region[R_FULL].bound, 0);
	probe(b, CAST);
	op.len = 16;
	assert_int_equal(do_op(b, 1, &op), MRO_OK);
	op = make_op(DESTROY, W1_BOUND << 8);
	assert_int_equal(do_op(b, 0, &op), MRO_OK);
	op = make_op(DESTROY, R_FULL << 8);
	assert_int_equal(do_op(b, 0, &op), MRO_OK);
	probe(b, CAST);
	delete b;
}

// The status of one request, and the address of its first byte.
static unsigned int ask_at(struct bench *b, uint32_t key, unsigned int acc, uint64_t va,
			   uint64_t *addr)
{
	struct request rq = make_request(key, 1, 9, acc, va, 1);
	unsigned int status = ask(b, &rq);

	*addr = b->last_addr;
	return status;
}

// The same memory under a key that counts as the program does and under one that begins at 0, of
// every page size and number of levels, each begun anywhere in its first page.
static void test_zero_based(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 14);
	b->latency = 0;
	for (unsigned int round = 0; round < 300; round++) {
		unsigned int levels = round % 3, shift = 12 + round / 3 % 20;
		uint64_t page = 1ull << shift, in_page = rnd(b, page);
		uint64_t pages = levels == 0 ? 1 : levels == 1 ? 40 : 600;
		uint64_t len = (pages << shift) - in_page, addr, as_zero;
		struct table pt = make_table(b, pages, shift, levels, false);
		struct request rq;
		struct op op;

		if (len > 8)
			len -= rnd(b, len < 5000 ? len - 8 : 5000 - 8);
		for (unsigned int i = 0; i < 4; i++) {
			bool fast = i & 2;

			op = make_op(CREATE, i << 8);
			op.kind = fast ? KIND_FAST : KIND_REGION;
			op.acc = ALL_RIGHTS;
			// nobody looks at what is above a page
			op.va = in_page + (rnd(b, 1ull << 20) << shift);
			op.len = len;
			op.pt = pt;
			op.zero_based = i & 1;
			assert_int_equal(do_op(b, 0, &op), MRO_OK);
			if (fast) {
				op.op = REG;
				assert_int_equal(do_op(b, 1, &op), MRO_OK);
			}
			assert_true(!op.zero_based || b->region[i].va == 0);
		}
		for (unsigned int n = 0; n < 6; n++) {
			uint64_t at = n == 0 ? 0 : n == 1 ? len - 1 : rnd(b, len);

			for (unsigned int i = 0; i < 4; i += 2) {
				uint64_t plain = b->region[i].va + at;

				assert_int_equal(ask_at(b, i << 8, 0, plain, &addr), MR_OK);
				assert_int_equal(ask_at(b, (i + 1) << 8, 0, at, &as_zero), MR_OK);
				assert_int_equal(addr, as_zero);
			}
			if (n == 0 && levels == 0)
				assert_int_equal(addr, pt.addr + in_page);
			if (n == 0 && levels == 1)
				assert_int_equal(addr, b->mem[pt.addr] + in_page);
		}
		for (unsigned int i = 1; i < 4; i += 2) {
			assert_int_equal(ask_at(b, i << 8, 0, len, &addr), MR_BAD_RANGE);
			assert_int_equal(ask_at(b, i << 8, 0, ~0ull, &addr), MR_BAD_RANGE);
			assert_int_equal(ask_at(b, i << 8, 0, b->region[i - 1].va, &addr),
					 b->region[i - 1].va < len ? MR_OK : MR_BAD_RANGE);
			// the last bytes, from the page before if it is long enough
			rq = make_request(i << 8, 1, 9, REMOTE_READ,
					  len - (len < 4096 ? len : 4096), len < 4096 ? len : 4096);
			assert_int_equal(ask(b, &rq), MR_OK);
			rq.va++;
			assert_int_equal(ask(b, &rq), MR_BAD_RANGE);
			rq = make_request(i << 8, 1, 9, FLUSH, rnd_next(&b->seed), 1);
			rq.whole = true;
			assert_int_equal(ask(b, &rq), MR_OK);
			rq = make_request(i << 8, 1, 9, REMOTE_ATOMIC, 0, 8);
			rq.aligned = true;
			assert_int_equal(ask(b, &rq), in_page % 8 ? MR_BAD_RANGE : MR_OK);
			rq.va = -in_page % 8;
			assert_int_equal(ask(b, &rq), rq.va + 8 <= len ? MR_OK : MR_BAD_RANGE);
		}
		for (unsigned int i = 0; i < 4; i++) {
			op = make_op(DESTROY, i << 8);
			assert_int_equal(do_op(b, 0, &op), MRO_OK);
		}
		b->flush = true;
		cycle(b);
		b->flush = false;
	}
	delete b;
}

// Windows of both types on both kinds of region, each counting from 0 or as its region does: the
// bytes are those of the region, and no others.
static void test_zero_based_windows(void **state)
{
	enum { REGION, WINDOW = 8 };
	struct bench *b = new struct bench;

	(void)state;
	start(b, 15);
	b->latency = 0;
	for (unsigned int round = 0; round < 100; round++) {
		unsigned int shift = 12 + rnd(b, 5), levels = rnd(b, 3);
		uint64_t in_page = rnd(b, 1ull << shift), len = 0x8000 + rnd(b, 0x1000);
		struct table pt = make_table(b, 16, shift, levels, false);
		struct op op;

		for (unsigned int i = 0; i < 2; i++) {
			op = make_op(CREATE, (REGION + i) << 8);
			op.acc = ALL_RIGHTS;
			op.va = in_page + (rnd(b, 1ull << 20) << shift);
			op.len = len;
			op.pt = pt;
			op.zero_based = i;
			assert_int_equal(do_op(b, 0, &op), MRO_OK);
		}
		for (unsigned int i = 0; i < 8; i++) {
			struct region *par = &b->region[REGION + (i & 1)],
				      *w = &b->region[WINDOW + i];
			bool zero = i & 2, type_1 = i & 4;
			uint64_t off = rnd(b, 0x4000), size = 1 + rnd(b, 0x3000);
			uint64_t through, direct;
			struct request rq;

			op = make_op(CREATE, (WINDOW + i) << 8);
			op.kind = type_1 ? KIND_WINDOW_1 : KIND_WINDOW;
			// of no meaning yet
			op.zero_based = rnd(b, 2);
			assert_int_equal(do_op(b, 0, &op), MRO_OK);
			op = make_op(BIND, (WINDOW + i) << 8 | 1);
			op.lkey = (REGION + (i & 1)) << 8;
			op.acc = REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC | FLUSH;
			op.zero_based = zero;
			// its range is one of the region's addresses, whatever it counts itself
			op.va = par->va + len - 1;
			op.len = 2;
			assert_int_equal(do_op(b, 1, &op), MRO_BAD_RANGE);
			op.va = par->va - 1;
			assert_int_equal(do_op(b, 1, &op), MRO_BAD_RANGE);
			if (type_1) { // bound before, the other way
				op.va = par->va + 7;
				op.zero_based = !zero;
				assert_int_equal(do_op(b, 1, &op), MRO_OK);
			}
			op.zero_based = zero;
			op.va = par->va + off;
			op.len = size;
			assert_int_equal(do_op(b, 1, &op), type_1 ? MRO_ENDED : MRO_OK);
			for (unsigned int n = 0; n < 6; n++) {
				uint64_t at = n == 0 ? 0 : n == 1 ? size - 1 : rnd(b, size);
				uint64_t va = zero ? at : par->va + off + at;

				assert_int_equal(ask_at(b, op.key, REMOTE_READ, va, &through),
						 MR_OK);
				assert_int_equal(ask_at(b, op.lkey, 0, par->va + off + at, &direct),
						 MR_OK);
				assert_int_equal(through, direct);
			}
			assert_int_equal(w->va, zero ? 0 : par->va + off);
			assert_int_equal(ask_at(b, op.key, REMOTE_READ, w->va + size, &through),
					 MR_BAD_RANGE);
			assert_int_equal(ask_at(b, op.key, REMOTE_READ, w->va - 1, &through),
					 MR_BAD_RANGE);
			if (zero && off >= size)
				assert_int_equal(
					ask_at(b, op.key, REMOTE_READ, par->va + off, &through),
					MR_BAD_RANGE);
			rq = make_request(op.key, 1, 9, FLUSH, rnd_next(&b->seed), 1);
			rq.whole = true;
			assert_int_equal(ask(b, &rq), MR_OK);
			through = b->last_addr;
			assert_int_equal(ask_at(b, op.lkey, 0, par->va + off, &direct), MR_OK);
			assert_int_equal(through, direct);
			rq = make_request(op.key, 1, 9, REMOTE_ATOMIC, w->va, 8);
			rq.aligned = true;
			assert_int_equal(ask(b, &rq),
					 (in_page + off) % 8 || size < 8 ? MR_BAD_RANGE : MR_OK);
		}
		for (unsigned int i = 0; i < 8; i++) {
			op = make_op(DESTROY, (WINDOW + i) << 8);
			assert_int_equal(do_op(b, 0, &op), MRO_OK);
		}
		for (unsigned int i = 0; i < 2; i++) {
			op = make_op(DESTROY, (REGION + i) << 8);
			assert_int_equal(do_op(b, 0, &op), MRO_OK);
		}
		b->flush = true;
		cycle(b);
		b->flush = false;
	}
	delete b;
}

// REG of a table that lies where another one was, while lines of the old one are cached or on
// their way: a request taken after the answer must see the new table.
static void test_reg_table(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 7);
	for (unsigned int levels = 1; levels <= 2; levels++) {
		struct op fast = make_op(CREATE, (2 * levels) << 8), same, op;
		struct table pt = make_table(b, 600, 12, levels, false);
		uint32_t other = (2 * levels + 1) << 8;

		fast.kind = KIND_FAST;
		assert_int_equal(do_op(b, 0, &fast), MRO_OK);
		// a region that uses the same table all the time brings its lines into the caches
		same = make_op(CREATE, other);
		same.kind = KIND_FAST;
		assert_int_equal(do_op(b, 0, &same), MRO_OK);
		same = make_op(REG, other);
		same.acc = ALL_RIGHTS;
		same.va = VA;
		same.len = 600 << 12;
		same.pt = pt;
		assert_int_equal(do_op(b, 1, &same), MRO_OK);
		for (int i = 0; i < 300; i++) {
			uint32_t key = fast.key | (i & 0xff);
			unsigned int wait = rnd(b, 3) ? rnd(b, 400) : 2000;
			uint64_t page = rnd(b, 599), leaf = pt.addr + 8 * page;

			b->todo[3].push_back(make_request(other, 1, 0, 4, VA + (page << 12), 4096));
			while (!b->todo[3].empty())
				cycle(b);
			while (wait--)
				cycle(b); // the fill is not yet sent, or under way, or done
			while (!b->expect[3].empty() && rnd(b, 2))
				cycle(b);
			// only what has been sent may be old
			if (b->latency && rnd(b, 2))
				drain(b);
			else
				for (int n = 0; n < 60; n++)
					cycle(b);
			if (levels == 2) {
				uint64_t old = b->mem[pt.addr + 8 * (page / 512)];
				uint64_t moved = old ^ 0x40000000;

				for (int n = 0; n < 512; n++)
					b->mem[moved + 8 * n] = rnd_page(b, 12);
				if (!b->expect[3].empty())
					drain(b);
				b->mem[pt.addr + 8 * (page / 512)] = moved;
				leaf = moved + 8 * (page % 512);
			}
			b->mem[leaf] = rnd_page(b, 12);
			b->mem[leaf + 8] = rnd_page(b, 12);

			op = make_op(REG, key);
			op.acc = REMOTE_READ;
			op.va = VA;
			op.len = 600 << 12;
			op.pt = pt;
			assert_int_equal(do_op(b, 1, &op), MRO_OK);
			b->todo[1].push_back(make_request(key, 1, 0, 4, VA + (page << 12), 4096));
			b->todo[2].push_back(make_request(key, 1, 0, 0, VA + (page << 12), 9));
			if (rnd(b, 2))
				drain(b);
			while (!b->todo[1].empty() || !b->todo[2].empty())
				cycle(b);
			op = make_op(INV_LOCAL, key);
			assert_int_equal(do_op(b, 1, &op), MRO_OK);
			drain(b);
		}
	}
	delete b;
}

// REG invalidates what was read through regions that REG has made, and windows. Lines of other
// regions and of rings stay.
static void test_reg_keeps(void **state)
{
	struct bench *b = new struct bench;

	(void)state;
	start(b, 14);
	b->latency = 0;
	for (unsigned int levels = 1; levels <= 2; levels++) {
		uint32_t plain = (4 * levels) << 8, fast = plain + 0x100, next = plain + 0x200;
		struct table pt = make_table(b, 16, 12, levels, false);
		struct request ring = {};
		struct op op = make_op(CREATE, plain);
		uint64_t leaf;

		op.acc = ALL_RIGHTS;
		op.va = VA;
		op.len = 16 << 12;
		op.pt = pt;
		assert_int_equal(do_op(b, 0, &op), MRO_OK);
		for (uint32_t key = fast; key <= next; key += 0x100) {
			op = make_op(CREATE, key);
			op.kind = KIND_FAST;
			assert_int_equal(do_op(b, 0, &op), MRO_OK);
		}
		op = make_op(REG, fast);
		op.acc = REMOTE_READ;
		op.va = VA;
		op.len = 16 << 12;
		op.pt = make_table(b, 16, 12, levels, false);
		assert_int_equal(do_op(b, 1, &op), MRO_OK);
		ring.ring = true;
		ring.pt = make_table(b, 16, 12, levels, false);
		ring.va = 64;
		ring.len = 64;
		for (unsigned int round = 0; round < 4; round++) {
			b->fills = 0;
			b->todo[0].push_back(make_request(plain, 1, 0, REMOTE_READ, VA, 64));
			b->todo[1].push_back(ring);
			b->todo[2].push_back(make_request(fast, 1, 0, REMOTE_READ, VA, 64));
			drain(b);
			assert_int_equal(b->fills, round ? levels : 3 * levels);
			op = make_op(REG, next | round);
			op.acc = REMOTE_READ;
			op.va = VA;
			op.len = 16 << 12;
			op.pt = make_table(b, 16, 12, levels, false);
			assert_int_equal(do_op(b, 1, &op), MRO_OK);
			op = make_op(INV_LOCAL, next | round);
			assert_int_equal(do_op(b, 1, &op), MRO_OK);
		}
		// where the table of the region was: its lines are there, and are not used
		op = make_op(DESTROY, plain);
		assert_int_equal(do_op(b, 0, &op), MRO_OK);
		leaf = levels == 2 ? b->mem[pt.addr] : pt.addr;
		b->mem[leaf] ^= 1 << 12;
		op = make_op(REG, next | 9);
		op.acc = REMOTE_READ;
		op.va = VA;
		op.len = 16 << 12;
		op.pt = pt;
		assert_int_equal(do_op(b, 1, &op), MRO_OK);
		b->todo[2].push_back(make_request(next | 9, 1, 0, REMOTE_READ, VA, 64));
		drain(b);
	}
	delete b;
}

// Operations of three clients at random on a dozen indexes, with requests all the time, against
// the model.
static void test_random_ops(void **state)
{
	struct bench *b = new struct bench;
	enum { N = 12 };
	uint64_t count[OPS] = {}, done[OPS] = {};

	(void)state;
	start(b, 8);
	for (unsigned int i = 0; i < 200000; i++) {
		unsigned int c = rnd(b, OP_CLIENTS);

		if (b->ops[c].empty()) {
			struct region *r = &b->region[rnd(b, N)], *p = &b->region[rnd(b, N)];
			unsigned int what = rnd(b, 30) ? rnd(b, QP_END) : (unsigned int)QP_END;

			// more of those that may be done
			for (int n = 0; n < 6 && (what == CREATE ? r->valid
						  : what == BIND || what == REG
							  ? !r->valid || (r->usable &&
									  r->kind != KIND_WINDOW_1)
							  : !r->usable);
			     n++)
				r = &b->region[rnd(b, N)];
			for (int n = 0;
			     n < 4 && !(p->usable && !is_window(p->kind) && (p->acc & MW_BIND));
			     n++)
				p = &b->region[rnd(b, N)];
			if (what == REG && is_window(r->kind))
				what = BIND;
			struct op op = make_op(what, (r - b->region) << 8 | r->variant);

			if (op.op == DESTROY && rnd(b, 3))
				op.op = BIND;
			op.kind = rnd(b, 4);
			op.pd = rnd(b, 20) ? 1 : 2;
			op.qpn = rnd(b, 10) ? r->qpn : rnd(b, 4);
			op.acc = rnd(b, 3) ? ALL_RIGHTS : rnd(b, ALL_RIGHTS + 1);
			op.all = rnd(b, 8) == 0;
			op.zero_based = !op.all && rnd(b, 2);
			op.lkey = (p - b->region) << 8 | p->variant;
			if (op.op == CREATE || op.op == REG) {
				uint64_t pages = 1 + rnd(b, 40);

				op.va = VA + rnd(b, 0x100000);
				op.len = pages << 12;
				op.pt = make_table(b, pages + 1, 12, rnd(b, 3), false);
				if (rnd(b, 16) == 0)
					op.pt.page_shift = rnd(b, 64) | (op.op == CREATE ? 12 : 0);
				if (op.op == CREATE || op.pt.page_shift != 12)
					op.pt.page_shift = op.op == CREATE ? 12 : op.pt.page_shift;
			} else {
				op.va = p->va + rnd(b, p->len + 1);
				op.len = rnd(b, p->len + 1 - (op.va - p->va));
				op.len += rnd(b, 16) == 0 ? 0x30000 : 0;
				op.len *= rnd(b, 16) != 0;
				op.va -= rnd(b, 16) == 0 ? 0x100 : 0;
			}
			if (op.op == REG || op.op == BIND)
				op.key = (op.key & ~0xff) | rnd(b, 256);
			if (rnd(b, 20) == 0)
				op.key ^= 1u << rnd(b, 8);
			if (rnd(b, 40) == 0)
				op.lkey ^= 1u << rnd(b, 32);
			if (rnd(b, 100) == 0)
				op.key |= 1u << (22 + rnd(b, 10));
			count[op.op]++;
			b->ops[c].push_back(op);
		}
		c = rnd(b, CLIENTS);
		if (b->todo[c].size() < 3) {
			struct region *r = &b->region[rnd(b, N)];
			struct request rq;

			rq = make_request((r - b->region) << 8 | r->variant,
					  rnd(b, 16) ? r->pd : rnd(b, 4),
					  rnd(b, 16) ? r->qpn : rnd(b, 4), rnd(b, 8) & ~1, 0, 1);
			rq.va = r->va + rnd(b, r->len + 1);
			rq.len = 1 + rnd(b, 64);
			rq.aligned = rnd(b, 4) == 0;
			b->todo[c].push_back(rq);
		}
		int busy = b->op_client;
		uint64_t before = b->op_done, refusals = b->op_refused;
		unsigned int kind = busy < 0 ? 0 : b->ops[busy].front().op;

		cycle(b);
		if (b->op_done != before && b->op_refused == refusals)
			done[kind]++;
	}
	drain(b);
	print_message("%lu operations, longest %lu cycles, %lu requests; done of asked: create "
		      "%lu/%lu destroy %lu/%lu reg %lu/%lu inv %lu/%lu remote %lu/%lu bind %lu/%lu "
		      "end of a QP %lu/%lu\n",
		      b->op_done, b->op_longest, b->taken, done[0], count[0], done[1], count[1],
		      done[2], count[2], done[3], count[3], done[4], count[4], done[5], count[5],
		      done[6], count[6]);
	for (int i = 0; i < OPS; i++)
		assert_true(done[i] > 300);
	assert_true(b->op_longest <= 21);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_independent),
		cmocka_unit_test(test_overtake),
		cmocka_unit_test(test_misses),
		cmocka_unit_test(test_under_way),
		cmocka_unit_test(test_small_tables),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_reg_table),
		cmocka_unit_test(test_reg_keeps),
		cmocka_unit_test(test_random_ops),
		cmocka_unit_test(test_qp_end),
		cmocka_unit_test(test_window_1),
		cmocka_unit_test(test_zero_based),
		cmocka_unit_test(test_zero_based_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
