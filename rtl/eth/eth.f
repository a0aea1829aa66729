// SPDX-License-Identifier: Apache-2.0
eth/urdma_mac_tx.sv
