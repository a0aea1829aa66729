// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma: the PCI device from probe to remove, its resets and sleep, and its death. */
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/module.h>

#include "urdma.h"

MODULE_DESCRIPTION("urdma RDMA NIC");
MODULE_LICENSE("Dual BSD/GPL");

/* A reset sweeps every context memory, one word per cycle; the clock may be a simulated one. */
#define URDMA_RESET_TIMEOUT (30 * HZ)

/*
 * A removed device answers every read with all ones. If the device no longer decodes its addresses,
 * the root port supplies some value. Neither value has the magic number.
 */
bool urdma_is_gone(struct urdma_dev *dev)
{
	return pci_channel_offline(dev->pdev) ||
	       FIELD_GET(URDMA_RF_VERSION_MAGIC, urdma_read(dev, URDMA_REG_VERSION)) != URDMA_MAGIC;
}

/*
 * Bus mastering is switched off first. No DMA can come after that, so all memory may be freed
 * although no destroy commands are sent. False: the device was already dead.
 */
static bool urdma_mark_dead(struct urdma_dev *dev)
{
	unsigned long flags;
	bool first;

	/* No one may see the device as dead, and free memory, before bus mastering is off. */
	spin_lock_irqsave(&dev->dead_lock, flags);
	first = !urdma_is_dead(dev);
	if (first) {
		pci_clear_master(dev->pdev);
		set_bit(URDMA_F_DEAD, &dev->flags);
	}
	spin_unlock_irqrestore(&dev->dead_lock, flags);
	return first;
}

/* Ends all waits for the device and notifies its users that it is dead. */
static void urdma_tell_dead(struct urdma_dev *dev)
{
	urdma_cmdq_abort(dev);
	urdma_netdev_link(dev);
	queue_work(dev->wq, &dev->notify_work);
	urdma_ib_event(dev, IB_EVENT_DEVICE_FATAL);
}

/* Takes the device out of use until it is reset or probed again. */
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
	/* Bus mastering is off in the saved state. */
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
 * The core saves no state before a slot reset. The state that it saves before a function reset is
 * already lost if a slot reset has failed.
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
 * Ends all DMA by the device's own reset and, even if that fails, by its bus master bit. Then frees
 * the event queues and the command queue.
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

/* Commands and events work after this. The device was just probed, or stopped before. */
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
	/* dead until it is started */
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
	/* Memory reclaim may wait for the end of an object, which waits for this queue. */
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
	/* Destroys every user object, by commands unless the device is dead. */
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
 * The NIC is about to lose all its objects, by a function reset, a slot reset or a system sleep.
 * The RDMA objects are gone for good: consumers are notified, their work is flushed, and the RDMA
 * device is unregistered with all their objects. The net device keeps its settings. It is detached,
 * and the contents of its rings are lost.
 */
static void urdma_suspend_all(struct urdma_dev *dev)
{
	urdma_netdev_detach(dev);
	if (urdma_mark_dead(dev))
		urdma_tell_dead(dev);
	urdma_ib_unregister(dev);
	urdma_hw_stop(dev);
}

/*
 * Undoes urdma_suspend_all(). On failure there is no RDMA device, and the net device may stay
 * detached.
 */
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

/* The next kernel or the firmware must not find a device that writes to memory. */
static void urdma_shutdown(struct pci_dev *pdev)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	urdma_mark_dead(dev);
	urdma_cmdq_abort(dev);
	/* Registers also answer with bus mastering off. */
	if (!urdma_is_gone(dev))
		urdma_hw_reset(dev);
}

/*
 * The link does not work: end all waits for the NIC and stop it as before a function reset. A
 * second call is harmless.
 */
static void urdma_error_stop(struct urdma_dev *dev)
{
	urdma_set_dead(dev, "PCI error");
	urdma_suspend_all(dev);
}

/*
 * PCI errors. The core calls these three in order from one thread, each with the device lock held,
 * as for probe and remove. Between the calls, the function may be reset or the driver rebound.
 */
static pci_ers_result_t urdma_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct urdma_dev *dev = pci_get_drvdata(pdev);

	if (state == pci_channel_io_frozen) {
		urdma_error_stop(dev);
		return PCI_ERS_RESULT_NEED_RESET;
	}
	/*
	 * The link works, but a write of data or of a completion may have been lost, so the NIC
	 * cannot continue. The core resets the slot only after a fatal error.
	 */
	urdma_set_dead(dev, "PCI error");
	return PCI_ERS_RESULT_DISCONNECT;
}

/* The link works again, and the function is in its power-up state. */
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

/* Both are also called with the device lock held. */
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

/* For hibernation too: the NIC does not keep its objects until the image is restored. */
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
