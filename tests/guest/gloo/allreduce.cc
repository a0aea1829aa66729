// SPDX-License-Identifier: Apache-2.0
/*
 * allreduce RANK RANKS DIRECTORY DEVICE GID-INDEX: one rank of Gloo's collectives over plain verbs.
 * The ranks find each other through files in the directory, which they share. Each algorithm runs
 * several times with vectors of many lengths, and each rank checks every element. Prints "ok"; or,
 * with exit status 1, what was wrong.
 */
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace
{

constexpr int rounds = 3;
int me, ranks;

[[noreturn]] void wrong(const char *what, size_t length, size_t i, double got)
{
	fprintf(stderr, "allreduce: rank %d: %s of %zu elements: element %zu is %.1f\n", me, what,
		length, i, got);
	exit(1);
}

/* Small integers: their sums are exact, in whatever order an algorithm adds them. */
template <typename T> T element(int rank, int round, size_t i)
{
	return static_cast<T>((rank + 1) * static_cast<int>((i + round) % 1000));
}

template <typename T> T sum(int round, size_t i)
{
	return static_cast<T>(ranks * (ranks + 1) / 2 * static_cast<int>((i + round) % 1000));
}

/*
 * The algorithm registers its buffers once and runs with them several times, as training does. Gloo
 * ends the program when a buffer is freed before its last send has completed, and offers no way to
 * wait for that. So no vector, algorithm or barrier is ever freed. `between`, unless it is NULL,
 * runs after each round.
 */
template <typename T, template <typename> class Allreduce>
void check_sum(const std::shared_ptr<gloo::Context> &context, const char *what, size_t length,
	       gloo::Algorithm *between = nullptr)
{
	auto &v = *new std::vector<T>(length);
	auto all = new Allreduce<T>(context, { v.data() }, static_cast<int>(length));

	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < length; i++)
			v[i] = element<T>(me, round, i);
		all->run();
		for (size_t i = 0; i < length; i++)
			if (v[i] != sum<T>(round, i))
				wrong(what, length, i, static_cast<double>(v[i]));
		if (between)
			between->run();
	}
}

template <typename T> using Ring = gloo::AllreduceRing<T>;
template <typename T> using Chunked = gloo::AllreduceRingChunked<T>;
template <typename T> using Halving = gloo::AllreduceHalvingDoubling<T>;
template <typename T> using Bcube = gloo::AllreduceBcube<T>;

void check_broadcast(const std::shared_ptr<gloo::Context> &context, gloo::Algorithm *barrier,
		     int root, size_t length)
{
	auto &v = *new std::vector<float>(length);
	auto broadcast = new gloo::BroadcastOneToAll<float>(context, { v.data() },
							    static_cast<int>(length), root);

	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < length; i++)
			v[i] = element<float>(me, round, i);
		broadcast->run();
		for (size_t i = 0; i < length; i++)
			if (v[i] != element<float>(root, round, i))
				wrong("broadcast", length, i, v[i]);
		/* A root may not send again before the others have read the last round. */
		barrier->run();
	}
}

} // namespace

int main(int argc, char **argv)
try {
	if (argc != 6) {
		fprintf(stderr, "usage: allreduce RANK RANKS DIRECTORY DEVICE GID-INDEX\n");
		return 2;
	}
	me = atoi(argv[1]);
	ranks = atoi(argv[2]);

	gloo::transport::ibverbs::attr attr = { argv[4], 1, atoi(argv[5]) };
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	gloo::rendezvous::FileStore store(argv[3]);
	auto context = std::make_shared<gloo::rendezvous::Context>(me, ranks);

	context->connectFullMesh(store, device);

	auto barrier = new gloo::BarrierAllToAll(context);
	for (size_t length : { 1, 17, 256, 1000, 4096, 65537, 300000 }) {
		check_sum<float, Ring>(context, "ring", length);
		check_sum<double, Chunked>(context, "ring in chunks", length);
		check_sum<uint64_t, Halving>(context, "halving and doubling", length);
		/*
		 * With fewer elements than ranks its nodes add the same element twice and interfere
		 * with each other. And a node tells only its peers of step 0 that it has read the
		 * gathered data: the peers of step 1 may send the next round's data over it.
		 */
		if (length >= static_cast<size_t>(ranks))
			check_sum<float, Bcube>(context, "bcube", length, barrier);
		for (int root = 0; root < ranks; root++)
			check_broadcast(context, barrier, root, length);
	}
	barrier->run();
	printf("ok: rank %d of %d\n", me, ranks);
	fflush(stdout);
	_exit(0);
} catch (const std::exception &e) {
	fprintf(stderr, "allreduce: rank %d: %s\n", me, e.what());
	return 1;
}
