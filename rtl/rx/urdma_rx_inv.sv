// SPDX-License-Identifier: Apache-2.0
// Keys that SENDs with invalidate have made invalid. The walk does not stop at such a SEND, so pieces after it may have been
// checked while the key was still valid. Those pieces are refused here, at their turn.
//
//  in_*      pieces from their FIFO; out_*: the same at their turn. out_void: the key is invalid
//  inv_valid a SEND with invalidate has finished: its key is invalid now, if inv_live
//  invs_done count of finished SENDs with invalidate. A piece takes this count along (piece_t.invs) when it is given to
//            translation: translation has seen the keys of those SENDs invalid, and may have seen a later life of the key
//  invs_kept the count up to which keys are forgotten. The walk passes at most INV_N more
//
// A key is kept until a piece comes that was given to translation after its invalidation, or until there are no pieces.

`resetall
`default_nettype none

module urdma_rx_inv
  import urdma_rx_pkg::*;
(
  input  wire logic           clk,
  input  wire logic           rst,

  input  wire logic           in_valid,
  output      logic           in_ready,
  input  wire piece_t         in,
  output      logic           out_valid,
  input  wire logic           out_ready,
  output      piece_t         out,
  output      logic           out_void,

  input  wire logic           inv_valid,
  input  wire logic           inv_live,
  input  wire logic [31:0]    inv_key,
  output      logic [INV_W:0] invs_done,
  output      logic [INV_W:0] invs_kept
);

  // ---- keys ---------------------------------------------------------------------------------------------------
  logic [31:0] key_mem [INV_N];
  logic [INV_N-1:0] live_reg;
  logic [INV_W:0] done_reg, kept_reg;
  logic load;

  assign invs_done = done_reg;
  assign invs_kept = kept_reg;

  always_ff @(posedge clk) begin
    if (inv_valid) begin
      key_mem[done_reg[INV_W-1:0]] <= inv_key;
      live_reg[done_reg[INV_W-1:0]] <= inv_live;
    end
    if (rst) begin
      done_reg <= '0;
      kept_reg <= '0;
    end else begin
      done_reg <= done_reg + (INV_W + 1)'(inv_valid);
      if (load) kept_reg <= in.invs;
      else if (!in_valid) kept_reg <= done_reg;
    end
  end

  // ---- a piece ------------------------------------------------------------------------------------------------
  // The SENDs that have finished since a piece was given to translation have the counts from the piece's own on.
  logic [INV_W:0] since;
  logic hit, hit_now;

  always_comb begin
    since = done_reg - in.invs;
    hit = 1'b0;
    if (since != '0)
      for (int i = 0; i < INV_N; i++)
        if (live_reg[i] && {1'b0, INV_W'(i) - in.invs[INV_W-1:0]} < since && key_mem[i] == in.key) hit = 1'b1;
  end

  piece_t out_reg;
  logic out_valid_reg, out_void_reg;

  assign in_ready = !out_valid_reg || out_ready;
  assign load = in_valid && in_ready;
  assign hit_now = inv_valid && inv_live && (load ? in.key : out_reg.key) == inv_key;
  assign out_valid = out_valid_reg;
  assign out = out_reg;
  assign out_void = out_void_reg;

  always_ff @(posedge clk) begin
    if (load) out_reg <= in;
    if (load) out_void_reg <= hit || hit_now;
    else if (hit_now) out_void_reg <= 1'b1;
    if (rst) out_valid_reg <= 1'b0;
    else if (in_ready) out_valid_reg <= in_valid;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst) a_kept: assert (done_reg - kept_reg <= (INV_W + 1)'(INV_N))
      else $error("%m: a key was forgotten");
  always_ff @(posedge clk)
    if (!rst && inv_valid && out_valid_reg) a_behind: assert (done_reg - out_reg.invs <= (INV_W + 1)'(INV_N))
      else $error("%m: a piece is older than the keys");
  // Cases that the tests must reach (make coverage).
  c_void: cover property (@(posedge clk) !rst && load && hit);
  c_void_now: cover property (@(posedge clk) !rst && !load && hit_now && out_valid_reg);
`endif

endmodule

`resetall
