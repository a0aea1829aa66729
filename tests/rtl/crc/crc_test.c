// SPDX-License-Identifier: Apache-2.0
/*
 * urdma_crc32 against published values, and against a bitwise CRC on random streams.
 *
 * A failure in the first two tests means that the polynomial, the bit order or the masking of the
 * ICRC is wrong; in the third, that a length or the distance between messages is not handled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "crc_model.h"
#include "icrc.h"
#include "seed.h"

static uint64_t seed = 1;

static uint32_t rnd(void)
{
	return rnd_next(&seed) >> 32;
}

static uint32_t run(const uint8_t *p, size_t len, enum crc_init init)
{
	struct crc_model *m = crc_model_new();
	struct crc_beat b = { .first = true, .init_sel = init };
	uint32_t crc = 0, none;
	bool out = false;

	while (len) {
		memset(b.data, 0xa5, sizeof(b.data)); /* must be ignored */
		b.len = len < 64 ? len : 64;
		memcpy(b.data, p, b.len);
		b.last = b.len == len;
		p += b.len;
		len -= b.len;
		assert_false(crc_model_cycle(m, &b, &crc));
		b.first = false;
	}
	for (int i = 0; i < 3; i++) {
		assert_false(out);
		out = crc_model_cycle(m, NULL, &crc);
	}
	assert_true(out);
	assert_false(crc_model_cycle(m, NULL, &none));
	crc_model_free(m);
	return crc;
}

static void test_published(void **state)
{
	uint8_t zeros[32] = { 0 };

	(void)state;
	/* the check value every catalogue of CRCs gives, and two more well known ones */
	assert_int_equal(run((const uint8_t *)"123456789", 9, INIT_CRC32), 0xcbf43926);
	assert_int_equal(run(zeros, 32, INIT_CRC32), 0x190a55ad);
	assert_int_equal(
		run((const uint8_t *)"The quick brown fox jumps over the lazy dog", 43, INIT_CRC32),
		0x414fa339);
}

/* Frames from captures of other vendors' adapters; the last four bytes are their ICRC, as on the
 * wire. */
static const uint8_t cnp_frame[] = {
	0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00, 0x45,
	0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01,
	0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff,
	0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
};

static const uint8_t uc_send_frame[] = {
	0x24, 0x8a, 0x07, 0xa8, 0xfa, 0x22, 0x24, 0x8a, 0x07, 0xa8, 0xfa, 0x22, 0x08,
	0x00, 0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5,
	0xc0, 0xa8, 0x00, 0x07, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00, 0x12, 0xb7, 0x00,
	0x2c, 0xac, 0xa2, 0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf,
	0x17, 0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95,
	0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3,
};

/* Feed a frame as the NIC does: Ethernet header zeroed, variable fields ones, start value to match.
 */
static uint32_t rtl_icrc(const uint8_t *frame, size_t len, bool vlan)
{
	uint8_t buf[256] = { 0 };
	size_t l3 = vlan ? 18 : 14;

	memcpy(buf + l3, frame + l3, len - l3);
	if (frame[l3] >> 4 == 4) {
		buf[l3 + 1] = buf[l3 + 8] = buf[l3 + 10] = buf[l3 + 11] = 0xff;
		buf[l3 + 26] = buf[l3 + 27] = buf[l3 + 32] = 0xff;
	} else {
		buf[l3] |= 0x0f;
		buf[l3 + 1] = buf[l3 + 2] = buf[l3 + 3] = buf[l3 + 7] = 0xff;
		buf[l3 + 46] = buf[l3 + 47] = buf[l3 + 52] = 0xff;
	}
	return run(buf, len, vlan ? INIT_ICRC_VLAN : INIT_ICRC_ETH);
}

static void check_frame(const uint8_t *frame, size_t len)
{
	uint8_t tagged[256];
	uint32_t wire;

	wire = frame[len - 4] | frame[len - 3] << 8 | frame[len - 2] << 16 |
	       (uint32_t)frame[len - 1] << 24;
	assert_int_equal(icrc_of_frame(frame, len - 4), wire);
	assert_int_equal(rtl_icrc(frame, len - 4, false), wire);
	/* A VLAN tag is outside the ICRC: the value stays. */
	memcpy(tagged, frame, 12);
	memcpy(tagged + 12, "\x81\x00\x20\x7b", 4);
	memcpy(tagged + 16, frame + 12, len - 12);
	assert_int_equal(icrc_of_frame(tagged, len), wire);
	assert_int_equal(rtl_icrc(tagged, len, true), wire);
}

static void test_icrc(void **state)
{
	(void)state;
	check_frame(cnp_frame, sizeof(cnp_frame));
	check_frame(uc_send_frame, sizeof(uc_send_frame));
}

/* Many messages, back to back or with gaps, of all lengths: each CRC right and in order, 4 cycles
 * late. */
static void test_streams(void **state)
{
	struct crc_model *m = crc_model_new();
	uint32_t pipe[5] = { 0 };
	bool pipe_valid[5] = { false };
	unsigned int done = 0;

	(void)state;
	for (unsigned int n = 0; n < 3000; n++) {
		size_t len = n < 200 ? n + 1 : 1 + rnd() % 1000;
		uint8_t msg[1200];
		struct crc_beat b = { .first = true, .init_sel = INIT_VALUE, .init = rnd() };
		uint32_t want, crc;
		size_t off = 0;

		for (size_t i = 0; i < len; i++)
			msg[i] = rnd();
		want = ~ref_crc32(b.init, msg, len);
		while (off < len) {
			bool gap = n > 1000 && rnd() % 3 == 0, out;

			if (!gap) {
				for (int i = 0; i < 64; i++)
					b.data[i] = rnd();
				b.len = len - off < 64 ? len - off : 64;
				memcpy(b.data, msg + off, b.len);
				off += b.len;
				b.last = off == len;
			}
			out = crc_model_cycle(m, gap ? NULL : &b, &crc);
			memmove(pipe + 1, pipe, 4 * sizeof(pipe[0]));
			memmove(pipe_valid + 1, pipe_valid, 4 * sizeof(pipe_valid[0]));
			pipe[0] = want;
			pipe_valid[0] = !gap && b.last;
			assert_int_equal(out, pipe_valid[3]);
			if (out) {
				assert_int_equal(crc, pipe[3]);
				done++;
			}
			if (!gap)
				b.first = false;
		}
	}
	assert_true(done >= 2990);
	crc_model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published),
		cmocka_unit_test(test_icrc),
		cmocka_unit_test(test_streams),
	};

	seed = test_seed(seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
