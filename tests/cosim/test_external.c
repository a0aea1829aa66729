// SPDX-License-Identifier: Apache-2.0
/*
 * External ports, each with a real peer in this process, joined by a wire to each other or to a NIC
 * in C (model_nic.h). A failure means that frames would be lost, changed or early, that a peer
 * could stop or kill the simulator, or that a replay would differ from its capture.
 */
#define _GNU_SOURCE /* unshare */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "eth/pcapng.h"
#include "host/embedded.h"
#include "model_nic.h"
#include "random.h"

static char dir[64];

struct world {
	struct urdma_cosim *c;
	struct urdma_external *ext[2];
};

static const char *path_of(const char *name)
{
	static char path[2][128];
	static unsigned int k;

	k = !k;
	snprintf(path[k], sizeof(path[k]), "%s/%s", dir, name);
	return path[k];
}

static struct urdma_external *make(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static struct urdma_external *make(const char *fmt, ...)
{
	struct urdma_external *e;
	char text[256], error[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (urdma_external_parse(text, &e, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	if (urdma_external_open(e, 100000, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	return e;
}

/* Two external ports, a wire between them, and a NIC without a wire. */
static void world_open(struct world *w, struct urdma_external *a, struct urdma_external *b)
{
	struct urdma_cosim_config cfg;

	urdma_cosim_config_defaults(&cfg, 1);
	cfg.n_external = 2;
	cfg.external[0] = w->ext[0] = a;
	cfg.external[1] = w->ext[1] = b;
	cfg.n_wires = 1;
	cfg.wire[0][0] = URDMA_COSIM_EXTERNAL(0);
	cfg.wire[0][1] = URDMA_COSIM_EXTERNAL(1);
	assert_int_equal(urdma_cosim_create(&cfg, &model_nic, &w->c), 0);
	/* Runs until reset is over. */
	assert_int_equal(urdma_cosim_run_until(w->c, 100), 0);
}

static void world_close(struct world *w)
{
	urdma_cosim_destroy(w->c);
	urdma_external_destroy(w->ext[0]);
	urdma_external_destroy(w->ext[1]);
}

/* Does what urdma-cosim does, until nothing moves any more. */
static void settle(struct world *w)
{
	bool any = true;

	while (any) {
		any = false;
		for (unsigned int i = 0; i < 2; i++)
			any |= urdma_external_process(w->ext[i], urdma_cosim_now(w->c));
		any |= urdma_cosim_busy(w->c);
		if (urdma_cosim_run_while_busy(w->c, urdma_cosim_now(w->c) + 256))
			fail_msg("%s", urdma_cosim_error(w->c));
	}
}

static int peer_connect(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(un.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static void fill(uint8_t *f, uint32_t len, uint32_t seed)
{
	struct urdma_random rnd = { seed };

	for (uint32_t i = 0; i < len; i++)
		f[i] = (uint8_t)urdma_random_next(&rnd);
}

static void peer_send(int fd, uint32_t len, uint32_t seed)
{
	uint8_t buf[4 + URDMA_ETH_MAX_FRAME];
	uint32_t head = htonl(len);

	memcpy(buf, &head, 4);
	fill(buf + 4, len, seed);
	assert_int_equal(send(fd, buf, 4 + len, MSG_DONTWAIT), 4 + len);
}

/* Reads exactly len bytes that are there. */
/*
 * Data through the kernel's network arrives when the kernel gets a CPU. Waits until something can
 * be read, or until a port has noticed that its peer has left.
 */
static void until_readable(struct world *w, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (settle(w); poll(&p, 1, 1) != 1;)
		settle(w);
}

static void until_down(struct world *w, unsigned int ext)
{
	for (settle(w); urdma_external_stats(w->ext[ext])->up; settle(w))
		usleep(1000);
}

static void peer_read(int fd, void *buf, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = recv(fd, (uint8_t *)buf + at, len - at, MSG_DONTWAIT);

		if (n <= 0)
			fail_msg("%zu of %zu bytes came", at, len);
		at += (size_t)n;
	}
}

static void peer_expect(int fd, uint32_t len, uint32_t seed)
{
	uint8_t got[URDMA_ETH_MAX_FRAME], want[URDMA_ETH_MAX_FRAME] = { 0 };
	uint32_t head, on_wire = len < 60 ? 60 : len;

	peer_read(fd, &head, 4);
	assert_int_equal(ntohl(head), on_wire);
	peer_read(fd, got, on_wire);
	fill(want, len, seed);
	assert_memory_equal(got, want, on_wire);
}

static void peer_expect_nothing(int fd)
{
	uint8_t b;

	assert_int_equal(recv(fd, &b, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void peer_expect_closed(int fd)
{
	uint8_t b;
	ssize_t n = recv(fd, &b, 1, MSG_DONTWAIT);

	assert_true(!n || (n < 0 && errno == ECONNRESET));
	close(fd);
}

static const uint32_t sizes[] = { 14, 42, 59, 60, 61, 64, 65, 1514, 9018, 16384 };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void both_ways(struct world *w, int a, int b)
{
	for (unsigned int i = 0; i < N_SIZES; i++) {
		peer_send(a, sizes[i], i);
		peer_send(b, sizes[i], 100 + i);
		settle(w);
		peer_expect(b, sizes[i], i);
		peer_expect(a, sizes[i], 100 + i);
	}
	peer_expect_nothing(a);
	peer_expect_nothing(b);
}

static void stream_unix(void **state)
{
	struct world w;
	struct stat st;
	int a, b;

	(void)state;
	world_open(&w, make("a=stream:unix:%s,listen", path_of("a")),
		   make("b=stream:unix:%s,listen", path_of("b")));
	assert_int_equal(stat(path_of("a"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	a = peer_connect(path_of("a"));
	/* Frames to a port without a peer are dropped. */
	peer_send(a, 60, 1);
	settle(&w);
	assert_int_equal(urdma_external_stats(w.ext[1])->no_peer, 1);
	b = peer_connect(path_of("b"));
	settle(&w);
	peer_expect_nothing(b);
	both_ways(&w, a, b);
	assert_true(urdma_external_stats(w.ext[0])->up);
	assert_int_equal(urdma_external_port(w.ext[0])->stats.tx_frames, N_SIZES + 1);
	assert_int_equal(urdma_external_port(w.ext[0])->stats.rx_frames, N_SIZES);
	/* Many at once, in order. */
	for (unsigned int i = 0; i < 100; i++)
		peer_send(a, 600 + i, i);
	settle(&w);
	for (unsigned int i = 0; i < 100; i++)
		peer_expect(b, 600 + i, i);
	/* A peer goes, another comes. */
	close(b);
	settle(&w);
	assert_false(urdma_external_stats(w.ext[1])->up);
	b = peer_connect(path_of("b"));
	settle(&w);
	both_ways(&w, a, b);
	assert_int_equal(urdma_external_stats(w.ext[1])->connects, 2);
	close(a);
	close(b);
	world_close(&w);
	assert_int_equal(stat(path_of("a"), &st), -1);
}

static void stream_tcp(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	struct urdma_external *client;
	struct world w;
	int listener, a, b, one = 1;

	(void)state;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(listener, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&in, &len), 0);
	client = make("a=stream:tcp:%u", ntohs(in.sin_port));
	a = accept(listener, NULL, NULL);
	world_open(&w, client, make("b=stream:unix:%s,listen", path_of("b")));
	b = peer_connect(path_of("b"));
	settle(&w);
	both_ways(&w, a, b);
	/* The port that connected to its peer stays down. */
	close(a);
	until_down(&w, 0);
	peer_send(b, 60, 1);
	settle(&w);
	assert_int_equal(urdma_external_stats(w.ext[0])->no_peer, 1);
	close(b);
	close(listener);
	world_close(&w);
	/* The TCP port of the listener is free now. */
	world_open(&w, make("a=stream:tcp:%u,listen", ntohs(in.sin_port)),
		   make("b=stream:unix:%s,listen", path_of("b")));
	settle(&w); /* no peer is there: it does not wait */
	for (unsigned int i = 0; i < 2; i++) {
		a = socket(AF_INET, SOCK_STREAM, 0);
		assert_int_equal(connect(a, (struct sockaddr *)&in, sizeof(in)), 0);
		b = peer_connect(path_of("b"));
		settle(&w);
		both_ways(&w, a, b);
		close(a);
		close(b);
		until_down(&w, 0);
		until_down(&w, 1);
	}
	assert_int_equal(urdma_external_stats(w.ext[0])->connects, 2);
	world_close(&w);
}

/* Each hostile peer ends at most its own connection; the next one works normally. */
static void hostile(void **state)
{
	static const uint32_t passed_over[] = { 0, 1, 13, 16385, 69632, 131072 };
	static const uint32_t closed[] = { 131073, 0x01000000, 0x7fffffff, 0x80000000, 0xffffffff };
	struct urdma_random rnd = { 99 };
	uint8_t junk[131072 + 4];
	struct world w;
	uint64_t bad = 0;
	int a, b;

	(void)state;
	world_open(&w, make("a=stream:unix:%s,listen", path_of("a")),
		   make("b=stream:unix:%s,listen", path_of("b")));
	b = peer_connect(path_of("b"));
	a = peer_connect(path_of("a"));
	for (unsigned int i = 0; i < sizeof(passed_over) / sizeof(passed_over[0]); i++) {
		uint32_t head = htonl(passed_over[i]), size = 4 + passed_over[i];

		memset(junk, 0xff, sizeof(junk));
		memcpy(junk, &head, 4);
		for (uint32_t at = 0; at < size;) {
			ssize_t n = send(a, junk + at, size - at, MSG_DONTWAIT);

			if (n > 0)
				at += (uint32_t)n;
			settle(&w);
		}
		assert_int_equal(urdma_external_stats(w.ext[0])->bad_length, ++bad);
		both_ways(&w, a, b);
	}
	for (unsigned int i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) {
		uint32_t head = htonl(closed[i]);

		peer_send(a, 100, i);
		assert_int_equal(send(a, &head, 4, 0), 4);
		settle(&w);
		peer_expect(b, 100, i);
		assert_int_equal(urdma_external_stats(w.ext[0])->bad_length, ++bad);
		peer_expect_closed(a);
		a = peer_connect(path_of("a"));
		settle(&w);
		both_ways(&w, a, b);
	}
	/* Byte by byte; and closing in the middle of a length or of a frame. */
	for (uint32_t cut = 1; cut < 4 + 100; cut += 7) {
		uint32_t head = htonl(100);

		memcpy(junk, &head, 4);
		fill(junk + 4, 100, cut);
		for (uint32_t at = 0; at < 104; at++) {
			assert_int_equal(send(a, junk + at, 1, 0), 1);
			settle(&w);
		}
		peer_expect(b, 100, cut);
		assert_int_equal(send(a, junk, cut, 0), cut);
		settle(&w);
		close(a);
		settle(&w);
		peer_expect_nothing(b);
		a = peer_connect(path_of("a"));
		settle(&w);
	}
	both_ways(&w, a, b);
	/* Random bytes: no more than a closed connection. */
	for (unsigned int i = 0; i < 200; i++) {
		uint32_t size = 1 + urdma_random_below(&rnd, 4000);

		for (uint32_t k = 0; k < size; k++)
			junk[k] = (uint8_t)(urdma_random_below(&rnd, 4)
						    ? 0
						    : urdma_random_below(&rnd, 256));
		send(a, junk, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		settle(&w);
		if (urdma_random_below(&rnd, 2) || !urdma_external_stats(w.ext[0])->up) {
			close(a);
			settle(&w);
			a = peer_connect(path_of("a"));
			settle(&w);
		}
		while (recv(b, junk, sizeof(junk), MSG_DONTWAIT) > 0)
			;
	}
	close(a);
	settle(&w);
	a = peer_connect(path_of("a"));
	settle(&w);
	both_ways(&w, a, b);
	/* A second client waits until the first has left. */
	close(a);
	a = peer_connect(path_of("a"));
	settle(&w);
	close(a);
	close(b);
	world_close(&w);
}

/*
 * A client that sends bad lengths at full speed has 256 of them read per call, and all are counted.
 */
static void flood(void **state)
{
	static const uint32_t zeros[4000];
	struct sockaddr_un port = { .sun_family = AF_UNIX };
	const struct urdma_external_stats *s, *d;
	uint64_t now;
	struct world w;
	int a, b;

	(void)state;
	world_open(&w, make("a=stream:unix:%s,listen", path_of("a")),
		   make("b=dgram:unix:%s", path_of("b")));
	s = urdma_external_stats(w.ext[0]);
	d = urdma_external_stats(w.ext[1]);
	now = urdma_cosim_now(w.c);
	a = peer_connect(path_of("a"));
	assert_int_equal(send(a, zeros, sizeof(zeros), MSG_DONTWAIT), sizeof(zeros));
	peer_send(a, 100, 1);
	for (unsigned int i = 1; i <= 4000 / 256; i++) {
		assert_true(urdma_external_process(w.ext[0], now));
		assert_int_equal(s->bad_length, i * 256);
		/* They are in the port's own buffer, so poll does not report them. */
		assert_true(urdma_external_waiting(w.ext[0]));
	}
	assert_true(urdma_external_process(w.ext[0], now));
	assert_int_equal(s->bad_length, 4000);
	assert_false(urdma_external_waiting(w.ext[0]));
	settle(&w);
	assert_int_equal(urdma_external_port(w.ext[0])->stats.tx_frames, 1);
	/* Datagrams: the backlog is short, so that a call takes all of it. */
	strcpy(port.sun_path, path_of("b"));
	b = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(sendto(b, zeros, i, 0, (struct sockaddr *)&port, sizeof(port)), i);
	settle(&w);
	assert_int_equal(d->bad_length, 5);
	close(a);
	close(b);
	world_close(&w);
}

/* A peer that does not read: a bounded number of frames waits, the rest is dropped, and nothing
 * blocks. */
static void full_peer(void **state)
{
	const unsigned int total = 4000;
	unsigned int got = 0;
	struct world w;
	uint64_t full;
	int a, b;

	(void)state;
	world_open(&w, make("a=stream:unix:%s,listen", path_of("a")),
		   make("b=stream:unix:%s,listen", path_of("b")));
	a = peer_connect(path_of("a"));
	b = peer_connect(path_of("b"));
	for (unsigned int i = 0; i < total; i++) {
		peer_send(a, 1000, i);
		settle(&w);
	}
	full = urdma_external_stats(w.ext[1])->peer_full;
	assert_in_range(full, 1000, total - 1000);
	/* Frames that were not dropped arrive, whole and in order: the first ones. */
	while (got < total - full) {
		struct pollfd fds[URDMA_EXTERNAL_MAX_POLLFDS];

		assert_int_equal(urdma_external_pollfds(w.ext[1], fds), 1);
		peer_expect(b, 1000, got++);
		settle(&w);
	}
	peer_expect_nothing(b);
	both_ways(&w, a, b);
	assert_int_equal(urdma_external_stats(w.ext[1])->peer_full, full);
	/* A peer that dies while frames wait for it. */
	for (unsigned int i = 0; i < 1000; i++) {
		peer_send(a, 1000, i);
		settle(&w);
	}
	close(b);
	settle(&w);
	assert_int_equal(urdma_external_stats(w.ext[1])->disconnects, 1);
	b = peer_connect(path_of("b"));
	settle(&w);
	both_ways(&w, a, b);
	close(a);
	close(b);
	world_close(&w);
}

static void dgram_unix(void **state)
{
	struct sockaddr_un own = { .sun_family = AF_UNIX }, port = own;
	uint8_t f[20000], got[20000];
	struct world w;
	unsigned int waiting = 0;
	int a, b;

	(void)state;
	strcpy(own.sun_path, path_of("peer"));
	strcpy(port.sun_path, path_of("a"));
	world_open(&w, make("a=dgram:unix:%s,peer=%s", path_of("a"), path_of("peer")),
		   make("b=stream:unix:%s,listen", path_of("b")));
	b = peer_connect(path_of("b"));
	settle(&w);
	/* Nobody there yet. */
	peer_send(b, 60, 1);
	settle(&w);
	assert_int_equal(urdma_external_stats(w.ext[0])->no_peer, 1);
	a = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(a, (struct sockaddr *)&own, sizeof(own)), 0);
	for (unsigned int i = 0; i < N_SIZES; i++) {
		fill(f, sizes[i], i);
		assert_int_equal(sendto(a, f, sizes[i], 0, (struct sockaddr *)&port, sizeof(port)),
				 sizes[i]);
		peer_send(b, sizes[i], 100 + i);
		settle(&w);
		peer_expect(b, sizes[i], i);
		memset(f, 0, 60);
		fill(f, sizes[i], 100 + i);
		assert_int_equal(recv(a, got, sizeof(got), 0), sizes[i] < 60 ? 60 : sizes[i]);
		assert_memory_equal(got, f, sizes[i] < 60 ? 60 : sizes[i]);
	}
	/* Too short, too long, empty. */
	sendto(a, f, 13, 0, (struct sockaddr *)&port, sizeof(port));
	sendto(a, f, 16385, 0, (struct sockaddr *)&port, sizeof(port));
	sendto(a, f, 20000, 0, (struct sockaddr *)&port, sizeof(port));
	sendto(a, f, 0, 0, (struct sockaddr *)&port, sizeof(port));
	settle(&w);
	assert_int_equal(urdma_external_stats(w.ext[0])->bad_length, 4);
	peer_expect_nothing(b);
	/* More than its socket takes at once: the rest waits, and goes out without poll. */
	for (unsigned int i = 0; i < 300; i++) {
		peer_send(b, 1000, i);
		settle(&w);
		waiting += urdma_external_waiting(w.ext[0]);
	}
	assert_true(waiting > 0);
	for (unsigned int i = 0; i < 300; i++) {
		fill(f, 1000, i);
		assert_int_equal(recv(a, got, sizeof(got), 0), 1000);
		assert_memory_equal(got, f, 1000);
		settle(&w);
	}
	assert_false(urdma_external_waiting(w.ext[0]));
	close(a);
	close(b);
	world_close(&w);
}

/* A peer whose socket got its name from the kernel: an abstract one, of six characters. */
static void dgram_unix_abstract(void **state)
{
	struct sockaddr_un port = { .sun_family = AF_UNIX };
	uint8_t f[100], got[200];
	struct world w;
	int a, b;

	(void)state;
	strcpy(port.sun_path, path_of("a"));
	world_open(&w, make("a=dgram:unix:%s", path_of("a")),
		   make("b=stream:unix:%s,listen", path_of("b")));
	b = peer_connect(path_of("b"));
	a = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(a, (struct sockaddr *)&port, sizeof(sa_family_t)), 0);
	fill(f, sizeof(f), 1);
	assert_int_equal(sendto(a, f, sizeof(f), 0, (struct sockaddr *)&port, sizeof(port)),
			 sizeof(f));
	settle(&w);
	peer_expect(b, sizeof(f), 1);
	peer_send(b, sizeof(f), 2);
	settle(&w);
	fill(f, sizeof(f), 2);
	assert_int_equal(recv(a, got, sizeof(got), 0), sizeof(f));
	assert_memory_equal(got, f, sizeof(f));
	close(a);
	close(b);
	world_close(&w);
}

static void dgram_udp(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in port = in;
	uint8_t f[2000], got[2000];
	socklen_t len = sizeof(in);
	struct world w;
	int a, b, other, free_port;

	(void)state;
	/* Two free ports: one for the peer, one that was free just now. */
	a = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(a, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(a, (struct sockaddr *)&in, &len), 0);
	other = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(other, (struct sockaddr *)&port, sizeof(port)), 0);
	assert_int_equal(getsockname(other, (struct sockaddr *)&port, &len), 0);
	free_port = ntohs(port.sin_port);
	close(other);
	world_open(&w, make("a=dgram:udp:%d,peer=%u", free_port, ntohs(in.sin_port)),
		   make("b=stream:unix:%s,listen", path_of("b")));
	b = peer_connect(path_of("b"));
	settle(&w);
	fill(f, 1000, 5);
	assert_int_equal(sendto(a, f, 1000, 0, (struct sockaddr *)&port, sizeof(port)), 1000);
	/* A datagram from another sender is not accepted. */
	other = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(sendto(other, f, 999, 0, (struct sockaddr *)&port, sizeof(port)), 999);
	peer_send(b, 500, 6);
	until_readable(&w, b);
	peer_expect(b, 1000, 5);
	until_readable(&w, a);
	peer_expect_nothing(b);
	fill(f, 500, 6);
	assert_int_equal(recv(a, got, sizeof(got), 0), 500);
	assert_memory_equal(got, f, 500);
	/* The peer leaves: frames to it are counted, and nothing else happens. */
	close(a);
	while (!urdma_external_stats(w.ext[0])->no_peer) {
		peer_send(b, 500, 6);
		settle(&w);
		usleep(1000);
	}
	close(b);
	close(other);
	world_close(&w);
}

/* ---- tap ----------------------------------------------------------------------------------- */

static void tap_errors(void **state)
{
	struct urdma_external *e;
	char error[512];
	int ret;

	(void)state;
	assert_int_equal(urdma_external_parse("t=tap:lo", &e, error, sizeof(error)), 0);
	ret = urdma_external_open(e, 100000, error, sizeof(error));
	assert_true(ret < 0);
	print_message("%s\n", error);
	assert_true(strstr(error, "/dev/net/tun") || strstr(error, "tap device lo"));
	urdma_external_destroy(e);
}

/* In a network namespace of its own. Exit status 77: not permitted. */
static int tap_child(void)
{
	struct ifreq req = { .ifr_name = "urdmatest0" };
	struct urdma_external *tap;
	char error[512];
	struct world w;
	uint8_t got[2000];
	uint32_t head;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr.s_addr = htonl(0x0affffff) };
	int b, s, one = 1;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return 77;
	assert_int_equal(urdma_external_parse("t=tap:urdmatest0", &tap, error, sizeof(error)), 0);
	if (urdma_external_open(tap, 100000, error, sizeof(error))) {
		printf("%s\n", error);
		return 77;
	}
	world_open(&w, tap, make("b=stream:unix:%s,listen", path_of("tapb")));
	b = peer_connect(path_of("tapb"));
	settle(&w);
	/* Not up yet: arriving frames are dropped. */
	peer_send(b, 100, 1);
	settle(&w);
	assert_int_equal(urdma_external_stats(tap)->no_peer, 1);
	s = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(s, SIOCGIFFLAGS, &req), 0);
	req.ifr_flags |= IFF_UP;
	assert_int_equal(ioctl(s, SIOCSIFFLAGS, &req), 0);
	/* An address of 10/8, and a broadcast to all of it. */
	((struct sockaddr_in *)&req.ifr_addr)->sin_family = AF_INET;
	((struct sockaddr_in *)&req.ifr_addr)->sin_addr.s_addr = htonl(0x0a4d0901);
	assert_int_equal(ioctl(s, SIOCSIFADDR, &req), 0);
	setsockopt(s, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one));
	assert_int_equal(sendto(s, "hello", 5, 0, (struct sockaddr *)&to, sizeof(to)), 5);
	for (;;) {
		struct pollfd fd = { .fd = b, .events = POLLIN };

		/* The kernel may have sent other frames before. */
		for (unsigned int i = 0; i < 5000 && !poll(&fd, 1, 1); i++)
			settle(&w);
		peer_read(b, &head, 4);
		assert_in_range(ntohl(head), 60, sizeof(got));
		peer_read(b, got, ntohl(head));
		if (got[12] == 0x08 && got[13] == 0x00 && !memcmp(got + 42, "hello", 5))
			break;
	}
	peer_send(b, 1000, 3);
	settle(&w);
	assert_int_equal(urdma_external_stats(tap)->no_peer, 1);
	close(b);
	close(s);
	world_close(&w);
	return 0;
}

static void tap_device(void **state)
{
	int status;
	pid_t child;

	(void)state;
	child = fork();
	/* not _exit(), which loses what make coverage counts */
	if (!child)
		exit(tap_child());
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("left out: tap devices may not be used here\n");
		skip();
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- replay -------------------------------------------------------------------------------- */

static uint64_t seen_ns[1000];
static uint32_t seen_len[1000];
static bool seen_error[1000];
static unsigned int n_seen;

static void watch(void *ctx, uint64_t ns, const struct urdma_eth_frame *f, bool outbound)
{
	(void)ctx;
	assert_false(outbound);
	assert_true(n_seen < 1000);
	seen_ns[n_seen] = ns;
	seen_error[n_seen] = f->error;
	seen_len[n_seen++] = f->len;
}

static const uint32_t rec_len[] = { 14, 60, 1514, 9000, 64, 64, 64, 100, 100 };
static const uint64_t rec_ns[] = { 5000, 6000, 7001, 7002, 100000, 100000, 100000, 99000, 3000000 };
#define N_REC (sizeof(rec_len) / sizeof(rec_len[0]))

static void make_capture(const char *path)
{
	struct urdma_pcapng *pcap;
	uint8_t f[9000];

	assert_int_equal(urdma_pcapng_open(path, "x", 0, &pcap), 0);
	for (unsigned int i = 0; i < N_REC; i++) {
		fill(f, rec_len[i], i);
		urdma_pcapng_write(pcap, UINT64_C(1700000000000000000) + rec_ns[i], f, rec_len[i],
				   i % 2, i == 4, "");
	}
	assert_int_equal(urdma_pcapng_close(pcap), 0);
}

static void replay(const char *options, bool hold)
{
	struct world w;
	int b;

	n_seen = 0;
	world_open(&w, make("r=replay:%s%s", path_of("cap"), options),
		   make("b=stream:unix:%s,listen", path_of("b")));
	b = peer_connect(path_of("b"));
	settle(&w);
	assert_int_equal(urdma_eth_port_tap(urdma_external_port(w.ext[1]), watch, NULL), 0);
	if (hold) {
		assert_int_equal(urdma_cosim_run_until(w.c, 12345), 0);
		assert_int_equal(n_seen, 0);
		assert_int_equal(urdma_external_start(w.ext[0], urdma_cosim_now(w.c)), 0);
		assert_int_equal(urdma_external_start(w.ext[0], 0), -EALREADY);
		assert_int_equal(urdma_external_start(w.ext[1], 0), -EINVAL);
	}
	assert_int_equal(urdma_cosim_run_until(w.c, 2000000), 0);
	assert_false(urdma_cosim_busy(w.c));
	assert_false(urdma_external_stats(w.ext[0])->up);
	assert_true(urdma_cosim_stats(w.c)->evaluated < 1000);
	close(b);
	world_close(&w);
}

/* Nanoseconds of n bytes at 100 Gb/s, rounded up to a cycle. */
static uint64_t ns_of(uint64_t bytes)
{
	return (bytes * 8 + 399) / 400 * 4;
}

static void replay_times(void **state)
{
	uint64_t line = 0, begin;

	(void)state;
	make_capture(path_of("cap"));
	replay(",at=1000000", false);
	assert_int_equal(n_seen, N_REC);
	for (unsigned int i = 0; i < N_REC; i++) {
		uint32_t len = rec_len[i] < 60 ? 60 : rec_len[i];
		uint64_t due = 1000000 + (rec_ns[i] - rec_ns[0] + 3) / 4 * 4;

		assert_int_equal(seen_len[i], len);
		assert_int_equal(seen_error[i], i == 4);
		begin = due > line ? due : line;
		/* After a frame the line counts in fractions of a cycle. */
		assert_in_range(seen_ns[i], begin + 252 + ns_of(8 + len + 4) - 4,
				begin + 252 + ns_of(8 + len + 4));
		if (begin == due)
			assert_int_equal(seen_ns[i], begin + 252 + ns_of(8 + len + 4));
		line = seen_ns[i] - 252;
	}
}

static void replay_fast(void **state)
{
	uint64_t bytes = 0;

	(void)state;
	make_capture(path_of("cap"));
	replay(",fast,hold", true);
	assert_int_equal(n_seen, N_REC);
	for (unsigned int i = 0; i < N_REC; i++) {
		uint32_t len = rec_len[i] < 60 ? 60 : rec_len[i];

		assert_int_equal(seen_ns[i], 12345 * 4 + 252 + ns_of(bytes + 8 + len + 4));
		bytes += 8 + len + 4 + 12;
	}
	replay(",fast,only=out,at=10000", false);
	assert_int_equal(n_seen, N_REC / 2);
	assert_int_equal(seen_len[0], rec_len[1]);
	replay(",fast,at=10000,only=in", false);
	assert_int_equal(n_seen, N_REC - N_REC / 2);
}

/* A file of hand-made blocks, in either byte order. */
struct file {
	uint8_t b[4096];
	size_t n;
	bool swap;
};

static void put(struct file *f, uint64_t v, unsigned int len)
{
	for (unsigned int i = 0; i < len; i++)
		f->b[f->n++] = (uint8_t)(v >> 8 * (f->swap ? len - 1 - i : i));
}

static void put_block(struct file *f, uint32_t type, const struct file *body)
{
	put(f, type, 4);
	put(f, body->n + 12, 4);
	memcpy(f->b + f->n, body->b, body->n);
	f->n += body->n;
	put(f, body->n + 12, 4);
}

static void put_start(struct file *f, uint8_t tsresol, unsigned int linktype)
{
	struct file b = { .swap = f->swap };

	put(&b, 0x1a2b3c4d, 4);
	put(&b, 1, 2);
	put(&b, 0, 2);
	put(&b, UINT64_MAX, 8);
	put_block(f, 0x0a0d0d0a, &b);
	b.n = 0;
	put(&b, linktype, 2);
	put(&b, 0, 2);
	put(&b, 0, 4);
	put(&b, 9, 2);
	put(&b, 1, 2);
	put(&b, tsresol, 1);
	put(&b, 0, 3);
	put(&b, 0, 4);
	put_block(f, 1, &b);
}

static void put_packet(struct file *f, uint32_t ifc, uint64_t stamp, uint32_t cap, uint32_t len,
		       uint32_t there)
{
	struct file b = { .swap = f->swap };

	put(&b, ifc, 4);
	put(&b, stamp >> 32, 4);
	put(&b, stamp & 0xffffffff, 4);
	put(&b, cap, 4);
	put(&b, len, 4);
	b.n += (there + 3) / 4 * 4;
	put_block(f, 6, &b);
}

static void save(const struct file *f, size_t n)
{
	FILE *out = fopen(path_of("cap"), "wb");

	assert_non_null(out);
	assert_int_equal(fwrite(f->b, 1, n, out), n);
	fclose(out);
}

/* Files of other programs: both byte orders, other units of time, blocks and interfaces to skip. */
static void replay_foreign(void **state)
{
	static const struct {
		uint8_t tsresol;
		uint64_t a, b; /* 1 ms apart */
	} t[] = {
		{ 3, 7, 8 },	       { 6, 5000, 6000 },	  { 9, 10, 1000010 },
		{ 12, 0, 1000000000 }, { 0x80 | 10, 1024, 1025 }, { 0x80 | 30, 0, 1073742 },
	};

	(void)state;
	for (unsigned int i = 0; i < 2 * sizeof(t) / sizeof(t[0]); i++) {
		struct file f = { .swap = i % 2 }, junk = { .n = 24 };

		put_start(&f, t[i / 2].tsresol, 1);
		put_packet(&f, 0, t[i / 2].a, 100, 100, 100);
		put_block(&f, 0xbad, &junk);
		put_packet(&f, 0, t[i / 2].a, 100, 200, 100); /* cut short: not sent */
		put_packet(&f, 0, t[i / 2].b, 101, 101, 101);
		save(&f, f.n);
		replay(",at=10000", false);
		assert_int_equal(n_seen, 2);
		assert_int_equal(seen_len[1], 101);
		assert_in_range(seen_ns[1] - seen_ns[0],
				t[i / 2].tsresol == 0x8a ? 976564 : 1000000,
				t[i / 2].tsresol == 0x8a ? 976572 : 1000004);
	}
}

static void refuses(const char *words)
{
	struct urdma_external *e;
	char text[256], error[512] = "";

	snprintf(text, sizeof(text), "r=replay:%s", path_of("cap"));
	assert_int_equal(urdma_external_parse(text, &e, error, sizeof(error)), 0);
	assert_true(urdma_external_open(e, 100000, error, sizeof(error)) < 0);
	if (!strstr(error, words))
		fail_msg("expected \"%s\" in: %s", words, error);
	urdma_external_destroy(e);
}

static void replay_bad(void **state)
{
	struct urdma_random rnd = { 5 };
	struct file f = { .n = 0 };
	unsigned int opened = 0;

	(void)state;
	unlink(path_of("cap"));
	refuses("No such file");
	save(&f, 0);
	refuses("no frame in it is fit");
	put(&f, 0xa1b2c3d4, 4);
	for (unsigned int i = 0; i < 5; i++)
		put(&f, 0, 4);
	save(&f, f.n);
	refuses("editcap");
	f.n = 0;
	put_start(&f, 9, 1);
	save(&f, f.n);
	refuses("no frame in it is fit");
	put_packet(&f, 0, 0, 100, 100, 100);
	for (size_t n = 1; n < f.n; n++) {
		save(&f, n);
		refuses("cannot replay");
	}
	put_packet(&f, 1, 0, 100, 100, 100);
	save(&f, f.n);
	refuses("an interface that is not described");
	f.n = 0;
	put_start(&f, 9, 1);
	put_packet(&f, 0, 0, 101, 101, 100);
	save(&f, f.n);
	refuses("longer than its block");
	f.n = 0;
	put_start(&f, 9, 113);
	put_packet(&f, 0, 0, 100, 100, 100);
	save(&f, f.n);
	refuses("no frame in it is fit");
	/* Any byte may be wrong: the result is an error or other frames, nothing worse. */
	f.n = 0;
	put_start(&f, 9, 1);
	for (unsigned int i = 0; i < 5; i++)
		put_packet(&f, 0, i, 100, 100, 100);
	for (unsigned int i = 0; i < 3000; i++) {
		struct file g = f;
		struct urdma_external *e;
		char text[256], error[512];

		for (unsigned int k = 0; k <= i % 3; k++)
			g.b[urdma_random_below(&rnd, (uint32_t)g.n)] =
				(uint8_t)urdma_random_next(&rnd);
		save(&g, g.n);
		snprintf(text, sizeof(text), "r=replay:%s,fast", path_of("cap"));
		assert_int_equal(urdma_external_parse(text, &e, error, sizeof(error)), 0);
		if (!urdma_external_open(e, 100000, error, sizeof(error))) {
			opened++;
			for (uint64_t now = 0; now < 1000; now++)
				urdma_external_advance(e, now);
		}
		urdma_external_destroy(e);
	}
	assert_in_range(opened, 500, 2900);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void text(void **state)
{
	static const char *const bad[][2] = {
		{ "", "NAME=KIND" },
		{ "a", "NAME=KIND" },
		{ "=tap:x", "the name" },
		{ "12=tap:x", "the name" },
		{ "a-b=tap:x", "the name" },
		{ "a,b=tap:x", "the name" },
		{ "../a=tap:x", "the name" },
		{ "urdma7=tap:x", "the name" },
		{ "switch1=tap:x", "the name" },
		{ "abcdefghijklmnop=tap:x", "the name" },
		{ "a=", "is none of" },
		{ "a=tap", "is none of" },
		{ "a=serial:x", "is none of" },
		{ "a=tap:", "not the name of a net device" },
		{ "a=tap:abcdefghijklmnop", "not the name of a net device" },
		{ "a=tap:a/b", "not the name of a net device" },
		{ "a=stream:", "neither" },
		{ "a=stream:unix:", "neither" },
		{ "a=stream:/x", "neither" },
		{ "a=stream:tcp:0", "not a port" },
		{ "a=stream:tcp:70000", "not a port" },
		{ "a=stream:tcp:host:80", "not a port" },
		{ "a=stream:tcp:80,server", "is not listen" },
		{ "a=dgram:tcp:80", "neither" },
		{ "a=dgram:udp:80,peer=x", "not a port" },
		{ "a=dgram:udp:80,listen", "is not peer" },
		{ "a=dgram:unix:", "has 1 to" },
		{ "a=replay:", "no file" },
		{ "a=replay:x,slow", "none of fast" },
		{ "a=replay:x,at=-1", "none of fast" },
		{ "a=replay:x,at=1s", "none of fast" },
		{ "a=replay:x,only=in,only=out", "excludes" },
	};
	char error[512], longer[300];
	struct urdma_external *e;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		error[0] = '\0';
		assert_int_equal(urdma_external_parse(bad[i][0], &e, error, sizeof(error)),
				 -EINVAL);
		if (!strstr(error, bad[i][1]))
			fail_msg("%s: expected \"%s\" in: %s", bad[i][0], bad[i][1], error);
	}
	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "a=stream:unix:", 14);
	longer[299] = '\0';
	assert_int_equal(urdma_external_parse(longer, &e, error, sizeof(error)), -EINVAL);
	/* Files that cannot be opened give an error. */
	snprintf(longer, sizeof(longer), "a=stream:unix:%s", path_of("nobody"));
	assert_int_equal(urdma_external_parse(longer, &e, error, sizeof(error)), 0);
	assert_int_equal(urdma_external_open(e, 100000, error, sizeof(error)), -ENOENT);
	assert_non_null(strstr(error, "cannot connect"));
	urdma_external_destroy(e);
}

/* ---- with NICs ------------------------------------------------------------------------------ */

/*
 * Two NICs and an external port on a switch: a frame from outside reaches the NIC, one of the NIC
 * the outside; the counters agree; the NIC's link goes down and up.
 */
static void with_nics(void **state)
{
	struct urdma_cosim_config cfg;
	struct urdma_embedded *h;
	struct urdma_embedded_dev *dev;
	struct urdma_external *e = make("a=stream:unix:%s,listen", path_of("a"));
	struct urdma_cosim *c;
	uint8_t *src, *dst, frame[1000];
	uint32_t head;
	int a;

	(void)state;
	urdma_cosim_config_defaults(&cfg, 2);
	cfg.n_wires = 0;
	cfg.n_external = 1;
	cfg.external[0] = e;
	cfg.n_switches = 1;
	cfg.sw[0].n = 3;
	cfg.sw[0].port[0] = 0;
	cfg.sw[0].port[1] = URDMA_COSIM_EXTERNAL(0);
	cfg.sw[0].port[2] = 1;
	assert_int_equal(urdma_cosim_create(&cfg, &model_nic, &c), 0);
	assert_int_equal(urdma_cosim_wires(c), 3);
	assert_ptr_equal(urdma_wire_port(urdma_cosim_wire(c, 1), 0), urdma_external_port(e));
	assert_int_equal(urdma_embedded_create(c, NULL, &h), 0);
	assert_int_equal(urdma_embedded_attach(h, 0, &dev), 0);
	src = urdma_embedded_alloc_contig(h, 4096, 0);
	dst = urdma_embedded_alloc_contig(h, 4096, 0);
	assert_int_equal(urdma_embedded_write64(dev, 0, 0x50, urdma_embedded_bus(h, dst)), 0);
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	a = peer_connect(path_of("a"));
	fill(frame, 900, 77);
	frame[0] = 0x02;
	frame[6] = 0x02;
	head = htonl(900);
	assert_int_equal(send(a, &head, 4, 0), 4);
	assert_int_equal(send(a, frame, 900, 0), 900);
	assert_true(urdma_external_process(e, urdma_cosim_now(c)));
	assert_true(urdma_cosim_busy(c));
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	assert_int_equal(urdma_embedded_irqs(dev, 0), 1);
	assert_memory_equal(dst, frame, 900);
	assert_int_equal(urdma_cosim_port(c, 1)->stats.rx_frames, 1);
	/* Back, to an address that the switch has learned. */
	memcpy(src, frame + 6, 6);
	memcpy(src + 6, frame, 6);
	memset(src + 12, 0x5a, 500);
	assert_int_equal(urdma_embedded_write64(dev, 0, 0x40, urdma_embedded_bus(h, src)), 0);
	assert_int_equal(urdma_embedded_write64(dev, 0, 0x48, 512), 0);
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	peer_read(a, &head, 4);
	assert_int_equal(ntohl(head), 512);
	peer_read(a, frame, 512);
	assert_memory_equal(frame, src, 512);
	assert_int_equal(urdma_cosim_port(c, 1)->stats.rx_frames, 1);
	/* Down: no frame passes, but the MAC still takes frames. */
	assert_int_equal(urdma_cosim_link(c, 0, false), 0);
	assert_true(urdma_cosim_busy(c));
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	assert_int_equal(urdma_embedded_write64(dev, 0, 0x48, 512), 0);
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	assert_int_equal(urdma_cosim_port(c, 0)->stats.tx_unconnected, 1);
	peer_expect_nothing(a);
	peer_send(a, 100, 1);
	assert_true(urdma_external_process(e, urdma_cosim_now(c)));
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	assert_int_equal(urdma_embedded_irqs(dev, 0), 1);
	assert_int_equal(urdma_cosim_link(c, 0, true), 0);
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	assert_int_equal(urdma_embedded_write64(dev, 0, 0x48, 512), 0);
	assert_int_equal(urdma_cosim_run_while_busy(c, URDMA_COSIM_FOREVER), 0);
	peer_read(a, &head, 4);
	peer_read(a, frame, 512);
	assert_int_equal(urdma_cosim_link(c, 5, true), -EINVAL);
	assert_int_equal(urdma_cosim_link(c, URDMA_COSIM_EXTERNAL(3), true), -EINVAL);
	close(a);
	urdma_embedded_destroy(h);
	urdma_cosim_destroy(c);
	urdma_external_destroy(e);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/urdma-external.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path_of("cap"));
	unlink(path_of("peer"));
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream_unix), cmocka_unit_test(stream_tcp),
		cmocka_unit_test(hostile),     cmocka_unit_test(full_peer),
		cmocka_unit_test(dgram_unix),  cmocka_unit_test(dgram_unix_abstract),
		cmocka_unit_test(dgram_udp),   cmocka_unit_test(tap_errors),
		cmocka_unit_test(tap_device),  cmocka_unit_test(replay_times),
		cmocka_unit_test(replay_fast), cmocka_unit_test(replay_foreign),
		cmocka_unit_test(replay_bad),  cmocka_unit_test(text),
		cmocka_unit_test(with_nics),   cmocka_unit_test(flood),
	};

	return cmocka_run_group_tests_name("cosim/external", tests, set_up, tear_down);
}
