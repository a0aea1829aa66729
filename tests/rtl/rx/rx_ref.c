// SPDX-License-Identifier: Apache-2.0
#include "rx_ref.h"
#include "opcode_rules.h"
#include "rtl/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

uint32_t seed;
uint8_t qp_type = URDMA_QPT_RC;

struct ref refs[QPS];

struct req reqs[4];

void ref_clear(struct ref *r)
{
	r->n_acks = r->n_cqes = r->n_errs = r->n_dup = r->n_seq = 0;
	r->n_unrel = r->n_no_wqe = r->n_qkey = 0;
	memset(r->qc, 0, sizeof(r->qc));
}

/* A packet that the QP takes, whatever comes of it. */
static void ref_count(struct ref *r, const struct packet *p)
{
	r->qc[URDMA_QCNT_RX_PKTS]++;
	r->qc[URDMA_QCNT_RX_BYTES] += p->len;
}

uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = v >> (24 - 8 * i);
}

void put64(uint8_t *p, uint64_t v)
{
	put32(p, v >> 32);
	put32(p + 4, v);
}

bool ref_invalid[17]; /* regions, as the reference sees them */

struct ref_srq *ref_xrc_srqs;
unsigned int ref_xrc_n;

static bool is_tgt(const struct ref *r)
{
	return r->cfg.type == URDMA_QPT_XRC_TGT;
}

/* of the keys that a request names */
static uint16_t ref_pd(const struct ref *r)
{
	return is_tgt(r) && r->srq ? r->srq->cfg.pd : r->cfg.pd;
}

/* Is the piece allowed? */
bool ref_check(struct bench *b, const struct ref *r, uint32_t key, uint64_t va, uint64_t len,
	       uint8_t acc)
{
	/* keys in the WQEs of an SRQ are of its PD */
	uint16_t pd = acc == URDMA_ACC_LOCAL_WRITE && r->srq ? r->srq->cfg.pd : ref_pd(r);

	for (unsigned int k = 0; k < b->mrs; k++) {
		const struct bench_mr *m = &b->mr[k];

		if (m->key == key && !ref_invalid[k])
			return m->pd == pd && (m->acc & acc) && va >= m->va &&
			       va + len <= m->va + m->len;
	}
	return false;
}

uint64_t wqe_va(const struct ref *r, uint16_t idx)
{
	if (r->srq)
		return HOST_VA + (r->srq->cfg.addr - HOST_BUS) +
		       ((uint64_t)idx << r->srq->cfg.log_stride);
	return HOST_VA + (r->cfg.rq_addr - HOST_BUS) +
	       ((uint64_t)(idx & ((1u << r->cfg.rq_log_entries) - 1)) << r->cfg.rq_log_stride);
}

void ref_cqe(struct ref *r, uint16_t wqe, uint8_t status, uint32_t len, const uint8_t *imm, bool se,
	     uint8_t opcode)
{
	struct bench_cqe *c = &r->cqes[r->n_cqes++];
	uint32_t v = 0;

	memset(c, 0, sizeof(*c));
	if (imm && opcode == URDMA_WR_SEND_INV)
		v = get32(imm); /* a key, as a number */
	else if (imm)
		memcpy(&v, imm, 4);
	c->cqn = r->cfg.recv_cq;
	c->solicited = se;
	c->w[0] = (!imm				 ? 0
		   : opcode == URDMA_WR_SEND_INV ? URDMA_CQE0_INV
						 : URDMA_CQE0_IMM) |
		  (se ? URDMA_CQE0_SOLICITED : 0) | URDMA_CQE0_RECV | opcode << 8 |
		  (uint64_t)status << 16 | (uint64_t)wqe << 32;
	c->w[1] = len | (uint64_t)r->cfg.qpn << 32;
	c->w[2] = v | (uint64_t)r->cfg.dest_qpn << 32;
	/* a datagram says where it came from; a flush has none */
	if (r->cfg.type == URDMA_QPT_UD)
		c->w[2] = v;
	if (is_tgt(r)) {
		c->cqn = r->srq->cfg.cqn;
		c->w[0] |= URDMA_CQE0_XRC;
		c->w[2] = v | (uint64_t)r->srq->cfg.srqn << 32;
	}
}

void ref_ack(struct ref *r, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	r->acks[r->n_acks++] = (struct bench_ack){ .qpn = r->cfg.qpn,
						   .psn = psn & 0xffffff,
						   .msn = msn & 0xffffff,
						   .syndrome = syndrome };
}

bool ref_posted(const struct ref *r)
{
	return r->srq ? r->held || r->srq->ci != r->srq->pi : r->ci != r->pi;
}

uint16_t ref_use(struct ref *r)
{
	struct ref_srq *q = r->srq;

	if (!q)
		return r->ci;
	if (!r->held) {
		assert_true(q->ci != q->pi);
		r->held_idx = q->ring[q->ci++ & ((1u << q->cfg.log_entries) - 1)];
	}
	r->held = true;
	return r->held_idx;
}

uint16_t ref_end(struct ref *r)
{
	uint16_t wqe = ref_use(r);

	r->held = false;
	if (!r->srq)
		r->ci++;
	return wqe;
}

void ref_flush(struct ref *r)
{
	if (is_tgt(r)) {
		/* an SRQ that is gone has taken its WQEs along */
		r->srq = r->msg_srq;
		if (r->held && r->srq->exists && r->srq->life == r->msg_life)
			ref_cqe(r, ref_end(r), URDMA_WC_FLUSH_ERR, 0, NULL, false, 0);
		r->held = false;
		return;
	}
	if (r->srq) {
		if (r->held)
			ref_cqe(r, ref_end(r), URDMA_WC_FLUSH_ERR, 0, NULL, false, 0);
		r->errs[r->n_errs++] = (struct bench_err){ r->cfg.qpn, URDMA_EV_LAST_WQE, true };
		return;
	}
	for (; r->ci != r->pi; r->ci++)
		ref_cqe(r, r->ci, URDMA_WC_FLUSH_ERR, 0, NULL, false, 0);
}

void ref_error(struct ref *r, uint8_t event)
{
	r->err = true;
	r->errs[r->n_errs++] = (struct bench_err){ r->cfg.qpn, event, false };
}

/* Place @len bytes at message offset @off by WQE @idx: a CQE status. */
uint8_t ref_place(struct bench *b, struct ref *r, uint16_t idx, uint32_t off, const uint8_t *p,
		  size_t len)
{
	const uint8_t *w = b->shadow + (wqe_va(r, idx) - HOST_VA);
	unsigned int num = w[0], stride = r->srq ? r->srq->cfg.log_stride : r->cfg.rq_log_stride;
	unsigned int most = ((1u << stride) - 16) / 16;

	if (!len)
		return 0;
	if (num > most)
		return URDMA_WC_LOC_QP_OP_ERR;
	for (unsigned int i = 0; i < num && len; i++) {
		uint64_t addr;
		uint32_t sl, key, n;

		memcpy(&addr, w + 16 + 16 * i, 8);
		memcpy(&sl, w + 24 + 16 * i, 4);
		memcpy(&key, w + 28 + 16 * i, 4);
		if (sl <= off) {
			off -= sl;
			continue;
		}
		n = sl - off < len ? sl - off : len;
		addr += off;
		off = 0;
		if (!ref_check(b, r, key, addr, n, URDMA_ACC_LOCAL_WRITE))
			return URDMA_WC_LOC_PROT_ERR;
		memcpy(b->shadow + (addr - HOST_VA), p, n);
		p += n;
		len -= n;
	}
	return len ? URDMA_WC_LOC_LEN_ERR : 0;
}

void ref_nak(struct ref *r, uint8_t syndrome, bool wqe, uint8_t status, uint8_t event)
{
	ref_ack(r, r->epsn, syndrome, r->msn);
	if (wqe)
		ref_cqe(r, ref_end(r), status, 0, NULL, false, 0);
	ref_error(r, wqe ? 0 : event);
}

/* Is what a FLUSH is for allowed? A range of 0 bytes always is. */
static bool ref_flush_check(struct bench *b, const struct ref *r, uint32_t key, uint64_t va,
			    uint32_t len, bool whole)
{
	for (unsigned int k = 0; whole && k < b->mrs; k++)
		if (b->mr[k].key == key && !ref_invalid[k]) {
			va = b->mr[k].va;
			len = 1;
		}
	return (!whole && !len) || ref_check(b, r, key, va, len, URDMA_ACC_FLUSH_GLOBAL);
}

/* READ, ATOMIC, FLUSH and ATOMIC WRITE requests */
void ref_request(struct bench *b, struct ref *r, const struct packet *p, bool dup)
{
	bool flush = p->opcode == 0x1c, awrite = p->opcode == 0x1d;
	const uint8_t *reth = p->ext + (flush ? 4 : 0);
	uint32_t mtu = 128u << r->cfg.mtu, key = get32(reth + 8);
	uint64_t va = get64(reth), v = 0;
	unsigned int type = p->ext[3] & 3, level = p->ext[3] >> 4 & 3;
	bool read = p->opcode == 0x0c, empty = flush || awrite, bad, right, allowed;
	uint32_t len = read || empty ? get32(reth + 12) : 8;
	uint32_t n = read && len ? (len + mtu - 1) / mtu : 1;

	bad = p->len != (awrite ? 8 : 0) || !r->cfg.max_dest;
	right = r->cfg.acc & (awrite ? 1 : flush ? 8 : read ? 2 : 4);
	if (flush) {
		bad |= !type || level > URDMA_FLUSH_MR ||
		       (level == URDMA_FLUSH_RANGE && len > 1u << 31);
		allowed = !(type & URDMA_FLUSH_PERSISTENT) &&
			  ref_flush_check(b, r, key, va, len, level);
	} else {
		bad |= awrite ? len != 8 || va & 7 : read ? len > 1u << 30 : (va & 7) != 0;
		allowed = !len || ref_check(b, r, key, va, len,
					    awrite ? URDMA_ACC_REMOTE_WRITE
					    : read ? URDMA_ACC_REMOTE_READ
						   : URDMA_ACC_REMOTE_ATOMIC);
		allowed &= read || key != RKEY_ODD;
	}
	if (dup && (read || empty)) {
		int32_t ahead = (int32_t)((p->psn + n - r->epsn) << 8) >> 8;

		if (bad || !right || ahead > 0 || r->missing ||
		    (flush && type & URDMA_FLUSH_PERSISTENT))
			return;
		ref_ack(r, p->psn, 0x1f, r->msn);
	} else if (dup) {
		unsigned int k = r->n_atomic;

		if (r->missing)
			return;

		/* as many as may be outstanding are remembered */
		while (k && r->n_atomic - k < 16 && r->atomic[k - 1].psn != p->psn)
			k--;
		if (!k || r->n_atomic - k >= 16)
			return;
		ref_ack(r, p->psn, 0x1f, r->msn);
		v = r->atomic[k - 1].value;
	} else if (r->in_msg || bad || !right || r->missing || r->other) {
		ref_nak(r, 0x61, r->in_msg && !r->write && !r->missing && !r->other,
			URDMA_WC_REM_INV_REQ_ERR, URDMA_EV_QP_REQ_ERR);
		return;
	} else if (!allowed) {
		ref_nak(r, 0x62, false, 0, URDMA_EV_QP_ACCESS_ERR);
		return;
	} else {
		uint8_t *m = b->shadow + (va - HOST_VA);

		r->nak = false;
		r->qc[URDMA_QCNT_RX_WRITE] += awrite;
		r->qc[URDMA_QCNT_RX_READ] += read;
		r->qc[URDMA_QCNT_RX_ATOMIC] += !read && !empty;
		r->msn = (r->msn + 1) & 0xffffff;
		ref_ack(r, p->psn, 0x1f, r->msn);
		r->epsn = (r->epsn + n) & 0xffffff;
		if (awrite)
			memcpy(m, p->payload, 8);
		if (!read && !empty) {
			uint64_t a = get64(p->ext + 12), next;

			memcpy(&v, m, 8);
			next = p->opcode == 0x14 ? v + a : v == get64(p->ext + 20) ? a : v;
			memcpy(m, &next, 8);
			assert_true(r->n_atomic < 4096);
			r->atomic[r->n_atomic].psn = p->psn;
			r->atomic[r->n_atomic++].value = v;
		}
	}
	r->acks[r->n_acks - 1].kind = read || empty ? RSP_READ : RSP_ATOMIC;
	if (read) {
		r->acks[r->n_acks - 1].key = key;
		r->acks[r->n_acks - 1].pd = ref_pd(r);
		r->acks[r->n_acks - 1].len = len;
	}
	r->acks[r->n_acks - 1].va = read ? va : v;
	r->acks[r->n_acks - 1].dup = dup;
}

/* What a packet that passed every check of addresses does (IBA volume 1, 9.7.4). */
void ref_packet(struct bench *b, struct ref *r, const struct packet *p)
{
	uint32_t mtu = 128u << r->cfg.mtu, diff = (p->psn - r->epsn) & 0xffffff;
	uint8_t op = p->opcode, status = 0, cqe_op;
	const uint8_t *imm_at = p->ext + (op == 0x0b ? 16 : 0);
	bool send = op <= 5 || op == 0x16 || op == 0x17, write = op >= 6 && op <= 0x0b;
	bool first =
		op == 0 || op == 4 || op == 5 || op == 0x17 || op == 6 || op == 0x0a || op == 0x0b;
	bool last = send ? (op >= 2) : (op >= 8);
	bool inv = op == 0x16 || op == 0x17, imm = op == 3 || op == 5 || op == 9 || op == 0x0b;
	bool wqe, bad, posted;
	uint32_t left, key;
	uint64_t va;

	if (!r->active || r->err || (op >= 0x0d && op <= 0x12))
		return;
	ref_count(r, p);
	if (diff && !(diff & 0x800000)) {
		if (!r->nak)
			ref_ack(r, r->epsn, 0x60, r->msn);
		r->nak = true;
		r->n_seq++;
		return;
	}
	r->n_dup += diff != 0;
	if (op == 0x0c || op == 0x13 || op == 0x14 || op == 0x1c || op == 0x1d) {
		ref_request(b, r, p, diff != 0);
	} else if (diff) {
		ref_ack(r, r->epsn - 1, 0x1f, r->msn);
		return;
	} else {
		left = first ? get32(p->ext + 12) : r->wleft;
		va = first ? get64(p->ext) : r->wva;
		key = first ? get32(p->ext + 8) : r->wkey;
		bad = !(send || write) || first == r->in_msg || (r->in_msg && write != r->write) ||
		      (last ? p->len > mtu : p->len != mtu) || (last && !first && !p->len);
		if (write)
			bad = bad || left > 1u << 31 || (last ? p->len != left : p->len >= left) ||
			      !(r->cfg.acc & 1);
		wqe = write ? imm : first;
		if (bad || r->missing || r->other) {
			ref_nak(r, 0x61, r->in_msg && !r->write && !r->missing && !r->other,
				URDMA_WC_REM_INV_REQ_ERR, URDMA_EV_QP_REQ_ERR);
			return;
		}
		posted = ref_posted(r);
		if (write && wqe && !posted && p->len &&
		    !ref_check(b, r, key, va, p->len, URDMA_ACC_REMOTE_WRITE)) {
			ref_nak(r, 0x62, false, 0, URDMA_EV_QP_ACCESS_ERR);
			return;
		}
		if (wqe && !posted) {
			r->qc[URDMA_QCNT_RX_NO_WQE]++;
			ref_ack(r, p->psn, 0x20 | r->cfg.min_rnr, r->msn);
			r->nak = true;
			return;
		}
		r->nak = false;
		if (first)
			r->moff = 0;
		r->qc[URDMA_QCNT_RX_SEND] += first && send;
		r->qc[URDMA_QCNT_RX_WRITE] += first && write;
		if (send) {
			status = ref_place(b, r, ref_use(r), r->moff, p->payload, p->len);
		} else if (p->len) {
			if (ref_check(b, r, key, va, p->len, URDMA_ACC_REMOTE_WRITE))
				memcpy(b->shadow + (va - HOST_VA), p->payload, p->len);
			else
				status = URDMA_WC_LOC_ACCESS_ERR;
		}
		if (!status && inv) {
			unsigned int k;

			for (k = 0; k < b->mrs; k++)
				if (b->mr[k].key == get32(p->ext) && !ref_invalid[k])
					break;
			if (k == b->mrs || b->mr[k].pd != ref_pd(r))
				status = URDMA_WC_REM_INV_REQ_ERR;
			else
				ref_invalid[k] = true;
		}
		if (status == URDMA_WC_REM_INV_REQ_ERR) { /* class J: the requester is not told */
			ref_ack(r, p->psn, 0x1f, r->msn + 1);
			ref_cqe(r, ref_end(r), status, 0, NULL, false, 0);
			ref_error(r, 0);
			return;
		}
		if (status) {
			ref_nak(r,
				status == URDMA_WC_LOC_LEN_ERR	    ? 0x61
				: status == URDMA_WC_LOC_ACCESS_ERR ? 0x62
								    : 0x63,
				send || imm, status, URDMA_EV_QP_ACCESS_ERR);
			return;
		}
		r->epsn = (r->epsn + 1) & 0xffffff;
		r->moff += p->len;
		r->in_msg = !last;
		r->write = write;
		r->wva = va + p->len;
		r->wkey = key;
		r->wleft = left - p->len;
		if (last) {
			cqe_op = write ? URDMA_WR_WRITE_IMM
				 : inv ? URDMA_WR_SEND_INV
				 : imm ? URDMA_WR_SEND_IMM
				       : URDMA_WR_SEND;
			if (send || imm)
				ref_cqe(r, ref_end(r), 0, r->moff, imm || inv ? imm_at : NULL,
					p->se, cqe_op);
			r->msn = (r->msn + 1) & 0xffffff;
		}
		if (p->ackreq)
			ref_ack(r, p->psn, 0x1f, r->msn);
	}
	if (!diff && !r->err) {
		if (!r->est && r->cfg.state == URDMA_QPS_RTR)
			r->errs[r->n_errs++] =
				(struct bench_err){ r->cfg.qpn, URDMA_EV_COMM_EST, true };
		r->est = true;
	}
}

/*
 * A packet to a target of XRC (annex A14): the SRQ that it names gives PD, WQE and CQ. One that it
 * may not use, or that is not the one of the message, is an invalid request.
 */
void ref_xrc(struct bench *b, struct ref *r, const struct packet *p)
{
	bool was = r->in_msg, has = opc_xrceth(p->opcode);
	struct ref_srq *q = NULL;
	struct packet k = *p;
	uint32_t n = get32(p->ext) & 0xffffff;

	if (opc_transport(p->opcode) != OPC_T_XRC || opc_is_response(opc_rules[p->opcode].kind))
		return;
	for (unsigned int i = 0; i < ref_xrc_n; i++)
		if (has && ref_xrc_srqs[i].cfg.srqn == n && ref_xrc_srqs[i].exists)
			q = &ref_xrc_srqs[i];
	k.opcode &= 0x1f;
	if (has)
		memmove(k.ext, p->ext + 4, sizeof(k.ext) - 4);
	r->missing = !q || !q->cfg.xrc || q->cfg.xrcd != r->cfg.pd;
	r->other = r->in_msg && (n != r->msg_srqn || !q || q->life != r->msg_life);
	r->srq = q;
	ref_packet(b, r, &k);
	if (!was && r->in_msg) {
		r->msg_srq = q;
		r->msg_srqn = n;
		r->msg_life = q->life;
	}
}

/* Payload that cannot be placed by the receiver's own WQE ends the QP, without an answer. */
static bool ref_own_error(struct ref *r, uint8_t status)
{
	if (!status)
		return false;
	ref_cqe(r, ref_end(r), status, 0, NULL, false, 0);
	ref_error(r, 0);
	return true;
}

/*
 * What a packet that passed every check of addresses does to a QP of UC (volume 1, 9.8.2, 9.9.3):
 * what is wrong is dropped with the rest of its message, and nothing is answered.
 */
void ref_uc(struct bench *b, struct ref *r, const struct packet *p)
{
	const struct opc_rule *o = &opc_rules[p->opcode];
	uint32_t mtu = 128u << r->cfg.mtu, left, key;
	bool name = o->name, first = name && (o->place == OPC_FIRST || o->place == OPC_ONLY);
	bool last = name && (o->place == OPC_LAST || o->place == OPC_ONLY), gap, bad;
	bool write = o->kind == OPC_WRITE, takes;
	uint8_t why = REF_NONE;
	uint64_t va;

	if (!r->active || r->err || opc_transport(p->opcode) != OPC_T_UC)
		return;
	ref_count(r, p);
	gap = p->psn != r->epsn;
	r->epsn = (p->psn + 1) & 0xffffff;
	left = first && write ? get32(p->ext + 12) : r->wleft;
	va = first && write ? get64(p->ext) : r->wva;
	key = first && write ? get32(p->ext + 8) : r->wkey;
	bad = !name || !opc_length_good(o->length, mtu, p->len) ||
	      (write && (left > 1u << 31 || (last ? p->len != left : p->len >= left)));
	takes = last && (!write || o->imm);
	if (!first && gap)
		why = REF_SEQ;
	else if (!first && r->skip)
		why = r->skip;
	else if (!first && (!name || !r->in_msg || write != r->write))
		why = REF_BAD;
	else if (bad || (write && !(r->cfg.acc & 1)))
		why = REF_BAD;
	else if ((write ? o->imm : first) && !ref_posted(r))
		why = REF_NO_WQE;
	r->n_seq += gap || why == REF_SEQ;
	r->n_unrel += why == REF_BAD;
	r->n_no_wqe += why == REF_NO_WQE;
	r->in_msg = !why && !last;
	r->skip = last ? REF_NONE : why;
	if (why)
		return;
	if (first) {
		r->moff = 0;
		r->refused = false;
		r->qc[write ? URDMA_QCNT_RX_WRITE : URDMA_QCNT_RX_SEND]++;
	}
	r->write = write;
	if (write) {
		r->refused |= p->len && !ref_check(b, r, key, va, p->len, URDMA_ACC_REMOTE_WRITE);
		if (!r->refused)
			memcpy(b->shadow + (va - HOST_VA), p->payload, p->len);
		r->n_unrel += r->refused;
		r->back = r->refused && takes;
	} else if (ref_own_error(r, ref_place(b, r, ref_use(r), r->moff, p->payload, p->len))) {
		return;
	}
	r->moff += p->len;
	r->wva = va + p->len;
	r->wkey = key;
	r->wleft = left - p->len;
	if (takes && !r->refused)
		ref_cqe(r, ref_end(r), 0, r->moff,
			o->imm ? p->ext + (o->place == OPC_ONLY && write ? 16 : 0) : NULL, p->se,
			write	 ? URDMA_WR_WRITE_IMM
			: o->imm ? URDMA_WR_SEND_IMM
				 : URDMA_WR_SEND);
	if (!r->est && r->cfg.state == URDMA_QPS_RTR)
		r->errs[r->n_errs++] = (struct bench_err){ r->cfg.qpn, URDMA_EV_COMM_EST, true };
	r->est = true;
}

/*
 * The same for UD (9.8.3): 40 bytes in front of the payload are the GRH, which of IPv4 is the
 * header behind 20 bytes of zeros (annex A17).
 */
void ref_ud(struct bench *b, struct ref *r, const struct packet *p, const struct frame *f)
{
	const struct opc_rule *o = &opc_rules[p->opcode];
	const uint8_t *ip = f->b + packet_ip(p);
	static uint8_t data[40 + 4096];
	struct bench_cqe *c;

	if (!r->active || r->err || opc_transport(p->opcode) != OPC_T_UD)
		return;
	ref_count(r, p);
	if (!o->name) {
		r->n_unrel++;
	} else if (get32(p->ext) != r->cfg.qkey) {
		r->n_qkey++;
	} else if (!opc_length_good(o->length, 128u << r->cfg.mtu, p->len)) {
		r->n_unrel++;
	} else if (!ref_posted(r)) {
		r->n_no_wqe++;
	} else {
		r->qc[URDMA_QCNT_RX_SEND]++;
		memset(data, 0, 20);
		memcpy(data + (p->ipv4 ? 20 : 0), ip, p->ipv4 ? 20 : 40);
		memcpy(data + 40, p->payload, p->len);
		if (!ref_own_error(r, ref_place(b, r, ref_use(r), 0, data, 40 + p->len)))
			ref_cqe(r, ref_end(r), 0, 40 + p->len, o->imm ? p->ext + 8 : NULL, p->se,
				o->imm ? URDMA_WR_SEND_IMM : URDMA_WR_SEND);
		c = &r->cqes[r->n_cqes - 1];
		c->w[2] |= (uint64_t)(get32(p->ext + 4) & 0xffffff) << 32;
		if (r->err)
			return;
		c->w[0] |= URDMA_CQE0_GRH | (p->ipv4 ? URDMA_CQE0_IPV4 : 0);
		if (p->vlan_valid)
			c->w[0] |= URDMA_CQE0_VLAN | (uint64_t)(p->vlan | 0x6000) << 48;
	}
}

/* What the responder counts of a QP. An error of placement comes too late for the packets behind.
 */
static void check_counters(struct bench *b, struct ref *r)
{
	const uint64_t *got = b->qc[r->cfg.qpn];
	int first = 0;

	for (unsigned int k = 0; k < b->n_cqes[0]; k++) {
		uint8_t status = HW_GET(URDMA_CQE0_STATUS, b->cqes[0][k].w[0]);

		if (status && b->cqes[0][k].w[1] >> 32 == r->cfg.qpn)
			r->qc[status == URDMA_WC_FLUSH_ERR ? URDMA_QCNT_RESP_FLUSH
							   : URDMA_QCNT_RESP_ERR]++;
	}
	r->qc[URDMA_QCNT_RX_DUP] = r->n_dup;
	r->qc[URDMA_QCNT_RX_SEQ_ERR] = r->n_seq;
	r->qc[URDMA_QCNT_RX_NO_WQE] += r->n_no_wqe;
	/* the reference does not see responses */
	if (b->responses)
		first = URDMA_QCNT_RX_SEND;
	if (r->err)
		first = URDMA_QCNT_RESP_ERR;
	for (int i = first; i < URDMA_QCNT_TX_PKTS; i++)
		if (got[i] != r->qc[i])
			fail_msg(
				"cycle %llu seed %u: QP %u: its counter %d is %llu, should be %llu",
				(unsigned long long)b->cycle, seed, r->cfg.qpn, i,
				(unsigned long long)got[i], (unsigned long long)r->qc[i]);
}

/* Compare what was seen with the reference, QP by QP, and forget both. */
void check(struct bench *b)
{
	unsigned int dups = 0, seqs = 0, unrel = 0, no_wqe = 0, qkey = 0;
	bool err = false;

	for (int i = 0; i < QPS; i++) {
		struct ref *r = &refs[i];
		unsigned int na = 0, nc = 0, ne = 0;

		for (unsigned int k = 0; k < b->n_acks; k++) {
			const struct bench_ack *a = &b->acks[k], *e = &r->acks[na];

			if (a->qpn != r->cfg.qpn)
				continue;
			if (na >= r->n_acks || a->psn != e->psn || a->msn != e->msn ||
			    a->syndrome != e->syndrome || a->kind != e->kind || a->len != e->len ||
			    a->dup != e->dup ||
			    /* a READ of 0 bytes reads nowhere */
			    ((a->kind != RSP_READ || a->len) &&
			     (a->key != e->key || a->va != e->va || a->pd != e->pd)))
				fail_msg("cycle %llu seed %u: QP %u answer %u: kind %u PSN %x MSN "
					 "%x syndrome %x key %x va %llx len %x dup %u,"
					 " expected (of %u) %u %x %x %x %x %llx %x %u",
					 (unsigned long long)b->cycle, seed, a->qpn, na, a->kind,
					 a->psn, a->msn, a->syndrome, a->key,
					 (unsigned long long)a->va, a->len, a->dup, r->n_acks,
					 e->kind, e->psn, e->msn, e->syndrome, e->key,
					 (unsigned long long)e->va, e->len, e->dup);
			na++;
		}
		for (unsigned int k = 0; k < b->n_cqes[0]; k++) {
			const struct bench_cqe *c = &b->cqes[0][k], *e = &r->cqes[nc];

			if ((c->w[1] >> 32) != r->cfg.qpn)
				continue;
			if (nc >= r->n_cqes || memcmp(c->w, e->w, 32) || c->cqn != e->cqn ||
			    c->solicited != e->solicited)
				fail_msg("cycle %llu seed %u: QP %u CQE %u: %016llx %016llx "
					 "%016llx, expected (of %u)"
					 " %016llx %016llx %016llx",
					 (unsigned long long)b->cycle, seed, r->cfg.qpn, nc,
					 (unsigned long long)c->w[0], (unsigned long long)c->w[1],
					 (unsigned long long)c->w[2], r->n_cqes,
					 (unsigned long long)e->w[0], (unsigned long long)e->w[1],
					 (unsigned long long)e->w[2]);
			nc++;
		}
		for (unsigned int k = 0; k < b->n_errs[0]; k++) {
			if (b->errs[0][k].qpn != r->cfg.qpn)
				continue;
			if (ne >= r->n_errs || b->errs[0][k].event != r->errs[ne].event ||
			    b->errs[0][k].only != r->errs[ne].only)
				fail_msg("cycle %llu seed %u: QP %u report %u: event %u, only %d; "
					 "expected (of %u) %u, %d",
					 (unsigned long long)b->cycle, seed, r->cfg.qpn, ne,
					 b->errs[0][k].event, b->errs[0][k].only, r->n_errs,
					 r->errs[ne].event, r->errs[ne].only);
			ne++;
		}
		if (na != r->n_acks || nc != r->n_cqes || ne != r->n_errs)
			fail_msg("cycle %llu seed %u: QP %u: %u acknowledgements, %u CQEs, %u "
				 "errors, expected %u, %u,"
				 " %u",
				 (unsigned long long)b->cycle, seed, r->cfg.qpn, na, nc, ne,
				 r->n_acks, r->n_cqes, r->n_errs);
		check_counters(b, r);
		err |= r->err;
		dups += r->n_dup;
		seqs += r->n_seq;
		unrel += r->n_unrel;
		no_wqe += r->n_no_wqe;
		qkey += r->n_qkey;
		ref_clear(r);
	}
	/* an error of placement comes too late for the packets behind it */
	if (!err && (b->cnt[URDMA_CNT_RX_DUP] != dups || b->cnt[URDMA_CNT_RX_SEQ_ERR] != seqs))
		fail_msg("cycle %llu seed %u: RX_DUP %u, RX_SEQ_ERR %u, expected %u, %u",
			 (unsigned long long)b->cycle, seed, (unsigned int)b->cnt[URDMA_CNT_RX_DUP],
			 (unsigned int)b->cnt[URDMA_CNT_RX_SEQ_ERR], dups, seqs);
	if (!err &&
	    (b->cnt[URDMA_CNT_RX_DROP_UNREL] != unrel ||
	     b->cnt[URDMA_CNT_RX_DROP_NO_WQE] != no_wqe || b->cnt[URDMA_CNT_RX_BAD_QKEY] != qkey))
		fail_msg("cycle %llu seed %u: RX_DROP_UNREL %u, RX_DROP_NO_WQE %u, RX_BAD_QKEY %u, "
			 "expected %u, %u, %u",
			 (unsigned long long)b->cycle, seed,
			 (unsigned int)b->cnt[URDMA_CNT_RX_DROP_UNREL],
			 (unsigned int)b->cnt[URDMA_CNT_RX_DROP_NO_WQE],
			 (unsigned int)b->cnt[URDMA_CNT_RX_BAD_QKEY], unrel, no_wqe, qkey);
	for (size_t i = 0; i < HOST_SIZE; i++)
		if (b->host[i] != b->shadow[i])
			fail_msg("cycle %llu seed %u: host memory differs at offset %#zx: %02x, "
				 "expected %02x",
				 (unsigned long long)b->cycle, seed, i, b->host[i], b->shadow[i]);
	bench_clear_logs(b);
}

/* ---- setting up
 * -------------------------------------------------------------------------------------- */

const uint8_t mac_own[6] = { 2, 0, 0, 0, 0, 2 }, mac_peer[6] = { 2, 0, 0, 0, 0, 1 };

void gid4(uint8_t *g, uint8_t last)
{
	static const uint8_t prefix[15] = { [10] = 0xff, 0xff, 10, 0, 0 };

	memcpy(g, prefix, 15);
	g[15] = last;
}

void gid6(uint8_t *g, uint8_t last)
{
	memset(g, 0, 16);
	g[0] = 0xfe;
	g[1] = 0x80;
	g[15] = last;
}

/* GID entries: 0 IPv4, 1 IPv6 in VLAN 5, 2 IPv6, 3 IPv4 in VLAN 5 */
void set_gids(struct bench *b, int first, const uint8_t smac[6])
{
	for (int i = 0; i < 4; i++) {
		struct rx_gid g = { .idx = first + i,
				    .valid = true,
				    .ipv4 = i == 0 || i == 3,
				    .vlan_valid = i & 1 };

		g.vlan = g.vlan_valid ? 5 : 0;
		memcpy(g.smac, smac, 6);
		(g.ipv4 ? gid4 : gid6)(g.gid, 2);
		bench_gid(b, &g);
	}
}

void qp_init(struct bench *b, int i, uint8_t mtu, uint8_t log_entries, uint8_t log_stride,
	     uint32_t psn)
{
	struct ref *r = &refs[i];
	struct rx_cfg c = { .qpn = QPN0 + i,
			    .exists = true,
			    .state = URDMA_QPS_RTS,
			    .type = qp_type,
			    .qkey = REF_QKEY,
			    .pd = 7,
			    .send_cq = 30 + i,
			    .recv_cq = 20 + i,
			    .rq_log_entries = log_entries,
			    .rq_log_stride = log_stride,
			    .sq_log_entries = 6,
			    .sq_log_stride = 6 + i % 3,
			    .acc = 15,
			    .max_dest = 16,
			    .retry = 7,
			    .rnr_retry = 7,
			    .mtu = mtu,
			    .min_rnr = i,
			    .dest_qpn = 0xabc00 + i,
			    .pkey = 0xffff,
			    .sgid = i & 3 };

	memset(r, 0, sizeof(*r));
	c.rq_addr = HOST_BUS + RING_OFF + 0x10000 * i;
	c.sq_addr = HOST_BUS + SQ_OFF + 0x4000 * i;
	memset(&r->hdr, 0, sizeof(r->hdr));
	r->hdr.ipv4 = (i & 3) == 0 || (i & 3) == 3;
	r->hdr.vlan_valid = i & 1;
	r->hdr.vlan = 5;
	r->hdr.pkey = 0xffff;
	r->hdr.dqpn = c.qpn;
	memcpy(r->hdr.dmac, mac_own, 6);
	memcpy(r->hdr.smac, mac_peer, 6);
	(r->hdr.ipv4 ? gid4 : gid6)(r->hdr.dip, 2);
	(r->hdr.ipv4 ? gid4 : gid6)(r->hdr.sip, 1);
	memcpy(c.dgid, r->hdr.sip, 16);
	r->cfg = c;
	bench_cfg(b, &c);
	bench_ctl_wait(b, false, QPC_RESET, c.qpn, 0, 200);
	bench_ctl_wait(b, true, QPC_RESET, c.qpn, 0, 200);
	bench_ctl_wait(b, false, QPC_RQ_PSN, c.qpn, psn, 200);
	bench_ctl_wait(b, true, QPC_SQ_PSN, c.qpn, psn ^ 0x555, 200);
	r->active = true;
	r->epsn = psn & 0xffffff;
}

struct bench *start(void)
{
	struct bench *b = bench_new(seed);

	set_gids(b, 0, mac_own);
	b->mr[0] = (struct bench_mr){ LKEY, 7, URDMA_ACC_LOCAL_WRITE, HOST_VA + DATA_OFF,
				      HOST_SIZE - DATA_OFF };
	b->mr[1] = (struct bench_mr){ LKEY + 1, 8, URDMA_ACC_LOCAL_WRITE, HOST_VA + DATA_OFF,
				      1 << 20 };
	b->mr[2] = (struct bench_mr){ LKEY + 2, 7, URDMA_ACC_REMOTE_READ, HOST_VA + DATA_OFF,
				      1 << 20 };
	b->mr[3] = (struct bench_mr){ RKEY, 7, ACC_ALL, HOST_VA + REM_OFF, HOST_SIZE - REM_OFF };
	b->mr[4] =
		(struct bench_mr){ RKEY_RO, 7, URDMA_ACC_REMOTE_READ, HOST_VA + REM_OFF, 1 << 16 };
	b->mr[5] = (struct bench_mr){ RKEY_PD, 8, ACC_ALL, HOST_VA + REM_OFF, 1 << 16 };
	for (int i = 0; i < QPS; i++)
		b->mr[6 + i] = (struct bench_mr){ RKEY_INV + 256 * i, 7, ACC_ALL,
						  HOST_VA + REM_OFF + 0x10000 * i, 1 << 16 };
	b->mr[6 + QPS] =
		(struct bench_mr){ RKEY_ODD, 7, ACC_ALL, HOST_VA + REM_OFF, HOST_SIZE - REM_OFF };
	b->odd_key = RKEY_ODD;
	b->mr[7 + QPS] = (struct bench_mr){ RKEY_WO, 7, ACC_ALL & ~URDMA_ACC_REMOTE_READ,
					    HOST_VA + REM_OFF, 1 << 16 };
	b->mr[8 + QPS] = (struct bench_mr){ RKEY_BIG, 7, URDMA_ACC_REMOTE_READ, HOST_VA, 1u << 31 };
	b->mrs = 9 + QPS;
	memset(ref_invalid, 0, sizeof(ref_invalid));
	memset(refs, 0, sizeof(refs));
	ref_xrc_n = 0;
	qp_type = URDMA_QPT_RC;
	memset(reqs, 0, sizeof(reqs));
	return b;
}

/* Write receive WQE pi of the QP; the doorbell is the caller's. */
void post(struct bench *b, struct ref *r, const struct sge *s, unsigned int num)
{
	uint8_t w[512] = { num };

	for (unsigned int i = 0; i < num && i < 31; i++) {
		memcpy(w + 16 + 16 * i, &s[i].va, 8);
		memcpy(w + 24 + 16 * i, &s[i].len, 4);
		memcpy(w + 28 + 16 * i, &s[i].key, 4);
	}
	bench_put(b, wqe_va(r, r->pi), w, 1u << r->cfg.rq_log_stride);
	r->pi++;
}

void ring(struct bench *b, struct ref *r)
{
	bench_db(b, r->cfg.qpn, r->pi);
	if (r->err)
		ref_flush(r);
}

uint8_t payload[1 << 20];

void fill(struct bench *b, size_t len)
{
	for (size_t i = 0; i < len; i += 4) {
		uint32_t v = rnd(b);

		memcpy(payload + i, &v, 4);
	}
}

/* A packet just so, to a QP of any type. */
void send_as(struct bench *b, struct ref *r, const struct packet *k)
{
	static struct frame f;

	packet_build(k, &f);
	bench_frame(b, &f, false);
	if (r->cfg.type == URDMA_QPT_UC)
		ref_uc(b, r, k);
	else if (r->cfg.type == URDMA_QPT_UD)
		ref_ud(b, r, k, &f);
	else if (is_tgt(r))
		ref_xrc(b, r, k);
	else
		ref_packet(b, r, k);
}

/* @opcode: of RC, or its like of UC. @ext: extended headers as on the wire */
void send_raw(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, const uint8_t *ext,
	      const uint8_t *p, size_t len, bool ackreq, bool se)
{
	struct packet k = r->hdr;

	k.opcode = opcode | (r->cfg.type == URDMA_QPT_UC ? 0x20 : 0);
	k.psn = psn & 0xffffff;
	k.payload = p;
	k.len = len;
	k.ackreq = ackreq;
	k.se = se;
	k.ext_len = opc_rules[k.opcode].ext;
	if (ext)
		memcpy(k.ext, ext, k.ext_len);
	send_as(b, r, &k);
}

void send_packet(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, const uint8_t *p,
		 size_t len, bool ackreq, bool se)
{
	uint32_t imm = rnd(b);

	send_raw(b, r, opcode, psn, (uint8_t *)&imm, p, len, ackreq, se);
}

/* RETH, and an immediate behind it if the opcode has one */
void send_reth(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, uint64_t va,
	       uint32_t key, uint32_t total, const uint8_t *p, size_t len, bool ackreq)
{
	uint8_t ext[32];

	put64(ext, va);
	put32(ext + 8, key);
	put32(ext + 12, total);
	put32(ext + 16, rnd(b));
	send_raw(b, r, opcode, psn, opcode == 9 ? ext + 16 : ext, p, len, ackreq,
		 opcode == 0x0b || opcode == 9);
}

void send_atomic(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, uint64_t va,
		 uint32_t key, uint64_t swap_add, uint64_t compare)
{
	uint8_t ext[32];

	put64(ext, va);
	put32(ext + 8, key);
	put64(ext + 12, swap_add);
	put64(ext + 20, compare);
	send_raw(b, r, opcode, psn, ext, NULL, 0, true, false);
}

void send_flush(struct bench *b, struct ref *r, uint32_t psn, uint64_t va, uint32_t key,
		uint32_t len, unsigned int type, unsigned int level)
{
	uint8_t ext[32];

	put32(ext, level << 4 | type);
	put64(ext + 4, va);
	put32(ext + 12, key);
	put32(ext + 16, len);
	send_raw(b, r, 0x1c, psn, ext, NULL, 0, true, false);
}

void send_inv(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, uint32_t key,
	      const uint8_t *p, size_t len)
{
	uint8_t ext[4];

	put32(ext, key);
	send_raw(b, r, opcode, psn, ext, p, len, true, false);
}

/* A whole message at the QP's MTU; every ack_every-th packet and the last ask for an
 * acknowledgement. */
void send_message(struct bench *b, struct ref *r, size_t len, bool imm, bool se,
		  unsigned int ack_every)
{
	size_t mtu = 128u << r->cfg.mtu, off = 0;
	uint32_t psn = r->epsn;
	unsigned int n = 0;

	do {
		size_t part = len - off < mtu ? len - off : mtu;
		bool last = off + part == len;
		uint8_t op = off ? (last ? (imm ? 3 : 2) : 1) : (last ? (imm ? 5 : 4) : 0);

		send_packet(b, r, op, psn++, payload + off, part,
			    last || (ack_every && ++n % ack_every == 0), last && se);
		off += part;
	} while (off < len);
}

/* A whole WRITE at the QP's MTU */
void send_write(struct bench *b, struct ref *r, uint64_t va, uint32_t key, size_t len, bool imm,
		unsigned int ack_every)
{
	size_t mtu = 128u << r->cfg.mtu, off = 0;
	uint32_t psn = r->epsn;
	unsigned int n = 0;

	do {
		size_t part = len - off < mtu ? len - off : mtu;
		bool last = off + part == len;
		uint8_t op = off ? (last ? (imm ? 9 : 8) : 7) : (last ? (imm ? 0x0b : 0x0a) : 6);

		send_reth(b, r, op, psn++, va, key, len, payload + off, part,
			  last || (ack_every && ++n % ack_every == 0));
		off += part;
	} while (off < len);
}

/* Memory for receive buffers, never the same twice in a round. */
uint64_t next_va;

uint64_t take(struct bench *b, size_t len, unsigned int align)
{
	uint64_t va = (next_va + align - 1) & ~(uint64_t)(align - 1);

	(void)b;
	if (va + len > HOST_VA + REM_OFF)
		va = HOST_VA + DATA_OFF;
	next_va = va + len;
	return va;
}

/* Cut @len bytes into scatter elements of a shape: a count of them. */
unsigned int shape_sges(struct bench *b, int shape, size_t len, struct sge *s, unsigned int most)
{
	unsigned int n = 0;

	if (shape == 0) { /* one, aligned, longer than needed */
		s[0] = (struct sge){ take(b, len + 64, 64), len + 64, LKEY };
		return 1;
	}
	if (shape == 1) { /* one, unaligned, exact */
		s[0] = (struct sge){ take(b, len + 1, 64) + 1, len, LKEY };
		next_va += 2;
		return 1;
	}
	while (len && n < most) {
		size_t part = n + 1 == most ? len
			      : shape == 2  ? rnd_in(b, 1, 70)
			      : shape == 3  ? rnd_in(b, 1, 5000)
					    : (rnd(b) & 1 ? 0 : rnd_in(b, 1, 300));

		if (part > len)
			part = len;
		s[n++] = (struct sge){ take(b, part, 1), part, LKEY };
		next_va += rnd(b) % 200;
		len -= part;
	}
	return n;
}
