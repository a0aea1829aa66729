// SPDX-License-Identifier: Apache-2.0
/*
 * Many QPs, each with bursts of small messages, over a wire without faults: what `ib_write_bw -s 32
 * -q N` does. Acknowledgements come at the rate of the wire, each for another QP. No packet is
 * dropped, no timer expires, nothing is sent again, and every byte is right.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"

#define QPS   1024u
#define BURST 32u /* messages of a QP under way */
#define LEN   32u
#define TURN  200u    /* cycles between two checks of the host */
#define LIMIT 400000u /* cycles in which something has to complete */

struct many {
	const char *name;
	unsigned int opcode, qps, rounds; /* bursts of each QP */
	bool both;			  /* directions */
};

static const struct many cases[] = {
	{ "WRITE, 64 QPs", URDMA_WR_WRITE, 64, 10, false },
	{ "WRITE, 128 QPs", URDMA_WR_WRITE, 128, 5, false },
	{ "WRITE, 256 QPs", URDMA_WR_WRITE, 256, 3, false },
	{ "WRITE, 1024 QPs", URDMA_WR_WRITE, 1024, 1, false },
	{ "WRITE, 64 QPs, both directions", URDMA_WR_WRITE, 64, 10, true },
	{ "WRITE, 256 QPs, both directions", URDMA_WR_WRITE, 256, 3, true },
	{ "WRITE, 1024 QPs, both directions", URDMA_WR_WRITE, 1024, 1, true },
	{ "READ, 128 QPs", URDMA_WR_READ, 128, 4, false },
	{ "READ, 64 QPs, both directions", URDMA_WR_READ, 64, 8, true },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static struct rig rig;
static unsigned int posted[2][QPS], done[2][QPS];

static uint8_t *slot(unsigned int side, unsigned int of, unsigned int q, unsigned int i)
{
	return rig.side[side].buffer + (((size_t)of * QPS + q) * BURST + i % BURST) * LEN;
}

static uint32_t content(unsigned int from, unsigned int q, unsigned int i)
{
	return (from * QPS + q) * 1024 + i + 1;
}

/* Message i of QP q, from half `from` of one side's region to the same place on the other side. */
static void put(const struct many *m, unsigned int from, unsigned int q)
{
	unsigned int i = posted[from][q]++, holder = m->opcode == URDMA_WR_READ ? !from : from;
	struct urdma_eh_sge sge = { (uintptr_t)slot(from, from, q, i), LEN, rig.side[from].mr.key };
	struct urdma_eh_send wr = {
		.opcode = m->opcode,
		.signaled = true,
		.raddr = (uintptr_t)slot(!from, from, q, i),
		.rkey = rig.side[!from].mr.key,
		.sge = &sge,
		.n_sge = 1,
	};

	rig_fill(slot(holder, from, q, i), LEN, content(from, q, i));
	assert_int_equal(urdma_eh_put_send(&rig.side[from].qp[q], &wr), 0);
}

/* Polls CQEs, and posts as many messages again. Returns how many completed. */
static unsigned int look(const struct many *m, unsigned int from, unsigned int total)
{
	struct urdma_eh_cqe cqe[64];
	unsigned int n, sum = 0;

	while ((n = urdma_eh_poll_cq(&rig.side[from].send_cq, cqe, 64))) {
		sum += n;
		for (unsigned int k = 0; k < n; k++) {
			unsigned int q = cqe[k].qpn - RIG_QPN(0), i = done[from][q]++;
			unsigned int to = m->opcode == URDMA_WR_READ ? from : !from;

			assert_int_equal(cqe[k].status, URDMA_WC_SUCCESS);
			assert_int_equal(rig_verify(slot(to, from, q, i), LEN, content(from, q, i)),
					 LEN);
			if (posted[from][q] == total)
				continue;
			put(m, from, q);
			urdma_eh_ring_sq(&rig.side[from].qp[q]);
		}
	}
	return sum;
}

static uint64_t counter(unsigned int side, unsigned int index, uint64_t *before)
{
	uint64_t v = urdma_eh_counter(rig.side[side].eh, index), n = v - *before;

	*before = v;
	return n;
}

static void test_many(void **state)
{
	static const unsigned int index[] = { URDMA_CNT_RX_DROP_FULL, URDMA_CNT_TX_TIMEOUT,
					      URDMA_CNT_TX_RETRANS, URDMA_CNT_TX_RDMA_PKTS };
	static uint64_t before[2][4];
	const struct many *m = *state;
	unsigned int sides = m->both ? 2 : 1, total = m->rounds * BURST, bad = 0;
	unsigned int left = sides * m->qps * total;
	uint64_t start = urdma_cosim_now(rig.cosim), seen = start, cycles, count[2][4];

	memset(posted, 0, sizeof(posted));
	memset(done, 0, sizeof(done));
	for (unsigned int q = 0; q < m->qps; q++) {
		for (unsigned int from = 0; from < sides; from++) {
			for (unsigned int i = 0; i < BURST; i++)
				put(m, from, q);
			urdma_eh_ring_sq(&rig.side[from].qp[q]);
		}
	}
	while (left) {
		unsigned int n = 0;

		rig_check(&rig, urdma_cosim_run_until(rig.cosim, urdma_cosim_now(rig.cosim) + TURN),
			  m->name);
		for (unsigned int from = 0; from < sides; from++)
			n += look(m, from, total);
		left -= n;
		if (n)
			seen = urdma_cosim_now(rig.cosim);
		else if (urdma_cosim_now(rig.cosim) > seen + LIMIT)
			break;
	}
	cycles = urdma_cosim_now(rig.cosim) - start;
	for (unsigned int s = 0; s < 2; s++) {
		for (unsigned int c = 0; c < 4; c++)
			count[s][c] = counter(s, index[c], &before[s][c]);
		bad += count[s][0] || count[s][1] || count[s][2];
		print_message("  NIC %u: %lu packets sent, %lu dropped, %lu time-outs, %lu sent "
			      "again\n",
			      s, (unsigned long)count[s][3], (unsigned long)count[s][0],
			      (unsigned long)count[s][1], (unsigned long)count[s][2]);
	}
	print_message("  %.2f cycles a message and direction\n",
		      (double)cycles / (m->qps * total - (double)left / sides));
	if (left)
		fail_msg("%u messages do not complete", left);
	if (bad)
		fail_msg("packets are dropped or sent again on a wire without faults");
}

/* Connecting the QPs takes longer than their traffic, so all cases share them. */
static int start(void **state)
{
	struct rig_config config;

	(void)state;
	rig_defaults(&config);
	config.qps = QPS;
	config.log_sq = 6;
	config.log_rq = 4;
	config.log_cqe = 16;
	config.conn.timeout = 8;
	rig_start(&rig, &config);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	rig_abandon(&rig);
	return 0;
}

int main(int argc, char **argv)
{
	struct CMUnitTest test[CASES];
	size_t n = 0;

	for (size_t i = 0; i < CASES; i++)
		if (rig_wanted(cases[i].name, argc - 1, argv + 1))
			test[n++] = (struct CMUnitTest){
				.name = cases[i].name,
				.test_func = test_many,
				.initial_state = (void *)(uintptr_t)&cases[i],
			};
	return _cmocka_run_group_tests("engine/many", test, n, start, stop);
}
