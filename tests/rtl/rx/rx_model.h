/* SPDX-License-Identifier: Apache-2.0 */
/* C interface to the Verilated rx_test_top: one struct of inputs, one of outputs. Index pairs are
 * as in urdma_rx's ports. */
#ifndef RX_MODEL_H
#define RX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum qpc_op { QPC_RESET, QPC_RQ_PSN, QPC_SQ_PSN, QPC_ERR, QPC_QUERY };

/* operations of multicast groups, and their answers */
enum mc_op { MC_ATTACH, MC_DETACH, MC_LEAVE };
/* operations of SRQs */
enum sro_op { SRO_CREATE, SRO_MODIFY, SRO_QUERY, SRO_DESTROY };
enum mc_status { MC_OK, MC_EXISTS, MC_FULL, MC_NONE };

struct rx_ctl {
	uint8_t op;
	uint16_t qpn;
	uint32_t psn;
};

struct rx_sent {
	uint16_t qpn, wqe;
	uint32_t psn;
	uint8_t opcode, signaled, status;
	bool unrel;
	uint32_t len;
};

struct rx_cfg {
	uint16_t qpn;
	bool exists;
	uint8_t state, type;
	bool srq;
	uint16_t srqn, pd, send_cq, recv_cq;
	uint64_t rq_addr;
	uint8_t rq_log_entries, rq_log_stride, mtu, min_rnr;
	uint64_t sq_addr;
	uint8_t sq_log_entries, sq_log_stride, acc, max_dest, timeout, retry, rnr_retry;
	uint32_t dest_qpn, qkey;
	uint16_t pkey;
	uint8_t sgid, dgid[16];
};

struct rx_sro {
	uint8_t op;
	uint16_t srqn, limit, pd;
	uint64_t addr;
	uint8_t log_entries, log_stride;
	bool xrc;
	uint16_t xrcd, cqn;
};

struct rx_gid {
	uint8_t idx;
	bool valid, ipv4, vlan_valid;
	uint16_t vlan;
	uint8_t smac[6], gid[16];
};

struct rx_mrr {
	uint8_t status;
	uint64_t addr;
	uint16_t len;
	bool last;
};

struct rx_in {
	bool rst, mac_valid, mac_last, mac_err, mac_home;
	bool mco_valid;
	uint8_t mco_kind, mco_gid[16];
	uint16_t mco_qpn;
	uint8_t mac_data[64];
	uint64_t mac_keep;
	bool db_valid;
	uint16_t db_qpn, db_pi;
	bool sro_valid, srq_db_valid, srq_ev_ready;
	struct rx_sro sro;
	uint16_t srq_db_srqn, srq_db_pi;
	bool qpc_valid, aqc_valid;
	struct rx_ctl qpc, aqc;
	bool fence_req, cfg_we, gid_we;
	struct rx_cfg cfg;
	struct rx_gid gid;
	uint8_t qpr_ready;
	bool sync_req;
	uint64_t cycles;
	bool mro_ready, mro_rsp_valid, reads_over;
	uint8_t mro_rsp;
	bool sent_valid;
	struct rx_sent sent;
	bool made_valid, made_asks;
	uint32_t made_qpn, made_psn;
	bool acked_ready, ack_ready;
	uint8_t mr_ready, mrr_valid;
	struct rx_mrr mrr[2];
	uint8_t rd_ready, rdr_valid;
	bool rdr_last, rdr_err;
	uint8_t rdr_data[64];
	uint8_t wr_ready;
	uint8_t cqe_ready, err_ready;
};

struct rx_out {
	bool init_done, busy, db_ready, qpc_ready, aqc_ready, fence_done;
	bool sro_ready, srq_db_ready, srq_ev_valid;
	uint16_t sro_ci, sro_pi, sro_limit;
	uint8_t srq_ev_type;
	uint32_t srq_ev_obj;
	uint32_t qpc_psn, aqc_psn;
	uint16_t qpc_pi, qpc_ci, aqc_pi, aqc_ci;
	bool sync_done, timer_armed, mro_valid, inv_valid;
	uint32_t timer_cycles, mro_key, inv_key;
	uint8_t mro_op;
	uint16_t mro_pd, mro_qpn;
	bool sent_ready, made_ready, acked_valid, ack_valid, ack_dup;
	uint8_t acked_kind, acked_rd, ack_kind;
	uint32_t ack_key, ack_len;
	uint16_t ack_pd;
	uint64_t ack_va;
	uint16_t acked_qpn, acked_wqe, ack_qpn;
	uint32_t acked_una, ack_psn, ack_msn;
	uint8_t ack_syndrome;
	uint8_t mr_valid, mr_ring, mrr_ready;
	struct {
		uint64_t pt_addr, va;
		uint32_t key;
		uint16_t pd, qpn, len;
		uint8_t acc;
		bool whole, aligned;
	} mr[2];
	uint8_t rd_valid, wr_valid, wr_last; /* bit 0: WQEs, payload; 1: ATOMICs */
	uint64_t rd_addr[2], wr_addr[2];
	uint16_t rd_len[2], wr_len[2];
	uint8_t wr_data[2][64];
	uint8_t cqe_valid, cqe_solicited, err_valid;
	struct {
		uint16_t cqn;
		uint64_t w[4];
	} cqe[2];
	struct {
		uint16_t qpn;
		uint8_t event;
		bool only;
	} err[2];
	uint64_t cnt;
	/* counters of QPs: a packet; a CQE with an error. hit: bits in the order of URDMA_QCNT_* */
	bool qc_rx_valid, qc_resp_valid;
	uint16_t qc_rx_qpn, qc_rx_bytes, qc_rx_hit, qc_resp_qpn, qc_resp_hit;
	uint8_t rx_bytes;
	/* lanes: packed structs of urdma_trace_pkg */
	struct rx_lane {
		bool valid;
		uint32_t w[3];
	} trace_acked, trace_in, trace_rsp, trace_req, trace_put, trace_bad, trace_voided,
		trace_mute;
	bool class_valid, class_rdma, loop_room;
	bool mco_ready, mc_any;
	uint8_t mco_status;
};

struct rx_model;

struct rx_model *rx_model_new(void);
void rx_model_free(struct rx_model *m);
/* Let the inputs settle and read the outputs of this cycle; then the clock edge. */
void rx_model_settle(struct rx_model *m, const struct rx_in *in, struct rx_out *out);
void rx_model_edge(struct rx_model *m);

#ifdef __cplusplus
}
#endif

#endif
