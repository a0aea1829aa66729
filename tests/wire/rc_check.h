/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judge of the reliable connection, and of XRC, which is the same with an XRCETH. It sees the
 * frames that pass one port. For each pair of QPs it keeps its own model of the requester and of
 * the responder behind that port, and reports violations of the InfiniBand Architecture
 * Specification (volume 1, chapter 9). The peer, and what the wire did to the peer's packets, are
 * input and not judged: a capture of a port shows exactly what its NIC received and what it sent.
 *
 * Requester: PSNs without a hole, opcode sequence, lengths, padding, RETH; packets sent again equal
 * the first ones; a resend begins at the right PSN and has a cause (NAK, missing READ response, end
 * of an RNR wait, or a time-out, which must not be early); nothing is sent again before an RNR
 * timer ends; the requester acts upon NAKs and gaps; no more READs and ATOMICs are outstanding than
 * negotiated. Responder: ACKs only of received packets, never going back, MSN exact, not before the
 * answers to earlier READs; one NAK for a gap with the first missing PSN, none without a gap; READ
 * responses complete, in order, with the right PSNs, opcodes and lengths; ATOMICs executed once
 * each, repetitions answered with the stored value; AETH syndromes.
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
	bool same_qpn;		/* each QP is connected to the one with the same number */
	bool lives;		/* QP numbers are used again: a distant PSN begins a new life */
	bool gone;		/* QPs may go in the midst of their work: no end is judged */
	/*
	 * Programs may end the key of a READ when they have its data. If the READ was repeated
	 * meanwhile, the answers to the repetition then stop in the middle.
	 */
	bool keys_end;
	/*
	 * Programs may change the buffer of a SEND before it is acknowledged: the payload of a SEND
	 * that is sent again is not compared, but its headers and length are.
	 */
	bool rewritten;
	/*
	 * Frames that the NIC received and dropped for lack of room (RX_DROP_FULL, RX_READ_DROP);
	 * the frames of a capture do not show this. Each may excuse one requester or responder that
	 * answers as if a packet had not arrived, or sends again without a visible cause. From then
	 * until the next life of the QP, it is not judged.
	 */
	uint64_t rx_dropped;
	/*
	 * How long a NIC may take to react. 0: 50 us, and to send again after a NAK, 3 us more for
	 * each other QP that sends meanwhile. QPs take turns of 32 KB and a packet, which take 3 us
	 * at 100 Gb/s.
	 */
	uint64_t lag_ns;
	/*
	 * Addresses of the port, MAC and IP (IPv4 as ::ffff:a.b.c.d): packets to others are not for
	 * it, and not counted. MAC 0: the port's MAC addresses are those that it sends from, and
	 * any IP address belongs to it.
	 */
	uint8_t mac[6], ip[16];
};

/* Counted like the NIC's counters (URDMA_CNT_*), over RoCEv2 frames of the port. */
struct rc_counts {
	uint64_t tx_packets, rx_packets; /* rx: with a good ICRC */
	uint64_t rx_bad_icrc, rx_malformed;
	uint64_t tx_ack, tx_nak_seq, tx_nak_rnr, tx_nak_other, tx_read_rsp;
	uint64_t rx_ack, rx_nak, rx_nak_rnr, rx_read_rsp;
	uint64_t tx_again; /* request packets sent again */
	uint64_t rx_duplicate, rx_ahead;
	uint64_t timeouts; /* resends without another cause */
	uint64_t unpaired; /* packets of QPs that were not named as connected: not judged */
	uint64_t violations;
};

/* Prints the first twenty violations to stderr. Returns NULL when there is no memory. */
struct rc_check *rc_check_create(const char *name, const struct rc_check_config *config);
void rc_check_destroy(struct rc_check *check);

/*
 * Says which QPs are connected, where same_qpn does not hold. A QP may be connected to several
 * others, one after the other: the pair that was named last counts, also if it was named before.
 */
int rc_check_pair(struct rc_check *check, uint32_t local_qpn, uint32_t remote_qpn);
/*
 * Says that a pair begins a new life here, between two frames, and with which PSNs. These are far
 * from those of the former life, whose packets may still be on their way and are no longer judged.
 * For a caller that knows; config.lives guesses it from the wire.
 */
int rc_check_connect(struct rc_check *check, uint32_t local_qpn, uint32_t remote_qpn,
		     uint32_t sq_psn, uint32_t rq_psn, uint64_t now_ns);
/*
 * The local QP is about to go to ERR: some of its requests and answers are on their way, others are
 * given up. Until the next life they are only counted.
 */
int rc_check_stop(struct rc_check *check, uint32_t local_qpn, uint32_t remote_qpn);
/* Every frame of the port, in order. */
void rc_check_frame(struct rc_check *check, const struct pcap_frame *frame);
/*
 * No more frames: checks what should have been answered by now. Returns the number of violations.
 */
uint64_t rc_check_end(struct rc_check *check, uint64_t now_ns);
const struct rc_counts *rc_check_counts(const struct rc_check *check);

#endif
