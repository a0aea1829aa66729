/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of the wire: frames lost, duplicated, reordered, corrupted, delayed, marked. Faults are
 * rules, and each frame on a wire is compared with all of them. A rule selects frames by direction,
 * by fields of the BTH, by the number of matching frames before, at random, or by a combination of
 * these.
 *
 * The effect of a rule on a frame depends only on the seed, the rule's position, the wire, the
 * direction and the number of the frame in that direction. So the same traffic gets the same
 * faults, and traffic of the other direction never changes them.
 *
 * Each fault is counted, can be logged as one line of JSON, and is passed to a callback.
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
	URDMA_FAULT_DUP,     /* copies follow the frame, at once or after a delay */
	URDMA_FAULT_REORDER, /* falls behind frames that were sent after it */
	URDMA_FAULT_CORRUPT, /* one bit is inverted; the FCS is good */
	URDMA_FAULT_FCS,     /* one bit is inverted; the FCS is bad, which the MAC reports */
	URDMA_FAULT_DELAY,
	URDMA_FAULT_ECN, /* congestion experienced, in the IP header */
	URDMA_FAULT_KINDS,
};

/* AETH syndromes that a rule selects. Any value except ANY hits only frames with an AETH. */
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
	unsigned int sides; /* bit n: frames that the port at side n sends; 0: both */
	int wire;	    /* or ANY */
	/* A frame without a BTH matches only ANY in these fields. */
	int32_t qpn;		     /* destination QP in the BTH */
	int32_t psn_first, psn_last; /* inclusive; first > last: wraps around 0 */
	int32_t opcode;		     /* of the BTH */
	enum urdma_fault_aeth aeth;
	/*
	 * Hits count frames (0: all) of the matching ones, starting with the nth (from 1; 0 means
	 * 1). Counted separately for each direction of each wire.
	 */
	uint64_t nth, count;
	uint64_t probability; /* of hitting each of these; 0 means CERTAIN */
	/* Parameters of the fault. 0 means the default, or ANY where 0 is a valid value. */
	unsigned int copies; /* DUP: 1 */
	unsigned int frames; /* REORDER: overtaking frames; 1, or random 1 to 4 if not CERTAIN */
	/*
	 * Times, with their defaults. DUP: delay after the frame, 0. REORDER: maximum delay, 5000.
	 * DELAY: delay, 1000; random from 1 to this value if not CERTAIN.
	 */
	uint64_t ns;
	int32_t byte; /* CORRUPT, FCS: ANY: at random; -2 is the last byte, -3 the one before */
	int32_t bit;  /* 0 to 7, ANY: at random */
};

/* A rule's byte value that counts from the end of the frame. */
#define URDMA_FAULT_FROM_END(n) (-1 - (int32_t)(n))

/* One fault that happened. */
struct urdma_fault_record {
	uint64_t cycle; /* in which the frame's end left the sender; times 4 ns: time in its capture
			 */
	unsigned int wire, side; /* side of the sender */
	uint64_t frame;		 /* number among the sender's frames, from 0 */
	unsigned int rule;	 /* number, from 0, among all rules ever added */
	enum urdma_fault_kind kind;
	int32_t qpn, psn, opcode; /* -1: no BTH */
	uint32_t n;		  /* DUP: copies; REORDER: frames to fall behind */
	uint64_t ns;		  /* DUP, REORDER, DELAY */
	int32_t byte, bit;	  /* CORRUPT, FCS; else -1 */
};

typedef void (*urdma_fault_fn)(void *ctx, const struct urdma_fault_record *record);

struct urdma_faults;

int urdma_faults_create(uint64_t seed, struct urdma_faults **faults);
/* Destroy the wires before, or detach the faults from them. NULL is allowed. */
void urdma_faults_destroy(struct urdma_faults *faults);
/* From now on the rules apply to all frames of this wire. */
int urdma_faults_attach(struct urdma_faults *faults, struct urdma_wire *wire, unsigned int index);

/* Copies the rule. -EINVAL: the rule is not valid. */
int urdma_faults_add(struct urdma_faults *faults, const struct urdma_fault_rule *rule);
/* Removes all rules. The seed, the numbers of frames and the counts continue. */
void urdma_faults_clear(struct urdma_faults *faults);
/* Sets a rule that always matches every frame; the starting point of other rules. */
void urdma_fault_rule_defaults(struct urdma_fault_rule *rule, enum urdma_fault_kind kind);

/*
 * Parses a rule, see docs/cosim.md: KIND[,KEY=VALUE...]. Without p= it hits only the nth frame.
 * -EINVAL: error has the reason.
 */
int urdma_fault_parse(const char *text, struct urdma_fault_rule *rule, char *error, size_t size);
/* Parses a probability in percent: "1", "0.5", "2.5%". -EINVAL: not from 0 to 100. */
int urdma_fault_percent(const char *text, uint64_t *probability);
const char *urdma_fault_name(enum urdma_fault_kind kind);

/* Faults so far, of all wires. side 0, 1. */
uint64_t urdma_faults_count(const struct urdma_faults *faults, unsigned int side,
			    enum urdma_fault_kind kind);
void urdma_faults_watch(struct urdma_faults *faults, urdma_fault_fn fn, void *ctx);
/* Starts the log. -errno if the file cannot be created, -EBUSY if a log is already open. */
int urdma_faults_log(struct urdma_faults *faults, const char *path);
/* Makes the log so far visible to other processes. Returns 0 or the first error of a write. */
int urdma_faults_flush(struct urdma_faults *faults);
/* 0, or the error that ended the log. */
int urdma_faults_log_error(const struct urdma_faults *faults);
/* Ends the log. Returns 0 if every fault is in the file, else the first error. */
int urdma_faults_end_log(struct urdma_faults *faults);

/* ---- looking into a frame ------------------------------------------------------------------- */

struct urdma_roce {
	uint32_t ip;  /* offset of the IP header */
	uint32_t bth; /* offset of the BTH */
	uint32_t end; /* offset of the end of the ICRC, by the UDP length */
	bool ipv6;
	uint8_t opcode;
	uint8_t pad; /* pad bytes after the payload */
	bool solicited, ack_req;
	uint32_t qpn, psn;
	bool has_aeth;
	uint8_t syndrome;
};

/* True for a RoCEv2 packet (UDP 4791 over IPv4 or IPv6, tagged or not) with a whole BTH. */
bool urdma_roce_parse(const uint8_t *frame, size_t len, struct urdma_roce *roce);

#endif
