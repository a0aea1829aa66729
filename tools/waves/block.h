/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waves of block tests, in builds with -DURDMA_TRACE=ON. hook.sh puts one BlockWaves into each
 * model. Time in the file: an evaluation takes 2 ns, so a test that evaluates twice a cycle has
 * cycle n at 4 n.
 *
 * URDMA_TEST_WAVES=DIR         a file for each kind of model, as DIR/urdma_cq.fst
 * URDMA_TEST_WAVES_FROM=N:NS   of the Nth model of the process alone (from 0), from NS ns on.
 *                              Otherwise each model writes all, over the file of the one before
 * URDMA_TEST_WHERE=FILE        when the process aborts, FILE gets the N:NS of the last evaluation
 */
#ifndef URDMA_WAVES_BLOCK_H
#define URDMA_WAVES_BLOCK_H

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../../sim/waves.h"

class BlockWaves
{
	static inline unsigned int models = 0;
	static inline BlockWaves *last = nullptr;
	const unsigned int index = models++;
	uint64_t ns = 0;
	bool begun = false;
	Waves waves;

	/* cmocka aborts on a failure if CMOCKA_TEST_ABORT is set. The file has to be complete. */
	static void aborted(int)
	{
		const char *where = getenv("URDMA_TEST_WHERE");
		FILE *f = where ? fopen(where, "w") : nullptr;

		if (f) {
			fprintf(f, "%u:%llu\n", last->index, (unsigned long long)last->ns);
			fclose(f);
		}
		last->waves.close();
	}

	bool wanted() const
	{
		const char *from = getenv("URDMA_TEST_WAVES_FROM");
		unsigned long long at;
		unsigned int n;

		if (!from)
			return true;
		if (sscanf(from, "%u:%llu", &n, &at) != 2) {
			fprintf(stderr, "URDMA_TEST_WAVES_FROM='%s' is not N:NS\n", from);
			exit(2);
		}
		return n == index && ns >= at;
	}

      public:
	BlockWaves()
	{
		Verilated::traceEverOn(true);
		signal(SIGABRT, aborted);
	}

	template <class Model> void evaluated(Model &model)
	{
		static const char *const directory = getenv("URDMA_TEST_WAVES");

		last = this;
		ns += 2;
		if (!directory)
			return;
		if (!begun && wanted()) {
			/* The name without Verilator's V. */
			const std::string path =
				std::string(directory) + "/" + (model.modelName() + 1) + ".fst";

			begun = true;
			if (waves.open(model, path.c_str(), nullptr)) {
				perror(path.c_str());
				exit(2);
			}
		}
		waves.dump(ns);
	}
};

#endif
