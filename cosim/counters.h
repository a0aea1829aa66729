/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter registers of the NICs, summed over resets: a reset by the host clears them, so they
 * are read just before.
 */
#ifndef URDMA_COSIM_COUNTERS_H
#define URDMA_COSIM_COUNTERS_H

#include <stdint.h>

#include "scheduler.h"
#include "urdma_hw.h"

struct urdma_counters;

/* Starts to watch the NICs of c: uses the before_reset hook of each. */
struct urdma_counters *urdma_counters_create(struct urdma_cosim *c);
void urdma_counters_destroy(struct urdma_counters *counters);

/* Reads all counters of a NIC through its registers, which runs the simulation a little. */
int urdma_counters_read(struct urdma_counters *counters, unsigned int nic,
			uint64_t values[URDMA_CNT_N]);
/* The counts cleared by resets; add them to registers that are read in another way. */
void urdma_counters_cleared(const struct urdma_counters *counters, unsigned int nic,
			    uint64_t values[URDMA_CNT_N]);
/* Lower-case name of a counter as in urdma_hw.h: "tx_frames". */
const char *urdma_counter_name(unsigned int index);

#endif
