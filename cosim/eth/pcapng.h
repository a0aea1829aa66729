/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pcapng files (IETF draft-ietf-opsawg-pcapng). The writer: one interface of Ethernet frames
 * without FCS, nanosecond time stamps, each packet flagged inbound or outbound. The reader: the
 * Ethernet frames of any such file.
 */
#ifndef URDMA_COSIM_PCAPNG_H
#define URDMA_COSIM_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct urdma_pcapng;

/* Receives a record of the file, in n parts. */
typedef void (*urdma_pcapng_record_fn)(void *ctx, const struct iovec *part, unsigned int n);

/* Passes all records to fn. Returns NULL if there is no memory. */
struct urdma_pcapng *urdma_pcapng_to(urdma_pcapng_record_fn fn, void *ctx, const char *if_name,
				     uint64_t if_speed);
/* Writes to a file. if_speed in bits per second, 0: unknown. Returns 0 or a negative errno. */
int urdma_pcapng_open(const char *path, const char *if_name, uint64_t if_speed,
		      struct urdma_pcapng **pcap);
/*
 * Returns 0 if every packet is in the file, else the first error; the file then ends with the last
 * complete packet. Frees it in any case. NULL is allowed.
 */
int urdma_pcapng_close(struct urdma_pcapng *pcap);

/*
 * crc_error: the frame had a bad FCS. comment: comment of the packet, at most URDMA_PCAPNG_COMMENT
 * bytes; empty: none.
 */
#define URDMA_PCAPNG_COMMENT 160u
void urdma_pcapng_write(struct urdma_pcapng *pcap, uint64_t ns, const void *frame, size_t len,
			bool outbound, bool crc_error, const char *comment);
/* Makes everything written so far visible to other processes. Returns 0 or the first error. */
int urdma_pcapng_flush(struct urdma_pcapng *pcap);
/* 0, or the error that ended the capture. */
int urdma_pcapng_error(const struct urdma_pcapng *pcap);

struct urdma_pcapng_packet {
	uint64_t ns;
	const uint8_t *data; /* valid until the next packet is read */
	uint32_t len;
	bool inbound, outbound; /* both false: unknown */
	bool crc_error;
	bool truncated; /* the capture has only the beginning */
	bool ethernet;
	char comment[URDMA_PCAPNG_COMMENT + 1]; /* the first one; empty: none */
};

struct urdma_pcapng_reader;

/* Returns -errno with the reason in error. */
int urdma_pcapng_reader_open(const char *path, struct urdma_pcapng_reader **reader, char *error,
			     size_t size);
/* Reads the next packet. Returns 1; 0 at the end; -EBADMSG or -EIO with a description in error. */
int urdma_pcapng_read(struct urdma_pcapng_reader *reader, struct urdma_pcapng_packet *packet,
		      char *error, size_t size);
/* Goes back to the beginning. */
void urdma_pcapng_rewind(struct urdma_pcapng_reader *reader);
/* NULL is allowed. */
void urdma_pcapng_reader_close(struct urdma_pcapng_reader *reader);

#endif
