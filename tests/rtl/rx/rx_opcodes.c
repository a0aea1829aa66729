// SPDX-License-Identifier: Apache-2.0
/*
 * Every opcode with every length around its limits, in and out of sequence, at three path MTUs,
 * to a QP of each transport, against the table of opcode_rules.h. Only the length of a packet, and
 * its place in the message, may be wrong: the message length in its headers matches as far as
 * possible.
 */
#include "rx_opcodes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "opcode_rules.h"
#include "rx_bench.h"

#define QPN	 5
#define QPN_INI	 6 /* XRC: of the initiator; QPN is the target's */
#define SRQN	 0x155
#define DOMAIN	 9
#define PD	 7
#define RQ_PSN	 0xffffff
#define SQ_PSN	 0x7ffffe
#define RQ_OFF	 0x10000
#define SQ_OFF	 0x20000
#define RECV_OFF 0x100000 /* where a SEND goes */
#define REM_OFF	 0x110000 /* a WRITE; what a READ reads */
#define SRQ_OFF	 0x30000
#define READ_OFF 0x120000 /* what is read, an ATOMIC's result */
#define KEY	 0x1200
#define KEY_INV	 0x1300
#define MAX_LEN	 0x8000
#define QKEY	 0x12345678
#define SRC_QPN	 0x654321

struct opcodes {
	struct bench *b;
	enum opc_transport qp;
	unsigned int mtu_code, mtu;
	bool alive; /* set up, and nothing has happened since */
	uint8_t payload[2 * 4096 + 64];
	uint8_t grh[40]; /* of the last packet */
	unsigned int cases, verdicts[6];
};

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = v >> (24 - 8 * i);
}

static void gid(uint8_t *g, uint8_t last)
{
	static const uint8_t prefix[15] = { [10] = 0xff, 0xff, 10, 0, 0 };

	memcpy(g, prefix, 15);
	g[15] = last;
}

static const uint8_t mac_own[6] = { 2, 0, 0, 0, 0, 2 }, mac_peer[6] = { 2, 0, 0, 0, 0, 1 };

static void send(struct opcodes *o, unsigned int opcode, uint32_t psn, uint32_t total,
		 const uint8_t *payload, struct opc_shape shape)
{
	const struct opc_rule *r = &opc_rules[opcode];
	static struct frame f;
	uint8_t *ext;
	struct packet k = { .ipv4 = true,
			    .opcode = opcode,
			    .pkey = 0xffff,
			    .dqpn = QPN,
			    .psn = psn & 0xffffff,
			    .ackreq = true,
			    .ext_len = r->ext,
			    .payload = payload,
			    .len = shape.room,
			    .raw = true,
			    .pad = shape.pad };

	memcpy(k.dmac, mac_own, 6);
	memcpy(k.smac, mac_peer, 6);
	gid(k.dip, 2);
	gid(k.sip, 1);
	ext = k.ext + opc_xrceth(opcode);
	if (ext != k.ext)
		put32(k.ext, 0x5a000000 | SRQN); /* the upper byte is reserved */
	if (o->qp == OPC_T_XRC && opc_is_response(r->kind))
		k.dqpn = QPN_INI;
	if (opc_transport(opcode) == OPC_T_UD) {
		put32(ext, QKEY);
		put32(ext + 4, SRC_QPN);
	} else if (r->inv) {
		put32(ext, KEY_INV);
	} else if (opc_is_response(r->kind)) {
		put32(ext, 0x1f000001);
	} else if (r->ext - opc_xrceth(opcode) >= 16) {
		if (r->kind == OPC_FLUSH) {
			put32(ext, URDMA_FLUSH_GLOBAL); /* the FETH: a range */
			ext += 4;
		}
		put32(ext, (HOST_VA + REM_OFF) >> 32);
		put32(ext + 4, (uint32_t)(HOST_VA + REM_OFF));
		put32(ext + 8, KEY);
		/* of an ATOMIC: swaps or adds 0 */
		put32(ext + 12, r->kind == OPC_ATOMIC ? 0 : total);
	}
	packet_build(&k, &f);
	memset(o->grh, 0, 20);
	memcpy(o->grh + 20, f.b + packet_ip(&k), 20);
	bench_frame(o->b, &f, false);
}

static void wqe(struct opcodes *o, uint64_t off, const uint8_t head[3], unsigned int head_len,
		uint64_t va, uint32_t len)
{
	uint8_t w[64] = { 0 };
	uint32_t key = KEY;

	memcpy(w, head, 3);
	memcpy(w + head_len, &va, 8);
	memcpy(w + head_len + 8, &len, 4);
	memcpy(w + head_len + 12, &key, 4);
	bench_put(o->b, HOST_VA + off, w, sizeof(w));
}

static void begin(struct bench *b, const struct rx_cfg *c)
{
	bench_cfg(b, c);
	bench_ctl_wait(b, false, QPC_RESET, c->qpn, 0, 200);
	bench_ctl_wait(b, true, QPC_RESET, c->qpn, 0, 200);
	bench_ctl_wait(b, false, QPC_RQ_PSN, c->qpn, RQ_PSN, 200);
	bench_ctl_wait(b, true, QPC_SQ_PSN, c->qpn, SQ_PSN, 200);
}

/* The SRQ in a new life: the places 0 and 1 of its array are posted. */
static void renew_srq(struct bench *b)
{
	struct rx_sro op = { .op = SRO_DESTROY, .srqn = SRQN };
	uint16_t index[2] = { 0, 1 };

	bench_srq(b, &op);
	op = (struct rx_sro){ .op = SRO_CREATE,
			      .srqn = SRQN,
			      .pd = PD,
			      .addr = HOST_BUS + SRQ_OFF,
			      .log_entries = 4,
			      .log_stride = 6,
			      .xrc = true,
			      .xrcd = DOMAIN,
			      .cqn = 20 };
	bench_srq(b, &op);
	bench_put(b, HOST_VA + SRQ_OFF + (64 << 4), index, sizeof(index));
	bench_srq_db(b, SRQN, 2);
}

/* The QP in a new life, with receives. */
static void renew(struct opcodes *o)
{
	struct bench *b = o->b;
	struct rx_cfg c = { .qpn = QPN,
			    .exists = true,
			    .state = URDMA_QPS_RTS,
			    .type = o->qp == OPC_T_UC	 ? URDMA_QPT_UC
				    : o->qp == OPC_T_UD	 ? URDMA_QPT_UD
				    : o->qp == OPC_T_XRC ? URDMA_QPT_XRC_TGT
							 : URDMA_QPT_RC,
			    .pd = o->qp == OPC_T_XRC ? DOMAIN : PD,
			    .send_cq = 30,
			    .recv_cq = 20,
			    .rq_addr = HOST_BUS + RQ_OFF,
			    .rq_log_entries = 4,
			    .rq_log_stride = 6,
			    .sq_addr = HOST_BUS + SQ_OFF,
			    .sq_log_entries = 4,
			    .sq_log_stride = 6,
			    .mtu = o->mtu_code,
			    .acc = 15,
			    .max_dest = 16,
			    .dest_qpn = 0xabc,
			    .qkey = QKEY,
			    .pkey = 0xffff };

	gid(c.dgid, 1);
	begin(b, &c);
	if (o->qp == OPC_T_XRC) {
		c.qpn = QPN_INI;
		c.type = URDMA_QPT_XRC_INI;
		c.pd = PD;
		begin(b, &c);
		renew_srq(b);
	} else {
		bench_db(b, QPN, 2);
	}
	memset(b->mr_invalid, 0, sizeof(b->mr_invalid));
	bench_drain(b, 1000);
	o->alive = true;
}

/* Of an opcode that the QP's transport has */
static const struct opc_rule *rule(const struct opcodes *o, unsigned int opcode)
{
	return opc_transport(opcode) == o->qp ? &opc_rules[opcode] : NULL;
}

/* The message of the requester that a response of this kind answers; the PSN of the response. */
static uint32_t outstanding(struct opcodes *o, const struct opc_rule *r, unsigned int len)
{
	unsigned int mtu = o->mtu, bytes = opc_message(r, mtu, len), packets;
	struct rx_sent m = { .qpn = o->qp == OPC_T_XRC ? QPN_INI : QPN,
			     .signaled = 1,
			     .opcode = URDMA_WR_READ };

	if (r->kind != OPC_READ_RSP)
		m.opcode = r->kind == OPC_ACK ? URDMA_WR_SEND : URDMA_WR_ATOMIC_FA;
	packets = bytes ? (bytes + mtu - 1) / mtu : 1;
	wqe(o, SQ_OFF, (uint8_t[]){ m.opcode, 1, 1 }, 32, HOST_VA + READ_OFF, bytes);
	m.len = bytes;
	m.psn = (SQ_PSN + packets - 1) & 0xffffff;
	bench_sent(o->b, &m);
	bench_drain(o->b, 1000);
	if (r->place != OPC_MIDDLE && r->place != OPC_LAST)
		return SQ_PSN;
	send(o, o->qp == OPC_T_XRC ? 0xad : 0x0d, SQ_PSN, 0, o->payload + 64,
	     (struct opc_shape){ mtu, 0 });
	return SQ_PSN + 1;
}

/* The packets before the one that is looked at; the PSN of that one. */
static uint32_t lead_in(struct opcodes *o, unsigned int opcode, enum opc_before before,
			unsigned int len)
{
	const struct opc_rule *r = rule(o, opcode);
	bool write = r && r->kind == OPC_WRITE && opc_wants(r) == before;
	unsigned int mtu = o->mtu, uc = o->qp == OPC_T_UC ? 0x20 : o->qp == OPC_T_XRC ? 0xa0 : 0;

	if (r && opc_is_response(r->kind))
		return outstanding(o, r, len);
	if (before == OPC_IDLE)
		return RQ_PSN;
	send(o, uc + (before == OPC_IN_SEND ? 0x00 : 0x06), RQ_PSN,
	     write ? opc_message(r, mtu, len) : 3 * mtu, o->payload + 64,
	     (struct opc_shape){ mtu, 0 });
	return RQ_PSN + 1;
}

static void expect(struct opcodes *o, const char *what, unsigned int got, unsigned int want,
		   const char *packet)
{
	if (got != want)
		fail_msg("%s, cycle %llu: %s: %u, expected %u", packet,
			 (unsigned long long)o->b->cycle, what, got, want);
}

/* What a packet that is taken leaves in memory and tells. */
static void judge_taken(struct opcodes *o, const struct opc_rule *r, unsigned int len, uint32_t psn,
			const char *packet)
{
	struct bench *b = o->b;
	bool last = r->place == OPC_LAST || r->place == OPC_ONLY, response, ud = o->qp == OPC_T_UD;
	bool answered;
	unsigned int off = r->place == OPC_MIDDLE || r->place == OPC_LAST ? o->mtu : 0;
	bool write = r->kind == OPC_WRITE || r->kind == OPC_ATOMIC_WRITE;
	uint64_t to = r->kind == OPC_SEND ? RECV_OFF : write ? REM_OFF : READ_OFF;

	response = opc_is_response(r->kind);
	answered = !response && (o->qp == OPC_T_RC || o->qp == OPC_T_XRC);
	if (ud) {
		memcpy(b->shadow + to, o->grh, sizeof(o->grh));
		off = sizeof(o->grh);
	}
	memcpy(b->shadow + to + off, o->payload, len);
	if (r->kind == OPC_ATOMIC_ACK)
		memset(b->shadow + READ_OFF, 0, 8);
	expect(o, "answers", b->n_acks, answered, packet);
	expect(o, "receive CQEs", b->n_cqes[0],
	       last && (r->kind == OPC_SEND || (r->kind == OPC_WRITE && r->imm)), packet);
	expect(o, "send CQEs", b->n_cqes[1], response && last, packet);
	if (answered) {
		expect(o, "answer's kind", b->acks[0].kind,
		       r->kind == OPC_ATOMIC ? RSP_ATOMIC
		       : r->kind == OPC_READ || r->kind == OPC_FLUSH || r->kind == OPC_ATOMIC_WRITE
			       ? RSP_READ
			       : RSP_ACK,
		       packet);
		expect(o, "answer's PSN", b->acks[0].psn, psn & 0xffffff, packet);
		if (r->kind == OPC_FLUSH || r->kind == OPC_ATOMIC_WRITE)
			expect(o, "answer's length", b->acks[0].len, 0, packet);
		if (r->kind != OPC_ATOMIC)
			expect(o, "syndrome", b->acks[0].syndrome, 0x1f, packet);
	}
	for (int c = 0; c < 2; c++) {
		expect(o, "errors", b->n_errs[c], 0, packet);
		if (b->n_cqes[c])
			expect(o, "status", b->cqes[c][0].w[0] >> 16 & 255, URDMA_WC_SUCCESS,
			       packet);
	}
	if (b->n_cqes[0]) {
		expect(o, "length", (uint32_t)b->cqes[0][0].w[1], off + len, packet);
		expect(o, "GRH", b->cqes[0][0].w[0] >> 5 & 7, ud ? 3 : 0, packet);
		expect(o, "source QPN or SRQ", b->cqes[0][0].w[2] >> 32,
		       ud		    ? SRC_QPN
		       : o->qp == OPC_T_XRC ? SRQN
					    : 0xabc,
		       packet);
		expect(o, "XRC", b->cqes[0][0].w[0] & 1, o->qp == OPC_T_XRC, packet);
	}
}

static void judge(struct opcodes *o, enum opc_verdict verdict, const struct opc_rule *r,
		  enum opc_before before, unsigned int len, uint32_t psn, const char *packet)
{
	struct bench *b = o->b;
	bool refused = verdict == OPC_REFUSED, bad = verdict == OPC_BAD_RSP;

	expect(o, "RX_MALFORMED", b->cnt[URDMA_CNT_RX_MALFORMED], verdict == OPC_MALFORMED, packet);
	expect(o, "RX_NO_QP", b->cnt[URDMA_CNT_RX_NO_QP], verdict == OPC_NO_QP, packet);
	expect(o, "RX_DROP_UNREL", b->cnt[URDMA_CNT_RX_DROP_UNREL], verdict == OPC_DROPPED, packet);
	expect(o, "RX_RDMA_PKTS", b->cnt[URDMA_CNT_RX_RDMA_PKTS], verdict != OPC_MALFORMED, packet);
	if (verdict == OPC_TAKEN) {
		judge_taken(o, r, len, psn, packet);
	} else {
		/* a SEND that has begun has a WQE, which tells; else an event does, also for XRC if
		 * the packet names no SRQ */
		bool has_wqe = refused && before == OPC_IN_SEND && (o->qp != OPC_T_XRC || r->name);

		expect(o, "answers", b->n_acks, refused, packet);
		expect(o, "receive CQEs", b->n_cqes[0], has_wqe, packet);
		expect(o, "send CQEs", b->n_cqes[1], bad, packet);
		expect(o, "responder's errors", b->n_errs[0], refused, packet);
		expect(o, "requester's errors", b->n_errs[1], bad, packet);
		if (refused) {
			expect(o, "syndrome", b->acks[0].syndrome, 0x61, packet);
			expect(o, "NAK's PSN", b->acks[0].psn, psn & 0xffffff, packet);
			expect(o, "event", b->errs[0][0].event, has_wqe ? 0 : URDMA_EV_QP_REQ_ERR,
			       packet);
		}
		if (has_wqe)
			expect(o, "status", b->cqes[0][0].w[0] >> 16 & 255,
			       URDMA_WC_REM_INV_REQ_ERR, packet);
		if (bad)
			expect(o, "status", b->cqes[1][0].w[0] >> 16 & 255, URDMA_WC_BAD_RESP_ERR,
			       packet);
	}
	if (memcmp(b->host, b->shadow, HOST_SIZE))
		fail_msg("%s, cycle %llu: memory is not as it has to be", packet,
			 (unsigned long long)b->cycle);
}

/* The QP takes the message behind one that was dropped, with the WQE that this one had. */
static void judge_next(struct opcodes *o, uint32_t psn, const char *packet)
{
	struct bench *b = o->b;

	bench_clear_logs(b);
	send(o, o->qp == OPC_T_UC ? 0x24 : 0x64, psn, 0, o->payload, (struct opc_shape){ 8, 0 });
	bench_drain(b, 3000);
	expect(o, "CQEs of the next message", b->n_cqes[0], 1, packet);
	expect(o, "its WQE", b->cqes[0][0].w[0] >> 32 & 0xffff, 0, packet);
	expect(o, "RX_SEQ_ERR", b->cnt[URDMA_CNT_RX_SEQ_ERR], 0, packet);
}

static void one(struct opcodes *o, unsigned int opcode, enum opc_before before,
		struct opc_shape shape)
{
	static const char *const before_name[] = { "", " in a SEND", " in a WRITE" };
	const struct opc_rule *r = rule(o, opcode);
	enum opc_verdict verdict =
		o->qp == OPC_T_RC    ? opc_verdict(opcode, before, o->mtu, shape)
		: o->qp == OPC_T_XRC ? opc_verdict_xrc(opcode, before, o->mtu, shape)
				     : opc_verdict_unrel(o->qp, opcode, before, o->mtu, shape);
	bool dropped = verdict == OPC_MALFORMED || verdict == OPC_NO_QP;
	unsigned int len = shape.room - shape.pad, total = 3 * o->mtu;
	struct bench *b = o->b;
	uint32_t psn = RQ_PSN;
	char packet[128];

	snprintf(packet, sizeof(packet), "opcode 0x%02x (%s)%s, MTU %u, %u bytes, pad %u", opcode,
		 r && r->name ? r->name : "reserved", before_name[before], o->mtu, shape.room,
		 shape.pad);
	for (size_t i = 0; i < sizeof(o->payload); i += 4) {
		uint32_t v = rnd(b);

		memcpy(o->payload + i, &v, 4);
	}
	/* what is dropped leaves all as it was */
	if (!o->alive || !dropped) {
		renew(o);
		psn = lead_in(o, opcode, before, len);
		bench_drain(b, 3000);
		/* what stands in front is not looked at here */
		memcpy(b->shadow, b->host, HOST_SIZE);
	}
	bench_clear_logs(b);
	if (r && r->kind == OPC_WRITE)
		total = opc_message(r, o->mtu, len);
	if (r && r->kind == OPC_ATOMIC_WRITE)
		total = 8;
	send(o, opcode, psn, total, o->payload, shape);
	bench_drain(b, 3000);
	judge(o, verdict, r, before, len, psn, packet);
	if (verdict == OPC_DROPPED)
		judge_next(o, psn + 1, packet);
	o->alive = dropped;
	o->cases++;
	o->verdicts[verdict]++;
}

void test_opcodes(void **state)
{
	static const unsigned int mtus[] = { 1, 3, 5 };
	static struct opcodes opcodes;
	struct opcodes *o = &opcodes;
	struct rx_gid g = { .valid = true, .ipv4 = true };
	struct opc_shape shape[OPC_SHAPES];

	(void)state;
	memset(o, 0, sizeof(*o));
	o->b = bench_new(1);
	memcpy(g.smac, mac_own, 6);
	gid(g.gid, 2);
	bench_gid(o->b, &g);
	bench_settings(o->b, 100, 0, 1, 1);
	o->b->mr[0] = (struct bench_mr){ KEY, PD,
					 URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE |
						 URDMA_ACC_REMOTE_READ | URDMA_ACC_REMOTE_ATOMIC |
						 URDMA_ACC_FLUSH_GLOBAL,
					 HOST_VA + RECV_OFF, HOST_SIZE - RECV_OFF };
	o->b->mr[1] = o->b->mr[0];
	o->b->mr[1].key = KEY_INV;
	o->b->mrs = 2;
	for (int i = 0; i < 2; i++) {
		wqe(o, RQ_OFF + 64 * i, (uint8_t[]){ 1, 0, 0 }, 16, HOST_VA + RECV_OFF, MAX_LEN);
		wqe(o, SRQ_OFF + 64 * i, (uint8_t[]){ 1, 0, 0 }, 16, HOST_VA + RECV_OFF, MAX_LEN);
	}
	for (size_t m = 0; m < 4 * sizeof(mtus) / sizeof(mtus[0]); m++) {
		o->qp = (enum opc_transport)(m % 4);
		o->mtu_code = mtus[m / 4];
		o->mtu = 128u << o->mtu_code;
		o->alive = false;
		opc_shapes(o->mtu, shape);
		for (unsigned int opcode = 0; opcode < 256; opcode++) {
			const struct opc_rule *r = rule(o, opcode);
			bool rsp = r && opc_is_response(r->kind), ud = o->qp == OPC_T_UD;
			int befores = r && !rsp && !ud ? OPC_BEFORES : 1;

			for (int before = 0; before < befores; before++) {
				/* what its place refuses, its length does not matter to */
				bool all = r && r->name && (int)opc_wants(r) == before;

				for (size_t i = 0; i < OPC_SHAPES; i++)
					if (all || (!shape[i].pad &&
						    (!shape[i].room || shape[i].room == o->mtu)))
						one(o, opcode, before, shape[i]);
			}
		}
	}
	print_message("%u packets: %u taken, %u malformed, %u for no QP, %u refused, %u dropped, "
		      "%u bad responses\n",
		      o->cases, o->verdicts[0], o->verdicts[1], o->verdicts[2], o->verdicts[3],
		      o->verdicts[4], o->verdicts[5]);
	bench_free(o->b);
}
