// SPDX-License-Identifier: Apache-2.0
/*
 * Device memory: as source and target of every opcode, under the host's own accesses through the
 * BAR, and as memory of a page table and of rings. Memory that the NIC may not touch is compared,
 * too.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LIMIT	 4000000u
#define GUARD	 64u
#define SPAN	 8192u /* of device memory that is compared, on each side */
#define DM	 30u   /* index of its region */
#define PAIRS	 8u

#define ALL_ACCESS                                                                \
	(URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE | URDMA_ACC_REMOTE_READ | \
	 URDMA_ACC_REMOTE_ATOMIC | URDMA_ACC_FLUSH_GLOBAL)

static struct rig rig;
static bool running;
static struct urdma_eh_mr dm[2];

/* Each side has a region of SPAN bytes of its device memory, starting at `at`. */
static void start(uint64_t at)
{
	struct rig_config config;

	if (running)
		rig_abandon(&rig); /* a test has failed */
	rig_defaults(&config);
	config.qps = PAIRS;
	config.mtu = 3;
	rig_start(&rig, &config);
	running = true;
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_create_mr_dm(rig.side[n].eh, DM, (uint8_t)(7 + n), RIG_PD,
						       ALL_ACCESS, at, SPAN, &dm[n]),
				 0);
}

static void stop(void)
{
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_destroy_mr(&dm[n]), 0);
	rig_stop(&rig);
	running = false;
}

/* ---- through the BAR ----------------------------------------------------------------------- */

static uint64_t bar_read(unsigned int offset, size_t len, int want)
{
	struct rig_side *side = &rig.side[0];
	uint64_t v = 0;

	assert_int_equal(urdma_embedded_read(
				 urdma_eh_dev(side->eh), URDMA_BAR_DB,
				 (1u << urdma_eh_caps(side->eh)->log_dm_offset) + offset, &v, len),
			 want);
	return v;
}

static void bar_write(unsigned int offset, uint64_t v, size_t len)
{
	struct rig_side *side = &rig.side[0];

	assert_int_equal(urdma_embedded_write(
				 urdma_eh_dev(side->eh), URDMA_BAR_DB,
				 (1u << urdma_eh_caps(side->eh)->log_dm_offset) + offset, &v, len),
			 0);
}

static void through_bar(void **state)
{
	struct rig_side *side = &rig.side[0];
	uint64_t size, bad;

	(void)state;
	start(0);
	size = 1ull << urdma_eh_caps(side->eh)->log_dm;
	assert_true(size >= 128 << 10);
	for (unsigned int k = 0; k < 3; k++) {
		unsigned int at = k == 0 ? 0 : k == 1 ? 4096 - 8 : (unsigned int)size - 8;

		bar_write(at, 0x8877665544332211, 8);
		assert_true(bar_read(at, 8, 0) == 0x8877665544332211);
		for (unsigned int i = 0; i < 8; i++) {
			assert_true(bar_read(at + i, 1, 0) == 0x11 * (i + 1));
			bar_write(at + i, 0xa0 + i, 1);
		}
		assert_true(bar_read(at, 8, 0) == 0xa7a6a5a4a3a2a1a0);
		bar_write(at + 2, 0xbeef, 2);
		bar_write(at + 4, 0x01234567, 4);
		assert_true(bar_read(at, 8, 0) == 0x01234567beefa1a0);
		assert_true(bar_read(at + 4, 4, 0) == 0x01234567);
	}
	/* An access that is not to one word is refused and counted. */
	bad = urdma_eh_counter(side->eh, URDMA_CNT_MMIO_BAD);
	bar_read(4, 8, -EIO);
	bar_write(4, ~0ull, 8);
	assert_int_equal(urdma_eh_counter(side->eh, URDMA_CNT_MMIO_BAD), bad + 2);
	assert_true(bar_read(0, 8, 0) == 0x01234567beefa1a0);
	/* Beyond device memory the BAR reads as zero. */
	bar_write((unsigned int)size, 0x55, 8);
	assert_true(bar_read((unsigned int)size, 8, 0) == 0);
	stop();
}

/* A reset of the NIC destroys its objects and keeps device memory. */
static void kept_through_reset(void **state)
{
	uint8_t image[256], got[256];

	(void)state;
	start(0);
	rig_fill(image, sizeof(image), 77);
	urdma_eh_dm_write(rig.side[0].eh, 512, image, sizeof(image));
	urdma_eh_write_reg(rig.side[0].eh, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
	while (!(urdma_eh_reg(rig.side[0].eh, URDMA_REG_STATUS) & URDMA_RF_STATUS_READY))
		;
	assert_int_equal(urdma_eh_dm_read(rig.side[0].eh, 512, got, sizeof(got)), 0);
	assert_memory_equal(got, image, sizeof(got));
	rig_abandon(&rig);
	running = false;
}

/* ---- messages ------------------------------------------------------------------------------- */

/*
 * Memory of a side: device memory or the rig's buffer, with a copy of what its first SPAN bytes
 * have to contain.
 */
struct mem {
	unsigned int side;
	bool dm;
	uint64_t dm_at;
	uint8_t image[SPAN];
};

static uint32_t mem_key(const struct mem *m)
{
	return m->dm ? dm[m->side].key : rig.side[m->side].mr.key;
}

static uint64_t mem_addr(const struct mem *m, uint32_t off)
{
	return m->dm ? off : (uintptr_t)rig.side[m->side].buffer + off;
}

static void mem_fill(struct mem *m, uint32_t seed)
{
	rig_fill(m->image, SPAN, seed);
	if (m->dm)
		urdma_eh_dm_write(rig.side[m->side].eh, m->dm_at, m->image, SPAN);
	else
		memcpy(rig.side[m->side].buffer, m->image, SPAN);
}

/* Compares the bytes around a piece, and only samples of a long piece: reading through the BAR
 * takes time. */
static void mem_check(struct mem *m, uint32_t from, uint32_t len, const char *what)
{
	uint32_t first = (from < GUARD ? 0 : from - GUARD) & ~7u;
	uint32_t last = (from + len + GUARD + 7) & ~7u;
	uint8_t got[SPAN];

	if (last > SPAN)
		last = SPAN;
	if (m->dm)
		assert_int_equal(
			urdma_eh_dm_read(rig.side[m->side].eh, m->dm_at + first, got, last - first),
			0);
	else
		memcpy(got, rig.side[m->side].buffer + first, last - first);
	for (uint32_t i = first; i < last; i++)
		if (got[i - first] != m->image[i])
			fail_msg("%s: byte %u of side %u's %s is %02x, not %02x", what, i, m->side,
				 m->dm ? "device memory" : "buffer", got[i - first], m->image[i]);
}

static unsigned int wait_cqe(struct urdma_eh_cq *cq)
{
	struct urdma_eh_cqe cqe;

	rig_check(&rig, urdma_eh_next_cqe(cq, &cqe, LIMIT), "CQE");
	return cqe.status;
}

/* A message of len bytes from local to remote memory, or back for READ. */
static void message(unsigned int opcode, struct mem *local, struct mem *remote, uint32_t l_off,
		    uint32_t r_off, uint32_t len)
{
	struct urdma_eh_qp *qp = &rig.side[local->side].qp[0];
	struct urdma_eh_sge sge = { mem_addr(local, l_off), len, mem_key(local) };
	struct urdma_eh_sge rsge = { mem_addr(remote, r_off), len, mem_key(remote) };
	bool recv = opcode == URDMA_WR_SEND || opcode == URDMA_WR_WRITE_IMM;
	bool mpe = opcode == URDMA_WR_FLUSH || opcode == URDMA_WR_ATOMIC_WRITE;
	struct urdma_eh_send wr = { .opcode = opcode,
				    .signaled = true,
				    .raddr = mem_addr(remote, r_off),
				    .rkey = mem_key(remote),
				    .swap_add = 0x1122334455667788,
				    .write_value = UINT64_C(0x8877665544332211) * (r_off + 1),
				    .flush_type = URDMA_FLUSH_GLOBAL,
				    .flush_level = len % 2 ? URDMA_FLUSH_RANGE : URDMA_FLUSH_MR,
				    .flush_length = len,
				    .sge = &sge,
				    .n_sge = !mpe };
	uint64_t old;
	char what[96];

	snprintf(what, sizeof(what), "opcode %u, %u bytes, %s +%u, %s +%u", opcode, len,
		 local->dm ? "DM" : "host", l_off, remote->dm ? "DM" : "host", r_off);
	if (recv)
		assert_int_equal(urdma_eh_post_recv(&rig.side[remote->side].qp[0], &rsge, 1), 0);
	assert_int_equal(urdma_eh_post_send(qp, &wr), 0);
	assert_int_equal(wait_cqe(&rig.side[local->side].send_cq), URDMA_WC_SUCCESS);
	if (recv)
		assert_int_equal(wait_cqe(&rig.side[remote->side].recv_cq), URDMA_WC_SUCCESS);
	if (opcode == URDMA_WR_READ) {
		memcpy(local->image + l_off, remote->image + r_off, len);
	} else if (opcode == URDMA_WR_ATOMIC_FA) {
		memcpy(local->image + l_off, remote->image + r_off, 8);
		memcpy(&old, remote->image + r_off, 8);
		old += wr.swap_add;
		memcpy(remote->image + r_off, &old, 8);
	} else if (mpe) {
		if (opcode == URDMA_WR_ATOMIC_WRITE)
			memcpy(remote->image + r_off, &wr.write_value, 8);
	} else {
		memcpy(remote->image + r_off, local->image + l_off, len);
	}
	mem_check(local, l_off, len, what);
	mem_check(remote, r_off, len, what);
}

static void messages(void **state)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND,	     URDMA_WR_WRITE,
					       URDMA_WR_WRITE_IMM,   URDMA_WR_READ,
					       URDMA_WR_ATOMIC_FA,   URDMA_WR_FLUSH,
					       URDMA_WR_ATOMIC_WRITE };
	static const uint32_t len[] = { 1, 7, 63, 64, 65, 300, 1023, 2049 };
	/* not from the start of a page, and up to the end */
	static const uint64_t at[] = { 0x3008, 0x20000 - SPAN };

	(void)state;
	for (unsigned int t = 0; t < COUNT(at); t++) {
		struct mem *mem = test_calloc(4, sizeof(*mem));

		start(at[t]);
		for (unsigned int i = 0; i < 4; i++) {
			mem[i].side = i / 2;
			mem[i].dm = i % 2;
			mem[i].dm_at = at[t];
		}
		for (unsigned int o = 0; o < COUNT(opcode); o++) {
			/* device memory here, there, on both sides */
			for (unsigned int kind = 1; kind < 4; kind++) {
				struct mem *local = &mem[kind & 1], *remote = &mem[2 + kind / 2];

				for (unsigned int i = 0; i < 4; i++)
					mem_fill(&mem[i], 1000 * o + 10 * kind + i);
				for (unsigned int i = 0; i < COUNT(len); i++) {
					uint32_t n =
						opcode[o] == URDMA_WR_ATOMIC_FA ||
								opcode[o] == URDMA_WR_ATOMIC_WRITE
							? 8
							: len[i];

					message(opcode[o], local, remote, 256 + 17 * i, 8 * (i + 3),
						n);
					message(opcode[o], local, remote, 128 + i,
						SPAN - (n + 7) / 8 * 8, n);
				}
			}
		}
		stop();
		test_free(mem);
	}
}

/* A chain of WRITEs and READs on one QP, all posted at once: each READ returns the data of the
 * WRITE before it. */
static void order(void **state)
{
	enum { ROUNDS = 40, LEN = 200 };
	struct rig_side *side = &rig.side[0];

	(void)state;
	for (unsigned int both = 0; both < 2; both++) {
		start(0);
		rig_fill(side->buffer, ROUNDS * 2 * LEN, 5);
		for (unsigned int i = 0; i < ROUNDS; i++)
			for (unsigned int read = 0; read < 2; read++) {
				struct urdma_eh_sge sge = { (uintptr_t)side->buffer + 2 * LEN * i +
								    LEN * read,
							    LEN, side->mr.key };
				struct urdma_eh_send wr = { .opcode = read ? URDMA_WR_READ
									   : URDMA_WR_WRITE,
							    .signaled = read,
							    .fence = !read,
							    .raddr = both ? 37 * i % 500 : 40,
							    .rkey = dm[1].key,
							    .sge = &sge,
							    .n_sge = 1 };

				assert_int_equal(urdma_eh_put_send(&side->qp[0], &wr), 0);
			}
		urdma_eh_ring_sq(&side->qp[0]);
		for (unsigned int i = 0; i < ROUNDS; i++) {
			assert_int_equal(wait_cqe(&side->send_cq), URDMA_WC_SUCCESS);
			assert_memory_equal(side->buffer + 2 * LEN * i,
					    side->buffer + 2 * LEN * i + LEN, LEN);
		}
		stop();
	}
}

/* Many QPs add to one number in device memory: no addition is lost. */
static void counter(void **state)
{
	enum { EACH = 30 };
	struct rig_side *side = &rig.side[0];
	uint64_t total = 0;

	(void)state;
	start(0x1000);
	urdma_eh_dm_write(rig.side[1].eh, 0x1000, &total, 8);
	for (unsigned int i = 0; i < PAIRS * EACH; i++) {
		struct urdma_eh_sge sge = { (uintptr_t)side->buffer + 8 * i, 8, side->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_ATOMIC_FA,
					    .signaled = true,
					    .rkey = dm[1].key,
					    .swap_add = 3,
					    .sge = &sge,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_put_send(&side->qp[i % PAIRS], &wr), 0);
	}
	for (unsigned int i = 0; i < PAIRS; i++)
		urdma_eh_ring_sq(&side->qp[i]);
	for (unsigned int i = 0; i < PAIRS * EACH; i++)
		assert_int_equal(wait_cqe(&side->send_cq), URDMA_WC_SUCCESS);
	assert_int_equal(urdma_eh_dm_read(rig.side[1].eh, 0x1000, &total, 8), 0);
	assert_int_equal(total, 3 * PAIRS * EACH);
	stop();
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* A region that reaches beyond the end is a mistake of software. The message fails, and the NIC
 * goes on. */
static void beyond_the_end(void **state)
{
	struct rig_side *side = &rig.side[0];
	uint64_t size, word = 0x1111111111111111;
	struct urdma_eh_mr mr[2];
	unsigned int status;

	(void)state;
	start(0);
	size = 1ull << urdma_eh_caps(side->eh)->log_dm;
	urdma_eh_dm_write(rig.side[1].eh, 0, &word, 8);
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_create_mr_dm(rig.side[n].eh, DM + 1, 1, RIG_PD,
						       ALL_ACCESS, size - 256, 4096, &mr[n]),
				 0);
	for (unsigned int t = 0; t < 3; t++) {
		struct urdma_eh_sge sge = { t == 2 ? 0 : (uintptr_t)side->buffer, 1024,
					    t == 2 ? mr[0].key : side->mr.key };
		struct urdma_eh_send wr = { .opcode = t ? t == 1 ? URDMA_WR_READ : URDMA_WR_WRITE
							: URDMA_WR_WRITE,
					    .signaled = true,
					    .rkey = t == 2 ? dm[1].key : mr[1].key,
					    .sge = &sge,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_post_send(&side->qp[t], &wr), 0);
		status = wait_cqe(&side->send_cq);
		/* The bytes of a write beyond the end are lost, as with any posted write. */
		assert_int_equal(status, t == 0	  ? URDMA_WC_SUCCESS
					 : t == 1 ? URDMA_WC_REM_OP_ERR
						  : URDMA_WC_LOC_QP_OP_ERR);
	}
	assert_int_equal(urdma_eh_dm_read(rig.side[1].eh, 0, &word, 8), 0);
	assert_true(word == 0x1111111111111111);
	rig_message(&rig, PAIRS - 1, 0, 8192, 3000, 9);
	rig_abandon(&rig);
	running = false;
}

/* Beyond the region, within device memory: the key's range is checked as with any region. */
static void beyond_the_region(void **state)
{
	struct rig_side *side = &rig.side[0];

	(void)state;
	start(0x2000);
	for (unsigned int t = 0; t < 2; t++) {
		struct urdma_eh_sge sge = { (uintptr_t)side->buffer, 8, side->mr.key };
		struct urdma_eh_send wr = { .opcode = t ? URDMA_WR_READ : URDMA_WR_WRITE,
					    .signaled = true,
					    .raddr = SPAN - 7,
					    .rkey = dm[1].key,
					    .sge = &sge,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_post_send(&side->qp[t], &wr), 0);
		assert_int_equal(wait_cqe(&side->send_cq), URDMA_WC_REM_ACCESS_ERR);
	}
	rig_abandon(&rig);
	running = false;
}

/* A page table in device memory, whose pages are also device memory, in another order. */
static void page_table(void **state)
{
	enum { PAGES = 4 };
	struct rig_side *side = &rig.side[0], *peer = &rig.side[1];
	uint64_t table[8] = { 0 };
	uint8_t got[64];
	struct urdma_eh_cmd cmd = { 0 };

	(void)state;
	start(0);
	for (unsigned int i = 0; i < PAGES; i++)
		table[i] = URDMA_ADDR_DM | (0x8000 + 4096 * (i * 3 % PAGES));
	urdma_eh_dm_write(peer->eh, 0x4040, table, sizeof(table));
	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_CREATE_MR) |
		   URDMA_SET(URDMA_CMD0_OBJ, DM + 1);
	cmd.w[1] = URDMA_SET(URDMA_CMD_MR1_PD, RIG_PD) |
		   URDMA_SET(URDMA_CMD_MR1_ACCESS, ALL_ACCESS) |
		   URDMA_SET(URDMA_CMD_MR1_LEVELS, 1) | URDMA_SET(URDMA_CMD_MR1_PAGE_SHIFT, 12);
	cmd.w[3] = 4096 * PAGES;
	cmd.w[4] = URDMA_ADDR_DM | 0x4040;
	assert_int_equal(urdma_eh_cmd(peer->eh, &cmd, NULL), 0);
	rig_fill(side->buffer, 4096 * PAGES, 3);
	{
		struct urdma_eh_sge sge = { (uintptr_t)side->buffer, 4096 * PAGES, side->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_WRITE,
					    .signaled = true,
					    .rkey = (DM + 1) << 8,
					    .sge = &sge,
					    .n_sge = 1 };

		assert_int_equal(urdma_eh_post_send(&side->qp[0], &wr), 0);
		assert_int_equal(wait_cqe(&side->send_cq), URDMA_WC_SUCCESS);
	}
	for (unsigned int i = 0; i < PAGES; i++)
		for (unsigned int at = 0; at < 4096; at += 4032) {
			assert_int_equal(urdma_eh_dm_read(peer->eh,
							  (table[i] & ~URDMA_ADDR_DM) + at, got,
							  64),
					 0);
			assert_memory_equal(got, side->buffer + 4096 * i + at, 64);
		}
	rig_abandon(&rig);
	running = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(through_bar),	     cmocka_unit_test(kept_through_reset),
		cmocka_unit_test(messages),	     cmocka_unit_test(order),
		cmocka_unit_test(counter),	     cmocka_unit_test(beyond_the_end),
		cmocka_unit_test(beyond_the_region), cmocka_unit_test(page_table),
	};

	return cmocka_run_group_tests_name("dm", tests, NULL, NULL);
}
