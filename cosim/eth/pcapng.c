// SPDX-License-Identifier: Apache-2.0
// pcapng writer. Section numbers are those of draft-ietf-opsawg-pcapng.
#include "eth/pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

#define BLOCK_SHB 0x0a0d0d0au /* section header, 4.1 */
#define BLOCK_IDB 0x00000001u /* interface description, 4.2 */
#define BLOCK_EPB 0x00000006u /* enhanced packet, 4.3 */

#define OPT_END	       0u
#define OPT_COMMENT    1u
#define OPT_SHB_APPL   4u
#define OPT_IF_NAME    2u
#define OPT_IF_SPEED   8u
#define OPT_IF_TSRESOL 9u
#define OPT_EPB_FLAGS  2u

#define LINKTYPE_ETHERNET 1u
#define MAX_IF_NAME	  64u

/* epb_flags, 4.3.1: direction in bits 1:0, link-layer errors from bit 16 on. */
#define EPB_INBOUND   1u
#define EPB_OUTBOUND  2u
#define EPB_CRC_ERROR (1u << 24)

struct urdma_pcapng {
	struct urdma_output *out; /* NULL: the records go to fn */
	urdma_pcapng_record_fn fn;
	void *ctx;
};

static void record(struct urdma_pcapng *p, const struct iovec *part, unsigned int n)
{
	if (p->out)
		urdma_output_record(p->out, part, n);
	else
		p->fn(p->ctx, part, n);
}

/* A block under construction: only headers and options; packet data is not copied. */
struct block {
	uint8_t buf[256];
	size_t n;
};

static void put(struct block *b, uint64_t v, size_t len)
{
	for (size_t i = 0; i < len; i++)
		b->buf[b->n++] = (uint8_t)(v >> (8 * i));
}

static void put_option(struct block *b, unsigned int code, const void *value, size_t len)
{
	put(b, code, 2);
	put(b, len, 2);
	if (len)
		memcpy(&b->buf[b->n], value, len);
	b->n += len;
	while (b->n % 4)
		b->buf[b->n++] = 0;
}

/* Type and total length at the start, total length at the end (section 3.1). */
static void out_block(struct urdma_pcapng *p, struct block *b, uint32_t type)
{
	struct block head = { .n = 0 }, tail = { .n = 0 };

	put(&head, type, 4);
	put(&head, b->n + 12, 4);
	put(&tail, b->n + 12, 4);
	record(p, (struct iovec[]){ { head.buf, head.n }, { b->buf, b->n }, { tail.buf, tail.n } },
	       3);
}

/* Section header and interface. */
static void out_head(struct urdma_pcapng *p, const char *if_name, uint64_t if_speed)
{
	static const char appl[] = "urdma-cosim";
	const uint8_t tsresol = 9; /* 10^-9 s */
	struct block b = { .n = 0 };

	put(&b, 0x1a2b3c4d, 4); /* byte order */
	put(&b, 1, 2);		/* version 1.0 */
	put(&b, 0, 2);
	put(&b, UINT64_MAX, 8); /* length of the section: unspecified */
	put_option(&b, OPT_SHB_APPL, appl, sizeof(appl) - 1);
	put_option(&b, OPT_END, NULL, 0);
	out_block(p, &b, BLOCK_SHB);
	b.n = 0;
	put(&b, LINKTYPE_ETHERNET, 2);
	put(&b, 0, 2);
	put(&b, 0, 4); /* snap length: no limit */
	put_option(&b, OPT_IF_NAME, if_name, strnlen(if_name, MAX_IF_NAME));
	if (if_speed) {
		struct block v = { .n = 0 };

		put(&v, if_speed, 8);
		put_option(&b, OPT_IF_SPEED, v.buf, v.n);
	}
	put_option(&b, OPT_IF_TSRESOL, &tsresol, 1);
	put_option(&b, OPT_END, NULL, 0);
	out_block(p, &b, BLOCK_IDB);
}

struct urdma_pcapng *urdma_pcapng_to(urdma_pcapng_record_fn fn, void *ctx, const char *if_name,
				     uint64_t if_speed)
{
	struct urdma_pcapng *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->fn = fn;
	p->ctx = ctx;
	out_head(p, if_name, if_speed);
	return p;
}

int urdma_pcapng_open(const char *path, const char *if_name, uint64_t if_speed,
		      struct urdma_pcapng **pcap)
{
	struct urdma_pcapng *p;
	int ret;

	if (strlen(if_name) > MAX_IF_NAME)
		return -ENAMETOOLONG;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	ret = urdma_output_open(path, &p->out);
	if (ret) {
		free(p);
		return ret;
	}
	out_head(p, if_name, if_speed);
	ret = urdma_output_flush(p->out);
	if (ret) {
		urdma_pcapng_close(p);
		return ret;
	}
	*pcap = p;
	return 0;
}

void urdma_pcapng_write(struct urdma_pcapng *p, uint64_t ns, const void *frame, size_t len,
			bool outbound, bool crc_error, const char *comment)
{
	uint8_t zero[4] = { 0 };
	struct block head = { .n = 0 }, tail = { .n = 0 }, flags = { .n = 0 };
	size_t pad = (4 - len % 4) % 4;
	uint32_t total;

	put(&head, BLOCK_EPB, 4);
	put(&head, 0, 4); /* total length, set below */
	put(&head, 0, 4); /* interface */
	put(&head, ns >> 32, 4);
	put(&head, (uint32_t)ns, 4);
	put(&head, len, 4);
	put(&head, len, 4);
	put(&flags, (outbound ? EPB_OUTBOUND : EPB_INBOUND) | (crc_error ? EPB_CRC_ERROR : 0), 4);
	if (*comment)
		put_option(&tail, OPT_COMMENT, comment, strnlen(comment, URDMA_PCAPNG_COMMENT));
	put_option(&tail, OPT_EPB_FLAGS, flags.buf, flags.n);
	put_option(&tail, OPT_END, NULL, 0);
	put(&tail, 0, 4);
	total = (uint32_t)(head.n + len + pad + tail.n);
	/* The total length is at both ends. */
	for (size_t i = 0; i < 4; i++) {
		head.buf[4 + i] = (uint8_t)(total >> (8 * i));
		tail.buf[tail.n - 4 + i] = (uint8_t)(total >> (8 * i));
	}
	record(p,
	       (struct iovec[]){ { head.buf, head.n },
				 { (void *)(uintptr_t)frame, len },
				 { zero, pad },
				 { tail.buf, tail.n } },
	       4);
}

int urdma_pcapng_flush(struct urdma_pcapng *p)
{
	return p->out ? urdma_output_flush(p->out) : 0;
}

int urdma_pcapng_error(const struct urdma_pcapng *p)
{
	return p->out ? urdma_output_error(p->out) : 0;
}

int urdma_pcapng_close(struct urdma_pcapng *p)
{
	int ret;

	if (!p)
		return 0;
	ret = urdma_output_close(p->out);
	free(p);
	return ret;
}
