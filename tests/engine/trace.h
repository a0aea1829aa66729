/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record of the RoCEv2 packets of both ports of a rig, for tests that look at the wire
 * themselves.
 */
#ifndef URDMA_TESTS_TRACE_H
#define URDMA_TESTS_TRACE_H

#include "rig.h"

struct trace_packet {
	uint64_t ns; /* when the frame's end crosses the MAC interface */
	unsigned int side;
	bool out; /* sent by the NIC of that side */
	bool bad; /* FCS or ICRC is wrong, or the frame cannot be parsed: nothing below is true */
	uint8_t opcode, syndrome;
	bool ack_req;
	uint32_t qpn, psn, msn; /* qpn: of the receiver; msn: of an AETH */
	uint32_t len;		/* payload */
	uint64_t va;		/* RETH, AtomicETH; atomic acknowledge: the value */
	uint32_t rkey, dma_len;
};

enum trace_kind {
	TRACE_ANY,
	TRACE_REQUEST,
	TRACE_READ,	/* request */
	TRACE_RESPONSE, /* to READ */
	TRACE_ATOMIC_ACK,
	TRACE_ACK,
	TRACE_NAK_SEQ,
	TRACE_RNR,
	TRACE_NAK_OTHER,
};

struct trace {
	struct rig *rig;
	struct trace_port {
		struct trace *trace;
		unsigned int side;
	} port[2];
	struct trace_packet *packet;
	size_t n, room;
};

void trace_start(struct trace *t, struct rig *rig);
void trace_stop(struct trace *t);   /* the record is kept */
void trace_forget(struct trace *t); /* clears the packets so far */
void trace_free(struct trace *t);

/* The number of good packets of this kind, by or to a side. qpn, psn: -1 for all. */
bool trace_is(const struct trace_packet *p, unsigned int side, bool out, enum trace_kind kind,
	      int qpn, int psn);
size_t trace_count(const struct trace *t, unsigned int side, bool out, enum trace_kind kind,
		   int qpn, int psn);
/* The first such packet from index `from` on; NULL if there is none. */
const struct trace_packet *trace_find(const struct trace *t, size_t from, unsigned int side,
				      bool out, enum trace_kind kind, int qpn, int psn);
/* Index at which trace_find() continues after p. */
size_t trace_behind(const struct trace *t, const struct trace_packet *p);

#endif
