// SPDX-License-Identifier: Apache-2.0
// See switch.h.
#include "eth/switch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The address table has SETS sets of WAYS ways; in a full set the least recently used is replaced.
 */
#define SETS 1024u
#define WAYS 4u

struct entry {
	uint64_t mac; /* 0: free */
	uint64_t seen;
	unsigned int port;
};

struct urdma_switch {
	char name[20];
	unsigned int n;
	uint64_t latency, age;
	struct urdma_eth_port port[URDMA_SWITCH_MAX_PORTS];
	struct entry table[SETS][WAYS];
	struct urdma_switch_stats stats;
};

static uint64_t address(const uint8_t *p)
{
	uint64_t mac = 0;

	for (unsigned int i = 0; i < 6; i++)
		mac = mac << 8 | p[i];
	return mac;
}

static struct entry *set_of(struct urdma_switch *sw, uint64_t mac)
{
	return sw->table[(mac * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (SETS - 1)];
}

/* The entry of an address that has not aged out, or NULL. */
static struct entry *find(struct urdma_switch *sw, uint64_t mac, uint64_t now)
{
	struct entry *set = set_of(sw, mac);

	for (unsigned int i = 0; i < WAYS; i++) {
		if (set[i].mac != mac || !mac)
			continue;
		if (now - set[i].seen <= sw->age)
			return &set[i];
		sw->stats.aged++;
		set[i].mac = 0;
	}
	return NULL;
}

static void learn(struct urdma_switch *sw, uint64_t mac, unsigned int port, uint64_t now)
{
	struct entry *e = find(sw, mac, now), *set;

	if (!mac)
		return;
	if (e) {
		sw->stats.moved += e->port != port;
	} else {
		set = set_of(sw, mac);
		e = &set[0];
		for (unsigned int i = 1; i < WAYS && e->mac; i++)
			if (!set[i].mac || set[i].seen < e->seen)
				e = &set[i];
		sw->stats.evicted += e->mac != 0;
		sw->stats.learned++;
		e->mac = mac;
	}
	e->port = port;
	e->seen = now;
}

static void send(struct urdma_switch *sw, unsigned int port, uint64_t now,
		 const struct urdma_eth_frame *f)
{
	if (urdma_eth_port_send(&sw->port[port], now + sw->latency, f->data, f->len, false))
		sw->stats.tail_drops++;
}

static void deliver(void *ctx, struct urdma_eth_port *port, uint64_t now,
		    const struct urdma_eth_frame *f)
{
	struct urdma_switch *sw = ctx;
	unsigned int from = (unsigned int)(port - sw->port);
	uint64_t to = address(f->data), source = address(f->data + 6);
	struct entry *e = NULL;

	if (f->error) {
		sw->stats.bad_fcs++;
		return;
	}
	sw->stats.frames++;
	sw->stats.bytes += f->len;
	if (!(source >> 40 & 1))
		learn(sw, source, from, now);
	if (to >> 4 == UINT64_C(0x0180c200000)) {
		sw->stats.reserved++;
		return;
	}
	if (to >> 40 & 1) {
		sw->stats.group++;
	} else {
		e = find(sw, to, now);
		if (!e)
			sw->stats.unknown++;
	}
	if (e && e->port == from) {
		sw->stats.filtered++;
	} else if (e) {
		sw->stats.forwarded++;
		send(sw, e->port, now, f);
	} else {
		for (unsigned int i = 0; i < sw->n; i++)
			if (i != from)
				send(sw, i, now, f);
	}
}

static const struct urdma_eth_frame_ops ops = { .deliver = deliver };

int urdma_switch_create(const struct urdma_switch_config *config, struct urdma_switch **sw)
{
	struct urdma_switch *s;

	if (!config->n_ports || config->n_ports > URDMA_SWITCH_MAX_PORTS ||
	    !config->latency_cycles || config->queue_bytes < URDMA_ETH_MAX_FRAME)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	snprintf(s->name, sizeof(s->name), "%s", config->name);
	s->n = config->n_ports;
	s->latency = config->latency_cycles;
	s->age = config->age_cycles;
	for (unsigned int i = 0; i < s->n; i++) {
		char name[sizeof(s->port[i].name)];

		snprintf(name, sizeof(name), "%s.%u", s->name, i);
		urdma_eth_port_init(&s->port[i], name, config->rate_mbps);
		urdma_eth_port_set_frames(&s->port[i], config->queue_bytes, &ops, s);
	}
	*sw = s;
	return 0;
}

void urdma_switch_destroy(struct urdma_switch *sw)
{
	if (!sw)
		return;
	for (unsigned int i = 0; i < sw->n; i++)
		urdma_eth_port_cleanup(&sw->port[i]);
	free(sw);
}

const char *urdma_switch_name(const struct urdma_switch *sw)
{
	return sw->name;
}

unsigned int urdma_switch_ports(const struct urdma_switch *sw)
{
	return sw->n;
}

struct urdma_eth_port *urdma_switch_port(struct urdma_switch *sw, unsigned int port)
{
	return &sw->port[port];
}

void urdma_switch_forget(struct urdma_switch *sw, unsigned int port)
{
	for (unsigned int i = 0; i < SETS; i++)
		for (unsigned int k = 0; k < WAYS; k++)
			if (sw->table[i][k].port == port)
				sw->table[i][k].mac = 0;
}

const struct urdma_switch_stats *urdma_switch_stats(const struct urdma_switch *sw)
{
	return &sw->stats;
}

bool urdma_switch_advance(struct urdma_switch *sw, uint64_t now)
{
	bool moved = false;

	for (unsigned int i = 0; i < sw->n; i++)
		moved |= urdma_eth_port_advance(&sw->port[i], now);
	return moved;
}

uint64_t urdma_switch_next(const struct urdma_switch *sw)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < sw->n; i++) {
		uint64_t t = urdma_eth_port_next(&sw->port[i]);

		if (t < next)
			next = t;
	}
	return next;
}

const char *urdma_switch_error(const struct urdma_switch *sw)
{
	for (unsigned int i = 0; i < sw->n; i++)
		if (urdma_eth_port_error(&sw->port[i]))
			return urdma_eth_port_error(&sw->port[i]);
	return NULL;
}
