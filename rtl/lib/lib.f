// SPDX-License-Identifier: Apache-2.0
lib/urdma_crc32_pkg.sv
lib/urdma_arb_rr.sv
lib/urdma_crc32.sv
lib/urdma_fifo.sv
lib/urdma_ram_sdp.sv
lib/urdma_ram_be.sv
lib/urdma_ram_live.sv
lib/urdma_queue_once.sv
lib/urdma_reorder.sv
lib/urdma_gather.sv
lib/urdma_skid.sv
lib/urdma_window.sv
lib/urdma_timer.sv
lib/urdma_clk.sv
lib/urdma_reset.sv
lib/urdma_hold.sv
