/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the wire: frames lost, doubled, out of order, changed, late, marked. They are rules,
 * and each frame on a wire is held against all of them. A rule says which frames it hits: by
 * direction, by what their BTH holds, by how many such frames went before, by chance, or by all of
 * these together.
 *
 * What a rule does to a frame depends on the seed, the rule's place among the rules, the wire, the
 * direction and the frame's number in it, and on nothing else: the same traffic meets the same
 * faults, and traffic of the other direction never changes them.
 *
 * Each fault is counted, can be written to a log, one line of JSON each, and is told to a callback.
 */
#ifndef URDMA_COSIM_FAULT_H
#define URDMA_COSIM_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eth/wire.h"

#define URDMA_FAULT_MAX_WIRES 32u

enum urdma_fault_kind {
	URDMA_FAULT_DROP,
	URDMA_FAULT_DUP,     /* copies follow the frame, at once or some time later */
	URDMA_FAULT_REORDER, /* falls behind frames that were sent after it */
	URDMA_FAULT_CORRUPT, /* one bit is inverted, and the FCS is good all the same */
	URDMA_FAULT_FCS,     /* one bit is inverted, and the FCS is bad: the MAC says so */
	URDMA_FAULT_DELAY,
	URDMA_FAULT_ECN, /* congestion experienced, in the IP header */
	URDMA_FAULT_KINDS,
};

/* Which acknowledgements: AETH syndromes. With any but ANY a rule hits frames with an AETH only. */
enum urdma_fault_aeth {
	URDMA_FAULT_AETH_ANY,
	URDMA_FAULT_AETH_ACK,
	URDMA_FAULT_AETH_RNR,
	URDMA_FAULT_AETH_NAK,
};

#define URDMA_FAULT_CERTAIN (UINT64_C(1) << 32) /* probabilities are in units of 2^-32 */
#define URDMA_FAULT_ANY	    (-1)

struct urdma_fault_rule {
	enum urdma_fault_kind kind;
	unsigned int sides; /* bit n: frames that the port at side n has sent; 0: both */
	int wire;	    /* or ANY */
	/* A frame without a BTH matches none of these but ANY. */
	int32_t qpn;		     /* destination QP in the BTH */
	int32_t psn_first, psn_last; /* inclusive, first may be above last: around 0 */
	int32_t opcode;		     /* of the BTH */
	enum urdma_fault_aeth aeth;
	/*
	 * Of the frames that match, counted for each direction of each wire apart: the nth (from 1;
	 * 0 is 1) and what follows, count of them (0: all).
	 */
	uint64_t nth, count;
	uint64_t probability; /* with which one of these is hit; 0 is CERTAIN */
	/* How. 0 or, where 0 means something, ANY stands for the default. */
	unsigned int copies; /* DUP: 1 */
	unsigned int frames; /* REORDER: behind so many; 1, or 1 to 4 at random if not CERTAIN */
	/*
	 * DUP: so much later than the frame, 0. REORDER: no longer than that, 5000. DELAY: 1000, or
	 * 1 to that at random if not CERTAIN.
	 */
	uint64_t ns;
	int32_t byte; /* CORRUPT, FCS: ANY: at random; -2 is the last byte, -3 the one before */
	int32_t bit;  /* 0 to 7, ANY: at random */
};

/* From its end: byte of a rule. */
#define URDMA_FAULT_FROM_END(n) (-1 - (int32_t)(n))

/* One fault that happened. */
struct urdma_fault_record {
	uint64_t cycle; /* in which the frame's end left the sender; times 4 ns: time in its capture
			 */
	unsigned int wire, side; /* side of the sender */
	uint64_t frame;		 /* number among those the sender has sent, from 0 */
	enum urdma_fault_kind kind;
	int32_t qpn, psn, opcode; /* -1: no BTH */
	uint32_t n;		  /* DUP: copies; REORDER: frames to fall behind */
	uint64_t ns;		  /* DUP, REORDER, DELAY */
	int32_t byte, bit;	  /* CORRUPT, FCS; else -1 */
};

typedef void (*urdma_fault_fn)(void *ctx, const struct urdma_fault_record *record);

struct urdma_faults;

int urdma_faults_create(uint64_t seed, struct urdma_faults **faults);
/* The wires have to be gone, or the faults detached from them. NULL is allowed. */
void urdma_faults_destroy(struct urdma_faults *faults);
/* From now on all frames of this wire are held against the rules. */
int urdma_faults_attach(struct urdma_faults *faults, struct urdma_wire *wire, unsigned int index);

/* Copies the rule. -EINVAL: it makes no sense. */
int urdma_faults_add(struct urdma_faults *faults, const struct urdma_fault_rule *rule);
/* Forgets all rules. The seed, the numbers of frames and the counts go on. */
void urdma_faults_clear(struct urdma_faults *faults);
/* Matches every frame, always: what rules are made from. */
void urdma_fault_rule_defaults(struct urdma_fault_rule *rule, enum urdma_fault_kind kind);

/*
 * A rule out of text, see docs/cosim.md: KIND[,KEY=VALUE...]. Without p= it hits the nth frame
 * only. -EINVAL: error tells why.
 */
int urdma_fault_parse(const char *text, struct urdma_fault_rule *rule, char *error, size_t size);
/* "1", "0.5", "2.5%", all percent, as a probability. -EINVAL: not from 0 to 100. */
int urdma_fault_percent(const char *text, uint64_t *probability);
const char *urdma_fault_name(enum urdma_fault_kind kind);

/* Faults so far, of all wires. side 0, 1. */
uint64_t urdma_faults_count(const struct urdma_faults *faults, unsigned int side,
			    enum urdma_fault_kind kind);
void urdma_faults_watch(struct urdma_faults *faults, urdma_fault_fn fn, void *ctx);
/* Begins the log. -errno when the file cannot be made, -EBUSY: there is one already. */
int urdma_faults_log(struct urdma_faults *faults, const char *path);
/* What was logged can be read by others. Returns 0 or the first error of a write. */
int urdma_faults_flush(struct urdma_faults *faults);
/* 0, or the error after which nothing more is logged. */
int urdma_faults_log_error(const struct urdma_faults *faults);
/* Ends the log. Returns 0 if every fault is in the file, else the first error. */
int urdma_faults_end_log(struct urdma_faults *faults);

/* ---- looking into a frame ------------------------------------------------------------------- */

struct urdma_roce {
	uint32_t ip;  /* offset of the IP header */
	uint32_t bth; /* offset of the BTH */
	uint32_t end; /* offset behind the ICRC, by the UDP length */
	bool ipv6;
	uint8_t opcode;
	uint8_t pad; /* bytes behind the payload */
	bool solicited, ack_req;
	uint32_t qpn, psn;
	bool has_aeth;
	uint8_t syndrome;
};

/* True for a RoCEv2 packet (UDP 4791 over IPv4 or IPv6, tagged or not) with a whole BTH. */
bool urdma_roce_parse(const uint8_t *frame, size_t len, struct urdma_roce *roce);

#endif
