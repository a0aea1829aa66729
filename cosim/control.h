/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a running simulator: a UNIX stream socket. Each line is a command, and each
 * answer is one line: "ok", "ok DATA" or "error TEXT". The caller defines the commands.
 */
#ifndef URDMA_COSIM_CONTROL_H
#define URDMA_COSIM_CONTROL_H

#include <poll.h>
#include <stdbool.h>

#define URDMA_CONTROL_MAX_CLIENTS 8u
#define URDMA_CONTROL_MAX_POLLFDS (1u + URDMA_CONTROL_MAX_CLIENTS)
#define URDMA_CONTROL_MAX_LINE	  256u

struct urdma_control;

/* Executes one line. Returns an allocated answer without newline; NULL means "ok". */
typedef char *(*urdma_control_fn)(void *ctx, char *line);

/* -errno. */
int urdma_control_create(const char *path, urdma_control_fn fn, void *ctx,
			 struct urdma_control **control);
/* Removes the socket. NULL is allowed. */
void urdma_control_destroy(struct urdma_control *control);
bool urdma_control_process(struct urdma_control *control);
unsigned int urdma_control_pollfds(const struct urdma_control *control, struct pollfd *fds);

/*
 * The client: sends one line, waits for the answer and prints it. Returns 0: ok, 1: error, 2: no
 * simulator listens.
 */
int urdma_control_tell(const char *path, const char *line);

#endif
