// SPDX-License-Identifier: Apache-2.0
#include "rc_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icrc.h"

#define MAX_REPORTS 20u
#define PSN_MASK    0xffffffu
#define FAR	    0x100000   /* at least so many PSNs between two lives of a QP */
#define WINDOW	    (1u << 14) /* PSNs whose packets are remembered, in each direction */
#define PENDING	    64u	       /* READs and ATOMICs of the peer that wait for their answer */
#define CAUSES	    16u
#define MACS	    8u /* addresses of a port */
#define GAPS	    8u
#define UNAS	    2048u /* remembered moves of una: one per READ response */
#define DEFAULT_LAG 50000u
#define TURN_NS	    3000u
#define US	    UINT64_C(1000)
/* Nobody leaves a QP alone for so long in the middle of its work. */
#define PAUSE (UINT64_C(500000) * US)
#define NEAR  4096 /* a READ takes as many PSNs as its answer has packets */

/* Upper three bits of a BTH opcode (volume 1, table 38; annex A14) */
enum { TRANSPORT_RC = 0, TRANSPORT_XRC = 5 };

/* The lower five bits: XRC has the codes of RC */
enum {
	SEND_FIRST,
	SEND_MIDDLE,
	SEND_LAST,
	SEND_LAST_IMM,
	SEND_ONLY,
	SEND_ONLY_IMM,
	WRITE_FIRST,
	WRITE_MIDDLE,
	WRITE_LAST,
	WRITE_LAST_IMM,
	WRITE_ONLY,
	WRITE_ONLY_IMM,
	READ_REQUEST,
	READ_FIRST,
	READ_MIDDLE,
	READ_LAST,
	READ_ONLY,
	ACKNOWLEDGE,
	ATOMIC_ACK,
	COMPARE_SWAP,
	FETCH_ADD,
	SEND_LAST_INV = 0x16,
	SEND_ONLY_INV = 0x17,
	FLUSH = 0x1c, /* annex A19 */
	ATOMIC_WRITE = 0x1d,
};

/* Properties of an opcode. */
enum {
	IS_FIRST = 1,
	IS_LAST = 2,
	IS_REQUEST = 4,
	IS_WRITE = 8, /* otherwise SEND, for opcodes with parts */
	HAS_RETH = 16,
	HAS_IMM = 32,
	HAS_AETH = 64,
	IS_ATOMIC = 128,
	IS_READ_RSP = 256,
	HAS_PAYLOAD = 512,
	KNOWN = 1024,
	IS_READ = 2048, /* READ responses answer it; but for a READ: one of 0 bytes */
	HAS_FETH = 4096,
};

static const uint16_t kinds[] = {
	[SEND_FIRST] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_FIRST,
	[SEND_MIDDLE] = KNOWN | IS_REQUEST | HAS_PAYLOAD,
	[SEND_LAST] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_LAST,
	[SEND_LAST_IMM] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_LAST | HAS_IMM,
	[SEND_ONLY] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_FIRST | IS_LAST,
	[SEND_ONLY_IMM] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_FIRST | IS_LAST | HAS_IMM,
	[WRITE_FIRST] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_WRITE | IS_FIRST | HAS_RETH,
	[WRITE_MIDDLE] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_WRITE,
	[WRITE_LAST] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_WRITE | IS_LAST,
	[WRITE_LAST_IMM] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_WRITE | IS_LAST | HAS_IMM,
	[WRITE_ONLY] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_WRITE | IS_FIRST | IS_LAST | HAS_RETH,
	[WRITE_ONLY_IMM] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_WRITE | IS_FIRST | IS_LAST |
			   HAS_RETH | HAS_IMM,
	[READ_REQUEST] = KNOWN | IS_REQUEST | IS_FIRST | IS_LAST | HAS_RETH | IS_READ,
	[READ_FIRST] = KNOWN | IS_READ_RSP | HAS_PAYLOAD | IS_FIRST | HAS_AETH,
	[READ_MIDDLE] = KNOWN | IS_READ_RSP | HAS_PAYLOAD,
	[READ_LAST] = KNOWN | IS_READ_RSP | HAS_PAYLOAD | IS_LAST | HAS_AETH,
	[READ_ONLY] = KNOWN | IS_READ_RSP | HAS_PAYLOAD | IS_FIRST | IS_LAST | HAS_AETH,
	[ACKNOWLEDGE] = KNOWN | HAS_AETH,
	[ATOMIC_ACK] = KNOWN | HAS_AETH | IS_ATOMIC,
	[COMPARE_SWAP] = KNOWN | IS_REQUEST | IS_ATOMIC | IS_FIRST | IS_LAST,
	[FETCH_ADD] = KNOWN | IS_REQUEST | IS_ATOMIC | IS_FIRST | IS_LAST,
	[SEND_LAST_INV] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_LAST | HAS_IMM,
	[SEND_ONLY_INV] = KNOWN | IS_REQUEST | HAS_PAYLOAD | IS_FIRST | IS_LAST | HAS_IMM,
	[FLUSH] = KNOWN | IS_REQUEST | IS_FIRST | IS_LAST | HAS_RETH | IS_READ | HAS_FETH,
	[ATOMIC_WRITE] = KNOWN | IS_REQUEST | IS_FIRST | IS_LAST | HAS_RETH | IS_READ,
};

/* 9.7.5.2.8, table 45: RNR timer codes in 10 us */
static const uint32_t rnr_10us[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

struct packet {
	uint64_t ns;
	uint32_t dqpn, psn, kind;
	uint32_t len; /* of the payload */
	uint64_t va;  /* RETH, AtomicETH; ATOMIC_ACK: the value */
	uint32_t rkey, dma_len;
	uint32_t msn;
	uint32_t digest; /* of everything after the BTH; see rc_check_config.rewritten */
	uint32_t srqn;	 /* XRCETH */
	uint32_t feth;
	uint8_t op, syndrome, xrceth_resv;
	bool xrc, out, ackreq;
};

/* A packet of a request as it was first seen. */
struct memory {
	uint32_t psn;
	uint32_t base; /* PSN of the READ that this PSN belongs to */
	uint32_t digest, rkey, dma_len, msn, srqn;
	uint64_t va; /* ATOMIC of the peer: the value it was answered with */
	uint16_t kind;
	uint8_t op;
	bool used, answered;
};

enum cause_kind { BY_NAK, BY_GAP, BY_RNR };

struct cause {
	enum cause_kind kind;
	uint32_t psn;
	uint64_t ns, told; /* the first report, and the last one that repeats it */
	uint64_t due;	   /* not before */
	bool used;	   /* a resend had it as its cause */
	bool served;	   /* since the report, packets were sent again from there or before */
};

struct gap {
	uint32_t psn;
	uint64_t waited, closed; /* waited: since when nothing before its NAK was sent */
	bool open, naked;
};

struct waiting {
	uint32_t psn, n, next; /* next: the next response packet */
	uint32_t len;
	bool atomic, again, begun;
};

struct half {
	bool known, dead, lost; /* lost: no longer judged, because the peer broke the rules */
	bool typed, xrc;	/* the first request says which transport the pair has */
	uint32_t next;		/* requester: next new PSN; responder: expected PSN */
	uint64_t seen;		/* when the last request packet passed */
	struct memory *mem;
};

struct requester {
	struct half h;
	uint32_t pos; /* PSN after the last request packet */
	uint32_t una;
	uint64_t moved, sent_una; /* when una moved, when the packet una was last sent */
	uint64_t overdue; /* when una moved although the time-out was over: it may have begun to go
			     back */
	uint64_t back_ns; /* when it last went back */
	struct {
		uint32_t psn;
		uint64_t ns;
	} una_log[UNAS];
	unsigned int una_n;
	struct cause cause[CAUSES];
	unsigned int cause_n;
	unsigned int outstanding; /* READs and ATOMICs */
	bool told, stopped;	  /* by rc_check_connect(), rc_check_stop() */
	uint32_t former;	  /* told: next new PSN of the former life */
	/* the message of the current packets */
	bool in_message;
	bool in_write;
	uint32_t message_left, message_srqn;
	uint64_t dead_ns;
};

struct responder {
	struct half h;
	uint32_t first; /* first PSN seen, or told */
	bool told;	/* by rc_check_connect() */
	bool stopped;	/* by rc_check_stop() */
	bool answered;	/* an acknowledgement has been sent */
	uint32_t last_ack;
	uint32_t msn;
	bool rnr;
	uint32_t rnr_psn;
	uint64_t duplicate_ns;
	struct gap gap[GAPS];
	unsigned int gap_n;
	struct waiting wait[PENDING];
	unsigned int wait_n;
	bool overflow;
};

struct pair {
	struct pair *next;
	uint32_t local, remote;
	struct requester rq;
	struct responder rs;
};

struct rc_check {
	char name[64];
	struct rc_check_config config;
	bool turns; /* other QPs lengthen the lag */
	uint8_t macs[MACS][6];
	unsigned int n_macs;
	struct pair *pairs;
	struct rc_counts counts;
	uint64_t frames;
};

static void violation(struct rc_check *c, const struct pair *p, uint64_t ns, const char *format,
		      ...) __attribute__((format(printf, 4, 5)));

static void violation(struct rc_check *c, const struct pair *p, uint64_t ns, const char *format,
		      ...)
{
	va_list ap;

	if (c->counts.violations++ >= MAX_REPORTS)
		return;
	fprintf(stderr,
		"%s: frame %" PRIu64 ", %" PRIu64 ".%03" PRIu64 " us, QP 0x%x to 0x%x: ", c->name,
		c->frames, ns / US, ns % US, p->local, p->remote);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* Whether the NIC may have dropped a packet that the model has seen. */
static bool dropped(struct rc_check *c, struct half *h)
{
	if (!c->config.rx_dropped)
		return false;
	c->config.rx_dropped--;
	h->lost = true;
	return true;
}

static uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

static uint32_t packets_of(const struct rc_check *c, uint32_t len)
{
	return len ? (len + c->config.mtu - 1) / c->config.mtu : 1;
}

static struct memory *recall(struct half *h, uint32_t psn)
{
	struct memory *m = &h->mem[psn % WINDOW];

	return m->used && m->psn == psn ? m : NULL;
}

/* Remembers a request packet, and all PSNs of a READ. */
static void remember(const struct rc_check *c, struct half *h, const struct packet *k, uint32_t msn)
{
	uint32_t n = k->op == READ_REQUEST ? packets_of(c, k->dma_len) : 1;

	for (uint32_t i = 0; i < n && i < WINDOW; i++) {
		struct memory *m = &h->mem[psn_add(k->psn, i) % WINDOW];

		*m = (struct memory){ .psn = psn_add(k->psn, i),
				      .base = k->psn,
				      .digest = k->digest,
				      .rkey = k->rkey,
				      .dma_len = k->dma_len,
				      .va = k->va,
				      .srqn = k->srqn,
				      .msn = msn,
				      .kind = (uint16_t)k->kind,
				      .op = k->op,
				      .used = true };
	}
	h->next = psn_add(k->psn, n);
}

/*
 * A PSN far away begins a new life of the QP number, where there may be one. After a pause a less
 * distant PSN does, if it neither repeats a sent packet nor skips only a few.
 */
static bool new_life(const struct rc_check *c, struct half *h, const struct packet *k)
{
	int32_t d = roce_psn_diff(k->psn, h->next);

	if (!c->config.lives || !h->known)
		return false;
	return abs(d) > (int32_t)WINDOW ||
	       (k->ns > h->seen + PAUSE && (d < 0 || d > NEAR) && !recall(h, k->psn) && !h->lost);
}

/* Of a half that is no longer judged, only the position is kept: new_life() needs it. */
static void follow(const struct rc_check *c, struct half *h, const struct packet *k)
{
	h->next = psn_add(k->psn, k->op == READ_REQUEST ? packets_of(c, k->dma_len) : 1);
}

/* Whether it is of the pair's transport. */
static bool own_transport(struct half *h, const struct packet *k)
{
	if (!h->typed && k->kind & IS_REQUEST) {
		h->typed = true;
		h->xrc = k->xrc;
	}
	return h->typed && h->xrc == k->xrc;
}

/* Whether it belongs to a former life. */
static bool is_far(uint32_t psn, uint32_t next)
{
	return abs(roce_psn_diff(psn, next)) > FAR;
}

static bool half_begin(struct half *h)
{
	if (!h->mem)
		h->mem = calloc(WINDOW, sizeof(*h->mem));
	return h->mem;
}

/* Clears the memory, and keeps the position. */
static struct half half_again(const struct half *h)
{
	memset(h->mem, 0, WINDOW * sizeof(*h->mem));
	return (struct half){ .mem = h->mem };
}

/* ---- requester behind the port ------------------------------------------------------------------
 */

/* When the present timer began. */
static uint64_t timer_since(const struct requester *r)
{
	return r->moved > r->sent_una ? r->moved : r->sent_una;
}

static bool timer_is_over(const struct rc_check *c, const struct requester *r, uint64_t now)
{
	return c->config.timeout && now - timer_since(r) >= UINT64_C(4096) << c->config.timeout;
}

static void una_moves(const struct rc_check *c, struct requester *r, uint32_t una, uint64_t ns)
{
	if (r->una != r->h.next && timer_is_over(c, r, ns))
		r->overdue = ns;
	r->una = una;
	r->moved = ns;
	r->una_log[r->una_n % UNAS].psn = una;
	r->una_log[r->una_n % UNAS].ns = ns;
	r->una_n++;
}

static void add_cause(struct requester *r, enum cause_kind kind, uint64_t ns, uint64_t due)
{
	struct cause *k = &r->cause[(r->cause_n - 1) % CAUSES];
	bool copy = false;

	/* each response after a gap reports it; a response that comes after the request was
	 * repeated reports it anew */
	if (r->cause_n && kind == BY_GAP && k->kind == BY_GAP && k->psn == r->una && !k->used &&
	    k->ns >= r->back_ns) {
		k->told = ns;
		return;
	}
	/*
	 * There is one NAK per gap. The NIC need not obey a duplicate (made by the wire) of a NAK
	 * that was obeyed. Nor need it obey a NAK if the responder has answered a later request:
	 * the NAK is old.
	 */
	for (unsigned int i = 0; i < CAUSES && kind == BY_NAK; i++)
		copy |= r->cause[i].ns && r->cause[i].psn == r->una && r->cause[i].served &&
			(r->cause[i].kind == BY_NAK || r->cause[i].kind == BY_GAP);
	k = &r->cause[r->cause_n++ % CAUSES];
	*k = (struct cause){
		.kind = kind, .psn = r->una, .ns = ns, .told = ns, .due = due, .served = copy
	};
}

/* Everything before `to` is acknowledged, up to a READ or ATOMIC without its answer. Returns true
 * if `to` was reached. */
static bool advance(const struct rc_check *c, struct requester *r, uint32_t to, uint64_t ns)
{
	uint32_t una = r->una;

	while (roce_psn_diff(to, una) > 0) {
		struct memory *m = recall(&r->h, una);

		if (m && m->kind & (IS_READ | IS_ATOMIC))
			break;
		una = psn_add(una, 1);
	}
	if (una != r->una)
		una_moves(c, r, una, ns);
	return una == to;
}

static void response(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct requester *r = &p->rq;
	struct memory *m;

	if (!r->h.known || r->h.dead || !own_transport(&r->h, k) ||
	    roce_psn_diff(k->psn, r->una) < 0 || roce_psn_diff(k->psn, r->h.next) >= 0) {
		return; /* old, or for a PSN that was not sent: must be ignored */
	}
	if (k->op == ACKNOWLEDGE && k->syndrome >> 5 == 0) {
		if (!advance(c, r, psn_add(k->psn, 1), k->ns))
			add_cause(r, BY_GAP, k->ns, 0);
		return;
	}
	if (k->op == ACKNOWLEDGE) {
		bool there = advance(c, r, k->psn, k->ns);

		if (!there)
			add_cause(r, BY_GAP, k->ns, 0);
		else if (k->syndrome >> 5 == 1)
			add_cause(r, BY_RNR, k->ns, k->ns + rnr_10us[k->syndrome & 31] * 10 * US);
		else if (k->syndrome == 0x60)
			add_cause(r, BY_NAK, k->ns, 0);
		else {
			r->h.dead = true;
			r->dead_ns = k->ns;
		}
		return;
	}
	/* READ response or ATOMIC acknowledge */
	m = recall(&r->h, k->psn);
	if (!m || (k->op == ATOMIC_ACK) != !!(m->kind & IS_ATOMIC) ||
	    (k->op != ATOMIC_ACK && !(m->kind & IS_READ))) {
		r->h.lost = true; /* the peer answers a request that was not made */
		return;
	}
	if (!advance(c, r, k->psn, k->ns)) {
		add_cause(r, BY_GAP, k->ns, 0);
		return;
	}
	if (psn_add(m->base, m->op == READ_REQUEST ? packets_of(c, m->dma_len) - 1 : 0) == k->psn &&
	    r->outstanding)
		r->outstanding--;
	una_moves(c, r, psn_add(k->psn, 1), k->ns);
}

/*
 * Whether una was the place to resume at, at some time not longer ago than a NIC needs to react.
 * Packets acknowledged since then may be left out.
 */
static bool was_una(const struct rc_check *c, const struct requester *r, uint32_t psn, uint64_t now)
{
	unsigned int n = r->una_n < UNAS ? r->una_n : UNAS;

	if (roce_psn_diff(psn, r->una) > 0)
		return false;
	for (unsigned int i = 1; i <= n; i++) {
		unsigned int at = (r->una_n - i) % UNAS;
		/* it kept this value until the next one */
		uint64_t until = i == 1 ? now : r->una_log[(r->una_n - i + 1) % UNAS].ns;

		if (until + c->config.lag_ns < now)
			return false;
		if (roce_psn_diff(psn, r->una_log[at].psn) >= 0)
			return true;
	}
	return false;
}

/* By when `p` has to send again what was requested at `since`. */
static uint64_t reaction_until(const struct rc_check *c, const struct pair *p, uint64_t since)
{
	uint64_t until = since + c->config.lag_ns;

	for (const struct pair *other = c->pairs; other && c->turns; other = other->next)
		if (other != p && other->rq.h.known && other->rq.h.seen >= since)
			until += TURN_NS;
	return until;
}

/*
 * A packet that a NAK requests is sent in time, unless an RNR timer holds it back. The repair of a
 * gap among responses may be left to the ACK timer.
 */
static void judge_reaction(struct rc_check *c, struct pair *p, const struct packet *k)
{
	const struct requester *r = &p->rq;
	const struct cause *oldest = NULL;

	for (unsigned int i = 0; i < CAUSES; i++) {
		const struct cause *why = &r->cause[i];

		if (!why->ns || why->psn != k->psn || why->used || why->served)
			continue;
		if (why->kind == BY_RNR)
			return;
		if (why->kind == BY_NAK && (!oldest || why->ns < oldest->ns))
			oldest = why;
	}
	if (oldest && k->ns > reaction_until(c, p, oldest->ns))
		violation(c, p, k->ns,
			  "PSN 0x%06x sent again %" PRIu64 " us after it was asked for", k->psn,
			  (k->ns - oldest->ns) / US);
}

static void resume(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct requester *r = &p->rq;
	unsigned int n = r->cause_n < CAUSES ? r->cause_n : CAUSES;
	bool late = timer_is_over(c, r, k->ns);
	bool overdue = r->overdue && k->ns <= r->overdue + c->config.lag_ns;

	/* Packets acknowledged since it began to send again are skipped. */
	if (roce_psn_diff(k->psn, r->pos) > 0 && roce_psn_diff(k->psn, r->una) <= 0)
		return;
	if (!was_una(c, r, k->psn, k->ns)) {
		if (dropped(c, &r->h))
			return;
		violation(c, p, k->ns, "goes back to PSN 0x%06x, oldest unacknowledged is 0x%06x",
			  k->psn, r->una);
		return;
	}
	/*
	 * Each report of a gap may make the NIC go back once: a second report, of the next gap, can
	 * come while it prepares to go back because of the first. The oldest is used first.
	 */
	r->back_ns = k->ns;
	judge_reaction(c, p, k);
	for (unsigned int i = n; i >= 1; i--) {
		struct cause *why = &r->cause[(r->cause_n - i) % CAUSES];

		/* after a time-out it needs no gap; the gap may make it go back once more */
		if (why->used || (late && why->kind == BY_GAP) ||
		    roce_psn_diff(why->psn, k->psn) > 0 ||
		    (why->psn != k->psn && why->told + c->config.lag_ns < k->ns))
			continue;
		if (k->ns < why->due)
			violation(c, p, k->ns,
				  "PSN 0x%06x sent again %" PRIu64 " us before its RNR timer ends",
				  k->psn, (why->due - k->ns) / US);
		for (unsigned int j = 0; j < CAUSES; j++) {
			r->cause[j].used |= r->cause[j].psn == why->psn;
			r->cause[j].served |= roce_psn_diff(r->cause[j].psn, k->psn) >= 0;
		}
		return;
	}
	c->counts.timeouts++;
	for (unsigned int j = 0; late && j < CAUSES; j++)
		r->cause[j].served |= roce_psn_diff(r->cause[j].psn, k->psn) >= 0;
	r->overdue = 0;
	if (c->config.timeout && !late && !overdue && !dropped(c, &r->h))
		violation(c, p, k->ns,
			  "PSN 0x%06x sent again without a cause, %" PRIu64
			  " us after the last news; time-out is %" PRIu64 " us",
			  k->psn, (k->ns - timer_since(r)) / US,
			  (UINT64_C(4096) << c->config.timeout) / US);
}

static void same_as_before(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct memory *m = recall(&p->rq.h, k->psn);
	uint32_t done;

	if (!m)
		return; /* forgotten */
	if (m->op != READ_REQUEST || k->op != READ_REQUEST) {
		if (m->op != k->op || m->digest != k->digest || m->base != k->psn)
			violation(c, p, k->ns,
				  "PSN 0x%06x sent again is another packet (opcode 0x%02x, was "
				  "0x%02x)",
				  k->psn, k->op, m->op);
		return;
	}
	done = (uint32_t)roce_psn_diff(k->psn, m->base) * c->config.mtu;
	if (k->va != m->va + done || k->dma_len != m->dma_len - done || k->rkey != m->rkey ||
	    k->srqn != m->srqn)
		violation(c, p, k->ns,
			  "READ of PSN 0x%06x asks for another place: length %u, was %u", k->psn,
			  k->dma_len, m->dma_len - done);
}

static void check_new(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct requester *r = &p->rq;
	bool parts = k->kind & HAS_PAYLOAD;

	if (!!(k->kind & IS_FIRST) == r->in_message)
		violation(c, p, k->ns, "opcode 0x%02x %s a message", k->op,
			  r->in_message ? "within" : "outside of");
	else if (parts && r->in_message && !!(k->kind & IS_WRITE) != r->in_write)
		violation(c, p, k->ns, "opcode 0x%02x in a message of another kind", k->op);
	if (r->in_message && !(k->kind & IS_FIRST) && k->srqn != r->message_srqn)
		violation(c, p, k->ns, "SRQ 0x%x in a message to SRQ 0x%x", k->srqn,
			  r->message_srqn);
	r->message_srqn = k->srqn;
	if (parts && !(k->kind & IS_LAST) && k->len != c->config.mtu)
		violation(c, p, k->ns, "%u bytes in a packet that is not the last", k->len);
	if (k->len > c->config.mtu)
		violation(c, p, k->ns, "%u bytes are more than the MTU", k->len);
	if (parts && k->kind & IS_LAST && !(k->kind & IS_FIRST) && !k->len)
		violation(c, p, k->ns, "the last packet of a message is empty");
	if (parts && k->kind & IS_WRITE) {
		uint32_t left = k->kind & IS_FIRST ? k->dma_len : r->message_left;

		if (k->kind & IS_LAST ? k->len != left : k->len >= left)
			violation(c, p, k->ns, "%u bytes of a WRITE that has %u left", k->len,
				  left);
		r->message_left = left - k->len;
	}
	r->in_message = parts && !(k->kind & IS_LAST);
	r->in_write = k->kind & IS_WRITE;
	if (k->kind & (IS_READ | IS_ATOMIC)) {
		if (++r->outstanding > c->config.rd_atomic)
			violation(c, p, k->ns, "%u READs and ATOMICs are outstanding",
				  r->outstanding);
	}
}

/* A request that is not judged: only checks whether it was sent before. */
static void count_again(struct rc_check *c, uint32_t *next, const struct packet *k)
{
	if (roce_psn_diff(k->psn, *next) < 0)
		c->counts.tx_again++;
	else
		*next = psn_add(k->psn, k->op == READ_REQUEST ? packets_of(c, k->dma_len) : 1);
}

static void request_out(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct requester *r = &p->rq;
	int32_t d;

	if (!half_begin(&r->h))
		return;
	if (r->told && is_far(k->psn, r->h.next)) {
		count_again(c, &r->former, k);
		return;
	}
	if (new_life(c, &r->h, k))
		*r = (struct requester){ .h = half_again(&r->h) };
	if (!own_transport(&r->h, k))
		violation(c, p, k->ns, "a request of %s from a QP of %s", k->xrc ? "XRC" : "RC",
			  k->xrc ? "RC" : "XRC");
	if (k->xrceth_resv)
		violation(c, p, k->ns, "reserved bits 0x%02x in an XRCETH", k->xrceth_resv);
	if (k->feth & ~0x33u)
		violation(c, p, k->ns, "reserved bits in the FETH 0x%08x", k->feth);
	r->h.seen = k->ns;
	if (!r->h.known) {
		r->h.known = true;
		r->h.next = k->psn;
		r->pos = k->psn;
		r->una = k->psn;
		una_moves(c, r, k->psn, k->ns);
	}
	if (r->h.dead && k->ns > r->dead_ns + c->config.lag_ns && !r->h.lost) {
		/* a QP that begins a new life has another PSN */
		if (recall(&r->h, k->psn))
			violation(c, p, k->ns, "PSN 0x%06x sent after an error ended the QP",
				  k->psn);
		r->h.lost = true;
	}
	if (r->stopped)
		count_again(c, &r->h.next, k);
	else if (r->h.lost)
		follow(c, &r->h, k);
	if (r->h.lost || r->h.dead || r->stopped)
		return;
	d = roce_psn_diff(k->psn, r->h.next);
	if (d > 0) {
		violation(c, p, k->ns, "PSN 0x%06x, expected 0x%06x: %d left out", k->psn,
			  r->h.next, d);
		r->h.lost = true;
		return;
	}
	if (k->psn != r->pos)
		resume(c, p, k);
	if (d == 0) {
		check_new(c, p, k);
		remember(c, &r->h, k, 0);
	} else {
		c->counts.tx_again++;
		same_as_before(c, p, k);
	}
	if (k->psn == r->una)
		r->sent_una = k->ns;
	r->pos = psn_add(k->psn, k->op == READ_REQUEST ? packets_of(c, k->dma_len) : 1);
	/* part of the peer's view: una lies within the packets sent now */
	if (roce_psn_diff(r->una, k->psn) >= 0 && roce_psn_diff(r->una, r->pos) < 0)
		r->sent_una = k->ns;
}

static void requester_end(struct rc_check *c, struct pair *p, uint64_t now)
{
	struct requester *r = &p->rq;

	if (!r->h.known || r->h.dead || r->h.lost || r->stopped)
		return;
	for (unsigned int i = 0; i < CAUSES; i++) {
		struct cause *k = &r->cause[i];

		if (k->ns && !k->served && k->psn == r->una && r->una != r->h.next &&
		    k->kind != BY_RNR && now > reaction_until(c, p, k->ns) && !dropped(c, &r->h))
			violation(c, p, now, "PSN 0x%06x was asked for again and not sent", k->psn);
	}
	if (r->una != r->h.next && c->config.timeout &&
	    now > r->sent_una + 10 * (UINT64_C(4096) << c->config.timeout) &&
	    now > r->moved + 10 * (UINT64_C(4096) << c->config.timeout))
		violation(c, p, now, "PSN 0x%06x is not acknowledged and was not sent again",
			  r->una);
}

/* ---- responder behind the port
 * ------------------------------------------------------------------- */

static void wait_for(struct rc_check *c, struct responder *r, const struct packet *k, bool again)
{
	struct waiting *w;

	if (r->wait_n == PENDING) {
		r->overflow = true;
		return;
	}
	w = &r->wait[r->wait_n++];
	*w = (struct waiting){ .psn = k->psn,
			       .next = k->psn,
			       .n = k->op == READ_REQUEST ? packets_of(c, k->dma_len) : 1,
			       .len = k->op == READ_REQUEST ? k->dma_len : 0,
			       .atomic = k->kind & IS_ATOMIC,
			       .again = again };
}

static void wait_drop(struct responder *r, unsigned int i)
{
	memmove(&r->wait[i], &r->wait[i + 1], (--r->wait_n - i) * sizeof(r->wait[0]));
}

/* The first PSN seen was not the first one sent. */
static bool before_first(const struct responder *r, uint32_t psn)
{
	return !r->told && !r->answered && roce_psn_diff(psn, r->first) < 0;
}

/*
 * A QP drops the packets that arrive before it is in RTR. If the first one was among them, it is
 * missing when the next ones come. If rc_check_connect() has named the first PSN, the QP was ready.
 */
static bool came_early(const struct responder *r, uint32_t psn)
{
	return !r->told && !r->answered && psn == r->first && roce_psn_diff(r->h.next, psn) > 1;
}

static struct gap *gap_at(struct responder *r, unsigned int back)
{
	return &r->gap[(r->gap_n - 1 - back) % GAPS];
}

/* k has the first PSN; packets seen before k were ahead of it. */
static void begin_at(struct responder *r, const struct packet *k, bool naked)
{
	r->h.next = k->psn;
	r->first = k->psn;
	r->msn = 0;
	r->wait_n = 0;
	r->gap_n = 1;
	r->gap[0] = (struct gap){ .psn = k->psn, .waited = k->ns, .open = true, .naked = naked };
}

static void request_in(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct responder *r = &p->rs;
	struct gap *g;
	int32_t d;

	if (!half_begin(&r->h))
		return;
	if (new_life(c, &r->h, k))
		*r = (struct responder){ .h = half_again(&r->h) };
	if (!own_transport(&r->h, k))
		return; /* to a QP of another type: nothing accepts it */
	r->h.seen = k->ns;
	if (!r->h.known) {
		r->h.known = true;
		r->h.next = k->psn;
		r->first = k->psn;
	}
	if (r->h.lost)
		follow(c, &r->h, k);
	if (r->h.dead || r->h.lost)
		return;
	if (before_first(r, k->psn))
		begin_at(r, k, false); /* the very first packet was late */
	d = roce_psn_diff(k->psn, r->h.next);
	g = r->gap_n ? gap_at(r, 0) : NULL;
	if (d < 0) {
		struct memory *m = recall(&r->h, k->psn);

		c->counts.rx_duplicate++;
		r->duplicate_ns = k->ns;
		if (m && k->kind & (IS_READ | IS_ATOMIC) &&
		    roce_psn_diff(
			    psn_add(k->psn, k->op == READ_REQUEST ? packets_of(c, k->dma_len) : 1),
			    r->h.next) <= 0)
			wait_for(c, r, k, true);
		return;
	}
	if (d > 0) {
		c->counts.rx_ahead++;
		if (!r->rnr && !(g && g->open)) {
			g = &r->gap[r->gap_n++ % GAPS];
			*g = (struct gap){ .psn = r->h.next, .waited = k->ns, .open = true };
		}
		return;
	}
	r->rnr = false;
	if (g && g->open) {
		g->open = false;
		g->closed = k->ns;
	}
	if (k->kind & IS_LAST)
		r->msn = (r->msn + 1) & PSN_MASK;
	remember(c, &r->h, k, r->msn);
	if (k->kind & (IS_READ | IS_ATOMIC))
		wait_for(c, r, k, false);
}

static bool must_wait(const struct responder *r, uint32_t psn)
{
	for (unsigned int i = 0; i < r->wait_n; i++)
		if (!r->wait[i].again &&
		    roce_psn_diff(psn, psn_add(r->wait[i].psn, r->wait[i].n - 1)) >= 0)
			return true;
	return false;
}

static void ack_out(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct responder *r = &p->rs;
	struct memory *m = recall(&r->h, k->psn);

	if (roce_psn_diff(k->psn, r->h.next) >= 0) {
		violation(c, p, k->ns, "ACK of PSN 0x%06x, which has not come; expected is 0x%06x",
			  k->psn, r->h.next);
		return;
	}
	if (k->syndrome != 0x1f && r->answered && k->syndrome > 0x1f)
		violation(c, p, k->ns, "syndrome 0x%02x", k->syndrome);
	if (r->answered && roce_psn_diff(k->psn, r->last_ack) < 0)
		violation(c, p, k->ns, "ACK goes back to PSN 0x%06x from 0x%06x", k->psn,
			  r->last_ack);
	else if (r->answered && k->psn == r->last_ack &&
		 (!r->duplicate_ns || k->ns > r->duplicate_ns + c->config.lag_ns))
		violation(c, p, k->ns, "second ACK of PSN 0x%06x and no duplicate came", k->psn);
	if (must_wait(r, k->psn))
		violation(c, p, k->ns, "ACK of PSN 0x%06x in front of an answer before it", k->psn);
	if (m && m->msn != k->msn)
		violation(c, p, k->ns, "ACK of PSN 0x%06x with MSN %u, %u messages are complete",
			  k->psn, k->msn, m->msn);
	r->answered = true;
	r->last_ack = k->psn;
}

static void nak_of_first(struct responder *r, const struct packet *k)
{
	begin_at(r, k, true);
	r->answered = true;
	r->last_ack = psn_add(k->psn, PSN_MASK);
}

static void nak_out(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct responder *r = &p->rs;

	if (before_first(r, k->psn)) {
		nak_of_first(r, k); /* it was lost: the NAK shows its PSN */
		return;
	}
	for (unsigned int i = 0; i < GAPS && i < r->gap_n; i++) {
		struct gap *g = gap_at(r, i);

		if (g->psn != k->psn || (!g->open && g->closed + c->config.lag_ns < k->ns))
			continue;
		if (g->naked)
			violation(c, p, k->ns, "second NAK of the gap at PSN 0x%06x", k->psn);
		g->naked = true;
		return;
	}
	if (came_early(r, k->psn)) {
		nak_of_first(r, k);
		return;
	}
	if (roce_psn_diff(k->psn, r->h.next) < 0 && dropped(c, &r->h))
		return;
	violation(c, p, k->ns, "NAK of PSN 0x%06x without a gap; expected is 0x%06x", k->psn,
		  r->h.next);
}

/* Packets from psn on that were taken for received were refused. */
static void roll_back(struct responder *r, uint32_t psn)
{
	struct memory *m = recall(&r->h, psn_add(psn, PSN_MASK));

	if (roce_psn_diff(psn, r->h.next) >= 0)
		return;
	r->h.next = psn;
	r->msn = m ? m->msn : psn == r->first ? 0 : r->msn;
	/* Copies of a refused request were refused, too. */
	for (unsigned int i = r->wait_n; i-- > 0;)
		if (roce_psn_diff(r->wait[i].psn, psn) >= 0)
			wait_drop(r, i);
	for (unsigned int i = 0; i < GAPS && i < r->gap_n; i++)
		if (roce_psn_diff(gap_at(r, i)->psn, psn) > 0)
			*gap_at(r, i) = (struct gap){ .psn = psn, .naked = true };
}

/* Whether its key has ended between the answers before psn and the one for psn. */
static bool stopped(const struct rc_check *c, const struct responder *r, const struct waiting *w,
		    uint32_t psn)
{
	return c->config.keys_end && w->begun && w->next != psn && w->again && r->answered &&
	       roce_psn_diff(r->last_ack, psn_add(w->psn, w->n - 1)) >= 0;
}

static void read_out(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct responder *r = &p->rs;
	uint32_t index, rest;
	unsigned int i;
	struct waiting *w;

	/*
	 * A request whose answers have begun goes on, even if earlier waiting requests ask for this
	 * PSN: the NIC may have dropped those, and counted them. Otherwise the first request that
	 * asks for it.
	 */
	for (i = 0; i < r->wait_n; i++)
		if (r->wait[i].begun && !stopped(c, r, &r->wait[i], k->psn))
			break;
	for (unsigned int j = 0; j < r->wait_n && i == r->wait_n; j++)
		if (r->wait[j].psn == k->psn && r->wait[j].atomic == (k->op == ATOMIC_ACK))
			i = j;
	if (i == r->wait_n) {
		if (!r->overflow)
			violation(c, p, k->ns, "answer of PSN 0x%06x to nothing that was asked",
				  k->psn);
		return;
	}
	/* in the middle of answers to a request that was not remembered */
	if (r->overflow && !r->wait[i].begun && k->op != ATOMIC_ACK && !(k->kind & IS_FIRST))
		return;
	for (unsigned int j = r->wait_n; j-- > 0;) {
		if (!stopped(c, r, &r->wait[j], k->psn))
			continue;
		wait_drop(r, j);
		i -= j < i;
	}
	w = &r->wait[i];
	if (w->begun && w->next != k->psn) {
		violation(c, p, k->ns, "READ response PSN 0x%06x, expected 0x%06x", k->psn,
			  w->next);
		wait_drop(r, i);
		return;
	}
	if (!w->again && must_wait(r, psn_add(w->psn, PSN_MASK)) && !dropped(c, &r->h))
		violation(c, p, k->ns, "answer of PSN 0x%06x in front of an older one", k->psn);
	if (k->kind & HAS_AETH && k->syndrome >> 5)
		violation(c, p, k->ns, "syndrome 0x%02x in an answer", k->syndrome);
	if (k->op == ATOMIC_ACK) {
		struct memory *m = recall(&r->h, k->psn);

		if (m && !m->answered && m->va % 8)
			violation(c, p, k->ns,
				  "ATOMIC of PSN 0x%06x to an address that is not a multiple of 8 "
				  "is executed",
				  k->psn);
		if (m && m->answered && m->va != k->va)
			violation(c, p, k->ns, "ATOMIC of PSN 0x%06x answered with another value",
				  k->psn);
		if (m) {
			m->answered = true;
			m->va = k->va;
		}
		wait_drop(r, i);
	} else {
		struct memory *m = recall(&r->h, k->psn);

		if (m && m->op == ATOMIC_WRITE && (m->va % 8 || m->dma_len != 8))
			violation(c, p, k->ns,
				  "ATOMIC WRITE of PSN 0x%06x, of %u bytes at an address %u behind "
				  "a multiple of 8, is executed",
				  k->psn, m->dma_len, (unsigned int)(m->va % 8));
		index = (uint32_t)roce_psn_diff(k->psn, w->psn);
		rest = w->len - index * c->config.mtu;
		if (!!(k->kind & IS_FIRST) != (index == 0) ||
		    !!(k->kind & IS_LAST) != (index == w->n - 1))
			violation(c, p, k->ns, "opcode 0x%02x in response packet %u of %u", k->op,
				  index, w->n);
		else if (k->len != (index == w->n - 1 ? rest : c->config.mtu))
			violation(c, p, k->ns, "%u bytes in response packet %u of a READ of %u",
				  k->len, index, w->len);
		w->begun = true;
		w->next = psn_add(k->psn, 1);
		if (index == w->n - 1)
			wait_drop(r, i);
	}
	/* the ACK for a duplicate waits for the answers before it, and so does a NAK */
	if (r->duplicate_ns && k->ns <= r->duplicate_ns + c->config.lag_ns)
		r->duplicate_ns = k->ns;
	for (i = 0; i < GAPS && i < r->gap_n; i++) {
		struct gap *g = gap_at(r, i);

		if (g->open && k->ns <= g->waited + c->config.lag_ns)
			g->waited = k->ns;
	}
	/* an answer acknowledges everything before it */
	if (!r->answered || roce_psn_diff(k->psn, r->last_ack) > 0) {
		r->answered = true;
		r->last_ack = k->psn;
	}
}

static void response_out(struct rc_check *c, struct pair *p, const struct packet *k)
{
	struct responder *r = &p->rs;

	if (!r->h.known) {
		violation(c, p, k->ns, "an answer (opcode 0x%02x) to nothing", k->op);
		return;
	}
	if (r->h.lost || r->stopped || (r->told && is_far(k->psn, r->h.next)))
		return;
	if (!own_transport(&r->h, k))
		violation(c, p, k->ns, "an answer of %s to requests of %s", k->xrc ? "XRC" : "RC",
			  k->xrc ? "RC" : "XRC");
	if (r->h.dead) {
		violation(c, p, k->ns, "an answer (opcode 0x%02x) after a NAK that ended the QP",
			  k->op);
		r->h.lost = true;
		return;
	}
	if (k->op != ACKNOWLEDGE) {
		read_out(c, p, k);
	} else if (k->syndrome >> 5 == 0) {
		ack_out(c, p, k);
	} else if (k->syndrome == 0x60) {
		nak_out(c, p, k);
	} else if (k->syndrome >> 5 == 1) {
		if (roce_psn_diff(k->psn, r->h.next) > 0)
			violation(c, p, k->ns, "RNR NAK of PSN 0x%06x, which has not come", k->psn);
		roll_back(r, k->psn);
		r->rnr = true;
		r->rnr_psn = k->psn;
	} else if (k->syndrome > 0x60 && k->syndrome <= 0x63) {
		r->h.dead = true;
	} else {
		violation(c, p, k->ns, "syndrome 0x%02x", k->syndrome);
	}
}

static void responder_end(struct rc_check *c, struct pair *p, uint64_t now)
{
	struct responder *r = &p->rs;

	if (!r->h.known || r->h.dead || r->h.lost || r->stopped)
		return;
	for (unsigned int i = 0; i < GAPS && i < r->gap_n; i++) {
		struct gap *g = gap_at(r, i);

		if (!g->naked && g->waited &&
		    (g->open ? now : g->closed) > g->waited + 4 * c->config.lag_ns)
			violation(c, p, now, "the gap at PSN 0x%06x was not NAKed", g->psn);
	}
	for (unsigned int i = 0; i < r->wait_n; i++)
		if (!r->wait[i].again && !r->overflow)
			violation(c, p, now, "the request of PSN 0x%06x was not answered",
				  r->wait[i].psn);
}

/* ---- frames
 * ------------------------------------------------------------------------------------------ */

/*
 * Before anything else is checked, the MAC and IP addresses decide to which port a packet belongs:
 * the ICRC does not cover the MAC address, and a bit of the IP address may be wrong. A port may
 * have several addresses, one after the other or at once. Unless the caller names them, any IP
 * address belongs to it, and so do the MAC addresses from which it sends.
 */
static bool not_ours(struct rc_check *c, const struct pcap_frame *frame)
{
	static const uint8_t none[6];
	const uint8_t *mac = frame->data + (frame->outbound ? 6 : 0), *ip = frame->data + 14;
	unsigned int n = c->n_macs < MACS ? c->n_macs : MACS;
	uint8_t to[16] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(c->config.mac, none, 6)) {
		if (roce_be(frame->data + 12, 2) == 0x8100)
			ip += 4;
		if (ip[0] >> 4 == 6)
			memcpy(to, ip + 24, 16);
		else
			memcpy(to + 12, ip + 16, 4);
		return !frame->outbound &&
		       (memcmp(c->config.mac, mac, 6) || memcmp(c->config.ip, to, 16));
	}
	for (unsigned int i = 0; i < n; i++)
		if (!memcmp(c->macs[i], mac, 6))
			return false;
	if (frame->outbound)
		memcpy(c->macs[c->n_macs++ % MACS], mac, 6);
	return !frame->outbound && n;
}

static struct pair *find_pair(struct rc_check *c, uint32_t qpn, bool local)
{
	for (struct pair *p = c->pairs; p; p = p->next)
		if ((local ? p->local : p->remote) == qpn)
			return p;
	if (!c->config.same_qpn || rc_check_pair(c, qpn, qpn))
		return NULL;
	return c->pairs;
}

static uint32_t digest_of(const uint8_t *p, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

/* Returns false if headers and length do not fit the opcode. */
static bool decode(const struct rc_check *c, struct packet *k, const uint8_t *f,
		   const struct roce_frame *roce)
{
	const uint8_t *bth = f + roce->bth, *ext = bth + 12, *at = ext, *end = f + roce->end - 4;
	size_t rest;

	k->op = bth[0] & 0x1f;
	k->xrc = bth[0] >> 5 == TRANSPORT_XRC;
	if ((bth[0] >> 5 != TRANSPORT_RC && !k->xrc) || k->op >= sizeof(kinds) / sizeof(kinds[0]) ||
	    !kinds[k->op])
		return false;
	k->kind = kinds[k->op];
	k->dqpn = roce_be(bth + 5, 3);
	k->ackreq = bth[8] >> 7;
	k->psn = roce_be(bth + 9, 3);
	rest = (size_t)(end - at);
	k->digest = digest_of(ext, rest);
	if (k->xrc && k->kind & IS_REQUEST) {
		if (rest < 4)
			return false;
		k->xrceth_resv = at[0];
		k->srqn = roce_be(at + 1, 3);
		at += 4;
		rest -= 4;
	}
	if (k->kind & HAS_FETH) {
		if (rest < 4)
			return false;
		k->feth = roce_be(at, 4);
		at += 4;
		rest -= 4;
	}
	if (k->kind & HAS_RETH) {
		if (rest < 16)
			return false;
		k->va = roce_be64(at);
		k->rkey = roce_be(at + 8, 4);
		k->dma_len = roce_be(at + 12, 4);
		at += 16;
	}
	if (k->kind & IS_ATOMIC && k->kind & IS_REQUEST) {
		if (rest != 28)
			return false;
		k->va = roce_be64(at);
		k->rkey = roce_be(at + 8, 4);
		at += 28;
	}
	if (k->kind & HAS_AETH) {
		if (end - at < 4)
			return false;
		k->syndrome = at[0];
		k->msn = roce_be(at + 1, 3);
		at += 4;
	}
	if (k->op == ATOMIC_ACK) {
		if (end - at != 8)
			return false;
		k->va = roce_be64(at);
		at += 8;
	}
	if (k->kind & HAS_IMM)
		at += 4;
	if (end < at || (end - at) < (int)roce->pad)
		return false;
	k->len = (uint32_t)(end - at) - roce->pad;
	if (c->config.rewritten && k->kind & IS_REQUEST && k->kind & HAS_PAYLOAD &&
	    !(k->kind & IS_WRITE))
		k->digest = digest_of(ext, (size_t)(at - ext)) ^ k->len;
	if (k->op == ATOMIC_WRITE)
		return k->len == 8 && !roce->pad;
	if (!(k->kind & HAS_PAYLOAD) && (k->len || roce->pad))
		return false;
	return k->len % 4 + roce->pad == (k->len % 4 ? 4 : 0);
}

static void count_out(struct rc_counts *n, const struct packet *k)
{
	n->tx_packets++;
	if (k->kind & IS_READ_RSP || k->op == ATOMIC_ACK)
		n->tx_read_rsp++;
	if (k->op != ACKNOWLEDGE)
		return;
	n->tx_ack += k->syndrome >> 5 == 0;
	n->tx_nak_rnr += k->syndrome >> 5 == 1;
	n->tx_nak_seq += k->syndrome == 0x60;
	n->tx_nak_other += k->syndrome > 0x60;
}

static void count_in(struct rc_counts *n, const struct packet *k)
{
	n->rx_packets++;
	if (k->kind & IS_READ_RSP || k->op == ATOMIC_ACK)
		n->rx_read_rsp++;
	if (k->op != ACKNOWLEDGE)
		return;
	n->rx_ack += k->syndrome >> 5 == 0;
	n->rx_nak_rnr += k->syndrome >> 5 == 1;
	n->rx_nak += k->syndrome >> 5 == 3;
}

void rc_check_frame(struct rc_check *c, const struct pcap_frame *frame)
{
	struct packet k = { .ns = frame->ns, .out = frame->outbound };
	struct pair nobody = { 0 }, *p;
	struct roce_frame roce;
	const char *why;
	uint8_t icrc[4];
	int ret;

	c->frames++;
	if (frame->bad_fcs)
		return;
	ret = roce_parse(frame->data, frame->len, &roce, &why);
	if (ret > 0 || not_ours(c, frame))
		return;
	if (!ret) {
		roce_icrc(frame->data, &roce, icrc);
		if (memcmp(icrc, frame->data + roce.end - 4, 4)) {
			why = "wrong ICRC";
			ret = -1;
			c->counts.rx_bad_icrc += !k.out;
		}
	} else {
		c->counts.rx_malformed += !k.out;
	}
	if (!ret && !decode(c, &k, frame->data, &roce)) {
		why = "headers and length do not fit the opcode";
		c->counts.rx_malformed += !k.out;
		ret = -1;
	}
	if (!ret && k.out && roce.tail)
		violation(c, &nobody, k.ns, "sent bytes behind the IP packet");
	if (ret) {
		if (k.out)
			violation(c, &nobody, k.ns, "sent a bad packet: %s", why);
		return;
	}
	if (k.out && roce.udp_sum)
		violation(c, &nobody, k.ns, "UDP checksum");
	if (k.out)
		count_out(&c->counts, &k);
	else
		count_in(&c->counts, &k);
	p = find_pair(c, k.dqpn, !k.out);
	if (!p) {
		c->counts.unpaired++;
		return;
	}
	if (k.out) {
		if (k.kind & IS_REQUEST)
			request_out(c, p, &k);
		else
			response_out(c, p, &k);
	} else if (k.kind & IS_REQUEST) {
		request_in(c, p, &k);
	} else if (p->rq.h.mem) {
		response(c, p, &k);
	}
}

struct rc_check *rc_check_create(const char *name, const struct rc_check_config *config)
{
	struct rc_check *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->config = *config;
	if (!c->config.rd_atomic)
		c->config.rd_atomic = 16;
	c->turns = !c->config.lag_ns;
	if (c->turns)
		c->config.lag_ns = DEFAULT_LAG;
	return c;
}

void rc_check_destroy(struct rc_check *c)
{
	if (!c)
		return;
	while (c->pairs) {
		struct pair *p = c->pairs;

		c->pairs = p->next;
		free(p->rq.h.mem);
		free(p->rs.h.mem);
		free(p);
	}
	free(c);
}

int rc_check_pair(struct rc_check *c, uint32_t local_qpn, uint32_t remote_qpn)
{
	struct pair **at = &c->pairs, *p;

	while (*at && ((*at)->local != local_qpn || (*at)->remote != remote_qpn))
		at = &(*at)->next;
	p = *at;
	if (p) {
		*at = p->next;
	} else {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->local = local_qpn;
		p->remote = remote_qpn;
	}
	p->next = c->pairs;
	c->pairs = p;
	return 0;
}

int rc_check_connect(struct rc_check *c, uint32_t local_qpn, uint32_t remote_qpn, uint32_t sq_psn,
		     uint32_t rq_psn, uint64_t now_ns)
{
	struct pair *p;

	if (rc_check_pair(c, local_qpn, remote_qpn))
		return -ENOMEM;
	p = c->pairs;
	if (!half_begin(&p->rq.h) || !half_begin(&p->rs.h))
		return -ENOMEM;
	p->rq = (struct requester){ .former = p->rq.h.next,
				    .h = half_again(&p->rq.h),
				    .pos = sq_psn,
				    .una = sq_psn,
				    .told = true };
	p->rq.h.known = true;
	p->rq.h.next = sq_psn;
	una_moves(c, &p->rq, sq_psn, now_ns);
	p->rs = (struct responder){ .h = half_again(&p->rs.h), .first = rq_psn, .told = true };
	p->rs.h.known = true;
	p->rs.h.next = rq_psn;
	return 0;
}

int rc_check_stop(struct rc_check *c, uint32_t local_qpn, uint32_t remote_qpn)
{
	if (rc_check_pair(c, local_qpn, remote_qpn))
		return -ENOMEM;
	c->pairs->rq.stopped = true;
	c->pairs->rs.stopped = true;
	return 0;
}

uint64_t rc_check_end(struct rc_check *c, uint64_t now_ns)
{
	for (struct pair *p = c->config.gone ? NULL : c->pairs; p; p = p->next) {
		requester_end(c, p, now_ns);
		responder_end(c, p, now_ns);
	}
	return c->counts.violations;
}

const struct rc_counts *rc_check_counts(const struct rc_check *c)
{
	return &c->counts;
}
