/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common base of engine tests and benchmarks: two NICs on one wire under the embedded host,
 * each with a PD, a memory region and pairs of connected RC QPs.
 */
#ifndef URDMA_TESTS_RIG_H
#define URDMA_TESTS_RIG_H

#include "eth/fault.h"
#include "host/eh_srq.h"
#include "seed.h"
#include "trace/recorder.h"

#include <stdlib.h>

#define RIG_MAX_QPS 64u /* for tests with tables of QPs; config.qps may be larger */

struct rig_config {
	struct urdma_cosim_config cosim;
	struct urdma_embedded_config memory;
	struct urdma_eh_config eh;
	unsigned int qps;     /* pairs of QPs */
	unsigned int type;    /* of the QPs, URDMA_QPT_*; 0: RC */
	const uint8_t *types; /* or one for each QP, the same on both sides */
	bool xrc;	      /* QPs of XRC, and XRC SRQs: rig_sends() says who sends */
	bool xrc_back;	      /* the second half of the QPs sends from side 1 to side 0 */
	unsigned int srqs;    /* of each side: QP i takes its receives from SRQ i % srqs */
	unsigned int log_srq;
	bool loopback; /* QPs of the first half are connected with the second half's, same side */
	bool batch;    /* send many commands at once: a rig of many QPs starts sooner */
	unsigned int mtu; /* 1: 256 .. 5: 4096 */
	bool ipv6;
	size_t buffer; /* bytes of each side's memory region */
	unsigned int log_sq, log_rq;
	unsigned int log_stride;    /* of both rings, */
	unsigned int log_rq_stride; /* or of the send ring alone, if this is not 0 */
	unsigned int log_cqe;
	enum urdma_eh_ring_kind kind;
	bool sig_all;
	bool priv;		   /* kernel QPs: REG_MR is allowed */
	uint64_t no_loop;	   /* one bit per QP: it does not receive what it sends to groups */
	struct urdma_eh_conn conn; /* timers, limits, rights; its MTU is not used */
	bool faults;		   /* the wire may have faults: rig_fault() */
	uint64_t fault_seed;
	/* Directory for pcapng files, which has to exist. NULL: URDMA_TEST_CAPTURE of the
	 * environment, if set. */
	const char *capture;
	/* File of events, from the start. NULL: URDMA_TEST_EVENTS of the environment, if set. */
	const char *events;
	const struct urdma_model_ops *model; /* NULL: the Verilated NIC */
};

struct rig_side {
	struct urdma_eh *eh;
	struct urdma_eh_mr mr;
	uint8_t *buffer;
	struct urdma_eh_cq send_cq, recv_cq;
	struct urdma_eh_qp *qp;	  /* config.qps of them */
	struct urdma_eh_srq *srq; /* config.srqs of them */
};

struct rig {
	struct rig_config config;
	struct urdma_cosim *cosim;
	struct urdma_embedded *host;
	struct urdma_faults *faults;
	struct urdma_recorder *recorder;	    /* NULL: without events */
	struct rig_side side[URDMA_COSIM_MAX_NICS]; /* one for each NIC */
	bool waves;				    /* are being written */
};

/*
 * Two NICs, one pair of QPs, MTU 4096, IPv4, 4 MB, rings of 256 entries of 64 bytes, scattered
 * pages. QP i of one NIC is connected to QP i of the other. The test connects any further NICs.
 */
void rig_defaults(struct rig_config *config);
/* Ends the process with a message when a step fails, because no test could go on. */
void rig_start(struct rig *rig, const struct rig_config *config);
void rig_stop(struct rig *rig);
/* With xrc: whether QP i of a side is the initiator, which sends. QP i of the other side is the
 * target. */
bool rig_sends(const struct rig *rig, unsigned int side, unsigned int i);
/* Replaces QP i of a side, which was destroyed, by a new QP with its number, in RESET. */
void rig_renew_qp(struct rig *rig, unsigned int side, unsigned int i);
/* Makes QP i of a side that has none; makes CQs, SRQs and QPs of a side that has none. QPs are in
 * RESET. */
void rig_make_qp(struct rig *rig, unsigned int side, unsigned int i);
void rig_make_queues(struct rig *rig, unsigned int side);
/*
 * Resets the function of a side at any moment, and makes its objects again. The memory of the old
 * objects is not reused.
 */
void rig_restart_side(struct rig *rig, unsigned int side);
/* Numbers of the objects of a rig. */
#define RIG_PD	    1u
#define RIG_XRCD    0x21u
#define RIG_DB_PAGE 5u
#define RIG_QPN(i)  (0x10u + (i))
#define RIG_SRQN(i) (0x07u + (i))

/* Sets a fault of the wire from now on, in the syntax of urdma_fault_parse(); printf-like. Exits if
 * it is wrong. */
void rig_fault(struct rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Faults of a kind so far that hit frames of a side. */
uint64_t rig_fault_count(const struct rig *rig, unsigned int side, enum urdma_fault_kind kind);

/* Fails the process when the simulation has found a fault (RTL, PCIe rules, stall). */
void rig_check(struct rig *rig, int result, const char *what);

/* Ends without destroying objects, for tests that have left them in another state. */
void rig_abandon(struct rig *rig);

/* Bytes that a seed determines. rig_verify() returns how many bytes from the start are right: len
 * if all are. */
void rig_fill(void *p, size_t len, uint32_t seed);
size_t rig_verify(const void *p, size_t len, uint32_t seed);

/*
 * Sends one message of len bytes from side `from` on pair i, waits for it and compares it. Source
 * and target are the region at offset `at`. The CQs must contain nothing else. A failure fails the
 * cmocka test, not the process.
 */
void rig_message(struct rig *rig, unsigned int i, unsigned int from, size_t at, uint32_t len,
		 uint32_t seed);

/* Prints every counter of both NICs that is not 0, on stderr. */
void rig_print_counters(const struct rig *rig);

/* State of a QP according to QUERY_QP. Fails the cmocka test when the command fails. */
unsigned int rig_qp_state(struct urdma_eh_qp *qp);

/* The longest time-out that a test may wait for, in ns: test_same.sh clocks the NICs through it
 * instead of skipping. */
static inline uint64_t rig_longest_wait(void)
{
	return getenv("URDMA_TEST_SHORT_WAITS") ? 300000 : UINT64_MAX;
}

/* Like rnd_below(), of 32 bits. */
static inline uint32_t rig_draw(uint64_t *state, uint32_t n)
{
	return (uint32_t)rnd_below(state, n);
}

/* A message length of at most max: small, near a multiple of the MTU, or any. */
uint32_t rig_draw_len(uint64_t *state, uint32_t mtu, uint32_t max);

/*
 * Whether the program's arguments choose a case: one of them is contained in its name, or equals it
 * after a '='. Without arguments every case is chosen.
 */
bool rig_wanted(const char *name, int n, char **words);
/*
 * Whether a case is left out. test_same.sh clocks through all waits, so it runs only one case in
 * `one_in` of a test that takes long, chosen by name and SEED.
 */
bool rig_left_out(const char *name, unsigned int one_in);

/* A 64-bit digest (FNV-1a) of bytes, to compare runs. */
uint64_t rig_hash(uint64_t hash, const void *p, size_t len);
/* Adds the fields of a CQE, without the reserved bits between them. */
uint64_t rig_hash_cqe(uint64_t hash, const struct urdma_eh_cqe *cqe);
#define RIG_HASH_START 0xcbf29ce484222325ull

#endif
