// SPDX-License-Identifier: Apache-2.0
/*
 * SEND and receive through the whole NIC: every size around the boundaries, each path MTU, several
 * shapes of scatter-gather lists, slow, fast and reordering PCIe. Data and completions are
 * compared, each run repeats exactly, to the cycle, and time skipping changes nothing. A failure
 * prints the case; the runs have no other input.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"
#include "seed.h"

#define WAIT_CYCLES 4000000u

/* The layout of a message in memory: up to MAX_SGE pieces. */
#define MAX_SGE 16u

enum shape {
	SHAPE_ONE,	 /* one piece, page aligned */
	SHAPE_UNALIGNED, /* one piece, from an odd address near a page's end */
	SHAPE_TWO,	 /* two pieces, cut at an odd place */
	SHAPE_MANY,	 /* 16 pieces of unequal length, some of them empty */
	SHAPES,
};

struct layout {
	struct urdma_eh_sge sge[MAX_SGE];
	unsigned int n;
};

/* Cuts len bytes into pieces. start lies in the rig's region; gaps stay between the pieces. */
static void lay_out(struct rig_side *side, size_t start, uint32_t len, enum shape shape,
		    struct layout *l)
{
	uint64_t addr = (uintptr_t)side->buffer + start;
	uint32_t left = len, part;

	l->n = 0;
	switch (shape) {
	case SHAPE_ONE:
		l->sge[l->n++] = (struct urdma_eh_sge){ addr, len, side->mr.key };
		return;
	case SHAPE_UNALIGNED:
		l->sge[l->n++] = (struct urdma_eh_sge){ addr + 4093, len, side->mr.key };
		return;
	case SHAPE_TWO:
		part = len / 3 | 1;
		if (part > len)
			part = len;
		l->sge[l->n++] = (struct urdma_eh_sge){ addr + 61, part, side->mr.key };
		l->sge[l->n++] =
			(struct urdma_eh_sge){ addr + 61 + part + 5000, len - part, side->mr.key };
		return;
	default:
		for (unsigned int i = 0; i < MAX_SGE; i++) {
			part = i % 5 == 3 ? 0 : len / 13 + i;
			if (part > left || i == MAX_SGE - 1)
				part = left;
			l->sge[l->n++] = (struct urdma_eh_sge){ addr + 7 * i, part, side->mr.key };
			addr += part + 129;
			left -= part;
		}
	}
}

static void fill(const struct layout *l, uint32_t seed)
{
	uint64_t state = (uint64_t)seed + 1;

	for (unsigned int i = 0; i < l->n; i++) {
		uint8_t *p = (uint8_t *)(uintptr_t)l->sge[i].addr;

		for (uint32_t k = 0; k < l->sge[i].length; k++) {
			p[k] = rnd_next(&state) >> 56;
		}
	}
}

static uint32_t verify(const struct layout *l, uint32_t seed, uint32_t len)
{
	uint64_t state = (uint64_t)seed + 1;
	uint32_t at = 0;

	for (unsigned int i = 0; i < l->n; i++) {
		const uint8_t *p = (const uint8_t *)(uintptr_t)l->sge[i].addr;

		for (uint32_t k = 0; k < l->sge[i].length && at < len; k++, at++) {
			if (p[k] != rnd_next(&state) >> 56)
				return at;
		}
	}
	return len;
}

struct run {
	uint64_t hash; /* of every CQE, its cycle included, and of the last cycle */
	uint64_t bytes, cycles;
};

/* Sends one message each way. The receiver's list has another shape than the sender's. */
static void exchange(struct rig *rig, uint32_t len, enum shape shape, bool imm, struct run *run)
{
	static const size_t rx_start = 2u << 20;
	struct layout tx[2], rx[2];
	struct urdma_eh_cqe cqe;

	for (unsigned int n = 0; n < 2; n++) {
		lay_out(&rig->side[n], 0, len, shape, &tx[n]);
		lay_out(&rig->side[n], rx_start, len, (shape + 1) % SHAPES, &rx[n]);
		fill(&tx[n], len + n);
		fill(&rx[n], ~len);
		assert_int_equal(urdma_eh_post_recv(&rig->side[n].qp[0], rx[n].sge, rx[n].n), 0);
	}
	for (unsigned int n = 0; n < 2; n++) {
		struct urdma_eh_send wr = {
			.opcode = imm ? URDMA_WR_SEND_IMM : URDMA_WR_SEND,
			.signaled = true,
			.imm = 0x12345678u + len,
			.sge = tx[n].sge,
			.n_sge = tx[n].n,
		};

		assert_int_equal(urdma_eh_post_send(&rig->side[n].qp[0], &wr), 0);
	}
	for (unsigned int n = 0; n < 2; n++) {
		struct rig_side *side = &rig->side[n];
		uint32_t good;

		rig_check(rig, urdma_eh_next_cqe(&side->recv_cq, &cqe, WAIT_CYCLES),
			  "wait for the receive completion");
		run->hash = rig_hash_cqe(run->hash, &cqe);
		if (cqe.status)
			fail_msg("length %u shape %d to NIC %u: receive status %u", len, shape, n,
				 cqe.status);
		assert_true(cqe.recv);
		assert_int_equal(cqe.length, len);
		assert_int_equal(cqe.qpn, RIG_QPN(0));
		assert_int_equal(cqe.src_qpn, RIG_QPN(0));
		assert_int_equal(cqe.has_imm, imm);
		assert_int_equal(cqe.opcode, imm ? URDMA_WR_SEND_IMM : URDMA_WR_SEND);
		if (imm)
			assert_int_equal(cqe.imm, 0x12345678u + len);
		good = verify(&rx[n], len + !n, len);
		if (good != len)
			fail_msg("length %u shape %d to NIC %u: byte %u is wrong", len, shape, n,
				 good);

		rig_check(rig, urdma_eh_next_cqe(&side->send_cq, &cqe, WAIT_CYCLES),
			  "wait for the send completion");
		run->hash = rig_hash_cqe(run->hash, &cqe);
		if (cqe.status)
			fail_msg("length %u shape %d from NIC %u: send status %u", len, shape, n,
				 cqe.status);
		assert_false(cqe.recv);
		run->bytes += len;
	}
}

static void sizes(struct rig *rig, struct run *run)
{
	uint32_t mtu = 128u << rig->config.mtu;
	const uint32_t size[] = { 0, 1, 63, 64, 65, mtu - 1, mtu, mtu + 1, 65536, 1u << 20 };

	run->hash = RIG_HASH_START;
	for (unsigned int s = 0; s < sizeof(size) / sizeof(size[0]); s++) {
		for (int shape = 0; shape < SHAPES; shape++) {
			/* the long ones take most of the time: two shapes each */
			if (size[s] > 65536 && shape % 2)
				continue;
			exchange(rig, size[s], shape, (s + shape) % 3 == 0, run);
		}
	}
	run->cycles = urdma_cosim_now(rig->cosim);
	run->hash = rig_hash(run->hash, &run->cycles, sizeof(run->cycles));
}

static void config_for(struct rig_config *config, unsigned int mtu)
{
	rig_defaults(config);
	config->mtu = mtu;
	config->log_stride = 9;
	config->log_sq = 6;
	config->log_rq = 6;
	config->buffer = 8u << 20;
}

static struct run run_sizes(const struct rig_config *config, const char *what)
{
	struct run run = { 0 };
	struct rig rig;

	rig_start(&rig, config);
	sizes(&rig, &run);
	rig_stop(&rig);
	print_message("MTU %4u, %s: %lu bytes, %lu cycles, digest %016lx\n", 128u << config->mtu,
		      what, (unsigned long)run.bytes, (unsigned long)run.cycles,
		      (unsigned long)run.hash);
	return run;
}

static void test_sizes(void **state)
{
	struct rig_config config;

	(void)state;
	for (unsigned int mtu = 1; mtu <= 5; mtu++) {
		config_for(&config, mtu);
		config.ipv6 = mtu % 2;
		config.kind = mtu % 3 ? URDMA_EH_RING_PAGED : URDMA_EH_RING_LEVELS_2;
		run_sizes(&config, config.ipv6 ? "IPv6" : "IPv4");
	}
}

static void test_pcie(void **state)
{
	static const uint32_t latency[] = { 100, 500, 2000 };
	struct rig_config config;
	char what[64];

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		config_for(&config, 3);
		config.cosim.pcie.latency_ns = latency[i];
		config.cosim.pcie.reorder = i != 0;
		config.cosim.pcie.seed = test_seed(77 + i);
		config.cosim.pcie.mps = 128u << i;
		config.cosim.pcie.rcb = i == 1 ? 128 : 64;
		config.cosim.pcie.cpl = config.cosim.pcie.rcb;
		config.cosim.pcie.stall_percent = i * 10;
		snprintf(what, sizeof(what), "PCIe latency %u ns, payload %u%s", latency[i],
			 128u << i, i ? ", reordered" : "");
		run_sizes(&config, what);
	}
}

static void test_repeat(void **state)
{
	struct rig_config config;
	struct run a, b, c;

	(void)state;
	config_for(&config, 3);
	config.cosim.pcie.reorder = true;
	a = run_sizes(&config, "first run");
	b = run_sizes(&config, "second run");
	config.cosim.no_skip = true;
	c = run_sizes(&config, "without skipping");
	assert_int_equal(a.cycles, b.cycles);
	assert_int_equal(a.hash, b.hash);
	assert_int_equal(a.cycles, c.cycles);
	assert_int_equal(a.hash, c.hash);
}

static void test_inline(void **state)
{
	struct rig_config config;
	struct rig rig;
	uint8_t data[480];

	(void)state;
	config_for(&config, 2);
	rig_start(&rig, &config);
	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = i * 37 + 11;
	for (unsigned int len = 1; len <= sizeof(data); len = len < 70 ? len + 1 : len + 41) {
		struct rig_side *to = &rig.side[1];
		struct urdma_eh_sge sge = { (uintptr_t)to->buffer + len, len, to->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
					    .signaled = true,
					    .inline_data = data,
					    .inline_len = len };
		struct urdma_eh_cqe cqe;

		assert_int_equal(urdma_eh_post_recv(&to->qp[0], &sge, 1), 0);
		assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0], &wr), 0);
		rig_check(&rig, urdma_eh_next_cqe(&to->recv_cq, &cqe, WAIT_CYCLES), "receive");
		assert_int_equal(cqe.status, 0);
		assert_int_equal(cqe.length, len);
		assert_memory_equal(to->buffer + len, data, len);
		rig_check(&rig, urdma_eh_next_cqe(&rig.side[0].send_cq, &cqe, WAIT_CYCLES), "send");
		assert_int_equal(cqe.status, 0);
	}
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_pcie),
		cmocka_unit_test(test_repeat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
