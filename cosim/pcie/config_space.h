/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCI configuration space of one simulated NIC: 4 KB, a type 0 header with the power
 * management, MSI-X and PCI Express (version 2, endpoint) capabilities.
 *
 * The module has only registers and their write masks. After each write its owner reads the effects
 * (cfg_* signals of the RTL, enabled vectors) from the getters. A callback reports a function-level
 * reset.
 *
 * Threads: none. Errors are negative errno.
 */
#ifndef URDMA_COSIM_CONFIG_SPACE_H
#define URDMA_COSIM_CONFIG_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define URDMA_CONFIG_SPACE_SIZE 4096u

/* As in driver/urdma_hw.h. */
#define URDMA_PCI_VENDOR_ID	      0x1234
#define URDMA_PCI_DEVICE_ID	      0x5244
#define URDMA_PCI_SUBSYSTEM_VENDOR_ID 0x1234u
#define URDMA_PCI_SUBSYSTEM_ID	      0x0001u
#define URDMA_PCI_REVISION	      0x01u
#define URDMA_PCI_CLASS		      0x020000u /* network controller, Ethernet */

/* Offsets of the capabilities. */
#define URDMA_CONFIG_CAP_PM   0x40u
#define URDMA_CONFIG_CAP_MSIX 0x50u
#define URDMA_CONFIG_CAP_PCIE 0x60u

/* Offsets of the MSI-X structures in BAR4. */
#define URDMA_MSIX_TABLE_OFFSET 0x000u
#define URDMA_MSIX_PBA_OFFSET	0x800u

/* The largest payload that the function supports, in bytes. */
#define URDMA_PCIE_MPS_SUPPORTED 512u
/* The widest link. */
#define URDMA_PCIE_LANES_SUPPORTED 16u

struct urdma_config_space;

/*
 * Called from within urdma_config_space_write() when the host sets Initiate Function Level Reset.
 * The owner resets the function and calls urdma_config_space_reset(), at once or later, but
 * not before the callback has begun. The bit itself always reads 0.
 */
typedef void (*urdma_config_flr_fn)(void *ctx);

/*
 * Creates the space of a function on a link of this generation (1 to 5) and width (1 to
 * URDMA_PCIE_LANES_SUPPORTED, a power of two). Returns NULL if there is no memory. If flr is NULL,
 * a function-level reset only resets the registers.
 */
struct urdma_config_space *urdma_config_space_create(unsigned int gen, unsigned int lanes,
						     urdma_config_flr_fn flr, void *ctx);
void urdma_config_space_destroy(struct urdma_config_space *cs);

/*
 * Sets the sizes that firmware would set, in bytes. They are valid until the next reset, or until
 * the host changes them.
 */
void urdma_config_space_set_sizes(struct urdma_config_space *cs, unsigned int mps,
				  unsigned int mrrs);

/* Sets all registers to their reset values: decoding off, bus master off, MSI-X off. */
void urdma_config_space_reset(struct urdma_config_space *cs);

/*
 * One access of 1, 2 or 4 bytes, naturally aligned, inside the 4 KB; buf is little-endian. Returns
 * 0, or -EINVAL for any other access. Writes to read-only bits are ignored.
 */
int urdma_config_space_read(const struct urdma_config_space *cs, unsigned int offset, void *buf,
			    size_t len);
int urdma_config_space_write(struct urdma_config_space *cs, unsigned int offset, const void *buf,
			     size_t len);

/*
 * Getters. Memory and bus master read as off in any power state except D0, independent of the
 * command register. Sizes are in bytes: MPS 128 to 512 (a larger setting counts as 512), MRRS 128
 * to 4096.
 */
bool urdma_config_space_memory_enable(const struct urdma_config_space *cs);
bool urdma_config_space_bus_master_enable(const struct urdma_config_space *cs);
unsigned int urdma_config_space_mps(const struct urdma_config_space *cs);
unsigned int urdma_config_space_mrrs(const struct urdma_config_space *cs);
bool urdma_config_space_msix_enable(const struct urdma_config_space *cs);
bool urdma_config_space_msix_function_mask(const struct urdma_config_space *cs);
/* Address the host wrote into BAR 0, 2 or 4 (flags removed); 0 for the others. */
uint64_t urdma_config_space_bar(const struct urdma_config_space *cs, unsigned int bar);

/* The encoding of MPS and MRRS in registers and in cfg_max_payload, cfg_max_read_req. */
static inline unsigned int urdma_config_size_code(unsigned int bytes)
{
	unsigned int code = 0;

	while (code < 5 && (128u << code) < bytes)
		code++;
	return code;
}

#endif
