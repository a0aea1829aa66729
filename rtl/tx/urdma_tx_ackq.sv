// SPDX-License-Identifier: Apache-2.0
// Acknowledgements to send: one pending per QP.
//
// A request finds its QP with nothing pending: it is stored, and the QP goes to the end of the queue. Otherwise the
// newer takes the place of the older, which it covers, except that a NAK stays until it is sent: the responder gives
// only one for a gap, and an ACK of a duplicate may come behind it. So the queue holds each QP at most once and
// never refuses a request; under load acknowledgements coalesce.
//
// When the packet builder is free the head of the queue is taken, its configuration read, and the packet handed on.
// A QP that has been destroyed or reset meanwhile sends nothing.

`resetall
`default_nettype none

module urdma_tx_ackq
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,
  output      logic             busy,

  input  wire logic             ack_req_valid,
  input  wire ack_req_t         ack_req,
  output      logic             ack_req_ready,

  output      logic             cfg_req_valid,
  output      logic [QPN_W-1:0] cfg_req_qpn,
  input  wire logic             cfg_req_ready,
  input  wire logic             cfg_rsp_valid,
  input  wire qp_cfg_t          cfg_rsp,

  output      logic             pkt_valid,
  output      pkt_t             pkt,
  input  wire logic             pkt_ready,

  input  wire logic             fence_start,   // pulse
  output      logic             fence_hit      // level: all requests taken before fence_start have left
);

  typedef struct packed {
    logic        pending;
    logic [23:0] psn;
    logic [7:0]  syndrome;
    logic [23:0] msn;
  } state_t;

  localparam int PEND = 4;       // acknowledgements between queue and builder

  logic init_done_reg;
  logic [QPN_W-1:0] init_qpn_reg;
  assign init_done = init_done_reg;

  // ---- queue -------------------------------------------------------------------------------------------------
  logic q_push, q_in_ready, q_valid, q_pop;
  logic [QPN_W-1:0] q_qpn, e1_qpn_reg;
  logic [QPN_W:0] q_count;
  urdma_fifo #(.WIDTH(QPN_W), .DEPTH(1 << QPN_W), .OUT_REG(1)) queue (
    .clk, .rst, .in_valid(q_push), .in_ready(q_in_ready), .in_data(e1_qpn_reg),
    .out_valid(q_valid), .out_ready(q_pop), .out_data(q_qpn), .count(q_count)
  );

  // ---- events: a request, or the head of the queue leaves. E0 reads the state, E1 writes it. -------------------
  logic e0_valid, e0_pop;
  logic [QPN_W-1:0] e0_qpn;
  logic e1_valid_reg, e1_pop_reg;
  ack_req_t e1_req_reg;
  logic [2:0] pend_reg;

  // The head is taken with its configuration request; a request for it that comes in the same cycle is behind it.
  assign cfg_req_valid = q_valid && (pend_reg < 3'(PEND)) && init_done_reg;
  assign cfg_req_qpn = q_qpn;
  assign q_pop = cfg_req_valid && cfg_req_ready;
  assign e0_pop = q_pop;
  assign ack_req_ready = init_done_reg && !e0_pop;
  assign e0_valid = e0_pop || (ack_req_valid && ack_req_ready);
  assign e0_qpn = e0_pop ? q_qpn : ack_req.qpn;

  state_t st_q, st, nx, byp_reg;
  logic st_wr, byp_valid_reg;
  logic [QPN_W-1:0] byp_qpn_reg;

  urdma_ram_sdp #(.WIDTH($bits(state_t)), .DEPTH(1 << QPN_W)) state_ram (
    .clk,
    .wr_en(!init_done_reg || st_wr), .wr_addr(init_done_reg ? e1_qpn_reg : init_qpn_reg),
    .wr_data(init_done_reg ? nx : '0), .rd_en(e0_valid), .rd_addr(e0_qpn), .rd_data(st_q)
  );
  assign st = (byp_valid_reg && (byp_qpn_reg == e1_qpn_reg)) ? byp_reg : st_q;
  assign st_wr = e1_valid_reg;

  // syndrome bits 6:5 are 0 in an ACK (IBA volume 1, 9.7.5.2.1)
  always_comb begin
    nx = st;
    q_push = 1'b0;
    if (e1_pop_reg) begin
      nx.pending = 1'b0;
    end else begin
      q_push = e1_valid_reg && !st.pending;
      if (!st.pending || (st.syndrome[6:5] == 2'd0))
        nx = '{pending: 1'b1, psn: e1_req_reg.psn, syndrome: e1_req_reg.syndrome, msn: e1_req_reg.msn};
    end
  end

  // ---- wait for the configuration ------------------------------------------------------------------------------
  typedef struct packed {
    logic [QPN_W-1:0] qpn;
    state_t           ack;
  } out_t;

  logic o_valid, o_in_ready, c_valid, c_in_ready, o_pop, send;
  out_t o;
  logic c_ok;
  path_t c_path;
  logic [2:0] o_count, c_count;
  urdma_fifo #(.WIDTH($bits(out_t)), .DEPTH(PEND)) out_fifo (
    .clk, .rst, .in_valid(e1_valid_reg && e1_pop_reg), .in_ready(o_in_ready), .in_data({e1_qpn_reg, st}),
    .out_valid(o_valid), .out_ready(o_pop), .out_data(o), .count(o_count)
  );
  urdma_fifo #(.WIDTH(1 + $bits(path_t)), .DEPTH(PEND)) cfg_fifo (
    .clk, .rst, .in_valid(cfg_rsp_valid), .in_ready(c_in_ready),
    .in_data({cfg_rsp.valid && (cfg_rsp.state >= 4'(URDMA_QPS_RTR)), path_of(cfg_rsp)}),
    .out_valid(c_valid), .out_ready(o_pop), .out_data({c_ok, c_path}), .count(c_count)
  );

  assign send = o_valid && c_valid;
  assign pkt_valid = send && c_ok;
  assign o_pop = send && (pkt_ready || !c_ok);
  always_comb begin
    pkt = '0;
    pkt.qpn = o.qpn;
    pkt.opcode = BTH_ACK;
    pkt.psn = o.ack.psn;
    pkt.ext = 1'b1;
    // AETH: syndrome, MSN with the high byte first
    pkt.ext_data = {o.ack.msn[7:0], o.ack.msn[15:8], o.ack.msn[23:16], o.ack.syndrome};
    pkt.path = c_path;
  end

  always_ff @(posedge clk) begin
    if (e0_valid) begin
      e1_pop_reg <= e0_pop;
      e1_qpn_reg <= e0_qpn;
      e1_req_reg <= ack_req;
    end
    if (st_wr) begin
      byp_qpn_reg <= e1_qpn_reg;
      byp_reg <= nx;
    end
    if (rst) begin
      e1_valid_reg <= 1'b0;
      byp_valid_reg <= 1'b0;
      pend_reg <= '0;
      init_done_reg <= 1'b0;
      init_qpn_reg <= '0;
    end else begin
      e1_valid_reg <= e0_valid;
      byp_valid_reg <= st_wr;
      pend_reg <= pend_reg + 3'(q_pop) - 3'(o_pop);
      if (!init_done_reg) begin
        init_qpn_reg <= init_qpn_reg + 1'b1;
        init_done_reg <= &init_qpn_reg;
      end
    end
  end

  // ---- fence: what was in the queue then, and before it ------------------------------------------------------------
  logic [QPN_W+1:0] fence_left_reg;
  assign fence_hit = (fence_left_reg == '0);
  always_ff @(posedge clk) begin
    if (rst) fence_left_reg <= '0;
    else if (fence_start)  // two more for a request that is on its way into the queue
      fence_left_reg <= (QPN_W+2)'(q_count) + (QPN_W+2)'(pend_reg) + (QPN_W+2)'(e1_valid_reg && !e1_pop_reg)
                        + (QPN_W+2)'(ack_req_valid && ack_req_ready) - (QPN_W+2)'(o_pop);
    else if ((q_count == '0) && (pend_reg == '0) && !e1_valid_reg) fence_left_reg <= '0;
    else if (o_pop && (fence_left_reg != '0)) fence_left_reg <= fence_left_reg - 1'b1;
  end

  assign busy = !init_done_reg || ack_req_valid || (q_count != '0) || e1_valid_reg || (pend_reg != '0);

  logic unused;
  assign unused = ^{q_in_ready, o_in_ready, c_in_ready, o_count, c_count, e1_req_reg.qpn, o.ack.pending};

`ifndef SYNTHESIS
  a_queue: assert property (@(posedge clk) disable iff (rst) q_push |-> q_in_ready)
    else $error("%m: queue full: a QP stands in it twice");
`endif

endmodule

`resetall
