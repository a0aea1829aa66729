// SPDX-License-Identifier: Apache-2.0
// External port: QEMU's -netdev stream. A 4-byte big-endian length precedes each frame.
#include <poll.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "eth/external_ops.h"
#include "socket.h"

/*
 * Maximum length that a virtual NIC can mean; a frame with a length invalid on the wire is skipped.
 * A larger value is not a length, and then the next frame cannot be found.
 */
#define MAX_LENGTH (128u << 10)
#define IN_SIZE	   (64u << 10)

struct stream {
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int ip_port; /* 0: unix */
	bool listen;
	struct urdma_socket server; /* of unix */
	int listen_fd;		    /* of either */
	int fd;			    /* -1: no peer */
	uint8_t in[IN_SIZE];
	size_t in_at, in_len;
	size_t skip; /* bytes left of a skipped frame */
	/* The part of a frame that the socket has not accepted. */
	uint8_t out[4 + URDMA_ETH_MAX_FRAME];
	size_t out_at, out_len;
};

static int parse(struct urdma_external *e, char *args, char *error, size_t size)
{
	struct stream *s = calloc(1, sizeof(*s));
	char *word, *where;

	if (!s)
		return -ENOMEM;
	e->impl = s;
	s->listen_fd = -1;
	s->server.fd = -1;
	s->fd = -1;
	where = strsep(&args, ",");
	while ((word = strsep(&args, ","))) {
		if (strcmp(word, "listen"))
			return urdma_external_bad(error, size, "stream: '%s' is not listen", word);
		s->listen = true;
	}
	if (!strncmp(where, "tcp:", 4)) {
		s->ip_port = urdma_external_ip_port(where + 4);
		if (s->ip_port < 0)
			return urdma_external_bad(
				error, size, "stream: '%s' is not a port of 127.0.0.1", where + 4);
		return 0;
	}
	if (strncmp(where, "unix:", 5) || !where[5])
		return urdma_external_bad(error, size,
					  "stream: '%s' is neither unix:PATH nor tcp:PORT", where);
	if (strlen(where + 5) >= sizeof(s->path))
		return urdma_external_bad(error, size,
					  "stream: a socket's path has at most %zu characters",
					  sizeof(s->path) - 1);
	strcpy(s->path, where + 5);
	return 0;
}

static void set_peer(struct urdma_external *e, int fd)
{
	struct stream *s = e->impl;
	int one = 1;

	if (s->ip_port)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	s->fd = fd;
	s->in_at = s->in_len = 0;
	s->skip = 0;
	s->out_at = s->out_len = 0;
	e->stats.connects++;
	e->stats.up = true;
	urdma_external_say(e, "connected");
}

static void drop_peer(struct urdma_external *e, const char *why)
{
	struct stream *s = e->impl;

	urdma_external_say(e, "%s%s; %s", why,
			   s->in_len != s->in_at || s->skip ? ", in the middle of a frame" : "",
			   s->listen ? "waiting for the next connection" : "the port stays down");
	close(s->fd);
	s->fd = -1;
	s->in_at = s->in_len = 0;
	s->skip = 0;
	s->out_at = s->out_len = 0;
	e->stats.disconnects++;
	e->stats.up = false;
}

static int open_stream(struct urdma_external *e, char *error, size_t size)
{
	struct stream *s = e->impl;
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)s->ip_port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un;
	int fd = -1, ret = 0, one = 1;

	if (!s->ip_port && s->listen) {
		ret = urdma_socket_open(&s->server, SOCK_STREAM, s->path);
		s->listen_fd = s->server.fd;
	} else if (s->ip_port) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (s->listen ? SOCK_NONBLOCK : 0),
			    0);
		if (fd < 0) {
			ret = -errno;
		} else if (s->listen) {
			s->listen_fd = fd;
			if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
			    bind(fd, (struct sockaddr *)&in, sizeof(in)) || listen(fd, 4))
				ret = -errno;
		} else if (connect(fd, (struct sockaddr *)&in, sizeof(in))) {
			ret = -errno;
			close(fd);
		}
	} else {
		urdma_socket_address(&un, s->path);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0) {
			ret = -errno;
		} else if (connect(fd, (struct sockaddr *)&un, sizeof(un))) {
			ret = -errno;
			close(fd);
		}
	}
	if (ret) {
		char where[32];

		snprintf(where, sizeof(where), "127.0.0.1:%d", s->ip_port);
		urdma_external_bad(error, size, "cannot %s %s: %s%s",
				   s->listen ? "listen at" : "connect to",
				   s->ip_port ? where : s->path, strerror(-ret),
				   s->listen ? "" : " (with ,listen it waits for its peer)");
		return ret;
	}
	if (!s->listen)
		set_peer(e, fd);
	return 0;
}

static void close_stream(struct urdma_external *e)
{
	struct stream *s = e->impl;

	if (s->fd >= 0)
		close(s->fd);
	if (s->ip_port && s->listen_fd >= 0)
		close(s->listen_fd);
	urdma_socket_close(&s->server);
}

static unsigned int pollfds(const struct urdma_external *e, struct pollfd *fds, bool want_out)
{
	const struct stream *s = e->impl;

	fds[0].fd = s->fd >= 0 ? s->fd : s->listen_fd;
	fds[0].events = POLLIN;
	if (s->fd >= 0 && (want_out || s->out_len))
		fds[0].events |= POLLOUT;
	return fds[0].fd >= 0;
}

/* Sends the rest of a frame. */
static int push_rest(struct urdma_external *e)
{
	struct stream *s = e->impl;

	while (s->out_at < s->out_len) {
		ssize_t n = send(s->fd, s->out + s->out_at, s->out_len - s->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return -EAGAIN;
		if (n < 0) {
			drop_peer(e, strerror(errno));
			return -ENOTCONN;
		}
		s->out_at += (size_t)n;
	}
	s->out_at = s->out_len = 0;
	return 0;
}

static int send_frame(struct urdma_external *e, const void *frame, size_t len)
{
	struct stream *s = e->impl;
	uint32_t head = htonl((uint32_t)len);
	int ret;

	if (s->fd < 0)
		return -ENOTCONN;
	ret = push_rest(e);
	if (ret)
		return ret;
	memcpy(s->out, &head, 4);
	memcpy(s->out + 4, frame, len);
	s->out_len = 4 + len;
	ret = push_rest(e);
	if (ret == -EAGAIN && !s->out_at) {
		s->out_len = 0;
		return -EAGAIN;
	}
	return ret == -EAGAIN ? 0 : ret;
}

/*
 * The next whole frame of the data read: its length, -EAGAIN, or -EBADMSG. A frame of a bad length
 * is skipped; only its length is returned.
 */
static int take(struct urdma_external *e, uint8_t *frame)
{
	struct stream *s = e->impl;
	size_t left = s->in_len - s->in_at, n = s->skip < left ? s->skip : left;
	uint32_t len;

	s->skip -= n;
	s->in_at += n;
	left -= n;
	if (left < 4)
		return -EAGAIN;
	memcpy(&len, s->in + s->in_at, 4);
	len = ntohl(len);
	if (len > MAX_LENGTH) {
		e->stats.bad_length++;
		return -EBADMSG;
	}
	if (len < URDMA_EXTERNAL_MIN_FRAME || len > URDMA_ETH_MAX_FRAME) {
		s->skip = 4 + len;
		return (int)len;
	}
	if (left < 4 + len)
		return -EAGAIN;
	memcpy(frame, s->in + s->in_at + 4, len);
	s->in_at += 4 + len;
	return (int)len;
}

static int receive(struct urdma_external *e, uint8_t *frame)
{
	struct stream *s = e->impl;
	unsigned int tries = 0;

	if (s->fd < 0 && s->listen_fd >= 0) {
		int fd = urdma_socket_accept(s->listen_fd);

		if (fd >= 0)
			set_peer(e, fd);
	}
	if (s->fd >= 0 && s->out_len)
		push_rest(e);
	while (s->fd >= 0) {
		int ret = take(e, frame);
		ssize_t n;

		if (ret >= 0)
			return ret;
		if (ret == -EBADMSG) {
			drop_peer(e,
				  "the peer sent a length that makes no sense, connection closed");
			break;
		}
		if (tries++ == URDMA_EXTERNAL_TRIES)
			break;
		memmove(s->in, s->in + s->in_at, s->in_len - s->in_at);
		s->in_len -= s->in_at;
		s->in_at = 0;
		n = recv(s->fd, s->in + s->in_len, sizeof(s->in) - s->in_len, MSG_DONTWAIT);
		if (n > 0) {
			s->in_len += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		drop_peer(e, n ? strerror(errno) : "the peer is gone");
	}
	return -EAGAIN;
}

const struct urdma_external_ops urdma_external_stream = {
	.kind = "stream",
	.parse = parse,
	.open = open_stream,
	.close = close_stream,
	.pollfds = pollfds,
	.receive = receive,
	.send = send_frame,
};
