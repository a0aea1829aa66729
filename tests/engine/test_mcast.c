// SPDX-License-Identifier: Apache-2.0
/*
 * Multicast, from the specification (volume 1, 10.5; annex A17): a datagram to a group reaches each
 * member once, on this NIC and on the other one, and no other QP. Members join and leave while
 * other traffic goes on. Every byte, CQE and GRH is compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net.h"
#include "rtl/rx/rx_packet.h"
#include "seed.h"
#include "work.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GRH	 40u
#define QKEY	 0x11111111u
#define ALL	 0xffffffu /* QPN of groups */
#define QPS	 6u
#define SLOT	 8192u
#define RX_AT	 0x100000u /* receives: QPS * DEPTH slots */
#define DEPTH	 16u

static struct rig rig;
static bool running;

static void start(uint64_t no_loop)
{
	struct rig_config config;

	if (running)
		rig_abandon(&rig); /* a test has failed */
	rig_defaults(&config);
	config.type = URDMA_QPT_UD;
	config.qps = QPS;
	config.mtu = 5;
	config.log_stride = 8;
	config.log_cqe = 12;
	config.buffer = 8u << 20;
	config.faults = true;
	config.no_loop = no_loop;
	rig_start(&rig, &config);
	/* each side has an address of each family */
	config.ipv6 = true;
	assert_int_equal(urdma_eh_to_reset(&rig.side[0].qp[0]), 0);
	assert_int_equal(urdma_eh_to_reset(&rig.side[1].qp[0]), 0);
	assert_int_equal(
		urdma_eh_connect_as(&rig.side[0].qp[0], &rig.side[1].qp[0], &rig.config.conn, true),
		0);
	running = true;
}

static void stop(void)
{
	rig_stop(&rig);
	running = false;
}

static uint64_t count(unsigned int side, unsigned int index)
{
	return urdma_eh_counter(rig.side[side].eh, index);
}

static void settle(void)
{
	rig_check(&rig, urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + 3000000),
		  "settle");
}

static void group_gid(unsigned int n, uint8_t gid[16])
{
	static const uint8_t v6[16] = { 0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34 };

	memcpy(gid, v6, 16);
	if (n % 2 == 0)
		urdma_eh_gid_ipv4(gid, 0xe8fe0000);
	gid[14] = (uint8_t)(n >> 8);
	gid[15] = (uint8_t)n;
}

static int attach(unsigned int side, unsigned int qp, unsigned int n)
{
	uint8_t gid[16];

	group_gid(n, gid);
	return urdma_eh_attach_mcast(&rig.side[side].qp[qp], gid);
}

static int detach(unsigned int side, unsigned int qp, unsigned int n)
{
	uint8_t gid[16];

	group_gid(n, gid);
	return urdma_eh_detach_mcast(&rig.side[side].qp[qp], gid);
}

static uint8_t *slot(unsigned int side, unsigned int qp, unsigned int i)
{
	return rig.side[side].buffer + RX_AT + (size_t)(qp * DEPTH + i % DEPTH) * SLOT;
}

static void receives(unsigned int side, unsigned int qp, unsigned int n)
{
	struct urdma_eh_qp *q = &rig.side[side].qp[qp];

	while (n--) {
		uint8_t *p = slot(side, qp, q->rq_pi);
		struct urdma_eh_sge sge = { (uintptr_t)p, 4096 + GRH, rig.side[side].mr.key };

		memset(p, 0xee, SLOT);
		assert_int_equal(urdma_eh_put_recv(q, &sge, 1), 0);
	}
	urdma_eh_ring_rq(q);
}

/* seed: of the data and the immediate */
static void put(unsigned int side, unsigned int qp, unsigned int n, uint32_t len, uint32_t seed,
		uint32_t qkey)
{
	uint8_t *data = rig.side[side].buffer + (size_t)(seed % 64) * SLOT;
	struct urdma_eh_sge sge = { (uintptr_t)data, len, rig.side[side].mr.key };
	struct urdma_eh_ah ah;
	struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND_IMM,
				    .ah = &ah,
				    .dest_qpn = ALL,
				    .qkey = qkey,
				    .imm = seed,
				    .sge = &sge,
				    .n_sge = 1 };
	uint8_t gid[16];

	group_gid(n, gid);
	urdma_eh_ah_group(gid, &ah);
	rig_fill(data, len, seed);
	assert_int_equal(urdma_eh_put_send(&rig.side[side].qp[qp], &wr), 0);
}

static void send(unsigned int side, unsigned int qp, unsigned int n, uint32_t len, uint32_t seed)
{
	put(side, qp, n, len, seed, QKEY);
	urdma_eh_ring_sq(&rig.side[side].qp[qp]);
}

/* The next CQE of a side belongs to a datagram to group n. Notes which QP got it. */
static unsigned int check_recv(unsigned int side, const struct urdma_eh_cqe *cqe, unsigned int from,
			       unsigned int from_qp, unsigned int n, uint32_t len)
{
	unsigned int qp = cqe->qpn - RIG_QPN(0);
	const uint8_t *p = slot(side, qp, cqe->wqe);
	uint8_t gid[16], source[16];
	bool ipv6 = n % 2;

	assert_int_equal(cqe->status, 0);
	assert_true(qp < QPS);
	assert_int_equal(cqe->src_qpn, RIG_QPN(from_qp));
	assert_int_equal(cqe->length, len + GRH);
	assert_true(cqe->grh && cqe->has_imm && !cqe->vlan);
	assert_int_equal(cqe->ipv4, !ipv6);
	group_gid(n, gid);
	urdma_eh_own_gid(rig.side[from].eh, ipv6, source);
	if (ipv6) {
		assert_memory_equal(p + 8, source, 16);
		assert_memory_equal(p + 24, gid, 16);
	} else {
		assert_memory_equal(p + 32, source + 12, 4);
		assert_memory_equal(p + 36, gid + 12, 4);
	}
	if (rig_verify(p + GRH, len, cqe->imm) != len)
		fail_msg("side %u QP %u: wrong byte %zu of %u", side, qp,
			 rig_verify(p + GRH, len, cqe->imm), len);
	for (unsigned int i = len + GRH; i < SLOT; i++)
		assert_int_equal(p[i], 0xee);
	return qp;
}

/* Sends one datagram; exactly the given QPs get it. */
static void expect(unsigned int from, unsigned int from_qp, unsigned int n, uint32_t len,
		   uint32_t seed, const unsigned int want[2])
{
	struct urdma_eh_cqe cqe;

	send(from, from_qp, n, len, seed);
	settle();
	for (unsigned int side = 0; side < 2; side++) {
		unsigned int got = 0;

		while (urdma_eh_poll_cq(&rig.side[side].recv_cq, &cqe, 1)) {
			unsigned int qp = check_recv(side, &cqe, from, from_qp, n, len);

			assert_int_equal(cqe.imm, seed);
			if (got >> qp & 1)
				fail_msg("side %u: QP %u has it twice", side, qp);
			got |= 1u << qp;
			receives(side, qp, 1);
		}
		if (got != want[side])
			fail_msg("group %u from side %u, %u bytes: side %u: QPs %#x, not %#x", n,
				 from, len, side, got, want[side]);
	}
}

/*
 * Groups of both families with members on one NIC, the other, both, none; the sender is a member or
 * not; each length. A QP that does not want to hear its own datagrams is heard on the other side.
 */
static void members(void **state)
{
	static const unsigned int in[6][2] = {
		{ 0, 0x3f }, { 0x02, 0x15 }, { 0x3f, 0x3f }, { 0x21, 0 }, { 0, 0 }, { 0x10, 0x10 },
	};
	static const uint32_t lens[] = { 0, 1, 24, 25, 64, 1000, 4095, 4096 };
	uint32_t seed = 1;

	(void)state;
	start(1u << 3);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int qp = 0; qp < QPS; qp++) {
			receives(side, qp, DEPTH);
			for (unsigned int n = 0; n < COUNT(in); n++)
				if (in[n][side] >> qp & 1)
					assert_int_equal(attach(side, qp, n), 0);
		}
	for (unsigned int i = 0; i < COUNT(lens); i++)
		for (unsigned int n = 0; n < COUNT(in); n++)
			for (unsigned int from = 0; from < 2; from++) {
				unsigned int qp = (i + n) % QPS;
				unsigned int want[2] = { in[n][0], in[n][1] };

				if (qp == 3)
					want[from] = 0;
				expect(from, qp, n, lens[i], seed++, want);
			}
	for (unsigned int side = 0; side < 2; side++) {
		assert_int_equal(count(side, URDMA_CNT_RX_NO_QP), 0);
		assert_int_equal(count(side, URDMA_CNT_RX_BAD_QKEY), 0);
		assert_int_equal(count(side, URDMA_CNT_RX_DROP_FULL), 0);
		assert_int_equal(count(side, URDMA_CNT_TX_RETRANS), 0);
	}
	stop();
}

/* A datagram that the wire loses is missing only on the other side; one that it doubles arrives
 * there twice. */
static void loss(void **state)
{
	enum { N = 200 };
	unsigned int got[2][QPS] = { { 0 } }, lost, doubled;
	struct urdma_eh_cqe cqe;

	(void)state;
	start(0);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int qp = 0; qp < 3; qp++)
			assert_int_equal(attach(side, qp, 1), 0);
	rig_fault(&rig, "drop,side=0,p=10");
	rig_fault(&rig, "dup,side=0,p=10");
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int qp = 0; qp < 3; qp++)
			receives(side, qp, 4);
	for (unsigned int i = 0; i < N; i++) {
		send(0, 5, 1, 100, i);
		settle();
		for (unsigned int side = 0; side < 2; side++) {
			unsigned int now[QPS] = { 0 };

			while (urdma_eh_poll_cq(&rig.side[side].recv_cq, &cqe, 1)) {
				unsigned int qp = cqe.qpn - RIG_QPN(0);

				assert_int_equal(cqe.imm, i);
				check_recv(side, &cqe, 0, 5, 1, 100);
				now[qp]++;
				got[side][qp]++;
				receives(side, qp, 1);
			}
			for (unsigned int qp = 0; qp < 3; qp++) {
				/* all members on a NIC get the same */
				assert_int_equal(now[qp], now[0]);
				assert_true(side ? now[qp] <= 2 : now[qp] == 1);
			}
		}
	}
	lost = (unsigned int)rig_fault_count(&rig, 0, URDMA_FAULT_DROP);
	doubled = (unsigned int)rig_fault_count(&rig, 0, URDMA_FAULT_DUP);
	assert_int_equal(got[0][0], N);
	assert_true(lost > 3 && doubled > 3);
	assert_true(got[1][0] <= N - lost + doubled && got[1][0] + 2 * lost >= N + doubled);
	assert_int_equal(count(1, URDMA_CNT_RX_DROP_NO_WQE), 0);
	stop();
}

/* A member that cannot take a datagram drops it alone, and the drop is counted. */
static void refused(void **state)
{
	struct rig_side *a = &rig.side[0];
	unsigned int want[2] = { 0x3f, 0x3f };
	struct urdma_eh_conn other;
	struct urdma_eh_cqe cqe;

	(void)state;
	start(0);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int qp = 0; qp < QPS; qp++)
			assert_int_equal(attach(side, qp, 0), 0);
	/* QP 2: another Q_Key; QP 3: another partition; QP 4: without a receive; QP 5: in ERR.
	 * RESET takes them out of the group, so they join again. */
	for (unsigned int qp = 2; qp < 4; qp++) {
		other = rig.config.conn;
		other.qkey += qp == 2;
		other.pkey = qp == 3 ? 0x8003 : 0xffff;
		assert_int_equal(urdma_eh_to_reset(&a->qp[qp]), 0);
		assert_int_equal(urdma_eh_to_init(&a->qp[qp], &other), 0);
		assert_int_equal(urdma_eh_to_rtr(&a->qp[qp], &other), 0);
		assert_int_equal(attach(0, qp, 0), 0);
	}
	assert_int_equal(urdma_eh_to_err(&a->qp[5]), 0);
	for (unsigned int side = 0; side < 2; side++)
		for (unsigned int qp = 0; qp < QPS; qp++)
			if (side || qp < 4)
				receives(side, qp, DEPTH);
	want[0] = 0x03;
	for (unsigned int i = 0; i < 20; i++)
		expect(i % 2, i % 2 ? 3 : 0, 0, 50 * i, 1 + i, want);
	assert_int_equal(count(0, URDMA_CNT_RX_BAD_QKEY), 20);
	assert_int_equal(count(0, URDMA_CNT_RX_DROP_NO_WQE), 20);
	assert_int_equal(count(0, URDMA_CNT_RX_NO_QP), 40);
	assert_int_equal(count(1, URDMA_CNT_RX_NO_QP), 0);
	/* a WQE that is too short moves its QP to ERR, not the others */
	{
		struct urdma_eh_sge sge = { (uintptr_t)slot(0, 4, 0), 60, a->mr.key };

		assert_int_equal(urdma_eh_put_recv(&a->qp[4], &sge, 1), 0);
		urdma_eh_ring_rq(&a->qp[4]);
	}
	send(1, 0, 0, 100, 77);
	settle();
	for (unsigned int n = 0, bad = 0; n < 3; n++) {
		assert_int_equal(urdma_eh_poll_cq(&a->recv_cq, &cqe, 1), 1);
		bad += cqe.status != 0;
		if (cqe.status) {
			assert_int_equal(cqe.qpn, RIG_QPN(4));
			assert_int_equal(cqe.status, URDMA_WC_LOC_LEN_ERR);
		}
		assert_true(n < 2 || bad == 1);
	}
	assert_false(urdma_eh_poll_cq(&a->recv_cq, &cqe, 1));
	stop();
}

/* FULL, EXISTS and the other statuses of the commands; places are free again when QPs are reset or
 * destroyed. */
static void table(void **state)
{
	unsigned int n;
	uint8_t gid[16];

	(void)state;
	start(0);
	assert_true(urdma_eh_reg(rig.side[0].eh, URDMA_REG_CAP_FEATURES) & URDMA_RF_FEAT_MCAST);
	for (unsigned int round = 0; round < 3; round++) {
		for (n = 0; n < 64; n++)
			assert_int_equal(attach(0, 0, n), 0);
		assert_int_equal(attach(0, 0, 64), URDMA_CS_FULL);
		assert_int_equal(attach(0, 1, 64), URDMA_CS_FULL);
		assert_int_equal(attach(0, 0, 5), URDMA_CS_EXISTS);
		assert_int_equal(detach(0, 1, 5), URDMA_CS_BAD_ATTR);
		for (unsigned int qp = 1; qp < 4; qp++)
			for (n = 0; n < 64; n++)
				assert_int_equal(attach(0, qp, n), 0);
		assert_int_equal(attach(0, 4, 0), URDMA_CS_FULL);
		memset(gid, 0, 16);
		assert_int_equal(urdma_eh_attach_mcast(&rig.side[0].qp[4], gid), URDMA_CS_BAD_ATTR);
		urdma_eh_own_gid(rig.side[0].eh, false, gid);
		assert_int_equal(urdma_eh_attach_mcast(&rig.side[0].qp[4], gid), URDMA_CS_BAD_ATTR);
		assert_int_equal(detach(0, 3, 63), 0);
		assert_int_equal(attach(0, 4, 63), 0);
		/* by RESET, by DESTROY, one after the other */
		for (unsigned int qp = 0; qp < 5; qp++) {
			if (round == 1)
				rig_renew_qp(&rig, 0, qp);
			else
				assert_int_equal(urdma_eh_to_reset(&rig.side[0].qp[qp]), 0);
			assert_int_equal(detach(0, qp, 63), URDMA_CS_BAD_ATTR);
		}
		assert_int_equal(attach(0, 5, 64), 0);
		assert_int_equal(detach(0, 5, 64), 0);
	}
	/* the reset of the function clears all */
	for (n = 0; n < 64; n++)
		assert_int_equal(attach(1, 0, n), 0);
	rig_restart_side(&rig, 1);
	assert_int_equal(detach(1, 0, 1), URDMA_CS_BAD_ATTR);
	for (n = 100; n < 164; n++)
		assert_int_equal(attach(1, 0, n), 0);
	stop();
}

/*
 * Members join and leave, in every way, while datagrams come from both sides without a pause, and
 * RC traffic goes on. Once the command has completed, no QP hears a group that it has left.
 */
static void traffic(void **state)
{
	enum { N = 150, G = 3 };
	uint64_t seed = test_seed(5);
	bool in[2][QPS][G] = { { { false } } };
	struct urdma_eh_qp rc[2];
	unsigned int copies = 0, number = 0;
	struct urdma_eh_cqe cqe;

	(void)state;
	start(0);
	for (unsigned int side = 0; side < 2; side++) {
		struct rig_side *s = &rig.side[side];
		struct urdma_eh_qp_attr attr = { .qpn = 0x200,
						 .pd = RIG_PD,
						 .send_cq = &s->send_cq,
						 .recv_cq = &s->recv_cq,
						 .db_page = RIG_DB_PAGE,
						 .log_sq = 6,
						 .log_rq = 6,
						 .log_sq_stride = 6,
						 .log_rq_stride = 6 };

		rig_check(&rig, urdma_eh_create_qp(s->eh, &attr, &rc[side]), "create QP");
	}
	assert_int_equal(urdma_eh_connect(&rc[0], &rc[1], 5, false), 0);
	for (unsigned int i = 0; i < N; i++) {
		/* a WRITE and a READ of RC */
		uint8_t *from = rig.side[0].buffer + 0x700000, *to = rig.side[1].buffer + 0x700000;
		struct urdma_eh_sge sge = { (uintptr_t)from, 20000, rig.side[0].mr.key };
		struct urdma_eh_send wr = { .opcode = i % 2 ? URDMA_WR_READ : URDMA_WR_WRITE,
					    .signaled = true,
					    .raddr = (uintptr_t)to,
					    .rkey = rig.side[1].mr.key,
					    .sge = &sge,
					    .n_sge = 1 };
		unsigned int first = number;

		rig_fill(i % 2 ? to : from, 20000, i);
		memset(i % 2 ? from : to, 0, 20000);
		assert_int_equal(urdma_eh_post_send(&rc[0], &wr), 0);
		for (unsigned int k = 0; k < 6; k++, number++) {
			unsigned int side = k % 2, qp = rig_draw(&seed, 2) + 4;

			send(side, qp, rig_draw(&seed, G), rig_draw(&seed, 600), number);
		}
		/* while they are on their way */
		for (unsigned int k = 0; k < 3; k++) {
			unsigned int side = rig_draw(&seed, 2), qp = rig_draw(&seed, 4);
			unsigned int g = rig_draw(&seed, G), how = rig_draw(&seed, 8);

			if (how == 0) {
				rig_renew_qp(&rig, side, qp);
			} else if (how == 1) {
				assert_int_equal(urdma_eh_to_reset(&rig.side[side].qp[qp]), 0);
			} else if (in[side][qp][g]) {
				assert_int_equal(detach(side, qp, g), 0);
				in[side][qp][g] = false;
			} else {
				assert_int_equal(attach(side, qp, g), 0);
				in[side][qp][g] = true;
			}
			if (how < 2) {
				for (g = 0; g < G; g++)
					in[side][qp][g] = false;
				assert_int_equal(
					urdma_eh_to_init(&rig.side[side].qp[qp], &rig.config.conn),
					0);
				assert_int_equal(
					urdma_eh_to_rtr(&rig.side[side].qp[qp], &rig.config.conn),
					0);
				receives(side, qp, DEPTH);
			}
		}
		settle();
		rig_check(&rig, urdma_eh_next_cqe(&rig.side[0].send_cq, &cqe, 4000000), "RC");
		assert_int_equal(cqe.status, 0);
		assert_int_equal(cqe.qpn, 0x200);
		assert_int_equal(rig_verify(i % 2 ? from : to, 20000, i), 20000);
		/* now nothing is on its way: members get it, and nobody else */
		while (urdma_eh_poll_cq(&rig.side[0].recv_cq, &cqe, 1) ||
		       urdma_eh_poll_cq(&rig.side[1].recv_cq, &cqe, 1)) {
			assert_int_equal(cqe.status, 0);
			assert_true(cqe.imm >= first && cqe.imm < number);
			copies++;
		}
		for (unsigned int side = 0; side < 2; side++)
			for (unsigned int qp = 0; qp < 4; qp++) {
				struct urdma_eh_qp_info info;

				assert_int_equal(urdma_eh_qp_info(&rig.side[side].qp[qp], &info),
						 0);
				receives(side, qp, DEPTH - (uint16_t)(info.rq_pi - info.rq_ci));
			}
		for (unsigned int g = 0; g < G; g++) {
			unsigned int want[2] = { 0, 0 };

			for (unsigned int side = 0; side < 2; side++)
				for (unsigned int qp = 0; qp < QPS; qp++)
					want[side] |= (unsigned int)in[side][qp][g] << qp;
			expect(i % 2, 4, g, 200, number++, want);
		}
	}
	print_message("%u datagrams while members came and went, %u copies\n", number - 3 * N,
		      copies);
	assert_true(copies > N);
	for (unsigned int side = 0; side < 2; side++) {
		assert_int_equal(count(side, URDMA_CNT_RX_DROP_FULL), 0);
		assert_int_equal(count(side, URDMA_CNT_TX_RETRANS), 0);
		rig_check(&rig, urdma_eh_destroy_qp(&rc[side]), "destroy QP");
	}
	stop();
}

/*
 * The Ethernet function beside it gets frames that are not RoCE, and RoCE frames to groups of which
 * this NIC has no member. It gets neither the members' datagrams nor looped-back ones. A datagram
 * that the wire sends back goes to nobody.
 */
static void ethernet(void **state)
{
	static uint8_t frame[NET_MAX_FRAME];
	struct net_config config;
	struct urdma_eh_eth_cqe ecqe;
	struct net net;
	struct frame f;
	const unsigned int both[2] = { 0x1, 0x1 }, none[2] = { 0, 0 };
	uint8_t payload[100] = { 0 };

	(void)state;
	start(0);
	net_defaults(&config);
	config.ctrl |= URDMA_RF_ETH_ALLMULTI;
	net_start(&net, &rig, &config);
	for (unsigned int side = 0; side < 2; side++) {
		receives(side, 0, DEPTH);
		assert_int_equal(attach(side, 0, 0), 0);
		assert_int_equal(attach(side, 0, 1), 0);
	}
	for (unsigned int n = 0; n < 2; n++)
		expect(0, 5, n, 100, 10 + n, both);
	assert_false(net_recv(&net, 0, 0, frame, &ecqe, 2000));
	assert_false(net_recv(&net, 1, 0, frame, &ecqe, 2000));
	/* to a group without members anywhere: the other port's Ethernet function has it */
	for (unsigned int n = 2; n < 4; n++) {
		expect(0, 5, n, 100, 20 + n, none);
		assert_false(net_recv(&net, 0, 0, frame, &ecqe, 2000));
		assert_true(net_recv(&net, 1, 0, frame, &ecqe, 20000));
		assert_int_equal(frame[0] & 1, 1);
	}
	/* a frame of side 1 with side 0 as its source, as if it had been sent back; then the same
	 * from another source; one that is not RoCE; one to a group without members */
	for (unsigned int i = 0; i < 4; i++) {
		struct packet k = { .ipv4 = true,
				    .opcode = 0x65,
				    .pkey = 0xffff,
				    .dqpn = ALL,
				    .ext_len = 12,
				    .payload = payload,
				    .len = sizeof(payload) };
		uint64_t not_rdma = count(0, URDMA_CNT_RX_NOT_RDMA);
		struct urdma_eh_ah ah;
		struct urdma_eh_cqe cqe;
		uint8_t gid[16];

		group_gid(i == 3 ? 6 : 0, gid);
		urdma_eh_ah_group(gid, &ah);
		memcpy(k.dmac, ah.dmac, 6);
		memcpy(k.dip, gid, 16);
		urdma_eh_own_gid(rig.side[0].eh, false, k.sip);
		assert_int_equal(urdma_eh_mac(rig.side[0].eh, k.smac), 0);
		if (i == 1)
			k.smac[5] ^= 0x40;
		for (unsigned int b = 0; b < 4; b++)
			k.ext[b] = 0x11;
		k.ext[7] = 9;
		packet_build(&k, &f);
		if (i == 2)
			f.b[packet_udp(&k) + 3]++; /* another port */
		net_send(&net, 1, 0, f.b, f.len);
		settle();
		assert_int_equal(urdma_eh_poll_cq(&rig.side[0].recv_cq, &cqe, 1), i == 1);
		assert_int_equal(net_recv(&net, 0, 0, frame, &ecqe, 2000), i >= 2);
		assert_int_equal(count(0, URDMA_CNT_RX_NOT_RDMA) - not_rdma, i != 1);
		assert_false(urdma_eh_poll_cq(&rig.side[1].recv_cq, &cqe, 1));
	}
	/* without a member here it is not looped back */
	{
		uint64_t frames = count(0, URDMA_CNT_RX_FRAMES);
		const unsigned int other[2] = { 0, 0x1 };

		assert_int_equal(detach(0, 0, 0), 0);
		assert_int_equal(detach(0, 0, 1), 0);
		expect(0, 5, 0, 100, 40, other);
		assert_int_equal(count(0, URDMA_CNT_RX_FRAMES), frames);
	}
	net_stop(&net);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members), cmocka_unit_test(loss),    cmocka_unit_test(refused),
		cmocka_unit_test(table),   cmocka_unit_test(traffic), cmocka_unit_test(ethernet),
	};

	return cmocka_run_group_tests_name("engine/mcast", tests, NULL, NULL);
}
