// SPDX-License-Identifier: Apache-2.0
// See socket.h.
#define _GNU_SOURCE /* SOCK_NONBLOCK, accept4 */
#include "socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int urdma_socket_address(struct sockaddr_un *address, const char *path)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	if (!path[0])
		return -EINVAL;
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

/* True if the name belongs to a socket that no process has open. */
static bool is_stale(const struct sockaddr_un *address, int type)
{
	struct stat st;
	bool stale;
	int fd;

	if (lstat(address->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	stale = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
		errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int bind_to(struct urdma_socket *s, int type)
{
	const struct sockaddr *address = (const struct sockaddr *)&s->address;
	struct stat st;
	int ret;

	/* The name gets the mode of the socket: only for this user. */
	if (fchmod(s->fd, 0600))
		return -errno;
	ret = bind(s->fd, address, sizeof(s->address));
	if (ret && errno == EADDRINUSE && is_stale(&s->address, type)) {
		unlink(s->address.sun_path);
		ret = bind(s->fd, address, sizeof(s->address));
	}
	if (ret)
		return -errno;
	if (lstat(s->address.sun_path, &st) == 0) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
	return type == SOCK_STREAM && listen(s->fd, 4) ? -errno : 0;
}

int urdma_socket_open(struct urdma_socket *s, int type, const char *path)
{
	int ret;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	ret = urdma_socket_address(&s->address, path);
	if (ret)
		return ret;
	s->fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -errno;
	ret = bind_to(s, type);
	if (ret)
		urdma_socket_close(s);
	return ret;
}

int urdma_socket_accept(int fd)
{
	static int spare = -1; /* reserved for when no other descriptor is left */
	static bool said;
	int client;

	if (spare < 0)
		spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client >= 0 || (errno != EMFILE && errno != ENFILE) || spare < 0)
		return client;
	if (!said)
		fprintf(stderr, "urdma-cosim: %s: clients are turned away\n", strerror(errno));
	said = true;
	close(spare);
	client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (client >= 0)
		close(client);
	spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	errno = EAGAIN;
	return -1;
}

void urdma_socket_close(struct urdma_socket *s)
{
	struct stat st;

	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	if (s->ino && lstat(s->address.sun_path, &st) == 0 && st.st_ino == s->ino &&
	    st.st_dev == s->dev)
		unlink(s->address.sun_path);
	s->ino = 0;
}
