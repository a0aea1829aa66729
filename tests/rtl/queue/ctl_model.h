/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Verilated urdma_ctl and its environment: host memory behind DMA ports of random latency, and
 * stand-ins for mr, cq, eq, tx and rx that accept after random delays and record what they get,
 * with the cycle.
 */
#ifndef CTL_MODEL_H
#define CTL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "urdma_pkg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MEM_SIZE (1u << 20)
#define N_QP	 4096
#define N_CQ	 4096
#define N_EQ	 64
#define N_MR	 16384
#define N_SRQ	 1024
#define LOG_SIZE 65536
#define N_GID	 32
/* registers of the Ethernet function, which the stand-in keeps as plain memory */
#define ETH_REGS      0x2000
#define ETH_REGS_SIZE 0x2000

/* owners of QP state */
enum { OWN_TX, OWN_RX, OWN_ACK, OWN_N };
/* stages of a fence round */
enum { FENCE_TX, FENCE_RX, FENCE_CQ, FENCE_MR, FENCE_N };
/* QPC operations, in the order of urdma_pkg's qpc_op_e */
enum { QPC_OPS = QPC_SQ_RUN + 1 };
/* sources of reports about QPs */
#define ERR_SRCS 4

struct seen_mr {
	bool valid, all, zero_based;
	bool bound; /* set by the test: DESTROY is answered BUSY */
	uint32_t kind, variant, pd, acc, levels, page_shift;
	uint64_t va, len, addr;
};

struct seen_ring {
	uint64_t addr;
	uint32_t levels, page_shift, log_entries, log_stride;
};

struct seen_cq {
	bool valid;
	struct seen_ring ring;
	uint32_t eqn, db_page, count, period;
	bool overrun;
	uint32_t ci;	   /* of the last RESIZE_CQ */
	uint32_t pi, room; /* set by the test: the CQ's, and the least ring that takes what waits */
};

struct seen_srq {
	bool valid;
	struct seen_ring ring;
	uint32_t pd, limit;
	bool xrc;
	uint32_t xrcd, cqn;
	uint32_t pi, ci; /* set by the test: what QUERY says */
};

struct seen_eq {
	bool valid;
	uint32_t log_entries, vec;
	uint64_t addr;
};

struct seen_qp {
	bool valid, sig_all, priv, no_loop, srq;
	uint32_t srqn;
	uint32_t state, type, pd, db_page, send_cq, recv_cq;
	struct seen_ring sq, rq;
	uint32_t mtu, timeout, retry, rnr_retry, min_rnr, dest_qpn, max_rd, max_dest_rd, qkey, pkey,
		acc, sgid;
	uint64_t dmac, dgid_lo, dgid_hi;
	uint32_t tclass, hop_limit, flow_label, udp_sport, pcp;
};

struct seen_gid {
	bool valid, ipv4, vlan_valid;
	uint32_t vlan;
	uint64_t smac, lo, hi;
};

struct owner {
	uint32_t psn, pi, ci;
	bool err, draining;
	uint32_t sqd_psn;     /* of the last QPC_SQD */
	uint64_t at[QPC_OPS]; /* cycle of the last acceptance of each operation */
	uint32_t count[QPC_OPS];
};

/* membership of a group */
struct seen_member {
	uint32_t qpn;
	uint64_t lo, hi;
};

struct seen_db {
	char kind; /* 's' 'r' 'S' (SRQ) 'c' 'e', of the Ethernet function 'T' 'R' 'C' */
	uint32_t obj, page, arm, index;
};

struct seen_ev {
	bool cmd; /* from the command queue, else from the QP manager or the port */
	uint32_t data;
	uint32_t eqn, type, obj;
	uint64_t at;
};

struct world {
	uint8_t mem[MEM_SIZE];
	uint64_t cycle;
	uint64_t rnd;

	/* settings */
	uint32_t rd_latency_min, rd_latency_max; /* cycles */
	uint32_t stall_percent;			 /* chance that a ready is down in a cycle */
	uint32_t fence_delay_max, qpc_delay_max, mro_delay_max, mco_delay_max, sro_delay_max,
		qco_delay_max;
	bool hold_fence; /* no fence is answered */
	bool hold_qpc;	 /* no QPC is accepted */
	bool hold_db;	 /* no doorbell is accepted */
	bool hold_dma_busy;
	uint64_t err_lo, err_hi; /* DMA reads that touch this range fail */

	/* seen */
	struct seen_mr mr[N_MR];
	struct seen_cq cq[N_CQ];
	struct seen_eq eq[N_EQ];
	struct seen_srq srq[N_SRQ];
	uint64_t mr_at[N_MR], cq_at[N_CQ], eq_at[N_EQ], srq_at[N_SRQ];
	uint32_t qp_set[N_QP]; /* counter set of each QP */
	uint64_t qp_set_at[N_QP];
	/* the lane qp_end */
	uint32_t n_qp_end[N_QP];
	uint64_t qp_end_at[N_QP];
	bool qp_end_reset[N_QP];	/* what the last one said */
	uint32_t n_qco[3], cleared;	/* operations on counters by kind; the set cleared last */
	uint32_t n_cfg;			/* changes of mr, cq, eq, srq, counters */
	uint32_t n_sro;			/* operations on SRQs */
	uint32_t n_mro;			/* operations, those refused too */
	uint32_t windows[N_QP];		/* set by the test: bound to the QP */
	struct seen_member members[64]; /* of groups: urdma_rx_mcast as a list */
	uint32_t n_members, n_mco[3];	/* operations: ATTACH, DETACH, LEAVE */
	bool members_full;		/* set by the test */
	struct owner own[OWN_N][N_QP];
	uint32_t n_qpc;
	uint64_t fence_rise[FENCE_N], fence_done[FENCE_N]; /* last */
	uint64_t round_start; /* of the last round whose cq stage is done: rise of its first tx
				 fence */
	uint32_t n_rounds;
	struct seen_db db[LOG_SIZE];
	uint32_t n_db;
	struct seen_db rq_lane[LOG_SIZE]; /* the lane rq_db: before they merge */
	uint32_t n_rq_lane;
	uint64_t eth_reg[ETH_REGS_SIZE / 8];
	uint32_t n_eth_rd, n_eth_wr;
	struct seen_gid gid_wr[N_GID]; /* what was told of each entry last */
	uint32_t n_gid_wr, last_gid_wr;
	uint64_t reg_rsp[LOG_SIZE]; /* answers to reads, in order */
	uint32_t n_reg_rsp;
	struct seen_ev ev[LOG_SIZE];
	uint32_t n_ev;
	uint64_t wr_addr[LOG_SIZE], wr_at[LOG_SIZE];
	uint32_t n_wr;
	uint32_t n_rd;
	uint64_t last_rd_addr;
	uint32_t last_rd_len;
	/* a valid that fell, a payload that changed, a lane that does not tell what its port does
	 */
	uint32_t protocol_errors;
};

/* What the stand-in of urdma_qp_cnt says of a counter: each of the 63 bits is used. */
static inline uint64_t seen_count(uint32_t set, uint32_t group, uint32_t i)
{
	return (0x9e3779b97f4a7c15ull * (set * 64 + group * 8 + i + 1)) >> 1;
}

struct ctl;

struct ctl *ctl_new(uint64_t seed);
void ctl_free(struct ctl *c);
struct world *ctl_world(struct ctl *c);
void ctl_tick(struct ctl *c);
bool ctl_busy(struct ctl *c);
bool ctl_core_rst(struct ctl *c);
uint64_t ctl_cycles(struct ctl *c);
uint64_t ctl_reg_read(struct ctl *c, uint32_t addr);
void ctl_reg_write(struct ctl *c, uint32_t addr, uint64_t data);
/* an access in one cycle; the answer to a read is among reg_rsp later */
void ctl_reg_post(struct ctl *c, bool write, uint32_t addr, uint64_t data, uint32_t strb);
/* queue a doorbell; it goes out as the NIC takes it */
void ctl_db(struct ctl *c, uint32_t page, uint32_t offset, uint64_t data);
uint32_t ctl_db_waiting(struct ctl *c);
/* queue an error report of source 0..3; one that is only an event */
void ctl_qp_err(struct ctl *c, int src, uint32_t qpn, uint32_t event);
void ctl_qp_event(struct ctl *c, int src, uint32_t qpn, uint32_t event);
uint32_t ctl_qp_err_waiting(struct ctl *c);
/* through reader 0..2 (tx, responder, requester completion) */
void ctl_qp_cfg(struct ctl *c, int reader, uint32_t qpn, struct seen_qp *cfg);
void ctl_link(struct ctl *c, bool up);
void ctl_gid(struct ctl *c, int reader, uint32_t idx, struct seen_gid *gid);
/* the next tick is one after skipped cycles */
void ctl_skip(struct ctl *c, uint64_t cycles);
void ctl_count(struct ctl *c, uint64_t mask, uint32_t tx_bytes, uint32_t rx_bytes);

#ifdef __cplusplus
}
#endif

#endif
