// SPDX-License-Identifier: Apache-2.0
// Round-robin arbiter.
//
//  req        requests, one bit a client
//  grant      one-hot choice among req, combinational in the same cycle (0 if nothing is requested)
//  grant_idx  the same as a number
//  grant_valid  some request is granted
//  advance    the grant of this cycle is used: from the next cycle on the next client has priority
//
// Without advance the pointer stays, but the grant may still change when requests rise or fall. A user that needs a stable
// grant must register it. A client that keeps its request waits for at most N-1 advances.

`resetall
`default_nettype none

module urdma_arb_rr #(
  // clients
  parameter int N = 4,
  localparam int IW = (N > 1) ? $clog2(N) : 1
) (
  input  wire logic          clk,
  input  wire logic          rst,

  input  wire logic [N-1:0]  req,
  input  wire logic          advance,
  output      logic [N-1:0]  grant,
  output      logic [IW-1:0] grant_idx,
  output      logic          grant_valid
);

  logic [N-1:0] above_reg;  // clients with a number above the last one served: they come first
  logic [N-1:0] req_above;

  assign req_above = req & above_reg;
  assign grant_valid = |req;

  always_comb begin
    grant = '0;
    grant_idx = '0;
    // lowest set bit of req, overridden by the lowest set bit of req_above
    for (int i = N - 1; i >= 0; i--) begin
      if (req[i]) begin
        grant = '0;
        grant[i] = 1'b1;
        grant_idx = IW'(i);
      end
    end
    for (int i = N - 1; i >= 0; i--) begin
      if (req_above[i]) begin
        grant = '0;
        grant[i] = 1'b1;
        grant_idx = IW'(i);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      above_reg <= '0;
    end else if (advance && grant_valid) begin
      for (int i = 0; i < N; i++) above_reg[i] <= (i > 32'(grant_idx));
    end
  end

endmodule

`resetall
