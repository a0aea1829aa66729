// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: queue pairs: creation, states, attributes, events.
 */
#include <linux/etherdevice.h>
#include <rdma/ib_mad.h>
#include <rdma/uverbs_ioctl.h>

#include "urdma-abi.h"
#include "urdma.h"

/* The NIC's QP type; negative if it does not support the type. */
static int urdma_qp_type(const struct urdma_caps *caps, enum ib_qp_type type, bool kernel)
{
	switch (type) {
	case IB_QPT_RC:
		return URDMA_QPT_RC;
	case IB_QPT_UC:
		return caps->features & URDMA_RF_FEAT_UC ? URDMA_QPT_UC : -EOPNOTSUPP;
	case IB_QPT_GSI:
		if (!kernel)
			return -EOPNOTSUPP;
		fallthrough;
	case IB_QPT_UD:
		return caps->features & URDMA_RF_FEAT_UD ? URDMA_QPT_UD : -EOPNOTSUPP;
	case IB_QPT_XRC_INI:
		/* A kernel work request has no field for an SRQ number. */
		if (kernel)
			return -EOPNOTSUPP;
		return caps->features & URDMA_RF_FEAT_XRC ? URDMA_QPT_XRC_INI : -EOPNOTSUPP;
	case IB_QPT_XRC_TGT:
		return caps->features & URDMA_RF_FEAT_XRC ? URDMA_QPT_XRC_TGT : -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

/* Does the QP have its own receive queue? Not called for an XRC target QP, which has none. */
static bool urdma_qp_has_rq(const struct urdma_qp *qp)
{
	return qp->type != URDMA_QPT_XRC_INI && !qp->ibqp.srq;
}

/* Size in bytes of a send WQE for the requested limits. */
static u32 urdma_sqe_bytes(u8 type, const struct ib_qp_cap *cap)
{
	return urdma_sqe_data(type) + max(cap->max_send_sge * URDMA_SGE_SIZE, cap->max_inline_data);
}

static int urdma_qp_check(struct urdma_dev *dev, u8 type, const struct ib_qp_init_attr *attr)
{
	const struct urdma_caps *caps = &dev->caps;
	u32 flags = 0;

	if (type == URDMA_QPT_UD && caps->features & URDMA_RF_FEAT_MCAST)
		flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	if (attr->create_flags & ~flags || attr->rwq_ind_tbl)
		return -EOPNOTSUPP;
	if (attr->cap.max_send_wr > 1U << caps->log_sq ||
	    attr->cap.max_recv_wr > 1U << caps->log_rq ||
	    attr->cap.max_send_sge > caps->max_sq_sge ||
	    attr->cap.max_recv_sge > caps->max_rq_sge ||
	    attr->cap.max_inline_data > caps->max_inline)
		return -EINVAL;
	/* A UD WQE has less room than the capabilities suggest. */
	if (urdma_sqe_bytes(type, &attr->cap) > 1U << URDMA_MAX_WQE_LOG)
		return -EINVAL;
	return 0;
}

/* A kernel QP may use only kernel objects, and a process's QP only objects of processes. */
static bool urdma_qp_cq_fits(const struct urdma_qp *qp, struct ib_cq *ibcq)
{
	return ibcq && !!to_ucq(ibcq)->ring == qp->kernel;
}

static int urdma_qp_check_refs(const struct urdma_qp *qp, const struct ib_qp_init_attr *attr)
{
	if (qp->type == URDMA_QPT_XRC_TGT)
		return attr->xrcd ? 0 : -EINVAL;
	if (!urdma_qp_cq_fits(qp, attr->send_cq))
		return -EINVAL;
	if (qp->type == URDMA_QPT_XRC_INI)
		return attr->srq ? -EINVAL : 0;
	if (!urdma_qp_cq_fits(qp, attr->recv_cq))
		return -EINVAL;
	return attr->srq && to_usrq(attr->srq)->kernel != qp->kernel ? -EINVAL : 0;
}

/* Does the ring hold the requested WQEs, and does the buffer hold the ring? */
static int urdma_qp_check_ring(u8 log_entries, u8 log_max, u8 log_stride, u32 wr, u32 wqe_bytes,
			       u32 len)
{
	int err = urdma_wq_check(log_entries, log_max, log_stride, wr, wqe_bytes);

	if (err)
		return err;
	return len < 1ULL << (log_entries + log_stride) ? -EINVAL : 0;
}

static int urdma_qp_check_req(struct urdma_dev *dev, struct urdma_qp *qp,
			      const struct ib_qp_cap *cap, const struct urdma_create_qp_req *req)
{
	int err;

	if (req->reserved)
		return -EINVAL;
	err = urdma_qp_check_ring(req->sq_log_entries, dev->caps.log_sq, req->sq_log_stride,
				  cap->max_send_wr, urdma_sqe_bytes(qp->type, cap), req->sq_len);
	if (err)
		return err;
	if (!urdma_qp_has_rq(qp))
		return req->rq_addr || req->rq_len || req->rq_log_entries || req->rq_log_stride
			       ? -EINVAL
			       : 0;
	return urdma_qp_check_ring(req->rq_log_entries, dev->caps.log_rq, req->rq_log_stride,
				   cap->max_recv_wr, urdma_rqe_bytes(cap->max_recv_sge),
				   req->rq_len);
}

/* Rings in the memory of a process; the provider has chosen their sizes and strides. */
static int urdma_create_rings_user(struct urdma_dev *dev, struct urdma_qp *qp,
				   const struct ib_qp_cap *cap, struct ib_udata *udata)
{
	struct urdma_create_qp_req req;
	int err;

	err = urdma_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	err = urdma_qp_check_req(dev, qp, cap, &req);
	if (err)
		return err;
	qp->sq.log = req.sq_log_entries;
	qp->sq.log_stride = req.sq_log_stride;
	qp->rq.log = req.rq_log_entries;
	qp->rq.log_stride = req.rq_log_stride;

	/* The NIC only reads work queues. */
	err = urdma_mem_ring(dev, &qp->sq_mem, req.sq_addr,
			     1U << (req.sq_log_entries + req.sq_log_stride), 0);
	if (err || !urdma_qp_has_rq(qp))
		return err;
	err = urdma_mem_ring(dev, &qp->rq_mem, req.rq_addr,
			     1U << (req.rq_log_entries + req.rq_log_stride), 0);
	if (err)
		urdma_mem_free(dev, &qp->sq_mem);
	return err;
}

/* Rings of the kernel. Grants all that the slots can hold, even beyond the request. */
static int urdma_create_rings_kernel(struct urdma_dev *dev, struct urdma_qp *qp,
				     struct ib_qp_cap *cap)
{
	u32 room;
	int err;

	err = urdma_wq_init(dev, &qp->sq, &qp->sq_mem, cap->max_send_wr,
			    urdma_sqe_bytes(qp->type, cap), 0);
	if (err)
		return err;
	if (!qp->ibqp.srq)
		err = urdma_wq_init(dev, &qp->rq, &qp->rq_mem, cap->max_recv_wr,
				    urdma_rqe_bytes(cap->max_recv_sge), 0);
	if (err) {
		urdma_wq_uninit(dev, &qp->sq, &qp->sq_mem);
		return err;
	}
	room = (1U << qp->sq.log_stride) - urdma_sqe_data(qp->type);
	qp->sq.max_sge = min(room / URDMA_SGE_SIZE, dev->caps.max_sq_sge);
	cap->max_inline_data = min(room, dev->caps.max_inline);
	cap->max_send_wr = 1U << qp->sq.log;
	cap->max_send_sge = qp->sq.max_sge;
	if (qp->ibqp.srq)
		return 0;
	qp->rq.max_sge = urdma_rq_max_sge(dev, &qp->rq);
	cap->max_recv_wr = 1U << qp->rq.log;
	cap->max_recv_sge = qp->rq.max_sge;
	return 0;
}

static void urdma_free_rings(struct urdma_dev *dev, struct urdma_qp *qp)
{
	if (qp->kernel) {
		urdma_wq_uninit(dev, &qp->rq, &qp->rq_mem);
		urdma_wq_uninit(dev, &qp->sq, &qp->sq_mem);
	} else {
		urdma_mem_free(dev, &qp->rq_mem);
		urdma_mem_free(dev, &qp->sq_mem);
	}
}

/* Only reserve a number for now: an event must not find an unfinished QP. */
static int urdma_reserve_qpn(struct urdma_dev *dev, enum ib_qp_type type, u32 *qpn)
{
	int err;

	if (type == IB_QPT_GSI) {
		*qpn = URDMA_GSI_QPN;
		return xa_insert(&dev->qp_xa, *qpn, NULL, GFP_KERNEL);
	}
	err = xa_alloc_cyclic(&dev->qp_xa, qpn, NULL,
			      XA_LIMIT(URDMA_FIRST_QPN, dev->caps.num_qp - 1), &dev->next_qpn,
			      GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOSPC : err;
	return 0;
}

/* A target QP has no rings: its packets name the SRQs that supply the WQEs. */
static int urdma_create_rings(struct urdma_dev *dev, struct urdma_qp *qp,
			      struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	if (qp->type == URDMA_QPT_XRC_TGT)
		return 0;
	if (qp->kernel)
		return urdma_create_rings_kernel(dev, qp, &attr->cap);
	return urdma_create_rings_user(dev, qp, &attr->cap, udata);
}

/* The words of CREATE_QP after the first; a target QP needs only the domain and the type. */
static void urdma_create_cmd(struct urdma_qp *qp, const struct ib_qp_init_attr *attr, u32 db_page,
			     u64 *cmd)
{
	cmd[1] = FIELD_PREP(URDMA_CMD_QP1_DB_PAGE, db_page) |
		 FIELD_PREP(URDMA_CMD_QP1_TYPE, qp->type);
	if (qp->type == URDMA_QPT_XRC_TGT) {
		cmd[1] |= FIELD_PREP(URDMA_CMD_QP1_PD, to_uxrcd(attr->xrcd)->pdn);
		return;
	}
	cmd[1] |= FIELD_PREP(URDMA_CMD_QP1_PD, to_upd(qp->ibqp.pd)->pdn) |
		  FIELD_PREP(URDMA_CMD_QP1_SEND_CQ, to_ucq(attr->send_cq)->cqn) |
		  (qp->sig_all ? URDMA_CMD_QP1_SIG_ALL : 0) |
		  (qp->kernel ? URDMA_CMD_QP1_PRIV : 0) |
		  (qp->no_loop ? URDMA_CMD_QP1_MCAST_NO_LOOP : 0);
	cmd[3] = FIELD_PREP(URDMA_CMD_QP3_SQ_RING,
			    urdma_ring_word(&qp->sq_mem, qp->sq.log, qp->sq.log_stride));
	cmd[4] = qp->sq_mem.pt.addr;
	if (qp->type == URDMA_QPT_XRC_INI)
		return;
	cmd[2] = FIELD_PREP(URDMA_CMD_QP2_RECV_CQ, to_ucq(attr->recv_cq)->cqn);
	if (attr->srq) {
		cmd[1] |= URDMA_CMD_QP1_SRQ;
		cmd[5] = FIELD_PREP(URDMA_CMD_QP5_SRQN, to_usrq(attr->srq)->srqn);
	} else {
		cmd[5] = FIELD_PREP(URDMA_CMD_QP5_RQ_RING,
				    urdma_ring_word(&qp->rq_mem, qp->rq.log, qp->rq.log_stride));
		cmd[6] = qp->rq_mem.pt.addr;
	}
}

/*
 * The core never passes udata for an XRC target QP, because the QP may have other users than its
 * creator. It gives each user a separate ib_qp and forwards events to all of them.
 */
int urdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibqp->device);
	/* NULL for a QP of the kernel */
	struct urdma_ucontext *uctx =
		rdma_udata_to_drv_context(udata, struct urdma_ucontext, ibucontext);
	u32 db_page = uctx ? uctx->db->page : URDMA_KERNEL_DB_PAGE;
	u64 cmd[URDMA_CMD_WORDS] = {};
	struct urdma_create_qp_resp resp = {};
	struct urdma_qp *qp = to_uqp(ibqp);
	u32 qpn;
	int err;

	err = urdma_qp_type(&dev->caps, attr->qp_type, !udata);
	if (err < 0)
		return err;
	qp->type = err;
	qp->kernel = !udata && qp->type != URDMA_QPT_XRC_TGT;
	/* With an SRQ, the requested receive limits are ignored (volume 1, 11.2.5.1). */
	if (!urdma_qp_has_rq(qp)) {
		spin_lock_init(&qp->rq.lock);
		INIT_LIST_HEAD(&qp->rq.list);
		attr->cap.max_recv_wr = 0;
		attr->cap.max_recv_sge = 0;
	}
	if (qp->type == URDMA_QPT_XRC_TGT)
		attr->cap = (struct ib_qp_cap){};
	err = urdma_qp_check(dev, qp->type, attr);
	if (!err)
		err = urdma_qp_check_refs(qp, attr);
	if (!err)
		err = urdma_create_rings(dev, qp, attr, udata);
	if (err)
		return err;
	mutex_init(&qp->lock);
	qp->state = IB_QPS_RESET;
	qp->cap = attr->cap;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->no_loop = attr->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	INIT_LIST_HEAD(&qp->groups);

	err = urdma_reserve_qpn(dev, attr->qp_type, &qpn);
	if (err)
		goto err_rings;

	cmd[0] = urdma_cmd0(URDMA_CMD_CREATE_QP, qpn);
	urdma_create_cmd(qp, attr, db_page, cmd);
	err = urdma_cmd_exec(dev, cmd, NULL);
	if (err)
		goto err_xa;

	if (udata) {
		resp.qpn = qpn;
		err = urdma_udata_out(udata, &resp, sizeof(resp));
		if (err)
			goto err_destroy;
	}
	ibqp->qp_num = qpn;
	if (qp->kernel)
		urdma_cq_add_qp(qp);
	/* Cannot fail: the slot is reserved. */
	xa_store(&dev->qp_xa, qpn, qp, GFP_KERNEL);
	return 0;

err_destroy:
	urdma_cmd_destroy(dev, URDMA_CMD_DESTROY_QP, qpn);
err_xa:
	xa_erase(&dev->qp_xa, qpn);
err_rings:
	urdma_free_rings(dev, qp);
	return err;
}

int urdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibqp->device);
	struct urdma_qp *qp = to_uqp(ibqp);

	urdma_cmd_destroy(dev, URDMA_CMD_DESTROY_QP, ibqp->qp_num);
	/* Before another QP can get the number. */
	if (qp->kernel)
		urdma_cq_remove_qp(qp);
	xa_erase(&dev->qp_xa, ibqp->qp_num);
	urdma_eq_sync(&dev->eqs[0]);
	flush_work(&dev->notify_work);
	/* The consumer may free its CQs next. */
	if (qp->kernel)
		urdma_cq_quiesce(dev);
	urdma_mcast_forget(qp);
	urdma_free_rings(dev, qp);
	return 0;
}

/* The address vector, words 3 to 7 of MODIFY_QP. The core has resolved the MAC address. */
static u64 urdma_modify_av(struct urdma_qp *qp, const struct rdma_ah_attr *ah, u32 dest_qpn,
			   u64 *cmd)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);
	u16 sport = rdma_get_udp_sport(grh->flow_label, qp->ibqp.qp_num, dest_qpn);

	cmd[3] |= FIELD_PREP(URDMA_CMD_MOD3_SGID_INDEX, grh->sgid_attr->index);
	cmd[4] = FIELD_PREP(URDMA_CMD_MOD4_DMAC, urdma_mac_word(ah->roce.dmac)) |
		 FIELD_PREP(URDMA_CMD_MOD4_TCLASS, grh->traffic_class) |
		 FIELD_PREP(URDMA_CMD_MOD4_HOP_LIMIT, grh->hop_limit);
	cmd[5] = urdma_gid_word(&grh->dgid, 0);
	cmd[6] = urdma_gid_word(&grh->dgid, 1);
	cmd[7] |= FIELD_PREP(URDMA_CMD_MOD7_FLOW_LABEL, grh->flow_label & IB_GRH_FLOWLABEL_MASK) |
		  FIELD_PREP(URDMA_CMD_MOD7_UDP_SPORT, sport) |
		  FIELD_PREP(URDMA_CMD_MOD7_PCP, rdma_ah_get_sl(ah));
	return URDMA_QPM_AV;
}

/*
 * Checks attribute values: -EINVAL for a value that no device has, -EOPNOTSUPP for one that this
 * device does not support. ib_modify_qp_is_ok() checks which attributes a transition allows.
 */
static int urdma_modify_check(struct urdma_dev *dev, const struct ib_qp_attr *attr, int mask)
{
	/* no automatic path migration, no resizing */
	if (mask & (IB_QP_ALT_PATH | IB_QP_CAP))
		return -EOPNOTSUPP;
	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state != IB_MIG_MIGRATED)
		return -EOPNOTSUPP;
	if (mask & IB_QP_PORT && attr->port_num != URDMA_PORT)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_AV &&
	    (attr->ah_attr.type != RDMA_AH_ATTR_TYPE_ROCE ||
	     !(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH) || !attr->ah_attr.grh.sgid_attr ||
	     rdma_ah_get_sl(&attr->ah_attr) > URDMA_MAX_SL))
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > dev->caps.max_mtu))
		return -EINVAL;
	if (mask & IB_QP_DEST_QPN && attr->dest_qp_num >> 24)
		return -EINVAL;
	if (mask & IB_QP_TIMEOUT && attr->timeout > 31)
		return -EINVAL;
	if (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7)
		return -EINVAL;
	if (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7)
		return -EINVAL;
	if (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31)
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > dev->caps.max_rd_atomic)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > dev->caps.max_rd_atomic)
		return -EINVAL;
	return 0;
}

static u64 urdma_qp_access(int access)
{
	u64 acc = (access & IB_ACCESS_REMOTE_WRITE ? URDMA_ACC_REMOTE_WRITE : 0) |
		  (access & IB_ACCESS_REMOTE_READ ? URDMA_ACC_REMOTE_READ : 0) |
		  (access & IB_ACCESS_REMOTE_ATOMIC ? URDMA_ACC_REMOTE_ATOMIC : 0);

	return acc >> 1;
}

/* A numeric attribute of that type, and its field in MODIFY_QP. */
#define URDMA_MOD_FIELD(type_, ib_, bit_, word_, field_, member_)               \
	{                                                                       \
		.ib = (ib_), .bit = (bit_), .field = (field_), .word = (word_), \
		.offset = offsetof(struct ib_qp_attr, member_),                 \
		.size = sizeof(type_),                                          \
	}

static const struct urdma_mod_field {
	u64 field;
	u32 ib;
	u32 bit;
	u16 offset;
	u8 size;
	u8 word;
} urdma_mod_fields[] = {
	URDMA_MOD_FIELD(u32, IB_QP_STATE, URDMA_QPM_STATE, 1, URDMA_CMD_MOD1_STATE, qp_state),
	URDMA_MOD_FIELD(u32, IB_QP_CUR_STATE, URDMA_QPM_CUR_STATE, 1, URDMA_CMD_MOD1_CUR_STATE,
			cur_qp_state),
	URDMA_MOD_FIELD(u32, IB_QP_PATH_MTU, URDMA_QPM_MTU, 1, URDMA_CMD_MOD1_MTU, path_mtu),
	URDMA_MOD_FIELD(u8, IB_QP_TIMEOUT, URDMA_QPM_TIMEOUT, 1, URDMA_CMD_MOD1_TIMEOUT, timeout),
	URDMA_MOD_FIELD(u8, IB_QP_RETRY_CNT, URDMA_QPM_RETRY, 1, URDMA_CMD_MOD1_RETRY, retry_cnt),
	URDMA_MOD_FIELD(u8, IB_QP_RNR_RETRY, URDMA_QPM_RNR_RETRY, 1, URDMA_CMD_MOD1_RNR_RETRY,
			rnr_retry),
	URDMA_MOD_FIELD(u8, IB_QP_MIN_RNR_TIMER, URDMA_QPM_MIN_RNR, 1, URDMA_CMD_MOD1_MIN_RNR,
			min_rnr_timer),
	URDMA_MOD_FIELD(u32, IB_QP_DEST_QPN, URDMA_QPM_DEST_QPN, 2, URDMA_CMD_MOD2_DEST_QPN,
			dest_qp_num),
	URDMA_MOD_FIELD(u32, IB_QP_RQ_PSN, URDMA_QPM_RQ_PSN, 2, URDMA_CMD_MOD2_RQ_PSN, rq_psn),
	URDMA_MOD_FIELD(u8, IB_QP_MAX_QP_RD_ATOMIC, URDMA_QPM_MAX_RD_ATOMIC, 2,
			URDMA_CMD_MOD2_MAX_RD_ATOMIC, max_rd_atomic),
	URDMA_MOD_FIELD(u8, IB_QP_MAX_DEST_RD_ATOMIC, URDMA_QPM_MAX_DEST_RD_ATOMIC, 2,
			URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
	URDMA_MOD_FIELD(u32, IB_QP_SQ_PSN, URDMA_QPM_SQ_PSN, 3, URDMA_CMD_MOD3_SQ_PSN, sq_psn),
	URDMA_MOD_FIELD(u32, IB_QP_QKEY, URDMA_QPM_QKEY, 3, URDMA_CMD_MOD3_QKEY, qkey),
};

static u32 urdma_mod_value(const struct urdma_mod_field *f, const struct ib_qp_attr *attr)
{
	const void *member = (const u8 *)attr + f->offset;

	return f->size == sizeof(u8) ? *(const u8 *)member : *(const u32 *)member;
}

/* The words of MODIFY_QP, from checked attributes. */
static void urdma_modify_cmd(struct urdma_qp *qp, const struct ib_qp_attr *attr, int mask, u64 *cmd)
{
	const struct urdma_mod_field *f;
	u64 m = 0;
	u32 dest;

	for (f = urdma_mod_fields; f < urdma_mod_fields + ARRAY_SIZE(urdma_mod_fields); f++) {
		if (!(mask & f->ib))
			continue;
		m |= f->bit;
		cmd[f->word] |= ((u64)urdma_mod_value(f, attr) << __ffs64(f->field)) & f->field;
	}
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY && attr->en_sqd_async_notify)
		m |= URDMA_QPM_SQD_EVENT;
	if (mask & IB_QP_PKEY_INDEX) {
		m |= URDMA_QPM_PKEY;
		cmd[7] |= FIELD_PREP(URDMA_CMD_MOD7_PKEY, IB_DEFAULT_PKEY_FULL);
	}
	if (mask & IB_QP_ACCESS_FLAGS) {
		m |= URDMA_QPM_ACCESS;
		cmd[7] |= FIELD_PREP(URDMA_CMD_MOD7_ACCESS, urdma_qp_access(attr->qp_access_flags));
		if (attr->qp_access_flags & IB_ACCESS_FLUSH_GLOBAL)
			cmd[7] |= URDMA_CMD_MOD7_FLUSH_GLOBAL;
	}
	if (mask & IB_QP_AV) {
		dest = mask & IB_QP_DEST_QPN ? attr->dest_qp_num : qp->attr.dest_qp_num;
		m |= urdma_modify_av(qp, &attr->ah_attr, dest, cmd);
	}
	/* The longest datagram; in the verbs a UD QP has no MTU attribute. */
	if (qp->type == URDMA_QPT_UD && mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTR) {
		m |= URDMA_QPM_MTU;
		cmd[1] |= FIELD_PREP(URDMA_CMD_MOD1_MTU, urdma_port_mtu(qp->ibqp.device));
	}
	cmd[1] |= FIELD_PREP(URDMA_CMD_MOD1_MASK, m);
}

/*
 * Keep the attributes that query_qp must return and the NIC does not: all but state, PSNs and
 * draining.
 */
static void urdma_modify_remember(struct urdma_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *kept = &qp->attr;
	const struct urdma_mod_field *f;

	if (mask & IB_QP_STATE)
		WRITE_ONCE(qp->state, attr->qp_state);
	if (qp->state == IB_QPS_RESET) {
		WRITE_ONCE(qp->last_wqe, false);
		memset(kept, 0, sizeof(*kept));
		return;
	}
	for (f = urdma_mod_fields; f < urdma_mod_fields + ARRAY_SIZE(urdma_mod_fields); f++)
		if (mask & f->ib)
			memcpy((u8 *)kept + f->offset, (const u8 *)attr + f->offset, f->size);
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		kept->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IB_QP_PORT)
		kept->port_num = attr->port_num;
	if (mask & IB_QP_PKEY_INDEX)
		kept->pkey_index = attr->pkey_index;
	if (mask & IB_QP_ACCESS_FLAGS)
		kept->qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_AV) {
		kept->ah_attr = attr->ah_attr;
		/* a reference we do not hold */
		kept->ah_attr.grh.sgid_attr = NULL;
		rdma_ah_set_port_num(&kept->ah_attr, URDMA_PORT);
	}
}

int urdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct urdma_dev *dev = to_udev(ibqp->device);
	struct urdma_qp *qp = to_uqp(ibqp);
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_MODIFY_QP, ibqp->qp_num) };
	enum ib_qp_state cur, next;
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (!urdma_udata_is_empty(udata))
		return -EINVAL;
	err = urdma_modify_check(dev, attr, mask);
	if (err)
		return err;

	mutex_lock(&qp->lock);
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, ibqp->qp_type, mask)) {
		err = -EINVAL;
		goto out;
	}
	if (cur == IB_QPS_RESET && next == IB_QPS_RESET)
		goto out;

	urdma_modify_cmd(qp, attr, mask, cmd);
	err = urdma_cmd_exec(dev, cmd, NULL);
	/* On a dead device this must not fail: draining a kernel QP must be able to end. */
	if (err && qp->kernel && urdma_is_dead(dev) && (next == IB_QPS_ERR || next == IB_QPS_RESET))
		err = 0;
	if (err)
		goto out;
	urdma_modify_remember(qp, attr, mask);
	if (next == IB_QPS_RESET && qp->kernel) {
		urdma_cq_forget_qp(qp);
		urdma_wq_reset(&qp->sq);
		urdma_wq_reset(&qp->rq);
	}
	if (next == IB_QPS_RESET)
		urdma_mcast_again(qp);
	/* Either this sees the dead device, or the work queued at its death sees the state. */
	smp_mb();
	if (next == IB_QPS_ERR && urdma_is_dead(dev))
		queue_work(dev->wq, &dev->notify_work);
out:
	mutex_unlock(&qp->lock);
	return err;
}

int urdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init)
{
	struct urdma_dev *dev = to_udev(ibqp->device);
	struct urdma_qp *qp = to_uqp(ibqp);
	u64 cmd[URDMA_CMD_WORDS] = { urdma_cmd0(URDMA_CMD_QUERY_QP, ibqp->qp_num) };
	u64 cpl[URDMA_CMD_WORDS];
	int err;

	mutex_lock(&qp->lock);
	err = urdma_cmd_exec(dev, cmd, cpl);
	if (err)
		goto out;

	/* The NIC may have moved the QP to ERR by itself. */
	WRITE_ONCE(qp->state, FIELD_GET(URDMA_CPL_QP1_STATE, cpl[1]));
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->sq_draining = FIELD_GET(URDMA_CPL_QP1_SQ_DRAINING, cpl[1]);
	attr->sq_psn = FIELD_GET(URDMA_CPL_QP2_SQ_PSN, cpl[2]);
	attr->rq_psn = FIELD_GET(URDMA_CPL_QP2_RQ_PSN, cpl[2]);
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->cap = qp->cap;
	attr->ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;

	memset(init, 0, sizeof(*init));
	init->qp_type = ibqp->qp_type;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->cap = qp->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->port_num = qp->attr.port_num;
	if (qp->no_loop)
		init->create_flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
out:
	mutex_unlock(&qp->lock);
	return err;
}

static void urdma_qp_raise(struct urdma_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.event = type,
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
	};

	if (type == IB_EVENT_QP_LAST_WQE_REACHED)
		WRITE_ONCE(qp->last_wqe, true);
	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

/*
 * Raises the event in place of a dead NIC: when the core drains a kernel QP that has an SRQ, it
 * waits for this event. Called from the work that urdma_destroy_qp() flushes.
 */
void urdma_qp_notify_dead(struct urdma_dev *dev)
{
	struct urdma_qp *qp;
	unsigned long qpn;

	xa_for_each(&dev->qp_xa, qpn, qp)
		if (qp->kernel && qp->ibqp.srq && READ_ONCE(qp->state) == IB_QPS_ERR &&
		    !READ_ONCE(qp->last_wqe))
			urdma_qp_raise(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

/* From the interrupt handler of EQ 0. */
void urdma_qp_event(struct urdma_dev *dev, u32 qpn, u8 type)
{
	struct urdma_qp *qp = xa_load(&dev->qp_xa, qpn);

	if (!qp)
		return;
	switch (type) {
	case URDMA_EV_QP_FATAL:
		urdma_qp_raise(qp, IB_EVENT_QP_FATAL);
		break;
	case URDMA_EV_QP_REQ_ERR:
		urdma_qp_raise(qp, IB_EVENT_QP_REQ_ERR);
		break;
	case URDMA_EV_QP_ACCESS_ERR:
		urdma_qp_raise(qp, IB_EVENT_QP_ACCESS_ERR);
		break;
	case URDMA_EV_COMM_EST:
		urdma_qp_raise(qp, IB_EVENT_COMM_EST);
		break;
	case URDMA_EV_LAST_WQE:
		urdma_qp_raise(qp, IB_EVENT_QP_LAST_WQE_REACHED);
		break;
	case URDMA_EV_SQ_DRAINED:
		urdma_qp_raise(qp, IB_EVENT_SQ_DRAINED);
		break;
	}
}
