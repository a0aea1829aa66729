// SPDX-License-Identifier: Apache-2.0
/*
 * faults DEVICE [STEP]: makes and removes one object of each kind, again and again. In each round
 * one memory allocation in the kernel fails: the first one in the first round, then every STEPth
 * (default 1). The allocations that count are set in /sys/kernel/debug/failslab and fail_page_alloc
 * (faults.sh). It ends when a round had no fault. A call may fail, but existing objects must still
 * be removable. Exit status 0 when everything is right.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "urdma-abi.h"

#define SMALL 4096
/* Long enough for a page table with more than one level. */
#define LARGE (4096 * 1024)

static unsigned long failed;
/* Each piece is registered once: DMA debugging complains of two mappings of a page. */
static char *memory;

/* Open all the time, because setting it must not need memory. */
static int nth;

/* The allocation that fails next: 1 is the next one, 0 none. */
static void fail_nth(unsigned long n)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%lu", n);

	if (pwrite(nth, text, len, 0) != len) {
		perror("/proc/self/fail-nth");
		exit(1);
	}
}

static unsigned long left(void)
{
	char text[32] = "";

	if (pread(nth, text, sizeof(text) - 1, 0) < 1) {
		perror("/proc/self/fail-nth");
		exit(1);
	}
	return strtoul(text, NULL, 10);
}

/* Whether a call has made its object. */
static int made(int ok)
{
	failed += !ok;
	return ok;
}

/* A removal may need memory, too; it works when memory is available. */
#define GONE(call)                                                                                 \
	do {                                                                                       \
		int e = call;                                                                      \
		if (e) {                                                                           \
			failed++;                                                                  \
			fail_nth(0);                                                               \
			e = call;                                                                  \
		}                                                                                  \
		if (e) {                                                                           \
			fprintf(stderr, "faults: line %d: %s: %d, errno %d\n", __LINE__, #call, e, \
				errno);                                                            \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Moves it to RTS, connected to itself. */
static void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_qp_init_attr init;

	if (!made(!ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					 IBV_QP_ACCESS_FLAGS)))
		return;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = *gid;
	attr.ah_attr.grh.sgid_index = 1;
	attr.ah_attr.grh.hop_limit = 1;
	if (!made(!ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					 IBV_QP_MIN_RNR_TIMER)))
		return;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.max_rd_atomic = 1;
	if (!made(!ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					 IBV_QP_MAX_QP_RD_ATOMIC)))
		return;
	made(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
}

static void with_cq(struct ibv_pd *pd, struct ibv_cq *cq, const union ibv_gid *gid)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 2,
			 .max_recv_sge = 2 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	made(!ibv_req_notify_cq(cq, 0));
	if (!made(!!qp))
		return;
	connect_qp(qp, gid);
	GONE(ibv_destroy_qp(qp));
}

static void with_pd(struct ibv_context *ctx, struct ibv_pd *pd)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_mr *small = ibv_reg_mr(pd, memory, SMALL, access);
	struct ibv_mr *large = ibv_reg_mr(pd, memory + SMALL, LARGE, access);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_cq *cq = ibv_create_cq(ctx, 100, NULL, channel, 0);
	struct ibv_alloc_dm_attr dm_attr = { .length = 2 * SMALL };
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &dm_attr);
	struct ibv_mr *dm_mr;
	union ibv_gid gid;

	made(!!channel);
	made(!!small);
	made(!!large);
	made(!!mw);
	/* A region whose re-registration fails can only be removed. */
	if (small)
		made(!ibv_rereg_mr(small, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				   memory + SMALL + LARGE, LARGE, 0));
	if (made(!!cq)) {
		if (made(!ibv_query_gid(ctx, 1, 1, &gid)))
			with_cq(pd, cq, &gid);
		GONE(ibv_destroy_cq(cq));
	}
	if (made(!!dm)) {
		dm_mr = ibv_reg_dm_mr(pd, dm, 0, SMALL, IBV_ACCESS_ZERO_BASED);
		if (made(!!dm_mr))
			GONE(ibv_dereg_mr(dm_mr));
		GONE(ibv_free_dm(dm));
	}
	if (mw)
		GONE(ibv_dealloc_mw(mw));
	if (large)
		GONE(ibv_dereg_mr(large));
	if (small)
		GONE(ibv_dereg_mr(small));
	if (channel)
		GONE(ibv_destroy_comp_channel(channel));
}

static void use_context(struct ibv_context *ctx)
{
	struct ibv_device_attr attr;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	made(!ibv_query_device(ctx, &attr));
	if (made(!!pd)) {
		with_pd(ctx, pd);
		GONE(ibv_dealloc_pd(pd));
	}
}

/*
 * Makes a context by the old system call. In Linux 6.12 the ioctl of libibverbs loses a reference
 * to the task when the driver has no memory (uverbs_std_types_device.c), and kmemleak reports that.
 */
static void open_context(const char *path)
{
	struct {
		struct ib_uverbs_get_context_resp core;
		struct urdma_alloc_ucontext_resp drv;
	} resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context core;
	} cmd = { .hdr = { .command = IB_USER_VERBS_CMD_GET_CONTEXT,
			   .in_words = sizeof(cmd) / 4,
			   .out_words = sizeof(resp) / 4 },
		  .core = { .response = (uintptr_t)&resp } };
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (!made(fd >= 0))
		return;
	if (made(write(fd, &cmd, sizeof(cmd)) == (ssize_t)sizeof(cmd)))
		close(resp.core.async_fd);
	close(fd);
}

/* One round, in which the Nth allocation fails. Returns whether there were that many. */
static int use(struct ibv_context *ctx, unsigned long n)
{
	char path[128];
	unsigned long rest;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", ctx->device->dev_name);
	fail_nth(n);
	open_context(path);
	use_context(ctx);
	rest = left();
	fail_nth(0);
	return !rest;
}

int main(int argc, char **argv)
{
	unsigned long step, n, rounds = 0, without = 0;
	struct ibv_context *ctx;

	if (argc < 2) {
		fprintf(stderr, "usage: faults DEVICE [STEP]\n");
		return 1;
	}
	step = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	nth = open("/proc/self/fail-nth", O_RDWR);
	memory = aligned_alloc(4096, SMALL + 2 * LARGE);
	ctx = open_device(argv[1]);
	if (nth < 0 || !memory || !step || !ctx) {
		perror("faults");
		return 1;
	}
	memset(memory, 1, SMALL + 2 * LARGE);
	use(ctx, 0);
	if (failed) {
		fprintf(stderr, "faults: %lu calls fail without a fault\n", failed);
		return 1;
	}
	for (n = 1;; n += step) {
		unsigned long before = failed;

		if (!use(ctx, n))
			break;
		rounds++;
		without += failed == before;
	}
	failed = 0;
	use(ctx, 0);
	if (failed) {
		fprintf(stderr, "faults: %lu calls fail after the last fault\n", failed);
		return 1;
	}
	GONE(ibv_close_device(ctx));
	printf("%s: %lu of about %lu allocations failed, %lu of them without a failed call\n",
	       argv[1], rounds, n, without);
	return 0;
}
