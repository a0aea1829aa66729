/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of urdma_rx in its test: MAC, host memory behind translation and DMA, qp_mgr, tx
 * and CQ. Each follows the rules of its port (docs/rtl-interfaces.md), and fails the test if
 * urdma_rx breaks one.
 */
#ifndef RX_BENCH_H
#define RX_BENCH_H

#include "rx_lanes.h"
#include "rx_model.h"
#include "rx_packet.h"
#include "urdma_hw.h"

#define HOST_SIZE (4u << 20)
#define HOST_VA	  0x7f1200000000ull	/* what SGEs say */
#define HOST_BUS  0x5ac3964500000000ull /* what DMA says; pages lie in another order */
#define LOG_MAX	  65536
#define BEATS_MAX 262144

struct bench_mr {
	uint32_t key;
	uint16_t pd;
	uint8_t acc;
	uint64_t va, len;
};

enum { RSP_ACK, RSP_READ, RSP_ATOMIC };

struct bench_ack {
	uint16_t qpn;
	uint8_t kind, syndrome;
	uint32_t psn, msn, key, len;
	uint16_t pd; /* of a READ */
	uint64_t va;
	bool dup;
};

struct bench_cqe {
	uint16_t cqn;
	bool solicited;
	uint64_t w[4];
};

struct bench_acked {
	uint8_t kind;
	uint16_t qpn, wqe;
	uint32_t una;
};

struct bench_err {
	uint16_t qpn;
	uint8_t event;
	bool only;
};

struct fifo {
	uint8_t *data;
	size_t size, room, head, tail; /* tail, head: words put, taken */
};

struct bench {
	struct rx_model *m;
	struct rx_in in;
	struct rx_out out;
	struct rx_out before; /* the cycle before, and what was not taken in it */
	uint8_t refused_mr, refused_rd, refused_wr, refused_cqe, refused_err;
	uint64_t cycle;
	uint64_t seed;

	/* settings: percent of cycles */
	unsigned int ready, gap;
	unsigned int mr_latency, rd_latency; /* cycles, up to twice */
	bool hold_wr, hold_cqe[2], hold_ack, hold_rd, hold_atm, hold_mro, hold_inv, hold_qpr[2];
	int fail_rd;	/* the n-th read from now fails; -1: none */
	int fail_atm;	/* the same of ATOMICs' operands */
	uint64_t watch; /* ring whose translations are counted */
	unsigned int n_watched;
	int fail_pt; /* the n-th translation of payload from now meets a page table that cannot be
			read */

	uint8_t *host, *shadow;
	struct bench_mr mr[17];
	unsigned int mrs;
	uint32_t odd_key;    /* of a region that is not aligned in memory as its addresses are */
	bool mr_invalid[17]; /* by a SEND with invalidate */
	bool mr_again;	     /* the key is registered again at once */

	bool home; /* the next frames are the port's own, looped back */
	struct fifo beats, db, srq_db, qpc, aqc, sent, made, mrr[2], rdr;
	uint64_t wr_addr[2];
	unsigned int wr_len[2], wr_pos[2];
	unsigned int mro_wait; /* cycles until the answer */
	uint8_t mro_status;
	unsigned int n_mros, n_invs, n_pieces; /* pieces: translations of payload */
	unsigned int reads_owed;	       /* answers of tx to them */
	uint32_t inv_key;		       /* the key that tx is to be asked about; 0: none */
	bool mc_answered;
	enum mc_status mc_status;

	struct bench_ack acks[LOG_MAX];
	struct bench_cqe cqes[2][LOG_MAX];
	uint64_t cqe_at[LOG_MAX]; /* of the first: cycle */
	struct bench_acked ackeds[LOG_MAX];
	struct bench_err errs[2][LOG_MAX];
	unsigned int n_acks, n_cqes[2], n_ackeds, n_errs[2];
	uint64_t cnt[64], bytes, classes[2], first_mac, first_wr, last_wr;
	uint64_t qc[4096][URDMA_QCNT_TX_PKTS]; /* counters of QPs that the responder counts */
	bool responses;			       /* some came, which they count, too */
	/* DMA writes; how many there were at the last read of the ATOMIC unit, which was here */
	unsigned int n_writes, atm_writes;
	uint64_t atm_addr;
	struct lanes lanes;
	struct rx_out ctl; /* of the last QUERY */
	struct rx_out sro; /* of the last operation of an SRQ */
	bool hold_srq_ev;
	struct bench_err srq_evs[LOG_MAX]; /* qpn: of the SRQ */
	unsigned int n_srq_evs;
};

struct bench *bench_new(uint32_t seed);
void bench_free(struct bench *b);
/* the bus address of a byte of host */
uint64_t bench_bus(uint64_t off);
uint32_t rnd(struct bench *b);
unsigned int rnd_in(struct bench *b, unsigned int lo, unsigned int hi);

void bench_cycle(struct bench *b);
void bench_run(struct bench *b, unsigned int cycles);
/* until nothing is queued and urdma_rx says it is idle; fails after @limit cycles */
void bench_drain(struct bench *b, unsigned int limit);
void bench_settings(struct bench *b, unsigned int ready, unsigned int gap, unsigned int mr_lat,
		    unsigned int rd_lat);
void bench_clear_logs(struct bench *b);

void bench_cfg(struct bench *b, const struct rx_cfg *cfg);
void bench_gid(struct bench *b, const struct rx_gid *gid);
void bench_frame(struct bench *b, const struct frame *f, bool err);
void bench_db(struct bench *b, uint16_t qpn, uint16_t pi);
void bench_srq_db(struct bench *b, uint16_t srqn, uint16_t pi);
/* An operation on an SRQ, until it is answered. */
void bench_srq(struct bench *b, const struct rx_sro *op);
/* Queue a control message; bench_ctl_wait also waits until it is taken, however the rest stands. */
void bench_ctl(struct bench *b, bool ack, enum qpc_op op, uint16_t qpn, uint32_t psn);
void bench_ctl_wait(struct bench *b, bool ack, enum qpc_op op, uint16_t qpn, uint32_t psn,
		    unsigned int limit);
/* a message, its packets among it; packets up to psn alone */
void bench_sent(struct bench *b, const struct rx_sent *s);
void bench_made(struct bench *b, uint16_t qpn, uint32_t psn);
/* An operation of multicast groups: put, answered (and taken back), and both; the status. */
void bench_mc_put(struct bench *b, enum mc_op op, uint16_t qpn, const uint8_t *gid);
bool bench_mc_done(struct bench *b, enum mc_status *status);
enum mc_status bench_mc(struct bench *b, enum mc_op op, uint16_t qpn, const uint8_t *gid);
/* Write into host memory and into the shadow that the reference keeps. */
void bench_put(struct bench *b, uint64_t va, const void *p, size_t len);

#endif
