// SPDX-License-Identifier: Apache-2.0
/*
 * abi DEVICE: tests the promises of urdma-abi.h about kernels and providers of different ages, with
 * plain system calls instead of libibverbs. Requests and responses are shorter than today's
 * structures, as in an older provider, or longer, as in a newer one.
 *
 * abi DEVICE rereg: a region is re-registered with another PD. The caller has made this fail
 * (abi.sh); the region then still belongs to its first PD.
 *
 * abi DEVICE windows: the keys of successive windows with the same index. Exit status 0 when
 * everything is right.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "urdma-abi.h"
#include "urdma_hw.h"

#define PAGE 4096

#define WANT(cond)                                                                               \
	do {                                                                                     \
		if (!(cond)) {                                                                   \
			fprintf(stderr, "abi: line %d: not so: %s, errno %d\n", __LINE__, #cond, \
				errno);                                                          \
			exit(1);                                                                 \
		}                                                                                \
	} while (0)

/* One verb by write(): the core's request, then the driver's; likewise the response. */
static int verb(int fd, uint32_t command, const void *core, size_t core_len, const void *drv,
		size_t drv_len, void *resp, size_t resp_len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint8_t body[256];
	} cmd = { 0 };
	uint64_t response = (uintptr_t)resp;
	size_t len = sizeof(cmd.hdr) + core_len + drv_len;

	cmd.hdr.command = command;
	cmd.hdr.in_words = len / 4;
	cmd.hdr.out_words = resp_len / 4;
	memcpy(cmd.body, core, core_len);
	/* the first field of each */
	memcpy(cmd.body, &response, sizeof(response));
	memcpy(cmd.body + core_len, drv, drv_len);
	return write(fd, &cmd, len) == (ssize_t)len ? 0 : -errno;
}

struct context {
	struct ib_uverbs_get_context_resp core;
	struct urdma_alloc_ucontext_resp drv;
	uint8_t more[16];
};

/* The file of a new context, with this much room for the driver's response. */
static int get_context(const char *path, size_t room, struct context *c)
{
	struct ib_uverbs_get_context cmd = { 0 };
	int fd = open(path, O_RDWR | O_CLOEXEC);

	WANT(fd >= 0);
	memset(c, 0xa5, sizeof(*c));
	WANT(verb(fd, IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), NULL, 0, c,
		  sizeof(c->core) + room) == 0);
	return fd;
}

static void check_context(const char *path)
{
	const size_t all = sizeof(struct urdma_alloc_ucontext_resp);
	struct context whole, c;
	size_t room;

	close(get_context(path, all, &whole));
	WANT(whole.drv.db_size == PAGE && whole.drv.log_max_qp && whole.drv.log_max_srq);
	for (room = 0; room <= all + sizeof(c.more); room += 4) {
		close(get_context(path, room, &c));
		/* offsets for mmap may differ */
		c.drv.db_offset = whole.drv.db_offset;
		WANT(!memcmp(&c.drv, &whole.drv, room < 8 ? 0 : room < all ? room : all));
		WANT(room >= all || ((uint8_t *)&c.drv)[room < 8 ? 8 : room] == 0xa5);
	}
}

struct cq_resp {
	struct ib_uverbs_create_cq_resp core;
	struct urdma_create_cq_resp drv;
	uint8_t more[16];
};

static int create_cq(int fd, void *ring, size_t len, uint8_t beyond, size_t room, struct cq_resp *r)
{
	struct ib_uverbs_create_cq cmd = { .cqe = 32, .comp_channel = -1 };
	struct {
		struct urdma_create_cq_req req;
		uint8_t more[16];
	} drv = { 0 };

	drv.req.buf_addr = (uintptr_t)ring;
	drv.req.buf_len = PAGE;
	drv.req.log_entries = 7;
	memset(drv.more, beyond, sizeof(drv.more));
	memset(r, 0xa5, sizeof(*r));
	return verb(fd, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &drv, len, r,
		    sizeof(r->core) + room);
}

static int create_qp(int fd, uint32_t pd, uint32_t cq, uint8_t *rings, size_t len, size_t room)
{
	struct ib_uverbs_create_qp cmd = {
		.pd_handle = pd,
		.send_cq_handle = cq,
		.recv_cq_handle = cq,
		.max_send_wr = 8,
		.max_recv_wr = 8,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = IB_UVERBS_QPT_RC,
	};
	struct urdma_create_qp_req drv = {
		.sq_addr = (uintptr_t)rings,
		.rq_addr = (uintptr_t)rings + PAGE,
		.sq_len = PAGE,
		.rq_len = PAGE,
		.sq_log_entries = 4,
		.sq_log_stride = 6,
		.rq_log_entries = 4,
		.rq_log_stride = 6,
	};
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct urdma_create_qp_resp drv;
	} r = { 0 };

	return verb(fd, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &drv, len, &r,
		    sizeof(r.core) + room);
}

/*
 * A new ring for a CQ, with this much of the driver's request, and this much room for its response.
 */
struct resize_resp {
	struct ib_uverbs_resize_cq_resp core;
	struct urdma_resize_cq_resp drv;
	uint8_t more[16];
};

static int resize_cq(int fd, uint32_t cq, int cqe, struct urdma_resize_cq_req req, size_t len,
		     uint8_t beyond, size_t room, struct resize_resp *r)
{
	struct ib_uverbs_resize_cq cmd = { .cq_handle = cq, .cqe = (uint32_t)cqe };
	struct {
		struct urdma_resize_cq_req req;
		uint8_t more[16];
	} drv = { .req = req };

	memset(drv.more, beyond, sizeof(drv.more));
	memset(r, 0xa5, sizeof(*r));
	return verb(fd, IB_USER_VERBS_CMD_RESIZE_CQ, &cmd, sizeof(cmd), &drv, len, r,
		    sizeof(r->core) + room);
}

static void check_resize(int fd, uint32_t cq, uint8_t *ring)
{
	const struct urdma_resize_cq_req good = {
		.buf_addr = (uintptr_t)ring,
		.buf_len = PAGE,
		.log_entries = 7,
	};
	const size_t len = sizeof(good), room = sizeof(struct urdma_resize_cq_resp);
	struct urdma_resize_cq_req bad;
	struct resize_resp r;

	WANT(!resize_cq(fd, cq, 64, good, len, 0, room, &r) && r.core.cqe == 64 && !r.drv.base);
	WANT(!resize_cq(fd, cq, 64, good, len + 16, 0, room + 16, &r));
	WANT(!resize_cq(fd, cq, 64, good, len - 8, 0, 0, &r) && r.drv.base == 0xa5a5a5a5);
	WANT(resize_cq(fd, cq, 64, good, len + 16, 1, room, &r) == -EINVAL);
	WANT(resize_cq(fd, cq, 0, good, len, 0, room, &r) == -EINVAL);
	WANT(resize_cq(fd, cq, -1, good, len, 0, room, &r) == -EINVAL);
	/* more than the ring can have, or the device */
	WANT(resize_cq(fd, cq, 129, good, len, 0, room, &r) == -EINVAL);
	WANT(resize_cq(fd, cq, 1 << 30, good, len, 0, room, &r) == -EINVAL);
	WANT(resize_cq(fd, cq, 64, good, 8, 0, room, &r) == -EINVAL);
	WANT(resize_cq(fd, cq + 77, 64, good, len, 0, room, &r) == -ENOENT);
	bad = good;
	bad.log_entries = 40;
	WANT(resize_cq(fd, cq, 64, bad, len, 0, room, &r) == -EINVAL);
	bad = good;
	bad.buf_len = PAGE - 1;
	WANT(resize_cq(fd, cq, 64, bad, len, 0, room, &r) == -EINVAL);
	bad = good;
	bad.buf_addr += 8;
	WANT(resize_cq(fd, cq, 64, bad, len, 0, room, &r) == -EINVAL);
	bad = good;
	bad.buf_addr = 0;
	WANT(resize_cq(fd, cq, 64, bad, len, 0, room, &r) < 0);
	bad = good;
	bad.reserved[2] = 1;
	WANT(resize_cq(fd, cq, 64, bad, len, 0, room, &r) == -EINVAL);
	bad = good;
	bad.reserved2 = 1;
	WANT(resize_cq(fd, cq, 64, bad, len, 0, room, &r) == -EINVAL);
	/* an index that it has not reached has no effect */
	bad = good;
	bad.ci = 12345;
	WANT(!resize_cq(fd, cq, 64, bad, len, 0, room, &r) && !r.drv.base);
}

static void check_objects(const char *path)
{
	const size_t cq_req = sizeof(struct urdma_create_cq_req);
	const size_t qp_req = sizeof(struct urdma_create_qp_req);
	uint8_t *ring =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ib_uverbs_alloc_pd alloc_pd = { 0 };
	struct ib_uverbs_alloc_pd_resp pd;
	struct context c;
	struct cq_resp r;
	uint32_t cq;
	int fd;

	WANT(ring != MAP_FAILED);
	fd = get_context(path, sizeof(c.drv), &c);
	WANT(!verb(fd, IB_USER_VERBS_CMD_ALLOC_PD, &alloc_pd, sizeof(alloc_pd), NULL, 0, &pd,
		   sizeof(pd)));
	/* Longer requests, if the rest is zero. */
	WANT(!create_cq(fd, ring, cq_req, 0, sizeof(r.drv), &r) && r.drv.cqn != 0xa5a5a5a5);
	WANT(!create_cq(fd, ring, cq_req + 16, 0, sizeof(r.drv) + 16, &r));
	WANT(create_cq(fd, ring, cq_req + 16, 1, sizeof(r.drv), &r) == -EINVAL);
	/* A response without fields that an old provider does not know; a request without its last,
	 * reserved, field. */
	WANT(!create_cq(fd, ring, cq_req, 0, 4, &r) && r.drv.reserved == 0xa5a5a5a5);
	WANT(!create_cq(fd, ring, cq_req, 0, 0, &r) && r.drv.cqn == 0xa5a5a5a5);
	cq = r.core.cq_handle;
	WANT(!create_qp(fd, pd.pd_handle, cq, ring + PAGE, qp_req, 8));
	WANT(!create_qp(fd, pd.pd_handle, cq, ring + PAGE, qp_req - 4, 4));
	/* Missing fields are zero, and a queue of no bytes is refused. */
	WANT(create_cq(fd, ring, 8, 0, sizeof(r.drv), &r) == -EINVAL);
	WANT(create_cq(fd, ring, 0, 0, sizeof(r.drv), &r) == -EINVAL);
	WANT(create_qp(fd, pd.pd_handle, cq, ring + PAGE, 16, 8) == -EINVAL);
	check_resize(fd, cq, ring);
	close(fd);
}

struct srq_resp {
	struct ib_uverbs_create_srq_resp core;
	struct urdma_create_srq_resp drv;
	uint8_t more[16];
};

/*
 * An SRQ of this type, with this much of the driver's request, and this much room for its response.
 */
static int create_xsrq(int fd, struct ib_uverbs_create_xsrq cmd, uint8_t *ring, size_t len,
		       uint16_t reserved, uint8_t beyond, size_t room, struct srq_resp *r)
{
	struct {
		struct urdma_create_srq_req req;
		uint8_t more[16];
	} drv = { .req = { .buf_addr = (uintptr_t)ring,
			   .buf_len = PAGE,
			   .log_entries = 4,
			   .log_stride = 6,
			   .reserved = reserved } };

	memset(drv.more, beyond, sizeof(drv.more));
	memset(r, 0xa5, sizeof(*r));
	return verb(fd, IB_USER_VERBS_CMD_CREATE_XSRQ, &cmd, sizeof(cmd), &drv, len, r,
		    sizeof(r->core) + room);
}

/* An initiator QP, with these bytes for a receive ring that it does not have. */
static int create_initiator(int fd, uint32_t pd, uint32_t cq, uint8_t *ring, uint32_t rq_len)
{
	struct ib_uverbs_create_qp cmd = {
		.pd_handle = pd,
		.send_cq_handle = cq,
		.max_send_wr = 8,
		.max_send_sge = 1,
		.qp_type = IB_UVERBS_QPT_XRC_INI,
	};
	struct urdma_create_qp_req drv = {
		.sq_addr = (uintptr_t)ring,
		.sq_len = PAGE,
		.sq_log_entries = 4,
		.sq_log_stride = 6,
		.rq_len = rq_len,
	};
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct urdma_create_qp_resp drv;
	} resp;

	return verb(fd, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &drv, sizeof(drv), &resp,
		    sizeof(resp));
}

/* A target QP: the driver's part of the request does not reach the driver. */
static int create_target(int fd, uint32_t xrcd, uint64_t noise)
{
	struct ib_uverbs_create_qp cmd = { .pd_handle = xrcd,
					   .qp_type = IB_UVERBS_QPT_XRC_TGT,
					   .max_send_wr = 1u << 31 };
	struct ib_uverbs_create_qp_resp resp;

	return verb(fd, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &noise, sizeof(noise),
		    &resp, sizeof(resp));
}

static void check_xrc(const char *path)
{
	const size_t req = sizeof(struct urdma_create_srq_req);
	uint8_t *ring =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ib_uverbs_open_xrcd open_xrcd = { .fd = (uint32_t)-1, .oflags = O_CREAT };
	struct ib_uverbs_alloc_pd alloc_pd = { 0 };
	struct ib_uverbs_open_xrcd_resp xrcd;
	struct ib_uverbs_create_xsrq cmd;
	struct ib_uverbs_alloc_pd_resp pd;
	uint64_t noise = 0;
	struct context c;
	struct srq_resp r;
	struct cq_resp cq;
	int fd;

	WANT(ring != MAP_FAILED);
	fd = get_context(path, sizeof(c.drv), &c);
	if (!(c.drv.features & URDMA_RF_FEAT_XRC)) {
		WANT(verb(fd, IB_USER_VERBS_CMD_OPEN_XRCD, &open_xrcd, sizeof(open_xrcd), NULL, 0,
			  &xrcd, sizeof(xrcd)) == -EOPNOTSUPP);
		close(fd);
		return;
	}
	WANT(!verb(fd, IB_USER_VERBS_CMD_ALLOC_PD, &alloc_pd, sizeof(alloc_pd), NULL, 0, &pd,
		   sizeof(pd)));
	WANT(!create_cq(fd, ring, sizeof(struct urdma_create_cq_req), 0, sizeof(cq.drv), &cq));
	/* No domain is requested. */
	WANT(!verb(fd, IB_USER_VERBS_CMD_OPEN_XRCD, &open_xrcd, sizeof(open_xrcd), &noise,
		   sizeof(noise), &xrcd, sizeof(xrcd)));
	noise = 1;
	WANT(verb(fd, IB_USER_VERBS_CMD_OPEN_XRCD, &open_xrcd, sizeof(open_xrcd), &noise,
		  sizeof(noise), &xrcd, sizeof(xrcd)) == -EINVAL);
	cmd = (struct ib_uverbs_create_xsrq){
		.srq_type = IB_UVERBS_SRQT_XRC,
		.pd_handle = pd.pd_handle,
		.max_wr = 16,
		.max_sge = 1,
		.xrcd_handle = xrcd.xrcd_handle,
		.cq_handle = cq.core.cq_handle,
	};
	WANT(!create_xsrq(fd, cmd, ring + PAGE, req, 0, 0, sizeof(r.drv), &r));
	WANT(r.core.srqn == r.drv.srqn && !r.drv.reserved);
	/* Longer requests, if the rest is zero; shorter ones, up to a reserved field. */
	WANT(!create_xsrq(fd, cmd, ring + PAGE, req + 16, 0, 0, sizeof(r.drv) + 16, &r));
	WANT(create_xsrq(fd, cmd, ring + PAGE, req + 16, 0, 1, sizeof(r.drv), &r) == -EINVAL);
	WANT(create_xsrq(fd, cmd, ring + PAGE, 8, 0, 0, sizeof(r.drv), &r) == -EINVAL);
	WANT(create_xsrq(fd, cmd, ring + PAGE, req, 1, 0, sizeof(r.drv), &r) == -EINVAL);
	WANT(!create_xsrq(fd, cmd, ring + PAGE, req, 0, 0, 0, &r) && r.drv.srqn == 0xa5a5a5a5);
	/* More than the ring has; a type that does not exist; handles that are not those of a
	 * domain and a CQ. */
	cmd.max_wr = 17;
	WANT(create_xsrq(fd, cmd, ring + PAGE, req, 0, 0, sizeof(r.drv), &r) == -EINVAL);
	cmd.max_wr = 16;
	cmd.srq_type = IB_UVERBS_SRQT_TM;
	cmd.max_num_tags = 1;
	WANT(create_xsrq(fd, cmd, ring + PAGE, req, 0, 0, sizeof(r.drv), &r) == -EOPNOTSUPP);
	cmd.srq_type = IB_UVERBS_SRQT_XRC;
	cmd.xrcd_handle = pd.pd_handle;
	WANT(create_xsrq(fd, cmd, ring + PAGE, req, 0, 0, sizeof(r.drv), &r) < 0);
	cmd.xrcd_handle = xrcd.xrcd_handle;
	cmd.cq_handle = pd.pd_handle;
	WANT(create_xsrq(fd, cmd, ring + PAGE, req, 0, 0, sizeof(r.drv), &r) < 0);

	WANT(!create_initiator(fd, pd.pd_handle, cq.core.cq_handle, ring + 2 * PAGE, 0));
	WANT(create_initiator(fd, pd.pd_handle, cq.core.cq_handle, ring + 2 * PAGE, PAGE) ==
	     -EINVAL);
	WANT(!create_target(fd, xrcd.xrcd_handle, ~0ull));
	WANT(create_target(fd, pd.pd_handle, 0) < 0);
	/* Closing the file destroys everything. */
	close(fd);
	WANT(!munmap(ring, 4 * PAGE));
}

static void check_rereg(struct ibv_context *ctx)
{
	const int access = IBV_ACCESS_LOCAL_WRITE;
	uint8_t *buf = aligned_alloc(PAGE, PAGE);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	WANT(buf && pd && other);
	mr = ibv_reg_mr(pd, buf, PAGE, access);
	WANT(mr);
	/* The NIC destroys the old region, and then refuses the new one. */
	WANT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0));
	/* It still belongs to its first PD: the other PD can be destroyed, and the rights can be
	 * changed. */
	WANT(!ibv_dealloc_pd(other));
	WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   access | IBV_ACCESS_REMOTE_READ));
	WANT(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
}

/*
 * A program chooses the variants of its window's keys itself, counting up from the first one. So
 * the next window with that index has to begin at a distant variant, otherwise an old key would
 * open it.
 */
static void check_window_keys(struct ibv_context *ctx)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	unsigned int variant, last, n = 0;
	uint32_t index, key;
	struct ibv_mw *mw;

	WANT(pd);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	WANT(mw);
	index = mw->rkey >> 8;
	last = mw->rkey & 0xff;
	do {
		WANT(!ibv_dealloc_mw(mw));
		mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		WANT(mw && ++n < 1u << 17);
		key = mw->rkey;
	} while (key >> 8 != index);
	variant = key & 0xff;
	WANT(((variant - last) & 0xff) >= 100 && ((last - variant) & 0xff) >= 100);
	WANT(!ibv_dealloc_mw(mw) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
}

static uint64_t clock_now(struct ibv_context *ctx)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	WANT(!ibv_query_rt_values_ex(ctx, &values));
	WANT(values.comp_mask == IBV_VALUES_MASK_RAW_CLOCK && !values.raw_clock.tv_sec);
	return values.raw_clock.tv_nsec;
}

static int64_t wall_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/*
 * A program reads the same clock as that of completions: a completion lies between two readings.
 * Its wall-clock time is not after the present, within the tolerance of the clocks' rates. Nor is
 * it before the request, except for the slowness of a simulated NIC since the provider last
 * compared the clocks, at most 10 ms ago.
 */
static void check_clock(struct ibv_context *ctx)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_poll_cq_attr poll = {};
	struct ibv_qp_init_attr attr = { .cap = { .max_send_wr = 1, .max_recv_wr = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_values_ex none = {};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &cq_attr);
	int64_t wall_before, wall_read, wall, wall_after;
	uint64_t before, at, after;
	struct ibv_qp *qp;

	WANT(pd && cq);
	attr.send_cq = attr.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp(pd, &attr);
	WANT(qp);
	WANT(!ibv_modify_qp(qp, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	WANT(!ibv_post_recv(qp, &wr, &bad));
	before = clock_now(ctx);
	wall_before = wall_now();
	WANT(!ibv_modify_qp(qp, &err, IBV_QP_STATE));
	while (ibv_start_poll(cq, &poll))
		;
	WANT(cq->status == IBV_WC_WR_FLUSH_ERR);
	at = ibv_wc_read_completion_ts(cq);
	wall_read = wall_now();
	wall = (int64_t)ibv_wc_read_completion_wallclock_ns(cq);
	wall_after = wall_now();
	ibv_end_poll(cq);
	after = clock_now(ctx);
	if (!(before < at && at < after))
		fprintf(stderr, "cycles %ju, completion %ju, %ju\n", (uintmax_t)before,
			(uintmax_t)at, (uintmax_t)after);
	WANT(before < at && at < after);
	if (wall > wall_after || wall < wall_before)
		fprintf(stderr, "wall clock: before %jd, completion %jd, read %jd, %jd\n",
			(intmax_t)wall_before, (intmax_t)wall, (intmax_t)wall_read,
			(intmax_t)wall_after);
	WANT(wall <= wall_after + 1000000);
	WANT(wall >= wall_before || wall >= wall_read - 11000000);
	WANT(ibv_query_rt_values_ex(ctx, &none) == EINVAL);
	WANT(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	WANT(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device *dev = NULL;
	char path[128];

	for (int i = 0; list && argc > 1 && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), argv[1]))
			dev = list[i];
	if (!dev) {
		fprintf(stderr, "abi: which device?\n");
		return 1;
	}
	if (argc > 2) {
		struct ibv_context *ctx = ibv_open_device(dev);

		WANT(ctx);
		if (!strcmp(argv[2], "windows"))
			check_window_keys(ctx);
		else if (!strcmp(argv[2], "clock"))
			check_clock(ctx);
		else
			check_rereg(ctx);
		return 0;
	}
	snprintf(path, sizeof(path), "/dev/infiniband/%s", dev->dev_name);
	check_context(path);
	check_objects(path);
	check_xrc(path);
	return 0;
}
