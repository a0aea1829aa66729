// SPDX-License-Identifier: Apache-2.0
/*
 * The PCIe root with a fake NIC that speaks PG213 streams beat by beat, without RTL. A failure
 * means that the RTL would see a link that PCI Express does not allow: wrong completions, wrong
 * order, wrong timing, or a broken TLP that goes unnoticed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pcie/config_space.h"
#include "pcie/pg213.h"
#include "pcie/root.h"
#include "random.h"
#include "seed.h"
#include "rate.h"

#define MEM_BASE UINT64_C(0x1234560000)
#define MEM_SIZE (1u << 16)
#define MAX_TLPS 8192u

/* A TLP as sent on the streams. */
struct wire_tlp {
	uint64_t cycle; /* of its last beat */
	uint32_t dw[300];
	uint32_t n_dw;
	uint32_t user[6]; /* of the first beat */
	uint64_t enabled; /* byte_en bits set, over all beats */
	uint64_t last_user_eop;
};

struct bench {
	struct urdma_pcie_config cfg;
	struct urdma_pcie *pcie;
	struct urdma_sim_in in;
	struct urdma_sim_out out;
	uint64_t now;
	uint8_t mem[MEM_SIZE];
	struct urdma_random rnd;
	/* Beats that the NIC sends. */
	struct urdma_pcie_beat *rq;
	unsigned int rq_n, rq_at, rq_cap;
	struct urdma_pcie_beat cc;
	bool irq;
	unsigned int irq_vec;
	bool hold_cq, hold_rc;
	/* What the NIC received. */
	struct wire_tlp *cq, *rcs;
	unsigned int n_cq, n_rc, cq_open, rc_open;
	/* What the host received. */
	bool no_irqs; /* msix() takes none */
	unsigned int irqs, last_vec;
	uint8_t mem_at_irq;
	uint64_t watch; /* offset in mem that msix() looks at */
	unsigned int writes;
	uint64_t write_cycle;
};

static int host_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct bench *b = ctx;

	assert_true(len >= 1 && len <= 4096 && (addr & 0xfff) + len <= 4096);
	if (addr < MEM_BASE || addr + len > MEM_BASE + MEM_SIZE)
		return -EFAULT;
	memcpy(buf, b->mem + (addr - MEM_BASE), len);
	return 0;
}

static int host_write(void *ctx, uint64_t addr, const void *buf, size_t len)
{
	struct bench *b = ctx;

	assert_true(len >= 1 && len <= 4096 && (addr & 0xfff) + len <= 4096);
	if (addr < MEM_BASE || addr + len > MEM_BASE + MEM_SIZE)
		return -EFAULT;
	memcpy(b->mem + (addr - MEM_BASE), buf, len);
	b->writes++;
	b->write_cycle = b->now;
	return 0;
}

static int host_msix(void *ctx, unsigned int vector)
{
	struct bench *b = ctx;

	if (b->no_irqs)
		return -EAGAIN;
	b->irqs++;
	b->last_vec = vector;
	b->mem_at_irq = b->mem[b->watch];
	return 0;
}

static const struct urdma_host_ops ops = {
	.dma_read = host_read,
	.dma_write = host_write,
	.msix = host_msix,
};

static void collect(struct wire_tlp *t, unsigned int *n, unsigned int *open,
		    const struct urdma_pcie_beat *beat, uint64_t now, bool rc)
{
	struct wire_tlp *w = &t[*n];
	unsigned int k = (unsigned int)__builtin_popcount(beat->keep);
	uint32_t sop = pg213_get(beat->user, rc ? PG213_RC_IS_SOP : PG213_CQ_IS_SOP);
	uint32_t eop = pg213_get(beat->user, rc ? PG213_RC_IS_EOP : PG213_CQ_IS_EOP);
	uint32_t ptr = pg213_get(beat->user, rc ? PG213_RC_EOP0_PTR : PG213_CQ_EOP0_PTR);

	assert_true(*n < MAX_TLPS);
	assert_int_equal(beat->keep, (1u << k) - 1);
	assert_true(k == 16 || beat->last);
	assert_int_equal(sop, !*open);
	assert_int_equal(eop, beat->last);
	if (beat->last)
		assert_int_equal(ptr, k - 1);
	if (!*open) {
		memset(w, 0, sizeof(*w));
		memcpy(w->user, beat->user, sizeof(w->user));
	}
	assert_true(w->n_dw + k <= 300);
	memcpy(&w->dw[w->n_dw], beat->data, k * 4);
	w->n_dw += k;
	for (unsigned int i = 0; i < 64; i++) {
		unsigned int bit = (rc ? 0 : PG213_CQ_BYTE_EN_LSB) + i;

		w->enabled += beat->user[bit / 32] >> (bit % 32) & 1;
	}
	*open = !beat->last;
	if (beat->last) {
		w->cycle = now;
		(*n)++;
	}
}

static void step(struct bench *b)
{
	urdma_pcie_advance(b->pcie, b->now);
	urdma_pcie_drive(b->pcie, &b->in);
	memset(&b->out, 0, sizeof(b->out));
	b->out.cq_ready = !b->hold_cq;
	b->out.rc_ready = !b->hold_rc;
	if (b->rq_at < b->rq_n)
		b->out.rq = b->rq[b->rq_at];
	b->out.cc = b->cc;
	b->out.irq_valid = b->irq;
	b->out.irq_vec = (uint8_t)b->irq_vec;
	urdma_pcie_sample(b->pcie, &b->in, &b->out);
	if (!b->in.rst) {
		if (b->out.rq.valid && b->in.rq_ready)
			b->rq_at++;
		if (b->out.cc.valid && b->in.cc_ready)
			b->cc.valid = 0;
		if (b->irq && b->in.irq_ready)
			b->irq = false;
		if (b->in.cq.valid && b->out.cq_ready)
			collect(b->cq, &b->n_cq, &b->cq_open, &b->in.cq, b->now, false);
		if (b->in.rc.valid && b->out.rc_ready)
			collect(b->rcs, &b->n_rc, &b->rc_open, &b->in.rc, b->now, true);
	}
	b->now++;
	urdma_pcie_set_now(b->pcie, b->now);
}

static void run(struct bench *b, unsigned int cycles)
{
	while (cycles--)
		step(b);
}

static void no_error(struct bench *b)
{
	if (urdma_pcie_error(b->pcie))
		fail_msg("%s", urdma_pcie_error(b->pcie));
}

static void run_quiet(struct bench *b)
{
	unsigned int limit = 1000000;

	while ((b->rq_at < b->rq_n || b->irq || b->cc.valid ||
		urdma_pcie_next(b->pcie) != URDMA_PCIE_NEVER) &&
	       !urdma_pcie_error(b->pcie) && limit--)
		step(b);
	no_error(b);
	assert_true(limit > 0);
}

static void bus_master(struct bench *b, bool on)
{
	uint8_t command[2] = { on ? 6 : 2, 0 };

	assert_int_equal(urdma_pcie_config_write(b->pcie, 4, command, 2), 0);
}

static struct bench *bench_new(const struct urdma_pcie_config *cfg)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	if (cfg)
		b->cfg = *cfg;
	else
		urdma_pcie_config_defaults(&b->cfg);
	b->cfg.name = "test";
	b->cq = calloc(MAX_TLPS, sizeof(*b->cq));
	b->rcs = calloc(MAX_TLPS, sizeof(*b->rcs));
	assert_true(b->cq && b->rcs);
	assert_int_equal(urdma_pcie_create(&b->cfg, &b->pcie), 0);
	assert_int_equal(urdma_pcie_attach(b->pcie, &ops, b), 0);
	bus_master(b, true);
	b->rnd.state = 12345;
	for (unsigned int i = 0; i < MEM_SIZE; i++)
		b->mem[i] = (uint8_t)urdma_random_next(&b->rnd);
	run(b, 20); /* reset */
	return b;
}

static void bench_free(struct bench *b)
{
	urdma_pcie_destroy(b->pcie);
	free(b->rq);
	free(b->cq);
	free(b->rcs);
	free(b);
}

static struct urdma_pcie_beat *rq_new_beat(struct bench *b)
{
	if (b->rq_n == b->rq_cap) {
		b->rq_cap = b->rq_cap ? 2 * b->rq_cap : 64;
		b->rq = realloc(b->rq, b->rq_cap * sizeof(*b->rq));
		assert_non_null(b->rq);
	}
	memset(&b->rq[b->rq_n], 0, sizeof(*b->rq));
	return &b->rq[b->rq_n++];
}

/* Queues a request for len bytes at addr: a read when data is NULL. Returns its first beat. */
static unsigned int rq_request(struct bench *b, uint64_t addr, uint32_t len, const uint8_t *data,
			       unsigned int tag)
{
	uint32_t head = addr & 3, dwords = (head + len + 3) / 4,
		 tail = (uint32_t)((addr + len) & 3);
	uint32_t dw[4 + 256] = { 0 }, n, at = 0;
	uint32_t first = 0xf << head & 0xf, last = tail ? 0xfu >> (4 - tail) : 0xf;
	unsigned int index = b->rq_n;

	if (!len) {
		dwords = 1;
		first = 0;
		last = 0;
	} else if (dwords == 1) {
		first &= last;
		last = 0;
	}
	pg213_set(dw, PG213_REQ_ADDR_LO, (uint32_t)addr >> 2);
	pg213_set(dw, PG213_REQ_ADDR_HI, (uint32_t)(addr >> 32));
	pg213_set(dw, PG213_REQ_DWORDS, dwords);
	pg213_set(dw, PG213_REQ_TYPE, data ? PG213_TYPE_MEM_WRITE : PG213_TYPE_MEM_READ);
	pg213_set(dw, PG213_REQ_TAG, tag);
	if (data)
		memcpy((uint8_t *)&dw[4] + head, data, len);
	n = 4 + (data ? dwords : 0);
	while (at < n) {
		struct urdma_pcie_beat *beat = rq_new_beat(b);
		uint32_t k = n - at > 16 ? 16 : n - at;

		memcpy(beat->data, dw + at, k * 4);
		beat->keep = (uint16_t)((1u << k) - 1);
		beat->valid = 1;
		if (!at) {
			pg213_set(beat->user, PG213_RQ_FIRST_BE, first);
			pg213_set(beat->user, PG213_RQ_LAST_BE, last);
			pg213_set(beat->user, PG213_RQ_IS_SOP, 1);
		}
		at += k;
		beat->last = at == n;
		if (beat->last) {
			pg213_set(beat->user, PG213_RQ_IS_EOP, 1);
			pg213_set(beat->user, PG213_RQ_EOP0_PTR, k - 1);
		}
	}
	return index;
}

/* ---- register accesses --------------------------------------------------------------------- */

static void mmio_writes(void **state)
{
	struct bench *b = bench_new(NULL);
	uint8_t data[64];

	(void)state;
	for (unsigned int i = 0; i < 64; i++)
		data[i] = (uint8_t)(0x80 + i);
	for (uint32_t off = 0; off < 64; off++) {
		for (uint32_t len = 1; len <= 64 - off; len += len < 8 ? 1 : 8) {
			const struct wire_tlp *t;
			uint32_t first, last, dwords = (off % 4 + len + 3) / 4;
			unsigned int n = b->n_cq;

			if (n > MAX_TLPS - 4)
				b->n_cq = n = 0;
			assert_int_equal(urdma_pcie_mmio_write(b->pcie, 2, 0x1340 + off, data, len),
					 0);
			run_quiet(b);
			assert_int_equal(b->n_cq, n + 1);
			t = &b->cq[n];
			assert_int_equal(pg213_get(t->dw, PG213_REQ_TYPE), PG213_TYPE_MEM_WRITE);
			assert_int_equal(pg213_get(t->dw, PG213_CQ_BAR), 2);
			assert_int_equal(pg213_get(t->dw, PG213_CQ_APERTURE), 23);
			assert_int_equal(pg213_get(t->dw, PG213_REQ_ADDR_LO) << 2 & 0x7fffff,
					 (0x1340 + off) & ~3u);
			assert_int_equal(pg213_get(t->dw, PG213_REQ_DWORDS), dwords);
			assert_int_equal(t->n_dw, 4 + dwords);
			assert_int_equal(t->enabled, len);
			assert_memory_equal((const uint8_t *)&t->dw[4] + off % 4, data, len);
			first = pg213_get(t->user, PG213_CQ_FIRST_BE);
			last = pg213_get(t->user, PG213_CQ_LAST_BE);
			assert_int_equal(__builtin_ctz(first), off % 4);
			if (dwords == 1)
				assert_int_equal(last, 0);
			assert_int_equal(__builtin_popcount(first) + __builtin_popcount(last) +
						 (dwords > 2 ? (dwords - 2) * 4 : 0),
					 len);
		}
	}
	/* Outside the BAR, across a line, in no BAR. */
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 0, URDMA_PCIE_BAR0_SIZE - 4, data, 8),
			 -EINVAL);
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 0, UINT64_MAX - 3, data, 8), -EINVAL);
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 0, 60, data, 8), -EINVAL);
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 1, 0, data, 8), -EINVAL);
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 0, 0, data, 0), -EINVAL);
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 0, 0, data, 65), -EINVAL);
	bench_free(b);
}

struct answers {
	unsigned int n;
	uint64_t value[100];
	int status[100];
};

static void answer(void *arg, int status, uint64_t value)
{
	struct answers *a = arg;

	a->value[a->n] = value;
	a->status[a->n++] = status;
}

/* Queues the completion of the CQ request t on CC. */
static void complete(struct bench *b, const struct wire_tlp *t, uint64_t value, uint32_t status)
{
	uint32_t first = pg213_get(t->user, PG213_CQ_FIRST_BE);
	uint32_t dwords = pg213_get(t->dw, PG213_REQ_DWORDS);
	uint32_t head = (uint32_t)__builtin_ctz(first);
	uint32_t len = (uint32_t)__builtin_popcount(first) +
		       (uint32_t)__builtin_popcount(pg213_get(t->user, PG213_CQ_LAST_BE)) +
		       (dwords > 2 ? (dwords - 2) * 4 : 0);
	struct urdma_pcie_beat *c = &b->cc;
	unsigned int n = status ? PG213_CC_ERROR_DW : PG213_CPL_DW + dwords;

	memset(c, 0, sizeof(*c));
	pg213_set(c->data, PG213_CC_LOWER_ADDR,
		  (pg213_get(t->dw, PG213_REQ_ADDR_LO) << 2 & 0x7f) + head);
	pg213_set(c->data, PG213_CPL_BYTES, len);
	pg213_set(c->data, PG213_CPL_DWORDS, status ? 0 : dwords);
	pg213_set(c->data, PG213_CPL_STATUS, status);
	pg213_set(c->data, PG213_CPL_REQUESTER, pg213_get(t->dw, PG213_REQ_REQUESTER));
	pg213_set(c->data, PG213_CPL_TAG, pg213_get(t->dw, PG213_REQ_TAG));
	if (!status)
		memcpy((uint8_t *)&c->data[3] + head, &value, len);
	c->keep = (uint16_t)((1u << n) - 1);
	c->last = 1;
	c->valid = 1;
	pg213_set(c->user, PG213_CC_IS_SOP, 1);
	pg213_set(c->user, PG213_CC_IS_EOP, 1);
	pg213_set(c->user, PG213_CC_EOP0_PTR, n - 1);
}

static void mmio_reads(void **state)
{
	struct bench *b = bench_new(NULL);
	struct answers a = { 0 };
	unsigned int order[40];

	(void)state;
	/* More reads than there are tags, of all sizes; the NIC answers each batch in reverse
	 * order. */
	for (unsigned int i = 0; i < 40; i++)
		assert_int_equal(
			urdma_pcie_mmio_read(b->pcie, 0, 64 * i + i % 8, 1 + i % 8 / 2, answer, &a),
			0);
	run(b, 300);
	assert_int_equal(b->n_cq, 32);
	for (unsigned int done = 0; done < 40;) {
		unsigned int n = b->n_cq;

		for (unsigned int i = done; i < n; i++)
			order[n - 1 - i + done] = i;
		for (unsigned int i = done; i < n; i++) {
			const struct wire_tlp *t = &b->cq[order[i]];

			complete(b, t, 0x1000 + order[i],
				 order[i] == 7	 ? PG213_STATUS_UR
				 : order[i] == 9 ? PG213_STATUS_CA
						 : 0);
			while (b->cc.valid)
				step(b);
			no_error(b);
		}
		run(b, 300);
		done = n;
	}
	run_quiet(b);
	assert_int_equal(a.n, 40);
	for (unsigned int i = 0; i < 40; i++) {
		uint64_t mask = ~UINT64_C(0) >> (64 - 8 * (1 + i % 8 / 2));

		if (i == 7 || i == 9) {
			assert_int_equal(a.status[i], -EIO);
		} else {
			assert_int_equal(a.status[i], 0);
			assert_true(a.value[i] == ((0x1000 + i) & mask));
		}
	}
	bench_free(b);
}

static void mmio_read_pushes_writes(void **state)
{
	struct bench *b = bench_new(NULL);
	struct answers a = { 0 };
	uint8_t byte = (uint8_t)~b->mem[100];

	(void)state;
	/* A register read is answered after a DMA write went out: the host sees the write. */
	urdma_pcie_mmio_read(b->pcie, 0, 0, 8, answer, &a);
	while (!b->n_cq)
		step(b);
	rq_request(b, MEM_BASE + 100, 1, &byte, 0);
	complete(b, &b->cq[0], 1, 0);
	while (!a.n)
		step(b);
	assert_int_equal(b->mem[100], byte);
	bench_free(b);
}

static void reset_answers_reads(void **state)
{
	struct bench *b = bench_new(NULL);
	struct answers a = { 0 };
	uint8_t byte = (uint8_t)~b->mem[5];

	(void)state;
	for (unsigned int i = 0; i < 50; i++)
		urdma_pcie_mmio_read(b->pcie, 0, 8 * i, 8, answer, &a);
	run(b, 60);
	rq_request(b, MEM_BASE + 5, 1, &byte, 0);
	run(b, 3);
	urdma_pcie_reset(b->pcie);
	assert_int_equal(a.n, 50);
	for (unsigned int i = 0; i < 50; i++)
		assert_int_equal(a.status[i], -EIO);
	run(b, 1000);
	assert_int_not_equal(b->mem[5], byte);
	assert_int_equal(a.n, 50);
	bench_free(b);
}

/* ---- DMA ----------------------------------------------------------------------------------- */

/* Checks the completions of one read; returns the number of pieces. */
static unsigned int check_read(struct bench *b, unsigned int tag, uint64_t addr, uint32_t len)
{
	uint32_t got = 0;
	unsigned int pieces = 0;
	bool done = false;

	for (unsigned int i = 0; i < b->n_rc; i++) {
		const struct wire_tlp *t = &b->rcs[i];
		uint32_t dwords = pg213_get(t->dw, PG213_CPL_DWORDS);
		uint32_t bytes = pg213_get(t->dw, PG213_CPL_BYTES);
		uint32_t lower = pg213_get(t->dw, PG213_RC_LOWER_ADDR);
		uint32_t n = (uint32_t)t->enabled;

		if (pg213_get(t->dw, PG213_CPL_TAG) != tag)
			continue;
		assert_false(done);
		assert_int_equal(pg213_get(t->dw, PG213_CPL_STATUS), 0);
		assert_int_equal(pg213_get(t->dw, PG213_RC_ERROR), 0);
		assert_int_equal(t->n_dw, 3 + dwords);
		assert_int_equal(lower, (addr + got) & 0xfff);
		assert_int_equal(bytes, len - got);
		assert_int_equal(dwords, (lower % 4 + n + 3) / 4);
		assert_true(dwords * 4 <= b->cfg.mps);
		assert_memory_equal((const uint8_t *)&t->dw[3] + lower % 4,
				    b->mem + (addr + got - MEM_BASE), n);
		got += n;
		pieces++;
		/* Pieces but the last end at the read completion boundary. */
		if (got < len)
			assert_int_equal((addr + got) % b->cfg.rcb, 0);
		done = pg213_get(t->dw, PG213_RC_DONE);
		assert_int_equal(done, got == len);
	}
	assert_true(done);
	return pieces;
}

static void reads_with(const struct urdma_pcie_config *cfg, bool expect_reorder)
{
	struct bench *b = bench_new(cfg);
	uint64_t addr[64];
	uint32_t len[64];
	unsigned int swaps = 0, extra = 0;

	for (unsigned int round = 0; round < 40; round++) {
		b->n_rc = 0;
		for (unsigned int i = 0; i < 64; i++) {
			uint32_t page = urdma_random_below(&b->rnd, MEM_SIZE / 4096) * 4096;
			uint32_t off = urdma_random_below(&b->rnd, 4096), max;

			/* A few bytes as often as many; a read spans at most MRRS, in dwords. */
			max = b->cfg.mrrs - off % 4;
			if (max > 4096 - off)
				max = 4096 - off;
			len[i] = 1 + urdma_random_below(&b->rnd, i % 2 ? max : max < 9 ? max : 9);
			addr[i] = MEM_BASE + page + off;
			rq_request(b, addr[i], len[i], NULL, (i * 37 + round) % 256);
		}
		run_quiet(b);
		for (unsigned int i = 0; i < 64; i++) {
			unsigned int n = check_read(b, (i * 37 + round) % 256, addr[i], len[i]);

			extra += n - 1;
		}
		for (unsigned int i = 1, last = 0; i < b->n_rc; i++) {
			unsigned int tag = pg213_get(b->rcs[i].dw, PG213_CPL_TAG), k;

			for (k = 0; (k * 37 + round) % 256 != tag; k++)
				;
			if (k < last)
				swaps++;
			last = k;
		}
	}
	assert_true(extra > 0);
	if (expect_reorder)
		assert_true(swaps > 100);
	else
		assert_int_equal(swaps, 0);
	bench_free(b);
}

static void reads(void **state)
{
	struct urdma_pcie_config cfg;

	(void)state;
	urdma_pcie_config_defaults(&cfg);
	reads_with(&cfg, false);
	cfg.mps = 128;
	cfg.mrrs = 4096;
	cfg.rcb = 128;
	reads_with(&cfg, false);
	cfg.mps = 512;
	cfg.mrrs = 512;
	cfg.cpl = 64;
	cfg.rcb = 64;
	reads_with(&cfg, false);
	cfg.cpl = 0;
	cfg.reorder = 1;
	cfg.seed = test_seed(7);
	cfg.stall_percent = 40;
	print_message("reordering with seed %llu\n", (unsigned long long)cfg.seed);
	reads_with(&cfg, true);
	cfg.mrrs = 4096;
	cfg.mps = 128;
	cfg.rcb = 128;
	reads_with(&cfg, true);
}

static void zero_length_read(void **state)
{
	struct bench *b = bench_new(NULL);

	(void)state;
	rq_request(b, MEM_BASE + 64, 0, NULL, 3);
	run_quiet(b);
	assert_int_equal(b->n_rc, 1);
	assert_int_equal(pg213_get(b->rcs[0].dw, PG213_CPL_DWORDS), 1);
	assert_int_equal(pg213_get(b->rcs[0].dw, PG213_CPL_BYTES), 1);
	assert_int_equal(pg213_get(b->rcs[0].dw, PG213_RC_DONE), 1);
	bench_free(b);
}

static void writes(void **state)
{
	struct bench *b = bench_new(NULL);
	uint8_t *want = malloc(MEM_SIZE), data[256];

	(void)state;
	assert_non_null(want);
	memcpy(want, b->mem, MEM_SIZE);
	for (unsigned int i = 0; i < 2000; i++) {
		uint32_t off = urdma_random_below(&b->rnd, MEM_SIZE), max = 256 - off % 4, len;

		if (max > 4096 - off % 4096)
			max = 4096 - off % 4096;
		len = 1 + urdma_random_below(&b->rnd, i % 2 ? max : max < 9 ? max : 9);
		for (uint32_t k = 0; k < len; k++)
			data[k] = (uint8_t)urdma_random_next(&b->rnd);
		memcpy(want + off, data, len);
		rq_request(b, MEM_BASE + off, len, data, 0);
	}
	run_quiet(b);
	assert_memory_equal(want, b->mem, MEM_SIZE);
	free(want);
	bench_free(b);
}

/* Byte enables with holes: one dword, or an aligned pair. */
static void sparse_writes(void **state)
{
	struct bench *b = bench_new(NULL);
	uint8_t data[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, want[8];
	unsigned int at;

	(void)state;
	memcpy(want, b->mem + 16, 8);
	at = rq_request(b, MEM_BASE + 16, 8, data, 0);
	pg213_set(b->rq[at].user, PG213_RQ_FIRST_BE, 0x5);
	pg213_set(b->rq[at].user, PG213_RQ_LAST_BE, 0xa);
	want[0] = 1;
	want[2] = 3;
	want[5] = 6;
	want[7] = 8;
	run_quiet(b);
	assert_memory_equal(b->mem + 16, want, 8);
	bench_free(b);
}

/* A read after a write to the same bytes sees it; the write lands one link delay after its last
 * beat. */
static void read_after_write(void **state)
{
	struct urdma_pcie_config cfg;

	(void)state;
	urdma_pcie_config_defaults(&cfg);
	for (unsigned int reorder = 0; reorder < 2; reorder++) {
		struct bench *b;

		cfg.reorder = (uint8_t)reorder;
		b = bench_new(&cfg);
		for (unsigned int i = 0; i < 200; i++) {
			uint8_t byte = (uint8_t)(i + 1);

			b->n_rc = 0;
			rq_request(b, MEM_BASE + 9, 1, &byte, 0);
			rq_request(b, MEM_BASE + 8, 4, NULL, i);
			run_quiet(b);
			assert_int_equal(b->n_rc, 1);
			assert_int_equal(((uint8_t *)&b->rcs[0].dw[3])[1], byte);
		}
		bench_free(b);
	}
}

static void interrupt_after_write(void **state)
{
	struct bench *b = bench_new(NULL);

	(void)state;
	for (unsigned int i = 0; i < 50; i++) {
		uint8_t data[200];

		memset(data, (int)(i + 1), sizeof(data));
		b->watch = 4096 + 199;
		for (unsigned int k = 0; k < 20; k++)
			rq_request(b, MEM_BASE + 4096, sizeof(data), data, 0);
		/* The NIC asks for an interrupt in the cycle of the last beat. */
		while (b->rq_at + 1 < b->rq_n)
			step(b);
		b->irq = true;
		b->irq_vec = i % 64;
		while (b->rq_at < b->rq_n) {
			/* irq_ready and rq_ready are one decision without random stalls. */
			step(b);
		}
		run_quiet(b);
		assert_int_equal(b->irqs, i + 1);
		assert_int_equal(b->last_vec, i % 64);
		assert_int_equal(b->mem_at_irq, i + 1);
	}
	bench_free(b);
}

static void msix_masks(void **state)
{
	struct bench *b = bench_new(NULL);
	uint32_t v = 0, pba;
	uint16_t enable = 0x8000;
	struct answers a = { 0 };

	(void)state;
	urdma_pcie_use_msix_table(b->pcie, true);
	b->irq = true;
	b->irq_vec = 5;
	run_quiet(b);
	assert_int_equal(b->irqs, 0); /* not enabled */
	urdma_pcie_config_write(b->pcie, URDMA_CONFIG_CAP_MSIX + 2, &enable, 2);
	urdma_pcie_mmio_read(b->pcie, 4, URDMA_MSIX_PBA_OFFSET, 4, answer, &a);
	run_quiet(b);
	assert_int_equal(a.n, 1);
	pba = (uint32_t)a.value[0];
	assert_int_equal(pba, 1u << 5);
	urdma_pcie_mmio_write(b->pcie, 4, URDMA_MSIX_TABLE_OFFSET + 5 * 16 + 12, &v, 4);
	assert_int_equal(b->irqs, 1); /* pending, unmasked */
	b->irq = true;
	run_quiet(b);
	assert_int_equal(b->irqs, 2);
	/* The function mask also holds vectors back, and releases them when it is cleared. */
	enable = 0xc000;
	urdma_pcie_config_write(b->pcie, URDMA_CONFIG_CAP_MSIX + 2, &enable, 2);
	b->irq = true;
	run_quiet(b);
	assert_int_equal(b->irqs, 2);
	enable = 0x8000;
	urdma_pcie_config_write(b->pcie, URDMA_CONFIG_CAP_MSIX + 2, &enable, 2);
	assert_int_equal(b->irqs, 3);
	bench_free(b);
}

static uint64_t pending_bits(struct bench *b)
{
	struct answers a = { 0 };

	assert_int_equal(urdma_pcie_mmio_read(b->pcie, 4, URDMA_MSIX_PBA_OFFSET, 8, answer, &a), 0);
	run_quiet(b);
	assert_int_equal(a.n, 1);
	return a.value[0];
}

/*
 * If the host cannot take a vector yet, it stays pending, and is sent once when the host is ready.
 */
static void msix_not_yet(void **state)
{
	struct bench *b = bench_new(NULL);

	(void)state;
	b->no_irqs = true;
	b->irq = true;
	b->irq_vec = 63;
	run_quiet(b);
	assert_true(pending_bits(b) == UINT64_C(1) << 63);
	urdma_pcie_msix_ready(b->pcie);
	assert_true(pending_bits(b) == UINT64_C(1) << 63);
	b->no_irqs = false;
	urdma_pcie_msix_ready(b->pcie);
	assert_int_equal(b->irqs, 1);
	assert_int_equal(b->last_vec, 63);
	assert_true(pending_bits(b) == 0);
	urdma_pcie_msix_ready(b->pcie);
	assert_int_equal(b->irqs, 1);
	/* A reset forgets it. */
	b->no_irqs = true;
	b->irq = true;
	run_quiet(b);
	urdma_pcie_reset(b->pcie);
	b->no_irqs = false;
	urdma_pcie_msix_ready(b->pcie);
	assert_int_equal(b->irqs, 1);
	bench_free(b);
}

/* This many register accesses wait for the RTL, and no more; BAR4 belongs to the hard block. */
static void backlog(void **state)
{
	struct urdma_pcie_config cfg;
	struct answers a = { 0 };
	struct bench *b;
	uint64_t v = 1;

	(void)state;
	urdma_pcie_config_defaults(&cfg);
	cfg.backlog = 40;
	b = bench_new(&cfg);
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(urdma_pcie_mmio_write(b->pcie, 2, 8 * i, &v, 8), 0);
		assert_int_equal(urdma_pcie_mmio_read(b->pcie, 0, 8 * i, 8, answer, &a), 0);
	}
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 2, 0, &v, 8), -EAGAIN);
	assert_int_equal(urdma_pcie_mmio_read(b->pcie, 0, 0, 8, answer, &a), -EAGAIN);
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 4, 0, &v, 8), 0);
	/* Reads that the RTL has taken do not count. */
	run(b, 300);
	assert_int_equal(b->n_cq, 40);
	assert_int_equal(urdma_pcie_mmio_write(b->pcie, 2, 0, &v, 8), 0);
	assert_int_equal(urdma_pcie_mmio_read(b->pcie, 0, 0, 8, answer, &a), 0);
	urdma_pcie_reset(b->pcie);
	assert_int_equal(a.n, 21);
	bench_free(b);
}

/* ---- timing -------------------------------------------------------------------------------- */

/* Expected end of n TLPs of `bytes` link bytes each, starting at cycle `start`. */
static uint64_t serial(uint64_t start, uint32_t mbps, uint64_t n, uint64_t bytes)
{
	__uint128_t units = (__uint128_t)n * bytes * 2000;

	return start + (uint64_t)((units + mbps - 1) / mbps);
}

static void latency(void **state)
{
	struct urdma_pcie_config cfg;

	(void)state;
	urdma_pcie_config_defaults(&cfg);
	for (unsigned int ns = 100; ns <= 2000; ns += 100) {
		struct bench *b;
		uint64_t start, expect;

		cfg.latency_ns = ns;
		b = bench_new(&cfg);
		rq_request(b, MEM_BASE, 64, NULL, 0);
		start = b->now;
		run_quiet(b);
		/* 24 bytes of request, the latency, 84 bytes of completion. */
		expect = serial(start + 1, cfg.mbps, 1, 24) + ns / 4;
		expect = serial(expect, cfg.mbps, 1, 84);
		assert_int_equal(b->rcs[0].cycle, expect + 1); /* two beats */
		bench_free(b);
	}
}

static void bandwidth(void **state)
{
	struct urdma_pcie_config cfg;
	static const uint32_t sizes[] = { 64, 128, 256, 512 };

	(void)state;
	urdma_pcie_config_defaults(&cfg);
	assert_int_equal(cfg.mbps, 115920);
	for (unsigned int s = 0; s < 4; s++) {
		struct bench *b;
		uint8_t data[512] = { 0 };
		uint64_t start, end, ideal, bound;
		uint32_t n = 2000, beats, first, counted = 0;

		cfg.mps = sizes[s] < 128 ? 128 : sizes[s];
		cfg.mrrs = 512;
		cfg.cpl = sizes[s];
		b = bench_new(&cfg);
		/* Writes: the last one lands one link delay after all have been serialized. */
		start = b->now;
		for (uint32_t i = 0; i < n; i++)
			rq_request(b, MEM_BASE + i % 64 * 512, sizes[s], data, 0);
		run_quiet(b);
		assert_int_equal(b->writes, n);
		/*
		 * The bound is either the link or the stream: without straddling, a TLP of 16 + n
		 * bytes takes whole beats. In the latter case the last TLP finds the link idle.
		 */
		beats = (16 + sizes[s] + 63) / 64;
		ideal = serial(start + beats, cfg.mbps, n, sizes[s] + 24) + 37;
		bound = serial(start + (uint64_t)beats * n, cfg.mbps, 1, sizes[s] + 24) + 37;
		assert_int_equal(b->write_cycle, ideal > bound ? ideal : bound);
		print_message("writes of %u: %.2f Gb/s\n", sizes[s],
			      (double)n * sizes[s] * 8 / (double)(b->write_cycle - 37 - start) / 4);
		/* Reads, as many in flight as there are tags: completions are the bound. */
		b->n_rc = 0;
		first = b->rq_at;
		for (uint32_t i = 0; i < n;) {
			for (unsigned int tag = 0; tag < 128 && i < n; tag++, i++)
				rq_request(b, MEM_BASE + i % 64 * 512, 512, NULL, (i & 128) | tag);
		}
		/* Tags come back in order here; a read is sent when its tag is free. */
		for (uint32_t i = 0, done; i < n;) {
			for (done = i; counted < b->n_rc; counted++)
				done += pg213_get(b->rcs[counted].dw, PG213_RC_DONE);
			if (b->rq_at - first < done + 250 || done >= n - 250) {
				step(b);
			} else {
				struct urdma_pcie_beat *hold = &b->rq[b->rq_at];

				hold->valid = 0;
				step(b);
				hold->valid = 1;
			}
			i = done;
			if (b->n_rc > MAX_TLPS - 16) {
				n = done; /* enough measured */
				break;
			}
		}
		no_error(b);
		end = b->rcs[b->n_rc - 1].cycle;
		{
			double gbps;
			uint64_t bytes = 0;
			double link = 115.92 * sizes[s] / (sizes[s] + 20);
			double stream = sizes[s] * 2.0 / ((12 + sizes[s] + 63) / 64);
			double expect = link < stream ? link : stream;

			/* From the first completion on. */
			for (unsigned int k = 1; k < b->n_rc; k++)
				bytes += b->rcs[k].enabled;
			gbps = (double)bytes * 8 / (double)(end - b->rcs[0].cycle) / 4;
			print_message("reads, completions of %u: %.2f Gb/s\n", sizes[s], gbps);
			/* Within 1 % of the calculation. */
			assert_true(gbps > expect * 0.99);
			assert_true(gbps < expect * 1.01);
		}
		bench_free(b);
	}
}

/* ---- errors -------------------------------------------------------------------------------- */

static void unmapped(void **state)
{
	struct bench *b = bench_new(NULL);
	uint8_t byte = 1;

	(void)state;
	rq_request(b, MEM_BASE - 64, 64, NULL, 9);
	rq_request(b, MEM_BASE + MEM_SIZE, 1, &byte, 0);
	run_quiet(b);
	assert_int_equal(b->n_rc, 1);
	assert_int_equal(b->rcs[0].n_dw, 3);
	assert_int_equal(pg213_get(b->rcs[0].dw, PG213_CPL_STATUS), PG213_STATUS_UR);
	assert_int_equal(pg213_get(b->rcs[0].dw, PG213_RC_ERROR), PG213_ERROR_STATUS);
	assert_int_equal(pg213_get(b->rcs[0].dw, PG213_RC_DONE), 1);
	assert_int_equal(urdma_pcie_stats(b->pcie)->read_faults, 1);
	assert_int_equal(urdma_pcie_stats(b->pcie)->write_faults, 1);
	/* The tag may be used again. Bus mastering off looks the same to the NIC. */
	bus_master(b, false);
	rq_request(b, MEM_BASE, 64, NULL, 9);
	run_quiet(b);
	assert_int_equal(b->n_rc, 2);
	assert_int_equal(pg213_get(b->rcs[1].dw, PG213_CPL_STATUS), PG213_STATUS_UR);
	assert_int_equal(b->in.cfg_bus_master_en, 0);
	bench_free(b);
}

static enum urdma_pcie_fault pick_fault(void *ctx, uint64_t addr, size_t len)
{
	(void)addr;
	(void)len;
	return *(enum urdma_pcie_fault *)ctx;
}

static void faults(void **state)
{
	enum urdma_pcie_fault fault;

	(void)state;
	for (fault = URDMA_PCIE_FAULT_UR; fault <= URDMA_PCIE_FAULT_TIMEOUT; fault++) {
		struct bench *b = bench_new(NULL);
		const struct wire_tlp *t;
		uint64_t start = b->now;

		urdma_pcie_set_fault(b->pcie, pick_fault, &fault);
		rq_request(b, MEM_BASE + 32, 512, NULL, 77); /* three pieces at MPS 256 */
		run_quiet(b);
		assert_true(b->n_rc >= 1);
		t = &b->rcs[b->n_rc - 1];
		assert_int_equal(pg213_get(t->dw, PG213_CPL_TAG), 77);
		assert_int_equal(pg213_get(t->dw, PG213_RC_DONE), 1);
		switch (fault) {
		case URDMA_PCIE_FAULT_UR:
			assert_int_equal(b->n_rc, 1);
			assert_int_equal(pg213_get(t->dw, PG213_CPL_STATUS), PG213_STATUS_UR);
			break;
		case URDMA_PCIE_FAULT_CA:
			assert_int_equal(b->n_rc, 1);
			assert_int_equal(pg213_get(t->dw, PG213_CPL_STATUS), PG213_STATUS_CA);
			break;
		case URDMA_PCIE_FAULT_CA_LATE:
			assert_int_equal(b->n_rc, 2);
			assert_int_equal(pg213_get(b->rcs[0].dw, PG213_CPL_STATUS),
					 PG213_STATUS_SC);
			assert_int_equal(pg213_get(t->dw, PG213_CPL_STATUS), PG213_STATUS_CA);
			break;
		case URDMA_PCIE_FAULT_POISON:
			assert_int_equal(b->n_rc, 3);
			assert_int_equal(pg213_get(b->rcs[0].dw, PG213_RC_ERROR),
					 PG213_ERROR_POISONED);
			assert_int_equal(pg213_get(b->rcs[0].dw, PG213_CPL_POISONED), 1);
			assert_int_equal(pg213_get(t->dw, PG213_RC_ERROR), 0);
			break;
		default:
			assert_int_equal(b->n_rc, 1);
			assert_int_equal(pg213_get(t->dw, PG213_RC_ERROR), PG213_ERROR_TIMEOUT);
			assert_true(t->cycle - start >= b->cfg.timeout_ns / 4);
		}
		bench_free(b);
	}
}

/* Each mutation of a good request has to be found and reported with the right words. */
struct mutation {
	const char *what;
	const char *expect;
	uint64_t addr;
	uint32_t len;
	bool write;
	unsigned int beat;
	bool user; /* field of tuser, otherwise of the descriptor */
	struct pg213_field field;
	uint32_t value;
};

#define F(hi, lo)                                     \
	{                                             \
		.lsb = (lo), .width = (hi) - (lo) + 1 \
	}

static const struct mutation mutations[] = {
	{ "type 2", "neither", 0, 64, false, 0, false, F(78, 75), 2 },
	{ "no dwords", "out of 1 to 1024", 0, 64, false, 0, false, F(74, 64), 0 },
	{ "too many dwords for the data", "transferred", 0, 64, true, 0, false, F(74, 64), 20 },
	{ "too few dwords for the data", "transferred", 0, 64, true, 0, false, F(74, 64), 15 },
	{ "a read longer than MRRS", "maximum read request", 0, 516, false, 0, false, F(79, 79),
	  0 },
	{ "a write longer than MPS", "maximum payload", 0, 260, true, 0, false, F(79, 79), 0 },
	{ "over 4 KB", "4 KB", 4000, 128, false, 0, false, F(79, 79), 0 },
	{ "poisoned", "poisoned", 0, 64, true, 0, false, F(79, 79), 1 },
	{ "address type", "address type", 0, 64, true, 0, false, F(1, 0), 1 },
	{ "requester ID enable", "root ports", 0, 64, true, 0, false, F(120, 120), 1 },
	{ "ECRC", "ECRC", 0, 64, true, 0, false, F(127, 127), 1 },
	{ "last_be in one dword", "last_be must be 0", 0, 4, true, 0, true, F(15, 8), 1 },
	{ "no last_be", "must not be 0", 0, 8, true, 0, true, F(15, 8), 0 },
	{ "no first_be", "must not be 0", 0, 8, true, 0, true, F(7, 0), 0 },
	{ "hole in first_be", "contiguous (first", 0, 64, true, 0, true, F(7, 0), 5 },
	{ "hole in last_be", "contiguous (last", 0, 64, true, 0, true, F(15, 8), 9 },
	{ "hole in an unaligned pair", "contiguous", 4, 8, true, 0, true, F(7, 0), 1 },
	{ "second first_be", "straddling", 0, 64, true, 0, true, F(7, 0), 0xff },
	{ "addr_offset", "addr_offset", 0, 64, true, 0, true, F(19, 16), 1 },
	{ "processing hint", "hint", 0, 64, true, 0, true, F(38, 37), 1 },
	{ "discontinue", "discontinue", 0, 64, true, 1, true, F(36, 36), 1 },
	{ "no sop", "is_sop", 0, 64, true, 0, true, F(21, 20), 0 },
	{ "sop in the second beat", "is_sop", 0, 64, true, 1, true, F(21, 20), 1 },
	{ "two sops", "is_sop", 0, 64, true, 0, true, F(21, 20), 3 },
	{ "early eop", "is_eop", 0, 64, true, 0, true, F(27, 26), 1 },
	{ "no eop", "is_eop", 0, 64, true, 1, true, F(27, 26), 0 },
	{ "wrong eop pointer", "is_eop0_ptr", 0, 64, true, 1, true, F(31, 28), 2 },
};

static void malformed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++) {
		const struct mutation *m = &mutations[i];
		struct urdma_pcie_config cfg;
		struct bench *b;
		uint8_t data[600] = { 0 };
		unsigned int at;
		const char *e;

		urdma_pcie_config_defaults(&cfg);
		cfg.mrrs = 512;
		b = bench_new(&cfg);
		at = rq_request(b, MEM_BASE + m->addr, m->len, m->write ? data : NULL, 0);
		pg213_set(m->user ? b->rq[at + m->beat].user : b->rq[at + m->beat].data, m->field,
			  m->value);
		run(b, 50);
		e = urdma_pcie_error(b->pcie);
		if (!e || !strstr(e, m->expect))
			fail_msg("%s: expected \"%s\", got \"%s\"", m->what, m->expect,
				 e ? e : "nothing");
		bench_free(b);
	}
}

static void set_sizes(struct bench *b, unsigned int mps, unsigned int mrrs)
{
	uint16_t devctl =
		(uint16_t)(urdma_config_size_code(mps) << 5 | urdma_config_size_code(mrrs) << 12);

	assert_int_equal(urdma_pcie_config_write(b->pcie, URDMA_CONFIG_CAP_PCIE + 8, &devctl, 2),
			 0);
}

/*
 * The host reduces MPS and MRRS while the NIC has TLPs in its pipeline that use the old sizes.
 * These are accepted, however often the host does so; later ones are not.
 */
static void smaller_sizes(void **state)
{
	const char *const why[2] = { "maximum read request of 512", "maximum payload of 128" };

	(void)state;
	for (unsigned int write = 0; write < 2; write++) {
		struct bench *b = bench_new(NULL);
		const uint32_t len = write ? 256 : 1024;
		uint8_t data[256] = { 0 };
		unsigned int n = 0;

		set_sizes(b, 256, 1024);
		set_sizes(b, 128, 512);
		set_sizes(b, 256, 1024);
		set_sizes(b, 128, 512);
		for (; n < 64; n++) {
			rq_request(b, MEM_BASE, len, write ? data : NULL, n);
			run_quiet(b);
		}
		while (!urdma_pcie_error(b->pcie) && n++ < 100) {
			rq_request(b, MEM_BASE, len, write ? data : NULL, n);
			run(b, 2000);
		}
		assert_non_null(urdma_pcie_error(b->pcie));
		assert_non_null(strstr(urdma_pcie_error(b->pcie), why[write]));
		bench_free(b);
	}
}

static void malformed_frames(void **state)
{
	static const struct {
		const char *expect;
		unsigned int beat;
		uint16_t keep;
		uint8_t last;
	} cases[] = {
		{ "tkeep", 0, 0xfffd, 0 }, /* hole */
		{ "tkeep", 0, 0x7fff, 0 }, /* not full */
		{ "tkeep", 1, 0, 1 },
		{ "is_eop", 0, 0xffff, 1 }, /* tlast too early */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench *b = bench_new(NULL);
		uint8_t data[64] = { 0 };
		unsigned int at = rq_request(b, MEM_BASE, 64, data, 0);

		b->rq[at + cases[i].beat].keep = cases[i].keep;
		b->rq[at + cases[i].beat].last = cases[i].last;
		run(b, 50);
		if (!urdma_pcie_error(b->pcie) ||
		    !strstr(urdma_pcie_error(b->pcie), cases[i].expect))
			fail_msg("case %zu: %s", i, urdma_pcie_error(b->pcie));
		bench_free(b);
	}
}

static void tag_in_use(void **state)
{
	struct bench *b = bench_new(NULL);

	(void)state;
	rq_request(b, MEM_BASE, 64, NULL, 200);
	rq_request(b, MEM_BASE, 64, NULL, 200);
	run(b, 300);
	assert_non_null(urdma_pcie_error(b->pcie));
	assert_non_null(strstr(urdma_pcie_error(b->pcie), "tag is in use"));
	bench_free(b);
}

static void bad_completions(void **state)
{
	static const struct {
		struct pg213_field field;
		uint32_t value;
		const char *expect;
	} cases[] = {
		{ F(71, 64), 9, "no register read" },
		{ F(28, 16), 4, "bytes" },
		{ F(42, 32), 1, "dwords" },
		{ F(6, 0), 4, "lower address" },
		{ F(63, 48), 0x1234, "requester ID" },
		{ F(45, 43), 2, "status" },
		{ F(46, 46), 1, "poisoned" },
		{ F(45, 43), 1, "dword count 0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench *b = bench_new(NULL);
		struct answers a = { 0 };

		urdma_pcie_mmio_read(b->pcie, 0, 0, 8, answer, &a);
		while (!b->n_cq)
			step(b);
		complete(b, &b->cq[0], 5, 0);
		pg213_set(b->cc.data, cases[i].field, cases[i].value);
		run(b, 5);
		if (!urdma_pcie_error(b->pcie) ||
		    !strstr(urdma_pcie_error(b->pcie), cases[i].expect))
			fail_msg("case %zu: expected \"%s\", got %s", i, cases[i].expect,
				 urdma_pcie_error(b->pcie));
		assert_int_equal(a.n, 0);
		bench_free(b);
		assert_int_equal(a.n, 1); /* aborted when the function is reset */
	}
}

/* A completion waits for a posted write in front of it that the NIC has not taken. */
static void completion_behind_posted(void **state)
{
	struct bench *b = bench_new(NULL);
	uint8_t data[8] = { 0 };

	(void)state;
	b->hold_cq = true;
	rq_request(b, MEM_BASE, 64, NULL, 1);
	urdma_pcie_mmio_write(b->pcie, 0, 0, data, 8);
	run(b, 500);
	assert_int_equal(b->n_rc, 0);
	assert_true(urdma_pcie_pending(b->pcie));
	b->hold_cq = false;
	run_quiet(b);
	assert_int_equal(b->n_rc, 1);
	assert_true(b->cq[0].cycle < b->rcs[0].cycle);
	bench_free(b);
}

/* The same stimulus twice gives the same run, beat for beat. */
static void repeatable(void **state)
{
	uint64_t sum[2] = { 0, 0 };

	(void)state;
	for (unsigned int k = 0; k < 2; k++) {
		struct urdma_pcie_config cfg;
		struct bench *b;

		urdma_pcie_config_defaults(&cfg);
		cfg.reorder = 1;
		cfg.stall_percent = 30;
		cfg.seed = test_seed(99);
		b = bench_new(&cfg);
		for (unsigned int i = 0; i < 200; i++)
			rq_request(b, MEM_BASE + i % 64 * 512, 512 - i, NULL, i);
		run_quiet(b);
		for (unsigned int i = 0; i < b->n_rc; i++)
			sum[k] = sum[k] * 31 + b->rcs[i].cycle * 7 + b->rcs[i].dw[0];
		bench_free(b);
	}
	assert_true(sum[0] == sum[1]);
}

static void bad_config(void **state)
{
	struct urdma_pcie_config cfg;
	struct urdma_pcie *p;

	(void)state;
	urdma_pcie_config_defaults(&cfg);
	cfg.mps = 300;
	assert_int_equal(urdma_pcie_create(&cfg, &p), -EINVAL);
	urdma_pcie_config_defaults(&cfg);
	cfg.rcb = 32;
	assert_int_equal(urdma_pcie_create(&cfg, &p), -EINVAL);
	urdma_pcie_config_defaults(&cfg);
	cfg.mbps = 0;
	assert_int_equal(urdma_pcie_create(&cfg, &p), -EINVAL);
	assert_int_equal(urdma_pcie_link_mbps(3, 3), 0);
	assert_int_equal(urdma_pcie_link_mbps(9, 16), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mmio_writes),
		cmocka_unit_test(mmio_reads),
		cmocka_unit_test(mmio_read_pushes_writes),
		cmocka_unit_test(reset_answers_reads),
		cmocka_unit_test(reads),
		cmocka_unit_test(zero_length_read),
		cmocka_unit_test(writes),
		cmocka_unit_test(sparse_writes),
		cmocka_unit_test(read_after_write),
		cmocka_unit_test(interrupt_after_write),
		cmocka_unit_test(msix_masks),
		cmocka_unit_test(msix_not_yet),
		cmocka_unit_test(backlog),
		cmocka_unit_test(latency),
		cmocka_unit_test(bandwidth),
		cmocka_unit_test(unmapped),
		cmocka_unit_test(faults),
		cmocka_unit_test(malformed),
		cmocka_unit_test(smaller_sizes),
		cmocka_unit_test(malformed_frames),
		cmocka_unit_test(tag_in_use),
		cmocka_unit_test(bad_completions),
		cmocka_unit_test(completion_behind_posted),
		cmocka_unit_test(repeatable),
		cmocka_unit_test(bad_config),
	};

	return cmocka_run_group_tests_name("cosim/root", tests, NULL, NULL);
}
