// SPDX-License-Identifier: Apache-2.0
/*
 * Tests of the judge: conversations that follow the specification are found clean, and each rule of
 * rc_check.h is broken once and has to be noticed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "icrc.h"
#include "rc_check.h"
#include "ref_hash.h"

#define MTU 256u
#define QPN 0x11u
#define US  UINT64_C(1000)

enum {
	SEND_FIRST = 0x00,
	SEND_MIDDLE = 0x01,
	SEND_LAST = 0x02,
	SEND_ONLY = 0x04,
	WRITE_FIRST = 0x06,
	WRITE_LAST = 0x08,
	READ_REQ = 0x0c,
	READ_FIRST = 0x0d,
	READ_MIDDLE = 0x0e,
	READ_LAST = 0x0f,
	READ_ONLY = 0x10,
	ACK = 0x11,
	ATOMIC_ACK = 0x12,
	FETCH_ADD = 0x14,
	FLUSH = 0x1c,
	ATOMIC_WRITE = 0x1d,
};

#define XRC 0xa0 /* of XRC: with an XRCETH */
#define OUT true
#define IN  false

struct talk {
	struct rc_check *check;
	uint64_t ns;
	bool spoil; /* the next frame's ICRC */
	bool other; /* the next frame has another payload */
	uint32_t qpn;
	uint32_t xrceth;
};

static void frame(struct talk *t, bool out, unsigned int op, uint32_t psn, const uint8_t *ext,
		  size_t ext_len, size_t len)
{
	uint8_t f[2048] = { 0 };
	size_t pad = -len & 3, bth = 42, end = bth + 12 + ext_len + len + pad + 4;
	struct pcap_frame frame = { .data = f, .len = end < 60 ? 60 : end, .outbound = out };
	struct roce_frame roce;
	const char *why;

	roce_put(f + 12, 0x0800, 2);
	f[14] = 0x45;
	roce_put(f + 16, end - 14, 2);
	f[22] = 64;
	f[23] = 17;
	roce_put(f + 26, out ? 0x0a000001 : 0x0a000002, 4);
	roce_put(f + 30, out ? 0x0a000002 : 0x0a000001, 4);
	ref_ip_checksum(f + 14);
	roce_put(f + 34, 0xc011, 2);
	roce_put(f + 36, 4791, 2);
	roce_put(f + 38, end - 34, 2);
	f[bth] = (uint8_t)op;
	f[bth + 1] = (uint8_t)(pad << 4);
	roce_put(f + bth + 2, 0xffff, 2);
	roce_put(f + bth + 5, t->qpn, 3);
	f[bth + 8] = 0x80;
	roce_put(f + bth + 9, psn, 3);
	if (ext_len)
		memcpy(f + bth + 12, ext, ext_len);
	for (size_t i = 0; i < len; i++)
		f[bth + 12 + ext_len + i] = (uint8_t)(psn + i + t->other);
	t->other = false;
	assert_int_equal(roce_parse(f, frame.len, &roce, &why), 0);
	roce_icrc(f, &roce, f + end - 4);
	if (t->spoil)
		f[end - 4] ^= 1;
	t->spoil = false;
	t->ns += US;
	frame.ns = t->ns;
	rc_check_frame(t->check, &frame);
}

/* The extended headers of a request, for XRC after an XRCETH. */
static void request_with(struct talk *t, bool out, unsigned int op, uint32_t psn,
			 const uint8_t *ext, size_t ext_len, size_t len)
{
	uint8_t all[32];

	roce_put(all, t->xrceth, 4);
	if (ext_len)
		memcpy(all + 4, ext, ext_len);
	if (op >= XRC)
		frame(t, out, op, psn, all, ext_len + 4, len);
	else
		frame(t, out, op, psn, ext, ext_len, len);
}

static void request(struct talk *t, bool out, unsigned int op, uint32_t psn, size_t len)
{
	request_with(t, out, op, psn, NULL, 0, len);
}

static void reth(struct talk *t, bool out, unsigned int op, uint32_t psn, uint64_t va, uint32_t dma,
		 size_t len)
{
	uint8_t ext[16];

	roce_put(ext, va, 8);
	roce_put(ext + 8, 0x1234, 4);
	roce_put(ext + 12, dma, 4);
	request_with(t, out, op, psn, ext, sizeof(ext), len);
}

static void answer(struct talk *t, bool out, unsigned int op, uint32_t psn, unsigned int syndrome,
		   uint32_t msn, size_t len)
{
	uint8_t ext[4];

	roce_put(ext, (uint64_t)syndrome << 24 | msn, 4);
	frame(t, out, op, psn, ext, (op & 0x1f) == READ_MIDDLE ? 0 : 4, len);
}

static void ack(struct talk *t, bool out, uint32_t psn, uint32_t msn)
{
	answer(t, out, ACK, psn, 0x1f, msn, 0);
}

static void flush_with(struct talk *t, bool out, unsigned int op, uint32_t psn, uint32_t feth)
{
	uint8_t ext[20] = { 0 };

	roce_put(ext, feth, 4);
	roce_put(ext + 16, 5000, 4); /* many packets long, but one PSN */
	request_with(t, out, op, psn, ext, sizeof(ext), 0);
}

static void flush(struct talk *t, bool out, unsigned int op, uint32_t psn)
{
	flush_with(t, out, op, psn, 0x11);
}

static void atomic_write(struct talk *t, bool out, unsigned int op, uint32_t psn)
{
	reth(t, out, op, psn, 0x1000, 8, 8);
}

static void atomic_to(struct talk *t, bool out, uint32_t psn, uint64_t va)
{
	uint8_t ext[28] = { 0 };

	roce_put(ext, va, 8);
	frame(t, out, FETCH_ADD, psn, ext, sizeof(ext), 0);
}

static void atomic(struct talk *t, bool out, uint32_t psn)
{
	atomic_to(t, out, psn, 0);
}

static void atomic_ack(struct talk *t, bool out, uint32_t psn, uint32_t msn, uint64_t value)
{
	uint8_t ext[12];

	roce_put(ext, (uint64_t)0x1f << 24 | msn, 4);
	roce_put(ext + 4, value, 8);
	frame(t, out, ATOMIC_ACK, psn, ext, sizeof(ext), 0);
}

static void wait_us(struct talk *t, uint64_t us)
{
	t->ns += us * US;
}

/* ---- conversations: true when the judge has to object ---------------------------------------- */

/* requester: the port sends, the peer answers */
static void rq_clean(struct talk *t)
{
	request(t, OUT, SEND_FIRST, 0xfffffe, MTU);
	request(t, OUT, SEND_MIDDLE, 0xffffff, MTU);
	request(t, OUT, SEND_LAST, 0, 7);
	ack(t, IN, 0, 1);
	reth(t, OUT, WRITE_FIRST, 1, 0x1000, 300, MTU);
	request(t, OUT, WRITE_LAST, 2, 44);
	reth(t, OUT, READ_REQ, 3, 0x2000, 3 * MTU, 0);
	request(t, OUT, SEND_ONLY, 6, 0);
	answer(t, IN, READ_FIRST, 3, 0x1f, 3, MTU);
	answer(t, IN, READ_MIDDLE, 4, 0, 0, MTU);
	answer(t, IN, READ_LAST, 5, 0x1f, 3, MTU);
	ack(t, IN, 6, 4);
}

static void rq_nak(struct talk *t)
{
	for (uint32_t p = 0; p < 4; p++)
		request(t, OUT, SEND_ONLY, p, 8);
	answer(t, IN, ACK, 1, 0x60, 1, 0);
	for (uint32_t p = 1; p < 5; p++)
		request(t, OUT, SEND_ONLY, p, 8);
	ack(t, IN, 4, 5);
}

/* The wire doubles the NAK; the requested packet is lost again, and the time-out sends it. */
static void rq_nak_twice(struct talk *t)
{
	for (uint32_t p = 0; p < 4; p++)
		request(t, OUT, SEND_ONLY, p, 8);
	answer(t, IN, ACK, 1, 0x60, 1, 0);
	for (uint32_t p = 1; p < 4; p++)
		request(t, OUT, SEND_ONLY, p, 8);
	answer(t, IN, ACK, 1, 0x60, 1, 0);
	wait_us(t, 20000);
	request(t, OUT, SEND_ONLY, 1, 8);
	ack(t, IN, 1, 2);
}

/* The first NAK is not obeyed, nor is its copy. */
static void rq_nak_twice_ignored(struct talk *t)
{
	for (uint32_t p = 0; p < 4; p++)
		request(t, OUT, SEND_ONLY, p, 8);
	answer(t, IN, ACK, 1, 0x60, 1, 0);
	answer(t, IN, ACK, 1, 0x60, 1, 0);
	wait_us(t, 20000);
	request(t, OUT, SEND_ONLY, 1, 8);
}

static void rq_nak_wrong_place(struct talk *t)
{
	for (uint32_t p = 0; p < 4; p++)
		request(t, OUT, SEND_ONLY, p, 8);
	answer(t, IN, ACK, 2, 0x60, 2, 0);
	request(t, OUT, SEND_ONLY, 3, 8);
	request(t, OUT, SEND_ONLY, 4, 8);
}

static void rq_nak_too_far_back(struct talk *t)
{
	for (uint32_t p = 0; p < 4; p++)
		request(t, OUT, SEND_ONLY, p, 8);
	ack(t, IN, 1, 2);
	wait_us(t, 200);
	answer(t, IN, ACK, 2, 0x60, 2, 0);
	wait_us(t, 200);
	request(t, OUT, SEND_ONLY, 1, 8);
}

static void rq_nak_ignored(struct talk *t)
{
	for (uint32_t p = 0; p < 4; p++)
		request(t, OUT, SEND_ONLY, p, 8);
	answer(t, IN, ACK, 1, 0x60, 1, 0);
	wait_us(t, 20000);
}

/* answers to PSNs that were never sent: nothing is acknowledged, the time-out goes back to PSN 0 */
static void rq_ghosts(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 1, 8);
	ack(t, IN, 2, 3);
	answer(t, IN, ACK, 2, 0x60, 2, 0);
	answer(t, IN, ACK, 900, 0x60, 2, 0);
	wait_us(t, 80);
	request(t, OUT, SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 1, 8);
	ack(t, IN, 1, 2);
}

static void rq_ghost_obeyed(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 1, 8);
	answer(t, IN, ACK, 2, 0x60, 2, 0);
	wait_us(t, 5000);
}

static void rq_other_bytes(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	answer(t, IN, ACK, 0, 0x60, 0, 0);
	request(t, OUT, SEND_ONLY, 0, 12);
}

/* A SEND whose payload has changed when it is sent again. */
static void rq_other_payload(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	answer(t, IN, ACK, 0, 0x60, 0, 0);
	t->other = true;
	request(t, OUT, SEND_ONLY, 0, 8);
	ack(t, IN, 0, 1);
}

static void rq_hole(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 2, 8);
}

static void rq_no_cause(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	wait_us(t, 20);
	request(t, OUT, SEND_ONLY, 0, 8);
}

/* time-out 4: 65.5 us */
static void rq_timeout(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	wait_us(t, 80);
	request(t, OUT, SEND_ONLY, 0, 8);
	ack(t, IN, 0, 1);
}

/*
 * The first message's time-out has expired when its ACK comes. The requester has begun to go back,
 * and sends the second message again, once and soon.
 */
static void timeout_before_ack(struct talk *t, unsigned int first_us, unsigned int then_us,
			       unsigned int times)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	wait_us(t, first_us);
	request(t, OUT, SEND_ONLY, 1, 8);
	ack(t, IN, 0, 1);
	wait_us(t, then_us);
	while (times--)
		request(t, OUT, SEND_ONLY, 1, 8);
	ack(t, IN, 1, 2);
}

static void rq_timeout_before_ack(struct talk *t)
{
	timeout_before_ack(t, 80, 9, 1);
}

static void rq_no_timeout_before_ack(struct talk *t)
{
	timeout_before_ack(t, 50, 9, 1);
}

static void rq_timeout_long_before_ack(struct talk *t)
{
	timeout_before_ack(t, 80, 60, 1);
}

static void rq_timeout_twice_before_ack(struct talk *t)
{
	timeout_before_ack(t, 80, 9, 2);
}

static void rq_never_again(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	wait_us(t, 5000);
}

static void rq_nak_late(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 1, 8);
	answer(t, IN, ACK, 0, 0x60, 0, 0);
	wait_us(t, 60);
	request(t, OUT, SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 1, 8);
	ack(t, IN, 1, 2);
}

/* A packet that a NAK requests waits for the turn of another QP. */
static void nak_of_two(struct talk *t, unsigned int us)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 1, 8);
	answer(t, IN, ACK, 0, 0x60, 0, 0);
	t->qpn++;
	request(t, OUT, SEND_ONLY, 0, 8);
	ack(t, IN, 0, 1);
	t->qpn--;
	wait_us(t, us - 3);
	request(t, OUT, SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 1, 8);
	ack(t, IN, 1, 2);
}

static void rq_nak_waits_for_other(struct talk *t)
{
	nak_of_two(t, 52);
}

static void rq_nak_late_with_other(struct talk *t)
{
	nak_of_two(t, 54);
}

static void rq_rnr(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	answer(t, IN, ACK, 0, 0x20 | 7, 0, 0); /* 120 us */
	wait_us(t, 121);
	request(t, OUT, SEND_ONLY, 0, 8);
	ack(t, IN, 0, 1);
}

static void rq_rnr_early(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	answer(t, IN, ACK, 0, 0x20 | 7, 0, 0);
	wait_us(t, 100);
	request(t, OUT, SEND_ONLY, 0, 8);
}

static void rq_read_gap(struct talk *t)
{
	reth(t, OUT, READ_REQ, 0, 0x2000, 4 * MTU, 0);
	answer(t, IN, READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, IN, READ_MIDDLE, 2, 0, 0, MTU);
	reth(t, OUT, READ_REQ, 1, 0x2000 + MTU, 3 * MTU, 0);
	answer(t, IN, READ_FIRST, 1, 0x1f, 1, MTU);
	answer(t, IN, READ_MIDDLE, 2, 0, 0, MTU);
	answer(t, IN, READ_LAST, 3, 0x1f, 1, MTU);
}

static void rq_read_gap_wrong_place(struct talk *t)
{
	reth(t, OUT, READ_REQ, 0, 0x2000, 4 * MTU, 0);
	answer(t, IN, READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, IN, READ_MIDDLE, 2, 0, 0, MTU);
	reth(t, OUT, READ_REQ, 1, 0x2000, 3 * MTU, 0);
}

/*
 * A gap that a time-out has repaired is reported again when the answers come, and so is another gap
 * after it: the requester may go back once for each.
 */
static void gap_after_timeout(struct talk *t, unsigned int times)
{
	for (unsigned int n = 0; n < 2; n++) {
		reth(t, OUT, READ_REQ, 0, 0x2000, MTU, 0);
		atomic(t, OUT, 1);
		reth(t, OUT, READ_REQ, 2, 0x3000, MTU, 0);
		answer(t, IN, READ_ONLY, 2, 0x1f, 2, MTU);
		if (!n)
			wait_us(t, 80);
	}
	answer(t, IN, READ_ONLY, 0, 0x1f, 1, MTU);
	answer(t, IN, READ_ONLY, 2, 0x1f, 2, MTU);
	while (times--) {
		atomic(t, OUT, 1);
		reth(t, OUT, READ_REQ, 2, 0x3000, MTU, 0);
	}
	atomic_ack(t, IN, 1, 2, 0);
	answer(t, IN, READ_ONLY, 2, 0x1f, 3, MTU);
}

/* A NAK that the wire has delayed: the requested packet has already been sent again, because of a
 * gap. */
static void rq_nak_behind_gap(struct talk *t)
{
	atomic(t, OUT, 0);
	reth(t, OUT, READ_REQ, 1, 0x2000, MTU, 0);
	answer(t, IN, READ_ONLY, 1, 0x1f, 2, MTU);
	atomic(t, OUT, 0);
	reth(t, OUT, READ_REQ, 1, 0x2000, MTU, 0);
	answer(t, IN, ACK, 0, 0x60, 0, 0);
	wait_us(t, 100);
	atomic(t, OUT, 0);
	reth(t, OUT, READ_REQ, 1, 0x2000, MTU, 0);
	atomic_ack(t, IN, 0, 2, 0);
	answer(t, IN, READ_ONLY, 1, 0x1f, 2, MTU);
}

/*
 * A gap that is reported before a time-out's resend is on the wire makes the requester go back once
 * more, from what has been acknowledged meanwhile; one that was reported long ago does not.
 */
static void gap_and_timeout(struct talk *t, bool again)
{
	reth(t, OUT, READ_REQ, 0, 0x2000, MTU, 0);
	atomic(t, OUT, 1);
	reth(t, OUT, READ_REQ, 2, 0x3000, MTU, 0);
	answer(t, IN, READ_ONLY, 2, 0x1f, 2, MTU);
	wait_us(t, 80);
	if (again)
		answer(t, IN, READ_ONLY, 2, 0x1f, 2, MTU);
	reth(t, OUT, READ_REQ, 0, 0x2000, MTU, 0);
	atomic(t, OUT, 1);
	reth(t, OUT, READ_REQ, 2, 0x3000, MTU, 0);
	answer(t, IN, READ_ONLY, 0, 0x1f, 1, MTU);
	atomic(t, OUT, 1);
	reth(t, OUT, READ_REQ, 2, 0x3000, MTU, 0);
	atomic_ack(t, IN, 1, 2, 0);
	answer(t, IN, READ_ONLY, 2, 0x1f, 3, MTU);
}

static void rq_gap_told_before_timeout(struct talk *t)
{
	gap_and_timeout(t, true);
}

static void rq_gap_told_long_ago(struct talk *t)
{
	gap_and_timeout(t, false);
}

static void rq_gap_told_anew(struct talk *t)
{
	gap_after_timeout(t, 2);
}

static void rq_gap_back_too_often(struct talk *t)
{
	gap_after_timeout(t, 3);
}

static void rq_sequence(struct talk *t)
{
	request(t, OUT, SEND_FIRST, 0, MTU);
	request(t, OUT, SEND_ONLY, 1, 8);
}

static void rq_short_first(struct talk *t)
{
	request(t, OUT, SEND_FIRST, 0, 100);
}

static void rq_empty_last(struct talk *t)
{
	request(t, OUT, SEND_FIRST, 0, MTU);
	request(t, OUT, SEND_LAST, 1, 0);
}

static void rq_reth_length(struct talk *t)
{
	reth(t, OUT, WRITE_FIRST, 0, 0, 600, MTU);
	request(t, OUT, WRITE_LAST, 1, 100);
}

static void rq_too_many_reads(struct talk *t)
{
	for (uint32_t p = 0; p < 5; p++)
		reth(t, OUT, READ_REQ, p, 0, 8, 0);
}

static void rq_bad_icrc(struct talk *t)
{
	t->spoil = true;
	request(t, OUT, SEND_ONLY, 0, 8);
}

static void rq_after_end(struct talk *t)
{
	request(t, OUT, SEND_ONLY, 0, 8);
	answer(t, IN, ACK, 0, 0x62, 0, 0);
	wait_us(t, 200);
	request(t, OUT, SEND_ONLY, 0, 8);
}

/* responder: the peer sends, the port answers */
static void rs_clean(struct talk *t)
{
	request(t, IN, SEND_FIRST, 0xffffff, MTU);
	request(t, IN, SEND_LAST, 0, 8);
	reth(t, IN, READ_REQ, 1, 0, 2 * MTU + 1, 0);
	request(t, IN, SEND_ONLY, 4, 8);
	ack(t, OUT, 0, 1);
	answer(t, OUT, READ_FIRST, 1, 0x1f, 2, MTU);
	answer(t, OUT, READ_MIDDLE, 2, 0, 0, MTU);
	answer(t, OUT, READ_LAST, 3, 0x1f, 2, 1);
	ack(t, OUT, 4, 3);
	atomic(t, IN, 5);
	atomic_ack(t, OUT, 5, 4, 77);
	atomic(t, IN, 5);
	atomic_ack(t, OUT, 5, 4, 77);
	request(t, IN, SEND_ONLY, 4, 8);
	ack(t, OUT, 5, 4);
}

static void rs_gap(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	t->spoil = true;
	request(t, IN, SEND_ONLY, 1, 8);
	request(t, IN, SEND_ONLY, 2, 8);
	answer(t, OUT, ACK, 1, 0x60, 1, 0);
	request(t, IN, SEND_ONLY, 3, 8);
	request(t, IN, SEND_ONLY, 1, 8);
	request(t, IN, SEND_ONLY, 2, 8);
	ack(t, OUT, 2, 3);
}

/* The NAK of a gap comes after the answers to the READ before it. */
static void gap_behind_answers(struct talk *t, unsigned int us)
{
	reth(t, IN, READ_REQ, 0, 0x2000, 8 * MTU, 0);
	request(t, IN, SEND_ONLY, 9, 8);
	for (uint32_t p = 0; p < 8; p++) {
		wait_us(t, 40);
		if (p % 7)
			answer(t, OUT, READ_MIDDLE, p, 0, 0, MTU);
		else
			answer(t, OUT, p ? READ_LAST : READ_FIRST, p, 0x1f, 1, MTU);
	}
	wait_us(t, us);
	request(t, IN, SEND_ONLY, 8, 8);
	request(t, IN, SEND_ONLY, 9, 8);
	ack(t, OUT, 9, 3);
}

static void rs_gap_behind_answers(struct talk *t)
{
	gap_behind_answers(t, 0);
}

static void rs_no_nak_after_answers(struct talk *t)
{
	gap_behind_answers(t, 300);
}

/* The first packet comes after the second, and before the NAK. */
static void rs_first_late(struct talk *t)
{
	request(t, IN, SEND_ONLY, 1, 8);
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 1, 8);
	answer(t, OUT, ACK, 0, 0x60, 0, 0);
	ack(t, OUT, 1, 2);
}

/* The first packet came before the QP was in RTR. */
static void rs_early(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 1, 8);
	request(t, IN, SEND_ONLY, 2, 8);
	answer(t, OUT, ACK, 0, 0x60, 0, 0);
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 1, 8);
	ack(t, OUT, 1, 2);
}

static void rs_early_twice(struct talk *t)
{
	rs_early(t);
	answer(t, OUT, ACK, 0, 0x60, 2, 0);
}

static void rs_nak_of_first(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	answer(t, OUT, ACK, 0, 0x60, 0, 0);
}

static void rs_second_nak(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 2, 8);
	answer(t, OUT, ACK, 1, 0x60, 1, 0);
	request(t, IN, SEND_ONLY, 3, 8);
	answer(t, OUT, ACK, 1, 0x60, 1, 0);
}

static void rs_no_nak(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 2, 8);
	wait_us(t, 5000);
}

/* The NIC had no room for PSN 1. */
static void rs_nak_of_dropped(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 1, 8);
	request(t, IN, SEND_ONLY, 2, 8);
	answer(t, OUT, ACK, 1, 0x60, 1, 0);
	request(t, IN, SEND_ONLY, 1, 8);
	request(t, IN, SEND_ONLY, 2, 8);
	ack(t, OUT, 2, 3);
}

static void rs_nak_of_dropped_twice(struct talk *t)
{
	rs_nak_of_dropped(t);
	t->qpn++;
	rs_nak_of_dropped(t);
}

/* The QP is no longer judged, and goes on for long. After a pause it is still the same QP. */
static void rs_dropped_before_pause(struct talk *t)
{
	uint32_t p;

	rs_nak_of_dropped(t);
	for (p = 3; p < 5000; p++)
		request(t, IN, SEND_ONLY, p, 8);
	ack(t, OUT, p - 1, p);
	wait_us(t, 600000);
	request(t, IN, SEND_ONLY, p - 10, 8);
	ack(t, OUT, p - 1, p);
}

/*
 * A READ with many answers is lost twice: the next request is far ahead, but not from another QP.
 */
static void rs_read_lost_after_pause(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	ack(t, OUT, 0, 1);
	t->spoil = true;
	reth(t, IN, READ_REQ, 1, 0x2000, 256 * MTU, 0);
	wait_us(t, 600000);
	t->spoil = true;
	reth(t, IN, READ_REQ, 1, 0x2000, 256 * MTU, 0);
	request(t, IN, SEND_ONLY, 257, 8);
	answer(t, OUT, ACK, 1, 0x60, 1, 0);
	reth(t, IN, READ_REQ, 1, 0x2000, 256 * MTU, 0);
	request(t, IN, SEND_ONLY, 257, 8);
	answer(t, OUT, READ_FIRST, 1, 0x1f, 2, MTU);
	for (uint32_t p = 2; p < 256; p++)
		answer(t, OUT, READ_MIDDLE, p, 0, 0, MTU);
	answer(t, OUT, READ_LAST, 256, 0x1f, 2, MTU);
	ack(t, OUT, 257, 3);
}

static void rs_nak_for_nothing(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	answer(t, OUT, ACK, 1, 0x60, 1, 0);
}

static void rs_nak_wrong_psn(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 2, 8);
	answer(t, OUT, ACK, 2, 0x60, 1, 0);
}

static void rs_ack_ahead(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	ack(t, OUT, 1, 1);
}

static void rs_ack_back(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 1, 8);
	ack(t, OUT, 1, 2);
	ack(t, OUT, 0, 1);
}

static void rs_ack_twice(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	ack(t, OUT, 0, 1);
	ack(t, OUT, 0, 1);
}

static void rs_msn(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	ack(t, OUT, 0, 2);
}

static void rs_ack_before_read(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 8, 0);
	request(t, IN, SEND_ONLY, 1, 8);
	ack(t, OUT, 1, 2);
}

static void rs_read_short(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 300, 0);
	answer(t, OUT, READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, OUT, READ_LAST, 1, 0x1f, 1, 43);
}

static void rs_read_opcode(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 300, 0);
	answer(t, OUT, READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, OUT, READ_ONLY, 1, 0x1f, 1, 44);
}

static void rs_read_hole(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 3 * MTU, 0);
	answer(t, OUT, READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, OUT, READ_LAST, 2, 0x1f, 1, MTU);
}

/* A READ of three packets, and its answers. */
static void read_of_three(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 3 * MTU, 0);
	answer(t, OUT, READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, OUT, READ_MIDDLE, 1, 0x1f, 1, MTU);
	answer(t, OUT, READ_LAST, 2, 0x1f, 1, MTU);
}

/* The answers to a repeated READ stop, and those to the next one follow. */
static void rs_repeated_read_stops(struct talk *t)
{
	read_of_three(t);
	reth(t, IN, READ_REQ, 0, 0, 3 * MTU, 0);
	reth(t, IN, READ_REQ, 3, 0, 8, 0);
	answer(t, OUT, READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, OUT, READ_ONLY, 3, 0x1f, 2, 8);
}

/* The NIC has dropped n repetitions of the end of a READ, and answers a later repetition of all of
 * it. */
static void repetitions_dropped(struct talk *t, unsigned int n)
{
	read_of_three(t);
	while (n--)
		reth(t, IN, READ_REQ, 1, 0, 2 * MTU, 0);
	read_of_three(t);
}

static void rs_repetition_dropped(struct talk *t)
{
	repetitions_dropped(t, 1);
}

/* More than the judge can remember. */
static void rs_many_repetitions_dropped(struct talk *t)
{
	repetitions_dropped(t, 1000);
}

/* The first answers to a READ must not stop. */
static void rs_read_stops(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 3 * MTU, 0);
	reth(t, IN, READ_REQ, 3, 0, 8, 0);
	answer(t, OUT, READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, OUT, READ_ONLY, 3, 0x1f, 2, 8);
}

/* Nor may those to a repetition while a part of the READ has never been answered. */
static void rs_repeated_read_stops_early(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 3 * MTU, 0);
	answer(t, OUT, READ_FIRST, 0, 0x1f, 1, MTU);
	reth(t, IN, READ_REQ, 0, 0, 3 * MTU, 0);
	reth(t, IN, READ_REQ, 3, 0, 8, 0);
	answer(t, OUT, READ_MIDDLE, 1, 0x1f, 1, MTU);
	answer(t, OUT, READ_ONLY, 3, 0x1f, 2, 8);
}

static void rs_read_unanswered(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 8, 0);
	wait_us(t, 5000);
}

static void rs_read_overtaken(struct talk *t)
{
	reth(t, IN, READ_REQ, 0, 0, 8, 0);
	reth(t, IN, READ_REQ, 1, 0, 8, 0);
	answer(t, OUT, READ_ONLY, 1, 0x1f, 2, 8);
	reth(t, IN, READ_REQ, 0, 0, 8, 0);
	reth(t, IN, READ_REQ, 1, 0, 8, 0);
	answer(t, OUT, READ_ONLY, 0, 0x1f, 1, 8);
	answer(t, OUT, READ_ONLY, 1, 0x1f, 2, 8);
}

static void rs_answer_unasked(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	answer(t, OUT, READ_ONLY, 0, 0x1f, 1, 8);
}

static void rs_atomic_other_value(struct talk *t)
{
	atomic(t, IN, 0);
	atomic_ack(t, OUT, 0, 1, 5);
	atomic(t, IN, 0);
	atomic_ack(t, OUT, 0, 1, 6);
}

static void rs_rnr(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, SEND_ONLY, 1, 8);
	answer(t, OUT, ACK, 0, 0x20 | 1, 0, 0);
	request(t, IN, SEND_ONLY, 2, 8);
	wait_us(t, 50);
	request(t, IN, SEND_ONLY, 0, 8);
	ack(t, OUT, 0, 1);
}

/* A READ after the refused SEND comes twice before the RNR NAK, and once more after it. */
static void rs_rnr_with_copies(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	reth(t, IN, READ_REQ, 1, 0x2000, MTU, 0);
	reth(t, IN, READ_REQ, 1, 0x2000, MTU, 0);
	answer(t, OUT, ACK, 0, 0x20 | 1, 0, 0);
	wait_us(t, 50);
	request(t, IN, SEND_ONLY, 0, 8);
	reth(t, IN, READ_REQ, 1, 0x2000, MTU, 0);
	answer(t, OUT, READ_ONLY, 1, 0x1f, 2, MTU);
	request(t, IN, SEND_ONLY, 2, 8);
	ack(t, OUT, 2, 3);
}

/* The requester may request it; the responder has to refuse it. */
static void rs_atomic_misaligned(struct talk *t)
{
	atomic_to(t, IN, 0, 0x1004);
	atomic_ack(t, OUT, 0, 1, 5);
}

static void rs_answers_when_dead(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	answer(t, OUT, ACK, 0, 0x61, 0, 0);
	ack(t, OUT, 0, 1);
}

/* ---- FLUSH, ATOMIC WRITE: of RC and of XRC ---- */

static void mpe_talk(struct talk *t, bool out, unsigned int xrc)
{
	flush(t, out, xrc | FLUSH, 0);
	atomic_write(t, out, xrc | ATOMIC_WRITE, 1);
	request(t, out, xrc | SEND_ONLY, 2, 8);
	answer(t, !out, xrc | READ_ONLY, 0, 0x1f, 1, 0);
	answer(t, !out, xrc | READ_ONLY, 1, 0x1f, 2, 0);
	answer(t, !out, xrc | ACK, 2, 0x1f, 3, 0);
	/* the answers are lost: both are asked for again */
	flush(t, out, xrc | FLUSH, 3);
	atomic_write(t, out, xrc | ATOMIC_WRITE, 4);
	wait_us(t, 300);
	flush(t, out, xrc | FLUSH, 3);
	atomic_write(t, out, xrc | ATOMIC_WRITE, 4);
	answer(t, !out, xrc | READ_ONLY, 3, 0x1f, 4, 0);
	if (!out) /* the port has taken them twice */
		answer(t, !out, xrc | READ_ONLY, 3, 0x1f, 4, 0);
	answer(t, !out, xrc | READ_ONLY, 4, 0x1f, 5, 0);
}

static void mpe_rq_clean(struct talk *t)
{
	mpe_talk(t, OUT, 0);
}

static void mpe_rs_clean(struct talk *t)
{
	mpe_talk(t, IN, 0);
}

static void mpe_xrc_rq_clean(struct talk *t)
{
	mpe_talk(t, OUT, XRC);
}

static void mpe_xrc_rs_clean(struct talk *t)
{
	mpe_talk(t, IN, XRC);
}

static void mpe_too_many(struct talk *t)
{
	for (uint32_t psn = 0; psn < 5; psn++)
		flush(t, OUT, FLUSH, psn);
}

static void mpe_reserved(struct talk *t)
{
	flush_with(t, OUT, FLUSH, 0, 0x41);
}

static void mpe_other_value_again(struct talk *t)
{
	atomic_write(t, OUT, ATOMIC_WRITE, 0);
	wait_us(t, 300);
	t->other = true;
	atomic_write(t, OUT, ATOMIC_WRITE, 0);
}

static void mpe_seven_bytes(struct talk *t)
{
	reth(t, OUT, ATOMIC_WRITE, 0, 0x1000, 8, 7);
}

static void mpe_acknowledged(struct talk *t)
{
	flush(t, IN, FLUSH, 0);
	ack(t, OUT, 0, 1);
}

static void mpe_answer_with_data(struct talk *t)
{
	flush(t, IN, FLUSH, 0);
	answer(t, OUT, READ_ONLY, 0, 0x1f, 1, 8);
}

static void mpe_misaligned(struct talk *t)
{
	reth(t, IN, ATOMIC_WRITE, 0, 0x1004, 8, 8);
	answer(t, OUT, READ_ONLY, 0, 0x1f, 1, 0);
}

/* ---- XRC ---- */

static void xrc_atomic(struct talk *t, bool out, uint32_t psn)
{
	uint8_t ext[28] = { 0 };

	request_with(t, out, XRC | FETCH_ADD, psn, ext, sizeof(ext), 0);
}

static void xrc_atomic_ack(struct talk *t, bool out, uint32_t psn, uint32_t msn)
{
	uint8_t ext[12] = { 0 };

	roce_put(ext, (uint64_t)0x1f << 24 | msn, 4);
	frame(t, out, XRC | ATOMIC_ACK, psn, ext, sizeof(ext), 0);
}

/* Each message to another SRQ; one is sent again. */
static void xrc_talk(struct talk *t, bool out)
{
	t->xrceth = 0xffffff;
	request(t, out, XRC | SEND_FIRST, 0xfffffe, MTU);
	request(t, out, XRC | SEND_MIDDLE, 0xffffff, MTU);
	request(t, out, XRC | SEND_LAST, 0, 7);
	answer(t, !out, XRC | ACK, 0, 0x1f, 1, 0);
	t->xrceth = 7;
	reth(t, out, XRC | WRITE_FIRST, 1, 0x1000, 300, MTU);
	request(t, out, XRC | WRITE_LAST, 2, 44);
	answer(t, !out, XRC | ACK, 2, 0x20 | 1, 1, 0);
	wait_us(t, 20);
	request(t, out, XRC | WRITE_LAST, 2, 44);
	answer(t, !out, XRC | ACK, 2, 0x1f, 2, 0);
	t->xrceth = 0;
	reth(t, out, XRC | READ_REQ, 3, 0x2000, 3 * MTU, 0);
	t->xrceth = 8;
	request(t, out, XRC | SEND_ONLY, 6, 0);
	answer(t, !out, XRC | READ_FIRST, 3, 0x1f, 3, MTU);
	answer(t, !out, XRC | READ_MIDDLE, 4, 0, 0, MTU);
	answer(t, !out, XRC | READ_LAST, 5, 0x1f, 3, MTU);
	answer(t, !out, XRC | ACK, 6, 0x1f, 4, 0);
	t->xrceth = 9;
	xrc_atomic(t, out, 7);
	xrc_atomic_ack(t, !out, 7, 5);
}

static void xrc_rq_clean(struct talk *t)
{
	xrc_talk(t, OUT);
}

static void xrc_rs_clean(struct talk *t)
{
	xrc_talk(t, IN);
}

static void xrc_no_xrceth(struct talk *t)
{
	frame(t, OUT, XRC | SEND_ONLY, 0, NULL, 0, 0);
}

static void xrc_no_xrceth_in_middle(struct talk *t)
{
	t->xrceth = 5;
	request(t, OUT, XRC | SEND_FIRST, 0, MTU);
	frame(t, OUT, XRC | SEND_MIDDLE, 1, NULL, 0, MTU);
}

static void xrc_no_xrceth_in_atomic(struct talk *t)
{
	uint8_t ext[28] = { 0 };

	frame(t, OUT, XRC | FETCH_ADD, 0, ext, sizeof(ext), 0);
}

static void xrc_reserved(struct talk *t)
{
	t->xrceth = 0x01000005;
	request(t, OUT, XRC | SEND_ONLY, 0, 8);
}

static void xrc_other_srq_in_message(struct talk *t)
{
	t->xrceth = 5;
	request(t, OUT, XRC | SEND_FIRST, 0, MTU);
	request(t, OUT, XRC | SEND_MIDDLE, 1, MTU);
	t->xrceth = 6;
	request(t, OUT, XRC | SEND_LAST, 2, 8);
}

static void xrc_other_srq_again(struct talk *t)
{
	t->xrceth = 5;
	request(t, OUT, XRC | SEND_ONLY, 0, 8);
	answer(t, IN, XRC | ACK, 0, 0x60, 0, 0);
	t->xrceth = 6;
	request(t, OUT, XRC | SEND_ONLY, 0, 8);
}

static void xrc_read_of_other_srq(struct talk *t)
{
	t->xrceth = 5;
	reth(t, OUT, XRC | READ_REQ, 0, 0x2000, 4 * MTU, 0);
	answer(t, IN, XRC | READ_FIRST, 0, 0x1f, 1, MTU);
	answer(t, IN, XRC | READ_MIDDLE, 2, 0, 0, MTU);
	t->xrceth = 6;
	reth(t, OUT, XRC | READ_REQ, 1, 0x2000 + MTU, 3 * MTU, 0);
	answer(t, IN, XRC | READ_FIRST, 1, 0x1f, 1, MTU);
	answer(t, IN, XRC | READ_MIDDLE, 2, 0, 0, MTU);
	answer(t, IN, XRC | READ_LAST, 3, 0x1f, 1, MTU);
}

static void xrc_answered_as_rc(struct talk *t)
{
	request(t, IN, XRC | SEND_ONLY, 0, 8);
	answer(t, OUT, ACK, 0, 0x1f, 1, 0);
}

static void xrc_answer_with_xrceth(struct talk *t)
{
	uint8_t ext[8] = { 0, 0, 0, 5, 0x1f, 0, 0, 1 };

	reth(t, IN, XRC | READ_REQ, 0, 0x2000, 8, 0);
	frame(t, OUT, XRC | READ_ONLY, 0, ext, sizeof(ext), 8);
}

static void xrc_then_rc(struct talk *t)
{
	request(t, OUT, XRC | SEND_ONLY, 0, 8);
	request(t, OUT, SEND_ONLY, 1, 8);
}

static void rc_answered_as_xrc(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	answer(t, OUT, XRC | ACK, 0, 0x1f, 1, 0);
}

/* An RC QP takes no XRC packet, wherever its PSN is. */
static void rc_ignores_xrc(struct talk *t)
{
	request(t, IN, SEND_ONLY, 0, 8);
	request(t, IN, XRC | SEND_ONLY, 1, 8);
	request(t, IN, XRC | SEND_ONLY, 5, 8);
	request(t, IN, SEND_ONLY, 1, 8);
	ack(t, OUT, 1, 2);
	request(t, OUT, SEND_ONLY, 0, 8);
	answer(t, IN, XRC | ACK, 0, 0x62, 0, 0);
	ack(t, IN, 0, 1);
	request(t, OUT, SEND_ONLY, 1, 8);
	ack(t, IN, 1, 2);
}

static void xrc_hole(struct talk *t)
{
	request(t, OUT, XRC | SEND_ONLY, 0, 8);
	request(t, OUT, XRC | SEND_ONLY, 2, 8);
}

static void xrc_ack_ahead(struct talk *t)
{
	request(t, IN, XRC | SEND_ONLY, 0, 8);
	answer(t, OUT, XRC | ACK, 1, 0x1f, 1, 0);
}

static void unknown_transport(struct talk *t)
{
	request(t, OUT, 0x80 | SEND_ONLY, 0, 8);
}

struct conversation {
	const char *name;
	void (*talk)(struct talk *t);
	bool wrong, rewritten;
	unsigned int dropped;
	bool lives, keys_end;
};

#define CLEAN(f)                                     \
	{                                            \
#f, f, false, false, 0, false, false \
	}
#define WRONG(f)                                    \
	{                                           \
#f, f, true, false, 0, false, false \
	}
/* Programs rewrite buffers. */
#define REWRITTEN(f, wrong)                               \
	{                                                 \
#f " -r", f, wrong, true, 0, false, false \
	}

/* A capture in which QP numbers may be reused. */
#define LIVES(f, n)                                          \
	{                                                    \
#f " lives", f, false, false, n, true, false \
	}

/* A NIC that has dropped N frames. */
#define DROPPED(f, wrong, n)                                   \
	{                                                      \
#f " -d " #n, f, wrong, false, n, false, false \
	}

/* Programs end keys. */
#define KEYS(f, wrong)                                      \
	{                                                   \
#f " keys", f, wrong, false, 0, false, true \
	}

static const struct conversation conversations[] = {
	CLEAN(rq_clean),
	CLEAN(rq_nak),
	CLEAN(rq_nak_twice),
	WRONG(rq_nak_twice_ignored),
	WRONG(rq_nak_wrong_place),
	WRONG(rq_nak_too_far_back),
	WRONG(rq_nak_ignored),
	CLEAN(rq_ghosts),
	WRONG(rq_ghost_obeyed),
	WRONG(rq_other_bytes),
	REWRITTEN(rq_other_bytes, true),
	WRONG(rq_other_payload),
	REWRITTEN(rq_other_payload, false),
	WRONG(rq_hole),
	WRONG(rq_no_cause),
	CLEAN(rq_timeout),
	CLEAN(rq_timeout_before_ack),
	WRONG(rq_no_timeout_before_ack),
	WRONG(rq_timeout_long_before_ack),
	WRONG(rq_timeout_twice_before_ack),
	WRONG(rq_never_again),
	WRONG(rq_nak_late),
	CLEAN(rq_nak_waits_for_other),
	WRONG(rq_nak_late_with_other),
	CLEAN(rq_rnr),
	WRONG(rq_rnr_early),
	CLEAN(rq_read_gap),
	WRONG(rq_read_gap_wrong_place),
	CLEAN(rq_nak_behind_gap),
	CLEAN(rq_gap_told_before_timeout),
	WRONG(rq_gap_told_long_ago),
	CLEAN(rq_gap_told_anew),
	WRONG(rq_gap_back_too_often),
	WRONG(rq_sequence),
	WRONG(rq_short_first),
	WRONG(rq_empty_last),
	WRONG(rq_reth_length),
	WRONG(rq_too_many_reads),
	WRONG(rq_bad_icrc),
	WRONG(rq_after_end),
	CLEAN(rs_clean),
	CLEAN(rs_gap),
	CLEAN(rs_gap_behind_answers),
	WRONG(rs_no_nak_after_answers),
	CLEAN(rs_first_late),
	CLEAN(rs_early),
	WRONG(rs_early_twice),
	WRONG(rs_nak_of_first),
	WRONG(rs_second_nak),
	WRONG(rs_no_nak),
	WRONG(rs_nak_of_dropped),
	CLEAN(rs_repetition_dropped),
	CLEAN(rs_many_repetitions_dropped),
	WRONG(rs_repeated_read_stops),
	KEYS(rs_repeated_read_stops, false),
	KEYS(rs_read_stops, true),
	KEYS(rs_repeated_read_stops_early, true),
	DROPPED(rs_nak_of_dropped, false, 1),
	DROPPED(rs_nak_of_dropped_twice, true, 1),
	DROPPED(rs_nak_of_dropped_twice, false, 2),
	DROPPED(rs_nak_for_nothing, true, 1),
	DROPPED(rq_no_cause, false, 1),
	DROPPED(rq_hole, true, 1),
	LIVES(rs_dropped_before_pause, 1),
	LIVES(rs_read_lost_after_pause, 0),
	WRONG(rs_nak_for_nothing),
	WRONG(rs_nak_wrong_psn),
	WRONG(rs_ack_ahead),
	WRONG(rs_ack_back),
	WRONG(rs_ack_twice),
	WRONG(rs_msn),
	WRONG(rs_ack_before_read),
	WRONG(rs_read_short),
	WRONG(rs_read_opcode),
	WRONG(rs_read_hole),
	WRONG(rs_read_unanswered),
	WRONG(rs_read_overtaken),
	DROPPED(rs_read_overtaken, false, 1),
	WRONG(rs_answer_unasked),
	WRONG(rs_atomic_other_value),
	WRONG(rs_atomic_misaligned),
	CLEAN(rs_rnr),
	CLEAN(rs_rnr_with_copies),
	WRONG(rs_answers_when_dead),
	CLEAN(mpe_rq_clean),
	CLEAN(mpe_rs_clean),
	CLEAN(mpe_xrc_rq_clean),
	CLEAN(mpe_xrc_rs_clean),
	WRONG(mpe_too_many),
	WRONG(mpe_reserved),
	WRONG(mpe_other_value_again),
	WRONG(mpe_seven_bytes),
	WRONG(mpe_acknowledged),
	WRONG(mpe_answer_with_data),
	WRONG(mpe_misaligned),
	CLEAN(xrc_rq_clean),
	CLEAN(xrc_rs_clean),
	WRONG(xrc_no_xrceth),
	WRONG(xrc_no_xrceth_in_middle),
	WRONG(xrc_no_xrceth_in_atomic),
	WRONG(xrc_reserved),
	WRONG(xrc_other_srq_in_message),
	WRONG(xrc_other_srq_again),
	WRONG(xrc_read_of_other_srq),
	WRONG(xrc_answered_as_rc),
	WRONG(xrc_answer_with_xrceth),
	WRONG(xrc_then_rc),
	WRONG(rc_answered_as_xrc),
	CLEAN(rc_ignores_xrc),
	WRONG(xrc_hole),
	WRONG(xrc_ack_ahead),
	WRONG(unknown_transport),
};

#define N (sizeof(conversations) / sizeof(conversations[0]))

static void test_conversation(void **state)
{
	const struct conversation *v = *state;
	const struct rc_check_config config = {
		.mtu = MTU,
		.timeout = 4,
		.rd_atomic = 4,
		.same_qpn = true,
		.rewritten = v->rewritten,
		.rx_dropped = v->dropped,
		.lives = v->lives,
		.keys_end = v->keys_end,
	};
	struct talk t = { .check = rc_check_create(v->name, &config), .qpn = QPN };
	uint64_t violations;

	assert_non_null(t.check);
	v->talk(&t);
	violations = rc_check_end(t.check, t.ns);
	rc_check_destroy(t.check);
	if (v->wrong && !violations)
		fail_msg("a conversation against the rules was found clean");
	if (!v->wrong && violations)
		fail_msg("%u violations found in a clean conversation", (unsigned int)violations);
}

int main(void)
{
	struct CMUnitTest tests[N];

	for (size_t i = 0; i < N; i++)
		tests[i] = (struct CMUnitTest){ .name = conversations[i].name,
						.test_func = test_conversation,
						.initial_state = (void *)&conversations[i] };
	return _cmocka_run_group_tests("rc_check", tests, N, NULL, NULL);
}
