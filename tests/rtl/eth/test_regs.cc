// SPDX-License-Identifier: Apache-2.0
// urdma_eth_regs alone against a model of docs/hardware-interface.md, section 12: each register
// with each pattern of byte strobes, then random accesses while the sides of the queue pairs are
// enabled and disabled. A failure means that software or the blocks read a value that was not
// written, or that a ring changes while it is in use. SEED=n repeats a run.

extern "C" {
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
}
#include <map>
#include <vector>

#include "Vurdma_eth_regs.h"
#include "rtl/bench.h"
#include "urdma_hw.h"
#include "urdma_pkg.h"

enum { QUEUES = ETHQ_N, UC = ETH_UC_N, LOG_RING = ETH_LOG_RING, LOG_CQ = ETH_LOG_CQ };
enum { SIDE_TX, SIDE_RX, SIDE_CQ, SIDES };

struct bench {
	Vurdma_eth_regs dut;
	uint64_t seed, now;
	std::map<unsigned int, uint64_t> reg; // by address, what is kept
	std::vector<unsigned int> addr;	      // of all there are
	unsigned int active[SIDES], err[2];
	uint16_t ci[2][QUEUES];
	uint32_t pi[QUEUES];
	bool dirty, members[2];
	unsigned int vlan;
	uint64_t refused, locked;
};

static unsigned int queue_reg(unsigned int q, unsigned int r)
{
	return URDMA_REG_ETHQ + URDMA_ETHQ_STRIDE * q + r;
}

static bool is_queue(unsigned int addr)
{
	return addr >= URDMA_REG_ETHQ && addr < URDMA_REG_ETHQ + URDMA_ETHQ_STRIDE * QUEUES;
}

// The bits of a register that are kept; of a queue pair's those that may change now.
static uint64_t writable(struct bench *b, unsigned int addr)
{
	static const uint64_t size[SIDES] = { URDMA_RF_ETHQ_LOG_TX,
					      URDMA_RF_ETHQ_LOG_RX | URDMA_RF_ETHQ_RX_BUF,
					      URDMA_RF_ETHQ_LOG_CQ };
	uint64_t mask = 0;

	if (addr == URDMA_REG_ETH_CTRL)
		return URDMA_RF_ETH_RX_ENABLE | URDMA_RF_ETH_PROMISC | URDMA_RF_ETH_ALLMULTI |
		       URDMA_RF_ETH_VLAN_STRIP | URDMA_RF_ETH_VLAN_FILTER | URDMA_RF_ETH_LOOPBACK;
	if (addr == URDMA_REG_ETH_RSS)
		return URDMA_RF_ETH_RSS_IPV4 | URDMA_RF_ETH_RSS_IPV6 | URDMA_RF_ETH_RSS_TCP |
		       URDMA_RF_ETH_RSS_UDP;
	if (addr >= URDMA_REG_ETH_UC && addr < URDMA_REG_ETH_UC + 8 * UC)
		return URDMA_RF_ETH_UC_ADDR | URDMA_RF_ETH_UC_VALID;
	if (addr >= URDMA_REG_ETH_RSS_TABLE &&
	    addr < URDMA_REG_ETH_RSS_TABLE + 8 * URDMA_ETH_RSS_TABLE_WORDS)
		return 0x0707070707070707;
	if (!is_queue(addr))
		return ~0ull;

	unsigned int q = (addr - URDMA_REG_ETHQ) / URDMA_ETHQ_STRIDE;
	uint64_t enable = b->reg[queue_reg(q, URDMA_ETHQ_CTRL)];

	for (int s = 0; s < SIDES; s++) {
		bool still = !(enable >> s & 1) && !(b->active[s] >> q & 1);

		switch (addr % URDMA_ETHQ_STRIDE) {
		case URDMA_ETHQ_SIZE:
			mask |= still ? size[s] : 0;
			break;
		case URDMA_ETHQ_TX_BASE:
		case URDMA_ETHQ_RX_BASE:
		case URDMA_ETHQ_CQ_BASE:
			if (addr % URDMA_ETHQ_STRIDE == URDMA_ETHQ_TX_BASE + 8u * s && still)
				mask = ~0xfffull;
			break;
		case URDMA_ETHQ_INT:
			mask = URDMA_RF_ETHQ_VECTOR | URDMA_RF_ETHQ_RX_FRAMES |
			       URDMA_RF_ETHQ_TX_FRAMES | URDMA_RF_ETHQ_RX_USECS |
			       URDMA_RF_ETHQ_TX_USECS;
			break;
		}
	}
	return mask;
}

static void model_write(struct bench *b, unsigned int addr, uint64_t data, unsigned int strb)
{
	uint64_t mask = 0, can;

	if (!b->reg.count(addr))
		return;
	for (int i = 0; i < 8; i++)
		if (strb >> i & 1)
			mask |= 0xffull << 8 * i;
	if (is_queue(addr) && addr % URDMA_ETHQ_STRIDE == URDMA_ETHQ_CTRL) {
		unsigned int q = (addr - URDMA_REG_ETHQ) / URDMA_ETHQ_STRIDE;

		for (int s = 0; s < SIDES && strb & 1; s++) {
			bool on = data >> s & 1, was = b->reg[addr] >> s & 1;

			if (on && !was && b->active[s] >> q & 1) {
				on = false; // not while it is still active
				b->refused++;
			}
			b->reg[addr] = (b->reg[addr] & ~(1ull << s)) | (uint64_t)on << s;
		}
		return;
	}
	can = writable(b, addr);
	b->locked += is_queue(addr) && !can;
	mask &= can;
	b->reg[addr] = (b->reg[addr] & ~mask) | (data & mask);
}

static uint64_t model_read(struct bench *b, unsigned int addr)
{
	uint64_t v;

	if (!b->reg.count(addr))
		return 0;
	v = b->reg[addr];
	if (!is_queue(addr))
		return v;

	unsigned int q = (addr - URDMA_REG_ETHQ) / URDMA_ETHQ_STRIDE;

	switch (addr % URDMA_ETHQ_STRIDE) {
	case URDMA_ETHQ_CTRL:
		for (int s = 0; s < SIDES; s++)
			if (b->active[s] >> q & 1 || v >> s & 1)
				v |= URDMA_RF_ETHQ_TX_ACTIVE << s;
		if (b->err[0] >> q & 1)
			v |= URDMA_RF_ETHQ_TX_ERR;
		if (b->err[1] >> q & 1)
			v |= URDMA_RF_ETHQ_RX_ERR;
		break;
	case URDMA_ETHQ_STATE:
		v = b->ci[0][q] | (uint64_t)b->ci[1][q] << 16 | (uint64_t)b->pi[q] << 32;
		break;
	}
	return v;
}

static unsigned int limited(unsigned int log, unsigned int max)
{
	return log < 6 ? 6 : log > max ? max : log;
}

static void check_ring(struct bench *b, const uint32_t *w, unsigned int q, unsigned int side,
		       unsigned int log)
{
	uint64_t enable = b->reg[queue_reg(q, URDMA_ETHQ_CTRL)] >> side & 1;
	uint64_t base = b->reg[queue_reg(q, URDMA_ETHQ_TX_BASE + 8 * side)];

	assert_int_equal(FIELD_GET(w, eth_ring_t_W * q, eth_ring_t, enable), enable);
	assert_int_equal(FIELD_GET(w, eth_ring_t_W * q, eth_ring_t, base), base);
	assert_int_equal(FIELD_GET(w, eth_ring_t_W * q, eth_ring_t, log_entries), log);
}

static void check_outputs(struct bench *b)
{
	Vurdma_eth_regs *d = &b->dut;
	const uint32_t *c = d->cfg.m_storage;
	uint64_t ctrl = b->reg[URDMA_REG_ETH_CTRL], rss = b->reg[URDMA_REG_ETH_RSS];

	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, rx_enable),
			 HW_GET(URDMA_RF_ETH_RX_ENABLE, ctrl));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, promisc), HW_GET(URDMA_RF_ETH_PROMISC, ctrl));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, allmulti), HW_GET(URDMA_RF_ETH_ALLMULTI, ctrl));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, vlan_strip),
			 HW_GET(URDMA_RF_ETH_VLAN_STRIP, ctrl));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, vlan_filter),
			 HW_GET(URDMA_RF_ETH_VLAN_FILTER, ctrl));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, loopback), HW_GET(URDMA_RF_ETH_LOOPBACK, ctrl));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, hash_ipv4), HW_GET(URDMA_RF_ETH_RSS_IPV4, rss));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, hash_ipv6), HW_GET(URDMA_RF_ETH_RSS_IPV6, rss));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, hash_tcp), HW_GET(URDMA_RF_ETH_RSS_TCP, rss));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, hash_udp), HW_GET(URDMA_RF_ETH_RSS_UDP, rss));
	assert_int_equal(FIELD_GET(c, 0, eth_cfg_t, mac), d->mac);
	for (int i = 0; i < URDMA_ETH_RSS_KEY_WORDS; i++)
		assert_int_equal(bits_get(c, FIELD_AT(64 * i, eth_cfg_t, key), 64),
				 b->reg[URDMA_REG_ETH_RSS_KEY + 8 * i]);
	for (int i = 0; i < UC; i++) {
		uint64_t v = b->reg[URDMA_REG_ETH_UC + 8 * i];

		assert_int_equal(bits_get(c, FIELD_AT(48 * i, eth_cfg_t, uc), 48),
				 HW_GET(URDMA_RF_ETH_UC_ADDR, v));
		assert_int_equal(bits_get(c, FIELD_AT(i, eth_cfg_t, uc_valid), 1),
				 HW_GET(URDMA_RF_ETH_UC_VALID, v));
	}
	for (int i = 0; i < URDMA_ETH_MC_HASH_WORDS; i++)
		assert_int_equal(bits_get(c, FIELD_AT(64 * i, eth_cfg_t, mc_hash), 64),
				 b->reg[URDMA_REG_ETH_MC_HASH + 8 * i]);
	for (int i = 0; i < 128; i++)
		assert_int_equal(bits_get(c, FIELD_AT(3 * i, eth_cfg_t, table_), 3),
				 b->reg[URDMA_REG_ETH_RSS_TABLE + i / 8 * 8] >> i % 8 * 8 & 7);
	for (unsigned int q = 0; q < QUEUES; q++) {
		uint64_t size = b->reg[queue_reg(q, URDMA_ETHQ_SIZE)];
		uint64_t in = b->reg[queue_reg(q, URDMA_ETHQ_INT)];
		uint64_t buf = HW_GET(URDMA_RF_ETHQ_RX_BUF, size);
		const uint32_t *m = d->moderation.m_storage;

		check_ring(b, d->tx_ring.m_storage, q, SIDE_TX,
			   limited(HW_GET(URDMA_RF_ETHQ_LOG_TX, size), LOG_RING));
		check_ring(b, d->rx_ring.m_storage, q, SIDE_RX,
			   limited(HW_GET(URDMA_RF_ETHQ_LOG_RX, size), LOG_RING));
		check_ring(b, d->cq_ring.m_storage, q, SIDE_CQ,
			   limited(HW_GET(URDMA_RF_ETHQ_LOG_CQ, size), LOG_CQ));
		assert_int_equal(d->buf64 >> 7 * q & 0x7f, !buf ? 1 : buf > 64 ? 64 : buf);
		assert_int_equal(FIELD_GET(m, eth_int_t_W * q, eth_int_t, tx_usecs),
				 HW_GET(URDMA_RF_ETHQ_TX_USECS, in));
		assert_int_equal(FIELD_GET(m, eth_int_t_W * q, eth_int_t, rx_usecs),
				 HW_GET(URDMA_RF_ETHQ_RX_USECS, in));
		assert_int_equal(FIELD_GET(m, eth_int_t_W * q, eth_int_t, tx_frames),
				 HW_GET(URDMA_RF_ETHQ_TX_FRAMES, in));
		assert_int_equal(FIELD_GET(m, eth_int_t_W * q, eth_int_t, rx_frames),
				 HW_GET(URDMA_RF_ETHQ_RX_FRAMES, in));
		assert_int_equal(FIELD_GET(m, eth_int_t_W * q, eth_int_t, vec),
				 HW_GET(URDMA_RF_ETHQ_VECTOR, in));
	}
}

static bool member(struct bench *b, unsigned int vlan)
{
	return b->reg[URDMA_REG_ETH_VLAN + vlan / 64 * 8] >> vlan % 64 & 1;
}

// One cycle with an access or without (addr 0); the data of a read are checked in the next one.
static void cycle(struct bench *b, unsigned int addr, bool write, uint64_t data, unsigned int strb)
{
	Vurdma_eth_regs *d = &b->dut;
	uint64_t expect = 0;

	d->reg_valid = addr != 0;
	FIELD_SET(d->reg_req.m_storage, 0, reg_req_t, strb, strb);
	FIELD_SET(d->reg_req.m_storage, 0, reg_req_t, wdata, data);
	FIELD_SET(d->reg_req.m_storage, 0, reg_req_t, addr, addr);
	FIELD_SET(d->reg_req.m_storage, 0, reg_req_t, write, write);
	d->tx_active = b->active[SIDE_TX];
	d->rx_active = b->active[SIDE_RX];
	d->cq_active = b->active[SIDE_CQ];
	d->tx_err = b->err[0];
	d->rx_err = b->err[1];
	for (int q = 0; q < QUEUES; q++) {
		bits_set(d->tx_ci.m_storage, 16 * q, 16, b->ci[0][q]);
		bits_set(d->rx_ci.m_storage, 16 * q, 16, b->ci[1][q]);
		bits_set(d->cq_pi.m_storage, 32 * q, 32, b->pi[q]);
	}
	b->vlan = rnd(b, 4096);
	d->vlan_id = b->vlan;
	bench_settle(*d);
	if (b->dirty)
		check_outputs(b);
	b->dirty = false;
	b->members[0] = member(b, b->vlan);
	if (addr && write) {
		model_write(b, addr, data, strb);
		b->dirty = true;
	} else if (addr) {
		expect = model_read(b, addr);
	}
	b->members[1] = member(b, b->vlan);
	bench_edge(*d);
	b->now++;
	if (addr && !write && d->reg_rdata != expect)
		fail_msg("cycle %lu: register 0x%x reads 0x%lx, it is 0x%lx", b->now, addr,
			 (unsigned long)d->reg_rdata, expect);
	// a table that is written in that cycle is seen as before or after
	if (d->vlan_member != b->members[0] && d->vlan_member != b->members[1])
		fail_msg("cycle %lu: VLAN %u", b->now, b->vlan);
}

static void add(struct bench *b, unsigned int addr, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		b->addr.push_back(addr + 8 * i);
		b->reg[addr + 8 * i] = 0;
	}
}

static void reset(struct bench *b)
{
	b->dut.rst = 1;
	b->dut.reg_valid = 0;
	for (int i = 0; i < 3; i++) {
		bench_clock(b->dut);
	}
	b->dut.rst = 0;
	for (int i = 0; !b->dut.init_done; i++) {
		bench_clock(b->dut);
		assert_true(i < 100);
	}
	for (auto &r : b->reg)
		r.second = 0;
	for (auto &a : b->active)
		a = 0;
	b->dirty = true;
}

static struct bench *start(void)
{
	struct bench *b = new struct bench();

	b->seed = bench_state(test_seed(1));
	add(b, URDMA_REG_ETH_CTRL, 1);
	add(b, URDMA_REG_ETH_RSS, 1);
	add(b, URDMA_REG_ETH_RSS_KEY, URDMA_ETH_RSS_KEY_WORDS);
	add(b, URDMA_REG_ETH_UC, UC);
	add(b, URDMA_REG_ETH_MC_HASH, URDMA_ETH_MC_HASH_WORDS);
	add(b, URDMA_REG_ETH_RSS_TABLE, URDMA_ETH_RSS_TABLE_WORDS);
	add(b, URDMA_REG_ETH_VLAN, URDMA_ETH_VLAN_WORDS);
	for (unsigned int q = 0; q < QUEUES; q++)
		add(b, queue_reg(q, 0), URDMA_ETHQ_STATE / 8 + 1);
	b->dut.mac = 0x665544332211;
	reset(b);
	return b;
}

static void read_all(struct bench *b)
{
	for (unsigned int a = 0x2000; a < 0x4000; a += 8)
		cycle(b, a, false, 0, 0xff);
}

// Every register, every pattern of strobes, on different contents; nothing beside it changes.
static void test_strobes(void **)
{
	struct bench *b = start();

	read_all(b);
	for (auto a : b->addr) {
		for (unsigned int strb = 0; strb < 256; strb++) {
			uint64_t v = rnd_next(&b->seed);

			// the enables have a test of their own; here rings may be set up
			if (is_queue(a) && a % URDMA_ETHQ_STRIDE == URDMA_ETHQ_CTRL)
				v &= ~7ull;
			cycle(b, a, true, v, strb);
			cycle(b, a, false, 0, 0xff);
		}
	}
	read_all(b);
	// addresses without a register take nothing
	for (unsigned int a = 0x2000; a < 0x4000; a += 8)
		if (!b->reg.count(a))
			cycle(b, a, true, ~0ull, 0xff);
	read_all(b);
	// a reset clears all
	reset(b);
	for (auto &m : b->members)
		m = false;
	read_all(b);
	delete b;
}

static void test_limits(void **)
{
	struct bench *b = start();

	for (unsigned int log = 0; log < 32; log++) {
		for (unsigned int buf = 0; buf < 128; buf++) {
			unsigned int q = rnd(b, QUEUES);

			cycle(b, queue_reg(q, URDMA_ETHQ_SIZE), true,
			      log | log << 8 | log << 16 | (uint64_t)buf << 32, 0xff);
			cycle(b, queue_reg(q, URDMA_ETHQ_SIZE), false, 0, 0);
		}
	}
	delete b;
}

// Accesses in every cycle while sides are enabled, become active, rest.
static void test_random(void **)
{
	struct bench *b = start();

	for (int n = 0; n < 400000; n++) {
		for (unsigned int s = 0; s < SIDES; s++) {
			unsigned int q = rnd(b, QUEUES);
			bool on = b->reg[queue_reg(q, URDMA_ETHQ_CTRL)] >> s & 1;

			// an owner is active while enabled, and some time longer
			if (on && rnd(b, 2))
				b->active[s] |= 1u << q;
			else if (!on && rnd(b, 10) == 0)
				b->active[s] &= ~(1u << q);
			b->ci[0][q] = rnd(b, 65536);
			b->ci[1][q] = rnd(b, 65536);
			b->pi[q] = rnd_next(&b->seed) >> 20;
			b->err[0] = rnd(b, 256);
			b->err[1] = rnd(b, 256);
		}
		unsigned int q = rnd(b, QUEUES), a = b->addr[rnd(b, b->addr.size())];
		unsigned int strb = rnd(b, 2) ? 0xff : rnd(b, 256);
		uint64_t v = rnd_next(&b->seed);

		if (rnd(b, 2))
			a = queue_reg(q, 8 * rnd(b, 7));
		if (rnd(b, 5) == 0) {
			a = queue_reg(q, URDMA_ETHQ_CTRL);
			v = rnd(b, 3) ? rnd(b, 8) : 0;
		}
		if (rnd(b, 1000) == 0)
			a = 0x2000 + 8 * rnd(b, 0x400);
		if (rnd(b, 10) == 0)
			a = 0;
		if (rnd(b, 100) == 0)
			b->dut.mac = rnd_next(&b->seed) >> 16;
		cycle(b, a, rnd(b, 2), v, strb);
	}
	print_message("%lu enables refused, %lu writes to what stands still\n", b->refused,
		      b->locked);
	assert_true(b->refused > 1000 && b->locked > 1000);
	delete b;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strobes),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
