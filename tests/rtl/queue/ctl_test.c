// SPDX-License-Identifier: Apache-2.0
/*
 * urdma_ctl alone: registers, reset, doorbells, commands against a reference model, fences, errors.
 * A failure names the seed; SEED=n sets it.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl_model.h"
#include "rtl/bits.h"
#include "urdma_hw.h"
#include "seed.h"

#define CMD_RING 0x10000u
#define CPL_RING 0x20000u
#define TAGS	 65536

#define FIELD(mask, val) (((uint64_t)(val) << __builtin_ctzll(mask)) & (mask))
#define GET(mask, word)	 (((word) & (mask)) >> __builtin_ctzll(mask))

struct bench {
	struct ctl *c;
	struct world *w;
	uint32_t log_size, pi, ci;
	/* completions seen, by tag */
	bool done[TAGS];
	uint64_t cpl[TAGS][8];
	uint64_t done_at[TAGS];
	uint32_t outstanding;
};

static uint64_t seed = 1;

static void start(struct bench *b, uint32_t log_size)
{
	b->log_size = log_size;
	b->pi = 0;
	b->ci = 0;
	b->outstanding = 0;
	memset(b->done, 0, sizeof(b->done));
	memset(b->w->mem, 0, MEM_SIZE);
	for (int i = 0;
	     i < 40000 && !(ctl_reg_read(b->c, URDMA_REG_STATUS) & URDMA_RF_STATUS_READY); i++)
		;
	assert_true(ctl_reg_read(b->c, URDMA_REG_STATUS) & URDMA_RF_STATUS_READY);
	ctl_reg_write(b->c, URDMA_REG_CMDQ_BASE, CMD_RING);
	ctl_reg_write(b->c, URDMA_REG_CMDQ_CPL_BASE, CPL_RING);
	ctl_reg_write(b->c, URDMA_REG_CMDQ_LOG_SIZE, log_size);
	ctl_reg_write(b->c, URDMA_REG_CTRL, URDMA_RF_CTRL_ENABLE);
}

static struct bench *bench_new(uint32_t log_size)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->c = ctl_new(seed);
	b->w = ctl_world(b->c);
	start(b, log_size);
	return b;
}

static void bench_free(struct bench *b)
{
	/* a DMA write or a fence that broke the port's protocol fails every test */
	assert_int_equal(b->w->protocol_errors, 0);
	ctl_free(b->c);
	free(b);
}

static void reap(struct bench *b)
{
	for (;;) {
		uint32_t slot = b->ci & ((1u << b->log_size) - 1);
		uint64_t cpl[8];
		uint32_t tag;

		memcpy(cpl, b->w->mem + CPL_RING + slot * 64, 64);
		if (cpl[7] >> 63 == (b->ci >> b->log_size & 1))
			return;
		tag = GET(URDMA_CPL0_TAG, cpl[0]);
		assert_false(b->done[tag]);
		b->done[tag] = true;
		b->done_at[tag] = b->w->wr_at[(b->w->n_wr - 1) % LOG_SIZE];
		memcpy(b->cpl[tag], cpl, 64);
		b->ci++;
		assert_true(b->outstanding > 0);
		b->outstanding--;
	}
}

static void tick(struct bench *b, uint32_t n)
{
	while (n--) {
		ctl_tick(b->c);
		reap(b);
	}
}

static void put_cmd(struct bench *b, const uint64_t cmd[8])
{
	memcpy(b->w->mem + CMD_RING + (b->pi & ((1u << b->log_size) - 1)) * 64, cmd, 64);
	b->pi++;
	b->outstanding++;
}

static void ring_bell(struct bench *b)
{
	ctl_reg_write(b->c, URDMA_REG_CMDQ_PI, b->pi & 0xffff);
	reap(b);
}

static void wait_all(struct bench *b)
{
	for (int i = 0; i < 200000 && b->outstanding; i++)
		tick(b, 1);
	assert_int_equal(b->outstanding, 0);
}

static void wait_idle(struct bench *b)
{
	tick(b, 2);
	for (int i = 0; i < 200000 && (ctl_busy(b->c) || ctl_qp_err_waiting(b->c)); i++)
		tick(b, 1);
	assert_false(ctl_busy(b->c));
}

static uint16_t next_tag;

static uint64_t word0(uint32_t op, uint32_t obj, uint16_t tag)
{
	return FIELD(URDMA_CMD0_OPCODE, op) | FIELD(URDMA_CMD0_TAG, tag) |
	       FIELD(URDMA_CMD0_OBJ, obj);
}

static uint16_t issue(struct bench *b, uint64_t cmd[8], uint32_t op, uint32_t obj)
{
	uint16_t tag = next_tag++;

	cmd[0] = word0(op, obj, tag) | (cmd[0] & URDMA_CMD0_EVENT);
	b->done[tag] = false;
	put_cmd(b, cmd);
	ring_bell(b);
	return tag;
}

static uint32_t status_of(struct bench *b, uint16_t tag)
{
	return GET(URDMA_CPL0_STATUS, b->cpl[tag][0]);
}

/* one command, waited for; its status */
static uint32_t run(struct bench *b, uint64_t cmd[8], uint32_t op, uint32_t obj)
{
	uint16_t tag = issue(b, cmd, op, obj);

	wait_all(b);
	assert_true(b->done[tag]);
	assert_int_equal(GET(URDMA_CPL0_OBJ, b->cpl[tag][0]), obj & 0xffffff);
	return status_of(b, tag);
}

static uint32_t run0(struct bench *b, uint32_t op, uint32_t obj)
{
	uint64_t cmd[8] = { 0 };

	return run(b, cmd, op, obj);
}

/* ---- commands that are good -------------------------------------------------------------------
 */

static uint64_t ring_bits(uint32_t entries, uint32_t stride, uint32_t levels, uint32_t shift)
{
	return FIELD(URDMA_RING_LOG_ENTRIES, entries) | FIELD(URDMA_RING_LOG_STRIDE, stride) |
	       FIELD(URDMA_RING_LEVELS, levels) | FIELD(URDMA_RING_PAGE_SHIFT, shift);
}

static void good_eq(uint64_t cmd[8])
{
	memset(cmd, 0, 64);
	cmd[1] = FIELD(URDMA_CMD_EQ1_LOG_ENTRIES, 8) | FIELD(URDMA_CMD_EQ1_VECTOR, 5);
	cmd[2] = 0x123456000;
}

static void good_cq(uint64_t cmd[8], uint32_t eqn)
{
	memset(cmd, 0, 64);
	cmd[1] = FIELD(URDMA_CMD_CQ1_RING, ring_bits(10, 5, 1, 12)) |
		 FIELD(URDMA_CMD_CQ1_EQN, eqn) | FIELD(URDMA_CMD_CQ1_DB_PAGE, 7);
	cmd[2] = 0xabcdef40;
}

static void good_resize(uint64_t cmd[8])
{
	memset(cmd, 0, 64);
	cmd[1] = FIELD(URDMA_CMD_CQ1_RING, ring_bits(12, 5, 2, 13));
	cmd[2] = 0x5a5a5a5a5a40;
	cmd[3] = FIELD(URDMA_CMD_RCQ3_CI, 0x87654321);
}

static void good_qp(uint64_t cmd[8], uint32_t pd, uint32_t scq, uint32_t rcq)
{
	memset(cmd, 0, 64);
	cmd[1] = FIELD(URDMA_CMD_QP1_PD, pd) | FIELD(URDMA_CMD_QP1_DB_PAGE, 9) |
		 FIELD(URDMA_CMD_QP1_TYPE, URDMA_QPT_RC) | FIELD(URDMA_CMD_QP1_SEND_CQ, scq) |
		 URDMA_CMD_QP1_SIG_ALL;
	cmd[2] = FIELD(URDMA_CMD_QP2_RECV_CQ, rcq);
	cmd[3] = ring_bits(15, 9, 2, 21);
	cmd[4] = 0x7000000040;
	cmd[5] = ring_bits(6, 6, 0, 0);
	cmd[6] = 0x8000001000;
}

static void good_mr(uint64_t cmd[8], uint32_t pd)
{
	memset(cmd, 0, 64);
	cmd[1] = FIELD(URDMA_CMD_MR1_PD, pd) | FIELD(URDMA_CMD_MR1_ACCESS, 0x23) |
		 FIELD(URDMA_CMD_MR1_VARIANT, 0xa5) | FIELD(URDMA_CMD_MR1_LEVELS, 1) |
		 FIELD(URDMA_CMD_MR1_PAGE_SHIFT, 12);
	cmd[2] = 0x7fff12345678;
	cmd[3] = 0x123456789;
	cmd[4] = 0x40040;
}

static void good_srq(uint64_t cmd[8], uint32_t pd)
{
	memset(cmd, 0, 64);
	cmd[1] = FIELD(URDMA_CMD_SRQ1_PD, pd) | FIELD(URDMA_CMD_SRQ1_DB_PAGE, 11);
	cmd[2] = FIELD(URDMA_CMD_SRQ2_RING, ring_bits(10, 7, 2, 14));
	cmd[3] = 0x9000000040;
}

/* of a QP whose RQ's ring and address mean nothing */
static void good_qp_srq(uint64_t cmd[8], uint32_t pd, uint32_t scq, uint32_t rcq, uint32_t srqn)
{
	good_qp(cmd, pd, scq, rcq);
	cmd[1] |= URDMA_CMD_QP1_SRQ;
	cmd[5] = URDMA_CMD_QP5_RQ_RING | FIELD(URDMA_CMD_QP5_SRQN, srqn);
	cmd[6] = 0x1234567;
}

static bool is_xrc(uint32_t type)
{
	return type == URDMA_QPT_XRC_INI || type == URDMA_QPT_XRC_TGT;
}

static void good_srq_xrc(uint64_t cmd[8], uint32_t pd, uint32_t xrcd, uint32_t cqn)
{
	good_srq(cmd, pd);
	cmd[1] |= URDMA_CMD_SRQ1_XRC;
	cmd[4] = FIELD(URDMA_CMD_SRQ4_XRCD, xrcd) | FIELD(URDMA_CMD_SRQ4_CQN, cqn);
}

/* of XRC: what the type has not is given as badly as can be */
static void good_qp_xrc(uint64_t cmd[8], uint32_t pd, uint32_t scq, uint32_t type)
{
	good_qp(cmd, pd, scq, 0);
	cmd[1] &= ~URDMA_CMD_QP1_TYPE;
	cmd[1] |= FIELD(URDMA_CMD_QP1_TYPE, type);
	cmd[2] = URDMA_CMD_QP2_RECV_CQ;
	cmd[5] = URDMA_CMD_QP5_RQ_RING | URDMA_CMD_QP5_SRQN;
	cmd[6] = 0x1234567;
	if (type == URDMA_QPT_XRC_TGT) {
		cmd[1] |= URDMA_CMD_QP1_SEND_CQ;
		cmd[3] = URDMA_CMD_QP3_SQ_RING;
		cmd[4] = 0x7654321;
	}
}

#define M_RTR                                                                                     \
	(URDMA_QPM_STATE | URDMA_QPM_AV | URDMA_QPM_MTU | URDMA_QPM_DEST_QPN | URDMA_QPM_RQ_PSN | \
	 URDMA_QPM_MAX_DEST_RD_ATOMIC | URDMA_QPM_MIN_RNR)
#define M_RTS                                                                          \
	(URDMA_QPM_STATE | URDMA_QPM_TIMEOUT | URDMA_QPM_RETRY | URDMA_QPM_RNR_RETRY | \
	 URDMA_QPM_SQ_PSN | URDMA_QPM_MAX_RD_ATOMIC)

/* of the QP that good_modify() is for */
static uint32_t modify_type = URDMA_QPT_RC;

/* SGID entry 3 is used */
static void good_modify(uint64_t cmd[8], uint32_t state)
{
	uint64_t mask = URDMA_QPM_STATE;

	memset(cmd, 0, 64);
	if (state == URDMA_QPS_INIT)
		mask |= URDMA_QPM_PKEY | URDMA_QPM_ACCESS;
	if (state == URDMA_QPS_RTR)
		mask = M_RTR;
	if (state == URDMA_QPS_RTS)
		mask = M_RTS;
	if (modify_type == URDMA_QPT_XRC_INI && state == URDMA_QPS_RTR)
		mask &= ~(URDMA_QPM_MAX_DEST_RD_ATOMIC | URDMA_QPM_MIN_RNR);
	if (modify_type == URDMA_QPT_XRC_TGT && state == URDMA_QPS_RTS)
		mask &= ~(URDMA_QPM_RETRY | URDMA_QPM_RNR_RETRY | URDMA_QPM_MAX_RD_ATOMIC);
	if (modify_type == URDMA_QPT_UC || modify_type == URDMA_QPT_UD)
		mask &= ~(URDMA_QPM_MAX_DEST_RD_ATOMIC | URDMA_QPM_MIN_RNR | URDMA_QPM_TIMEOUT |
			  URDMA_QPM_RETRY | URDMA_QPM_RNR_RETRY | URDMA_QPM_MAX_RD_ATOMIC);
	if (modify_type == URDMA_QPT_UD) {
		mask &= ~(URDMA_QPM_AV | URDMA_QPM_DEST_QPN | URDMA_QPM_RQ_PSN | URDMA_QPM_ACCESS);
		if (state == URDMA_QPS_INIT)
			mask |= URDMA_QPM_QKEY;
	}
	cmd[1] = mask | FIELD(URDMA_CMD_MOD1_STATE, state) | FIELD(URDMA_CMD_MOD1_MTU, 3) |
		 FIELD(URDMA_CMD_MOD1_TIMEOUT, 14) | FIELD(URDMA_CMD_MOD1_RETRY, 7) |
		 FIELD(URDMA_CMD_MOD1_RNR_RETRY, 6) | FIELD(URDMA_CMD_MOD1_MIN_RNR, 12);
	cmd[2] = FIELD(URDMA_CMD_MOD2_DEST_QPN, 0xabcdef) | FIELD(URDMA_CMD_MOD2_RQ_PSN, 0x123456) |
		 FIELD(URDMA_CMD_MOD2_MAX_RD_ATOMIC, 16) |
		 FIELD(URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC, 15);
	cmd[3] = FIELD(URDMA_CMD_MOD3_SQ_PSN, 0x654321) | FIELD(URDMA_CMD_MOD3_SGID_INDEX, 3) |
		 FIELD(URDMA_CMD_MOD3_QKEY, 0x80010000);
	cmd[4] = FIELD(URDMA_CMD_MOD4_DMAC, 0xa1b2c3d4e5f6) | FIELD(URDMA_CMD_MOD4_TCLASS, 0x5a) |
		 FIELD(URDMA_CMD_MOD4_HOP_LIMIT, 64);
	cmd[5] = 0x1122334455667788;
	cmd[6] = 0x99aabbccddeeff00;
	cmd[7] = FIELD(URDMA_CMD_MOD7_FLOW_LABEL, 0xfabcd) |
		 FIELD(URDMA_CMD_MOD7_UDP_SPORT, 0xc123) | FIELD(URDMA_CMD_MOD7_PKEY, 0xffff) |
		 FIELD(URDMA_CMD_MOD7_ACCESS, 5) | FIELD(URDMA_CMD_MOD7_PCP, 5);
}

static void good_gid(uint64_t cmd[8])
{
	memset(cmd, 0, 64);
	cmd[1] = URDMA_CMD_GID1_VALID | URDMA_CMD_GID1_IPV4 | FIELD(URDMA_CMD_GID1_VLAN, 0x123);
	cmd[2] = 0x0a0b0c0d0e0f;
	cmd[3] = 0x0102030405060708;
	cmd[4] = 0x1112131415161718;
}

/* PD 1, EQ 2, CQ 3 and 4, QP 5 in RESET, MR 6, GID 3 */
static void populate(struct bench *b)
{
	uint64_t cmd[8];

	assert_int_equal(run0(b, URDMA_CMD_ALLOC_PD, 1), URDMA_CS_OK);
	good_eq(cmd);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_EQ, 2), URDMA_CS_OK);
	good_cq(cmd, 2);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_CQ, 3), URDMA_CS_OK);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_CQ, 4), URDMA_CS_OK);
	good_qp(cmd, 1, 3, 4);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 5), URDMA_CS_OK);
	good_mr(cmd, 1);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_MR, 6), URDMA_CS_OK);
	good_gid(cmd);
	assert_int_equal(run(b, cmd, URDMA_CMD_SET_GID, 3), URDMA_CS_OK);
}

static uint32_t modify(struct bench *b, uint32_t qpn, uint32_t state)
{
	uint64_t cmd[8];

	good_modify(cmd, state);
	return run(b, cmd, URDMA_CMD_MODIFY_QP, qpn);
}

static void to_rts(struct bench *b, uint32_t qpn)
{
	assert_int_equal(modify(b, qpn, URDMA_QPS_INIT), URDMA_CS_OK);
	assert_int_equal(modify(b, qpn, URDMA_QPS_RTR), URDMA_CS_OK);
	assert_int_equal(modify(b, qpn, URDMA_QPS_RTS), URDMA_CS_OK);
}

static uint32_t qp_state(struct bench *b, uint32_t qpn)
{
	struct seen_qp q;

	ctl_qp_cfg(b->c, 0, qpn, &q);
	return q.valid ? q.state : 99;
}

static uint64_t counter(struct bench *b, uint32_t n)
{
	return ctl_reg_read(b->c, URDMA_REG_COUNTERS + 8 * n);
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void test_registers(void **state)
{
	struct bench *b = bench_new(4);
	uint64_t v, t;

	(void)state;
	v = ctl_reg_read(b->c, URDMA_REG_VERSION);
	assert_int_equal(GET(URDMA_RF_VERSION_MAGIC, v), URDMA_MAGIC);
	assert_int_equal(GET(URDMA_RF_VERSION_MAJOR, v), URDMA_VERSION_MAJOR);
	assert_int_equal(GET(URDMA_RF_VERSION_MINOR, v), URDMA_VERSION_MINOR);
	v = ctl_reg_read(b->c, URDMA_REG_CAP_OBJ);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_QP, v), 12);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_MR, v), 14);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_SRQ, v), 10);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_VECTORS, v), 6);
	v = ctl_reg_read(b->c, URDMA_REG_CAP_QUEUE);
	assert_int_equal(GET(URDMA_RF_CAP_MAX_SQ_SGE, v), 30);
	assert_int_equal(GET(URDMA_RF_CAP_MAX_INLINE, v), 480);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_CQE, v), 20);
	v = ctl_reg_read(b->c, URDMA_REG_CAP_XPORT);
	assert_int_equal(GET(URDMA_RF_CAP_GIDS, v), 32);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_CMDQ, v), 8);
	assert_int_equal(GET(URDMA_RF_CAP_MAX_RD_ATOMIC, v), 16);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_CAP_PAGES), 0xfffff000);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_CAP_FEATURES),
			 URDMA_RF_FEAT_RC_SEND | URDMA_RF_FEAT_RC_WRITE | URDMA_RF_FEAT_RC_READ |
				 URDMA_RF_FEAT_RC_ATOMIC | URDMA_RF_FEAT_RC_RETRY |
				 URDMA_RF_FEAT_MEM_MGT | URDMA_RF_FEAT_MW_2B | URDMA_RF_FEAT_ETH |
				 URDMA_RF_FEAT_UC | URDMA_RF_FEAT_UD | URDMA_RF_FEAT_MCAST |
				 URDMA_RF_FEAT_SRQ | URDMA_RF_FEAT_XRC | URDMA_RF_FEAT_MW_1 |
				 URDMA_RF_FEAT_DM | URDMA_RF_FEAT_FLUSH |
				 URDMA_RF_FEAT_ATOMIC_WRITE | URDMA_RF_FEAT_CQ_MODIFY |
				 URDMA_RF_FEAT_QP_CNT | URDMA_RF_FEAT_ZERO_BASED);
	v = ctl_reg_read(b->c, URDMA_REG_CAP_ETH);
	assert_int_equal(GET(URDMA_RF_CAP_ETH_QUEUES, v), 8);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_ETH_RING, v), 15);
	assert_int_equal(GET(URDMA_RF_CAP_ETH_MAX_FRAME, v), 9216);
	assert_int_equal(GET(URDMA_RF_CAP_ETH_TX_DESCS, v), 32);
	assert_int_equal(GET(URDMA_RF_CAP_ETH_UC, v), 16);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_ETH_CQ, v), 16);
	v = ctl_reg_read(b->c, URDMA_REG_CAP_DM);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_DM, v), 17);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_DM_OFFSET, v), 22);
	v = ctl_reg_read(b->c, URDMA_REG_CAP_CNT);
	assert_int_equal(GET(URDMA_RF_CAP_LOG_CNT_SETS, v), 8);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_CLOCK_HZ), 250000000);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_PORT_SPEED), 100000);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_MAC), 0x665544332202);
	ctl_reg_write(b->c, URDMA_REG_MAC, 0x112233445566);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_MAC), 0x112233445566);
	/* the queue's place and size stand still while it is enabled */
	ctl_reg_write(b->c, URDMA_REG_CMDQ_BASE, 0x5000);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_CMDQ_BASE), CMD_RING);
	v = ctl_reg_read(b->c, URDMA_REG_CMDQ_CPL_BASE);
	ctl_reg_write(b->c, URDMA_REG_CMDQ_CPL_BASE, 0x5000);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_CMDQ_CPL_BASE), v);
	v = ctl_reg_read(b->c, URDMA_REG_CMDQ_LOG_SIZE);
	ctl_reg_write(b->c, URDMA_REG_CMDQ_LOG_SIZE, v ^ 1);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_CMDQ_LOG_SIZE), v);
	/* nothing there */
	assert_int_equal(ctl_reg_read(b->c, 0x800), 0);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_COUNTERS + 8 * URDMA_CNT_N), 0);

	/* skipped time counts besides the cycle of the edge */
	t = ctl_cycles(b->c);
	ctl_skip(b->c, 1000);
	ctl_tick(b->c);
	assert_int_equal(ctl_cycles(b->c), t + 1001);

	ctl_count(b->c, 1ull << URDMA_CNT_TX_FRAMES | 1ull << URDMA_CNT_CQE, 64, 33);
	ctl_tick(b->c);
	ctl_count(b->c, 1ull << URDMA_CNT_TX_FRAMES, 1, 0);
	ctl_tick(b->c);
	assert_int_equal(counter(b, URDMA_CNT_TX_FRAMES), 2);
	assert_int_equal(counter(b, URDMA_CNT_CQE), 1);
	assert_int_equal(counter(b, URDMA_CNT_TX_BYTES), 65);
	assert_int_equal(counter(b, URDMA_CNT_RX_BYTES), 33);
	/* each counter has its own bit and its own register, up to the last */
	for (uint32_t i = 0; i < URDMA_CNT_N; i++) {
		uint64_t was[URDMA_CNT_N];

		if (i == URDMA_CNT_TX_BYTES || i == URDMA_CNT_RX_BYTES)
			continue;
		for (uint32_t k = 0; k < URDMA_CNT_N; k++)
			was[k] = counter(b, k);
		ctl_count(b->c, 1ull << i, 0, 0);
		ctl_tick(b->c);
		for (uint32_t k = 0; k < URDMA_CNT_N; k++)
			assert_int_equal(counter(b, k), was[k] + (k == i));
	}
	/* a reset goes on while DMA comes to its end, also in bursts */
	ctl_reg_write(b->c, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
	for (uint32_t i = 0; i < 400; i++) {
		b->w->hold_dma_busy = i % 11 == 0;
		ctl_tick(b->c);
		assert_true(ctl_core_rst(b->c));
	}
	b->w->hold_dma_busy = false;
	for (uint32_t i = 0; ctl_core_rst(b->c); i++) {
		ctl_tick(b->c);
		assert_true(i < 100);
	}
	/* they count from power-up on, and a reset does not stop them */
	for (unsigned int i = 0; i < 3; i++) {
		uint64_t frames = counter(b, URDMA_CNT_TX_FRAMES), n = 0;
		uint64_t own = counter(b, URDMA_CNT_TX_BYTES);

		ctl_reg_write(b->c, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
		do {
			ctl_count(b->c, 1ull << URDMA_CNT_TX_FRAMES, 60, 0);
			ctl_tick(b->c);
			n++;
		} while (!(ctl_reg_read(b->c, URDMA_REG_STATUS) & URDMA_RF_STATUS_READY));
		assert_true(n > 100);
		assert_int_equal(counter(b, URDMA_CNT_TX_FRAMES), frames + n);
		assert_int_equal(counter(b, URDMA_CNT_TX_BYTES), own + 60 * n);
	}
	bench_free(b);
}

static void check_ring(const struct seen_ring *r, uint64_t bits, uint64_t addr)
{
	assert_int_equal(r->addr, addr);
	assert_int_equal(r->log_entries, GET(URDMA_RING_LOG_ENTRIES, bits));
	assert_int_equal(r->log_stride, GET(URDMA_RING_LOG_STRIDE, bits));
	assert_int_equal(r->levels, GET(URDMA_RING_LEVELS, bits));
	assert_int_equal(r->page_shift, GET(URDMA_RING_PAGE_SHIFT, bits));
}

/* every command, and what the owners got to see of it */
static void test_good(void **state)
{
	struct bench *b = bench_new(3);
	uint64_t cmd[8];
	struct seen_qp q;
	struct seen_gid g;
	uint16_t tag;

	(void)state;
	assert_int_equal(run0(b, URDMA_CMD_NOP, 0x123456), URDMA_CS_OK);
	populate(b);

	good_eq(cmd);
	assert_true(b->w->eq[2].valid);
	assert_int_equal(b->w->eq[2].log_entries, 8);
	assert_int_equal(b->w->eq[2].vec, 5);
	assert_int_equal(b->w->eq[2].addr, cmd[2]);
	good_cq(cmd, 2);
	assert_true(b->w->cq[3].valid);
	check_ring(&b->w->cq[3].ring, cmd[1], cmd[2]);
	assert_int_equal(b->w->cq[3].eqn, 2);
	assert_int_equal(b->w->cq[3].db_page, 7);
	good_mr(cmd, 1);
	assert_true(b->w->mr[6].valid);
	assert_int_equal(b->w->mr[6].variant, 0xa5);
	assert_int_equal(b->w->mr[6].pd, 1);
	assert_int_equal(b->w->mr[6].acc, 0x23);
	assert_int_equal(b->w->mr[6].va, cmd[2]);
	assert_int_equal(b->w->mr[6].len, cmd[3]);
	assert_int_equal(b->w->mr[6].addr, cmd[4]);
	assert_int_equal(b->w->mr[6].levels, 1);
	assert_int_equal(b->w->mr[6].page_shift, 12);
	assert_false(b->w->mr[6].all);
	good_gid(cmd);
	for (int i = 0; i < 3; i++) {
		ctl_gid(b->c, i, 3, &g);
		assert_true(g.valid && g.ipv4 && !g.vlan_valid);
		assert_int_equal(g.vlan, 0x123);
		assert_int_equal(g.smac, cmd[2]);
		assert_int_equal(g.lo, cmd[3]);
		assert_int_equal(g.hi, cmd[4]);
	}

	to_rts(b, 5);
	assert_int_equal(b->w->own[OWN_RX][5].psn, 0x123456);
	assert_int_equal(b->w->own[OWN_TX][5].psn, 0x654321);
	assert_int_equal(b->w->own[OWN_ACK][5].psn, 0x654321);
	for (int i = 0; i < 3; i++) {
		ctl_qp_cfg(b->c, i, 5, &q);
		good_qp(cmd, 1, 3, 4);
		assert_true(q.valid && q.sig_all && !q.priv);
		assert_int_equal(q.type, URDMA_QPT_RC);
		assert_int_equal(q.state, URDMA_QPS_RTS);
		assert_int_equal(q.pd, 1);
		assert_int_equal(q.db_page, 9);
		assert_int_equal(q.send_cq, 3);
		assert_int_equal(q.recv_cq, 4);
		check_ring(&q.sq, cmd[3], cmd[4]);
		check_ring(&q.rq, cmd[5], cmd[6]);
		good_modify(cmd, URDMA_QPS_RTS);
		assert_int_equal(q.mtu, 3);
		assert_int_equal(q.timeout, 14);
		assert_int_equal(q.retry, 7);
		assert_int_equal(q.rnr_retry, 6);
		assert_int_equal(q.min_rnr, 12);
		assert_int_equal(q.dest_qpn, 0xabcdef);
		assert_int_equal(q.max_rd, 16);
		assert_int_equal(q.max_dest_rd, 15);
		assert_int_equal(q.pkey, 0xffff);
		assert_int_equal(q.acc, 5);
		assert_int_equal(q.sgid, 3);
		assert_int_equal(q.dmac, 0xa1b2c3d4e5f6);
		assert_int_equal(q.dgid_lo, cmd[5]);
		assert_int_equal(q.dgid_hi, cmd[6]);
		assert_int_equal(q.tclass, 0x5a);
		assert_int_equal(q.hop_limit, 64);
		assert_int_equal(q.flow_label, 0xfabcd);
		assert_int_equal(q.udp_sport, 0xc123);
		assert_int_equal(q.pcp, 5);
	}

	b->w->own[OWN_TX][5].pi = 0x1111;
	b->w->own[OWN_ACK][5].ci = 0x2222;
	b->w->own[OWN_RX][5].pi = 0x3333;
	b->w->own[OWN_RX][5].ci = 0x4444;
	memset(cmd, 0, sizeof(cmd));
	tag = issue(b, cmd, URDMA_CMD_QUERY_QP, 5);
	wait_all(b);
	assert_int_equal(status_of(b, tag), URDMA_CS_OK);
	/* draining means something in SQD only */
	assert_int_equal(b->cpl[tag][1], URDMA_QPS_RTS);
	assert_int_equal(b->cpl[tag][2], 0x123456ull << 24 | 0x654321);
	assert_int_equal(b->cpl[tag][3], 0x4444333322221111);

	/* RTS to RTS changes what is allowed, and nothing else */
	good_modify(cmd, URDMA_QPS_RTS);
	cmd[1] = URDMA_QPM_MIN_RNR | URDMA_QPM_CUR_STATE |
		 FIELD(URDMA_CMD_MOD1_CUR_STATE, URDMA_QPS_RTS) |
		 FIELD(URDMA_CMD_MOD1_MIN_RNR, 30) | FIELD(URDMA_CMD_MOD1_MTU, 1);
	assert_int_equal(run(b, cmd, URDMA_CMD_MODIFY_QP, 5), URDMA_CS_OK);
	ctl_qp_cfg(b->c, 0, 5, &q);
	assert_int_equal(q.min_rnr, 30);
	assert_int_equal(q.mtu, 3);

	assert_int_equal(modify(b, 5, URDMA_QPS_ERR), URDMA_CS_OK);
	assert_true(b->w->own[OWN_TX][5].err && b->w->own[OWN_RX][5].err &&
		    b->w->own[OWN_ACK][5].err);
	assert_int_equal(modify(b, 5, URDMA_QPS_RESET), URDMA_CS_OK);
	assert_false(b->w->own[OWN_TX][5].err || b->w->own[OWN_RX][5].err ||
		     b->w->own[OWN_ACK][5].err);
	ctl_qp_cfg(b->c, 0, 5, &q);
	assert_int_equal(q.state, URDMA_QPS_RESET);
	assert_int_equal(q.mtu, 0);
	assert_int_equal(q.send_cq, 3);
	to_rts(b, 5);

	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 5), URDMA_CS_OK);
	assert_int_equal(qp_state(b, 5), 99);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 6), URDMA_CS_OK);
	assert_false(b->w->mr[6].valid);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_CQ, 3), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_CQ, 4), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_EQ, 2), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DEALLOC_PD, 1), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_SET_GID, 3), URDMA_CS_OK);
	ctl_gid(b->c, 1, 3, &g);
	assert_false(g.valid);
	/* all is as in the beginning: the same once more */
	populate(b);
	wait_idle(b);
	assert_int_equal(counter(b, URDMA_CNT_CMD_ERR), 0);
	bench_free(b);
}

/* A bad command: its status, no configuration, no message, QP 5 as it was. */
static void refuse(struct bench *b, uint64_t cmd[8], uint32_t op, uint32_t obj, uint32_t status)
{
	uint32_t n_cfg = b->w->n_cfg, n_qpc = b->w->n_qpc, rounds = b->w->n_rounds, got;
	struct seen_qp before, after;

	ctl_qp_cfg(b->c, 1, 5, &before);
	got = run(b, cmd, op, obj);
	if (got != status)
		print_error("opcode 0x%x object 0x%x: status %u, not %u (seed %" PRIu64 ")\n", op,
			    obj, got, status, seed);
	assert_int_equal(got, status);
	wait_idle(b);
	assert_int_equal(b->w->n_cfg, n_cfg);
	assert_int_equal(b->w->n_qpc, n_qpc);
	assert_int_equal(b->w->n_rounds, rounds);
	ctl_qp_cfg(b->c, 1, 5, &after);
	assert_memory_equal(&before, &after, sizeof(before));
}

#define REFUSE(b, prepare, change, op, obj, status)                     \
	do {                                                            \
		prepare;                                                \
		change;                                                 \
		refuse(b, cmd, URDMA_CMD_##op, obj, URDMA_CS_##status); \
	} while (0)

static void set(uint64_t cmd[8], int word, uint64_t mask, uint64_t value)
{
	cmd[word] = (cmd[word] & ~mask) | FIELD(mask, value);
}

static void test_bad(void **state)
{
	struct bench *b = bench_new(5);
	uint64_t cmd[8];
	uint64_t qp_mask;

	(void)state;
	populate(b);
	memset(cmd, 0, 64);
	refuse(b, cmd, 0x7f, 0, URDMA_CS_BAD_OPCODE);
	refuse(b, cmd, 0xff, 5, URDMA_CS_BAD_OPCODE);

	refuse(b, cmd, URDMA_CMD_ALLOC_PD, 4096, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_ALLOC_PD, 1, URDMA_CS_EXISTS);
	refuse(b, cmd, URDMA_CMD_DEALLOC_PD, 0, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_DEALLOC_PD, 4097, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_DEALLOC_PD, 1, URDMA_CS_BUSY);

	REFUSE(b, good_eq(cmd), , CREATE_EQ, 64, BAD_OBJECT);
	REFUSE(b, good_eq(cmd), , CREATE_EQ, 2, EXISTS);
	REFUSE(b, good_eq(cmd), set(cmd, 1, URDMA_CMD_EQ1_LOG_ENTRIES, 17), CREATE_EQ, 1, BAD_SIZE);
	REFUSE(b, good_eq(cmd), cmd[2] |= 0x800, CREATE_EQ, 1, BAD_ALIGN);
	refuse(b, cmd, URDMA_CMD_DESTROY_EQ, 1, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_DESTROY_EQ, 66, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_DESTROY_EQ, 2, URDMA_CS_BUSY);

	REFUSE(b, good_cq(cmd, 2), , CREATE_CQ, 4096, BAD_OBJECT);
	REFUSE(b, good_cq(cmd, 2), , CREATE_CQ, 3, EXISTS);
	REFUSE(b, good_cq(cmd, 1), , CREATE_CQ, 1, BAD_EQ);
	REFUSE(b, good_cq(cmd, 2), set(cmd, 1, URDMA_CMD_CQ1_DB_PAGE, 1024), CREATE_CQ, 1,
	       BAD_DB_PAGE);
	REFUSE(b, good_cq(cmd, 2), set(cmd, 1, URDMA_RING_LOG_ENTRIES, 21), CREATE_CQ, 1, BAD_SIZE);
	REFUSE(b, good_cq(cmd, 2), set(cmd, 1, URDMA_RING_LOG_STRIDE, 4), CREATE_CQ, 1, BAD_SIZE);
	REFUSE(b, good_cq(cmd, 2), set(cmd, 1, URDMA_RING_LOG_STRIDE, 6), CREATE_CQ, 1, BAD_SIZE);
	REFUSE(b, good_cq(cmd, 2), set(cmd, 1, URDMA_RING_LEVELS, 3), CREATE_CQ, 1, BAD_SIZE);
	REFUSE(b, good_cq(cmd, 2), set(cmd, 1, URDMA_RING_PAGE_SHIFT, 11), CREATE_CQ, 1, BAD_SIZE);
	REFUSE(b, good_cq(cmd, 2), set(cmd, 1, URDMA_RING_PAGE_SHIFT, 32), CREATE_CQ, 1, BAD_SIZE);
	REFUSE(b, good_cq(cmd, 2), cmd[2] |= 0x20, CREATE_CQ, 1, BAD_ALIGN);
	REFUSE(b, good_cq(cmd, 2), set(cmd, 1, URDMA_RING_LEVELS, 0), CREATE_CQ, 1, BAD_ALIGN);
	REFUSE(b, good_resize(cmd), , RESIZE_CQ, 4096 + 3, BAD_OBJECT);
	REFUSE(b, good_resize(cmd), , RESIZE_CQ, 1, BAD_OBJECT);
	REFUSE(b, good_resize(cmd), set(cmd, 1, URDMA_RING_LOG_ENTRIES, 21), RESIZE_CQ, 3,
	       BAD_SIZE);
	REFUSE(b, good_resize(cmd), set(cmd, 1, URDMA_RING_LOG_STRIDE, 6), RESIZE_CQ, 3, BAD_SIZE);
	REFUSE(b, good_resize(cmd), set(cmd, 1, URDMA_RING_LEVELS, 3), RESIZE_CQ, 3, BAD_SIZE);
	REFUSE(b, good_resize(cmd), cmd[2] |= 0x20, RESIZE_CQ, 3, BAD_ALIGN);
	refuse(b, cmd, URDMA_CMD_MODIFY_CQ, 4096 + 3, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_MODIFY_CQ, 1, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_DESTROY_CQ, 1, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_DESTROY_CQ, 3, URDMA_CS_BUSY);
	refuse(b, cmd, URDMA_CMD_DESTROY_CQ, 4, URDMA_CS_BUSY);

	REFUSE(b, good_qp(cmd, 1, 3, 4), , CREATE_QP, 4096, BAD_OBJECT);
	REFUSE(b, good_qp(cmd, 1, 3, 4), , CREATE_QP, 5, EXISTS);
	REFUSE(b, good_qp(cmd, 2, 3, 4), , CREATE_QP, 1, BAD_PD);
	REFUSE(b, good_qp(cmd, 4097, 3, 4), , CREATE_QP, 1, BAD_PD);
	REFUSE(b, good_qp(cmd, 1, 2, 4), , CREATE_QP, 1, BAD_CQ);
	REFUSE(b, good_qp(cmd, 1, 3, 5), , CREATE_QP, 1, BAD_CQ);
	REFUSE(b, good_qp(cmd, 1, 4099, 4), , CREATE_QP, 1, BAD_CQ);
	REFUSE(b, good_qp(cmd, 1, 3, 4100), , CREATE_QP, 1, BAD_CQ);
	REFUSE(b, good_qp(cmd, 1, 3, 4), set(cmd, 1, URDMA_CMD_QP1_DB_PAGE, 1024), CREATE_QP, 1,
	       BAD_DB_PAGE);
	for (uint32_t type = 0; type < 16; type++) {
		if ((type < URDMA_QPT_RC || type > URDMA_QPT_UD) && !is_xrc(type))
			REFUSE(b, good_qp(cmd, 1, 3, 4), set(cmd, 1, URDMA_CMD_QP1_TYPE, type),
			       CREATE_QP, 1, BAD_ATTR);
	}
	/* of UD a send WQE has at least 128 bytes, a receive WQE as ever; the type is looked at
	 * before sizes */
	for (uint32_t type = URDMA_QPT_UC; type <= URDMA_QPT_UD; type++) {
		bool ud = type == URDMA_QPT_UD;

		good_qp(cmd, 1, 3, 4);
		set(cmd, 1, URDMA_CMD_QP1_TYPE, type);
		set(cmd, 3, URDMA_RING_LOG_STRIDE, 6);
		set(cmd, 5, URDMA_RING_LOG_STRIDE, 6);
		if (ud)
			refuse(b, cmd, URDMA_CMD_CREATE_QP, 1, URDMA_CS_BAD_SIZE);
		set(cmd, 3, URDMA_RING_LOG_STRIDE, ud ? 7 : 6);
		assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 1), URDMA_CS_OK);
		for (int i = 0; i < 3; i++) {
			struct seen_qp q;

			ctl_qp_cfg(b->c, i, 1, &q);
			assert_int_equal(q.type, type);
		}
		assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 1), URDMA_CS_OK);
	}
	for (int rq = 3; rq <= 5; rq += 2) {
		REFUSE(b, good_qp(cmd, 1, 3, 4), set(cmd, rq, URDMA_RING_LOG_ENTRIES, 16),
		       CREATE_QP, 1, BAD_SIZE);
		REFUSE(b, good_qp(cmd, 1, 3, 4), set(cmd, rq, URDMA_RING_LOG_STRIDE, 5), CREATE_QP,
		       1, BAD_SIZE);
		REFUSE(b, good_qp(cmd, 1, 3, 4), set(cmd, rq, URDMA_RING_LOG_STRIDE, 10), CREATE_QP,
		       1, BAD_SIZE);
		REFUSE(b, good_qp(cmd, 1, 3, 4), set(cmd, rq, URDMA_RING_LEVELS, 3), CREATE_QP, 1,
		       BAD_SIZE);
		REFUSE(b, good_qp(cmd, 1, 3, 4), cmd[rq + 1] |= 8, CREATE_QP, 1, BAD_ALIGN);
	}
	REFUSE(b, good_qp(cmd, 1, 3, 4), cmd[6] |= 0x40, CREATE_QP, 1, BAD_ALIGN);
	refuse(b, cmd, URDMA_CMD_DESTROY_QP, 1, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_QUERY_QP, 1, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_QUERY_QP, 4096 + 5, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_MODIFY_QP, 1, URDMA_CS_BAD_OBJECT);

	REFUSE(b, good_mr(cmd, 1), , CREATE_MR, 16384, BAD_OBJECT);
	REFUSE(b, good_mr(cmd, 1), , CREATE_MR, 6, EXISTS);
	REFUSE(b, good_mr(cmd, 0), , CREATE_MR, 1, BAD_PD);
	REFUSE(b, good_mr(cmd, 1), set(cmd, 1, URDMA_CMD_MR1_ACCESS, 2), CREATE_MR, 1, BAD_ATTR);
	REFUSE(b, good_mr(cmd, 1), set(cmd, 1, URDMA_CMD_MR1_ACCESS, 8), CREATE_MR, 1, BAD_ATTR);
	REFUSE(b, good_mr(cmd, 1), set(cmd, 1, URDMA_CMD_MR1_LEVELS, 3), CREATE_MR, 1, BAD_SIZE);
	REFUSE(b, good_mr(cmd, 1), set(cmd, 1, URDMA_CMD_MR1_PAGE_SHIFT, 11), CREATE_MR, 1,
	       BAD_SIZE);
	REFUSE(b, good_mr(cmd, 1), set(cmd, 1, URDMA_CMD_MR1_PAGE_SHIFT, 32), CREATE_MR, 1,
	       BAD_SIZE);
	REFUSE(b, good_mr(cmd, 1), cmd[3] = 0 - cmd[2] + 1, CREATE_MR, 1, BAD_SIZE);
	REFUSE(b, good_mr(cmd, 1), cmd[4] |= 0x10, CREATE_MR, 1, BAD_ALIGN);
	REFUSE(b, good_mr(cmd, 1), set(cmd, 1, URDMA_CMD_MR1_LEVELS, 0), CREATE_MR, 1, BAD_ALIGN);
	REFUSE(b, good_mr(cmd, 1), cmd[4] = URDMA_ADDR_DM | 0x20, CREATE_MR, 1, BAD_ALIGN);
	for (uint64_t low = 1; low < 8; low++)
		REFUSE(b, good_mr(cmd, 1),
		       (set(cmd, 1, URDMA_CMD_MR1_LEVELS, 0), cmd[4] = URDMA_ADDR_DM | low),
		       CREATE_MR, 1, BAD_ALIGN);
	for (unsigned int bit = 3; bit < 12; bit++)
		REFUSE(b, good_mr(cmd, 1),
		       (set(cmd, 1, URDMA_CMD_MR1_LEVELS, 0), cmd[4] = 0x40000 | 1u << bit),
		       CREATE_MR, 1, BAD_ALIGN);
	refuse(b, cmd, URDMA_CMD_DESTROY_MR, 1, URDMA_CS_BAD_OBJECT);
	for (uint32_t k = URDMA_MRK_FAST; k <= URDMA_MRK_WINDOW_1; k++) {
		REFUSE(b, good_mr(cmd, 0), set(cmd, 1, URDMA_CMD_MR1_KIND, k), CREATE_MR, 1,
		       BAD_PD);
		REFUSE(b, good_mr(cmd, 1), set(cmd, 1, URDMA_CMD_MR1_KIND, k), CREATE_MR, 6,
		       EXISTS);
	}

	REFUSE(b, good_gid(cmd), , SET_GID, 32, BAD_OBJECT);

	/* transitions from RESET */
	for (uint32_t s = URDMA_QPS_RTR; s <= URDMA_QPS_SQE; s++)
		REFUSE(b, good_modify(cmd, s), , MODIFY_QP, 5, BAD_STATE);
	REFUSE(b, good_modify(cmd, 7), , MODIFY_QP, 5, BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_INIT), cmd[1] |= URDMA_QPM_MTU, MODIFY_QP, 5,
	       BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_INIT), cmd[1] |= BIT_ULL(16), MODIFY_QP, 5, BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_INIT), cmd[1] |= BIT_ULL(17), MODIFY_QP, 5, BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_INIT),
	       cmd[1] |= URDMA_QPM_CUR_STATE | FIELD(URDMA_CMD_MOD1_CUR_STATE, URDMA_QPS_INIT),
	       MODIFY_QP, 5, BAD_STATE);
	REFUSE(b, good_modify(cmd, URDMA_QPS_INIT), cmd[1] &= ~URDMA_QPM_STATE, MODIFY_QP, 5,
	       BAD_STATE);
	assert_int_equal(modify(b, 5, URDMA_QPS_INIT), URDMA_CS_OK);
	REFUSE(b, good_modify(cmd, URDMA_QPS_RTS), , MODIFY_QP, 5, BAD_STATE);
	for (qp_mask = 2; qp_mask <= 0x8000; qp_mask <<= 1) {
		if (M_RTR & qp_mask)
			REFUSE(b, good_modify(cmd, URDMA_QPS_RTR), cmd[1] &= ~qp_mask, MODIFY_QP, 5,
			       BAD_ATTR);
		else if (qp_mask & (URDMA_QPM_TIMEOUT | URDMA_QPM_RETRY | URDMA_QPM_RNR_RETRY |
				    URDMA_QPM_SQ_PSN | URDMA_QPM_MAX_RD_ATOMIC))
			REFUSE(b, good_modify(cmd, URDMA_QPS_RTR), cmd[1] |= qp_mask, MODIFY_QP, 5,
			       BAD_ATTR);
	}
	for (uint32_t mtu = 0; mtu < 16; mtu++)
		if (mtu < 1 || mtu > 5)
			REFUSE(b, good_modify(cmd, URDMA_QPS_RTR),
			       set(cmd, 1, URDMA_CMD_MOD1_MTU, mtu), MODIFY_QP, 5, BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_RTR), set(cmd, 3, URDMA_CMD_MOD3_SGID_INDEX, 4),
	       MODIFY_QP, 5, BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_RTR), set(cmd, 3, URDMA_CMD_MOD3_SGID_INDEX, 35),
	       MODIFY_QP, 5, BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_RTR),
	       set(cmd, 2, URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC, 17), MODIFY_QP, 5, BAD_ATTR);
	assert_int_equal(modify(b, 5, URDMA_QPS_RTR), URDMA_CS_OK);
	for (qp_mask = 2; qp_mask <= 0x8000; qp_mask <<= 1)
		if (M_RTS & qp_mask)
			REFUSE(b, good_modify(cmd, URDMA_QPS_RTS), cmd[1] &= ~qp_mask, MODIFY_QP, 5,
			       BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_RTS), set(cmd, 2, URDMA_CMD_MOD2_MAX_RD_ATOMIC, 17),
	       MODIFY_QP, 5, BAD_ATTR);
	REFUSE(b, good_modify(cmd, URDMA_QPS_RTR), , MODIFY_QP, 5, BAD_STATE);
	REFUSE(b, good_modify(cmd, URDMA_QPS_INIT), , MODIFY_QP, 5, BAD_STATE);
	assert_int_equal(modify(b, 5, URDMA_QPS_RTS), URDMA_CS_OK);
	REFUSE(b, good_modify(cmd, URDMA_QPS_SQE), , MODIFY_QP, 5, BAD_STATE);
	REFUSE(b, good_modify(cmd, URDMA_QPS_RTS), , MODIFY_QP, 5, BAD_ATTR);
	assert_int_equal(modify(b, 5, URDMA_QPS_ERR), URDMA_CS_OK);
	REFUSE(b, good_modify(cmd, URDMA_QPS_RTS), , MODIFY_QP, 5, BAD_STATE);
	/* after all that the objects still go away */
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 5), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_CQ, 3), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 6), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DEALLOC_PD, 1), URDMA_CS_OK);
	bench_free(b);
}

/* ---- MODIFY_QP: every transition with every attribute ------------------------------------------
 */

/*
 * InfiniBand Architecture Specification, volume 1, table of QP transitions in 11.2.5.2, for RC, UC
 * and UD, and annex A14 for XRC, without what is no attribute of the NIC (port, alternate path).
 * The NIC has to be told the MTU of a UD QP. Kept apart from the tables above.
 */
#define A(n) URDMA_QPM_##n
static const struct rule {
	uint32_t from, to;
	uint32_t need, may;
} rules_rc[] = {
	{ URDMA_QPS_RESET, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RESET, URDMA_QPS_INIT, A(PKEY) | A(ACCESS), 0 },
	{ URDMA_QPS_RESET, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_INIT, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_INIT, URDMA_QPS_INIT, 0, A(PKEY) | A(ACCESS) },
	{ URDMA_QPS_INIT, URDMA_QPS_RTR,
	  A(AV) | A(MTU) | A(DEST_QPN) | A(RQ_PSN) | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR),
	  A(PKEY) | A(ACCESS) },
	{ URDMA_QPS_INIT, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_RTR, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RTR, URDMA_QPS_RTS,
	  A(TIMEOUT) | A(RETRY) | A(RNR_RETRY) | A(SQ_PSN) | A(MAX_RD_ATOMIC),
	  A(ACCESS) | A(MIN_RNR) },
	{ URDMA_QPS_RTR, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_RTS, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RTS, URDMA_QPS_RTS, 0, A(ACCESS) | A(MIN_RNR) },
	{ URDMA_QPS_RTS, URDMA_QPS_SQD, 0, A(SQD_EVENT) },
	{ URDMA_QPS_RTS, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_SQD, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_SQD, URDMA_QPS_RTS, 0, A(ACCESS) | A(MIN_RNR) },
	{ URDMA_QPS_SQD, URDMA_QPS_SQD, 0,
	  A(AV) | A(TIMEOUT) | A(RETRY) | A(RNR_RETRY) | A(MAX_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) |
		  A(ACCESS) | A(PKEY) | A(MIN_RNR) },
	{ URDMA_QPS_SQD, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_ERR, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_ERR, URDMA_QPS_ERR, 0, 0 },
}, rules_uc[] = {
	{ URDMA_QPS_RESET, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RESET, URDMA_QPS_INIT, A(PKEY) | A(ACCESS), 0 },
	{ URDMA_QPS_RESET, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_INIT, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_INIT, URDMA_QPS_INIT, 0, A(PKEY) | A(ACCESS) },
	{ URDMA_QPS_INIT, URDMA_QPS_RTR, A(AV) | A(MTU) | A(DEST_QPN) | A(RQ_PSN),
	  A(PKEY) | A(ACCESS) },
	{ URDMA_QPS_INIT, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_RTR, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RTR, URDMA_QPS_RTS, A(SQ_PSN), A(ACCESS) },
	{ URDMA_QPS_RTR, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_RTS, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RTS, URDMA_QPS_RTS, 0, A(ACCESS) },
	{ URDMA_QPS_RTS, URDMA_QPS_SQD, 0, A(SQD_EVENT) },
	{ URDMA_QPS_RTS, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_SQD, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_SQD, URDMA_QPS_RTS, 0, A(ACCESS) },
	{ URDMA_QPS_SQD, URDMA_QPS_SQD, 0, A(AV) | A(ACCESS) | A(PKEY) },
	{ URDMA_QPS_SQD, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_ERR, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_ERR, URDMA_QPS_ERR, 0, 0 },
}, rules_ud[] = {
	{ URDMA_QPS_RESET, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RESET, URDMA_QPS_INIT, A(PKEY) | A(QKEY), 0 },
	{ URDMA_QPS_RESET, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_INIT, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_INIT, URDMA_QPS_INIT, 0, A(PKEY) | A(QKEY) },
	{ URDMA_QPS_INIT, URDMA_QPS_RTR, A(MTU), A(PKEY) | A(QKEY) },
	{ URDMA_QPS_INIT, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_RTR, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RTR, URDMA_QPS_RTS, A(SQ_PSN), A(QKEY) },
	{ URDMA_QPS_RTR, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_RTS, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_RTS, URDMA_QPS_RTS, 0, A(QKEY) },
	{ URDMA_QPS_RTS, URDMA_QPS_SQD, 0, A(SQD_EVENT) },
	{ URDMA_QPS_RTS, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_SQD, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_SQD, URDMA_QPS_RTS, 0, A(QKEY) },
	{ URDMA_QPS_SQD, URDMA_QPS_SQD, 0, A(PKEY) | A(QKEY) },
	{ URDMA_QPS_SQD, URDMA_QPS_ERR, 0, 0 },
	{ URDMA_QPS_ERR, URDMA_QPS_RESET, 0, 0 },
	{ URDMA_QPS_ERR, URDMA_QPS_ERR, 0, 0 },
};
#define RULES (sizeof(rules_rc) / sizeof(rules_rc[0]))

/* XRC: where it differs from RC */
static const struct rule rules_ini[] = {
	{ URDMA_QPS_INIT, URDMA_QPS_RTR, A(AV) | A(MTU) | A(DEST_QPN) | A(RQ_PSN),
	  A(PKEY) | A(ACCESS) },
	{ URDMA_QPS_RTR, URDMA_QPS_RTS,
	  A(TIMEOUT) | A(RETRY) | A(RNR_RETRY) | A(SQ_PSN) | A(MAX_RD_ATOMIC), A(ACCESS) },
}, rules_tgt[] = {
	{ URDMA_QPS_RTR, URDMA_QPS_RTS, A(TIMEOUT) | A(SQ_PSN), A(ACCESS) | A(MIN_RNR) },
};

static const struct rule *rule_of(uint32_t from, uint32_t to)
{
	const struct rule *rules = modify_type == URDMA_QPT_UC	 ? rules_uc
				   : modify_type == URDMA_QPT_UD ? rules_ud
								 : rules_rc;

	for (size_t i = 0; modify_type == URDMA_QPT_XRC_INI && i < 2; i++)
		if (rules_ini[i].from == from && rules_ini[i].to == to)
			return &rules_ini[i];
	if (modify_type == URDMA_QPT_XRC_TGT && rules_tgt[0].from == from && rules_tgt[0].to == to)
		return &rules_tgt[0];
	for (size_t i = 0; i < RULES; i++)
		if (rules[i].from == from && rules[i].to == to)
			return &rules[i];
	return NULL;
}

/* QP 5 from wherever it is to a state, by way of RESET */
static void bring(struct bench *b, uint32_t to)
{
	static const uint32_t path[] = { URDMA_QPS_INIT, URDMA_QPS_RTR, URDMA_QPS_RTS,
					 URDMA_QPS_SQD };

	assert_int_equal(modify(b, 5, URDMA_QPS_RESET), URDMA_CS_OK);
	if (to == URDMA_QPS_ERR)
		assert_int_equal(modify(b, 5, URDMA_QPS_ERR), URDMA_CS_OK);
	else
		for (uint32_t i = 0; i < to; i++)
			assert_int_equal(modify(b, 5, path[i]), URDMA_CS_OK);
	assert_int_equal(qp_state(b, 5), to);
}

/* all attributes, with values other than good_modify()'s */
static void other_values(uint64_t cmd[8], uint32_t mask, uint32_t state)
{
	memset(cmd, 0, 64);
	cmd[1] = mask | FIELD(URDMA_CMD_MOD1_STATE, state) | FIELD(URDMA_CMD_MOD1_MTU, 5) |
		 FIELD(URDMA_CMD_MOD1_TIMEOUT, 17) | FIELD(URDMA_CMD_MOD1_RETRY, 2) |
		 FIELD(URDMA_CMD_MOD1_RNR_RETRY, 1) | FIELD(URDMA_CMD_MOD1_MIN_RNR, 29);
	cmd[2] = FIELD(URDMA_CMD_MOD2_DEST_QPN, 0x13579b) | FIELD(URDMA_CMD_MOD2_RQ_PSN, 0x2468ac) |
		 FIELD(URDMA_CMD_MOD2_MAX_RD_ATOMIC, 4) |
		 FIELD(URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC, 6);
	cmd[3] = FIELD(URDMA_CMD_MOD3_SQ_PSN, 0xfedcba) | FIELD(URDMA_CMD_MOD3_SGID_INDEX, 9) |
		 FIELD(URDMA_CMD_MOD3_QKEY, 0x11223344);
	cmd[4] = FIELD(URDMA_CMD_MOD4_DMAC, 0x0a0908070605) | FIELD(URDMA_CMD_MOD4_TCLASS, 0x17) |
		 FIELD(URDMA_CMD_MOD4_HOP_LIMIT, 3);
	cmd[5] = 0xcafecafe11110000;
	cmd[6] = 0x0123012301230123;
	cmd[7] = FIELD(URDMA_CMD_MOD7_FLOW_LABEL, 0x12345) |
		 FIELD(URDMA_CMD_MOD7_UDP_SPORT, 0xd00d) | FIELD(URDMA_CMD_MOD7_PKEY, 0x8001) |
		 FIELD(URDMA_CMD_MOD7_ACCESS, 2) | FIELD(URDMA_CMD_MOD7_PCP, 6) |
		 URDMA_CMD_MOD7_FLUSH_GLOBAL;
}

/* what other_values() makes of a configuration */
static void changed(struct seen_qp *q, uint32_t mask, uint32_t to)
{
	q->state = to;
	if (to == URDMA_QPS_RESET) {
		struct seen_qp was = *q;

		memset(q, 0, sizeof(*q));
		q->valid = true;
		q->sig_all = was.sig_all;
		q->priv = was.priv;
		q->no_loop = was.no_loop;
		q->type = was.type;
		q->pd = was.pd;
		q->db_page = was.db_page;
		q->send_cq = was.send_cq;
		q->recv_cq = was.recv_cq;
		q->sq = was.sq;
		q->rq = was.rq;
		q->srq = was.srq;
		q->srqn = was.srqn;
		return;
	}
	if (mask & A(AV)) {
		q->sgid = 9;
		q->dmac = 0x0a0908070605;
		q->tclass = 0x17;
		q->hop_limit = 3;
		q->dgid_lo = 0xcafecafe11110000;
		q->dgid_hi = 0x0123012301230123;
		q->flow_label = 0x12345;
		q->udp_sport = 0xd00d;
		q->pcp = 6;
	}
	if (mask & A(MTU))
		q->mtu = 5;
	if (mask & A(TIMEOUT))
		q->timeout = 17;
	if (mask & A(RETRY))
		q->retry = 2;
	if (mask & A(RNR_RETRY))
		q->rnr_retry = 1;
	if (mask & A(MIN_RNR))
		q->min_rnr = 29;
	if (mask & A(DEST_QPN))
		q->dest_qpn = 0x13579b;
	if (mask & A(MAX_RD_ATOMIC))
		q->max_rd = 4;
	if (mask & A(MAX_DEST_RD_ATOMIC))
		q->max_dest_rd = 6;
	if (mask & A(PKEY))
		q->pkey = 0x8001;
	if (mask & A(QKEY))
		q->qkey = 0x11223344;
	if (mask & A(ACCESS))
		q->acc = 8 | 2;
}

/* messages that a transition sends, as owner * QPC_OPS + operation, in a mask */
static uint32_t messages(uint32_t from, uint32_t to)
{
	uint32_t all =
		1u << (OWN_TX * QPC_OPS) | 1u << (OWN_RX * QPC_OPS) | 1u << (OWN_ACK * QPC_OPS);

	if (to == URDMA_QPS_RESET)
		return all << QPC_RESET;
	if (to == URDMA_QPS_ERR)
		return from == URDMA_QPS_ERR ? 0 : all << QPC_ERR;
	if (to == URDMA_QPS_RTR)
		return 1u << (OWN_RX * QPC_OPS + QPC_RQ_PSN);
	if (from == URDMA_QPS_RTR)
		return 1u << (OWN_TX * QPC_OPS + QPC_SQ_PSN) |
		       1u << (OWN_ACK * QPC_OPS + QPC_SQ_PSN);
	if (from == URDMA_QPS_RTS && to == URDMA_QPS_SQD)
		return 1u << (OWN_TX * QPC_OPS + QPC_SQD);
	if (from == URDMA_QPS_SQD && to == URDMA_QPS_RTS)
		return 1u << (OWN_TX * QPC_OPS + QPC_SQ_RUN);
	return 0;
}

/* The QP is in state from: a change that has to succeed. */
static void accept(struct bench *b, uint32_t from, uint32_t to, uint32_t mask)
{
	struct owner before[OWN_N];
	struct seen_qp want, got;
	uint64_t cmd[8];
	uint32_t status, seen = 0;

	ctl_qp_cfg(b->c, 0, 5, &want);
	for (int i = 0; i < OWN_N; i++)
		before[i] = b->w->own[i][5];
	other_values(cmd, mask, mask & A(STATE) ? to : 7);
	status = run(b, cmd, URDMA_CMD_MODIFY_QP, 5);
	if (status != URDMA_CS_OK)
		print_error("from %u to %u mask 0x%x: status %u (seed %" PRIu64 ")\n", from, to,
			    mask, status, seed);
	assert_int_equal(status, URDMA_CS_OK);
	changed(&want, mask, to);
	ctl_qp_cfg(b->c, 2, 5, &got);
	/* only what the mask names has changed */
	assert_memory_equal(&want, &got, sizeof(want));
	for (int i = 0; i < OWN_N; i++)
		for (int op = 0; op < QPC_OPS; op++) {
			uint32_t n = b->w->own[i][5].count[op] - before[i].count[op];

			assert_true(n <= 1);
			seen |= n << (i * QPC_OPS + op);
		}
	if (seen != messages(from, to))
		print_error("from %u to %u: messages 0x%x, not 0x%x\n", from, to, seen,
			    messages(from, to));
	assert_int_equal(seen, messages(from, to));
	if (to == URDMA_QPS_RTR)
		assert_int_equal(b->w->own[OWN_RX][5].psn, 0x2468ac);
	if (from == URDMA_QPS_RTR && to == URDMA_QPS_RTS) {
		assert_int_equal(b->w->own[OWN_TX][5].psn, 0xfedcba);
		assert_int_equal(b->w->own[OWN_ACK][5].psn, 0xfedcba);
	}
	if (from == URDMA_QPS_RTS && to == URDMA_QPS_SQD)
		assert_int_equal(b->w->own[OWN_TX][5].sqd_psn, !!(mask & A(SQD_EVENT)));
}

static void decline(struct bench *b, uint32_t to, uint32_t mask, uint32_t status)
{
	uint64_t cmd[8];

	other_values(cmd, mask, to);
	refuse(b, cmd, URDMA_CMD_MODIFY_QP, 5, status);
}

static void modify_all(uint32_t type)
{
	static const uint32_t from_states[] = { URDMA_QPS_RESET, URDMA_QPS_INIT, URDMA_QPS_RTR,
						URDMA_QPS_RTS,	 URDMA_QPS_SQD,	 URDMA_QPS_ERR };
	struct bench *b = bench_new(4);
	uint64_t cmd[8];

	modify_type = type;
	b->w->rd_latency_min = 2;
	b->w->rd_latency_max = 6;
	b->w->fence_delay_max = 4;
	b->w->stall_percent = 5;
	populate(b);
	good_gid(cmd);
	assert_int_equal(run(b, cmd, URDMA_CMD_SET_GID, 9), URDMA_CS_OK);
	/* what CREATE_QP gave stays over RESET, PRIV with it */
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 5), URDMA_CS_OK);
	good_qp(cmd, 1, 3, 4);
	if (is_xrc(type))
		good_qp_xrc(cmd, 1, 3, type);
	cmd[1] |= URDMA_CMD_QP1_PRIV;
	set(cmd, 1, URDMA_CMD_QP1_TYPE, type);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 5), URDMA_CS_OK);

	for (size_t f = 0; f < sizeof(from_states) / sizeof(from_states[0]); f++) {
		uint32_t from = from_states[f];

		for (uint32_t to = 0; to < 16; to++) {
			const struct rule *r = rule_of(from, to);

			bring(b, from);
			if (!r) {
				/* whatever attributes come with it */
				uint32_t why =
					to > URDMA_QPS_ERR ? URDMA_CS_BAD_ATTR : URDMA_CS_BAD_STATE;

				decline(b, to, A(STATE), why);
				decline(b, to, 0x1ffff & ~A(CUR_STATE), why);
				continue;
			}
			/* a required one is missing; one that has no place here */
			for (uint32_t bit = A(AV); bit; bit <<= 1) {
				if (r->need & bit)
					decline(b, to, A(STATE) | (r->need & ~bit),
						URDMA_CS_BAD_ATTR);
				else if (!(r->may & bit))
					decline(b, to, A(STATE) | r->need | bit, URDMA_CS_BAD_ATTR);
			}
			if (r->need)
				decline(b, to, A(STATE), URDMA_CS_BAD_ATTR);
			/* another current state */
			other_values(cmd, A(STATE) | A(CUR_STATE) | r->need, to);
			set(cmd, 1, URDMA_CMD_MOD1_CUR_STATE, (from + 1) % 7);
			refuse(b, cmd, URDMA_CMD_MODIFY_QP, 5, URDMA_CS_BAD_STATE);

			accept(b, from, to, A(STATE) | r->need);
			bring(b, from);
			accept(b, from, to, A(STATE) | r->need | r->may);
			for (uint32_t bit = A(AV); bit <= A(SQD_EVENT); bit <<= 1) {
				if (!(r->may & bit))
					continue;
				bring(b, from);
				accept(b, from, to, A(STATE) | r->need | bit);
			}
		}
		/* attributes alone: from a state to itself, where that changes something */
		bring(b, from);
		for (uint32_t bit = A(AV); bit <= A(SQD_EVENT); bit <<= 1) {
			const struct rule *r = rule_of(from, from);

			if (r && r->may & bit)
				accept(b, from, from, bit);
			else
				decline(b, 0, bit,
					r && r->may ? URDMA_CS_BAD_ATTR : URDMA_CS_BAD_STATE);
		}
	}

	/* the SQ's state is asked of its owner */
	bring(b, URDMA_QPS_SQD);
	for (int i = 0; i < 2; i++) {
		uint16_t tag;

		b->w->own[OWN_TX][5].draining = !i;
		memset(cmd, 0, sizeof(cmd));
		tag = issue(b, cmd, URDMA_CMD_QUERY_QP, 5);
		wait_all(b);
		assert_int_equal(b->cpl[tag][1],
				 URDMA_QPS_SQD | (i ? 0 : URDMA_CPL_QP1_SQ_DRAINING));
	}
	b->w->own[OWN_TX][5].draining = true;
	assert_int_equal(modify(b, 5, URDMA_QPS_ERR), URDMA_CS_OK);
	{
		uint16_t tag;

		memset(cmd, 0, sizeof(cmd));
		tag = issue(b, cmd, URDMA_CMD_QUERY_QP, 5);
		wait_all(b);
		assert_int_equal(b->cpl[tag][1], URDMA_QPS_ERR);
	}
	bench_free(b);
	modify_type = URDMA_QPT_RC;
}

static void test_modify(void **state)
{
	(void)state;
	modify_all(URDMA_QPT_RC);
	modify_all(URDMA_QPT_UC);
	modify_all(URDMA_QPT_UD);
	modify_all(URDMA_QPT_XRC_INI);
	modify_all(URDMA_QPT_XRC_TGT);
}
#undef A

/* Regions, regions for fast registration, windows; a region that windows hang on. */
static void test_regions(void **state)
{
	struct bench *b = bench_new(5);
	struct world *w = b->w;
	uint64_t cmd[8], zero[8] = { 0 };
	struct seen_mr before;
	uint16_t busy, after;
	uint32_t n_mro, rounds;

	(void)state;
	populate(b);
	assert_int_equal(w->mr[6].kind, URDMA_MRK_REGION);
	assert_false(w->mr[6].zero_based);
	good_mr(cmd, 1);
	cmd[1] |= URDMA_CMD_MR1_ZERO_BASED;
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_MR, 30), URDMA_CS_OK);
	assert_true(w->mr[30].zero_based);
	assert_int_equal(w->mr[30].va, cmd[2]);
	/* what would wrap around does so, wherever the addresses begin */
	cmd[2] = -cmd[3] + 1;
	refuse(b, cmd, URDMA_CMD_CREATE_MR, 31, URDMA_CS_BAD_SIZE);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 30), URDMA_CS_OK);
	for (uint32_t k = URDMA_MRK_FAST; k <= URDMA_MRK_WINDOW_1; k++) {
		/* what would be wrong in a region does not count */
		good_mr(cmd, 1);
		set(cmd, 1, URDMA_CMD_MR1_KIND, k);
		set(cmd, 1, URDMA_CMD_MR1_LEVELS, 3);
		set(cmd, 1, URDMA_CMD_MR1_ACCESS, 0xa);
		cmd[1] |= URDMA_CMD_MR1_ALL | URDMA_CMD_MR1_ZERO_BASED;
		cmd[2] = cmd[3] = cmd[4] = ~0ull;
		assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_MR, 20 + k), URDMA_CS_OK);
		memset(&before, 0, sizeof(before));
		before.valid = true;
		before.kind = k;
		before.variant = 0xa5;
		before.pd = 1;
		assert_memory_equal(&w->mr[20 + k], &before, sizeof(before));
	}

	/* BUSY changes nothing: not the region, not the directory, no fence */
	w->mr[6].bound = true;
	before = w->mr[6];
	n_mro = w->n_mro;
	refuse(b, zero, URDMA_CMD_DESTROY_MR, 6, URDMA_CS_BUSY);
	assert_int_equal(w->n_mro, n_mro + 1);
	assert_memory_equal(&w->mr[6], &before, sizeof(before));
	good_mr(cmd, 1);
	refuse(b, cmd, URDMA_CMD_CREATE_MR, 6, URDMA_CS_EXISTS);
	/* a refusal by the directory does not get to the owner */
	n_mro = w->n_mro;
	refuse(b, zero, URDMA_CMD_DESTROY_MR, 7, URDMA_CS_BAD_OBJECT);
	assert_int_equal(w->n_mro, n_mro);
	/* still refers to its PD: only it does */
	w->windows[5] = 3;
	w->windows[4] = 1;
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 5), URDMA_CS_OK);
	/* the windows bound to the QP were unbound, and no other QP's */
	assert_int_equal(w->windows[5], 0);
	assert_int_equal(w->windows[4], 1);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 21), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 22), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 23), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DEALLOC_PD, 1), URDMA_CS_BUSY);
	/* BUSY behind a destruction that waits for its fence */
	good_mr(cmd, 1);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_MR, 21), URDMA_CS_OK);
	w->hold_fence = true;
	after = issue(b, zero, URDMA_CMD_DESTROY_MR, 21);
	busy = issue(b, zero, URDMA_CMD_DESTROY_MR, 6);
	tick(b, 2000);
	assert_true(b->done[busy] && !b->done[after]);
	assert_int_equal(status_of(b, busy), URDMA_CS_BUSY);
	w->hold_fence = false;
	wait_all(b);
	assert_int_equal(status_of(b, after), URDMA_CS_OK);

	w->mr[6].bound = false;
	rounds = w->n_rounds;
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 6), URDMA_CS_OK);
	assert_int_equal(w->n_rounds, rounds + 1);
	assert_true(w->mr_at[6] < w->round_start);
	assert_false(w->mr[6].valid);
	assert_int_equal(run0(b, URDMA_CMD_DEALLOC_PD, 1), URDMA_CS_OK);
	bench_free(b);
}

/* MODIFY_CQ, RESIZE_CQ: what the CQ is told, its answer, and the round before the old ring is free.
 */
static void test_cq(void **state)
{
	struct bench *b = bench_new(7);
	struct world *w = b->w;
	uint64_t cmd[8], zero[8] = { 0 };
	uint16_t tag, dc;
	uint32_t rounds;

	(void)state;
	populate(b);
	assert_false(w->cq[3].overrun || w->cq[3].count || w->cq[3].period);
	good_cq(cmd, 2);
	/* moderation does not come with the creation: these bits are of the ring */
	cmd[1] |= URDMA_CMD_CQ1_OVERRUN;
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_CQ, 9), URDMA_CS_OK);
	assert_true(w->cq[9].overrun && !w->cq[9].count && !w->cq[9].period);

	rounds = w->n_rounds;
	memset(cmd, 0, 64);
	cmd[1] = FIELD(URDMA_CMD_MCQ1_COUNT, 0x1234) | FIELD(URDMA_CMD_MCQ1_PERIOD, 0x8765);
	assert_int_equal(run(b, cmd, URDMA_CMD_MODIFY_CQ, 3), URDMA_CS_OK);
	assert_int_equal(w->cq[3].count, 0x1234);
	assert_int_equal(w->cq[3].period, 0x8765);
	assert_int_equal(w->n_rounds, rounds);

	/* the answer of the CQ comes through the fence */
	w->cq[3].pi = 0xfedcba98;
	w->hold_fence = true;
	good_resize(cmd);
	tag = issue(b, cmd, URDMA_CMD_RESIZE_CQ, 3);
	tick(b, 3000);
	check_ring(&w->cq[3].ring, cmd[1], cmd[2]);
	assert_int_equal(w->cq[3].ci, 0x87654321);
	assert_false(b->done[tag]);
	/* others go on, and it may be named */
	good_qp(cmd, 1, 3, 3);
	dc = issue(b, cmd, URDMA_CMD_CREATE_QP, 6);
	tick(b, 1000);
	assert_true(b->done[dc]);
	assert_int_equal(status_of(b, dc), URDMA_CS_OK);
	w->cq[4].pi = 77;
	good_resize(cmd);
	dc = issue(b, cmd, URDMA_CMD_RESIZE_CQ, 4);
	tick(b, 1000);
	w->hold_fence = false;
	wait_all(b);
	assert_int_equal(status_of(b, tag), URDMA_CS_OK);
	assert_int_equal(b->cpl[tag][1], 0xfedcba98);
	assert_int_equal(b->cpl[dc][1], 77);
	assert_int_equal(w->n_rounds, rounds + 2);
	assert_true(w->fence_done[FENCE_MR] < b->done_at[dc]);
	/* what else a completion says is not of it */
	tag = issue(b, zero, URDMA_CMD_NOP, 0);
	wait_all(b);
	assert_int_equal(b->cpl[tag][1], 0);

	/* the CQ refuses: no round, the ring stays */
	w->cq[3].room = 13;
	good_resize(cmd);
	cmd[2] += 64;
	tag = issue(b, cmd, URDMA_CMD_RESIZE_CQ, 3);
	wait_all(b);
	assert_int_equal(status_of(b, tag), URDMA_CS_BUSY);
	assert_int_equal(b->cpl[tag][1], 0);
	assert_int_equal(w->cq[3].ring.addr, cmd[2] - 64);
	assert_int_equal(w->n_rounds, rounds + 2);

	/* resized and destroyed in one go; then it is there no more */
	good_resize(cmd);
	tag = issue(b, cmd, URDMA_CMD_RESIZE_CQ, 9);
	dc = issue(b, zero, URDMA_CMD_DESTROY_CQ, 9);
	wait_all(b);
	assert_int_equal(status_of(b, tag), URDMA_CS_OK);
	assert_int_equal(status_of(b, dc), URDMA_CS_OK);
	assert_false(w->cq[9].valid);
	refuse(b, cmd, URDMA_CMD_RESIZE_CQ, 9, URDMA_CS_BAD_OBJECT);
	/* one that was resized has kept its references */
	refuse(b, zero, URDMA_CMD_DESTROY_CQ, 3, URDMA_CS_BUSY);
	assert_int_equal(w->protocol_errors, 0);
	bench_free(b);
}

static uint32_t set_counters(struct bench *b, uint32_t qpn, uint32_t set)
{
	uint64_t cmd[8] = { 0, FIELD(URDMA_CMD_QPC1_SET, set) };

	return run(b, cmd, URDMA_CMD_SET_QP_CNT, qpn);
}

/* A query: its words are the counters of the group. */
static void query_counters(struct bench *b, uint32_t set, uint32_t group)
{
	uint64_t cmd[8] = { 0, FIELD(URDMA_CMD_QCNT1_GROUP, group) };
	uint16_t tag = issue(b, cmd, URDMA_CMD_QUERY_CNT, set);

	wait_all(b);
	assert_int_equal(status_of(b, tag), URDMA_CS_OK);
	for (uint32_t i = 0; i < URDMA_QCNT_GROUP; i++)
		assert_int_equal(GET(URDMA_CPL_QCNT1_VALUE, b->cpl[tag][1 + i]),
				 seen_count(set, group, i));
}

/* Commands of counters: what urdma_qp_cnt is told, its answer, each refusal, and the end of a QP.
 */
static void test_counters(void **state)
{
	struct bench *b = bench_new(5);
	struct world *w = b->w;
	uint64_t cmd[8] = { 0 }, zero[8] = { 0 };
	uint32_t rounds, n;
	uint16_t tag, late;
	uint32_t ends;

	(void)state;
	populate(b);
	/* populate() makes QP 5, and none with number 6 */
	cmd[1] = 1;
	refuse(b, cmd, URDMA_CMD_SET_QP_CNT, 6, URDMA_CS_BAD_OBJECT);
	refuse(b, cmd, URDMA_CMD_SET_QP_CNT, 4096 + 5, URDMA_CS_BAD_OBJECT);
	cmd[1] = 256;
	refuse(b, cmd, URDMA_CMD_SET_QP_CNT, 5, URDMA_CS_BAD_ATTR);
	cmd[1] = 0x8001;
	refuse(b, cmd, URDMA_CMD_SET_QP_CNT, 5, URDMA_CS_BAD_ATTR);
	for (uint32_t i = 0; i < 3; i++) {
		static const uint32_t sets[] = { 256, 512, 0x800001 };

		refuse(b, zero, URDMA_CMD_QUERY_CNT, sets[i], URDMA_CS_BAD_OBJECT);
		refuse(b, zero, URDMA_CMD_CLEAR_CNT, sets[i], URDMA_CS_BAD_OBJECT);
	}
	for (uint32_t i = 3; i < 256; i += 84) {
		cmd[1] = i;
		refuse(b, cmd, URDMA_CMD_QUERY_CNT, 1, URDMA_CS_BAD_ATTR);
	}
	assert_int_equal(w->n_qco[QCO_BIND] + w->n_qco[QCO_QUERY] + w->n_qco[QCO_CLEAR], 0);

	/* in any state of the QP, of which nobody else is told */
	n = w->n_qpc;
	rounds = w->n_rounds;
	for (uint32_t i = 0; i < 4; i++) {
		static const uint32_t sets[] = { 255, 1, 128, 0 };

		assert_int_equal(set_counters(b, 5, sets[i]), URDMA_CS_OK);
		assert_int_equal(w->qp_set[5], sets[i]);
	}
	assert_int_equal(w->n_qpc, n);
	assert_int_equal(w->n_rounds, rounds);
	for (uint32_t to = URDMA_QPS_RESET; to <= URDMA_QPS_ERR; to++) {
		if (to == URDMA_QPS_SQE)
			continue;
		bring(b, to);
		assert_int_equal(set_counters(b, 5, 10 + to), URDMA_CS_OK);
		assert_int_equal(w->qp_set[5], 10 + to);
	}

	for (uint32_t i = 0; i < 3; i++) {
		query_counters(b, 0, i);
		query_counters(b, 1, i);
		query_counters(b, 255, i);
	}
	/* what else a completion says is not of it */
	tag = issue(b, zero, URDMA_CMD_NOP, 0);
	wait_all(b);
	for (uint32_t i = 1; i < 7; i++)
		assert_int_equal(b->cpl[tag][i], 0);
	cmd[1] = 3;
	tag = issue(b, cmd, URDMA_CMD_QUERY_CNT, 1);
	wait_all(b);
	for (uint32_t i = 1; i < 7; i++)
		assert_int_equal(b->cpl[tag][i], 0);
	assert_int_equal(run(b, zero, URDMA_CMD_CLEAR_CNT, 77), URDMA_CS_OK);
	assert_int_equal(w->cleared, 77);
	assert_int_equal(run(b, zero, URDMA_CMD_CLEAR_CNT, 0), URDMA_CS_OK);
	assert_int_equal(w->cleared, 0);

	/* RESET keeps the set, DESTROY_QP ends it: behind the round, and before the completion */
	assert_int_equal(set_counters(b, 5, 9), URDMA_CS_OK);
	ends = w->n_qp_end[5];
	assert_int_equal(modify(b, 5, URDMA_QPS_RESET), URDMA_CS_OK);
	assert_int_equal(w->qp_set[5], 9);
	assert_int_equal(w->n_qp_end[5], ends + 1);
	assert_true(w->qp_end_reset[5]);
	w->hold_fence = true;
	tag = issue(b, zero, URDMA_CMD_DESTROY_QP, 5);
	tick(b, 2000);
	assert_int_equal(w->qp_set[5], 9);
	cmd[1] = 8;
	late = issue(b, cmd, URDMA_CMD_SET_QP_CNT, 5);
	tick(b, 1000);
	assert_true(b->done[late]);
	assert_int_equal(status_of(b, late), URDMA_CS_BAD_OBJECT);
	w->hold_fence = false;
	wait_all(b);
	assert_int_equal(status_of(b, tag), URDMA_CS_OK);
	assert_int_equal(w->qp_set[5], 0);
	assert_in_range(w->qp_set_at[5], w->fence_done[FENCE_CQ], b->done_at[tag]);
	assert_int_equal(w->n_qp_end[5], ends + 2);
	assert_false(w->qp_end_reset[5]);
	assert_in_range(w->qp_end_at[5], w->fence_done[FENCE_CQ], b->done_at[tag]);
	good_qp(cmd, 1, 3, 4);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 5), URDMA_CS_OK);
	assert_int_equal(w->qp_set[5], 0);
	assert_int_equal(w->protocol_errors, 0);
	bench_free(b);
}

/* Destroys: order of unlink, round, QPC_RESET, completion; shared rounds; others go on. */
static void test_fence(void **state)
{
	struct bench *b = bench_new(7);
	struct world *w = b->w;
	uint64_t cmd[8], zero[8] = { 0 };
	uint16_t dq, dm, n, c2;
	uint32_t rounds;

	(void)state;
	populate(b);
	to_rts(b, 5);
	dm = issue(b, zero, URDMA_CMD_DESTROY_MR, 6);
	wait_all(b);
	assert_int_equal(status_of(b, dm), URDMA_CS_OK);
	assert_true(w->mr_at[6] < w->round_start);
	assert_true(w->round_start < w->fence_rise[FENCE_RX]);
	assert_true(w->fence_rise[FENCE_RX] < w->fence_done[FENCE_RX]);
	assert_true(w->fence_done[FENCE_RX] < w->fence_rise[FENCE_CQ]);
	assert_true(w->fence_done[FENCE_CQ] < w->fence_rise[FENCE_MR]);
	assert_true(w->fence_done[FENCE_MR] < b->done_at[dm]);

	/* While the fence is held: the number is taken, the object is gone, others go on. */
	good_mr(cmd, 1);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_MR, 6), URDMA_CS_OK);
	w->hold_fence = true;
	rounds = w->n_rounds;
	dq = issue(b, zero, URDMA_CMD_DESTROY_QP, 5);
	for (n = 0; n < 10; n++) {
		good_mr(cmd, 1);
		issue(b, cmd, URDMA_CMD_CREATE_MR, 100 + n);
	}
	good_qp(cmd, 1, 3, 4);
	c2 = issue(b, cmd, URDMA_CMD_CREATE_QP, 5);
	n = issue(b, zero, URDMA_CMD_QUERY_QP, 5);
	tick(b, 3000);
	assert_int_equal(b->outstanding, 1);
	assert_false(b->done[dq]);
	assert_int_equal(status_of(b, c2), URDMA_CS_EXISTS);
	assert_int_equal(status_of(b, n), URDMA_CS_BAD_OBJECT);
	assert_int_equal(qp_state(b, 5), 99);
	assert_true(ctl_busy(b->c));
	/* these come too late for the round and share the next one */
	for (n = 0; n < 10; n++)
		issue(b, zero, URDMA_CMD_DESTROY_MR, 100 + n);
	issue(b, zero, URDMA_CMD_DESTROY_CQ, 3);
	issue(b, zero, URDMA_CMD_DESTROY_CQ, 4);
	issue(b, zero, URDMA_CMD_DESTROY_EQ, 2);
	tick(b, 1000);
	w->hold_fence = false;
	wait_all(b);
	assert_int_equal(w->n_rounds, rounds + 2);
	assert_int_equal(status_of(b, dq), URDMA_CS_OK);
	for (int i = 0; i < OWN_N; i++)
		assert_true(w->own[i][5].at[QPC_RESET] < b->done_at[dq]);
	assert_false(w->cq[3].valid || w->cq[4].valid || w->eq[2].valid);

	/* and the same for a reset */
	good_eq(cmd);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_EQ, 2), URDMA_CS_OK);
	good_cq(cmd, 2);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_CQ, 3), URDMA_CS_OK);
	good_qp(cmd, 1, 3, 3);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 5), URDMA_CS_OK);
	to_rts(b, 5);
	w->hold_fence = true;
	good_modify(cmd, URDMA_QPS_RESET);
	dq = issue(b, cmd, URDMA_CMD_MODIFY_QP, 5);
	good_modify(cmd, URDMA_QPS_INIT);
	n = issue(b, cmd, URDMA_CMD_MODIFY_QP, 5);
	tick(b, 1000);
	assert_false(b->done[dq]);
	assert_int_equal(status_of(b, n), URDMA_CS_BAD_STATE);
	w->hold_fence = false;
	wait_all(b);
	assert_int_equal(status_of(b, dq), URDMA_CS_OK);
	assert_true(w->own[OWN_ACK][5].at[QPC_RESET] > w->fence_done[FENCE_CQ]);
	assert_int_equal(modify(b, 5, URDMA_QPS_INIT), URDMA_CS_OK);
	bench_free(b);
}

/*
 * A round of EQs needs no flush of page tables, a round with a QP does. A QP that comes in the very
 * cycle in which a round of an EQ begins belongs to the next round, and that has a flush. Without
 * stalls the command for the QP takes the same time on each pass, so one pass of the sweep meets
 * that cycle.
 */
static void test_fence_flush(void **state)
{
	struct bench *b = bench_new(7);
	struct world *w = b->w;
	uint64_t cmd[8], zero[8] = { 0 };

	(void)state;
	w->rd_latency_min = w->rd_latency_max = 4;
	w->fence_delay_max = w->qpc_delay_max = w->mro_delay_max = w->qco_delay_max = 0;
	w->stall_percent = 0;
	populate(b);
	for (uint32_t at = 0; at < 250; at++) {
		uint32_t rounds;
		uint16_t dq;

		for (uint32_t eqn = 10; eqn < 12; eqn++) {
			good_eq(cmd);
			assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_EQ, eqn), URDMA_CS_OK);
		}
		/* a round of EQ 10, held until "at" cycles after the QP's command; EQ 11 waits */
		rounds = w->n_rounds;
		w->hold_fence = true;
		issue(b, zero, URDMA_CMD_DESTROY_EQ, 10);
		tick(b, 200);
		issue(b, zero, URDMA_CMD_DESTROY_EQ, 11);
		tick(b, 200);
		dq = issue(b, zero, URDMA_CMD_DESTROY_QP, 5);
		tick(b, at);
		w->hold_fence = false;
		wait_all(b);
		assert_int_equal(status_of(b, dq), URDMA_CS_OK);
		assert_in_range(w->n_rounds, rounds + 2, rounds + 3);
		/* the last round is that of the QP */
		assert_true(w->fence_rise[FENCE_MR] > w->round_start);
		assert_true(w->fence_done[FENCE_MR] < b->done_at[dq]);
		good_qp(cmd, 1, 3, 4);
		assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 5), URDMA_CS_OK);
	}
	bench_free(b);
}

static uint64_t dbw(uint32_t obj, uint32_t arm, uint32_t index)
{
	return FIELD(URDMA_DBW_OBJ, obj) | FIELD(URDMA_DBW_ARM, arm) |
	       FIELD(URDMA_DBW_INDEX, index);
}

static void drain_dbs(struct bench *b)
{
	for (int i = 0; i < 100000 && (ctl_db_waiting(b->c) || ctl_busy(b->c)); i++)
		tick(b, 1);
	assert_int_equal(ctl_db_waiting(b->c), 0);
}

/* the first doorbell of a kind; kinds have ways of different length */
static const struct seen_db *db_of(const struct world *w, char kind)
{
	for (uint32_t i = 0; i < w->n_db; i++)
		if (w->db[i].kind == kind)
			return &w->db[i];
	fail_msg("no doorbell of kind %c", kind);
	return NULL;
}

static void test_doorbells(void **state)
{
	struct bench *b = bench_new(4);
	const struct seen_db *d;
	struct world *w = b->w;
	uint64_t cycle;

	(void)state;
	populate(b);
	/* in RESET nothing gets through */
	ctl_db(b->c, 9, URDMA_DB_SQ, dbw(5, 0, 1));
	drain_dbs(b);
	assert_int_equal(w->n_db, 0);
	assert_int_equal(counter(b, URDMA_CNT_DB_BAD), 1);
	to_rts(b, 5);
	ctl_db(b->c, 9, URDMA_DB_SQ, dbw(5, 0, 0x1234));
	ctl_db(b->c, 9, URDMA_DB_RQ, dbw(5, 0, 0x4321));
	ctl_db(b->c, 8, URDMA_DB_SQ, dbw(5, 0, 7)); /* foreign page */
	ctl_db(b->c, 0, URDMA_DB_RQ, dbw(5, 0, 7));
	ctl_db(b->c, 9, URDMA_DB_SQ, dbw(6, 0, 7)); /* no such QP */
	ctl_db(b->c, 9, URDMA_DB_SQ, dbw(4096 + 5, 0, 7));
	ctl_db(b->c, 7, URDMA_DB_CQ, dbw(3, 2, 0x89abcdef));
	ctl_db(b->c, 7, URDMA_DB_CQ, dbw(4096 + 3, 2, 0));
	ctl_db(b->c, 0, URDMA_DB_EQ, dbw(2, 1, 0xfedcba98));
	ctl_db(b->c, 1, URDMA_DB_EQ, dbw(2, 1, 0));
	ctl_db(b->c, 0, URDMA_DB_EQ, dbw(66, 1, 0));
	ctl_db(b->c, 9, URDMA_DB_ETH_CQ + 8, dbw(5, 0, 7)); /* nothing there */
	ctl_db(b->c, 9, URDMA_DB_PUSH, 1);
	ctl_db(b->c, 9, URDMA_DB_SRQ, dbw(0, 0, 1)); /* there is none */
	drain_dbs(b);
	assert_int_equal(w->n_db, 4);
	d = db_of(w, 's');
	assert_true(d->obj == 5 && d->index == 0x1234);
	d = db_of(w, 'r');
	assert_true(d->obj == 5 && d->index == 0x4321);
	assert_int_equal(w->n_rq_lane, 1);
	assert_true(w->rq_lane[0].obj == 5 && w->rq_lane[0].index == 0x4321);
	d = db_of(w, 'c');
	assert_true(d->obj == 3 && d->index == 0x89abcdef && d->arm == 2 && d->page == 7);
	d = db_of(w, 'e');
	assert_true(d->obj == 2 && d->index == 0xfedcba98 && d->arm == 1);
	assert_int_equal(counter(b, URDMA_CNT_DB_OK), 3);
	assert_int_equal(counter(b, URDMA_CNT_DB_OWNER), 8);
	assert_int_equal(counter(b, URDMA_CNT_DB_BAD), 3);

	/* none is lost or reordered under back-pressure */
	w->n_db = 0;
	w->stall_percent = 70;
	for (uint32_t i = 0; i < 2000; i++)
		ctl_db(b->c, 9, URDMA_DB_SQ, dbw(5, 0, i));
	w->hold_db = true;
	tick(b, 200);
	assert_true(ctl_db_waiting(b->c) > 1900);
	w->hold_db = false;
	drain_dbs(b);
	assert_int_equal(w->n_db, 2000);
	for (uint32_t i = 0; i < 2000; i++)
		assert_int_equal(w->db[i].index, i);

	/*
	 * Receive doorbells merge while the responder takes none. The newest index counts, also
	 * when an old one comes again, and when a whole ring of the largest size is posted at once.
	 */
	w->stall_percent = 0;
	for (uint32_t base = 0x4321; base < 0x30000; base += 0x7fff) {
		static const uint32_t posted[] = { 1, 10, 12, 11, 12, 10, 0x800c, 13, 0x8000 };
		uint32_t newest = 0;

		w->n_db = w->n_rq_lane = 0;
		w->hold_db = true;
		for (uint32_t i = 0; i < sizeof(posted) / sizeof(posted[0]); i++)
			ctl_db(b->c, 9, URDMA_DB_RQ, dbw(5, 0, (base + posted[i]) & 0xffff));
		tick(b, 200);
		w->hold_db = false;
		drain_dbs(b);
		assert_true(w->n_db > 0);
		for (uint32_t i = 0; i < w->n_db; i++) {
			uint32_t step = (w->db[i].index - base - newest) & 0xffff;

			assert_int_equal(w->db[i].kind, 'r');
			assert_true(step <= 0x8000);
			newest += step;
		}
		assert_int_equal(newest, 0x800c);
		/* the lane tells of each */
		assert_int_equal(w->n_rq_lane, sizeof(posted) / sizeof(posted[0]));
		for (uint32_t i = 0; i < w->n_rq_lane; i++) {
			assert_int_equal(w->rq_lane[i].obj, 5);
			assert_int_equal(w->rq_lane[i].index, (base + posted[i]) & 0xffff);
		}
		/* what was consumed meanwhile: the next round begins there */
		base += 0x800c - 0x7fff;
	}

	/* one in two cycles */
	for (uint32_t i = 0; i < 1000; i++)
		ctl_db(b->c, 9, URDMA_DB_SQ, dbw(5, 0, i));
	cycle = w->cycle;
	drain_dbs(b);
	assert_true(w->cycle - cycle < 2050);

	/* a doorbell that is held back reaches tx before the QP is forgotten, so a reset waits for
	 * it */
	w->hold_db = true;
	ctl_db(b->c, 9, URDMA_DB_SQ, dbw(5, 0, 99));
	tick(b, 20);
	uint64_t cmd[8];
	uint32_t resets = w->own[OWN_TX][5].count[QPC_RESET];

	good_modify(cmd, URDMA_QPS_RESET);
	issue(b, cmd, URDMA_CMD_MODIFY_QP, 5);
	tick(b, 3000);
	assert_int_equal(w->own[OWN_TX][5].count[QPC_RESET], resets);
	w->hold_db = false;
	wait_all(b);
	assert_int_equal(w->own[OWN_TX][5].count[QPC_RESET], resets + 1);
	bench_free(b);
}

static bool is_eth(const struct seen_db *d)
{
	return strchr("TRC", d->kind);
}

/* Doorbells of the Ethernet function: page 0 only, eight queue pairs; they wait for nobody, and are
 * in order among themselves, as are the others. */
static void test_eth_doorbells(void **state)
{
	static const uint32_t offset[] = { URDMA_DB_SQ,	    URDMA_DB_CQ,     URDMA_DB_EQ,
					   URDMA_DB_ETH_TX, URDMA_DB_ETH_RX, URDMA_DB_ETH_CQ };
	static const char kind[] = "sceTRC";
	struct bench *b = bench_new(4);
	struct world *w = b->w;
	struct seen_db *expect = calloc(LOG_SIZE, sizeof(*expect));
	uint64_t ok, owner, bad, rnd = seed * 0x9e3779b97f4a7c15ull + 1;
	uint32_t n = 0, n_ok = 0, n_owner = 0, n_eth = 0;

	(void)state;
	assert_non_null(expect);
	populate(b);
	to_rts(b, 5);
	for (int round = 0; round < 40; round++) {
		w->stall_percent = round % 4 * 25;
		w->n_db = n = n_ok = n_owner = 0;
		ok = counter(b, URDMA_CNT_DB_OK);
		owner = counter(b, URDMA_CNT_DB_OWNER);
		bad = counter(b, URDMA_CNT_DB_BAD);
		for (int i = 0; i < 500; i++) {
			uint32_t k =
				rnd_below(&rnd, 2) ? 3 + rnd_below(&rnd, 3) : rnd_below(&rnd, 6);
			uint32_t page = k == 0 ? 9 : 0, arm = rnd_below(&rnd, 4), obj = 5;
			uint32_t index = rnd_next(&rnd) >> 32;
			bool good = true;

			if (k >= 3) {
				obj = rnd_below(&rnd, 8);
				arm = rnd_below(&rnd, 4);
				if (rnd_below(&rnd, 5) == 0) {
					/* the first that there is not, or one with high bits */
					obj |= 8u << rnd_below(&rnd, 21);
					good = false;
				}
				if (rnd_below(&rnd, 5) == 0) {
					page = 1u << rnd_below(&rnd, 10);
					good = false;
				}
				n_eth += good;
			}
			ctl_db(b->c, page, offset[k], dbw(obj, arm, index));
			if (good) {
				struct seen_db *e = &expect[n++];

				e->kind = kind[k];
				e->obj = obj;
				e->page = 0;
				e->index = k == 0 ? index & 0xffff : index;
				/* one kind of arming here */
				e->arm = k == 0 ? 0 : k >= 3 ? arm == URDMA_DB_ARM_ANY : arm;
				n_ok += kind[k] != 'c'; /* which cq counts */
			} else {
				n_owner++;
			}
			if (rnd_below(&rnd, 10) == 0)
				tick(b, rnd_below(&rnd, 30));
		}
		drain_dbs(b);
		tick(b, 4);
		assert_int_equal(w->n_db, n);
		for (int eth = 0; eth < 2; eth++) {
			for (uint32_t i = 0, k = 0; i < n; i++) {
				if (is_eth(&expect[i]) != eth)
					continue;
				while (k < n && is_eth(&w->db[k]) != eth)
					k++;
				assert_true(k < n);
				assert_int_equal(w->db[k].kind, expect[i].kind);
				assert_int_equal(w->db[k].obj, expect[i].obj);
				assert_int_equal(w->db[k].page, expect[i].page);
				assert_int_equal(w->db[k].arm, expect[i].arm);
				assert_int_equal(w->db[k].index, expect[i].index);
				k++;
			}
		}
		assert_int_equal(counter(b, URDMA_CNT_DB_OK) - ok, n_ok);
		assert_int_equal(counter(b, URDMA_CNT_DB_OWNER) - owner, n_owner);
		assert_int_equal(counter(b, URDMA_CNT_DB_BAD) - bad, 0);
	}
	assert_true(n_eth > 5000);
	/* not for those before them either, as far as these have places inside: 16, and one on its
	 * way out */
	w->n_db = 0;
	w->hold_db = true;
	for (uint32_t i = 0; i < 16; i++)
		ctl_db(b->c, 0, URDMA_DB_EQ, dbw(5, 0, i));
	for (uint32_t i = 0; i < 100; i++)
		ctl_db(b->c, 0, URDMA_DB_ETH_TX, dbw(i % 8, 0, i));
	for (int i = 0; i < 240; i++)
		tick(b, 1);
	assert_int_equal(w->n_db, 100);
	assert_int_equal(w->db[99].index, 99);
	w->hold_db = false;
	drain_dbs(b);
	assert_int_equal(w->n_db, 116);
	free(expect);
	bench_free(b);
}

/* Accesses to the registers of the Ethernet function among others, one a cycle and slower. */
static void test_eth_registers(void **state)
{
	struct bench *b = bench_new(4);
	struct world *w = b->w;
	uint64_t *shadow = calloc(ETH_REGS_SIZE / 8, 8), *expect = calloc(LOG_SIZE, 8);
	uint64_t rnd = seed * 0x9e3779b97f4a7c15ull + 1, tx_frames = 0;
	uint32_t n = 0, n_rd = 0, n_wr = 0;

	(void)state;
	assert_non_null(shadow);
	assert_non_null(expect);
	for (int i = 0; i < 5; i++) {
		ctl_count(b->c, 1ull << URDMA_CNT_TX_FRAMES, 0, 0);
		tick(b, 1);
		tx_frames++;
	}
	tick(b, 4);
	w->n_reg_rsp = w->n_eth_rd = w->n_eth_wr = 0;
	for (int i = 0; i < 40000; i++) {
		static const uint32_t beside[] = { 0x1ff8, 0x4000, 0x6000, 0xa000 };
		/* the ends of the range often */
		static const uint32_t end[] = { 0x2000, 0x2ff8, 0x3000, 0x3ff8 };
		uint32_t addr = rnd_below(&rnd, 4)
					? ETH_REGS + 8 * rnd_below(&rnd, ETH_REGS_SIZE / 8)
					: end[rnd_below(&rnd, 4)];
		uint32_t strb = rnd_below(&rnd, 2) ? 0xff : rnd_below(&rnd, 256);
		uint64_t data = rnd_next(&rnd);
		uint64_t *s = &shadow[(addr - ETH_REGS) / 8];

		switch (rnd_below(&rnd, 6)) {
		case 0:
		case 1:
			ctl_reg_post(b->c, true, addr, data, strb);
			for (int k = 0; k < 8; k++)
				if (strb >> k & 1)
					*s = (*s & ~(0xffull << 8 * k)) | (data & 0xffull << 8 * k);
			n_wr++;
			break;
		case 2:
		case 3:
			ctl_reg_post(b->c, false, addr, data, strb);
			expect[n++] = *s;
			n_rd++;
			break;
		case 4:
			ctl_reg_post(b->c, false, URDMA_REG_CLOCK_HZ, data, strb);
			expect[n++] = 250000000;
			ctl_reg_post(b->c, false, URDMA_REG_COUNTERS + 8 * URDMA_CNT_TX_FRAMES,
				     data, strb);
			expect[n++] = tx_frames;
			break;
		default:
			/* beside the range there is nothing */
			ctl_reg_post(b->c, false, beside[rnd_below(&rnd, 4)], data, strb);
			expect[n++] = 0;
			ctl_reg_post(b->c, true, beside[rnd_below(&rnd, 4)], data, strb);
			break;
		}
		if (rnd_below(&rnd, 8) == 0)
			tick(b, rnd_below(&rnd, 4));
	}
	tick(b, 4);
	assert_int_equal(w->n_reg_rsp, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(w->reg_rsp[i], expect[i]);
	assert_int_equal(w->n_eth_rd, n_rd);
	assert_int_equal(w->n_eth_wr, n_wr);
	assert_memory_equal(shadow, w->eth_reg, ETH_REGS_SIZE);
	free(shadow);
	free(expect);
	bench_free(b);
}

/* EV_PORT: after EQ 0 is made each state of the link that lasts is told once, the last one always.
 */
static void test_link(void **state)
{
	struct bench *b = bench_new(6);
	struct world *w = b->w;
	uint64_t rnd = seed + 5, cmd[8] = { 0 };
	bool up = true, told;
	unsigned int n;

	(void)state;
	n = w->n_ev;
	ctl_link(b->c, false);
	tick(b, 200);
	assert_int_equal(w->n_ev, n); /* nobody to tell */
	cmd[1] = FIELD(URDMA_CMD_EQ1_LOG_ENTRIES, 4);
	cmd[2] = 0x10000;
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_EQ, 0), URDMA_CS_OK);
	n = w->n_ev;
	tick(b, 200);
	assert_int_equal(w->n_ev, n); /* STATUS said so when it was made */
	told = up = false;
	for (unsigned int i = 0; i < 300; i++) {
		for (unsigned int k = rnd_below(&rnd, 4); k; k--) {
			up = !up;
			ctl_link(b->c, up);
			tick(b, rnd_below(&rnd, 6));
		}
		tick(b, 100);
		for (; n < w->n_ev; n++) {
			const struct seen_ev *e = &w->ev[n % LOG_SIZE];

			assert_int_equal(e->type, URDMA_EV_PORT);
			assert_int_equal(e->eqn, 0);
			assert_int_equal(e->obj, 1);
			assert_int_equal(e->data, !told);
			told = !told;
		}
		assert_int_equal(told, up);
	}
	bench_free(b);
}

/* Each SET_GID is told once, with what the table holds then; a refused one is not. */
static void test_gid_told(void **state)
{
	struct bench *b = bench_new(4);
	struct world *w = b->w;
	uint64_t cmd[8], rnd = seed * 0x9e3779b97f4a7c15ull + 1;
	struct seen_gid g;

	(void)state;
	assert_int_equal(w->n_gid_wr, 0);
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t idx = rnd_below(&rnd, N_GID);
		bool valid = rnd_below(&rnd, 4) != 0;

		memset(cmd, 0, sizeof(cmd));
		if (valid) {
			cmd[1] = URDMA_CMD_GID1_VALID |
				 FIELD(URDMA_CMD_GID1_IPV4, rnd_below(&rnd, 2)) |
				 FIELD(URDMA_CMD_GID1_VLAN_VALID, rnd_below(&rnd, 2)) |
				 FIELD(URDMA_CMD_GID1_VLAN, rnd_below(&rnd, 4096));
			cmd[2] = rnd_next(&rnd) >> 16;
			cmd[3] = rnd_next(&rnd);
			cmd[4] = rnd_next(&rnd);
		}
		assert_int_equal(run(b, cmd, URDMA_CMD_SET_GID, idx), URDMA_CS_OK);
		assert_int_equal(w->n_gid_wr, i + 1);
		assert_int_equal(w->last_gid_wr, idx);
		ctl_gid(b->c, i % 3, idx, &g);
		assert_memory_equal(&g, &w->gid_wr[idx], sizeof(g));
		assert_int_equal(g.valid, valid);
		if (valid) {
			assert_int_equal(g.ipv4, GET(URDMA_CMD_GID1_IPV4, cmd[1]));
			assert_int_equal(g.vlan_valid, GET(URDMA_CMD_GID1_VLAN_VALID, cmd[1]));
			assert_int_equal(g.vlan, GET(URDMA_CMD_GID1_VLAN, cmd[1]));
			assert_int_equal(g.smac, cmd[2]);
			assert_int_equal(g.lo, cmd[3]);
			assert_int_equal(g.hi, cmd[4]);
		}
	}
	assert_int_equal(run(b, cmd, URDMA_CMD_SET_GID, N_GID), URDMA_CS_BAD_OBJECT);
	assert_int_equal(w->n_gid_wr, 300);
	bench_free(b);
}

static void test_events(void **state)
{
	struct bench *b = bench_new(6);
	struct world *w = b->w;
	uint64_t cmd[8] = { URDMA_CMD0_EVENT };
	uint32_t n;

	(void)state;
	run(b, cmd, URDMA_CMD_NOP, 0);
	wait_idle(b);
	assert_int_equal(w->n_ev, 1);
	assert_true(w->ev[0].cmd && w->ev[0].eqn == 0 && w->ev[0].type == URDMA_EV_CMD &&
		    w->ev[0].obj == 0);
	assert_true(w->ev[0].at > w->wr_at[w->n_wr - 1]);
	run0(b, URDMA_CMD_NOP, 0);
	wait_idle(b);
	assert_int_equal(w->n_ev, 1);
	/* close completions share an event, which comes after the last of them */
	for (int i = 0; i < 40; i++) {
		cmd[0] = word0(URDMA_CMD_NOP, 0, next_tag++) | URDMA_CMD0_EVENT;
		put_cmd(b, cmd);
	}
	ring_bell(b);
	wait_all(b);
	wait_idle(b);
	n = w->n_ev - 1;
	assert_true(n >= 1 && n < 20);
	assert_true(w->ev[w->n_ev - 1].at > w->wr_at[w->n_wr - 1]);
	bench_free(b);
}

static void test_qp_err(void **state)
{
	struct bench *b = bench_new(6);
	struct world *w = b->w;
	uint64_t cmd[8];

	(void)state;
	populate(b);
	/* RESET, unknown: nothing */
	ctl_qp_err(b->c, 0, 5, URDMA_EV_QP_FATAL);
	ctl_qp_err(b->c, 1, 77, URDMA_EV_QP_FATAL);
	wait_idle(b);
	assert_int_equal(w->n_ev, 0);
	assert_int_equal(qp_state(b, 5), URDMA_QPS_RESET);
	to_rts(b, 5);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 5; k++)
			ctl_qp_err(b->c, i, 5, URDMA_EV_QP_FATAL + i);
	wait_idle(b);
	assert_int_equal(qp_state(b, 5), URDMA_QPS_ERR);
	assert_int_equal(w->n_ev, 1);
	assert_true(!w->ev[0].cmd && w->ev[0].eqn == 0 && w->ev[0].obj == 5);
	for (int i = 0; i < OWN_N; i++) {
		assert_true(w->own[i][5].err);
		assert_int_equal(w->own[i][5].count[QPC_ERR], 1);
	}
	/* without an event */
	assert_int_equal(modify(b, 5, URDMA_QPS_RESET), URDMA_CS_OK);
	assert_int_equal(modify(b, 5, URDMA_QPS_INIT), URDMA_CS_OK);
	ctl_qp_err(b->c, 2, 5, 0);
	wait_idle(b);
	assert_int_equal(qp_state(b, 5), URDMA_QPS_ERR);
	assert_int_equal(w->n_ev, 1);

	/* Reports are taken though the manager waits for an owner: no cycle can close. All QPs of
	 * the NIC, twice. */
	w->hold_qpc = true;
	good_qp(cmd, 1, 3, 4);
	for (uint32_t i = 0; i < 60; i++)
		if (i != 5)
			issue(b, cmd, URDMA_CMD_CREATE_QP, i);
	wait_all(b);
	for (uint32_t i = 0; i < 60; i++) {
		uint64_t mod[8];

		if (i == 5)
			continue;
		good_modify(mod, URDMA_QPS_INIT);
		assert_int_equal(run(b, mod, URDMA_CMD_MODIFY_QP, i), URDMA_CS_OK);
	}
	for (int src = 0; src < 2; src++)
		for (uint32_t i = 0; i < 4096; i++)
			ctl_qp_err(b->c, src, i, URDMA_EV_QP_REQ_ERR);
	for (int i = 0; i < 20000 && ctl_qp_err_waiting(b->c); i++)
		tick(b, 1);
	assert_int_equal(ctl_qp_err_waiting(b->c), 0);
	w->hold_qpc = false;
	wait_idle(b);
	for (uint32_t i = 0; i < 60; i++)
		assert_int_equal(qp_state(b, i), URDMA_QPS_ERR);
	assert_int_equal(w->n_ev, 1 + 59);

	/* a report of before a reset's fence does not touch the QP of after it */
	w->hold_fence = true;
	good_modify(cmd, URDMA_QPS_RESET);
	issue(b, cmd, URDMA_CMD_MODIFY_QP, 5);
	tick(b, 500);
	ctl_qp_err(b->c, 1, 5, URDMA_EV_QP_FATAL);
	tick(b, 1);
	w->hold_fence = false;
	wait_all(b);
	assert_int_equal(modify(b, 5, URDMA_QPS_INIT), URDMA_CS_OK);
	wait_idle(b);
	assert_int_equal(qp_state(b, 5), URDMA_QPS_INIT);
	assert_int_equal(w->n_ev, 1 + 59);
	bench_free(b);
}

/* Reports that are only events: they change no state, and neither shadow nor are shadowed. */
static void test_qp_events(void **state)
{
	static const uint32_t states[] = { URDMA_QPS_RESET, URDMA_QPS_INIT, URDMA_QPS_RTR,
					   URDMA_QPS_RTS,   URDMA_QPS_SQD,  URDMA_QPS_ERR };
	static const uint32_t types[] = { URDMA_EV_COMM_EST, URDMA_EV_SQ_DRAINED };
	struct bench *b = bench_new(6);
	struct world *w = b->w;
	uint64_t cmd[8];
	uint32_t n_ev, n_qpc, at;

	(void)state;
	populate(b);
	for (size_t s = 0; s < sizeof(states) / sizeof(states[0]); s++) {
		bring(b, states[s]);
		for (int t = 0; t < 2; t++)
			for (int src = 0; src < ERR_SRCS; src++) {
				bool due = states[s] == (t ? URDMA_QPS_SQD : URDMA_QPS_RTR);

				n_ev = w->n_ev;
				n_qpc = w->n_qpc;
				ctl_qp_event(b->c, src, 5, types[t]);
				ctl_qp_event(b->c, src, 77, types[t]); /* no such QP */
				wait_idle(b);
				assert_int_equal(w->n_ev, n_ev + due);
				assert_int_equal(w->n_qpc, n_qpc);
				assert_int_equal(qp_state(b, 5), states[s]);
				if (due) {
					assert_int_equal(w->ev[n_ev].type, types[t]);
					assert_int_equal(w->ev[n_ev].obj, 5);
					assert_false(w->ev[n_ev].cmd);
				}
			}
	}

	/* Event and error of one QP wait while the manager is held by another: both come, in order
	 */
	good_qp(cmd, 1, 3, 4);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 8), URDMA_CS_OK);
	for (int first = 0; first < 2; first++)
		for (int same = 0; same < 2; same++)
			for (int t = 0; t < 2; t++) {
				bring(b, t ? URDMA_QPS_SQD : URDMA_QPS_RTR);
				assert_int_equal(modify(b, 8, URDMA_QPS_RESET), URDMA_CS_OK);
				wait_idle(b);
				w->hold_qpc = true;
				good_modify(cmd, URDMA_QPS_ERR);
				issue(b, cmd, URDMA_CMD_MODIFY_QP, 8);
				tick(b, 500);
				n_ev = w->n_ev;
				for (int i = 0; i < 2; i++) {
					int src = same ? 1 : 2 * i;

					for (int rep = 0; rep < 3; rep++) {
						if (i == first)
							ctl_qp_event(b->c, src, 5, types[t]);
						else
							ctl_qp_err(b->c, src, 5,
								   URDMA_EV_QP_ACCESS_ERR);
					}
					tick(b, 20);
				}
				assert_int_equal(ctl_qp_err_waiting(b->c), 0);
				w->hold_qpc = false;
				wait_all(b);
				wait_idle(b);
				assert_int_equal(qp_state(b, 5), URDMA_QPS_ERR);
				/* behind the error there is nothing to tell of */
				assert_int_equal(w->n_ev, n_ev + 1 + (first == 0));
				at = n_ev;
				if (first == 0)
					assert_int_equal(w->ev[at++].type, types[t]);
				assert_int_equal(w->ev[at].type, URDMA_EV_QP_ACCESS_ERR);
			}

	/* all kinds of all QPs from all sources are taken while the manager is held */
	bring(b, URDMA_QPS_SQD);
	assert_int_equal(modify(b, 8, URDMA_QPS_RESET), URDMA_CS_OK);
	wait_idle(b);
	w->hold_qpc = true;
	good_modify(cmd, URDMA_QPS_ERR);
	issue(b, cmd, URDMA_CMD_MODIFY_QP, 8);
	tick(b, 500);
	n_ev = w->n_ev;
	for (uint32_t q = 0; q < N_QP; q++) {
		ctl_qp_event(b->c, 0, q, URDMA_EV_COMM_EST);
		ctl_qp_event(b->c, 3, q, URDMA_EV_SQ_DRAINED);
		ctl_qp_err(b->c, 1, q, URDMA_EV_QP_REQ_ERR);
		ctl_qp_err(b->c, 2, q, URDMA_EV_QP_FATAL);
	}
	for (int i = 0; i < 30000 && ctl_qp_err_waiting(b->c); i++)
		tick(b, 1);
	assert_int_equal(ctl_qp_err_waiting(b->c), 0);
	w->hold_qpc = false;
	wait_all(b);
	wait_idle(b);
	assert_int_equal(qp_state(b, 5), URDMA_QPS_ERR);
	/* QP 5: one error, and SQ_DRAINED if it came first */
	assert_true(w->n_ev == n_ev + 1 || w->n_ev == n_ev + 2);
	assert_int_equal(w->ev[w->n_ev - 1].obj, 5);
	bench_free(b);
}

static void test_throughput(void **state)
{
	struct bench *b = bench_new(8);
	uint64_t cmd[8], start_at;
	uint32_t n = 0;

	(void)state;
	populate(b);
	/* 200 of a mix that does not fence, posted at once; stalls and latencies as in the other
	 * tests */
	for (uint32_t i = 0; i < 50; i++) {
		good_mr(cmd, 1);
		cmd[0] = word0(URDMA_CMD_CREATE_MR, 200 + i, next_tag++);
		put_cmd(b, cmd);
		good_cq(cmd, 2);
		cmd[0] = word0(URDMA_CMD_CREATE_CQ, 200 + i, next_tag++);
		put_cmd(b, cmd);
		good_qp(cmd, 1, 200 + i, 3);
		cmd[0] = word0(URDMA_CMD_CREATE_QP, 200 + i, next_tag++);
		put_cmd(b, cmd);
		good_modify(cmd, URDMA_QPS_INIT);
		cmd[0] = word0(URDMA_CMD_MODIFY_QP, 200 + i, next_tag++);
		put_cmd(b, cmd);
		n += 4;
	}
	start_at = b->w->cycle;
	ring_bell(b);
	wait_all(b);
	print_message("%.1f cycles a command\n", (double)(b->w->cycle - start_at) / n);
	assert_true(b->w->cycle - start_at <= 64ull * n);
	assert_int_equal(counter(b, URDMA_CNT_CMD_ERR), 0);
	assert_int_equal(counter(b, URDMA_CNT_CMD_OK), 7 + n);
	bench_free(b);
}

/* ---- multicast groups -------------------------------------------------------------------------
 */

static uint32_t group(struct bench *b, uint32_t op, uint32_t qpn, uint64_t lo, uint64_t hi)
{
	uint64_t cmd[8] = { 0 };

	cmd[5] = lo;
	cmd[6] = hi;
	return run(b, cmd, op, qpn);
}

/* ::ffff:a.b.c.d with its bytes in memory order */
static uint64_t ip4(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return 0xffff0000ull | (uint64_t)a << 32 | (uint64_t)b << 40 | (uint64_t)c << 48 |
	       (uint64_t)d << 56;
}

static void create_ud(struct bench *b, uint32_t qpn, uint64_t flags)
{
	uint64_t cmd[8];

	good_qp(cmd, 1, 3, 4);
	set(cmd, 1, URDMA_CMD_QP1_TYPE, URDMA_QPT_UD);
	cmd[1] |= flags;
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, qpn), URDMA_CS_OK);
}

static uint32_t memberships(struct bench *b, uint32_t qpn)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->w->n_members; i++)
		n += b->w->members[i].qpn == qpn;
	return n;
}

/* What is a group, who may be in it, what each status says, and how a QP leaves all of them. */
static void test_groups(void **state)
{
	static const struct {
		uint64_t lo, hi;
		bool good;
	} gids[] = {
		{ 0x0b02ff, 0x1100000000000000, true }, /* ff02:b::11 */
		{ 0xffffffffffffffff, 0xffffffffffffffff, true },
		{ 0xfe, 0, false },
		{ 0x80fe, 0xff, false },
		{ 0, 0, false },
	};
	static const struct {
		uint32_t a;
		bool good;
	} v4[] = { { 223, false }, { 224, true }, { 239, true }, { 240, false }, { 10, false } };
	struct bench *b = bench_new(5);
	struct world *w = b->w;
	uint64_t cmd[8], zero[8] = { 0 }, hi;
	struct seen_qp q;

	(void)state;
	assert_true(ctl_reg_read(b->c, URDMA_REG_CAP_FEATURES) & URDMA_RF_FEAT_MCAST);
	populate(b);
	modify_type = URDMA_QPT_UD;
	create_ud(b, 7, 0);
	create_ud(b, 8, URDMA_CMD_QP1_MCAST_NO_LOOP);
	ctl_qp_cfg(b->c, 0, 7, &q);
	assert_false(q.no_loop);
	ctl_qp_cfg(b->c, 0, 8, &q);
	assert_true(q.no_loop && !q.priv);
	for (size_t i = 0; i < sizeof(gids) / sizeof(gids[0]); i++) {
		uint32_t want = gids[i].good ? URDMA_CS_OK : URDMA_CS_BAD_ATTR;

		assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 7, gids[i].lo, gids[i].hi), want);
		assert_int_equal(w->n_members, gids[i].good);
		if (gids[i].good) {
			assert_true(w->members[0].qpn == 7 && w->members[0].lo == gids[i].lo &&
				    w->members[0].hi == gids[i].hi);
			assert_int_equal(
				group(b, URDMA_CMD_ATTACH_MCAST, 7, gids[i].lo, gids[i].hi),
				URDMA_CS_EXISTS);
		}
		assert_int_equal(group(b, URDMA_CMD_DETACH_MCAST, 7, gids[i].lo, gids[i].hi), want);
		assert_int_equal(w->n_members, 0);
	}
	for (size_t i = 0; i < sizeof(v4) / sizeof(v4[0]); i++) {
		uint32_t want = v4[i].good ? URDMA_CS_OK : URDMA_CS_BAD_ATTR;

		hi = ip4(v4[i].a, 1, 2, 3);
		assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 7, 0, hi), want);
		assert_int_equal(group(b, URDMA_CMD_DETACH_MCAST, 7, 0, hi), want);
		/* not mapped: another prefix */
		assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 7, 0, hi & ~0x10000ull),
				 URDMA_CS_BAD_ATTR);
		assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 7, 1ull << 40, hi),
				 URDMA_CS_BAD_ATTR);
	}
	hi = ip4(239, 1, 2, 3);
	/* who: a QP of UD that exists */
	assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 5, 0, hi), URDMA_CS_BAD_ATTR);
	assert_int_equal(group(b, URDMA_CMD_DETACH_MCAST, 5, 0, hi), URDMA_CS_BAD_ATTR);
	assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 6, 0, hi), URDMA_CS_BAD_OBJECT);
	assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 4096 + 7, 0, hi), URDMA_CS_BAD_OBJECT);
	assert_int_equal(group(b, URDMA_CMD_DETACH_MCAST, 7, 0, hi), URDMA_CS_BAD_ATTR);
	w->members_full = true;
	assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 7, 0, hi), URDMA_CS_FULL);
	w->members_full = false;
	/* whatever its state, and the states do not change it; but RESET does */
	for (int i = 0; i < 3; i++)
		for (uint32_t n = 7; n < 9; n++)
			assert_int_equal(
				group(b, URDMA_CMD_ATTACH_MCAST, n, 0, hi + ((uint64_t)i << 56)),
				URDMA_CS_OK);
	to_rts(b, 7);
	assert_int_equal(modify(b, 7, URDMA_QPS_ERR), URDMA_CS_OK);
	assert_int_equal(memberships(b, 7), 3);
	/* one that is refused changes nothing */
	good_modify(cmd, URDMA_QPS_RESET);
	set(cmd, 1, URDMA_CMD_MOD1_CUR_STATE, URDMA_QPS_RTS);
	cmd[1] |= URDMA_QPM_CUR_STATE;
	assert_int_equal(run(b, cmd, URDMA_CMD_MODIFY_QP, 7), URDMA_CS_BAD_STATE);
	assert_int_equal(memberships(b, 7), 3);
	assert_int_equal(w->n_mco[MC_LEAVE], 0);
	assert_int_equal(modify(b, 7, URDMA_QPS_RESET), URDMA_CS_OK);
	assert_int_equal(memberships(b, 7), 0);
	assert_int_equal(memberships(b, 8), 3);
	/* what CREATE_QP said stays */
	assert_int_equal(modify(b, 8, URDMA_QPS_RESET), URDMA_CS_OK);
	ctl_qp_cfg(b->c, 0, 8, &q);
	assert_true(q.no_loop);
	/* without any member nobody is asked */
	assert_int_equal(w->n_members, 0);
	assert_int_equal(w->n_mco[MC_LEAVE], 2);
	assert_int_equal(modify(b, 8, URDMA_QPS_RESET), URDMA_CS_OK);
	assert_int_equal(w->n_mco[MC_LEAVE], 2);
	/* in the order of the ring: RESET and ATTACH, DESTROY, CREATE and ATTACH, all at once */
	for (int i = 0; i < 40; i++) {
		uint16_t tag[8];

		w->mco_delay_max = i % 4 * 40;
		w->fence_delay_max = i % 3 * 200;
		create_ud(b, 9, 0);
		assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 9, 0, hi), URDMA_CS_OK);
		assert_int_equal(group(b, URDMA_CMD_ATTACH_MCAST, 8, 0, hi + (1ull << 56)),
				 URDMA_CS_OK);
		memset(cmd, 0, 64);
		cmd[6] = hi;
		tag[0] = issue(b, cmd, URDMA_CMD_ATTACH_MCAST, 7);
		good_modify(cmd, URDMA_QPS_RESET);
		tag[1] = issue(b, cmd, URDMA_CMD_MODIFY_QP, 7);
		memset(cmd, 0, 64);
		cmd[6] = hi;
		tag[2] = issue(b, cmd, URDMA_CMD_ATTACH_MCAST, 7);
		tag[3] = issue(b, cmd, URDMA_CMD_ATTACH_MCAST, 7);
		tag[4] = issue(b, cmd, URDMA_CMD_DETACH_MCAST, 8);
		tag[5] = issue(b, zero, URDMA_CMD_DESTROY_QP, 8);
		/* one right behind the other */
		tag[7] = issue(b, zero, URDMA_CMD_DESTROY_QP, 9);
		tag[6] = issue(b, cmd, URDMA_CMD_ATTACH_MCAST, 8);
		wait_all(b);
		assert_int_equal(status_of(b, tag[0]), URDMA_CS_OK);
		assert_int_equal(status_of(b, tag[1]), URDMA_CS_OK);
		assert_int_equal(status_of(b, tag[2]), URDMA_CS_OK);
		assert_int_equal(status_of(b, tag[3]), URDMA_CS_EXISTS);
		assert_int_equal(status_of(b, tag[4]), URDMA_CS_BAD_ATTR);
		assert_int_equal(status_of(b, tag[5]), URDMA_CS_OK);
		assert_int_equal(status_of(b, tag[6]), URDMA_CS_BAD_OBJECT);
		assert_int_equal(status_of(b, tag[7]), URDMA_CS_OK);
		assert_int_equal(memberships(b, 7), 1);
		/* it has left before the number is another's */
		create_ud(b, 8, 0);
		assert_int_equal(memberships(b, 8), 0);
		assert_int_equal(memberships(b, 9), 0);
		assert_int_equal(group(b, URDMA_CMD_DETACH_MCAST, 7, 0, hi), URDMA_CS_OK);
	}
	modify_type = URDMA_QPT_RC;
	wait_idle(b);
	bench_free(b);
}

/* Commands of SRQs: what urdma_srq is told, and each refusal. */
static void test_srq(void **state)
{
	struct bench *b = bench_new(5);
	struct world *w = b->w;
	uint64_t cmd[8], zero[8] = { 0 };
	struct seen_qp q;
	uint16_t tag;

	(void)state;
	populate(b);
	REFUSE(b, good_srq(cmd, 1), , CREATE_SRQ, 1024, BAD_OBJECT);
	REFUSE(b, good_srq(cmd, 1), , CREATE_SRQ, 0x800007, BAD_OBJECT);
	REFUSE(b, good_srq(cmd, 2), cmd[1] |= URDMA_CMD_SRQ1_DB_PAGE, CREATE_SRQ, 7, BAD_PD);
	REFUSE(b, good_srq(cmd, 4097), , CREATE_SRQ, 7, BAD_PD);
	REFUSE(b, good_srq(cmd, 1), set(cmd, 1, URDMA_CMD_SRQ1_DB_PAGE, 1024);
	       cmd[2] = 0, CREATE_SRQ, 7, BAD_DB_PAGE);
	static const uint32_t bad[][4] = { { 16, 7, 2, 14 },  { 31, 7, 2, 14 }, { 10, 5, 2, 14 },
					   { 10, 10, 2, 14 }, { 10, 7, 3, 14 }, { 10, 7, 2, 11 },
					   { 10, 7, 1, 32 } };
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		REFUSE(b, good_srq(cmd, 1),
		       cmd[2] = ring_bits(bad[i][0], bad[i][1], bad[i][2], bad[i][3]), CREATE_SRQ,
		       7, BAD_SIZE);
	REFUSE(b, good_srq(cmd, 1), cmd[3] |= 0x20, CREATE_SRQ, 7, BAD_ALIGN);
	REFUSE(b, good_srq(cmd, 1), cmd[2] = ring_bits(10, 7, 0, 0), CREATE_SRQ, 7, BAD_ALIGN);
	refuse(b, zero, URDMA_CMD_MODIFY_SRQ, 7, URDMA_CS_BAD_OBJECT);
	refuse(b, zero, URDMA_CMD_QUERY_SRQ, 7, URDMA_CS_BAD_OBJECT);
	refuse(b, zero, URDMA_CMD_DESTROY_SRQ, 7, URDMA_CS_BAD_OBJECT);
	REFUSE(b, good_qp_srq(cmd, 1, 3, 4, 7), , CREATE_QP, 6, BAD_SRQ);
	assert_int_equal(w->n_sro, 0);

	good_srq(cmd, 1);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 7), URDMA_CS_OK);
	assert_true(w->srq[7].valid);
	assert_int_equal(w->srq[7].pd, 1);
	check_ring(&w->srq[7].ring, cmd[2], cmd[3]);
	refuse(b, cmd, URDMA_CMD_CREATE_SRQ, 7, URDMA_CS_EXISTS);
	refuse(b, zero, URDMA_CMD_DESTROY_SRQ, 1024 + 7, URDMA_CS_BAD_OBJECT);
	refuse(b, zero, URDMA_CMD_QUERY_SRQ, 8, URDMA_CS_BAD_OBJECT);

	/* the limit, up to the number of entries */
	cmd[1] = 1025;
	refuse(b, cmd, URDMA_CMD_MODIFY_SRQ, 7, URDMA_CS_BAD_ATTR);
	cmd[1] = 0xffff;
	refuse(b, cmd, URDMA_CMD_MODIFY_SRQ, 7, URDMA_CS_BAD_ATTR);
	cmd[1] = 0xabcd00000000 | 1024;
	assert_int_equal(run(b, cmd, URDMA_CMD_MODIFY_SRQ, 7), URDMA_CS_OK);
	assert_int_equal(w->srq[7].limit, 1024);
	w->srq[7].pi = 0x9abc;
	w->srq[7].ci = 0x8765;
	tag = issue(b, zero, URDMA_CMD_QUERY_SRQ, 7);
	wait_all(b);
	assert_int_equal(status_of(b, tag), URDMA_CS_OK);
	assert_int_equal(b->cpl[tag][1], 0x87659abc0400);
	assert_int_equal(b->cpl[tag][2] | b->cpl[tag][3], 0);
	/* the others have none of it */
	tag = issue(b, cmd, URDMA_CMD_MODIFY_SRQ, 7);
	wait_all(b);
	assert_int_equal(b->cpl[tag][1], 0);
	tag = issue(b, zero, URDMA_CMD_QUERY_SRQ, 9);
	wait_all(b);
	assert_int_equal(b->cpl[tag][1], 0);
	good_srq(cmd, 1);
	cmd[2] = ring_bits(15, 9, 1, 12);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 1023), URDMA_CS_OK);
	cmd[1] = 0x8000;
	assert_int_equal(run(b, cmd, URDMA_CMD_MODIFY_SRQ, 1023), URDMA_CS_OK);
	cmd[1] = 0x8001;
	refuse(b, cmd, URDMA_CMD_MODIFY_SRQ, 1023, URDMA_CS_BAD_ATTR);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_SRQ, 1023), URDMA_CS_OK);
	assert_false(w->srq[1023].valid);
	assert_true(w->srq[7].valid);

	/* QPs with it: the number counts whole, behind CQs and before the page */
	REFUSE(b, good_qp_srq(cmd, 1, 3, 4, 1024 + 7), , CREATE_QP, 6, BAD_SRQ);
	REFUSE(b, good_qp_srq(cmd, 1, 3, 4, 0x800007), , CREATE_QP, 6, BAD_SRQ);
	REFUSE(b, good_qp_srq(cmd, 1, 3, 5, 8), , CREATE_QP, 6, BAD_CQ);
	REFUSE(b, good_qp_srq(cmd, 1, 3, 4, 8), cmd[1] |= URDMA_CMD_QP1_DB_PAGE, CREATE_QP, 6,
	       BAD_SRQ);
	REFUSE(b, good_qp_srq(cmd, 1, 3, 4, 7), cmd[4] |= 1, CREATE_QP, 6, BAD_ALIGN);
	good_qp_srq(cmd, 1, 3, 4, 7);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 6), URDMA_CS_OK);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 8), URDMA_CS_OK);
	good_qp(cmd, 1, 3, 4);
	cmd[5] |= FIELD(URDMA_CMD_QP5_SRQN, 7);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 9), URDMA_CS_OK);
	to_rts(b, 6);
	ctl_qp_cfg(b->c, 1, 6, &q);
	assert_true(q.srq && q.srqn == 7 && q.sig_all && !q.priv && !q.no_loop);
	assert_int_equal(modify(b, 6, URDMA_QPS_RESET), URDMA_CS_OK);
	ctl_qp_cfg(b->c, 1, 6, &q);
	assert_true(q.srq && q.srqn == 7);
	ctl_qp_cfg(b->c, 1, 9, &q);
	assert_false(q.srq);

	/* a reference of each QP that has it, and one to the PD */
	refuse(b, zero, URDMA_CMD_DESTROY_SRQ, 7, URDMA_CS_BUSY);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 6), URDMA_CS_OK);
	refuse(b, zero, URDMA_CMD_DESTROY_SRQ, 7, URDMA_CS_BUSY);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 9), URDMA_CS_OK);
	refuse(b, zero, URDMA_CMD_DESTROY_SRQ, 7, URDMA_CS_BUSY);
	assert_true(w->srq[7].valid && w->srq[7].limit == 1024);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 8), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 5), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 6), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DEALLOC_PD, 1), URDMA_CS_BUSY);
	good_qp_srq(cmd, 1, 3, 4, 7);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 5), URDMA_CS_OK);

	/* all of it goes in a row, and waits for a round of fences with a flush of page tables */
	uint32_t rounds = w->n_rounds;
	uint16_t dq, ds, dp, cs, qs, cq;
	w->hold_fence = true;
	dq = issue(b, zero, URDMA_CMD_DESTROY_QP, 5);
	tick(b, 1000);
	ds = issue(b, zero, URDMA_CMD_DESTROY_SRQ, 7);
	dp = issue(b, zero, URDMA_CMD_DEALLOC_PD, 1);
	good_srq(cmd, 1);
	cs = issue(b, cmd, URDMA_CMD_CREATE_SRQ, 7);
	qs = issue(b, zero, URDMA_CMD_QUERY_SRQ, 7);
	tick(b, 1000);
	assert_false(b->done[dq] || b->done[ds]);
	assert_int_equal(status_of(b, dp), URDMA_CS_OK);
	assert_int_equal(status_of(b, cs), URDMA_CS_EXISTS);
	assert_int_equal(status_of(b, qs), URDMA_CS_BAD_OBJECT);
	assert_int_equal(b->outstanding, 2);
	w->hold_fence = false;
	wait_all(b);
	assert_int_equal(status_of(b, ds), URDMA_CS_OK);
	assert_int_equal(w->n_rounds, rounds + 2);
	assert_false(w->srq[7].valid);
	assert_true(w->srq_at[7] < w->round_start);
	assert_true(w->round_start < w->fence_done[FENCE_MR]);
	assert_true(w->fence_done[FENCE_MR] < b->done_at[ds]);

	/* no QP names one that is going */
	assert_int_equal(run0(b, URDMA_CMD_ALLOC_PD, 1), URDMA_CS_OK);
	good_srq(cmd, 1);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 7), URDMA_CS_OK);
	w->hold_fence = true;
	ds = issue(b, zero, URDMA_CMD_DESTROY_SRQ, 7);
	good_qp_srq(cmd, 1, 3, 4, 7);
	cq = issue(b, cmd, URDMA_CMD_CREATE_QP, 5);
	tick(b, 1000);
	assert_int_equal(status_of(b, cq), URDMA_CS_BAD_SRQ);
	assert_false(b->done[ds]);
	w->hold_fence = false;
	wait_all(b);
	bench_free(b);
}

/* XRC: domains, SRQs with a domain and a CQ, QPs with less than two queues. */
static void test_xrc(void **state)
{
	struct bench *b = bench_new(5);
	struct world *w = b->w;
	uint64_t cmd[8], zero[8] = { 0 };
	struct seen_qp q;
	uint16_t ds, dp, dd, dc;

	(void)state;
	/* PD 1, CQs 3 and 4, QP 5 */
	populate(b);
	assert_int_equal(run0(b, URDMA_CMD_ALLOC_PD, 2), URDMA_CS_OK);
	good_cq(cmd, 2);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_CQ, 8), URDMA_CS_OK);

	/* the domain and the CQ of an SRQ: both numbers count whole, in the order of the contract
	 */
	REFUSE(b, good_srq_xrc(cmd, 3, 2, 8), , CREATE_SRQ, 7, BAD_PD);
	REFUSE(b, good_srq_xrc(cmd, 1, 3, 9), , CREATE_SRQ, 7, BAD_PD);
	REFUSE(b, good_srq_xrc(cmd, 1, 4096 + 2, 8), , CREATE_SRQ, 7, BAD_PD);
	REFUSE(b, good_srq_xrc(cmd, 4096 + 1, 2, 8), , CREATE_SRQ, 7, BAD_PD);
	REFUSE(b, good_srq_xrc(cmd, 1, 2, 9), cmd[1] |= URDMA_CMD_SRQ1_DB_PAGE, CREATE_SRQ, 7,
	       BAD_CQ);
	REFUSE(b, good_srq_xrc(cmd, 1, 2, 4096 + 8), , CREATE_SRQ, 7, BAD_CQ);
	REFUSE(b, good_srq_xrc(cmd, 1, 2, 8), set(cmd, 1, URDMA_CMD_SRQ1_DB_PAGE, 1024), CREATE_SRQ,
	       7, BAD_DB_PAGE);
	REFUSE(b, good_srq_xrc(cmd, 1, 2, 8), cmd[3] |= 0x20, CREATE_SRQ, 7, BAD_ALIGN);
	assert_int_equal(run0(b, URDMA_CMD_DEALLOC_PD, 2), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_CQ, 8), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_ALLOC_PD, 2), URDMA_CS_OK);
	good_cq(cmd, 2);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_CQ, 8), URDMA_CS_OK);

	/* without the bit neither of them means anything */
	good_srq_xrc(cmd, 1, 3, 9);
	cmd[1] &= ~URDMA_CMD_SRQ1_XRC;
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 6), URDMA_CS_OK);
	assert_false(w->srq[6].xrc);
	good_srq_xrc(cmd, 1, 2, 8);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 7), URDMA_CS_OK);
	assert_true(w->srq[7].xrc && w->srq[7].pd == 1 && w->srq[7].xrcd == 2 &&
		    w->srq[7].cqn == 8);
	check_ring(&w->srq[7].ring, cmd[2], cmd[3]);
	/* domain and PD may be one; it is counted twice */
	good_srq_xrc(cmd, 2, 2, 8);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 8), URDMA_CS_OK);

	/* QPs of XRC name no SRQ, the others none of XRC; the reason comes behind those of PD and
	 * CQ */
	REFUSE(b, good_qp_srq(cmd, 1, 3, 4, 7), , CREATE_QP, 6, BAD_SRQ);
	for (uint32_t type = URDMA_QPT_XRC_INI; type <= URDMA_QPT_XRC_TGT; type++) {
		for (uint32_t srqn = 6; srqn <= 9; srqn++) {
			REFUSE(b, good_qp_xrc(cmd, 1, 3, type);
			       cmd[1] |= URDMA_CMD_QP1_SRQ, set(cmd, 5, URDMA_CMD_QP5_SRQN, srqn),
			       CREATE_QP, 6, BAD_ATTR);
		}
		REFUSE(b, good_qp_xrc(cmd, 3, 3, type), , CREATE_QP, 6, BAD_PD);
		REFUSE(b, good_qp_xrc(cmd, 1, 3, type), cmd[1] |= URDMA_CMD_QP1_DB_PAGE, CREATE_QP,
		       6, BAD_DB_PAGE);
	}
	REFUSE(b, good_qp_xrc(cmd, 1, 9, URDMA_QPT_XRC_INI), , CREATE_QP, 6, BAD_CQ);
	REFUSE(b, good_qp_xrc(cmd, 1, 3, URDMA_QPT_XRC_INI), cmd[4] |= 1, CREATE_QP, 6, BAD_ALIGN);
	REFUSE(b, good_qp_xrc(cmd, 1, 3, URDMA_QPT_XRC_INI), set(cmd, 3, URDMA_RING_LOG_STRIDE, 5),
	       CREATE_QP, 6, BAD_SIZE);
	/* other types need both */
	for (uint32_t type = URDMA_QPT_RC; type <= URDMA_QPT_UD; type++)
		REFUSE(b, good_qp_xrc(cmd, 1, 3, type), , CREATE_QP, 6, BAD_CQ);

	/* initiator 10 with CQ 4 in PD 1, target 11 in domain 2 */
	good_qp_xrc(cmd, 1, 4, URDMA_QPT_XRC_INI);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 10), URDMA_CS_OK);
	ctl_qp_cfg(b->c, 0, 10, &q);
	assert_true(q.type == URDMA_QPT_XRC_INI && q.pd == 1 && q.send_cq == 4 && !q.srq);
	check_ring(&q.sq, cmd[3], cmd[4]);
	good_qp_xrc(cmd, 2, 0, URDMA_QPT_XRC_TGT);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 11), URDMA_CS_OK);
	ctl_qp_cfg(b->c, 1, 11, &q);
	assert_true(q.type == URDMA_QPT_XRC_TGT && q.pd == 2 && !q.srq);
	/* groups are for UD */
	memset(cmd, 0, 64);
	refuse(b, cmd, URDMA_CMD_ATTACH_MCAST, 11, URDMA_CS_BAD_ATTR);

	/* doorbells: only an initiator's SQ; the others count as those of a foreign object,
	 * whatever the state */
	uint64_t owner = counter(b, URDMA_CNT_DB_OWNER), bad = counter(b, URDMA_CNT_DB_BAD),
		 ok = counter(b, URDMA_CNT_DB_OK);
	for (int rts = 0; rts < 2; rts++) {
		if (rts)
			for (int i = 0; i < 2; i++) {
				modify_type = i ? URDMA_QPT_XRC_TGT : URDMA_QPT_XRC_INI;
				to_rts(b, 10 + i);
			}
		w->n_db = 0;
		ctl_db(b->c, 9, URDMA_DB_RQ, dbw(10, 0, 1));
		ctl_db(b->c, 9, URDMA_DB_SQ, dbw(10, 0, 2));
		ctl_db(b->c, 9, URDMA_DB_SQ, dbw(11, 0, 3));
		ctl_db(b->c, 9, URDMA_DB_RQ, dbw(11, 0, 4));
		ctl_db(b->c, 8, URDMA_DB_SQ, dbw(10, 0, 5));
		drain_dbs(b);
		assert_int_equal(w->n_db, rts);
	}
	modify_type = URDMA_QPT_RC;
	assert_true(w->db[0].kind == 's' && w->db[0].obj == 10 && w->db[0].index == 2);
	assert_int_equal(counter(b, URDMA_CNT_DB_OWNER), owner + 8);
	assert_int_equal(counter(b, URDMA_CNT_DB_BAD), bad + 1);
	assert_int_equal(counter(b, URDMA_CNT_DB_OK), ok + 1);

	/* who holds what: CQ 4 by QPs 5 and 10; CQ 3 by QP 5; CQ 8 by SRQs 7 and 8; PD 2 by QP 11
	 * and the same, twice by SRQ 8 */
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 5), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_CQ, 3), URDMA_CS_OK);
	refuse(b, zero, URDMA_CMD_DESTROY_CQ, 4, URDMA_CS_BUSY);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 10), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_CQ, 4), URDMA_CS_OK);
	refuse(b, zero, URDMA_CMD_DESTROY_CQ, 8, URDMA_CS_BUSY);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_SRQ, 8), URDMA_CS_OK);
	refuse(b, zero, URDMA_CMD_DESTROY_CQ, 8, URDMA_CS_BUSY);
	refuse(b, zero, URDMA_CMD_DEALLOC_PD, 2, URDMA_CS_BUSY);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 11), URDMA_CS_OK);
	refuse(b, zero, URDMA_CMD_DEALLOC_PD, 2, URDMA_CS_BUSY);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_SRQ, 6), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 6), URDMA_CS_OK);
	refuse(b, zero, URDMA_CMD_DEALLOC_PD, 1, URDMA_CS_BUSY);
	/* target QPs hold no SRQ: it goes while they work. Then all is free, before the fence is
	 * over */
	good_qp_xrc(cmd, 2, 0, URDMA_QPT_XRC_TGT);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_QP, 11), URDMA_CS_OK);
	w->hold_fence = true;
	ds = issue(b, zero, URDMA_CMD_DESTROY_SRQ, 7);
	dc = issue(b, zero, URDMA_CMD_DESTROY_CQ, 8);
	dp = issue(b, zero, URDMA_CMD_DEALLOC_PD, 1);
	dd = issue(b, zero, URDMA_CMD_DEALLOC_PD, 2);
	tick(b, 1000);
	assert_false(b->done[ds] || b->done[dc]);
	assert_false(w->srq[7].valid || w->cq[8].valid);
	assert_true(w->srq_at[7] < w->cq_at[8]);
	assert_int_equal(status_of(b, dp), URDMA_CS_OK);
	assert_int_equal(status_of(b, dd), URDMA_CS_BUSY);
	w->hold_fence = false;
	wait_all(b);
	assert_int_equal(status_of(b, ds), URDMA_CS_OK);
	assert_int_equal(status_of(b, dc), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 11), URDMA_CS_OK);
	assert_int_equal(run0(b, URDMA_CMD_DEALLOC_PD, 2), URDMA_CS_OK);

	/* a CQ that is going is no CQ for an SRQ */
	assert_int_equal(run0(b, URDMA_CMD_ALLOC_PD, 1), URDMA_CS_OK);
	good_cq(cmd, 2);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_CQ, 8), URDMA_CS_OK);
	w->hold_fence = true;
	dc = issue(b, zero, URDMA_CMD_DESTROY_CQ, 8);
	good_srq_xrc(cmd, 1, 1, 8);
	ds = issue(b, cmd, URDMA_CMD_CREATE_SRQ, 7);
	tick(b, 1000);
	assert_int_equal(status_of(b, ds), URDMA_CS_BAD_CQ);
	w->hold_fence = false;
	wait_all(b);
	bench_free(b);
}

/* Doorbells of SRQs: the owner's page, in order with all others. */
static void test_srq_doorbells(void **state)
{
	struct bench *b = bench_new(5);
	struct world *w = b->w;
	uint64_t cmd[8], zero[8] = { 0 }, rnd = seed + 99;
	uint32_t sq = 0, srq = 0, cq = 0, n_sq = 0, n_srq = 0, n_cq = 0, foreign = 0;

	(void)state;
	populate(b);
	to_rts(b, 5);
	good_srq(cmd, 1);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 7), URDMA_CS_OK);
	set(cmd, 1, URDMA_CMD_SRQ1_DB_PAGE, 0);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 1023), URDMA_CS_OK);
	ctl_db(b->c, 11, URDMA_DB_SRQ, dbw(7, 3, 0xffff1234));
	ctl_db(b->c, 0, URDMA_DB_SRQ, dbw(1023, 0, 0x8001));
	ctl_db(b->c, 10, URDMA_DB_SRQ, dbw(7, 0, 1)); /* foreign pages */
	ctl_db(b->c, 0, URDMA_DB_SRQ, dbw(7, 0, 1));
	ctl_db(b->c, 11, URDMA_DB_SRQ, dbw(1023, 0, 1));
	ctl_db(b->c, 0, URDMA_DB_SRQ, dbw(8, 0, 1)); /* there is none */
	ctl_db(b->c, 11, URDMA_DB_SRQ, dbw(1024 + 7, 0, 1));
	drain_dbs(b);
	assert_int_equal(w->n_db, 2);
	assert_true(w->db[0].kind == 'S' && w->db[0].obj == 7 && w->db[0].index == 0x1234);
	assert_true(w->db[1].kind == 'S' && w->db[1].obj == 1023 && w->db[1].index == 0x8001);
	assert_int_equal(counter(b, URDMA_CNT_DB_OK), 2);
	assert_int_equal(counter(b, URDMA_CNT_DB_OWNER), 5);
	assert_int_equal(counter(b, URDMA_CNT_DB_BAD), 0);

	/* mixed with those of QPs, whose look-up takes another time, and of CQs, which need none */
	w->n_db = 0;
	for (uint32_t i = 0; i < 3000; i++) {
		switch (rnd_below(&rnd, 5)) {
		case 0:
			ctl_db(b->c, 9, URDMA_DB_SQ, dbw(5, 0, sq++));
			break;
		case 1:
			ctl_db(b->c, 7, URDMA_DB_CQ, dbw(3, 0, cq++));
			break;
		case 2:
			ctl_db(b->c, 8 + rnd_below(&rnd, 3), URDMA_DB_SRQ, dbw(7, 0, 0xbad));
			foreign++;
			break;
		default:
			ctl_db(b->c, 11, URDMA_DB_SRQ, dbw(7, 0, srq++));
		}
	}
	for (uint32_t i = 0; ctl_db_waiting(b->c); i++) {
		w->stall_percent = i % 400 < 200 ? 0 : 60;
		w->hold_db = i % 500 < 20;
		/* commands read QP configurations too */
		if (b->outstanding < 20)
			issue(b, zero, URDMA_CMD_QUERY_QP, 5);
		tick(b, 1);
	}
	w->hold_db = false;
	drain_dbs(b);
	wait_all(b);
	assert_int_equal(w->n_db, sq + cq + srq);
	for (uint32_t i = 0; i < w->n_db; i++) {
		const struct seen_db *d = &w->db[i];

		if (d->kind == 's')
			assert_int_equal(d->index, n_sq++);
		else if (d->kind == 'c')
			assert_int_equal(d->index, n_cq++);
		else
			assert_true(d->kind == 'S' && d->obj == 7 && d->index == n_srq++);
	}
	assert_int_equal(n_srq, srq);
	assert_int_equal(counter(b, URDMA_CNT_DB_OWNER), 5 + foreign);
	assert_int_equal(counter(b, URDMA_CNT_DB_OK), 2 + sq + srq);

	/*
	 * One that is going has no page, whatever else its command says; a fence waits for those
	 * that were taken before.
	 */
	w->n_db = 0;
	w->hold_db = true;
	ctl_db(b->c, 11, URDMA_DB_SRQ, dbw(7, 0, 1));
	tick(b, 50);
	good_srq(cmd, 1);
	uint16_t ds = issue(b, cmd, URDMA_CMD_DESTROY_SRQ, 7);
	tick(b, 1000);
	assert_false(b->done[ds]);
	ctl_db(b->c, 11, URDMA_DB_SRQ, dbw(7, 0, 2));
	tick(b, 50);
	w->hold_db = false;
	wait_all(b);
	drain_dbs(b);
	assert_int_equal(w->n_db, 1);
	assert_int_equal(counter(b, URDMA_CNT_DB_OWNER), 6 + foreign);
	/* its successor has a page of its own */
	good_srq(cmd, 1);
	set(cmd, 1, URDMA_CMD_SRQ1_DB_PAGE, 12);
	assert_int_equal(run(b, cmd, URDMA_CMD_CREATE_SRQ, 7), URDMA_CS_OK);
	ctl_db(b->c, 11, URDMA_DB_SRQ, dbw(7, 0, 1));
	ctl_db(b->c, 12, URDMA_DB_SRQ, dbw(7, 0, 2));
	drain_dbs(b);
	assert_int_equal(w->n_db, 2);
	assert_int_equal(w->db[1].index, 2);
	bench_free(b);
}

static void test_dma_error(void **state)
{
	struct bench *b = bench_new(6);
	struct world *w = b->w;
	uint64_t cmd[8] = { 0 };
	uint32_t fetched;

	(void)state;
	for (int i = 0; i < 10; i++)
		run0(b, URDMA_CMD_NOP, 0);
	assert_int_equal(ctl_reg_read(b->c, URDMA_REG_CMDQ_CI), 10);
	w->err_lo = CMD_RING + 64 * 40;
	w->err_hi = w->err_lo + 64;
	for (int i = 0; i < 50; i++) {
		cmd[0] = word0(URDMA_CMD_NOP, 0, next_tag++);
		put_cmd(b, cmd);
	}
	ring_bell(b);
	tick(b, 5000);
	assert_true(ctl_reg_read(b->c, URDMA_REG_STATUS) & URDMA_RF_STATUS_CMDQ_ERR);
	fetched = ctl_reg_read(b->c, URDMA_REG_CMDQ_CI);
	/* no command of a read that failed, and none after it, is executed */
	assert_true(fetched >= 10 && fetched <= 40);
	assert_int_equal(b->ci, fetched);
	wait_idle(b);

	/* reset is the way out */
	w->err_hi = 0;
	ctl_reg_write(b->c, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
	start(b, 6);
	assert_false(ctl_reg_read(b->c, URDMA_REG_STATUS) & URDMA_RF_STATUS_CMDQ_ERR);
	assert_int_equal(run0(b, URDMA_CMD_NOP, 0), URDMA_CS_OK);

	/* an index beyond the ring */
	ctl_reg_write(b->c, URDMA_REG_CMDQ_PI, b->pi + 65);
	tick(b, 10);
	assert_true(ctl_reg_read(b->c, URDMA_REG_STATUS) & URDMA_RF_STATUS_CMDQ_ERR);
	wait_idle(b);
	bench_free(b);
}

static void test_reset_under_load(void **state)
{
	struct bench *b = bench_new(8);
	struct world *w = b->w;
	uint64_t cmd[8], ok;
	struct seen_gid g;

	(void)state;
	for (int round = 0; round < 4; round++) {
		populate(b);
		to_rts(b, 5);
		w->hold_fence = round & 1;
		w->hold_qpc = round == 2;
		for (uint32_t i = 0; i < 100; i++) {
			good_mr(cmd, 1);
			cmd[0] = word0(i % 3 ? URDMA_CMD_CREATE_MR : URDMA_CMD_QUERY_QP,
				       i % 3 ? 100 + i : 5, next_tag++);
			put_cmd(b, cmd);
			ctl_db(b->c, 9, URDMA_DB_SQ, dbw(5, 0, i));
		}
		memset(cmd, 0, sizeof(cmd));
		cmd[0] = word0(URDMA_CMD_DESTROY_QP, 5, next_tag++);
		put_cmd(b, cmd);
		ring_bell(b);
		tick(b, 60 + 300 * round);
		ok = counter(b, URDMA_CNT_CMD_OK);
		ctl_reg_write(b->c, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
		w->hold_dma_busy = true;
		tick(b, 500);
		/* the blocks stay in reset as long as DMA is out */
		assert_true(ctl_core_rst(b->c));
		assert_false(ctl_reg_read(b->c, URDMA_REG_STATUS) & URDMA_RF_STATUS_READY);
		w->hold_dma_busy = false;
		w->hold_fence = false;
		w->hold_qpc = false;
		drain_dbs(b);
		for (int i = 0; i < N_MR; i++)
			w->mr[i].valid = false;
		start(b, 8);
		/* counters go on over it */
		assert_true(ok > 0 && counter(b, URDMA_CNT_CMD_OK) >= ok);
		assert_int_equal(qp_state(b, 5), 99);
		ctl_gid(b->c, 0, 3, &g);
		assert_false(g.valid);
		assert_int_equal(run0(b, URDMA_CMD_DESTROY_QP, 5), URDMA_CS_BAD_OBJECT);
		assert_int_equal(run0(b, URDMA_CMD_DESTROY_MR, 101), URDMA_CS_BAD_OBJECT);
	}
	bench_free(b);
}

/* ---- random streams against a model ------------------------------------------------------------
 */

#define R_PD 6
#define R_EQ 4
#define R_CQ 8
#define R_QP 12
#define R_MR 16
/* the last of these have windows bound to them */
#define R_BOUND 3
#define R_SRQ	5

struct ref {
	bool pd[R_PD], eq[R_EQ], cq[R_CQ], qp[R_QP], mr[R_MR], srq[R_SRQ];
	/* number of users */
	int pd_n[R_PD], eq_n[R_EQ], cq_n[R_CQ], srq_n[R_SRQ];
	uint32_t cq_eq[R_CQ], qp_pd[R_QP], qp_scq[R_QP], qp_rcq[R_QP], qp_state[R_QP], mr_pd[R_MR];
	uint32_t qp_set[R_QP];
	uint32_t srq_pd[R_SRQ], srq_limit[R_SRQ], qp_srq[R_QP]; /* R_SRQ: it has none */
	uint32_t qp_type[R_QP];
	bool srq_xrc[R_SRQ];
	uint32_t srq_xrcd[R_SRQ], srq_cq[R_SRQ];
	/* a destroy or reset is under way: leave it alone until it is complete */
	int eq_wait[R_EQ], cq_wait[R_CQ], qp_wait[R_QP], mr_wait[R_MR], srq_wait[R_SRQ];
};

struct expect {
	uint32_t status;
	int *wait;
	bool used;
};

/* What the transitions of the specification say, written as a table: from, to. */
static bool may_go(uint32_t from, uint32_t to)
{
	static const char table[7][7] = {
		/* to RESET INIT RTR RTS SQD SQE ERR */
		"1100001", "1110001", "1001001", "1001101", "1001101", "1000001", "1000001",
	};

	return table[from][to] == '1';
}

static uint32_t ref_cmd(struct ref *r, uint64_t *rnd, uint64_t cmd[8], uint32_t *op_out,
			uint32_t *obj_out, int **wait)
{
	uint32_t obj, pd, cq, cq2, eq, srq, state, type, status = URDMA_CS_OK;
	bool xrc, has_sq, has_rq;

	*wait = NULL;
	switch (rnd_below(rnd, 18)) {
	case 0:
		obj = rnd_below(rnd, R_PD);
		*op_out = URDMA_CMD_ALLOC_PD;
		memset(cmd, 0, 64);
		if (r->pd[obj])
			status = URDMA_CS_EXISTS;
		else
			r->pd[obj] = true;
		break;
	case 1:
		obj = rnd_below(rnd, R_PD);
		*op_out = URDMA_CMD_DEALLOC_PD;
		memset(cmd, 0, 64);
		if (!r->pd[obj])
			status = URDMA_CS_BAD_OBJECT;
		else if (r->pd_n[obj])
			status = URDMA_CS_BUSY;
		else
			r->pd[obj] = false;
		break;
	case 2:
		obj = rnd_below(rnd, R_EQ);
		*op_out = URDMA_CMD_CREATE_EQ;
		good_eq(cmd);
		if (r->eq_wait[obj])
			return ~0u;
		if (r->eq[obj])
			status = URDMA_CS_EXISTS;
		else
			r->eq[obj] = true;
		break;
	case 3:
		obj = rnd_below(rnd, R_EQ);
		*op_out = URDMA_CMD_DESTROY_EQ;
		memset(cmd, 0, 64);
		if (!r->eq[obj]) {
			status = URDMA_CS_BAD_OBJECT;
		} else if (r->eq_n[obj]) {
			status = URDMA_CS_BUSY;
		} else {
			r->eq[obj] = false;
			*wait = &r->eq_wait[obj];
		}
		break;
	case 4:
		obj = rnd_below(rnd, R_CQ);
		eq = rnd_below(rnd, R_EQ);
		*op_out = URDMA_CMD_CREATE_CQ;
		good_cq(cmd, eq);
		if (r->cq_wait[obj])
			return ~0u;
		if (r->cq[obj]) {
			status = URDMA_CS_EXISTS;
		} else if (!r->eq[eq]) {
			status = URDMA_CS_BAD_EQ;
		} else {
			r->cq[obj] = true;
			r->cq_eq[obj] = eq;
			r->eq_n[eq]++;
		}
		break;
	case 5:
		obj = rnd_below(rnd, R_CQ);
		*op_out = URDMA_CMD_DESTROY_CQ;
		memset(cmd, 0, 64);
		if (!r->cq[obj]) {
			status = URDMA_CS_BAD_OBJECT;
		} else if (r->cq_n[obj]) {
			status = URDMA_CS_BUSY;
		} else {
			r->cq[obj] = false;
			r->eq_n[r->cq_eq[obj]]--;
			*wait = &r->cq_wait[obj];
		}
		break;
	case 6:
		obj = rnd_below(rnd, R_QP);
		pd = rnd_below(rnd, R_PD);
		cq = rnd_below(rnd, R_CQ);
		cq2 = rnd_below(rnd, R_CQ);
		*op_out = URDMA_CMD_CREATE_QP;
		good_qp(cmd, pd, cq, cq2);
		srq = rnd_below(rnd, 2) ? rnd_below(rnd, R_SRQ) : R_SRQ;
		if (srq != R_SRQ)
			good_qp_srq(cmd, pd, cq, cq2, srq);
		type = rnd_below(rnd, 3) ? URDMA_QPT_RC : URDMA_QPT_XRC_INI + rnd_below(rnd, 2);
		if (type != URDMA_QPT_RC) {
			srq = R_SRQ;
			good_qp_xrc(cmd, pd, cq, type);
		}
		has_sq = type != URDMA_QPT_XRC_TGT;
		has_rq = type == URDMA_QPT_RC;
		if (r->qp_wait[obj])
			return ~0u;
		if (r->qp[obj]) {
			status = URDMA_CS_EXISTS;
		} else if (!r->pd[pd]) {
			status = URDMA_CS_BAD_PD;
		} else if ((has_sq && !r->cq[cq]) || (has_rq && !r->cq[cq2])) {
			status = URDMA_CS_BAD_CQ;
		} else if (srq != R_SRQ && (!r->srq[srq] || r->srq_xrc[srq])) {
			status = URDMA_CS_BAD_SRQ;
		} else {
			r->qp_type[obj] = type;
			r->qp_srq[obj] = srq;
			if (srq != R_SRQ)
				r->srq_n[srq]++;
			r->qp[obj] = true;
			r->qp_state[obj] = URDMA_QPS_RESET;
			r->qp_set[obj] = 0;
			r->qp_pd[obj] = pd;
			r->qp_scq[obj] = cq;
			r->qp_rcq[obj] = cq2;
			r->pd_n[pd]++;
			r->cq_n[cq] += has_sq;
			r->cq_n[cq2] += has_rq;
		}
		break;
	case 7:
		obj = rnd_below(rnd, R_QP);
		*op_out = URDMA_CMD_DESTROY_QP;
		memset(cmd, 0, 64);
		if (!r->qp[obj]) {
			status = URDMA_CS_BAD_OBJECT;
		} else {
			r->qp[obj] = false;
			r->pd_n[r->qp_pd[obj]]--;
			r->cq_n[r->qp_scq[obj]] -= r->qp_type[obj] != URDMA_QPT_XRC_TGT;
			r->cq_n[r->qp_rcq[obj]] -= r->qp_type[obj] == URDMA_QPT_RC;
			if (r->qp_srq[obj] != R_SRQ)
				r->srq_n[r->qp_srq[obj]]--;
			*wait = &r->qp_wait[obj];
		}
		break;
	case 8:
	case 9:
		obj = rnd_below(rnd, R_QP);
		state = rnd_below(rnd, 7);
		*op_out = URDMA_CMD_MODIFY_QP;
		if (r->qp_wait[obj] && r->qp[obj])
			return ~0u;
		if (r->qp[obj] && rnd_below(rnd, 3) && r->qp_state[obj] < URDMA_QPS_RTS)
			state = r->qp_state[obj] + 1;
		modify_type = r->qp[obj] ? r->qp_type[obj] : URDMA_QPT_RC;
		good_modify(cmd, state);
		modify_type = URDMA_QPT_RC;
		if (r->qp[obj] && r->qp_state[obj] >= URDMA_QPS_RTS && state == URDMA_QPS_RTS)
			cmd[1] &= ~(URDMA_CMD_MOD1_MASK & ~URDMA_QPM_STATE);
		if (!r->qp[obj]) {
			status = URDMA_CS_BAD_OBJECT;
		} else if (!may_go(r->qp_state[obj], state)) {
			status = URDMA_CS_BAD_STATE;
		} else {
			r->qp_state[obj] = state;
			if (state == URDMA_QPS_RESET)
				*wait = &r->qp_wait[obj];
		}
		break;
	case 10:
		obj = rnd_below(rnd, R_MR);
		pd = rnd_below(rnd, R_PD);
		*op_out = URDMA_CMD_CREATE_MR;
		good_mr(cmd, pd);
		set(cmd, 1, URDMA_CMD_MR1_KIND, rnd_below(rnd, 3));
		if (r->mr_wait[obj])
			return ~0u;
		if (r->mr[obj]) {
			status = URDMA_CS_EXISTS;
		} else if (!r->pd[pd]) {
			status = URDMA_CS_BAD_PD;
		} else {
			r->mr[obj] = true;
			r->mr_pd[obj] = pd;
			r->pd_n[pd]++;
		}
		break;
	case 12:
		obj = rnd_below(rnd, R_SRQ);
		pd = rnd_below(rnd, R_PD);
		*op_out = URDMA_CMD_CREATE_SRQ;
		xrc = rnd_below(rnd, 2);
		eq = rnd_below(rnd, R_PD); /* the domain */
		cq = rnd_below(rnd, R_CQ);
		good_srq_xrc(cmd, pd, eq, cq);
		if (!xrc)
			cmd[1] &= ~URDMA_CMD_SRQ1_XRC;
		if (r->srq_wait[obj])
			return ~0u;
		if (r->srq[obj]) {
			status = URDMA_CS_EXISTS;
		} else if (!r->pd[pd] || (xrc && !r->pd[eq])) {
			status = URDMA_CS_BAD_PD;
		} else if (xrc && !r->cq[cq]) {
			status = URDMA_CS_BAD_CQ;
		} else {
			r->srq_xrc[obj] = xrc;
			r->srq_xrcd[obj] = eq;
			r->srq_cq[obj] = cq;
			r->pd_n[eq] += xrc;
			r->cq_n[cq] += xrc;
			r->srq[obj] = true;
			r->srq_pd[obj] = pd;
			r->srq_limit[obj] = 0;
			r->pd_n[pd]++;
		}
		break;
	case 13:
		obj = rnd_below(rnd, R_SRQ);
		*op_out = URDMA_CMD_DESTROY_SRQ;
		memset(cmd, 0, 64);
		if (!r->srq[obj]) {
			status = URDMA_CS_BAD_OBJECT;
		} else if (r->srq_n[obj]) {
			status = URDMA_CS_BUSY;
		} else {
			r->srq[obj] = false;
			r->pd_n[r->srq_pd[obj]]--;
			r->pd_n[r->srq_xrcd[obj]] -= r->srq_xrc[obj];
			r->cq_n[r->srq_cq[obj]] -= r->srq_xrc[obj];
			*wait = &r->srq_wait[obj];
		}
		break;
	case 14:
		obj = rnd_below(rnd, R_SRQ);
		*op_out = URDMA_CMD_MODIFY_SRQ;
		memset(cmd, 0, 64);
		cmd[1] = rnd_below(rnd, 1200);
		if (!r->srq[obj])
			status = URDMA_CS_BAD_OBJECT;
		else if (cmd[1] > 1024)
			status = URDMA_CS_BAD_ATTR;
		else
			r->srq_limit[obj] = cmd[1];
		break;
	case 15:
		obj = rnd_below(rnd, R_CQ);
		*op_out = URDMA_CMD_MODIFY_CQ;
		memset(cmd, 0, 64);
		cmd[1] = rnd_below(rnd, 1 << 30);
		if (!r->cq[obj])
			status = URDMA_CS_BAD_OBJECT;
		break;
	case 16:
		obj = rnd_below(rnd, R_CQ);
		*op_out = URDMA_CMD_RESIZE_CQ;
		good_resize(cmd);
		if (!r->cq[obj])
			status = URDMA_CS_BAD_OBJECT;
		break;
	case 17:
		obj = rnd_below(rnd, R_QP);
		*op_out = URDMA_CMD_SET_QP_CNT;
		memset(cmd, 0, 64);
		cmd[1] = rnd_below(rnd, 300);
		if (!r->qp[obj])
			status = URDMA_CS_BAD_OBJECT;
		else if (cmd[1] > 255)
			status = URDMA_CS_BAD_ATTR;
		else
			r->qp_set[obj] = cmd[1];
		break;
	default:
		obj = rnd_below(rnd, R_MR);
		*op_out = URDMA_CMD_DESTROY_MR;
		memset(cmd, 0, 64);
		if (!r->mr[obj]) {
			status = URDMA_CS_BAD_OBJECT;
		} else if (obj >= R_MR - R_BOUND) {
			status = URDMA_CS_BUSY;
		} else {
			r->mr[obj] = false;
			r->pd_n[r->mr_pd[obj]]--;
			*wait = &r->mr_wait[obj];
		}
		break;
	}
	*obj_out = obj;
	return status;
}

static struct expect expected[TAGS];

static void collect(struct bench *b, uint16_t *from, uint16_t to)
{
	for (uint16_t t = *from; t != to; t++) {
		struct expect *e = &expected[t];

		if (!e->used || !b->done[t])
			continue;
		if (status_of(b, t) != e->status)
			print_error("tag %u: status %u, the model says %u (seed %" PRIu64 ")\n", t,
				    status_of(b, t), e->status, seed);
		assert_int_equal(status_of(b, t), e->status);
		if (e->wait)
			(*e->wait)--;
		e->used = false;
	}
	while (*from != to && !expected[*from].used)
		(*from)++;
}

static void random_stream(uint32_t log_size, uint32_t commands)
{
	struct bench *b = bench_new(log_size);
	struct ref *r = calloc(1, sizeof(*r));
	uint64_t rnd = seed * 77 + log_size, cmd[8];
	uint16_t from, t0;
	uint32_t sent = 0, ok = 0;

	assert_non_null(r);
	good_gid(cmd);
	assert_int_equal(run(b, cmd, URDMA_CMD_SET_GID, 3), URDMA_CS_OK);
	for (uint32_t i = R_MR - R_BOUND; i < R_MR; i++)
		b->w->mr[i].bound = true;
	from = t0 = next_tag;
	while (sent < commands) {
		uint32_t burst = 1 + rnd_below(&rnd, 40);

		b->w->stall_percent = rnd_below(&rnd, 60);
		b->w->fence_delay_max = rnd_below(&rnd, 500);
		b->w->qpc_delay_max = rnd_below(&rnd, 100);
		b->w->mro_delay_max = rnd_below(&rnd, 60);
		b->w->sro_delay_max = rnd_below(&rnd, 60);
		b->w->qco_delay_max = rnd_below(&rnd, 60);
		while (burst-- && b->outstanding < (1u << log_size)) {
			uint32_t op, obj, status;
			int *wait;

			status = ref_cmd(r, &rnd, cmd, &op, &obj, &wait);
			if (status == ~0u)
				continue;
			if (wait)
				(*wait)++;
			ok += status == URDMA_CS_OK;
			expected[next_tag] = (struct expect){ status, wait, true };
			b->done[next_tag] = false;
			cmd[0] = word0(op, obj, next_tag++) |
				 (rnd_below(&rnd, 2) ? URDMA_CMD0_EVENT : 0);
			put_cmd(b, cmd);
			sent++;
		}
		ring_bell(b);
		tick(b, rnd_below(&rnd, 1500));
		collect(b, &from, next_tag);
	}
	wait_all(b);
	collect(b, &from, next_tag);
	assert_int_equal(from, next_tag);
	wait_idle(b);
	/*
	 * A stream that is nearly all refusals would prove little. One command in four is good; a
	 * short stream that begins without PDs may have few of them.
	 */
	assert_true(ok > (commands < 1000 ? 0 : commands / 10));
	for (uint32_t i = 0; i < R_MR; i++)
		assert_int_equal(b->w->mr[i].valid, r->mr[i]);
	for (uint32_t i = 0; i < R_CQ; i++)
		assert_int_equal(b->w->cq[i].valid, r->cq[i]);
	for (uint32_t i = 0; i < R_EQ; i++)
		assert_int_equal(b->w->eq[i].valid, r->eq[i]);
	for (uint32_t i = 0; i < R_SRQ; i++) {
		assert_int_equal(b->w->srq[i].valid, r->srq[i]);
		assert_int_equal(b->w->srq[i].limit, r->srq[i] ? r->srq_limit[i] : 0);
	}
	for (uint32_t i = 0; i < R_QP; i++) {
		assert_int_equal(qp_state(b, i), r->qp[i] ? r->qp_state[i] : 99);
		assert_int_equal(b->w->qp_set[i], r->qp[i] ? r->qp_set[i] : 0);
	}
	assert_int_equal(counter(b, URDMA_CNT_CMD_OK), ok + 1);
	assert_int_equal(counter(b, URDMA_CNT_CMD_ERR), sent - ok);
	free(r);
	bench_free(b);
}

static void test_random(void **state)
{
	(void)state;
	random_stream(0, 150);
	random_stream(3, 1500);
	random_stream(8, 6000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_fence_flush),
		cmocka_unit_test(test_cq),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_modify),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_qp_events),
		cmocka_unit_test(test_doorbells),
		cmocka_unit_test(test_eth_doorbells),
		cmocka_unit_test(test_eth_registers),
		cmocka_unit_test(test_gid_told),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_qp_err),
		cmocka_unit_test(test_throughput),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_dma_error),
		cmocka_unit_test(test_reset_under_load),
		cmocka_unit_test(test_srq),
		cmocka_unit_test(test_srq_doorbells),
		cmocka_unit_test(test_xrc),
		cmocka_unit_test(test_random),
	};

	seed = test_seed(seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
