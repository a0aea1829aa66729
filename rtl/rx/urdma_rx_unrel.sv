// SPDX-License-Identifier: Apache-2.0
// The responder's decision on a packet of UC or UD (IBA volume 1, 9.8). Combinational.
//
// Nothing is ever answered, and no error found here moves the QP to ERR: a wrong packet is dropped and counted.
//
//  UC  A message ends without a completion if its PSNs have a gap or another message breaks it off; the next message uses its
//      WQE again. FIRST and ONLY always begin a message (9.9.3, class D1). Any other packet that does not fit is dropped with
//      the rest of its message.
//  UD  A datagram is a message. Its PSN is not checked. len includes the 40 bytes of GRH.

`resetall
`default_nettype none

module urdma_rx_unrel
  import urdma_opcode_pkg::*;
  import urdma_rx_pkg::*;
(
  input  wire logic      en,               // a packet of such a QP
  /* verilator lint_off UNUSEDSIGNAL */
  input  wire found_t    in,
  /* verilator lint_on UNUSEDSIGNAL */
  input  wire resp_st_t  s,
  input  wire resp_st_t  taken,            // s after the packet, if it is taken; without epsn
  input  wire op_t       base,             // an operation that only frees the lines
  input  wire logic      bad_len,          // of SEND and WRITE as with a connected QP
  input  wire logic      no_right,
  input  wire logic      no_wqe,           // it needs one and has none

  output      resp_st_t  next,
  output      op_t       op,
  output      drop_why_e why,
  output      logic      seq               // the PSN is not as expected, or the packet belongs to a message with a gap
);

  logic ud, gap;
  assign ud = in.bth.transport == XP_UD;
  assign gap = in.psn != s.epsn;

  always_comb begin
    next = s;
    op = base;
    why = DW_NONE;
    seq = 1'b0;
    if (en) begin
      if (ud) begin
        if (!in.bth.valid) why = DW_BAD;
        else if (in.bad_qkey) why = DW_QKEY;
        else if (in.len > (13'd128 << in.mtu) + 13'(GRH_BYTES)) why = DW_BAD;
        else if (no_wqe) why = DW_NO_WQE;
      end else begin
        if (!in.bth.first && gap) why = DW_SEQ;
        else if (!in.bth.first && s.skip != DW_NONE) why = s.skip;
        else if (!in.bth.valid || (!in.bth.first && (!s.in_msg || in.bth.write != s.write))) why = DW_BAD;
        else if (bad_len || no_right) why = DW_BAD;
        else if (no_wqe) why = DW_NO_WQE;
        seq = gap || why == DW_SEQ;
      end
      if (why == DW_NONE) begin
        next = taken;
        next.skip = DW_NONE;
        op.kind = in.bth.write ? OK_WRITE : OK_DATA;
        op.last = in.bth.last;
        op.cqe = in.bth.last && (in.bth.send || in.bth.imm);
        // of connected services
        op.est = !ud && !s.est && in.state == 4'(urdma_hw_pkg::URDMA_QPS_RTR);
      end else begin
        next.in_msg = 1'b0;
        next.skip = (ud || in.bth.last) ? DW_NONE : why;
      end
      next.epsn = in.psn + 24'd1;
    end
  end

endmodule

`resetall
