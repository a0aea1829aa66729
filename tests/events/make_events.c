// SPDX-License-Identifier: Apache-2.0
// make_events [-t] FILE [FROM TO]: writes a file of events of two NICs, or only these cycles of it.
// -t: with a trigger, the first time-out of urdma0. For tests of the program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic_pair.h"
#include "urdma_hw.h"
#include "urdma_trace_pkg.h"

static void trigger(struct pair *p)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < p->n; i++) {
		const struct urdma_trace_event *e = &p->event[i];

		if (e->kind == URDMA_TRACE_ACKED && !e->nic && e->acked.cause == TRC_TIMEOUT &&
		    e->cycle < first)
			first = e->cycle;
	}
	pair_trigger(p, first, 0, "urdma0:acked.cause=time-out");
}

int main(int argc, char **argv)
{
	struct pair_message m = { .qpn = 2, .bytes = 2500 };
	uint64_t cycle = 1000, from = 0, to = UINT64_MAX;
	bool with_trigger = argc > 1 && !strcmp(argv[1], "-t");
	struct pair p;
	int ret;

	if (with_trigger) {
		argc--;
		argv++;
	}
	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: make_events [-t] FILE [FROM TO]\n");
		return 2;
	}
	if (argc == 4) {
		from = strtoull(argv[2], NULL, 0);
		to = strtoull(argv[3], NULL, 0);
	}
	pair_begin(&p);
	for (unsigned int i = 0; i < 2000; i++) {
		m.losses = i % 50 == 7;
		m.op = i % 3 ? URDMA_WR_WRITE : URDMA_WR_READ;
		m.nic = i % 7 == 6;
		m.qpn = m.nic ? 20 : 2 + 2 * (i % 4);
		cycle = pair_send(&p, cycle, &m) - 200;
	}
	pair_qp_end(&p, cycle + 10000, 0, 2);
	if (with_trigger)
		trigger(&p);
	pair_sort(&p);
	ret = pair_write(&p, argv[1], from, to);
	pair_free(&p);
	if (ret)
		fprintf(stderr, "make_events: cannot write %s\n", argv[1]);
	return ret != 0;
}
