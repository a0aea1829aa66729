/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits that the hardware around the NIC sets: the most that a load can reach, and the least
 * time that a message can take. They are computed from the settings of the model and the formats of
 * packets, TLPs and queue entries; nothing here is measured. docs/bench.md explains each term.
 */
#ifndef URDMA_BENCH_LIMITS_H
#define URDMA_BENCH_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler.h"

/* Settings of the model that a limit depends on. */
struct limits_model {
	double line;  /* Gb/s of a port */
	double delay; /* ns of a wire */
	double pcie;  /* Gb/s of TLP bytes, each direction */
	double read;  /* ns of a DMA read on an idle link */
	uint32_t mps, mrrs, cpl;
};

void limits_model_of(const struct urdma_cosim_config *config, struct limits_model *m);

/* A figure's limit, and what sets it. */
struct limit {
	double value;
	const char *by;
};

/* Messages of one kind, with always enough of them under way. */
struct limits_load {
	unsigned int type;	  /* URDMA_QPT_*; XRC_INI: the other side has XRC_TGT */
	unsigned int opcode;	  /* URDMA_WR_SEND, _SEND_INV, _WRITE, _READ, _ATOMIC_FA */
	uint32_t len, mtu;	  /* bytes */
	unsigned int sges;	  /* the requester's data are in this many equal pieces; 0: one */
	uint32_t stride;	  /* bytes of a WQE */
	double ahead;		  /* share of the WQEs that were read before the figure begins */
	uint32_t recv_stride;	  /* bytes of a receive WQE */
	unsigned int qps, window; /* WQEs of a QP under way */
	unsigned int signaled;	  /* WQEs per CQE */
	unsigned int doorbell;	  /* WQEs per doorbell */
	bool both_ways;		  /* the same load in the other direction */
	bool loopback;		  /* both QPs behind one port */
	bool srq;		  /* the receive WQEs are those of a shared receive queue */
	bool inlined;		  /* the data are in the WQE; stride has room for them */
	bool requester_dm;	  /* the requester's data are in device memory, */
	bool responder_dm;	  /* the responder's are */
	double loss;		  /* share of the frames that the wire loses */
	/*
	 * A SEND with invalidate of so many bytes follows; CQE and doorbell are for both. 0: none
	 */
	uint32_t answer;
	bool registered; /* the responder has posted a REG_MR for it */
};

/* Million messages a second, in each direction. */
struct limit limits_messages(const struct limits_model *m, const struct limits_load *l);

/* Million frames of the net device per second, from one NIC to the other. len without FCS. */
struct limit limits_frames(const struct limits_model *m, uint32_t len);

/* ---- single frames and transfers ------------------------------------------------------------ */

enum {
	LIMITS_BTH = 12,
	LIMITS_RETH = 16,
	LIMITS_AETH = 4,
	LIMITS_DETH = 8,
	LIMITS_XRCETH = 4,
	LIMITS_IETH = 4,
	LIMITS_GRH = 40, /* in front of a datagram's data */
	LIMITS_ATOMIC_ETH = 28,
	LIMITS_ATOMIC_ACK = 8,
};

/* Bytes of a RoCEv2 frame over IPv4 without FCS; ext: headers after the BTH. */
uint32_t limits_roce(uint32_t ext, uint32_t payload);
/* Bytes of line that a frame occupies, with FCS, preamble and gap. len without FCS. */
uint32_t limits_line(uint32_t len);
/* Beats of a frame on the MAC's streams. */
uint32_t limits_beats(uint32_t len);

/* Nanoseconds from a frame's first bit at one port to its last one at the other. */
double limits_flight(const struct limits_model *m, uint32_t len);
/* Of a DMA read, from its request to the last byte of the answer. */
double limits_dma_read(const struct limits_model *m, uint32_t len);
/* Until a DMA write is in memory; until a doorbell is at the NIC. */
double limits_dma_write(const struct limits_model *m, uint32_t len);
double limits_doorbell(const struct limits_model *m);

#endif
