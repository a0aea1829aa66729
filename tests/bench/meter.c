// SPDX-License-Identifier: Apache-2.0
#include "meter.h"

#include <stdlib.h>
#include <string.h>

#include "eth/fault.h"
#include "icrc.h"
#include "bench_limits.h"

#define ICRC 4u

/* Bytes of headers between the BTH and the payload; -1: a packet without payload. */
static int headers(unsigned int opcode)
{
	/* XRC has the codes of RC, and requests have an XRCETH before the other headers. */
	if (opcode >> 5 == 5) {
		int rc = headers(opcode & 0x1f);

		return rc < 0 || (opcode & 0x1f) > 0x0c ? rc : LIMITS_XRCETH + rc;
	}
	/* UC has the codes of RC for its operations. */
	if (opcode >> 5 == 1)
		opcode &= 0x1f;
	switch (opcode) {
	case 0x00 ... 0x02: /* SEND first, middle, last */
	case 0x04:	    /* only */
	case 0x07:	    /* WRITE middle, last */
	case 0x08:
	case 0x0e: /* READ response middle */
		return 0;
	case 0x06: /* WRITE first, only */
	case 0x0a:
		return LIMITS_RETH;
	case 0x0d: /* READ response first, last, only */
	case 0x0f:
	case 0x10:
		return LIMITS_AETH;
	case 0x17: /* SEND only, with invalidate */
		return LIMITS_IETH;
	case 0x12: /* ATOMIC acknowledge */
		return LIMITS_AETH;
	case 0x64: /* datagram */
		return LIMITS_DETH;
	default:
		return -1;
	}
}

/* Whether a packet is the next one of its QP. The first one of a QP always is. */
static bool in_order(struct meter *m, const struct urdma_roce *roce)
{
	uint32_t qp = roce->qpn % METER_QPS;

	if (m->known[qp] && roce_psn_diff(roce->psn, m->next_psn[qp]))
		return false;
	m->known[qp] = true;
	m->next_psn[qp] = roce->psn + 1;
	return true;
}

static enum meter_kind classify(struct meter *m, const struct urdma_eth_frame *frame,
				uint32_t *payload)
{
	struct urdma_roce roce;
	int ext;

	*payload = 0;
	if (!urdma_roce_parse(frame->data, frame->len, &roce)) {
		*payload = frame->len;
		return METER_ETH;
	}
	ext = headers(roce.opcode);
	if (ext < 0 || !in_order(m, &roce))
		return METER_OTHER;
	*payload = roce.end - roce.bth - LIMITS_BTH - (uint32_t)ext - roce.pad - ICRC;
	return roce.opcode == 0x17 ? METER_INV : METER_RDMA;
}

static void frame_in(void *ctx, uint64_t ns, const struct urdma_eth_frame *frame, bool outbound)
{
	struct meter *m = ctx;
	struct meter_count *c;
	enum meter_kind kind;
	uint32_t payload;

	(void)ns;
	if (outbound || m->closed)
		return;
	kind = classify(m, frame, &payload);
	if (kind == m->kind) {
		double at = (double)frame->begin.cycle +
			    (double)frame->begin.frac / (double)frame->begin.mbps;

		if (m->seen == m->warm)
			m->start = at;
		if (m->seen == m->warm + m->count) {
			m->end = at;
			m->closed = true;
			return;
		}
		m->seen++;
	}
	if (m->seen <= m->warm)
		return;
	c = &m->of[kind];
	c->frames++;
	c->payload += payload;
	c->line += limits_line(frame->len);
}

void meter_start(struct meter *m, struct urdma_eth_port *port, enum meter_kind kind, uint64_t warm,
		 uint64_t count)
{
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	m->warm = warm;
	m->count = count;
	if (urdma_eth_port_tap(port, frame_in, m))
		abort(); /* the simulation has one meter per port */
}

double meter_ns(const struct meter *m)
{
	return (m->end - m->start) * URDMA_SIM_CYCLE_NS;
}

double meter_frames(const struct meter *m, enum meter_kind kind)
{
	return (double)m->of[kind].frames * 1000 / meter_ns(m);
}

double meter_goodput(const struct meter *m, enum meter_kind kind)
{
	return (double)m->of[kind].payload * 8 / meter_ns(m);
}
