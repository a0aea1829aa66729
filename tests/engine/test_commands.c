// SPDX-License-Identifier: Apache-2.0
/*
 * Commands, registers, doorbells, events and reset, through the whole NIC.
 *
 * Every command with bad arguments has to complete with its status and change nothing. The test
 * then checks what the command would have changed: the object does not exist (destroying it fails),
 * it holds no reference (its parents can still be destroyed), QUERY_QP of a QP answers as before,
 * and messages still pass. A failure prints the row of the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "rig.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Numbers of objects of these tests, next to those of the rig. */
#define NEW_PD	33u
#define NEW_EQ	5u
#define NEW_CQ	100u
#define NEW_QP	200u
#define NEW_MR	300u
#define NEW_DBP 7u

/* ---- commands made by hand ---- */

static struct urdma_eh_cmd command(unsigned int opcode, uint32_t obj)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, opcode) | URDMA_SET(URDMA_CMD0_OBJ, obj);
	return cmd;
}

static int run(struct rig *rig, struct urdma_eh_cmd cmd)
{
	int ret = urdma_eh_cmd(rig->side[0].eh, &cmd, NULL);

	if (ret < 0)
		rig_check(rig, ret, "command");
	return ret;
}

static int run_simple(struct rig *rig, unsigned int opcode, uint32_t obj)
{
	return run(rig, command(opcode, obj));
}

static void set(struct urdma_eh_cmd *cmd, unsigned int word, uint64_t mask, uint64_t value)
{
	cmd->w[word] = (cmd->w[word] & ~mask) | ((value << __builtin_ctzll(mask)) & mask);
}

static uint64_t ring_word(unsigned int log, unsigned int stride, unsigned int levels,
			  unsigned int shift)
{
	return URDMA_SET(URDMA_RING_LOG_ENTRIES, log) | URDMA_SET(URDMA_RING_LOG_STRIDE, stride) |
	       URDMA_SET(URDMA_RING_LEVELS, levels) | URDMA_SET(URDMA_RING_PAGE_SHIFT, shift);
}

/* Good commands. Memory is one contiguous piece; its first page serves as page table as well. */
enum base { EQ, CQ, CQ_TABLE, QP, QP_TABLE, MR, MR_TABLE, MR_ALL, GID, BASES };

static const unsigned int base_destroy[BASES] = {
	[EQ] = URDMA_CMD_DESTROY_EQ,	   [CQ] = URDMA_CMD_DESTROY_CQ,
	[CQ_TABLE] = URDMA_CMD_DESTROY_CQ, [QP] = URDMA_CMD_DESTROY_QP,
	[QP_TABLE] = URDMA_CMD_DESTROY_QP, [MR] = URDMA_CMD_DESTROY_MR,
	[MR_TABLE] = URDMA_CMD_DESTROY_MR, [MR_ALL] = URDMA_CMD_DESTROY_MR,
};

static struct urdma_eh_cmd good(enum base base, uint64_t memory)
{
	unsigned int levels = base == CQ_TABLE || base == QP_TABLE || base == MR_TABLE;
	struct urdma_eh_cmd cmd;

	switch (base) {
	case EQ:
		cmd = command(URDMA_CMD_CREATE_EQ, NEW_EQ);
		cmd.w[1] = URDMA_SET(URDMA_CMD_EQ1_LOG_ENTRIES, 4) |
			   URDMA_SET(URDMA_CMD_EQ1_VECTOR, 3);
		cmd.w[2] = memory;
		break;
	case CQ:
	case CQ_TABLE:
		cmd = command(URDMA_CMD_CREATE_CQ, NEW_CQ);
		cmd.w[1] = URDMA_SET(URDMA_CMD_CQ1_RING, ring_word(4, 5, levels, 12)) |
			   URDMA_SET(URDMA_CMD_CQ1_EQN, 1) |
			   URDMA_SET(URDMA_CMD_CQ1_DB_PAGE, NEW_DBP);
		cmd.w[2] = memory;
		break;
	case QP:
	case QP_TABLE:
		cmd = command(URDMA_CMD_CREATE_QP, NEW_QP);
		cmd.w[1] = URDMA_SET(URDMA_CMD_QP1_PD, RIG_PD) |
			   URDMA_SET(URDMA_CMD_QP1_DB_PAGE, NEW_DBP) |
			   URDMA_SET(URDMA_CMD_QP1_TYPE, URDMA_QPT_RC) |
			   URDMA_SET(URDMA_CMD_QP1_SEND_CQ, 1);
		cmd.w[2] = URDMA_SET(URDMA_CMD_QP2_RECV_CQ, 2);
		cmd.w[3] = ring_word(4, 6, levels, 12);
		cmd.w[4] = memory;
		cmd.w[5] = ring_word(4, 6, levels, 12);
		cmd.w[6] = memory;
		break;
	case MR:
	case MR_TABLE:
	case MR_ALL:
		cmd = command(URDMA_CMD_CREATE_MR, NEW_MR);
		cmd.w[1] = URDMA_SET(URDMA_CMD_MR1_PD, RIG_PD) |
			   URDMA_SET(URDMA_CMD_MR1_ACCESS, URDMA_ACC_LOCAL_WRITE) |
			   URDMA_SET(URDMA_CMD_MR1_VARIANT, 0x11) |
			   URDMA_SET(URDMA_CMD_MR1_LEVELS, levels) |
			   URDMA_SET(URDMA_CMD_MR1_PAGE_SHIFT, 12) |
			   (base == MR_ALL ? URDMA_CMD_MR1_ALL : 0);
		cmd.w[2] = 0x7f0000001234;
		cmd.w[3] = 4096;
		cmd.w[4] = memory;
		break;
	default:
		cmd = command(URDMA_CMD_SET_GID, 7);
		cmd.w[1] = URDMA_CMD_GID1_VALID;
		cmd.w[3] = 0xfd;
	}
	return cmd;
}

/* Changes one field of a good command. Word 0's field is the object. */
#define OBJ(value)	  0, URDMA_CMD0_OBJ, value
#define ADDR(word, value) word, ~UINT64_C(0), value
#define LOW(word, value)  word, UINT64_C(0xfff), value

static const struct bad {
	const char *name;
	enum base base;
	unsigned int word;
	uint64_t mask, value;
	int status;
} bad_table[] = {
	{ "EQ number out of range", EQ, OBJ(64), URDMA_CS_BAD_OBJECT },
	{ "EQ number far out of range", EQ, OBJ(0xffffff), URDMA_CS_BAD_OBJECT },
	{ "EQ number out of range, low bits of one that exists", EQ, OBJ(65), URDMA_CS_BAD_OBJECT },
	{ "EQ exists", EQ, OBJ(1), URDMA_CS_EXISTS },
	{ "EQ too large", EQ, 1, URDMA_CMD_EQ1_LOG_ENTRIES, 17, URDMA_CS_BAD_SIZE },
	{ "EQ far too large", EQ, 1, URDMA_CMD_EQ1_LOG_ENTRIES, 31, URDMA_CS_BAD_SIZE },
	{ "EQ at 16 bytes", EQ, LOW(2, 16), URDMA_CS_BAD_ALIGN },
	{ "EQ at half a page", EQ, LOW(2, 2048), URDMA_CS_BAD_ALIGN },

	{ "CQ number out of range", CQ, OBJ(4096), URDMA_CS_BAD_OBJECT },
	{ "CQ number out of range, low bits of one that exists", CQ, OBJ(4097),
	  URDMA_CS_BAD_OBJECT },
	{ "CQ exists", CQ, OBJ(2), URDMA_CS_EXISTS },
	{ "CQ of an EQ that is not there", CQ, 1, URDMA_CMD_CQ1_EQN, 63, URDMA_CS_BAD_EQ },
	{ "CQ of doorbell page 1024", CQ, 1, URDMA_CMD_CQ1_DB_PAGE, 1024, URDMA_CS_BAD_DB_PAGE },
	{ "CQ of doorbell page 4095", CQ, 1, URDMA_CMD_CQ1_DB_PAGE, 4095, URDMA_CS_BAD_DB_PAGE },
	{ "CQ too large", CQ, 1, URDMA_RING_LOG_ENTRIES, 21, URDMA_CS_BAD_SIZE },
	{ "CQ stride 16", CQ, 1, URDMA_RING_LOG_STRIDE, 4, URDMA_CS_BAD_SIZE },
	{ "CQ stride 64", CQ, 1, URDMA_RING_LOG_STRIDE, 6, URDMA_CS_BAD_SIZE },
	{ "CQ of 3 levels", CQ, 1, URDMA_RING_LEVELS, 3, URDMA_CS_BAD_SIZE },
	{ "CQ pages of 2 KB", CQ_TABLE, 1, URDMA_RING_PAGE_SHIFT, 11, URDMA_CS_BAD_SIZE },
	{ "CQ pages of 1 byte", CQ_TABLE, 1, URDMA_RING_PAGE_SHIFT, 0, URDMA_CS_BAD_SIZE },
	{ "CQ pages of 4 GB", CQ_TABLE, 1, URDMA_RING_PAGE_SHIFT, 32, URDMA_CS_BAD_SIZE },
	{ "CQ pages of 2^63", CQ_TABLE, 1, URDMA_RING_PAGE_SHIFT, 63, URDMA_CS_BAD_SIZE },
	{ "CQ ring at 64 bytes", CQ, LOW(2, 64), URDMA_CS_BAD_ALIGN },
	{ "CQ table at 8 bytes", CQ_TABLE, LOW(2, 8), URDMA_CS_BAD_ALIGN },

	{ "QP number out of range", QP, OBJ(4096), URDMA_CS_BAD_OBJECT },
	{ "QP number out of range, low bits of one that exists", QP, OBJ(4096 + RIG_QPN(0)),
	  URDMA_CS_BAD_OBJECT },
	{ "QP exists", QP, OBJ(RIG_QPN(0)), URDMA_CS_EXISTS },
	{ "QP of a PD that is not there", QP, 1, URDMA_CMD_QP1_PD, 999, URDMA_CS_BAD_PD },
	{ "QP of a PD out of range, low bits of one that exists", QP, 1, URDMA_CMD_QP1_PD,
	  4096 + RIG_PD, URDMA_CS_BAD_PD },
	{ "QP without a send CQ", QP, 1, URDMA_CMD_QP1_SEND_CQ, 999, URDMA_CS_BAD_CQ },
	{ "QP of a send CQ out of range", QP, 1, URDMA_CMD_QP1_SEND_CQ, 4097, URDMA_CS_BAD_CQ },
	{ "QP without a receive CQ", QP, 2, URDMA_CMD_QP2_RECV_CQ, 999, URDMA_CS_BAD_CQ },
	{ "QP of a receive CQ out of range", QP, 2, URDMA_CMD_QP2_RECV_CQ, 4098, URDMA_CS_BAD_CQ },
	{ "QP of doorbell page 1024", QP, 1, URDMA_CMD_QP1_DB_PAGE, 1024, URDMA_CS_BAD_DB_PAGE },
	{ "QP of type 0", QP, 1, URDMA_CMD_QP1_TYPE, 0, URDMA_CS_BAD_ATTR },
	{ "QP of type 5", QP, 1, URDMA_CMD_QP1_TYPE, 5, URDMA_CS_BAD_ATTR },
	{ "UD QP with send WQEs of 64 bytes", QP, 1, URDMA_CMD_QP1_TYPE, URDMA_QPT_UD,
	  URDMA_CS_BAD_SIZE },
	{ "SQ too large", QP, 3, URDMA_RING_LOG_ENTRIES, 16, URDMA_CS_BAD_SIZE },
	{ "SQ stride 32", QP, 3, URDMA_RING_LOG_STRIDE, 5, URDMA_CS_BAD_SIZE },
	{ "SQ stride 1024", QP, 3, URDMA_RING_LOG_STRIDE, 10, URDMA_CS_BAD_SIZE },
	{ "SQ of 3 levels", QP, 3, URDMA_RING_LEVELS, 3, URDMA_CS_BAD_SIZE },
	{ "SQ pages of 2 KB", QP_TABLE, 3, URDMA_RING_PAGE_SHIFT, 11, URDMA_CS_BAD_SIZE },
	{ "SQ pages of 4 GB", QP_TABLE, 3, URDMA_RING_PAGE_SHIFT, 32, URDMA_CS_BAD_SIZE },
	{ "SQ at 64 bytes", QP, LOW(4, 64), URDMA_CS_BAD_ALIGN },
	{ "SQ table at 8 bytes", QP_TABLE, LOW(4, 8), URDMA_CS_BAD_ALIGN },
	{ "RQ too large", QP, 5, URDMA_RING_LOG_ENTRIES, 31, URDMA_CS_BAD_SIZE },
	{ "RQ stride 1", QP, 5, URDMA_RING_LOG_STRIDE, 0, URDMA_CS_BAD_SIZE },
	{ "RQ stride 1024", QP, 5, URDMA_RING_LOG_STRIDE, 10, URDMA_CS_BAD_SIZE },
	{ "RQ of 3 levels", QP, 5, URDMA_RING_LEVELS, 3, URDMA_CS_BAD_SIZE },
	{ "RQ pages of 2 KB", QP_TABLE, 5, URDMA_RING_PAGE_SHIFT, 11, URDMA_CS_BAD_SIZE },
	{ "RQ at 64 bytes", QP, LOW(6, 64), URDMA_CS_BAD_ALIGN },
	{ "RQ table at 8 bytes", QP_TABLE, LOW(6, 8), URDMA_CS_BAD_ALIGN },

	{ "MR number out of range", MR, OBJ(16384), URDMA_CS_BAD_OBJECT },
	{ "MR number out of range, low bits of one that exists", MR, OBJ(16385),
	  URDMA_CS_BAD_OBJECT },
	{ "MR exists", MR, OBJ(1), URDMA_CS_EXISTS },
	{ "MR of a PD that is not there", MR, 1, URDMA_CMD_MR1_PD, 999, URDMA_CS_BAD_PD },
	{ "MR of a PD out of range, low bits of one that exists", MR, 1, URDMA_CMD_MR1_PD,
	  4096 + RIG_PD, URDMA_CS_BAD_PD },
	{ "MR of all memory, no PD", MR_ALL, 1, URDMA_CMD_MR1_PD, 999, URDMA_CS_BAD_PD },
	{ "MR remote write without local write", MR, 1, URDMA_CMD_MR1_ACCESS,
	  URDMA_ACC_REMOTE_WRITE, URDMA_CS_BAD_ATTR },
	{ "MR remote atomic without local write", MR, 1, URDMA_CMD_MR1_ACCESS,
	  URDMA_ACC_REMOTE_ATOMIC | URDMA_ACC_REMOTE_READ, URDMA_CS_BAD_ATTR },
	{ "MR of 3 levels", MR, 1, URDMA_CMD_MR1_LEVELS, 3, URDMA_CS_BAD_SIZE },
	{ "MR pages of 2 KB", MR_TABLE, 1, URDMA_CMD_MR1_PAGE_SHIFT, 11, URDMA_CS_BAD_SIZE },
	{ "MR pages of 4 GB", MR_TABLE, 1, URDMA_CMD_MR1_PAGE_SHIFT, 32, URDMA_CS_BAD_SIZE },
	{ "MR that wraps around by one byte", MR, ADDR(2, -UINT64_C(4095)), URDMA_CS_BAD_SIZE },
	{ "MR longer than the address space", MR, ADDR(3, ~UINT64_C(0)), URDMA_CS_BAD_SIZE },
	{ "MR at 64 bytes", MR, LOW(4, 64), URDMA_CS_BAD_ALIGN },
	{ "MR table at 8 bytes", MR_TABLE, LOW(4, 8), URDMA_CS_BAD_ALIGN },

	{ "GID index out of range", GID, OBJ(32), URDMA_CS_BAD_OBJECT },
	{ "GID index far out of range", GID, OBJ(0xffffff), URDMA_CS_BAD_OBJECT },
};

static void test_bad_create(void **state)
{
	struct rig_config config;
	struct rig rig;
	uint64_t memory;
	uint8_t *p;

	(void)state;
	rig_defaults(&config);
	rig_start(&rig, &config);
	p = urdma_embedded_alloc_contig(rig.host, 65536, 65536);
	memory = urdma_embedded_bus(rig.host, p);
	((uint64_t *)p)[0] = memory + 4096;
	for (unsigned int i = 0; i < COUNT(bad_table); i++) {
		const struct bad *b = &bad_table[i];
		struct urdma_eh_cmd cmd = good(b->base, memory);
		bool is_new = !(b->mask == URDMA_CMD0_OBJ && !b->word);
		int status;

		set(&cmd, b->word, b->mask, b->value);
		status = run(&rig, cmd);
		if (status != b->status)
			fail_msg("%s: status %d instead of %d", b->name, status, b->status);
		if (is_new && b->base != GID) {
			status = run_simple(&rig, base_destroy[b->base],
					    URDMA_GET(URDMA_CMD0_OBJ, cmd.w[0]));
			if (status != URDMA_CS_BAD_OBJECT)
				fail_msg("%s: the object was made: %d", b->name, status);
		}
	}
	/* The commands that the rows start from succeed, whatever ran before. */
	for (enum base base = EQ; base < GID; base++) {
		struct urdma_eh_cmd cmd = good(base, memory);
		uint32_t obj = URDMA_GET(URDMA_CMD0_OBJ, cmd.w[0]);

		assert_int_equal(run(&rig, cmd), URDMA_CS_OK);
		assert_int_equal(run(&rig, cmd), URDMA_CS_EXISTS);
		assert_int_equal(run_simple(&rig, base_destroy[base], obj), URDMA_CS_OK);
		assert_int_equal(run_simple(&rig, base_destroy[base], obj), URDMA_CS_BAD_OBJECT);
	}
	/* The limits themselves. */
	struct urdma_eh_cmd cmd = good(MR, memory);

	cmd.w[2] = -UINT64_C(4096); /* ends with the last byte there is */
	assert_int_equal(run(&rig, cmd), URDMA_CS_OK);
	assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_MR, NEW_MR), URDMA_CS_OK);
	cmd.w[3] = 0;
	assert_int_equal(run(&rig, cmd), URDMA_CS_OK);
	assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_MR, NEW_MR), URDMA_CS_OK);
	cmd = good(QP_TABLE, memory);
	set(&cmd, 0, URDMA_CMD0_OBJ, 4095);
	set(&cmd, 3, URDMA_RING_LOG_ENTRIES, 15);
	set(&cmd, 5, URDMA_RING_PAGE_SHIFT, 31);
	set(&cmd, 1, URDMA_CMD_QP1_DB_PAGE, 1023);
	assert_int_equal(run(&rig, cmd), URDMA_CS_OK);
	assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_QP, 4095), URDMA_CS_OK);

	/* The existing objects are unchanged, and refused ones hold no reference to them. */
	rig_message(&rig, 0, 0, 0, 10000, 1);
	rig_message(&rig, 0, 1, 0, 10000, 2);
	urdma_embedded_free(rig.host, p);
	rig_stop(&rig);
}

static void test_bad_object(void **state)
{
	static const struct {
		unsigned int opcode, limit, none;
	} table[] = {
		{ URDMA_CMD_DEALLOC_PD, 4096, 999 },   { URDMA_CMD_DESTROY_EQ, 64, 63 },
		{ URDMA_CMD_DESTROY_CQ, 4096, 999 },   { URDMA_CMD_DESTROY_QP, 4096, 999 },
		{ URDMA_CMD_MODIFY_QP, 4096, 999 },    { URDMA_CMD_QUERY_QP, 4096, 999 },
		{ URDMA_CMD_DESTROY_MR, 16384, 999 },  { URDMA_CMD_ATTACH_MCAST, 4096, 999 },
		{ URDMA_CMD_DETACH_MCAST, 4096, 999 }, { URDMA_CMD_MODIFY_SRQ, 1024, 999 },
		{ URDMA_CMD_QUERY_SRQ, 1024, 999 },    { URDMA_CMD_DESTROY_SRQ, 1024, 999 },
		{ URDMA_CMD_MODIFY_CQ, 4096, 999 },    { URDMA_CMD_RESIZE_CQ, 4096, 999 },
		{ URDMA_CMD_SET_QP_CNT, 4096, 999 },   { URDMA_CMD_QUERY_CNT, 256, 257 },
		{ URDMA_CMD_CLEAR_CNT, 256, 257 },
	};
	struct rig_config config;
	struct rig rig;
	uint64_t memory, err_before;
	unsigned int n = 0;
	uint8_t *p;

	(void)state;
	rig_defaults(&config);
	rig_start(&rig, &config);
	err_before = urdma_eh_counter(rig.side[0].eh, URDMA_CNT_CMD_ERR);
	for (unsigned int i = 0; i < COUNT(table); i++) {
		assert_int_equal(run_simple(&rig, table[i].opcode, table[i].none),
				 URDMA_CS_BAD_OBJECT);
		assert_int_equal(run_simple(&rig, table[i].opcode, table[i].limit),
				 URDMA_CS_BAD_OBJECT);
		/* low bits of one that exists */
		assert_int_equal(run_simple(&rig, table[i].opcode, table[i].limit + 1),
				 URDMA_CS_BAD_OBJECT);
		assert_int_equal(run_simple(&rig, table[i].opcode, 0xffffff), URDMA_CS_BAD_OBJECT);
		n += 4;
	}
	assert_int_equal(run_simple(&rig, URDMA_CMD_ALLOC_PD, 4096), URDMA_CS_BAD_OBJECT);
	assert_int_equal(run_simple(&rig, URDMA_CMD_ALLOC_PD, RIG_PD), URDMA_CS_EXISTS);
	n += 2;
	for (unsigned int op = 0; op < 256; op++) {
		static const uint8_t known[] = {
			URDMA_CMD_NOP,		URDMA_CMD_ALLOC_PD,    URDMA_CMD_DEALLOC_PD,
			URDMA_CMD_CREATE_EQ,	URDMA_CMD_DESTROY_EQ,  URDMA_CMD_CREATE_CQ,
			URDMA_CMD_DESTROY_CQ,	URDMA_CMD_CREATE_QP,   URDMA_CMD_MODIFY_QP,
			URDMA_CMD_QUERY_QP,	URDMA_CMD_DESTROY_QP,  URDMA_CMD_CREATE_MR,
			URDMA_CMD_DESTROY_MR,	URDMA_CMD_SET_GID,     URDMA_CMD_ATTACH_MCAST,
			URDMA_CMD_DETACH_MCAST, URDMA_CMD_CREATE_SRQ,  URDMA_CMD_MODIFY_SRQ,
			URDMA_CMD_QUERY_SRQ,	URDMA_CMD_DESTROY_SRQ, URDMA_CMD_MODIFY_CQ,
			URDMA_CMD_RESIZE_CQ,	URDMA_CMD_SET_QP_CNT,  URDMA_CMD_QUERY_CNT,
			URDMA_CMD_CLEAR_CNT,
		};

		if (memchr(known, (int)op, sizeof(known)))
			continue;
		if (run_simple(&rig, op, RIG_QPN(0)) != URDMA_CS_BAD_OPCODE)
			fail_msg("opcode 0x%02x is known", op);
		n++;
	}
	assert_int_equal(urdma_eh_counter(rig.side[0].eh, URDMA_CNT_CMD_ERR) - err_before, n);

	/* In use. */
	assert_int_equal(run_simple(&rig, URDMA_CMD_DEALLOC_PD, RIG_PD), URDMA_CS_BUSY);
	assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_CQ, 1), URDMA_CS_BUSY);
	assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_CQ, 2), URDMA_CS_BUSY);
	assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_EQ, 1), URDMA_CS_BUSY);

	/* Each holder alone: a PD by a QP, by an MR; a CQ by one queue, by both; an EQ by a CQ. */
	p = urdma_embedded_alloc_contig(rig.host, 65536, 65536);
	memory = urdma_embedded_bus(rig.host, p);
	for (unsigned int way = 0; way < 5; way++) {
		struct urdma_eh_cmd eq = good(EQ, memory), cq = good(CQ, memory),
				    qp = good(QP, memory), mr = good(MR, memory);

		assert_int_equal(run_simple(&rig, URDMA_CMD_ALLOC_PD, NEW_PD), URDMA_CS_OK);
		assert_int_equal(run(&rig, eq), URDMA_CS_OK);
		set(&cq, 1, URDMA_CMD_CQ1_EQN, NEW_EQ);
		assert_int_equal(run(&rig, cq), URDMA_CS_OK);
		assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_EQ, NEW_EQ), URDMA_CS_BUSY);
		set(&qp, 1, URDMA_CMD_QP1_PD, NEW_PD);
		if (way == 0 || way == 2)
			set(&qp, 1, URDMA_CMD_QP1_SEND_CQ, NEW_CQ);
		if (way == 1 || way == 2)
			set(&qp, 2, URDMA_CMD_QP2_RECV_CQ, NEW_CQ);
		set(&mr, 1, URDMA_CMD_MR1_PD, NEW_PD);
		if (way < 3) {
			assert_int_equal(run(&rig, qp), URDMA_CS_OK);
			assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_CQ, NEW_CQ),
					 URDMA_CS_BUSY);
		} else {
			assert_int_equal(run(&rig, mr), URDMA_CS_OK);
		}
		assert_int_equal(run_simple(&rig, URDMA_CMD_DEALLOC_PD, NEW_PD), URDMA_CS_BUSY);
		if (way < 3)
			assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_QP, NEW_QP),
					 URDMA_CS_OK);
		else
			assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_MR, NEW_MR),
					 URDMA_CS_OK);
		assert_int_equal(run_simple(&rig, URDMA_CMD_DEALLOC_PD, NEW_PD), URDMA_CS_OK);
		assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_CQ, NEW_CQ), URDMA_CS_OK);
		assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_EQ, NEW_EQ), URDMA_CS_OK);
	}
	urdma_embedded_free(rig.host, p);
	rig_message(&rig, 0, 0, 0, 100, 1);
	rig_stop(&rig);
}

/* ---- MODIFY_QP ---- */

#define QPM_RTR                                                                 \
	(URDMA_QPM_AV | URDMA_QPM_MTU | URDMA_QPM_DEST_QPN | URDMA_QPM_RQ_PSN | \
	 URDMA_QPM_MAX_DEST_RD_ATOMIC | URDMA_QPM_MIN_RNR)
#define QPM_RTS                                                                         \
	(URDMA_QPM_SQ_PSN | URDMA_QPM_TIMEOUT | URDMA_QPM_RETRY | URDMA_QPM_RNR_RETRY | \
	 URDMA_QPM_MAX_RD_ATOMIC)
#define QPM_INIT (URDMA_QPM_PKEY | URDMA_QPM_ACCESS)
#define QPM_SQD                                                                     \
	(URDMA_QPM_AV | URDMA_QPM_TIMEOUT | URDMA_QPM_RETRY | URDMA_QPM_RNR_RETRY | \
	 URDMA_QPM_MAX_RD_ATOMIC | URDMA_QPM_MAX_DEST_RD_ATOMIC | URDMA_QPM_MIN_RNR | QPM_INIT)

/* A command whose values are good for any attribute. */
static struct urdma_eh_cmd modify(uint32_t qpn, uint64_t mask, unsigned int to)
{
	struct urdma_eh_cmd cmd = command(URDMA_CMD_MODIFY_QP, qpn);

	cmd.w[1] = URDMA_SET(URDMA_CMD_MOD1_MASK, mask) | URDMA_SET(URDMA_CMD_MOD1_STATE, to) |
		   URDMA_SET(URDMA_CMD_MOD1_MTU, 3) | URDMA_SET(URDMA_CMD_MOD1_TIMEOUT, 14) |
		   URDMA_SET(URDMA_CMD_MOD1_RETRY, 7);
	cmd.w[2] = URDMA_SET(URDMA_CMD_MOD2_DEST_QPN, 77) |
		   URDMA_SET(URDMA_CMD_MOD2_RQ_PSN, 0x1234) |
		   URDMA_SET(URDMA_CMD_MOD2_MAX_RD_ATOMIC, 16) |
		   URDMA_SET(URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC, 16);
	cmd.w[3] = URDMA_SET(URDMA_CMD_MOD3_SQ_PSN, 0x4321);
	cmd.w[7] = URDMA_SET(URDMA_CMD_MOD7_PKEY, 0xffff);
	return cmd;
}

static void query(struct rig *rig, uint32_t qpn, struct urdma_eh_cmd *cpl)
{
	struct urdma_eh_cmd cmd = command(URDMA_CMD_QUERY_QP, qpn);

	assert_int_equal(urdma_eh_cmd(rig->side[0].eh, &cmd, cpl), URDMA_CS_OK);
	cpl->w[0] = 0; /* tag */
	cpl->w[7] &= ~URDMA_CPL7_PHASE;
}

/* Brings the new QP into a state by the shortest path. */
static void bring(struct rig *rig, unsigned int to)
{
	assert_int_equal(run(rig, modify(NEW_QP, URDMA_QPM_STATE, URDMA_QPS_RESET)), 0);
	if (to == URDMA_QPS_RESET)
		return;
	if (to == URDMA_QPS_ERR) {
		assert_int_equal(run(rig, modify(NEW_QP, URDMA_QPM_STATE, to)), 0);
		return;
	}
	assert_int_equal(run(rig, modify(NEW_QP, URDMA_QPM_STATE | QPM_INIT, URDMA_QPS_INIT)), 0);
	if (to >= URDMA_QPS_RTR)
		assert_int_equal(run(rig, modify(NEW_QP, URDMA_QPM_STATE | QPM_RTR, URDMA_QPS_RTR)),
				 0);
	if (to >= URDMA_QPS_RTS)
		assert_int_equal(run(rig, modify(NEW_QP, URDMA_QPM_STATE | QPM_RTS, URDMA_QPS_RTS)),
				 0);
	if (to >= URDMA_QPS_SQD)
		assert_int_equal(run(rig, modify(NEW_QP, URDMA_QPM_STATE, URDMA_QPS_SQD)), 0);
}

static void refused(struct rig *rig, struct urdma_eh_cmd cmd, int status, const char *what,
		    unsigned int from, unsigned int to)
{
	struct urdma_eh_cmd before, after;
	int got;

	query(rig, NEW_QP, &before);
	got = run(rig, cmd);
	query(rig, NEW_QP, &after);
	if (got != status || memcmp(&before, &after, sizeof(before)))
		fail_msg("%s, state %u to %u: status %d instead of %d%s", what, from, to, got,
			 status,
			 memcmp(&before, &after, sizeof(before)) ? ", and the QP changed" : "");
}

static void test_bad_modify(void **state)
{
	static const unsigned int states[] = { URDMA_QPS_RESET, URDMA_QPS_INIT, URDMA_QPS_RTR,
					       URDMA_QPS_RTS,	URDMA_QPS_SQD,	URDMA_QPS_ERR };
	static const struct {
		unsigned int from, to;
		uint64_t need, may;
	} step[] = {
		{ URDMA_QPS_RESET, URDMA_QPS_INIT, QPM_INIT, 0 },
		{ URDMA_QPS_INIT, URDMA_QPS_INIT, 0, QPM_INIT },
		{ URDMA_QPS_INIT, URDMA_QPS_RTR, QPM_RTR, QPM_INIT },
		{ URDMA_QPS_RTR, URDMA_QPS_RTS, QPM_RTS, URDMA_QPM_ACCESS | URDMA_QPM_MIN_RNR },
		{ URDMA_QPS_RTS, URDMA_QPS_RTS, 0, URDMA_QPM_ACCESS | URDMA_QPM_MIN_RNR },
		{ URDMA_QPS_RTS, URDMA_QPS_SQD, 0, URDMA_QPM_SQD_EVENT },
		{ URDMA_QPS_SQD, URDMA_QPS_SQD, 0, QPM_SQD },
		{ URDMA_QPS_SQD, URDMA_QPS_RTS, 0, URDMA_QPM_ACCESS | URDMA_QPM_MIN_RNR },
		{ URDMA_QPS_RTS, URDMA_QPS_ERR, 0, 0 },
		{ URDMA_QPS_RTS, URDMA_QPS_RESET, 0, 0 },
	};
	struct rig_config config;
	struct urdma_eh_cmd cmd;
	struct rig rig;
	uint8_t *p;

	(void)state;
	rig_defaults(&config);
	rig_start(&rig, &config);
	p = urdma_embedded_alloc_contig(rig.host, 65536, 65536);
	assert_int_equal(run(&rig, good(QP, urdma_embedded_bus(rig.host, p))), 0);

	/* Transitions that do not exist, with every attribute that one could require. */
	for (unsigned int i = 0; i < COUNT(states); i++) {
		for (unsigned int to = 0; to < 16; to++) {
			bool possible = to == URDMA_QPS_RESET || to == URDMA_QPS_ERR;
			uint64_t need = to == URDMA_QPS_RTR ? QPM_RTR : 0;

			for (unsigned int s = 0; s < COUNT(step); s++)
				possible |= step[s].from == states[i] && step[s].to == to;
			if (possible)
				continue;
			if (to == URDMA_QPS_RTS)
				need = QPM_RTS;
			bring(&rig, states[i]);
			refused(&rig, modify(NEW_QP, URDMA_QPM_STATE | need, to),
				to > URDMA_QPS_ERR ? URDMA_CS_BAD_ATTR : URDMA_CS_BAD_STATE,
				"no such transition", states[i], to);
		}
	}
	for (unsigned int s = 0; s < COUNT(step); s++) {
		uint64_t all = URDMA_QPM_STATE | URDMA_QPM_CUR_STATE | step[s].need | step[s].may;

		bring(&rig, step[s].from);
		for (unsigned int bit = 0; bit < 32; bit++) {
			uint64_t m = BIT_ULL(bit);

			if (step[s].need & m)
				refused(&rig,
					modify(NEW_QP, (URDMA_QPM_STATE | step[s].need) & ~m,
					       step[s].to),
					URDMA_CS_BAD_ATTR, "attribute missing", step[s].from,
					step[s].to);
			if (!(all & m))
				refused(&rig,
					modify(NEW_QP, URDMA_QPM_STATE | step[s].need | m,
					       step[s].to),
					URDMA_CS_BAD_ATTR, "attribute not allowed", step[s].from,
					step[s].to);
		}
		/* Every current state except the right one. */
		for (unsigned int cur = 0; cur < 16; cur++) {
			cmd = modify(NEW_QP, URDMA_QPM_STATE | URDMA_QPM_CUR_STATE | step[s].need,
				     step[s].to);
			set(&cmd, 1, URDMA_CMD_MOD1_CUR_STATE, cur);
			if (cur != step[s].from)
				refused(&rig, cmd, URDMA_CS_BAD_STATE, "other current state",
					step[s].from, step[s].to);
		}
		cmd = modify(NEW_QP, all, step[s].to);
		set(&cmd, 1, URDMA_CMD_MOD1_CUR_STATE, step[s].from);
		assert_int_equal(run(&rig, cmd), URDMA_CS_OK);
	}

	/* Values. */
	static const struct {
		const char *name;
		unsigned int word;
		uint64_t mask, value;
		unsigned int to;
	} value[] = {
		{ "MTU 0", 1, URDMA_CMD_MOD1_MTU, 0, URDMA_QPS_RTR },
		{ "MTU 6", 1, URDMA_CMD_MOD1_MTU, 6, URDMA_QPS_RTR },
		{ "MTU 7", 1, URDMA_CMD_MOD1_MTU, 7, URDMA_QPS_RTR },
		{ "MTU 8", 1, URDMA_CMD_MOD1_MTU, 8, URDMA_QPS_RTR },
		{ "MTU 11", 1, URDMA_CMD_MOD1_MTU, 11, URDMA_QPS_RTR },
		{ "GID entry that is empty", 3, URDMA_CMD_MOD3_SGID_INDEX, 9, URDMA_QPS_RTR },
		{ "GID entry out of range", 3, URDMA_CMD_MOD3_SGID_INDEX, 32, URDMA_QPS_RTR },
		{ "GID entry 255", 3, URDMA_CMD_MOD3_SGID_INDEX, 255, URDMA_QPS_RTR },
		{ "17 reads as responder", 2, URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC, 17,
		  URDMA_QPS_RTR },
		{ "17 reads as requester", 2, URDMA_CMD_MOD2_MAX_RD_ATOMIC, 17, URDMA_QPS_RTS },
		{ "255 reads as requester", 2, URDMA_CMD_MOD2_MAX_RD_ATOMIC, 255, URDMA_QPS_RTS },
	};

	for (unsigned int i = 0; i < COUNT(value); i++) {
		unsigned int from = value[i].to - 1;

		bring(&rig, from);
		cmd = modify(NEW_QP, URDMA_QPM_STATE | (from == URDMA_QPS_INIT ? QPM_RTR : QPM_RTS),
			     value[i].to);
		set(&cmd, value[i].word, value[i].mask, value[i].value);
		refused(&rig, cmd, URDMA_CS_BAD_ATTR, value[i].name, from, value[i].to);
	}

	/* Attributes without a transition: only in INIT, RTS and SQD. */
	for (unsigned int i = 0; i < COUNT(states); i++) {
		bring(&rig, states[i]);
		cmd = modify(NEW_QP, URDMA_QPM_ACCESS, 0);
		if (states[i] == URDMA_QPS_INIT || states[i] == URDMA_QPS_RTS ||
		    states[i] == URDMA_QPS_SQD)
			assert_int_equal(run(&rig, cmd), URDMA_CS_OK);
		else
			refused(&rig, cmd, URDMA_CS_BAD_STATE, "attributes alone", states[i],
				states[i]);
	}
	assert_int_equal(run_simple(&rig, URDMA_CMD_DESTROY_QP, NEW_QP), URDMA_CS_OK);
	urdma_embedded_free(rig.host, p);
	rig_message(&rig, 0, 0, 0, 5000, 3);
	rig_message(&rig, 0, 1, 0, 5000, 4);
	rig_stop(&rig);
}

/* ---- many commands in flight ---- */

struct flight {
	struct rig *rig;
	unsigned int posted, done, wrong, order;
	unsigned int total;
	struct urdma_eh_cmd (*make)(unsigned int i, int *status);
	uint64_t first, last; /* cycles of the first and the last completion */
};

struct one {
	struct flight *f;
	int status;
	uint32_t obj;
	bool done;
};

static void flight_done(void *arg, const struct urdma_eh_cmd *cpl)
{
	struct one *o = arg;
	struct flight *f = o->f;

	if ((int)URDMA_GET(URDMA_CPL0_STATUS, cpl->w[0]) != o->status ||
	    URDMA_GET(URDMA_CPL0_OBJ, cpl->w[0]) != o->obj || o->done)
		f->wrong++;
	o->done = true;
	if (!f->done)
		f->first = urdma_cosim_now(f->rig->cosim);
	f->last = urdma_cosim_now(f->rig->cosim);
	f->done++;
}

struct flight_wait {
	struct flight *f;
	struct one *one;
};

/* Keeps the queue as full as possible. */
static bool flight_step(void *arg)
{
	struct flight_wait *w = arg;
	struct flight *f = w->f;
	struct urdma_eh *eh = f->rig->side[0].eh;

	urdma_eh_cmd_poll(eh);
	while (f->posted < f->total) {
		struct one *o = &w->one[f->posted];
		struct urdma_eh_cmd cmd = f->make(f->posted, &o->status);

		o->f = f;
		o->obj = URDMA_GET(URDMA_CMD0_OBJ, cmd.w[0]);
		if (urdma_eh_cmd_post(eh, &cmd, flight_done, o))
			break;
		f->posted++;
	}
	return f->done == f->total;
}

static uint64_t fly(struct rig *rig, unsigned int total,
		    struct urdma_eh_cmd (*make)(unsigned int i, int *status), const char *what)
{
	struct flight f = { .rig = rig, .total = total, .make = make };
	struct flight_wait w = { &f, calloc(total, sizeof(*w.one)) };
	uint64_t start = urdma_cosim_now(rig->cosim), each;

	rig_check(
		rig,
		urdma_cosim_run_cond(rig->cosim, flight_step, &w, start + 100000 + 2000ull * total),
		what);
	free(w.one);
	assert_int_equal(f.done, total);
	if (f.wrong)
		fail_msg("%s: %u of %u completions are wrong", what, f.wrong, total);
	each = (f.last - f.first) / (total - 1);
	print_message("%-28s %u commands, %lu cycles each\n", what, total, (unsigned long)each);
	return each;
}

static uint64_t fly_memory;

static struct urdma_eh_cmd make_nop(unsigned int i, int *status)
{
	*status = URDMA_CS_OK;
	return command(URDMA_CMD_NOP, i);
}

static struct urdma_eh_cmd make_alloc_pd(unsigned int i, int *status)
{
	*status = URDMA_CS_OK;
	return command(URDMA_CMD_ALLOC_PD, 1000 + i);
}

static struct urdma_eh_cmd make_dealloc_pd(unsigned int i, int *status)
{
	*status = URDMA_CS_OK;
	return command(URDMA_CMD_DEALLOC_PD, 1000 + i);
}

static struct urdma_eh_cmd make_create_mr(unsigned int i, int *status)
{
	struct urdma_eh_cmd cmd = good(MR, fly_memory);

	set(&cmd, 0, URDMA_CMD0_OBJ, 1000 + i);
	*status = URDMA_CS_OK;
	return cmd;
}

static struct urdma_eh_cmd make_destroy_mr(unsigned int i, int *status)
{
	*status = URDMA_CS_OK;
	return command(URDMA_CMD_DESTROY_MR, 1000 + i);
}

static struct urdma_eh_cmd make_create_cq(unsigned int i, int *status)
{
	struct urdma_eh_cmd cmd = good(CQ, fly_memory);

	set(&cmd, 0, URDMA_CMD0_OBJ, 1000 + i);
	*status = URDMA_CS_OK;
	return cmd;
}

static struct urdma_eh_cmd make_destroy_cq(unsigned int i, int *status)
{
	*status = URDMA_CS_OK;
	return command(URDMA_CMD_DESTROY_CQ, 1000 + i);
}

static struct urdma_eh_cmd make_create_qp(unsigned int i, int *status)
{
	struct urdma_eh_cmd cmd = good(QP, fly_memory);

	set(&cmd, 0, URDMA_CMD0_OBJ, 1000 + i);
	*status = URDMA_CS_OK;
	return cmd;
}

static struct urdma_eh_cmd make_init_qp(unsigned int i, int *status)
{
	*status = URDMA_CS_OK;
	return modify(1000 + i, URDMA_QPM_STATE | QPM_INIT, URDMA_QPS_INIT);
}

static struct urdma_eh_cmd make_query_qp(unsigned int i, int *status)
{
	*status = URDMA_CS_OK;
	return command(URDMA_CMD_QUERY_QP, 1000 + i);
}

static struct urdma_eh_cmd make_destroy_qp(unsigned int i, int *status)
{
	*status = URDMA_CS_OK;
	return command(URDMA_CMD_DESTROY_QP, 1000 + i);
}

/* Good and bad commands, some of which rely on the one before. */
static struct urdma_eh_cmd make_mixed(unsigned int i, int *status)
{
	unsigned int n = i / 8;
	struct urdma_eh_cmd cmd;

	*status = URDMA_CS_OK;
	switch (i % 8) {
	case 0:
		return command(URDMA_CMD_ALLOC_PD, 2000 + n % 1000);
	case 1:
		cmd = good(QP, fly_memory);
		set(&cmd, 0, URDMA_CMD0_OBJ, 2000 + n % 1000);
		set(&cmd, 1, URDMA_CMD_QP1_PD, 2000 + n % 1000);
		return cmd;
	case 2:
		*status = URDMA_CS_BUSY;
		return command(URDMA_CMD_DEALLOC_PD, 2000 + n % 1000);
	case 3:
		return modify(2000 + n % 1000, URDMA_QPM_STATE | QPM_INIT, URDMA_QPS_INIT);
	case 4:
		*status = URDMA_CS_BAD_OPCODE;
		return command(0xee, n);
	case 5:
		return command(URDMA_CMD_DESTROY_QP, 2000 + n % 1000);
	case 6:
		/* at once: the destruction has released it */
		return command(URDMA_CMD_DEALLOC_PD, 2000 + n % 1000);
	default:
		*status = URDMA_CS_BAD_OBJECT;
		return command(URDMA_CMD_QUERY_QP, 2000 + n % 1000);
	}
}

static void test_many(void **state)
{
	/* Budget: one command per 64 cycles when pipelined, apart from DMA. */
	static const unsigned int budget = 64;
	struct rig_config config;
	struct rig rig;
	uint8_t *p;

	(void)state;
	rig_defaults(&config);
	config.eh.log_cmdq = 8;
	config.cosim.pcie.reorder = true;
	rig_start(&rig, &config);
	p = urdma_embedded_alloc_contig(rig.host, 65536, 65536);
	fly_memory = urdma_embedded_bus(rig.host, p);

	assert_true(fly(&rig, 700, make_nop, "NOP") <= budget);
	assert_true(fly(&rig, 700, make_alloc_pd, "ALLOC_PD") <= budget);
	assert_true(fly(&rig, 700, make_dealloc_pd, "DEALLOC_PD") <= budget);
	assert_true(fly(&rig, 700, make_create_mr, "CREATE_MR") <= budget);
	assert_true(fly(&rig, 700, make_destroy_mr, "DESTROY_MR") <= budget);
	assert_true(fly(&rig, 300, make_create_cq, "CREATE_CQ") <= budget);
	assert_true(fly(&rig, 300, make_destroy_cq, "DESTROY_CQ") <= budget);
	assert_true(fly(&rig, 300, make_create_qp, "CREATE_QP") <= budget);
	assert_true(fly(&rig, 300, make_init_qp, "MODIFY_QP") <= budget);
	assert_true(fly(&rig, 300, make_query_qp, "QUERY_QP") <= budget);
	assert_true(fly(&rig, 300, make_destroy_qp, "DESTROY_QP") <= budget);
	assert_true(fly(&rig, 2000, make_mixed, "mixed, good and bad") <= budget);

	urdma_embedded_free(rig.host, p);
	rig_message(&rig, 0, 0, 0, 5000, 3);
	rig_stop(&rig);
}

/* ---- registers ---- */

static void test_registers(void **state)
{
	struct rig_config config;
	struct urdma_embedded_dev *dev;
	struct rig rig;
	uint64_t version, value, bad;
	uint8_t buf[8];

	(void)state;
	rig_defaults(&config);
	rig_start(&rig, &config);
	dev = urdma_eh_dev(rig.side[0].eh);

	version = urdma_eh_reg(rig.side[0].eh, URDMA_REG_VERSION);
	for (unsigned int at = 0; at < 8; at++) {
		for (unsigned int len = 1; at + len <= 8; len++) {
			memset(buf, 0xcc, sizeof(buf));
			rig_check(&rig,
				  urdma_embedded_read(dev, URDMA_BAR_REGS, URDMA_REG_VERSION + at,
						      buf, len),
				  "register read");
			assert_memory_equal(buf, (uint8_t *)&version + at, len);
			/* and writes MAC in pieces, over a known value */
			if (at + len > 6)
				continue;
			urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_MAC, 0x112233445566);
			value = 0xaabbccddeeff;
			urdma_embedded_write(dev, URDMA_BAR_REGS, URDMA_REG_MAC + at,
					     (uint8_t *)&value + at, len);
			uint64_t want = 0x112233445566;

			memcpy((uint8_t *)&want + at, (uint8_t *)&value + at, len);
			assert_true(urdma_eh_reg(rig.side[0].eh, URDMA_REG_MAC) == want);
		}
	}

	/* An access across two registers is refused and counted, without effect. */
	bad = urdma_eh_counter(rig.side[0].eh, URDMA_CNT_MMIO_BAD);
	assert_int_equal(urdma_embedded_read(dev, URDMA_BAR_REGS, URDMA_REG_VERSION + 4, buf, 8),
			 -EIO);
	value = 0;
	urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_MAC, 0x112233445566);
	urdma_embedded_write(dev, URDMA_BAR_REGS, URDMA_REG_MAC + 4, &value, 8);
	assert_true(urdma_eh_reg(rig.side[0].eh, URDMA_REG_MAC) == 0x112233445566);
	assert_int_equal(urdma_eh_counter(rig.side[0].eh, URDMA_CNT_MMIO_BAD) - bad, 2);

	/* Read-only registers, registers that are fixed while the queue runs, and holes. */
	static const uint64_t fixed[] = {
		URDMA_REG_VERSION,
		URDMA_REG_CAP_OBJ,
		URDMA_REG_CAP_QUEUE,
		URDMA_REG_CAP_XPORT,
		URDMA_REG_CAP_PAGES,
		URDMA_REG_CAP_FEATURES,
		URDMA_REG_STATUS,
		URDMA_REG_CLOCK_HZ,
		URDMA_REG_CMDQ_BASE,
		URDMA_REG_CMDQ_CPL_BASE,
		URDMA_REG_CMDQ_LOG_SIZE,
		URDMA_REG_CMDQ_CI,
		0x0038,
		0x0ff8,
		0xfff8,
	};

	for (unsigned int i = 0; i < COUNT(fixed); i++) {
		uint64_t before = urdma_eh_reg(rig.side[0].eh, fixed[i]);

		urdma_embedded_write64(dev, URDMA_BAR_REGS, fixed[i], ~before);
		if (urdma_eh_reg(rig.side[0].eh, fixed[i]) != before)
			fail_msg("register 0x%lx could be written", (unsigned long)fixed[i]);
	}
	assert_true(urdma_eh_reg(rig.side[0].eh, 0xfff8) == 0);
	assert_true(urdma_eh_reg(rig.side[0].eh, URDMA_REG_CLOCK_HZ) == 250000000);

	/* The cycle counter keeps the simulation's time, skipped cycles included. */
	value = urdma_eh_reg(rig.side[0].eh, URDMA_REG_CYCLES);
	uint64_t now = urdma_cosim_now(rig.cosim);

	rig_check(&rig, urdma_cosim_run_until(rig.cosim, now + 1000000), "run");
	value = urdma_eh_reg(rig.side[0].eh, URDMA_REG_CYCLES) - value;
	now = urdma_cosim_now(rig.cosim) - now;
	assert_in_range(value, now - 200, now + 200);

	rig_message(&rig, 0, 0, 0, 5000, 3);
	rig_stop(&rig);
}

/* ---- doorbells ---- */

static uint64_t db_word(uint32_t obj, uint32_t index)
{
	return URDMA_SET(URDMA_DBW_OBJ, obj) | URDMA_SET(URDMA_DBW_INDEX, index);
}

static void test_doorbells(void **state)
{
	static const struct {
		const char *name;
		unsigned int page, offset;
		uint32_t obj;
		unsigned int counter;
	} table[] = {
		{ "SQ, another page", 6, URDMA_DB_SQ, RIG_QPN(0), URDMA_CNT_DB_OWNER },
		{ "SQ, page 0", 0, URDMA_DB_SQ, RIG_QPN(0), URDMA_CNT_DB_OWNER },
		{ "SQ, last page", 1023, URDMA_DB_SQ, RIG_QPN(0), URDMA_CNT_DB_OWNER },
		{ "SQ, no such QP", RIG_DB_PAGE, URDMA_DB_SQ, 999, URDMA_CNT_DB_OWNER },
		{ "SQ, number out of range", RIG_DB_PAGE, URDMA_DB_SQ, 4096 + RIG_QPN(0),
		  URDMA_CNT_DB_OWNER },
		{ "RQ, another page", 6, URDMA_DB_RQ, RIG_QPN(0), URDMA_CNT_DB_OWNER },
		{ "RQ, no such QP", RIG_DB_PAGE, URDMA_DB_RQ, 999, URDMA_CNT_DB_OWNER },
		{ "RQ, number out of range", RIG_DB_PAGE, URDMA_DB_RQ, 0xffffff,
		  URDMA_CNT_DB_OWNER },
		{ "CQ, another page", 6, URDMA_DB_CQ, 1, URDMA_CNT_DB_OWNER },
		{ "CQ, no such CQ", RIG_DB_PAGE, URDMA_DB_CQ, 999, URDMA_CNT_DB_OWNER },
		{ "CQ, number out of range", RIG_DB_PAGE, URDMA_DB_CQ, 4097, URDMA_CNT_DB_OWNER },
		{ "EQ, not page 0", RIG_DB_PAGE, URDMA_DB_EQ, 1, URDMA_CNT_DB_OWNER },
		{ "EQ, number out of range", 0, URDMA_DB_EQ, 65, URDMA_CNT_DB_OWNER },
		{ "SRQ, no such SRQ", RIG_DB_PAGE, URDMA_DB_SRQ, 999, URDMA_CNT_DB_OWNER },
		{ "SRQ, number out of range", RIG_DB_PAGE, URDMA_DB_SRQ, 1024, URDMA_CNT_DB_OWNER },
		{ "offset with nothing", RIG_DB_PAGE, 0x40, RIG_QPN(0), URDMA_CNT_DB_BAD },
		{ "last of the lower half", RIG_DB_PAGE, 0x7f8, RIG_QPN(0), URDMA_CNT_DB_BAD },
		{ "push space", RIG_DB_PAGE, URDMA_DB_PUSH, RIG_QPN(0), URDMA_CNT_DB_BAD },
		{ "end of the page", RIG_DB_PAGE, 0xff8, RIG_QPN(0), URDMA_CNT_DB_BAD },
		{ "SQ of a QP in RESET", RIG_DB_PAGE, URDMA_DB_SQ, RIG_QPN(1), URDMA_CNT_DB_BAD },
		{ "RQ of a QP in RESET", RIG_DB_PAGE, URDMA_DB_RQ, RIG_QPN(1), URDMA_CNT_DB_BAD },
	};
	struct rig_config config;
	struct urdma_eh *eh;
	struct urdma_eh_cmd before, after;
	struct rig rig;
	uint64_t owner, bad, word;

	(void)state;
	rig_defaults(&config);
	config.qps = 2;
	rig_start(&rig, &config);
	eh = rig.side[0].eh;
	assert_int_equal(urdma_eh_to_reset(&rig.side[0].qp[1]), 0);
	rig_message(&rig, 0, 0, 0, 64, 1);
	query(&rig, RIG_QPN(0), &before);
	for (unsigned int i = 0; i < COUNT(table); i++) {
		owner = urdma_eh_counter(eh, URDMA_CNT_DB_OWNER);
		bad = urdma_eh_counter(eh, URDMA_CNT_DB_BAD);
		urdma_eh_doorbell(eh, table[i].page, table[i].offset, db_word(table[i].obj, 9));
		rig_check(
			&rig,
			urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 100000),
			"run");
		owner = urdma_eh_counter(eh, URDMA_CNT_DB_OWNER) - owner;
		bad = urdma_eh_counter(eh, URDMA_CNT_DB_BAD) - bad;
		if (owner != (table[i].counter == URDMA_CNT_DB_OWNER) ||
		    bad != (table[i].counter == URDMA_CNT_DB_BAD))
			fail_msg("%s: DB_OWNER +%lu, DB_BAD +%lu", table[i].name,
				 (unsigned long)owner, (unsigned long)bad);
		query(&rig, RIG_QPN(0), &after);
		if (memcmp(&before, &after, sizeof(before)))
			fail_msg("%s: the QP changed", table[i].name);
	}
	/* In pieces, or not aligned: not a doorbell. */
	word = db_word(RIG_QPN(0), 9);
	bad = urdma_eh_counter(eh, URDMA_CNT_DB_BAD);
	for (unsigned int len = 1; len < 8; len++)
		for (unsigned int at = 0; at + len <= 8; at++)
			urdma_embedded_write(urdma_eh_dev(eh), URDMA_BAR_DB,
					     RIG_DB_PAGE * URDMA_DB_PAGE_SIZE + URDMA_DB_SQ + at,
					     (uint8_t *)&word + at, len);
	urdma_embedded_write(urdma_eh_dev(eh), URDMA_BAR_DB, RIG_DB_PAGE * URDMA_DB_PAGE_SIZE + 4,
			     &word, 8);
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 100000),
		  "run");
	assert_int_equal(urdma_eh_counter(eh, URDMA_CNT_DB_BAD) - bad,
			 7 + 6 + 5 + 4 + 3 + 2 + 8 + 1);
	query(&rig, RIG_QPN(0), &after);
	assert_memory_equal(&before, &after, sizeof(before));

	rig_message(&rig, 0, 0, 0, 64, 2);
	rig_message(&rig, 0, 1, 0, 64, 3);
	rig_stop(&rig);
}

static void settle(struct rig *rig)
{
	rig_check(rig,
		  urdma_cosim_run_while_busy(rig->cosim, urdma_cosim_now(rig->cosim) + 1000000),
		  "settle");
}

/*
 * A doorbell repeated, or one after the last, does nothing: to a queue at rest, and among
 * messages. The arming bit of a repeated CQ or EQ doorbell still counts. It may cause one event too
 * many, but none on EQ 0.
 */
static void test_old_doorbells(void **state)
{
	struct rig_config config;
	struct urdma_eh_cmd before, after;
	struct urdma_eh_event ev[8];
	struct urdma_eh *eh;
	struct urdma_eh_qp *qp;
	struct rig rig;

	(void)state;
	rig_defaults(&config);
	config.log_sq = config.log_rq = 4;
	rig_start(&rig, &config);
	eh = rig.side[0].eh;
	qp = &rig.side[0].qp[0];
	for (uint32_t i = 0; i < 100; i++) {
		const uint32_t back[] = { 0, 1, 2, 15, 16, 17, 100, 0x7fff };

		query(&rig, RIG_QPN(0), &before);
		for (unsigned int k = 0; k < COUNT(back); k++) {
			uint32_t sq = (qp->sq_pi - back[k]) & 0xffff,
				 rq = (qp->rq_pi - back[k]) & 0xffff,
				 send_ci = rig.side[0].send_cq.ci - back[k];

			urdma_eh_doorbell(eh, RIG_DB_PAGE, URDMA_DB_SQ, db_word(qp->qpn, sq));
			urdma_eh_doorbell(eh, RIG_DB_PAGE, URDMA_DB_RQ, db_word(qp->qpn, rq));
			for (uint64_t arm = 0; arm < 3; arm++) {
				urdma_eh_doorbell(eh, RIG_DB_PAGE, URDMA_DB_CQ,
						  db_word(rig.side[0].send_cq.cqn, send_ci) |
							  URDMA_SET(URDMA_DBW_ARM, arm));
				urdma_eh_doorbell(eh, 0, URDMA_DB_EQ,
						  db_word(1, 0 - back[k]) |
							  URDMA_SET(URDMA_DBW_ARM, arm));
			}
		}
		if (i % 2) {
			settle(&rig);
			query(&rig, RIG_QPN(0), &after);
			assert_memory_equal(&before, &after, sizeof(before));
		}
		rig_message(&rig, 0, i / 2 % 2, 0, 64, i);
		urdma_eh_eq_poll(eh, 1, ev, 8, i % 3 == 0);
	}
	assert_int_equal(urdma_eh_eq_poll(eh, 0, ev, 8, false), 0);
	assert_int_equal(rig_qp_state(qp), URDMA_QPS_RTS);
	rig_stop(&rig);
}

/* A doorbell before the end of RESET has no effect on the QP's next life. */
static void test_doorbells_before_reset(void **state)
{
	struct rig_config config;
	struct urdma_eh_conn conn;
	struct urdma_eh_qp_info info;
	struct urdma_eh_qp *qp;
	struct rig rig;

	(void)state;
	rig_defaults(&config);
	rig_start(&rig, &config);
	qp = &rig.side[0].qp[0];
	conn = config.conn;
	conn.dest_qpn = RIG_QPN(0);
	urdma_eh_gid_ipv4(conn.dgid, 0x0a000002);
	assert_int_equal(urdma_eh_mac(rig.side[1].eh, conn.dmac), 0);
	for (uint32_t n = 0; n < 24; n++) {
		/* the nearest of them just in front of the command */
		for (uint32_t i = 1; i <= n; i++) {
			urdma_eh_doorbell(rig.side[0].eh, RIG_DB_PAGE, URDMA_DB_RQ,
					  db_word(qp->qpn, i));
			urdma_eh_doorbell(rig.side[0].eh, RIG_DB_PAGE, URDMA_DB_SQ,
					  db_word(qp->qpn, i));
		}
		assert_int_equal(urdma_eh_to_reset(qp), 0);
		assert_int_equal(urdma_eh_to_init(qp, &conn), 0);
		assert_int_equal(urdma_eh_to_rtr(qp, &conn), 0);
		assert_int_equal(urdma_eh_to_rts(qp, &conn), 0);
		settle(&rig);
		assert_int_equal(urdma_eh_qp_info(qp, &info), 0);
		assert_int_equal(info.state, URDMA_QPS_RTS);
		assert_int_equal(info.sq_pi, 0);
		assert_int_equal(info.rq_pi, 0);
	}
	rig_stop(&rig);
}

/* ---- events ---- */

/* One message from side 0 to side 1: posts the receive, leaves the CQEs in the CQs. */
static void one_way(struct rig *rig, bool solicited)
{
	struct rig_side *rx = &rig->side[1];
	struct urdma_eh_sge sge = { (uintptr_t)rx->buffer, 64, rx->mr.key };
	uint8_t data[16] = { 1, 2, 3 };
	struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
				    .solicited = solicited,
				    .inline_data = data,
				    .inline_len = sizeof(data) };

	assert_int_equal(urdma_eh_post_recv(&rx->qp[0], &sge, 1), 0);
	assert_int_equal(urdma_eh_post_send(&rig->side[0].qp[0], &wr), 0);
	settle(rig);
}

static void take(struct rig *rig, unsigned int n)
{
	struct urdma_eh_cqe cqe[64];

	assert_int_equal(urdma_eh_poll_cq(&rig->side[1].recv_cq, cqe, 64), n);
	settle(rig);
}

static void test_events(void **state)
{
	struct rig_config config;
	struct urdma_eh_event ev[8];
	struct urdma_embedded_dev *dev;
	struct urdma_eh *eh;
	struct rig rig;
	uint64_t irqs;

	(void)state;
	rig_defaults(&config);
	rig_start(&rig, &config);
	eh = rig.side[1].eh;
	dev = urdma_eh_dev(eh);
	settle(&rig);
#define IRQS()	    (urdma_embedded_irqs(dev, 1) - irqs)
#define EVENTS(arm) urdma_eh_eq_poll(eh, 1, ev, 8, arm)
	irqs = urdma_embedded_irqs(dev, 1);

	/* Not armed: no event. */
	one_way(&rig, false);
	assert_int_equal(EVENTS(false), 0);
	take(&rig, 1);

	/* Armed: one event, one interrupt, however many CQEs. */
	urdma_eh_arm_cq(&rig.side[1].recv_cq, false);
	settle(&rig);
	assert_int_equal(EVENTS(false), 0);
	one_way(&rig, false);
	one_way(&rig, false);
	assert_int_equal(IRQS(), 1);
	assert_int_equal(EVENTS(false), 1);
	assert_int_equal(ev[0].type, URDMA_EV_CQ);
	assert_int_equal(ev[0].obj, rig.side[1].recv_cq.cqn);

	/*
	 * The EQ is not armed now, so events come without interrupts. The second CQE had no event,
	 * so one comes at once.
	 */
	urdma_eh_arm_cq(&rig.side[1].recv_cq, false);
	settle(&rig);
	assert_int_equal(IRQS(), 1);
	/* Arming an EQ that holds an event which was not taken interrupts at once; taken events do
	 * not count. */
	urdma_eh_doorbell(eh, 0, URDMA_DB_EQ,
			  URDMA_SET(URDMA_DBW_OBJ, 1) | URDMA_SET(URDMA_DBW_ARM, URDMA_DB_ARM_ANY) |
				  URDMA_SET(URDMA_DBW_INDEX, 1));
	settle(&rig);
	assert_int_equal(IRQS(), 2);
	assert_int_equal(EVENTS(true), 1);
	settle(&rig);
	assert_int_equal(IRQS(), 2);
	/* Both CQEs have had their event, so the next event comes with the next CQE. */
	urdma_eh_arm_cq(&rig.side[1].recv_cq, false);
	settle(&rig);
	assert_int_equal(EVENTS(false), 0);
	take(&rig, 2);
	one_way(&rig, false);
	assert_int_equal(EVENTS(true), 1);
	take(&rig, 1);
	irqs += IRQS() - 2;

	/* Solicited only: other CQEs do not count; a solicited one gives one event. */
	urdma_eh_arm_cq(&rig.side[1].recv_cq, true);
	one_way(&rig, false);
	one_way(&rig, false);
	assert_int_equal(EVENTS(false), 0);
	one_way(&rig, true);
	assert_int_equal(IRQS(), 3);
	assert_int_equal(EVENTS(true), 1);
	take(&rig, 3);
	/* Arming for any CQE overrides arming for solicited ones, in both orders. */
	for (unsigned int i = 0; i < 2; i++) {
		urdma_eh_arm_cq(&rig.side[1].recv_cq, i);
		urdma_eh_arm_cq(&rig.side[1].recv_cq, !i);
		one_way(&rig, false);
		assert_int_equal(EVENTS(true), 1);
		take(&rig, 1);
	}
	/* A CQE with an error counts as solicited. */
	irqs = urdma_embedded_irqs(dev, 1);
	urdma_eh_arm_cq(&rig.side[1].recv_cq, true);
	struct urdma_eh_sge sge = { (uintptr_t)rig.side[1].buffer, 64, rig.side[1].mr.key };

	assert_int_equal(urdma_eh_post_recv(&rig.side[1].qp[0], &sge, 1), 0);
	settle(&rig);
	assert_int_equal(urdma_eh_to_err(&rig.side[1].qp[0]), 0);
	settle(&rig);
	assert_int_equal(EVENTS(true), 1);
	assert_int_equal(IRQS(), 1);
	take(&rig, 1);

	/* A command that asks for an event. */
	struct urdma_eh_cmd nop = command(URDMA_CMD_NOP, 0);

	nop.w[0] |= URDMA_CMD0_EVENT;
	urdma_eh_eq_poll(eh, 0, ev, 8, true);
	settle(&rig);
	irqs = urdma_embedded_irqs(dev, 0);
	assert_int_equal(urdma_eh_cmd(eh, &nop, NULL), 0);
	settle(&rig);
	assert_int_equal(urdma_eh_eq_poll(eh, 0, ev, 8, true), 1);
	assert_int_equal(ev[0].type, URDMA_EV_CMD);
	assert_int_equal(urdma_embedded_irqs(dev, 0) - irqs, 1);
	rig_stop(&rig);
#undef IRQS
#undef EVENTS
}

/*
 * A program that arms after each event, then polls once and waits for the next CQE: each CQE has
 * one event, and no event comes without a CQE, however arming and CQE coincide.
 */
static void test_rearm_before_poll(void **state)
{
	struct rig_config config;
	struct urdma_eh_event ev[8];
	struct rig rig;

	(void)state;
	rig_defaults(&config);
	rig_start(&rig, &config);
	settle(&rig);
	urdma_eh_arm_cq(&rig.side[1].recv_cq, false);
	for (unsigned int i = 0; i < 200; i++) {
		struct rig_side *rx = &rig.side[1];
		struct urdma_eh_sge sge = { (uintptr_t)rx->buffer, 64, rx->mr.key };
		uint8_t data[16] = { 1, 2, 3 };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
					    .inline_data = data,
					    .inline_len = sizeof(data) };
		struct urdma_eh_cqe cqe;

		assert_int_equal(urdma_eh_post_recv(&rx->qp[0], &sge, 1), 0);
		assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0], &wr), 0);
		/* from before the CQE of this message is made until long after */
		if (i) {
			rig_check(&rig,
				  urdma_cosim_run_until(rig.cosim,
							urdma_cosim_now(rig.cosim) + 4 * i),
				  "run");
			urdma_eh_arm_cq(&rx->recv_cq, false);
		}
		settle(&rig);
		if (urdma_eh_eq_poll(rx->eh, 1, ev, 8, true) != 1)
			fail_msg("armed %u cycles after the message: not one event", 4 * i);
		settle(&rig);
		/* armed before it is polled */
		if (i % 2) {
			urdma_eh_arm_cq(&rx->recv_cq, false);
			settle(&rig);
			assert_int_equal(urdma_eh_eq_poll(rx->eh, 1, ev, 8, true), 0);
		}
		assert_int_equal(urdma_eh_poll_cq(&rx->recv_cq, &cqe, 1), 1);
	}
	rig_stop(&rig);
}

static void test_overflow(void **state)
{
	struct rig_config config;
	struct urdma_eh_event ev[8];
	struct urdma_eh_cqe cqe[64];
	struct rig rig;
	unsigned int n;

	(void)state;
	rig_defaults(&config);
	config.log_cqe = 2;
	config.qps = 2;
	rig_start(&rig, &config);
	settle(&rig);
	/* Four fit, and nobody polls them. */
	for (unsigned int i = 0; i < 4; i++)
		one_way(&rig, false);
	assert_int_equal(urdma_eh_eq_poll(rig.side[1].eh, 1, ev, 8, true), 0);
	assert_int_equal(rig_qp_state(&rig.side[1].qp[0]), URDMA_QPS_RTS);
	/* The fifth is lost: the CQ has its event, the QP is dead, and its event is on EQ 0. */
	one_way(&rig, false);
	n = urdma_eh_eq_poll(rig.side[1].eh, 1, ev, 8, true);
	assert_int_equal(n, 1);
	assert_int_equal(ev[0].type, URDMA_EV_CQ_ERR);
	assert_int_equal(ev[0].obj, rig.side[1].recv_cq.cqn);
	n = urdma_eh_eq_poll(rig.side[1].eh, 0, ev, 8, true);
	assert_int_equal(n, 1);
	assert_int_equal(ev[0].type, URDMA_EV_QP_FATAL);
	assert_int_equal(ev[0].obj, RIG_QPN(0));
	assert_int_equal(rig_qp_state(&rig.side[1].qp[0]), URDMA_QPS_ERR);
	assert_true(urdma_eh_counter(rig.side[1].eh, URDMA_CNT_CQ_OVERFLOW) >= 1);
	/* The four that fitted are whole. */
	assert_int_equal(urdma_eh_poll_cq(&rig.side[1].recv_cq, cqe, 64), 4);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(cqe[i].status, URDMA_WC_SUCCESS);
		assert_int_equal(cqe[i].wqe, i);
	}
	/* After it is destroyed and made again it works, with the same number. */
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int s = 0; s < 2; s++)
			assert_int_equal(urdma_eh_destroy_qp(&rig.side[s].qp[i]), 0);
	assert_int_equal(urdma_eh_destroy_cq(&rig.side[1].recv_cq), 0);
	assert_int_equal(urdma_eh_create_cq(rig.side[1].eh, 2, 6, 1, RIG_DB_PAGE,
					    URDMA_EH_RING_PAGED, &rig.side[1].recv_cq),
			 0);
	for (unsigned int s = 0; s < 2; s++) {
		struct rig_side *side = &rig.side[s];
		struct urdma_eh_qp_attr attr = { .qpn = RIG_QPN(0),
						 .pd = RIG_PD,
						 .send_cq = &side->send_cq,
						 .recv_cq = &side->recv_cq,
						 .db_page = RIG_DB_PAGE,
						 .log_sq = 4,
						 .log_rq = 4,
						 .log_sq_stride = 6,
						 .log_rq_stride = 6 };

		assert_int_equal(urdma_eh_create_qp(side->eh, &attr, &side->qp[0]), 0);
	}
	rig.config.qps = 1;
	assert_int_equal(urdma_eh_connect(&rig.side[0].qp[0], &rig.side[1].qp[0], 3, false), 0);
	rig_message(&rig, 0, 0, 0, 3000, 1);
	rig_message(&rig, 0, 1, 0, 3000, 2);
	rig_stop(&rig);
}

static void test_eq_loss(void **state)
{
	struct urdma_eh_cmd nop = command(URDMA_CMD_NOP, 0);
	struct rig_config config;
	struct urdma_eh_event ev[8];
	struct urdma_eh *eh;
	struct rig rig;

	(void)state;
	nop.w[0] |= URDMA_CMD0_EVENT;
	rig_defaults(&config);
	config.eh.log_eq = 2;
	rig_start(&rig, &config);
	eh = rig.side[0].eh;
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(urdma_eh_cmd(eh, &nop, NULL), 0);
		settle(&rig);
	}
	assert_int_equal(urdma_eh_counter(eh, URDMA_CNT_EQ_LOST), 0);
	assert_false(urdma_eh_reg(eh, URDMA_REG_STATUS) & URDMA_RF_STATUS_EQ0_LOST);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(urdma_eh_cmd(eh, &nop, NULL), 0);
		settle(&rig);
	}
	assert_int_equal(urdma_eh_counter(eh, URDMA_CNT_EQ_LOST), 3);
	assert_true(urdma_eh_reg(eh, URDMA_REG_STATUS) & URDMA_RF_STATUS_EQ0_LOST);
	/* The events that fitted are there, and the EQ goes on when there is room. */
	assert_int_equal(urdma_eh_eq_poll(eh, 0, ev, 8, true), 4);
	settle(&rig);
	assert_int_equal(urdma_eh_cmd(eh, &nop, NULL), 0);
	settle(&rig);
	assert_int_equal(urdma_eh_eq_poll(eh, 0, ev, 8, true), 1);
	assert_int_equal(ev[0].type, URDMA_EV_CMD);
	rig_stop(&rig);
}

/* ---- reset ---- */

static void wait_ready(struct rig *rig, struct urdma_eh *eh)
{
	for (unsigned int i = 0; i < 100; i++) {
		if (urdma_eh_reg(eh, URDMA_REG_STATUS) & URDMA_RF_STATUS_READY)
			return;
		rig_check(rig,
			  urdma_cosim_run_until(rig->cosim, urdma_cosim_now(rig->cosim) + 1000),
			  "wait for READY");
	}
	fail_msg("the NIC is not READY after its reset");
}

/* A command queue made by hand, since the host's library does not know that the NIC was reset. */
struct raw {
	struct rig *rig;
	struct urdma_eh *eh;
	struct urdma_eh_cmd *cmd, *cpl;
	unsigned int n;
};

static void raw_start(struct raw *raw, struct rig *rig, struct urdma_eh *eh)
{
	struct urdma_embedded_dev *dev = urdma_eh_dev(eh);

	*raw = (struct raw){ .rig = rig, .eh = eh };
	raw->cmd = urdma_embedded_alloc_contig(rig->host, 4096, 0);
	raw->cpl = urdma_embedded_alloc_contig(rig->host, 4096, 0);
	urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_CMDQ_BASE,
			       urdma_embedded_bus(rig->host, raw->cmd));
	urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_CMDQ_CPL_BASE,
			       urdma_embedded_bus(rig->host, raw->cpl));
	urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_CMDQ_LOG_SIZE, 6);
	urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_CTRL, URDMA_RF_CTRL_ENABLE);
}

static int raw_run(struct raw *raw, struct urdma_eh_cmd cmd)
{
	raw->cmd[raw->n] = cmd;
	urdma_embedded_write64(urdma_eh_dev(raw->eh), URDMA_BAR_REGS, URDMA_REG_CMDQ_PI,
			       raw->n + 1);
	settle(raw->rig);
	if (!(raw->cpl[raw->n].w[7] & URDMA_CPL7_PHASE))
		return -1;
	return (int)URDMA_GET(URDMA_CPL0_STATUS, raw->cpl[raw->n++].w[0]);
}

static void test_reset(void **state)
{
	(void)state;
	/* At several moments of the load. */
	for (unsigned int delay = 1; delay < 6000; delay = delay * 3 + 7) {
		struct rig_config config;
		struct urdma_eh_cmd nop = command(URDMA_CMD_NOP, 0);
		struct urdma_eh *eh;
		struct raw raw;
		struct rig rig;
		uint64_t hash[2], commands;
		uint8_t *p;

		rig_defaults(&config);
		config.qps = 4;
		config.cosim.pcie.reorder = true;
		rig_start(&rig, &config);
		eh = rig.side[0].eh;
		for (unsigned int i = 0; i < config.qps; i++) {
			for (unsigned int s = 0; s < 2; s++) {
				struct rig_side *tx = &rig.side[s], *rx = &rig.side[!s];
				struct urdma_eh_sge src = { (uintptr_t)tx->buffer, 65536,
							    tx->mr.key };
				struct urdma_eh_sge dst = { (uintptr_t)rx->buffer + (2u << 20),
							    65536, rx->mr.key };
				struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND,
							    .signaled = true,
							    .sge = &src,
							    .n_sge = 1 };

				for (unsigned int k = 0; k < 8; k++) {
					urdma_eh_post_recv(&rx->qp[i], &dst, 1);
					urdma_eh_post_send(&tx->qp[i], &wr);
				}
			}
		}
		for (unsigned int i = 0; i < 50; i++)
			urdma_eh_cmd_post(eh, &nop, NULL, NULL);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + delay),
			  "run");
		commands = urdma_eh_counter(eh, URDMA_CNT_CMD_OK);
		assert_true(commands > 0);
		urdma_embedded_write64(urdma_eh_dev(eh), URDMA_BAR_REGS, URDMA_REG_CTRL,
				       URDMA_RF_CTRL_RESET);
		wait_ready(&rig, eh);
		/* No DMA from before the reset comes after READY. */
		hash[0] = rig_hash(RIG_HASH_START, rig.side[0].buffer, config.buffer);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 50000),
			  "run");
		hash[1] = rig_hash(RIG_HASH_START, rig.side[0].buffer, config.buffer);
		assert_true(hash[0] == hash[1]);
		assert_true(urdma_eh_reg(eh, URDMA_REG_CTRL) == 0);
		assert_true(urdma_eh_reg(eh, URDMA_REG_CMDQ_CI) == 0);
		assert_true(urdma_eh_reg(eh, URDMA_REG_CMDQ_BASE) == 0);
		assert_true(urdma_eh_reg(eh, URDMA_REG_CMDQ_LOG_SIZE) == 0);
		/* Counters keep their values across the reset. */
		assert_true(urdma_eh_counter(eh, URDMA_CNT_CMD_OK) >= commands);
		/* No object exists any more, and every object can be made. */
		raw_start(&raw, &rig, eh);
		assert_int_equal(raw_run(&raw, command(URDMA_CMD_QUERY_QP, RIG_QPN(0))),
				 URDMA_CS_BAD_OBJECT);
		assert_int_equal(raw_run(&raw, command(URDMA_CMD_DESTROY_CQ, 1)),
				 URDMA_CS_BAD_OBJECT);
		assert_int_equal(raw_run(&raw, command(URDMA_CMD_DESTROY_EQ, 1)),
				 URDMA_CS_BAD_OBJECT);
		assert_int_equal(raw_run(&raw, command(URDMA_CMD_DESTROY_MR, 1)),
				 URDMA_CS_BAD_OBJECT);
		assert_int_equal(raw_run(&raw, command(URDMA_CMD_DEALLOC_PD, RIG_PD)),
				 URDMA_CS_BAD_OBJECT);
		assert_int_equal(raw_run(&raw, command(URDMA_CMD_ALLOC_PD, RIG_PD)), 0);
		p = urdma_embedded_alloc_contig(rig.host, 65536, 65536);
		struct urdma_eh_cmd eq = good(EQ, urdma_embedded_bus(rig.host, p));

		set(&eq, 0, URDMA_CMD0_OBJ, 1);
		assert_int_equal(raw_run(&raw, eq), 0);
		assert_int_equal(raw_run(&raw, good(MR, urdma_embedded_bus(rig.host, p))), 0);
		assert_int_equal(raw_run(&raw, good(CQ, urdma_embedded_bus(rig.host, p))), 0);
		/* GIDs are gone, too: AV needs one */
		struct urdma_eh_cmd qp = good(QP, urdma_embedded_bus(rig.host, p));

		set(&qp, 1, URDMA_CMD_QP1_SEND_CQ, NEW_CQ);
		set(&qp, 2, URDMA_CMD_QP2_RECV_CQ, NEW_CQ);
		assert_int_equal(raw_run(&raw, qp), 0);
		assert_int_equal(
			raw_run(&raw, modify(NEW_QP, URDMA_QPM_STATE | QPM_INIT, URDMA_QPS_INIT)),
			0);
		assert_int_equal(
			raw_run(&raw, modify(NEW_QP, URDMA_QPM_STATE | QPM_RTR, URDMA_QPS_RTR)),
			URDMA_CS_BAD_ATTR);
		rig_abandon(&rig);
	}
}

/* The command queue stops and reports it; a reset recovers. */
static void test_cmdq_error(void **state)
{
	struct urdma_eh_cmd nop = command(URDMA_CMD_NOP, 0);

	(void)state;
	for (unsigned int way = 0; way < 2; way++) {
		struct rig_config config;
		struct urdma_embedded_dev *dev;
		struct urdma_eh *eh;
		struct raw raw;
		struct rig rig;

		rig_defaults(&config);
		rig_start(&rig, &config);
		eh = rig.side[0].eh;
		dev = urdma_eh_dev(eh);
		urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
		wait_ready(&rig, eh);
		raw_start(&raw, &rig, eh);
		assert_int_equal(raw_run(&raw, nop), 0);
		if (way == 0) {
			/* the producer index further ahead than the ring is long */
			urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_CMDQ_PI, 1 + 65);
		} else {
			/* commands that cannot be read */
			urdma_embedded_free(rig.host, raw.cmd);
			urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_CMDQ_PI, 2);
		}
		settle(&rig);
		assert_true(urdma_eh_reg(eh, URDMA_REG_STATUS) & URDMA_RF_STATUS_CMDQ_ERR);
		assert_false(raw.cpl[1].w[7] & URDMA_CPL7_PHASE);
		urdma_embedded_write64(dev, URDMA_BAR_REGS, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
		wait_ready(&rig, eh);
		assert_false(urdma_eh_reg(eh, URDMA_REG_STATUS) & URDMA_RF_STATUS_CMDQ_ERR);
		raw_start(&raw, &rig, eh);
		assert_int_equal(raw_run(&raw, nop), 0);
		rig_abandon(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_create),    cmocka_unit_test(test_bad_object),
		cmocka_unit_test(test_bad_modify),    cmocka_unit_test(test_many),
		cmocka_unit_test(test_registers),     cmocka_unit_test(test_doorbells),
		cmocka_unit_test(test_old_doorbells), cmocka_unit_test(test_doorbells_before_reset),
		cmocka_unit_test(test_events),	      cmocka_unit_test(test_rearm_before_poll),
		cmocka_unit_test(test_overflow),      cmocka_unit_test(test_eq_loss),
		cmocka_unit_test(test_reset),	      cmocka_unit_test(test_cmdq_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
