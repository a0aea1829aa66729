/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MSI-X structures of the integrated block: table and pending bits, as in BAR4. All kinds of
 * host use this copy.
 */
#ifndef URDMA_COSIM_MSIX_H
#define URDMA_COSIM_MSIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcie/config_space.h"
#include "pcie/pcie.h"

/* Delivers a vector to the host. 0, or -EAGAIN: not now, the vector stays pending. */
typedef int (*urdma_msix_deliver_fn)(void *ctx, unsigned int vector);

struct urdma_msix {
	const struct urdma_config_space *cs; /* has the enable bit and the function mask */
	urdma_msix_deliver_fn deliver;
	void *ctx;
	bool masks;	  /* the masks and the enable bit are honoured */
	uint64_t pending; /* a bit for each vector */
	uint8_t table[16 * URDMA_PCIE_MSIX_COUNT];
};

/* Initialises m to the state after a reset. */
void urdma_msix_init(struct urdma_msix *m, const struct urdma_config_space *cs,
		     urdma_msix_deliver_fn deliver, void *ctx);
/* Masks every vector; none is pending. */
void urdma_msix_reset(struct urdma_msix *m);
/* The NIC requests a vector. */
void urdma_msix_fire(struct urdma_msix *m, unsigned int vector);
/*
 * Call when a mask may have been cleared, or the host may accept vectors again: fires every pending
 * vector that can fire.
 */
void urdma_msix_retry(struct urdma_msix *m);
/* BAR4; the range has been checked. Only the table can be written. */
void urdma_msix_read(const struct urdma_msix *m, uint64_t offset, void *buf, size_t len);
void urdma_msix_write(struct urdma_msix *m, uint64_t offset, const void *buf, size_t len);

#endif
