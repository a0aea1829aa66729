// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma: the ib_device: capabilities, port, contexts, protection domains. */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/uverbs_ioctl.h>

#include "urdma-abi.h"
#include "urdma.h"

/* for the driver's own uverbs attributes */
#define UVERBS_MODULE_NAME urdma
#include <rdma/uverbs_named_ioctl.h>

/* 4.096 us * 2^15 = 134 ms: the ACK delay of a loaded simulation. */
#define URDMA_ACK_DELAY 15

/*
 * Take a request of the provider. The structures grow at their ends, and either side may be the
 * older one: fields missing from a shorter request are zero, unknown fields of a longer one must be
 * zero.
 */
int urdma_udata_in(struct ib_udata *udata, void *req, size_t size)
{
	if (udata->inlen > size && !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EINVAL;
	memset(req, 0, size);
	return ib_copy_from_udata(req, udata, min(size, udata->inlen));
}

/* Copy as much of a response as fits the provider's buffer. */
int urdma_udata_out(struct ib_udata *udata, void *resp, size_t size)
{
	return ib_copy_to_udata(udata, resp, min(size, udata->outlen));
}

/* The request has no driver-specific part. */
bool urdma_udata_is_empty(struct ib_udata *udata)
{
	return !udata || !udata->inlen || ib_is_udata_cleared(udata, 0, udata->inlen);
}

/* Every kernel consumer needs draining, which posts a WRITE. */
static bool urdma_has_kverbs(const struct urdma_caps *caps)
{
	return caps->features & URDMA_RF_FEAT_RC_WRITE;
}

/* The general services QP is a kernel QP of type UD. */
static bool urdma_has_gsi(const struct urdma_caps *caps)
{
	return urdma_has_kverbs(caps) && caps->features & URDMA_RF_FEAT_UD;
}

static int urdma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			      struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibdev);
	struct urdma_caps *caps = &dev->caps;

	if (!urdma_udata_is_empty(udata))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = (u64)URDMA_VERSION_MAJOR << 32 | (u64)caps->version_minor << 16;
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = dev->pdev->vendor;
	attr->vendor_part_id = dev->pdev->device;
	attr->hw_ver = dev->pdev->revision;
	attr->max_mr_size = SZ_1T;
	attr->page_size_cap = caps->page_sizes;
	attr->device_cap_flags = IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_CURR_QP_STATE_MOD;
	if (caps->features & URDMA_RF_FEAT_MEM_MGT) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->max_fast_reg_page_list_len = URDMA_MAX_FAST_PAGES;
	}
	/* Not FLUSH_PERSISTENT: the NIC cannot know if host memory keeps its contents. */
	if (caps->features & URDMA_RF_FEAT_FLUSH)
		attr->device_cap_flags |= IB_DEVICE_FLUSH_GLOBAL;
	if (caps->features & URDMA_RF_FEAT_ATOMIC_WRITE)
		attr->device_cap_flags |= IB_DEVICE_ATOMIC_WRITE;
	if (caps->features & URDMA_RF_FEAT_MW_1)
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW;
	if (caps->features & URDMA_RF_FEAT_MW_2B)
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW_TYPE_2B;
	if (caps->features & (URDMA_RF_FEAT_MW_1 | URDMA_RF_FEAT_MW_2B)) {
		/* windows share the indexes of regions */
		attr->max_mw = caps->num_mr - URDMA_FIRST_MR;
	}
	attr->max_qp = caps->num_qp - URDMA_FIRST_QPN;
	attr->max_qp_wr = 1 << min(caps->log_sq, caps->log_rq);
	/* the limit for every QP type; types other than UD may have more */
	attr->max_send_sge = caps->max_sq_sge;
	if (caps->features & URDMA_RF_FEAT_UD)
		attr->max_send_sge = min_t(u32, caps->max_sq_sge, URDMA_MAX_UD_SGE);
	attr->max_recv_sge = caps->max_rq_sge;
	if (caps->features & URDMA_RF_FEAT_XRC)
		attr->device_cap_flags |= IB_DEVICE_XRC;
	if (caps->num_srq) {
		attr->max_srq = caps->num_srq;
		attr->max_srq_wr = 1 << caps->log_rq;
		attr->max_srq_sge = caps->max_rq_sge;
	}
	attr->max_sge_rd = caps->max_sq_sge;
	attr->max_cq = caps->num_cq;
	attr->max_cqe = urdma_cq_max_cqe(dev);
	if (caps->features & URDMA_RF_FEAT_CQ_MODIFY) {
		attr->cq_caps.max_cq_moderation_count = U16_MAX;
		attr->cq_caps.max_cq_moderation_period = U16_MAX;
	}
	attr->max_mr = caps->num_mr - URDMA_FIRST_MR;
	attr->max_dm_size = (u64)caps->dm_pages << PAGE_SHIFT;
	attr->max_pd = caps->num_pd;
	/* The NIC has no objects for address handles. */
	if (caps->features & URDMA_RF_FEAT_UD)
		attr->max_ah = INT_MAX;
	if (caps->features & URDMA_RF_FEAT_MCAST) {
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
		attr->max_mcast_grp = URDMA_MCAST_GROUPS;
		attr->max_mcast_qp_attach = URDMA_MCAST_MEMBERS;
		attr->max_total_mcast_qp_attach = URDMA_MCAST_MEMBERS;
	}
	attr->max_qp_rd_atom = caps->max_rd_atomic;
	attr->max_qp_init_rd_atom = caps->max_rd_atomic;
	attr->max_res_rd_atom = attr->max_qp * caps->max_rd_atomic;
	/* Atomic only among operations of this NIC, not against CPUs or other devices. */
	attr->atomic_cap =
		caps->features & URDMA_RF_FEAT_RC_ATOMIC ? IB_ATOMIC_HCA : IB_ATOMIC_NONE;
	attr->masked_atomic_cap = IB_ATOMIC_NONE;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = URDMA_ACK_DELAY;
	attr->hca_core_clock = div_u64(caps->clock_hz, 1000);
	attr->timestamp_mask = URDMA_CQE3_CYCLES;
	return 0;
}

/* With a very small MTU no RoCE packet fits, but the smallest path MTU is still reported. */
static enum ib_mtu urdma_path_mtu(const struct urdma_dev *dev, const struct net_device *ndev)
{
	return clamp_t(int, iboe_get_mtu(ndev->mtu), IB_MTU_256, dev->caps.max_mtu);
}

/* The path MTU that the net device's MTU allows. */
enum ib_mtu urdma_port_mtu(struct ib_device *ibdev)
{
	struct net_device *ndev = ib_device_get_netdev(ibdev, URDMA_PORT);
	enum ib_mtu mtu;

	if (!ndev)
		return IB_MTU_256;
	mtu = urdma_path_mtu(to_udev(ibdev), ndev);
	dev_put(ndev);
	return mtu;
}

static int urdma_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct urdma_dev *dev = to_udev(ibdev);
	struct net_device *ndev;
	bool present;

	/* The core has zeroed attr. */
	attr->gid_tbl_len = dev->caps.num_gids;
	attr->ip_gids = true;
	attr->pkey_tbl_len = 1;
	if (urdma_has_gsi(&dev->caps))
		attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = 1U << dev->caps.log_max_msg;
	attr->max_mtu = dev->caps.max_mtu;
	attr->active_mtu = IB_MTU_256;
	attr->state = IB_PORT_DOWN;
	attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	attr->active_speed = IB_SPEED_SDR;
	attr->active_width = IB_WIDTH_1X;

	ndev = ib_device_get_netdev(ibdev, port);
	if (!ndev)
		return 0;
	attr->active_mtu = urdma_path_mtu(dev, ndev);
	if (netif_running(ndev) && netif_carrier_ok(ndev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	}
	/* During a reset the speed is unknown, and ib_get_eth_speed() would log a warning. */
	present = netif_device_present(ndev);
	dev_put(ndev);
	if (!present)
		return 0;
	return ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width);
}

static int urdma_get_port_immutable(struct ib_device *ibdev, u32 port,
				    struct ib_port_immutable *immutable)
{
	/*
	 * Without QP 1 for management datagrams, ib_mad and the connection managers ignore the
	 * port.
	 */
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_ETH_AH;
	if (urdma_has_gsi(&to_udev(ibdev)->caps)) {
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
		immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	}
	immutable->gid_tbl_len = to_udev(ibdev)->caps.num_gids;
	immutable->pkey_tbl_len = 1;
	return 0;
}

static enum rdma_link_layer urdma_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int urdma_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static void urdma_get_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", URDMA_VERSION_MAJOR,
		 to_udev(ibdev)->caps.version_minor);
}

/* The core owns the GID table. The NIC has a copy, for the source addresses of its packets. */
static int urdma_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct urdma_dev *dev = to_udev(attr->device);
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_SET_GID, attr->index) };
	u16 vlan = 0xffff;
	u8 mac[ETH_ALEN];
	int err;

	err = rdma_read_gid_l2_fields(attr, &vlan, mac);
	if (err)
		return err;
	cmd[1] = URDMA_CMD_GID1_VALID;
	if (ipv6_addr_v4mapped((const struct in6_addr *)attr->gid.raw))
		cmd[1] |= URDMA_CMD_GID1_IPV4;
	if (vlan < VLAN_N_VID)
		cmd[1] |= URDMA_CMD_GID1_VLAN_VALID | FIELD_PREP(URDMA_CMD_GID1_VLAN, vlan);
	cmd[2] = FIELD_PREP(URDMA_CMD_GID2_SMAC, urdma_mac_word(mac));
	cmd[3] = urdma_gid_word(&attr->gid, 0);
	cmd[4] = urdma_gid_word(&attr->gid, 1);
	return urdma_cmd_exec(dev, cmd, NULL);
}

static int urdma_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct urdma_dev *dev = to_udev(attr->device);
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_SET_GID, attr->index) };

	/* A dead device has no entry to remove. */
	if (urdma_is_dead(dev))
		return 0;
	return urdma_cmd_exec(dev, cmd, NULL);
}

static void urdma_describe_ucontext(struct urdma_ucontext *uctx,
				    struct urdma_alloc_ucontext_resp *resp)
{
	const struct urdma_caps *caps = &to_udev(uctx->ibucontext.device)->caps;

	*resp = (struct urdma_alloc_ucontext_resp){
		.db_offset = rdma_user_mmap_get_offset(&uctx->db->rdma_entry),
		.db_size = PAGE_SIZE,
		.features = caps->features,
		.max_sq_sge = caps->max_sq_sge,
		.max_rq_sge = caps->max_rq_sge,
		.max_inline = caps->max_inline,
		.log_max_sq = caps->log_sq,
		.log_max_rq = caps->log_rq,
		.log_max_cqe = caps->log_cqe,
		.log_max_msg = caps->log_max_msg,
		.log_max_qp = caps->log_qp,
		.log_max_srq = caps->num_srq ? ilog2(caps->num_srq) : 0,
	};
}

static int urdma_alloc_ucontext(struct ib_ucontext *ibctx, struct ib_udata *udata)
{
	struct urdma_ucontext *uctx = to_uctx(ibctx);
	struct urdma_dev *dev = to_udev(ibctx->device);
	const struct urdma_caps *caps = &dev->caps;
	struct urdma_alloc_ucontext_resp resp;
	struct urdma_mmap_entry *db;
	int err, page;

	if (!urdma_udata_is_empty(udata))
		return -EINVAL;
	db = kzalloc(sizeof(*db), GFP_KERNEL);
	if (!db)
		return -ENOMEM;
	page = ida_alloc_range(&dev->db_ida, 1, caps->num_db_pages - 1, GFP_KERNEL);
	if (page < 0) {
		err = page;
		goto err_free;
	}
	db->dev = dev;
	db->page = page;
	err = rdma_user_mmap_entry_insert(ibctx, &db->rdma_entry, PAGE_SIZE);
	if (err)
		goto err_ida;
	uctx->db = db;

	urdma_describe_ucontext(uctx, &resp);
	err = urdma_udata_out(udata, &resp, sizeof(resp));
	if (err)
		/* drops the only reference: urdma_mmap_free() */
		rdma_user_mmap_entry_remove(&db->rdma_entry);
	return err;

err_ida:
	ida_free(&dev->db_ida, page);
err_free:
	kfree(db);
	return err;
}

static void urdma_dealloc_ucontext(struct ib_ucontext *ibctx)
{
	rdma_user_mmap_entry_remove(&to_uctx(ibctx)->db->rdma_entry);
}

/* A process that received the context's file from another process maps the same doorbell page. */
static int urdma_query_ucontext(struct ib_ucontext *ibctx, struct uverbs_attr_bundle *attrs)
{
	struct urdma_alloc_ucontext_resp resp;

	urdma_describe_ucontext(to_uctx(ibctx), &resp);
	return uverbs_copy_to_struct_or_zero(attrs, URDMA_ATTR_QUERY_CONTEXT_RESP, &resp,
					     sizeof(resp));
}

#define URDMA_QUERY_CONTEXT_RESP                                                     \
	UVERBS_ATTR_PTR_OUT(URDMA_ATTR_QUERY_CONTEXT_RESP,                           \
			    UVERBS_ATTR_STRUCT(struct urdma_alloc_ucontext_resp,     \
					       log_max_srq),                         \
			    UA_MANDATORY)

ADD_UVERBS_ATTRIBUTES_SIMPLE(urdma_query_context, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
			     URDMA_QUERY_CONTEXT_RESP);

/* Lets a program compute the age of a completion. */
static int UVERBS_HANDLER(URDMA_METHOD_QUERY_CLOCK)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibctx = ib_uverbs_get_ucontext(attrs);
	struct urdma_dev *dev;
	u64 cycles;

	if (IS_ERR(ibctx))
		return PTR_ERR(ibctx);
	dev = to_udev(ibctx->device);
	cycles = urdma_read(dev, URDMA_REG_CYCLES);
	/* the device does not answer */
	if (urdma_is_dead(dev) || cycles == U64_MAX)
		return -EIO;
	return uverbs_copy_to(attrs, URDMA_ATTR_QUERY_CLOCK_CYCLES, &cycles, sizeof(cycles));
}

DECLARE_UVERBS_NAMED_METHOD(URDMA_METHOD_QUERY_CLOCK,
			    UVERBS_ATTR_PTR_OUT(URDMA_ATTR_QUERY_CLOCK_CYCLES,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

ADD_UVERBS_METHODS(urdma_query_clock_def, UVERBS_OBJECT_DEVICE,
		   &UVERBS_METHOD(URDMA_METHOD_QUERY_CLOCK));

static const struct uapi_definition urdma_uapi_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &urdma_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &urdma_query_clock_def),
	UAPI_DEF_CHAIN(urdma_dm_uapi_defs),
	{},
};

/* Called with the last reference, of the owner or a mapping: the page may be reused only now. */
static void urdma_mmap_free(struct rdma_user_mmap_entry *rdma_entry)
{
	struct urdma_mmap_entry *entry =
		container_of(rdma_entry, struct urdma_mmap_entry, rdma_entry);

	if (entry->is_dm)
		urdma_dm_put(entry->dev, entry->page);
	else
		ida_free(&entry->dev->db_ida, entry->page);
	kfree(entry);
}

static int urdma_mmap(struct ib_ucontext *ibctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *rdma_entry;
	struct urdma_mmap_entry *entry;
	u64 bus;
	int err;

	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYEXEC);
	rdma_entry = rdma_user_mmap_entry_get(ibctx, vma);
	if (!rdma_entry)
		return -EINVAL;
	entry = container_of(rdma_entry, struct urdma_mmap_entry, rdma_entry);
	bus = entry->dev->db_bus + (entry->is_dm ? entry->dev->caps.dm_offset : 0);
	/* Checks that the mapping is shared and one page long. */
	err = rdma_user_mmap_io(ibctx, vma, PHYS_PFN(bus) + entry->page, PAGE_SIZE,
				pgprot_noncached(vma->vm_page_prot), rdma_entry);
	rdma_user_mmap_entry_put(rdma_entry);
	return err;
}

/* The core removes the mappings; a process has no other access to the device. */
static void urdma_disassociate_ucontext(struct ib_ucontext *ibctx)
{
}

/* PDs and XRC domains share one range of numbers. */
static int urdma_alloc_pdn(struct urdma_dev *dev, u32 *pdn)
{
	u64 cmd[URDMA_CMD_WORDS] = {};
	int err, n;

	n = ida_alloc_max(&dev->pd_ida, dev->caps.num_pd - 1, GFP_KERNEL);
	if (n < 0)
		return n;
	cmd[0] = urdma_cmd0(URDMA_CMD_ALLOC_PD, n);
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err) {
		ida_free(&dev->pd_ida, n);
		return err;
	}
	*pdn = n;
	return 0;
}

static void urdma_free_pdn(struct urdma_dev *dev, u32 pdn)
{
	urdma_cmd_destroy(dev, URDMA_CMD_DEALLOC_PD, pdn);
	ida_free(&dev->pd_ida, pdn);
}

static int urdma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	if (!urdma_udata_is_empty(udata))
		return -EINVAL;
	return urdma_alloc_pdn(to_udev(ibpd->device), &to_upd(ibpd)->pdn);
}

static int urdma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	urdma_free_pdn(to_udev(ibpd->device), to_upd(ibpd)->pdn);
	return 0;
}

static int urdma_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	if (!urdma_udata_is_empty(udata))
		return -EINVAL;
	return urdma_alloc_pdn(to_udev(ibxrcd->device), &to_uxrcd(ibxrcd)->pdn);
}

static int urdma_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	urdma_free_pdn(to_udev(ibxrcd->device), to_uxrcd(ibxrcd)->pdn);
	return 0;
}

/* The sysfs attributes that ibstat and ibv_devinfo show. */
static struct urdma_dev *urdma_of_device(struct device *device)
{
	return rdma_device_to_drv_device(device, struct urdma_ibdev, ibdev)->dev;
}

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "0x%x\n", urdma_of_device(device)->pdev->revision);
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t hca_type_show(struct device *device, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", URDMA_DRV_NAME);
}
static DEVICE_ATTR_RO(hca_type);

/* Boards have no names; the PCI subsystem ID tells them apart. */
static ssize_t board_id_show(struct device *device, struct device_attribute *attr, char *buf)
{
	struct pci_dev *pdev = urdma_of_device(device)->pdev;

	return sysfs_emit(buf, "%04x:%04x\n", pdev->subsystem_vendor, pdev->subsystem_device);
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *urdma_attributes[] = {
	&dev_attr_hw_rev.attr,
	&dev_attr_hca_type.attr,
	&dev_attr_board_id.attr,
	NULL,
};

static const struct attribute_group urdma_attr_group = {
	.attrs = urdma_attributes,
};

static const struct ib_device_ops urdma_ops = {
	.owner = THIS_MODULE,
	/* No id is assigned; the provider finds us by PCI id. */
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = URDMA_ABI_VERSION,
	.uverbs_no_driver_id_binding = 1,

	.add_gid = urdma_add_gid,
	.alloc_hw_port_stats = urdma_alloc_hw_port_stats,
	.alloc_pd = urdma_alloc_pd,
	.alloc_ucontext = urdma_alloc_ucontext,
	.create_cq = urdma_create_cq,
	.create_qp = urdma_create_qp,
	.dealloc_pd = urdma_dealloc_pd,
	.dealloc_ucontext = urdma_dealloc_ucontext,
	.del_gid = urdma_del_gid,
	.dereg_mr = urdma_dereg_mr,
	.destroy_cq = urdma_destroy_cq,
	.destroy_qp = urdma_destroy_qp,
	.device_group = &urdma_attr_group,
	.disassociate_ucontext = urdma_disassociate_ucontext,
	.fill_res_cq_entry = urdma_fill_res_cq_entry,
	.fill_res_mr_entry = urdma_fill_res_mr_entry,
	.fill_res_qp_entry = urdma_fill_res_qp_entry,
	.get_dev_fw_str = urdma_get_fw_str,
	.get_dma_mr = urdma_get_dma_mr,
	.get_hw_stats = urdma_get_hw_stats,
	.get_link_layer = urdma_get_link_layer,
	.get_port_immutable = urdma_get_port_immutable,
	.mmap = urdma_mmap,
	.mmap_free = urdma_mmap_free,
	.modify_qp = urdma_modify_qp,
	.query_device = urdma_query_device,
	.query_pkey = urdma_query_pkey,
	.query_port = urdma_query_port,
	.query_qp = urdma_query_qp,
	.query_ucontext = urdma_query_ucontext,
	.reg_user_mr = urdma_reg_user_mr,
	.reg_user_mr_dmabuf = urdma_reg_user_mr_dmabuf,
	.rereg_user_mr = urdma_rereg_user_mr,

	INIT_RDMA_OBJ_SIZE(ib_cq, urdma_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, urdma_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, urdma_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, urdma_ucontext, ibucontext),
};

/* Verbs of kernel queues: with them, the core offers the device to all its clients. */
static const struct ib_device_ops urdma_kverbs_ops = {
	.poll_cq = urdma_poll_cq,
	.post_recv = urdma_post_recv,
	.post_send = urdma_post_send,
	.req_notify_cq = urdma_req_notify_cq,
};

static const struct ib_device_ops urdma_cq_modify_ops = {
	.modify_cq = urdma_modify_cq,
	.resize_cq = urdma_resize_cq,
};

static const struct ib_device_ops urdma_counter_ops = {
	.counter_alloc_stats = urdma_counter_alloc_stats,
	.counter_bind_qp = urdma_counter_bind_qp,
	.counter_dealloc = urdma_counter_dealloc,
	.counter_unbind_qp = urdma_counter_unbind_qp,
	.counter_update_stats = urdma_counter_update_stats,
};

/* fast registration */
static const struct ib_device_ops urdma_mem_mgt_ops = {
	.alloc_mr = urdma_alloc_mr,
	.map_mr_sg = urdma_map_mr_sg,
};

/* memory windows */
static const struct ib_device_ops urdma_mw_ops = {
	.alloc_mw = urdma_alloc_mw,
	.dealloc_mw = urdma_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, urdma_mw, ibmw),
};

/* address handles, for UD */
static const struct ib_device_ops urdma_ud_ops = {
	.create_ah = urdma_create_ah,
	.create_user_ah = urdma_create_ah,
	.destroy_ah = urdma_destroy_ah,
	.query_ah = urdma_query_ah,

	INIT_RDMA_OBJ_SIZE(ib_ah, urdma_ah, ibah),
};

/* multicast groups */
static const struct ib_device_ops urdma_mcast_ops = {
	.attach_mcast = urdma_attach_mcast,
	.detach_mcast = urdma_detach_mcast,
};

/* device memory; without them, the core does not know the object */
static const struct ib_device_ops urdma_dm_ops = {
	.alloc_dm = urdma_alloc_dm,
	.dealloc_dm = urdma_dealloc_dm,
	.reg_dm_mr = urdma_reg_dm_mr,
};

/* shared receive queues */
static const struct ib_device_ops urdma_srq_ops = {
	.create_srq = urdma_create_srq,
	.destroy_srq = urdma_destroy_srq,
	.fill_res_srq_entry = urdma_fill_res_srq_entry,
	.modify_srq = urdma_modify_srq,
	.post_srq_recv = urdma_post_srq_recv,
	.query_srq = urdma_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, urdma_srq, ibsrq),
};

/* XRC domains; with them, the core offers XRC */
static const struct ib_device_ops urdma_xrc_ops = {
	.alloc_xrcd = urdma_alloc_xrcd,
	.dealloc_xrcd = urdma_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, urdma_xrcd, ibxrcd),
};

/* Raises a port or device event while the RDMA device is registered. Any context. */
void urdma_ib_event(struct urdma_dev *dev, enum ib_event_type type)
{
	struct ib_event event = { .event = type, .element.port_num = URDMA_PORT };
	unsigned long flags;

	/* The core waits for events raised before the device is unregistered. */
	spin_lock_irqsave(&dev->ib_lock, flags);
	if (dev->ib_events) {
		event.device = &dev->ib->ibdev;
		ib_dispatch_event(&event);
	}
	spin_unlock_irqrestore(&dev->ib_lock, flags);
}

static void urdma_ib_set_events(struct urdma_dev *dev, bool on)
{
	spin_lock_irq(&dev->ib_lock);
	dev->ib_events = on;
	spin_unlock_irq(&dev->ib_lock);
}

static void urdma_ib_init(struct urdma_dev *dev, struct ib_device *ibdev)
{
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->num_eqs - 1;
	ibdev->dev.parent = &dev->pdev->dev;
	strscpy(ibdev->node_desc, URDMA_DRV_NAME, sizeof(ibdev->node_desc));
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, dev->netdev->dev_addr);
	ibdev->driver_def = urdma_uapi_defs;
	ib_set_device_ops(ibdev, &urdma_ops);
	if (urdma_has_kverbs(&dev->caps))
		ib_set_device_ops(ibdev, &urdma_kverbs_ops);
	if (dev->caps.features & URDMA_RF_FEAT_CQ_MODIFY) {
		ib_set_device_ops(ibdev, &urdma_cq_modify_ops);
		/* The core moderates kernel CQs by their load. */
		ibdev->use_cq_dim = true;
	}
	if (dev->caps.features & URDMA_RF_FEAT_MEM_MGT)
		ib_set_device_ops(ibdev, &urdma_mem_mgt_ops);
	if (dev->caps.features & (URDMA_RF_FEAT_MW_1 | URDMA_RF_FEAT_MW_2B))
		ib_set_device_ops(ibdev, &urdma_mw_ops);
	if (dev->caps.features & URDMA_RF_FEAT_UD)
		ib_set_device_ops(ibdev, &urdma_ud_ops);
	if (dev->caps.features & URDMA_RF_FEAT_MCAST)
		ib_set_device_ops(ibdev, &urdma_mcast_ops);
	if (dev->caps.dm_pages)
		ib_set_device_ops(ibdev, &urdma_dm_ops);
	if (dev->caps.num_srq)
		ib_set_device_ops(ibdev, &urdma_srq_ops);
	if (dev->caps.features & URDMA_RF_FEAT_XRC)
		ib_set_device_ops(ibdev, &urdma_xrc_ops);
	if (dev->caps.num_cnt_sets)
		ib_set_device_ops(ibdev, &urdma_counter_ops);
}

int urdma_ib_register(struct urdma_dev *dev)
{
	struct urdma_ibdev *ib = ib_alloc_device(urdma_ibdev, ibdev);
	int err;

	if (!ib)
		return -ENOMEM;
	ib->dev = dev;
	dev->ib = ib;
	urdma_ib_init(dev, &ib->ibdev);
	err = ib_device_set_netdev(&ib->ibdev, dev->netdev, URDMA_PORT);
	if (err)
		goto err_dealloc;
	err = ib_register_device(&ib->ibdev, "urdma%d", &dev->pdev->dev);
	if (err)
		goto err_dealloc;
	urdma_ib_set_events(dev, true);
	/* It may have died before the event could be delivered. */
	if (urdma_is_dead(dev))
		urdma_ib_event(dev, IB_EVENT_DEVICE_FATAL);
	err = urdma_netdev_watch(dev);
	if (err)
		goto err_unregister;
	return 0;

err_unregister:
	urdma_ib_set_events(dev, false);
	ib_unregister_device(&ib->ibdev);
err_dealloc:
	dev->ib = NULL;
	/* This releases the core's reference to the net device. */
	ib_dealloc_device(&ib->ibdev);
	return err;
}

void urdma_ib_unregister(struct urdma_dev *dev)
{
	struct urdma_ibdev *ib = dev->ib;

	if (!ib)
		return;
	urdma_netdev_unwatch(dev);
	urdma_ib_set_events(dev, false);
	ib_unregister_device(&ib->ibdev);
	dev->ib = NULL;
	ib_dealloc_device(&ib->ibdev);
}
