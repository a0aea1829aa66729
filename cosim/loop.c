// SPDX-License-Identifier: Apache-2.0
// How simulated time follows the wall clock and the guests.
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <time.h>

#include "program.h"

/*
 * Clocks of NICs between two checks of the sockets while the NICs are busy. A clock takes
 * microseconds, so a guest's doorbell waits a fraction of a millisecond. A check without messages
 * is one system call.
 */
#define LOOK_CLOCKS 32u
/* Maximum simulated cycles between two checks, even if few of them are evaluated. */
#define LOOK_CYCLES 256u
/* One of this many checks serves all clients, even without messages, and checks the files. */
#define FULL_LOOKS 64u

uint64_t urdma_program_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Handles waiting messages, at most 64 of one client, so that the NICs also run. */
static void serve(struct urdma_program *p)
{
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		urdma_vfio_user_process(p->server[i]);
	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++)
		urdma_external_process(p->opt.cosim.external[i], urdma_cosim_now(p->c));
	if (p->control)
		urdma_control_process(p->control);
	urdma_program_watch_files(p);
	urdma_program_watch_events(p);
	urdma_program_watch_waves(p);
	urdma_program_watch_live(p);
}

enum came {
	CAME_NOTHING,
	CAME_WORK, /* serve() has something to do */
	CAME_SIGNAL,
};

/* Waits for a message, a signal, or ns nanoseconds (UINT64_MAX: forever). */
static enum came wait(struct urdma_program *p, uint64_t ns)
{
	struct pollfd fds[1 + URDMA_COSIM_MAX_NICS * URDMA_VFIO_USER_MAX_POLLFDS +
			  URDMA_COSIM_MAX_EXTERNAL * URDMA_EXTERNAL_MAX_POLLFDS +
			  URDMA_CONTROL_MAX_POLLFDS + URDMA_COSIM_MAX_PORTS];
	struct timespec ts;
	bool again = false;
	nfds_t n = 0;
	int ready;

	p->looks++;
	fds[n].fd = p->signals;
	fds[n++].events = POLLIN;
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		n += urdma_vfio_user_pollfds(p->server[i], &fds[n]);
	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++) {
		n += urdma_external_pollfds(p->opt.cosim.external[i], &fds[n]);
		again |= urdma_external_waiting(p->opt.cosim.external[i]);
	}
	if (p->control)
		n += urdma_control_pollfds(p->control, &fds[n]);
	n += urdma_program_live_pollfds(p, &fds[n]);
	if (again && ns > 1000000)
		ns = 1000000;
	ts = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				.tv_nsec = (long)(ns % 1000000000u) };
	ready = ppoll(fds, n, ns == UINT64_MAX ? NULL : &ts, NULL);
	if (ready > 0 && fds[0].revents)
		return CAME_SIGNAL;
	return ready || again ? CAME_WORK : CAME_NOTHING;
}

/* The cycle that simulated time has reached if the NICs are quiet since since_cycle. */
static uint64_t cycle_by_the_clock(const struct urdma_program *p, uint64_t since_ns,
				   uint64_t since_cycle)
{
	return since_cycle + (urdma_program_wall_ns() - since_ns) /
				     ((uint64_t)URDMA_SIM_CYCLE_NS * p->opt.slow_clock);
}

/*
 * All NICs are quiet since cycle since_cycle, at wall-clock time since_ns: sleeps until a message
 * comes or a timer is due, then advances simulated time.
 */
static int sleep_and_skip(struct urdma_program *p, uint64_t since_ns, uint64_t since_cycle,
			  enum came *came)
{
	const uint64_t cycle_ns = (uint64_t)URDMA_SIM_CYCLE_NS * p->opt.slow_clock;
	uint64_t timer = urdma_cosim_next(p->c);
	uint64_t target = cycle_by_the_clock(p, since_ns, since_cycle), left = 0, flush;

	if (timer > target)
		/* Times in a capture may be centuries apart. */
		left = timer - target > UINT64_MAX / cycle_ns ? UINT64_MAX
							      : (timer - target) * cycle_ns;
	flush = urdma_program_watch_events(p);
	*came = wait(p, left < flush ? left : flush);
	if (*came == CAME_SIGNAL)
		return 0;
	if (left)
		target = cycle_by_the_clock(p, since_ns, since_cycle);
	/*
	 * Advance by the elapsed time, but not past a timer: when one fires, the NICs are busy
	 * again, and the guests must be served meanwhile.
	 */
	if (timer < target) {
		uint64_t now = urdma_cosim_now(p->c);
		uint64_t stop = (timer > now ? timer : now) + LOOK_CLOCKS;

		if (stop < target)
			target = stop;
	}
	return urdma_cosim_run_until(p->c, target);
}

struct slice {
	struct urdma_cosim *c;
	uint64_t end; /* number of evaluated clocks at which the slice ends */
};

static bool slice_done(void *arg)
{
	const struct slice *s = arg;

	return urdma_cosim_stats(s->c)->evaluated >= s->end || !urdma_cosim_busy(s->c);
}

/* The work between two checks. It ends earlier if the NICs become quiet. */
static int run_slice(struct urdma_program *p)
{
	struct slice s = { p->c, urdma_cosim_stats(p->c)->evaluated + LOOK_CLOCKS };
	int ret;

	ret = urdma_cosim_run_cond(p->c, slice_done, &s, urdma_cosim_now(p->c) + LOOK_CYCLES);
	return ret == -ETIMEDOUT ? 0 : ret;
}

int urdma_program_loop(struct urdma_program *p)
{
	uint64_t quiet_wall = 0, quiet_cycle = 0;
	enum came came = CAME_WORK;
	bool quiet = false;
	int ret;

	while (came != CAME_SIGNAL) {
		/*
		 * A client that must be dropped may have no message, so serve all clients at times.
		 */
		if (came == CAME_WORK || p->looks % FULL_LOOKS == 0)
			serve(p);
		if (urdma_cosim_busy(p->c)) {
			quiet = false;
			ret = run_slice(p);
			if (ret)
				return ret;
			if (urdma_cosim_busy(p->c)) {
				came = wait(p, 0);
				continue;
			}
		}
		if (!quiet) {
			quiet = true;
			quiet_wall = urdma_program_wall_ns();
			quiet_cycle = urdma_cosim_now(p->c);
			urdma_program_flush_files(p);
			serve(p);
			came = CAME_NOTHING;
			continue;
		}
		ret = sleep_and_skip(p, quiet_wall, quiet_cycle, &came);
		if (ret)
			return ret;
	}
	return 0;
}
