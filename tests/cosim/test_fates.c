// SPDX-License-Identifier: Apache-2.0
/*
 * The comments of captures on frames that a NIC drops, with hand-made frames and lane events. A
 * failure means that a capture blames the wrong frame, gives a wrong reason, or has frames in
 * another order or at another time than the port.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "roce_frame.h"
#include "trace/fates.h"
#include "urdma_trace_pkg.h"

enum {
	SEND = 0x04,
	WRITE = 0x0a,
	READ = 0x0c,
	ACK = 0x11,
	FETCH_ADD = 0x14,
	UC_SEND = 0x24,
	UD_SEND = 0x64
};

struct bench {
	struct urdma_eth_port port;
	struct urdma_fates *fates;
	struct urdma_eth_frame frame;
	uint64_t ns;
	char seen[8192]; /* frames, a line each: time, comment */
	size_t n;
};

static void recorded(void *ctx, uint64_t ns, const struct urdma_eth_frame *frame, bool outbound)
{
	struct bench *b = ctx;

	b->n += (size_t)snprintf(b->seen + b->n, sizeof(b->seen) - b->n, "%" PRIu64 "%s%s%s\n", ns,
				 outbound ? " out" : "", *frame->note ? " " : "", frame->note);
	assert_true(b->n < sizeof(b->seen));
}

static void bench_open(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	urdma_eth_port_init(&b->port, "a", 100000);
	b->port.live = (struct urdma_eth_tap){ recorded, b };
	b->fates = urdma_fates_create(&b->port);
	assert_non_null(b->fates);
}

static void bench_close(struct bench *b, uint64_t unknown)
{
	urdma_fates_flush(b->fates);
	assert_int_equal(urdma_fates_unknown(b->fates), unknown);
	urdma_fates_destroy(b->fates);
	assert_null(b->port.hold.fn);
	urdma_eth_port_cleanup(&b->port);
}

static void expect(struct bench *b, const char *seen)
{
	assert_string_equal(b->seen, seen);
	b->n = 0;
	*b->seen = 0;
}

/* The port sees b->frame. */
static void show(struct bench *b, uint64_t ns, bool outbound)
{
	b->ns = ns;
	b->port.hold.fn(b->port.hold.ctx, ns, &b->frame, outbound);
	b->frame.error = false;
	*b->frame.note = 0;
}

static void packet(struct bench *b, uint64_t ns, uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	b->frame.len = roce_frame(b->frame.data, 256, ROCE_IPV4, opcode, qpn, psn, 0, 64);
	/* fixed fields of the shapes stay: the address of one NIC, or of a group */
	b->frame.data[0] = qpn == 0xffffff;
	show(b, ns, false);
}

static void other(struct bench *b, uint64_t ns, uint32_t len)
{
	memset(b->frame.data, 0, len);
	b->frame.len = len;
	show(b, ns, false);
}

#define EVENT(b, KIND, ...)                                                                       \
	urdma_fates_event((b)->fates,                                                             \
			  &(struct urdma_trace_event){ .cycle = (b)->ns / URDMA_SIM_CYCLE_NS + 1, \
						       .kind = URDMA_TRACE_##KIND,                \
						       __VA_ARGS__ })

static void in(struct bench *b, uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	EVENT(b, IN, .in = { .qpn = qpn, .psn = psn, .opcode = opcode });
}

static void rsp(struct bench *b, uint8_t opcode, uint32_t qpn, uint32_t psn, unsigned int verdict,
		unsigned int why)
{
	EVENT(b, RSP,
	      .rsp = { .qpn = qpn, .psn = psn, .opcode = opcode, .verdict = verdict, .why = why });
}

/* Each verdict of the responder, and its comment for each transport. */
static void test_responder(void **state)
{
	static const struct {
		uint8_t opcode;
		unsigned int verdict, why;
		const char *text;
	} cases[] = {
		{ SEND, TRV_REPEATED, TRW_NONE, "" },
		{ READ, TRV_REPEATED, TRW_OLD,
		  " dropped: repeated, and not to be answered again (rx_dup)" },
		{ SEND, TRV_GAP, TRW_NONE, " dropped: PSN ahead of the expected one (rx_seq_err)" },
		{ UC_SEND, TRV_GAP, TRW_NONE,
		  " dropped: a packet of its message is lost (rx_seq_err)" },
		{ SEND, TRV_RNR, TRW_NONE, " dropped: no receive WQE, the sender has to wait" },
		{ UD_SEND, TRV_RNR, TRW_NONE, " dropped: no receive WQE (rx_drop_no_wqe)" },
		{ SEND, TRV_REFUSED, TRW_NONE,
		  " dropped: the request is not valid or not allowed, its QP fails" },
		{ UC_SEND, TRV_REFUSED, TRW_NONE,
		  " dropped: opcode, length or right (rx_drop_unrel)" },
		{ UD_SEND, TRV_REFUSED, TRW_QKEY, " dropped: Q_Key (rx_bad_qkey)" },
		{ SEND, TRV_DROPPED, TRW_NO_QP, " dropped: no QP (rx_no_qp)" },
		{ SEND, TRV_DROPPED, TRW_TRANSPORT,
		  " dropped: no QP of this transport (rx_no_qp)" },
		{ SEND, TRV_DROPPED, TRW_STATE,
		  " dropped: no QP in a state that takes it (rx_no_qp)" },
		{ SEND, TRV_DROPPED, TRW_ADDRESS,
		  " dropped: addresses or VLAN are not the QP's (rx_no_qp)" },
		{ SEND, TRV_DROPPED, TRW_PKEY, " dropped: P_Key (rx_no_qp)" },
		{ SEND, TRV_DROPPED, TRW_ERROR, " dropped: its QP has failed (rx_no_qp)" },
	};
	struct bench b;

	(void)state;
	bench_open(&b);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[160];

		/* The lane has the low bits of the QP's number. */
		packet(&b, 1000 * i + 100, cases[i].opcode, 0x5005, i);
		in(&b, cases[i].opcode, 0x5005, i);
		expect(&b, "");
		rsp(&b, cases[i].opcode, 5, i, cases[i].verdict, cases[i].why);
		snprintf(text, sizeof(text), "%u%s\n", 1000 * i + 100, cases[i].text);
		expect(&b, text);
	}
	bench_close(&b, 0);
}

/* Accepted packets go to placement; requests go to tx or to the ATOMIC unit. */
static void test_behind(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	for (uint32_t psn = 0; psn < 4; psn++) {
		packet(&b, 100 + psn, WRITE, 5, psn);
		in(&b, WRITE, 5, psn);
		rsp(&b, WRITE, 5, psn, TRV_TAKEN, TRW_NONE);
	}
	/* A READ response is not a request. */
	EVENT(&b, PUT, .put = { .qpn = 5, .psn = 0, .resp = 1 });
	expect(&b, "");
	EVENT(&b, VOIDED, .voided = { .qpn = 5, .psn = 1, .why = TRO_DEAD });
	EVENT(&b, VOIDED, .voided = { .qpn = 5, .psn = 2, .why = TRO_REFUSED });
	EVENT(&b, VOIDED, .voided = { .qpn = 5, .psn = 3, .why = TRO_UNREL });
	expect(&b, "");
	EVENT(&b, PUT, .put = { .qpn = 5, .psn = 0 });
	expect(&b, "100\n"
		   "101 dropped: behind an error of its QP\n"
		   "102 dropped: a key or receive buffer is refused, its QP fails\n"
		   "103 dropped: a key of its message is refused (rx_drop_unrel)\n");
	for (uint32_t psn = 0; psn < 6; psn++) {
		packet(&b, 200 + psn, psn < 3 ? READ : FETCH_ADD, 5, psn);
		in(&b, psn < 3 ? READ : FETCH_ADD, 5, psn);
		rsp(&b, psn < 3 ? READ : FETCH_ADD, 5, psn, psn & 1 ? TRV_REPEATED : TRV_TAKEN,
		    TRW_NONE);
		EVENT(&b, PUT, .put = { .qpn = 5, .psn = psn });
	}
	expect(&b, "");
	EVENT(&b, ASK, .ask = { .qpn = 5, .psn = 0, .verdict = TRA_TAKEN });
	EVENT(&b, ASK, .ask = { .qpn = 5, .psn = 1, .verdict = TRA_FULL });
	EVENT(&b, ASK, .ask = { .qpn = 5, .psn = 2, .verdict = TRA_ENDED });
	EVENT(&b, MUTE, .mute = { .qpn = 5, .psn = 3, .why = TRM_ENDED });
	EVENT(&b, MUTE, .mute = { .qpn = 5, .psn = 4, .why = TRM_NAK });
	EVENT(&b, MUTE, .mute = { .qpn = 5, .psn = 5, .why = TRM_OLD });
	expect(&b, "200\n"
		   "201 dropped: too many READs and ATOMICs wait (rx_read_drop)\n"
		   "202 dropped: its QP has failed\n"
		   "203 dropped: its QP has failed\n"
		   "204 dropped: its read of host memory failed, its QP fails\n"
		   "205 dropped: repeated, and its result is not kept any more (rx_dup)\n");
	bench_close(&b, 0);
}

static void test_requester(void **state)
{
	static const struct {
		unsigned int drop, why;
		const char *text;
	} cases[] = {
		{ 0, TRW_NONE, "" },
		{ 1, TRW_GHOST,
		  " dropped: an answer to nothing that waits for one (rx_ack_ghost)" },
		{ 1, TRW_ERROR, " dropped: its QP has failed" },
		{ 1, TRW_LOST, " dropped: behind a READ response that is lost" },
		{ 1, TRW_NO_QP, " dropped: no QP (rx_no_qp)" },
	};
	struct bench b;

	(void)state;
	bench_open(&b);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[160];

		packet(&b, 100 + i, ACK, 7, i);
		in(&b, ACK, 7, i);
		/* A request with the same names is another packet. */
		rsp(&b, ACK, 7, i, TRV_GAP, TRW_NONE);
		expect(&b, "");
		EVENT(&b, REQ,
		      .req = { .qpn = 7, .psn = i, .drop = cases[i].drop, .why = cases[i].why });
		snprintf(text, sizeof(text), "%u%s\n", 100 + i, cases[i].text);
		expect(&b, text);
	}
	bench_close(&b, 0);
}

/* Frames that do not reach a QP. Those with the same names or lengths are matched in order. */
static void test_parser(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	packet(&b, 100, SEND, 5, 9);
	packet(&b, 101, SEND, 5, 9);
	packet(&b, 102, SEND, 5, 9);
	strcpy(b.frame.note, "fault 0: a bit is changed");
	packet(&b, 103, SEND, 6, 9);
	b.frame.error = true;
	packet(&b, 104, SEND, 5, 9);
	/* An IP header, UDP to port 4791, and nothing after it. */
	b.frame.len = roce_frame(b.frame.data, 256, ROCE_IPV6, SEND, 5, 9, 0, 64);
	b.frame.data[0] = 0;
	b.frame.len = 14 + 40 + 8;
	show(&b, 105, false);
	packet(&b, 106, UD_SEND, 0xffffff, 3);
	EVENT(&b, BAD, .bad = { .why = TRB_MAC, .qpn = 5, .psn = 9, .opcode = SEND });
	EVENT(&b, BAD, .bad = { .why = TRB_BACK, .qpn = 0xffffff, .psn = 3, .opcode = UD_SEND });
	EVENT(&b, BAD, .bad = { .why = TRB_MALFORMED, .qpn = 1, .psn = 2, .opcode = 3 });
	EVENT(&b, BAD, .bad = { .why = TRB_ICRC, .qpn = 6, .psn = 9, .opcode = SEND });
	EVENT(&b, IN, .in = { .qpn = 5, .psn = 9, .opcode = SEND, .full = 1 });
	expect(&b, "100 dropped: no room (rx_drop_full)\n");
	EVENT(&b, BAD, .bad = { .why = TRB_MALFORMED, .qpn = 5, .psn = 9, .opcode = SEND });
	expect(&b, "101 dropped: malformed (rx_malformed)\n");
	in(&b, SEND, 5, 9);
	rsp(&b, SEND, 5, 9, TRV_REPEATED, TRW_NONE);
	expect(&b, "102\n"
		   "103 fault 0: a bit is changed; dropped: ICRC (rx_icrc_err)\n"
		   "104 dropped: bad FCS (rx_mac_err)\n"
		   "105 dropped: malformed (rx_malformed)\n"
		   "106 dropped: to a group, sent back to its sender (rx_not_rdma)\n");
	bench_close(&b, 0);
}

static void test_ethernet(void **state)
{
	static const char *const text[] = {
		[TRE_TAKEN] = "",
		[TRE_FILTERED] =
			" dropped: no filter of the Ethernet function passes it (eth_rx_filtered)",
		[TRE_LENGTH] = " dropped: too short or too long (eth_rx_length)",
		[TRE_FULL] = " dropped: no room in the Ethernet function (eth_rx_drop_full)",
	};
	struct bench b;
	char line[200];

	(void)state;
	bench_open(&b);
	/* A packet of this length to another NIC comes after frames that are not packets. */
	packet(&b, 99, SEND, 5, 9);
	for (unsigned int i = TRE_TAKEN; i <= TRE_FULL; i++) {
		other(&b, 100 + i, 118);
		EVENT(&b, ETH_IN, .eth_in = { .len = 118, .verdict = i });
	}
	other(&b, 200, 118);
	EVENT(&b, ETH_IN, .eth_in = { .len = 118, .verdict = TRE_TAKEN });
	EVENT(&b, ETH_BUF, .eth_buf = { .len = 118 });
	EVENT(&b, ETH_BUF, .eth_buf = { .len = 118, .drop = 1 });
	expect(&b, "");
	EVENT(&b, ETH_IN, .eth_in = { .len = 118, .verdict = TRE_FILTERED });
	b.n = 0;
	assert_non_null(strstr(b.seen, "99 dropped: no filter"));
	for (unsigned int i = TRE_TAKEN; i <= TRE_FULL; i++) {
		snprintf(line, sizeof(line), "\n%u%s\n", 100 + i, text[i]);
		assert_non_null(strstr(b.seen, line));
	}
	assert_non_null(strstr(b.seen, "\n200 dropped: no receive buffer (eth_rx_no_buf)\n"));
	bench_close(&b, 0);
}

/* Members of a group decide one by one. */
static void test_group(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	/* Two senders with the same PSN. */
	for (uint64_t ns = 100; ns < 102; ns++) {
		packet(&b, ns, UD_SEND, 0xffffff, 3);
		in(&b, UD_SEND, 0xffffff, 3);
	}
	for (uint32_t qpn = 1; qpn <= 4; qpn++)
		EVENT(&b, RSP,
		      .rsp = { .qpn = qpn,
			       .psn = 3,
			       .opcode = UD_SEND,
			       .verdict = qpn == 1   ? TRV_TAKEN
					  : qpn == 2 ? TRV_REFUSED
						     : TRV_RNR,
			       .why = qpn == 2 ? TRW_QKEY : TRW_NONE,
			       .more = qpn != 4 });
	expect(&b, "100 dropped for 1 of 4 members: Q_Key (rx_bad_qkey); for 2: no receive WQE "
		   "(rx_drop_no_wqe)\n");
	rsp(&b, UD_SEND, 1, 3, TRV_TAKEN, TRW_NONE);
	expect(&b, "101\n");
	bench_close(&b, 0);
}

/* Frames that the NIC sends to itself are not in the capture, and their events belong to no other
 * frame. */
static void test_home(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	packet(&b, 100, SEND, 5, 9);
	in(&b, SEND, 5, 9);
	in(&b, UD_SEND, 6, 3);
	EVENT(&b, ETH_IN, .eth_in = { .len = 60, .verdict = TRE_TAKEN });
	packet(&b, 200, UD_SEND, 6, 3);
	in(&b, UD_SEND, 6, 3);
	other(&b, 201, 60);
	EVENT(&b, ETH_IN, .eth_in = { .len = 60, .verdict = TRE_TAKEN });
	rsp(&b, UD_SEND, 6, 3, TRV_RNR, TRW_NONE);
	rsp(&b, SEND, 5, 9, TRV_REPEATED, TRW_NONE);
	EVENT(&b, ETH_BUF, .eth_buf = { .len = 60, .drop = 1 });
	expect(&b, "100\n");
	rsp(&b, UD_SEND, 6, 3, TRV_REFUSED, TRW_QKEY);
	EVENT(&b, ETH_BUF, .eth_buf = { .len = 60 });
	expect(&b, "200 dropped: Q_Key (rx_bad_qkey)\n201\n");
	bench_close(&b, 0);
}

/* Order and times are the port's. A frame whose fate is not known yet delays others for a time. */
static void test_order(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	show(&b, 40, true);
	expect(&b, "40 out\n");
	packet(&b, 100, SEND, 5, 9);
	show(&b, 101, true);
	packet(&b, 102, SEND, 5, 10);
	in(&b, SEND, 5, 9);
	in(&b, SEND, 5, 10);
	rsp(&b, SEND, 5, 10, TRV_GAP, TRW_NONE);
	expect(&b, "");
	rsp(&b, SEND, 5, 9, TRV_REPEATED, TRW_NONE);
	expect(&b, "100\n101 out\n102 dropped: PSN ahead of the expected one (rx_seq_err)\n");

	packet(&b, 200, SEND, 5, 11);
	in(&b, SEND, 5, 11);
	show(&b, 200 + URDMA_FATES_HOLD_NS, true);
	expect(&b, "");
	show(&b, 201 + URDMA_FATES_HOLD_NS, true);
	expect(&b, "200\n1000200 out\n1000201 out\n");
	assert_int_equal(urdma_fates_unknown(b.fates), 1);
	/* Too late, and for no frame. */
	rsp(&b, SEND, 5, 11, TRV_GAP, TRW_NONE);

	/* The parser has not reported it: a shorter time. */
	packet(&b, 1900000, SEND, 5, 12);
	show(&b, 1908000, true);
	expect(&b, "");
	show(&b, 1908001, true);
	expect(&b, "1900000\n1908000 out\n1908001 out\n");

	packet(&b, 2000000, SEND, 5, 12);
	urdma_fates_flush(b.fates);
	expect(&b, "2000000\n");
	packet(&b, 2000001, SEND, 5, 13);
	packet(&b, 2000002, UD_SEND, 0xffffff, 3);
	in(&b, UD_SEND, 0xffffff, 3);
	EVENT(&b, RSP, .rsp = { .qpn = 1, .psn = 3, .opcode = UD_SEND, .more = 1 });
	urdma_fates_reset(b.fates);
	expect(&b, "2000001 dropped: the NIC is reset\n"
		   "2000002 dropped for 1 of 1 members: the NIC is reset\n");
	bench_close(&b, 3);
}

/* Held frames take a bounded amount of memory. */
static void test_bound(void **state)
{
	const unsigned int n = URDMA_FATES_HOLD_BYTES / 4096;
	struct bench b;

	(void)state;
	bench_open(&b);
	for (unsigned int i = 0; i <= n; i++) {
		other(&b, 100, 4096);
		assert_int_equal(b.n, 0);
	}
	other(&b, 101, 4096);
	expect(&b, "100\n");
	assert_int_equal(urdma_fates_unknown(b.fates), 1);
	b.port.live.fn = NULL;
	bench_close(&b, n + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_responder), cmocka_unit_test(test_behind),
		cmocka_unit_test(test_requester), cmocka_unit_test(test_parser),
		cmocka_unit_test(test_ethernet),  cmocka_unit_test(test_group),
		cmocka_unit_test(test_home),	  cmocka_unit_test(test_order),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests_name("cosim/fates", tests, NULL, NULL);
}
