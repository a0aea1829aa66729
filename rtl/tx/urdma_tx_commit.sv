// SPDX-License-Identifier: Apache-2.0
// Commit: the point where packets are known to be good, in order.
//
// A packet descriptor waits here until its payload is in the packet buffer. Then the packet goes on to header assembly, or is
// dropped if its payload failed or its QP has failed before. The last packet of a message sends a sent_t to requester
// completion, and each request packet a made_t. Nothing after this point can fail, and nothing before it has been seen by
// others.
//
// A QP is dead when a failed message has been reported: packets are dropped, messages end with FLUSH_ERR. The failed message
// may have been reported before its last packet came (told): its end is then dropped without a report. A new era (the QP was
// reset) begins alive. Its first descriptor says so (fresh). The era number is not enough: commit does not see an era without a
// descriptor, and numbers repeat.
//
// Messages before the failed one may still be sent again. A resent message has already had its sent_t. If it was completed
// meanwhile, its packets are dropped, and it no longer matters whether its memory can be read. For a QP in ERR no packet is
// sent: the flush completes its messages one after the other, and packets of the remaining ones would follow a gap.
//
// If the payload of a packet of urdma_tx_resp (READ response) fails, the packet is dropped and reported by rfail, and later
// packets of the same life are dropped, too. But if a repeated READ (again: of up to 2 MB) is refused by its key, only its
// packets are dropped: the requester may have received all answers to the first one, and the key may have been invalidated
// since.

`resetall
`default_nettype none

module urdma_tx_commit
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic                  clk,
  input  wire logic                  rst,
  output      logic                  init_done,
  output      logic                  busy,

  input  wire logic                  pd_valid,
  input  wire pdesc_t                pd,
  output      logic                  pd_ready,
  input  wire logic                  issued_valid,
  input  wire issued_t               issued,
  output      logic                  issued_ready,
  input  wire logic [SEQ_W-1:0]      frags_here,
  input  wire logic [SEQ_W-1:0]      inls_here,
  input  wire logic [(1<<PKT_W)-1:0] failed,
  output      logic                  slot_clear,
  output      logic [PKT_W-1:0]      slot,

  output      logic                  pkt_valid,
  output      pkt_t                  pkt,
  input  wire logic                  pkt_ready,
  output      logic                  retrans,       // pulse: the packet taken has been sent before
  output      logic                  sent_valid,
  output      sent_t                 sent,
  input  wire logic                  sent_ready,
  output      logic                  made_valid,
  output      made_t                 made,
  input  wire logic                  made_ready,

  output      logic                  resp_gone,     // pulse: a descriptor of urdma_tx_resp has left
  output      logic                  rfail_valid,   // pulse
  output      logic [QPN_W-1:0]      rfail_qpn,
  output      logic [ERA_W-1:0]      rfail_era,
  output      logic [23:0]           rfail_psn,
  output      logic [7:0]            rfail_status,

  input  wire logic                  look_wr,
  input  wire logic [QPN_W-1:0]      look_wr_qpn,
  input  wire look_t                 look_wr_data,
  output      logic                  fence_hit,     // pulse: a fence has passed
  output      logic                  trace_full_valid,
  output      tr_full_t              trace_full
);

  typedef struct packed {
    logic             dead;
    logic [15:0]      wqe;       // the failed message
    logic             told_v;    // told has been reported, its last packet has not come yet
    logic [15:0]      told;
  } state_t;
  typedef struct packed {
    logic [ERA_W-1:0] era;
    logic             dead;
  } rstate_t;

  // ---- FIFOs -----------------------------------------------------------------------------------------------
  logic p_valid, p_pop;
  pdesc_t p, c_reg;
  logic [PKT_W:0] p_count;
  urdma_fifo #(.WIDTH($bits(pdesc_t)), .DEPTH(1 << PKT_W), .OUT_REG(1)) pd_fifo (
    .clk, .rst, .in_valid(pd_valid), .in_ready(pd_ready), .in_data(pd),
    .out_valid(p_valid), .out_ready(p_pop), .out_data(p), .count(p_count)
  );

  logic i_valid, i_pop;
  issued_t i;
  logic [PKT_W-1:0] i_count;
  // fewer than slots, so a slot is cleared before it is used again
  urdma_fifo #(.WIDTH($bits(issued_t)), .DEPTH(1 << (PKT_W - 1))) issued_fifo (
    .clk, .rst, .in_valid(issued_valid), .in_ready(issued_ready), .in_data(issued),
    .out_valid(i_valid), .out_ready(i_pop), .out_data(i), .count(i_count)
  );

  logic s_valid, s_ready;
  sent_t s;
  logic [3:0] s_count;
  urdma_fifo #(.WIDTH($bits(sent_t)), .DEPTH(8)) sent_fifo (
    .clk, .rst, .in_valid(s_valid), .in_ready(s_ready), .in_data(s),
    .out_valid(sent_valid), .out_ready(sent_ready), .out_data(sent), .count(s_count)
  );

  logic m_valid, m_ready;
  made_t m;
  logic [3:0] m_count;
  urdma_fifo #(.WIDTH($bits(made_t)), .DEPTH(8)) made_fifo (
    .clk, .rst, .in_valid(m_valid), .in_ready(m_ready), .in_data(m),
    .out_valid(made_valid), .out_ready(made_ready), .out_data(made), .count(m_count)
  );

  // ---- state -------------------------------------------------------------------------------------------------
  logic init_done_reg;
  logic [QPN_W-1:0] init_qpn_reg;
  assign init_done = init_done_reg;

  logic c_valid_reg, st_wr;
  state_t st_q, st, nx, byp_reg;
  rstate_t rs_q, rs, rs_nx, rbyp_reg;
  logic rs_wr, rbyp_valid_reg;
  logic [QPN_W-1:0] rbyp_qpn_reg;
  look_t look;
  logic byp_valid_reg;
  logic [QPN_W-1:0] byp_qpn_reg;

  urdma_ram_sdp #(.WIDTH($bits(state_t)), .DEPTH(1 << QPN_W)) state_ram (
    .clk,
    .wr_en(!init_done_reg || st_wr), .wr_addr(init_done_reg ? c_reg.qpn : init_qpn_reg),
    .wr_data(init_done_reg ? nx : '0),
    .rd_en(p_pop), .rd_addr(p.qpn), .rd_data(st_q)
  );

  urdma_ram_sdp #(.WIDTH($bits(rstate_t)), .DEPTH(1 << QPN_W)) rstate_ram (
    .clk,
    .wr_en(!init_done_reg || rs_wr), .wr_addr(init_done_reg ? c_reg.qpn : init_qpn_reg),
    .wr_data(init_done_reg ? rs_nx : '0),
    .rd_en(p_pop), .rd_addr(p.qpn), .rd_data(rs_q)
  );
  // read in every cycle while a packet waits for its payload
  urdma_ram_sdp #(.WIDTH($bits(look_t)), .DEPTH(1 << QPN_W)) look_ram (
    .clk, .wr_en(look_wr), .wr_addr(look_wr_qpn), .wr_data(look_wr_data),
    .rd_en(p_pop || (c_valid_reg && c_reg.resent)), .rd_addr(p_pop ? p.qpn : c_reg.qpn), .rd_data(look)
  );

  // The last word written is kept: it may be newer than what the read in the same cycle returned.
  always_comb begin
    st = (byp_valid_reg && (byp_qpn_reg == c_reg.qpn)) ? byp_reg : st_q;
    if (c_reg.fresh) st = '0;
    rs = (rbyp_valid_reg && (rbyp_qpn_reg == c_reg.qpn)) ? rbyp_reg : rs_q;
    if (rs.era != c_reg.era) rs = '{era: c_reg.era, dead: 1'b0};
  end


  // ---- decision ------------------------------------------------------------------------------------------------
  logic has_data, here, room, done, good, frame, passed, ended, alive, late;
  logic [SEQ_W-1:0] behind;
  logic [7:0] status;

  assign has_data = (c_reg.plen != '0);
  assign behind = (c_reg.inl ? inls_here : frags_here) - i.seq;
  assign here = !has_data || (i_valid && !behind[SEQ_W-1]);
  always_comb begin
    status = c_reg.status;
    if (has_data && (status == '0)) begin
      status = i.status;
      if ((status == '0) && failed[i.slot]) status = c_reg.resp ? 8'(URDMA_WC_REM_OP_ERR) : 8'(URDMA_WC_LOC_QP_OP_ERR);
    end
    if (passed) status = '0;
  end
  assign passed = c_reg.resent && !c_reg.resp && (look.era == c_reg.era) && wqe_before(c_reg.wqe, look.done);
  assign alive = c_reg.resp ? !rs.dead : (!st.dead || (c_reg.resent && wqe_before(c_reg.wqe, st.wqe)));
  assign good = (status == '0) && alive && !passed;
  assign ended = (look.era == c_reg.era) && look.err;
  assign frame = good && (c_reg.resp || (!c_reg.local_op && !ended));
  // a fence waits until the reports of messages before it are taken
  assign room = c_reg.fence ? (s_count == '0 && m_count == '0) : (s_ready && m_ready);
  assign done = c_valid_reg && here && room && (pkt_ready || c_reg.fence || (!has_data && !frame));
  assign i_pop = done && has_data;
  assign slot_clear = i_pop;
  assign slot = i.slot;
  assign fence_hit = done && c_reg.fence;
  assign retrans = done && frame && !c_reg.resp && c_reg.again;
  assign resp_gone = done && c_reg.resp;
  assign late = c_reg.again && (status == 8'(URDMA_WC_REM_ACCESS_ERR));
  assign rfail_valid = resp_gone && (status != '0) && !late && !rs.dead;
  assign rfail_qpn = c_reg.qpn;
  assign rfail_era = c_reg.era;
  assign rfail_psn = c_reg.psn;
  assign rfail_status = status;
  assign rs_wr = rfail_valid;
  assign rs_nx = '{era: c_reg.era, dead: 1'b1};

  always_comb begin
    nx = st;
    s_valid = 1'b0;
    s = '{qpn: c_reg.qpn, wqe: c_reg.wqe, psn: (status != '0) ? c_reg.psn : c_reg.sent_psn, opcode: c_reg.wr_opcode,
          signaled: c_reg.signaled, status: status, resent: c_reg.resent, unrel: c_reg.unrel, len: c_reg.msg_len};
    if (done && !c_reg.fence && !c_reg.resp && !passed) begin
      if (alive) begin
        s_valid = (c_reg.eom && !c_reg.resent) || (status != '0);
        if ((status != '0) && (status != 8'(URDMA_WC_FLUSH_ERR))) begin
          nx.dead = 1'b1;
          nx.wqe = c_reg.wqe;
          if (!c_reg.eom && !c_reg.resent) begin
            nx.told_v = 1'b1;
            nx.told = c_reg.wqe;
          end
        end
      end else if (c_reg.eom && st.told_v && (st.told == c_reg.wqe)) begin
        // the end of the reported message; a later message with the same index is a different one
        nx.told_v = 1'b0;
      end else begin
        s_valid = c_reg.eom && !c_reg.resent;
        s.status = 8'(URDMA_WC_FLUSH_ERR);
      end
    end
  end
  assign st_wr = done && !c_reg.fence && !c_reg.resp;
  assign m_valid = st_wr && frame;
  assign m = '{qpn: c_reg.qpn, psn: c_reg.eom ? c_reg.sent_psn : c_reg.psn, asks: c_reg.ackreq};

  // A dropped packet goes on as well if it holds lines of the packet buffer: lines are freed in order.
  assign pkt_valid = c_valid_reg && here && room && !c_reg.fence && (has_data || frame);
  assign pkt = '{drop: !frame, again: c_reg.again && !c_reg.resp, qpn: c_reg.qpn, opcode: c_reg.opcode, se: c_reg.se, ackreq: c_reg.ackreq, psn: c_reg.psn,
                 ext_len: c_reg.ext_len, ext: c_reg.ext, plen: c_reg.plen, path: c_reg.path};

  assign trace_full_valid = done && is_packet(c_reg);
  assign trace_full = '{qpn: c_reg.qpn, psn: c_reg.psn, opcode: c_reg.opcode, drop: !frame};

  assign p_pop = p_valid && init_done_reg && (!c_valid_reg || done);

  always_ff @(posedge clk) begin
    if (p_pop) c_reg <= p;
    if (st_wr) begin
      byp_qpn_reg <= c_reg.qpn;
      byp_reg <= nx;
    end
    if (rs_wr) begin
      rbyp_qpn_reg <= c_reg.qpn;
      rbyp_reg <= rs_nx;
    end
    if (rst) begin
      c_valid_reg <= 1'b0;
      byp_valid_reg <= 1'b0;
      rbyp_valid_reg <= 1'b0;
      init_done_reg <= 1'b0;
      init_qpn_reg <= '0;
    end else begin
      if (p_pop) c_valid_reg <= 1'b1;
      else if (done) c_valid_reg <= 1'b0;
      if (st_wr) byp_valid_reg <= 1'b1;
      if (rs_wr) rbyp_valid_reg <= 1'b1;
      if (!init_done_reg) begin
        init_qpn_reg <= init_qpn_reg + 1'b1;
        init_done_reg <= &init_qpn_reg;
      end
    end
  end

  logic unused;
  assign unused = ^look.gen;

  assign busy = !init_done_reg || pd_valid || (p_count != '0) || (i_count != '0) || c_valid_reg || (s_count != '0) || (m_count != '0);

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_completed_while_resent: cover property (@(posedge clk) !rst && done && passed);
  c_ended: cover property (@(posedge clk) !rst && done && good && !c_reg.resp && !c_reg.local_op && ended);
  c_late_response: cover property (@(posedge clk) !rst && resp_gone && late && !rs.dead);
  c_response_behind_failed: cover property (@(posedge clk) !rst && resp_gone && rs.dead);
  c_failed_in_message: cover property (@(posedge clk) !rst && done && !c_reg.fence && !c_reg.resp && alive && status != '0 && !c_reg.eom);
`endif

endmodule

`resetall
