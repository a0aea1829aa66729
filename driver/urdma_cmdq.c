// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: command queue.
 *
 * Two rings of the same size: the driver writes commands, the NIC writes completions in the order
 * in which it finishes. A tag matches a completion to its command. There are as many tags as
 * entries, and a tag is free again only when its completion has been read, so neither ring can
 * overflow.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>

#include "urdma.h"

/* A device that answers nothing for this time is dead; a simulated one may be slow. */
#define URDMA_CMD_TIMEOUT (60 * HZ)
/* Polling interval of a waiter, in case of a lost interrupt or a removed device. */
#define URDMA_CMD_LOOK (HZ / 4)
/* More commands in flight would not be faster. */
#define URDMA_CMDQ_LOG_WANTED 6

static size_t urdma_cmdq_bytes(const struct urdma_cmdq *q)
{
	/* Bases must be 4 KB aligned; coherent memory of a page or more is. */
	return max_t(size_t, (size_t)URDMA_CMD_SIZE << q->log, PAGE_SIZE);
}

/* On failure, urdma_cmdq_free() frees what was allocated. */
int urdma_cmdq_init(struct urdma_dev *dev)
{
	struct urdma_cmdq *q = &dev->cmdq;
	struct device *d = &dev->pdev->dev;
	u32 i, n;

	memset(q, 0, sizeof(*q));
	q->log = min_t(u8, dev->caps.log_cmdq, URDMA_CMDQ_LOG_WANTED);
	n = 1U << q->log;
	spin_lock_init(&q->lock);
	sema_init(&q->room, n);
	q->tags = bitmap_zalloc(n, GFP_KERNEL);
	q->wait = kcalloc(n, sizeof(*q->wait), GFP_KERNEL);
	if (!q->tags || !q->wait)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		init_completion(&q->wait[i].done);
	q->ring = dma_alloc_coherent(d, urdma_cmdq_bytes(q), &q->ring_dma, GFP_KERNEL);
	if (!q->ring)
		return -ENOMEM;
	q->cpl = dma_alloc_coherent(d, urdma_cmdq_bytes(q), &q->cpl_dma, GFP_KERNEL);
	if (!q->cpl)
		return -ENOMEM;

	urdma_write(dev, URDMA_REG_CMDQ_BASE, q->ring_dma);
	urdma_write(dev, URDMA_REG_CMDQ_CPL_BASE, q->cpl_dma);
	urdma_write(dev, URDMA_REG_CMDQ_LOG_SIZE, q->log);
	urdma_write(dev, URDMA_REG_CTRL, URDMA_RF_CTRL_ENABLE);
	return 0;
}

/* The device has been stopped, or its start has failed at any step. */
void urdma_cmdq_free(struct urdma_dev *dev)
{
	struct urdma_cmdq *q = &dev->cmdq;
	struct device *d = &dev->pdev->dev;

	if (q->cpl)
		dma_free_coherent(d, urdma_cmdq_bytes(q), q->cpl, q->cpl_dma);
	if (q->ring)
		dma_free_coherent(d, urdma_cmdq_bytes(q), q->ring, q->ring_dma);
	kfree(q->wait);
	bitmap_free(q->tags);
	memset(q, 0, sizeof(*q));
}

static int urdma_status_to_errno(u64 status)
{
	switch (status) {
	case URDMA_CS_OK:
		return 0;
	case URDMA_CS_BAD_OPCODE:
		return -EOPNOTSUPP;
	case URDMA_CS_EXISTS:
		return -EEXIST;
	case URDMA_CS_BUSY:
		return -EBUSY;
	case URDMA_CS_FULL:
		return -ENOSPC;
	case URDMA_CS_BAD_OBJECT:
	case URDMA_CS_BAD_STATE:
	case URDMA_CS_BAD_PD:
	case URDMA_CS_BAD_CQ:
	case URDMA_CS_BAD_EQ:
	case URDMA_CS_BAD_SIZE:
	case URDMA_CS_BAD_ALIGN:
	case URDMA_CS_BAD_ATTR:
	case URDMA_CS_BAD_DB_PAGE:
		return -EINVAL;
	default:
		return -EIO;
	}
}

/* Takes the completions that have arrived. Any context. */
void urdma_cmdq_reap(struct urdma_dev *dev)
{
	struct urdma_cmdq *q = &dev->cmdq;
	struct urdma_cmd_wait *wait;
	struct urdma_cmd *cpl;
	unsigned long flags;
	u64 w0, w7;
	u32 tag;
	int i;

	spin_lock_irqsave(&q->lock, flags);
	for (;;) {
		cpl = &q->cpl[q->ci & ((1U << q->log) - 1)];
		w7 = le64_to_cpu(READ_ONCE(cpl->w[7]));
		if (FIELD_GET(URDMA_CPL7_PHASE, w7) != urdma_phase(q->ci, q->log))
			break;
		/* Read the phase bit first, then the rest. */
		dma_rmb();
		w0 = le64_to_cpu(cpl->w[0]);
		q->ci++;
		tag = FIELD_GET(URDMA_CPL0_TAG, w0);
		if (tag >> q->log || !q->wait[tag].busy) {
			dev_warn_ratelimited(&dev->pdev->dev, "completion of no command: %#llx\n",
					     w0);
			continue;
		}
		wait = &q->wait[tag];
		wait->cpl[0] = w0;
		for (i = 1; i < URDMA_CMD_WORDS; i++)
			wait->cpl[i] = le64_to_cpu(cpl->w[i]);
		wait->err = urdma_status_to_errno(FIELD_GET(URDMA_CPL0_STATUS, w0));
		wait->busy = false;
		complete(&wait->done);
	}
	spin_unlock_irqrestore(&q->lock, flags);
}

/* The device is dead: end all waits for it. */
void urdma_cmdq_abort(struct urdma_dev *dev)
{
	struct urdma_cmdq *q = &dev->cmdq;
	unsigned long flags;
	u32 i;

	if (!q->wait)
		return;
	spin_lock_irqsave(&q->lock, flags);
	for (i = 0; i >> q->log == 0; i++) {
		if (!q->wait[i].busy)
			continue;
		q->wait[i].busy = false;
		q->wait[i].err = -EIO;
		complete(&q->wait[i].done);
	}
	spin_unlock_irqrestore(&q->lock, flags);
}

static bool urdma_cmd_wait(struct urdma_dev *dev, struct urdma_cmd_wait *wait)
{
	struct urdma_cmdq *q = &dev->cmdq;

	if (q->events)
		return wait_for_completion_timeout(&wait->done, URDMA_CMD_LOOK);
	urdma_cmdq_reap(dev);
	if (try_wait_for_completion(&wait->done))
		return true;
	usleep_range(50, 100);
	return false;
}

/*
 * Send a command (8 words; this fills in the tag) and wait for its completion, which is copied to
 * cpl unless that is NULL. May sleep. Returns 0, the errno of the status, or -EIO if the device is
 * dead; a dead device accesses no memory.
 */
int urdma_cmd_exec(struct urdma_dev *dev, u64 *cmd, u64 *cpl)
{
	struct urdma_cmdq *q = &dev->cmdq;
	struct urdma_cmd_wait *wait;
	struct urdma_cmd *slot;
	unsigned long end, flags;
	u32 tag;
	int err, i;

	might_sleep();
	if (urdma_is_dead(dev))
		return -EIO;
	down(&q->room);

	spin_lock_irqsave(&q->lock, flags);
	/* Under the lock, so a command is either not sent or seen by urdma_cmdq_abort(). */
	if (urdma_is_dead(dev)) {
		spin_unlock_irqrestore(&q->lock, flags);
		up(&q->room);
		return -EIO;
	}
	tag = find_first_zero_bit(q->tags, 1U << q->log);
	__set_bit(tag, q->tags);
	wait = &q->wait[tag];
	reinit_completion(&wait->done);
	wait->busy = true;
	cmd[0] &= ~(URDMA_CMD0_TAG | URDMA_CMD0_EVENT);
	cmd[0] |= FIELD_PREP(URDMA_CMD0_TAG, tag);
	if (q->events)
		cmd[0] |= URDMA_CMD0_EVENT;
	slot = &q->ring[q->pi & ((1U << q->log) - 1)];
	for (i = 0; i < URDMA_CMD_WORDS; i++)
		slot->w[i] = cpu_to_le64(cmd[i]);
	q->pi++;
	/* writeq() orders the command in memory before the index. */
	urdma_write(dev, URDMA_REG_CMDQ_PI, q->pi);
	spin_unlock_irqrestore(&q->lock, flags);

	end = jiffies + URDMA_CMD_TIMEOUT;
	while (!urdma_cmd_wait(dev, wait)) {
		if (q->events)
			urdma_cmdq_reap(dev);
		if (completion_done(&wait->done))
			continue;
		if (q->events && urdma_is_gone(dev))
			urdma_set_dead(dev, "gone");
		else if (time_after(jiffies, end))
			urdma_set_dead(dev, "a command was not answered");
	}

	err = wait->err;
	if (cpl)
		memcpy(cpl, wait->cpl, sizeof(wait->cpl));
	spin_lock_irqsave(&q->lock, flags);
	__clear_bit(tag, q->tags);
	spin_unlock_irqrestore(&q->lock, flags);
	up(&q->room);
	return err;
}

/*
 * Destroy an object. When this returns, the NIC no longer accesses the object's memory: the command
 * has completed, or the device is dead. A device that refuses is broken and is taken out of use.
 */
void urdma_cmd_destroy(struct urdma_dev *dev, u8 opcode, u32 obj)
{
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(opcode, obj) };

	if (urdma_cmd_exec(dev, cmd, NULL))
		urdma_set_dead(dev, "an object could not be destroyed");
}
