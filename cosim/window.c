// SPDX-License-Identifier: Apache-2.0
// Time windows for output.
#include "program.h"

static void from(void *ctx)
{
	struct urdma_gate *gate = ctx;

	gate->set(gate->p, URDMA_GATE_OPEN);
}

static void to(void *ctx)
{
	struct urdma_gate *gate = ctx;

	gate->set(gate->p, URDMA_GATE_SHUT);
}

static int at(struct urdma_gate *gate, uint64_t ns, urdma_cosim_event_fn fn)
{
	return ns ? urdma_cosim_at(gate->p->c, ns / URDMA_SIM_CYCLE_NS, fn, gate) : 0;
}

static enum urdma_gate_state at_first(const struct urdma_window *window)
{
	if (window->trigger)
		return URDMA_GATE_WAITS;
	return window->hold || window->from ? URDMA_GATE_SHUT : URDMA_GATE_OPEN;
}

int urdma_program_gate(struct urdma_program *p, struct urdma_gate *gate,
		       const struct urdma_window *window,
		       void (*set)(struct urdma_program *p, enum urdma_gate_state state))
{
	struct urdma_trigger_watch *t = &p->trigger;
	int ret;

	*gate = (struct urdma_gate){ p, window, set };
	if (window->trigger)
		t->gate[t->n_gates++] = gate;
	set(p, at_first(window));
	ret = at(gate, window->from, from);
	return ret ? ret : at(gate, window->to, to);
}

int urdma_program_gate_trigger(struct urdma_gate *gate, uint64_t cycle)
{
	gate->set(gate->p, URDMA_GATE_OPEN);
	/* The window includes its last cycle. */
	return urdma_cosim_at(gate->p->c, cycle + gate->window->after / URDMA_SIM_CYCLE_NS + 1, to,
			      gate);
}
