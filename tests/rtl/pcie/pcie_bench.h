/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of urdma_pcie in its test: on one side a host behind a PG213 block, on the other
 * the clients of the DMA, register, doorbell and interrupt ports. All outputs of the block are
 * checked here against the requests, byte by byte and in order; a violation fails the running
 * cmocka test at once, with the cycle.
 */
#ifndef PCIE_BENCH_H
#define PCIE_BENCH_H

#include "pcie_model.h"

#define CPL_TIMEOUT    10000 /* as in CMakeLists.txt */
#define TAG_QUARANTINE 40000
#define SWEEP	       1024 /* cycles between looks at the tags */

#define RD_BASE 0x0000001234000000ull /* what reads read */
#define RD_SIZE (1u << 20)
#define WR_BASE 0x7fff800000400000ull /* where writes go */
#define WR_SIZE (1u << 20)

/* Device memory. DMA writes go to its first half, the host's to the second; all read everywhere. */
#define DM_ADDR (1ull << 63)
#define DM_BAR	0x400000u /* in BAR 2 */
#define DM_SIZE 0x20000u
#define DM_HALF (DM_SIZE / 2)
#define DM_PAST 24 /* values of a byte that are kept */

#define QUEUE 8192 /* entries of each queue of expectations */

/* What goes wrong with a read TLP. */
enum cpl_fault {
	F_NONE,
	F_UR,	      /* completion status UR */
	F_CA,	      /* completion status CA */
	F_POISON,     /* poisoned, the rest of the request still comes */
	F_TERMINATED, /* RC error code 3 */
	F_BYTE_COUNT, /* byte count wrong, the rest still comes */
	F_DWORDS,     /* descriptor counts a dword less than there are */
	F_SHORT,      /* the packet ends a dword early */
	F_ADDR,	      /* lower address wrong */
	F_DISCONTINUE,
	F_NO_DATA,	/* successful, but without payload */
	F_CORE_TIMEOUT, /* the block's own time-out, RC error code 9 */
	F_LOST,		/* no completion ever */
	F_LATE,		/* all completions after the time-out */
	F_N
};

/*
 * What was written to a byte of device memory. A read returns the last value that was there when it
 * was asked for, or a later one.
 */
struct dm_value {
	uint64_t since;	 /* DMA: cycle in which the request was accepted; ~0: it is not yet */
	uint32_t serial; /* of a write of the host; 0: DMA */
	uint8_t value;
};

struct dm_byte {
	struct dm_value past[DM_PAST]; /* newest first */
	uint8_t n;
};

struct rd_request {
	int client;
	bool dm;
	uint32_t
		bar_done; /* device memory: writes of the host that were done when it was granted */
	uint64_t addr;
	uint32_t len, asked, got;
	uint32_t fail_off; /* from here on bytes may be zero; beyond fail_end they have to be */
	uint32_t fail_end;
	bool failed, dropped;
	uint64_t granted;
	uint64_t behind; /* writes accepted before it was granted */
};

struct wr_request {
	uint64_t addr;
	uint32_t len, sent;
	uint8_t data[4096];
	bool dropped;
};

/* A read TLP the host has to answer. */
struct host_read {
	bool busy;
	uint64_t addr, sent, ready;
	uint32_t len, done;
	uint32_t cut[66]; /* ends of the completions, as offsets */
	int n, next;
	enum cpl_fault fault;
	int fault_at;
	bool broken; /* the faulty completion has been sent */
	bool lost;
};

struct rd_client {
	int prob;	   /* chance in 256 to ask in a cycle */
	uint32_t left;	   /* requests still to ask */
	uint32_t min, max; /* length */
	uint32_t align;	   /* of address */
	int dm;		   /* chance in 256 of device memory, */
	uint64_t dm_from;  /* there, */
	uint32_t dm_span;
	uint64_t next_addr; /* if not 0: sequential */
	uint64_t bytes, last_grant, max_wait, since;
	uint32_t done;
};

struct wr_client {
	int prob; /* chance in 256 to begin a request in a cycle */
	int gap;  /* chance in 256 of a pause before a beat */
	uint32_t left;
	uint32_t min, max, align;
	int dm;		  /* chance in 256 of device memory, */
	uint64_t dm_from; /* there, */
	uint32_t dm_span;
	uint64_t next_addr; /* if not 0: sequential */
	bool active;
	uint32_t pos;
	struct wr_request req;
	uint64_t bytes;
	uint32_t done;
};

struct cq_tlp {
	uint8_t buf[16 + 256];
	int bytes;
	uint8_t first_be, last_be;
	bool discontinue;
	struct cpl_expect *cpl; /* NULL: posted */
	uint32_t serial;	/* write to device memory, 0: another */
};

enum cpl_kind { K_DATA, K_CA, K_UR };

struct cpl_expect {
	uint8_t desc[16];
	uint8_t first_be, last_be;
	enum cpl_kind kind;
	uint32_t dw, sent_dw, bytes, lower;
	uint32_t data[2];
	bool zero;
	bool dm;
	bool word; /* register or device memory: not before DMA writes that were there before */
	uint32_t dm_off; /* of its first dword */
	uint64_t issued; /* cycle in which the block took it */
	uint64_t behind; /* DMA writes accepted before */
	uint32_t serial; /* writes to device memory before it */
};

struct reg_expect {
	bool write;
	uint16_t addr;
	uint64_t data;
	uint8_t strb;
};

struct db_expect {
	uint16_t page, offset;
	uint64_t data;
};

struct bench {
	struct pcie_model *m;
	struct pcie_in in;
	struct pcie_out out;
	uint64_t rng, cycle;

	/* host behaviour: chances in 256 */
	int rq_stall, cc_stall, rc_gap, reg_stall, db_stall, cq_gap, irq_stall;
	uint32_t lat_min, lat_rand;
	bool in_order, random_cuts;
	int reorder; /* choose among the oldest so many; 0: among all */
	uint32_t rcb, max_cpl;
	int fault_prob; /* in 1024 */
	uint32_t fault_mask;
	int lose_each;	 /* if not 0: the tags that are multiples of it */
	bool given_up;	 /* a read has failed: its tag may be in quarantine */
	uint32_t rd_cut; /* read TLPs that ended early */
	bool hold_first; /* keep back the completions of hold_tag */
	int hold_tag;

	uint8_t rd_mem[RD_SIZE];
	struct dm_byte *dm;	       /* DM_SIZE */
	uint32_t bar_writes, bar_done; /* the host's, to device memory */
	uint64_t dm_bytes, dm_unknown; /* bytes read there; those of which anything goes */
	uint64_t dm_wr_last, dm_beats; /* last beat of a DMA write accepted, and how many */

	struct rd_client rdc[RD_N];
	struct wr_client wrc[WR_N];

	struct rd_request rd_q[QUEUE];
	uint32_t rd_head, rd_cursor, rd_tail; /* answered, seen on RQ, granted */
	struct wr_request *wr_q;
	uint32_t wr_head, wr_tail;
	uint64_t wr_accepted, wr_sent; /* requests */
	/* Bus master enable moves while writes are under way: each request, of one TLP, is sent or
	 * dropped as a whole. Each has another address. */
	bool master_moves;
	uint32_t begun_off; /* TLPs that began on RQ since bus master enable fell */

	struct host_read tag[256];
	uint8_t order[256]; /* tags in the order of their requests */
	int norder;

	uint8_t rq_buf[16 + 1024 + 64];
	int rq_len;
	uint8_t rq_first_be, rq_last_be;

	uint8_t rc_buf[12 + 1024];
	int rc_len, rc_pos;
	bool rc_disc;

	struct cq_tlp cq_q[QUEUE];
	uint32_t cq_head, cq_tail;
	int cq_pos;
	uint64_t regs[8192];   /* the register block behind the bus */
	uint64_t shadow[8192]; /* what the host expects of it */
	struct {
		uint64_t data, ready;
	} rsp_q[QUEUE];
	uint32_t rsp_head, rsp_tail;
	struct reg_expect reg_q[QUEUE];
	uint32_t reg_head, reg_tail;
	struct db_expect db_q[QUEUE];
	uint32_t db_head, db_tail;
	struct cpl_expect cpl_q[QUEUE];
	uint32_t cpl_head, cpl_tail;
	uint8_t cc_buf[12 + 1024];
	int cc_len;

	struct {
		uint8_t vec;
		uint64_t after;
	} irq_q[QUEUE];
	uint32_t irq_head, irq_tail, irq_left;
	int irq_prob;

	/* counted by the test, and from the block's pulses */
	struct counters {
		uint32_t rd_tlp, wr_tlp, dma_drop, cpl_err, cpl_timeout, cpl_unexpected, db_bad,
			mmio_bad;
	} want, have;

	/* cycle in which the timer was at its end last, the one it told last, and how long after
	 * the former a read was given up */
	uint64_t timer_end, timer_due, timeout_after;

	/* measurements */
	uint64_t rsp_beats, rsp_first, rsp_last;
	uint64_t rq_beats, rq_first, rq_last_cycle, rq_idle;
	uint64_t rd_tlp_last, rd_tlp_gap;
	uint32_t rd_waited; /* read TLPs seen while a write accepted after them was on RQ already */
	uint64_t rc_last_sent;
};

struct bench *bench_new(uint64_t seed);
void bench_free(struct bench *b);
uint32_t bench_rnd(struct bench *b, uint32_t n); /* 0..n-1 */
void bench_cycle(struct bench *b);
void bench_run(struct bench *b, uint32_t cycles);
/* Until every client is done, every answer has come and busy is 0; fails after limit cycles. */
void bench_drain(struct bench *b, uint32_t limit);
void bench_check_counters(struct bench *b);

/* A request of the host. addr is the offset in the BAR; be as PCIe has them. */
struct host_request {
	unsigned type, bar;
	uint64_t addr;
	uint32_t dw;
	uint8_t first_be, last_be;
	const uint32_t *data; /* of a write: dw dwords */
	bool discontinue;
};
void bench_host_request(struct bench *b, const struct host_request *r);

#endif
