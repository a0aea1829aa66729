// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: multicast groups of UD. A QP is a member until it is detached or destroyed, whatever its
 * state. The NIC ends memberships in RESET, so the driver records them and attaches the QP again.
 */
#include <linux/slab.h>

#include "urdma.h"

struct urdma_group {
	struct list_head list;
	union ib_gid gid;
};

static int urdma_mcast_cmd(struct ib_qp *ibqp, u8 opcode, const union ib_gid *gid)
{
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(opcode, ibqp->qp_num) };

	cmd[5] = urdma_gid_word(gid, 0);
	cmd[6] = urdma_gid_word(gid, 1);
	return urdma_cmd_exec(to_udev(ibqp->device), cmd, NULL);
}

/* The core has checked type and GID. Ethernet has no LIDs. */
int urdma_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct urdma_qp *qp = to_uqp(ibqp);
	struct urdma_group *group;
	int err;

	group = kzalloc(sizeof(*group), GFP_KERNEL);
	if (!group)
		return -ENOMEM;
	group->gid = *gid;
	mutex_lock(&qp->lock);
	err = urdma_mcast_cmd(ibqp, URDMA_CMD_ATTACH_MCAST, gid);
	if (err)
		kfree(group);
	else
		list_add_tail(&group->list, &qp->groups);
	mutex_unlock(&qp->lock);
	return err;
}

int urdma_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct urdma_qp *qp = to_uqp(ibqp);
	struct urdma_group *group;
	int err = -EINVAL;

	mutex_lock(&qp->lock);
	list_for_each_entry(group, &qp->groups, list) {
		if (memcmp(&group->gid, gid, sizeof(*gid)))
			continue;
		/*
		 * The detach succeeds even if the NIC refuses: the NIC may be dead, or its table
		 * was full after a RESET. The core does not destroy a QP that cannot be detached.
		 */
		urdma_mcast_cmd(ibqp, URDMA_CMD_DETACH_MCAST, gid);
		list_del(&group->list);
		kfree(group);
		err = 0;
		break;
	}
	mutex_unlock(&qp->lock);
	return err;
}

/*
 * The QP is in RESET, and its lock is held. Others may have taken its table entries by now. A
 * process can cause this, so it is not logged above debug level.
 */
void urdma_mcast_again(struct urdma_qp *qp)
{
	struct urdma_group *group, *next;

	list_for_each_entry_safe(group, next, &qp->groups, list)
		if (urdma_mcast_cmd(&qp->ibqp, URDMA_CMD_ATTACH_MCAST, &group->gid))
			ibdev_dbg(qp->ibqp.device, "QP %u has lost a group: %pI6\n",
				  qp->ibqp.qp_num, group->gid.raw);
}

/* The QP is destroyed. */
void urdma_mcast_forget(struct urdma_qp *qp)
{
	struct urdma_group *group, *next;

	list_for_each_entry_safe(group, next, &qp->groups, list)
		kfree(group);
}
