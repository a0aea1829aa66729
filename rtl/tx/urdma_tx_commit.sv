// SPDX-License-Identifier: Apache-2.0
// Commit: the point where a packet is known good, in order.
//
// A packet descriptor waits here until its payload is in the packet buffer. Then the packet goes on to be framed,
// or, if its payload failed or its QP has failed before, is dropped; with the last packet of a message a sent_t
// goes to requester completion. Nothing behind this point can fail, nothing before it has been seen by others.
//
// health of a QP: OK; PASSING: a message has failed and been reported, packets are dropped until its end;
// DEAD: messages end with FLUSH_ERR. A new era (the QP was reset) begins with OK.

`resetall
`default_nettype none

module urdma_tx_commit
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
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
  output      logic                  sent_valid,
  output      sent_t                 sent,
  input  wire logic                  sent_ready,
  output      logic                  fence_hit      // pulse: a fence has come through
);

  typedef enum logic [1:0] {OK, PASSING, DEAD} health_e;
  typedef struct packed {
    logic [ERA_W-1:0] era;
    health_e          health;
  } state_t;

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
  // fewer than slots, so a slot is not used again before it is cleared
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

  // ---- state -------------------------------------------------------------------------------------------------
  logic init_done_reg;
  logic [QPN_W-1:0] init_qpn_reg;
  assign init_done = init_done_reg;

  logic c_valid_reg, st_wr;
  state_t st_q, st, nx, byp_reg;
  logic byp_valid_reg;
  logic [QPN_W-1:0] byp_qpn_reg;

  urdma_ram_sdp #(.WIDTH($bits(state_t)), .DEPTH(1 << QPN_W)) state_ram (
    .clk,
    .wr_en(!init_done_reg || st_wr), .wr_addr(init_done_reg ? c_reg.qpn : init_qpn_reg),
    .wr_data(init_done_reg ? nx : '0),
    .rd_en(p_pop), .rd_addr(p.qpn), .rd_data(st_q)
  );

  // The last word written is kept: it may be younger than what the read in the same cycle gave.
  always_comb begin
    st = (byp_valid_reg && (byp_qpn_reg == c_reg.qpn)) ? byp_reg : st_q;
    if (st.era != c_reg.era) st = '{era: c_reg.era, health: OK};
  end

  // ---- decision ------------------------------------------------------------------------------------------------
  logic has_data, here, done, good;
  logic [SEQ_W-1:0] behind;
  logic [7:0] status;

  assign has_data = (c_reg.plen != '0);
  assign behind = (c_reg.inl ? inls_here : frags_here) - i.seq;
  assign here = !has_data || (i_valid && !behind[SEQ_W-1]);
  always_comb begin
    status = c_reg.status;
    if (has_data && (status == '0)) begin
      status = i.status;
      if ((status == '0) && failed[i.slot]) status = 8'(URDMA_WC_LOC_QP_OP_ERR);
    end
  end
  assign good = (status == '0) && (st.health == OK);
  // a fence waits until the messages before it are taken
  assign done = c_valid_reg && here && (c_reg.fence ? (s_count == '0) : s_ready) && (pkt_ready || c_reg.fence || (!has_data && !good));
  assign i_pop = done && has_data;
  assign slot_clear = i_pop;
  assign slot = i.slot;
  assign fence_hit = done && c_reg.fence;

  always_comb begin
    nx = st;
    s_valid = 1'b0;
    s = '{qpn: c_reg.qpn, wqe: c_reg.wqe, psn: c_reg.psn, opcode: c_reg.wr_opcode, signaled: c_reg.signaled,
          status: status, len: c_reg.msg_len};
    if (done && !c_reg.fence) begin
      case (st.health)
        OK: begin
          s_valid = c_reg.eom || (status != '0);
          if ((status != '0) && (status != 8'(URDMA_WC_FLUSH_ERR))) nx.health = c_reg.eom ? DEAD : PASSING;
        end
        PASSING: if (c_reg.eom) nx.health = DEAD;
        default: begin
          s_valid = c_reg.eom;
          s.status = 8'(URDMA_WC_FLUSH_ERR);
        end
      endcase
    end
  end
  assign st_wr = done && !c_reg.fence;

  // A dropped packet goes through as well if it holds lines of the packet buffer: they are given back in order.
  assign pkt_valid = c_valid_reg && here && s_ready && !c_reg.fence && (has_data || good);
  assign pkt = '{drop: !good, qpn: c_reg.qpn, opcode: c_reg.opcode, se: c_reg.se, ackreq: c_reg.ackreq, psn: c_reg.psn,
                 ext: c_reg.has_imm, ext_data: c_reg.imm, plen: c_reg.plen, path: c_reg.path};

  assign p_pop = p_valid && init_done_reg && (!c_valid_reg || done);

  always_ff @(posedge clk) begin
    if (p_pop) c_reg <= p;
    if (st_wr) begin
      byp_qpn_reg <= c_reg.qpn;
      byp_reg <= nx;
    end
    if (rst) begin
      c_valid_reg <= 1'b0;
      byp_valid_reg <= 1'b0;
      init_done_reg <= 1'b0;
      init_qpn_reg <= '0;
    end else begin
      if (p_pop) c_valid_reg <= 1'b1;
      else if (done) c_valid_reg <= 1'b0;
      if (st_wr) byp_valid_reg <= 1'b1;
      if (!init_done_reg) begin
        init_qpn_reg <= init_qpn_reg + 1'b1;
        init_done_reg <= &init_qpn_reg;
      end
    end
  end

  assign busy = !init_done_reg || pd_valid || (p_count != '0) || (i_count != '0) || c_valid_reg || (s_count != '0);

endmodule

`resetall
