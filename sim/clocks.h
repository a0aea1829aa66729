/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raises clocks of the model and evaluates the logic that depends on them.
 *
 * In each call the model's eval() compares all clocks with their last values, twice, to find those
 * that rose. This class knows which clocks rise, so it calls the function behind eval() with these
 * edges. At the start it raises each clock once to learn which bit of the model's edges belongs to
 * it.
 *
 * For a model without events, and without logic between inputs and outputs, eval() does nothing
 * else, so the results are equal. tools/model-parts.sh checks that the model is of this kind.
 * Another Verilator has other functions, and waves need the clocks: in both cases this class calls
 * eval().
 */
#ifndef URDMA_CLOCKS_H
#define URDMA_CLOCKS_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "Vurdma_sim_top.h"
#include "Vurdma_sim_top___024root.h"
#include "parts.h"

#define URDMA_GIVE_EDGES (URDMA_EVAL_EDGES && !VM_TRACE)

#if URDMA_GIVE_EDGES
void Vurdma_sim_top___024root___eval_triggers_vec__act(Vurdma_sim_top___024root *root);
void Vurdma_sim_top___024root___eval_nba(Vurdma_sim_top___024root *root);
#endif

class Clocks
{
      public:
	static constexpr size_t PARTS = sizeof(Vurdma_sim_top::part_clk);
	static constexpr size_t INPUTS = 9;

	/* All clocks are low, and the first evaluation is over. */
	explicit Clocks(Vurdma_sim_top &top) : top(top)
	{
#if URDMA_GIVE_EDGES
		for (size_t i = 0; i < INPUTS; i++) {
			top.in_clk = static_cast<uint16_t>(1u << i);
			learn(in[i]);
			top.in_clk = 0;
		}
		for (size_t i = 0; i < PARTS; i++) {
			top.part_clk[i] = 1;
			learn(part[i]);
			top.part_clk[i] = 0;
		}
		top.clk = 1;
		learn(common);
		top.clk = 0;
		learn(none);
#endif
	}

	/* The inputs of these groups (one bit each) take effect. */
	void raise_inputs(uint32_t groups)
	{
#if URDMA_GIVE_EDGES
		Edges edges = none;

		for (; groups; groups &= groups - 1)
			add(edges, in[__builtin_ctz(groups)]);
		evaluate(edges);
#else
		top.clk = 0;
		memset(&top.part_clk, 0, sizeof(top.part_clk));
		top.in_clk = static_cast<uint16_t>(groups);
		top.eval();
#endif
	}

	/* One clock for these parts (one bit each) and for the logic outside of parts. */
	void raise_parts(uint64_t parts)
	{
#if URDMA_GIVE_EDGES
		Edges edges = common;

		for (; parts; parts &= parts - 1)
			add(edges, part[__builtin_ctzll(parts)]);
		evaluate(edges);
#else
		top.in_clk = 0;
		top.clk = 1;
		for (; parts; parts &= parts - 1)
			top.part_clk[__builtin_ctzll(parts)] = 1;
		top.eval();
#endif
	}

      private:
	Vurdma_sim_top &top;
#if URDMA_GIVE_EDGES
	using Edges = decltype(Vurdma_sim_top___024root::__VnbaTriggered);
	static constexpr size_t WORDS = sizeof(Edges) / sizeof(QData);

	Edges in[INPUTS], part[PARTS], common, none;

	/* The edges of the clock that is high now. */
	void learn(Edges &edges)
	{
		Vurdma_sim_top___024root *const root = top.rootp;

		Vurdma_sim_top___024root___eval_triggers_vec__act(root);
		edges = root->__VactTriggered;
	}

	static void add(Edges &edges, const Edges &more)
	{
		for (size_t i = 0; i < WORDS; i++)
			edges[i] |= more[i];
	}

	void evaluate(const Edges &edges)
	{
		Vurdma_sim_top___024root *const root = top.rootp;
		QData any = 0;

		for (size_t i = 0; i < WORDS; i++)
			any |= edges[i];
		if (!any)
			return;
		root->__VnbaTriggered = edges;
		Vurdma_sim_top___024root___eval_nba(root);
		root->__VnbaTriggered = none;
	}
#endif
};

#endif
