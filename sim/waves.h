// SPDX-License-Identifier: Apache-2.0
/*
 * FST files with the signals of a Verilated model, for models that were built with URDMA_TRACE.
 * Time is in nanoseconds and never goes back. Nothing is written during a pause, and time passes in
 * the file. Without URDMA_TRACE the class does nothing, and open() returns -ENOTSUP.
 */
#ifndef URDMA_SIM_WAVES_H
#define URDMA_SIM_WAVES_H

#include <cerrno>
#include <cstdint>
#include <memory>

#if VM_TRACE
#include "verilated_fst_c.h"

class Waves
{
	std::unique_ptr<VerilatedFstC> fst;
	uint64_t last = 0; /* what the file has, plus 1 */
	bool on = true;

      public:
	/* scope: the full name of an instance, as "urdma0.urdma_sim_top.nic.tx"; NULL: everything.
	 */
	template <class Model> int open(Model &model, const char *path, const char *scope)
	{
		close();
		fst.reset(new VerilatedFstC);
		model.trace(fst.get(), 99);
		fst->set_time_unit("1ns");
		fst->set_time_resolution("1ns");
		if (scope)
			fst->dumpvars(99, scope);
		fst->open(path);
		last = 0;
		if (fst->isOpen())
			return 0;
		fst.reset();
		return -EIO;
	}

	void close()
	{
		if (fst)
			fst->close();
		fst.reset();
	}

	void pause(bool off)
	{
		on = !off;
	}

	void dump(uint64_t ns)
	{
		if (fst && on && ns >= last) {
			fst->dump(ns);
			last = ns + 1;
		}
	}

	~Waves()
	{
		close();
	}
};
#else
class Waves
{
      public:
	template <class Model> int open(Model &, const char *, const char *)
	{
		return -ENOTSUP;
	}
	void close()
	{
	}
	void pause(bool)
	{
	}
	void dump(uint64_t)
	{
	}
};
#endif

#endif
