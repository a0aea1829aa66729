// SPDX-License-Identifier: Apache-2.0
#include "agree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "icrc.h"

bool agree_open(struct agree *a, const char *path)
{
	memset(a, 0, sizeof(*a));
	return !urdma_pcapng_reader_open(path, &a->capture, a->wrong, sizeof(a->wrong));
}

/* The contents of a frame that the wire has changed depend on the reader. */
static bool same_bth(const struct urdma_pcapng_packet *p, const struct urdma_trace_event *e)
{
	struct roce_frame roce;
	const char *why;
	int ret = e->tx_end.error ? -1 : roce_parse(p->data, p->len, &roce, &why);

	if (ret < 0)
		return true;
	if (ret)
		return !e->tx_end.rdma && !e->tx_end.dqpn && !e->tx_end.psn && !e->tx_end.opcode;
	return e->tx_end.rdma && e->tx_end.dqpn == roce_be(p->data + roce.bth + 5, 3) &&
	       e->tx_end.psn == roce_be(p->data + roce.bth + 9, 3) &&
	       e->tx_end.opcode == roce.opcode;
}

/* tx_end and rx_end have the same fields. */
bool agree_frame(struct agree *a, const struct urdma_trace_event *e)
{
	bool out = e->kind == URDMA_TRACE_TX_END;
	uint64_t ns = e->cycle * URDMA_SIM_CYCLE_NS, number;
	struct urdma_pcapng_packet p;
	int ret = urdma_pcapng_read(a->capture, &p, a->wrong, sizeof(a->wrong));

	if (out)
		a->sent++;
	else
		a->received++;
	number = a->sent + a->received;
	if (ret < 0)
		return false;
	if (!ret) {
		snprintf(a->wrong, sizeof(a->wrong),
			 "frame %" PRIu64 " of the events, at %" PRIu64
			 " ns, is not in the capture",
			 number, ns);
		return false;
	}
	if (e->tx_end.number == number && p.ns == ns && p.len == e->tx_end.len &&
	    p.outbound == out && p.inbound == !out && p.crc_error == e->tx_end.error &&
	    same_bth(&p, e))
		return true;
	snprintf(a->wrong, sizeof(a->wrong),
		 "frame %" PRIu64 " of the capture (%" PRIu64
		 " ns, %u bytes, %s, FCS error %u) is among the events frame %" PRIu64 " (%" PRIu64
		 " ns, %" PRIu64 " bytes, %s, FCS error %" PRIu64 ", QP %" PRIu64 ", PSN %" PRIu64
		 ", opcode %" PRIu64 ")",
		 number, p.ns, p.len, p.outbound ? "sent" : "received", p.crc_error,
		 e->tx_end.number, ns, e->tx_end.len, out ? "sent" : "received", e->tx_end.error,
		 e->tx_end.dqpn, e->tx_end.psn, e->tx_end.opcode);
	return false;
}

bool agree_close(struct agree *a)
{
	struct urdma_pcapng_packet p;
	int ret = a->capture ? urdma_pcapng_read(a->capture, &p, a->wrong, sizeof(a->wrong)) : 0;

	if (ret == 1)
		snprintf(a->wrong, sizeof(a->wrong),
			 "frame %" PRIu64 " of the capture, at %" PRIu64
			 " ns, is not among the events",
			 a->sent + a->received + 1, p.ns);
	urdma_pcapng_reader_close(a->capture);
	a->capture = NULL;
	return !ret;
}
