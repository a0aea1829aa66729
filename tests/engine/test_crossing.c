// SPDX-License-Identifier: Apache-2.0
/*
 * Control that crosses traffic: objects that are destroyed while in use and made again with the
 * same number, send queues that drain while packets are lost, a function that loses bus mastering
 * or is reset in the middle of packets, and packets of a QP's former life. Each case sweeps the
 * moment of the control operation over the traffic. It checks what a program sees afterwards:
 * completions, memory, and that the NIC does not touch memory that it has given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "judge.h"
#include "pcie/config_space.h"
#include "pcie/pcie.h"
#include "seed.h"
#include "work.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LIMIT	 4000000u

static struct rig rig;
static struct judge judge;
static bool running;

static void start(void (*change)(struct rig_config *))
{
	struct rig_config config;

	if (running) { /* a test has failed */
		judge_drop(&judge);
		rig_abandon(&rig);
	}
	rig_defaults(&config);
	config.memory.memory = 96u << 20;
	config.faults = true;
	if (change)
		change(&config);
	rig_start(&rig, &config);
	running = true;
}

static void stop(void)
{
	rig_stop(&rig);
	running = false;
}

static void run(uint64_t cycles)
{
	rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + cycles),
		  "run");
}

static void settle(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
}

static void drop_cqes(void)
{
	struct urdma_eh_cqe cqe;

	for (unsigned int n = 0; n < 2; n++) {
		while (urdma_eh_poll_cq(&rig.side[n].send_cq, &cqe, 1))
			;
		while (urdma_eh_poll_cq(&rig.side[n].recv_cq, &cqe, 1))
			;
	}
}

#define LOAD 16u

/* Work of all kinds, both ways, is posted. */
static void post(struct work w[LOAD], uint32_t seed)
{
	static const unsigned int opcodes[] = { URDMA_WR_WRITE, URDMA_WR_SEND, URDMA_WR_READ,
						URDMA_WR_ATOMIC_FA };

	for (unsigned int i = 0; i < LOAD; i++) {
		w[i] = (struct work){ .opcode = opcodes[(i / 2 + seed) % COUNT(opcodes)],
				      .from = i % 2,
				      .len = 3000 + 100 * i,
				      .seed = seed + i,
				      .at = i * work_slot(8192) };
		work_put(&rig, &w[i]);
	}
	work_ring(&rig, w, LOAD);
}

/* Posts the same, and nobody waits for it. */
static void load(uint32_t seed)
{
	struct work w[LOAD];

	post(w, seed);
	for (unsigned int i = 0; i < LOAD; i++)
		for (unsigned int s = 0; s < 2; s++)
			free(w[i].image[s]);
}

/* The pair works: messages both ways, with every byte compared. */
static void works(uint32_t seed, const char *what)
{
	struct work w[8] = { 0 };

	for (unsigned int i = 0; i < COUNT(w); i++)
		w[i] = (struct work){ .opcode = i / 2 % 2 ? URDMA_WR_SEND : URDMA_WR_WRITE,
				      .from = i % 2,
				      .len = 2000 + 300 * i,
				      .seed = seed ^ (i << 8),
				      .at = i * work_slot(8192) };
	work_run(&rig, w, COUNT(w), LIMIT, what);
}

static void connect_from(uint32_t psn0, uint32_t psn1)
{
	struct urdma_eh_conn conn = rig.config.conn;

	conn.sq_psn = psn0;
	conn.rq_psn = psn1;
	assert_int_equal(urdma_eh_connect_as(&rig.side[0].qp[0], &rig.side[1].qp[0], &conn, false),
			 0);
}

/* ---- memory that was given back -------------------------------------------------------------- */

#define HELD  8u
#define HOLES 64u /* at most this many free places of that length before the chosen one */

/* Memory of destroyed objects. The host uses it for other things: the NIC must not touch it. */
static struct held {
	uint8_t *p;
	size_t len;
} held[HELD];
static unsigned int n_held;

/* Takes over the memory at p, which belonged to an object until now. */
static void hold(const void *p, size_t len)
{
	void *other[HOLES];
	unsigned int n = 0;

	assert_true(n_held < HELD);
	while ((other[n] = urdma_embedded_alloc(rig.host, len)) != p) {
		n++;
		assert_true(n < HOLES);
	}
	held[n_held].p = other[n];
	held[n_held++].len = len;
	while (n)
		urdma_embedded_free(rig.host, other[--n]);
	memset(held[n_held - 1].p, 0xa5, len);
}

static void check_held(unsigned int delay, const char *what)
{
	for (unsigned int i = 0; i < n_held; i++)
		for (size_t k = 0; k < held[i].len; k++)
			if (held[i].p[k] != 0xa5)
				fail_msg("%s, delay %u: the NIC has written to memory %u of a "
					 "destroyed object, byte %zu",
					 what, delay, i, k);
}

static void release(void)
{
	while (n_held)
		urdma_embedded_free(rig.host, held[--n_held].p);
}

static size_t ring_size(const struct urdma_eh_ring *ring)
{
	return (size_t)1 << (ring->log_entries + ring->log_stride);
}

/*
 * QPs, and in every other round their CQs, are destroyed with work under way and made again: the
 * same numbers, page tables at the same addresses, other pages. No old translation may be left.
 * Where the CQs stay, no flush on behalf of a CQ can hide a mistake.
 */
static void same_tables_other_pages(void **state)
{
	unsigned int round = 0;

	(void)state;
	start(NULL);
	for (unsigned int delay = 0; delay < 4000; delay += round++ % 2 * (1 + delay / 4)) {
		struct urdma_eh_ring old[2][4];
		bool cqs = round % 2;

		load(delay);
		run(delay);
		for (unsigned int n = 0; n < 2; n++) {
			struct rig_side *side = &rig.side[n];

			old[n][0] = side->qp[0].sq;
			old[n][1] = side->qp[0].rq;
			old[n][2] = side->send_cq.ring;
			old[n][3] = side->recv_cq.ring;
			assert_int_equal(urdma_eh_destroy_qp(&side->qp[0]), 0);
			hold(old[n][0].base, ring_size(&old[n][0]));
			hold(old[n][1].base, ring_size(&old[n][1]));
			if (!cqs)
				continue;
			assert_int_equal(urdma_eh_destroy_cq(&side->send_cq), 0);
			hold(old[n][2].base, ring_size(&old[n][2]));
			assert_int_equal(urdma_eh_destroy_cq(&side->recv_cq), 0);
			hold(old[n][3].base, ring_size(&old[n][3]));
		}
		for (unsigned int n = 0; n < 2; n++) {
			struct rig_side *side = &rig.side[n];
			const struct urdma_eh_ring *now[4] = { &side->qp[0].sq, &side->qp[0].rq,
							       &side->send_cq.ring,
							       &side->recv_cq.ring };
			unsigned int rings = cqs ? 4 : 2, same = 0;

			if (cqs)
				rig_make_queues(&rig, n);
			else
				rig_make_qp(&rig, n, 0);
			for (unsigned int i = 0; i < rings; i++) {
				assert_ptr_not_equal(now[i]->base, old[n][i].base);
				for (unsigned int k = 0; k < 2 * rings; k++)
					same += now[i]->map.addr ==
						old[k / rings][k % rings].map.addr;
			}
			/* The allocator decides which table takes whose place. */
			assert_int_equal(same, rings);
		}
		drop_cqes();
		connect_from(0, 0);
		works(delay, "same tables, other pages");
		settle();
		check_held(delay, "same tables, other pages");
		release();
	}
	stop();
}

/* ---- an EQ and its CQ, destroyed with an event under way ------------------------------------- */

enum { EQN = 5, CQN = 9, LOG_EQ = 6 };

static int eq_command(struct urdma_eh *eh, unsigned int opcode, const void *memory)
{
	struct urdma_eh_cmd cmd = { 0 };

	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, opcode) | URDMA_SET(URDMA_CMD0_OBJ, EQN);
	if (memory) {
		cmd.w[1] = URDMA_SET(URDMA_CMD_EQ1_LOG_ENTRIES, LOG_EQ) |
			   URDMA_SET(URDMA_CMD_EQ1_VECTOR, 2);
		cmd.w[2] = urdma_embedded_bus(rig.host, memory);
	}
	return urdma_eh_cmd(eh, &cmd, NULL);
}

static void event_under_way(void **state)
{
	const size_t size = (size_t)URDMA_EQE_SIZE << LOG_EQ;
	struct rig_side *side;
	unsigned int events = 0, none = 0;
	uint8_t *memory;

	(void)state;
	start(NULL);
	side = &rig.side[1];
	memory = urdma_embedded_alloc_contig(rig.host, size, 0);
	for (unsigned int delay = 0; delay < 1200; delay += 7) {
		struct urdma_eh_sge src = { (uintptr_t)rig.side[0].buffer, 64, rig.side[0].mr.key };
		struct urdma_eh_sge dst = { (uintptr_t)side->buffer, 64, side->mr.key };
		struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND, .sge = &src, .n_sge = 1 };
		struct urdma_eh_cq usual = side->recv_cq, cq;
		const uint8_t *entries;
		unsigned int wrote;

		/* The receive CQ of this round has an EQ of its own. */
		memset(memory, 0, size);
		assert_int_equal(eq_command(side->eh, URDMA_CMD_CREATE_EQ, memory), 0);
		assert_int_equal(urdma_eh_create_cq(side->eh, CQN, 6, EQN, RIG_DB_PAGE,
						    URDMA_EH_RING_PAGED, &cq),
				 0);
		side->recv_cq = cq;
		rig_renew_qp(&rig, 1, 0);
		assert_int_equal(urdma_eh_to_reset(&rig.side[0].qp[0]), 0);
		connect_from(0, 0);
		urdma_eh_doorbell(side->eh, 0, URDMA_DB_EQ,
				  URDMA_SET(URDMA_DBW_OBJ, EQN) |
					  URDMA_SET(URDMA_DBW_ARM, URDMA_DB_ARM_ANY));
		urdma_eh_arm_cq(&side->recv_cq, false);
		urdma_eh_post_recv(&side->qp[0], &dst, 1);
		urdma_eh_post_send(&rig.side[0].qp[0], &wr);
		run(delay);

		assert_int_equal(urdma_eh_destroy_qp(&side->qp[0]), 0);
		entries = side->recv_cq.ring.base;
		assert_int_equal(urdma_eh_destroy_cq(&side->recv_cq), 0);
		hold(entries, (size_t)1 << 11);
		assert_int_equal(eq_command(side->eh, URDMA_CMD_DESTROY_EQ, NULL), 0);
		wrote = !!(*(uint64_t *)memory | *(uint64_t *)(memory + 8));
		events += wrote;
		none += !wrote;
		memset(memory, 0xa5, size);
		run(3000);
		check_held(delay, "event under way");
		for (size_t i = 0; i < size; i++)
			if (memory[i] != 0xa5)
				fail_msg("delay %u: an event after the end of its EQ", delay);
		release();
		side->recv_cq = usual;
		rig_make_qp(&rig, 1, 0);
		assert_int_equal(urdma_eh_to_reset(&rig.side[0].qp[0]), 0);
		drop_cqes();
	}
	/* The sweep has hit moments before and after the event. */
	assert_true(events > 5 && none > 5);
	connect_from(0, 0);
	works(1, "afterwards");
	urdma_embedded_free(rig.host, memory);
	stop();
}

/* ---- a source address that is removed ----------------------------------------------------------
 */

static void set_own_gid(unsigned int side, bool valid)
{
	struct urdma_eh_cmd cmd = { 0 };
	uint8_t gid[16], mac[6];

	assert_int_equal(urdma_eh_mac(rig.side[side].eh, mac), 0);
	urdma_eh_own_gid(rig.side[side].eh, false, gid);
	cmd.w[0] = URDMA_SET(URDMA_CMD0_OPCODE, URDMA_CMD_SET_GID);
	if (valid) {
		cmd.w[1] = URDMA_CMD_GID1_VALID | URDMA_CMD_GID1_IPV4;
		memcpy(&cmd.w[2], mac, 6);
		memcpy(&cmd.w[3], gid, 16);
	}
	assert_int_equal(urdma_eh_cmd(rig.side[side].eh, &cmd, NULL), 0);
}

/* No packet is sent with an address that the port no longer has. Sending resumes when the address
 * is back. */
static void gid_goes(void **state)
{
	struct urdma_eh_cqe cqe;
	struct work w[8] = { 0 };
	uint64_t sent;

	(void)state;
	start(NULL);
	works(1, "before");
	settle();
	set_own_gid(0, false);
	sent = urdma_eh_counter(rig.side[0].eh, URDMA_CNT_TX_FRAMES);
	for (unsigned int i = 0; i < COUNT(w); i++) {
		w[i] = (struct work){ .opcode = i % 2 ? URDMA_WR_READ : URDMA_WR_WRITE,
				      .len = 5000,
				      .seed = i,
				      .at = i * work_slot(8192) };
		work_put(&rig, &w[i]);
	}
	work_ring(&rig, w, COUNT(w));
	run(100000); /* again, after the ACK timer */
	assert_int_equal(urdma_eh_counter(rig.side[0].eh, URDMA_CNT_TX_FRAMES), sent);
	assert_false(urdma_eh_poll_cq(&rig.side[0].send_cq, &cqe, 1));
	set_own_gid(0, true);
	work_finish(&rig, w, COUNT(w), LIMIT, "the address is back");
	stop();
}

/* ---- SQD while packets are lost -------------------------------------------------------------- */

static void drains_with_loss(void **state)
{
	enum { N = 240 };
	struct urdma_eh_event ev[8];
	struct rig_side *side;
	unsigned int early = 0;

	(void)state;
	start(NULL);
	side = &rig.side[0];
	for (unsigned int round = 0; round < 80; round++) {
		struct work w[N] = { 0 };
		struct urdma_eh_qp_info info;
		struct urdma_eh_cqe cqe;
		unsigned int done = 0, drained = 0;
		uint64_t sent, limit;
		bool told = false;

		/* One packet or ACK is lost. The sweep varies which one, and the moment. */
		rig_fault(&rig, "drop,side=%u,nth=%u", round % 2, 1 + round / 2 % 9);
		for (unsigned int i = 0; i < N; i++) {
			w[i] = (struct work){ .opcode = i % 3 == 1   ? URDMA_WR_READ
							: i % 3 == 2 ? URDMA_WR_SEND
								     : URDMA_WR_WRITE,
					      .len = 1500,
					      .seed = round + i,
					      .at = i * work_slot(1500) };
			work_put(&rig, &w[i]);
		}
		work_ring(&rig, w, N);
		run(200 + round * 37 % 3000);
		assert_int_equal(urdma_eh_to_sqd(&side->qp[0], true), 0);
		limit = urdma_cosim_now(rig.cosim) + LIMIT;
		while (!drained) {
			unsigned int n = urdma_eh_eq_poll(side->eh, 0, ev, 8, true);

			for (unsigned int i = 0; i < n; i++)
				drained += ev[i].type == URDMA_EV_SQ_DRAINED &&
					   ev[i].obj == RIG_QPN(0);
			assert_true(urdma_cosim_now(rig.cosim) < limit);
			assert_false(told && !drained);
			/* The answer of QUERY_QP is true, too: the event is at most on its way. */
			assert_int_equal(urdma_eh_qp_info(&side->qp[0], &info), 0);
			told = !info.draining;
			run(told ? 2000 : 50);
		}
		/* The message that was begun is complete, and nothing more is sent. */
		assert_int_equal(drained, 1);
		assert_int_equal(urdma_eh_qp_info(&side->qp[0], &info), 0);
		assert_int_equal(info.state, URDMA_QPS_SQD);
		assert_false(info.draining);
		while (urdma_eh_poll_cq(&side->send_cq, &cqe, 1))
			work_check_send(&rig, &w[done++], &cqe);
		sent = urdma_eh_counter(side->eh, URDMA_CNT_TX_RDMA_PKTS);
		run(300000); /* longer than the ACK timer */
		if (urdma_eh_counter(side->eh, URDMA_CNT_TX_RDMA_PKTS) != sent)
			fail_msg("round %u: packets of a drained send queue", round);
		if (urdma_eh_cq_ready(&side->send_cq))
			fail_msg("round %u: a message completes behind SQ_DRAINED", round);
		early += done < N;
		assert_int_equal(urdma_eh_sqd_to_rts(&side->qp[0]), 0);
		for (; done < N; done++) {
			rig_check(&rig, urdma_eh_next_cqe(&side->send_cq, &cqe, LIMIT),
				  "after SQD");
			work_check_send(&rig, &w[done], &cqe);
		}
		settle();
		for (unsigned int i = 0; i < N; i++) {
			if (work_takes_recv(w[i].opcode)) {
				rig_check(&rig,
					  urdma_eh_next_cqe(&rig.side[1].recv_cq, &cqe, LIMIT),
					  "receive");
				work_check_recv(&rig, &w[i], &cqe);
			}
			work_check_memory(&rig, &w[i]);
		}
	}
	/* In some rounds work was left when the SQD came. */
	assert_true(early > 20);
	stop();
}

/* ---- bus mastering and reset in mid-packet --------------------------------------------------- */

/* A register of two bytes in the configuration space. */
static void configure(unsigned int side, unsigned int offset, uint16_t value)
{
	struct urdma_pcie *pcie = urdma_embedded_pcie(urdma_eh_dev(rig.side[side].eh));

	assert_int_equal(urdma_pcie_config_write(pcie, offset, &value, sizeof(value)), 0);
}

static void bus_master(unsigned int side, bool on)
{
	configure(side, 4, on ? 6 : 2);
}

static uint64_t memory_hash(unsigned int side)
{
	const struct rig_side *s = &rig.side[side];
	uint64_t hash = rig_hash(RIG_HASH_START, s->buffer, 256u << 10);

	hash = rig_hash(hash, s->send_cq.ring.base, ring_size(&s->send_cq.ring));
	return rig_hash(hash, s->recv_cq.ring.base, ring_size(&s->recv_cq.ring));
}

static void much_memory(struct rig_config *config)
{
	config->memory.memory = 768u << 20;
	config->buffer = 1u << 20;
}

static bool ready(struct urdma_eh *eh)
{
	return !!(urdma_eh_reg(eh, URDMA_REG_STATUS) & URDMA_RF_STATUS_READY);
}

/* The side's NIC is brought up again, and its peer's QP waits in RESET. */
static void restart(unsigned int side)
{
	rig_restart_side(&rig, side);
	assert_int_equal(urdma_eh_to_reset(&rig.side[!side].qp[0]), 0);
	drop_cqes();
}

/*
 * A function loses bus mastering, is reset by its register, or loses its host, in the middle of
 * packets both ways; afterwards a new life works. The wire checker judges what is sent before and
 * after.
 */
static void cut_in_mid_packet(void **state)
{
	uint64_t seed = test_seed(13);
	uint32_t psn = 0;

	(void)state;
	start(much_memory);
	judge_start(&judge, &rig, false);
	judge.reset = true;
	for (unsigned int round = 0; round < 72; round++) {
		unsigned int side = round % 2;
		uint64_t hash;

		load(round);
		run(rig_draw(&seed, 1200));
		judge_stop(&judge, 0, 0);
		judge_stop(&judge, 1, 0);
		switch (round / 2 % 3) {
		case 0:
			bus_master(side, false);
			run(500); /* the requests that the root complex already has */
			break;
		case 1:
			urdma_eh_write_reg(rig.side[side].eh, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
			for (unsigned int i = 0; !ready(rig.side[side].eh); i++)
				assert_true(i < 1000);
			break;
		default:
			break;
		}
		if (round / 2 % 3 < 2) {
			hash = memory_hash(side);
			run(5000);
			if (memory_hash(side) != hash)
				fail_msg("round %u: writes after they were stopped", round);
		}
		bus_master(side, true);
		restart(side);
		/* far from what may still be on the wire */
		psn = (psn + 0x300001) & 0xffffff;
		judge_connect(&judge, 0, psn, psn ^ 0x800000);
		connect_from(psn, psn ^ 0x800000);
		works(round, "after the reset");
	}
	settle();
	judge_end(&judge, "bus mastering and resets");
	stop();
}

/* Programs that ring doorbells all the time do not delay the end of a reset. */
static void doorbells_during_reset(void **state)
{
	const uint32_t pause[] = { 4, 8, 15 };

	(void)state;
	start(much_memory);
	for (unsigned int round = 0; round < 2 * COUNT(pause); round++) {
		unsigned int side = round % 2;
		struct urdma_eh *eh = rig.side[side].eh;
		uint64_t end;

		load(round);
		run(300);
		urdma_eh_write_reg(eh, URDMA_REG_CTRL, URDMA_RF_CTRL_RESET);
		/* A reset takes about 70 us. */
		end = urdma_cosim_now(rig.cosim) + 100000 / URDMA_SIM_CYCLE_NS;
		for (unsigned int i = 0; urdma_cosim_now(rig.cosim) < end; i++) {
			urdma_eh_doorbell(eh, 0, i % 2 ? URDMA_DB_SQ : URDMA_DB_CQ, i);
			run(pause[round / 2]);
		}
		assert_true(ready(eh));
		restart(side);
		connect_from(0, 0);
		works(round, "after doorbells during a reset");
	}
	stop();
}

/* ---- a fence beside long READs --------------------------------------------------------------- */

#define LONG_READ (1u << 20)

static void long_reads(struct rig_config *config)
{
	config->memory.memory = 256u << 20;
	config->buffer = 16 * work_slot(LONG_READ);
}

/*
 * A CQ of a NIC is destroyed while that NIC answers READs, which takes 1.3 ms. The command waits
 * only for the part of them that is under way.
 */
static void fence_beside_reads(void **state)
{
	const uint64_t most = 200000 / URDMA_SIM_CYCLE_NS;
	struct work w[16];

	(void)state;
	start(long_reads);
	for (unsigned int i = 0; i < COUNT(w); i++) {
		w[i] = (struct work){ .opcode = URDMA_WR_READ,
				      .len = LONG_READ,
				      .seed = i,
				      .at = i * work_slot(LONG_READ) };
		work_put(&rig, &w[i]);
	}
	work_ring(&rig, w, COUNT(w));
	run(4000);
	for (unsigned int i = 0; i < 3; i++) {
		struct urdma_eh *eh = rig.side[1].eh;
		struct urdma_eh_cq cq;
		uint64_t from;

		assert_int_equal(
			urdma_eh_create_cq(eh, 9, 6, 0, RIG_DB_PAGE, URDMA_EH_RING_PAGED, &cq), 0);
		from = urdma_cosim_now(rig.cosim);
		assert_int_equal(urdma_eh_destroy_cq(&cq), 0);
		if (urdma_cosim_now(rig.cosim) - from > most)
			fail_msg("destroying a CQ took %llu cycles",
				 (unsigned long long)(urdma_cosim_now(rig.cosim) - from));
	}
	work_finish(&rig, w, COUNT(w), LIMIT, "READs beside a fence");
	stop();
}

/* ---- sizes of TLPs --------------------------------------------------------------------------- */

/* A host changes maximum payload size and maximum read request size while messages run. */
static void sizes_change(void **state)
{
	uint64_t seed = test_seed(17);

	(void)state;
	start(NULL);
	for (unsigned int round = 0; round < 24; round++) {
		struct work w[LOAD];

		post(w, round);
		for (unsigned int i = 0; i < 30; i++) {
			uint64_t payload = rig_draw(&seed, 3), request = rig_draw(&seed, 6);

			configure(rig_draw(&seed, 2), URDMA_CONFIG_CAP_PCIE + 8,
				  (uint16_t)(payload << 5 | request << 12));
			run(1 + rig_draw(&seed, 150));
		}
		work_finish(&rig, w, LOAD, LIMIT, "while sizes change");
	}
	stop();
}

/* ---- a former life --------------------------------------------------------------------------- */

static void long_wire(struct rig_config *config)
{
	config->cosim.delay_ns = 4000;
}

/*
 * The QPs of a pair end with packets, ACKs and responses on a long wire, and are connected again at
 * once, with PSNs far from the old ones. Late packets must not be taken for packets of the new
 * life.
 */
static void former_life(void **state)
{
	uint64_t seed = test_seed(17);
	uint32_t psn[2] = { 0x000123, 0xfffff0 };

	(void)state;
	start(long_wire);
	for (unsigned int round = 0; round < 80; round++) {
		load(round);
		run(rig_draw(&seed, 5000));
		for (unsigned int n = 0; n < 2; n++) {
			if (round % 2)
				rig_renew_qp(&rig, n, 0);
			else
				assert_int_equal(urdma_eh_to_reset(&rig.side[n].qp[0]), 0);
			/* The PSNs are neither among those under way nor where they would be
			 * duplicates or ahead by less than the window. */
			psn[n] = (psn[n] + 0x400000 + rig_draw(&seed, 0x1000)) & 0xffffff;
		}
		drop_cqes();
		connect_from(psn[0], psn[1]);
		works(round, "after a former life");
	}
	stop();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		CMUnitTestFunction fn;
	} cases[] = {
		{ "same tables, other pages", same_tables_other_pages },
		{ "event under way", event_under_way },
		{ "GID goes", gid_goes },
		{ "drains with loss", drains_with_loss },
		{ "cut in mid-packet", cut_in_mid_packet },
		{ "doorbells during a reset", doorbells_during_reset },
		{ "fence beside READs", fence_beside_reads },
		{ "sizes change", sizes_change },
		{ "former life", former_life },
	};
	struct CMUnitTest tests[COUNT(cases)];
	size_t n = 0;

	/* One at least, also if a part of them is left out. */
	for (size_t i = 0; i < COUNT(cases); i++)
		if (rig_wanted(cases[i].name, argc - 1, argv + 1) &&
		    (!i || !rig_left_out(cases[i].name, 3)))
			tests[n++] = (struct CMUnitTest){ .name = cases[i].name,
							  .test_func = cases[i].fn };
	return _cmocka_run_group_tests("crossing", tests, n, NULL, NULL);
}
