// SPDX-License-Identifier: Apache-2.0
#include "eth_rx_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seed.h"
#include "rtl/bits.h"
#include "urdma_hw.h"
#include "urdma_trace_pkg.h"

#define RING0	 0x000000a500000000ull
#define RING_GAP 0x100000ull
#define BUF0	 0x00007f0000000000ull
#define BUF_GAP	 8192ull

#define fail_at(b, ...)                                                      \
	do {                                                                 \
		print_error("cycle %llu: ", (unsigned long long)(b)->cycle); \
		fail_msg(__VA_ARGS__);                                       \
	} while (0)

static unsigned int below(struct bench *b, unsigned int n)
{
	return (unsigned int)rnd_below(&b->rnd, n);
}

static bool chance(struct bench *b, unsigned int percent)
{
	return percent >= 100 || (percent && below(b, 100) < percent);
}

static void fill(struct bench *b, void *p, unsigned int n)
{
	uint8_t *out = p;
	uint64_t v = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (i % 8 == 0)
			v = rnd_next(&b->rnd);
		out[i] = (uint8_t)(v >> (i % 8 * 8));
	}
}

struct bench *bench_new(uint64_t seed)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->m = eth_model_new();
	b->mem = calloc(ETH_QUEUES * SLOTS, BUF_GAP);
	assert_non_null(b->mem);
	b->rnd = seed * 0x9e3779b97f4a7c15ull + 1;
	b->must = -1;
	bench_fast(b);
	bench_reset(b);
	for (int i = 0; i < ETH_QUEUES; i++) {
		b->in.base[i] = RING0 + RING_GAP * i;
		b->in.log_entries[i] = 6;
		b->in.buf64[i] = 1;
	}
	return b;
}

static void free_frames(struct bench *b)
{
	while (b->first) {
		struct bench_frame *f = b->first;

		b->first = f->next;
		free(f);
	}
}

void bench_free(struct bench *b)
{
	free_frames(b);
	eth_model_free(b->m);
	free(b->mem);
	free(b);
}

void bench_reset(struct bench *b)
{
	free_frames(b);
	b->source = NULL;
	b->len = 0;
	b->cls_head = b->cls_tail;
	b->db_head = b->db_tail;
	b->rd_head = b->rd_tail;
	b->wr_held = b->rd_held = b->rxc_held = false;
	b->wr_at = 0;
	b->checked_head = b->checked_tail;
	b->stored_head = b->stored_tail;
	b->full = b->no_buf = 0;
	b->in.enable = 0;
	for (int i = 0; i < ETH_QUEUES; i++) {
		b->q[i].enabled = false;
		b->reads_of[i] = 0;
	}
	b->in.rst = true;
	for (int i = 0; i < 3; i++)
		bench_step(b);
	b->in.rst = false;
	b->want_length = b->want_filtered = b->want_mcast = b->got = b->dropped = 0;
	memset(b->cnt, 0, sizeof(b->cnt));
}

void bench_fast(struct bench *b)
{
	b->p_beat = b->p_begin = b->p_wr = b->p_rxc = b->p_rd = b->p_db = 100;
	b->p_class = 30;
	b->p_rdma = b->p_err = b->p_rdma_first = b->rd_error = 0;
	b->latency = 150;
	b->latency_var = 0;
}

/* ---- rings ----------------------------------------------------------------------------------- */

void bench_doorbell(struct bench *b, unsigned int q, uint16_t pi)
{
	b->db[b->db_tail % 256].q = (uint8_t)q;
	b->db[b->db_tail++ % 256].pi = pi;
	assert_true(b->db_tail - b->db_head <= 256);
}

unsigned int bench_post(struct bench *b, unsigned int q, unsigned int n)
{
	struct bench_queue *t = &b->q[q];
	unsigned int most = (1u << t->log) - 1, out = (uint16_t)(t->pi - t->ci), i;

	if (!t->enabled || !(b->in.enable >> q & 1))
		return 0;
	if (most > SLOTS)
		most = SLOTS;
	for (i = 0; i < n && out < most; i++, out++, t->pi++) {
		unsigned int slot = t->pi % SLOTS;
		/* on a 64-byte boundary, on a page, anywhere */
		unsigned int off = below(b, 3) ? below(b, 64) * 64 : below(b, 4096);

		t->addr[slot] = BUF0 + (q * SLOTS + slot) * BUF_GAP + off;
		t->ring[t->pi & ((1u << t->log) - 1)] = t->addr[slot];
	}
	if (i)
		bench_doorbell(b, q, t->pi);
	return i;
}

void bench_enable(struct bench *b, unsigned int q, unsigned int log, unsigned int buf64)
{
	struct bench_queue *t = &b->q[q];

	assert_false(b->out.active >> q & 1);
	memset(t, 0, sizeof(*t));
	fill(b, t->ring, 8u << log);
	t->log = (uint8_t)log;
	t->buf64 = (uint8_t)buf64;
	t->enabled = true;
	b->in.log_entries[q] = (uint8_t)log;
	b->in.buf64[q] = (uint8_t)buf64;
	b->in.enable |= (uint8_t)(1u << q);
}

void bench_disable(struct bench *b, unsigned int q)
{
	unsigned int n = b->db_tail;

	/* doorbells rung before have come before */
	for (unsigned int i = b->db_tail = b->db_head; i != n; i++)
		if (b->db[i % 256].q != q)
			b->db[b->db_tail++ % 256] = b->db[i % 256];
	b->in.enable &= (uint8_t) ~(1u << q);
}

void bench_wait_inactive(struct bench *b, unsigned int q)
{
	for (int i = 0; b->q[q].enabled; i++) {
		if (i > 20000)
			fail_at(b, "queue %u stays active", q);
		bench_step(b);
	}
}

/* ---- the wire ------------------------------------------------------------------------------ */

static void add_frame(struct bench *b, struct bench_frame *f)
{
	f = realloc(f, offsetof(struct bench_frame, ref.data) + f->ref.len + 1);
	assert_non_null(f);
	f->next = NULL;
	f->must = b->must;
	if (b->first)
		b->last->next = f;
	else
		b->first = f;
	b->last = f;
}

/* Of the lane, a bit each. */
static unsigned int verdicts(enum ref_fate fate)
{
	switch (fate) {
	case REF_LENGTH:
		return 1u << TRE_LENGTH;
	case REF_FILTERED:
		return 1u << TRE_FILTERED;
	default:
		return 1u << TRE_TAKEN | 1u << TRE_FULL;
	}
}

static void begin_frame(struct bench *b)
{
	b->len = b->source(b, b->data);
	b->at = 0;
	if (!b->len)
		return;
	b->sent++;
	b->rdma = chance(b, b->p_rdma);
	b->err = chance(b, b->p_err);
	if (b->rdma || b->err)
		return;
	assert_true(b->checked_tail - b->checked_head < 1024);
	b->checked[b->checked_tail % 1024].len = b->len;
	b->checked[b->checked_tail % 1024].may = 0;
	/* while registers change, either will do */
	for (const struct eth_cfg *cfg = &b->cfg; cfg; cfg = cfg == &b->cfg ? b->alt : NULL) {
		struct bench_frame *f = malloc(sizeof(*f));

		assert_non_null(f);
		ref_receive(cfg, b->data, b->len, &f->ref);
		b->checked[b->checked_tail % 1024].may |= verdicts(f->ref.fate);
		b->want_length += f->ref.fate == REF_LENGTH;
		b->want_filtered += f->ref.fate == REF_FILTERED;
		if (f->ref.fate == REF_TAKEN)
			add_frame(b, f);
		else
			free(f);
	}
	b->checked_tail++;
}

static void drive_mac(struct bench *b)
{
	b->in.rx_valid = false;
	if (!b->len && b->source && chance(b, b->p_begin))
		begin_frame(b);
	if (b->len && (!b->at || chance(b, b->p_beat))) {
		unsigned int n = b->len - b->at < 64 ? b->len - b->at : 64;

		b->in.rx_valid = true;
		b->in.rx_last = b->at + n == b->len;
		b->in.rx_err = b->in.rx_last && b->err;
		b->in.rx_keep = n == 64 ? ~0ull : (1ull << n) - 1;
		if (n < 64)
			fill(b, b->in.rx_data, 64);
		memcpy(b->in.rx_data, b->data + b->at, n);
		if (!b->at) {
			b->cls_now = b->cls_tail++;
			assert_true(b->cls_tail - b->cls_head <= 64);
			b->cls[b->cls_now % 64].t0 = b->cycle;
			b->cls[b->cls_now % 64].t1 = b->in.rx_last ? b->cycle : 0;
			b->cls[b->cls_now % 64].rdma = b->rdma;
		} else if (b->at == 64) {
			b->cls[b->cls_now % 64].t1 = b->cycle;
		}
		b->at += n;
		if (b->at == b->len)
			b->len = 0;
	}
	/* 4 cycles after the first beat at the earliest, 6 after the second at the latest */
	b->in.class_valid = false;
	if (b->cls_head != b->cls_tail) {
		unsigned int c = b->cls_head % 64;

		if (b->cycle >= b->cls[c].t0 + 4 &&
		    ((b->cls[c].t1 && b->cycle >= b->cls[c].t1 + 6) || chance(b, b->p_class))) {
			assert_true(!b->cls[c].t1 || b->cycle <= b->cls[c].t1 + 6);
			b->in.class_valid = true;
			b->in.class_rdma = b->cls[c].rdma;
			b->cls_head++;
		}
	}
}

/* ---- the host ------------------------------------------------------------------------------ */

static int ring_of(uint64_t addr)
{
	uint64_t q = (addr - RING0) / RING_GAP;

	return addr >= RING0 && q < ETH_QUEUES ? (int)q : -1;
}

static void drive_host(struct bench *b)
{
	b->in.db_valid = false;
	if (b->db_head != b->db_tail && chance(b, b->p_db)) {
		b->in.db_valid = true;
		b->in.db_q = b->db[b->db_head % 256].q;
		b->in.db_pi = b->db[b->db_head++ % 256].pi;
	}
	b->in.rdr_valid = false;
	if (b->rd_head != b->rd_tail && b->cycle >= b->rd[b->rd_head % 256].when) {
		uint64_t addr = b->rd[b->rd_head % 256].addr;
		int q = ring_of(addr);

		b->in.rdr_valid = true;
		b->in.rdr_err = b->rd[b->rd_head++ % 256].err;
		memcpy(b->in.rdr_data, &b->q[q].ring[(addr - RING0) % RING_GAP / 8], 64);
		if (b->in.rdr_err)
			fill(b, b->in.rdr_data, 64);
		b->reads_of[q]--;
	}
	b->in.rd_ready = b->rd_tail - b->rd_head < 256 && chance(b, b->p_rd);
	b->in.wr_ready = chance(b, b->p_wr);
	b->in.rxc_ready = chance(b, b->p_rxc);
	b->in.rdma_first = chance(b, b->p_rdma_first);
	b->in.vlan_word = (uint8_t)(b->cycle % 64);
	b->in.vlan_bits = b->cfg.vlan[b->cycle % 64];
}

static void check_read(struct bench *b)
{
	struct eth_out *o = &b->out;
	int q;

	if (b->rd_held &&
	    (!o->rd_valid || o->rd_addr != b->held.rd_addr || o->rd_len != b->held.rd_len))
		fail_at(b, "a read request changed before it was taken");
	b->rd_held = o->rd_valid && !b->in.rd_ready;
	if (!o->rd_valid || !b->in.rd_ready)
		return;
	q = ring_of(o->rd_addr);
	if (q < 0 || !b->q[q].enabled)
		fail_at(b, "read of 0x%llx: no ring, or of a queue that is not active",
			(unsigned long long)o->rd_addr);
	if (o->rd_len != 64 || o->rd_addr % 64 ||
	    (o->rd_addr - RING0) % RING_GAP >= 8u << b->q[q].log)
		fail_at(b, "read of %u bytes at 0x%llx: outside the ring of queue %d", o->rd_len,
			(unsigned long long)o->rd_addr, q);
	b->rd[b->rd_tail % 256].addr = o->rd_addr;
	b->rd[b->rd_tail % 256].err = b->rd_error && below(b, 1000) < b->rd_error;
	b->rd[b->rd_tail++ % 256].when =
		b->cycle + b->latency + (b->latency_var ? below(b, b->latency_var) : 0);
	b->reads_of[q]++;
	b->reads++;
}

static void check_write(struct bench *b)
{
	struct eth_out *o = &b->out;
	unsigned int n;

	if (b->wr_held &&
	    (!o->wr_valid || o->wr_last != b->held.wr_last ||
	     memcmp(o->wr_data, b->held.wr_data, 64) ||
	     (!b->wr_at && (o->wr_addr != b->held.wr_addr || o->wr_len != b->held.wr_len))))
		fail_at(b, "a write beat changed before it was taken");
	b->wr_held = o->wr_valid && !b->in.wr_ready;
	if (!o->wr_valid || !b->in.wr_ready)
		return;
	if (!b->wr_at) {
		uint64_t i = (o->wr_addr - BUF0) / BUF_GAP;
		struct bench_queue *t;

		b->wr_begins++;
		if (!b->first_wr)
			b->first_wr = b->cycle;
		b->wr_addr = o->wr_addr;
		b->wr_len = o->wr_len;
		if (o->wr_addr < BUF0 || i >= ETH_QUEUES * SLOTS)
			fail_at(b, "write to 0x%llx: no buffer", (unsigned long long)o->wr_addr);
		b->wr_q = (int)(i / SLOTS);
		t = &b->q[b->wr_q];
		if (!t->enabled || t->wnext == t->pi || t->addr[t->wnext % SLOTS] != o->wr_addr)
			fail_at(b, "write to 0x%llx: not the next buffer of queue %d",
				(unsigned long long)o->wr_addr, b->wr_q);
		if (!o->wr_len || o->wr_len > t->buf64 * 64)
			fail_at(b, "write of %u bytes to a buffer of %u", o->wr_len, t->buf64 * 64);
		t->wnext++;
	}
	n = b->wr_len - 64 * b->wr_at;
	if (o->wr_last != (n <= 64))
		fail_at(b, "beat %u of a write of %u bytes: last is %u", b->wr_at, b->wr_len,
			o->wr_last);
	memcpy(b->mem + (b->wr_addr - BUF0) + 64 * b->wr_at, o->wr_data, n < 64 ? n : 64);
	b->wr_at = o->wr_last ? 0 : b->wr_at + 1;
}

/* The block counts no more than 256 beats. */
static bool same_length(unsigned int sent, unsigned int told)
{
	return sent > 255 * 64 ? told > 255 * 64 - 4 : sent == told;
}

static void check_lanes(struct bench *b)
{
	uint64_t in = b->out.trace_eth_in, buf = b->out.trace_eth_buf;
	unsigned int len, verdict;

	if (b->out.trace_eth_in_valid) {
		len = (unsigned int)FIELD_OF(in, tr_eth_in_t, len);
		verdict = (unsigned int)FIELD_OF(in, tr_eth_in_t, verdict);
		if (b->checked_head == b->checked_tail ||
		    !same_length(b->checked[b->checked_head % 1024].len, len) ||
		    !(b->checked[b->checked_head % 1024].may >> verdict & 1))
			fail_at(b, "lane: %u bytes with verdict %u, which are not next", len,
				verdict);
		if (verdict == TRE_TAKEN)
			b->stored[b->stored_tail++ % 1024].len = len;
		b->full += verdict == TRE_FULL;
		b->checked_head++;
	}
	if (b->out.trace_eth_buf_valid) {
		len = (unsigned int)FIELD_OF(buf, tr_eth_buf_t, len);
		if (b->stored_head == b->stored_tail || b->stored[b->stored_head % 1024].len != len)
			fail_at(b, "lane: %u stored bytes, which are not next", len);
		b->no_buf += FIELD_OF(buf, tr_eth_buf_t, drop);
		b->stored_head++;
	}
}

/* Where a frame in the buffers differs from f, or -1. */
static int compare(struct bench *b, const struct eth_rxc *c, const struct ref_frame *f)
{
	struct bench_queue *t = &b->q[c->q];
	unsigned int size = t->buf64 * 64u;

	for (unsigned int at = 0; at < f->len; at += size) {
		unsigned int n = f->len - at < size ? f->len - at : size;
		uint64_t addr = t->addr[(uint16_t)(c->index + at / size) % SLOTS];

		if (memcmp(b->mem + (addr - BUF0), f->data + at, n)) {
			for (unsigned int i = 0; i < n; i++)
				if (b->mem[addr - BUF0 + i] != f->data[at + i])
					return (int)(at + i);
		}
	}
	return -1;
}

static void skip_frame(struct bench *b)
{
	struct bench_frame *f = b->first;

	if (f->must == 1)
		fail_at(b, "a frame of %u bytes for queue %u is lost", f->ref.len, f->ref.q);
	b->dropped++;
	b->first = f->next;
	free(f);
}

static void check_rxc(struct bench *b)
{
	struct eth_rxc *c = &b->out.rxc;
	struct bench_queue *t = &b->q[c->q];
	struct bench_frame *f;
	const struct ref_frame *r;

	if (b->rxc_held && (!b->out.rxc_valid || memcmp(c, &b->held.rxc, sizeof(*c))))
		fail_at(b, "a completion changed before it was taken");
	b->rxc_held = b->out.rxc_valid && !b->in.rxc_ready;
	if (!b->out.rxc_valid || !b->in.rxc_ready)
		return;
	if (!t->enabled)
		fail_at(b, "completion for queue %u, which is not active", c->q);
	if (c->index != t->ci)
		fail_at(b, "completion of queue %u with index %u instead of %u", c->q, c->index,
			t->ci);
	if ((uint16_t)(t->wnext - t->ci) < c->bufs || !c->bufs)
		fail_at(b, "completion of queue %u before its bytes", c->q);
	/* frames come out in their order: those in front of it have been dropped */
	for (f = b->first; f; f = b->first) {
		if (f->ref.q == c->q && f->ref.len == c->len && compare(b, c, &f->ref) < 0)
			break;
		if (f->must == 1)
			fail_at(b,
				"queue %u, %u bytes: not the frame that is next (queue %u, %u "
				"bytes, differs at %d)",
				c->q, c->len, f->ref.q, f->ref.len,
				f->ref.len == c->len ? compare(b, c, &f->ref) : -1);
		skip_frame(b);
	}
	if (!f)
		fail_at(b, "queue %u: a frame of %u bytes that was not sent", c->q, c->len);
	r = &f->ref;
	if (f->must == 0)
		fail_at(b, "queue %u: a frame for which there was no buffer", c->q);
	if (c->bufs != (r->len + t->buf64 * 64 - 1) / (t->buf64 * 64))
		fail_at(b, "%u bytes in %u buffers of %u", r->len, c->bufs, t->buf64 * 64);
	if (c->vlan != r->vlan || (r->vlan && c->tci != r->tci))
		fail_at(b, "tag %u 0x%x instead of %u 0x%x", c->vlan, c->tci, r->vlan, r->tci);
	if (c->hash_type != r->hash_type || c->hash != r->hash)
		fail_at(b, "hash %u 0x%x instead of %u 0x%x", c->hash_type, c->hash, r->hash_type,
			r->hash);
	if (c->csum != r->csum)
		fail_at(b, "checksum 0x%x instead of 0x%x, %u bytes", c->csum, r->csum, r->len);
	b->want_mcast += r->mcast;
	b->got++;
	b->last_rxc = b->cycle;
	/* the entries are software's again, and may hold anything */
	for (unsigned int i = 0; i < c->bufs; i++, t->ci++)
		t->ring[t->ci & ((1u << t->log) - 1)] = rnd_next(&b->rnd);
	b->first = f->next;
	free(f);
}

static void check_queues(struct bench *b)
{
	for (unsigned int q = 0; q < ETH_QUEUES; q++) {
		struct bench_queue *t = &b->q[q];
		bool active = b->out.active >> q & 1;

		if (b->in.enable >> q & 1 || !t->enabled || active)
			continue;
		if (b->reads_of[q])
			fail_at(b, "queue %u is not active, but its reads are under way", q);
		if (t->wnext != t->ci && !(b->out.err >> q & 1) && !b->rd_error)
			fail_at(b, "queue %u is not active, but a frame is not completed", q);
		t->enabled = false;
	}
}

void bench_step(struct bench *b)
{
	drive_mac(b);
	drive_host(b);
	if (b->alt)
		b->in.cfg = below(b, 2) ? &b->cfg : b->alt;
	eth_model_settle(b->m, &b->in, &b->out);
	b->in.cfg = NULL;
	if (!b->in.rst) {
		check_read(b);
		check_write(b);
		check_rxc(b);
		check_lanes(b);
		b->held = b->out;
		check_queues(b);
		for (int i = 0; i < 64; i++)
			b->cnt[i] += b->out.cnt >> i & 1;
		if (b->out.cnt & ~(0x3full << URDMA_CNT_ETH_RX_FRAMES))
			fail_at(b, "a counter that is not its own: 0x%llx",
				(unsigned long long)b->out.cnt);
	}
	eth_model_edge(b->m);
	b->cycle++;
}

void bench_run(struct bench *b, unsigned int cycles)
{
	for (unsigned int i = 0; i < cycles; i++)
		bench_step(b);
}

void bench_config(struct bench *b)
{
	b->in.cfg = &b->cfg;
	bench_run(b, 64); /* the VLAN table, word by word */
}

void bench_drain(struct bench *b)
{
	unsigned int quiet = 0;

	b->source = NULL;
	b->p_rdma_first = 0;
	b->p_db = 100;
	for (unsigned int i = 0; quiet < 400; i++) {
		bench_step(b);
		/* what is not busy does nothing, but for an active queue that waits */
		if (quiet && (b->out.rd_valid || b->out.wr_valid || b->out.rxc_valid))
			fail_at(b, "it was not busy, and yet there is work");
		quiet = b->out.busy || b->db_head != b->db_tail || b->len ? 0 : quiet + 1;
		if (i > 200000)
			fail_at(b, "it stays busy");
	}
	while (b->first)
		skip_frame(b);
	if (b->checked_head != b->checked_tail || b->stored_head != b->stored_tail)
		fail_at(b, "lanes: the fate of %u frames is not told",
			b->checked_tail - b->checked_head + b->stored_tail - b->stored_head);
	if (b->full != b->cnt[URDMA_CNT_ETH_RX_DROP_FULL] ||
	    b->no_buf != b->cnt[URDMA_CNT_ETH_RX_NO_BUF])
		fail_at(b, "lanes: %llu without room, %llu without buffer; counted %llu, %llu",
			(unsigned long long)b->full, (unsigned long long)b->no_buf,
			(unsigned long long)b->cnt[URDMA_CNT_ETH_RX_DROP_FULL],
			(unsigned long long)b->cnt[URDMA_CNT_ETH_RX_NO_BUF]);
	if (b->alt)
		return; /* counters: nobody knows */
	for (unsigned int q = 0; q < ETH_QUEUES; q++)
		if (b->q[q].enabled && b->out.ci[q] != b->q[q].ci)
			fail_at(b, "queue %u: ci is %u instead of %u", q, b->out.ci[q], b->q[q].ci);
	if (b->cnt[URDMA_CNT_ETH_RX_FRAMES] != b->got ||
	    b->cnt[URDMA_CNT_ETH_RX_MCAST] != b->want_mcast)
		fail_at(b, "counted %llu frames, %llu to groups, instead of %llu, %llu",
			(unsigned long long)b->cnt[URDMA_CNT_ETH_RX_FRAMES],
			(unsigned long long)b->cnt[URDMA_CNT_ETH_RX_MCAST],
			(unsigned long long)b->got, (unsigned long long)b->want_mcast);
	if (b->cnt[URDMA_CNT_ETH_RX_LENGTH] != b->want_length ||
	    b->cnt[URDMA_CNT_ETH_RX_FILTERED] != b->want_filtered)
		fail_at(b, "counted %llu of wrong length, %llu filtered, instead of %llu, %llu",
			(unsigned long long)b->cnt[URDMA_CNT_ETH_RX_LENGTH],
			(unsigned long long)b->cnt[URDMA_CNT_ETH_RX_FILTERED],
			(unsigned long long)b->want_length, (unsigned long long)b->want_filtered);
	if (b->cnt[URDMA_CNT_ETH_RX_NO_BUF] + b->cnt[URDMA_CNT_ETH_RX_DROP_FULL] != b->dropped)
		fail_at(b, "counted %llu without buffer, %llu without room, instead of %llu in all",
			(unsigned long long)b->cnt[URDMA_CNT_ETH_RX_NO_BUF],
			(unsigned long long)b->cnt[URDMA_CNT_ETH_RX_DROP_FULL],
			(unsigned long long)b->dropped);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void random_mac(struct bench *b, uint8_t *a)
{
	switch (below(b, 8)) {
	case 0:
		memset(a, 255, 6);
		break;
	case 1:
		fill(b, a, 6);
		a[0] |= 1;
		break;
	case 2:
		fill(b, a, 6);
		break;
	case 3:
	case 4:
		memcpy(a, b->cfg.uc[below(b, 16)], 6);
		break;
	case 5: /* nearly */
		memcpy(a, below(b, 2) ? b->cfg.mac : b->cfg.uc[below(b, 16)], 6);
		a[below(b, 6)] ^= (uint8_t)(1u << below(b, 8));
		break;
	default:
		memcpy(a, b->cfg.mac, 6);
	}
}

static unsigned int make_random(struct bench *b, uint8_t *data, unsigned int len)
{
	unsigned int at = 12;

	fill(b, data, len + 128);
	random_mac(b, data);
	if (!below(b, 3)) {
		uint16_t tci = (uint16_t)rnd_next(&b->rnd);

		if (!below(b, 6))
			tci &= 0xf000;
		data[at] = below(b, 20) ? 0x81 : 0x88;
		data[at + 1] = below(b, 20) ? 0 : 1;
		data[at + 2] = (uint8_t)(tci >> 8);
		data[at + 3] = (uint8_t)tci;
		at += 4;
		if (!below(b, 10)) { /* a second one: not looked through */
			data[at] = 0x81;
			data[at + 1] = 0;
			at += 4;
		}
	}
	uint8_t *p = data + at + 2, *proto;

	switch (below(b, 6)) {
	case 0:
	case 1:
	case 2:
		data[at] = 8;
		data[at + 1] = 0;
		p[0] = 0x45;
		proto = p + 9;
		switch (below(b, 6)) {
		case 0:
			p[0] = (uint8_t)(0x40 | below(b, 16));
			break;
		case 1:
			p[0] = (uint8_t)(below(b, 16) << 4 | 5);
			break;
		}
		p[6] &= 0xc0;
		p[7] = 0;
		if (!below(b, 4))
			p[6] |= (uint8_t)(1u << below(b, 6));
		if (!below(b, 8))
			p[7] = (uint8_t)(1u << below(b, 8));
		break;
	case 3:
	case 4:
		data[at] = 0x86;
		data[at + 1] = 0xdd;
		p[0] = (uint8_t)((below(b, 10) ? 0x60 : below(b, 16) << 4) | (p[0] & 15));
		proto = p + 6;
		break;
	default:
		proto = p;
	}
	*proto = below(b, 3) ? 6 : below(b, 3) ? 17 : *proto;
	/* nothing of it counts if it fell behind the end */
	if (len >= 80) { /* sums of 0 and 0xffff, long runs of a byte */
		if (!below(b, 8))
			memset(data + 64, below(b, 2) ? 255 : 0, len - 64);
		memcpy(data + len - 4, &b->serial, 4);
		b->serial++;
	}
	return len;
}

unsigned int frame_short(struct bench *b, uint8_t *data)
{
	unsigned int kind = below(b, 20), len;

	if (kind == 0)
		len = 14 + below(b, 46);
	else if (kind < 14)
		len = 58 + below(b, 14);
	else
		len = 64 * (1 + below(b, 4)) - 8 + below(b, 16);
	return make_random(b, data, len);
}

unsigned int frame_random(struct bench *b, uint8_t *data)
{
	unsigned int kind = below(b, 20);

	if (kind < 10)
		return frame_short(b, data);
	if (kind < 17)
		return make_random(b, data, 60 + below(b, 1460));
	if (kind < 19)
		return make_random(b, data, 1500 + below(b, 7800));
	return make_random(b, data, 9210 + below(b, 20));
}

unsigned int frame_plain(struct bench *b, uint8_t *data, unsigned int len)
{
	fill(b, data, len);
	memcpy(data, b->cfg.mac, 6);
	data[12] = 8;
	data[13] = 0;
	data[14] = 0x45;
	data[20] = data[21] = 0;
	data[23] = 6;
	return len;
}

void config_random(struct bench *b)
{
	struct eth_cfg *c = &b->cfg;

	fill(b, c, sizeof(*c));
	c->mac[0] &= 0xfe;
	c->ctrl = (uint8_t)(URDMA_RF_ETH_RX_ENABLE | (below(b, 4) ? 0 : URDMA_RF_ETH_PROMISC) |
			    (below(b, 4) ? 0 : URDMA_RF_ETH_ALLMULTI) |
			    (below(b, 2) ? 0 : URDMA_RF_ETH_VLAN_STRIP) |
			    (below(b, 2) ? 0 : URDMA_RF_ETH_VLAN_FILTER) |
			    (below(b, 2) ? 0 : URDMA_RF_ETH_LOOPBACK));
	if (!below(b, 10))
		c->ctrl &= (uint8_t)~URDMA_RF_ETH_RX_ENABLE;
	c->rss = (uint8_t)below(b, 16);
	for (int i = 0; i < 128; i++)
		c->table[i] &= 7;
	for (int i = 0; i < 16; i++)
		c->uc[i][0] &= 0xfe;
}

void config_simple(struct bench *b, unsigned int queues)
{
	config_random(b);
	b->cfg.ctrl = URDMA_RF_ETH_RX_ENABLE;
	b->cfg.rss = 15;
	for (unsigned int i = 0; i < 128; i++)
		b->cfg.table[i] = (uint8_t)(i % queues);
}
