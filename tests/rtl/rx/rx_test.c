// SPDX-License-Identifier: Apache-2.0
/*
 * urdma_rx alone: frames in at the MAC; payload, CQEs, acknowledgements and errors out, against a
 * reference written from the specification. URDMA_SEED repeats a run. A failure here means that a
 * packet was taken, refused, placed or answered other than IBA volume 1, chapter 9, says.
 */
#include "rx_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QPS	 8
#define QPN0	 5
#define RING_OFF 0x10000 /* rings: 64 KB each from here */
#define DATA_OFF 0x100000
#define LKEY	 0x1234

static uint32_t seed;

/* ---- reference: the responder of one QP
 * ------------------------------------------------------------- */

struct ref {
	struct rx_cfg cfg;
	struct packet hdr; /* addresses for packets to this QP */
	bool active, err, nak, in_msg;
	uint32_t epsn, msn, moff;
	uint16_t ci, pi;
	/* what is to be seen */
	struct bench_ack acks[4096];
	struct bench_cqe cqes[8192];
	struct bench_err errs[64];
	unsigned int n_acks, n_cqes, n_errs;
};

static struct ref refs[QPS];

/* reference: requester completion of one QP */
struct req {
	uint16_t qpn;
	uint32_t una;  /* oldest PSN not acknowledged */
	uint32_t next; /* PSN tx sends next */
	uint16_t head, tail;
	uint16_t seen; /* WQEs reported as completed: what tx goes by */
	bool err;
	uint8_t nak;
	struct rx_sent s[65536];
	struct bench_cqe cqes[8192];
	unsigned int n_cqes, n_errs;
};

static struct req reqs[4];

static void ref_clear(struct ref *r)
{
	r->n_acks = r->n_cqes = r->n_errs = 0;
}

static uint64_t wqe_va(const struct ref *r, uint16_t idx)
{
	return HOST_VA + (r->cfg.rq_addr - HOST_BUS) +
	       ((uint64_t)(idx & ((1u << r->cfg.rq_log_entries) - 1)) << r->cfg.rq_log_stride);
}

static void ref_cqe(struct ref *r, uint16_t wqe, uint8_t status, uint32_t len, const uint8_t *imm,
		    bool se)
{
	struct bench_cqe *c = &r->cqes[r->n_cqes++];
	uint32_t v = 0;

	memset(c, 0, sizeof(*c));
	if (imm)
		memcpy(&v, imm, 4);
	c->cqn = r->cfg.recv_cq;
	c->solicited = se;
	c->w[0] = (imm ? URDMA_CQE0_IMM : 0) | (se ? URDMA_CQE0_SOLICITED : 0) | URDMA_CQE0_RECV |
		  (imm ? URDMA_WR_SEND_IMM : URDMA_WR_SEND) << 8 | (uint64_t)status << 16 |
		  (uint64_t)wqe << 32;
	c->w[1] = len | (uint64_t)r->cfg.qpn << 32;
	c->w[2] = v | (uint64_t)r->cfg.dest_qpn << 32;
}

static void ref_ack(struct ref *r, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	r->acks[r->n_acks++] =
		(struct bench_ack){ r->cfg.qpn, psn & 0xffffff, msn & 0xffffff, syndrome };
}

static void ref_flush(struct ref *r)
{
	for (; r->ci != r->pi; r->ci++)
		ref_cqe(r, r->ci, URDMA_WC_FLUSH_ERR, 0, NULL, false);
}

static void ref_error(struct ref *r, uint8_t event)
{
	r->err = true;
	r->errs[r->n_errs++] = (struct bench_err){ r->cfg.qpn, event };
}

/* Place @len bytes at message offset @off by WQE @idx: a CQE status. */
static uint8_t ref_place(struct bench *b, struct ref *r, uint16_t idx, uint32_t off,
			 const uint8_t *p, size_t len)
{
	const uint8_t *w = b->shadow + (wqe_va(r, idx) - HOST_VA);
	unsigned int num = w[0], most = ((1u << r->cfg.rq_log_stride) - 16) / 16;

	if (!len)
		return 0;
	if (num > most)
		return URDMA_WC_LOC_QP_OP_ERR;
	for (unsigned int i = 0; i < num && len; i++) {
		const struct bench_mr *m = NULL;
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
		for (unsigned int k = 0; k < b->mrs; k++)
			if (b->mr[k].key == key)
				m = &b->mr[k];
		if (!m || m->pd != r->cfg.pd || !(m->acc & URDMA_ACC_LOCAL_WRITE) || addr < m->va ||
		    addr + n > m->va + m->len)
			return URDMA_WC_LOC_PROT_ERR;
		memcpy(b->shadow + (addr - HOST_VA), p, n);
		p += n;
		len -= n;
	}
	return len ? URDMA_WC_LOC_LEN_ERR : 0;
}

/* What a packet that passed every check of addresses does (IBA volume 1, 9.7.4). */
static void ref_packet(struct bench *b, struct ref *r, const struct packet *p)
{
	uint32_t mtu = 128u << r->cfg.mtu, diff = (p->psn - r->epsn) & 0xffffff;
	bool first = p->opcode == 0 || p->opcode == 4 || p->opcode == 5;
	bool last = p->opcode >= 2 && p->opcode <= 5;
	bool imm = p->opcode == 3 || p->opcode == 5;
	uint8_t status;

	if (!r->active || r->err || (p->opcode >= 0x0d && p->opcode <= 0x12))
		return;
	if (diff & 0x800000) {
		ref_ack(r, r->epsn - 1, 0x1f, r->msn);
		return;
	}
	if (diff) {
		if (!r->nak)
			ref_ack(r, r->epsn, 0x60, r->msn);
		r->nak = true;
		return;
	}
	if (p->opcode > 5 || first == r->in_msg || (last ? p->len > mtu : p->len != mtu) ||
	    (last && !first && !p->len)) {
		ref_ack(r, p->psn, 0x61, r->msn);
		if (r->in_msg)
			ref_cqe(r, r->ci++, URDMA_WC_REM_INV_REQ_ERR, 0, NULL, false);
		ref_error(r, r->in_msg ? 0 : URDMA_EV_QP_REQ_ERR);
		return;
	}
	if (first && r->ci == r->pi) {
		ref_ack(r, p->psn, 0x20 | r->cfg.min_rnr, r->msn);
		r->nak = true;
		return;
	}
	r->nak = false;
	if (first)
		r->moff = 0;
	status = ref_place(b, r, r->ci, r->moff, p->payload, p->len);
	if (status) {
		ref_ack(r, p->psn, status == URDMA_WC_LOC_LEN_ERR ? 0x61 : 0x63, r->msn);
		ref_cqe(r, r->ci++, status, 0, NULL, false);
		ref_error(r, 0);
		return;
	}
	r->epsn = (r->epsn + 1) & 0xffffff;
	r->moff += p->len;
	r->in_msg = !last;
	if (last) {
		ref_cqe(r, r->ci++, 0, r->moff, imm ? p->ext : NULL, p->se);
		r->msn = (r->msn + 1) & 0xffffff;
	}
	if (p->ackreq)
		ref_ack(r, p->psn, 0x1f, r->msn);
}

/* Compare what was seen with the reference, QP by QP, and forget both. */
static void check(struct bench *b)
{
	for (int i = 0; i < QPS; i++) {
		struct ref *r = &refs[i];
		unsigned int na = 0, nc = 0, ne = 0;

		for (unsigned int k = 0; k < b->n_acks; k++) {
			const struct bench_ack *a = &b->acks[k], *e = &r->acks[na];

			if (a->qpn != r->cfg.qpn)
				continue;
			if (na >= r->n_acks || memcmp(&a->psn, &e->psn, 8) ||
			    a->syndrome != e->syndrome)
				fail_msg("cycle %llu seed %u: QP %u acknowledgement %u: PSN %x MSN "
					 "%x syndrome %x,"
					 " expected (of %u) %x %x %x",
					 (unsigned long long)b->cycle, seed, a->qpn, na, a->psn,
					 a->msn, a->syndrome, r->n_acks, e->psn, e->msn,
					 e->syndrome);
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
			assert_true(ne < r->n_errs);
			assert_int_equal(b->errs[0][k].event, r->errs[ne].event);
			ne++;
		}
		if (na != r->n_acks || nc != r->n_cqes || ne != r->n_errs)
			fail_msg("cycle %llu seed %u: QP %u: %u acknowledgements, %u CQEs, %u "
				 "errors, expected %u, %u,"
				 " %u",
				 (unsigned long long)b->cycle, seed, r->cfg.qpn, na, nc, ne,
				 r->n_acks, r->n_cqes, r->n_errs);
		ref_clear(r);
	}
	for (size_t i = 0; i < HOST_SIZE; i++)
		if (b->host[i] != b->shadow[i])
			fail_msg("cycle %llu seed %u: host memory differs at offset %#zx: %02x, "
				 "expected %02x",
				 (unsigned long long)b->cycle, seed, i, b->host[i], b->shadow[i]);
	bench_clear_logs(b);
}

/* ---- setting up
 * -------------------------------------------------------------------------------------- */

static const uint8_t mac_own[6] = { 2, 0, 0, 0, 0, 2 }, mac_peer[6] = { 2, 0, 0, 0, 0, 1 };

static void gid4(uint8_t *g, uint8_t last)
{
	static const uint8_t prefix[15] = { [10] = 0xff, 0xff, 10, 0, 0 };

	memcpy(g, prefix, 15);
	g[15] = last;
}

static void gid6(uint8_t *g, uint8_t last)
{
	memset(g, 0, 16);
	g[0] = 0xfe;
	g[1] = 0x80;
	g[15] = last;
}

/* GID entries: 0 IPv4, 1 IPv6 in VLAN 5, 2 IPv6, 3 IPv4 in VLAN 5 */
static void set_gids(struct bench *b)
{
	for (int i = 0; i < 4; i++) {
		struct rx_gid g = {
			.idx = i, .valid = true, .ipv4 = i == 0 || i == 3, .vlan_valid = i & 1
		};

		g.vlan = g.vlan_valid ? 5 : 0;
		memcpy(g.smac, mac_own, 6);
		(g.ipv4 ? gid4 : gid6)(g.gid, 2);
		bench_gid(b, &g);
	}
}

static void qp_init(struct bench *b, int i, uint8_t mtu, uint8_t log_entries, uint8_t log_stride,
		    uint32_t psn)
{
	struct ref *r = &refs[i];
	struct rx_cfg c = { .qpn = QPN0 + i,
			    .exists = true,
			    .state = URDMA_QPS_RTS,
			    .type = URDMA_QPT_RC,
			    .pd = 7,
			    .send_cq = 30 + i,
			    .recv_cq = 20 + i,
			    .rq_log_entries = log_entries,
			    .rq_log_stride = log_stride,
			    .mtu = mtu,
			    .min_rnr = i,
			    .dest_qpn = 0xabc00 + i,
			    .pkey = 0xffff,
			    .sgid = i & 3 };

	memset(r, 0, sizeof(*r));
	c.rq_addr = HOST_BUS + RING_OFF + 0x10000 * i;
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

static struct bench *start(void)
{
	struct bench *b = bench_new(seed);

	set_gids(b);
	b->mr[0] = (struct bench_mr){ LKEY, 7, URDMA_ACC_LOCAL_WRITE, HOST_VA + DATA_OFF,
				      HOST_SIZE - DATA_OFF };
	b->mr[1] = (struct bench_mr){ LKEY + 1, 8, URDMA_ACC_LOCAL_WRITE, HOST_VA + DATA_OFF,
				      1 << 20 };
	b->mr[2] = (struct bench_mr){ LKEY + 2, 7, URDMA_ACC_REMOTE_READ, HOST_VA + DATA_OFF,
				      1 << 20 };
	b->mrs = 3;
	memset(refs, 0, sizeof(refs));
	memset(reqs, 0, sizeof(reqs));
	return b;
}

struct sge {
	uint64_t va;
	uint32_t len, key;
};

/* Write receive WQE pi of the QP; the doorbell is the caller's. */
static void post(struct bench *b, struct ref *r, const struct sge *s, unsigned int num)
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

static void ring(struct bench *b, struct ref *r)
{
	bench_db(b, r->cfg.qpn, r->pi);
	if (r->err)
		ref_flush(r);
}

static uint8_t payload[1 << 20];

static void fill(struct bench *b, size_t len)
{
	for (size_t i = 0; i < len; i += 4) {
		uint32_t v = rnd(b);

		memcpy(payload + i, &v, 4);
	}
}

static void send_packet(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn,
			const uint8_t *p, size_t len, bool ackreq, bool se)
{
	static struct frame f;
	struct packet k = r->hdr;

	k.opcode = opcode;
	k.psn = psn & 0xffffff;
	k.payload = p;
	k.len = len;
	k.ackreq = ackreq;
	k.se = se;
	if (opcode == 3 || opcode == 5) {
		uint32_t imm = rnd(b);

		memcpy(k.ext, &imm, 4);
		k.ext_len = 4;
	}
	packet_build(&k, &f);
	bench_frame(b, &f, false);
	ref_packet(b, r, &k);
}

/* A whole message at the QP's MTU; every ack_every-th packet and the last ask for an
 * acknowledgement. */
static void send_message(struct bench *b, struct ref *r, size_t len, bool imm, bool se,
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

/* Memory for receive buffers, never the same twice in a round. */
static uint64_t next_va;

static uint64_t take(struct bench *b, size_t len, unsigned int align)
{
	uint64_t va = (next_va + align - 1) & ~(uint64_t)(align - 1);

	(void)b;
	if (va + len > HOST_VA + HOST_SIZE)
		va = HOST_VA + DATA_OFF;
	next_va = va + len;
	return va;
}

/* Cut @len bytes into scatter elements of a shape: a count of them. */
static unsigned int shape_sges(struct bench *b, int shape, size_t len, struct sge *s,
			       unsigned int most)
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

/* ---- tests
 * ------------------------------------------------------------------------------------------------
 */

/* Frames made by scapy: its ICRC is an implementation of its own. */
static void test_vectors(void **state)
{
	static const uint8_t v4[] = { 0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00,
				      0x00, 0x01, 0x08, 0x00, 0x45, 0x20, 0x00, 0x3c, 0x00, 0x07,
				      0x00, 0x00, 0x40, 0x11, 0x66, 0x88, 0x0a, 0x00, 0x00, 0x01,
				      0x0a, 0x00, 0x00, 0x02, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x28,
				      0x00, 0x00, 0x04, 0x50, 0xff, 0xff, 0x00, 0x00, 0x00, 0x05,
				      0x80, 0x12, 0x34, 0x56, 0x75, 0x72, 0x64, 0x6d, 0x61, 0x75,
				      0x72, 0x64, 0x6d, 0x61, 0x75, 0x72, 0x64, 0x6d, 0x61, 0x00,
				      0x8d, 0x3b, 0xe4, 0x4a };
	static const uint8_t v6[] = {
		0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x81, 0x00,
		0x00, 0x05, 0x86, 0xdd, 0x60, 0x95, 0x43, 0x21, 0x00, 0x28, 0x11, 0x07, 0xfe, 0x80,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
		0xfe, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x02, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x04, 0x00, 0xff, 0xff,
		0x00, 0x00, 0x00, 0x05, 0x80, 0x12, 0x34, 0x56, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35,
		0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x96, 0x33, 0x7a, 0xe3
	};
	struct bench *b = start();
	static struct frame f;

	(void)state;
	for (int v = 0; v < 2; v++) {
		const uint8_t *vec = v ? v6 : v4;
		size_t len = v ? sizeof(v6) : sizeof(v4), ip = v ? 18 : 14;
		struct sge s = { HOST_VA + DATA_OFF + 64 * v, 64, LKEY };
		struct packet k = { .opcode = 4,
				    .psn = 0x123456,
				    .ackreq = true,
				    .payload = vec + len - 20,
				    .len = v ? 16 : 15 };

		qp_init(b, 0, 3, 4, 6, 0x123456);
		refs[0].cfg.sgid = v;
		memcpy(refs[0].cfg.dgid, refs[v].hdr.sip, 16);
		(v ? gid6 : gid4)(refs[0].cfg.dgid, 1);
		bench_cfg(b, &refs[0].cfg);
		post(b, &refs[0], &s, 1);
		ring(b, &refs[0]);
		bench_drain(b, 1000);
		/* each bit that the ICRC covers, flipped: never taken */
		for (size_t bit = 8 * ip; bit < 8 * len; bit++) {
			memcpy(f.b, vec, len);
			f.len = len;
			f.b[bit / 8] ^= 1 << bit % 8;
			/* the outer fields that may change on the way are not covered */
			if ((!v && (bit / 8 == 15 || bit / 8 == 22 || bit / 8 == 40 ||
				    bit / 8 == 41 || bit / 8 == 46)) ||
			    (v &&
			     ((bit / 8 >= 19 && bit / 8 <= 21) || (bit / 8 == 18 && bit % 8 < 4) ||
			      bit / 8 == 25 || bit / 8 == 64 || bit / 8 == 65 || bit / 8 == 70)))
				continue;
			bench_frame(b, &f, false);
		}
		bench_drain(b, 20000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS], 0);
		assert_true(b->cnt[URDMA_CNT_RX_ICRC_ERR] > 200);
		assert_int_equal(b->cnt[URDMA_CNT_RX_FRAMES],
				 b->cnt[URDMA_CNT_RX_ICRC_ERR] + b->cnt[URDMA_CNT_RX_MALFORMED] +
					 b->cnt[URDMA_CNT_RX_NOT_RDMA]);
		memcpy(f.b, vec, len);
		f.len = len;
		bench_frame(b, &f, false);
		ref_packet(b, &refs[0], &k);
		bench_drain(b, 2000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS], 1);
		assert_int_equal(b->traces[4], 1);
		check(b);
	}
	bench_free(b);
}

/* Every size at every MTU in every shape of scatter list, with the ports at full speed and slow. */
static void test_sizes(void **state)
{
	struct bench *b = start();
	unsigned int n = 0;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int i = 0; i < 5; i++)
		qp_init(b, i, i + 1, 6, 6 + i % 4, rnd(b));
	for (int speed = 0; speed < 2; speed++) {
		bench_settings(b, speed ? 60 : 100, speed ? 20 : 0, 4, 60);
		for (int shape = 0; shape < 5; shape++) {
			for (int q = 0; q < 5; q++) {
				struct ref *r = &refs[q];
				size_t mtu = 128u << r->cfg.mtu;
				size_t sizes[] = { 0,
						   1,
						   63,
						   64,
						   65,
						   mtu - 1,
						   mtu,
						   mtu + 1,
						   2 * mtu,
						   3 * mtu + 17,
						   shape < 2 ? 65536 : 9000 };
				unsigned int most = ((1u << r->cfg.rq_log_stride) - 16) / 16;

				for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
					struct sge s[32];

					post(b, r, s, shape_sges(b, shape, sizes[k], s, most));
				}
				ring(b, r);
			}
			bench_drain(b, 3000);
			for (size_t k = 0; k < 11; k++) {
				for (int q = 0; q < 5; q++) {
					struct ref *r = &refs[q];
					size_t mtu = 128u << r->cfg.mtu;
					size_t sizes[] = { 0,
							   1,
							   63,
							   64,
							   65,
							   mtu - 1,
							   mtu,
							   mtu + 1,
							   2 * mtu,
							   3 * mtu + 17,
							   shape < 2 ? 65536 : 9000 };

					fill(b, sizes[k]);
					send_message(b, r, sizes[k], rnd(b) & 1, rnd(b) & 1,
						     rnd(b) % 4);
					n++;
					/* the buffer holds 128 KB, what comes faster than DMA is
					 * lost */
					bench_drain(b, 200000);
				}
			}
			assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
			check(b);
		}
	}
	print_message("%u messages\n", n);
	bench_free(b);
}

/* One fault in each layer: the right counter, and nothing else happens. */
static void test_malformed(void **state)
{
	struct bench *b = start();
	static const int counters[] = { URDMA_CNT_RX_MAC_ERR, URDMA_CNT_RX_ICRC_ERR,
					URDMA_CNT_RX_MALFORMED, URDMA_CNT_RX_NOT_RDMA,
					URDMA_CNT_RX_NO_QP };
	enum { MACERR, ICRC, BAD, OTHER, NOQP };
	static struct frame f;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	fill(b, 4096);
	for (int i = 0; i < 4; i++) {
		struct sge s = { HOST_VA + DATA_OFF + 0x2000 * i, 4096, LKEY };

		qp_init(b, i, 5, 4, 6, 100);
		post(b, &refs[i], &s, 1);
		ring(b, &refs[i]);
	}
	bench_drain(b, 1000);
	for (int i = 0; i < 4; i++) {
		struct ref *r = &refs[i];

		for (int fault = 0; fault < 31; fault++) {
			struct packet k = r->hdr;
			uint8_t *ip, *udp, *bth;
			bool seal = true, err = false;
			int want = BAD;

			k.opcode = 4;
			k.psn = 100;
			k.payload = payload;
			k.len = 100;
			k.ackreq = true;
			switch (fault) { /* before the frame is built */
			case 0:
				k.dqpn = 77;
				want = NOQP;
				break;
			case 1:
				k.dqpn |= 0x1000; /* beyond the table */
				want = NOQP;
				break;
			case 2:
				k.sip[15]++;
				want = NOQP;
				break;
			case 3:
				k.dip[15]++;
				want = NOQP;
				break;
			case 4:
				k.dmac[3] ^= 1;
				want = NOQP;
				break;
			case 5:
				k.vlan_valid = true;
				k.vlan = 6;
				want = NOQP;
				break;
			case 6:
				k.pkey = 0x7ffe;
				want = NOQP;
				break;
			case 7:
				k.opcode = 0x64; /* UD */
				want = NOQP;
				break;
			case 8:
				k.len = 4100;
				break;
			case 9:
				k.opcode = 0x11; /* ACK with payload */
				break;
			case 10:
				k.ipv4 = !k.ipv4; /* another version than the GID's */
				want = NOQP;
				break;
			}
			packet_build(&k, &f);
			ip = f.b + packet_ip(&k);
			udp = f.b + packet_udp(&k);
			bth = f.b + packet_bth(&k);
			switch (fault) { /* after it */
			case 11:
				err = true;
				want = MACERR;
				break;
			case 12:
				ip[-1] ^= 1;
				want = OTHER;
				break;
			case 13:
				udp[3] ^= 1;
				want = OTHER;
				break;
			case 14:
				ip[k.ipv4 ? 9 : 6] = 6; /* TCP */
				want = OTHER;
				break;
			case 15:
				if (!k.ipv4)
					continue;
				ip[10] ^= 1; /* header checksum */
				seal = false;
				break;
			case 16:
				if (!k.ipv4)
					continue;
				ip[0] = 0x46; /* options */
				want = OTHER;
				break;
			case 17:
				if (!k.ipv4)
					continue;
				ip[6] = 0x20; /* fragment */
				want = OTHER;
				break;
			case 18:
				ip[0] ^= 0x30; /* IP version 7 or 5 */
				want = OTHER;
				break;
			case 19:
				ip[k.ipv4 ? 3 : 5] += 4; /* longer than UDP says */
				break;
			case 20:
				udp[5] += 4;
				break;
			case 21:
				f.len -= 4; /* the frame ends too early */
				break;
			case 22:
				f.len = packet_bth(&k) + 6;
				break;
			case 23:
				f.len = 60; /* the least a frame can have */
				if (packet_udp(&k) + 4 > 60)
					want = OTHER; /* and the port is not in it */
				break;
			case 24:
				bth[1] |= 1; /* BTH version */
				break;
			case 25:
				udp[4] = udp[5] = 0;
				ip[k.ipv4 ? 2 : 4] = 0;
				ip[k.ipv4 ? 3 : 5] = k.ipv4 ? 20 : 0;
				break;
			case 26:
				udp[5] = 20; /* no room for the BTH and the ICRC */
				udp[4] = 0;
				ip[k.ipv4 ? 2 : 4] = 0;
				ip[k.ipv4 ? 3 : 5] = k.ipv4 ? 40 : 20;
				break;
			case 27:
				udp[5] += 2; /* not in words */
				ip[k.ipv4 ? 3 : 5] += 2;
				f.len += 2;
				break;
			case 28:
				f.b[f.len - 1] ^= 0x80;
				seal = false;
				want = ICRC;
				break;
			case 29:
				bth[20] ^= 1;
				seal = false;
				want = ICRC;
				break;
			case 30:
				ip[k.ipv4 ? 2 : 4] = 0xff; /* as long as it can be */
				ip[k.ipv4 ? 3 : 5] = 0xfe;
				udp[4] = 0xff;
				udp[5] = k.ipv4 ? 0xea : 0xfe;
				break;
			}
			if (fault > 10 && seal && fault != 21 && fault != 22 && fault != 23)
				packet_seal(&k, &f);
			bench_clear_logs(b);
			bench_frame(b, &f, err);
			bench_drain(b, 5000);
			for (int c = 0; c < 5; c++)
				if (b->cnt[counters[c]] != (c == want))
					fail_msg("QP %d fault %d: counter %d is %d", i, fault,
						 counters[c], (int)b->cnt[counters[c]]);
			assert_int_equal(b->cnt[URDMA_CNT_RX_FRAMES], 1);
			assert_int_equal(b->bytes, f.len < 60 ? 60 : f.len);
			check(b);
		}
		/* wrong state, wrong type, wrong life */
		for (int fault = 0; fault < 5; fault++) {
			struct rx_cfg c = r->cfg;
			struct packet k = r->hdr;

			c.exists = fault != 0;
			c.state = fault == 1   ? URDMA_QPS_ERR
				  : fault == 2 ? URDMA_QPS_INIT
					       : URDMA_QPS_RTS;
			c.type = fault == 3 ? 4 : URDMA_QPT_RC;
			k.opcode = 4;
			k.psn = 100;
			packet_build(&k, &f);
			bench_cfg(b, &c);
			if (fault == 4)
				bench_ctl_wait(b, false, QPC_RESET, c.qpn, 0, 100);
			bench_frame(b, &f, false);
			bench_drain(b, 5000);
			assert_int_equal(b->cnt[URDMA_CNT_RX_NO_QP], 1);
			check(b);
		}
		bench_cfg(b, &r->cfg);
	}
	/* the buffer has not leaked: all of it can still be filled */
	qp_init(b, 0, 5, 6, 6, 0);
	for (int i = 0; i < 32; i++) {
		struct sge s = { HOST_VA + DATA_OFF + 4096 * i, 4096, LKEY };

		post(b, &refs[0], &s, 1);
	}
	ring(b, &refs[0]);
	bench_drain(b, 1000);
	b->hold_wr = true;
	for (int i = 0; i < 32; i++) {
		fill(b, 4096);
		send_message(b, &refs[0], 4096, false, false, 0);
	}
	bench_run(b, 4000);
	b->hold_wr = false;
	bench_drain(b, 10000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
	check(b);
	bench_free(b);
}

/* Faster than anything downstream: each packet is taken whole or dropped whole, and counted. */
static void test_overrun(void **state)
{
	struct bench *b = start();
	struct ref *r = &refs[0];
	static struct frame f;
	unsigned int n = 0;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	qp_init(b, 0, 5, 10, 6, 0);
	qp_init(b, 1, 5, 4, 6, 0);
	/* frames of one beat, one each cycle, too many for the queues: all of one PSN, so that all
	 * but the first are duplicates */
	post(b, r, NULL, 0);
	ring(b, r);
	bench_drain(b, 1000);
	for (int i = 0; i < 1000; i++) {
		struct packet k = r->hdr;

		k.opcode = 4;
		packet_build(&k, &f);
		bench_frame(b, &f, false);
	}
	bench_drain(b, 20000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_FRAMES], 1000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_RDMA_PKTS] + b->cnt[URDMA_CNT_RX_DROP_FULL], 1000);
	assert_true(b->cnt[URDMA_CNT_RX_DROP_FULL] > 0);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DUP], b->cnt[URDMA_CNT_RX_RDMA_PKTS] - 1);
	assert_int_equal(b->n_cqes[0], 1);
	print_message("one-beat frames without a gap: %u of 1000 taken\n",
		      (unsigned int)b->cnt[URDMA_CNT_RX_RDMA_PKTS]);
	ref_clear(r);
	bench_clear_logs(b);

	/* DMA stands still: the buffer fills; what was taken before is right */
	qp_init(b, 0, 5, 10, 6, 0);
	for (int i = 0; i < 80; i++) {
		struct sge s = { take(b, 4000, 1), 4000, LKEY };

		post(b, r, &s, 1);
	}
	ring(b, r);
	bench_drain(b, 1000);
	b->hold_wr = true;
	for (int i = 0; i < 80; i++) {
		fill(b, 4000);
		/* the reference takes those that find room: 63 lines each */
		if (n + 63 <= 2048) {
			send_message(b, r, 4000, false, false, 0);
			n += 63;
		} else {
			struct packet k = r->hdr;

			k.opcode = 4;
			k.psn = i;
			k.payload = payload;
			k.len = 4000;
			packet_build(&k, &f);
			bench_frame(b, &f, false);
		}
	}
	bench_run(b, 8000);
	b->hold_wr = false;
	bench_drain(b, 50000);
	assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 80 - n / 63);
	check(b);
	bench_free(b);
}

/* Packets of several QPs interleaved, with all that can go wrong; the reference says what happens.
 */
static void test_soak(void **state)
{
	struct bench *b = start();
	unsigned int total = 0;

	(void)state;
	for (int round = 0; round < 60; round++) {
		size_t lines = 0;

		bench_settings(b, round % 3 ? rnd_in(b, 20, 100) : 100,
			       round % 4 ? rnd_in(b, 0, 60) : 0, rnd_in(b, 2, 20),
			       rnd_in(b, 20, 150));
		next_va = HOST_VA + DATA_OFF;
		for (int q = 0; q < QPS; q++) {
			struct ref *r = &refs[q];
			unsigned int most, posts;

			if (!r->active || r->err)
				qp_init(b, q, rnd_in(b, 1, 5), rnd_in(b, 3, 7), rnd_in(b, 6, 9),
					round & 1 ? 0xfffff8 : rnd(b));
			most = ((1u << r->cfg.rq_log_stride) - 16) / 16;
			posts = (1u << r->cfg.rq_log_entries) - (uint16_t)(r->pi - r->ci);
			if (posts > 12)
				posts = 12;
			posts = rnd(b) % (posts + 1);
			while (posts--) {
				struct sge s[32];
				unsigned int n =
					shape_sges(b, rnd(b) % 5, rnd_in(b, 0, 6000), s, most);

				switch (rnd(b) % 40) {
				case 0: /* keys: none, other PD, no right */
					if (n)
						s[rnd(b) % n].key = LKEY + rnd_in(b, 1, 3);
					break;
				case 1: /* one byte too far */
					if (n)
						s[n - 1].va =
							HOST_VA + HOST_SIZE - s[n - 1].len + 1;
					break;
				case 2:
					n = most + 1;
					memset(s, 0, sizeof(s));
					break;
				}
				post(b, r, s, n);
			}
			ring(b, r);
			if (rnd(b) % 3 == 0)
				bench_db(b, r->cfg.qpn,
					 r->pi - rnd(b) % 4); /* an old one repeated */
		}
		bench_drain(b, 20000);
		/* the buffer and the queue of 64 packets must not overflow: the reference knows
		 * nothing of it */
		for (int i = 0; i < 60 && lines < 1900; i++) {
			int q = rnd(b) % QPS;
			struct ref *r = &refs[q];
			size_t mtu = 128u << r->cfg.mtu, len;
			uint32_t psn = r->epsn;
			uint8_t op;

			if (r->in_msg)
				op = rnd(b) % 3 ? 1 : rnd_in(b, 2, 3);
			else
				op = rnd(b) % 3 ? rnd_in(b, 4, 5) : 0;
			len = op < 2 ? mtu : rnd_in(b, 1, mtu);
			if (op > 3 && rnd(b) % 8 == 0)
				len = 0;
			switch (rnd(b) % 50) {
			case 0:
			case 1:
				psn -= rnd_in(b, 1, 5);
				break;
			case 2:
			case 3:
				psn += rnd_in(b, 1, 5);
				break;
			case 4:
				op = rnd(b) % 6;
				break;
			case 5:
				len = rnd_in(b, 0, mtu < 4000 ? mtu + 96 : mtu);
				break;
			case 6:
				if (rnd(b) % 4 == 0)
					op = rnd_in(b, 6, 0x17);
				break;
			}
			if (op > 5)
				len = 64; /* so many that the extended headers fit in */
			fill(b, len);
			if (op > 5) {
				static struct frame f;
				static const uint8_t ext[0x18] = { 0, 0, 0,  0,	 0,  0, 16, 0,
								   0, 4, 16, 20, 16, 4, 0,  4,
								   4, 4, 12, 28, 28, 0, 4,  4 };
				struct packet k = r->hdr;

				if (op == 0x11)
					continue;
				k.opcode = op;
				k.psn = psn & 0xffffff;
				k.payload = payload;
				k.len = len;
				k.ext_len = ext[op];
				packet_build(&k, &f);
				bench_frame(b, &f, false);
				ref_packet(b, r, &k);
			} else {
				send_packet(b, r, op, psn, payload, len, rnd(b) % 2, rnd(b) % 2);
			}
			lines += (len + 63) / 64;
			total++;
			if (rnd(b) % 4 == 0)
				bench_run(b, rnd_in(b, 1, 200));
		}
		bench_drain(b, 100000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		/* qp_mgr's part: each QP that ended gets QPC_ERR, and its queue flushes */
		for (int q = 0; q < QPS; q++) {
			if (!refs[q].err)
				continue;
			bench_ctl(b, false, QPC_ERR, refs[q].cfg.qpn, 0);
			ref_flush(&refs[q]);
		}
		bench_drain(b, 100000);
		check(b);
	}
	print_message("%u packets\n", total);
	bench_free(b);
}

/* Receive queues in ERR: long ones, several at once, doorbells that come later, QUERY, a new life.
 */
static void test_flush(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int q = 0; q < 4; q++) {
		struct ref *r = &refs[q];

		qp_init(b, q, 1, 8, 6, 50);
		for (int i = 0; i < 200; i++) {
			struct sge s = { take(b, 1000, 1), 1000, LKEY };

			post(b, r, &s, 1);
		}
		ring(b, r);
	}
	bench_drain(b, 1000);
	/* a message in progress, and one complete before it */
	fill(b, 1000);
	for (int q = 0; q < 4; q++) {
		send_message(b, &refs[q], 700, false, false, 0);
		send_packet(b, &refs[q], 0, refs[q].epsn, payload, 256, false, false);
		refs[q].err = true;
	}
	bench_run(b, 400);
	for (int q = 0; q < 4; q++)
		bench_ctl(b, false, QPC_ERR, QPN0 + q, 0);
	for (int q = 0; q < 4; q++)
		ref_flush(&refs[q]);
	bench_drain(b, 20000);
	check(b);
	/* posting in ERR flushes */
	for (int i = 0; i < 5; i++) {
		for (int q = 0; q < 4; q++) {
			post(b, &refs[q], NULL, 0);
			ring(b, &refs[q]);
		}
	}
	bench_ctl(b, false, QPC_ERR, QPN0, 0); /* once more is harmless */
	bench_drain(b, 20000);
	check(b);
	bench_ctl_wait(b, false, QPC_QUERY, QPN0 + 1, 0, 100);
	assert_int_equal(b->ctl.qpc_pi, 205);
	assert_int_equal(b->ctl.qpc_ci, 205);
	assert_int_equal(b->ctl.qpc_psn, 54);
	/* a doorbell beyond the ring ends its QP, and no other */
	qp_init(b, 4, 1, 4, 6, 50);
	bench_db(b, QPN0 + 4, 17);
	bench_drain(b, 1000);
	refs[4].errs[refs[4].n_errs++] = (struct bench_err){ QPN0 + 4, URDMA_EV_QP_FATAL };
	check(b);
	/* a new life begins at index 0, PSN as told */
	qp_init(b, 1, 2, 3, 6, 0x777);
	post(b, &refs[1], &(struct sge){ HOST_VA + DATA_OFF, 512, LKEY }, 1);
	ring(b, &refs[1]);
	bench_drain(b, 1000);
	send_message(b, &refs[1], 512, true, true, 0);
	bench_drain(b, 2000);
	check(b);
	bench_ctl_wait(b, false, QPC_QUERY, QPN0 + 1, 0, 100);
	assert_int_equal(b->ctl.qpc_pi, 1);
	assert_int_equal(b->ctl.qpc_ci, 1);
	assert_int_equal(b->ctl.qpc_psn, 0x778);
	bench_free(b);
}

/* A receive WQE, or the address of its ring, that cannot be read. */
static void test_wqe_errors(void **state)
{
	struct bench *b = start();

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	for (int kind = 0; kind < 2; kind++) {
		struct ref *r = &refs[0];

		qp_init(b, 0, 3, 4, 7, 9);
		for (int i = 0; i < 4; i++)
			post(b, r, &(struct sge){ take(b, 64, 64), 64, LKEY }, 1);
		ring(b, r);
		bench_drain(b, 1000);
		fill(b, 64);
		send_message(b, r, 64, false, false, 0);
		bench_drain(b, 2000);
		check(b);
		if (kind) {
			b->fail_rd = 0;
		} else {
			r->cfg.rq_addr = HOST_BUS + HOST_SIZE;
			bench_cfg(b, &r->cfg);
		}
		/* three at once: the first fails, the others must leave no trace */
		for (int i = 0; i < 3; i++) {
			struct packet k = r->hdr;
			static struct frame f;

			k.opcode = 4;
			k.psn = 10 + i;
			k.payload = payload;
			k.len = 64;
			k.ackreq = true;
			packet_build(&k, &f);
			bench_frame(b, &f, false);
		}
		ref_ack(r, 10, 0x63, 1);
		ref_cqe(r, r->ci++, URDMA_WC_LOC_QP_OP_ERR, 0, NULL, false);
		ref_error(r, 0);
		bench_drain(b, 3000);
		check(b);
		r->cfg.rq_addr = HOST_BUS + RING_OFF;
		bench_cfg(b, &r->cfg);
		bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
		ref_flush(r);
		bench_drain(b, 3000);
		check(b);
	}
	bench_free(b);
}

/* ---- requester completion
 * ------------------------------------------------------------------------------ */

/* How many more messages tx may send: the table has a place for each. */
static unsigned int req_room(struct bench *b, struct req *q)
{
	for (unsigned int k = 0; k < b->n_ackeds; k++)
		if (b->ackeds[k].qpn == q->qpn)
			q->seen = b->ackeds[k].wqe;
	return 128 - (uint16_t)(q->tail - q->seen);
}

static void req_walk(struct req *q, int i)
{
	for (; q->head != q->tail; q->head++) {
		struct rx_sent *s = &q->s[q->head];
		uint8_t st = s->status;

		if (!s->status && ((s->psn - q->una) & 0x800000)) {
			st = 0;
		} else if (q->nak) {
			st = q->nak;
			q->nak = 0;
		} else if (q->err) {
			st = URDMA_WC_FLUSH_ERR;
		} else if (s->status) {
			if (s->status != URDMA_WC_FLUSH_ERR) {
				q->err = true;
				q->n_errs++;
			}
		} else {
			return;
		}
		if (st || s->signaled) {
			struct bench_cqe *c = &q->cqes[q->n_cqes++];

			memset(c, 0, sizeof(*c));
			c->cqn = 30 + i;
			c->w[0] = s->opcode << 8 | (uint64_t)st << 16 | (uint64_t)q->head << 32;
			c->w[1] = s->len | (uint64_t)q->qpn << 32;
		}
	}
}

static void req_sent(struct bench *b, struct req *q, unsigned int packets, uint8_t status)
{
	struct rx_sent s = { .qpn = q->qpn,
			     .wqe = q->tail,
			     .opcode = rnd(b) & 1,
			     .signaled = rnd(b) % 3 != 0,
			     .status = status,
			     .len = rnd(b) & 0x3fffffff };

	q->next = (q->next + packets) & 0xffffff;
	s.psn = status ? q->next : (q->next - 1) & 0xffffff;
	q->s[q->tail++] = s;
	bench_sent(b, &s);
	req_walk(q, q - reqs);
}

static void req_ack(struct bench *b, struct req *q, uint32_t psn, uint8_t syndrome)
{
	static const uint8_t code[] = { URDMA_WC_RETRY_EXC_ERR, URDMA_WC_REM_INV_REQ_ERR,
					URDMA_WC_REM_ACCESS_ERR, URDMA_WC_REM_OP_ERR };
	static struct frame f;
	struct packet k = refs[q - reqs].hdr;

	psn &= 0xffffff;
	k.opcode = 0x11;
	k.psn = psn;
	k.ext[0] = syndrome;
	k.ext[3] = rnd(b);
	k.ext_len = 4;
	packet_build(&k, &f);
	bench_frame(b, &f, false);
	if (((psn - q->una) & 0x800000) || q->err)
		return;
	if (!(syndrome & 0x60)) {
		q->una = (psn + 1) & 0xffffff;
	} else {
		q->una = psn;
		q->err = true;
		q->n_errs++;
		q->nak = syndrome & 0x40 ? code[syndrome & 3] : URDMA_WC_RNR_RETRY_EXC_ERR;
	}
	req_walk(q, q - reqs);
}

static void req_init(struct bench *b, int i, uint32_t psn)
{
	struct req *q = &reqs[i];

	qp_init(b, i, 3, 4, 6, 0);
	bench_ctl_wait(b, true, QPC_RESET, QPN0 + i, 0, 200);
	bench_ctl_wait(b, true, QPC_SQ_PSN, QPN0 + i, psn, 200);
	memset(q, 0, sizeof(*q));
	q->qpn = QPN0 + i;
	q->una = q->next = psn & 0xffffff;
}

static void req_check(struct bench *b)
{
	for (int i = 0; i < 4; i++) {
		struct req *q = &reqs[i];
		unsigned int n = 0, errs = 0;
		const struct bench_acked *last = NULL;

		if (!q->qpn)
			continue;
		for (unsigned int k = 0; k < b->n_cqes[1]; k++) {
			const struct bench_cqe *c = &b->cqes[1][k], *e = &q->cqes[n];

			if ((c->w[1] >> 32) != q->qpn)
				continue;
			if (n >= q->n_cqes || memcmp(c, e, sizeof(*c)))
				fail_msg("cycle %llu seed %u: QP %u send CQE %u: %016llx %016llx, "
					 "expected (of %u)"
					 " %016llx %016llx",
					 (unsigned long long)b->cycle, seed, q->qpn, n,
					 (unsigned long long)c->w[0], (unsigned long long)c->w[1],
					 q->n_cqes, (unsigned long long)e->w[0],
					 (unsigned long long)e->w[1]);
			n++;
		}
		if (n != q->n_cqes)
			fail_msg("cycle %llu seed %u: QP %u: %u send CQEs, expected %u",
				 (unsigned long long)b->cycle, seed, q->qpn, n, q->n_cqes);
		for (unsigned int k = 0; k < b->n_errs[1]; k++)
			errs += b->errs[1][k].qpn == q->qpn && !b->errs[1][k].event;
		assert_int_equal(errs, q->n_errs);
		for (unsigned int k = 0; k < b->n_ackeds; k++) {
			if (b->ackeds[k].qpn != q->qpn)
				continue;
			if (last && ((uint16_t)(b->ackeds[k].wqe - last->wqe) > 0x7fff ||
				     ((b->ackeds[k].una - last->una) & 0x800000)))
				fail_msg("QP %u: progress goes back", q->qpn);
			last = &b->ackeds[k];
		}
		if (last && (last->wqe != q->head || last->una != q->una))
			fail_msg("QP %u: progress reported to WQE %u, PSN %x, expected %u, %x",
				 q->qpn, last->wqe, last->una, q->head, q->una);
		if (n && !last)
			fail_msg("QP %u: no progress reported", q->qpn);
		q->n_cqes = q->n_errs = 0;
		req_room(b, q);
		bench_ctl_wait(b, true, QPC_QUERY, q->qpn, 0, 200);
		assert_int_equal(b->ctl.aqc_psn, q->una);
		assert_int_equal(b->ctl.aqc_pi, q->tail);
		assert_int_equal(b->ctl.aqc_ci, q->head);
	}
	bench_clear_logs(b);
}

static void test_requester(void **state)
{
	struct bench *b = start();
	unsigned int acks = 0, msgs = 0;

	(void)state;
	for (int round = 0; round < 40; round++) {
		bench_settings(b, round % 3 ? rnd_in(b, 20, 100) : 100, 0, 4, 20);
		for (int i = 0; i < 4; i++)
			if (!reqs[i].qpn || reqs[i].err)
				req_init(b, i, round & 1 ? 0xfffff0 : rnd(b));
		for (int step = 0; step < 30; step++) {
			struct req *q = &reqs[rnd(b) % 4];
			unsigned int n = rnd_in(b, 1, 40), out;

			while (n-- && req_room(b, q) && !q->err) {
				req_sent(b, q, rnd_in(b, 1, 5), 0);
				msgs++;
			}
			if (rnd(b) % 2)
				bench_drain(b, 20000);
			out = (q->next - q->una) & 0xffffff;
			if (!out || q->err)
				continue;
			/* an acknowledgement follows its message; the bench's two ports know no
			 * order */
			bench_drain(b, 20000);
			switch (rnd(b) % 60) {
			case 0:
				req_ack(b, q, q->una + rnd(b) % out, 0x60 + rnd(b) % 4);
				break;
			case 1:
				req_ack(b, q, q->una + rnd(b) % out, 0x20 + rnd(b) % 32);
				break;
			case 2: /* a ghost: long acknowledged */
				req_ack(b, q, q->una - rnd_in(b, 1, 100000),
					rnd(b) & 1 ? 0x1f : 0x63);
				break;
			default:
				req_ack(b, q, q->una + rnd(b) % out, rnd(b) % 32);
			}
			acks++;
			if (rnd(b) % 2)
				bench_drain(b, 20000);
			if (rnd(b) % 40 == 0 && !q->err) {
				bench_drain(b, 20000);
				if (!req_room(b, q))
					continue;
				req_sent(b, q, 0, URDMA_WC_LOC_PROT_ERR);
			}
		}
		bench_drain(b, 20000);
		/* qp_mgr's part: the table flushes, and what tx still has comes with FLUSH_ERR */
		for (int i = 0; i < 4; i++) {
			struct req *q = &reqs[i];

			if (!q->err && rnd(b) % 4)
				continue;
			q->err = true;
			bench_ctl(b, true, QPC_ERR, q->qpn, 0);
			req_walk(q, i);
		}
		bench_drain(b, 20000);
		for (int i = 0; i < 4; i++) {
			unsigned int n = rnd(b) % 60;

			while (reqs[i].err && n-- && req_room(b, &reqs[i]))
				req_sent(b, &reqs[i], 0, URDMA_WC_FLUSH_ERR);
		}
		bench_drain(b, 20000);
		req_check(b);
	}
	/* a NAK for a message whose last packet tx has not made yet: the error goes to the flushed
	 * entry */
	req_init(b, 0, 1000);
	req_sent(b, &reqs[0], 2, 0);
	bench_drain(b, 1000);
	req_ack(b, &reqs[0], 1005, 0x62);
	bench_drain(b, 1000);
	assert_int_equal(b->n_errs[1], 1);
	bench_ctl(b, true, QPC_ERR, reqs[0].qpn, 0);
	bench_drain(b, 1000);
	req_sent(b, &reqs[0], 0, URDMA_WC_FLUSH_ERR);
	req_sent(b, &reqs[0], 0, URDMA_WC_FLUSH_ERR);
	bench_drain(b, 1000);
	assert_int_equal(reqs[0].head, 3);
	req_check(b);
	/* an acknowledgement that overtakes its message */
	req_init(b, 1, 0xffffff);
	req_ack(b, &reqs[1], 0xffffff, 0x1f);
	bench_drain(b, 1000);
	req_sent(b, &reqs[1], 1, 0);
	bench_drain(b, 1000);
	assert_int_equal(reqs[1].head, 1);
	req_check(b);
	print_message("%u messages, %u acknowledgements\n", msgs, acks);
	bench_free(b);
}

/* ---- control against the data path
 * ----------------------------------------------------------------------- */

/* With every output stopped and work piled up, control is still answered; a fence waits for what it
 * must. */
static void test_control(void **state)
{
	struct bench *b = start();
	struct ref *r = &refs[0];
	unsigned int before;

	(void)state;
	next_va = HOST_VA + DATA_OFF;
	qp_init(b, 0, 1, 8, 6, 0);
	qp_init(b, 1, 1, 8, 6, 0);
	req_init(b, 2, 0);
	for (int i = 0; i < 200; i++)
		post(b, r, &(struct sge){ take(b, 64, 64), 64, LKEY }, 1);
	ring(b, r);
	bench_drain(b, 1000);

	/* the fence with nothing to do */
	b->in.fence_req = true;
	for (int i = 0; i < 60 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	b->in.fence_req = false;
	bench_cycle(b);
	bench_cycle(b);
	assert_false(b->out.fence_done);

	b->hold_wr = b->hold_cqe[0] = b->hold_cqe[1] = b->hold_ack = true;
	for (int i = 0; i < 40; i++) {
		fill(b, 64);
		send_message(b, r, 64, false, false, 1);
	}
	for (int i = 0; i < 50; i++)
		req_sent(b, &reqs[2], 1, 0);
	bench_run(b, 100);
	req_ack(b, &reqs[2], 49, 0x1f);
	bench_run(b, 1000);
	b->in.fence_req = true;
	bench_run(b, 500);
	assert_false(b->out.fence_done);
	for (int i = 0; i < 3; i++) {
		bench_ctl_wait(b, false, QPC_QUERY, QPN0 + i, 0, 20);
		bench_ctl_wait(b, true, QPC_QUERY, QPN0 + i, 0, 20);
	}
	bench_ctl_wait(b, false, QPC_ERR, QPN0 + 1, 0, 20);
	bench_ctl_wait(b, true, QPC_ERR, QPN0 + 1, 0, 20);
	bench_ctl_wait(b, true, QPC_ERR, QPN0 + 2, 0, 20);
	reqs[2].err = true;
	assert_false(b->out.fence_done);
	b->hold_wr = b->hold_cqe[1] = b->hold_ack = false;
	bench_run(b, 500);
	assert_false(b->out.fence_done); /* the responder's CQEs are still held */
	b->hold_cqe[0] = false;
	for (int i = 0; i < 2000 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	assert_int_equal(b->n_cqes[0], 40);
	b->in.fence_req = false;
	bench_drain(b, 5000);
	req_check(b);
	bench_clear_logs(b);
	for (int i = 0; i < 2; i++)
		ref_clear(&refs[i]);

	/* work that keeps coming does not delay a fence without bound */
	for (int i = 0; i < 150; i++) {
		fill(b, 64);
		send_message(b, r, 64, false, false, 1);
	}
	b->gap = 90;
	bench_run(b, 300);
	before = b->cycle;
	b->in.fence_req = true;
	for (int i = 0; i < 1000 && !b->out.fence_done; i++)
		bench_cycle(b);
	assert_true(b->out.fence_done);
	print_message("fence under load: %u cycles\n", (unsigned int)b->cycle - before);
	assert_true(b->out.busy || b->n_cqes[0] < 150);
	b->in.fence_req = false;
	b->gap = 0;
	bench_drain(b, 5000);
	check(b);

	/* RESET while packets are in flight: none of them counts in the new life */
	qp_init(b, 3, 1, 8, 6, 0);
	for (int i = 0; i < 20; i++)
		post(b, &refs[3], &(struct sge){ take(b, 64, 64), 64, LKEY }, 1);
	ring(b, &refs[3]);
	bench_drain(b, 1000);
	b->hold_rd = true;
	for (int i = 0; i < 10; i++) {
		fill(b, 64);
		send_message(b, &refs[3], 64, false, false, 1);
	}
	bench_run(b, 300);
	ref_clear(&refs[3]);
	qp_init(b, 3, 1, 8, 6, 0);
	b->hold_rd = false;
	bench_drain(b, 2000);
	memcpy(b->shadow, b->host, HOST_SIZE);
	check(b);
	bench_ctl_wait(b, false, QPC_QUERY, QPN0 + 3, 0, 20);
	assert_int_equal(b->ctl.qpc_ci, 0);
	bench_free(b);
}

/* ---- rates and latency
 * ------------------------------------------------------------------------------------ */

static void test_rates(void **state)
{
	struct bench *b = start();
	static const struct {
		const char *name;
		int qps;
		size_t len;
		unsigned int n;
		unsigned int spacing; /* cycles from frame to frame */
	} runs[] = {
		{ "64-byte SENDs, 8 QPs", 8, 64, 1000, 3 },
		{ "64-byte SENDs, one QP", 1, 64, 1000, 3 },
		{ "4096-byte SENDs, one QP, 100 Gb/s", 1, 4096, 300, 84 },
		{ "4096-byte SENDs, 8 QPs, unaligned", 8, 4096, 300, 84 },
		{ "4096-byte SENDs, 64 bytes a cycle", 1, 4096, 300, 67 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(runs) / sizeof(runs[0]); k++) {
		double per;

		next_va = HOST_VA + DATA_OFF;
		bench_settings(b, 100, 0, 8, 100);
		for (int q = 0; q < runs[k].qps; q++)
			qp_init(b, q, 5, 10, 6, 0);
		for (unsigned int i = 0; i < runs[k].n; i++)
			post(b, &refs[i % runs[k].qps],
			     &(struct sge){ take(b, runs[k].len + 9, 64) + (k == 3 ? 9 : 0),
					    runs[k].len, LKEY },
			     1);
		for (int q = 0; q < runs[k].qps; q++)
			ring(b, &refs[q]);
		bench_drain(b, 3000);
		bench_clear_logs(b);
		for (unsigned int i = 0; i < runs[k].n; i++) {
			fill(b, runs[k].len);
			send_message(b, &refs[i % runs[k].qps], runs[k].len, false, false, 1);
			bench_run(b, runs[k].spacing);
		}
		bench_drain(b, 200000);
		per = (double)(b->last_wr - b->first_wr) / (runs[k].n - 1);
		print_message("%-36s %6.2f cycles a packet\n", runs[k].name, per);
		/* none was lost, so what came at this spacing was taken at this spacing */
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		assert_true(per < runs[k].spacing + 0.5);
		check(b);
	}
	/* latency: one 64-byte SEND, nothing else, host and translation as fast as can be */
	qp_init(b, 0, 5, 4, 6, 0);
	post(b, &refs[0], &(struct sge){ HOST_VA + DATA_OFF, 64, LKEY }, 1);
	ring(b, &refs[0]);
	bench_settings(b, 100, 0, 1, 1);
	bench_drain(b, 1000);
	bench_clear_logs(b);
	b->mr_latency = b->rd_latency = 0;
	fill(b, 64);
	send_message(b, &refs[0], 64, false, false, 1);
	bench_drain(b, 1000);
	print_message("latency, first beat to DMA write: %u cycles\n",
		      (unsigned int)(b->last_wr - b->first_mac));
	assert_true(b->last_wr - b->first_mac <= 60);
	check(b);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	   cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_malformed),  cmocka_unit_test(test_overrun),
		cmocka_unit_test(test_soak),	   cmocka_unit_test(test_flush),
		cmocka_unit_test(test_wqe_errors), cmocka_unit_test(test_requester),
		cmocka_unit_test(test_control),	   cmocka_unit_test(test_rates),
	};

	seed = getenv("URDMA_SEED") ? strtoul(getenv("URDMA_SEED"), NULL, 0) : 1;
	print_message("seed %u (URDMA_SEED)\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
