// SPDX-License-Identifier: Apache-2.0
// The windows bound to each QP: one doubly linked list a QP, the newest window first.
//
// A type 2B window belongs to the QP that bound it, and QP numbers are reused. So at the end of a QP its windows must be
// found without a walk through all contexts. urdma_mr_op maintains the lists: it inserts at BIND, removes when a window is
// unbound, and reads the head at MRO_QP_END.
//
// One request at a time. A change takes 3 cycles; head_valid answers in the cycle after head_req. After reset all
// lists are made empty, one a cycle; until init_done no request is accepted.

`resetall
`default_nettype none

module urdma_mr_list
  import urdma_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,

  input  wire logic             insert,      // pulses
  input  wire logic             remove,
  input  wire logic             head_req,
  input  wire logic [QPN_W-1:0] qpn,
  input  wire logic [MRI_W-1:0] idx,         // insert, remove: the window

  output      logic             head_valid,
  output      logic             head_some,   // the list is not empty
  output      logic [MRI_W-1:0] head_idx
);

  logic head_valid_reg;
  assign head_valid = head_valid_reg;

  typedef struct packed {
    logic             some;
    logic [MRI_W-1:0] idx;
  } link_t;

  typedef enum logic [1:0] {L_IDLE, L_FIRST, L_SECOND} state_e;

  state_e state_reg;
  logic insert_reg;
  logic [QPN_W-1:0] qpn_reg;
  logic [MRI_W-1:0] idx_reg;
  logic [QPN_W:0] init_reg;

  // head of each QP's list; the newer and the older neighbour of each window that is in a list
  logic head_wr, newer_wr, older_wr, rd_en;
  logic [QPN_W-1:0] head_wa;
  logic [MRI_W-1:0] newer_wa, older_wa;
  link_t head_wd, newer_wd, older_wd, head, newer, older;

  assign init_done = init_reg[QPN_W];
  assign rd_en = insert || remove || head_req;

  urdma_ram_sdp #(.WIDTH($bits(link_t)), .DEPTH(2 ** QPN_W)) head_ram (
    .clk, .wr_en(head_wr), .wr_addr(head_wa), .wr_data(head_wd), .rd_en(rd_en), .rd_addr(qpn), .rd_data(head)
  );
  urdma_ram_sdp #(.WIDTH($bits(link_t)), .DEPTH(2 ** MRI_W)) newer_ram (
    .clk, .wr_en(newer_wr), .wr_addr(newer_wa), .wr_data(newer_wd), .rd_en(remove), .rd_addr(idx), .rd_data(newer)
  );
  urdma_ram_sdp #(.WIDTH($bits(link_t)), .DEPTH(2 ** MRI_W)) older_ram (
    .clk, .wr_en(older_wr), .wr_addr(older_wa), .wr_data(older_wd), .rd_en(remove), .rd_addr(idx), .rd_data(older)
  );

  // insert: set the window's neighbours, then update the old head and the list head
  // remove: update the newer neighbour, then the older one
  always_comb begin
    head_wr = 1'b0;
    head_wa = qpn_reg;
    head_wd = '{some: 1'b1, idx: idx_reg};
    newer_wr = 1'b0;
    newer_wa = idx_reg;
    newer_wd = '0;
    older_wr = 1'b0;
    older_wa = idx_reg;
    older_wd = head;
    unique case (state_reg)
      L_FIRST: begin
        if (insert_reg) begin
          newer_wr = 1'b1;
          older_wr = 1'b1;
        end else if (newer.some) begin
          older_wr = 1'b1;
          older_wa = newer.idx;
          older_wd = older;
        end else begin
          head_wr = 1'b1;
          head_wd = older;
        end
      end
      L_SECOND: begin
        if (insert_reg) begin
          newer_wr = head.some;
          newer_wa = head.idx;
          newer_wd = '{some: 1'b1, idx: idx_reg};
          head_wr = 1'b1;
        end else begin
          newer_wr = older.some;
          newer_wa = older.idx;
          newer_wd = newer;
        end
      end
      default: ;
    endcase
    if (!init_done) begin
      head_wr = 1'b1;
      head_wa = init_reg[QPN_W-1:0];
      head_wd = '0;
    end
  end

  assign head_some = head.some;
  assign head_idx = head.idx;

  always_ff @(posedge clk) begin
    if (insert || remove) begin
      insert_reg <= insert;
      qpn_reg <= qpn;
      idx_reg <= idx;
    end
    if (rst) begin
      init_reg <= '0;
      state_reg <= L_IDLE;
      head_valid_reg <= 1'b0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      head_valid_reg <= head_req;
      unique case (state_reg)
        L_IDLE: if (insert || remove) state_reg <= L_FIRST;
        L_FIRST: state_reg <= L_SECOND;
        default: state_reg <= L_IDLE;
      endcase
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && rd_en) a_once: assert (init_done && state_reg == L_IDLE)
      else $error("%m: a request before the one before it is done");
  always_ff @(posedge clk)
    if (!rst) a_kind: assert ($onehot0({insert, remove, head_req}))
      else $error("%m: two requests at once");
`endif

endmodule

`resetall
