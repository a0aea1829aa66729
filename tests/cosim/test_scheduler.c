// SPDX-License-Identifier: Apache-2.0
/*
 * Time, skipping, events, the wire and the embedded host's memory, with a NIC written in C
 * (model_nic.h). A failure means that runs would not repeat, that skipping time changes results, or
 * that a hang would go unnoticed.
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

#include "host/embedded.h"
#include "model_nic.h"
#include "pcie/config_space.h"
#include "random.h"
#include "seed.h"

struct world {
	struct urdma_cosim *c;
	struct urdma_embedded *h;
	struct urdma_embedded_dev *dev[2];
	uint8_t *src[2], *dst[2]; /* pages contiguous on the bus */
	uint64_t log;		  /* hash over (what, when) */
	unsigned int irqs;
	struct urdma_random rnd;
	unsigned int sends;
};

static void note(struct world *w, uint64_t what)
{
	w->log = (w->log ^ (what + urdma_cosim_now(w->c) * UINT64_C(0x9e3779b97f4a7c15))) *
		 UINT64_C(0x100000001b3);
}

static void on_irq(void *ctx, struct urdma_embedded_dev *dev, unsigned int vector)
{
	struct world *w = ctx;

	w->irqs++;
	note(w, urdma_embedded_nic(dev) * 64 + vector);
}

/* Values of a port over time, and the number of samples. */
struct series {
	struct urdma_cosim *c;
	uint64_t last, n, period;
	unsigned int changes;
	struct {
		uint64_t cycle, frames, bytes;
	} change[64];
};

static void take(void *ctx, uint64_t cycle)
{
	struct series *s = ctx;
	const struct urdma_eth_stats *es = &urdma_cosim_port(s->c, 1)->stats;
	unsigned int i = s->changes;

	assert_int_equal(cycle % s->period, 0);
	assert_true(cycle > s->last);
	assert_in_range(cycle, 1, urdma_cosim_now(s->c));
	s->last = cycle;
	s->n++;
	if (i && s->change[i - 1].frames == es->rx_frames && s->change[i - 1].bytes == es->tx_bytes)
		return;
	assert_true(i < 64);
	s->change[i].cycle = cycle;
	s->change[i].frames = es->rx_frames;
	s->change[i].bytes = es->tx_bytes;
	s->changes++;
}

/* A listener to events. With several listeners, each gets an event after the one before it. */
struct ear {
	struct urdma_cosim *c;
	const struct ear *before;
	uint64_t n, last, hash;
};

static void hear(void *ctx, const struct urdma_trace_event *e)
{
	struct ear *ear = ctx;
	uint64_t word[3 + URDMA_TRACE_MAX_FIELDS] = { e->cycle, e->kind, e->nic };

	/* In its cycle, and in the order of cycles. */
	assert_int_equal(e->cycle, urdma_cosim_now(ear->c));
	assert_true(e->cycle >= ear->last);
	ear->last = e->cycle;
	ear->n++;
	if (ear->before)
		assert_int_equal(ear->before->n, ear->n);
	memcpy(&word[3], e->field, urdma_trace_desc[e->kind].n_fields * sizeof(*word));
	for (unsigned int i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		ear->hash = (ear->hash ^ word[i]) * UINT64_C(0x100000001b3);
}

/* Two of them in each world while this is set. */
static bool listening;
static struct ear ears[2];

static void listen(struct urdma_cosim *c)
{
	for (unsigned int i = 0; i < 2; i++) {
		ears[i] = (struct ear){ .c = c, .before = i ? &ears[0] : NULL };
		assert_int_equal(urdma_cosim_listen(c, hear, &ears[i]), 0);
	}
}

static void world_open(struct world *w, const struct urdma_cosim_config *cfg)
{
	memset(w, 0, sizeof(*w));
	assert_int_equal(urdma_cosim_create(cfg, &model_nic, &w->c), 0);
	if (listening)
		listen(w->c);
	assert_int_equal(urdma_embedded_create(w->c, NULL, &w->h), 0);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(urdma_embedded_attach(w->h, i, &w->dev[i]), 0);
		urdma_embedded_on_irq(w->dev[i], on_irq, w);
		w->src[i] = urdma_embedded_alloc_contig(w->h, 16384, 0);
		w->dst[i] = urdma_embedded_alloc_contig(w->h, 16384, 0);
		assert_true(w->src[i] && w->dst[i]);
	}
	w->rnd.state = 4711;
}

static void world_close(struct world *w)
{
	urdma_embedded_destroy(w->h);
	urdma_cosim_destroy(w->c);
}

static void send_frame(struct world *w, unsigned int from, uint32_t len, uint32_t off)
{
	for (uint32_t i = 0; i < len; i++)
		w->src[from][off + i] = (uint8_t)urdma_random_next(&w->rnd);
	urdma_embedded_write64(w->dev[!from], 0, 0x50, urdma_embedded_bus(w->h, w->dst[!from]));
	urdma_embedded_write64(w->dev[from], 0, 0x40, urdma_embedded_bus(w->h, w->src[from]) + off);
	urdma_embedded_write64(w->dev[from], 0, 0x48, len);
}

static void sampled(struct series *s, bool no_skip)
{
	struct urdma_cosim_config cfg;
	struct world w;

	urdma_cosim_config_defaults(&cfg, 2);
	cfg.no_skip = no_skip;
	world_open(&w, &cfg);
	*s = (struct series){ .c = w.c, .period = 50 };
	urdma_cosim_sample(w.c, s->period, take, s);
	for (unsigned int i = 0; i < 8; i++) {
		send_frame(&w, i % 2, 100 + 100 * i, 0);
		assert_int_equal(urdma_cosim_run_until(w.c, (i + 1) * 10000), 0);
	}
	/* This is no longer heard. */
	urdma_cosim_sample(w.c, s->period, NULL, NULL);
	send_frame(&w, 0, 100, 0);
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	world_close(&w);
}

/* Samples are the same with and without skipping, and skipped time has hardly any. */
static void samples(void **state)
{
	struct series plain, skipping;

	(void)state;
	sampled(&plain, true);
	sampled(&skipping, false);
	assert_in_range(plain.n, 8 * 10000 / 50 - 1, 8 * 10000 / 50);
	assert_in_range(skipping.n, 16, plain.n / 4);
	assert_int_equal(plain.changes, skipping.changes);
	assert_true(plain.changes >= 9);
	assert_memory_equal(plain.change, skipping.change, sizeof(plain.change));
}

static void frames(void **state)
{
	static const uint32_t sizes[] = { 1,   14,  59,	 60,   61,   63,   64,	65,
					  127, 128, 129, 1500, 4096, 4154, 9000 };
	struct urdma_cosim_config cfg;
	struct world w;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 2);
	world_open(&w, &cfg);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]) * 2; i++) {
		uint32_t len = sizes[i / 2], off = i * 7 % 64, before = w.irqs;

		send_frame(&w, i % 2, len, off);
		assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
		assert_int_equal(w.irqs, before + 1);
		assert_memory_equal(w.dst[!(i % 2)], w.src[i % 2] + off, len);
		for (uint32_t k = len; k < 60; k++)
			assert_int_equal(w.dst[!(i % 2)][k], 0); /* padded by the MAC */
	}
	assert_int_equal(urdma_embedded_stats(w.h)->faults, 0);
	world_close(&w);
}

static unsigned int actions = 300;

/* Host actions at random cycles: mostly far apart, so that much can be skipped, and sometimes close
 * together. */
static void action(void *arg)
{
	struct world *w = arg;
	uint32_t r = urdma_random_below(&w->rnd, 10);

	note(w, 1000 + r);
	if (r < 5)
		send_frame(w, r % 2, 60 + urdma_random_below(&w->rnd, 2000), r);
	else if (r < 8)
		urdma_embedded_write64(w->dev[r % 2], 0, 0x60,
				       1 + urdma_random_below(&w->rnd, 3000));
	if (++w->sends < actions)
		urdma_cosim_at(w->c,
			       urdma_cosim_now(w->c) + 1200 + urdma_random_below(&w->rnd, 20000),
			       action, w);
}

static uint64_t random_run(const struct urdma_cosim_config *cfg, struct urdma_cosim_stats *stats,
			   uint64_t *end)
{
	struct world w;
	uint64_t log, v;

	world_open(&w, cfg);
	urdma_cosim_at(w.c, 5000, action, &w);
	while (w.sends < actions)
		assert_int_equal(urdma_cosim_run_until(w.c, urdma_cosim_now(w.c) + 7777), 0);
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	for (unsigned int i = 0; i < 2; i++) {
		/* The NIC's own clock has seen the skipped cycles. */
		assert_int_equal(urdma_embedded_read64(w.dev[i], 0, 0, &v), 0);
		note(&w, v);
		for (unsigned int k = 0; k < 16384; k++)
			w.log = (w.log ^ w.dst[i][k]) * UINT64_C(0x100000001b3);
	}
	assert_true(w.irqs > actions / 3);
	*stats = *urdma_cosim_stats(w.c);
	*end = urdma_cosim_now(w.c);
	log = w.log;
	world_close(&w);
	return log;
}

static void skipping_changes_nothing(void **state)
{
	struct urdma_cosim_config cfg;

	(void)state;
	for (unsigned int variant = 0; variant < 8; variant++) {
		struct urdma_cosim_stats a, b, c, t;
		uint64_t end_a, end_b, end_c, end_t, log_a, log_b, log_c, log_t;

		urdma_cosim_config_defaults(&cfg, 2);
		cfg.pcie.reorder = variant & 1;
		cfg.pcie.stall_percent = variant & 2 ? 30 : 0;
		cfg.pcie.seed = test_seed(31 + variant);
		if (variant & 4) {
			cfg.rate_mbps = variant & 1 ? 400000 : 999;
			cfg.delay_ns = variant & 2 ? 100000 : 4;
		}
		log_a = random_run(&cfg, &a, &end_a);
		log_b = random_run(&cfg, &b, &end_b);
		cfg.threads = 2;
		log_t = random_run(&cfg, &t, &end_t);
		cfg.no_skip = true;
		log_c = random_run(&cfg, &c, &end_c);
		print_message("seed %#llx: %llu cycles, %llu evaluated with skipping\n",
			      (unsigned long long)cfg.pcie.seed, (unsigned long long)end_a,
			      (unsigned long long)a.evaluated);
		assert_true(log_a == log_b && end_a == end_b && a.evaluated == b.evaluated);
		assert_true(log_a == log_t && end_a == end_t && a.evaluated == t.evaluated);
		assert_true(log_a == log_c);
		assert_true(end_a == end_c);
		assert_true(c.skipped == 0 && c.waited == 0);
		assert_true(c.steps == end_c && c.evaluated == 2 * end_c);
		assert_true(a.steps + a.skipped == end_a);
		assert_true(a.steps * 4 < c.steps);
		/* Each of the two NICs is clocked or waits in each step; waking up takes one clock
		 * more. */
		assert_true(a.evaluated - a.wakings + a.waited == 2 * a.steps);
	}
}

/* Listening changes nothing, and events are the same with and without skipping. */
static void listeners(void **state)
{
	uint64_t end[2] = { 0 }, log[2] = { 0 }, hash = 0;

	(void)state;
	actions = 40;
	for (unsigned int variant = 0; variant < 3; variant++) {
		struct urdma_cosim_config cfg;
		struct urdma_cosim_stats stats;

		urdma_cosim_config_defaults(&cfg, 2);
		cfg.pcie.stall_percent = 30;
		cfg.pcie.reorder = 1;
		cfg.threads = variant == 1 ? 2 : 0;
		cfg.no_skip = variant == 2;
		if (!variant)
			log[0] = random_run(&cfg, &stats, &end[0]);
		listening = true;
		log[1] = random_run(&cfg, &stats, &end[1]);
		listening = false;
		assert_true(log[0] == log[1] && end[0] == end[1]);
		assert_true(ears[0].n > 400);
		assert_true(ears[0].n == ears[1].n && ears[0].hash == ears[1].hash);
		assert_true(!variant || ears[0].hash == hash);
		hash = ears[0].hash;
	}
	actions = 300;
}

static void start_to_listen(void *arg)
{
	listen(arg);
}

/* Listeners come and go; as long as there is one, the others keep hearing. */
static void coming_and_going(void **state)
{
	struct ear ear[URDMA_COSIM_MAX_LISTENERS + 1];
	struct urdma_cosim_config cfg;
	struct world w;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 2);
	world_open(&w, &cfg);
	for (unsigned int i = 0; i <= URDMA_COSIM_MAX_LISTENERS; i++) {
		ear[i] = (struct ear){ .c = w.c };
		assert_int_equal(urdma_cosim_listen(w.c, hear, &ear[i]),
				 i == URDMA_COSIM_MAX_LISTENERS ? -ENOSPC : 0);
	}
	urdma_cosim_unlisten(w.c, hear, &ear[1]);
	urdma_cosim_unlisten(w.c, hear, &w); /* not a listener */
	send_frame(&w, 0, 1000, 0);
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	assert_true(ear[0].n > 20 && ear[0].n == ear[2].n && ear[0].n == ear[3].n);
	assert_int_equal(ear[1].n, 0);
	for (unsigned int i = 0; i < URDMA_COSIM_MAX_LISTENERS; i++)
		urdma_cosim_unlisten(w.c, hear, &ear[i]);
	assert_int_equal(urdma_cosim_port(w.c, 0)->n_taps, 0);
	send_frame(&w, 1, 1000, 0);
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	assert_int_equal(ear[0].n, ear[2].n);
	/* From an event on, in the middle of activity. */
	ear[0].n = 0;
	send_frame(&w, 0, 9000, 0);
	urdma_cosim_at(w.c, urdma_cosim_now(w.c) + 500, start_to_listen, w.c);
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	assert_int_equal(ear[0].n, 0);
	assert_true(ears[0].n > 20 && ears[0].n == ears[1].n);
	world_close(&w);
}

/* A link that goes down and up at times that fall into skips and into frames. */
static void toggle(void *arg)
{
	struct world *w = arg;
	bool up = !urdma_wire_link(urdma_cosim_port(w->c, 1)->wire);

	note(w, 2000 + up);
	assert_int_equal(urdma_cosim_link(w->c, 1, up), 0);
	if (w->sends < 300)
		urdma_cosim_at(w->c, urdma_cosim_now(w->c) + (up ? 30011 : 4003), toggle, w);
}

static uint64_t link_run(const struct urdma_cosim_config *cfg, uint64_t *end)
{
	struct world w;
	uint64_t log, sent, lost;

	world_open(&w, cfg);
	urdma_cosim_at(w.c, 5000, action, &w);
	urdma_cosim_at(w.c, 9000, toggle, &w);
	while (w.sends < 300)
		if (urdma_cosim_run_until(w.c, urdma_cosim_now(w.c) + 7777))
			fail_msg("%s", urdma_cosim_error(w.c));
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	sent = urdma_cosim_port(w.c, 0)->stats.tx_frames;
	lost = urdma_cosim_port(w.c, 0)->stats.tx_unconnected +
	       urdma_cosim_port(w.c, 1)->stats.rx_lost;
	if (!cfg->n_switches) {
		assert_true(lost > 0);
		/*
		 * Each counts once: a frame whose beginning was seen has arrived, with a bad FCS.
		 */
		assert_int_equal(urdma_cosim_port(w.c, 1)->stats.rx_frames + lost, sent);
	}
	assert_int_equal(urdma_embedded_stats(w.h)->faults, 0);
	*end = urdma_cosim_now(w.c);
	log = w.log;
	world_close(&w);
	return log;
}

static void link_and_switch(void **state)
{
	(void)state;
	for (unsigned int variant = 0; variant < 2; variant++) {
		struct urdma_cosim_config cfg;
		uint64_t end_a, end_b, log_a, log_b;

		urdma_cosim_config_defaults(&cfg, 2);
		cfg.pcie.stall_percent = variant ? 0 : 30;
		cfg.delay_ns = variant ? 4 : 3000;
		if (variant) {
			cfg.n_wires = 0;
			cfg.n_switches = 1;
			cfg.sw[0].n = 2;
			cfg.sw[0].port[0] = 1;
			cfg.sw[0].port[1] = 0;
		}
		log_a = link_run(&cfg, &end_a);
		cfg.no_skip = true;
		log_b = link_run(&cfg, &end_b);
		if (log_a != log_b || end_a != end_b)
			fail_msg("variant %u: skipping changes what happens", variant);
	}
}

/* ---- settings of single NICs and wires ------------------------------------------------------- */

/* Cycles of the interrupts for frames that NIC 0 sends to NIC 1 and NIC 2 to NIC 3, begun at the
 * same time. */
struct arrivals {
	uint64_t of[4];
	uint8_t lanes[4]; /* of the link, as configuration space shows them */
};

struct watch {
	struct urdma_cosim *c;
	struct arrivals *a;
};

static void on_arrival(void *ctx, struct urdma_embedded_dev *dev, unsigned int vector)
{
	struct watch *w = ctx;

	(void)vector;
	w->a->of[urdma_embedded_nic(dev)] = urdma_cosim_now(w->c);
}

static struct arrivals arrivals(const struct urdma_cosim_config *cfg)
{
	struct urdma_embedded_dev *dev[4];
	struct urdma_embedded *h;
	struct arrivals a = { 0 };
	struct urdma_cosim *c;
	struct watch w;

	assert_int_equal(urdma_cosim_create(cfg, &model_nic, &c), 0);
	assert_int_equal(urdma_embedded_create(c, NULL, &h), 0);
	w = (struct watch){ c, &a };
	for (unsigned int i = 0; i < 4; i++) {
		uint8_t status[2];

		assert_int_equal(urdma_embedded_attach(h, i, &dev[i]), 0);
		urdma_embedded_on_irq(dev[i], on_arrival, &w);
		assert_int_equal(urdma_pcie_config_read(urdma_cosim_pcie(c, i),
							URDMA_CONFIG_CAP_PCIE + 0x12, status, 2),
				 0);
		a.lanes[i] = (uint8_t)(status[0] >> 4 | (status[1] & 3) << 4);
	}
	assert_int_equal(urdma_cosim_run_until(c, 5000), 0);
	for (unsigned int i = 0; i < 4; i += 2) {
		uint8_t *src = urdma_embedded_alloc_contig(h, 4096, 0);
		uint8_t *dst = urdma_embedded_alloc_contig(h, 4096, 0);

		/* To all ports, since the switch floods. */
		memset(src, 0xff, 4096);
		urdma_embedded_write64(dev[i + 1], 0, 0x50, urdma_embedded_bus(h, dst));
		urdma_embedded_write64(dev[i], 0, 0x50, urdma_embedded_bus(h, dst));
		urdma_embedded_write64(dev[i], 0, 0x40, urdma_embedded_bus(h, src));
		urdma_embedded_write64(dev[i], 0, 0x48, 1000);
	}
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	assert_int_equal(urdma_embedded_stats(h)->faults, 0);
	for (unsigned int i = 1; i < 4; i += 2)
		assert_true(a.of[i]);
	urdma_embedded_destroy(h);
	urdma_cosim_destroy(c);
	return a;
}

static void own_pcie(void **state)
{
	struct urdma_cosim_config cfg;
	struct urdma_pcie_config own;
	struct arrivals all, a;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 4);
	all = arrivals(&cfg);
	assert_true(all.of[1] == all.of[3]);
	/* 1000 ns more: 3/10 of them for the register write, all of them for the DMA read. */
	own = cfg.pcie;
	own.latency_ns += 1000;
	own.lanes = 4;
	cfg.nic_pcie[2] = &own;
	a = arrivals(&cfg);
	assert_int_equal(a.of[1], all.of[1]);
	assert_int_equal(a.of[3], all.of[3] + 75 + 250);
	assert_int_equal(a.lanes[1], 16);
	assert_int_equal(a.lanes[2], 4);
	/* At the receiver 3/10, for data and interrupt. */
	cfg.nic_pcie[2] = NULL;
	cfg.nic_pcie[1] = &own;
	a = arrivals(&cfg);
	assert_int_equal(a.of[1], all.of[1] + 75);
	assert_int_equal(a.of[3], all.of[3]);
	/* 1 Gb/s: half a byte a cycle. */
	own = cfg.pcie;
	own.mbps = 1000;
	a = arrivals(&cfg);
	assert_in_range(a.of[1], all.of[1] + 2000, all.of[1] + 2600);
	assert_int_equal(a.of[3], all.of[3]);
	/* It replaces the common setting, which has no effect on it. */
	own = cfg.pcie;
	for (unsigned int i = 0; i < 4; i++)
		cfg.nic_pcie[i] = &own;
	cfg.pcie.latency_ns = 9000;
	a = arrivals(&cfg);
	assert_memory_equal(&a, &all, sizeof(a));
}

/* A NIC's random numbers depend on its number, with or without a configuration of its own. */
static void own_seed(void **state)
{
	struct urdma_cosim_config cfg;
	struct urdma_cosim_stats stats;
	struct urdma_pcie_config own;
	uint64_t log, end, own_log, own_end;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 2);
	cfg.pcie.stall_percent = 30;
	log = random_run(&cfg, &stats, &end);
	own = cfg.pcie;
	cfg.nic_pcie[1] = &own;
	own_log = random_run(&cfg, &stats, &own_end);
	assert_true(log == own_log && end == own_end);
	own.seed++;
	assert_true(log != random_run(&cfg, &stats, &own_end));
}

static void own_lines(void **state)
{
	struct urdma_cosim_config cfg;
	struct arrivals all, a;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 4);
	all = arrivals(&cfg);
	cfg.line[1].delay_ns = cfg.delay_ns + 4000;
	a = arrivals(&cfg);
	assert_int_equal(a.of[1], all.of[1]);
	assert_int_equal(a.of[3], all.of[3] + 1000);
	/* 1012 bytes take 81 ns at 100 Gb/s, 810 ns at 10 Gb/s: 182 cycles more. */
	cfg.line[0].rate_mbps = 10000;
	a = arrivals(&cfg);
	assert_in_range(a.of[1], all.of[1] + 181, all.of[1] + 183);
	assert_int_equal(a.of[3], all.of[3] + 1000);
	/* The common settings still hold for NICs and wires without their own. */
	cfg.delay_ns += 400;
	a = arrivals(&cfg);
	assert_in_range(a.of[1], all.of[1] + 281, all.of[1] + 283);
	assert_int_equal(a.of[3], all.of[3] + 1000);
}

static void own_lines_of_switches(void **state)
{
	struct urdma_cosim_config cfg;
	struct arrivals all, a;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 4);
	cfg.n_wires = 0;
	cfg.n_switches = 2;
	for (unsigned int i = 0; i < 4; i++)
		cfg.sw[i / 2].port[cfg.sw[i / 2].n++] = i;
	all = arrivals(&cfg);
	assert_true(all.of[1] == all.of[3]);
	cfg.sw[0].latency_ns = cfg.switch_latency_ns + 2000;
	a = arrivals(&cfg);
	assert_int_equal(a.of[1], all.of[1] + 500);
	assert_int_equal(a.of[3], all.of[3]);
	/* The switch stores and forwards, so each of the two lines adds its own time. */
	cfg.sw[0].latency_ns = 0;
	cfg.sw[1].line[0].rate_mbps = 10000;
	cfg.sw[0].line[1].delay_ns = cfg.delay_ns + 4000;
	a = arrivals(&cfg);
	assert_int_equal(a.of[1], all.of[1] + 1000);
	assert_in_range(a.of[3], all.of[3] + 181, all.of[3] + 183);
	cfg.sw[1].line[1].rate_mbps = 10000;
	a = arrivals(&cfg);
	assert_in_range(a.of[3], all.of[3] + 363, all.of[3] + 366);
	/*
	 * A queue that is too small for the longest frame is refused, for one switch and for all.
	 */
	cfg.sw[1].queue = 1000;
	{
		struct urdma_cosim *c;

		assert_int_equal(urdma_cosim_create(&cfg, &model_nic, &c), -EINVAL);
	}
}

static unsigned int order_n;
static unsigned int order_seen[100];

static void order_event(void *arg)
{
	order_seen[order_n++] = (unsigned int)(uintptr_t)arg;
}

static void event_order(void **state)
{
	struct urdma_cosim_config cfg;
	struct urdma_cosim *c;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 1);
	assert_int_equal(urdma_cosim_create(&cfg, &model_nic, &c), 0);
	/* Cycle 1000 - i / 10: ten for each, asked for in order. */
	order_n = 0;
	for (uintptr_t i = 0; i < 100; i++)
		urdma_cosim_at(c, 1000 - i / 10, order_event, (void *)i);
	assert_int_equal(urdma_cosim_run_until(c, 990), 0);
	assert_int_equal(order_n, 0);
	assert_int_equal(urdma_cosim_run_until(c, 2000), 0);
	assert_int_equal(urdma_cosim_now(c), 2000);
	assert_int_equal(order_n, 100);
	for (unsigned int i = 0; i < 100; i++)
		assert_int_equal(order_seen[i], 90 - i / 10 * 10 + i % 10);
	urdma_cosim_destroy(c);
}

static void timers(void **state)
{
	struct urdma_cosim_config cfg;
	struct world w;
	uint64_t start;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 2);
	world_open(&w, &cfg);
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	start = urdma_cosim_now(w.c);
	urdma_embedded_write64(w.dev[0], 0, 0x60, 1000000);
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	/* Quiet, but a timer is armed. */
	assert_false(urdma_cosim_busy(w.c));
	assert_in_range(urdma_cosim_next(w.c), start + 1000000, start + 1000100);
	assert_int_equal(urdma_cosim_run_until(w.c, start + 999990), 0);
	assert_int_equal(urdma_embedded_irqs(w.dev[0], 1), 0);
	assert_int_equal(urdma_cosim_run_until(w.c, start + 1001000), 0);
	assert_int_equal(urdma_embedded_irqs(w.dev[0], 1), 1);
	assert_true(urdma_cosim_stats(w.c)->evaluated < 2000);
	world_close(&w);
}

static void tick(void *arg)
{
	(void)arg;
}

/*
 * A timer that is reported through registers, so right after a skip it seems to expire later than
 * it does. It fires in the same cycle as without skipping, wherever skips end, and although the
 * other NIC works while this one dozes.
 */
static uint64_t timer_fires(bool no_skip, uint64_t ticks, bool busy, uint64_t delay_ns)
{
	struct urdma_cosim_config cfg;
	struct world w;
	uint64_t start, log;

	urdma_cosim_config_defaults(&cfg, 2);
	cfg.no_skip = no_skip;
	cfg.delay_ns = delay_ns;
	world_open(&w, &cfg);
	assert_int_equal(urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER), 0);
	start = urdma_cosim_now(w.c);
	for (unsigned int i = 0; i < 3; i++) {
		urdma_embedded_write64(w.dev[i % 2], 0, 0x60, 20000 + i);
		for (uint64_t t = 0; ticks && t < 20000; t += ticks)
			urdma_cosim_at(w.c, start + t, tick, NULL);
		for (unsigned int k = 0; busy && k < 20; k++) {
			send_frame(&w, !(i % 2), 2000, 0);
			if (urdma_cosim_run_until(w.c, start + 900 * (k + 1)))
				fail_msg("%s", urdma_cosim_error(w.c));
		}
		start += 30000;
		if (urdma_cosim_run_until(w.c, start))
			fail_msg("%s", urdma_cosim_error(w.c));
	}
	assert_int_equal(urdma_embedded_irqs(w.dev[0], 1), 2);
	assert_int_equal(urdma_embedded_irqs(w.dev[1], 1), 1);
	log = w.log;
	world_close(&w);
	return log;
}

static void late_timers(void **state)
{
	static const uint64_t ticks[] = { 0, 1, 2, 3, 5, 6, 7, 1000, 6661 };
	static const uint64_t delay[] = { 4, 250, 30000 };

	(void)state;
	model_nic_set_fault(MODEL_NIC_STALE_TIMER);
	for (unsigned int i = 0; i < sizeof(ticks) / sizeof(ticks[0]) * 6; i++) {
		uint64_t a = timer_fires(true, ticks[i / 6], i % 2, delay[i / 2 % 3]);
		uint64_t b = timer_fires(false, ticks[i / 6], i % 2, delay[i / 2 % 3]);

		if (a != b)
			fail_msg("skipping moves a timer: tick %u, busy %u, delay %u ns",
				 (unsigned int)ticks[i / 6], i % 2, (unsigned int)delay[i / 2 % 3]);
	}
	model_nic_set_fault(MODEL_NIC_GOOD);
}

static void detects(enum model_nic_fault fault, const char *words)
{
	struct urdma_cosim_config cfg;
	struct world w;
	uint64_t v;
	int ret;

	urdma_cosim_config_defaults(&cfg, 2);
	cfg.stall_ns = 20000;
	model_nic_set_fault(fault);
	world_open(&w, &cfg);
	send_frame(&w, 0, 300, 0);
	ret = urdma_embedded_read64(w.dev[0], 0, 0, &v);
	if (!ret)
		ret = urdma_cosim_run_while_busy(w.c, URDMA_COSIM_FOREVER);
	model_nic_set_fault(MODEL_NIC_GOOD);
	assert_int_equal(ret, -EPROTO);
	assert_non_null(urdma_cosim_error(w.c));
	if (!strstr(urdma_cosim_error(w.c), words))
		fail_msg("expected \"%s\" in: %s", words, urdma_cosim_error(w.c));
	/* And this does not change. */
	assert_int_equal(urdma_cosim_run_until(w.c, URDMA_COSIM_FOREVER), -EPROTO);
	world_close(&w);
}

static void errors(void **state)
{
	(void)state;
	detects(MODEL_NIC_DEAF, "stall");
	detects(MODEL_NIC_GAP, "tvalid fell");
	detects(MODEL_NIC_BAD_TLP, "RQ: read");
}

static void nested_event(void *arg)
{
	struct world *w = arg;
	uint64_t v;

	/* A callback must not run the simulation. */
	assert_int_equal(urdma_embedded_read64(w->dev[0], 0, 0, &v), -EBUSY);
	w->sends++;
}

static void no_nesting(void **state)
{
	struct urdma_cosim_config cfg;
	struct world w;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 2);
	world_open(&w, &cfg);
	urdma_cosim_at(w.c, 100, nested_event, &w);
	assert_int_equal(urdma_cosim_run_until(w.c, 1000), 0);
	assert_int_equal(w.sends, 1);
	world_close(&w);
}

/* ---- memory of the embedded host ----------------------------------------------------------- */

static void memory(void **state)
{
	struct urdma_cosim_config cfg;
	struct urdma_embedded_config ec;
	struct urdma_cosim *c;
	struct urdma_embedded *h;
	uint8_t *p, *q;
	uint64_t pages[64];
	unsigned int neighbours = 0;
	uint64_t ones = 0, zeros = 0;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 1);
	assert_int_equal(urdma_cosim_create(&cfg, &model_nic, &c), 0);
	urdma_embedded_config_defaults(&ec);
	ec.memory = 1 << 20;
	ec.contig = 1 << 20;
	assert_int_equal(urdma_embedded_create(c, &ec, &h), 0);
	p = urdma_embedded_alloc(h, 64 * 4096);
	assert_non_null(p);
	assert_int_equal(urdma_embedded_pages(h, p + 5, 64 * 4096 - 5, pages, 64), 64);
	for (unsigned int i = 0; i < 64; i++) {
		ones |= pages[i];
		zeros |= ~pages[i];
		assert_int_equal(pages[i] % 4096, 0);
		/* An address with a wrong bit above the memory's size names nothing. */
		for (unsigned int k = 39; k < 64; k++)
			assert_null(urdma_embedded_cpu(h, pages[i] ^ UINT64_C(1) << k));
		assert_ptr_equal(urdma_embedded_cpu(h, pages[i] + 17), p + i * 4096 + 17);
		assert_true(urdma_embedded_bus(h, p + i * 4096 + 17) == pages[i] + 17);
		if (i)
			neighbours += pages[i] == pages[i - 1] + 4096;
		for (unsigned int k = 0; k < i; k++)
			assert_true(pages[k] != pages[i]);
	}
	assert_true(neighbours < 5);
	/* Bits 62:40 of an address are in use, each with both values. */
	assert_int_equal((ones & zeros) >> 40, 0x7fffff);
	assert_int_equal(ones >> 63, 0);
	assert_int_equal(urdma_embedded_pages(h, p + 4095, 2, pages, 64), 2);
	/* The rest, and no more; freed memory is not accessible, and is zeroed when it is allocated
	 * again. */
	assert_null(urdma_embedded_alloc(h, (256 - 64 + 1) * 4096));
	q = urdma_embedded_alloc(h, (256 - 64) * 4096);
	assert_non_null(q);
	memset(p, 0xff, 64 * 4096);
	urdma_embedded_free(h, p);
	assert_null(urdma_embedded_cpu(h, pages[0]));
	p = urdma_embedded_alloc(h, 4096);
	assert_non_null(p);
	for (unsigned int i = 0; i < 4096; i++)
		assert_int_equal(p[i], 0);
	/* Contiguous and aligned. */
	q = urdma_embedded_alloc_contig(h, 1, 0);
	p = urdma_embedded_alloc_contig(h, 300000, 1 << 16);
	assert_true(p && q);
	assert_int_equal(urdma_embedded_bus(h, p) % (1 << 16), 0);
	assert_true(urdma_embedded_bus(h, p + 299999) == urdma_embedded_bus(h, p) + 299999);
	for (unsigned int k = 39; k < 64; k++)
		assert_null(urdma_embedded_cpu(h, urdma_embedded_bus(h, p) ^ UINT64_C(1) << k));
	assert_null(urdma_embedded_cpu(h, 0));
	assert_null(urdma_embedded_cpu(h, UINT64_MAX));
	assert_int_equal(urdma_embedded_bus(h, &cfg), 0);
	urdma_embedded_destroy(h);
	urdma_cosim_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames),
		cmocka_unit_test(listeners),
		cmocka_unit_test(samples),
		cmocka_unit_test(coming_and_going),
		cmocka_unit_test(skipping_changes_nothing),
		cmocka_unit_test(link_and_switch),
		cmocka_unit_test(event_order),
		cmocka_unit_test(timers),
		cmocka_unit_test(late_timers),
		cmocka_unit_test(errors),
		cmocka_unit_test(no_nesting),
		cmocka_unit_test(memory),
		cmocka_unit_test(own_pcie),
		cmocka_unit_test(own_seed),
		cmocka_unit_test(own_lines),
		cmocka_unit_test(own_lines_of_switches),
	};

	return cmocka_run_group_tests_name("cosim/scheduler", tests, NULL, NULL);
}
