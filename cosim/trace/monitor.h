/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches the boundary of a NIC, its PCIe streams and its MAC, and reports the events of
 * boundary.def. It changes nothing and needs no support in the RTL.
 *
 * A transfer takes place in cycle t if valid and ready are both set in it. A transfer into the NIC
 * happens in t. A transfer out of the NIC happens at the clock edge that ends t, so its event is in
 * t + 1; for frames this is the time in the capture. The port reports the ends of frames, with
 * number, padding and error as in the capture.
 */
#ifndef URDMA_COSIM_TRACE_MONITOR_H
#define URDMA_COSIM_TRACE_MONITOR_H

#include "eth/wire.h"
#include "trace/events.h"
#include "urdma_sim.h"

struct urdma_monitor;

/* Initially stopped. port: of the NIC; must outlive the monitor. NULL: no memory. */
struct urdma_monitor *urdma_monitor_create(uint8_t nic, struct urdma_eth_port *port,
					   urdma_trace_fn fn, void *ctx);
void urdma_monitor_destroy(struct urdma_monitor *monitor); /* NULL is allowed */

/*
 * Starts with the next cycle, which has not begun. For requests, completions and frames already in
 * flight, it reports only what it still sees. -ENOSPC: the port has too many taps.
 */
int urdma_monitor_start(struct urdma_monitor *monitor);
void urdma_monitor_stop(struct urdma_monitor *monitor);

/*
 * Between start and stop, for each cycle with a valid at any stream, or with a reset: taken() with
 * the number of the cycle, then left() with the next one. In between, the port samples the cycle.
 * During a reset, valid in out has no meaning and must be 0.
 */
void urdma_monitor_taken(struct urdma_monitor *monitor, uint64_t cycle,
			 const struct urdma_sim_in *in, const struct urdma_sim_out *out);
void urdma_monitor_left(struct urdma_monitor *monitor, uint64_t cycle,
			const struct urdma_sim_in *in, const struct urdma_sim_out *out);
/* This was the last cycle of a reset. After taken(). */
void urdma_monitor_reset(struct urdma_monitor *monitor, uint64_t cycle);

#endif
