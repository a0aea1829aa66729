// SPDX-License-Identifier: Apache-2.0
// Target of the host's requests (CQ, CC): BAR0 becomes the register bus, BAR2 the doorbells and device memory.
//
//  BAR0 write  1 to 8 bytes inside an aligned qword: one access with byte strobes; else dropped, cnt_mmio_bad
//  BAR0 read   the same; else completer abort (the access breaks the programming model), cnt_mmio_bad
//  BAR2, 2**DM_W bytes from 2**DM_OFFSET_W on: as BAR0, an access to device memory
//  BAR2 write  aligned 8 bytes in the lower half of a page below: a doorbell; else dropped, cnt_db_bad
//  BAR2 read   zeros, any length, in completions that end at 128-byte boundaries
//  others      non-posted: unsupported request; posted: dropped. cnt_mmio_bad, except for messages
// Requests without any byte enable do nothing; reads of that kind complete with one dword of zeros (flush).
//
// All requests stay in order: one request per cycle, which waits while its target (register bus, doorbell port, device
// memory, completion queue) is not ready. The completion queue limits the outstanding reads to READS, so there is room for
// their answers, which have no back-pressure.
//
// Latency: CQ to reg_req, db or dm 2 cycles; reg_rsp or dm_rsp to CC 2 cycles (urdma_wr_order adds one).

`resetall
`default_nettype none

module urdma_pcie_cq
  import urdma_pkg::*;
  import urdma_pcie_pkg::*;
#(
  // non-posted requests under way, a power of two
  parameter int READS = 16
) (
  input  wire logic         clk,
  input  wire logic         rst,

  // CQ of the integrated block
  input  wire logic [511:0] s_axis_cq_tdata,
  input  wire logic [15:0]  s_axis_cq_tkeep,
  input  wire logic [182:0] s_axis_cq_tuser,
  input  wire logic         s_axis_cq_tlast,
  input  wire logic         s_axis_cq_tvalid,
  output      logic         s_axis_cq_tready,

  // CC of the integrated block
  output      logic [511:0] m_axis_cc_tdata,
  output      logic [15:0]  m_axis_cc_tkeep,
  output      logic [80:0]  m_axis_cc_tuser,
  output      logic         m_axis_cc_tlast,
  output      logic         m_axis_cc_tvalid,
  input  wire logic         m_axis_cc_tready,

  // register bus
  output      logic         reg_req_valid,
  output      reg_req_t     reg_req,
  input  wire logic         reg_req_ready,
  input  wire logic         reg_rsp_valid,
  input  wire logic [63:0]  reg_rsp_data,

  // doorbells
  output      logic         db_valid,
  output      db_t          db,
  input  wire logic         db_ready,

  // device memory; answers to reads in order, without back-pressure
  output      logic         dm_valid,
  output      dm_req_t      dm,
  input  wire logic         dm_ready,
  input  wire logic         dm_rsp_valid,
  input  wire logic [63:0]  dm_rsp_data,

  // pulses
  output      logic         cnt_db_bad,
  output      logic         cnt_mmio_bad,

  output      logic         busy
);

  localparam logic [2:0] BAR_REG = 3'd0;
  localparam logic [2:0] BAR_DB = 3'd2;

  // ---- 1: the first beat of each request; no data are taken from later beats -------------------
  typedef struct packed {
    logic [63:0] data;      // the first two dwords of the payload
    logic [3:0]  first_be;
    logic [3:0]  last_be;
    logic        single;    // the request is this one beat, and arrived whole
    cq_desc_t    desc;
  } first_t;
  first_t in_first, a;
  logic in_sop_reg, a_valid, a_done;

  always_comb begin
    in_first.data = s_axis_cq_tdata[191:128];
    in_first.first_be = s_axis_cq_tuser[3:0];
    in_first.last_be = s_axis_cq_tuser[11:8];
    in_first.single = s_axis_cq_tlast && !s_axis_cq_tuser[96];
    in_first.desc = s_axis_cq_tdata[127:0];
  end

  always_ff @(posedge clk) begin
    if (rst) in_sop_reg <= 1'b1;
    else if (s_axis_cq_tvalid && s_axis_cq_tready) in_sop_reg <= s_axis_cq_tlast;
  end

  urdma_skid #(.WIDTH($bits(first_t))) u_in (
    .clk, .rst,
    .in_valid(s_axis_cq_tvalid && in_sop_reg), .in_ready(s_axis_cq_tready), .in_data(in_first),
    .out_valid(a_valid), .out_ready(a_done), .out_data(a)
  );

  // ---- 2: decode -------------------------------------------------------------------------------
  typedef enum logic [2:0] {
    CPL_REG,       // wait for the register bus
    CPL_DM,        // wait for device memory
    CPL_ZERO,      // zeros
    CPL_ABORT,     // CA
    CPL_UNSUP      // UR
  } kind_t;

  typedef struct packed {
    kind_t      kind;
    logic [3:0] first_be;
    logic [3:0] last_be;
    cq_desc_t   desc;
  } cpl_t;

  logic posted, is_rd, is_wr, is_msg, in_qword, no_be;
  logic in_dm, to_reg, to_db, to_dm, to_word, to_cpl, bad_db, bad_mmio;
  logic reg_free, db_free, dm_free, cpl_ready, go;
  cpl_t cpl_in, cpl;
  logic cpl_valid, cpl_pop;
  logic [$clog2(READS):0] cpl_count;

  always_comb begin
    is_rd = (a.desc.req_type == REQ_MEM_RD);
    is_wr = (a.desc.req_type == REQ_MEM_WR);
    is_msg = (a.desc.req_type >= REQ_FIRST_MSG);
    posted = is_wr || is_msg;
    in_qword = (a.desc.dword_count == 11'd1) || (a.desc.dword_count == 11'd2 && !a.desc.addr[0]);
    no_be = (a.desc.dword_count == 11'd1) && (a.first_be == '0);

    in_dm = (a.desc.bar_id == BAR_DB) && a.desc.addr[DM_OFFSET_W-2] && (a.desc.addr[DM_OFFSET_W-3:DM_W-2] == '0);

    to_word = 1'b0;  // an access to a word of 8 bytes: register or device memory
    to_db = 1'b0;
    bad_db = 1'b0;
    bad_mmio = 1'b0;
    cpl_in.kind = CPL_UNSUP;
    if (is_rd && (a.desc.bar_id == BAR_REG || in_dm)) begin
      if (no_be) cpl_in.kind = CPL_ZERO;
      else if (in_qword) cpl_in.kind = in_dm ? CPL_DM : CPL_REG;
      else cpl_in.kind = CPL_ABORT;
      to_word = in_qword && !no_be;
      bad_mmio = !in_qword;
    end else if (is_rd && a.desc.bar_id == BAR_DB) begin
      cpl_in.kind = CPL_ZERO;
    end else if (is_wr && (a.desc.bar_id == BAR_REG || in_dm)) begin
      to_word = in_qword && !no_be && a.single;
      bad_mmio = !in_qword || !a.single;
    end else if (is_wr && a.desc.bar_id == BAR_DB) begin
      to_db = (a.desc.dword_count == 11'd2) && !a.desc.addr[0] && (a.first_be == 4'hf) && (a.last_be == 4'hf)
              && !a.desc.addr[DM_OFFSET_W-2]
              && !a.desc.addr[9] && a.single;
      bad_db = !to_db && !no_be;
    end else begin
      bad_mmio = !is_msg;
    end
    to_reg = to_word && !in_dm;
    to_dm = to_word && in_dm;
    to_cpl = !posted;

    cpl_in.first_be = a.first_be;
    cpl_in.last_be = a.last_be;
    cpl_in.desc = a.desc;

    go = a_valid && (!to_reg || reg_free) && (!to_db || db_free) && (!to_dm || dm_free) && (!to_cpl || cpl_ready);
    a_done = go;
  end

  // registers toward the register bus, the doorbells and device memory
  logic reg_valid_reg, db_valid_reg, dm_valid_reg, bad_db_reg, bad_mmio_reg;
  reg_req_t reg_req_reg;
  db_t db_reg;
  dm_req_t dm_reg;
  logic [63:0] word_data;
  logic [7:0] word_strb;

  assign reg_req_valid = reg_valid_reg;
  assign reg_req = reg_req_reg;
  assign reg_free = !reg_valid_reg || reg_req_ready;
  assign db_valid = db_valid_reg;
  assign db = db_reg;
  assign db_free = !db_valid_reg || db_ready;
  assign dm_valid = dm_valid_reg;
  assign dm = dm_reg;
  assign dm_free = !dm_valid_reg || dm_ready;
  assign cnt_db_bad = bad_db_reg;
  assign cnt_mmio_bad = bad_mmio_reg;

  always_comb begin
    word_data = {2{a.data[31:0]}};
    word_strb = a.desc.addr[0] ? {a.first_be, 4'h0} : {4'h0, a.first_be};
    if (a.desc.dword_count == 11'd2) begin
      word_data = a.data;
      word_strb = {a.last_be, a.first_be};
    end
  end

  always_ff @(posedge clk) begin
    if (go && to_reg) begin
      reg_req_reg.write <= is_wr;
      reg_req_reg.addr <= {a.desc.addr[13:1], 3'd0};
      reg_req_reg.wdata <= word_data;
      reg_req_reg.strb <= word_strb;
    end
    if (go && to_dm) begin
      dm_reg.write <= is_wr;
      dm_reg.addr <= {a.desc.addr[DM_W-3:1], 3'd0};
      dm_reg.wdata <= word_data;
      dm_reg.strb <= word_strb;
    end
    if (go && to_db) begin
      db_reg.page <= a.desc.addr[10 +: DBP_W];
      db_reg.offset <= {a.desc.addr[9:1], 3'd0};
      db_reg.data <= a.data;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      reg_valid_reg <= 1'b0;
      db_valid_reg <= 1'b0;
      dm_valid_reg <= 1'b0;
      bad_db_reg <= 1'b0;
      bad_mmio_reg <= 1'b0;
    end else begin
      if (reg_free) reg_valid_reg <= go && to_reg;
      if (db_free) db_valid_reg <= go && to_db;
      if (dm_free) dm_valid_reg <= go && to_dm;
      bad_db_reg <= go && bad_db;
      bad_mmio_reg <= go && bad_mmio;
    end
  end

  // ---- completions, in order -------------------------------------------------------------------
  urdma_fifo #(.WIDTH($bits(cpl_t)), .DEPTH(READS)) u_cpl (
    .clk, .rst,
    .in_valid(a_valid && to_cpl && (!to_reg || reg_free) && (!to_dm || dm_free)), .in_ready(cpl_ready), .in_data(cpl_in),
    .out_valid(cpl_valid), .out_ready(cpl_pop), .out_data(cpl),
    .count(cpl_count)
  );

  logic rsp_valid, rsp_pop, rsp_ready;
  logic [63:0] rsp_data;
  logic [$clog2(READS):0] rsp_count;

  urdma_fifo #(.WIDTH(64), .DEPTH(READS)) u_rsp (
    .clk, .rst,
    .in_valid(reg_rsp_valid), .in_ready(rsp_ready), .in_data(reg_rsp_data),
    .out_valid(rsp_valid), .out_ready(rsp_pop), .out_data(rsp_data),
    .count(rsp_count)
  );

  logic dm_rsp_there, dm_rsp_pop, dm_rsp_ready;
  logic [63:0] dm_rsp;
  logic [$clog2(READS):0] dm_rsp_count;

  urdma_fifo #(.WIDTH(64), .DEPTH(READS)) u_dm_rsp (
    .clk, .rst,
    .in_valid(dm_rsp_valid), .in_ready(dm_rsp_ready), .in_data(dm_rsp_data),
    .out_valid(dm_rsp_there), .out_ready(dm_rsp_pop), .out_data(dm_rsp),
    .count(dm_rsp_count)
  );

  // Byte count and lower address of the whole request (PCI Express Base Specification, 2.3.1.1)
  logic [12:0] all_bytes;
  logic [2:0] skip_first, skip_last;   // bytes without enable before the first and after the last one
  logic [1:0] low2;

  always_comb begin
    skip_first = cpl.first_be[0] ? 3'd0 : cpl.first_be[1] ? 3'd1 : cpl.first_be[2] ? 3'd2 : cpl.first_be[3] ? 3'd3 : 3'd0;
    if (cpl.desc.dword_count == 11'd1) begin
      skip_last = cpl.first_be[3] ? 3'd0 : cpl.first_be[2] ? 3'd1 : cpl.first_be[1] ? 3'd2 : 3'd3;
    end else begin
      skip_last = cpl.last_be[3] ? 3'd0 : cpl.last_be[2] ? 3'd1 : cpl.last_be[1] ? 3'd2 : cpl.last_be[0] ? 3'd3 : 3'd0;
    end
    all_bytes = {cpl.desc.dword_count, 2'b00} - {10'd0, skip_first} - {10'd0, skip_last};
    low2 = skip_first[1:0];
  end

  // One completion after the other; long reads of BAR2 are answered in pieces of several beats.
  logic piece_later_reg;               // not the first completion of this request
  logic beat_later_reg;                // not the first beat of this completion
  logic [10:0] rem_dw_reg, rem_dw;     // dwords of the request still to send, with this completion
  logic [12:0] rem_bytes_reg, rem_bytes;
  logic [5:0] left_reg, left;          // dwords of this completion still to send, with its descriptor
  logic [5:0] piece_dw;                // payload of this completion, 1..32 dwords
  logic [6:0] low_addr;
  logic failed, last_piece, last_beat, cc_in_valid, cc_in_ready, cc_xfer;
  logic [63:0] word;
  cc_desc_t cc_desc;

  typedef struct packed {
    logic [255:0] data;                // no completion has more than 8 dwords that are not zero
    logic [3:0]   last_dw;
    logic         last;
    logic         sop;
  } cc_beat_t;
  cc_beat_t cc_in, cc;

  always_comb begin
    failed = (cpl.kind == CPL_ABORT) || (cpl.kind == CPL_UNSUP);
    word = (cpl.kind == CPL_DM) ? dm_rsp : rsp_data;
    rem_dw = piece_later_reg ? rem_dw_reg : cpl.desc.dword_count;
    rem_bytes = piece_later_reg ? rem_bytes_reg : all_bytes;
    low_addr = piece_later_reg ? 7'd0 : {cpl.desc.addr[4:0], low2};
    piece_dw = 6'd32 - {1'b0, low_addr[6:2]};
    last_piece = failed || (rem_dw <= {5'd0, piece_dw});
    if (last_piece) piece_dw = rem_dw[5:0];
    // A failed completion has no payload; the block expects the request after the descriptor, for its error log.
    left = beat_later_reg ? left_reg : failed ? 6'd8 : (piece_dw + 6'd3);
    last_beat = (left <= 6'd16);

    cc_desc = '0;
    cc_desc.attr = cpl.desc.attr;
    cc_desc.tc = cpl.desc.tc;
    cc_desc.target_fn = cpl.desc.target_fn;
    cc_desc.tag = cpl.desc.tag;
    cc_desc.requester_id = cpl.desc.requester_id;
    cc_desc.at = cpl.desc.at;
    cc_desc.status = (cpl.kind == CPL_ABORT) ? CPL_CA : (cpl.kind == CPL_UNSUP) ? CPL_UR : CPL_SC;
    cc_desc.dword_count = failed ? 11'd0 : {5'd0, piece_dw};
    cc_desc.locked = (cpl.desc.req_type == REQ_MEM_RD_LOCKED);
    if (cpl.desc.req_type == REQ_MEM_RD || cpl.desc.req_type == REQ_MEM_RD_LOCKED) begin
      cc_desc.byte_count = rem_bytes;
      cc_desc.lower_addr = low_addr;
    end else begin
      cc_desc.byte_count = 13'd4;
    end

    cc_in.data = '0;
    if (!beat_later_reg) begin
      cc_in.data[95:0] = cc_desc;
      if (failed) begin
        cc_in.data[103:96] = {cpl.last_be, cpl.first_be};
        cc_in.data[255:128] = cpl.desc;
      end else if (cpl.kind == CPL_REG || cpl.kind == CPL_DM) begin
        cc_in.data[127:96] = cpl.desc.addr[0] ? word[63:32] : word[31:0];
        if (cpl.desc.dword_count == 11'd2) cc_in.data[159:128] = word[63:32];
      end
    end
    cc_in.last_dw = last_beat ? 4'(left - 6'd1) : 4'd15;
    cc_in.last = last_beat;
    cc_in.sop = !beat_later_reg;

    cc_in_valid = cpl_valid && (cpl.kind != CPL_REG || rsp_valid) && (cpl.kind != CPL_DM || dm_rsp_there);
    cc_xfer = cc_in_valid && cc_in_ready;
    cpl_pop = cc_xfer && last_beat && last_piece;
    rsp_pop = cpl_pop && cpl.kind == CPL_REG;
    dm_rsp_pop = cpl_pop && cpl.kind == CPL_DM;
  end

  always_ff @(posedge clk) begin
    if (cc_xfer) begin
      left_reg <= left - 6'd16;
      if (last_beat) begin
        rem_dw_reg <= rem_dw - {5'd0, piece_dw};
        rem_bytes_reg <= rem_bytes - {5'd0, piece_dw, 2'b00} + {11'd0, low_addr[1:0]};
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      piece_later_reg <= 1'b0;
      beat_later_reg <= 1'b0;
    end else if (cc_xfer) begin
      beat_later_reg <= !last_beat;
      if (last_beat) piece_later_reg <= !last_piece;
    end
  end

  urdma_skid #(.WIDTH($bits(cc_beat_t))) u_out (
    .clk, .rst,
    .in_valid(cc_in_valid), .in_ready(cc_in_ready), .in_data(cc_in),
    .out_valid(m_axis_cc_tvalid), .out_ready(m_axis_cc_tready), .out_data(cc)
  );

  always_comb begin
    m_axis_cc_tdata = {256'd0, cc.data};
    m_axis_cc_tlast = cc.last;
    m_axis_cc_tkeep = keep_upto(cc.last_dw);
    m_axis_cc_tuser = '0;
    m_axis_cc_tuser[0] = cc.sop;                             // is_sop[0]
    m_axis_cc_tuser[6] = cc.last;                            // is_eop[0]
    m_axis_cc_tuser[11:8] = cc.last ? cc.last_dw : 4'd0;     // is_eop0_ptr
  end

  assign busy = a_valid || reg_valid_reg || db_valid_reg || dm_valid_reg || (cpl_count != '0) || m_axis_cc_tvalid;

  logic unused_cq;
  assign unused_cq = &{1'b0, s_axis_cq_tdata[511:192], s_axis_cq_tkeep, s_axis_cq_tuser, rsp_ready, rsp_count, dm_rsp_ready,
                      dm_rsp_count, cpl};

`ifndef SYNTHESIS
  logic [$clog2(READS):0] reads_reg;   // reads given to the register bus and not answered
  always_ff @(posedge clk) begin
    if (rst) reads_reg <= '0;
    else reads_reg <= reads_reg + ($clog2(READS)+1)'(go && to_reg && !is_wr) - ($clog2(READS)+1)'(reg_rsp_valid);
  end
  always_ff @(posedge clk)
    if (!rst && reg_rsp_valid) a_rsp: assert (reads_reg != '0 && rsp_ready)
      else $error("%m: answer without a read");
  urdma_hold #(.WIDTH($bits(reg_req_t))) reg_hold (.clk, .rst, .valid(reg_req_valid), .ready(reg_req_ready), .data(reg_req));
  urdma_hold #(.WIDTH($bits(dm_req_t))) dm_hold (.clk, .rst, .valid(dm_valid), .ready(dm_ready), .data(dm));
  urdma_hold #(.WIDTH($bits(db_t))) db_hold (.clk, .rst, .valid(db_valid), .ready(db_ready), .data(db));
  urdma_hold #(.WIDTH(512 + 81 + 16 + 1)) cc_hold (
    .clk, .rst, .valid(m_axis_cc_tvalid), .ready(m_axis_cc_tready),
    .data({m_axis_cc_tdata, m_axis_cc_tuser, m_axis_cc_tkeep, m_axis_cc_tlast})
  );

  logic cc_more_reg;  // the last beat was not the end of its completion
  always_ff @(posedge clk) begin
    cc_more_reg <= !rst && m_axis_cc_tvalid && m_axis_cc_tready && !m_axis_cc_tlast;
    if (!rst && cc_more_reg) a_cc_gap: assert (m_axis_cc_tvalid)
      else $error("%m: gap within a completion");
  end
`endif

endmodule

`resetall
