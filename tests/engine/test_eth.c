// SPDX-License-Identifier: Apache-2.0
/*
 * The Ethernet function through the whole NIC: frames of every length in pieces at any address,
 * offloads, filters, RSS, lack of buffers, bad descriptors, queues taken down under traffic,
 * interrupts, and RDMA beside it. Every received byte is compared, and so are the counters. A case
 * is a function of the seed that it prints.
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
#include "ref_hash.h"
#include "seed.h"

#define WAIT 2000000u

static uint8_t got[NET_MAX_FRAME + 64], sent[NET_MAX_FRAME + 64];

static void start(struct net *net, struct rig *rig, const struct net_config *config)
{
	struct rig_config rc;

	rig_defaults(&rc);
	rc.memory.memory = 128u << 20;
	rig_start(rig, &rc);
	net_start(net, rig, config);
}

static void stop(struct net *net)
{
	net_stop(net);
	rig_stop(net->rig);
}

static uint64_t counter(struct net *net, unsigned int side, unsigned int index)
{
	return urdma_eh_counter(net->side[side].eh, index);
}

/* Random numbers of test n. */
static uint64_t draw_from(unsigned int n)
{
	uint64_t seed = test_seed(UINT64_C(0x9e3779b97f4a7c15) + n);

	print_message("  seed %lu\n", (unsigned long)seed);
	return seed;
}

/* A frame of no known protocol: addresses, local experimental EtherType, bytes from seed. */
static void plain(const struct net *net, unsigned int from, size_t len, uint32_t seed)
{
	rig_fill(sent, len, seed);
	memcpy(sent, net->side[!from].mac, 6);
	memcpy(sent + 6, net->side[from].mac, 6);
	sent[12] = 0x88;
	sent[13] = 0xb5;
}

/* The frame as it has to arrive: padded. */
static size_t padded(size_t len)
{
	if (len >= 60)
		return len;
	memset(sent + len, 0, 60 - len);
	return 60;
}

static void expect(struct net *net, unsigned int side, unsigned int q, size_t len)
{
	struct urdma_eh_eth_cqe cqe;
	uint16_t sum;

	if (!net_recv(net, side, q, got, &cqe, WAIT))
		fail_msg("a frame of %zu bytes did not arrive", len);
	assert_int_equal(cqe.len, len);
	if (memcmp(got, sent, len))
		for (size_t i = 0; i < len; i++)
			if (got[i] != sent[i])
				fail_msg("byte %zu of %zu: 0x%02x, not 0x%02x", i, len, got[i],
					 sent[i]);
	sum = ref_fold(ref_sum16(0, sent + 14, len - 14));
	/* the NIC's words have the low byte first */
	sum = (uint16_t)(sum << 8 | sum >> 8);
	if (cqe.csum != sum &&
	    !((cqe.csum == 0 || cqe.csum == 0xffff) && (sum == 0 || sum == 0xffff)))
		fail_msg("sum of a frame of %zu bytes: 0x%04x, not 0x%04x", len, cqe.csum, sum);
	assert_int_equal(cqe.bufs, (len + net->config.q.buf - 1) / net->config.q.buf);
}

/* Nothing more arrives. */
static void quiet(struct net *net, unsigned int side, unsigned int q)
{
	struct urdma_eh_eth_cqe cqe;

	assert_false(net_recv(net, side, q, got, &cqe, 20000));
}

static void test_lengths(void **state)
{
	struct rig rig;
	struct net net;
	struct net_config c;
	unsigned int n = 0;

	(void)state;
	for (unsigned int buf = 256; buf <= 4096; buf *= 4) {
		net_defaults(&c);
		c.q.buf = buf;
		start(&net, &rig, &c);
		for (size_t len = 14; len <= NET_MAX_FRAME; len += len < 330 ? 1
								   : len % 64 == 63 || len % 64 < 2
									   ? 1
									   : 31,
			    n++) {
			unsigned int side = n % 2;

			plain(&net, side, len, (uint32_t)len);
			net_put(&net, side, 0, sent, len, 1 + n % 5 * (n % 3), NULL);
			urdma_eh_eth_ring_tx(&net.side[side].q[0]);
			expect(&net, !side, 0, padded(len));
			assert_true(net_sent(&net, side, 0, WAIT));
		}
		for (unsigned int s = 0; s < 2; s++) {
			assert_int_equal(counter(&net, s, URDMA_CNT_ETH_TX_FRAMES),
					 counter(&net, !s, URDMA_CNT_ETH_RX_FRAMES));
			assert_int_equal(counter(&net, s, URDMA_CNT_TX_BYTES),
					 counter(&net, !s, URDMA_CNT_RX_BYTES));
			assert_int_equal(counter(&net, s, URDMA_CNT_ETH_RX_MCAST), 0);
		}
		stop(&net);
	}
	print_message("  %u frames\n", n);
}

/* Too long for the receiver, or for any frame. */
static void test_too_long(void **state)
{
	struct rig rig;
	struct net net;
	struct net_config c;
	static uint8_t frame[NET_MAX_FRAME + 64];
	struct urdma_eh_eth_offload tag = { .vlan = true, .tci = 0x2123 };

	(void)state;
	net_defaults(&c);
	c.q.buf = 4096;
	start(&net, &rig, &c);
	plain(&net, 0, NET_MAX_FRAME, 5);
	memcpy(frame, sent, NET_MAX_FRAME);
	net_send(&net, 0, 0, frame, NET_MAX_FRAME + 1);
	assert_false(net_sent(&net, 0, 0, WAIT));
	assert_int_equal(counter(&net, 0, URDMA_CNT_ETH_TX_BAD), 1);
	/* the longest, with a tag besides */
	net_put(&net, 0, 0, frame, NET_MAX_FRAME, 3, &tag);
	urdma_eh_eth_ring_tx(&net.side[0].q[0]);
	memmove(sent + 16, sent + 12, NET_MAX_FRAME - 12);
	memcpy(sent + 12, "\x81\x00\x21\x23", 4);
	expect(&net, 1, 0, NET_MAX_FRAME + 4);
	assert_true(net_sent(&net, 0, 0, WAIT));
	quiet(&net, 1, 0);
	stop(&net);
}

static void random_flow(uint64_t *rnd, struct net_flow *f)
{
	memset(f, 0, sizeof(*f));
	f->ipv6 = rig_draw(rnd, 2);
	f->proto = rig_draw(rnd, 2) ? 17 : 6;
	f->vlan = rig_draw(rnd, 4) == 0;
	f->tci = (uint16_t)rnd_next(rnd);
	for (unsigned int i = 0; i < 16; i++) {
		f->src[i] = (uint8_t)rnd_next(rnd);
		f->dst[i] = (uint8_t)rnd_next(rnd);
	}
	f->sport = (uint16_t)rnd_next(rnd);
	f->dport = (uint16_t)rnd_next(rnd);
}

/* The sender inserts checksum and tag; the receiver checks the sum and strips the tag. */
static void test_offloads(void **state)
{
	uint64_t rnd = draw_from(0);
	struct rig rig;
	struct net net;
	struct net_config c;

	(void)state;
	for (unsigned int strip = 0; strip < 2; strip++) {
		net_defaults(&c);
		c.q.buf = 4096;
		c.ctrl |= strip ? URDMA_RF_ETH_VLAN_STRIP : 0;
		start(&net, &rig, &c);
		for (unsigned int n = 0; n < 400; n++) {
			struct urdma_eh_eth_offload o = { .csum = rig_draw(&rnd, 8) != 0 };
			unsigned int side = n % 2, l4;
			struct urdma_eh_eth_cqe cqe;
			struct net_flow f;
			size_t len, want, cut = 0;
			uint16_t tci;
			bool tagged;

			random_flow(&rnd, &f);
			f.vlan = false;
			o.vlan = rig_draw(&rnd, 2);
			o.tci = f.tci;
			len = 74 + rig_draw(&rnd, n % 10 ? 1500 : 9000);
			net_frame(&net, side, &f, len, n, sent, &o.csum_start, &o.csum_at);
			l4 = o.csum_start;
			net_put(&net, side, 0, sent, len, 1 + rig_draw(&rnd, 28), &o);
			urdma_eh_eth_ring_tx(&net.side[side].q[0]);
			if (!net_recv(&net, !side, 0, got, &cqe, WAIT))
				fail_msg("frame %u did not arrive", n);
			assert_true(net_sent(&net, side, 0, WAIT));
			tagged = o.vlan && !strip;
			want = len + (tagged ? 4 : 0);
			assert_int_equal(cqe.len, want);
			assert_int_equal(cqe.vlan, o.vlan && strip);
			if (cqe.vlan)
				assert_int_equal(cqe.tci, o.tci);
			assert_int_equal(ref_fold(ref_sum16(0, got + 14, want - 14)) % 0xffff,
					 (uint16_t)(cqe.csum << 8 | cqe.csum >> 8) % 0xffff);
			if (tagged) {
				assert_memory_equal(got + 12, "\x81\x00", 2);
				tci = (uint16_t)(got[14] << 8 | got[15]);
				assert_int_equal(tci, o.tci);
				memmove(got + 12, got + 16, want - 16);
				cut = 4;
			}
			want -= cut;
			if (o.csum) {
				uint32_t pseudo = f.proto + (uint32_t)(len - l4);

				pseudo = f.ipv6 ? ref_sum16(pseudo, sent + 22, 32)
						: ref_sum16(pseudo, sent + 26, 8);
				if (ref_fold(ref_sum16(pseudo, got + l4, len - l4)) != 0xffff)
					fail_msg("frame %u, %zu bytes, IPv%c: checksum 0x%02x%02x "
						 "at %u is wrong",
						 n, len, f.ipv6 ? '6' : '4', got[o.csum_at],
						 got[o.csum_at + 1], o.csum_at);
				assert_false(got[o.csum_at] == 0 && got[o.csum_at + 1] == 0);
				memcpy(sent + o.csum_at, got + o.csum_at, 2);
			}
			assert_memory_equal(got, sent, want);
		}
		stop(&net);
	}
}

/* Sends a frame to an address, with an 802.1Q tag if vid is not negative. Returns whether it
 * arrives. */
static bool passes(struct net *net, const uint8_t *dst, int vid, uint64_t *filtered)
{
	struct urdma_eh_eth_cqe cqe;
	uint64_t before = counter(net, 1, URDMA_CNT_ETH_RX_FILTERED);

	plain(net, 0, 100, 1);
	memcpy(sent, dst, 6);
	if (vid >= 0) {
		sent[12] = 0x81;
		sent[13] = 0;
		sent[14] = (uint8_t)(0x60 | vid >> 8);
		sent[15] = (uint8_t)vid;
	}
	net_send(net, 0, 0, sent, 100);
	assert_true(net_sent(net, 0, 0, WAIT));
	if (net_recv(net, 1, 0, got, &cqe, 3000))
		return true;
	*filtered += counter(net, 1, URDMA_CNT_ETH_RX_FILTERED) - before;
	return false;
}

static void write_ctrl(struct net *net, unsigned int side, uint64_t bits)
{
	urdma_eh_write_reg(net->side[side].eh, URDMA_REG_ETH_CTRL, bits);
	assert_int_equal(urdma_eh_reg(net->side[side].eh, URDMA_REG_ETH_CTRL), bits);
}

static void test_filters(void **state)
{
	static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint8_t other[6] = { 2, 1, 2, 3, 4, 5 }, group[6] = { 1, 0, 0x5e, 1, 2, 3 };
	uint64_t filtered = 0, on = URDMA_RF_ETH_RX_ENABLE, v = 0;
	struct rig rig;
	struct net net;
	struct net_config c;
	struct urdma_eh *eh;
	unsigned int h;

	(void)state;
	net_defaults(&c);
	start(&net, &rig, &c);
	eh = net.side[1].eh;
	assert_true(passes(&net, net.side[1].mac, -1, &filtered));
	assert_true(passes(&net, all, -1, &filtered));
	assert_false(passes(&net, other, -1, &filtered));
	assert_false(passes(&net, group, -1, &filtered));
	assert_int_equal(filtered, 2);
	/* each entry of the unicast table */
	for (unsigned int i = 0; i < urdma_eh_caps(eh)->eth_uc; i++) {
		memcpy(&v, other, 6);
		v = (v & ~(UINT64_C(0xff) << 40)) | (uint64_t)i << 40;
		urdma_eh_write_reg(eh, URDMA_REG_ETH_UC + 8 * i, v | URDMA_RF_ETH_UC_VALID);
		other[5] = (uint8_t)i;
		assert_true(passes(&net, other, -1, &filtered));
		urdma_eh_write_reg(eh, URDMA_REG_ETH_UC + 8 * i, v);
		assert_false(passes(&net, other, -1, &filtered));
	}
	assert_int_equal(filtered, 2 + urdma_eh_caps(eh)->eth_uc);
	/* multicast by hash */
	for (unsigned int i = 0; i < 20; i++) {
		group[3] = (uint8_t)(i * 37);
		group[5] = (uint8_t)(i * 11);
		h = ref_crc32(~0u, group, 6) & 0xff;
		urdma_eh_write_reg(eh, URDMA_REG_ETH_MC_HASH + 8 * (h / 64), UINT64_C(1) << h % 64);
		assert_true(passes(&net, group, -1, &filtered));
		urdma_eh_write_reg(eh, URDMA_REG_ETH_MC_HASH + 8 * (h / 64),
				   ~(UINT64_C(1) << h % 64));
		assert_false(passes(&net, group, -1, &filtered));
		urdma_eh_write_reg(eh, URDMA_REG_ETH_MC_HASH + 8 * (h / 64), 0);
	}
	write_ctrl(&net, 1, on | URDMA_RF_ETH_ALLMULTI);
	assert_true(passes(&net, group, -1, &filtered));
	assert_false(passes(&net, other, -1, &filtered));
	write_ctrl(&net, 1, on | URDMA_RF_ETH_PROMISC);
	assert_true(passes(&net, group, -1, &filtered));
	assert_true(passes(&net, other, -1, &filtered));
	write_ctrl(&net, 1, 0);
	assert_false(passes(&net, net.side[1].mac, -1, &filtered));
	write_ctrl(&net, 1, URDMA_RF_ETH_PROMISC);
	assert_false(passes(&net, net.side[1].mac, -1, &filtered));
	/* VLANs */
	write_ctrl(&net, 1, on);
	assert_true(passes(&net, net.side[1].mac, 77, &filtered));
	write_ctrl(&net, 1, on | URDMA_RF_ETH_VLAN_FILTER);
	assert_true(passes(&net, net.side[1].mac, -1, &filtered));
	assert_true(passes(&net, net.side[1].mac, 0, &filtered));
	for (unsigned int i = 0; i < 24; i++) {
		unsigned int vid = i < 2 ? i * 4094 + 1 : 1 + i * 173;

		assert_false(passes(&net, net.side[1].mac, (int)vid, &filtered));
		urdma_eh_write_reg(eh, URDMA_REG_ETH_VLAN + 8 * (vid / 64),
				   UINT64_C(1) << vid % 64);
		assert_true(passes(&net, net.side[1].mac, (int)vid, &filtered));
		assert_false(passes(&net, net.side[1].mac, (int)(vid ^ 2), &filtered));
		urdma_eh_write_reg(eh, URDMA_REG_ETH_VLAN + 8 * (vid / 64), 0);
	}
	write_ctrl(&net, 1, on | URDMA_RF_ETH_VLAN_FILTER | URDMA_RF_ETH_PROMISC);
	assert_false(passes(&net, net.side[1].mac, 77, &filtered));
	assert_int_equal(counter(&net, 1, URDMA_CNT_ETH_RX_FILTERED), filtered);
	write_ctrl(&net, 1, on);
	stop(&net);
}

/* Which queue and which hash: compared with our own hash. */
static void test_rss(void **state)
{
	uint64_t rnd = draw_from(1);
	unsigned int used[NET_QUEUES] = { 0 };
	struct rig rig;
	struct net net;
	struct net_config c;

	(void)state;
	net_defaults(&c);
	c.queues = NET_QUEUES;
	c.posted = 63;
	start(&net, &rig, &c);
	for (unsigned int n = 0; n < 500; n++) {
		uint64_t types = rnd_next(&rnd) & 15;
		unsigned int l4, at, q, type;
		struct urdma_eh_eth_cqe cqe;
		struct net_flow f;
		uint8_t in[36];
		uint32_t hash;
		size_t k;
		bool ip, ports;

		random_flow(&rnd, &f);
		if (rig_draw(&rnd, 8) == 0)
			f.proto = 47;
		urdma_eh_write_reg(net.side[1].eh, URDMA_REG_ETH_RSS, types);
		assert_int_equal(urdma_eh_reg(net.side[1].eh, URDMA_REG_ETH_RSS), types);
		net_frame(&net, 0, &f, 120, n, sent, &l4, &at);
		if (f.proto == 47)
			memcpy(sent + at, "\xab\xcd", 2);
		k = f.ipv6 ? 16 : 4;
		memcpy(in, f.src, k);
		memcpy(in + k, f.dst, k);
		memcpy(in + 2 * k, sent + l4, 4);
		ip = types & (f.ipv6 ? URDMA_RF_ETH_RSS_IPV6 : URDMA_RF_ETH_RSS_IPV4);
		ports = ip && ((f.proto == 6 && types & URDMA_RF_ETH_RSS_TCP) ||
			       (f.proto == 17 && types & URDMA_RF_ETH_RSS_UDP));
		if (!f.ipv6 && rig_draw(&rnd, 8) == 0) {
			sent[l4 - 20 + 6] = 0x20; /* a fragment */
			ref_ip_checksum(sent + l4 - 20);
			ports = false;
		}
		hash = ip ? ref_toeplitz(net_rss_key, in, 2 * k + (ports ? 4 : 0)) : 0;
		type = ports ? 2 : ip ? 1 : 0;
		q = hash % 128 % NET_QUEUES;
		net_send(&net, 0, n % NET_QUEUES, sent, 120);
		assert_true(net_sent(&net, 0, n % NET_QUEUES, WAIT));
		if (!net_recv(&net, 1, q, got, &cqe, 5000))
			fail_msg("frame %u, types %u, IPv%c, protocol %u: not in queue %u", n,
				 (unsigned int)types, f.ipv6 ? '6' : '4', f.proto, q);
		assert_int_equal(cqe.hash_type, type);
		assert_int_equal(cqe.hash, hash);
		assert_memory_equal(got, sent, 120);
		used[q]++;
	}
	for (unsigned int q = 0; q < NET_QUEUES; q++)
		assert_true(used[q] > 10);
	stop(&net);
}

/* Without buffers frames are lost and counted, and nothing else is affected. */
static void test_no_buffers(void **state)
{
	struct rig rig;
	struct net net;
	struct net_config c;
	struct urdma_eh_eth_cqe cqe;
	unsigned int n = 0;

	(void)state;
	net_defaults(&c);
	c.posted = 7;
	c.q.buf = 1024;
	start(&net, &rig, &c);
	for (unsigned int i = 0; i < 40; i++) {
		plain(&net, 0, 3000, i); /* three buffers each: two fit, one buffer is left */
		net_put(&net, 0, 0, sent, 3000, 1, NULL);
	}
	urdma_eh_eth_ring_tx(&net.side[0].q[0]);
	assert_true(net_sent(&net, 0, 0, WAIT));
	assert_int_equal(urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + WAIT),
			 0);
	assert_int_equal(counter(&net, 1, URDMA_CNT_ETH_RX_NO_BUF), 38);
	/* the small ones that still fit */
	plain(&net, 0, 900, 100);
	net_send(&net, 0, 0, sent, 900);
	assert_true(net_sent(&net, 0, 0, WAIT));
	while (net_recv(&net, 1, 0, got, &cqe, 5000)) {
		plain(&net, 0, n < 2 ? 3000 : 900, n < 2 ? n : 100);
		assert_int_equal(cqe.len, n < 2 ? 3000 : 900);
		assert_memory_equal(got, sent, cqe.len);
		n++;
	}
	assert_int_equal(n, 3);
	for (unsigned int i = 0; i < 300; i++) {
		plain(&net, 0, 2000, i);
		net_send(&net, 0, 0, sent, 2000);
		expect(&net, 1, 0, 2000);
		assert_true(net_sent(&net, 0, 0, WAIT));
	}
	stop(&net);
}

/* A frame that is not valid is not sent: it is counted and completes with ERR. The frames after it
 * are sent. */
static void test_bad_descriptors(void **state)
{
	struct rig rig;
	struct net net;
	struct net_config c;
	struct urdma_eh_ethq *q;
	struct urdma_eh_eth_offload o = { .csum = true };
	uint64_t bus;

	(void)state;
	net_defaults(&c);
	start(&net, &rig, &c);
	q = &net.side[0].q[0];
	for (unsigned int n = 0; n < 7; n++) {
		plain(&net, 0, 500, n);
		memcpy(net.side[0].tx, sent, 500);
		bus = urdma_embedded_bus(rig.host, net.side[0].tx);
		switch (n) {
		case 0: /* nothing in a piece */
			urdma_eh_eth_put_tx(q, bus, 100, false, NULL);
			urdma_eh_eth_put_tx(q, bus, 0, false, NULL);
			urdma_eh_eth_put_tx(q, bus, 100, true, NULL);
			break;
		case 1: /* too many pieces */
			for (unsigned int i = 0; i < 33; i++)
				urdma_eh_eth_put_tx(q, bus, 10, i == 32, NULL);
			break;
		case 2: /* far too many */
			for (unsigned int i = 0; i < 200; i++)
				urdma_eh_eth_put_tx(q, bus, 10, i == 199, NULL);
			break;
		case 3: /* too long */
			for (unsigned int i = 0; i < 30; i++)
				urdma_eh_eth_put_tx(q, bus, 400, i == 29, NULL);
			break;
		case 4: /* unmapped memory */
			urdma_eh_eth_put_tx(q, bus, 100, false, NULL);
			urdma_eh_eth_put_tx(q, 0x10, 100, true, NULL);
			break;
		case 5: /* checksum beyond the end */
			o.csum_start = 34;
			o.csum_at = 499;
			urdma_eh_eth_put_tx(q, bus, 500, true, &o);
			break;
		case 6:
			o.csum_start = 501;
			o.csum_at = 40;
			urdma_eh_eth_put_tx(q, bus, 500, true, &o);
			break;
		}
		urdma_eh_eth_ring_tx(q);
		if (net_sent(&net, 0, 0, WAIT))
			fail_msg("bad frame %u was sent", n);
		assert_int_equal(q->tx_ci, q->tx_pi);
		assert_int_equal(counter(&net, 0, URDMA_CNT_ETH_TX_BAD), n + 1);
		net.side[0].tx_at = 0;
		plain(&net, 0, 500, n + 50);
		net_send(&net, 0, 0, sent, 500);
		expect(&net, 1, 0, 500);
		assert_true(net_sent(&net, 0, 0, WAIT));
	}
	quiet(&net, 1, 0);
	stop(&net);
}

/* All queues, both ways, at full speed, with RDMA beside them; every frame arrives, in order. */
static void test_all_queues(void **state)
{
	uint64_t rnd = draw_from(2);
	uint32_t put[2][NET_QUEUES] = { { 0 } }, seen[2][NET_QUEUES] = { { 0 } };
	unsigned int left = 2 * NET_QUEUES * 200, rdma = 0;
	struct rig rig;
	struct net net;
	struct net_config c;

	(void)state;
	net_defaults(&c);
	c.queues = NET_QUEUES;
	c.posted = 255;
	start(&net, &rig, &c);
	while (left) {
		for (unsigned int s = 0; s < 2; s++) {
			for (unsigned int q = 0; q < NET_QUEUES; q++) {
				struct urdma_eh_ethq *tx = &net.side[s].q[q];
				struct urdma_eh_eth_cqe cqe;

				/* flow q goes to queue q: addresses found by trial */
				for (unsigned int i = rig_draw(&rnd, 4);
				     i && put[s][q] < 200 && put[s][q] - seen[!s][q] < 20; i--) {
					struct net_flow f = { .proto = 17, .dport = 9 };
					unsigned int l4, at;
					uint8_t in[12] = { 0 };
					size_t len = 64 + rig_draw(&rnd, 1450);

					for (f.sport = 1;; f.sport++) {
						in[8] = (uint8_t)(f.sport >> 8);
						in[9] = (uint8_t)f.sport;
						in[11] = 9;
						if (ref_toeplitz(net_rss_key, in, 12) % 128 %
							    NET_QUEUES ==
						    q)
							break;
					}
					net_frame(&net, s, &f, len, put[s][q] * 8 + q, sent, &l4,
						  &at);
					memcpy(sent + l4 + 8, &put[s][q], 4);
					net_put(&net, s, q, sent, len, 1 + rig_draw(&rnd, 4), NULL);
					put[s][q]++;
				}
				urdma_eh_eth_ring_tx(tx);
				while (net_recv(&net, s, q, got, &cqe, 1)) {
					uint32_t number;

					memcpy(&number, got + 42, 4);
					assert_int_equal(number, seen[s][q]);
					rig_fill(sent, cqe.len, number * 8 + q);
					assert_memory_equal(got + 46, sent + 46, cqe.len - 46);
					seen[s][q]++;
					left--;
				}
			}
		}
		if (rdma++ % 8 == 0)
			rig_message(&rig, 0, rdma / 8 % 2, 4096, 20000, rdma);
		assert_true(rdma < 20000);
	}
	for (unsigned int s = 0; s < 2; s++) {
		assert_int_equal(counter(&net, s, URDMA_CNT_ETH_RX_FRAMES), NET_QUEUES * 200);
		assert_int_equal(counter(&net, s, URDMA_CNT_ETH_RX_NO_BUF), 0);
		assert_int_equal(counter(&net, s, URDMA_CNT_ETH_RX_DROP_FULL), 0);
	}
	print_message("  %u messages of RDMA meanwhile\n", (rdma + 7) / 8);
	stop(&net);
}

/* Loopback: in loopback mode all frames, otherwise those to our own address. */
static void test_loopback(void **state)
{
	struct rig rig;
	struct net net;
	struct net_config c;

	(void)state;
	net_defaults(&c);
	start(&net, &rig, &c);
	for (unsigned int n = 0; n < 60; n++) {
		size_t len = n % 2 ? 60 + n * 25 : NET_MAX_FRAME - n;

		write_ctrl(&net, 0,
			   URDMA_RF_ETH_RX_ENABLE |
				   (n % 3 ? URDMA_RF_ETH_LOOPBACK | URDMA_RF_ETH_PROMISC : 0));
		plain(&net, 0, len, n);
		if (n % 3 == 0)
			memcpy(sent, net.side[0].mac, 6);
		net_send(&net, 0, 0, sent, len);
		expect(&net, 0, 0, len);
		assert_true(net_sent(&net, 0, 0, WAIT));
	}
	quiet(&net, 1, 0);
	assert_int_equal(counter(&net, 1, URDMA_CNT_RX_FRAMES), 0);
	write_ctrl(&net, 0, URDMA_RF_ETH_RX_ENABLE);
	stop(&net);
}

/* A queue pair is taken down and set up again while frames go both ways. */
static void test_restart(void **state)
{
	uint64_t rnd = draw_from(3);
	struct rig rig;
	struct net net;
	struct net_config c;
	unsigned int n = 0;

	(void)state;
	net_defaults(&c);
	start(&net, &rig, &c);
	for (unsigned int round = 0; round < 30; round++) {
		unsigned int side = round % 2;
		struct urdma_eh_ethq *q = &net.side[side].q[0];
		struct urdma_eh_eth_cqe cqe;
		uint64_t before;

		for (unsigned int i = 0; i < 40; i++) {
			for (unsigned int s = 0; s < 2; s++) {
				plain(&net, s, 60 + rig_draw(&rnd, 1400), i);
				net_put(&net, s, 0, sent, 1460, 2, NULL);
			}
		}
		urdma_eh_eth_ring_tx(&net.side[0].q[0]);
		urdma_eh_eth_ring_tx(&net.side[1].q[0]);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim,
						urdma_cosim_now(rig.cosim) + rig_draw(&rnd, 3000)),
			  "run");
		rig_check(&rig, urdma_eh_ethq_close(q), "close under traffic");
		/* no more DMA: its memory has another owner now, and the embedded host counts
		 * accesses */
		before = urdma_embedded_stats(rig.host)->faults;
		rig_check(&rig,
			  urdma_cosim_run_while_busy(rig.cosim, urdma_cosim_now(rig.cosim) + WAIT),
			  "run");
		assert_int_equal(urdma_embedded_stats(rig.host)->faults, before);
		rig_check(&rig, urdma_eh_ethq_open(net.side[side].eh, 0, &c.q, q), "open again");
		for (unsigned int i = 0; i < c.posted; i++) {
			uint64_t bus = urdma_embedded_bus(
				rig.host, net.side[side].rx[0] +
						  (size_t)(i / 2) * URDMA_EMBEDDED_PAGE +
						  (size_t)(i % 2) * 2048);

			net.side[side].at[0][i] = bus;
			urdma_eh_eth_put_rx(q, bus);
		}
		urdma_eh_eth_ring_rx(q);
		while (net_recv(&net, !side, 0, got, &cqe, 3000))
			n++;
		assert_true(net_sent(&net, !side, 0, WAIT));
		plain(&net, side, 700, round);
		net_send(&net, side, 0, sent, 700);
		expect(&net, !side, 0, 700);
		plain(&net, !side, 800, round);
		net_send(&net, !side, 0, sent, 800);
		expect(&net, side, 0, 800);
		assert_true(net_sent(&net, 0, 0, WAIT) && net_sent(&net, 1, 0, WAIT));
	}
	print_message("  %u frames while the other side went\n", n);
	stop(&net);
}

/* Interrupts: one per arming; by number, by time, at once; and the same when no time is skipped. */
static uint64_t interrupts(bool no_skip)
{
	static const struct {
		unsigned int frames, usecs, n, irqs;
		uint64_t least, most; /* cycles since the first frame's completion */
	} cases[] = {
		{ 0, 0, 1, 1, 0, 60 },	     { 0, 0, 5, 1, 0, 60 },
		{ 1, 0, 3, 1, 0, 60 },	     { 4, 0, 3, 0, 0, 0 },
		{ 4, 0, 4, 1, 0, 1000 },     { 0, 20, 1, 1, 5000, 5300 },
		{ 8, 20, 2, 1, 5000, 5300 }, { 2, 2000, 2, 1, 0, 1000 },
		{ 0, 3, 6, 1, 750, 1050 },
	};
	uint64_t hash = RIG_HASH_START;
	struct rig_config rc;
	struct rig rig;
	struct net net;
	struct net_config c;

	rig_defaults(&rc);
	rc.cosim.no_skip = no_skip;
	rig_start(&rig, &rc);
	net_defaults(&c);
	net_start(&net, &rig, &c);
	for (unsigned int k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct urdma_eh_ethq *q = &net.side[1].q[0];
		struct urdma_embedded_dev *dev = urdma_eh_dev(net.side[1].eh);
		uint64_t begin, irqs, at = 0;
		struct urdma_eh_eth_cqe cqe;

		urdma_eh_ethq_write(q, URDMA_ETHQ_INT,
				    URDMA_SET(URDMA_RF_ETHQ_VECTOR, q->cfg.vector) |
					    URDMA_SET(URDMA_RF_ETHQ_RX_FRAMES, cases[k].frames) |
					    URDMA_SET(URDMA_RF_ETHQ_RX_USECS, cases[k].usecs));
		urdma_eh_eth_arm(q);
		assert_int_not_equal(urdma_eh_ethq_reg(q, URDMA_ETHQ_STATE), ~UINT64_C(0));
		irqs = urdma_embedded_irqs(dev, q->cfg.vector);
		for (unsigned int i = 0; i < cases[k].n; i++) {
			plain(&net, 0, 64, i);
			net_put(&net, 0, 0, sent, 64, 1, NULL);
		}
		urdma_eh_eth_ring_tx(&net.side[0].q[0]);
		begin = urdma_cosim_now(rig.cosim);
		while (urdma_cosim_now(rig.cosim) < begin + 20000) {
			rig_check(&rig,
				  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 10),
				  "run");
			if (!at && urdma_embedded_irqs(dev, q->cfg.vector) != irqs)
				at = urdma_cosim_now(rig.cosim);
		}
		if (urdma_embedded_irqs(dev, q->cfg.vector) - irqs != cases[k].irqs)
			fail_msg("case %u: %u interrupts, not %u", k,
				 (unsigned int)(urdma_embedded_irqs(dev, q->cfg.vector) - irqs),
				 cases[k].irqs);
		for (unsigned int i = 0; i < cases[k].n; i++) {
			assert_true(net_recv(&net, 1, 0, got, &cqe, 1000));
			if (i == 0 && cases[k].irqs &&
			    (at < cqe.cycles + cases[k].least ||
			     at > cqe.cycles + cases[k].most + 200))
				fail_msg("case %u: interrupt %d cycles behind the completion", k,
					 (int)(at - cqe.cycles));
		}
		assert_true(net_sent(&net, 0, 0, WAIT));
		hash = rig_hash(hash, &at, sizeof(at));
	}
	stop(&net);
	return hash;
}

static void test_interrupts(void **state)
{
	uint64_t hash = interrupts(false);

	(void)state;
	assert_true(hash == interrupts(false));
	assert_true(hash == interrupts(true));
}

/* Which function gets a frame: by address, VLAN and port. */
static void test_whose(void **state)
{
	struct rig rig;
	struct net net;
	struct net_config c;
	uint64_t not_rdma, bad;

	(void)state;
	net_defaults(&c);
	start(&net, &rig, &c);
	for (unsigned int n = 0; n < 8; n++) {
		struct net_flow f = { .proto = 17,
				      .src = { 10, 0, 0, 1 },
				      .dst = { 10, 0, 0, 2 },
				      .sport = 0xc000,
				      .dport = 4791 };
		unsigned int l4, at;
		bool rdma = false;

		switch (n) {
		case 0: /* RDMA, with a wrong ICRC */
			rdma = true;
			break;
		case 1:
			f.dst[3] = 9;
			break;
		case 2:
			f.dport = 4790;
			break;
		case 3:
			f.proto = 6;
			break;
		case 4: /* in a VLAN in which the GID is not */
			f.vlan = true;
			f.tci = 5;
			break;
		case 5: /* priority only */
			f.vlan = true;
			f.tci = 0xe000;
			rdma = true;
			break;
		default:
			break;
		}
		net_frame(&net, 0, &f, 200, n, sent, &l4, &at);
		/* not a valid BTH: opcode, version */
		if (f.dport == 4791 && f.proto == 17)
			memcpy(sent + l4 + 8, "\x04\x00\xff\xff\x00\x00\x00\x10", 8);
		if (n == 6) /* to another MAC address, which passes the filter */
			sent[5] ^= 0x40;
		if (n == 7) { /* a fragment */
			sent[20] = 0x20;
			ref_ip_checksum(sent + 14);
		}
		write_ctrl(&net, 1, URDMA_RF_ETH_RX_ENABLE | (n == 6 ? URDMA_RF_ETH_PROMISC : 0));
		not_rdma = counter(&net, 1, URDMA_CNT_RX_NOT_RDMA);
		bad = counter(&net, 1, URDMA_CNT_RX_ICRC_ERR) +
		      counter(&net, 1, URDMA_CNT_RX_MALFORMED);
		net_send(&net, 0, 0, sent, 200);
		if (rdma) {
			quiet(&net, 1, 0);
			assert_int_equal(counter(&net, 1, URDMA_CNT_RX_ICRC_ERR) +
						 counter(&net, 1, URDMA_CNT_RX_MALFORMED),
					 bad + 1);
		} else {
			expect(&net, 1, 0, 200);
		}
		assert_int_equal(counter(&net, 1, URDMA_CNT_RX_NOT_RDMA), not_rdma + !rdma);
		assert_true(net_sent(&net, 0, 0, WAIT));
	}
	stop(&net);
}

/* The link goes down and up: both hosts are told, and frames are lost only in between. */
static void test_link(void **state)
{
	struct urdma_eh_event ev;
	struct rig rig;
	struct net net;
	struct net_config c;

	(void)state;
	net_defaults(&c);
	start(&net, &rig, &c);
	for (unsigned int n = 0; n < 6; n++) {
		bool up = n % 2;

		assert_int_equal(urdma_cosim_link(rig.cosim, n / 2 % 2, up), 0);
		rig_check(&rig,
			  urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + 20000),
			  "run");
		for (unsigned int s = 0; s < 2; s++) {
			assert_int_equal(urdma_eh_eq_poll(net.side[s].eh, 0, &ev, 1, true), 1);
			assert_int_equal(ev.type, URDMA_EV_PORT);
			assert_int_equal(ev.obj, 1);
			assert_int_equal(ev.data, up);
			assert_int_equal(!!(urdma_eh_reg(net.side[s].eh, URDMA_REG_STATUS) &
					    URDMA_RF_STATUS_LINK),
					 up);
			assert_int_equal(urdma_eh_eq_poll(net.side[s].eh, 0, &ev, 1, true), 0);
		}
		plain(&net, n % 2, 300, n);
		net_send(&net, n % 2, 0, sent, 300);
		if (up)
			expect(&net, !(n % 2), 0, 300);
		else
			quiet(&net, !(n % 2), 0);
		assert_true(net_sent(&net, n % 2, 0, WAIT));
	}
	stop(&net);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest all[] = {
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_offloads),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_rss),
		cmocka_unit_test(test_no_buffers),
		cmocka_unit_test(test_bad_descriptors),
		cmocka_unit_test(test_all_queues),
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_whose),
		cmocka_unit_test(test_link),
	};
	struct CMUnitTest chosen[sizeof(all) / sizeof(all[0])];
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (rig_wanted(all[i].name, argc - 1, argv + 1))
			chosen[n++] = all[i];
	return _cmocka_run_group_tests("eth", chosen, n, NULL, NULL);
}
