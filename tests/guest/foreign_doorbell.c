// SPDX-License-Identifier: Apache-2.0
/*
 * foreign_doorbell DEVICE: a child process has a QP and a CQ on the device; the parent, with a
 * context of its own, rings them in its own doorbell page. The page is found in /proc/self/maps:
 * the provider has mapped it from the uverbs device. Exit status 0 when the page was found and rung
 * and the child's objects are unchanged. The caller checks the NIC's counter.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device.h"
#include "urdma_hw.h"

static volatile uint64_t *doorbell_page(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start;
	char line[512];
	volatile uint64_t *page = NULL;

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/dev/infiniband/uverbs") && sscanf(line, "%lx-", &start) == 1)
			page = (volatile uint64_t *)start;
	if (maps)
		fclose(maps);
	return page;
}

/* The victim: prints its numbers, waits for the attack to be over, checks that it had no effect. */
static int victim(const char *name, int tell, int wait_fd)
{
	struct ibv_context *ctx = open_device(name);
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 64, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_wc wc;
	char c;

	if (!qp ||
	    ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
		fprintf(stderr, "foreign_doorbell: cannot make a QP\n");
		return 1;
	}
	if (write(tell, &qp->qp_num, 4) != 4 || read(wait_fd, &c, 1) != 1)
		return 1;
	if (ibv_poll_cq(cq, 1, &wc)) {
		fprintf(stderr, "foreign_doorbell: the victim has a completion (status %d)\n",
			wc.status);
		return 1;
	}
	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != IBV_QPS_INIT) {
		fprintf(stderr, "foreign_doorbell: the victim's QP changed to state %d\n",
			attr.qp_state);
		return 1;
	}
	return ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) ||
	       ibv_close_device(ctx);
}

int main(int argc, char **argv)
{
	volatile uint64_t *page;
	struct ibv_context *ctx;
	int up[2], down[2], status;
	uint32_t qpn;
	pid_t child;

	if (argc != 2 || pipe(up) || pipe(down)) {
		fprintf(stderr, "usage: foreign_doorbell DEVICE\n");
		return 2;
	}
	child = fork();
	if (!child)
		_exit(victim(argv[1], up[1], down[0]));
	close(up[1]);
	if (child < 0 || read(up[0], &qpn, 4) != 4)
		return 1;
	ctx = open_device(argv[1]);
	page = ctx ? doorbell_page() : NULL;
	if (!page) {
		fprintf(stderr, "foreign_doorbell: no doorbell page is mapped\n");
		return 1;
	}
	for (unsigned int i = 1; i <= 8; i++) {
		page[URDMA_DB_SQ / 8] = (uint64_t)i << 32 | qpn;
		page[URDMA_DB_RQ / 8] = (uint64_t)i << 32 | qpn;
	}
	/* Posted writes: give the NIC time before the victim looks. */
	usleep(200000);
	if (write(down[1], "x", 1) != 1 || waitpid(child, &status, 0) != child)
		return 1;
	ibv_close_device(ctx);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
