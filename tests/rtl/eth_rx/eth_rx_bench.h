/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of urdma_eth_rx: MAC, classes, host memory with rings and buffers, PCIe,
 * completions. All outputs are checked here in every cycle: protocol, addresses, bytes,
 * completions, counters.
 */
#ifndef ETH_RX_BENCH_H
#define ETH_RX_BENCH_H

#include "eth_rx_ref.h"

#define SLOTS 1024 /* buffers of a queue that may be outstanding */

struct bench_queue {
	bool enabled; /* as software sees it: until active has fallen */
	uint8_t log, buf64;
	uint16_t pi, ci, wnext; /* posted, completed, written to */
	uint64_t addr[SLOTS];	/* of buffers, by index */
	uint64_t ring[32768];
	uint16_t db_last;
};

/* a frame that may come out */
struct bench_frame {
	struct bench_frame *next;
	int must; /* 1: has to come out, 0: may not, -1: as buffers and time allow */
	struct ref_frame ref;
};

struct bench {
	struct eth_model *m;
	struct eth_in in;
	struct eth_out out;
	struct eth_cfg cfg;
	const struct eth_cfg *alt; /* the registers change all the time between cfg and these */
	uint64_t rnd, cycle;

	/* percent a cycle */
	unsigned int p_beat, p_begin, p_class, p_wr, p_rxc, p_rd, p_db, p_rdma_first;
	unsigned int p_rdma, p_err;	   /* of frames */
	unsigned int rd_error;		   /* of 1000 reads */
	unsigned int latency, latency_var; /* of reads, cycles */
	int must;			   /* for frames to come */

	/* the MAC: the frame that is sent; source makes the next one, or returns 0 */
	unsigned int (*source)(struct bench *b, uint8_t *data);
	void *source_arg;
	uint8_t data[FRAME_MAX];
	unsigned int len, at;
	bool rdma, err;
	uint32_t serial;
	struct {
		uint64_t t0, t1; /* beats; t1 0: not yet */
		bool rdma;
	} cls[64];
	unsigned int cls_head, cls_tail, cls_now;

	struct bench_queue q[ETH_QUEUES];
	uint8_t *mem;
	struct {
		uint8_t q;
		uint16_t pi;
	} db[256];
	unsigned int db_head, db_tail;
	struct {
		uint64_t addr, when;
		bool err;
	} rd[256];
	unsigned int rd_head, rd_tail;
	unsigned int reads_of[ETH_QUEUES];

	/* what stood at the ports, not taken */
	bool wr_held, rd_held, rxc_held;
	struct eth_out held;
	unsigned int wr_at; /* beat of the request */
	uint64_t wr_addr;
	unsigned int wr_len;
	int wr_q;

	/* For the lanes: frames whose end is to come, by their length on the wire; a bit for each
	 * verdict that may be. Then those that are stored. */
	struct {
		unsigned int len, may;
	} checked[1024], stored[1024];
	unsigned int checked_head, checked_tail, stored_head, stored_tail;
	uint64_t full, no_buf;

	struct bench_frame *first, *last;
	uint64_t cnt[64], want_length, want_filtered, want_mcast, got, dropped;
	uint64_t sent, last_rxc, first_wr; /* cycles */
	uint64_t reads, wr_begins;
};

struct bench *bench_new(uint64_t seed);
void bench_free(struct bench *b);
/* What is under way vanishes, also in the middle of a frame; the wire begins with a new one. */
void bench_reset(struct bench *b);
/* Percentages and latencies for full speed. */
void bench_fast(struct bench *b);
void bench_step(struct bench *b);
void bench_run(struct bench *b, unsigned int cycles);
/* The registers as they are in b->cfg; no frame may be under way. */
void bench_config(struct bench *b);
void bench_enable(struct bench *b, unsigned int q, unsigned int log, unsigned int buf64);
void bench_disable(struct bench *b, unsigned int q);
void bench_wait_inactive(struct bench *b, unsigned int q);
/* Post up to n buffers, as many as the ring holds, and the doorbell. */
unsigned int bench_post(struct bench *b, unsigned int q, unsigned int n);
void bench_doorbell(struct bench *b, unsigned int q, uint16_t pi);
/* Let everything come out, and compare the counters. */
void bench_drain(struct bench *b);

/* Frames: random ones of all kinds; of them only short ones; of len bytes to the port's address,
 * with a hash that differs. */
unsigned int frame_random(struct bench *b, uint8_t *data);
unsigned int frame_short(struct bench *b, uint8_t *data);
unsigned int frame_plain(struct bench *b, uint8_t *data, unsigned int len);

void config_random(struct bench *b);
/* All to queue 0 or, by RSS, to all of n queues. */
void config_simple(struct bench *b, unsigned int queues);

#endif
