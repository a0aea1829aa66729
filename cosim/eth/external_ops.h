/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that each kind of external port implements; see external.h. */
#ifndef URDMA_COSIM_EXTERNAL_OPS_H
#define URDMA_COSIM_EXTERNAL_OPS_H

#include "eth/external.h"

struct urdma_external_waiting;

#define URDMA_EXTERNAL_TRIES 8u

struct urdma_external {
	struct urdma_eth_port port;
	char name[16];
	const struct urdma_external_ops *ops;
	void *impl;
	struct urdma_external_stats stats;
	/* Frames that the peer did not accept at once. */
	struct urdma_external_waiting *queue, **queue_end;
	size_t queue_bytes;
	bool more; /* the last call may have left frames from the peer */
};

struct urdma_external_ops {
	const char *kind;
	bool no_pollout; /* poll does not report when the peer has room again */
	/* args: the text behind "KIND:", to be cut to pieces. Makes impl. -EINVAL, error. */
	int (*parse)(struct urdma_external *e, char *args, char *error, size_t size);
	int (*open)(struct urdma_external *e, char *error, size_t size);
	void (*close)(struct urdma_external *e);

	/* For kinds with a peer. want_out: a frame waits that the peer did not accept. */
	unsigned int (*pollfds)(const struct urdma_external *e, struct pollfd *fds, bool want_out);
	/*
	 * Reads the next frame into a buffer of URDMA_ETH_MAX_FRAME + 1 bytes. Returns its length,
	 * a larger value if it is too long. A frame of a bad length need not be in the buffer.
	 * -EAGAIN: a few system calls (URDMA_EXTERNAL_TRIES) found none; poll reports further ones.
	 */
	int (*receive)(struct urdma_external *e, uint8_t *frame);
	/* 0: accepted; -EAGAIN: not now; -ENOTCONN: no peer. */
	int (*send)(struct urdma_external *e, const void *frame, size_t len);

	/* For kinds that send by themselves. */
	uint64_t (*due)(const struct urdma_external *e);
	void (*push)(struct urdma_external *e, uint64_t now);
	int (*start)(struct urdma_external *e, uint64_t now);
	/* The file that the port sends. */
	const char *(*file)(const struct urdma_external *e);
};

extern const struct urdma_external_ops urdma_external_stream, urdma_external_dgram,
	urdma_external_tap, urdma_external_replay;

/* Logs a change of state. */
void urdma_external_say(const struct urdma_external *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes into error; returns -EINVAL. */
int urdma_external_bad(char *error, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* 1 to 65535, or -1. */
int urdma_external_ip_port(const char *text);

#endif
