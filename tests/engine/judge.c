// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "judge.h"

static void tap(void *ctx, uint64_t ns, const struct urdma_eth_frame *frame, bool outbound)
{
	struct judge_port *port = ctx;
	const struct pcap_frame f = { .data = frame->data,
				      .len = frame->len,
				      .ns = ns,
				      .outbound = outbound,
				      .bad_fcs = frame->error };

	port->last_ns = ns;
	rc_check_frame(port->check, &f);
}

static void counters(struct rig *rig, unsigned int n, uint64_t *value)
{
	for (unsigned int i = 0; i < URDMA_CNT_N; i++)
		value[i] = urdma_eh_counter(rig->side[n].eh, i);
}

void judge_start(struct judge *judge, struct rig *rig, bool lives)
{
	struct rc_check_config config = {
		.mtu = 128u << rig->config.mtu,
		.timeout = rig->config.conn.timeout,
		.rd_atomic = rig->config.conn.max_rd_atomic,
		.same_qpn = true,
		.lives = lives,
	};

	memset(judge, 0, sizeof(*judge));
	judge->rig = rig;
	for (unsigned int n = 0; n < 2; n++) {
		struct urdma_eth_port *port = urdma_cosim_port(rig->cosim, n);

		rig_check(rig, urdma_eh_mac(rig->side[n].eh, config.mac), "MAC address");
		judge->port[n].check = rc_check_create(n ? "side 1" : "side 0", &config);
		rig_check(rig, judge->port[n].check ? 0 : -1, "wire checker");
		counters(rig, n, judge->port[n].before);
		port->tap = tap;
		port->tap_ctx = &judge->port[n];
	}
}

void judge_drop(struct judge *judge)
{
	for (unsigned int n = 0; n < 2; n++)
		if (judge->port[n].check) {
			urdma_cosim_port(judge->rig->cosim, n)->tap = NULL;
			rc_check_destroy(judge->port[n].check);
			judge->port[n].check = NULL;
		}
}

void judge_end(struct judge *judge, const char *what)
{
	uint64_t violations[2], wrong = 0;

	for (unsigned int n = 0; n < 2; n++) {
		struct judge_port *port = &judge->port[n];
		const struct rc_counts *seen = rc_check_counts(port->check);
		uint64_t now[URDMA_CNT_N];
		const struct {
			const char *name;
			unsigned int index;
			uint64_t seen;
		} table[] = {
			{ "tx_rdma_pkts", URDMA_CNT_TX_RDMA_PKTS, seen->tx_packets },
			{ "rx_rdma_pkts", URDMA_CNT_RX_RDMA_PKTS, seen->rx_packets },
			{ "rx_icrc_err", URDMA_CNT_RX_ICRC_ERR, seen->rx_bad_icrc },
			{ "tx_ack", URDMA_CNT_TX_ACK, seen->tx_ack },
			{ "tx_nak_seq", URDMA_CNT_TX_NAK_SEQ, seen->tx_nak_seq },
			{ "tx_nak_rnr", URDMA_CNT_TX_NAK_RNR, seen->tx_nak_rnr },
			{ "tx_nak_other", URDMA_CNT_TX_NAK_OTHER, seen->tx_nak_other },
			{ "tx_read_rsp", URDMA_CNT_TX_READ_RSP, seen->tx_read_rsp },
			{ "tx_retrans", URDMA_CNT_TX_RETRANS, seen->tx_again },
		};

		counters(judge->rig, n, now);
		violations[n] = rc_check_end(port->check, port->last_ns);
		for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
			uint64_t counted = now[table[i].index] - port->before[table[i].index];

			if (counted == table[i].seen)
				continue;
			print_error("%s: side %u counts %s %llu, the port saw %llu\n", what, n,
				    table[i].name, (unsigned long long)counted,
				    (unsigned long long)table[i].seen);
			wrong++;
		}
	}
	judge_drop(judge);
	if (violations[0] || violations[1] || wrong)
		rig_print_counters(judge->rig);
	if (violations[0] || violations[1] || wrong)
		fail_msg("%s: %llu violations on the wire by side 0, %llu by side 1, %llu wrong "
			 "counters",
			 what, (unsigned long long)violations[0], (unsigned long long)violations[1],
			 (unsigned long long)wrong);
}
