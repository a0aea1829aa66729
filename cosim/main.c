// SPDX-License-Identifier: Apache-2.0
// urdma-cosim: NICs for guests, each behind a vfio-user socket, wired to each other.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

/* Maximum register accesses of a guest that wait for its NIC. */
#define BACKLOG 4096u

/* The set-up steps return 0, or 1 after a message. */

static int catch_signals(struct urdma_program *p)
{
	struct sigaction hup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	/* The terminal is gone; nohup ignores this signal. */
	if (!sigaction(SIGHUP, NULL, &hup) && hup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* A file that grows beyond the limit fails with an error. */
	signal(SIGXFSZ, SIG_IGN);
	p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->signals < 0)
		perror("urdma-cosim: signalfd");
	return p->signals < 0;
}

static int open_ports(struct urdma_program *p)
{
	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++) {
		struct urdma_external *e = p->opt.cosim.external[i];
		char why[512];

		if (urdma_external_open(e, p->opt.cosim.rate_mbps, why, sizeof(why))) {
			fprintf(stderr, "urdma-cosim: port %s: %s\n", urdma_external_name(e), why);
			return 1;
		}
	}
	return 0;
}

/* Attaches the rules to all wires. */
static int make_faults(struct urdma_program *p)
{
	int ret;

	if (!p->opt.n_faults)
		return 0;
	ret = urdma_faults_create(p->opt.seed, &p->faults);
	for (unsigned int i = 0; i < p->opt.n_faults && !ret; i++)
		ret = urdma_faults_add(p->faults, &p->opt.fault[i]);
	for (unsigned int i = 0; i < urdma_cosim_wires(p->c) && !ret; i++)
		ret = urdma_faults_attach(p->faults, urdma_cosim_wire(p->c, i), i);
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot set up the wires' faults: %s\n",
			strerror(-ret));
	return ret != 0;
}

static int make_simulation(struct urdma_program *p)
{
	int ret;

	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		p->opt.nic[i].pcie.backlog = BACKLOG;
	ret = urdma_cosim_create(&p->opt.cosim, &urdma_model_verilated, &p->c);
	if (!ret) {
		p->counters = urdma_counters_create(p->c);
		ret = p->counters ? 0 : -ENOMEM;
	}
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot create the simulation: %s\n", strerror(-ret));
	return ret ? 1 : make_faults(p);
}

static int listen_at(const char *path, int ret)
{
	if (ret)
		fprintf(stderr, "urdma-cosim: cannot listen at %s: %s\n", path, strerror(-ret));
	return ret != 0;
}

static int make_sockets(struct urdma_program *p)
{
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++) {
		struct urdma_vfio_user_config vc = {
			.path = p->opt.nic[i].socket,
			.pcie = urdma_cosim_pcie(p->c, i),
			.log_debug = p->opt.verbose,
		};

		if (listen_at(vc.path, urdma_vfio_user_create(&vc, &p->server[i])))
			return 1;
	}
	if (!p->opt.control)
		return 0;
	return listen_at(p->opt.control, urdma_control_create(p->opt.control, urdma_program_command,
							      p, &p->control));
}

/*
 * Locks the result directory until the program ends: another simulator would truncate its files.
 * The launcher locks the directory itself.
 */
static int claim_results(struct urdma_program *p)
{
	char path[4096];

	if (mkdir(p->opt.out, 0777) && errno != EEXIST) {
		fprintf(stderr, "urdma-cosim: cannot make directory %s: %s\n", p->opt.out,
			strerror(errno));
		return 1;
	}
	snprintf(path, sizeof(path), "%s/" URDMA_SYSTEM, p->opt.out);
	p->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	/*
	 * If the directory is not writable, a later step reports it. A file system without locks is
	 * used without a lock.
	 */
	if (p->lock >= 0 && flock(p->lock, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		fprintf(stderr,
			"urdma-cosim: another simulator writes its results to %s: name another "
			"directory with --out\n",
			p->opt.out);
		return 1;
	}
	return 0;
}

static int set_up(struct urdma_program *p)
{
	clock_gettime(CLOCK_MONOTONIC, &p->start);
	return claim_results(p) || catch_signals(p) || urdma_program_describe(p) || open_ports(p) ||
	       make_simulation(p) || urdma_program_open_files(p) || urdma_program_open_events(p) ||
	       urdma_program_open_samples(p) || urdma_program_open_waves(p) ||
	       urdma_program_open_trigger(p) || urdma_program_open_live(p) || make_sockets(p);
}

static void run(struct urdma_program *p)
{
	int ret;

	puts("ready");
	fflush(stdout);
	ret = urdma_program_loop(p);
	if (ret)
		urdma_program_fail(p, "simulation error: %s",
				   urdma_cosim_error(p->c) ? urdma_cosim_error(p->c)
							   : strerror(-ret));
	urdma_program_close_live(p);
	urdma_program_report(p);
}

/* Also cleans up after a failed set_up(). */
static void tear_down(struct urdma_program *p)
{
	urdma_program_close_live(p);
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		urdma_vfio_user_destroy(p->server[i]);
	urdma_control_destroy(p->control);
	urdma_counters_destroy(p->counters);
	urdma_cosim_destroy(p->c);
	urdma_program_free_events(p);
	urdma_program_free_samples(p);
	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++)
		urdma_external_destroy(p->opt.cosim.external[i]);
	urdma_faults_destroy(p->faults);
	if (p->signals >= 0)
		close(p->signals);
	if (p->lock >= 0)
		close(p->lock);
}

/*
 * If a standard file was closed at the start, opens /dev/null in its place, so that no result file
 * gets its descriptor.
 */
static int keep_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd < 0 || close(fd);
}

int main(int argc, char **argv)
{
	static struct urdma_program p = { .signals = -1, .lock = -1 };

	if (keep_standard_files()) {
		perror("urdma-cosim: /dev/null");
		return 1;
	}
	urdma_options_parse(&p.opt, argc, argv);
	if (p.opt.tell)
		return urdma_control_tell(p.opt.tell, p.opt.tell_line);
	if (p.opt.check) {
		json_dumpf(urdma_options_json(&p.opt), stdout, URDMA_OPTIONS_DUMP);
		putchar('\n');
		return ferror(stdout) || fflush(stdout) ? 1 : 0;
	}
	if (set_up(&p)) {
		tear_down(&p);
		return 1;
	}
	run(&p);
	tear_down(&p);
	return p.error[0] ? 1 : 0;
}
