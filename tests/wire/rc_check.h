/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judge of the reliable connection and of XRC, which is the same with an XRCETH, from what passed
 * one port: for each pair of QPs it keeps its own model of the requester and of the responder
 * behind that port, and reports what they did against the InfiniBand Architecture Specification
 * (volume 1, chapter 9). The peer, and what the wire did to the peer's packets, is input and not
 * judged: a capture of a port shows exactly what its NIC received and what it sent.
 *
 * Requester: PSNs without a hole, opcode sequence, lengths, padding, RETH; what is sent again
 * equals what was sent; it begins where it has to and has a cause (NAK, missing READ response, end
 * of an RNR wait, time-out, the last not before its time); nothing again before an RNR timer ends;
 * NAKs and gaps are acted upon; not more READs and ATOMICs outstanding than agreed.
 * Responder: ACKs of what was received only, never going back, MSN exact, not before the READs in
 * front of them; one NAK for a gap with the first missing PSN, none without a gap; READ
 * responses complete, in order, with the right PSNs, opcodes and lengths; ATOMICs answered once
 * each, repetitions with the stored value; AETH syndromes.
 *
 * XRC: each request has an XRCETH, whose reserved bits are 0; all packets of a message name one
 * SRQ, also when they are sent again; answers have none, and the transport of their requests.
 *
 * It shares no code with the NIC's models.
 */
#ifndef URDMA_TESTS_RC_CHECK_H
#define URDMA_TESTS_RC_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "pcap_read.h"

struct rc_check;

struct rc_check_config {
	unsigned int mtu; /* path MTU in bytes, of all pairs */
	unsigned int
		timeout; /* exponent of the port's own QPs: 4.096 us * 2^timeout; 0: not judged */
	unsigned int rd_atomic; /* READs and ATOMICs outstanding at most; 0: 16 */
	bool same_qpn;		/* each QP is connected to the one of its own number */
	bool lives;		/* numbers of QPs are used again: a PSN far off begins a new life */
	bool gone;		/* QPs may go in the midst of their work: no end is judged */
	/*
	 * Programs may end the key of a READ when they have its data. If the READ was repeated
	 * meanwhile, the answers of the repetition then stop in the middle.
	 */
	bool keys_end;
	/*
	 * Programs may change the buffer of a SEND before it is acknowledged: the payload of a SEND
	 * that is sent again is not compared, its headers and length are.
	 */
	bool rewritten;
	/*
	 * Frames that the NIC received and dropped for lack of room (RX_DROP_FULL, RX_READ_DROP),
	 * which the frames of a capture do not show. Each may excuse one requester or responder
	 * that answers as if a packet had not come, or sends again without a visible cause. What it
	 * does then, until the next life of the QP, is not judged.
	 */
	uint64_t rx_dropped;
	/*
	 * How long a NIC may take to react. 0: 50 us, and to send again what a NAK asks for, 3 us
	 * more for each other QP that sends meanwhile. QPs take turns of 32 KB and a packet; at
	 * 100 Gb/s that is 3 us.
	 */
	uint64_t lag_ns;
	/*
	 * Addresses of the port, MAC and IP (IPv4 as ::ffff:a.b.c.d): packets to others are not for
	 * it, and not counted. MAC 0: what it sends says it, and any IP address is the port's.
	 */
	uint8_t mac[6], ip[16];
};

/* Counted as the NIC's counters count (URDMA_CNT_*), over RoCEv2 frames of the port. */
struct rc_counts {
	uint64_t tx_packets, rx_packets; /* rx: with a good ICRC */
	uint64_t rx_bad_icrc, rx_malformed;
	uint64_t tx_ack, tx_nak_seq, tx_nak_rnr, tx_nak_other, tx_read_rsp;
	uint64_t rx_ack, rx_nak, rx_nak_rnr, rx_read_rsp;
	uint64_t tx_again; /* request packets sent again */
	uint64_t rx_duplicate, rx_ahead;
	uint64_t timeouts; /* resends without another cause */
	uint64_t unpaired; /* packets of QPs that were not said to be connected: not judged */
	uint64_t violations;
};

/* Violations are printed to stderr, the first twenty. NULL when there is no memory. */
struct rc_check *rc_check_create(const char *name, const struct rc_check_config *config);
void rc_check_destroy(struct rc_check *check);

/*
 * Says who is connected to whom, where same_qpn does not hold. A number may be connected to several
 * others, one after the other: the pair that was named last counts, also if it was known before.
 */
int rc_check_pair(struct rc_check *check, uint32_t local_qpn, uint32_t remote_qpn);
/*
 * Says that a pair begins a new life here, between two frames, and with which PSNs: far from those
 * of the former life, whose packets may still be on their way and are not judged any more. For a
 * caller that knows; config.lives guesses it from the wire.
 */
int rc_check_connect(struct rc_check *check, uint32_t local_qpn, uint32_t remote_qpn,
		     uint32_t sq_psn, uint32_t rq_psn, uint64_t now_ns);
/*
 * The local QP is about to go to ERR: its requests and answers, of which some are on their way and
 * others are given up, are only counted until the next life.
 */
int rc_check_stop(struct rc_check *check, uint32_t local_qpn, uint32_t remote_qpn);
/* Every frame of the port, in order. */
void rc_check_frame(struct rc_check *check, const struct pcap_frame *frame);
/* No more frames: what should have been answered by then. Returns the number of violations. */
uint64_t rc_check_end(struct rc_check *check, uint64_t now_ns);
const struct rc_counts *rc_check_counts(const struct rc_check *check);

#endif
