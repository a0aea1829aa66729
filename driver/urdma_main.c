// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: PCI device, from probe to remove; resets and sleep; what happens when it dies.
 */
#include <linux/dma-mapping.h>
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
 * Bus mastering goes first: from then on no DMA can come, so all memory may be given back although
 * no destroy command is sent any more. False: the device was dead already.
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

/* Nobody waits for the device any more, and whoever uses it hears that it is dead. */
static void urdma_tell_dead(struct urdma_dev *dev)
{
	urdma_cmdq_abort(dev);
	urdma_netdev_link(dev);
	queue_work(dev->wq, &dev->notify_work);
	urdma_ib_event(dev, IB_EVENT_DEVICE_FATAL);
}

/* The end of the device until it is reset or probed again. */
void urdma_set_dead(struct urdma_dev *dev, const char *why)
{
	if (!urdma_mark_dead(dev))
		return;
	dev_err(&dev->pdev->dev,
		"%s: the device is out of use until it is reset or the driver loaded again\n",
		why);
	urdma_tell_dead(dev);
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
	/* bit 63 of an address is URDMA_ADDR_DM */
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(63));
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
	/* Bus mastering is off in it. */
	pci_save_state(pdev);
	dev->config = pci_store_saved_state(pdev);
	if (!dev->config)
		goto err_unmap_db;
	return 0;

err_unmap_db:
	pci_iounmap(pdev, dev->db);
err_unmap_regs:
	pci_iounmap(pdev, dev->regs);
err_release:
	pci_release_mem_regions(pdev);
err_disable:
	pci_disable_device(pdev);
	return err;
}

/*
 * The core saves nothing before it resets a slot, and what it saves before a reset of the function
 * is lost already if the reset of a slot has failed.
 */
static void urdma_restore_config(struct urdma_dev *dev)
{
	if (!pci_load_saved_state(dev->pdev, dev->config))
		pci_restore_state(dev->pdev);
}

static void urdma_pci_exit(struct urdma_dev *dev)
{
	kfree(dev->config);
	pci_iounmap(dev->pdev, dev->db);
	pci_iounmap(dev->pdev, dev->regs);
	pci_release_mem_regions(dev->pdev);
	pci_disable_device(dev->pdev);
}

/*
 * Ends all DMA, by the device's own reset and, whatever came of that, by its bus master bit; then
 * the event queues and the command queue go.
 */
static void urdma_hw_stop(struct urdma_dev *dev)
{
	urdma_eqs_stop(dev);
	if (!urdma_is_dead(dev) && urdma_hw_reset(dev))
		dev_warn(&dev->pdev->dev, "no answer to a reset\n");
	urdma_mark_dead(dev);
	cancel_work_sync(&dev->notify_work);
	urdma_eqs_free(dev);
	urdma_cmdq_free(dev);
}

/* Commands and events work after this. The device has been probed, or was stopped. */
static int urdma_hw_start(struct urdma_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	int err;

	err = urdma_hw_reset(dev);
	if (err) {
		dev_err(d, "the device does not come out of reset: %d\n", err);
		return err;
	}
	pci_set_master(dev->pdev);
	clear_bit(URDMA_F_DEAD, &dev->flags);
	err = urdma_cmdq_init(dev);
	if (err) {
		dev_err(d, "cannot start the command queue: %d\n", err);
		goto err_stop;
	}
	err = urdma_eqs_init(dev);
	if (err) {
		dev_err(d, "cannot make the event queues: %d\n", err);
		goto err_stop;
	}
	return 0;

err_stop:
	urdma_hw_stop(dev);
	return err;
}

static struct urdma_dev *urdma_dev_alloc(struct pci_dev *pdev)
{
	struct urdma_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	dev->pdev = pdev;
	/* until it is started */
	set_bit(URDMA_F_DEAD, &dev->flags);
	xa_init_flags(&dev->cq_xa, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->qp_xa, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->srq_xa, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->mr_xa, XA_FLAGS_ALLOC);
	ida_init(&dev->pd_ida);
	ida_init(&dev->db_ida);
	ida_init(&dev->cnt_ida);
	INIT_WORK(&dev->notify_work, urdma_cq_notify_work);
	spin_lock_init(&dev->dm_lock);
	spin_lock_init(&dev->dead_lock);
	spin_lock_init(&dev->link_lock);
	spin_lock_init(&dev->ib_lock);
	/* Memory may be waiting for the end of an object, which waits for this queue. */
	dev->wq = alloc_workqueue(URDMA_DRV_NAME "-%s", WQ_MEM_RECLAIM, 0, pci_name(pdev));
	if (!dev->wq) {
		kfree(dev);
		return NULL;
	}
	return dev;
}

static void urdma_dev_free(struct urdma_dev *dev)
{
	destroy_workqueue(dev->wq);
	xa_destroy(&dev->cq_xa);
	xa_destroy(&dev->qp_xa);
	xa_destroy(&dev->srq_xa);
	xa_destroy(&dev->mr_xa);
	ida_destroy(&dev->pd_ida);
	ida_destroy(&dev->db_ida);
	ida_destroy(&dev->cnt_ida);
	kvfree(dev->mr_variant);
	kfree(dev);
}

static int urdma_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct urdma_dev *dev;
	int err;

	dev = urdma_dev_alloc(pdev);
	if (!dev)
		return -ENOMEM;
	pci_set_drvdata(pdev, dev);
	err = urdma_pci_init(dev);
	if (err) {
		dev_err(&pdev->dev, "cannot use the PCI function: %d\n", err);
		goto err_free;
	}
	err = urdma_read_caps(dev);
	if (err)
		goto err_pci;
	err = urdma_dm_init(dev);
	if (err)
		goto err_pci;
	err = urdma_vectors_init(dev);
	if (err)
		goto err_dm;
	dev->mr_variant = kvzalloc(dev->caps.num_mr, GFP_KERNEL);
	if (!dev->mr_variant) {
		err = -ENOMEM;
		goto err_vectors;
	}
	err = urdma_hw_start(dev);
	if (err)
		goto err_vectors;
	err = urdma_netdev_init(dev);
	if (err) {
		dev_err(&pdev->dev, "cannot register the net device: %d\n", err);
		goto err_stop;
	}
	err = urdma_ib_register(dev);
	if (err) {
		dev_err(&pdev->dev, "cannot register the RDMA device: %d\n", err);
		goto err_netdev;
	}
	urdma_debugfs_init(dev);
	return 0;

err_netdev:
	urdma_netdev_exit(dev);
err_stop:
	urdma_hw_stop(dev);
err_vectors:
	pci_free_irq_vectors(pdev);
err_dm:
	urdma_dm_exit(dev);
err_pci:
	urdma_pci_exit(dev);
err_free:
	pci_set_drvdata(pdev, NULL);
	urdma_dev_free(dev);
	return err;
}

static void urdma_remove(struct pci_dev *pdev)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	if (urdma_is_gone(dev))
		urdma_set_dead(dev, "removed");
	urdma_debugfs_exit(dev);
	/* Takes every user object down with it, by commands or, when dead, without. */
	urdma_ib_unregister(dev);
	urdma_netdev_exit(dev);
	urdma_hw_stop(dev);
	pci_free_irq_vectors(pdev);
	urdma_dm_exit(dev);
	urdma_pci_exit(dev);
	pci_set_drvdata(pdev, NULL);
	urdma_dev_free(dev);
}

/*
 * The NIC is about to lose all that it knows of its objects: to a reset of the function or of the
 * slot, or to a sleep of the system. Objects of RDMA go for good: consumers hear of it, their work
 * is flushed, and the RDMA device ends with all that they have made of it. The net device stays as
 * it is, down for its users, and loses what is in its rings.
 */
static void urdma_suspend_all(struct urdma_dev *dev)
{
	urdma_netdev_detach(dev);
	if (urdma_mark_dead(dev))
		urdma_tell_dead(dev);
	urdma_ib_unregister(dev);
	urdma_hw_stop(dev);
}

/* After that. If it fails the net device stays down, and there is no RDMA device. */
static int urdma_resume_all(struct urdma_dev *dev)
{
	struct device *d = &dev->pdev->dev;
	int err;

	err = urdma_hw_start(dev);
	if (err)
		return err;
	urdma_netdev_attach(dev);
	err = urdma_ib_register(dev);
	if (err)
		dev_err(d, "cannot register the RDMA device again: %d\n", err);
	return err;
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

/*
 * The link does not work: nobody shall wait for the NIC any more, and it is stopped as before a
 * reset of the function. Once more does no harm.
 */
static void urdma_error_stop(struct urdma_dev *dev)
{
	urdma_set_dead(dev, "PCI error");
	urdma_suspend_all(dev);
}

/*
 * Errors of PCI. These three come one after the other in a thread, each with the device's lock
 * held, as probe and remove. In between somebody may have reset the function, or bound the driver
 * anew.
 */
static pci_ers_result_t urdma_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	if (state == pci_channel_io_frozen) {
		urdma_error_stop(dev);
		return PCI_ERS_RESULT_NEED_RESET;
	}
	/*
	 * Or the link works. But a write of the NIC may have got lost, of data or of a completion,
	 * so it cannot go on; and the core resets the slot only after a fatal error.
	 */
	urdma_set_dead(dev, "PCI error");
	return PCI_ERS_RESULT_DISCONNECT;
}

/* The link works again, and the function is as after power-up. */
static pci_ers_result_t urdma_slot_reset(struct pci_dev *pdev)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	urdma_error_stop(dev);
	urdma_restore_config(dev);
	return urdma_is_gone(dev) ? PCI_ERS_RESULT_DISCONNECT : PCI_ERS_RESULT_RECOVERED;
}

static void urdma_error_resume(struct pci_dev *pdev)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	/* Is it still stopped? */
	if (dev->eqs)
		return;
	if (!urdma_resume_all(dev))
		dev_info(&pdev->dev, "works again after a PCI error\n");
}

/* Both with the device's lock held, too. */
static void urdma_reset_prepare(struct pci_dev *pdev)
{
	urdma_suspend_all(pci_get_drvdata(pdev));
}

static void urdma_reset_done(struct pci_dev *pdev)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	if (urdma_is_gone(dev))
		urdma_restore_config(dev);
	urdma_resume_all(dev);
}

static const struct pci_error_handlers urdma_err_handler = {
	.error_detected = urdma_error_detected,
	.slot_reset = urdma_slot_reset,
	.resume = urdma_error_resume,
	.reset_prepare = urdma_reset_prepare,
	.reset_done = urdma_reset_done,
};

/* For hibernation too: what the NIC knew before the image was made it does not know afterwards. */
static int urdma_suspend(struct device *d)
{
	urdma_suspend_all(dev_get_drvdata(d));
	return 0;
}

static int urdma_resume(struct device *d)
{
	return urdma_resume_all(dev_get_drvdata(d));
}

static DEFINE_SIMPLE_DEV_PM_OPS(urdma_pm_ops, urdma_suspend, urdma_resume);

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
	.driver.pm = pm_sleep_ptr(&urdma_pm_ops),
};

static int __init urdma_init(void)
{
	int err;

	urdma_debugfs_register();
	err = pci_register_driver(&urdma_pci_driver);
	if (err)
		urdma_debugfs_unregister();
	return err;
}
module_init(urdma_init);

static void __exit urdma_exit(void)
{
	pci_unregister_driver(&urdma_pci_driver);
	urdma_debugfs_unregister();
}
module_exit(urdma_exit);
