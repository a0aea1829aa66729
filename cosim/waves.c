// SPDX-License-Identifier: Apache-2.0
// Waves of the NICs: files, windows of time, commands.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

/* Minimum ns between new files before a trigger: each file costs milliseconds. */
#define LEAST_TURN UINT64_C(10000)

static void name_file(char *name, size_t size, const struct urdma_program *p, unsigned int nic,
		      const char *suffix)
{
	snprintf(name, size, "%s/%s%s.fst", p->opt.out, urdma_cosim_port(p->c, nic)->name, suffix);
}

static int begin(struct urdma_program *p, unsigned int nic)
{
	char name[4096], scope[512];
	int ret;

	name_file(name, sizeof(name), p, nic, "");
	/* The model's names start with the NIC's. */
	if (p->opt.waves.scope)
		snprintf(scope, sizeof(scope), "%s.urdma_sim_top.%s",
			 urdma_cosim_port(p->c, nic)->name, p->opt.waves.scope);
	ret = urdma_sim_waves(urdma_cosim_model(p->c, nic), name, p->opt.waves.scope ? scope : NULL,
			      urdma_cosim_now(p->c));
	if (ret)
		urdma_program_fail(p, "cannot write %s: %s", name, strerror(-ret));
	return ret;
}

static void end(struct urdma_program *p, unsigned int nic)
{
	int ret = urdma_sim_waves(urdma_cosim_model(p->c, nic), NULL, NULL, urdma_cosim_now(p->c));
	char name[80];

	snprintf(name, sizeof(name), "%s.fst", urdma_cosim_port(p->c, nic)->name);
	if (ret)
		urdma_program_not_whole(p, name, ret);
}

static void set(struct urdma_program *p, enum urdma_gate_state state)
{
	if (p->opt.waves.window.trigger && state != URDMA_GATE_WAITS)
		p->waves_turn = 0;
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		urdma_sim_pause_waves(urdma_cosim_model(p->c, i), state == URDMA_GATE_SHUT);
}

int urdma_program_open_waves(struct urdma_program *p)
{
	const struct urdma_waves_options *o = &p->opt.waves;

	if (!o->on)
		return 0;
	p->waves_turn = o->window.last;
	if (o->window.trigger)
		p->waves_turn = o->window.before > LEAST_TURN ? o->window.before : LEAST_TURN;
	if (urdma_program_gate(p, &p->waves, &o->window, set)) {
		fprintf(stderr, "urdma-cosim: no memory for the window of waves\n");
		return 1;
	}
	/* After setting the window: a file whose window is shut starts when it opens, not at 0. */
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		if (begin(p, i))
			return 1;
	return 0;
}

/* Deletes the file before the last one and keeps the last one in its place. */
void urdma_program_watch_waves(struct urdma_program *p)
{
	uint64_t now = urdma_cosim_now(p->c) * URDMA_SIM_CYCLE_NS;

	if (!p->waves_turn || now - p->waves_since < p->waves_turn)
		return;
	p->waves_since = now;
	for (unsigned int i = 0; i < p->opt.cosim.n_nics && p->waves_turn; i++) {
		char name[4096], before[4096];

		end(p, i);
		name_file(name, sizeof(name), p, i, "");
		name_file(before, sizeof(before), p, i, ".before");
		if (rename(name, before))
			urdma_program_fail(p, "cannot rename %s: %s", name, strerror(errno));
		else if (!begin(p, i))
			continue;
		p->waves_turn = 0;
	}
}

void urdma_program_close_waves(struct urdma_program *p)
{
	for (unsigned int i = 0; i < p->opt.cosim.n_nics && p->opt.waves.on; i++)
		end(p, i);
}

const char *urdma_program_waves_command(struct urdma_program *p, bool on)
{
	if (!p->opt.waves.on)
		return "there are no waves in this run: it needs --trace fst";
	if (p->opt.waves.window.trigger)
		return "the waves of this run are those around its trigger";
	set(p, on ? URDMA_GATE_OPEN : URDMA_GATE_SHUT);
	return NULL;
}
