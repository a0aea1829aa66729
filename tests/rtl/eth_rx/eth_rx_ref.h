/* SPDX-License-Identifier: Apache-2.0 */
/* The reference for a received frame, written from docs/hardware-interface.md, section 12. */
#ifndef ETH_RX_REF_H
#define ETH_RX_REF_H

#include "eth_rx_model.h"

#define FRAME_MAX 20000

enum ref_fate { REF_LENGTH, REF_FILTERED, REF_TAKEN };

struct ref_frame {
	enum ref_fate fate;
	bool mcast;
	uint8_t q, vlan, hash_type;
	uint16_t tci, csum;
	uint32_t hash;
	unsigned int len; /* as delivered */
	uint8_t data[FRAME_MAX];
};

void ref_receive(const struct eth_cfg *cfg, const uint8_t *data, unsigned int len,
		 struct ref_frame *out);

#endif
