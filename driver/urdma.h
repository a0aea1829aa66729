/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * urdma.ko: definitions that its files share.
 *
 * Lifetimes. struct urdma_dev lives from probe to remove, and so does the net device. The RDMA
 * device (struct urdma_ibdev) ends at each function reset and each system sleep, because the NIC
 * then forgets its objects. A new one is registered afterwards. The command queue and the event
 * queues are started before it is registered and stopped after it is unregistered. The RDMA files
 * get the net device only by ib_device_get_netdev(), with a reference. Memory that the NIC may
 * access (rings, page tables, pinned pages) is freed only after the command that destroys its
 * object has completed, or after bus mastering has been switched off (urdma_set_dead). So no
 * destroy has to fail.
 *
 * Locks of the data path are all taken with interrupts off. A CQ's lock covers its ring, its
 * consumer index, its lists of QPs, and the tails that polling moves in the work queues of those
 * QPs. A work queue's lock covers its head and slots. The CQ's lock is taken first. Work queues and
 * CQs of processes have no ring in the kernel, and their locks are never taken.
 */
#ifndef URDMA_H
#define URDMA_H

#include <linux/completion.h>
#include <linux/etherdevice.h>
#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/unaligned.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "urdma_hw.h"

#define URDMA_DRV_NAME "urdma"
#define URDMA_PORT     1
/* The service level goes into the three priority bits of a VLAN tag. */
#define URDMA_MAX_SL   7

/* Doorbell page of the kernel's objects and of EQs. */
#define URDMA_KERNEL_DB_PAGE 0

/* QP numbers 0 and 1 are reserved for management. Keys start at 0x100, so 0 is no key. */
#define URDMA_GSI_QPN	1
#define URDMA_FIRST_QPN 2
#define URDMA_FIRST_MR	1

/* A WQE has at most 512 bytes, even if the capability registers allow more. */
#define URDMA_MIN_WQE_LOG 6
#define URDMA_MAX_WQE_LOG 9
#define URDMA_CQE_LOG	  5
#define URDMA_MAX_UD_SGE  (((1 << URDMA_MAX_WQE_LOG) - URDMA_SQE_UD_DATA_OFFSET) / URDMA_SGE_SIZE)

/* Numbers of queues and unicast addresses with registers; log2 of the smallest ring. */
#define URDMA_ETH_MAX_QUEUES 32
#define URDMA_ETH_MAX_UC     16
#define URDMA_ETH_LOG_MIN    6
#define URDMA_MAX_EQS	     64

/* 1 GB of device memory: the core counts its bytes in 32 bits. */
#define URDMA_MAX_LOG_DM 30

/* Multicast: the NIC's table. */
#define URDMA_MCAST_GROUPS  64
#define URDMA_MCAST_MEMBERS 256

struct urdma_caps {
	u32 num_qp;
	/* 0: there are no SRQs */
	u32 num_srq;
	/* counter sets of QPs, with set 0; 0: none */
	u32 num_cnt_sets;
	u32 num_cq;
	u32 num_mr;
	u32 num_eq;
	u32 num_pd;
	u32 num_db_pages;
	u32 num_vectors;
	u32 max_sq_sge;
	u32 max_rq_sge;
	u32 max_inline;
	u8 log_qp;
	u8 log_sq;
	u8 log_rq;
	u8 log_cqe;
	u8 log_eqe;
	u8 log_cmdq;
	u8 log_max_msg;
	u8 max_rd_atomic;
	u32 num_gids;
	enum ib_mtu max_mtu;
	u64 page_sizes;
	u64 features;
	u64 clock_hz;
	/* Ethernet function; all 0 without it */
	u32 eth_queues;
	u32 eth_max_frame;
	u32 eth_tx_descs;
	u32 eth_uc;
	/* largest ring for which a completion ring can hold the completions of two */
	u8 log_eth_ring;
	u32 speed_mbps;
	/* device memory: number of CPU pages, and its offset in BAR_DB; both 0 without it */
	u32 dm_pages;
	u64 dm_offset;
	u16 version_minor;
};

/* A command or its completion, and an EQE, as they lie in memory. */
struct urdma_cmd {
	__le64 w[URDMA_CMD_SIZE / 8];
};

struct urdma_eqe {
	__le64 w[URDMA_EQE_SIZE / 8];
};

struct urdma_cqe {
	__le64 w[URDMA_CQE_SIZE / 8];
};

#define URDMA_CMD_WORDS (URDMA_CMD_SIZE / 8)

/* One for each tag. */
struct urdma_cmd_wait {
	struct completion done;
	bool busy;
	int err;
	u64 cpl[URDMA_CMD_WORDS];
};

struct urdma_cmdq {
	struct urdma_cmd *ring;
	struct urdma_cmd *cpl;
	dma_addr_t ring_dma;
	dma_addr_t cpl_dma;
	u8 log;
	/* completions raise EQEs in EQ 0; if false, waiters poll */
	bool events;
	/* counts free tags */
	struct semaphore room;
	/* protects all below */
	spinlock_t lock;
	u16 pi;
	u32 ci;
	unsigned long *tags;
	struct urdma_cmd_wait *wait;
};

struct urdma_eq {
	struct urdma_dev *dev;
	struct urdma_eqe *ring;
	dma_addr_t dma;
	u32 eqn;
	u32 ci;
	u8 log;
	bool irq_requested;
	int irq;
	/* interrupts taken */
	u32 irqs;
	/* entries read by the last run of the handler */
	u32 last;
	/* counter EQ_LOST at its last reading */
	u64 lost;
	/* the EQ was full: its CQs wait for urdma_cq_notify_work() */
	bool overflow;
	char name[40];
};

enum urdma_flag {
	/* no more commands are sent, and no DMA can come */
	URDMA_F_DEAD,
};

struct urdma_dev;

struct urdma_ibdev {
	struct ib_device ibdev;
	struct urdma_dev *dev;
};

struct urdma_dev {
	struct pci_dev *pdev;
	void __iomem *regs;
	/* doorbell page 0, the kernel's; processes map the others */
	void __iomem *db;
	/* all of the device memory; NULL: there is none */
	void __iomem *dm;
	resource_size_t db_bus;
	/* the configuration space as probe found it */
	struct pci_saved_state *config;
	unsigned long flags;
	struct urdma_caps caps;

	struct urdma_cmdq cmdq;
	struct urdma_eq *eqs;
	u32 num_eqs;
	/* vectors of the net device's channels, from num_eqs on */
	u32 num_eth_vectors;

	struct xarray cq_xa;
	struct xarray qp_xa;
	struct xarray srq_xa;
	struct xarray mr_xa;
	u32 next_cqn;
	u32 next_qpn;
	u32 next_srqn;
	u32 next_mr;
	/* variant of the next MR with an index */
	u8 *mr_variant;
	struct ida pd_ida;
	struct ida db_ida;
	struct ida cnt_ida;
	/* protects dm_used: the pages of device memory that are not free */
	spinlock_t dm_lock;
	unsigned long *dm_used;
	/* while the device dies: see urdma_set_dead() */
	spinlock_t dead_lock;
	/* only of this device; destroying an object waits for notify_work */
	struct workqueue_struct *wq;
	/* calls consumers for which the NIC raises no event: urdma_cq_notify_work() */
	struct work_struct notify_work;

	struct dentry *debugfs;

	/* NULL: not registered, because the device could not be started after a reset */
	struct urdma_ibdev *ib;
	/* events of the RDMA device are raised under this lock, and only while ib_events is set */
	spinlock_t ib_lock;
	bool ib_events;

	/* private to the net device's files (urdma_netdev.c, urdma_eth.h) */
	struct net_device *netdev;
	/* covers reading the link and setting the carrier as one step, and changes of netdev */
	spinlock_t link_lock;
	struct notifier_block netdev_nb;
	bool port_active;
};

/* The page table that the NIC walks for a ring or an MR. See URDMA_RING_* in urdma_hw.h. */
struct urdma_pt {
	u8 levels;
	u8 page_shift;
	/* base, table or directory */
	dma_addr_t addr;
	size_t pages;
	u32 num_tables;
	/* 4 KB tables of page addresses */
	__le64 **table;
	dma_addr_t *table_dma;
	/* with two levels: addresses of the tables */
	__le64 *dir;
	dma_addr_t dir_dma;
};

/* Memory of a process, or a ring of the kernel, which is contiguous at buf. */
struct urdma_mem {
	struct ib_umem *umem;
	void *buf;
	size_t bytes;
	struct urdma_pt pt;
};

/* A page that a process may map. It lives until its owner and the last mapping are gone. */
struct urdma_mmap_entry {
	struct rdma_user_mmap_entry rdma_entry;
	struct urdma_dev *dev;
	/* true: page of device memory; false: doorbell page of a context */
	bool is_dm;
	/* page number, counted from the first of its kind */
	u32 page;
};

struct urdma_ucontext {
	struct ib_ucontext ibucontext;
	struct urdma_mmap_entry *db;
};

struct urdma_dm {
	struct ib_dm ibdm;
	/* pages of device memory: the first, their number, and the mapping of each */
	u32 page;
	u32 num;
	struct urdma_mmap_entry *entry[] __counted_by(num);
};

struct urdma_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

/* To the NIC, an XRC domain is a PD, numbered from the same range. */
struct urdma_xrcd {
	struct ib_xrcd ibxrcd;
	u32 pdn;
};

struct urdma_mr {
	struct ib_mr ibmr;
	struct urdma_mem mem;
	/* attributes of its creation, for a reregistration */
	int access;
	u32 pdn;
	/* false after a failed reregistration: a key without a region */
	bool in_hw;
	bool dmabuf;
	/* for REG_MR: the page table, one level, that map_mr_sg fills and the NIC reads */
	__le64 *page;
	dma_addr_t page_dma;
	u32 max_pages;
	u32 num_pages;
};

struct urdma_mw {
	/* rkey has the variant of its creation: programs choose others when they bind the window */
	struct ib_mw ibmw;
};

struct urdma_ah {
	struct ib_ah ibah;
	/* words 4 to 7 of a UD send WQE */
	__le64 av[4];
};

struct urdma_cq {
	struct ib_cq ibcq;
	/* serialises resize and modify; protects mem, log, the number of entries, and moderation */
	struct mutex resize_lock;
	struct urdma_mem mem;
	u16 mod_count;
	u16 mod_period;
	u32 cqn;
	struct urdma_eq *eq;

	/* Only for a CQ of the kernel; NULL: the CQ of a process, which polls itself. */
	struct urdma_cqe *ring;
	u8 log;
	/* protects all fields below, and the ring */
	spinlock_t lock;
	/* consumer index, free running, and its value last sent to the NIC */
	u32 ci;
	u32 told;
	/* the consumer has requested an event and none has come since: URDMA_DB_ARM_*, or 0 */
	u32 armed;
	/* QPs whose SQ or RQ completes here */
	struct list_head send_qps;
	struct list_head recv_qps;
};

/* A work queue of the kernel: urdma_post.c. Indexes run free, as in doorbells. */
struct urdma_wq {
	/* protects head, and slots from there to tail */
	spinlock_t lock;
	u8 *ring;
	u64 *wr_id;
	u32 max_sge;
	u8 log;
	u8 log_stride;
	/* next index to post */
	u16 head;
	/* all WQEs before it are completed; polling advances it without this lock */
	u16 tail;
	/* in the CQ's list */
	struct list_head list;
};

struct urdma_srq {
	struct ib_srq ibsrq;
	struct urdma_mem mem;
	u32 srqn;
	/* of the kernel: this driver posts to it */
	bool kernel;
	/* the values granted at creation */
	u32 max_wr;
	u32 max_sge;
	/* wr_id by place; its head counts indices; its tail is not used */
	struct urdma_wq wq;
	/*
	 * Only for an SRQ of the kernel, under the lock of wq: the ring of indices and the free
	 * places.
	 */
	__le16 *index;
	u16 *free;
	u32 num_free;
};

struct urdma_qp {
	struct ib_qp ibqp;
	struct urdma_mem sq_mem;
	struct urdma_mem rq_mem;
	/*
	 * A QP of the kernel has rings here and may register memory by work requests. False for
	 * every XRC target QP: it has no rings.
	 */
	bool kernel;
	/* URDMA_QPT_*; the general services QP has type UD */
	u8 type;
	struct urdma_wq sq;
	struct urdma_wq rq;
	/* serialises modify and query, protects the fields below; posting only reads the state */
	struct mutex lock;
	/* attributes last set, for query; state is the last known state */
	enum ib_qp_state state;
	/* IB_EVENT_QP_LAST_WQE_REACHED was raised since the last RESET */
	bool last_wqe;
	struct ib_qp_cap cap;
	bool sig_all;
	/* members on this NIC do not get the datagrams that it sends to groups */
	bool no_loop;
	struct ib_qp_attr attr;
	/* its memberships: struct urdma_group */
	struct list_head groups;
};

static inline struct urdma_dev *to_udev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct urdma_ibdev, ibdev)->dev;
}

static inline struct urdma_ucontext *to_uctx(struct ib_ucontext *ibctx)
{
	return container_of(ibctx, struct urdma_ucontext, ibucontext);
}

static inline struct urdma_pd *to_upd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct urdma_pd, ibpd);
}

static inline struct urdma_xrcd *to_uxrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct urdma_xrcd, ibxrcd);
}

static inline struct urdma_dm *to_udm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct urdma_dm, ibdm);
}

static inline struct urdma_mr *to_umr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct urdma_mr, ibmr);
}

static inline struct urdma_ah *to_uah(struct ib_ah *ibah)
{
	return container_of(ibah, struct urdma_ah, ibah);
}

static inline struct urdma_cq *to_ucq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct urdma_cq, ibcq);
}

static inline struct urdma_srq *to_usrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct urdma_srq, ibsrq);
}

static inline struct urdma_qp *to_uqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct urdma_qp, ibqp);
}

static inline u64 urdma_read(struct urdma_dev *dev, u32 reg)
{
	return readq(dev->regs + reg);
}

static inline void urdma_write(struct urdma_dev *dev, u32 reg, u64 val)
{
	writeq(val, dev->regs + reg);
}

static inline bool urdma_is_dead(struct urdma_dev *dev)
{
	return test_bit(URDMA_F_DEAD, &dev->flags);
}

static inline u64 urdma_counter(struct urdma_dev *dev, u32 n)
{
	return urdma_read(dev, URDMA_REG_COUNTERS + 8 * n);
}

static inline void urdma_ring_doorbell(struct urdma_dev *dev, u32 which, u32 obj, u32 arm,
				       u32 index)
{
	/* writeq() orders earlier writes to memory (WQEs, their data) before the doorbell. */
	writeq(FIELD_PREP(URDMA_DBW_OBJ, obj) | FIELD_PREP(URDMA_DBW_ARM, arm) |
		       FIELD_PREP(URDMA_DBW_INDEX, index),
	       dev->db + which);
}

/* Offset in bytes of the SGEs or inline data in a send WQE. */
static inline u32 urdma_sqe_data(u8 qp_type)
{
	return qp_type == URDMA_QPT_UD ? URDMA_SQE_UD_DATA_OFFSET : URDMA_SQE_DATA_OFFSET;
}

/* Size of a receive WQE in bytes. */
static inline u32 urdma_rqe_bytes(u32 max_sge)
{
	return URDMA_RQE_DATA_OFFSET + max_sge * URDMA_SGE_SIZE;
}

/* Immediate data is big-endian in the API; the NIC takes its first byte from the low bits. */
static inline u32 urdma_imm_to_hw(__be32 imm)
{
	return le32_to_cpu((__force __le32)imm);
}

static inline __be32 urdma_imm_from_hw(u32 imm)
{
	return (__force __be32)cpu_to_le32(imm);
}

/* The NIC takes byte 0 of a MAC address, and of a GID's half, from the low bits of a word. */
static inline u64 urdma_mac_word(const u8 *mac)
{
	return swab64(ether_addr_to_u64(mac)) >> 16;
}

static inline u64 urdma_gid_word(const union ib_gid *gid, int half)
{
	return get_unaligned_le64(gid->raw + 8 * half);
}

/* Phase bit of a new entry: 1 in the first round of the ring, then alternating. */
static inline bool urdma_phase(u32 index, u8 log)
{
	return !((index >> log) & 1);
}

/* urdma_main.c */
bool urdma_is_gone(struct urdma_dev *dev);
void urdma_set_dead(struct urdma_dev *dev, const char *why);

/* urdma_caps.c */
int urdma_read_caps(struct urdma_dev *dev);

/* urdma_cmdq.c */
int urdma_cmdq_init(struct urdma_dev *dev);
void urdma_cmdq_free(struct urdma_dev *dev);
void urdma_cmdq_reap(struct urdma_dev *dev);
void urdma_cmdq_abort(struct urdma_dev *dev);
int urdma_cmd_exec(struct urdma_dev *dev, u64 *cmd, u64 *cpl);
void urdma_cmd_destroy(struct urdma_dev *dev, u8 opcode, u32 obj);

static inline u64 urdma_cmd0(u8 opcode, u32 obj)
{
	return FIELD_PREP(URDMA_CMD0_OPCODE, opcode) | FIELD_PREP(URDMA_CMD0_OBJ, obj);
}

/* urdma_eq.c */
int urdma_vectors_init(struct urdma_dev *dev);
int urdma_eqs_init(struct urdma_dev *dev);
void urdma_eq_sync(struct urdma_eq *eq);
void urdma_eqs_stop(struct urdma_dev *dev);
void urdma_eqs_free(struct urdma_dev *dev);

/* urdma_mr.c */
/* Maximum number of pages of one REG_MR: 16 MB of 4 KB pages, in a table of 32 KB. */
#define URDMA_MAX_FAST_PAGES 4096

int urdma_mem_ring(struct urdma_dev *dev, struct urdma_mem *mem, u64 addr, u32 len, int access);
int urdma_mem_alloc(struct urdma_dev *dev, struct urdma_mem *mem, size_t bytes);
void urdma_mem_free(struct urdma_dev *dev, struct urdma_mem *mem);
u64 urdma_ring_word(const struct urdma_mem *mem, u8 log_entries, u8 log_stride);
u64 urdma_access(int access);
bool urdma_access_ok(const struct urdma_dev *dev, int access);
struct ib_mr *urdma_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *urdma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length, u64 virt, int access,
				struct ib_udata *udata);
struct ib_mr *urdma_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 virt, int fd,
				       int access, struct uverbs_attr_bundle *attrs);
struct ib_mr *urdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 virt,
				  int access, struct ib_pd *ibpd, struct ib_udata *udata);
struct ib_mr *urdma_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_pages);
int urdma_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset);
struct ib_mr *urdma_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs);
int urdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
int urdma_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int urdma_dealloc_mw(struct ib_mw *ibmw);

/* urdma_dm.c */
extern const struct uapi_definition urdma_dm_uapi_defs[];
int urdma_dm_init(struct urdma_dev *dev);
void urdma_dm_exit(struct urdma_dev *dev);
struct ib_dm *urdma_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibctx,
			     struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs);
int urdma_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
void urdma_dm_put(struct urdma_dev *dev, u32 page);

/* urdma_cq.c */
int urdma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct uverbs_attr_bundle *attrs);
int urdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int urdma_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int urdma_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int urdma_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc);
int urdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void urdma_cq_add_qp(struct urdma_qp *qp);
void urdma_cq_remove_qp(struct urdma_qp *qp);
void urdma_cq_forget_qp(struct urdma_qp *qp);
void urdma_cq_event(struct urdma_dev *dev, u32 cqn);
void urdma_cq_error(struct urdma_dev *dev, u32 cqn);
void urdma_cq_quiesce(struct urdma_dev *dev);
void urdma_cq_notify_work(struct work_struct *work);
u32 urdma_cq_max_cqe(struct urdma_dev *dev);

/* urdma_post.c */
int urdma_wq_check(u8 log_entries, u8 log_max, u8 log_stride, u32 wr, u32 bytes);
int urdma_wq_init(struct urdma_dev *dev, struct urdma_wq *wq, struct urdma_mem *mem, u32 wr,
		  u32 wqe_bytes, u32 more);
u32 urdma_rq_max_sge(struct urdma_dev *dev, const struct urdma_wq *wq);
void urdma_wq_uninit(struct urdma_dev *dev, struct urdma_wq *wq, struct urdma_mem *mem);
void urdma_wq_reset(struct urdma_wq *wq);
bool urdma_wq_pending(struct urdma_wq *wq);
int urdma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int urdma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
int urdma_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad);

/* urdma_srq.c */
int urdma_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int urdma_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata);
int urdma_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int urdma_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
void urdma_srq_put(struct urdma_srq *srq, u16 place);
void urdma_srq_event(struct urdma_dev *dev, u32 srqn, u8 type);

/* urdma_qp.c */
int urdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int urdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int urdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);
int urdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void urdma_qp_event(struct urdma_dev *dev, u32 qpn, u8 type);
void urdma_qp_notify_dead(struct urdma_dev *dev);

/* urdma_ah.c */
int urdma_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int urdma_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int urdma_destroy_ah(struct ib_ah *ibah, u32 flags);

/* urdma_mcast.c */
int urdma_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int urdma_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
void urdma_mcast_again(struct urdma_qp *qp);
void urdma_mcast_forget(struct urdma_qp *qp);

/* urdma_verbs.c */
int urdma_ib_register(struct urdma_dev *dev);
void urdma_ib_unregister(struct urdma_dev *dev);
void urdma_ib_event(struct urdma_dev *dev, enum ib_event_type type);
int urdma_udata_in(struct ib_udata *udata, void *req, size_t size);
int urdma_udata_out(struct ib_udata *udata, void *resp, size_t size);
bool urdma_udata_is_empty(struct ib_udata *udata);
enum ib_mtu urdma_port_mtu(struct ib_device *ibdev);

/* urdma_restrack.c */
int urdma_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq);
int urdma_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
int urdma_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp);
int urdma_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq);

/* urdma_counter.c */
int urdma_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp);
int urdma_counter_unbind_qp(struct ib_qp *ibqp);
int urdma_counter_update_stats(struct rdma_counter *counter);
int urdma_counter_dealloc(struct rdma_counter *counter);

/* urdma_stats.c */
struct rdma_hw_stats *urdma_alloc_hw_port_stats(struct ib_device *ibdev, u32 port);
int urdma_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index);
struct rdma_hw_stats *urdma_counter_alloc_stats(struct rdma_counter *counter);
int urdma_get_qp_stats(struct urdma_dev *dev, u32 set, struct rdma_hw_stats *stats);
void urdma_debugfs_register(void);
void urdma_debugfs_unregister(void);
void urdma_debugfs_init(struct urdma_dev *dev);
void urdma_debugfs_exit(struct urdma_dev *dev);

/* urdma_netdev.c */
int urdma_netdev_init(struct urdma_dev *dev);
void urdma_netdev_exit(struct urdma_dev *dev);
void urdma_netdev_detach(struct urdma_dev *dev);
void urdma_netdev_attach(struct urdma_dev *dev);
int urdma_netdev_watch(struct urdma_dev *dev);
void urdma_netdev_unwatch(struct urdma_dev *dev);
void urdma_netdev_link(struct urdma_dev *dev);

#endif
