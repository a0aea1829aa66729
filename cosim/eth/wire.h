/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ethernet: ports, and the wire between two of them. A port is the MAC of a NIC, as the RTL's
 * streams see it, or a port for whole frames, as in switches and external ports.
 *
 * The wire has a rate and a propagation delay. A frame occupies 8 bytes of preamble, its own bytes
 * (at least 60), 4 of FCS and 12 of gap. The wire cuts through: the first beat of a frame may
 * arrive before the sender has sent the last one, as on a cable. Time is exact to the fraction of a
 * cycle (rate.h). The receiver gets a beat in the first cycle at whose start the last byte of the
 * beat (and the FCS, for the last beat) has arrived. It gets at most one beat per cycle.
 *
 * If a frame has 65 to 75 bytes, a MAC of 100 Gb/s delivers its two beats in less than two cycles
 * of the NIC, because the MAC's own clock is faster. A FIFO of URDMA_ETH_RX_FIFO beats separates
 * the clocks. A frame that does not fit is lost as a whole and counted (rx_overrun); the NIC sees
 * no part of it.
 */
#ifndef URDMA_COSIM_WIRE_H
#define URDMA_COSIM_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rate.h"
#include "urdma_sim.h"

#define URDMA_ETH_PREAMBLE  8u
#define URDMA_ETH_FCS	    4u
#define URDMA_ETH_GAP	    12u
#define URDMA_ETH_MIN_FRAME 60u	 /* without FCS */
#define URDMA_ETH_RX_FIFO   512u /* beats between the MAC's clock and the NIC's: 32 KB */
/* Text that captures store with a frame. */
#define URDMA_ETH_NOTE	    160u
#define URDMA_ETH_MAX_FRAME 16384u /* no standard frame is longer; more means a lost tlast */

struct urdma_pcapng;

struct urdma_eth_frame {
	struct urdma_eth_frame *next;
	struct urdma_rate begin; /* when the first bit of the preamble reaches the receiver */
	uint32_t len;		 /* bytes so far; grows until complete */
	bool complete;
	bool error;  /* bad FCS */
	bool queued; /* is in a queue that the receiver sees */
	uint64_t
		sent; /* cycle in which its end left the sender: the time in the sender's capture */
	uint64_t number;	   /* among the frames the sender has put on this wire, from 0 */
	uint32_t behind;	   /* number of frames that still have to overtake it */
	char note[URDMA_ETH_NOTE]; /* the wire's faults on it, for captures; empty: none */
	uint8_t data[URDMA_ETH_MAX_FRAME + 1]; /* a truncated frame may need one more byte */
};

/* Frames on their way in one direction, in order of arrival. */
struct urdma_eth_queue {
	struct urdma_eth_frame *head, *free;
	struct urdma_rate line; /* the receiver's line: the part of the head already received */
	uint32_t taken;		/* bytes of the head passed on */
	bool started;		/* the head's preamble is charged to the line */
	size_t n;
};

struct urdma_eth_stats {
	uint64_t tx_frames, tx_bytes; /* without FCS, with padding */
	uint64_t rx_frames, rx_bytes;
	uint64_t tx_errors, rx_errors; /* of these, with a bad FCS */
	uint64_t tx_padded;
	uint64_t tx_unconnected; /* frames sent without a wire, or while the link was down */
	uint64_t tx_stalled;	 /* cycles with valid and not ready */
	uint64_t tx_dropped;	 /* whole frames that found the queue full */
	uint64_t tx_queue_max;	 /* maximum bytes in the queue */
	uint64_t rx_lost;	 /* frames in flight to this port when the link went down */
	uint64_t rx_overrun;	 /* frames that arrived faster than the NIC's clock accepts beats */
};

struct urdma_wire;

/*
 * Called for each frame at the time of the capture: at the end of each sent and each received
 * frame, padding included.
 */
typedef void (*urdma_eth_tap_fn)(void *ctx, uint64_t ns, const struct urdma_eth_frame *frame,
				 bool outbound);
#define URDMA_ETH_MAX_TAPS 4u

struct urdma_eth_port;

/* Callbacks of a port for whole frames; never called for the port of a NIC. */
struct urdma_eth_frame_ops {
	/* A frame's last bit has arrived in cycle now. The frame is freed after the call. */
	void (*deliver)(void *ctx, struct urdma_eth_port *port, uint64_t now,
			const struct urdma_eth_frame *frame);
};

/* A whole frame that waits to be sent. */
struct urdma_eth_waiting;

struct urdma_eth_port {
	char name[32];
	struct urdma_wire *wire; /* NULL: no link */
	unsigned int side;	 /* 0 or 1 */
	struct urdma_rate line;	 /* transmitter */
	struct urdma_eth_frame *tx;
	uint64_t tx_buffer_cycles;
	struct urdma_pcapng *capture;
	uint64_t shown; /* number of the last frame in the capture, or without one of all frames */
	struct urdma_eth_tap {
		urdma_eth_tap_fn fn;
		void *ctx;
	} tap[URDMA_ETH_MAX_TAPS];
	unsigned int n_taps;
	/*
	 * Gets frames in place of the records (capture and live), and passes them on, in order, by
	 * urdma_eth_port_record().
	 */
	struct urdma_eth_tap hold;
	struct urdma_eth_tap live;
	struct urdma_eth_stats stats;
	char error[160];
	bool failed;
	struct urdma_eth_frame *scratch; /* for frames with no destination */
	bool link_shown;		 /* link_up as last seen by the NIC */
	/* Only for ports of whole frames: ops is NULL in ports of NICs. */
	const struct urdma_eth_frame_ops *ops;
	void *ops_ctx;
	struct urdma_eth_waiting *out, **out_end;
	size_t out_bytes, out_limit;
	struct urdma_rate tx_done; /* when the end of tx leaves the port */
};

/* Decision of a fault hook on a frame. Zeroed: the frame passes. */
struct urdma_wire_verdict {
	bool drop;
	unsigned int copies;	    /* in addition to the frame */
	uint64_t copy_delay_cycles; /* of the copies, after the frame */
	uint64_t delay_cycles;	    /* in addition to the propagation delay; may reorder frames */
	/*
	 * If not 0: the frame arrives directly after the behind-th later frame that is not lost,
	 * but at the latest after delay_cycles.
	 */
	uint32_t behind;
};
/*
 * Called for each whole frame on the wire, from side 0 or 1; the hook may change data and error.
 * With a hook the wire stores and forwards: a frame leaves the wire only after it has entered
 * completely.
 */
typedef void (*urdma_wire_fault_fn)(void *ctx, unsigned int side, struct urdma_eth_frame *frame,
				    struct urdma_wire_verdict *verdict);

void urdma_eth_port_init(struct urdma_eth_port *port, const char *name, uint64_t mbps);
/* Call before the port has a wire and before it sends. */
void urdma_eth_port_set_rate(struct urdma_eth_port *port, uint64_t mbps);
void urdma_eth_port_cleanup(struct urdma_eth_port *port);
/* -ENOSPC: there are URDMA_ETH_MAX_TAPS already. untap: fn and ctx as before. */
int urdma_eth_port_tap(struct urdma_eth_port *port, urdma_eth_tap_fn fn, void *ctx);
void urdma_eth_port_untap(struct urdma_eth_port *port, urdma_eth_tap_fn fn, void *ctx);
/* Records a frame that was held. */
void urdma_eth_port_record(struct urdma_eth_port *port, uint64_t ns,
			   const struct urdma_eth_frame *frame, bool outbound);

/* Both ports must have the same rate; the wire takes that of a. delay_cycles is at least 1. */
int urdma_wire_create(struct urdma_eth_port *a, struct urdma_eth_port *b, uint64_t delay_cycles,
		      struct urdma_wire **wire);
void urdma_wire_destroy(struct urdma_wire *wire);
void urdma_wire_set_fault(struct urdma_wire *wire, urdma_wire_fault_fn fault, void *ctx);
struct urdma_eth_port *urdma_wire_port(struct urdma_wire *wire, unsigned int side);
/*
 * The link, up after creation. When it goes down, both ports see it: frames on the wire are lost, a
 * frame in the middle of its arrival ends with a bad FCS, and frames sent meanwhile are lost. Call
 * between runs, or in an event. -ENOMEM.
 */
int urdma_wire_set_link(struct urdma_wire *wire, bool up);
bool urdma_wire_link(const struct urdma_wire *wire);

/* ---- ports of NICs -------------------------------------------------------------------------- */

/* Inputs of the model in cycle now: tx_ready, rx, link_up. */
void urdma_eth_port_drive(struct urdma_eth_port *port, uint64_t now, struct urdma_sim_in *in);
/* Collects the transfers of the cycle. Returns true if a beat moved. */
bool urdma_eth_port_sample(struct urdma_eth_port *port, uint64_t now, const struct urdma_sim_in *in,
			   const struct urdma_sim_out *out);
/*
 * The NIC was reset: a frame that it is sending ends with a bad FCS, and arriving frames are lost.
 */
void urdma_eth_port_reset(struct urdma_eth_port *port, uint64_t now);
/* True, between cycles, if a frame has begun and not ended. */
bool urdma_eth_port_sending(const struct urdma_eth_port *port);
bool urdma_eth_port_receiving(const struct urdma_eth_port *port);
/* First cycle with work to do; 0 when busy, UINT64_MAX when nothing is in flight to this port. */
uint64_t urdma_eth_port_next(const struct urdma_eth_port *port);
const char *urdma_eth_port_error(const struct urdma_eth_port *port);

/* ---- ports of whole frames ------------------------------------------------------------------ */

/*
 * Makes port a port for whole frames, before it has a wire. limit: maximum bytes that wait to be
 * sent.
 */
void urdma_eth_port_set_frames(struct urdma_eth_port *port, size_t limit,
			       const struct urdma_eth_frame_ops *ops, void *ctx);
/*
 * Queues a copy of a frame; it begins to leave in cycle ready at the earliest. -ENOBUFS if there is
 * no room (counted), -EINVAL for an impossible length, -ENOMEM.
 */
int urdma_eth_port_send(struct urdma_eth_port *port, uint64_t ready, const void *data, size_t len,
			bool error);
/* Does the work due in cycle now, before any NIC is driven. Returns true if something moved. */
bool urdma_eth_port_advance(struct urdma_eth_port *port, uint64_t now);

#endif
