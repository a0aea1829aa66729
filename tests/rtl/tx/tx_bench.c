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
#include "ref_hash.h"
#include "rtl/bits.h"
#include "seed.h"
#include "tx_bench.h"
#include "urdma_hw.h"
#include "urdma_trace_pkg.h"

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

/* what the peer answers, as requester completion sees it */
struct peer_job {
	enum { P_ACK, P_NAK, P_RNR, P_RESP } kind;
	int qpn;
	uint32_t psn, n, total;
	uint64_t at;
};

struct sent_job {
	int qpn;
	uint16_t wqe;
	uint32_t psn;
	bool ok;
	uint64_t at;
};

/* packets of a QP: as frames, or as told to its counters */
struct qp_count {
	uint64_t pkts, bytes, again;
};

/* a packet as the lanes tell of it */
struct lane_pkt {
	int qpn;
	uint32_t psn;
	uint16_t wqe, len;
	uint8_t opcode, syndrome;
	bool ans, resp, again, last;
	uint32_t dqpn; /* of its frame */
};

struct bench {
	struct tx_model *m;
	struct tx_in in;
	struct tx_out out;
	uint64_t seed, cycle;
	struct weather w;
	struct qp qp[QPS];
	struct qp_count seen[QPS], told[QPS];
	struct tx_gid gids[32];
	struct stats st;
	uint8_t *mem, *rings;
	uint64_t poison_from, poison_to;
	uint64_t no_table; /* of the send queue at this address */

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
		uint32_t psn;
		bool asks;
	} made[QLEN]; /* of frames that have to come */
	unsigned int made_head, made_tail;
	struct {
		int qpn;
		uint32_t psn, msn;
		uint8_t syndrome, kind, nak;
		bool dup;
		uint16_t pd;
		uint32_t key, len;
		uint64_t va;
	} ack[QLEN];
	unsigned int ack_head, ack_tail;
	struct peer_job peer[4 * QLEN];
	unsigned int peer_head, peer_tail;
	uint64_t mro_at, sync_at;
	/* fragments of payload that mr has granted, whose data have been given; of each key the
	 * last that was granted */
	uint64_t frags, frags_here, key_frag[KEYS];
	/* of keys that tx was asked about: how many have to be here before it answers */
	uint64_t inv_want[INVS];
	unsigned int inv_head, inv_tail;
	bool mro_under_way;
	uint8_t mro_answer;

	/* lanes: fetches to come; packets without their payload; what goes to the wire in that
	 * order, and the frame that is there */
	struct turn {
		int qpn;
		uint16_t wqe, n;
	} turn[QLEN];
	unsigned int turn_head, turn_tail;
	struct lane_pkt cut[QLEN], wire[QLEN], on_wire;
	unsigned int cut_head, cut_tail, wire_head, wire_tail;

	uint8_t frame[8192];
	unsigned int frame_len;
	bool frame_loop;
	uint64_t frame_first;
};

uint32_t bench_rnd(struct bench *b, uint32_t below)
{
	return rnd_below(&b->seed, below);
}

static bool chance(struct bench *b, unsigned int percent)
{
	return percent && bench_rnd(b, 100) < percent;
}

/* Pages of the virtual range are strewn over the bus range. */
uint64_t bench_bus(uint64_t va)
{
	uint64_t page = va >> 12;

	return MEM_BUS | ((page * 1237 + 77) % (MEM_SIZE >> 12)) << 12 | (va & 4095);
}

uint8_t *bench_mem(struct bench *b, uint64_t va)
{
	return b->mem + (bench_bus(va) - MEM_BUS);
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
	b->w = (struct weather){ .dma_latency = 125,
				 .mr_latency = 6,
				 .ack_delay = 300,
				 .told = 20,
				 .mro_latency = 10,
				 .sync_latency = 40 };
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

void bench_no_table(struct bench *b, unsigned int qpn)
{
	b->no_table = RING_BASE + (uint64_t)qpn * RING_SIZE;
}

uint64_t bench_wqe_bus(struct bench *b, unsigned int qpn, uint16_t index)
{
	const struct tx_cfg *cfg = &b->qp[qpn].cfg;

	return cfg->sq_addr +
	       ((uint64_t)(index & ((1u << cfg->log_entries) - 1)) << cfg->log_stride);
}

static bool is_ud(const struct tx_cfg *cfg)
{
	return cfg->qp_type == URDMA_QPT_UD;
}

static bool is_unrel(const struct tx_cfg *cfg)
{
	return is_ud(cfg) || cfg->qp_type == URDMA_QPT_UC;
}

static bool is_ini(const struct tx_cfg *cfg)
{
	return cfg->qp_type == URDMA_QPT_XRC_INI;
}

/* The transport in the upper three bits of a BTH opcode. */
static uint8_t service(const struct tx_cfg *cfg)
{
	switch (cfg->qp_type) {
	case URDMA_QPT_UC:
		return 1 << 5;
	case URDMA_QPT_UD:
		return 3 << 5;
	case URDMA_QPT_XRC_INI:
	case URDMA_QPT_XRC_TGT:
		return 5 << 5;
	default:
		return 0;
	}
}

static bool is_xrc_key(uint32_t key)
{
	return key >= KEY_XRC(0) && key <= KEY_XRC(15);
}

static uint16_t pd_of_key(uint32_t key)
{
	return PD_XRC((key - KEY_XRC(0)) >> 8);
}

uint32_t bench_room(const struct tx_cfg *cfg)
{
	return (1u << cfg->log_stride) -
	       (is_ud(cfg) ? URDMA_SQE_UD_DATA_OFFSET : URDMA_SQE_DATA_OFFSET);
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
	q->cfg.no_loop = qpn % 3 == 0;
	q->cfg.sq_addr = RING_BASE + (uint64_t)qpn * RING_SIZE;
	if (!q->cfg.qp_type)
		q->cfg.qp_type = URDMA_QPT_RC;
	if (!q->cfg.log_entries)
		q->cfg.log_entries = 6;
	if (!q->cfg.log_stride)
		q->cfg.log_stride = 6;
	if (!q->cfg.mtu)
		q->cfg.mtu = 5;
	q->cfg.dest_qpn = 0xa5b000 + qpn;
	q->cfg.pkey = 0xffff - qpn;
	if (!q->cfg.qkey)
		q->cfg.qkey = 0x11110000 + qpn;
	q->cfg.tclass = bench_rnd(b, 256);
	q->cfg.hop_limit = 1 + bench_rnd(b, 255);
	q->cfg.pcp = bench_rnd(b, 8);
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
	if (!q->cfg.max_rd)
		q->cfg.max_rd = 16;
	q->psn0 = q->f_psn = q->s_psn = q->acked_psn = q->post_psn = q->hpsn = q->epsn = psn;
	q->retried = psn - 1;
	bench_qpc(b, qpn, QPC_SQ_PSN, psn);
}

/* ---- posting --------------------------------------------------------------------------------- */
static void put64(uint8_t *p, uint64_t x)
{
	for (int i = 0; i < 8; i++)
		p[i] = x >> (8 * i);
}

static bool is_local(const struct msg *m)
{
	return m->op >= URDMA_WR_LOCAL_INV && m->op <= URDMA_WR_BIND_MW;
}

static bool is_atomic(const struct msg *m)
{
	return m->op == URDMA_WR_ATOMIC_CS || m->op == URDMA_WR_ATOMIC_FA;
}

/* answered by a READ response of 0 bytes */
static bool is_mpe(const struct msg *m)
{
	return m->op == URDMA_WR_FLUSH || m->op == URDMA_WR_ATOMIC_WRITE;
}

/* taking READ credit */
static bool is_read(const struct msg *m)
{
	return m->op == URDMA_WR_READ || is_atomic(m) || is_mpe(m);
}

static bool idx_before(uint16_t a, uint16_t b)
{
	return (uint16_t)(a - b) & 0x8000;
}

/* PSN a is before b */
static bool before(uint32_t a, uint32_t b)
{
	return (a - b) & 0x800000;
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
			 (m->fence ? URDMA_SQE0_FENCE : 0) | (uint64_t)m->num_sge << 16);
	/* the SRQ counts for XRC only, and of it 24 bits */
	put64(w + 8,
	      m->imm | (uint64_t)(is_ini(&q->cfg) ? bench_rnd(b, UINT32_MAX) : q->pi * 0x9e3779b1u)
			       << 32);
	put64(w + 16, m->raddr);
	put64(w + 24, (uint64_t)m->len << 32 | m->rkey);
	if (m->op >= URDMA_WR_LOCAL_INV && m->op <= URDMA_WR_BIND_MW) {
		put64(w + 32, m->mr_len);
		put64(w + 40, m->mr_addr);
		put64(w + 48, m->acc | (m->zero_based ? URDMA_SQE6_MR_ZERO_BASED : 0) |
				      m->levels << 8 | m->page_shift << 16);
	} else {
		uint32_t at = URDMA_SQE_DATA_OFFSET;

		if (is_ud(&q->cfg)) {
			const struct ud_dest *u = &m->ud;

			put64(w + 16, u->qpn);
			put64(w + 24, (uint64_t)m->len << 32 | u->qkey);
			memcpy(w + 32, u->dgid, 16);
			memcpy(w + 48, u->dmac, 6);
			w[54] = u->tclass;
			w[55] = u->hop_limit;
			put64(w + 56, u->flow_label | (uint64_t)u->udp_sport << 20 |
					      (uint64_t)u->sgid << 36 | (uint64_t)u->pcp << 44);
			at = URDMA_SQE_UD_DATA_OFFSET;
			memset(w + 64, 0, stride - 64 < 32 ? stride - 64 : 32);
		}
		if (m->inl && at < stride)
			memcpy(w + at, m->inl_data, m->len < stride - at ? m->len : stride - at);
		for (int i = 0; !m->inl && i < m->num_sge && at + 16 <= stride; i++, at += 16) {
			put64(w + at, m->sge[i].va);
			put64(w + at + 8, (uint64_t)m->sge[i].key << 32 | m->sge[i].len);
		}
		if (is_atomic(m)) {
			put64(w + 48, m->swap);
			put64(w + 56, m->compare);
		}
		if (is_mpe(m)) {
			/* of word 4 only the lower half counts */
			put64(w + 32, m->mr_len);
			put64(w + 48, m->swap);
		}
	}
	*own = *m;
	own->srqn = w[12] | w[13] << 8 | w[14] << 16;
	own->posted = b->cycle;
	own->first_beat = own->done_at = 0;
	own->sent = own->asked = false;
	own->looked = own->begun = false;
	if (m->status && !q->bad) {
		q->bad = true;
		q->bad_idx = q->pi;
	}
	if (!m->status) {
		uint32_t mtu = 128u << q->cfg.mtu;

		own->packets = is_local(m)		 ? 0
			       : m->len && !is_atomic(m) ? (m->len + mtu - 1) / mtu
							 : 1;
	}
	own->psn = q->post_psn;
	q->post_psn = (q->post_psn + own->packets) & 0xffffff;
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
	b->ack[b->ack_tail % QLEN].kind = RSP_ACK;
	b->ack[b->ack_tail % QLEN].dup = false;
	b->ack[b->ack_tail % QLEN].syndrome = syndrome;
	b->ack[b->ack_tail++ % QLEN].msn = msn;
}

void bench_read(struct bench *b, int qpn, bool atomic, uint32_t psn, uint32_t msn, uint32_t key,
		uint64_t va, uint32_t len, uint8_t nak)
{
	bench_ack(b, qpn, psn, 0x1f, msn);
	b->ack[(b->ack_tail - 1) % QLEN].kind = atomic ? RSP_ATOMIC : RSP_READ;
	b->ack[(b->ack_tail - 1) % QLEN].pd = is_xrc_key(key) ? pd_of_key(key) : 0x300 + qpn;
	b->ack[(b->ack_tail - 1) % QLEN].key = key;
	b->ack[(b->ack_tail - 1) % QLEN].va = va;
	b->ack[(b->ack_tail - 1) % QLEN].len = len;
	b->ack[(b->ack_tail - 1) % QLEN].nak = nak;
}

void bench_read_again(struct bench *b, int qpn, uint32_t psn, uint32_t msn, uint32_t key,
		      uint64_t va, uint32_t len)
{
	bench_read(b, qpn, false, psn, msn, key, va, len, 0);
	b->ack[(b->ack_tail - 1) % QLEN].dup = true;
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
		p = put_be(p, c->pcp << 13 | g->vlan, 2);
	}
	p = put_be(p, g->ipv4 ? 0x0800 : 0x86dd, 2);
	ip = p;
	if (g->ipv4) {
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
		ref_ip_checksum(ip);
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

static void count_frame(struct bench *b, int qpn, unsigned int len, bool again)
{
	b->seen[qpn].pkts++;
	b->seen[qpn].bytes += len;
	b->seen[qpn].again += again;
}

/*
 * When the pending acknowledgement leaves is not known from outside. Whatever comes must be what
 * was pending at some moment: what is asked for takes the place of what it covers, and a NAK stays
 * when the ACK of a PSN before it comes.
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
		if (q->ack[i % MAX_ACKS].syndrome >> 5 && !q->ack_behind_nak &&
		    (psn - q->ack[i % MAX_ACKS].psn) & 0x800000)
			fail_msg("QP %d: a NAK was lost", qpn);
	if (i == q->ack_tail)
		fail_msg("QP %d: an acknowledgement of PSN %06x nobody asked for", qpn, psn);
	put_be(aeth, (uint32_t)q->ack[i % MAX_ACKS].syndrome << 24 | q->ack[i % MAX_ACKS].msn, 4);
	compare(b, "ACK", qpn, want,
		build(b, &q->cfg, service(&q->cfg) | 0x11, false, false, psn, aeth, 4, want, 0,
		      want));
	count_frame(b, qpn, 0, false);
	assert_true(b->on_wire.ans);
	assert_int_equal(b->on_wire.syndrome, q->ack[i % MAX_ACKS].syndrome);
	q->ack_behind_nak = q->ack[i % MAX_ACKS].syndrome >> 5;
	q->ack_head = i + 1;
	if (q->ack_behind_nak)
		b->st.naks++;
	else
		b->st.acks++;
	q->acks_seen++;
}

/* Response packets of a READ or ATOMIC that was taken. */
static void expect_rsp(struct bench *b, int qpn, const struct tx_in *in, uint8_t nak)
{
	struct qp *q = &b->qp[qpn];
	uint32_t mtu = 128u << q->cfg.mtu;
	uint32_t n = in->ack_req_len ? (in->ack_req_len + mtu - 1) / mtu : 1;

	if (in->ack_req_kind == RSP_ATOMIC || nak)
		n = 1;
	for (uint32_t i = 0; i < n; i++) {
		struct rsp *r = &q->rsp[q->rsp_tail++ % MAX_RSPS];
		bool last = i == n - 1;

		assert_true(q->rsp_tail - q->rsp_head < MAX_RSPS);
		*r = (struct rsp){ i ? (last ? 0x0f : 0x0e) : (last ? 0x10 : 0x0d), nak,
				   (in->ack_req_psn + i) & 0xffffff, in->ack_req_msn,
				   last ? in->ack_req_len - i * mtu : mtu, in->ack_req_va + i * mtu,
				   /* those of a long READ are not */
				   in->ack_req_dup && !(in->ack_req_len >> 21) };
		if (in->ack_req_kind == RSP_ATOMIC)
			r->opcode = 0x12;
		if (nak)
			r->opcode = 0x11;
		r->opcode |= service(&q->cfg);
	}
}

static void judge_rsp(struct bench *b, int qpn)
{
	struct qp *q = &b->qp[qpn];
	struct rsp *r = &q->rsp[q->rsp_head++ % MAX_RSPS];
	uint8_t want[8192], pay[4096], ext[12];
	uint8_t op = r->opcode & 0x1f;
	unsigned int ext_len = op == 0x0e ? 0 : op == 0x12 ? 12 : 4, len = r->len;

	if (op == 0x12 || r->nak)
		len = 0;
	put_be(ext, (uint32_t)(r->nak ? r->nak : 0x1f) << 24 | r->msn, 4);
	put_be(ext + 4, r->va, 8);
	for (uint32_t i = 0; i < len; i++)
		pay[i] = *bench_mem(b, r->va + i);
	compare(b, "response", qpn, want,
		build(b, &q->cfg, r->opcode, false, false, r->psn, ext, ext_len, pay, len, want));
	count_frame(b, qpn, len, false);
	assert_int_equal(b->on_wire.ans, r->nak != 0);
	if (r->nak) {
		assert_int_equal(b->on_wire.syndrome, r->nak);
		b->st.naks_seen++;
	} else {
		assert_true(b->on_wire.resp);
		assert_int_equal(b->on_wire.len, len);
		assert_int_equal(b->on_wire.again, r->again);
		assert_int_equal(b->on_wire.last, op == 0x0f || op == 0x10 || op == 0x12);
		b->st.read_rsps++;
	}
}

bool bench_acks_done(struct bench *b, int qpn)
{
	struct qp *q = &b->qp[qpn];

	if (q->rsp_head != q->rsp_tail)
		return false;

	return q->ack_head == q->ack_tail || q->ack_behind_nak;
}

/* The message that holds a PSN. */
static struct msg *msg_of(struct qp *q, uint32_t psn, uint16_t *idx)
{
	for (uint16_t i = q->pi; i != (uint16_t)(q->pi - MAX_MSGS / 2);) {
		struct msg *m = &q->msgs[--i % MAX_MSGS];

		if (i > q->pi)
			break;
		if (m->packets && !before(psn, m->psn) && before(psn, m->psn + m->packets)) {
			*idx = i;
			return m;
		}
	}
	return NULL;
}

static void peer_job(struct bench *b, int qpn, int kind, uint32_t psn, uint32_t n, uint32_t total)
{
	assert_true(b->peer_tail - b->peer_head < 4 * QLEN);
	b->peer[b->peer_tail++ % (4 * QLEN)] =
		(struct peer_job){ kind, qpn, psn & 0xffffff, n, total, b->cycle + b->w.ack_delay };
}

/* The other side: expects PSNs in order, asks for what is missing once. */
static void peer_takes(struct bench *b, int qpn, const struct msg *m, uint32_t psn, uint32_t n,
		       bool ackreq)
{
	struct qp *q = &b->qp[qpn];
	uint32_t got = n;

	if (chance(b, b->w.loss))
		return;
	if (before(q->epsn, psn)) {
		if (!q->nak)
			peer_job(b, qpn, P_NAK, q->epsn, 0, 0);
		q->nak = true;
		return;
	}
	if (psn == q->epsn) {
		if (!q->nak && bench_rnd(b, 1000) < b->w.rnr && m->op <= URDMA_WR_SEND_INV) {
			peer_job(b, qpn, P_RNR, psn, 0, 0);
			q->nak = true;
			return;
		}
		q->nak = false;
		q->epsn = (psn + n) & 0xffffff;
	}
	if (is_read(m)) {
		if (chance(b, b->w.rsp_loss))
			got = bench_rnd(b, n);
		if (got || n > 1 || !b->w.rsp_loss)
			peer_job(b, qpn, P_RESP, psn, got, n);
	} else if (ackreq) {
		peer_job(b, qpn, P_ACK, q->epsn, 0, 0);
	}
}

/* A datagram without a source address is no frame; it is told all the same. */
static void pass_unseen(struct bench *b)
{
	for (; b->made_head != b->made_tail; b->made_head++) {
		unsigned int i = b->made_head % QLEN;
		struct qp *q = &b->qp[b->made[i].qpn];
		struct msg *m;
		uint16_t idx;

		m = msg_of(q, b->made[i].psn, &idx);
		if (!m || !m->no_frame)
			break;
		assert_false(b->made[i].asks);
		assert_int_equal(b->made[i].psn, q->f_psn);
		q->hpsn = q->f_psn = (q->f_psn + 1) & 0xffffff;
	}
}

/* Each request was told to requester completion, with the last PSN that it takes. */
static void judge_made(struct bench *b, int qpn, uint32_t psn, bool asks)
{
	unsigned int i = b->made_head++ % QLEN;

	psn &= 0xffffff;
	if (b->made_head > b->made_tail || b->made[i].qpn != qpn || b->made[i].psn != psn ||
	    b->made[i].asks != asks)
		fail_msg("cycle %" PRIu64 ": QP %d sends up to PSN %06x, asks %d; told QP %d, PSN "
			 "%06x, asks %d",
			 b->cycle, qpn, psn, asks, b->made[i].qpn, b->made[i].psn, b->made[i].asks);
}

static void judge_frame(struct bench *b)
{
	uint8_t want[8192], pay[4096], ext[32], *e = ext;
	unsigned int l3 = b->frame[12] == 0x81 ? 18 : 14, bth, len = 0;
	struct qp *q;
	struct msg *m;
	uint32_t dqp, off, mtu, psn, n = 1;
	bool first, last, imm, ackreq, unrel;
	struct tx_cfg path;
	uint8_t opcode, op;
	uint16_t idx;
	int qpn;

	bth = l3 + (b->frame[l3] >> 4 == 4 ? 20 : 40) + 8;
	dqp = b->frame[bth + 5] << 16 | b->frame[bth + 6] << 8 | b->frame[bth + 7];
	psn = b->frame[bth + 9] << 16 | b->frame[bth + 10] << 8 | b->frame[bth + 11];
	qpn = dqp - 0xa5b000;
	pass_unseen(b);
	assert_int_equal(psn, b->on_wire.psn);
	assert_int_equal(dqp, b->on_wire.dqpn);
	assert_int_equal(b->frame[bth], b->on_wire.opcode);
	if (b->frame[bth] >> 5 == 3) /* the source QP is in the DETH */
		qpn = b->frame[bth + 17] << 16 | b->frame[bth + 18] << 8 | b->frame[bth + 19];
	if (qpn < 0 || qpn >= QPS) {
		fprintf(stderr, "cycle %" PRIu64 ": frame of no known QP: %06x\n", b->cycle, dqp);
		fail();
	}
	q = &b->qp[qpn];
	assert_int_equal(qpn, b->on_wire.qpn);
	/* to a group, or what looks like one */
	assert_int_equal(b->frame_loop, (b->frame[0] & 1) && !q->cfg.no_loop);
	op = b->frame[bth] & 0x1f;
	if (q->rsp_head != q->rsp_tail && ((op >= 0x0d && op <= 0x10) || op == 0x12 ||
					   (op == 0x11 && q->rsp[q->rsp_head % MAX_RSPS].nak &&
					    q->rsp[q->rsp_head % MAX_RSPS].psn == psn))) {
		judge_rsp(b, qpn);
		return;
	}
	if (op == 0x11) {
		judge_ack(b, qpn);
		return;
	}
	m = msg_of(q, psn, &idx);
	if (!m) {
		fprintf(stderr,
			"cycle %" PRIu64
			": QP %d sends PSN %06x, which belongs to nothing posted\n",
			b->cycle, qpn, psn);
		fail();
	}
	/* in order, or from a place that requester completion has named, or past what is completed
	 */
	if (psn != q->f_psn) {
		bool ok = false;
		uint16_t i = idx;

		for (unsigned int k = 0; k < 64 && k < q->una_n; k++)
			ok |= q->unas[k] == psn;
		if (!ok && before(q->f_psn, psn) && msg_of(q, q->f_psn, &i))
			ok = !idx_before(q->acked, idx) && idx_before(i, q->acked);
		/* begun before it, in messages that have been completed since and so are left out
		 */
		ok |= psn == m->psn && !idx_before(q->acked, idx) && q->una_n;
		if (!ok) {
			fprintf(stderr,
				"cycle %" PRIu64
				": QP %d sends PSN %06x (WQE %u), %06x expected; completed %u\n",
				b->cycle, qpn, psn, idx, q->f_psn, q->acked);
			fail();
		}
	}
	if (before(q->hpsn, psn))
		fail_msg("QP %d: PSN %06x left out", qpn, q->hpsn);
	path = q->cfg;
	unrel = is_unrel(&path);
	if (unrel && (psn != q->f_psn || m->no_frame))
		fail_msg("QP %d, of UC or UD, sends PSN %06x", qpn, psn);
	mtu = 128u << q->cfg.mtu;
	off = ((psn - m->psn) & 0xffffff) * mtu;
	first = off == 0;
	ackreq = true;
	if (is_ud(&path)) {
		path.dest_qpn = m->ud.qpn;
		memcpy(path.dgid, m->ud.dgid, 16);
		memcpy(path.dmac, m->ud.dmac, 6);
		path.tclass = m->ud.tclass;
		path.hop_limit = m->ud.hop_limit;
		path.pcp = m->ud.pcp;
		path.flow_label = m->ud.flow_label;
		path.udp_sport = m->ud.udp_sport;
		path.sgid = m->ud.sgid;
		/* DETH */
		e = put_be(e, m->ud.qkey >> 31 ? path.qkey : m->ud.qkey, 4);
		e = put_be(e, qpn, 4);
	}
	if (is_ini(&path)) /* XRCETH */
		e = put_be(e, m->srqn, 4);
	if (m->op == URDMA_WR_READ) {
		opcode = 0x0c;
		n = m->packets - off / mtu;
		e = put_be(put_be(put_be(e, m->raddr + off, 8), m->rkey, 4), m->len - off, 4);
		last = false;
	} else if (is_atomic(m)) {
		bool cs = m->op == URDMA_WR_ATOMIC_CS;

		opcode = cs ? 0x13 : 0x14;
		e = put_be(put_be(e, m->raddr, 8), m->rkey, 4);
		e = put_be(put_be(e, m->swap, 8), cs ? m->compare : 0, 8);
		last = false;
	} else if (m->op == URDMA_WR_FLUSH) {
		opcode = 0x1c;
		e = put_be(e, m->imm & 0x3f, 4); /* FETH: type, level */
		e = put_be(put_be(put_be(e, m->raddr, 8), m->rkey, 4), (uint32_t)m->mr_len, 4);
		last = false;
	} else if (m->op == URDMA_WR_ATOMIC_WRITE) {
		opcode = 0x1d;
		e = put_be(put_be(put_be(e, m->raddr, 8), m->rkey, 4), 8, 4);
		len = 8;
		put64(pay, m->swap); /* as in memory */
		last = false;
	} else {
		bool write = m->op == URDMA_WR_WRITE || m->op == URDMA_WR_WRITE_IMM;
		bool inv = m->op == URDMA_WR_SEND_INV;

		len = m->len - off < mtu ? m->len - off : mtu;
		last = off + len == m->len;
		imm = last && (m->op == URDMA_WR_SEND_IMM || m->op == URDMA_WR_WRITE_IMM);
		ackreq = !unrel && (last || (psn & 15) == 15);
		opcode = (first ? (last ? 4 : 0) : (last ? 2 : 1)) + (write ? 6 : 0);
		if (imm)
			opcode++;
		if (last && inv) /* RC, XRC */
			opcode = first ? 0x17 : 0x16;
		if (write && first)
			e = put_be(put_be(put_be(e, m->raddr, 8), m->rkey, 4), m->len, 4);
		if (imm) {
			memcpy(e, &m->imm, 4); /* in WQE and packet alike: byte 0 first */
			e += 4;
		} else if (inv && last) {
			e = put_be(e, m->imm, 4);
		}
		payload(b, m, off, len, pay);
		last = last && (!write || m->op == URDMA_WR_WRITE_IMM);
	}
	opcode |= service(&path);
	if (!m->first_beat)
		m->first_beat = b->frame_first;
	if (is_read(m)) {
		unsigned int out = 0;

		for (uint16_t i = q->acked; !idx_before(idx, i); i++)
			out += is_read(&q->msgs[i % MAX_MSGS]);
		if (out > q->cfg.max_rd)
			fail_msg("QP %d: %u READs and ATOMICs outstanding", qpn, out);
	}
	if (m->fence && first)
		for (uint16_t i = q->acked; idx_before(i, idx); i++)
			if (is_read(&q->msgs[i % MAX_MSGS]))
				fail_msg("QP %d: fence of WQE %u passed by", qpn, idx);
	compare(b, "request", qpn, want,
		build(b, &path, opcode, last && m->se, ackreq, psn, ext, e - ext, pay, len, want));
	judge_made(b, qpn, psn + n - 1, ackreq);
	assert_false(b->on_wire.ans || b->on_wire.resp);
	assert_int_equal(b->on_wire.wqe, idx);
	assert_int_equal(b->on_wire.len, m->op == URDMA_WR_ATOMIC_WRITE ? 0 : len);
	assert_int_equal(b->on_wire.again, before(psn, q->hpsn));
	if (!m->status)
		assert_int_equal(b->on_wire.last, ((psn + n - m->psn) & 0xffffff) == m->packets);
	q->frames++;
	count_frame(b, qpn, len, before(psn, q->hpsn));
	if (before(psn, q->hpsn)) {
		q->resent++;
		b->st.resent++;
	}
	q->f_psn = (psn + n) & 0xffffff;
	if (before(q->hpsn, q->f_psn))
		q->hpsn = q->f_psn;
	q->bytes += len;
	q->last_psn_cycle = b->cycle;
	if (b->w.peer && !unrel)
		peer_takes(b, qpn, m, psn, n, ackreq);
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

	/* in ERR the first flushed message may be any, but for a local operation that was done */
	if (q->cfg.state == URDMA_QPS_ERR && o->sent_status == URDMA_WC_FLUSH_ERR) {
		if (!q->err && m->asked && (m->answer == MRO_OK || m->answer == MRO_ENDED))
			fail_msg("cycle %" PRIu64 ": QP %d: WQE %u was done, and is flushed",
				 b->cycle, o->sent_qpn, o->sent_wqe);
		q->err = true;
	}
	status = q->err ? URDMA_WC_FLUSH_ERR : m->status;
	assert_int_equal(o->sent_unrel, is_unrel(&q->cfg));
	if (o->sent_resent && o->sent_status && idx_before(o->sent_wqe, q->s_msg)) {
		q->err = true; /* an older one, sent again, has failed */
		return;
	}
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
	/* others end without their head being read */
	if (!status || (status != URDMA_WC_FLUSH_ERR && status != URDMA_WC_LOC_QP_OP_ERR))
		assert_true(m->begun || (is_local(m) && m->looked));
	q->s_msg = (uint16_t)(q->s_msg + 1);
	assert_false(o->sent_resent);
	m->sent = true;
	if (b->w.peer && !is_unrel(&q->cfg))
		b->sent_tail--;
	else
		*j = (struct sent_job){ o->sent_qpn, o->sent_wqe, o->sent_psn, !status,
					b->cycle +
						(is_unrel(&q->cfg) ? b->w.told : b->w.ack_delay) };
	if ((uint16_t)(q->s_msg - q->acked) > b->st.max_unacked)
		b->st.max_unacked = (uint16_t)(q->s_msg - q->acked);
}

/* ---- requester completion: what urdma_rx_cmpl does
 * -------------------------------------------------------- */
static void advance(struct bench *b, struct qp *q)
{
	while ((uint16_t)q->acked != (uint16_t)q->s_msg) {
		struct msg *m = &q->msgs[q->acked % MAX_MSGS];

		if (!m->sent || m->status ||
		    (m->packets && before(q->acked_psn, m->psn + m->packets)))
			break;
		if (is_read(m)) {
			if (!m->done_at)
				m->done_at = b->cycle + bench_rnd(b, b->w.late_read);
			if (m->done_at > b->cycle)
				break;
			q->rd_done++;
		}
		q->acked = (uint16_t)(q->acked + 1);
	}
}

static uint32_t first_psn(struct qp *q)
{
	return q->acked == q->pi ? q->acked_psn : q->msgs[q->acked % MAX_MSGS].psn;
}

static void put_acked(struct bench *b, int qpn, int kind)
{
	struct tx_in *in = &b->in;
	struct qp *q = &b->qp[qpn];

	in->acked_valid = true;
	in->acked_kind = kind;
	in->acked_qpn = qpn;
	in->acked_wqe_done = q->acked;
	in->acked_first_psn = first_psn(q);
	in->acked_una_psn = q->acked_psn;
	in->acked_rd_done = q->rd_done;
	q->unas[q->una_n++ % 64] = q->acked_psn;
	b->st.retries += kind == AK_RETRY;
	b->st.holds += kind == AK_HOLD;
}

/* Everything before psn is acknowledged, but for a READ whose answer has not come: true, a gap. */
static bool ack_to(struct qp *q, uint32_t psn)
{
	while (before(q->acked_psn, psn)) {
		uint16_t idx;
		struct msg *m = msg_of(q, q->acked_psn, &idx);
		uint32_t end;

		if (!m || is_read(m))
			return true;
		end = (m->psn + m->packets) & 0xffffff;
		q->acked_psn = before(end, psn) ? end : psn;
	}
	return false;
}

/* One event of the peer; false: AK_RETRY has to wait until the head has come to una. */
static bool peer_event(struct bench *b, struct peer_job *p)
{
	struct qp *q = &b->qp[p->qpn];
	uint32_t was = q->acked_psn;
	bool retry = false;
	uint16_t idx;
	struct msg *m;

	switch (p->kind) {
	case P_ACK:
		retry = ack_to(q, p->psn);
		break;
	case P_NAK:
		ack_to(q, p->psn);
		retry = true;
		break;
	case P_RNR:
		if (!ack_to(q, p->psn) && q->acked_psn == p->psn) {
			q->hold = true;
			q->rnr_end = b->cycle + 200 + bench_rnd(b, 3000);
		} else {
			retry = true;
		}
		break;
	case P_RESP:
		if (before(p->psn, q->acked_psn))
			break;
		if (ack_to(q, p->psn) || q->acked_psn != p->psn) {
			retry = true;
		} else {
			q->acked_psn = (p->psn + p->n) & 0xffffff;
			retry = p->n < p->total;
		}
		break;
	}
	if (was != q->acked_psn)
		q->moved = b->cycle;
	if (q->hold)
		retry = false;
	if (retry && q->retried == q->acked_psn && b->cycle - q->retried_at < 4000)
		retry = false;
	advance(b, q);
	m = msg_of(q, q->acked_psn, &idx);
	if (retry && m && idx != q->acked) {
		/* later, by time-out at the latest */
		retry = false;
	}
	if (retry) {
		q->retried = q->acked_psn;
		q->retried_at = b->cycle;
	}
	put_acked(b, p->qpn, q->hold ? AK_HOLD : retry ? AK_RETRY : AK_PROGRESS);
	return true;
}

/* READs whose data are written now; time-outs; ends of RNR waits. */
static void peer_timers(struct bench *b)
{
	for (int i = 0; i < QPS && !b->in.acked_valid; i++) {
		struct qp *q = &b->qp[(i + b->cycle) % QPS];
		int qpn = q - b->qp;
		uint16_t was = q->acked, idx;

		if (!q->cfg.valid || q->acked == q->pi || is_unrel(&q->cfg))
			continue;
		advance(b, q);
		if (q->hold && b->cycle >= q->rnr_end && msg_of(q, q->acked_psn, &idx) &&
		    idx == q->acked) {
			q->hold = false;
			q->moved = b->cycle;
			put_acked(b, qpn, AK_RETRY);
		} else if (was != q->acked) {
			put_acked(b, qpn, q->hold ? AK_HOLD : AK_PROGRESS);
		} else if (!q->hold && q->acked_psn != q->hpsn && b->cycle - q->moved > 20000 &&
			   b->cycle - q->last_psn_cycle > 5000 && msg_of(q, q->acked_psn, &idx) &&
			   idx == q->acked) {
			q->moved = b->cycle;
			put_acked(b, qpn, AK_RETRY);
		}
	}
}

static void judge_mro(struct bench *b)
{
	const struct tx_out *o = &b->out;
	struct qp *q = &b->qp[o->mro_qpn];
	struct msg *m;

	while (q->lop_next != q->pi && !is_local(&q->msgs[q->lop_next % MAX_MSGS]))
		q->lop_next++;
	if (q->lop_next == q->pi)
		fail_msg("QP %d: a local operation nobody asked for", o->mro_qpn);
	m = &q->msgs[q->lop_next % MAX_MSGS];
	assert_false(m->asked);
	m->asked = true;
	assert_int_equal(o->mro_pd, q->cfg.pd);
	if (m->op == URDMA_WR_LOCAL_INV) {
		assert_int_equal(o->mro_op, MRO_INV_LOCAL);
		assert_int_equal(o->mro_key, m->imm);
		/* all before it is completed */
		assert_int_equal(q->acked, q->lop_next);
	} else {
		assert_int_equal(o->mro_op, m->op == URDMA_WR_REG_MR ? MRO_REG : MRO_BIND);
		assert_int_equal(o->mro_key, m->rkey);
		assert_true(o->mro_va == m->raddr && o->mro_len == m->mr_len);
		assert_int_equal(o->mro_acc, m->acc);
		assert_int_equal(o->mro_zero_based, m->zero_based);
		if (m->op == URDMA_WR_REG_MR) {
			assert_true(o->mro_pt_addr == m->mr_addr);
			assert_int_equal(o->mro_pt_levels, m->levels);
			assert_int_equal(o->mro_pt_page_shift, m->page_shift);
		} else {
			assert_int_equal(o->mro_lkey, m->imm);
		}
	}
	q->lop_next++;
	b->st.mros++;
	b->mro_under_way = true;
	b->mro_answer = m->answer;
	b->mro_at = b->cycle + 1 + bench_rnd(b, b->w.mro_latency);
}

/* ---- a cycle
 * -------------------------------------------------------------------------------------------- */
static void read_bus(struct bench *b, uint64_t addr, uint8_t *out, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++, addr++) {
		if (addr >= RING_BASE)
			out[i] = b->rings[addr - RING_BASE];
		else
			out[i] = b->mem[addr - MEM_BUS];
	}
}

static void take_mr(struct bench *b, int c)
{
	const struct tx_out *o = &b->out;
	struct mr_job *j = &b->mr[c][b->mr_tail[c]++ % QLEN];
	uint64_t va = o->mr_va[c], at = b->cycle + b->w.mr_latency;
	uint32_t len = o->mr_len[c];
	bool remote;

	assert_int_equal(o->mr_ring[c], c);
	assert_in_range(len, 1, 4096);
	j->at = at;
	if (c == 1) {
		struct turn *t = &b->turn[b->turn_head++ % QLEN];
		const struct tx_cfg *cfg = &b->qp[t->qpn].cfg;

		assert_true(b->turn_head <= b->turn_tail);
		assert_int_equal(o->mr_pt_addr, cfg->sq_addr);
		assert_int_equal(va, (uint64_t)(t->wqe & ((1u << cfg->log_entries) - 1))
					     << cfg->log_stride);
		assert_int_equal(len, (uint32_t)t->n << cfg->log_stride);
		if (o->mr_pt_addr == b->no_table)
			j->rsp = (struct tx_mr_rsp){ MR_DMA_ERR, 0, 0, true };
		else
			j->rsp = (struct tx_mr_rsp){ MR_OK, o->mr_pt_addr + va, len, true };
		return;
	}
	remote = o->mr_key == KEY_REMOTE || is_xrc_key(o->mr_key);
	if (o->mr_key != KEY_BAD && o->mr_key != KEY_MTT_ERR)
		assert_int_equal(o->mr_acc, remote ? URDMA_ACC_REMOTE_READ : 0);
	assert_in_range(o->mr_qpn, 0, QPS - 1);
	assert_int_equal(o->mr_pd,
			 is_xrc_key(o->mr_key) ? pd_of_key(o->mr_key) : 0x300 + o->mr_qpn);
	if (o->mr_key != KEY_GOOD && !remote) {
		j->rsp = (struct tx_mr_rsp){ o->mr_key == KEY_MTT_ERR ? MR_DMA_ERR : MR_BAD_KEY, 0,
					     0, true };
		return;
	}
	b->frags += (va & 4095) + len > 4096 ? 2 : 1;
	b->key_frag[o->mr_key >> 8 & (KEYS - 1)] = b->frags;
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

/* The oldest request about a key is answered. */
static void inv_answered(struct bench *b)
{
	uint64_t want;

	assert_true(b->inv_head != b->inv_tail);
	want = b->inv_want[b->inv_head++ % INVS];
	if (b->frags_here < want)
		fail_msg("%" PRIu64 " reads are here, the last through the key is the %" PRIu64
			 "th",
			 b->frags_here, want);
}

/* ---- lanes
 * ------------------------------------------------------------------------------------------- */
#define LANE(lane, member) ((uint32_t)FIELD_GET(o->lane.w, 0, tr_##lane##_t, member))

static void lane_turn(struct bench *b)
{
	const struct tx_out *o = &b->out;
	struct qp *q = &b->qp[LANE(turn, qpn)];

	assert_true(b->turn_tail - b->turn_head < QLEN);
	b->turn[b->turn_tail++ % QLEN] =
		(struct turn){ LANE(turn, qpn), LANE(turn, wqe), LANE(turn, n) };
	assert_in_range(LANE(turn, n), 1, 16);
	/* some cycles lie between acked_t and the turn that knows of it */
	if (LANE(turn, again)) {
		assert_true(q->sent_back);
		q->turn_owed = false;
	} else if (q->turn_owed && b->cycle - q->sent_back_at > 3) {
		fail_msg("cycle %" PRIu64 ": QP %u was sent back, and does not say so", b->cycle,
			 LANE(turn, qpn));
	}
}

static void lane_wqe(struct bench *b)
{
	const struct tx_out *o = &b->out;
	struct qp *q = &b->qp[LANE(wqe, qpn)];
	struct msg *m = &q->msgs[LANE(wqe, wqe) % MAX_MSGS];

	if (!idx_before(LANE(wqe, wqe), q->pi) || (m->begun && !q->sent_back))
		fail_msg("cycle %" PRIu64 ": QP %u begins WQE %u, posted %u", b->cycle,
			 LANE(wqe, qpn), LANE(wqe, wqe), q->pi);
	assert_int_equal(LANE(wqe, op), m->op);
	assert_int_equal(LANE(wqe, len), m->len);
	/* behind a WQE that fails the PSNs go on as if it did not */
	if (!q->bad || !idx_before(q->bad_idx, LANE(wqe, wqe)))
		assert_int_equal(LANE(wqe, psn), m->psn);
	m->looked = true;
	if (!LANE(wqe, held))
		m->begun = true;
	else if (!m->fence && !is_read(m) && !is_local(m))
		assert_true(((m->psn - q->acked_psn) & 0xffffff) > 4000000);
	if (is_local(m) && !m->status && !LANE(wqe, held))
		assert_true(m->asked);
}

static void lane_pkt(struct bench *b)
{
	const struct tx_out *o = &b->out;

	assert_true(b->cut_tail - b->cut_head < QLEN);
	b->cut[b->cut_tail++ % QLEN] = (struct lane_pkt){ .qpn = LANE(pkt, qpn),
							  .psn = LANE(pkt, psn),
							  .wqe = LANE(pkt, wqe),
							  .len = LANE(pkt, len),
							  .opcode = LANE(pkt, opcode),
							  .resp = LANE(pkt, resp),
							  .again = LANE(pkt, again),
							  .last = LANE(pkt, last) };
	if (!LANE(pkt, resp))
		assert_true(b->qp[LANE(pkt, qpn)].msgs[LANE(pkt, wqe) % MAX_MSGS].begun);
}

static void to_wire(struct bench *b, const struct lane_pkt *p)
{
	assert_true(b->wire_tail - b->wire_head < QLEN);
	b->wire[b->wire_tail++ % QLEN] = *p;
}

/* Each packet that was cut is full once, in that order. */
static void lane_full(struct bench *b)
{
	const struct tx_out *o = &b->out;
	struct lane_pkt *p = &b->cut[b->cut_head++ % QLEN];

	assert_true(b->cut_head <= b->cut_tail);
	assert_int_equal(LANE(full, qpn), p->qpn);
	assert_int_equal(LANE(full, psn), p->psn);
	assert_int_equal(LANE(full, opcode), p->opcode);
	if (!LANE(full, drop))
		to_wire(b, p);
}

static void lane_ans(struct bench *b)
{
	const struct tx_out *o = &b->out;

	to_wire(b, &(struct lane_pkt){ .ans = true,
				       .qpn = LANE(ans, qpn),
				       .psn = LANE(ans, psn),
				       .opcode = 0x11,
				       .syndrome = LANE(ans, syndrome) });
}

/* A packet without a source address is no frame. */
static bool no_source(struct bench *b, const struct lane_pkt *p)
{
	struct qp *q = &b->qp[p->qpn];

	if (is_ud(&q->cfg) && !p->ans)
		return q->msgs[p->wqe % MAX_MSGS].no_frame;
	return !b->gids[q->cfg.sgid].valid;
}

static void pass_no_source(struct bench *b)
{
	while (b->wire_head != b->wire_tail && no_source(b, &b->wire[b->wire_head % QLEN]))
		b->wire_head++;
}

static void lane_out(struct bench *b)
{
	const struct tx_out *o = &b->out;
	struct lane_pkt *p;
	uint8_t opcode;

	pass_no_source(b);
	p = &b->wire[b->wire_head++ % QLEN];
	assert_true(b->wire_head <= b->wire_tail);
	opcode = (p->opcode & 0x1f) | service(&b->qp[p->qpn].cfg);
	if (LANE(out, qpn) != (uint32_t)p->qpn || LANE(out, psn) != p->psn ||
	    LANE(out, opcode) != opcode)
		fail_msg("cycle %" PRIu64 ": frame of QP %u, PSN %06x, opcode %02x; QP %d, PSN "
			 "%06x, opcode %02x was next",
			 b->cycle, LANE(out, qpn), LANE(out, psn), LANE(out, opcode), p->qpn,
			 p->psn, opcode);
	b->on_wire = *p;
	b->on_wire.opcode = opcode;
	b->on_wire.dqpn = LANE(out, dqpn);
}

static void lanes(struct bench *b, bool first_beat)
{
	const struct tx_out *o = &b->out;

	if (o->turn.valid)
		lane_turn(b);
	if (o->wqe.valid)
		lane_wqe(b);
	if (o->pkt.valid)
		lane_pkt(b);
	if (o->full.valid)
		lane_full(b);
	if (o->ans.valid)
		lane_ans(b);
	assert_int_equal(o->out.valid, first_beat);
	if (o->out.valid)
		lane_out(b);
}

void bench_step(struct bench *b)
{
	struct tx_in *in = &b->in;
	struct tx_out *o = &b->out;
	struct dma_job *d = NULL;
	uint8_t gid_idx = o->gid_idx;
	unsigned int n = 0;
	bool sync_was;

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
	/* never so long that a frame leaves before its made_t is seen here */
	in->made_ready = bench_rnd(b, 4) || b->w.made_at_once;
	in->mac_ready = !chance(b, b->w.mac_stall);
	if (!in->acked_valid && b->sent_head != b->sent_tail && !b->w.acks_off &&
	    b->sent[b->sent_head % QLEN].at <= b->cycle) {
		struct sent_job *j = &b->sent[b->sent_head++ % QLEN];
		struct qp *q = &b->qp[j->qpn];

		if (!idx_before(j->wqe, q->acked)) {
			for (; q->acked != (uint16_t)(j->wqe + 1);
			     q->acked = (uint16_t)(q->acked + 1))
				q->rd_done += is_read(&q->msgs[q->acked % MAX_MSGS]);
			q->acked_psn = j->ok ? (j->psn + 1) & 0xffffff : j->psn;
			put_acked(b, j->qpn, AK_PROGRESS);
		}
	}
	if (b->w.peer && !in->acked_valid) {
		if (b->peer_head != b->peer_tail &&
		    b->peer[b->peer_head % (4 * QLEN)].at <= b->cycle)
			peer_event(b, &b->peer[b->peer_head++ % (4 * QLEN)]);
		else if (!(b->cycle & 15))
			peer_timers(b);
	}
	in->err_ready = !chance(b, b->w.stall);
	in->mro_ready = !b->mro_under_way && !chance(b, b->w.stall);
	in->mro_rsp_valid = b->mro_under_way && b->cycle >= b->mro_at;
	in->mro_rsp = b->mro_answer;
	in->sync_done = o->sync_req && b->cycle >= b->sync_at;
	in->ack_req_valid = b->ack_head != b->ack_tail;
	if (in->ack_req_valid) {
		in->ack_req_qpn = b->ack[b->ack_head % QLEN].qpn;
		in->ack_req_psn = b->ack[b->ack_head % QLEN].psn;
		in->ack_req_syndrome = b->ack[b->ack_head % QLEN].syndrome;
		in->ack_req_msn = b->ack[b->ack_head % QLEN].msn;
		in->ack_req_kind = b->ack[b->ack_head % QLEN].kind;
		in->ack_req_dup = b->ack[b->ack_head % QLEN].dup;
		in->ack_req_pd = b->ack[b->ack_head % QLEN].pd;
		in->ack_req_key = b->ack[b->ack_head % QLEN].key;
		in->ack_req_va = b->ack[b->ack_head % QLEN].va;
		in->ack_req_len = b->ack[b->ack_head % QLEN].len;
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
		if (in->rd_last) {
			b->dma_head++;
			b->frags_here += !d->client;
		}
	}

	sync_was = o->sync_req;
	tx_model_eval(b->m, in, o);
	lanes(b, o->mac_valid && in->mac_ready && !b->frame_len);
	if (o->sync_req && !sync_was) {
		b->st.syncs++;
		b->sync_at = b->cycle + 1 + bench_rnd(b, b->w.sync_latency);
	}
	if (in->mro_rsp_valid)
		b->mro_under_way = false;
	if (o->reads_over)
		inv_answered(b);
	if (o->mro_valid && in->mro_ready)
		judge_mro(b);
	if (o->err_valid && in->err_ready) {
		b->st.errs++;
		b->st.err_qpn = o->err_qpn;
		b->st.err_event = o->err_event;
		b->st.err_only = o->err_only_event;
	}
	/* handshakes */
	if (in->db_valid && o->db_ready)
		b->db_head++;
	if (in->acked_valid && o->acked_ready) {
		struct qp *q = &b->qp[in->acked_qpn];

		in->acked_valid = false;
		if (in->acked_kind != AK_PROGRESS) {
			q->sent_back = q->turn_owed = true;
			q->sent_back_at = b->cycle;
		}
	}
	if (in->ack_req_valid && o->ack_req_ready) {
		struct qp *q = &b->qp[in->ack_req_qpn];
		uint8_t nak = b->ack[b->ack_head % QLEN].nak;

		b->ack_head++;
		if (in->ack_req_kind != RSP_ACK) {
			if (!in->ack_req_dup || in->ack_req_key != KEY_BAD)
				expect_rsp(b, in->ack_req_qpn, in, nak);
			goto taken;
		}
		assert_true(q->ack_tail - q->ack_head < MAX_ACKS);
		q->ack[q->ack_tail % MAX_ACKS].psn = in->ack_req_psn;
		q->ack[q->ack_tail % MAX_ACKS].syndrome = in->ack_req_syndrome;
		q->ack[q->ack_tail++ % MAX_ACKS].msn = in->ack_req_msn;
taken:;
	}
	if (o->qpr_req_valid && in->qpr_req_ready) {
		b->cfg_q[b->cfg_tail % 64] = o->qpr_req_qpn;
		b->cfg_at[b->cfg_tail++ % 64] = b->cycle + 3;
	}
	if (o->sent_valid && in->sent_ready)
		judge_sent(b);
	if (o->made_valid && in->made_ready) {
		assert_true(b->made_tail - b->made_head < QLEN);
		b->made[b->made_tail % QLEN].qpn = o->made_qpn;
		b->made[b->made_tail % QLEN].psn = o->made_psn;
		b->made[b->made_tail++ % QLEN].asks = o->made_asks;
	}
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
			assert_true(c == 1 ? j->addr >= RING_BASE
					   : j->addr - MEM_BUS + j->len <= MEM_SIZE);
		}
	}
	if (o->mac_valid && in->mac_ready) {
		unsigned int k = __builtin_popcountll(o->mac_keep);

		if (!b->st.frames && !b->frame_len)
			b->st.first_cycle = b->cycle;
		if (!b->frame_len) {
			b->frame_first = b->cycle;
			b->frame_loop = o->mac_loop;
		}
		assert_int_equal(o->mac_loop, b->frame_loop);
		assert_true(o->mac_keep == (k == 64 ? ~0ull : (1ull << k) - 1) && k);
		assert_true(o->mac_last || k == 64);
		assert_false(o->mac_err);
		assert_true(b->frame_len + k <= sizeof(b->frame));
		memcpy(b->frame + b->frame_len, o->mac_data, k);
		b->frame_len += k;
		b->st.beats++;
		b->st.bytes += k;
		b->st.last_cycle = b->cycle;
		if (o->mac_last) {
			b->st.frames++;
			judge_frame(b);
			b->frame_len = 0;
		}
	} else {
		/* a gap inside a frame would be an underrun of the MAC */
		if (!o->mac_valid)
			assert_int_equal(b->frame_len, 0);
	}
	if (o->qc_valid) {
		struct qp_count *c = &b->told[o->qc_qpn];

		assert_true(o->qc_qpn < QPS && o->qc_pkt && o->qc_bytes);
		c->pkts++;
		c->bytes += o->qc_len;
		c->again += o->qc_again;
	}
	b->st.cnt_frames += o->cnt >> URDMA_CNT_TX_RDMA_PKTS & 1;
	b->st.cnt_retrans += o->cnt >> URDMA_CNT_TX_RETRANS & 1;
	b->st.cnt_read_rsp += o->cnt >> URDMA_CNT_TX_READ_RSP & 1;
	b->st.cnt_ack += o->cnt >> URDMA_CNT_TX_ACK & 1;
	b->st.cnt_nak += (o->cnt >> URDMA_CNT_TX_NAK_SEQ & 1) +
			 (o->cnt >> URDMA_CNT_TX_NAK_RNR & 1) +
			 (o->cnt >> URDMA_CNT_TX_NAK_OTHER & 1);
	tx_model_clock(b->m);
	b->cycle++;
}

void bench_ak(struct bench *b, int qpn, int kind, uint16_t done, uint32_t una)
{
	struct qp *q = &b->qp[qpn];

	while (b->in.acked_valid)
		bench_step(b);
	for (; q->acked != done; q->acked = (uint16_t)(q->acked + 1))
		q->rd_done += is_read(&q->msgs[q->acked % MAX_MSGS]);
	q->acked_psn = una & 0xffffff;
	put_acked(b, qpn, kind);
	while (b->in.acked_valid)
		bench_step(b);
}

void bench_acked(struct bench *b, int qpn, uint16_t done, uint32_t una)
{
	bench_ak(b, qpn, AK_PROGRESS, done, una);
}

void bench_retry(struct bench *b, int qpn, uint32_t una)
{
	struct qp *q = &b->qp[qpn];

	while (b->in.acked_valid)
		bench_step(b);
	q->acked_psn = una & 0xffffff;
	advance(b, q);
	bench_ak(b, qpn, AK_RETRY, q->acked, una);
}

void bench_inv_ask(struct bench *b, uint32_t key)
{
	assert_in_range(b->inv_tail - b->inv_head, 0, INVS - 1);
	b->inv_want[b->inv_tail++ % INVS] = b->key_frag[key >> 8 & (KEYS - 1)];
	b->in.inv_valid = true;
	b->in.inv_key = key;
	bench_step(b);
	b->in.inv_valid = false;
}

unsigned int bench_inv(struct bench *b, uint32_t key, unsigned int limit)
{
	unsigned int n = 1;

	bench_inv_ask(b, key);
	for (; b->inv_head != b->inv_tail; n++) {
		if (n > limit)
			fail_msg("reads through key %x do not end", key);
		bench_step(b);
	}
	return n;
}

void bench_steps(struct bench *b, unsigned int n)
{
	while (n--)
		bench_step(b);
}

static bool work_left(struct bench *b)
{
	if (b->out.busy || b->db_head != b->db_tail || b->ack_head != b->ack_tail || b->frame_len ||
	    b->sent_head != b->sent_tail || b->in.acked_valid || b->peer_head != b->peer_tail ||
	    b->mro_under_way)
		return true;
	for (int i = 0; i < QPS; i++) {
		struct qp *q = &b->qp[i];

		if (q->cfg.valid &&
		    ((uint16_t)q->s_msg != q->pi || (b->w.peer && q->acked != q->pi)))
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
						"  QP %d: posted %u, sent_t %u, completed %u, una "
						"%06x, "
						"next PSN seen %06x, posted to %06x%s\n",
						i, b->qp[i].pi, b->qp[i].s_msg, b->qp[i].acked,
						b->qp[i].acked_psn, b->qp[i].f_psn,
						b->qp[i].post_psn, b->qp[i].hold ? ", RNR" : "");
			fail();
		}
		bench_step(b);
	}
	for (int i = 0; i < QPS; i++)
		assert_true(bench_acks_done(b, i));
	for (int i = 0; i < QPS; i++) {
		struct qp_count *t = &b->told[i], *s = &b->seen[i];

		if (memcmp(t, s, sizeof(*t)))
			fail_msg("QP %d: %" PRIu64 " packets, %" PRIu64 " bytes, %" PRIu64
				 " again are counted; sent %" PRIu64 ", %" PRIu64 ", %" PRIu64,
				 i, t->pkts, t->bytes, t->again, s->pkts, s->bytes, s->again);
	}
	pass_unseen(b);
	assert_int_equal(b->made_head, b->made_tail);
	assert_int_equal(b->st.cnt_frames, b->st.frames);
	pass_no_source(b);
	assert_int_equal(b->wire_head, b->wire_tail);
	assert_int_equal(b->cut_head, b->cut_tail);
	assert_int_equal(b->turn_head, b->turn_tail);
	assert_int_equal(b->st.cnt_retrans, b->st.resent);
	assert_int_equal(b->st.cnt_read_rsp, b->st.read_rsps);
	assert_int_equal(b->st.cnt_ack, b->st.acks);
	assert_int_equal(b->st.cnt_nak, b->st.naks + b->st.naks_seen);
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
