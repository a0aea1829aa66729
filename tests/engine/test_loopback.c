// SPDX-License-Identifier: Apache-2.0
/*
 * QPs of one NIC that talk to each other: their frames are looped back before the MAC. No frame is
 * lost there, so none may be sent again, however fast the transmit side makes frames and however
 * slowly the receive side drains them, alone and beside traffic of the wire.
 *
 * Arguments: words that choose cases by name.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"
#include "seed.h"

#define PAIRS_MAX    16u
#define MESSAGES_MAX 512u
#define LIMIT	     20000000u /* cycles without a CQE that is awaited */
#define QPN_LOOP     0x100u

/* A message between two QPs, of one NIC or of two. */
struct message {
	struct urdma_eh_qp *requester, *responder;
	struct rig_side *at[2]; /* memory of the requester and of the responder */
	unsigned int opcode;
	uint32_t key; /* SEND_INV */
	uint32_t len, seed;
	size_t from, to; /* in the buffers of the data's sender and receiver */
};

static struct {
	struct rig rig;
	struct urdma_eh_qp qp[2 * PAIRS_MAX]; /* pairs: 2 n and 2 n + 1, all of side 0 */
	unsigned int pairs;
	struct message m[MESSAGES_MAX];
	unsigned int n;
	size_t used[2]; /* bytes of the buffers that messages occupy */
} t;

static char **chosen;
static int n_chosen;

static void start(unsigned int pairs, unsigned int mtu, unsigned int mps)
{
	struct rig_config config;

	rig_defaults(&config);
	config.mtu = mtu;
	config.buffer = 12u << 20;
	config.log_cqe = 12;
	config.cosim.pcie.mps = mps;
	config.conn.max_rd_atomic = config.conn.max_dest_rd_atomic = 16;
	memset(&t, 0, sizeof(t));
	rig_start(&t.rig, &config);
	t.pairs = pairs;
	for (unsigned int i = 0; i < 2 * pairs; i++) {
		struct rig_side *side = &t.rig.side[0];
		struct urdma_eh_qp_attr attr = {
			.qpn = QPN_LOOP + i,
			.pd = RIG_PD,
			.send_cq = &side->send_cq,
			.recv_cq = &side->recv_cq,
			.db_page = RIG_DB_PAGE,
			.log_sq = config.log_sq,
			.log_rq = config.log_rq,
			.log_sq_stride = config.log_stride,
			.log_rq_stride = config.log_stride,
			.priv = true,
		};

		rig_check(&t.rig, urdma_eh_create_qp(side->eh, &attr, &t.qp[i]), "create QP");
	}
	for (unsigned int i = 0; i < pairs; i++)
		rig_check(&t.rig,
			  urdma_eh_connect_as(&t.qp[2 * i], &t.qp[2 * i + 1], &t.rig.config.conn,
					      false),
			  "connect");
}

static void stop(void)
{
	for (unsigned int i = 0; i < 2 * t.pairs; i++)
		rig_check(&t.rig, urdma_eh_destroy_qp(&t.qp[i]), "destroy QP");
	rig_stop(&t.rig);
}

static struct message *add(struct urdma_eh_qp *requester, struct urdma_eh_qp *responder,
			   unsigned int side, unsigned int other, unsigned int opcode, uint32_t len)
{
	struct message *m = &t.m[t.n++];
	bool read = opcode == URDMA_WR_READ;
	unsigned int source = read ? other : side, target = read ? side : other;

	assert_true(t.n <= MESSAGES_MAX);
	*m = (struct message){ .requester = requester,
			       .responder = responder,
			       .at = { &t.rig.side[side], &t.rig.side[other] },
			       .opcode = opcode,
			       .len = len,
			       .seed = t.n * 7919 };
	m->from = t.used[source];
	t.used[source] += (len + 127u) & ~(size_t)63;
	m->to = t.used[target];
	t.used[target] += (len + 127u) & ~(size_t)63;
	assert_true(t.used[0] <= t.rig.config.buffer && t.used[1] <= t.rig.config.buffer);
	rig_fill(t.rig.side[source].buffer + m->from, len, m->seed);
	memset(t.rig.side[target].buffer + m->to, 0xee, len);
	return m;
}

static struct message *loop(unsigned int pair, unsigned int way, unsigned int opcode, uint32_t len)
{
	return add(&t.qp[2 * pair + way], &t.qp[2 * pair + !way], 0, 0, opcode, len);
}

static struct message *wire(unsigned int from, unsigned int opcode, uint32_t len)
{
	return add(&t.rig.side[from].qp[0], &t.rig.side[!from].qp[0], from, !from, opcode, len);
}

static bool is_send(const struct message *m)
{
	return m->opcode == URDMA_WR_SEND || m->opcode == URDMA_WR_SEND_INV;
}

static void put(const struct message *m)
{
	bool read = m->opcode == URDMA_WR_READ;
	struct urdma_eh_sge own = { (uintptr_t)m->at[0]->buffer + (read ? m->to : m->from), m->len,
				    m->at[0]->mr.key };
	struct urdma_eh_sge peer = { (uintptr_t)m->at[1]->buffer + (read ? m->from : m->to), m->len,
				     m->at[1]->mr.key };
	struct urdma_eh_send wr = { .opcode = m->opcode,
				    .signaled = true,
				    .key = m->key,
				    .raddr = peer.addr,
				    .rkey = peer.lkey,
				    .sge = &own,
				    .n_sge = 1 };

	if (is_send(m))
		assert_int_equal(urdma_eh_put_recv(m->responder, &peer, 1), 0);
	assert_int_equal(urdma_eh_put_send(m->requester, &wr), 0);
}

static void await(struct urdma_eh_cq *cq, unsigned int n, const char *what)
{
	struct urdma_eh_cqe cqe;

	while (n--) {
		int ret = urdma_eh_next_cqe(cq, &cqe, LIMIT);

		if (ret == -ETIMEDOUT)
			fail_msg("%s: %u completions do not come", what, n + 1);
		rig_check(&t.rig, ret, what);
		if (cqe.status)
			fail_msg("%s: QP %#x WQE %u completes with status %u", what, cqe.qpn,
				 cqe.wqe, cqe.status);
	}
}

/* Runs all messages at once, then checks their results and the counters. */
static void run(const char *name)
{
	static const unsigned int none[] = { URDMA_CNT_RX_DROP_FULL, URDMA_CNT_TX_TIMEOUT,
					     URDMA_CNT_TX_RETRANS,   URDMA_CNT_RX_SEQ_ERR,
					     URDMA_CNT_RX_DUP,	     URDMA_CNT_RX_READ_GAP,
					     URDMA_CNT_TX_NAK_RNR };
	unsigned int sends[2] = { 0 }, recvs[2] = { 0 };
	uint64_t begin = urdma_cosim_now(t.rig.cosim), bytes = 0;

	for (unsigned int i = 0; i < t.n; i++) {
		put(&t.m[i]);
		sends[t.m[i].at[0] == &t.rig.side[1]]++;
		if (is_send(&t.m[i]))
			recvs[t.m[i].at[1] == &t.rig.side[1]]++;
		bytes += t.m[i].len;
	}
	for (unsigned int i = 0; i < t.n; i++)
		if (is_send(&t.m[i]))
			urdma_eh_ring_rq(t.m[i].responder);
	for (unsigned int i = 0; i < t.n; i++)
		urdma_eh_ring_sq(t.m[i].requester);
	for (unsigned int n = 0; n < 2; n++) {
		await(&t.rig.side[n].send_cq, sends[n], name);
		await(&t.rig.side[n].recv_cq, recvs[n], name);
	}
	print_message("  %-34s %7.2f bytes a cycle\n", name,
		      (double)bytes / (double)(urdma_cosim_now(t.rig.cosim) - begin));
	for (unsigned int i = 0; i < t.n; i++) {
		const struct message *m = &t.m[i];
		const struct rig_side *to = m->at[m->opcode != URDMA_WR_READ];

		if (rig_verify(to->buffer + m->to, m->len, m->seed) != m->len)
			fail_msg("%s: message %u, opcode %u of %u bytes, differs", name, i,
				 m->opcode, m->len);
	}
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
			uint64_t v = urdma_eh_counter(t.rig.side[n].eh, none[i]);

			if (v) {
				rig_print_counters(&t.rig);
				fail_msg("%s: counter %u of side %u is %llu", name, none[i], n,
					 (unsigned long long)v);
			}
		}
	t.n = 0;
	t.used[0] = t.used[1] = 0;
}

static const struct {
	const char *name;
	unsigned int mtu, mps;
} link[] = {
	{ "MTU 4096", 5, 256 },
	{ "MTU 1024", 3, 256 },
	{ "MTU 256", 1, 256 },
	{ "MTU 4096, PCIe payload 128", 5, 128 },
	{ "MTU 256, PCIe payload 128", 1, 128 },
};

static const unsigned int opcodes[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ };
static const char *const opcode_name[] = { "SEND", "WRITE", "READ" };

/* One pair: each opcode one way, then both ways, then all of them at once. */
static void test_one(void **state)
{
	char name[80];

	(void)state;
	for (unsigned int l = 0; l < sizeof(link) / sizeof(link[0]); l++) {
		uint32_t len = link[l].mtu == 1 ? 200001 : 1000001;

		snprintf(name, sizeof(name), "one, %s", link[l].name);
		if (!rig_wanted(name, n_chosen, chosen))
			continue;
		start(1, link[l].mtu, link[l].mps);
		for (unsigned int k = 0; k < 3; k++) {
			snprintf(name, sizeof(name), "%s, %s", opcode_name[k], link[l].name);
			loop(0, 0, opcodes[k], len);
			run(name);
			loop(0, 0, opcodes[k], len);
			loop(0, 1, opcodes[k], len);
			run(name);
		}
		for (unsigned int k = 0; k < 6; k++)
			loop(0, k / 3, opcodes[k % 3], len / 4);
		snprintf(name, sizeof(name), "mixed, %s", link[l].name);
		run(name);
		stop();
	}
}

/* Many pairs, with messages of all sizes. */
static void test_many(void **state)
{
	uint64_t random = test_seed(77);
	char name[80];

	(void)state;
	for (unsigned int l = 0; l < sizeof(link) / sizeof(link[0]); l++) {
		snprintf(name, sizeof(name), "16 pairs, %s", link[l].name);
		if (!rig_wanted(name, n_chosen, chosen))
			continue;
		start(PAIRS_MAX, link[l].mtu, link[l].mps);
		for (unsigned int k = 0; k < 320; k++)
			loop(k % PAIRS_MAX, rig_draw(&random, 2), opcodes[rig_draw(&random, 3)],
			     rig_draw_len(&random, 128u << link[l].mtu, 20000));
		run(name);
		stop();
	}
}

/*
 * Beside a wire that is full in both directions. The loopback gets the PCIe bandwidth that the wire
 * leaves.
 */
static void test_beside_wire(void **state)
{
	char name[80];

	(void)state;
	for (unsigned int l = 0; l < 3; l += 2) {
		uint32_t len = link[l].mtu == 1 ? 100000 : 700000;

		snprintf(name, sizeof(name), "beside the wire, %s", link[l].name);
		if (!rig_wanted(name, n_chosen, chosen))
			continue;
		start(2, link[l].mtu, link[l].mps);
		for (unsigned int k = 0; k < 4; k++) {
			wire(0, k & 1 ? URDMA_WR_WRITE : URDMA_WR_SEND, len);
			wire(1, k & 1 ? URDMA_WR_SEND : URDMA_WR_WRITE, len);
			loop(k & 1, k / 2, opcodes[k % 3], len / 2);
		}
		run(name);
		stop();
	}
}

/*
 * SENDs that invalidate a key, among READs. Before it writes a CQE, the receive side waits for
 * reads that the transmit side makes through keys; meanwhile the transmit side waits for room on
 * the receive side. The keys are chosen so that urdma_tx_keys cannot distinguish them from the key
 * of the READs.
 */
static void test_invalidate(void **state)
{
	enum { KEYS = 16 };
	static struct urdma_eh_mr mr[KEYS];
	struct rig_side *side = &t.rig.side[0];

	(void)state;
	if (!rig_wanted("invalidate", n_chosen, chosen))
		return;
	start(4, 3, 128);
	for (unsigned int i = 0; i < KEYS; i++) {
		assert_int_equal(urdma_eh_create_mr_kind(side->eh, 65 + 64 * i, 1, RIG_PD,
							 URDMA_MRK_FAST, &mr[i]),
				 0);
		assert_int_equal(urdma_eh_put_reg_mr(&t.qp[0], &mr[i], 2,
						     URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_READ,
						     side->buffer, 4096, (uintptr_t)side->buffer,
						     -1, 0, true),
				 0);
	}
	urdma_eh_ring_sq(&t.qp[0]);
	await(&side->send_cq, KEYS, "REG_MR");
	for (unsigned int i = 0; i < KEYS; i++) {
		loop(1, 0, URDMA_WR_READ, 60000);
		loop(2, 1, URDMA_WR_READ, 60000);
		loop(3, i & 1, URDMA_WR_WRITE, 30000);
		loop(0, 0, URDMA_WR_SEND_INV, 100)->key = mr[i].key;
	}
	run("invalidate");
	for (unsigned int i = 0; i < KEYS; i++)
		assert_int_equal(urdma_eh_destroy_mr(&mr[i]), 0);
	stop();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_beside_wire),
		cmocka_unit_test(test_invalidate),
	};

	chosen = argv + 1;
	n_chosen = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
