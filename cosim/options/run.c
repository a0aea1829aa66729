// SPDX-License-Identifier: Apache-2.0
// Options of the run: captures, time, diagnosis.
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <string.h>

#include "options/layers.h"
#include "options/value.h"

enum {
	OPT_TRACE = 0x500,
	OPT_STALL,
	OPT_NO_SKIP,
	OPT_THREADS,
	OPT_SLOW_CLOCK,
	OPT_VERBOSE,
};

static const struct argp_option options[] = {
	{ "trace", OPT_TRACE, "KIND", 0,
	  "pcap: capture each port into a file of its own, urdma0.pcapng or NAME.pcapng; none", 0 },
	{ "stall-us", OPT_STALL, "US", 0,
	  "Report a stall after that much simulated time, 0: never (1000)", 0 },
	{ "no-skip", OPT_NO_SKIP, NULL, 0, "Evaluate every cycle, also when nothing happens", 0 },
	{ "threads", OPT_THREADS, "N", 0,
	  "Threads that evaluate NICs, at most one a NIC; the results are the same. Default: half "
	  "the "
	  "cores",
	  0 },
	{ "slow-clock", OPT_SLOW_CLOCK, "N", 0,
	  "Simulated time in which NICs only wait passes N times slower than the wall clock (1)",
	  0 },
	{ "verbose", OPT_VERBOSE, NULL, 0, "Log each vfio-user message", 0 },
	{ 0 },
};

static unsigned int cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned int)CPU_COUNT(&set);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct urdma_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		/* The guests need cores as well. */
		o->cosim.threads = cores() / 2;
		o->slow_clock = 1;
		return 0;
	case OPT_TRACE:
		if (strcmp(arg, "pcap") && strcmp(arg, "none"))
			argp_error(state, "--trace '%s': it is pcap or none", arg);
		o->trace_pcap = !strcmp(arg, "pcap");
		return 0;
	case OPT_STALL:
		o->cosim.stall_ns =
			urdma_option_number(state, "stall-us", arg, 0, 1000000000) * 1000;
		return 0;
	case OPT_NO_SKIP:
		o->cosim.no_skip = true;
		return 0;
	case OPT_THREADS:
		o->cosim.threads = (unsigned int)urdma_option_number(state, "threads", arg, 1,
								     URDMA_COSIM_MAX_NICS);
		return 0;
	case OPT_SLOW_CLOCK:
		o->slow_clock =
			(unsigned int)urdma_option_number(state, "slow-clock", arg, 1, 1000);
		return 0;
	case OPT_VERBOSE:
		o->verbose = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp urdma_run_argp = { .options = options, .parser = parse };
