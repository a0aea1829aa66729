// SPDX-License-Identifier: Apache-2.0
/*
 * The judge of ICRCs, tested with packets that others have published with their ICRC: a captured UC
 * SEND and a congestion notification captured on a ConnectX-4 Lx (both are test vectors of scapy's
 * RoCE layer). A failure means that no verdict on a capture can be trusted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "icrc.h"

/* UC SEND only, 18 bytes and 2 of padding, from and to 192.168.0.7 */
static const uint8_t uc_send[] = {
	0x24, 0x8a, 0x07, 0xa8, 0xfa, 0x22, 0x24, 0x8a, 0x07, 0xa8, 0xfa, 0x22,
	0x08, 0x00,								/* Ethernet */
	0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5, /* IPv4 */
	0xc0, 0xa8, 0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07,				/* addresses */
	0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0xac, 0xa2,				/* UDP */
	0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10, /* BTH */
	'F',  '0',  0x81, 0x8b, 0xe2, 0x89, '5',  0xd9, 0x0e, 0x9a,		/* payload */
	0x95, 'P',  'T',  0x01, 0xbe, 0x88, '^',  'P',	0x00, 0x00,		/* and padding */
	0x78, 0xf3, 0x53, 0xf3,
};

static const uint8_t cnp[] = {
	0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32,
	0x08, 0x00,								/* Ethernet */
	0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, /* IPv4 */
	0x0a, 0x00, 0x11, 0x01, 0x0a, 0x00, 0x12, 0x01,				/* addresses */
	0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00,				/* UDP */
	0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, /* BTH */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* reserved */
	0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
};

static void agrees(const uint8_t *frame, size_t len)
{
	struct roce_frame roce;
	uint8_t icrc[4], copy[128];
	const char *why;

	assert_int_equal(roce_parse(frame, len, &roce, &why), 0);
	assert_int_equal(roce.end, len);
	roce_icrc(frame, &roce, icrc);
	assert_memory_equal(icrc, frame + len - 4, 4);

	/* Each bit counts, except those that a router may change. */
	for (size_t bit = roce.ip * 8; bit < (len - 4) * 8; bit++) {
		size_t at = bit / 8, k = at - roce.ip;
		bool variant = k == 1 || k == 8 || k == 10 || k == 11 || at == roce.udp + 6 ||
			       at == roce.udp + 7 || at == roce.bth + 4;

		memcpy(copy, frame, len);
		copy[at] ^= 1u << bit % 8;
		roce_icrc(copy, &roce, icrc);
		assert_int_equal(!memcmp(icrc, frame + len - 4, 4), variant);
	}
}

static void test_published(void **state)
{
	(void)state;
	agrees(uc_send, sizeof(uc_send));
	agrees(cnp, sizeof(cnp));
}

/* The ICRC does not cover a tag. */
static void test_vlan(void **state)
{
	uint8_t tagged[sizeof(uc_send) + 4], icrc[4];
	struct roce_frame roce;
	const char *why;

	(void)state;
	memcpy(tagged, uc_send, 12);
	memcpy(tagged + 12, "\x81\x00\x00\x64", 4);
	memcpy(tagged + 16, uc_send + 12, sizeof(uc_send) - 12);
	assert_int_equal(roce_parse(tagged, sizeof(tagged), &roce, &why), 0);
	assert_true(roce.vlan);
	roce_icrc(tagged, &roce, icrc);
	assert_memory_equal(icrc, tagged + sizeof(tagged) - 4, 4);
}

/* In IPv6 traffic class, flow label and hop limit are variant; version, length and addresses are
 * not. */
static void test_ipv6(void **state)
{
	uint8_t frame[14 + 40 + 8 + 12 + 4] = { 0 }, first[4], icrc[4];
	struct roce_frame roce;
	const char *why;

	(void)state;
	frame[12] = 0x86;
	frame[13] = 0xdd;
	frame[14] = 0x60;
	frame[19] = 8 + 12 + 4;
	frame[20] = 17;
	frame[21] = 64;
	frame[54 + 2] = 0x12;
	frame[54 + 3] = 0xb7;
	frame[54 + 5] = 8 + 12 + 4;
	frame[62] = 0x04;
	assert_int_equal(roce_parse(frame, sizeof(frame), &roce, &why), 0);
	roce_icrc(frame, &roce, first);
	for (size_t bit = 14 * 8; bit < (sizeof(frame) - 4) * 8; bit++) {
		size_t at = bit / 8, k = at - 14;
		bool variant = (k == 0 && bit % 8 < 4) || (k >= 1 && k <= 3) || k == 7 ||
			       at == roce.udp + 6 || at == roce.udp + 7 || at == roce.bth + 4;

		frame[at] ^= 1u << bit % 8;
		roce_icrc(frame, &roce, icrc);
		frame[at] ^= 1u << bit % 8;
		assert_int_equal(!memcmp(icrc, first, 4), variant);
	}
}

static void test_broken(void **state)
{
	uint8_t copy[sizeof(uc_send)], more[sizeof(uc_send) + 40];
	struct roce_frame roce;
	const char *why;

	(void)state;
	for (size_t len = 0; len < sizeof(uc_send); len++)
		assert_int_not_equal(roce_parse(uc_send, len, &roce, &why), 0);
	memcpy(copy, uc_send, sizeof(copy));
	copy[24] ^= 1; /* IPv4 checksum */
	assert_int_equal(roce_parse(copy, sizeof(copy), &roce, &why), -1);
	copy[24] ^= 1;
	copy[60] ^= 1; /* payload: UDP checksum */
	assert_int_equal(roce_parse(copy, sizeof(copy), &roce, &why), 0);
	assert_true(roce.udp_sum);
	copy[60] ^= 1;
	assert_int_equal(roce_parse(copy, sizeof(copy), &roce, &why), 0);
	assert_false(roce.udp_sum);
	copy[20] ^= 0x20; /* more fragments */
	assert_int_equal(roce_parse(copy, sizeof(copy), &roce, &why), 1);
	copy[20] ^= 0x20;
	memset(more, 0, sizeof(more));
	memcpy(more, copy, sizeof(copy));
	assert_int_equal(roce_parse(copy, sizeof(copy), &roce, &why), 0);
	assert_false(roce.tail);
	assert_int_equal(roce_parse(more, sizeof(more), &roce, &why), 0);
	assert_true(roce.tail);
	copy[39] ^= 4; /* UDP length */
	assert_int_equal(roce_parse(copy, sizeof(copy), &roce, &why), -1);
	copy[39] ^= 4;
	copy[37] = 0; /* another port */
	assert_int_equal(roce_parse(copy, sizeof(copy), &roce, &why), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_vlan),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
