// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: event queues. EQ 0 has command completions and asynchronous events, the others have events
 * of completion queues. EQ n has MSI-X vector n; the vectors behind them are those of the net
 * device's channels.
 *
 * An interrupt handler may use an object only while it runs. To destroy an object, the driver
 * removes it from its xarray, then waits with urdma_eq_sync() for the handlers of all EQs that may
 * have events with its number. For a CQ these are all EQs.
 */
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/topology.h>

#include "urdma.h"

/* Each armed CQ has at most one event in flight, but programs may arm repeatedly. */
#define URDMA_EQ_LOG_WANTED 12

static size_t urdma_eq_bytes(const struct urdma_eq *eq)
{
	return max_t(size_t, (size_t)URDMA_EQE_SIZE << eq->log, PAGE_SIZE);
}

/* Write the consumer index and request an interrupt for the next EQE, or one already written. */
static void urdma_eq_arm(struct urdma_eq *eq)
{
	writeq(FIELD_PREP(URDMA_DBW_OBJ, eq->eqn) | FIELD_PREP(URDMA_DBW_ARM, URDMA_DB_ARM_ANY) |
		       FIELD_PREP(URDMA_DBW_INDEX, eq->ci),
	       eq->dev->db + URDMA_DB_EQ);
}

static void urdma_eqe(struct urdma_eq *eq, u64 w0)
{
	struct urdma_dev *dev = eq->dev;
	u32 obj = FIELD_GET(URDMA_EQE0_OBJ, w0);
	u8 type = FIELD_GET(URDMA_EQE0_TYPE, w0);

	switch (type) {
	case URDMA_EV_CMD:
		urdma_cmdq_reap(dev);
		break;
	case URDMA_EV_CQ:
		urdma_cq_event(dev, obj);
		break;
	case URDMA_EV_CQ_ERR:
		urdma_cq_error(dev, obj);
		break;
	case URDMA_EV_QP_FATAL:
	case URDMA_EV_QP_REQ_ERR:
	case URDMA_EV_QP_ACCESS_ERR:
	case URDMA_EV_COMM_EST:
	case URDMA_EV_LAST_WQE:
	case URDMA_EV_SQ_DRAINED:
		urdma_qp_event(dev, obj, type);
		break;
	case URDMA_EV_SRQ_LIMIT:
	case URDMA_EV_SRQ_ERR:
		urdma_srq_event(dev, obj, type);
		break;
	case URDMA_EV_PORT:
		urdma_netdev_link(dev);
		break;
	default:
		dev_warn_ratelimited(&dev->pdev->dev, "event of unknown type %u\n", type);
	}
}

/*
 * The ring was so full that events may have been dropped. A lost command event does no harm:
 * waiters poll. For lost CQ events, the consumers of the EQ's armed CQs are called. The NIC does
 * not repeat a link event, so the link is read. All EQs share one counter, so each EQ keeps the
 * value it last saw. A process can cause this, so it is not logged above debug level.
 */
static void urdma_eq_check_lost(struct urdma_eq *eq)
{
	struct urdma_dev *dev = eq->dev;
	u64 lost = urdma_counter(dev, URDMA_CNT_EQ_LOST);

	if (lost == ~0ULL || lost == eq->lost)
		return;
	eq->lost = lost;
	dev_dbg_ratelimited(&dev->pdev->dev, "event queue %u was full\n", eq->eqn);
	urdma_cmdq_reap(dev);
	WRITE_ONCE(eq->overflow, true);
	queue_work(dev->wq, &dev->notify_work);
	if (!eq->eqn)
		urdma_netdev_link(dev);
}

static irqreturn_t urdma_eq_irq(int irq, void *data)
{
	struct urdma_eq *eq = data;
	const u32 size = 1U << eq->log;
	struct urdma_eqe *eqe;
	u32 n = 0;
	u64 w1;

	WRITE_ONCE(eq->irqs, eq->irqs + 1);
	/*
	 * Do not read all of a full ring: the EQEs left over, or new ones, raise the interrupt
	 * again once the NIC has processed the arming.
	 */
	while (n < size - 1) {
		eqe = &eq->ring[eq->ci & (size - 1)];
		w1 = le64_to_cpu(READ_ONCE(eqe->w[1]));
		if (FIELD_GET(URDMA_EQE1_PHASE, w1) != urdma_phase(eq->ci, eq->log))
			break;
		/* The NIC wrote the rest, and the completions or CQEs it announces, before. */
		dma_rmb();
		urdma_eqe(eq, le64_to_cpu(eqe->w[0]));
		eq->ci++;
		n++;
	}
	urdma_eq_arm(eq);
	/*
	 * The NIC drops events if it has filled the whole ring since one arming and has not yet
	 * processed the next. The run that ends with the next arming cannot have read the whole
	 * ring, so another run follows and reads the rest. That run begins after the NIC has
	 * processed the arming, so the counter then includes every such loss. Register reads do not
	 * wait for doorbells, so reading the counter after the arming of the first run could be too
	 * early.
	 */
	if (eq->last + n >= size)
		urdma_eq_check_lost(eq);
	eq->last = n;
	return IRQ_HANDLED;
}

static int urdma_eq_create(struct urdma_dev *dev, u32 eqn)
{
	struct urdma_eq *eq = &dev->eqs[eqn];
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_CREATE_EQ, eqn) };
	int cpu, err;

	eq->dev = dev;
	eq->eqn = eqn;
	eq->log = min_t(u8, dev->caps.log_eqe, URDMA_EQ_LOG_WANTED);
	/* The counter keeps its value over a reset of the NIC. */
	eq->lost = urdma_counter(dev, URDMA_CNT_EQ_LOST);
	eq->ring = dma_alloc_coherent(&dev->pdev->dev, urdma_eq_bytes(eq), &eq->dma, GFP_KERNEL);
	if (!eq->ring)
		return -ENOMEM;

	cmd[1] = FIELD_PREP(URDMA_CMD_EQ1_LOG_ENTRIES, eq->log) |
		 FIELD_PREP(URDMA_CMD_EQ1_VECTOR, eqn);
	cmd[2] = eq->dma;
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err)
		return err;

	eq->irq = pci_irq_vector(dev->pdev, eqn);
	snprintf(eq->name, sizeof(eq->name), URDMA_DRV_NAME "-%s%u@%s", eqn ? "comp" : "async", eqn,
		 pci_name(dev->pdev));
	err = request_irq(eq->irq, urdma_eq_irq, 0, eq->name, eq);
	if (err)
		return err;
	eq->irq_requested = true;
	if (eqn) {
		cpu = cpumask_local_spread(eqn - 1, dev_to_node(&dev->pdev->dev));
		irq_set_affinity_and_hint(eq->irq, cpumask_of(cpu));
	}
	urdma_eq_arm(eq);
	return 0;
}

/*
 * One event queue and one channel for each CPU. With fewer vectors, both get a share, but at least
 * EQ 0, one EQ for completions and, with the Ethernet function, one channel. The vectors are kept
 * over a function reset.
 */
int urdma_vectors_init(struct urdma_dev *dev)
{
	u32 eqs = min(num_possible_cpus() + 1, dev->caps.num_eq);
	u32 chans = min(num_possible_cpus(), dev->caps.eth_queues);
	u32 least = 2 + (chans ? 1 : 0);
	int n;

	n = pci_alloc_irq_vectors(dev->pdev, least, min(eqs + chans, dev->caps.num_vectors),
				  PCI_IRQ_MSIX);
	if (n < 0) {
		dev_err(&dev->pdev->dev, "%u MSI-X vectors are needed at least: %d\n", least, n);
		return n;
	}
	if (chans)
		chans = clamp(n * chans / (eqs + chans), 1U, n - 2U);
	dev->num_eth_vectors = chans;
	dev->num_eqs = n - chans;
	return 0;
}

/* After an error the caller stops the device; urdma_eqs_stop() and urdma_eqs_free() free all. */
int urdma_eqs_init(struct urdma_dev *dev)
{
	int err;
	u32 i;

	dev->eqs = kcalloc(dev->num_eqs, sizeof(*dev->eqs), GFP_KERNEL);
	if (!dev->eqs)
		return -ENOMEM;
	for (i = 0; i < dev->num_eqs; i++) {
		err = urdma_eq_create(dev, i);
		if (err)
			return err;
		/* Once EQ 0 exists, command completions raise events. */
		dev->cmdq.events = true;
	}
	return 0;
}

/* Waits for a running handler to end. */
void urdma_eq_sync(struct urdma_eq *eq)
{
	synchronize_irq(eq->irq);
}

/* No handler runs after this; further commands are polled. */
void urdma_eqs_stop(struct urdma_dev *dev)
{
	u32 i;

	dev->cmdq.events = false;
	for (i = 0; i < dev->num_eqs && dev->eqs; i++) {
		if (!dev->eqs[i].irq_requested)
			continue;
		irq_update_affinity_hint(dev->eqs[i].irq, NULL);
		free_irq(dev->eqs[i].irq, &dev->eqs[i]);
		dev->eqs[i].irq_requested = false;
	}
}

/* The device has been stopped. */
void urdma_eqs_free(struct urdma_dev *dev)
{
	struct urdma_eq *eq;
	u32 i;

	for (i = 0; i < dev->num_eqs && dev->eqs; i++) {
		eq = &dev->eqs[i];
		if (eq->ring)
			dma_free_coherent(&dev->pdev->dev, urdma_eq_bytes(eq), eq->ring, eq->dma);
	}
	kfree(dev->eqs);
	dev->eqs = NULL;
}
