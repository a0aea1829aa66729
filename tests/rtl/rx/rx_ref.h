/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference of urdma_rx's tests, written from the specification: the effect of packets on a QP,
 * and the expected outputs. Also helpers that set up QPs and send packets.
 */
#ifndef RX_REF_H
#define RX_REF_H

#include "rx_bench.h"

#define QPS	 8
#define QPN0	 5
#define RING_OFF 0x10000 /* rings: 64 KB each from here */
#define SQ_OFF	 0x90000 /* send rings: 16 KB each */
#define DATA_OFF 0x100000
#define REM_OFF	 0x380000 /* what peers reach: 64 KB each QP */
#define LKEY	 0x1234
#define RKEY	 0x5000 /* all rights on all of REM_OFF */
#define RKEY_RO	 0x5100 /* remote read only */
#define RKEY_PD	 0x5200 /* of another PD */
#define RKEY_WO	 0x5300 /* all but remote read */
#define RKEY_ODD 0x5500 /* as RKEY, but not aligned in memory */
#define RKEY_BIG 0x5400 /* remote read of 2 GB that nobody reads here */
#define RKEY_INV 0x6000 /* one a QP, to be made invalid */
#define ACC_ALL                                                                   \
	(URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE | URDMA_ACC_REMOTE_READ | \
	 URDMA_ACC_REMOTE_ATOMIC | URDMA_ACC_FLUSH_GLOBAL)

/* ---- reference: the responder of one QP
 * ------------------------------------------------------------- */

/* A shared receive queue, as software and the reference see it. */
struct ref_srq {
	struct rx_sro cfg;
	bool exists; /* XRC: it is not destroyed; how often it was created */
	unsigned int life;
	uint16_t pi, ci; /* of the ring of indices */
	uint16_t ring[1 << 15];
	bool used[1 << 15]; /* places of the array that are posted or in use */
};

struct ref {
	struct rx_cfg cfg;
	struct ref_srq *srq; /* whose WQEs it takes; NULL: it has its own */
	bool held;	     /* WQE held_idx of the SRQ */
	uint16_t held_idx;
	/*
	 * A target of XRC: srq is what the last packet named. The SRQ of the message in progress,
	 * and its life; the packet names none that it may use, or another one than the message
	 */
	uint32_t msg_srqn;
	unsigned int msg_life;
	struct ref_srq *msg_srq;
	bool missing, other;
	struct packet hdr; /* addresses for packets to this QP */
	bool active, err, nak, in_msg;
	bool write, est; /* the message in progress is a WRITE; COMM_EST is no longer due */
	uint32_t epsn, msn, moff;
	uint16_t ci, pi;
	uint64_t wva; /* WRITE: where it goes on, with which key, bytes to come */
	uint32_t wkey, wleft;
	struct {
		uint32_t psn;
		uint64_t value;
	} atomic[4096]; /* results */
	unsigned int n_atomic, n_dup, n_seq;
	/* UC: why the message in progress is dropped, REF_*; its key was refused; so was that of a
	 * WRITE that had a WQE for its immediate, and the WQE is taken back */
	uint8_t skip;
	bool refused, back;
	unsigned int n_unrel, n_no_wqe, n_qkey; /* dropped */
	uint64_t qc[URDMA_QCNT_TX_PKTS];	/* counters of the QP */
	/* what is to be seen */
	struct bench_ack acks[4096];
	struct bench_cqe cqes[8192];
	struct bench_err errs[64];
	unsigned int n_acks, n_cqes, n_errs;
};

/* reference: requester completion of one QP */
struct req {
	uint16_t qpn;
	uint32_t una;  /* oldest PSN not acknowledged */
	uint32_t next; /* PSN tx sends next */
	uint16_t head, tail;
	uint16_t seen; /* WQEs reported as completed: what tx goes by */
	bool err, bad; /* bad: a WQE had an error, so tx sends no more */
	uint8_t nak;
	struct rx_sent s[65536];
	struct bench_cqe cqes[8192];
	unsigned int n_cqes, n_errs;
};

struct sge {
	uint64_t va;
	uint32_t len, key;
};

enum { REF_NONE, REF_SEQ, REF_BAD, REF_NO_WQE };

#define REF_QKEY 0x1a2b3c4d

extern uint32_t seed;
extern uint8_t qp_type; /* of the QPs that qp_init() makes */
extern struct ref refs[QPS];
extern struct req reqs[4];
extern bool ref_invalid[17];	     /* regions, as the reference sees them */
extern struct ref_srq *ref_xrc_srqs; /* all SRQs that packets of XRC may name */
extern unsigned int ref_xrc_n;
extern const uint8_t mac_own[6], mac_peer[6];
extern uint8_t payload[1 << 20];
extern uint64_t next_va; /* memory for receive buffers */

void ref_clear(struct ref *r);
uint32_t get32(const uint8_t *p);
uint64_t get64(const uint8_t *p);
void put32(uint8_t *p, uint32_t v);
void put64(uint8_t *p, uint64_t v);
bool ref_check(struct bench *b, const struct ref *r, uint32_t key, uint64_t va, uint64_t len,
	       uint8_t acc);
uint64_t wqe_va(const struct ref *r, uint16_t idx);
void ref_cqe(struct ref *r, uint16_t wqe, uint8_t status, uint32_t len, const uint8_t *imm, bool se,
	     uint8_t opcode);
void ref_ack(struct ref *r, uint32_t psn, uint8_t syndrome, uint32_t msn);
/* Is there a WQE for a message? The WQE that it uses; the same, and it is complete. */
bool ref_posted(const struct ref *r);
uint16_t ref_use(struct ref *r);
uint16_t ref_end(struct ref *r);
void ref_flush(struct ref *r);
void ref_error(struct ref *r, uint8_t event);
uint8_t ref_place(struct bench *b, struct ref *r, uint16_t idx, uint32_t off, const uint8_t *p,
		  size_t len);
void ref_nak(struct ref *r, uint8_t syndrome, bool wqe, uint8_t status, uint8_t event);
void ref_request(struct bench *b, struct ref *r, const struct packet *p, bool dup);
void ref_packet(struct bench *b, struct ref *r, const struct packet *p);
void ref_uc(struct bench *b, struct ref *r, const struct packet *p);
void ref_xrc(struct bench *b, struct ref *r, const struct packet *p);
void ref_ud(struct bench *b, struct ref *r, const struct packet *p, const struct frame *f);
void check(struct bench *b);
void gid4(uint8_t *g, uint8_t last);
void gid6(uint8_t *g, uint8_t last);
/* GID entries first to first + 3, at that MAC address */
void set_gids(struct bench *b, int first, const uint8_t smac[6]);
void qp_init(struct bench *b, int i, uint8_t mtu, uint8_t log_entries, uint8_t log_stride,
	     uint32_t psn);
struct bench *start(void);
void post(struct bench *b, struct ref *r, const struct sge *s, unsigned int num);
void ring(struct bench *b, struct ref *r);
void fill(struct bench *b, size_t len);
void send_raw(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, const uint8_t *ext,
	      const uint8_t *p, size_t len, bool ackreq, bool se);
void send_packet(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, const uint8_t *p,
		 size_t len, bool ackreq, bool se);
void send_reth(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, uint64_t va,
	       uint32_t key, uint32_t total, const uint8_t *p, size_t len, bool ackreq);
void send_as(struct bench *b, struct ref *r, const struct packet *k);
void send_atomic(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, uint64_t va,
		 uint32_t key, uint64_t swap_add, uint64_t compare);
/* type: URDMA_FLUSH_GLOBAL and so on; level: URDMA_FLUSH_RANGE, URDMA_FLUSH_MR */
void send_flush(struct bench *b, struct ref *r, uint32_t psn, uint64_t va, uint32_t key,
		uint32_t len, unsigned int type, unsigned int level);
void send_inv(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, uint32_t key,
	      const uint8_t *p, size_t len);
void send_message(struct bench *b, struct ref *r, size_t len, bool imm, bool se,
		  unsigned int ack_every);
void send_write(struct bench *b, struct ref *r, uint64_t va, uint32_t key, size_t len, bool imm,
		unsigned int ack_every);
uint64_t take(struct bench *b, size_t len, unsigned int align);
unsigned int shape_sges(struct bench *b, int shape, size_t len, struct sge *s, unsigned int most);

#endif
