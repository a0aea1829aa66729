/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The embedded host's driver: the functions of urdma.ko and of the provider in one small library,
 * for engine tests, benchmarks and fuzzers. urdma_hw.h has the layouts.
 *
 * Functions whose comment says "waits" run the simulation until the NIC has answered. The others
 * only access memory and post writes, and may be called from events and callbacks. Errors are
 * negative errno. Functions that wait return the status of a command (URDMA_CS_*) as a positive
 * value.
 */
#ifndef URDMA_COSIM_EH_H
#define URDMA_COSIM_EH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/embedded.h"
#include "urdma_hw.h"

/* Value in a field, and a field's value; mask is a constant of urdma_hw.h. */
#define URDMA_SET(mask, value) (((uint64_t)(value) << __builtin_ctzll(mask)) & (mask))
#define URDMA_GET(mask, word)  (((word) & (mask)) >> __builtin_ctzll(mask))

struct urdma_eh;

/* ---- device --------------------------------------------------------------------------------- */

struct urdma_eh_caps {
	uint16_t major, minor;
	unsigned int log_qp, log_cq, log_mr, log_srq, log_eq, log_pd, log_db_pages, log_vectors;
	unsigned int max_sq_sge, max_rq_sge, max_inline, log_sq, log_rq, log_cqe, log_eqe;
	unsigned int log_max_msg, log_max_mtu, gids, max_rd_atomic, log_cmdq, log_db_page_size;
	unsigned int eth_queues, log_eth_ring, log_eth_cq, eth_max_frame, eth_tx_descs, eth_uc;
	unsigned int log_dm, log_dm_offset, log_cnt_sets;
	uint64_t page_shifts, features, clock_hz;
};

struct urdma_eh_config {
	unsigned int log_cmdq; /* entries of the command queue */
	unsigned int log_eq;   /* entries of each EQ */
	unsigned int n_eqs;    /* with EQ 0; EQ n uses vector n */
	bool no_init;	       /* only attach: the test initialises the NIC itself */
};

/* 64 commands, 256 events, 2 EQs. */
void urdma_eh_config_defaults(struct urdma_eh_config *config);

/*
 * Attaches to a NIC, waits for it to be ready, checks magic and version, sets up the command queue,
 * enables it and creates the EQs, armed. config NULL: defaults. Waits.
 */
int urdma_eh_open(struct urdma_embedded *host, unsigned int nic,
		  const struct urdma_eh_config *config, struct urdma_eh **eh);
/* Detaches, which resets the NIC. Does not free the memory of objects that still exist. */
void urdma_eh_close(struct urdma_eh *eh);

struct urdma_embedded_dev *urdma_eh_dev(struct urdma_eh *eh);
struct urdma_embedded *urdma_eh_host(struct urdma_eh *eh);
struct urdma_cosim *urdma_eh_cosim(struct urdma_eh *eh);
const struct urdma_eh_caps *urdma_eh_caps(const struct urdma_eh *eh);
uint64_t urdma_eh_reg(struct urdma_eh *eh, uint64_t offset); /* waits; all ones on an error */
void urdma_eh_write_reg(struct urdma_eh *eh, uint64_t offset, uint64_t value);
uint64_t urdma_eh_counter(struct urdma_eh *eh, unsigned int index); /* waits */

/* ---- commands ------------------------------------------------------------------------------- */

/* Eight words each. Word 0 of a completion holds status, tag and object. */
struct urdma_eh_cmd {
	uint64_t w[8];
};
typedef void (*urdma_eh_cmd_done)(void *arg, const struct urdma_eh_cmd *cpl);

/*
 * Posts a command; the library sets the tag. urdma_eh_cmd_poll() calls done, which may be NULL.
 * Returns -EAGAIN if the queue is full.
 */
int urdma_eh_cmd_post(struct urdma_eh *eh, const struct urdma_eh_cmd *cmd, urdma_eh_cmd_done done,
		      void *arg);
/* Handles completions that have arrived; returns their number. */
unsigned int urdma_eh_cmd_poll(struct urdma_eh *eh);
/* Number of commands without a completion. */
unsigned int urdma_eh_cmd_pending(const struct urdma_eh *eh);
/* Posts one command and waits. Returns its status; cpl may be NULL. */
int urdma_eh_cmd(struct urdma_eh *eh, const struct urdma_eh_cmd *cmd, struct urdma_eh_cmd *cpl);
/*
 * Between these two calls, functions that need only the status of a command post the command and
 * return 0 without waiting; the NIC executes commands in order. urdma_eh_batch_end() waits for all
 * of them, and returns the first status that is not 0.
 */
void urdma_eh_batch_begin(struct urdma_eh *eh);
int urdma_eh_batch_end(struct urdma_eh *eh);
/* Time limit of a command, after which a waiting function returns -ETIMEDOUT. */
#define URDMA_EH_CMD_CYCLES 2500000u

/* ---- rings and page lists ------------------------------------------------------------------- */

/* Description of memory for the NIC. */
struct urdma_eh_map {
	unsigned int levels;	 /* of tables: 0, 1 or 2 */
	unsigned int page_shift; /* at least 12 */
	uint64_t addr;		 /* in the form that commands need */
	void *table[513];	 /* memory of the tables: the first is the top level */
	unsigned int n_tables;
};

/*
 * Describes len bytes from p. With levels -1 the function chooses: 0 for memory that is contiguous
 * on the bus, else 1 up to 512 pages and 2 above. page_shift 0 means 12. -E2BIG: more pages than
 * fit.
 */
int urdma_eh_map(struct urdma_embedded *host, const void *p, size_t len, int levels,
		 unsigned int page_shift, struct urdma_eh_map *map);
void urdma_eh_unmap(struct urdma_embedded *host, struct urdma_eh_map *map);

/* Kind of a ring's memory. 0: scattered pages with page lists. */
enum urdma_eh_ring_kind {
	URDMA_EH_RING_PAGED,	/* as many levels as needed */
	URDMA_EH_RING_CONTIG,	/* levels 0 */
	URDMA_EH_RING_LEVELS_2, /* always two levels */
};

struct urdma_eh_ring {
	uint8_t *base;
	unsigned int log_entries, log_stride;
	struct urdma_eh_map map;
};

/* Zeroed, with `behind` extra bytes at the end in the same map. */
int urdma_eh_ring_create(struct urdma_eh *eh, unsigned int log_entries, unsigned int log_stride,
			 size_t behind, enum urdma_eh_ring_kind kind, struct urdma_eh_ring *ring);
/* Does nothing for a ring without memory. */
void urdma_eh_ring_destroy(struct urdma_eh *eh, struct urdma_eh_ring *ring);
/* URDMA_RING_* in the form that commands need. */
uint64_t urdma_eh_ring_word(const struct urdma_eh_ring *ring);

/* ---- events --------------------------------------------------------------------------------- */

struct urdma_eh_event {
	unsigned int type; /* URDMA_EV_* */
	uint32_t obj, data;
	uint64_t cycles;
};

/* Takes up to n events from EQ eqn and moves the consumer index; arm: arms the EQ again. */
unsigned int urdma_eh_eq_poll(struct urdma_eh *eh, unsigned int eqn, struct urdma_eh_event *ev,
			      unsigned int n, bool arm);

/* ---- objects: all of these wait, and return 0, a negative errno, or the status of the command
 * ----- */

int urdma_eh_alloc_pd(struct urdma_eh *eh, uint32_t pd);
int urdma_eh_dealloc_pd(struct urdma_eh *eh, uint32_t pd);

/* A flag beside the access rights of a region or window: its addresses begin at 0. */
#define URDMA_EH_ZERO_BASED 0x80000000u

struct urdma_eh_mr {
	struct urdma_eh *eh;
	uint32_t index, key;
	uint64_t va, length; /* va: of its first byte, 0 if it is zero-based */
	struct urdma_eh_map map;
};

/* The caller chooses object numbers, as the driver does. va is the address that WQEs use. */
int urdma_eh_create_mr(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
		       unsigned int access, void *p, size_t len, uint64_t va,
		       struct urdma_eh_mr *mr);
/* With levels and page_shift as of urdma_eh_map(). */
int urdma_eh_create_mr_map(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
			   unsigned int access, void *p, size_t len, uint64_t va, int levels,
			   unsigned int page_shift, struct urdma_eh_mr *mr);
/* A region of len bytes of device memory from `offset` on, with addresses from 0. */
int urdma_eh_create_mr_dm(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
			  unsigned int access, uint64_t offset, size_t len, struct urdma_eh_mr *mr);
/* A region for REG_MR (kind URDMA_MRK_FAST), or a window for BIND_MW (URDMA_MRK_WINDOW). */
int urdma_eh_create_mr_kind(struct urdma_eh *eh, uint32_t index, uint8_t variant, uint32_t pd,
			    unsigned int kind, struct urdma_eh_mr *mr);
int urdma_eh_destroy_mr(struct urdma_eh_mr *mr);

struct urdma_eh_cqe {
	unsigned int status, opcode, vendor, wqe;
	bool recv, has_imm, has_inv, solicited;
	bool xrc; /* CQE of an XRC SRQ: srqn is valid; else src_qpn is */
	uint32_t qpn, length, src_qpn, srqn;
	bool grh, ipv4, vlan; /* UD: 40 bytes before the data; of IPv4; the frame had a tag, tci */
	uint16_t tci;
	uint32_t imm; /* with has_inv: the invalidated key */
	uint64_t cycles;
};

struct urdma_eh_cq {
	struct urdma_eh *eh;
	uint32_t cqn;
	unsigned int db_page;
	struct urdma_eh_ring ring;
	/* of the ring; and the index, as in doorbells, of its entry 0 */
	uint32_t ci, base;
};

int urdma_eh_create_cq(struct urdma_eh *eh, uint32_t cqn, unsigned int log_entries,
		       unsigned int eqn, unsigned int db_page, enum urdma_eh_ring_kind kind,
		       struct urdma_eh_cq *cq);
int urdma_eh_destroy_cq(struct urdma_eh_cq *cq);
/* Moderates its events by a number of CQEs and of microseconds; 0: no such limit. */
int urdma_eh_modify_cq(struct urdma_eh_cq *cq, unsigned int count, unsigned int period);
/*
 * Replaces its ring with one of another size, and copies unread CQEs to it. Returns the status:
 * CS_BUSY if there are more unread CQEs than fit.
 */
int urdma_eh_resize_cq(struct urdma_eh_cq *cq, unsigned int log_entries,
		       enum urdma_eh_ring_kind kind);
/* Takes up to n CQEs and writes the consumer index to the NIC. */
unsigned int urdma_eh_poll_cq(struct urdma_eh_cq *cq, struct urdma_eh_cqe *cqe, unsigned int n);
/* True if there is a CQE; does not take it. */
bool urdma_eh_cq_ready(const struct urdma_eh_cq *cq);
void urdma_eh_arm_cq(struct urdma_eh_cq *cq, bool solicited_only);

struct urdma_eh_srq; /* host/eh_srq.h */

struct urdma_eh_qp_attr {
	uint32_t qpn, pd;
	/*
	 * XRC_INI has no receive queue and no recv_cq; XRC_TGT has no queue and no CQ, and pd is
	 * its domain
	 */
	struct urdma_eh_cq *send_cq, *recv_cq;
	unsigned int db_page;
	unsigned int log_sq, log_rq;		   /* entries */
	unsigned int log_sq_stride, log_rq_stride; /* 6 to 9 */
	bool sig_all;
	bool priv;			/* a kernel QP: may post REG_MR */
	bool no_loop;			/* UD: multicast datagrams go only to the wire */
	unsigned int type;		/* URDMA_QPT_*; 0: RC */
	const struct urdma_eh_srq *srq; /* or NULL; a QP with an SRQ has no receive queue */
	enum urdma_eh_ring_kind kind;
};

struct urdma_eh_qp {
	struct urdma_eh *eh;
	uint32_t qpn;
	unsigned int type;
	unsigned int db_page;
	struct urdma_eh_ring sq, rq;
	uint32_t sq_pi, rq_pi; /* free running */
};

int urdma_eh_create_qp(struct urdma_eh *eh, const struct urdma_eh_qp_attr *attr,
		       struct urdma_eh_qp *qp);
int urdma_eh_destroy_qp(struct urdma_eh_qp *qp);
/* The function fills in word 0 (opcode, object); words 1 to 7 are those of MODIFY_QP. */
int urdma_eh_modify_qp(struct urdma_eh_qp *qp, struct urdma_eh_cmd *cmd);
int urdma_eh_query_qp(struct urdma_eh_qp *qp, struct urdma_eh_cmd *cpl);
struct urdma_eh_qp_info {
	unsigned int state;
	bool draining;
	uint32_t sq_psn, rq_psn;
	uint16_t sq_pi, sq_ci, rq_pi, rq_ci;
};
int urdma_eh_qp_info(struct urdma_eh_qp *qp, struct urdma_eh_qp_info *info);
/* Selects the counter set of the QP, 0: the default set; reads a set; clears a set. */
int urdma_eh_set_qp_cnt(struct urdma_eh_qp *qp, uint32_t set);
int urdma_eh_query_cnt(struct urdma_eh *eh, uint32_t set, uint64_t value[URDMA_QCNT_N]);
int urdma_eh_clear_cnt(struct urdma_eh *eh, uint32_t set);

/*
 * Attributes of a connection. Zero is a valid value of each field. UC and UD use only the
 * attributes that they have: UD has MTU, Q_Key, P_Key and sq_psn.
 */
struct urdma_eh_conn {
	uint32_t dest_qpn;
	unsigned int mtu; /* 1: 256 .. 5: 4096 */
	uint32_t sq_psn, rq_psn;
	unsigned int sgid_index;
	uint8_t dgid[16];
	uint8_t dmac[6];
	unsigned int timeout, retry, rnr_retry, min_rnr;
	unsigned int max_rd_atomic, max_dest_rd_atomic;
	unsigned int access; /* URDMA_ACC_* */
	uint16_t udp_sport;  /* 0: 0xc000 and the QP number */
	uint8_t tclass, hop_limit;
	uint32_t flow_label;
	uint16_t pkey;	  /* 0: 0xffff */
	uint32_t qkey;	  /* UD */
	unsigned int pcp; /* priority of the VLAN tag, if the GID has a VLAN */
};

/*
 * Timers that recover from loss within a millisecond, unlimited retries where possible, 16 READs
 * and ATOMICs in each direction, all remote rights.
 */
void urdma_eh_conn_defaults(struct urdma_eh_conn *conn, unsigned int mtu);

int urdma_eh_to_init(struct urdma_eh_qp *qp, const struct urdma_eh_conn *conn);
int urdma_eh_to_rtr(struct urdma_eh_qp *qp, const struct urdma_eh_conn *conn);
int urdma_eh_to_rts(struct urdma_eh_qp *qp, const struct urdma_eh_conn *conn);
int urdma_eh_to_err(struct urdma_eh_qp *qp);
/* event: raise SQ_DRAINED when all started messages are completed. */
int urdma_eh_to_sqd(struct urdma_eh_qp *qp, bool event);
int urdma_eh_sqd_to_rts(struct urdma_eh_qp *qp);
int urdma_eh_to_reset(struct urdma_eh_qp *qp); /* also resets the indices to 0 */

/* The port's MAC address, byte 0 first. */
int urdma_eh_mac(struct urdma_eh *eh, uint8_t mac[6]);
/* GID table entry with the port's own MAC address. ipv4: gid is ::ffff:a.b.c.d. */
int urdma_eh_set_gid(struct urdma_eh *eh, unsigned int index, const uint8_t gid[16], bool ipv4);
/* Destination of a datagram. */
struct urdma_eh_ah {
	unsigned int sgid_index;
	uint8_t dgid[16];
	uint8_t dmac[6];
	uint8_t tclass, hop_limit; /* hop_limit 0: 64 */
	uint32_t flow_label;
	uint16_t udp_sport; /* 0: 0xc000 */
	unsigned int pcp;   /* priority of the VLAN tag */
};

/* The destination for a NIC with the address that urdma_eh_connect() sets. */
int urdma_eh_ah_to(struct urdma_eh *eh, bool ipv6, struct urdma_eh_ah *ah);
/* The address that urdma_eh_connect() sets for a NIC. */
void urdma_eh_own_gid(struct urdma_eh *eh, bool ipv6, uint8_t gid[16]);
/*
 * The destination for a multicast group, with its MAC address. The other two functions attach and
 * detach members, and return the status of the command.
 */
void urdma_eh_ah_group(const uint8_t gid[16], struct urdma_eh_ah *ah);
int urdma_eh_attach_mcast(struct urdma_eh_qp *qp, const uint8_t gid[16]);
int urdma_eh_detach_mcast(struct urdma_eh_qp *qp, const uint8_t gid[16]);
/* ::ffff:a.b.c.d */
void urdma_eh_gid_ipv4(uint8_t gid[16], uint32_t ipv4);

/*
 * Connects two QPs of the same type, or an XRC_INI and an XRC_TGT, of one or two NICs, from RESET
 * to RTS. The IPv4 addresses are 10.0.0.<nic + 1>, with ipv6 fd00::<nic + 1>. Sets GID entry 0
 * (IPv4) or 1 (IPv6).
 */
int urdma_eh_connect(struct urdma_eh_qp *a, struct urdma_eh_qp *b, unsigned int mtu, bool ipv6);
/*
 * The same, with the timers, limits and rights of conn for both sides. The PSNs of conn are those
 * of a; if both are 0, the library chooses. Ignores the addresses and the QP number in conn.
 */
int urdma_eh_connect_as(struct urdma_eh_qp *a, struct urdma_eh_qp *b,
			const struct urdma_eh_conn *conn, bool ipv6);
/*
 * The same for n pairs a[i], b[i] as a batch. All pairs have the same two NICs, or all the same
 * one.
 */
int urdma_eh_connect_many(struct urdma_eh_qp *a, struct urdma_eh_qp *b, unsigned int n,
			  const struct urdma_eh_conn *base, bool ipv6);

/* ---- work: no waiting ----------------------------------------------------------------------- */

struct urdma_eh_sge {
	uint64_t addr;
	uint32_t length, lkey;
};

struct urdma_eh_send {
	unsigned int opcode;	      /* URDMA_WR_* */
	const struct urdma_eh_ah *ah; /* UD, with dest_qpn and qkey */
	uint32_t dest_qpn, qkey;
	uint32_t srqn; /* XRC: SRQ of the peer */
	bool signaled, solicited, fence;
	uint32_t imm;	/* low byte first on the wire */
	uint32_t key;	/* SEND_INV, LOCAL_INV: key to invalidate; BIND_MW: lkey of the region */
	uint64_t raddr; /* REG_MR, BIND_MW: start */
	uint32_t rkey;	/* REG_MR, BIND_MW: the new key */
	uint64_t swap_add, compare; /* ATOMIC */
	/*
	 * FLUSH: type (URDMA_FLUSH_GLOBAL ...), level (URDMA_FLUSH_RANGE or MR), length of the
	 * range
	 */
	unsigned int flush_type, flush_level;
	uint32_t flush_length;
	uint64_t write_value; /* ATOMIC WRITE */
	uint64_t mr_length;   /* REG_MR, BIND_MW */
	unsigned int mr_access;
	const struct urdma_eh_map *map; /* REG_MR */
	const struct urdma_eh_sge *sge;
	unsigned int n_sge;
	const void *inline_data; /* instead of SGEs */
	uint32_t inline_len;
};

/* Writes the WQE; -E2BIG if it does not fit its slot. Does not check for room in the ring. */
int urdma_eh_put_send(struct urdma_eh_qp *qp, const struct urdma_eh_send *wr);
/* Writes a receive WQE into the slot of an index. */
int urdma_eh_put_rqe(struct urdma_eh_ring *ring, uint32_t index, const struct urdma_eh_sge *sge,
		     unsigned int n_sge);
int urdma_eh_put_recv(struct urdma_eh_qp *qp, const struct urdma_eh_sge *sge, unsigned int n_sge);
/*
 * REG_MR of len bytes from p at va, with a new variant of the key; mr then has the new key. The
 * page list in mr lives until urdma_eh_destroy_mr() or the next REG_MR. levels and page_shift are
 * as in urdma_eh_map().
 */
int urdma_eh_put_reg_mr(struct urdma_eh_qp *qp, struct urdma_eh_mr *mr, uint8_t variant,
			unsigned int access, void *p, size_t len, uint64_t va, int levels,
			unsigned int page_shift, bool signaled);
/* BIND_MW of a window to part of a region; mw then has the new key. */
int urdma_eh_put_bind_mw(struct urdma_eh_qp *qp, struct urdma_eh_mr *mw, uint8_t variant,
			 unsigned int access, const struct urdma_eh_mr *region, uint64_t va,
			 size_t len, bool signaled);
int urdma_eh_put_local_inv(struct urdma_eh_qp *qp, uint32_t key, bool signaled);
/* Rings the doorbell for all WQEs put so far. */
void urdma_eh_ring_sq(struct urdma_eh_qp *qp);
void urdma_eh_ring_rq(struct urdma_eh_qp *qp);
/* Put and ring. */
int urdma_eh_post_send(struct urdma_eh_qp *qp, const struct urdma_eh_send *wr);
int urdma_eh_post_recv(struct urdma_eh_qp *qp, const struct urdma_eh_sge *sge, unsigned int n_sge);

/*
 * Device memory through BAR 2. Offset and length must both be multiples of 4, or of 8. A read
 * waits.
 */
void urdma_eh_dm_write(struct urdma_eh *eh, uint64_t offset, const void *p, size_t len);
int urdma_eh_dm_read(struct urdma_eh *eh, uint64_t offset, void *p, size_t len);

/* Any doorbell, with a word as in urdma_hw.h. */
void urdma_eh_doorbell(struct urdma_eh *eh, unsigned int page, unsigned int offset, uint64_t word);

/* Waits until a CQ has a CQE, at most limit cycles. */
int urdma_eh_wait_cq(struct urdma_eh_cq *cq, uint64_t limit);
/* Waits for one CQE and takes it. */
int urdma_eh_next_cqe(struct urdma_eh_cq *cq, struct urdma_eh_cqe *cqe, uint64_t limit);

#endif
