// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "host/vfio_user_dma.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

void vu_dma_init(struct vu_dma *dma)
{
	memset(dma, 0, sizeof(*dma));
}

static void release_range(struct vu_dma *dma, struct vu_dma_range *r)
{
	if (r->base)
		munmap(r->base, r->last - r->start + 1);
	if (r->fd >= 0) {
		close(r->fd);
		dma->open_fds--;
	}
}

void vu_dma_clear(struct vu_dma *dma)
{
	for (unsigned int i = 0; i < dma->count; i++)
		release_range(dma, &dma->ranges[i]);
	free(dma->ranges);
	vu_dma_init(dma);
}

/* Index of the first range that ends at or after address, or count if there is none. */
static unsigned int find_slot(const struct vu_dma *dma, uint64_t address)
{
	unsigned int low = 0, high = dma->count;

	while (low < high) {
		unsigned int mid = low + (high - low) / 2;

		if (dma->ranges[mid].last < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * Decides how the file of a range is accessed. On success r owns its resources; the caller keeps
 * fd.
 */
static int open_backing(struct vu_dma *dma, struct vu_dma_range *r, int fd, const char **why)
{
	uint64_t size = r->last - r->start + 1;
	struct statfs fs;
	struct stat st;
	int mode, seals;

	if (fstat(fd, &st) || fstatfs(fd, &fs)) {
		*why = "descriptor cannot be examined";
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		*why = "descriptor is not a file that can be mapped";
		return -EINVAL;
	}
	if (fs.f_type == HUGETLBFS_MAGIC) {
		*why = "huge pages are not supported";
		return -EOPNOTSUPP;
	}
	/* st_size is never negative; the sum cannot wrap if the offset is inside the file. */
	if (r->fd_offset > (uint64_t)st.st_size || size > (uint64_t)st.st_size - r->fd_offset) {
		*why = "range lies beyond the end of the file";
		return -EINVAL;
	}
	mode = fcntl(fd, F_GETFL);
	if (mode < 0 || (mode & O_PATH) || (mode & O_ACCMODE) == O_WRONLY ||
	    (r->writable && (mode & O_ACCMODE) != O_RDWR)) {
		*why = "descriptor is not open for the rights asked";
		return -EACCES;
	}

	seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && r->writable && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))) {
		*why = "file is sealed against the writes asked for";
		return -EACCES;
	}
	if (seals >= 0 && (seals & F_SEAL_SHRINK)) {
		int prot = PROT_READ | (r->writable ? PROT_WRITE : 0);
		void *base;

		if (size > SIZE_MAX / 2) {
			*why = "range is larger than this process can map";
			return -ENOMEM;
		}
		base = mmap(NULL, size, prot, MAP_SHARED, fd, (off_t)r->fd_offset);
		if (base == MAP_FAILED) {
			*why = "mmap failed";
			return -errno;
		}
		r->base = base;
		return 0;
	}

	if (dma->open_fds >= VU_DMA_MAX_OPEN_FDS) {
		*why = "too many ranges of files not sealed against shrinking";
		return -ENOSPC;
	}
	r->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (r->fd < 0) {
		*why = "out of descriptors";
		return -errno;
	}
	dma->open_fds++;
	return 0;
}

static int make_room(struct vu_dma *dma)
{
	unsigned int capacity = dma->capacity ? 2 * dma->capacity : 64;
	struct vu_dma_range *ranges;

	if (dma->count < dma->capacity)
		return 0;
	ranges = realloc(dma->ranges, capacity * sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	dma->ranges = ranges;
	dma->capacity = capacity;
	return 0;
}

static int add_range(struct vu_dma *dma, struct vu_dma_range *r, int fd, const char **why)
{
	unsigned int slot = find_slot(dma, r->start);
	int ret;

	if (slot < dma->count && dma->ranges[slot].start <= r->last) {
		*why = "overlaps a range that is mapped";
		return -EEXIST;
	}
	if (dma->count >= VU_DMA_MAX_MAPS) {
		*why = "too many ranges";
		return -ENOSPC;
	}
	ret = make_room(dma);
	if (ret) {
		*why = "out of memory";
		return ret;
	}
	if (fd >= 0) {
		ret = open_backing(dma, r, fd, why);
		if (ret)
			return ret;
	}
	memmove(&dma->ranges[slot + 1], &dma->ranges[slot],
		(dma->count - slot) * sizeof(dma->ranges[0]));
	dma->ranges[slot] = *r;
	dma->count++;
	return 0;
}

int vu_dma_map(struct vu_dma *dma, uint64_t address, uint64_t size, int fd, uint64_t fd_offset,
	       bool readable, bool writable, const char **why)
{
	struct vu_dma_range r = {
		.start = address,
		.last = address + (size - 1),
		.fd = -1,
		.fd_offset = fd_offset,
		.readable = readable,
		.writable = writable,
	};
	int ret = -EINVAL;

	if (!size)
		*why = "size is zero";
	else if (r.last < address)
		*why = "wraps around the address space";
	else if (address % VU_DMA_PAGE || size % VU_DMA_PAGE || fd_offset % VU_DMA_PAGE)
		*why = "address, size or offset is not a multiple of 4096";
	else if (!readable && !writable)
		*why = "neither readable nor writable";
	else
		ret = add_range(dma, &r, fd, why);

	if (fd >= 0)
		close(fd);
	return ret;
}

int vu_dma_unmap(struct vu_dma *dma, uint64_t address, uint64_t size, const char **why)
{
	unsigned int slot = find_slot(dma, address);
	struct vu_dma_range *r;

	if (slot == dma->count || dma->ranges[slot].start != address) {
		*why = "no range begins there";
		return -ENOENT;
	}
	r = &dma->ranges[slot];
	if (size != r->last - r->start + 1) {
		*why = "size differs from that of the range";
		return -EINVAL;
	}
	release_range(dma, r);
	dma->count--;
	memmove(r, r + 1, (dma->count - slot) * sizeof(*r));
	return 0;
}

static const struct vu_dma_range *find_range(struct vu_dma *dma, uint64_t address)
{
	const struct vu_dma_range *r;

	if (dma->last_hit >= dma->count || address < dma->ranges[dma->last_hit].start ||
	    address > dma->ranges[dma->last_hit].last) {
		unsigned int slot = find_slot(dma, address);

		if (slot == dma->count || dma->ranges[slot].start > address)
			return NULL;
		dma->last_hit = slot;
	}
	r = &dma->ranges[dma->last_hit];
	return r->base || r->fd >= 0 ? r : NULL;
}

/* The number of the len bytes from address that are in r. */
static size_t bytes_in_range(const struct vu_dma_range *r, uint64_t address, size_t len)
{
	uint64_t after = r->last - address; /* bytes of the range behind the first */

	return after < len - 1 ? (size_t)after + 1 : len;
}

static bool is_accessible(struct vu_dma *dma, uint64_t address, size_t len, bool write)
{
	if (!len || len - 1 > UINT64_MAX - address)
		return false;
	while (len) {
		const struct vu_dma_range *r = find_range(dma, address);
		size_t chunk;

		if (!r || !(write ? r->writable : r->readable))
			return false;
		chunk = bytes_in_range(r, address, len);
		address += chunk;
		len -= chunk;
	}
	return true;
}

/*
 * The guest may change its memory at any time, so each access is one atomic load or store, in
 * ascending order.
 */
static void load_ascending(uint8_t *to, const uint8_t *from, size_t len)
{
	while (len && (uintptr_t)from % 8) {
		*to++ = __atomic_load_n(from++, __ATOMIC_ACQUIRE);
		len--;
	}
	for (; len >= 8; len -= 8, to += 8, from += 8) {
		uint64_t word = __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE);

		memcpy(to, &word, 8);
	}
	while (len--)
		*to++ = __atomic_load_n(from++, __ATOMIC_ACQUIRE);
}

static void store_ascending(uint8_t *to, const uint8_t *from, size_t len)
{
	while (len && (uintptr_t)to % 8) {
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
		len--;
	}
	for (; len >= 8; len -= 8, to += 8, from += 8) {
		uint64_t word;

		memcpy(&word, from, 8);
		__atomic_store_n((uint64_t *)to, word, __ATOMIC_RELEASE);
	}
	while (len--)
		__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
}

static int pread_all(int fd, uint8_t *buf, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pread(fd, buf, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EFAULT;
		buf += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int pwrite_all(int fd, const uint8_t *buf, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pwrite(fd, buf, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EFAULT;
		buf += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/*
 * Within one pwrite the kernel may store in any order. So the last 8 bytes of each 64-byte line,
 * which may hold a phase bit, are written by a separate call. pwrite would also extend a truncated
 * file; the size is checked first, so this can happen only if a client races with itself.
 */
static int pwrite_ascending(int fd, const uint8_t *buf, size_t len, uint64_t offset)
{
	struct stat st;

	if (fstat(fd, &st) || offset + len > (uint64_t)st.st_size)
		return -EFAULT;
	while (len) {
		size_t in_line = offset % 64;
		size_t chunk = in_line < 56 ? 56 - in_line : 64 - in_line;

		if (chunk > len)
			chunk = len;
		if (pwrite_all(fd, buf, chunk, offset))
			return -EFAULT;
		buf += chunk;
		offset += chunk;
		len -= chunk;
	}
	return 0;
}

int vu_dma_read(struct vu_dma *dma, uint64_t address, void *buf, size_t len)
{
	uint8_t *to = buf;

	if (!is_accessible(dma, address, len, false))
		return -EFAULT;
	while (len) {
		const struct vu_dma_range *r = find_range(dma, address);
		size_t chunk = bytes_in_range(r, address, len);
		uint64_t at = address - r->start;

		if (r->base)
			load_ascending(to, r->base + at, chunk);
		else if (pread_all(r->fd, to, chunk, r->fd_offset + at))
			return -EFAULT;
		to += chunk;
		address += chunk;
		len -= chunk;
	}
	return 0;
}

int vu_dma_write(struct vu_dma *dma, uint64_t address, const void *buf, size_t len)
{
	const uint8_t *from = buf;

	if (!is_accessible(dma, address, len, true))
		return -EFAULT;
	while (len) {
		const struct vu_dma_range *r = find_range(dma, address);
		size_t chunk = bytes_in_range(r, address, len);
		uint64_t at = address - r->start;

		if (r->base)
			store_ascending(r->base + at, from, chunk);
		else if (pwrite_ascending(r->fd, from, chunk, r->fd_offset + at))
			return -EFAULT;
		from += chunk;
		address += chunk;
		len -= chunk;
	}
	return 0;
}
