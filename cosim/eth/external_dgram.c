// SPDX-License-Identifier: Apache-2.0
// External port: QEMU's -netdev dgram. One frame per datagram.
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include <poll.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eth/external_ops.h"
#include "socket.h"

struct dgram {
	struct sockaddr_un own, peer;
	socklen_t peer_len;	/* includes every byte of an abstract name, also zeros */
	int ip_port, peer_port; /* 0: unix */
	bool has_peer;		/* given, or known from its first datagram */
	bool peer_given;
	struct urdma_socket sock; /* of unix */
	int fd;
};

static int parse(struct urdma_external *e, char *args, char *error, size_t size)
{
	struct dgram *d = calloc(1, sizeof(*d));
	char *word, *where;
	bool unix_socket;

	if (!d)
		return -ENOMEM;
	e->impl = d;
	d->fd = -1;
	d->sock.fd = -1;
	where = strsep(&args, ",");
	unix_socket = !strncmp(where, "unix:", 5);
	if (!unix_socket && strncmp(where, "udp:", 4))
		return urdma_external_bad(error, size,
					  "dgram: '%s' is neither unix:PATH nor udp:PORT", where);
	if (unix_socket) {
		if (urdma_socket_address(&d->own, where + 5))
			return urdma_external_bad(error, size,
						  "dgram: a socket's path has 1 to %zu characters",
						  sizeof(d->own.sun_path) - 1);
	} else {
		d->ip_port = urdma_external_ip_port(where + 4);
		if (d->ip_port < 0)
			return urdma_external_bad(
				error, size, "dgram: '%s' is not a port of 127.0.0.1", where + 4);
	}
	while ((word = strsep(&args, ","))) {
		if (strncmp(word, "peer=", 5))
			return urdma_external_bad(error, size, "dgram: '%s' is not peer=...", word);
		d->has_peer = d->peer_given = true;
		d->peer_len = sizeof(d->peer);
		if (unix_socket && urdma_socket_address(&d->peer, word + 5))
			return urdma_external_bad(error, size,
						  "dgram: a socket's path has 1 to %zu characters",
						  sizeof(d->peer.sun_path) - 1);
		d->peer_port = unix_socket ? 0 : urdma_external_ip_port(word + 5);
		if (d->peer_port < 0)
			return urdma_external_bad(
				error, size, "dgram: '%s' is not a port of 127.0.0.1", word + 5);
	}
	return 0;
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int open_dgram(struct urdma_external *e, char *error, size_t size)
{
	struct dgram *d = e->impl;
	struct sockaddr_in in = loopback(d->ip_port);
	int ret = 0;

	if (d->ip_port) {
		d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (d->fd < 0 || bind(d->fd, (struct sockaddr *)&in, sizeof(in)))
			ret = -errno;
		/* The kernel then drops datagrams of other senders, and reports a missing peer. */
		in = loopback(d->peer_port);
		if (!ret && d->peer_given && connect(d->fd, (struct sockaddr *)&in, sizeof(in)))
			ret = -errno;
	} else {
		ret = urdma_socket_open(&d->sock, SOCK_DGRAM, d->own.sun_path);
		d->fd = d->sock.fd;
	}
	if (ret && d->ip_port)
		urdma_external_bad(error, size, "cannot use 127.0.0.1:%d: %s", d->ip_port,
				   strerror(-ret));
	else if (ret)
		urdma_external_bad(error, size, "cannot make the socket %s: %s", d->own.sun_path,
				   strerror(-ret));
	e->stats.up = d->has_peer;
	return ret;
}

static void close_dgram(struct urdma_external *e)
{
	struct dgram *d = e->impl;

	if (d->ip_port && d->fd >= 0)
		close(d->fd);
	urdma_socket_close(&d->sock);
}

/* A datagram socket is writable before its peer has room, so waiting for POLLOUT would spin. */
static unsigned int pollfds(const struct urdma_external *e, struct pollfd *fds, bool want_out)
{
	const struct dgram *d = e->impl;

	(void)want_out;
	fds[0].fd = d->fd;
	fds[0].events = POLLIN;
	return 1;
}

static int send_frame(struct urdma_external *e, const void *frame, size_t len)
{
	struct dgram *d = e->impl;
	struct sockaddr_in in = loopback(d->peer_port);
	const struct sockaddr *to =
		d->ip_port ? (struct sockaddr *)&in : (struct sockaddr *)&d->peer;
	socklen_t to_len = d->ip_port ? sizeof(in) : d->peer_len;
	ssize_t n;

	if (!d->has_peer)
		return -ENOTCONN;
	do
		n = sendto(d->fd, frame, len, MSG_NOSIGNAL | MSG_DONTWAIT, to, to_len);
	while (n < 0 && errno == EINTR);
	if (n >= 0) {
		e->stats.up = true;
		return 0;
	}
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
		return -EAGAIN;
	e->stats.up = false;
	return -ENOTCONN;
}

static int receive(struct urdma_external *e, uint8_t *frame)
{
	struct dgram *d = e->impl;
	struct sockaddr_storage from;

	for (unsigned int tries = 0; tries < URDMA_EXTERNAL_TRIES; tries++) {
		socklen_t len = sizeof(from);
		ssize_t n;

		memset(&from, 0, sizeof(from));
		n = recvfrom(d->fd, frame, URDMA_ETH_MAX_FRAME + 1, MSG_DONTWAIT,
			     (struct sockaddr *)&from, &len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == ECONNREFUSED) {
			/* Reports that an earlier datagram found no receiver. */
			e->stats.no_peer++;
			e->stats.up = false;
			continue;
		}
		if (n < 0)
			return -EAGAIN;
		if (d->ip_port) {
			const struct sockaddr_in *in = (const struct sockaddr_in *)&from;

			d->peer_port = ntohs(in->sin_port);
			d->has_peer = true;
		} else if (!d->peer_given && len > sizeof(sa_family_t)) {
			memcpy(&d->peer, &from, sizeof(d->peer));
			d->peer_len = len;
			d->has_peer = true;
		}
		if (!e->stats.up && d->has_peer) {
			e->stats.up = true;
			e->stats.connects++;
		}
		return (int)n;
	}
	return -EAGAIN;
}

const struct urdma_external_ops urdma_external_dgram = {
	.kind = "dgram",
	.no_pollout = true,
	.parse = parse,
	.open = open_dgram,
	.close = close_dgram,
	.pollfds = pollfds,
	.receive = receive,
	.send = send_frame,
};
