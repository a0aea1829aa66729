/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included by each Verilated model of a coverage build (-DURDMA_COVERAGE=ON). When a model ends, it
 * adds its counters to the file URDMA_COVERAGE_DIR/NAME: one 64-bit number per counter, in the
 * order of the array. All processes and threads share the file, so no files have to be merged.
 */
#ifndef URDMA_COVERAGE_MODEL_H
#define URDMA_COVERAGE_MODEL_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "verilated_cov.h"

#define URDMA_COVER_POINT(...) ((void)0)

template <size_t n> void urdma_coverage_add(const char *name, const uint32_t (&count)[n])
{
	const std::string path = std::string(URDMA_COVERAGE_DIR "/") + name;
	const size_t size = n * sizeof(uint64_t);
	int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *map = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		map = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror(path.c_str());
		abort();
	}
	for (size_t i = 0; i < n; i++)
		if (count[i])
			__atomic_fetch_add((uint64_t *)map + i, count[i], __ATOMIC_RELAXED);
	munmap(map, size);
	close(fd);
}

#endif
