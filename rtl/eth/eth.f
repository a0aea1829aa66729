// SPDX-License-Identifier: Apache-2.0
eth/urdma_loopback.sv
eth/urdma_mac_tx.sv
eth/urdma_eth_rx_pkg.sv
eth/urdma_eth_toeplitz.sv
eth/urdma_eth_rx_parse.sv
eth/urdma_eth_rx_desc.sv
eth/urdma_eth_rx_place.sv
eth/urdma_eth_rx.sv
