// SPDX-License-Identifier: Apache-2.0
#include "vfio_fake_pcie.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * assert() regardless of NDEBUG, because its checks are part of the tests. Not cmocka's, because
 * vfio_probe_device uses this file without it.
 */
#define CHECK(condition)                                                                   \
	do {                                                                               \
		if (!(condition)) {                                                        \
			fprintf(stderr, "%s:%d: '%s' does not hold\n", __FILE__, __LINE__, \
				#condition);                                               \
			abort();                                                           \
		}                                                                          \
	} while (0)

static void put64(struct urdma_pcie *p, unsigned int offset, uint64_t value)
{
	value = htole64(value);
	memcpy(p->bar0 + offset, &value, sizeof(value));
}

static uint64_t get64(const struct urdma_pcie *p, unsigned int offset)
{
	uint64_t value;

	memcpy(&value, p->bar0 + offset, sizeof(value));
	return le64toh(value);
}

static void flr(void *ctx)
{
	urdma_pcie_reset(ctx);
}

static int deliver(void *ctx, unsigned int vector)
{
	struct urdma_pcie *p = ctx;

	return p->ops ? p->ops->msix(p->ctx, vector) : 0;
}

void fake_pcie_fire(struct urdma_pcie *p, unsigned int vector)
{
	urdma_msix_fire(&p->msix, vector);
}

void urdma_pcie_msix_ready(struct urdma_pcie *p)
{
	urdma_msix_retry(&p->msix);
}

struct urdma_pcie *fake_pcie_create(void)
{
	struct urdma_pcie *p = calloc(1, sizeof(*p));

	CHECK(p);
	p->config = urdma_config_space_create(3, 16, flr, p);
	p->bar2 = calloc(1, URDMA_PCIE_BAR2_SIZE);
	CHECK(p->config && p->bar2);
	p->reads_tail = &p->reads;
	urdma_msix_init(&p->msix, p->config, deliver, p);
	put64(p, 0, FAKE_ID_VALUE);
	return p;
}

void fake_pcie_destroy(struct urdma_pcie *p)
{
	CHECK(!p->reads);
	urdma_config_space_destroy(p->config);
	free(p->bar2);
	free(p);
}

static uint8_t *bar_memory(struct urdma_pcie *p, unsigned int bar)
{
	return bar == 0 ? p->bar0 : p->bar2;
}

static void complete(struct urdma_pcie *p, struct fake_read *r)
{
	uint64_t value = 0;

	if (r->bar == 4)
		urdma_msix_read(&p->msix, r->offset, &value, r->len);
	else
		memcpy(&value, bar_memory(p, r->bar) + r->offset, r->len);
	r->done(r->arg, p->fail_reads ? -EIO : 0, le64toh(value));
	free(r);
}

unsigned int fake_pcie_run(struct urdma_pcie *p, unsigned int max)
{
	unsigned int n = 0;

	while (p->reads && n < max) {
		struct fake_read *r = p->reads;

		p->reads = r->next;
		if (!p->reads)
			p->reads_tail = &p->reads;
		p->num_reads--;
		n++;
		complete(p, r);
	}
	return n;
}

/*
 * The server must not pass anything that pcie.h does not allow: these checks are part of the tests.
 */
static void check_access(unsigned int bar, uint64_t offset, size_t len, size_t max)
{
	CHECK(bar == 0 || bar == 2 || bar == 4);
	CHECK(len >= 1 && len <= max);
	CHECK(offset < urdma_pcie_bar_size(bar) && len <= urdma_pcie_bar_size(bar) - offset);
	CHECK(offset / 64 == (offset + len - 1) / 64);
}

static void act(struct urdma_pcie *p, uint64_t offset)
{
	uint64_t address = get64(p, FAKE_DMA_ADDRESS);
	uint64_t length = get64(p, FAKE_DMA_LENGTH);
	int ret = -EFAULT;

	if (offset == FAKE_IRQ && p->ops) {
		fake_pcie_fire(p, (unsigned int)get64(p, FAKE_IRQ) % URDMA_PCIE_MSIX_COUNT);
	} else if (offset == FAKE_DMA_COMMAND) {
		if (p->ops && length >= 1 && length <= 4096) {
			if (get64(p, FAKE_DMA_COMMAND) == 1)
				ret = p->ops->dma_read(p->ctx, address, p->bar0 + FAKE_BUFFER,
						       length);
			else
				ret = p->ops->dma_write(p->ctx, address, p->bar0 + FAKE_BUFFER,
							length);
		}
		put64(p, FAKE_DMA_STATUS, ret ? 2 : 1);
	}
}

int urdma_pcie_mmio_write(struct urdma_pcie *p, unsigned int bar, uint64_t offset, const void *buf,
			  size_t len)
{
	check_access(bar, offset, len, bar == 2 ? 64 : 8);
	if (bar == 4) {
		urdma_msix_write(&p->msix, offset, buf, len);
		return 0;
	}
	if (p->full)
		return -EAGAIN;
	if (p->write_error)
		return p->write_error;
	p->writes++;
	p->last_write_bar = bar;
	p->last_write_offset = offset;
	p->last_write_len = len;
	memcpy(p->last_write, buf, len);
	memcpy(bar_memory(p, bar) + offset, buf, len);
	if (bar == 0)
		act(p, offset);
	return 0;
}

int urdma_pcie_mmio_read(struct urdma_pcie *p, unsigned int bar, uint64_t offset, size_t len,
			 urdma_mmio_read_done done, void *arg)
{
	struct fake_read *r;

	check_access(bar, offset, len, 8);
	if (p->full && bar != 4)
		return -EAGAIN;
	r = calloc(1, sizeof(*r));
	CHECK(r);
	*r = (struct fake_read){ NULL, bar, offset, len, done, arg };
	if (p->answer_at_once || bar == 4) {
		complete(p, r);
		return 0;
	}
	*p->reads_tail = r;
	p->reads_tail = &r->next;
	p->num_reads++;
	return 0;
}

int urdma_pcie_config_read(struct urdma_pcie *p, unsigned int offset, void *buf, size_t len)
{
	int ret = urdma_config_space_read(p->config, offset, buf, len);

	CHECK(ret == 0);
	return ret;
}

int urdma_pcie_config_write(struct urdma_pcie *p, unsigned int offset, const void *buf, size_t len)
{
	int ret = urdma_config_space_write(p->config, offset, buf, len);

	CHECK(ret == 0);
	return ret;
}

int urdma_pcie_reset(struct urdma_pcie *p)
{
	bool fail = p->fail_reads;

	p->resets++;
	urdma_config_space_reset(p->config);
	urdma_msix_reset(&p->msix);
	memset(p->bar0, 0, sizeof(p->bar0));
	put64(p, 0, FAKE_ID_VALUE);
	if (p->forget_reads) {
		while (p->reads) {
			struct fake_read *r = p->reads;

			p->reads = r->next;
			free(r);
		}
		p->reads_tail = &p->reads;
		p->num_reads = 0;
	}
	p->fail_reads = true;
	fake_pcie_run(p, UINT32_MAX);
	p->fail_reads = fail;
	return 0;
}

int urdma_pcie_attach(struct urdma_pcie *p, const struct urdma_host_ops *ops, void *ctx)
{
	if (ops && p->ops)
		return -EBUSY;
	CHECK(ops || p->ops);
	p->ops = ops;
	p->ctx = ctx;
	if (ops) {
		p->attaches++;
	} else {
		p->detaches++;
		urdma_pcie_reset(p);
	}
	return 0;
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
