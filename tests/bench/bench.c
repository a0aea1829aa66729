// SPDX-License-Identifier: Apache-2.0
/*
 * The benchmark: two NICs on a wire under the embedded host, default PCIe and wire. Every figure
 * but the simulator's own speed is a function of the RTL and the settings, exact to the cycle, so a
 * committed table can be compared. docs/bench.md describes what is measured and how it is judged.
 * Exit status 1: a row fails or differs from the table; 2: the benchmark could not run.
 */
#include <argp.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static struct {
	const char *output, *floors, *compare, *update, *only, *sweep;
	bool verbose, plant;
	unsigned int threads;
} args;

struct table bench_table;

static struct limits_model model;
const struct limits_model *const bench_model = &model;

unsigned int bench_threads(void)
{
	return args.threads;
}

bool bench_wanted(const char *name)
{
	return !args.only || strstr(name, args.only);
}

void bench_must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "urdma-bench: %s\n", what);
	exit(2);
}

void bench_settle(struct rig *rig)
{
	rig_check(rig,
		  urdma_cosim_run_while_busy(rig->cosim, urdma_cosim_now(rig->cosim) + BENCH_LIMIT),
		  "settle");
}

void bench_dm(struct rig *rig, unsigned int side, struct urdma_eh_mr *mr)
{
	const unsigned int index = 100;
	struct urdma_eh *eh = rig->side[side].eh;
	unsigned int access = URDMA_ACC_LOCAL_WRITE | URDMA_ACC_REMOTE_WRITE |
			      URDMA_ACC_REMOTE_READ | URDMA_ACC_REMOTE_ATOMIC;

	bench_must(!urdma_eh_create_mr_dm(eh, index, 0, RIG_PD, access, 0,
					  (size_t)1 << urdma_eh_caps(eh)->log_dm, mr),
		   "region of device memory");
}

/* ---- cost of simulating -------------------------------------------------------------------- */

static struct {
	uint64_t cycles; /* clocks evaluated, summed over NICs */
	double seconds;
	int perf; /* file of the instruction counter, or -1 */
} cost = { .perf = -1 };

/* CPU time, user and system: the load of other programs is not in it. */
static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void cost_start(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	cost.perf = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	cost.seconds = seconds();
}

static void cost_report(void)
{
	const struct limit none = { NAN, "" };
	uint64_t instructions = 0;

	cost.seconds = seconds() - cost.seconds;
	table_add(&bench_table, "simulator speed", (double)cost.cycles / cost.seconds / 1000,
		  "kcycles/CPU s", none)
		->inexact = true;
	if (cost.perf >= 0 && read(cost.perf, &instructions, sizeof(instructions)) == 8 &&
	    instructions)
		table_add(&bench_table, "instructions per cycle evaluated",
			  (double)instructions / (double)cost.cycles, "instructions", none)
			->inexact = true;
}

void bench_account(const struct rig *rig)
{
	const struct urdma_cosim_stats stats = *urdma_cosim_stats(rig->cosim);

	cost.cycles += stats.evaluated;
	if (!args.verbose)
		return;
	rig_print_counters(rig);
	fprintf(stderr, "cycles of both NICs: %llu evaluated, %llu waited\n",
		(unsigned long long)stats.evaluated, (unsigned long long)stats.waited);
}

/* ---- the program --------------------------------------------------------------------------- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *end;

	switch (key) {
	case 'o':
		args.output = arg;
		return 0;
	case 'f':
		args.floors = arg;
		return 0;
	case 'c':
		args.compare = arg;
		return 0;
	case 'u':
		args.update = arg;
		return 0;
	case 'n':
		args.only = arg;
		return 0;
	case 's':
		args.sweep = arg;
		return 0;
	case 'p':
		args.plant = true;
		return 0;
	case 't':
		errno = 0;
		args.threads = (unsigned int)strtoul(arg, &end, 10);
		if (errno || *end || args.threads < 1 || args.threads > 2)
			argp_error(state, "--threads '%s': it is 1 or 2", arg);
		return 0;
	case 'v':
		args.verbose = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{ "output", 'o', "FILE", 0, "write the rows as JSON", 0 },
	{ "floors", 'f', "TABLE", 0, "judge by the floors of a committed table", 0 },
	{ "compare", 'c', "TABLE", 0, "the same, and cycle-exact rows have to equal the table's",
	  0 },
	{ "update", 'u', "TABLE", 0, "write the cycle-exact rows as a table; floors never fall",
	  0 },
	{ "only", 'n', "TEXT", 0,
	  "only loads whose name has TEXT; those of one message are \"latency of SEND\" and so on",
	  0 },
	{ "sweep", 's', "FILE", 0,
	  "run the sweeps instead of the rows, and write their points as CSV", 0 },
	{ "plant", 'p', NULL, 0, "add a row 1 % above its limit, which has to fail", 0 },
	{ "threads", 't', "N", 0, "threads that evaluate the two NICs (1)", 0 },
	{ "verbose", 'v', NULL, 0, "counters of each row, on stderr", 0 },
	{ 0 },
};

static void measure(void)
{
	cost_start();
	bench_messages();
	bench_storage();
	bench_ethernet();
	bench_latency();
	bench_events();
	cost_report();
}

int main(int argc, char **argv)
{
	static const struct argp argp = { options, parse, NULL, "Cycle-exact benchmark of the NIC.",
					  NULL,	   NULL,  NULL };
	struct urdma_cosim_config config;
	const char *table;
	unsigned int bad;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	urdma_cosim_config_defaults(&config, 2);
	limits_model_of(&config, &model);
	bench_table.part = args.only;
	if (!args.sweep)
		measure();
	else if (bench_sweeps(args.sweep))
		return 2;
	if (args.plant)
		table_add(&bench_table, "planted", 1.01, "Gb/s", (struct limit){ 1, "wire" });
	table = args.compare ? args.compare : args.floors;
	if (table && table_load(&bench_table, table))
		return 2;
	table_print(&bench_table, stdout);
	fflush(stdout);
	if (args.output && table_save(&bench_table, args.output))
		return 2;
	if (args.update)
		return table_update(&bench_table, args.update) ? 1 : 0;
	bad = table_judge(&bench_table);
	if (args.compare)
		bad += table_compare(&bench_table, args.compare);
	return bad ? 1 : 0;
}
