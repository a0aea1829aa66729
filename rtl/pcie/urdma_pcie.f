// SPDX-License-Identifier: Apache-2.0
urdma_pkg.sv
pcie/urdma_pcie_pkg.sv
lib/urdma_arb_rr.sv
lib/urdma_fifo.sv
lib/urdma_ram_sdp.sv
lib/urdma_ram_be.sv
lib/urdma_skid.sv
pcie/urdma_devmem.sv
pcie/urdma_pcie_cq.sv
pcie/urdma_dma_rd.sv
pcie/urdma_dma_wr.sv
pcie/urdma_rq_mux.sv
pcie/urdma_wr_order.sv
pcie/urdma_pcie.sv
