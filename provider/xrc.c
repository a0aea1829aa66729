// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma provider: XRC domains and target QPs. Initiator QPs are handled like other QPs, in verbs.c.
 *
 * A target QP has no queue, no CQ and no mapping: here it is only a number. It is not in the table
 * of QPs, and polling does not need it, because the CQE names the SRQ.
 */
#include <errno.h>
#include <stdlib.h>

#include "urdma.h"

struct ibv_xrcd *urdma_open_xrcd(struct ibv_context *ibctx, struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp;
	struct ibv_open_xrcd cmd = {};
	struct verbs_xrcd *xrcd;
	int err = EOPNOTSUPP;

	if (!(to_uctx(ibctx)->features & URDMA_RF_FEAT_XRC))
		goto err_errno;
	err = ENOMEM;
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		goto err_errno;
	err = ibv_cmd_open_xrcd(ibctx, xrcd, sizeof(*xrcd), attr, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
	if (err)
		goto err_free;
	return &xrcd->xrcd;

err_free:
	free(xrcd);
err_errno:
	errno = err;
	return NULL;
}

int urdma_close_xrcd(struct ibv_xrcd *ibxrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibxrcd, struct verbs_xrcd, xrcd);
	int err = ibv_cmd_close_xrcd(xrcd);

	if (err)
		return err;
	free(xrcd);
	return 0;
}

static struct urdma_qp *urdma_alloc_target(void)
{
	struct urdma_qp *qp = urdma_zalloc(sizeof(*qp));

	if (!qp)
		return NULL;
	/* These queues refuse all work requests. */
	urdma_wq_init_closed(&qp->sq);
	urdma_wq_init_closed(&qp->rq);
	return qp;
}

static void urdma_free_target(struct urdma_qp *qp)
{
	urdma_wq_uninit(&qp->sq);
	urdma_wq_uninit(&qp->rq);
	free(qp);
}

/* Completes a creation: err is the kernel's result. */
static struct ibv_qp *urdma_target_made(struct urdma_qp *qp, int err)
{
	if (err) {
		urdma_free_target(qp);
		errno = err;
		return NULL;
	}
	qp->qpn = qp->vqp.qp.qp_num;
	return &qp->vqp.qp;
}

/* PD, CQs and SRQ are accepted and ignored: librdmacm passes them for every type. */
struct ibv_qp *urdma_create_target(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_create_qp cmd = {};
	struct urdma_qp *qp;
	int err = EOPNOTSUPP;

	if (!(to_uctx(ibctx)->features & URDMA_RF_FEAT_XRC) ||
	    !check_comp_mask(attr->comp_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD))
		goto err_errno;
	err = EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
		goto err_errno;
	err = ENOMEM;
	qp = urdma_alloc_target();
	if (!qp)
		goto err_errno;
	err = ibv_cmd_create_qp_ex(ibctx, &qp->vqp, attr, &cmd, sizeof(cmd), &resp, sizeof(resp));
	return urdma_target_made(qp, err);

err_errno:
	errno = err;
	return NULL;
}

/* Opens a target QP that another process has created in the same domain. */
struct ibv_qp *urdma_open_qp(struct ibv_context *ibctx, struct ibv_qp_open_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_open_qp cmd = {};
	struct urdma_qp *qp;
	int err = EINVAL;

	if (attr->comp_mask & IBV_QP_OPEN_ATTR_TYPE && attr->qp_type != IBV_QPT_XRC_RECV)
		goto err_errno;
	err = ENOMEM;
	qp = urdma_alloc_target();
	if (!qp)
		goto err_errno;
	err = ibv_cmd_open_qp(ibctx, &qp->vqp, sizeof(qp->vqp), attr, &cmd, sizeof(cmd), &resp,
			      sizeof(resp));
	return urdma_target_made(qp, err);

err_errno:
	errno = err;
	return NULL;
}

int urdma_destroy_target(struct urdma_qp *qp)
{
	int err = ibv_cmd_destroy_qp(&qp->vqp.qp);

	if (err)
		return err;
	urdma_free_target(qp);
	return 0;
}
