// SPDX-License-Identifier: Apache-2.0
/*
 * regions DEVICE: memory regions of kinds that few programs use. Two QPs of the device, which are
 * connected with each other, move data through them, and every byte is compared.
 *
 *  - A dma-buf of udmabuf, which is memory of a memfd: as source and target, at an offset, with an
 *    address of its own; registered again (refused); gone before its region; files that are none.
 *  - Empty regions: no access is in their range.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

#define PAGE  4096
#define PAGES 16
#define SIZE  (PAGE * PAGES)
#define PORT  1

#define WANT(cond)                                                                            \
	do {                                                                                  \
		if (!(cond)) {                                                                \
			fprintf(stderr, "regions: line %d: not so: %s, errno %d\n", __LINE__, \
				#cond, errno);                                                \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

static const int ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
/* The first posts, the second answers. */
static struct ibv_qp *qp[2];
static uint8_t *plain;
static struct ibv_mr *plain_mr;

/* To RTS, also out of ERR. */
static void connect_both(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	const uint32_t psn = random_psn();
	struct ibv_gid_entry gid[64];
	ssize_t n = ibv_query_gid_table(ctx, gid, 64, 0), i;

	for (i = 0; i < n && gid[i].gid_type != IBV_GID_TYPE_ROCE_V2; i++)
		;
	WANT(i < n);
	for (int q = 0; q < 2; q++)
		WANT(!ibv_modify_qp(qp[q], &reset, IBV_QP_STATE));
	for (int q = 0; q < 2; q++)
		WANT(!connect_rc(qp[q], (unsigned int)ALL, (uint8_t)gid[i].gid_index, IBV_MTU_1024,
				 psn, &(struct rc_end){ gid[i].gid, qp[!q]->qp_num, psn }));
}

/* A WRITE or READ; the status of its completion. After an error the QPs are brought up again. */
static enum ibv_wc_status transfer(enum ibv_wr_opcode opcode, uint64_t local, uint32_t lkey,
				   uint64_t remote, uint32_t rkey, uint32_t length)
{
	struct ibv_sge sge = { local, length, lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { remote, rkey } },
			   *bad;
	struct ibv_wc wc;
	int n;

	WANT(!ibv_post_send(qp[0], &wr, &bad));
	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	WANT(n == 1);
	if (wc.status != IBV_WC_SUCCESS)
		connect_both();
	return wc.status;
}

static void fill(uint8_t *p, size_t length, uint32_t seed)
{
	for (size_t i = 0; i < length; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(seed >> 24);
	}
}

/* A dma-buf of a memfd, which is mapped at *at. */
static int make_dmabuf(uint8_t **at)
{
	int control = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int memfd = memfd_create("regions", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	struct udmabuf_create create = { .memfd = (uint32_t)memfd, .size = SIZE };
	int fd;

	WANT(control >= 0 && memfd >= 0);
	WANT(!ftruncate(memfd, SIZE) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	*at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	WANT(*at != MAP_FAILED);
	fd = ioctl(control, UDMABUF_CREATE, &create);
	WANT(fd >= 0);
	close(control);
	close(memfd);
	return fd;
}

static void check_dmabuf(void)
{
	const uint64_t iova = 0x123456789000, offset = 2 * PAGE + 100;
	const uint32_t length = SIZE - 2 * PAGE - 100;
	uint8_t *at, *image = malloc(SIZE);
	int fd = make_dmabuf(&at);
	struct ibv_mr *mr;

	WANT(image);
	/* Part of it, under another address. */
	mr = ibv_reg_dmabuf_mr(pd, offset, length, iova + 100, fd, ALL);
	WANT(mr && mr->length == length);
	fill(at, SIZE, 1);
	memcpy(image, at, SIZE);
	fill(plain, SIZE, 2);
	/* into it, both ways: as the target of a WRITE, and of a READ */
	WANT(!transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey, iova + 100 + 5000,
		       mr->rkey, 20001));
	memcpy(image + offset + 5000, plain, 20001);
	WANT(!transfer(IBV_WR_RDMA_READ, iova + 100, mr->lkey, (uintptr_t)plain + 7, plain_mr->rkey,
		       4999));
	memcpy(image + offset, plain + 7, 4999);
	WANT(!memcmp(at, image, SIZE));
	/* and out of it, from its first byte to its last */
	WANT(!transfer(IBV_WR_RDMA_WRITE, iova + 100, mr->lkey, (uintptr_t)plain, plain_mr->rkey,
		       length));
	WANT(!memcmp(plain, image + offset, length));
	/* a byte before it and a byte behind it */
	WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, iova + 99, mr->rkey, 1) ==
	     IBV_WC_REM_ACCESS_ERR);
	WANT(transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey, iova + 100 + 1, mr->rkey,
		      length) == IBV_WC_REM_ACCESS_ERR);
	/* What a refused WRITE leaves within the region is open. */
	WANT(!memcmp(at, image, offset));
	memcpy(image, at, SIZE);
	/* Its pages cannot be pinned again. */
	WANT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	WANT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, plain, SIZE, 0));
	/* The region holds the memory: the file may go, and the mapping. */
	close(fd);
	WANT(!munmap(at, SIZE));
	WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, iova + 100, mr->rkey,
		       length));
	WANT(!memcmp(plain, image + offset, length));
	WANT(!ibv_dereg_mr(mr));
	WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, iova + 100, mr->rkey,
		      1) == IBV_WC_REM_ACCESS_ERR);

	/* For reading alone, a region does not become one for writing. */
	fd = make_dmabuf(&at);
	mr = ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, fd, IBV_ACCESS_REMOTE_READ);
	WANT(mr);
	WANT(transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey, 0, mr->rkey, 1) ==
	     IBV_WC_REM_ACCESS_ERR);
	WANT(!ibv_dereg_mr(mr));
	/* Beyond the buffer, an address that is at another place of its page, nothing, no dma-buf.
	 */
	WANT(!ibv_reg_dmabuf_mr(pd, PAGE, SIZE, PAGE, fd, ALL) && errno == EINVAL);
	WANT(!ibv_reg_dmabuf_mr(pd, UINT64_MAX - PAGE + 1, 2 * PAGE, 0, fd, ALL));
	WANT(!ibv_reg_dmabuf_mr(pd, 0, PAGE, 8, fd, ALL) && errno == EINVAL);
	WANT(!ibv_reg_dmabuf_mr(pd, 0, 0, 0, fd, ALL));
	WANT(!ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, ALL | 1 << 19));
	WANT(!ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, fd, IBV_ACCESS_REMOTE_WRITE));
	WANT(!ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, -1, ALL) && errno == EBADF);
	WANT(!ibv_reg_dmabuf_mr(pd, 0, PAGE, 0, ctx->cmd_fd, ALL) && errno == EINVAL);
	close(fd);
	WANT(!munmap(at, SIZE));
	free(image);
}

static void check_empty(void)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, plain, 0, ALL);

	WANT(mr && mr->length == 0);
	for (uint32_t length = 1; length <= PAGE; length += PAGE - 1) {
		WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, (uintptr_t)plain,
			      mr->rkey, length) == IBV_WC_REM_ACCESS_ERR);
		WANT(transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, mr->lkey, (uintptr_t)plain,
			      plain_mr->rkey, length) == IBV_WC_LOC_PROT_ERR);
	}
	/* Nothing is fine anywhere. */
	WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, (uintptr_t)plain,
		       mr->rkey, 0));
	/* It may become one with memory. */
	WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
	WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
			   plain, SIZE, ALL));
	fill(plain, SIZE, 3);
	WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey,
		       (uintptr_t)plain + SIZE / 2, mr->rkey, SIZE / 2));
	WANT(!memcmp(plain, plain + SIZE / 2, SIZE / 2));
	WANT(!ibv_dereg_mr(mr));
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 4, .max_send_sge = 1 } };

	if (argc != 2) {
		fprintf(stderr, "usage: regions DEVICE\n");
		return 2;
	}
	ctx = open_device(argv[1]);
	WANT(ctx);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	plain = aligned_alloc(PAGE, SIZE);
	WANT(pd && cq && plain);
	plain_mr = ibv_reg_mr(pd, plain, SIZE, ALL);
	init.send_cq = init.recv_cq = cq;
	qp[0] = ibv_create_qp(pd, &init);
	qp[1] = ibv_create_qp(pd, &init);
	WANT(plain_mr && qp[0] && qp[1]);
	connect_both();
	check_dmabuf();
	check_empty();
	WANT(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]) && !ibv_destroy_cq(cq) &&
	     !ibv_dereg_mr(plain_mr));
	WANT(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	printf("ok: regions of a dma-buf, and empty ones\n");
	return 0;
}
