// SPDX-License-Identifier: Apache-2.0
// Checks a send WQE's head: may a QP of this type send it, from a ring of this stride?
//
// Combinational. status is the error of the first rule that the WQE breaks (URDMA_WC_*, 0 if none). Errors that the head
// cannot show (SGEs against LENGTH, keys, memory) are found later.
//
// WQEs that a QP may post: IBA volume 1, table 92. A datagram has one packet (9.8.3.2.2), so it is not longer than the path
// MTU; its address takes the place of the first four SGEs.

`resetall
`default_nettype none

module urdma_tx_wqe_check
  import urdma_hw_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire msg_t        m,
  input  wire logic [31:0] sge_len,    // of the first SGE; counts for an ATOMIC
  input  wire xport_e      xport,
  input  wire logic        priv,       // QP of the kernel
  input  wire logic [7:0]  max_rd,
  input  wire logic [3:0]  log_stride, // 6 to 9
  input  wire logic [12:0] mtu,        // bytes

  output      logic [7:0]  status
);

  logic ud, bad_op, bad_shape, bad_len;
  logic [9:0] room;              // bytes of SGEs or inline data that the stride holds
  assign ud = (xport == XP_UD);

  // SEND with invalidate, READ and ATOMIC are for RC and XRC; a datagram is a SEND
  assign bad_op = (m.op > 8'(URDMA_WR_ATOMIC_WRITE)) || (is_unrel(xport) && (m.read || m.atomic || m.inv_op)) ||
                  (ud && (m.write || (log_stride == 4'd6)));

  assign room = (10'd1 << log_stride) - (ud ? 10'(URDMA_SQE_UD_DATA_OFFSET) : 10'(URDMA_SQE_DATA_OFFSET));
  // the operands of an ATOMIC take the place of a second SGE
  assign bad_shape = (m.inl && (m.len > 32'(room))) || ({m.num_sge, 4'd0} > 12'(room)) ||
                     ((m.read || m.atomic) && (m.inl || (max_rd == '0))) || (m.atomic && (m.num_sge > 8'd1)) ||
                     (m.mpe && (m.num_sge != '0));

  assign bad_len = (m.len > 32'h4000_0000) || (ud && (m.len > 32'(mtu))) ||
                   (m.mpe && (m.len != '0)) ||
                   (m.atomic && ((m.len != 32'd8) || (m.num_sge == '0) || (sge_len != 32'd8)));

  always_comb begin
    status = 8'(URDMA_WC_SUCCESS);
    if (bad_op) begin
      status = 8'(URDMA_WC_LOC_QP_OP_ERR);
    end else if (m.local_op) begin
      // a page table by bus address is the kernel's privilege
      if ((m.op == 8'(URDMA_WR_REG_MR)) && !priv) status = 8'(URDMA_WC_LOC_QP_OP_ERR);
    end else if (bad_shape) begin
      status = 8'(URDMA_WC_LOC_QP_OP_ERR);
    end else if (bad_len) begin
      status = 8'(URDMA_WC_LOC_LEN_ERR);
    end
  end

  logic unused;
  assign unused = ^m;

endmodule

`resetall
