// SPDX-License-Identifier: Apache-2.0
// MSI-X, PCI Local Bus Specification 3.0, 6.8.2.
#include "pcie/msix.h"

#include <string.h>

#define ENTRY_BYTES   16u
#define ENTRY_CONTROL 12u /* vector control: bit 0 masks, the others are reserved */

_Static_assert(URDMA_PCIE_MSIX_COUNT == 64, "pending has one bit for each vector");

void urdma_msix_init(struct urdma_msix *m, const struct urdma_config_space *cs,
		     urdma_msix_deliver_fn deliver, void *ctx)
{
	m->cs = cs;
	m->deliver = deliver;
	m->ctx = ctx;
	m->masks = false;
	urdma_msix_reset(m);
}

void urdma_msix_reset(struct urdma_msix *m)
{
	memset(m->table, 0, sizeof(m->table));
	for (unsigned int v = 0; v < URDMA_PCIE_MSIX_COUNT; v++)
		m->table[v * ENTRY_BYTES + ENTRY_CONTROL] = 1;
	m->pending = 0;
}

static bool masked(const struct urdma_msix *m, unsigned int vector)
{
	return m->masks && (!urdma_config_space_msix_enable(m->cs) ||
			    urdma_config_space_msix_function_mask(m->cs) ||
			    (m->table[vector * ENTRY_BYTES + ENTRY_CONTROL] & 1));
}

void urdma_msix_fire(struct urdma_msix *m, unsigned int vector)
{
	uint64_t bit = UINT64_C(1) << vector;

	/* Clear the pending bit before the host is notified, because the host may read it. */
	m->pending &= ~bit;
	if (masked(m, vector) || m->deliver(m->ctx, vector))
		m->pending |= bit;
}

void urdma_msix_retry(struct urdma_msix *m)
{
	/* The host may write the table from within deliver(), and so enter this again. */
	for (uint64_t left = m->pending; left; left &= left - 1)
		if (m->pending & left & -left)
			urdma_msix_fire(m, (unsigned int)__builtin_ctzll(left));
}

void urdma_msix_read(const struct urdma_msix *m, uint64_t offset, void *buf, size_t len)
{
	uint8_t *out = buf;

	for (size_t i = 0; i < len; i++) {
		uint64_t at = offset + i;

		out[i] = 0;
		if (at - URDMA_MSIX_TABLE_OFFSET < sizeof(m->table))
			out[i] = m->table[at - URDMA_MSIX_TABLE_OFFSET];
		else if (at - URDMA_MSIX_PBA_OFFSET < sizeof(m->pending))
			out[i] = (uint8_t)(m->pending >> 8 * (at - URDMA_MSIX_PBA_OFFSET));
	}
}

void urdma_msix_write(struct urdma_msix *m, uint64_t offset, const void *buf, size_t len)
{
	const uint8_t *in = buf;

	for (size_t i = 0; i < len; i++) {
		uint64_t at = offset + i - URDMA_MSIX_TABLE_OFFSET;

		if (at >= sizeof(m->table))
			break;
		if (at % ENTRY_BYTES < ENTRY_CONTROL) /* addresses are aligned to dwords */
			m->table[at] = at % ENTRY_BYTES ? in[i] : in[i] & 0xfc;
		else if (at % ENTRY_BYTES == ENTRY_CONTROL)
			m->table[at] = in[i] & 1;
	}
	urdma_msix_retry(m);
}
