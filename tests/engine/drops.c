// SPDX-License-Identifier: Apache-2.0
#include "drops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "counters.h"
#include "eth/pcapng.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * more: the counter also counts frames that are not dropped. RX_SEQ_ERR counts a UC packet that
 * begins a message after a gap. A UC packet after a gap may also be refused for another reason,
 * which its comment then names.
 */
static const struct {
	unsigned int index;
	bool more;
} counters[] = {
	{ URDMA_CNT_RX_MAC_ERR, false },    { URDMA_CNT_RX_ICRC_ERR, false },
	{ URDMA_CNT_RX_MALFORMED, false },  { URDMA_CNT_RX_DROP_FULL, false },
	{ URDMA_CNT_RX_NO_QP, false },	    { URDMA_CNT_RX_SEQ_ERR, true },
	{ URDMA_CNT_RX_READ_DROP, false },  { URDMA_CNT_RX_ACK_GHOST, false },
	{ URDMA_CNT_RX_DROP_UNREL, false }, { URDMA_CNT_RX_DROP_NO_WQE, false },
	{ URDMA_CNT_RX_BAD_QKEY, false },   { URDMA_CNT_ETH_RX_FILTERED, false },
	{ URDMA_CNT_ETH_RX_NO_BUF, false }, { URDMA_CNT_ETH_RX_DROP_FULL, false },
	{ URDMA_CNT_ETH_RX_LENGTH, false },
};

/* The number of drops in the part of the comment that ends here: a datagram to a group is dropped
 * once for each member. */
static unsigned int members(const char *comment, const char *end)
{
	unsigned int n = 1;

	while (end > comment && end[-1] != ';')
		end--;
	if (sscanf(end, " dropped for %u", &n) != 1)
		(void)sscanf(end, " for %u", &n);
	return n;
}

/* Counts the drops that name each counter. */
static void count_comments(struct rig *rig, const char *path, uint64_t *n)
{
	struct urdma_pcapng_reader *reader;
	struct urdma_pcapng_packet packet;
	char error[160], name[64];

	rig_check(rig, urdma_pcapng_reader_open(path, &reader, error, sizeof(error)), path);
	while (urdma_pcapng_read(reader, &packet, error, sizeof(error)) > 0) {
		for (unsigned int i = 0; i < COUNT(counters); i++) {
			const char *at = packet.comment;

			snprintf(name, sizeof(name), "(%s)", urdma_counter_name(counters[i].index));
			while ((at = strstr(at, name))) {
				n[i] += members(packet.comment, at);
				at += strlen(name);
			}
		}
	}
	urdma_pcapng_reader_close(reader);
}

static bool is_uc(const struct rig *rig)
{
	bool uc = rig->config.type == URDMA_QPT_UC;

	for (unsigned int i = 0; rig->config.types && i < rig->config.qps; i++)
		uc |= rig->config.types[i] == URDMA_QPT_UC;
	return uc;
}

bool drops_check(struct rig *rig, bool home)
{
	bool good = true;

	if (rig->config.loopback)
		return true;
	urdma_cosim_flush_captures(rig->cosim);
	for (unsigned int side = 0; side < rig->config.cosim.n_nics; side++) {
		uint64_t n[COUNT(counters)] = { 0 };
		char path[512];

		snprintf(path, sizeof(path), "%s/urdma%u.pcapng", rig->config.capture, side);
		count_comments(rig, path, n);
		for (unsigned int i = 0; i < COUNT(counters); i++) {
			uint64_t counted = urdma_eh_counter(rig->side[side].eh, counters[i].index);
			const char *name = urdma_counter_name(counters[i].index);

			if (n[i])
				printf("drops: %s %" PRIu64 "\n", name, n[i]);
			if (n[i] == counted ||
			    ((home || (counters[i].more && is_uc(rig))) && n[i] < counted))
				continue;
			fprintf(stderr, "%s: side %u counts %s %" PRIu64 ", %" PRIu64 " comments\n",
				path, side, name, counted, n[i]);
			good = false;
		}
		if (!urdma_cosim_unknown_fates(rig->cosim, side))
			continue;
		fprintf(stderr, "%s: the fate of %" PRIu64 " frames is not known\n", path,
			urdma_cosim_unknown_fates(rig->cosim, side));
		good = false;
	}
	return good;
}
