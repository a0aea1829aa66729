// SPDX-License-Identifier: Apache-2.0
/* The analytical limits, compared with figures that were worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "bench_limits.h"
#include "urdma_hw.h"

static struct limits_model model;

static int defaults(void **state)
{
	struct urdma_cosim_config config = { .rate_mbps = 100000, .delay_ns = 250 };

	(void)state;
	urdma_pcie_config_defaults(&config.pcie);
	limits_model_of(&config, &model);
	return 0;
}

static void frames(void **state)
{
	(void)state;
	/* Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4; FCS 4, preamble 8, gap 12 */
	assert_int_equal(limits_roce(0, 0), 58);
	assert_int_equal(limits_line(limits_roce(0, 0)), 84); /* padded */
	assert_int_equal(limits_line(limits_roce(0, 4096)), 4096 + 82);
	assert_int_equal(limits_roce(LIMITS_RETH, 64), 138);
	assert_int_equal(limits_roce(0, 5), 66); /* pad count 3 */
	assert_int_equal(limits_line(60), 84);
	assert_int_equal(limits_line(1514), 1538);
	assert_int_equal(limits_beats(64), 1);
	assert_int_equal(limits_beats(65), 2);
}

static struct limits_load load(unsigned int opcode, uint32_t len, uint32_t mtu)
{
	return (struct limits_load){ .opcode = opcode,
				     .len = len,
				     .mtu = mtu,
				     .stride = 64,
				     .recv_stride = 64,
				     .qps = 1,
				     .window = 16,
				     .signaled = 1,
				     .doorbell = 1 };
}

/* The limit of a load, and what sets it. */
#define expect(load, what, messages, epsilon)                        \
	do {                                                         \
		struct limit limit_ = limits_messages(&model, load); \
		assert_string_equal(limit_.by, what);                \
		assert_float_equal(limit_.value, messages, epsilon); \
	} while (0)

static void goodput(unsigned int opcode, uint32_t mtu, double bytes)
{
	struct limits_load l = load(opcode, 65536, mtu);
	struct limit limit = limits_messages(&model, &l);

	assert_string_equal(limit.by, "wire");
	assert_float_equal(limit.value * 65536 * 8 / 1000, 65536 / bytes * 100, 1e-6);
}

static void bulk(void **state)
{
	(void)state;
	/* 64 KB and 82 bytes a packet; a RETH, or two AETHs */
	goodput(URDMA_WR_SEND, 4096, 65536 + 16 * 82);
	goodput(URDMA_WR_SEND, 1024, 65536 + 64 * 82);
	goodput(URDMA_WR_SEND, 256, 65536 + 256 * 82);
	goodput(URDMA_WR_WRITE, 1024, 65536 + 64 * 82 + 16);
	goodput(URDMA_WR_READ, 1024, 65536 + 64 * 82 + 8);
}

static void both(void **state)
{
	struct limits_load one = load(URDMA_WR_WRITE, 65536, 4096), two = one;
	double single, each;

	(void)state;
	single = limits_messages(&model, &one).value;
	two.both_ways = true;
	/* writes and read requests share RQ: 5 beats for 256 bytes; 1 for 4096, and the wire is
	 * slower */
	assert_string_equal(limits_messages(&model, &two).by, "wire");
	/* or 1 for 512 */
	model.mrrs = 512;
	each = limits_messages(&model, &two).value;
	assert_true(each < single);
	assert_string_equal(limits_messages(&model, &two).by, "PCIe, RQ beats");
	two.loopback = true;
	two.both_ways = false;
	assert_float_equal(limits_messages(&model, &two).value, each, 1e-9);
	/* one ACK for everything under way takes its share of the other direction's wire */
	one = load(URDMA_WR_WRITE, 1024, 1024);
	one.window = 1;
	one.qps = 1000;
	two = one;
	two.both_ways = true;
	assert_true(limits_messages(&model, &two).value < limits_messages(&model, &one).value);
	defaults(NULL);
}

static void unreliable(void **state)
{
	struct limits_load l = load(URDMA_WR_WRITE, 65536, 4096);
	struct limit limit;

	(void)state;
	/* as a WRITE of RC */
	l.type = URDMA_QPT_UC;
	limit = limits_messages(&model, &l);
	assert_string_equal(limit.by, "wire");
	assert_float_equal(limit.value * 65536 * 8 / 1000, 65536.0 / (65536 + 16 * 82 + 16) * 100,
			   1e-6);
	/* RC: 64 bytes take two beats, and four WQEs of 128 bytes ten. */
	l = load(URDMA_WR_SEND, 64, 4096);
	l.type = URDMA_QPT_UD;
	l.stride = 128;
	l.qps = 64;
	expect(&l, "PCIe, RC beats", 1000 / (4 * 4.5), 1e-9);
	/* A slow wire: 64 bytes, 82 and the DETH. */
	model.line = 10;
	expect(&l, "wire", 10e3 / 8 / (64 + 82 + 8), 1e-6);
	defaults(state);
}

static void xrc(void **state)
{
	struct limits_load l = load(URDMA_WR_SEND, 65536, 4096);
	struct limit limit;

	(void)state;
	/* each of the 16 packets has an XRCETH */
	l.type = URDMA_QPT_XRC_INI;
	limit = limits_messages(&model, &l);
	assert_string_equal(limit.by, "wire");
	assert_float_equal(limit.value * 65536 * 8 / 1000, 65536.0 / (65536 + 16 * (82 + 4)) * 100,
			   1e-6);
	/* a READ's request alone has one */
	l.opcode = URDMA_WR_READ;
	limit = limits_messages(&model, &l);
	assert_float_equal(limit.value * 65536 * 8 / 1000,
			   65536.0 / (65536 + 16 * 82 + 2 * 4) * 100, 1e-6);
	/* A slow wire: 64 bytes, 82 and the XRCETH. */
	l = load(URDMA_WR_SEND, 64, 4096);
	l.type = URDMA_QPT_XRC_INI;
	l.qps = 64;
	model.line = 10;
	expect(&l, "wire", 10e3 / 8 / (64 + 82 + 4), 1e-6);
	defaults(state);
}

static void small(void **state)
{
	struct limits_load l = load(URDMA_WR_WRITE, 64, 4096);
	struct limit limit;

	(void)state;
	l.qps = 64;
	l.window = 32;
	limit = limits_messages(&model, &l);
	/*
	 * RC: 64 bytes take two beats, and four WQEs of 64 bytes five. The wire would allow one for
	 * 162 bytes: 77.16 million a second.
	 */
	assert_string_equal(limit.by, "PCIe, RC beats");
	assert_float_equal(limit.value, 1000 / (4 * 3.25), 1e-9);
	l.opcode = URDMA_WR_SEND;
	assert_float_equal(limits_messages(&model, &l).value, 1000 / (4 * 3.25), 1e-9);
	/* Both ways, each NIC reads receive WQEs, too; a shared queue has 2 bytes more for each. */
	l.both_ways = true;
	l.signaled = l.doorbell = 16;
	l.recv_stride = 512;
	expect(&l, "PCIe, RC beats", 1000 / (4 * (3.25 + 10)), 1e-9);
	l.srq = true;
	limit = limits_messages(&model, &l);
	assert_float_equal(limit.value, 1000 / (4 * (3.25 + 10.0 * 514 / 512)), 1e-9);
	l = load(URDMA_WR_SEND, 64, 4096);
	l.qps = 64;
	l.window = 32;
	/* RC: one byte takes one beat. The wire would allow one for 86 bytes. */
	l.len = 1;
	expect(&l, "PCIe, RC beats", 1000 / (4 * 2.25), 1e-9);
	/* a READ of a byte: 98 bytes of wire for the request, 90 for the answer; two cycles each */
	l.opcode = URDMA_WR_READ;
	l.signaled = 16;
	expect(&l, "NIC, transmit", 1000 / 8.0, 1e-9);
	/* a slow wire */
	model.line = 25;
	l.opcode = URDMA_WR_SEND;
	l.len = 64;
	expect(&l, "wire", 1000 / (146 * 8 / 25.0), 1e-9);
	defaults(NULL);
}

/* 1 KB in 8 pieces of 128 bytes: of 3 beats each. The WQE has 256 bytes, 5 beats with its answer.
 */
static void pieces_of_memory(void **state)
{
	struct limits_load l = load(URDMA_WR_WRITE, 1024, 4096);

	(void)state;
	l.window = 64;
	l.sges = 8;
	l.stride = 256;
	expect(&l, "PCIe, RC beats", 1000.0 / 4 / (8 * 3 + 5), 1e-9);
	/* Half of the WQEs were read before. */
	l.ahead = 0.5;
	expect(&l, "PCIe, RC beats", 1000.0 / 4 / (8 * 3 + 2.5), 1e-9);
	/* One piece is read as 4 completions of 5 beats. */
	l.sges = 1;
	l.stride = 64;
	l.ahead = 0;
	expect(&l, "wire", 100 * 1000.0 / 8 / (1024 + 82 + 16), 1e-6);
	/* A READ writes 16 pieces of 64 bytes in 2 beats each. */
	l = load(URDMA_WR_READ, 1024, 4096);
	l.window = 64;
	l.qps = 64;
	l.sges = 16;
	l.stride = 512;
	expect(&l, "PCIe, RQ beats", 1000.0 / 4 / (16 * 2 + 1 + 512.0 / 4096), 1e-9);
}

static void inlined(void **state)
{
	struct limits_load l = load(URDMA_WR_WRITE, 64, 4096);

	(void)state;
	l.qps = 64;
	l.stride = 128;
	l.inlined = true;
	/* RC: four WQEs of 128 bytes take ten beats. The wire allows one for 162 bytes. */
	expect(&l, "wire", 1000 / (162 * 8 / 100.0), 1e-9);
	/* RC: ten beats for a WQE of 512 bytes; two more, if it has an SGE */
	l.stride = 512;
	l.doorbell = 16;
	expect(&l, "PCIe, RC beats", 1000 / (4 * 10.0), 1e-9);
	l.inlined = false;
	assert_float_equal(limits_messages(&model, &l).value, 1000 / (4 * 12.0), 1e-9);
	/* The receiver's RQ: two beats for the data, one for the CQE, 1/64 of a beat for a WQE. */
	l = load(URDMA_WR_SEND, 64, 4096);
	l.qps = 64;
	l.stride = 128;
	l.inlined = true;
	expect(&l, "PCIe, RQ beats", 1000 / (4 * (3 + 1 / 64.0)), 1e-9);
	/*
	 * One under way. Two wires and two DMA writes take 800 ns, the WQE 500, and TLPs of 32, 172
	 * and 56 bytes.
	 */
	l.qps = l.window = 1;
	expect(&l, "outstanding", 1000 / (1300 + 260 * 8 / model.pcie), 1e-9);
	/* 108 bytes more for the data, and their time */
	l.inlined = false;
	assert_float_equal(limits_messages(&model, &l).value, 1000 / (1800 + 368 * 8 / model.pcie),
			   1e-9);
}

static void answers(void **state)
{
	struct limits_load l = load(URDMA_WR_WRITE, 4096, 4096);
	struct limit limit;

	(void)state;
	/* 82 bytes and a RETH, and 16 bytes in a packet of 82 and an IETH */
	l.qps = 8;
	l.answer = 16;
	l.registered = true;
	limit = limits_messages(&model, &l);
	assert_string_equal(limit.by, "wire");
	assert_float_equal(limit.value * 4096 * 8 / 1000, 4096.0 / (4194 + 102) * 100, 1e-6);
	/* A fast wire. The requester's RC: five beats for 256 bytes, one for the answer, two WQEs
	 */
	model.line = 400;
	expect(&l, "PCIe, RC beats", 1000 / (4 * (80 + 1 + 2.5)), 1e-9);
	/*
	 * The responder's RQ: five beats for 256 bytes, one for the answer and for each of the CQEs
	 * of answer and REG_MR; their WQEs are read with others.
	 */
	l.requester_dm = true;
	expect(&l, "PCIe, RQ beats", 1000 / (4 * (80 + 3 + 2 / 64.0)), 1e-9);
	/* Without the region there is neither its CQE nor its WQE. */
	l.registered = false;
	expect(&l, "PCIe, RQ beats", 1000 / (4 * (80 + 2 + 1 / 64.0)), 1e-9);
	defaults(state);
	/* Alone: two beats for 64 bytes */
	l = load(URDMA_WR_SEND_INV, 64, 4096);
	l.qps = 64;
	l.registered = true;
	expect(&l, "PCIe, RQ beats", 1000 / (4 * (4 + 2 / 64.0)), 1e-9);
}

static void device_memory(void **state)
{
	struct limits_load l = load(URDMA_WR_WRITE, 64, 4096);

	(void)state;
	l.qps = 64;
	/* Into it: RC as for host memory. Out of it: five beats for four WQEs. */
	l.responder_dm = true;
	expect(&l, "PCIe, RC beats", 1000 / (4 * 3.25), 1e-9);
	l.requester_dm = true;
	expect(&l, "wire", 1000 / (162 * 8 / 100.0), 1e-9);
	/* As in both(): writes into device memory leave RQ to the read requests. */
	l = load(URDMA_WR_WRITE, 65536, 4096);
	l.both_ways = true;
	model.mrrs = 512;
	assert_string_equal(limits_messages(&model, &l).by, "PCIe, RQ beats");
	l.responder_dm = true;
	assert_string_equal(limits_messages(&model, &l).by, "wire");
	defaults(NULL);
	/* A fast wire. 64 KB take 1280 beats of the responder's RC and of the requester's RQ. */
	model.line = 400;
	l = load(URDMA_WR_READ, 65536, 4096);
	expect(&l, "PCIe, RQ beats", 1000 / (4 * (1280 + 1 + 1 / 64.0)), 1e-9);
	l.requester_dm = true;
	expect(&l, "PCIe, RC beats", 1000 / (4 * 1280.0), 1e-9);
	/* without either, 16 frames of 65 beats */
	l.responder_dm = true;
	expect(&l, "NIC, transmit", 1000 / (4 * 1040.0), 1e-9);
	/* The ports. Reads: a beat each for both WQEs and the data. */
	l = load(URDMA_WR_SEND, 64, 4096);
	l.qps = 64;
	l.signaled = 16;
	l.both_ways = l.requester_dm = l.responder_dm = true;
	expect(&l, "DMA port, read", 1000 / (4 * 3.0), 1e-9);
	/* Writes: the data and two CQEs; reads: both WQEs. */
	l.len = 32;
	l.signaled = 1;
	l.inlined = true;
	l.requester_dm = false;
	expect(&l, "DMA port, write", 1000 / (4 * 3.0), 1e-9);
	defaults(NULL);
	/*
	 * A slow link, down: 4416 bytes for 64 WQEs, 32 for 16 doorbells; 28 for the old value, if
	 * it is in host memory.
	 */
	model.pcie = 1;
	l = load(URDMA_WR_ATOMIC_FA, 8, 4096);
	l.qps = 64;
	l.signaled = l.doorbell = 16;
	l.both_ways = true;
	expect(&l, "PCIe, down", 1000 / ((69 + 2 + 28) * 8.0), 1e-9);
	l.responder_dm = true;
	expect(&l, "PCIe, down", 1000 / ((69 + 2) * 8.0), 1e-9);
	/*
	 * Up, with a CQE of 56 bytes each: 24 bytes for 64 WQEs, 32 for the old value at the
	 * requester. Host memory adds a request of 24 and a write of 32 bytes.
	 */
	l.signaled = 1;
	expect(&l, "PCIe, up", 1000 / ((0.375 + 56 + 32) * 8), 1e-9);
	l.responder_dm = false;
	expect(&l, "PCIe, up", 1000 / ((0.375 + 56 + 32 + 24 + 32) * 8), 1e-9);
	defaults(NULL);
	/* One under way: a READ of it takes two wires. A SEND out of it only reads its WQE. */
	l = load(URDMA_WR_READ, 64, 4096);
	l.window = 1;
	l.responder_dm = true;
	expect(&l, "outstanding", 1000 / 500.0, 1e-9);
	l.opcode = URDMA_WR_SEND;
	l.requester_dm = true;
	expect(&l, "outstanding", 1000 / (1300 + (32 + 108 + 56) * 8 / model.pcie), 1e-9);
}

static void outstanding(void **state)
{
	struct limits_load l = load(URDMA_WR_READ, 64, 4096);
	struct limit limit;

	(void)state;
	l.window = 64; /* of which 16 may be outstanding */
	limit = limits_messages(&model, &l);
	assert_string_equal(limit.by, "outstanding");
	/* two wires and a DMA read: 1000 ns, and 108 bytes of TLPs */
	assert_float_equal(limit.value, 16 * 1000 / (1000 + 108 * 8 / model.pcie), 1e-9);
	l.qps = 2;
	assert_float_equal(limits_messages(&model, &l).value, 2 * limit.value, 1e-9);
	l.qps = 16;
	assert_string_not_equal(limits_messages(&model, &l).by, "outstanding");
}

static void loss(void **state)
{
	struct limits_load l = load(URDMA_WR_WRITE, 65536, 4096);
	double whole = limits_messages(&model, &l).value;

	(void)state;
	l.loss = 0.01;
	assert_float_equal(limits_messages(&model, &l).value, whole * 0.99, 1e-9);
}

static void ethernet(void **state)
{
	struct limit limit = limits_frames(&model, 1514);

	(void)state;
	assert_string_equal(limit.by, "wire");
	assert_float_equal(limit.value, 1000 / (1538 * 8 / 100.0), 1e-9);
	/*
	 * two beats for the frame, one for its completion, 1/512 of a beat for its buffer's address
	 */
	limit = limits_frames(&model, 60);
	assert_string_equal(limit.by, "PCIe, RQ beats");
	assert_float_equal(limit.value, 1000 / (4 * (3 + 1 / 512.0)), 1e-9);
}

static void times(void **state)
{
	(void)state;
	assert_float_equal(limits_flight(&model, 60), 72 * 8 / 100.0 + 250, 1e-9);
	assert_float_equal(limits_dma_read(&model, 64), 500 + 108 * 8 / model.pcie, 1e-9);
	assert_float_equal(limits_dma_write(&model, 32), 150 + 56 * 8 / model.pcie, 1e-9);
	assert_float_equal(limits_doorbell(&model), 150 + 32 * 8 / model.pcie, 1e-9);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames),
		cmocka_unit_test(bulk),
		cmocka_unit_test(both),
		cmocka_unit_test(small),
		cmocka_unit_test(outstanding),
		cmocka_unit_test(loss),
		cmocka_unit_test(ethernet),
		cmocka_unit_test(times),
		cmocka_unit_test(unreliable),
		cmocka_unit_test(xrc),
		cmocka_unit_test(pieces_of_memory),
		cmocka_unit_test(answers),
		cmocka_unit_test(inlined),
		cmocka_unit_test(answers),
		cmocka_unit_test(device_memory),
	};

	return cmocka_run_group_tests(tests, defaults, NULL);
}
