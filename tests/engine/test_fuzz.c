// SPDX-License-Identifier: Apache-2.0
/*
 * Frames that nobody should send, sent to a NIC with RDMA traffic: a corpus with one defect of each
 * layer, then random frames: RoCE packets of every opcode and frames of other protocols, with bits,
 * lengths and ends changed, some with ICRC and IP checksum corrected afterwards. They come from the
 * transmit queues of the other NIC.
 *
 * This file decides from the contract which function gets a frame. A frame that is not RDMA's has
 * to come to the receive ring as it was sent; an RDMA frame must not. Each is counted once, by one
 * counter. The messages of another QP go through all the time, nothing stalls, and no DMA goes to
 * unmapped memory.
 *
 * The corpus is fixed. The random part runs for --seconds (60) of wall time, or --rounds rounds
 * from
 * --seed; it prints the seed of the round that fails.
 */
#include <argp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "../wire/icrc.h"
#include "net.h"
#include "ref_hash.h"
#include "seed.h"

#define WAIT	  4000000u
#define BATCH	  48u /* frames between two checks */
#define BATCHES	  20u /* batches of a round */
#define VICTIM	  0u  /* the pair to whose QP the packets are sent */
#define WITNESS	  1u  /* the pair that has to keep working */
#define ROCE_PORT 4791u

static struct {
	uint64_t seed, rounds;
	double seconds;
} args = { .seed = 1, .seconds = 60 };

struct fuzz {
	struct rig rig;
	struct net net;
	uint64_t rnd;
	uint32_t psn; /* PSN that the victim expects, approximately */
	uint64_t frames, ours, others;
	uint8_t frame[BATCH][NET_MAX_FRAME];
	size_t len[BATCH];
};

static struct fuzz *fuzz;

static uint32_t draw(struct fuzz *f, uint32_t n)
{
	return rig_draw(&f->rnd, n);
}

static const uint8_t ipv6_of[2][16] = { { 0xfd, [15] = 1 }, { 0xfd, [15] = 2 } };
static const uint8_t ipv4_of[2][4] = { { 10, 0, 0, 1 }, { 10, 0, 0, 2 } };

static void start(struct fuzz *f)
{
	struct rig_config rc;
	struct net_config nc;

	rig_defaults(&rc);
	rc.qps = 2;
	rc.mtu = 3;
	rc.memory.memory = 64u << 20;
	rc.faults = true;
	rig_start(&f->rig, &rc);
	net_defaults(&nc);
	nc.q.buf = 4096;
	nc.ctrl |= URDMA_RF_ETH_PROMISC; /* whatever the address is now */
	net_start(&f->net, &f->rig, &nc);
	rig_check(&f->rig, urdma_eh_set_gid(f->net.side[1].eh, 1, ipv6_of[1], false), "GID");
	f->psn = 0x123;
}

/* ---- which function gets a frame (docs/hardware-interface.md, section 12) ---------------------
 */

static bool is_rdma(const struct fuzz *f, const uint8_t *p, size_t len)
{
	size_t at = 12;

	if (memcmp(p, f->net.side[1].mac, 6))
		return false;
	if (roce_be(p + at, 2) == 0x8100) {
		if (roce_be(p + at + 2, 2) & 0xfff)
			return false;
		at += 4;
	}
	if (roce_be(p + at, 2) == 0x0800) {
		p += at + 2;
		return len >= at + 2 + 24 && p[0] == 0x45 && !(roce_be(p + 6, 2) & 0x3fff) &&
		       p[9] == 17 && !memcmp(p + 16, ipv4_of[1], 4) &&
		       roce_be(p + 22, 2) == ROCE_PORT;
	}
	if (roce_be(p + at, 2) == 0x86dd) {
		p += at + 2;
		return len >= at + 2 + 44 && p[0] >> 4 == 6 && p[6] == 17 &&
		       !memcmp(p + 24, ipv6_of[1], 16) && roce_be(p + 42, 2) == ROCE_PORT;
	}
	return false;
}

/* ---- frames --------------------------------------------------------------------------------- */

static void ip_checksum(uint8_t *frame)
{
	uint8_t *ip = frame + (roce_be(frame + 12, 2) == 0x8100 ? 18 : 14);

	if (ip[0] >> 4 == 4)
		ref_ip_checksum(ip);
}

static void seal(uint8_t *frame, size_t len)
{
	struct roce_frame r;
	const char *why;

	if (roce_parse(frame, len, &r, &why) == 0 && r.end <= len && r.end >= 4)
		roce_icrc(frame, &r, frame + r.end - 4);
}

/* Bytes between the BTH and the payload, as the opcodes of the reliable connection require. */
static unsigned int extended(unsigned int opcode)
{
	static const uint8_t len[] = {
		[0x03] = 4,  [0x05] = 4,  [0x06] = 16, [0x09] = 4, [0x0a] = 16, [0x0b] = 20,
		[0x0c] = 16, [0x0d] = 4,  [0x0f] = 4,  [0x10] = 4, [0x11] = 4,	[0x12] = 12,
		[0x13] = 28, [0x14] = 28, [0x16] = 4,  [0x17] = 4,
	};

	return opcode < sizeof(len) ? len[opcode] : draw(fuzz, 24);
}

struct packet {
	struct net_flow flow;
	unsigned int opcode, pad, flags; /* flags: SE, M, TVer of the BTH's second byte */
	uint32_t qpn, psn;
	bool ack_request;
	size_t payload; /* with pad */
	uint64_t va;
	uint32_t rkey, dma_len;
};

static size_t build(struct fuzz *f, const struct packet *k, uint8_t *frame)
{
	unsigned int ext = extended(k->opcode), l4, at;
	size_t len = (k->flow.vlan ? 18 : 14) + (k->flow.ipv6 ? 40u : 20u) + 8 + 12 + ext +
		     k->payload + 4;
	uint8_t *bth;

	net_frame(&f->net, 0, &k->flow, len, draw(f, 1u << 30), frame, &l4, &at);
	roce_put(frame + at, 0, 2);
	bth = frame + l4 + 8;
	bth[0] = (uint8_t)k->opcode;
	bth[1] = (uint8_t)(k->flags | 0x40 | k->pad << 4);
	roce_put(bth + 2, 0xffff, 2);
	roce_put(bth + 4, k->qpn, 4);
	roce_put(bth + 8, k->psn | (k->ack_request ? 0x80000000 : 0), 4);
	if (ext >= 16) {
		roce_put(bth + 12, k->va, 8);
		roce_put(bth + 20, k->rkey, 4);
		roce_put(bth + 24, k->dma_len, 4);
	} else if (ext == 4 && k->opcode >= 0x0d && k->opcode <= 0x12) {
		roce_put(bth + 12, draw(f, 4) ? 0x1f000001 : (uint64_t)draw(f, 0xffffffff), 4);
	}
	seal(frame, len);
	return len;
}

static void flow_to_us(struct fuzz *f, struct net_flow *flow)
{
	unsigned int ipv6 = draw(f, 2);

	memset(flow, 0, sizeof(*flow));
	flow->ipv6 = ipv6;
	flow->proto = 17;
	flow->vlan = draw(f, 6) == 0;
	flow->tci = draw(f, 2) ? 0xa000 : (uint16_t)draw(f, 0x10000);
	memcpy(flow->src, ipv6 ? ipv6_of[0] : ipv4_of[0], ipv6 ? 16 : 4);
	memcpy(flow->dst, ipv6 ? ipv6_of[1] : ipv4_of[1], ipv6 ? 16 : 4);
	flow->sport = (uint16_t)(0xc000 + draw(f, 0x4000));
	flow->dport = ROCE_PORT;
}

static size_t random_packet(struct fuzz *f, uint8_t *frame)
{
	static const unsigned int near[] = { 0, 0, 0, 1, 2, 0xffffff, 0xfffffe, 300, 0x800000 };
	struct packet k = { .opcode = draw(f, 8) ? draw(f, 0x18) : draw(f, 256),
			    .qpn = draw(f, 16) ? RIG_QPN(VICTIM) : draw(f, 1u << 24),
			    .ack_request = draw(f, 2),
			    .flags = draw(f, 4) ? 0 : draw(f, 2) << 7 | draw(f, 16) };

	flow_to_us(f, &k.flow);
	k.psn = (f->psn + near[draw(f, sizeof(near) / sizeof(near[0]))]) & 0xffffff;
	k.payload = draw(f, 4) ? draw(f, 5) * 256 : (size_t)draw(f, 1100) * 4;
	k.pad = draw(f, 8) ? 0 : draw(f, 4);
	/* the key is right only where the request cannot reach the witness' memory */
	k.va = (uintptr_t)f->rig.side[1].buffer + draw(f, 1u << 16);
	k.rkey = draw(f, 3) ? f->rig.side[1].mr.key : draw(f, 0xffffffff);
	k.dma_len = draw(f, 3) ? (uint32_t)k.payload : draw(f, 0x40001000);
	return build(f, &k, frame);
}

static size_t random_other(struct fuzz *f, uint8_t *frame)
{
	size_t len = draw(f, 3) ? 60 + draw(f, 400) : 60 + draw(f, 9000);
	struct net_flow flow;
	unsigned int l4, at;

	flow_to_us(f, &flow);
	flow.dport = draw(f, 2) ? ROCE_PORT : (uint16_t)draw(f, 0x10000);
	if (draw(f, 2))
		flow.proto = (uint8_t)draw(f, 256);
	if (draw(f, 2))
		flow.dst[draw(f, flow.ipv6 ? 16 : 4)] ^= (uint8_t)(1 + draw(f, 255));
	if (len < 80)
		len = 80;
	net_frame(&f->net, 0, &flow, len, draw(f, 1u << 30), frame, &l4, &at);
	switch (draw(f, 5)) {
	case 0: /* another EtherType */
		roce_put(frame + 12, draw(f, 0x10000), 2);
		break;
	case 1: /* two tags */
		memmove(frame + 16, frame + 12, len - 12);
		roce_put(frame + 12, draw(f, 2) ? 0x88a8 : 0x8100, 2);
		roce_put(frame + 14, draw(f, 0x10000), 2);
		len += 4;
		break;
	default:
		break;
	}
	return len;
}

static size_t mutate(struct fuzz *f, uint8_t *frame, size_t len)
{
	for (unsigned int n = draw(f, 4); n; n--) {
		size_t at = draw(f, 3) ? draw(f, 90) % len : draw(f, (uint32_t)len);

		switch (draw(f, 7)) {
		case 0:
		case 1:
			frame[at] ^= (uint8_t)(1u << draw(f, 8));
			break;
		case 2:
			frame[at] = (uint8_t)draw(f, 256);
			break;
		case 3: /* a number at its end */
			roce_put(frame + at, draw(f, 2) ? 0xffff : draw(f, 3),
				 at + 2 <= len ? 2 : 1);
			break;
		case 4: /* shorter than it says */
			len = 14 + draw(f, (uint32_t)len - 13);
			break;
		case 5: /* longer */
			at = draw(f, 200);
			if (len + at <= NET_MAX_FRAME)
				len += at;
			break;
		default: /* the IP or UDP length a little wrong */
			at = draw(f, 2) ? 16 : 38;
			if (at + 2 <= len)
				roce_put(frame + at, roce_be(frame + at, 2) + draw(f, 9) - 4, 2);
			break;
		}
	}
	if (draw(f, 4))
		ip_checksum(frame);
	if (draw(f, 2))
		seal(frame, len);
	return len;
}

/* To the witness, packets sent to it would come from its peer. */
static bool spoofs(const struct fuzz *f, const uint8_t *frame, size_t len)
{
	size_t at = roce_be(frame + 12, 2) == 0x8100 ? 18 : 14;

	at += frame[at] >> 4 == 6 ? 40 : 20;
	return is_rdma(f, frame, len) && at + 16 <= len &&
	       roce_be(frame + at + 13, 3) == RIG_QPN(WITNESS);
}

/* ---- one batch ------------------------------------------------------------------------------ */

static void counters(struct fuzz *f, uint64_t c[URDMA_CNT_N])
{
	for (unsigned int i = 0; i < URDMA_CNT_N; i++)
		c[i] = urdma_eh_counter(f->net.side[1].eh, i);
}

static uint64_t sum_of(const uint64_t *now, const uint64_t *was, const unsigned int *which,
		       size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += now[which[i]] - was[which[i]];
	return sum;
}

static void settle(struct fuzz *f)
{
	rig_check(&f->rig,
		  urdma_cosim_run_while_busy(f->rig.cosim, urdma_cosim_now(f->rig.cosim) + WAIT),
		  "settle");
}

/* Prints what a person needs to find the cause. */
static void show(const uint8_t *p, size_t len)
{
	print_message("  ");
	for (size_t i = 0; i < len && i < 96; i++)
		print_message("%02x%s", p[i], i % 32 == 31 ? "\n  " : i % 2 ? " " : "");
	print_message("\n");
}

/* Sends n frames of f; checks what arrives, and the counters. */
static void run_batch(struct fuzz *f, unsigned int n)
{
	static const unsigned int verdicts[] = { URDMA_CNT_RX_MAC_ERR,	 URDMA_CNT_RX_ICRC_ERR,
						 URDMA_CNT_RX_MALFORMED, URDMA_CNT_RX_DROP_FULL,
						 URDMA_CNT_RX_NOT_RDMA,	 URDMA_CNT_RX_RDMA_PKTS };
	static const unsigned int ends[] = { URDMA_CNT_ETH_RX_FRAMES, URDMA_CNT_ETH_RX_FILTERED,
					     URDMA_CNT_ETH_RX_NO_BUF, URDMA_CNT_ETH_RX_DROP_FULL,
					     URDMA_CNT_ETH_RX_LENGTH };
	static uint8_t got[NET_MAX_FRAME + 64];
	uint64_t was[URDMA_CNT_N], now[URDMA_CNT_N], to_host = 0;
	struct urdma_eh_eth_cqe cqe;

	counters(f, was);
	for (unsigned int i = 0; i < n; i++)
		net_put(&f->net, 0, 0, f->frame[i], f->len[i], 1 + draw(f, 3), NULL);
	urdma_eh_eth_ring_tx(&f->net.side[0].q[0]);
	for (unsigned int i = 0; i < n; i++) {
		size_t len = f->len[i];

		if (len < 60) {
			memset(f->frame[i] + len, 0, 60 - len);
			len = 60;
		}
		f->frames++;
		if (is_rdma(f, f->frame[i], len)) {
			f->ours++;
			continue;
		}
		f->others++;
		to_host++;
		if (!net_recv(&f->net, 1, 0, got, &cqe, 100000)) {
			show(f->frame[i], len);
			fail_msg("frame %u of the batch, %zu bytes, is not RDMA's and has not come",
				 i, len);
		}
		if (cqe.len != len || memcmp(got, f->frame[i], len)) {
			show(f->frame[i], len);
			fail_msg("frame %u of the batch, %zu bytes, is not RDMA's; %u other bytes "
				 "came in its place",
				 i, len, cqe.len);
		}
	}
	if (net_recv(&f->net, 1, 0, got, &cqe, 5000)) {
		show(got, cqe.len);
		fail_msg("a frame of RDMA, %u bytes, came to the receive ring", cqe.len);
	}
	assert_true(net_sent(&f->net, 0, 0, WAIT));
	settle(f);
	counters(f, now);
	assert_int_equal(sum_of(now, was, verdicts, sizeof(verdicts) / sizeof(verdicts[0])),
			 now[URDMA_CNT_RX_FRAMES] - was[URDMA_CNT_RX_FRAMES]);
	assert_int_equal(now[URDMA_CNT_RX_NOT_RDMA] - was[URDMA_CNT_RX_NOT_RDMA], to_host);
	assert_int_equal(sum_of(now, was, ends, sizeof(ends) / sizeof(ends[0])), to_host);
	assert_int_equal(now[URDMA_CNT_ETH_RX_FRAMES] - was[URDMA_CNT_ETH_RX_FRAMES], to_host);
	assert_int_equal(urdma_embedded_stats(f->rig.host)->faults, 0);
}

/* The witness' messages; the victim is made again if it has failed. */
static void look_after(struct fuzz *f, uint32_t seed)
{
	struct urdma_eh_cqe cqe;
	struct urdma_eh_event ev;

	rig_message(&f->rig, WITNESS, seed % 2, 1u << 20, 3000 + seed % 5000, seed);
	for (unsigned int s = 0; s < 2; s++) {
		while (urdma_eh_poll_cq(&f->rig.side[s].recv_cq, &cqe, 1))
			;
		while (urdma_eh_poll_cq(&f->rig.side[s].send_cq, &cqe, 1))
			;
		while (urdma_eh_eq_poll(f->rig.side[s].eh, 0, &ev, 1, true))
			;
	}
	if (rig_qp_state(&f->rig.side[1].qp[VICTIM]) != URDMA_QPS_ERR &&
	    rig_qp_state(&f->rig.side[0].qp[VICTIM]) != URDMA_QPS_ERR)
		return;
	for (unsigned int s = 0; s < 2; s++)
		rig_check(&f->rig, urdma_eh_to_reset(&f->rig.side[s].qp[VICTIM]), "reset");
	rig_check(&f->rig,
		  urdma_eh_connect_as(&f->rig.side[0].qp[VICTIM], &f->rig.side[1].qp[VICTIM],
				      &f->rig.config.conn, draw(f, 2)),
		  "connect again");
	/* connecting has set one of the GIDs of side 1; both keep their values */
	f->psn = 0x123;
}

/* ---- the corpus ----------------------------------------------------------------------------- */

static void one(struct fuzz *f, const char *what, uint8_t *frame, size_t len, unsigned int index)
{
	uint64_t before = urdma_eh_counter(f->net.side[1].eh, index);

	memcpy(f->frame[0], frame, len);
	f->len[0] = len;
	run_batch(f, 1);
	if (urdma_eh_counter(f->net.side[1].eh, index) != before + 1)
		fail_msg("%s: counter %u has not counted it", what, index);
	look_after(f, index);
}

static void test_corpus(void **state)
{
	static const struct {
		const char *what;
		bool ipv6, sealed;
		int at; /* from the IP header on; -1: the frame's length */
		unsigned int n;
		uint64_t value; /* the value there; for the length: bytes less */
		unsigned int counter;
	} defects[] = {
		{ "IPv4 header longer", false, true, 0, 1, 0x46, URDMA_CNT_RX_NOT_RDMA },
		{ "IP version 5", false, true, 0, 1, 0x55, URDMA_CNT_RX_NOT_RDMA },
		{ "IPv4 total length 0", false, false, 2, 2, 0, URDMA_CNT_RX_MALFORMED },
		{ "IPv4 total length 65535", false, false, 2, 2, 0xffff, URDMA_CNT_RX_MALFORMED },
		{ "IPv4 more fragments", false, true, 6, 2, 0x2000, URDMA_CNT_RX_NOT_RDMA },
		{ "IPv4 fragment offset", false, true, 6, 2, 0x0001, URDMA_CNT_RX_NOT_RDMA },
		{ "IPv4 TCP", false, true, 9, 1, 6, URDMA_CNT_RX_NOT_RDMA },
		{ "IPv4 checksum", false, false, 10, 2, 0x1234, URDMA_CNT_RX_MALFORMED },
		{ "IPv4 source", false, true, 12, 4, 0x0a0000fe, URDMA_CNT_RX_NO_QP },
		{ "IPv4 destination", false, true, 16, 4, 0x0a000063, URDMA_CNT_RX_NOT_RDMA },
		{ "UDP port", false, true, 22, 2, 4792, URDMA_CNT_RX_NOT_RDMA },
		{ "UDP length 0", false, false, 24, 2, 0, URDMA_CNT_RX_MALFORMED },
		{ "UDP length 7", false, false, 24, 2, 7, URDMA_CNT_RX_MALFORMED },
		{ "UDP length 65535", false, false, 24, 2, 0xffff, URDMA_CNT_RX_MALFORMED },
		{ "BTH version", false, true, 29, 1, 0x41, URDMA_CNT_RX_MALFORMED },
		{ "BTH pad beyond payload", false, true, 29, 1, 0x70, URDMA_CNT_RX_RDMA_PKTS },
		{ "P_Key", false, true, 30, 2, 0x7ffe, URDMA_CNT_RX_NO_QP },
		{ "no such QP", false, true, 33, 3, 0x000777, URDMA_CNT_RX_NO_QP },
		{ "QP number beyond the table", false, true, 33, 3, 0x100010, URDMA_CNT_RX_NO_QP },
		{ "UD opcode", false, true, 28, 1, 0x64, URDMA_CNT_RX_NO_QP },
		{ "PSN far ahead", false, true, 37, 3, 0x400000, URDMA_CNT_RX_SEQ_ERR },
		{ "ICRC", false, false, 40, 1, 0x99, URDMA_CNT_RX_ICRC_ERR },
		{ "cut in the payload", false, false, -1, 0, 40, URDMA_CNT_RX_MALFORMED },
		{ "cut in the ICRC", false, false, -1, 0, 1, URDMA_CNT_RX_MALFORMED },
		{ "cut in the BTH", false, false, -1, 0, 252, URDMA_CNT_RX_MALFORMED },
		{ "IPv6 version 4", true, true, 0, 1, 0x40, URDMA_CNT_RX_NOT_RDMA },
		{ "IPv6 payload length 0", true, false, 4, 2, 0, URDMA_CNT_RX_MALFORMED },
		{ "IPv6 payload length 65535", true, false, 4, 2, 0xffff, URDMA_CNT_RX_MALFORMED },
		{ "IPv6 extension header", true, true, 6, 1, 0, URDMA_CNT_RX_NOT_RDMA },
		{ "IPv6 destination", true, true, 39, 1, 9, URDMA_CNT_RX_NOT_RDMA },
		{ "IPv6 ICRC", true, false, 60, 1, 0x99, URDMA_CNT_RX_ICRC_ERR },
	};
	static uint8_t frame[NET_MAX_FRAME];
	struct fuzz *f = fuzz;

	(void)state;
	f->rnd = 7;
	start(f);
	for (size_t i = 0; i < sizeof(defects) / sizeof(defects[0]); i++) {
		struct packet k = { .opcode = 0x04, .qpn = RIG_QPN(VICTIM), .payload = 256 };
		size_t len;

		flow_to_us(f, &k.flow);
		k.flow.vlan = false;
		k.flow.ipv6 = defects[i].ipv6;
		memcpy(k.flow.src, k.flow.ipv6 ? ipv6_of[0] : ipv4_of[0], k.flow.ipv6 ? 16 : 4);
		memcpy(k.flow.dst, k.flow.ipv6 ? ipv6_of[1] : ipv4_of[1], k.flow.ipv6 ? 16 : 4);
		k.psn = f->psn;
		len = build(f, &k, frame);
		if (defects[i].at < 0)
			len -= defects[i].value;
		else
			roce_put(frame + 14 + defects[i].at, defects[i].value, defects[i].n);
		if (defects[i].sealed) {
			ip_checksum(frame);
			seal(frame, len);
		}
		one(f, defects[i].what, frame, len, defects[i].counter);
	}
	/* too long for any frame; with a bad FCS */
	rig_fill(frame, sizeof(frame), 3);
	memcpy(frame, f->net.side[1].mac, 6);
	rig_fault(&f->rig, "fcs,side=0");
	memcpy(f->frame[0], frame, 100);
	net_send(&f->net, 0, 0, frame, 100);
	assert_true(net_sent(&f->net, 0, 0, WAIT));
	settle(f);
	assert_int_equal(urdma_eh_counter(f->net.side[1].eh, URDMA_CNT_RX_MAC_ERR), 1);
	look_after(f, 5);
	net_stop(&f->net);
	rig_stop(&f->rig);
}

/* ---- the random part ------------------------------------------------------------------------ */

static uint64_t round_seed; /* of the present round, to repeat it */

static void run_round(struct fuzz *f, uint64_t seed)
{
	round_seed = seed;
	f->rnd = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	start(f);
	for (unsigned int b = 0; b < BATCHES; b++) {
		unsigned int n = 0;

		while (n < BATCH) {
			uint8_t *p = f->frame[n];
			size_t len = draw(f, 4) ? random_packet(f, p) : random_other(f, p);

			len = mutate(f, p, len);
			/* to the sender itself: looped back there */
			if (!memcmp(p, f->net.side[0].mac, 6) || spoofs(f, p, len))
				continue;
			f->len[n++] = len;
		}
		run_batch(f, BATCH);
		look_after(f, (uint32_t)(seed * BATCHES + b));
	}
	net_stop(&f->net);
	rig_stop(&f->rig);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_random(void **state)
{
	double begin = seconds();
	uint64_t n = 0;

	(void)state;
	fuzz->frames = fuzz->ours = fuzz->others = 0;
	do
		run_round(fuzz, args.seed + n++);
	while (args.rounds ? n < args.rounds : seconds() - begin < args.seconds);
	print_message("  seeds %lu to %lu: %lu frames, %lu RDMA's, %lu not\n",
		      (unsigned long)args.seed, (unsigned long)(args.seed + n - 1),
		      (unsigned long)fuzz->frames, (unsigned long)fuzz->ours,
		      (unsigned long)fuzz->others);
	assert_true(fuzz->ours > fuzz->frames / 10 && fuzz->others > fuzz->frames / 10);
}

static int told(void **state)
{
	(void)state;
	if (round_seed)
		print_message("  last round: --seed %lu --rounds 1\n", (unsigned long)round_seed);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 's':
		args.seed = strtoull(arg, NULL, 0);
		return 0;
	case 'r':
		args.rounds = strtoull(arg, NULL, 0);
		return 0;
	case 't':
		args.seconds = strtod(arg, NULL);
		return 0;
	case ARGP_KEY_ARG:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "seed", 's', "N", 0, "seed of the first round (1, or drawn from SEED)", 0 },
		{ "rounds", 'r', "N", 0, "so many rounds instead of a time", 0 },
		{ "seconds", 't', "S", 0, "wall time of the random part (60)", 0 },
		{ 0 },
	};
	static const struct argp argp = { options, parse, NULL, "Malformed frames against the NIC.",
					  NULL,	   NULL,  NULL };
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus),
		cmocka_unit_test_teardown(test_random, told),
	};
	int ret;

	args.seed = test_seed(args.seed);
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	fuzz = calloc(1, sizeof(*fuzz));
	if (!fuzz)
		return 2;
	ret = cmocka_run_group_tests_name("fuzz", tests, NULL, NULL);
	free(fuzz);
	return ret;
}
