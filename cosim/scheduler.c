// SPDX-License-Identifier: Apache-2.0
// Time, and the order of actions within a cycle. See scheduler.h and docs/cosim.md.
#include "scheduler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "eth/pcapng.h"
#include "rate.h"
#include "team.h"
#include "trace/fates.h"
#include "trace/monitor.h"

/*
 * Skips end this many cycles before an armed timer; the rest runs clock by clock. For the same
 * number of clocks after a skip, a NIC's report of a later timer is ignored, because it may come
 * from registers that have not seen the skip yet.
 */
#define TIMER_MARGIN 4u

struct event {
	uint64_t cycle, seq;
	urdma_cosim_event_fn fn;
	void *arg;
};

/*
 * The scheduler measures whether the team is faster, in blocks of steps in which more than one NIC
 * is evaluated. From time to time the team gets a block. It keeps the work as long as its blocks
 * take less time than a block of the caller alone, and loses it at once otherwise: if all cores are
 * busy, a thread may wait milliseconds for a core. After a failed trial, the time to the next one
 * doubles.
 */
#define BLOCK		64u
#define TRIAL_AFTER	512u
#define TRIAL_AFTER_MAX (1u << 18)
/* Steps of the team until the caller alone is measured again. */
#define TEAM_STEPS 16384u

struct pace {
	bool team;
	unsigned int steps;	  /* since the last change between team and caller */
	unsigned int trial_after; /* steps of the caller alone */
	uint64_t block;		  /* ns of the steps of this block */
	uint64_t alone;		  /* ns of the last block of the caller alone */
};

struct nic {
	const struct urdma_model_ops *ops;
	void *model;
	struct urdma_pcie *pcie;
	struct urdma_eth_port port;
	struct urdma_monitor *monitor; /* awake while there are listeners */
	struct urdma_fates *fates;     /* NULL: nothing records its frames */
	struct urdma_sim_in in;
	struct urdma_sim_out out;
	struct settings {
		uint8_t max_payload, max_read_req, bus_master_en, link_up;
	} seen;	      /* at the last clock */
	bool quiet;   /* at that clock, no register changed and no stream was valid */
	bool working; /* evaluated in this cycle */
	bool woken;   /* in this cycle; woken_out has the outputs of the wake-up clock */
	struct urdma_sim_out woken_out;
	uint64_t dozed;	       /* cycles since that clock in which the model was not evaluated */
	uint64_t timer_at;     /* cycle of the next armed timer, UINT64_MAX */
	unsigned int settling; /* clocks left after a skip in which timer_at may only decrease */
};

struct urdma_cosim {
	struct urdma_cosim_config cfg;
	const struct urdma_model_ops *ops;
	unsigned int n;
	struct nic nic[URDMA_COSIM_MAX_NICS];
	struct urdma_wire *wire[URDMA_COSIM_MAX_WIRES];
	unsigned int n_wires;
	struct urdma_switch *sw[URDMA_COSIM_MAX_SWITCHES];
	uint64_t now;
	struct event *heap;
	size_t n_events, cap_events;
	uint64_t seq;
	uint64_t progress; /* last cycle with a transfer */
	uint64_t stall_cycles;
	bool stop;
	bool running;
	struct urdma_team *team;
	struct pace pace;
	struct listener {
		urdma_trace_fn fn;
		void *ctx;
	} listener[URDMA_COSIM_MAX_LISTENERS];
	unsigned int n_listeners;
	struct sampling {
		uint64_t at; /* cycle of the next one; UINT64_MAX: none */
		uint64_t period;
		bool stepped; /* since the last sample */
		urdma_cosim_sample_fn fn;
		void *ctx;
	} sampling;
	struct urdma_cosim_stats stats;
	char error[2048];
	bool failed;
};

void urdma_cosim_config_defaults(struct urdma_cosim_config *config, unsigned int n_nics)
{
	memset(config, 0, sizeof(*config));
	config->n_nics = n_nics;
	urdma_pcie_config_defaults(&config->pcie);
	config->rate_mbps = 100000;
	config->delay_ns = 250;
	config->stall_ns = 1000000;
	config->switch_latency_ns = 500;
	config->switch_queue = 512u << 10;
	config->switch_age_ns = UINT64_C(300000000000);
	for (unsigned int i = 0; i + 1 < n_nics; i += 2) {
		config->wire[i / 2][0] = i;
		config->wire[i / 2][1] = i + 1;
		config->n_wires++;
	}
}

void urdma_cosim_destroy(struct urdma_cosim *c)
{
	if (!c)
		return;
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_WIRES; i++)
		urdma_wire_destroy(c->wire[i]);
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_SWITCHES; i++)
		urdma_switch_destroy(c->sw[i]);
	for (unsigned int i = 0; i < c->cfg.n_external; i++) {
		struct urdma_eth_port *port = urdma_external_port(c->cfg.external[i]);

		urdma_pcapng_close(port->capture);
		port->capture = NULL;
	}
	for (unsigned int i = 0; i < c->n; i++) {
		struct nic *nic = &c->nic[i];

		urdma_monitor_destroy(nic->monitor);
		urdma_fates_destroy(nic->fates);
		urdma_pcapng_close(nic->port.capture);
		urdma_eth_port_cleanup(&nic->port);
		urdma_pcie_destroy(nic->pcie);
		if (nic->model)
			c->ops->destroy(nic->model);
	}
	urdma_team_destroy(c->team);
	free(c->heap);
	free(c);
}

static uint64_t own_or(uint64_t own, uint64_t all)
{
	return own ? own : all;
}

/* At least one cycle. */
static uint64_t delay_cycles(uint64_t ns)
{
	uint64_t cycles = urdma_ns_to_cycles(ns);

	return cycles ? cycles : 1;
}

static int add_wire(struct urdma_cosim *c, struct urdma_eth_port *a, struct urdma_eth_port *b,
		    const struct urdma_cosim_line *own)
{
	uint64_t rate = own_or(own->rate_mbps, c->cfg.rate_mbps);
	uint64_t delay = own_or(own->delay_ns, c->cfg.delay_ns);

	if (!a || !b || c->n_wires == URDMA_COSIM_MAX_WIRES)
		return -EINVAL;
	urdma_eth_port_set_rate(a, rate);
	urdma_eth_port_set_rate(b, rate);
	return urdma_wire_create(a, b, delay_cycles(delay), &c->wire[c->n_wires++]);
}

static int add_switch(struct urdma_cosim *c, unsigned int index)
{
	const struct urdma_cosim_config *cfg = &c->cfg;
	char name[20];
	struct urdma_switch_config config = {
		.name = name,
		.n_ports = cfg->sw[index].n,
		.rate_mbps = cfg->rate_mbps,
		.latency_cycles =
			delay_cycles(own_or(cfg->sw[index].latency_ns, cfg->switch_latency_ns)),
		.queue_bytes = own_or(cfg->sw[index].queue, cfg->switch_queue),
		.age_cycles = urdma_ns_to_cycles(own_or(cfg->sw[index].age_ns, cfg->switch_age_ns)),
	};
	int ret;

	snprintf(name, sizeof(name), "switch%u", index);
	ret = urdma_switch_create(&config, &c->sw[index]);
	for (unsigned int i = 0; i < config.n_ports && !ret; i++)
		ret = add_wire(c, urdma_cosim_port(c, cfg->sw[index].port[i]),
			       urdma_switch_port(c->sw[index], i), &cfg->sw[index].line[i]);
	return ret;
}

/* Passes an event to all listeners. ctx: the simulation. */
static void tell(void *ctx, const struct urdma_trace_event *event)
{
	struct urdma_cosim *c = ctx;

	for (unsigned int i = 0; i < c->n_listeners; i++)
		c->listener[i].fn(c->listener[i].ctx, event);
}

static int add_nic(struct urdma_cosim *c, unsigned int i)
{
	const struct urdma_cosim_config *cfg = &c->cfg;
	struct urdma_pcie_config pcie = cfg->nic_pcie[i] ? *cfg->nic_pcie[i] : cfg->pcie;
	struct nic *nic = &c->nic[i];
	char name[16];
	int ret;

	c->n = i + 1;
	snprintf(name, sizeof(name), "urdma%u", i);
	pcie.name = name;
	pcie.seed += i * UINT64_C(0x9e3779b97f4a7c15);
	urdma_eth_port_init(&nic->port, name, cfg->rate_mbps);
	nic->timer_at = UINT64_MAX;
	nic->ops = c->ops;
	nic->in.all_parts = cfg->no_skip;
	/* Locally administered, "urd" and the number; byte 0 lowest. */
	nic->in.mac_default = UINT64_C(0x000064727502) | (uint64_t)i << 40;
	ret = urdma_pcie_create(&pcie, &nic->pcie);
	if (ret)
		return ret;
	nic->model = c->ops->create(name, i);
	nic->monitor = urdma_monitor_create((uint8_t)i, &nic->port, tell, c);
	return nic->model && nic->monitor ? 0 : -ENOMEM;
}

int urdma_cosim_create(const struct urdma_cosim_config *config, const struct urdma_model_ops *model,
		       struct urdma_cosim **cosim)
{
	struct urdma_cosim *c;
	int ret;

	if (!model || !config->n_nics || config->n_nics > URDMA_COSIM_MAX_NICS ||
	    !config->rate_mbps || config->n_wires > URDMA_COSIM_MAX_WIRES ||
	    config->n_external > URDMA_COSIM_MAX_EXTERNAL ||
	    config->n_switches > URDMA_COSIM_MAX_SWITCHES)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->cfg = *config;
	c->ops = model;
	c->stall_cycles = urdma_ns_to_cycles(config->stall_ns);
	c->sampling.at = UINT64_MAX;
	for (unsigned int i = 0; i < config->n_nics; i++) {
		ret = add_nic(c, i);
		if (ret)
			goto err;
	}
	for (unsigned int i = 0; i < config->n_wires; i++) {
		ret = add_wire(c, urdma_cosim_port(c, config->wire[i][0]),
			       urdma_cosim_port(c, config->wire[i][1]), &config->line[i]);
		if (ret)
			goto err;
	}
	for (unsigned int i = 0; i < config->n_switches; i++) {
		ret = add_switch(c, i);
		if (ret)
			goto err;
	}
	if (config->threads > 1 && c->n > 1) {
		c->team = urdma_team_create(config->threads < c->n ? config->threads : c->n);
		c->pace.trial_after = TRIAL_AFTER;
		ret = c->team ? 0 : -ENOMEM;
		if (ret)
			goto err;
	}
	*cosim = c;
	return 0;
err:
	urdma_cosim_destroy(c);
	return ret;
}

unsigned int urdma_cosim_nics(const struct urdma_cosim *c)
{
	return c->n;
}

struct urdma_pcie *urdma_cosim_pcie(struct urdma_cosim *c, unsigned int nic)
{
	return c->nic[nic].pcie;
}

struct urdma_eth_port *urdma_cosim_port(struct urdma_cosim *c, unsigned int port)
{
	if (port < c->n)
		return &c->nic[port].port;
	if (port >= URDMA_COSIM_EXTERNAL(0) && port < URDMA_COSIM_EXTERNAL(c->cfg.n_external))
		return urdma_external_port(c->cfg.external[port - URDMA_COSIM_EXTERNAL(0)]);
	return NULL;
}

unsigned int urdma_cosim_wires(const struct urdma_cosim *c)
{
	return c->n_wires;
}

struct urdma_wire *urdma_cosim_wire(struct urdma_cosim *c, unsigned int wire)
{
	return wire < c->n_wires ? c->wire[wire] : NULL;
}

unsigned int urdma_cosim_switches(const struct urdma_cosim *c)
{
	return c->cfg.n_switches;
}

struct urdma_switch *urdma_cosim_switch(struct urdma_cosim *c, unsigned int sw)
{
	return sw < c->cfg.n_switches ? c->sw[sw] : NULL;
}

int urdma_cosim_link(struct urdma_cosim *c, unsigned int port, bool up)
{
	struct urdma_eth_port *p = urdma_cosim_port(c, port);
	int ret;

	if (!p)
		return -EINVAL;
	if (!p->wire)
		return -ENOTCONN;
	ret = urdma_wire_set_link(p->wire, up);
	if (ret || up)
		return ret;
	for (unsigned int i = 0; i < c->cfg.n_switches; i++)
		for (unsigned int k = 0; k < urdma_switch_ports(c->sw[i]); k++)
			if (urdma_wire_port(p->wire, 1) == urdma_switch_port(c->sw[i], k))
				urdma_switch_forget(c->sw[i], k);
	return 0;
}

void *urdma_cosim_model(struct urdma_cosim *c, unsigned int nic)
{
	return c->nic[nic].model;
}

/* Holds a NIC's frames, so that records of them get comments on dropped ones. */
static int hold_frames(struct urdma_cosim *c, unsigned int port)
{
	if (port >= c->n || c->nic[port].fates)
		return 0;
	c->nic[port].fates = urdma_fates_create(&c->nic[port].port);
	return c->nic[port].fates ? 0 : -ENOMEM;
}

/* No more decisions come for frames in flight. */
static void flush_held(struct urdma_cosim *c, unsigned int port)
{
	if (port < c->n && c->nic[port].fates)
		urdma_fates_flush(c->nic[port].fates);
}

uint64_t urdma_cosim_unknown_fates(const struct urdma_cosim *c, unsigned int nic)
{
	return c->nic[nic].fates ? urdma_fates_unknown(c->nic[nic].fates) : 0;
}

int urdma_cosim_follow(struct urdma_cosim *c, unsigned int port, urdma_eth_tap_fn fn, void *ctx)
{
	struct urdma_eth_port *p = urdma_cosim_port(c, port);
	int ret;

	if (!p)
		return -EINVAL;
	if (fn && p->live.fn)
		return -EBUSY;
	ret = fn ? hold_frames(c, port) : 0;
	if (ret)
		return ret;
	if (!fn)
		flush_held(c, port);
	p->live = (struct urdma_eth_tap){ fn, ctx };
	return 0;
}

int urdma_cosim_capture(struct urdma_cosim *c, unsigned int port, const char *path)
{
	struct urdma_eth_port *p = urdma_cosim_port(c, port);
	int ret;

	if (!p)
		return -EINVAL;
	if (p->capture)
		return -EBUSY;
	ret = hold_frames(c, port);
	if (ret)
		return ret;
	flush_held(c, port);
	ret = urdma_pcapng_open(path, p->name, p->line.mbps * 1000000, &p->capture);
	if (!ret)
		p->shown = 0;
	return ret;
}

static int wake_monitors(struct urdma_cosim *c)
{
	for (unsigned int i = 0; i < c->n; i++) {
		int ret = urdma_monitor_start(c->nic[i].monitor);

		while (ret && i--)
			urdma_monitor_stop(c->nic[i].monitor);
		if (ret)
			return ret;
	}
	return 0;
}

int urdma_cosim_listen(struct urdma_cosim *c, urdma_trace_fn fn, void *ctx)
{
	int ret;

	if (c->n_listeners == URDMA_COSIM_MAX_LISTENERS)
		return -ENOSPC;
	ret = c->n_listeners ? 0 : wake_monitors(c);
	if (!ret)
		c->listener[c->n_listeners++] = (struct listener){ fn, ctx };
	return ret;
}

void urdma_cosim_unlisten(struct urdma_cosim *c, urdma_trace_fn fn, void *ctx)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->n_listeners; i++)
		if (c->listener[i].fn != fn || c->listener[i].ctx != ctx)
			c->listener[n++] = c->listener[i];
	for (unsigned int i = 0; i < c->n && c->n_listeners && !n; i++)
		urdma_monitor_stop(c->nic[i].monitor);
	c->n_listeners = n;
}

void urdma_cosim_flush_captures(struct urdma_cosim *c)
{
	bool idle = !urdma_cosim_busy(c);

	for (unsigned int i = 0; i < URDMA_COSIM_MAX_PORTS; i++) {
		struct urdma_eth_port *port = urdma_cosim_port(c, i);

		if (!port)
			continue;
		if (idle)
			flush_held(c, i);
		if (port->capture)
			urdma_pcapng_flush(port->capture);
	}
}

int urdma_cosim_capture_error(struct urdma_cosim *c, unsigned int port)
{
	const struct urdma_eth_port *p = urdma_cosim_port(c, port);

	return p && p->capture ? urdma_pcapng_error(p->capture) : 0;
}

int urdma_cosim_end_capture(struct urdma_cosim *c, unsigned int port)
{
	struct urdma_eth_port *p = urdma_cosim_port(c, port);
	int ret;

	if (!p)
		return 0;
	flush_held(c, port);
	ret = urdma_pcapng_close(p->capture);
	p->capture = NULL;
	return ret;
}

uint64_t urdma_cosim_now(const struct urdma_cosim *c)
{
	return c->now;
}

const char *urdma_cosim_error(const struct urdma_cosim *c)
{
	return c->failed ? c->error : NULL;
}

const struct urdma_cosim_stats *urdma_cosim_stats(const struct urdma_cosim *c)
{
	return &c->stats;
}

void urdma_cosim_stop(struct urdma_cosim *c)
{
	c->stop = true;
}

/* ---- events: a binary heap, ordered by cycle, then by age ------------------------------------ */

static bool before(const struct event *a, const struct event *b)
{
	return a->cycle != b->cycle ? a->cycle < b->cycle : a->seq < b->seq;
}

int urdma_cosim_at(struct urdma_cosim *c, uint64_t cycle, urdma_cosim_event_fn fn, void *arg)
{
	struct event e = {
		.cycle = cycle < c->now ? c->now : cycle, .seq = c->seq, .fn = fn, .arg = arg
	};
	size_t i;

	if (c->n_events == c->cap_events) {
		size_t cap = c->cap_events ? c->cap_events * 2 : 64;
		struct event *heap = realloc(c->heap, cap * sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		c->heap = heap;
		c->cap_events = cap;
	}
	c->seq++;
	for (i = c->n_events++; i && before(&e, &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = e;
	return 0;
}

static struct event heap_pop(struct urdma_cosim *c)
{
	struct event top = c->heap[0], e = c->heap[--c->n_events];
	size_t i = 0;

	for (;;) {
		size_t k = 2 * i + 1;

		if (k >= c->n_events)
			break;
		if (k + 1 < c->n_events && before(&c->heap[k + 1], &c->heap[k]))
			k++;
		if (!before(&c->heap[k], &e))
			break;
		c->heap[i] = c->heap[k];
		i = k;
	}
	if (c->n_events)
		c->heap[i] = e;
	return top;
}

/* True if there were events. */
static bool run_events(struct urdma_cosim *c)
{
	bool any = false;

	while (c->n_events && c->heap[0].cycle <= c->now) {
		struct event e = heap_pop(c);

		c->stats.events++;
		c->progress = c->now;
		e.fn(e.arg);
		any = true;
	}
	return any;
}

/* ---- one cycle ----------------------------------------------------------------------------- */

static void set_error(struct urdma_cosim *c, const char *text)
{
	if (c->failed)
		return;
	c->failed = true;
	snprintf(c->error, sizeof(c->error), "%s", text);
}

static bool at_streams(const struct nic *nic)
{
	return nic->in.cq.valid || nic->in.rc.valid || nic->in.rx.valid || nic->out.cc.valid ||
	       nic->out.rq.valid || nic->out.tx.valid || nic->out.irq_valid;
}

/* Inputs of the NIC besides the streams. The ready of a stream matters only if it is valid. */
static struct settings settings_of(const struct urdma_sim_in *in)
{
	return (struct settings){ in->cfg_max_payload, in->cfg_max_read_req, in->cfg_bus_master_en,
				  in->link_up };
}

/*
 * A quiet NIC without input changes in this cycle is not clocked; a later clock makes up for the
 * skipped cycles. Close to a timer it is clocked.
 */
static bool may_doze(const struct urdma_cosim *c, const struct nic *nic)
{
	struct settings now = settings_of(&nic->in);

	return nic->quiet && !c->cfg.no_skip && !nic->in.rst && !nic->in.cq.valid &&
	       !nic->in.rc.valid && !nic->in.rx.valid && !memcmp(&now, &nic->seen, sizeof(now)) &&
	       (nic->timer_at == UINT64_MAX || nic->timer_at > c->now + TIMER_MARGIN);
}

static bool moves(const struct urdma_sim_out *out)
{
	return out->cc.valid || out->rq.valid || out->tx.valid || out->irq_valid || out->traced;
}

/*
 * Evaluates a NIC in this cycle. First, one clock without the new inputs makes up for the skipped
 * cycles. May run in a thread of the team, so it accesses only the NIC.
 */
static void evaluate(void *item)
{
	struct nic *nic = item;

	nic->woken = nic->dozed != 0;
	if (nic->woken) {
		struct urdma_sim_in in = nic->in;

		in.cq.valid = 0;
		in.rc.valid = 0;
		in.rx.valid = 0;
		in.rst = 0;
		in.cfg_max_payload = nic->seen.max_payload;
		in.cfg_max_read_req = nic->seen.max_read_req;
		in.cfg_bus_master_en = nic->seen.bus_master_en;
		in.link_up = nic->seen.link_up;
		in.cycle--;
		in.skip_cycles = nic->dozed - 1;
		in.skip_valid = in.skip_cycles != 0;
		nic->dozed = 0;
		nic->settling = TIMER_MARGIN + 1;
		nic->ops->cycle(nic->model, &in, &nic->woken_out);
	}
	nic->ops->cycle(nic->model, &nic->in, &nic->out);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void hand_over(struct pace *p, bool team)
{
	p->team = team;
	p->steps = 0;
	p->block = 0;
}

/* After a step of the team that took ns. */
static void judge_team(struct pace *p, uint64_t ns)
{
	p->steps++;
	p->block += ns;
	if (p->block > p->alone) {
		if (p->steps <= BLOCK && p->trial_after < TRIAL_AFTER_MAX)
			p->trial_after *= 2;
		hand_over(p, false);
	} else if (p->steps == TEAM_STEPS) {
		p->trial_after = TRIAL_AFTER;
		hand_over(p, false);
	} else if (p->steps % BLOCK == 0) {
		p->block = 0;
	}
}

/* After a step of the caller alone. */
static void judge_alone(struct pace *p, uint64_t ns)
{
	p->block += ns;
	if (++p->steps % BLOCK)
		return;
	p->alone = p->block;
	p->block = 0;
	if (p->steps >= p->trial_after)
		hand_over(p, true);
}

static void evaluate_all(struct urdma_cosim *c, void **working, unsigned int n)
{
	bool judged = c->team && n > 1;
	uint64_t begin = judged ? wall_ns() : 0;

	if (judged && c->pace.team) {
		urdma_team_run(c->team, evaluate, working, n);
		c->stats.shared++;
		judge_team(&c->pace, wall_ns() - begin);
		return;
	}
	for (unsigned int i = 0; i < n; i++)
		evaluate(working[i]);
	if (judged)
		judge_alone(&c->pace, wall_ns() - begin);
}

/* Handles the results of a NIC's evaluation. */
static void look_at(struct urdma_cosim *c, struct nic *nic)
{
	char text[160];

	c->stats.evaluated += nic->woken ? 2 : 1;
	c->stats.wakings += nic->woken;
	if (nic->woken && (moves(&nic->woken_out) || !nic->woken_out.still)) {
		snprintf(text, sizeof(text),
			 "%s: cycle %llu: the NIC was still, and %s moved when time was skipped",
			 nic->port.name, (unsigned long long)c->now,
			 nic->woken_out.still ? "a stream" : nic->woken_out.mover);
		set_error(c, text);
	}
	if (nic->out.surprise) {
		snprintf(text, sizeof(text),
			 "%s: cycle %llu: %s was still, and moved without a changed input",
			 nic->port.name, (unsigned long long)c->now, nic->out.surprise);
		set_error(c, text);
	}
}

/* Events of this cycle: transfers into the NIC, then its lanes. */
static void tell_taken(struct urdma_cosim *c, struct nic *nic)
{
	uint32_t lanes = c->n_listeners ? UINT32_MAX : nic->fates ? URDMA_FATES_LANES : 0;

	if (c->n_listeners)
		urdma_monitor_taken(nic->monitor, c->now, &nic->in, &nic->out);
	if (urdma_pcie_reset_ends(nic->pcie)) {
		if (c->n_listeners)
			urdma_monitor_reset(nic->monitor, c->now);
		if (nic->fates)
			urdma_fates_reset(nic->fates);
	}
	for (uint32_t m = nic->out.traced & lanes; m; m &= m - 1) {
		unsigned int lane = (unsigned int)__builtin_ctz(m);
		struct urdma_trace_event event = { .cycle = c->now,
						   .nic = (uint8_t)(nic - c->nic) };

		urdma_trace_from_lane(&event, lane, &nic->out.lane[lane]);
		if (nic->fates)
			urdma_fates_event(nic->fates, &event);
		tell(c, &event);
	}
}

/* Call after a clock in cycle now; its outputs are those before the clock edge. */
static void note_timer(const struct urdma_cosim *c, struct nic *nic)
{
	uint64_t at = nic->out.timer_armed ? c->now + nic->out.timer_cycles : UINT64_MAX;

	if (!nic->settling || at < nic->timer_at)
		nic->timer_at = at;
	if (nic->settling)
		nic->settling--;
}

/* Ports of whole frames, in order. */
static bool advance_ports(struct urdma_cosim *c)
{
	bool moved = false;

	for (unsigned int i = 0; i < c->cfg.n_switches; i++) {
		moved |= urdma_switch_advance(c->sw[i], c->now);
		if (urdma_switch_error(c->sw[i]))
			set_error(c, urdma_switch_error(c->sw[i]));
	}
	for (unsigned int i = 0; i < c->cfg.n_external; i++) {
		struct urdma_external *e = c->cfg.external[i];

		moved |= urdma_external_advance(e, c->now);
		if (urdma_eth_port_error(urdma_external_port(e)))
			set_error(c, urdma_eth_port_error(urdma_external_port(e)));
	}
	return moved;
}

/* The first cycle in which one of them has work, except for frames that they send by themselves. */
static uint64_t ports_next(const struct urdma_cosim *c)
{
	uint64_t next = UINT64_MAX, t;

	for (unsigned int i = 0; i < c->cfg.n_switches; i++) {
		t = urdma_switch_next(c->sw[i]);
		if (t < next)
			next = t;
	}
	for (unsigned int i = 0; i < c->cfg.n_external; i++) {
		t = urdma_eth_port_next(urdma_external_port(c->cfg.external[i]));
		if (t < next)
			next = t;
	}
	return next;
}

/* The first cycle in which one of them sends a frame by itself. */
static uint64_t ports_due(const struct urdma_cosim *c)
{
	uint64_t due = UINT64_MAX;

	for (unsigned int i = 0; i < c->cfg.n_external; i++) {
		uint64_t t = urdma_external_due(c->cfg.external[i]);

		if (t < due)
			due = t;
	}
	return due;
}

/* Runs one cycle. */
static void step(struct urdma_cosim *c)
{
	void *working[URDMA_COSIM_MAX_NICS];
	unsigned int n = 0;
	bool moved = false;

	for (unsigned int i = 0; i < c->n; i++)
		urdma_pcie_advance(c->nic[i].pcie, c->now);
	moved |= advance_ports(c);
	for (unsigned int i = 0; i < c->n; i++) {
		struct nic *nic = &c->nic[i];

		urdma_pcie_drive(nic->pcie, &nic->in);
		nic->in.cycle = c->now;
		urdma_eth_port_drive(&nic->port, c->now, &nic->in);
		if (nic->in.rst)
			urdma_eth_port_reset(&nic->port, c->now);
		nic->working = !may_doze(c, nic);
		if (nic->working)
			working[n++] = nic;
		else
			nic->dozed++;
	}
	evaluate_all(c, working, n);
	for (unsigned int i = 0; i < c->n; i++) {
		struct nic *nic = &c->nic[i];

		if (nic->working) {
			look_at(c, nic);
			nic->seen = settings_of(&nic->in);
			/* The outputs are not valid before the first clock edges. */
			if (nic->in.rst)
				memset(&nic->out, 0, sizeof(nic->out));
			tell_taken(c, nic);
		}
		moved |= urdma_pcie_sample(nic->pcie, &nic->in, &nic->out);
		moved |= urdma_eth_port_sample(&nic->port, c->now, &nic->in, &nic->out);
		if (!nic->working)
			continue;
		nic->quiet = nic->out.still && !nic->in.rst && !at_streams(nic);
		note_timer(c, nic);
		if (urdma_pcie_error(nic->pcie))
			set_error(c, urdma_pcie_error(nic->pcie));
		if (urdma_eth_port_error(&nic->port))
			set_error(c, urdma_eth_port_error(&nic->port));
	}
	c->now++;
	/*
	 * Transfers out of the NICs belong to the next cycle, so listeners get them after all
	 * events of this cycle.
	 */
	for (unsigned int i = 0; i < c->n && c->n_listeners; i++)
		if (c->nic[i].working)
			urdma_monitor_left(c->nic[i].monitor, c->now, &c->nic[i].in,
					   &c->nic[i].out);
	if (n) {
		c->stats.steps++;
		c->stats.waited += c->n - n;
	} else {
		c->stats.skipped++;
	}
	for (unsigned int i = 0; i < c->n; i++)
		urdma_pcie_set_now(c->nic[i].pcie, c->now);
	if (moved)
		c->progress = c->now;
}

/* Skips cycles in which no NIC is clocked and nothing arrives. */
static void pass(struct urdma_cosim *c, uint64_t cycles)
{
	c->now += cycles;
	c->stats.skipped += cycles;
	for (unsigned int i = 0; i < c->n; i++) {
		c->nic[i].dozed += cycles;
		urdma_pcie_set_now(c->nic[i].pcie, c->now);
	}
}

static bool nic_busy(const struct nic *nic)
{
	return !nic->quiet || urdma_pcie_next(nic->pcie) != URDMA_PCIE_NEVER ||
	       urdma_eth_port_next(&nic->port) != UINT64_MAX;
}

bool urdma_cosim_busy(const struct urdma_cosim *c)
{
	for (unsigned int i = 0; i < c->n; i++)
		if (nic_busy(&c->nic[i]))
			return true;
	return ports_next(c) != UINT64_MAX || ports_due(c) <= c->now;
}

uint64_t urdma_cosim_next(const struct urdma_cosim *c)
{
	uint64_t next = ports_due(c);

	if (c->n_events && c->heap[0].cycle < next)
		next = c->heap[0].cycle;
	for (unsigned int i = 0; i < c->n; i++)
		if (c->nic[i].timer_at < next)
			next = c->nic[i].timer_at;
	return next;
}

/* The number of cycles from now on in which no NIC need be clocked and nothing is due. */
static uint64_t can_pass(const struct urdma_cosim *c, uint64_t limit)
{
	uint64_t next = limit, t;

	if (c->cfg.no_skip)
		return 0;
	for (unsigned int i = 0; i < c->n; i++) {
		const struct nic *nic = &c->nic[i];

		if (!nic->quiet)
			return 0;
		t = urdma_pcie_next(nic->pcie);
		if (t < next)
			next = t;
		t = urdma_eth_port_next(&nic->port);
		if (t < next)
			next = t;
		t = nic->timer_at;
		if (t != UINT64_MAX) {
			t = t > TIMER_MARGIN ? t - TIMER_MARGIN : 0;
			if (t < next)
				next = t;
		}
	}
	t = ports_next(c);
	if (t < next)
		next = t;
	t = ports_due(c);
	if (t < next)
		next = t;
	if (c->n_events && c->heap[0].cycle < next)
		next = c->heap[0].cycle;
	return next > c->now ? next - c->now : 0;
}

static void check_stall(struct urdma_cosim *c)
{
	size_t n;

	if (!c->stall_cycles || c->now - c->progress < c->stall_cycles)
		return;
	for (unsigned int i = 0; i < c->n; i++) {
		const struct nic *nic = &c->nic[i];

		if (nic->quiet && nic->out.idle && !urdma_pcie_pending(nic->pcie) && !nic->port.tx)
			continue;
		n = (size_t)snprintf(c->error, sizeof(c->error),
				     "stall at cycle %llu: work is pending in %s, and nothing has "
				     "moved for %llu cycles",
				     (unsigned long long)c->now, nic->port.name,
				     (unsigned long long)(c->now - c->progress));
		c->failed = true;
		for (unsigned int k = 0; k < c->n; k++) {
			const struct nic *o = &c->nic[k];
			char text[512];

			urdma_pcie_describe(o->pcie, text, sizeof(text));
			n += (size_t)snprintf(c->error + n, sizeof(c->error) - n,
					      "\n  %s; NIC %s; valid/ready: CQ %u/%u RC %u/%u RQ "
					      "%u/%u CC %u/%u irq %u/%u tx %u/%u",
					      text, o->out.idle ? "idle" : "busy", o->in.cq.valid,
					      o->out.cq_ready, o->in.rc.valid, o->out.rc_ready,
					      o->out.rq.valid, o->in.rq_ready, o->out.cc.valid,
					      o->in.cc_ready, o->out.irq_valid, o->in.irq_ready,
					      o->out.tx.valid, o->in.tx_ready);
			if (n >= sizeof(c->error))
				break;
		}
		return;
	}
	/* A long idle time is not a stall. */
	c->progress = c->now;
}

/* Takes a sample if it is due; all activity before the current cycle is complete. */
static void take_sample(struct urdma_cosim *c)
{
	struct sampling *s = &c->sampling;
	uint64_t at = s->at;

	if (c->now < at)
		return;
	s->at = (c->now / s->period + 1) * s->period;
	if (s->stepped)
		s->fn(s->ctx, at);
	s->stepped = false;
}

void urdma_cosim_sample(struct urdma_cosim *c, uint64_t period, urdma_cosim_sample_fn fn, void *ctx)
{
	c->sampling = (struct sampling){
		.at = fn ? (c->now / period + 1) * period : UINT64_MAX,
		.period = period,
		.fn = fn,
		.ctx = ctx,
	};
}

/* while_busy, cond: see the callers. */
static int run(struct urdma_cosim *c, uint64_t limit, bool while_busy, urdma_cosim_cond_fn cond,
	       void *arg)
{
	/* Actions before a run, or in an event, may have changed a NIC's inputs. */
	bool look = true;
	uint64_t n;
	int ret = 0;

	if (c->running)
		return -EBUSY; /* a callback may not run the simulation */
	c->running = true;
	c->stop = false;
	for (;;) {
		if (c->failed) {
			ret = -EPROTO;
			break;
		}
		look |= run_events(c);
		if (cond && cond(arg))
			break;
		if (c->stop)
			break;
		if (while_busy && !urdma_cosim_busy(c))
			break;
		if (c->now >= limit) {
			ret = cond ? -ETIMEDOUT : 0;
			break;
		}
		n = look ? 0 : can_pass(c, limit);
		look = false;
		if (n) {
			pass(c, n);
		} else {
			step(c);
			c->sampling.stepped = true;
		}
		take_sample(c);
		check_stall(c);
	}
	c->running = false;
	return ret;
}

int urdma_cosim_run_until(struct urdma_cosim *c, uint64_t cycle)
{
	return run(c, cycle, false, NULL, NULL);
}

int urdma_cosim_run_while_busy(struct urdma_cosim *c, uint64_t cycle)
{
	return run(c, cycle, true, NULL, NULL);
}

int urdma_cosim_run_cond(struct urdma_cosim *c, urdma_cosim_cond_fn cond, void *arg, uint64_t cycle)
{
	return run(c, cycle, false, cond, arg);
}
