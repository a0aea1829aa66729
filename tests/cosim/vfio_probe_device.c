// SPDX-License-Identifier: Apache-2.0
/*
 * A stand-in for urdma-cosim without a NIC: serves the function of vfio_fake_pcie.h to a QEMU of
 * your own, one for each --socket. It shows what QEMU sends, and proves the shim without the RTL:
 *
 *	build/tests/cosim/vfio_probe_device --debug --socket /tmp/nic0
 *
 * docs/vfio-user.md has QEMU's options. Ends on SIGTERM or SIGINT. With --debug each message is a
 * line on stderr.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/vfio_user.h"
#include "vfio_fake_pcie.h"

#define MAX_FUNCTIONS 16

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

int main(int argc, char **argv)
{
	struct urdma_vfio_user_server *servers[MAX_FUNCTIONS];
	struct urdma_pcie *functions[MAX_FUNCTIONS];
	struct sigaction action = { .sa_handler = on_signal };
	const char *paths[MAX_FUNCTIONS];
	unsigned int count = 0;
	bool debug = false, bad = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--debug"))
			debug = true;
		else if (!strcmp(argv[i], "--socket") && i + 1 < argc && count < MAX_FUNCTIONS)
			paths[count++] = argv[++i];
		else
			bad = true;
	}
	if (bad || !count) {
		fprintf(stderr, "usage: %s [--debug] --socket PATH ...\n", argv[0]);
		return 2;
	}

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	for (unsigned int i = 0; i < count; i++) {
		struct urdma_vfio_user_config config = { .path = paths[i], .log_debug = debug };
		int ret;

		functions[i] = fake_pcie_create();
		config.pcie = functions[i];
		ret = urdma_vfio_user_create(&config, &servers[i]);
		if (ret) {
			fprintf(stderr, "%s: %s\n", paths[i], strerror(-ret));
			return 1;
		}
	}
	printf("ready\n");
	fflush(stdout);

	while (!stop) {
		struct pollfd fds[MAX_FUNCTIONS * URDMA_VFIO_USER_MAX_POLLFDS];
		unsigned int n = 0;

		for (unsigned int i = 0; i < count; i++)
			n += urdma_vfio_user_pollfds(servers[i], fds + n);
		if (poll(fds, n, -1) < 0 && errno != EINTR)
			return 1;
		for (unsigned int i = 0; i < count; i++) {
			urdma_vfio_user_process(servers[i]);
			fake_pcie_run(functions[i], UINT32_MAX);
		}
	}

	for (unsigned int i = 0; i < count; i++) {
		const struct urdma_vfio_user_stats *s = urdma_vfio_user_stats(servers[i]);

		fprintf(stderr,
			"%s: clients %llu, messages %llu, errors %llu, disconnects %llu, register "
			"reads "
			"%llu and writes %llu, DMA reads %llu, writes %llu, faults %llu, "
			"interrupts %llu\n",
			paths[i], (unsigned long long)s->clients, (unsigned long long)s->messages,
			(unsigned long long)s->errors, (unsigned long long)s->disconnects,
			(unsigned long long)s->mmio_reads, (unsigned long long)s->mmio_writes,
			(unsigned long long)s->dma_reads, (unsigned long long)s->dma_writes,
			(unsigned long long)s->dma_faults, (unsigned long long)s->interrupts);
		urdma_vfio_user_destroy(servers[i]);
		fake_pcie_destroy(functions[i]);
	}
	return 0;
}
