// SPDX-License-Identifier: Apache-2.0
/*
 * dm DEVICE: device memory, as the kernel allocates it: wrong attributes, by plain system calls;
 * more memory than there is; forbidden mappings; regions; the order in which mappings, memory and
 * context are freed; and that a process finds none of another's data. It allocates all of the
 * device's memory, so no other process may have any.
 *
 * dm DEVICE all: all of the memory can be allocated, is zero, and can be written.
 *
 * dm DEVICE hold: allocates all of it, prints "held", and writes to it until it is killed.
 *
 * dm DEVICE keep: allocates half of it, fills it, prints "held", waits for SIGTERM, and compares.
 *
 * Exit status 0 when everything is right, 3 when the device has no such memory and refuses requests
 * for it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "urdma-abi.h"
#include "urdma_hw.h"

#define PAGE	4096
#define NO_DM	3
#define PATTERN 0xa5

#define WANT(cond)                                                                              \
	do {                                                                                    \
		if (!(cond)) {                                                                  \
			fprintf(stderr, "dm: line %d: not so: %s, errno %d\n", __LINE__, #cond, \
				errno);                                                         \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

static const char *device;
/* bytes of the device's memory */
static uint64_t total;

static struct ibv_context *open_it(void)
{
	struct ibv_context *ctx = open_device(device);

	WANT(ctx);
	return ctx;
}

static uint64_t max_dm_size(struct ibv_context *ctx)
{
	struct ibv_device_attr_ex attr;

	WANT(!ibv_query_device_ex(ctx, NULL, &attr));
	return attr.max_dm_size;
}

static struct ibv_dm *try_dm(struct ibv_context *ctx, uint64_t length, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = { .length = length, .log_align_req = log_align };

	errno = 0;
	return ibv_alloc_dm(ctx, &attr);
}

static void refused(struct ibv_context *ctx, uint64_t length, uint32_t log_align, int err)
{
	WANT(!try_dm(ctx, length, log_align) && errno == err);
}

/* Reading is slow: 8 of each 64 bytes are compared, others each time. */
static void holds(struct ibv_dm *dm, uint64_t length, uint8_t value)
{
	uint64_t want, got;

	memset(&want, value, sizeof(want));
	for (uint64_t i = 0; i < length / 64; i++) {
		WANT(!ibv_memcpy_from_dm(&got, dm, i * 64 + i % 8 * 8, sizeof(got)));
		WANT(got == want);
	}
	WANT(!ibv_memcpy_from_dm(&got, dm, length - sizeof(got), sizeof(got)) && got == want);
}

/* All of it is free, and contains no other process's data. */
static struct ibv_dm *all_zero(struct ibv_context *ctx)
{
	struct ibv_dm *dm = try_dm(ctx, total, 0);

	WANT(dm);
	holds(dm, total, 0);
	return dm;
}

static void fill(struct ibv_dm *dm, uint64_t length, uint8_t value)
{
	uint8_t *copy = malloc(length);

	WANT(copy);
	memset(copy, value, length);
	WANT(!ibv_memcpy_to_dm(dm, 0, copy, length));
	free(copy);
}

/* ---- plain system calls ---------------------------------------------------------------------- */

static struct ib_uverbs_attr object(uint16_t id, uint32_t handle)
{
	return (struct ib_uverbs_attr){ .attr_id = id,
					.flags = UVERBS_ATTR_F_MANDATORY,
					.data = handle };
}

static struct ib_uverbs_attr number(uint16_t id, uint16_t len, uint64_t value)
{
	return (struct ib_uverbs_attr){
		.attr_id = id, .len = len, .flags = UVERBS_ATTR_F_MANDATORY, .data = value
	};
}

static struct ib_uverbs_attr room(uint16_t id, uint16_t len, void *at)
{
	return number(id, len, (uintptr_t)at);
}

#define MAX_ATTRS 8

/* Handles of new objects are written to the attributes. */
static int method(int fd, uint16_t of, uint16_t id, struct ib_uverbs_attr *attrs, uint16_t num)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[MAX_ATTRS];
	} cmd = { .hdr = { .object_id = of, .method_id = id, .num_attrs = num } };

	WANT(num <= MAX_ATTRS);
	memcpy(cmd.attrs, attrs, num * sizeof(*attrs));
	cmd.hdr.length = sizeof(cmd.hdr) + num * sizeof(*attrs);
	if (ioctl(fd, RDMA_VERBS_IOCTL, &cmd.hdr))
		return -errno;
	memcpy(attrs, cmd.attrs, num * sizeof(*attrs));
	return 0;
}

/* Returns the memory's handle, or a negative error. */
static int64_t alloc_raw(int fd, uint64_t length, uint32_t log_align, void *resp, uint16_t len)
{
	struct ib_uverbs_attr attrs[] = {
		object(UVERBS_ATTR_ALLOC_DM_HANDLE, 0),
		number(UVERBS_ATTR_ALLOC_DM_LENGTH, 8, length),
		number(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, log_align),
		room(URDMA_ATTR_ALLOC_DM_RESP, len, resp),
	};
	int err = method(fd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, attrs, 4);

	return err ? err : (int64_t)attrs[0].data;
}

static int free_raw(int fd, uint32_t handle)
{
	struct ib_uverbs_attr attr = object(UVERBS_ATTR_FREE_DM_HANDLE, handle);

	return method(fd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, &attr, 1);
}

static int query_raw(int fd, uint32_t handle, void *resp, uint16_t len)
{
	struct ib_uverbs_attr attrs[] = {
		object(URDMA_ATTR_QUERY_DM_HANDLE, handle),
		room(URDMA_ATTR_QUERY_DM_RESP, len, resp),
	};

	return method(fd, UVERBS_OBJECT_DM, URDMA_METHOD_QUERY_DM, attrs, 2);
}

static int reg_raw(int fd, uint32_t pd, uint32_t dm, uint64_t offset, uint64_t length,
		   uint32_t access)
{
	uint32_t lkey, rkey;
	struct ib_uverbs_attr attrs[] = {
		object(UVERBS_ATTR_REG_DM_MR_HANDLE, 0),
		number(UVERBS_ATTR_REG_DM_MR_OFFSET, 8, offset),
		number(UVERBS_ATTR_REG_DM_MR_LENGTH, 8, length),
		object(UVERBS_ATTR_REG_DM_MR_PD_HANDLE, pd),
		number(UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, 4, access),
		object(UVERBS_ATTR_REG_DM_MR_DM_HANDLE, dm),
		room(UVERBS_ATTR_REG_DM_MR_RESP_LKEY, 4, &lkey),
		room(UVERBS_ATTR_REG_DM_MR_RESP_RKEY, 4, &rkey),
	};

	return method(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, attrs, 8);
}

/* The offset at which the kernel wants it to be mapped. */
static struct urdma_dm_resp place_of(const struct ibv_dm *dm)
{
	struct urdma_dm_resp resp;

	WANT(!query_raw(dm->context->cmd_fd, dm->handle, &resp, sizeof(resp)));
	return resp;
}

static volatile uint8_t *map(int fd, uint64_t offset, size_t bytes, int prot, int flags)
{
	void *at = mmap(NULL, bytes, prot, flags, fd, (off_t)offset);

	return at == MAP_FAILED ? NULL : at;
}

/* Maps each page separately, side by side. */
static volatile uint8_t *map_pages(int fd, const struct urdma_dm_resp *r)
{
	volatile uint8_t *at = map(-1, 0, r->length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS);

	WANT(at);
	for (uint64_t i = 0; i < r->length; i += PAGE)
		WANT(mmap((void *)(uintptr_t)(at + i), PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, fd, (off_t)(r->mmap_offset + i)) != MAP_FAILED);
	return at;
}

/* Maps it once more than the provider does. */
static volatile uint8_t *map_all(const struct ibv_dm *dm)
{
	struct urdma_dm_resp r = place_of(dm);

	return map_pages(dm->context->cmd_fd, &r);
}

static void unmap(volatile void *at, size_t bytes)
{
	WANT(!munmap((void *)(uintptr_t)at, bytes));
}

/* ---- one process ----------------------------------------------------------------------------- */

/* A device without this memory refuses every request, also by plain system calls. */
static void check_none(struct ibv_context *ctx)
{
	struct urdma_dm_resp resp;

	refused(ctx, PAGE, 0, EOPNOTSUPP);
	WANT(alloc_raw(ctx->cmd_fd, PAGE, 0, &resp, sizeof(resp)) < 0);
	WANT(query_raw(ctx->cmd_fd, 0, &resp, sizeof(resp)) < 0);
	WANT(free_raw(ctx->cmd_fd, 0) < 0);
}

static void check_attributes(struct ibv_context *ctx)
{
	struct {
		struct urdma_dm_resp resp;
		uint8_t more[16];
	} r;
	const uint16_t len = sizeof(r.resp);
	struct ib_uverbs_attr too_few[] = {
		object(UVERBS_ATTR_ALLOC_DM_HANDLE, 0),
		number(UVERBS_ATTR_ALLOC_DM_LENGTH, 8, PAGE),
		number(UVERBS_ATTR_ALLOC_DM_ALIGNMENT, 4, 0),
	};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	int log = __builtin_ctzll(total);
	int fd = ctx->cmd_fd;
	int64_t handle;

	WANT(pd);
	/* Lengths and alignments that are not available. */
	refused(ctx, 0, 0, EINVAL);
	refused(ctx, total + 1, 0, EINVAL);
	refused(ctx, total + PAGE, 0, EINVAL);
	refused(ctx, (UINT64_C(1) << 32) + 4, 0, EINVAL);
	refused(ctx, UINT64_MAX, 0, EINVAL);
	refused(ctx, UINT64_MAX - PAGE + 1, 0, EINVAL);
	refused(ctx, 4, (uint32_t)log + 1, EINVAL);
	refused(ctx, 4, 64, EINVAL);
	refused(ctx, 4, UINT32_MAX, EINVAL);

	/* Without room for the response, with too little of it, with more, and at an address that
	 * is not mapped. */
	WANT(method(fd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, too_few, 3) < 0);
	WANT(alloc_raw(fd, PAGE, 0, &r, len - 8) < 0 && alloc_raw(fd, PAGE, 0, &r, 0) < 0);
	WANT(alloc_raw(fd, total, 0, (void *)8, len) == -EFAULT);
	memset(&r, PATTERN, sizeof(r));
	handle = alloc_raw(fd, total - 100, (uint32_t)log, &r, sizeof(r));
	WANT(handle >= 0);
	WANT(r.resp.length == total - 100 && r.resp.page_size == PAGE && !r.resp.reserved);
	WANT(!(r.resp.mmap_offset % PAGE));
	for (unsigned int i = 0; i < sizeof(r.more); i++)
		WANT(!r.more[i]);

	/* A query returns the same; it accepts only handles of device memory. */
	memset(&r, PATTERN, sizeof(r));
	WANT(!query_raw(fd, (uint32_t)handle, &r, len));
	WANT(r.resp.length == total - 100 && r.resp.page_size == PAGE && !r.resp.reserved);
	WANT(r.more[0] == PATTERN);
	WANT(query_raw(fd, (uint32_t)handle, &r, len - 8) < 0);
	WANT(query_raw(fd, (uint32_t)handle, (void *)8, len) == -EFAULT);
	WANT(query_raw(fd, pd->handle, &r, len) < 0 && query_raw(fd, UINT32_MAX, &r, len) < 0);
	WANT(free_raw(fd, pd->handle) < 0 && free_raw(fd, UINT32_MAX) < 0);
	WANT(!free_raw(fd, (uint32_t)handle));
	WANT(query_raw(fd, (uint32_t)handle, &r, len) < 0 && free_raw(fd, (uint32_t)handle) < 0);
	WANT(!ibv_dealloc_pd(pd));
}

/* The smallest length is a page; and places with larger alignments may be taken. */
static void check_exhaustion(struct ibv_context *ctx)
{
	unsigned int pages = (unsigned int)(total / PAGE);
	struct ibv_dm **dm = calloc(pages, sizeof(*dm));
	uint32_t log = (uint32_t)__builtin_ctzll(total);
	uint32_t mark;

	WANT(dm);
	for (uint32_t i = 0; i < pages; i++) {
		dm[i] = try_dm(ctx, i % 2 ? 4 : PAGE, 0);
		WANT(dm[i]);
		mark = ~i;
		WANT(!ibv_memcpy_to_dm(dm[i], 0, &mark, 4));
	}
	refused(ctx, 4, 0, ENOMEM);
	refused(ctx, total, 0, ENOMEM);
	for (uint32_t i = 0; i < pages; i++) {
		WANT(!ibv_memcpy_from_dm(&mark, dm[i], 0, 4) && mark == ~i);
		/* The first allocation stays. */
		WANT(!i || !ibv_free_dm(dm[i]));
	}
	refused(ctx, total, 0, ENOMEM);
	refused(ctx, 4, log, ENOMEM);
	dm[1] = try_dm(ctx, total / 2, log - 1);
	WANT(dm[1]);
	refused(ctx, total / 2, 0, ENOMEM);
	WANT(!ibv_free_dm(dm[1]) && !ibv_free_dm(dm[0]));
	free(dm);
	WANT(!ibv_free_dm(all_zero(ctx)));
}

static void check_copies(struct ibv_context *ctx)
{
	uint8_t from[64 + 8], to[sizeof(from)], model[PAGE] = { 0 };
	struct ibv_dm *dm = try_dm(ctx, PAGE - 4, 0);
	volatile uint8_t *at;

	WANT(dm);
	at = map_all(dm);
	for (unsigned int i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 37 + 1);
	for (uint32_t offset = 0; offset <= 8; offset += 4)
		for (uint32_t length = 0; length <= 32; length += 4)
			for (uint32_t shift = 0; shift < 8; shift += 3) {
				/* around the end of a cache line, and at the end of the memory */
				uint32_t near = length % 8 ? 48 : PAGE - 4 - 8 - 32;

				WANT(!ibv_memcpy_to_dm(dm, near + offset, from + shift, length));
				memcpy(model + near + offset, from + shift, length);
				memset(to, 0, sizeof(to));
				WANT(!ibv_memcpy_from_dm(to + shift, dm, near + offset, length));
				WANT(!memcmp(to + shift, from + shift, length));
				from[shift]++;
			}
	for (unsigned int i = 0; i < PAGE; i++)
		WANT(at[i] == model[i]);

	/* Accesses of every size that a CPU has, within a word. */
	for (unsigned int i = 0; i < 8; i++)
		at[128 + i] = (uint8_t)(0x10 + i);
	WANT(*(volatile uint64_t *)(at + 128) == 0x1716151413121110);
	*(volatile uint16_t *)(at + 130) = 0x2322;
	*(volatile uint32_t *)(at + 132) = 0x27262524;
	WANT(*(volatile uint64_t *)(at + 128) == 0x2726252423221110);
	WANT(*(volatile uint16_t *)(at + 134) == 0x2726 && at[131] == 0x23);

	WANT(ibv_memcpy_to_dm(dm, PAGE - 4, from, 4) && ibv_memcpy_to_dm(dm, 2, from, 4));
	WANT(ibv_memcpy_from_dm(to, dm, PAGE - 4, 4) && ibv_memcpy_from_dm(to, dm, 4, 2));
	unmap(at, PAGE);
	WANT(!ibv_free_dm(dm));
}

static void check_mmap(struct ibv_context *ctx)
{
	const int rw = PROT_READ | PROT_WRITE;
	struct ibv_context *other = open_it();
	struct ibv_dm *dm = try_dm(ctx, 2 * PAGE, 0);
	struct urdma_dm_resp r;
	volatile uint8_t *at;
	int fd = ctx->cmd_fd;

	WANT(dm);
	r = place_of(dm);
	WANT(!map(fd, r.mmap_offset, PAGE, rw | PROT_EXEC, MAP_SHARED) && errno == EPERM);
	WANT(!map(fd, r.mmap_offset, PAGE, rw, MAP_PRIVATE) && errno == EINVAL);
	WANT(!map(fd, r.mmap_offset, 2 * PAGE, rw, MAP_SHARED) && errno == EINVAL);
	WANT(!map(fd, r.mmap_offset - PAGE, PAGE, rw, MAP_SHARED) && errno == EINVAL);
	WANT(!map(fd, r.mmap_offset - PAGE, 2 * PAGE, rw, MAP_SHARED) && errno == EINVAL);
	WANT(!map(fd, r.mmap_offset + PAGE, 2 * PAGE, rw, MAP_SHARED) && errno == EINVAL);
	WANT(!map(fd, r.mmap_offset + 2 * PAGE, PAGE, rw, MAP_SHARED) && errno == EINVAL);
	/* Offsets are valid only in their own context. */
	WANT(!map(other->cmd_fd, r.mmap_offset, PAGE, rw, MAP_SHARED) && errno == EINVAL);
	WANT(!ibv_close_device(other));

	at = map(fd, r.mmap_offset + PAGE, PAGE, PROT_READ, MAP_SHARED);
	WANT(at && !at[0]);
	WANT(mprotect((void *)(uintptr_t)at, PAGE, PROT_READ | PROT_EXEC) && errno == EACCES);
	unmap(at, PAGE);
	WANT(!ibv_free_dm(dm));
	/* Freed memory is no longer mapped. */
	WANT(!map(fd, r.mmap_offset, PAGE, rw, MAP_SHARED) && errno == EINVAL);
}

static void check_regions(struct ibv_context *ctx)
{
	const int rw = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	const uint32_t zero = IBV_ACCESS_ZERO_BASED, length = 100;
	struct ibv_context *other = open_it();
	struct ibv_dm *dm = try_dm(ctx, length, 0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	uint8_t *buf = aligned_alloc(PAGE, PAGE);
	int fd = ctx->cmd_fd;
	struct ibv_mr *mr;

	WANT(dm && pd && buf);
	/*
	 * At its own address, beyond the memory, not in whole words, with rights that do not exist.
	 */
	WANT(reg_raw(fd, pd->handle, dm->handle, 0, length, rw) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, 0, length + 4, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, 8, length, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, length + 4, 0, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, PAGE, 4, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, UINT64_MAX - 3, 8, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, UINT64_C(1) << 32, 4, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, 8, UINT64_MAX - 3, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, 2, 4, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, 4, 4, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, 8, 6, zero) == -EINVAL);
	WANT(reg_raw(fd, pd->handle, dm->handle, 0, 4, zero | IBV_ACCESS_ON_DEMAND) < 0);
	WANT(reg_raw(fd, pd->handle, dm->handle, 0, 4, zero | IBV_ACCESS_HUGETLB) < 0);
	WANT(reg_raw(fd, pd->handle, dm->handle, 0, 4, zero | IBV_ACCESS_REMOTE_WRITE) < 0);
	WANT(reg_raw(fd, pd->handle, dm->handle, 0, 4, zero | 1u << 31) < 0);
	/* Handles of other objects, and in a context that does not have them. */
	WANT(reg_raw(fd, dm->handle, pd->handle, 0, 4, zero) < 0);
	WANT(reg_raw(other->cmd_fd, pd->handle, dm->handle, 0, 4, zero) < 0);
	WANT(!ibv_close_device(other));
	/* None of these holds a reference to it. */
	WANT(!ibv_free_dm(dm));

	dm = try_dm(ctx, 2 * PAGE + length, 0);
	WANT(dm);
	mr = ibv_reg_dm_mr(pd, dm, PAGE - 8, PAGE + 8, zero | (uint32_t)rw);
	WANT(mr && mr->length == PAGE + 8 && mr->lkey == mr->rkey);
	WANT(ibv_free_dm(dm) == EBUSY && ibv_dealloc_pd(pd) == EBUSY);
	fill(dm, PAGE, PATTERN);
	holds(dm, PAGE, PATTERN);
	/* It cannot become a region of other memory, nor one with other rights. */
	WANT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	WANT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, PAGE, 0));
	WANT(!ibv_dereg_mr(mr));
	mr = ibv_reg_dm_mr(pd, dm, 0, 0, zero);
	WANT(mr && !ibv_dereg_mr(mr));
	WANT(!ibv_free_dm(dm) && !ibv_dealloc_pd(pd));
	free(buf);
}

/* Pages that are freed go to no other process while they are mapped; nor do those of a closed
 * context. */
static void check_order(void)
{
	struct ibv_context *ctx = open_it(), *other = open_it();
	struct ibv_dm *dm = all_zero(ctx);
	volatile uint8_t *at = map_all(dm), *again = map_all(dm);
	struct urdma_dm_resp r;

	WANT(!ibv_free_dm(dm));
	at[8] = PATTERN;
	WANT(again[8] == PATTERN);
	refused(ctx, 4, 0, ENOMEM);
	refused(other, 4, 0, ENOMEM);
	unmap(at, total);
	refused(other, 4, 0, ENOMEM);
	WANT(again[8] == PATTERN);
	/* Page by page. */
	unmap(again + PAGE, PAGE);
	refused(other, 2 * PAGE, 0, ENOMEM);
	dm = try_dm(other, PAGE, 0);
	WANT(dm && again[8] == PATTERN);
	holds(dm, PAGE, 0);
	WANT(!ibv_free_dm(dm));
	unmap(again, total);

	/* Not through the provider, which would keep its mapping. */
	WANT(alloc_raw(ctx->cmd_fd, total, 0, &r, sizeof(r)) >= 0);
	at = map_pages(ctx->cmd_fd, &r);
	at[total - 1] = PATTERN;
	/* The mapping keeps the file open, and the file its objects. */
	WANT(!ibv_close_device(ctx));
	WANT(at[total - 1] == PATTERN);
	refused(other, 4, 0, ENOMEM);
	unmap(at, total);
	WANT(!ibv_free_dm(all_zero(other)));
	WANT(!ibv_close_device(other));
}

/* ---- two processes --------------------------------------------------------------------------- */

static void wait_for(pid_t child)
{
	int status;

	WANT(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* A process leaves all of it full of its data: it frees the memory, or ends. */
static void check_leftovers(void)
{
	for (int tidy = 0; tidy < 2; tidy++) {
		pid_t child = fork();
		struct ibv_context *ctx;

		WANT(child >= 0);
		if (!child) {
			struct ibv_dm *dm;

			ctx = open_it();
			dm = all_zero(ctx);
			fill(dm, total, PATTERN);
			WANT(!tidy || (!ibv_free_dm(dm) && !ibv_close_device(ctx)));
			_exit(0);
		}
		wait_for(child);
		ctx = open_it();
		WANT(!ibv_free_dm(all_zero(ctx)) && !ibv_close_device(ctx));
	}
}

/* Two processes that have half of it each, at the same time. */
static void check_neighbours(void)
{
	struct ibv_context *ctx;
	struct ibv_dm *dm;
	int up[2], down[2];
	pid_t child;
	char c;

	WANT(!pipe(up) && !pipe(down));
	child = fork();
	WANT(child >= 0);
	ctx = open_it();
	dm = try_dm(ctx, total / 2, 0);
	WANT(dm);
	holds(dm, total / 2, 0);
	fill(dm, total / 2, child ? 0x11 : 0x22);
	if (!child) {
		WANT(write(up[1], "x", 1) == 1 && read(down[0], &c, 1) == 1);
		holds(dm, total / 2, 0x22);
		_exit(0);
	}
	WANT(read(up[0], &c, 1) == 1);
	refused(ctx, 4, 0, ENOMEM);
	holds(dm, total / 2, 0x11);
	WANT(write(down[1], "x", 1) == 1);
	wait_for(child);
	holds(dm, total / 2, 0x11);
	WANT(!ibv_free_dm(dm) && !ibv_close_device(ctx));
	WANT(!close(up[0]) && !close(up[1]) && !close(down[0]) && !close(down[1]));
}

/*
 * A child has its parent's mappings, and keeps them when the parent frees the memory. Not with
 * lockdep: uverbs of Linux 6.12 takes mmap_lock and its disassociation_lock in one order when a
 * process with mappings forks, and in the other one when a device goes.
 */
static void check_inherited(void)
{
	struct ibv_context *ctx;
	struct ibv_dm *dm;
	volatile uint8_t *at;
	int up[2], down[2];
	pid_t child;
	char c;

	if (!access("/proc/lockdep", F_OK)) {
		printf("skipped: mappings of a child, because of lockdep\n");
		return;
	}
	ctx = open_it();
	dm = all_zero(ctx);
	at = map_all(dm);
	WANT(!pipe(up) && !pipe(down));
	child = fork();
	WANT(child >= 0);
	if (!child) {
		WANT(read(down[0], &c, 1) == 1);
		at[0] = PATTERN;
		WANT(at[0] == PATTERN && write(up[1], "x", 1) == 1);
		WANT(read(down[0], &c, 1) == 1);
		_exit(0);
	}
	unmap(at, total);
	WANT(!ibv_free_dm(dm));
	WANT(write(down[1], "x", 1) == 1 && read(up[0], &c, 1) == 1);
	refused(ctx, 4, 0, ENOMEM);
	WANT(write(down[1], "x", 1) == 1);
	wait_for(child);
	WANT(!ibv_free_dm(all_zero(ctx)) && !ibv_close_device(ctx));
	WANT(!close(up[0]) && !close(up[1]) && !close(down[0]) && !close(down[1]));
}

/* ---------------------------------------------------------------------------------------------- */

static void hold(struct ibv_context *ctx)
{
	struct ibv_dm *dm = all_zero(ctx);
	volatile uint8_t *at = map_all(dm);

	printf("held\n");
	fflush(stdout);
	/* Also when the device is reset: then the mapping is of other memory. */
	for (;;) {
		for (uint64_t i = 0; i < total; i += 256)
			*(volatile uint64_t *)(at + i) = PATTERN;
		usleep(10000);
	}
}

/* Fills half of the memory with a pattern, and compares it when SIGTERM comes. */
static void keep(struct ibv_context *ctx)
{
	struct ibv_dm *dm = try_dm(ctx, total / 2, 0);
	sigset_t set;
	int sig;

	WANT(dm);
	fill(dm, total / 2, PATTERN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	printf("held\n");
	fflush(stdout);
	WANT(!sigwait(&set, &sig));
	holds(dm, total / 2, PATTERN);
	WANT(!ibv_free_dm(dm) && !ibv_close_device(ctx));
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;

	if (argc < 2) {
		fprintf(stderr, "usage: dm DEVICE [all|hold|keep]\n");
		return 2;
	}
	device = argv[1];
	ctx = open_it();
	total = max_dm_size(ctx);
	if (!total) {
		check_none(ctx);
		printf("%s has no device memory\n", device);
		return NO_DM;
	}
	if (argc > 2 && !strcmp(argv[2], "hold"))
		hold(ctx);
	if (argc > 2 && !strcmp(argv[2], "keep")) {
		keep(ctx);
		return 0;
	}
	if (argc > 2) {
		struct ibv_dm *dm = try_dm(ctx, total, 0);
		uint8_t *copy = malloc(total);

		WANT(dm && copy);
		WANT(!ibv_memcpy_from_dm(copy, dm, 0, total));
		for (uint64_t i = 0; i < total; i++)
			WANT(!copy[i]);
		fill(dm, total, PATTERN);
		holds(dm, total, PATTERN);
		WANT(!ibv_free_dm(dm) && !ibv_close_device(ctx));
		return 0;
	}
	/* At least as much as the checks allocate at once. */
	WANT(total >= 4 * PAGE && !(total & (total - 1)));
	check_attributes(ctx);
	check_exhaustion(ctx);
	check_copies(ctx);
	check_mmap(ctx);
	check_regions(ctx);
	WANT(!ibv_close_device(ctx));
	check_order();
	check_leftovers();
	check_neighbours();
	check_inherited();
	printf("%s: %llu bytes of device memory\n", device, (unsigned long long)total);
	return 0;
}
