// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: device memory: memory of the NIC that processes allocate, map and register.
 *
 * It is allocated in whole CPU pages, because processes map it and must not see each other's data.
 * A page is free again only when its owner has freed it, no region uses it, and its last mapping is
 * gone: the core keeps the owner while there are regions, and urdma_mmap_free() runs after the last
 * mapping. The NIC does not clear the memory, so the driver clears pages when it allocates them.
 */
#include <linux/bitmap.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/sched.h>

#include "urdma-abi.h"
#include "urdma.h"

/* for the driver's own uverbs attributes */
#define UVERBS_MODULE_NAME urdma
#include <rdma/uverbs_named_ioctl.h>

/* mmap() offset of the first page, in pages. Doorbell pages have lower offsets. */
#define URDMA_DM_PGOFF BIT(20)

int urdma_dm_init(struct urdma_dev *dev)
{
	u32 pages = dev->caps.dm_pages;

	if (!pages)
		return 0;
	dev->dm_used = bitmap_zalloc(pages, GFP_KERNEL);
	if (!dev->dm_used)
		return -ENOMEM;
	dev->dm = pci_iomap_range(dev->pdev, URDMA_BAR_DB, dev->caps.dm_offset,
				  (unsigned long)pages << PAGE_SHIFT);
	if (!dev->dm) {
		bitmap_free(dev->dm_used);
		return -ENOMEM;
	}
	return 0;
}

void urdma_dm_exit(struct urdma_dev *dev)
{
	if (!dev->dm)
		return;
	pci_iounmap(dev->pdev, dev->dm);
	bitmap_free(dev->dm_used);
}

/* Allocates contiguous pages; the first is a multiple of align, a power of two. */
static int urdma_dm_get(struct urdma_dev *dev, u32 num, u32 align, u32 *page)
{
	unsigned long first;
	bool found;

	spin_lock(&dev->dm_lock);
	first = bitmap_find_next_zero_area(dev->dm_used, dev->caps.dm_pages, 0, num, align - 1);
	found = first < dev->caps.dm_pages;
	if (found)
		bitmap_set(dev->dm_used, first, num);
	spin_unlock(&dev->dm_lock);
	*page = first;
	return found ? 0 : -ENOMEM;
}

/* May be called with a process's mmap_lock held. */
void urdma_dm_put(struct urdma_dev *dev, u32 page)
{
	spin_lock(&dev->dm_lock);
	__clear_bit(page, dev->dm_used);
	spin_unlock(&dev->dm_lock);
}

/* Word by word, because the NIC does not accept longer accesses. */
static void urdma_dm_clear(struct urdma_dev *dev, u32 page, u32 num)
{
	void __iomem *at = dev->dm + ((size_t)page << PAGE_SHIFT);
	u32 i;

	for (; num; num--) {
		for (i = 0; i < PAGE_SIZE; i += sizeof(u64))
			writeq(0, at + i);
		at += PAGE_SIZE;
		cond_resched();
	}
	/* The read flushes the writes, so the memory is zero before anyone learns its offset. */
	readq(at - sizeof(u64));
}

/*
 * A page that a process may map. Each page has a separate mapping: a process could unmap a part of
 * a longer mapping, which x86 (PAT, Linux 6.12) does not support and reports in the kernel log. The
 * offset is unique in the context, because the page is.
 */
static int urdma_dm_insert(struct urdma_dev *dev, struct ib_ucontext *ibctx, struct urdma_dm *dm,
			   u32 i)
{
	struct urdma_mmap_entry *entry = kzalloc(sizeof(*entry), GFP_KERNEL);
	int err;

	if (!entry)
		return -ENOMEM;
	entry->dev = dev;
	entry->is_dm = true;
	entry->page = dm->page + i;
	err = rdma_user_mmap_entry_insert_exact(ibctx, &entry->rdma_entry, PAGE_SIZE,
						URDMA_DM_PGOFF + entry->page);
	if (err) {
		kfree(entry);
		return err;
	}
	dm->entry[i] = entry;
	return 0;
}

/* urdma_mmap_free() frees a page that is still mapped. */
static void urdma_dm_free(struct urdma_dev *dev, struct urdma_dm *dm)
{
	u32 i;

	for (i = 0; i < dm->num; i++) {
		if (dm->entry[i])
			rdma_user_mmap_entry_remove(&dm->entry[i]->rdma_entry);
		else
			urdma_dm_put(dev, dm->page + i);
	}
	kvfree(dm);
}

static int urdma_dm_respond(struct urdma_dm *dm, u64 length, struct uverbs_attr_bundle *attrs,
			    size_t attr)
{
	struct urdma_dm_resp resp = {
		.mmap_offset = rdma_user_mmap_get_offset(&dm->entry[0]->rdma_entry),
		.length = length,
		.page_size = PAGE_SIZE,
	};

	return uverbs_copy_to_struct_or_zero(attrs, attr, &resp, sizeof(resp));
}

struct ib_dm *urdma_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibctx,
			     struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct urdma_dev *dev = to_udev(ibdev);
	u64 size = (u64)dev->caps.dm_pages << PAGE_SHIFT;
	struct urdma_dm *dm;
	u32 align, num, i;
	int err;

	/*
	 * The alignment is a log2. No address but the start of the memory has a larger alignment.
	 */
	if (!attr->length || attr->length > size || attr->alignment > ilog2(size))
		return ERR_PTR(-EINVAL);
	align = attr->alignment > PAGE_SHIFT ? BIT(attr->alignment - PAGE_SHIFT) : 1;
	num = DIV_ROUND_UP(attr->length, PAGE_SIZE);
	dm = kvzalloc(struct_size(dm, entry, num), GFP_KERNEL);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	dm->num = num;
	err = urdma_dm_get(dev, num, align, &dm->page);
	if (err) {
		kvfree(dm);
		return ERR_PTR(err);
	}
	/*
	 * On a dead device regions are destroyed without a command, and the NIC may write to their
	 * device memory until it is reset, because that needs no bus mastering. Such pages are
	 * freed after the device was marked dead, and dm_lock makes that mark visible here.
	 */
	err = -EIO;
	if (urdma_is_dead(dev))
		goto err_free;
	urdma_dm_clear(dev, dm->page, num);
	for (i = 0; i < num; i++) {
		err = urdma_dm_insert(dev, ibctx, dm, i);
		if (err)
			goto err_free;
	}
	err = urdma_dm_respond(dm, attr->length, attrs, URDMA_ATTR_ALLOC_DM_RESP);
	if (err)
		goto err_free;
	return &dm->ibdm;

err_free:
	/* Another thread may already have mapped pages. */
	urdma_dm_free(dev, dm);
	return ERR_PTR(err);
}

/* The core guarantees that there are no regions. */
int urdma_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	urdma_dm_free(to_udev(ibdm->device), to_udm(ibdm));
	return 0;
}

/* A process that received the context's file from another process maps the same memory. */
static int UVERBS_HANDLER(URDMA_METHOD_QUERY_DM)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, URDMA_ATTR_QUERY_DM_HANDLE);

	return urdma_dm_respond(to_udm(ibdm), ibdm->length, attrs, URDMA_ATTR_QUERY_DM_RESP);
}

#define URDMA_DM_RESP(attr) \
	UVERBS_ATTR_PTR_OUT(attr, UVERBS_ATTR_STRUCT(struct urdma_dm_resp, reserved), UA_MANDATORY)

ADD_UVERBS_ATTRIBUTES_SIMPLE(urdma_alloc_dm_def, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			     URDMA_DM_RESP(URDMA_ATTR_ALLOC_DM_RESP));

DECLARE_UVERBS_NAMED_METHOD(URDMA_METHOD_QUERY_DM,
			    UVERBS_ATTR_IDR(URDMA_ATTR_QUERY_DM_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    URDMA_DM_RESP(URDMA_ATTR_QUERY_DM_RESP));

ADD_UVERBS_METHODS(urdma_query_dm_def, UVERBS_OBJECT_DM, &UVERBS_METHOD(URDMA_METHOD_QUERY_DM));

const struct uapi_definition urdma_dm_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &urdma_alloc_dm_def),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &urdma_query_dm_def),
	{},
};
