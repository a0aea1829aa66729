// SPDX-License-Identifier: Apache-2.0
/*
 * Parent domains, thread domains and imported PDs in the provider: whose memory rings use, who
 * frees it, which objects are locked, and how long a domain exists.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fake_nic.h"
#include "fake_urdma.h"
#include "fake_verbs.h"

#define DEPTH 16
#define CQES  96

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

/* Allocations that were not freed. */
static struct {
	void *at;
	size_t size;
	uint64_t type;
} given[16];
static unsigned int calls;
static enum { TAKE, LEAVE, REFUSE } wish;
static int cookie;
static struct ibv_pd *domain;

static void *take(struct ibv_pd *of, void *context, size_t size, size_t alignment, uint64_t type)
{
	void *p;

	calls++;
	assert_ptr_equal(of, domain);
	assert_ptr_equal(context, &cookie);
	assert_int_equal(alignment, sysconf(_SC_PAGESIZE));
	assert_int_equal(size % alignment, 0);
	if (wish != TAKE)
		return wish == LEAVE ? IBV_ALLOCATOR_USE_DEFAULT : NULL;
	p = aligned_alloc(alignment, size);
	assert_non_null(p);
	memset(p, 0xa5, size);
	for (unsigned int i = 0; i < 16; i++) {
		if (given[i].at)
			continue;
		given[i].at = p;
		given[i].size = size;
		given[i].type = type;
		return p;
	}
	fail();
	return NULL;
}

static void give_back(struct ibv_pd *of, void *context, void *ptr, uint64_t type)
{
	assert_ptr_equal(of, domain);
	assert_ptr_equal(context, &cookie);
	for (unsigned int i = 0; i < 16; i++) {
		if (given[i].at != ptr)
			continue;
		assert_int_equal(given[i].type, type);
		given[i].at = NULL;
		free(ptr);
		return;
	}
	fail();
}

/* Whether p lies in an allocation. */
static bool is_given(const void *p)
{
	for (unsigned int i = 0; i < 16; i++)
		if (given[i].at && (uintptr_t)p - (uintptr_t)given[i].at < given[i].size)
			return true;
	return false;
}

static unsigned int num_given(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 16; i++)
		n += !!given[i].at;
	return n;
}

static struct ibv_pd *make_domain(bool allocators, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
	struct ibv_pd *made;

	if (allocators) {
		attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		attr.alloc = take;
		attr.free = give_back;
		attr.pd_context = &cookie;
	}
	made = fake_ops->alloc_parent_domain(ctx, &attr);
	assert_non_null(made);
	assert_ptr_equal(made->context, ctx);
	assert_int_equal(made->handle, pd->handle);
	return made;
}

static int setup(void **state)
{
	(void)state;
	memset(given, 0, sizeof(given));
	calls = 0;
	wish = TAKE;
	fake_urdma_features = URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_SRQ | URDMA_RF_FEAT_MEM_MGT |
			      URDMA_RF_FEAT_MW_2B;
	ctx = fake_open();
	assert_non_null(ctx);
	pd = fake_ops->alloc_pd(ctx);
	assert_non_null(pd);
	cq = fake_ops->create_cq(ctx, CQES, NULL, 0);
	assert_non_null(cq);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_error = 0;
	assert_int_equal(num_given(), 0);
	assert_int_equal(fake_ops->destroy_cq(cq), 0);
	assert_int_equal(fake_ops->dealloc_pd(pd), 0);
	fake_close(ctx);
	return 0;
}

static struct ibv_qp *try_qp(struct ibv_pd *in)
{
	struct ibv_qp_init_attr attr = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	return fake_ops->create_qp(in, &attr);
}

static struct ibv_srq *try_srq(struct ibv_pd *in)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };

	return fake_ops->create_srq(in, &attr);
}

static struct ibv_cq_ex *try_cq(struct ibv_pd *in, uint32_t mask)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = CQES,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = mask,
		.parent_domain = in,
	};

	return fake_ops->create_cq_ex(ctx, &attr);
}

/* The rings of all objects lie where the allocator has put them, are zeroed, and are freed. */
static void test_allocator(void **state)
{
	struct ibv_cq_ex *own_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	(void)state;
	domain = make_domain(true, NULL);
	qp = try_qp(domain);
	assert_non_null(qp);
	assert_int_equal(calls, 2);
	assert_true(is_given(fake_urdma_sqe(0)) && is_given(fake_urdma_rqe(0)));
	assert_int_equal(fake_urdma_sqe(3)[5], 0);
	srq = try_srq(domain);
	assert_non_null(srq);
	assert_true(is_given(fake_urdma_srqe(srq, 0)));
	assert_int_equal(fake_urdma_srq_index(srq, 7), 0);
	own_cq = try_cq(domain, IBV_CQ_INIT_ATTR_MASK_PD);
	assert_non_null(own_cq);
	assert_int_equal(calls, 4);
	assert_int_equal(num_given(), 4);
	/* A ring that is not zeroed would seem to have CQEs. */
	assert_int_equal(ibv_poll_cq(ibv_cq_ex_to_cq(own_cq), 1, &wc), 0);

	/* Each of them holds a reference to the domain. */
	assert_int_equal(fake_ops->dealloc_pd(domain), EBUSY);
	assert_int_equal(fake_ops->destroy_qp(qp), 0);
	assert_int_equal(num_given(), 2);
	assert_int_equal(fake_ops->dealloc_pd(domain), EBUSY);
	assert_int_equal(fake_ops->destroy_srq(srq), 0);
	assert_int_equal(fake_ops->dealloc_pd(domain), EBUSY);
	assert_int_equal(fake_ops->destroy_cq(ibv_cq_ex_to_cq(own_cq)), 0);
	assert_int_equal(num_given(), 0);
	assert_int_equal(fake_ops->dealloc_pd(pd), EBUSY);
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
}

/* An allocator that leaves the allocation to us is not asked to free anything. */
static void test_left_to_us(void **state)
{
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	(void)state;
	domain = make_domain(true, NULL);
	wish = LEAVE;
	qp = try_qp(domain);
	assert_non_null(qp);
	wish = TAKE;
	srq = try_srq(domain);
	assert_non_null(srq);
	assert_int_equal(num_given(), 1);
	assert_int_equal(fake_ops->destroy_qp(qp), 0);
	assert_int_equal(fake_ops->destroy_srq(srq), 0);
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
}

/* Without memory no object is made, nothing stays behind, and the domain can be freed. */
static void test_no_memory(void **state)
{
	(void)state;
	domain = make_domain(true, NULL);
	wish = REFUSE;
	errno = 0;
	assert_null(try_qp(domain));
	assert_int_equal(errno, ENOMEM);
	assert_null(try_srq(domain));
	assert_null(try_cq(domain, IBV_CQ_INIT_ATTR_MASK_PD));
	wish = TAKE;
	fake_error = EDQUOT;
	assert_null(try_qp(domain));
	assert_null(try_srq(domain));
	assert_null(try_cq(domain, IBV_CQ_INIT_ATTR_MASK_PD));
	fake_error = 0;
	assert_int_equal(num_given(), 0);
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
}

/* A parent domain without an allocator, with a thread domain. */
static void test_thread_domain(void **state)
{
	struct ibv_td_init_attr bad = { .comp_mask = 1 }, good = { 0 };
	struct ibv_td *td;
	struct ibv_qp *qp;

	(void)state;
	errno = 0;
	assert_null(fake_ops->alloc_td(ctx, &bad));
	assert_int_equal(errno, EOPNOTSUPP);
	td = fake_ops->alloc_td(ctx, &good);
	assert_non_null(td);
	domain = make_domain(false, td);
	qp = try_qp(domain);
	assert_non_null(qp);
	assert_int_equal(calls, 0);
	assert_int_equal(fake_ops->dealloc_td(td), EBUSY);
	assert_int_equal(fake_ops->destroy_qp(qp), 0);
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
	assert_int_equal(fake_ops->dealloc_td(td), 0);
}

/* Replaces libc's function: counts the locks that are taken. */
static unsigned int locks;

int pthread_spin_lock(pthread_spinlock_t *lock)
{
	locks++;
	return pthread_spin_trylock(lock);
}

static struct ibv_qp *qp_with(struct ibv_pd *in, struct ibv_cq *with)
{
	struct ibv_qp_init_attr attr = { .send_cq = with,
					 .recv_cq = with,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp *qp = fake_ops->create_qp(in, &attr);

	assert_non_null(qp);
	qp->send_cq = qp->recv_cq = with;
	assert_int_equal(fake_ops->modify_qp(qp, &rts, IBV_QP_STATE), 0);
	return qp;
}

/*
 * Counts the locks that are taken when a QP, an SRQ and a CQ are used once in each way: a send, a
 * receive, a receive of the SRQ, a poll, an arming.
 */
static unsigned int locks_of(struct ibv_pd *in, uint32_t cq_mask, uint32_t cq_flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = CQES,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = cq_mask,
		.flags = cq_flags,
		.parent_domain = in,
	};
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { .wr_id = 1 }, *bad_recv;
	struct ibv_cq_ex *made = fake_ops->create_cq_ex(ctx, &attr);
	struct ibv_cq *own = ibv_cq_ex_to_cq(made);
	struct ibv_qp *qp = qp_with(in, own);
	struct ibv_srq *srq = try_srq(in);
	struct ibv_wc wc;
	unsigned int n;

	assert_non_null(srq);
	locks = 0;
	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
	fake_nic_complete(own, qp, false);
	assert_int_equal(ibv_poll_cq(own, 1, &wc), 1);
	assert_int_equal(fake_ops->req_notify_cq(own, 0), 0);
	n = locks;
	assert_int_equal(fake_ops->destroy_qp(qp), 0);
	assert_int_equal(fake_ops->destroy_srq(srq), 0);
	assert_int_equal(fake_ops->destroy_cq(own), 0);
	return n;
}

/* A program that promises to use objects from one thread at a time takes no locks. */
static void test_locks(void **state)
{
	struct ibv_td_init_attr init = { 0 };
	struct ibv_td *td = fake_ops->alloc_td(ctx, &init);

	(void)state;
	assert_int_equal(locks_of(pd, 0, 0), 5);
	/* a flag that is ignored */
	assert_int_equal(locks_of(pd, 0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED), 5);
	assert_int_equal(
		locks_of(pd, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED), 3);
	domain = make_domain(false, NULL);
	assert_int_equal(locks_of(domain, IBV_CQ_INIT_ATTR_MASK_PD, 0), 5);
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
	domain = make_domain(false, td);
	assert_int_equal(locks_of(domain, 0, 0), 2);
	assert_int_equal(locks_of(domain, IBV_CQ_INIT_ATTR_MASK_PD, 0), 0);
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
	assert_int_equal(fake_ops->dealloc_td(td), 0);
}

static void expect_no_domain(struct ibv_parent_domain_init_attr attr, int err)
{
	errno = 0;
	assert_null(fake_ops->alloc_parent_domain(ctx, &attr));
	assert_int_equal(errno, err);
}

static void test_refused(void **state)
{
	struct ibv_parent_domain_init_attr attr = { 0 };

	(void)state;
	expect_no_domain(attr, EINVAL);
	attr.pd = pd;
	attr.comp_mask = 8;
	expect_no_domain(attr, EOPNOTSUPP);
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.alloc = take;
	expect_no_domain(attr, EINVAL);
	/* No domain inside a domain. */
	domain = make_domain(false, NULL);
	attr = (struct ibv_parent_domain_init_attr){ .pd = domain };
	expect_no_domain(attr, EINVAL);
	/* For a CQ a PD is not enough. */
	errno = 0;
	assert_null(try_cq(pd, IBV_CQ_INIT_ATTR_MASK_PD));
	assert_int_equal(errno, EINVAL);
	assert_null(try_cq(NULL, IBV_CQ_INIT_ATTR_MASK_PD));
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
}

/*
 * A window and its region belong to one PD, even if one names the PD and the other a domain of it.
 */
static void test_windows(void **state)
{
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_pd *other = fake_ops->alloc_pd(ctx);
	struct ibv_mr *mr, *foreign;
	struct ibv_mw *mw;
	struct ibv_qp *qp;

	(void)state;
	domain = make_domain(false, NULL);
	mr = fake_ops->reg_mr(pd, &cookie, 4, 0, IBV_ACCESS_MW_BIND);
	foreign = fake_ops->reg_mr(other, &cookie, 4, 0, IBV_ACCESS_MW_BIND);
	mw = fake_ops->alloc_mw(domain, IBV_MW_TYPE_2);
	qp = try_qp(domain);
	assert_true(mr && foreign && mw && qp);
	assert_int_equal(fake_ops->modify_qp(qp, &rts, IBV_QP_STATE), 0);
	wr.bind_mw.mw = mw;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ mr, 0, 4, 0 };
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	wr.bind_mw.bind_info.mr = foreign;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EPERM);

	assert_int_equal(fake_ops->destroy_qp(qp), 0);
	/* When a region changes its PD, the references change, too. */
	assert_int_equal(fake_ops->rereg_mr(container_of(foreign, struct verbs_mr, ibv_mr),
					    IBV_REREG_MR_CHANGE_PD, domain, NULL, 0, 0),
			 0);
	foreign->pd = domain;
	assert_int_equal(fake_ops->dealloc_pd(other), 0);
	assert_int_equal(fake_ops->dealloc_mw(mw), 0);
	assert_int_equal(fake_ops->dealloc_pd(domain), EBUSY);
	assert_int_equal(fake_ops->dereg_mr(container_of(foreign, struct verbs_mr, ibv_mr)), 0);
	assert_int_equal(fake_ops->dereg_mr(container_of(mr, struct verbs_mr, ibv_mr)), 0);
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
}

/* A dma-buf region refers to its PD like any other; one that the kernel refuses does not. */
static void test_dmabuf(void **state)
{
	struct ibv_pd *of = fake_ops->alloc_pd(ctx);
	struct ibv_mr *mr;

	(void)state;
	domain = make_domain(false, NULL);
	mr = fake_ops->reg_dmabuf_mr(domain, 0x1000, 0x2000, 0x7000, 33, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(fake_dmabuf_fd, 33);
	assert_ptr_equal(mr->pd, domain);
	assert_int_equal(mr->length, 0x2000);
	assert_int_equal(fake_ops->dealloc_pd(domain), EBUSY);
	assert_int_equal(fake_ops->dereg_mr(container_of(mr, struct verbs_mr, ibv_mr)), 0);
	fake_error = EINVAL;
	errno = 0;
	assert_null(fake_ops->reg_dmabuf_mr(of, 0, 4096, 0, -1, 0));
	assert_int_equal(errno, EINVAL);
	fake_error = 0;
	assert_int_equal(fake_ops->dealloc_pd(of), 0);
	assert_int_equal(fake_ops->dealloc_pd(domain), 0);
}

/* An imported PD belongs to another process: nothing is destroyed, and the order of releasing is
 * free. */
static void test_import(void **state)
{
	struct ibv_pd *imported;
	struct ibv_mr *mr;
	struct ibv_qp *qp;

	(void)state;
	imported = fake_ops->import_pd(ctx, 5);
	assert_non_null(imported);
	assert_int_equal(imported->handle, 5);
	mr = fake_ops->import_mr(imported, 0x23);
	assert_non_null(mr);
	assert_int_equal(mr->lkey, 0x2300);
	qp = try_qp(imported);
	assert_non_null(qp);
	fake_error = EBUSY;
	assert_null(fake_ops->import_mr(imported, 0x23));
	fake_ops->unimport_mr(mr);
	fake_ops->unimport_pd(imported);
	fake_error = 0;
	assert_int_equal(fake_ops->destroy_qp(qp), 0);

	/* Its creator may be gone: then the PD is freed here, when nothing uses it any more. */
	imported = fake_ops->import_pd(ctx, 5);
	qp = try_qp(imported);
	assert_int_equal(fake_ops->dealloc_pd(imported), EBUSY);
	assert_int_equal(fake_ops->destroy_qp(qp), 0);
	fake_error = EBUSY;
	assert_int_equal(fake_ops->dealloc_pd(imported), EBUSY);
	fake_error = 0;
	assert_int_equal(fake_ops->dealloc_pd(imported), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_allocator, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_to_us, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_thread_domain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_locks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_windows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dmabuf, setup, teardown),
		cmocka_unit_test_setup_teardown(test_import, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
