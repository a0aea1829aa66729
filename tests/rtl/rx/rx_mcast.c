// SPDX-License-Identifier: Apache-2.0
/*
 * Multicast: each member gets a datagram to its group once; the class of a frame is right; groups
 * change under traffic; and no line of the packet buffer is lost or freed twice.
 */
#include "rx_mcast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "opcode_rules.h"

#define GROUPS	64u
#define MEMBERS 256u
#define ALL	0xffffffu /* destination QPN of groups */

static struct frame f;

/* Group n as a GID: the even ones IPv4, 239.1.x.y, the odd ones IPv6. Some differ in one bit. */
static void group_gid(unsigned int n, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (n % 2) {
		gid[0] = 0xff;
		gid[1] = 0x1e;
		gid[5] = n >> 3;
		gid[12] = 0xc0;
		gid[15] = n;
	} else {
		gid[10] = gid[11] = 0xff;
		gid[12] = 239;
		gid[13] = 0x81;
		gid[14] = n >> 8;
		gid[15] = n;
	}
}

/* RFC 1112, 6.4; RFC 2464, 7 */
static void group_mac(const uint8_t gid[16], uint8_t mac[6])
{
	if (gid[0] == 0xff) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, gid + 12, 4);
	} else {
		mac[0] = 1;
		mac[1] = 0;
		mac[2] = 0x5e;
		memcpy(mac + 3, gid + 13, 3);
		mac[3] &= 0x7f;
	}
}

static struct packet to_group(struct bench *b, unsigned int n, size_t len)
{
	static uint32_t number;
	uint8_t gid[16];
	struct packet k = { .ipv4 = n % 2 == 0,
			    .opcode = 0x65,
			    .se = rnd(b) % 2,
			    .pkey = 0xffff,
			    .dqpn = ALL,
			    .psn = rnd(b) & 0xffffff,
			    .payload = payload,
			    .len = len };

	group_gid(n, gid);
	memcpy(k.dip, gid, 16);
	group_mac(gid, k.dmac);
	memcpy(k.smac, mac_peer, 6);
	(k.ipv4 ? gid4 : gid6)(k.sip, 1);
	k.ext_len = opc_rules[k.opcode].ext;
	put32(k.ext, REF_QKEY);
	put32(k.ext + 4, rnd(b));
	put32(k.ext + 8, number++);
	return k;
}

static enum mc_status group_op(struct bench *b, enum mc_op op, uint16_t qpn, unsigned int n)
{
	uint8_t gid[16];

	group_gid(n, gid);
	return bench_mc(b, op, qpn, gid);
}

/* The answer to an operation that bench_mc_put() has begun. */
static enum mc_status put_answered(struct bench *b)
{
	enum mc_status status;

	for (unsigned int limit = 2000; !bench_mc_done(b, &status); limit--) {
		assert_true(limit > 0);
		bench_cycle(b);
	}
	return status;
}

static struct ref *open_ud(struct bench *b, int i, uint8_t mtu)
{
	qp_type = URDMA_QPT_UD;
	qp_init(b, i, mtu, 8, 6, 0);
	qp_type = URDMA_QPT_RC;
	return &refs[i];
}

static void receives(struct bench *b, struct ref *r, unsigned int n, uint32_t len)
{
	while (n--)
		post(b, r, &(struct sge){ take(b, len, 64), len, LKEY }, 1);
	ring(b, r);
	bench_drain(b, 5000);
}

/*
 * Lines of the packet buffer that are free: as many datagrams of one line as it takes while nothing
 * can be written.
 */
static unsigned int free_lines(struct bench *b)
{
	enum { ROOM = 2048 };
	struct ref *r = open_ud(b, 7, 3);
	struct packet k = to_group(b, 0, 0);
	unsigned int taken;

	next_va = HOST_VA + DATA_OFF;
	receives(b, r, 1, 64);
	bench_settings(b, 100, 0, 4, 60);
	bench_clear_logs(b);
	memcpy(k.dmac, mac_own, 6);
	gid4(k.dip, 2);
	k.dqpn = r->cfg.qpn;
	packet_build(&k, &f);
	/* the first one holds what is behind it */
	b->hold_wr = true;
	for (unsigned int i = 0; i < ROOM; i++)
		bench_frame(b, &f, false);
	bench_run(b, 2 * ROOM + 2000);
	taken = (unsigned int)b->cnt[URDMA_CNT_RX_RDMA_PKTS];
	assert_int_equal(taken + b->cnt[URDMA_CNT_RX_DROP_FULL], ROOM);
	b->hold_wr = false;
	bench_drain(b, 20000);
	memcpy(b->shadow, b->host, HOST_SIZE);
	ref_clear(r);
	bench_clear_logs(b);
	return taken;
}

static unsigned int whole;

static struct bench *begin(void)
{
	struct bench *b = start();

	whole = free_lines(b);
	assert_true(whole >= 2048 - 256);
	return b;
}

/* No line is lost, none is given back twice. */
static void end(struct bench *b)
{
	unsigned int lines = free_lines(b);

	if (lines != whole)
		fail_msg("cycle %llu: %u lines of the packet buffer are free, not %u",
			 (unsigned long long)b->cycle, lines, whole);
	bench_free(b);
}

/* Datagrams of every size to groups of 0 to 7 members, and among them what else there is. */
void test_mcast(void **state)
{
	static const size_t sizes[] = { 0, 1, 24, 25, 88, 1000, 2047, 4096 };
	bool in[8][7] = { { false } };
	struct bench *b = begin();
	unsigned int sent = 0, copies = 0, nobody = 0;

	(void)state;
	for (int q = 0; q < 7; q++)
		open_ud(b, q, 5);
	/* the Q_Key of one, the partition of another are their own; one is a limited member */
	refs[2].cfg.qkey ^= 0x100;
	refs[3].cfg.pkey = 0x8001;
	refs[4].cfg.pkey = 0x7fff;
	for (int q = 2; q < 5; q++)
		bench_cfg(b, &refs[q].cfg);
	for (unsigned int n = 0; n < 8; n++)
		for (unsigned int q = 0; q < n; q++) {
			in[n][(q + n) % 7] = true;
			assert_int_equal(group_op(b, MC_ATTACH, QPN0 + (q + n) % 7, n), MC_OK);
		}
	for (int speed = 0; speed < 3; speed++) {
		bench_settings(b, speed ? 60 : 100, speed == 1 ? 20 : 0, 4, 60);
		for (unsigned int i = 0; i < 128; i++) {
			unsigned int n = i % 8;
			struct packet k;
			size_t len = sizes[i / 8 % 8];

			if (i % 16 == 0) {
				bench_drain(b, 50000);
				/* once too few */
				for (int q = 0; q < 7; q++) {
					struct ref *r = &refs[q];
					unsigned int most = i % 64 == 48 ? 2 : 16;

					while ((uint16_t)(r->pi - r->ci) < most) {
						uint64_t va = HOST_VA + DATA_OFF +
							      (q * 16 + r->pi % 16) * 4160u;

						post(b, r, &(struct sge){ va, 4160, LKEY }, 1);
					}
				}
				for (int q = 0; q < 7; q++)
					ring(b, &refs[q]);
				bench_drain(b, 5000);
			}
			fill(b, len);
			k = to_group(b, n, len);
			if (i % 5 == 4 || speed == 2) {
				k.vlan_valid = true;
				k.vlan = i % 2 ? 5 : 0x3000;
			}
			packet_build(&k, &f);
			bench_frame(b, &f, false);
			sent++;
			for (int q = 0; q < 7; q++) {
				if (!in[n][q])
					continue;
				if (q == 3)
					nobody++; /* another partition */
				else
					ref_ud(b, &refs[q], &k, &f);
				copies++;
			}
			/* one to a member alone */
			if (i % 3 == 0) {
				k.dqpn = QPN0 + i % 7;
				memcpy(k.dmac, mac_own, 6);
				(k.ipv4 ? gid4 : gid6)(k.dip, 2);
				if (k.vlan_valid)
					k.vlan = n % 2 ? 5 : 0;
				if (n % 2) {
					k.vlan_valid = true;
					k.vlan = 5;
				} else {
					k.vlan_valid = false;
				}
				packet_build(&k, &f);
				bench_frame(b, &f, false);
				if (i % 7 == 3)
					nobody++;
				else
					ref_ud(b, &refs[i % 7], &k, &f);
			}
			if (speed == 1)
				bench_run(b, rnd(b) % 400);
			/* a datagram to eight of 4096 bytes holds the queue; the wire is not that
			 * fast for long */
			if (len > 500)
				bench_drain(b, 50000);
		}
		bench_drain(b, 50000);
		/* group 0 has nobody, so it is none */
		assert_int_equal(b->cnt[URDMA_CNT_RX_NO_QP], nobody);
		assert_int_equal(b->cnt[URDMA_CNT_RX_NOT_RDMA], 16);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		assert_int_equal(b->n_acks + b->n_errs[0], 0);
		nobody = 0;
		check(b);
	}
	print_message("%u datagrams, %u copies\n", sent, copies);
	end(b);
}

/* What the table takes, and what becomes of it. */
void test_mcast_table(void **state)
{
	struct bench *b = begin();
	uint8_t gid[16];

	(void)state;
	assert_false(b->out.mc_any);
	for (int round = 0; round < 3; round++) {
		/* each group with one member, then no group more */
		for (unsigned int n = 0; n < GROUPS; n++)
			assert_int_equal(group_op(b, MC_ATTACH, n % 16, n), MC_OK);
		assert_int_equal(group_op(b, MC_ATTACH, 1, GROUPS), MC_FULL);
		assert_int_equal(group_op(b, MC_ATTACH, 1, 17), MC_EXISTS);
		assert_int_equal(group_op(b, MC_ATTACH, 1, 1), MC_EXISTS);
		/* a member more in one that exists */
		for (unsigned int m = 0; m < MEMBERS - GROUPS; m++)
			assert_int_equal(group_op(b, MC_ATTACH, 100 + m, m % 5), MC_OK);
		assert_int_equal(group_op(b, MC_ATTACH, 4000, 3), MC_FULL);
		assert_int_equal(group_op(b, MC_ATTACH, 100, 0), MC_EXISTS);
		/* not members: of no group, of another one */
		assert_int_equal(group_op(b, MC_DETACH, 1, GROUPS), MC_NONE);
		assert_int_equal(group_op(b, MC_DETACH, 100, 1), MC_NONE);
		assert_int_equal(group_op(b, MC_DETACH, 4000, 3), MC_NONE);
		assert_int_equal(group_op(b, MC_LEAVE, 4000, 0), MC_OK);
		assert_int_equal(group_op(b, MC_ATTACH, 4000, 3), MC_FULL);
		/* a place for another */
		assert_int_equal(group_op(b, MC_DETACH, 105, 0), MC_OK);
		assert_int_equal(group_op(b, MC_DETACH, 105, 0), MC_NONE);
		assert_int_equal(group_op(b, MC_ATTACH, 4000, 3), MC_OK);
		assert_int_equal(group_op(b, MC_ATTACH, 105, 0), MC_FULL);
		/* the last member of a group takes it along: 60 has one */
		assert_int_equal(group_op(b, MC_DETACH, 60 % 16, 60), MC_OK);
		assert_int_equal(group_op(b, MC_ATTACH, 7, GROUPS), MC_OK);
		assert_int_equal(group_op(b, MC_ATTACH, 7, 60), MC_FULL);
		/* QP 0 was in four groups, 3 in five */
		group_gid(1, gid);
		for (unsigned int q = 0; q < 16; q++)
			assert_int_equal(bench_mc(b, MC_LEAVE, q, gid), MC_OK);
		for (unsigned int n = 5; n < GROUPS; n++)
			assert_int_equal(group_op(b, MC_DETACH, n % 16, n), MC_NONE);
		/* five groups are left; 59 are free */
		for (unsigned int n = 0; n < GROUPS - 5; n++)
			assert_int_equal(group_op(b, MC_ATTACH, 2000, 1000 + n), MC_OK);
		assert_int_equal(group_op(b, MC_ATTACH, 2000, 999), MC_FULL);
		assert_true(b->out.mc_any);
		for (unsigned int m = 0; m < MEMBERS - GROUPS; m++)
			if (m != 5)
				assert_int_equal(group_op(b, MC_DETACH, 100 + m, m % 5), MC_OK);
		assert_int_equal(group_op(b, MC_LEAVE, 2000, 0), MC_OK);
		assert_true(b->out.mc_any);
		assert_int_equal(group_op(b, MC_LEAVE, 4000, 0), MC_OK);
		bench_run(b, 2);
		assert_false(b->out.mc_any);
	}
	bench_free(b);
}

/* RDMA's, the Ethernet function's, or nobody's; and who is told of what is wrong. */
void test_mcast_whose(void **state)
{
	enum {
		GOOD4,
		GOOD6,
		HOME,
		HOME_NO_GROUP,
		SENT_BACK,
		SENT_BACK_NO_GROUP,
		NO_GROUP,
		OTHER_BIT,
		MAC_OTHER,
		MAC_OWN,
		MAC_V6,
		MAC6_OTHER,
		VLAN_OTHER,
		VLAN_OWN,
		VLAN_0,
		QPN_MEMBER,
		QPN_0,
		OPCODE_RC,
		OPCODE_ACK,
		OPCODE_READ_RSP,
		OPCODE_UD,
		NOT_ROCE,
		NOT_IP,
		MAPPED,
		ICRC,
		CASES
	};
	/* to RDMA, to the Ethernet function, or dropped as neither's */
	enum { RDMA, ETH, NEITHER };
	static const struct {
		int who, counter;
	} want[CASES] = {
		[GOOD4] = { RDMA, -1 },
		[GOOD6] = { RDMA, -1 },
		[HOME] = { RDMA, -1 },
		[HOME_NO_GROUP] = { NEITHER, URDMA_CNT_RX_NOT_RDMA },
		[SENT_BACK] = { NEITHER, URDMA_CNT_RX_NOT_RDMA },
		[SENT_BACK_NO_GROUP] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[NO_GROUP] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[OTHER_BIT] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[MAC_OTHER] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[MAC_OWN] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[MAC_V6] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[MAC6_OTHER] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[VLAN_OTHER] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[VLAN_OWN] = { RDMA, -1 },
		[VLAN_0] = { RDMA, -1 },
		[QPN_MEMBER] = { RDMA, URDMA_CNT_RX_NO_QP },
		[QPN_0] = { RDMA, URDMA_CNT_RX_NO_QP },
		[OPCODE_RC] = { RDMA, URDMA_CNT_RX_NO_QP },
		[OPCODE_ACK] = { RDMA, URDMA_CNT_RX_NO_QP },
		[OPCODE_READ_RSP] = { RDMA, URDMA_CNT_RX_NO_QP },
		[OPCODE_UD] = { RDMA, URDMA_CNT_RX_NO_QP },
		[NOT_ROCE] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[NOT_IP] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[MAPPED] = { ETH, URDMA_CNT_RX_NOT_RDMA },
		[ICRC] = { RDMA, URDMA_CNT_RX_ICRC_ERR },
	};
	static const int all[] = { URDMA_CNT_RX_NOT_RDMA, URDMA_CNT_RX_NO_QP,
				   URDMA_CNT_RX_ICRC_ERR, URDMA_CNT_RX_MALFORMED,
				   URDMA_CNT_RX_BAD_QKEY, URDMA_CNT_RX_DROP_UNREL };
	struct bench *b = begin();
	struct ref *r = open_ud(b, 0, 3), *rc;

	(void)state;
	qp_init(b, 1, 3, 6, 6, 0);
	rc = &refs[1];
	next_va = HOST_VA + DATA_OFF;
	receives(b, r, 200, 400);
	receives(b, rc, 2, 400);
	assert_int_equal(group_op(b, MC_ATTACH, r->cfg.qpn, 2), MC_OK);
	assert_int_equal(group_op(b, MC_ATTACH, r->cfg.qpn, 3), MC_OK);
	for (int gap = 0; gap < 3; gap++) {
		for (int i = 0; i < CASES; i++) {
			struct packet k;
			size_t len = gap == 2 ? 0 : 100;

			fill(b, 100);
			k = to_group(b, i == GOOD6 || i == MAPPED || i == MAC6_OTHER ? 3 : 2, len);
			b->home = i == HOME || i == HOME_NO_GROUP;
			switch (i) {
			case HOME_NO_GROUP:
			case SENT_BACK_NO_GROUP:
			case NO_GROUP:
				k = to_group(b, 4, len);
				break;
			case OTHER_BIT:
				k.dip[12] = 238; /* the same MAC address */
				break;
			case MAC_OTHER:
			case MAC6_OTHER:
				k.dmac[5] ^= 1;
				break;
			case MAC_OWN:
				memcpy(k.dmac, mac_own, 6);
				break;
			case MAC_V6:
				k.dmac[0] = k.dmac[1] = 0x33;
				memcpy(k.dmac + 2, k.dip + 12, 4);
				break;
			case VLAN_OTHER:
			case VLAN_OWN:
			case VLAN_0:
				k.vlan_valid = true;
				k.vlan = i == VLAN_OWN ? 5 : i == VLAN_0 ? 0 : 6;
				break;
			case QPN_MEMBER:
				k.dqpn = r->cfg.qpn;
				break;
			case QPN_0:
				k.dqpn = 0;
				break;
			case OPCODE_RC:
			case OPCODE_ACK:
			case OPCODE_READ_RSP:
				k.opcode = i == OPCODE_RC ? 4 : i == OPCODE_ACK ? 0x11 : 0x10;
				k.dqpn = rc->cfg.qpn;
				k.psn = rc->epsn;
				k.ext_len = opc_rules[k.opcode].ext;
				memset(k.ext, 0, sizeof(k.ext));
				if (i == OPCODE_ACK)
					k.len = 0;
				break;
			case OPCODE_UD:
				/* to members, though: each of them drops it */
				k.opcode = 0x64;
				k.ext_len = 8;
				k.pkey = 0x8002;
				break;
			case MAPPED:
				/* ::ffff:239.129.0.2 within IPv6 */
				group_gid(2, k.dip);
				memcpy(k.dmac + 2, k.dip + 12, 4);
				break;
			}
			if (i == HOME || i == HOME_NO_GROUP || i == SENT_BACK ||
			    i == SENT_BACK_NO_GROUP)
				memcpy(k.smac, mac_own, 6);
			packet_build(&k, &f);
			if (i == NOT_ROCE)
				f.b[packet_udp(&k) + 3] ^= 1;
			if (i == NOT_IP)
				f.b[12] = 0x86;
			if (i == ICRC)
				f.b[f.len - 1] ^= 4;
			bench_frame(b, &f, false);
			b->home = false;
			if (want[i].counter < 0)
				ref_ud(b, r, &k, &f);
			bench_drain(b, 3000);
			if (b->classes[want[i].who != ETH] != 1 ||
			    b->classes[want[i].who == ETH] != 0)
				fail_msg("case %d: RDMA %d, Ethernet %d", i, (int)b->classes[1],
					 (int)b->classes[0]);
			for (size_t c = 0; c < sizeof(all) / sizeof(all[0]); c++)
				if (b->cnt[all[c]] != (all[c] == want[i].counter))
					fail_msg("case %d: counter %d is %u", i, all[c],
						 (unsigned int)b->cnt[all[c]]);
			assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS],
					 want[i].who == RDMA && i != ICRC);
			assert_int_equal(b->cnt[URDMA_CNT_RX_FRAMES], 1);
			assert_int_equal(b->n_acks + b->n_ackeds, 0);
			check(b);
			bench_settings(b, 100, gap == 1 ? 60 : 0, 4, 60);
		}
	}
	/* one behind the other without a gap: what is known of one frame is not another's */
	bench_settings(b, 100, 0, 4, 60);
	for (int i = 0; i < 60; i++) {
		bool to_rc = i % 3 == 0, known = i % 3 == 1;
		struct packet k = to_group(b, known ? 2 : 5, 0);

		b->home = i % 2;
		if (b->home)
			memcpy(k.smac, mac_own, 6);
		if (to_rc) {
			b->home = false;
			k = r->hdr;
			k.opcode = 0x64;
			k.ext_len = 8;
			k.psn = 1;
			put32(k.ext, REF_QKEY);
			put32(k.ext + 4, 77);
		}
		packet_build(&k, &f);
		bench_frame(b, &f, false);
		if (to_rc || known)
			ref_ud(b, r, &k, &f);
	}
	b->home = false;
	bench_drain(b, 5000);
	/* of 20 to no group the 10 from the wire are Ethernet's */
	assert_int_equal(b->classes[0], 10);
	assert_int_equal(b->classes[1], 50);
	assert_int_equal(b->cnt[URDMA_CNT_RX_NOT_RDMA], 20);
	check(b);
	end(b);
}

/*
 * A QP leaves while datagrams are on their way, wherever they stand: behind the answer and a fence
 * it gets nothing more, others get theirs, and the datagrams' lines are given back.
 */
void test_mcast_leave(void **state)
{
	struct bench *b = begin();

	(void)state;
	for (int i = 0; i < 120; i++) {
		struct ref *r[4];
		unsigned int gone = i % 4, n = 0;
		uint8_t gid[16], other[16];

		next_va = HOST_VA + DATA_OFF;
		for (int q = 0; q < 4; q++) {
			r[q] = open_ud(b, q, 3);
			receives(b, r[q], 40, 200);
			assert_int_equal(group_op(b, MC_ATTACH, r[q]->cfg.qpn, 2), MC_OK);
			if (q == 1)
				assert_int_equal(group_op(b, MC_ATTACH, r[q]->cfg.qpn, 5), MC_OK);
		}
		bench_settings(b, i % 2 ? 50 : 100, 0, 4, 60);
		bench_clear_logs(b);
		fill(b, 100);
		for (int k = 0; k < 8; k++) {
			struct packet p = to_group(b, k == 3 ? 5 : 2, 100);

			packet_build(&p, &f);
			bench_frame(b, &f, false);
		}
		/* with the look-up held: a copy that is offered has to go first */
		b->hold_qpr[0] = i % 3 == 0;
		bench_run(b, 12 + i / 2);
		group_gid(2, gid);
		bench_mc_put(b, i % 5 ? MC_LEAVE : MC_DETACH, r[gone]->cfg.qpn, gid);
		bench_run(b, 40);
		/* the copy that is offered is its */
		if (b->hold_qpr[0] && gone == 0 && i >= 60)
			assert_false(b->mc_answered);
		b->hold_qpr[0] = false;
		assert_int_equal(put_answered(b), MC_OK);
		if (i % 5 == 0)
			assert_int_equal(bench_mc(b, MC_LEAVE, r[gone]->cfg.qpn, gid), MC_OK);
		b->in.fence_req = true;
		while (!b->out.fence_done)
			bench_cycle(b);
		for (unsigned int k = 0; k < b->n_cqes[0]; k++)
			n += b->cqes[0][k].w[1] >> 32 == r[gone]->cfg.qpn;
		b->in.fence_req = false;
		/* its place may be another's at once: that one gets no datagram twice */
		assert_int_equal(group_op(b, MC_ATTACH, 4001, 2), MC_OK);
		bench_drain(b, 20000);
		for (int q = 0; q < 4; q++) {
			unsigned int had = 0;

			for (unsigned int k = 0; k < b->n_cqes[0]; k++)
				had += b->cqes[0][k].w[1] >> 32 == r[q]->cfg.qpn;
			if (q == (int)gone ? had != n : had != (q == 1 ? 8 : 7))
				fail_msg("run %d: QP %d, %s: %u datagrams, %u at its end", i, q,
					 q == (int)gone ? "which left" : "a member", had, n);
		}
		assert_int_equal(b->n_errs[0], 0);
		for (int q = 0; q < 4; q++)
			assert_int_equal(bench_mc(b, MC_LEAVE, QPN0 + q, gid), MC_OK);
		assert_int_equal(bench_mc(b, MC_LEAVE, 4001, gid), MC_OK);
		assert_false(b->out.mc_any);
		/* the place of a group that has gone is another's: a datagram that waits for its
		 * turn is for nobody */
		bench_clear_logs(b);
		assert_int_equal(group_op(b, MC_ATTACH, QPN0, 2), MC_OK);
		b->hold_qpr[0] = true;
		for (int k = 0; k < 3; k++) {
			struct packet p = to_group(b, 2, 100);

			packet_build(&p, &f);
			bench_frame(b, &f, false);
		}
		bench_run(b, 30);
		bench_mc_put(b, MC_LEAVE, QPN0, gid);
		bench_run(b, 20);
		b->hold_qpr[0] = false;
		put_answered(b);
		/* in each cycle around that in which a datagram looks at its group */
		b->hold_qpr[0] = true;
		bench_run(b, 10);
		group_gid(4, other);
		if (i % 30 >= 10) {
			b->hold_qpr[0] = false;
			bench_run(b, i % 30 - 10);
		}
		bench_mc_put(b, MC_ATTACH, QPN0 + 1, other);
		bench_run(b, i % 30 < 10 ? i % 30 : 0);
		b->hold_qpr[0] = false;
		assert_int_equal(put_answered(b), MC_OK);
		bench_drain(b, 5000);
		for (unsigned int k = 0; k < b->n_cqes[0]; k++)
			assert_int_equal(b->cqes[0][k].w[1] >> 32, QPN0);
		assert_int_equal(b->n_cqes[0] + b->cnt[URDMA_CNT_RX_NO_QP], 3);
		assert_in_range(b->n_cqes[0], 1, 2);
		assert_int_equal(bench_mc(b, MC_LEAVE, QPN0 + 1, gid), MC_OK);
		memcpy(b->shadow, b->host, HOST_SIZE);
		for (int q = 0; q < 4; q++)
			ref_clear(r[q]);
		bench_clear_logs(b);
	}
	end(b);
}

static void look_up_one(struct bench *b)
{
	b->hold_qpr[0] = false;
	bench_cycle(b);
	b->hold_qpr[0] = true;
	bench_run(b, 10);
}

/*
 * A place that a datagram has still to visit is no new member's: one that has had it already, and
 * comes back, would get it again.
 */
void test_mcast_twice(void **state)
{
	struct bench *b = begin();
	struct packet p;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 4; q++) {
		open_ud(b, q, 3);
		receives(b, &refs[q], 4, 200);
		assert_int_equal(group_op(b, MC_ATTACH, QPN0 + q, 2), MC_OK);
	}
	bench_settings(b, 100, 0, 4, 60);
	bench_clear_logs(b);
	b->hold_qpr[0] = true;
	fill(b, 100);
	p = to_group(b, 2, 100);
	packet_build(&p, &f);
	bench_frame(b, &f, false);
	bench_run(b, 60);
	/* the first member has it; the second is offered its copy, the third leaves */
	look_up_one(b);
	assert_int_equal(group_op(b, MC_LEAVE, QPN0, 2), MC_OK);
	assert_int_equal(group_op(b, MC_ATTACH, 4001, 2), MC_OK);
	assert_int_equal(group_op(b, MC_LEAVE, QPN0 + 2, 2), MC_OK);
	assert_int_equal(group_op(b, MC_ATTACH, QPN0, 2), MC_OK);
	b->hold_qpr[0] = false;
	bench_drain(b, 5000);
	assert_int_equal(b->n_cqes[0], 3);
	for (unsigned int k = 0; k < 3; k++)
		assert_int_equal(b->cqes[0][k].w[1] >> 32, QPN0 + (k == 2 ? 3 : k));
	/* the copy to nobody */
	assert_int_equal(b->cnt[URDMA_CNT_RX_NO_QP], 1);
	memcpy(b->shadow, b->host, HOST_SIZE);
	end(b);
}

/*
 * Members come and go all the time under datagrams to several groups, unicast among them. Each CQE
 * is of a datagram to a group that the QP was in between its first beat and the CQE, no datagram
 * comes to a QP twice, and one that was a member all the time gets it.
 */
void test_mcast_traffic(void **state)
{
	enum { QS = 6, GS = 5, N = 3000 };
	struct bench *b = begin();
	static struct {
		unsigned int group, got[QS];
		uint64_t at;
	} sent[N];
	static uint64_t since[QS][GS], until[QS][GS]; /* in the group; 0: not, ~0: still */
	static uint64_t had[QS][GS];		      /* end of the time before that */
	unsigned int n = 0, next = 0, ops = 0, copies = 0;
	bool busy = false;
	unsigned int q = 0, g = 0;
	enum mc_op op = MC_ATTACH;
	uint32_t base;

	(void)state;
	memset(since, 0, sizeof(since));
	memset(until, 0, sizeof(until));
	memset(had, 0, sizeof(had));
	memset(sent, 0, sizeof(sent));
	next_va = HOST_VA + DATA_OFF;
	for (int i = 0; i < QS; i++) {
		open_ud(b, i, 3);
		for (unsigned int w = 0; w < 256; w++)
			post(b, &refs[i], &(struct sge){ HOST_VA + DATA_OFF + 4096 * i, 256, LKEY },
			     1);
		ring(b, &refs[i]);
	}
	bench_drain(b, 5000);
	bench_clear_logs(b);
	fill(b, 200);
	base = get32(to_group(b, 0, 0).ext + 8) + 1;
	while (n < N || busy || b->out.busy) {
		enum mc_status status;

		if (n < N && rnd(b) % 40 == 0) {
			struct packet k;

			sent[n].group = rnd(b) % GS;
			sent[n].at = b->cycle;
			k = to_group(b, sent[n].group + 10, rnd(b) % 200);
			assert_int_equal(get32(k.ext + 8) - base, n);
			packet_build(&k, &f);
			bench_frame(b, &f, false);
			n++;
			if (n % 97 == 0)
				bench_settings(b, 30 + rnd(b) % 71, 0, 1 + rnd(b) % 8, 40);
		}
		if (!busy && n < N && rnd(b) % 30 == 0) {
			uint8_t gid[16];

			q = rnd(b) % QS;
			g = rnd(b) % GS;
			op = rnd(b) % 8 == 0	    ? MC_LEAVE
			     : until[q][g] == ~0ull ? MC_DETACH
						    : MC_ATTACH;
			group_gid(g + 10, gid);
			/* the members of these places change most */
			if (op == MC_ATTACH) {
				had[q][g] = until[q][g];
				since[q][g] = b->cycle;
				until[q][g] = ~0ull;
			}
			bench_mc_put(b, op, QPN0 + q, gid);
			busy = true;
		}
		bench_cycle(b);
		if (busy && bench_mc_done(b, &status)) {
			assert_int_equal(status, MC_OK);
			for (unsigned int k = 0; k < GS; k++)
				if (op == MC_DETACH ? k == g : op == MC_LEAVE)
					if (until[q][k] == ~0ull)
						until[q][k] = b->cycle;
			busy = false;
			ops++;
		}
		for (; next < b->n_cqes[0]; next++) {
			const struct bench_cqe *c = &b->cqes[0][next];
			unsigned int i, qp = (c->w[1] >> 32) - QPN0;
			const uint8_t raw[4] = { c->w[2], c->w[2] >> 8, c->w[2] >> 16,
						 c->w[2] >> 24 };

			i = get32(raw) - base;
			assert_true(i < n && qp < QS && !(c->w[0] >> 16 & 255));
			if (sent[i].got[qp]++)
				fail_msg("QP %u got datagram %u twice", qp, i);
			/* it was in the group once since the datagram began */
			if (until[qp][sent[i].group] < sent[i].at &&
			    had[qp][sent[i].group] < sent[i].at)
				fail_msg("QP %u got datagram %u of a group that it had left", qp,
					 i);
			refs[qp].ci++;
			copies++;
			post(b, &refs[qp],
			     &(struct sge){ HOST_VA + DATA_OFF + 4096 * qp, 256, LKEY }, 1);
			if (refs[qp].ci % 16 == 0)
				ring(b, &refs[qp]);
		}
	}
	bench_drain(b, 5000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_NO_WQE], 0);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
	/* and of the last, whoever is in gets all */
	for (int i = 0; i < QS; i++)
		ring(b, &refs[i]);
	bench_drain(b, 5000);
	bench_clear_logs(b);
	for (unsigned int k = 0; k < 50; k++) {
		struct packet p = to_group(b, 10 + k % GS, 100);

		packet_build(&p, &f);
		bench_frame(b, &f, false);
	}
	bench_drain(b, 20000);
	{
		unsigned int want = 0;

		for (unsigned int i = 0; i < QS; i++)
			for (unsigned int k = 0; k < GS; k++)
				want += until[i][k] == ~0ull ? 10 : 0;
		assert_int_equal(b->n_cqes[0], want);
	}
	print_message("%u datagrams, %u copies, %u operations\n", n, copies, ops);
	assert_true(copies > N && ops > 1000);
	end(b);
}

/*
 * More than can be received: datagrams to a great group are dropped, but what is sent to one QP is
 * not, and it does not wait for longer than the copies of half a packet buffer take, and of one
 * datagram.
 */
void test_mcast_load(void **state)
{
	struct bench *b = begin();
	struct ref *r = open_ud(b, 0, 5);
	uint64_t longest = 0, from;
	struct packet p;
	double per;

	(void)state;
	/* rate: members of a group one after the other, nobody else */
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 7; q++) {
		open_ud(b, q, 5);
		receives(b, &refs[q], 100, 128);
		assert_int_equal(group_op(b, MC_ATTACH, QPN0 + q, 1), MC_OK);
	}
	bench_settings(b, 100, 0, 8, 100);
	bench_drain(b, 1000);
	bench_clear_logs(b);
	fill(b, 64);
	for (int i = 0; i < 100; i++) {
		p = to_group(b, 1, 64);
		packet_build(&p, &f);
		bench_frame(b, &f, false);
		bench_run(b, 30);
		for (int q = 0; q < 7; q++)
			ref_ud(b, &refs[q], &p, &f);
	}
	bench_drain(b, 20000);
	per = (double)(b->last_wr - b->first_wr) / 699;
	print_message("64-byte datagrams to 7 QPs: %.2f cycles a copy\n", per);
	assert_int_equal(b->n_cqes[0], 700);
	/* The last write may have waited longer than the first, 100 cycles for its WQE alone. */
	assert_true(per < (30 * 100 + 150) / 700.0);
	check(b);

	/* 250 members, without a QP all of them, but for one */
	for (unsigned int m = 0; m < 249; m++)
		assert_int_equal(group_op(b, MC_ATTACH, 1000 + m, 2), MC_OK);
	for (int loop = 0; loop < 2; loop++) {
		open_ud(b, 0, 5);
		next_va = HOST_VA + DATA_OFF;
		receives(b, r, 200, 128);
		bench_clear_logs(b);
		from = b->cycle;
		for (int i = 0; i < 600; i++) {
			uint64_t since;

			if (loop && !b->out.loop_room) {
				bench_run(b, 50);
				continue;
			}
			p = to_group(b, 2, 64);
			b->home = loop;
			memcpy(p.smac, loop ? mac_own : mac_peer, 6);
			packet_build(&p, &f);
			bench_frame(b, &f, false);
			b->home = false;
			bench_run(b, 50);
			if (i % 10)
				continue;
			since = b->cycle;
			p.dqpn = QPN0;
			memcpy(p.smac, mac_peer, 6);
			memcpy(p.dmac, mac_own, 6);
			gid4(p.dip, 2);
			packet_build(&p, &f);
			bench_frame(b, &f, false);
			ref_ud(b, r, &p, &f);
			while (b->n_cqes[0] < r->n_cqes) {
				bench_cycle(b);
				if (b->cycle - since > 10000)
					fail_msg("a datagram to a QP does not come");
			}
			if (b->cycle - since > longest)
				longest = b->cycle - since;
		}
		bench_drain(b, 60000);
		print_message("groups of 249: %u of %u datagrams taken in %u cycles, the longest "
			      "way past them %u cycles\n",
			      (unsigned int)b->cnt[URDMA_CNT_RX_RDMA_PKTS],
			      (unsigned int)b->cnt[URDMA_CNT_RX_FRAMES],
			      (unsigned int)(b->cycle - from), (unsigned int)longest);
		/* what turns round waits for its room */
		if (loop)
			assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		else
			assert_true(b->cnt[URDMA_CNT_RX_DROP_FULL] > 100);
		assert_true(longest < 4000);
		check(b);
	}
	end(b);
}
