// SPDX-License-Identifier: Apache-2.0
/*
 * rc_judge -m MTU [-t TIMEOUT] [-g] [-r] [-d FRAMES] [-p LOCAL:REMOTE]... FILE...: judges captures
 * by the rules of rc_check.h. Without -p the QPs of a file are paired by their answers. With -g QPs
 * may end with unfinished work, as when programs are killed. With -r programs may rewrite the
 * buffer of a SEND before it is acknowledged. With -d the NIC of each file has dropped so many
 * frames for lack of room. Good packets of UC and UD, which have no answers, are counted and not
 * judged. Prints a line of counts per file. Exit status 1: there was a violation; 2: a file could
 * not be read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "icrc.h"
#include "rc_check.h"
#include "rc_pairs.h"

#define MAX_GIVEN 4096u

/* Pairs from the options. */
struct given {
	struct rc_pair pair[MAX_GIVEN];
	unsigned int n;
};

struct file {
	struct rc_check *check;
	struct rc_pairs *pairs;
	unsigned int n_pairs;
	uint64_t last_ns, unreliable;
};

/* Upper three bits of a BTH opcode (volume 1, table 38). */
enum { TRANSPORT_RC = 0, TRANSPORT_UC = 1, TRANSPORT_UD = 3, TRANSPORT_XRC = 5 };

/* Whether it is a RoCE packet with a good ICRC. */
static bool is_good(const struct pcap_frame *frame, struct roce_frame *roce)
{
	const char *why;
	uint8_t icrc[4];

	if (frame->bad_fcs || roce_parse(frame->data, frame->len, roce, &why))
		return false;
	roce_icrc(frame->data, roce, icrc);
	return !memcmp(icrc, frame->data + roce->end - 4, 4);
}

static unsigned int transport(const struct pcap_frame *frame, const struct roce_frame *roce)
{
	return frame->data[roce->bth] >> 5;
}

/* A good packet of UC or UD. */
static bool is_unreliable(const struct pcap_frame *frame)
{
	struct roce_frame roce;
	unsigned int t;

	if (!is_good(frame, &roce))
		return false;
	t = transport(frame, &roce);
	return t == TRANSPORT_UC || t == TRANSPORT_UD;
}

static void pair_frame(void *ctx, const struct pcap_frame *frame)
{
	struct file *f = ctx;
	struct roce_frame roce;
	unsigned int t;

	if (!is_good(frame, &roce))
		return;
	t = transport(frame, &roce);
	if (t == TRANSPORT_RC || t == TRANSPORT_XRC)
		rc_pairs_packet(f->pairs, frame->data + roce.bth, frame->outbound, frame->ns);
}

/* The judge uses the pair that was named last for a QP. */
static void choose_pair(struct file *f, const struct pcap_frame *frame)
{
	const struct rc_pair *pair;
	struct roce_frame roce;
	const char *why;

	if (frame->bad_fcs || roce_parse(frame->data, frame->len, &roce, &why))
		return;
	pair = rc_pairs_of(f->pairs, frame->outbound, roce_be(frame->data + roce.bth + 5, 3),
			   frame->ns);
	/* known already, so this takes no memory */
	if (pair)
		rc_check_pair(f->check, pair->local, pair->remote);
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

/* Names all pairs to the judge. */
static int name_pairs(struct file *f)
{
	int ret = 0;

	f->n_pairs = rc_pairs_settle(f->pairs);
	for (unsigned int i = 0; i < f->n_pairs && !ret; i++) {
		const struct rc_pair *pair = rc_pairs_get(f->pairs, i);

		ret = rc_check_pair(f->check, pair->local, pair->remote);
	}
	return ret;
}

static int judge(const char *name, const struct rc_check_config *config, const struct given *given)
{
	const char *slash = strrchr(name, '/'), *error = NULL;
	struct file f = { .check = rc_check_create(slash ? slash + 1 : name, config),
			  .pairs = rc_pairs_create(config->mtu) };
	const struct rc_counts *n;
	int status = 2;

	if (!f.check || !f.pairs)
		error = "no memory";
	for (unsigned int i = 0; i < given->n && !error; i++)
		rc_pairs_add(f.pairs, given->pair[i].local, given->pair[i].remote);
	if (!error && !given->n)
		error = pcap_read(name, pair_frame, &f);
	if (!error && name_pairs(&f))
		error = "no memory";
	if (!error)
		error = pcap_read(name, judge_frame, &f);
	if (error) {
		fprintf(stderr, "%s: %s\n", name, error);
		goto out;
	}
	status = rc_check_end(f.check, f.last_ns) ? 1 : 0;
	n = rc_check_counts(f.check);
	printf("%s: %u pairs of QPs; sent %" PRIu64 " packets, %" PRIu64 " again, %" PRIu64
	       " time-outs, %" PRIu64 " ACKs, %" PRIu64 " NAKs, %" PRIu64
	       " RNR NAKs; received %" PRIu64 " packets, %" PRIu64 " duplicates, %" PRIu64
	       " ahead, %" PRIu64 " with a wrong ICRC; %" PRIu64
	       " packets of QPs without a pair; %" PRIu64 " of UC and UD; %" PRIu64 " violations\n",
	       name, f.n_pairs, n->tx_packets, n->tx_again, n->timeouts, n->tx_ack,
	       n->tx_nak_seq + n->tx_nak_other, n->tx_nak_rnr, n->rx_packets, n->rx_duplicate,
	       n->rx_ahead, n->rx_bad_icrc, n->unpaired, f.unreliable, n->violations);
out:
	rc_check_destroy(f.check);
	rc_pairs_destroy(f.pairs);
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
	struct rc_check_config config = { .lives = true, .keys_end = true };
	static struct given given;
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

			if (*end != ':' || given.n == MAX_GIVEN)
				return usage(argv[0]);
			given.pair[given.n++] =
				(struct rc_pair){ .local = local,
						  .remote = (uint32_t)strtoul(end + 1, NULL, 0) };
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
