// SPDX-License-Identifier: Apache-2.0
// Watches for the trigger of the run, and opens the windows that wait for it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

static void event(void *ctx, const struct urdma_trace_event *e);

static void ignore(void *arg)
{
	struct urdma_program *p = arg;

	if (p->trigger.watches)
		urdma_cosim_unlisten(p->c, event, p);
	p->trigger.watches = false;
}

/* A match of the trigger, not yet counted. mark: its event. */
static void count(struct urdma_program *p, const struct urdma_trace_event *mark)
{
	struct urdma_trigger_watch *t = &p->trigger;
	int ret;

	if (t->came || ++t->matches != p->opt.trigger.nth)
		return;
	t->came = true;
	t->cycle = mark->cycle;
	fprintf(stderr, "urdma-cosim: the trigger %s came at %" PRIu64 " ns\n", p->opt.trigger_text,
		mark->cycle * URDMA_SIM_CYCLE_NS);
	urdma_program_mark_trigger(p, mark);
	/* A listener must not be removed while events are delivered. */
	ret = urdma_cosim_at(p->c, 0, ignore, p);
	for (unsigned int i = 0; i < t->n_gates && !ret; i++)
		ret = urdma_program_gate_trigger(t->gate[i], mark->cycle);
	if (ret)
		urdma_program_fail(p, "cannot write what is around the trigger: %s",
				   strerror(-ret));
}

static void event(void *ctx, const struct urdma_trace_event *e)
{
	const struct urdma_trace_event mark = { .cycle = e->cycle,
						.kind = URDMA_TRACE_TRIGGER,
						.nic = e->nic };
	struct urdma_program *p = ctx;

	if (urdma_trigger_matches(&p->opt.trigger, e))
		count(p, &mark);
}

/* Several rules may hit a frame; count it once. */
static void fault(void *ctx, const struct urdma_fault_record *r)
{
	const struct urdma_trace_event mark = { .cycle = r->cycle,
						.kind = URDMA_TRACE_TRIGGER,
						.trigger.fault = true };
	struct urdma_program *p = ctx;
	struct urdma_trigger_watch *t = &p->trigger;

	if (t->matches && t->wire == r->wire && t->side == r->side && t->frame == r->frame)
		return;
	t->wire = r->wire;
	t->side = r->side;
	t->frame = r->frame;
	count(p, &mark);
}

int urdma_program_open_trigger(struct urdma_program *p)
{
	int ret;

	if (!p->opt.trigger_text)
		return 0;
	if (p->opt.trigger.what == URDMA_TRIGGER_FAULT) {
		urdma_faults_watch(p->faults, fault, p);
		return 0;
	}
	ret = urdma_cosim_listen(p->c, event, p);
	p->trigger.watches = !ret;
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot look for the trigger: %s\n", strerror(-ret));
	return ret != 0;
}

void urdma_program_close_trigger(struct urdma_program *p)
{
	const struct urdma_trigger_watch *t = &p->trigger;

	if (!p->opt.trigger_text)
		return;
	ignore(p);
	if (p->faults)
		urdma_faults_watch(p->faults, NULL, NULL);
	if (!t->came)
		fprintf(stderr,
			"urdma-cosim: the trigger %s never came: %" PRIu64 " of %" PRIu64
			" were seen\n",
			p->opt.trigger_text, t->matches, p->opt.trigger.nth);
}

static json_t *time_of(bool known, uint64_t cycle)
{
	return known ? json_integer((json_int_t)(cycle * URDMA_SIM_CYCLE_NS)) : json_null();
}

json_t *urdma_program_trigger(const struct urdma_program *p)
{
	const struct urdma_trigger_watch *t = &p->trigger;

	if (!p->opt.trigger_text)
		return json_null();
	return json_pack("{s:s, s:I, s:o, s:o}", "what", p->opt.trigger_text, "seen",
			 (json_int_t)t->matches, "at_ns", time_of(t->came, t->cycle),
			 "events_from_ns",
			 time_of(t->came && p->opt.events.window.trigger, t->events_cycle));
}
