/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the lanes of urdma_rx against the frames, ports and counters that the bench sees. A failed
 * check means that an event is lost, duplicate, out of order, or has a wrong field.
 */
#ifndef RX_LANES_H
#define RX_LANES_H

#include "rx_model.h"
#include "rx_packet.h"
#include "urdma_hw.h"
#include "urdma_trace_pkg.h"

#define LANE_VERDICTS (TRV_DROPPED + 1)
#define LANE_CAUSES   (TRC_RNR + 1)
#define LANE_BADS     (TRB_BACK + 1)
#define LANE_WHYS     (TRW_LOST + 1)
#define LANE_VOIDED   (TRO_UNREL + 1)

/* a packet on its way */
struct lane_packet {
	uint32_t qpn, psn;
	uint8_t opcode, syndrome; /* of the AETH, 0 without */
	bool group;		  /* each member has a copy */
};

struct lane_queue {
	struct lane_packet *p;
	unsigned int size, head, tail;
};

struct lanes {
	struct lane_queue frames;	/* sent; many are no packets */
	struct lane_queue requests;	/* for the responder to decide on */
	struct lane_queue answers;	/* for requester completion */
	struct lane_queue taken[4096];	/* requests whose bytes have to be put */
	struct lane_queue placed[4096]; /* responses, the same */
	struct lane_queue atomics;	/* of all QPs, with their unit; some have left it */
	uint64_t bad[LANE_BADS], why[LANE_WHYS], voided[LANE_VOIDED];
	uint64_t ghosts, strangers; /* answers without effect, to no QP */
	uint64_t refused_unrel;	    /* requests of UC and UD */
	uint64_t in, full, verdict[LANE_VERDICTS], by_qp[4096][LANE_VERDICTS];
	uint64_t taken_rsp, dropped, naks, cause[LANE_CAUSES], not_put;
	bool excused; /* a QP has ended or begun: what is under way has no effect */
};

void lanes_frame(struct lanes *l, const struct frame *f);
/* a cycle, with settled outputs */
void lanes_cycle(struct lanes *l, const struct rx_in *in, const struct rx_out *out, uint64_t cycle);
/*
 * Nothing is under way. cnt, qc: counters since lanes_clear(); responses: there were some, which
 * qc counts, too
 */
void lanes_end(struct lanes *l, const uint64_t *cnt, const uint64_t (*qc)[URDMA_QCNT_TX_PKTS],
	       bool responses);
void lanes_clear(struct lanes *l);
void lanes_free(struct lanes *l);

#endif
