/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects the wire checker of tests/wire to both ports of a rig, from its start on. Checks the
 * rules of the reliable connection, and compares the NICs' counters with what the ports sent and
 * received.
 */
#ifndef URDMA_TESTS_JUDGE_H
#define URDMA_TESTS_JUDGE_H

#include "rc_check.h"
#include "rig.h"

struct judge {
	struct rig *rig;
	struct judge_port {
		struct rc_check *check;
		struct judge_frame *first, *last; /* not yet known to be received or dropped */
		uint64_t full;			  /* frames that the NIC had no room for */
		uint64_t last_ns;
		uint64_t before[16]; /* the compared counters at the start */
		/* Set by the caller: received packets with a reserved opcode. */
		uint64_t strange;
	} port[2];
	/*
	 * Set by the caller: a NIC was reset, and its counters with it, so they are not compared.
	 */
	bool reset;
};

/*
 * To be called before any traffic. QPs have the same number on both sides. lives: QPs are connected
 * again. MTU and time-out are those of the rig.
 */
void judge_start(struct judge *judge, struct rig *rig, bool lives);
/*
 * The QPs of a pair are in RESET, and will be connected with these PSNs: side 0 sends from psn0 on,
 * side 1 from psn1 on. Not with lives.
 */
void judge_connect(struct judge *judge, unsigned int pair, uint32_t psn0, uint32_t psn1);
/* The QP of a side is about to go to ERR: its packets are not judged until judge_connect(). */
void judge_stop(struct judge *judge, unsigned int side, unsigned int pair);
/*
 * To be called when all traffic has ended. If a rule was broken or a counter is wrong, prints all
 * messages on stderr and fails the test. what: for messages.
 */
void judge_end(struct judge *judge, const char *what);
/* Ends without a verdict, when the test has already failed. */
void judge_drop(struct judge *judge);

#endif
