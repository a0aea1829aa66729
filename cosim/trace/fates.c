// SPDX-License-Identifier: Apache-2.0
#include "trace/fates.h"

#include <stdlib.h>

#include "trace/held.h"
#include "urdma_trace_pkg.h"

/* QP numbers as in the lanes. */
#define QPN_MASK ((1u << tr_rsp_t_qpn_W) - 1)

/* Destination QP of a multicast datagram. */
#define GROUP 0xffffffu

/* BTH opcodes: transport in bits 7:5. */
enum { RC = 0, XRC = 5 };

struct urdma_fates {
	struct urdma_holder held;
};

static bool connected(const struct urdma_held *h)
{
	return h->opcode >> 5 == RC || h->opcode >> 5 == XRC;
}

/* ACKs, READ responses and ATOMIC acknowledges. */
static bool is_answer(const struct urdma_held *h)
{
	uint8_t op = h->opcode & 0x1f;

	return connected(h) && op >= 0x0d && op <= 0x12;
}

/* True for requests that tx answers: READ, ATOMIC, FLUSH, ATOMIC WRITE. */
static bool is_asked(const struct urdma_held *h)
{
	uint8_t op = h->opcode & 0x1f;

	return connected(h) && (op == 0x0c || op == 0x13 || op == 0x14 || op == 0x1c || op == 0x1d);
}

static void drop(struct urdma_fates *f, struct urdma_held *h, const char *why, const char *counter)
{
	urdma_held_dropped(&f->held, h, why, counter);
}

static void bad(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h = e->bad.why == TRB_MAC
				       ? urdma_held_damaged(&f->held)
				       : urdma_held_named(&f->held, URDMA_HELD_PARSE, e->bad.qpn,
							  ~0u, e->bad.psn, (int)e->bad.opcode);

	if (!h && e->bad.why == TRB_MALFORMED)
		h = urdma_held_cut_short(&f->held);
	if (!h)
		return;
	switch (e->bad.why) {
	case TRB_MAC:
		drop(f, h, "bad FCS", "rx_mac_err");
		break;
	case TRB_MALFORMED:
		drop(f, h, "malformed", "rx_malformed");
		break;
	case TRB_ICRC:
		drop(f, h, "ICRC", "rx_icrc_err");
		break;
	default:
		drop(f, h, "to a group, sent back to its sender", "rx_not_rdma");
	}
}

/* Sent by the NIC to itself. */
static struct urdma_held *home(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	return urdma_held_home(&f->held, e->cycle * URDMA_SIM_CYCLE_NS, URDMA_HELD_PARSE);
}

static void in(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h = urdma_held_named(&f->held, URDMA_HELD_PARSE, e->in.qpn, ~0u,
						e->in.psn, (int)e->in.opcode);

	if (!h && !e->in.full) {
		h = home(f, e);
		if (h) {
			h->named = true;
			h->group = e->in.qpn == GROUP;
			h->opcode = (uint8_t)e->in.opcode;
			h->qpn = (uint32_t)e->in.qpn;
			h->psn = (uint32_t)e->in.psn;
		}
	}
	if (!h)
		return;
	if (e->in.full) {
		drop(f, h, "no room", "rx_drop_full");
		return;
	}
	h->stage = is_answer(h) ? URDMA_HELD_REQ : URDMA_HELD_RSP;
}

static void no_qp(struct urdma_fates *f, struct urdma_held *h, uint64_t why)
{
	static const char *const text[] = {
		[TRW_NO_QP] = "no QP",
		[TRW_TRANSPORT] = "no QP of this transport",
		[TRW_STATE] = "no QP in a state that takes it",
		[TRW_ADDRESS] = "addresses or VLAN are not the QP's",
		[TRW_PKEY] = "P_Key",
		[TRW_ERROR] = "its QP has failed",
	};

	drop(f, h, why < sizeof(text) / sizeof(text[0]) && text[why] ? text[why] : "no QP",
	     "rx_no_qp");
}

static void refused(struct urdma_fates *f, struct urdma_held *h, uint64_t why)
{
	if (why == TRW_QKEY)
		drop(f, h, "Q_Key", "rx_bad_qkey");
	else if (connected(h))
		drop(f, h, "the request is not valid or not allowed, its QP fails", NULL);
	else
		drop(f, h, "opcode, length or right", "rx_drop_unrel");
}

static void decided(struct urdma_fates *f, struct urdma_held *h, uint64_t verdict, uint64_t why)
{
	switch (verdict) {
	case TRV_TAKEN:
		h->stage = URDMA_HELD_PUT;
		break;
	case TRV_REPEATED:
		if (why == TRW_OLD)
			drop(f, h, "repeated, and not to be answered again", "rx_dup");
		else if (is_asked(h))
			h->stage = URDMA_HELD_PUT;
		else
			urdma_held_taken(&f->held, h);
		break;
	case TRV_GAP:
		drop(f, h,
		     connected(h) ? "PSN ahead of the expected one"
				  : "a packet of its message is lost",
		     "rx_seq_err");
		break;
	case TRV_RNR:
		if (connected(h))
			drop(f, h, "no receive WQE, the sender has to wait", NULL);
		else
			drop(f, h, "no receive WQE", "rx_drop_no_wqe");
		break;
	case TRV_REFUSED:
		refused(f, h, why);
		break;
	default:
		no_qp(f, h, why);
	}
}

/* Requests are decided in the order of arrival. */
static struct urdma_held *request(const struct urdma_fates *f, const struct urdma_trace_event *e)
{
	for (struct urdma_held *h = f->held.waiting; h; h = h->wait_next)
		if (h->stage == URDMA_HELD_RSP && h->psn == e->rsp.psn &&
		    h->opcode == e->rsp.opcode && ((h->qpn & QPN_MASK) == e->rsp.qpn || h->group))
			return h;
	return NULL;
}

static void rsp(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h = request(f, e);

	if (!h)
		return;
	h->members += h->group;
	h->more = e->rsp.more;
	/* The later fate of a member's copy is not followed. */
	if (h->group && e->rsp.verdict == TRV_TAKEN)
		urdma_held_taken(&f->held, h);
	else
		decided(f, h, e->rsp.verdict, e->rsp.why);
}

static void req(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h =
		urdma_held_named(&f->held, URDMA_HELD_REQ, e->req.qpn, QPN_MASK, e->req.psn, -1);

	if (!h)
		return;
	if (!e->req.drop)
		urdma_held_taken(&f->held, h);
	else if (e->req.why == TRW_GHOST)
		drop(f, h, "an answer to nothing that waits for one", "rx_ack_ghost");
	else if (e->req.why == TRW_ERROR)
		drop(f, h, "its QP has failed", NULL);
	else if (e->req.why == TRW_LOST)
		drop(f, h, "behind a READ response that is lost", NULL);
	else
		no_qp(f, h, e->req.why);
}

static void put(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h = e->put.resp ? NULL
					   : urdma_held_named(&f->held, URDMA_HELD_PUT, e->put.qpn,
							      QPN_MASK, e->put.psn, -1);

	if (!h)
		return;
	if (is_asked(h))
		h->stage = URDMA_HELD_ASK;
	else
		urdma_held_taken(&f->held, h);
}

static void voided(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h = urdma_held_named(&f->held, URDMA_HELD_PUT, e->voided.qpn, QPN_MASK,
						e->voided.psn, -1);

	if (!h)
		return;
	if (e->voided.why == TRO_UNREL)
		drop(f, h, "a key of its message is refused", "rx_drop_unrel");
	else if (e->voided.why == TRO_DEAD)
		drop(f, h, "behind an error of its QP", NULL);
	else
		drop(f, h, "a key or receive buffer is refused, its QP fails", NULL);
}

static void ask(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h =
		urdma_held_named(&f->held, URDMA_HELD_ASK, e->ask.qpn, QPN_MASK, e->ask.psn, -1);

	if (!h)
		return;
	switch (e->ask.verdict) {
	case TRA_TAKEN:
		urdma_held_taken(&f->held, h);
		break;
	case TRA_FULL:
		drop(f, h, "too many READs and ATOMICs wait", "rx_read_drop");
		break;
	default:
		drop(f, h, "its QP has failed", NULL);
	}
}

static void mute(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h =
		urdma_held_named(&f->held, URDMA_HELD_ASK, e->mute.qpn, QPN_MASK, e->mute.psn, -1);

	if (!h)
		return;
	switch (e->mute.why) {
	case TRM_ENDED:
		drop(f, h, "its QP has failed", NULL);
		break;
	case TRM_NAK:
		drop(f, h, "its read of host memory failed, its QP fails", NULL);
		break;
	default:
		drop(f, h, "repeated, and its result is not kept any more", "rx_dup");
	}
}

static void eth_in(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h = urdma_held_sized(&f->held, URDMA_HELD_PARSE, e->eth_in.len);

	if (!h && e->eth_in.verdict == TRE_TAKEN) {
		h = home(f, e);
		if (h)
			h->len = (uint32_t)e->eth_in.len;
	}
	if (!h)
		return;
	switch (e->eth_in.verdict) {
	case TRE_TAKEN:
		h->stage = URDMA_HELD_BUF;
		break;
	case TRE_FILTERED:
		drop(f, h, "no filter of the Ethernet function passes it", "eth_rx_filtered");
		break;
	case TRE_LENGTH:
		drop(f, h, "too short or too long", "eth_rx_length");
		break;
	default:
		drop(f, h, "no room in the Ethernet function", "eth_rx_drop_full");
	}
}

static void eth_buf(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	struct urdma_held *h = urdma_held_sized(&f->held, URDMA_HELD_BUF, e->eth_buf.len);

	if (h && e->eth_buf.drop)
		drop(f, h, "no receive buffer", "eth_rx_no_buf");
	else if (h)
		urdma_held_taken(&f->held, h);
}

void urdma_fates_event(struct urdma_fates *f, const struct urdma_trace_event *e)
{
	static void (*const lane[URDMA_TRACE_LANES])(struct urdma_fates *,
						     const struct urdma_trace_event *) = {
		[URDMA_TRACE_BAD] = bad,	 [URDMA_TRACE_IN] = in,
		[URDMA_TRACE_RSP] = rsp,	 [URDMA_TRACE_REQ] = req,
		[URDMA_TRACE_PUT] = put,	 [URDMA_TRACE_VOIDED] = voided,
		[URDMA_TRACE_ASK] = ask,	 [URDMA_TRACE_ETH_IN] = eth_in,
		[URDMA_TRACE_ETH_BUF] = eth_buf, [URDMA_TRACE_MUTE] = mute,
	};

	if (e->kind >= URDMA_TRACE_LANES || !lane[e->kind])
		return;
	lane[e->kind](f, e);
	urdma_held_release(&f->held, e->cycle * URDMA_SIM_CYCLE_NS);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct urdma_fates *urdma_fates_create(struct urdma_eth_port *port)
{
	struct urdma_fates *f = malloc(sizeof(*f));

	if (f)
		urdma_holder_open(&f->held, port);
	return f;
}

void urdma_fates_flush(struct urdma_fates *f)
{
	urdma_held_release_all(&f->held);
}

void urdma_fates_reset(struct urdma_fates *f)
{
	while (f->held.waiting) {
		f->held.waiting->more = false;
		drop(f, f->held.waiting, "the NIC is reset", NULL);
	}
	urdma_fates_flush(f);
}

uint64_t urdma_fates_unknown(const struct urdma_fates *f)
{
	return f->held.unknown;
}

void urdma_fates_destroy(struct urdma_fates *f)
{
	if (!f)
		return;
	urdma_holder_close(&f->held);
	free(f);
}
