// SPDX-License-Identifier: Apache-2.0
// Captures that a reader follows: a FIFO for each port.
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eth/pcapng.h"
#include "program.h"

/* The kernel's default limit for users. */
#define PIPE_BYTES (1 << 20)

/* Maximum time that the end of a packet waits for its reader after the end of the run. */
#define LAST_WAIT_MS 2000

/*
 * The simulation does not wait for a reader. Packets that find no room in the pipe are omitted, and
 * the next one has their number. A record of up to PIPE_BUF bytes is written as a whole or not at
 * all. A longer one may be written in part; its rest is written first when there is room again.
 */
struct live {
	char path[4096];
	struct urdma_eth_port *port;
	unsigned int number; /* of the port */
	uint64_t speed;
	int fd; /* -1: there is no reader */
	struct urdma_pcapng *pcap;
	uint8_t rest[URDMA_ETH_MAX_FRAME + 1024];
	size_t n;      /* bytes of rest */
	uint64_t out;  /* packets omitted since the last one */
	uint64_t lost; /* total */
};

struct urdma_live {
	unsigned int n;
	struct live live[URDMA_COSIM_MAX_PORTS];
};

static void leave(struct live *l)
{
	urdma_pcapng_close(l->pcap);
	l->pcap = NULL;
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->n = 0;
	l->out = 0;
}

/* Writes the rest of a record. True: all of it is written. */
static bool complete(struct live *l)
{
	ssize_t n = l->n ? write(l->fd, l->rest, l->n) : 0;

	if (n < 0 && errno != EAGAIN)
		leave(l);
	if (n > 0) {
		l->n -= (size_t)n;
		memmove(l->rest, l->rest + n, l->n);
	}
	return !l->n;
}

static void record(void *ctx, const struct iovec *part, unsigned int n)
{
	struct live *l = ctx;
	ssize_t gone = -1;

	if (complete(l) && l->fd >= 0) {
		gone = writev(l->fd, part, (int)n);
		if (gone < 0 && errno != EAGAIN)
			leave(l);
	}
	if (l->fd < 0)
		return; /* the reader has gone */
	if (gone < 0) {
		l->out++;
		l->lost++;
		return;
	}
	l->out = 0;
	for (unsigned int i = 0; i < n; i++) {
		size_t skip = (size_t)gone < part[i].iov_len ? (size_t)gone : part[i].iov_len;

		memcpy(l->rest + l->n, (uint8_t *)part[i].iov_base + skip, part[i].iov_len - skip);
		l->n += part[i].iov_len - skip;
		gone -= (ssize_t)skip;
	}
}

static void frame(void *ctx, uint64_t ns, const struct urdma_eth_frame *f, bool outbound)
{
	struct live *l = ctx;
	char text[URDMA_PCAPNG_COMMENT + 1];
	const char *comment = f->note;

	if (!l->pcap)
		return;
	if (l->out) {
		snprintf(text, sizeof(text), "%" PRIu64 " packets before it are left out%s%.*s",
			 l->out, *f->note ? "; " : "", (int)sizeof(text) - 64, f->note);
		comment = text;
	}
	urdma_pcapng_write(l->pcap, ns, f->data, f->len, outbound, f->error, comment);
}

unsigned int urdma_program_live_pollfds(const struct urdma_program *p, struct pollfd *fds)
{
	unsigned int n = 0;

	for (unsigned int i = 0; p->live && i < p->live->n; i++)
		if (p->live->live[i].fd >= 0)
			fds[n++] = (struct pollfd){ .fd = p->live->live[i].fd };
	return n;
}

/* Drops pending data: the next reader needs its own start of the file. */
static bool reader_gone(const struct live *l)
{
	struct pollfd fd = { .fd = l->fd };

	return poll(&fd, 1, 0) == 1 && fd.revents & POLLERR;
}

void urdma_program_watch_live(struct urdma_program *p)
{
	for (unsigned int i = 0; p->live && i < p->live->n; i++) {
		struct live *l = &p->live->live[i];

		if (l->fd >= 0 && reader_gone(l))
			leave(l);
		if (l->fd >= 0) {
			complete(l);
			continue;
		}
		l->fd = open(l->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		if (l->fd < 0)
			continue;
		/* If this fails, the pipe is smaller and more packets are omitted. */
		(void)fcntl(l->fd, F_SETPIPE_SZ, PIPE_BYTES);
		l->pcap = urdma_pcapng_to(record, l, l->port->name, l->speed);
		if (!l->pcap || l->fd < 0)
			leave(l);
	}
}

/*
 * Checks that path is a FIFO left by a run that was killed: this user owns it, and no program has
 * it open. Returns NULL, or the reason why it is something else.
 */
static const char *not_left_behind(const char *path)
{
	const char *why = NULL;
	struct stat st;
	char byte;
	int fd;

	if (lstat(path, &st))
		return strerror(errno);
	if (!S_ISFIFO(st.st_mode))
		return "it is there already, and not a FIFO";
	if (st.st_uid != geteuid())
		return "it is there already, of another user";
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno != ENXIO)
		return strerror(errno);
	if (fd >= 0) {
		close(fd);
		return "it is there already, and a program reads it";
	}
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return strerror(errno);
	if (read(fd, &byte, 1)) /* not end of file: there is a writer */
		why = "it is there already, and a program writes to it";
	close(fd);
	return why;
}

static int make_fifo(const char *path)
{
	const char *why;

	if (!mkfifo(path, 0666))
		return 0;
	if (errno != EEXIST) {
		fprintf(stderr, "urdma-cosim: cannot make %s: %s\n", path, strerror(errno));
		return 1;
	}
	why = not_left_behind(path);
	if (why)
		fprintf(stderr,
			"urdma-cosim: %s: %s; end the program or remove the file, or choose "
			"another --out\n",
			path, why);
	return why != NULL;
}

int urdma_program_open_live(struct urdma_program *p)
{
	if (!p->opt.live)
		return 0;
	p->live = calloc(1, sizeof(*p->live));
	for (unsigned int i = 0; p->live && i < URDMA_COSIM_MAX_PORTS; i++) {
		struct urdma_eth_port *port = urdma_cosim_port(p->c, i);
		struct live *l = &p->live->live[p->live->n];

		if (!port)
			continue;
		l->fd = -1;
		l->port = port;
		l->number = i;
		l->speed = port->line.mbps * 1000000;
		snprintf(l->path, sizeof(l->path), "%s/%s.live", p->opt.out, port->name);
		if (make_fifo(l->path))
			return 1;
		p->live->n++;
		if (urdma_cosim_follow(p->c, i, frame, l)) {
			fprintf(stderr, "urdma-cosim: %s: no memory\n", l->path);
			return 1;
		}
	}
	if (!p->live)
		fprintf(stderr, "urdma-cosim: no memory for --live\n");
	return !p->live;
}

static void end_record(struct live *l)
{
	struct timespec tick = { .tv_nsec = 10000000 };

	for (unsigned int ms = 0; ms < LAST_WAIT_MS && l->fd >= 0 && !complete(l); ms += 10)
		nanosleep(&tick, NULL);
}

void urdma_program_close_live(struct urdma_program *p)
{
	for (unsigned int i = 0; p->live && i < p->live->n; i++) {
		struct live *l = &p->live->live[i];

		urdma_cosim_follow(p->c, l->number, NULL, NULL);
		end_record(l);
		leave(l);
		unlink(l->path);
		if (l->lost)
			fprintf(stderr,
				"urdma-cosim: %s: %" PRIu64
				" packets were left out, because the reader was too slow\n",
				l->path, l->lost);
	}
	free(p->live);
	p->live = NULL;
}
