/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of urdma-cosim. All options are checked here, before anything is opened or
 * created: the simulation accepts any configuration that passes.
 */
#ifndef URDMA_COSIM_OPTIONS_H
#define URDMA_COSIM_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "eth/fault.h"
#include "scheduler.h"

#define URDMA_OPTIONS_MAX_FAULTS 64u

/* When something is written. Times are in ns. All 0: the whole run. */
struct urdma_window {
	bool hold;	   /* from a command of the control socket on */
	uint64_t from, to; /* to 0: until the end */
	uint64_t last;	   /* instead: at least the last so many ns of the run. Waves only */
};

/* Of the files with the NICs' signals. */
struct urdma_waves_options {
	bool on;
	struct urdma_window window;
	const char *scope; /* name of an instance below urdma_sim_top, as "nic.tx", or NULL */
};

/* Of the file of events, and of those that are made of it. */
struct urdma_events_options {
	bool on;
	bool csv, perfetto;
	struct urdma_window window;
};

struct urdma_options {
	const char *socket[URDMA_COSIM_MAX_NICS]; /* of each NIC */
	const char *out;
	const char *control;
	bool trace_pcap;
	struct urdma_waves_options waves;
	struct urdma_events_options events;
	bool live;		 /* captures for readers, through FIFOs */
	unsigned int slow_clock; /* wall-clock ns for each simulated ns in which NICs only wait */
	bool verbose;
	bool check;	  /* print the settings, and end */
	const char *tell; /* the socket that tell_line goes to; there is no simulation then */
	char tell_line[URDMA_CONTROL_MAX_LINE];

	/* Texts of --wire and --switch: they may name ports that come after them. */
	const char *wire[URDMA_COSIM_MAX_WIRES];
	unsigned int n_wires;
	const char *sw[URDMA_COSIM_MAX_SWITCHES];
	unsigned int n_switches;

	uint64_t seed; /* of the faults */
	struct urdma_fault_rule fault[URDMA_OPTIONS_MAX_FAULTS];
	unsigned int n_faults;

	bool link_given; /* --pcie-gen or --pcie-lanes */
	bool gbps_given;

	struct urdma_cosim_config cosim;
};

/* Ends the program after --help and --version, and with status 2 after a bad option. */
void urdma_options_parse(struct urdma_options *o, int argc, char **argv);
/* The resulting settings, including defaults. */
json_t *urdma_options_json(const struct urdma_options *o);

/*
 * The port that len characters name: a NIC by its number, with or without the prefix "urdma", or an
 * external port by its name. -1: neither.
 */
int urdma_options_find_port(const struct urdma_cosim_config *c, const char *text, size_t len);

#endif
