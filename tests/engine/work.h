/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages for engine tests, of any opcode. The functions lay out and fill memory and post the
 * WQEs. Afterwards they compare every CQE and every byte, also those that may not change.
 *
 * A message has a slot of bytes at the same offset of both sides' regions. Its data are in up to
 * WORK_SGES pieces in each slot, with gaps between them; the rest of the slot is guard.
 */
#ifndef URDMA_TESTS_WORK_H
#define URDMA_TESTS_WORK_H

#include "rig.h"

#define WORK_SGES  8u
#define WORK_GUARD 64u

struct work {
	/* Set by the caller. */
	unsigned int opcode; /* URDMA_WR_*, SEND to ATOMIC, FLUSH, ATOMIC_WRITE */
	unsigned int from, pair;
	size_t at; /* of the slot, in both regions */
	uint32_t len;
	uint32_t seed;
	unsigned int pieces,
		odd; /* of the SGE lists: how many (0: 1); offset of the data in the slot */
	bool unsignaled, solicited, fence;
	bool late_recv; /* work_put_recv() is called later, or never */
	bool inlined;
	uint32_t inv; /* SEND_INV: key at the peer */

	/* Set by work_put(). */
	size_t slot;	   /* bytes */
	uint8_t *image[2]; /* expected contents of the slots of the requester and the responder */
	struct urdma_eh_sge sge[2][WORK_SGES]; /* requester's, responder's */
	unsigned int n_sge[2];
	uint32_t sq_index, rq_index;
	uint64_t compare, swap_add;
};

const char *work_name(unsigned int opcode);
bool work_takes_recv(unsigned int opcode);
bool work_is_atomic(unsigned int opcode);
/* FLUSH, ATOMIC WRITE: answered by a READ response of 0 bytes; len of a FLUSH: of its range */
bool work_is_mpe(unsigned int opcode);
/* Number of PSNs that it takes, and bytes of a slot that is long enough for it. */
uint32_t work_psns(unsigned int opcode, uint32_t len, unsigned int mtu);
size_t work_slot(uint32_t len);

/* Fills memory and writes the WQEs; rings nothing. */
void work_put(struct rig *rig, struct work *w);
void work_put_recv(struct rig *rig, struct work *w);
/* Checks both slots; fails the test if they are wrong. Frees the images. */
void work_check_memory(struct rig *rig, struct work *w);
void work_check_send(struct rig *rig, const struct work *w, const struct urdma_eh_cqe *cqe);
void work_check_recv(struct rig *rig, const struct work *w, const struct urdma_eh_cqe *cqe);

/* Rings the doorbells of the QPs that these use, at most two for each QP. */
void work_ring(struct rig *rig, const struct work *w, size_t n);
/*
 * Waits for the completion of messages that were posted, in order for each QP; compares CQEs and
 * memory. The CQs must not get other CQEs. what: for messages.
 */
void work_finish(struct rig *rig, struct work *w, size_t n, uint64_t limit, const char *what);
/*
 * The same while CQEs of others come: other() says whether it takes a CQE. It is called outside of
 * the simulation, so it may fail the test.
 */
typedef bool (*work_other_fn)(void *ctx, unsigned int side, const struct urdma_eh_cqe *cqe);
void work_finish_beside(struct rig *rig, struct work *w, size_t n, uint64_t limit, const char *what,
			work_other_fn other, void *ctx);
/* Posts, rings, waits and compares. */
void work_run(struct rig *rig, struct work *w, size_t n, uint64_t limit, const char *what);

/*
 * Describes messages of several kinds, both ways, for a pair of QPs that must not be disturbed by
 * what happens to others. at: of the first slot. Returns how many: WORK_BYSTANDERS.
 */
#define WORK_BYSTANDERS 8u
size_t work_bystanders(struct work *w, unsigned int pair, size_t at);

#endif
