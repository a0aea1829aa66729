// SPDX-License-Identifier: Apache-2.0
/*
 * The monitor of a NIC's boundary, with hand-made beats. Events are compared as text, with every
 * field. A failure means that a trace would contain something that did not happen, would miss
 * something that did, or would disagree with the capture.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "eth/pcapng.h"
#include "pcie/pg213.h"
#include "roce_frame.h"
#include "trace/monitor.h"

#define DELAY 10u /* cycles of propagation */

#define DB_BASE	 UINT64_C(0x123400000000)
#define REG_BASE 0xfe540000u

/* NIC 0 is watched; NIC 1, at the other end of the wire, only sends and receives frames. */
struct bench {
	struct urdma_eth_port port[2];
	struct urdma_wire *wire;
	struct urdma_monitor *monitor;
	struct urdma_sim_in in[2];
	struct urdma_sim_out out[2];
	uint64_t now;
	bool listening;
	char told[16384]; /* events, a line each */
	size_t n;
};

static void listen(void *ctx, const struct urdma_trace_event *e)
{
	const struct urdma_trace_desc *desc = &urdma_trace_desc[e->kind];
	struct bench *b = ctx;

	assert_int_equal(e->nic, 3);
	b->n += (size_t)snprintf(b->told + b->n, sizeof(b->told) - b->n, "%" PRIu64 " %s", e->cycle,
				 desc->name);
	for (unsigned int i = 0; i < desc->n_fields; i++) {
		assert_true(e->field[i] <= urdma_trace_max(&desc->field[i]));
		b->n += (size_t)snprintf(b->told + b->n, sizeof(b->told) - b->n, " %s=%" PRIx64,
					 desc->field[i].name, e->field[i]);
	}
	b->n += (size_t)snprintf(b->told + b->n, sizeof(b->told) - b->n, "\n");
	assert_true(b->n < sizeof(b->told));
}

static void start(struct bench *b)
{
	assert_int_equal(urdma_monitor_start(b->monitor), 0);
	b->listening = true;
}

static void bench_open(struct bench *b)
{
	memset(b, 0, sizeof(*b));
	for (unsigned int i = 0; i < 2; i++)
		urdma_eth_port_init(&b->port[i], i ? "b" : "a", 100000);
	assert_int_equal(urdma_wire_create(&b->port[0], &b->port[1], DELAY, &b->wire), 0);
	b->monitor = urdma_monitor_create(3, &b->port[0], listen, b);
	assert_non_null(b->monitor);
	b->now = 100;
	start(b);
}

static void bench_close(struct bench *b)
{
	assert_null(urdma_eth_port_error(&b->port[0]));
	assert_null(urdma_eth_port_error(&b->port[1]));
	urdma_monitor_stop(b->monitor);
	assert_int_equal(b->port[0].n_taps, 0);
	urdma_monitor_destroy(b->monitor);
	urdma_wire_destroy(b->wire);
	for (unsigned int i = 0; i < 2; i++)
		urdma_eth_port_cleanup(&b->port[i]);
}

/* One cycle with the caller's in[0] and out[], which are cleared afterwards. */
static void step(struct bench *b)
{
	for (unsigned int i = 0; i < 2; i++)
		urdma_eth_port_drive(&b->port[i], b->now, &b->in[i]);
	if (b->in[0].rst)
		urdma_eth_port_reset(&b->port[0], b->now);
	if (b->listening)
		urdma_monitor_taken(b->monitor, b->now, &b->in[0], &b->out[0]);
	for (unsigned int i = 0; i < 2; i++)
		urdma_eth_port_sample(&b->port[i], b->now, &b->in[i], &b->out[i]);
	b->now++;
	if (b->listening)
		urdma_monitor_left(b->monitor, b->now, &b->in[0], &b->out[0]);
	memset(b->in, 0, sizeof(b->in));
	memset(b->out, 0, sizeof(b->out));
}

/* Events reported since the last call. */
static void expect(struct bench *b, const char *want)
{
	if (strcmp(b->told, want))
		fail_msg("told:\n%swanted:\n%s", b->told, want);
	b->told[0] = 0;
	b->n = 0;
}

/* ---- PCIe ---------------------------------------------------------------------------------- */

struct tlp {
	uint32_t dw[300];
	uint32_t n, first_be, last_be;
};

/* len bytes at addr; data NULL: a read. */
static struct tlp request(uint64_t addr, uint32_t len, const void *data, uint32_t tag)
{
	uint32_t skip = addr % 4, dwords = (skip + len + 3) / 4, end = (skip + len) % 4;
	struct tlp t = { .n = PG213_REQ_DW + (data ? dwords : 0) };

	pg213_set(t.dw, PG213_REQ_ADDR_LO, (uint32_t)addr >> 2);
	pg213_set(t.dw, PG213_REQ_ADDR_HI, (uint32_t)(addr >> 32));
	pg213_set(t.dw, PG213_REQ_DWORDS, dwords);
	pg213_set(t.dw, PG213_REQ_TYPE, data ? PG213_TYPE_MEM_WRITE : PG213_TYPE_MEM_READ);
	pg213_set(t.dw, PG213_REQ_TAG, tag);
	t.first_be = 0xfu << skip & 0xf;
	t.last_be = end ? 0xfu >> (4 - end) : 0xf;
	if (dwords == 1) {
		t.first_be &= t.last_be;
		t.last_be = 0;
	}
	if (data)
		memcpy((uint8_t *)&t.dw[PG213_REQ_DW] + skip, data, len);
	return t;
}

/* To a BAR of 2^aperture bytes. */
static struct tlp to_bar(uint64_t addr, uint32_t len, const void *data, uint32_t tag,
			 unsigned int bar, unsigned int aperture)
{
	struct tlp t = request(addr, len, data, tag);

	pg213_set(t.dw, PG213_CQ_BAR, bar);
	pg213_set(t.dw, PG213_CQ_APERTURE, aperture);
	return t;
}

static struct tlp to_db(uint64_t offset, uint32_t len, const void *data)
{
	return to_bar(DB_BASE + offset, len, data, 0, 2, 23);
}

static struct tlp to_reg(uint32_t offset, uint32_t len, const void *data, uint32_t tag)
{
	return to_bar(REG_BASE + offset, len, data, tag, 0, 16);
}

static struct tlp completion(uint32_t tag, uint32_t bytes, uint32_t error, bool done)
{
	struct tlp t = { .n = PG213_CPL_DW + bytes / 4 };

	pg213_set(t.dw, PG213_CPL_DWORDS, bytes / 4);
	pg213_set(t.dw, PG213_CPL_TAG, tag);
	pg213_set(t.dw, PG213_RC_ERROR, error);
	pg213_set(t.dw, PG213_RC_DONE, done);
	return t;
}

/* Beat i of it. Returns true if there are more. */
static bool beat(struct urdma_pcie_beat *b, const struct tlp *t, unsigned int i,
		 struct pg213_field sop)
{
	unsigned int left = t->n - i * URDMA_SIM_BEAT_DW;
	unsigned int n = left < URDMA_SIM_BEAT_DW ? left : URDMA_SIM_BEAT_DW;

	memset(b, 0, sizeof(*b));
	memcpy(b->data, &t->dw[i * URDMA_SIM_BEAT_DW], n * 4);
	b->keep = (uint16_t)((1u << n) - 1);
	b->last = n == left;
	b->valid = 1;
	if (!i)
		pg213_set(b->user, sop, 1);
	return !b->last;
}

static bool cq(struct bench *b, const struct tlp *t, unsigned int i)
{
	bool more = beat(&b->in[0].cq, t, i, PG213_CQ_IS_SOP);

	if (!i) {
		pg213_set(b->in[0].cq.user, PG213_CQ_FIRST_BE, t->first_be);
		pg213_set(b->in[0].cq.user, PG213_CQ_LAST_BE, t->last_be);
	}
	b->out[0].cq_ready = 1;
	return more;
}

static bool rq(struct bench *b, const struct tlp *t, unsigned int i)
{
	bool more = beat(&b->out[0].rq, t, i, PG213_RQ_IS_SOP);

	if (!i) {
		pg213_set(b->out[0].rq.user, PG213_RQ_FIRST_BE, t->first_be);
		pg213_set(b->out[0].rq.user, PG213_RQ_LAST_BE, t->last_be);
	}
	b->in[0].rq_ready = 1;
	return more;
}

static bool rc(struct bench *b, const struct tlp *t, unsigned int i)
{
	b->out[0].rc_ready = 1;
	return beat(&b->in[0].rc, t, i, PG213_RC_IS_SOP);
}

static bool cc(struct bench *b, const struct tlp *t, unsigned int i)
{
	b->in[0].cc_ready = 1;
	return beat(&b->out[0].cc, t, i, PG213_CC_IS_SOP);
}

typedef bool (*put_fn)(struct bench *b, const struct tlp *t, unsigned int i);

/* All beats of it, one after the other. */
static void pass(struct bench *b, put_fn put, struct tlp t)
{
	unsigned int i = 0;
	bool more;

	do {
		more = put(b, &t, i++);
		step(b);
	} while (more);
}

static const uint8_t bytes[256] = { 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99 };

static void requests_of_the_host(void **state)
{
	struct bench b;
	struct tlp t;

	(void)state;
	bench_open(&b);
	pass(&b, cq, to_db(0x5018, 8, bytes));
	expect(&b, "100 db_write offset=5018 len=8 value=8877665544332211\n");
	/* 64 bytes are two beats; the second one waits. */
	t = to_db(0x7ff800, 64, bytes);
	assert_true(cq(&b, &t, 0));
	step(&b);
	step(&b);
	expect(&b, "");
	assert_false(cq(&b, &t, 1));
	step(&b);
	expect(&b, "103 db_write offset=7ff800 len=40 value=8877665544332211\n");
	pass(&b, cq, to_db(0x5021, 2, bytes));
	expect(&b, "104 db_write offset=5021 len=2 value=2211\n");

	pass(&b, cq, to_reg(0x1004, 4, bytes, 0));
	pass(&b, cq, to_reg(0x1007, 1, bytes, 0));
	pass(&b, cq, to_reg(0x1010, 8, bytes, 0));
	expect(&b, "105 reg_write offset=1004 len=4 value=44332211\n"
		   "106 reg_write offset=1007 len=1 value=11\n"
		   "107 reg_write offset=1010 len=8 value=8877665544332211\n");

	/* Two reads, answered in reverse order. What the NIC sends leaves in the next cycle. */
	pass(&b, cq, to_reg(0x2000, 8, NULL, 31));
	pass(&b, cq, to_reg(0x2008, 4, NULL, 0));
	pass(&b, cc, completion(0, 4, 0, false));
	pass(&b, cc, completion(31, 8, 0, false));
	expect(&b, "108 reg_read offset=2000 tag=1f\n"
		   "109 reg_read offset=2008 tag=0\n"
		   "111 reg_done tag=0 dwords=1\n"
		   "112 reg_done tag=1f dwords=2\n");
	/* A read of BAR2 is not a register read. */
	pass(&b, cq, to_bar(DB_BASE + 8, 8, NULL, 7, 2, 23));
	pass(&b, cc, completion(7, 8, 0, false));
	expect(&b, "");
	bench_close(&b);
}

static void requests_of_the_nic(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	pass(&b, rq, request(UINT64_C(0x123456789003), 4090, NULL, 255));
	pass(&b, rq, request(0x1001, 2, NULL, 0));
	expect(&b, "101 rd tag=ff addr=123456789003 len=ffa\n"
		   "102 rd tag=0 addr=1001 len=2\n");
	/* 4 dwords of descriptor and 64 of data: 5 beats, reported with the last one. */
	pass(&b, rq, request(0x2002, 250, bytes, 0));
	expect(&b, "107 wr addr=2002 len=fa\n");
	pass(&b, rq, request(0x3000, 1, bytes, 0));
	expect(&b, "108 wr addr=3000 len=1\n");
	/* No byte enabled: a flush. */
	{
		struct tlp t = request(0x3000, 4, NULL, 1);

		t.first_be = 0;
		pass(&b, rq, t);
		expect(&b, "109 rd tag=1 addr=3000 len=0\n");
	}
	/* In pieces, with those of two reads mixed. */
	pass(&b, rc, completion(255, 128, 0, false));
	pass(&b, rc, completion(0, 64, 0, true));
	pass(&b, rc, completion(255, 128, 0, true));
	expect(&b, "113 rd_done tag=0 error=0 tlps=1 dwords=10\n"
		   "116 rd_done tag=ff error=0 tlps=2 dwords=40\n");
	b.out[0].irq_valid = 1;
	b.out[0].irq_vec = 63;
	step(&b);
	expect(&b, "");
	b.out[0].irq_valid = 1;
	b.out[0].irq_vec = 63;
	b.in[0].irq_ready = 1;
	step(&b);
	expect(&b, "119 irq vector=3f\n");
	bench_close(&b);
}

static void errors_of_reads(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b);
	pass(&b, rc, completion(1, 0, PG213_ERROR_STATUS, true));
	/* The first piece is poisoned, the others are good. */
	pass(&b, rc, completion(2, 4, PG213_ERROR_POISONED, false));
	pass(&b, rc, completion(3, 4, 0, true));
	pass(&b, rc, completion(2, 4, 0, true));
	pass(&b, rc, completion(4, 0, PG213_ERROR_TIMEOUT, true));
	expect(&b, "100 rd_done tag=1 error=2 tlps=1 dwords=0\n"
		   "102 rd_done tag=3 error=0 tlps=1 dwords=1\n"
		   "103 rd_done tag=2 error=1 tlps=2 dwords=2\n"
		   "104 rd_done tag=4 error=9 tlps=0 dwords=0\n");
	/* The next read with this tag is another one. */
	pass(&b, rc, completion(2, 4, 0, true));
	pass(&b, rc, completion(5, 4, PG213_ERROR_POISONED, false));
	pass(&b, rq, request(0x1000, 4, NULL, 5));
	pass(&b, rc, completion(5, 4, 0, true));
	expect(&b, "105 rd_done tag=2 error=0 tlps=1 dwords=1\n"
		   "108 rd tag=5 addr=1000 len=4\n"
		   "108 rd_done tag=5 error=0 tlps=1 dwords=1\n");
	bench_close(&b);
}

/* Events of one cycle: received ones first, then sent ones in the order in which PCIe sends. */
static void order(void **state)
{
	struct tlp read = request(0x1000, 4, NULL, 5), done = completion(9, 4, 0, true);
	struct tlp reg = to_reg(0, 4, NULL, 2), answer = completion(2, 4, 0, false);
	struct bench b;

	(void)state;
	bench_open(&b);
	pass(&b, cq, reg);
	expect(&b, "100 reg_read offset=0 tag=2\n");
	rc(&b, &done, 0);
	rq(&b, &read, 0);
	cc(&b, &answer, 0);
	reg = to_reg(8, 4, NULL, 3);
	cq(&b, &reg, 0);
	b.out[0].irq_valid = 1;
	b.in[0].irq_ready = 1;
	step(&b);
	expect(&b, "101 reg_read offset=8 tag=3\n"
		   "101 rd_done tag=9 error=0 tlps=1 dwords=1\n"
		   "102 rd tag=5 addr=1000 len=4\n"
		   "102 reg_done tag=2 dwords=1\n"
		   "102 irq vector=0\n");
	bench_close(&b);
}

static void stalls(void **state)
{
	struct tlp write = request(0x1000, 200, bytes, 0), done = completion(9, 4, 0, true);
	struct tlp reg = to_reg(0, 4, NULL, 2), answer = completion(2, 4, 0, false);
	struct bench b;

	(void)state;
	bench_open(&b);
	/* All streams at once, each stalled for as many cycles as its number. */
	for (unsigned int i = 0; i < 5; i++) {
		cq(&b, &reg, 0);
		b.out[0].cq_ready = i == 1;
		b.in[0].cq.valid = i <= 1;
		rc(&b, &done, 0);
		b.out[0].rc_ready = i == 2;
		b.in[0].rc.valid = i <= 2;
		rq(&b, &write, 0);
		b.in[0].rq_ready = i == 3;
		b.out[0].rq.valid = i <= 3;
		cc(&b, &answer, 0);
		b.in[0].cc_ready = i == 4;
		step(&b);
	}
	expect(&b, "101 stall stream=0 cycles=1\n"
		   "101 reg_read offset=0 tag=2\n"
		   "102 stall stream=3 cycles=2\n"
		   "102 rd_done tag=9 error=0 tlps=1 dwords=1\n"
		   "104 stall stream=2 cycles=3\n"
		   "105 stall stream=1 cycles=4\n"
		   "105 reg_done tag=2 dwords=1\n");
	/* In the middle of a request; each stall counts by itself. */
	rq(&b, &write, 1);
	b.in[0].rq_ready = 0;
	step(&b);
	rq(&b, &write, 1);
	step(&b);
	rq(&b, &write, 2);
	b.in[0].rq_ready = 0;
	step(&b);
	rq(&b, &write, 2);
	step(&b);
	rq(&b, &write, 3);
	step(&b);
	expect(&b, "107 stall stream=2 cycles=1\n"
		   "109 stall stream=2 cycles=1\n"
		   "110 wr addr=1000 len=c8\n");
	bench_close(&b);
}

/* A listener that starts in the middle of a request gets no event that needs its beginning. */
static void middle_of_requests(void **state)
{
	struct tlp write = request(0x1000, 100, bytes, 0), push = to_db(0, 64, bytes);
	struct tlp done = completion(9, 100, PG213_ERROR_POISONED, true);
	struct bench b;

	(void)state;
	bench_open(&b);
	urdma_monitor_stop(b.monitor);
	b.listening = false;
	rq(&b, &write, 0);
	cq(&b, &push, 0);
	rc(&b, &done, 0);
	step(&b);
	start(&b);
	rq(&b, &write, 1);
	cq(&b, &push, 1);
	rc(&b, &done, 1);
	step(&b);
	pass(&b, cc, completion(4, 4, 0, false));
	expect(&b, "");
	pass(&b, rq, write);
	pass(&b, cq, push);
	expect(&b, "105 wr addr=1000 len=64\n"
		   "106 db_write offset=0 len=40 value=8877665544332211\n");
	bench_close(&b);
}

/* ---- frames -------------------------------------------------------------------------------- */

struct packet {
	uint8_t data[6000];
	uint32_t len;
	bool error;
};

static struct packet roce(enum roce_shape shape, uint8_t opcode, uint32_t qpn, uint32_t psn,
			  uint32_t tail)
{
	struct packet p = { .error = false };

	p.len = roce_frame(p.data, sizeof(p.data), shape, opcode, qpn, psn, 0, tail);
	return p;
}

/* Beat i of a frame that NIC n sends. Returns true if there are more. */
static bool tx(struct bench *b, unsigned int n, const struct packet *p, unsigned int i)
{
	struct urdma_eth_beat *t = &b->out[n].tx;
	uint32_t left = p->len - i * 64, k = left < 64 ? left : 64;

	memcpy(t->data, p->data + i * 64, k);
	t->keep = k == 64 ? ~UINT64_C(0) : (UINT64_C(1) << k) - 1;
	t->last = k == left;
	t->error = t->last && p->error;
	t->valid = 1;
	return !t->last;
}

/* Sends it from NIC n, and runs until it has arrived. */
static void send(struct bench *b, unsigned int n, struct packet p)
{
	unsigned int i = 0;
	bool ready, more;

	do {
		more = tx(b, n, &p, i);
		ready = b->port[n].line.cycle < b->now + b->port[n].tx_buffer_cycles;
		step(b);
		i += ready;
	} while (more || !ready);
	for (i = 0; i < DELAY + 150; i++)
		step(b);
}

static void frames(void **state)
{
	static const char *const want[ROCE_SHAPES] = {
		[ROCE_IPV4] = "101 tx\n"
			      "101 tx_end number=1 len=3e error=0 rdma=1 dqpn=123456 psn=abcdef "
			      "opcode=11\n",
		[ROCE_IPV6] = "101 tx\n"
			      "102 tx_end number=1 len=52 error=0 rdma=1 dqpn=123456 psn=abcdef "
			      "opcode=11\n",
		[ROCE_VLAN4] = "101 tx\n"
			       "102 tx_end number=1 len=42 error=0 rdma=1 dqpn=123456 psn=abcdef "
			       "opcode=11\n",
		[ROCE_VLAN6] = "101 tx\n"
			       "102 tx_end number=1 len=56 error=0 rdma=1 dqpn=123456 psn=abcdef "
			       "opcode=11\n",
		[ROCE_OPTIONS] = "101 tx\n"
				 "102 tx_end number=1 len=46 error=0 rdma=1 dqpn=123456 psn=abcdef "
				 "opcode=11\n",
	};
	struct packet p = { .len = 1000 };
	struct bench b;

	(void)state;
	for (unsigned int shape = 0; shape < ROCE_SHAPES; shape++) {
		bench_open(&b);
		send(&b, 0, roce((enum roce_shape)shape, 0x11, 0x123456, 0xabcdef, 8));
		expect(&b, want[shape]);
		bench_close(&b);
	}
	/* Received, with both numbers of the port; short, of another protocol, with a bad FCS. */
	bench_open(&b);
	send(&b, 1, roce(ROCE_IPV4, 4, 1, 2, 200));
	expect(&b, "113 rx\n"
		   "117 rx_end number=1 len=fe error=0 rdma=1 dqpn=1 psn=2 opcode=4\n");
	b.now = 1000;
	p.len = 20;
	send(&b, 0, p);
	expect(&b, "1001 tx\n"
		   "1001 tx_end number=2 len=3c error=0 rdma=0 dqpn=0 psn=0 opcode=0\n");
	b.now = 2000;
	p.len = 1000;
	p.error = true;
	send(&b, 1, p);
	expect(&b, "2013 rx\n"
		   "2032 rx_end number=3 len=3e8 error=1 rdma=0 dqpn=0 psn=0 opcode=0\n");
	b.now = 3000;
	p = roce(ROCE_IPV4, 4, 1, 3, 20);
	p.error = true;
	send(&b, 0, p);
	expect(&b, "3001 tx\n"
		   "3002 tx_end number=4 len=4a error=1 rdma=1 dqpn=1 psn=3 opcode=4\n");
	bench_close(&b);
}

/* The MAC takes 512 bytes more than it has sent. It counts the cycles in which the NIC waits. */
static void stall_of_the_mac(void **state)
{
	struct packet p = { .len = 6000 };
	unsigned int stalls = 0;
	uint64_t sum = 0;
	struct bench b;
	char *at;

	(void)state;
	bench_open(&b);
	send(&b, 0, p);
	for (at = b.told; (at = strstr(at, " stall stream=4 cycles=")); stalls++) {
		at += strlen(" stall stream=4 cycles=");
		sum += strtoull(at, NULL, 16);
	}
	assert_true(stalls > 1);
	assert_int_equal(sum, b.port[0].stats.tx_stalled);
	bench_close(&b);
}

/* The lines of tx_end and rx_end, compared with the capture. */
static void compare(struct bench *b, const char *path, unsigned int want)
{
	struct urdma_pcapng_reader *r;
	struct urdma_pcapng_packet p;
	char error[256], *line, *save = NULL;
	unsigned int n = 0;

	assert_int_equal(urdma_pcapng_reader_open(path, &r, error, sizeof(error)), 0);
	for (line = strtok_r(b->told, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		uint64_t cycle, number;
		unsigned int len, bad;
		char dir[3];

		if (sscanf(line, "%" SCNu64 " %2[tr]x_end number=%" SCNx64 " len=%x error=%x",
			   &cycle, dir, &number, &len, &bad) != 5)
			continue;
		assert_int_equal(number, ++n);
		assert_int_equal(urdma_pcapng_read(r, &p, error, sizeof(error)), 1);
		assert_int_equal(p.ns, cycle * URDMA_SIM_CYCLE_NS);
		assert_int_equal(p.len, len);
		assert_int_equal(p.crc_error, bad);
		assert_int_equal(p.outbound, dir[0] == 't');
	}
	assert_int_equal(urdma_pcapng_read(r, &p, error, sizeof(error)), 0);
	assert_int_equal(n, want);
	urdma_pcapng_reader_close(r);
}

/*
 * Both directions at once, at times that drift against each other, so that some frames end in the
 * same cycle; a link that goes down in the middle of frames, and a reset in the middle of others.
 * The capture begins after the first frames.
 */
static void as_the_capture(void **state)
{
	char path[] = "/tmp/urdma-monitor-XXXXXX";
	struct packet p[2];
	struct bench b;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	bench_open(&b);
	send(&b, 0, roce(ROCE_IPV4, 4, 1, 0, 20));
	b.told[0] = 0;
	b.n = 0;
	assert_int_equal(urdma_pcapng_open(path, "a", 0, &b.port[0].capture), 0);
	b.port[0].shown = 0;
	for (unsigned int i = 0; i < 40; i++) {
		bool more[2] = { true, true };
		unsigned int at[2] = { 0, 0 };

		p[0] = roce(ROCE_IPV4, 4, 1, i, 20 + i);
		p[1] = roce(ROCE_IPV6, 4, 1, i, 100);
		for (unsigned int k = 0; k < 80; k++) {
			for (unsigned int n = 0; n < 2; n++)
				if (more[n] && k >= n * i)
					more[n] = tx(&b, n, &p[n], at[n]++);
			step(&b);
		}
	}
	/* Two beats of three, then the link goes down while one is sent and one is received. */
	for (unsigned int i = 0; i < DELAY + 4; i++) {
		p[1] = roce(ROCE_IPV6, 4, 1, i, 300);
		p[0] = roce(ROCE_IPV4, 4, 1, i, 130);
		if (i < 7)
			tx(&b, 1, &p[1], i < 5 ? i : 5);
		if (i >= DELAY + 2)
			tx(&b, 0, &p[0], i - DELAY - 2);
		if (i == 6)
			b.out[1].tx.valid = 0;
		step(&b);
	}
	assert_true(urdma_eth_port_sending(&b.port[0]) && urdma_eth_port_receiving(&b.port[0]));
	assert_int_equal(urdma_wire_set_link(b.wire, false), 0);
	tx(&b, 0, &p[0], 2);
	step(&b);
	for (unsigned int i = 0; i < 20; i++)
		step(&b);
	assert_int_equal(urdma_wire_set_link(b.wire, true), 0);
	/* A reset in the second beat; frames of the other side still arrive. */
	p[1] = roce(ROCE_IPV4, 4, 1, 7, 20);
	tx(&b, 0, &p[0], 0);
	tx(&b, 1, &p[1], 0);
	step(&b);
	tx(&b, 1, &p[1], 1);
	tx(&b, 0, &p[0], 1);
	step(&b);
	for (unsigned int i = 0; i < DELAY + 16; i++) {
		b.in[0].rst = 1;
		step(&b);
	}
	send(&b, 0, p[1]);
	assert_int_equal(urdma_pcapng_close(b.port[0].capture), 0);
	assert_non_null(strstr(b.told, "len=80 error=1 rdma=0"));
	/* 80, 2 at the link's end, 3 at the reset. */
	compare(&b, path, 85);
	unlink(path);
	bench_close(&b);
}

/* A listener that starts in the middle of frames gets their ends, complete, and no beginnings. */
static void middle_of_frames(void **state)
{
	struct packet p[2] = { roce(ROCE_IPV4, 4, 1, 5, 130), roce(ROCE_IPV4, 4, 2, 6, 130) };
	struct bench b;

	(void)state;
	bench_open(&b);
	urdma_monitor_stop(b.monitor);
	b.listening = false;
	for (unsigned int i = 0; i < DELAY + 5; i++) {
		if (i < 3)
			tx(&b, 1, &p[1], i);
		if (i >= DELAY + 3)
			tx(&b, 0, &p[0], i - DELAY - 3);
		step(&b);
	}
	assert_true(urdma_eth_port_sending(&b.port[0]) && urdma_eth_port_receiving(&b.port[0]));
	start(&b);
	tx(&b, 0, &p[0], 2);
	step(&b);
	step(&b);
	step(&b);
	expect(&b, "115 rx_end number=1 len=b8 error=0 rdma=1 dqpn=2 psn=6 opcode=4\n"
		   "116 tx_end number=2 len=b8 error=0 rdma=1 dqpn=1 psn=5 opcode=4\n");
	bench_close(&b);
}

/* ---- reset --------------------------------------------------------------------------------- */

static void reset(void **state)
{
	struct tlp write = request(0x1000, 100, bytes, 0), reg = to_reg(0, 4, NULL, 2);
	struct bench b;

	(void)state;
	bench_open(&b);
	pass(&b, cq, reg);
	pass(&b, rc, completion(9, 4, PG213_ERROR_POISONED, false));
	rq(&b, &write, 0);
	step(&b);
	rq(&b, &write, 1);
	b.in[0].rq_ready = 0;
	step(&b);
	expect(&b, "100 reg_read offset=0 tag=2\n");
	for (unsigned int i = 0; i < 16; i++) {
		b.in[0].rst = 1;
		if (i == 15)
			urdma_monitor_reset(b.monitor, b.now);
		step(&b);
	}
	expect(&b, "119 reset\n");
	/* Nothing from before the reset continues. */
	pass(&b, cc, completion(2, 4, 0, false));
	pass(&b, rq, write);
	pass(&b, rc, completion(9, 4, 0, true));
	expect(&b, "123 wr addr=1000 len=64\n"
		   "123 rd_done tag=9 error=0 tlps=1 dwords=1\n");
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_of_the_host),
		cmocka_unit_test(requests_of_the_nic),
		cmocka_unit_test(errors_of_reads),
		cmocka_unit_test(order),
		cmocka_unit_test(stalls),
		cmocka_unit_test(middle_of_requests),
		cmocka_unit_test(frames),
		cmocka_unit_test(stall_of_the_mac),
		cmocka_unit_test(as_the_capture),
		cmocka_unit_test(middle_of_frames),
		cmocka_unit_test(reset),
	};

	return cmocka_run_group_tests_name("cosim/monitor", tests, NULL, NULL);
}
