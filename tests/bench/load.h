/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of one kind on a number of QPs. Each QP has `window` WQEs under way from before the
 * first counted frame until after the last one, so neither start nor end affects a figure.
 */
#ifndef URDMA_BENCH_LOAD_H
#define URDMA_BENCH_LOAD_H

#include "judge.h"

struct load {
	/* Type of the QPs, URDMA_QPT_*; 0: RC. XRC_INI: the other side has targets, and srq has to
	 * be set */
	unsigned int type;
	unsigned int opcode; /* URDMA_WR_SEND, _WRITE, _READ, _ATOMIC_FA */
	unsigned int qps;
	unsigned int mtu; /* 1: 256 .. 5: 4096 */
	uint32_t len;
	unsigned int sges;     /* of the requester; 0: one. Divides len */
	unsigned int doorbell; /* WQEs per doorbell */
	unsigned int signaled; /* WQEs per CQE; divides doorbell */
	unsigned int window;
	bool once; /* post the window once and no more: it is long enough for the figure */
	uint64_t warm, count; /* packets of data before the figure, and in it;
			       * loopback, which passes no port: messages */
	/* Places in memory that the WRITEs or READs of a QP use in turn; 0: one. With as many
	 * places as messages, no page table entry is used twice. */
	unsigned int places;
	bool both_ways, loopback;
	bool srq;     /* one shared receive queue for all QPs */
	bool inlined; /* SEND, WRITE: the data are in the WQE */
	/* The message's memory at its requester or responder is device memory, which needs room for
	 * all messages. */
	bool requester_dm, responder_dm;
	/* WQEs of a QP that may be on chip at the start of the measurement but not at its end: one
	 * fetch of the NIC. The limit allows for them. 0 for a long run */
	unsigned int ahead;
	uint64_t read_latency; /* ns of a DMA read; 0: as the simulator has it */
	double loss;	       /* percent of the frames that the wire loses, in both directions */
};

struct load_result {
	double messages;    /* of a single packet: million a second; the slower direction of both */
	double goodput;	    /* Gb/s, likewise */
	struct limit limit; /* of messages of any length */
	struct losses losses; /* of both NICs; none are counted on a wire that loses frames */
};

void load_run(const char *name, const struct load *l, struct load_result *result);

#endif
