// SPDX-License-Identifier: Apache-2.0
eth/urdma_loopback.sv
eth/urdma_mac_tx.sv
eth/urdma_frame_mux.sv
eth/urdma_eth_regs.sv
eth/urdma_eth_cq.sv
eth/urdma_eth.sv
