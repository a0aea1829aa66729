/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCIe function of one simulated NIC, as its host sees it.
 *
 * The root connects the host (the vfio-user server or the embedded host) to the RTL's PG213
 * streams: it turns MMIO into TLPs on CQ, answers the NIC's requests on RQ with completions on RC,
 * and models link bandwidth and latency for each.
 *
 * Threads: none. All calls are made by the thread that runs the scheduler. Callbacks are called
 * from within urdma_pcie_* or the scheduler's run function, never from elsewhere.
 * Errors are negative errno.
 */
#ifndef URDMA_COSIM_PCIE_H
#define URDMA_COSIM_PCIE_H

#include <stddef.h>
#include <stdint.h>

struct urdma_pcie;

/* Operations of the NIC on its host. */
struct urdma_host_ops {
	/*
	 * DMA by the NIC: 1 to 4096 bytes that do not cross a page. Returns 0, or -EFAULT if a byte
	 * is not mapped with the needed right; that becomes an unsupported request.
	 */
	int (*dma_read)(void *ctx, uint64_t addr, void *buf, size_t len);
	int (*dma_write)(void *ctx, uint64_t addr, const void *buf, size_t len);
	/*
	 * Interrupt of an unmasked, enabled MSI-X vector. Returns 0, or -EAGAIN if the host cannot
	 * accept it now; it stays pending until urdma_pcie_msix_ready().
	 */
	int (*msix)(void *ctx, unsigned int vector);
};

/*
 * Called once when a register read completes. status 0 or -EIO (UR, CA); value little-endian, len
 * bytes.
 */
typedef void (*urdma_mmio_read_done)(void *arg, int status, uint64_t value);

/*
 * Posted write of 1 to 8 bytes (64 for a WQE push to BAR2), within one 64-byte line. -EAGAIN, also
 * for reads: too many accesses wait; retry after the NIC has run.
 */
int urdma_pcie_mmio_write(struct urdma_pcie *pcie, unsigned int bar, uint64_t offset,
			  const void *buf, size_t len);
/* Non-posted read of 1 to 8 bytes. Many may be outstanding; they complete in order. */
int urdma_pcie_mmio_read(struct urdma_pcie *pcie, unsigned int bar, uint64_t offset, size_t len,
			 urdma_mmio_read_done done, void *arg);
/*
 * Configuration space, 4 KB, type 0 header with PCIe, MSI-X and PM capabilities. 1 to 4 bytes,
 * aligned.
 */
int urdma_pcie_config_read(struct urdma_pcie *pcie, unsigned int offset, void *buf, size_t len);
int urdma_pcie_config_write(struct urdma_pcie *pcie, unsigned int offset, const void *buf,
			    size_t len);
/* Function-level reset: on return registers, contexts and everything in flight are cleared. */
int urdma_pcie_reset(struct urdma_pcie *pcie);
/* The host can accept vectors again. */
void urdma_pcie_msix_ready(struct urdma_pcie *pcie);
/* Attach a host (one at a time) or detach with ops NULL; detaching implies a reset. */
int urdma_pcie_attach(struct urdma_pcie *pcie, const struct urdma_host_ops *ops, void *ctx);

/* BAR sizes in bytes; 0 for BARs that do not exist. BAR0 registers, BAR2 doorbells, BAR4 MSI-X. */
uint64_t urdma_pcie_bar_size(unsigned int bar);

#define URDMA_PCIE_BAR0_SIZE  0x10000u
#define URDMA_PCIE_BAR2_SIZE  0x800000u
#define URDMA_PCIE_BAR4_SIZE  0x1000u
#define URDMA_PCIE_MSIX_COUNT 64u

#endif
