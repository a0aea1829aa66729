/* SPDX-License-Identifier: Apache-2.0 */
/* C interface to the Verilated urdma_tx: inputs, outputs of a cycle, and the clock. */
#ifndef TX_MODEL_H
#define TX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tx_cfg {
	bool valid;
	uint8_t state;
	uint8_t qp_type; /* URDMA_QPT_* */
	uint32_t qkey;
	bool sig_all;
	bool no_loop; /* its datagrams to a group are not looped back */
	bool priv;
	uint8_t max_rd;
	uint16_t pd;
	uint64_t sq_addr;
	uint8_t log_entries;
	uint8_t log_stride;
	uint8_t mtu;
	uint32_t dest_qpn;
	uint16_t pkey;
	uint8_t sgid;
	uint8_t dmac[6];
	uint8_t dgid[16];
	uint8_t tclass;
	uint8_t hop_limit;
	uint8_t pcp;
	uint32_t flow_label;
	uint16_t udp_sport;
};

struct tx_gid {
	bool valid;
	bool ipv4;
	bool vlan_valid;
	uint16_t vlan;
	uint8_t smac[6];
	uint8_t gid[16];
};

struct tx_mr_rsp {
	uint8_t status;
	uint64_t addr;
	uint16_t len;
	bool last;
};

enum { QPC_RESET, QPC_RQ_PSN, QPC_SQ_PSN, QPC_ERR, QPC_QUERY, QPC_SQD, QPC_SQ_RUN };
enum { AK_PROGRESS, AK_RETRY, AK_HOLD };
enum { RSP_ACK, RSP_READ, RSP_ATOMIC };
enum { MRO_REG = 2, MRO_INV_LOCAL, MRO_INV_REMOTE, MRO_BIND };
enum { MRO_OK, MRO_BAD_KEY, MRO_ENDED = 6 };
enum { MR_OK, MR_BAD_KEY, MR_BAD_PD, MR_BAD_RANGE, MR_BAD_ACCESS, MR_DMA_ERR };

struct tx_in {
	bool db_valid;
	uint16_t db_qpn, db_pi;
	bool qpc_valid;
	uint8_t qpc_op;
	uint16_t qpc_qpn;
	uint32_t qpc_psn;
	bool fence_req;
	bool qpr_req_ready, qpr_rsp_valid;
	struct tx_cfg cfg;
	struct tx_gid gid;
	bool sent_ready, made_ready;
	bool acked_valid;
	uint8_t acked_kind, acked_rd_done;
	uint16_t acked_qpn, acked_wqe_done;
	uint32_t acked_first_psn, acked_una_psn;
	bool ack_req_valid, ack_req_dup;
	uint16_t ack_req_qpn;
	uint32_t ack_req_psn, ack_req_msn;
	uint8_t ack_req_syndrome, ack_req_kind;
	uint16_t ack_req_pd;
	uint32_t ack_req_key, ack_req_len;
	uint64_t ack_req_va;
	bool err_ready, mro_ready, mro_rsp_valid, sync_done, inv_valid;
	uint8_t mro_rsp;
	uint32_t inv_key;
	bool mr_req_ready[2], mr_rsp_valid[2];
	struct tx_mr_rsp mr_rsp[2];
	bool rd_req_ready[2], rd_rsp_valid[2];
	uint8_t rd_data[64];
	bool rd_last, rd_err;
	bool mac_ready;
};

struct tx_out {
	bool init_done, busy;
	bool db_ready, qpc_ready, fence_done;
	uint32_t qpc_rsp_psn;
	uint16_t qpc_rsp_pi;
	bool qpc_rsp_draining;
	bool err_valid, err_only_event;
	uint16_t err_qpn;
	uint8_t err_event;
	bool mro_valid, mro_zero_based, sync_req, reads_over;
	uint8_t mro_op, mro_acc, mro_pt_levels, mro_pt_page_shift;
	uint32_t mro_key, mro_lkey;
	uint16_t mro_pd, mro_qpn;
	uint64_t mro_va, mro_len, mro_pt_addr;
	bool qpr_req_valid;
	uint16_t qpr_req_qpn;
	uint8_t gid_idx;
	bool sent_valid, sent_signaled, sent_resent, sent_unrel;
	uint16_t sent_qpn, sent_wqe;
	uint32_t sent_psn, sent_len;
	uint8_t sent_opcode, sent_status;
	bool made_valid, made_asks;
	uint16_t made_qpn;
	uint32_t made_psn;
	bool acked_ready, ack_req_ready;
	bool mr_req_valid[2], mr_ring[2];
	uint64_t mr_pt_addr, mr_va[2];
	uint32_t mr_key;
	uint16_t mr_pd, mr_qpn, mr_len[2];
	uint8_t mr_acc;
	bool mr_rsp_ready[2];
	bool rd_req_valid[2];
	uint64_t rd_addr[2];
	uint16_t rd_len[2];
	bool mac_valid, mac_last, mac_err, mac_loop;
	uint8_t mac_data[64];
	uint64_t mac_keep;
	uint64_t cnt;
	bool qc_valid, qc_pkt, qc_bytes, qc_again;
	uint32_t qc_qpn, qc_len;
	/* lanes: packed structs of urdma_trace_pkg */
	struct tx_lane {
		bool valid;
		uint32_t w[3];
	} turn, wqe, pkt, full, ans, out;
};

struct tx_model;

/* After reset and the sweep of its memories. */
struct tx_model *tx_model_new(void);
void tx_model_free(struct tx_model *m);
/* Put in on the inputs, settle, read the outputs of this cycle. */
void tx_model_eval(struct tx_model *m, const struct tx_in *in, struct tx_out *out);
/* The clock edge that ends the cycle. */
void tx_model_clock(struct tx_model *m);

#ifdef __cplusplus
}
#endif

#endif
