// SPDX-License-Identifier: Apache-2.0
#include "trace/held.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/fates.h"

/* The parser decides within a microsecond, unless looped-back frames go first. */
#define PARSE_NS 8000u

/* ---- names ----------------------------------------------------------------------------------- */

static uint32_t be(const uint8_t *p, unsigned int n)
{
	uint32_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

/*
 * Parses as urdma_rx_parse does. Unlike urdma_roce_parse(), this also names packets with wrong
 * lengths, because the NIC reports them by their names.
 */
static void name(struct urdma_held *h)
{
	const uint8_t *d = h->frame->data;
	uint32_t len = h->len, ip = len >= 18 && be(d + 12, 2) == 0x8100 ? 18 : 14, udp;

	h->group = d[0] & 1;
	if (len < ip + 40)
		return;
	if (be(d + ip - 2, 2) == 0x0800 && d[ip] == 0x45 && d[ip + 9] == 17)
		udp = ip + 20;
	else if (be(d + ip - 2, 2) == 0x86dd && d[ip] >> 4 == 6 && d[ip + 6] == 17)
		udp = ip + 40;
	else
		return;
	h->packet = len >= udp + 4 && be(d + udp + 2, 2) == 4791;
	h->named = h->packet && len >= udp + 20;
	if (!h->named)
		return;
	h->opcode = d[udp + 8];
	h->qpn = be(d + udp + 13, 3);
	h->psn = be(d + udp + 17, 3);
}

/* ---- decisions ------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3))) add(struct urdma_held *h, const char *fmt, ...)
{
	char *note = h->frame->note;
	size_t n = strlen(note);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(note + n, sizeof(h->frame->note) - n, fmt, ap);
	va_end(ap);
}

/* Appends to the note of a wire's fault. */
static void comment(struct urdma_held *h)
{
	for (unsigned int i = 0; i < h->reasons && h->frame; i++) {
		const struct urdma_held_reason *r = &h->reason[i];

		add(h, "%s", *h->frame->note ? "; " : "");
		if (!h->members)
			add(h, "dropped: %s", r->why);
		else if (!i)
			add(h, "dropped for %u of %u members: %s", r->members, h->members, r->why);
		else
			add(h, "for %u: %s", r->members, r->why);
		if (r->counter)
			add(h, " (%s)", r->counter);
	}
}

static void wait_for(struct urdma_holder *f, struct urdma_held *h, enum urdma_held_stage stage)
{
	h->stage = stage;
	h->wait = f->waiting_end;
	*f->waiting_end = h;
	f->waiting_end = &h->wait_next;
}

static void known(struct urdma_holder *f, struct urdma_held *h)
{
	if (h->stage == URDMA_HELD_KNOWN)
		return;
	comment(h);
	h->stage = URDMA_HELD_KNOWN;
	*h->wait = h->wait_next;
	if (h->wait_next)
		h->wait_next->wait = h->wait;
	else
		f->waiting_end = h->wait;
}

void urdma_held_taken(struct urdma_holder *f, struct urdma_held *h)
{
	if (!h->more)
		known(f, h);
}

void urdma_held_dropped(struct urdma_holder *f, struct urdma_held *h, const char *why,
			const char *counter)
{
	unsigned int i = 0;

	while (i < h->reasons && h->reason[i].why != why)
		i++;
	if (i < URDMA_HELD_REASONS) {
		h->reasons += i == h->reasons;
		h->reason[i].why = why;
		h->reason[i].counter = counter;
		h->reason[i].members++;
	}
	urdma_held_taken(f, h);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void append(struct urdma_holder *f, struct urdma_held *h)
{
	*f->end = h;
	f->end = &h->next;
	f->bytes += h->frame ? h->len : 0;
}

static void release_first(struct urdma_holder *f)
{
	struct urdma_held *h = f->first;

	f->unknown += h->stage != URDMA_HELD_KNOWN && h->frame;
	known(f, h);
	f->first = h->next;
	if (!f->first)
		f->end = &f->first;
	f->bytes -= h->frame ? h->len : 0;
	if (h->frame)
		urdma_eth_port_record(f->port, h->ns, h->frame, h->outbound);
	free(h);
}

static bool may_go(const struct urdma_holder *f, uint64_t ns)
{
	const struct urdma_held *h = f->first;

	return h->stage == URDMA_HELD_KNOWN || f->bytes > URDMA_FATES_HOLD_BYTES ||
	       ns - h->ns > (h->stage == URDMA_HELD_PARSE ? PARSE_NS : URDMA_FATES_HOLD_NS);
}

void urdma_held_release(struct urdma_holder *f, uint64_t ns)
{
	while (f->first && may_go(f, ns))
		release_first(f);
}

void urdma_held_release_all(struct urdma_holder *f)
{
	while (f->first)
		release_first(f);
}

static void hold(void *ctx, uint64_t ns, const struct urdma_eth_frame *frame, bool outbound)
{
	/* The frame after the entry has its own alignment. */
	const size_t at = (sizeof(struct urdma_held) + _Alignof(max_align_t) - 1) &
			  ~(_Alignof(max_align_t) - 1);
	size_t size = offsetof(struct urdma_eth_frame, data) + frame->len;
	struct urdma_holder *f = ctx;
	struct urdma_held *h;

	urdma_held_release(f, ns);
	h = outbound && !f->first ? NULL : calloc(1, at + size);
	if (!h) {
		/*
		 * It need not wait; or there is no memory, and it loses its fate but not its
		 * position.
		 */
		urdma_held_release_all(f);
		f->unknown += !outbound;
		urdma_eth_port_record(f->port, ns, frame, outbound);
		return;
	}
	h->frame = (struct urdma_eth_frame *)(void *)((uint8_t *)h + at);
	memcpy(h->frame, frame, size);
	h->ns = ns;
	h->outbound = outbound;
	h->len = frame->len;
	h->error = frame->error;
	append(f, h);
	if (outbound)
		return;
	name(h);
	wait_for(f, h, URDMA_HELD_PARSE);
}

struct urdma_held *urdma_held_home(struct urdma_holder *f, uint64_t ns, enum urdma_held_stage stage)
{
	struct urdma_held *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->ns = ns;
	append(f, h);
	wait_for(f, h, stage);
	return h;
}

void urdma_holder_open(struct urdma_holder *f, struct urdma_eth_port *port)
{
	*f = (struct urdma_holder){ .port = port };
	f->end = &f->first;
	f->waiting_end = &f->waiting;
	port->hold = (struct urdma_eth_tap){ hold, f };
}

void urdma_holder_close(struct urdma_holder *f)
{
	urdma_held_release_all(f);
	f->port->hold = (struct urdma_eth_tap){ NULL, NULL };
}

/* ---- the first that waits for such an event -------------------------------------------------- */

struct urdma_held *urdma_held_named(const struct urdma_holder *f, enum urdma_held_stage stage,
				    uint64_t qpn, uint32_t qpn_mask, uint64_t psn, int opcode)
{
	for (struct urdma_held *h = f->waiting; h; h = h->wait_next)
		if (h->stage == stage && h->named && !h->error && (h->qpn & qpn_mask) == qpn &&
		    h->psn == psn && (opcode < 0 || h->opcode == opcode))
			return h;
	return NULL;
}

struct urdma_held *urdma_held_sized(const struct urdma_holder *f, enum urdma_held_stage stage,
				    uint64_t len)
{
	struct urdma_held *other = NULL;

	for (struct urdma_held *h = f->waiting; h; h = h->wait_next) {
		if (h->stage != stage || h->error || h->len != len)
			continue;
		if (!h->packet)
			return h;
		if (!other)
			other = h;
	}
	return other;
}

struct urdma_held *urdma_held_damaged(const struct urdma_holder *f)
{
	for (struct urdma_held *h = f->waiting; h; h = h->wait_next)
		if (h->stage == URDMA_HELD_PARSE && h->error)
			return h;
	return NULL;
}

struct urdma_held *urdma_held_cut_short(const struct urdma_holder *f)
{
	for (struct urdma_held *h = f->waiting; h; h = h->wait_next)
		if (h->stage == URDMA_HELD_PARSE && !h->error && h->packet && !h->named)
			return h;
	return NULL;
}
