// SPDX-License-Identifier: Apache-2.0
eth/urdma_frame_mux.sv
eth/urdma_loopback.sv
eth/urdma_mac_tx.sv
eth/urdma_eth_tx_pkg.sv
eth/urdma_eth_tx_desc.sv
eth/urdma_eth_tx_read.sv
eth/urdma_eth_tx_gather.sv
eth/urdma_eth_tx_out.sv
eth/urdma_eth_tx_done.sv
eth/urdma_eth_tx.sv
eth/urdma_eth_regs.sv
eth/urdma_eth_cq.sv
eth/urdma_eth.sv
