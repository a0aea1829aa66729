/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets with a name in the file system that only this user can access. A name left by a dead
 * process is reused; a name in use is not.
 */
#ifndef URDMA_COSIM_SOCKET_H
#define URDMA_COSIM_SOCKET_H

#include <sys/types.h>
#include <sys/un.h>

struct urdma_socket {
	int fd; /* -1: none */
	struct sockaddr_un address;
	dev_t dev; /* of the name, so that only this socket's name is removed */
	ino_t ino;
};

/* type: SOCK_STREAM, which then listens, or SOCK_DGRAM. On error a negative errno, and fd is -1. */
int urdma_socket_open(struct urdma_socket *s, int type, const char *path);
/* Closes it and removes its name. */
void urdma_socket_close(struct urdma_socket *s);
/*
 * Accepts the next client of a non-blocking listening socket; -1 and errno on an error. If no file
 * descriptor is left, the client is refused (EAGAIN); otherwise poll would report it forever.
 */
int urdma_socket_accept(int fd);
/* -ENAMETOOLONG. */
int urdma_socket_address(struct sockaddr_un *address, const char *path);

#endif
