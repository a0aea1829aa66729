/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics that stats.c collects and that stats_json.c and table.c print. */
#ifndef URDMA_EVENTS_STATS_H
#define URDMA_EVENTS_STATS_H

#include "events/histogram.h"
#include "events/outputs.h"
#include "events/series.h"

#define URDMA_SLOWEST 10u

/* Completed WQEs of a QP or of a NIC. Times in cycles. */
struct urdma_messages {
	uint64_t n, bytes, failed;
	uint64_t completions; /* number of them with a CQE */
	uint64_t doorbells;   /* doorbells that the NIC has accepted */
	uint64_t first, last; /* start of the first, end of the last */
	struct urdma_histogram whole;
	struct urdma_histogram stage[URDMA_STAGES];
	uint64_t retries[URDMA_CAUSES]; /* events */
	uint64_t resent;		/* packets */
	uint64_t incomplete[URDMA_INCOMPLETES];
};

/*
 * Number of histogram buckets per bucket in the report: a picture needs fewer than a percentile. A
 * bucket has the sum of each stage over its messages, in ns.
 */
#define URDMA_MERGED 4u
typedef uint64_t urdma_split[URDMA_HISTOGRAM_BUCKETS / URDMA_MERGED][URDMA_STAGES];

/* A changing number: its sum over cycles of the timeline, and its maximum. */
struct urdma_level {
	uint64_t value, since, max;
	uint64_t busy;	/* cycles in which it was not 0, until `since` */
	uint64_t begun; /* the first change, URDMA_NEVER before */
	double area;
};

/* Activity of a QP over time. */
struct urdma_qp_times {
	struct urdma_flow sent;	    /* its frames, counted as in wire */
	struct urdma_series resent; /* packets */
};

struct urdma_qp_stats {
	struct urdma_messages messages;
	struct urdma_level depth;     /* WQEs posted and not acknowledged */
	uint64_t frames, bytes;	      /* sent, counted as in wire */
	struct urdma_qp_times *times; /* NULL before its first frame */
};
/* Maximum QPs of a NIC with times in the JSON: those that sent most. */
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
	uint64_t read_bytes[1024]; /* of outstanding reads, by tag */
	uint64_t irqs, read_errors, bad_frames, dropped_full, rnr_naks;
	uint64_t cqes[2];	       /* of receives, of sends */
	uint64_t losses[URDMA_CAUSES]; /* detected by QPs */
	struct {
		uint64_t n, refused;
		uint64_t hits, misses;	       /* of page table entries */
		uint64_t dir_hits, dir_misses; /* of directory entries */
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
	const char *trigger;	      /* of the run; NULL: none */
	uint64_t trigger_cycle;	      /* URDMA_NEVER: not among the events */
	unsigned int trigger_nic;     /* NIC of the event; n: a fault of a wire */
	bool no_memory;
};

/* Mean from the first change to `until` on the timeline, which is not before the last change. */
double urdma_level_mean(const struct urdma_level *l, uint64_t until);
/* Number of cycles until then in which it was not 0. */
uint64_t urdma_level_busy(const struct urdma_level *l, uint64_t until);
/* NULL: none. For NIC n and QP numbers below URDMA_EVENTS_MAX_QPS. */
const struct urdma_qp_stats *urdma_stats_qp(const struct urdma_stats *s, unsigned int n,
					    uint32_t qpn);

#endif
