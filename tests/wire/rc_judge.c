// SPDX-License-Identifier: Apache-2.0
/*
 * rc_judge -m MTU [-t TIMEOUT] [-g] [-r] [-d FRAMES] [-p LOCAL:REMOTE]... FILE...: judges captures
 * by the rules of rc_check.h. Without -p the QPs of a file are paired by what answers what. With -g
 * QPs may go with work undone, as when programs are killed. With -r programs may rewrite the buffer
 * of a SEND before it is acknowledged. With -d the NIC of each file has dropped so many frames for
 * lack of room. Good packets of UC and UD, which nobody answers, are counted and not judged. Prints
 * a line of counts a file; ends with 1 when there was a violation, 2 when a file could not be read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icrc.h"
#include "rc_check.h"

#define MAX_PAIRS   4096u
#define MAX_STREAMS 4096u

/* Requests to one QP of the port, answers to one QP of the peer: the last PSN seen. */
struct stream {
	uint32_t qpn, psn;
};

struct guess {
	struct stream in[MAX_STREAMS];
	unsigned int in_n, pairs;
	struct {
		uint32_t local, remote;
		uint64_t from_ns, to_ns; /* the answers that say so */
	} pair[MAX_PAIRS];
};

struct file {
	struct rc_check *check;
	unsigned int mtu;
	struct guess here, there; /* answers of this port; answers of the peer */
	uint64_t last_ns, unreliable;
};

/* Upper three bits of a BTH opcode (volume 1, table 38). */
enum { TRANSPORT_UC = 1, TRANSPORT_UD = 3, TRANSPORT_XRC = 5 };

/* A good RoCE packet of UC or UD. */
static bool is_unreliable(const struct pcap_frame *frame)
{
	struct roce_frame roce;
	const char *why;
	uint8_t icrc[4];
	unsigned int transport;

	if (frame->bad_fcs || roce_parse(frame->data, frame->len, &roce, &why))
		return false;
	transport = frame->data[roce.bth] >> 5;
	if (transport != TRANSPORT_UC && transport != TRANSPORT_UD)
		return false;
	roce_icrc(frame->data, &roce, icrc);
	return !memcmp(icrc, frame->data + roce.end - 4, 4);
}

static void add_pair(struct guess *g, uint32_t local, uint32_t remote, uint64_t from_ns,
		     uint64_t to_ns)
{
	unsigned int i;

	for (i = 0; i < g->pairs; i++)
		if (g->pair[i].local == local && g->pair[i].remote == remote)
			break;
	if (i == MAX_PAIRS)
		return;
	if (i == g->pairs) {
		g->pairs++;
		g->pair[i].local = local;
		g->pair[i].remote = remote;
		g->pair[i].from_ns = from_ns;
		g->pair[i].to_ns = to_ns;
		return;
	}
	if (from_ns < g->pair[i].from_ns)
		g->pair[i].from_ns = from_ns;
	if (to_ns > g->pair[i].to_ns)
		g->pair[i].to_ns = to_ns;
}

/* An answer to QP `to` with a PSN: whose request had it last? Only if there is one candidate. */
static void guess_answer(struct guess *g, uint32_t to, uint32_t psn, uint64_t ns)
{
	const struct stream *hit = NULL;

	for (unsigned int i = 0; i < g->in_n; i++) {
		if (((g->in[i].psn - psn) & 0xffffff) > 256)
			continue;
		if (hit)
			return;
		hit = &g->in[i];
	}
	if (hit)
		add_pair(g, hit->qpn, to, ns, ns);
}

static void guess_request(struct guess *g, uint32_t qpn, uint32_t psn)
{
	unsigned int i;

	for (i = 0; i < g->in_n && g->in[i].qpn != qpn; i++)
		;
	if (i == MAX_STREAMS)
		return;
	if (i == g->in_n)
		g->in_n++;
	g->in[i].qpn = qpn;
	g->in[i].psn = psn;
}

static void guess_frame(void *ctx, const struct pcap_frame *frame)
{
	struct file *f = ctx;
	struct roce_frame roce;
	const char *why;
	const uint8_t *bth;
	uint8_t icrc[4];
	uint32_t psn;
	bool answer, xrc;
	uint8_t op;

	if (frame->bad_fcs || roce_parse(frame->data, frame->len, &roce, &why))
		return;
	roce_icrc(frame->data, &roce, icrc);
	if (memcmp(icrc, frame->data + roce.end - 4, 4))
		return;
	bth = frame->data + roce.bth;
	xrc = bth[0] >> 5 == TRANSPORT_XRC;
	if (bth[0] >> 5 && !xrc)
		return;
	op = bth[0] & 0x1f;
	psn = roce_be(bth + 9, 3);
	answer = op >= 0x0d && op <= 0x12;
	if (answer) {
		guess_answer(frame->outbound ? &f->here : &f->there, roce_be(bth + 5, 3), psn,
			     frame->ns);
		return;
	}
	/* A READ request takes as many PSNs as its response has packets. */
	if (op == 0x0c) {
		uint32_t len = roce_be(bth + (xrc ? 28 : 24), 4);

		psn = (psn + (len ? (len - 1) / f->mtu : 0)) & 0xffffff;
	}
	guess_request(frame->outbound ? &f->there : &f->here, roce_be(bth + 5, 3), psn);
}

/*
 * Numbers of QPs are used again, and then perhaps connected to others: of the pairs that a frame
 * may belong to, it is the one whose answers are nearest in time.
 */
static void choose_pair(struct file *f, const struct pcap_frame *frame)
{
	uint64_t nearest = UINT64_MAX;
	unsigned int candidates = 0, best = 0;
	struct roce_frame roce;
	const char *why;
	uint32_t qpn;

	if (frame->bad_fcs || roce_parse(frame->data, frame->len, &roce, &why))
		return;
	qpn = roce_be(frame->data + roce.bth + 5, 3);
	for (unsigned int i = 0; i < f->here.pairs; i++) {
		uint64_t from = f->here.pair[i].from_ns, to = f->here.pair[i].to_ns, away = 0;

		if ((frame->outbound ? f->here.pair[i].remote : f->here.pair[i].local) != qpn)
			continue;
		if (frame->ns < from)
			away = from - frame->ns;
		else if (frame->ns > to)
			away = frame->ns - to;
		if (away < nearest) {
			nearest = away;
			best = i;
		}
		candidates++;
	}
	/* known, so it takes no memory */
	if (candidates > 1)
		rc_check_pair(f->check, f->here.pair[best].local, f->here.pair[best].remote);
}

static void judge_frame(void *ctx, const struct pcap_frame *frame)
{
	struct file *f = ctx;

	f->last_ns = frame->ns;
	if (is_unreliable(frame)) {
		f->unreliable++;
		return;
	}
	choose_pair(f, frame);
	rc_check_frame(f->check, frame);
}

/* Pairs as this port sees them: what its answers say, and what the peer's answers say. */
static int pair_up(struct file *f)
{
	int ret = 0;

	for (unsigned int i = 0; i < f->there.pairs; i++)
		add_pair(&f->here, f->there.pair[i].remote, f->there.pair[i].local,
			 f->there.pair[i].from_ns, f->there.pair[i].to_ns);
	for (unsigned int i = 0; i < f->here.pairs && !ret; i++)
		ret = rc_check_pair(f->check, f->here.pair[i].local, f->here.pair[i].remote);
	return ret;
}

static int judge(const char *name, const struct rc_check_config *config, const struct guess *given)
{
	struct file *f = calloc(1, sizeof(*f));
	const char *slash = strrchr(name, '/'), *error = NULL;
	const struct rc_counts *n;
	int status;

	if (!f)
		return 2;
	f->mtu = config->mtu;
	f->check = rc_check_create(slash ? slash + 1 : name, config);
	if (given->pairs)
		f->here = *given;
	else
		error = pcap_read(name, guess_frame, f);
	if (!f->check || pair_up(f))
		error = "no memory";
	if (!error)
		error = pcap_read(name, judge_frame, f);
	if (error) {
		fprintf(stderr, "%s: %s\n", name, error);
		rc_check_destroy(f->check);
		free(f);
		return 2;
	}
	status = rc_check_end(f->check, f->last_ns) ? 1 : 0;
	n = rc_check_counts(f->check);
	printf("%s: %u pairs of QPs; sent %" PRIu64 " packets, %" PRIu64 " again, %" PRIu64
	       " time-outs, %" PRIu64 " ACKs, %" PRIu64 " NAKs, %" PRIu64
	       " RNR NAKs; received %" PRIu64 " packets, %" PRIu64 " duplicates, %" PRIu64
	       " ahead, %" PRIu64 " with a wrong ICRC; %" PRIu64
	       " packets of QPs without a pair; %" PRIu64 " of UC and UD; %" PRIu64 " violations\n",
	       name, f->here.pairs, n->tx_packets, n->tx_again, n->timeouts, n->tx_ack,
	       n->tx_nak_seq + n->tx_nak_other, n->tx_nak_rnr, n->rx_packets, n->rx_duplicate,
	       n->rx_ahead, n->rx_bad_icrc, n->unpaired, f->unreliable, n->violations);
	rc_check_destroy(f->check);
	free(f);
	return status;
}

static int usage(const char *prog)
{
	fprintf(stderr,
		"usage: %s -m MTU [-t TIMEOUT] [-g] [-r] [-d FRAMES] [-p LOCAL:REMOTE]... "
		"FILE...\n",
		prog);
	return 2;
}

int main(int argc, char **argv)
{
	struct rc_check_config config = { .lives = true };
	static struct guess given;
	int opt, status = 0;

	while ((opt = getopt(argc, argv, "m:t:grd:p:")) != -1) {
		char *end;

		switch (opt) {
		case 'm':
			config.mtu = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 't':
			config.timeout = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'g':
			config.gone = true;
			break;
		case 'd':
			config.rx_dropped = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			config.rewritten = true;
			break;
		case 'p': {
			uint32_t local = (uint32_t)strtoul(optarg, &end, 0);

			if (*end != ':')
				return usage(argv[0]);
			add_pair(&given, local, (uint32_t)strtoul(end + 1, NULL, 0), 0, UINT64_MAX);
			break;
		}
		default:
			return usage(argv[0]);
		}
	}
	if (config.mtu < 256 || config.mtu > 4096 || config.mtu & (config.mtu - 1) ||
	    config.timeout > 31 || optind == argc)
		return usage(argv[0]);
	for (int i = optind; i < argc; i++) {
		int ret = judge(argv[i], &config, &given);

		if (ret > status)
			status = ret;
	}
	return status;
}
