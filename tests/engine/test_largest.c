// SPDX-License-Identifier: Apache-2.0
/*
 * The largest possible rings: send queue, receive queue and CQs. One doorbell announces as many
 * WQEs as the ring has, again and again until the 16-bit indices have wrapped. Each message
 * contains its number and has to arrive in its place. An old doorbell that comes while a ring is
 * full has no effect, although its index differs from the ring's by 2^15.
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

#define LOG_RING 15u
#define WQES	 (1u << LOG_RING)
#define ROUNDS	 3u    /* of 2^15 messages: the indices pass 2^16 */
#define PLACES	 4096u /* of messages that are compared before they are overwritten */
#define SLOT	 1024u
#define MAX_LEN	 512u
#define GRH	 40u
#define QKEY	 0x11u
#define TAKEN	 400u	 /* cycles until a doorbell is taken; nothing completes before */
#define TURN	 2000u	 /* cycles between two checks of the host */
#define LIMIT	 400000u /* cycles without a CQE */

static struct rig rig;
static struct urdma_eh_ah ah;
static uint32_t len;	      /* of a message */
static uint64_t first_number; /* of the round */

static uint8_t *slot(unsigned int i)
{
	return rig.side[1].buffer + (size_t)(i % PLACES) * SLOT;
}

/* Message i is len bytes of numbers that begin with i. */
static uint64_t *source(unsigned int i)
{
	return (uint64_t *)rig.side[0].buffer + i % WQES;
}

static void put(unsigned int i)
{
	bool ud = rig.config.type == URDMA_QPT_UD;
	struct urdma_eh_sge from = { (uintptr_t)source(i), len, rig.side[0].mr.key };
	struct urdma_eh_sge to = { (uintptr_t)slot(i), SLOT, rig.side[1].mr.key };

	assert_int_equal(urdma_eh_put_recv(&rig.side[1].qp[0], &to, 1), 0);
	assert_int_equal(urdma_eh_put_send(&rig.side[0].qp[0],
					   &(struct urdma_eh_send){
						   .opcode = URDMA_WR_SEND,
						   .ah = ud ? &ah : NULL,
						   .dest_qpn = RIG_QPN(0),
						   .qkey = QKEY,
						   /*
						    * The last CQE completes all messages before it.
						    */
						   .signaled = i % WQES == WQES - 1,
						   .sge = &from,
						   .n_sge = 1,
					   }),
			 0);
}

/* Checks the CQE of message i, and the data that arrived. */
static void check(unsigned int i, const struct urdma_eh_cqe *cqe)
{
	uint32_t grh = rig.config.type == URDMA_QPT_UD ? GRH : 0;
	uint64_t number[MAX_LEN / 8];

	assert_int_equal(cqe->status, URDMA_WC_SUCCESS);
	assert_int_equal(cqe->wqe, i & 0xffff);
	assert_int_equal(cqe->length, grh + len);
	memcpy(number, slot(i) + grh, len);
	for (unsigned int k = 0; k < len / 8; k++)
		assert_int_equal(number[k], first_number + i % WQES + k);
}

/* Repeats the doorbell of the round before, when the last one has been taken. */
static void ring_old(struct urdma_eh_qp *qp, unsigned int doorbell, unsigned int index)
{
	rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + TAKEN),
		  "doorbell");
	urdma_eh_doorbell(qp->eh, qp->db_page, doorbell,
			  URDMA_SET(URDMA_DBW_OBJ, qp->qpn) | URDMA_SET(URDMA_DBW_INDEX, index));
}

static void one_round(unsigned int round)
{
	unsigned int first = round * WQES, got = 0;
	uint64_t seen = urdma_cosim_now(rig.cosim), now;
	struct urdma_eh_cqe cqe[64], sent;

	first_number = (uint64_t)(round + 1) << 32;
	for (unsigned int i = 0; i < WQES + len / 8; i++)
		((uint64_t *)rig.side[0].buffer)[i] = first_number + i;
	for (unsigned int i = 0; i < WQES; i++)
		put(first + i);
	urdma_eh_ring_rq(&rig.side[1].qp[0]);
	ring_old(&rig.side[1].qp[0], URDMA_DB_RQ, first);
	/* The receives are posted first: a datagram does not wait for them. */
	rig_check(&rig, urdma_cosim_run_until(rig.cosim, seen + TURN), "receives");
	urdma_eh_ring_sq(&rig.side[0].qp[0]);
	ring_old(&rig.side[0].qp[0], URDMA_DB_SQ, first);
	while (got < WQES) {
		unsigned int n;

		now = urdma_cosim_now(rig.cosim);
		rig_check(&rig, urdma_cosim_run_until(rig.cosim, now + TURN), "messages");
		while ((n = urdma_eh_poll_cq(&rig.side[1].recv_cq, cqe, 64))) {
			for (unsigned int k = 0; k < n; k++)
				check(first + got++, &cqe[k]);
			seen = now;
		}
		if (now > seen + LIMIT)
			fail_msg("message %u of %u does not come", got, WQES);
	}
	assert_int_equal(urdma_eh_next_cqe(&rig.side[0].send_cq, &sent, LIMIT), 0);
	assert_int_equal(sent.status, URDMA_WC_SUCCESS);
	assert_int_equal(sent.wqe, (first + WQES - 1) & 0xffff);
}

static void test_largest(void **state)
{
	unsigned int type = *(const unsigned int *)*state;
	struct urdma_eh_qp_info info;
	struct rig_config config;

	/* Datagrams are lost if they arrive faster than the NIC takes them. */
	len = type == URDMA_QPT_UD ? MAX_LEN : 64;
	rig_defaults(&config);
	config.type = type;
	config.memory.memory = 128u << 20;
	config.log_sq = config.log_rq = LOG_RING;
	config.log_stride = 7;
	config.log_cqe = 16;
	config.conn.qkey = QKEY;
	rig_start(&rig, &config);
	assert_int_equal(urdma_eh_caps(rig.side[0].eh)->log_sq, LOG_RING);
	assert_int_equal(urdma_eh_caps(rig.side[0].eh)->log_rq, LOG_RING);
	assert_int_equal(urdma_eh_ah_to(rig.side[1].eh, false, &ah), 0);
	for (unsigned int round = 0; round < ROUNDS; round++)
		one_round(round);
	assert_int_equal(urdma_eh_qp_info(&rig.side[0].qp[0], &info), 0);
	assert_int_equal(info.state, URDMA_QPS_RTS);
	assert_int_equal(info.sq_ci, (ROUNDS * WQES) & 0xffff);
	assert_int_equal(urdma_eh_qp_info(&rig.side[1].qp[0], &info), 0);
	assert_int_equal(info.rq_ci, (ROUNDS * WQES) & 0xffff);
	rig_stop(&rig);
}

int main(void)
{
	static const unsigned int types[] = { URDMA_QPT_RC, URDMA_QPT_UD };
	const struct CMUnitTest tests[] = {
		{ "RC", test_largest, NULL, NULL, (void *)(uintptr_t)&types[0] },
		{ "UD", test_largest, NULL, NULL, (void *)(uintptr_t)&types[1] },
	};

	return cmocka_run_group_tests_name("engine/largest", tests, NULL, NULL);
}
