/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function behind cosim/pcie/pcie.h without a NIC, for tests of the vfio-user server. Its
 * configuration space and MSI-X are the real ones, BAR0 and BAR2 are memory, and a few registers in
 * BAR0 start DMA and interrupts. Register reads complete when fake_pcie_run() is called.
 */
#ifndef URDMA_TESTS_VFIO_FAKE_PCIE_H
#define URDMA_TESTS_VFIO_FAKE_PCIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcie/config_space.h"
#include "pcie/msix.h"
#include "pcie/pcie.h"

#define FAKE_ID_VALUE 0x616d647275ull /* at BAR0 + 0, "urdma" */
/* 8-byte registers of BAR0 that act when they are written. */
#define FAKE_DMA_ADDRESS 0x1000u
#define FAKE_DMA_LENGTH	 0x1008u
#define FAKE_DMA_COMMAND 0x1010u /* 1: host memory to FAKE_BUFFER, 2: back */
#define FAKE_DMA_STATUS	 0x1018u /* 1: done, 2: fault */
#define FAKE_IRQ	 0x1020u /* fires the vector that is written */
#define FAKE_BUFFER	 0x2000u /* 4 KB */

struct fake_read {
	struct fake_read *next;
	unsigned int bar;
	uint64_t offset;
	size_t len;
	urdma_mmio_read_done done;
	void *arg;
};

struct urdma_pcie {
	struct urdma_config_space *config;
	struct urdma_msix msix;
	const struct urdma_host_ops *ops;
	void *ctx;
	uint8_t bar0[URDMA_PCIE_BAR0_SIZE];
	uint8_t *bar2; /* URDMA_PCIE_BAR2_SIZE */
	struct fake_read *reads, **reads_tail;
	unsigned int num_reads;

	/* Set by the test. */
	bool answer_at_once; /* reads complete inside the call */
	bool fail_reads;     /* reads complete with -EIO */
	bool forget_reads;   /* a reset drops the reads in flight without completing them */
	bool full;	     /* reads and writes return -EAGAIN */
	int write_error;     /* what a write returns */

	/* Read by the test. */
	unsigned int resets;
	unsigned int attaches;
	unsigned int detaches;
	unsigned int writes;
	uint64_t last_write_offset;
	unsigned int last_write_bar;
	size_t last_write_len;
	uint8_t last_write[64];
};

struct urdma_pcie *fake_pcie_create(void);
void fake_pcie_destroy(struct urdma_pcie *p);
/* A NIC's request for a vector. */
void fake_pcie_fire(struct urdma_pcie *p, unsigned int vector);
/* Completes at most max reads, oldest first; returns how many. */
unsigned int fake_pcie_run(struct urdma_pcie *p, unsigned int max);

#endif
