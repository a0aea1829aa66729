// SPDX-License-Identifier: Apache-2.0
/*
 * relay NAME COUNT FAILURES: passes standard input on to standard output until it ends.
 *
 * COUNT is a file with the number of bytes passed on, in decimal. The launcher keeps the guest
 * until this equals what the guest has sent. COUNT becomes empty if it cannot be written.
 *
 * When the reader leaves or the disk is full, the rest is thrown away and counts as passed on: the
 * guest must not wait for it. About a full disk FAILURES gets a line, which begins with NAME.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char buf[65536];

/* In place and at full width, so that a full disk has room for it. */
static void tell(int fd, uint64_t count)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%020llu\n", (unsigned long long)count);

	if (pwrite(fd, text, (size_t)n, 0) != n && ftruncate(fd, 0) < 0)
		perror("relay");
}

/* Writes everything, or returns false with errno. */
static bool pass_on(const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(STDOUT_FILENO, p, n);

		if (done < 0 && errno == EAGAIN) {
			// another process that shares it has made it non-blocking
			struct pollfd room = { .fd = STDOUT_FILENO, .events = POLLOUT };

			poll(&room, 1, -1);
			continue;
		}
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static void failed(int error, const char *name, const char *file)
{
	FILE *f = fopen(file, "a");

	if (!f || fprintf(f, "%s: %s\n", name, strerror(error)) < 0 || fclose(f) != 0)
		perror("relay");
}

int main(int argc, char **argv)
{
	uint64_t count = 0;
	bool taken = true;
	ssize_t n;
	int fd;

	if (argc != 4) {
		fprintf(stderr, "Usage: relay NAME COUNT FAILURES\n");
		return 2;
	}
	fd = open(argv[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	// not in the place of a closed standard output: a write there has to fail
	if (fd >= 0 && fd <= STDERR_FILENO) {
		int low = fd;

		fd = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(low);
	}
	if (fd < 0) {
		perror(argv[2]);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	tell(fd, count);
	while ((n = read(STDIN_FILENO, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			failed(errno, argv[1], argv[3]);
			return 1;
		}
		if (taken && !pass_on(buf, (size_t)n)) {
			taken = false;
			if (errno != EPIPE)
				failed(errno, argv[1], argv[3]);
		}
		count += (uint64_t)n;
		tell(fd, count);
	}
	return 0;
}
