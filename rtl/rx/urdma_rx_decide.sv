// SPDX-License-Identifier: Apache-2.0
// The decision of requester completion where a walk ends: what an acknowledgement, a READ response or an expired timer means
// for the QP. Combinational.
//
// The walk has acknowledged everything before goal, unless a READ stopped it. If a READ stopped it before goal, a response is
// missing: the implied NAK. A response must fit its READ: its opcode must match its position (FIRST inside the READ only if
// tx was sent back), and so must its length; otherwise BAD_RESP_ERR. A response with an AETH that is not an ACK is a
// BAD_RESP_ERR, too. An ACK packet with a reserved kind of AETH counts as a NAK with a reserved code. NAK, implied NAK and
// time-out count down from cfg.retry and set `want`. While gap is set, a further NAK for the same PSN is ignored; progress or
// a time-out clears gap. During an RNR wait nothing is sent again: a NAK counts only for the PSNs it acknowledges, and an RNR
// NAK for the same PSN can only extend the wait.

`resetall
`default_nettype none

module urdma_rx_decide
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_rx_cmpl_pkg::*;
  import urdma_trace_pkg::*;
(
  /* verilator lint_off UNUSEDSIGNAL */  // the responder's fields, the completion fields of a WQE
  input  wire found_t      it,
  input  wire says_t       says,
  input  wire logic        is_resp,        // the item is a READ response or ATOMIC acknowledge
  input  wire st_t         s,              // state after the walk
  input  wire ent_t        ent,            // the entry at ack
  /* verilator lint_on UNUSEDSIGNAL */
  input  wire logic        none,           // there is none
  input  wire logic [23:0] goal,
  input  wire logic        due,            // an answer is due

  output      st_t         d,              // the state after it
  output      logic        moved,          // some message is acknowledged
  output      rr_t         rr,
  output      logic        fail,           // the QP goes to ERR with the error d.nak
  output      logic        rnr,            // an RNR wait begins or goes on
  output      logic        loss,           // a packet is lost: a retry counts, or none is left
  output      trace_cause_e loss_cause,
  output      logic        cnt_gap,
  output      logic        cnt_timeout,
  output      logic        cnt_retry_exc,
  output      logic        cnt_rnr_exc
);

  logic rd_stop, miss, kind_bad, retry_want, fit, last, walked;
  logic [7:0] fail_status, nak_status;
  logic [23:0] una_next, resp_una;
  /* verilator lint_off UNUSEDSIGNAL */
  logic [23:0] ahead;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [31:0] off, rest, mtu_bytes;
  logic [3:0] mtu_shift;

  // una as far as the walk has come. Past a READ only an acknowledgement of a later message can move it.
  assign rd_stop = !none && is_read(ent.opcode) && ent.status == '0;
  assign resp_una = psn_before(s.una, s.ack_first) ? s.ack_first : s.una;
  assign una_next = rd_stop ? (psn_before(ent.psn, s.una) ? s.ack_first : resp_una) : is_resp ? resp_una : goal;
  assign walked = una_next != s.una;
  assign miss = rd_stop && goal != una_next;

  // a response for una: does it fit the READ?
  assign mtu_shift = 4'd7 + 4'(it.mtu);
  assign mtu_bytes = 32'd1 << mtu_shift;
  assign ahead = it.psn - s.ack_first;
  assign off = 32'(ahead) << mtu_shift;
  assign rest = ent.len - off;
  assign last = it.psn == ent.psn;
  always_comb begin
    // LAST and ONLY are the last; FIRST and ONLY come first, or first again after a retry
    fit = !it.bth.atomic_ack && last == it.bth.last && (it.bth.first ? ahead == '0 || s.restart : ahead != '0);
    if (32'(it.len) != (last ? rest : mtu_bytes)) fit = 1'b0;
    if (is_atomic(ent.opcode)) fit = it.bth.atomic_ack && last && it.len == '0;
    // all but the MIDDLE have an AETH
    if (it.bth.ext_len != '0 && it.ext[7:5] != 3'b000) fit = 1'b0;
  end

  assign kind_bad = aeth_reserved(it.ext[7:5]);
  always_comb begin
    case (it.ext[4:0])
      5'd1: nak_status = 8'(URDMA_WC_REM_INV_REQ_ERR);
      5'd2: nak_status = 8'(URDMA_WC_REM_ACCESS_ERR);
      5'd3: nak_status = 8'(URDMA_WC_REM_OP_ERR);
      default: nak_status = 8'(URDMA_WC_BAD_RESP_ERR);
    endcase
    if (kind_bad) nak_status = 8'(URDMA_WC_BAD_RESP_ERR);
  end

  always_comb begin
    d = s;
    d.una = una_next;
    moved = walked;
    if (walked) begin
      d.retries = '0;
      d.rnrs = '0;
      d.gap = 1'b0;
    end
    retry_want = 1'b0;
    fail = 1'b0;
    fail_status = nak_status;
    rr = '0;
    rnr = 1'b0;
    loss = 1'b0;
    {cnt_gap, cnt_timeout, cnt_retry_exc, cnt_rnr_exc} = '0;
    if (says.ack) retry_want = miss;
    if (says.nak) begin
      if (miss || (it.ext[4:0] == '0 && !kind_bad)) retry_want = 1'b1;
      else fail = 1'b1;
    end
    if (says.resp && rd_stop) begin
      retry_want = miss;
      rr.take = !miss && fit;
      if (!miss && !fit) begin
        fail = 1'b1;
        fail_status = 8'(URDMA_WC_BAD_RESP_ERR);
      end
    end
    if (says.rnr) begin
      if (s.tk == T_RNR && !walked) begin
        rnr = 1'b1;
      end else if (d.rnrs >= it.rnr_retry) begin
        fail = 1'b1;
        fail_status = 8'(URDMA_WC_RNR_RETRY_EXC_ERR);
        cnt_rnr_exc = 1'b1;
      end else begin
        // 7 is no limit: these RNR NAKs are not counted, so the count is 6 at most
        if (it.rnr_retry != 3'd7) d.rnrs = d.rnrs + 3'd1;
        rnr = 1'b1;
        d.want = 1'b0;             // sent when the timer ends
      end
    end
    if (says.expired && s.tk == T_RNR) begin
      d.tk = T_NONE;
      d.want = 1'b1;
      d.cause = TRC_RNR;
      d.gap = 1'b0;
    end
    if (says.expired && s.tk == T_ACK && due && !s.want) begin
      retry_want = 1'b1;
      d.gap = 1'b0;
      cnt_timeout = 1'b1;
    end
    loss_cause = cnt_timeout ? TRC_TIMEOUT : miss ? TRC_IMPLIED : TRC_NAK;
    if (retry_want && s.tk != T_RNR && !d.gap) begin
      loss = 1'b1;
      cnt_gap = miss && !cnt_timeout;
      // the limit may have become smaller (MODIFY_QP in SQD)
      if (d.retries >= it.retry) begin
        fail = 1'b1;
        fail_status = 8'(URDMA_WC_RETRY_EXC_ERR);
        cnt_retry_exc = 1'b1;
      end else begin
        d.retries = d.retries + 3'd1;
        d.gap = !cnt_timeout;
        d.want = 1'b1;
        d.cause = loss_cause;
      end
    end
    if (rr.take) begin
      rr.last = last;
      rr.wqe = s.ack;
      rr.off = is_atomic(ent.opcode) ? 32'd0 : off;
      moved = 1'b1;
      d.una = it.psn + 24'd1;
      d.retries = '0;
      d.rnrs = '0;
      d.gap = 1'b0;
      if (last) begin
        d.ack = s.ack + 16'd1;
        d.ack_first = d.una;
      end
    end
    if (fail) begin
      d.nak = fail_status;
      d.err = 1'b1;
    end
  end

endmodule

`resetall
