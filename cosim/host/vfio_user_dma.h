/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest memory of one vfio-user client: a table of address ranges, each backed by a file that
 * the client sent, or without backing.
 *
 * The client may truncate its files at any time, and a load beyond the end of a mapped file is a
 * SIGBUS. So a file is mapped only if it is sealed against shrinking (F_SEAL_SHRINK, which QEMU's
 * memory-backend-memfd sets by default). Other files are accessed by pread and pwrite: slower, but
 * a truncation only gives a short count. No signal handler is needed.
 *
 * Order: bytes become visible to the guest in ascending order of address, as with a real root
 * complex. So the guest never sees a phase bit at the end of a CQE before the other bytes. A
 * library's memcpy does not guarantee this order (and glibc's does not keep it).
 */
#ifndef URDMA_COSIM_VFIO_USER_DMA_H
#define URDMA_COSIM_VFIO_USER_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum ranges mapped at a time, and maximum ranges that keep their descriptor open. */
#define VU_DMA_MAX_MAPS	    4096u
#define VU_DMA_MAX_OPEN_FDS 256u

#define VU_DMA_PAGE 4096u

struct vu_dma_range {
	uint64_t start;
	uint64_t last; /* inclusive: a range may end at the top of the address space */
	uint8_t *base; /* mapped, or NULL */
	int fd;	       /* for a range accessed by pread and pwrite, or -1 */
	uint64_t fd_offset;
	bool readable;
	bool writable;
};

struct vu_dma {
	struct vu_dma_range *ranges; /* sorted by start, disjoint */
	unsigned int count;
	unsigned int capacity;
	unsigned int last_hit; /* index of the last range found */
	unsigned int open_fds;
};

void vu_dma_init(struct vu_dma *dma);
/* Unmaps everything; the table is empty and usable afterwards. */
void vu_dma_clear(struct vu_dma *dma);

/*
 * Adds a range. fd is -1 for a range without backing, where each access faults. Otherwise the
 * function takes ownership of fd in every case: it closes or keeps it. *why is a text that explains
 * an error.
 *   -EINVAL     zero or not page-aligned, wraps around, not a regular file, beyond its end
 *   -EEXIST     overlaps a range
 *   -ENOSPC     too many ranges
 *   -EACCES     the descriptor does not allow the requested access
 *   -EOPNOTSUPP huge pages: if they run out, an access is a SIGBUS even with the seal
 *   others      from mmap
 */
int vu_dma_map(struct vu_dma *dma, uint64_t address, uint64_t size, int fd, uint64_t fd_offset,
	       bool readable, bool writable, const char **why);

/* Removes a range mapped with exactly this address and size; else -ENOENT or -EINVAL. */
int vu_dma_unmap(struct vu_dma *dma, uint64_t address, uint64_t size, const char **why);

/*
 * Accesses 1 or more bytes, also across adjacent ranges. Returns 0 or -EFAULT. After -EFAULT for a
 * missing range or right, no byte was copied; for a truncated file, some may have been.
 */
int vu_dma_read(struct vu_dma *dma, uint64_t address, void *buf, size_t len);
int vu_dma_write(struct vu_dma *dma, uint64_t address, const void *buf, size_t len);

#endif
