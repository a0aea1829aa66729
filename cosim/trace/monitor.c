// SPDX-License-Identifier: Apache-2.0
#include "trace/monitor.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "eth/fault.h"
#include "pcie/pcie.h"
#include "pcie/pg213.h"

#define TAGS 256u

#define BAR_REGS 0u
#define BAR_DB	 2u

/* A request whose first beat was seen, but not its last. */
struct request {
	bool seen;
	bool write;
	uint32_t bar, tag;
	uint64_t addr, value;
	uint32_t len;
};

/* The end of a frame, which the port has reported before its turn among the events. */
struct frame_end {
	bool told;
	struct urdma_trace_event event;
};

/* The widths of boundary.def. */
static_assert(URDMA_PCIE_BAR0_SIZE == 1u << 16, "offset of a register has 16 bits");
static_assert(URDMA_PCIE_BAR2_SIZE == 1u << 23, "offset of a doorbell has 23 bits");
static_assert(URDMA_ETH_MAX_FRAME < 1u << 15, "length of a frame has 15 bits");
static_assert(TAGS == 1u << 8, "tag has 8 bits");
static_assert(URDMA_TRACE_STREAMS <= 1u << 3, "stream has 3 bits");

struct urdma_monitor {
	uint8_t nic;
	struct urdma_eth_port *port;
	urdma_trace_fn fn;
	void *ctx;
	struct watch {
		uint64_t waited[URDMA_TRACE_STREAMS]; /* cycles */
		struct request cq, rq;
		bool reg_read[TAGS]; /* by tag: a register read waits for its answer */
		struct completions {
			uint8_t error; /* the first one */
			uint16_t tlps, dwords;
		} rd[TAGS]; /* by tag, of a DMA read */
		bool rc_seen, rc_done;
		uint32_t rc_tag;
		bool sending, receiving; /* in the middle of a frame */
		struct frame_end tx, rx;
	} w;
};

struct urdma_monitor *urdma_monitor_create(uint8_t nic, struct urdma_eth_port *port,
					   urdma_trace_fn fn, void *ctx)
{
	struct urdma_monitor *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->nic = nic;
	m->port = port;
	m->fn = fn;
	m->ctx = ctx;
	return m;
}

void urdma_monitor_destroy(struct urdma_monitor *m)
{
	free(m);
}

static struct urdma_trace_event event(const struct urdma_monitor *m, uint64_t cycle,
				      enum urdma_trace_kind kind)
{
	return (struct urdma_trace_event){ .cycle = cycle, .kind = (uint8_t)kind, .nic = m->nic };
}

static void tell(struct urdma_monitor *m, const struct urdma_trace_event *e)
{
	m->fn(m->ctx, e);
}

/* ---- frames -------------------------------------------------------------------------------- */

/* The same code fills both. */
static_assert(offsetof(struct urdma_trace_event, tx_end.opcode) ==
			      offsetof(struct urdma_trace_event, rx_end.opcode) &&
		      sizeof(((struct urdma_trace_event *)0)->tx_end) ==
			      sizeof(((struct urdma_trace_event *)0)->rx_end),
	      "tx_end and rx_end have the same fields");

/*
 * The port reports the end of each frame: of a received one before taken(), of a sent one before
 * left().
 */
static void frame(void *ctx, uint64_t ns, const struct urdma_eth_frame *f, bool outbound)
{
	struct urdma_monitor *m = ctx;
	struct frame_end *end = outbound ? &m->w.tx : &m->w.rx;
	struct urdma_roce roce;

	end->told = true;
	end->event = event(m, ns / URDMA_SIM_CYCLE_NS,
			   outbound ? URDMA_TRACE_TX_END : URDMA_TRACE_RX_END);
	end->event.tx_end.number = m->port->shown;
	end->event.tx_end.len = f->len;
	end->event.tx_end.error = f->error;
	end->event.tx_end.rdma = urdma_roce_parse(f->data, f->len, &roce);
	if (!end->event.tx_end.rdma)
		return;
	end->event.tx_end.dqpn = roce.qpn;
	end->event.tx_end.psn = roce.psn;
	end->event.tx_end.opcode = roce.opcode;
}

/* Handles a beat of a frame, or no beat; inside: a frame has begun. */
static void frame_beat(struct urdma_monitor *m, uint64_t cycle, bool beat, bool *inside,
		       enum urdma_trace_kind begin, struct frame_end *end)
{
	if (beat && !*inside) {
		struct urdma_trace_event e = event(m, cycle, begin);

		*inside = true;
		tell(m, &e);
	}
	if (!end->told)
		return;
	tell(m, &end->event);
	end->told = false;
	*inside = false;
}

/* ---- PCIe ---------------------------------------------------------------------------------- */

static bool moves(struct urdma_monitor *m, uint64_t cycle, enum urdma_trace_stream stream,
		  bool valid, bool ready)
{
	uint64_t *waited = &m->w.waited[stream];
	struct urdma_trace_event e;

	if (!valid)
		return false;
	if (!ready) {
		++*waited;
		return false;
	}
	if (*waited) {
		e = event(m, cycle, URDMA_TRACE_STALL);
		e.stall.stream = stream;
		e.stall.cycles = *waited;
		tell(m, &e);
		*waited = 0;
	}
	return true;
}

/* The descriptor of CQ or RQ. */
static struct request request(const struct urdma_pcie_beat *b, struct pg213_field first_be,
			      struct pg213_field last_be)
{
	uint32_t skip;
	struct request r = {
		.seen = true,
		.write = pg213_get(b->data, PG213_REQ_TYPE) == PG213_TYPE_MEM_WRITE,
		.tag = pg213_get(b->data, PG213_REQ_TAG),
		.addr = (uint64_t)pg213_get(b->data, PG213_REQ_ADDR_HI) << 32 |
			(uint64_t)pg213_get(b->data, PG213_REQ_ADDR_LO) << 2,
		.len = pg213_enabled(pg213_get(b->data, PG213_REQ_DWORDS),
				     pg213_get(b->user, first_be), pg213_get(b->user, last_be),
				     &skip),
	};

	r.addr += skip;
	/* The first 8 bytes of the payload are in the first beat. */
	memcpy(&r.value, (const uint8_t *)&b->data[PG213_REQ_DW] + skip, r.len < 8 ? r.len : 8);
	return r;
}

static void cq_beat(struct urdma_monitor *m, uint64_t cycle, const struct urdma_pcie_beat *b)
{
	struct request *r = &m->w.cq;
	struct urdma_trace_event e;
	uint64_t offset;

	if (pg213_get(b->user, PG213_CQ_IS_SOP)) {
		*r = request(b, PG213_CQ_FIRST_BE, PG213_CQ_LAST_BE);
		r->bar = pg213_get(b->data, PG213_CQ_BAR);
		r->addr &= (UINT64_C(1) << pg213_get(b->data, PG213_CQ_APERTURE)) - 1;
	}
	if (!b->last || !r->seen)
		return;
	r->seen = false;
	offset = r->addr;
	if (r->bar == BAR_DB && r->write) {
		e = event(m, cycle, URDMA_TRACE_DB_WRITE);
		e.db_write.offset = offset;
		e.db_write.len = r->len;
		e.db_write.value = r->value;
	} else if (r->bar != BAR_REGS) {
		return;
	} else if (r->write) {
		e = event(m, cycle, URDMA_TRACE_REG_WRITE);
		e.reg_write.offset = offset;
		e.reg_write.len = r->len;
		e.reg_write.value = r->value;
	} else {
		e = event(m, cycle, URDMA_TRACE_REG_READ);
		e.reg_read.offset = offset;
		e.reg_read.tag = r->tag;
		m->w.reg_read[r->tag] = true;
	}
	tell(m, &e);
}

static void cc_beat(struct urdma_monitor *m, uint64_t cycle, const struct urdma_pcie_beat *b)
{
	/* A completion of a register read is one beat. */
	uint32_t tag = pg213_get(b->data, PG213_CPL_TAG);
	struct urdma_trace_event e = event(m, cycle, URDMA_TRACE_REG_DONE);

	if (!m->w.reg_read[tag])
		return;
	m->w.reg_read[tag] = false;
	e.reg_done.tag = tag;
	e.reg_done.dwords = pg213_get(b->data, PG213_CPL_DWORDS);
	tell(m, &e);
}

static void rq_beat(struct urdma_monitor *m, uint64_t cycle, const struct urdma_pcie_beat *b)
{
	struct request *r = &m->w.rq;
	struct urdma_trace_event e;

	if (pg213_get(b->user, PG213_RQ_IS_SOP)) {
		*r = request(b, PG213_RQ_FIRST_BE, PG213_RQ_LAST_BE);
		if (!r->write) {
			e = event(m, cycle, URDMA_TRACE_RD);
			e.rd.tag = r->tag;
			e.rd.addr = r->addr;
			e.rd.len = r->len;
			m->w.rd[r->tag] = (struct completions){ 0 };
			tell(m, &e);
		}
	}
	if (!b->last)
		return;
	if (r->seen && r->write) {
		e = event(m, cycle, URDMA_TRACE_WR);
		e.wr.addr = r->addr;
		e.wr.len = r->len;
		tell(m, &e);
	}
	r->seen = false;
}

static void rc_beat(struct urdma_monitor *m, uint64_t cycle, const struct urdma_pcie_beat *b)
{
	struct urdma_trace_event e;
	struct completions *rd;

	if (pg213_get(b->user, PG213_RC_IS_SOP)) {
		uint8_t error = (uint8_t)pg213_get(b->data, PG213_RC_ERROR);

		m->w.rc_seen = true;
		m->w.rc_tag = pg213_get(b->data, PG213_CPL_TAG);
		m->w.rc_done = pg213_get(b->data, PG213_RC_DONE);
		rd = &m->w.rd[m->w.rc_tag];
		if (!rd->error)
			rd->error = error;
		/* The integrated block reports a time-out; nothing came over the link. */
		if (error != PG213_ERROR_TIMEOUT) {
			rd->tlps++;
			rd->dwords += (uint16_t)pg213_get(b->data, PG213_CPL_DWORDS);
		}
	}
	if (!b->last || !m->w.rc_seen)
		return;
	m->w.rc_seen = false;
	if (!m->w.rc_done)
		return;
	rd = &m->w.rd[m->w.rc_tag];
	e = event(m, cycle, URDMA_TRACE_RD_DONE);
	e.rd_done.tag = m->w.rc_tag;
	e.rd_done.error = rd->error;
	e.rd_done.tlps = rd->tlps;
	e.rd_done.dwords = rd->dwords;
	*rd = (struct completions){ 0 };
	tell(m, &e);
}

/* ---- a cycle ------------------------------------------------------------------------------- */

/* A reset drops PCIe transfers in progress. Frames on the wire continue to their end. */
static void forget_pcie(struct watch *w)
{
	struct watch frames = {
		.sending = w->sending, .receiving = w->receiving, .tx = w->tx, .rx = w->rx
	};

	*w = frames;
}

void urdma_monitor_taken(struct urdma_monitor *m, uint64_t cycle, const struct urdma_sim_in *in,
			 const struct urdma_sim_out *out)
{
	if (in->rst)
		forget_pcie(&m->w);
	if (moves(m, cycle, URDMA_TRACE_STREAM_CQ, in->cq.valid, out->cq_ready))
		cq_beat(m, cycle, &in->cq);
	if (moves(m, cycle, URDMA_TRACE_STREAM_RC, in->rc.valid, out->rc_ready))
		rc_beat(m, cycle, &in->rc);
	frame_beat(m, cycle, in->rx.valid, &m->w.receiving, URDMA_TRACE_RX, &m->w.rx);
}

void urdma_monitor_left(struct urdma_monitor *m, uint64_t cycle, const struct urdma_sim_in *in,
			const struct urdma_sim_out *out)
{
	struct urdma_trace_event e;
	bool tx;

	/* In the order in which PCIe sends transfers of one cycle. */
	if (moves(m, cycle, URDMA_TRACE_STREAM_RQ, out->rq.valid, in->rq_ready))
		rq_beat(m, cycle, &out->rq);
	if (moves(m, cycle, URDMA_TRACE_STREAM_CC, out->cc.valid, in->cc_ready))
		cc_beat(m, cycle, &out->cc);
	if (out->irq_valid && in->irq_ready) {
		e = event(m, cycle, URDMA_TRACE_IRQ);
		e.irq.vector = out->irq_vec;
		tell(m, &e);
	}
	tx = moves(m, cycle, URDMA_TRACE_STREAM_TX, out->tx.valid, in->tx_ready);
	frame_beat(m, cycle, tx, &m->w.sending, URDMA_TRACE_TX, &m->w.tx);
}

void urdma_monitor_reset(struct urdma_monitor *m, uint64_t cycle)
{
	struct urdma_trace_event e = event(m, cycle, URDMA_TRACE_RESET);

	tell(m, &e);
}

/* ---- listening ----------------------------------------------------------------------------- */

int urdma_monitor_start(struct urdma_monitor *m)
{
	memset(&m->w, 0, sizeof(m->w));
	m->w.sending = urdma_eth_port_sending(m->port);
	m->w.receiving = urdma_eth_port_receiving(m->port);
	return urdma_eth_port_tap(m->port, frame, m);
}

void urdma_monitor_stop(struct urdma_monitor *m)
{
	urdma_eth_port_untap(m->port, frame, m);
}
