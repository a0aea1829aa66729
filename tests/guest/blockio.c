// SPDX-License-Identifier: Apache-2.0
/*
 * blockio run DEVICE STATE MB SECONDS [THREADS]: writes and reads random blocks of a block device,
 * past the page cache, and compares all data that it reads. Each thread has its own part of the
 * first MB megabytes. A request has 4 to 256 KB. Each word of a block depends on the block's
 * position and on how often it was written. At the end all blocks are read, and the counts are
 * stored in STATE.
 *
 * blockio check DEVICE STATE: reads all blocks again and compares them.
 *
 * Exit status 1: a request failed, or data differ.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	    4096U
#define RUN_MAX	    64U
#define THREADS_MAX 64U

static int device;
static uint32_t *count; /* for each block: how often it was written */
static unsigned int blocks, threads = 16;
static time_t end;
static atomic_uint reads, writes;

struct part {
	unsigned int first, n;
	uint64_t random;
	uint64_t *data;
};

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t first_word(unsigned int block)
{
	return ((uint64_t)block << 32 | count[block]) * 0x9e3779b97f4a7c15ULL;
}

static void fill(uint64_t *data, unsigned int block, unsigned int n)
{
	for (; n; n--, block++) {
		uint64_t word = first_word(block);
		unsigned int i;

		for (i = 0; i < BLOCK / 8; i++)
			*data++ = word += 0x6a09e667f3bcc909ULL;
	}
}

static void compare(const uint64_t *data, unsigned int block, unsigned int n)
{
	for (; n; n--, block++) {
		uint64_t word = first_word(block);
		unsigned int i;

		for (i = 0; i < BLOCK / 8; i++, data++) {
			word += 0x6a09e667f3bcc909ULL;
			if (*data == word)
				continue;
			fprintf(stderr,
				"blockio: block %u, written %u times, byte %u: %016llx, not "
				"%016llx\n",
				block, count[block], i * 8, (unsigned long long)*data,
				(unsigned long long)word);
			exit(1);
		}
	}
}

/* The kernel may transfer less than requested. */
static void transfer(int write, uint64_t *data, unsigned int block, unsigned int n)
{
	size_t done = 0, size = (size_t)n * BLOCK;
	off_t at = (off_t)block * BLOCK;

	while (done < size) {
		char *p = (char *)data + done;
		ssize_t k = write ? pwrite(device, p, size - done, at + (off_t)done)
				  : pread(device, p, size - done, at + (off_t)done);

		if (k <= 0) {
			fprintf(stderr, "blockio: %s of %zu bytes at %lld: %s\n",
				write ? "write" : "read", size - done,
				(long long)at + (long long)done, k ? strerror(errno) : "end");
			exit(1);
		}
		done += (size_t)k;
	}
}

static void check(struct part *p)
{
	unsigned int at, n;

	for (at = 0; at < p->n; at += n) {
		n = p->n - at < RUN_MAX ? p->n - at : RUN_MAX;
		transfer(0, p->data, p->first + at, n);
		compare(p->data, p->first + at, n);
	}
}

static void *work(void *arg)
{
	struct part *p = arg;
	unsigned int at, n, i;

	while (time(NULL) < end) {
		/* Short and long requests are equally frequent. */
		n = 1U << next(&p->random) % 7;
		if (n > p->n)
			n = p->n;
		at = p->first + (unsigned int)(next(&p->random) % (p->n - n + 1));
		if (next(&p->random) & 1) {
			for (i = 0; i < n; i++)
				count[at + i]++;
			fill(p->data, at, n);
			transfer(1, p->data, at, n);
			writes++;
		} else {
			transfer(0, p->data, at, n);
			compare(p->data, at, n);
			reads++;
		}
	}
	check(p);
	return NULL;
}

static void state(const char *name, int save)
{
	int fd = open(name, save ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0644);
	size_t size = (size_t)blocks * sizeof(*count);

	if (fd < 0 || (save ? write(fd, count, size) : read(fd, count, size)) != (ssize_t)size) {
		perror(name);
		exit(1);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	int run = argc >= 6 && !strcmp(argv[1], "run");
	struct part parts[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	struct timespec now;
	unsigned int i;

	if (!run && !(argc == 4 && !strcmp(argv[1], "check"))) {
		fprintf(stderr, "usage: blockio run DEVICE STATE MB SECONDS [THREADS] | check "
				"DEVICE STATE\n");
		return 2;
	}
	device = open(argv[2], O_RDWR | O_DIRECT);
	if (device < 0) {
		perror(argv[2]);
		return 1;
	}
	if (run) {
		blocks = (unsigned int)strtoul(argv[4], NULL, 0) * (1048576 / BLOCK);
		if (argc > 6)
			threads = (unsigned int)strtoul(argv[6], NULL, 0);
	} else {
		int fd = open(argv[3], O_RDONLY);

		blocks = (unsigned int)(lseek(fd, 0, SEEK_END) / (off_t)sizeof(*count));
		close(fd);
	}
	count = calloc(blocks + 1, sizeof(*count));
	if (!threads || threads > THREADS_MAX || blocks < threads || !count) {
		fprintf(stderr, "blockio: no such size or number of threads\n");
		return 2;
	}
	if (!run)
		state(argv[3], 0);
	clock_gettime(CLOCK_REALTIME, &now);
	for (i = 0; i < threads; i++) {
		parts[i].first = (unsigned int)((uint64_t)blocks * i / threads);
		parts[i].n = (unsigned int)((uint64_t)blocks * (i + 1) / threads) - parts[i].first;
		parts[i].random = ((uint64_t)now.tv_nsec << 16 | i) + 1;
		if (posix_memalign((void **)&parts[i].data, BLOCK, RUN_MAX * BLOCK))
			return 1;
		/* Blocks that were never written have a count of 0. */
		if (run) {
			unsigned int at, n;

			for (at = 0; at < parts[i].n; at += n) {
				n = parts[i].n - at < RUN_MAX ? parts[i].n - at : RUN_MAX;
				fill(parts[i].data, parts[i].first + at, n);
				transfer(1, parts[i].data, parts[i].first + at, n);
			}
		} else {
			check(&parts[i]);
		}
	}
	if (!run)
		return 0;
	end = time(NULL) + (time_t)strtoul(argv[5], NULL, 0);
	for (i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, work, &parts[i]))
			return 1;
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	state(argv[3], 1);
	printf("blockio: %u writes, %u reads\n", atomic_load(&writes), atomic_load(&reads));
	return 0;
}
