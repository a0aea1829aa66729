// SPDX-License-Identifier: Apache-2.0
// How simulated time follows the guests.
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <time.h>

#include "program.h"

/* Cycles between two looks at the sockets while the NICs are busy. */
#define BUSY_SLICE 256u

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Handles messages. True: something came. */
static bool serve(struct urdma_program *p)
{
	bool any = false;

	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		any |= urdma_vfio_user_process(p->server[i]) != 0;
	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++)
		any |= urdma_external_process(p->opt.cosim.external[i], urdma_cosim_now(p->c));
	if (p->control)
		any |= urdma_control_process(p->control);
	return any;
}

/* Waits for a message, a signal, or ns nanoseconds (UINT64_MAX: for ever). True: a signal came. */
static bool wait(struct urdma_program *p, uint64_t ns)
{
	struct pollfd fds[1 + URDMA_COSIM_MAX_NICS * URDMA_VFIO_USER_MAX_POLLFDS +
			  URDMA_COSIM_MAX_EXTERNAL * URDMA_EXTERNAL_MAX_POLLFDS +
			  URDMA_CONTROL_MAX_POLLFDS];
	struct timespec ts;
	nfds_t n = 0;

	fds[n].fd = p->signals;
	fds[n++].events = POLLIN;
	for (unsigned int i = 0; i < p->opt.cosim.n_nics; i++)
		n += urdma_vfio_user_pollfds(p->server[i], &fds[n]);
	for (unsigned int i = 0; i < p->opt.cosim.n_external; i++) {
		n += urdma_external_pollfds(p->opt.cosim.external[i], &fds[n]);
		if (urdma_external_waiting(p->opt.cosim.external[i]) && ns > 1000000)
			ns = 1000000;
	}
	if (p->control)
		n += urdma_control_pollfds(p->control, &fds[n]);
	ts = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				.tv_nsec = (long)(ns % 1000000000u) };
	if (ppoll(fds, n, ns == UINT64_MAX ? NULL : &ts, NULL) < 0)
		return false;
	return fds[0].revents != 0;
}

/*
 * All NICs are quiet since cycle since_cycle, at wall time since_ns: sleeps until something comes
 * or a timer is due, and moves time on. -EINTR: a signal came.
 */
static int sleep_and_skip(struct urdma_program *p, uint64_t since_ns, uint64_t since_cycle)
{
	uint64_t timer = urdma_cosim_next(p->c);
	uint64_t target = since_cycle + (wall_ns() - since_ns) / URDMA_SIM_CYCLE_NS;

	if (timer > target) {
		/* The times of a capture may be centuries apart. */
		uint64_t left = timer - target > UINT64_MAX / URDMA_SIM_CYCLE_NS
					? UINT64_MAX
					: (timer - target) * URDMA_SIM_CYCLE_NS;

		if (wait(p, left))
			return -EINTR;
		target = since_cycle + (wall_ns() - since_ns) / URDMA_SIM_CYCLE_NS;
	} else if (wait(p, 0)) {
		return -EINTR;
	}
	/*
	 * The time that has passed, but not past a timer: when one fires, the NICs are busy again,
	 * and the guests have to be served meanwhile.
	 */
	if (timer < target) {
		uint64_t now = urdma_cosim_now(p->c);
		uint64_t stop = (timer > now ? timer : now) + BUSY_SLICE;

		if (stop < target)
			target = stop;
	}
	return urdma_cosim_run_until(p->c, target);
}

int urdma_program_loop(struct urdma_program *p)
{
	uint64_t quiet_wall = 0, quiet_cycle = 0;
	bool quiet = false;
	int ret;

	for (;;) {
		serve(p);
		urdma_program_watch_files(p);
		if (urdma_cosim_busy(p->c)) {
			quiet = false;
			ret = urdma_cosim_run_while_busy(p->c, urdma_cosim_now(p->c) + BUSY_SLICE);
			if (ret)
				return ret;
			if (urdma_cosim_busy(p->c)) {
				if (wait(p, 0))
					return 0;
				continue;
			}
		}
		if (!quiet) {
			quiet = true;
			quiet_wall = wall_ns();
			quiet_cycle = urdma_cosim_now(p->c);
			urdma_program_flush_files(p);
			urdma_program_watch_files(p);
		}
		ret = sleep_and_skip(p, quiet_wall, quiet_cycle);
		if (ret)
			return ret == -EINTR ? 0 : ret;
	}
}
