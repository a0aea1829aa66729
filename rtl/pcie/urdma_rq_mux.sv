// SPDX-License-Identifier: Apache-2.0
// Puts the TLPs of the DMA engines on RQ. Reads and writes alternate while both have TLPs, so here each waits for at most one
// TLP of the other. The read engine offers a TLP only when the writes that it must not pass are on RQ.
//
// Only this module checks bus master enable: it discards a TLP whose turn comes while the enable is 0. rd_drop tells the
// read engine in the cycle of the transfer; a discarded write is only counted. wr_done reports the end of a DMA write
// request, in the cycle in which RQ accepts its last beat (or discards it). wr_pass reports the same end earlier: from the
// next cycle on a read comes after the write.
//
// Latency 1 cycle (rd_valid or wr_valid to tvalid); a beat every cycle. tvalid never falls within a TLP: the write
// engine offers only complete TLPs (PG213 nullifies a TLP with a gap).

`resetall
`default_nettype none

module urdma_rq_mux
  import urdma_pcie_pkg::*;
(
  input  wire logic         clk,
  input  wire logic         rst,

  input  wire logic         cfg_bus_master_en,

  // read requests
  input  wire logic         rd_valid,
  input  wire rd_tlp_t      rd_tlp,
  output      logic         rd_ready,
  output      logic         rd_drop,     // with the transfer: discarded

  // write TLPs, whole ones only
  input  wire logic         wr_valid,
  input  wire rq_beat_t     wr_beat,
  output      logic         wr_ready,
  output      logic         wr_done,     // pulse: RQ has taken a DMA write request completely
  output      logic         wr_pass,     // pulse: it has its place in the order of RQ

  // RQ of the integrated block
  output      logic [511:0] m_axis_rq_tdata,
  output      logic [15:0]  m_axis_rq_tkeep,
  output      logic [136:0] m_axis_rq_tuser,
  output      logic         m_axis_rq_tlast,
  output      logic         m_axis_rq_tvalid,
  input  wire logic         m_axis_rq_tready,

  // pulses
  output      logic         cnt_rd_tlp,  // read request sent
  output      logic         cnt_wr_tlp,  // write TLP sent
  output      logic         cnt_drop,    // TLP discarded, bus master enable was 0

  output      logic         busy
);

  typedef struct packed {
    rq_beat_t beat;
    logic     sop;
    logic     null_beat;  // an empty beat, consumed here: keeps the place of the end of a discarded request
  } out_t;

  logic wr_mid_reg;      // within a write TLP
  logic drop_mid_reg;    // ... that is discarded
  logic prefer_rd_reg;   // the last TLP was a write

  logic take_rd, take_wr, drop, mark, out_in_valid, out_in_ready, out_valid, out_ready;
  out_t out_in, out;
  rq_desc_t rd_desc;

  always_comb begin
    take_rd = !wr_mid_reg && rd_valid && (prefer_rd_reg || !wr_valid);
    take_wr = wr_valid && !take_rd;
    drop = wr_mid_reg ? drop_mid_reg : !cfg_bus_master_en;

    mark = take_wr && drop && wr_beat.last && wr_beat.req_end;
    out_in_valid = ((take_rd || take_wr) && !drop) || mark;
    rd_ready = take_rd && (drop || out_in_ready);
    wr_ready = take_wr && ((drop && !mark) || out_in_ready);
    rd_drop = drop;

    rd_desc = '0;
    rd_desc.addr = rd_tlp.addr;
    rd_desc.dword_count = rd_tlp.dword_count;
    rd_desc.req_type = REQ_MEM_RD;
    rd_desc.tag = rd_tlp.tag;

    out_in.beat = wr_beat;
    out_in.sop = !wr_mid_reg;
    out_in.null_beat = mark;
    if (take_rd) begin
      out_in.beat.data = {384'd0, rd_desc};
      out_in.beat.first_be = rd_tlp.first_be;
      out_in.beat.last_be = rd_tlp.last_be;
      out_in.beat.last_dw = 4'd3;
      out_in.beat.last = 1'b1;
      out_in.beat.req_end = 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      wr_mid_reg <= 1'b0;
      drop_mid_reg <= 1'b0;
      prefer_rd_reg <= 1'b0;
    end else begin
      if (rd_valid && rd_ready) prefer_rd_reg <= 1'b0;
      if (wr_valid && wr_ready) begin
        prefer_rd_reg <= 1'b1;
        wr_mid_reg <= !wr_beat.last;
        drop_mid_reg <= drop;
      end
    end
  end

  urdma_skid #(.WIDTH($bits(out_t))) u_out (
    .clk, .rst,
    .in_valid(out_in_valid), .in_ready(out_in_ready), .in_data(out_in),
    .out_valid, .out_ready, .out_data(out)
  );

  assign m_axis_rq_tvalid = out_valid && !out.null_beat;
  assign out_ready = m_axis_rq_tready || out.null_beat;
  assign wr_pass = wr_valid && wr_ready && wr_beat.last && wr_beat.req_end;
  assign wr_done = out_valid && out_ready && out.beat.last && out.beat.req_end;
  assign busy = out_valid;

  always_comb begin
    m_axis_rq_tdata = out.beat.data;
    m_axis_rq_tlast = out.beat.last;
    m_axis_rq_tkeep = out.beat.last ? keep_upto(out.beat.last_dw) : 16'hffff;
    m_axis_rq_tuser = '0;
    if (out.sop) begin
      m_axis_rq_tuser[3:0] = out.beat.first_be;
      m_axis_rq_tuser[11:8] = out.beat.last_be;
    end
    m_axis_rq_tuser[20] = out.sop;                                     // is_sop[0], is_sop0_ptr stays 0
    m_axis_rq_tuser[26] = out.beat.last;                               // is_eop[0]
    m_axis_rq_tuser[31:28] = out.beat.last ? out.beat.last_dw : 4'd0;  // is_eop0_ptr
  end

  logic cnt_rd_reg, cnt_wr_reg, cnt_drop_reg;
  assign cnt_rd_tlp = cnt_rd_reg;
  assign cnt_wr_tlp = cnt_wr_reg;
  assign cnt_drop = cnt_drop_reg;

  always_ff @(posedge clk) begin
    if (rst) begin
      cnt_rd_reg <= 1'b0;
      cnt_wr_reg <= 1'b0;
      cnt_drop_reg <= 1'b0;
    end else begin
      cnt_rd_reg <= rd_valid && rd_ready && !drop;
      cnt_wr_reg <= wr_valid && wr_ready && wr_beat.last && !drop;
      cnt_drop_reg <= drop && ((rd_valid && rd_ready) || (wr_valid && wr_ready && wr_beat.last));
    end
  end

`ifndef SYNTHESIS
  urdma_hold #(.WIDTH(512 + 137 + 16 + 1)) rq_hold (
    .clk, .rst, .valid(m_axis_rq_tvalid), .ready(m_axis_rq_tready),
    .data({m_axis_rq_tdata, m_axis_rq_tuser, m_axis_rq_tkeep, m_axis_rq_tlast})
  );

  logic rq_more_reg;  // the last beat was not the end of its TLP
  always_ff @(posedge clk) begin
    rq_more_reg <= !rst && m_axis_rq_tvalid && m_axis_rq_tready && !m_axis_rq_tlast;
    if (!rst && rq_more_reg) a_no_gap: assert (m_axis_rq_tvalid)
      else $error("%m: gap within a TLP");
  end

  // Cases that the tests must reach (make coverage).
  c_master_off_in_write: cover property (@(posedge clk) !rst && wr_mid_reg && !drop_mid_reg && !cfg_bus_master_en);
  c_master_on_in_write: cover property (@(posedge clk) !rst && wr_mid_reg && drop_mid_reg && cfg_bus_master_en);
  c_read_dropped: cover property (@(posedge clk) !rst && rd_valid && rd_ready && drop);
`endif

endmodule

`resetall
