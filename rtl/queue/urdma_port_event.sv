// SPDX-License-Identifier: Apache-2.0
// EV_PORT: reports to EQ 0 that the link has changed.
//
//  eq_set    EQ 0 is created (eq_exists 1) or destroyed. Its owner reads STATUS after that, so only later changes are
//            reported.
//  ev_*      to urdma_eq. If the link changes while an event waits, the change is reported after it, or not at all if the
//            link is back in its previous state

`resetall
`default_nettype none

module urdma_port_event
  import urdma_pkg::*, urdma_hw_pkg::*;
(
  input  wire logic     clk,
  input  wire logic     rst,
  output      logic     busy,

  input  wire logic     link_up,
  input  wire logic     eq_set,
  input  wire logic     eq_exists,

  output      logic     ev_valid,
  output      eqe_req_t ev,
  input  wire logic     ev_ready
);

  logic live_reg, told_reg, wait_reg, differs;

  assign differs = live_reg && link_up != told_reg;
  assign ev_valid = wait_reg;
  assign ev = '{eqn: '0, ev_type: 8'(URDMA_EV_PORT), obj: 24'd1, data: 24'(told_reg)};
  assign busy = wait_reg || differs;

  always_ff @(posedge clk) begin
    if (rst) begin
      live_reg <= 1'b0;
      told_reg <= 1'b0;
      wait_reg <= 1'b0;
    end else begin
      if (wait_reg) begin
        if (ev_ready) wait_reg <= 1'b0;
      end else if (differs) begin
        wait_reg <= 1'b1;
        told_reg <= link_up;
      end
      if (eq_set) live_reg <= eq_exists;
      if (eq_set && !eq_exists) wait_reg <= 1'b0;  // no EQ to report to
      if (eq_set && !wait_reg) told_reg <= link_up;
    end
  end

endmodule

`resetall
