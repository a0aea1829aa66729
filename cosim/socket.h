/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets with a name in the file system, for this user alone. A name that a dead process left
 * behind is taken over; one that is in use is not.
 */
#ifndef URDMA_COSIM_SOCKET_H
#define URDMA_COSIM_SOCKET_H

#include <sys/types.h>
#include <sys/un.h>

struct urdma_socket {
	int fd; /* -1: none */
	struct sockaddr_un address;
	dev_t dev; /* of the name, so that only our own is removed */
	ino_t ino;
};

/* type: SOCK_STREAM, which listens then, or SOCK_DGRAM. Negative errno; fd is -1 then. */
int urdma_socket_open(struct urdma_socket *s, int type, const char *path);
/* Closes it and removes its name. */
void urdma_socket_close(struct urdma_socket *s);
/*
 * The next client of a listening socket that does not block; -1 and errno. When there is no file
 * descriptor left it is turned away (EAGAIN): poll would tell of it for ever.
 */
int urdma_socket_accept(int fd);
/* -ENAMETOOLONG. */
int urdma_socket_address(struct sockaddr_un *address, const char *path);

#endif
