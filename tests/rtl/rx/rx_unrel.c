// SPDX-License-Identifier: Apache-2.0
/*
 * UC and UD: loss, order, refusal, and what a datagram writes to memory and to its CQE. The
 * reference (rx_ref.c) defines the expected result; some tests check more than that.
 */
#include "rx_unrel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "opcode_rules.h"

#define RKEY_NONE 0x7700

static uint64_t rem_at(int off)
{
	return HOST_VA + REM_OFF + (uint64_t)(int64_t)off;
}

/* Receives of len bytes, known to the NIC. */
static void receives(struct bench *b, struct ref *r, unsigned int n, uint32_t len)
{
	while (n--)
		post(b, r, &(struct sge){ take(b, len, 64), len, LKEY }, 1);
	ring(b, r);
	bench_drain(b, 2000);
}

static struct ref *open_qp(struct bench *b, int i, uint8_t type, uint8_t mtu)
{
	next_va = HOST_VA + DATA_OFF;
	qp_type = type;
	qp_init(b, i, mtu, 6, 6, 0xffffff);
	qp_type = URDMA_QPT_RC;
	return &refs[i];
}

/* As qp_mgr ends a QP. */
static void end_qp(struct bench *b, struct ref *r)
{
	bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
	ref_flush(r);
	bench_drain(b, 10000);
	check(b);
}

/* ---- UC ---------------------------------------------------------------------------------------
 */

/*
 * Packets by their letters, at an MTU of 1024: SEND f m l i (LAST with immediate) o; WRITE F M L I
 * O J (ONLY with immediate); - a packet that is lost, d the packet before once more.
 */
static void play(struct bench *b, struct ref *r, const char *script)
{
	static const char letters[] = "fmliojFMLIOJ",
			  ops[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	static unsigned int at;
	uint32_t psn = r->epsn, total = 0;

	for (const char *c = script; *c; c++) {
		const char *l = strchr(letters, *c == 'd' ? c[-1] : *c);
		unsigned int op = l ? (unsigned int)ops[l - letters] : 0;
		bool full = op == 0 || op == 1 || op == 6 || op == 7;

		if (*c == '-') {
			psn++;
			continue;
		}
		if (*c == 'd')
			psn--;
		if (op == 6) {
			const char *end = c + 1;

			while (*end == 'M' || *end == '-')
				end++;
			total = 1024 * (unsigned int)(end - c) + 100;
		}
		if (op >= 10)
			total = 100;
		fill(b, 1024);
		at = (at + 4096) % 0x40000;
		if (op >= 6)
			send_reth(b, r, op, psn, rem_at(at), RKEY, total, payload,
				  full ? 1024 : 100, rnd(b) % 2);
		else
			send_packet(b, r, op, psn, payload, full ? 1024 : 100, rnd(b) % 2,
				    rnd(b) % 2);
		psn++;
	}
}

void test_uc(void **state)
{
	/* what is before it is without effect on the message at the end, which is always taken */
	static const struct {
		const char *script;
		unsigned int cqes, seqs, dropped;
	} t[] = {
		{ "o", 1, 0, 0 },
		{ "fml", 1, 0, 0 },
		{ "fmmmi", 1, 0, 0 },
		{ "FMLo", 1, 0, 0 },
		{ "FMMI", 1, 0, 0 },
		{ "J", 1, 0, 0 },
		{ "j", 1, 0, 0 },
		{ "Oo", 1, 0, 0 },
		/* loss: of the first, in the middle, of the last */
		{ "-mlo", 1, 2, 0 },
		{ "-mmmlo", 1, 4, 0 },
		/* dropping ends with the message: what is behind it is wrong for itself */
		{ "-lmo", 1, 1, 1 },
		{ "-mlLo", 1, 2, 1 },
		{ "f-mlo", 1, 2, 0 },
		{ "f-lo", 1, 1, 0 },
		{ "fm-o", 1, 1, 0 },
		{ "f--mmlfml", 1, 3, 0 },
		{ "FM-Mlo", 1, 2, 0 },
		{ "FM-Io", 1, 1, 0 },
		{ "F-O", 0, 1, 0 },
		{ "-o-o-o", 3, 3, 0 },
		{ "f-f-f-o", 1, 3, 0 },
		{ "f-m-m-lo", 1, 3, 0 },
		/* order: FIRST or ONLY always begin a message */
		{ "ffl", 1, 0, 0 },
		{ "fmfml", 1, 0, 0 },
		{ "fo", 1, 0, 0 },
		{ "foml", 1, 0, 2 },
		{ "fOo", 1, 0, 0 },
		{ "Ffml", 1, 0, 0 },
		{ "fFMLo", 1, 0, 0 },
		{ "mo", 1, 0, 1 },
		{ "mmlo", 1, 0, 3 },
		{ "lo", 1, 0, 1 },
		{ "Lo", 1, 0, 1 },
		{ "fMmlo", 1, 0, 3 },
		{ "fLo", 1, 0, 1 },
		{ "FMlo", 1, 0, 1 },
		{ "FmMLo", 1, 0, 3 },
		{ "fmll", 1, 0, 1 },
		/* a packet that comes twice has a PSN that is not expected, and so has what follows
		 */
		{ "od", 2, 1, 0 },
		{ "fmdlo", 1, 2, 0 },
		{ "fdml", 1, 1, 0 },
	};
	struct bench *b = start();

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (int fast = 0; fast < 2; fast++) {
			struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);

			bench_settings(b, fast ? 100 : 40, fast ? 0 : 30, 4, 60);
			receives(b, r, 8, 8192);
			play(b, r, t[i].script);
			bench_drain(b, 5000);
			assert_int_equal(b->n_acks, 0);
			if (b->n_cqes[0] != t[i].cqes ||
			    b->cnt[URDMA_CNT_RX_SEQ_ERR] != t[i].seqs ||
			    b->cnt[URDMA_CNT_RX_DROP_UNREL] != t[i].dropped)
				fail_msg("\"%s\": %u CQEs, RX_SEQ_ERR %u, RX_DROP_UNREL %u, "
					 "expected %u, %u, %u",
					 t[i].script, b->n_cqes[0],
					 (unsigned int)b->cnt[URDMA_CNT_RX_SEQ_ERR],
					 (unsigned int)b->cnt[URDMA_CNT_RX_DROP_UNREL], t[i].cqes,
					 t[i].seqs, t[i].dropped);
			/* WQEs are used in turn, none is left out */
			for (unsigned int k = 0; k < b->n_cqes[0]; k++)
				assert_int_equal(b->cqes[0][k].w[0] >> 32 & 0xffff, k);
			check(b);
		}
	}
	bench_settings(b, 100, 0, 4, 60);
	/* no WQE: the whole message is dropped, the next one finds what is posted meanwhile */
	for (int k = 0; k < 4; k++) {
		static const char *const scripts[] = { "o", "fmml", "FMI", "J" };
		static const unsigned int lost[] = { 1, 4, 1, 1 };
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);

		play(b, r, scripts[k]);
		bench_drain(b, 5000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_NO_WQE], lost[k]);
		assert_int_equal(b->n_acks + b->n_cqes[0] + b->n_errs[0], 0);
		check(b);
		play(b, r, k == 1 ? "f" : "");
		bench_drain(b, 5000);
		receives(b, r, 1, 4096);
		/* a message that began without a WQE does not get one */
		play(b, r, k == 1 ? "ml" : "");
		bench_drain(b, 5000);
		assert_int_equal(b->n_cqes[0], 0);
		play(b, r, scripts[k]);
		bench_drain(b, 5000);
		assert_int_equal(b->n_cqes[0], 1);
		check(b);
	}
	/* errors of the receiver's own: the WQE tells, the QP ends, and nothing is answered */
	for (int k = 0; k < 4; k++) {
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);
		struct sge s = { take(b, 4096, 64), k == 0 ? 99 : k == 1 ? 2047 : 4096, LKEY };

		if (k == 2)
			s.key = LKEY + 2;
		post(b, r, &s, 1);
		post(b, r, &s, 1);
		ring(b, r);
		bench_drain(b, 2000);
		if (k == 3) {
			b->fail_rd = 0;
			r->err = true; /* the reference knows nothing of it */
		}
		play(b, r, k == 1 ? "fmlo" : "oo");
		bench_drain(b, 5000);
		if (k == 3) {
			r->err = false;
			ref_cqe(r, r->ci++, URDMA_WC_LOC_QP_OP_ERR, 0, NULL, false, 0);
			ref_error(r, 0);
		}
		assert_int_equal(b->n_acks, 0);
		assert_int_equal(b->n_errs[0], 1);
		assert_int_equal(b->cqes[0][0].w[0] >> 16 & 255, k < 2	  ? URDMA_WC_LOC_LEN_ERR
								 : k == 2 ? URDMA_WC_LOC_PROT_ERR
									  : URDMA_WC_LOC_QP_OP_ERR);
		check(b);
		end_qp(b, r);
	}
	/* COMM_EST, once */
	{
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);

		r->cfg.state = URDMA_QPS_RTR;
		bench_cfg(b, &r->cfg);
		play(b, r, "m");
		bench_drain(b, 2000);
		assert_int_equal(b->n_errs[0], 0);
		play(b, r, "OO");
		bench_drain(b, 2000);
		assert_int_equal(b->n_errs[0], 1);
		check(b);
	}
	bench_free(b);
}

/*
 * A WRITE whose right, key or range is refused: nothing of it is written from there on, nobody is
 * told, and the message directly behind it is taken.
 */
void test_uc_refused(void **state)
{
	static const struct {
		const char *name;
		uint8_t acc;
		uint32_t key;
		int off;
	} t[] = {
		{ "no right of the QP", 6, RKEY, 0 },
		{ "no such key", 7, RKEY_NONE, 0 },
		{ "other PD", 7, RKEY_PD, 0 },
		{ "no right of the region", 7, RKEY_RO, 0 },
		{ "first packet out of range", 7, RKEY_WO, 0x10000 - 500 },
		{ "second packet out of range", 7, RKEY_WO, 0x10000 - 1500 },
		/* each of the others would be allowed for itself */
		{ "only the first packet out of range", 7, RKEY_WO, -600 },
		{ "last packet out of range", 7, RKEY_WO, 0x10000 - 2100 },
	};
	struct bench *b = start();

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		for (int k = 0; k < 8; k++) {
			struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);
			struct ref *rc = open_qp(b, 1, URDMA_QPT_RC, 3);
			unsigned int len = k & 1 ? 2500 : 600;
			bool slow = k & 2, loss = k & 4;
			uint32_t psn = r->epsn;

			if (len == 600 && i > 4 && t[i].off > 0)
				continue; /* within the range */
			bench_settings(b, slow ? 40 : 100, slow ? 30 : 0, 12, 60);
			r->cfg.acc = t[i].acc;
			bench_cfg(b, &r->cfg);
			receives(b, r, 4, 4096);
			receives(b, rc, 4, 4096);
			fill(b, len);
			if (len == 600) {
				send_reth(b, r, 10, psn++, rem_at(t[i].off), t[i].key, len, payload,
					  len, true);
			} else {
				send_reth(b, r, 6, psn++, rem_at(t[i].off), t[i].key, len, payload,
					  1024, true);
				send_reth(b, r, 7, psn++, 0, 0, 0, payload + 1024, 1024, true);
				/* with a loss, the end of the message does not come */
				if (!loss)
					send_reth(b, r, 8, psn++, 0, 0, 0, payload + 2048,
						  len - 2048, true);
				psn += loss;
			}
			play(b, rc, "flO");
			r->cfg.acc = 7;
			bench_run(b, 400);
			bench_cfg(b, &r->cfg);
			fill(b, 2000);
			send_reth(b, r, 6, psn++, rem_at(0x20000), RKEY, 2000, payload, 1024, true);
			send_reth(b, r, 8, psn++, 0, 0, 0, payload + 1024, 976, true);
			play(b, r, "fmlJo");
			bench_drain(b, 5000);
			if (b->n_errs[0] || b->cqes[0][0].w[0] >> 32 & 0xffff ||
			    !b->cnt[URDMA_CNT_RX_DROP_UNREL] != (i == 7 && loss))
				fail_msg("%s, %u bytes: %u errors, %u dropped", t[i].name, len,
					 b->n_errs[0],
					 (unsigned int)b->cnt[URDMA_CNT_RX_DROP_UNREL]);
			/* no answer but RC's own */
			for (unsigned int n = 0; n < b->n_acks; n++)
				assert_int_equal(b->acks[n].qpn, rc->cfg.qpn);
			check(b);
		}
	}
	/* the same at once, without the look-up's configuration in between */
	for (int k = 0; k < 40; k++) {
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 1);

		bench_settings(b, k & 1 ? 30 + k : 100, k & 1 ? 20 : 0, 1 + k % 7, 30);
		receives(b, r, 8, 4096);
		for (int n = 0; n < 8; n++) {
			fill(b, 1000);
			send_write(b, r, rem_at(1024 * n), n & 1 ? RKEY : RKEY_NONE,
				   rnd(b) % 2 ? 1000 : 200, false, 1);
			send_message(b, r, n & 2 ? 700 : 10, rnd(b) % 2, rnd(b) % 2, 0);
		}
		bench_drain(b, 5000);
		assert_int_equal(b->n_cqes[0], 8);
		assert_int_equal(b->n_errs[0], 0);
		check(b);
	}
	/*
	 * With immediate and a WQE: the WQE is the next message's. What follows at once may be
	 * lost, as ever with UC, but is never given another WQE's place.
	 */
	for (int k = 0; k < 60; k++) {
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);
		unsigned int len = k & 1 ? 2500 : 200, got;
		uint32_t psn = r->epsn;

		bench_settings(b, k & 2 ? 40 : 100, k & 2 ? 30 : 0, 1 + k % 9, 30);
		receives(b, r, 16, 4096);
		play(b, r, "j");
		bench_drain(b, 2000);
		check(b);
		fill(b, len);
		send_write(b, r, rem_at(0x10000 - 100), RKEY_WO, len, true, 1);
		if (k % 3 == 0) {
			bench_drain(b, 2000);
			assert_int_equal(b->n_cqes[0], 0);
		} else {
			struct ref was = *r;

			/* the reference does not see these */
			for (int n = 0; n < 6; n++) {
				if (n == 2 && k % 3 == 2)
					bench_run(b, rnd_in(b, 1, 120));
				play(b, r, n & 1 ? "fml" : "J");
			}
			psn = r->epsn;
			*r = was;
			r->epsn = psn;
			bench_drain(b, 5000);
			got = b->n_cqes[0];
			for (unsigned int n = 0; n < got; n++) {
				assert_int_equal(b->cqes[0][n].w[0] >> 32 & 0xffff, 1 + n);
				assert_int_equal(b->cqes[0][n].w[0] >> 16 & 255, 0);
			}
			r->ci += got;
			memcpy(b->shadow, b->host, HOST_SIZE);
			bench_clear_logs(b);
			ref_clear(r);
		}
		play(b, r, "JfmlOo");
		bench_drain(b, 5000);
		assert_int_equal(b->n_cqes[0], 3);
		assert_int_equal(b->n_errs[0] + b->n_acks, 0);
		check(b);
		end_qp(b, r);
	}
	/* placement drops one packet and the responder another, in any two cycles: both count */
	bench_settings(b, 100, 0, 1, 1);
	for (unsigned int apart = 0; apart < 60; apart++) {
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);
		struct ref *other = open_qp(b, 1, URDMA_QPT_UC, 3);

		bench_drain(b, 1000);
		fill(b, 64);
		send_write(b, r, rem_at(0), RKEY_NONE, 64, false, 1);
		bench_run(b, apart);
		play(b, other, "l");
		bench_drain(b, 2000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_UNREL], 2);
		check(b);
	}
	/* the end of the QP, in the midst of one that is refused */
	{
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);

		receives(b, r, 3, 100);
		fill(b, 1024);
		send_reth(b, r, 6, r->epsn, rem_at(0), RKEY_NONE, 2500, payload, 1024, true);
		bench_drain(b, 2000);
		check(b);
		end_qp(b, r);
		assert_int_equal(r->ci, 3);
	}
	/* a page table that cannot be read is the receiver's own error */
	{
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);

		b->fail_pt = 0;
		r->err = true;
		play(b, r, "O");
		bench_drain(b, 2000);
		r->err = false;
		ref_error(r, URDMA_EV_QP_FATAL);
		assert_int_equal(b->n_acks, 0);
		check(b);
		end_qp(b, r);
	}
	bench_free(b);
}

/*
 * WQEs are taken back while the QP ends, a fence runs, or a new life begins: nothing hangs, and
 * each WQE completes once, in order.
 */
void test_uc_back(void **state)
{
	static struct ref was;
	struct bench *b = start();
	unsigned int flushed = 0, good = 0;

	(void)state;
	for (int k = 0; k < 300; k++) {
		struct ref *r = open_qp(b, 0, URDMA_QPT_UC, 3);
		unsigned int posted = 12, next = 0, end = rnd_in(b, 1, 500), kind = rnd(b) % 4;

		bench_settings(b, k & 1 ? rnd_in(b, 30, 100) : 100, k & 1 ? 30 : 0,
			       rnd_in(b, 1, 12), 30);
		receives(b, r, posted, 4096);
		was = *r;
		for (int n = 0; n < 8; n++) {
			bool bad = rnd(b) % 2;

			if (bad)
				send_write(b, r, rem_at(0x10000 - 100), RKEY_WO,
					   rnd(b) % 2 ? 2500 : 200, true, 1);
			play(b, r, rnd(b) % 2 ? "J" : rnd(b) % 2 ? "fml" : "O");
		}
		bench_run(b, end);
		if (kind == 0) {
			bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
		} else if (kind == 1) {
			b->in.fence_req = true;
			for (int n = 0; !b->out.fence_done; n++) {
				bench_cycle(b);
				if (n > 20000)
					fail_msg("round %d: the fence does not end", k);
			}
			b->in.fence_req = false;
		} else if (kind == 2) {
			bench_ctl_wait(b, false, QPC_RESET, r->cfg.qpn, 0, 200);
		}
		bench_drain(b, 20000);
		if (kind != 2 && kind != 0)
			bench_ctl(b, false, QPC_ERR, r->cfg.qpn, 0);
		bench_drain(b, 20000);
		assert_int_equal(b->n_acks + b->n_errs[0], 0);
		for (unsigned int n = 0; n < b->n_cqes[0]; n++) {
			unsigned int status = b->cqes[0][n].w[0] >> 16 & 255;

			assert_int_equal(b->cqes[0][n].w[0] >> 32 & 0xffff, next++);
			if (flushed)
				assert_int_equal(status, URDMA_WC_FLUSH_ERR);
			else
				assert_true(!status || status == URDMA_WC_FLUSH_ERR);
			flushed += status != 0;
			good += !status;
		}
		if (kind != 2)
			assert_int_equal(next, posted);
		flushed = 0;
		*r = was;
		memcpy(b->shadow, b->host, HOST_SIZE);
		bench_clear_logs(b);
		ref_clear(r);
		/* the next life begins with the first WQE */
		r = open_qp(b, 0, URDMA_QPT_UC, 3);
		receives(b, r, 4, 4096);
		play(b, r, "JfmlO");
		bench_drain(b, 5000);
		assert_int_equal(b->n_cqes[0], 2);
		check(b);
	}
	print_message("%u messages completed well\n", good);
	assert_true(good > 200);
	bench_free(b);
}

/* ---- UD ---------------------------------------------------------------------------------------
 */

/* A datagram from anywhere to entry gid of the table. */
static struct packet datagram(struct bench *b, struct ref *r, int gid, bool imm, const uint8_t *p,
			      size_t len)
{
	struct packet k = { .ipv4 = gid == 0 || gid == 3,
			    .vlan_valid = gid & 1,
			    .vlan = (gid & 1 ? 5 : 0) | (rnd(b) & 0xf000),
			    .opcode = imm ? 0x65 : 0x64,
			    .se = rnd(b) % 2,
			    .ackreq = rnd(b) % 2,
			    .pkey = rnd(b) % 2 ? 0xffff : 0x7fff,
			    .dqpn = r->cfg.qpn,
			    .psn = rnd(b) & 0xffffff,
			    .payload = p,
			    .len = len };

	/* a tag without a VLAN carries a priority */
	if (!(gid & 1) && rnd(b) % 4 == 0)
		k.vlan_valid = true;
	memcpy(k.dmac, mac_own, 6);
	memcpy(k.smac, mac_peer, 6);
	(k.ipv4 ? gid4 : gid6)(k.dip, 2);
	(k.ipv4 ? gid4 : gid6)(k.sip, rnd(b));
	k.ext_len = opc_rules[k.opcode].ext;
	put32(k.ext, r->cfg.qkey);
	put32(k.ext + 4, rnd(b));
	put32(k.ext + 8, rnd(b));
	return k;
}

unsigned int soak_datagram(struct bench *b, struct ref *r)
{
	size_t mtu = 128u << r->cfg.mtu, len = rnd(b) % 4 ? rnd_in(b, 0, mtu) : rnd_in(b, 0, 200);
	struct packet k;

	if (len > mtu || rnd(b) % 20 == 0)
		len = rnd_in(b, 0, 4096);
	fill(b, len);
	k = datagram(b, r, rnd(b) % 4, rnd(b) % 2, payload, len);
	switch (rnd(b) % 30) {
	case 0:
		put32(k.ext, r->cfg.qkey ^ 1u << rnd(b) % 32);
		break;
	case 1:
		k.opcode = 0x60 + rnd(b) % 32;
		k.ext_len = opc_rules[k.opcode].ext;
		break;
	case 2:
		k.opcode = rnd(b) % 2 ? 4 : 0x24;
		k.ext_len = 0;
		break;
	}
	send_as(b, r, &k);
	return (40 + len + 63) / 64;
}

/* Every size to every address, with every shape of scatter list. */
void test_ud(void **state)
{
	struct bench *b = start();
	unsigned int n = 0;

	(void)state;
	for (int speed = 0; speed < 2; speed++) {
		bench_settings(b, speed ? 60 : 100, speed ? 20 : 0, 4, 60);
		for (int q = 0; q < 5; q++) {
			struct ref *r = open_qp(b, q, URDMA_QPT_UD, q + 1);
			size_t mtu = 128u << r->cfg.mtu;
			size_t sizes[] = { 0, 1, 3, 4, 23, 24, 25, 87, 88, mtu - 25, mtu - 1, mtu };

			/* from RTR on, with the GID of another address family */
			r->cfg.state = speed ? URDMA_QPS_RTR : URDMA_QPS_RTS;
			bench_cfg(b, &r->cfg);
			for (int shape = 0; shape < 5; shape++) {
				for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
					struct sge s[32];
					struct packet p;

					post(b, r, s, shape_sges(b, shape, 40 + sizes[k], s, 3));
					ring(b, r);
					fill(b, sizes[k]);
					bench_drain(b, 3000);
					p = datagram(b, r, n % 4, n / 4 % 2, payload, sizes[k]);
					send_as(b, r, &p);
					n++;
					if (!speed)
						bench_drain(b, 3000);
				}
				bench_drain(b, 20000);
				assert_int_equal(b->n_cqes[0], 12);
				check(b);
			}
		}
	}
	/* 4136 bytes into one SGE, at each offset in a page that makes a difference */
	for (unsigned int off = 0; off < 4096; off += off % 64 == 63 ? 450 : 21) {
		struct ref *r = open_qp(b, 0, URDMA_QPT_UD, 5);

		post(b, r, &(struct sge){ HOST_VA + DATA_OFF + off, 4136, LKEY }, 1);
		post(b, r, &(struct sge){ HOST_VA + DATA_OFF + 0x4000 + off, 5000, LKEY }, 1);
		ring(b, r);
		bench_drain(b, 2000);
		for (int i = 0; i < 2; i++) {
			struct packet p;

			fill(b, 4096);
			p = datagram(b, r, i + 1, i, payload, 4096);
			send_as(b, r, &p);
		}
		bench_drain(b, 5000);
		assert_int_equal(b->n_cqes[0], 2);
		check(b);
		n += 2;
	}
	print_message("%u datagrams\n", n);
	bench_free(b);
}

/* What is not for the QP, or does not fit it, is dropped and counted; the next one is taken. */
void test_ud_dropped(void **state)
{
	enum { OPCODE, OPCODE_IMM, QKEY, QKEY_BIT, LENGTH, WQE, PKEY, RC, UC, STATE, CASES };
	static const int counter[CASES] = {
		URDMA_CNT_RX_DROP_UNREL, URDMA_CNT_RX_DROP_UNREL, URDMA_CNT_RX_BAD_QKEY,
		URDMA_CNT_RX_BAD_QKEY,	 URDMA_CNT_RX_DROP_UNREL, URDMA_CNT_RX_DROP_NO_WQE,
		URDMA_CNT_RX_NO_QP,	 URDMA_CNT_RX_NO_QP,	  URDMA_CNT_RX_NO_QP,
		URDMA_CNT_RX_NO_QP,
	};
	static const int all[] = { URDMA_CNT_RX_DROP_UNREL,  URDMA_CNT_RX_BAD_QKEY,
				   URDMA_CNT_RX_DROP_NO_WQE, URDMA_CNT_RX_NO_QP,
				   URDMA_CNT_RX_SEQ_ERR,     URDMA_CNT_RX_DUP };
	struct bench *b = start();

	(void)state;
	for (int i = 0; i < CASES; i++) {
		struct ref *r = open_qp(b, i % 4, URDMA_QPT_UD, 3);
		struct packet p;

		if (i != WQE)
			receives(b, r, 2, 2000);
		fill(b, 1100);
		p = datagram(b, r, 2, i & 1, payload, i == LENGTH ? 1025 : 1024);
		switch (i) {
		case OPCODE:
			p.opcode = 0x60;
			p.ext_len = 0;
			break;
		case OPCODE_IMM:
			p.opcode = 0x76;
			p.ext_len = 0;
			break;
		case QKEY:
			put32(p.ext, 0);
			break;
		case QKEY_BIT:
			put32(p.ext, r->cfg.qkey ^ 0x80000000);
			break;
		case PKEY:
			p.pkey = 0xfffe;
			break;
		case RC:
		case UC:
			p.opcode = i == RC ? 4 : 0x24;
			p.ext_len = 0;
			break;
		case STATE:
			r->cfg.state = URDMA_QPS_INIT;
			bench_cfg(b, &r->cfg);
		}
		if (i == PKEY || i == STATE) {
			/* the reference sees what the look-up takes */
			static struct frame f;

			packet_build(&p, &f);
			bench_frame(b, &f, false);
		} else {
			send_as(b, r, &p);
		}
		bench_drain(b, 2000);
		for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
			if (b->cnt[all[k]] != (all[k] == counter[i]))
				fail_msg("case %d: counter %d is %u", i, all[k],
					 (unsigned int)b->cnt[all[k]]);
		assert_int_equal(b->n_acks + b->n_errs[0] + b->n_cqes[0], 0);
		assert_int_equal(b->lanes.in, 1);
		assert_int_equal(b->lanes.verdict[TRV_TAKEN], 0);
		r->cfg.state = URDMA_QPS_RTS;
		bench_cfg(b, &r->cfg);
		if (i == WQE)
			receives(b, r, 1, 2000);
		p = datagram(b, r, 1, true, payload, 1024);
		send_as(b, r, &p);
		bench_drain(b, 2000);
		assert_int_equal(b->n_cqes[0], 1);
		check(b);
	}
	/* UD to RC, UD to UC: nobody's */
	for (int i = 0; i < 2; i++) {
		struct ref *r = open_qp(b, 0, i ? URDMA_QPT_UC : URDMA_QPT_RC, 3);
		struct packet p = datagram(b, r, 0, false, payload, 64);
		static struct frame f;

		receives(b, r, 1, 2000);
		p.psn = r->epsn;
		memcpy(p.sip, r->hdr.sip, 16);
		packet_build(&p, &f);
		bench_frame(b, &f, false);
		bench_drain(b, 2000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_NO_QP], 1);
		assert_int_equal(b->n_acks + b->n_cqes[0], 0);
		check(b);
	}
	/* to an address that is not the port's: not RDMA's */
	{
		struct ref *r = open_qp(b, 0, URDMA_QPT_UD, 3);
		struct packet p = datagram(b, r, 0, false, payload, 64);
		static struct frame f;

		p.dip[15] = 9;
		packet_build(&p, &f);
		bench_frame(b, &f, false);
		bench_drain(b, 2000);
		assert_int_equal(b->cnt[URDMA_CNT_RX_NOT_RDMA], 1);
		check(b);
	}
	/* a WQE that has no room for the GRH, or for the last byte; a key that is refused */
	for (int i = 0; i < 4; i++) {
		struct ref *r = open_qp(b, 0, URDMA_QPT_UD, 5);
		struct sge s = { take(b, 8192, 64),
				 i == 0	  ? 39
				 : i == 1 ? 103
					  : 4135,
				 i == 3 ? LKEY + 1 : LKEY };
		struct packet p;

		post(b, r, &s, 1);
		post(b, r, &s, 1);
		ring(b, r);
		bench_drain(b, 2000);
		fill(b, 4096);
		p = datagram(b, r, 2, true, payload, i < 2 ? 64 : 4096);
		if (i == 3)
			p.len = 100;
		send_as(b, r, &p);
		send_as(b, r, &p);
		bench_drain(b, 2000);
		assert_int_equal(b->n_acks, 0);
		assert_int_equal(b->cqes[0][0].w[0] >> 16 & 255,
				 i == 3 ? URDMA_WC_LOC_PROT_ERR : URDMA_WC_LOC_LEN_ERR);
		check(b);
		end_qp(b, r);
	}
	bench_free(b);
}

/* ---- the sender's side ------------------------------------------------------------------------
 */

/* Messages of UC and UD complete as they are told, in order with one that failed. */
void test_unrel_sent(void **state)
{
	struct bench *b = start();

	(void)state;
	for (int q = 0; q < 4; q++) {
		struct ref *r = open_qp(b, q, q & 1 ? URDMA_QPT_UC : URDMA_QPT_UD, 3);
		uint32_t psn = 0xfffff0;
		uint64_t begin;

		bench_ctl_wait(b, true, QPC_RESET, r->cfg.qpn, 0, 200);
		bench_ctl_wait(b, true, QPC_SQ_PSN, r->cfg.qpn, psn, 200);
		bench_drain(b, 100);
		bench_clear_logs(b);
		begin = b->cycle;
		for (unsigned int i = 0; i < 1000; i++) {
			struct rx_sent s = { .qpn = r->cfg.qpn,
					     .wqe = i,
					     .psn = psn++ & 0xffffff,
					     .opcode = URDMA_WR_SEND,
					     .signaled = 1,
					     .unrel = true,
					     .len = 64 };

			bench_sent(b, &s);
			bench_run(b, 4);
			assert_true(s.wqe - b->n_cqes[1] < 60);
		}
		bench_drain(b, 500);
		assert_int_equal(b->n_cqes[1], 1000);
		assert_true(b->cycle - begin < 1000 * 5);
		for (unsigned int i = 0; i < 1000; i++) {
			assert_int_equal(b->cqes[1][i].w[0] >> 32 & 0xffff, i);
			assert_int_equal(b->cqes[1][i].w[0] >> 16 & 255, 0);
		}
		assert_int_equal(b->ackeds[b->n_ackeds - 1].wqe, 1000);
		assert_int_equal(b->ackeds[b->n_ackeds - 1].una, psn & 0xffffff);
		assert_false(b->out.timer_armed);
		bench_clear_logs(b);
		for (unsigned int i = 0; i < 4; i++) {
			struct rx_sent s = { .qpn = r->cfg.qpn,
					     .wqe = 1000 + i,
					     .psn = (psn + (i == 0 ? 0 : 1)) & 0xffffff,
					     .opcode = URDMA_WR_SEND,
					     .status = i == 0	? 0
						       : i == 1 ? URDMA_WC_LOC_LEN_ERR
								: URDMA_WC_FLUSH_ERR,
					     .unrel = true };

			s.signaled = 1;
			bench_sent(b, &s);
		}
		bench_drain(b, 500);
		assert_int_equal(b->n_cqes[1], 4);
		for (unsigned int i = 0; i < 4; i++)
			assert_int_equal(b->cqes[1][i].w[0] >> 16 & 255,
					 i == 0	  ? 0
					 : i == 1 ? URDMA_WC_LOC_LEN_ERR
						  : URDMA_WC_FLUSH_ERR);
		assert_int_equal(b->n_errs[1], 1);
		bench_clear_logs(b);
	}
	bench_free(b);
}

/* ---- rates ------------------------------------------------------------------------------------
 */

void test_unrel_rates(void **state)
{
	enum { UD, UC_SEND, UC_WRITE };
	static const struct {
		const char *name;
		int kind, qps;
		size_t len;
		unsigned int n, spacing;
	} runs[] = {
		{ "64-byte UD, 8 QPs", UD, 8, 64, 1000, 3 },
		{ "64-byte UD, one QP", UD, 1, 64, 1000, 3 },
		{ "4096-byte UD, 64 bytes a cycle", UD, 1, 4096, 600, 67 },
		{ "64-byte UC SENDs, one QP", UC_SEND, 1, 64, 1000, 3 },
		{ "64-byte UC WRITEs, 8 QPs", UC_WRITE, 8, 64, 1000, 3 },
		{ "32-byte UC WRITEs, one QP", UC_WRITE, 1, 32, 1000, 2 },
		{ "4096-byte UC WRITEs, 64 bytes a cycle", UC_WRITE, 1, 4096, 600, 67 },
	};
	struct bench *b = start();

	(void)state;
	for (size_t k = 0; k < sizeof(runs) / sizeof(runs[0]); k++) {
		double per;

		bench_settings(b, 100, 0, 8, 100);
		qp_type = runs[k].kind == UD ? URDMA_QPT_UD : URDMA_QPT_UC;
		for (int q = 0; q < runs[k].qps; q++)
			qp_init(b, q, 5, 10, 6, 0);
		next_va = HOST_VA + DATA_OFF;
		for (unsigned int i = 0; i < runs[k].n && runs[k].kind != UC_WRITE; i++)
			post(b, &refs[i % runs[k].qps],
			     &(struct sge){ take(b, runs[k].len + 49, 64), runs[k].len + 40, LKEY },
			     1);
		for (int q = 0; q < runs[k].qps; q++)
			ring(b, &refs[q]);
		bench_drain(b, 3000);
		bench_clear_logs(b);
		for (unsigned int i = 0; i < runs[k].n; i++) {
			struct ref *r = &refs[i % runs[k].qps];
			struct packet p;

			fill(b, runs[k].len);
			if (runs[k].kind == UD) {
				p = datagram(b, r, 0, false, payload, runs[k].len);
				p.vlan_valid = false;
				send_as(b, r, &p);
			} else if (runs[k].kind == UC_WRITE) {
				send_write(b, r, rem_at(64 * i), RKEY, runs[k].len, false, 1);
			} else {
				send_message(b, r, runs[k].len, false, false, 1);
			}
			bench_run(b, runs[k].spacing);
		}
		bench_drain(b, 200000);
		per = (double)(b->last_wr - b->first_wr) / (runs[k].n - 1);
		print_message("%-37s %6.2f cycles a packet\n", runs[k].name, per);
		assert_int_equal(b->cnt[URDMA_CNT_RX_DROP_FULL], 0);
		assert_true(per < runs[k].spacing + 0.5);
		check(b);
	}
	bench_free(b);
}
