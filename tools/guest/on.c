// SPDX-License-Identifier: Apache-2.0
/*
 * on HOST COMMAND [ARGUMENT...]: runs a command in another guest of the same run, and passes on its
 * output and exit status. `on --agent ADDRESS` is the other side, started by the guest's init. `on
 * peer` runs the command in this guest, in the network namespace of the peer, which is that of
 * process 1.
 *
 * It uses TCP on the management network between the guests, with one connection per command. The
 * request is a length, then the working directory and the arguments, each ended by NUL. The answer
 * is a sequence of frames: one byte of type (1 standard output, 2 standard error, 0 end), and a
 * 32-bit length or, for the end, the exit status. When the caller leaves, the command is killed,
 * with all processes of its session.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT	    "7077"
#define REQUEST_MAX (1U << 20)

struct frame {
	uint8_t type;
	uint32_t value;
} __attribute__((packed));

static int write_all(int fd, const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t size)
{
	char *p = data;

	while (size) {
		ssize_t n = read(fd, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		size -= (size_t)n;
	}
	return 0;
}

static int send_frame(int fd, uint8_t type, uint32_t value, const void *data)
{
	struct frame f = { .type = type, .value = htonl(value) };

	if (write_all(fd, &f, sizeof(f)))
		return -1;
	return data ? write_all(fd, data, value) : 0;
}

/* Passes on the command's output until it has ended and its pipes are empty. */
static uint32_t relay(int sock, pid_t child, int out, int err)
{
	struct pollfd p[3] = {
		{ .fd = out, .events = POLLIN },
		{ .fd = err, .events = POLLIN },
		{ .fd = sock, .events = POLLIN },
	};
	char buffer[65536];
	int status = 0, ended = 0;

	for (;;) {
		/* A background process may hold the pipes: once the command has ended, take the
		 * remaining data. */
		int n = poll(p, 3, ended ? 100 : 50);

		if (!ended && waitpid(child, &status, WNOHANG) == child)
			ended = 1;
		if (ended && (n == 0 || (p[0].fd < 0 && p[1].fd < 0)))
			break;
		for (int i = 0; i < 2; i++) {
			ssize_t got;

			if (p[i].fd < 0 || !p[i].revents)
				continue;
			got = read(p[i].fd, buffer, sizeof(buffer));
			if (got <= 0)
				p[i].fd = -1;
			else if (send_frame(sock, (uint8_t)(i + 1), (uint32_t)got, buffer))
				goto gone;
		}
		if (p[2].revents && read(sock, buffer, sizeof(buffer)) <= 0)
			goto gone;
	}
	return WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status)
				 : 128U + (uint32_t)WTERMSIG(status);
gone:
	kill(-child, SIGKILL);
	if (!ended)
		waitpid(child, &status, 0);
	_exit(1);
}

static void run_command(char *request, uint32_t size)
{
	char **argv, *p = request, *end = request + size;
	size_t n = 0;

	argv = calloc(size + 1U, sizeof(*argv));
	if (!argv)
		_exit(126);
	/* The first string is the working directory; if it does not exist, stay. */
	if (chdir(p))
		p[0] = 0;
	for (p += strlen(p) + 1; p < end; p += strlen(p) + 1)
		argv[n++] = p;
	if (!n)
		_exit(126);
	execvp(argv[0], argv);
	fprintf(stderr, "on: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

static void serve(int sock)
{
	int out[2], err[2];
	uint32_t size;
	char *request;
	pid_t child;

	if (read_all(sock, &size, sizeof(size)))
		return;
	size = ntohl(size);
	if (!size || size > REQUEST_MAX)
		return;
	request = malloc(size);
	if (!request || read_all(sock, request, size) || request[size - 1])
		return;
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
		return;
	child = fork();
	if (child < 0)
		return;
	if (!child) {
		int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

		setsid();
		signal(SIGPIPE, SIG_DFL);
		signal(SIGCHLD, SIG_DFL);
		dup2(null, 0);
		dup2(out[1], 1);
		dup2(err[1], 2);
		run_command(request, size);
	}
	close(out[1]);
	close(err[1]);
	send_frame(sock, 0, relay(sock, child, out[0], err[0]), NULL);
}

static int agent(const char *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE }, *ai;
	int listener, one = 1;

	if (getaddrinfo(address, PORT, &hints, &ai))
		return 1;
	listener = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0);
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(listener, ai->ai_addr, ai->ai_addrlen) || listen(listener, 64)) {
		perror("on: agent");
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		pid_t pid;

		if (sock < 0)
			continue;
		pid = fork();
		if (!pid) {
			signal(SIGCHLD, SIG_DFL);
			close(listener);
			serve(sock);
			_exit(0);
		}
		close(sock);
	}
}

static int connect_to(const char *host)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
	char name[32];

	snprintf(name, sizeof(name), "host%s", host);
	if (getaddrinfo(name, PORT, &hints, &ai)) {
		fprintf(stderr, "on: there is no host %s in this run\n", host);
		return -1;
	}
	/* The other guest may still be booting. */
	for (int tries = 0; tries < 600; tries++) {
		int sock = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0);

		if (sock >= 0 && !connect(sock, ai->ai_addr, ai->ai_addrlen))
			return sock;
		close(sock);
		usleep(100000);
	}
	fprintf(stderr, "on: host %s does not answer\n", host);
	return -1;
}

static int call(const char *host, int argc, char **argv)
{
	char cwd[4096], *request, *p, buffer[65536];
	size_t size;
	uint32_t n;
	int sock;

	if (!getcwd(cwd, sizeof(cwd)))
		strcpy(cwd, "/");
	size = strlen(cwd) + 1;
	for (int i = 0; i < argc; i++)
		size += strlen(argv[i]) + 1;
	if (size > REQUEST_MAX) {
		fprintf(stderr, "on: the command is too long\n");
		return 125;
	}
	request = malloc(size);
	if (!request)
		return 125;
	p = stpcpy(request, cwd) + 1;
	for (int i = 0; i < argc; i++)
		p = stpcpy(p, argv[i]) + 1;
	sock = connect_to(host);
	if (sock < 0)
		return 125;
	n = htonl((uint32_t)size);
	if (write_all(sock, &n, sizeof(n)) || write_all(sock, request, size))
		goto lost;
	for (;;) {
		struct frame f;

		if (read_all(sock, &f, sizeof(f)))
			goto lost;
		f.value = ntohl(f.value);
		if (!f.type)
			return (int)f.value;
		if (f.value > sizeof(buffer) || read_all(sock, buffer, f.value))
			goto lost;
		if (write_all(f.type == 2 ? 2 : 1, buffer, f.value))
			return 125;
	}
lost:
	fprintf(stderr, "on: the connection to host %s broke\n", host);
	return 125;
}

static int on_peer(char **argv)
{
	char cwd[4096];
	int net, mnt;

	if (access("/sys/class/infiniband/rxe0", F_OK)) {
		fprintf(stderr, "on: there is no peer in this guest\n");
		return 125;
	}
	if (!getcwd(cwd, sizeof(cwd)))
		strcpy(cwd, "/");
	/* With its mounts too: /sys shows the net devices of the namespace it was mounted in. */
	net = open("/proc/1/ns/net", O_RDONLY | O_CLOEXEC);
	mnt = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (net < 0 || mnt < 0 || setns(net, CLONE_NEWNET) || setns(mnt, CLONE_NEWNS) ||
	    chdir(cwd)) {
		perror("on: peer");
		return 125;
	}
	execvp(argv[0], argv);
	perror(argv[0]);
	return errno == ENOENT ? 127 : 126;
}

int main(int argc, char **argv)
{
	if (argc >= 3 && !strcmp(argv[1], "peer"))
		return on_peer(argv + 2);
	if (argc == 3 && !strcmp(argv[1], "--agent"))
		return agent(argv[2]);
	if (argc < 3) {
		fprintf(stderr, "usage: on HOST COMMAND [ARGUMENT...]\n");
		return 125;
	}
	return call(argv[1], argc - 2, argv + 2);
}
