/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ethernet between the two NICs of a rig: queue pairs with buffers on both sides, frames sent and
 * received, and functions that make IP, UDP and TCP frames. Checksums are those of ref_hash.h.
 */
#ifndef URDMA_TESTS_NET_H
#define URDMA_TESTS_NET_H

#include "host/eh_eth.h"
#include "rig.h"

#define NET_MAX_FRAME 9216u
#define NET_QUEUES    8u

struct net_config {
	unsigned int queues; /* of each side */
	struct urdma_eh_ethq_config q;
	unsigned int posted; /* receive buffers of each queue, at most ring - 1 */
	uint64_t ctrl;	     /* URDMA_RF_ETH_* */
};

struct net_side {
	struct urdma_eh *eh;
	uint8_t mac[6];
	struct urdma_eh_ethq q[NET_QUEUES];
	uint8_t *rx[NET_QUEUES];  /* buffers, one contiguous piece */
	uint64_t *at[NET_QUEUES]; /* what was posted at each slot of the ring */
	uint8_t *tx;		  /* memory of frames to send, used in a circle */
	size_t tx_at;
};

struct net {
	struct rig *rig;
	struct net_config config;
	struct net_side side[2];
};

/* One queue pair a side, 2 KB buffers, 255 of them, RX_ENABLE. */
void net_defaults(struct net_config *config);
/* Exits when a step fails. RSS spreads over the queues, with the key that Microsoft published. */
void net_start(struct net *net, struct rig *rig, const struct net_config *config);
void net_stop(struct net *net);

/* Posts a frame in 1 to 32 pieces (at most `bytes`) at odd addresses. Does not ring. */
void net_put(struct net *net, unsigned int side, unsigned int q, const void *frame, size_t len,
	     unsigned int pieces, const struct urdma_eh_eth_offload *offload);
/* Posts a frame in one piece and rings. */
void net_send(struct net *net, unsigned int side, unsigned int q, const void *frame, size_t len);
/* Takes the next received frame of a queue out of its buffers and posts them again. Skips transmit
 * completions. Returns false if none comes within limit cycles. */
bool net_recv(struct net *net, unsigned int side, unsigned int q, void *frame,
	      struct urdma_eh_eth_cqe *cqe, uint64_t limit);
/* Waits until everything that was posted has completed. Returns false if that takes more than limit
 * cycles, or for a completion with an error. */
bool net_sent(struct net *net, unsigned int side, unsigned int q, uint64_t limit);

/* ---- frames --------------------------------------------------------------------------------- */

struct net_flow {
	bool ipv6, vlan;
	uint16_t tci;
	uint8_t proto;		  /* 17, 6, or anything */
	uint8_t src[16], dst[16]; /* IPv4: the first four bytes */
	uint16_t sport, dport;
};

/*
 * Writes Ethernet, IP header with checksum, UDP or TCP header, and the rest of len bytes from seed.
 * Returns len. The checksum after the IP header is that of the pseudo header, as CSUM needs it;
 * from and at say where.
 */
size_t net_frame(const struct net *net, unsigned int from, const struct net_flow *flow, size_t len,
		 uint32_t seed, uint8_t *frame, unsigned int *start, unsigned int *at);

extern const uint8_t net_rss_key[40];

#endif
