/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfio-user server: provides one simulated NIC to a QEMU guest over a UNIX socket.
 *
 * One server serves one function and one client at a time. A second client waits in the socket's
 * backlog until the first disconnects. When a client disconnects, for any reason, the server unmaps
 * its memory, closes its eventfds, resets the function, and listens again.
 *
 * The server never blocks and has no thread. Its owner polls the descriptors of
 * urdma_vfio_user_pollfds() together with its own, and calls urdma_vfio_user_process() when one is
 * ready. The server answers a register read when the model completes it, from within the owner's
 * run of the model. Data that cannot be sent at once waits for POLLOUT.
 *
 * The server does not trust the client. docs/vfio-user.md lists the supported messages, the limits,
 * and the errors.
 */
#ifndef URDMA_COSIM_VFIO_USER_H
#define URDMA_COSIM_VFIO_USER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcie/pcie.h"

struct urdma_vfio_user_server;

enum urdma_vfio_user_level {
	URDMA_VFIO_USER_ERROR, /* the client broke a rule; one line per failure */
	URDMA_VFIO_USER_INFO,  /* client connected, client disconnected, reset */
	URDMA_VFIO_USER_DEBUG, /* each message */
};

/* line has no newline and is valid only during the call. */
typedef void (*urdma_vfio_user_log_fn)(void *ctx, enum urdma_vfio_user_level level,
				       const char *line);

struct urdma_vfio_user_config {
	const char *path;	    /* of the socket; a stale socket without a server is replaced */
	struct urdma_pcie *pcie;    /* not owned; attached while a client is connected */
	urdma_vfio_user_log_fn log; /* NULL: errors and infos to stderr */
	void *log_ctx;
	bool log_debug; /* pass URDMA_VFIO_USER_DEBUG lines too */
};

/* Counters since creation, for the summary and for tests. */
struct urdma_vfio_user_stats {
	uint64_t clients;     /* connections accepted */
	uint64_t messages;    /* whole messages handled */
	uint64_t errors;      /* messages answered with an error, or dropped because of one */
	uint64_t disconnects; /* connections that the server closed for a broken rule */
	uint64_t mmio_reads;  /* register reads passed to the function */
	uint64_t mmio_writes; /* register writes passed to the function */
	uint64_t dma_reads;   /* DMA accesses by the NIC that succeeded */
	uint64_t dma_writes;
	uint64_t dma_faults; /* DMA accesses by the NIC that were refused */
	uint64_t interrupts; /* eventfds fired */
};

/*
 * Creates the socket and listens. Returns 0 and *server, or a negative errno (-EADDRINUSE if
 * another process serves that path, -ENAMETOOLONG, ...).
 */
int urdma_vfio_user_create(const struct urdma_vfio_user_config *config,
			   struct urdma_vfio_user_server **server);

/*
 * Disconnects the client and unlinks the socket. The detach resets the function, which completes or
 * discards register reads in flight before the call returns. NULL is allowed.
 */
void urdma_vfio_user_destroy(struct urdma_vfio_user_server *server);

/* Largest number of descriptors that urdma_vfio_user_pollfds() fills in. */
#define URDMA_VFIO_USER_MAX_POLLFDS 2

/*
 * Fills in the descriptors to poll now, with fd and events; returns their number. They may change
 * whenever process() or the model has run, so call this before each poll().
 */
unsigned int urdma_vfio_user_pollfds(const struct urdma_vfio_user_server *server,
				     struct pollfd fds[URDMA_VFIO_USER_MAX_POLLFDS]);

/*
 * Does all work that does not block: accepts, reads, handles messages, sends. Handles a bounded
 * number of messages per call, so that a client that floods the socket cannot starve the model.
 * Cheap if there is no work. Returns the number of messages handled. Failures of the client are
 * logged and handled inside.
 */
unsigned int urdma_vfio_user_process(struct urdma_vfio_user_server *server);

/* True from the end of version negotiation until the client disconnects. */
bool urdma_vfio_user_connected(const struct urdma_vfio_user_server *server);

const struct urdma_vfio_user_stats *
urdma_vfio_user_stats(const struct urdma_vfio_user_server *server);

#endif
