// SPDX-License-Identifier: Apache-2.0
// The summary table.
#include <stdio.h>

#include "events/stats.h"

static const char *largest_stage(const struct urdma_messages *m, double *share)
{
	unsigned int largest = 0;

	for (unsigned int i = 1; i < URDMA_STAGES; i++)
		if (m->stage[i].sum > m->stage[largest].sum)
			largest = i;
	*share = m->whole.sum ? 100.0 * (double)m->stage[largest].sum / (double)m->whole.sum : 0;
	return m->n ? urdma_stage_name[largest] : "-";
}

static void qp_line(const char *nic, uint32_t qpn, const struct urdma_messages *m)
{
	double share;
	const char *stage = largest_stage(m, &share);

	printf("%-12s %6u %10llu %14llu %10.0f %10llu %10llu  %s %.0f %%\n", nic, qpn,
	       (unsigned long long)m->n, (unsigned long long)m->bytes,
	       urdma_histogram_mean(&m->whole),
	       (unsigned long long)urdma_histogram_percentile(&m->whole, 50),
	       (unsigned long long)urdma_histogram_percentile(&m->whole, 99), stage, share);
}

static double gbps(uint64_t bytes, double ns)
{
	return ns > 0 ? (double)bytes * 8 / ns : 0;
}

static void nic_line(const struct urdma_stats *s, unsigned int n)
{
	const struct urdma_nic_stats *nic = &s->nic[n];
	double ns = (double)s->timeline.at * URDMA_CYCLE_NS;

	printf("%-12s %10.2f %10.2f %10.2f %10.2f %10.1f %10llu\n", s->of[n].name,
	       gbps(nic->wire.bytes[0], ns), gbps(nic->wire.bytes[1], ns),
	       gbps(nic->pcie.bytes[0], ns), gbps(nic->pcie.bytes[1], ns),
	       urdma_level_mean(&nic->reads, s->timeline.at), (unsigned long long)nic->reads.max);
}

static void incomplete_lines(const struct urdma_stats *s)
{
	for (unsigned int i = 0; i < URDMA_INCOMPLETES; i++) {
		uint64_t n = 0;

		for (unsigned int k = 0; k < s->n; k++)
			n += s->nic[k].messages.incomplete[i];
		if (n)
			printf("not counted: %llu WQEs that %s\n", (unsigned long long)n,
			       urdma_incomplete_text[i]);
	}
}

void urdma_stats_table(const struct urdma_stats *s)
{
	printf("%llu events, %.3f to %.3f us\n", (unsigned long long)s->events,
	       (double)s->first * URDMA_CYCLE_NS / 1000, (double)s->last * URDMA_CYCLE_NS / 1000);
	if (s->trigger && s->trigger_cycle != URDMA_NEVER)
		printf("trigger: %s, at %.3f us\n", s->trigger,
		       (double)s->trigger_cycle * URDMA_CYCLE_NS / 1000);
	else if (s->trigger)
		printf("trigger: %s, not among these events\n", s->trigger);
	printf("\n");
	printf("%-12s %6s %10s %14s %10s %10s %10s  %s\n", "NIC", "QP", "messages", "bytes",
	       "mean ns", "p50 ns", "p99 ns", "largest stage");
	for (unsigned int i = 0; i < s->n; i++)
		for (uint32_t qpn = 0; qpn < URDMA_EVENTS_MAX_QPS; qpn++)
			if (urdma_stats_qp(s, i, qpn))
				qp_line(s->of[i].name, qpn, &urdma_stats_qp(s, i, qpn)->messages);
	printf("\n%-12s %10s %10s %10s %10s %10s %10s\n", "NIC", "tx Gb/s", "rx Gb/s", "to host",
	       "from host", "reads", "most reads");
	for (unsigned int i = 0; i < s->n; i++)
		nic_line(s, i);
	incomplete_lines(s);
}
