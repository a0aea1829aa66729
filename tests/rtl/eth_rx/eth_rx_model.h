/* SPDX-License-Identifier: Apache-2.0 */
/* C interface to the Verilated eth_rx_test_top: one struct of inputs, one of outputs. */
#ifndef ETH_RX_MODEL_H
#define ETH_RX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ETH_QUEUES 8

/* registers: of the filters and of the hash */
struct eth_cfg {
	uint8_t ctrl, rss;
	uint8_t key[40], mac[6];
	uint16_t uc_valid;
	uint8_t uc[16][6];
	uint64_t mc_hash[4], vlan[64];
	uint8_t table[128];
};

struct eth_in {
	bool rst;
	const struct eth_cfg *
		cfg; /* set when it has changed, else NULL; vlan_word alone is written each cycle */
	uint8_t vlan_word;
	uint64_t vlan_bits;
	uint8_t enable;
	uint64_t base[ETH_QUEUES];
	uint8_t log_entries[ETH_QUEUES], buf64[ETH_QUEUES];
	bool db_valid;
	uint8_t db_q;
	uint16_t db_pi;
	bool rx_valid, rx_last, rx_err, class_valid, class_rdma, rdma_first;
	uint8_t rx_data[64];
	uint64_t rx_keep;
	bool rd_ready, rdr_valid, rdr_err;
	uint8_t rdr_data[64];
	bool wr_ready, rxc_ready;
};

struct eth_rxc {
	uint8_t q, vlan, hash_type, bufs;
	uint16_t tci, len, csum, index;
	uint32_t hash;
};

struct eth_out {
	bool busy;
	uint8_t active, err;
	uint16_t ci[ETH_QUEUES];
	bool rd_valid, wr_valid, wr_last, rxc_valid;
	uint64_t rd_addr, wr_addr;
	uint16_t rd_len, wr_len;
	uint8_t wr_data[64];
	struct eth_rxc rxc;
	uint64_t cnt;
	/* lanes: packed structs of urdma_trace_pkg */
	bool trace_eth_in_valid, trace_eth_buf_valid;
	uint32_t trace_eth_in, trace_eth_buf;
};

struct eth_model;

struct eth_model *eth_model_new(void);
void eth_model_free(struct eth_model *m);
/* Let the inputs settle and read the outputs of this cycle; then the clock edge. */
void eth_model_settle(struct eth_model *m, const struct eth_in *in, struct eth_out *out);
void eth_model_edge(struct eth_model *m);

#ifdef __cplusplus
}
#endif

#endif
