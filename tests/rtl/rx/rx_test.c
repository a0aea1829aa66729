// SPDX-License-Identifier: Apache-2.0
/*
 * urdma_rx alone. In: frames at the MAC. Out: payload, CQEs, acknowledgements and errors, checked
 * against a reference written from the specification. SEED=n repeats a run. A failure here means
 * that a packet was accepted, refused, placed or answered against IBA volume 1, chapter 9.
 */
#include "opcode_rules.h"
#include "rx_opcodes.h"
#include "rx_ref.h"
#include "rx_mcast.h"
#include "rx_srq.h"
#include "rx_unrel.h"
#include "rx_xrc.h"
#include "seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- tests
 * ------------------------------------------------------------------------------------------------
 */

/* Frames made by scapy: its ICRC is an implementation of its own. */
static void test_vectors(void **state)
{
	static const uint8_t v4[] = { 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00,
				      0x00, 0x01, 0x08, 0x00, 0x45, 0x20, 0x00, 0x3c, 0x00, 0x07,
				      0x00, 0x00, 0x40, 0x11, 0x66, 0x88, 0x0a, 0x00, 0x00, 0x01,
				      0x0a, 0x00, 0x00, 0x02, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x28,
				      0x00, 0x00, 0x04, 0x50, 0xff, 0xff, 0x00, 0x00, 0x00, 0x05,
				      0x80, 0x12, 0x34, 0x56, 0x75, 0x72, 0x64, 0x6d, 0x61, 0x75,
				      0x72, 0x64, 0x6d, 0x61, 0x75, 0x72, 0x64, 0x6d, 0x61, 0x00,
				      0x8d, 0x3b, 0xe4, 0x4a };
	static const uint8_t v6[] = {
		0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x81, 0x00,
		0x00, 0x05, 0x86, 0xdd, 0x60, 0x95, 0x43, 0x21, 0x00, 0x28, 0x11, 0x07, 0xfe, 0x80,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
		0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x02, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x04, 0x00, 0xff, 0xff,
		0x00, 0x00, 0x00, 0x05, 0x80, 0x12, 0x34, 0x56, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35,
		0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x96, 0x33, 0x7a, 0xe3
	};
	struct bench *b = start();
	static struct frame f;

	(void)state;
	for (int v = 0; v < 2; v++) {
		const uint8_t *vec = v ? v6 : v4;
		size_t len = v ? sizeof(v6) : sizeof(v4), ip = v ? 18 : 14;
		struct sge s = { HOST_VA + DATA_OFF + 64 * v, 64, LKEY };
		struct packet k = { .opcode = 4,
				    .psn = 0x123456,
				    .ackreq = true,
				    .payload = vec + len - 20,
				    .len = v ? 16 : 15 };

		qp_init(b, 0, 3, 4, 6, 0x123456);
		refs[0].cfg.sgid = v;
		memcpy(refs[0].cfg.dgid, refs[v].hdr.sip, 16);
		(v ? gid6 : gid4)(refs[0].cfg.dgid, 1);
		bench_cfg(b, &refs[0].cfg);
		post(b, &refs[0], &s, 1);
		ring(b, &refs[0]);
		bench_drain(b, 1000);
		/* each bit that the ICRC covers, flipped: never taken */
		for (size_t bit = 8 * ip; bit < 8 * len; bit++) {
			memcpy(f.b, vec, len);
			f.len = len;
			f.b[bit / 8] ^= 1 << bit % 8;
			/* the outer fields that may change on the way are not covered */
			if ((!v && (bit / 8 == 15 || bit / 8 == 22 || bit / 8 == 40 ||
				    bit / 8 == 41 || bit / 8 == 46)) ||
			    (v &&
			     ((bit / 8 >= 19 && bit / 8 <= 21) || (bit / 8 == 18 && bit % 8 < 4) ||
			      bit / 8 == 25 || bit / 8 == 64 || bit / 8 == 65 || bit / 8 == 70)))
				continue;
			bench_frame(b, &f, false);
		}
		bench_drain(b, 20000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS], 0);
		assert_true(b->cnt[URDMA_CNT_RX_ICRC_ERR] > 200);
		assert_int_equal(b->cnt[URDMA_CNT_RX_FRAMES],
				 b->cnt[URDMA_CNT_RX_ICRC_ERR] + b->cnt[URDMA_CNT_RX_MALFORMED] +
					 b->cnt[URDMA_CNT_RX_NOT_RDMA]);
		memcpy(f.b, vec, len);
		f.len = len;
		bench_frame(b, &f, false);
		ref_packet(b, &refs[0], &k);
		bench_drain(b, 2000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS], 1);
		assert_int_equal(b->lanes.in, 1);
		check(b);
	}
	bench_free(b);
}

/* Every size at every MTU in every shape of scatter list, with the ports at full speed and slow. */
static void test_sizes(void **state)
{
	struct bench *b = start();
	unsigned int n = 0;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int i = 0; i < 5; i++)
		qp_init(b, i, i + 1, 6, 6 + i % 4, rnd(b));
	for (int speed = 0; speed < 2; speed++) {
		bench_settings(b, speed ? 60 : 100, speed ? 20 : 0, 4, 60);
		for (int shape = 0; shape < 5; shape++) {
			for (int q = 0; q < 5; q++) {
				struct ref *r = &refs[q];
				size_t mtu = 128u << r->cfg.mtu;
				size_t sizes[] = { 0,
						   1,
						   63,
						   64,
						   65,
						   mtu - 1,
						   mtu,
						   mtu + 1,
						   2 * mtu,
						   3 * mtu + 17,
						   shape < 2 ? 65536 : 9000 };
				unsigned int most = ((1u << r->cfg.rq_log_stride) - 16) / 16;

				for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
					struct sge s[32];

					post(b, r, s, shape_sges(b, shape, sizes[k], s, most));
				}
				ring(b, r);
			}
			bench_drain(b, 3000);
			for (size_t k = 0; k < 11; k++) {
				for (int q = 0; q < 5; q++) {
					struct ref *r = &refs[q];
					size_t mtu = 128u << r->cfg.mtu;
					size_t sizes[] = { 0,
							   1,
							   63,
							   64,
							   65,
							   mtu - 1,
							   mtu,
							   mtu + 1,
							   2 * mtu,
							   3 * mtu + 17,
							   shape < 2 ? 65536 : 9000 };

					fill(b, sizes[k]);
					send_message(b, r, sizes[k], rnd(b) & 1, rnd(b) & 1,
						     rnd(b) % 4);
					n++;
					/* the buffer holds 128 KB, what comes faster than DMA is
					 * lost */
					bench_drain(b, 200000);
				}
			}
			assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
			check(b);
		}
	}
	print_message("%u messages\n", n);
	bench_free(b);
}

/* One fault in each layer: the right counter, and nothing else happens. */
static void test_malformed(void **state)
{
	struct bench *b = start();
	static const int counters[] = { URDMA_CNT_RX_MAC_ERR, URDMA_CNT_RX_ICRC_ERR,
					URDMA_CNT_RX_MALFORMED, URDMA_CNT_RX_NOT_RDMA,
					URDMA_CNT_RX_NO_QP };
	enum { MACERR, ICRC, BAD, OTHER, NOQP };
	static const uint8_t mac_other[6] = { 2, 0, 0, 0, 0, 3 };
	static struct frame f;

	(void)state;
	/* the same addresses once more, at another MAC address */
	set_gids(b, 4, mac_other);
	next_va = HOST_VA + DATA_OFF;
	fill(b, 4096);
	for (int i = 0; i < 4; i++) {
		struct sge s = { HOST_VA + DATA_OFF + 0x2000 * i, 4096, LKEY };

		qp_init(b, i, 5, 4, 6, 100);
		post(b, &refs[i], &s, 1);
		ring(b, &refs[i]);
	}
	bench_drain(b, 1000);
	for (int i = 0; i < 4; i++) {
		struct ref *r = &refs[i];

		for (int fault = 0; fault < 33; fault++) {
			struct packet k = r->hdr;
			uint8_t *ip, *udp, *bth;
			bool seal = true, err = false;
			int want = BAD;

			k.opcode = 4;
			k.psn = 100;
			k.payload = payload;
			k.len = 100;
			k.ackreq = true;
			switch (fault) { /* before the frame is built */
			case 0:
				k.dqpn = 77;
				want = NOQP;
				break;
			case 1:
				k.dqpn |= 0x1000; /* beyond the table */
				want = NOQP;
				break;
			case 2:
				k.sip[15]++;
				want = NOQP;
				break;
			case 3:
				k.dip[15]++;
				want = OTHER;
				break;
			case 4:
				k.dmac[3] ^= 1;
				want = OTHER;
				break;
			case 5:
				k.vlan_valid = true;
				k.vlan = 6;
				want = OTHER;
				break;
			case 6:
				k.pkey = 0x7ffe;
				want = NOQP;
				break;
			case 7:
				k.opcode = 0x64; /* UD */
				want = NOQP;
				break;
			case 8:
				k.len = 4100;
				break;
			case 9:
				k.opcode = 0x11; /* ACK with payload */
				break;
			case 10:
				k.ipv4 = !k.ipv4; /* to the GID of the other version */
				(k.ipv4 ? gid4 : gid6)(k.dip, 2);
				want = NOQP;
				break;
			case 31:
				k.vlan_valid = !k.vlan_valid; /* to the GID in the other VLAN */
				k.vlan = 5;
				want = NOQP;
				break;
			case 32:
				memcpy(k.dmac, mac_other, 6); /* to the GID at the other MAC */
				want = NOQP;
				break;
			}
			packet_build(&k, &f);
			ip = f.b + packet_ip(&k);
			udp = f.b + packet_udp(&k);
			bth = f.b + packet_bth(&k);
			switch (fault) { /* after it */
			case 11:
				err = true;
				want = MACERR;
				break;
			case 12:
				ip[-1] ^= 1;
				want = OTHER;
				break;
			case 13:
				udp[3] ^= 1;
				want = OTHER;
				break;
			case 14:
				ip[k.ipv4 ? 9 : 6] = 6; /* TCP */
				want = OTHER;
				break;
			case 15:
				if (!k.ipv4)
					continue;
				ip[10] ^= 1; /* header checksum */
				seal = false;
				break;
			case 16:
				if (!k.ipv4)
					continue;
				ip[0] = 0x46; /* options */
				want = OTHER;
				break;
			case 17:
				if (!k.ipv4)
					continue;
				ip[6] = 0x20; /* fragment */
				want = OTHER;
				break;
			case 18:
				ip[0] ^= 0x30; /* IP version 7 or 5 */
				want = OTHER;
				break;
			case 19:
				ip[k.ipv4 ? 3 : 5] += 4; /* longer than UDP says */
				break;
			case 20:
				udp[5] += 4;
				break;
			case 21:
				f.len -= 4; /* the frame ends too early */
				break;
			case 22:
				f.len = packet_bth(&k) + 6;
				break;
			case 23:
				f.len = 60; /* the least a frame can have */
				if (packet_udp(&k) + 4 > 60)
					want = OTHER; /* and the port is not in it */
				break;
			case 24:
				bth[1] |= 1; /* BTH version */
				break;
			case 25:
				udp[4] = udp[5] = 0;
				ip[k.ipv4 ? 2 : 4] = 0;
				ip[k.ipv4 ? 3 : 5] = k.ipv4 ? 20 : 0;
				break;
			case 26:
				udp[5] = 20; /* no room for the BTH and the ICRC */
				udp[4] = 0;
				ip[k.ipv4 ? 2 : 4] = 0;
				ip[k.ipv4 ? 3 : 5] = k.ipv4 ? 40 : 20;
				break;
			case 27:
				udp[5] += 2; /* not in words */
				ip[k.ipv4 ? 3 : 5] += 2;
				f.len += 2;
				break;
			case 28:
				f.b[f.len - 1] ^= 0x80;
				seal = false;
				want = ICRC;
				break;
			case 29:
				bth[20] ^= 1;
				seal = false;
				want = ICRC;
				break;
			case 30:
				ip[k.ipv4 ? 2 : 4] = 0xff; /* as long as it can be */
				ip[k.ipv4 ? 3 : 5] = 0xfe;
				udp[4] = 0xff;
				udp[5] = k.ipv4 ? 0xea : 0xfe;
				break;
			}
			if (fault > 10 && fault < 31 && seal && fault != 21 && fault != 22 &&
			    fault != 23)
				packet_seal(&k, &f);
			bench_clear_logs(b);
			bench_frame(b, &f, err);
			bench_drain(b, 5000);
			for (int c = 0; c < 5; c++)
				if (b->cnt[counters[c]] != (c == want))
					fail_msg("QP %d fault %d: counter %d is %d", i, fault,
						 counters[c], (int)b->cnt[counters[c]]);
			assert_int_equal(b->cnt[URDMA_CNT_RX_FRAMES], 1);
			assert_int_equal(b->classes[0] + b->classes[1], 1);
			if (want != MACERR)
				assert_int_equal(b->classes[0], want == OTHER);
			assert_int_equal(b->bytes, f.len < 60 ? 60 : f.len);
			check(b);
		}
		/* wrong state, wrong type, wrong life */
		for (int fault = 0; fault < 5; fault++) {
			struct rx_cfg c = r->cfg;
			struct packet k = r->hdr;

			c.exists = fault != 0;
			c.state = fault == 1   ? URDMA_QPS_ERR
				  : fault == 2 ? URDMA_QPS_INIT
					       : URDMA_QPS_RTS;
			c.type = fault == 3 ? 4 : URDMA_QPT_RC;
			k.opcode = 4;
			k.psn = 100;
			packet_build(&k, &f);
			bench_cfg(b, &c);
			if (fault == 4)
				bench_ctl_wait(b, false, QPC_RESET, c.qpn, 0, 100);
			bench_frame(b, &f, false);
			bench_drain(b, 5000);
			assert_int_equal(b->cnt[URDMA_CNT_RX_NO_QP], 1);
			check(b);
		}
		bench_cfg(b, &r->cfg);
	}
	/* extended headers for which there is no room; payload where there may be none */
	for (uint8_t op = 0; op < 0x18; op++) {
		struct packet k = refs[0].hdr;
		bool none = op == 0x11 || op == 0x12;

		if (!opc_rules[op].ext)
			continue;
		k.opcode = op;
		k.psn = 100;
		k.payload = payload;
		k.len = none ? 4 : 0;
		k.ext_len = none ? opc_rules[op].ext : opc_rules[op].ext - 4;
		packet_build(&k, &f);
		bench_frame(b, &f, false);
		bench_drain(b, 1000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_MALFORMED], 1);
		check(b);
	}
	/* the buffer has not leaked: all of it can still be filled */
	qp_init(b, 0, 5, 6, 6, 0);
	for (int i = 0; i < 32; i++) {
		struct sge s = { HOST_VA + DATA_OFF + 4096 * i, 4096, LKEY };

		post(b, &refs[0], &s, 1);
	}
	ring(b, &refs[0]);
	bench_drain(b, 1000);
	b->hold_wr = true;
	/* but for the 16 KB that requests leave to responses */
	for (int i = 0; i < 28; i++) {
		fill(b, 4096);
		send_message(b, &refs[0], 4096, false, false, 0);
	}
	bench_run(b, 4000);
	b->hold_wr = false;
	bench_drain(b, 10000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
	check(b);
	bench_free(b);
}

/* Faster than anything downstream: each packet is taken whole or dropped whole, and counted. */
static void test_overrun(void **state)
{
	enum { OVERRUN = 8000 }; /* more than the queues hold of what comes in excess */
	struct bench *b = start();
	struct ref *r = &refs[0];
	static struct frame f;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	qp_init(b, 0, 5, 10, 6, 0);
	qp_init(b, 1, 5, 4, 6, 0);
	/* frames of one beat, one each cycle, too many for the queues: all of one PSN, so that all
	 * but the first are duplicates */
	post(b, r, NULL, 0);
	ring(b, r);
	bench_drain(b, 1000);
	for (int i = 0; i < OVERRUN; i++) {
		struct packet k = r->hdr;

		k.opcode = 4;
		packet_build(&k, &f);
		bench_frame(b, &f, false);
	}
	bench_drain(b, 20000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_FRAMES], OVERRUN);
	assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS] + b->cnt[URDMA_CNT_RX_DROP_FULL], OVERRUN);
	assert_true(b->cnt[URDMA_CNT_RX_DROP_FULL] > 0);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DUP], b->cnt[URDMA_CNT_RX_RDMA_PKTS] - 1);
	assert_int_equal(b->n_cqes[0], 1);
	print_message("one-beat frames without a gap: %u of %u taken\n",
		      (unsigned int)b->cnt[URDMA_CNT_RX_RDMA_PKTS], OVERRUN);
	ref_clear(r);
	bench_clear_logs(b);

	/* frames of two beats without a gap, as a train of 66 to 74 bytes comes at line rate: each
	 * of them is seen, counted and classified, with every byte */
	fill(b, 16);
	for (unsigned int len = 8; len <= 16; len += 4) {
		uint64_t bytes = 0;

		for (int i = 0; i < OVERRUN; i++) {
			struct packet k = r->hdr;

			k.opcode = 4;
			k.payload = payload;
			k.len = len;
			packet_build(&k, &f);
			assert_int_equal(f.len, 58 + len);
			bench_frame(b, &f, false);
			bytes += f.len;
		}
		bench_drain(b, 20000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_FRAMES], OVERRUN);
		assert_int_equal(b->bytes, bytes);
		assert_int_equal(b->classes[1], OVERRUN);
		assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS] + b->cnt[URDMA_CNT_RX_DROP_FULL],
				 OVERRUN);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DUP], b->cnt[URDMA_CNT_RX_RDMA_PKTS]);
		print_message("frames of %u bytes without a gap: %u of %u taken\n", 58 + len,
			      (unsigned int)b->cnt[URDMA_CNT_RX_RDMA_PKTS], OVERRUN);
		bench_clear_logs(b);
	}

	/* the same of READ responses that nobody has asked for: to both queues or to none */
	for (int i = 0; i < OVERRUN; i++) {
		struct packet k = r->hdr;

		k.opcode = 0x10;
		k.psn = i;
		k.ext_len = 4;
		packet_build(&k, &f);
		bench_frame(b, &f, false);
	}
	bench_drain(b, 50000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS] + b->cnt[URDMA_CNT_RX_DROP_FULL], OVERRUN);
	assert_true(b->cnt[URDMA_CNT_RX_DROP_FULL] > 0);
	assert_int_equal(b->n_acks, 0);
	check(b);
	bench_free(b);
}

/* The next packet of a QP, now and then a wrong one: lines of the packet buffer it takes. */
static unsigned int soak_packet_to(struct bench *b, int q)
{
	struct ref *r = &refs[q];
	size_t mtu = 128u << r->cfg.mtu, len = 0;
	uint64_t va = HOST_VA + REM_OFF + 0x10000 * q + rnd(b) % 0x8000;
	uint32_t psn = r->epsn, key = rnd(b) % 3 ? RKEY : RKEY_INV + 256 * q, total = 0;
	unsigned int fault = rnd(b) % 60;
	uint8_t op;

	if (r->cfg.type == URDMA_QPT_UD)
		return soak_datagram(b, r);
	if (r->in_msg && r->write) {
		total = r->wleft;
		op = total > mtu ? 7 : rnd_in(b, 8, 9);
		len = total > mtu ? mtu : total;
	} else if (r->in_msg) {
		op = rnd(b) % 3 ? 1 : rnd(b) % 4 ? rnd_in(b, 2, 3) : 0x16;
		len = op == 1 ? mtu : rnd_in(b, 1, mtu);
	} else {
		switch (rnd(b) % 10) {
		case 0:
		case 1:
		case 2:
			op = rnd(b) % 3 == 0 ? 0 : rnd(b) % 5 ? rnd_in(b, 4, 5) : 0x17;
			len = op == 0 ? mtu : rnd(b) % 8 ? rnd_in(b, 1, mtu) : 0;
			break;
		case 3:
		case 4:
		case 5:
			total = rnd(b) % 8 ? rnd_in(b, 0, 3 * mtu) : 0;
			op = total > mtu ? 6 : rnd_in(b, 0xa, 0xb);
			len = total > mtu ? mtu : total;
			break;
		case 6:
			op = 0x0c;
			total = rnd(b) % 4 ? rnd_in(b, 0, 20000) : 0;
			break;
		case 7:
			op = 0x1c;
			total = rnd(b) % 4 ? rnd_in(b, 0, 20000) : rnd_in(b, 0, 2);
			break;
		case 8:
			op = 0x1d;
			len = total = 8;
			va &= ~7ull;
			break;
		default:
			op = rnd_in(b, 0x13, 0x14);
			va &= ~7ull;
		}
	}
	switch (fault) {
	case 0:
	case 1:
		psn -= rnd_in(b, 1, 8);
		break;
	case 2:
	case 3:
		psn += rnd_in(b, 1, 5);
		break;
	case 4:
		op = rnd(b) % 0x20;
		break;
	case 5:
		len = rnd_in(b, 0, mtu < 4000 ? mtu + 96 : mtu);
		break;
	case 6:
		if (rnd(b) % 2)
			key = rnd(b) % 3 ? RKEY_RO + 256 * (rnd(b) % 2) : 0x1111;
		else
			total += rnd_in(b, 1, 100);
		break;
	case 7:
		if (rnd(b) % 2)
			va = rnd(b) % 2 ? va | 4 : HOST_VA + HOST_SIZE - 8 * (rnd(b) % 4);
		else
			total = rnd(b) % 2 ? 0x80000001 : 0x40000001;
		break;
	case 8: /* an ATOMIC, READ, FLUSH or ATOMIC WRITE that comes again */
	case 9:
	case 10:
		op = fault == 8 ? 0x0c : rnd(b) % 2 ? 0x13 : rnd_in(b, 0x1c, 0x1d);
		len = op == 0x1d ? 8 : 0;
		psn -= rnd_in(b, 1, 8);
		total = op == 0x1d ? 8 : rnd_in(b, 0, 2 * mtu);
		if (op == 0x13 && r->n_atomic)
			psn = r->atomic[r->n_atomic - 1 -
					rnd(b) % (r->n_atomic < 8 ? r->n_atomic : 8)]
				      .psn;
		break;
	}
	if (op >= 0x0d && op <= 0x12)
		op = 0x15;
	fill(b, len);
	if (op == 0x13 || op == 0x14) {
		uint64_t v = 0;

		if (rnd(b) % 2) /* will compare equal, if nothing has written there */
			memcpy(&v,
			       b->shadow +
				       ((va < HOST_VA + HOST_SIZE - 8 ? va : HOST_VA) - HOST_VA),
			       8);
		send_atomic(b, r, op, psn, va, key, (uint64_t)rnd(b) << 32 | rnd(b), v);
		len = 0;
	} else if (op == 0x16 || op == 0x17) {
		send_inv(b, r, op, psn, rnd(b) % 16 ? RKEY_INV + 256 * (rnd(b) % QPS) : key,
			 payload, len);
	} else if (op == 0x1c) {
		/* now and then to persistence, or with reserved values */
		send_flush(b, r, psn, va, key, total, rnd(b) % 20 ? 1 : rnd(b) % 4,
			   rnd(b) % 30 ? rnd(b) % 2 : rnd(b) % 4);
		len = 0;
	} else if ((op >= 6 && op <= 0x0c) || op == 0x1d) {
		send_reth(b, r, op, psn, va, key, total, payload, len, rnd(b) % 2);
	} else {
		send_packet(b, r, op, psn, payload, len, rnd(b) % 2, rnd(b) % 2);
	}
	return (len + 63) / 64;
}

static unsigned int soak_packet(struct bench *b, int q)
{
	unsigned int lines = soak_packet_to(b, q);

	/* A WQE is taken back, with what has come meanwhile: the reference knows nothing of that.
	 */
	if (refs[q].back)
		bench_drain(b, 100000);
	refs[q].back = false;
	return lines;
}

/* Packets of several QPs interleaved, with all that can go wrong; the reference says what happens.
 */
static void test_soak(void **state)
{
	static const uint8_t types[] = { URDMA_QPT_RC, URDMA_QPT_RC, URDMA_QPT_UC, URDMA_QPT_UD };
	struct bench *b = start();
	unsigned int total = 0, unrel = 0;

	(void)state;
	for (int round = 0; round < 140; round++) {
		size_t lines = 0;

		bench_settings(b, round % 3 ? rnd_in(b, 20, 100) : 100,
			       round % 4 ? rnd_in(b, 0, 60) : 0, rnd_in(b, 2, 20),
			       rnd_in(b, 20, 150));
		next_va = HOST_VA + DATA_OFF;
		memset(ref_invalid, 0, sizeof(ref_invalid));
		memset(b->mr_invalid, 0, sizeof(b->mr_invalid));
		for (int q = 0; q < QPS; q++) {
			struct ref *r = &refs[q];
			unsigned int most, posts;

			if (!r->active || r->err) {
				qp_type = types[rnd(b) % 4];
				qp_init(b, q, rnd_in(b, 1, 5), rnd_in(b, 3, 7), rnd_in(b, 6, 9),
					round & 1 ? 0xfffff8 : rnd(b));
			}
			most = ((1u << r->cfg.rq_log_stride) - 16) / 16;
			posts = (1u << r->cfg.rq_log_entries) - (uint16_t)(r->pi - r->ci);
			if (posts > 12)
				posts = 12;
			posts = rnd(b) % (posts + 1);
			while (posts--) {
				struct sge s[32];
				unsigned int n =
					shape_sges(b, rnd(b) % 5, rnd_in(b, 0, 6000), s, most);

				switch (rnd(b) % 40) {
				case 0: /* keys: none, other PD, no right */
					if (n)
						s[rnd(b) % n].key = LKEY + rnd_in(b, 1, 3);
					break;
				case 1: /* one byte too far */
					if (n)
						s[n - 1].va =
							HOST_VA + HOST_SIZE - s[n - 1].len + 1;
					break;
				case 2:
					n = most + 1;
					memset(s, 0, sizeof(s));
					break;
				}
				post(b, r, s, n);
			}
			ring(b, r);
			if (rnd(b) % 3 == 0)
				bench_db(b, r->cfg.qpn,
					 r->pi - rnd(b) % 4); /* an old one repeated */
		}
		bench_drain(b, 20000);
		/* the buffer and the queue of 64 packets must not overflow: the reference knows
		 * nothing of it */
		for (int i = 0; i < 60 && lines < 1900; i++) {
			lines += soak_packet(b, rnd(b) % QPS);
			total++;
			if (rnd(b) % 4 == 0)
				bench_run(b, rnd_in(b, 1, 200));
		}
		if (round % 7 == 6) {
			/* new lives in the midst of it: whatever was under way, nothing hangs and
			 * nothing of it is seen later */
			for (int q = 0; q < QPS; q++) {
				bench_run(b, rnd(b) % 100);
				qp_type = types[rnd(b) % 4];
				if (rnd(b) % 2)
					qp_init(b, q, rnd_in(b, 1, 5), rnd_in(b, 3, 7), 6, rnd(b));
			}
			bench_drain(b, 100000);
			for (int q = 0; q < QPS; q++) {
				qp_type = types[rnd(b) % 4];
				qp_init(b, q, 3, 4, 6, rnd(b));
				ref_clear(&refs[q]);
			}
			bench_drain(b, 100000);
			memcpy(b->shadow, b->host, HOST_SIZE);
			memcpy(ref_invalid, b->mr_invalid, sizeof(ref_invalid));
			bench_clear_logs(b);
			for (int i = 0; i < 30; i++)
				soak_packet(b, rnd(b) % QPS);
		}
		bench_drain(b, 100000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		unrel += b->cnt[URDMA_CNT_RX_DROP_UNREL];
		/* qp_mgr's part: each QP that ended gets QPC_ERR, and its queue flushes */
		for (int q = 0; q < QPS; q++) {
			if (!refs[q].err)
				continue;
			bench_ctl(b, false, QPC_ERR, refs[q].cfg.qpn, 0);
			ref_flush(&refs[q]);
		}
		bench_drain(b, 100000);
		check(b);
	}
	print_message("%u packets, %u of UC and UD dropped\n", total, unrel);
	assert_true(unrel > 50);
	bench_free(b);
}

static uint64_t rem(int q, unsigned int off)
{
	return HOST_VA + REM_OFF + 0x10000 * q + off;
}

/* As qp_mgr does with a QP that has ended; then a new life. */
static void end_life(struct bench *b, int q)
{
	struct ref *r = &refs[q];

	bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
	ref_flush(r);
	bench_drain(b, 10000);
	check(b);
}

/* WRITEs of every size around each boundary, with and without immediate, at each MTU. */
static void test_writes(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 5; q++) {
		qp_init(b, q, q + 1, 6, 6, rnd(b));
		for (int i = 0; i < 40; i++)
			post(b, &refs[q], NULL, 0);
		ring(b, &refs[q]);
	}
	bench_drain(b, 1000);
	for (int speed = 0; speed < 2; speed++) {
		bench_settings(b, speed ? 60 : 100, speed ? 20 : 0, 4, 60);
		for (int k = 0; k < 12; k++) {
			for (int q = 0; q < 5; q++) {
				size_t mtu = 128u << refs[q].cfg.mtu;
				size_t sizes[] = { 0,	    1,	  63,	   64,	    65,
						   mtu - 1, mtu,  mtu + 1, 2 * mtu, 3 * mtu + 17,
						   30000,   60000 };

				fill(b, sizes[k]);
				send_write(b, &refs[q], rem(q, rnd(b) % 5000),
					   rnd(b) % 2 ? RKEY : RKEY_INV + 256 * q, sizes[k],
					   rnd(b) % 2, rnd(b) % 4);
				bench_drain(b, 50000);
			}
			check(b);
		}
	}
	/* with nothing posted the last packet of a WRITE with immediate meets RNR; when there is a
	 * WQE it is taken */
	qp_init(b, 5, 3, 4, 6, 7);
	for (int i = 0; i < 2; i++) {
		fill(b, 1500);
		send_reth(b, &refs[5], 6, 7 + 2 * i, rem(5, 0), RKEY, 1500, payload, 1024, false);
		send_reth(b, &refs[5], 9, 8 + 2 * i, 0, 0, 0, payload + 1024, 476, true);
		send_reth(b, &refs[5], 9, 9 + 2 * i, 0, 0, 0, payload + 1024, 476,
			  true); /* behind it: silent */
		bench_drain(b, 2000);
		assert_int_equal(b->acks[b->n_acks - 1].syndrome, 0x20 | 5);
		post(b, &refs[5], NULL, 0);
		ring(b, &refs[5]);
		bench_drain(b, 2000);
		send_reth(b, &refs[5], 9, 8 + 2 * i, 0, 0, 0, payload + 1024, 476, true);
		bench_drain(b, 2000);
		check(b);
	}
	bench_free(b);
}

/* READs: PSNs, the answer's fields, order among ACKs. */
static void test_reads(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int q = 0; q < 5; q++)
		qp_init(b, q, q + 1, 4, 6, q == 2 ? 0xfffff0 : rnd(b));
	for (int i = 0; i < 40; i++) {
		for (int q = 0; q < 5; q++) {
			struct ref *r = &refs[q];
			size_t mtu = 128u << r->cfg.mtu;
			uint32_t sizes[] = { 0,	      1,       mtu - 1,	 mtu,
					     mtu + 1, 5 * mtu, 1u << 30, rnd(b) & 0xfffff };

			if (rnd(b) % 3 == 0) {
				fill(b, 64);
				send_write(b, r, rem(q, 8 * i), RKEY, 64, false, 1);
			}
			uint32_t len = sizes[rnd(b) % 8];

			/* without a byte neither key nor address matter; a range may end with the
			 * region */
			if (len)
				send_reth(b, r, 0x0c, r->epsn,
					  HOST_VA + (rnd(b) % 3 ? rnd(b) & 0x3fffffff
								: (1u << 31) - len),
					  RKEY_BIG, len, NULL, 0, rnd(b) % 2);
			else
				send_reth(b, r, 0x0c, r->epsn, (uint64_t)rnd(b) << 32 | rnd(b),
					  rnd(b), 0, NULL, 0, rnd(b) % 2);
		}
		if (i % 5 == 4)
			bench_drain(b, 5000);
	}
	bench_drain(b, 5000);
	check(b);
	bench_free(b);
}

/* A READ is refused before anything behind it is done: neither a SEND nor a WRITE of its QP, and no
 * READ, though they come with it; other QPs' are. */
static void test_read_checks(void **state)
{
	struct bench *b = start();
	static const struct {
		const char *name;
		uint32_t key;
		int64_t off;
		uint32_t len;
		int fail_pt;
		uint8_t nak; /* 0: allowed */
	} t[] = {
		{ "good", RKEY, 0, 64, -1, 0 },
		{ "good, up to the region's end", RKEY, 0x80000 - 4096, 4096, -1, 0 },
		{ "good, long, all of the region", RKEY, 0, 0x80000, -1, 0 },
		{ "no such key", 0x77, 0, 64, -1, 0x62 },
		{ "no such key, long", 0x77, 0, 100000, -1, 0x62 },
		{ "other PD", RKEY_PD, 0, 64, -1, 0x62 },
		{ "no right of the region", RKEY_WO, 0, 1, -1, 0x62 },
		{ "no right of the region, long", RKEY_WO, 0, 4097, -1, 0x62 },
		{ "one byte behind the end", RKEY, 0x80000 - 63, 64, -1, 0x62 },
		{ "one byte behind the end, 4096", RKEY, 0x80000 - 4095, 4096, -1, 0x62 },
		{ "one byte behind the end, 4097", RKEY, 0x80000 - 4096, 4097, -1, 0x62 },
		{ "one byte behind the end, long", RKEY, 1, 0x80000, -1, 0x62 },
		{ "one byte in front", RKEY, -1, 64, -1, 0x62 },
		{ "one byte in front, long", RKEY, -1, 100000, -1, 0x62 },
		{ "page table not readable", RKEY, 0, 64, 0, 0x63 },
		{ "page table not readable, long, first", RKEY, 0, 5000, 0, 0x63 },
		{ "page table not readable, long, last", RKEY, 0, 5000, 1, 0x63 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (int speed = 0; speed < 3; speed++) {
			struct ref *r = &refs[0];
			unsigned int acks = 0;
			uint32_t n = (t[i].len + 1023) / 1024;

			next_va = HOST_VA + DATA_OFF;
			bench_settings(b, speed == 1 ? 50 : 100, 0, speed == 2 ? 200 : 4, 60);
			for (int q = 0; q < 2; q++) {
				qp_init(b, q, 3, 4, 6, 0xfffff0);
				for (int k = 0; k < 3; k++)
					post(b, &refs[q], &(struct sge){ take(b, 64, 1), 64, LKEY },
					     1);
				ring(b, &refs[q]);
			}
			bench_drain(b, 1000);
			b->fail_pt = t[i].fail_pt;
			if (t[i].nak == 0x63)
				r->err = true; /* the reference knows nothing of it */
			send_reth(b, r, 0x0c, 0xfffff0, rem(0, 0) + t[i].off, t[i].key, t[i].len,
				  NULL, 0, false);
			fill(b, 64);
			send_packet(b, r, 4, 0xfffff0 + n, payload, 64, true, false);
			send_reth(b, r, 0x0a, 0xfffff1 + n, rem(0, 0), RKEY, 64, payload, 64, true);
			send_reth(b, r, 0x0c, 0xfffff2 + n, rem(0, 0), RKEY, 64, NULL, 0, false);
			send_atomic(b, r, 0x14, 0xfffff3 + n, rem(0, 0), RKEY, 1, 0);
			send_packet(b, &refs[1], 4, 0xfffff0, payload, 64, true, false);
			send_reth(b, &refs[1], 0x0c, 0xfffff1, rem(1, 0), RKEY, 64, NULL, 0, false);
			bench_drain(b, 5000);
			for (unsigned int k = 0; k < b->n_acks; k++)
				acks += b->acks[k].qpn == r->cfg.qpn;
			if (acks != (t[i].nak ? 1 : 5))
				fail_msg("READ, %s: %u answers", t[i].name, acks);
			if (t[i].nak == 0x63) {
				r->err = false;
				ref_nak(r, 0x63, false, 0, URDMA_EV_QP_FATAL);
			}
			check(b);
			end_life(b, 0);
			r->n_atomic = 0;
		}
	}
	bench_free(b);
}

/*
 * FLUSHes and ATOMIC WRITEs of one QP and of several, with other requests in between that touch the
 * same bytes.
 */
static void test_mpe(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 4; q++)
		qp_init(b, q, 3, 6, 6, 0xfffffa + q);
	for (int round = 0; round < 20; round++) {
		bench_settings(b, round % 3 ? 100 : 50, 0, rnd_in(b, 1, 10), rnd_in(b, 10, 100));
		for (int i = 0; i < 60; i++) {
			struct ref *r = &refs[rnd(b) % 4];
			uint64_t va = rem(r - refs, 8 * (rnd(b) % 3));

			fill(b, 64);
			switch (rnd(b) % 6) {
			case 0:
				send_write(b, r, va, RKEY, rnd_in(b, 0, 40), false, 1);
				break;
			case 1:
				send_reth(b, r, 0x0c, r->epsn, va, RKEY, 100, NULL, 0, false);
				break;
			case 2:
				send_atomic(b, r, 0x14, r->epsn, va, RKEY, rnd(b), 0);
				break;
			case 3:
				send_reth(b, r, 0x1d, r->epsn, va, RKEY, 8, payload, 8, true);
				break;
			default:
				send_flush(b, r, r->epsn, va + rnd(b) % 8, RKEY, rnd_in(b, 0, 9000),
					   URDMA_FLUSH_GLOBAL, rnd(b) % 2);
			}
		}
		bench_drain(b, 50000);
		check(b);
		for (int q = 0; q < 4; q++)
			refs[q].n_atomic = 0;
	}
	bench_free(b);
}

/* The read of a FLUSH comes when all of its QP before it is written, and the answer behind it. */
static void test_mpe_order(void **state)
{
	static const struct {
		const char *name;
		uint32_t off, len;
		unsigned int level;
		uint64_t at; /* what is read: of the region */
	} t[] = {
		{ "one byte", 5, 1, URDMA_FLUSH_RANGE, 0 },
		{ "two bytes over the end of 8", 7, 2, URDMA_FLUSH_RANGE, 8 },
		{ "a page", 0, 4096, URDMA_FLUSH_RANGE, 4088 },
		{ "more", 100, 20000, URDMA_FLUSH_RANGE, 20096 },
		{ "the region", 0x100000, 0xffffffff, URDMA_FLUSH_MR, 0 },
	};
	struct bench *b = start();
	struct ref *r = &refs[0];

	(void)state;
	qp_init(b, 0, 3, 4, 6, 0xfffff0);
	bench_settings(b, 100, 0, 4, 60);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		unsigned int before = b->n_writes;

		fill(b, 8192);
		b->atm_addr = 0;
		b->hold_wr = true;
		send_write(b, r, rem(0, 0), RKEY, 8192, false, 0);
		send_reth(b, r, 0x1d, r->epsn, rem(0, 8), RKEY, 8, payload, 8, true);
		send_flush(b, r, r->epsn, rem(0, t[i].off), RKEY, t[i].len, URDMA_FLUSH_GLOBAL,
			   t[i].level);
		bench_run(b, 400);
		if (b->atm_addr)
			fail_msg("%s: read in front of the writes", t[i].name);
		b->hold_wr = false;
		b->hold_atm = true;
		bench_run(b, 400);
		/* the ACK of the WRITE, the answer of the ATOMIC WRITE */
		assert_int_equal(b->n_acks, 2);
		b->hold_atm = false;
		bench_drain(b, 5000);
		assert_int_equal(b->atm_writes - before, 9);
		if (b->atm_addr != bench_bus(rem(0, t[i].at) - HOST_VA))
			fail_msg("%s: read of %llx", t[i].name, (unsigned long long)b->atm_addr);
		check(b);
		bench_clear_logs(b);
	}

	/* behind ATOMICs of the QP: their writes come first, and no others need to */
	for (int same = 0; same < 2; same++) {
		unsigned int before = b->n_writes;

		qp_init(b, 1, 3, 4, 6, 0xfffff0);
		for (int k = 0; k < 4; k++)
			send_atomic(b, r, 0x14, r->epsn, rem(0, 8 * k), RKEY, 1, 0);
		send_flush(b, same ? r : &refs[1], same ? r->epsn : refs[1].epsn, rem(0, 64), RKEY,
			   64, URDMA_FLUSH_GLOBAL, URDMA_FLUSH_RANGE);
		bench_drain(b, 5000);
		if (same)
			assert_int_equal(b->atm_writes - before, 4);
		else
			assert_true(b->atm_writes - before < 4);
		check(b);
		bench_clear_logs(b);
		r->n_atomic = 0;
	}

	/* a range of 0 bytes, and one that comes again, read nothing */
	b->atm_addr = 0;
	send_flush(b, r, r->epsn, rem(0, 0), 0x77, 0, URDMA_FLUSH_GLOBAL, URDMA_FLUSH_RANGE);
	send_flush(b, r, r->epsn - 1, rem(0, 0), RKEY, 64, URDMA_FLUSH_GLOBAL, URDMA_FLUSH_RANGE);
	fill(b, 8);
	send_reth(b, r, 0x1d, r->epsn - 1, rem(0, 0), RKEY, 8, payload, 8, true);
	bench_drain(b, 5000);
	assert_int_equal(b->atm_addr, 0);
	check(b);
	bench_clear_logs(b);

	/* a read that fails: NAK, and what is behind has no effect */
	b->fail_atm = 0;
	r->err = true; /* the reference knows nothing of it */
	send_flush(b, r, r->epsn, rem(0, 0), RKEY, 64, URDMA_FLUSH_GLOBAL, URDMA_FLUSH_RANGE);
	send_reth(b, r, 0x1d, r->epsn + 1, rem(0, 0), RKEY, 8, payload, 8, true);
	bench_drain(b, 5000);
	r->err = false;
	ref_nak(r, 0x63, false, 0, URDMA_EV_QP_FATAL);
	check(b);
	bench_free(b);
}

/* FLUSHes that are refused, each alone and behind a WRITE. */
static void test_mpe_refused(void **state)
{
	static const struct {
		const char *name;
		unsigned int acc, max_dest;
		uint32_t key;
		uint64_t off;
		uint32_t len;
		unsigned int type, level;
		uint8_t nak;
	} t[] = {
		{ "no right of the QP", 7, 16, RKEY, 0, 64, 1, 0, 0x61 },
		{ "no right of the region", 15, 16, RKEY_RO, 0, 64, 1, 0, 0x62 },
		{ "no right of the region, all of it", 15, 16, RKEY_RO, 0, 64, 1, 1, 0x62 },
		{ "no such key", 15, 16, 0x77, 0, 64, 1, 0, 0x62 },
		{ "no such key, all of it", 15, 16, 0x77, 0, 64, 1, 1, 0x62 },
		{ "another PD", 15, 16, RKEY_PD, 0, 64, 1, 0, 0x62 },
		{ "another PD, all of it", 15, 16, RKEY_PD, 0, 64, 1, 1, 0x62 },
		{ "begins in front", 15, 16, RKEY, -1, 64, 1, 0, 0x62 },
		{ "ends behind", 15, 16, RKEY, HOST_SIZE - REM_OFF - 63, 64, 1, 0, 0x62 },
		{ "one byte behind", 15, 16, RKEY, HOST_SIZE - REM_OFF, 1, 1, 0, 0x62 },
		{ "2 GB", 15, 16, RKEY, 0, 1u << 31, 1, 0, 0x62 },
		{ "to persistence", 15, 16, RKEY, 0, 64, 2, 0, 0x62 },
		{ "to both", 15, 16, RKEY, 0, 64, 3, 1, 0x62 },
		{ "to persistence, no right of the QP", 7, 16, RKEY, 0, 64, 2, 0, 0x61 },
		{ "more than 2 GB", 15, 16, RKEY, 0, (1u << 31) + 1, 1, 0, 0x61 },
		{ "to nothing", 15, 16, RKEY, 0, 64, 0, 0, 0x61 },
		{ "reserved SEL", 15, 16, RKEY, 0, 64, 1, 2, 0x61 },
		{ "reserved SEL 3", 15, 16, RKEY, 0, 64, 1, 3, 0x61 },
		{ "none allowed", 15, 0, RKEY, 0, 64, 1, 0, 0x61 },
	};
	struct bench *b = start();
	struct ref *r = &refs[0];

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (int write = 0; write < 2; write++) {
			qp_init(b, 0, 3, 4, 6, 100);
			r->cfg.acc = t[i].acc;
			r->cfg.max_dest = t[i].max_dest;
			bench_cfg(b, &r->cfg);
			fill(b, 64);
			b->atm_addr = 0;
			if (write)
				send_write(b, r, rem(0, 0), RKEY, 64, false, 1);
			send_flush(b, r, r->epsn, HOST_VA + REM_OFF + t[i].off, t[i].key, t[i].len,
				   t[i].type, t[i].level);
			send_write(b, r, rem(0, 0), RKEY, 64, false, 1);
			bench_drain(b, 3000);
			if (b->n_acks != 1u + write || b->acks[write].syndrome != t[i].nak ||
			    b->atm_addr)
				fail_msg("FLUSH, %s: %u answers, syndrome %x", t[i].name, b->n_acks,
					 b->acks[write].syndrome);
			check(b);
			end_life(b, 0);
		}
	}
	bench_free(b);
}

/* ATOMICs of one QP and of several, with other requests in between that touch the same bytes. */
static void test_atomics(void **state)
{
	struct bench *b = start();
	struct ref *r = &refs[0];

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 4; q++)
		qp_init(b, q, 3, 6, 6, 0xfffffa + q);
	for (int round = 0; round < 20; round++) {
		bench_settings(b, round % 3 ? 100 : 50, 0, rnd_in(b, 1, 10), rnd_in(b, 10, 100));
		for (int q = 0; q < 4; q++) {
			for (int i = 0; i < 3; i++)
				post(b, &refs[q], &(struct sge){ rem(q, 8 * i), 64, RKEY }, 1);
			ring(b, &refs[q]);
		}
		bench_drain(b, 2000);
		for (int i = 0; i < 40; i++) {
			int q = rnd(b) % 4;
			uint64_t va = rem(q, 8 * (rnd(b) % 3)), v;

			r = &refs[q];
			memcpy(&v, b->shadow + (va - HOST_VA), 8);
			fill(b, 64);
			switch (rnd(b) % 6) {
			case 0:
				send_write(b, r, va, RKEY, rnd_in(b, 0, 40), false, 1);
				break;
			case 1:
				if (r->ci != r->pi)
					send_message(b, r, rnd_in(b, 0, 40), false, false, 1);
				break;
			case 2:
				send_reth(b, r, 0x0c, r->epsn, va, RKEY, 100, NULL, 0, false);
				break;
			case 3:
				send_atomic(b, r, 0x14, r->epsn, va, RKEY, (uint64_t)rnd(b) << 20,
					    0);
				break;
			default:
				send_atomic(b, r, 0x13, r->epsn, va, RKEY, rnd(b),
					    rnd(b) % 3 ? v : v + 1);
			}
		}
		bench_drain(b, 50000);
		check(b);
		for (int q = 0; q < 4; q++)
			refs[q].n_atomic = 0;
	}

	/* the operand cannot be read: NAK, the QP ends, and what is behind has no effect */
	bench_settings(b, 100, 0, 4, 60);
	r = &refs[0];
	b->fail_atm = 0;
	{
		struct ref before;

		memcpy(&before, r, sizeof(before));
		ref_ack(r, r->epsn, 0x63, r->msn + 1);
		for (int i = 0; i < 8; i++) {
			struct packet k = r->hdr;
			static struct frame f;

			k.opcode = i ? 0x0a : 0x14;
			k.psn = (r->epsn + i) & 0xffffff;
			k.payload = payload;
			k.len = i ? 16 : 0;
			k.ext_len = opc_rules[k.opcode].ext;
			put64(k.ext, rem(0, 0));
			put32(k.ext + 8, RKEY);
			put32(k.ext + 12, 16);
			packet_build(&k, &f);
			bench_frame(b, &f, false);
		}
		bench_drain(b, 5000);
		assert_int_equal(b->n_errs[0], 1);
		assert_int_equal(b->errs[0][0].qpn, r->cfg.qpn);
		assert_false(b->errs[0][0].only);
		ref_error(r, b->errs[0][0].event);
		/* the MSN of this answer is the unit's matter */
		assert_int_equal(b->n_acks, 1);
		r->acks[0].msn = b->acks[0].msn;
		check(b);
		end_life(b, 0);
	}

	/* while a unit works on one, an operation of the QP waits, others go on; so does a fence */
	b->hold_atm = true;
	r = &refs[1];
	fill(b, 64);
	send_atomic(b, r, 0x14, r->epsn, rem(1, 0), RKEY, 5, 0);
	send_write(b, &refs[2], rem(2, 0), RKEY, 64, false, 1);
	bench_run(b, 300);
	assert_int_equal(b->n_acks, 1);
	send_write(b, r, rem(1, 0), RKEY, 64, false, 1);
	bench_run(b, 300);
	assert_int_equal(b->n_acks, 1);
	b->in.fence_req = true;
	bench_run(b, 300);
	assert_false(b->out.fence_done);
	b->hold_atm = false;
	for (int i = 0; i < 1000 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	assert_int_equal(b->n_acks, 3);
	b->in.fence_req = false;
	bench_drain(b, 1000);
	check(b);
	bench_free(b);
}

/* SEND with invalidate: what came before with the key is written, what comes behind is refused. */
static void test_invalidate(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int round = 0; round < 12; round++) {
		bench_settings(b, round & 1 ? 60 : 100, 0, rnd_in(b, 2, 15), 40);
		memset(ref_invalid, 0, sizeof(ref_invalid));
		memset(b->mr_invalid, 0, sizeof(b->mr_invalid));
		for (int q = 0; q < 3; q++) {
			qp_init(b, q, 2, 4, 6, rnd(b));
			for (int i = 0; i < 6; i++)
				post(b, &refs[q], &(struct sge){ take(b, 2000, 64), 2000, LKEY },
				     1);
			ring(b, &refs[q]);
		}
		bench_drain(b, 2000);
		fill(b, 2000);
		/* QP 1 writes through the key that QP 0 makes invalid */
		for (int i = 0; i < 4; i++)
			send_write(b, &refs[1], rem(0, 600 * i), RKEY_INV, 600, false, 1);
		send_write(b, &refs[0], rem(0, 4096), RKEY_INV, 500, false, 1);
		switch (round % 4) {
		case 0: /* no payload */
			send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
			break;
		case 1:
			send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, payload, 300);
			break;
		case 2:
			send_packet(b, &refs[0], 0, refs[0].epsn, payload, 512, false, false);
			send_inv(b, &refs[0], 0x16, refs[0].epsn, RKEY_INV, payload, 300);
			break;
		default: /* longer than its WQE: nothing is made invalid */
			for (int i = 0; i < 3; i++)
				send_packet(b, &refs[0], i ? 1 : 0, refs[0].epsn, payload, 512,
					    false, false);
			send_inv(b, &refs[0], 0x16, refs[0].epsn, RKEY_INV, payload, 512);
		}
		send_write(b, &refs[2], rem(0, 8192), RKEY_INV + 256, 64, false,
			   1); /* another key: out of range */
		if (round & 1)
			send_write(b, &refs[1], rem(0, 0), RKEY_INV, 64, false, 1);
		else
			send_inv(b, &refs[1], 0x17, refs[1].epsn, RKEY_INV, NULL,
				 0); /* once more: refused */
		bench_drain(b, 20000);
		assert_int_equal(b->n_mros, (round % 4 != 3) + !(round & 1));
		assert_int_equal(b->n_invs, round % 4 != 3 || !(round & 1));
		for (int i = 0; i < 16; i++)
			assert_int_equal(b->mr_invalid[i], ref_invalid[i]);
		check(b);
		for (int q = 0; q < 3; q++)
			if (refs[q].err)
				end_life(b, q);
	}
	/* translation takes its time: control goes on, the fence and the packets behind wait */
	qp_init(b, 0, 2, 4, 6, 0);
	qp_init(b, 1, 2, 4, 6, 0);
	memset(ref_invalid, 0, sizeof(ref_invalid));
	memset(b->mr_invalid, 0, sizeof(b->mr_invalid));
	post(b, &refs[0], NULL, 0);
	ring(b, &refs[0]);
	bench_drain(b, 1000);
	b->hold_mro = true;
	send_inv(b, &refs[0], 0x17, 0, RKEY_INV, NULL, 0);
	send_write(b, &refs[1], rem(1, 0), RKEY, 64, false, 1);
	bench_run(b, 300);
	assert_int_equal(b->n_acks, 0);
	b->in.fence_req = true;
	bench_run(b, 100);
	assert_false(b->out.fence_done);
	for (int i = 0; i < 2; i++)
		bench_ctl_wait(b, false, QPC_QUERY, QPN0 + i, 0, 20);
	b->hold_mro = false;
	for (int i = 0; i < 300 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	b->in.fence_req = false;
	bench_drain(b, 1000);
	check(b);
	/* the CQE waits for reads of tx through the key, and with it the CQEs behind and the fence;
	 * what comes behind is done and acknowledged */
	memset(ref_invalid, 0, sizeof(ref_invalid));
	memset(b->mr_invalid, 0, sizeof(b->mr_invalid));
	post(b, &refs[0], NULL, 0);
	ring(b, &refs[0]);
	bench_drain(b, 1000);
	b->hold_inv = true;
	send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
	send_write(b, &refs[1], rem(1, 0), RKEY, 64, false, 1);
	bench_run(b, 300);
	assert_int_equal(b->n_invs, 1);
	assert_int_equal(b->n_acks, 2);
	assert_int_equal(b->n_cqes[0], 0);
	for (int i = 0; i < 2; i++)
		bench_ctl_wait(b, false, QPC_QUERY, QPN0 + i, 0, 20);
	b->in.fence_req = true;
	bench_run(b, 300);
	assert_false(b->out.fence_done);
	b->hold_inv = false;
	for (int i = 0; i < 300 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	assert_int_equal(b->n_cqes[0], 1);
	b->in.fence_req = false;
	bench_drain(b, 1000);
	check(b);
	/* and for ATOMICs that are under way */
	memset(ref_invalid, 0, sizeof(ref_invalid));
	memset(b->mr_invalid, 0, sizeof(b->mr_invalid));
	post(b, &refs[0], NULL, 0);
	ring(b, &refs[0]);
	bench_drain(b, 1000);
	b->hold_atm = true;
	send_atomic(b, &refs[1], 0x14, refs[1].epsn, rem(0, 0), RKEY_INV, 1, 0);
	send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
	bench_run(b, 300);
	assert_int_equal(b->n_invs, 1);
	assert_int_equal(b->n_acks, 1);
	assert_int_equal(b->n_cqes[0], 0);
	b->hold_atm = false;
	bench_drain(b, 1000);
	assert_int_equal(b->n_cqes[0], 1);
	check(b);
	bench_free(b);
}

/* The keys that were made invalid are valid again, for the reference and for translation. */
static void valid_again(struct bench *b)
{
	memset(ref_invalid, 0, sizeof(ref_invalid));
	memset(b->mr_invalid, 0, sizeof(b->mr_invalid));
}

/* n receives without memory on QP 0. */
static void post_empty(struct bench *b, int n)
{
	while (n--)
		post(b, &refs[0], NULL, 0);
	ring(b, &refs[0]);
	bench_drain(b, 1000);
}

/* Pieces behind SENDs with invalidate are translated before these are through. So translation has
 * allowed what placement has to refuse, and must not refuse a key that is registered again. */
static void test_invalidate_ahead(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 4; q++)
		qp_init(b, q, 5, 7, 6, 0);
	fill(b, 8192);
	/* translation takes no operation: the walk goes on behind 32 SENDs with invalidate */
	post_empty(b, 40);
	b->hold_mro = true;
	b->mr_again = true;
	for (int i = 0; i < 40; i++) {
		send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
		memset(ref_invalid, 0, sizeof(ref_invalid));
		send_write(b, &refs[1], rem(1, 64 * i), RKEY, 64, false, 1);
	}
	bench_run(b, 2000);
	assert_int_equal(b->n_pieces, 32);
	assert_int_equal(b->n_acks, 0);
	b->hold_mro = false;
	bench_drain(b, 20000);
	assert_int_equal(b->n_mros, 40);
	assert_int_equal(b->n_cqes[0], 40);
	check(b);
	/* what comes behind with the key is refused, with another key not */
	for (int round = 0; round < 40; round++) {
		valid_again(b);
		post_empty(b, 1);
		b->hold_mro = true;
		send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
		/* the refused one directly behind it, or farther away; of some the page table could
		 * not even be read */
		if (round & 4)
			send_write(b, &refs[2], rem(1, 0), RKEY_INV + 256, 300, false, 1);
		else if (round & 8)
			b->fail_pt = 0;
		if (round % 4 == 0)
			send_write(b, &refs[1], rem(0, 0), RKEY_INV, 64, false, 1);
		if (round % 4 == 1)
			send_atomic(b, &refs[1], 0x14, refs[1].epsn, rem(0, 8), RKEY_INV, 1, 0);
		if (round % 4 == 2)
			send_reth(b, &refs[1], 0x0c, refs[1].epsn, rem(0, 0), RKEY_INV, 64, NULL, 0,
				  true);
		if (round % 4 == 3)
			send_flush(b, &refs[1], refs[1].epsn, rem(0, 0), RKEY_INV, 64, 1,
				   round & 16 ? URDMA_FLUSH_MR : URDMA_FLUSH_RANGE);
		/* of two pages, the last ones that translation has allowed */
		send_write(b, &refs[3], rem(0, 4000), RKEY_INV, 400, false, 1);
		bench_run(b, 300);
		b->hold_mro = false;
		bench_drain(b, 20000);
		assert_true(refs[1].err && refs[3].err && !refs[2].err);
		check(b);
		end_life(b, 1);
		end_life(b, 3);
		qp_init(b, 1, 5, 7, 6, 0);
		qp_init(b, 3, 5, 7, 6, 0);
	}
	/* The key has a new life while pieces wait that were translated before the end of the old
	 * one: one of those is refused, and a later one is not. */
	valid_again(b);
	post_empty(b, 1);
	b->hold_mro = true;
	send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
	for (int i = 0; i < 4; i++)
		send_write(b, &refs[2], rem(1, 4096 * i), RKEY, 4096, false, 1);
	send_write(b, &refs[3], rem(0, 0), RKEY_INV, 64, false, 1);
	bench_run(b, 500);
	b->hold_wr = true;
	b->hold_mro = false;
	bench_run(b, 500);
	assert_int_equal(b->n_cqes[0], 1);
	valid_again(b);
	send_write(b, &refs[1], rem(0, 64), RKEY_INV, 64, false, 1);
	bench_run(b, 500);
	b->hold_wr = false;
	bench_drain(b, 20000);
	assert_true(refs[3].err && !refs[1].err);
	check(b);
	bench_free(b);
}

/* What waits for tx, and how long: only CQEs, and no more than 32 SENDs with invalidate. */
static void test_invalidate_wait(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 4; q++)
		qp_init(b, q, 5, 7, 6, 0);
	b->mr_again = true;
	fill(b, 8192);
	post_empty(b, 40);
	b->hold_inv = true;
	for (int i = 0; i < 34; i++) {
		send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
		memset(ref_invalid, 0, sizeof(ref_invalid));
		send_write(b, &refs[1], rem(1, 64 * i), RKEY, 64, false, 1);
	}
	bench_run(b, 3000);
	assert_int_equal(b->n_invs, 32);
	assert_int_equal(b->n_acks, 64);
	assert_int_equal(b->n_cqes[0], 0);
	b->hold_inv = false;
	bench_drain(b, 20000);
	assert_int_equal(b->n_invs, 34);
	check(b);
	/* SENDs behind them on other QPs: their CQEs are in order, and there is room for 64 */
	post_empty(b, 1);
	for (int i = 0; i < 70; i++)
		post(b, &refs[1], NULL, 0);
	ring(b, &refs[1]);
	bench_drain(b, 1000);
	b->hold_inv = true;
	send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
	for (int i = 0; i < 70; i++)
		send_message(b, &refs[1], 0, false, false, 1);
	bench_run(b, 3000);
	assert_int_equal(b->n_acks, 64);
	assert_int_equal(b->n_cqes[0], 0);
	b->hold_inv = false;
	bench_drain(b, 20000);
	valid_again(b);
	check(b);
	/* ATOMICs that begin later do not prolong it */
	post_empty(b, 1);
	for (int i = 0; i < 200; i++) {
		struct ref *r = &refs[1 + i % 3];

		send_atomic(b, r, 0x14, r->epsn, rem(1, 8 * (i % 3)), RKEY, 1, 0);
		if (i == 20)
			send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
	}
	bench_drain(b, 20000);
	assert_int_equal(b->n_cqes[0], 1);
	assert_true(b->cqe_at[0] + 500 < b->last_wr);
	valid_again(b);
	check(b);
	/* The QP ends while its key is made invalid: no CQE, and the next one waits for its own
	 * answer. */
	post_empty(b, 1);
	b->hold_mro = true;
	send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
	bench_run(b, 300);
	qp_init(b, 0, 5, 7, 6, 0);
	ref_clear(&refs[0]);
	b->hold_mro = false;
	bench_drain(b, 1000);
	assert_int_equal(b->n_invs, 1);
	assert_int_equal(b->n_cqes[0], 0);
	bench_clear_logs(b);
	valid_again(b);
	post_empty(b, 1);
	b->hold_inv = true;
	send_inv(b, &refs[0], 0x17, refs[0].epsn, RKEY_INV, NULL, 0);
	bench_run(b, 500);
	assert_int_equal(b->n_invs, 1);
	assert_int_equal(b->n_cqes[0], 0);
	b->hold_inv = false;
	bench_drain(b, 1000);
	assert_int_equal(b->n_cqes[0], 1);
	check(b);
	bench_free(b);
}

/* Each refusal: its NAK, its status or event, the QP in ERR, other QPs untouched. */
static void test_refused(void **state)
{
	struct bench *b = start();
	static const struct {
		const char *name;
		uint8_t op, len, acc, max_dest;
		uint32_t key;
		uint64_t va;
		uint32_t total;
		bool posted;
		uint8_t nak, status, event;
	} t[] = {
		{ "WRITE, no right of the QP", 0x0a, 64, 6, 16, RKEY, 0, 64, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "WRITE, empty, no right of the QP", 0x0a, 0, 6, 16, RKEY, 0, 0, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "WRITE_IMM, no right of the QP", 0x0b, 64, 6, 16, RKEY, 0, 64, true, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "WRITE, no such key", 0x0a, 64, 7, 16, 0x77, 0, 64, false, 0x62, 0,
		  URDMA_EV_QP_ACCESS_ERR },
		{ "WRITE, other PD", 0x0a, 64, 7, 16, RKEY_PD, 0, 64, false, 0x62, 0,
		  URDMA_EV_QP_ACCESS_ERR },
		{ "WRITE, no right of the region", 0x0a, 64, 7, 16, RKEY_RO, 0, 64, false, 0x62, 0,
		  URDMA_EV_QP_ACCESS_ERR },
		{ "WRITE, out of range", 0x0a, 64, 7, 16, RKEY, 0x80000 - 63, 64, false, 0x62, 0,
		  URDMA_EV_QP_ACCESS_ERR },
		{ "WRITE_IMM, out of range", 0x0b, 64, 7, 16, RKEY, 0x80000 - 63, 64, true, 0x62,
		  URDMA_WC_LOC_ACCESS_ERR, 0 },
		{ "WRITE_IMM, no right of the QP, no receive", 0x0b, 64, 6, 16, RKEY, 0, 64, false,
		  0x61, 0, URDMA_EV_QP_REQ_ERR },
		{ "WRITE_IMM, empty, no right of the QP, no receive", 0x0b, 0, 6, 16, RKEY, 0, 0,
		  false, 0x61, 0, URDMA_EV_QP_REQ_ERR },
		{ "WRITE_IMM, no such key, no receive", 0x0b, 64, 7, 16, 0x77, 0, 64, false, 0x62,
		  0, URDMA_EV_QP_ACCESS_ERR },
		{ "WRITE_IMM, other PD, no receive", 0x0b, 64, 7, 16, RKEY_PD, 0, 64, false, 0x62,
		  0, URDMA_EV_QP_ACCESS_ERR },
		{ "WRITE_IMM, out of range, no receive", 0x0b, 64, 7, 16, RKEY, 0x80000 - 63, 64,
		  false, 0x62, 0, URDMA_EV_QP_ACCESS_ERR },
		{ "WRITE_IMM, not as long as its RETH, no receive", 0x0b, 64, 7, 16, 0x77, 0, 65,
		  false, 0x61, 0, URDMA_EV_QP_REQ_ERR },
		{ "WRITE ONLY shorter than its RETH", 0x0a, 64, 7, 16, RKEY, 0, 65, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "WRITE ONLY longer than its RETH", 0x0a, 64, 7, 16, RKEY, 0, 63, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "WRITE FIRST not full", 0x06, 64, 7, 16, RKEY, 0, 4000, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "WRITE MIDDLE without FIRST", 0x07, 64, 7, 16, RKEY, 0, 0, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "WRITE LAST without FIRST", 0x08, 64, 7, 16, RKEY, 0, 0, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "READ, no right of the QP", 0x0c, 0, 5, 16, RKEY, 0, 64, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "READ, none allowed", 0x0c, 0, 7, 0, RKEY, 0, 64, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "READ, too long", 0x0c, 0, 7, 16, RKEY, 0, 0x40000001, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "READ, far too long", 0x0c, 0, 7, 16, RKEY, 0, 0xffffffff, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "READ with payload", 0x0c, 4, 7, 16, RKEY, 0, 64, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC, no right of the QP", 0x13, 0, 3, 16, RKEY, 0, 0, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC, no right of the region", 0x14, 0, 7, 16, RKEY_RO, 0, 0, false, 0x62, 0,
		  URDMA_EV_QP_ACCESS_ERR },
		{ "ATOMIC, none allowed", 0x14, 0, 7, 0, RKEY, 0, 0, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC, not aligned", 0x13, 0, 7, 16, RKEY, 4, 0, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC, not aligned in memory", 0x13, 0, 7, 16, RKEY_ODD, 8, 0, false, 0x62, 0,
		  URDMA_EV_QP_ACCESS_ERR },
		{ "ATOMIC with payload", 0x13, 8, 7, 16, RKEY, 0, 0, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC WRITE, no right of the QP", 0x1d, 8, 14, 16, RKEY, 0, 8, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC WRITE, no right of the region", 0x1d, 8, 7, 16, RKEY_RO, 0, 8, false,
		  0x62, 0, URDMA_EV_QP_ACCESS_ERR },
		{ "ATOMIC WRITE, out of range", 0x1d, 8, 7, 16, RKEY, 0x80000, 8, false, 0x62, 0,
		  URDMA_EV_QP_ACCESS_ERR },
		{ "ATOMIC WRITE, none allowed", 0x1d, 8, 7, 0, RKEY, 0, 8, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC WRITE, not aligned", 0x1d, 8, 7, 16, RKEY, 4, 8, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC WRITE, not aligned in memory", 0x1d, 8, 7, 16, RKEY_ODD, 8, 8, false,
		  0x62, 0, URDMA_EV_QP_ACCESS_ERR },
		{ "ATOMIC WRITE of 4 bytes", 0x1d, 4, 7, 16, RKEY, 0, 4, false, 0x61, 0,
		  URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC WRITE of 8 bytes, RETH of 16", 0x1d, 8, 7, 16, RKEY, 0, 16, false, 0x61,
		  0, URDMA_EV_QP_REQ_ERR },
		{ "ATOMIC WRITE of 16 bytes, RETH of 8", 0x1d, 16, 7, 16, RKEY, 0, 8, false, 0x61,
		  0, URDMA_EV_QP_REQ_ERR },
		{ "opcode 0x15", 0x15, 0, 7, 16, RKEY, 0, 0, false, 0x61, 0, URDMA_EV_QP_REQ_ERR },
		{ "opcode 0x1f", 0x1f, 0, 7, 16, RKEY, 0, 0, false, 0x61, 0, URDMA_EV_QP_REQ_ERR },
		/* the requester is not told (9.9.6.3, class J) */
		{ "SEND_INV, no such key", 0x17, 16, 7, 16, 0x99, 0, 0, true, 0x1f,
		  URDMA_WC_REM_INV_REQ_ERR, 0 },
		{ "SEND_INV, other PD", 0x17, 16, 7, 16, RKEY_PD, 0, 0, true, 0x1f,
		  URDMA_WC_REM_INV_REQ_ERR, 0 },
	};

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	qp_init(b, 1, 3, 4, 6, 5);
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		/* alone; behind the first packet of a SEND, of a WRITE */
		for (int before = 0; before < 3; before++) {
			struct ref *r = &refs[0];
			uint8_t ext[32];

			if (before && t[i].op == 7 && before == 2)
				continue; /* then it is no error but of length, which has its line
					   */
			qp_init(b, 0, 3, 4, 6, 100);
			r->cfg.acc = t[i].acc;
			r->cfg.max_dest = t[i].max_dest;
			bench_cfg(b, &r->cfg);
			if (t[i].posted || before == 1)
				for (int k = 0; k < 3; k++)
					post(b, r, &(struct sge){ take(b, 4000, 1), 4000, LKEY },
					     1);
			ring(b, r);
			bench_drain(b, 1000);
			fill(b, 1024);
			if (before == 1)
				send_packet(b, r, 0, 100, payload, 1024, false, false);
			if (before == 2)
				send_reth(b, r, 6, 100, rem(0, 0), RKEY, 3000, payload, 1024,
					  false);
			put64(ext, rem(0, t[i].va));
			put32(ext + 8, t[i].key);
			put32(ext + 12, t[i].total);
			memset(ext + 16, 0, 16);
			if (t[i].op == 0x17)
				put32(ext, t[i].key);
			fill(b, 64);
			send_raw(b, r, t[i].op, r->epsn, ext, payload, t[i].len, true, false);
			/* what follows is lost; another QP's WRITE is not. One of 8 bytes may lie
			 * anywhere. */
			send_write(b, &refs[1], rem(1, 0), i % 2 ? RKEY : RKEY_ODD, i % 2 ? 64 : 8,
				   false, 1);
			send_write(b, r, rem(0, 0), RKEY, 64, false, 1);
			bench_drain(b, 3000);
			if (!before &&
			    (b->acks[0].syndrome != t[i].nak || b->n_errs[0] != 1 ||
			     b->errs[0][0].event != t[i].event ||
			     b->n_cqes[0] != (t[i].status != 0) ||
			     (t[i].status && (b->cqes[0][0].w[0] >> 16 & 255) != t[i].status)))
				fail_msg("%s: NAK %x, %u reports, event %u, %u CQEs", t[i].name,
					 b->acks[0].syndrome, b->n_errs[0], b->errs[0][0].event,
					 b->n_cqes[0]);
			check(b);
			if (r->err)
				end_life(b, 0);
		}
	}
	/* a page table that cannot be read is no fault of the peer's */
	for (int k = 0; k < 3; k++) {
		struct ref *r = &refs[0];

		qp_init(b, 0, 3, 4, 6, 100);
		post(b, r, NULL, 0);
		ring(b, r);
		bench_drain(b, 1000);
		b->fail_pt = 0;
		r->err = true; /* the reference knows nothing of it */
		if (k == 2)
			send_atomic(b, r, 0x13, 100, rem(0, 0), RKEY, 0, 0);
		else
			send_write(b, r, rem(0, 0), RKEY, 64, k, 1);
		bench_drain(b, 1000);
		r->err = false;
		ref_nak(r, 0x63, k == 1, URDMA_WC_LOC_QP_OP_ERR, URDMA_EV_QP_FATAL);
		check(b);
		end_life(b, 0);
	}
	/* a WRITE refused in its middle, one whose packets do not sum up */
	for (int k = 0; k < 3; k++) {
		struct ref *r = &refs[0];

		qp_init(b, 0, 3, 4, 6, 0xffffff);
		post(b, r, NULL, 0);
		ring(b, r);
		bench_drain(b, 1000);
		fill(b, 4000);
		send_reth(b, r, 6, r->epsn, rem(0, k ? 0 : 0x80000 - 2048), RKEY, 2500, payload,
			  1024, true);
		send_reth(b, r, 7, r->epsn, 0, 0, 0, payload + 1024, 1024, true);
		if (k == 1)
			send_reth(b, r, 7, r->epsn, 0, 0, 0, payload + 2048, 1024, true);
		send_reth(b, r, 9, r->epsn, 0, 0, 0, payload + 2048, k == 2 ? 453 : 452, true);
		bench_drain(b, 3000);
		assert_int_equal(b->n_errs[0], 1);
		check(b);
		end_life(b, 0);
	}
	bench_free(b);
}

/*
 * P_Keys (volume 1, 10.9.3): both halves take a packet of the QP's partition if one of the two is a
 * full member of it, and of no other; partition 0 is nobody's.
 */
static void test_pkeys(void **state)
{
	static const struct {
		uint16_t qp, packet;
		bool match;
	} t[] = {
		{ 0xffff, 0xffff, true },  { 0xffff, 0x7fff, true },  { 0x7fff, 0xffff, true },
		{ 0x7fff, 0x7fff, false }, { 0x9234, 0x9234, true },  { 0x9234, 0x1234, true },
		{ 0x1234, 0x9234, true },  { 0x1234, 0x1234, false }, { 0xffff, 0xfffe, false },
		{ 0x9234, 0x9235, false }, { 0x9234, 0xd234, false }, { 0x8000, 0x8000, false },
		{ 0x0000, 0x8000, false }, { 0x8000, 0x0000, false }, { 0x0000, 0x0000, false },
	};
	struct bench *b = start();
	struct ref *r = &refs[0];

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		static struct frame f;
		struct packet k;

		qp_init(b, 0, 3, 4, 6, 100);
		r->cfg.pkey = t[i].qp;
		bench_cfg(b, &r->cfg);
		/* an empty WRITE to the responder, an ACK to requester completion */
		for (int ack = 0; ack < 2; ack++) {
			k = r->hdr;
			k.pkey = t[i].packet;
			k.opcode = ack ? 0x11 : 0x0a;
			k.psn = ack ? (100 ^ 0x555) - 1 : 100;
			k.ackreq = !ack;
			k.ext_len = ack ? 4 : 16;
			memset(k.ext, 0, sizeof(k.ext));
			k.ext[0] = ack ? 0x1f : 0;
			bench_clear_logs(b);
			packet_build(&k, &f);
			bench_frame(b, &f, false);
			bench_drain(b, 1000);
			if (b->cnt[URDMA_CNT_RX_NO_QP] != !t[i].match ||
			    (ack ? b->cnt[URDMA_CNT_RX_ACK] : b->n_acks) != t[i].match)
				fail_msg("P_Key %#x of the QP, %#x of %s: %u dropped, %u answers",
					 t[i].qp, t[i].packet, ack ? "an ACK" : "a WRITE",
					 (unsigned int)b->cnt[URDMA_CNT_RX_NO_QP], b->n_acks);
		}
		bench_clear_logs(b);
	}
	bench_free(b);
}

/* Packets that come again, of each kind; none of them changes memory. */
static void test_duplicates(void **state)
{
	struct bench *b = start();
	struct ref *r = &refs[0];
	uint32_t psn = 0xfffff8;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	qp_init(b, 0, 1, 6, 6, psn);
	for (int i = 0; i < 10; i++)
		post(b, r, &(struct sge){ take(b, 1000, 1), 1000, LKEY }, 1);
	ring(b, r);
	bench_drain(b, 1000);
	fill(b, 600);
	/* PSNs from psn: SEND 0..2, WRITE 3..5, READ 6..8, CMP 9, FADD 10, WRITE_IMM 11, SEND_INV
	 * 12 */
	send_message(b, r, 600, true, false, 0);
	send_write(b, r, rem(0, 0), RKEY, 600, false, 0);
	send_reth(b, r, 0x0c, r->epsn, rem(0, 0), RKEY, 600, NULL, 0, false);
	send_atomic(b, r, 0x13, r->epsn, rem(0, 1024), RKEY, 77, 0);
	send_atomic(b, r, 0x14, r->epsn, rem(0, 1024), RKEY, 5, 0);
	send_write(b, r, rem(0, 0), RKEY, 100, true, 0);
	send_inv(b, r, 0x17, r->epsn, RKEY_INV, payload, 10);
	assert_int_equal(r->epsn, (psn + 13) & 0xffffff);
	bench_drain(b, 5000);
	check(b);
	for (int round = 0; round < 3; round++) {
		fill(b, 600); /* other bytes than the first time */
		if (round ==
		    1) { /* with a gap open: duplicates are answered, the gap stays silent */
			send_write(b, r, rem(0, 0), RKEY, 64, false, 0);
			r->epsn++; /* one is lost */
			r->epsn &= 0xffffff;
			send_raw(b, r, 0x15, r->epsn - 1, NULL, NULL, 0, false, false);
			bench_drain(b, 5000);
			b->n_acks = r->n_acks = 0;
			b->cnt[URDMA_CNT_RX_DUP] = r->n_dup = 0;
			r->epsn = (r->epsn - 1) & 0xffffff;
			r->err = false;
			qp_init(b, 0, 1, 6, 6, psn); /* from the start */
			for (int i = 0; i < 10; i++)
				post(b, r, &(struct sge){ take(b, 1000, 1), 1000, LKEY }, 1);
			ring(b, r);
			bench_drain(b, 1000);
			bench_clear_logs(b);
			ref_clear(r);
			send_message(b, r, 600, true, false, 0);
			send_write(b, r, rem(0, 0), RKEY, 600, false, 0);
			send_reth(b, r, 0x0c, r->epsn, rem(0, 0), RKEY, 600, NULL, 0, false);
			send_atomic(b, r, 0x13, r->epsn, rem(0, 1024), RKEY, 77, 0);
			send_atomic(b, r, 0x14, r->epsn, rem(0, 1024), RKEY, 5, 0);
			send_write(b, r, rem(0, 0), RKEY, 100, true, 0);
			send_write(b, r, rem(0, 0), RKEY, 100, true, 0);
			send_write(b, r, rem(0, 0), RKEY, 100, false, 0);
			send_raw(b, r, 4, r->epsn + 3, NULL, payload, 8, true, false);
			send_raw(b, r, 4, r->epsn + 4, NULL, payload, 8, true, false);
			bench_drain(b, 5000);
			check(b);
		}
		for (int i = 0; i < 3; i++)
			send_packet(b, r, i, psn + i, payload + 256 * i, i == 2 ? 88 : 256, i != 1,
				    false);
		send_reth(b, r, 6, psn + 3, rem(0, 0), RKEY, 600, payload, 256, false);
		send_reth(b, r, 8, psn + 5, 0, 0, 0, payload, 88, true);
		send_reth(b, r, 0x0b, psn + 11, rem(0, 0), RKEY, 100, payload, 100, true);
		send_inv(b, r, 0x17, psn + 12, RKEY_INV, payload, 10);
		send_reth(b, r, 0x0a, psn + 12, rem(0, 0), 0x99, 10, payload, 10,
			  true); /* a bad key is not looked at */
		send_raw(b, r, 0x1f, psn, NULL, NULL, 0, true, false); /* nor is the opcode */
		bench_drain(b, 5000);
		assert_int_equal(b->n_mros, 0);
		check(b);
		/* READ: all of it, its end, its middle; too long by one packet, no right, too long
		 * at all */
		send_reth(b, r, 0x0c, psn + 6, rem(0, 0), RKEY, 600, NULL, 0, false);
		send_reth(b, r, 0x0c, psn + 8, rem(0, 512), RKEY, 88, NULL, 0, false);
		send_reth(b, r, 0x0c, psn + 7, rem(0, 256), RKEY, 256, NULL, 0, false);
		send_reth(b, r, 0x0c, psn + 12, rem(0, 0), RKEY, 0, NULL, 0, false);
		send_reth(b, r, 0x0c, r->epsn - 1, rem(0, 0), RKEY, 257, NULL, 0, false);
		send_reth(b, r, 0x0c, r->epsn - 1, rem(0, 0), RKEY, 256, NULL, 0, false);
		send_reth(b, r, 0x0c, psn + 6, rem(0, 0), RKEY, 0x80000000, NULL, 0, false);
		/* its key is tx's matter, as it makes the answer */
		send_reth(b, r, 0x0c, psn + 6, rem(0, 0), 0x99, 600, NULL, 0, false);
		/* ATOMIC: the result of the first time; none at a PSN that had no ATOMIC */
		send_atomic(b, r, 0x13, psn + 9, rem(0, 1024), RKEY, 77, 0);
		send_atomic(b, r, 0x14, psn + 10, rem(0, 1024), RKEY, 5, 0);
		send_atomic(b, r, 0x14, psn + 11, rem(0, 1024), RKEY, 5, 0);
		bench_drain(b, 5000);
		check(b);
	}
	bench_free(b);
}

/* COMM_EST: once, for a good packet, while in RTR. */
static void test_comm_est(void **state)
{
	struct bench *b = start();
	struct ref *r = &refs[0];

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int kind = 0; kind < 6; kind++) {
		qp_init(b, 0, 3, 4, 6, 50);
		r->cfg.state = kind == 5 ? URDMA_QPS_RTS : URDMA_QPS_RTR;
		bench_cfg(b, &r->cfg);
		fill(b, 64);
		/* ahead, behind, RNR: none of them establishes */
		send_packet(b, r, 4, 51, payload, 64, true, false);
		send_packet(b, r, 4, 49, payload, 64, true, false);
		send_packet(b, r, 4, 50, payload, 64, true, false);
		bench_drain(b, 2000);
		assert_int_equal(b->n_errs[0], 0);
		post(b, r, &(struct sge){ take(b, 64, 1), 64, LKEY }, 1);
		ring(b, r);
		bench_drain(b, 2000);
		for (int i = 0; i < 2; i++) {
			switch (kind) {
			case 0:
				send_message(b, r, i ? 0 : 64, false, false, 1);
				break;
			case 1:
				send_write(b, r, rem(0, 0), RKEY, 64, false, 1);
				break;
			case 2:
				send_reth(b, r, 0x0c, r->epsn, rem(0, 0), RKEY, 64, NULL, 0, false);
				break;
			case 3:
				send_atomic(b, r, 0x14, r->epsn, rem(0, 0), RKEY, 64, 0);
				break;
			default:
				send_write(b, r, rem(0, 0), RKEY, 0, false, 1);
			}
			if (kind == 0 && !i) {
				post(b, r, NULL, 0);
				ring(b, r);
			}
			bench_drain(b, 2000);
		}
		assert_int_equal(b->n_errs[0], kind != 5);
		check(b);
	}
	bench_free(b);
}

/* sync: done when what was translated before is written, whatever comes in meanwhile. */
static void test_sync(void **state)
{
	struct bench *b = start();
	unsigned int n;

	(void)state;
	qp_init(b, 0, 5, 4, 6, 0);
	qp_init(b, 1, 5, 4, 6, 0);
	b->in.sync_req = true;
	for (int i = 0; i < 10 && !b->out.sync_done; i++)
		bench_cycle(b);
	assert_true(b->out.sync_done);
	b->in.sync_req = false;
	bench_run(b, 2);
	assert_false(b->out.sync_done);
	for (int k = 0; k < 3; k++) {
		b->hold_wr = k != 1;
		b->hold_atm = k == 1;
		for (int i = 0; i < 4; i++) {
			fill(b, 1000);
			send_write(b, &refs[0], rem(0, 1000 * i), RKEY, 1000, false, 1);
		}
		send_atomic(b, &refs[1], 0x14, refs[1].epsn, rem(1, 0), RKEY, 1, 0);
		bench_run(b, 400);
		b->in.sync_req = true;
		bench_run(b, 300);
		assert_false(b->out.sync_done);
		/* more of it, without end */
		b->hold_wr = b->hold_atm = false;
		for (n = 0; n < 1000 && !b->out.sync_done; n++) {
			if (n % 16 == 0) {
				send_write(b, &refs[0], rem(0, 0), RKEY, 64, false, 1);
				send_atomic(b, &refs[1], 0x14, refs[1].epsn, rem(1, 0), RKEY, 1, 0);
				send_reth(b, &refs[0], 0x0c, refs[0].epsn, rem(0, 0), RKEY, 5000,
					  NULL, 0, false);
			}
			bench_cycle(b);
		}
		if (!b->out.sync_done)
			fail_msg("sync waits for work that came behind it");
		b->in.sync_req = false;
		bench_drain(b, 10000);
		check(b);
		refs[1].n_atomic = 0;
	}
	/* refused pieces count as well, and those that only check a READ */
	for (int k = 0; k < 2; k++) {
		if (k)
			send_reth(b, &refs[0], 0x0c, refs[0].epsn, rem(0, 0), 0x99, 5000, NULL, 0,
				  false);
		else
			send_write(b, &refs[0], rem(0, 0), 0x99, 64, false, 1);
		for (int i = 0; i < 5; i++) {
			send_write(b, &refs[1], rem(1, 0), RKEY, 64, false, 1);
			send_reth(b, &refs[1], 0x0c, refs[1].epsn, rem(1, 0), RKEY, 5000 * (i & 1),
				  NULL, 0, false);
		}
		bench_run(b, 40);
		b->in.sync_req = true;
		for (n = 0; n < 500 && !b->out.sync_done; n++)
			bench_cycle(b);
		assert_true(b->out.sync_done);
		b->in.sync_req = false;
		bench_drain(b, 1000);
		check(b);
		end_life(b, 0);
		qp_init(b, 0, 5, 4, 6, 0);
	}
	bench_free(b);
}

/* ---- READ responses and ATOMIC acknowledges
 * ----------------------------------------------------------- */

static uint16_t sq_pi[QPS];

static uint8_t *sqe_at(struct bench *b, struct ref *r, uint16_t idx)
{
	return b->shadow + (r->cfg.sq_addr - HOST_BUS) +
	       ((size_t)(idx & ((1u << r->cfg.sq_log_entries) - 1)) << r->cfg.sq_log_stride);
}

/* Post a READ or ATOMIC and let tx say that it is sent: its first PSN is q->next. */
static uint32_t post_read(struct bench *b, struct req *q, const struct sge *s, unsigned int num,
			  uint32_t len, bool atomic)
{
	struct ref *r = &refs[q - reqs];
	uint32_t mtu = 128u << r->cfg.mtu, psn = q->next,
		 n = len && !atomic ? (len + mtu - 1) / mtu : 1;
	uint8_t w[512] = { atomic ? URDMA_WR_ATOMIC_FA : URDMA_WR_READ, 1, num };
	unsigned int most = ((1u << r->cfg.sq_log_stride) - 32) / 16;
	struct rx_sent m = { .qpn = q->qpn,
			     .wqe = q->tail,
			     .psn = (psn + n - 1) & 0xffffff,
			     .opcode = w[0],
			     .signaled = 1,
			     .len = len };

	for (unsigned int i = 0; i < num && i < most; i++) {
		memcpy(w + 32 + 16 * i, &s[i].va, 8);
		memcpy(w + 40 + 16 * i, &s[i].len, 4);
		memcpy(w + 44 + 16 * i, &s[i].key, 4);
	}
	bench_put(b, HOST_VA + (sqe_at(b, r, q->tail) - b->shadow), w, 1u << r->cfg.sq_log_stride);
	q->tail++;
	q->next = (psn + n) & 0xffffff;
	bench_sent(b, &m);
	return psn;
}

static void send_rsp(struct bench *b, int i, uint8_t opcode, uint32_t psn, const uint8_t *p,
		     size_t len)
{
	uint8_t ext[12] = { 0x1f, 0, 0, 1 };

	if (opcode == 0x12) {
		memcpy(ext + 4, p, 8);
		send_raw(b, &refs[i], opcode, psn, ext, NULL, 0, false, false);
	} else {
		send_raw(b, &refs[i], opcode, psn, ext, p, len, false, false);
	}
}

/* What the scatter list is to hold then. */
static void ref_scatter(struct bench *b, const struct sge *s, unsigned int num, const uint8_t *p,
			size_t len)
{
	for (unsigned int i = 0; i < num && len; i++) {
		size_t n = s[i].len < len ? s[i].len : len;

		memcpy(b->shadow + (s[i].va - HOST_VA), p, n);
		p += n;
		len -= n;
	}
}

static void read_cqe(struct bench *b, struct req *q, uint8_t status)
{
	uint16_t wqe = q->tail - 1;
	const struct bench_cqe *c = &b->cqes[1][0];

	if (b->n_cqes[1] != 1 || (c->w[0] >> 16 & 255) != status ||
	    (uint16_t)(c->w[0] >> 32) != wqe)
		fail_msg("cycle %llu seed %u: QP %u: %u send CQEs, status %u, WQE %u; expected 1, "
			 "%u, %u",
			 (unsigned long long)b->cycle, seed, q->qpn, b->n_cqes[1],
			 (unsigned int)(c->w[0] >> 16 & 255), (unsigned int)(c->w[0] >> 32 & 65535),
			 status, wqe);
}

static void test_responses(void **state)
{
	struct bench *b = start();
	static uint8_t data[70000];

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	memset(sq_pi, 0, sizeof(sq_pi));
	for (int round = 0; round < 12; round++) {
		/* receives of the QPs' own, or of one SRQ */
		struct ref_srq *srq = round % 2 ? srq_open(b, 0, 6, 6) : NULL;

		bench_settings(b, round % 3 ? 60 : 100, round % 4 * 10, 4, 60);
		for (int i = 0; i < 4; i++) {
			struct req *q = &reqs[i];
			size_t mtu = 128u << (i + 2), len, off = 0;
			struct sge s[32] = { 0 };
			unsigned int num, most;
			uint32_t psn;
			bool atomic = round == 3 || round == 7;

			qp_init(b, i, i + 2, 4, 6, 0);
			bench_ctl_wait(b, true, QPC_RESET, QPN0 + i, 0, 200);
			bench_ctl_wait(b, true, QPC_SQ_PSN, QPN0 + i, 0xfffffe, 200);
			memset(q, 0, sizeof(*q));
			q->qpn = QPN0 + i;
			q->next = 0xfffffe;
			for (int k = 0; k < 3 && !srq; k++)
				post(b, &refs[i], &(struct sge){ take(b, 4096, 1), 4096, LKEY }, 1);
			if (srq) {
				srq_attach(b, &refs[i], srq);
				srq_receives(b, srq, 3, 4096);
			} else {
				ring(b, &refs[i]);
			}
			bench_drain(b, 1000);
			len = atomic ? 8
				     : (size_t[]){ 0,	    1,		 mtu,	mtu + 1,
						   4 * mtu, 5 * mtu - 3, 20000, 60000 }[rnd(b) % 8];
			most = atomic ? 1 : ((1u << refs[i].cfg.sq_log_stride) - 32) / 16;
			num = shape_sges(b, atomic ? 1 : rnd(b) % 5, len, s, most);
			/* no byte more than the message has; what holds none may stand behind */
			if (num == 1)
				s[0].len = len;
			if (!atomic && num < most && rnd(b) % 4 == 0)
				num = rnd_in(b, num + 1, most);
			psn = post_read(b, q, s, num, len, atomic);
			bench_drain(b, 1000);
			fill(b, len);
			memcpy(data, payload, len);
			if (atomic) {
				uint8_t swapped[8];

				for (int k = 0; k < 8; k++)
					swapped[k] = data[7 - k];
				send_rsp(b, i, 0x12, psn, data, 8);
				ref_scatter(b, s, num, swapped, 8);
			} else {
				ref_scatter(b, s, num, data, len);
				do {
					size_t part = len - off < mtu ? len - off : mtu;
					bool last = off + part == len;

					send_rsp(b, i,
						 off	? (last ? 0x0f : 0x0e)
						 : last ? 0x10
							: 0x0d,
						 psn++, data + off, part);
					off += part;
					/* requests of the peer among them */
					if (rnd(b) % 4 == 0) {
						fill(b, 700);
						if (rnd(b) % 2 && ref_posted(&refs[i]))
							send_message(b, &refs[i], rnd(b) % mtu,
								     false, false, 1);
						else
							send_write(b, &refs[i], rem(i, 0), RKEY,
								   rnd(b) % 700, false, 1);
					}
					bench_run(b, 100);
				} while (off < len);
			}
			bench_drain(b, 20000);
			read_cqe(b, q, 0);
			check(b);
		}
		if (srq)
			srq_close(b, srq);
	}
	/* loss: a response missing, one twice; then anew from the missing one, in the middle of an
	 * element */
	bench_settings(b, 100, 0, 4, 60);
	for (int k = 0; k < 4; k++) {
		struct req *q = &reqs[0];
		struct sge s[3];
		uint32_t psn;
		unsigned int lost = 1 + k;

		qp_init(b, 0, 3, 4, 6, 0);
		refs[0].cfg.sq_log_stride = 7;
		bench_cfg(b, &refs[0].cfg);
		bench_ctl_wait(b, true, QPC_RESET, QPN0, 0, 200);
		bench_ctl_wait(b, true, QPC_SQ_PSN, QPN0, 0xfffffd, 200);
		memset(q, 0, sizeof(*q));
		q->qpn = QPN0;
		q->next = 0xfffffd;
		for (int i = 0; i < 3; i++)
			s[i] = (struct sge){ take(b, 3000, 64),
					     (unsigned int[]){ 1500, 700, 3900 }[i], LKEY };
		psn = post_read(b, q, s, 2 + (k < 3), 2200 + (k < 3) * 3900, false);
		bench_drain(b, 1000);
		fill(b, 6100);
		ref_scatter(b, s, 3, payload, k < 3 ? 6100 : 2200);
		if (k == 3)
			lost = 1;
		send_rsp(b, 0, 0x0d, psn, payload, 1024);
		send_rsp(b, 0, 0x0d, psn, payload + 100, 1024); /* other bytes: not to be seen */
		for (unsigned int i = 1; i < lost; i++)
			send_rsp(b, 0, 0x0e, psn + i, payload + 1024 * i, 1024);
		send_rsp(b, 0, 0x0e, psn + lost + 1, payload, 1024);
		send_rsp(b, 0, 0x0e, psn + lost - 1, payload, 1024);
		bench_drain(b, 2000);
		assert_int_equal(b->n_cqes[1], 0);
		assert_int_equal(b->cnt[URDMA_CNT_RX_READ_GAP], 1);
		for (unsigned int i = lost; i < (k < 3 ? 6u : 3u); i++) {
			bool last = i == (k < 3 ? 5u : 2u);

			send_rsp(b, 0,
				 last	     ? (i == lost ? 0x10 : 0x0f)
				 : i == lost ? 0x0d
					     : 0x0e,
				 psn + i, payload + 1024 * i,
				 last ? (k < 3 ? 6100 : 2200) - 1024 * i : 1024);
		}
		bench_drain(b, 2000);
		read_cqe(b, q, 0);
		check(b);
	}
	/* a response that one half has taken stands in front of the other half's look-up: the fence
	 * waits for what becomes of it, so nothing of it is told to the next life */
	{
		struct req *q = &reqs[0];
		struct sge s = { take(b, 1024, 64), 1024, LKEY };

		for (int life = 0; life < 2; life++) {
			qp_init(b, 0, 3, 4, 6, 0);
			bench_ctl_wait(b, true, QPC_RESET, QPN0, 0, 200);
			bench_ctl_wait(b, true, QPC_SQ_PSN, QPN0, 0, 200);
			memset(q, 0, sizeof(*q));
			q->qpn = QPN0;
			post_read(b, q, &s, 1, 1024, false);
			bench_drain(b, 1000);
			fill(b, 1024);
			if (life) {
				send_rsp(b, 0, 0x10, 0, payload, 1024);
				ref_scatter(b, &s, 1, payload, 1024);
				bench_drain(b, 1000);
				read_cqe(b, q, 0);
			} else {
				b->hold_qpr[0] = true;
				send_rsp(b, 1, 0x10, 0, payload, 1024); /* nobody's, in front */
				send_rsp(b, 0, 0x10, 0, payload, 1024);
				bench_run(b, 100);
				refs[0].cfg.state = URDMA_QPS_RESET;
				bench_cfg(b, &refs[0].cfg);
				b->in.fence_req = true;
				bench_run(b, 100);
				assert_false(b->out.fence_done);
				b->hold_qpr[0] = false;
				for (int i = 0; i < 300 && !b->out.fence_done; i++)
					bench_cycle(b);
				assert_true(b->out.fence_done);
				b->in.fence_req = false;
				/* and requester completion makes no CQE of it */
				bench_run(b, 400);
				assert_int_equal(b->n_cqes[1], 0);
				assert_int_equal(b->n_errs[1], 0);
				continue;
			}
			check(b);
		}
	}
	/* between the two look-ups the QP gets another peer or partition, or loses its GID entry:
	 * what one half has taken, the other places */
	for (int change = 0; change < 3; change++) {
		struct req *q = &reqs[0];
		struct sge s = { take(b, 1024, 64), 1024, LKEY };

		qp_init(b, 0, 3, 4, 6, 0);
		bench_ctl_wait(b, true, QPC_RESET, QPN0, 0, 200);
		bench_ctl_wait(b, true, QPC_SQ_PSN, QPN0, 0, 200);
		memset(q, 0, sizeof(*q));
		q->qpn = QPN0;
		post_read(b, q, &s, 1, 1024, false);
		bench_drain(b, 1000);
		fill(b, 1024);
		ref_scatter(b, &s, 1, payload, 1024);
		b->hold_qpr[0] = true;
		send_rsp(b, 0, 0x10, 0, payload, 1024);
		bench_run(b, 300);
		if (change == 0)
			refs[0].cfg.dgid[15] ^= 1;
		else if (change == 1)
			refs[0].cfg.pkey = 0x8123;
		else
			bench_gid(b, &(struct rx_gid){ .idx = refs[0].cfg.sgid });
		bench_cfg(b, &refs[0].cfg);
		bench_run(b, 20);
		b->hold_qpr[0] = false;
		bench_drain(b, 2000);
		read_cqe(b, q, 0);
		assert_int_equal(b->n_errs[1], 0);
		check(b);
		set_gids(b, 0, mac_own);
	}
	/* what goes wrong on this side */
	for (int fault = 0; fault < 11; fault++) {
		static const uint8_t want[] = { URDMA_WC_LOC_PROT_ERR,	URDMA_WC_LOC_LEN_ERR,
						URDMA_WC_LOC_QP_OP_ERR, URDMA_WC_LOC_QP_OP_ERR,
						URDMA_WC_LOC_QP_OP_ERR, URDMA_WC_LOC_QP_OP_ERR,
						URDMA_WC_LOC_PROT_ERR,	URDMA_WC_FLUSH_ERR,
						URDMA_WC_LOC_LEN_ERR,	URDMA_WC_LOC_LEN_ERR,
						URDMA_WC_LOC_LEN_ERR };
		struct req *q = &reqs[0];
		struct sge s[4] = { 0 };
		uint32_t psn;

		qp_init(b, 0, 3, 4, 6, 0);
		bench_ctl_wait(b, true, QPC_RESET, QPN0, 0, 200);
		bench_ctl_wait(b, true, QPC_SQ_PSN, QPN0, 0, 200);
		memset(q, 0, sizeof(*q));
		q->qpn = QPN0;
		bench_drain(b, 1000);
		s[0] = (struct sge){ take(b, 3000, 64), fault == 1 ? 1500 : 1024,
				     fault == 0 ? LKEY + 2 : LKEY };
		s[1] = (struct sge){ s[0].va + 1024, 2000, fault == 6 ? 0x99 : LKEY };
		/* bytes left over: in the last SGE; in one behind it; in the first and far behind
		 * it */
		s[1].len = fault == 8 ? 1477 : 1476;
		if (fault >= 9) {
			refs[0].cfg.sq_log_stride = 7;
			bench_cfg(b, &refs[0].cfg);
			s[fault - 7] = (struct sge){ s[0].va, 1, 0x99 };
		}
		psn = post_read(b, q, s,
				fault == 1   ? 1
				: fault == 2 ? 9
				: fault < 9  ? 2
					     : fault - 6,
				2500, false);
		if (fault == 3) {
			refs[0].cfg.sq_addr = HOST_BUS + HOST_SIZE;
			bench_cfg(b, &refs[0].cfg);
		}
		if (fault == 4)
			b->fail_rd = 0;
		if (fault == 5)
			b->fail_pt = 0;
		bench_drain(b, 1000);
		fill(b, 3000);
		if (fault == 7) {
			/* the responder's half sees the QP in ERR, requester completion has not */
			b->hold_qpr[0] = true;
			send_rsp(b, 0, 0x0d, psn, payload, 1024);
			bench_run(b, 100);
			refs[0].cfg.state = URDMA_QPS_ERR;
			bench_cfg(b, &refs[0].cfg);
			b->hold_qpr[0] = false;
		} else {
			send_rsp(b, 0, 0x0d, psn, payload, 1024);
			send_rsp(b, 0, 0x0e, psn + 1, payload + 1024, 1024);
			send_rsp(b, 0, 0x0f, psn + 2, payload + 2048, 452);
		}
		if (fault == 1)
			ref_scatter(b, s, 1, payload, 1500);
		if (fault == 6)
			ref_scatter(b, s, 1, payload, 1024);
		if (fault >= 8)
			ref_scatter(b, s, 2, payload, 2500);
		bench_drain(b, 5000);
		if (!b->n_cqes[1] || (b->cqes[1][0].w[0] >> 16 & 255) != want[fault])
			fail_msg("fault %d: %u send CQEs, status %u, expected %u", fault,
				 b->n_cqes[1], (unsigned int)(b->cqes[1][0].w[0] >> 16 & 255),
				 want[fault]);
		check(b);
		refs[0].err = true;
		end_life(b, 0);
	}
	bench_free(b);
}

/* Receive queues in ERR: long ones, several at once, doorbells that come later, QUERY, a new life.
 */
static void test_flush(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 4; q++) {
		struct ref *r = &refs[q];

		qp_init(b, q, 1, 8, 6, 50);
		for (int i = 0; i < 200; i++) {
			struct sge s = { take(b, 1000, 1), 1000, LKEY };

			post(b, r, &s, 1);
		}
		ring(b, r);
	}
	bench_drain(b, 1000);
	/* a message in progress, and one complete before it */
	fill(b, 1000);
	for (int q = 0; q < 4; q++) {
		send_message(b, &refs[q], 700, false, false, 0);
		send_packet(b, &refs[q], 0, refs[q].epsn, payload, 256, false, false);
		refs[q].err = true;
	}
	bench_run(b, 400);
	for (int q = 0; q < 4; q++)
		bench_ctl(b, false, QPC_ERR, QPN0 + q, 0);
	for (int q = 0; q < 4; q++)
		ref_flush(&refs[q]);
	bench_drain(b, 20000);
	check(b);
	/* posting in ERR flushes */
	for (int i = 0; i < 5; i++) {
		for (int q = 0; q < 4; q++) {
			post(b, &refs[q], NULL, 0);
			ring(b, &refs[q]);
		}
	}
	bench_ctl(b, false, QPC_ERR, QPN0, 0); /* once more is harmless */
	bench_drain(b, 20000);
	check(b);
	bench_ctl_wait(b, false, QPC_QUERY, QPN0 + 1, 0, 100);
	assert_int_equal(b->ctl.qpc_pi, 205);
	assert_int_equal(b->ctl.qpc_ci, 205);
	assert_int_equal(b->ctl.qpc_psn, 54);
	/* a doorbell beyond the ring ends its QP, and no other */
	qp_init(b, 4, 1, 4, 6, 50);
	bench_db(b, QPN0 + 4, 17);
	bench_drain(b, 1000);
	refs[4].errs[refs[4].n_errs++] = (struct bench_err){ QPN0 + 4, URDMA_EV_QP_FATAL, false };
	check(b);
	/* a new life begins at index 0, PSN as told */
	qp_init(b, 1, 2, 3, 6, 0x777);
	post(b, &refs[1], &(struct sge){ HOST_VA + DATA_OFF, 512, LKEY }, 1);
	ring(b, &refs[1]);
	bench_drain(b, 1000);
	send_message(b, &refs[1], 512, true, true, 0);
	bench_drain(b, 2000);
	check(b);
	bench_ctl_wait(b, false, QPC_QUERY, QPN0 + 1, 0, 100);
	assert_int_equal(b->ctl.qpc_pi, 1);
	assert_int_equal(b->ctl.qpc_ci, 1);
	assert_int_equal(b->ctl.qpc_psn, 0x778);
	bench_free(b);
}

/* A receive WQE, or the address of its ring, that cannot be read. */
static void test_wqe_errors(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int kind = 0; kind < 2; kind++) {
		struct ref *r = &refs[0];

		qp_init(b, 0, 3, 4, 7, 9);
		for (int i = 0; i < 4; i++)
			post(b, r, &(struct sge){ take(b, 64, 64), 64, LKEY }, 1);
		ring(b, r);
		bench_drain(b, 1000);
		fill(b, 64);
		send_message(b, r, 64, false, false, 0);
		bench_drain(b, 2000);
		check(b);
		if (kind) {
			b->fail_rd = 0;
		} else {
			r->cfg.rq_addr = HOST_BUS + HOST_SIZE;
			bench_cfg(b, &r->cfg);
		}
		/* three at once: the first fails, the others must leave no trace */
		for (int i = 0; i < 3; i++) {
			struct packet k = r->hdr;
			static struct frame f;

			k.opcode = 4;
			k.psn = 10 + i;
			k.payload = payload;
			k.len = 64;
			k.ackreq = true;
			packet_build(&k, &f);
			bench_frame(b, &f, false);
		}
		ref_ack(r, 10, 0x63, 1);
		ref_cqe(r, r->ci++, URDMA_WC_LOC_QP_OP_ERR, 0, NULL, false, 0);
		ref_error(r, 0);
		bench_drain(b, 3000);
		check(b);
		r->cfg.rq_addr = HOST_BUS + RING_OFF;
		bench_cfg(b, &r->cfg);
		bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
		ref_flush(r);
		bench_drain(b, 3000);
		check(b);
	}
	bench_free(b);
}

/* A WQE that cannot be read among those of other QPs that have all arrived: it costs its own QP. */
static void test_wqe_error_among_others(void **state)
{
	enum { BEFORE = 40 };
	struct bench *b = start();
	struct ref *r = &refs[1];
	static struct frame f;
	struct packet k;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 4; q++) {
		qp_init(b, q, 3, 6, 7, 10);
		for (int i = 0; i < (q == 3 ? BEFORE : 1); i++)
			post(b, &refs[q], &(struct sge){ take(b, 64, 64), 64, LKEY }, 1);
		ring(b, &refs[q]);
	}
	bench_drain(b, 1000);
	/* placement stands, so that the walk does */
	b->hold_wr = true;
	fill(b, 64);
	for (int i = 0; i < BEFORE; i++)
		send_message(b, &refs[3], 64, false, false, 0);
	b->fail_rd = BEFORE + 1;
	send_message(b, &refs[0], 64, false, false, 0);
	k = r->hdr;
	k.opcode = 4;
	k.psn = 10;
	k.payload = payload;
	k.len = 64;
	k.ackreq = true;
	packet_build(&k, &f);
	bench_frame(b, &f, false);
	ref_ack(r, 10, 0x63, 0);
	ref_cqe(r, r->ci++, URDMA_WC_LOC_QP_OP_ERR, 0, NULL, false, 0);
	ref_error(r, 0);
	send_message(b, &refs[2], 64, false, false, 0);
	bench_run(b, 2000);
	b->hold_wr = false;
	bench_drain(b, 3000);
	assert_int_equal(b->fail_rd, -1);
	check(b);
	bench_free(b);
}

/* ---- requester completion
 * ------------------------------------------------------------------------------ */

/* How many more messages tx may send: the table has a place for each. */
static unsigned int req_room(struct bench *b, struct req *q)
{
	for (unsigned int k = 0; k < b->n_ackeds; k++)
		if (b->ackeds[k].qpn == q->qpn)
			q->seen = b->ackeds[k].wqe;
	return 128 - (uint16_t)(q->tail - q->seen);
}

static void req_walk(struct req *q, int i)
{
	for (; q->head != q->tail; q->head++) {
		struct rx_sent *s = &q->s[q->head];
		uint8_t st = s->status;

		if (!s->status && ((s->psn - q->una) & 0x800000)) {
			st = 0;
		} else if (q->nak) {
			st = q->nak;
			q->nak = 0;
		} else if (q->err) {
			st = URDMA_WC_FLUSH_ERR;
		} else if (s->status) {
			if (s->status != URDMA_WC_FLUSH_ERR) {
				q->err = true;
				q->n_errs++;
			}
		} else {
			return;
		}
		if (st || s->signaled) {
			struct bench_cqe *c = &q->cqes[q->n_cqes++];

			memset(c, 0, sizeof(*c));
			c->cqn = 30 + i;
			c->w[0] = s->opcode << 8 | (uint64_t)st << 16 | (uint64_t)q->head << 32;
			c->w[1] = s->len | (uint64_t)q->qpn << 32;
		}
	}
}

static void req_sent(struct bench *b, struct req *q, unsigned int packets, uint8_t status)
{
	struct rx_sent s = { .qpn = q->qpn,
			     .wqe = q->tail,
			     .opcode = rnd(b) & 1,
			     .signaled = rnd(b) % 3 != 0,
			     .status = status,
			     .len = rnd(b) & 0x3fffffff };

	q->next = (q->next + packets) & 0xffffff;
	s.psn = status ? q->next : (q->next - 1) & 0xffffff;
	q->bad |= status;
	q->s[q->tail++] = s;
	bench_sent(b, &s);
	req_walk(q, q - reqs);
}

static void req_ack(struct bench *b, struct req *q, uint32_t psn, uint8_t syndrome)
{
	static const uint8_t code[] = { URDMA_WC_RETRY_EXC_ERR, URDMA_WC_REM_INV_REQ_ERR,
					URDMA_WC_REM_ACCESS_ERR, URDMA_WC_REM_OP_ERR };
	static struct frame f;
	struct packet k = refs[q - reqs].hdr;

	psn &= 0xffffff;
	k.opcode = 0x11;
	k.psn = psn;
	k.ext[0] = syndrome;
	k.ext[3] = rnd(b);
	k.ext_len = 4;
	packet_build(&k, &f);
	bench_frame(b, &f, false);
	if (((psn - q->una) & 0x800000) || q->err)
		return;
	if (!(syndrome & 0x60)) {
		q->una = (psn + 1) & 0xffffff;
	} else {
		q->una = psn;
		q->err = true;
		q->n_errs++;
		q->nak = syndrome & 0x40 ? code[syndrome & 3] : URDMA_WC_RNR_RETRY_EXC_ERR;
	}
	req_walk(q, q - reqs);
}

static void req_init(struct bench *b, int i, uint32_t psn)
{
	struct req *q = &reqs[i];

	qp_init(b, i, 3, 4, 6, 0);
	/* without retries: the first loss ends the QP */
	refs[i].cfg.retry = refs[i].cfg.rnr_retry = 0;
	bench_cfg(b, &refs[i].cfg);
	bench_ctl_wait(b, true, QPC_RESET, QPN0 + i, 0, 200);
	bench_ctl_wait(b, true, QPC_SQ_PSN, QPN0 + i, psn, 200);
	memset(q, 0, sizeof(*q));
	q->qpn = QPN0 + i;
	q->una = q->next = psn & 0xffffff;
}

static void req_check(struct bench *b)
{
	for (int i = 0; i < 4; i++) {
		struct req *q = &reqs[i];
		unsigned int n = 0, errs = 0;
		const struct bench_acked *last = NULL;

		if (!q->qpn)
			continue;
		for (unsigned int k = 0; k < b->n_cqes[1]; k++) {
			const struct bench_cqe *c = &b->cqes[1][k], *e = &q->cqes[n];

			if ((c->w[1] >> 32) != q->qpn)
				continue;
			if (n >= q->n_cqes || memcmp(c, e, sizeof(*c)))
				fail_msg("cycle %llu seed %u: QP %u send CQE %u: %016llx %016llx, "
					 "expected (of %u)"
					 " %016llx %016llx",
					 (unsigned long long)b->cycle, seed, q->qpn, n,
					 (unsigned long long)c->w[0], (unsigned long long)c->w[1],
					 q->n_cqes, (unsigned long long)e->w[0],
					 (unsigned long long)e->w[1]);
			n++;
		}
		if (n != q->n_cqes)
			fail_msg("cycle %llu seed %u: QP %u: %u send CQEs, expected %u",
				 (unsigned long long)b->cycle, seed, q->qpn, n, q->n_cqes);
		for (unsigned int k = 0; k < b->n_errs[1]; k++)
			errs += b->errs[1][k].qpn == q->qpn && !b->errs[1][k].event;
		assert_int_equal(errs, q->n_errs);
		for (unsigned int k = 0; k < b->n_ackeds; k++) {
			if (b->ackeds[k].qpn != q->qpn)
				continue;
			if (last && ((uint16_t)(b->ackeds[k].wqe - last->wqe) > 0x7fff ||
				     ((b->ackeds[k].una - last->una) & 0x800000)))
				fail_msg("QP %u: progress goes back", q->qpn);
			last = &b->ackeds[k];
		}
		if (last && (last->wqe != q->head || (!q->err && last->una != q->una)))
			fail_msg("QP %u: progress reported to WQE %u, PSN %x, expected %u, %x",
				 q->qpn, last->wqe, last->una, q->head, q->una);
		if (n && !last)
			fail_msg("QP %u: no progress reported", q->qpn);
		q->n_cqes = q->n_errs = 0;
		req_room(b, q);
		bench_ctl_wait(b, true, QPC_QUERY, q->qpn, 0, 200);
		if (!q->err)
			assert_int_equal(b->ctl.aqc_psn, q->una);
		assert_int_equal(b->ctl.aqc_pi, q->tail);
		assert_int_equal(b->ctl.aqc_ci, q->head);
	}
	bench_clear_logs(b);
}

static void test_requester(void **state)
{
	struct bench *b = start();
	unsigned int acks = 0, msgs = 0;

	(void)state;
	for (int round = 0; round < 40; round++) {
		bench_settings(b, round % 3 ? rnd_in(b, 20, 100) : 100, 0, 4, 20);
		for (int i = 0; i < 4; i++)
			if (!reqs[i].qpn || reqs[i].err)
				req_init(b, i, round & 1 ? 0xfffff0 : rnd(b));
		for (int step = 0; step < 30; step++) {
			struct req *q = &reqs[rnd(b) % 4];
			unsigned int n = rnd_in(b, 1, 40), out;

			while (n-- && req_room(b, q) && !q->err && !q->bad) {
				req_sent(b, q, rnd_in(b, 1, 5), 0);
				msgs++;
			}
			if (rnd(b) % 2)
				bench_drain(b, 20000);
			out = (q->next - q->una) & 0xffffff;
			if (!out || q->err)
				continue;
			/* an acknowledgement follows its message; the bench's two ports know no
			 * order */
			bench_drain(b, 20000);
			switch (rnd(b) % 60) {
			case 0:
				req_ack(b, q, q->una + rnd(b) % out, 0x60 + rnd(b) % 4);
				break;
			case 1:
				req_ack(b, q, q->una + rnd(b) % out, 0x20 + rnd(b) % 32);
				break;
			case 2: /* a ghost: long acknowledged */
				req_ack(b, q, q->una - rnd_in(b, 1, 100000),
					rnd(b) & 1 ? 0x1f : 0x63);
				break;
			default:
				req_ack(b, q, q->una + rnd(b) % out, rnd(b) % 32);
			}
			acks++;
			if (rnd(b) % 2)
				bench_drain(b, 20000);
			if (rnd(b) % 40 == 0 && !q->err && !q->bad) {
				bench_drain(b, 20000);
				if (!req_room(b, q))
					continue;
				req_sent(b, q, 0, URDMA_WC_LOC_PROT_ERR);
			}
		}
		bench_drain(b, 20000);
		/* qp_mgr's part: the table flushes, and what tx still has comes with FLUSH_ERR */
		for (int i = 0; i < 4; i++) {
			struct req *q = &reqs[i];

			if (!q->err && rnd(b) % 4)
				continue;
			q->err = true;
			bench_ctl(b, true, QPC_ERR, q->qpn, 0);
			req_walk(q, i);
		}
		bench_drain(b, 20000);
		for (int i = 0; i < 4; i++) {
			unsigned int n = rnd(b) % 60;

			while (reqs[i].err && n-- && req_room(b, &reqs[i]))
				req_sent(b, &reqs[i], 0, URDMA_WC_FLUSH_ERR);
		}
		bench_drain(b, 20000);
		req_check(b);
	}
	/* a NAK for a message whose last packet tx has not made yet: the error goes to the flushed
	 * entry */
	req_init(b, 0, 1000);
	req_sent(b, &reqs[0], 2, 0);
	bench_made(b, reqs[0].qpn, 1005);
	bench_drain(b, 1000);
	req_ack(b, &reqs[0], 1005, 0x62);
	bench_drain(b, 1000);
	assert_int_equal(b->n_errs[1], 1);
	bench_ctl(b, true, QPC_ERR, reqs[0].qpn, 0);
	bench_drain(b, 1000);
	req_sent(b, &reqs[0], 0, URDMA_WC_FLUSH_ERR);
	req_sent(b, &reqs[0], 0, URDMA_WC_FLUSH_ERR);
	bench_drain(b, 1000);
	assert_int_equal(reqs[0].head, 3);
	req_check(b);
	/* an acknowledgement that overtakes its message */
	req_init(b, 1, 0xffffff);
	bench_made(b, reqs[1].qpn, 0xffffff);
	bench_drain(b, 1000);
	req_ack(b, &reqs[1], 0xffffff, 0x1f);
	bench_drain(b, 1000);
	req_sent(b, &reqs[1], 1, 0);
	bench_drain(b, 1000);
	assert_int_equal(reqs[1].head, 1);
	req_check(b);
	print_message("%u messages, %u acknowledgements\n", msgs, acks);
	bench_free(b);
}

/* ---- control against the data path
 * ----------------------------------------------------------------------- */

/* With every output stopped and work piled up, control is still answered; a fence waits for what it
 * must. */
static void test_control(void **state)
{
	struct bench *b = start();
	struct ref *r = &refs[0];
	unsigned int before;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	qp_init(b, 0, 1, 8, 6, 0);
	qp_init(b, 1, 1, 8, 6, 0);
	req_init(b, 2, 0);
	for (int i = 0; i < 200; i++)
		post(b, r, &(struct sge){ take(b, 64, 64), 64, LKEY }, 1);
	ring(b, r);
	bench_drain(b, 1000);

	/* the fence with nothing to do */
	b->in.fence_req = true;
	for (int i = 0; i < 60 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	b->in.fence_req = false;
	bench_cycle(b);
	bench_cycle(b);
	assert_false(b->out.fence_done);

	b->hold_wr = b->hold_cqe[0] = b->hold_cqe[1] = b->hold_ack = true;
	for (int i = 0; i < 40; i++) {
		fill(b, 64);
		send_message(b, r, 64, false, false, 1);
	}
	for (int i = 0; i < 50; i++)
		req_sent(b, &reqs[2], 1, 0);
	bench_run(b, 100);
	req_ack(b, &reqs[2], 49, 0x1f);
	bench_run(b, 1000);
	b->in.fence_req = true;
	bench_run(b, 500);
	assert_false(b->out.fence_done);
	for (int i = 0; i < 3; i++) {
		bench_ctl_wait(b, false, QPC_QUERY, QPN0 + i, 0, 20);
		bench_ctl_wait(b, true, QPC_QUERY, QPN0 + i, 0, 20);
	}
	bench_ctl_wait(b, false, QPC_ERR, QPN0 + 1, 0, 20);
	bench_ctl_wait(b, true, QPC_ERR, QPN0 + 1, 0, 20);
	bench_ctl_wait(b, true, QPC_ERR, QPN0 + 2, 0, 20);
	reqs[2].err = true;
	assert_false(b->out.fence_done);
	b->hold_wr = b->hold_cqe[1] = b->hold_ack = false;
	bench_run(b, 500);
	assert_false(b->out.fence_done); /* the responder's CQEs are still held */
	b->hold_cqe[0] = false;
	for (int i = 0; i < 2000 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	assert_int_equal(b->n_cqes[0], 40);
	b->in.fence_req = false;
	bench_drain(b, 5000);
	req_check(b);
	bench_clear_logs(b);
	for (int i = 0; i < 2; i++)
		ref_clear(&refs[i]);

	/* work that keeps coming does not delay a fence without bound */
	for (int i = 0; i < 150; i++) {
		fill(b, 64);
		send_message(b, r, 64, false, false, 1);
	}
	b->gap = 90;
	bench_run(b, 300);
	before = b->cycle;
	b->in.fence_req = true;
	for (int i = 0; i < 1000 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	print_message("fence under load: %u cycles\n", (unsigned int)b->cycle - before);
	assert_true(b->out.busy || b->n_cqes[0] < 150);
	b->in.fence_req = false;
	b->gap = 0;
	bench_drain(b, 5000);
	check(b);

	/* RESET while packets are in flight: none of them counts in the new life */
	qp_init(b, 3, 1, 8, 6, 0);
	for (int i = 0; i < 20; i++)
		post(b, &refs[3], &(struct sge){ take(b, 64, 64), 64, LKEY }, 1);
	ring(b, &refs[3]);
	bench_drain(b, 1000);
	b->hold_rd = true;
	for (int i = 0; i < 10; i++) {
		fill(b, 64);
		send_message(b, &refs[3], 64, false, false, 1);
	}
	bench_run(b, 300);
	/* but for the QP's own counters, which are no state of the QP */
	assert_int_equal(b->qc[QPN0 + 3][URDMA_QCNT_RX_SEND], 10);
	bench_clear_logs(b);
	ref_clear(&refs[3]);
	qp_init(b, 3, 1, 8, 6, 0);
	b->hold_rd = false;
	bench_drain(b, 2000);
	memcpy(b->shadow, b->host, HOST_SIZE);
	check(b);
	bench_ctl_wait(b, false, QPC_QUERY, QPN0 + 3, 0, 20);
	assert_int_equal(b->ctl.qpc_ci, 0);
	bench_free(b);
}

/*
 * DMA writes stand still: requests fill what they may of the buffer, and more are dropped. READ
 * responses and acknowledgements that come then still find room. What was taken is right.
 */
static void test_overload(void **state)
{
	enum { LINES = 2048, FOR_RESPONSES = 256, LEN = 4000, EACH = 63, MESSAGES = 80 };
	const unsigned int fit = (LINES - FOR_RESPONSES) / EACH;
	struct bench *b = start();
	struct ref *r = &refs[0];
	static struct frame f;
	struct sge read;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	qp_init(b, 0, 5, 10, 6, 0);
	req_init(b, 2, 0);
	req_init(b, 3, 0);
	for (int i = 0; i < MESSAGES; i++)
		post(b, r, &(struct sge){ take(b, LEN, 1), LEN, LKEY }, 1);
	ring(b, r);
	read = (struct sge){ take(b, 4096, 64), 4096, LKEY };
	post_read(b, &reqs[3], &read, 1, read.len, false);
	for (int i = 0; i < 100; i++)
		req_sent(b, &reqs[2], 1, 0);
	bench_drain(b, 1000);
	b->hold_wr = true;
	for (unsigned int i = 0; i < MESSAGES; i++) {
		fill(b, LEN);
		if (i < fit) {
			send_message(b, r, LEN, false, false, 0);
		} else {
			struct packet k = r->hdr;

			k.opcode = 4;
			k.psn = i;
			k.payload = payload;
			k.len = LEN;
			packet_build(&k, &f);
			bench_frame(b, &f, false);
		}
	}
	bench_run(b, 8000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], MESSAGES - fit);
	fill(b, read.len);
	ref_scatter(b, &read, 1, payload, read.len);
	for (int i = 0; i < 4; i++)
		send_rsp(b, 3, i == 0 ? 0x0d : i == 3 ? 0x0f : 0x0e, i, payload + 1024 * i, 1024);
	for (int i = 0; i < 100; i++)
		req_ack(b, &reqs[2], i, 0x1f);
	bench_run(b, 2000);
	b->hold_wr = false;
	bench_drain(b, 50000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], MESSAGES - fit);
	assert_int_equal(b->cnt[URDMA_CNT_RX_READ_RSP], 4);
	assert_int_equal(b->cnt[URDMA_CNT_RX_ACK], 100);
	assert_int_equal(b->n_cqes[1], reqs[2].n_cqes + 1);
	check(b);
	bench_free(b);
}

/*
 * Indices of a receive queue come round past 2^15 and 2^16, behind doorbells of many WQEs: more
 * than half of the ring each, the whole of it in the end.
 */
static void test_indices(void **state)
{
	enum { LOG = 11, LEN = 8 };
	struct bench *b = start();
	struct ref *r = &refs[0];
	unsigned int sent = 0;

	(void)state;
	qp_init(b, 0, 5, LOG, 6, 0);
	bench_settings(b, 100, 0, 8, 50);
	while (sent < 0x10000 + 3000) {
		unsigned int n = sent < 0x10000 ? 1200 : 1u << LOG;

		next_va = HOST_VA + DATA_OFF;
		for (unsigned int i = 0; i < n; i++)
			post(b, r, &(struct sge){ take(b, LEN, 1), LEN, LKEY }, 1);
		ring(b, r);
		bench_drain(b, 1000);
		for (unsigned int i = 0; i < n; i++) {
			fill(b, LEN);
			send_message(b, r, LEN, false, false, 0);
			bench_run(b, 3);
		}
		bench_drain(b, 10000);
		assert_int_equal(b->n_cqes[0], n);
		check(b);
		sent += n;
	}
	bench_free(b);
}

/* ---- rates and latency
 * ------------------------------------------------------------------------------------ */

static void test_rates(void **state)
{
	struct bench *b = start();
	static const struct {
		const char *name;
		int qps;
		size_t len;
		unsigned int n;
		unsigned int spacing; /* cycles from frame to frame */
		bool write;
	} runs[] = {
		{ "64-byte SENDs, 8 QPs", 8, 64, 1000, 3, false },
		{ "64-byte SENDs, one QP", 1, 64, 1000, 3, false },
		{ "64-byte WRITEs, 8 QPs", 8, 64, 1000, 3, true },
		{ "64-byte WRITEs, one QP", 1, 64, 1000, 3, true },
		/* 106 bytes of frame: 2.6 cycles at 100 Gb/s, and what the MAC could do */
		{ "32-byte WRITEs, 8 QPs", 8, 32, 1000, 2, true },
		{ "32-byte WRITEs, one QP", 1, 32, 1000, 2, true },
		{ "4096-byte SENDs, one QP, 100 Gb/s", 1, 4096, 600, 84, false },
		{ "4096-byte SENDs, 8 QPs, unaligned", 8, 4096, 600, 84, false },
		{ "4096-byte SENDs, 64 bytes a cycle", 1, 4096, 600, 67, false },
		{ "4096-byte WRITEs, 64 bytes a cycle", 1, 4096, 600, 67, true },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(runs) / sizeof(runs[0]); k++) {
		double per;

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, 100, 0, 8, 100);
		for (int q = 0; q < runs[k].qps; q++)
			qp_init(b, q, 5, 10, 6, 0);
		for (unsigned int i = 0; i < runs[k].n && !runs[k].write; i++)
			post(b, &refs[i % runs[k].qps],
			     &(struct sge){ take(b, runs[k].len + 9, 64) + (k == 7 ? 9 : 0),
					    runs[k].len, LKEY },
			     1);
		for (int q = 0; q < runs[k].qps; q++)
			ring(b, &refs[q]);
		bench_drain(b, 3000);
		bench_clear_logs(b);
		for (unsigned int i = 0; i < runs[k].n; i++) {
			fill(b, runs[k].len);
			if (runs[k].write)
				send_write(b, &refs[i % runs[k].qps], rem(0, 64 * i), RKEY,
					   runs[k].len, false, 1);
			else
				send_message(b, &refs[i % runs[k].qps], runs[k].len, false, false,
					     1);
			bench_run(b, runs[k].spacing);
		}
		bench_drain(b, 200000);
		per = (double)(b->last_wr - b->first_wr) / (runs[k].n - 1);
		print_message("%-36s %6.2f cycles a packet\n", runs[k].name, per);
		/* none was lost, so what came at this spacing was taken at this spacing */
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		assert_true(per < runs[k].spacing + 0.5);
		check(b);
	}
	for (int k = 0; k < 6; k++) {
		/* 16 READs of 64 KB outstanding, of one QP: 100 Gb/s; the same as fast as the MAC
		 * can bring it */
		static const struct {
			uint8_t mtu;
			unsigned int spacing;
			unsigned int sges;
		} rd[] = { { 3, 22, 1 }, { 5, 84, 1 }, { 3, 18, 7 },
			   { 5, 67, 7 }, { 2, 11, 1 }, { 1, 7, 1 } };
		size_t mtu = 128u << rd[k].mtu, len = 65536;
		struct req *q = &reqs[0];
		uint32_t psn = 0;
		unsigned int num = rd[k].sges;

		qp_init(b, 0, rd[k].mtu, 4, 6, 0);
		refs[0].cfg.sq_log_stride = 8;
		bench_cfg(b, &refs[0].cfg);
		bench_ctl_wait(b, true, QPC_RESET, QPN0, 0, 200);
		bench_ctl_wait(b, true, QPC_SQ_PSN, QPN0, 0, 200);
		memset(q, 0, sizeof(*q));
		q->qpn = QPN0;
		next_va = HOST_VA + DATA_OFF;
		fill(b, sizeof(payload));
		for (int i = 0; i < 16; i++) {
			uint64_t va = take(b, len, 64);
			struct sge s[8];

			for (unsigned int n = 0; n < num; n++)
				s[n] = (struct sge){ va + 9000 * n,
						     n + 1 == num ? len - 9000 * n : 9000, LKEY };
			post_read(b, q, s, num, len, false);
			ref_scatter(b, s, num, payload + 100 * i, len);
		}
		bench_drain(b, 1000);
		bench_clear_logs(b);
		for (int i = 0; i < 16; i++) {
			for (size_t off = 0; off < len; off += mtu, psn++) {
				send_rsp(b, 0,
					 !off		    ? 0x0d
					 : off + mtu == len ? 0x0f
							    : 0x0e,
					 psn, payload + 100 * i + off, mtu);
				bench_run(b, rd[k].spacing);
			}
		}
		bench_drain(b, 200000);
		print_message("READ responses of %4zu bytes, %u SGEs     %6.2f cycles a packet\n",
			      mtu, num, (double)(b->last_wr - b->first_wr) / (psn - 1));
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		assert_int_equal(b->n_cqes[1], 16);
		check(b);
	}
	for (int k = 0; k < 4; k++) {
		/* READ requests, of one piece and of two: never less than a frame in 6 cycles */
		unsigned int qps = k & 1 ? 1 : 8, n = 1500, spacing = 3;
		uint64_t begin;
		double per;

		bench_settings(b, 100, 0, 13, 100);
		for (unsigned int q = 0; q < qps; q++)
			qp_init(b, q, 5, 4, 6, 0);
		bench_drain(b, 1000);
		bench_clear_logs(b);
		begin = b->cycle;
		for (unsigned int i = 0; i < n; i++) {
			struct ref *r = &refs[i % qps];

			send_reth(b, r, 0x0c, r->epsn, rem(0, 64 * (i % 1000)), RKEY,
				  k < 2 ? 64 : 65536, NULL, 0, false);
			bench_run(b, spacing);
		}
		for (unsigned int i = 0; i < 3000 && b->n_acks < n; i++)
			bench_cycle(b);
		per = (double)(b->cycle - begin) / n;
		print_message("READ requests of %5u bytes, %u QPs       %6.2f cycles a packet\n",
			      k < 2 ? 64 : 65536, qps, per);
		bench_drain(b, 1000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		assert_true(per < spacing + 0.5);
		check(b);
	}
	/* latency: one 64-byte SEND, nothing else, host and translation as fast as can be; the same
	 * as WRITE */
	qp_init(b, 0, 5, 4, 6, 0);
	post(b, &refs[0], &(struct sge){ HOST_VA + DATA_OFF, 64, LKEY }, 1);
	ring(b, &refs[0]);
	bench_settings(b, 100, 0, 1, 1);
	bench_drain(b, 1000);
	bench_clear_logs(b);
	b->mr_latency = b->rd_latency = 0;
	fill(b, 64);
	send_message(b, &refs[0], 64, false, false, 1);
	bench_drain(b, 1000);
	print_message("latency, first beat to DMA write: %u cycles\n",
		      (unsigned int)(b->last_wr - b->first_mac));
	assert_true(b->last_wr - b->first_mac <= 60);
	check(b);
	send_write(b, &refs[0], rem(0, 0), RKEY, 64, false, 1);
	bench_drain(b, 1000);
	print_message("latency of a WRITE: %u cycles\n", (unsigned int)(b->last_wr - b->first_mac));
	assert_true(b->last_wr - b->first_mac <= 60);
	check(b);
	bench_free(b);
}

/*
 * Translations that take long, as when page tables are read while payload is, too, delay the first
 * packet and no other: the pieces of what is in the packet buffer are translated meanwhile. More
 * packets come than the buffer holds.
 */
static void test_slow_tables(void **state)
{
	struct bench *b = start();
	static const struct {
		size_t len;
		unsigned int n, spacing; /* 100 Gb/s */
		unsigned int latency;	 /* up to twice */
		bool write;
	} runs[] = {
		{ 256, 1000, 8, 450, true },
		{ 256, 1000, 8, 450, false },
		{ 1024, 400, 22, 900, true },
		{ 1024, 400, 22, 450, false }, /* the ring's translation comes before */
	};

	(void)state;
	for (size_t k = 0; k < sizeof(runs) / sizeof(runs[0]); k++) {
		double per;

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, 100, 0, 1, 100);
		qp_init(b, 0, 5, 10, 6, 0);
		for (unsigned int i = 0; i < runs[k].n && !runs[k].write; i++)
			post(b, &refs[0],
			     &(struct sge){ take(b, runs[k].len, 64), runs[k].len, LKEY }, 1);
		ring(b, &refs[0]);
		bench_drain(b, 3000);
		bench_clear_logs(b);
		b->mr_latency = runs[k].latency;
		for (unsigned int i = 0; i < runs[k].n; i++) {
			fill(b, runs[k].len);
			if (runs[k].write)
				send_write(b, &refs[0], rem(0, 64 * i), RKEY, runs[k].len, false,
					   1);
			else
				send_message(b, &refs[0], runs[k].len, false, false, 1);
			bench_run(b, runs[k].spacing);
		}
		bench_drain(b, 200000);
		per = (double)(b->last_wr - b->first_wr) / (runs[k].n - 1);
		print_message(
			"%4zu bytes, translations of %u to %u cycles: %6.2f cycles a packet\n",
			runs[k].len, runs[k].latency, 2 * runs[k].latency, per);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		/* the last one may wait longer than the first did, for each of its translations */
		assert_true(per <
			    runs[k].spacing + 0.5 +
				    (double)runs[k].latency * (runs[k].write ? 1 : 2) / runs[k].n);
		check(b);
	}
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_read_checks),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_mpe),
		cmocka_unit_test(test_mpe_order),
		cmocka_unit_test(test_mpe_refused),
		cmocka_unit_test(test_invalidate),
		cmocka_unit_test(test_invalidate_ahead),
		cmocka_unit_test(test_invalidate_wait),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_pkeys),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_comm_est),
		cmocka_unit_test(test_sync),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_soak),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_wqe_errors),
		cmocka_unit_test(test_wqe_error_among_others),
		cmocka_unit_test(test_requester),
		cmocka_unit_test(test_control),
		cmocka_unit_test(test_overload),
		cmocka_unit_test(test_indices),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_slow_tables),
		cmocka_unit_test(test_uc),
		cmocka_unit_test(test_uc_refused),
		cmocka_unit_test(test_uc_back),
		cmocka_unit_test(test_ud),
		cmocka_unit_test(test_ud_dropped),
		cmocka_unit_test(test_unrel_sent),
		cmocka_unit_test(test_unrel_rates),
		cmocka_unit_test(test_mcast),
		cmocka_unit_test(test_mcast_table),
		cmocka_unit_test(test_mcast_whose),
		cmocka_unit_test(test_mcast_leave),
		cmocka_unit_test(test_mcast_twice),
		cmocka_unit_test(test_mcast_traffic),
		cmocka_unit_test(test_mcast_load),
		cmocka_unit_test(test_srq),
		cmocka_unit_test(test_srq_traffic),
		cmocka_unit_test(test_srq_uc),
		cmocka_unit_test(test_srq_flush),
		cmocka_unit_test(test_srq_behind_error),
		cmocka_unit_test(test_srq_index),
		cmocka_unit_test(test_srq_unread),
		cmocka_unit_test(test_srq_gone),
		cmocka_unit_test(test_srq_many),
		cmocka_unit_test(test_srq_rates),
		cmocka_unit_test(test_srq_lines),
		cmocka_unit_test(test_srq_pd),
		cmocka_unit_test(test_srq_no_right),
		cmocka_unit_test(test_srq_held_last),
		cmocka_unit_test(test_srq_doorbells),
		cmocka_unit_test(test_srq_last_wqe),
		cmocka_unit_test(test_srq_reset_beside),
		cmocka_unit_test(test_srq_flush_of_before),
		cmocka_unit_test(test_srq_reset_own),
		cmocka_unit_test(test_srq_behind_bad),
		cmocka_unit_test(test_xrc),
		cmocka_unit_test(test_xrc_traffic),
		cmocka_unit_test(test_xrc_refused),
		cmocka_unit_test(test_xrc_keys),
		cmocka_unit_test(test_xrc_transport),
		cmocka_unit_test(test_xrc_flush),
		cmocka_unit_test(test_xrc_lives),
		cmocka_unit_test(test_xrc_wrap),
		cmocka_unit_test(test_xrc_dead),
		cmocka_unit_test(test_xrc_destroyed),
		cmocka_unit_test(test_xrc_again),
		cmocka_unit_test(test_xrc_behind_error),
		cmocka_unit_test(test_xrc_rates),
	};

	seed = (unsigned int)test_seed(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
