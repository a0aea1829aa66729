/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the benchmark share. */
#ifndef URDMA_BENCH_BENCH_H
#define URDMA_BENCH_BENCH_H

#include "rig.h"
#include "table.h"

#define CYCLE_NS URDMA_SIM_CYCLE_NS
/* Cycles to wait at most: longer than any ACK timer in use. */
#define BENCH_LIMIT 200000000u

extern struct table bench_table;
extern const struct limits_model *const bench_model;

/* Whether the arguments ask for this load. */
bool bench_wanted(const char *name);
/* Number of threads that evaluate the NICs of a load, see urdma_cosim_config. */
unsigned int bench_threads(void);
/* Ends the program with 2 if the condition is false: the benchmark cannot run. */
void bench_must(bool ok, const char *what);
/* Runs until nothing is under way. */
void bench_settle(struct rig *rig);
/* Makes a region of all device memory of a side, with addresses from 0 and all rights. */
void bench_dm(struct rig *rig, unsigned int side, struct urdma_eh_mr *mr);
/* To be called before a rig is stopped: prints its counters with --verbose, and adds its cycles to
 * the cost of simulating. */
void bench_account(const struct rig *rig);

/* The rows, in groups. */
void bench_messages(void);
void bench_storage(void);
void bench_ethernet(void);
void bench_latency(void);
void bench_events(void);

/* The sweeps: each point is a row, and a line of the file. -1: the file cannot be written. */
int bench_sweeps(const char *path);

#endif
