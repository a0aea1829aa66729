// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: PCI device, from probe to remove, and what happens when it dies.
 */
#include <linux/dma-mapping.h>
#include <linux/if_ether.h>
#include <linux/jiffies.h>
#include <linux/module.h>

#include "urdma.h"

MODULE_DESCRIPTION("urdma RDMA NIC");
MODULE_LICENSE("Dual BSD/GPL");

/* A reset sweeps every context memory, one word a cycle; and the clock may be a simulated one. */
#define URDMA_RESET_TIMEOUT (30 * HZ)

/*
 * A device that was pulled out answers every read with ones, one that decodes its addresses no
 * more with whatever the root port gives: the magic number is not among it.
 */
bool urdma_is_gone(struct urdma_dev *dev)
{
	return pci_channel_offline(dev->pdev) ||
	       FIELD_GET(URDMA_RF_VERSION_MAGIC, urdma_read(dev, URDMA_REG_VERSION)) != URDMA_MAGIC;
}

/*
 * Bus mastering goes first and for good: from then on no DMA can come, so all memory may be given
 * back although no destroy command is sent any more. False: the device was dead already.
 */
static bool urdma_mark_dead(struct urdma_dev *dev)
{
	unsigned long flags;
	bool first;

	/* Nobody may find it dead, and free memory, before bus mastering is off. */
	spin_lock_irqsave(&dev->dead_lock, flags);
	first = !urdma_is_dead(dev);
	if (first) {
		pci_clear_master(dev->pdev);
		set_bit(URDMA_F_DEAD, &dev->flags);
	}
	spin_unlock_irqrestore(&dev->dead_lock, flags);
	return first;
}

/* The end of the device until it is probed again. */
void urdma_set_dead(struct urdma_dev *dev, const char *why)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = IB_EVENT_DEVICE_FATAL,
		.element.port_num = URDMA_PORT,
	};

	if (!urdma_mark_dead(dev))
		return;
	dev_err(&dev->pdev->dev, "%s: the device is out of use until the driver is loaded again\n",
		why);
	urdma_cmdq_abort(dev);
	urdma_netdev_link(dev);
	schedule_work(&dev->dead_work);
	if (test_bit(URDMA_F_IB_REGISTERED, &dev->flags))
		ib_dispatch_event(&event);
}

static int urdma_hw_reset(struct urdma_dev *dev)
{
	unsigned long end = jiffies + URDMA_RESET_TIMEOUT;
	u64 status;

	urdma_write(dev, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
	for (;;) {
		status = urdma_read(dev, URDMA_REG_STATUS);
		if (status == ~0ULL)
			return -ENODEV;
		if (status & URDMA_RF_STATUS_READY)
			return 0;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(100, 200);
	}
}

static int urdma_read_eth_caps(struct urdma_dev *dev)
{
	struct urdma_caps *caps = &dev->caps;
	u32 log_cq;
	u64 eth;

	if (!(caps->features & URDMA_RF_FEAT_ETH))
		return 0;
	eth = urdma_read(dev, URDMA_REG_CAP_ETH);
	caps->eth_queues = FIELD_GET(URDMA_RF_CAP_ETH_QUEUES, eth);
	caps->eth_max_frame = FIELD_GET(URDMA_RF_CAP_ETH_MAX_FRAME, eth);
	caps->eth_tx_descs = FIELD_GET(URDMA_RF_CAP_ETH_TX_DESCS, eth);
	caps->eth_uc = FIELD_GET(URDMA_RF_CAP_ETH_UC, eth);
	/* Indexes have 16 bits; a completion ring has four times the entries of the greater one. */
	log_cq = FIELD_GET(URDMA_RF_CAP_LOG_ETH_CQ, eth);
	caps->log_eth_ring = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_ETH_RING, eth), 15);
	if (caps->log_eth_ring + 2 > log_cq)
		caps->log_eth_ring = log_cq < 2 ? 0 : log_cq - 2;
	/* As many as the registers have room for. */
	caps->eth_queues = min_t(u32, caps->eth_queues, URDMA_ETH_MAX_QUEUES);
	caps->eth_uc = min_t(u32, caps->eth_uc, URDMA_ETH_MAX_UC);
	if (!caps->eth_queues || caps->log_eth_ring < URDMA_ETH_LOG_MIN || !caps->eth_tx_descs ||
	    caps->eth_max_frame < ETH_FRAME_LEN || caps->num_vectors < 3 ||
	    pci_resource_len(dev->pdev, URDMA_BAR_REGS) <
		    URDMA_REG_ETHQ + (u64)caps->eth_queues * URDMA_ETHQ_STRIDE) {
		dev_err(&dev->pdev->dev, "impossible Ethernet capabilities: %#llx\n", eth);
		return -ENODEV;
	}
	return 0;
}

static int urdma_read_caps(struct urdma_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	struct urdma_caps *caps = &dev->caps;
	u64 version = urdma_read(dev, URDMA_REG_VERSION);
	u64 obj, queue, xport;
	u32 log_db_page;

	if (FIELD_GET(URDMA_RF_VERSION_MAGIC, version) != URDMA_MAGIC) {
		dev_err(d, "not a urdma: version register %#llx\n", version);
		return -ENODEV;
	}
	if (FIELD_GET(URDMA_RF_VERSION_MAJOR, version) != URDMA_VERSION_MAJOR) {
		dev_err(d, "contract version %llu.%llu, this driver knows %u\n",
			FIELD_GET(URDMA_RF_VERSION_MAJOR, version),
			FIELD_GET(URDMA_RF_VERSION_MINOR, version), URDMA_VERSION_MAJOR);
		return -ENODEV;
	}
	caps->version_minor = FIELD_GET(URDMA_RF_VERSION_MINOR, version);

	obj = urdma_read(dev, URDMA_REG_CAP_OBJ);
	queue = urdma_read(dev, URDMA_REG_CAP_QUEUE);
	xport = urdma_read(dev, URDMA_REG_CAP_XPORT);
	caps->page_sizes = urdma_read(dev, URDMA_REG_CAP_PAGES);
	caps->features = urdma_read(dev, URDMA_REG_CAP_FEATURES);
	caps->clock_hz = urdma_read(dev, URDMA_REG_CLOCK_HZ);
	caps->speed_mbps = urdma_read(dev, URDMA_REG_PORT_SPEED);

	/* Object numbers have 24 bits, as has the index in a key; doorbell page numbers 12. */
	caps->log_qp = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_QP, obj), 24);
	caps->num_qp = 1U << caps->log_qp;
	caps->num_cq = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_CQ, obj), 24);
	caps->num_mr = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_MR, obj), 24);
	caps->num_eq = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_EQ, obj), 6);
	caps->num_pd = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_PD, obj), 16);
	caps->num_db_pages = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_DB_PAGES, obj), 12);
	caps->num_vectors = 1U << min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_VECTORS, obj), 6);

	caps->max_sq_sge = FIELD_GET(URDMA_RF_CAP_MAX_SQ_SGE, queue);
	caps->max_rq_sge = FIELD_GET(URDMA_RF_CAP_MAX_RQ_SGE, queue);
	caps->max_inline = FIELD_GET(URDMA_RF_CAP_MAX_INLINE, queue);
	caps->max_sq_sge =
		min_t(u32, caps->max_sq_sge,
		      ((1 << URDMA_MAX_WQE_LOG) - URDMA_SQE_DATA_OFFSET) / URDMA_SGE_SIZE);
	caps->max_rq_sge =
		min_t(u32, caps->max_rq_sge,
		      ((1 << URDMA_MAX_WQE_LOG) - URDMA_RQE_DATA_OFFSET) / URDMA_SGE_SIZE);
	caps->max_inline =
		min_t(u32, caps->max_inline, (1 << URDMA_MAX_WQE_LOG) - URDMA_SQE_DATA_OFFSET);
	/* Work queue indexes have 16 bits, and a full ring must differ from an empty one. */
	caps->log_sq = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_SQ, queue), 15);
	caps->log_rq = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_RQ, queue), 15);
	caps->log_cqe = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_CQE, queue), 24);
	caps->log_eqe = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_EQE, queue), 24);

	caps->log_max_msg = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_MAX_MSG, xport), 31);
	/* enum ib_mtu: 256 bytes are 1 */
	caps->max_mtu = clamp_t(int, FIELD_GET(URDMA_RF_CAP_LOG_MAX_MTU, xport) - 7, IB_MTU_256,
				IB_MTU_4096);
	caps->num_gids = FIELD_GET(URDMA_RF_CAP_GIDS, xport);
	caps->max_rd_atomic = FIELD_GET(URDMA_RF_CAP_MAX_RD_ATOMIC, xport);
	caps->log_cmdq = min_t(u64, FIELD_GET(URDMA_RF_CAP_LOG_CMDQ, xport), 15);
	log_db_page = FIELD_GET(URDMA_RF_CAP_LOG_DB_PAGE_SIZE, xport);

	/* Page table entries stand for 4 KB to 2 GB; a context maps exactly one doorbell page. */
	caps->page_sizes &= GENMASK_ULL(31, PAGE_SHIFT);
	if (log_db_page != PAGE_SHIFT || !(caps->page_sizes & PAGE_SIZE)) {
		dev_err(d,
			"pages of %lu bytes do not fit the device (doorbells %u, memory %#llx)\n",
			PAGE_SIZE, 1U << log_db_page, caps->page_sizes);
		return -ENODEV;
	}
	if (caps->num_qp <= URDMA_FIRST_QPN || caps->num_mr <= URDMA_FIRST_MR || caps->num_eq < 2 ||
	    caps->num_vectors < 2 || caps->num_db_pages < 2 || !caps->max_sq_sge ||
	    !caps->max_rq_sge || !caps->num_gids || !caps->log_cmdq || caps->log_cqe < 4 ||
	    caps->log_eqe < 4) {
		dev_err(d, "impossible capabilities: %#llx %#llx %#llx\n", obj, queue, xport);
		return -ENODEV;
	}
	if (pci_resource_len(dev->pdev, URDMA_BAR_DB) < (u64)caps->num_db_pages << PAGE_SHIFT) {
		dev_err(d, "BAR %d is too small for %u doorbell pages\n", URDMA_BAR_DB,
			caps->num_db_pages);
		return -ENODEV;
	}
	return urdma_read_eth_caps(dev);
}

static int urdma_pci_init(struct urdma_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err;

	err = pci_enable_device_mem(pdev);
	if (err)
		return err;
	err = pci_request_mem_regions(pdev, URDMA_DRV_NAME);
	if (err)
		goto err_disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_release;
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);

	err = -ENODEV;
	if (pci_resource_len(pdev, URDMA_BAR_REGS) < URDMA_REG_COUNTERS + 8 * URDMA_CNT_N ||
	    pci_resource_len(pdev, URDMA_BAR_DB) < URDMA_DB_PAGE_SIZE)
		goto err_release;
	err = -ENOMEM;
	dev->regs = pci_iomap(pdev, URDMA_BAR_REGS, 0);
	if (!dev->regs)
		goto err_release;
	dev->db = pci_iomap(pdev, URDMA_BAR_DB, URDMA_DB_PAGE_SIZE);
	if (!dev->db)
		goto err_unmap_regs;
	dev->db_bus = pci_resource_start(pdev, URDMA_BAR_DB);
	return 0;

err_unmap_regs:
	pci_iounmap(pdev, dev->regs);
err_release:
	pci_release_mem_regions(pdev);
err_disable:
	pci_disable_device(pdev);
	return err;
}

static void urdma_pci_exit(struct urdma_dev *dev)
{
	pci_iounmap(dev->pdev, dev->db);
	pci_iounmap(dev->pdev, dev->regs);
	pci_release_mem_regions(dev->pdev);
	pci_disable_device(dev->pdev);
}

/* Ends all DMA: by the device's own reset, and whatever came of that by its bus master bit. */
static void urdma_hw_stop(struct urdma_dev *dev)
{
	if (!urdma_is_dead(dev)) {
		if (urdma_hw_reset(dev))
			dev_warn(&dev->pdev->dev, "no answer to a reset\n");
		set_bit(URDMA_F_DEAD, &dev->flags);
	}
	pci_clear_master(dev->pdev);
}

static int urdma_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct urdma_dev *dev;
	int err;

	dev = ib_alloc_device(urdma_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->pdev = pdev;
	pci_set_drvdata(pdev, dev);
	xa_init_flags(&dev->cq_xa, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->qp_xa, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->mr_xa, XA_FLAGS_ALLOC);
	ida_init(&dev->pd_ida);
	ida_init(&dev->db_ida);
	INIT_WORK(&dev->dead_work, urdma_cq_dead_work);
	spin_lock_init(&dev->dead_lock);
	spin_lock_init(&dev->link_lock);

	err = urdma_pci_init(dev);
	if (err) {
		dev_err(&pdev->dev, "cannot use the PCI function: %d\n", err);
		goto err_dealloc;
	}
	err = urdma_read_caps(dev);
	if (err)
		goto err_pci;
	dev->mr_variant = kvzalloc(dev->caps.num_mr, GFP_KERNEL);
	if (!dev->mr_variant) {
		err = -ENOMEM;
		goto err_pci;
	}
	err = urdma_hw_reset(dev);
	if (err) {
		dev_err(&pdev->dev, "the device does not come out of reset: %d\n", err);
		goto err_variant;
	}
	pci_set_master(pdev);
	err = urdma_cmdq_init(dev);
	if (err) {
		dev_err(&pdev->dev, "cannot start the command queue: %d\n", err);
		goto err_stop;
	}
	err = urdma_eqs_init(dev);
	if (err) {
		dev_err(&pdev->dev, "cannot make the event queues: %d\n", err);
		goto err_cmdq;
	}
	err = urdma_netdev_init(dev);
	if (err) {
		dev_err(&pdev->dev, "cannot register the net device: %d\n", err);
		goto err_eqs;
	}
	err = urdma_ib_register(dev);
	if (err) {
		dev_err(&pdev->dev, "cannot register the RDMA device: %d\n", err);
		goto err_netdev;
	}
	return 0;

err_netdev:
	urdma_netdev_exit(dev);
err_eqs:
	urdma_eqs_stop(dev);
	urdma_hw_stop(dev);
	urdma_eqs_free(dev);
err_cmdq:
	urdma_hw_stop(dev);
	urdma_cmdq_free(dev);
err_stop:
	urdma_hw_stop(dev);
err_variant:
	kvfree(dev->mr_variant);
err_pci:
	urdma_pci_exit(dev);
err_dealloc:
	cancel_work_sync(&dev->dead_work);
	pci_set_drvdata(pdev, NULL);
	ib_dealloc_device(&dev->ibdev);
	return err;
}

static void urdma_remove(struct pci_dev *pdev)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	if (urdma_is_gone(dev))
		urdma_set_dead(dev, "removed");
	/* Takes every user object down with it, by commands or, when dead, without. */
	urdma_ib_unregister(dev);
	urdma_netdev_exit(dev);
	urdma_eqs_stop(dev);
	urdma_hw_stop(dev);
	urdma_eqs_free(dev);
	urdma_cmdq_free(dev);
	kvfree(dev->mr_variant);
	cancel_work_sync(&dev->dead_work);
	urdma_pci_exit(dev);
	xa_destroy(&dev->cq_xa);
	xa_destroy(&dev->qp_xa);
	xa_destroy(&dev->mr_xa);
	ida_destroy(&dev->pd_ida);
	ida_destroy(&dev->db_ida);
	pci_set_drvdata(pdev, NULL);
	ib_dealloc_device(&dev->ibdev);
}

/* The next kernel, or the firmware, must find a device that does not write to memory. */
static void urdma_shutdown(struct pci_dev *pdev)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	urdma_mark_dead(dev);
	urdma_cmdq_abort(dev);
	/* Registers answer without bus mastering too. */
	if (!urdma_is_gone(dev))
		urdma_hw_reset(dev);
}

static pci_ers_result_t urdma_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	/* What the NIC knew of its objects is lost, and with it what their owners know. */
	urdma_set_dead(pci_get_drvdata(pdev), "PCI error");
	return PCI_ERS_RESULT_DISCONNECT;
}

static const struct pci_error_handlers urdma_err_handler = {
	.error_detected = urdma_error_detected,
};

static const struct pci_device_id urdma_pci_table[] = {
	{ PCI_DEVICE(URDMA_PCI_VENDOR_ID, URDMA_PCI_DEVICE_ID) },
	{},
};
MODULE_DEVICE_TABLE(pci, urdma_pci_table);

static struct pci_driver urdma_pci_driver = {
	.name = URDMA_DRV_NAME,
	.id_table = urdma_pci_table,
	.probe = urdma_probe,
	.remove = urdma_remove,
	.shutdown = urdma_shutdown,
	.err_handler = &urdma_err_handler,
};
module_pci_driver(urdma_pci_driver);
