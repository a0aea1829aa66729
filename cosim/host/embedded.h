/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded host: a minimal computer with memory, in the same process as the NICs. Tests,
 * benchmarks and fuzzers use it; runs are reproducible to the cycle.
 *
 * Memory. C code sees the host's arena as one piece (urdma_embedded_alloc() returns plain
 * pointers). The NIC sees it as pages of 4 KB at bus addresses of 63 bits, the most that the
 * contract allows. A seeded permutation scatters the pages of ordinary allocations: neighbours in
 * the arena are almost never neighbours on the bus, so a test must use the page list. The upper
 * bits of their addresses are also random, so an address that loses a bit maps to no memory. Memory
 * from urdma_embedded_alloc_contig() is contiguous on the bus and has the requested alignment. The
 * NIC can access only allocated pages; any other access is an unsupported request and is counted.
 *
 * Devices. A host may have any number of NICs of one urdma_cosim; each keeps its own interrupt
 * counters. Attaching enables memory decoding, bus mastering and MSI-X and unmasks all vectors, as
 * firmware and an operating system would.
 *
 * Time. Posted writes return at once. Functions whose comment says "waits" run the simulation. Do
 * not call them from callbacks and events.
 *
 * host/eh.h builds the NIC's commands, queues and doorbells on top of this.
 */
#ifndef URDMA_COSIM_EMBEDDED_H
#define URDMA_COSIM_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler.h"

#define URDMA_EMBEDDED_PAGE 4096u

struct urdma_embedded;
struct urdma_embedded_dev;

struct urdma_embedded_config {
	size_t memory; /* bytes of scattered pages */
	size_t contig; /* bytes of contiguous memory */
	uint64_t seed; /* of the addresses */
};

struct urdma_embedded_stats {
	uint64_t dma_reads, dma_read_bytes;
	uint64_t dma_writes, dma_write_bytes;
	uint64_t faults;     /* DMA outside of allocated pages */
	uint64_t fault_addr; /* of the last one */
};

typedef void (*urdma_embedded_irq_fn)(void *ctx, struct urdma_embedded_dev *dev,
				      unsigned int vector);

/* 64 MB scattered, 16 MB contiguous, seed 1. */
void urdma_embedded_config_defaults(struct urdma_embedded_config *config);
int urdma_embedded_create(struct urdma_cosim *cosim, const struct urdma_embedded_config *config,
			  struct urdma_embedded **host);
/* Detaches the devices. */
void urdma_embedded_destroy(struct urdma_embedded *host);
struct urdma_cosim *urdma_embedded_cosim(struct urdma_embedded *host);
const struct urdma_embedded_stats *urdma_embedded_stats(const struct urdma_embedded *host);

/* ---- memory --------------------------------------------------------------------------------- */

/* Zeroed, page-aligned, rounded up to pages. NULL if there is no such range. */
void *urdma_embedded_alloc(struct urdma_embedded *host, size_t len);
/* Contiguous on the bus, and aligned there to align (a power of two; at least a page). */
void *urdma_embedded_alloc_contig(struct urdma_embedded *host, size_t len, size_t align);
/* Frees a whole allocation. The NIC can no longer access it. */
void urdma_embedded_free(struct urdma_embedded *host, void *p);
/* Bus address of a byte of the arena; 0 if p is outside the arena. */
uint64_t urdma_embedded_bus(const struct urdma_embedded *host, const void *p);
/* The byte at a bus address, or NULL if it is not allocated. Valid to the end of its page. */
void *urdma_embedded_cpu(const struct urdma_embedded *host, uint64_t bus);
/* Bus addresses of the pages of len bytes from p on; returns their number. */
size_t urdma_embedded_pages(const struct urdma_embedded *host, const void *p, size_t len,
			    uint64_t *pages, size_t max);

/* ---- devices -------------------------------------------------------------------------------- */

int urdma_embedded_attach(struct urdma_embedded *host, unsigned int nic,
			  struct urdma_embedded_dev **dev);
void urdma_embedded_detach(struct urdma_embedded_dev *dev);
struct urdma_embedded *urdma_embedded_host(struct urdma_embedded_dev *dev);
struct urdma_pcie *urdma_embedded_pcie(struct urdma_embedded_dev *dev);
unsigned int urdma_embedded_nic(const struct urdma_embedded_dev *dev);

/* Posted. */
int urdma_embedded_write(struct urdma_embedded_dev *dev, unsigned int bar, uint64_t offset,
			 const void *buf, size_t len);
int urdma_embedded_write64(struct urdma_embedded_dev *dev, unsigned int bar, uint64_t offset,
			   uint64_t value);
/* Waits for the completion: -EIO for UR or CA, -ETIMEDOUT, -EPROTO. */
int urdma_embedded_read(struct urdma_embedded_dev *dev, unsigned int bar, uint64_t offset,
			void *buf, size_t len);
int urdma_embedded_read64(struct urdma_embedded_dev *dev, unsigned int bar, uint64_t offset,
			  uint64_t *value);

/* Interrupts of a vector since the attach. */
uint64_t urdma_embedded_irqs(const struct urdma_embedded_dev *dev, unsigned int vector);
/* Called at each interrupt, from within the run. */
void urdma_embedded_on_irq(struct urdma_embedded_dev *dev, urdma_embedded_irq_fn fn, void *ctx);
/* Sets the MSI-X mask bit of a vector. A posted write. */
int urdma_embedded_mask(struct urdma_embedded_dev *dev, unsigned int vector, bool masked);

#endif
