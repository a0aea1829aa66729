// SPDX-License-Identifier: Apache-2.0
/*
 * regions DEVICE: memory regions of kinds that few programs use. Two connected QPs of the device
 * move data through them, and every byte is compared.
 *
 *  - A dma-buf of udmabuf, which is memory of a memfd: as source and target, at an offset, with an
 *    address of its own; registered again (refused); gone before its region; files that are none.
 *  - Empty regions: no access is in their range.
 *  - Zero-based regions, which begin anywhere in a page, and windows of both types that begin at 0
 *    or not, on such regions and on others: all opcodes, by lkey and rkey, and registered again.
 *  - Huge pages (two of 2 MB have to be free): the NIC gets pages of this size.
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
static const int ZERO = IBV_ACCESS_ZERO_BASED;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
/* The first QP posts, the second one responds. */
static struct ibv_qp *qp[2];
static uint8_t *plain;
static struct ibv_mr *plain_mr;

/* Moves them to RTS, also from ERR. */
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
		WANT(!connect_rc(qp[q], (unsigned int)ALL | IBV_ACCESS_REMOTE_ATOMIC,
				 (uint8_t)gid[i].gid_index, IBV_MTU_1024, psn,
				 &(struct rc_end){ gid[i].gid, qp[!q]->qp_num, psn }));
}

/* The next completion. After an error the QPs are connected again. */
static enum ibv_wc_status completion(void)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		;
	WANT(n == 1);
	if (wc.status != IBV_WC_SUCCESS)
		connect_both();
	return wc.status;
}

/* Posts a WRITE or READ; returns the status of its completion. */
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

	WANT(!ibv_post_send(qp[0], &wr, &bad));
	return completion();
}

/* Adds 1 to a word of the peer; the old value is written to the start of plain. */
static enum ibv_wc_status add_one(uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)plain, 8, plain_mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.atomic = { .remote_addr = remote,
						 .compare_add = 1,
						 .rkey = rkey } },
			   *bad;

	WANT(!ibv_post_send(qp[0], &wr, &bad));
	return completion();
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
	/* A part of it, at another address. */
	mr = ibv_reg_dmabuf_mr(pd, offset, length, iova + 100, fd, ALL);
	WANT(mr && mr->length == length);
	fill(at, SIZE, 1);
	memcpy(image, at, SIZE);
	fill(plain, SIZE, 2);
	/* into it, in both ways: as the target of a WRITE, and of a READ */
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
	/* a byte before it and a byte after it */
	WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, iova + 99, mr->rkey, 1) ==
	     IBV_WC_REM_ACCESS_ERR);
	WANT(transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey, iova + 100 + 1, mr->rkey,
		      length) == IBV_WC_REM_ACCESS_ERR);
	/* What a refused WRITE leaves within the region is undefined. */
	WANT(!memcmp(at, image, offset));
	memcpy(image, at, SIZE);
	/* Its pages cannot be pinned again. */
	WANT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	WANT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, plain, SIZE, 0));
	/* The region holds the memory: the file may be closed, and the mapping removed. */
	close(fd);
	WANT(!munmap(at, SIZE));
	WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, iova + 100, mr->rkey,
		       length));
	WANT(!memcmp(plain, image + offset, length));
	WANT(!ibv_dereg_mr(mr));
	WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, iova + 100, mr->rkey,
		      1) == IBV_WC_REM_ACCESS_ERR);

	/* A read-only region does not become a writable one. */
	fd = make_dmabuf(&at);
	mr = ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, fd, IBV_ACCESS_REMOTE_READ);
	WANT(mr);
	WANT(transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey, 0, mr->rkey, 1) ==
	     IBV_WC_REM_ACCESS_ERR);
	WANT(!ibv_dereg_mr(mr));
	/* Beyond the buffer, an address with another offset in its page, nothing, not a dma-buf. */
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
	/* An empty access is valid at any address. */
	WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, (uintptr_t)plain,
		       mr->rkey, 0));
	/* It may be re-registered with memory. */
	WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
	WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS, NULL,
			   plain, SIZE, ALL));
	fill(plain, SIZE, 3);
	WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey,
		       (uintptr_t)plain + SIZE / 2, mr->rkey, SIZE / 2));
	WANT(!memcmp(plain, plain + SIZE / 2, SIZE / 2));
	WANT(!ibv_dereg_mr(mr));
}

/* The range of a key: length bytes at p, with addresses from `first`. */
struct opened {
	uint8_t *p;
	uint64_t first;
	uint32_t key, length;
};

/* The whole range, in both directions, and ATOMICs where they are aligned in memory. */
static void check_through(const struct opened *o)
{
	const uint64_t word = (o->first + 7) & ~(uint64_t)7;
	uint8_t *at = o->p + (word - o->first);
	uint64_t value;

	WANT(o->length <= SIZE);
	fill(plain, o->length, o->key);
	WANT(!transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey, o->first, o->key,
		       o->length));
	WANT(!memcmp(o->p, plain, o->length));
	fill(o->p, o->length, o->key + 1);
	WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, o->first + 1, o->key,
		       o->length - 1));
	WANT(!memcmp(o->p + 1, plain, o->length - 1));
	if ((uintptr_t)at % 8)
		return;
	memcpy(&value, at, 8);
	WANT(!add_one(word, o->key));
	WANT(!memcmp(plain, &value, 8));
	value++;
	WANT(!memcmp(at, &value, 8));
}

#define REFUSALS 4

/* Each one ends the connection. */
static void check_refused(const struct opened *o, int which)
{
	const uint64_t word = (o->first + 7) & ~(uint64_t)7;
	const uint64_t far = o->first ? 0 : (uintptr_t)o->p;
	uint8_t before[16];

	memcpy(before, o->p, 16);
	switch (which) {
	case 0: /* behind it */
		WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey,
			      o->first + o->length - 7, o->key, 8) == IBV_WC_REM_ACCESS_ERR);
		break;
	case 1: /* before it */
		WANT(transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey, o->first - 1,
			      o->key, 1) == IBV_WC_REM_ACCESS_ERR);
		break;
	case 2: /* counted from the other base */
		WANT(transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey, far, o->key,
			      1) == IBV_WC_REM_ACCESS_ERR);
		break;
	default: /* not aligned in memory */
		if ((uintptr_t)(o->p + (word - o->first)) % 8)
			WANT(add_one(word, o->key) == IBV_WC_REM_ACCESS_ERR);
		break;
	}
	WANT(!memcmp(before, o->p, 16));
}

/* A window of either type on a part of a region. */
static void bind(struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr, uint32_t length, int flags)
{
	const struct ibv_mw_bind_info info = {
		mr, addr, length, (unsigned int)(flags | ALL) | IBV_ACCESS_REMOTE_ATOMIC
	};
	struct ibv_mw_bind type_1 = { .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED,
				  .bind_mw = { mw, ibv_inc_rkey(mw->rkey), info } },
			   *bad;

	if (mw->type == IBV_MW_TYPE_1) {
		WANT(!ibv_bind_mw(qp[1], mw, &type_1));
	} else {
		WANT(!ibv_post_send(qp[1], &wr, &bad));
		mw->rkey = wr.bind_mw.rkey;
	}
	WANT(completion() == IBV_WC_SUCCESS);
}

static void check_zero_windows(struct ibv_mr *mr, uint8_t *p, uint64_t first, uint32_t length)
{
	for (int i = 0; i < 4; i++) {
		const int zero = i & 1 ? ZERO : 0;
		struct ibv_mw *mw = ibv_alloc_mw(pd, i & 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
		const uint32_t from = 4100 + 3 * (uint32_t)i;
		struct opened o = { p + from, zero ? 0 : first + from, 0, length - from - 50 };

		WANT(mw);
		for (int k = -1; k < REFUSALS; k++) {
			/* A type 2 window ended with the connection; otherwise it ends now. */
			if (mw->type == IBV_MW_TYPE_2)
				connect_both();
			bind(mw, mr, first + from, o.length, zero);
			o.key = mw->rkey;
			if (k < 0)
				check_through(&o);
			else
				check_refused(&o, k);
		}
		/* A region with bound windows cannot be destroyed. */
		if (mw->type == IBV_MW_TYPE_1)
			WANT(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL) &&
			     errno == EBUSY);
		WANT(!ibv_dealloc_mw(mw));
	}
}

static void check_zero_based(void)
{
	static const uint32_t start[] = { 0, 8, 1234, 4095, 2 * PAGE + 1 };
	const int rights = ALL | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
	const uint32_t length = 40001, large = 3u << 20;
	uint8_t *memory = aligned_alloc(PAGE, SIZE), *big = aligned_alloc(PAGE, large + PAGE);
	struct ibv_sge sge;
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_mr *mr;
	uint8_t *at;
	int fd;

	WANT(memory && big);
	for (size_t i = 0; i < sizeof(start) / sizeof(start[0]); i++) {
		struct opened o = { memory + start[i], 0, 0, length };
		struct ibv_sge here = { (uintptr_t)plain, length, plain_mr->lkey };

		mr = ibv_reg_mr(pd, o.p, length, rights | ZERO);
		WANT(mr && mr->addr == o.p && mr->length == length);
		o.key = mr->rkey;
		check_through(&o);
		for (int k = 0; k < REFUSALS; k++)
			check_refused(&o, k);
		/* as source, as target of a READ, and to receive into */
		fill(o.p, length, 4);
		WANT(!transfer(IBV_WR_RDMA_WRITE, 1, mr->lkey, (uintptr_t)plain, plain_mr->rkey,
			       length - 1));
		WANT(!memcmp(plain, o.p + 1, length - 1));
		fill(plain, length, 5);
		WANT(!transfer(IBV_WR_RDMA_READ, 0, mr->lkey, (uintptr_t)plain, plain_mr->rkey,
			       length));
		WANT(!memcmp(plain, o.p, length));
		fill(plain, length, 6);
		sge = (struct ibv_sge){ 0, length, mr->lkey };
		send.sg_list = &here;
		WANT(!ibv_post_recv(qp[1], &recv, &bad_recv) && !ibv_post_send(qp[0], &send, &bad));
		WANT(!completion() && !completion());
		WANT(!memcmp(plain, o.p, length));
		WANT(transfer(IBV_WR_RDMA_WRITE, 1, mr->lkey, (uintptr_t)plain, plain_mr->rkey,
			      length) == IBV_WC_LOC_PROT_ERR);
		WANT(transfer(IBV_WR_RDMA_WRITE, (uintptr_t)o.p, mr->lkey, (uintptr_t)plain,
			      plain_mr->rkey, 8) == IBV_WC_LOC_PROT_ERR);
		check_zero_windows(mr, o.p, 0, length);
		/* Re-registered: other rights; other memory; addresses of the program, and again
		 * from 0. */
		WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ZERO));
		check_refused(&o, 0);
		WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, 0, o.key, 1) ==
		     IBV_WC_REM_ACCESS_ERR);
		WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, rights));
		o.first = (uintptr_t)o.p;
		check_through(&o);
		for (int k = 0; k < REFUSALS; k++)
			check_refused(&o, k);
		check_zero_windows(mr, o.p, o.first, length);
		WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION,
				   NULL, big + 77, length, rights | ZERO));
		o.p = big + 77;
		o.first = 0;
		check_through(&o);
		WANT(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory + 99, length,
				   0));
		o.p = memory + 99;
		check_through(&o);
		for (int k = 0; k < REFUSALS; k++)
			check_refused(&o, k);
		WANT(!ibv_dereg_mr(mr));
	}

	/* One with many pages, at its last pages. */
	mr = ibv_reg_mr(pd, big + 123, large, rights | ZERO);
	WANT(mr);
	fill(big + 123, large, 7);
	WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, large - SIZE, mr->rkey,
		       SIZE));
	WANT(!memcmp(plain, big + 123 + large - SIZE, SIZE));
	WANT(!ibv_dereg_mr(mr));
	/* An address is ignored then, but the kernel requires its offset in the page. */
	mr = ibv_reg_mr_iova(pd, memory + 5, length, 0x123456789005, rights | ZERO);
	WANT(mr);
	check_through(&(struct opened){ memory + 5, 0, mr->rkey, length });
	WANT(!ibv_dereg_mr(mr));
	WANT(!ibv_reg_mr_iova(pd, memory + 5, length, 0, rights | ZERO) && errno == EINVAL);
	/* Without a byte. */
	mr = ibv_reg_mr(pd, memory + 5, 0, rights | ZERO);
	WANT(mr);
	WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey, 0, mr->rkey, 1) ==
	     IBV_WC_REM_ACCESS_ERR);
	WANT(!ibv_dereg_mr(mr));
	/* Not with page faults. The kernel refuses a dma-buf of this kind. */
	WANT(!ibv_reg_mr(pd, memory, length, rights | ZERO | IBV_ACCESS_ON_DEMAND));
	fd = make_dmabuf(&at);
	WANT(!ibv_reg_dmabuf_mr(pd, 0, SIZE, 0, fd, ALL | ZERO) && errno == EINVAL);
	close(fd);
	WANT(!munmap(at, SIZE));
	free(memory);
	free(big);
}

/* With the flag and without it, from anywhere in the first page to anywhere in the second. */
static void check_huge(const char *device)
{
	static const int flags[] = { 0, IBV_ACCESS_HUGETLB };
	const size_t huge = 2 << 20, length = huge + SIZE;
	uint8_t *memory = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	char command[200];

	WANT(memory != MAP_FAILED);
	/* Pages of 2 MB, or larger ones where the memory happens to be contiguous. */
	snprintf(command, sizeof(command),
		 "rdma resource show mr dev %s mrlen %zu -dd | "
		 "grep -Eq 'drv_page_shift (2[1-9]|3[01]) '",
		 device, length);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		uint8_t *p = memory + 12345 + i;
		struct ibv_mr *mr = ibv_reg_mr(pd, p, length, ALL | flags[i]);

		WANT(mr);
		WANT(!system(command));
		fill(plain, SIZE, 8);
		/* over the boundary of the pages, and to the end */
		WANT(!transfer(IBV_WR_RDMA_WRITE, (uintptr_t)plain, plain_mr->lkey,
			       (uintptr_t)memory + huge - SIZE / 2, mr->rkey, SIZE));
		WANT(!memcmp(plain, memory + huge - SIZE / 2, SIZE));
		WANT(!transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey,
			       (uintptr_t)p + length - 5000, mr->rkey, 5000));
		WANT(!memcmp(plain, p + length - 5000, 5000));
		WANT(transfer(IBV_WR_RDMA_READ, (uintptr_t)plain, plain_mr->lkey,
			      (uintptr_t)p + length - 5000, mr->rkey,
			      5001) == IBV_WC_REM_ACCESS_ERR);
		WANT(!ibv_dereg_mr(mr));
		WANT(system(command));
	}
	WANT(!munmap(memory, 2 * huge));
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1 }
	};

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
	check_zero_based();
	check_huge(argv[1]);
	WANT(!ibv_destroy_qp(qp[0]) && !ibv_destroy_qp(qp[1]) && !ibv_destroy_cq(cq) &&
	     !ibv_dereg_mr(plain_mr));
	WANT(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	printf("ok: regions of a dma-buf, empty ones, zero-based ones and their windows, of huge "
	       "pages\n");
	return 0;
}
