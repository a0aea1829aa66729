// SPDX-License-Identifier: Apache-2.0
/*
 * Every opcode with every length around its limits, in and out of sequence, at three path MTUs,
 * against the table of opcode_rules.h. The frames go to a whole NIC, from the transmit queue of the
 * other one. The test compares the answer on the wire, the CQEs, the counters, and every byte of
 * memory.
 *
 * NIC 1 has a QP for each packet that is not dropped, so one rig serves all packets of an MTU. NIC
 * 0 has no QP: it answers nothing, and no answer causes another. The test is deterministic;
 * arguments choose cases by their names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "icrc.h"
#include "net.h"
#include "opcode_rules.h"
#include "rtl/rx/rx_packet.h"
#include "trace.h"

#define LIMIT	4000000u
#define BATCH	48u /* frames to look at that are sent at once */
#define MAX_N	4096u
#define RQ_PSN	0xffffffu
#define SQ_PSN	0x7ffffeu
#define NO_KEY	0x7777u
#define RECVS	2u
#define DROPPED 0u /* the QP of all packets that are dropped */

struct item {
	unsigned int opcode, qp;
	enum opc_before before;
	struct opc_shape shape;
	enum opc_verdict verdict;
	char name[128];
	uint32_t psn;
	/* seen */
	unsigned int recv_good, recv_inv, recv_flush, send_good, send_bad, send_other;
	uint32_t length;
};

struct opcodes {
	struct rig rig;
	struct net net;
	struct trace trace;
	unsigned int mtu, mtu_code, n, qps, slot;
	struct urdma_eh_qp *qp;
	struct item item[MAX_N];
	struct item *of[MAX_N]; /* by QP */
	uint8_t *image;		/* expected contents of NIC 1's buffer */
};

static struct opcodes opcodes;

static bool is_response(const struct item *it)
{
	return it->opcode < OPC_RC && opc_is_response(opc_rules[it->opcode].kind);
}

/* ---- the packets ----------------------------------------------------------------------------- */

static void add(struct opcodes *o, unsigned int opcode, enum opc_before before,
		struct opc_shape shape)
{
	static const char *const where[] = { "", " in a SEND", " in a WRITE" };
	const char *name = opcode < OPC_RC ? opc_rules[opcode].name : NULL;
	struct item *it = &o->item[o->n++];

	assert_true(o->n <= MAX_N);
	*it = (struct item){ .opcode = opcode, .before = before, .shape = shape };
	it->verdict = opc_verdict(opcode, before, o->mtu, shape);
	it->qp = it->verdict == OPC_MALFORMED || it->verdict == OPC_NO_QP ? DROPPED : o->qps++;
	o->of[it->qp] = it;
	snprintf(it->name, sizeof(it->name), "opcode 0x%02x (%s)%s, MTU %u, %u bytes, pad %u",
		 opcode, name ? name : "reserved", where[before], o->mtu, shape.room, shape.pad);
}

static void add_all(struct opcodes *o)
{
	struct opc_shape shape[OPC_SHAPES];

	opc_shapes(o->mtu, shape);
	o->qps = DROPPED + 1;
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		const struct opc_rule *r = opcode < OPC_RC ? &opc_rules[opcode] : NULL;
		bool rsp = r && opc_is_response(r->kind);

		for (int before = 0; before < (r && !rsp ? OPC_BEFORES : 1); before++) {
			/* a packet that is refused for its place is refused with any length */
			bool all = r && r->name && (int)opc_wants(r) == before;

			for (size_t i = 0; i < OPC_SHAPES; i++)
				if (all || (!shape[i].pad && shape[i].room == o->mtu))
					add(o, opcode, before, shape[i]);
		}
	}
	/* a dropped packet leaves the QP as it was */
	add(o, 0x04, OPC_IDLE, (struct opc_shape){ o->mtu, 0 });
	o->item[o->n - 1].qp = DROPPED;
	o->of[DROPPED] = &o->item[o->n - 1];
	o->qps--;
}

/* ---- the rig ----------------------------------------------------------------------------------
 */

static uint8_t *slot(struct opcodes *o, unsigned int qp)
{
	return o->rig.side[1].buffer + (size_t)qp * o->slot;
}

static void make_qps(struct opcodes *o)
{
	struct rig_side *side = &o->rig.side[1];
	struct urdma_eh_conn conn = o->rig.config.conn;
	uint8_t own[2][16];

	for (unsigned int n = 0; n < 2; n++) {
		urdma_eh_own_gid(o->rig.side[n].eh, false, own[n]);
		rig_check(&o->rig, urdma_eh_set_gid(o->rig.side[n].eh, 0, own[n], true), "GID");
	}
	memcpy(conn.dgid, own[0], 16);
	rig_check(&o->rig, urdma_eh_mac(o->rig.side[0].eh, conn.dmac), "MAC");
	conn.mtu = o->mtu_code;
	conn.timeout = 0; /* requests without an answer are not sent again */
	conn.sq_psn = SQ_PSN;
	conn.rq_psn = RQ_PSN;
	o->qp = calloc(o->qps, sizeof(*o->qp));
	assert_non_null(o->qp);
	urdma_eh_batch_begin(side->eh);
	for (unsigned int i = 0; i < o->qps; i++) {
		struct urdma_eh_qp_attr attr = { .qpn = RIG_QPN(i),
						 .pd = RIG_PD,
						 .send_cq = &side->send_cq,
						 .recv_cq = &side->recv_cq,
						 .db_page = RIG_DB_PAGE,
						 .log_sq = 2,
						 .log_rq = 2,
						 .log_sq_stride = 6,
						 .log_rq_stride = 6 };

		conn.dest_qpn = RIG_QPN(i);
		rig_check(&o->rig, urdma_eh_create_qp(side->eh, &attr, &o->qp[i]), "create QP");
		rig_check(&o->rig, urdma_eh_to_init(&o->qp[i], &conn), "INIT");
		rig_check(&o->rig, urdma_eh_to_rtr(&o->qp[i], &conn), "RTR");
		rig_check(&o->rig, urdma_eh_to_rts(&o->qp[i], &conn), "RTS");
	}
	rig_check(&o->rig, urdma_eh_batch_end(side->eh), "QPs");
}

static void settle(struct opcodes *o)
{
	rig_check(&o->rig,
		  urdma_cosim_run_while_busy(o->rig.cosim, urdma_cosim_now(o->rig.cosim) + LIMIT),
		  "settle");
}

static void start(struct opcodes *o)
{
	struct rig_config rc;
	struct net_config nc;

	o->n = 0;
	add_all(o);
	o->slot = 3 * o->mtu + 64;
	rig_defaults(&rc);
	rc.qps = 0;
	rc.log_cqe = 13;
	rc.buffer = ((size_t)o->qps * o->slot + 4095) & ~(size_t)4095;
	rc.memory.memory = 128u << 20;
	rig_start(&o->rig, &rc);
	net_defaults(&nc);
	nc.q.log_tx = 9;
	nc.q.log_cq = 10;
	net_start(&o->net, &o->rig, &nc);
	make_qps(o);
	trace_start(&o->trace, &o->rig);
	o->image = malloc(rc.buffer);
	assert_non_null(o->image);
	rig_fill(o->image, rc.buffer, o->mtu);
	memcpy(o->rig.side[1].buffer, o->image, rc.buffer);
}

static void stop(struct opcodes *o)
{
	trace_stop(&o->trace);
	trace_free(&o->trace);
	net_stop(&o->net);
	rig_abandon(&o->rig);
	free(o->image);
	free(o->qp);
}

/* ---- frames -----------------------------------------------------------------------------------
 */

static void put(struct opcodes *o, const struct item *it, unsigned int opcode, uint32_t psn,
		struct opc_shape shape, uint32_t total, const uint8_t *payload, bool ackreq)
{
	const struct opc_rule *r = opcode < OPC_RC ? &opc_rules[opcode] : NULL;
	static struct frame f;
	struct packet k = { .ipv4 = true,
			    .opcode = (uint8_t)opcode,
			    .pkey = 0xffff,
			    .dqpn = RIG_QPN(it->qp),
			    .psn = psn & 0xffffff,
			    .ackreq = ackreq,
			    .ext_len = opc_rules[opcode].ext,
			    .payload = payload,
			    .len = shape.room,
			    .raw = true,
			    .pad = (uint8_t)shape.pad };

	memcpy(k.dmac, o->net.side[1].mac, 6);
	memcpy(k.smac, o->net.side[0].mac, 6);
	urdma_eh_own_gid(o->rig.side[0].eh, false, k.sip);
	urdma_eh_own_gid(o->rig.side[1].eh, false, k.dip);
	if (r && r->inv) {
		roce_put(k.ext, NO_KEY, 4);
	} else if (r && opc_is_response(r->kind)) {
		roce_put(k.ext, 0x1f000001, 4);
	} else if (r && r->ext >= 16) {
		uint8_t *reth = k.ext + (r->kind == OPC_FLUSH ? 4 : 0);

		roce_put(k.ext, URDMA_FLUSH_GLOBAL, 4);
		/* an ATOMIC swaps or adds 0 */
		roce_put(reth, (uintptr_t)slot(o, it->qp), 8);
		roce_put(reth + 8, o->rig.side[1].mr.key, 4);
		roce_put(reth + 12, r->kind == OPC_ATOMIC ? 0 : total, 4);
	}
	packet_build(&k, &f);
	if (f.len < 60) {
		memset(f.b + f.len, 0, 60 - f.len);
		f.len = 60;
	}
	net_put(&o->net, 0, 0, f.b, f.len, 1, NULL);
}

/* Posts receives, and the requests that responses answer. Rings. */
static void post(struct opcodes *o, const struct item *it)
{
	const struct opc_rule *r = it->opcode < OPC_RC ? &opc_rules[it->opcode] : NULL;
	struct urdma_eh_qp *qp = &o->qp[it->qp];
	struct urdma_eh_sge sge = { (uintptr_t)slot(o, it->qp), o->slot, o->rig.side[1].mr.key };
	struct urdma_eh_send wr = { .opcode = URDMA_WR_READ,
				    .signaled = true,
				    .raddr = 0x1000,
				    .rkey = 1,
				    .sge = &sge,
				    .n_sge = 1 };

	for (unsigned int i = 0; i < RECVS; i++)
		assert_int_equal(urdma_eh_post_recv(qp, &sge, 1), 0);
	if (!is_response(it))
		return;
	if (r->kind != OPC_READ_RSP)
		wr.opcode = r->kind == OPC_ACK ? URDMA_WR_SEND : URDMA_WR_ATOMIC_FA;
	sge.length =
		r->kind == OPC_ACK ? 16 : opc_message(r, o->mtu, it->shape.room - it->shape.pad);
	if (!sge.length)
		wr.n_sge = 0;
	assert_int_equal(urdma_eh_post_send(qp, &wr), 0);
}

/* Sends the packet, and before it the one that it has to follow, if any. */
static void send(struct opcodes *o, struct item *it)
{
	const struct opc_rule *r = it->opcode < OPC_RC ? &opc_rules[it->opcode] : NULL;
	unsigned int len = it->shape.room - it->shape.pad, mtu = o->mtu, off = 0;
	static uint8_t lead[4096], data[2 * 4096 + 64];
	struct opc_shape full = { mtu, 0 };
	uint32_t seed = (uint32_t)(it - o->item) + 1, total = 3 * mtu;
	bool dropped = it->qp == DROPPED, write = r && r->kind == OPC_WRITE;

	rig_fill(lead, mtu, seed * 2);
	rig_fill(data, sizeof(data), seed * 2 + 1);
	it->psn = is_response(it) ? SQ_PSN : RQ_PSN;
	if (!dropped && (is_response(it) ? r->place == OPC_MIDDLE || r->place == OPC_LAST
					 : it->before != OPC_IDLE)) {
		if (is_response(it))
			put(o, it, 0x0d, it->psn++, full, 0, lead, false);
		else if (it->before == OPC_IN_SEND)
			put(o, it, 0x00, it->psn++, full, 0, lead, false);
		else
			put(o, it, 0x06, it->psn++, full,
			    write && opc_wants(r) == it->before ? opc_message(r, mtu, len) : total,
			    lead, false);
		memcpy(o->image + (size_t)it->qp * o->slot, lead, mtu);
		off = mtu;
	}
	it->psn &= 0xffffff;
	if (write)
		total = opc_message(r, mtu, len);
	if (r && r->kind == OPC_ATOMIC_WRITE)
		total = 8;
	put(o, it, it->opcode, it->psn, it->shape, total, data, !is_response(it));
	if (it->verdict != OPC_TAKEN)
		return;
	if (r->kind == OPC_ATOMIC_ACK)
		memset(o->image + (size_t)it->qp * o->slot, 0, 8);
	else
		memcpy(o->image + (size_t)it->qp * o->slot + off, data, len);
}

/* ---- verdicts ---------------------------------------------------------------------------------
 */

static void sort_cqes(struct opcodes *o)
{
	struct urdma_eh_cqe cqe;

	while (urdma_eh_poll_cq(&o->rig.side[1].recv_cq, &cqe, 1)) {
		struct item *it = o->of[cqe.qpn - RIG_QPN(0)];

		it->recv_good += cqe.status == URDMA_WC_SUCCESS;
		it->recv_inv += cqe.status == URDMA_WC_REM_INV_REQ_ERR;
		it->recv_flush += cqe.status == URDMA_WC_FLUSH_ERR;
		if (cqe.status == URDMA_WC_SUCCESS)
			it->length = cqe.length;
	}
	while (urdma_eh_poll_cq(&o->rig.side[1].send_cq, &cqe, 1)) {
		struct item *it = o->of[cqe.qpn - RIG_QPN(0)];

		it->send_good += cqe.status == URDMA_WC_SUCCESS;
		it->send_bad += cqe.status == URDMA_WC_BAD_RESP_ERR;
		it->send_other +=
			cqe.status != URDMA_WC_SUCCESS && cqe.status != URDMA_WC_BAD_RESP_ERR;
	}
}

static void expect(const struct item *it, const char *what, size_t got, size_t want)
{
	if (got != want)
		fail_msg("%s: %s: %zu, expected %zu", it->name, what, got, want);
}

static void judge(struct opcodes *o, const struct item *it)
{
	const struct opc_rule *r = it->opcode < OPC_RC ? &opc_rules[it->opcode] : NULL;
	bool taken = it->verdict == OPC_TAKEN, refused = it->verdict == OPC_REFUSED;
	bool last = r && (r->place == OPC_LAST || r->place == OPC_ONLY), response = is_response(it);
	bool in_send = it->before == OPC_IN_SEND, inv = taken && r->inv;
	/* a SEND that has begun has consumed a WQE; so has one with invalidate that fails for its
	 * key */
	unsigned int has_wqe = (refused && in_send) || inv;
	bool err = refused || it->verdict == OPC_BAD_RSP || inv;
	bool recv = taken && last && !inv && !response &&
		    (r->kind == OPC_SEND || (r->kind == OPC_WRITE && r->imm));
	int qpn = (int)RIG_QPN(it->qp), psn = (int)it->psn;
	size_t bytes = o->slot, at = (size_t)it->qp * o->slot;

#define SENT(kind, psn) trace_count(&o->trace, 1, true, kind, qpn, psn)
	expect(it, "NAKs of this PSN", SENT(TRACE_NAK_OTHER, psn), refused);
	expect(it, "NAKs", SENT(TRACE_NAK_OTHER, -1), refused);
	expect(it, "sequence NAKs", SENT(TRACE_NAK_SEQ, -1), 0);
	expect(it, "RNR NAKs", SENT(TRACE_RNR, -1), 0);
	expect(it, "ACKs of this PSN", SENT(TRACE_ACK, psn),
	       taken && (r->kind == OPC_SEND || r->kind == OPC_WRITE));
	expect(it, "READ responses", SENT(TRACE_RESPONSE, -1),
	       !taken		     ? 0
	       : r->kind == OPC_READ ? 3
				     : r->kind == OPC_FLUSH || r->kind == OPC_ATOMIC_WRITE);
	expect(it, "ATOMIC acknowledges", SENT(TRACE_ATOMIC_ACK, -1),
	       taken && r->kind == OPC_ATOMIC);
	if (refused)
		expect(it, "syndrome",
		       trace_find(&o->trace, 0, 1, true, TRACE_NAK_OTHER, qpn, psn)->syndrome,
		       0x61);
	expect(it, "good receive CQEs", it->recv_good, recv);
	if (recv)
		expect(it, "length of the message", it->length,
		       (in_send || it->before == OPC_IN_WRITE ? o->mtu : 0) + it->shape.room -
			       it->shape.pad);
	expect(it, "receives with REM_INV_REQ_ERR", it->recv_inv, has_wqe);
	expect(it, "receives flushed", it->recv_flush, err ? RECVS - has_wqe : 0);
	expect(it, "good send CQEs", it->send_good, taken && response && last);
	expect(it, "sends with BAD_RESP_ERR", it->send_bad, it->verdict == OPC_BAD_RSP);
	expect(it, "other send CQEs", it->send_other, 0);
	if (memcmp(o->rig.side[1].buffer + at, o->image + at, bytes))
		fail_msg("%s: memory is not as it has to be", it->name);
}

static void test_opcodes(void **state)
{
	static const unsigned int counter[] = { URDMA_CNT_RX_MALFORMED, URDMA_CNT_RX_NO_QP,
						URDMA_CNT_TX_NAK_OTHER, URDMA_CNT_RX_DROP_FULL,
						URDMA_CNT_RX_NOT_RDMA,	URDMA_CNT_RX_ICRC_ERR };
	struct opcodes *o = &opcodes;
	unsigned int verdicts[5] = { 0 };

	o->mtu_code = *(const unsigned int *)*state;
	o->mtu = 128u << o->mtu_code;
	start(o);
	for (unsigned int i = 0; i < o->qps; i++)
		post(o, o->of[i]);
	settle(o);
	for (unsigned int i = 0; i < o->n; i += BATCH) {
		uint64_t want[6] = { 0 };
		unsigned int end = i + BATCH < o->n ? i + BATCH : o->n;

		for (size_t c = 0; c < 6; c++)
			want[c] = urdma_eh_counter(o->rig.side[1].eh, counter[c]);
		for (unsigned int k = i; k < end; k++) {
			enum opc_verdict v = o->item[k].verdict;

			send(o, &o->item[k]);
			want[0] += v == OPC_MALFORMED;
			want[1] += v == OPC_NO_QP;
			want[2] += v == OPC_REFUSED;
			verdicts[v]++;
		}
		urdma_eh_eth_ring_tx(&o->net.side[0].q[0]);
		assert_true(net_sent(&o->net, 0, 0, LIMIT));
		settle(o);
		for (size_t c = 0; c < 6; c++)
			if (urdma_eh_counter(o->rig.side[1].eh, counter[c]) != want[c])
				fail_msg("from %s to %s: counter %u is %lu, expected %lu",
					 o->item[i].name, o->item[end - 1].name, counter[c],
					 (unsigned long)urdma_eh_counter(o->rig.side[1].eh,
									 counter[c]),
					 (unsigned long)want[c]);
	}
	sort_cqes(o);
	for (unsigned int i = 0; i < o->qps; i++)
		judge(o, o->of[i]);
	assert_int_equal(urdma_embedded_stats(o->rig.host)->faults, 0);
	print_message("  %u packets, %u QPs: %u taken, %u malformed, %u for no QP, %u refused, %u "
		      "bad responses\n",
		      o->n, o->qps, verdicts[0], verdicts[1], verdicts[2], verdicts[3],
		      verdicts[4]);
	stop(o);
}

int main(int argc, char **argv)
{
	static const unsigned int mtu[] = { 1, 3, 5 };
	static const char *const name[] = { "MTU 256", "MTU 1024", "MTU 4096" };
	struct CMUnitTest test[3];
	size_t n = 0;

	for (size_t i = 0; i < 3; i++)
		if (rig_wanted(name[i], argc - 1, argv + 1))
			test[n++] =
				(struct CMUnitTest){ .name = name[i],
						     .test_func = test_opcodes,
						     .initial_state = (void *)(uintptr_t)&mtu[i] };
	return _cmocka_run_group_tests("engine/opcodes", test, n, NULL, NULL);
}
