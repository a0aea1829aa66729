// SPDX-License-Identifier: Apache-2.0
#include "pcie_bench.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "seed.h"

#define CHECK(b, cond, fmt, ...)                                                     \
	do {                                                                         \
		if (!(cond))                                                         \
			fail_msg("cycle %llu: " fmt, (unsigned long long)(b)->cycle, \
				 ##__VA_ARGS__);                                     \
	} while (0)

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Little-endian bit fields of descriptors. */
static uint64_t bits(const uint8_t *p, unsigned pos, unsigned len)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < len; i++, pos++)
		v |= (uint64_t)(p[pos / 8] >> (pos % 8) & 1) << i;
	return v;
}

static void set_bits(uint8_t *p, unsigned pos, unsigned len, uint64_t v)
{
	for (unsigned i = 0; i < len; i++, pos++)
		p[pos / 8] = (p[pos / 8] & ~(1u << (pos % 8))) | ((v >> i & 1) << (pos % 8));
}

uint32_t bench_rnd(struct bench *b, uint32_t n)
{
	return rnd_below(&b->rng, n);
}

static bool chance(struct bench *b, int in256)
{
	return in256 && (int)bench_rnd(b, 256) < in256;
}

static uint32_t mps(const struct bench *b)
{
	return 128u << b->in.max_payload;
}

static uint32_t chunk(const struct bench *b)
{
	return min32(128u << b->in.max_read_req, 4096);
}

struct bench *bench_new(uint64_t seed)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->wr_q = calloc(QUEUE, sizeof(*b->wr_q));
	assert_non_null(b->wr_q);
	b->dm = calloc(DM_SIZE, sizeof(*b->dm));
	assert_non_null(b->dm);
	b->m = pcie_model_new();
	b->rng = seed * 0x9e3779b97f4a7c15ull + 1;
	for (int i = 0; i < 8; i++)
		rnd_next(&b->rng);
	for (uint32_t i = 0; i < RD_SIZE; i++)
		b->rd_mem[i] = rnd_next(&b->rng) | 1; /* no zero byte, so that "zeroed" shows */
	for (uint32_t i = 0; i < 8192; i++)
		b->regs[i] = b->shadow[i] = rnd_next(&b->rng);
	b->in.max_payload = 1;
	b->in.max_read_req = 2;
	b->in.bus_master_en = true;
	b->rcb = 64;
	b->max_cpl = 256;
	b->lat_min = 50;
	b->hold_tag = -1;
	b->in.rst = true;
	for (int i = 0; i < 5; i++) {
		pcie_model_eval(b->m, &b->in, &b->out);
		pcie_model_edge(b->m);
	}
	b->in.rst = false;
	for (int i = 0; i < 3; i++)
		bench_cycle(b);
	return b;
}

void bench_free(struct bench *b)
{
	pcie_model_free(b->m);
	free(b->wr_q);
	free(b->dm);
	free(b);
}

/* ---- device memory ----------------------------------------------------------------------------
 */

static void dm_write(struct bench *b, uint64_t off, uint8_t value, uint32_t serial)
{
	struct dm_byte *d = &b->dm[off];

	if (off >= DM_SIZE)
		return;
	memmove(d->past + 1, d->past, (DM_PAST - 1) * sizeof(*d->past));
	d->past[0] = (struct dm_value){ .since = ~0ull, .serial = serial, .value = value };
	if (d->n < DM_PAST)
		d->n++;
}

/* value was read where it had to be at least as new as the writes accepted before a cycle, and the
 * host's first ones. */
static bool dm_right(struct bench *b, uint64_t off, uint8_t value, uint64_t before,
		     uint32_t bar_done)
{
	const struct dm_byte *d = &b->dm[off];

	b->dm_bytes++;
	for (int i = 0; i < d->n; i++) {
		const struct dm_value *v = &d->past[i];

		if (v->value == value)
			return true;
		if (v->serial ? v->serial <= bar_done : v->since < before)
			return false;
	}
	/* before the first write, or the values before are forgotten */
	b->dm_unknown++;
	return true;
}

/* ---- clients ----------------------------------------------------------------------------------
 */

static void pick(struct bench *b, uint32_t min, uint32_t max, uint32_t align, uint64_t base,
		 uint32_t size, uint64_t *next, uint64_t *addr, uint32_t *len)
{
	*len = min + bench_rnd(b, max - min + 1);
	if (*next) {
		if (*next + *len > base + size)
			*next = base;
		*addr = *next;
		*next += *len;
	} else {
		*addr = base + bench_rnd(b, (size - 4096) / align) * align;
	}
}

static uint64_t dm_addr(struct bench *b, uint64_t from, uint32_t span, uint32_t align)
{
	uint32_t at = bench_rnd(b, span ? span : DM_HALF - 4096);

	return DM_ADDR | (from + (align ? at / align * align : at));
}

static void drive_clients(struct bench *b)
{
	for (int i = 0; i < RD_N; i++) {
		struct rd_client *c = &b->rdc[i];
		struct dma_rd_req *r = &b->in.rd[i];

		if (!r->valid && c->left && chance(b, c->prob)) {
			pick(b, c->min, c->max, c->align ? c->align : 1, RD_BASE, RD_SIZE,
			     &c->next_addr, &r->addr, &r->len);
			if (chance(b, c->dm))
				r->addr = dm_addr(b, c->dm_from, c->dm_span, c->align);
			r->valid = true;
			c->left--;
			c->since = b->cycle;
		}
	}
	for (int i = 0; i < WR_N; i++) {
		struct wr_client *c = &b->wrc[i];
		struct dma_wr_beat *w = &b->in.wr[i];

		if (!c->active && c->left && chance(b, c->prob)) {
			pick(b, c->min, c->max, c->align ? c->align : 1, WR_BASE, WR_SIZE,
			     &c->next_addr, &c->req.addr, &c->req.len);
			if (chance(b, c->dm))
				c->req.addr = dm_addr(b, c->dm_from, c->dm_span, c->align);
			c->req.sent = 0;
			c->req.dropped = !b->in.bus_master_en && !b->master_moves;
			for (uint32_t k = 0; k < c->req.len; k++)
				c->req.data[k] = rnd_next(&b->rng) >> 56;
			c->pos = 0;
			c->active = true;
			c->left--;
		}
		if (c->active && !w->valid && !chance(b, c->gap)) {
			uint32_t n = min32(64, c->req.len - c->pos);

			w->valid = true;
			/* only the first beat's count */
			w->addr = c->pos ? rnd_next(&b->rng) : c->req.addr;
			w->len = c->pos ? bench_rnd(b, 8192) : c->req.len;
			memcpy(w->data, c->req.data + c->pos, n);
			for (uint32_t k = n; k < 64; k++)
				w->data[k] = rnd_next(&b->rng);
			w->last = c->pos + n == c->req.len;
		}
	}
	if (!b->in.irq_req_valid && b->irq_left && chance(b, b->irq_prob)) {
		b->in.irq_req_valid = true;
		b->in.irq_req_vec = bench_rnd(b, 64);
		b->irq_left--;
	}
}

static void observe_clients(struct bench *b)
{
	if (b->in.stop)
		CHECK(b, !b->out.rd_ready && (!b->out.wr_ready || b->out.wr_open),
		      "a DMA request was taken in spite of stop");
	for (int i = 0; i < RD_N; i++) {
		struct rd_client *c = &b->rdc[i];

		if (b->in.rd[i].valid && (b->out.rd_ready >> i & 1)) {
			struct rd_request *q = &b->rd_q[b->rd_tail++ % QUEUE];

			memset(q, 0, sizeof(*q));
			q->client = i;
			q->addr = b->in.rd[i].addr;
			q->len = b->in.rd[i].len;
			q->granted = b->cycle;
			q->behind = b->wr_accepted;
			if (q->addr & DM_ADDR) {
				uint64_t off = q->addr & ~DM_ADDR;

				q->dm = true;
				q->bar_done = b->bar_done;
				q->asked = q->len;
				q->failed = off + q->len > DM_SIZE;
				q->fail_off = q->fail_end = off < DM_SIZE ? DM_SIZE - off : 0;
			} else if (!b->in.bus_master_en) {
				q->dropped = q->failed = true;
				q->fail_end = 0;
			}
			b->in.rd[i].valid = false;
			c->bytes += q->len;
			if (b->cycle - c->since > c->max_wait)
				c->max_wait = b->cycle - c->since;
		}
	}
	for (int i = 0; i < WR_N; i++) {
		struct wr_client *c = &b->wrc[i];

		if (!b->in.wr[i].valid || !(b->out.wr_ready >> i & 1))
			continue;
		b->in.wr[i].valid = false;
		if (c->req.addr & DM_ADDR) {
			uint64_t off = c->req.addr & ~DM_ADDR;

			for (uint32_t k = c->pos; k < min32(c->pos + 64, c->req.len); k++)
				dm_write(b, off + k, c->req.data[k], 0);
			for (uint32_t k = 0; c->pos + 64 >= c->req.len && k < c->req.len; k++)
				if (off + k < DM_SIZE)
					b->dm[off + k].past[0].since = b->cycle;
			b->dm_wr_last = b->cycle;
			b->dm_beats++;
		} else if (c->pos == 0) {
			CHECK(b, b->wr_tail - b->wr_head < QUEUE, "write queue of the test full");
			b->wr_q[b->wr_tail++ % QUEUE] = c->req;
		}
		c->pos += 64;
		if (c->pos >= c->req.len) {
			c->active = false;
			c->bytes += c->req.len;
			c->done++;
			b->wr_accepted += !(c->req.addr & DM_ADDR);
		}
	}
	if (b->in.irq_req_valid && b->out.irq_req_ready) {
		b->irq_q[b->irq_tail % QUEUE].vec = b->in.irq_req_vec;
		b->irq_q[b->irq_tail++ % QUEUE].after = b->wr_accepted;
		b->in.irq_req_valid = false;
	}
}

static void observe_read_data(struct bench *b)
{
	uint32_t v = b->out.rd_rsp_valid;
	struct rd_request *q;
	const uint8_t *want;
	uint32_t n;

	if (!v)
		return;
	CHECK(b, !(v & (v - 1)), "read data for several clients: 0x%x", v);
	CHECK(b, b->rd_head != b->rd_tail, "read data nobody asked for");
	q = &b->rd_q[b->rd_head % QUEUE];
	CHECK(b, v == 1u << q->client, "read data for client mask 0x%x, %d asked first", v,
	      q->client);
	n = min32(64, q->len - q->got);
	want = q->dm ? b->rd_mem : b->rd_mem + (q->addr - RD_BASE) + q->got;
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t off = q->got + i;
		uint8_t d = b->out.rd_data[i];
		bool ok;

		if (i >= n)
			ok = d == 0;
		else if (q->dm && (!q->failed || off < q->fail_off))
			ok = dm_right(b, (q->addr & ~DM_ADDR) + off, d, q->granted, q->bar_done);
		else if (!q->failed || off < q->fail_off)
			ok = d == want[i];
		else if (off < q->fail_end)
			ok = d == want[i] || d == 0;
		else
			ok = d == 0;
		CHECK(b, ok, "read of 0x%llx, %u bytes: byte %u is %02x, memory has %02x%s",
		      (unsigned long long)q->addr, q->len, off, d,
		      i >= n  ? 0
		      : q->dm ? b->dm[(q->addr + off) % DM_SIZE].past[0].value
			      : want[i],
		      q->failed ? " (failed request)" : "");
	}
	q->got += n;
	CHECK(b, b->out.rd_last == (q->got == q->len), "last is %d after %u of %u bytes",
	      b->out.rd_last, q->got, q->len);
	CHECK(b, b->out.rd_err == (b->out.rd_last && q->failed),
	      "read of 0x%llx, %u bytes: err is %d, the host made it %s",
	      (unsigned long long)q->addr, q->len, b->out.rd_err, q->failed ? "fail" : "succeed");
	if (b->out.rd_last) {
		CHECK(b, q->dropped || q->asked == q->len, "answer complete before it was asked");
		b->rdc[q->client].done++;
		b->rd_head++;
	}
	if (!b->rsp_beats++)
		b->rsp_first = b->cycle;
	b->rsp_last = b->cycle;
}

/* ---- RQ ---------------------------------------------------------------------------------------
 */

static void choose_cuts(struct bench *b, struct host_read *h)
{
	uint32_t at = 0;

	h->n = 0;
	h->next = 0;
	while (at < h->len) {
		uint64_t here = h->addr + at;
		uint32_t step;

		if (b->random_cuts) {
			step = b->rcb * (1 + bench_rnd(b, 8)) - here % b->rcb;
			step = min32(step, b->max_cpl - here % b->rcb);
		} else {
			step = b->max_cpl - here % b->max_cpl;
		}
		at = min32(at + step, h->len);
		h->cut[h->n++] = at;
	}
}

/* the write at the head has had its turn */
static void next_write(struct bench *b)
{
	b->wr_head++;
	b->wr_sent++;
}

/* writes that were discarded have had their turn when a later request has its */
static void skip_dropped(struct bench *b)
{
	while (b->wr_head != b->wr_tail && b->wr_q[b->wr_head % QUEUE].dropped)
		next_write(b);
}

static void host_read(struct bench *b, uint64_t addr, uint32_t len, uint8_t tag)
{
	struct host_read *h = &b->tag[tag];
	struct rd_request *q;
	uint32_t want;

	while (b->rd_cursor != b->rd_tail &&
	       (b->rd_q[b->rd_cursor % QUEUE].dropped || b->rd_q[b->rd_cursor % QUEUE].dm))
		b->rd_cursor++;
	CHECK(b, b->rd_cursor != b->rd_tail, "read request nobody asked for");
	q = &b->rd_q[b->rd_cursor % QUEUE];
	want = min32(q->len - q->asked, chunk(b) - (q->addr + q->asked) % chunk(b));
	/* A tag in quarantine may leave too few in a row: then it ends at a multiple of 512. */
	if (b->given_up && addr == q->addr + q->asked && len < want && (addr + len) % 512 == 0) {
		want = len;
		b->rd_cut++;
	}
	CHECK(b, addr == q->addr + q->asked && len == want,
	      "read request 0x%llx, %u bytes; expected 0x%llx, %u", (unsigned long long)addr, len,
	      (unsigned long long)(q->addr + q->asked), want);
	CHECK(b, addr / 4096 == (addr + len - 1) / 4096, "read request crosses 4 KB");
	skip_dropped(b);
	CHECK(b, b->wr_sent >= q->behind,
	      "read 0x%llx passed a write: %llu requests of the %llu before it are on RQ",
	      (unsigned long long)addr, (unsigned long long)b->wr_sent,
	      (unsigned long long)q->behind);
	b->rd_waited += b->wr_sent > q->behind;

	CHECK(b, !h->busy, "tag %u used again while completions are to come", tag);
	CHECK(b, !h->lost || b->cycle - h->sent >= TAG_QUARANTINE,
	      "tag %u used again %llu cycles after its completions were lost", tag,
	      (unsigned long long)(b->cycle - h->sent));
	memset(h, 0, sizeof(*h));
	h->addr = addr;
	h->len = len;
	h->sent = b->cycle;
	h->ready = b->cycle + b->lat_min + (b->lat_rand ? bench_rnd(b, b->lat_rand) : 0);
	choose_cuts(b, h);
	if (b->lose_each ? tag % b->lose_each == 0
			 : b->fault_prob && (int)bench_rnd(b, 1024) < b->fault_prob) {
		do {
			h->fault = 1 + bench_rnd(b, F_N - 1);
		} while (!(b->fault_mask >> h->fault & 1));
		h->fault_at = bench_rnd(b, h->n);
		if (!q->failed)
			q->fail_off = q->asked;
		q->failed = true;
		if (!q->fail_end)
			q->fail_end = q->asked + len;
		b->given_up = true;
		if (h->fault == F_LATE)
			h->ready = b->cycle + CPL_TIMEOUT + SWEEP + 600 + bench_rnd(b, 7000);
		if (h->fault == F_LATE || h->fault == F_LOST)
			b->want.cpl_timeout++;
	}
	if (h->fault == F_LOST) {
		h->lost = true;
	} else {
		h->busy = true;
		b->order[b->norder++] = tag;
	}
	q->asked += len;
	if (q->asked == q->len)
		b->rd_cursor++;
	b->want.rd_tlp++;
	if (b->rd_tlp_last && b->cycle - b->rd_tlp_last > b->rd_tlp_gap)
		b->rd_tlp_gap = b->cycle - b->rd_tlp_last;
	b->rd_tlp_last = b->cycle;
}

static void host_write(struct bench *b, uint64_t addr, uint32_t len, const uint8_t *data)
{
	struct wr_request *q;
	uint32_t want;

	skip_dropped(b);
	while (b->master_moves && b->wr_head != b->wr_tail &&
	       b->wr_q[b->wr_head % QUEUE].addr != addr) {
		next_write(b);
		b->want.dma_drop++;
	}
	CHECK(b, b->wr_head != b->wr_tail, "write nobody asked for");
	q = &b->wr_q[b->wr_head % QUEUE];
	want = min32(q->len - q->sent, mps(b) - (q->addr + q->sent) % mps(b));
	CHECK(b, addr == q->addr + q->sent && len == want,
	      "write 0x%llx, %u bytes; expected 0x%llx, %u of %u", (unsigned long long)addr, len,
	      (unsigned long long)(q->addr + q->sent), want, q->len);
	CHECK(b, !memcmp(data, q->data + q->sent, len), "write 0x%llx, %u bytes: wrong data",
	      (unsigned long long)addr, len);
	q->sent += len;
	if (q->sent == q->len)
		next_write(b);
	b->want.wr_tlp++;
}

/* Bytes that the enables leave out before the first and after the last of the transfer. */
static uint32_t be_skip_first(uint8_t be)
{
	return be & 1 ? 0 : be & 2 ? 1 : be & 4 ? 2 : 3;
}

static uint32_t be_skip_last(uint8_t be)
{
	return be & 8 ? 0 : be & 4 ? 1 : be & 2 ? 2 : 3;
}

static void observe_rq(struct bench *b)
{
	const struct axis_beat *x = &b->out.rq;
	const uint8_t *user = (const uint8_t *)x->user;
	uint32_t dw, type, skip, len, lanes;
	uint64_t addr;

	if (b->in.bus_master_en)
		b->begun_off = 0;
	if (!x->valid) {
		if (b->rq_beats)
			b->rq_idle++;
		CHECK(b, !b->rq_len, "RQ: tvalid fell within a packet");
		return;
	}
	if (!b->in.rq_ready)
		return;
	if (!b->rq_beats++)
		b->rq_first = b->cycle;
	b->rq_last_cycle = b->cycle;
	if (!b->rq_len) {
		b->rq_first_be = bits(user, 0, 8);
		b->rq_last_be = bits(user, 8, 8);
		/* the output register holds two beats */
		CHECK(b, b->in.bus_master_en || ++b->begun_off <= 2,
		      "RQ: request without bus master enable");
	}
	CHECK(b, bits(user, 20, 2) == (b->rq_len ? 0 : 1), "RQ: is_sop wrong");
	CHECK(b, bits(user, 26, 2) == x->last, "RQ: is_eop wrong");
	CHECK(b, !bits(user, 36, 1), "RQ: discontinue");
	memcpy(b->rq_buf + b->rq_len, x->data, 64);
	lanes = __builtin_popcount(x->keep);
	CHECK(b, x->keep == (uint16_t)((1u << lanes) - 1) && (x->last || lanes == 16),
	      "RQ: tkeep 0x%04x", x->keep);
	if (x->last)
		CHECK(b, bits(user, 28, 4) == lanes - 1, "RQ: is_eop0_ptr wrong");
	b->rq_len += lanes * 4;
	CHECK(b, b->rq_len <= 16 + 1024, "RQ: packet too long");
	if (!x->last)
		return;

	dw = bits(b->rq_buf, 64, 11);
	type = bits(b->rq_buf, 75, 4);
	addr = bits(b->rq_buf, 0, 64);
	CHECK(b, (addr & 3) == 0 && !bits(b->rq_buf, 79, 17) && !bits(b->rq_buf, 104, 24),
	      "RQ: descriptor has bits that should be 0");
	CHECK(b, dw >= 1 && dw <= 1024, "RQ: dword count %u", dw);
	CHECK(b, b->rq_first_be < 16 && b->rq_last_be < 16, "RQ: byte enables of a second packet");
	CHECK(b, (dw == 1) == (b->rq_last_be == 0) && b->rq_first_be,
	      "RQ: byte enables %x %x with %u dwords", b->rq_first_be, b->rq_last_be, dw);
	skip = be_skip_first(b->rq_first_be);
	len = dw * 4 - skip - be_skip_last(dw == 1 ? b->rq_first_be : b->rq_last_be);
	/* all enables between the first and the last byte have to be set */
	if (dw == 1) {
		CHECK(b, b->rq_first_be == ((0xfu >> (4 - len)) << skip), "RQ: holes in enables");
	} else {
		CHECK(b, b->rq_first_be == (0xf << skip & 0xf), "RQ: holes in first_be");
		CHECK(b, b->rq_last_be == 0xf >> be_skip_last(b->rq_last_be),
		      "RQ: holes in last_be");
	}
	if (type == 0) {
		CHECK(b, b->rq_len == 16, "RQ: read request with %d bytes", b->rq_len);
		host_read(b, addr + skip, len, bits(b->rq_buf, 96, 8));
	} else {
		CHECK(b, type == 1, "RQ: request type %u", type);
		CHECK(b, b->rq_len == 16 + (int)dw * 4, "RQ: %d bytes with %u dwords", b->rq_len,
		      dw);
		host_write(b, addr + skip, len, b->rq_buf + 16 + skip);
	}
	b->rq_len = 0;
}

/* ---- RC ---------------------------------------------------------------------------------------
 */

static void build_completion(struct bench *b, int slot)
{
	uint8_t tag = b->order[slot];
	struct host_read *h = &b->tag[tag];
	uint32_t from = h->next ? h->cut[h->next - 1] : 0, to = h->cut[h->next];
	uint64_t addr = h->addr + from;
	uint32_t dw = ((addr & 3) + to - from + 3) / 4, dw_sent = dw;
	bool last = h->next == h->n - 1, end = false;
	uint8_t *p = b->rc_buf;
	bool fault = h->fault != F_NONE && h->fault != F_LATE && h->next == h->fault_at;

	memset(p, 0, sizeof(b->rc_buf));
	b->rc_disc = false;
	set_bits(p, 0, 12, addr & 0xfff);
	set_bits(p, 16, 13, h->len - from);
	set_bits(p, 30, 1, last);
	set_bits(p, 32, 11, dw);
	set_bits(p, 48, 16, 0x0100);
	set_bits(p, 64, 8, tag);
	memset(p + 12, 0xee, dw * 4); /* bytes without enable */
	memcpy(p + 12 + (addr & 3), b->rd_mem + (addr - RD_BASE), to - from);
	if (fault) {
		switch (h->fault) {
		case F_UR:
		case F_CA:
			set_bits(p, 43, 3, h->fault == F_UR ? 1 : 4);
			set_bits(p, 12, 4, 2);
			set_bits(p, 30, 1, 1);
			set_bits(p, 32, 11, 0);
			dw_sent = 0;
			end = true;
			break;
		case F_POISON:
			set_bits(p, 12, 4, 1);
			set_bits(p, 46, 1, 1);
			break;
		case F_TERMINATED:
			set_bits(p, 12, 4, 3);
			set_bits(p, 30, 1, 1);
			end = true;
			break;
		case F_BYTE_COUNT:
			set_bits(p, 16, 13, h->len - from + 4);
			break;
		case F_DWORDS:
			set_bits(p, 32, 11, dw - 1);
			break;
		case F_SHORT:
			dw_sent = dw - 1;
			break;
		case F_ADDR:
			set_bits(p, 0, 12, (addr & 0xfff) ^ 4);
			break;
		case F_DISCONTINUE:
			b->rc_disc = true;
			break;
		case F_NO_DATA:
			set_bits(p, 32, 11, 0);
			set_bits(p, 30, 1, 1);
			dw_sent = 0;
			end = true;
			break;
		case F_CORE_TIMEOUT:
			memset(p, 0xa5, 12); /* but for these the fields mean nothing */
			set_bits(p, 12, 4, 9);
			set_bits(p, 30, 1, 1);
			set_bits(p, 64, 8, tag);
			dw_sent = 0;
			end = true;
			break;
		default:
			break;
		}
		h->broken = true;
		if (h->fault == F_CORE_TIMEOUT)
			b->want.cpl_timeout++;
		else
			b->want.cpl_err++;
	}
	/* what still comes of a read that has failed, or was given up, is no surprise */
	b->rc_len = 12 + dw_sent * 4;
	b->rc_pos = 0;
	h->next++;
	if (last || end) {
		h->busy = false;
		/* as good as lost: the block may send what it gave up later on */
		h->lost = h->fault == F_CORE_TIMEOUT;
		memmove(b->order + slot, b->order + slot + 1, b->norder - slot - 1);
		b->norder--;
	}
}

static void drive_rc(struct bench *b)
{
	struct axis_beat *x = &b->in.rc;
	int n;

	x->valid = false;
	if (b->rc_pos >= b->rc_len) {
		int ready[256], nready = 0;

		for (int i = 0; i < b->norder; i++) {
			if (b->tag[b->order[i]].ready > b->cycle ||
			    (b->hold_first && b->order[i] == b->hold_tag))
				continue;
			ready[nready++] = i;
			if (b->in_order || nready == b->reorder)
				break;
		}
		if (!nready || chance(b, b->rc_gap))
			return;
		build_completion(b, ready[bench_rnd(b, nready)]);
	} else if (chance(b, b->rc_gap)) {
		return;
	}
	n = min32(64, b->rc_len - b->rc_pos);
	memset(x, 0, sizeof(*x));
	for (int i = n; i < 64; i++)
		x->data[i] = 0xdd;
	memcpy(x->data, b->rc_buf + b->rc_pos, n);
	x->keep = (1u << n / 4) - 1;
	x->last = b->rc_pos + n == b->rc_len;
	x->valid = true;
	if (!b->rc_pos)
		x->user[2] = 1; /* is_sop[0], bit 64 */
	if (x->last && b->rc_disc)
		x->user[3] = 1; /* discontinue, bit 96 */
	b->rc_pos += n;
	b->rc_last_sent = b->cycle;
}

/* ---- CQ, CC, register bus, doorbells ----------------------------------------------------------
 */

void bench_host_request(struct bench *b, const struct host_request *r)
{
	struct cq_tlp *t = &b->cq_q[b->cq_tail++ % QUEUE];
	bool rd = r->type == 0, wr = r->type == 1, msg = r->type >= 12;
	bool in_qword = r->dw == 1 || (r->dw == 2 && !(r->addr & 4));
	bool no_be = r->dw == 1 && !r->first_be;
	uint8_t strb = r->dw == 2    ? r->first_be | r->last_be << 4
		       : r->addr & 4 ? r->first_be << 4
				     : r->first_be;
	uint32_t qw = r->addr >> 3 & 8191;
	bool dm = (rd || wr) && r->bar == 2 && r->addr >= DM_BAR && r->addr < DM_BAR + DM_SIZE;

	CHECK(b, b->cq_tail - b->cq_head <= QUEUE, "request queue of the test full");
	memset(t, 0, sizeof(*t));
	set_bits(t->buf, 0, 64, (0x5550000000ull + (r->bar << 24) + r->addr) & ~3ull);
	set_bits(t->buf, 64, 11, r->dw);
	set_bits(t->buf, 75, 4, r->type);
	set_bits(t->buf, 80, 16, rnd_next(&b->rng));
	set_bits(t->buf, 96, 8, rnd_next(&b->rng));
	set_bits(t->buf, 112, 3, r->bar);
	set_bits(t->buf, 115, 6, 16);
	set_bits(t->buf, 121, 3, rnd_next(&b->rng));
	set_bits(t->buf, 124, 3, rnd_next(&b->rng));
	t->bytes = 16;
	if (r->data) {
		memcpy(t->buf + 16, r->data, r->dw * 4);
		t->bytes += r->dw * 4;
	}
	t->first_be = r->first_be;
	t->last_be = r->last_be;
	t->discontinue = r->discontinue;

	if ((rd || wr) && r->bar == 0 && in_qword && !no_be && !r->discontinue) {
		struct reg_expect *e = &b->reg_q[b->reg_tail++ % QUEUE];

		e->write = wr;
		e->addr = r->addr & 0xfff8;
		e->strb = strb;
		if (wr) {
			e->data = r->dw == 2	? r->data[0] | (uint64_t)r->data[1] << 32
				  : r->addr & 4 ? (uint64_t)r->data[0] << 32
						: r->data[0];
			for (int i = 0; i < 8; i++) {
				uint64_t m = 0xffull << 8 * i;

				if (strb >> i & 1)
					b->shadow[qw] = (b->shadow[qw] & ~m) | (e->data & m);
			}
		}
	} else if (dm && wr && in_qword && !no_be && !r->discontinue) {
		const uint8_t *bytes = (const uint8_t *)(const void *)r->data;
		uint32_t at = (r->addr - DM_BAR) & ~7u;

		t->serial = ++b->bar_writes;
		for (int i = 0; i < 8; i++)
			if (strb >> i & 1)
				dm_write(b, at + i, bytes[r->dw == 2 ? i : i & 3], t->serial);
	} else if (dm) {
		b->want.mmio_bad += !no_be && !(rd && in_qword);
	} else if (wr && r->bar == 2 && r->dw == 2 && r->addr < DM_BAR && !(r->addr & 7) &&
		   strb == 0xff && !(r->addr & 0x800) && !r->discontinue) {
		struct db_expect *e = &b->db_q[b->db_tail++ % QUEUE];

		e->page = r->addr >> 12 & 1023;
		e->offset = r->addr & 0xfff;
		e->data = r->data[0] | (uint64_t)r->data[1] << 32;
	} else if (wr && r->bar == 2) {
		b->want.db_bad += !no_be;
	} else if (!msg && !(rd && r->bar == 2) && !((rd || wr) && r->bar == 0 && no_be)) {
		b->want.mmio_bad++;
	}

	if (!wr && !msg) {
		struct cpl_expect *e = &b->cpl_q[b->cpl_tail++ % QUEUE];

		memset(e, 0, sizeof(*e));
		t->cpl = e;
		e->dm = dm && in_qword && !no_be;
		e->dm_off = r->addr - DM_BAR;
		e->serial = b->bar_writes;
		e->word = e->dm || (rd && r->bar == 0 && in_qword && !no_be);
		memcpy(e->desc, t->buf, 16);
		e->first_be = r->first_be;
		e->last_be = r->last_be;
		e->dw = r->dw;
		if ((rd && r->bar == 0) || dm)
			e->kind = in_qword ? K_DATA : K_CA;
		else
			e->kind = rd && r->bar == 2 ? K_DATA : K_UR;
		e->zero = r->bar != 0 || no_be;
		e->data[0] = b->shadow[qw] >> (r->addr & 4 ? 32 : 0);
		e->data[1] = b->shadow[qw] >> 32;
		e->bytes = 4;
		if (rd || r->type == 7) {
			e->bytes =
				no_be ? 1
				      : r->dw * 4 - be_skip_first(r->first_be) -
						be_skip_last(r->dw == 1 ? r->first_be : r->last_be);
			e->lower = (r->addr & 0x7c) + (no_be ? 0 : be_skip_first(r->first_be));
		}
	}
}

static void drive_host(struct bench *b)
{
	struct axis_beat *x = &b->in.cq;

	if (!x->valid && b->cq_head != b->cq_tail && !chance(b, b->cq_gap)) {
		struct cq_tlp *t = &b->cq_q[b->cq_head % QUEUE];
		int n = min32(64, t->bytes - b->cq_pos);

		memset(x, 0, sizeof(*x));
		memset(x->data + n, 0xcc, 64 - n);
		memcpy(x->data, t->buf + b->cq_pos, n);
		x->keep = (1u << n / 4) - 1;
		x->last = b->cq_pos + n == t->bytes;
		x->valid = true;
		if (!b->cq_pos) {
			x->user[0] = t->first_be | t->last_be << 8;
			x->user[2] = 1 << 16; /* is_sop[0], bit 80 */
		}
		if (x->last && t->discontinue)
			x->user[3] = 1;
		b->cq_pos += n;
		if (x->last) {
			b->cq_pos = 0;
			b->cq_head++;
			if (t->cpl) {
				t->cpl->issued = b->cycle;
				t->cpl->behind = b->wr_accepted;
			}
		}
	}
	b->in.rq_ready = !chance(b, b->rq_stall);
	b->in.cc_ready = !chance(b, b->cc_stall);
	b->in.reg_req_ready = !chance(b, b->reg_stall);
	b->in.db_ready = !chance(b, b->db_stall);
	b->in.irq_ready = !chance(b, b->irq_stall);
	b->in.reg_rsp_valid = false;
	if (b->rsp_head != b->rsp_tail && b->rsp_q[b->rsp_head % QUEUE].ready <= b->cycle) {
		b->in.reg_rsp_valid = true;
		b->in.reg_rsp_data = b->rsp_q[b->rsp_head++ % QUEUE].data;
	}
}

static void check_completion(struct bench *b)
{
	const uint8_t *p = b->cc_buf;
	struct cpl_expect *e = &b->cpl_q[b->cpl_head % QUEUE];
	unsigned status = bits(p, 43, 3), dw = bits(p, 32, 11);
	const uint32_t *data = (const uint32_t *)(const void *)(p + 12);

	CHECK(b, b->cpl_head != b->cpl_tail, "completion nobody waits for");
	CHECK(b,
	      bits(p, 48, 16) == bits(e->desc, 80, 16) && bits(p, 64, 8) == bits(e->desc, 96, 8) &&
		      bits(p, 72, 8) == bits(e->desc, 104, 8) &&
		      bits(p, 89, 3) == bits(e->desc, 121, 3) &&
		      bits(p, 92, 3) == bits(e->desc, 124, 3),
	      "CC: requester, tag, function, TC or attributes differ from the request's");
	CHECK(b,
	      status == (e->kind == K_DATA ? 0
			 : e->kind == K_CA ? 4
					   : 1),
	      "CC: status %u", status);
	CHECK(b, bits(p, 16, 13) == e->bytes && bits(p, 0, 7) == e->lower,
	      "CC: byte count %u, lower address %u; expected %u, %u", (unsigned)bits(p, 16, 13),
	      (unsigned)bits(p, 0, 7), e->bytes, e->lower);
	CHECK(b, !bits(p, 46, 1), "CC: poisoned");
	if (e->kind != K_DATA) {
		CHECK(b, dw == 0 && b->cc_len == 32, "CC: failed completion with payload");
		CHECK(b, p[12] == (e->first_be | e->last_be << 4) && !memcmp(p + 16, e->desc, 16),
		      "CC: the failed request is not behind the descriptor");
		b->cpl_head++;
		return;
	}
	CHECK(b, b->cc_len == 12 + (int)dw * 4 && dw, "CC: %d bytes with %u dwords", b->cc_len, dw);
	skip_dropped(b);
	CHECK(b, !e->word || b->wr_sent >= e->behind,
	      "CC: the answer overtook a DMA write: %llu of %llu requests are on RQ",
	      (unsigned long long)b->wr_sent, (unsigned long long)e->behind);
	for (unsigned i = 0; e->dm && i < 4 * dw; i++) {
		uint8_t be = i < 4 ? e->first_be : e->last_be;

		/* DMA writes take effect a few cycles after they are accepted */
		CHECK(b,
		      !(be >> i % 4 & 1) || dm_right(b, e->dm_off + i, p[12 + i],
						     e->issued < 8 ? 0 : e->issued - 8, e->serial),
		      "CC: byte %u of device memory is %02x, not %02x", e->dm_off + i, p[12 + i],
		      b->dm[e->dm_off + i].past[0].value);
	}
	if (e->dm)
		b->bar_done = e->serial;
	for (unsigned i = 0; !e->dm && i < dw; i++) {
		uint32_t want = e->zero ? 0 : e->data[i];

		CHECK(b, data[i] == want, "CC: dword %u is %08x, not %08x", i, data[i], want);
	}
	e->sent_dw += dw;
	CHECK(b, e->sent_dw <= e->dw, "CC: too much data");
	if (e->sent_dw == e->dw) {
		b->cpl_head++;
		return;
	}
	/* to be continued: at a multiple of 128, the read completion boundary of an endpoint */
	CHECK(b, ((e->lower & ~3u) + dw * 4) % 128 == 0, "CC: split in the wrong place");
	e->bytes -= dw * 4 - (e->lower & 3);
	e->lower = 0;
}

static void observe_host(struct bench *b)
{
	const struct axis_beat *x = &b->out.cc;

	if (b->out.cq_ready)
		b->in.cq.valid = false;
	if (x->valid && b->in.cc_ready) {
		int lanes = __builtin_popcount(x->keep);

		CHECK(b, x->keep == (uint16_t)((1u << lanes) - 1) && (x->last || lanes == 16),
		      "CC: tkeep 0x%04x", x->keep);
		CHECK(b, (x->user[0] & 3) == (b->cc_len ? 0 : 1), "CC: is_sop wrong");
		CHECK(b, (x->user[0] >> 6 & 3) == x->last, "CC: is_eop wrong");
		CHECK(b, b->cc_len + lanes * 4 <= 12 + 128, "CC: completion too long");
		memcpy(b->cc_buf + b->cc_len, x->data, lanes * 4);
		b->cc_len += lanes * 4;
		if (x->last) {
			check_completion(b);
			b->cc_len = 0;
		}
	}
	CHECK(b, x->valid || !b->cc_len, "CC: tvalid fell within a packet");
	if (b->out.reg_req_valid && b->in.reg_req_ready) {
		struct reg_expect *e = &b->reg_q[b->reg_head % QUEUE];
		uint64_t *reg = &b->regs[b->out.reg_addr >> 3];
		uint64_t mask = 0;

		CHECK(b, b->reg_head != b->reg_tail, "register access nobody made");
		b->reg_head++;
		for (int i = 0; i < 8; i++)
			mask |= e->strb >> i & 1 ? 0xffull << 8 * i : 0;
		CHECK(b, b->out.reg_write == e->write && b->out.reg_addr == e->addr,
		      "register access: write %d, 0x%x; expected write %d, 0x%x", b->out.reg_write,
		      b->out.reg_addr, e->write, e->addr);
		if (e->write) {
			CHECK(b,
			      b->out.reg_strb == e->strb && !((b->out.reg_wdata ^ e->data) & mask),
			      "register write: strobes %02x, data %llx; expected %02x, %llx",
			      b->out.reg_strb, (unsigned long long)b->out.reg_wdata, e->strb,
			      (unsigned long long)e->data);
			*reg = (*reg & ~mask) | (b->out.reg_wdata & mask);
		} else {
			uint64_t at = b->cycle + 1 + bench_rnd(b, b->reg_stall ? 20 : 1);

			b->rsp_q[b->rsp_tail % QUEUE].data = *reg;
			b->rsp_q[b->rsp_tail++ % QUEUE].ready = at;
		}
	}
	if (b->out.db_valid && b->in.db_ready) {
		struct db_expect *e = &b->db_q[b->db_head++ % QUEUE];

		CHECK(b, b->db_head - 1 != b->db_tail, "doorbell nobody rang");
		CHECK(b,
		      b->out.db_page == e->page && b->out.db_offset == e->offset &&
			      b->out.db_data == e->data,
		      "doorbell page %u offset 0x%x data %llx; expected %u, 0x%x, %llx",
		      b->out.db_page, b->out.db_offset, (unsigned long long)b->out.db_data, e->page,
		      e->offset, (unsigned long long)e->data);
	}
	if (b->out.irq_valid && b->in.irq_ready) {
		CHECK(b, b->irq_head != b->irq_tail, "interrupt nobody asked for");
		CHECK(b, b->out.irq_vec == b->irq_q[b->irq_head % QUEUE].vec,
		      "interrupts out of order");
		skip_dropped(b);
		CHECK(b, b->wr_sent >= b->irq_q[b->irq_head % QUEUE].after,
		      "interrupt overtook a write: %llu of %llu requests are on RQ",
		      (unsigned long long)b->wr_sent,
		      (unsigned long long)b->irq_q[b->irq_head % QUEUE].after);
		b->irq_head++;
	}
	b->have.rd_tlp += b->out.rd_tlp;
	b->have.wr_tlp += b->out.wr_tlp;
	b->have.dma_drop += b->out.dma_drop;
	b->have.cpl_err += b->out.cpl_err;
	b->have.cpl_timeout += b->out.cpl_timeout;
	if (b->out.timer_armed && !b->out.timer_cycles)
		b->timer_end = b->cycle;
	if (b->out.cpl_timeout && b->cycle - b->timer_end > b->timeout_after)
		b->timeout_after = b->cycle - b->timer_end;
	if (b->out.timer_armed && b->timer_due && b->out.timer_cycles + b->cycle != b->timer_due &&
	    b->out.timer_cycles)
		CHECK(b, b->cycle >= b->timer_due, "the timer moved away before its end");
	b->timer_due = b->out.timer_armed ? b->cycle + b->out.timer_cycles : 0;
	b->have.cpl_unexpected += b->out.cpl_unexpected;
	b->have.db_bad += b->out.db_bad;
	b->have.mmio_bad += b->out.mmio_bad;
}

/* ---- a cycle ----------------------------------------------------------------------------------
 */

void bench_cycle(struct bench *b)
{
	drive_clients(b);
	drive_rc(b);
	drive_host(b);
	/* The 32 bits of time wrap early in every run. */
	b->in.cycles = (uint32_t)b->cycle - 3000;
	pcie_model_eval(b->m, &b->in, &b->out);
	CHECK(b, b->out.rc_ready, "RC stalled");
	observe_host(b);
	observe_clients(b);
	observe_read_data(b);
	observe_rq(b);
	pcie_model_edge(b->m);
	b->cycle++;
}

void bench_run(struct bench *b, uint32_t cycles)
{
	while (cycles--)
		bench_cycle(b);
}

static bool idle(const struct bench *b)
{
	for (int i = 0; i < RD_N; i++)
		if (b->rdc[i].left || b->in.rd[i].valid)
			return false;
	for (int i = 0; i < WR_N; i++)
		if (b->wrc[i].left || b->wrc[i].active)
			return false;
	return b->rd_head == b->rd_tail && !b->norder && b->rc_pos >= b->rc_len &&
	       !b->in.rc.valid && b->cq_head == b->cq_tail && !b->in.cq.valid &&
	       b->rsp_head == b->rsp_tail && !b->irq_left && !b->in.irq_req_valid && !b->out.busy;
}

void bench_drain(struct bench *b, uint32_t limit)
{
	uint64_t end = b->cycle + limit;
	int quiet = 0;

	do {
		CHECK(b, b->cycle < end,
		      "not finished after %u cycles: %u reads, %u writes, %d tags", limit,
		      b->rd_tail - b->rd_head, b->wr_tail - b->wr_head, b->norder);
		bench_cycle(b);
		/* busy was looked at before the edge: what came in with it shows a cycle later */
		quiet = idle(b) ? quiet + 1 : 0;
	} while (quiet < 2);
	bench_run(b, 4); /* pulses under way */
	skip_dropped(b);
	CHECK(b, b->wr_head == b->wr_tail, "idle, but %u writes are missing",
	      b->wr_tail - b->wr_head);
	CHECK(b,
	      b->reg_head == b->reg_tail && b->db_head == b->db_tail &&
		      b->cpl_head == b->cpl_tail && b->irq_head == b->irq_tail,
	      "idle, but accesses, doorbells, completions or interrupts are missing");
}

void bench_check_counters(struct bench *b)
{
	const struct counters *w = &b->want, *h = &b->have;

	assert_int_equal(h->rd_tlp, w->rd_tlp);
	assert_int_equal(h->wr_tlp, w->wr_tlp);
	assert_int_equal(h->dma_drop, w->dma_drop);
	assert_int_equal(h->cpl_err, w->cpl_err);
	assert_int_equal(h->cpl_timeout, w->cpl_timeout);
	assert_int_equal(h->cpl_unexpected, w->cpl_unexpected);
	assert_int_equal(h->db_bad, w->db_bad);
	assert_int_equal(h->mmio_bad, w->mmio_bad);
}
