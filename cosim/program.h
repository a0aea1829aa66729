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

/* Result files. */
#define URDMA_SYSTEM	"system.json"
#define URDMA_FAULT_LOG "faults.log"
#define URDMA_EVENTS	"events.urdma"
#define URDMA_WQES	"wqes.csv"
#define URDMA_PERFETTO	"trace.perfetto"
#define URDMA_SAMPLES	"samples.jsonl"

struct pollfd;
struct urdma_program;

/* Output that is written only in a window. */
enum urdma_gate_state {
	URDMA_GATE_SHUT,  /* nothing is written */
	URDMA_GATE_WAITS, /* waits for the trigger: earlier output must be kept */
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
	struct urdma_gate *gate[URDMA_MAX_GATES]; /* gates that wait for it */
	unsigned int n_gates;
	bool watches;
	uint64_t matches; /* matching events or faults so far */
	bool came;
	uint64_t cycle;		 /* cycle of the trigger */
	uint64_t events_cycle;	 /* events are complete from this cycle on */
	unsigned int wire, side; /* of the last matching fault, and its frame */
	uint64_t frame;
};

struct urdma_program {
	struct urdma_options opt;
	struct urdma_cosim *c;
	struct urdma_faults *faults; /* NULL: no faults */
	struct urdma_counters *counters;
	struct urdma_vfio_user_server *server[URDMA_COSIM_MAX_NICS];
	struct urdma_control *control;
	int signals;
	int lock;		 /* lock on the result directory */
	struct urdma_live *live; /* NULL: without --live */
	struct timespec start;
	uint64_t waves_since; /* ns: start of the current wave files */
	uint64_t waves_turn;  /* ns after which new ones replace them; 0: never */
	struct urdma_gate waves;
	struct urdma_trigger_watch trigger;
	struct urdma_recording *recording; /* NULL: without events */
	struct urdma_samples *samples;	   /* NULL: none */
	uint64_t looks;			   /* number of checks of the sockets */
	/* Errors of the simulation and of files that could not be written. Empty: no error. */
	char error[4096];
};

/* ---- loop.c: time ---------------------------------------------------------------------------- */

/*
 * Runs until a signal (0), or until an error of the simulation. While a NIC is busy the model runs
 * as fast as it can. When all are idle, the process sleeps. Then simulated time advances by at most
 * the elapsed wall-clock time, so an armed timer never fires before the guest had that time to act.
 */
int urdma_program_loop(struct urdma_program *p);
uint64_t urdma_program_wall_ns(void);

/* ---- files.c: captures, the log of faults ---------------------------------------------------- */

/* Opens all of them. 0, or 1 after a message. */
int urdma_program_open_files(struct urdma_program *p);
/* Makes all data written so far visible to other processes. */
void urdma_program_flush_files(struct urdma_program *p);
/*
 * Closes files that can no longer be written. Reports each once; the simulation continues, so that
 * a guest's work is not lost. Cheap if there are none.
 */
void urdma_program_watch_files(struct urdma_program *p);
/* Closes all of them. An incomplete file is an error of the run. */
void urdma_program_close_files(struct urdma_program *p);
/* An error of the run: prints it on stderr and keeps it for the reports. */
void urdma_program_fail(struct urdma_program *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same for an incomplete result file; error is a negative errno. */
void urdma_program_not_whole(struct urdma_program *p, const char *name, int error);

/* ---- recording.c: events, and the files made of them ----------------------------------------- */

/* Opens the files, if the run has any. 0, or 1 after a message. */
int urdma_program_open_events(struct urdma_program *p);
/*
 * Makes data that has waited for some seconds of wall-clock time visible to other processes.
 * Returns the ns until the next call is due; UINT64_MAX if no data waits. A file that can no longer
 * be written is reported once, and the simulation continues.
 */
uint64_t urdma_program_watch_events(struct urdma_program *p);
/* Resumes or stops events. NULL, or the reason why this is not possible. */
const char *urdma_program_events_command(struct urdma_program *p, bool on);
/*
 * Writes the event of the trigger to the files if their gate is not shut. Its cycle may be in the
 * future: a fault hits a frame before the frame's end has left. The event is written in order with
 * the others.
 */
void urdma_program_mark_trigger(struct urdma_program *p, const struct urdma_trace_event *mark);
/* Closes the files. An incomplete file is an error of the run. */
void urdma_program_close_events(struct urdma_program *p);
/* For cosim.json, after the files are closed. */
json_t *urdma_program_events(const struct urdma_program *p);
void urdma_program_free_events(struct urdma_program *p);

/* ---- samples.c: counters over time ----------------------------------------------------------- */

/* Opens the file, if the run has one. 0, or 1 after a message. */
int urdma_program_open_samples(struct urdma_program *p);
/* Makes written data visible to other processes. */
void urdma_program_flush_samples(struct urdma_program *p);
/* Closes a file that can no longer be written: reports it once, and the simulation continues. */
void urdma_program_watch_samples(struct urdma_program *p);
/* Writes a last sample and closes the file. An incomplete file is an error of the run. */
void urdma_program_close_samples(struct urdma_program *p);
void urdma_program_free_samples(struct urdma_program *p);

/* ---- window.c -------------------------------------------------------------------------------- */

/* Sets the gate's initial state, and schedules its changes at the ends of the window. -ENOMEM. */
int urdma_program_gate(struct urdma_program *p, struct urdma_gate *gate,
		       const struct urdma_window *window,
		       void (*set)(struct urdma_program *p, enum urdma_gate_state state));
/* The trigger has occurred in this cycle: opens a waiting gate. -ENOMEM. */
int urdma_program_gate_trigger(struct urdma_gate *gate, uint64_t cycle);

/* ---- trigger.c ------------------------------------------------------------------------------- */

/* Watches for the trigger, if the run has one. Call after the gates. 0, or 1 after a message. */
int urdma_program_open_trigger(struct urdma_program *p);
/* Stops watching, and prints a message if the trigger never occurred. */
void urdma_program_close_trigger(struct urdma_program *p);
/* For cosim.json. */
json_t *urdma_program_trigger(const struct urdma_program *p);

/* ---- live.c ---------------------------------------------------------------------------------- */

/* Creates the FIFOs, if the run has any. 0, or 1 after a message. */
int urdma_program_open_live(struct urdma_program *p);
/* At most URDMA_COSIM_MAX_PORTS descriptors to poll, to detect that a reader has gone. */
unsigned int urdma_program_live_pollfds(const struct urdma_program *p, struct pollfd *fds);
/* Checks for readers. */
void urdma_program_watch_live(struct urdma_program *p);
void urdma_program_close_live(struct urdma_program *p);

/* ---- waves.c --------------------------------------------------------------------------------- */

/* Opens the wave files, if the run has any. 0, or 1 after a message. */
int urdma_program_open_waves(struct urdma_program *p);
/* With a window that looks back: starts new files when the current ones are long enough. */
void urdma_program_watch_waves(struct urdma_program *p);
/* Resumes or stops the waves. NULL, or the reason why this is not possible. */
const char *urdma_program_waves_command(struct urdma_program *p, bool on);
/* Closes the files. An incomplete file is an error of the run. */
void urdma_program_close_waves(struct urdma_program *p);

/* ---- report.c -------------------------------------------------------------------------------- */

/* Writes system.json, the simulated system, when the run begins. 0, or 1 after a message. */
int urdma_program_describe(struct urdma_program *p);
/* Writes counters.json and cosim.json. A file that cannot be written is an error of the run. */
void urdma_program_report(struct urdma_program *p);
/* The counters of a NIC, by name. */
json_t *urdma_program_counters(const struct urdma_program *p, unsigned int nic, bool quiet);
/* Traffic of a NIC, as in cosim.json: of its port; its `pcie`. */
void urdma_program_put_port(json_t *json, const struct urdma_eth_stats *stats);
json_t *urdma_program_pcie(const struct urdma_program *p, unsigned int nic);
/* Traffic of the external ports, and of the switches. */
json_t *urdma_program_ports(const struct urdma_program *p);
json_t *urdma_program_switches(const struct urdma_program *p);

/* ---- commands.c ------------------------------------------------------------------------------ */

/* Executes one line of the control socket, between runs; ctx is the program. See docs/cosim.md. */
char *urdma_program_command(void *ctx, char *line);

#endif
