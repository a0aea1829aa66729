/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire checker of tests/wire, watching both ports of a rig from its start on: the rules of the
 * reliable connection, and the NICs' counters against what the ports sent and received.
 */
#ifndef URDMA_TESTS_JUDGE_H
#define URDMA_TESTS_JUDGE_H

#include "rc_check.h"
#include "rig.h"

struct judge {
	struct rig *rig;
	struct judge_port {
		struct rc_check *check;
		struct judge_frame *first, *last; /* frames that wait for what the NIC says */
		uint64_t full;			  /* frames the NIC had no room for */
		uint64_t last_ns;
		uint64_t before[16]; /* counters at the start, of those compared */
		/* The caller's: packets that came with an opcode that there is not. */
		uint64_t strange;
	} port[2];
	/* The caller's: a NIC was reset, and its counters with it. They are not compared. */
	bool reset;
};

/*
 * Before any traffic; QPs have the same number on both sides. lives: QPs are connected again.
 * MTU and time-out are the rig's.
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
 * With all traffic at rest. Fails the test, after what was to be said on stderr, when a rule was
 * broken, or when a counter is not what was seen. what: for messages.
 */
void judge_end(struct judge *judge, const char *what);
/* Without a verdict: the test has failed already. */
void judge_drop(struct judge *judge);

#endif
