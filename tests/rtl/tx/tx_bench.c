// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../crc/icrc.h"
#include "tx_bench.h"
#include "urdma_hw.h"

#define QLEN 4096

struct mr_job {
	struct tx_mr_rsp rsp;
	uint64_t at;
};

struct dma_job {
	int client;
	uint64_t addr;
	uint32_t len, done;
	uint64_t at;
};

struct sent_job {
	int qpn;
	uint16_t wqe;
	uint32_t psn;
	bool ok;
	uint64_t at;
};

struct bench {
	struct tx_model *m;
	struct tx_in in;
	struct tx_out out;
	uint64_t seed, cycle;
	struct weather w;
	struct qp qp[QPS];
	struct tx_gid gids[32];
	struct stats st;
	uint8_t *mem, *rings;
	uint64_t poison_from, poison_to;

	struct mr_job mr[2][QLEN];
	unsigned int mr_head[2], mr_tail[2];
	struct dma_job dma[QLEN];
	unsigned int dma_head, dma_tail;
	uint64_t dma_last_at;
	int cfg_q[64];
	uint64_t cfg_at[64];
	unsigned int cfg_head, cfg_tail;
	struct {
		int qpn;
		uint16_t pi;
	} db[QLEN];
	unsigned int db_head, db_tail;
	struct sent_job sent[QLEN];
	unsigned int sent_head, sent_tail;
	struct {
		int qpn;
		uint32_t psn, msn;
		uint8_t syndrome;
	} ack[QLEN];
	unsigned int ack_head, ack_tail;

	uint8_t frame[8192];
	unsigned int frame_len;
	uint64_t frame_first;
};

uint32_t bench_rnd(struct bench *b, uint32_t below)
{
	b->seed ^= b->seed << 13;
	b->seed ^= b->seed >> 7;
	b->seed ^= b->seed << 17;
	return below ? (b->seed >> 32) % below : 0;
}

static bool chance(struct bench *b, unsigned int percent)
{
	return percent && bench_rnd(b, 100) < percent;
}

/* Pages of the virtual range are strewn over the bus range. */
uint64_t bench_bus(uint64_t va)
{
	uint64_t page = va >> 12;

	return ((page * 1237 + 77) % (MEM_SIZE >> 12)) << 12 | (va & 4095);
}

uint8_t *bench_mem(struct bench *b, uint64_t va)
{
	return b->mem + bench_bus(va);
}

struct bench *bench_new(uint64_t seed)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->seed = seed * 2 + 1;
	b->m = tx_model_new();
	assert_non_null(b->m);
	b->mem = malloc(MEM_SIZE);
	b->rings = malloc((size_t)QPS * RING_SIZE);
	assert_non_null(b->mem);
	assert_non_null(b->rings);
	for (size_t i = 0; i < MEM_SIZE; i += 4) {
		uint32_t x = bench_rnd(b, UINT32_MAX);

		memcpy(b->mem + i, &x, 4);
	}
	memset(b->rings, 0xee, (size_t)QPS * RING_SIZE);
	for (int i = 0; i < QPS; i++)
		b->qp[i].msgs = calloc(MAX_MSGS, sizeof(struct msg));
	b->w = (struct weather){ .dma_latency = 125, .mr_latency = 6, .ack_delay = 300 };
	for (int i = 0; i < 4; i++) {
		struct tx_gid *g = &b->gids[i];

		g->valid = true;
		g->ipv4 = !(i & 1);
		g->vlan_valid = i & 2;
		g->vlan = 0x123 + i;
		for (int k = 0; k < 6; k++)
			g->smac[k] = 0x02 + 16 * i + k;
		for (int k = 0; k < 16; k++)
			g->gid[k] = bench_rnd(b, 256);
		if (g->ipv4) {
			memset(g->gid, 0, 10);
			memset(g->gid + 10, 0xff, 2);
		}
	}
	return b;
}

void bench_free(struct bench *b)
{
	for (int i = 0; i < QPS; i++)
		free(b->qp[i].msgs);
	tx_model_free(b->m);
	free(b->mem);
	free(b->rings);
	free(b);
}

struct qp *bench_qp(struct bench *b, int qpn)
{
	return &b->qp[qpn];
}

struct tx_gid *bench_gid(struct bench *b, int idx)
{
	return &b->gids[idx];
}

struct weather *bench_weather(struct bench *b)
{
	return &b->w;
}

uint64_t bench_cycle_count(const struct bench *b)
{
	return b->cycle;
}

const struct tx_out *bench_out(const struct bench *b)
{
	return &b->out;
}

struct stats *bench_stats(struct bench *b)
{
	return &b->st;
}

void bench_poison(struct bench *b, uint64_t from, uint64_t to)
{
	b->poison_from = from;
	b->poison_to = to;
}

void bench_open(struct bench *b, int qpn, struct tx_cfg *cfg, uint32_t psn)
{
	struct qp *q = &b->qp[qpn];
	struct msg *msgs = q->msgs;

	memset(q, 0, sizeof(*q));
	q->msgs = msgs;
	q->cfg = *cfg;
	q->cfg.valid = true;
	q->cfg.state = URDMA_QPS_RTS;
	q->cfg.pd = 0x300 + qpn;
	q->cfg.sq_addr = RING_BASE + (uint64_t)qpn * RING_SIZE;
	if (!q->cfg.log_entries)
		q->cfg.log_entries = 6;
	if (!q->cfg.log_stride)
		q->cfg.log_stride = 6;
	if (!q->cfg.mtu)
		q->cfg.mtu = 5;
	q->cfg.dest_qpn = 0xa5b000 + qpn;
	q->cfg.pkey = 0xffff - qpn;
	q->cfg.tclass = bench_rnd(b, 256);
	q->cfg.hop_limit = 1 + bench_rnd(b, 255);
	q->cfg.flow_label = bench_rnd(b, 1 << 20);
	q->cfg.udp_sport = 0xc000 + bench_rnd(b, 1 << 14);
	for (int i = 0; i < 6; i++)
		q->cfg.dmac[i] = bench_rnd(b, 256);
	for (int i = 0; i < 16; i++)
		q->cfg.dgid[i] = bench_rnd(b, 256);
	if (b->gids[q->cfg.sgid].ipv4) {
		memset(q->cfg.dgid, 0, 10);
		memset(q->cfg.dgid + 10, 0xff, 2);
	}
	q->psn0 = q->f_psn = q->s_psn = q->acked_psn = psn;
	bench_qpc(b, qpn, QPC_SQ_PSN, psn);
}

/* ---- posting --------------------------------------------------------------------------------- */
static void put64(uint8_t *p, uint64_t x)
{
	for (int i = 0; i < 8; i++)
		p[i] = x >> (8 * i);
}

struct msg *bench_post(struct bench *b, int qpn, const struct msg *m)
{
	struct qp *q = &b->qp[qpn];
	uint32_t stride = 1u << q->cfg.log_stride, slot = q->pi & ((1u << q->cfg.log_entries) - 1);
	uint8_t *w = b->rings + (size_t)qpn * RING_SIZE + (size_t)slot * stride;
	struct msg *own = &q->msgs[q->pi % MAX_MSGS];

	assert_true((stride << q->cfg.log_entries) <= RING_SIZE);
	memset(w, 0xdd, stride);
	put64(w, (uint64_t)m->op | (m->sig ? URDMA_SQE0_SIGNALED : 0) |
			 (m->se ? URDMA_SQE0_SOLICITED : 0) | (m->inl ? URDMA_SQE0_INLINE : 0) |
			 (uint64_t)m->num_sge << 16);
	put64(w + 8, m->imm);
	put64(w + 24, (uint64_t)m->len << 32);
	if (m->inl)
		memcpy(w + URDMA_SQE_DATA_OFFSET, m->inl_data,
		       m->len < stride - 32 ? m->len : stride - 32);
	else
		for (int i = 0; i < m->num_sge && 32 + 16 * (i + 1) <= (int)stride; i++) {
			put64(w + 32 + 16 * i, m->sge[i].va);
			put64(w + 40 + 16 * i, (uint64_t)m->sge[i].key << 32 | m->sge[i].len);
		}
	*own = *m;
	own->posted = b->cycle;
	own->first_beat = 0;
	if (!m->status) {
		uint32_t mtu = 128u << q->cfg.mtu;

		own->packets = m->len ? (m->len + mtu - 1) / mtu : 1;
	}
	q->pi++;
	return own;
}

void bench_doorbell(struct bench *b, int qpn, uint16_t pi)
{
	b->db[b->db_tail % QLEN].qpn = qpn;
	b->db[b->db_tail++ % QLEN].pi = pi;
}

void bench_ack(struct bench *b, int qpn, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	b->ack[b->ack_tail % QLEN].qpn = qpn;
	b->ack[b->ack_tail % QLEN].psn = psn;
	b->ack[b->ack_tail % QLEN].syndrome = syndrome;
	b->ack[b->ack_tail++ % QLEN].msn = msn;
}

/* ---- the frame that has to come
 * ------------------------------------------------------------------- */
static uint8_t *put_be(uint8_t *p, uint64_t x, int n)
{
	for (int i = n - 1; i >= 0; i--)
		*p++ = x >> (8 * i);
	return p;
}

/* Payload byte i of a message: walk the SGEs. */
static void payload(struct bench *b, const struct msg *m, uint32_t off, uint32_t len, uint8_t *out)
{
	if (m->inl) {
		memcpy(out, m->inl_data + off, len);
		return;
	}
	for (int i = 0; i < m->num_sge && len; i++) {
		const struct sge *s = &m->sge[i];

		if (off >= s->len) {
			off -= s->len;
			continue;
		}
		for (uint32_t k = off; k < s->len && len; k++, len--)
			*out++ = *bench_mem(b, s->va + k);
		off = 0;
	}
	assert_int_equal(len, 0);
}

/* Ethernet, IP, UDP, BTH, then ext and payload, pad, ICRC, Ethernet pad. */
static unsigned int build(const struct bench *b, const struct tx_cfg *c, uint8_t opcode, bool se,
			  bool ackreq, uint32_t psn, const uint8_t *ext, unsigned int ext_len,
			  const uint8_t *pay, unsigned int len, uint8_t *f)
{
	const struct tx_gid *g = &b->gids[c->sgid];
	unsigned int pad = -len & 3, udp_len = 8 + 12 + ext_len + len + pad + 4, n;
	uint8_t *p = f, *ip;
	uint32_t icrc;

	memcpy(p, c->dmac, 6);
	memcpy(p + 6, g->smac, 6);
	p += 12;
	if (g->vlan_valid) {
		p = put_be(p, 0x8100, 2);
		p = put_be(p, g->vlan, 2);
	}
	p = put_be(p, g->ipv4 ? 0x0800 : 0x86dd, 2);
	ip = p;
	if (g->ipv4) {
		uint32_t sum = 0;

		p = put_be(p, 0x45, 1);
		p = put_be(p, c->tclass, 1);
		p = put_be(p, 20 + udp_len, 2);
		p = put_be(p, 0, 2);
		p = put_be(p, 0x4000, 2);
		p = put_be(p, c->hop_limit, 1);
		p = put_be(p, 17, 1);
		p = put_be(p, 0, 2);
		memcpy(p, g->gid + 12, 4);
		memcpy(p + 4, c->dgid + 12, 4);
		p += 8;
		for (int i = 0; i < 20; i += 2)
			sum += ip[i] << 8 | ip[i + 1];
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		put_be(ip + 10, (uint16_t)~sum, 2);
	} else {
		p = put_be(p, 6u << 28 | c->tclass << 20 | c->flow_label, 4);
		p = put_be(p, udp_len, 2);
		p = put_be(p, 17, 1);
		p = put_be(p, c->hop_limit, 1);
		memcpy(p, g->gid, 16);
		memcpy(p + 16, c->dgid, 16);
		p += 32;
	}
	p = put_be(p, c->udp_sport, 2);
	p = put_be(p, 4791, 2);
	p = put_be(p, udp_len, 2);
	p = put_be(p, 0, 2);
	p = put_be(p, opcode, 1);
	p = put_be(p, (se ? 0x80 : 0) | 0x40 | pad << 4, 1);
	p = put_be(p, c->pkey, 2);
	p = put_be(p, c->dest_qpn, 4);
	p = put_be(p, (ackreq ? 1u << 31 : 0) | psn, 4);
	memcpy(p, ext, ext_len);
	p += ext_len;
	memcpy(p, pay, len);
	p += len;
	memset(p, 0, pad);
	p += pad;
	icrc = icrc_of_frame(f, p - f);
	for (int i = 0; i < 4; i++)
		*p++ = icrc >> (8 * i);
	n = p - f;
	if (n < 60) {
		memset(p, 0, 60 - n);
		n = 60;
	}
	return n;
}

static void compare(const struct bench *b, const char *what, int qpn, const uint8_t *want,
		    unsigned int len)
{
	if (b->frame_len == len && !memcmp(b->frame, want, len))
		return;
	fprintf(stderr, "cycle %" PRIu64 ", QP %d: wrong %s frame: %u bytes, %u expected\n",
		b->cycle, qpn, what, b->frame_len, len);
	for (unsigned int i = 0; i < len || i < b->frame_len; i++)
		if (i >= len || i >= b->frame_len || b->frame[i] != want[i]) {
			fprintf(stderr, "  first difference at byte %u: %02x, %02x expected\n", i,
				b->frame[i], want[i]);
			break;
		}
	for (unsigned int i = 0; i < b->frame_len && i < 128; i++)
		fprintf(stderr, "%02x%s", b->frame[i], i % 16 == 15 ? "\n" : " ");
	fprintf(stderr, "\n");
	fail();
}

/*
 * When the pending acknowledgement leaves is not known from outside. Whatever comes must be what
 * was pending at some moment: each ACK takes the place of an older ACK, a NAK stays until it is
 * sent and what comes behind it is dropped.
 */
static void judge_ack(struct bench *b, int qpn)
{
	struct qp *q = &b->qp[qpn];
	uint8_t want[128], aeth[4];
	unsigned int bth = (b->frame[12] == 0x81 ? 18 : 14), i;
	uint32_t psn;

	bth += (b->frame[bth] >> 4 == 4 ? 20 : 40) + 8;
	psn = b->frame[bth + 9] << 16 | b->frame[bth + 10] << 8 | b->frame[bth + 11];
	for (i = q->ack_head; i != q->ack_tail && q->ack[i % MAX_ACKS].psn != psn; i++)
		if (q->ack[i % MAX_ACKS].syndrome >> 5 && !q->ack_behind_nak)
			fail_msg("QP %d: a NAK was lost", qpn);
	if (i == q->ack_tail)
		fail_msg("QP %d: an acknowledgement of PSN %06x nobody asked for", qpn, psn);
	put_be(aeth, (uint32_t)q->ack[i % MAX_ACKS].syndrome << 24 | q->ack[i % MAX_ACKS].msn, 4);
	compare(b, "ACK", qpn, want,
		build(b, &q->cfg, 0x11, false, false, psn, aeth, 4, want, 0, want));
	q->ack_behind_nak = q->ack[i % MAX_ACKS].syndrome >> 5;
	q->ack_head = i + 1;
	if (q->ack_behind_nak)
		b->st.naks++;
	else
		b->st.acks++;
	q->acks_seen++;
}

bool bench_acks_done(struct bench *b, int qpn)
{
	struct qp *q = &b->qp[qpn];

	return q->ack_head == q->ack_tail || q->ack_behind_nak;
}

static void judge_frame(struct bench *b)
{
	uint8_t want[8192], pay[4096], ext[4];
	unsigned int l3 = b->frame[12] == 0x81 ? 18 : 14, bth, len;
	struct qp *q;
	struct msg *m;
	uint32_t dqp, off, mtu;
	bool first, last, imm;
	int qpn;

	bth = l3 + (b->frame[l3] >> 4 == 4 ? 20 : 40) + 8;
	dqp = b->frame[bth + 5] << 16 | b->frame[bth + 6] << 8 | b->frame[bth + 7];
	qpn = dqp - 0xa5b000;
	if (qpn < 0 || qpn >= QPS) {
		fprintf(stderr, "cycle %" PRIu64 ": frame of no known QP: %06x\n", b->cycle, dqp);
		fail();
	}
	q = &b->qp[qpn];
	if (b->frame[bth] == 0x11) {
		judge_ack(b, qpn);
		return;
	}
	while (q->f_msg != q->pi && q->f_pkt == q->msgs[q->f_msg % MAX_MSGS].packets) {
		q->f_msg = (uint16_t)(q->f_msg + 1);
		q->f_pkt = 0;
	}
	if (q->f_msg == q->pi) {
		fprintf(stderr, "cycle %" PRIu64 ": QP %d sends more than was posted\n", b->cycle,
			qpn);
		fail();
	}
	m = &q->msgs[q->f_msg % MAX_MSGS];
	mtu = 128u << q->cfg.mtu;
	off = q->f_pkt * mtu;
	len = m->len - off < mtu ? m->len - off : mtu;
	first = off == 0;
	last = off + len == m->len;
	imm = last && m->op == URDMA_WR_SEND_IMM;
	if (first)
		m->first_beat = b->frame_first;
	payload(b, m, off, len, pay);
	memcpy(ext, &m->imm, 4); /* in WQE and packet alike: byte 0 first */
	compare(b, "SEND", qpn, want,
		build(b, &q->cfg, first ? (last ? (imm ? 5 : 4) : 0) : (last ? (imm ? 3 : 2) : 1),
		      last && m->se, last || (q->f_psn & 15) == 15, q->f_psn, ext, imm ? 4 : 0, pay,
		      len, want));
	q->f_psn = (q->f_psn + 1) & 0xffffff;
	q->f_pkt++;
	q->bytes += len;
	q->last_psn_cycle = b->cycle;
}

/* ---- sent_t
 * ------------------------------------------------------------------------------------------- */
static void judge_sent(struct bench *b)
{
	const struct tx_out *o = &b->out;
	struct qp *q = &b->qp[o->sent_qpn];
	struct msg *m = &q->msgs[q->s_msg % MAX_MSGS];
	uint8_t status;
	struct sent_job *j = &b->sent[b->sent_tail++ % QLEN];

	/* in ERR the first flushed message may be any */
	if (q->cfg.state == URDMA_QPS_ERR && o->sent_status == URDMA_WC_FLUSH_ERR)
		q->err = true;
	status = q->err ? URDMA_WC_FLUSH_ERR : m->status;
	if (o->sent_wqe != (uint16_t)q->s_msg || o->sent_status != status ||
	    (uint16_t)q->s_msg == q->pi) {
		fprintf(stderr,
			"cycle %" PRIu64 ": QP %d: sent_t of WQE %u, status %u; WQE %u, status %u "
			"expected (pi %u)\n",
			b->cycle, o->sent_qpn, o->sent_wqe, o->sent_status, q->s_msg, status,
			q->pi);
		fail();
	}
	if (!status) {
		q->s_psn = (q->s_psn + m->packets) & 0xffffff;
		assert_int_equal(o->sent_psn, (q->s_psn - 1) & 0xffffff);
		assert_int_equal(o->sent_opcode, m->op);
		assert_int_equal(o->sent_signaled, m->sig || q->cfg.sig_all);
		assert_int_equal(o->sent_len, m->len);
	} else if (!q->err) {
		q->s_psn = (q->s_psn + m->packets) & 0xffffff;
		assert_int_equal(o->sent_psn, q->s_psn);
		q->err = true;
	}
	q->s_msg = (uint16_t)(q->s_msg + 1);
	*j = (struct sent_job){ o->sent_qpn, o->sent_wqe, o->sent_psn, !status,
				b->cycle + b->w.ack_delay };
	if ((uint16_t)(q->s_msg - q->acked) > b->st.max_unacked)
		b->st.max_unacked = (uint16_t)(q->s_msg - q->acked);
}

/* ---- a cycle
 * -------------------------------------------------------------------------------------------- */
static void read_bus(struct bench *b, uint64_t addr, uint8_t *out, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++, addr++) {
		if (addr >= RING_BASE)
			out[i] = b->rings[addr - RING_BASE];
		else
			out[i] = b->mem[addr];
	}
}

static void take_mr(struct bench *b, int c)
{
	const struct tx_out *o = &b->out;
	struct mr_job *j = &b->mr[c][b->mr_tail[c]++ % QLEN];
	uint64_t va = o->mr_va[c], at = b->cycle + b->w.mr_latency;
	uint32_t len = o->mr_len[c];

	assert_int_equal(o->mr_ring[c], c);
	assert_in_range(len, 1, 4096);
	j->at = at;
	if (c == 1) {
		j->rsp = (struct tx_mr_rsp){ MR_OK, o->mr_pt_addr + va, len, true };
		return;
	}
	if (o->mr_key != KEY_GOOD) {
		j->rsp = (struct tx_mr_rsp){ o->mr_key == KEY_MTT_ERR ? MR_DMA_ERR : MR_BAD_KEY, 0,
					     0, true };
		return;
	}
	assert_in_range(o->mr_pd, 0x300, 0x300 + QPS);
	if ((va & 4095) + len > 4096) {
		uint32_t part = 4096 - (va & 4095);

		j->rsp = (struct tx_mr_rsp){ MR_OK, bench_bus(va), part, false };
		j = &b->mr[c][b->mr_tail[c]++ % QLEN];
		j->at = at;
		va += part;
		len -= part;
	}
	j->rsp = (struct tx_mr_rsp){ MR_OK, bench_bus(va), len, true };
}

void bench_step(struct bench *b)
{
	struct tx_in *in = &b->in;
	struct tx_out *o = &b->out;
	struct dma_job *d = NULL;
	uint8_t gid_idx = o->gid_idx;
	unsigned int n = 0;

	/* inputs */
	in->db_valid = b->db_head != b->db_tail;
	if (in->db_valid) {
		in->db_qpn = b->db[b->db_head % QLEN].qpn;
		in->db_pi = b->db[b->db_head % QLEN].pi;
	}
	in->qpr_req_ready = !chance(b, b->w.stall);
	in->qpr_rsp_valid = b->cfg_head != b->cfg_tail && b->cfg_at[b->cfg_head % 64] <= b->cycle;
	if (in->qpr_rsp_valid)
		in->cfg = b->qp[b->cfg_q[b->cfg_head++ % 64]].cfg;
	in->gid = b->gids[gid_idx];
	in->sent_ready = !chance(b, b->w.stall);
	in->mac_ready = !chance(b, b->w.mac_stall);
	if (!in->acked_valid && b->sent_head != b->sent_tail && !b->w.acks_off &&
	    b->sent[b->sent_head % QLEN].at <= b->cycle) {
		struct sent_job *j = &b->sent[b->sent_head++ % QLEN];
		struct qp *q = &b->qp[j->qpn];

		q->acked = (uint16_t)(j->wqe + 1);
		q->acked_psn = j->ok ? (j->psn + 1) & 0xffffff : j->psn;
		in->acked_valid = true;
		in->acked_qpn = j->qpn;
		in->acked_wqe_done = q->acked;
		in->acked_una_psn = q->acked_psn;
	}
	in->ack_req_valid = b->ack_head != b->ack_tail;
	if (in->ack_req_valid) {
		in->ack_req_qpn = b->ack[b->ack_head % QLEN].qpn;
		in->ack_req_psn = b->ack[b->ack_head % QLEN].psn;
		in->ack_req_syndrome = b->ack[b->ack_head % QLEN].syndrome;
		in->ack_req_msn = b->ack[b->ack_head % QLEN].msn;
	}
	for (int c = 0; c < 2; c++) {
		in->mr_req_ready[c] = !chance(b, b->w.stall);
		in->rd_req_ready[c] = !chance(b, b->w.stall);
		in->rd_rsp_valid[c] = false;
		in->mr_rsp_valid[c] = b->mr_head[c] != b->mr_tail[c] &&
				      b->mr[c][b->mr_head[c] % QLEN].at <= b->cycle;
		if (in->mr_rsp_valid[c])
			in->mr_rsp[c] = b->mr[c][b->mr_head[c] % QLEN].rsp;
	}
	/* one grant a cycle, WQEs first */
	in->rd_req_ready[o->rd_req_valid[1] ? 0 : 1] = false;
	if (b->dma_head != b->dma_tail && b->dma[b->dma_head % QLEN].at <= b->cycle &&
	    !chance(b, b->w.dma_gap)) {
		d = &b->dma[b->dma_head % QLEN];
		n = d->len - d->done < 64 ? d->len - d->done : 64;
		for (int i = 0; i < 64; i++)
			in->rd_data[i] = 0xbb;
		read_bus(b, d->addr + d->done, in->rd_data, n);
		in->rd_rsp_valid[d->client] = true;
		in->rd_last = d->done + n == d->len;
		in->rd_err =
			in->rd_last && d->addr < b->poison_to && d->addr + d->len > b->poison_from;
		d->done += n;
		if (in->rd_last)
			b->dma_head++;
	}

	tx_model_eval(b->m, in, o);

	/* handshakes */
	if (in->db_valid && o->db_ready)
		b->db_head++;
	if (in->acked_valid && o->acked_ready)
		in->acked_valid = false;
	if (in->ack_req_valid && o->ack_req_ready) {
		struct qp *q = &b->qp[in->ack_req_qpn];

		assert_true(q->ack_tail - q->ack_head < MAX_ACKS);
		q->ack[q->ack_tail % MAX_ACKS].psn = in->ack_req_psn;
		q->ack[q->ack_tail % MAX_ACKS].syndrome = in->ack_req_syndrome;
		q->ack[q->ack_tail++ % MAX_ACKS].msn = in->ack_req_msn;
		b->ack_head++;
	}
	if (o->qpr_req_valid && in->qpr_req_ready) {
		b->cfg_q[b->cfg_tail % 64] = o->qpr_req_qpn;
		b->cfg_at[b->cfg_tail++ % 64] = b->cycle + 3;
	}
	if (o->sent_valid && in->sent_ready)
		judge_sent(b);
	for (int c = 0; c < 2; c++) {
		if (in->mr_rsp_valid[c] && o->mr_rsp_ready[c])
			b->mr_head[c]++;
		if (o->mr_req_valid[c] && in->mr_req_ready[c])
			take_mr(b, c);
		if (o->rd_req_valid[c] && in->rd_req_ready[c]) {
			struct dma_job *j = &b->dma[b->dma_tail++ % QLEN];
			uint64_t at = b->cycle + b->w.dma_latency + bench_rnd(b, b->w.dma_jitter);

			assert_true(b->dma_tail - b->dma_head < QLEN);
			b->st.reads[c]++;
			*j = (struct dma_job){ c, o->rd_addr[c], o->rd_len[c], 0, at };
			assert_in_range(j->len, 1, 4096);
			assert_true(c == 1 ? j->addr >= RING_BASE : j->addr + j->len <= MEM_SIZE);
		}
	}
	if (o->mac_valid && in->mac_ready) {
		unsigned int k = __builtin_popcountll(o->mac_keep);

		if (!b->st.frames && !b->frame_len)
			b->st.first_cycle = b->cycle;
		if (!b->frame_len)
			b->frame_first = b->cycle;
		assert_true(o->mac_keep == (k == 64 ? ~0ull : (1ull << k) - 1) && k);
		assert_true(o->mac_last || k == 64);
		assert_false(o->mac_err);
		assert_true(b->frame_len + k <= sizeof(b->frame));
		memcpy(b->frame + b->frame_len, o->mac_data, k);
		b->frame_len += k;
		b->st.beats++;
		b->st.bytes += k;
		b->st.last_cycle = b->cycle;
		assert_int_equal(o->tx_bytes, k);
		if (o->mac_last) {
			b->st.frames++;
			judge_frame(b);
			b->frame_len = 0;
		}
	} else {
		assert_int_equal(o->tx_bytes, 0);
		/* a gap inside a frame would be an underrun of the MAC */
		if (!o->mac_valid)
			assert_int_equal(b->frame_len, 0);
	}
	b->st.cnt_frames += o->cnt >> URDMA_CNT_TX_FRAMES & 1;
	b->st.cnt_bytes += o->tx_bytes;
	if (o->trace_valid) {
		b->st.wqe_traces += o->trace_ev == 2;
		b->st.tx_traces += o->trace_ev == 3;
	}
	tx_model_clock(b->m);
	b->cycle++;
}

void bench_acked(struct bench *b, int qpn, uint16_t done, uint32_t una)
{
	while (b->in.acked_valid)
		bench_step(b);
	b->in.acked_valid = true;
	b->in.acked_qpn = qpn;
	b->in.acked_wqe_done = done;
	b->in.acked_una_psn = una;
	while (b->in.acked_valid)
		bench_step(b);
}

void bench_steps(struct bench *b, unsigned int n)
{
	while (n--)
		bench_step(b);
}

static bool work_left(struct bench *b)
{
	if (b->out.busy || b->db_head != b->db_tail || b->ack_head != b->ack_tail || b->frame_len ||
	    b->sent_head != b->sent_tail || b->in.acked_valid)
		return true;
	for (int i = 0; i < QPS; i++) {
		struct qp *q = &b->qp[i];

		if (q->cfg.valid && (uint16_t)q->s_msg != q->pi)
			return true;
	}
	return false;
}

void bench_drain(struct bench *b, unsigned int limit)
{
	bench_steps(b, 4);
	while (work_left(b)) {
		if (!limit--) {
			fprintf(stderr,
				"cycle %" PRIu64 ": the block does not come to rest, busy %d\n",
				b->cycle, b->out.busy);
			for (int i = 0; i < QPS; i++)
				if (b->qp[i].cfg.valid)
					fprintf(stderr,
						"  QP %d: posted %u, sent_t %u, framed %u + %u\n",
						i, b->qp[i].pi, b->qp[i].s_msg, b->qp[i].f_msg,
						b->qp[i].f_pkt);
			fail();
		}
		bench_step(b);
	}
	for (int i = 0; i < QPS; i++)
		assert_true(bench_acks_done(b, i));
	assert_int_equal(b->st.cnt_frames, b->st.frames);
	assert_int_equal(b->st.cnt_bytes, b->st.bytes);
	assert_int_equal(b->st.tx_traces, b->st.frames);
}

void bench_qpc(struct bench *b, int qpn, int op, uint32_t psn)
{
	b->in.qpc_valid = true;
	b->in.qpc_op = op;
	b->in.qpc_qpn = qpn;
	b->in.qpc_psn = psn;
	for (int i = 0; i < 200; i++) {
		bench_step(b);
		if (b->out.qpc_ready) {
			b->in.qpc_valid = false;
			return;
		}
	}
	fail_msg("control message %d not taken in 200 cycles", op);
}

void bench_set_err(struct bench *b, int qpn)
{
	b->qp[qpn].cfg.state = URDMA_QPS_ERR;
	bench_steps(b, 3);
	bench_qpc(b, qpn, QPC_ERR, 0);
}

void bench_fence(struct bench *b, unsigned int limit)
{
	b->in.fence_req = true;
	do {
		bench_step(b);
		if (!limit--)
			fail_msg("fence not done");
	} while (!b->out.fence_done);
	bench_steps(b, 3);
	assert_true(b->out.fence_done);
	b->in.fence_req = false;
	bench_steps(b, 2);
	assert_false(b->out.fence_done);
}
