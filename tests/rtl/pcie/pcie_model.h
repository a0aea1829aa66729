/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C interface to the Verilated urdma_pcie. A cycle is: set the inputs, pcie_model_eval() (outputs
 * before the clock edge), read the outputs, pcie_model_edge().
 */
#ifndef PCIE_MODEL_H
#define PCIE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RD_N 7
#define WR_N 5

/* One beat of a PG213 stream; user holds the low 192 bits of tuser. */
struct axis_beat {
	uint8_t data[64];
	uint16_t keep;
	uint32_t user[6];
	bool last;
	bool valid;
};

struct dma_rd_req {
	bool valid;
	uint64_t addr;
	uint32_t len;
};

struct dma_wr_beat {
	bool valid;
	uint64_t addr;
	uint32_t len;
	uint8_t data[64];
	bool last;
};

struct pcie_in {
	bool rst;
	uint32_t cycles; /* the NIC's time */
	struct axis_beat cq, rc;
	bool cc_ready, rq_ready;
	uint8_t max_payload, max_read_req;
	bool bus_master_en;
	bool stop;
	bool irq_ready;
	bool reg_req_ready, reg_rsp_valid;
	uint64_t reg_rsp_data;
	bool db_ready;
	struct dma_rd_req rd[RD_N];
	struct dma_wr_beat wr[WR_N];
	bool irq_req_valid;
	uint8_t irq_req_vec;
};

struct pcie_out {
	bool cq_ready, rc_ready;
	struct axis_beat cc, rq;
	bool irq_valid;
	uint8_t irq_vec;
	bool reg_req_valid, reg_write;
	uint16_t reg_addr;
	uint64_t reg_wdata;
	uint8_t reg_strb;
	bool db_valid;
	uint16_t db_page, db_offset;
	uint64_t db_data;
	uint32_t rd_ready, rd_rsp_valid;
	uint8_t rd_data[64];
	bool rd_last, rd_err;
	uint32_t wr_ready;
	bool irq_req_ready;
	bool wr_open;
	bool busy;
	bool timer_armed;
	uint32_t timer_cycles;
	/* counter pulses */
	bool rd_tlp, wr_tlp, dma_drop, cpl_err, cpl_timeout, cpl_unexpected, db_bad, mmio_bad;
};

struct pcie_model;

struct pcie_model *pcie_model_new(void);
void pcie_model_free(struct pcie_model *m);
void pcie_model_eval(struct pcie_model *m, const struct pcie_in *in, struct pcie_out *out);
void pcie_model_edge(struct pcie_model *m);

#ifdef __cplusplus
}
#endif

#endif
