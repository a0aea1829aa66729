// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "eth/fault.h"
#include "judge.h"

/*
 * A frame waits until the NIC has said whether it had room for it. By the rules a frame without
 * room was not received, but it has to be counted. The NIC says so 10 cycles after the last beat.
 * Both directions wait equally long, so the order stays.
 */
#define VERDICT_NS (12u * URDMA_SIM_CYCLE_NS)
#define HOLD_NS	   (2u * VERDICT_NS)

struct judge_frame {
	struct judge_frame *next;
	struct pcap_frame f; /* no data: not a frame, but a QP that stops or begins a new life */
	uint32_t qpn, sq_psn, rq_psn;
	bool stop;
	struct urdma_roce roce;
	bool open; /* received, and the NIC may not have had room for it */
	bool full;
	uint8_t data[];
};

static void must(bool there)
{
	if (there)
		return;
	fprintf(stderr, "judge: no memory\n");
	exit(EXIT_FAILURE);
}

static void tell(struct rc_check *check, const struct judge_frame *h)
{
	if (h->stop)
		must(!rc_check_stop(check, h->qpn, h->qpn));
	else
		must(!rc_check_connect(check, h->qpn, h->qpn, h->sq_psn, h->rq_psn, h->f.ns));
}

static void release(struct judge_port *port, uint64_t now)
{
	while (port->first && port->first->f.ns + HOLD_NS <= now) {
		struct judge_frame *h = port->first;

		port->first = h->next;
		if (!port->first)
			port->last = NULL;
		if (h->full)
			port->full++;
		else if (!h->f.data)
			tell(port->check, h);
		else
			rc_check_frame(port->check, &h->f);
		free(h);
	}
}

static void append(struct judge_port *port, struct judge_frame *h)
{
	if (port->last)
		port->last->next = h;
	else
		port->first = h;
	port->last = h;
}

static void tap(void *ctx, uint64_t ns, const struct urdma_eth_frame *frame, bool outbound)
{
	struct judge_port *port = ctx;
	struct judge_frame *h = malloc(sizeof(*h) + frame->len);

	must(h);
	release(port, ns);
	*h = (struct judge_frame){ .f = { .data = h->data,
					  .len = frame->len,
					  .ns = ns,
					  .outbound = outbound,
					  .bad_fcs = frame->error } };
	memcpy(h->data, frame->data, frame->len);
	h->open = !outbound && urdma_roce_parse(frame->data, frame->len, &h->roce);
	append(port, h);
	port->last_ns = ns;
}

static void mark(struct judge *judge, unsigned int side, const struct judge_frame *mark)
{
	struct judge_frame *h = malloc(sizeof(*h));

	must(h);
	*h = *mark;
	h->f.ns = urdma_cosim_now(judge->rig->cosim) * URDMA_SIM_CYCLE_NS;
	append(&judge->port[side], h);
}

void judge_connect(struct judge *judge, unsigned int pair, uint32_t psn0, uint32_t psn1)
{
	mark(judge, 0,
	     &(struct judge_frame){ .qpn = RIG_QPN(pair), .sq_psn = psn0, .rq_psn = psn1 });
	mark(judge, 1,
	     &(struct judge_frame){ .qpn = RIG_QPN(pair), .sq_psn = psn1, .rq_psn = psn0 });
}

void judge_stop(struct judge *judge, unsigned int side, unsigned int pair)
{
	mark(judge, side, &(struct judge_frame){ .qpn = RIG_QPN(pair), .stop = true });
}

/* The wire may have changed one of two equal frames, and the NIC does not say which: the time tells
 * them apart. */
static void traced(void *ctx, const struct urdma_trace_event *e)
{
	struct judge *judge = ctx;
	uint64_t now = e->cycle * URDMA_SIM_CYCLE_NS;

	if (e->kind != URDMA_TRACE_IN)
		return;
	for (struct judge_frame *h = judge->port[e->nic].first; h; h = h->next) {
		if (!h->open || now - h->f.ns > VERDICT_NS || h->roce.qpn != e->in.qpn ||
		    h->roce.psn != e->in.psn || h->roce.opcode != e->in.opcode)
			continue;
		h->open = false;
		h->full = e->in.full;
		return;
	}
}

/* What the port saw, as the NIC counts it. */
struct seen {
	struct rc_counts rc;
	uint64_t received, bad, full;
};

/* also: a counter to add, or 0. */
static const struct {
	const char *name;
	unsigned int index, also;
	size_t seen;
} compared[] = {
#define COMPARED(name, index, also, field)                      \
	{                                                       \
		name, index, also, offsetof(struct seen, field) \
	}
	COMPARED("tx_rdma_pkts", URDMA_CNT_TX_RDMA_PKTS, 0, rc.tx_packets),
	COMPARED("rx_rdma_pkts", URDMA_CNT_RX_RDMA_PKTS, 0, received),
	COMPARED("rx_drop_full", URDMA_CNT_RX_DROP_FULL, 0, full),
	/* a changed length or opcode counts as one or the other, depending on which is checked
	 * first */
	COMPARED("rx_icrc_err and rx_malformed", URDMA_CNT_RX_ICRC_ERR, URDMA_CNT_RX_MALFORMED,
		 bad),
	COMPARED("tx_ack", URDMA_CNT_TX_ACK, 0, rc.tx_ack),
	COMPARED("tx_nak_seq", URDMA_CNT_TX_NAK_SEQ, 0, rc.tx_nak_seq),
	COMPARED("tx_nak_rnr", URDMA_CNT_TX_NAK_RNR, 0, rc.tx_nak_rnr),
	COMPARED("tx_nak_other", URDMA_CNT_TX_NAK_OTHER, 0, rc.tx_nak_other),
	COMPARED("tx_read_rsp", URDMA_CNT_TX_READ_RSP, 0, rc.tx_read_rsp),
	COMPARED("tx_retrans", URDMA_CNT_TX_RETRANS, 0, rc.tx_again),
};

#define N_COMPARED (sizeof(compared) / sizeof(compared[0]))

_Static_assert(N_COMPARED <= sizeof(((struct judge_port *)0)->before) / sizeof(uint64_t), "before");

/* value: N_COMPARED */
static void counters(struct rig *rig, unsigned int n, uint64_t *value)
{
	for (unsigned int i = 0; i < N_COMPARED; i++) {
		value[i] = urdma_eh_counter(rig->side[n].eh, compared[i].index);
		if (compared[i].also)
			value[i] += urdma_eh_counter(rig->side[n].eh, compared[i].also);
	}
}

void judge_start(struct judge *judge, struct rig *rig, bool lives)
{
	struct rc_check_config config = {
		.mtu = 128u << rig->config.mtu,
		.timeout = rig->config.conn.timeout,
		.rd_atomic = rig->config.conn.max_rd_atomic,
		.same_qpn = true,
		.lives = lives,
		/* QPs take turns of 32 KB on the line: a reaction may wait for the turns of all
		 * others */
		.lag_ns = UINT64_C(1000) * (50 + 3 * rig->config.qps) * 100000 /
			  rig->config.cosim.rate_mbps,
	};

	memset(judge, 0, sizeof(*judge));
	judge->rig = rig;
	for (unsigned int n = 0; n < 2; n++) {
		struct urdma_eth_port *port = urdma_cosim_port(rig->cosim, n);

		rig_check(rig, urdma_eh_mac(rig->side[n].eh, config.mac), "MAC address");
		urdma_eh_own_gid(rig->side[n].eh, rig->config.ipv6, config.ip);
		judge->port[n].check = rc_check_create(n ? "side 1" : "side 0", &config);
		rig_check(rig, judge->port[n].check ? 0 : -1, "wire checker");
		counters(rig, n, judge->port[n].before);
		assert_int_equal(urdma_eth_port_tap(port, tap, &judge->port[n]), 0);
	}
	assert_int_equal(urdma_cosim_listen(rig->cosim, traced, judge), 0);
}

void judge_drop(struct judge *judge)
{
	for (unsigned int n = 0; n < 2; n++) {
		struct judge_port *port = &judge->port[n];

		if (!port->check)
			continue;
		urdma_eth_port_untap(urdma_cosim_port(judge->rig->cosim, n), tap, port);
		urdma_cosim_unlisten(judge->rig->cosim, traced, judge);
		release(port, UINT64_MAX);
		rc_check_destroy(port->check);
		port->check = NULL;
	}
}

void judge_end(struct judge *judge, const char *what)
{
	uint64_t violations[2], wrong = 0;

	for (unsigned int n = 0; n < 2; n++) {
		struct judge_port *port = &judge->port[n];
		uint64_t now[N_COMPARED];
		struct seen seen;

		release(port, UINT64_MAX);
		counters(judge->rig, n, now);
		violations[n] = rc_check_end(port->check, port->last_ns);
		seen.rc = *rc_check_counts(port->check);
		seen.received = seen.rc.rx_packets + port->strange;
		seen.bad = seen.rc.rx_bad_icrc + seen.rc.rx_malformed - port->strange;
		seen.full = port->full;
		for (unsigned int i = 0; i < N_COMPARED; i++) {
			uint64_t counted = now[i] - port->before[i], there;

			memcpy(&there, (const uint8_t *)&seen + compared[i].seen, sizeof(there));
			if (counted == there || judge->reset)
				continue;
			print_error("%s: side %u counts %s %llu, the port saw %llu\n", what, n,
				    compared[i].name, (unsigned long long)counted,
				    (unsigned long long)there);
			wrong++;
		}
	}
	if (violations[0] || violations[1] || wrong)
		rig_print_counters(judge->rig);
	judge_drop(judge);
	if (violations[0] || violations[1] || wrong)
		fail_msg("%s: %llu violations on the wire by side 0, %llu by side 1, %llu wrong "
			 "counters",
			 what, (unsigned long long)violations[0], (unsigned long long)violations[1],
			 (unsigned long long)wrong);
}
