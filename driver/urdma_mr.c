// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: memory for the NIC: page tables, rings, memory regions and windows.
 *
 * One page needs no table; up to 512 need one 4 KB table of their addresses; more need a directory
 * of such tables. Tables are written only before they are mapped for the device.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#ifdef URDMA_HAVE_ITER_H
#include <rdma/iter.h>
#endif

#include "urdma.h"

#define URDMA_PT_TABLE_SIZE    4096
#define URDMA_PT_TABLE_ENTRIES (URDMA_PT_TABLE_SIZE / 8)
/* A directory is contiguous: the 4 MB that the page allocator can give cover 1 TB of 4 KB pages. */
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
	pt->pages = pages;
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
		/* A process chooses its size, up to 4 MB contiguous. */
		pt->dir = dma_alloc_coherent(&dev->pdev->dev, (size_t)pt->num_tables * 8,
					     &pt->dir_dma, GFP_KERNEL | __GFP_NOWARN);
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

/* Build the page table through which the NIC accesses pinned memory at virtual address virt. */
static int urdma_mem_map(struct urdma_dev *dev, struct urdma_mem *mem, struct ib_umem *umem,
			 u64 virt)
{
	unsigned long page_size = ib_umem_find_best_pgsz(umem, dev->caps.page_sizes, virt);
	int err = page_size ? urdma_pt_build(dev, &mem->pt, umem, page_size) : -EINVAL;

	if (err)
		ib_umem_release(umem);
	else
		mem->umem = umem;
	return err;
}

static int urdma_mem_get(struct urdma_dev *dev, struct urdma_mem *mem, u64 addr, u64 length,
			 u64 virt, int access)
{
	struct ib_umem *umem = ib_umem_get(&dev->ib->ibdev, addr, length, access);

	return IS_ERR(umem) ? PTR_ERR(umem) : urdma_mem_map(dev, mem, umem, virt);
}

/* Memory of another device or driver. It must not move: the NIC cannot handle page faults. */
static int urdma_mem_get_dmabuf(struct urdma_dev *dev, struct urdma_mem *mem, int fd, u64 offset,
				u64 length, u64 virt, int access)
{
	struct ib_umem_dmabuf *dmabuf =
		ib_umem_dmabuf_get_pinned(&dev->ib->ibdev, offset, length, fd, access);

	return IS_ERR(dmabuf) ? PTR_ERR(dmabuf) : urdma_mem_map(dev, mem, &dmabuf->umem, virt);
}

/* No memory: to the NIC, a page at 0 of which no byte may be accessed. */
static int urdma_mem_none(struct urdma_mem *mem)
{
	mem->pt.page_shift = PAGE_SHIFT;
	return 0;
}

/* A ring has no offset in its first page, so it must be aligned to the chosen page size. */
int urdma_mem_ring(struct urdma_dev *dev, struct urdma_mem *mem, u64 addr, u32 len, int access)
{
	if (!len || addr & ~PAGE_MASK)
		return -EINVAL;
	return urdma_mem_get(dev, mem, addr, len, 0, access);
}

/* A ring of the kernel, zeroed. Large ones may fail, because the memory is contiguous. */
int urdma_mem_alloc(struct urdma_dev *dev, struct urdma_mem *mem, size_t bytes)
{
	memset(mem, 0, sizeof(*mem));
	/* It must be page-aligned; coherent memory of a page or more is. */
	mem->bytes = max_t(size_t, bytes, PAGE_SIZE);
	mem->buf = dma_alloc_coherent(&dev->pdev->dev, mem->bytes, &mem->pt.addr,
				      GFP_KERNEL | __GFP_NOWARN);
	if (!mem->buf)
		return -ENOMEM;
	mem->pt.page_shift = PAGE_SHIFT;
	return 0;
}

void urdma_mem_free(struct urdma_dev *dev, struct urdma_mem *mem)
{
	if (mem->buf)
		dma_free_coherent(&dev->pdev->dev, mem->bytes, mem->buf, mem->pt.addr);
	mem->buf = NULL;
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

u64 urdma_access(int access)
{
	return (access & IB_ACCESS_LOCAL_WRITE ? URDMA_ACC_LOCAL_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_WRITE ? URDMA_ACC_REMOTE_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_READ ? URDMA_ACC_REMOTE_READ : 0) |
	       (access & IB_ACCESS_REMOTE_ATOMIC ? URDMA_ACC_REMOTE_ATOMIC : 0) |
	       (access & IB_ACCESS_MW_BIND ? URDMA_ACC_MW_BIND : 0) |
	       (access & IB_ACCESS_FLUSH_GLOBAL ? URDMA_ACC_FLUSH_GLOBAL : 0);
}

/*
 * The supported access flags. Hints (IB_ACCESS_OPTIONAL) are always allowed. A NIC without FLUSH
 * does not report its capability, so ib_core refuses that flag from a process.
 */
#define URDMA_ACCESS_KNOWN                                                        \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_GLOBAL |   \
	 IB_ACCESS_OPTIONAL)

/* The flags of a region. Only one with its own addresses can be zero-based. */
bool urdma_access_ok(const struct urdma_dev *dev, int access)
{
	/* Huge pages are used with or without the flag. */
	int known = URDMA_ACCESS_KNOWN | IB_ACCESS_HUGETLB;

	if (dev->caps.features & URDMA_RF_FEAT_ZERO_BASED)
		known |= IB_ZERO_BASED;
	return !(access & ~known);
}

/*
 * Take an index and a key that differs from the last 255 keys of the index. Indexes are used in
 * turn, so a stale key stays invalid for long.
 */
static int urdma_key_alloc(struct urdma_dev *dev, u32 *key)
{
	u32 index;
	int err;

	err = xa_alloc_cyclic(&dev->mr_xa, &index, NULL,
			      XA_LIMIT(URDMA_FIRST_MR, dev->caps.num_mr - 1), &dev->next_mr,
			      GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	*key = index << 8 | dev->mr_variant[index]++;
	return 0;
}

/* The next key of the index gets the variant of next. */
static void urdma_key_free(struct urdma_dev *dev, u32 key, u8 next)
{
	dev->mr_variant[key >> 8] = next;
	xa_erase(&dev->mr_xa, key >> 8);
}

/* CREATE_MR; the caller fills in words 1 (without VARIANT) to 4. */
static int urdma_key_create(struct urdma_dev *dev, u32 key, u64 *cmd)
{
	cmd[0] = urdma_cmd0(URDMA_CMD_CREATE_MR, key >> 8);
	cmd[1] |= FIELD_PREP(URDMA_CMD_MR1_VARIANT, key & 0xff);
	return urdma_cmd_exec(dev, cmd, NULL);
}

/*
 * DESTROY_MR. -EBUSY: windows are bound to the region, which stays. Otherwise the NIC no longer
 * accesses its memory, as after urdma_cmd_destroy().
 */
static int urdma_key_destroy(struct urdma_dev *dev, u32 key)
{
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_DESTROY_MR, key >> 8) };
	int err = urdma_cmd_exec(dev, cmd, NULL);

	if (err == -EBUSY)
		return err;
	if (err)
		urdma_set_dead(dev, "an object could not be destroyed");
	return 0;
}

/* Creates the region in the NIC with the access, PD, range and memory in mr. */
static int urdma_mr_create(struct urdma_dev *dev, struct urdma_mr *mr)
{
	u64 cmd[URDMA_CMD_WORDS] = {};
	int err;

	cmd[1] = FIELD_PREP(URDMA_CMD_MR1_PD, mr->pdn) |
		 FIELD_PREP(URDMA_CMD_MR1_ACCESS, urdma_access(mr->access)) |
		 (mr->access & IB_ZERO_BASED ? URDMA_CMD_MR1_ZERO_BASED : 0) |
		 FIELD_PREP(URDMA_CMD_MR1_LEVELS, mr->mem.pt.levels) |
		 FIELD_PREP(URDMA_CMD_MR1_PAGE_SHIFT, mr->mem.pt.page_shift) |
		 FIELD_PREP(URDMA_CMD_MR1_KIND, URDMA_MRK_REGION);
	cmd[2] = mr->ibmr.iova;
	cmd[3] = mr->ibmr.length;
	cmd[4] = mr->mem.pt.addr;
	err = urdma_key_create(dev, mr->ibmr.lkey, cmd);
	mr->in_hw = !err;
	return err;
}

static struct urdma_mr *urdma_mr_new(struct urdma_dev *dev, struct ib_pd *ibpd)
{
	struct urdma_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = urdma_key_alloc(dev, &mr->ibmr.lkey);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->ibmr.rkey = mr->ibmr.lkey;
	mr->pdn = to_upd(ibpd)->pdn;
	return mr;
}

static void urdma_mr_free(struct urdma_dev *dev, struct urdma_mr *mr)
{
	/* lkey is the current key: after REG_MR it is the one that the owner chose. */
	urdma_key_free(dev, mr->ibmr.lkey, mr->ibmr.lkey + 1);
	kfree(mr);
}

struct ib_mr *urdma_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct urdma_dev *dev = to_udev(ibpd->device);
	u64 cmd[URDMA_CMD_WORDS] = {};
	struct urdma_mr *mr;
	int err;

	if (access & ~URDMA_ACCESS_KNOWN)
		return ERR_PTR(-EOPNOTSUPP);
	mr = urdma_mr_new(dev, ibpd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	cmd[1] = FIELD_PREP(URDMA_CMD_MR1_PD, mr->pdn) |
		 FIELD_PREP(URDMA_CMD_MR1_ACCESS, urdma_access(access)) |
		 FIELD_PREP(URDMA_CMD_MR1_PAGE_SHIFT, PAGE_SHIFT) | URDMA_CMD_MR1_ALL;
	err = urdma_key_create(dev, mr->ibmr.lkey, cmd);
	if (err) {
		urdma_mr_free(dev, mr);
		return ERR_PTR(err);
	}
	mr->in_hw = true;
	return &mr->ibmr;
}

/* Creates a new region in the NIC, or frees it if err says that it has no memory. */
static struct ib_mr *urdma_mr_finish(struct urdma_dev *dev, struct urdma_mr *mr, int err,
				     u64 length, u64 virt, int access)
{
	if (!err) {
		mr->access = access;
		mr->ibmr.iova = virt;
		mr->ibmr.length = length;
		err = urdma_mr_create(dev, mr);
		if (err)
			urdma_mem_free(dev, &mr->mem);
	}
	if (err) {
		urdma_mr_free(dev, mr);
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

	if (!urdma_access_ok(dev, access))
		return ERR_PTR(-EOPNOTSUPP);
	if (!urdma_udata_is_empty(udata))
		return ERR_PTR(-EINVAL);
	mr = urdma_mr_new(dev, ibpd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	/* An empty region is valid, but has nothing to pin. */
	if (length)
		err = urdma_mem_get(dev, &mr->mem, start, length, virt, access);
	else
		err = urdma_mem_none(&mr->mem);
	return urdma_mr_finish(dev, mr, err, length, virt, access);
}

struct ib_mr *urdma_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt, int fd,
				       int access, struct uverbs_attr_bundle *attrs)
{
	struct urdma_dev *dev = to_udev(ibpd->device);
	struct urdma_mr *mr;
	int err;

	if (!urdma_access_ok(dev, access))
		return ERR_PTR(-EOPNOTSUPP);
	mr = urdma_mr_new(dev, ibpd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->dmabuf = true;
	err = urdma_mem_get_dmabuf(dev, &mr->mem, fd, offset, length, virt, access);
	return urdma_mr_finish(dev, mr, err, length, virt, access);
}

/* Device memory is contiguous, so the region has no page table. Its addresses start at 0. */
struct ib_mr *urdma_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	struct urdma_dev *dev = to_udev(ibpd->device);
	struct urdma_mr *mr;

	if (attr->access_flags & ~(URDMA_ACCESS_KNOWN | IB_ZERO_BASED))
		return ERR_PTR(-EOPNOTSUPP);
	/*
	 * For ATOMICs, an address aligned to 8 in the region must be aligned in the memory too. The
	 * NIC does not know the owner of the memory, so the range is checked here.
	 */
	if (!(attr->access_flags & IB_ZERO_BASED) || attr->offset & 7 || attr->length & 3 ||
	    attr->length > ibdm->length || attr->offset > ibdm->length - attr->length)
		return ERR_PTR(-EINVAL);
	mr = urdma_mr_new(dev, ibpd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->mem.pt.page_shift = PAGE_SHIFT;
	mr->mem.pt.addr = URDMA_ADDR_DM |
			  (((u64)to_udm(ibdm)->page << PAGE_SHIFT) + attr->offset);
	return urdma_mr_finish(dev, mr, 0, attr->length, 0, attr->access_flags & ~IB_ZERO_BASED);
}

/*
 * Reregister: the region is destroyed in the NIC and created again under the same key. Errors are
 * found before that. If the NIC fails anyway, the owner has a key without a region, which the
 * specification (11.2.8.3) allows. A region with bound windows is refused.
 */
struct ib_mr *urdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 virt,
				  int access, struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibmr->device);
	struct urdma_mr *mr = to_umr(ibmr);
	struct urdma_mem mem = {};
	struct urdma_mr was;
	int err;

	/* The pages of a region of device memory cannot be replaced. */
	if (ibmr->dm || !urdma_udata_is_empty(udata))
		return ERR_PTR(-EINVAL);
	/* The pages of a dma-buf cannot be pinned again: its file is not known here. */
	if (mr->dmabuf)
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!urdma_access_ok(dev, access))
		return ERR_PTR(-EOPNOTSUPP);
	if (flags & IB_MR_REREG_TRANS) {
		err = length ? urdma_mem_get(dev, &mem, start, length, virt, access)
			     : urdma_mem_none(&mem);
		if (err)
			return ERR_PTR(err);
	} else if (access & ~mr->access && ib_access_writable(access) && mr->mem.umem &&
		   !mr->mem.umem->writable) {
		/* The pages were pinned for reading only. */
		err = urdma_mem_get(dev, &mem, mr->mem.umem->address, mr->ibmr.length,
				    mr->ibmr.iova, access);
		if (err)
			return ERR_PTR(err);
	}

	err = mr->in_hw ? urdma_key_destroy(dev, ibmr->lkey) : 0;
	if (err) {
		urdma_mem_free(dev, &mem);
		return ERR_PTR(err);
	}
	mr->in_hw = false;
	was = *mr;
	if (mem.pt.page_shift)
		mr->mem = mem;
	if (flags & IB_MR_REREG_TRANS) {
		ibmr->iova = virt;
		ibmr->length = length;
	}
	if (flags & IB_MR_REREG_PD)
		mr->pdn = to_upd(ibpd)->pdn;
	mr->access = access;
	err = urdma_mr_create(dev, mr);
	if (err) {
		/* The core also keeps the old PD. */
		mr->mem = was.mem;
		ibmr->iova = was.ibmr.iova;
		ibmr->length = was.ibmr.length;
		mr->pdn = was.pdn;
		mr->access = was.access;
		urdma_mem_free(dev, &mem);
		return ERR_PTR(err);
	}
	if (mem.pt.page_shift)
		urdma_mem_free(dev, &was.mem);
	return NULL;
}

/* A region without memory, for REG_MR. */
struct ib_mr *urdma_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_pages)
{
	struct urdma_dev *dev = to_udev(ibpd->device);
	u64 cmd[URDMA_CMD_WORDS] = {};
	struct urdma_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_pages || max_pages > URDMA_MAX_FAST_PAGES)
		return ERR_PTR(-EINVAL);
	mr = urdma_mr_new(dev, ibpd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = -ENOMEM;
	mr->max_pages = max_pages;
	/* Coherent, so the NIC sees each new list of pages without a sync. */
	mr->page = dma_alloc_coherent(&dev->pdev->dev, max_pages * sizeof(*mr->page), &mr->page_dma,
				      GFP_KERNEL);
	if (!mr->page)
		goto err_free;
	cmd[1] = FIELD_PREP(URDMA_CMD_MR1_PD, mr->pdn) |
		 FIELD_PREP(URDMA_CMD_MR1_PAGE_SHIFT, PAGE_SHIFT) |
		 FIELD_PREP(URDMA_CMD_MR1_KIND, URDMA_MRK_FAST);
	err = urdma_key_create(dev, mr->ibmr.lkey, cmd);
	if (err)
		goto err_table;
	mr->in_hw = true;
	return &mr->ibmr;

err_table:
	dma_free_coherent(&dev->pdev->dev, max_pages * sizeof(*mr->page), mr->page, mr->page_dma);
err_free:
	urdma_mr_free(dev, mr);
	return ERR_PTR(err);
}

static int urdma_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct urdma_mr *mr = to_umr(ibmr);

	if (mr->num_pages == mr->max_pages)
		return -ENOMEM;
	mr->page[mr->num_pages++] = cpu_to_le64(addr);
	return 0;
}

/*
 * Fill the table. The NIC may read it while the region is registered, so the owner maps again only
 * after an invalidation.
 */
int urdma_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct urdma_dev *dev = to_udev(ibmr->device);
	struct urdma_mr *mr = to_umr(ibmr);

	if (!mr->page || !is_power_of_2(ibmr->page_size) ||
	    !(dev->caps.page_sizes & ibmr->page_size))
		return -EINVAL;
	mr->num_pages = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, urdma_set_page);
}

int urdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibmr->device);
	struct urdma_mr *mr = to_umr(ibmr);
	int err;

	err = mr->in_hw ? urdma_key_destroy(dev, ibmr->lkey) : 0;
	if (err)
		return err;
	if (mr->page)
		dma_free_coherent(&dev->pdev->dev, mr->max_pages * sizeof(*mr->page), mr->page,
				  mr->page_dma);
	urdma_mem_free(dev, &mr->mem);
	urdma_mr_free(dev, mr);
	return 0;
}

/* Bound by a work request: type 1 to its PD, type 2B to the QP of that request. */
int urdma_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibmw->device);
	bool type_1 = ibmw->type == IB_MW_TYPE_1;
	u64 cmd[URDMA_CMD_WORDS] = {};
	u32 key;
	int err;

	if (!(dev->caps.features & (type_1 ? URDMA_RF_FEAT_MW_1 : URDMA_RF_FEAT_MW_2B)))
		return -EOPNOTSUPP;
	if (!urdma_udata_is_empty(udata))
		return -EINVAL;
	err = urdma_key_alloc(dev, &key);
	if (err)
		return err;
	cmd[1] = FIELD_PREP(URDMA_CMD_MR1_PD, to_upd(ibmw->pd)->pdn) |
		 FIELD_PREP(URDMA_CMD_MR1_PAGE_SHIFT, PAGE_SHIFT) |
		 FIELD_PREP(URDMA_CMD_MR1_KIND, type_1 ? URDMA_MRK_WINDOW_1 : URDMA_MRK_WINDOW);
	err = urdma_key_create(dev, key, cmd);
	if (err) {
		urdma_key_free(dev, key, key + 1);
		return err;
	}
	ibmw->rkey = key;
	return 0;
}

int urdma_dealloc_mw(struct ib_mw *ibmw)
{
	struct urdma_dev *dev = to_udev(ibmw->device);

	urdma_cmd_destroy(dev, URDMA_CMD_DESTROY_MR, ibmw->rkey >> 8);
	/*
	 * Each binding has changed the key, and only the program and the NIC know the current one.
	 * Programs count up (ibv_inc_rkey), so the variant half way round is farthest from the used
	 * ones.
	 */
	urdma_key_free(dev, ibmw->rkey, ibmw->rkey + 128);
	return 0;
}
