/* SPDX-License-Identifier: Apache-2.0 */
/* What stats.c collects, for the two that print it: stats_json.c and table.c. */
#ifndef URDMA_EVENTS_STATS_H
#define URDMA_EVENTS_STATS_H

#include "events/histogram.h"
#include "events/outputs.h"
#include "events/series.h"

#define URDMA_SLOWEST 10u

/* Completed WQEs: of a QP, of a NIC. Times in cycles. */
struct urdma_messages {
	uint64_t n, bytes, failed;
	uint64_t completions; /* of n, those with a CQE */
	uint64_t doorbells;   /* that the NIC has taken */
	uint64_t first, last; /* begin of the first, end of the last */
	struct urdma_histogram whole;
	struct urdma_histogram stage[URDMA_STAGES];
	uint64_t retries[URDMA_CAUSES]; /* events */
	uint64_t resent;		/* packets */
	uint64_t incomplete[URDMA_INCOMPLETES];
};

/*
 * Buckets of latencies in one of the report: a picture needs fewer than a percentile. Of the
 * messages in each, the sum of each stage, in ns.
 */
#define URDMA_MERGED 4u
typedef uint64_t urdma_split[URDMA_HISTOGRAM_BUCKETS / URDMA_MERGED][URDMA_STAGES];

/* A number that changes: its sum over cycles of the timeline, its maximum. */
struct urdma_level {
	uint64_t value, since, max;
	uint64_t busy;	/* cycles in which it was not 0, until `since` */
	uint64_t begun; /* the first change, URDMA_NEVER before */
	double area;
};

/* What a QP does over time. */
struct urdma_qp_times {
	struct urdma_flow sent;	    /* its frames, as wire counts them */
	struct urdma_series resent; /* packets */
};

struct urdma_qp_stats {
	struct urdma_messages messages;
	struct urdma_level depth;     /* WQEs posted and not acknowledged */
	uint64_t frames, bytes;	      /* sent, as wire counts them */
	struct urdma_qp_times *times; /* NULL before its first frame */
};
/* The JSON has the times of so many QPs of a NIC, those that sent most. */
#define URDMA_TIMED_QPS 32u

/* Both directions of a link: bytes with framing and headers, and the same over time. [0] leaves
 * the NIC. */
struct urdma_link_stats {
	uint64_t bytes[2];
	struct urdma_flow flow[2];
};

struct urdma_nic_stats {
	struct urdma_messages messages;
	urdma_split *split[URDMA_HISTOGRAM_OCTAVES]; /* of messages.whole */
	uint64_t origin; /* cycle in which the NIC's counter is 0; URDMA_NEVER: no reset seen */
	struct urdma_qp_stats **qp[URDMA_EVENTS_MAX_QPS / 256];
	struct urdma_link_stats pcie;	 /* TLPs: [0] to the host, [1] from it */
	uint64_t dma[2], dma_payload[2]; /* [0] writes, [1] reads that ended well; bytes */
	struct urdma_link_stats wire; /* frames with preamble, FCS, gap: [0] sent, [1] received */
	uint64_t frames[2];
	struct urdma_level reads; /* outstanding */
	struct urdma_series reads_series;
	struct urdma_level posted; /* WQEs posted and not acknowledged, of all send queues */
	struct urdma_series posted_series;
	uint64_t read_bytes[1024]; /* of reads that are outstanding, by tag */
	uint64_t irqs, read_errors, bad_frames, dropped_full, rnr_naks;
	uint64_t cqes[2];	       /* of receives, of sends */
	uint64_t losses[URDMA_CAUSES]; /* that QPs have noticed */
	struct {
		uint64_t n, refused;
		uint64_t hits, misses;	       /* of entries of page tables */
		uint64_t dir_hits, dir_misses; /* of entries of directories */
	} xlat[URDMA_CLIENTS];
	struct {
		uint64_t n, cycles, max;
	} stall[URDMA_TRACE_STREAMS];
	uint64_t verdicts[URDMA_VERDICTS];
	struct urdma_histogram packet[URDMA_PACKET_STAGES];
};

struct urdma_stats {
	const struct urdma_trace_nic *of;
	unsigned int n;
	struct urdma_nic_stats *nic;
	struct urdma_wqe slowest[URDMA_SLOWEST]; /* the slowest first */
	unsigned int n_slowest;
	struct urdma_timeline timeline;
	uint64_t events, first, last; /* cycles */
	const char *trigger;	      /* of the run; NULL: it has none */
	uint64_t trigger_cycle;	      /* URDMA_NEVER: it is not among the events */
	unsigned int trigger_nic;     /* whose event it was; n: a fault of a wire */
	bool no_memory;
};

/* From the first change to `until` on the timeline, which is not before the last one. */
double urdma_level_mean(const struct urdma_level *l, uint64_t until);
/* In how many cycles until then it was not 0. */
uint64_t urdma_level_busy(const struct urdma_level *l, uint64_t until);
/* NULL: none. Of NIC n, numbers below URDMA_EVENTS_MAX_QPS. */
const struct urdma_qp_stats *urdma_stats_qp(const struct urdma_stats *s, unsigned int n,
					    uint32_t qpn);

#endif
