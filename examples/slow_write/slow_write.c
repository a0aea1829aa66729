// SPDX-License-Identifier: Apache-2.0
/*
 * slow_write [-n COUNT] [-s SIZE] [-b BATCH] [-w WINDOW] [-r MB] [-H] [-t TIMEOUT]: WRITEs as many
 * programs send them, fast or slow.
 *
 * urdma0 writes COUNT messages of SIZE bytes into the memory of urdma1, with up to WINDOW of them
 * in flight. BATCH work requests go into one call of ibv_post_send, and so have one doorbell.
 * Message i comes from one place of the sender's region and goes to the same place of the
 * receiver's. There are WINDOW places side by side. With -r they lie anywhere in regions of that
 * many megabytes, each place in a page of its own. With -H the regions consist of huge pages, else
 * of 4 KB pages. TIMEOUT is the ACK time-out of the QPs: 4.096 us times 2^TIMEOUT.
 *
 * docs/analysis.md shows what each of them costs. Exit status 0 if all data were right.
 */
#include <errno.h>
#include <error.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PORT	   1
#define MAX_WINDOW 128
#define PAGE	   4096
#define HUGE_PAGE  (2 << 20)

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_gid_entry gid;
	uint32_t psn;
	uint8_t *buf;
};

struct plan {
	uint32_t count, size, batch, window, timeout;
	bool huge;
	size_t region;	 /* bytes */
	uint32_t *place; /* of message i, in pages, or NULL: places side by side */
};

static void check(int err, const char *what)
{
	if (err)
		error(1, err, "%s", what);
}

static void *check_ptr(void *object, const char *what)
{
	check(object ? 0 : errno, what);
	return object;
}

/* A GID of RoCE v2: that of an IPv4 address, if there is one. */
static struct ibv_gid_entry find_gid(struct ibv_context *ctx)
{
	struct ibv_gid_entry e[256], *found = NULL;
	ssize_t n = ibv_query_gid_table(ctx, e, 256, 0);

	for (ssize_t i = 0; i < n && !(found && IN6_IS_ADDR_V4MAPPED(found->gid.raw)); i++)
		if (e[i].gid_type == IBV_GID_TYPE_ROCE_V2 && e[i].port_num == PORT &&
		    (!found || IN6_IS_ADDR_V4MAPPED(e[i].gid.raw)))
			found = &e[i];
	check(found ? 0 : ENOENT, "GID of RoCE v2");
	return *found;
}

/*
 * The pages have the size that the plan says, whatever the kernel does by default. Small ones are
 * touched in an order that leaves no two neighbours side by side in physical memory, as on a
 * machine that has run for long: in a guest that has just booted, the driver could join them.
 */
static void *get_memory(const struct plan *plan)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (plan->huge ? MAP_HUGETLB : 0);
	uint8_t *memory = mmap(NULL, plan->region, PROT_READ | PROT_WRITE, flags, -1, 0);

	check(memory == MAP_FAILED ? errno : 0,
	      plan->huge ? "mmap: write the number of huge pages into /proc/sys/vm/nr_hugepages"
			 : "mmap");
	if (!plan->huge)
		check(madvise(memory, plan->region, MADV_NOHUGEPAGE) ? errno : 0, "madvise");
	for (size_t odd = 0; odd < 2; odd++)
		for (size_t at = odd * PAGE; at < plan->region; at += 2 * PAGE)
			memory[at] = 0;
	return memory;
}

static void open_side(struct side *s, const char *name, const struct plan *plan)
{
	struct ibv_device **list = check_ptr(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { MAX_WINDOW, 1, 1, 1, 0 } };
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, i = 0;

	while (list[i] && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	check(list[i] ? 0 : ENODEV, name);
	s->ctx = check_ptr(ibv_open_device(list[i]), name);
	ibv_free_device_list(list);
	s->gid = find_gid(s->ctx);
	/* Random, so that packets of an earlier connection do not fit into this one. */
	s->psn = arc4random() & 0xffffff;
	s->buf = get_memory(plan);
	s->pd = check_ptr(ibv_alloc_pd(s->ctx), "ibv_alloc_pd");
	s->mr = check_ptr(ibv_reg_mr(s->pd, s->buf, plan->region, access), "ibv_reg_mr");
	s->cq = check_ptr(ibv_create_cq(s->ctx, MAX_WINDOW, NULL, NULL, 0), "ibv_create_cq");
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	s->qp = check_ptr(ibv_create_qp(s->pd, &init), "ibv_create_qp");
}

/* Two processes would tell each other GID, QP number, PSN, and address and rkey of the memory. */
static void connect_side(struct side *s, const struct side *peer, const struct plan *plan)
{
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024, /* fits into frames of 1500 bytes */
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.sq_psn = s->psn,
		.ah_attr.is_global = 1,
		.ah_attr.port_num = PORT,
		.ah_attr.grh = { peer->gid.gid, 0, (uint8_t)s->gid.gid_index, 64, 0 },
		.timeout = (uint8_t)plan->timeout,
		.retry_cnt = 7,
		.rnr_retry = 7, /* without end */
	};

	check(ibv_modify_qp(s->qp, &attr, init), "QP to INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(ibv_modify_qp(s->qp, &attr, rtr), "QP to RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(ibv_modify_qp(s->qp, &attr, rts), "QP to RTS");
}

static size_t offset(const struct plan *plan, uint32_t i)
{
	return plan->place ? (size_t)plan->place[i] * PAGE
			   : (size_t)(i % plan->window) * plan->size;
}

/* A list of n WRITEs from message `first` on, in one call. */
static void post(const struct plan *plan, struct side *from, struct side *to, uint32_t first,
		 uint32_t n)
{
	struct ibv_send_wr wr[MAX_WINDOW], *bad;
	struct ibv_sge sge[MAX_WINDOW];

	for (uint32_t k = 0; k < n; k++) {
		size_t at = offset(plan, first + k);

		sge[k] = (struct ibv_sge){ (uintptr_t)from->buf + at, plan->size, from->mr->lkey };
		wr[k] = (struct ibv_send_wr){
			.next = k + 1 < n ? &wr[k + 1] : NULL,
			.sg_list = &sge[k],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)to->buf + at, to->mr->rkey },
		};
	}
	check(ibv_post_send(from->qp, wr, &bad), "ibv_post_send");
}

static void transfer(const struct plan *plan, struct side *from, struct side *to)
{
	uint32_t posted = 0, completed = 0;
	struct ibv_wc wc[MAX_WINDOW];

	while (completed < plan->count) {
		uint32_t left = plan->count - posted, n = left < plan->batch ? left : plan->batch;
		int got;

		if (n && posted - completed + n <= plan->window) {
			post(plan, from, to, posted, n);
			posted += n;
			continue;
		}
		got = ibv_poll_cq(from->cq, MAX_WINDOW, wc);
		check(got < 0 ? EIO : 0, "ibv_poll_cq");
		for (int k = 0; k < got; k++)
			if (wc[k].status)
				error(1, 0, "WRITE %u: %s", completed + (uint32_t)k,
				      ibv_wc_status_str(wc[k].status));
		completed += (uint32_t)got;
	}
}

static void close_side(struct side *s, const struct plan *plan)
{
	check(ibv_destroy_qp(s->qp), "ibv_destroy_qp");
	check(ibv_destroy_cq(s->cq), "ibv_destroy_cq");
	check(ibv_dereg_mr(s->mr), "ibv_dereg_mr");
	check(ibv_dealloc_pd(s->pd), "ibv_dealloc_pd");
	check(ibv_close_device(s->ctx), "ibv_close_device");
	munmap(s->buf, plan->region);
}

static uint32_t number(const char *text, uint32_t max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (!*text || *end || !value || value > max)
		error(2, 0, "usage: '%s' is not a number from 1 to %u", text, max);
	return (uint32_t)value;
}

static struct plan parse(int argc, char **argv)
{
	struct plan plan = {
		.count = 4000,
		.size = 64,
		.batch = 32,
		.window = MAX_WINDOW,
		.timeout = 8, /* 1 ms */
	};
	uint32_t megabytes = 0;
	int option;

	while ((option = getopt(argc, argv, "n:s:b:w:r:Ht:")) != -1) {
		switch (option) {
		case 'n':
			plan.count = number(optarg, 1000000);
			break;
		case 's':
			plan.size = number(optarg, 1 << 20);
			break;
		case 'b':
			plan.batch = number(optarg, MAX_WINDOW);
			break;
		case 'w':
			plan.window = number(optarg, MAX_WINDOW);
			break;
		case 'r':
			megabytes = number(optarg, 1024);
			break;
		case 'H':
			plan.huge = true;
			break;
		case 't':
			plan.timeout = number(optarg, 31);
			break;
		default:
			optind = argc + 1;
		}
	}
	if (optind != argc)
		error(2, 0,
		      "usage: slow_write [-n COUNT] [-s SIZE] [-b BATCH] [-w WINDOW] [-r MB] [-H] "
		      "[-t TIMEOUT]");
	if (plan.batch > plan.window)
		error(2, 0, "usage: BATCH is at most WINDOW");
	if (megabytes && plan.size > PAGE)
		error(2, 0, "usage: with -r SIZE is at most %d", PAGE);
	plan.region = megabytes ? (size_t)megabytes << 20 : (size_t)plan.window * plan.size;
	if (plan.huge)
		plan.region = (plan.region + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	if (megabytes) {
		plan.place = check_ptr(calloc(plan.count, sizeof(*plan.place)), "calloc");
		for (uint32_t i = 0; i < plan.count; i++)
			plan.place[i] = arc4random_uniform((uint32_t)(plan.region / PAGE));
	}
	return plan;
}

/* Data that differ from place to place. */
static void fill(const struct plan *plan, struct side *s)
{
	for (uint32_t i = 0; i < plan->count; i++)
		for (uint32_t k = 0; k < plan->size; k++)
			s->buf[offset(plan, i) + k] = (uint8_t)(k * 7 + offset(plan, i) / 64 + 1);
}

int main(int argc, char **argv)
{
	struct plan plan = parse(argc, argv);
	struct side from = { 0 }, to = { 0 };

	open_side(&from, "urdma0", &plan);
	open_side(&to, "urdma1", &plan);
	connect_side(&from, &to, &plan);
	connect_side(&to, &from, &plan);
	fill(&plan, &from);
	transfer(&plan, &from, &to);
	for (uint32_t i = 0; i < plan.count; i++)
		if (memcmp(from.buf + offset(&plan, i), to.buf + offset(&plan, i), plan.size))
			error(1, 0, "WRITE %u: wrong data", i);
	printf("%u WRITEs of %u bytes, %u a doorbell: all right\n", plan.count, plan.size,
	       plan.batch);
	close_side(&from, &plan);
	close_side(&to, &plan);
	free(plan.place);
	return 0;
}
