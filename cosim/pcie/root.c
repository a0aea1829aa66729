// SPDX-License-Identifier: Apache-2.0
// PCIe root, link and integrated block. docs/cosim.md has the rules.
#include "pcie/root.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcie/config_space.h"
#include "pcie/msix.h"
#include "pcie/pg213.h"
#include "random.h"
#include "rate.h"

#define TAGS	     256u
#define MAX_PAYLOAD  1024u
#define MAX_DW	     (PG213_REQ_DW + MAX_PAYLOAD / 4)
#define RESET_CYCLES 16u
/* The block's transmit buffer: RQ and CC are stopped when the link is this many bytes behind. */
#define TX_BUFFER_BYTES 2048u
#define HOST_BDF	0x0000u /* requester of register accesses: the root complex */
#define NIC_BDF		0x0100u

enum tlp_kind { TLP_WRITE, TLP_READ, TLP_CPL, TLP_IRQ };

/*
 * A TLP in flight. Upstream (to the host): parsed. Downstream: the dwords as in the streams,
 * descriptor first.
 */
struct tlp {
	struct tlp *next;
	uint64_t arrive; /* cycle */
	enum tlp_kind kind;
	uint64_t addr;	 /* upstream: of the first dword */
	uint32_t dwords; /* upstream: of payload or request; downstream: of all */
	uint8_t first_be, last_be;
	uint8_t tag;
	uint8_t vector;
	uint8_t status;
	uint64_t posted_before; /* RC: posted requests that must be delivered first */
	uint32_t en_first,
		en_n; /* downstream: enabled bytes of the payload, counted from its start */
	uint32_t dw[MAX_DW];
};

struct tlp_queue {
	struct tlp *head, **tail;
	size_t n;
};

/* A DMA read that has not been completely answered. */
struct dma_read {
	uint64_t mature;   /* cycle at which the host's memory has answered */
	uint64_t deadline; /* TIMEOUT fault only */
	uint64_t addr;	   /* of the first byte requested */
	uint32_t len;	   /* bytes from first to last enabled one; 1 for a read of length 0 */
	uint32_t done;	   /* bytes answered */
	enum urdma_pcie_fault fault;
	bool used;
};

struct mmio_read {
	urdma_mmio_read_done done;
	void *arg;
	uint64_t addr;
	uint64_t value;
	uint8_t bar, len, dwords;
	uint8_t first_be, last_be;
	int status;
	bool complete;
	uint8_t tag;
	struct mmio_read *next;
};

/*
 * The NIC splits requests some stages before RQ. When the guest reduces a maximum size, TLPs of the
 * old size are still in the NIC's FIFOs, which hold 64 of a kind, and in the stages around them. So
 * the next CUT_AHEAD TLPs of that kind may have the old size.
 */
#define CUT_AHEAD 80u

struct size_limit {
	uint32_t before;
	unsigned int left;
};

struct urdma_pcie {
	struct urdma_pcie_config cfg;
	char name[32];
	struct urdma_config_space *cs;
	struct size_limit write_size, read_size;
	const struct urdma_host_ops *ops;
	void *ctx;
	struct urdma_random rnd;
	urdma_pcie_fault_fn fault;
	void *fault_ctx;
	void (*before_reset)(void *ctx);
	void *before_reset_ctx;
	bool in_hook;
	uint64_t now;
	uint64_t link_cycles; /* one way */
	uint64_t host_cycles; /* between the arrival of a read and its completion's departure */
	uint64_t timeout_cycles;
	uint64_t tx_buffer_cycles;
	struct urdma_rate up_rate, down_rate;
	struct tlp_queue up;	 /* to the host, in flight */
	struct tlp_queue down;	 /* to the NIC, in flight */
	struct tlp_queue cq, rc; /* arrived, waiting for the RTL */
	struct tlp *free;
	unsigned int cq_beat, rc_beat;
	uint64_t posted_arrived, posted_taken;
	struct dma_read reads[TAGS];
	uint8_t order[TAGS]; /* tags in order of arrival at the host */
	unsigned int n_order;
	unsigned int n_reads; /* tags in use, whether arrived or not */
	struct tlp *rq_tlp;   /* being received, with the descriptor in dw */
	unsigned int rq_dw;
	struct tlp *cc_tlp;
	unsigned int cc_dw;
	struct mmio_read *mmio_head, **mmio_tail; /* in order of request, the sent ones first */
	struct mmio_read *mmio_unsent;
	uint32_t mmio_tags;   /* in use, out of 32 for register reads */
	uint64_t mmio_in_rtl; /* reads accepted on CQ and not answered on CC */
	unsigned int reset_left;
	struct urdma_msix msix;
	struct urdma_pcie_stats stats;
	char error[512];
	bool failed;
};

void urdma_pcie_config_defaults(struct urdma_pcie_config *config)
{
	memset(config, 0, sizeof(*config));
	config->name = "pcie";
	config->seed = 1;
	config->gen = 3;
	config->lanes = 16;
	config->mbps = urdma_pcie_link_mbps(config->gen, config->lanes);
	config->latency_ns = 500;
	config->timeout_ns = 50000;
	config->mps = 256;
	config->mrrs = 4096;
	config->rcb = 64;
}

uint32_t urdma_pcie_link_mbps(unsigned int gen, unsigned int lanes)
{
	/* Mb/s per lane after 8b/10b (Gen1, Gen2) or 128b/130b coding. */
	static const uint32_t lane[] = { 0, 2000, 4000, 7876, 15753, 31507 };

	if (gen < 1 || gen > 5 || lanes < 1 || lanes > 32 || (lanes & (lanes - 1)))
		return 0;
	/* DLLPs and SKP ordered sets take 8 %: 126 Gb/s become 116. */
	return lane[gen] * lanes / 100 * 92;
}

uint64_t urdma_pcie_bar_size(unsigned int bar)
{
	switch (bar) {
	case 0:
		return URDMA_PCIE_BAR0_SIZE;
	case 2:
		return URDMA_PCIE_BAR2_SIZE;
	case 4:
		return URDMA_PCIE_BAR4_SIZE;
	default:
		return 0;
	}
}

static unsigned int bar_aperture(unsigned int bar)
{
	return (unsigned int)__builtin_ctzll(urdma_pcie_bar_size(bar));
}

static void __attribute__((format(printf, 2, 3))) fail(struct urdma_pcie *p, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (p->failed)
		return;
	p->failed = true;
	n = snprintf(p->error, sizeof(p->error), "%s: cycle %llu: ", p->name,
		     (unsigned long long)p->now);
	va_start(ap, fmt);
	vsnprintf(p->error + n, sizeof(p->error) - (size_t)n, fmt, ap);
	va_end(ap);
}

/* ---- queues -------------------------------------------------------------------------------- */

static void queue_init(struct tlp_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
	q->n = 0;
}

static void queue_push(struct tlp_queue *q, struct tlp *t)
{
	t->next = NULL;
	*q->tail = t;
	q->tail = &t->next;
	q->n++;
}

static struct tlp *queue_pop(struct tlp_queue *q)
{
	struct tlp *t = q->head;

	q->head = t->next;
	if (!q->head)
		q->tail = &q->head;
	q->n--;
	return t;
}

static struct tlp *tlp_get(struct urdma_pcie *p, enum tlp_kind kind)
{
	struct tlp *t = p->free;

	if (t) {
		p->free = t->next;
	} else {
		t = malloc(sizeof(*t));
		if (!t) {
			fail(p, "out of memory");
			return NULL;
		}
	}
	memset(t, 0, offsetof(struct tlp, dw));
	t->kind = kind;
	return t;
}

static void tlp_put(struct urdma_pcie *p, struct tlp *t)
{
	t->next = p->free;
	p->free = t;
}

static void queue_drop(struct urdma_pcie *p, struct tlp_queue *q)
{
	while (q->head)
		tlp_put(p, queue_pop(q));
}

static void send_up(struct urdma_pcie *p, struct tlp *t, uint32_t bytes)
{
	urdma_rate_start(&p->up_rate,
			 p->now + 1); /* what is sampled in this cycle leaves in the next */
	urdma_rate_charge(&p->up_rate, bytes);
	p->stats.to_host_bytes += bytes;
	t->arrive = urdma_rate_end(&p->up_rate) + p->link_cycles;
	queue_push(&p->up, t);
}

static void send_down(struct urdma_pcie *p, struct tlp *t, uint32_t bytes)
{
	urdma_rate_start(&p->down_rate, p->now);
	urdma_rate_charge(&p->down_rate, bytes);
	p->stats.from_host_bytes += bytes;
	t->arrive = urdma_rate_end(&p->down_rate) + p->link_cycles;
	queue_push(&p->down, t);
}

/* ---- MSI-X --------------------------------------------------------------------------------- */

static int msix_deliver(void *ctx, unsigned int vector)
{
	struct urdma_pcie *p = ctx;
	int ret = p->ops && p->ops->msix ? p->ops->msix(p->ctx, vector) : 0;

	if (!ret)
		p->stats.irqs++;
	return ret;
}

void urdma_pcie_msix_ready(struct urdma_pcie *p)
{
	urdma_msix_retry(&p->msix);
}

/* ---- configuration space, reset ------------------------------------------------------------ */

/* The settings that a host's firmware leaves in the function for the operating system. */
static void program_firmware(struct urdma_pcie *p)
{
	urdma_config_space_set_sizes(p->cs, p->cfg.mps, p->cfg.mrrs);
}

static void drop_everything(struct urdma_pcie *p)
{
	struct mmio_read *m;

	queue_drop(p, &p->up);
	queue_drop(p, &p->down);
	queue_drop(p, &p->cq);
	queue_drop(p, &p->rc);
	if (p->rq_tlp)
		tlp_put(p, p->rq_tlp);
	if (p->cc_tlp)
		tlp_put(p, p->cc_tlp);
	p->rq_tlp = NULL;
	p->cc_tlp = NULL;
	p->rq_dw = 0;
	p->cc_dw = 0;
	p->cq_beat = 0;
	p->rc_beat = 0;
	p->posted_arrived = 0;
	p->posted_taken = 0;
	memset(p->reads, 0, sizeof(p->reads));
	memset(&p->write_size, 0, sizeof(p->write_size));
	memset(&p->read_size, 0, sizeof(p->read_size));
	p->n_order = 0;
	p->n_reads = 0;
	p->mmio_unsent = NULL;
	p->mmio_tags = 0;
	p->mmio_in_rtl = 0;
	/* Waiting reads are answered, each once, before the call returns. */
	m = p->mmio_head;
	p->mmio_head = NULL;
	p->mmio_tail = &p->mmio_head;
	while (m) {
		struct mmio_read *next = m->next;

		m->done(m->arg, -EIO, ~UINT64_C(0));
		free(m);
		m = next;
	}
	urdma_rate_init(&p->up_rate, p->cfg.mbps);
	urdma_rate_init(&p->down_rate, p->cfg.mbps);
}

int urdma_pcie_reset(struct urdma_pcie *p)
{
	/* The hook may clock the NIC, but is not called recursively. */
	if (p->before_reset && !p->in_hook && !p->failed) {
		p->in_hook = true;
		p->before_reset(p->before_reset_ctx);
		p->in_hook = false;
	}
	drop_everything(p);
	urdma_config_space_reset(p->cs);
	program_firmware(p);
	urdma_msix_reset(&p->msix);
	p->reset_left = RESET_CYCLES;
	p->stats.resets++;
	return 0;
}

static void flr(void *ctx)
{
	urdma_pcie_reset(ctx);
}

int urdma_pcie_create(const struct urdma_pcie_config *config, struct urdma_pcie **pcie)
{
	struct urdma_pcie *p;
	uint64_t total;

	if (!config->mbps || !urdma_pcie_link_mbps(config->gen, config->lanes) ||
	    config->lanes > URDMA_PCIE_LANES_SUPPORTED || !config->latency_ns ||
	    config->mps < 128 || config->mps > URDMA_PCIE_MPS_SUPPORTED ||
	    (config->mps & (config->mps - 1)) || config->mrrs < 128 || config->mrrs > 4096 ||
	    (config->mrrs & (config->mrrs - 1)) || (config->rcb != 64 && config->rcb != 128) ||
	    config->stall_percent > 95 ||
	    (config->cpl && (config->cpl < config->rcb || (config->cpl & (config->cpl - 1)))))
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->cfg = *config;
	snprintf(p->name, sizeof(p->name), "%s", config->name ? config->name : "pcie");
	p->rnd.state = config->seed;
	p->cs = urdma_config_space_create(config->gen, config->lanes, flr, p);
	if (!p->cs) {
		free(p);
		return -ENOMEM;
	}
	/*
	 * 3/10 of the latency is on the link in each direction, the rest in the root complex and
	 * memory.
	 */
	total = urdma_ns_to_cycles(config->latency_ns);
	p->link_cycles = total * 3 / 10;
	p->host_cycles = total - 2 * p->link_cycles;
	p->timeout_cycles = urdma_ns_to_cycles(config->timeout_ns);
	p->tx_buffer_cycles =
		(uint64_t)TX_BUFFER_BYTES * URDMA_RATE_UNITS_PER_BYTE / config->mbps + 1;
	queue_init(&p->up);
	queue_init(&p->down);
	queue_init(&p->cq);
	queue_init(&p->rc);
	p->mmio_tail = &p->mmio_head;
	urdma_msix_init(&p->msix, p->cs, msix_deliver, p);
	urdma_pcie_reset(p);
	p->stats.resets = 0;
	*pcie = p;
	return 0;
}

void urdma_pcie_destroy(struct urdma_pcie *p)
{
	if (!p)
		return;
	drop_everything(p);
	while (p->free) {
		struct tlp *t = p->free;

		p->free = t->next;
		free(t);
	}
	urdma_config_space_destroy(p->cs);
	free(p);
}

int urdma_pcie_attach(struct urdma_pcie *p, const struct urdma_host_ops *ops, void *ctx)
{
	if (ops && p->ops)
		return -EBUSY;
	p->ops = ops; /* if NULL, no DMA from here on */
	p->ctx = ctx;
	if (!ops)
		urdma_pcie_reset(p);
	return 0;
}

int urdma_pcie_config_read(struct urdma_pcie *p, unsigned int offset, void *buf, size_t len)
{
	return urdma_config_space_read(p->cs, offset, buf, len);
}

static uint32_t mps(const struct urdma_pcie *p)
{
	return urdma_config_space_mps(p->cs);
}

static uint32_t mrrs(const struct urdma_pcie *p)
{
	return urdma_config_space_mrrs(p->cs);
}

static void size_was(struct size_limit *l, uint32_t before, uint32_t now)
{
	if (now >= before)
		return;
	if (!l->left || l->before < before)
		l->before = before;
	l->left = CUT_AHEAD;
}

/* Maximum size of the next TLP. */
static uint32_t size_limit(struct size_limit *l, uint32_t now)
{
	if (!l->left)
		return now;
	l->left--;
	return now > l->before ? now : l->before;
}

int urdma_pcie_config_write(struct urdma_pcie *p, unsigned int offset, const void *buf, size_t len)
{
	uint32_t mps_before = mps(p), mrrs_before = mrrs(p);
	int ret = urdma_config_space_write(p->cs, offset, buf, len);

	/* A reset has emptied the NIC. */
	if (!p->reset_left) {
		size_was(&p->write_size, mps_before, mps(p));
		size_was(&p->read_size, mrrs_before, mrrs(p));
	}
	/* MSI-X may have been enabled, or its function mask cleared. */
	urdma_msix_retry(&p->msix);
	return ret;
}

void urdma_pcie_set_fault(struct urdma_pcie *p, urdma_pcie_fault_fn fault, void *ctx)
{
	p->fault = fault;
	p->fault_ctx = ctx;
}

void urdma_pcie_set_before_reset(struct urdma_pcie *p, void (*fn)(void *ctx), void *ctx)
{
	p->before_reset = fn;
	p->before_reset_ctx = ctx;
}

void urdma_pcie_use_msix_table(struct urdma_pcie *p, bool use)
{
	p->msix.masks = use;
	urdma_msix_retry(&p->msix);
}

const char *urdma_pcie_error(const struct urdma_pcie *p)
{
	return p->failed ? p->error : NULL;
}

const struct urdma_pcie_stats *urdma_pcie_stats(const struct urdma_pcie *p)
{
	return &p->stats;
}

/* ---- register accesses --------------------------------------------------------------------- */

/* Byte enables of len bytes at addr. */
static void byte_enables(uint64_t addr, size_t len, uint32_t *dwords, uint8_t *first, uint8_t *last)
{
	unsigned int head = addr & 3;
	unsigned int tail = (unsigned int)((addr + len) & 3);

	*dwords = (uint32_t)((head + len + 3) / 4);
	*first = (uint8_t)((0xfu << head) & 0xf);
	*last = tail ? (uint8_t)(0xfu >> (4 - tail)) : 0xf;
	if (*dwords == 1) {
		*first &= *last;
		*last = 0;
	}
}

static void cq_descriptor(struct urdma_pcie *p, struct tlp *t, unsigned int bar, uint64_t offset,
			  size_t len, uint32_t type, uint32_t tag)
{
	uint64_t addr = urdma_config_space_bar(p->cs, bar) + offset;
	uint32_t dwords;

	byte_enables(addr, len, &dwords, &t->first_be, &t->last_be);
	memset(t->dw, 0, PG213_REQ_DW * 4);
	pg213_set(t->dw, PG213_REQ_ADDR_LO, (uint32_t)addr >> 2);
	pg213_set(t->dw, PG213_REQ_ADDR_HI, (uint32_t)(addr >> 32));
	pg213_set(t->dw, PG213_REQ_DWORDS, dwords);
	pg213_set(t->dw, PG213_REQ_TYPE, type);
	pg213_set(t->dw, PG213_REQ_REQUESTER, HOST_BDF);
	pg213_set(t->dw, PG213_REQ_TAG, tag);
	pg213_set(t->dw, PG213_CQ_BAR, bar);
	pg213_set(t->dw, PG213_CQ_APERTURE, bar_aperture(bar));
	t->dwords = PG213_REQ_DW + (type == PG213_TYPE_MEM_WRITE ? dwords : 0);
	t->en_first = addr & 3;
	t->en_n = type == PG213_TYPE_MEM_WRITE ? (uint32_t)len : 0;
}

/* Number of register accesses that the RTL has not accepted. */
static size_t backlog(const struct urdma_pcie *p)
{
	size_t n = p->down.n + p->cq.n;

	for (const struct mmio_read *m = p->mmio_unsent; m; m = m->next)
		n++;
	return n;
}

static int mmio_check(const struct urdma_pcie *p, unsigned int bar, uint64_t offset, size_t len,
		      size_t max)
{
	uint64_t size = urdma_pcie_bar_size(bar);

	if (!size || !len || len > max || offset >= size || len > size - offset ||
	    offset / 64 != (offset + len - 1) / 64)
		return -EINVAL;
	/* BAR4 belongs to the block: accesses to it do not wait for the RTL. */
	return bar != 4 && p->cfg.backlog && backlog(p) >= p->cfg.backlog ? -EAGAIN : 0;
}

int urdma_pcie_mmio_write(struct urdma_pcie *p, unsigned int bar, uint64_t offset, const void *buf,
			  size_t len)
{
	struct tlp *t;
	int ret;

	ret = mmio_check(p, bar, offset, len, 64);
	if (ret)
		return ret;
	p->stats.mmio_writes++;
	if (bar == 4) { /* the table belongs to the block */
		urdma_msix_write(&p->msix, offset, buf, len);
		return 0;
	}
	t = tlp_get(p, TLP_WRITE);
	if (!t)
		return -ENOMEM;
	cq_descriptor(p, t, bar, offset, len, PG213_TYPE_MEM_WRITE, 0);
	memset(&t->dw[PG213_REQ_DW], 0, (t->dwords - PG213_REQ_DW) * 4);
	memcpy((uint8_t *)&t->dw[PG213_REQ_DW] + t->en_first, buf, len);
	send_down(p, t, URDMA_PCIE_TLP_BYTES + (t->dwords - PG213_REQ_DW) * 4);
	return 0;
}

/* Sends register reads while there are tags. Writes may pass reads that wait for a tag. */
static void mmio_send_reads(struct urdma_pcie *p)
{
	while (p->mmio_unsent && p->mmio_tags != UINT32_MAX) {
		struct mmio_read *m = p->mmio_unsent;
		struct tlp *t;
		uint32_t dwords;

		if (m->complete) { /* of BAR4 */
			p->mmio_unsent = m->next;
			continue;
		}
		t = tlp_get(p, TLP_READ);
		if (!t)
			return;
		m->tag = (uint8_t)__builtin_ctz(~p->mmio_tags);
		p->mmio_tags |= 1u << m->tag;
		cq_descriptor(p, t, m->bar, m->addr, m->len, PG213_TYPE_MEM_READ, m->tag);
		byte_enables(m->addr, m->len, &dwords, &m->first_be, &m->last_be);
		m->dwords = (uint8_t)dwords;
		p->mmio_unsent = m->next;
		send_down(p, t, URDMA_PCIE_TLP_BYTES);
	}
}

int urdma_pcie_mmio_read(struct urdma_pcie *p, unsigned int bar, uint64_t offset, size_t len,
			 urdma_mmio_read_done done, void *arg)
{
	struct mmio_read *m;
	int ret;

	ret = mmio_check(p, bar, offset, len, 8);
	if (ret)
		return ret;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	p->stats.mmio_reads++;
	m->done = done;
	m->arg = arg;
	m->bar = (uint8_t)bar;
	m->addr = offset;
	m->len = (uint8_t)len;
	*p->mmio_tail = m;
	p->mmio_tail = &m->next;
	if (bar == 4) {
		urdma_msix_read(&p->msix, offset, &m->value, len);
		m->complete = true; /* answered in order with the others, by advance() */
		return 0;
	}
	if (!p->mmio_unsent)
		p->mmio_unsent = m;
	mmio_send_reads(p);
	return 0;
}

/* Calls back for completed reads, oldest first. */
static void mmio_answer(struct urdma_pcie *p)
{
	while (p->mmio_head && p->mmio_head->complete) {
		struct mmio_read *m = p->mmio_head;

		if (p->mmio_unsent == m)
			p->mmio_unsent = m->next;
		p->mmio_head = m->next;
		if (!p->mmio_head)
			p->mmio_tail = &p->mmio_head;
		if (m->bar != 4)
			p->mmio_tags &= ~(1u << m->tag);
		m->done(m->arg, m->status, m->value);
		free(m);
	}
	mmio_send_reads(p);
}

/* ---- RQ: requests of the NIC --------------------------------------------------------------- */

static uint32_t enabled_span(const struct tlp *t, uint32_t *skip)
{
	return pg213_enabled(t->dwords, t->first_be, t->last_be, skip);
}

/* PCI Express base specification, 2.2.5: which byte enables are allowed. */
static const char *check_byte_enables(const struct tlp *t)
{
	if (t->dwords == 1)
		return t->last_be ? "last_be must be 0 in a request of one dword" : NULL;
	if (!t->first_be || !t->last_be)
		return "first_be and last_be must not be 0 in a request of more than one dword";
	if (t->dwords == 2 && !(t->addr & 7))
		return NULL;
	if (t->first_be != 0x8 && t->first_be != 0xc && t->first_be != 0xe && t->first_be != 0xf)
		return "the enabled bytes are not contiguous (first_be)";
	if (t->last_be != 0x1 && t->last_be != 0x3 && t->last_be != 0x7 && t->last_be != 0xf)
		return "the enabled bytes are not contiguous (last_be)";
	return NULL;
}

/* Checks the descriptor and sideband of a request's first beat. */
static bool rq_first(struct urdma_pcie *p, struct tlp *t, const struct urdma_pcie_beat *b)
{
	uint32_t type = pg213_get(b->data, PG213_REQ_TYPE);
	uint32_t limit;
	const char *why;

	t->addr = ((uint64_t)pg213_get(b->data, PG213_REQ_ADDR_HI) << 32) |
		  ((uint64_t)pg213_get(b->data, PG213_REQ_ADDR_LO) << 2);
	t->dwords = pg213_get(b->data, PG213_REQ_DWORDS);
	t->tag = (uint8_t)pg213_get(b->data, PG213_REQ_TAG);
	t->first_be = (uint8_t)pg213_get(b->user, PG213_RQ_FIRST_BE);
	t->last_be = (uint8_t)pg213_get(b->user, PG213_RQ_LAST_BE);
	if (type != PG213_TYPE_MEM_READ && type != PG213_TYPE_MEM_WRITE) {
		fail(p, "RQ: request type %u is neither memory read nor memory write", type);
		return false;
	}
	t->kind = type == PG213_TYPE_MEM_READ ? TLP_READ : TLP_WRITE;
#define RQ_FAIL(fmt, ...)                                                                   \
	do {                                                                                \
		fail(p, "RQ: %s addr 0x%llx dwords %u first_be %x last_be %x tag %u: " fmt, \
		     t->kind == TLP_READ ? "read" : "write", (unsigned long long)t->addr,   \
		     t->dwords, t->first_be, t->last_be, t->tag, ##__VA_ARGS__);            \
		return false;                                                               \
	} while (0)
	limit = t->kind == TLP_READ ? size_limit(&p->read_size, mrrs(p))
				    : size_limit(&p->write_size, mps(p));
	if (!t->dwords || t->dwords > 1024)
		RQ_FAIL("dword count out of 1 to 1024");
	if (t->dwords * 4 > limit)
		RQ_FAIL("longer than the %s of %u bytes",
			t->kind == TLP_READ ? "maximum read request" : "maximum payload", limit);
	if ((t->addr & 0xfff) + t->dwords * 4 > 0x1000)
		RQ_FAIL("crosses a 4 KB boundary");
	if (t->first_be > 0xf || t->last_be > 0xf)
		RQ_FAIL("byte enables of a second TLP, but straddling is off");
	why = check_byte_enables(t);
	if (why)
		RQ_FAIL("%s", why);
	if (pg213_get(b->data, PG213_REQ_AT))
		RQ_FAIL("address type is not 0 (untranslated)");
	if (pg213_get(b->data, PG213_RQ_POISONED))
		RQ_FAIL("poisoned");
	if (pg213_get(b->data, PG213_RQ_ID_ENABLE))
		RQ_FAIL("requester ID enable is for root ports only");
	if (pg213_get(b->data, PG213_RQ_FORCE_ECRC))
		RQ_FAIL("force ECRC without ECRC");
	if (pg213_get(b->user, PG213_RQ_ADDR_OFFSET))
		RQ_FAIL("addr_offset is not 0 in dword-aligned mode");
	if (pg213_get(b->user, PG213_RQ_TPH_PRESENT))
		RQ_FAIL("a processing hint without the TPH capability");
	if (t->kind == TLP_READ && p->reads[t->tag].used)
		RQ_FAIL("the tag is in use by a read of 0x%llx, %u bytes, %u of them answered",
			(unsigned long long)p->reads[t->tag].addr, p->reads[t->tag].len,
			p->reads[t->tag].done);
#undef RQ_FAIL
	return true;
}

/*
 * Frame rules that RQ and CC share. Returns the number of dwords in the beat, 0 after a failure.
 * have: dwords of this TLP before this beat.
 */
static unsigned int check_beat(struct urdma_pcie *p, const char *stream, bool first,
			       const struct urdma_pcie_beat *b, struct pg213_field is_sop,
			       struct pg213_field sop_ptr, struct pg213_field is_eop,
			       struct pg213_field eop_ptr, struct pg213_field discontinue)
{
	unsigned int n = b->keep ? 32u - (unsigned int)__builtin_clz(b->keep) : 0;
	uint32_t sop = pg213_get(b->user, is_sop);
	uint32_t eop = pg213_get(b->user, is_eop);

	if (pg213_get(b->user, discontinue)) {
		fail(p, "%s: discontinue: the RTL gave a TLP up", stream);
		return 0;
	}
	if (!n || b->keep != (1u << n) - 1) {
		fail(p, "%s: tkeep 0x%04x has holes or is empty", stream, b->keep);
		return 0;
	}
	if (!b->last && n != URDMA_SIM_BEAT_DW) {
		fail(p, "%s: tkeep 0x%04x is not full in a beat that is not the last", stream,
		     b->keep);
		return 0;
	}
	if (sop != (first ? 1u : 0u) || (first && pg213_get(b->user, sop_ptr))) {
		fail(p, "%s: is_sop %u in the %s beat of a TLP", stream, sop,
		     first ? "first" : "second or later");
		return 0;
	}
	if (eop != (b->last ? 1u : 0u)) {
		fail(p, "%s: is_eop %u, but tlast %u", stream, eop, b->last);
		return 0;
	}
	if (b->last && pg213_get(b->user, eop_ptr) != n - 1) {
		fail(p, "%s: is_eop0_ptr %u, but tkeep ends at dword %u", stream,
		     pg213_get(b->user, eop_ptr), n - 1);
		return 0;
	}
	return n;
}

static void rq_beat(struct urdma_pcie *p, const struct urdma_pcie_beat *b)
{
	struct tlp *t = p->rq_tlp;
	uint32_t want, copy;
	unsigned int n;

	n = check_beat(p, "RQ", !t, b, PG213_RQ_IS_SOP, PG213_RQ_SOP0_PTR, PG213_RQ_IS_EOP,
		       PG213_RQ_EOP0_PTR, PG213_RQ_DISCONTINUE);
	if (!n)
		return;
	if (!t) {
		if (n < PG213_REQ_DW) {
			fail(p, "RQ: %u dwords hold no descriptor", n);
			return;
		}
		t = tlp_get(p, TLP_WRITE);
		if (!t)
			return;
		if (!rq_first(p, t, b)) {
			tlp_put(p, t);
			return;
		}
		p->rq_tlp = t;
		p->rq_dw = 0;
	}
	want = PG213_REQ_DW + (t->kind == TLP_WRITE ? t->dwords : 0);
	if (p->rq_dw + n > want || (b->last && p->rq_dw + n != want)) {
		fail(p,
		     "RQ: %s of %u dwords at 0x%llx: %u dwords transferred by the %s beat, %u "
		     "expected",
		     t->kind == TLP_READ ? "read" : "write", t->dwords, (unsigned long long)t->addr,
		     p->rq_dw + n, b->last ? "last" : "current", want);
		return;
	}
	copy = n * 4;
	memcpy(&t->dw[p->rq_dw], b->data, copy);
	p->rq_dw += n;
	if (!b->last)
		return;
	p->rq_tlp = NULL;
	if (t->kind == TLP_WRITE) {
		p->stats.rq_writes++;
		send_up(p, t, URDMA_PCIE_TLP_BYTES + t->dwords * 4);
	} else {
		struct dma_read *r = &p->reads[t->tag];
		uint32_t skip, len = enabled_span(t, &skip);

		memset(r, 0, sizeof(*r));
		r->used = true;
		r->addr = t->addr + skip;
		r->len = len ? len : 1;
		if (p->fault)
			r->fault = p->fault(p->fault_ctx, r->addr, r->len);
		p->n_reads++;
		p->stats.rq_reads++;
		p->stats.rq_read_bytes += len;
		send_up(p, t, URDMA_PCIE_TLP_BYTES);
	}
}

/* ---- CC: answers to register reads --------------------------------------------------------- */

static void cc_complete(struct urdma_pcie *p, struct tlp *t)
{
	uint32_t tag = pg213_get(t->dw, PG213_CPL_TAG);
	uint32_t status = pg213_get(t->dw, PG213_CPL_STATUS);
	uint32_t dwords = pg213_get(t->dw, PG213_CPL_DWORDS);
	uint32_t bytes = pg213_get(t->dw, PG213_CPL_BYTES);
	uint32_t lower = pg213_get(t->dw, PG213_CC_LOWER_ADDR);
	struct mmio_read *m;
	uint64_t addr;

	for (m = p->mmio_head; m && m != p->mmio_unsent; m = m->next)
		if (m->bar != 4 && m->tag == tag && !m->complete)
			break;
	if (!m || m == p->mmio_unsent) {
		fail(p, "CC: completion with tag %u, which no register read has", tag);
		return;
	}
	addr = urdma_config_space_bar(p->cs, m->bar) + m->addr;
	if (pg213_get(t->dw, PG213_CPL_REQUESTER) != HOST_BDF) {
		fail(p, "CC: tag %u: requester ID 0x%04x is not the request's 0x%04x", tag,
		     pg213_get(t->dw, PG213_CPL_REQUESTER), HOST_BDF);
		return;
	}
	if (status == PG213_STATUS_UR || status == PG213_STATUS_CA) {
		if (dwords || p->cc_dw != PG213_CC_ERROR_DW) {
			fail(p,
			     "CC: tag %u: a completion of status %u has dword count 0 and is %u "
			     "dwords long (here %u, %u)",
			     tag, status, PG213_CC_ERROR_DW, dwords, p->cc_dw);
			return;
		}
		t->status = 1;
	} else if (status != PG213_STATUS_SC) {
		fail(p, "CC: tag %u: status %u is none", tag, status);
		return;
	} else if (dwords != m->dwords || p->cc_dw != PG213_CPL_DW + dwords || bytes != m->len ||
		   lower != (addr & 0x7f)) {
		fail(p,
		     "CC: tag %u, read of %u bytes at 0x%llx: dwords %u (transferred %u, expected "
		     "%u), bytes %u (%u), lower address 0x%02x (0x%02llx)",
		     tag, m->len, (unsigned long long)addr, dwords, p->cc_dw - PG213_CPL_DW,
		     m->dwords, bytes, m->len, lower, (unsigned long long)(addr & 0x7f));
		return;
	}
	if (pg213_get(t->dw, PG213_CPL_POISONED) || pg213_get(t->dw, PG213_CC_ID_ENABLE) ||
	    pg213_get(t->dw, PG213_CPL_LOCKED)) {
		fail(p, "CC: tag %u: poisoned, locked or completer ID enable is set", tag);
		return;
	}
	p->mmio_in_rtl--;
	t->tag = (uint8_t)tag;
	t->addr = addr;
	t->dwords = dwords;
	p->cc_tlp = NULL;
	send_up(p, t, URDMA_PCIE_CPL_BYTES + dwords * 4);
}

static void cc_beat(struct urdma_pcie *p, const struct urdma_pcie_beat *b)
{
	struct tlp *t = p->cc_tlp;
	unsigned int n;

	n = check_beat(p, "CC", !t, b, PG213_CC_IS_SOP, PG213_CC_SOP0_PTR, PG213_CC_IS_EOP,
		       PG213_CC_EOP0_PTR, PG213_CC_DISCONTINUE);
	if (!n)
		return;
	/* No register read needs more than one beat. */
	if (t || !b->last || n < PG213_CPL_DW) {
		fail(p, "CC: a completion of %u dwords in a beat with tlast %u", n, b->last);
		return;
	}
	t = tlp_get(p, TLP_CPL);
	if (!t)
		return;
	memcpy(t->dw, b->data, n * 4);
	p->cc_dw = n;
	p->cc_tlp = t;
	cc_complete(p, t);
	if (p->cc_tlp) {
		tlp_put(p, t);
		p->cc_tlp = NULL;
	}
}

/* ---- arrivals ------------------------------------------------------------------------------ */

static bool host_reachable(const struct urdma_pcie *p)
{
	return p->ops && urdma_config_space_bus_master_enable(p->cs);
}

static void host_write(struct urdma_pcie *p, const struct tlp *t)
{
	const uint8_t *data = (const uint8_t *)&t->dw[PG213_REQ_DW];
	uint32_t skip, len = enabled_span(t, &skip);
	int ret = 0;

	if (!len)
		return; /* no byte enabled: a flush */
	p->stats.rq_write_bytes += len;
	if (!host_reachable(p)) {
		p->stats.write_faults++;
		return;
	}
	if (t->dwords <= 2 && (uint32_t)__builtin_popcount(t->first_be | t->last_be << 4) != len) {
		/* Holes, allowed in one dword or one aligned pair. */
		uint32_t be =
			t->dwords == 1 ? t->first_be : t->first_be | (uint32_t)t->last_be << 4;

		for (unsigned int i = 0; i < 8 && !ret; i++)
			if (be & (1u << i))
				ret = p->ops->dma_write(p->ctx, t->addr + i, data + i, 1);
	} else {
		ret = p->ops->dma_write(p->ctx, t->addr + skip, data + skip, len);
	}
	if (ret)
		p->stats.write_faults++;
}

static void mmio_complete(struct urdma_pcie *p, const struct tlp *t)
{
	struct mmio_read *m;

	for (m = p->mmio_head; m; m = m->next)
		if (m->bar != 4 && m->tag == t->tag && !m->complete)
			break;
	if (!m)
		return; /* reset in between */
	m->complete = true;
	if (t->status) {
		m->status = -EIO;
		m->value = ~UINT64_C(0);
	} else {
		memcpy(&m->value, (const uint8_t *)&t->dw[PG213_CPL_DW] + (t->addr & 3), m->len);
	}
	mmio_answer(p);
}

static void host_receive(struct urdma_pcie *p, struct tlp *t)
{
	struct dma_read *r;

	switch (t->kind) {
	case TLP_WRITE:
		host_write(p, t);
		break;
	case TLP_READ:
		r = &p->reads[t->tag];
		r->mature = t->arrive + p->host_cycles;
		if (p->cfg.reorder)
			r->mature += urdma_random_below(&p->rnd, (uint32_t)p->host_cycles + 16);
		if (r->fault == URDMA_PCIE_FAULT_TIMEOUT)
			r->mature = t->arrive + p->timeout_cycles;
		p->order[p->n_order++] = t->tag;
		break;
	case TLP_CPL:
		mmio_complete(p, t);
		break;
	case TLP_IRQ:
		urdma_msix_fire(&p->msix, t->vector);
		break;
	}
}

/* ---- completions of DMA reads -------------------------------------------------------------- */

static void rc_descriptor(struct tlp *t, unsigned int tag, uint32_t lower, uint32_t bytes,
			  uint32_t dwords, uint32_t status, uint32_t error, bool done)
{
	memset(t->dw, 0, PG213_CPL_DW * 4);
	pg213_set(t->dw, PG213_RC_LOWER_ADDR, lower);
	pg213_set(t->dw, PG213_RC_ERROR, error);
	pg213_set(t->dw, PG213_CPL_BYTES, bytes);
	pg213_set(t->dw, PG213_RC_DONE, done);
	pg213_set(t->dw, PG213_CPL_DWORDS, dwords);
	pg213_set(t->dw, PG213_CPL_STATUS, status);
	pg213_set(t->dw, PG213_CPL_POISONED, error == PG213_ERROR_POISONED);
	pg213_set(t->dw, PG213_CPL_REQUESTER, NIC_BDF);
	pg213_set(t->dw, PG213_CPL_TAG, tag);
	pg213_set(t->dw, PG213_CPL_COMPLETER, HOST_BDF);
	t->dwords = PG213_CPL_DW + dwords;
	t->tag = (uint8_t)tag;
}

/* The end of the next piece of a read. */
static uint32_t piece_length(struct urdma_pcie *p, const struct dma_read *r)
{
	uint64_t addr = r->addr + r->done;
	uint32_t left = r->len - r->done;
	uint32_t unit = p->cfg.cpl ? p->cfg.cpl : mps(p);
	uint64_t end;

	if (unit > mps(p))
		unit = mps(p);
	if (p->cfg.reorder) {
		/* A piece may end at any multiple of the boundary; MPS limits its dwords. */
		uint32_t n =
			1 + urdma_random_below(&p->rnd, unit / p->cfg.rcb ? unit / p->cfg.rcb : 1);

		end = (addr & ~(uint64_t)(p->cfg.rcb - 1)) + (uint64_t)n * p->cfg.rcb;
	} else {
		end = (addr & ~(uint64_t)(unit - 1)) + unit;
	}
	return end - addr < left ? (uint32_t)(end - addr) : left;
}

/* Sends one piece. Returns true when the read is over. */
static bool answer_piece(struct urdma_pcie *p, unsigned int tag)
{
	struct dma_read *r = &p->reads[tag];
	uint64_t addr = r->addr + r->done;
	uint32_t left = r->len - r->done;
	uint32_t status = 0, error = 0, len = 0, dwords = 0;
	struct tlp *t = tlp_get(p, TLP_CPL);
	bool done;

	if (!t)
		return true;
	if (r->fault == URDMA_PCIE_FAULT_TIMEOUT) {
		/* The block itself generates it, so it uses no link bandwidth. */
		rc_descriptor(t, tag, 0, 0, 0, 0, PG213_ERROR_TIMEOUT, true);
		urdma_rate_start(&p->down_rate, p->now);
		t->arrive = urdma_rate_end(&p->down_rate) + p->link_cycles;
		queue_push(&p->down, t);
		return true;
	}
	len = piece_length(p, r);
	if (r->fault == URDMA_PCIE_FAULT_UR)
		status = PG213_STATUS_UR;
	else if (r->fault == URDMA_PCIE_FAULT_CA ||
		 (r->fault == URDMA_PCIE_FAULT_CA_LATE && (r->done || len == left)))
		status = PG213_STATUS_CA;
	else if (!host_reachable(p))
		status = PG213_STATUS_UR;
	if (!status) {
		dwords = ((uint32_t)(addr & 3) + len + 3) / 4;
		memset(&t->dw[PG213_CPL_DW], 0, dwords * 4);
		if (p->ops->dma_read(p->ctx, addr, (uint8_t *)&t->dw[PG213_CPL_DW] + (addr & 3),
				     len))
			status = PG213_STATUS_UR;
	}
	if (status) {
		p->stats.read_faults++;
		error = PG213_ERROR_STATUS;
		len = 0;
		dwords = 0;
		done = true;
	} else {
		done = len == left;
		if (r->fault == URDMA_PCIE_FAULT_POISON && !r->done)
			error = PG213_ERROR_POISONED;
	}
	rc_descriptor(t, tag, (uint32_t)addr & 0xfff, left, dwords, status, error, done);
	t->en_first = addr & 3;
	t->en_n = len;
	r->done += len;
	p->stats.rc_bytes += len;
	send_down(p, t, URDMA_PCIE_CPL_BYTES + dwords * 4);
	return done;
}

static void order_remove(struct urdma_pcie *p, unsigned int i)
{
	p->n_order--;
	memmove(&p->order[i], &p->order[i + 1], p->n_order - i);
}

/* Sends completions until the downstream link is busy for the rest of this cycle. */
static void answer_reads(struct urdma_pcie *p)
{
	while (p->n_order && p->down_rate.cycle <= p->now) {
		unsigned int i = 0;

		if (p->cfg.reorder) {
			unsigned int n = 0;

			/* A random one of those that are ready. */
			for (unsigned int k = 0; k < p->n_order; k++)
				if (p->reads[p->order[k]].mature <= p->now &&
				    !urdma_random_below(&p->rnd, ++n))
					i = k;
			if (!n)
				return;
		} else {
			/*
			 * In order; a read that waits for its time-out does not block the others.
			 */
			while (i < p->n_order && p->reads[p->order[i]].mature > p->now) {
				if (p->reads[p->order[i]].fault != URDMA_PCIE_FAULT_TIMEOUT)
					return;
				i++;
			}
			if (i == p->n_order)
				return;
		}
		if (answer_piece(p, p->order[i]))
			order_remove(p, i);
	}
}

void urdma_pcie_set_now(struct urdma_pcie *p, uint64_t now)
{
	p->now = now;
}

void urdma_pcie_advance(struct urdma_pcie *p, uint64_t now)
{
	p->now = now;
	while (p->up.head && p->up.head->arrive <= now) {
		struct tlp *t = queue_pop(&p->up);

		host_receive(p, t);
		tlp_put(p, t);
	}
	if (p->mmio_head && p->mmio_head->complete)
		mmio_answer(p);
	answer_reads(p);
	while (p->down.head && p->down.head->arrive <= now) {
		struct tlp *t = queue_pop(&p->down);

		if (t->kind == TLP_CPL) {
			t->posted_before = p->posted_arrived;
			queue_push(&p->rc, t);
		} else {
			if (t->kind == TLP_WRITE)
				p->posted_arrived++;
			queue_push(&p->cq, t);
		}
	}
}

/* ---- streams to the RTL -------------------------------------------------------------------- */

/* Drives one beat of t; returns false if it is the last one. hdr: dwords of descriptor. */
static void make_beat(const struct tlp *t, unsigned int beat, unsigned int hdr,
		      struct urdma_pcie_beat *b, unsigned int en_word)
{
	unsigned int at = beat * URDMA_SIM_BEAT_DW;
	unsigned int n = t->dwords - at;
	uint64_t en = 0;
	int64_t lo, hi;

	b->last = n <= URDMA_SIM_BEAT_DW;
	if (n > URDMA_SIM_BEAT_DW)
		n = URDMA_SIM_BEAT_DW;
	memset(b->data, 0, sizeof(b->data));
	memset(b->user, 0, sizeof(b->user));
	memcpy(b->data, &t->dw[at], n * 4);
	b->keep = (uint16_t)((1u << n) - 1);
	b->valid = 1;
	/* Enabled payload bytes in this beat, as lanes lo to hi - 1. */
	lo = (int64_t)hdr * 4 + t->en_first - (int64_t)at * 4;
	hi = lo + t->en_n;
	if (lo < 0)
		lo = 0;
	if (hi > 64)
		hi = 64;
	if (hi > lo) {
		en = hi - lo == 64 ? ~UINT64_C(0) : ((UINT64_C(1) << (hi - lo)) - 1) << lo;
		b->user[en_word / 32] |= (uint32_t)(en << (en_word % 32));
		b->user[en_word / 32 + 1] |= (uint32_t)(en >> (32 - en_word % 32));
		if (en_word % 32)
			b->user[en_word / 32 + 2] |= (uint32_t)(en >> (64 - en_word % 32));
	}
}

static bool up_has_room(const struct urdma_pcie *p)
{
	return p->up_rate.cycle < p->now + p->tx_buffer_cycles;
}

/* Depends only on the cycle, not on earlier draws, so skipping cycles does not change it. */
static bool stalled(const struct urdma_pcie *p, unsigned int stream)
{
	struct urdma_random r = { .state = p->cfg.seed ^ (p->now * 4 + stream) };

	return p->cfg.stall_percent && urdma_random_below(&r, 100) < p->cfg.stall_percent;
}

void urdma_pcie_drive(struct urdma_pcie *p, struct urdma_sim_in *in)
{
	bool room = up_has_room(p);
	struct tlp *t;

	in->rst = p->reset_left != 0;
	in->cq.valid = 0;
	in->rc.valid = 0;
	in->cfg_max_payload = (uint8_t)urdma_config_size_code(mps(p));
	in->cfg_max_read_req = (uint8_t)urdma_config_size_code(mrrs(p));
	in->cfg_bus_master_en = urdma_config_space_bus_master_enable(p->cs);
	in->rq_ready = room && !stalled(p, 0);
	in->cc_ready = room && !stalled(p, 1);
	in->irq_ready = room && !stalled(p, 2);
	if (in->rst) {
		in->rq_ready = 0;
		in->cc_ready = 0;
		in->irq_ready = 0;
		return;
	}
	t = p->cq.head;
	if (t) {
		make_beat(t, p->cq_beat, PG213_REQ_DW, &in->cq, PG213_CQ_BYTE_EN_LSB);
		if (!p->cq_beat) {
			pg213_set(in->cq.user, PG213_CQ_FIRST_BE, t->first_be);
			pg213_set(in->cq.user, PG213_CQ_LAST_BE, t->last_be);
			pg213_set(in->cq.user, PG213_CQ_IS_SOP, 1);
		}
		if (in->cq.last) {
			pg213_set(in->cq.user, PG213_CQ_IS_EOP, 1);
			pg213_set(in->cq.user, PG213_CQ_EOP0_PTR,
				  (t->dwords - 1) % URDMA_SIM_BEAT_DW);
		}
	}
	t = p->rc.head;
	/* A completion does not pass a posted request that arrived before it. */
	if (t && p->posted_taken >= t->posted_before) {
		make_beat(t, p->rc_beat, PG213_CPL_DW, &in->rc, 0);
		if (!p->rc_beat)
			pg213_set(in->rc.user, PG213_RC_IS_SOP, 1);
		if (in->rc.last) {
			pg213_set(in->rc.user, PG213_RC_IS_EOP, 1);
			pg213_set(in->rc.user, PG213_RC_EOP0_PTR,
				  (t->dwords - 1) % URDMA_SIM_BEAT_DW);
		}
	}
}

bool urdma_pcie_sample(struct urdma_pcie *p, const struct urdma_sim_in *in,
		       const struct urdma_sim_out *out)
{
	bool moved = false;
	struct tlp *t;

	if (in->rst) {
		if (p->reset_left)
			p->reset_left--;
		return true;
	}
	if (out->rq.valid && !in->rq_ready)
		p->stats.rq_stalled++;
	if (in->rc.valid && !out->rc_ready)
		p->stats.rc_stalled++;
	/*
	 * RQ before CC and irq: transfers of the same cycle leave in this order, so an interrupt
	 * and the answer to a register read stay behind the writes.
	 */
	if (out->rq.valid && in->rq_ready) {
		rq_beat(p, &out->rq);
		moved = true;
	}
	if (out->cc.valid && in->cc_ready) {
		cc_beat(p, &out->cc);
		moved = true;
	}
	if (out->irq_valid && in->irq_ready) {
		t = tlp_get(p, TLP_IRQ);
		if (t) {
			t->vector = out->irq_vec % URDMA_PCIE_MSIX_COUNT;
			send_up(p, t, URDMA_PCIE_TLP_BYTES + 4);
		}
		moved = true;
	}
	if (in->cq.valid && out->cq_ready) {
		p->cq_beat++;
		if (in->cq.last) {
			t = queue_pop(&p->cq);
			if (t->kind == TLP_WRITE)
				p->posted_taken++;
			else
				p->mmio_in_rtl++;
			tlp_put(p, t);
			p->cq_beat = 0;
		}
		moved = true;
	}
	if (in->rc.valid && out->rc_ready) {
		p->rc_beat++;
		if (in->rc.last) {
			t = queue_pop(&p->rc);
			p->stats.rc_tlps++;
			if (pg213_get(t->dw, PG213_RC_DONE)) {
				p->reads[t->tag].used = false;
				p->n_reads--;
			}
			tlp_put(p, t);
			p->rc_beat = 0;
		}
		moved = true;
	}
	return moved;
}

uint64_t urdma_pcie_next(const struct urdma_pcie *p)
{
	uint64_t next = URDMA_PCIE_NEVER;
	uint64_t mature = URDMA_PCIE_NEVER;

	if (p->cq.head || p->rc.head || p->rq_tlp || p->reset_left || p->mmio_in_rtl ||
	    (p->mmio_head && p->mmio_head->complete))
		return 0;
	if (p->up.head)
		next = p->up.head->arrive;
	if (p->down.head && p->down.head->arrive < next)
		next = p->down.head->arrive;
	for (unsigned int i = 0; i < p->n_order; i++)
		if (p->reads[p->order[i]].mature < mature)
			mature = p->reads[p->order[i]].mature;
	if (mature != URDMA_PCIE_NEVER) {
		if (mature < p->down_rate.cycle)
			mature = p->down_rate.cycle;
		if (mature < next)
			next = mature;
	}
	return next;
}

bool urdma_pcie_reset_ends(const struct urdma_pcie *p)
{
	return p->reset_left == 1;
}

bool urdma_pcie_in_reset(const struct urdma_pcie *p)
{
	return p->reset_left != 0;
}

bool urdma_pcie_pending(const struct urdma_pcie *p)
{
	return p->cq.head || p->rc.head || p->rq_tlp || p->mmio_in_rtl;
}

void urdma_pcie_describe(const struct urdma_pcie *p, char *buf, size_t len)
{
	snprintf(buf, len,
		 "%s: CQ %zu waiting (beat %u), RC %zu waiting (beat %u), register reads in the "
		 "NIC %llu, DMA reads in flight %u, RQ %s, upstream in flight %zu, downstream in "
		 "flight %zu",
		 p->name, p->cq.n, p->cq_beat, p->rc.n, p->rc_beat,
		 (unsigned long long)p->mmio_in_rtl, p->n_reads,
		 p->rq_tlp ? "in the middle of a TLP" : "between TLPs", p->up.n, p->down.n);
}
