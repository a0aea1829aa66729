// SPDX-License-Identifier: Apache-2.0
// Windows of time in which something is written.
#include "program.h"

static void from(void *ctx)
{
	struct urdma_gate *gate = ctx;

	gate->set(gate->p, true);
}

static void to(void *ctx)
{
	struct urdma_gate *gate = ctx;

	gate->set(gate->p, false);
}

static int at(struct urdma_gate *gate, uint64_t ns, urdma_cosim_event_fn fn)
{
	return ns ? urdma_cosim_at(gate->p->c, ns / URDMA_SIM_CYCLE_NS, fn, gate) : 0;
}

int urdma_program_gate(struct urdma_program *p, struct urdma_gate *gate,
		       const struct urdma_window *window,
		       void (*set)(struct urdma_program *p, bool on))
{
	int ret;

	*gate = (struct urdma_gate){ p, set };
	set(p, !window->hold && !window->from);
	ret = at(gate, window->from, from);
	return ret ? ret : at(gate, window->to, to);
}
