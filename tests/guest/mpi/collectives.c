// SPDX-License-Identifier: Apache-2.0
/*
 * collectives: MPI on any number of ranks. A ring, allreduce, alltoall, gather and scatter,
 * one-sided put and get, each with data of many lengths that every rank checks, and a loop each for
 * latency and bandwidth. Prints "ok" and the figures; or, with exit status 1, which rank found
 * which error.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX (1u << 20)

static int me, ranks;
static uint8_t *a, *b;

#define WANT(x)                                                                            \
	do {                                                                               \
		if (!(x)) {                                                                \
			fprintf(stderr, "collectives: rank %d, line %d: not so: %s\n", me, \
				__LINE__, #x);                                             \
			MPI_Abort(MPI_COMM_WORLD, 1);                                      \
		}                                                                          \
	} while (0)

/* Byte i of the data that rank `from` sends to rank `to` in a round. */
static uint8_t byte_of(int from, int to, unsigned int round, size_t i)
{
	return (uint8_t)(37 * from + 101 * to + 13 * round + 7 * i + (i >> 8));
}

static void fill(uint8_t *p, size_t len, int from, int to, unsigned int round)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_of(from, to, round, i);
}

static void check(const uint8_t *p, size_t len, int from, int to, unsigned int round)
{
	for (size_t i = 0; i < len; i++)
		WANT(p[i] == byte_of(from, to, round, i));
}

/* Each rank sends to the next one and receives from the one before. */
static void ring(size_t len, unsigned int round)
{
	int next = (me + 1) % ranks, last = (me + ranks - 1) % ranks;

	fill(a, len, me, next, round);
	memset(b, 0, len);
	MPI_Sendrecv(a, (int)len, MPI_BYTE, next, 5, b, (int)len, MPI_BYTE, last, 5, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	check(b, len, last, me, round);
}

static void allreduce(size_t len, unsigned int round)
{
	size_t n = len / 8;
	uint64_t *in = (uint64_t *)a, *out = (uint64_t *)b;

	for (size_t i = 0; i < n; i++)
		in[i] = (me + 1) * (i + round);
	MPI_Allreduce(in, out, (int)n, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (size_t i = 0; i < n; i++)
		WANT(out[i] == (uint64_t)ranks * (ranks + 1) / 2 * (i + round));
	/* Sums of halves of small integers are exact. */
	for (size_t i = 0; i < n; i++)
		((double *)a)[i] = 0.5 * (double)(me * (i % 1000));
	MPI_Allreduce(a, b, (int)n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	for (size_t i = 0; i < n; i++)
		WANT(((double *)b)[i] == 0.5 * (double)((ranks - 1) * (i % 1000)));
}

static void alltoall(size_t len, unsigned int round)
{
	size_t part = len / ranks;

	for (int to = 0; to < ranks; to++)
		fill(a + to * part, part, me, to, round);
	memset(b, 0, len);
	MPI_Alltoall(a, (int)part, MPI_BYTE, b, (int)part, MPI_BYTE, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		check(b + from * part, part, from, me, round);
}

static void gather_and_scatter(size_t len, unsigned int round)
{
	size_t part = len / ranks;

	fill(a, part, me, 0, round);
	MPI_Gather(a, (int)part, MPI_BYTE, b, (int)part, MPI_BYTE, 0, MPI_COMM_WORLD);
	for (int from = 0; from < ranks && !me; from++)
		check(b + from * part, part, from, 0, round);
	memset(a, 0, part);
	MPI_Scatter(b, (int)part, MPI_BYTE, a, (int)part, MPI_BYTE, 0, MPI_COMM_WORLD);
	check(a, part, me, 0, round);
}

/* A rank puts data into the next one's window, and gets them back from there. */
static void one_sided(size_t len, unsigned int round)
{
	int next = (me + 1) % ranks, last = (me + ranks - 1) % ranks;
	MPI_Win window;
	uint8_t *c = malloc(len);

	WANT(c);
	memset(b, 0, len);
	fill(a, len, me, next, round);
	MPI_Win_create(b, (MPI_Aint)len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	MPI_Put(a, (int)len, MPI_BYTE, next, 0, (int)len, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	MPI_Get(c, (int)len, MPI_BYTE, next, 0, (int)len, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
	check(b, len, last, me, round);
	check(c, len, me, next, round);
	free(c);
}

/* Half a round trip in us, between rank 0 and the last rank. */
static double latency(size_t len, unsigned int n)
{
	int peer = me ? 0 : ranks - 1;
	double from;

	MPI_Barrier(MPI_COMM_WORLD);
	from = MPI_Wtime();
	for (unsigned int i = 0; i < n && (!me || me == ranks - 1); i++) {
		if (!me)
			MPI_Send(a, (int)len, MPI_BYTE, peer, 6, MPI_COMM_WORLD);
		MPI_Recv(b, (int)len, MPI_BYTE, peer, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (me)
			MPI_Send(a, (int)len, MPI_BYTE, peer, 6, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - from) * 1e6 / n / 2;
}

/* MB/s from rank 0 to the last rank, with 16 messages under way. */
static double bandwidth(size_t len, unsigned int n)
{
	MPI_Request request[16];
	double from;
	char end = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	from = MPI_Wtime();
	for (unsigned int i = 0; i < n && (!me || me == ranks - 1); i += 16) {
		for (unsigned int k = 0; k < 16; k++) {
			if (!me)
				MPI_Isend(a, (int)len, MPI_BYTE, ranks - 1, 7, MPI_COMM_WORLD,
					  &request[k]);
			else
				MPI_Irecv(b, (int)len, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &request[k]);
		}
		MPI_Waitall(16, request, MPI_STATUSES_IGNORE);
		if (!me)
			MPI_Recv(&end, 1, MPI_BYTE, ranks - 1, 8, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		else
			MPI_Send(&end, 1, MPI_BYTE, 0, 8, MPI_COMM_WORLD);
	}
	return (double)len * n / 1e6 / (MPI_Wtime() - from);
}

int main(int argc, char **argv)
{
	static const size_t lengths[] = { 64, 1000, 4096, 8192 + 40, 65536, 300000, MAX };
	double us, mbs;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &me);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	a = malloc(MAX);
	b = malloc(MAX);
	WANT(a && b && ranks > 1);
	for (unsigned int k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
		for (unsigned int round = 0; round < 3; round++) {
			ring(lengths[k], round);
			allreduce(lengths[k], round);
			alltoall(lengths[k], round);
			gather_and_scatter(lengths[k], round);
			one_sided(lengths[k], round);
		}
	}
	memset(a, 0, MAX);
	us = latency(8, 200);
	mbs = bandwidth(262144, 64);
	if (!me)
		printf("ok: %d ranks, %.1f us, %.0f MB/s by the guest's clock\n", ranks, us, mbs);
	free(a);
	free(b);
	MPI_Finalize();
	return 0;
}
