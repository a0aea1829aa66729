/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of vfio-user 0.0, as defined in QEMU's docs/interop/vfio-user.rst. Numbers are in
 * the host's byte order. Each payload follows the header directly; offsets are in bytes from the
 * end of the header.
 */
#ifndef URDMA_COSIM_VFIO_USER_PROTO_H
#define URDMA_COSIM_VFIO_USER_PROTO_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define VU_VERSION_MAJOR 0
#define VU_VERSION_MINOR 0

enum vu_command {
	VU_VERSION = 1,
	VU_DMA_MAP = 2,
	VU_DMA_UNMAP = 3,
	VU_DEVICE_GET_INFO = 4,
	VU_DEVICE_GET_REGION_INFO = 5,
	VU_DEVICE_GET_REGION_IO_FDS = 6,
	VU_DEVICE_GET_IRQ_INFO = 7,
	VU_DEVICE_SET_IRQS = 8,
	VU_REGION_READ = 9,
	VU_REGION_WRITE = 10,
	VU_DMA_READ = 11,  /* server to client, never sent */
	VU_DMA_WRITE = 12, /* server to client, never sent */
	VU_DEVICE_RESET = 13,
	VU_DIRTY_PAGES = 14, /* from older revisions */
	VU_REGION_WRITE_MULTI = 15,
	VU_DEVICE_FEATURE = 16,
	VU_MIG_DATA_READ = 17,
	VU_MIG_DATA_WRITE = 18,
};

#define VU_FLAG_TYPE_MASK 0x0fu
#define VU_FLAG_COMMAND	  0x00u
#define VU_FLAG_REPLY	  0x01u
#define VU_FLAG_NO_REPLY  0x10u
#define VU_FLAG_ERROR	  0x20u

struct vu_header {
	uint16_t id;
	uint16_t command;
	uint32_t size; /* of the whole message, this header included */
	uint32_t flags;
	uint32_t error; /* errno, in a reply with VU_FLAG_ERROR */
};
static_assert(sizeof(struct vu_header) == 16, "vfio-user header");
static_assert(offsetof(struct vu_header, command) == 2, "vfio-user header");
static_assert(offsetof(struct vu_header, size) == 4, "vfio-user header");
static_assert(offsetof(struct vu_header, flags) == 8, "vfio-user header");
static_assert(offsetof(struct vu_header, error) == 12, "vfio-user header");

/* JSON text with its terminating NUL may follow. */
struct vu_version {
	uint16_t major;
	uint16_t minor;
};
static_assert(sizeof(struct vu_version) == 4, "VERSION");

#define VU_DMA_MAP_READ	 0x1u
#define VU_DMA_MAP_WRITE 0x2u

struct vu_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset; /* in the file sent with the message */
	uint64_t address;
	uint64_t size;
};
static_assert(sizeof(struct vu_dma_map) == 32, "DMA_MAP");
static_assert(offsetof(struct vu_dma_map, offset) == 8, "DMA_MAP");
static_assert(offsetof(struct vu_dma_map, address) == 16, "DMA_MAP");
static_assert(offsetof(struct vu_dma_map, size) == 24, "DMA_MAP");

#define VU_DMA_UNMAP_GET_DIRTY 0x1u
#define VU_DMA_UNMAP_ALL       0x2u

struct vu_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t address;
	uint64_t size;
};
static_assert(sizeof(struct vu_dma_unmap) == 24, "DMA_UNMAP");
static_assert(offsetof(struct vu_dma_unmap, address) == 8, "DMA_UNMAP");
static_assert(offsetof(struct vu_dma_unmap, size) == 16, "DMA_UNMAP");

#define VU_DEVICE_FLAG_RESET 0x1u
#define VU_DEVICE_FLAG_PCI   0x2u

struct vu_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t num_regions;
	uint32_t num_irqs;
};
static_assert(sizeof(struct vu_device_info) == 16, "DEVICE_GET_INFO");

/* Region indices of a PCI device. */
#define VU_REGION_BAR0	 0u
#define VU_REGION_BAR5	 5u
#define VU_REGION_ROM	 6u
#define VU_REGION_CONFIG 7u
#define VU_REGION_VGA	 8u
#define VU_REGION_COUNT	 9u

#define VU_REGION_FLAG_READ  0x1u
#define VU_REGION_FLAG_WRITE 0x2u

struct vu_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};
static_assert(sizeof(struct vu_region_info) == 32, "DEVICE_GET_REGION_INFO");
static_assert(offsetof(struct vu_region_info, size) == 16, "DEVICE_GET_REGION_INFO");
static_assert(offsetof(struct vu_region_info, offset) == 24, "DEVICE_GET_REGION_INFO");

/* Interrupt indices of a PCI device. */
#define VU_IRQ_INTX  0u
#define VU_IRQ_MSI   1u
#define VU_IRQ_MSIX  2u
#define VU_IRQ_ERR   3u
#define VU_IRQ_REQ   4u
#define VU_IRQ_COUNT 5u

#define VU_IRQ_FLAG_EVENTFD  0x1u
#define VU_IRQ_FLAG_NORESIZE 0x8u

struct vu_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};
static_assert(sizeof(struct vu_irq_info) == 16, "DEVICE_GET_IRQ_INFO");

#define VU_IRQ_SET_DATA_NONE	  0x01u
#define VU_IRQ_SET_DATA_BOOL	  0x02u
#define VU_IRQ_SET_DATA_EVENTFD	  0x04u
#define VU_IRQ_SET_ACTION_MASK	  0x08u
#define VU_IRQ_SET_ACTION_UNMASK  0x10u
#define VU_IRQ_SET_ACTION_TRIGGER 0x20u
#define VU_IRQ_SET_DATA_FLAGS	  0x07u
#define VU_IRQ_SET_ACTION_FLAGS	  0x38u

/* With DATA_BOOL, count bytes follow. */
struct vu_irq_set {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};
static_assert(sizeof(struct vu_irq_set) == 20, "DEVICE_SET_IRQS");

/* Data follows in a write request and in a read reply. */
struct vu_region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count;
};
static_assert(sizeof(struct vu_region_access) == 16, "REGION_READ, REGION_WRITE");
static_assert(offsetof(struct vu_region_access, region) == 8, "REGION_READ, REGION_WRITE");

struct vu_write_multi {
	uint64_t count; /* of struct vu_write_one that follow */
};
static_assert(sizeof(struct vu_write_multi) == 8, "REGION_WRITE_MULTI");

struct vu_write_one {
	uint64_t offset;
	uint32_t region;
	uint32_t count; /* 1 to 8 bytes of data */
	uint8_t data[8];
};
static_assert(sizeof(struct vu_write_one) == 24, "REGION_WRITE_MULTI");
static_assert(offsetof(struct vu_write_one, data) == 16, "REGION_WRITE_MULTI");

struct vu_device_feature {
	uint32_t argsz;
	uint32_t flags;
};
static_assert(sizeof(struct vu_device_feature) == 8, "DEVICE_FEATURE");

#endif
