// SPDX-License-Identifier: Apache-2.0
tx/urdma_tx_pkg.sv
tx/urdma_tx_sched.sv
tx/urdma_tx_fetch.sv
tx/urdma_tx_wqe_check.sv
tx/urdma_tx_seg.sv
tx/urdma_tx_local.sv
tx/urdma_tx_dest.sv
tx/urdma_tx_merge.sv
tx/urdma_tx_read.sv
tx/urdma_tx_keys.sv
tx/urdma_tx_gather.sv
tx/urdma_tx_commit.sv
tx/urdma_tx_resp.sv
tx/urdma_tx_hdr.sv
tx/urdma_tx_frame.sv
tx/urdma_tx.sv
