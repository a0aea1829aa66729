// SPDX-License-Identifier: Apache-2.0
/* All pairs of QPs are found, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rc_pairs.h"

#define MTU    1024u
#define SECOND UINT64_C(1000000000)

enum { WRITE_ONLY = 0x0a, READ_REQUEST = 0x0c, READ_FIRST = 0x0d, ACK = 0x11, XRC = 0xa0 };

#define OUT true
#define IN  false

static struct rc_pairs *pairs;
static uint64_t now;

static int begin(void **state)
{
	(void)state;
	now = 5 * SECOND;
	pairs = rc_pairs_create(MTU);
	return !pairs;
}

static int end(void **state)
{
	(void)state;
	rc_pairs_destroy(pairs);
	return 0;
}

/* A packet to a QP; len: of a READ request. */
static void packet(bool out, uint8_t op, uint32_t qpn, uint32_t psn, uint32_t len)
{
	uint8_t bth[64] = { op };
	size_t at = op & XRC ? 28 : 24;

	for (int i = 0; i < 3; i++) {
		bth[5 + i] = (uint8_t)(qpn >> (16 - 8 * i));
		bth[9 + i] = (uint8_t)((psn & 0xffffff) >> (16 - 8 * i));
	}
	for (int i = 0; i < 4; i++)
		bth[at + i] = (uint8_t)(len >> (24 - 8 * i));
	now += 100;
	rc_pairs_packet(pairs, bth, out, now);
}

/* n WRITEs from the port's QP `local`, each of which is acknowledged. */
static void writes(uint32_t local, uint32_t remote, uint32_t psn, unsigned int n)
{
	while (n--) {
		packet(OUT, WRITE_ONLY, remote, psn, 0);
		packet(IN, ACK, local, psn++, 0);
	}
}

static void expect_pairs(unsigned int n, const uint32_t (*pair)[2])
{
	assert_int_equal(rc_pairs_settle(pairs), n);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(rc_pairs_get(pairs, i)->local, pair[i][0]);
		assert_int_equal(rc_pairs_get(pairs, i)->remote, pair[i][1]);
	}
}

static void expect_peer(bool out, uint32_t qpn, uint64_t ns, uint32_t local, uint32_t remote)
{
	const struct rc_pair *pair = rc_pairs_of(pairs, out, qpn, ns);

	assert_non_null(pair);
	assert_int_equal(pair->local, local);
	assert_int_equal(pair->remote, remote);
}

static void both_ways(void **state)
{
	static const uint32_t want[][2] = { { 5, 9 }, { 6, 10 } };

	(void)state;
	writes(5, 9, 0xfffffe, 4);
	/* the peer requests */
	packet(IN, WRITE_ONLY, 6, 1000, 0);
	packet(OUT, ACK, 10, 1000, 0);
	packet(OUT, ACK, 11, 1001, 0);
	expect_pairs(2, want);
	expect_peer(OUT, 9, now, 5, 9);
	expect_peer(IN, 6, now, 6, 10);
	assert_null(rc_pairs_of(pairs, OUT, 5, now));
	assert_null(rc_pairs_of(pairs, IN, 11, now));
}

/* The answer's PSN is one of those that the request uses. */
static void reads(void **state)
{
	static const uint32_t want[][2] = { { 5, 9 }, { 6, 10 } };

	(void)state;
	packet(OUT, READ_REQUEST, 9, 700, 10 * MTU);
	packet(IN, READ_FIRST, 5, 700, 0);
	packet(OUT, XRC | READ_REQUEST, 10, 5000, 10 * MTU);
	packet(IN, XRC | READ_FIRST, 6, 5009, 0);
	packet(IN, READ_FIRST, 7, 5010, 0);
	packet(IN, READ_FIRST, 8, 699 - 250, 0);
	expect_pairs(2, want);
}

/* The same PSN for all. */
static void which_one(void **state)
{
	static const uint32_t want[][2] = { { 5, 9 }, { 6, 10 } };

	(void)state;
	packet(OUT, WRITE_ONLY, 9, 0, 0);
	packet(OUT, WRITE_ONLY, 10, 0, 0);
	packet(IN, ACK, 6, 0, 0);
	packet(IN, ACK, 5, 0, 0);
	expect_pairs(0, NULL);
	writes(5, 9, 1, 400);
	writes(6, 10, 1, 50);
	expect_pairs(2, want);
}

/* READs whose answers are so far behind the last request that the PSN of an old QP is nearer. */
static void deep_reads(uint32_t from)
{
	for (uint32_t psn = from; psn < from + 1600; psn += 100)
		packet(OUT, READ_REQUEST, 0x3d, psn, 100 * MTU);
	for (uint32_t psn = from; psn < from + 1600; psn++)
		packet(IN, READ_FIRST, 0x3d, psn, 0);
}

static void one_that_is_gone(void **state)
{
	static const uint32_t want[][2] = { { 6, 6 }, { 0x3d, 0x3d } };

	(void)state;
	writes(6, 6, 0, 211);
	/* whose ACK is lost */
	packet(OUT, WRITE_ONLY, 6, 211, 0);
	now += 2 * SECOND;
	deep_reads(0);
	expect_pairs(2, want);
}

static void one_that_is_just_gone(void **state)
{
	static const uint32_t want[][2] = { { 6, 6 }, { 0x3d, 0x3d } };

	(void)state;
	writes(6, 6, 0, 211);
	deep_reads(0);
	expect_pairs(2, want);
	expect_peer(IN, 0x3d, now, 0x3d, 0x3d);
}

/*
 * The old QP's last request is not answered, so there is evidence for a pair that does not exist.
 */
static void too_little_evidence(void **state)
{
	static const uint32_t want[][2] = { { 6, 6 }, { 0x3d, 0x3d } };

	(void)state;
	writes(6, 6, 0, 211);
	packet(OUT, WRITE_ONLY, 6, 211, 0);
	writes(0x3d, 0x3d, 300, 10);
	deep_reads(0);
	expect_pairs(2, want);
}

static void again_with_another(void **state)
{
	static const uint32_t want[][2] = { { 5, 9 }, { 5, 10 }, { 5, 9 } };
	uint64_t at[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		at[i] = now;
		writes(5, want[i][1], 0, 20 + 100 * i);
		now += 2 * SECOND;
	}
	expect_pairs(3, want);
	for (int i = 0; i < 3; i++) {
		expect_peer(IN, 5, at[i], 5, want[i][1]);
		expect_peer(IN, 5, at[i] + SECOND / 2, 5, want[i][1]);
	}
}

static void named(void **state)
{
	static const uint32_t want[][2] = { { 5, 9 } };

	(void)state;
	rc_pairs_add(pairs, 5, 9);
	expect_pairs(1, want);
	expect_peer(OUT, 9, 0, 5, 9);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(both_ways),
		TEST(reads),
		TEST(which_one),
		TEST(one_that_is_gone),
		TEST(one_that_is_just_gone),
		TEST(too_little_evidence),
		TEST(again_with_another),
		TEST(named),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
