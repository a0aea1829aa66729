/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * What urdma.ko and the provider say to each other through uverbs.
 *
 * Rules: natural alignment with no hole, 64-bit fields as __aligned_u64, every reserved field is
 * zero (the kernel refuses a request in which it is not). A structure may grow at its end, and 0 is
 * the new field's word for "as before"; a field never changes its meaning. So kernel and provider
 * need not be of the same age: what a request does not have counts as zero; the kernel refuses one
 * that has more than it knows, unless that is zero; a response is cut to the room that the
 * provider gives, and a provider zeroes that room first. What the hardware reads is not here but in
 * urdma_hw.h.
 *
 * Verbs without a structure here carry nothing of ours: a provider sends them as the core defines
 * them, and whatever it adds has to be zero. Such are REG_MR, REREG_MR, DEREG_MR, DM_MR_REG,
 * DM_FREE, ALLOC_MW (the response's rkey has the index that each binding's key has to have) and
 * DEALLOC_MW, MODIFY_QP and QUERY_QP, PDs, XRC domains, OPEN_QP.
 */
#ifndef URDMA_ABI_H
#define URDMA_ABI_H

#include <linux/types.h>

#define URDMA_ABI_VERSION 1

struct urdma_alloc_ucontext_resp {
	/* offset to mmap, and the size: the doorbell page of this context */
	__aligned_u64 db_offset;
	/* URDMA_RF_FEAT_* of the device: which opcodes may be posted */
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
 * For whoever imports a context: QUERY_CONTEXT has the same response, in an attribute of our own.
 * The number is the first of a driver's own: 1 << UVERBS_ID_NS_SHIFT.
 */
#define URDMA_ATTR_QUERY_CONTEXT_RESP 0x1000

/* A method of UVERBS_OBJECT_DEVICE: what the NIC's clock says now. */
enum urdma_device_methods {
	URDMA_METHOD_QUERY_CLOCK = 0x1000,
};

enum urdma_query_clock_attrs {
	URDMA_ATTR_QUERY_CLOCK_CYCLES = 0x1000, /* __u64, as in CQEs */
};

/*
 * Device memory: where it is to be mapped. Each page has a mapping of its own, shared and not
 * executable. The memory begins with its first page; what the last page has behind it belongs to
 * nobody else.
 */
struct urdma_dm_resp {
	/* offset to mmap of the first page; the others follow it */
	__aligned_u64 mmap_offset;
	/* as it was asked for */
	__aligned_u64 length;
	__u32 page_size;
	__u32 reserved;
};

/* An attribute that DM_ALLOC has besides those of the core. */
enum urdma_alloc_dm_attrs {
	URDMA_ATTR_ALLOC_DM_RESP = 0x1000,
};

/* A method of UVERBS_OBJECT_DM, for whoever imports the memory. The response is the same. */
enum urdma_dm_methods {
	URDMA_METHOD_QUERY_DM = 0x1000,
};

enum urdma_query_dm_attrs {
	URDMA_ATTR_QUERY_DM_HANDLE = 0x1000,
	URDMA_ATTR_QUERY_DM_RESP,
};

/* The ring starts on a page, and len is at least what the entries take (32 bytes each). */
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
 * A new ring, zeroed, as in CREATE_CQ, and the consumer index as doorbells have it. The response
 * has the index, likewise, of the CQE in entry 0 of the new ring. CQEs before that one are in the
 * old ring, which the NIC has left.
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
 * Both rings start on a page. Strides are log2 of bytes, as in URDMA_RING_LOG_STRIDE. A QP with an
 * SRQ has no receive ring, nor has an initiator QP of XRC: its four fields are zero. For a target
 * QP of XRC the core takes neither request nor response.
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
 * The array of WQEs, and the ring of indices behind it, as CREATE_SRQ has them. It starts on a
 * page. The same for SRQs of every type.
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
 * Words 4 to 7 of a UD send WQE, URDMA_SQE4_DGID_LO and what follows, as halves: the low one of a
 * word first. The core's part of the response has 4 bytes, so there is no place for 64-bit fields.
 * The request is empty.
 */
struct urdma_create_ah_resp {
	__u32 av[8];
};

#endif
