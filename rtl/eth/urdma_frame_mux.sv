// SPDX-License-Identifier: Apache-2.0
// Merges the frames of RDMA and of the Ethernet function.
//
//  in_*     0: RDMA, 1: Ethernet; a frame that has begun has no gaps
//  out_*    to the loopback block; no latency
//
// While both have frames to send, the next frame is from the side that has sent fewer bytes. BURST bounds the difference, so
// after an idle period a side is not served alone for more bytes than that.

`resetall
`default_nettype none

module urdma_frame_mux
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
#(
  // bytes; two frames of the maximum size
  parameter int BURST = 18432
) (
  input  wire logic                   clk,
  input  wire logic                   rst,

  input  wire logic [1:0]             in_valid,
  input  wire mac_beat_t [1:0]        in,
  output      logic [1:0]             in_ready,

  output      logic                   out_valid,
  output      logic                   out_eth,     // the frame is from the Ethernet function
  output      mac_beat_t              out,
  input  wire logic                   out_ready,

  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic [6:0]             bytes        // sent in this cycle
);

  localparam int BW = $clog2(BURST + 64) + 1;

  logic held_reg;               // the choice is fixed: a beat was offered, or a frame is open
  logic eth_reg, go;
  logic signed [BW-1:0] ahead_reg, ahead;  // bytes that Ethernet has sent more than RDMA

  assign out_eth = held_reg ? eth_reg : (in_valid[1] && (!in_valid[0] || ahead_reg < 0));
  assign out_valid = in_valid[out_eth];
  assign out = in[out_eth];
  assign in_ready = out_ready ? {out_eth, !out_eth} : 2'b00;
  assign go = out_valid && out_ready;
  assign bytes = !go ? 7'd0 : out.last ? 7'($countones(out.keep)) : 7'd64;
  assign ahead = out_eth ? ahead_reg + BW'(bytes) : ahead_reg - BW'(bytes);

  always_comb begin
    cnt = '0;
    cnt[URDMA_CNT_TX_FRAMES] = go && out.last;
  end

  always_ff @(posedge clk) begin
    if (out_valid) eth_reg <= out_eth;
    if (rst) begin
      held_reg <= 1'b0;
      ahead_reg <= '0;
    end else if (out_valid) begin
      held_reg <= !(out_ready && out.last);
      if (go) ahead_reg <= (ahead > BW'(BURST)) ? BW'(BURST) : (ahead < -BW'(BURST)) ? -BW'(BURST) : ahead;
    end
  end

endmodule

`resetall
