// SPDX-License-Identifier: Apache-2.0
// Requester completion: the table of sent messages, and what acknowledgements do to it (IBA volume 1, 9.7.5, 9.7.7).
//
//  sent_*  (tx) a message whose last packet is made, or a WQE that failed or was flushed, in order of the QP
//  in_*    found items: acknowledgements, kicks (look at the table again), the fence's token
//  kick_*  (to the look-up) QPs to look at; each stands in the queue at most once, so it never fills
//  acked_* (tx) progress of a QP;  cqe_*, err_*: completions, errors
//  aqc_*   control from qp_mgr: taken without waiting for any output of this block
//
// Each QP has 2**INFL_W entries, found by the low bits of the WQE index. An item is one turn: read the state, apply the
// acknowledgement to it, then complete from the head what can be, one entry a cycle, at most TURN; a QP with more
// to do is kicked. Rules for the entry at the head, in this order:
//   sent well and acknowledged        -> SUCCESS, a CQE if it was signaled
//   a NAK's error is pending          -> that error, to this entry, whatever tx made of it
//   the QP is in error                -> FLUSH_ERR
//   tx gave it a status               -> that status; if it is not FLUSH_ERR the QP goes into error
//   otherwise                         -> it waits
// A NAK may come for a message that is not in the table yet (partly sent): the error then waits for the entry, which
// comes at last as a flushed one.

`resetall
`default_nettype none

module urdma_rx_cmpl
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
#(
  // entries that one turn completes at most
  parameter int TURN = 16
) (
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  input  wire logic                   sent_valid,
  input  wire sent_t                  sent,
  output      logic                   sent_ready,

  input  wire logic                   in_valid,
  output      logic                   in_ready,
  input  wire found_t                 in,
  output      logic                   kick_valid,
  output      logic [QPN_W-1:0]       kick_qpn,
  input  wire logic                   kick_ready,

  input  wire logic                   aqc_valid,
  input  wire qpc_t                   aqc,
  output      logic                   aqc_ready,
  output      qpc_rsp_t               aqc_rsp,

  output      logic                   acked_valid,
  output      acked_t                 acked,
  input  wire logic                   acked_ready,
  output      logic                   cqe_valid,
  output      cqe_req_t               cqe,
  input  wire logic                   cqe_ready,
  output      logic                   err_valid,
  output      qp_err_t                err,
  input  wire logic                   err_ready,

  output      logic                   fence_out,
  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic                   drop_valid,  // acknowledgement without effect, for the trace
  output      logic                   ack_valid,   // acknowledgement taken
  output      logic [QPN_W-1:0]       ack_qpn,
  output      logic [23:0]            ack_psn,
  output      logic [7:0]             ack_syndrome
);

  typedef struct packed {
    logic        active;           // from RTS on
    logic        err;
    logic [7:0]  nak;              // error of a NAK that waits for its entry
    logic [23:0] una;              // oldest PSN not acknowledged
    logic [15:0] head;             // oldest WQE not completed
  } st_t;

  typedef struct packed {
    logic [23:0] psn;
    logic [7:0]  opcode;
    logic        signaled;
    logic [7:0]  status;
    logic [31:0] len;
  } ent_t;

  typedef enum logic [1:0] {E_IDLE, E_LOAD, E_WALK, E_BACK} e_e;

  logic [QPN_W:0] init_reg;
  assign init_done = init_reg[QPN_W];
  always_ff @(posedge clk) begin
    if (rst) init_reg <= '0;
    else if (!init_done) init_reg <= init_reg + 1'b1;
  end

  // ---- state, tails, entries ------------------------------------------------------------------------------
  e_e e_reg;
  logic aq_reg;                    // the control message's read is done: it is applied in this cycle
  logic rd_en, st_we, tail_we, sent_take, head_en;
  logic [QPN_W-1:0] rd_qpn, st_wqpn, tail_wqpn, cur_reg;
  st_t rd_st, st_wdata, w_reg;
  /* verilator lint_off UNUSEDSIGNAL */  // one sign, two fields, an index in the table
  logic [23:0] s1_ahead, ent_ahead;
  st_t copy_st;
  logic [15:0] head_addr;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [15:0] rd_tail, tail_wdata, tail_reg, next_head;
  ent_t ent;

  urdma_ram_sdp #(.WIDTH($bits(st_t)), .DEPTH(1 << QPN_W)) u_st (
    .clk(clk), .wr_en(st_we), .wr_addr(st_wqpn), .wr_data(st_wdata),
    .rd_en(rd_en), .rd_addr(rd_qpn), .rd_data(rd_st)
  );

  // A copy for the messages that come in: is there something to do for them at once?
  urdma_ram_sdp #(.WIDTH($bits(st_t)), .DEPTH(1 << QPN_W)) u_copy (
    .clk(clk), .wr_en(st_we), .wr_addr(st_wqpn), .wr_data(st_wdata),
    .rd_en(sent_take), .rd_addr(sent.qpn), .rd_data(copy_st)
  );

  urdma_ram_sdp #(.WIDTH(16), .DEPTH(1 << QPN_W)) u_tail (
    .clk(clk), .wr_en(tail_we), .wr_addr(tail_wqpn), .wr_data(tail_wdata),
    .rd_en(rd_en), .rd_addr(rd_qpn), .rd_data(rd_tail)
  );

  urdma_ram_sdp #(.WIDTH($bits(ent_t)), .DEPTH(1 << (QPN_W + INFL_W))) u_ent (
    .clk(clk),
    .wr_en(sent_take), .wr_addr({sent.qpn, sent.wqe[INFL_W-1:0]}),
    .wr_data({sent.psn, sent.opcode, sent.signaled, sent.status, sent.len}),
    .rd_en(head_en), .rd_addr({cur_reg, head_addr[INFL_W-1:0]}), .rd_data(ent)
  );

  // ---- kicks: a queue with each QP at most once. queued = set differs from cleared; each array has one writer.
  logic q_set [1 << QPN_W];
  logic q_clr [1 << QPN_W];
  logic push_aq, push_e, push_s, push, push_new, kick_pop;
  logic [QPN_W-1:0] push_qpn, s1_qpn_reg, kick_out;
  logic [QPN_W:0] kick_count;

  assign push = push_aq || push_e || push_s;
  assign push_qpn = push_aq ? aqc.qpn : push_e ? cur_reg : s1_qpn_reg;
  // A QP that leaves the queue in this very cycle still counts as queued: its turn is yet to come.
  assign push_new = push && q_set[push_qpn] == q_clr[push_qpn];
  assign kick_pop = kick_valid && kick_ready;
  assign kick_qpn = kick_out;

  always_ff @(posedge clk) begin
    if (!init_done) q_set[init_reg[QPN_W-1:0]] <= 1'b0;
    else if (push_new) q_set[push_qpn] <= !q_set[push_qpn];
  end
  always_ff @(posedge clk) begin
    if (!init_done) q_clr[init_reg[QPN_W-1:0]] <= 1'b0;
    else if (kick_pop) q_clr[kick_out] <= !q_clr[kick_out];
  end

  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(1 << QPN_W), .OUT_REG(1)) u_kick (
    .clk(clk), .rst(rst),
    .in_valid(push_new), .in_ready(), .in_data(push_qpn),
    .out_valid(kick_valid), .out_ready(kick_ready), .out_data(kick_out), .count(kick_count)
  );

  // ---- messages from tx ----------------------------------------------------------------------------------
  logic e_start, s1_valid_reg, s1_kick_reg;
  logic [23:0] s1_psn_reg;

  // not while a reset writes the tail, and not while the one before waits to kick
  assign sent_ready = init_done && !(push_s && (push_aq || push_e)) && !(aqc_valid && aqc.op == QPC_RESET);
  assign sent_take = sent_valid && sent_ready;
  assign s1_ahead = s1_psn_reg - copy_st.una;
  assign push_s = s1_valid_reg && (s1_kick_reg || copy_st.err || s1_ahead[23]);

  always_ff @(posedge clk) begin
    if (sent_take) begin
      s1_qpn_reg <= sent.qpn;
      s1_psn_reg <= sent.psn;
      // A turn that runs for this QP may have read the tail before, and may be about to change what the
      // copy says.
      s1_kick_reg <= sent.status != '0 || (e_start && in.qpn == sent.qpn) || (e_reg != E_IDLE && cur_reg == sent.qpn);
    end
  end

  always_ff @(posedge clk) begin
    if (rst) s1_valid_reg <= 1'b0;
    else if (sent_take) s1_valid_reg <= 1'b1;
    else if (!(push_s && (push_aq || push_e))) s1_valid_reg <= 1'b0;
  end

  // ---- control -------------------------------------------------------------------------------------------
  // For the QP whose turn runs, the message changes the turn's own copy, at once; else it reads and writes the memory,
  // in two cycles in which no turn begins and none ends.
  logic e_hold, back_fire, aq_cur, aq_read;
  st_t aq_in, aq_out;

  assign e_hold = e_reg == E_WALK || e_reg == E_BACK;
  assign aq_cur = aqc_valid && !aq_reg && init_done && e_hold && cur_reg == aqc.qpn && !back_fire;
  assign aq_read = aqc_valid && !aq_reg && init_done && (e_reg == E_IDLE || (e_hold && cur_reg != aqc.qpn && !back_fire));
  assign aqc_ready = aq_cur || aq_reg;
  assign aq_in = aq_reg ? rd_st : w_reg;
  assign aqc_rsp = '{psn: aq_in.una, pi: aq_reg ? rd_tail : tail_reg, ci: aq_in.head};
  assign push_aq = aqc_ready && aqc.op == QPC_ERR;

  always_comb begin
    aq_out = aq_in;
    case (aqc.op)
      QPC_RESET: aq_out = '0;
      QPC_SQ_PSN: begin
        aq_out.active = 1'b1;
        aq_out.una = aqc.psn;
      end
      QPC_ERR: aq_out.err = 1'b1;
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) aq_reg <= 1'b0;
    else aq_reg <= aq_read;
  end

  // ---- a turn -------------------------------------------------------------------------------------------
  /* verilator lint_off UNUSEDSIGNAL */  // the responder's fields
  found_t it_reg;
  /* verilator lint_on UNUSEDSIGNAL */
  logic load_ok, ahead_ok, kind_ack, kind_nak, kind_rnr;
  logic [23:0] diff;
  logic [7:0] nak_status;
  logic ent_acked, ent_done, ent_err, ent_cqe, step, step_ready, more_reg, changed_reg, qerr_reg, hit;
  logic [7:0] ent_status;
  logic [4:0] turn_reg;
  logic [255:0] cqe_word;
  logic acked_valid_reg, cqe_valid_reg, err_valid_reg, fence_take;
  acked_t acked_reg;
  cqe_req_t cqe_reg;
  qp_err_t err_reg;

  assign fence_take = in_valid && in.kind == IT_FENCE && e_reg == E_IDLE && !acked_valid_reg && !cqe_valid_reg
      && !err_valid_reg && !aqc_valid;
  assign fence_out = fence_take;
  assign e_start = in_valid && in.kind != IT_FENCE && e_reg == E_IDLE && !aqc_valid && !aq_reg && init_done;
  assign in_ready = e_start || fence_take;
  assign rd_en = e_start || aq_read;
  assign rd_qpn = aq_read ? aqc.qpn : in.qpn;

  // what the acknowledgement says; it_reg.ext as it lies on the wire: syndrome, then the MSN
  assign diff = it_reg.psn - rd_st.una;
  assign kind_ack = it_reg.ext[7:5] == 3'b000;
  assign kind_rnr = it_reg.ext[7:5] == 3'b001;
  assign kind_nak = it_reg.ext[7:5] == 3'b011;
  assign load_ok = it_reg.kind == IT_PKT && it_reg.pass;
  // PSNs that may be outstanding lie within half the number space from the oldest one
  assign ahead_ok = rd_st.active && !rd_st.err && !diff[23] && (kind_ack || kind_rnr || kind_nak);

  always_comb begin
    if (kind_rnr) begin
      nak_status = 8'(URDMA_WC_RNR_RETRY_EXC_ERR);   // the place of the RNR timer
    end else begin
      case (it_reg.ext[4:0])
        5'd0: nak_status = 8'(URDMA_WC_RETRY_EXC_ERR);  // the place of retransmission
        5'd1: nak_status = 8'(URDMA_WC_REM_INV_REQ_ERR);
        5'd2: nak_status = 8'(URDMA_WC_REM_ACCESS_ERR);
        5'd3: nak_status = 8'(URDMA_WC_REM_OP_ERR);
        default: nak_status = 8'(URDMA_WC_BAD_RESP_ERR);
      endcase
    end
  end

  // the entry at the head
  assign ent_ahead = ent.psn - w_reg.una;
  assign ent_acked = ent.status == '0 && ent_ahead[23];
  assign ent_err = w_reg.nak != '0 || w_reg.err || ent.status != '0;
  assign ent_done = w_reg.head != tail_reg && (ent_acked || ent_err);
  assign ent_status = ent_acked ? 8'd0 : (w_reg.nak != '0) ? w_reg.nak
      : w_reg.err ? 8'(URDMA_WC_FLUSH_ERR) : ent.status;
  assign ent_cqe = ent_status != '0 || ent.signaled;
  assign step_ready = !ent_cqe || !cqe_valid_reg || cqe_ready;
  assign step = e_reg == E_WALK && ent_done && turn_reg != 5'(TURN) && step_ready && it_reg.pass;
  assign next_head = w_reg.head + 16'd1;
  assign head_en = e_reg == E_LOAD || step;
  assign head_addr = (e_reg == E_LOAD) ? rd_st.head : next_head;

  assign hit = e_reg == E_LOAD && load_ok && ahead_ok;
  assign back_fire = e_reg == E_BACK && !aq_reg && (!changed_reg || !acked_valid_reg || acked_ready)
      && (!qerr_reg || !err_valid_reg || err_ready);
  assign push_e = back_fire && more_reg;

  always_comb begin
    st_we = !init_done || back_fire || (aq_reg && aqc.op != QPC_QUERY);
    st_wqpn = !init_done ? init_reg[QPN_W-1:0] : aq_reg ? aqc.qpn : cur_reg;
    st_wdata = !init_done ? '0 : aq_reg ? aq_out : w_reg;
    tail_we = !init_done || sent_take || (aqc_ready && aqc.op == QPC_RESET);
    tail_wqpn = !init_done ? init_reg[QPN_W-1:0] : sent_take ? sent.qpn : aqc.qpn;
    tail_wdata = (init_done && sent_take) ? sent.wqe + 16'd1 : 16'd0;
  end

  always_comb begin
    cqe_word = '0;
    cqe_word[URDMA_CQE0_OPCODE_LSB+:8] = ent.opcode;
    cqe_word[URDMA_CQE0_STATUS_LSB+:8] = ent_status;
    cqe_word[URDMA_CQE0_WQE_LSB+:16] = w_reg.head;
    cqe_word[URDMA_CQE1_LENGTH_LSB+:32] = ent.len;
    cqe_word[URDMA_CQE1_QPN_LSB+:24] = 24'(cur_reg);
  end

  always_ff @(posedge clk) begin
    if (e_start) begin
      it_reg <= in;
      cur_reg <= in.qpn;
    end
    if (e_reg == E_LOAD) begin
      w_reg <= rd_st;
      tail_reg <= rd_tail;
      turn_reg <= '0;
      more_reg <= 1'b0;
      qerr_reg <= 1'b0;
      changed_reg <= 1'b0;
      if (hit) begin
        w_reg.una <= kind_ack ? it_reg.psn + 24'd1 : it_reg.psn;
        changed_reg <= kind_ack || diff != '0;
        if (!kind_ack) begin
          w_reg.nak <= nak_status;
          w_reg.err <= 1'b1;
          qerr_reg <= 1'b1;
        end
      end
    end
    if (step) begin
      w_reg.head <= next_head;
      turn_reg <= turn_reg + 5'd1;
      changed_reg <= 1'b1;
      if (!ent_acked) begin
        w_reg.nak <= '0;
        if (!w_reg.err && ent.status != 8'(URDMA_WC_FLUSH_ERR)) begin
          w_reg.err <= 1'b1;
          qerr_reg <= 1'b1;
        end
      end
    end
    if (e_reg == E_WALK && ent_done && turn_reg == 5'(TURN)) more_reg <= it_reg.pass;
    if (aq_cur) begin
      case (aqc.op)
        QPC_RESET: begin
          w_reg <= '0;
          tail_reg <= '0;
          changed_reg <= 1'b0;
          more_reg <= 1'b0;
          qerr_reg <= 1'b0;
        end
        QPC_SQ_PSN: begin
          w_reg.active <= 1'b1;
          w_reg.una <= aqc.psn;
        end
        QPC_ERR: w_reg.err <= 1'b1;
        default: ;
      endcase
    end
    if (step && ent_cqe) begin
      cqe_reg.cqn <= it_reg.cqn;
      cqe_reg.solicited <= 1'b0;
      cqe_reg.cqe <= cqe_word;
    end
    if (back_fire && changed_reg) acked_reg <= '{qpn: cur_reg, wqe_done: w_reg.head, una_psn: w_reg.una};
    // an error of the send queue is told by its CQEs, not by an event
    if (back_fire && qerr_reg) err_reg <= '{qpn: cur_reg, event_type: 8'd0};
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      e_reg <= E_IDLE;
      acked_valid_reg <= 1'b0;
      cqe_valid_reg <= 1'b0;
      err_valid_reg <= 1'b0;
    end else begin
      case (e_reg)
        E_IDLE: if (e_start) e_reg <= E_LOAD;
        E_LOAD: e_reg <= E_WALK;
        E_WALK: if (!it_reg.pass || !ent_done || turn_reg == 5'(TURN)) e_reg <= E_BACK;
        default: if (back_fire) e_reg <= E_IDLE;
      endcase
      if (step && ent_cqe) cqe_valid_reg <= 1'b1;
      else if (cqe_ready) cqe_valid_reg <= 1'b0;
      if (back_fire && changed_reg) acked_valid_reg <= 1'b1;
      else if (acked_ready) acked_valid_reg <= 1'b0;
      if (back_fire && qerr_reg) err_valid_reg <= 1'b1;
      else if (err_ready) err_valid_reg <= 1'b0;
    end
  end

  assign acked_valid = acked_valid_reg;
  assign acked = acked_reg;
  assign cqe_valid = cqe_valid_reg;
  assign cqe = cqe_reg;
  assign err_valid = err_valid_reg;
  assign err = err_reg;

  assign ack_valid = hit;
  assign drop_valid = e_reg == E_LOAD && it_reg.kind == IT_PKT && !hit;
  assign ack_qpn = cur_reg;
  assign ack_psn = it_reg.psn;
  assign ack_syndrome = it_reg.ext[7:0];

  always_ff @(posedge clk) begin
    cnt <= '0;
    if (!rst && e_reg == E_LOAD && it_reg.kind == IT_PKT) begin
      cnt[URDMA_CNT_RX_NO_QP] <= !it_reg.pass;
      cnt[URDMA_CNT_RX_ACK] <= it_reg.pass && kind_ack;
      cnt[URDMA_CNT_RX_NAK] <= it_reg.pass && kind_nak;
      cnt[URDMA_CNT_RX_NAK_RNR] <= it_reg.pass && kind_rnr;
    end
  end

  assign busy = sent_valid || in_valid || s1_valid_reg || kick_count != '0 || e_reg != E_IDLE || aq_reg
      || acked_valid_reg || cqe_valid_reg || err_valid_reg || !init_done;

endmodule

`resetall
