// SPDX-License-Identifier: Apache-2.0
// The NIC as the simulator clocks it: urdma_top with registered inputs, and with a clock for each of its parts.
//
// The cost of a clock edge or of a changed input depends on the logic after it. So inputs are sampled in groups, each at
// the rising edge of its own in_clk: a group that has not changed causes no evaluation. part_clk are the clocks of the
// parts (rtl/lib/urdma_clk.sv), clk is the clock of all logic outside of parts.
//
// A cycle is two steps: in_clk of the groups that changed, with all other clocks low; then clk and part_clk.

`resetall
`default_nettype none

module urdma_sim_top
  import urdma_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic               clk,
  input  wire logic               part_clk [PART_N],
  input  wire logic [8:0]         in_clk,     // 0 CQ, 1 RC, 2 CC, 3 RQ, 4 interrupts, 5 MAC transmit, 6 receive, 7 skip, 8 the rest

  // in_clk[0], [1]
  input  wire logic [511:0]       s_axis_cq_tdata,
  input  wire logic [15:0]        s_axis_cq_tkeep,
  input  wire logic [182:0]       s_axis_cq_tuser,
  input  wire logic               s_axis_cq_tlast,
  input  wire logic               s_axis_cq_tvalid,
  output      logic               s_axis_cq_tready,
  input  wire logic [511:0]       s_axis_rc_tdata,
  input  wire logic [15:0]        s_axis_rc_tkeep,
  input  wire logic [160:0]       s_axis_rc_tuser,
  input  wire logic               s_axis_rc_tlast,
  input  wire logic               s_axis_rc_tvalid,
  output      logic               s_axis_rc_tready,

  // in_clk[2], [3]
  output      logic [511:0]       m_axis_cc_tdata,
  output      logic [15:0]        m_axis_cc_tkeep,
  output      logic [80:0]        m_axis_cc_tuser,
  output      logic               m_axis_cc_tlast,
  output      logic               m_axis_cc_tvalid,
  input  wire logic               m_axis_cc_tready,
  output      logic [511:0]       m_axis_rq_tdata,
  output      logic [15:0]        m_axis_rq_tkeep,
  output      logic [136:0]       m_axis_rq_tuser,
  output      logic               m_axis_rq_tlast,
  output      logic               m_axis_rq_tvalid,
  input  wire logic               m_axis_rq_tready,

  // in_clk[4]
  output      logic               irq_valid,
  output      logic [VEC_W-1:0]   irq_vec,
  input  wire logic               irq_ready,

  // in_clk[5], [6]
  output      logic [511:0]       m_axis_tx_tdata,
  output      logic [63:0]        m_axis_tx_tkeep,
  output      logic               m_axis_tx_tlast,
  output      logic               m_axis_tx_tuser,
  output      logic               m_axis_tx_tvalid,
  input  wire logic               m_axis_tx_tready,
  input  wire logic [511:0]       s_axis_rx_tdata,
  input  wire logic [63:0]        s_axis_rx_tkeep,
  input  wire logic               s_axis_rx_tlast,
  input  wire logic               s_axis_rx_tuser,
  input  wire logic               s_axis_rx_tvalid,

  // in_clk[7]
  input  wire logic               skip_valid,
  input  wire logic [63:0]        skip_cycles,

  // in_clk[8]
  input  wire logic               rst,
  input  wire logic [2:0]         cfg_max_payload,
  input  wire logic [2:0]         cfg_max_read_req,
  input  wire logic               cfg_bus_master_en,
  input  wire logic [47:0]        mac_default,
  input  wire logic               link_up,

  output      logic               idle,
  output      logic               timer_armed,
  output      logic [31:0]        timer_cycles,
  output      logic [TRACE_N-1:0] trace_valid,
  output      trace_lane_t        trace_lane [TRACE_N]
);

  logic [511:0] cq_data, rc_data, rx_data;
  logic [15:0] cq_keep, rc_keep;
  logic [182:0] cq_user;
  logic [160:0] rc_user;
  logic [63:0] rx_keep, skipped;
  logic [47:0] mac;
  logic [2:0] max_payload, max_read_req;
  logic cq_last, cq_valid, rc_last, rc_valid, rx_last, rx_user, rx_valid;
  logic cc_ready, rq_ready, vec_ready, tx_ready, skip, reset, bus_master_en, link;

  always_ff @(posedge in_clk[0]) begin
    cq_valid <= s_axis_cq_tvalid;
    if (s_axis_cq_tvalid) begin
      cq_data <= s_axis_cq_tdata;
      cq_keep <= s_axis_cq_tkeep;
      cq_user <= s_axis_cq_tuser;
      cq_last <= s_axis_cq_tlast;
    end
  end

  always_ff @(posedge in_clk[1]) begin
    rc_valid <= s_axis_rc_tvalid;
    if (s_axis_rc_tvalid) begin
      rc_data <= s_axis_rc_tdata;
      rc_keep <= s_axis_rc_tkeep;
      rc_user <= s_axis_rc_tuser;
      rc_last <= s_axis_rc_tlast;
    end
  end

  always_ff @(posedge in_clk[2]) cc_ready <= m_axis_cc_tready;
  always_ff @(posedge in_clk[3]) rq_ready <= m_axis_rq_tready;
  always_ff @(posedge in_clk[4]) vec_ready <= irq_ready;
  always_ff @(posedge in_clk[5]) tx_ready <= m_axis_tx_tready;

  always_ff @(posedge in_clk[6]) begin
    rx_valid <= s_axis_rx_tvalid;
    if (s_axis_rx_tvalid) begin
      rx_data <= s_axis_rx_tdata;
      rx_keep <= s_axis_rx_tkeep;
      rx_last <= s_axis_rx_tlast;
      rx_user <= s_axis_rx_tuser;
    end
  end

  always_ff @(posedge in_clk[7]) begin
    skip <= skip_valid;
    skipped <= skip_cycles;
  end

  always_ff @(posedge in_clk[8]) begin
    reset <= rst;
    max_payload <= cfg_max_payload;
    max_read_req <= cfg_max_read_req;
    bus_master_en <= cfg_bus_master_en;
    mac <= mac_default;
    link <= link_up;
  end

  urdma_top nic (
    .clk, .rst(reset),
    .s_axis_cq_tdata(cq_data), .s_axis_cq_tkeep(cq_keep), .s_axis_cq_tuser(cq_user), .s_axis_cq_tlast(cq_last),
    .s_axis_cq_tvalid(cq_valid), .s_axis_cq_tready,
    .m_axis_cc_tdata, .m_axis_cc_tkeep, .m_axis_cc_tuser, .m_axis_cc_tlast, .m_axis_cc_tvalid, .m_axis_cc_tready(cc_ready),
    .m_axis_rq_tdata, .m_axis_rq_tkeep, .m_axis_rq_tuser, .m_axis_rq_tlast, .m_axis_rq_tvalid, .m_axis_rq_tready(rq_ready),
    .s_axis_rc_tdata(rc_data), .s_axis_rc_tkeep(rc_keep), .s_axis_rc_tuser(rc_user), .s_axis_rc_tlast(rc_last),
    .s_axis_rc_tvalid(rc_valid), .s_axis_rc_tready,
    .cfg_max_payload(max_payload), .cfg_max_read_req(max_read_req), .cfg_bus_master_en(bus_master_en),
    .irq_valid, .irq_vec, .irq_ready(vec_ready),
    .m_axis_tx_tdata, .m_axis_tx_tkeep, .m_axis_tx_tlast, .m_axis_tx_tuser, .m_axis_tx_tvalid, .m_axis_tx_tready(tx_ready),
    .s_axis_rx_tdata(rx_data), .s_axis_rx_tkeep(rx_keep), .s_axis_rx_tlast(rx_last), .s_axis_rx_tuser(rx_user),
    .s_axis_rx_tvalid(rx_valid), .mac_default(mac), .link_up(link),
    .idle, .timer_armed, .timer_cycles, .skip_valid(skip), .skip_cycles(skipped),
    .trace_valid, .trace_lane
  );

endmodule

`resetall
