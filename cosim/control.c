// SPDX-License-Identifier: Apache-2.0
// See control.h.
#include "control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket.h"

/* Maximum bytes of answers that wait for a client that does not read; beyond it, it is dropped. */
#define MAX_ANSWERS (1u << 20)
/* Maximum reads of one client per call, so that an endless writer cannot stop the simulator. */
#define MAX_READS 16u

struct client {
	int fd; /* -1: free */
	char in[URDMA_CONTROL_MAX_LINE];
	size_t n;
	bool too_long; /* discard the rest of the line */
	char *out;
	size_t out_at, out_len;
};

struct urdma_control {
	struct urdma_socket listen;
	urdma_control_fn fn;
	void *ctx;
	struct client client[URDMA_CONTROL_MAX_CLIENTS];
};

int urdma_control_create(const char *path, urdma_control_fn fn, void *ctx,
			 struct urdma_control **control)
{
	struct urdma_control *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->fn = fn;
	c->ctx = ctx;
	for (unsigned int i = 0; i < URDMA_CONTROL_MAX_CLIENTS; i++)
		c->client[i].fd = -1;
	ret = urdma_socket_open(&c->listen, SOCK_STREAM, path);
	if (ret) {
		free(c);
		return ret;
	}
	*control = c;
	return 0;
}

static void drop(struct client *k)
{
	close(k->fd);
	free(k->out);
	memset(k, 0, sizeof(*k));
	k->fd = -1;
}

void urdma_control_destroy(struct urdma_control *c)
{
	if (!c)
		return;
	for (unsigned int i = 0; i < URDMA_CONTROL_MAX_CLIENTS; i++)
		if (c->client[i].fd >= 0)
			drop(&c->client[i]);
	urdma_socket_close(&c->listen);
	free(c);
}

/* False: the client is gone. */
static bool flush(struct client *k)
{
	while (k->out_at < k->out_len) {
		ssize_t n = send(k->fd, k->out + k->out_at, k->out_len - k->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		k->out_at += (size_t)n;
	}
	free(k->out);
	k->out = NULL;
	k->out_at = k->out_len = 0;
	return true;
}

static bool answer(struct client *k, const char *text)
{
	size_t len = strlen(text);
	char *out;

	if (k->out_len + len + 1 > MAX_ANSWERS) {
		/* Data that the client has read does not count. */
		if (!flush(k))
			return false;
		if (k->out_at) {
			k->out_len -= k->out_at;
			memmove(k->out, k->out + k->out_at, k->out_len);
			k->out_at = 0;
		}
		if (k->out_len + len + 1 > MAX_ANSWERS)
			return false;
	}
	out = realloc(k->out, k->out_len + len + 1);
	if (!out)
		return false;
	memcpy(out + k->out_len, text, len);
	out[k->out_len + len] = '\n';
	k->out = out;
	k->out_len += len + 1;
	return true;
}

static bool do_line(struct urdma_control *c, struct client *k, char *line)
{
	char *text;
	size_t n = strlen(line);
	bool ok;

	if (n && line[n - 1] == '\r')
		line[n - 1] = '\0';
	if (!line[0])
		return true;
	text = c->fn(c->ctx, line);
	ok = answer(k, text ? text : "ok");
	free(text);
	return ok;
}

/* False: the client is gone. The next call reads the rest; poll reports it. */
static bool read_lines(struct urdma_control *c, struct client *k, bool *any)
{
	for (unsigned int reads = 0; reads < MAX_READS; reads++) {
		ssize_t n = recv(k->fd, k->in + k->n, sizeof(k->in) - k->n, MSG_DONTWAIT);
		char *nl;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK;
		if (!n) {
			flush(k); /* the client may read again */
			return false;
		}
		*any = true;
		k->n += (size_t)n;
		while ((nl = memchr(k->in, '\n', k->n))) {
			size_t used = (size_t)(nl - k->in) + 1;
			bool ok = true;

			*nl = '\0';
			if (k->too_long || memchr(k->in, '\0', used - 1))
				ok = answer(k, "error the line is too long, or has zeros in it");
			else
				ok = do_line(c, k, k->in);
			k->too_long = false;
			if (!ok)
				return false;
			k->n -= used;
			memmove(k->in, k->in + used, k->n);
		}
		if (k->n == sizeof(k->in)) {
			k->too_long = true;
			k->n = 0;
		}
	}
	return true;
}

bool urdma_control_process(struct urdma_control *c)
{
	bool any = false;

	for (unsigned int i = 0; i < URDMA_CONTROL_MAX_CLIENTS; i++) {
		struct client *k = &c->client[i];

		if (k->fd < 0) {
			k->fd = urdma_socket_accept(c->listen.fd);
			if (k->fd < 0)
				continue;
			any = true;
		}
		if (!flush(k) || !read_lines(c, k, &any) || !flush(k))
			drop(k);
	}
	return any;
}

unsigned int urdma_control_pollfds(const struct urdma_control *c, struct pollfd *fds)
{
	unsigned int n = 0, clients = 0;

	for (unsigned int i = 0; i < URDMA_CONTROL_MAX_CLIENTS; i++) {
		const struct client *k = &c->client[i];

		if (k->fd < 0)
			continue;
		clients++;
		fds[n++] = (struct pollfd){ .fd = k->fd,
					    .events = (short)(POLLIN | (k->out ? POLLOUT : 0)) };
	}
	if (clients < URDMA_CONTROL_MAX_CLIENTS)
		fds[n++] = (struct pollfd){ .fd = c->listen.fd, .events = POLLIN };
	return n;
}

int urdma_control_tell(const char *path, const char *line)
{
	struct sockaddr_un un;
	char word[6] = "";
	size_t n = 0;
	FILE *f;
	int fd, k, ret = urdma_socket_address(&un, path);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!ret && (fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un))))
		ret = -errno;
	if (ret) {
		fprintf(stderr, "urdma-cosim: cannot connect to %s: %s\n", path, strerror(-ret));
		return 2;
	}
	f = fdopen(fd, "r+");
	if (!f || fprintf(f, "%s\n", line) < 0 || fflush(f))
		goto lost;
	while ((k = getc(f)) != EOF && k != '\n') {
		if (n < sizeof(word) - 1)
			word[n++] = (char)k;
		putchar(k);
	}
	if (k == EOF)
		goto lost;
	putchar('\n');
	fclose(f);
	if (ferror(stdout) || fflush(stdout)) {
		perror("urdma-cosim: the answer could not be written");
		return 2;
	}
	return strncmp(word, "error", 5) == 0;
lost:
	fprintf(stderr, "urdma-cosim: %s gave no answer\n", path);
	return 2;
}
