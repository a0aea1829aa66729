// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* urdma provider: polling and arming of CQs. Makes no system call, except for wall-clock times. */
#include "wqe.h"

/* position of the priority in a VLAN tag */
#define URDMA_PCP_SHIFT 13

static enum ibv_wc_status urdma_wc_error(uint32_t status)
{
	switch (status) {
	case URDMA_WC_LOC_LEN_ERR:
		return IBV_WC_LOC_LEN_ERR;
	case URDMA_WC_LOC_QP_OP_ERR:
		return IBV_WC_LOC_QP_OP_ERR;
	case URDMA_WC_LOC_PROT_ERR:
		return IBV_WC_LOC_PROT_ERR;
	case URDMA_WC_FLUSH_ERR:
		return IBV_WC_WR_FLUSH_ERR;
	case URDMA_WC_MW_BIND_ERR:
		return IBV_WC_MW_BIND_ERR;
	case URDMA_WC_BAD_RESP_ERR:
		return IBV_WC_BAD_RESP_ERR;
	case URDMA_WC_LOC_ACCESS_ERR:
		return IBV_WC_LOC_ACCESS_ERR;
	case URDMA_WC_REM_INV_REQ_ERR:
		return IBV_WC_REM_INV_REQ_ERR;
	case URDMA_WC_REM_ACCESS_ERR:
		return IBV_WC_REM_ACCESS_ERR;
	case URDMA_WC_REM_OP_ERR:
		return IBV_WC_REM_OP_ERR;
	case URDMA_WC_RETRY_EXC_ERR:
		return IBV_WC_RETRY_EXC_ERR;
	case URDMA_WC_RNR_RETRY_EXC_ERR:
		return IBV_WC_RNR_RETRY_EXC_ERR;
	default:
		return IBV_WC_GENERAL_ERR;
	}
}

/* Completion opcodes, by the CQE's opcode. A flushed completion need not have a valid opcode. */
const uint8_t urdma_recv_wc_opcode[256] = {
	[0 ... URDMA_WR_WRITE_IMM - 1] = IBV_WC_RECV,
	[URDMA_WR_WRITE_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
	[URDMA_WR_WRITE_IMM + 1 ... 255] = IBV_WC_RECV,
};

const uint8_t urdma_send_wc_opcode[256] = {
	[URDMA_WR_SEND] = IBV_WC_SEND,
	[URDMA_WR_SEND_IMM] = IBV_WC_SEND,
	[URDMA_WR_SEND_INV] = IBV_WC_SEND,
	[URDMA_WR_WRITE] = IBV_WC_RDMA_WRITE,
	[URDMA_WR_WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[URDMA_WR_READ] = IBV_WC_RDMA_READ,
	[URDMA_WR_ATOMIC_CS] = IBV_WC_COMP_SWAP,
	[URDMA_WR_ATOMIC_FA] = IBV_WC_FETCH_ADD,
	[URDMA_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
	[URDMA_WR_BIND_MW] = IBV_WC_BIND_MW,
	[URDMA_WR_FLUSH] = IBV_WC_FLUSH,
	[URDMA_WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
};

/*
 * The CQE at an index if it has been written. The NIC writes phase 1 in the first round and inverts
 * it in each round; bit LOG of a free-running index is 0 in the first round and also inverts in
 * each.
 */
static inline struct urdma_cqe *urdma_cqe_at(struct urdma_cq *cq, uint32_t index)
{
	struct urdma_cqe *cqe = &cq->ring[index & cq->mask];
	uint64_t w3 = le64toh(*(volatile __le64 *)&cqe->w[3]);

	return (w3 ^ (uint64_t)index << cq->phase_shift) & URDMA_CQE3_PHASE ? cqe : NULL;
}

/* With the CQ locked: the QP of a CQE; NULL if it no longer exists. */
static inline struct urdma_qp *urdma_find_qp(const struct urdma_cq *cq, const struct urdma_cqe *cqe)
{
	uint64_t qpn = FIELD_GET(URDMA_CQE1_QPN, le64toh(cqe->w[1]));

	return cq->qp_table[qpn & cq->qp_mask];
}

static inline void urdma_put_more(struct ibv_wc *wc, uint64_t w0, uint32_t value)
{
	/* Immediate data, big-endian as in the API, or the invalidated key. */
	if (w0 & URDMA_CQE0_IMM) {
		wc->wc_flags = IBV_WC_WITH_IMM;
		wc->imm_data = (__force __be32)htole32(value);
	} else if (w0 & URDMA_CQE0_INV) {
		wc->wc_flags = IBV_WC_WITH_INV;
		wc->invalidated_rkey = value;
	}
	if (w0 & URDMA_CQE0_GRH)
		wc->wc_flags |= IBV_WC_GRH;
	/* The service level of a datagram is the priority of its frame. */
	if (w0 & URDMA_CQE0_VLAN)
		wc->sl = FIELD_GET(URDMA_CQE0_TCI, w0) >> URDMA_PCP_SHIFT;
}

static inline void urdma_put_wc(struct ibv_wc *wc, const struct urdma_wq *wq,
				const struct urdma_cqe *cqe)
{
	uint64_t w0 = le64toh(cqe->w[0]);
	uint64_t w1 = le64toh(cqe->w[1]);
	uint8_t status = FIELD_GET(URDMA_CQE0_STATUS, w0);

	/* gcc needs the fewest registers with this order. */
	wc->qp_num = FIELD_GET(URDMA_CQE1_QPN, w1);
	wc->src_qp = FIELD_GET(URDMA_CQE2_SRC_QPN, le64toh(cqe->w[2]));
	wc->byte_len = FIELD_GET(URDMA_CQE1_LENGTH, w1);
	wc->wr_id = wq->wr_id[FIELD_GET(URDMA_CQE0_WQE, w0) & wq->mask];
	wc->opcode = wq->wc_opcode[FIELD_GET(URDMA_CQE0_OPCODE, w0)];
	wc->status = likely(status == URDMA_WC_SUCCESS) ? IBV_WC_SUCCESS : urdma_wc_error(status);
	wc->vendor_err = FIELD_GET(URDMA_CQE0_VENDOR, w0);
	wc->wc_flags = 0;
	wc->imm_data = 0;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
}

/*
 * With the CQ locked: decodes a CQE of this QP, except the fields that URDMA_CQE0_MORE announces.
 */
static inline ALWAYS_INLINE void urdma_take_cqe(struct urdma_qp *qp, const struct urdma_cqe *cqe,
						struct ibv_wc *wc)
{
	uint64_t w0 = le64toh(cqe->w[0]);
	struct urdma_wq *wq = w0 & URDMA_CQE0_RECV ? &qp->rq : &qp->sq;

	urdma_put_wc(wc, wq, cqe);
	/*
	 * Frees this WQE and the unsignaled ones before it. Release: wr_id has been read. WQEs of
	 * an SRQ are freed one by one.
	 */
	if (unlikely(wq->srq))
		urdma_srq_put(wq->srq, FIELD_GET(URDMA_CQE0_WQE, w0));
	else
		atomic_store_explicit(&wq->tail, (uint16_t)(FIELD_GET(URDMA_CQE0_WQE, w0) + 1),
				      memory_order_release);
}

/*
 * CQE of an XRC SRQ. Its QP may belong to another process or be gone: only the SRQ number counts.
 */
static bool urdma_take_xrc_cqe(struct urdma_cq *cq, const struct urdma_cqe *cqe, struct ibv_wc *wc)
{
	uint64_t srqn = FIELD_GET(URDMA_CQE2_SRQN, le64toh(cqe->w[2]));
	struct urdma_srq *srq = cq->srq_table[srqn & cq->srq_mask];

	if (unlikely(!srq))
		return false;
	urdma_put_wc(wc, &srq->wq, cqe);
	wc->src_qp = 0;
	urdma_srq_put(srq, FIELD_GET(URDMA_CQE0_WQE, le64toh(cqe->w[0])));
	return true;
}

/* CQEs with one of these bits have fields that urdma_take_cqe() does not decode. */
#define URDMA_CQE0_MORE (URDMA_CQE0_XRC | URDMA_CQE0_IMM | URDMA_CQE0_INV | URDMA_CQE0_GRH)

/*
 * Decodes such a CQE; false if its object no longer exists. The compiler does not inline this,
 * which keeps the path of other CQEs short.
 */
static bool urdma_take_more(struct urdma_cq *cq, const struct urdma_cqe *cqe, struct ibv_wc *wc)
{
	uint64_t w0 = le64toh(cqe->w[0]);
	struct urdma_qp *qp;

	if (w0 & URDMA_CQE0_XRC) {
		if (!urdma_take_xrc_cqe(cq, cqe, wc))
			return false;
	} else {
		qp = urdma_find_qp(cq, cqe);
		if (unlikely(!qp))
			return false;
		urdma_take_cqe(qp, cqe, wc);
	}
	urdma_put_more(wc, w0, FIELD_GET(URDMA_CQE2_IMM, le64toh(cqe->w[2])));
	return true;
}

/* With the CQ locked: writes the consumer index to the NIC and optionally arms the CQ. */
static void urdma_ring_cq(struct urdma_cq *cq, uint32_t arm)
{
	/* Finish reading the CQEs before the NIC may overwrite them. */
	udma_to_device_barrier();
	mmio_write64_le(cq->db,
			htole64(FIELD_PREP(URDMA_DBW_OBJ, (uint64_t)cq->cqn) |
				FIELD_PREP(URDMA_DBW_ARM, (uint64_t)arm) |
				FIELD_PREP(URDMA_DBW_INDEX, (uint64_t)(cq->base + cq->ci))));
	cq->told = cq->ci;
}

/* With the CQ locked, if other threads can use it. */
void urdma_cq_set_ring(struct urdma_cq *cq, const struct urdma_ring *mem, uint8_t log)
{
	cq->mem = *mem;
	cq->ring = mem->at;
	cq->log = log;
	cq->mask = (1U << log) - 1;
	cq->phase_shift = 63 - log;
	cq->slack = cq->mask / 4;
}

/*
 * With the CQ locked. The NIC writes CQEs from index base on to the next ring, starting at its
 * entry 0. Earlier CQEs are in the old ring. This copies them to the end of the new ring, in front
 * of entry 0: the NIC keeps that many entries free until they are reported as consumed. Their phase
 * bit there is that of the round before the first.
 */
void urdma_cq_change_ring(struct urdma_cq *cq, uint32_t base)
{
	uint32_t first = base - cq->base, mask = (1U << cq->next_log) - 1, i;
	struct urdma_cqe *ring = cq->next.at, *cqe;

	udma_from_device_barrier();
	for (i = cq->ci; i != first; i++) {
		cqe = &ring[(i - first) & mask];
		*cqe = cq->ring[i & cq->mask];
		cqe->w[3] &= ~htole64(URDMA_CQE3_PHASE);
	}
	cq->ci -= first;
	cq->base = base;
	urdma_cq_set_ring(cq, &cq->next, cq->next_log);
	cq->next.at = NULL;
	/* Entries consumed in the old ring are free in the new one. */
	urdma_ring_cq(cq, URDMA_DB_ARM_NONE);
}

/*
 * With the CQ locked, during a resize, when the ring is empty. The CQE announced by an event may be
 * in the next ring, and there is no second event for it if the program sleeps after this poll.
 */
static struct urdma_cqe *urdma_cqe_of_next(struct urdma_cq *cq)
{
	const struct urdma_cqe *first = cq->next.at;
	struct urdma_cqe *cqe;

	if (!(le64toh(*(volatile const __le64 *)&first->w[3]) & URDMA_CQE3_PHASE))
		return NULL;
	/* Earlier CQEs are in the old ring and are visible now. */
	udma_from_device_barrier();
	cqe = urdma_cqe_at(cq, cq->ci);
	if (cqe)
		return cqe;
	urdma_cq_change_ring(cq, cq->base + cq->ci);
	return urdma_cqe_at(cq, cq->ci);
}

/*
 * With the CQ locked: takes the next CQE whose object still exists; NULL if there is none. Inlined
 * into the loop of urdma_poll_cq(), where a call would cost a tenth of the time.
 */
static inline ALWAYS_INLINE const struct urdma_cqe *urdma_next_cqe(struct urdma_cq *cq,
								   struct ibv_wc *wc)
{
	const struct urdma_cqe *cqe;
	struct urdma_qp *qp;

	do {
		cqe = urdma_cqe_at(cq, cq->ci);
		if (!cqe && unlikely(cq->next.at))
			cqe = urdma_cqe_of_next(cq);
		if (!cqe)
			return NULL;
		/* read the phase bit before the rest of the CQE and the data that it announces */
		udma_from_device_barrier();
		cq->ci++;
		if (unlikely(le64toh(cqe->w[0]) & URDMA_CQE0_MORE)) {
			if (urdma_take_more(cq, cqe, wc))
				return cqe;
			qp = NULL;
			continue;
		}
		qp = urdma_find_qp(cq, cqe);
	} while (unlikely(!qp));

	urdma_take_cqe(qp, cqe, wc);
	return cqe;
}

/* With the CQ locked: writes the consumer index to the NIC at each quarter of the ring. */
static void urdma_tell_ci(struct urdma_cq *cq)
{
	if (unlikely(cq->ci - cq->told > cq->slack))
		urdma_ring_cq(cq, URDMA_DB_ARM_NONE);
}

int urdma_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct urdma_cq *cq = to_ucq(ibcq);
	int got = 0;

	urdma_lock(&cq->lock);
	while (got < n && urdma_next_cqe(cq, &wc[got])) {
		got++;
		/* Other threads may post into the freed slots meanwhile. */
		urdma_tell_ci(cq);
	}
	/* also for CQEs that were dropped */
	urdma_tell_ci(cq);
	urdma_unlock(&cq->lock);
	return got;
}

/* ---- extended polling: the CQ stays locked from start to end --------------------------------- */

static struct urdma_cq *urdma_of_cq_ex(struct ibv_cq_ex *cqx)
{
	return container_of(cqx, struct urdma_cq, vcq.cq_ex);
}

static int urdma_next_poll(struct ibv_cq_ex *cqx)
{
	struct urdma_cq *cq = urdma_of_cq_ex(cqx);
	const struct urdma_cqe *cqe = urdma_next_cqe(cq, &cq->wc);

	if (!cqe)
		return ENOENT;
	cq->cycles = FIELD_GET(URDMA_CQE3_CYCLES, le64toh(cqe->w[3]));
	cqx->wr_id = cq->wc.wr_id;
	cqx->status = cq->wc.status;
	/* A batch has no limit: WQEs posted during it may complete in it. */
	urdma_tell_ci(cq);
	return 0;
}

static void urdma_end_poll(struct ibv_cq_ex *cqx)
{
	struct urdma_cq *cq = urdma_of_cq_ex(cqx);

	urdma_unlock(&cq->lock);
}

static int urdma_start_poll(struct ibv_cq_ex *cqx, struct ibv_poll_cq_attr *attr)
{
	struct urdma_cq *cq = urdma_of_cq_ex(cqx);
	int err;

	if (attr->comp_mask)
		return EINVAL;
	urdma_lock(&cq->lock);
	err = urdma_next_poll(cqx);
	/* Without a completion the program does not call end_poll. */
	if (err)
		urdma_end_poll(cqx);
	return err;
}

static enum ibv_wc_opcode urdma_read_opcode(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.opcode;
}

static uint32_t urdma_read_vendor_err(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.vendor_err;
}

static uint32_t urdma_read_byte_len(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.byte_len;
}

/* The invalidated key shares its field with immediate data. */
static __be32 urdma_read_imm_data(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.imm_data;
}

static uint32_t urdma_read_qp_num(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.qp_num;
}

static uint32_t urdma_read_src_qp(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.src_qp;
}

static unsigned int urdma_read_wc_flags(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.wc_flags;
}

static uint8_t urdma_read_sl(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->wc.sl;
}

/* RoCE has no LIDs. */
static uint32_t urdma_read_slid(struct ibv_cq_ex *cqx)
{
	return 0;
}

static uint8_t urdma_read_dlid_path_bits(struct ibv_cq_ex *cqx)
{
	return 0;
}

/* In cycles of the NIC's clock; query_device_ex reports its frequency (hca_core_clock). */
static uint64_t urdma_read_completion_ts(struct ibv_cq_ex *cqx)
{
	return urdma_of_cq_ex(cqx)->cycles;
}

static uint64_t urdma_read_completion_wallclock_ns(struct ibv_cq_ex *cqx)
{
	struct urdma_cq *cq = urdma_of_cq_ex(cqx);

	return urdma_clock_wall_ns(cqx->context, &cq->clock, cq->cycles);
}

void urdma_set_poll_ops(struct urdma_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *cqx = &cq->vcq.cq_ex;

	cqx->start_poll = urdma_start_poll;
	cqx->next_poll = urdma_next_poll;
	cqx->end_poll = urdma_end_poll;
	cqx->read_opcode = urdma_read_opcode;
	cqx->read_vendor_err = urdma_read_vendor_err;
	cqx->read_wc_flags = urdma_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cqx->read_byte_len = urdma_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cqx->read_imm_data = urdma_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cqx->read_qp_num = urdma_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cqx->read_src_qp = urdma_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cqx->read_slid = urdma_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cqx->read_sl = urdma_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cqx->read_dlid_path_bits = urdma_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cqx->read_completion_ts = urdma_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cqx->read_completion_wallclock_ns = urdma_read_completion_wallclock_ns;
}

int urdma_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct urdma_cq *cq = to_ucq(ibcq);

	urdma_lock(&cq->lock);
	/*
	 * Writes the consumer index: if there already is a CQE after it, that CQE raises the event
	 * at once, unless it has raised one before.
	 */
	urdma_ring_cq(cq, solicited_only ? URDMA_DB_ARM_SOLICITED : URDMA_DB_ARM_ANY);
	urdma_unlock(&cq->lock);
	return 0;
}

/* The CQE at index, with those before it not yet polled; NULL if it has not been written. */
static struct urdma_cqe *urdma_cqe_ahead(struct urdma_cq *cq, uint32_t index)
{
	struct urdma_cqe *cqe;

	if ((index - cq->ci) >> cq->log)
		return NULL;
	cqe = urdma_cqe_at(cq, index);
	udma_from_device_barrier();
	return cqe;
}

/* With the CQ locked: the number of CQEs not yet polled. */
uint32_t urdma_cq_pending(struct urdma_cq *cq)
{
	uint32_t n = 0;

	while (urdma_cqe_ahead(cq, cq->ci + n))
		n++;
	return n;
}

/*
 * With the CQ locked: drops the CQEs for which gone() returns true. The other CQEs move towards the
 * end, with the phase bit of their new entry, so the dropped entries become free for the NIC.
 */
static void urdma_drop_cqes(struct urdma_cq *cq, bool (*gone)(const struct urdma_cqe *, void *),
			    void *arg)
{
	uint32_t end = cq->ci + urdma_cq_pending(cq), from, to = end;
	const struct urdma_cqe *cqe;
	struct urdma_cqe *place;
	uint64_t phase;

	for (from = end; from != cq->ci;) {
		cqe = &cq->ring[--from & cq->mask];
		if (gone(cqe, arg) || --to == from)
			continue;
		place = &cq->ring[to & cq->mask];
		*place = *cqe;
		phase = ~((uint64_t)to << cq->phase_shift) & URDMA_CQE3_PHASE;
		place->w[3] = (place->w[3] & ~htole64(URDMA_CQE3_PHASE)) | htole64(phase);
	}
	cq->ci = to;
	urdma_tell_ci(cq);
}

static bool urdma_cqe_of_qp(const struct urdma_cqe *cqe, void *arg)
{
	const struct urdma_qp *qp = arg;
	uint64_t w0 = le64toh(cqe->w[0]);

	if (FIELD_GET(URDMA_CQE1_QPN, le64toh(cqe->w[1])) != qp->qpn || w0 & URDMA_CQE0_XRC)
		return false;
	if (qp->rq.srq && w0 & URDMA_CQE0_RECV)
		urdma_srq_put(qp->rq.srq, FIELD_GET(URDMA_CQE0_WQE, w0));
	return true;
}

/*
 * With the CQ locked. The NIC writes no more CQEs of this QP; drops those not yet polled. CQEs of
 * XRC SRQs with this QP number are kept: they belong to a target QP that had the number before.
 */
void urdma_cq_forget_qp(struct urdma_cq *cq, struct urdma_qp *qp)
{
	urdma_drop_cqes(cq, urdma_cqe_of_qp, qp);
}

static bool urdma_cqe_of_srq(const struct urdma_cqe *cqe, void *arg)
{
	return le64toh(cqe->w[0]) & URDMA_CQE0_XRC &&
	       FIELD_GET(URDMA_CQE2_SRQN, le64toh(cqe->w[2])) == *(const uint32_t *)arg;
}

/* The same for an XRC SRQ that is about to be freed. */
void urdma_cq_forget_srq(struct urdma_cq *cq, uint32_t srqn)
{
	urdma_drop_cqes(cq, urdma_cqe_of_srq, &srqn);
}
