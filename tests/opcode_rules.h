/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lengths that a packet of each opcode may have, and what happens to a packet of another
 * length: volume 1, 9.2 and table 38 (headers), 9.6.1, 9.7.4.1 and 9.8 (validation),
 * docs/hardware-interface.md section 14. One table for the tests of urdma_rx and of the whole NIC.
 */
#ifndef URDMA_TESTS_OPCODE_RULES_H
#define URDMA_TESTS_OPCODE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPC_RC	0x20u /* opcodes below are those of the reliable connection */
#define OPC_ALL 0x100u

/* By the upper three bits of the opcode */
enum opc_transport { OPC_T_RC, OPC_T_UC, OPC_T_UD, OPC_T_XRC, OPC_T_OTHER };

enum opc_kind {
	OPC_RESERVED,
	OPC_SEND,
	OPC_WRITE,
	OPC_READ,
	OPC_ATOMIC,
	OPC_FLUSH, /* this and the next: annex A19, answered like a READ of 0 bytes */
	OPC_ATOMIC_WRITE,
	OPC_READ_RSP,
	OPC_ATOMIC_ACK,
	OPC_ACK,
};

enum opc_place { OPC_FIRST, OPC_MIDDLE, OPC_LAST, OPC_ONLY };

/* Payload, by the path MTU; the pad is not part of it. */
enum opc_length {
	OPC_NONE,  /* 0 */
	OPC_FULL,  /* MTU */
	OPC_SOME,  /* 1 to MTU */
	OPC_UP_TO, /* 0 to MTU */
	OPC_EIGHT, /* 8 */
};

struct opc_rule {
	const char *name; /* NULL: reserved */
	enum opc_kind kind;
	enum opc_place place;
	enum opc_length length;
	uint8_t ext; /* bytes of extended headers after the BTH */
	bool imm, inv;
};

static const struct opc_rule opc_rules[OPC_ALL] = {
	[0x00] = { "SEND FIRST", OPC_SEND, OPC_FIRST, OPC_FULL, 0, 0, 0 },
	[0x01] = { "SEND MIDDLE", OPC_SEND, OPC_MIDDLE, OPC_FULL, 0, 0, 0 },
	[0x02] = { "SEND LAST", OPC_SEND, OPC_LAST, OPC_SOME, 0, 0, 0 },
	[0x03] = { "SEND LAST with immediate", OPC_SEND, OPC_LAST, OPC_SOME, 4, 1, 0 },
	[0x04] = { "SEND ONLY", OPC_SEND, OPC_ONLY, OPC_UP_TO, 0, 0, 0 },
	[0x05] = { "SEND ONLY with immediate", OPC_SEND, OPC_ONLY, OPC_UP_TO, 4, 1, 0 },
	[0x06] = { "WRITE FIRST", OPC_WRITE, OPC_FIRST, OPC_FULL, 16, 0, 0 },
	[0x07] = { "WRITE MIDDLE", OPC_WRITE, OPC_MIDDLE, OPC_FULL, 0, 0, 0 },
	[0x08] = { "WRITE LAST", OPC_WRITE, OPC_LAST, OPC_SOME, 0, 0, 0 },
	[0x09] = { "WRITE LAST with immediate", OPC_WRITE, OPC_LAST, OPC_SOME, 4, 1, 0 },
	[0x0a] = { "WRITE ONLY", OPC_WRITE, OPC_ONLY, OPC_UP_TO, 16, 0, 0 },
	[0x0b] = { "WRITE ONLY with immediate", OPC_WRITE, OPC_ONLY, OPC_UP_TO, 20, 1, 0 },
	[0x0c] = { "READ request", OPC_READ, OPC_ONLY, OPC_NONE, 16, 0, 0 },
	[0x0d] = { "READ response FIRST", OPC_READ_RSP, OPC_FIRST, OPC_FULL, 4, 0, 0 },
	[0x0e] = { "READ response MIDDLE", OPC_READ_RSP, OPC_MIDDLE, OPC_FULL, 0, 0, 0 },
	[0x0f] = { "READ response LAST", OPC_READ_RSP, OPC_LAST, OPC_SOME, 4, 0, 0 },
	[0x10] = { "READ response ONLY", OPC_READ_RSP, OPC_ONLY, OPC_UP_TO, 4, 0, 0 },
	[0x11] = { "ACK", OPC_ACK, OPC_ONLY, OPC_NONE, 4, 0, 0 },
	[0x12] = { "ATOMIC acknowledge", OPC_ATOMIC_ACK, OPC_ONLY, OPC_NONE, 12, 0, 0 },
	[0x13] = { "compare and swap", OPC_ATOMIC, OPC_ONLY, OPC_NONE, 28, 0, 0 },
	[0x14] = { "fetch and add", OPC_ATOMIC, OPC_ONLY, OPC_NONE, 28, 0, 0 },
	[0x16] = { "SEND LAST with invalidate", OPC_SEND, OPC_LAST, OPC_SOME, 4, 0, 1 },
	[0x17] = { "SEND ONLY with invalidate", OPC_SEND, OPC_ONLY, OPC_UP_TO, 4, 0, 1 },
	[0x1c] = { "FLUSH", OPC_FLUSH, OPC_ONLY, OPC_NONE, 20, 0, 0 },
	[0x1d] = { "ATOMIC WRITE", OPC_ATOMIC_WRITE, OPC_ONLY, OPC_EIGHT, 16, 0, 0 },
	[0x20] = { "UC SEND FIRST", OPC_SEND, OPC_FIRST, OPC_FULL, 0, 0, 0 },
	[0x21] = { "UC SEND MIDDLE", OPC_SEND, OPC_MIDDLE, OPC_FULL, 0, 0, 0 },
	[0x22] = { "UC SEND LAST", OPC_SEND, OPC_LAST, OPC_SOME, 0, 0, 0 },
	[0x23] = { "UC SEND LAST with immediate", OPC_SEND, OPC_LAST, OPC_SOME, 4, 1, 0 },
	[0x24] = { "UC SEND ONLY", OPC_SEND, OPC_ONLY, OPC_UP_TO, 0, 0, 0 },
	[0x25] = { "UC SEND ONLY with immediate", OPC_SEND, OPC_ONLY, OPC_UP_TO, 4, 1, 0 },
	[0x26] = { "UC WRITE FIRST", OPC_WRITE, OPC_FIRST, OPC_FULL, 16, 0, 0 },
	[0x27] = { "UC WRITE MIDDLE", OPC_WRITE, OPC_MIDDLE, OPC_FULL, 0, 0, 0 },
	[0x28] = { "UC WRITE LAST", OPC_WRITE, OPC_LAST, OPC_SOME, 0, 0, 0 },
	[0x29] = { "UC WRITE LAST with immediate", OPC_WRITE, OPC_LAST, OPC_SOME, 4, 1, 0 },
	[0x2a] = { "UC WRITE ONLY", OPC_WRITE, OPC_ONLY, OPC_UP_TO, 16, 0, 0 },
	[0x2b] = { "UC WRITE ONLY with immediate", OPC_WRITE, OPC_ONLY, OPC_UP_TO, 20, 1, 0 },
	[0x64] = { "UD SEND ONLY", OPC_SEND, OPC_ONLY, OPC_UP_TO, 8, 0, 0 },
	[0x65] = { "UD SEND ONLY with immediate", OPC_SEND, OPC_ONLY, OPC_UP_TO, 12, 1, 0 },
	/* of XRC: those of RC; requests with 4 bytes more, the XRCETH */
	[0xa0] = { "XRC SEND FIRST", OPC_SEND, OPC_FIRST, OPC_FULL, 4, 0, 0 },
	[0xa1] = { "XRC SEND MIDDLE", OPC_SEND, OPC_MIDDLE, OPC_FULL, 4, 0, 0 },
	[0xa2] = { "XRC SEND LAST", OPC_SEND, OPC_LAST, OPC_SOME, 4, 0, 0 },
	[0xa3] = { "XRC SEND LAST with immediate", OPC_SEND, OPC_LAST, OPC_SOME, 8, 1, 0 },
	[0xa4] = { "XRC SEND ONLY", OPC_SEND, OPC_ONLY, OPC_UP_TO, 4, 0, 0 },
	[0xa5] = { "XRC SEND ONLY with immediate", OPC_SEND, OPC_ONLY, OPC_UP_TO, 8, 1, 0 },
	[0xa6] = { "XRC WRITE FIRST", OPC_WRITE, OPC_FIRST, OPC_FULL, 20, 0, 0 },
	[0xa7] = { "XRC WRITE MIDDLE", OPC_WRITE, OPC_MIDDLE, OPC_FULL, 4, 0, 0 },
	[0xa8] = { "XRC WRITE LAST", OPC_WRITE, OPC_LAST, OPC_SOME, 4, 0, 0 },
	[0xa9] = { "XRC WRITE LAST with immediate", OPC_WRITE, OPC_LAST, OPC_SOME, 8, 1, 0 },
	[0xaa] = { "XRC WRITE ONLY", OPC_WRITE, OPC_ONLY, OPC_UP_TO, 20, 0, 0 },
	[0xab] = { "XRC WRITE ONLY with immediate", OPC_WRITE, OPC_ONLY, OPC_UP_TO, 24, 1, 0 },
	[0xac] = { "XRC READ request", OPC_READ, OPC_ONLY, OPC_NONE, 20, 0, 0 },
	[0xad] = { "XRC READ response FIRST", OPC_READ_RSP, OPC_FIRST, OPC_FULL, 4, 0, 0 },
	[0xae] = { "XRC READ response MIDDLE", OPC_READ_RSP, OPC_MIDDLE, OPC_FULL, 0, 0, 0 },
	[0xaf] = { "XRC READ response LAST", OPC_READ_RSP, OPC_LAST, OPC_SOME, 4, 0, 0 },
	[0xb0] = { "XRC READ response ONLY", OPC_READ_RSP, OPC_ONLY, OPC_UP_TO, 4, 0, 0 },
	[0xb1] = { "XRC ACK", OPC_ACK, OPC_ONLY, OPC_NONE, 4, 0, 0 },
	[0xb2] = { "XRC ATOMIC acknowledge", OPC_ATOMIC_ACK, OPC_ONLY, OPC_NONE, 12, 0, 0 },
	[0xb3] = { "XRC compare and swap", OPC_ATOMIC, OPC_ONLY, OPC_NONE, 32, 0, 0 },
	[0xb4] = { "XRC fetch and add", OPC_ATOMIC, OPC_ONLY, OPC_NONE, 32, 0, 0 },
	[0xb6] = { "XRC SEND LAST with invalidate", OPC_SEND, OPC_LAST, OPC_SOME, 8, 0, 1 },
	[0xb7] = { "XRC SEND ONLY with invalidate", OPC_SEND, OPC_ONLY, OPC_UP_TO, 8, 0, 1 },
	[0xbc] = { "XRC FLUSH", OPC_FLUSH, OPC_ONLY, OPC_NONE, 24, 0, 0 },
	[0xbd] = { "XRC ATOMIC WRITE", OPC_ATOMIC_WRITE, OPC_ONLY, OPC_EIGHT, 20, 0, 0 },
};

static inline enum opc_transport opc_transport(unsigned int opcode)
{
	return opcode >> 5 == 0	  ? OPC_T_RC
	       : opcode >> 5 == 1 ? OPC_T_UC
	       : opcode >> 5 == 3 ? OPC_T_UD
	       : opcode >> 5 == 5 ? OPC_T_XRC
				  : OPC_T_OTHER;
}

static inline bool opc_is_response(enum opc_kind kind)
{
	return kind == OPC_READ_RSP || kind == OPC_ATOMIC_ACK || kind == OPC_ACK;
}

/* Bytes of the XRCETH, which comes before the other extended headers. */
static inline unsigned int opc_xrceth(unsigned int opcode)
{
	const struct opc_rule *r = &opc_rules[opcode];

	if (opc_transport(opcode) != OPC_T_XRC || !r->name)
		return 0;
	return opc_is_response(r->kind) ? 0 : 4;
}

/* Between the headers and the ICRC: room bytes, of which the last pad are not payload. */
struct opc_shape {
	unsigned int room, pad;
};

/* The message in progress at the responder when the packet arrives. */
enum opc_before { OPC_IDLE, OPC_IN_SEND, OPC_IN_WRITE };
#define OPC_BEFORES 3

enum opc_verdict {
	OPC_TAKEN,
	OPC_MALFORMED, /* dropped without an answer, RX_MALFORMED */
	OPC_NO_QP,     /* dropped without an answer, RX_NO_QP */
	OPC_REFUSED,   /* NAK 0x61, "invalid request"; the responder's QP goes to ERR */
	OPC_DROPPED,   /* UC, UD: RX_DROP_UNREL, like the rest of its message; the QP goes on */
	OPC_BAD_RSP,   /* no answer; the READ ends with BAD_RESP_ERR, the requester's QP goes to ERR
			*/
};

/* The position in which a packet of this kind is in sequence. */
static inline enum opc_before opc_wants(const struct opc_rule *r)
{
	if (r->place == OPC_FIRST || r->place == OPC_ONLY || opc_is_response(r->kind))
		return OPC_IDLE;
	return r->kind == OPC_SEND ? OPC_IN_SEND : OPC_IN_WRITE;
}

static inline bool opc_length_good(enum opc_length rule, unsigned int mtu, unsigned int len)
{
	switch (rule) {
	case OPC_FULL:
		return len == mtu;
	case OPC_SOME:
		return len >= 1 && len <= mtu;
	case OPC_UP_TO:
		return len <= mtu;
	case OPC_EIGHT:
		return len == 8;
	default:
		return len == 0;
	}
}

/*
 * Everything else about the packet is right: addresses, PSN, keys, and the length in its RETH, or
 * of the READ that it answers.
 */
static inline enum opc_verdict opc_verdict(unsigned int opcode, enum opc_before before,
					   unsigned int mtu, struct opc_shape s)
{
	const struct opc_rule *any = &opc_rules[opcode], *r = opcode < OPC_RC ? any : NULL;
	bool response = r && opc_is_response(r->kind);

	/* the pad fills the payload to whole words, and belongs to it */
	if (s.room % 4 || s.pad > s.room || s.room > 4096)
		return OPC_MALFORMED;
	if ((any->kind == OPC_ACK || any->kind == OPC_ATOMIC_ACK) && s.room)
		return OPC_MALFORMED;
	if (!r)
		return OPC_NO_QP;
	if (!r->name || (!response && opc_wants(r) != before))
		return OPC_REFUSED;
	if (opc_length_good(r->length, mtu, s.room - s.pad))
		return OPC_TAKEN;
	return response ? OPC_BAD_RSP : OPC_REFUSED;
}

/*
 * The same for two XRC QPs, a target for requests and an initiator for answers. A reserved opcode
 * has no XRCETH and names no SRQ: the WQE of a SEND that it aborts is left to the flush.
 */
static inline enum opc_verdict opc_verdict_xrc(unsigned int opcode, enum opc_before before,
					       unsigned int mtu, struct opc_shape s)
{
	bool xrc = opc_transport(opcode) == OPC_T_XRC;
	enum opc_verdict v = opc_verdict(xrc ? opcode & 0x1f : opcode, before, mtu, s);

	return xrc || v == OPC_MALFORMED ? v : OPC_NO_QP;
}

/* The same for a QP of UC or UD, whose packets are never answered. */
static inline enum opc_verdict opc_verdict_unrel(enum opc_transport qp, unsigned int opcode,
						 enum opc_before before, unsigned int mtu,
						 struct opc_shape s)
{
	const struct opc_rule *r = &opc_rules[opcode];

	if (s.room % 4 || s.pad > s.room || s.room > 4096)
		return OPC_MALFORMED;
	if ((r->kind == OPC_ACK || r->kind == OPC_ATOMIC_ACK) && s.room)
		return OPC_MALFORMED;
	if (opc_transport(opcode) != qp)
		return OPC_NO_QP;
	/* FIRST and ONLY abort a message and begin another one */
	if (!r->name ||
	    ((r->place == OPC_MIDDLE || r->place == OPC_LAST) && opc_wants(r) != before))
		return OPC_DROPPED;
	return opc_length_good(r->length, mtu, s.room - s.pad) ? OPC_TAKEN : OPC_DROPPED;
}

/*
 * The length of the message to which a packet of len bytes belongs, such that only the packet's
 * length is wrong, and not the sum. LAST follows one packet, MIDDLE follows one and precedes
 * another. An empty LAST fits no sum.
 */
static inline unsigned int opc_message(const struct opc_rule *r, unsigned int mtu, unsigned int len)
{
	switch (r->place) {
	case OPC_FIRST:
		return r->kind == OPC_WRITE ? len + 1 : 2 * mtu;
	case OPC_MIDDLE:
		return r->kind == OPC_WRITE ? mtu + len + 1 : 3 * mtu;
	case OPC_LAST:
		len = len ? len : 1;
		/* a READ that a LAST ends has at most two packets */
		return mtu + (r->kind == OPC_READ_RSP && len > mtu ? mtu : len);
	default:
		if (r->kind == OPC_ATOMIC_ACK)
			return 8;
		return r->kind == OPC_READ_RSP && len > mtu ? mtu : len;
	}
}

/* Lengths around each limit, with every pad; some are not whole words. */
#define OPC_SHAPES 41
static inline void opc_shapes(unsigned int mtu, struct opc_shape shape[OPC_SHAPES])
{
	const unsigned int words[] = { 0, 4, 8, mtu - 4, mtu, mtu + 4, 2 * mtu };
	const unsigned int odd[] = { 1, 2, 3, mtu - 1, mtu + 1, mtu + 2 };
	size_t n = 0;

	for (unsigned int pad = 0; pad < 4; pad++)
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			shape[n++] = (struct opc_shape){ words[i], pad };
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		shape[n++] = (struct opc_shape){ odd[i], 0 };
		/* the pad that would fill the room to whole words */
		shape[n++] = (struct opc_shape){ odd[i], -odd[i] & 3 };
	}
	shape[n++] = (struct opc_shape){ mtu / 2, 1 };
}

#endif
