// SPDX-License-Identifier: Apache-2.0
// Completions of the transmit rings. At most one waits for each queue; it absorbs later ones. Queues take turns.
//
//  fin    a frame is complete: its ci is the queue's new ci
//  told   the completion side has accepted all completions of the queue
// 2 cycles from fin to txc.

`resetall
`default_nettype none

module urdma_eth_tx_done
  import urdma_pkg::*;
  import urdma_eth_tx_pkg::*;
(
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    busy,

  input  wire logic [ETHQ_N-1:0]       start,        // pulse: from index 0 again
  input  wire logic                    fin_valid,
  input  wire etx_fin_t                    fin,
  output      logic [ETHQ_N-1:0][15:0] ci,
  output      logic [ETHQ_N-1:0]       told,

  output      logic                    txc_valid,
  output      eth_txc_t                txc,
  input  wire logic                    txc_ready
);

  logic [ETHQ_N-1:0] wait_reg, bad_reg;
  logic [ETHQ_N-1:0][15:0] ci_reg;
  logic txc_valid_reg, take, grant_valid;
  logic [ETHQ_N-1:0] grant;
  logic [ETHQ_W-1:0] grant_idx;
  eth_txc_t txc_reg;

  urdma_arb_rr #(.N(ETHQ_N)) arb (
    .clk, .rst, .req(wait_reg), .advance(take), .grant, .grant_idx, .grant_valid
  );
  assign take = grant_valid && (!txc_valid_reg || txc_ready);
  assign txc_valid = txc_valid_reg;
  assign txc = txc_reg;
  assign ci = ci_reg;
  assign busy = txc_valid_reg || (wait_reg != '0);

  always_comb begin
    told = ~wait_reg;
    if (txc_valid_reg) told[txc_reg.q] = 1'b0;
  end

  always_ff @(posedge clk) begin
    if (take) txc_reg <= '{q: grant_idx, err: bad_reg[grant_idx], ci: ci_reg[grant_idx]};
    // the condition spares the simulator cycles in which no state can change
    if (rst || fin_valid || take || (start != '0)) for (int i = 0; i < ETHQ_N; i++) begin
      if (fin_valid && (fin.q == ETHQ_W'(i))) bad_reg[i] <= fin.bad || (bad_reg[i] && wait_reg[i] && !(take && grant[i]));
      if (rst) begin
        wait_reg[i] <= 1'b0;
        ci_reg[i] <= '0;
      end else begin
        if (fin_valid && (fin.q == ETHQ_W'(i))) wait_reg[i] <= 1'b1;
        else if (take && grant[i]) wait_reg[i] <= 1'b0;
        if (start[i]) ci_reg[i] <= '0;
        else if (fin_valid && (fin.q == ETHQ_W'(i))) ci_reg[i] <= fin.ci;
      end
    end
    if (rst) txc_valid_reg <= 1'b0;
    else if (take) txc_valid_reg <= 1'b1;
    else if (txc_ready) txc_valid_reg <= 1'b0;
  end

endmodule

`resetall
