// SPDX-License-Identifier: Apache-2.0
// MAC ports and the wire between two of them. Timing: see wire.h.
#include "eth/wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eth/pcapng.h"

/* The MAC takes that much more than it has sent. */
#define TX_BUFFER_BYTES 512u

struct urdma_wire {
	struct urdma_eth_port *port[2];
	struct urdma_eth_queue to[2]; /* index: side of the receiver */
	uint64_t delay_cycles;
	uint64_t frames[2]; /* sent by each side */
	urdma_wire_fault_fn fault;
	void *fault_ctx;
};

static void __attribute__((format(printf, 3, 4)))
fail(struct urdma_eth_port *port, uint64_t now, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (port->failed)
		return;
	port->failed = true;
	n = snprintf(port->error, sizeof(port->error), "%s: cycle %llu: ", port->name,
		     (unsigned long long)now);
	va_start(ap, fmt);
	vsnprintf(port->error + n, sizeof(port->error) - (size_t)n, fmt, ap);
	va_end(ap);
}

const char *urdma_eth_port_error(const struct urdma_eth_port *port)
{
	return port->failed ? port->error : NULL;
}

/* ---- queues of frames ---------------------------------------------------------------------- */

static struct urdma_eth_frame *frame_get(struct urdma_eth_queue *q)
{
	struct urdma_eth_frame *f = q->free;

	if (f)
		q->free = f->next;
	else
		f = malloc(sizeof(*f));
	if (f)
		memset(f, 0, offsetof(struct urdma_eth_frame, data));
	return f;
}

static void frame_put(struct urdma_eth_queue *q, struct urdma_eth_frame *f)
{
	f->next = q->free;
	q->free = f;
}

static bool earlier(const struct urdma_rate *a, const struct urdma_rate *b)
{
	return a->cycle < b->cycle || (a->cycle == b->cycle && a->frac < b->frac);
}

/* In order of arrival; the head stays head once a beat of it was handed over. */
static void queue_insert(struct urdma_eth_queue *q, struct urdma_eth_frame *f)
{
	struct urdma_eth_frame **at = &q->head;

	if (*at && q->started)
		at = &(*at)->next;
	while (*at && !earlier(&f->begin, &(*at)->begin))
		at = &(*at)->next;
	f->next = *at;
	*at = f;
	f->queued = true;
	q->n++;
}

/*
 * A frame has gone into the queue, with the copies behind it: those that had to fall behind so many
 * follow it.
 */
static void queue_overtaken(struct urdma_eth_queue *q, const struct urdma_eth_frame *by)
{
	struct urdma_eth_frame *f, *next, **at = &q->head, *due = NULL, **end = &due;

	/* One of which a beat was handed over has been late enough. */
	if (*at && q->started)
		at = &(*at)->next;
	for (f = *at; f; f = next) {
		next = f->next;
		if (f == by || f->number >= by->number || !f->behind || --f->behind) {
			at = &f->next;
			continue;
		}
		*at = next;
		f->next = NULL;
		*end = f;
		end = &f->next;
		q->n--;
	}
	for (f = due; f; f = next) {
		next = f->next;
		f->begin = by->begin;
		queue_insert(q, f);
	}
}

static void queue_free(struct urdma_eth_queue *q)
{
	while (q->head) {
		struct urdma_eth_frame *f = q->head;

		q->head = f->next;
		frame_put(q, f);
	}
	while (q->free) {
		struct urdma_eth_frame *f = q->free;

		q->free = f->next;
		free(f);
	}
}

/* ---- wire ---------------------------------------------------------------------------------- */

void urdma_eth_port_init(struct urdma_eth_port *port, const char *name, uint64_t mbps)
{
	memset(port, 0, sizeof(*port));
	snprintf(port->name, sizeof(port->name), "%s", name);
	urdma_rate_init(&port->line, mbps);
	port->tx_buffer_cycles = (uint64_t)TX_BUFFER_BYTES * URDMA_RATE_UNITS_PER_BYTE / mbps + 1;
}

void urdma_eth_port_cleanup(struct urdma_eth_port *port)
{
	free(port->scratch);
	port->scratch = NULL;
}

int urdma_wire_create(struct urdma_eth_port *a, struct urdma_eth_port *b, uint64_t delay_cycles,
		      struct urdma_wire **wire)
{
	struct urdma_wire *w;

	if (!delay_cycles || a->wire || b->wire || a == b || a->line.mbps != b->line.mbps)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->delay_cycles = delay_cycles;
	w->port[0] = a;
	w->port[1] = b;
	for (unsigned int s = 0; s < 2; s++) {
		w->port[s]->wire = w;
		w->port[s]->side = s;
		urdma_rate_init(&w->to[s].line, a->line.mbps);
	}
	*wire = w;
	return 0;
}

void urdma_wire_destroy(struct urdma_wire *w)
{
	if (!w)
		return;
	for (unsigned int s = 0; s < 2; s++) {
		struct urdma_eth_port *port = w->port[s];

		if (port->tx && !port->tx->queued)
			frame_put(&w->to[!s], port->tx);
		port->wire = NULL;
		port->tx = NULL;
	}
	queue_free(&w->to[0]);
	queue_free(&w->to[1]);
	free(w);
}

void urdma_wire_set_fault(struct urdma_wire *w, urdma_wire_fault_fn fault, void *ctx)
{
	w->fault = fault;
	w->fault_ctx = ctx;
}

struct urdma_eth_port *urdma_wire_port(struct urdma_wire *w, unsigned int side)
{
	return w->port[side];
}

/* A whole frame goes past the fault hook and, at `end` of it, starts towards the other side. */
static void wire_forward(struct urdma_wire *w, unsigned int side, struct urdma_eth_frame *f,
			 const struct urdma_rate *end)
{
	struct urdma_eth_queue *q = &w->to[!side];
	struct urdma_wire_verdict v = { 0 };

	if (w->fault)
		w->fault(w->fault_ctx, side, f, &v);
	if (v.drop) {
		frame_put(q, f);
		return;
	}
	f->begin = *end;
	f->begin.cycle += w->delay_cycles + v.delay_cycles;
	f->behind = v.behind;
	queue_insert(q, f);
	while (v.copies--) {
		struct urdma_eth_frame *copy = frame_get(q);

		if (!copy)
			break;
		memcpy(copy, f, offsetof(struct urdma_eth_frame, data) + f->len);
		copy->behind = 0;
		copy->begin.cycle += v.copy_delay_cycles;
		queue_insert(q, copy);
	}
	if (!v.behind && !v.delay_cycles)
		queue_overtaken(q, f);
}

/* To those who watch this port. */
static void show(struct urdma_eth_port *port, uint64_t cycle, const struct urdma_eth_frame *f,
		 bool outbound)
{
	uint64_t ns = cycle * URDMA_SIM_CYCLE_NS;

	if (port->capture)
		urdma_pcapng_write(port->capture, ns, f->data, f->len, outbound, f->error);
	if (port->tap)
		port->tap(port->tap_ctx, ns, f, outbound);
}

/* ---- transmit ------------------------------------------------------------------------------ */

static void tx_begin(struct urdma_eth_port *port, uint64_t now)
{
	struct urdma_wire *w = port->wire;

	urdma_rate_start(&port->line,
			 now + 1); /* what is sampled in this cycle leaves in the next */
	if (w) {
		port->tx = frame_get(&w->to[!port->side]);
		if (!port->tx) {
			fail(port, now, "out of memory");
			return;
		}
		port->tx->begin = port->line;
		port->tx->begin.cycle += w->delay_cycles;
		if (!w->fault)
			queue_insert(&w->to[!port->side], port->tx);
	} else {
		if (!port->scratch)
			port->scratch = malloc(sizeof(*port->scratch));
		port->tx = port->scratch;
		if (!port->tx) {
			fail(port, now, "out of memory");
			return;
		}
		memset(port->tx, 0, offsetof(struct urdma_eth_frame, data));
		port->stats.tx_unconnected++;
	}
	urdma_rate_charge(&port->line, URDMA_ETH_PREAMBLE);
}

static void tx_end(struct urdma_eth_port *port, uint64_t now)
{
	struct urdma_eth_frame *f = port->tx;

	if (f->len < URDMA_ETH_MIN_FRAME) {
		memset(f->data + f->len, 0, URDMA_ETH_MIN_FRAME - f->len);
		urdma_rate_charge(&port->line, URDMA_ETH_MIN_FRAME - f->len);
		f->len = URDMA_ETH_MIN_FRAME;
		port->stats.tx_padded++;
	}
	urdma_rate_charge(&port->line, URDMA_ETH_FCS);
	f->complete = true;
	port->tx = NULL;
	port->stats.tx_frames++;
	port->stats.tx_bytes += f->len;
	port->stats.tx_errors += f->error;
	show(port, now + 1, f, true);
	if (port->wire) {
		f->sent = now + 1;
		f->number = port->wire->frames[port->side]++;
	}
	if (port->wire && !f->queued)
		wire_forward(port->wire, port->side, f, &port->line);
	urdma_rate_charge(&port->line, URDMA_ETH_GAP);
}

static void tx_beat(struct urdma_eth_port *port, uint64_t now, const struct urdma_eth_beat *b)
{
	unsigned int n = b->keep ? 64u - (unsigned int)__builtin_clzll(b->keep) : 0;

	if (!n || (n < 64 && b->keep != (UINT64_C(1) << n) - 1) || (n == 64 && ~b->keep)) {
		fail(port, now, "transmit: tkeep 0x%016llx has holes or is empty",
		     (unsigned long long)b->keep);
		return;
	}
	if (!b->last && n != 64) {
		fail(port, now,
		     "transmit: tkeep 0x%016llx is not full in a beat that is not the last",
		     (unsigned long long)b->keep);
		return;
	}
	if (!port->tx) {
		tx_begin(port, now);
		if (!port->tx)
			return;
	}
	if (port->tx->len + n > URDMA_ETH_MAX_FRAME) {
		fail(port, now, "transmit: a frame of more than %u bytes has no end",
		     URDMA_ETH_MAX_FRAME);
		return;
	}
	/* Lines faster than the interface wait for it. */
	urdma_rate_start(&port->line, now + 1);
	memcpy(port->tx->data + port->tx->len, b->data, n);
	port->tx->len += n;
	urdma_rate_charge(&port->line, n);
	if (b->last) {
		port->tx->error = b->error;
		tx_end(port, now);
	}
}

/* ---- receive ------------------------------------------------------------------------------- */

/*
 * Length of the head's next beat and the line's state after it; false when it has not got that far
 * into the wire.
 */
static bool rx_beat(const struct urdma_eth_queue *q, uint32_t *n, bool *last,
		    struct urdma_rate *line)
{
	const struct urdma_eth_frame *f = q->head;
	uint32_t left;

	if (!f)
		return false;
	left = f->len - q->taken;
	if (left < 64 && !f->complete)
		return false;
	*n = left > 64 ? 64 : left;
	*last = f->complete && left <= 64;
	*line = q->line;
	if (!q->started) {
		if (earlier(line, &f->begin)) {
			line->cycle = f->begin.cycle;
			line->frac = f->begin.frac;
		}
		urdma_rate_charge(line, URDMA_ETH_PREAMBLE);
	}
	urdma_rate_charge(line, *n + (*last ? URDMA_ETH_FCS : 0));
	return true;
}

void urdma_eth_port_drive(struct urdma_eth_port *port, uint64_t now, struct urdma_sim_in *in)
{
	struct urdma_eth_queue *q;
	struct urdma_rate line;
	uint32_t n;
	bool last;

	in->tx_ready = port->line.cycle < now + port->tx_buffer_cycles;
	in->rx.valid = 0;
	in->link_up = port->wire != NULL;
	if (!port->wire)
		return;
	q = &port->wire->to[port->side];
	if (!rx_beat(q, &n, &last, &line) || urdma_rate_end(&line) > now)
		return;
	in->rx.valid = 1;
	in->rx.last = last;
	in->rx.error = last && q->head->error;
	in->rx.keep = n == 64 ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
	memcpy(in->rx.data, q->head->data + q->taken, n);
	if (n < 64)
		memset((uint8_t *)in->rx.data + n, 0, 64 - n);
	q->started = true;
	q->line = line;
	q->taken += n;
	if (last) {
		struct urdma_eth_frame *f = q->head;

		port->stats.rx_frames++;
		port->stats.rx_bytes += f->len;
		port->stats.rx_errors += f->error;
		show(port, now, f, false);
		urdma_rate_charge(&q->line, URDMA_ETH_GAP);
		q->head = f->next;
		q->started = false;
		q->taken = 0;
		q->n--;
		frame_put(q, f);
	}
}

bool urdma_eth_port_sample(struct urdma_eth_port *port, uint64_t now, const struct urdma_sim_in *in,
			   const struct urdma_sim_out *out)
{
	if (in->rst)
		return in->rx.valid;
	if (out->tx.valid && in->tx_ready)
		tx_beat(port, now, &out->tx);
	else if (out->tx.valid)
		port->stats.tx_stalled++;
	else if (port->tx)
		fail(port, now, "transmit: tvalid fell in the middle of a frame, after %u bytes",
		     port->tx->len);
	return in->rx.valid || (out->tx.valid && in->tx_ready);
}

void urdma_eth_port_reset(struct urdma_eth_port *port, uint64_t now)
{
	if (port->tx) {
		port->tx->error = true;
		tx_end(port, now);
	}
}

uint64_t urdma_eth_port_next(const struct urdma_eth_port *port)
{
	const struct urdma_eth_queue *q;
	struct urdma_rate line;
	uint32_t n;
	bool last;

	if (port->tx)
		return 0;
	if (!port->wire)
		return UINT64_MAX;
	q = &port->wire->to[port->side];
	if (!q->head)
		return UINT64_MAX;
	if (!rx_beat(q, &n, &last, &line))
		return 0;
	return urdma_rate_end(&line);
}
