/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the source files of the program urdma-cosim. */
#ifndef URDMA_COSIM_PROGRAM_H
#define URDMA_COSIM_PROGRAM_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "control.h"
#include "counters.h"
#include "eth/fault.h"
#include "host/vfio_user.h"
#include "options/options.h"
#include "scheduler.h"

/* Files of results. */
#define URDMA_SYSTEM	"system.json"
#define URDMA_FAULT_LOG "faults.log"
#define URDMA_EVENTS	"events.urdma"
#define URDMA_WQES	"wqes.csv"
#define URDMA_PERFETTO	"trace.perfetto"
#define URDMA_SAMPLES	"samples.jsonl"

struct pollfd;
struct urdma_program;

/* What is written in a window only. */
enum urdma_gate_state {
	URDMA_GATE_SHUT,  /* nothing is written */
	URDMA_GATE_WAITS, /* for the trigger: what is before it has to be kept */
	URDMA_GATE_OPEN,
};
struct urdma_gate {
	struct urdma_program *p;
	const struct urdma_window *window;
	void (*set)(struct urdma_program *p, enum urdma_gate_state state);
};
#define URDMA_MAX_GATES 2u /* events, waves */

/* The trigger of the run. */
struct urdma_trigger_watch {
	struct urdma_gate *gate[URDMA_MAX_GATES]; /* those that wait for it */
	unsigned int n_gates;
	bool watches;
	uint64_t matches; /* events, or frames with a fault, until it came */
	bool came;
	uint64_t cycle;		 /* when it came */
	uint64_t events_cycle;	 /* from which cycle on events are whole then */
	unsigned int wire, side; /* of the last fault that counted, and its frame */
	uint64_t frame;
};

struct urdma_program {
	struct urdma_options opt;
	struct urdma_cosim *c;
	struct urdma_faults *faults; /* NULL: the wires are good */
	struct urdma_counters *counters;
	struct urdma_vfio_user_server *server[URDMA_COSIM_MAX_NICS];
	struct urdma_control *control;
	int signals;
	int lock;		 /* of the directory of results */
	struct urdma_live *live; /* NULL: without --live */
	struct timespec start;
	uint64_t waves_since; /* ns: when the present files of waves began */
	uint64_t waves_turn;  /* ns after which new ones take their place; 0: never */
	struct urdma_gate waves;
	struct urdma_trigger_watch trigger;
	struct urdma_recording *recording; /* NULL: without events */
	struct urdma_samples *samples;	   /* NULL: none */
	uint64_t looks;			   /* at the sockets */
	/* The simulation's error, and files that could not be written. Empty: no error. */
	char error[4096];
};

/* ---- loop.c: time ---------------------------------------------------------------------------- */

/*
 * Runs until a signal (0), or until an error of the simulation. While a NIC is busy the model runs
 * as fast as it can. When all are quiet, the process sleeps. Afterwards simulated time advances by
 * at most the time that the wall clock did, so an armed timer never fires before the guest had that
 * time to act.
 */
int urdma_program_loop(struct urdma_program *p);
uint64_t urdma_program_wall_ns(void);

/* ---- files.c: captures, the log of faults ------------------------------------------------------
 */

/* Begins all of them. 0, or 1 after a message. */
int urdma_program_open_files(struct urdma_program *p);
/* Makes everything written so far visible to other processes. */
void urdma_program_flush_files(struct urdma_program *p);
/*
 * Ends files that can no longer be written. Each is reported once, and the simulation continues, so
 * that a guest's work is not lost. Cheap when there are none.
 */
void urdma_program_watch_files(struct urdma_program *p);
/* Ends all of them. An incomplete file is an error of the run. */
void urdma_program_close_files(struct urdma_program *p);
/* An error of the run: prints it on stderr and keeps it for the reports. */
void urdma_program_fail(struct urdma_program *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same of a file of results that lacks something; error is a negative errno. */
void urdma_program_not_whole(struct urdma_program *p, const char *name, int error);

/* ---- recording.c: events, and the files made of them -------------------------------------------
 */

/* Begins the files, if the run has any. 0, or 1 after a message. */
int urdma_program_open_events(struct urdma_program *p);
/*
 * Makes visible to other processes what has waited for some seconds of wall time. Returns the ns
 * after which it has to be called again; UINT64_MAX if nothing waits. A file that can no longer be
 * written is reported once, and the simulation continues.
 */
uint64_t urdma_program_watch_events(struct urdma_program *p);
/* Goes on with events, or stops them. NULL, or why this cannot be done. */
const char *urdma_program_events_command(struct urdma_program *p, bool on);
/*
 * The event of the trigger, for the files if they are not shut. Its cycle may lie ahead: a fault
 * hits a frame before the frame's end has left. It is written in its turn among the others.
 */
void urdma_program_mark_trigger(struct urdma_program *p, const struct urdma_trace_event *mark);
/* Ends the files. An incomplete file is an error of the run. */
void urdma_program_close_events(struct urdma_program *p);
/* For cosim.json, after the files have ended. */
json_t *urdma_program_events(const struct urdma_program *p);
void urdma_program_free_events(struct urdma_program *p);

/* ---- samples.c: counters over time ------------------------------------------------------------
 */

/* Begins the file, if the run has one. 0, or 1 after a message. */
int urdma_program_open_samples(struct urdma_program *p);
/* Makes what is written visible to other processes. */
void urdma_program_flush_samples(struct urdma_program *p);
/* Ends a file that can no longer be written: reported once, and the simulation continues. */
void urdma_program_watch_samples(struct urdma_program *p);
/* A last sample, and the end of the file. An incomplete file is an error of the run. */
void urdma_program_close_samples(struct urdma_program *p);
void urdma_program_free_samples(struct urdma_program *p);

/* ---- window.c ----------------------------------------------------------------------------------
 */

/* Sets the gate as it is at the beginning, and again at the ends of the window. -ENOMEM. */
int urdma_program_gate(struct urdma_program *p, struct urdma_gate *gate,
		       const struct urdma_window *window,
		       void (*set)(struct urdma_program *p, enum urdma_gate_state state));
/* The trigger has come in this cycle: opens a gate that waits. -ENOMEM. */
int urdma_program_gate_trigger(struct urdma_gate *gate, uint64_t cycle);

/* ---- trigger.c ---------------------------------------------------------------------------------
 */

/* Looks for the trigger from now on, if the run has one. After the gates. 0, or 1 after a message.
 */
int urdma_program_open_trigger(struct urdma_program *p);
/* Ends that, and says if it never came. */
void urdma_program_close_trigger(struct urdma_program *p);
/* For cosim.json. */
json_t *urdma_program_trigger(const struct urdma_program *p);

/* ---- live.c ------------------------------------------------------------------------------------
 */

/* Makes the FIFOs, if the run has any. 0, or 1 after a message. */
int urdma_program_open_live(struct urdma_program *p);
/* At most URDMA_COSIM_MAX_PORTS descriptors to poll: they tell that a reader has gone. */
unsigned int urdma_program_live_pollfds(const struct urdma_program *p, struct pollfd *fds);
/* Looks for readers. */
void urdma_program_watch_live(struct urdma_program *p);
void urdma_program_close_live(struct urdma_program *p);

/* ---- waves.c -----------------------------------------------------------------------------------
 */

/* Begins the files of waves, if the run has any. 0, or 1 after a message. */
int urdma_program_open_waves(struct urdma_program *p);
/* With a window that looks back: begins new files when the present ones are long enough. */
void urdma_program_watch_waves(struct urdma_program *p);
/* Goes on with the waves, or stops them. NULL, or why this cannot be done. */
const char *urdma_program_waves_command(struct urdma_program *p, bool on);
/* Ends the files. An incomplete file is an error of the run. */
void urdma_program_close_waves(struct urdma_program *p);

/* ---- report.c ----------------------------------------------------------------------------------
 */

/* system.json, when the run begins: what is simulated. 0, or 1 after a message. */
int urdma_program_describe(struct urdma_program *p);
/* counters.json and cosim.json. A file that cannot be written is an error of the run. */
void urdma_program_report(struct urdma_program *p);
/* The counters of a NIC, by name. */
json_t *urdma_program_counters(const struct urdma_program *p, unsigned int nic, bool quiet);
/* Traffic of a NIC, as in cosim.json: of its port; its `pcie`. */
void urdma_program_put_port(json_t *json, const struct urdma_eth_stats *stats);
json_t *urdma_program_pcie(const struct urdma_program *p, unsigned int nic);
/* Traffic of the external ports, and of the switches. */
json_t *urdma_program_ports(const struct urdma_program *p);
json_t *urdma_program_switches(const struct urdma_program *p);

/* ---- commands.c --------------------------------------------------------------------------------
 */

/* One line of the control socket, between runs; ctx is the program. See docs/cosim.md. */
char *urdma_program_command(void *ctx, char *line);

#endif
