// SPDX-License-Identifier: Apache-2.0
// Memory and devices of the embedded host.
#include "host/embedded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pcie/config_space.h"
#include "random.h"

#define PAGE		URDMA_EMBEDDED_PAGE
#define READ_TIMEOUT_NS 10000000u /* of a register read */

/* The space of permuted bus pages is this many times larger than the memory, so it has holes. */
#define SPREAD 4u

/*
 * A bus address: bits 62:40 are random, one value for each scattered page and one for all
 * contiguous memory; bit 39 marks contiguous memory; the bits below are page number and byte. Bit
 * 63 would select device memory.
 */
#define UPPER(bits) ((bits) >> 41 << 40)
#define CONTIG	    (UINT64_C(1) << 39)

struct zone {
	size_t first, n;  /* pages of the arena */
	size_t hint;	  /* lowest page that may be free */
	uint32_t *used;	  /* per page: 0: free; else pages of the allocation that begins here, or */
#define INSIDE UINT32_MAX /* a page inside an allocation */
};

struct urdma_embedded {
	struct urdma_cosim *cosim;
	struct urdma_embedded_config cfg;
	uint8_t *arena;
	size_t pages;
	struct zone scattered, contig;
	uint32_t *used;	      /* for all pages, shared by the zones */
	uint32_t *to_frame;   /* arena page of the scattered zone to bus page */
	uint32_t *from_frame; /* the inverse; UINT32_MAX: no memory there */
	size_t frames;
	uint64_t contig_bus;
	struct urdma_embedded_stats stats;
	struct urdma_embedded_dev *devs;
};

struct urdma_embedded_dev {
	struct urdma_embedded *host;
	struct urdma_embedded_dev *next;
	struct urdma_pcie *pcie;
	unsigned int nic;
	uint64_t irqs[URDMA_PCIE_MSIX_COUNT];
	urdma_embedded_irq_fn irq;
	void *irq_ctx;
};

void urdma_embedded_config_defaults(struct urdma_embedded_config *config)
{
	memset(config, 0, sizeof(*config));
	config->memory = (size_t)64 << 20;
	config->contig = (size_t)16 << 20;
	config->seed = 1;
}

/*
 * A random injection of the arena's pages into the bus pages (Fisher and Yates, the first n steps).
 */
static int scatter(struct urdma_embedded *h)
{
	struct urdma_random r = { .state = h->cfg.seed };
	uint32_t *deck;

	h->frames = h->scattered.n * SPREAD;
	deck = malloc(h->frames * sizeof(*deck));
	h->to_frame = malloc(h->scattered.n * sizeof(*h->to_frame));
	h->from_frame = malloc(h->frames * sizeof(*h->from_frame));
	if (!deck || !h->to_frame || !h->from_frame) {
		free(deck);
		return -ENOMEM;
	}
	for (size_t i = 0; i < h->frames; i++) {
		deck[i] = (uint32_t)i;
		h->from_frame[i] = UINT32_MAX;
	}
	for (size_t i = 0; i < h->scattered.n; i++) {
		size_t k = i + urdma_random_below(&r, (uint32_t)(h->frames - i));

		h->to_frame[i] = deck[k];
		h->from_frame[deck[k]] = (uint32_t)i;
		deck[k] = deck[i];
	}
	free(deck);
	h->contig_bus = UPPER(urdma_random_next(&r)) | CONTIG;
	return 0;
}

/* The bus address of a scattered page. */
static uint64_t frame_bus(const struct urdma_embedded *h, uint64_t frame)
{
	struct urdma_random r = { .state = h->cfg.seed + frame };

	return UPPER(urdma_random_next(&r)) | frame * PAGE;
}

int urdma_embedded_create(struct urdma_cosim *cosim, const struct urdma_embedded_config *config,
			  struct urdma_embedded **host)
{
	struct urdma_embedded_config def;
	struct urdma_embedded *h;
	void *arena;

	if (!config) {
		urdma_embedded_config_defaults(&def);
		config = &def;
	}
	if (config->memory < PAGE || config->memory > UINT64_C(1) << 36 ||
	    config->contig > UINT64_C(1) << 36)
		return -EINVAL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->cosim = cosim;
	h->cfg = *config;
	h->scattered.n = config->memory / PAGE;
	h->contig.first = h->scattered.n;
	h->contig.n = config->contig / PAGE;
	h->pages = h->scattered.n + h->contig.n;
	h->used = calloc(h->pages, sizeof(*h->used));
	h->scattered.used = h->used;
	h->contig.used = h->used;
	h->scattered.hint = 0;
	h->contig.hint = h->contig.first;
	arena = mmap(NULL, h->pages * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena != MAP_FAILED)
		h->arena = arena;
	if (!h->used || !h->arena || scatter(h)) {
		urdma_embedded_destroy(h);
		return -ENOMEM;
	}
	*host = h;
	return 0;
}

void urdma_embedded_destroy(struct urdma_embedded *h)
{
	if (!h)
		return;
	while (h->devs)
		urdma_embedded_detach(h->devs);
	if (h->arena)
		munmap(h->arena, h->pages * PAGE);
	free(h->used);
	free(h->to_frame);
	free(h->from_frame);
	free(h);
}

struct urdma_cosim *urdma_embedded_cosim(struct urdma_embedded *h)
{
	return h->cosim;
}

const struct urdma_embedded_stats *urdma_embedded_stats(const struct urdma_embedded *h)
{
	return &h->stats;
}

/* ---- memory -------------------------------------------------------------------------------- */

/* First fit. align is in pages, from the start of the zone. */
static void *zone_alloc(struct urdma_embedded *h, struct zone *z, size_t len, size_t align)
{
	size_t n = len ? (len + PAGE - 1) / PAGE : 1;
	size_t end = z->first + z->n;
	size_t i = z->hint;

	while (i < end && z->used[i])
		i++;
	z->hint = i;
	for (;;) {
		size_t k;

		i = z->first + (i - z->first + align - 1) / align * align;
		if (i >= end || n > end - i)
			return NULL;
		for (k = 0; k < n && !z->used[i + k]; k++)
			;
		if (k == n)
			break;
		i += k + 1;
	}
	z->used[i] = (uint32_t)n;
	for (size_t k = 1; k < n; k++)
		z->used[i + k] = INSIDE;
	memset(h->arena + i * PAGE, 0, n * PAGE);
	return h->arena + i * PAGE;
}

void *urdma_embedded_alloc(struct urdma_embedded *h, size_t len)
{
	return zone_alloc(h, &h->scattered, len, 1);
}

void *urdma_embedded_alloc_contig(struct urdma_embedded *h, size_t len, size_t align)
{
	if (align & (align - 1))
		return NULL;
	return zone_alloc(h, &h->contig, len, align > PAGE ? align / PAGE : 1);
}

void urdma_embedded_free(struct urdma_embedded *h, void *p)
{
	struct zone *z;
	size_t i, n;

	if (!p)
		return;
	i = (size_t)((uint8_t *)p - h->arena) / PAGE;
	if (i >= h->pages || !h->used[i] || h->used[i] == INSIDE)
		abort(); /* not an allocation: the test is wrong */
	n = h->used[i];
	memset(&h->used[i], 0, n * sizeof(*h->used));
	z = i >= h->contig.first ? &h->contig : &h->scattered;
	if (i < z->hint)
		z->hint = i;
}

uint64_t urdma_embedded_bus(const struct urdma_embedded *h, const void *p)
{
	size_t at = (size_t)((const uint8_t *)p - h->arena);
	size_t i = at / PAGE;

	if ((const uint8_t *)p < h->arena || i >= h->pages)
		return 0;
	if (i >= h->contig.first)
		return h->contig_bus + at - h->contig.first * PAGE;
	return frame_bus(h, h->to_frame[i]) + at % PAGE;
}

void *urdma_embedded_cpu(const struct urdma_embedded *h, uint64_t bus)
{
	uint64_t frame = (bus & (CONTIG - 1)) / PAGE;
	size_t i;

	if (bus & CONTIG) {
		if (frame >= h->contig.n || bus - h->contig_bus >= CONTIG)
			return NULL;
		i = h->contig.first + frame;
	} else {
		if (frame >= h->frames || h->from_frame[frame] == UINT32_MAX ||
		    frame_bus(h, frame) != bus - bus % PAGE)
			return NULL;
		i = h->from_frame[frame];
	}
	return h->used[i] ? h->arena + i * PAGE + bus % PAGE : NULL;
}

size_t urdma_embedded_pages(const struct urdma_embedded *h, const void *p, size_t len,
			    uint64_t *pages, size_t max)
{
	const uint8_t *at = (const uint8_t *)p - (uintptr_t)p % PAGE;
	size_t n = ((uintptr_t)p % PAGE + len + PAGE - 1) / PAGE;

	for (size_t i = 0; i < n && i < max; i++)
		pages[i] = urdma_embedded_bus(h, at + i * PAGE);
	return n;
}

/* A call does not cross a page: the root has checked the 4 KB boundary. */
static void *dma(struct urdma_embedded *h, uint64_t addr, size_t len)
{
	void *p = NULL;

	if (len && len <= PAGE && addr % PAGE + len <= PAGE)
		p = urdma_embedded_cpu(h, addr);
	if (!p) {
		h->stats.faults++;
		h->stats.fault_addr = addr;
	}
	return p;
}

static int dma_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct urdma_embedded_dev *dev = ctx;
	void *p = dma(dev->host, addr, len);

	if (!p)
		return -EFAULT;
	memcpy(buf, p, len);
	dev->host->stats.dma_reads++;
	dev->host->stats.dma_read_bytes += len;
	return 0;
}

static int dma_write(void *ctx, uint64_t addr, const void *buf, size_t len)
{
	struct urdma_embedded_dev *dev = ctx;
	void *p = dma(dev->host, addr, len);

	if (!p)
		return -EFAULT;
	memcpy(p, buf, len);
	dev->host->stats.dma_writes++;
	dev->host->stats.dma_write_bytes += len;
	return 0;
}

/* ---- devices ------------------------------------------------------------------------------- */

static int msix(void *ctx, unsigned int vector)
{
	struct urdma_embedded_dev *dev = ctx;

	dev->irqs[vector]++;
	if (dev->irq)
		dev->irq(dev->irq_ctx, dev, vector);
	return 0;
}

static const struct urdma_host_ops host_ops = {
	.dma_read = dma_read,
	.dma_write = dma_write,
	.msix = msix,
};

/* The set-up that firmware and an operating system's PCI core do before a driver's probe. */
static int enumerate(struct urdma_embedded_dev *dev)
{
	static const struct {
		unsigned int offset;
		uint32_t value;
		size_t len;
	} writes[] = {
		{ 0x10, 0xe0000000u, 4 }, /* BAR0 at 0xe0000000 */
		{ 0x14, 0, 4 },
		{ 0x18, 0xe0400000u, 4 }, /* BAR2 */
		{ 0x1c, 0, 4 },
		{ 0x20, 0xe0800000u, 4 }, /* BAR4 */
		{ 0x24, 0, 4 },
		{ 0x04, 0x0006, 2 },			  /* memory, bus master */
		{ URDMA_CONFIG_CAP_MSIX + 2, 0x8000, 2 }, /* MSI-X enable */
	};

	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		int ret = urdma_pcie_config_write(dev->pcie, writes[i].offset, &writes[i].value,
						  writes[i].len);
		if (ret)
			return ret;
	}
	urdma_pcie_use_msix_table(dev->pcie, true);
	for (unsigned int v = 0; v < URDMA_PCIE_MSIX_COUNT; v++) {
		int ret = urdma_embedded_mask(dev, v, false);

		if (ret)
			return ret;
	}
	return 0;
}

int urdma_embedded_attach(struct urdma_embedded *h, unsigned int nic,
			  struct urdma_embedded_dev **dev)
{
	struct urdma_embedded_dev *d;
	int ret;

	if (nic >= urdma_cosim_nics(h->cosim))
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->host = h;
	d->nic = nic;
	d->pcie = urdma_cosim_pcie(h->cosim, nic);
	ret = urdma_pcie_attach(d->pcie, &host_ops, d);
	if (!ret)
		ret = enumerate(d);
	if (ret) {
		free(d);
		return ret;
	}
	d->next = h->devs;
	h->devs = d;
	*dev = d;
	return 0;
}

void urdma_embedded_detach(struct urdma_embedded_dev *dev)
{
	struct urdma_embedded_dev **at;

	for (at = &dev->host->devs; *at != dev; at = &(*at)->next)
		;
	*at = dev->next;
	urdma_pcie_attach(dev->pcie, NULL, NULL);
	free(dev);
}

struct urdma_embedded *urdma_embedded_host(struct urdma_embedded_dev *dev)
{
	return dev->host;
}

struct urdma_pcie *urdma_embedded_pcie(struct urdma_embedded_dev *dev)
{
	return dev->pcie;
}

unsigned int urdma_embedded_nic(const struct urdma_embedded_dev *dev)
{
	return dev->nic;
}

int urdma_embedded_write(struct urdma_embedded_dev *dev, unsigned int bar, uint64_t offset,
			 const void *buf, size_t len)
{
	return urdma_pcie_mmio_write(dev->pcie, bar, offset, buf, len);
}

int urdma_embedded_write64(struct urdma_embedded_dev *dev, unsigned int bar, uint64_t offset,
			   uint64_t value)
{
	return urdma_pcie_mmio_write(dev->pcie, bar, offset, &value, sizeof(value));
}

/* Outlives a caller that has timed out, because the completion may still come. */
struct read_wait {
	bool done, abandoned;
	int status;
	uint64_t value;
};

static void read_done(void *arg, int status, uint64_t value)
{
	struct read_wait *w = arg;

	if (w->abandoned) {
		free(w);
		return;
	}
	w->done = true;
	w->status = status;
	w->value = value;
}

static bool read_is_done(void *arg)
{
	return ((struct read_wait *)arg)->done;
}

int urdma_embedded_read(struct urdma_embedded_dev *dev, unsigned int bar, uint64_t offset,
			void *buf, size_t len)
{
	struct urdma_cosim *c = dev->host->cosim;
	struct read_wait *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	ret = urdma_pcie_mmio_read(dev->pcie, bar, offset, len, read_done, w);
	if (ret) {
		free(w);
		return ret;
	}
	ret = urdma_cosim_run_cond(c, read_is_done, w,
				   urdma_cosim_now(c) + urdma_ns_to_cycles(READ_TIMEOUT_NS));
	if (!w->done) {
		w->abandoned = true;
		return ret ? ret : -EINTR;
	}
	if (!ret)
		ret = w->status;
	memcpy(buf, &w->value, len);
	free(w);
	return ret;
}

int urdma_embedded_read64(struct urdma_embedded_dev *dev, unsigned int bar, uint64_t offset,
			  uint64_t *value)
{
	return urdma_embedded_read(dev, bar, offset, value, sizeof(*value));
}

uint64_t urdma_embedded_irqs(const struct urdma_embedded_dev *dev, unsigned int vector)
{
	return vector < URDMA_PCIE_MSIX_COUNT ? dev->irqs[vector] : 0;
}

void urdma_embedded_on_irq(struct urdma_embedded_dev *dev, urdma_embedded_irq_fn fn, void *ctx)
{
	dev->irq = fn;
	dev->irq_ctx = ctx;
}

int urdma_embedded_mask(struct urdma_embedded_dev *dev, unsigned int vector, bool masked)
{
	uint32_t control = masked;

	if (vector >= URDMA_PCIE_MSIX_COUNT)
		return -EINVAL;
	return urdma_pcie_mmio_write(dev->pcie, 4, URDMA_MSIX_TABLE_OFFSET + vector * 16 + 12,
				     &control, sizeof(control));
}
