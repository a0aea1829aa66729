// SPDX-License-Identifier: Apache-2.0
// The PCIe front end: connects the user interface of the UltraScale+ integrated block (AMD PG213, 512 bit, dword-aligned, no
// straddling) with the register bus, doorbells, DMA ports and interrupts of the NIC. README.md in this folder has the block
// diagram and the rules; urdma_pkg has the rules of the DMA ports.

`resetall
`default_nettype none

module urdma_pcie
  import urdma_pkg::*;
  import urdma_pcie_pkg::*;
#(
  // completion time-out in cycles (50 ms)
  parameter int CPL_TIMEOUT = 12500000,
  // cycles until the tag of a request that was given up is used again
  parameter int TAG_QUARANTINE = 16 * CPL_TIMEOUT
) (
  input  wire logic         clk,
  input  wire logic         rst,

  // requests from the host
  input  wire logic [511:0] s_axis_cq_tdata,
  input  wire logic [15:0]  s_axis_cq_tkeep,
  input  wire logic [182:0] s_axis_cq_tuser,
  input  wire logic         s_axis_cq_tlast,
  input  wire logic         s_axis_cq_tvalid,
  output      logic         s_axis_cq_tready,

  // our completions
  output      logic [511:0] m_axis_cc_tdata,
  output      logic [15:0]  m_axis_cc_tkeep,
  output      logic [80:0]  m_axis_cc_tuser,
  output      logic         m_axis_cc_tlast,
  output      logic         m_axis_cc_tvalid,
  input  wire logic         m_axis_cc_tready,

  // our requests
  output      logic [511:0] m_axis_rq_tdata,
  output      logic [15:0]  m_axis_rq_tkeep,
  output      logic [136:0] m_axis_rq_tuser,
  output      logic         m_axis_rq_tlast,
  output      logic         m_axis_rq_tvalid,
  input  wire logic         m_axis_rq_tready,

  // completions from the host
  input  wire logic [511:0] s_axis_rc_tdata,
  input  wire logic [15:0]  s_axis_rc_tkeep,
  input  wire logic [160:0] s_axis_rc_tuser,
  input  wire logic         s_axis_rc_tlast,
  input  wire logic         s_axis_rc_tvalid,
  output      logic         s_axis_rc_tready,

  // configuration
  input  wire logic [2:0]   cfg_max_payload,
  input  wire logic [2:0]   cfg_max_read_req,
  input  wire logic         cfg_bus_master_en,

  // interrupts to the integrated block
  output      logic         irq_valid,
  output      logic [VEC_W-1:0] irq_vec,
  input  wire logic         irq_ready,

  // register bus; answers to reads in order, without back-pressure
  output      logic         reg_req_valid,
  output      reg_req_t     reg_req,
  input  wire logic         reg_req_ready,
  input  wire logic         reg_rsp_valid,
  input  wire logic [63:0]  reg_rsp_data,

  // doorbells
  output      logic         db_valid,
  output      db_t          db,
  input  wire logic         db_ready,

  // before the NIC's blocks are reset: while stop is 1, no DMA request begins; wr_open: a write is not complete
  input  wire logic         stop,
  output      logic         wr_open,

  // DMA read
  input  wire logic [RD_N-1:0] rd_req_valid,
  input  wire dma_rd_req_t [RD_N-1:0] rd_req,
  output      logic [RD_N-1:0] rd_req_ready,
  output      logic [RD_N-1:0] rd_rsp_valid,
  output      dma_rd_rsp_t  rd_rsp,

  // DMA write
  input  wire logic [WR_N-1:0] wr_valid,
  input  wire dma_wr_t [WR_N-1:0] wr,
  output      logic [WR_N-1:0] wr_ready,

  // interrupt requests of the NIC
  input  wire logic         irq_req_valid,
  input  wire logic [VEC_W-1:0] irq_req_vec,
  output      logic         irq_req_ready,

  // the NIC's time, and the start of the next sweep for unanswered reads
  input  wire logic [31:0]  cycles,
  output      logic         timer_armed,
  output      logic [31:0]  timer_cycles,

  // something is in flight; DMA or an interrupt is. A reset waits for the second only, not for requests of the host
  output      logic         busy,
  output      logic         dma_busy,

  // one pulse per event
  output      logic         cnt_rd_tlp,          // read request sent
  output      logic         cnt_wr_tlp,          // write TLP sent
  output      logic         cnt_dma_drop,        // TLP discarded, bus master enable was 0
  output      logic         cnt_cpl_err,         // completion with an error
  output      logic         cnt_cpl_timeout,     // read given up
  output      logic         cnt_cpl_unexpected,  // completion for no request
  output      logic         cnt_db_bad,          // BAR2 write that is not a doorbell
  output      logic         cnt_mmio_bad         // request of the host that was refused
);

  logic rd_tlp_valid, rd_tlp_ready, rd_tlp_drop;
  rd_tlp_t rd_tlp;
  logic wr_tlp_valid, wr_tlp_ready;
  rq_beat_t wr_beat;
  logic wr_accept, wr_done, wr_pass;
  logic rsp_valid;
  logic [63:0] rsp_data;
  logic cq_busy, rd_busy, wr_busy, rq_busy, irq_busy, dm_busy;
  logic bar_dm_valid, bar_dm_ready, bar_dm_rsp_valid, dm_rsp_valid;
  dm_req_t bar_dm;
  logic [63:0] bar_dm_rsp_data, dm_rsp_data;
  logic dm_wr_valid, dm_wr_ready, dm_accept, dm_done, dm_rd_valid, dm_rd_ready;
  dma_wr_t dm_wr;
  logic [DM_W-7:0] dm_rd_line;
  logic [511:0] dm_rd_data;

  assign dma_busy = rd_busy || wr_busy || rq_busy || irq_busy;
  assign busy = dma_busy || cq_busy || dm_busy;

  logic cq_clk;
  urdma_clk #(.PART(PART_PCIE_CQ)) clk_u_cq (.clk, .part_clk(cq_clk));
  urdma_pcie_cq u_cq (
    .clk(cq_clk), .rst,
    .s_axis_cq_tdata, .s_axis_cq_tkeep, .s_axis_cq_tuser, .s_axis_cq_tlast, .s_axis_cq_tvalid, .s_axis_cq_tready,
    .m_axis_cc_tdata, .m_axis_cc_tkeep, .m_axis_cc_tuser, .m_axis_cc_tlast, .m_axis_cc_tvalid, .m_axis_cc_tready,
    .reg_req_valid, .reg_req, .reg_req_ready, .reg_rsp_valid(rsp_valid), .reg_rsp_data(rsp_data),
    .db_valid, .db, .db_ready,
    .dm_valid(bar_dm_valid), .dm(bar_dm), .dm_ready(bar_dm_ready), .dm_rsp_valid, .dm_rsp_data,
    .cnt_db_bad, .cnt_mmio_bad,
    .busy(cq_busy)
  );

  logic rd_clk;
  urdma_clk #(.PART(PART_PCIE_RD)) clk_u_rd (.clk, .part_clk(rd_clk));
  urdma_dma_rd #(.CPL_TIMEOUT(CPL_TIMEOUT), .TAG_QUARANTINE(TAG_QUARANTINE)) u_rd (
    .clk(rd_clk), .rst, .cycles, .timer_armed, .timer_cycles,
    .cfg_max_read_req,
    .stop, .rd_req_valid, .rd_req, .rd_req_ready, .rd_rsp_valid, .rd_rsp,
    .wr_accept, .wr_pass, .dm_accept, .dm_done,
    .dm_valid(dm_rd_valid), .dm_line(dm_rd_line), .dm_ready(dm_rd_ready), .dm_data(dm_rd_data),
    .tlp_valid(rd_tlp_valid), .tlp(rd_tlp), .tlp_ready(rd_tlp_ready), .tlp_drop(rd_tlp_drop),
    .s_axis_rc_tdata, .s_axis_rc_tkeep, .s_axis_rc_tuser, .s_axis_rc_tlast, .s_axis_rc_tvalid, .s_axis_rc_tready,
    .cnt_cpl_err, .cnt_cpl_timeout, .cnt_cpl_unexpected,
    .busy(rd_busy)
  );

  logic wr_clk;
  urdma_clk #(.PART(PART_PCIE_WR)) clk_u_wr (.clk, .part_clk(wr_clk));
  urdma_dma_wr u_wr (
    .clk(wr_clk), .rst,
    .cfg_max_payload,
    .stop, .open(wr_open), .wr_valid, .wr, .wr_ready,
    .tlp_valid(wr_tlp_valid), .tlp_beat(wr_beat), .tlp_ready(wr_tlp_ready),
    .dm_valid(dm_wr_valid), .dm(dm_wr), .dm_ready(dm_wr_ready),
    .wr_accept, .dm_accept,
    .busy(wr_busy)
  );

  logic dm_clk;
  urdma_clk #(.PART(PART_PCIE_DM)) clk_u_dm (.clk, .part_clk(dm_clk));
  urdma_devmem u_dm (
    .clk(dm_clk), .rst,
    .bar_valid(bar_dm_valid), .bar(bar_dm), .bar_ready(bar_dm_ready),
    .bar_rsp_valid(bar_dm_rsp_valid), .bar_rsp_data(bar_dm_rsp_data),
    .wr_valid(dm_wr_valid), .wr(dm_wr), .wr_ready(dm_wr_ready), .wr_done(dm_done),
    .rd_valid(dm_rd_valid), .rd_line(dm_rd_line), .rd_ready(dm_rd_ready), .rd_data(dm_rd_data),
    .busy(dm_busy)
  );

  logic rq_clk;
  urdma_clk #(.PART(PART_PCIE_RQ)) clk_u_rq (.clk, .part_clk(rq_clk));
  urdma_rq_mux u_rq (
    .clk(rq_clk), .rst,
    .cfg_bus_master_en,
    .rd_valid(rd_tlp_valid), .rd_tlp, .rd_ready(rd_tlp_ready), .rd_drop(rd_tlp_drop),
    .wr_valid(wr_tlp_valid), .wr_beat, .wr_ready(wr_tlp_ready), .wr_done, .wr_pass,
    .m_axis_rq_tdata, .m_axis_rq_tkeep, .m_axis_rq_tuser, .m_axis_rq_tlast, .m_axis_rq_tvalid, .m_axis_rq_tready,
    .cnt_rd_tlp, .cnt_wr_tlp, .cnt_drop(cnt_dma_drop),
    .busy(rq_busy)
  );

  logic irq_clk;
  urdma_clk #(.PART(PART_PCIE_IRQ)) clk_u_irq (.clk, .part_clk(irq_clk));
  urdma_wr_order #(.WIDTH(VEC_W)) u_irq (
    .clk(irq_clk), .rst,
    .in_valid(irq_req_valid), .in_data(irq_req_vec), .in_ready(irq_req_ready),
    .wr_accept, .wr_done,
    .out_valid(irq_valid), .out_data(irq_vec), .out_ready(irq_ready),
    .busy(irq_busy)
  );

  // There is room for the answers of all reads that can be under way.
  /* verilator lint_off UNUSEDSIGNAL */
  logic rsp_room, rsp_busy, dm_rsp_room, dm_rsp_busy;  // reads under way keep u_cq busy
  /* verilator lint_on UNUSEDSIGNAL */
  logic rsp_clk;
  urdma_clk #(.PART(PART_PCIE_RSP)) clk_u_rsp (.clk, .part_clk(rsp_clk));
  urdma_wr_order #(.WIDTH(64)) u_rsp (
    .clk(rsp_clk), .rst,
    .in_valid(reg_rsp_valid), .in_data(reg_rsp_data), .in_ready(rsp_room),
    .wr_accept, .wr_done,
    .out_valid(rsp_valid), .out_data(rsp_data), .out_ready(1'b1),
    .busy(rsp_busy)
  );

  logic dm_rsp_clk;
  urdma_clk #(.PART(PART_PCIE_DM_RSP)) clk_u_dm_rsp (.clk, .part_clk(dm_rsp_clk));
  urdma_wr_order #(.WIDTH(64)) u_dm_rsp (
    .clk(dm_rsp_clk), .rst,
    .in_valid(bar_dm_rsp_valid), .in_data(bar_dm_rsp_data), .in_ready(dm_rsp_room),
    .wr_accept, .wr_done,
    .out_valid(dm_rsp_valid), .out_data(dm_rsp_data), .out_ready(1'b1),
    .busy(dm_rsp_busy)
  );

endmodule

`resetall
