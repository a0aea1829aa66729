/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * urdma provider: objects.
 *
 * Locks. A CQ's lock covers its ring, its consumer index, the table of QPs as polling sees it, and
 * the tails that polling moves in work queues. A work queue's lock covers its head and slots; that
 * of an SRQ also covers its free places. The order is qp_mutex, CQs by ascending address, SQ, RQ,
 * SRQ. A program may promise that only one thread at a time uses an object: by a thread domain, for
 * a CQ also by IBV_CREATE_CQ_ATTR_SINGLE_THREADED. Then its lock is not taken.
 *
 * Cache lines. Fields that the poster of a work queue writes and fields that the poller writes are
 * in separate lines, because the two are often different CPUs. A third line has the fields that
 * neither writes, except a CQ's ring, which may be replaced under the lock.
 */
#ifndef URDMA_PROVIDER_H
#define URDMA_PROVIDER_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <infiniband/kern-abi.h>
#include <util/util.h>

#include "urdma-abi.h"
#include "kernel-abi/urdma-abi.h"
#include "urdma_hw.h"

DECLARE_DRV_CMD(urdma_alloc_context, IB_USER_VERBS_CMD_GET_CONTEXT, empty,
		urdma_alloc_ucontext_resp);
DECLARE_DRV_CMD(urdma_cmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH, empty, urdma_create_ah_resp);
DECLARE_DRV_CMD(urdma_cmd_create_cq, IB_USER_VERBS_EX_CMD_CREATE_CQ, urdma_create_cq_req,
		urdma_create_cq_resp);
DECLARE_DRV_CMD(urdma_cmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ, urdma_resize_cq_req,
		urdma_resize_cq_resp);
DECLARE_DRV_CMD(urdma_cmd_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ, urdma_create_srq_req,
		urdma_create_srq_resp);
/* the same for another type */
DECLARE_DRV_CMD(urdma_cmd_create_xsrq, IB_USER_VERBS_CMD_CREATE_XSRQ, urdma_create_srq_req,
		urdma_create_srq_resp);
DECLARE_DRV_CMD(urdma_cmd_create_qp, IB_USER_VERBS_CMD_CREATE_QP, urdma_create_qp_req,
		urdma_create_qp_resp);
/* the same with a flags word */
DECLARE_DRV_CMD(urdma_cmd_create_qp_ex, IB_USER_VERBS_EX_CMD_CREATE_QP, urdma_create_qp_req,
		urdma_create_qp_resp);

/* A WQE is a slot of 2^6 to 2^9 bytes. */
#define URDMA_MIN_WQE_LOG 6
#define URDMA_MAX_WQE_LOG 9
/* Number of SGEs that the largest slot could hold */
#define URDMA_MAX_SGE (((1 << URDMA_MAX_WQE_LOG) - URDMA_RQE_DATA_OFFSET) / URDMA_SGE_SIZE)
/* Smallest rings: a page of CQEs; a few WQEs, as extra slots cost little. */
#define URDMA_MIN_CQ_LOG 7
#define URDMA_MIN_WQ_LOG 4

/* Low byte of a key: chosen freely at each registration. The rest is the index. */
#define URDMA_KEY_VARIANT 0xffU

#define URDMA_CACHE_LINE 64

struct urdma_lock {
	pthread_spinlock_t spin;
	bool needed;
};

struct urdma_context {
	struct verbs_context ibv_ctx;
	void *db;
	uint32_t db_size;
	uint64_t features;
	/* bit n: URDMA_WR_* n may be posted */
	uint32_t opcodes;
	uint32_t max_sq_sge;
	uint32_t max_rq_sge;
	uint32_t max_inline;
	uint8_t log_max_sq;
	uint8_t log_max_rq;
	uint8_t log_max_cqe;
	uint8_t log_max_msg;
	uint8_t log_max_qp;
	uint8_t log_max_srq;

	/* held during creation and destruction, so that a number is not reused in between */
	pthread_mutex_t qp_mutex;
	/* by QP number; its unused pages take no memory */
	struct urdma_qp **qp_table;
	/* XRC SRQs by number, under the same mutex; the mask is the number of entries minus one */
	struct urdma_srq **srq_table;
	uint32_t srq_mask;
};

struct urdma_td {
	struct ibv_td ibv_td;
	/* parent domains that use it */
	_Atomic(uint32_t) users;
};

struct urdma_pd {
	struct ibv_pd ibv_pd;
	/* objects created with it, except address handles; an import counts as one */
	_Atomic(uint32_t) users;
	bool imported;
	/* for a parent domain: the PD in it, and the optional attributes */
	struct ibv_pd *contained;
	struct urdma_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		       uint64_t type);
	void (*free)(struct ibv_pd *pd, void *context, void *ptr, uint64_t type);
	void *pd_context;
};

/* The purpose of memory, as told to the allocator of a parent domain. */
enum urdma_res_type {
	URDMA_RES_QP = 1,
	URDMA_RES_SRQ,
	URDMA_RES_CQ,
};

/* Memory that the NIC reads or writes. */
struct urdma_ring {
	void *at;
	size_t bytes;
	/* whose allocator it came from, and its purpose; NULL: allocated by the provider */
	struct urdma_pd *domain;
	enum urdma_res_type type;
};

struct urdma_ah {
	struct ibv_ah ibv_ah;
	/* words 4 to 7 of a UD send WQE */
	__le64 av[4];
};

struct urdma_dm {
	struct verbs_dm vdm;
	/* where it is mapped, and the size of the mapping in bytes */
	uint8_t *at;
	size_t mapped;
	uint64_t length;
};

/* A point in time by the NIC's clock and the host's CLOCK_REALTIME and CLOCK_MONOTONIC. */
struct urdma_clock {
	uint64_t cycles;
	uint64_t wall_ns;
	uint64_t read_ns;
	/* frequency of the NIC's clock */
	uint32_t khz;
};

struct urdma_cqe {
	__le64 w[URDMA_CQE_SIZE / 8];
};

struct urdma_cq {
	struct verbs_cq vcq;
	struct urdma_cqe *ring;
	/* the context's table, and its number of entries minus one */
	struct urdma_qp **qp_table;
	uint32_t qp_mask;
	uint32_t srq_mask;
	struct urdma_srq **srq_table;
	uint32_t cqn;
	void *db;
	/* entries, less one */
	uint32_t mask;
	uint8_t log;
	/* shift from bit LOG to the phase bit */
	uint8_t phase_shift;
	struct urdma_ring mem;
	/* the parent domain that it was created with, or NULL */
	struct ibv_pd *domain;

	alignas(URDMA_CACHE_LINE) struct urdma_lock lock;
	/* consumer index in the ring, free running, and its value last sent to the NIC */
	uint32_t ci;
	uint32_t told;
	/* the index of entry 0 of the ring, as in doorbells */
	uint32_t base;
	/* CQEs that may be consumed before the index is sent to the NIC */
	uint32_t slack;
	/* during a resize: the ring that the NIC changes to; else its address is NULL */
	struct urdma_ring next;
	uint8_t next_log;
	/* extended polling: the current completion, and the cycle when it was written */
	struct ibv_wc wc;
	uint64_t cycles;
	struct urdma_clock clock;
};

struct urdma_wq {
	alignas(URDMA_CACHE_LINE) uint8_t *ring;
	uint64_t *wr_id;
	void *db;
	/* doorbell word without the index */
	uint64_t db_word;
	/* opcode of a completion, by the opcode of its CQE */
	const uint8_t *wc_opcode;
	/* for an RQ with an SRQ: the source of its WQEs and of wr_id */
	struct urdma_srq *srq;
	/* number of slots minus one */
	uint32_t mask;
	/* size of a slot in bytes */
	uint32_t stride;
	uint32_t max_sge;
	uint8_t log;
	uint8_t log_stride;
	struct urdma_ring mem;

	/* The poster's: next index to post, and the first one not free at the last check. */
	alignas(URDMA_CACHE_LINE) struct urdma_lock lock;
	uint16_t head;
	uint16_t limit;
	/* SQ, extended posting: the WQE before head, and its opcode */
	uint32_t opcode;
	__le64 *wqe;
	/* SQ, extended posting: where the batch began, and its first error */
	uint16_t batch;
	int batch_err;

	/* The poller's, under the CQ's lock: all WQEs before tail are completed. */
	alignas(URDMA_CACHE_LINE) _Atomic(uint16_t) tail;
};

/*
 * A shared receive queue. Its WQEs complete in any order, so they are in places of an array, the
 * ring of wq. A ring of indices after the array names the posted places, and wq.head counts these
 * indices. wr_id is indexed by place. The tail is not used: polling puts a place back on the stack.
 */
struct urdma_srq {
	struct verbs_srq vsrq;
	struct urdma_wq wq;
	__le16 *index;
	/* a stack, under the lock of wq */
	uint16_t *free;
	uint32_t num_free;
};

struct urdma_qp {
	struct verbs_qp vqp;
	/* longest message, in bytes */
	alignas(URDMA_CACHE_LINE) uint64_t max_msg;
	/* initial word 0 of each send WQE */
	uint64_t sqe0;
	/* bit n: URDMA_WR_* n may be posted */
	uint32_t opcodes;
	/* the same for RC and UC; 0 for UD and XRC, so that RC and UC need no check of the type */
	uint32_t plain_opcodes;
	uint32_t max_inline;
	uint32_t qpn;
	struct urdma_wq sq;
	struct urdma_wq rq;
};

static inline struct urdma_context *to_uctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct urdma_context, ibv_ctx.context);
}

static inline struct urdma_pd *to_upd(struct ibv_pd *pd)
{
	return container_of(pd, struct urdma_pd, ibv_pd);
}

static inline struct urdma_td *to_utd(struct ibv_td *td)
{
	return container_of(td, struct urdma_td, ibv_td);
}

static inline void urdma_lock_init(struct urdma_lock *lock, bool needed)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->needed = needed;
}

static inline void urdma_lock_destroy(struct urdma_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void urdma_lock(struct urdma_lock *lock)
{
	if (lock->needed)
		pthread_spin_lock(&lock->spin);
}

static inline void urdma_unlock(struct urdma_lock *lock)
{
	if (lock->needed)
		pthread_spin_unlock(&lock->spin);
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline struct urdma_ah *to_uah(struct ibv_ah *ah)
{
	return container_of(ah, struct urdma_ah, ibv_ah);
}

static inline struct urdma_dm *to_udm(struct ibv_dm *dm)
{
	return container_of(dm, struct urdma_dm, vdm.dm);
}

static inline struct urdma_cq *to_ucq(struct ibv_cq *cq)
{
	return container_of(cq, struct urdma_cq, vcq.cq);
}

static inline struct urdma_srq *to_usrq(struct ibv_srq *srq)
{
	return container_of(srq, struct urdma_srq, vsrq.srq);
}

static inline struct urdma_qp *to_uqp(struct ibv_qp *qp)
{
	return container_of(qp, struct urdma_qp, vqp.qp);
}

/* verbs.c */
int urdma_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size);
int urdma_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
struct ibv_mr *urdma_mr_made(struct ibv_pd *pd, struct verbs_mr *vmr, int err);
struct ibv_mr *urdma_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t hca_va,
			    int access);
struct ibv_mr *urdma_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				   int fd, int access);
int urdma_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		   int access);
int urdma_dereg_mr(struct verbs_mr *vmr);
struct ibv_mw *urdma_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int urdma_dealloc_mw(struct ibv_mw *mw);
struct ibv_ah *urdma_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int urdma_destroy_ah(struct ibv_ah *ah);
struct ibv_cq *urdma_create_cq(struct ibv_context *ctx, int cqe, struct ibv_comp_channel *channel,
			       int comp_vector);
struct ibv_cq_ex *urdma_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
int urdma_resize_cq(struct ibv_cq *cq, int cqe);
int urdma_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int urdma_destroy_cq(struct ibv_cq *cq);
struct ibv_qp *urdma_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *urdma_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int urdma_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int urdma_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init);
int urdma_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags);
int urdma_destroy_qp(struct ibv_qp *qp);

/* clock.c */
int urdma_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
int urdma_clock_init(struct ibv_context *ctx, struct urdma_clock *clock);
uint64_t urdma_clock_wall_ns(struct ibv_context *ctx, struct urdma_clock *clock, uint64_t cycles);

/* srq.c */
struct ibv_srq *urdma_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *urdma_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr);
int urdma_get_srq_num(struct ibv_srq *srq, uint32_t *srqn);
int urdma_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int urdma_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int urdma_destroy_srq(struct ibv_srq *srq);

/* domain.c */
void urdma_pd_get(struct ibv_pd *pd);
void urdma_pd_put(struct ibv_pd *pd);
bool urdma_pd_has_td(const struct ibv_pd *pd);
struct ibv_pd *urdma_alloc_pd(struct ibv_context *ctx);
int urdma_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *urdma_alloc_parent_domain(struct ibv_context *ctx,
					 struct ibv_parent_domain_init_attr *attr);
struct ibv_td *urdma_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *attr);
int urdma_dealloc_td(struct ibv_td *td);
struct ibv_pd *urdma_import_pd(struct ibv_context *ctx, uint32_t handle);
void urdma_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *urdma_import_mr(struct ibv_pd *pd, uint32_t handle);
void urdma_unimport_mr(struct ibv_mr *mr);

/* dm.c */
struct ibv_dm *urdma_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int urdma_free_dm(struct ibv_dm *dm);
struct ibv_mr *urdma_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
			       unsigned int access);
struct ibv_dm *urdma_import_dm(struct ibv_context *ctx, uint32_t handle);
void urdma_unimport_dm(struct ibv_dm *dm);

/* xrc.c */
struct ibv_xrcd *urdma_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr);
int urdma_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *urdma_create_target(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *urdma_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
int urdma_destroy_target(struct urdma_qp *qp);

/* rings.c */
struct urdma_wq_shape {
	/* minimum number of WQEs and bytes of each; log2 of the device's maximum number */
	uint32_t wr;
	uint32_t wqe_bytes;
	uint8_t log_max;
	/* extra bytes per WQE, after all WQEs */
	uint32_t more;
	struct ibv_pd *pd;
	enum urdma_res_type type;
};

void *urdma_zalloc(size_t bytes);
int urdma_alloc_ring(struct urdma_ring *ring, struct ibv_pd *pd, enum urdma_res_type type);
void urdma_free_ring(struct urdma_ring *ring);
int urdma_wq_init(struct urdma_wq *wq, const struct urdma_wq_shape *shape);
void urdma_wq_init_closed(struct urdma_wq *wq);
void urdma_wq_uninit(struct urdma_wq *wq);
void urdma_wq_reset(struct urdma_wq *wq);
void urdma_wq_set_doorbell(struct urdma_wq *wq, void *db, uint32_t obj);
uint32_t urdma_rq_max_sge(const struct urdma_context *ctx, const struct urdma_wq *rq);

/* send.c */
uint32_t urdma_opcodes(uint64_t features);
int urdma_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int urdma_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* send_ex.c */
void urdma_set_wr_ops(struct urdma_qp *qp);

/* recv.c */
int urdma_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int urdma_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void urdma_srq_put(struct urdma_srq *srq, uint16_t place);

/* poll.c */
extern const uint8_t urdma_send_wc_opcode[256];
extern const uint8_t urdma_recv_wc_opcode[256];
int urdma_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int urdma_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void urdma_set_poll_ops(struct urdma_cq *cq, uint64_t wc_flags);
void urdma_cq_forget_qp(struct urdma_cq *cq, struct urdma_qp *qp);
void urdma_cq_forget_srq(struct urdma_cq *cq, uint32_t srqn);
uint32_t urdma_cq_pending(struct urdma_cq *cq);
void urdma_cq_set_ring(struct urdma_cq *cq, const struct urdma_ring *mem, uint8_t log);
void urdma_cq_change_ring(struct urdma_cq *cq, uint32_t base);

#endif
