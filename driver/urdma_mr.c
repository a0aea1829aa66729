// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: memory for the NIC: page tables, user rings, memory regions.
 *
 * One page needs no table; up to 512 need one 4 KB table of their addresses; more need a directory
 * of such tables. Tables are written before they are mapped for the device and never after.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#ifdef URDMA_HAVE_ITER_H
#include <rdma/iter.h>
#endif

#include "urdma.h"

#define URDMA_PT_TABLE_SIZE    4096
#define URDMA_PT_TABLE_ENTRIES (URDMA_PT_TABLE_SIZE / 8)
/* A directory is contiguous: 4 MB, as the page allocator gives, reach over 1 TB of 4 KB pages. */
#define URDMA_PT_MAX_TABLES (SZ_4M / 8)

static void urdma_pt_free(struct urdma_dev *dev, struct urdma_pt *pt)
{
	struct device *d = &dev->pdev->dev;
	u32 i;

	if (pt->dir)
		dma_free_coherent(d, (size_t)pt->num_tables * 8, pt->dir, pt->dir_dma);
	for (i = 0; i < pt->num_tables && pt->table; i++) {
		if (!pt->table[i])
			break;
		if (pt->table_dma[i] != DMA_MAPPING_ERROR)
			dma_unmap_single(d, pt->table_dma[i], URDMA_PT_TABLE_SIZE, DMA_TO_DEVICE);
		free_page((unsigned long)pt->table[i]);
	}
	kvfree(pt->table);
	kvfree(pt->table_dma);
	memset(pt, 0, sizeof(*pt));
}

static int urdma_pt_map_table(struct urdma_dev *dev, struct urdma_pt *pt, u32 i)
{
	pt->table_dma[i] =
		dma_map_single(&dev->pdev->dev, pt->table[i], URDMA_PT_TABLE_SIZE, DMA_TO_DEVICE);
	if (dma_mapping_error(&dev->pdev->dev, pt->table_dma[i])) {
		pt->table_dma[i] = DMA_MAPPING_ERROR;
		return -ENOMEM;
	}
	return 0;
}

static int urdma_pt_build(struct urdma_dev *dev, struct urdma_pt *pt, struct ib_umem *umem,
			  unsigned long page_size)
{
	size_t pages = ib_umem_num_dma_blocks(umem, page_size);
	struct ib_block_iter it;
	size_t n = 0;
	u32 i;

	memset(pt, 0, sizeof(*pt));
	pt->page_shift = __ffs(page_size);
	if (pages == 1) {
		rdma_umem_for_each_dma_block(umem, &it, page_size)
			pt->addr = rdma_block_iter_dma_address(&it);
		return 0;
	}
	if (DIV_ROUND_UP(pages, URDMA_PT_TABLE_ENTRIES) > URDMA_PT_MAX_TABLES)
		return -EINVAL;

	pt->num_tables = DIV_ROUND_UP(pages, URDMA_PT_TABLE_ENTRIES);
	pt->levels = pt->num_tables == 1 ? 1 : 2;
	pt->table = kvcalloc(pt->num_tables, sizeof(*pt->table), GFP_KERNEL);
	pt->table_dma = kvcalloc(pt->num_tables, sizeof(*pt->table_dma), GFP_KERNEL);
	if (!pt->table || !pt->table_dma)
		goto err;
	for (i = 0; i < pt->num_tables; i++) {
		pt->table_dma[i] = DMA_MAPPING_ERROR;
		pt->table[i] = (__le64 *)get_zeroed_page(GFP_KERNEL);
		if (!pt->table[i])
			goto err;
	}
	rdma_umem_for_each_dma_block(umem, &it, page_size) {
		if (WARN_ON_ONCE(n == pages))
			goto err;
		pt->table[n / URDMA_PT_TABLE_ENTRIES][n % URDMA_PT_TABLE_ENTRIES] =
			cpu_to_le64(rdma_block_iter_dma_address(&it));
		n++;
	}
	for (i = 0; i < pt->num_tables; i++)
		if (urdma_pt_map_table(dev, pt, i))
			goto err;
	pt->addr = pt->table_dma[0];
	if (pt->levels == 2) {
		pt->dir = dma_alloc_coherent(&dev->pdev->dev, (size_t)pt->num_tables * 8,
					     &pt->dir_dma, GFP_KERNEL);
		if (!pt->dir)
			goto err;
		for (i = 0; i < pt->num_tables; i++)
			pt->dir[i] = cpu_to_le64(pt->table_dma[i]);
		pt->addr = pt->dir_dma;
	}
	return 0;

err:
	urdma_pt_free(dev, pt);
	return -ENOMEM;
}

/* Pin user memory and make the page table by which the NIC sees it at virtual address virt. */
static int urdma_mem_get(struct urdma_dev *dev, struct urdma_mem *mem, u64 addr, u64 length,
			 u64 virt, int access)
{
	unsigned long page_size;
	int err;

	mem->umem = ib_umem_get(&dev->ibdev, addr, length, access);
	if (IS_ERR(mem->umem)) {
		err = PTR_ERR(mem->umem);
		mem->umem = NULL;
		return err;
	}
	page_size = ib_umem_find_best_pgsz(mem->umem, dev->caps.page_sizes, virt);
	err = page_size ? urdma_pt_build(dev, &mem->pt, mem->umem, page_size) : -EINVAL;
	if (err) {
		ib_umem_release(mem->umem);
		mem->umem = NULL;
	}
	return err;
}

/* A ring counts from its first byte, so it has to start on a page of whatever size is chosen. */
int urdma_mem_ring(struct urdma_dev *dev, struct urdma_mem *mem, u64 addr, u32 len, int access)
{
	if (!len || addr & ~PAGE_MASK)
		return -EINVAL;
	return urdma_mem_get(dev, mem, addr, len, 0, access);
}

void urdma_mem_free(struct urdma_dev *dev, struct urdma_mem *mem)
{
	if (!mem->umem)
		return;
	urdma_pt_free(dev, &mem->pt);
	ib_umem_release(mem->umem);
	mem->umem = NULL;
}

u64 urdma_ring_word(const struct urdma_mem *mem, u8 log_entries, u8 log_stride)
{
	return FIELD_PREP(URDMA_RING_LOG_ENTRIES, log_entries) |
	       FIELD_PREP(URDMA_RING_LOG_STRIDE, log_stride) |
	       FIELD_PREP(URDMA_RING_LEVELS, mem->pt.levels) |
	       FIELD_PREP(URDMA_RING_PAGE_SHIFT, mem->pt.page_shift);
}

static u64 urdma_access(int access)
{
	return (access & IB_ACCESS_LOCAL_WRITE ? URDMA_ACC_LOCAL_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_WRITE ? URDMA_ACC_REMOTE_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_READ ? URDMA_ACC_REMOTE_READ : 0) |
	       (access & IB_ACCESS_REMOTE_ATOMIC ? URDMA_ACC_REMOTE_ATOMIC : 0) |
	       (access & IB_ACCESS_MW_BIND ? URDMA_ACC_MW_BIND : 0);
}

/* What we can give; what is merely a hint (IB_ACCESS_OPTIONAL) may be asked for. */
#define URDMA_ACCESS_KNOWN                                                        \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ACCESS_OPTIONAL)

/*
 * Take an index, and with it a key that differs from the index's last 255. Indexes go round, so a
 * stale key stays invalid for long.
 */
static int urdma_mr_alloc_key(struct urdma_dev *dev, struct urdma_mr *mr)
{
	u32 index;
	int err;

	err = xa_alloc_cyclic(&dev->mr_xa, &index, mr,
			      XA_LIMIT(URDMA_FIRST_MR, dev->caps.num_mr - 1), &dev->next_mr,
			      GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	mr->ibmr.lkey = index << 8 | dev->mr_variant[index]++;
	mr->ibmr.rkey = mr->ibmr.lkey;
	return 0;
}

static int urdma_mr_create(struct urdma_dev *dev, struct urdma_mr *mr, struct ib_pd *pd, int access,
			   u64 virt, u64 length, bool all)
{
	u64 cmd[URDMA_CMD_WORDS] = {};
	int err;

	err = urdma_mr_alloc_key(dev, mr);
	if (err)
		return err;
	cmd[0] = urdma_cmd0(URDMA_CMD_CREATE_MR, mr->ibmr.lkey >> 8);
	cmd[1] = FIELD_PREP(URDMA_CMD_MR1_PD, to_upd(pd)->pdn) |
		 FIELD_PREP(URDMA_CMD_MR1_ACCESS, urdma_access(access)) |
		 FIELD_PREP(URDMA_CMD_MR1_VARIANT, mr->ibmr.lkey & 0xff) |
		 FIELD_PREP(URDMA_CMD_MR1_LEVELS, mr->mem.pt.levels) |
		 FIELD_PREP(URDMA_CMD_MR1_PAGE_SHIFT, all ? PAGE_SHIFT : mr->mem.pt.page_shift) |
		 (all ? URDMA_CMD_MR1_ALL : 0);
	cmd[2] = virt;
	cmd[3] = length;
	cmd[4] = mr->mem.pt.addr;
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err)
		xa_erase(&dev->mr_xa, mr->ibmr.lkey >> 8);
	return err;
}

struct ib_mr *urdma_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct urdma_dev *dev = to_udev(ibpd->device);
	struct urdma_mr *mr;
	int err;

	if (access & ~URDMA_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = urdma_mr_create(dev, mr, ibpd, access, 0, 0, true);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

struct ib_mr *urdma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt, int access,
				struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibpd->device);
	struct urdma_mr *mr;
	int err;

	if (access & ~URDMA_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	if (!length || !urdma_udata_is_empty(udata))
		return ERR_PTR(-EINVAL);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = urdma_mem_get(dev, &mr->mem, start, length, virt, access);
	if (err)
		goto err_free;
	err = urdma_mr_create(dev, mr, ibpd, access, virt, length, false);
	if (err)
		goto err_mem;
	return &mr->ibmr;

err_mem:
	urdma_mem_free(dev, &mr->mem);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

int urdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibmr->device);
	struct urdma_mr *mr = to_umr(ibmr);

	urdma_cmd_destroy(dev, URDMA_CMD_DESTROY_MR, ibmr->lkey >> 8);
	xa_erase(&dev->mr_xa, ibmr->lkey >> 8);
	urdma_mem_free(dev, &mr->mem);
	kfree(mr);
	return 0;
}
