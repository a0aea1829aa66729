// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
/*
 * kverbs: a consumer of kernel verbs that tests them. It attaches to two RDMA devices as any
 * ib_client does, makes a pair of RC QPs between them, side A and side B, and runs a list of
 * checks, once for each way of polling: directly, in a work queue of either kind, in softirq. Every
 * check starts with QPs that come from RESET. Each prints a line; the module loads only if none has
 * failed.
 *
 * modprobe kverbs [dev_a=urdma0] [dev_b=urdma1] [only=CHECK]
 * modprobe kverbs dead=1
 *
 * The second form waits, with work posted, until the device of side A has died. The caller has to
 * make it die. dead.c describes the expected behaviour.
 *
 * A check that fails logs the expected value and the actual one. "timed out" means that a
 * completion or an event did not come within 10 s.
 */
#include <linux/delay.h>
#include <linux/dim.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "kverbs.h"

static char *dev_a = "urdma0";
module_param(dev_a, charp, 0444);
MODULE_PARM_DESC(dev_a, "device of side A");
static char *dev_b = "urdma1";
module_param(dev_b, charp, 0444);
MODULE_PARM_DESC(dev_b, "device of side B, may be the same");
static char *only = "";
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "name of the only check to run");
static bool dead;
module_param(dead, bool, 0444);
MODULE_PARM_DESC(dead, "test what happens when the device of side A dies");
static unsigned int passed;
module_param(passed, uint, 0444);
MODULE_PARM_DESC(passed, "number of checks passed (result)");

/* ---- completions ---------------------------------------------------------------------------- */

static void op_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct op *op = container_of(wc->wr_cqe, struct op, cqe);
	struct side *s = cq->cq_context;

	op->wc = *wc;
	op->order = atomic_inc_return(&s->t->order);
	complete(&op->done);
}

struct op *op_get(struct test *t)
{
	struct op *op = &t->ops[t->next_op++ % OPS];

	memset(&op->wc, 0, sizeof(op->wc));
	op->cqe.done = op_done;
	init_completion(&op->done);
	return op;
}

static int op_wait(struct ib_cq *cq, struct op *op)
{
	unsigned long end = jiffies + LIMIT;

	if (cq->poll_ctx != IB_POLL_DIRECT) {
		if (wait_for_completion_timeout(&op->done, LIMIT))
			return 0;
		pr_err("a completion timed out\n");
		return -ETIMEDOUT;
	}
	while (!try_wait_for_completion(&op->done)) {
		if (ib_process_cq_direct(cq, -1) < 0) {
			pr_err("polling failed\n");
			return -EIO;
		}
		if (time_after(jiffies, end)) {
			pr_err("a completion timed out\n");
			return -ETIMEDOUT;
		}
		usleep_range(10, 30);
	}
	return 0;
}

int op_want(struct ib_cq *cq, struct op *op, enum ib_wc_status status)
{
	int err = op_wait(cq, op);

	if (err)
		return err;
	if (op->wc.status != status) {
		pr_err("completed with '%s', vendor %#x, instead of '%s'\n",
		       ib_wc_status_msg(op->wc.status), op->wc.vendor_err,
		       ib_wc_status_msg(status));
		return -EIO;
	}
	return 0;
}

/* ---- events --------------------------------------------------------------------------------- */

void side_event(struct ib_event *event, void *context)
{
	struct side *s = context;

	if ((u32)event->event < EVENTS)
		atomic_inc(&s->events[event->event]);
	wake_up(&s->t->event);
}

int want_event(struct side *s, enum ib_event_type type)
{
	if (wait_event_timeout(s->t->event, atomic_read(&s->events[type]), LIMIT))
		return 0;
	pr_err("side %s: the event '%s' timed out\n", s->name, ib_event_msg(type));
	return -ETIMEDOUT;
}

/* ---- QPs ------------------------------------------------------------------------------------ */

static int to_reset(struct side *s)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	return ib_modify_qp(s->qp, &attr, IB_QP_STATE);
}

static int to_init(struct side *s)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags =
			IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC,
	};

	return ib_modify_qp(s->qp, &attr,
			    IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS);
}

/* Number of connections so far. */
static u32 connections;

/*
 * The PSNs of the second connection, the first with traffic, wrap around soon. Each connection has
 * its own PSNs, far from the others': the wire checker outside distinguishes connections by them.
 */
static u32 first_psn(const struct side *s)
{
	u32 from = s == &s->t->a ? 0xfffff0 : 0xfffffb;

	return (from + (s->t->connection - 2) * 0x5000) & 0xffffff;
}

static int to_rtr(struct side *s)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = s->mtu,
		.dest_qp_num = s->peer->qp->qp_num,
		.rq_psn = first_psn(s->peer),
		.max_dest_rd_atomic = min_t(int, RD_DEPTH, s->dev->attrs.max_qp_rd_atom),
		.min_rnr_timer = 1,
	};

	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_grh(&attr.ah_attr, &s->peer->gid, 0, s->gid_index, 64, 0);
	rdma_ah_set_port_num(&attr.ah_attr, PORT);
	ether_addr_copy(attr.ah_attr.roce.dmac, s->peer->mac);
	return ib_modify_qp(s->qp, &attr,
			    IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
				    IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static int to_rts(struct side *s)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.sq_psn = first_psn(s),
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = min_t(int, RD_DEPTH, s->dev->attrs.max_qp_init_rd_atom),
	};

	return ib_modify_qp(s->qp, &attr,
			    IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				    IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

int connect_sides(struct test *t)
{
	int i;

	t->connection = ++connections;
	TRY(to_reset(&t->a));
	TRY(to_reset(&t->b));
	for (i = 0; i < EVENTS; i++) {
		atomic_set(&t->a.events[i], 0);
		atomic_set(&t->b.events[i], 0);
	}
	TRY(to_init(&t->a));
	TRY(to_init(&t->b));
	TRY(to_rtr(&t->a));
	TRY(to_rtr(&t->b));
	TRY(to_rts(&t->a));
	TRY(to_rts(&t->b));
	return 0;
}

static int want_state(struct side *s, enum ib_qp_state state)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	unsigned long end = jiffies + LIMIT;

	/* The NIC changes states itself, which may take a moment. */
	for (;;) {
		TRY(ib_query_qp(s->qp, &attr, IB_QP_STATE, &init));
		if (attr.qp_state == state)
			return 0;
		if (time_after(jiffies, end))
			break;
		usleep_range(1000, 2000);
	}
	pr_err("side %s: the QP is in state %d instead of %d\n", s->name, attr.qp_state, state);
	return -EIO;
}

/* ---- work requests -------------------------------------------------------------------------- */

static u8 pattern(u32 seed, u32 i)
{
	return seed * 29 + i * 7 + (i >> 8);
}

static void fill(u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = pattern(seed, i);
}

static int want_data(const u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++) {
		if (p[i] != pattern(seed, i)) {
			pr_err("byte %u of %u is %#x instead of %#x\n", i, len, p[i],
			       pattern(seed, i));
			return -EIO;
		}
	}
	return 0;
}

struct ib_sge sge_of(struct side *s, u32 offset, u32 len)
{
	return (struct ib_sge){ .addr = s->dma + offset,
				.length = len,
				.lkey = s->pd->local_dma_lkey };
}

int post_recv(struct side *s, u32 offset, u32 len, struct op **opp)
{
	struct op *op = op_get(s->t);
	struct ib_sge sge = sge_of(s, offset, len);
	struct ib_recv_wr wr = { .wr_cqe = &op->cqe, .sg_list = &sge, .num_sge = 1 };

	*opp = op;
	return ib_post_recv(s->qp, &wr, NULL);
}

/* Posts one signaled request, and waits for its completion with that status. */
int send_wait(struct side *s, struct ib_send_wr *wr, enum ib_wc_status status)
{
	struct op *op = op_get(s->t);
	int err;

	wr->wr_cqe = &op->cqe;
	wr->send_flags |= IB_SEND_SIGNALED;
	err = ib_post_send(s->qp, wr, NULL);
	if (err) {
		pr_err("posting opcode %d: %d\n", wr->opcode, err);
		return err;
	}
	return op_want(s->scq, op, status);
}

static int rdma_wait(struct side *s, enum ib_wr_opcode opcode, u32 offset, u32 len, u64 raddr,
		     u32 rkey, enum ib_wc_status status)
{
	struct ib_sge sge = sge_of(s, offset, len);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = raddr,
		.rkey = rkey,
	};

	return send_wait(s, &wr.wr, status);
}

static int inv_wait(struct side *s, u32 key, enum ib_wc_status status)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = key };

	return send_wait(s, &wr, status);
}

static int reg_wait(struct region *r, int access, enum ib_wc_status status)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR }, .mr = r->mr, .key = r->mr->rkey, .access = access
	};

	return send_wait(r->side, &wr.wr, status);
}

/* ---- regions -------------------------------------------------------------------------------- */

#define REMOTE_ALL                                                                \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
	 IB_ACCESS_REMOTE_ATOMIC)

static void region_free(struct region *r)
{
	int i;

	if (!IS_ERR_OR_NULL(r->mr))
		ib_dereg_mr(r->mr);
	if (r->side)
		ib_dma_unmap_sg(r->side->dev, r->sg, PAGES, DMA_BIDIRECTIONAL);
	for (i = 0; i < PAGES; i++)
		if (r->page[i])
			__free_page(r->page[i]);
	memset(r, 0, sizeof(*r));
}

static int region_make(struct region *r, struct side *s)
{
	int i, n;

	memset(r, 0, sizeof(*r));
	sg_init_table(r->sg, PAGES);
	for (i = 0; i < PAGES; i++) {
		/* from last to first, so that they are hardly ever contiguous */
		r->page[PAGES - 1 - i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!r->page[PAGES - 1 - i])
			return -ENOMEM;
	}
	for (i = 0; i < PAGES; i++)
		sg_set_page(&r->sg[i], r->page[i], PAGE_SIZE - (i ? 0 : REGION_OFFSET),
			    i ? 0 : REGION_OFFSET);
	n = ib_dma_map_sg(s->dev, r->sg, PAGES, DMA_BIDIRECTIONAL);
	if (n != PAGES)
		return -ENOMEM;
	r->side = s;
	r->mr = ib_alloc_mr(s->pd, IB_MR_TYPE_MEM_REG, PAGES);
	if (IS_ERR(r->mr))
		return PTR_ERR(r->mr);
	n = ib_map_mr_sg(r->mr, r->sg, PAGES, NULL, PAGE_SIZE);
	WANT(n == PAGES);
	WANT(r->mr->length == REGION_SIZE);
	return 0;
}

/* Copies the region's bytes to the CPU, and back. */
static u8 *region_byte(struct region *r, u32 i)
{
	i += REGION_OFFSET;
	return (u8 *)page_address(r->page[i / PAGE_SIZE]) + i % PAGE_SIZE;
}

static void region_sync(struct region *r, bool for_cpu)
{
	int i;

	for (i = 0; i < PAGES; i++) {
		if (for_cpu)
			ib_dma_sync_single_for_cpu(r->side->dev, sg_dma_address(&r->sg[i]),
						   sg_dma_len(&r->sg[i]), DMA_BIDIRECTIONAL);
		else
			ib_dma_sync_single_for_device(r->side->dev, sg_dma_address(&r->sg[i]),
						      sg_dma_len(&r->sg[i]), DMA_BIDIRECTIONAL);
	}
}

static void region_fill(struct region *r, u32 at, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		*region_byte(r, at + i) = pattern(seed, i);
	region_sync(r, false);
}

static int region_want(struct region *r, u32 at, u32 len, u32 seed)
{
	u32 i;

	region_sync(r, true);
	for (i = 0; i < len; i++) {
		if (*region_byte(r, at + i) != pattern(seed, i)) {
			pr_err("byte %u of the region, %u of %u, is %#x instead of %#x\n", at + i,
			       i, len, *region_byte(r, at + i), pattern(seed, i));
			return -EIO;
		}
	}
	return 0;
}

/* ---- checks --------------------------------------------------------------------------------- */

static int check_attributes(struct test *t)
{
	struct ib_device_attr *attr = &t->a.dev->attrs;

	WANT(attr->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS);
	WANT(attr->device_cap_flags & IB_DEVICE_MEM_WINDOW_TYPE_2B);
	WANT(attr->max_fast_reg_page_list_len >= 256);
	WANT(attr->atomic_cap == IB_ATOMIC_HCA);
	WANT(attr->max_qp_rd_atom && attr->max_qp_init_rd_atom);
	WANT(attr->max_ah > 1000);
	WANT(rdma_protocol_roce_udp_encap(t->a.dev, PORT));
	return 0;
}

static int check_send(struct test *t)
{
	u32 mtu = ib_mtu_enum_to_int(t->a.mtu);
	u32 size[] = { 0, 1, 64, mtu - 1, mtu, mtu + 1, 3 * mtu + 5, BUF_SIZE / 2 };
	struct op *recv;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(size); i++) {
		/* from the upper half, in two pieces */
		struct ib_sge sge[2] = {
			sge_of(&t->a, BUF_SIZE / 2, size[i] / 3),
			sge_of(&t->a, BUF_SIZE / 2 + size[i] / 3, size[i] - size[i] / 3),
		};
		struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = sge, .num_sge = 2 };

		fill(t->a.buf + BUF_SIZE / 2, size[i], i);
		memset(t->b.buf, 0, BUF_SIZE);
		TRY(post_recv(&t->b, 3, BUF_SIZE - 3, &recv));
		TRY(send_wait(&t->a, &wr, IB_WC_SUCCESS));
		TRY(op_want(t->b.rcq, recv, IB_WC_SUCCESS));
		WANT(recv->wc.opcode == IB_WC_RECV);
		WANT(recv->wc.byte_len == size[i]);
		WANT(recv->wc.qp == t->b.qp);
		WANT(!recv->wc.wc_flags);
		TRY(want_data(t->b.buf + 3, size[i], i));
		WANT(!t->b.buf[3 + size[i]]);
	}
	return 0;
}

static int check_send_inline(struct test *t)
{
	struct ib_sge sge = { .length = INLINE };
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IB_SEND_INLINE,
	};
	u8 data[INLINE];
	struct op *recv;

	fill(data, sizeof(data), 77);
	sge.addr = (uintptr_t)data;
	TRY(post_recv(&t->b, 0, BUF_SIZE, &recv));
	TRY(send_wait(&t->a, &wr, IB_WC_SUCCESS));
	TRY(op_want(t->b.rcq, recv, IB_WC_SUCCESS));
	WANT(recv->wc.byte_len == INLINE);
	return want_data(t->b.buf, INLINE, 77);
}

static int check_send_imm(struct test *t)
{
	struct ib_sge sge = sge_of(&t->b, 0, 100);
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND_WITH_IMM,
		.ex.imm_data = cpu_to_be32(0x12345678),
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IB_SEND_SOLICITED,
	};
	struct op *recv;

	/* from B to A, this time */
	fill(t->b.buf, 100, 5);
	TRY(post_recv(&t->a, 0, 100, &recv));
	TRY(send_wait(&t->b, &wr, IB_WC_SUCCESS));
	TRY(op_want(t->a.rcq, recv, IB_WC_SUCCESS));
	WANT(recv->wc.wc_flags == IB_WC_WITH_IMM);
	WANT(recv->wc.ex.imm_data == cpu_to_be32(0x12345678));
	return want_data(t->a.buf, 100, 5);
}

/* A list of requests in one post; only the last one is signaled, and the ring wraps. */
static int check_unsignaled(struct test *t)
{
	struct ib_send_wr wr[16] = {};
	struct op *recv[16], *op;
	struct ib_sge sge[16];
	int round, i;

	for (round = 0; round < 12; round++) {
		for (i = 0; i < 16; i++) {
			TRY(post_recv(&t->b, i * 64, 64, &recv[i]));
			fill(t->a.buf + i * 64, 64, round * 16 + i);
			sge[i] = sge_of(&t->a, i * 64, 64);
			wr[i].opcode = IB_WR_SEND;
			wr[i].sg_list = &sge[i];
			wr[i].num_sge = 1;
			wr[i].next = i < 15 ? &wr[i + 1] : NULL;
			wr[i].wr_cqe = NULL;
		}
		op = op_get(t);
		wr[15].wr_cqe = &op->cqe;
		wr[15].send_flags = IB_SEND_SIGNALED;
		TRY(ib_post_send(t->a.qp, wr, NULL));
		TRY(op_want(t->a.scq, op, IB_WC_SUCCESS));
		for (i = 0; i < 16; i++) {
			TRY(op_want(t->b.rcq, recv[i], IB_WC_SUCCESS));
			WANT(!i || recv[i]->order > recv[i - 1]->order);
			TRY(want_data(t->b.buf + i * 64, 64, round * 16 + i));
		}
	}
	return 0;
}

static int do_write_read(struct test *t, struct region *r)
{
	u32 mtu = ib_mtu_enum_to_int(t->a.mtu);
	u32 size[] = { 0, 1, 8, mtu, mtu + 1, 12345, REGION_SIZE };
	u64 base;
	u32 i, at;

	TRY(region_make(r, &t->b));
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
	base = r->mr->iova;
	for (i = 0; i < ARRAY_SIZE(size); i++) {
		at = (REGION_SIZE - size[i]) / 3;
		fill(t->a.buf, size[i], i);
		TRY(rdma_wait(&t->a, IB_WR_RDMA_WRITE, 0, size[i], base + at, r->mr->rkey,
			      IB_WC_SUCCESS));
		TRY(region_want(r, at, size[i], i));
		region_fill(r, at, size[i], i + 100);
		memset(t->a.buf, 0, BUF_SIZE);
		TRY(rdma_wait(&t->a, IB_WR_RDMA_READ, 16, size[i], base + at, r->mr->rkey,
			      IB_WC_SUCCESS));
		TRY(want_data(t->a.buf + 16, size[i], i + 100));
		WANT(!t->a.buf[15] && !t->a.buf[16 + size[i]]);
	}
	return 0;
}

static int do_write_imm(struct test *t, struct region *r)
{
	struct ib_sge sge = sge_of(&t->a, 0, 9000);
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode = IB_WR_RDMA_WRITE_WITH_IMM,
			.ex.imm_data = cpu_to_be32(0xfedcba98),
			.sg_list = &sge,
			.num_sge = 1,
		},
	};
	struct op *recv;

	TRY(region_make(r, &t->b));
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
	wr.remote_addr = r->mr->iova + 100;
	wr.rkey = r->mr->rkey;
	fill(t->a.buf, 9000, 11);
	TRY(post_recv(&t->b, 0, 16, &recv));
	TRY(send_wait(&t->a, &wr.wr, IB_WC_SUCCESS));
	TRY(op_want(t->b.rcq, recv, IB_WC_SUCCESS));
	WANT(recv->wc.opcode == IB_WC_RECV_RDMA_WITH_IMM);
	WANT(recv->wc.wc_flags == IB_WC_WITH_IMM);
	WANT(recv->wc.ex.imm_data == cpu_to_be32(0xfedcba98));
	WANT(recv->wc.byte_len == 9000);
	return region_want(r, 100, 9000, 11);
}

static int atomic_wait(struct test *t, struct region *r, enum ib_wr_opcode opcode, u64 compare_add,
		       u64 swap, u64 before, u64 after)
{
	struct ib_sge sge = sge_of(&t->a, 24, 8);
	struct ib_atomic_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = r->mr->iova + 4096,
		.rkey = r->mr->rkey,
		.compare_add = compare_add,
		.swap = swap,
	};

	memset(t->a.buf, 0xee, 64);
	TRY(send_wait(&t->a, &wr.wr, IB_WC_SUCCESS));
	WANT(*(u64 *)(t->a.buf + 24) == before);
	WANT(t->a.buf[23] == 0xee && t->a.buf[32] == 0xee);
	region_sync(r, true);
	WANT(*(u64 *)region_byte(r, 4096) == after);
	return 0;
}

static int do_atomic(struct test *t, struct region *r)
{
	const u64 x = 0x1122334455667788ULL, y = 0x99aabbccddeeff01ULL;

	TRY(region_make(r, &t->b));
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
	*(u64 *)region_byte(r, 4096) = x;
	region_sync(r, false);
	TRY(atomic_wait(t, r, IB_WR_ATOMIC_FETCH_AND_ADD, 0x1000000001ULL, 0, x,
			x + 0x1000000001ULL));
	TRY(atomic_wait(t, r, IB_WR_ATOMIC_FETCH_AND_ADD, -1ULL, 0, x + 0x1000000001ULL,
			x + 0x1000000000ULL));
	TRY(atomic_wait(t, r, IB_WR_ATOMIC_CMP_AND_SWP, x, y, x + 0x1000000000ULL,
			x + 0x1000000000ULL));
	TRY(atomic_wait(t, r, IB_WR_ATOMIC_CMP_AND_SWP, x + 0x1000000000ULL, y, x + 0x1000000000ULL,
			y));
	return 0;
}

/* The results on both sides when the responder refuses a key, a right, a range. */
static int want_refused(struct test *t, enum ib_wr_opcode opcode, u64 raddr, u32 len, u32 rkey)
{
	TRY(rdma_wait(&t->a, opcode, 0, len, raddr, rkey, IB_WC_REM_ACCESS_ERR));
	TRY(want_state(&t->a, IB_QPS_ERR));
	TRY(want_state(&t->b, IB_QPS_ERR));
	return want_event(&t->b, IB_EVENT_QP_ACCESS_ERR);
}

static int do_send_inv(struct test *t, struct region *r)
{
	struct ib_sge sge = sge_of(&t->a, 0, 300);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .sg_list = &sge, .num_sge = 1 };
	struct op *recv;

	TRY(region_make(r, &t->b));
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
	TRY(rdma_wait(&t->a, IB_WR_RDMA_WRITE, 0, 100, r->mr->iova, r->mr->rkey, IB_WC_SUCCESS));
	wr.ex.invalidate_rkey = r->mr->rkey;
	fill(t->a.buf, 300, 21);
	TRY(post_recv(&t->b, 0, 300, &recv));
	TRY(send_wait(&t->a, &wr, IB_WC_SUCCESS));
	TRY(op_want(t->b.rcq, recv, IB_WC_SUCCESS));
	WANT(recv->wc.opcode == IB_WC_RECV);
	WANT(recv->wc.wc_flags == IB_WC_WITH_INVALIDATE);
	WANT(recv->wc.ex.invalidate_rkey == r->mr->rkey);
	TRY(want_data(t->b.buf, 300, 21));
	return want_refused(t, IB_WR_RDMA_WRITE, r->mr->iova, 8, r->mr->rkey);
}

static int do_local_inv(struct test *t, struct region *r)
{
	u32 old;

	TRY(region_make(r, &t->b));
	/* before it is registered, the key is not valid */
	TRY(want_refused(t, IB_WR_RDMA_READ, r->mr->iova, 8, r->mr->rkey));
	TRY(connect_sides(t));
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
	TRY(rdma_wait(&t->a, IB_WR_RDMA_READ, 0, 100, r->mr->iova, r->mr->rkey, IB_WC_SUCCESS));
	TRY(inv_wait(&t->b, r->mr->rkey, IB_WC_SUCCESS));
	TRY(want_refused(t, IB_WR_RDMA_READ, r->mr->iova, 8, r->mr->rkey));

	/* Re-registered under another key: the new key is valid, the old one is not. */
	TRY(connect_sides(t));
	old = r->mr->rkey;
	ib_update_fast_reg_key(r->mr, ib_inc_rkey(old));
	WANT(r->mr->rkey != old);
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
	region_fill(r, 0, 100, 3);
	TRY(rdma_wait(&t->a, IB_WR_RDMA_READ, 0, 100, r->mr->iova, r->mr->rkey, IB_WC_SUCCESS));
	TRY(want_data(t->a.buf, 100, 3));
	return want_refused(t, IB_WR_RDMA_WRITE, r->mr->iova, 8, old);
}

/* Other memory under the same region: the NIC may not use the old pages. */
static int do_remap(struct test *t, struct region *r)
{
	struct scatterlist sg[2];
	int i, n;

	TRY(region_make(r, &t->b));
	for (i = 0; i < 20; i++) {
		sg_init_table(sg, 2);
		sg_set_page(&sg[0], r->page[1 + i % 3], PAGE_SIZE, 0);
		sg_set_page(&sg[1], r->page[4 + i % 4], PAGE_SIZE, 0);
		sg_dma_address(&sg[0]) = sg_dma_address(&r->sg[1 + i % 3]);
		sg_dma_address(&sg[1]) = sg_dma_address(&r->sg[4 + i % 4]);
		sg_dma_len(&sg[0]) = PAGE_SIZE;
		sg_dma_len(&sg[1]) = PAGE_SIZE;
		n = ib_map_mr_sg(r->mr, sg, 2, NULL, PAGE_SIZE);
		WANT(n == 2);
		ib_update_fast_reg_key(r->mr, ib_inc_rkey(r->mr->rkey));
		TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
		fill(t->a.buf, 2 * PAGE_SIZE, i);
		TRY(rdma_wait(&t->a, IB_WR_RDMA_WRITE, 0, 2 * PAGE_SIZE, r->mr->iova, r->mr->rkey,
			      IB_WC_SUCCESS));
		region_sync(r, true);
		memcpy(t->b.buf, page_address(r->page[1 + i % 3]), PAGE_SIZE);
		memcpy(t->b.buf + PAGE_SIZE, page_address(r->page[4 + i % 4]), PAGE_SIZE);
		TRY(want_data(t->b.buf, 2 * PAGE_SIZE, i));
		TRY(inv_wait(&t->b, r->mr->rkey, IB_WC_SUCCESS));
	}
	return 0;
}

static int do_rights(struct test *t, struct region *r)
{
	TRY(region_make(r, &t->b));
	TRY(reg_wait(r, IB_ACCESS_REMOTE_READ, IB_WC_SUCCESS));
	region_fill(r, 0, 64, 9);
	TRY(rdma_wait(&t->a, IB_WR_RDMA_READ, 0, 64, r->mr->iova, r->mr->rkey, IB_WC_SUCCESS));
	TRY(want_refused(t, IB_WR_RDMA_WRITE, r->mr->iova, 64, r->mr->rkey));
	TRY(region_want(r, 0, 64, 9));

	/* One byte too many, at either end. */
	TRY(connect_sides(t));
	TRY(want_refused(t, IB_WR_RDMA_READ, r->mr->iova + REGION_SIZE - 63, 64, r->mr->rkey));
	TRY(connect_sides(t));
	return want_refused(t, IB_WR_RDMA_READ, r->mr->iova - 1, 64, r->mr->rkey);
}

/* The same memory by offsets instead of its addresses. A right that does not exist is refused. */
static int do_zero_based(struct test *t, struct region *r)
{
	struct ib_reg_wr wr = { .wr = { .opcode = IB_WR_REG_MR } };

	TRY(region_make(r, &t->b));
	TRY(reg_wait(r, REMOTE_ALL | IB_ZERO_BASED, IB_WC_SUCCESS));
	fill(t->a.buf, REGION_SIZE, 31);
	TRY(rdma_wait(&t->a, IB_WR_RDMA_WRITE, 0, REGION_SIZE, 0, r->mr->rkey, IB_WC_SUCCESS));
	TRY(region_want(r, 0, REGION_SIZE, 31));
	region_fill(r, 5000, 3000, 32);
	TRY(rdma_wait(&t->a, IB_WR_RDMA_READ, 0, 3000, 5000, r->mr->rkey, IB_WC_SUCCESS));
	TRY(want_data(t->a.buf, 3000, 32));
	TRY(want_refused(t, IB_WR_RDMA_READ, r->mr->iova, 8, r->mr->rkey));
	TRY(connect_sides(t));
	TRY(want_refused(t, IB_WR_RDMA_WRITE, REGION_SIZE - 63, 64, r->mr->rkey));
	TRY(connect_sides(t));
	TRY(inv_wait(&t->b, r->mr->rkey, IB_WC_SUCCESS));
	wr.mr = r->mr;
	wr.key = r->mr->rkey;
	wr.access = REMOTE_ALL | IB_ACCESS_ON_DEMAND;
	WANT(ib_post_send(t->b.qp, &wr.wr, NULL) == -EOPNOTSUPP);
	return 0;
}

/* Requests that a registration refuses. */
static int do_bad_reg(struct test *t, struct region *r)
{
	TRY(region_make(r, &t->b));
	/* invalid already */
	TRY(inv_wait(&t->b, r->mr->rkey, IB_WC_MW_BIND_ERR));
	TRY(want_state(&t->b, IB_QPS_ERR));
	TRY(connect_sides(t));
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
	/* valid already */
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_MW_BIND_ERR));
	TRY(want_state(&t->b, IB_QPS_ERR));
	/* the region is unchanged */
	TRY(connect_sides(t));
	region_fill(r, 0, 64, 13);
	TRY(rdma_wait(&t->a, IB_WR_RDMA_READ, 0, 64, r->mr->iova, r->mr->rkey, IB_WC_SUCCESS));
	return want_data(t->a.buf, 64, 13);
}

/*
 * As storage does for each request: memory is registered, filled by READs, and invalidated after a
 * fence, all in one list.
 */
static int do_chain(struct test *t, struct region *r)
{
	struct ib_reg_wr reg = {};
	struct ib_rdma_wr read[4] = {};
	struct ib_send_wr inv = {};
	struct ib_sge sge[4];
	struct op *op[6];
	int i, round;

	TRY(region_make(r, &t->a));
	for (round = 0; round < 8; round++) {
		struct region remote;
		int err;

		err = region_make(&remote, &t->b);
		if (!err)
			err = reg_wait(&remote, REMOTE_ALL, IB_WC_SUCCESS);
		if (err)
			goto next;
		region_fill(&remote, 0, 16384, round);
		for (i = 0; i < 6; i++)
			op[i] = op_get(t);
		ib_update_fast_reg_key(r->mr, ib_inc_rkey(r->mr->rkey));
		reg.wr.opcode = IB_WR_REG_MR;
		reg.wr.wr_cqe = &op[0]->cqe;
		reg.wr.send_flags = IB_SEND_SIGNALED;
		reg.wr.next = &read[0].wr;
		reg.mr = r->mr;
		reg.key = r->mr->rkey;
		reg.access = IB_ACCESS_LOCAL_WRITE;
		for (i = 0; i < 4; i++) {
			sge[i] = (struct ib_sge){ .addr = r->mr->iova + i * 4096,
						  .length = 4096,
						  .lkey = r->mr->lkey };
			read[i].wr.opcode = IB_WR_RDMA_READ;
			read[i].wr.wr_cqe = &op[1 + i]->cqe;
			read[i].wr.send_flags = IB_SEND_SIGNALED;
			read[i].wr.sg_list = &sge[i];
			read[i].wr.num_sge = 1;
			read[i].wr.next = i < 3 ? &read[i + 1].wr : &inv;
			read[i].remote_addr = remote.mr->iova + i * 4096;
			read[i].rkey = remote.mr->rkey;
		}
		inv.opcode = IB_WR_LOCAL_INV;
		inv.wr_cqe = &op[5]->cqe;
		inv.send_flags = IB_SEND_SIGNALED | IB_SEND_FENCE;
		inv.ex.invalidate_rkey = r->mr->rkey;
		err = ib_post_send(t->a.qp, &reg.wr, NULL);
		for (i = 0; i < 6 && !err; i++) {
			err = op_want(t->a.scq, op[i], IB_WC_SUCCESS);
			if (!err && i && op[i]->order < op[i - 1]->order) {
				pr_err("completions %d and %d are out of order\n", i - 1, i);
				err = -EIO;
			}
		}
		if (!err)
			err = region_want(r, 0, 16384, round);
next:
		region_free(&remote);
		if (err)
			return err;
	}
	return 0;
}

/* As many READs as the QP may have outstanding, and more. */
static int do_reads(struct test *t, struct region *r)
{
	/* too much for the stack; one check runs at a time */
	static struct ib_rdma_wr wr[32];
	struct ib_sge sge[32];
	struct op *op[32];
	int i;

	memset(wr, 0, sizeof(wr));
	TRY(region_make(r, &t->b));
	TRY(reg_wait(r, REMOTE_ALL, IB_WC_SUCCESS));
	region_fill(r, 0, 32 * 512, 40);
	memset(t->a.buf, 0, BUF_SIZE);
	for (i = 0; i < 32; i++) {
		op[i] = op_get(t);
		sge[i] = sge_of(&t->a, i * 512, 512);
		wr[i].wr.opcode = IB_WR_RDMA_READ;
		wr[i].wr.wr_cqe = &op[i]->cqe;
		wr[i].wr.send_flags = IB_SEND_SIGNALED;
		wr[i].wr.sg_list = &sge[i];
		wr[i].wr.num_sge = 1;
		wr[i].wr.next = i < 31 ? &wr[i + 1].wr : NULL;
		wr[i].remote_addr = r->mr->iova + i * 512;
		wr[i].rkey = r->mr->rkey;
	}
	TRY(ib_post_send(t->a.qp, &wr[0].wr, NULL));
	for (i = 0; i < 32; i++)
		TRY(op_want(t->a.scq, op[i], IB_WC_SUCCESS));
	return want_data(t->a.buf, 32 * 512, 40);
}

/* All requests, posted before or after the error, complete as flushed, in order. */
static int check_drain(struct test *t)
{
	struct ib_sge sge = sge_of(&t->a, 0, 64);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	struct op *recv[10], *send[4];
	int i;

	for (i = 0; i < 8; i++)
		TRY(post_recv(&t->a, i * 64, 64, &recv[i]));
	/* B has no receives, so these requests wait */
	for (i = 0; i < 4; i++) {
		send[i] = op_get(t);
		wr.wr_cqe = &send[i]->cqe;
		/* signaled or not: with errors every request has a completion */
		wr.send_flags = i & 1 ? 0 : IB_SEND_SIGNALED;
		TRY(ib_post_send(t->a.qp, &wr, NULL));
	}
	ib_drain_qp(t->a.qp);
	for (i = 0; i < 8; i++) {
		WANT(try_wait_for_completion(&recv[i]->done));
		WANT(recv[i]->wc.status == IB_WC_WR_FLUSH_ERR);
		WANT(!i || recv[i]->order > recv[i - 1]->order);
	}
	for (i = 0; i < 4; i++) {
		WANT(try_wait_for_completion(&send[i]->done));
		WANT(send[i]->wc.status == IB_WC_WR_FLUSH_ERR);
		WANT(!i || send[i]->order > send[i - 1]->order);
	}
	/* Posting still works. */
	TRY(post_recv(&t->a, 0, 64, &recv[8]));
	TRY(post_recv(&t->a, 0, 64, &recv[9]));
	wr.send_flags = 0;
	TRY(send_wait(&t->a, &wr, IB_WC_WR_FLUSH_ERR));
	TRY(op_want(t->a.rcq, recv[8], IB_WC_WR_FLUSH_ERR));
	TRY(op_want(t->a.rcq, recv[9], IB_WC_WR_FLUSH_ERR));
	TRY(want_state(&t->a, IB_QPS_ERR));
	/* and again from ERR, with nothing posted */
	ib_drain_qp(t->a.qp);
	return 0;
}

static int check_query(struct test *t)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	struct side *s = &t->a;

	TRY(ib_query_qp(s->qp, &attr, IB_QP_STATE, &init));
	WANT(attr.qp_state == IB_QPS_RTS);
	WANT(attr.path_mtu == s->mtu);
	WANT(attr.path_mig_state == IB_MIG_MIGRATED);
	WANT(attr.rq_psn == first_psn(s->peer));
	WANT(attr.sq_psn == first_psn(s));
	WANT(attr.dest_qp_num == s->peer->qp->qp_num);
	WANT(attr.qp_access_flags ==
	     (IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC));
	WANT(attr.cap.max_send_wr >= DEPTH && attr.cap.max_recv_wr >= DEPTH);
	WANT(attr.cap.max_send_sge >= 4 && attr.cap.max_recv_sge >= 4);
	WANT(attr.cap.max_inline_data >= INLINE);
	WANT(rdma_ah_read_grh(&attr.ah_attr)->sgid_index == s->gid_index);
	WANT(!memcmp(&rdma_ah_read_grh(&attr.ah_attr)->dgid, &s->peer->gid, 16));
	WANT(rdma_ah_read_grh(&attr.ah_attr)->hop_limit == 64);
	WANT(ether_addr_equal(attr.ah_attr.roce.dmac, s->peer->mac));
	WANT(attr.max_rd_atomic == min_t(int, RD_DEPTH, s->dev->attrs.max_qp_init_rd_atom));
	WANT(attr.max_dest_rd_atomic == min_t(int, RD_DEPTH, s->dev->attrs.max_qp_rd_atom));
	WANT(attr.min_rnr_timer == 1 && attr.timeout == 17);
	WANT(attr.retry_cnt == 7 && attr.rnr_retry == 7);
	WANT(attr.port_num == PORT && !attr.pkey_index);
	WANT(!attr.sq_draining && !attr.en_sqd_async_notify);
	WANT(init.send_cq == s->scq && init.recv_cq == s->rcq && init.qp_type == IB_QPT_RC);

	/* one more, within RTS, and one that has to be refused */
	attr.min_rnr_timer = 7;
	attr.qp_access_flags = 0;
	TRY(ib_modify_qp(s->qp, &attr, IB_QP_MIN_RNR_TIMER | IB_QP_ACCESS_FLAGS));
	attr.min_rnr_timer = 32;
	WANT(ib_modify_qp(s->qp, &attr, IB_QP_MIN_RNR_TIMER) == -EINVAL);
	TRY(ib_query_qp(s->qp, &attr, IB_QP_STATE, &init));
	WANT(attr.min_rnr_timer == 7 && !attr.qp_access_flags);
	attr.qp_state = IB_QPS_INIT;
	WANT(ib_modify_qp(s->qp, &attr,
			  IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS) ==
	     -EINVAL);
	return want_state(s, IB_QPS_RTS);
}

static int check_sqd(struct test *t)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ib_sge sge = sge_of(&t->a, 0, 64);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	struct ib_qp_init_attr init;
	struct op *recv[2], *op;

	TRY(post_recv(&t->b, 0, 64, &recv[0]));
	TRY(send_wait(&t->a, &wr, IB_WC_SUCCESS));
	TRY(ib_modify_qp(t->a.qp, &attr, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY));
	TRY(want_event(&t->a, IB_EVENT_SQ_DRAINED));
	TRY(ib_query_qp(t->a.qp, &attr, IB_QP_STATE, &init));
	WANT(attr.qp_state == IB_QPS_SQD && !attr.sq_draining && attr.en_sqd_async_notify);

	/* Requests that are posted now wait. */
	TRY(post_recv(&t->b, 0, 64, &recv[1]));
	op = op_get(t);
	wr.wr_cqe = &op->cqe;
	TRY(ib_post_send(t->a.qp, &wr, NULL));
	attr.timeout = 16;
	TRY(ib_modify_qp(t->a.qp, &attr, IB_QP_TIMEOUT));
	msleep(50);
	if (t->ctx == IB_POLL_DIRECT)
		ib_process_cq_direct(t->a.scq, -1);
	WANT(!try_wait_for_completion(&op->done));
	attr.qp_state = IB_QPS_RTS;
	attr.cur_qp_state = IB_QPS_SQD;
	TRY(ib_modify_qp(t->a.qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE));
	TRY(op_want(t->a.scq, op, IB_WC_SUCCESS));
	TRY(op_want(t->b.rcq, recv[1], IB_WC_SUCCESS));
	return want_state(&t->a, IB_QPS_RTS);
}

/* The first packet that arrives while the QP is in RTR raises this event. */
static int check_comm_est(struct test *t)
{
	struct ib_sge sge = sge_of(&t->a, 0, 64);
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	struct op *recv;

	TRY(to_reset(&t->b));
	TRY(to_init(&t->b));
	TRY(post_recv(&t->b, 0, 64, &recv));
	TRY(to_rtr(&t->b));
	TRY(send_wait(&t->a, &wr, IB_WC_SUCCESS));
	TRY(want_event(&t->b, IB_EVENT_COMM_EST));
	TRY(op_want(t->b.rcq, recv, IB_WC_SUCCESS));
	TRY(to_rts(&t->b));
	return want_state(&t->b, IB_QPS_RTS);
}

/* Requests that posting itself refuses; none of them reaches the NIC. */
static int check_post(struct test *t)
{
	struct ib_sge sge = sge_of(&t->a, 0, 64), inl = { .length = BUF_SIZE };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	struct op *op, *recv;
	const struct ib_send_wr *bad = NULL;
	struct ib_sge *many;
	int err, i;

	wr.opcode = IB_WR_RDMA_READ_WITH_INV;
	WANT(ib_post_send(t->a.qp, &wr, &bad) == -EOPNOTSUPP && bad == &wr);
	wr.opcode = IB_WR_SEND;
	many = kcalloc(1000, sizeof(*many), GFP_KERNEL);
	if (!many)
		return -ENOMEM;
	wr.sg_list = many;
	wr.num_sge = 1000;
	err = ib_post_send(t->a.qp, &wr, NULL);
	kfree(many);
	WANT(err == -EINVAL);
	inl.addr = (uintptr_t)t->a.buf;
	wr.sg_list = &inl;
	wr.num_sge = 1;
	wr.send_flags = IB_SEND_INLINE;
	WANT(ib_post_send(t->a.qp, &wr, NULL) == -EINVAL);

	/* a full queue: B has no receives, so nothing completes */
	wr.sg_list = &sge;
	wr.send_flags = 0;
	op = op_get(t);
	wr.wr_cqe = &op->cqe;
	for (i = 0; i < 100000; i++) {
		err = ib_post_send(t->a.qp, &wr, NULL);
		if (err)
			break;
	}
	WANT(err == -ENOMEM && i >= DEPTH);

	TRY(to_reset(&t->a));
	WANT(ib_post_send(t->a.qp, &wr, NULL) == -EINVAL);
	WANT(post_recv(&t->a, 0, 64, &recv) == -EINVAL);
	TRY(to_init(&t->a));
	TRY(post_recv(&t->a, 0, 64, &recv));
	WANT(ib_post_send(t->a.qp, &wr, NULL) == -EINVAL);
	return 0;
}

/* ---- CQs that the consumer polls and arms itself --------------------------------------------- */

/* The smallest requested size of a CQ; its ring has 128 entries then. */
#define BARE_CQE  96
#define BARE_WRS  256
#define BARE_FULL 200

static void bare_comp(struct ib_cq *cq, void *context)
{
	struct side *s = context;

	atomic_inc(&s->called);
	wake_up(&s->t->event);
}

/* With the side's CQ for both queues. */
static int bare_qp(struct side *s)
{
	struct ib_qp_init_attr init = {
		.event_handler = side_event,
		.qp_context = s,
		.send_cq = s->scq,
		.recv_cq = s->scq,
		.cap = {
			.max_send_wr = BARE_WRS,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_qp *qp = ib_create_qp(s->pd, &init);

	TRY(PTR_ERR_OR_ZERO(qp));
	s->qp = qp;
	return 0;
}

static void bare_like(struct test *t, struct side *s, struct side *like, struct side *peer)
{
	*s = *like;
	s->t = t;
	s->peer = peer;
	s->qp = NULL;
	s->rcq = NULL;
	atomic_set(&s->called, 0);
}

static int bare_side(struct test *t, struct side *s, struct side *like, struct side *peer)
{
	struct ib_cq_init_attr attr = { .cqe = BARE_CQE };
	struct ib_cq *cq;

	bare_like(t, s, like, peer);
	s->scq = NULL;
	cq = ib_create_cq(s->dev, bare_comp, side_event, s, &attr);
	TRY(PTR_ERR_OR_ZERO(cq));
	s->scq = cq;
	return bare_qp(s);
}

static void bare_free(struct side *s)
{
	if (s->qp)
		ib_destroy_qp(s->qp);
	if (s->scq)
		ib_destroy_cq(s->scq);
	s->qp = NULL;
	s->scq = NULL;
}

static int with_bare(struct test *t, int (*fn)(struct test *t))
{
	/* one check at a time */
	static struct test bare;
	int err;

	memset(&bare, 0, sizeof(bare));
	bare.ctx = t->ctx;
	init_waitqueue_head(&bare.event);
	err = bare_side(&bare, &bare.a, &t->a, &bare.b);
	if (!err)
		err = bare_side(&bare, &bare.b, &t->b, &bare.a);
	if (!err)
		err = connect_sides(&bare);
	if (!err)
		err = fn(&bare);
	bare_free(&bare.a);
	bare_free(&bare.b);
	return err;
}

static int bare_poll(struct side *s, struct ib_wc *wc)
{
	unsigned long end = jiffies + LIMIT;
	int n;

	while (!(n = ib_poll_cq(s->scq, 1, wc))) {
		WANT(time_before(jiffies, end));
		usleep_range(10, 30);
	}
	WANT(n == 1);
	return 0;
}

static int bare_send(struct test *t, u64 wr_id, int flags)
{
	struct ib_sge sge = sge_of(&t->a, 0, 64);
	struct ib_send_wr wr = {
		.wr_id = wr_id,
		.opcode = IB_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = flags,
	};
	struct ib_wc wc;

	TRY(ib_post_send(t->a.qp, &wr, NULL));
	TRY(bare_poll(&t->a, &wc));
	WANT(wc.status == IB_WC_SUCCESS && wc.wr_id == wr_id && wc.qp == t->a.qp);
	return 0;
}

static int want_called(struct side *s, int n)
{
	wait_event_timeout(s->t->event, atomic_read(&s->called) >= n, LIMIT);
	WANT(atomic_read(&s->called) == n);
	return 0;
}

static int do_notify(struct test *t)
{
	struct ib_sge sge = sge_of(&t->b, 0, 64);
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ib_cq *cq = t->b.scq;
	struct ib_wc wc[4];
	int i;

	for (i = 0; i < 4; i++) {
		wr.wr_id = 100 + i;
		TRY(ib_post_recv(t->b.qp, &wr, NULL));
	}
	/* for solicited ones only */
	TRY(ib_req_notify_cq(cq, IB_CQ_SOLICITED));
	TRY(bare_send(t, 1, 0));
	msleep(50);
	TRY(want_called(&t->b, 0));
	TRY(bare_send(t, 2, IB_SEND_SOLICITED));
	TRY(want_called(&t->b, 1));
	WANT(ib_poll_cq(cq, 4, wc) == 2);
	WANT(wc[0].wr_id == 100 && wc[1].wr_id == 101 && wc[1].qp == t->b.qp);

	/* for the next one, of any kind; one call for each arming */
	TRY(ib_req_notify_cq(cq, IB_CQ_NEXT_COMP));
	TRY(bare_send(t, 3, 0));
	TRY(want_called(&t->b, 2));
	TRY(bare_send(t, 4, 0));
	msleep(50);
	TRY(want_called(&t->b, 2));
	/* some are waiting already: ib_req_notify_cq() reports them, and the handler is called */
	WANT(ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) == 1);
	TRY(want_called(&t->b, 3));
	WANT(ib_poll_cq(cq, 4, wc) == 2);
	WANT(wc[0].wr_id == 102 && wc[1].wr_id == 103);
	WANT(!ib_poll_cq(cq, 4, wc));
	return 0;
}

static int check_notify(struct test *t)
{
	return with_bare(t, do_notify);
}

/* Nobody polls the completions: the CQ overruns, reports it, and its QP goes to ERR. */
static int do_cq_full(struct test *t)
{
	struct ib_rdma_wr wr = { .wr = { .opcode = IB_WR_RDMA_WRITE } };
	struct ib_wc wc;
	int i, n = 0;

	for (i = 0; i < BARE_FULL; i++) {
		wr.wr.wr_id = i;
		TRY(ib_post_send(t->a.qp, &wr.wr, NULL));
	}
	TRY(want_event(&t->a, IB_EVENT_CQ_ERR));
	TRY(want_state(&t->a, IB_QPS_ERR));
	/* The completions that it had room for are there. */
	while (ib_poll_cq(t->a.scq, 1, &wc) == 1) {
		WANT(wc.status == IB_WC_SUCCESS && wc.wr_id == n);
		n++;
	}
	WANT(n >= BARE_CQE && n < BARE_FULL);
	return 0;
}

static int check_cq_full(struct test *t)
{
	return with_bare(t, do_cq_full);
}

/* What shared_round() posts on the QP that is reset, and on the other QP before and after the
 * reset. */
#define SHARED_RESET  50
#define SHARED_BEFORE 30
#define SHARED_AFTER  60
#define SHARED_ROUNDS 8

/* WRITEs without data, whose completions are numbered. */
static int shared_post(struct side *s, int n, u64 *wr_id)
{
	struct ib_rdma_wr wr = { .wr = { .opcode = IB_WR_RDMA_WRITE } };

	while (n--) {
		wr.wr.wr_id = (*wr_id)++;
		TRY(ib_post_send(s->qp, &wr.wr, NULL));
	}
	return 0;
}

/* A message that changes its receiver's memory. */
static int shared_message(struct side *s, u32 seed)
{
	struct ib_sge sge = sge_of(s, 0, 64), into = sge_of(s->peer, 64, 64);
	struct ib_recv_wr recv = { .sg_list = &into, .num_sge = 1 };
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .sg_list = &sge, .num_sge = 1 };
	u8 *last = s->peer->buf + 64 + 63;
	unsigned long end = jiffies + LIMIT;

	fill(s->buf, 64, seed);
	*last = ~pattern(seed, 63);
	TRY(ib_post_recv(s->peer->qp, &recv, NULL));
	TRY(ib_post_send(s->qp, &wr, NULL));
	while (READ_ONCE(*last) != pattern(seed, 63)) {
		WANT(time_before(jiffies, end));
		usleep_range(10, 30);
	}
	return 0;
}

/*
 * One QP is reset while its CQEs lie between those of the other in the CQ. The other's CQEs stay,
 * in order, and the dropped ones are room again: without it, the CQ would overrun.
 */
static int shared_round(struct test *reset, struct test *stays, u64 *next)
{
	u64 dropped = 1000000, posted = *next;
	struct ib_wc wc;
	int i;

	for (i = 0; i < SHARED_RESET / 5; i++) {
		TRY(shared_post(&reset->a, 5, &dropped));
		TRY(shared_post(&stays->a, SHARED_BEFORE / (SHARED_RESET / 5), &posted));
	}
	/* The answer comes after the ACKs of everything that was sent. */
	TRY(shared_message(&reset->a, 2 * *next));
	TRY(shared_message(&reset->b, 2 * *next + 1));
	TRY(to_reset(&reset->a));
	TRY(shared_post(&stays->a, SHARED_AFTER, &posted));
	for (; *next < posted; ++*next) {
		TRY(bare_poll(&stays->a, &wc));
		WANT(wc.status == IB_WC_SUCCESS && wc.qp == stays->a.qp && wc.wr_id == *next);
	}
	WANT(!ib_poll_cq(stays->a.scq, 1, &wc));
	/* of side A's CQ, which belongs to the check that has made it */
	WANT(!atomic_read(&reset->a.events[IB_EVENT_CQ_ERR]));
	return 0;
}

static int do_cq_shared(struct test *t)
{
	/* one check at a time */
	static struct test other;
	u64 next = 0;
	int err, i;

	memset(&other, 0, sizeof(other));
	other.ctx = t->ctx;
	init_waitqueue_head(&other.event);
	bare_like(&other, &other.a, &t->a, &other.b);
	bare_like(&other, &other.b, &t->b, &other.a);
	err = bare_qp(&other.a);
	if (!err)
		err = bare_qp(&other.b);
	if (!err)
		err = connect_sides(&other);
	for (i = 0; i < SHARED_ROUNDS && !err; i++) {
		err = connect_sides(t);
		if (!err)
			err = shared_round(t, &other, &next);
	}
	/* The CQs belong to the check. */
	other.a.scq = NULL;
	other.b.scq = NULL;
	bare_free(&other.a);
	bare_free(&other.b);
	return err;
}

static int check_cq_shared(struct test *t)
{
	return with_bare(t, do_cq_shared);
}

/* The core moderates CQs that use events; a message arrives although its events are delayed. */
static int check_moderation(struct test *t)
{
	struct ib_cq *cqs[] = { t->a.scq, t->a.rcq, t->b.scq, t->b.rcq };
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(cqs); i++) {
		WANT(!cqs[i]->dim == (t->ctx == IB_POLL_DIRECT));
		/* an event that could never come */
		WANT(rdma_set_cq_moderation(cqs[i], cqs[i]->cqe + 1, 0) == -EINVAL);
		TRY(rdma_set_cq_moderation(cqs[i], 1000, 2000));
		WANT(ib_resize_cq(cqs[i], cqs[i]->cqe) == -EOPNOTSUPP);
	}
	err = check_send(t);
	for (i = 0; i < ARRAY_SIZE(cqs); i++)
		TRY(rdma_set_cq_moderation(cqs[i], 0, 0));
	return err;
}

#define ADAPT_LIST   16
#define ADAPT_ROUNDS 128 /* of one kind, before those of the other kind */
#define ADAPT_LIMIT  (40 * ADAPT_ROUNDS)

/* WRITEs without data, each with a completion, in one post. Returns when all have completed. */
static int write_list(struct side *s, int n)
{
	/* too much for the stack; one check runs at a time */
	static struct ib_rdma_wr wr[ADAPT_LIST];
	struct op *op = NULL;
	int i;

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < n; i++) {
		op = op_get(s->t);
		wr[i].wr.opcode = IB_WR_RDMA_WRITE;
		wr[i].wr.wr_cqe = &op->cqe;
		wr[i].wr.send_flags = IB_SEND_SIGNALED;
		wr[i].wr.next = i < n - 1 ? &wr[i + 1].wr : NULL;
	}
	TRY(ib_post_send(s->qp, &wr[0].wr, NULL));
	return op_want(s->scq, op, IB_WC_SUCCESS);
}

/*
 * The core changes the moderation of a CQ when its load changes: here the load alternates between
 * single WRITEs and lists of them. Completions still come, with each setting of the core.
 */
static int check_adaptive(struct test *t)
{
	struct dim *dim = t->a.scq->dim;
	int i, profile;

	if (t->ctx == IB_POLL_DIRECT)
		return 0;
	WANT(dim);
	profile = READ_ONCE(dim->profile_ix);
	for (i = 0; READ_ONCE(dim->profile_ix) == profile; i++) {
		WANT(i < ADAPT_LIMIT);
		TRY(write_list(&t->a, i / ADAPT_ROUNDS % 2 ? ADAPT_LIST : 1));
	}
	flush_work(&dim->work);
	TRY(check_send(t));
	TRY(rdma_set_cq_moderation(t->a.scq, 0, 0));
	return 0;
}

static int with_region(struct test *t, int (*fn)(struct test *t, struct region *r))
{
	struct region r = {};
	int err = fn(t, &r);

	region_free(&r);
	return err;
}

struct check {
	const char *name;
	/* one of the two */
	int (*fn)(struct test *t);
	int (*with_region)(struct test *t, struct region *r);
};

static const struct check checks[] = {
	{ "attributes", check_attributes },
	{ "send", check_send },
	{ "send_inline", check_send_inline },
	{ "send_imm", check_send_imm },
	{ "unsignaled", check_unsignaled },
	{ "query", check_query },
	{ "post", check_post },
	{ "drain", check_drain },
	{ "comm_est", check_comm_est },
	{ "sqd", check_sqd },
	{ "notify", check_notify },
	{ "cq_full", check_cq_full },
	{ "cq_shared", check_cq_shared },
	{ "moderation", check_moderation },
	{ "adaptive", check_adaptive },
	{ "write_read", .with_region = do_write_read },
	{ "write_imm", .with_region = do_write_imm },
	{ "atomic", .with_region = do_atomic },
	{ "send_inv", .with_region = do_send_inv },
	{ "local_inv", .with_region = do_local_inv },
	{ "remap", .with_region = do_remap },
	{ "rights", .with_region = do_rights },
	{ "zero_based", .with_region = do_zero_based },
	{ "bad_reg", .with_region = do_bad_reg },
	{ "reads", .with_region = do_reads },
	{ "chain", .with_region = do_chain },
	{ "ud", check_ud },
	{ "gsi", check_gsi },
	{ "uc", check_uc },
	{ "no xrc", check_no_xrc },
	{ "srq", check_srq },
};

const struct mode modes[MODES] = {
	{ IB_POLL_DIRECT, "direct" },
	{ IB_POLL_WORKQUEUE, "workqueue" },
	{ IB_POLL_UNBOUND_WORKQUEUE, "unbound workqueue" },
	{ IB_POLL_SOFTIRQ, "softirq" },
};

/* ---- set-up --------------------------------------------------------------------------------- */

static void side_free(struct side *s)
{
	if (s->qp)
		ib_destroy_qp(s->qp);
	if (s->scq)
		ib_free_cq(s->scq);
	if (s->rcq)
		ib_free_cq(s->rcq);
	if (s->buf)
		dma_free_coherent(s->dev->dma_device, BUF_SIZE, s->buf, s->dma);
	if (s->pd)
		ib_dealloc_pd(s->pd);
}

/* The GID of the net device's IPv4 address. */
static int side_gid(struct side *s)
{
	struct ib_port_attr port;
	struct net_device *net;
	int i;

	TRY(ib_query_port(s->dev, PORT, &port));
	WANT(port.state == IB_PORT_ACTIVE);
	s->mtu = port.active_mtu;
	net = ib_device_get_netdev(s->dev, PORT);
	WANT(net);
	ether_addr_copy(s->mac, net->dev_addr);
	dev_put(net);
	for (i = 0; i < port.gid_tbl_len; i++) {
		if (rdma_query_gid(s->dev, PORT, i, &s->gid))
			continue;
		if (ipv6_addr_v4mapped((struct in6_addr *)&s->gid)) {
			s->gid_index = i;
			return 0;
		}
	}
	pr_err("%s has no GID of an IPv4 address\n", dev_name(&s->dev->dev));
	return -ENOENT;
}

static int side_make(struct test *t, struct side *s, const char *name, struct ib_device *dev,
		     struct side *peer)
{
	struct ib_qp_init_attr init = {
		.event_handler = side_event,
		.qp_context = s,
		.cap = {
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = INLINE,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;

	s->t = t;
	s->name = name;
	s->dev = dev;
	s->peer = peer;
	TRY(side_gid(s));
	pd = ib_alloc_pd(dev, 0);
	TRY(PTR_ERR_OR_ZERO(pd));
	s->pd = pd;
	s->buf = dma_alloc_coherent(dev->dma_device, BUF_SIZE, &s->dma, GFP_KERNEL);
	WANT(s->buf);
	cq = ib_alloc_cq(dev, s, 4 * DEPTH, 0, t->ctx);
	TRY(PTR_ERR_OR_ZERO(cq));
	s->scq = cq;
	cq = ib_alloc_cq(dev, s, 4 * DEPTH, dev->num_comp_vectors - 1, t->ctx);
	TRY(PTR_ERR_OR_ZERO(cq));
	s->rcq = cq;
	init.send_cq = s->scq;
	init.recv_cq = s->rcq;
	qp = ib_create_qp(pd, &init);
	TRY(PTR_ERR_OR_ZERO(qp));
	s->qp = qp;
	return 0;
}

/* Makes both sides, not connected yet. test_free() frees the result, also after an error. */
int test_make(struct test *t, struct ib_device *a, struct ib_device *b, enum ib_poll_context ctx)
{
	t->ctx = ctx;
	init_waitqueue_head(&t->event);
	t->ops = kvcalloc(OPS, sizeof(*t->ops), GFP_KERNEL);
	if (!t->ops)
		return -ENOMEM;
	TRY(side_make(t, &t->a, "A", a, &t->b));
	return side_make(t, &t->b, "B", b, &t->a);
}

void test_free(struct test *t)
{
	side_free(&t->a);
	side_free(&t->b);
	kvfree(t->ops);
}

static int run_check(struct test *t, const struct check *c)
{
	TRY(connect_sides(t));
	return c->fn ? c->fn(t) : with_region(t, c->with_region);
}

static unsigned int run_mode(struct ib_device *a, struct ib_device *b, enum ib_poll_context ctx,
			     const char *mode)
{
	size_t i;
	unsigned int failed = 0;
	struct test *t;
	int err = -ENOMEM;

	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		goto out;
	err = test_make(t, a, b, ctx);
	for (i = 0; i < ARRAY_SIZE(checks) && !err && failed < TOO_MANY; i++) {
		int status;

		if (only[0] && strcmp(only, checks[i].name))
			continue;
		status = run_check(t, &checks[i]);
		if (status) {
			pr_err("%s: %s: FAILED: %d\n", mode, checks[i].name, status);
			failed++;
		} else {
			pr_info("%s: %s: ok\n", mode, checks[i].name);
			passed++;
		}
	}
	test_free(t);
	kfree(t);
out:
	if (err) {
		pr_err("%s: cannot set up: FAILED: %d\n", mode, err);
		failed++;
	}
	return failed;
}

/* ---- the client ----------------------------------------------------------------------------- */

/* Held during a run, too: a device that goes meanwhile waits until it ends. */
static DEFINE_MUTEX(lock);
static struct ib_device *device[2];

/* Only called for devices with all of the kernel's verbs. */
static int kverbs_add(struct ib_device *dev)
{
	int err = -EOPNOTSUPP;

	mutex_lock(&lock);
	if (!strcmp(dev_name(&dev->dev), dev_a)) {
		device[0] = dev;
		err = 0;
	}
	if (!strcmp(dev_name(&dev->dev), dev_b)) {
		device[1] = dev;
		err = 0;
	}
	mutex_unlock(&lock);
	return err;
}

static void kverbs_remove(struct ib_device *dev, void *data)
{
	mutex_lock(&lock);
	if (device[0] == dev)
		device[0] = NULL;
	if (device[1] == dev)
		device[1] = NULL;
	mutex_unlock(&lock);
}

static struct ib_client kverbs_client = {
	.name = "kverbs",
	.add = kverbs_add,
	.remove = kverbs_remove,
};

static int __init kverbs_init(void)
{
	unsigned int failed = 0;
	int err, i;

	err = ib_register_client(&kverbs_client);
	if (err)
		return err;
	mutex_lock(&lock);
	if (!device[0] || !device[1]) {
		pr_err("%s and %s do not both offer kernel verbs: FAILED\n", dev_a, dev_b);
		failed = 1;
	} else {
		for (i = 0; i < ARRAY_SIZE(modes) && !dead; i++)
			failed += run_mode(device[0], device[1], modes[i].ctx, modes[i].name);
		if (dead)
			failed += run_dead(device[0], device[1], &passed);
	}
	mutex_unlock(&lock);
	pr_info("verdict: %u passed, %u failed\n", passed, failed);
	if (!failed && passed)
		return 0;
	ib_unregister_client(&kverbs_client);
	return -EIO;
}

static void __exit kverbs_exit(void)
{
	ib_unregister_client(&kverbs_client);
}

module_init(kverbs_init);
module_exit(kverbs_exit);
MODULE_DESCRIPTION("Test of kernel verbs between two RDMA devices");
/* The kernel accepts no licence string for Apache-2.0; the SPDX line above names the licences. */
MODULE_LICENSE("GPL");
