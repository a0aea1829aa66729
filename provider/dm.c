// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: device memory.
 *
 * The memory is mapped uncached. The NIC accepts accesses of at most 8 bytes that do not cross an
 * 8-byte boundary. So copies use aligned accesses of 4 and 8 bytes, never memcpy(), which uses
 * vector instructions. Uncached accesses, including doorbells, reach the NIC in program order: data
 * are in device memory before the NIC sees a later doorbell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "urdma.h"

/* The start and the end of a copy must be multiples of it. */
#define URDMA_DM_WORD 4

static int urdma_check_copy(const struct urdma_dm *dm, uint64_t offset, size_t length)
{
	if (length > dm->length || offset > dm->length - length)
		return EFAULT;
	return (offset | length) % URDMA_DM_WORD ? EINVAL : 0;
}

/* Size in bytes of the next access. A 32-bit CPU has no 64-bit reads. */
static size_t urdma_copy_step(const uint8_t *dm, size_t left)
{
	return SIZEOF_LONG == 8 && left >= 8 && !((uintptr_t)dm % 8) ? 8 : URDMA_DM_WORD;
}

/* The byte order must not change, so these accessors do not convert. */
static void urdma_write_step(uint8_t *dm, const uint8_t *from, size_t step)
{
	__be64 pair;
	__be32 word;

	if (step == sizeof(pair)) {
		memcpy(&pair, from, sizeof(pair));
		mmio_write64_be(dm, pair);
	} else {
		memcpy(&word, from, sizeof(word));
		mmio_write32_be(dm, word);
	}
}

static void urdma_read_step(uint8_t *to, const uint8_t *dm, size_t step)
{
	__be32 word;

#if SIZEOF_LONG == 8
	if (step == sizeof(__be64)) {
		__be64 pair = mmio_read64_be(dm);

		memcpy(to, &pair, sizeof(pair));
		return;
	}
#endif
	word = mmio_read32_be(dm);
	memcpy(to, &word, sizeof(word));
}

static int urdma_memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset, const void *host, size_t length)
{
	const struct urdma_dm *dm = to_udm(ibdm);
	const uint8_t *from = host;
	size_t step, done;
	int err;

	err = urdma_check_copy(dm, offset, length);
	if (err)
		return err;
	for (done = 0; done < length; done += step) {
		step = urdma_copy_step(dm->at + offset + done, length - done);
		urdma_write_step(dm->at + offset + done, from + done, step);
	}
	/* From here on, another thread may ring a doorbell for the data. */
	udma_to_device_barrier();
	return 0;
}

static int urdma_memcpy_from_dm(void *host, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	const struct urdma_dm *dm = to_udm(ibdm);
	uint8_t *to = host;
	size_t step, done;
	int err;

	err = urdma_check_copy(dm, offset, length);
	if (err)
		return err;
	/* The caller may have learned of the data from memory that the NIC wrote. */
	udma_from_device_barrier();
	for (done = 0; done < length; done += step) {
		step = urdma_copy_step(dm->at + offset + done, length - done);
		urdma_read_step(to + done, dm->at + offset + done, step);
	}
	return 0;
}

/* The kernel requires one mapping per page. An anonymous mapping reserves the range for all. */
static int urdma_map_dm(struct urdma_dm *dm, struct ibv_context *ctx,
			const struct urdma_dm_resp *resp)
{
	size_t bytes = (resp->length + resp->page_size - 1) / resp->page_size * resp->page_size;
	uint8_t *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t done;
	int err;

	if (at == MAP_FAILED)
		return errno;
	for (done = 0; done < bytes; done += resp->page_size) {
		if (mmap(at + done, resp->page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 ctx->cmd_fd, resp->mmap_offset + done) == MAP_FAILED) {
			err = errno;
			munmap(at, bytes);
			return err;
		}
	}
	dm->at = at;
	dm->mapped = bytes;
	dm->length = resp->length;
	dm->vdm.dm.memcpy_to_dm = urdma_memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = urdma_memcpy_from_dm;
	return 0;
}

struct ibv_dm *urdma_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(link, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 1);
	struct urdma_dm_resp resp = {};
	struct urdma_dm *dm;
	int err = EOPNOTSUPP;

	if (!(to_uctx(ctx)->features & URDMA_RF_FEAT_DM) || attr->comp_mask)
		goto err_errno;
	err = ENOMEM;
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		goto err_errno;
	fill_attr_out_ptr(link, URDMA_ATTR_ALLOC_DM_RESP, &resp);
	err = ibv_cmd_alloc_dm(ctx, attr, &dm->vdm, link);
	if (err)
		goto err_free;
	err = urdma_map_dm(dm, ctx, &resp);
	if (err)
		goto err_kernel;
	return &dm->vdm.dm;

err_kernel:
	ibv_cmd_free_dm(&dm->vdm);
err_free:
	free(dm);
err_errno:
	errno = err;
	return NULL;
}

static void urdma_forget_dm(struct urdma_dm *dm)
{
	munmap(dm->at, dm->mapped);
	free(dm);
}

/* The kernel does not reuse the memory until it is unmapped. */
int urdma_free_dm(struct ibv_dm *ibdm)
{
	struct urdma_dm *dm = to_udm(ibdm);
	int err = ibv_cmd_free_dm(&dm->vdm);

	if (err)
		return err;
	urdma_forget_dm(dm);
	return 0;
}

struct ibv_mr *urdma_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			       unsigned int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_dm_mr(pd, &to_udm(dm)->vdm, offset, length, access, vmr, NULL);
	vmr->access = access;
	return urdma_mr_made(pd, vmr, err);
}

/* Another user of the context owns and frees the memory. */
struct ibv_dm *urdma_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, URDMA_METHOD_QUERY_DM, 2);
	struct urdma_dm_resp resp = {};
	struct urdma_dm *dm;
	int err;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	fill_attr_in_obj(cmd, URDMA_ATTR_QUERY_DM_HANDLE, handle);
	fill_attr_out_ptr(cmd, URDMA_ATTR_QUERY_DM_RESP, &resp);
	err = execute_ioctl(ctx, cmd);
	if (!err)
		err = urdma_map_dm(dm, ctx, &resp);
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	dm->vdm.handle = handle;
	dm->vdm.dm.handle = handle;
	dm->vdm.dm.comp_mask = IBV_DM_MASK_HANDLE;
	dm->vdm.dm.context = ctx;
	return &dm->vdm.dm;
}

void urdma_unimport_dm(struct ibv_dm *dm)
{
	urdma_forget_dm(to_udm(dm));
}
