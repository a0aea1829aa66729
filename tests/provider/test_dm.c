// SPDX-License-Identifier: Apache-2.0
/*
 * Device memory in the provider: mappings; copies of every alignment and length around the NIC's
 * words, and each of their accesses; copies that are refused; regions; imports.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <cmocka.h>

#include "fake_nic.h"
#include "fake_urdma.h"
#include "fake_verbs.h"
#include "seed.h"

#define PAGE   FAKE_PAGE
#define LENGTH 100
#define GUARD  16

static struct ibv_context *ctx;
static struct ibv_pd *pd;
/* mapped pages when only the context is open */
static unsigned int mapped;
/* expected contents of the device memory */
static uint8_t model[FAKE_DM_BYTES];

static int open_with(uint64_t features)
{
	fake_urdma_features = features;
	fake_urdma_dm_offset = 0;
	ctx = fake_open();
	assert_non_null(ctx);
	pd = fake_ops->alloc_pd(ctx);
	assert_non_null(pd);
	mapped = fake_pages_mapped();
	memset(model, 0, sizeof(model));
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return open_with(URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_DM);
}

static int teardown(void **state)
{
	(void)state;
	fake_error = 0;
	assert_int_equal(fake_dms, 0);
	assert_int_equal(fake_pages_mapped(), mapped);
	assert_int_equal(fake_ops->dealloc_pd(pd), 0);
	fake_close(ctx);
	return 0;
}

static struct ibv_dm *alloc(size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };
	struct ibv_dm *dm = fake_ops->alloc_dm(ctx, &attr);

	assert_non_null(dm);
	return dm;
}

static void expect_model(void)
{
	assert_memory_equal(fake_dm(), model, sizeof(model));
}

static void test_mapping(void **state)
{
	const uint32_t word = 0x01020304;
	struct ibv_dm *one, *two;

	(void)state;
	one = alloc(LENGTH);
	assert_ptr_equal(one->context, ctx);
	assert_true(one->comp_mask & IBV_DM_MASK_HANDLE);
	assert_int_equal(fake_dms, 1);
	assert_int_equal(fake_pages_mapped(), mapped + 1);
	two = alloc(PAGE + 4);
	assert_int_equal(fake_pages_mapped(), mapped + 3);
	/* The second lies after the page of the first, and is mapped to its last word. */
	assert_int_equal(ibv_memcpy_to_dm(two, PAGE, &word, 4), 0);
	memcpy(model + 2 * PAGE, &word, 4);
	expect_model();

	/* If the kernel refuses to free it, nothing changes. */
	fake_error = EBUSY;
	assert_int_equal(fake_ops->free_dm(one), EBUSY);
	fake_error = 0;
	assert_int_equal(fake_pages_mapped(), mapped + 3);
	assert_int_equal(ibv_memcpy_to_dm(one, 96, &word, 4), 0);
	memcpy(model + 96, &word, 4);
	expect_model();
	assert_int_equal(fake_ops->free_dm(one), 0);
	assert_int_equal(fake_pages_mapped(), mapped + 2);
	assert_int_equal(fake_ops->free_dm(two), 0);
}

/* One copy there and one back; host memory need not be aligned. */
static void copy(struct ibv_dm *dm, uint32_t offset, uint32_t length, uint32_t shift)
{
	uint8_t from[64 + 8], to[64 + 8 + 2 * GUARD], want[sizeof(to)];
	uint64_t random = test_seed(1 + offset * 64 + length);

	for (uint32_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)rnd_next(&random);
	assert_int_equal(ibv_memcpy_to_dm(dm, offset, from + shift, length), 0);
	memcpy(model + offset, from + shift, length);
	expect_model();

	memset(to, 0xa5, sizeof(to));
	memset(want, 0xa5, sizeof(want));
	memcpy(want + GUARD + shift, model + offset, length);
	assert_int_equal(ibv_memcpy_from_dm(to + GUARD + shift, dm, offset, length), 0);
	assert_memory_equal(to, want, sizeof(to));
}

static void test_copies(void **state)
{
	struct ibv_dm *dm = alloc(LENGTH);

	(void)state;
	/* The memory's end is not the end of a pair of words. */
	for (uint32_t offset = 0; offset <= LENGTH; offset += 4)
		for (uint32_t length = 0; length <= 64 && offset + length <= LENGTH; length += 4)
			for (uint32_t shift = 0; shift < 8; shift++)
				copy(dm, offset, length, shift);
	assert_int_equal(fake_ops->free_dm(dm), 0);
}

#ifdef __x86_64__
/* Where the accesses of a copy begin: each one faults, and is then single-stepped. */
static struct {
	uint8_t *page;
	uint32_t at[64];
	unsigned int num;
} seen;

#define TRAP_FLAG 0x100

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	size_t at = (size_t)((uint8_t *)info->si_addr - seen.page);

	(void)sig;
	if (at >= PAGE || seen.num == 64 || mprotect(seen.page, PAGE, PROT_READ | PROT_WRITE))
		abort();
	seen.at[seen.num++] = (uint32_t)at;
	uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (mprotect(seen.page, PAGE, PROT_NONE))
		abort();
}

/* Each access has 4 or 8 bytes, is aligned, and begins where the one before has ended. */
static void expect_accesses(uint32_t offset, uint32_t length)
{
	uint32_t end = offset + length;

	for (unsigned int i = 0; i < seen.num; i++) {
		uint32_t bytes = (i + 1 < seen.num ? seen.at[i + 1] : end) - seen.at[i];

		assert_int_equal(seen.at[i], offset);
		assert_true(bytes == 4 || bytes == 8);
		assert_int_equal(offset % bytes, 0);
		offset += bytes;
	}
	assert_int_equal(offset, end);
	assert_int_equal(mprotect(seen.page, PAGE, PROT_NONE), 0);
	seen.num = 0;
}

static void test_accesses(void **state)
{
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO }, old_fault;
	struct sigaction step = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO }, old_step;
	struct ibv_dm *dm = alloc(LENGTH);
	uint8_t host[64];

	(void)state;
	memset(host, 0x5a, sizeof(host));
	seen.page = fake_dm_mapped();
	assert_non_null(seen.page);
	sigaction(SIGSEGV, &fault, &old_fault);
	sigaction(SIGTRAP, &step, &old_step);
	assert_int_equal(mprotect(seen.page, PAGE, PROT_NONE), 0);
	for (uint32_t offset = 0; offset < 16; offset += 4)
		for (uint32_t length = 0; length <= sizeof(host); length += 4) {
			assert_int_equal(ibv_memcpy_to_dm(dm, offset, host, length), 0);
			expect_accesses(offset, length);
			assert_int_equal(ibv_memcpy_from_dm(host, dm, offset, length), 0);
			expect_accesses(offset, length);
		}
	sigaction(SIGSEGV, &old_fault, NULL);
	sigaction(SIGTRAP, &old_step, NULL);
	assert_int_equal(fake_ops->free_dm(dm), 0);
}
#endif

static void test_refused_copies(void **state)
{
	static const struct {
		uint64_t offset;
		size_t length;
		int err;
	} bad[] = {
		/* The rest of the page is mapped, but is not part of the memory. */
		{ 0, LENGTH + 4, EFAULT },
		{ 4, LENGTH, EFAULT },
		{ LENGTH, 4, EFAULT },
		{ LENGTH + 4, 0, EFAULT },
		{ LENGTH - 2, 4, EFAULT },
		{ PAGE, 4, EFAULT },
		{ UINT64_MAX - 3, 4, EFAULT },
		{ UINT64_MAX - 3, 8, EFAULT },
		{ 8, SIZE_MAX - 7, EFAULT },
		{ 0, SIZE_MAX, EFAULT },
		{ 1, 4, EINVAL },
		{ 2, 4, EINVAL },
		{ 3, 4, EINVAL },
		{ 0, 1, EINVAL },
		{ 0, 2, EINVAL },
		{ 0, 7, EINVAL },
		{ 4, 6, EINVAL },
		{ 2, 2, EINVAL },
		{ 1, 0, EINVAL },
	};
	struct ibv_dm *dm = alloc(LENGTH);
	uint8_t host[2 * LENGTH], was[sizeof(host)];

	(void)state;
	memset(host, 0x5a, sizeof(host));
	memcpy(was, host, sizeof(was));
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(ibv_memcpy_to_dm(dm, bad[i].offset, host, bad[i].length),
				 bad[i].err);
		assert_int_equal(ibv_memcpy_from_dm(host, dm, bad[i].offset, bad[i].length),
				 bad[i].err);
	}
	expect_model();
	assert_memory_equal(host, was, sizeof(host));
	/* Copying nothing at the very end is harmless. */
	assert_int_equal(ibv_memcpy_to_dm(dm, LENGTH, host, 0), 0);
	assert_int_equal(fake_ops->free_dm(dm), 0);
}

static void expect_no_dm(struct ibv_alloc_dm_attr attr, int err)
{
	errno = 0;
	assert_null(fake_ops->alloc_dm(ctx, &attr));
	assert_int_equal(errno, err);
	assert_int_equal(fake_dms, 0);
	assert_int_equal(fake_pages_mapped(), mapped);
}

static void test_refused(void **state)
{
	struct ibv_alloc_dm_attr attr = { .length = LENGTH };

	attr.comp_mask = 1;
	expect_no_dm(attr, EOPNOTSUPP);
	attr.comp_mask = 0;
	fake_error = ENOSPC;
	expect_no_dm(attr, ENOSPC);
	fake_error = 0;
	/* Memory that cannot be mapped is given back to the kernel; here the second page cannot. */
	fake_urdma_dm_offset = INT64_MAX + UINT64_C(1) - 2 * PAGE;
	attr.length = 2 * PAGE;
	expect_no_dm(attr, EOVERFLOW);
	teardown(state);
	open_with(URDMA_RF_FEAT_RC_SEND);
	expect_no_dm(attr, EOPNOTSUPP);
}

static void test_regions(void **state)
{
	struct ibv_dm *dm = alloc(LENGTH);
	struct ibv_mr *mr;

	(void)state;
	mr = fake_ops->reg_dm_mr(pd, dm, 8, 32, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, 32);
	/* It holds a reference to its PD like any other. */
	assert_int_equal(fake_ops->dealloc_pd(pd), EBUSY);
	assert_int_equal(fake_ops->dereg_mr(container_of(mr, struct verbs_mr, ibv_mr)), 0);
	fake_error = EINVAL;
	errno = 0;
	assert_null(fake_ops->reg_dm_mr(pd, dm, 8, 32, IBV_ACCESS_ZERO_BASED));
	assert_int_equal(errno, EINVAL);
	fake_error = 0;
	assert_int_equal(fake_ops->free_dm(dm), 0);
}

/* Imported memory belongs to another process, and stays when it is released. */
static void test_import(void **state)
{
	const uint64_t pair = UINT64_C(0x1122334455667788);
	struct ibv_dm *dm = alloc(PAGE + LENGTH), *imported;
	uint64_t got;

	(void)state;
	imported = fake_ops->import_dm(ctx, dm->handle);
	assert_non_null(imported);
	assert_int_equal(imported->handle, dm->handle);
	assert_ptr_equal(imported->context, ctx);
	assert_int_equal(fake_pages_mapped(), mapped + 4);
	assert_int_equal(ibv_memcpy_to_dm(imported, PAGE + 8, &pair, 8), 0);
	assert_int_equal(ibv_memcpy_from_dm(&got, dm, PAGE + 8, 8), 0);
	assert_int_equal(got, pair);
	assert_int_equal(ibv_memcpy_to_dm(imported, PAGE + LENGTH, &pair, 4), EFAULT);
	fake_ops->unimport_dm(imported);
	assert_int_equal(fake_pages_mapped(), mapped + 2);
	assert_int_equal(fake_dms, 1);

	fake_error = ENOENT;
	errno = 0;
	assert_null(fake_ops->import_dm(ctx, dm->handle));
	assert_int_equal(errno, ENOENT);
	fake_error = 0;
	assert_int_equal(fake_ops->free_dm(dm), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_mapping, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copies, setup, teardown),
#ifdef __x86_64__
		cmocka_unit_test_setup_teardown(test_accesses, setup, teardown),
#endif
		cmocka_unit_test_setup_teardown(test_refused_copies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_regions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_import, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
