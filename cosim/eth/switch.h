/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An Ethernet switch. It learns the port of each source address, and forgets an address after a
 * time without a frame. It sends a frame to the port of its destination, and floods broadcast,
 * multicast and unknown destinations. It neither reads nor changes VLAN tags. It stores and
 * forwards: it forwards a frame `latency` after the last bit has arrived, at the line rate of the
 * output port. The queue of each port is bounded in bytes and drops at the tail. The switch drops
 * frames with a bad FCS, and frames to the addresses that no bridge forwards (IEEE 802.1Q, 8.6.3:
 * 01-80-C2-00-00-00 to -0F, which includes pause frames).
 *
 * Its behaviour depends only on the frames and the cycles in which they arrive. Frames of one cycle
 * are processed in the order of the ports.
 */
#ifndef URDMA_COSIM_SWITCH_H
#define URDMA_COSIM_SWITCH_H

#include "eth/wire.h"

#define URDMA_SWITCH_MAX_PORTS 32u

struct urdma_switch_config {
	const char *name;
	unsigned int n_ports;
	uint64_t rate_mbps;
	uint64_t latency_cycles; /* at least 1 */
	size_t queue_bytes;	 /* of each port, at least URDMA_ETH_MAX_FRAME */
	uint64_t age_cycles;
};

struct urdma_switch_stats {
	uint64_t frames, bytes; /* received with a good FCS */
	uint64_t bad_fcs;
	uint64_t reserved; /* to reserved addresses, which are not forwarded */
	uint64_t filtered; /* whose destination is at the port they came from */
	uint64_t forwarded;
	uint64_t group;	  /* broadcast and multicast: flooded */
	uint64_t unknown; /* to an unknown address: flooded */
	uint64_t learned, moved, aged, evicted;
	uint64_t tail_drops; /* copies of frames that found a queue full */
};

struct urdma_switch;

int urdma_switch_create(const struct urdma_switch_config *config, struct urdma_switch **sw);
/* Destroy its wires before. NULL is allowed. */
void urdma_switch_destroy(struct urdma_switch *sw);
const char *urdma_switch_name(const struct urdma_switch *sw);
unsigned int urdma_switch_ports(const struct urdma_switch *sw);
struct urdma_eth_port *urdma_switch_port(struct urdma_switch *sw, unsigned int port);
/* Forgets the addresses of a port whose link went down. */
void urdma_switch_forget(struct urdma_switch *sw, unsigned int port);
const struct urdma_switch_stats *urdma_switch_stats(const struct urdma_switch *sw);

/* The same as for a port. */
bool urdma_switch_advance(struct urdma_switch *sw, uint64_t now);
uint64_t urdma_switch_next(const struct urdma_switch *sw);
const char *urdma_switch_error(const struct urdma_switch *sw);

#endif
