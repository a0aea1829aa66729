// SPDX-License-Identifier: Apache-2.0
// External port: a tap device of Linux.
#include <poll.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "eth/external_ops.h"

struct tap {
	char name[IFNAMSIZ];
	int fd;
};

static int parse(struct urdma_external *e, char *args, char *error, size_t size)
{
	struct tap *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	e->impl = t;
	t->fd = -1;
	if (!args[0] || strlen(args) >= sizeof(t->name) || strpbrk(args, "/:% \t"))
		return urdma_external_bad(error, size, "tap: '%s' is not the name of a net device",
					  args);
	strcpy(t->name, args);
	return 0;
}

static int open_tap(struct urdma_external *e, char *error, size_t size)
{
	struct tap *t = e->impl;
	struct ifreq req = { .ifr_flags = IFF_TAP | IFF_NO_PI };
	int ret;

	t->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (t->fd < 0) {
		ret = -errno;
		if (ret == -EACCES || ret == -EPERM)
			urdma_external_bad(
				error, size,
				"cannot open /dev/net/tun: %s; as root: chmod 666 "
				"/dev/net/tun, which is how distributions have it, and ip "
				"tuntap add dev %s mode tap user %u && ip link set %s up",
				strerror(-ret), t->name, (unsigned int)geteuid(), t->name);
		else
			urdma_external_bad(
				error, size,
				"cannot open /dev/net/tun: %s; the kernel's tun module has "
				"to be loaded, and a container given the device",
				strerror(-ret));
		return ret;
	}
	strcpy(req.ifr_name, t->name);
	if (ioctl(t->fd, TUNSETIFF, &req) < 0) {
		ret = -errno;
		if (ret == -EPERM)
			urdma_external_bad(
				error, size,
				"this user may not use tap device %s; as root: ip tuntap "
				"add dev %s mode tap user %u && ip link set %s up",
				t->name, t->name, (unsigned int)geteuid(), t->name);
		else
			urdma_external_bad(error, size, "cannot use tap device %s: %s%s", t->name,
					   strerror(-ret),
					   ret == -EBUSY    ? "; another program has it"
					   : ret == -EINVAL ? "; it is a device of another kind"
							    : "");
		return ret;
	}
	e->stats.up = true;
	return 0;
}

static void close_tap(struct urdma_external *e)
{
	struct tap *t = e->impl;

	if (t->fd >= 0)
		close(t->fd);
}

static unsigned int pollfds(const struct urdma_external *e, struct pollfd *fds, bool want_out)
{
	const struct tap *t = e->impl;

	fds[0].fd = t->fd;
	fds[0].events = (short)(POLLIN | (want_out ? POLLOUT : 0));
	return t->fd >= 0;
}

static int receive(struct urdma_external *e, uint8_t *frame)
{
	struct tap *t = e->impl;
	ssize_t n;

	if (t->fd < 0)
		return -EAGAIN;
	n = read(t->fd, frame, URDMA_ETH_MAX_FRAME + 1);
	if (n > 0)
		return (int)n;
	if (!n || errno == EBADFD || errno == ENODEV) {
		urdma_external_say(e, "tap device %s is gone; the port stays down", t->name);
		close(t->fd);
		t->fd = -1;
		e->stats.up = false;
		e->stats.disconnects++;
	}
	return -EAGAIN;
}

/* A device that is down accepts nothing (EIO). */
static int send_frame(struct urdma_external *e, const void *frame, size_t len)
{
	struct tap *t = e->impl;

	if (t->fd < 0)
		return -ENOTCONN;
	if (write(t->fd, frame, len) >= 0)
		return 0;
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -ENOTCONN;
}

const struct urdma_external_ops urdma_external_tap = {
	.kind = "tap",
	.parse = parse,
	.open = open_tap,
	.close = close_tap,
	.pollfds = pollfds,
	.receive = receive,
	.send = send_frame,
};
