// SPDX-License-Identifier: Apache-2.0
// DMA read engine: accepts read requests from N clients (round-robin, one request after the other), splits them into read
// TLPs with tags, stores the completions in a reorder buffer, and outputs the data in the order of the requests, first byte
// in lane 0, dense.
//
// A TLP ends at a multiple of the maximum read request (4096 bytes at most) of the host's address space, so also at 4 KB.
// Each of the 256 tags has 512 bytes of the buffer, which is 8 lines (aligned 64-byte pieces). A longer TLP takes one tag for
// each piece between multiples of 512 bytes, in a row. Only the first is on the wire; the others lend their lines. Large TLPs
// matter because RQ carries the received payload, too: reads of 512 bytes would take a tenth of its beats.
//
// Completions of one tag come in address order, each ending at a line boundary or at the end of the request (read completion
// boundary 64 or 128), so the buffer is written in whole lines, and a count of lines gives the progress of a tag. The state
// of a tag:
//
//   outst  sent, completions expected        fin   no more data will come: complete or failed
//   quar   given up while completions may    fail  with fin: failed; data not yet read out are
//          still come; not allocated until         replaced by zeros
//          they can do no harm
//
// A read does not pass a write: a TLP waits in tlp_fifo until RQ has every DMA write request whose last beat was accepted
// before the TLP was made (so at least those accepted before the read request was offered). ATOMICs, and READ responses after
// WRITEs of the same QP, rely on this order. The FIFO keeps reads flowing while writes are always queued: each read waits for
// the writes before it, not for an empty queue.
//
// A read of device memory is split and takes tags like others, which keeps it in order. It sends no TLP: its lines are read
// from urdma_devmem at its turn to be read out. It is split only after all earlier writes to device memory are done, which
// takes a few cycles.
//
// Tags are allocated in rising order and read out in the same order, so those in use lie between two counters. If a tag in
// quarantine leaves too few in a row, a TLP ends earlier, at a multiple of 512 bytes. Quarantine: after a time-out, or an
// error that leaves completions to come, a late completion could otherwise be taken for one of the next request with this
// tag. The tag is released by a completion that closes its request (Request Completed), or TAG_QUARANTINE cycles after it was
// sent, by default 16 times the time-out (0.8 s): a working fabric never delays a completion that long. The check of byte
// count and address catches most of the completions that arrive even later. If all tags are in quarantine, requests wait.
//
// Time-outs: in the first 256 cycles of every 2**SWEEP_W, counted by the NIC's time, a sweep checks one tag per cycle. So a
// tag is given up, or released, at most 2**SWEEP_W + 256 cycles late. Between the sweeps nothing changes here while reads
// wait for the host's memory. timer_* report the start of the next sweep that has a tag to check.

`resetall
`default_nettype none

module urdma_dma_rd
  import urdma_pkg::*;
  import urdma_pcie_pkg::*;
#(
  // clients
  parameter int N = RD_N,
  // completion time-out in cycles, from the cycle in which RQ takes the TLP (50 ms)
  parameter int CPL_TIMEOUT = 12500000,
  // cycles from then on until a tag that was given up is used again
  parameter int TAG_QUARANTINE = 16 * CPL_TIMEOUT,
  // read TLPs that may wait for writes; as many as write TLPs of one line in urdma_dma_wr's FIFO
  parameter int TLP_DEPTH = 32,
  // log2 of the cycles from one sweep to the next: at most an eighth of the time-out, at least 512
  localparam int SWEEP_W = ($clog2(CPL_TIMEOUT) > 13) ? $clog2(CPL_TIMEOUT) - 4 : 9
) (
  input  wire logic         clk,
  input  wire logic         rst,
  input  wire logic [31:0]  cycles,     // the NIC's time

  input  wire logic [2:0]   cfg_max_read_req,  // 128 bytes << n

  // clients
  input  wire logic         stop,       // no new request is taken
  input  wire logic [N-1:0] rd_req_valid,
  input  wire dma_rd_req_t [N-1:0] rd_req,
  output      logic [N-1:0] rd_req_ready,
  output      logic [N-1:0] rd_rsp_valid,
  output      dma_rd_rsp_t  rd_rsp,

  // pulses: a DMA write request was accepted; one has its place on RQ
  input  wire logic         wr_accept,
  input  wire logic         wr_pass,

  // pulses: a DMA write request for device memory was accepted; one is done
  input  wire logic         dm_accept,
  input  wire logic         dm_done,

  // lines of device memory; the data is there a cycle after the transfer
  output      logic         dm_valid,
  output      logic [DM_W-7:0] dm_line,
  input  wire logic         dm_ready,
  input  wire logic [511:0] dm_data,

  // read TLPs to RQ
  output      logic         tlp_valid,
  output      rd_tlp_t      tlp,
  input  wire logic         tlp_ready,
  input  wire logic         tlp_drop,          // with the transfer: the TLP was discarded

  // RC of the integrated block
  input  wire logic [511:0] s_axis_rc_tdata,
  input  wire logic [15:0]  s_axis_rc_tkeep,
  input  wire logic [160:0] s_axis_rc_tuser,
  input  wire logic         s_axis_rc_tlast,
  input  wire logic         s_axis_rc_tvalid,
  output      logic         s_axis_rc_tready,

  // pulses
  output      logic         cnt_cpl_err,        // completion that failed its request
  output      logic         cnt_cpl_timeout,    // request given up, no completion in time
  output      logic         cnt_cpl_unexpected, // completion for no request, discarded

  output      logic         timer_armed,        // a sweep has a tag to look at
  output      logic [31:0]  timer_cycles,       // until it begins; 0 while it lasts
  output      logic         busy
);

  localparam int IW = (N > 1) ? $clog2(N) : 1;
  localparam int TAGS = 256;

  // ---- state of the tags -----------------------------------------------------------------------
  logic [TAGS-1:0] outst_reg, fin_reg, fail_reg, quar_reg;
  logic [6:0] lines_reg [TAGS];     // lines received, 0..64

  // what RC needs to know of a TLP
  typedef struct packed {
    logic [5:0]  off;               // of the first byte in its line
    logic [2:0]  line;              // of the first byte in the tag's 512 bytes
    logic [12:0] len;               // bytes, 1..4096
  } meta_t;
  meta_t meta_mem [TAGS];

  // ---- 1: choose a client ----------------------------------------------------------------------
  logic [N-1:0] grant;
  logic [IW-1:0] grant_idx;
  logic req_valid, s1_ready, s1_valid_reg;
  logic [63:0] s1_addr_reg;
  logic [12:0] s1_len_reg;
  logic [IW-1:0] s1_client_reg;
  logic s1_first_reg;

  // Requests for device memory accepted and done so far, modulo 2**DM_SEQ_W. Few are under way at any time. But any number of
  // them can pass a read that waits for tags, so the read remembers that the writes before it are done.
  localparam int DM_SEQ_W = 5;
  logic [DM_SEQ_W-1:0] dm_accepted_reg, dm_accepted_now, dm_done_reg, s1_dm_seq_reg, dm_behind;
  logic s1_dm, s1_dm_done, s1_dm_done_reg, s1_go;

  urdma_arb_rr #(.N(N)) u_arb (
    .clk, .rst,
    .req(stop ? '0 : rd_req_valid), .advance(s1_ready),
    .grant, .grant_idx, .grant_valid(req_valid)
  );

  assign rd_req_ready = s1_ready ? grant : '0;

  // ---- 2: split --------------------------------------------------------------------------------
  logic [12:0] chunk, to_boundary, n;
  logic [10:0] dwords;
  logic [1:0] end_off;
  logic s1_last, split, t_free, rest_last, cut;
  logic [3:0] need;                 // tags for all up to the boundary, 1..8
  logic [3:0] avail_reg;            // free tags in a row from the next one on
  logic blocked;                    // the next tag after them is in quarantine
  logic [7:0] next_tag;

  typedef struct packed {
    logic [7:0]    tag;
    logic [IW-1:0] client;
    logic          first;           // TLP of its request
    logic          last;
    logic [5:0]    off;             // of the first byte in its line
    logic [2:0]    line;            // of the first byte in the tag's 512 bytes
    logic [5:0]    lines_m1;        // lines, less one
    logic [6:0]    fill;            // valid bytes of its last line, counted from the line's start, 1..64
    logic          dm;              // of device memory
    logic          dm_bad;          // beyond its end
    logic [DM_W-7:0] dm_line;       // its first line there
  } order_t;
  order_t order_in, order;
  logic order_valid, order_pop, order_ready;
  logic [8:0] order_count;
  logic [5:0] line_end;

  always_comb begin
    chunk = (cfg_max_read_req > 3'd5) ? 13'd4096 : 13'd128 << cfg_max_read_req;
    to_boundary = chunk - ({1'b0, s1_addr_reg[11:0]} & (chunk - 13'd1));
    rest_last = (s1_len_reg <= to_boundary);
    n = rest_last ? s1_len_reg : to_boundary;
    need = 4'((13'(s1_addr_reg[8:0]) + n - 13'd1) >> 9) + 4'd1;
    cut = blocked && (avail_reg < need);
    if (cut) n = {avail_reg, 9'd0} - 13'(s1_addr_reg[8:0]);
    s1_last = rest_last && !cut;
    dwords = 11'((n + 13'(s1_addr_reg[1:0]) + 13'd3) >> 2);
    end_off = s1_addr_reg[1:0] + n[1:0];

    s1_dm = s1_addr_reg[63];
    dm_behind = dm_done_reg - s1_dm_seq_reg;  // negative while a write is not done
    s1_dm_done = s1_dm_done_reg || !dm_behind[DM_SEQ_W-1];
    s1_go = s1_valid_reg && (!s1_dm || s1_dm_done);
    split = s1_go && (avail_reg >= need || (cut && avail_reg != '0)) && t_free && order_ready;
    s1_ready = !s1_valid_reg || (split && s1_last);

    line_end = s1_addr_reg[5:0] + n[5:0];
    order_in.tag = next_tag;
    order_in.client = s1_client_reg;
    order_in.first = s1_first_reg;
    order_in.last = s1_last;
    order_in.off = s1_addr_reg[5:0];
    order_in.line = s1_addr_reg[8:6];
    order_in.lines_m1 = 6'((13'(s1_addr_reg[5:0]) + n - 13'd1) >> 6);
    order_in.fill = {line_end == '0, line_end};
    order_in.dm = s1_dm;
    order_in.dm_bad = s1_addr_reg[62:DM_W] != '0;
    order_in.dm_line = s1_addr_reg[DM_W-1:6];
  end

  assign dm_accepted_now = dm_accepted_reg + DM_SEQ_W'(dm_accept);

  always_ff @(posedge clk) begin
    if (rst) begin
      dm_accepted_reg <= '0;
      dm_done_reg <= '0;
    end else begin
      dm_accepted_reg <= dm_accepted_now;
      if (dm_done) dm_done_reg <= dm_done_reg + 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    if (s1_ready) begin
      s1_addr_reg <= rd_req[grant_idx].addr;
      s1_len_reg <= rd_req[grant_idx].len;
      s1_client_reg <= grant_idx;
      s1_dm_seq_reg <= dm_accepted_now;
    end else if (split) begin
      s1_addr_reg <= s1_addr_reg + {51'd0, n};
      s1_len_reg <= s1_len_reg - n;
    end
    s1_dm_done_reg <= s1_dm_done && !s1_ready;
    if (split) meta_mem[next_tag] <= '{off: s1_addr_reg[5:0], line: s1_addr_reg[8:6], len: n};
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      s1_valid_reg <= 1'b0;
      s1_first_reg <= 1'b1;
    end else begin
      if (s1_ready) s1_valid_reg <= req_valid;
      if (s1_ready) s1_first_reg <= 1'b1;
      else if (split) s1_first_reg <= 1'b0;
    end
  end

  // TLPs wait for earlier writes. Write requests accepted and passed so far, modulo 2**SEQ_W: while a TLP waits, fewer than
  // half of that can pass, since RQ takes reads and writes in turn.
  localparam int SEQ_W = 12;
  logic [SEQ_W-1:0] accepted_reg, passed_reg, accepted_now, tlp_seq, behind;
  rd_tlp_t tlp_in;
  logic tlp_out_valid, tlp_xfer;
  logic [$clog2(TLP_DEPTH):0] tlp_count;

  assign accepted_now = accepted_reg + SEQ_W'(wr_accept);
  assign behind = passed_reg - tlp_seq;  // negative while a write is not done
  assign tlp_valid = tlp_out_valid && !behind[SEQ_W-1];
  assign tlp_xfer = tlp_valid && tlp_ready;

  always_comb begin
    tlp_in.addr = s1_addr_reg[63:2];
    tlp_in.dword_count = dwords;
    tlp_in.first_be = be_from(s1_addr_reg[1:0]) & ((dwords == 11'd1) ? be_upto(end_off) : 4'hf);
    tlp_in.last_be = (dwords == 11'd1) ? 4'h0 : be_upto(end_off);
    tlp_in.tag = next_tag;
  end

  urdma_fifo #(.WIDTH(SEQ_W + $bits(rd_tlp_t)), .DEPTH(TLP_DEPTH)) u_tlp (
    .clk, .rst,
    .in_valid(split && !s1_dm), .in_ready(t_free), .in_data({accepted_now, tlp_in}),
    .out_valid(tlp_out_valid), .out_ready(tlp_xfer), .out_data({tlp_seq, tlp}),
    .count(tlp_count)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      accepted_reg <= '0;
      passed_reg <= '0;
    end else begin
      accepted_reg <= accepted_now;
      if (wr_pass) passed_reg <= passed_reg + 1'b1;
    end
  end

  // The next tags, found one per cycle. A tag in use must be waited for; a tag in quarantine is skipped if no free tag before
  // it is left. Both counters are free-running; tags from tail to head are in use, or were skipped. When none is in use, tail
  // goes to head.
  logic [8:0] head_reg, tail_reg, cand;
  logic [3:0] taken;                // tags of this TLP
  logic [7:0] tail_step;
  logic cand_used, cand_grow, cand_skip;

  assign next_tag = head_reg[7:0];
  assign cand = head_reg + 9'(avail_reg);
  assign cand_used = (cand - tail_reg) == 9'(TAGS);
  assign blocked = !cand_used && quar_reg[cand[7:0]];
  assign cand_grow = !cand_used && !quar_reg[cand[7:0]] && avail_reg != 4'd15;
  assign cand_skip = blocked && avail_reg == '0;
  assign taken = cut ? avail_reg : need;
  assign tail_step = order.tag + 8'((9'(order.line) + 9'(order.lines_m1)) >> 3) + 8'd1 - tail_reg[7:0];

  always_ff @(posedge clk) begin
    if (rst) begin
      avail_reg <= '0;
      head_reg <= '0;
      tail_reg <= '0;
    end else begin
      avail_reg <= avail_reg + 4'(cand_grow) - (split ? taken : 4'd0);
      if (split) head_reg <= head_reg + 9'(taken);
      else if (cand_skip) head_reg <= head_reg + 9'd1;
      if (order_pop) tail_reg <= tail_reg + 9'(tail_step);
      else if (order_count == '0) tail_reg <= head_reg;
    end
  end

  urdma_fifo #(.WIDTH($bits(order_t)), .DEPTH(TAGS)) u_order (
    .clk, .rst,
    .in_valid(split), .in_ready(order_ready), .in_data(order_in),
    .out_valid(order_valid), .out_ready(order_pop), .out_data(order),
    .count(order_count)
  );

  // ---- 3: completions --------------------------------------------------------------------------
  // Never stalled: the buffer space was reserved with the tag.
  logic a_valid_reg, a_sop_reg, a_last_reg, a_disc_reg;
  logic [511:0] a_data_reg;
  logic [15:0] a_keep_reg;

  assign s_axis_rc_tready = 1'b1;

  always_ff @(posedge clk) begin
    if (s_axis_rc_tvalid) begin
      a_data_reg <= s_axis_rc_tdata;
      a_keep_reg <= s_axis_rc_tkeep;
      a_last_reg <= s_axis_rc_tlast;
      a_disc_reg <= s_axis_rc_tuser[96];
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      a_valid_reg <= 1'b0;
      a_sop_reg <= 1'b1;
    end else begin
      a_valid_reg <= s_axis_rc_tvalid;
      if (a_valid_reg) a_sop_reg <= a_last_reg;
    end
  end

  // The first beat decides; later beats use the results in c_*_reg.
  rc_desc_t a_desc;
  meta_t a_meta;
  logic [7:0] c_tag, c_tag_reg;
  logic c_ok, c_ok_reg;             // in sequence, without error: its data counts
  logic c_final, c_final_reg;       // the last completion of its request by our count
  logic c_completed, c_completed_reg;  // the block, or the status, says that no more will come
  logic c_timeout, c_timeout_reg;   // the block's own time-out
  logic c_stray, c_stray_reg;       // the block does not know the tag: no information about our requests
  logic [10:0] c_left, c_left_reg;  // dwords of payload still to come, with this beat
  logic [10:0] c_line, c_line_reg;  // the line of the buffer that is being assembled
  logic [3:0] c_rot, c_rot_reg;     // lanes to rotate; later beats: also the lane their first dword goes to
  logic [511:0] carry_reg;          // rotated beat before: its lanes below c_rot belong to the current line

  logic [6:0] have;
  logic [3:0] x, end_lane, in_lane;
  logic [5:0] exp_off;
  logic [12:0] exp_len;
  logic [10:0] exp_dwords;
  logic exp_line_odd, seq_ok;
  logic [4:0] take, room, filled;   // dwords of this beat; lanes of the current line that are filled after it
  logic [3:0] last_lane;
  logic shape_ok, beat_ok, end_ok, wr1, wr2, early;
  logic [511:0] rotated, merged;

  logic unused_rc;
  assign unused_rc = &{1'b0, s_axis_rc_tuser[160:97], s_axis_rc_tuser[95:0], a_desc};

  always_comb begin
    a_desc = a_data_reg[95:0];
    c_tag = a_sop_reg ? a_desc.tag : c_tag_reg;
    a_meta = meta_mem[c_tag];
    have = lines_reg[c_tag];

    // expected fields of the next completion of this tag
    exp_off = (have == '0) ? a_meta.off : 6'd0;
    exp_len = (have == '0) ? a_meta.len : (a_meta.len + 13'(a_meta.off) - {have, 6'd0});
    exp_dwords = 11'((exp_len + 13'(exp_off[1:0]) + 13'd3) >> 2);
    exp_line_odd = a_meta.line[0] ^ have[0];
    x = exp_off[5:2];
    c_final = c_final_reg;
    c_ok = c_ok_reg;
    c_completed = c_completed_reg;
    c_timeout = c_timeout_reg;
    c_left = c_left_reg;
    c_line = c_line_reg;
    c_rot = c_rot_reg;
    c_stray = c_stray_reg;
    seq_ok = 1'b0;
    end_lane = '0;
    if (a_sop_reg) begin
      c_final = (a_desc.dword_count == exp_dwords);
      end_lane = x + a_desc.dword_count[3:0];
      seq_ok = (a_desc.lower_addr[6:0] == {exp_line_odd, exp_off}) && (a_desc.byte_count == exp_len)
               && (c_final || (end_lane == '0 && a_desc.dword_count < exp_dwords && a_desc.dword_count != '0));
      c_ok = outst_reg[c_tag] && seq_ok && a_desc.status == CPL_SC && !a_desc.poisoned
             && a_desc.error_code == RC_ERR_NONE;
      c_completed = a_desc.req_completed || (a_desc.status != CPL_SC);
      c_timeout = (a_desc.error_code == RC_ERR_TIMEOUT);
      c_stray = (a_desc.error_code == RC_ERR_BAD_TAG);
      c_left = a_desc.dword_count;
      c_line = {c_tag, a_meta.line} + 11'(have);
      c_rot = x - 4'd3;
    end

    // dwords in this beat, and whether it ends where the descriptor says
    in_lane = a_sop_reg ? x : c_rot_reg;
    room = a_sop_reg ? 5'd13 : 5'd16;
    take = (c_left > {6'd0, room}) ? room : c_left[4:0];
    filled = {1'b0, in_lane} + take;
    last_lane = a_sop_reg ? (take[3:0] + 4'd2) : (take[3:0] - 4'd1);
    shape_ok = a_last_reg ? (c_left == {6'd0, take} && a_keep_reg == keep_upto(last_lane))
                          : (c_left > {6'd0, take});
    early = a_sop_reg && (x < 4'd3);  // its dwords lie below c_rot: nothing to merge, and no full line
    beat_ok = a_valid_reg && c_ok && outst_reg[c_tag] && shape_ok && !(a_last_reg && a_disc_reg);
    end_ok = beat_ok && a_last_reg;
    wr1 = beat_ok && (filled[4] || a_last_reg);
    wr2 = end_ok && filled[4] && (filled[3:0] != '0);

    rotated = '0;
    merged = '0;
    if (beat_ok) begin
      rotated = rol_bytes(a_data_reg, {c_rot, 2'd0});
      merged = rotated;
      for (int i = 0; i < 16; i++) begin
        if (4'(i) < c_rot && !early) merged[32*i +: 32] = carry_reg[32*i +: 32];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (a_valid_reg) begin
      c_tag_reg <= c_tag;
      c_final_reg <= c_final;
      c_completed_reg <= c_completed;
      c_timeout_reg <= c_timeout;
      c_stray_reg <= c_stray;
      c_ok_reg <= beat_ok;
      c_left_reg <= c_left - {6'd0, take};
      c_line_reg <= c_line + 11'(wr1);
      c_rot_reg <= c_rot;
    end
    if (beat_ok) carry_reg <= rotated;
  end

  // two banks, odd and even lines: a last beat may end one line and hold the next
  logic [10:0] line2;
  logic [1:0] bank_wr;
  logic [511:0] bank_wdata [2], bank_rdata [2];
  logic [9:0] bank_waddr [2];
  logic issue;
  logic [9:0] issue_addr;
  logic issue_bank;

  always_comb begin
    line2 = c_line + 11'd1;
    for (int b = 0; b < 2; b++) begin
      bank_wr[b] = (wr1 && c_line[0] == b[0]) || (wr2 && line2[0] == b[0]);
      bank_wdata[b] = (c_line[0] == b[0]) ? merged : rotated;
      bank_waddr[b] = (c_line[0] == b[0]) ? c_line[10:1] : line2[10:1];
    end
  end

  for (genvar b = 0; b < 2; b++) begin : g_bank
    urdma_ram_sdp #(.WIDTH(512), .DEPTH(4 * TAGS)) u_ram (
      .clk,
      .wr_en(bank_wr[b]), .wr_addr(bank_waddr[b]), .wr_data(bank_wdata[b]),
      .rd_en(issue && !order.dm && issue_bank == b[0]), .rd_addr(issue_addr), .rd_data(bank_rdata[b])
    );
  end

  // ---- time-out: a sweep checks one tag per cycle -----------------------------------------------
  logic [31:0] sc_sent_reg, sc_age;
  logic [31:0] sent_mem [TAGS];     // when a tag was sent
  logic [7:0] scan, sc_tag_reg;
  logic sweep, any_reg, sc_outst_reg, sc_quar_reg, sc_timeout, sc_release;

  assign scan = cycles[7:0];
  assign sweep = any_reg && cycles[SWEEP_W-1:8] == '0;
  assign timer_armed = any_reg;
  assign timer_cycles = sweep ? 32'd0 : 32'(1 << SWEEP_W) - 32'(cycles[SWEEP_W-1:0]);

  always_ff @(posedge clk) begin
    if (tlp_xfer) sent_mem[tlp.tag] <= cycles;
    if (sweep) begin
      sc_sent_reg <= sent_mem[scan];
      sc_tag_reg <= scan;
    end
    // the state that belongs to sc_sent_reg: a tag sent in this cycle is left to the next sweep
    sc_outst_reg <= sweep && outst_reg[scan];
    sc_quar_reg <= sweep && quar_reg[scan];
    any_reg <= !rst && (outst_reg != '0 || quar_reg != '0);
  end

  always_comb begin
    sc_age = cycles - sc_sent_reg;
    // a completion has priority when both change the same tag in one cycle
    sc_timeout = sc_outst_reg && outst_reg[sc_tag_reg] && sc_age >= 32'(CPL_TIMEOUT)
                 && !(a_valid_reg && c_tag == sc_tag_reg);
    sc_release = sc_quar_reg && quar_reg[sc_tag_reg] && sc_age >= 32'(TAG_QUARANTINE)
                 && !(a_valid_reg && c_tag == sc_tag_reg);
  end

  // ---- update of the tags' state ---------------------------------------------------------------
  logic cnt_err_reg, cnt_timeout_reg, cnt_unexp_reg;
  assign cnt_cpl_err = cnt_err_reg;
  assign cnt_cpl_timeout = cnt_timeout_reg;
  assign cnt_cpl_unexpected = cnt_unexp_reg;

  always_ff @(posedge clk) begin
    if (split) begin
      fin_reg[next_tag] <= 1'b0;
      fail_reg[next_tag] <= 1'b0;
      lines_reg[next_tag] <= '0;
    end
    if (tlp_xfer && tlp_drop) begin
      fin_reg[tlp.tag] <= 1'b1;
      fail_reg[tlp.tag] <= 1'b1;
    end
    if (wr1) lines_reg[c_tag] <= have + 7'd1 + 7'(wr2);
    if (a_valid_reg && a_last_reg && outst_reg[c_tag] && !c_stray && (!end_ok || c_final)) begin
      fin_reg[c_tag] <= 1'b1;
      fail_reg[c_tag] <= !end_ok;
    end
    if (sc_timeout) begin
      fin_reg[sc_tag_reg] <= 1'b1;
      fail_reg[sc_tag_reg] <= 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      outst_reg <= '0;
      quar_reg <= '0;
      cnt_err_reg <= 1'b0;
      cnt_timeout_reg <= 1'b0;
      cnt_unexp_reg <= 1'b0;
    end else begin
      cnt_err_reg <= 1'b0;
      cnt_timeout_reg <= sc_timeout;
      cnt_unexp_reg <= 1'b0;
      if (tlp_xfer && !tlp_drop) outst_reg[tlp.tag] <= 1'b1;
      if (a_valid_reg && a_last_reg) begin
        if (!outst_reg[c_tag] || c_stray) begin
          // the remaining completions of a read that was given up are expected
          cnt_unexp_reg <= c_stray || !quar_reg[c_tag];
          if (c_completed && !c_stray) quar_reg[c_tag] <= 1'b0;
        end else if (!end_ok) begin
          outst_reg[c_tag] <= 1'b0;
          quar_reg[c_tag] <= !c_completed || c_timeout;
          cnt_err_reg <= !c_timeout;
          cnt_timeout_reg <= c_timeout || sc_timeout;
        end else if (c_final) begin
          outst_reg[c_tag] <= 1'b0;
        end
      end
      if (sc_timeout) begin
        outst_reg[sc_tag_reg] <= 1'b0;
        quar_reg[sc_tag_reg] <= 1'b1;
      end
      if (sc_release) quar_reg[sc_tag_reg] <= 1'b0;
    end
  end

  // ---- 4: read out, one line per cycle, in order -----------------------------------------------
  logic [5:0] l_reg;
  logic [10:0] o_line;              // of the buffer
  logic o_last_line, o_avail, o_req_end, o_flush, bubble_reg;
  logic [5:0] o_off, o_off_reg;

  always_comb begin
    o_last_line = (l_reg == order.lines_m1);
    // The last line of a TLP is written only when the completion's last beat is found correct: no error can follow.
    o_avail = order.dm ? dm_ready : (fin_reg[order.tag] || (lines_reg[order.tag] > 7'(l_reg)));
    issue = order_valid && o_avail && !bubble_reg;
    dm_valid = order_valid && order.dm && !bubble_reg;
    dm_line = order.dm_line + (DM_W-6)'(l_reg);
    o_line = {order.tag, order.line} + 11'(l_reg);
    issue_addr = o_line[10:1];
    issue_bank = o_line[0];
    order_pop = issue && o_last_line;
    o_req_end = o_last_line && order.last;
    o_off = order.first ? order.off : o_off_reg;
    // the last line fills the current beat and has bytes left for one more
    o_flush = o_req_end && !(order.first && l_reg == '0) && (o_off != '0) && (order.fill > {1'b0, o_off});
  end

  logic b_valid_reg, b_bank_reg, b_dm_reg, b_first_reg, b_last_reg, b_fail_reg, b_flush_reg;
  logic [5:0] b_off_reg;
  logic [6:0] b_fill_reg;
  logic [IW-1:0] b_client_reg;

  always_ff @(posedge clk) begin
    if (issue) begin
      o_off_reg <= o_off;
      b_bank_reg <= issue_bank;
      b_dm_reg <= order.dm;
      b_first_reg <= order.first && l_reg == '0;
      b_last_reg <= o_req_end;
      b_fail_reg <= order.dm ? order.dm_bad : fail_reg[order.tag];
      b_flush_reg <= o_flush;
      b_off_reg <= o_off;
      b_fill_reg <= order.fill;
      b_client_reg <= order.client;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      l_reg <= '0;
      bubble_reg <= 1'b0;
      b_valid_reg <= 1'b0;
    end else begin
      b_valid_reg <= issue;
      bubble_reg <= issue && o_flush;
      if (issue) l_reg <= o_last_line ? 6'd0 : (l_reg + 6'd1);
    end
  end

  // ---- 5: realign ------------------------------------------------------------------------------
  // Beat = the end of the line before, from off on, and the start of this line. flush_reg: the rest of the last line.
  logic [511:0] b_line, hold_reg, b_sel;
  logic flush_reg, bad, bad_reg, emit, emit_last, fail_now;
  logic [6:0] nbytes, rest;
  logic [511:0] lo_mask;

  always_comb begin
    // after a failed TLP of the request, all later data are zero
    fail_now = b_fail_reg || (bad_reg && !b_first_reg);
    bad = b_valid_reg ? fail_now : bad_reg;
    rest = 7'd64 - {1'b0, b_off_reg};
    emit = flush_reg || (b_valid_reg && (b_off_reg == '0 || !b_first_reg || b_last_reg));
    emit_last = flush_reg || (b_last_reg && !b_flush_reg);
    b_line = '0;
    b_sel = '0;
    nbytes = 7'd64;
    lo_mask = '0;
    if (b_valid_reg || flush_reg) begin
      lo_mask = lanes_below({1'b0, b_off_reg});
      if (!fail_now) b_line = b_dm_reg ? dm_data : bank_rdata[b_bank_reg];
      if (flush_reg) nbytes = b_fill_reg - {1'b0, b_off_reg};
      else if (b_off_reg == '0) nbytes = b_last_reg ? b_fill_reg : 7'd64;
      else if (b_first_reg) nbytes = b_fill_reg - {1'b0, b_off_reg};
      else if (b_last_reg && !b_flush_reg) nbytes = rest + b_fill_reg;
      if (flush_reg) b_sel = hold_reg;
      else if (b_off_reg == '0 || b_first_reg) b_sel = b_line;
      else b_sel = (hold_reg & ~lo_mask) | (b_line & lo_mask);
    end
  end

  logic [N-1:0] rsp_valid_reg;
  dma_rd_rsp_t rsp_reg;
  assign rd_rsp_valid = rsp_valid_reg;
  assign rd_rsp = rsp_reg;

  always_ff @(posedge clk) begin
    if (b_valid_reg) hold_reg <= b_line;
    if (emit) begin
      rsp_reg.data <= ror_bytes(b_sel, b_off_reg) & lanes_below(emit_last ? nbytes : 7'd64);
      rsp_reg.last <= emit_last;
      rsp_reg.err <= emit_last && bad;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      flush_reg <= 1'b0;
      bad_reg <= 1'b0;
      rsp_valid_reg <= '0;
    end else begin
      flush_reg <= b_valid_reg && b_flush_reg;
      if (b_valid_reg) bad_reg <= fail_now;
      rsp_valid_reg <= '0;
      if (emit) rsp_valid_reg[b_client_reg] <= 1'b1;
    end
  end

  assign busy = s1_valid_reg || (tlp_count != '0) || (order_count != '0) || a_valid_reg || b_valid_reg || flush_reg
                || (rsp_valid_reg != '0);

`ifndef SYNTHESIS
  for (genvar i = 0; i < N; i++) begin : g_assert
    urdma_hold #(.WIDTH($bits(dma_rd_req_t))) hold (
      .clk, .rst(rst || stop), .valid(rd_req_valid[i]), .ready(rd_req_ready[i]), .data(rd_req[i])
    );
    always_ff @(posedge clk)
      if (!(rst || stop) && rd_req_valid[i]) a_len: assert (rd_req[i].len != '0 && rd_req[i].len <= 13'd4096)
        else $error("%m: client %0d: length out of 1..4096", i);
  end
  always_ff @(posedge clk)
    if (!rst && split) a_order: assert (order_ready && !outst_reg[next_tag] && !quar_reg[next_tag])
      else $error("%m: tag allocated twice");
  always_ff @(posedge clk)
    if (!rst) a_window: assert (head_reg + 9'(avail_reg) - tail_reg <= 9'(TAGS))
      else $error("%m: a tag is free and in use");
  always_ff @(posedge clk)
    if (!rst) a_flush: assert (!(flush_reg && b_valid_reg))
      else $error("%m: two beats at once");
  always_ff @(posedge clk)
    if (!rst) a_onehot: assert ((rsp_valid_reg & (rsp_valid_reg - 1'b1)) == '0)
      else $error("%m: a response for two clients");

  // Cases that the tests must reach (make coverage).
  c_tag_in_quarantine: cover property (@(posedge clk) !rst && cand_skip);
  c_cut_by_quarantine: cover property (@(posedge clk) !rst && split && cut);
  c_timed_out: cover property (@(posedge clk) !rst && sc_timeout);
`endif

endmodule

`resetall
