// SPDX-License-Identifier: Apache-2.0
/*
 * PCI configuration space: three images of 4 KB: the values, the reset values, and the masks of the
 * bits that the host may write.
 */
#include "pcie/config_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcie/pcie.h"

/* Type 0 header, PCI Local Bus Specification 3.0, 6.1. */
#define CFG_VENDOR_ID	     0x00
#define CFG_DEVICE_ID	     0x02
#define CFG_COMMAND	     0x04
#define CFG_STATUS	     0x06
#define CFG_REVISION	     0x08
#define CFG_CLASS	     0x09
#define CFG_CACHE_LINE	     0x0c
#define CFG_BAR0	     0x10
#define CFG_SUBSYSTEM_VENDOR 0x2c
#define CFG_SUBSYSTEM	     0x2e
#define CFG_CAP_POINTER	     0x34
#define CFG_INTERRUPT_LINE   0x3c

#define COMMAND_MEMORY	     0x0002u
#define COMMAND_BUS_MASTER   0x0004u
#define COMMAND_PARITY	     0x0040u
#define COMMAND_SERR	     0x0100u
#define COMMAND_INTX_DISABLE 0x0400u
#define STATUS_CAP_LIST	     0x0010u

#define BAR_64BIT	 0x4u
#define BAR_PREFETCHABLE 0x8u

/* Power management, PCI Bus Power Management Interface Specification 1.2. */
#define PM_CAP_ID	 0x01
#define PM_CAP_VERSION	 0x0003u
#define PM_CSR		 (URDMA_CONFIG_CAP_PM + 4)
#define PM_CSR_STATE	 0x0003u
#define PM_NO_SOFT_RESET 0x0008u

/* MSI-X, PCI Local Bus Specification 3.0, 6.8.2. */
#define MSIX_CAP_ID	   0x11
#define MSIX_CONTROL	   (URDMA_CONFIG_CAP_MSIX + 2)
#define MSIX_ENABLE	   0x8000u
#define MSIX_FUNCTION_MASK 0x4000u
#define MSIX_BIR	   4u

/* PCI Express capability, PCI Express Base Specification 3.0, 7.8. */
#define EXP_CAP_ID  0x10
#define EXP_FLAGS   (URDMA_CONFIG_CAP_PCIE + 0x02)
#define EXP_DEVCAP  (URDMA_CONFIG_CAP_PCIE + 0x04)
#define EXP_DEVCTL  (URDMA_CONFIG_CAP_PCIE + 0x08)
#define EXP_LNKCAP  (URDMA_CONFIG_CAP_PCIE + 0x0c)
#define EXP_LNKCTL  (URDMA_CONFIG_CAP_PCIE + 0x10)
#define EXP_LNKSTA  (URDMA_CONFIG_CAP_PCIE + 0x12)
#define EXP_DEVCAP2 (URDMA_CONFIG_CAP_PCIE + 0x24)
#define EXP_DEVCTL2 (URDMA_CONFIG_CAP_PCIE + 0x28)
#define EXP_LNKCAP2 (URDMA_CONFIG_CAP_PCIE + 0x2c)
#define EXP_LNKCTL2 (URDMA_CONFIG_CAP_PCIE + 0x30)
#define EXP_LNKSTA2 (URDMA_CONFIG_CAP_PCIE + 0x32)

#define EXP_FLAGS_V2_ENDPOINT 0x0002u

#define DEVCAP_MPS_512	   0x00000002u
#define DEVCAP_EXT_TAG	   0x00000020u
#define DEVCAP_L0S_NOLIMIT 0x000001c0u
#define DEVCAP_L1_NOLIMIT  0x00000e00u
#define DEVCAP_ROLE_ERRORS 0x00008000u
#define DEVCAP_FLR	   0x10000000u

#define DEVCTL_ERROR_REPORTS 0x000fu
#define DEVCTL_RELAXED	     0x0010u
#define DEVCTL_MPS	     0x00e0u
#define DEVCTL_MPS_SHIFT     5
#define DEVCTL_EXT_TAG	     0x0100u
#define DEVCTL_NO_SNOOP	     0x0800u
#define DEVCTL_MRRS	     0x7000u
#define DEVCTL_MRRS_SHIFT    12
#define DEVCTL_MRRS_512	     0x2000u
#define DEVCTL_FLR	     0x8000u

/* Bits of LNKCAP and of LNKSTA: speed (1: 2.5 GT/s) in 3:0, width in 9:4. */
#define LINK_WIDTH_SHIFT     4
#define LNKCAP_ASPM_OPTIONAL 0x00400000u
#define LNKCTL_WRITABLE	     0x00cbu /* ASPM, read completion boundary, common clock, ext. synch */
#define LNKSTA_SLOT_CLOCK    0x1000u

#define DEVCAP2_TIMEOUT_DISABLE 0x00000010u
#define DEVCTL2_TIMEOUT_DISABLE 0x0010u
#define LNKCAP2_UP_TO(gen)	((2u << (gen)) - 2) /* bit 1: 2.5 GT/s, bit 2: 5 GT/s, ... */
#define LNKCTL2_TARGET		0x000fu
#define LNKSTA2_EQUALIZED	0x001eu

struct urdma_config_space {
	uint8_t value[URDMA_CONFIG_SPACE_SIZE];
	uint8_t initial[URDMA_CONFIG_SPACE_SIZE];
	uint8_t writable[URDMA_CONFIG_SPACE_SIZE];
	urdma_config_flr_fn flr;
	void *ctx;
};

static unsigned int get16(const uint8_t *image, unsigned int offset)
{
	return image[offset] | (unsigned int)image[offset + 1] << 8;
}

static uint32_t get32(const uint8_t *image, unsigned int offset)
{
	return get16(image, offset) | (uint32_t)get16(image, offset + 2) << 16;
}

static void put16(uint8_t *image, unsigned int offset, unsigned int value)
{
	image[offset] = (uint8_t)value;
	image[offset + 1] = (uint8_t)(value >> 8);
}

static void put32(uint8_t *image, unsigned int offset, uint32_t value)
{
	put16(image, offset, value & 0xffff);
	put16(image, offset + 2, value >> 16);
}

/*
 * A 64-bit memory BAR: the address bits below its size read as 0, so the host can determine the
 * size.
 */
static void define_bar(struct urdma_config_space *cs, unsigned int bar, uint64_t size,
		       uint32_t flags)
{
	unsigned int offset = CFG_BAR0 + 4 * bar;
	uint64_t mask = ~(size - 1);

	put32(cs->initial, offset, BAR_64BIT | flags);
	put32(cs->writable, offset, (uint32_t)mask);
	put32(cs->writable, offset + 4, (uint32_t)(mask >> 32));
}

static void define_header(struct urdma_config_space *cs)
{
	uint8_t *v = cs->initial;
	uint8_t *w = cs->writable;

	put16(v, CFG_VENDOR_ID, URDMA_PCI_VENDOR_ID);
	put16(v, CFG_DEVICE_ID, URDMA_PCI_DEVICE_ID);
	put16(w, CFG_COMMAND,
	      COMMAND_MEMORY | COMMAND_BUS_MASTER | COMMAND_PARITY | COMMAND_SERR |
		      COMMAND_INTX_DISABLE);
	put16(v, CFG_STATUS, STATUS_CAP_LIST);
	v[CFG_REVISION] = URDMA_PCI_REVISION;
	v[CFG_CLASS] = URDMA_PCI_CLASS & 0xff;
	put16(v, CFG_CLASS + 1, URDMA_PCI_CLASS >> 8);
	w[CFG_CACHE_LINE] = 0xff;

	/*
	 * Reads of the doorbell pages have no side effect and their writes may be merged, so BAR2
	 * is prefetchable, and bridges may place it above 4 GB. Registers and the MSI-X table are
	 * not.
	 */
	define_bar(cs, 0, URDMA_PCIE_BAR0_SIZE, 0);
	define_bar(cs, 2, URDMA_PCIE_BAR2_SIZE, BAR_PREFETCHABLE);
	define_bar(cs, 4, URDMA_PCIE_BAR4_SIZE, 0);

	put16(v, CFG_SUBSYSTEM_VENDOR, URDMA_PCI_SUBSYSTEM_VENDOR_ID);
	put16(v, CFG_SUBSYSTEM, URDMA_PCI_SUBSYSTEM_ID);
	v[CFG_CAP_POINTER] = URDMA_CONFIG_CAP_PM;
	w[CFG_INTERRUPT_LINE] = 0xff;
}

static void define_capabilities(struct urdma_config_space *cs, unsigned int gen, unsigned int lanes)
{
	const unsigned int link = gen | lanes << LINK_WIDTH_SHIFT;
	uint8_t *v = cs->initial;
	uint8_t *w = cs->writable;

	/*
	 * D0 and D3hot, no PME; registers keep their values in D3hot, so leaving it is not a reset.
	 */
	put16(v, URDMA_CONFIG_CAP_PM, PM_CAP_ID | URDMA_CONFIG_CAP_MSIX << 8);
	put16(v, URDMA_CONFIG_CAP_PM + 2, PM_CAP_VERSION);
	put16(v, PM_CSR, PM_NO_SOFT_RESET);
	put16(w, PM_CSR, PM_CSR_STATE);

	put16(v, URDMA_CONFIG_CAP_MSIX, MSIX_CAP_ID | URDMA_CONFIG_CAP_PCIE << 8);
	put16(v, MSIX_CONTROL, URDMA_PCIE_MSIX_COUNT - 1);
	put16(w, MSIX_CONTROL, MSIX_ENABLE | MSIX_FUNCTION_MASK);
	put32(v, URDMA_CONFIG_CAP_MSIX + 4, URDMA_MSIX_TABLE_OFFSET | MSIX_BIR);
	put32(v, URDMA_CONFIG_CAP_MSIX + 8, URDMA_MSIX_PBA_OFFSET | MSIX_BIR);

	put16(v, URDMA_CONFIG_CAP_PCIE, EXP_CAP_ID);
	put16(v, EXP_FLAGS, EXP_FLAGS_V2_ENDPOINT);
	put32(v, EXP_DEVCAP,
	      DEVCAP_MPS_512 | DEVCAP_EXT_TAG | DEVCAP_L0S_NOLIMIT | DEVCAP_L1_NOLIMIT |
		      DEVCAP_ROLE_ERRORS | DEVCAP_FLR);
	put16(v, EXP_DEVCTL, DEVCTL_RELAXED | DEVCTL_EXT_TAG | DEVCTL_NO_SNOOP | DEVCTL_MRRS_512);
	/* Initiate FLR takes effect in the write and is never stored. */
	put16(w, EXP_DEVCTL,
	      DEVCTL_ERROR_REPORTS | DEVCTL_RELAXED | DEVCTL_MPS | DEVCTL_EXT_TAG |
		      DEVCTL_NO_SNOOP | DEVCTL_MRRS);
	put32(v, EXP_LNKCAP, link | LNKCAP_ASPM_OPTIONAL);
	put16(w, EXP_LNKCTL, LNKCTL_WRITABLE);
	put16(v, EXP_LNKSTA, link | LNKSTA_SLOT_CLOCK);
	put32(v, EXP_DEVCAP2, DEVCAP2_TIMEOUT_DISABLE);
	put16(w, EXP_DEVCTL2, DEVCTL2_TIMEOUT_DISABLE);
	put32(v, EXP_LNKCAP2, LNKCAP2_UP_TO(gen));
	put16(v, EXP_LNKCTL2, gen);
	put16(w, EXP_LNKCTL2, LNKCTL2_TARGET);
	/* Link training uses equalization from 8 GT/s on. */
	put16(v, EXP_LNKSTA2, gen >= 3 ? LNKSTA2_EQUALIZED : 0);
}

struct urdma_config_space *urdma_config_space_create(unsigned int gen, unsigned int lanes,
						     urdma_config_flr_fn flr, void *ctx)
{
	struct urdma_config_space *cs = calloc(1, sizeof(*cs));

	if (!cs)
		return NULL;
	cs->flr = flr;
	cs->ctx = ctx;
	define_header(cs);
	define_capabilities(cs, gen, lanes);
	urdma_config_space_reset(cs);
	return cs;
}

void urdma_config_space_destroy(struct urdma_config_space *cs)
{
	free(cs);
}

void urdma_config_space_reset(struct urdma_config_space *cs)
{
	memcpy(cs->value, cs->initial, sizeof(cs->value));
}

void urdma_config_space_set_sizes(struct urdma_config_space *cs, unsigned int mps,
				  unsigned int mrrs)
{
	unsigned int devctl = get16(cs->value, EXP_DEVCTL) & ~(DEVCTL_MPS | DEVCTL_MRRS);

	devctl |= urdma_config_size_code(mps) << DEVCTL_MPS_SHIFT;
	devctl |= urdma_config_size_code(mrrs) << DEVCTL_MRRS_SHIFT;
	put16(cs->value, EXP_DEVCTL, devctl);
}

static bool access_is_valid(unsigned int offset, size_t len)
{
	return (len == 1 || len == 2 || len == 4) && offset % len == 0 &&
	       offset <= URDMA_CONFIG_SPACE_SIZE - len;
}

int urdma_config_space_read(const struct urdma_config_space *cs, unsigned int offset, void *buf,
			    size_t len)
{
	if (!access_is_valid(offset, len))
		return -EINVAL;
	memcpy(buf, cs->value + offset, len);
	return 0;
}

int urdma_config_space_write(struct urdma_config_space *cs, unsigned int offset, const void *buf,
			     size_t len)
{
	const uint8_t *in = buf;
	bool flr = false;

	if (!access_is_valid(offset, len))
		return -EINVAL;

	for (size_t i = 0; i < len; i++) {
		unsigned int at = offset + (unsigned int)i;
		uint8_t mask = cs->writable[at];

		cs->value[at] = (uint8_t)((cs->value[at] & ~mask) | (in[i] & mask));
		if (at == EXP_DEVCTL + 1 && (in[i] & (DEVCTL_FLR >> 8)))
			flr = true;
	}

	if (flr) {
		if (cs->flr)
			cs->flr(cs->ctx);
		else
			urdma_config_space_reset(cs);
	}
	return 0;
}

static bool in_d0(const struct urdma_config_space *cs)
{
	return (get16(cs->value, PM_CSR) & PM_CSR_STATE) == 0;
}

bool urdma_config_space_memory_enable(const struct urdma_config_space *cs)
{
	return in_d0(cs) && (get16(cs->value, CFG_COMMAND) & COMMAND_MEMORY);
}

bool urdma_config_space_bus_master_enable(const struct urdma_config_space *cs)
{
	return in_d0(cs) && (get16(cs->value, CFG_COMMAND) & COMMAND_BUS_MASTER);
}

unsigned int urdma_config_space_mps(const struct urdma_config_space *cs)
{
	unsigned int code = (get16(cs->value, EXP_DEVCTL) & DEVCTL_MPS) >> DEVCTL_MPS_SHIFT;

	return code < 2 ? 128u << code : URDMA_PCIE_MPS_SUPPORTED;
}

unsigned int urdma_config_space_mrrs(const struct urdma_config_space *cs)
{
	unsigned int code = (get16(cs->value, EXP_DEVCTL) & DEVCTL_MRRS) >> DEVCTL_MRRS_SHIFT;

	return code < 5 ? 128u << code : 4096u; /* codes 6 and 7 are reserved */
}

bool urdma_config_space_msix_enable(const struct urdma_config_space *cs)
{
	return get16(cs->value, MSIX_CONTROL) & MSIX_ENABLE;
}

bool urdma_config_space_msix_function_mask(const struct urdma_config_space *cs)
{
	return get16(cs->value, MSIX_CONTROL) & MSIX_FUNCTION_MASK;
}

uint64_t urdma_config_space_bar(const struct urdma_config_space *cs, unsigned int bar)
{
	unsigned int offset = CFG_BAR0 + 4 * bar;

	if (bar != 0 && bar != 2 && bar != 4)
		return 0;
	return (get32(cs->value, offset) & ~0xfu) | (uint64_t)get32(cs->value, offset + 4) << 32;
}
