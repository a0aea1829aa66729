// SPDX-License-Identifier: Apache-2.0
// CQEs of the responder, in order. The CQE of a SEND with invalidate waits here until no access through its key is under way:
// ATOMICs of rx and reads of tx. Placement continues meanwhile.
//
//  gone_valid  a SEND with invalidate has made gone_key invalid. Exactly one in_* with in_wait follows later. Only while
//              gone_room is 1
//  in_*        CQEs. in_void, with in_wait: there is no CQE, because the QP has failed meanwhile
//  atm_*       an ATOMIC begins, ends; they end in order
//  inv_*       to tx: the key is invalid. reads_over: tx has no more reads under way through the oldest such key
//
// At most INV_GONE SENDs with invalidate are here, so everything that comes back has room. While there is none, only one CQE
// is kept: payload must not run ahead of a slow CQ.

`resetall
`default_nettype none

module urdma_rx_cqe_wait
  import urdma_pkg::*;
  import urdma_rx_pkg::*;
(
  input  wire logic        clk,
  input  wire logic        rst,
  output      logic        empty,

  input  wire logic        gone_valid,
  input  wire logic [31:0] gone_key,
  output      logic        gone_room,

  input  wire logic        in_valid,
  output      logic        in_ready,
  input  wire cqe_req_t    in,
  input  wire logic        in_wait,
  input  wire logic        in_void,
  output      logic        cqe_valid,
  output      cqe_req_t    cqe,
  input  wire logic        cqe_ready,

  input  wire logic        atm_begun,
  input  wire logic        atm_ended,

  output      logic        inv_valid,
  output      logic [31:0] inv_key,
  input  wire logic        reads_over
);

  localparam int GONE_W = $clog2(INV_GONE);
  localparam int ATM_W = 7;        // ATOMICs that begin while one is under way: far less than 2**(ATM_W-1)

  // ---- CQEs ---------------------------------------------------------------------------------------------------
  logic head_valid, head_wait, head_void, go, over, room, take;
  logic [GONE_W:0] gone_reg, atm_over_reg, reads_over_reg;   // SENDs here; how many of them no longer wait
  logic [$clog2(CQE_QUEUE):0] count;

  urdma_fifo #(.WIDTH(2 + $bits(cqe_req_t)), .DEPTH(CQE_QUEUE)) u_cqe (
    .clk, .rst,
    .in_valid(in_valid && take), .in_ready(room), .in_data({in_wait, in_void, in}),
    .out_valid(head_valid), .out_ready(go), .out_data({head_wait, head_void, cqe}), .count
  );

  assign empty = count == '0;
  assign take = gone_reg != '0 || empty || go;
  assign in_ready = room && take;
  assign cqe_valid = head_valid && !head_void && (!head_wait || over);
  assign go = head_valid && (head_void ? over : cqe_valid && cqe_ready);

  // ---- accesses under way: ATOMICs that began before, reads of tx -----------------------------------------------
  logic [ATM_W-1:0] begun_reg, ended_reg, atm_to;
  /* verilator lint_off UNUSEDSIGNAL */  // its sign
  logic [ATM_W-1:0] atm_past;
  /* verilator lint_on UNUSEDSIGNAL */
  logic atm_valid, atm_pop, atms_over, end_one;

  assign gone_room = !gone_reg[GONE_W];
  assign atms_over = atm_over_reg != '0;
  assign over = atms_over && reads_over_reg != '0;
  assign end_one = go && head_wait;

  urdma_fifo #(.WIDTH(ATM_W), .DEPTH(INV_GONE)) u_atm (
    .clk, .rst,
    .in_valid(gone_valid), .in_ready(), .in_data(begun_reg),
    .out_valid(atm_valid), .out_ready(atm_pop), .out_data(atm_to), .count()
  );
  assign atm_past = ended_reg - atm_to;
  assign atm_pop = atm_valid && !atm_past[ATM_W-1];

  assign inv_valid = gone_valid;
  assign inv_key = gone_key;

  always_ff @(posedge clk) begin
    if (rst) begin
      gone_reg <= '0;
      atm_over_reg <= '0;
      reads_over_reg <= '0;
      begun_reg <= '0;
      ended_reg <= '0;
    end else begin
      gone_reg <= gone_reg + (GONE_W + 1)'(gone_valid) - (GONE_W + 1)'(end_one);
      atm_over_reg <= atm_over_reg + (GONE_W + 1)'(atm_pop) - (GONE_W + 1)'(end_one);
      reads_over_reg <= reads_over_reg + (GONE_W + 1)'(reads_over) - (GONE_W + 1)'(end_one);
      begun_reg <= begun_reg + ATM_W'(atm_begun);
      ended_reg <= ended_reg + ATM_W'(atm_ended);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && gone_valid) a_room: assert (gone_room)
      else $error("%m: more SENDs with invalidate than there is room for");
  always_ff @(posedge clk)
    if (!rst && in_valid && in_ready) a_wait: assert (in_wait || !in_void)
      else $error("%m: a CQE is void that waits for nothing");
  always_ff @(posedge clk)
    if (!rst && end_one) a_one: assert (gone_reg != '0)
      else $error("%m: more CQEs wait than SENDs with invalidate came");
  // Cases that the tests must reach (make coverage).
  c_atm: cover property (@(posedge clk) !rst && head_valid && head_wait && atm_over_reg == '0 && reads_over_reg != '0);
  c_reads: cover property (@(posedge clk) !rst && head_valid && head_wait && atm_over_reg != '0 && reads_over_reg == '0);
  c_void: cover property (@(posedge clk) !rst && head_valid && head_void);
  c_full: cover property (@(posedge clk) !rst && !gone_room);
`endif

endmodule

`resetall
