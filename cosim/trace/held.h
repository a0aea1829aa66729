/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a NIC's port on their way to its records, the capture and --live: each waits until the
 * fates of those before it are known. Order and times do not change.
 *
 * A frame that the NIC sends to itself does not cross the port, but lanes report it. It gets an
 * entry without a frame, so that its events are not matched to another frame.
 */
#ifndef URDMA_COSIM_TRACE_HELD_H
#define URDMA_COSIM_TRACE_HELD_H

#include "eth/wire.h"

/* The lanes that make the next decision on a frame. */
enum urdma_held_stage {
	URDMA_HELD_KNOWN, /* none */
	URDMA_HELD_PARSE, /* in, bad or eth_in */
	URDMA_HELD_RSP,	  /* rsp; for a multicast datagram one for each member */
	URDMA_HELD_REQ,	  /* req */
	URDMA_HELD_PUT,	  /* put or voided */
	URDMA_HELD_ASK,	  /* ask or mute */
	URDMA_HELD_BUF,	  /* eth_buf */
};

#define URDMA_HELD_REASONS 8u

struct urdma_held {
	struct urdma_held *next;	      /* in the order of the port */
	struct urdma_held *wait_next, **wait; /* list of undecided frames */
	uint64_t ns;
	bool outbound;
	enum urdma_held_stage stage;
	uint32_t len;
	bool error;  /* bad FCS */
	bool group;  /* its MAC address is a multicast address */
	bool packet; /* UDP to port 4791 */
	bool named;  /* and long enough for a BTH */
	uint8_t opcode;
	uint32_t qpn, psn;
	unsigned int members; /* of a group: decisions so far; 0: for no member */
	bool more;	      /* there are further members */
	struct urdma_held_reason {
		const char *why, *counter; /* counter NULL: not counted */
		unsigned int members;
	} reason[URDMA_HELD_REASONS];
	unsigned int reasons;
	struct urdma_eth_frame *frame; /* NULL: the NIC sent it to itself */
};

struct urdma_holder {
	struct urdma_eth_port *port;
	struct urdma_held *first, **end;
	struct urdma_held *waiting, **waiting_end;
	size_t bytes;
	uint64_t unknown; /* frames recorded without their fate */
};

/* Starts to hold the frames of the port, which must outlive it. */
void urdma_holder_open(struct urdma_holder *holder, struct urdma_eth_port *port);
/* Passes all frames to the records. */
void urdma_holder_close(struct urdma_holder *holder);

/* The first frame that waits at this stage for these names. Opcode -1: any. NULL: none. */
struct urdma_held *urdma_held_named(const struct urdma_holder *holder, enum urdma_held_stage stage,
				    uint64_t qpn, uint32_t qpn_mask, uint64_t psn, int opcode);
/* The first of this length. Frames that may be another NIC's packets come last. */
struct urdma_held *urdma_held_sized(const struct urdma_holder *holder, enum urdma_held_stage stage,
				    uint64_t len);
/* At the stage PARSE: with a bad FCS; a packet that ends before its BTH does. */
struct urdma_held *urdma_held_damaged(const struct urdma_holder *holder);
struct urdma_held *urdma_held_cut_short(const struct urdma_holder *holder);
/* Adds a frame that the NIC sent to itself, without names. NULL: no memory. */
struct urdma_held *urdma_held_home(struct urdma_holder *holder, uint64_t ns,
				   enum urdma_held_stage stage);

/*
 * A decision: the frame is accepted, or dropped. why and counter must stay valid. Without `more` it
 * is the last decision.
 */
void urdma_held_taken(struct urdma_holder *holder, struct urdma_held *held);
void urdma_held_dropped(struct urdma_holder *holder, struct urdma_held *held, const char *why,
			const char *counter);

/* Passes frames to the records: those with a known fate, and those that have waited too long. */
void urdma_held_release(struct urdma_holder *holder, uint64_t ns);
void urdma_held_release_all(struct urdma_holder *holder);

#endif
