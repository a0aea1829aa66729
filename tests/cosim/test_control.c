// SPDX-License-Identifier: Apache-2.0
/*
 * The control socket. A failure means that a command would be lost, executed twice or answered to
 * the wrong client, or that a client could stop the simulator.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "control.h"

static char dir[64], path[96];
static unsigned int calls;

static char *command(void *ctx, char *line)
{
	char *text;

	assert_ptr_equal(ctx, &calls);
	calls++;
	if (!strcmp(line, "silent"))
		return NULL;
	if (!strcmp(line, "much")) {
		text = malloc(300001);
		memset(text, 'm', 300000);
		text[300000] = '\0';
		return text;
	}
	text = malloc(strlen(line) + 10);
	sprintf(text, "ok <%s>", line);
	return text;
}

static int client(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(un.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_DONTWAIT), strlen(text));
}

static void expect(int fd, const char *want)
{
	char got[1000];
	ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

	assert_true(n >= 0);
	got[n] = '\0';
	assert_string_equal(got, want);
}

static void settle(struct urdma_control *c)
{
	while (urdma_control_process(c))
		;
}

static void lines(void **state)
{
	struct pollfd fds[URDMA_CONTROL_MAX_POLLFDS];
	struct urdma_control *c, *second;
	struct stat st;
	char longer[1001];
	int a, b;

	(void)state;
	calls = 0;
	assert_int_equal(urdma_control_create(path, command, &calls, &c), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(urdma_control_create(path, command, &calls, &second), -EADDRINUSE);
	assert_int_equal(urdma_control_pollfds(c, fds), 1);
	a = client();
	b = client();
	settle(c);
	assert_int_equal(urdma_control_pollfds(c, fds), 3);
	say(a, "one\n");
	say(b, "silent\r\nthree\n\n\nfo");
	settle(c);
	expect(a, "ok <one>\n");
	expect(b, "ok\nok <three>\n");
	say(b, "ur\n");
	settle(c);
	expect(b, "ok <four>\n");
	assert_int_equal(calls, 4);
	/* The longest allowed line, and a longer one; the next line is read correctly. */
	memset(longer, 'x', sizeof(longer));
	longer[1000] = '\0';
	say(a, longer);
	settle(c);
	say(a, "\nnext\n");
	settle(c);
	expect(a, "error the line is too long, or has zeros in it\nok <next>\n");
	assert_int_equal(send(a, "a\0b\n", 4, 0), 4);
	settle(c);
	expect(a, "error the line is too long, or has zeros in it\n");
	/* A client that sends a command and leaves is served; one that leaves in the middle of a
	 * line is not. */
	say(a, "bye\n");
	shutdown(a, SHUT_WR);
	settle(c);
	expect(a, "ok <bye>\n");
	close(a);
	say(b, "unfinis");
	close(b);
	settle(c);
	assert_int_equal(calls, 6);
	assert_int_equal(urdma_control_pollfds(c, fds), 1);
	urdma_control_destroy(c);
	assert_int_equal(stat(path, &st), -1);
}

/* More clients than there is room for wait for their turn; one that never reads is dropped. */
static void many(void **state)
{
	struct pollfd fds[URDMA_CONTROL_MAX_POLLFDS];
	int fd[URDMA_CONTROL_MAX_CLIENTS + 2];
	struct urdma_control *c;
	char b[4096];
	ssize_t n;

	(void)state;
	assert_int_equal(urdma_control_create(path, command, &calls, &c), 0);
	for (unsigned int i = 0; i < URDMA_CONTROL_MAX_CLIENTS + 2; i++) {
		fd[i] = client();
		say(fd[i], "hello\n");
		settle(c);
	}
	for (unsigned int i = 0; i < URDMA_CONTROL_MAX_CLIENTS; i++)
		expect(fd[i], "ok <hello>\n");
	assert_int_equal(urdma_control_pollfds(c, fds), URDMA_CONTROL_MAX_CLIENTS);
	close(fd[0]);
	close(fd[1]);
	settle(c);
	settle(c);
	expect(fd[URDMA_CONTROL_MAX_CLIENTS], "ok <hello>\n");
	expect(fd[URDMA_CONTROL_MAX_CLIENTS + 1], "ok <hello>\n");
	/* A long answer arrives whole ... */
	say(fd[2], "much\n");
	for (size_t got = 0; got < 300001;) {
		settle(c);
		n = recv(fd[2], b, sizeof(b), MSG_DONTWAIT);
		assert_true(n > 0);
		got += (size_t)n;
	}
	/* ... but not any number of them. */
	for (unsigned int i = 0; i < 10; i++)
		say(fd[3], "much\n");
	settle(c);
	while ((n = recv(fd[3], b, sizeof(b), MSG_DONTWAIT)) > 0)
		settle(c);
	assert_true(!n || errno == ECONNRESET);
	say(fd[4], "hello\n");
	settle(c);
	expect(fd[4], "ok <hello>\n");
	for (unsigned int i = 2; i < URDMA_CONTROL_MAX_CLIENTS + 2; i++)
		close(fd[i]);
	urdma_control_destroy(c);
}

/* Writes empty lines until it is killed. */
static pid_t flooder(int fd)
{
	static char empty[65536];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	memset(empty, '\n', sizeof(empty));
	while (send(fd, empty, sizeof(empty), MSG_NOSIGNAL) > 0)
		;
	_exit(0);
}

/* A client that writes without end gets its turn, and no more; others are served meanwhile. */
static void flood(void **state)
{
	char b[4096];
	struct urdma_control *c;
	pid_t pid;
	int a, d;

	(void)state;
	assert_int_equal(urdma_control_create(path, command, &calls, &c), 0);
	a = client();
	d = client();
	settle(c);
	/* Data that one call leaves unread is still there, and poll reports it. */
	memset(b, '\n', sizeof(b));
	assert_int_equal(send(a, b, sizeof(b), MSG_DONTWAIT), sizeof(b));
	say(a, "one\n");
	assert_true(urdma_control_process(c));
	assert_int_equal(recv(a, b, sizeof(b), MSG_DONTWAIT), -1);
	assert_true(urdma_control_process(c));
	expect(a, "ok <one>\n");
	/* The alarm ends a call that does not return. */
	alarm(60);
	pid = flooder(a);
	for (unsigned int i = 0; i < 20; i++) {
		say(d, "hello\n");
		urdma_control_process(c);
		expect(d, "ok <hello>\n");
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	alarm(0);
	close(a);
	settle(c);
	close(d);
	urdma_control_destroy(c);
}

/*
 * When no file descriptor is left, a client is turned away: otherwise poll would report it forever.
 */
static void no_descriptor(void **state)
{
	struct pollfd fds[URDMA_CONTROL_MAX_POLLFDS];
	struct rlimit old, few;
	struct urdma_control *c;
	unsigned int n = 0;
	int a, fd, taken[64];
	char b;

	(void)state;
	assert_int_equal(urdma_control_create(path, command, &calls, &c), 0);
	settle(c);
	a = client();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((fd = dup(a)) >= 0)
		taken[n++] = fd;
	urdma_control_process(c);
	while (n)
		close(taken[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(recv(a, &b, 1, MSG_DONTWAIT), 0);
	assert_int_equal(urdma_control_pollfds(c, fds), 1);
	assert_int_equal(poll(fds, 1, 0), 0);
	close(a);
	a = client();
	say(a, "hello\n");
	settle(c);
	expect(a, "ok <hello>\n");
	close(a);
	urdma_control_destroy(c);
}

/* A socket that a dead process left behind is replaced. */
static void stale(void **state)
{
	struct urdma_control *c;
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	strcpy(un.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
	assert_int_equal(urdma_control_create(path, command, &calls, &c), 0);
	urdma_control_destroy(c);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/urdma-control.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/control", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),	 cmocka_unit_test(many),  cmocka_unit_test(flood),
		cmocka_unit_test(no_descriptor), cmocka_unit_test(stale),
	};

	return cmocka_run_group_tests_name("cosim/control", tests, set_up, tear_down);
}
