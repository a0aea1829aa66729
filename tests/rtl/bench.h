/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the benches of single blocks. A bench has the model and the state of its random
 * numbers, `seed`. It drives a cycle in this order: inputs, bench_settle(), outputs, bench_edge().
 */
#ifndef URDMA_TESTS_BENCH_H
#define URDMA_TESTS_BENCH_H

#include "rtl/bits.h"
#include "seed.h"

// The outputs of a cycle follow from its inputs.
template <class Model> void bench_settle(Model &m)
{
	m.clk = 0;
	m.eval();
}

// The registers take what the cycle has made.
template <class Model> void bench_edge(Model &m)
{
	m.clk = 1;
	m.eval();
}

// A cycle in which nobody looks at the outputs.
template <class Model> void bench_clock(Model &m)
{
	bench_settle(m);
	bench_edge(m);
}

// A number below n.
template <class Bench> uint64_t rnd(Bench *b, uint64_t n)
{
	return rnd_below(&b->seed, n);
}

template <class Bench> bool one_in(Bench *b, uint64_t n)
{
	return rnd(b, n) == 0;
}

// Seeds that follow one another make states that do not.
static inline uint64_t bench_state(uint64_t seed)
{
	return seed * 0x9e3779b97f4a7c15ull + 1;
}

#endif
