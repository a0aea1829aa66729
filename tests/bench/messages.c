// SPDX-License-Identifier: Apache-2.0
/* Rows of messages. */
#include <math.h>

#include "bench.h"
#include "load.h"

enum unit { GBPS, MILLIONS };

struct messages_row {
	const char *name;
	enum unit unit;
	double budget; /* percent of the limit that the design demands; 0: nothing */
	struct load load;
	unsigned int type; /* of the QPs, URDMA_QPT_*; 0: RC */
	bool srq;
	bool inlined, requester_dm, responder_dm; /* as of struct load, like type and srq */
};

/* clang-format off */

/* 64 KB per message, one QP; its packets fill the wire. A message is `packets` packets. */
#define BULK(op, m, packets) \
	GBPS, 95, .load = { .opcode = URDMA_WR_##op, .qps = 1, .mtu = m, .len = 65536, .doorbell = 1, \
		    .signaled = 1, .window = 8, .warm = 4 * (packets), .count = 24 * (packets) }
/* The same in both directions at once. */
#define BULK_BOTH(op, m, packets) \
	GBPS, 0, .load = { .opcode = URDMA_WR_##op, .qps = 1, .mtu = m, .len = 65536, .doorbell = 1, \
		    .signaled = 1, .window = 8, .warm = 4 * (packets), .count = 24 * (packets), .both_ways = true }
/* The same, with pages of its own for each message: their page table entries are not cached. */
#define BULK_COLD(op, m, packets) \
	GBPS, 0, .load = { .opcode = URDMA_WR_##op, .qps = 1, .mtu = m, .len = 65536, .doorbell = 1, \
		    .signaled = 1, .window = 8, .places = 64, .warm = 8 * (packets), .count = 44 * (packets), \
		    .both_ways = true }
/* Small messages: 16 WQEs per doorbell. WQEs that were fetched before the first packet left are
 * used up before the measurement. */
#define SMALL(op, n, bytes, cqe, depth, rounds) SMALL_OF(0, op, n, bytes, cqe, depth, rounds)
#define SMALL_OF(budget, op, n, bytes, cqe, depth, rounds) \
	MILLIONS, budget, .load = { .opcode = URDMA_WR_##op, .qps = n, .mtu = 5, .len = bytes, .doorbell = 16, \
		       .signaled = cqe, .window = depth, .warm = 256 * (n), \
		       .count = (rounds) * 16 * (n) }
/* 50 million per second, in percent of 55.56. */
#define DATAGRAMS 90
/* The design demands four cycles per packet; in percent of 76.92 million per second. */
#define FOUR_CYCLES 81.25
/* 80 % of what RC reaches with receive queues of its own, in percent of the limit. */
#define SHARED_1 42
#define SHARED_8 50
#define SHARED_64 68
/* As perftest's hardest case: 32 under way on each QP, each with a doorbell and a CQE. */
#define MANY(op, n, bytes, both, budget, rounds, burst) \
	MILLIONS, budget, .load = { .opcode = URDMA_WR_##op, .qps = n, .mtu = 5, .len = bytes, \
			    .doorbell = 1, .signaled = 1, .window = 32, .once = burst, \
			    .warm = 8 * (n), .count = (rounds) * (n), .both_ways = both }
#define LOSSY(op, percent, messages, budget) \
	GBPS, budget, .load = { .opcode = URDMA_WR_##op, .qps = 16, .mtu = 5, .len = 65536, .doorbell = 1, \
			.signaled = 1, .window = 16, .warm = 64 * 16, .count = (messages) * 16, \
			.loss = percent }

static const struct messages_row messages_rows[] = {
	{ "SEND 64 KB, MTU 4096, 1 QP", BULK(SEND, 5, 16) },
	{ "SEND 64 KB, MTU 1024, 1 QP", BULK(SEND, 3, 64) },
	{ "SEND 64 KB, MTU 256, 1 QP", BULK(SEND, 1, 256) },
	{ "WRITE 64 KB, MTU 4096, 1 QP", BULK(WRITE, 5, 16) },
	{ "WRITE 64 KB, MTU 1024, 1 QP", BULK(WRITE, 3, 64) },
	{ "WRITE 64 KB, MTU 256, 1 QP", BULK(WRITE, 1, 256) },
	{ "READ 64 KB, MTU 4096, 1 QP", BULK(READ, 5, 16) },
	{ "READ 64 KB, MTU 1024, 1 QP", BULK(READ, 3, 64) },
	{ "READ 64 KB, MTU 256, 1 QP", BULK(READ, 1, 256) },
	{ "SEND 64 KB, MTU 4096, 1 QP, both ways", BULK_BOTH(SEND, 5, 16) },
	{ "SEND 64 KB, MTU 1024, 1 QP, both ways", BULK_BOTH(SEND, 3, 64) },
	{ "SEND 64 KB, MTU 256, 1 QP, both ways", BULK_BOTH(SEND, 1, 256) },
	{ "WRITE 64 KB, MTU 4096, 1 QP, both ways", BULK_BOTH(WRITE, 5, 16) },
	{ "WRITE 64 KB, MTU 1024, 1 QP, both ways", BULK_BOTH(WRITE, 3, 64) },
	{ "WRITE 64 KB, MTU 256, 1 QP, both ways", BULK_BOTH(WRITE, 1, 256) },
	{ "READ 64 KB, MTU 4096, 1 QP, both ways", BULK_BOTH(READ, 5, 16) },
	{ "READ 64 KB, MTU 1024, 1 QP, both ways", BULK_BOTH(READ, 3, 64) },
	{ "READ 64 KB, MTU 256, 1 QP, both ways", BULK_BOTH(READ, 1, 256) },
	{ "WRITE 64 KB, MTU 4096, 1 QP, both ways, new pages", BULK_COLD(WRITE, 5, 16) },
	{ "WRITE 64 KB, MTU 256, 1 QP, both ways, new pages", BULK_COLD(WRITE, 1, 256) },
	{ "READ 64 KB, MTU 4096, 1 QP, both ways, new pages", BULK_COLD(READ, 5, 16) },
	{ "READ 64 KB, MTU 1024, 1 QP, both ways, new pages", BULK_COLD(READ, 3, 64) },
	{ "SEND 64 KB, MTU 4096, 1 QP, loopback", GBPS, 0,
	  .load = { .opcode = URDMA_WR_SEND, .qps = 1, .mtu = 5, .len = 65536, .doorbell = 1, .signaled = 1,
	    .window = 16, .warm = 16, .count = 64, .loopback = true } },
	{ "SEND 64 bytes, 1 QP", SMALL(SEND, 1, 64, 16, 512, 64) },
	{ "SEND 64 bytes, 8 QPs", SMALL(SEND, 8, 64, 16, 64, 24) },
	{ "WRITE 64 bytes, 1 QP", SMALL(WRITE, 1, 64, 16, 512, 64) },
	{ "WRITE 64 bytes, 16 QPs", SMALL(WRITE, 16, 64, 16, 64, 12) },
	{ "WRITE 64 bytes, 16 QPs, a CQE each", SMALL(WRITE, 16, 64, 1, 64, 12) },
	{ "READ 64 bytes, 1 QP", SMALL(READ, 1, 64, 16, 64, 16) },
	{ "READ 64 bytes, 16 QPs", SMALL(READ, 16, 64, 16, 64, 12) },
	{ "FETCH_ADD, 1 QP", SMALL(ATOMIC_FA, 1, 8, 16, 64, 16) },
	{ "FETCH_ADD, 16 QPs", SMALL(ATOMIC_FA, 16, 8, 16, 64, 8) },
	{ "WRITE 64 bytes, 64 QPs", MANY(WRITE, 64, 64, false, FOUR_CYCLES, 80, false) },
	{ "WRITE 64 bytes, 256 QPs", MANY(WRITE, 256, 64, false, 0, 24, false) },
	{ "WRITE 64 bytes, 1024 QPs", MANY(WRITE, 1024, 64, false, 0, 16, true) },
	{ "WRITE 32 bytes, 64 QPs, both ways", MANY(WRITE, 64, 32, true, 0, 80, false) },
	{ "WRITE 32 bytes, 256 QPs, both ways", MANY(WRITE, 256, 32, true, 0, 24, false) },
	{ "WRITE 32 bytes, 1024 QPs, both ways", MANY(WRITE, 1024, 32, true, 0, 16, true) },
	{ "SEND 64 bytes, 64 QPs", MANY(SEND, 64, 64, false, FOUR_CYCLES, 80, false) },
	{ "WRITE 64 bytes inline, 1 QP", SMALL(WRITE, 1, 64, 16, 512, 64), .inlined = true },
	{ "WRITE 64 bytes inline, 16 QPs", SMALL(WRITE, 16, 64, 16, 64, 12), .inlined = true },
	{ "WRITE 64 bytes inline, 64 QPs", MANY(WRITE, 64, 64, false, 0, 80, false), .inlined = true },
	{ "WRITE 32 bytes inline, 1 QP", SMALL(WRITE, 1, 32, 16, 512, 64), .inlined = true },
	{ "WRITE 32 bytes inline, 64 QPs", MANY(WRITE, 64, 32, false, 0, 80, false), .inlined = true },
	{ "SEND 64 bytes inline, 1 QP", SMALL(SEND, 1, 64, 16, 512, 64), .inlined = true },
	{ "SEND 64 bytes inline, 8 QPs", SMALL(SEND, 8, 64, 16, 64, 24), .inlined = true },
	{ "SEND 32 bytes inline, 8 QPs", SMALL(SEND, 8, 32, 16, 64, 24), .inlined = true },
	{ "UC WRITE 64 KB, MTU 4096, 1 QP", BULK(WRITE, 5, 16), .type = URDMA_QPT_UC },
	{ "UC WRITE 64 bytes, 16 QPs", SMALL(WRITE, 16, 64, 16, 64, 12), .type = URDMA_QPT_UC },
	{ "UC WRITE 64 bytes, 1 QP", SMALL(WRITE, 1, 64, 16, 512, 64), .type = URDMA_QPT_UC },
	{ "UD SEND 64 bytes, 2 QPs", SMALL_OF(DATAGRAMS, SEND, 2, 64, 16, 512, 64),
	  .type = URDMA_QPT_UD },
	{ "UD SEND 64 bytes, 8 QPs", SMALL(SEND, 8, 64, 16, 64, 24), .type = URDMA_QPT_UD },
	{ "SEND 64 KB, MTU 4096, 1 QP, SRQ", BULK(SEND, 5, 16), .srq = true },
	{ "SEND 64 bytes, 1 QP, SRQ", SMALL_OF(SHARED_1, SEND, 1, 64, 16, 512, 64), .srq = true },
	{ "SEND 64 bytes, 8 QPs, SRQ", SMALL_OF(SHARED_8, SEND, 8, 64, 16, 64, 24), .srq = true },
	{ "SEND 64 bytes, 64 QPs, SRQ", MANY(SEND, 64, 64, false, SHARED_64, 80, false), .srq = true },
	{ "XRC SEND 64 KB, MTU 4096, 1 QP, SRQ", BULK(SEND, 5, 16), .type = URDMA_QPT_XRC_INI,
	  .srq = true },
	{ "XRC SEND 64 bytes, 1 QP, SRQ", SMALL_OF(SHARED_1, SEND, 1, 64, 16, 512, 64),
	  .type = URDMA_QPT_XRC_INI, .srq = true },
	{ "XRC SEND 64 bytes, 8 QPs, SRQ", SMALL_OF(SHARED_8, SEND, 8, 64, 16, 64, 24),
	  .type = URDMA_QPT_XRC_INI, .srq = true },
	{ "XRC SEND 64 bytes, 64 QPs, SRQ", MANY(SEND, 64, 64, false, SHARED_64, 80, false),
	  .type = URDMA_QPT_XRC_INI, .srq = true },
	{ "WRITE 64 KB into device memory, 1 QP", BULK(WRITE, 5, 16), .responder_dm = true },
	{ "WRITE 64 KB out of device memory, 1 QP", BULK(WRITE, 5, 16), .requester_dm = true },
	{ "READ 64 KB of device memory, 1 QP", BULK(READ, 5, 16), .responder_dm = true },
	{ "WRITE 64 bytes into device memory, 16 QPs", SMALL(WRITE, 16, 64, 16, 64, 12),
	  .responder_dm = true },
	{ "WRITE 64 bytes out of device memory, 16 QPs", SMALL(WRITE, 16, 64, 16, 64, 12),
	  .requester_dm = true },
	{ "SEND 64 bytes into device memory, 8 QPs", SMALL(SEND, 8, 64, 16, 64, 24),
	  .responder_dm = true },
	{ "READ 64 bytes of device memory, 1 QP", SMALL(READ, 1, 64, 16, 64, 16), .responder_dm = true },
	{ "READ 64 bytes of device memory, 16 QPs", SMALL(READ, 16, 64, 16, 64, 12),
	  .responder_dm = true },
	{ "FETCH_ADD in device memory, 16 QPs", SMALL(ATOMIC_FA, 16, 8, 16, 64, 8),
	  .responder_dm = true },
	{ "WRITE 64 KB, 16 QPs, loss 0.1 %", LOSSY(WRITE, 0.1, 320, 90) },
	{ "WRITE 64 KB, 16 QPs, loss 1 %", LOSSY(WRITE, 1, 192, 0) },
	{ "READ 64 KB, 16 QPs, loss 0.1 %", LOSSY(READ, 0.1, 320, 0) },
};

/* clang-format on */

void bench_messages(void)
{
	for (unsigned int i = 0; i < sizeof(messages_rows) / sizeof(*messages_rows); i++) {
		const struct messages_row *m = &messages_rows[i];
		struct load_result result;
		struct load load;
		struct limit limit;
		struct row *row;

		if (!bench_wanted(m->name))
			continue;
		load = m->load;
		load.type = m->type;
		load.srq = m->srq;
		load.inlined = m->inlined;
		load.requester_dm = m->requester_dm;
		load.responder_dm = m->responder_dm;
		load_run(m->name, &load, &result);
		limit = result.limit;
		if (m->unit == GBPS) {
			limit.value *= m->load.len * 8.0 / 1000;
			row = table_add(&bench_table, m->name, result.goodput, "Gb/s", limit);
		} else {
			row = table_add(&bench_table, m->name, result.messages, "million/s", limit);
		}
		if (m->budget > 0)
			row->budget = limit.value * m->budget / 100;
		row->losses = result.losses;
	}
}
