// SPDX-License-Identifier: Apache-2.0
/*
 * test_long DIR: a run of a billion cycles with events, into DIR/events.urdma: bursts of messages
 * of every opcode, some of which the wire loses, and pauses between them. The memory of the
 * simulator must not grow with the length of the run, and must stay below MOST_MEMORY. test_long.sh
 * then reads the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "work.h"

#define CYCLES	    1000000000u
#define BURSTS	    2000u
#define MESSAGES    32u /* of a burst */
#define QPS	    4u
#define MAX_LEN	    4000u
#define LIMIT	    40000000u /* cycles of a burst */
#define MOST_MEMORY 200000L   /* KB */
#define MOST_GROWTH 4000L     /* KB, after the first tenth of the run */

static char *dir;

/* The peak memory of the process, in KB. */
static long memory(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static void start(struct rig *rig, const char *events)
{
	struct rig_config config;

	rig_defaults(&config);
	config.qps = QPS;
	config.buffer = 1u << 20;
	config.memory.memory = 32u << 20;
	config.faults = true;
	config.events = events;
	rig_start(rig, &config);
	rig_fault(rig, "drop,p=0.2");
}

static void burst(struct rig *rig, struct work *w, uint64_t *random)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ,
					       URDMA_WR_WRITE_IMM, URDMA_WR_ATOMIC_FA };

	for (unsigned int i = 0; i < MESSAGES; i++) {
		unsigned int op = opcode[rig_draw(random, 5)];

		/* The last message of each flow has a CQE, for work_finish(). */
		w[i] = (struct work){
			.opcode = op,
			.from = i % 2,
			.pair = i / 2 % QPS,
			.at = i * work_slot(MAX_LEN),
			.len = work_is_atomic(op) ? 8 : rig_draw(random, MAX_LEN),
			.seed = (uint32_t)rnd_next(random),
			.unsignaled = i < MESSAGES - 2 * QPS && rig_draw(random, 2),
		};
	}
	work_run(rig, w, MESSAGES, LIMIT, "burst");
}

static void billion_cycles(void **state)
{
	struct work *w = test_calloc(MESSAGES, sizeof(*w));
	uint64_t random = 7, lost;
	long before = 0, after;
	char events[256];
	struct rig rig;

	(void)state;
	snprintf(events, sizeof(events), "%s/events.urdma", dir);
	start(&rig, events);
	for (unsigned int i = 0; i < BURSTS; i++) {
		uint64_t until = (uint64_t)CYCLES / BURSTS * (i + 1);

		burst(&rig, w, &random);
		if (until > urdma_cosim_now(rig.cosim))
			rig_check(&rig, urdma_cosim_run_until(rig.cosim, until), "pause");
		if (i == BURSTS / 10)
			before = memory();
	}
	after = memory();
	lost = rig_fault_count(&rig, 0, URDMA_FAULT_DROP) +
	       rig_fault_count(&rig, 1, URDMA_FAULT_DROP);
	print_message("%llu cycles, %llu events, %llu frames lost: %ld KB, %ld KB behind the first "
		      "tenth\n",
		      (unsigned long long)urdma_cosim_now(rig.cosim),
		      (unsigned long long)urdma_recorder_events(rig.recorder),
		      (unsigned long long)lost, after, after - before);
	assert_true(urdma_cosim_now(rig.cosim) >= CYCLES);
	assert_true(lost > BURSTS / 20);
	assert_true(after <= MOST_MEMORY);
	assert_true(after - before <= MOST_GROWTH);
	rig_stop(&rig);
	test_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(billion_cycles) };

	if (argc != 2) {
		fprintf(stderr, "usage: test_long DIR\n");
		return 2;
	}
	dir = argv[1];
	return cmocka_run_group_tests_name("engine/long", tests, NULL, NULL);
}
