/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of pcapng files (IETF draft-ietf-opsawg-pcapng): one interface of Ethernet frames without
 * FCS, nanosecond time stamps, each packet flagged inbound or outbound.
 */
#ifndef URDMA_COSIM_PCAPNG_H
#define URDMA_COSIM_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct urdma_pcapng;

/* if_speed in bits a second, 0: unknown. Returns 0 or a negative errno. */
int urdma_pcapng_open(const char *path, const char *if_name, uint64_t if_speed,
		      struct urdma_pcapng **pcap);
/* Returns 0, or the first error of any write. Frees it in any case. NULL is allowed. */
int urdma_pcapng_close(struct urdma_pcapng *pcap);

/* crc_error: the frame came with a bad FCS. */
void urdma_pcapng_write(struct urdma_pcapng *pcap, uint64_t ns, const void *frame, size_t len,
			bool outbound, bool crc_error);
/* Everything written so far can be read by others. */
void urdma_pcapng_flush(struct urdma_pcapng *pcap);

#endif
