/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The occupancy of a serial link, exact to the fraction of a cycle and without floating point.
 *
 * A link of R Mb/s moves R / 2000 bytes in a cycle of 4 ns (R * 1e6 / 8 * 4e-9). So one byte is
 * 2000 units, and each cycle adds R units. The link is busy until `cycle` plus `frac` / R cycles.
 * frac is always below R, so nothing overflows or is rounded.
 */
#ifndef URDMA_COSIM_RATE_H
#define URDMA_COSIM_RATE_H

#include <stdint.h>

#define URDMA_RATE_UNITS_PER_BYTE 2000u

struct urdma_rate {
	uint64_t cycle; /* busy until here ... */
	uint64_t frac;	/* ... and this many units of the cycle that follows */
	uint64_t mbps;
};

static inline void urdma_rate_init(struct urdma_rate *r, uint64_t mbps)
{
	r->cycle = 0;
	r->frac = 0;
	r->mbps = mbps;
}

/* An idle link starts at the beginning of cycle now; a busy one continues at its end. */
static inline void urdma_rate_start(struct urdma_rate *r, uint64_t now)
{
	if (r->cycle < now) {
		r->cycle = now;
		r->frac = 0;
	}
}

static inline void urdma_rate_charge(struct urdma_rate *r, uint64_t bytes)
{
	r->frac += bytes * URDMA_RATE_UNITS_PER_BYTE;
	r->cycle += r->frac / r->mbps;
	r->frac %= r->mbps;
}

/* The first cycle at whose start all charged bytes have passed. */
static inline uint64_t urdma_rate_end(const struct urdma_rate *r)
{
	return r->cycle + (r->frac != 0);
}

/* Nanoseconds to cycles, rounded up. */
static inline uint64_t urdma_ns_to_cycles(uint64_t ns)
{
	return ns / 4 + (ns % 4 != 0);
}

#endif
