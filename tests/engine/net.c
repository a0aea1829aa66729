// SPDX-License-Identifier: Apache-2.0
#include "net.h"
#include "icrc.h"
#include "ref_hash.h"

#include <errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TX_MEMORY (1u << 20)

/* The key of the RSS verification suite. */
const uint8_t net_rss_key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

void net_defaults(struct net_config *config)
{
	*config = (struct net_config){ .queues = 1, .posted = 255, .ctrl = URDMA_RF_ETH_RX_ENABLE };
	urdma_eh_ethq_defaults(0, &config->q);
}

/* Posts the buffer that starts at p. It may not cross a page, because pages are scattered. */
static void post(struct net *net, unsigned int side, unsigned int q, uint64_t bus)
{
	struct net_side *s = &net->side[side];
	struct urdma_eh_ethq *queue = &s->q[q];

	s->at[q][queue->rx_pi & ((1u << queue->cfg.log_rx) - 1)] = bus;
	urdma_eh_eth_put_rx(queue, bus);
}

static void start_side(struct net *net, unsigned int n)
{
	struct rig *rig = net->rig;
	struct net_side *s = &net->side[n];
	const struct net_config *c = &net->config;
	unsigned int per_page = URDMA_EMBEDDED_PAGE / c->q.buf;

	s->eh = rig->side[n].eh;
	rig_check(rig, urdma_eh_mac(s->eh, s->mac), "MAC");
	s->tx = urdma_embedded_alloc(rig->host, TX_MEMORY);
	rig_check(rig, s->tx ? 0 : -1, "allocate frames");
	for (unsigned int q = 0; q < c->queues; q++) {
		struct urdma_eh_ethq_config cfg = c->q;

		cfg.vector += q;
		rig_check(rig, urdma_eh_ethq_open(s->eh, q, &cfg, &s->q[q]), "open queue pair");
		s->at[q] = calloc((size_t)1 << cfg.log_rx, sizeof(*s->at[q]));
		s->rx[q] = urdma_embedded_alloc(rig->host, (size_t)(c->posted / per_page + 1) *
								   URDMA_EMBEDDED_PAGE);
		rig_check(rig, s->at[q] && (s->rx[q] || !c->posted) ? 0 : -1, "allocate buffers");
		for (unsigned int i = 0; i < c->posted; i++)
			post(net, n, q,
			     urdma_embedded_bus(
				     rig->host,
				     s->rx[q] + (size_t)(i / per_page) * URDMA_EMBEDDED_PAGE +
					     (size_t)(i % per_page) * c->q.buf));
		urdma_eh_eth_ring_rx(&s->q[q]);
	}
	for (unsigned int i = 0; i < URDMA_ETH_RSS_KEY_WORDS; i++) {
		uint64_t v;

		memcpy(&v, net_rss_key + 8 * i, 8);
		urdma_eh_write_reg(s->eh, URDMA_REG_ETH_RSS_KEY + 8 * i, v);
	}
	for (unsigned int i = 0; i < URDMA_ETH_RSS_TABLE_WORDS; i++) {
		uint64_t v = 0;

		for (unsigned int k = 0; k < 8; k++)
			v |= (uint64_t)((8 * i + k) % c->queues) << 8 * k;
		urdma_eh_write_reg(s->eh, URDMA_REG_ETH_RSS_TABLE + 8 * i, v);
	}
	urdma_eh_write_reg(s->eh, URDMA_REG_ETH_RSS,
			   c->queues > 1 ? URDMA_RF_ETH_RSS_IPV4 | URDMA_RF_ETH_RSS_IPV6 |
						   URDMA_RF_ETH_RSS_TCP | URDMA_RF_ETH_RSS_UDP
					 : 0);
	urdma_eh_write_reg(s->eh, URDMA_REG_ETH_CTRL, c->ctrl);
	/* The read pushes the writes before it. */
	rig_check(rig, urdma_eh_reg(s->eh, URDMA_REG_ETH_CTRL) == c->ctrl ? 0 : -1, "ETH_CTRL");
}

void net_start(struct net *net, struct rig *rig, const struct net_config *config)
{
	memset(net, 0, sizeof(*net));
	net->rig = rig;
	net->config = *config;
	for (unsigned int n = 0; n < 2; n++)
		start_side(net, n);
}

void net_stop(struct net *net)
{
	for (unsigned int n = 0; n < 2; n++) {
		struct net_side *s = &net->side[n];

		for (unsigned int q = 0; q < net->config.queues; q++) {
			rig_check(net->rig, urdma_eh_ethq_close(&s->q[q]), "close queue pair");
			urdma_embedded_free(net->rig->host, s->rx[q]);
			free(s->at[q]);
		}
		urdma_embedded_free(net->rig->host, s->tx);
	}
}

/* Finds room for a frame. Its pages are scattered, so a piece ends at the end of a page. */
static uint8_t *room(struct net_side *s, size_t len)
{
	uint8_t *p;

	if (s->tx_at + len > TX_MEMORY)
		s->tx_at = 0;
	p = s->tx + s->tx_at;
	s->tx_at += len;
	return p;
}

void net_put(struct net *net, unsigned int side, unsigned int q, const void *frame, size_t len,
	     unsigned int pieces, const struct urdma_eh_eth_offload *offload)
{
	struct net_side *s = &net->side[side];
	struct urdma_embedded *host = net->rig->host;
	const uint8_t *from = frame;
	uint8_t *p = room(s, len + 2 * pieces);
	size_t left = len;
	bool first = true;

	while (left) {
		size_t n = pieces > 1 ? left / pieces : left;
		size_t page = URDMA_EMBEDDED_PAGE - (size_t)(p - s->tx) % URDMA_EMBEDDED_PAGE;

		if (!n)
			n = 1;
		if (n > page)
			n = page;
		else if (pieces > 1)
			pieces--;
		memcpy(p, from, n);
		left -= n;
		urdma_eh_eth_put_tx(&s->q[q], urdma_embedded_bus(host, p), (uint32_t)n, !left,
				    first ? offload : NULL);
		first = false;
		from += n;
		p += n + (n < page);
	}
}

void net_send(struct net *net, unsigned int side, unsigned int q, const void *frame, size_t len)
{
	net_put(net, side, q, frame, len, 1, NULL);
	urdma_eh_eth_ring_tx(&net->side[side].q[q]);
}

bool net_recv(struct net *net, unsigned int side, unsigned int q, void *frame,
	      struct urdma_eh_eth_cqe *cqe, uint64_t limit)
{
	struct net_side *s = &net->side[side];
	struct urdma_eh_ethq *queue = &s->q[q];
	uint32_t mask = (1u << queue->cfg.log_rx) - 1;
	size_t at = 0;

	do {
		int ret = urdma_eh_eth_next(queue, cqe, limit);

		if (ret) {
			rig_check(net->rig, ret == -ETIMEDOUT ? 0 : ret, "receive");
			return false;
		}
	} while (cqe->kind != URDMA_ECQE_RX);
	for (unsigned int i = 0; i < cqe->bufs; i++) {
		uint64_t bus = s->at[q][(cqe->index + i) & mask];
		size_t n = cqe->len - at;

		if (n > queue->cfg.buf)
			n = queue->cfg.buf;
		memcpy((uint8_t *)frame + at, urdma_embedded_cpu(net->rig->host, bus), n);
		at += n;
		post(net, side, q, bus);
	}
	urdma_eh_eth_ring_rx(queue);
	return true;
}

bool net_sent(struct net *net, unsigned int side, unsigned int q, uint64_t limit)
{
	struct urdma_eh_ethq *queue = &net->side[side].q[q];
	struct urdma_eh_eth_cqe cqe;
	bool good = true;

	while (queue->tx_ci != queue->tx_pi) {
		int ret = urdma_eh_eth_next(queue, &cqe, limit);

		if (ret) {
			rig_check(net->rig, ret == -ETIMEDOUT ? 0 : ret, "send");
			return false;
		}
		if (cqe.kind == URDMA_ECQE_TX && cqe.err)
			good = false;
	}
	return good;
}

/* ---- frames -------------------------------------------------------------------------------- */

size_t net_frame(const struct net *net, unsigned int from, const struct net_flow *flow, size_t len,
		 uint32_t seed, uint8_t *frame, unsigned int *start, unsigned int *at)
{
	size_t ip = flow->vlan ? 18 : 14, l4 = ip + (flow->ipv6 ? 40 : 20), n;
	uint32_t pseudo = flow->proto;
	uint8_t *p = frame + ip;

	rig_fill(frame, len, seed);
	memcpy(frame, net->side[!from].mac, 6);
	memcpy(frame + 6, net->side[from].mac, 6);
	if (flow->vlan) {
		roce_put(frame + 12, 0x8100, 2);
		roce_put(frame + 14, flow->tci, 2);
	}
	roce_put(frame + ip - 2, flow->ipv6 ? 0x86dd : 0x0800, 2);
	n = len - l4;
	if (flow->ipv6) {
		memset(p, 0, 8);
		p[0] = 0x60;
		roce_put(p + 4, (unsigned int)n, 2);
		p[6] = flow->proto;
		p[7] = 64;
		memcpy(p + 8, flow->src, 16);
		memcpy(p + 24, flow->dst, 16);
		pseudo = ref_sum16(pseudo, p + 8, 32);
	} else {
		memset(p, 0, 12);
		p[0] = 0x45;
		roce_put(p + 2, (unsigned int)(n + 20), 2);
		p[8] = 64;
		p[9] = flow->proto;
		memcpy(p + 12, flow->src, 4);
		memcpy(p + 16, flow->dst, 4);
		ref_ip_checksum(p);
		pseudo = ref_sum16(pseudo, p + 12, 8);
	}
	pseudo += (uint32_t)n;
	p = frame + l4;
	roce_put(p, flow->sport, 2);
	roce_put(p + 2, flow->dport, 2);
	if (flow->proto == 17)
		roce_put(p + 4, (unsigned int)n, 2);
	*start = (unsigned int)l4;
	*at = (unsigned int)l4 + (flow->proto == 17 ? 6 : 16);
	roce_put(frame + *at, ref_fold(pseudo), 2);
	return len;
}
