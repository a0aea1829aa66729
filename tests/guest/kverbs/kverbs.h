/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * kverbs: declarations that its files share. Messages have a common prefix, because the test's
 * script looks for it.
 */
#ifndef KVERBS_H
#define KVERBS_H

#undef pr_fmt
#define pr_fmt(fmt) "kverbs: " fmt

#include <linux/completion.h>
#include <linux/if_ether.h>
#include <linux/printk.h>
#include <linux/scatterlist.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#define PORT	 1
#define DEPTH	 64
#define BUF_SIZE 65536
#define LIMIT	 (10 * HZ)
#define EVENTS	 32
#define INLINE	 64
#define RD_DEPTH 16

/* A region of separate pages; it begins inside the first of them. */
#define PAGES	      8
#define REGION_OFFSET 512
#define REGION_SIZE   (PAGES * PAGE_SIZE - REGION_OFFSET)

/* A work request that is waited for. These objects outlive the QPs, so each completion finds its
 * object. */
struct op {
	struct ib_cqe cqe;
	struct completion done;
	struct ib_wc wc;
	/* order in which it completed */
	u32 order;
};

#define OPS 512

/* After so many failed checks the rest of a mode is left out: each may take a time-out. */
#define TOO_MANY 5

struct region {
	struct side *side;
	struct ib_mr *mr;
	struct page *page[PAGES];
	struct scatterlist sg[PAGES];
};

struct side {
	struct test *t;
	const char *name;
	struct side *peer;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *scq;
	struct ib_cq *rcq;
	struct ib_qp *qp;
	u8 *buf;
	dma_addr_t dma;
	union ib_gid gid;
	u32 gid_index;
	u8 mac[ETH_ALEN];
	enum ib_mtu mtu;
	atomic_t events[EVENTS];
	/* calls of bare_comp() */
	atomic_t called;
};

struct test {
	struct side a;
	struct side b;
	enum ib_poll_context ctx;
	struct op *ops;
	u32 next_op;
	/* the number of the present one */
	u32 connection;
	atomic_t order;
	wait_queue_head_t event;
};

/* A way of polling. */
struct mode {
	enum ib_poll_context ctx;
	const char *name;
};

#define MODES 4
extern const struct mode modes[MODES];

#define WANT(cond)                                                                \
	do {                                                                      \
		if (!(cond)) {                                                    \
			pr_err("%s:%d: not so: %s\n", __func__, __LINE__, #cond); \
			return -EIO;                                              \
		}                                                                 \
	} while (0)

#define TRY(expr)                                                                   \
	do {                                                                        \
		int err_ = (expr);                                                  \
		if (err_) {                                                         \
			pr_err("%s:%d: %s: %d\n", __func__, __LINE__, #expr, err_); \
			return err_;                                                \
		}                                                                   \
	} while (0)

/* main.c */
struct op *op_get(struct test *t);
int op_want(struct ib_cq *cq, struct op *op, enum ib_wc_status status);
struct ib_sge sge_of(struct side *s, u32 offset, u32 len);
int post_recv(struct side *s, u32 offset, u32 len, struct op **opp);
int send_wait(struct side *s, struct ib_send_wr *wr, enum ib_wc_status status);
int connect_sides(struct test *t);
int test_make(struct test *t, struct ib_device *a, struct ib_device *b, enum ib_poll_context ctx);
void test_free(struct test *t);

/* of a QP or an SRQ; its context is the side */
void side_event(struct ib_event *event, void *context);
int want_event(struct side *s, enum ib_event_type type);

/* srq.c */
int check_srq(struct test *t);

/* unrel.c */
int check_ud(struct test *t);
int check_gsi(struct test *t);
int check_uc(struct test *t);
int check_no_xrc(struct test *t);

/* dead.c */
unsigned int run_dead(struct ib_device *a, struct ib_device *b, unsigned int *passed);

#endif
