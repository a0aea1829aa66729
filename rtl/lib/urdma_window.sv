// SPDX-License-Identifier: Apache-2.0
// Two consecutive beats of a stream of frames, side by side, for a user that needs bytes of both.
//
//  in      at most a beat each cycle; gaps are allowed anywhere. The stream cannot be stalled.
//  go      head advances in this cycle. It waits for the next beat, unless it is the frame's last.
//  head    beat of cycle 2
//  first   it is the first of its frame
//  next    beat of cycle 1; the beat after head when go and not head.last
//  absorb  with go: next is the frame's last beat, and the user has used it together with head; it does not appear as head
//
// Bytes after a frame's end are 0.

`resetall
`default_nettype none

module urdma_window
  import urdma_pkg::*;
(
  input  wire logic        clk,
  input  wire logic        rst,
  output      logic        busy,

  input  wire logic        in_valid,
  input  wire mac_beat_t   in,

  output      logic        go,
  output      logic        next_valid,
  output      mac_window_t head,
  output      logic        first,
  output      mac_window_t next,
  input  wire logic        absorb
);

  logic next_valid_reg, head_valid_reg, taken_reg, move;
  logic in_first_reg, next_first_reg, head_first_reg;
  mac_window_t next_reg, head_reg;

  // the head leaves when the next beat is known, or when there is none: so next always finds its place free
  assign move = head_valid_reg && (head_reg.last || next_valid_reg);
  assign go = move && !taken_reg;
  assign next_valid = next_valid_reg;
  assign head = head_reg;
  assign first = head_first_reg;
  assign next = next_reg;
  assign busy = next_valid_reg || head_valid_reg;

  always_ff @(posedge clk) begin
    if (in_valid) begin
      logic [511:0] data;
      data = in.data;
      if (in.last)
        for (int i = 0; i < 64; i++) if (!in.keep[i]) data[8*i+:8] = 8'd0;
      next_reg.data <= data;
      next_first_reg <= in_first_reg;
      next_reg.last <= in.last;
      next_reg.err <= in.err;
      next_reg.n <= in.last ? 7'($countones(in.keep)) : 7'd64;
    end
    if (next_valid_reg) begin
      head_reg <= next_reg;
      head_first_reg <= next_first_reg;
      taken_reg <= go && absorb;
    end
    if (rst) begin
      next_valid_reg <= 1'b0;
      in_first_reg <= 1'b1;
      head_valid_reg <= 1'b0;
    end else begin
      next_valid_reg <= in_valid;
      if (in_valid) in_first_reg <= in.last;
      if (next_valid_reg) head_valid_reg <= 1'b1;
      else if (move) head_valid_reg <= 1'b0;
    end
  end

endmodule

`resetall
