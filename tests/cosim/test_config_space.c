// SPDX-License-Identifier: Apache-2.0
/*
 * The configuration space, read in the way of a host's enumeration: identity, BAR sizing,
 * capability walk, write masks, function-level reset. A failure means that a guest would see
 * another device, or could change read-only fields.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pcie/config_space.h"
#include "pcie/pcie.h"
#include "seed.h"

struct fixture {
	struct urdma_config_space *cs;
	unsigned int resets;
};

static void count_flr(void *ctx)
{
	struct fixture *f = ctx;

	f->resets++;
	urdma_config_space_reset(f->cs);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->cs = urdma_config_space_create(3, 16, count_flr, f);
	assert_non_null(f->cs);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	urdma_config_space_destroy(f->cs);
	free(f);
	return 0;
}

static uint32_t rd(struct fixture *f, unsigned int offset, size_t len)
{
	uint8_t b[4] = { 0 };

	assert_int_equal(urdma_config_space_read(f->cs, offset, b, len), 0);
	return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
}

static void wr(struct fixture *f, unsigned int offset, size_t len, uint32_t value)
{
	uint8_t b[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
			 (uint8_t)(value >> 24) };

	assert_int_equal(urdma_config_space_write(f->cs, offset, b, len), 0);
}

static void test_identity(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(rd(f, 0x00, 4), 0x52441234);
	assert_int_equal(rd(f, 0x08, 4), 0x02000001);
	assert_int_equal(rd(f, 0x0e, 1), 0);
	assert_int_equal(rd(f, 0x2c, 4), 0x00011234);
	assert_int_equal(rd(f, 0x30, 4), 0);
	assert_int_equal(rd(f, 0x3d, 1), 0);
	/* Identity cannot be written. */
	wr(f, 0x00, 4, 0xffffffff);
	wr(f, 0x08, 4, 0xffffffff);
	wr(f, 0x2c, 4, 0xffffffff);
	assert_int_equal(rd(f, 0x00, 4), 0x52441234);
	assert_int_equal(rd(f, 0x08, 4), 0x02000001);
	assert_int_equal(rd(f, 0x2c, 4), 0x00011234);
}

static void test_bars(void **state)
{
	static const struct {
		unsigned int bar;
		uint64_t size;
		uint32_t flags;
	} want[] = { { 0, 0x10000, 0x4 }, { 2, 0x800000, 0xc }, { 4, 0x1000, 0x4 } };
	struct fixture *f = *state;

	for (size_t i = 0; i < 3; i++) {
		unsigned int at = 0x10 + 4 * want[i].bar;
		uint64_t mask;

		assert_int_equal(rd(f, at, 4), want[i].flags);
		wr(f, at, 4, 0xffffffff);
		wr(f, at + 4, 4, 0xffffffff);
		assert_int_equal(rd(f, at, 4) & 0xf, want[i].flags);
		mask = (rd(f, at, 4) & ~0xfu) | (uint64_t)rd(f, at + 4, 4) << 32;
		assert_true(~mask + 1 == want[i].size);
		wr(f, at, 4, 0xfebc0000);
		wr(f, at + 4, 4, 0x38);
		assert_true(urdma_config_space_bar(f->cs, want[i].bar) ==
			    (0x38febc0000ull & ~(want[i].size - 1)));
		assert_true(urdma_config_space_bar(f->cs, want[i].bar + 1) == 0);
	}
}

static void test_capability_walk(void **state)
{
	struct fixture *f = *state;
	unsigned int at, seen = 0, steps = 0;

	assert_true(rd(f, 0x06, 2) & 0x10);
	for (at = rd(f, 0x34, 1); at; at = rd(f, at + 1, 1)) {
		assert_true(at >= 0x40 && at % 4 == 0);
		assert_true(++steps < 16);
		switch (rd(f, at, 1)) {
		case 0x01:
			assert_int_equal(at, URDMA_CONFIG_CAP_PM);
			seen |= 1;
			break;
		case 0x11:
			assert_int_equal(at, URDMA_CONFIG_CAP_MSIX);
			assert_int_equal((rd(f, at + 2, 2) & 0x7ff) + 1, URDMA_PCIE_MSIX_COUNT);
			assert_int_equal(rd(f, at + 4, 4), 0x000 | 4);
			assert_int_equal(rd(f, at + 8, 4), 0x800 | 4);
			seen |= 2;
			break;
		case 0x10:
			assert_int_equal(at, URDMA_CONFIG_CAP_PCIE);
			assert_int_equal(rd(f, at + 2, 2), 0x0002); /* version 2, endpoint */
			assert_int_equal(rd(f, at + 4, 4) & 7, 2);  /* 512 bytes */
			assert_true(rd(f, at + 4, 4) & 1u << 28);   /* FLR */
			assert_true(rd(f, at + 4, 4) & 1u << 5);    /* 8-bit tags */
			assert_int_equal(rd(f, at + 0x0c, 4) & 0x3ff, 0x103);
			assert_int_equal(rd(f, at + 0x12, 2) & 0x3ff, 0x103);
			seen |= 4;
			break;
		default:
			fail_msg("unknown capability at %x", at);
		}
	}
	assert_int_equal(seen, 7);
	assert_int_equal(rd(f, 0x100, 4), 0); /* no extended capability */
}

/* What a guest's lspci shows as LnkCap, LnkSta and LnkCap2. */
static void test_link(void **state)
{
	static const struct {
		unsigned int gen, lanes;
	} links[] = { { 1, 1 }, { 2, 8 }, { 3, 16 }, { 4, 4 }, { 5, 2 } };
	const unsigned int at = URDMA_CONFIG_CAP_PCIE;

	(void)state;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct fixture f = { 0 };
		uint32_t link = links[i].gen | links[i].lanes << 4;

		f.cs = urdma_config_space_create(links[i].gen, links[i].lanes, NULL, NULL);
		assert_non_null(f.cs);
		assert_int_equal(rd(&f, at + 0x0c, 4) & 0x3ff, link);
		assert_int_equal(rd(&f, at + 0x12, 2) & 0x3ff, link);
		/* Every speed up to it, from bit 1 on. */
		assert_int_equal(rd(&f, at + 0x2c, 4), (1u << (links[i].gen + 1)) - 2);
		assert_int_equal(rd(&f, at + 0x30, 2) & 0xf, links[i].gen);
		/* Equalization is from 8 GT/s on. */
		assert_int_equal(rd(&f, at + 0x32, 2), links[i].gen >= 3 ? 0x1e : 0);
		urdma_config_space_destroy(f.cs);
	}
}

/* Firmware's settings last until the next reset. */
static void test_firmware(void **state)
{
	const unsigned int at = URDMA_CONFIG_CAP_PCIE;
	struct fixture *f = *state;
	uint32_t devctl = rd(f, at + 8, 2);

	urdma_config_space_set_sizes(f->cs, 512, 4096);
	assert_int_equal(urdma_config_space_mps(f->cs), 512);
	assert_int_equal(urdma_config_space_mrrs(f->cs), 4096);
	assert_int_equal(rd(f, at + 8, 2), (devctl & ~0x70e0u) | 2 << 5 | 5 << 12);
	urdma_config_space_set_sizes(f->cs, 128, 128);
	assert_int_equal(rd(f, at + 8, 2), devctl & ~0x70e0u);
	urdma_config_space_reset(f->cs);
	assert_int_equal(rd(f, at + 8, 2), devctl);
}

static void test_enables(void **state)
{
	struct fixture *f = *state;

	assert_false(urdma_config_space_memory_enable(f->cs));
	assert_false(urdma_config_space_bus_master_enable(f->cs));
	wr(f, 0x04, 2, 0x0002);
	assert_true(urdma_config_space_memory_enable(f->cs));
	assert_false(urdma_config_space_bus_master_enable(f->cs));
	wr(f, 0x04, 2, 0xffff);
	assert_int_equal(rd(f, 0x04, 2), 0x0546); /* no I/O, no special cycles */
	assert_true(urdma_config_space_bus_master_enable(f->cs));
	/* D3hot answers configuration requests only. */
	wr(f, URDMA_CONFIG_CAP_PM + 4, 2, 3);
	assert_false(urdma_config_space_memory_enable(f->cs));
	assert_false(urdma_config_space_bus_master_enable(f->cs));
	wr(f, URDMA_CONFIG_CAP_PM + 4, 2, 0);
	assert_true(urdma_config_space_memory_enable(f->cs));
	assert_int_equal(rd(f, 0x04, 2), 0x0546);

	assert_false(urdma_config_space_msix_enable(f->cs));
	wr(f, URDMA_CONFIG_CAP_MSIX + 2, 2, 0xc000);
	assert_true(urdma_config_space_msix_enable(f->cs));
	assert_true(urdma_config_space_msix_function_mask(f->cs));
	wr(f, URDMA_CONFIG_CAP_MSIX + 2, 2, 0x8000);
	assert_false(urdma_config_space_msix_function_mask(f->cs));
	assert_int_equal(rd(f, URDMA_CONFIG_CAP_MSIX + 2, 2), 0x8000 | 63);
}

static void test_sizes(void **state)
{
	static const unsigned int mps[8] = { 128, 256, 512, 512, 512, 512, 512, 512 };
	static const unsigned int mrrs[8] = { 128, 256, 512, 1024, 2048, 4096, 4096, 4096 };
	const unsigned int devctl = URDMA_CONFIG_CAP_PCIE + 8;
	struct fixture *f = *state;

	assert_int_equal(urdma_config_space_mps(f->cs), 128);
	assert_int_equal(urdma_config_space_mrrs(f->cs), 512);
	for (unsigned int i = 0; i < 8; i++) {
		wr(f, devctl, 2, i << 5 | (7 - i) << 12);
		assert_int_equal(urdma_config_space_mps(f->cs), mps[i]);
		assert_int_equal(urdma_config_space_mrrs(f->cs), mrrs[7 - i]);
	}
	assert_int_equal(urdma_config_size_code(128), 0);
	assert_int_equal(urdma_config_size_code(512), 2);
	assert_int_equal(urdma_config_size_code(4096), 5);
}

static void test_flr(void **state)
{
	const unsigned int devctl = URDMA_CONFIG_CAP_PCIE + 8;
	struct fixture *f = *state;

	wr(f, 0x04, 2, 0x0006);
	wr(f, devctl, 2, 0x5040);
	assert_int_equal(f->resets, 0);
	wr(f, devctl, 1, 0xff); /* the low byte alone cannot start a reset */
	assert_int_equal(f->resets, 0);
	wr(f, devctl, 2, 0xd040);
	assert_int_equal(f->resets, 1);
	assert_int_equal(rd(f, 0x04, 2), 0);
	assert_int_equal(rd(f, devctl, 2), 0x2910);
	wr(f, devctl + 1, 1, 0x80);
	assert_int_equal(f->resets, 2);
	wr(f, devctl, 4, 0x8000);
	assert_int_equal(f->resets, 3);
	assert_int_equal(rd(f, devctl, 2) & 0x8000, 0);
}

static void test_access_shapes(void **state)
{
	struct fixture *f = *state;
	uint8_t b[8] = { 0 };

	assert_int_equal(urdma_config_space_read(f->cs, 0, b, 0), -EINVAL);
	assert_int_equal(urdma_config_space_read(f->cs, 0, b, 3), -EINVAL);
	assert_int_equal(urdma_config_space_read(f->cs, 0, b, 8), -EINVAL);
	assert_int_equal(urdma_config_space_read(f->cs, 1, b, 2), -EINVAL);
	assert_int_equal(urdma_config_space_read(f->cs, 2, b, 4), -EINVAL);
	assert_int_equal(urdma_config_space_read(f->cs, 4096, b, 1), -EINVAL);
	assert_int_equal(urdma_config_space_read(f->cs, 0xfffffffc, b, 4), -EINVAL);
	assert_int_equal(urdma_config_space_write(f->cs, 4094, b, 4), -EINVAL);
	assert_int_equal(urdma_config_space_write(f->cs, 0x80000000, b, 1), -EINVAL);
	assert_int_equal(urdma_config_space_read(f->cs, 4095, b, 1), 0);
}

/* Whatever is written, reset restores the initial contents, and read-only bits never change. */
static void test_random_writes(void **state)
{
	struct fixture *f = *state;
	uint8_t first[4096], fixed[4096], now[4096];
	uint64_t random = test_seed(0x1234);

	for (unsigned int i = 0; i < 4096; i++)
		first[i] = (uint8_t)rd(f, i, 1);
	/* Bits that differ after writing all zeros and all ones are writable. */
	for (unsigned int i = 0; i < 4096; i++) {
		wr(f, i, 1, i == URDMA_CONFIG_CAP_PCIE + 9u ? 0x7f : 0xff);
		fixed[i] = (uint8_t)rd(f, i, 1);
		wr(f, i, 1, 0);
		fixed[i] = (uint8_t)(fixed[i] ^ rd(f, i, 1));
	}
	urdma_config_space_reset(f->cs);
	for (unsigned int n = 0; n < 100000; n++) {
		size_t len = (size_t)1 << rnd_below(&random, 3);
		unsigned int at = (unsigned int)(rnd_below(&random, 4096) & ~(len - 1));

		wr(f, at, len, (uint32_t)rnd_next(&random));
	}
	for (unsigned int i = 0; i < 4096; i++) {
		now[i] = (uint8_t)rd(f, i, 1);
		assert_int_equal(now[i] & ~fixed[i], first[i] & ~fixed[i]);
	}
	urdma_config_space_reset(f->cs);
	for (unsigned int i = 0; i < 4096; i++)
		assert_int_equal(rd(f, i, 1), first[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_identity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bars, setup, teardown),
		cmocka_unit_test_setup_teardown(test_capability_walk, setup, teardown),
		cmocka_unit_test(test_link),
		cmocka_unit_test_setup_teardown(test_firmware, setup, teardown),
		cmocka_unit_test_setup_teardown(test_enables, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flr, setup, teardown),
		cmocka_unit_test_setup_teardown(test_access_shapes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random_writes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
