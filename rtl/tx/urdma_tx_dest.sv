// SPDX-License-Identifier: Apache-2.0
// Adds to a request's descriptor what a transport other than RC needs: destination, DETH, XRCETH.
//
// Sits between segmenter and merge without a register in the path. The choice depends only on the QP's type, which is known
// from the beginning of the turn, so it is folded into the multiplexer of the merge. RC descriptors pass unchanged.
//
// The WQE of a datagram names its destination. The head of the WQE comes once for each message, in a cycle before its
// descriptor, and is kept here. Q_Key: if its bit 31 is set, the QP's own is sent (IBA volume 1, 10.2.5). DETH: 9.3.4.
//
// A request of XRC has an XRCETH before its other extended headers (IBA volume 1, annex A14): the number of the SRQ, from the
// head of the WQE. The segmenter may give the head and a descriptor without payload in one cycle.

`resetall
`default_nettype none

module urdma_tx_dest
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic         clk,

  // of a QP of UD or XRC; may be repeated before the message's descriptor
  input  wire logic         head_valid,
  input  wire logic [511:0] head,        // first block of the WQE
  input  wire logic [31:0]  head_qkey,   // the QP's

  input  wire xport_e       in_xport,    // type of in's QP
  input  wire pdesc_t       in,
  output      pdesc_t       out
);

  logic [31:0] qkey_reg;
  path_t path_reg;               // without service, P_Key and no_loop, which are the QP's
  logic [23:0] srqn, kept_reg;   // SRQ of the current message
  assign srqn = head_valid ? head[URDMA_SQE1_XRC_SRQN_LSB+:24] : kept_reg;

  always_ff @(posedge clk) if (head_valid) begin
    kept_reg <= srqn;
    qkey_reg <= head[URDMA_SQE3_QKEY_LSB+31] ? head_qkey : head[URDMA_SQE3_QKEY_LSB+:32];
    path_reg <= '{service: '0, dest_qpn: head[URDMA_SQE2_DEST_QPN_LSB+:24], pkey: '0, dmac: head[URDMA_SQE6_DMAC_LSB+:48],
                  dgid: {head[URDMA_SQE5_DGID_HI_LSB+:64], head[URDMA_SQE4_DGID_LO_LSB+:64]},
                  tclass: head[URDMA_SQE6_TCLASS_LSB+:8], hop_limit: head[URDMA_SQE6_HOP_LIMIT_LSB+:8],
                  flow_label: head[URDMA_SQE7_FLOW_LABEL_LSB+:20], udp_sport: head[URDMA_SQE7_UDP_SPORT_LSB+:16],
                  sgid: head[URDMA_SQE7_SGID_INDEX_LSB+:GID_W],
                  no_sgid: head[URDMA_SQE7_SGID_INDEX_LSB+GID_W+:URDMA_SQE7_SGID_INDEX_W-GID_W] != '0,
                  pcp: head[URDMA_SQE7_PCP_LSB+:3], no_loop: 1'b0};
  end

  always_comb begin
    out = in;
    if (is_unrel(in_xport)) begin
      out.ackreq = 1'b0;
      out.unrel = 1'b1;
    end
    if (in_xport == XP_UD) begin
      out.path = path_reg;
      out.path.service = in.path.service;
      out.path.pkey = in.path.pkey;
      out.path.no_loop = in.path.no_loop;
      // in has an immediate or nothing: 4 bytes or 0
      out.ext = (8*EXT_BYTES)'({in.ext[31:0], be32(32'(in.qpn)), be32(qkey_reg)});
      out.ext_len = {3'b001, in.ext_len[2:0]};
    end
    if (in_xport == XP_XRC) begin
      out.ext = {in.ext[8*EXT_BYTES-33:0], be32(32'(srqn))};
      out.ext_len = in.ext_len + 6'd4;
    end
  end

  logic unused;
  assign unused = ^{head[127:120], head[95:0]};

endmodule

`resetall
