// SPDX-License-Identifier: Apache-2.0
/*
 * urdma_rx alone: frames in at the MAC; payload, CQEs, acknowledgements and errors out, against a reference written
 * from the specification. URDMA_SEED repeats a run. A failure here means that a packet was taken, refused,
 * placed or answered other than IBA volume 1, chapter 9, says.
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

/* ---- reference: the responder of one QP ------------------------------------------------------------- */

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

static void ref_clear(struct ref *r)
{
	r->n_acks = r->n_cqes = r->n_errs = 0;
}

static uint64_t wqe_va(const struct ref *r, uint16_t idx)
{
	return HOST_VA + (r->cfg.rq_addr - HOST_BUS) +
	       ((uint64_t)(idx & ((1u << r->cfg.rq_log_entries) - 1)) << r->cfg.rq_log_stride);
}

static void ref_cqe(struct ref *r, uint16_t wqe, uint8_t status, uint32_t len, const uint8_t *imm, bool se)
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
static uint8_t ref_place(struct bench *b, struct ref *r, uint16_t idx, uint32_t off, const uint8_t *p, size_t len)
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
			if (na >= r->n_acks || memcmp(&a->psn, &e->psn, 8) || a->syndrome != e->syndrome)
				fail_msg("cycle %llu seed %u: QP %u acknowledgement %u: PSN %x MSN %x syndrome %x,"
					 " expected (of %u) %x %x %x", (unsigned long long)b->cycle, seed,
					 a->qpn, na, a->psn, a->msn, a->syndrome, r->n_acks, e->psn, e->msn,
					 e->syndrome);
			na++;
		}
		for (unsigned int k = 0; k < b->n_cqes[0]; k++) {
			const struct bench_cqe *c = &b->cqes[0][k], *e = &r->cqes[nc];

			if ((c->w[1] >> 32) != r->cfg.qpn)
				continue;
			if (nc >= r->n_cqes || memcmp(c->w, e->w, 32) || c->cqn != e->cqn ||
			    c->solicited != e->solicited)
				fail_msg("cycle %llu seed %u: QP %u CQE %u: %016llx %016llx %016llx, expected (of %u)"
					 " %016llx %016llx %016llx", (unsigned long long)b->cycle, seed,
					 r->cfg.qpn, nc, (unsigned long long)c->w[0],
					 (unsigned long long)c->w[1], (unsigned long long)c->w[2], r->n_cqes,
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
			fail_msg("cycle %llu seed %u: QP %u: %u acknowledgements, %u CQEs, %u errors, expected %u, %u,"
				 " %u", (unsigned long long)b->cycle, seed, r->cfg.qpn, na, nc, ne, r->n_acks,
				 r->n_cqes, r->n_errs);
		ref_clear(r);
	}
	for (size_t i = 0; i < HOST_SIZE; i++)
		if (b->host[i] != b->shadow[i])
			fail_msg("cycle %llu seed %u: host memory differs at offset %#zx: %02x, expected %02x",
				 (unsigned long long)b->cycle, seed, i, b->host[i], b->shadow[i]);
	bench_clear_logs(b);
}

/* ---- setting up -------------------------------------------------------------------------------------- */

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
		struct rx_gid g = { .idx = i, .valid = true, .ipv4 = i == 0 || i == 3, .vlan_valid = i & 1 };

		g.vlan = g.vlan_valid ? 5 : 0;
		memcpy(g.smac, mac_own, 6);
		(g.ipv4 ? gid4 : gid6)(g.gid, 2);
		bench_gid(b, &g);
	}
}

static void set_state(struct bench *b, struct ref *r, uint8_t state)
{
	r->cfg.state = state;
	bench_cfg(b, &r->cfg);
}

static void qp_init(struct bench *b, int i, uint8_t mtu, uint8_t log_entries, uint8_t log_stride, uint32_t psn)
{
	struct ref *r = &refs[i];
	struct rx_cfg c = { .qpn = QPN0 + i, .exists = true, .state = URDMA_QPS_RTS, .type = URDMA_QPT_RC,
			    .pd = 7, .send_cq = 30 + i, .recv_cq = 20 + i,
			    .rq_log_entries = log_entries, .rq_log_stride = log_stride, .mtu = mtu,
			    .min_rnr = i, .dest_qpn = 0xabc00 + i, .pkey = 0xffff, .sgid = i & 3 };

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
	b->mr[0] = (struct bench_mr){ LKEY, 7, URDMA_ACC_LOCAL_WRITE, HOST_VA + DATA_OFF, HOST_SIZE - DATA_OFF };
	b->mr[1] = (struct bench_mr){ LKEY + 1, 8, URDMA_ACC_LOCAL_WRITE, HOST_VA + DATA_OFF, 1 << 20 };
	b->mr[2] = (struct bench_mr){ LKEY + 2, 7, URDMA_ACC_REMOTE_READ, HOST_VA + DATA_OFF, 1 << 20 };
	b->mrs = 3;
	for (int i = 0; i < QPS; i++)
		memset(&refs[i], 0, sizeof(refs[i]));
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

static void send_packet(struct bench *b, struct ref *r, uint8_t opcode, uint32_t psn, const uint8_t *p, size_t len,
			bool ackreq, bool se)
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

/* A whole message at the QP's MTU; every ack_every-th packet and the last ask for an acknowledgement. */
static void send_message(struct bench *b, struct ref *r, size_t len, bool imm, bool se, unsigned int ack_every)
{
	size_t mtu = 128u << r->cfg.mtu, off = 0;
	uint32_t psn = r->epsn;
	unsigned int n = 0;

	do {
		size_t part = len - off < mtu ? len - off : mtu;
		bool last = off + part == len;
		uint8_t op = off ? (last ? (imm ? 3 : 2) : 1) : (last ? (imm ? 5 : 4) : 0);

		send_packet(b, r, op, psn++, payload + off, part, last || (ack_every && ++n % ack_every == 0),
			    last && se);
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
static unsigned int shape_sges(struct bench *b, int shape, size_t len, struct sge *s, unsigned int most)
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
		size_t part = n + 1 == most	? len
			      : shape == 2	? rnd_in(b, 1, 70)
			      : shape == 3	? rnd_in(b, 1, 5000)
						: (rnd(b) & 1 ? 0 : rnd_in(b, 1, 300));

		if (part > len)
			part = len;
		s[n++] = (struct sge){ take(b, part, 1), part, LKEY };
		next_va += rnd(b) % 200;
		len -= part;
	}
	return n;
}

/* ---- tests ------------------------------------------------------------------------------------------------ */

/* Frames made by scapy: its ICRC is an implementation of its own. */
static void test_vectors(void **state)
{
	static const uint8_t v4[] = {
		0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x45, 0x20,
		0x00, 0x3c, 0x00, 0x07, 0x00, 0x00, 0x40, 0x11, 0x66, 0x88, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00,
		0x00, 0x02, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x04, 0x50, 0xff, 0xff, 0x00, 0x00,
		0x00, 0x05, 0x80, 0x12, 0x34, 0x56, 0x75, 0x72, 0x64, 0x6d, 0x61, 0x75, 0x72, 0x64, 0x6d, 0x61,
		0x75, 0x72, 0x64, 0x6d, 0x61, 0x00, 0x8d, 0x3b, 0xe4, 0x4a
	};
	static const uint8_t v6[] = {
		0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x81, 0x00, 0x00, 0x05,
		0x86, 0xdd, 0x60, 0x95, 0x43, 0x21, 0x00, 0x28, 0x11, 0x07, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0xfe, 0x80, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x28,
		0x00, 0x00, 0x04, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x05, 0x80, 0x12, 0x34, 0x56, 0x30, 0x31,
		0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x96, 0x33,
		0x7a, 0xe3
	};
	struct bench *b = start();
	static struct frame f;

	(void)state;
	for (int v = 0; v < 2; v++) {
		const uint8_t *vec = v ? v6 : v4;
		size_t len = v ? sizeof(v6) : sizeof(v4), ip = v ? 18 : 14;
		struct sge s = { HOST_VA + DATA_OFF + 64 * v, 64, LKEY };
		struct packet k = { .opcode = 4, .psn = 0x123456, .ackreq = true, .payload = vec + len - 20,
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
			if ((!v && (bit / 8 == 15 || bit / 8 == 22 || bit / 8 == 40 || bit / 8 == 41 ||
				    bit / 8 == 46)) ||
			    (v && ((bit / 8 >= 19 && bit / 8 <= 21) || (bit / 8 == 18 && bit % 8 < 4) ||
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
				size_t sizes[] = { 0, 1, 63, 64, 65, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 17,
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
					size_t sizes[] = { 0, 1, 63, 64, 65, mtu - 1, mtu, mtu + 1, 2 * mtu,
							   3 * mtu + 17, shape < 2 ? 65536 : 9000 };

					fill(b, sizes[k]);
					send_message(b, r, sizes[k], rnd(b) & 1, rnd(b) & 1, rnd(b) % 4);
					n++;
					/* the buffer holds 128 KB, what comes faster than DMA is lost */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_sizes),
	};

	seed = getenv("URDMA_SEED") ? strtoul(getenv("URDMA_SEED"), NULL, 0) : 1;
	print_message("seed %u (URDMA_SEED)\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
