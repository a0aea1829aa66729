/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * Requests and responses that urdma.ko and the provider exchange through uverbs.
 *
 * Rules: natural alignment with no hole, 64-bit fields as __aligned_u64, every reserved field is
 * zero (the kernel refuses a request in which one is not). A structure may grow at its end; 0 in a
 * new field means "as before". A field never changes its meaning. So kernel and provider may be of
 * different versions. The kernel takes fields that a request lacks as zero. It refuses a request
 * with fields that it does not know, unless they are zero. It cuts a response to the size of the
 * provider's buffer, which the provider zeroes first. urdma_hw.h has the layouts that the hardware
 * reads.
 *
 * Verbs without a structure here have no driver-specific part: a provider sends them as the core
 * defines them, and anything it adds must be zero. These are REG_MR, REREG_MR, DEREG_MR, DM_MR_REG,
 * DM_FREE, ALLOC_MW (the response's rkey has the index that the key of each binding must have) and
 * DEALLOC_MW, MODIFY_QP and QUERY_QP, PDs, XRC domains, OPEN_QP.
 */
#ifndef URDMA_ABI_H
#define URDMA_ABI_H

#include <linux/types.h>

#define URDMA_ABI_VERSION 1

struct urdma_alloc_ucontext_resp {
	/* offset to mmap, and the size: the doorbell page of this context */
	__aligned_u64 db_offset;
	/* URDMA_RF_FEAT_* of the device: they say which opcodes may be posted */
	__aligned_u64 features;
	__u32 db_size;
	__u16 max_sq_sge;
	__u16 max_rq_sge;
	/* bytes */
	__u16 max_inline;
	/* log2 of the largest numbers of entries, of the largest message, of numbers of objects */
	__u8 log_max_sq;
	__u8 log_max_rq;
	__u8 log_max_cqe;
	__u8 log_max_msg;
	__u8 log_max_qp;
	/* 0: there are none, or the kernel is older than this field */
	__u8 log_max_srq;
};

/*
 * For a process that imports a context: QUERY_CONTEXT returns the same response in a driver
 * attribute. Driver attributes are numbered from 1 << UVERBS_ID_NS_SHIFT.
 */
#define URDMA_ATTR_QUERY_CONTEXT_RESP 0x1000

/* A method of UVERBS_OBJECT_DEVICE: reads the NIC's clock. */
enum urdma_device_methods {
	URDMA_METHOD_QUERY_CLOCK = 0x1000,
};

enum urdma_query_clock_attrs {
	URDMA_ATTR_QUERY_CLOCK_CYCLES = 0x1000, /* __u64, as in CQEs */
};

/*
 * Device memory: where to map it. Each page needs a separate mapping, shared and not executable.
 * The memory starts at the start of the first page. No other owner uses the rest of the last page.
 */
struct urdma_dm_resp {
	/* offset to mmap of the first page; the others follow it */
	__aligned_u64 mmap_offset;
	/* as requested */
	__aligned_u64 length;
	__u32 page_size;
	__u32 reserved;
};

/* An attribute of DM_ALLOC in addition to the core's. */
enum urdma_alloc_dm_attrs {
	URDMA_ATTR_ALLOC_DM_RESP = 0x1000,
};

/* A method of UVERBS_OBJECT_DM, for a process that imports the memory. The response is the same. */
enum urdma_dm_methods {
	URDMA_METHOD_QUERY_DM = 0x1000,
};

enum urdma_query_dm_attrs {
	URDMA_ATTR_QUERY_DM_HANDLE = 0x1000,
	URDMA_ATTR_QUERY_DM_RESP,
};

/* The ring is page-aligned. len is at least the size of the entries (32 bytes each). */
struct urdma_create_cq_req {
	__aligned_u64 buf_addr;
	__u32 buf_len;
	__u8 log_entries;
	__u8 reserved[3];
};

struct urdma_create_cq_resp {
	__u32 cqn;
	__u32 reserved;
};

/*
 * A new ring, zeroed, as in CREATE_CQ, and the consumer index as in a doorbell. The response has
 * the index of the CQE in entry 0 of the new ring, in the same form. CQEs before that one are in
 * the old ring, which the NIC no longer uses.
 */
struct urdma_resize_cq_req {
	__aligned_u64 buf_addr;
	__u32 buf_len;
	__u8 log_entries;
	__u8 reserved[3];
	__u32 ci;
	__u32 reserved2;
};

struct urdma_resize_cq_resp {
	__u32 base;
	__u32 reserved;
};

/*
 * Both rings are page-aligned. Strides are log2 of bytes, as in URDMA_RING_LOG_STRIDE. A QP with an
 * SRQ and an XRC initiator QP have no receive ring: its four fields are zero. For an XRC target QP
 * the core passes neither request nor response.
 */
struct urdma_create_qp_req {
	__aligned_u64 sq_addr;
	__aligned_u64 rq_addr;
	__u32 sq_len;
	__u32 rq_len;
	__u8 sq_log_entries;
	__u8 sq_log_stride;
	__u8 rq_log_entries;
	__u8 rq_log_stride;
	__u32 reserved;
};

struct urdma_create_qp_resp {
	__u32 qpn;
	__u32 reserved;
};

/*
 * The array of WQEs with the ring of indices after it, as in CREATE_SRQ. It is page-aligned. The
 * structure is the same for SRQs of every type.
 */
struct urdma_create_srq_req {
	__aligned_u64 buf_addr;
	__u32 buf_len;
	__u8 log_entries;
	__u8 log_stride;
	__u16 reserved;
};

struct urdma_create_srq_resp {
	__u32 srqn;
	__u32 reserved;
};

/*
 * Words 4 to 7 of a UD send WQE, from URDMA_SQE4_DGID_LO on, as 32-bit halves, low half first. The
 * core's part of the response has 4 bytes, so 64-bit fields would not be aligned. The request is
 * empty.
 */
struct urdma_create_ah_resp {
	__u32 av[8];
};

#endif
