// SPDX-License-Identifier: Apache-2.0
/*
 * FST files with the signals of a Verilated model, for models that were built with URDMA_TRACE.
 * Time is in nanoseconds and never goes back. Nothing is written during a pause, while time passes
 * in the file. Without URDMA_TRACE the class does nothing, and open() returns -ENOTSUP.
 *
 * The library does not report write errors. So open() tries to write itself, and close() looks for
 * the header, which the library writes last, and never after an error (fst_checks.h).
 */
#ifndef URDMA_SIM_WAVES_H
#define URDMA_SIM_WAVES_H

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#if VM_TRACE
#include "verilated_fst_c.h"

class Waves
{
	std::unique_ptr<VerilatedFstC> fst;
	std::string name;
	uint64_t last = 0; /* last time in the file, plus 1 */
	bool on = true;

	/* The header begins with its type, one byte 0, and its length in 8 bytes. */
	bool whole() const
	{
		FILE *f = fopen(name.c_str(), "rb");
		bool length = false;

		for (int i = 0; f && i < 9; i++)
			length |= fgetc(f) > 0;
		if (f)
			fclose(f);
		return length;
	}

	/* Writes again to find the error of the library's writes. -EIO if that succeeds. */
	int cause() const
	{
		const std::string more(1 << 16, '\0');
		FILE *f = fopen(name.c_str(), "ab");
		int ret = f ? -EIO : -errno;

		if (f && fwrite(more.data(), more.size(), 1, f) != 1)
			ret = -errno;
		if (f)
			fclose(f);
		return ret;
	}

      public:
	/*
	 * scope: the full name of an instance, as "urdma0.urdma_sim_top.nic.tx"; NULL: everything.
	 * Returns 0, or the reason that the file cannot be written, as a negative errno. Ends a
	 * file that is open.
	 */
	template <class Model> int open(Model &model, const char *path, const char *scope)
	{
		FILE *f;

		close();
		f = fopen(path, "wb");
		if (!f)
			return -errno;
		fclose(f);
		name = path;
		fst.reset(new VerilatedFstC);
		model.trace(fst.get(), 99);
		fst->set_time_unit("1ns");
		fst->set_time_resolution("1ns");
		if (scope)
			fst->dumpvars(99, scope);
		fst->open(path);
		last = 0;
		return 0;
	}

	/* Returns 0, or the reason that the file is incomplete, as a negative errno: no program can
	 * read it then. */
	int close()
	{
		if (!fst)
			return 0;
		fst->close();
		fst.reset();
		return whole() ? 0 : cause();
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
	int close()
	{
		return 0;
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
