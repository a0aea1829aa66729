// SPDX-License-Identifier: Apache-2.0
#include "rc_pairs.h"

#include <stdlib.h>

#include "icrc.h"

#define MAX_PAIRS   4096u
#define MAX_STREAMS 4096u

/* An answer is evidence only if it is at most so many PSNs from its request. */
#define WINDOW 256u
/*
 * A QP whose last request is older gets no answer any more: it would have sent the request again by
 * then. Likewise a pair that was silent for so long may have ended, and other QPs may have these
 * numbers now.
 */
#define QUIET_NS UINT64_C(1000000000)

/* Bits 7:5 of a BTH opcode (volume 1, table 38). */
#define TRANSPORT_XRC 5u

/* Requests to one QP: the last one, and whether its answer is still to come. */
struct stream {
	uint32_t qpn, psn;
	uint64_t ns;
	bool open;
};

struct side {
	struct stream in[MAX_STREAMS];
	unsigned int n;
};

struct rc_pairs {
	unsigned int mtu;
	struct side here, there; /* requests to the port's QPs, to the peer's */
	struct rc_pair pair[MAX_PAIRS];
	unsigned int n;
};

static bool is_quiet(uint64_t since, uint64_t now)
{
	return now > since + QUIET_NS;
}

struct rc_pairs *rc_pairs_create(unsigned int mtu)
{
	struct rc_pairs *p = calloc(1, sizeof(*p));

	if (p)
		p->mtu = mtu;
	return p;
}

void rc_pairs_destroy(struct rc_pairs *p)
{
	free(p);
}

void rc_pairs_add(struct rc_pairs *p, uint32_t local, uint32_t remote)
{
	if (p->n < MAX_PAIRS)
		p->pair[p->n++] = (struct rc_pair){ local, remote, 0, UINT64_MAX, UINT64_MAX };
}

static void evidence(struct rc_pairs *p, uint32_t local, uint32_t remote, uint64_t ns)
{
	/* The newest are last. */
	for (unsigned int i = p->n; i-- > 0;) {
		struct rc_pair *pair = &p->pair[i];

		if (pair->local != local || pair->remote != remote)
			continue;
		if (is_quiet(pair->to_ns, ns))
			break;
		pair->to_ns = ns;
		pair->evidence++;
		return;
	}
	if (p->n < MAX_PAIRS)
		p->pair[p->n++] = (struct rc_pair){ local, remote, ns, ns, 1 };
}

static void request(struct side *to, uint32_t qpn, uint32_t psn, uint64_t ns)
{
	unsigned int i;

	for (i = 0; i < to->n && to->in[i].qpn != qpn; i++)
		;
	if (i == MAX_STREAMS)
		return;
	if (i == to->n)
		to->n++;
	to->in[i] = (struct stream){ qpn, psn, ns, true };
}

/* The only QP to which a request went that this PSN may answer. */
static const struct stream *answered(struct side *to, uint32_t psn, uint64_t ns)
{
	struct stream *only = NULL;

	for (unsigned int i = 0; i < to->n; i++) {
		struct stream *s = &to->in[i];

		if (!s->open || ((s->psn - psn) & 0xffffff) > WINDOW || is_quiet(s->ns, ns))
			continue;
		if (only)
			return NULL;
		only = s;
	}
	if (only && only->psn == psn)
		only->open = false;
	return only;
}

void rc_pairs_packet(struct rc_pairs *p, const uint8_t *bth, bool out, uint64_t ns)
{
	unsigned int op = bth[0] & 0x1f;
	uint32_t qpn = roce_be(bth + 5, 3), psn = roce_be(bth + 9, 3);
	const struct stream *s;

	/* READ response FIRST to ATOMIC ACKNOWLEDGE */
	if (op >= 0x0d && op <= 0x12) {
		s = answered(out ? &p->here : &p->there, psn, ns);
		if (s && out)
			evidence(p, s->qpn, qpn, ns);
		else if (s)
			evidence(p, qpn, s->qpn, ns);
		return;
	}
	/* A READ request takes as many PSNs as its response has packets. */
	if (op == 0x0c) {
		uint32_t len = roce_be(bth + (bth[0] >> 5 == TRANSPORT_XRC ? 28 : 24), 4);

		psn = (psn + (len ? (len - 1) / p->mtu : 0)) & 0xffffff;
	}
	request(out ? &p->there : &p->here, qpn, psn, ns);
}

static bool exclude(const struct rc_pair *a, const struct rc_pair *b)
{
	return (a->local == b->local) != (a->remote == b->remote) && a->from_ns <= b->to_ns &&
	       b->from_ns <= a->to_ns;
}

unsigned int rc_pairs_settle(struct rc_pairs *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->n; i++)
		for (unsigned int j = 0; j < p->n && p->pair[i].evidence; j++)
			if (exclude(&p->pair[i], &p->pair[j]) &&
			    p->pair[i].evidence < p->pair[j].evidence)
				p->pair[i].evidence = 0;
	for (unsigned int i = 0; i < p->n; i++)
		if (p->pair[i].evidence)
			p->pair[n++] = p->pair[i];
	p->n = n;
	return n;
}

const struct rc_pair *rc_pairs_get(const struct rc_pairs *p, unsigned int i)
{
	return &p->pair[i];
}

const struct rc_pair *rc_pairs_of(const struct rc_pairs *p, bool out, uint32_t qpn, uint64_t ns)
{
	uint64_t nearest = UINT64_MAX;
	const struct rc_pair *best = NULL;

	for (unsigned int i = 0; i < p->n; i++) {
		const struct rc_pair *pair = &p->pair[i];
		uint64_t away = 0;

		if ((out ? pair->remote : pair->local) != qpn)
			continue;
		if (ns < pair->from_ns)
			away = pair->from_ns - ns;
		else if (ns > pair->to_ns)
			away = ns - pair->to_ns;
		if (away < nearest) {
			nearest = away;
			best = pair;
		}
	}
	return best;
}
