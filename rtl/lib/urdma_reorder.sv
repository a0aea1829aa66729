// SPDX-License-Identifier: Apache-2.0
// Puts answers back into the order of their requests. A request takes the next place, its answer carries the number of the
// place, and the answers leave in the order of the places.
//
//  take, place   the next place is taken; its number
//  in_*          the answer for a place that was taken in an earlier cycle, once for each
//  out_*         the answers in order, 2 cycles after in_valid at the earliest, one a cycle
//  busy          some places have answers that have not left
//
// The user takes a place only while fewer than DEPTH places have answers that have not left.

`resetall
`default_nettype none

module urdma_reorder #(
  // bits of an answer
  parameter int WIDTH = 8,
  // places, a power of two, at least 2
  parameter int DEPTH = 16,
  localparam int AW = $clog2(DEPTH)
) (
  input  wire logic             clk,
  input  wire logic             rst,

  input  wire logic             take,
  output      logic [AW-1:0]    place,

  input  wire logic             in_valid,
  input  wire logic [AW-1:0]    in_place,
  input  wire logic [WIDTH-1:0] in_data,

  output      logic             out_valid,
  input  wire logic             out_ready,
  output      logic [WIDTH-1:0] out_data,

  output      logic             busy
);

  if (DEPTH != (1 << AW) || DEPTH < 2) begin : check_depth
    $error("urdma_reorder: DEPTH has to be a power of two, 2 or more");
  end

  logic [DEPTH-1:0] here_reg;         // the answer for the place has arrived
  logic [AW:0] taken_reg, left_reg;   // places taken; answers that have left the memory
  logic out_valid_reg, load;

  assign place = taken_reg[AW-1:0];
  assign load = here_reg[left_reg[AW-1:0]] && (!out_valid_reg || out_ready);
  assign out_valid = out_valid_reg;
  assign busy = taken_reg != left_reg || out_valid_reg;

  urdma_ram_sdp #(.WIDTH(WIDTH), .DEPTH(DEPTH)) ram (
    .clk,
    .wr_en(in_valid), .wr_addr(in_place), .wr_data(in_data),
    .rd_en(load), .rd_addr(left_reg[AW-1:0]), .rd_data(out_data)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      here_reg <= '0;
      taken_reg <= '0;
      left_reg <= '0;
      out_valid_reg <= 1'b0;
    end else begin
      if (in_valid) here_reg[in_place] <= 1'b1;
      if (load) begin
        here_reg[left_reg[AW-1:0]] <= 1'b0;
        left_reg <= left_reg + 1'b1;
      end
      if (take) taken_reg <= taken_reg + 1'b1;
      if (load) out_valid_reg <= 1'b1;
      else if (out_ready) out_valid_reg <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  logic [AW:0] used;
  logic [AW-1:0] ahead;
  assign used = taken_reg - left_reg;
  assign ahead = in_place - left_reg[AW-1:0];
  always_ff @(posedge clk)
    if (!rst && take) a_room: assert (32'(used) < DEPTH)
      else $error("%m: more places than there are");
  always_ff @(posedge clk)
    if (!rst && in_valid) a_once: assert ({1'b0, ahead} < used && !here_reg[in_place])
      else $error("%m: an answer for a place that waits for none");
`endif

endmodule

`resetall
