// SPDX-License-Identifier: Apache-2.0
/*
 * The extended reliable connection (volume 1, annex A14): target QPs of two domains, and SRQs that
 * their packets name. The reference (ref_xrc) checks each packet against the SRQ that it names:
 * whether it exists, its domain, its PD, and whether the message began with it.
 */
#include "rx_xrc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "opcode_rules.h"
#include "rx_srq.h"

#define SRQS	6u
#define SRQN0	40u
#define DOM	50u /* domains: DOM and DOM + 1 */
#define MTU	512u
#define NO_SRQ	900u
#define XRC_OFF 0x10000u /* of SRQ i: 16 KB from XRC_OFF + 0x4000 * i */

static struct ref_srq srqs[SRQS];

static uint64_t rem_at(unsigned int off)
{
	return HOST_VA + REM_OFF + off;
}

/* SRQs of even PD have PD 7, the others 8. */
static uint32_t lkey(const struct ref_srq *q)
{
	return q->cfg.pd == 7 ? LKEY : LKEY + 1;
}

static uint32_t rkey(const struct ref_srq *q)
{
	return q->cfg.pd == 7 ? RKEY : RKEY_PD;
}

/* SRQ i is created (again): in a domain, with a PD, as an XRC SRQ or not. */
static struct ref_srq *create(struct bench *b, unsigned int i, unsigned int dom, uint16_t pd,
			      bool xrc)
{
	struct ref_srq *q = &srqs[i];
	unsigned int life = q->life;

	memset(q, 0, sizeof(*q));
	q->cfg = (struct rx_sro){ .op = SRO_CREATE,
				  .srqn = SRQN0 + i,
				  .pd = pd,
				  .addr = HOST_BUS + XRC_OFF + 0x4000 * i,
				  .log_entries = 5,
				  .log_stride = 6,
				  .xrc = xrc,
				  .xrcd = DOM + dom,
				  .cqn = 70 + i };
	q->exists = true;
	q->life = life + 1;
	bench_srq(b, &q->cfg);
	return q;
}

static void destroy(struct bench *b, struct ref_srq *q)
{
	struct rx_sro op = { .op = SRO_DESTROY, .srqn = q->cfg.srqn };

	bench_srq(b, &op);
	q->exists = false;
}

/* SRQs 0 and 1 in domain 0 with PD 7 and 8, 2 and 3 in domain 1, 4 is no XRC SRQ, 5 is for tests.
 */
static struct bench *start_xrc(void)
{
	struct bench *b = start();

	memset(srqs, 0, sizeof(srqs));
	ref_xrc_srqs = srqs;
	ref_xrc_n = SRQS;
	/* as long as the other PD's */
	b->mr[1].len = HOST_SIZE - DATA_OFF;
	b->mr[5].len = b->mr[3].len;
	next_va = HOST_VA + DATA_OFF;
	for (unsigned int i = 0; i < 5; i++)
		create(b, i, i / 2 % 2, 7 + i % 2, i != 4);
	return b;
}

static struct ref *target(struct bench *b, int i, unsigned int dom)
{
	struct ref *r = &refs[i];

	qp_type = URDMA_QPT_XRC_TGT;
	qp_init(b, i, 2, 6, 6, 0xfffff0 + 13 * i);
	qp_type = URDMA_QPT_RC;
	r->cfg.pd = DOM + dom;
	/* a target has neither queue nor CQ */
	r->cfg.recv_cq = 0xeee;
	r->cfg.rq_addr = 0x10;
	bench_cfg(b, &r->cfg);
	return r;
}

static unsigned int posted(const struct ref_srq *q)
{
	return (uint16_t)(q->pi - q->ci);
}

/* All that is posted or held is in use; when the NIC is idle. */
static void recycle(void)
{
	for (unsigned int k = 0; k < SRQS; k++) {
		struct ref_srq *q = &srqs[k];

		memset(q->used, 0, sizeof(q->used));
		for (uint16_t i = q->ci; i != q->pi; i++)
			q->used[q->ring[i & 31]] = true;
		for (int i = 0; i < QPS; i++)
			if (refs[i].held && refs[i].msg_srq == q)
				q->used[refs[i].held_idx] = true;
	}
}

static void receives(struct bench *b, struct ref_srq *q, unsigned int n, uint32_t len)
{
	unsigned int room = 32;

	for (unsigned int i = 0; i < 32; i++)
		room -= q->used[i];
	for (n = n < room ? n : room; n; n--) {
		struct sge s[3];
		unsigned int k = 1 + rnd(b) % 3;

		for (unsigned int i = 0; i < k; i++)
			s[i] = (struct sge){ take(b, len / k + 1, 64), len / k + 1, lkey(q) };
		srq_post(b, q, s, k);
	}
	srq_ring(b, q);
}

/* A packet to a target: opcode of RC, ext without the XRCETH */
static void send_xrc(struct bench *b, struct ref *r, uint32_t srqn, uint8_t opcode, uint32_t psn,
		     const uint8_t *ext, size_t len, bool se)
{
	struct packet k = r->hdr;

	k.opcode = 0xa0 | opcode;
	k.psn = psn & 0xffffff;
	k.payload = payload;
	k.len = len;
	k.ackreq = rnd(b) % 4 != 0;
	k.se = se;
	k.ext_len = opc_rules[k.opcode].ext;
	put32(k.ext, srqn | (rnd(b) & 0xff) << 24);
	if (ext)
		memcpy(k.ext + 4, ext, k.ext_len - 4);
	send_as(b, r, &k);
}

static void send_plain(struct bench *b, struct ref *r, uint32_t srqn, uint8_t opcode, size_t len)
{
	uint32_t imm = rnd(b);

	fill(b, len);
	send_xrc(b, r, srqn, opcode, r->epsn, (uint8_t *)&imm, len, opcode == 5);
}

static void send_key(struct bench *b, struct ref *r, uint32_t srqn, uint8_t opcode, uint32_t psn,
		     uint64_t va, uint32_t key, uint32_t total, size_t len)
{
	uint8_t ext[28];

	put64(ext, va);
	put32(ext + 8, key);
	put32(ext + 12, total);
	put32(ext + 16, rnd(b));
	if (opcode == 0x13 || opcode == 0x14) {
		put64(ext + 12, rnd(b));
		put64(ext + 20, rnd(b) % 2);
	}
	if (opcode == 0x1c) { /* the FETH is first: a range or all of the region */
		memmove(ext + 4, ext, 16);
		put32(ext, URDMA_FLUSH_GLOBAL | (psn & 1) << 4);
	}
	fill(b, len);
	send_xrc(b, r, srqn, opcode, psn, opcode == 9 ? ext + 16 : ext, len, false);
}

static void message(struct bench *b, struct ref *r, uint32_t srqn, size_t len, bool imm)
{
	size_t off = 0;

	do {
		size_t part = len - off < MTU ? len - off : MTU;
		bool last = off + part == len;

		send_plain(b, r, srqn, off ? (last ? 2 + imm : 1) : (last ? 4 + imm : 0), part);
		off += part;
	} while (off < len);
}

/* As qp_mgr ends a QP. */
static void end_qp(struct bench *b, struct ref *r)
{
	bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
	r->err = true;
	ref_flush(r);
}

static void settle(struct bench *b)
{
	bench_drain(b, 100000);
	check(b);
	recycle();
}

/* What was refused: the QP ends, and begins a new life. */
static void renew(struct bench *b, int i, unsigned int dom)
{
	bench_drain(b, 100000);
	end_qp(b, &refs[i]);
	settle(b);
	target(b, i, dom);
}

static uint64_t query(struct bench *b, const struct ref_srq *q)
{
	struct rx_sro op = { .op = SRO_QUERY, .srqn = q->cfg.srqn };

	bench_srq(b, &op);
	assert_int_equal(b->sro.sro_pi, q->pi);
	return b->sro.sro_ci;
}

/* Each size and kind of message, each to another SRQ than the one before. */
void test_xrc(void **state)
{
	static const size_t sizes[] = { 0, 1, 64, 511, 512, 513, 1024, 2000 };
	struct bench *b = start_xrc();

	(void)state;
	for (int speed = 0; speed < 2; speed++) {
		bench_settings(b, speed ? 50 : 100, speed ? 20 : 0, 4, 60);
		/* addresses of each kind: IPv4, IPv6, with and without VLAN */
		for (int i = 0; i < 4; i++)
			target(b, i, i % 2);
		/* nothing is posted: RNR */
		for (int i = 0; i < 4; i++) {
			struct ref_srq *q = &srqs[i % 2 * 2 + i / 2];

			if (posted(q))
				continue;
			send_plain(b, &refs[i], q->cfg.srqn, 4, 64);
			send_plain(b, &refs[i], q->cfg.srqn, 0, MTU);
			send_key(b, &refs[i], q->cfg.srqn, 0x0b, refs[i].epsn, rem_at(0), rkey(q),
				 64, 64);
			/* not one that needs no WQE */
			send_key(b, &refs[i], q->cfg.srqn, 0x0a, refs[i].epsn, rem_at(0x40),
				 rkey(q), 64, 64);
		}
		settle(b);
		for (unsigned int n = 0; n < 300; n++) {
			unsigned int i = rnd(b) % 4;
			struct ref_srq *q = &srqs[i % 2 * 2 + rnd(b) % 2];
			struct ref *r = &refs[i];
			size_t len = sizes[rnd(b) % 8];

			if (!posted(q)) {
				settle(b);
				receives(b, q, 1 + rnd(b) % 20, 2048);
				bench_drain(b, 1000);
			}
			switch (rnd(b) % 8) {
			case 0:
				send_key(b, r, q->cfg.srqn, rnd(b) % 2 ? 0x0a : 0x0b, r->epsn,
					 rem_at(0x200 * i), rkey(q), len % MTU, len % MTU);
				break;
			case 1:
				send_key(b, r, q->cfg.srqn, 6, r->epsn, rem_at(0x800 * i), rkey(q),
					 2 * MTU + 7, MTU);
				send_key(b, r, q->cfg.srqn, 7, r->epsn, 0, 0, 0, MTU);
				send_key(b, r, q->cfg.srqn, rnd(b) % 2 ? 8 : 9, r->epsn, 0, 0, 0,
					 7);
				break;
			case 2:
				send_key(b, r, q->cfg.srqn, 0x0c, r->epsn, rem_at(len), rkey(q),
					 len, 0);
				break;
			case 3:
				send_key(b, r, q->cfg.srqn, 0x13 + rnd(b) % 2, r->epsn,
					 rem_at(0x8000 + 8 * i), rkey(q), 0, 0);
				break;
			case 4:
				send_key(b, r, q->cfg.srqn, 0x1c, r->epsn, rem_at(len), rkey(q),
					 len, 0);
				break;
			case 5:
				send_key(b, r, q->cfg.srqn, 0x1d, r->epsn, rem_at(0x8000 + 8 * i),
					 rkey(q), 8, 8);
				break;
			default:
				message(b, r, q->cfg.srqn, len, rnd(b) % 2);
			}
		}
		settle(b);
		for (unsigned int i = 0; i < 4; i++)
			assert_int_equal(query(b, &srqs[i]), srqs[i].ci);
	}
	assert_int_equal(b->n_srq_evs, 0);
	bench_free(b);
}

/*
 * Six targets, an RC QP with a queue of its own and one with an SRQ, packet by packet: good ones,
 * repeated ones, ones out of sequence. Posts and RNR among them.
 */
void test_xrc_traffic(void **state)
{
	struct bench *b = start_xrc();
	unsigned int took = 0, dups = 0;

	(void)state;
	for (int i = 0; i < 6; i++)
		target(b, i, i % 2);
	qp_init(b, 6, 2, 6, 6, 99);
	qp_init(b, 7, 2, 6, 6, 7);
	refs[7].srq = &srqs[4];
	refs[7].cfg.srq = true;
	refs[7].cfg.srqn = srqs[4].cfg.srqn;
	bench_cfg(b, &refs[7].cfg);
	for (unsigned int round = 0; round < 60; round++) {
		unsigned int left[QPS] = { 0 }, srqn[QPS] = { 0 }, before[SRQS];

		bench_settings(b, round % 3 ? 30 + rnd(b) % 70 : 100, rnd(b) % 30, 2 + rnd(b) % 20,
			       20 + rnd(b) % 200);
		for (unsigned int i = 0; i < 5; i++) {
			if (round % 4)
				receives(b, &srqs[i], rnd(b) % 20, 4 * MTU);
			before[i] = srqs[i].ci;
		}
		for (int i = 0; i < 2; i++)
			post(b, &refs[6], &(struct sge){ take(b, 4096, 64), 4096, LKEY }, 1);
		ring(b, &refs[6]);
		bench_drain(b, 3000);
		for (unsigned int n = 0; n < 90; n++) {
			unsigned int k = rnd(b) % QPS;
			struct ref *r = &refs[k];
			struct ref_srq *q = &srqs[k % 2 * 2 + rnd(b) % 2];
			uint32_t old = r->epsn - 1 - rnd(b) % 3;

			if (k >= 6) {
				if (ref_posted(r))
					send_message(b, r, rnd(b) % 600, false, false, 1);
				continue;
			}
			if (rnd(b) % 8 == 0) {
				/* a duplicate, of whatever SRQ; one ahead, too */
				uint32_t any = rnd(b) % 3 ? q->cfg.srqn : NO_SRQ;

				dups++;
				switch (rnd(b) % 4) {
				case 0:
					send_key(b, r, any, 0x0c, old, rem_at(0), rkey(q), 100, 0);
					break;
				case 1:
					send_key(b, r, any, 0x14, old, rem_at(8), rkey(q), 0, 0);
					break;
				case 2:
					send_xrc(b, r, any, 4, old, NULL, 10, false);
					break;
				default:
					send_xrc(b, r, any, 4, r->epsn + 1, NULL, 10, false);
				}
				continue;
			}
			if (!left[k]) {
				left[k] = 1 + rnd(b) % 4;
				srqn[k] = q->cfg.srqn;
				if (rnd(b) % 4 == 0) {
					bool imm = rnd(b) % 2;

					left[k] = 0;
					send_key(b, r, srqn[k], imm ? 0x0b : 0x13, r->epsn,
						 rem_at((imm ? 0x100 : 0x200) + 8 * k), rkey(q), 8,
						 imm ? 8 : 0);
					continue;
				}
				send_plain(b, r, srqn[k], left[k] == 1 ? 4 : 0,
					   left[k] == 1 ? rnd(b) % MTU : MTU);
				/* RNR: it has not begun */
				left[k] = r->in_msg ? left[k] - 1 : 0;
				continue;
			}
			left[k]--;
			send_plain(b, r, srqn[k], left[k] ? 1 : 2,
				   left[k] ? MTU : 1 + rnd(b) % MTU);
		}
		for (unsigned int k = 0; k < 6; k++)
			if (left[k])
				send_plain(b, &refs[k], srqn[k], 3, 77);
		settle(b);
		for (unsigned int i = 0; i < 5; i++) {
			took += (uint16_t)(srqs[i].ci - before[i]);
			assert_int_equal(query(b, &srqs[i]), srqs[i].ci);
		}
	}
	print_message("%u WQEs taken, %u packets out of sequence\n", took, dups);
	assert_true(took > 500 && dups > 200);
	bench_free(b);
}

/*
 * Each refusal: NAK 0x61, the event, the QP to ERR; a message in progress loses its WQE to the
 * flush. The order of the checks: PSN, opcode, SRQ, right, WQE.
 */
void test_xrc_refused(void **state)
{
	struct bench *b = start_xrc();

	(void)state;
	target(b, 1, 0);
	for (int round = 0; round < 200; round++) {
		/* does not exist, beyond all numbers (its low bits are a good one's), of another
		 * domain, no XRC SRQ */
		const uint32_t bad[] = { NO_SRQ,    SRQN0 + 1024, SRQN0 + 0x800000,
					 SRQN0 + 2, SRQN0 + 4,	  SRQN0 + 5 };
		uint32_t srqn = bad[rnd(b) % 6], good = SRQN0 + rnd(b) % 2;
		struct ref_srq *q = &srqs[good - SRQN0];
		struct ref *r = target(b, 0, 0);
		bool in_send = round % 3 == 1, in_write = round % 3 == 2;
		unsigned int kind = rnd(b) % 6;

		bench_settings(b, round % 2 ? 100 : 50, 0, 4, 60);
		receives(b, q, 4, 2048);
		receives(b, &srqs[4], 4, 2048);
		bench_drain(b, 1000);
		/* a QP without rights gets the same answer */
		if (rnd(b) % 4 == 0) {
			r->cfg.acc = 0;
			r->cfg.max_dest = 0;
			bench_cfg(b, &r->cfg);
			in_write = false;
		}
		/* an ATOMIC to ask for again */
		if (r->cfg.acc)
			send_key(b, r, good, 0x14, r->epsn, rem_at(0), rkey(q), 0, 0);
		/* neither a duplicate nor a packet ahead is refused */
		send_xrc(b, r, srqn, 4, r->epsn - 1, NULL, 5, false);
		send_key(b, r, srqn, 0x0c, r->epsn - 1, rem_at(0), rkey(q), 5, 0);
		send_key(b, r, srqn, 0x14, r->epsn - 1, rem_at(0), rkey(q), 0, 0);
		send_key(b, r, srqn, 0x1c, r->epsn - 1, rem_at(0), rkey(q), 8, 0);
		send_key(b, r, srqn, 0x1d, r->epsn - 1, rem_at(0), rkey(q), 8, 8);
		send_xrc(b, r, srqn, 4, r->epsn + 1, NULL, 5, false);
		settle(b);
		assert_false(r->err);
		if (in_send)
			send_plain(b, r, good, 0, MTU);
		if (in_write)
			send_key(b, r, good, 6, r->epsn, rem_at(0), rkey(q), 2000, MTU);
		/* in a message another good SRQ is as bad */
		if ((in_send || in_write) && rnd(b) % 2)
			srqn = good ^ 1;
		if (in_send || in_write) {
			kind = rnd(b) % 2;
			send_plain(b, r, srqn, (in_send ? 1 : 7) + kind, kind ? 9 : MTU);
		} else if (kind < 2) {
			send_plain(b, r, srqn, kind ? 0 : 5, kind ? MTU : 30);
		} else if (kind < 4) {
			send_key(b, r, srqn, 6 + 4 * (kind - 2), r->epsn, rem_at(0), rkey(q),
				 kind == 3 ? 9 : 2000, kind == 3 ? 9 : MTU);
		} else {
			send_key(b, r, srqn, kind == 4 ? 0x0c : 0x13, r->epsn, rem_at(0), rkey(q),
				 8, 0);
		}
		assert_true(r->err);
		assert_int_equal(r->errs[r->n_errs - 1].event, URDMA_EV_QP_REQ_ERR);
		/* nothing behind it has an effect, and its neighbour goes on */
		send_plain(b, r, good, 4, 10);
		send_plain(b, &refs[1], good, 4, 10);
		bench_drain(b, 10000);
		end_qp(b, r);
		settle(b);
		assert_int_equal(query(b, q), q->ci);
	}
	bench_free(b);
}

/* Each key has to be of the PD of the SRQ: that of the QP is a domain, and no PD. */
void test_xrc_keys(void **state)
{
	struct bench *b = start_xrc();
	unsigned int refused = 0;

	(void)state;
	/* a region of the domain's number would be found by the QP's PD */
	b->mr[b->mrs - 2] = (struct bench_mr){ RKEY_WO, DOM, ACC_ALL, HOST_VA + REM_OFF, 1 << 16 };
	for (int round = 0; round < 160; round++) {
		const uint32_t keys[] = { RKEY, RKEY_PD, RKEY_WO };
		unsigned int kind = round % 8, want = rnd(b) % 2;
		struct ref_srq *q = &srqs[want];
		uint32_t key = keys[rnd(b) % 3], n = SRQN0 + want;
		struct ref *r = target(b, round % 4, 0);

		/* of an invalidation: regions of PD 7 */
		for (int i = 0; i < QPS; i++)
			b->mr[6 + i].pd = 7 + i % 2;
		bench_settings(b, round % 2 ? 100 : 50, 0, 4, 60);
		receives(b, q, 4, 2048);
		bench_drain(b, 1000);
		switch (kind) {
		case 0:
			send_key(b, r, n, 0x0a, r->epsn, rem_at(0x40), key, 60, 60);
			break;
		case 1:
			send_key(b, r, n, 6, r->epsn, rem_at(0x40), key, MTU + 9, MTU);
			/* the second packet is checked as well: a refusal comes too late here */
			if (!r->err)
				send_key(b, r, n, 9, r->epsn, 0, 0, 0, 9);
			break;
		case 2:
			send_key(b, r, n, 0x0c, r->epsn, rem_at(0x40), key, 600, 0);
			break;
		case 3:
			send_key(b, r, n, 0x13 + rnd(b) % 2, r->epsn, rem_at(0x40), key, 0, 0);
			break;
		case 4:
			if (rnd(b) % 2)
				send_key(b, r, n, 0x1c, r->epsn, rem_at(0x40), key, 600, 0);
			else
				send_key(b, r, n, 0x1d, r->epsn, rem_at(0x40), key, 8, 8);
			break;
		case 5: {
			/* an SGE of another PD */
			struct sge s = { take(b, 64, 64), 64, rnd(b) % 2 ? LKEY : LKEY + 1 };

			for (unsigned int i = 0; i < 32 && posted(q); i++)
				message(b, r, n, 8, false);
			settle(b);
			srq_post(b, q, &s, 1);
			srq_ring(b, q);
			bench_drain(b, 1000);
			send_plain(b, r, n, 4, 50);
			break;
		}
		case 6: {
			uint8_t ext[4];

			put32(ext, RKEY_INV + 256 * (rnd(b) % QPS));
			fill(b, 20);
			send_xrc(b, r, n, 0x17, r->epsn, ext, 20, false);
			break;
		}
		default:
			/* WRITE with immediate that has no WQE: the key is looked at first */
			destroy(b, q);
			create(b, want, 0, q->cfg.pd, true);
			send_key(b, r, n, 0x0b, r->epsn, rem_at(0x40), key, 60, 60);
		}
		refused += r->err;
		if (r->err)
			renew(b, round % 4, 0);
		else
			settle(b);
		/* what was made invalid is valid again */
		bench_drain(b, 1000);
		memset(b->mr_invalid, 0, sizeof(b->mr_invalid));
		memset(ref_invalid, 0, sizeof(ref_invalid));
	}
	print_message("%u keys refused\n", refused);
	assert_true(refused > 40 && refused < 130);
	bench_free(b);
}

/* Requests to an initiator, answers to a target, packets of other transports: to no QP. */
void test_xrc_transport(void **state)
{
	static const uint8_t types[] = { URDMA_QPT_RC, URDMA_QPT_UC, URDMA_QPT_UD,
					 URDMA_QPT_XRC_INI, URDMA_QPT_XRC_TGT };
	struct bench *b = start_xrc();
	static struct frame f;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (unsigned int t = 0; t < 5; t++) {
			struct ref *r = target(b, 0, 0);

			r->cfg.type = types[t];
			bench_cfg(b, &r->cfg);
			for (unsigned int op = 0; op < 256; op++) {
				const struct opc_rule *o = &opc_rules[op];
				bool response = opc_is_response(o->kind), own;
				struct packet k = r->hdr;

				if (!o->name)
					continue;
				switch (opc_transport(op)) {
				case OPC_T_RC:
					own = types[t] == URDMA_QPT_RC;
					break;
				case OPC_T_UC:
					own = types[t] == URDMA_QPT_UC;
					break;
				case OPC_T_UD:
					own = types[t] == URDMA_QPT_UD;
					break;
				default:
					own = types[t] ==
					      (response ? URDMA_QPT_XRC_INI : URDMA_QPT_XRC_TGT);
				}
				if (own)
					continue;
				k.opcode = op;
				k.psn = r->epsn;
				k.ext_len = o->ext;
				k.payload = payload;
				k.len = o->length == OPC_FULL ? MTU : o->length == OPC_SOME ? 9 : 0;
				packet_build(&k, &f);
				bench_frame(b, &f, false);
				bench_drain(b, 3000);
				if (b->cnt[URDMA_CNT_RX_NO_QP] != 1)
					fail_msg("QP of type %u, opcode 0x%02x: it is taken",
						 types[t], op);
				check(b);
			}
		}
	}
	/* extended headers for which there is no room */
	for (unsigned int op = 0xa0; op < 0xb8; op++) {
		struct packet k = refs[0].hdr;
		bool none = op == 0xb1 || op == 0xb2;

		if (!opc_rules[op].ext)
			continue;
		k.opcode = op;
		k.payload = payload;
		k.len = none ? 4 : 0;
		k.ext_len = none ? opc_rules[op].ext : opc_rules[op].ext - 4;
		packet_build(&k, &f);
		bench_frame(b, &f, false);
		bench_drain(b, 1000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_MALFORMED], 1);
		check(b);
	}
	bench_free(b);
}

/*
 * A target that ends: its WQE goes to the CQ of the SRQ, if that still lives. No LAST_WQE. The SRQ
 * may have gone, or have come again, before the end or behind it.
 */
void test_xrc_flush(void **state)
{
	struct bench *b = start_xrc();
	unsigned int flushed = 0, forgotten = 0;

	(void)state;
	for (int round = 0; round < 160; round++) {
		unsigned int what = round % 5, i = rnd(b) % 2;
		struct ref_srq *q = &srqs[i];
		struct ref *r = target(b, 0, 0), *other = target(b, 1, 0);
		bool write = rnd(b) % 5 == 0;

		bench_settings(b, round % 3 ? 100 : 40, 0, 4, 60);
		receives(b, q, 10, 4 * MTU);
		receives(b, &srqs[i ^ 1], 10, 4 * MTU);
		bench_drain(b, 1000);
		/* the memory has another SRQ of before */
		if (rnd(b) % 2)
			message(b, r, q->cfg.srqn ^ (rnd(b) % 2), 600, true);
		if (write)
			send_key(b, r, q->cfg.srqn, 6, r->epsn, rem_at(0), rkey(q), 2000, MTU);
		else if (what)
			send_plain(b, r, q->cfg.srqn, 0, MTU);
		/* of a neighbour with the same SRQ */
		if (rnd(b) % 2)
			send_plain(b, other, q->cfg.srqn, 0, MTU);
		if (what >= 2)
			settle(b);
		else
			bench_drain(b, 20000);
		if (what == 2 || what == 3)
			destroy(b, q);
		if (what == 3) {
			create(b, i, 0, q->cfg.pd, true);
			receives(b, q, 3, 2048);
		}
		if (what == 4 && rnd(b) % 2) {
			/* refused by another SRQ than that of the message */
			send_plain(b, r, q->cfg.srqn ^ 1, write ? 7 : 1, MTU);
			bench_drain(b, 20000);
		}
		flushed += r->held && (what == 1 || what == 4);
		forgotten += r->held && (what == 2 || what == 3);
		end_qp(b, r);
		/* once more has no effect */
		if (rnd(b) % 2) {
			bench_drain(b, 20000);
			bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
		}
		settle(b);
		/* the neighbour finds its SRQ gone as well, or goes on */
		if (other->in_msg) {
			send_plain(b, other, q->cfg.srqn, 2, 50);
			bench_drain(b, 20000);
			if (other->err)
				end_qp(b, other);
			settle(b);
		}
		if (what == 2)
			create(b, i, 0, q->cfg.pd, true);
		/* in a new life it is as good as ever */
		r = target(b, 0, 0);
		recycle();
		receives(b, q, 2, 2048);
		bench_drain(b, 1000);
		message(b, r, q->cfg.srqn, 700, false);
		settle(b);
		assert_int_equal(query(b, q), q->ci);
	}
	print_message("%u flushed, %u forgotten\n", flushed, forgotten);
	assert_true(flushed > 20 && forgotten > 20);
	bench_free(b);
}

/*
 * SRQs that are destroyed and created again while messages are in progress, of the same number, in
 * the same and another domain, as XRC SRQ or not: a message never goes on in another life, and the
 * new one's ring is read from its beginning.
 */
void test_xrc_lives(void **state)
{
	struct bench *b = start_xrc();
	unsigned int lives = 0, stopped = 0;

	(void)state;
	for (int i = 0; i < 6; i++)
		target(b, i, i % 2);
	for (unsigned int round = 0; round < 400; round++) {
		unsigned int left[6] = { 0 };

		if (round % 8 == 0)
			bench_settings(b, round % 16 ? 100 : 40, 0, 2 + rnd(b) % 20, rnd(b) % 200);
		for (unsigned int i = 0; i < 4; i++)
			if (srqs[i].exists)
				receives(b, &srqs[i], rnd(b) % 12, 4 * MTU);
		bench_drain(b, 3000);
		for (unsigned int n = 0; n < 20; n++) {
			unsigned int k = rnd(b) % 6;
			struct ref *r = &refs[k];
			uint32_t srqn = SRQN0 + k % 2 * 2 + rnd(b) % 2;

			if (r->err)
				continue;
			if (r->in_msg && rnd(b) % 16)
				srqn = r->msg_srqn;
			(void)left;
			if (r->in_msg)
				send_plain(b, r, srqn, rnd(b) % 2 ? 1 : 2, MTU);
			else
				send_plain(b, r, srqn, rnd(b) % 3 ? 0 : 4, MTU);
		}
		bench_drain(b, 100000);
		for (unsigned int k = 0; k < 6; k++) {
			if (!refs[k].err)
				continue;
			stopped++;
			end_qp(b, &refs[k]);
		}
		settle(b);
		for (unsigned int k = 0; k < 6; k++)
			if (refs[k].err)
				target(b, k, k % 2);
		/* some go, and come in the same cycle or rounds later */
		for (unsigned int i = 0; i < 4; i++) {
			bool gone = !srqs[i].exists;

			if (srqs[i].exists && rnd(b) % 6 == 0) {
				destroy(b, &srqs[i]);
				gone = rnd(b) % 2;
			}
			if (gone && rnd(b) % 2 == 0) {
				lives++;
				create(b, i, rnd(b) % 8 ? i / 2 : !(i / 2), 7 + rnd(b) % 2,
				       rnd(b) % 8);
			}
		}
		recycle();
	}
	print_message("%u lives, %u QPs stopped\n", lives, stopped);
	assert_true(lives > 100 && stopped > 100);
	bench_free(b);
}

/*
 * A number that comes again as often as lives are told apart, within one message: the message goes
 * on in the new SRQ. Its WQE is at least a place in the array of this one.
 */
void test_xrc_wrap(void **state)
{
	struct bench *b = start_xrc();
	struct ref_srq *q = &srqs[0];
	struct ref *r = target(b, 0, 0);

	(void)state;
	bench_settings(b, 100, 0, 4, 60);
	receives(b, q, 32, 2048);
	bench_drain(b, 1000);
	/* the last place of the array */
	while (q->ring[q->ci] != 31)
		message(b, r, q->cfg.srqn, 10, false);
	send_plain(b, r, q->cfg.srqn, 0, MTU);
	settle(b);
	for (unsigned int i = 0; i < 256; i++) {
		struct rx_sro op = q->cfg;

		destroy(b, q);
		op.log_entries = 2;
		bench_srq(b, &op);
	}
	r->active = false;
	send_plain(b, r, q->cfg.srqn, 2, 50);
	bench_drain(b, 10000);
	assert_int_equal(b->n_cqes[0], 1);
	assert_int_equal(b->cqes[0][0].w[0] >> 32 & 0xffff, 3);
	bench_clear_logs(b);
	bench_free(b);
}

/* The limit event; a ring that is wrong; an SRQ that is dead. */
void test_xrc_dead(void **state)
{
	struct bench *b = start_xrc();

	(void)state;
	for (int round = 0; round < 40; round++) {
		struct rx_sro op = { .op = SRO_MODIFY, .srqn = SRQN0 + round % 2, .limit = 3 };
		struct ref_srq *q = &srqs[round % 2];
		struct ref *r = target(b, 0, 0), *other = target(b, 1, 0);
		uint16_t place = 32;

		bench_settings(b, round % 4 < 2 ? 100 : 50, 0, 4, 60);
		destroy(b, q);
		create(b, round % 2, 0, q->cfg.pd, true);
		receives(b, q, 5, 2048);
		bench_drain(b, 1000);
		bench_srq(b, &op);
		for (int i = 0; i < 5; i++) {
			message(b, i % 2 ? r : other, q->cfg.srqn, 600, false);
			bench_drain(b, 10000);
			assert_int_equal(b->n_srq_evs, i >= 2);
		}
		assert_int_equal(b->srq_evs[0].event, URDMA_EV_SRQ_LIMIT);
		assert_int_equal(b->srq_evs[0].qpn, q->cfg.srqn);
		settle(b);
		/* one message is in progress; then an index beyond the array */
		receives(b, q, 1, 2048);
		bench_put(b, HOST_VA + q->cfg.addr - HOST_BUS + (64 << 5) + 2 * (q->pi & 31),
			  &place, 2);
		q->pi++;
		srq_ring(b, q);
		bench_drain(b, 1000);
		send_plain(b, other, q->cfg.srqn, 0, MTU);
		settle(b);
		/* what it does is looked at here */
		r->active = false;
		send_plain(b, r, q->cfg.srqn, 4, 50);
		bench_drain(b, 10000);
		assert_int_equal(b->n_srq_evs, 1);
		assert_int_equal(b->srq_evs[0].event, URDMA_EV_SRQ_ERR);
		assert_int_equal(b->n_errs[0], 1);
		assert_int_equal(b->errs[0][0].event, URDMA_EV_QP_FATAL);
		assert_int_equal(b->n_acks, 1);
		assert_int_equal(b->acks[0].syndrome, 0x63);
		assert_int_equal(b->n_cqes[0], 0);
		bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
		bench_drain(b, 10000);
		assert_int_equal(b->n_errs[0] + b->n_cqes[0], 1);
		bench_clear_logs(b);
		/* the message in progress has its WQE, and ends well; the next one ends its QP */
		send_plain(b, other, q->cfg.srqn, 2, 50);
		settle(b);
		other->active = false;
		send_plain(b, other, q->cfg.srqn, 4, 50);
		bench_drain(b, 10000);
		assert_int_equal(b->n_errs[0], 1);
		assert_int_equal(b->errs[0][0].event, URDMA_EV_QP_FATAL);
		assert_int_equal(b->n_cqes[0] + b->n_srq_evs, 0);
		bench_clear_logs(b);
		memset(q->used, 0, sizeof(q->used));
	}
	bench_free(b);
}

/*
 * An SRQ is destroyed while packets that name it come from everywhere. Behind a fence there is no
 * CQE of it, and its ring and index ring are not looked at.
 */
void test_xrc_destroyed(void **state)
{
	struct bench *b = start_xrc();
	unsigned int before = 0, naks = 0;

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct ref_srq *q = &srqs[0];
		unsigned int cqes;

		for (int i = 0; i < QPS; i++)
			target(b, i, 0)->active = false;
		bench_settings(b, round % 2 ? 100 : 50, 0, 4 + rnd(b) % 50, 20 + rnd(b) % 300);
		if (!q->exists)
			create(b, 0, 0, 7, true);
		recycle();
		receives(b, q, 32, 3 * MTU);
		bench_drain(b, 3000);
		for (unsigned int n = 0; n < 60; n++) {
			struct ref *r = &refs[rnd(b) % QPS];

			/* as the reference would count, if nothing happened */
			send_plain(b, r, q->cfg.srqn, r->in_msg ? 2 : rnd(b) % 2 ? 0 : 4, MTU);
			r->in_msg = (r->in_msg ? 2 : 0) != 2 && rnd(b) % 2 == 3;
			r->epsn = (r->epsn + 1) & 0xffffff;
		}
		bench_run(b, rnd(b) % 700);
		destroy(b, q);
		/* QPs end meanwhile, as qp_mgr likes */
		for (int i = 0; i < QPS; i++)
			if (rnd(b) % 3 == 0)
				bench_ctl(b, false, QPC_ERR, refs[i].cfg.qpn, 0);
		bench_run(b, rnd(b) % 100);
		b->in.fence_req = true;
		for (int i = 0; i < 20000 && !b->out.fence_done; i++)
			bench_cycle(b);
		assert_true(b->out.fence_done);
		b->in.fence_req = false;
		cqes = b->n_cqes[0];
		before += cqes;
		b->watch = q->cfg.addr;
		b->n_watched = 0;
		for (int i = 0; i < QPS; i++) {
			bench_ctl(b, false, QPC_ERR, refs[i].cfg.qpn, 0);
			bench_run(b, 5);
		}
		bench_drain(b, 100000);
		assert_int_equal(b->n_cqes[0], cqes);
		assert_int_equal(b->n_watched, 0);
		for (unsigned int i = 0; i < b->n_acks; i++)
			naks += b->acks[i].syndrome == 0x61;
		b->watch = 0;
		memcpy(b->shadow, b->host, HOST_SIZE);
		bench_clear_logs(b);
		q->ci = q->pi = 0;
	}
	print_message("%u CQEs before, %u NAKs behind\n", before, naks);
	assert_true(before > 200 && naks > 50);
	bench_free(b);
}

/*
 * The same number is created again behind the fence, while packets of messages that began before
 * still come: each WQE that the new SRQ gives completes once, and nothing else does.
 */
void test_xrc_again(void **state)
{
	struct bench *b = start_xrc();
	unsigned int before = 0, behind = 0, good = 0;

	(void)state;
	for (int round = 0; round < 80; round++) {
		struct ref_srq *q = &srqs[0];
		bool in_msg[QPS] = { 0 }, seen[32] = { 0 };
		unsigned int cqes;

		for (int i = 0; i < QPS; i++)
			target(b, i, 0)->active = false;
		destroy(b, q);
		create(b, 0, 0, 7, true);
		bench_settings(b, round % 2 ? 100 : 50, 0, 4 + rnd(b) % 50, 20 + rnd(b) % 300);
		receives(b, q, 32, 3 * MTU);
		bench_drain(b, 3000);
		b->gap = 70 + rnd(b) % 25;
		for (unsigned int n = 0; n < 60; n++) {
			unsigned int i = rnd(b) % QPS;
			bool begins = !in_msg[i] && rnd(b) % 4;

			send_plain(b, &refs[i], q->cfg.srqn,
				   in_msg[i] ? 2
				   : begins  ? 0
					     : 4,
				   begins ? MTU : 1 + rnd(b) % MTU);
			in_msg[i] = begins;
			refs[i].epsn = (refs[i].epsn + 1) & 0xffffff;
		}
		bench_run(b, rnd(b) % 1500);
		destroy(b, q);
		b->in.fence_req = true;
		for (int i = 0; i < 20000 && !b->out.fence_done; i++)
			bench_cycle(b);
		assert_true(b->out.fence_done);
		b->in.fence_req = false;
		cqes = b->n_cqes[0];
		before += cqes;
		create(b, 0, 0, 7, true);
		receives(b, q, 32, 3 * MTU);
		bench_drain(b, 100000);
		for (int i = 0; i < QPS; i++)
			bench_ctl(b, false, QPC_ERR, refs[i].cfg.qpn, 0);
		bench_drain(b, 100000);
		for (unsigned int i = cqes; i < b->n_cqes[0]; i++) {
			unsigned int wqe = b->cqes[0][i].w[0] >> 32 & 0xffff;

			assert_in_range(wqe, 0, 31);
			assert_false(seen[wqe]);
			seen[wqe] = true;
			good += (b->cqes[0][i].w[0] >> 16 & 0xff) == 0;
		}
		if (query(b, q) != b->n_cqes[0] - cqes)
			fail_msg("seed %u round %d: %u WQEs are taken, %u completed", seed, round,
				 b->sro.sro_ci, b->n_cqes[0] - cqes);
		for (unsigned int i = 0; i < b->sro.sro_ci; i++)
			assert_true(seen[q->ring[i]]);
		behind += b->sro.sro_ci;
		memcpy(b->shadow, b->host, HOST_SIZE);
		bench_clear_logs(b);
	}
	print_message("%u CQEs before, %u behind, %u of them good\n", before, behind, good);
	assert_true(before > 200 && good > 50);
	bench_free(b);
}

/*
 * A QP ends anywhere in a stream of messages to two SRQs: by an error that placement finds, by an
 * ATOMIC whose operand cannot be read, or by software. Each WQE that was taken completes once, in
 * the CQ of its SRQ.
 */
void test_xrc_behind_error(void **state)
{
	struct bench *b = start_xrc();
	unsigned int flushed = 0, open = 0;

	(void)state;
	for (int round = 0; round < 150; round++) {
		unsigned int kind = round % 6, n = 1 + rnd(b) % 20, seen[2][32] = { 0 };
		unsigned int cqes[2] = { 0 };
		struct ref *r = target(b, 0, 0), *other = target(b, 1, 0);

		bench_settings(b, round % 2 ? 100 : 50, 0, 4 + rnd(b) % 50, 60 + rnd(b) % 200);
		for (unsigned int i = 0; i < 2; i++) {
			destroy(b, &srqs[i]);
			create(b, i, 0, 7, true);
		}
		/* the first WQE of one is wrong */
		if (kind < 3)
			srq_post(b, &srqs[0],
				 &(struct sge){ take(b, 4096, 64), kind == 1 ? 300 : 4096,
						kind == 0 ? LKEY + 0x7700 : LKEY },
				 kind == 2 ? 31 : 1);
		receives(b, &srqs[0], 32, 2048);
		receives(b, &srqs[1], 32, 2048);
		bench_drain(b, 1000);
		/* the reference knows no order of what is behind the error: look here */
		r->active = other->active = false;
		b->fail_atm = kind == 4 ? 0 : -1;
		for (unsigned int i = 0; i <= n; i++) {
			struct ref *t = i && rnd(b) % 4 == 0 ? other : r;
			uint32_t srqn = SRQN0 + (i ? rnd(b) % 2 : 0);
			unsigned int what = rnd(b) % 4;

			if (!i && kind == 3) {
				send_key(b, t, srqn, 0x0a, t->epsn, rem_at(0), RKEY + 0x4000, 8, 8);
			} else if (!i && kind == 4) {
				send_key(b, t, srqn, 0x14, t->epsn, rem_at(0), RKEY, 0, 0);
			} else if (!i || what < 2) {
				send_plain(b, t, srqn, 0, MTU);
				t->epsn = (t->epsn + 1) & 0xffffff;
				/* the last message may not end */
				if (t == r && i == n && rnd(b) % 2) {
					t->epsn--;
				} else {
					if (what) {
						send_plain(b, t, srqn, 1, MTU);
						t->epsn = (t->epsn + 1) & 0xffffff;
					}
					send_plain(b, t, srqn, 2, 60);
				}
			} else if (what == 2) {
				send_plain(b, t, srqn, 4, 60);
			} else {
				send_key(b, t, srqn, 0x0b, t->epsn, rem_at(64), RKEY, 8, 8);
			}
			t->epsn = (t->epsn + 1) & 0xffffff;
		}
		if (kind == 5) {
			bench_run(b, rnd(b) % 400);
		} else {
			for (int i = 0; i < 3000 && !b->n_errs[0]; i++)
				bench_cycle(b);
			assert_int_equal(b->n_errs[0], 1);
			assert_int_equal(b->errs[0][0].qpn, r->cfg.qpn);
			bench_run(b, rnd(b) % 200);
		}
		bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
		bench_drain(b, 100000);
		assert_int_equal(b->n_errs[0], kind != 5);
		/* what the other has not ended */
		bench_ctl(b, false, QPC_ERR, other->cfg.qpn, 0);
		bench_drain(b, 100000);
		b->fail_atm = -1;
		for (unsigned int i = 0; i < b->n_cqes[0]; i++) {
			const struct bench_cqe *c = &b->cqes[0][i];
			unsigned int wqe = c->w[0] >> 32 & 0xffff, status = c->w[0] >> 16 & 0xff;
			unsigned int q = (unsigned int)(c->w[2] >> 32) - SRQN0;

			assert_true(c->w[0] & URDMA_CQE0_XRC);
			assert_in_range(q, 0, 1);
			assert_int_equal(c->cqn, 70 + q);
			assert_in_range(wqe, 0, 31);
			if (seen[q][wqe]++)
				fail_msg("seed %u round %d: WQE %u of SRQ %u completes twice", seed,
					 round, wqe, q);
			cqes[q]++;
			flushed += status == URDMA_WC_FLUSH_ERR;
		}
		for (unsigned int q = 0; q < 2; q++)
			if (query(b, &srqs[q]) != cqes[q])
				fail_msg("seed %u round %d (kind %u): of SRQ %u %u WQEs are taken, "
					 "%u completed",
					 seed, round, kind, q, b->sro.sro_ci, cqes[q]);
		open += cqes[0] + cqes[1];
		memcpy(b->shadow, b->host, HOST_SIZE);
		bench_clear_logs(b);
		memset(srqs[0].used, 0, sizeof(srqs[0].used));
		memset(srqs[1].used, 0, sizeof(srqs[1].used));
	}
	print_message("%u WQEs, %u flushed\n", open, flushed);
	assert_true(flushed > 200);
	bench_free(b);
}

/* 64-byte messages back to back, to SRQs in turn: as many a second as with an SRQ. */
void test_xrc_rates(void **state)
{
	static const struct {
		const char *name;
		int qps;
		size_t len;
		unsigned int spacing;
	} runs[] = {
		{ "64-byte SENDs, XRC, 8 QPs", 8, 64, 3 },
		{ "64-byte SENDs, XRC, one QP", 1, 64, 3 },
		{ "64-byte WRITEs, XRC, 8 QPs", 8, 0, 3 },
		{ "4096-byte SENDs, XRC, 64 bytes a cycle", 2, 4096, 67 },
	};
	struct bench *b = start_xrc();

	(void)state;
	for (size_t k = 0; k < sizeof(runs) / sizeof(runs[0]); k++) {
		unsigned int n = runs[k].len > 64 ? 400 : 1000;
		double per;

		bench_settings(b, 100, 0, 8, 100);
		for (unsigned int i = 0; i < 2; i++) {
			struct ref_srq *q = &srqs[i];

			if (q->exists)
				destroy(b, q);
			create(b, i, 0, 7, true);
			destroy(b, q);
			/* an array of 1024, where others have their rings */
			q->cfg.log_entries = 10;
			q->cfg.addr = HOST_BUS + RING_OFF + 0x20000 * i;
			q->exists = true;
			q->life++;
			bench_srq(b, &q->cfg);
			for (unsigned int m = 0; m < n / 2; m++)
				srq_post(b, q,
					 &(struct sge){ take(b, runs[k].len, 64), runs[k].len,
							LKEY },
					 1);
			srq_ring(b, q);
		}
		for (int i = 0; i < runs[k].qps; i++) {
			target(b, i, 0);
			refs[i].cfg.mtu = 5;
			bench_cfg(b, &refs[i].cfg);
		}
		bench_drain(b, 3000);
		bench_clear_logs(b);
		for (unsigned int i = 0; i < n; i++) {
			struct ref *r = &refs[i % runs[k].qps];
			uint32_t srqn = SRQN0 + i / 8 % 2;

			if (runs[k].len)
				send_plain(b, r, srqn, 4, runs[k].len);
			else
				send_key(b, r, srqn, 0x0a, r->epsn, rem_at(64 * (i % 100)), RKEY,
					 64, 64);
			bench_run(b, runs[k].spacing);
		}
		bench_drain(b, 200000);
		per = (double)(b->last_wr - b->first_wr) / (n - 1);
		print_message("%-38s %6.2f cycles a packet\n", runs[k].name, per);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		assert_true(per < runs[k].spacing + 0.5);
		check(b);
	}
	bench_free(b);
}
