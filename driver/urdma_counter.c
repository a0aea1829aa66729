// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: counters of QPs ("rdma statistic qp"). A counter of the core is a counter set of the NIC,
 * whose number is the counter's id. QPs without a counter have set 0. The core holds the counter's
 * lock around each of these calls except the last. They may sleep.
 *
 * A function reset destroys all QPs first, so the core has freed all counters before the NIC
 * forgets its sets.
 */
#include <rdma/rdma_counter.h>

#include "urdma.h"

static int urdma_set_qp_cnt(struct ib_qp *ibqp, u32 set)
{
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_SET_QP_CNT, ibqp->qp_num) };

	cmd[1] = FIELD_PREP(URDMA_CMD_QPC1_SET, set);
	return urdma_cmd_exec(to_udev(ibqp->device), cmd, NULL);
}

/* Clear the set: an earlier owner may have used it. */
static int urdma_cnt_alloc(struct urdma_dev *dev, u32 *set)
{
	u64 cmd[URDMA_CMD_WORDS];
	int id, err;

	id = ida_alloc_range(&dev->cnt_ida, 1, dev->caps.num_cnt_sets - 1, GFP_KERNEL);
	if (id < 0)
		return id;
	memset(cmd, 0, sizeof(cmd));
	cmd[0] = urdma_cmd0(URDMA_CMD_CLEAR_CNT, id);
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err) {
		ida_free(&dev->cnt_ida, id);
		return err;
	}
	*set = id;
	return 0;
}

/* The first QP allocates the set. The QP may be in any state: the NIC keeps its set in RESET. */
int urdma_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp)
{
	struct urdma_dev *dev = to_udev(ibqp->device);
	bool first = !counter->id;
	int err;

	if (first) {
		err = urdma_cnt_alloc(dev, &counter->id);
		if (err)
			return err;
	}
	err = urdma_set_qp_cnt(ibqp, counter->id);
	if (err) {
		/* The core does not free a counter whose first QP could not be bound. */
		if (first) {
			urdma_counter_dealloc(counter);
			counter->id = 0;
		}
		return err;
	}
	ibqp->counter = counter;
	return 0;
}

/*
 * The core checks whether the QP has a counter before it takes the counter's lock. While a caller
 * waits for the lock, another one may unbind the QP, and the NIC may destroy it. The error keeps
 * the core from freeing the counter twice.
 *
 * Otherwise this does not fail: when the core destroys a QP, it frees the counter even if this
 * returns an error. A NIC that refuses is broken, as in urdma_cmd_destroy().
 */
int urdma_counter_unbind_qp(struct ib_qp *ibqp)
{
	struct urdma_dev *dev = to_udev(ibqp->device);

	if (!ibqp->counter)
		return -EINVAL;
	if (urdma_set_qp_cnt(ibqp, 0))
		urdma_set_dead(dev, "the counters of a QP could not be taken away");
	ibqp->counter = NULL;
	return 0;
}

int urdma_counter_update_stats(struct rdma_counter *counter)
{
	return urdma_get_qp_stats(to_udev(counter->device), counter->id, counter->stats);
}

/* No QP uses it any more. */
int urdma_counter_dealloc(struct rdma_counter *counter)
{
	ida_free(&to_udev(counter->device)->cnt_ida, counter->id);
	return 0;
}
