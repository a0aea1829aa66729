// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * urdma: driver details for `rdma resource show ... -dd`: how the NIC sees an object's memory, and
 * the indexes of kernel queues. A process keeps the indexes of its queues itself, so they are not
 * shown.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>
#include <uapi/rdma/rdma_netlink.h>

#include "urdma.h"

struct urdma_fact {
	const char *name;
	u32 value;
};

static int urdma_put_facts(struct sk_buff *msg, const struct urdma_fact *fact, size_t num)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	size_t i;

	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < num; i++) {
		if (rdma_nl_put_driver_u32(msg, fact[i].name, fact[i].value)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

/* Follow no pointer of mr->mem: a reregistration may free its target. */
int urdma_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct urdma_mr *mr = to_umr(ibmr);
	const struct urdma_fact facts[] = {
		{ "access", urdma_access(mr->access) },
		{ "page_shift", mr->mem.pt.page_shift },
		{ "levels", mr->mem.pt.levels },
		{ "pages", mr->max_pages ? mr->num_pages : mr->mem.pt.pages },
		{ "dmabuf", mr->dmabuf },
		{ "device_memory", !!ibmr->dm },
	};

	return urdma_put_facts(msg, facts, ARRAY_SIZE(facts));
}

int urdma_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct urdma_cq *cq = to_ucq(ibcq);
	const struct urdma_fact facts[] = {
		{ "cqn", cq->cqn },
		{ "eqn", cq->eq->eqn },
		{ "page_shift", cq->mem.pt.page_shift },
		{ "levels", cq->mem.pt.levels },
		{ "entries", 1U << cq->log },
		/* Only for kernel queues. */
		{ "ci", READ_ONCE(cq->ci) },
		{ "armed", READ_ONCE(cq->armed) },
	};

	return urdma_put_facts(msg, facts, ARRAY_SIZE(facts) - (cq->ring ? 0 : 2));
}

int urdma_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct urdma_srq *srq = to_usrq(ibsrq);
	const struct urdma_fact facts[] = {
		{ "srqn", srq->srqn },
		{ "max_wr", srq->max_wr },
		{ "max_sge", srq->max_sge },
		{ "entries", 1U << srq->wq.log },
		{ "stride", 1U << srq->wq.log_stride },
		/* Only for kernel queues. */
		{ "free", READ_ONCE(srq->num_free) },
	};

	return urdma_put_facts(msg, facts, ARRAY_SIZE(facts) - !srq->kernel);
}

int urdma_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct urdma_qp *qp = to_uqp(ibqp);
	const struct urdma_fact facts[] = {
		{ "max_send_wr", qp->cap.max_send_wr },
		{ "max_recv_wr", qp->cap.max_recv_wr },
		{ "max_send_sge", qp->cap.max_send_sge },
		{ "max_recv_sge", qp->cap.max_recv_sge },
		{ "max_inline", qp->cap.max_inline_data },
		{ "sq_page_shift", qp->sq_mem.pt.page_shift },
		{ "rq_page_shift", qp->rq_mem.pt.page_shift },
		/* Only for kernel queues. */
		{ "sq_pi", READ_ONCE(qp->sq.head) },
		{ "sq_ci", READ_ONCE(qp->sq.tail) },
		{ "rq_pi", READ_ONCE(qp->rq.head) },
		{ "rq_ci", READ_ONCE(qp->rq.tail) },
	};

	return urdma_put_facts(msg, facts, ARRAY_SIZE(facts) - (qp->kernel ? 0 : 4));
}
