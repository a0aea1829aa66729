// SPDX-License-Identifier: Apache-2.0
// Ports and the wire between two of them. Timing: see wire.h.
#include "eth/wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eth/pcapng.h"

/* The MAC accepts this much more than it has sent. */
#define TX_BUFFER_BYTES 512u

struct urdma_wire {
	struct urdma_eth_port *port[2];
	struct urdma_eth_queue to[2]; /* index: side of the receiver */
	uint64_t delay_cycles;
	uint64_t frames[2]; /* sent by each side */
	urdma_wire_fault_fn fault;
	void *fault_ctx;
	struct urdma_eth_frame sent; /* a frame before the faults, for the sender's capture */
	bool down;
};

struct urdma_eth_waiting {
	struct urdma_eth_waiting *next;
	uint64_t ready;
	uint32_t len;
	bool error;
	uint8_t data[];
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

/* In order of arrival; the head stays first once one of its beats has been passed on. */
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
 * A frame and its copies have entered the queue: a frame that waited for enough overtaking frames
 * now follows them.
 */
static void queue_overtaken(struct urdma_eth_queue *q, const struct urdma_eth_frame *by)
{
	struct urdma_eth_frame *f, *next, **at = &q->head, *due = NULL, **end = &due;

	/* If one of its beats has been passed on, it has waited long enough. */
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
	urdma_eth_port_set_rate(port, mbps);
}

void urdma_eth_port_set_rate(struct urdma_eth_port *port, uint64_t mbps)
{
	urdma_rate_init(&port->line, mbps);
	port->tx_buffer_cycles = (uint64_t)TX_BUFFER_BYTES * URDMA_RATE_UNITS_PER_BYTE / mbps + 1;
}

void urdma_eth_port_cleanup(struct urdma_eth_port *port)
{
	while (port->out) {
		struct urdma_eth_waiting *o = port->out;

		port->out = o->next;
		free(o);
	}
	free(port->scratch);
	port->scratch = NULL;
}

int urdma_eth_port_tap(struct urdma_eth_port *port, urdma_eth_tap_fn fn, void *ctx)
{
	if (port->n_taps == URDMA_ETH_MAX_TAPS)
		return -ENOSPC;
	port->tap[port->n_taps++] = (struct urdma_eth_tap){ fn, ctx };
	return 0;
}

void urdma_eth_port_untap(struct urdma_eth_port *port, urdma_eth_tap_fn fn, void *ctx)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < port->n_taps; i++)
		if (port->tap[i].fn != fn || port->tap[i].ctx != ctx)
			port->tap[n++] = port->tap[i];
	port->n_taps = n;
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
		w->port[s]->link_shown = true;
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

		if (port->tx && !port->tx->queued && port->tx != port->scratch)
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

static bool have_scratch(struct urdma_eth_port *port)
{
	if (!port->scratch)
		port->scratch = malloc(sizeof(*port->scratch));
	return port->scratch;
}

/*
 * The frame that this side is sending is lost. True if its start is in the queue. seen: the
 * receiver is about to get it as damaged and counts it.
 */
static bool detach_sender(struct urdma_wire *w, unsigned int side, bool seen)
{
	struct urdma_eth_port *port = w->port[side];
	struct urdma_eth_frame *f = port->tx;

	if (!f || f == port->scratch)
		return false;
	memcpy(port->scratch, f, offsetof(struct urdma_eth_frame, data) + f->len);
	port->scratch->next = NULL;
	port->scratch->queued = seen;
	port->tx = port->scratch;
	if (f->queued)
		return true;
	frame_put(&w->to[!side], f);
	return false;
}

/* Drops everything in flight to this side. */
static void cut(struct urdma_wire *w, unsigned int side)
{
	struct urdma_eth_queue *q = &w->to[side];
	struct urdma_eth_frame *f, *next;

	f = q->head;
	q->head = NULL;
	if (q->started) {
		/* The receiver has seen the start of this frame. Its next beat is the last. */
		q->head = f;
		next = f->next;
		f->next = NULL;
		if (f->len == q->taken)
			f->data[f->len++] = 0;
		if (f->len > q->taken + 64)
			f->len = q->taken + 64;
		f->complete = true;
		f->error = true;
		f = next;
	}
	for (; f; f = next) {
		next = f->next;
		frame_put(q, f);
	}
	q->n = q->head != NULL;
}

int urdma_wire_set_link(struct urdma_wire *w, bool up)
{
	if (w->down == !up)
		return 0;
	if (!up) {
		if (!have_scratch(w->port[0]) || !have_scratch(w->port[1]))
			return -ENOMEM;
		for (unsigned int s = 0; s < 2; s++) {
			struct urdma_eth_queue *q = &w->to[!s];
			bool sending = q->head && q->head == w->port[s]->tx;

			/*
			 * Count each frame once: a frame still being sent is counted by its sender,
			 * a frame whose start was seen is counted as received, with an error.
			 */
			w->port[!s]->stats.rx_lost += q->n - (q->started && !sending);
			w->port[!s]->stats.rx_lost -= detach_sender(w, s, q->started && sending);
			cut(w, !s);
		}
	}
	w->down = !up;
	return 0;
}

bool urdma_wire_link(const struct urdma_wire *w)
{
	return w && !w->down;
}

/* Applies the faults to a whole frame. Returns the frame as sent. */
static const struct urdma_eth_frame *wire_decide(struct urdma_wire *w, unsigned int side,
						 struct urdma_eth_frame *f,
						 struct urdma_wire_verdict *v)
{
	if (!w->fault)
		return f;
	memcpy(&w->sent, f, offsetof(struct urdma_eth_frame, data) + f->len);
	w->fault(w->fault_ctx, side, f, v);
	memcpy(w->sent.note, f->note, sizeof(f->note));
	return &w->sent;
}

/* At its time `end`, a whole frame starts towards the other side. */
static void wire_forward(struct urdma_wire *w, unsigned int side, struct urdma_eth_frame *f,
			 const struct urdma_rate *end, struct urdma_wire_verdict v)
{
	struct urdma_eth_queue *q = &w->to[!side];

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
		snprintf(copy->note, sizeof(copy->note), "a copy: %.*s",
			 (int)sizeof(copy->note) - 16, f->note);
		copy->begin.cycle += v.copy_delay_cycles;
		queue_insert(q, copy);
	}
	if (!v.behind && !v.delay_cycles)
		queue_overtaken(q, f);
}

void urdma_eth_port_record(struct urdma_eth_port *port, uint64_t ns,
			   const struct urdma_eth_frame *f, bool outbound)
{
	if (port->capture)
		urdma_pcapng_write(port->capture, ns, f->data, f->len, outbound, f->error, f->note);
	if (port->live.fn)
		port->live.fn(port->live.ctx, ns, f, outbound);
}

/* Passes a frame to the taps of this port. */
static void show(struct urdma_eth_port *port, uint64_t cycle, const struct urdma_eth_frame *f,
		 bool outbound)
{
	uint64_t ns = cycle * URDMA_SIM_CYCLE_NS;

	port->shown++;
	if (port->hold.fn)
		port->hold.fn(port->hold.ctx, ns, f, outbound);
	else
		urdma_eth_port_record(port, ns, f, outbound);
	for (unsigned int i = 0; i < port->n_taps; i++)
		port->tap[i].fn(port->tap[i].ctx, ns, f, outbound);
}

/* ---- transmit ------------------------------------------------------------------------------ */

/* Starts a frame that begins to leave in cycle at. */
static void tx_begin(struct urdma_eth_port *port, uint64_t at)
{
	struct urdma_wire *w = port->wire;

	urdma_rate_start(&port->line, at);
	if (w && !w->down) {
		port->tx = frame_get(&w->to[!port->side]);
		if (!port->tx) {
			fail(port, at, "out of memory");
			return;
		}
		port->tx->begin = port->line;
		port->tx->begin.cycle += w->delay_cycles;
		if (!w->fault)
			queue_insert(&w->to[!port->side], port->tx);
	} else {
		if (!have_scratch(port)) {
			fail(port, at, "out of memory");
			return;
		}
		port->tx = port->scratch;
		memset(port->tx, 0, offsetof(struct urdma_eth_frame, data));
	}
	urdma_rate_charge(&port->line, URDMA_ETH_PREAMBLE);
}

static void tx_pad(struct urdma_eth_port *port)
{
	struct urdma_eth_frame *f = port->tx;

	if (f->len >= URDMA_ETH_MIN_FRAME)
		return;
	memset(f->data + f->len, 0, URDMA_ETH_MIN_FRAME - f->len);
	urdma_rate_charge(&port->line, URDMA_ETH_MIN_FRAME - f->len);
	f->len = URDMA_ETH_MIN_FRAME;
	port->stats.tx_padded++;
}

/* The frame is complete; its end leaves in cycle end. */
static void tx_end(struct urdma_eth_port *port, uint64_t end)
{
	struct urdma_eth_frame *f = port->tx;
	struct urdma_wire_verdict verdict = { 0 };
	const struct urdma_eth_frame *sent = f;
	bool forward;

	tx_pad(port);
	urdma_rate_charge(&port->line, URDMA_ETH_FCS);
	f->complete = true;
	port->tx = NULL;
	port->stats.tx_frames++;
	port->stats.tx_bytes += f->len;
	port->stats.tx_errors += f->error;
	if (port->wire) {
		f->sent = end;
		f->number = port->wire->frames[port->side]++;
	}
	forward = f != port->scratch && !f->queued;
	if (forward)
		sent = wire_decide(port->wire, port->side, f, &verdict);
	show(port, end, sent, true);
	if (f == port->scratch)
		port->stats.tx_unconnected += !f->queued;
	if (forward)
		wire_forward(port->wire, port->side, f, &port->line, verdict);
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
		tx_begin(port, now + 1); /* a beat sampled in this cycle leaves in the next */
		if (!port->tx)
			return;
	}
	if (port->tx->len + n > URDMA_ETH_MAX_FRAME) {
		fail(port, now, "transmit: a frame of more than %u bytes has no end",
		     URDMA_ETH_MAX_FRAME);
		return;
	}
	/* A line faster than the interface waits for it. */
	urdma_rate_start(&port->line, now + 1);
	memcpy(port->tx->data + port->tx->len, b->data, n);
	port->tx->len += n;
	urdma_rate_charge(&port->line, n);
	if (b->last) {
		port->tx->error = b->error;
		tx_end(port, now + 1);
	}
}

/* ---- receive ------------------------------------------------------------------------------- */

/*
 * Length of the head's next beat and the line's state after it; false if that beat is not yet on
 * the wire.
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

/* Removes the head. Its line is charged up to the end of the FCS, and is free after the gap. */
static struct urdma_eth_frame *rx_take(struct urdma_eth_queue *q)
{
	struct urdma_eth_frame *f = q->head;

	urdma_rate_charge(&q->line, URDMA_ETH_GAP);
	q->head = f->next;
	q->started = false;
	q->taken = 0;
	q->n--;
	return f;
}

/* The last bit of the head of the queue has arrived. */
static struct urdma_eth_frame *rx_end(struct urdma_eth_port *port, struct urdma_eth_queue *q,
				      uint64_t now)
{
	struct urdma_eth_frame *f = rx_take(q);

	port->stats.rx_frames++;
	port->stats.rx_bytes += f->len;
	port->stats.rx_errors += f->error;
	show(port, now, f, false);
	return f;
}

/* The line's state after the FCS of the head, if it is known. */
static bool rx_whole(const struct urdma_eth_queue *q, struct urdma_rate *line)
{
	const struct urdma_eth_frame *f = q->head;

	if (!f || !f->complete)
		return false;
	*line = q->line;
	if (earlier(line, &f->begin)) {
		line->cycle = f->begin.cycle;
		line->frac = f->begin.frac;
	}
	urdma_rate_charge(line, URDMA_ETH_PREAMBLE + f->len + URDMA_ETH_FCS);
	return true;
}

/*
 * Drops frames that found no room in the FIFO. The NIC takes one beat per cycle. So if a frame's
 * turn comes n cycles after the arrival of its first beat, n beats were ahead of it. A frame that
 * is still being sent comes from a NIC, which is not faster than the receiver.
 */
static void rx_overrun(struct urdma_eth_port *port, struct urdma_eth_queue *q, uint64_t now)
{
	struct urdma_rate first, end;
	uint32_t n;
	bool last;

	while (!q->started && rx_whole(q, &end) && rx_beat(q, &n, &last, &first)) {
		uint64_t here = urdma_rate_end(&first);

		if (here >= now || now - here + (q->head->len + 63) / 64 <= URDMA_ETH_RX_FIFO)
			break;
		q->line = end;
		frame_put(q, rx_take(q));
		port->stats.rx_overrun++;
	}
}

void urdma_eth_port_drive(struct urdma_eth_port *port, uint64_t now, struct urdma_sim_in *in)
{
	struct urdma_eth_queue *q;
	struct urdma_rate line;
	uint32_t n;
	bool last;

	in->tx_ready = port->line.cycle < now + port->tx_buffer_cycles;
	in->rx.valid = 0;
	in->link_up = urdma_wire_link(port->wire);
	port->link_shown = in->link_up;
	if (!port->wire)
		return;
	q = &port->wire->to[port->side];
	rx_overrun(port, q, now);
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
	if (last)
		frame_put(q, rx_end(port, q, now));
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
		tx_end(port, now + 1);
	}
}

bool urdma_eth_port_sending(const struct urdma_eth_port *port)
{
	return port->tx;
}

bool urdma_eth_port_receiving(const struct urdma_eth_port *port)
{
	return port->wire && port->wire->to[port->side].started;
}

/* ---- ports of whole frames ------------------------------------------------------------------- */

void urdma_eth_port_set_frames(struct urdma_eth_port *port, size_t limit,
			       const struct urdma_eth_frame_ops *ops, void *ctx)
{
	port->ops = ops;
	port->ops_ctx = ctx;
	port->out_limit = limit;
	port->out_end = &port->out;
}

int urdma_eth_port_send(struct urdma_eth_port *port, uint64_t ready, const void *data, size_t len,
			bool error)
{
	struct urdma_eth_waiting *o;

	if (!len || len > URDMA_ETH_MAX_FRAME)
		return -EINVAL;
	if (port->out_bytes + len > port->out_limit) {
		port->stats.tx_dropped++;
		return -ENOBUFS;
	}
	o = malloc(sizeof(*o) + len);
	if (!o)
		return -ENOMEM;
	o->next = NULL;
	o->ready = ready;
	o->len = (uint32_t)len;
	o->error = error;
	memcpy(o->data, data, len);
	*port->out_end = o;
	port->out_end = &o->next;
	port->out_bytes += len;
	if (port->out_bytes > port->stats.tx_queue_max)
		port->stats.tx_queue_max = port->out_bytes;
	return 0;
}

/*
 * Puts the first waiting frame onto the wire as a whole: the receiver's line decides when its parts
 * arrive. It begins right after the gap of the frame before, if it was ready by then, which may be
 * within the cycle that just ended.
 */
static void frame_begin(struct urdma_eth_port *port)
{
	struct urdma_eth_waiting *o = port->out;

	tx_begin(port, o->ready);
	if (!port->tx)
		return;
	memcpy(port->tx->data, o->data, o->len);
	port->tx->len = o->len;
	port->tx->error = o->error;
	port->tx->complete = true;
	urdma_rate_charge(&port->line, o->len);
	tx_pad(port);
	port->tx_done = port->line;
	urdma_rate_charge(&port->tx_done, URDMA_ETH_FCS);
	port->out = o->next;
	if (!port->out)
		port->out_end = &port->out;
	port->out_bytes -= o->len;
	free(o);
}

bool urdma_eth_port_advance(struct urdma_eth_port *port, uint64_t now)
{
	struct urdma_rate line;
	bool moved = false;

	if (port->wire) {
		struct urdma_eth_queue *q = &port->wire->to[port->side];

		while (rx_whole(q, &line) && urdma_rate_end(&line) <= now) {
			struct urdma_eth_frame *f;

			q->line = line;
			f = rx_end(port, q, now);
			port->ops->deliver(port->ops_ctx, port, now, f);
			frame_put(q, f);
			moved = true;
		}
	}
	while (!port->failed) {
		if (port->tx) {
			if (urdma_rate_end(&port->tx_done) > now)
				break;
			tx_end(port, urdma_rate_end(&port->tx_done));
		} else {
			if (!port->out || port->out->ready > now || port->line.cycle > now)
				break;
			frame_begin(port);
		}
		moved = true;
	}
	return moved;
}

static uint64_t frames_next(const struct urdma_eth_port *port)
{
	uint64_t next = UINT64_MAX, t;
	struct urdma_rate line;

	if (port->tx)
		next = urdma_rate_end(&port->tx_done);
	else if (port->out)
		next = port->out->ready > port->line.cycle ? port->out->ready : port->line.cycle;
	/*
	 * The end of a frame that a NIC is still sending is not known; the NIC is busy until then.
	 */
	if (port->wire && rx_whole(&port->wire->to[port->side], &line)) {
		t = urdma_rate_end(&line);
		if (t < next)
			next = t;
	}
	return next;
}

uint64_t urdma_eth_port_next(const struct urdma_eth_port *port)
{
	const struct urdma_eth_queue *q;
	struct urdma_rate line;
	uint32_t n;
	bool last;

	if (port->ops)
		return frames_next(port);
	if (port->tx)
		return 0;
	if (!port->wire)
		return UINT64_MAX;
	if (port->link_shown == port->wire->down)
		return 0;
	q = &port->wire->to[port->side];
	if (!q->head)
		return UINT64_MAX;
	if (!rx_beat(q, &n, &last, &line))
		return 0;
	return urdma_rate_end(&line);
}
