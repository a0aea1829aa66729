// SPDX-License-Identifier: Apache-2.0
/*
 * aer_inject DOMAIN:BUS:DEVICE.FUNCTION: makes the kernel's module aer_inject report a fatal error
 * of this function, in the data link protocol.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define DATA_LINK_PROTOCOL (1u << 4) /* in the register "uncorrectable error status" */

/* The record for /dev/aer_inject: drivers/pci/pcie/aer_inject.c of the kernel. */
struct aer_error {
	uint8_t bus, dev, fn;
	uint32_t uncorrectable, correctable;
	uint32_t header[4];
	uint32_t domain;
};

int main(int argc, char **argv)
{
	struct aer_error e = { .uncorrectable = DATA_LINK_PROTOCOL };
	int fd;

	if (argc != 2 ||
	    sscanf(argv[1], "%x:%hhx:%hhx.%hhx", &e.domain, &e.bus, &e.dev, &e.fn) != 4) {
		fprintf(stderr, "usage: aer_inject DOMAIN:BUS:DEVICE.FUNCTION\n");
		return 2;
	}
	fd = open("/dev/aer_inject", O_WRONLY);
	if (fd < 0 || write(fd, &e, sizeof(e)) != sizeof(e)) {
		perror("aer_inject");
		return 1;
	}
	close(fd);
	return 0;
}
