/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation: NICs, each with its PCIe root and its port, wires between ports, and time.
 *
 * Time is counted in cycles of 4 ns from 0, and all NICs advance together. The result of a run
 * depends only on the configuration, on the actions of events at their cycles, and on calls between
 * runs. The caller decides how far to run: tests run until a condition holds, urdma-cosim follows
 * the wall clock.
 *
 * A NIC in which no register changes is not evaluated until an input arrives, or until shortly
 * before its next armed timer. One clock with skip_valid then tells it the number of cycles that
 * have passed. When this holds for all NICs, time jumps to the next event, arrival or timer.
 * Skipping never changes what happens in which cycle.
 *
 * Threads: the caller's thread makes all calls and all callbacks. With more than one thread the
 * NICs of a cycle are evaluated in parallel, as long as this takes less time. Nothing else runs in
 * parallel, and all threads meet in every cycle, so the results are those of one thread. The model
 * must allow its instances to be clocked at the same time.
 *
 * Errors are negative errno. A broken rule of the RTL, or a stall, ends each run with -EPROTO;
 * urdma_cosim_error() has the message.
 */
#ifndef URDMA_COSIM_SCHEDULER_H
#define URDMA_COSIM_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eth/external.h"
#include "eth/switch.h"
#include "eth/wire.h"
#include "pcie/root.h"
#include "trace/events.h"
#include "urdma_sim.h"

#define URDMA_COSIM_MAX_NICS	 16u
#define URDMA_COSIM_MAX_EXTERNAL 16u
#define URDMA_COSIM_MAX_SWITCHES 8u
/* Numbers of ports: NICs from 0, external ports from URDMA_COSIM_EXTERNAL(0) on. */
#define URDMA_COSIM_EXTERNAL(n)	  (URDMA_COSIM_MAX_NICS + (n))
#define URDMA_COSIM_MAX_PORTS	  (URDMA_COSIM_MAX_NICS + URDMA_COSIM_MAX_EXTERNAL)
#define URDMA_COSIM_MAX_WIRES	  URDMA_COSIM_MAX_PORTS
#define URDMA_COSIM_MAX_LISTENERS 4u
#define URDMA_COSIM_FOREVER	  (UINT64_MAX / 2)

struct urdma_cosim;

/* The model that is clocked: the Verilated NIC, or a model in C for tests of this layer. */
struct urdma_model_ops {
	void *(*create)(const char *name, unsigned int index);
	void (*destroy)(void *model);
	void (*cycle)(void *model, const struct urdma_sim_in *in, struct urdma_sim_out *out);
};
extern const struct urdma_model_ops urdma_model_verilated; /* in library urdma_cosim */

/* Settings of a single wire. 0: the common setting. */
struct urdma_cosim_line {
	uint64_t rate_mbps;
	uint64_t delay_ns;
};

struct urdma_cosim_config {
	unsigned int n_nics;
	struct urdma_pcie_config pcie; /* for each NIC without its own */
	/*
	 * NULL, or this NIC's own settings; read by urdma_cosim_create(). In both cases the name is
	 * replaced by the NIC's, and the seed varies with its number.
	 */
	const struct urdma_pcie_config *nic_pcie[URDMA_COSIM_MAX_NICS];
	uint64_t rate_mbps; /* for each wire without its own, and ports without a wire */
	uint64_t delay_ns;  /* for each wire without its own */
	/* Opened and owned by the caller; must outlive the simulation. */
	unsigned int n_external;
	struct urdma_external *external[URDMA_COSIM_MAX_EXTERNAL];
	/* Pairs of ports joined by a wire. */
	unsigned int n_wires;
	unsigned int wire[URDMA_COSIM_MAX_WIRES][2];
	struct urdma_cosim_line line[URDMA_COSIM_MAX_WIRES]; /* of these pairs */
	/*
	 * Switches and their ports. Each port has its own wire; these wires are numbered after the
	 * ones above, in this order, with the switch at side 1.
	 */
	unsigned int n_switches;
	struct {
		unsigned int n;
		unsigned int port[URDMA_SWITCH_MAX_PORTS];
		struct urdma_cosim_line line[URDMA_SWITCH_MAX_PORTS];
		/* 0: the common setting, below */
		uint64_t latency_ns;
		size_t queue;
		uint64_t age_ns;
	} sw[URDMA_COSIM_MAX_SWITCHES];
	uint64_t switch_latency_ns;
	size_t switch_queue; /* bytes, of each port */
	uint64_t switch_age_ns;
	uint64_t stall_ns; /* without progress while work is pending; 0: never report */
	bool no_skip;
	unsigned int threads; /* threads that evaluate NICs; 0 and 1: only the caller's */
};

struct urdma_cosim_stats {
	uint64_t evaluated; /* clocks of NICs that were evaluated, summed over NICs */
	uint64_t wakings;   /* evaluated clocks that passed the length of a sleep to a NIC */
	uint64_t waited;    /* cycles in which a NIC slept while others were evaluated, summed */
	uint64_t skipped;   /* cycles of time in which no NIC was evaluated */
	uint64_t steps;	    /* cycles of time in which a NIC was evaluated */
	uint64_t shared;    /* steps in which several threads evaluated NICs */
	uint64_t events;
};

typedef void (*urdma_cosim_event_fn)(void *arg);
typedef bool (*urdma_cosim_cond_fn)(void *arg);

/* n_nics NICs wired in pairs 0-1, 2-3, ..., with default PCIe, 100 Gb/s, 250 ns. */
void urdma_cosim_config_defaults(struct urdma_cosim_config *config, unsigned int n_nics);

/* model: urdma_model_verilated, except in tests of this layer. */
int urdma_cosim_create(const struct urdma_cosim_config *config, const struct urdma_model_ops *model,
		       struct urdma_cosim **cosim);
void urdma_cosim_destroy(struct urdma_cosim *c);

unsigned int urdma_cosim_nics(const struct urdma_cosim *c);
struct urdma_pcie *urdma_cosim_pcie(struct urdma_cosim *c, unsigned int nic);
struct urdma_eth_port *urdma_cosim_port(struct urdma_cosim *c, unsigned int port);
/* Includes the wires of switches. */
unsigned int urdma_cosim_wires(const struct urdma_cosim *c);
struct urdma_wire *urdma_cosim_wire(struct urdma_cosim *c, unsigned int wire);
unsigned int urdma_cosim_switches(const struct urdma_cosim *c);
struct urdma_switch *urdma_cosim_switch(struct urdma_cosim *c, unsigned int sw);
/*
 * Sets the link of a NIC or external port down or up; all links start up. Both ends of the link go
 * down. Call between runs, or in an event. -ENOTCONN: the port has no wire.
 */
int urdma_cosim_link(struct urdma_cosim *c, unsigned int port, bool up);
/*
 * The model of a NIC, as returned by create() of the ops; used for waveforms of the Verilated
 * model.
 */
void *urdma_cosim_model(struct urdma_cosim *c, unsigned int nic);

/*
 * Capture of a port into a pcapng file, named after it: urdma0 and so on. A frame that a NIC drops
 * has a comment with the reason (trace/fates.h), so frames are written some time after they have
 * crossed the port.
 */
int urdma_cosim_capture(struct urdma_cosim *c, unsigned int port, const char *path);
void urdma_cosim_flush_captures(struct urdma_cosim *c);
/* Passes the frames of a port to fn, at the same time as to its capture. fn NULL: stop. -EBUSY. */
int urdma_cosim_follow(struct urdma_cosim *c, unsigned int port, urdma_eth_tap_fn fn, void *ctx);
/* Number of captured or followed frames that a NIC received and whose fate is not yet known. */
uint64_t urdma_cosim_unknown_fates(const struct urdma_cosim *c, unsigned int nic);
/* 0, also without a capture, or the error that ended the capture. */
int urdma_cosim_capture_error(struct urdma_cosim *c, unsigned int port);
/*
 * Ends the capture. Returns 0 if every frame is in the file or there is no capture, else the first
 * error.
 */
int urdma_cosim_end_capture(struct urdma_cosim *c, unsigned int port);

/*
 * Calls fn for each event of the NICs, of their lanes and their boundaries, in its cycle, in an
 * order that does not depend on threads. -ENOSPC: there already are URDMA_COSIM_MAX_LISTENERS, or a
 * port has too many taps. unlisten: fn and ctx as before. Call between runs, or in an event of
 * urdma_cosim_at(). It takes effect in the next cycle, or in that of the event.
 */
int urdma_cosim_listen(struct urdma_cosim *c, urdma_trace_fn fn, void *ctx);
void urdma_cosim_unlisten(struct urdma_cosim *c, urdma_trace_fn fn, void *ctx);

/* The next cycle. */
uint64_t urdma_cosim_now(const struct urdma_cosim *c);

/*
 * Calls fn at the beginning of a cycle (the next one, if the cycle has passed), before anything
 * else in it. Events of one cycle run in the order of these calls.
 */
int urdma_cosim_at(struct urdma_cosim *c, uint64_t cycle, urdma_cosim_event_fn fn, void *arg);

/* Runs until cycle is the next one, or until urdma_cosim_stop(). */
/*
 * Calls fn in cycles that are multiples of the period, after all activity before the cycle. There
 * is no call if nothing has happened since the previous call, so skipped time has at most one. fn
 * must not change anything. fn NULL: stop.
 */
typedef void (*urdma_cosim_sample_fn)(void *ctx, uint64_t cycle);
void urdma_cosim_sample(struct urdma_cosim *c, uint64_t period, urdma_cosim_sample_fn fn,
			void *ctx);

int urdma_cosim_run_until(struct urdma_cosim *c, uint64_t cycle);
/*
 * Runs until nothing is in flight and no NIC has work (except timers and events), or until cycle.
 */
int urdma_cosim_run_while_busy(struct urdma_cosim *c, uint64_t cycle);
/* Runs until cond is true (0) or cycle is reached (-ETIMEDOUT). Tests cond before each cycle. */
int urdma_cosim_run_cond(struct urdma_cosim *c, urdma_cosim_cond_fn cond, void *arg,
			 uint64_t cycle);
/* Ends the current run after this cycle; for callbacks. */
void urdma_cosim_stop(struct urdma_cosim *c);

/* True if anything is in flight or any NIC is not idle. */
bool urdma_cosim_busy(const struct urdma_cosim *c);
/* Cycle of the next event, frame of a replay or armed timer, UINT64_MAX if there is none.
 * Meaningful when not busy. */
uint64_t urdma_cosim_next(const struct urdma_cosim *c);

const char *urdma_cosim_error(const struct urdma_cosim *c);
const struct urdma_cosim_stats *urdma_cosim_stats(const struct urdma_cosim *c);

#endif
