/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the boundary of a NIC, its PCIe streams and its MAC, and tells the events of
 * boundary.def. It only looks: it changes nothing, and needs no help of the RTL.
 *
 * A transfer takes place in cycle t if valid and ready are both set in it. What the NIC takes
 * happens in t. What the NIC sends leaves it with the edge that ends t, so it happens in t + 1: for
 * frames this is the time of the capture. The ends of frames come from the port, with number,
 * padding and error as the capture has them.
 */
#ifndef URDMA_COSIM_TRACE_MONITOR_H
#define URDMA_COSIM_TRACE_MONITOR_H

#include "eth/wire.h"
#include "trace/events.h"
#include "urdma_sim.h"

struct urdma_monitor;

/* Asleep at first. port: of the NIC; it outlives the monitor. NULL: no memory. */
struct urdma_monitor *urdma_monitor_create(uint8_t nic, struct urdma_eth_port *port,
					   urdma_trace_fn fn, void *ctx);
void urdma_monitor_destroy(struct urdma_monitor *monitor); /* NULL is allowed */

/*
 * From the next cycle on, which has not begun: of requests, completions and frames that are on
 * their way, no more is told than what is still to be seen of them. -ENOSPC: the port has too many
 * taps.
 */
int urdma_monitor_start(struct urdma_monitor *monitor);
void urdma_monitor_stop(struct urdma_monitor *monitor);

/*
 * Between start and stop, for each cycle with a valid at any stream, or with a reset: taken() with
 * the number of the cycle, then left() with the next one. In between, the port samples the cycle.
 * During a reset valid means nothing in out, and has to be 0.
 */
void urdma_monitor_taken(struct urdma_monitor *monitor, uint64_t cycle,
			 const struct urdma_sim_in *in, const struct urdma_sim_out *out);
void urdma_monitor_left(struct urdma_monitor *monitor, uint64_t cycle,
			const struct urdma_sim_in *in, const struct urdma_sim_out *out);
/* This was the last cycle of a reset. After taken(). */
void urdma_monitor_reset(struct urdma_monitor *monitor, uint64_t cycle);

#endif
