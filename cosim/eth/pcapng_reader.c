// SPDX-License-Identifier: Apache-2.0
// pcapng reader. Section numbers are those of draft-ietf-opsawg-pcapng. Files are not trusted.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eth/pcapng.h"

#define BLOCK_SHB 0x0a0d0d0au /* section header, 4.1; the same in both byte orders */
#define BLOCK_IDB 1u	      /* interface description, 4.2 */
#define BLOCK_SPB 3u	      /* simple packet, 4.4 */
#define BLOCK_EPB 6u	      /* enhanced packet, 4.3 */

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define PCAP_MAGIC	 0xa1b2c3d4u /* the older format, which has four variants */
#define PCAP_NS_MAGIC	 0xa1b23c4du

#define OPT_END		0u
#define OPT_COMMENT	1u
#define OPT_IF_TSRESOL	9u
#define OPT_IF_TSOFFSET 14u
#define OPT_EPB_FLAGS	2u

#define LINKTYPE_ETHERNET 1u

#define EPB_DIRECTION 3u
#define EPB_INBOUND   1u
#define EPB_OUTBOUND  2u
#define EPB_CRC_ERROR (1u << 24)

#define MAX_BLOCK      (UINT32_C(16) << 20)
#define MAX_INTERFACES 4096u

struct interface {
	bool ethernet;
	uint8_t tsresol;
	int64_t tsoffset;
	uint32_t snap;
};

struct urdma_pcapng_reader {
	FILE *f;
	bool swap;
	uint8_t *block; /* the body, without type and lengths */
	uint32_t len, cap;
	struct interface *ifc;
	unsigned int n_ifc;
	uint64_t last_ns;
};

static int __attribute__((format(printf, 3, 4))) say(char *error, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, size, fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

static uint16_t get16(const struct urdma_pcapng_reader *r, const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return r->swap ? __builtin_bswap16(v) : v;
}

static uint32_t get32(const struct urdma_pcapng_reader *r, const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return r->swap ? __builtin_bswap32(v) : v;
}

static uint64_t get64(const struct urdma_pcapng_reader *r, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return r->swap ? __builtin_bswap64(v) : v;
}

/*
 * Finds an option of at least *len bytes from `at` to the end of the block. Returns its value and
 * sets *len to its length.
 */
static const uint8_t *find_option(const struct urdma_pcapng_reader *r, uint32_t at,
				  unsigned int code, uint32_t *len)
{
	while (at + 4 <= r->len) {
		uint32_t c = get16(r, r->block + at), n = get16(r, r->block + at + 2);

		at += 4;
		if (c == OPT_END || n > r->len - at)
			break;
		if (c == code && n < *len)
			break;
		if (c == code) {
			*len = n;
			return r->block + at;
		}
		at += (n + 3) / 4 * 4;
	}
	return NULL;
}

static const uint8_t *option(const struct urdma_pcapng_reader *r, uint32_t at, unsigned int code,
			     uint32_t len)
{
	return find_option(r, at, code, &len);
}

/* 1, or 0 at the end of the file. */
static int next_block(struct urdma_pcapng_reader *r, uint32_t *type, char *error, size_t size)
{
	long where = ftell(r->f);
	uint8_t head[12], tail[4];
	uint32_t total, more = 0;
	size_t n;

	n = fread(head, 1, 8, r->f);
	if (!n && feof(r->f))
		return 0;
	if (n != 8)
		goto cut;
	*type = get32(r, head);
	if (*type == BLOCK_SHB) {
		if (fread(head + 8, 1, 4, r->f) != 4)
			goto cut;
		r->swap = false;
		if (get32(r, head + 8) != BYTE_ORDER_MAGIC)
			r->swap = true;
		if (get32(r, head + 8) != BYTE_ORDER_MAGIC)
			return say(error, size, "byte %ld: a section of unknown byte order", where);
		more = 4;
		r->n_ifc = 0;
	} else if (!where) {
		const char *pcap = "";

		for (unsigned int i = 0; i < 2; i++) {
			r->swap = i;
			if (get32(r, head) == PCAP_MAGIC || get32(r, head) == PCAP_NS_MAGIC)
				pcap = ": it is an older pcap file; editcap -F pcapng makes one of "
				       "it";
		}
		return say(error, size, "not a pcapng file%s", pcap);
	}
	total = get32(r, head + 4);
	if (total < 12 + more || total % 4 || total > MAX_BLOCK)
		return say(error, size, "byte %ld: a block of impossible length %u", where, total);
	r->len = total - 12;
	if (r->len > r->cap) {
		uint8_t *block = realloc(r->block, r->len);

		if (!block) {
			say(error, size, "out of memory");
			return -ENOMEM;
		}
		r->block = block;
		r->cap = r->len;
	}
	memcpy(r->block ? r->block : tail, head + 8, more);
	if (r->len > more && fread(r->block + more, 1, r->len - more, r->f) != r->len - more)
		goto cut;
	if (fread(tail, 1, 4, r->f) != 4)
		goto cut;
	if (get32(r, tail) != total)
		return say(error, size, "byte %ld: the two lengths of a block differ", where);
	return 1;
cut:
	if (ferror(r->f)) {
		say(error, size, "%s", strerror(errno));
		return -EIO;
	}
	return say(error, size, "byte %ld: the file ends inside a block", where);
}

static int add_interface(struct urdma_pcapng_reader *r, char *error, size_t size)
{
	struct interface *ifc;
	const uint8_t *p;

	if (r->len < 8 || r->n_ifc == MAX_INTERFACES)
		return say(error, size, "a bad description of an interface");
	ifc = realloc(r->ifc, (r->n_ifc + 1) * sizeof(*ifc));
	if (!ifc) {
		say(error, size, "out of memory");
		return -ENOMEM;
	}
	r->ifc = ifc;
	ifc += r->n_ifc++;
	ifc->ethernet = get16(r, r->block) == LINKTYPE_ETHERNET;
	ifc->snap = get32(r, r->block + 4);
	p = option(r, 8, OPT_IF_TSRESOL, 1);
	ifc->tsresol = p ? *p : 6;
	p = option(r, 8, OPT_IF_TSOFFSET, 8);
	ifc->tsoffset = p ? (int64_t)get64(r, p) : 0;
	return 0;
}

static uint64_t to_ns(const struct interface *ifc, uint64_t stamp)
{
	unsigned int n = ifc->tsresol & 0x7f;
	unsigned __int128 ns = (unsigned __int128)stamp * 1000000000u;

	if (ifc->tsresol & 0x80)
		ns >>= n;
	else
		while (n--)
			ns /= 10;
	return (uint64_t)ns + (uint64_t)ifc->tsoffset * UINT64_C(1000000000);
}

static int take_packet(struct urdma_pcapng_reader *r, uint32_t type,
		       struct urdma_pcapng_packet *packet, char *error, size_t size)
{
	uint32_t head = type == BLOCK_EPB ? 20 : 4, ifc = 0, len, orig, flags, n = 0;
	const uint8_t *p;

	if (r->len < head)
		return say(error, size, "a packet's block is too short");
	if (type == BLOCK_EPB)
		ifc = get32(r, r->block);
	if (ifc >= r->n_ifc)
		return say(error, size, "a packet of an interface that is not described");
	memset(packet, 0, sizeof(*packet));
	orig = get32(r, r->block + head - 4);
	if (type == BLOCK_EPB) {
		len = get32(r, r->block + 12);
		r->last_ns = to_ns(&r->ifc[ifc],
				   (uint64_t)get32(r, r->block + 4) << 32 | get32(r, r->block + 8));
	} else {
		/* The packet has no time stamp. */
		len = r->ifc[ifc].snap && orig > r->ifc[ifc].snap ? r->ifc[ifc].snap : orig;
	}
	if (len > r->len - head)
		return say(error, size, "a packet is longer than its block");
	packet->ns = r->last_ns;
	packet->data = r->block + head;
	packet->len = len;
	packet->truncated = len != orig;
	packet->ethernet = r->ifc[ifc].ethernet;
	p = type == BLOCK_EPB ? option(r, head + (len + 3) / 4 * 4, OPT_EPB_FLAGS, 4) : NULL;
	flags = p ? get32(r, p) : 0;
	packet->inbound = (flags & EPB_DIRECTION) == EPB_INBOUND;
	packet->outbound = (flags & EPB_DIRECTION) == EPB_OUTBOUND;
	packet->crc_error = flags & EPB_CRC_ERROR;
	p = type == BLOCK_EPB ? find_option(r, head + (len + 3) / 4 * 4, OPT_COMMENT, &n) : NULL;
	if (p)
		memcpy(packet->comment, p, n < URDMA_PCAPNG_COMMENT ? n : URDMA_PCAPNG_COMMENT);
	return 1;
}

int urdma_pcapng_read(struct urdma_pcapng_reader *r, struct urdma_pcapng_packet *packet,
		      char *error, size_t size)
{
	uint32_t type = 0;
	int ret;

	for (;;) {
		ret = next_block(r, &type, error, size);
		if (ret <= 0)
			return ret;
		if (type == BLOCK_EPB || type == BLOCK_SPB)
			return take_packet(r, type, packet, error, size);
		ret = type == BLOCK_IDB ? add_interface(r, error, size) : 0;
		if (ret)
			return ret;
	}
}

int urdma_pcapng_reader_open(const char *path, struct urdma_pcapng_reader **reader, char *error,
			     size_t size)
{
	struct urdma_pcapng_reader *r = calloc(1, sizeof(*r));
	int ret;

	if (!r) {
		say(error, size, "out of memory");
		return -ENOMEM;
	}
	r->f = fopen(path, "rb");
	if (!r->f) {
		ret = -errno;
		say(error, size, "%s", strerror(errno));
		free(r);
		return ret;
	}
	*reader = r;
	return 0;
}

void urdma_pcapng_rewind(struct urdma_pcapng_reader *r)
{
	rewind(r->f);
	r->n_ifc = 0;
	r->last_ns = 0;
}

void urdma_pcapng_reader_close(struct urdma_pcapng_reader *r)
{
	if (!r)
		return;
	fclose(r->f);
	free(r->block);
	free(r->ifc);
	free(r);
}
