// SPDX-License-Identifier: Apache-2.0
eth/urdma_loopback.sv
eth/urdma_mac_tx.sv
