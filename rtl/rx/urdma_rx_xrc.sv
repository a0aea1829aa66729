// SPDX-License-Identifier: Apache-2.0
// XRC at the responder: checks whether a request may use the SRQ it names, and finds the SRQ of a flush (IBA volume 1, annex
// A14).
//
// A target QP has no SRQ of its own and holds no reference to one. Each packet names any SRQ (XRCETH), and software may
// destroy and create that SRQ at any time. So each request is checked for two conditions:
//
//  missing  there is no such SRQ, or it is not for XRC, or it is of another domain than the QP. The request may not use it.
//  other    a message is in progress, and it began with another SRQ, or in another life of this number. The index of its WQE
//           is kept by a stage after the responder, and is invalid in another SRQ.
//
// A life is one creation of an SRQ with this number; urdma_srq counts them. For each QP the memory holds the SRQ of the
// message in progress and its life, written by the first packet of a SEND or WRITE that is taken. The memory needs no sweep:
// it is read only while a message is in progress or a WQE is held, and both begin with such a packet.
//
// A QP in ERR that holds a WQE flushes it. tok_* gives the look-up of the flush token the number of the SRQ, so the token
// queries urdma_srq as a packet does. The QP was in ERR before its token was made and takes no packets then, so the word is
// stable. open: complete the WQE with the CQ of got. If open is 0, the SRQ is gone, and so is the WQE.
//
// The responder's stages: look in S0, s1_srqn in S1, the others in S2. No item of the same QP is in the stage ahead.

`resetall
`default_nettype none

module urdma_rx_xrc
  import urdma_pkg::*;
  import urdma_rx_pkg::*;
(
  input  wire logic              clk,

  input  wire logic              look,
  input  wire logic [QPN_W-1:0]  look_qpn,

  input  wire logic              s1_valid,
  input  wire logic [SRQN_W-1:0] s1_srqn,

  /* verilator lint_off UNUSEDSIGNAL */
  input  wire found_t            in,
  input  wire resp_st_t          s,
  input  wire srq_got_t          got,
  /* verilator lint_on UNUSEDSIGNAL */
  input  wire logic              begins,       // in is the first packet of a SEND or WRITE, and is taken
  output      logic              missing,
  output      logic              other,
  output      logic              open,

  input  wire logic              tok_en,
  input  wire logic [QPN_W-1:0]  tok_qpn,
  output      logic [SRQN_W-1:0] tok_srqn      // latency 1
);

  typedef struct packed {
    logic [SRQN_W-1:0]     srqn;
    logic [SRQ_LIFE_W-1:0] life;
  } word_t;

  word_t rd, wd;
  logic same_srqn_reg, same;
  logic [SRQ_LIFE_W-1:0] life_reg;

  assign wd = '{srqn: in.srqn, life: got.life};

  urdma_ram_live #(.WIDTH($bits(word_t)), .DEPTH(1 << QPN_W)) u_word (
    .clk, .wr_en(begins), .wr_addr(in.qpn), .wr_data(wd), .rd_en(look), .rd_addr(look_qpn), .rd_data(rd)
  );

  // a copy of the numbers for the look-up
  urdma_ram_sdp #(.WIDTH(SRQN_W), .DEPTH(1 << QPN_W)) u_token (
    .clk, .wr_en(begins), .wr_addr(in.qpn), .wr_data(in.srqn), .rd_en(tok_en), .rd_addr(tok_qpn), .rd_data(tok_srqn)
  );

  always_ff @(posedge clk) begin
    if (s1_valid) begin
      same_srqn_reg <= rd.srqn == s1_srqn;
      life_reg <= rd.life;
    end
  end

  assign same = same_srqn_reg && life_reg == got.life;
  assign missing = in.xrc && (in.no_srqn || !got.exists || !got.cfg.xrc || got.cfg.xrcd != in.pd);
  assign other = in.xrc && s.in_msg && !same;
  assign open = s.held && same && !missing;

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_other_life: cover property (@(posedge clk) other && !missing && same_srqn_reg);
`endif

endmodule

`resetall
