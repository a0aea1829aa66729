// SPDX-License-Identifier: Apache-2.0
#include "eth_rx_ref.h"

#include <stddef.h>
#include <string.h>

#include "ref_hash.h"
#include "urdma_hw.h"

static bool address_taken(const struct eth_cfg *cfg, const uint8_t *a)
{
	static const uint8_t bcast[6] = { 255, 255, 255, 255, 255, 255 };

	if (!(a[0] & 1)) {
		if (!memcmp(a, cfg->mac, 6))
			return true;
		for (int i = 0; i < 16; i++)
			if (cfg->uc_valid >> i & 1 && !memcmp(a, cfg->uc[i], 6))
				return true;
		return false;
	}
	if (!memcmp(a, bcast, 6) || cfg->ctrl & URDMA_RF_ETH_ALLMULTI)
		return true;
	uint8_t h = (uint8_t)ref_crc32(~0u, a, 6);

	return cfg->mc_hash[h / 64] >> (h % 64) & 1;
}

static void hash(const struct eth_cfg *cfg, const uint8_t *p, unsigned int type,
		 struct ref_frame *out)
{
	uint8_t in[36];
	unsigned int n, proto, ports;

	if (type == 0x0800 && p[0] >> 4 == 4 && cfg->rss & URDMA_RF_ETH_RSS_IPV4) {
		unsigned int frag = (p[6] << 8 | p[7]) & 0x3fff; /* offset and "more" */

		memcpy(in, p + 12, 8);
		memcpy(in + 8, p + 20, 4);
		n = 8;
		proto = p[9];
		ports = p[0] == 0x45 && !frag;
	} else if (type == 0x86dd && p[0] >> 4 == 6 && cfg->rss & URDMA_RF_ETH_RSS_IPV6) {
		memcpy(in, p + 8, 32);
		memcpy(in + 32, p + 40, 4);
		n = 32;
		proto = p[6];
		ports = 1;
	} else {
		return;
	}
	ports = ports && ((proto == 6 && cfg->rss & URDMA_RF_ETH_RSS_TCP) ||
			  (proto == 17 && cfg->rss & URDMA_RF_ETH_RSS_UDP));
	out->hash_type = ports ? 2 : 1;
	out->hash = ref_toeplitz(cfg->key, in, n + (ports ? 4 : 0));
}

void ref_receive(const struct eth_cfg *cfg, const uint8_t *data, unsigned int len,
		 struct ref_frame *out)
{
	uint8_t head[128] = { 0 }; /* what a frame lacks at its end counts as 0 */
	bool tag, strip;
	uint16_t sum;

	memset(out, 0, offsetof(struct ref_frame, data));
	memcpy(head, data, len < 128 ? len : 128);
	tag = head[12] == 0x81 && head[13] == 0;
	strip = tag && cfg->ctrl & URDMA_RF_ETH_VLAN_STRIP;
	if (!(cfg->ctrl & URDMA_RF_ETH_RX_ENABLE)) {
		out->fate = REF_FILTERED;
		return;
	}
	if (len < 60 || len - (tag ? 4 : 0) > 9216) {
		out->fate = REF_LENGTH;
		return;
	}
	out->fate = REF_FILTERED;
	uint16_t tci = (uint16_t)(head[14] << 8 | head[15]);
	uint16_t vid = tci & 0xfff;

	if (cfg->ctrl & URDMA_RF_ETH_VLAN_FILTER && tag && vid &&
	    !(cfg->vlan[vid / 64] >> (vid % 64) & 1))
		return;
	if (!(cfg->ctrl & URDMA_RF_ETH_PROMISC) && !address_taken(cfg, head))
		return;

	out->fate = REF_TAKEN;
	out->mcast = head[0] & 1;
	unsigned int at = tag ? 16 : 12;

	hash(cfg, head + at + 2, head[at] << 8 | head[at + 1], out);
	out->q = cfg->table[out->hash % 128] & 7;
	memcpy(out->data, data, len);
	out->len = len;
	if (strip) {
		out->vlan = 1;
		out->tci = tci;
		out->len -= 4;
		memcpy(out->data + 12, data + 16, len - 16);
	}
	sum = ref_fold(ref_sum16(0, out->data + 14, out->len - 14));
	/* the NIC's words have the low byte first */
	out->csum = (uint16_t)(sum << 8 | sum >> 8);
}
