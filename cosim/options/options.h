/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of urdma-cosim, and the file of --system. All options are checked here, before
 * anything is opened or created: the simulation accepts any configuration that passes.
 */
#ifndef URDMA_COSIM_OPTIONS_H
#define URDMA_COSIM_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "eth/fault.h"
#include "events/trigger.h"
#include "scheduler.h"

#define URDMA_OPTIONS_MAX_FAULTS 64u

/* The part of a run that is written. Times are in ns. All 0: the whole run. */
struct urdma_window {
	bool hold;	   /* start at a command of the control socket */
	uint64_t from, to; /* to: 0: until the end */
	uint64_t last;	   /* instead: at least this last time of the run, in ns. Only waves */
	bool trigger;	   /* instead: around the trigger */
	uint64_t before, after;
};

/* Options of the files with the NICs' signals. */
struct urdma_waves_options {
	bool on;
	struct urdma_window window;
	const char *scope; /* name of an instance below urdma_sim_top, as "nic.tx", or NULL */
};

/* Options of the event file and of the files made from it. */
struct urdma_events_options {
	bool on;
	bool csv, perfetto;
	struct urdma_window window;
};

struct urdma_nic_options {
	const char *socket;
	unsigned int host; /* of the file */
	struct urdma_pcie_config pcie;
};

/*
 * A --wire, or a wire of the file. place: position in the file; NULL: the command line. A setting
 * of 0 means the common one.
 */
struct urdma_wire_options {
	const char *text; /* may name ports that come later */
	char *place;
	struct urdma_cosim_line line;
};

struct urdma_switch_options {
	const char *text;
	char *place;
	struct urdma_cosim_line line; /* for its wires without their own settings */
	uint64_t latency_ns;
	size_t queue;
	uint64_t age_ns;
	unsigned int n_own;
	struct {
		const char *port;
		struct urdma_cosim_line line;
	} own[URDMA_SWITCH_MAX_PORTS];
};

/* The object that the current option applies to. */
struct urdma_options_scope {
	char place[512];	       /* of the object, in the file; empty: the command line */
	unsigned int nic, n_nics;      /* the NICs */
	struct urdma_cosim_line *line; /* the wires; NULL: all of them */
	struct urdma_switch_options *sw;
	bool link_given, gbps_given; /* of PCIe, in this object */
};

struct urdma_options {
	struct urdma_options_scope scope;
	const char *system; /* the file of --system, or NULL */
	char **words;	    /* words of the command line; other members point into them */
	bool loaded;	    /* the options of the file have been read */
	unsigned int n_hosts;
	const char *nics_of_hosts; /* NULL: as in the file, or all NICs belong to one host */

	struct urdma_nic_options nic[URDMA_COSIM_MAX_NICS];
	unsigned int n_sockets;
	const char *out;
	const char *control;
	bool trace_pcap;
	struct urdma_waves_options waves;
	struct urdma_events_options events;
	const char *trigger_text; /* NULL: none */
	struct urdma_trigger trigger;
	uint64_t sample_ns;	 /* counters over time; 0: none */
	bool live;		 /* captures for readers, through FIFOs */
	unsigned int slow_clock; /* wall-clock ns per simulated ns while NICs only wait */
	bool verbose;
	bool check;	  /* print the settings, and end */
	const char *tell; /* socket to send tell_line to; no simulation runs then */
	char tell_line[URDMA_CONTROL_MAX_LINE];

	struct urdma_wire_options wire[URDMA_COSIM_MAX_WIRES];
	unsigned int n_wires;
	struct urdma_switch_options sw[URDMA_COSIM_MAX_SWITCHES];
	unsigned int n_switches;
	char *port_text[URDMA_COSIM_MAX_EXTERNAL];
	unsigned int n_file_ports; /* external ports from the file, which come first */
	bool wires_of_file;	   /* wires and switches come from the file */

	uint64_t seed; /* seed of the faults */
	struct urdma_fault_rule fault[URDMA_OPTIONS_MAX_FAULTS];
	char *fault_text[URDMA_OPTIONS_MAX_FAULTS];
	unsigned int n_faults;
	bool faults_of_file;

	struct urdma_cosim_config cosim;
};

/* Ends the program after --help and --version, and with status 2 after a bad option. */
void urdma_options_parse(struct urdma_options *o, int argc, char **argv);
/* Flags of jansson for these: rates have three decimal places. */
#define URDMA_OPTIONS_DUMP (JSON_INDENT(2) | JSON_REAL_PRECISION(9))
/* The resulting settings, including defaults; `system` in it is that of urdma_system_json(). */
json_t *urdma_options_json(const struct urdma_options *o);
/* Hosts, NICs, wires and so on in their current state, for --system. */
json_t *urdma_system_json(const struct urdma_options *o);

/*
 * The port named by len characters: a NIC by its number, with or without the prefix "urdma", or an
 * external port by its name. -1: neither.
 */
int urdma_options_find_port(const struct urdma_cosim_config *c, const char *text, size_t len);

#endif
