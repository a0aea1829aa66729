// SPDX-License-Identifier: Apache-2.0
/*
 * Two processes on one NIC. The neighbour WRITEs to the other NIC, and every byte is compared. The
 * hostile process has its own doorbell page, PD, CQs and QPs, and misuses them as fast as a CPU
 * writes doorbells. The neighbour's share of what both use is half, so it may get slower by that
 * factor, and no more. Its data and objects stay intact, and nothing stalls.
 *
 * Arguments: words that case names contain (rig.h). SEED= chooses the random numbers.
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

#define MESSAGES  192u
#define AHEAD	  8u /* messages of the neighbour under way */
#define LEN	  4096u
#define TURN	  64u /* cycles between two checks of the host */
#define LIMIT	  400000u
#define FAIR	  2.0 /* at most so many times as long as alone: two processes share */
#define PAGE	  6u  /* doorbell page of the hostile process */
#define PD	  2u
#define CQN	  0x20u
#define QPN	  0x40u
#define KEY_INDEX 9u
#define QKEY	  0x1111u
#define LOG_SQ	  8u

struct hostile;
typedef void (*act_fn)(struct hostile *h);

struct kind {
	const char *name;
	unsigned int type; /* of its QPs; 0: it has none */
	act_fn act;	   /* the attack, made `acts` times in a turn */
	unsigned int acts;
	unsigned int log_cqe;
	bool polls; /* its send CQ */
};

struct hostile {
	const struct kind *kind;
	struct urdma_eh_cq cq[2];
	struct urdma_eh_qp qp[2];
	struct urdma_eh_mr mr[2];
	uint8_t *buffer[2];
	struct urdma_eh_ah ah;
	uint64_t rnd, acts;
	uint32_t done; /* WQEs of its QP that are completed */
};

static struct rig rig;

static uint32_t draw(struct hostile *h, uint32_t n)
{
	return rig_draw(&h->rnd, n);
}

static bool has_room(struct hostile *h)
{
	return h->qp[0].sq_pi - h->done < 1u << LOG_SQ;
}

/* Doorbells of any kind for any object, with any index. */
static void any_doorbell(struct hostile *h)
{
	static const unsigned int offset[] = { URDMA_DB_SQ, URDMA_DB_RQ,     URDMA_DB_CQ,
					       URDMA_DB_EQ, URDMA_DB_ETH_TX, URDMA_DB_ETH_RX,
					       URDMA_DB_SRQ };
	uint64_t object = draw(h, 2) ? draw(h, 64) : draw(h, 1u << 24);

	urdma_eh_doorbell(rig.side[0].eh, PAGE, draw(h, 8) ? offset[draw(h, 7)] : draw(h, 512) * 8,
			  (rnd_next(&h->rnd) & URDMA_DBW_INDEX) |
				  URDMA_SET(URDMA_DBW_ARM, draw(h, 4)) |
				  URDMA_SET(URDMA_DBW_OBJ, object));
}

/* The doorbell of its own QP over and over, with nothing new in the ring. */
static void same_doorbell(struct hostile *h)
{
	urdma_eh_ring_sq(&h->qp[0]);
}

/* Small WRITEs of UC whose key the peer refuses. */
static void refused_write(struct hostile *h)
{
	struct urdma_eh_sge sge = { (uintptr_t)h->buffer[0], 64, h->mr[0].key };

	if (!has_room(h))
		return;
	assert_int_equal(urdma_eh_post_send(&h->qp[0],
					    &(struct urdma_eh_send){
						    .opcode = URDMA_WR_WRITE,
						    .signaled = true,
						    .raddr = (uintptr_t)rig.side[1].buffer,
						    .rkey = rig.side[1].mr.key,
						    .sge = &sge,
						    .n_sge = 1,
					    }),
			 0);
}

static void datagram(struct hostile *h, const struct urdma_eh_ah *ah, uint32_t qpn, uint32_t qkey)
{
	struct urdma_eh_sge sge = { (uintptr_t)h->buffer[0], 64, h->mr[0].key };

	if (!has_room(h))
		return;
	assert_int_equal(urdma_eh_post_send(&h->qp[0],
					    &(struct urdma_eh_send){
						    .opcode = URDMA_WR_SEND,
						    .signaled = true,
						    .ah = ah,
						    .dest_qpn = qpn,
						    .qkey = qkey,
						    .sge = &sge,
						    .n_sge = 1,
					    }),
			 0);
}

/* Datagrams to the neighbour's QP and others, with wrong Q_Keys. */
static void unwanted_datagram(struct hostile *h)
{
	datagram(h, &h->ah,
		 draw(h, 2)   ? RIG_QPN(0)
		 : draw(h, 2) ? QPN
			      : draw(h, 1u << 24),
		 (uint32_t)rnd_next(&h->rnd) & 0x7fffffff);
}

/* Datagrams whose address handle has a GID that is not valid, or none: nothing is sent. */
static void no_source(struct hostile *h)
{
	struct urdma_eh_ah ah = h->ah;

	ah.sgid_index = 5 + draw(h, 250);
	datagram(h, &ah, QPN, QKEY);
}

/* A QP in ERR that gets WQE after WQE: each is flushed. Its CQ may be full. */
static void flushed(struct hostile *h)
{
	if (!h->acts)
		assert_int_equal(urdma_eh_to_err(&h->qp[0]), 0);
	refused_write(h);
	if (!h->kind->polls)
		h->done = h->qp[0].sq_pi;
}

static const struct kind kinds[] = {
	{ "doorbells of every kind", 0, any_doorbell, 16, 4, false },
	{ "the same doorbell again and again", URDMA_QPT_UC, same_doorbell, 16, 10, true },
	{ "WRITEs that are refused", URDMA_QPT_UC, refused_write, 8, 10, true },
	{ "datagrams that nobody wants", URDMA_QPT_UD, unwanted_datagram, 8, 10, true },
	{ "datagrams without a source", URDMA_QPT_UD, no_source, 8, 10, true },
	{ "WQEs that are flushed", URDMA_QPT_UC, flushed, 8, 10, true },
	{ "WQEs that are flushed to a CQ that is full", URDMA_QPT_UC, flushed, 8, 4, false },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void make_hostile(struct hostile *h)
{
	const struct kind *k = h->kind;

	for (unsigned int s = 0; s < 2; s++) {
		struct urdma_eh *eh = rig.side[s].eh;
		struct urdma_eh_qp_attr attr = {
			.qpn = QPN,
			.pd = PD,
			.send_cq = &h->cq[s],
			.recv_cq = &h->cq[s],
			.db_page = PAGE,
			.log_sq = LOG_SQ,
			.log_rq = 4,
			.log_sq_stride = 7,
			.log_rq_stride = 6,
			.type = k->type,
		};

		assert_int_equal(urdma_eh_alloc_pd(eh, PD), 0);
		h->buffer[s] = urdma_embedded_alloc(rig.host, 4096);
		assert_non_null(h->buffer[s]);
		assert_int_equal(urdma_eh_create_mr(eh, KEY_INDEX, 0x77, PD, URDMA_ACC_LOCAL_WRITE,
						    h->buffer[s], 4096, (uintptr_t)h->buffer[s],
						    &h->mr[s]),
				 0);
		assert_int_equal(urdma_eh_create_cq(eh, CQN, s ? 10 : k->log_cqe, 1, PAGE,
						    URDMA_EH_RING_PAGED, &h->cq[s]),
				 0);
		if (k->type)
			assert_int_equal(urdma_eh_create_qp(eh, &attr, &h->qp[s]), 0);
	}
	if (k->type) {
		struct urdma_eh_conn conn = rig.config.conn;

		conn.qkey = QKEY;
		assert_int_equal(urdma_eh_connect_as(&h->qp[0], &h->qp[1], &conn, false), 0);
	}
	assert_int_equal(urdma_eh_ah_to(rig.side[1].eh, false, &h->ah), 0);
}

static void destroy_hostile(struct hostile *h)
{
	for (unsigned int s = 0; s < 2; s++) {
		if (h->kind->type)
			assert_int_equal(urdma_eh_destroy_qp(&h->qp[s]), 0);
		assert_int_equal(urdma_eh_destroy_cq(&h->cq[s]), 0);
		assert_int_equal(urdma_eh_destroy_mr(&h->mr[s]), 0);
		assert_int_equal(urdma_eh_dealloc_pd(rig.side[s].eh, PD), 0);
		urdma_embedded_free(rig.host, h->buffer[s]);
	}
}

static void turn(struct hostile *h)
{
	struct urdma_eh_cqe cqe[32];
	unsigned int n;

	for (unsigned int i = 0; i < h->kind->acts; i++) {
		h->kind->act(h);
		h->acts++;
	}
	while (h->kind->polls && (n = urdma_eh_poll_cq(&h->cq[0], cqe, 32)))
		h->done += n;
}

/* The neighbour's message i: its place, the same on both sides, and its content. */
static uint8_t *place(unsigned int side, unsigned int i)
{
	return rig.side[side].buffer + (size_t)i * LEN;
}

static void put(unsigned int i, uint32_t seed)
{
	struct urdma_eh_sge sge = { (uintptr_t)place(0, i), LEN, rig.side[0].mr.key };

	rig_fill(place(0, i), LEN, seed + i);
	memset(place(1, i), 0, LEN);
	assert_int_equal(urdma_eh_post_send(&rig.side[0].qp[0],
					    &(struct urdma_eh_send){
						    .opcode = URDMA_WR_WRITE,
						    .signaled = true,
						    .raddr = (uintptr_t)place(1, i),
						    .rkey = rig.side[1].mr.key,
						    .sge = &sge,
						    .n_sge = 1,
					    }),
			 0);
}

/* Runs the neighbour's messages, beside the hostile process if there is one. Returns cycles. */
static uint64_t neighbour(struct hostile *h, uint32_t seed)
{
	uint64_t start = urdma_cosim_now(rig.cosim), seen = start, now;
	unsigned int posted = 0, done = 0;
	struct urdma_eh_cqe cqe[AHEAD];

	while (done < MESSAGES) {
		unsigned int n;

		while (posted < MESSAGES && posted - done < AHEAD)
			put(posted++, seed);
		if (h)
			turn(h);
		now = urdma_cosim_now(rig.cosim);
		rig_check(&rig, urdma_cosim_run_until(rig.cosim, now + TURN), "the neighbour");
		n = urdma_eh_poll_cq(&rig.side[0].send_cq, cqe, AHEAD);
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(cqe[i].status, URDMA_WC_SUCCESS);
		done += n;
		if (n)
			seen = now;
		else if (now > seen + LIMIT)
			fail_msg("the neighbour stands still with %u of %u messages", done,
				 MESSAGES);
	}
	now = urdma_cosim_now(rig.cosim);
	for (unsigned int i = 0; i < MESSAGES; i++)
		assert_int_equal(rig_verify(place(1, i), LEN, seed + i), LEN);
	return now - start;
}

static void test_hostile(void **state)
{
	struct hostile h = { .kind = *state, .rnd = test_seed(1) };
	uint64_t alone, beside;

	/* Page tables are cached on the NIC from the second time on. */
	neighbour(NULL, 1000);
	alone = neighbour(NULL, 2000);
	make_hostile(&h);
	/* The attack begins before the measurement. */
	for (unsigned int i = 0; i < 64; i++) {
		turn(&h);
		rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + TURN),
			  h.kind->name);
	}
	beside = neighbour(&h, 5000);
	print_message("  %lu cycles alone, %lu beside it: %.2f times; %lu acts\n",
		      (unsigned long)alone, (unsigned long)beside, (double)beside / (double)alone,
		      (unsigned long)h.acts);
	if ((double)beside > FAIR * (double)alone)
		fail_msg("the neighbour has less than its share");
	destroy_hostile(&h);
	neighbour(NULL, 9000);
}

static int start(void **state)
{
	struct rig_config config;

	(void)state;
	rig_defaults(&config);
	config.log_sq = 4;
	rig_start(&rig, &config);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	rig_stop(&rig);
	return 0;
}

int main(int argc, char **argv)
{
	struct CMUnitTest test[KINDS];
	size_t n = 0;

	for (size_t i = 0; i < KINDS; i++)
		if (rig_wanted(kinds[i].name, argc - 1, argv + 1))
			test[n++] = (struct CMUnitTest){
				.name = kinds[i].name,
				.test_func = test_hostile,
				.setup_func = start,
				.teardown_func = stop,
				.initial_state = (void *)(uintptr_t)&kinds[i],
			};
	return _cmocka_run_group_tests("engine/hostile", test, n, NULL, NULL);
}
