// SPDX-License-Identifier: Apache-2.0
// Last register before the MAC. It properly ends a frame that a software reset has cut off.
//
//  in_*   frames of the transmit side, which break off when cut rises (its reset)
//  mac_*  to the MAC, which requires that every beat stays until it is accepted, and that every frame ends
//
// rst alone resets this block. A frame that was cut gets one last beat, marked as an error, so that the MAC sends a bad FCS
// and the receiver drops the frame. Latency 1 cycle, one beat per cycle.

`resetall
`default_nettype none

module urdma_mac_tx
  import urdma_pkg::*;
(
  input  wire logic      clk,
  input  wire logic      rst,
  output      logic      busy,

  input  wire logic      cut,
  input  wire logic      in_valid,
  input  wire mac_beat_t in,
  output      logic      in_ready,

  output      logic      mac_valid,
  output      mac_beat_t mac,
  input  wire logic      mac_ready
);

  logic valid_reg, open_reg, free;
  logic cut_reg, cut_now;      // a cut that waits for the MAC to accept the beat before
  mac_beat_t beat_reg;

  assign free = !valid_reg || mac_ready;
  assign cut_now = cut || cut_reg;
  assign in_ready = free && !cut_reg;
  assign mac_valid = valid_reg;
  assign mac = beat_reg;
  assign busy = valid_reg || open_reg;

  always_ff @(posedge clk) begin
    if (free && cut_now && open_reg) begin
      beat_reg.keep <= 64'd1;
      beat_reg.last <= 1'b1;
      beat_reg.err <= 1'b1;
    end else if (free && in_valid && !cut_now) begin
      beat_reg <= in;
    end
    if (rst) begin
      valid_reg <= 1'b0;
      open_reg <= 1'b0;
      cut_reg <= 1'b0;
    end else begin
      cut_reg <= cut_now && open_reg && !free;
      if (free) begin
        valid_reg <= cut_now ? open_reg : in_valid;
        if (cut_now) open_reg <= 1'b0;
        else if (in_valid) open_reg <= !in.last;
      end
    end
  end

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_cut_waits: cover property (@(posedge clk) !rst && cut_reg);
  c_cut_open: cover property (@(posedge clk) !rst && cut && open_reg && free);
`endif

endmodule

`resetall
