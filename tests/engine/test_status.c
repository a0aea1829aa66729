// SPDX-License-Identifier: Apache-2.0
/*
 * Each completion status, reached on purpose in each possible way. Pair 0 exchanges good messages
 * (the last one is a long READ, which is answered although the QP goes to ERR meanwhile), then one
 * that fails, with more posted after it. Meanwhile pair 1 has messages of all kinds under way. Each
 * case checks, on both sides: the status of every CQE in order, also of flushed WQEs; the states of
 * the QPs; the event, and that there is no other; counters; every byte that may not change. WQEs
 * that are posted afterwards to a QP in ERR are flushed too. Pair 1's messages are compared in
 * full, and the wire checker watches both ports. Each case moves its QPs from ERR through RESET to
 * RTS and begins with good messages, which shows that the QPs of the case before are usable again.
 *
 * The expected results follow docs/hardware-interface.md, sections 10 and 11 (volume 1 of the
 * InfiniBand Architecture Specification: 9.9, 10.3.1, 10.10.3, 11.6.3).
 *
 * Each case runs with side 0 as requester and with side 1, and says so in its name. Arguments
 * choose cases: those whose names contain one of them, or equal one after a '='. There is no other
 * input.
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

#include "icrc.h"
#include "judge.h"
#include "ref_hash.h"
#include "work.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define MTU	 3u /* 1024 */
#define LEN	 3004u
#define SHORT	 100u
#define READ_LEN 50000u /* more than the responder sends in one turn */
#define LIMIT	 20000000u

/* Offsets in both sides' buffers. */
#define GOOD_AT	      0u
#define BYSTANDERS_AT (1u << 20)
#define SLOT_AT	      (2u << 20) /* of the message that fails */
#define SLOT	      8192u
#define DATA	      2048u /* its bytes in the slot */
#define FAST_AT	      (3u << 20)

#define OTHER_PD 2u

#define ALL_REMOTE (URDMA_ACC_REMOTE_WRITE | URDMA_ACC_REMOTE_READ | URDMA_ACC_REMOTE_ATOMIC)
#define ALL_ACCESS (URDMA_ACC_LOCAL_WRITE | ALL_REMOTE)

/* Regions and windows of each side, with their indexes. */
enum object {
	TIGHT = 2,	/* exactly the data of the slot, every right except bind */
	OTHER,		/* of another PD, every right */
	READ_ONLY,	/* remote read, no local write */
	LOCAL_ONLY,	/* local write, no remote right */
	BINDABLE,	/* every right */
	BINDABLE_READ,	/* bindable, no local write */
	BINDABLE_OTHER, /* bindable, of another PD */
	FAST,		/* not registered */
	FAST_USED,	/* registered, every right */
	FAST_LOCAL,	/* registered, no remote right */
	FAST_GONE,	/* registered and invalidated */
	FAST_BOUND,	/* registered, and a window is bound to it */
	FAST_OTHER,	/* of another PD */
	WINDOW,		/* not bound */
	WINDOW_OTHER,	/* likewise, of another PD */
	WINDOW_READ,	/* bound to TIGHT's range, through pair 0's QP, for READ */
	WINDOW_WRITE,	/* for WRITE */
	WINDOW_FOREIGN, /* for all, through pair 1's QP */
	WINDOW_FAST,	/* to FAST_BOUND */
	FRESH,		/* used by a single case */
	OBJECTS,
};

/* What is wrong with an address and its key. */
enum flaw {
	NONE,
	NO_KEY,
	KEY_RANGE,
	VARIANT,
	WRONG_PD,
	BEFORE,
	BEHIND,
	AROUND,
	NO_RIGHT,
	UNREGISTERED,
	INVALIDATED,
	UNBOUND,
	AS_WINDOW, /* a window where a region is required */
	FOREIGN,
	WINDOW_RIGHT,
	WINDOW_BEFORE,
	WINDOW_BEHIND,
	LATE, /* the last bytes of a list */
	FLAWS,
};

static const char *const flaw_name[FLAWS] = {
	[NONE] = "nothing",
	[NO_KEY] = "no such key",
	[KEY_RANGE] = "key out of range",
	[VARIANT] = "key with another variant",
	[WRONG_PD] = "other PD",
	[BEFORE] = "one byte before",
	[BEHIND] = "one byte behind",
	[AROUND] = "around the address space",
	[NO_RIGHT] = "region without the right",
	[UNREGISTERED] = "region not registered",
	[INVALIDATED] = "region invalidated",
	[UNBOUND] = "window not bound",
	[AS_WINDOW] = "a window's key",
	[FOREIGN] = "window of another QP",
	[WINDOW_RIGHT] = "window without the right",
	[WINDOW_BEFORE] = "one byte before the window",
	[WINDOW_BEHIND] = "one byte behind the window",
	[LATE] = "bad key at the end of the list",
};

/* A packet of pair 0 that is changed on the wire, from the failing message on. */
struct change {
	int opcode;		    /* BTH opcode of the packets; ANY_OPCODE */
	unsigned int offset, value; /* one byte, counted from the BTH */
	unsigned int cut;	    /* bytes of payload that are removed, a multiple of 4 */
	bool answer;		    /* a packet of the responder */
	bool drop, always;	    /* always: not only the first one */
};

#define ANY_OPCODE (-1)
#define CHANGES	   2u

/* Offsets from the BTH. */
#define BTH_OPCODE 0u
#define EXT_VA	   19u /* low byte of the address in a RETH or AtomicETH */
#define RETH_LEN   24u /* high byte */
#define RETH_LEN0  27u /* low byte */
#define SYNDROME   12u

struct scene;
typedef void (*spoil_fn)(struct scene *s, uint64_t *wqe);
typedef void (*post_fn)(struct scene *s, struct urdma_eh_send *wr);
typedef void (*prepare_fn)(struct scene *s);

struct status_case {
	const char *name;
	unsigned int opcode;
	uint32_t len; /* 0: LEN */
	unsigned int status;
	/* For the responder: status of the receive CQE, or NO_CQE; event, which means that its QP
	 * goes to ERR as after a bad receive CQE; NAKs. */
	int recv;
	unsigned int event;
	unsigned int naks, rnr_naks, seq_naks;
	/* The cause. */
	enum flaw local, remote, receive;
	spoil_fn spoil, spoil_recv; /* overwrite a good WQE */
	post_fn post;		    /* makes another WQE */
	prepare_fn prepare, undo;
	struct change change[CHANGES];
	/* Of the connection: 0 means the default. */
	unsigned int without; /* remote rights that QPs do not have */
	bool no_rd_atomic, no_dest_rd_atomic;
	bool retry; /* once, and one RNR retry */
	/* What is not fixed. */
	bool no_recv; /* no receive is posted for it */
	bool alone;   /* nothing after it */
	bool apart;   /* acknowledge messages before it first, so that its answer cannot */
	/* Cycles from the message's doorbell to that of the messages after it. */
	unsigned int later;
	bool passes;  /* messages after it may have been carried out */
	bool partial; /* some of its bytes may have been written */
	bool unprivileged;
	bool untold;  /* the requester's message succeeds, and its QP stays in RTS */
	bool strange; /* a packet comes that the wire checker cannot read */
};

#define NO_CQE (-1)

#define MAX_CQES 24u

/* The results of pair 0. */
struct seen {
	struct urdma_eh_cqe cqe[2][MAX_CQES]; /* send, receive */
	unsigned int n[2];
	struct urdma_eh_event event[8];
	unsigned int events;
};

struct scene {
	struct rig rig;
	struct judge judge;
	bool running, priv;
	struct urdma_eh_mr mr[2][OBJECTS];
	uint32_t psn; /* of the next connection */

	/* the case */
	const struct status_case *c;
	unsigned int from;
	struct seen seen[2];
	struct work w[WORK_BYSTANDERS];
	uint32_t bad_psn; /* first PSN of the message that fails */
	unsigned int changed[CHANGES];
	uint8_t *fresh;
	uint64_t trap_first, trap_last;
	unsigned int trap_hits;
	uint8_t before[2][SLOT];
};

static struct scene scene;

/* ---- the rig ------------------------------------------------------------------------------- */

static void settle(struct scene *s)
{
	rig_check(&s->rig,
		  urdma_cosim_run_while_busy(s->rig.cosim, urdma_cosim_now(s->rig.cosim) + 3000000),
		  "settle");
}

/* Moves QPs from any state through RESET to RTS, with PSNs far from the former ones. */
static void connect_pair(struct scene *s, unsigned int pair, const struct urdma_eh_conn *base)
{
	struct urdma_eh_conn conn[2];

	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_to_reset(&s->rig.side[n].qp[pair]), 0);
	for (unsigned int n = 0; n < 2; n++) {
		conn[n] = *base;
		conn[n].dest_qpn = RIG_QPN(pair);
		conn[n].sq_psn = (s->psn + n * 0x654321) & 0xffffff;
		conn[n].rq_psn = (s->psn + !n * 0x654321) & 0xffffff;
		urdma_eh_gid_ipv4(conn[n].dgid, 0x0a000001u + !n);
		assert_int_equal(urdma_eh_mac(s->rig.side[!n].eh, conn[n].dmac), 0);
		assert_int_equal(urdma_eh_to_init(&s->rig.side[n].qp[pair], &conn[n]), 0);
		assert_int_equal(urdma_eh_to_rtr(&s->rig.side[n].qp[pair], &conn[n]), 0);
	}
	for (unsigned int n = 0; n < 2; n++)
		assert_int_equal(urdma_eh_to_rts(&s->rig.side[n].qp[pair], &conn[n]), 0);
	s->psn = (s->psn + 0x123457) & 0xffffff;
}

static void create(struct scene *s, unsigned int n, enum object i, uint32_t pd, unsigned int access)
{
	uint8_t *p = s->rig.side[n].buffer + SLOT_AT + DATA;

	assert_int_equal(urdma_eh_create_mr(s->rig.side[n].eh, i, (uint8_t)(0x30 + i), pd, access,
					    p, LEN, (uintptr_t)p, &s->mr[n][i]),
			 0);
}

static void create_kind(struct scene *s, unsigned int n, enum object i, uint32_t pd,
			unsigned int kind)
{
	assert_int_equal(urdma_eh_create_mr_kind(s->rig.side[n].eh, i, (uint8_t)(0x30 + i), pd,
						 kind, &s->mr[n][i]),
			 0);
}

/* A local operation that has to succeed. */
static void local_done(struct scene *s, unsigned int n, unsigned int pair)
{
	struct urdma_eh_cqe cqe;

	urdma_eh_ring_sq(&s->rig.side[n].qp[pair]);
	rig_check(&s->rig, urdma_eh_next_cqe(&s->rig.side[n].send_cq, &cqe, LIMIT), "local");
	assert_int_equal(cqe.status, URDMA_WC_SUCCESS);
}

static void reg(struct scene *s, unsigned int n, enum object i, unsigned int access)
{
	uint8_t *p = s->rig.side[n].buffer + FAST_AT;

	assert_int_equal(urdma_eh_put_reg_mr(&s->rig.side[n].qp[0], &s->mr[n][i],
					     (uint8_t)(0x50 + i), access, p, 8192, (uintptr_t)p, 1,
					     12, true),
			 0);
	local_done(s, n, 0);
}

static void bind(struct scene *s, unsigned int n, unsigned int pair, enum object i,
		 unsigned int access, enum object region)
{
	const struct urdma_eh_mr *mr = &s->mr[n][region];

	assert_int_equal(urdma_eh_put_bind_mw(&s->rig.side[n].qp[pair], &s->mr[n][i],
					      (uint8_t)(0x50 + i), access, mr, mr->va,
					      region == FAST_BOUND ? 4096 : LEN, true),
			 0);
	local_done(s, n, pair);
}

static void objects(struct scene *s, unsigned int n)
{
	assert_int_equal(urdma_eh_alloc_pd(s->rig.side[n].eh, OTHER_PD), 0);
	create(s, n, TIGHT, RIG_PD, ALL_ACCESS);
	create(s, n, OTHER, OTHER_PD, ALL_ACCESS);
	create(s, n, READ_ONLY, RIG_PD, URDMA_ACC_REMOTE_READ);
	create(s, n, LOCAL_ONLY, RIG_PD, URDMA_ACC_LOCAL_WRITE);
	create(s, n, BINDABLE, RIG_PD, ALL_ACCESS | URDMA_ACC_MW_BIND);
	create(s, n, BINDABLE_READ, RIG_PD, URDMA_ACC_REMOTE_READ | URDMA_ACC_MW_BIND);
	create(s, n, BINDABLE_OTHER, OTHER_PD, ALL_ACCESS | URDMA_ACC_MW_BIND);
	for (enum object i = FAST; i < WINDOW; i++)
		create_kind(s, n, i, i == FAST_OTHER ? OTHER_PD : RIG_PD, URDMA_MRK_FAST);
	for (enum object i = WINDOW; i < FRESH; i++)
		create_kind(s, n, i, i == WINDOW_OTHER ? OTHER_PD : RIG_PD, URDMA_MRK_WINDOW);
	if (!s->priv)
		return;
	reg(s, n, FAST_USED, ALL_ACCESS);
	reg(s, n, FAST_LOCAL, URDMA_ACC_LOCAL_WRITE);
	reg(s, n, FAST_GONE, ALL_ACCESS);
	assert_int_equal(
		urdma_eh_put_local_inv(&s->rig.side[n].qp[0], s->mr[n][FAST_GONE].key, true), 0);
	local_done(s, n, 0);
	reg(s, n, FAST_BOUND, ALL_ACCESS | URDMA_ACC_MW_BIND);
}

/* Windows are bound for the life of a QP. */
static void bind_windows(struct scene *s, unsigned int n)
{
	bind(s, n, 0, WINDOW_READ, URDMA_ACC_REMOTE_READ, BINDABLE);
	bind(s, n, 0, WINDOW_WRITE, URDMA_ACC_REMOTE_WRITE, BINDABLE);
	bind(s, n, 1, WINDOW_FOREIGN, ALL_REMOTE, BINDABLE);
	if (s->priv)
		bind(s, n, 0, WINDOW_FAST, ALL_REMOTE, FAST_BOUND);
}

static enum urdma_pcie_fault spring(void *ctx, uint64_t addr, size_t len)
{
	struct scene *s = ctx;

	if (!s->trap_last || addr > s->trap_last || addr + len <= s->trap_first)
		return URDMA_PCIE_FAULT_NONE;
	s->trap_hits++;
	return URDMA_PCIE_FAULT_UR;
}

static void on_the_wire(void *ctx, unsigned int side, struct urdma_eth_frame *frame,
			struct urdma_wire_verdict *verdict);

static void leave(struct scene *s)
{
	if (!s->running)
		return;
	judge_drop(&s->judge);
	rig_abandon(&s->rig);
	s->running = false;
}

static void enter(struct scene *s, bool priv)
{
	struct rig_config config;

	leave(s);
	memset(s, 0, sizeof(*s));
	rig_defaults(&config);
	config.qps = 2;
	config.mtu = MTU;
	config.log_stride = 7;
	config.priv = priv;
	config.conn.timeout = 6; /* 262 us */
	rig_start(&s->rig, &config);
	s->running = true;
	s->priv = priv;
	s->psn = 0x800000;
	for (unsigned int n = 0; n < 2; n++) {
		objects(s, n);
		urdma_pcie_set_fault(urdma_cosim_pcie(s->rig.cosim, n), spring, s);
	}
	urdma_wire_set_fault(urdma_cosim_wire(s->rig.cosim, 0), on_the_wire, s);
}

/* ---- packets that are changed -------------------------------------------------------------- */

static void apply(const struct change *c, struct urdma_eth_frame *frame, struct roce_frame *roce)
{
	frame->data[roce->bth + c->offset] = (uint8_t)c->value;
	if (c->cut) {
		uint8_t *ip = frame->data + roce->ip, *udp = frame->data + roce->udp;

		roce_put(ip + 2, roce_be(ip + 2, 2) - c->cut, 2);
		ref_ip_checksum(ip);
		roce_put(udp + 4, roce_be(udp + 4, 2) - c->cut, 2);
		roce->end -= c->cut;
		frame->len = (uint32_t)(roce->end < URDMA_ETH_MIN_FRAME ? URDMA_ETH_MIN_FRAME
									: roce->end);
	}
	roce_icrc(frame->data, roce, frame->data + roce->end - 4);
}

static void on_the_wire(void *ctx, unsigned int side, struct urdma_eth_frame *frame,
			struct urdma_wire_verdict *verdict)
{
	struct scene *s = ctx;
	struct roce_frame roce;
	const uint8_t *bth;
	const char *why;
	uint32_t psn;

	if (!s->c || roce_parse(frame->data, frame->len, &roce, &why))
		return;
	bth = frame->data + roce.bth;
	psn = roce_be(bth + 9, 3);
	if (roce_be(bth + 5, 3) != RIG_QPN(0) || ((psn - s->bad_psn) & 0x800000))
		return;
	for (unsigned int i = 0; i < CHANGES; i++) {
		const struct change *c = &s->c->change[i];

		if ((!c->drop && !c->value && !c->cut) || side != (s->from ^ c->answer) ||
		    (c->opcode != ANY_OPCODE && c->opcode != bth[0]) ||
		    (s->changed[i] && !c->always))
			continue;
		s->changed[i]++;
		if (c->drop)
			verdict->drop = true;
		else
			apply(c, frame, &roce);
		return;
	}
}

/* ---- addresses and keys that are wrong ----------------------------------------------------- */

static uint64_t data_addr(struct scene *s, unsigned int n)
{
	return (uintptr_t)s->rig.side[n].buffer + SLOT_AT + DATA;
}

/* access: the access, as a remote right. */
static void flawed(struct scene *s, unsigned int n, enum flaw flaw, unsigned int access,
		   uint32_t len, uint64_t *addr, uint32_t *key)
{
	const struct urdma_eh_mr *mr = s->mr[n];
	bool atomic = access == URDMA_ACC_REMOTE_ATOMIC;
	unsigned int step = atomic ? 8 : 1;

	*addr = data_addr(s, n);
	*key = mr[TIGHT].key;
	switch (flaw) {
	case NO_KEY:
		*key = 0x3999u << 8 | (*key & 0xff);
		break;
	case KEY_RANGE: /* the index has the low bits of one that exists */
		*key |= 0x4000u << 8;
		break;
	case VARIANT:
		*key ^= 1;
		break;
	case WRONG_PD:
		*key = mr[OTHER].key;
		break;
	case BEFORE:
		*addr -= step;
		break;
	case BEHIND: /* LEN is not a multiple of 8 */
		*addr += atomic ? LEN & ~7u : LEN - len + 1;
		break;
	case AROUND:
		*addr = atomic ? ~UINT64_C(7) : ~UINT64_C(0) - 10;
		break;
	case NO_RIGHT:
		*key = mr[access == URDMA_ACC_REMOTE_READ ? LOCAL_ONLY : READ_ONLY].key;
		break;
	case UNREGISTERED:
		*key = mr[FAST].key;
		break;
	case INVALIDATED:
		*key = mr[FAST_GONE].key;
		*addr = mr[FAST_GONE].va;
		break;
	case UNBOUND:
		*key = mr[WINDOW].key;
		break;
	case AS_WINDOW:
		*key = mr[access == URDMA_ACC_REMOTE_READ ? WINDOW_READ : WINDOW_WRITE].key;
		break;
	case FOREIGN:
		*key = mr[WINDOW_FOREIGN].key;
		break;
	case WINDOW_RIGHT:
		*key = mr[access == URDMA_ACC_REMOTE_READ ? WINDOW_WRITE : WINDOW_READ].key;
		break;
	case WINDOW_BEFORE:
	case WINDOW_BEHIND:
		*key = mr[access == URDMA_ACC_REMOTE_READ ? WINDOW_READ : WINDOW_WRITE].key;
		*addr += flaw == WINDOW_BEFORE ? -(uint64_t)1 : LEN - len + 1;
		break;
	default:
		break;
	}
}

/* The right that a remote operation needs. */
static unsigned int right_of(unsigned int opcode)
{
	return work_is_atomic(opcode)	      ? URDMA_ACC_REMOTE_ATOMIC
	       : opcode == URDMA_WR_READ      ? URDMA_ACC_REMOTE_READ
	       : opcode == URDMA_WR_WRITE     ? URDMA_ACC_REMOTE_WRITE
	       : opcode == URDMA_WR_WRITE_IMM ? URDMA_ACC_REMOTE_WRITE
					      : 0;
}

static bool scatters(unsigned int opcode)
{
	return opcode == URDMA_WR_READ || work_is_atomic(opcode);
}

/* ---- one case ------------------------------------------------------------------------------ */

static const unsigned int counted[] = {
	URDMA_CNT_TX_NAK_OTHER, URDMA_CNT_TX_NAK_RNR,	URDMA_CNT_TX_NAK_SEQ,
	URDMA_CNT_RX_NAK,	URDMA_CNT_RX_NAK_RNR,	URDMA_CNT_RETRY_EXC,
	URDMA_CNT_RNR_EXC,	URDMA_CNT_TX_TIMEOUT,	URDMA_CNT_MR_ERR,
	URDMA_CNT_RX_MALFORMED, URDMA_CNT_CQ_OVERFLOW,	URDMA_CNT_EQ_LOST,
	URDMA_CNT_DB_BAD,	URDMA_CNT_DB_OWNER,	URDMA_CNT_RX_READ_DROP,
	URDMA_CNT_CMD_ERR,	URDMA_CNT_RX_DROP_FULL,
};

static void count(struct scene *s, uint64_t value[2][URDMA_CNT_N])
{
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int i = 0; i < COUNT(counted); i++)
			value[n][counted[i]] = urdma_eh_counter(s->rig.side[n].eh, counted[i]);
}

static bool other_cqe(void *ctx, unsigned int side, const struct urdma_eh_cqe *cqe)
{
	struct scene *s = ctx;
	struct seen *seen = &s->seen[side];

	if (cqe->qpn != RIG_QPN(0))
		return false;
	assert_true(seen->n[cqe->recv] < MAX_CQES);
	seen->cqe[cqe->recv][seen->n[cqe->recv]++] = *cqe;
	return true;
}

static void collect(struct scene *s)
{
	struct urdma_eh_cqe cqe;

	for (unsigned int n = 0; n < 2; n++) {
		struct rig_side *side = &s->rig.side[n];
		struct seen *seen = &s->seen[n];

		for (unsigned int recv = 0; recv < 2; recv++)
			while (urdma_eh_poll_cq(recv ? &side->recv_cq : &side->send_cq, &cqe, 1))
				if (!other_cqe(s, n, &cqe))
					fail_msg("a CQE of QP 0x%x", cqe.qpn);
		seen->events += urdma_eh_eq_poll(side->eh, 0, seen->event + seen->events,
						 COUNT(seen->event) - seen->events, true);
	}
}

/* The requester has completed everything. */
static bool requester_done(void *arg)
{
	struct scene *s = arg;

	return urdma_eh_cq_ready(&s->rig.side[s->from].send_cq);
}

static uint64_t *slot_of(struct urdma_eh_ring *ring, uint32_t index)
{
	return (uint64_t *)(ring->base + ((size_t)(index & ((1u << ring->log_entries) - 1))
					  << ring->log_stride));
}

struct plan {
	unsigned int status[2][MAX_CQES]; /* send, receive */
	uint32_t wqe[2][MAX_CQES];
	unsigned int n[2];
	unsigned int loose; /* receives, from the first flushed on, that may also have succeeded */
};

static void plan_add(struct plan *p, bool recv, unsigned int status, uint32_t wqe)
{
	p->status[recv][p->n[recv]] = status;
	p->wqe[recv][p->n[recv]++] = wqe & 0xffff;
}

static void check_cqes(const struct seen *seen, const struct plan *p, const char *who)
{
	for (unsigned int recv = 0; recv < 2; recv++) {
		const char *kind = recv ? "receive" : "send";
		const struct urdma_eh_cqe *cqe = seen->cqe[recv];

		for (unsigned int i = 0; i < seen->n[recv] && i < p->n[recv]; i++) {
			if (cqe[i].status != p->status[recv][i])
				fail_msg("%s, %s CQE %u: status %u instead of %u", who, kind, i,
					 cqe[i].status, p->status[recv][i]);
			if (cqe[i].wqe != p->wqe[recv][i])
				fail_msg("%s, %s CQE %u: of WQE %u instead of %u", who, kind, i,
					 cqe[i].wqe, p->wqe[recv][i]);
			if (cqe[i].vendor)
				fail_msg("%s, %s CQE %u: vendor code %u", who, kind, i,
					 cqe[i].vendor);
		}
		if (seen->n[recv] != p->n[recv])
			fail_msg("%s: %u %s CQEs instead of %u", who, seen->n[recv], kind,
				 p->n[recv]);
	}
}

/* Checks the message's slot, except for what the message may have written. */
static void check_slot(struct scene *s, unsigned int n, bool partial)
{
	const uint8_t *now = s->rig.side[n].buffer + SLOT_AT;

	for (unsigned int i = 0; i < SLOT; i++) {
		if (now[i] == s->before[n][i] || (partial && i >= DATA && i < DATA + LEN))
			continue;
		fail_msg("byte %d of the data on side %u has changed", (int)i - (int)DATA, n);
	}
}

static void expect_count(const char *what, unsigned int side, uint64_t got, uint64_t want)
{
	if (got != want)
		fail_msg("side %u counts %llu %s instead of %llu", side, (unsigned long long)got,
			 what, (unsigned long long)want);
}

static struct work good(const struct status_case *c, unsigned int from, unsigned int opcode,
			unsigned int i)
{
	if (opcode == URDMA_WR_WRITE && c->without & URDMA_ACC_REMOTE_WRITE)
		opcode = URDMA_WR_SEND;
	if (opcode == URDMA_WR_READ &&
	    (c->without & URDMA_ACC_REMOTE_READ || c->no_rd_atomic || c->no_dest_rd_atomic))
		opcode = URDMA_WR_SEND;
	return (struct work){ .opcode = opcode,
			      .from = from,
			      .at = GOOD_AT + i * work_slot(LEN),
			      .len = opcode == URDMA_WR_READ ? READ_LEN : 1500,
			      .pieces = 1 + i % 3,
			      .seed = i };
}

/* Posts the message that fails, and its receive. */
static void put_bad(struct scene *s)
{
	const struct status_case *c = s->c;
	struct rig_side *tx = &s->rig.side[s->from], *rx = &s->rig.side[!s->from];
	bool atomic = work_is_atomic(c->opcode), writes = scatters(c->opcode);
	uint32_t len = atomic ? 8 : c->len ? c->len : LEN;
	struct urdma_eh_sge sge[2] = { { .length = len } }, dst = { .length = len };
	struct urdma_eh_send wr = { .opcode = c->opcode,
				    .signaled = c->untold,
				    .sge = sge,
				    .n_sge = 1,
				    .imm = 0x1234,
				    .swap_add = 5,
				    .compare = 6 };

	for (unsigned int n = 0; n < 2; n++) {
		uint8_t *slot = s->rig.side[n].buffer + SLOT_AT;

		rig_fill(slot, SLOT, 100 + n);
		memcpy(s->before[n], slot, SLOT);
	}
	flawed(s, s->from, c->local, writes ? URDMA_ACC_REMOTE_WRITE : URDMA_ACC_REMOTE_READ, len,
	       &sge[0].addr, &sge[0].lkey);
	if (c->local == LATE) {
		sge[1] = (struct urdma_eh_sge){ sge[0].addr + len - 10, 10, sge[0].lkey ^ 1 };
		sge[0].length -= 10;
		wr.n_sge = 2;
	}
	if (right_of(c->opcode))
		flawed(s, !s->from, c->remote, right_of(c->opcode), len, &wr.raddr, &wr.rkey);
	if (c->post)
		c->post(s, &wr);
	if (work_takes_recv(wr.opcode) && !c->no_recv) {
		flawed(s, !s->from, c->receive, URDMA_ACC_REMOTE_WRITE, len, &dst.addr, &dst.lkey);
		assert_int_equal(urdma_eh_put_recv(&rx->qp[0], &dst, 1), 0);
		if (c->receive == LATE) {
			uint64_t *w = slot_of(&rx->qp[0].rq, rx->qp[0].rq_pi - 1) + 2;

			w[0] = dst.addr;
			w[1] = URDMA_SET(URDMA_SGE1_LENGTH, len - 10) |
			       URDMA_SET(URDMA_SGE1_LKEY, dst.lkey);
			w[2] = dst.addr + len - 10;
			w[3] = URDMA_SET(URDMA_SGE1_LENGTH, 10) |
			       URDMA_SET(URDMA_SGE1_LKEY, dst.lkey ^ 1);
			w[-2] = 2;
		}
		if (c->spoil_recv)
			c->spoil_recv(s, slot_of(&rx->qp[0].rq, rx->qp[0].rq_pi - 1));
	}
	assert_int_equal(urdma_eh_put_send(&tx->qp[0], &wr), 0);
	if (c->spoil)
		c->spoil(s, slot_of(&tx->qp[0].sq, tx->qp[0].sq_pi - 1));
}

static uint32_t next_psn(struct scene *s, unsigned int n)
{
	struct urdma_eh_qp_info info;

	assert_int_equal(urdma_eh_qp_info(&s->rig.side[n].qp[0], &info), 0);
	return info.sq_psn;
}

/* Posts one more of each, when a QP is in ERR. */
static void post_in_err(struct scene *s, unsigned int n, struct plan *p)
{
	struct urdma_eh_qp *qp = &s->rig.side[n].qp[0];
	struct urdma_eh_sge sge = { data_addr(s, n), 8, s->mr[n][TIGHT].key };
	struct urdma_eh_send wr = { .opcode = URDMA_WR_SEND, .sge = &sge, .n_sge = 1 };

	plan_add(p, false, URDMA_WC_FLUSH_ERR, qp->sq_pi);
	plan_add(p, true, URDMA_WC_FLUSH_ERR, qp->rq_pi);
	assert_int_equal(urdma_eh_post_send(qp, &wr), 0);
	assert_int_equal(urdma_eh_post_recv(qp, &sge, 1), 0);
}

static void check_events(struct scene *s, unsigned int n, unsigned int type, const char *who)
{
	const struct seen *seen = &s->seen[n];

	for (unsigned int i = 0; i < seen->events; i++)
		if (seen->event[i].type != type || seen->event[i].obj != RIG_QPN(0))
			fail_msg("%s: event %u of object 0x%x", who, seen->event[i].type,
				 seen->event[i].obj);
	if (seen->events != !!type)
		fail_msg("%s: %u events, should be %u", who, seen->events, !!type);
}

static void check_state(struct scene *s, unsigned int n, bool err, const char *who)
{
	unsigned int state = rig_qp_state(&s->rig.side[n].qp[0]);

	if (state != (err ? URDMA_QPS_ERR : URDMA_QPS_RTS))
		fail_msg("%s: the QP is in state %u", who, state);
}

static void check_counters(struct scene *s, uint64_t before[2][URDMA_CNT_N])
{
	const struct status_case *c = s->c;
	unsigned int a = s->from, b = !a;
	uint64_t now[2][URDMA_CNT_N];

	count(s, now);
	for (unsigned int n = 0; n < 2; n++)
		for (unsigned int i = 0; i < COUNT(counted); i++)
			now[n][counted[i]] -= before[n][counted[i]];
	expect_count("NAKs", b, now[b][URDMA_CNT_TX_NAK_OTHER], c->naks);
	expect_count("NAKs", a, now[a][URDMA_CNT_TX_NAK_OTHER], 0);
	expect_count("RNR NAKs", b, now[b][URDMA_CNT_TX_NAK_RNR], c->rnr_naks);
	expect_count("sequence NAKs", b, now[b][URDMA_CNT_TX_NAK_SEQ], c->seq_naks);
	expect_count("RNR NAKs received", a, now[a][URDMA_CNT_RX_NAK_RNR], c->rnr_naks);
	if (!c->change[0].answer)
		expect_count("NAKs received", a, now[a][URDMA_CNT_RX_NAK], c->naks + c->seq_naks);
	expect_count("retries used up", a, now[a][URDMA_CNT_RETRY_EXC],
		     c->status == URDMA_WC_RETRY_EXC_ERR);
	expect_count("RNR retries used up", a, now[a][URDMA_CNT_RNR_EXC],
		     c->status == URDMA_WC_RNR_RETRY_EXC_ERR);
	if (c->status != URDMA_WC_RETRY_EXC_ERR)
		expect_count("time-outs", a, now[a][URDMA_CNT_TX_TIMEOUT], 0);
	expect_count("refused accesses", a, !!now[a][URDMA_CNT_MR_ERR], !!c->local);
	expect_count("refused accesses", b, !!now[b][URDMA_CNT_MR_ERR], c->remote || c->receive);
	for (unsigned int n = 0; n < 2; n++) {
		expect_count("malformed packets", n, now[n][URDMA_CNT_RX_MALFORMED], 0);
		expect_count("lost CQEs", n, now[n][URDMA_CNT_CQ_OVERFLOW], 0);
		expect_count("lost events", n, now[n][URDMA_CNT_EQ_LOST], 0);
		expect_count("bad doorbells", n,
			     now[n][URDMA_CNT_DB_BAD] + now[n][URDMA_CNT_DB_OWNER], 0);
		expect_count("dropped READs", n, now[n][URDMA_CNT_RX_READ_DROP], 0);
		expect_count("refused commands", n, now[n][URDMA_CNT_CMD_ERR], 0);
		expect_count("dropped frames", n, now[n][URDMA_CNT_RX_DROP_FULL], 0);
	}
}

static void run_case(struct scene *s, const struct status_case *c, unsigned int from)
{
	struct urdma_eh_conn conn;
	struct rig_side *tx, *rx;
	static const unsigned int front_opcode[] = { URDMA_WR_SEND, URDMA_WR_WRITE, URDMA_WR_READ };
	static const unsigned int front_at[] = { 2, 3, 6 };
	struct work proof[2], front[COUNT(front_opcode)], behind[2];
	struct plan plan[2] = { 0 }; /* requester, responder */
	uint64_t before[2][URDMA_CNT_N], end;
	bool dies = c->event || c->recv > 0;
	struct urdma_eh_sge spare;

	if (!s->running || s->priv == c->unprivileged)
		enter(s, !c->unprivileged);
	s->running = false; /* if this fails, the next case starts with a new rig */
	tx = &s->rig.side[from];
	rx = &s->rig.side[!from];
	conn = s->rig.config.conn;
	connect_pair(s, 1, &conn);
	conn.access &= ~c->without;
	if (c->no_rd_atomic)
		conn.max_rd_atomic = 0;
	if (c->no_dest_rd_atomic)
		conn.max_dest_rd_atomic = 0;
	if (c->retry) {
		conn.retry = 1;
		conn.rnr_retry = 1;
	}
	connect_pair(s, 0, &conn);
	collect(s);
	for (unsigned int n = 0; n < 2; n++)
		bind_windows(s, n);
	memset(s->seen, 0, sizeof(s->seen));
	memset(s->changed, 0, sizeof(s->changed));
	judge_start(&s->judge, &s->rig, false);
	s->from = from;
	if (c->strange)
		s->judge.port[!from].strange = 1;
	/* the QPs work, whatever was done to them before */
	for (unsigned int i = 0; i < 2; i++)
		proof[i] = good(c, i, URDMA_WR_SEND, i);
	work_run(&s->rig, proof, 2, LIMIT, "before");
	if (c->prepare)
		c->prepare(s);
	settle(s);
	count(s, before);

	/* before it, the message, after it; receives of both, more than are needed */
	work_bystanders(s->w, 1, BYSTANDERS_AT);
	for (unsigned int i = 0; i < WORK_BYSTANDERS; i++)
		work_put(&s->rig, &s->w[i]);
	s->bad_psn = next_psn(s, from) & 0xffffff;
	for (unsigned int i = 0; i < COUNT(front); i++) {
		front[i] = good(c, from, front_opcode[i], front_at[i]);
		front[i].unsignaled = i == 1;
		work_put(&s->rig, &front[i]);
		s->bad_psn += work_psns(front[i].opcode, front[i].len, MTU);
		if (i != 1)
			plan_add(&plan[0], false, 0, front[i].sq_index);
		if (work_takes_recv(front[i].opcode))
			plan_add(&plan[1], true, 0, front[i].rq_index);
	}
	s->bad_psn &= 0xffffff;
	if (c->apart) {
		urdma_eh_ring_rq(&rx->qp[0]);
		urdma_eh_ring_sq(&tx->qp[0]);
		settle(s);
	}
	s->c = c;
	plan_add(&plan[0], false, c->status, tx->qp[0].sq_pi);
	if (c->recv >= 0)
		plan_add(&plan[1], true, (unsigned int)c->recv, rx->qp[0].rq_pi);
	put_bad(s);
	for (unsigned int i = 0; i < 2 && !c->alone; i++) {
		behind[i] = good(c, from, i ? URDMA_WR_WRITE : URDMA_WR_SEND, 4 + i);
		behind[i].unsignaled = i;
		behind[i].late_recv = c->no_recv;
		work_put(&s->rig, &behind[i]);
		plan_add(&plan[0], false, URDMA_WC_FLUSH_ERR, behind[i].sq_index);
	}
	for (unsigned int i = 0; i < 2; i++) {
		spare = (struct urdma_eh_sge){ data_addr(s, from), 8, s->mr[from][TIGHT].key };
		if (!c->untold)
			plan_add(&plan[0], true, URDMA_WC_FLUSH_ERR, tx->qp[0].rq_pi);
		assert_int_equal(urdma_eh_put_recv(&tx->qp[0], &spare, 1), 0);
		spare = (struct urdma_eh_sge){ data_addr(s, !from), 8, s->mr[!from][TIGHT].key };
		if (!c->no_recv)
			assert_int_equal(urdma_eh_put_recv(&rx->qp[0], &spare, 1), 0);
	}
	for (unsigned int n = 0; n < 2; n++) {
		for (unsigned int i = 0; i < 2; i++)
			urdma_eh_ring_rq(&s->rig.side[n].qp[i]);
		urdma_eh_ring_sq(&s->rig.side[n].qp[1]);
	}
	if (c->later) {
		uint64_t now = urdma_cosim_now(s->rig.cosim);

		urdma_eh_doorbell(tx->eh, RIG_DB_PAGE, URDMA_DB_SQ,
				  URDMA_SET(URDMA_DBW_OBJ, RIG_QPN(0)) |
					  URDMA_SET(URDMA_DBW_INDEX, tx->qp[0].sq_pi - 2));
		rig_check(&s->rig, urdma_cosim_run_until(s->rig.cosim, now + c->later), "run");
	}
	urdma_eh_ring_sq(&tx->qp[0]);

	work_finish_beside(&s->rig, s->w, WORK_BYSTANDERS, LIMIT, "the other pair", other_cqe, s);
	end = urdma_cosim_now(s->rig.cosim) + LIMIT;
	while (s->seen[from].n[0] < plan[0].n[0]) {
		int ret = urdma_cosim_run_cond(s->rig.cosim, requester_done, s, end);

		if (ret == -ETIMEDOUT)
			fail_msg("the requester has %u of %u CQEs", s->seen[from].n[0],
				 plan[0].n[0]);
		rig_check(&s->rig, ret, "the CQE");
		collect(s);
	}
	settle(s);
	rig_check(&s->rig,
		  urdma_cosim_run_until(s->rig.cosim, urdma_cosim_now(s->rig.cosim) + 20000),
		  "run");
	settle(s);
	collect(s);
	/* messages after it that were carried out nevertheless */
	if (c->passes && s->seen[!from].n[1] > plan[1].n[1] &&
	    !s->seen[!from].cqe[1][plan[1].n[1]].status) {
		plan_add(&plan[1], true, 0, behind[0].rq_index);
		assert_memory_equal(rx->buffer + behind[0].at, behind[0].image[1], behind[0].slot);
	}
	if (dies)
		for (uint32_t i = plan[1].wqe[1][plan[1].n[1] - 1] + 1;
		     (uint16_t)i != (uint16_t)rx->qp[0].rq_pi; i++)
			plan_add(&plan[1], true, URDMA_WC_FLUSH_ERR, i);
	check_state(s, from, !c->untold, "requester");
	check_state(s, !from, dies, "responder");
	if (!c->untold)
		post_in_err(s, from, &plan[0]);
	if (dies)
		post_in_err(s, !from, &plan[1]);
	settle(s);
	collect(s);
	s->c = NULL;

	check_cqes(&s->seen[from], &plan[0], "requester");
	check_cqes(&s->seen[!from], &plan[1], "responder");
	check_events(s, from, 0, "requester");
	check_events(s, !from, c->event, "responder");
	s->c = c;
	check_counters(s, before);
	s->c = NULL;
	for (unsigned int i = 0; i < CHANGES; i++)
		if ((c->change[i].drop || c->change[i].value || c->change[i].cut) && !s->changed[i])
			fail_msg("the packet to be changed did not come");
	check_slot(s, from, c->partial && scatters(c->opcode));
	check_slot(s, !from, c->partial && !(c->opcode == URDMA_WR_READ));
	for (unsigned int i = 0; i < COUNT(front); i++)
		work_check_memory(&s->rig, &front[i]);
	for (unsigned int i = 0; i < 2 && !c->alone; i++)
		for (unsigned int n = 0; n < 2; n++)
			free(behind[i].image[n]);
	judge_end(&s->judge, "the wire");
	if (c->undo)
		c->undo(s);
	s->running = true;
}

/* ---- send WQEs that cannot be carried out -------------------------------------------------- */

static void set_field(uint64_t *w, uint64_t mask, uint64_t value)
{
	*w = (*w & ~mask) | URDMA_SET(mask, value);
}

#define SPOIL(name, statement)                         \
	static void name(struct scene *s, uint64_t *w) \
	{                                              \
		(void)s;                               \
		statement;                             \
	}

SPOIL(opcode_11, set_field(&w[0], URDMA_SQE0_OPCODE, 11))
SPOIL(opcode_200, set_field(&w[0], URDMA_SQE0_OPCODE, 200))
SPOIL(many_sges, set_field(&w[0], URDMA_SQE0_NUM_SGE, 7)) /* 6 fit into 128 bytes */
SPOIL(most_sges, set_field(&w[0], URDMA_SQE0_NUM_SGE, 255))
SPOIL(no_sges, set_field(&w[0], URDMA_SQE0_NUM_SGE, 0))
SPOIL(two_sges, (set_field(&w[0], URDMA_SQE0_NUM_SGE, 2), w[6] = w[4], w[7] = w[5]))
SPOIL(too_long, set_field(&w[3], URDMA_SQE3_LENGTH, 0x40000001))
SPOIL(much_too_long, set_field(&w[3], URDMA_SQE3_LENGTH, 0xffffffff))
SPOIL(one_more, set_field(&w[3], URDMA_SQE3_LENGTH, LEN + 1))
SPOIL(one_less, set_field(&w[3], URDMA_SQE3_LENGTH, LEN - 1))
SPOIL(read_one_more, set_field(&w[5], URDMA_SGE1_LENGTH, LEN - 1))
SPOIL(read_one_over, set_field(&w[5], URDMA_SGE1_LENGTH, LEN + 1))
SPOIL(nothing, set_field(&w[3], URDMA_SQE3_LENGTH, 0))
SPOIL(inlined, set_field(&w[0], URDMA_SQE0_NUM_SGE, 0); w[0] |= URDMA_SQE0_INLINE)
SPOIL(inline_97, set_field(&w[0], URDMA_SQE0_NUM_SGE, 0); w[0] |= URDMA_SQE0_INLINE;
      set_field(&w[3], URDMA_SQE3_LENGTH, 97)) /* 96 fit into 128 bytes */
SPOIL(length_4, set_field(&w[3], URDMA_SQE3_LENGTH, 4))
SPOIL(sge_of_4, set_field(&w[5], URDMA_SGE1_LENGTH, 4))
SPOIL(sge_of_16, set_field(&w[5], URDMA_SGE1_LENGTH, 16))
SPOIL(misaligned, w[2] += 4)

/* ---- receive WQEs -------------------------------------------------------------------------- */

SPOIL(recv_one_less, set_field(&w[3], URDMA_SGE1_LENGTH, LEN - 1))
SPOIL(recv_1000, set_field(&w[3], URDMA_SGE1_LENGTH, 1000))
SPOIL(recv_none, w[0] = 0)
SPOIL(recv_many_sges, w[0] = 8) /* 7 fit into 128 bytes */
SPOIL(recv_most_sges, w[0] = 255)

/* ---- local operations ---------------------------------------------------------------------- */

#define POST(name, statement)                                                                \
	static void name(struct scene *s, struct urdma_eh_send *wr)                          \
	{                                                                                    \
		const struct urdma_eh_mr *mr = s->mr[s->from];                               \
		*wr = (struct urdma_eh_send){ .opcode = wr->opcode, .raddr = mr[TIGHT].va }; \
		statement;                                                                   \
	}

#define NEW_KEY(object) (mr[object].index << 8 | 0x77)

static struct urdma_eh_map a_page(struct scene *s)
{
	return (struct urdma_eh_map){ .levels = 0,
				      .page_shift = 12,
				      .addr = urdma_embedded_bus(s->rig.host,
								 s->rig.side[s->from].buffer) &
					      ~UINT64_C(4095) };
}

/* A REG_MR that would succeed, except for what the case changes. */
static struct urdma_eh_map reg_map;

static void good_reg(struct scene *s, struct urdma_eh_send *wr, enum object i)
{
	reg_map = a_page(s);
	wr->rkey = s->mr[s->from][i].index << 8 | 0x77;
	wr->raddr = 0x1000;
	wr->mr_length = 4096;
	wr->mr_access = ALL_ACCESS;
	wr->map = &reg_map;
}

POST(reg_fast, (void)mr; good_reg(s, wr, FAST))
POST(reg_region, (void)mr; good_reg(s, wr, TIGHT))
POST(reg_window, (void)mr; good_reg(s, wr, WINDOW))
POST(reg_used, (void)mr; good_reg(s, wr, FAST_USED))
POST(reg_other_pd, (void)mr; good_reg(s, wr, FAST_OTHER))
POST(reg_no_key, (void)mr; good_reg(s, wr, FAST); wr->rkey = 0x399977)
POST(reg_key_range, (void)mr; good_reg(s, wr, FAST); wr->rkey |= 0x400000)
POST(reg_levels, (void)mr; good_reg(s, wr, FAST); reg_map.levels = 3)
POST(reg_page_small, (void)mr; good_reg(s, wr, FAST); reg_map.page_shift = 11)
POST(reg_page_large, (void)mr; good_reg(s, wr, FAST); reg_map.page_shift = 32)
POST(reg_wraps, (void)mr; good_reg(s, wr, FAST); wr->raddr = -(uint64_t)4095)
POST(reg_remote_write, (void)mr; good_reg(s, wr, FAST); wr->mr_access = URDMA_ACC_REMOTE_WRITE)
POST(reg_atomic, (void)mr; good_reg(s, wr, FAST); wr->mr_access = URDMA_ACC_REMOTE_ATOMIC)

POST(inv_region, wr->key = mr[TIGHT].key)
POST(inv_unregistered, wr->key = mr[FAST].key)
POST(inv_again, wr->key = mr[FAST_GONE].key)
POST(inv_variant, wr->key = mr[FAST_USED].key ^ 1)
POST(inv_no_key, wr->key = 0x399900)
POST(inv_key_range, wr->key = mr[FAST_USED].key | 0x400000)
POST(inv_other_pd, wr->key = mr[FAST_OTHER].key)
POST(inv_bound, wr->key = mr[FAST_BOUND].key)
POST(inv_unbound, wr->key = mr[WINDOW].key)
POST(inv_foreign, wr->key = mr[WINDOW_FOREIGN].key)

/* A BIND_MW that would succeed. */
static void good_bind(struct scene *s, struct urdma_eh_send *wr, enum object window,
		      enum object region)
{
	const struct urdma_eh_mr *mr = s->mr[s->from];

	wr->rkey = NEW_KEY(window);
	wr->key = mr[region].key;
	wr->mr_length = LEN;
	wr->mr_access = URDMA_ACC_REMOTE_READ;
}

POST(bind_no_right, (void)mr; good_bind(s, wr, WINDOW, TIGHT))
POST(bind_region_key, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->key ^= 1)
POST(bind_no_region, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->key = 0x399900)
POST(bind_key_range, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->key |= 0x400000)
POST(bind_window_range, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->rkey |= 0x400000)
POST(bind_unregistered, (void)mr; good_bind(s, wr, WINDOW, FAST))
POST(bind_to_window, (void)mr; good_bind(s, wr, WINDOW, WINDOW_READ))
POST(bind_bound, (void)mr; good_bind(s, wr, WINDOW_READ, BINDABLE))
POST(bind_region, (void)mr; good_bind(s, wr, TIGHT, BINDABLE))
POST(bind_no_window, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->rkey = 0x399900)
POST(bind_region_pd, (void)mr; good_bind(s, wr, WINDOW, BINDABLE_OTHER))
POST(bind_window_pd, (void)mr; good_bind(s, wr, WINDOW_OTHER, BINDABLE))
POST(bind_both_pd, (void)mr; good_bind(s, wr, WINDOW_OTHER, BINDABLE_OTHER))
POST(bind_nothing, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->mr_length = 0)
POST(bind_before, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->raddr--)
POST(bind_behind, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->raddr++)
POST(bind_long, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->mr_length++)
POST(bind_around, (void)mr; good_bind(s, wr, WINDOW, BINDABLE); wr->mr_length = -(uint64_t)8)
POST(bind_write, (void)mr; good_bind(s, wr, WINDOW, BINDABLE_READ);
     wr->mr_access = URDMA_ACC_REMOTE_WRITE)
POST(bind_atomic, (void)mr; good_bind(s, wr, WINDOW, BINDABLE_READ);
     wr->mr_access = URDMA_ACC_REMOTE_ATOMIC)

/* ---- keys that a SEND may not invalidate --------------------------------------------------- */

/* The peer's key. */
#define PEERS(name, object, change)                                 \
	static void name(struct scene *s, struct urdma_eh_send *wr) \
	{                                                           \
		wr->key = s->mr[!s->from][object].key change;       \
	}

PEERS(send_inv_region, TIGHT, )
PEERS(send_inv_unregistered, FAST, )
PEERS(send_inv_again, FAST_GONE, )
PEERS(send_inv_variant, FAST_USED, ^1)
PEERS(send_inv_no_key, FAST_USED, | 0x300000)
PEERS(send_inv_key_range, FAST_USED, | 0x400000)
PEERS(send_inv_other_pd, FAST_OTHER, )
PEERS(send_inv_no_right, FAST_LOCAL, )
PEERS(send_inv_bound, FAST_BOUND, )
PEERS(send_inv_unbound, WINDOW, )
PEERS(send_inv_foreign, WINDOW_FOREIGN, )

/* ---- memory that cannot be read ------------------------------------------------------------ */

/*
 * A region of a side, of the size of the data, elsewhere. Its page table or pages cannot be read.
 */
static void fresh(struct scene *s, unsigned int n, bool table)
{
	struct urdma_eh_mr *mr = &s->mr[n][FRESH];
	uint64_t bus;

	s->fresh = urdma_embedded_alloc(s->rig.host, 8192);
	assert_non_null(s->fresh);
	assert_int_equal(urdma_eh_create_mr_map(s->rig.side[n].eh, FRESH, 1, RIG_PD, ALL_ACCESS,
						s->fresh, 8192, 0x40000000, 1, 12, mr),
			 0);
	bus = urdma_embedded_bus(s->rig.host, table ? mr->map.table[0] : (void *)s->fresh);
	s->trap_first = bus;
	s->trap_last = bus + (table ? 15 : 4095);
	s->trap_hits = 0;
}

static void fresh_table_there(struct scene *s)
{
	fresh(s, !s->from, true);
}

static void fresh_pages_there(struct scene *s)
{
	fresh(s, !s->from, false);
}

static void fresh_table_here(struct scene *s)
{
	fresh(s, s->from, true);
}

static void fresh_pages_here(struct scene *s)
{
	fresh(s, s->from, false);
}

static void fresh_end(struct scene *s, unsigned int n)
{
	s->trap_last = 0;
	if (!s->trap_hits)
		fail_msg("nothing was read where it fails");
	assert_int_equal(urdma_eh_destroy_mr(&s->mr[n][FRESH]), 0);
	urdma_embedded_free(s->rig.host, s->fresh);
}

static void fresh_end_there(struct scene *s)
{
	fresh_end(s, !s->from);
}

static void fresh_end_here(struct scene *s)
{
	fresh_end(s, s->from);
}

static void at_fresh(struct scene *s, struct urdma_eh_send *wr)
{
	wr->raddr = 0x40000000;
	wr->rkey = s->mr[!s->from][FRESH].key;
}

static void spoil_to_fresh(struct scene *s, uint64_t *w)
{
	w[4] = 0x40000000;
	set_field(&w[5], URDMA_SGE1_LKEY, s->mr[s->from][FRESH].key);
}

static void spoil_recv_to_fresh(struct scene *s, uint64_t *w)
{
	w[2] = 0x40000000;
	set_field(&w[3], URDMA_SGE1_LKEY, s->mr[!s->from][FRESH].key);
}

/* ---- the single cases ----------------------------------------------------------------------- */

#define LOCAL_ERROR(n, op, st, sp)                                                        \
	{                                                                                 \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_##st, .spoil = sp, \
		.recv = NO_CQE                                                            \
	}
/* Packets are sent before the error is found. */
#define LATE_ERROR(n, op, st, sp)                                                         \
	{                                                                                 \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_##st, .spoil = sp, \
		.recv = NO_CQE, .partial = true                                           \
	}
#define LOCAL_OP(n, op, st, po)                                                          \
	{                                                                                \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_##st, .post = po, \
		.recv = NO_CQE                                                           \
	}
#define SEND_INV_ERROR(n, po)                                                                      \
	{                                                                                          \
		.name = n, .opcode = URDMA_WR_SEND_INV, .post = po, .untold = true, .alone = true, \
		.partial = true, .recv = URDMA_WC_REM_INV_REQ_ERR                                  \
	}
#define RECV_ERROR(n, op, st, re, sp, ...)                                       \
	{                                                                        \
		.name = n, .opcode = URDMA_WR_##op, .naks = 1, .spoil_recv = sp, \
		.status = URDMA_WC_##st, .recv = URDMA_WC_##re, __VA_ARGS__      \
	}
/* Packets of a request are changed: the responder's QP reports it by an event, or by a CQE. */
#define BAD_REQUEST(n, op, ...)                                                         \
	{                                                                               \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_REM_INV_REQ_ERR, \
		.recv = NO_CQE, .event = URDMA_EV_QP_REQ_ERR, .naks = 1, .change = {    \
			{ __VA_ARGS__ }                                                 \
		}                                                                       \
	}
#define BAD_REQUEST_LATE(n, op, ...)                                                      \
	{                                                                                 \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_REM_INV_REQ_ERR,   \
		.recv = NO_CQE, .event = URDMA_EV_QP_REQ_ERR, .naks = 1, .partial = true, \
		.change = {                                                               \
			{ __VA_ARGS__ }                                                   \
		}                                                                         \
	}
#define BAD_REQUEST_WQE(n, op, ...)                                                       \
	{                                                                                 \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_REM_INV_REQ_ERR,   \
		.recv = URDMA_WC_REM_INV_REQ_ERR, .naks = 1, .partial = true, .change = { \
			{ __VA_ARGS__ }                                                   \
		}                                                                         \
	}
#define BAD_ANSWER(n, op, st, ...)                                                           \
	{                                                                                    \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_##st, .recv = NO_CQE, \
		.passes = true, .partial = true, .change = {                                 \
			{ .answer = true, __VA_ARGS__ }                                      \
		}                                                                            \
	}

static const struct status_case single[] = {
	/* LOC_QP_OP_ERR */
	LOCAL_ERROR("opcode behind the last", SEND, LOC_QP_OP_ERR, opcode_11),
	LOCAL_ERROR("unknown opcode", SEND, LOC_QP_OP_ERR, opcode_200),
	LOCAL_ERROR("SEND: more SGEs than the slot has room for", SEND, LOC_QP_OP_ERR, many_sges),
	LOCAL_ERROR("WRITE: more SGEs than the slot has room for", WRITE, LOC_QP_OP_ERR, many_sges),
	LOCAL_ERROR("READ: more SGEs than the slot has room for", READ, LOC_QP_OP_ERR, many_sges),
	LOCAL_ERROR("SEND: 255 SGEs", SEND, LOC_QP_OP_ERR, most_sges),
	LOCAL_ERROR("SEND: inline longer than the slot", SEND, LOC_QP_OP_ERR, inline_97),
	LOCAL_ERROR("WRITE_IMM: inline longer than the slot", WRITE_IMM, LOC_QP_OP_ERR, inline_97),
	LOCAL_ERROR("READ: inline", READ, LOC_QP_OP_ERR, inlined),
	LOCAL_ERROR("ATOMIC_CS: inline", ATOMIC_CS, LOC_QP_OP_ERR, inlined),
	LOCAL_ERROR("ATOMIC_CS: two SGEs", ATOMIC_CS, LOC_QP_OP_ERR, two_sges),
	{ .name = "READ: MAX_RD_ATOMIC 0",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_LOC_QP_OP_ERR,
	  .recv = NO_CQE,
	  .no_rd_atomic = true },
	{ .name = "ATOMIC_FA: MAX_RD_ATOMIC 0",
	  .opcode = URDMA_WR_ATOMIC_FA,
	  .status = URDMA_WC_LOC_QP_OP_ERR,
	  .recv = NO_CQE,
	  .no_rd_atomic = true },
	{ .name = "SEND: payload not readable",
	  .opcode = URDMA_WR_SEND,
	  .status = URDMA_WC_LOC_QP_OP_ERR,
	  .recv = NO_CQE,
	  .prepare = fresh_pages_here,
	  .undo = fresh_end_here,
	  .spoil = spoil_to_fresh },
	{ .name = "WRITE: page table not readable",
	  .opcode = URDMA_WR_WRITE,
	  .status = URDMA_WC_LOC_QP_OP_ERR,
	  .recv = NO_CQE,
	  .prepare = fresh_table_here,
	  .undo = fresh_end_here,
	  .spoil = spoil_to_fresh },
	{ .name = "READ: page table of its target not readable",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_LOC_QP_OP_ERR,
	  .recv = NO_CQE,
	  .prepare = fresh_table_here,
	  .undo = fresh_end_here,
	  .passes = true,
	  .spoil = spoil_to_fresh },

	/* MW_BIND_ERR: "memory management operation error" */
	LOCAL_OP("REG_MR: no FAST region", REG_MR, MW_BIND_ERR, reg_region),
	LOCAL_OP("REG_MR: a window", REG_MR, MW_BIND_ERR, reg_window),
	LOCAL_OP("REG_MR: registered already", REG_MR, MW_BIND_ERR, reg_used),
	LOCAL_OP("REG_MR: other PD", REG_MR, MW_BIND_ERR, reg_other_pd),
	LOCAL_OP("REG_MR: no such key", REG_MR, MW_BIND_ERR, reg_no_key),
	LOCAL_OP("REG_MR: key out of range", REG_MR, MW_BIND_ERR, reg_key_range),
	LOCAL_OP("REG_MR: 3 levels", REG_MR, MW_BIND_ERR, reg_levels),
	LOCAL_OP("REG_MR: pages of 2 KB", REG_MR, MW_BIND_ERR, reg_page_small),
	LOCAL_OP("REG_MR: pages of 4 GB", REG_MR, MW_BIND_ERR, reg_page_large),
	LOCAL_OP("REG_MR: around the address space", REG_MR, MW_BIND_ERR, reg_wraps),
	LOCAL_OP("REG_MR: remote write without local", REG_MR, MW_BIND_ERR, reg_remote_write),
	LOCAL_OP("REG_MR: atomic without local write", REG_MR, MW_BIND_ERR, reg_atomic),
	LOCAL_OP("LOCAL_INV: no FAST region", LOCAL_INV, MW_BIND_ERR, inv_region),
	LOCAL_OP("LOCAL_INV: not registered", LOCAL_INV, MW_BIND_ERR, inv_unregistered),
	LOCAL_OP("LOCAL_INV: invalidated already", LOCAL_INV, MW_BIND_ERR, inv_again),
	LOCAL_OP("LOCAL_INV: key with another variant", LOCAL_INV, MW_BIND_ERR, inv_variant),
	LOCAL_OP("LOCAL_INV: no such key", LOCAL_INV, MW_BIND_ERR, inv_no_key),
	LOCAL_OP("LOCAL_INV: key out of range", LOCAL_INV, MW_BIND_ERR, inv_key_range),
	LOCAL_OP("LOCAL_INV: other PD", LOCAL_INV, MW_BIND_ERR, inv_other_pd),
	LOCAL_OP("LOCAL_INV: a window is bound to it", LOCAL_INV, MW_BIND_ERR, inv_bound),
	LOCAL_OP("LOCAL_INV: window not bound", LOCAL_INV, MW_BIND_ERR, inv_unbound),
	LOCAL_OP("LOCAL_INV: window of another QP", LOCAL_INV, MW_BIND_ERR, inv_foreign),
	LOCAL_OP("BIND_MW: region without the right", BIND_MW, MW_BIND_ERR, bind_no_right),
	LOCAL_OP("BIND_MW: region key with another variant", BIND_MW, MW_BIND_ERR, bind_region_key),
	LOCAL_OP("BIND_MW: no such region", BIND_MW, MW_BIND_ERR, bind_no_region),
	LOCAL_OP("BIND_MW: region key out of range", BIND_MW, MW_BIND_ERR, bind_key_range),
	LOCAL_OP("BIND_MW: window key out of range", BIND_MW, MW_BIND_ERR, bind_window_range),
	LOCAL_OP("BIND_MW: region not registered", BIND_MW, MW_BIND_ERR, bind_unregistered),
	LOCAL_OP("BIND_MW: to a window", BIND_MW, MW_BIND_ERR, bind_to_window),
	LOCAL_OP("BIND_MW: bound already", BIND_MW, MW_BIND_ERR, bind_bound),
	LOCAL_OP("BIND_MW: a region", BIND_MW, MW_BIND_ERR, bind_region),
	LOCAL_OP("BIND_MW: no such window", BIND_MW, MW_BIND_ERR, bind_no_window),
	LOCAL_OP("BIND_MW: region of another PD", BIND_MW, MW_BIND_ERR, bind_region_pd),
	LOCAL_OP("BIND_MW: window of another PD", BIND_MW, MW_BIND_ERR, bind_window_pd),
	LOCAL_OP("BIND_MW: both of another PD", BIND_MW, MW_BIND_ERR, bind_both_pd),
	LOCAL_OP("BIND_MW: no byte", BIND_MW, MW_BIND_ERR, bind_nothing),
	LOCAL_OP("BIND_MW: one byte before", BIND_MW, MW_BIND_ERR, bind_before),
	LOCAL_OP("BIND_MW: one byte behind", BIND_MW, MW_BIND_ERR, bind_behind),
	LOCAL_OP("BIND_MW: one byte too long", BIND_MW, MW_BIND_ERR, bind_long),
	LOCAL_OP("BIND_MW: around the address space", BIND_MW, MW_BIND_ERR, bind_around),
	LOCAL_OP("BIND_MW: remote write without local", BIND_MW, MW_BIND_ERR, bind_write),
	LOCAL_OP("BIND_MW: atomic without local write", BIND_MW, MW_BIND_ERR, bind_atomic),

	/* LOC_LEN_ERR, of the requester */
	LOCAL_ERROR("SEND: 1 GB and 1 byte", SEND, LOC_LEN_ERR, too_long),
	LOCAL_ERROR("WRITE: 1 GB and 1 byte", WRITE, LOC_LEN_ERR, too_long),
	LOCAL_ERROR("READ: 1 GB and 1 byte", READ, LOC_LEN_ERR, too_long),
	LOCAL_ERROR("SEND: 4 GB - 1", SEND, LOC_LEN_ERR, much_too_long),
	LATE_ERROR("SEND: SGEs one byte short", SEND, LOC_LEN_ERR, one_more),
	LATE_ERROR("WRITE: SGEs one byte short", WRITE, LOC_LEN_ERR, one_more),
	LATE_ERROR("SEND: SGEs one byte long", SEND, LOC_LEN_ERR, one_less),
	LATE_ERROR("WRITE_IMM: SGEs one byte long", WRITE_IMM, LOC_LEN_ERR, one_less),
	LOCAL_ERROR("ATOMIC_FA: length 4", ATOMIC_FA, LOC_LEN_ERR, length_4),
	LOCAL_ERROR("ATOMIC_FA: SGE of 4 bytes", ATOMIC_FA, LOC_LEN_ERR, sge_of_4),
	LOCAL_ERROR("ATOMIC_CS: SGE of 16 bytes", ATOMIC_CS, LOC_LEN_ERR, sge_of_16),
	LOCAL_ERROR("ATOMIC_FA: no SGE", ATOMIC_FA, LOC_LEN_ERR, no_sges),
	LOCAL_ERROR("SEND: no SGEs", SEND, LOC_LEN_ERR, no_sges),
	LOCAL_ERROR("SEND: SGEs and no length", SEND, LOC_LEN_ERR, nothing),
	{ .name = "READ: SGEs one byte short",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_LOC_LEN_ERR,
	  .recv = NO_CQE,
	  .passes = true,
	  .partial = true,
	  .spoil = read_one_more },
	{ .name = "READ: SGEs one byte long",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_LOC_LEN_ERR,
	  .recv = NO_CQE,
	  .passes = true,
	  .partial = true,
	  .spoil = read_one_over },
	{ .name = "READ: no SGEs",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_LOC_LEN_ERR,
	  .recv = NO_CQE,
	  .passes = true,
	  .spoil = no_sges },

	/* receive WQEs: LOC_LEN_ERR, LOC_QP_OP_ERR; to the requester REM_INV_REQ_ERR, REM_OP_ERR */
	RECV_ERROR("receive: one byte short", SEND, REM_INV_REQ_ERR, LOC_LEN_ERR, recv_one_less,
		   .partial = true),
	RECV_ERROR("receive: one byte short, with immediate", SEND_IMM, REM_INV_REQ_ERR,
		   LOC_LEN_ERR, recv_one_less, .partial = true),
	RECV_ERROR("receive: shorter than a packet", SEND, REM_INV_REQ_ERR, LOC_LEN_ERR, recv_1000,
		   .partial = true),
	RECV_ERROR("receive: no SGEs", SEND, REM_INV_REQ_ERR, LOC_LEN_ERR, recv_none),
	RECV_ERROR("receive: more SGEs than the slot has room for", SEND, REM_OP_ERR, LOC_QP_OP_ERR,
		   recv_many_sges),
	RECV_ERROR("receive: 255 SGEs", SEND, REM_OP_ERR, LOC_QP_OP_ERR, recv_most_sges),
	RECV_ERROR("receive: page table not readable", SEND, REM_OP_ERR, LOC_QP_OP_ERR,
		   spoil_recv_to_fresh, .prepare = fresh_table_there, .undo = fresh_end_there),

	/* keys to invalidate: the responder's REM_INV_REQ_ERR, acknowledged (9.9.6.3, class J) */
	SEND_INV_ERROR("SEND_INV: no FAST region", send_inv_region),
	SEND_INV_ERROR("SEND_INV: not registered", send_inv_unregistered),
	SEND_INV_ERROR("SEND_INV: invalidated already", send_inv_again),
	SEND_INV_ERROR("SEND_INV: key with another variant", send_inv_variant),
	SEND_INV_ERROR("SEND_INV: no such key", send_inv_no_key),
	SEND_INV_ERROR("SEND_INV: key out of range", send_inv_key_range),
	SEND_INV_ERROR("SEND_INV: other PD", send_inv_other_pd),
	SEND_INV_ERROR("SEND_INV: region without remote rights", send_inv_no_right),
	SEND_INV_ERROR("SEND_INV: a window is bound to it", send_inv_bound),
	SEND_INV_ERROR("SEND_INV: window not bound", send_inv_unbound),
	SEND_INV_ERROR("SEND_INV: window of another QP", send_inv_foreign),

	/* REM_INV_REQ_ERR: requests changed on the wire. Opcodes: 0 SEND_FIRST, 1 MIDDLE, 2 LAST, 4
	 * ONLY, 6 WRITE_FIRST, 7 MIDDLE, 8 LAST, 0xa ONLY, 0xc READ, 0x13 CS, 0x14 FA */
	{ .name = "request: opcode that RC does not have",
	  .opcode = URDMA_WR_SEND,
	  .status = URDMA_WC_REM_INV_REQ_ERR,
	  .recv = NO_CQE,
	  .event = URDMA_EV_QP_REQ_ERR,
	  .naks = 1,
	  .strange = true,
	  .change = { { .opcode = 0, .value = 0x1f } } },
	{ .name = "request: opcode that RC does not have, in a message",
	  .opcode = URDMA_WR_SEND,
	  .status = URDMA_WC_REM_INV_REQ_ERR,
	  .recv = URDMA_WC_REM_INV_REQ_ERR,
	  .naks = 1,
	  .partial = true,
	  .strange = true,
	  .change = { { .opcode = 1, .value = 0x15 } } },
	BAD_REQUEST("request: SEND_MIDDLE first", SEND, .opcode = 0, .value = 1),
	BAD_REQUEST("request: SEND_LAST first", SEND, .opcode = 0, .value = 2),
	BAD_REQUEST("request: WRITE_MIDDLE first", SEND, .opcode = 0, .value = 7),
	BAD_REQUEST_WQE("request: WRITE_MIDDLE in a SEND", SEND, .opcode = 1, .value = 7),
	BAD_REQUEST_WQE("request: WRITE_LAST in a SEND", SEND, .opcode = 2, .value = 8),
	BAD_REQUEST_WQE("request: SEND_ONLY in a SEND", SEND, .opcode = 1, .value = 4),
	{ .name = "request: READ in a SEND",
	  .opcode = URDMA_WR_SEND,
	  .status = URDMA_WC_REM_INV_REQ_ERR,
	  .recv = URDMA_WC_REM_INV_REQ_ERR,
	  .naks = 1,
	  .partial = true,
	  .strange = true, /* with a payload */
	  .change = { { .opcode = 1, .value = 0xc } } },
	BAD_REQUEST_WQE("request: SEND_FIRST shorter than the MTU", SEND, .opcode = 1, .value = 1,
			.cut = 4),
	BAD_REQUEST("request: first packet shorter than the MTU", SEND, .opcode = 0,
		    .offset = BTH_OPCODE, .cut = 4),
	BAD_REQUEST_WQE("request: last packet without payload", SEND, .opcode = 2, .value = 2,
			.cut = 956),
	BAD_REQUEST_LATE("request: RETH one byte long", WRITE, .opcode = 6, .offset = RETH_LEN0,
			 .value = (LEN + 1) & 0xff),
	BAD_REQUEST_LATE("request: RETH one byte short", WRITE, .opcode = 6, .offset = RETH_LEN0,
			 .value = (LEN - 1) & 0xff),
	BAD_REQUEST("request: WRITE longer than 2 GB", WRITE, .opcode = 6, .offset = RETH_LEN,
		    .value = 0x80),
	BAD_REQUEST_LATE("request: SEND_MIDDLE in a WRITE", WRITE, .opcode = 7, .value = 1),
	BAD_REQUEST_LATE("request: WRITE_MIDDLE shorter than the MTU", WRITE, .opcode = 7,
			 .value = 7, .cut = 4),
	BAD_REQUEST("request: READ longer than 2 GB", READ, .opcode = 0xc, .offset = RETH_LEN,
		    .value = 0x80),
	BAD_REQUEST("request: ATOMIC_CS misaligned", ATOMIC_CS, .opcode = 0x13, .offset = EXT_VA,
		    .value = 1),
	BAD_REQUEST("request: ATOMIC_FA misaligned", ATOMIC_FA, .opcode = 0x14, .offset = EXT_VA,
		    .value = 4),
	{ .name = "ATOMIC_FA: misaligned",
	  .opcode = URDMA_WR_ATOMIC_FA,
	  .status = URDMA_WC_REM_INV_REQ_ERR,
	  .recv = NO_CQE,
	  .event = URDMA_EV_QP_REQ_ERR,
	  .naks = 1,
	  .spoil = misaligned },
	{ .name = "ATOMIC_CS: misaligned",
	  .opcode = URDMA_WR_ATOMIC_CS,
	  .status = URDMA_WC_REM_INV_REQ_ERR,
	  .recv = NO_CQE,
	  .event = URDMA_EV_QP_REQ_ERR,
	  .naks = 1,
	  .spoil = misaligned },
	{ .name = "request: READ with MAX_DEST_RD_ATOMIC 0",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_REM_INV_REQ_ERR,
	  .recv = NO_CQE,
	  .event = URDMA_EV_QP_REQ_ERR,
	  .naks = 1,
	  .no_dest_rd_atomic = true },
	{ .name = "request: ATOMIC_CS with MAX_DEST_RD_ATOMIC 0",
	  .opcode = URDMA_WR_ATOMIC_CS,
	  .status = URDMA_WC_REM_INV_REQ_ERR,
	  .recv = NO_CQE,
	  .event = URDMA_EV_QP_REQ_ERR,
	  .naks = 1,
	  .no_dest_rd_atomic = true },

/* REM_INV_REQ_ERR: what the QP does not allow */
#define QP_RIGHT(n, op, right, ...)                                                     \
	{                                                                               \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_REM_INV_REQ_ERR, \
		.recv = NO_CQE, .event = URDMA_EV_QP_REQ_ERR, .naks = 1,                \
		.without = URDMA_ACC_REMOTE_##right, __VA_ARGS__                        \
	}
	QP_RIGHT("QP without the right: WRITE", WRITE, WRITE, ),
	QP_RIGHT("QP without the right: WRITE_IMM", WRITE_IMM, WRITE, ),
	QP_RIGHT("QP without the right: WRITE_IMM, one packet", WRITE_IMM, WRITE, .len = SHORT),
	QP_RIGHT("QP without the right: READ", READ, READ, ),
	QP_RIGHT("QP without the right: ATOMIC_CS", ATOMIC_CS, ATOMIC, ),
	QP_RIGHT("QP without the right: ATOMIC_FA", ATOMIC_FA, ATOMIC, ),

/* REM_OP_ERR: memory of the responder that cannot be read */
#define UNREADABLE(n, op, what, ...)                                                          \
	{                                                                                     \
		.name = n, .opcode = URDMA_WR_##op, .status = URDMA_WC_REM_OP_ERR, .naks = 1, \
		.post = at_fresh, .prepare = fresh_##what##_there, .undo = fresh_end_there,   \
		__VA_ARGS__                                                                   \
	}
	UNREADABLE("WRITE: remote page table not readable", WRITE, table, .recv = NO_CQE,
		   .event = URDMA_EV_QP_FATAL),
	UNREADABLE("WRITE_IMM: remote page table not readable", WRITE_IMM, table, .len = SHORT,
		   .recv = URDMA_WC_LOC_QP_OP_ERR),
	UNREADABLE("READ: remote page table not readable", READ, table, .recv = NO_CQE,
		   .event = URDMA_EV_QP_FATAL, .passes = true),
	UNREADABLE("READ: remote memory not readable", READ, pages, .recv = NO_CQE,
		   .event = URDMA_EV_QP_FATAL, .passes = true),
	UNREADABLE("ATOMIC_FA: remote page table not readable", ATOMIC_FA, table, .recv = NO_CQE,
		   .event = URDMA_EV_QP_FATAL),
	UNREADABLE("ATOMIC_CS: remote memory not readable", ATOMIC_CS, pages, .recv = NO_CQE,
		   .event = URDMA_EV_QP_FATAL),

	/* answers changed on the wire. 0xd READ_RSP_FIRST, 0xe MIDDLE, 0xf LAST, 0x10 ONLY, 0x11
	 * ACK, 0x12 ATOMIC_ACK */
	BAD_ANSWER("answer: READ_RSP_LAST first", READ, BAD_RESP_ERR, .opcode = 0xd, .value = 0xf),
	BAD_ANSWER("answer: READ_RSP_MIDDLE first", READ, BAD_RESP_ERR, .opcode = 0xd,
		   .value = 0xe),
	BAD_ANSWER("answer: READ_RSP_ONLY first", READ, BAD_RESP_ERR, .opcode = 0xd, .value = 0x10),
	BAD_ANSWER("answer: READ_RSP_FIRST in the middle", READ, BAD_RESP_ERR, .opcode = 0xe,
		   .value = 0xd),
	BAD_ANSWER("answer: READ_RSP_LAST in the middle", READ, BAD_RESP_ERR, .opcode = 0xe,
		   .value = 0xf),
	BAD_ANSWER("answer: READ_RSP_MIDDLE last", READ, BAD_RESP_ERR, .opcode = 0xf, .value = 0xe),
	BAD_ANSWER("answer: READ_RSP_ONLY last", READ, BAD_RESP_ERR, .opcode = 0xf, .value = 0x10),
	BAD_ANSWER("answer: first response too short", READ, BAD_RESP_ERR, .opcode = 0xd,
		   .value = 0xd, .cut = 4),
	BAD_ANSWER("answer: middle response too short", READ, BAD_RESP_ERR, .opcode = 0xe,
		   .value = 0xe, .cut = 64),
	BAD_ANSWER("answer: last response too short", READ, BAD_RESP_ERR, .opcode = 0xf,
		   .value = 0xf, .cut = 4),
	BAD_ANSWER("answer: last response empty", READ, BAD_RESP_ERR, .opcode = 0xf, .value = 0xf,
		   .cut = 956),
	BAD_ANSWER("answer: READ response to an ATOMIC", ATOMIC_FA, BAD_RESP_ERR, .opcode = 0x12,
		   .value = 0x10),
/* an acknowledgement may cover more than one message, so nothing follows these */
#define BAD_ACK(n, st, syndrome)                                                                  \
	{                                                                                         \
		.name = n, .opcode = URDMA_WR_SEND, .status = URDMA_WC_##st, .recv = 0,           \
		.partial = true, .alone = true, .change = {                                       \
			{ .answer = true, .opcode = 0x11, .offset = SYNDROME, .value = syndrome } \
		}                                                                                 \
	}
	BAD_ACK("answer: NAK of request", REM_INV_REQ_ERR, 0x61),
	BAD_ACK("answer: NAK of access", REM_ACCESS_ERR, 0x62),
	BAD_ACK("answer: NAK of operation", REM_OP_ERR, 0x63),
	BAD_ACK("answer: NAK with code 4", BAD_RESP_ERR, 0x64),
	BAD_ACK("answer: NAK with code 5", BAD_RESP_ERR, 0x65),
	BAD_ACK("answer: NAK with code 31", BAD_RESP_ERR, 0x7f),
	BAD_ACK("answer: AETH of a reserved kind", BAD_RESP_ERR, 0x40),
	BAD_ACK("answer: AETH of a reserved kind, all ones", BAD_RESP_ERR, 0x5f),
	BAD_ANSWER("answer: READ response with a NAK", READ, BAD_RESP_ERR, .opcode = 0xd,
		   .offset = SYNDROME, .value = 0x60),
	BAD_ANSWER("answer: ATOMIC acknowledge with an RNR NAK", ATOMIC_FA, BAD_RESP_ERR,
		   .opcode = 0x12, .offset = SYNDROME, .value = 0x2e),

	/* RETRY_EXC_ERR, RNR_RETRY_EXC_ERR */
	{ .name = "retries: SEND lost again and again",
	  .opcode = URDMA_WR_SEND,
	  .status = URDMA_WC_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .retry = true,
	  .change = { { .opcode = ANY_OPCODE, .drop = true, .always = true } } },
	{ .name = "retries: WRITE lost again and again",
	  .opcode = URDMA_WR_WRITE,
	  .status = URDMA_WC_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .retry = true,
	  .change = { { .opcode = ANY_OPCODE, .drop = true, .always = true } } },
	{ .name = "retries: first packet lost again and again",
	  .opcode = URDMA_WR_WRITE,
	  .status = URDMA_WC_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .seq_naks = 1,
	  .retry = true,
	  .change = { { .opcode = 6, .drop = true, .always = true } } },
	{ .name = "retries: READ lost again and again",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .seq_naks = 1,
	  .retry = true,
	  .change = { { .opcode = 0xc, .drop = true, .always = true } } },
	{ .name = "retries: ACKs lost",
	  .opcode = URDMA_WR_SEND,
	  .status = URDMA_WC_RETRY_EXC_ERR,
	  .recv = 0,
	  .retry = true,
	  .alone = true,
	  .partial = true,
	  .change = { { .opcode = 0x11, .answer = true, .drop = true, .always = true } } },
	{ .name = "retries: READ responses lost",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .retry = true,
	  .apart = true,
	  .passes = true,
	  .change = { { .opcode = ANY_OPCODE, .answer = true, .drop = true, .always = true } } },
	{ .name = "retries: one READ response lost again and again",
	  .opcode = URDMA_WR_READ,
	  .status = URDMA_WC_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .retry = true,
	  .passes = true,
	  .change = { { .opcode = 0xd, .answer = true, .drop = true, .always = true } } },
	{ .name = "retries: ATOMIC_ACKs lost",
	  .opcode = URDMA_WR_ATOMIC_FA,
	  .status = URDMA_WC_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .retry = true,
	  .passes = true,
	  .partial = true,
	  .change = { { .opcode = ANY_OPCODE, .answer = true, .drop = true, .always = true } } },
	{ .name = "RNR retries: SEND",
	  .opcode = URDMA_WR_SEND,
	  .status = URDMA_WC_RNR_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .rnr_naks = 2,
	  .retry = true,
	  .no_recv = true },
	{ .name = "RNR retries: WRITE_IMM",
	  .opcode = URDMA_WR_WRITE_IMM,
	  .len = SHORT,
	  .status = URDMA_WC_RNR_RETRY_EXC_ERR,
	  .recv = NO_CQE,
	  .rnr_naks = 2,
	  .retry = true,
	  .no_recv = true },

	/* last, with QPs that may not register */
	{ .name = "REG_MR: no privilege",
	  .opcode = URDMA_WR_REG_MR,
	  .status = URDMA_WC_LOC_QP_OP_ERR,
	  .recv = NO_CQE,
	  .post = reg_fast,
	  .unprivileged = true },
};

/* ---- products: each operation with each flaw ----------------------------------------------- */

#define MAX_CASES 400u

static struct status_case made[MAX_CASES];
static char made_name[MAX_CASES][80];
static unsigned int n_made;

static void make(struct status_case *c, const char *where, enum flaw flaw)
{
	snprintf(made_name[n_made], sizeof(made_name[0]), "%s%s, %s: %s", work_name(c->opcode),
		 c->len ? " of one packet" : "", where, flaw_name[flaw]);
	c->name = made_name[n_made];
	made[n_made++] = *c;
}

#define BIT(n) (1u << (n))

/* LOC_PROT_ERR. */
static void make_local(void)
{
	static const unsigned int opcode[] = { URDMA_WR_SEND,	  URDMA_WR_SEND_IMM,
					       URDMA_WR_WRITE,	  URDMA_WR_WRITE_IMM,
					       URDMA_WR_READ,	  URDMA_WR_ATOMIC_CS,
					       URDMA_WR_ATOMIC_FA };
	const unsigned int remote_only = BIT(FOREIGN) | BIT(WINDOW_RIGHT) | BIT(WINDOW_BEFORE) |
					 BIT(WINDOW_BEHIND) | BIT(UNBOUND);

	for (unsigned int o = 0; o < COUNT(opcode); o++) {
		for (enum flaw flaw = NO_KEY; flaw < FLAWS; flaw++) {
			bool scatter = scatters(opcode[o]);
			struct status_case c = { .opcode = opcode[o],
						 .status = URDMA_WC_LOC_PROT_ERR,
						 .recv = NO_CQE,
						 .local = flaw,
						 .passes = scatter,
						 .partial = scatter || flaw == BEHIND ||
							    flaw == LATE };

			if (remote_only & BIT(flaw) || (flaw == NO_RIGHT && !scatter) ||
			    (flaw == LATE && work_is_atomic(opcode[o])))
				continue;
			make(&c, "SGE", flaw);
		}
	}
}

/* REM_ACCESS_ERR. */
static void make_remote(void)
{
	static const struct {
		unsigned int opcode;
		uint32_t len;
	} kind[] = { { URDMA_WR_WRITE, 0 },	{ URDMA_WR_WRITE, SHORT },
		     { URDMA_WR_WRITE_IMM, 0 }, { URDMA_WR_WRITE_IMM, SHORT },
		     { URDMA_WR_READ, 0 },	{ URDMA_WR_READ, SHORT },
		     { URDMA_WR_ATOMIC_CS, 0 }, { URDMA_WR_ATOMIC_FA, 0 } };

	for (unsigned int k = 0; k < COUNT(kind); k++) {
		for (enum flaw flaw = NO_KEY; flaw < FLAWS; flaw++) {
			bool imm = kind[k].opcode == URDMA_WR_WRITE_IMM;
			/* the last packet is refused, or it is the only one */
			bool late = kind[k].len || flaw == BEHIND || flaw == WINDOW_BEHIND;
			struct status_case c = { .opcode = kind[k].opcode,
						 .len = kind[k].len,
						 .status = URDMA_WC_REM_ACCESS_ERR,
						 .recv = NO_CQE,
						 .naks = 1,
						 .remote = flaw,
						 .partial = true };

			if (flaw == AS_WINDOW || flaw == LATE ||
			    (work_is_atomic(c.opcode) &&
			     BIT(flaw) & (BIT(WINDOW_BEFORE) | BIT(WINDOW_BEHIND))))
				continue;
			if (imm && late)
				c.recv = URDMA_WC_LOC_ACCESS_ERR;
			else
				c.event = URDMA_EV_QP_ACCESS_ERR;
			if (c.len || (flaw != BEHIND && flaw != WINDOW_BEHIND))
				c.partial = false;
			make(&c, "remote", flaw);
		}
	}
}

/* Refused by the responder, with more packets arriving at each moment until the requester knows. */
static void make_races(void)
{
	static const unsigned int opcode[] = { URDMA_WR_WRITE, URDMA_WR_ATOMIC_FA, URDMA_WR_SEND,
					       URDMA_WR_READ };

	for (unsigned int o = 0; o < COUNT(opcode); o++) {
		for (unsigned int later = 60; later < 1200; later += 120) {
			bool send = opcode[o] == URDMA_WR_SEND;
			struct status_case c = { .opcode = opcode[o],
						 .len = later / 60 % 4 == 1 ? SHORT : 0,
						 .status = URDMA_WC_REM_ACCESS_ERR,
						 .recv = NO_CQE,
						 .event = URDMA_EV_QP_ACCESS_ERR,
						 .naks = 1,
						 .remote = VARIANT,
						 .later = later };

			if (send) {
				c.status = URDMA_WC_REM_OP_ERR;
				c.recv = URDMA_WC_LOC_PROT_ERR;
				c.event = 0;
				c.remote = NONE;
				c.receive = VARIANT;
			}
			make(&c, "", NONE);
			snprintf(made_name[n_made - 1], sizeof(made_name[0]),
				 "%s refused, others %u ns behind", work_name(c.opcode), 4 * later);
		}
	}
}

/* The responder's LOC_PROT_ERR, to the requester REM_OP_ERR. */
static void make_receive(void)
{
	const unsigned int remote_only = BIT(FOREIGN) | BIT(WINDOW_RIGHT) | BIT(WINDOW_BEFORE) |
					 BIT(WINDOW_BEHIND) | BIT(UNBOUND);

	for (unsigned int o = 0; o < 2; o++) {
		for (enum flaw flaw = NO_KEY; flaw < FLAWS; flaw++) {
			struct status_case c = { .opcode = o ? URDMA_WR_SEND_IMM : URDMA_WR_SEND,
						 .status = URDMA_WC_REM_OP_ERR,
						 .recv = URDMA_WC_LOC_PROT_ERR,
						 .naks = 1,
						 .receive = flaw,
						 .partial = flaw == BEHIND || flaw == LATE };

			if (!(remote_only & BIT(flaw)))
				make(&c, "receive", flaw);
		}
	}
}

/* ---- all of it ----------------------------------------------------------------------------- */

struct run {
	const struct status_case *c;
	unsigned int from;
	char name[112];
};

static void run(void **state)
{
	const struct run *r = *state;

	run_case(&scene, r->c, r->from);
}

#define MAX_RUNS (2 * (MAX_CASES + 200))

static struct run runs[MAX_RUNS];
static struct CMUnitTest test[MAX_RUNS];
static unsigned int n_tests;

static void add(const struct status_case *c, int argc, char **argv)
{
	for (unsigned int from = 0; from < 2; from++) {
		struct run *r = &runs[n_tests];
		*r = (struct run){ .c = c, .from = from };
		snprintf(r->name, sizeof(r->name), "%s (from side %u)", c->name, from);
		if (rig_left_out(r->name, 6) || !rig_wanted(r->name, argc - 1, argv + 1))
			continue;
		test[n_tests++] = (struct CMUnitTest){ .name = r->name,
						       .test_func = run,
						       .initial_state = r };
	}
}

int main(int argc, char **argv)
{
	int ret;

	make_local();
	make_remote();
	make_races();
	make_receive();
	for (unsigned int i = 0; i < n_made; i++)
		add(&made[i], argc, argv);
	for (unsigned int i = 0; i < COUNT(single); i++)
		add(&single[i], argc, argv);
	ret = _cmocka_run_group_tests("engine/status", test, n_tests, NULL, NULL);
	leave(&scene);
	return ret;
}
