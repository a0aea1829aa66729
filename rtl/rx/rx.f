// SPDX-License-Identifier: Apache-2.0
rx/urdma_rx_pkg.sv
rx/urdma_rx_parse.sv
rx/urdma_rx_lookup.sv
rx/urdma_rx_resp.sv
rx/urdma_rx_wqe.sv
rx/urdma_rx_place.sv
rx/urdma_rx_timer.sv
rx/urdma_rx_cmpl_pkg.sv
rx/urdma_rx_told.sv
rx/urdma_rx_decide.sv
rx/urdma_rx_walk.sv
rx/urdma_rx_settle.sv
rx/urdma_rx_cmpl.sv
rx/urdma_rx_atomic.sv
rx/urdma_rx.sv
