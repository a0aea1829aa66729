/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a NIC's port on their way to its records, the capture and --live: each waits until the
 * fates of those before it are known. The order and the times are those of the port.
 *
 * A frame that the NIC sends to itself has no frame here, but lanes tell of it. It is an entry
 * without a frame, so that its events do not go to another.
 */
#ifndef URDMA_COSIM_TRACE_HELD_H
#define URDMA_COSIM_TRACE_HELD_H

#include "eth/wire.h"

/* The lanes that decide next on a frame. */
enum urdma_held_stage {
	URDMA_HELD_KNOWN, /* none */
	URDMA_HELD_PARSE, /* in, bad or eth_in */
	URDMA_HELD_RSP,	  /* rsp; of a datagram to a group one for each member */
	URDMA_HELD_REQ,	  /* req */
	URDMA_HELD_PUT,	  /* put or voided */
	URDMA_HELD_ASK,	  /* ask or mute */
	URDMA_HELD_BUF,	  /* eth_buf */
};

#define URDMA_HELD_REASONS 8u

struct urdma_held {
	struct urdma_held *next;	      /* in the order of the port */
	struct urdma_held *wait_next, **wait; /* those that are not known */
	uint64_t ns;
	bool outbound;
	enum urdma_held_stage stage;
	uint32_t len;
	bool error;  /* bad FCS */
	bool group;  /* its MAC address is a group's */
	bool packet; /* UDP to port 4791 */
	bool named;  /* and long enough for a BTH: */
	uint8_t opcode;
	uint32_t qpn, psn;
	unsigned int members; /* of a group, for which it has been decided on; 0: it is for none */
	bool more;	      /* and there are others */
	struct urdma_held_reason {
		const char *why, *counter; /* counter NULL: none counts it */
		unsigned int members;
	} reason[URDMA_HELD_REASONS];
	unsigned int reasons;
	struct urdma_eth_frame *frame; /* NULL: the NIC has sent it to itself */
};

struct urdma_holder {
	struct urdma_eth_port *port;
	struct urdma_held *first, **end;
	struct urdma_held *waiting, **waiting_end;
	size_t bytes;
	uint64_t unknown; /* frames that went without their fate */
};

/* Begins to hold the frames of the port, which outlives it. */
void urdma_holder_open(struct urdma_holder *holder, struct urdma_eth_port *port);
/* Gives all frames to the records. */
void urdma_holder_close(struct urdma_holder *holder);

/* What waits at this stage for an event of these names, the first. -1: any opcode. NULL: none. */
struct urdma_held *urdma_held_named(const struct urdma_holder *holder, enum urdma_held_stage stage,
				    uint64_t qpn, uint32_t qpn_mask, uint64_t psn, int opcode);
/* Of this length. Frames that may be another NIC's packets come last. */
struct urdma_held *urdma_held_sized(const struct urdma_holder *holder, enum urdma_held_stage stage,
				    uint64_t len);
/* At the stage PARSE: with a bad FCS; a packet that ends before its BTH does. */
struct urdma_held *urdma_held_damaged(const struct urdma_holder *holder);
struct urdma_held *urdma_held_cut_short(const struct urdma_holder *holder);
/* A new one that the NIC sent to itself, without names. NULL: no memory. */
struct urdma_held *urdma_held_home(struct urdma_holder *holder, uint64_t ns,
				   enum urdma_held_stage stage);

/* A decision: the frame is taken; it is dropped. why and counter stay as they are. It is the last
 * one without `more`. */
void urdma_held_taken(struct urdma_holder *holder, struct urdma_held *held);
void urdma_held_dropped(struct urdma_holder *holder, struct urdma_held *held, const char *why,
			const char *counter);

/* Gives frames to the records: those that are known, and those that have waited too long. */
void urdma_held_release(struct urdma_holder *holder, uint64_t ns);
void urdma_held_release_all(struct urdma_holder *holder);

#endif
