/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out from the packets at one port which QPs are connected to each other. A packet names only
 * its destination. Two QPs are seen to be a pair when one answers the PSN of a request to the
 * other. An answer is evidence if it fits the requests to one QP only.
 *
 * Programs begin all connections with the same PSN, and QP numbers are used again, so evidence may
 * be wrong. A QP has one peer at a time: of two pairs that share a QP at the same time, the one
 * with more evidence is right.
 */
#ifndef URDMA_TESTS_RC_PAIRS_H
#define URDMA_TESTS_RC_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

/* A pair, and the time for which there is evidence of it. */
struct rc_pair {
	uint32_t local, remote;
	uint64_t from_ns, to_ns; /* first and last evidence */
	uint64_t evidence;	 /* answers */
};

struct rc_pairs;

/* mtu: path MTU in bytes. NULL when there is no memory. */
struct rc_pairs *rc_pairs_create(unsigned int mtu);
void rc_pairs_destroy(struct rc_pairs *pairs);

/* Says that these two are a pair at all times. */
void rc_pairs_add(struct rc_pairs *pairs, uint32_t local, uint32_t remote);

/*
 * The next packet of RC or XRC, in order of time. bth: its headers from the BTH on, as many as its
 * opcode has. out: the port has sent it.
 */
void rc_pairs_packet(struct rc_pairs *pairs, const uint8_t *bth, bool out, uint64_t ns);

/* After the last packet: decides which pairs there are, and returns their number. */
unsigned int rc_pairs_settle(struct rc_pairs *pairs);
/* Pair i of those. A pair that was silent in between may appear several times. */
const struct rc_pair *rc_pairs_get(const struct rc_pairs *pairs, unsigned int i);

/*
 * The pair of a packet to that QP: of several, the one with the nearest evidence in time. NULL when
 * there is none.
 */
const struct rc_pair *rc_pairs_of(const struct rc_pairs *pairs, bool out, uint32_t qpn,
				  uint64_t ns);

#endif
