/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ethernet between the two NICs of a rig: queue pairs with buffers on both sides, frames sent and
 * received, and the frames of IP, UDP and TCP that a test makes. Its checksums are those of
 * ref_hash.h.
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
	uint8_t *rx[NET_QUEUES];  /* buffers, in a piece */
	uint64_t *at[NET_QUEUES]; /* what was posted at each slot of the ring */
	uint8_t *tx;		  /* memory of frames to send, used round and round */
	size_t tx_at;
};

struct net {
	struct rig *rig;
	struct net_config config;
	struct net_side side[2];
};

/* One queue pair a side, 2 KB buffers, 255 of them, RX_ENABLE. */
void net_defaults(struct net_config *config);
/* Exits when something does not come up. RSS goes over the queues, key as published by Microsoft.
 */
void net_start(struct net *net, struct rig *rig, const struct net_config *config);
void net_stop(struct net *net);

/* A frame in pieces at odd places; pieces 1 to 32, not more than bytes. Does not ring. */
void net_put(struct net *net, unsigned int side, unsigned int q, const void *frame, size_t len,
	     unsigned int pieces, const struct urdma_eh_eth_offload *offload);
/* The same in one piece, and rings. */
void net_send(struct net *net, unsigned int side, unsigned int q, const void *frame, size_t len);
/* The next received frame of a queue, taken out of its buffers, which are posted again. Passes over
 * transmit completions. false: none within limit cycles. */
bool net_recv(struct net *net, unsigned int side, unsigned int q, void *frame,
	      struct urdma_eh_eth_cqe *cqe, uint64_t limit);
/* Until all that was put is done. false: not within limit cycles, or one with an error. */
bool net_sent(struct net *net, unsigned int side, unsigned int q, uint64_t limit);

/* ---- frames --------------------------------------------------------------------------------- */

struct net_flow {
	bool ipv6, vlan;
	uint16_t tci;
	uint8_t proto;		  /* 17, 6, or anything */
	uint8_t src[16], dst[16]; /* IPv4: the first four bytes */
	uint16_t sport, dport;
};

/* Ethernet, IP with checksum, UDP or TCP header; the rest of len bytes from seed. Returns len. The
 * checksum behind IP is that of the pseudo header, as for CSUM; where from and at tell where. */
size_t net_frame(const struct net *net, unsigned int from, const struct net_flow *flow, size_t len,
		 uint32_t seed, uint8_t *frame, unsigned int *start, unsigned int *at);

extern const uint8_t net_rss_key[40];

#endif
