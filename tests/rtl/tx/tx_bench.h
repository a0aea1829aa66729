/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of urdma_tx in the block test: host memory, translation, DMA, configuration,
 * requester completion, the MAC; and the checker, which builds each expected frame byte by byte
 * from the specification.
 */
#ifndef TX_BENCH_H
#define TX_BENCH_H

#include "tx_model.h"

#define QPS	    64
#define MAX_SGE	    30
#define MAX_MSGS    4096
#define MAX_ACKS    4096
#define MAX_RSPS    4096
#define KEY_GOOD    0x00000105
#define KEY_REMOTE  0x00000207
#define KEY_XRC(i)  (0x00001007 + ((uint32_t)(i) << 8)) /* i below 16, of PD PD_XRC(i) */
#define PD_XRC(i)   (0x700 + (i))
#define KEY_BAD	    0x00000bad
#define KEYS	    64 /* by the low bits of the index */
#define INVS	    32 /* requests about keys without an answer */
#define KEY_MTT_ERR 0x00000dea
#define MEM_SIZE    (16u << 20)
#define MEM_BUS	    0x25c3960000000000ull /* bus addresses of the memory and of the rings */
#define RING_BASE   0x5ac3960100000000ull
#define RING_SIZE   65536u

struct sge {
	uint64_t va;
	uint32_t len;
	uint32_t key;
};

/* where a datagram goes */
struct ud_dest {
	uint32_t qpn, qkey;
	uint8_t dgid[16], dmac[6];
	uint8_t tclass, hop_limit, sgid, pcp;
	uint32_t flow_label;
	uint16_t udp_sport;
};

struct msg {
	uint8_t op;
	bool sig, se, inl;
	uint32_t imm;
	uint32_t len; /* as the WQE says */
	int num_sge;
	struct sge sge[MAX_SGE];
	uint8_t inl_data[480];
	bool fence;
	uint64_t raddr, swap, compare;
	uint32_t rkey;
	struct ud_dest ud;
	uint32_t srqn;		  /* XRC; bench_post() draws it */
	bool no_frame;		  /* the source GID is not valid: no packet */
	uint64_t mr_len, mr_addr; /* local operations; FLUSH: mr_len, type and level in imm */
	uint8_t acc, levels, page_shift;
	bool zero_based;
	uint8_t answer;		     /* mro_status_e of urdma_mr's */
	uint32_t psn;		     /* first */
	bool sent, asked;	     /* sent_t has come; mro has come */
	bool looked, begun;	     /* its head was read; and it was not held */
	uint64_t done_at;	     /* READ: its data are written */
	uint8_t status;		     /* that has to come: URDMA_WC_* */
	uint32_t packets;	     /* PSNs it takes */
	uint64_t posted, first_beat; /* cycles */
};

struct qp {
	struct tx_cfg cfg;
	uint32_t psn0, post_psn;
	uint16_t pi;	  /* posted */
	struct msg *msgs; /* by WQE index, MAX_MSGS of them */
	/* judge of frames */
	uint32_t f_psn, hpsn; /* next expected; first never seen */
	uint32_t unas[64];    /* from where sending may begin anew */
	unsigned int una_n;
	uint32_t resent, frames;
	uint16_t lop_next; /* local operations judged up to here */
	/* judge of sent_t */
	uint32_t s_msg, s_psn;
	bool err;	/* an error was reported: the rest is flushed */
	uint64_t bytes; /* payload seen on the wire */
	/* tx has been sent back, in that cycle; a turn that says so has to come */
	bool sent_back, turn_owed;
	bool bad; /* WQE bad_idx ends with an error */
	uint16_t bad_idx;
	uint64_t sent_back_at;
	/* requester completion */
	uint32_t acked; /* messages reported to tx */
	uint32_t acked_psn;
	uint8_t rd_done;
	/* the peer, with weather.peer */
	uint32_t epsn;
	bool nak, hold;
	uint64_t rnr_end, moved;
	uint32_t retried;
	uint64_t retried_at;
	uint64_t last_psn_cycle;
	/* acknowledgements asked for and not seen; behind a NAK some may have been dropped */
	struct {
		uint32_t psn, msn;
		uint8_t syndrome;
	} ack[MAX_ACKS];
	uint32_t ack_head, ack_tail;
	bool ack_behind_nak;
	uint32_t acks_seen;
	/* response packets that have to come, in order; a refused READ ends with its NAK */
	struct rsp {
		uint8_t opcode, nak;
		uint32_t psn, msn, len;
		uint64_t va;
		bool again;
	} rsp[MAX_RSPS];
	uint32_t rsp_head, rsp_tail;
};

/* fixed or random behaviour of the surroundings */
struct weather {
	unsigned int dma_latency; /* cycles from grant to first beat */
	unsigned int dma_jitter;
	unsigned int dma_gap; /* percent of cycles without a beat */
	unsigned int mr_latency;
	unsigned int stall;	/* percent of cycles in which a ready is low */
	unsigned int mac_stall; /* percent of cycles */
	unsigned int ack_delay; /* cycles from sent_t to acked_t */
	unsigned int told;	/* the same of UC and UD */
	bool acks_off;		/* acked_t is held back */
	bool made_at_once;	/* made_t is always taken: a frame a cycle is possible */
	bool peer;		/* acknowledgements by a peer that sees the frames */
	unsigned int loss;	/* percent of request packets that do not arrive */
	unsigned int rsp_loss;	/* percent of READs of whose answer a part is lost */
	unsigned int rnr;	/* per mille of packets answered by RNR NAK */
	unsigned int late_read; /* cycles at most between READ response and rdone */
	unsigned int mro_latency, sync_latency;
};

struct bench;

struct bench *bench_new(uint64_t seed);
void bench_free(struct bench *b);
struct qp *bench_qp(struct bench *b, int qpn);
struct tx_gid *bench_gid(struct bench *b, int idx);
struct weather *bench_weather(struct bench *b);
uint32_t bench_rnd(struct bench *b, uint32_t below);
uint64_t bench_cycle_count(const struct bench *b);
const struct tx_out *bench_out(const struct bench *b);

/* bytes of SGEs or inline data in a WQE */
uint32_t bench_room(const struct tx_cfg *cfg);
/* A QP in RTS; cfg fields set by the caller stay, those left 0 are filled with something. */
void bench_open(struct bench *b, int qpn, struct tx_cfg *cfg, uint32_t psn);
/* Write the WQE of the next message; no doorbell. The message is copied. */
struct msg *bench_post(struct bench *b, int qpn, const struct msg *m);
void bench_doorbell(struct bench *b, int qpn, uint16_t pi);
void bench_ack(struct bench *b, int qpn, uint32_t psn, uint8_t syndrome, uint32_t msn);
/*
 * READ (key, va, len) or, with atomic, its original value in va: an answer to send; nak: what has
 * to come instead. Its PD is the QP's, of KEY_XRC another.
 */
void bench_read(struct bench *b, int qpn, bool atomic, uint32_t psn, uint32_t msn, uint32_t key,
		uint64_t va, uint32_t len, uint8_t nak);
/*
 * READ that was asked for before. With KEY_BAD and a length nothing comes, because its key may have
 * ended since.
 */
void bench_read_again(struct bench *b, int qpn, uint32_t psn, uint32_t msn, uint32_t key,
		      uint64_t va, uint32_t len);
/* Report progress of a QP to tx, beside what the bench does by itself. */
void bench_acked(struct bench *b, int qpn, uint16_t done, uint32_t una);
void bench_ak(struct bench *b, int qpn, int kind, uint16_t done, uint32_t una);
/* AK_RETRY from una; what is before it is completed, if its sent_t has come */
void bench_retry(struct bench *b, int qpn, uint32_t una);
/* One cycle. */
void bench_step(struct bench *b);
void bench_steps(struct bench *b, unsigned int n);
/* Run until all that was posted and rung is done and the block is not busy; fails after limit
 * cycles. */
void bench_drain(struct bench *b, unsigned int limit);
/* Run until the control message is taken. */
void bench_qpc(struct bench *b, int qpn, int op, uint32_t psn);
/* Set ERR as qp_mgr does. */
void bench_set_err(struct bench *b, int qpn);
/* Is no acknowledgement missing? */
bool bench_acks_done(struct bench *b, int qpn);
void bench_fence(struct bench *b, unsigned int limit);
/* The key has been made invalid: tx is asked until when there are reads through it. bench_step()
 * fails if tx answers too early. */
void bench_inv_ask(struct bench *b, uint32_t key);
/* The same, and waits for the answer; fails after limit cycles. Gives the cycles it took. */
unsigned int bench_inv(struct bench *b, uint32_t key, unsigned int limit);
/* bytes of host memory by address as a WQE has it */
uint8_t *bench_mem(struct bench *b, uint64_t va);
/* DMA reads of [from, to) of bus addresses fail */
void bench_poison(struct bench *b, uint64_t from, uint64_t to);
/* The page table of a QP's send queue cannot be read. */
void bench_no_table(struct bench *b, unsigned int qpn);
/* The bus address of a WQE of the send queue. */
uint64_t bench_wqe_bus(struct bench *b, unsigned int qpn, uint16_t index);
uint64_t bench_bus(uint64_t va);

struct stats {
	uint64_t frames, beats, bytes, first_cycle, last_cycle, cnt_frames, acks, naks;
	uint64_t max_unacked;
	uint64_t reads[2];
	uint64_t cnt_retrans, cnt_read_rsp, cnt_ack, cnt_nak, resent, read_rsps, mros, syncs, errs;
	uint16_t err_qpn;
	uint8_t err_event;
	bool err_only;
	uint64_t naks_seen, retries, holds;
};
struct stats *bench_stats(struct bench *b);

#endif
