/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCIe root, link and integrated block of one NIC. They connect its host (pcie.h) to the PG213
 * streams of the RTL.
 *
 * The scheduler calls, for each cycle, urdma_pcie_advance(), urdma_pcie_drive(), the model, then
 * urdma_pcie_sample(). docs/cosim.md has the timing and the ordering rules.
 *
 * The root checks everything that the RTL sends against PG213 and the PCI Express rules. It keeps
 * the first violation with a diagnosis. The simulation has to stop then, because the RTL has a bug.
 */
#ifndef URDMA_COSIM_ROOT_H
#define URDMA_COSIM_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcie/pcie.h"
#include "urdma_sim.h"

#define URDMA_PCIE_NEVER     UINT64_MAX
#define URDMA_PCIE_TLP_BYTES 24u /* framing, sequence number, 4-dword header, LCRC */
#define URDMA_PCIE_CPL_BYTES 20u /* the same with a header of 3 dwords */

/* Fault of a DMA read, for tests of the RTL's error paths. */
enum urdma_pcie_fault {
	URDMA_PCIE_FAULT_NONE,
	URDMA_PCIE_FAULT_UR,	  /* one completion, unsupported request */
	URDMA_PCIE_FAULT_CA,	  /* one completion, completer abort */
	URDMA_PCIE_FAULT_CA_LATE, /* the first piece is good, then completer abort */
	URDMA_PCIE_FAULT_POISON,  /* first piece poisoned, the others good */
	URDMA_PCIE_FAULT_TIMEOUT, /* no answer; the block reports a completion timeout */
};
typedef enum urdma_pcie_fault (*urdma_pcie_fault_fn)(void *ctx, uint64_t addr, size_t len);

struct urdma_pcie_config {
	const char *name;      /* in diagnoses */
	uint64_t seed;	       /* seed of reorder and stalls */
	uint32_t mbps;	       /* of TLP bytes, each direction, after the link layer's share */
	uint32_t latency_ns;   /* of a DMA read on an idle link: request in to completion out */
	uint32_t timeout_ns;   /* completion timeout */
	uint32_t mps;	       /* set by the firmware after a reset: 128, 256, 512 */
	uint32_t mrrs;	       /* the same: 128 ... 4096 */
	uint32_t rcb;	       /* read completion boundary: 64 or 128 */
	uint32_t cpl;	       /* completions are split at multiples of it; 0: of the MPS */
	uint8_t reorder;       /* completions of different reads are reordered, pieces vary */
	uint8_t stall_percent; /* of the cycles in which RQ, CC and irq are not ready, beyond need
				*/
	uint8_t gen, lanes;    /* as in configuration space; the timing depends on mbps only */
	uint32_t backlog;      /* max. waiting register accesses, then -EAGAIN; 0: no limit */
};

struct urdma_pcie_stats {
	uint64_t rq_reads, rq_read_bytes; /* DMA reads: TLPs, bytes requested */
	uint64_t rq_writes, rq_write_bytes;
	uint64_t rc_tlps, rc_bytes;
	/* Bytes of all TLPs on the link, with framing and headers, as counted by mbps. */
	uint64_t to_host_bytes, from_host_bytes;
	uint64_t mmio_reads, mmio_writes;
	uint64_t irqs;
	uint64_t read_faults, write_faults; /* not mapped, or bus master off */
	uint64_t rq_stalled;		    /* cycles with RQ valid and not ready */
	uint64_t rc_stalled;		    /* cycles with RC valid and not ready */
	uint64_t resets;
};

/* The default is Gen3 x16: see docs/cosim.md for the sources of the figures. */
void urdma_pcie_config_defaults(struct urdma_pcie_config *config);
/* TLP bandwidth of a link in Mb/s, after coding and the link layer's 8 %; 0 for an unknown one. */
uint32_t urdma_pcie_link_mbps(unsigned int gen, unsigned int lanes);

int urdma_pcie_create(const struct urdma_pcie_config *config, struct urdma_pcie **pcie);
void urdma_pcie_destroy(struct urdma_pcie *pcie);

/* Sets the next cycle, for actions of hosts between cycles; advance() implies it. */
void urdma_pcie_set_now(struct urdma_pcie *pcie, uint64_t now);
/*
 * Does the work due at the beginning of cycle now: DMA, completions, interrupts. Calls the
 * callbacks.
 */
void urdma_pcie_advance(struct urdma_pcie *pcie, uint64_t now);
/* Fills the PCIe part of in, rst included. */
void urdma_pcie_drive(struct urdma_pcie *pcie, struct urdma_sim_in *in);
/* Collects the transfers of the cycle. Returns true if any stream moved. */
bool urdma_pcie_sample(struct urdma_pcie *pcie, const struct urdma_sim_in *in,
		       const struct urdma_sim_out *out);

/*
 * The first cycle at which advance() or drive() has something to do: now or earlier when busy,
 * URDMA_PCIE_NEVER when nothing is in flight.
 */
uint64_t urdma_pcie_next(const struct urdma_pcie *pcie);
/* Between drive() and sample(): this cycle is the last one of a reset. */
bool urdma_pcie_reset_ends(const struct urdma_pcie *pcie);
/* True from urdma_pcie_reset() to the end of the reset: the NIC's registers may have old values. */
bool urdma_pcie_in_reset(const struct urdma_pcie *pcie);
/* True if there is work that only the RTL can advance; for the stall detector. */
bool urdma_pcie_pending(const struct urdma_pcie *pcie);

/* NULL, or the first violation of the RTL. It stays until the root is destroyed. */
const char *urdma_pcie_error(const struct urdma_pcie *pcie);
/* One or more lines about the work in flight, for diagnoses. */
void urdma_pcie_describe(const struct urdma_pcie *pcie, char *buf, size_t len);
const struct urdma_pcie_stats *urdma_pcie_stats(const struct urdma_pcie *pcie);

void urdma_pcie_set_fault(struct urdma_pcie *pcie, urdma_pcie_fault_fn fault, void *ctx);
/*
 * fn is called at the beginning of each reset, outside of any run of the scheduler. It may run the
 * model, for example to read counters. If the host is detaching, DMA fails.
 */
void urdma_pcie_set_before_reset(struct urdma_pcie *pcie, void (*fn)(void *ctx), void *ctx);
/*
 * use: apply the masks in the MSI-X table and the bits of MSI-X control. The default is false: the
 * host applies them itself, as QEMU does.
 */
void urdma_pcie_use_msix_table(struct urdma_pcie *pcie, bool use);

#endif
