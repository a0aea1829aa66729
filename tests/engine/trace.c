// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "icrc.h"
#include "trace.h"

/* BTH opcodes, table 38 of the InfiniBand Architecture Specification, volume 1 */
enum {
	OP_SEND_LAST_IMM = 0x03,
	OP_SEND_ONLY_IMM = 0x05,
	OP_WRITE_FIRST = 0x06,
	OP_WRITE_LAST_IMM = 0x09,
	OP_WRITE_ONLY = 0x0a,
	OP_WRITE_ONLY_IMM = 0x0b,
	OP_READ_REQUEST = 0x0c,
	OP_READ_FIRST = 0x0d,
	OP_READ_MIDDLE = 0x0e,
	OP_READ_ONLY = 0x10,
	OP_ACK = 0x11,
	OP_ATOMIC_ACK = 0x12,
	OP_COMPARE_SWAP = 0x13,
	OP_FETCH_ADD = 0x14,
	OP_SEND_LAST_INV = 0x16,
	OP_SEND_ONLY_INV = 0x17,
	OP_FLUSH = 0x1c,
	OP_ATOMIC_WRITE = 0x1d,
};

static bool has_reth(uint8_t op)
{
	return op == OP_WRITE_FIRST || op == OP_WRITE_ONLY || op == OP_WRITE_ONLY_IMM ||
	       op == OP_READ_REQUEST || op == OP_FLUSH || op == OP_ATOMIC_WRITE;
}

static bool is_atomic(uint8_t op)
{
	return op == OP_COMPARE_SWAP || op == OP_FETCH_ADD;
}

static bool has_aeth(uint8_t op)
{
	return op >= OP_READ_FIRST && op <= OP_ATOMIC_ACK && op != OP_READ_MIDDLE;
}

static bool has_imm(uint8_t op)
{
	return op == OP_SEND_LAST_IMM || op == OP_SEND_ONLY_IMM || op == OP_WRITE_LAST_IMM ||
	       op == OP_WRITE_ONLY_IMM || op == OP_SEND_LAST_INV || op == OP_SEND_ONLY_INV;
}

/* Returns false if the headers do not fit into the frame. */
static bool decode(struct trace_packet *p, const uint8_t *frame, const struct roce_frame *roce)
{
	const uint8_t *bth = frame + roce->bth, *at = bth + 12, *end = frame + roce->end - 4;
	ptrdiff_t need;

	p->opcode = bth[0];
	p->qpn = roce_be(bth + 5, 3);
	p->ack_req = bth[8] >> 7;
	p->psn = roce_be(bth + 9, 3);
	if (p->opcode == OP_FLUSH)
		at += 4; /* FETH */
	need = 16 * has_reth(p->opcode) + 28 * is_atomic(p->opcode) + 4 * has_aeth(p->opcode) +
	       8 * (p->opcode == OP_ATOMIC_ACK) + 4 * has_imm(p->opcode) + (ptrdiff_t)roce->pad;
	if (end - at < need)
		return false;
	p->len = (uint32_t)(end - at - need);
	if (has_reth(p->opcode) || is_atomic(p->opcode)) {
		p->va = roce_be64(at);
		p->rkey = roce_be(at + 8, 4);
	}
	if (has_reth(p->opcode))
		p->dma_len = roce_be(at + 12, 4);
	if (has_aeth(p->opcode)) {
		p->syndrome = at[0];
		p->msn = roce_be(at + 1, 3);
	}
	if (p->opcode == OP_ATOMIC_ACK)
		p->va = roce_be64(at + 4);
	return true;
}

static void tap(void *ctx, uint64_t ns, const struct urdma_eth_frame *frame, bool outbound)
{
	struct trace_port *port = ctx;
	struct trace *t = port->trace;
	struct trace_packet p = { .ns = ns, .side = port->side, .out = outbound };
	struct roce_frame roce;
	const char *why;
	uint8_t icrc[4];
	int ret;

	ret = roce_parse(frame->data, frame->len, &roce, &why);
	if (ret > 0)
		return;
	if (!ret)
		roce_icrc(frame->data, &roce, icrc);
	p.bad = frame->error || ret || memcmp(icrc, frame->data + roce.end - 4, 4) ||
		!decode(&p, frame->data, &roce);
	if (t->n == t->room) {
		t->room = t->room ? 2 * t->room : 4096;
		t->packet = realloc(t->packet, t->room * sizeof(*t->packet));
		if (!t->packet)
			abort();
	}
	t->packet[t->n++] = p;
}

void trace_start(struct trace *t, struct rig *rig)
{
	memset(t, 0, sizeof(*t));
	t->rig = rig;
	for (unsigned int n = 0; n < 2; n++) {
		struct urdma_eth_port *port = urdma_cosim_port(rig->cosim, n);

		t->port[n] = (struct trace_port){ t, n };
		rig_check(rig, urdma_eth_port_tap(port, tap, &t->port[n]), "tap");
	}
}

void trace_stop(struct trace *t)
{
	for (unsigned int n = 0; n < 2 && t->rig; n++)
		urdma_eth_port_untap(urdma_cosim_port(t->rig->cosim, n), tap, &t->port[n]);
	t->rig = NULL;
}

void trace_forget(struct trace *t)
{
	t->n = 0;
}

void trace_free(struct trace *t)
{
	free(t->packet);
	t->packet = NULL;
	t->n = 0;
	t->room = 0;
}

bool trace_is(const struct trace_packet *p, unsigned int side, bool out, enum trace_kind kind,
	      int qpn, int psn)
{
	bool response = has_aeth(p->opcode) || p->opcode == OP_READ_MIDDLE;

	if (p->bad || p->side != side || p->out != out || (qpn >= 0 && p->qpn != (uint32_t)qpn) ||
	    (psn >= 0 && p->psn != (uint32_t)psn))
		return false;
	switch (kind) {
	case TRACE_ANY:
		return true;
	case TRACE_REQUEST:
		return !response;
	case TRACE_READ:
		return p->opcode == OP_READ_REQUEST;
	case TRACE_RESPONSE:
		return p->opcode >= OP_READ_FIRST && p->opcode <= OP_READ_ONLY;
	case TRACE_ATOMIC_ACK:
		return p->opcode == OP_ATOMIC_ACK;
	case TRACE_ACK:
		return p->opcode == OP_ACK && p->syndrome >> 5 == 0;
	case TRACE_RNR:
		return p->opcode == OP_ACK && p->syndrome >> 5 == 1;
	case TRACE_NAK_SEQ:
		return p->opcode == OP_ACK && p->syndrome == 0x60;
	case TRACE_NAK_OTHER:
		return p->opcode == OP_ACK && p->syndrome > 0x60;
	}
	return false;
}

size_t trace_count(const struct trace *t, unsigned int side, bool out, enum trace_kind kind,
		   int qpn, int psn)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += trace_is(&t->packet[i], side, out, kind, qpn, psn);
	return n;
}

const struct trace_packet *trace_find(const struct trace *t, size_t from, unsigned int side,
				      bool out, enum trace_kind kind, int qpn, int psn)
{
	for (size_t i = from; i < t->n; i++)
		if (trace_is(&t->packet[i], side, out, kind, qpn, psn))
			return &t->packet[i];
	return NULL;
}

size_t trace_behind(const struct trace *t, const struct trace_packet *p)
{
	return (size_t)(p - t->packet) + 1;
}
