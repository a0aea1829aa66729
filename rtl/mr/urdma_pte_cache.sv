// SPDX-License-Identifier: Apache-2.0
// Read cache of page table entries in host memory: one 64-bit word of a 64-byte line for each request. A request that needs
// no read overtakes those that wait for one.
//
//  in_*      a request: bus address of the word (bits 63:3), and META that comes out with the answer. Without in_need the
//            request passes through and out_word has no meaning.
//  out_*     the answers, in any order. out_err: the line could not be read.
//  flush     invalidate all lines. A request that enters from the next cycle on is not answered with a line read before.
//            flush_fast: only those that were read for a request with in_fast. Such a request uses no others
//  rd_*      DMA reads of 64 bytes, at most MAX_FILLS outstanding.
//
// Direct mapped. A hit leaves after 2 cycles. A miss starts a fill, and waits for it in a FIFO with all requests whose line
// is being read; later requests continue with their lookups. Fills arrive in order, so the head of the FIFO is always the
// next one to leave. A request enters only when both queues to the output have room, so a lookup never stops halfway.
//
// A buffer keeps the last FILLS fills, so a waiting request gets its word there even if the cache line has been replaced. The
// oldest fill a request can wait for is the MAX_FILLS-th before it. No fill starts while FILLS - MAX_FILLS fills have started
// since the head of the FIFO came, so no request in the FIFO loses its fill. A request after a miss of the same line reads
// the tag memory before the miss has written it, so the new tag is forwarded to it.

`resetall
`default_nettype none

module urdma_pte_cache
  import urdma_pkg::*;
#(
  // 64-byte lines, a power of two
  parameter int LINES = 256,
  // bits carried along
  parameter int META_W = 8,
  // log2 of the fills that are kept, twice as many as may be outstanding
  parameter int FILL_W = 7,
  // requests that may wait for a fill, a power of two
  parameter int WAITERS = 512,
  localparam int FILLS = 2 ** FILL_W,
  localparam int MAX_FILLS = FILLS / 2,
  localparam int HITS = 8,
  localparam int WW = $clog2(WAITERS),
  localparam int HW = $clog2(HITS)
) (
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic              flush,
  input  wire logic              flush_fast,

  input  wire logic              in_valid,
  output      logic              in_ready,
  input  wire logic              in_need,
  input  wire logic              in_fast,
  input  wire logic [63:3]       in_addr,
  input  wire logic [META_W-1:0] in_meta,

  output      logic              out_valid,
  input  wire logic              out_ready,
  output      logic [63:0]       out_word,
  output      logic              out_err,
  output      logic [META_W-1:0] out_meta,
  output      logic              out_waited,   // it has waited for a fill

  output      logic              rd_req_valid,
  output      dma_rd_req_t       rd_req,
  input  wire logic              rd_req_ready,
  input  wire logic              rd_rsp_valid,
  input  wire dma_rd_rsp_t       rd_rsp
);

  localparam int IDX_W = $clog2(LINES);
  localparam int TAG_W = 64 - 6 - IDX_W;
  // fill numbers are compared by their distance, which is below FILLS: two bits more than an index
  localparam int SEQ_W = FILL_W + 2;

  typedef struct packed {
    logic [TAG_W-1:0] tag;
    logic [SEQ_W-1:0] fill;
  } tag_t;

  typedef struct packed {
    logic [63:0]       word;
    logic [META_W-1:0] meta;
  } hit_t;

  typedef struct packed {
    logic [SEQ_W-1:0]  fill;
    logic [SEQ_W-1:0]  seen;       // next fill when the request entered
    logic [2:0]        sel;
    logic [META_W-1:0] meta;
  } waiter_t;

  // ---- lookup: request registered beside the RAM outputs ---------------------------------------------
  logic [LINES-1:0] valid_reg, filled_reg, fast_reg;
  logic c1_valid_reg, c1_need_reg, c1_fast_reg, c1_usable, any_flush, c1_line_valid_reg, c1_line_filled_reg, c1_line_fast_reg, c1_fwd_reg;
  logic [63:3] c1_addr_reg;
  logic [META_W-1:0] c1_meta_reg;
  tag_t c1_tag, c1_ram_tag, c1_fwd_tag_reg;
  logic [511:0] c1_line;
  logic [IDX_W-1:0] in_idx, c1_idx;
  logic take, c1_hit, c1_miss, c1_fwd, c1_wait;
  logic [SEQ_W-1:0] fill_next_reg, fill_done_reg;  // next to request, next to arrive
  logic [SEQ_W-1:0] fills_out;
  logic [WW:0] wait_count;
  logic [HW:0] hit_count;
  logic fill_room, kept_room;

  // Index of the cache line. Many tables have a page of memory each and use its first lines, so consecutive pages must map to
  // different lines: bits IN_PAGE and up of the line number are used unchanged for this. The bits beyond the index are folded
  // in. The lowest of these change most often; they go to index bits where they collide only with the far end of a long
  // table.
  localparam int IN_PAGE = 6;      // log2 of the lines of a page
  function automatic logic [IDX_W-1:0] index(input logic [3*IDX_W-1:0] line);
    logic [IDX_W-1:0] folded;
    for (int i = 0; i < IDX_W; i++) folded[i < IN_PAGE ? IN_PAGE - 1 - i : i] = line[IDX_W + i];
    return line[0 +: IDX_W] ^ folded ^ line[2 * IDX_W +: IDX_W];
  endfunction

  assign in_idx = index(in_addr[6 +: 3 * IDX_W]);
  assign c1_idx = index(c1_addr_reg[6 +: 3 * IDX_W]);
  assign fills_out = fill_next_reg - fill_done_reg;
  // one place each for the request in c1 and the one that enters
  assign fill_room = fills_out < SEQ_W'(MAX_FILLS - 1);
  assign in_ready = fill_room && kept_room && wait_count < (WW+1)'(WAITERS - 1) && hit_count < (HW+1)'(HITS - 1);
  assign take = in_valid && in_ready;
  assign any_flush = flush || flush_fast;
  assign c1_usable = c1_line_fast_reg || !c1_fast_reg;
  assign c1_hit = c1_line_valid_reg && !any_flush && c1_usable && c1_tag.tag == c1_addr_reg[63 -: TAG_W];
  assign c1_miss = c1_valid_reg && c1_need_reg && !c1_hit;
  assign c1_wait = c1_need_reg && !(c1_hit && c1_line_filled_reg);
  assign c1_fwd = c1_miss && c1_idx == in_idx;
  assign c1_tag = c1_fwd_reg ? c1_fwd_tag_reg : c1_ram_tag;

  urdma_ram_sdp #(.WIDTH($bits(tag_t)), .DEPTH(LINES)) tag_ram (
    .clk,
    .wr_en(c1_miss),
    .wr_addr(c1_idx),
    .wr_data({c1_addr_reg[63 -: TAG_W], fill_next_reg}),
    .rd_en(take),
    .rd_addr(in_idx),
    .rd_data(c1_ram_tag)
  );

  // fills waiting for their data, in order
  logic [IDX_W-1:0] fill_idx;
  logic fill_good;
  logic [SEQ_W-1:0] stale_reg;  // outstanding fills started before a flush

  urdma_ram_sdp #(.WIDTH(512), .DEPTH(LINES)) line_ram (
    .clk,
    .wr_en(fill_good),
    .wr_addr(fill_idx),
    .wr_data(rd_rsp.data),
    .rd_en(take),
    .rd_addr(in_idx),
    .rd_data(c1_line)
  );

  logic [IDX_W-1:0] fill_idx_mem [FILLS];
  logic [SEQ_W-1:0] fill_owner_mem [LINES];  // newest fill of each line: an older fill must not mark the line filled
  assign fill_idx = fill_idx_mem[fill_done_reg[FILL_W-1:0]];
  assign fill_good = rd_rsp_valid && !rd_rsp.err && stale_reg == '0 && fill_owner_mem[fill_idx] == fill_done_reg;

  always_ff @(posedge clk) begin
    if (take) begin
      c1_need_reg <= in_need;
      c1_fast_reg <= in_fast;
      c1_addr_reg <= in_addr;
      c1_meta_reg <= in_meta;
      c1_fwd_reg <= c1_fwd;
      c1_fwd_tag_reg <= '{tag: c1_addr_reg[63 -: TAG_W], fill: fill_next_reg};
      c1_line_valid_reg <= c1_fwd || (valid_reg[in_idx] && !any_flush);
      c1_line_filled_reg <= !c1_fwd && filled_reg[in_idx];
      c1_line_fast_reg <= c1_fwd ? c1_fast_reg : fast_reg[in_idx];
    end
    if (c1_miss) begin
      fill_idx_mem[fill_next_reg[FILL_W-1:0]] <= c1_idx;
      fill_owner_mem[c1_idx] <= fill_next_reg;
    end

    if (rd_rsp_valid && stale_reg == '0 && fill_owner_mem[fill_idx] == fill_done_reg) begin
      if (rd_rsp.err) valid_reg[fill_idx] <= 1'b0;
      else filled_reg[fill_idx] <= 1'b1;
    end
    if (flush) valid_reg <= '0;
    else if (flush_fast) valid_reg <= valid_reg & ~fast_reg;
    if (c1_miss) begin
      valid_reg[c1_idx] <= 1'b1;
      filled_reg[c1_idx] <= 1'b0;
      fast_reg[c1_idx] <= c1_fast_reg;
    end

    if (rst) begin
      c1_valid_reg <= 1'b0;
      valid_reg <= '0;
      filled_reg <= '0;
      fill_next_reg <= '0;
      fill_done_reg <= '0;
      stale_reg <= '0;
    end else begin
      c1_valid_reg <= take;
      if (c1_miss) fill_next_reg <= fill_next_reg + 1'b1;
      if (rd_rsp_valid) fill_done_reg <= fill_done_reg + 1'b1;
      if (flush) stale_reg <= fills_out - SEQ_W'(rd_rsp_valid);
      else if (rd_rsp_valid && stale_reg != '0) stale_reg <= stale_reg - 1'b1;
    end
  end

  // ---- fill requests ------------------------------------------------------------------------------------
  logic req_in_ready;
  logic [57:0] req_line;
  urdma_fifo #(.WIDTH(58), .DEPTH(MAX_FILLS)) req_fifo (
    .clk, .rst,
    .in_valid(c1_miss), .in_ready(req_in_ready), .in_data(c1_addr_reg[63:6]),
    .out_valid(rd_req_valid), .out_ready(rd_req_ready), .out_data(req_line),
    .count()
  );
  assign rd_req.addr = {req_line, 6'd0};
  assign rd_req.len = 13'd64;

  // ---- hits ---------------------------------------------------------------------------------------------
  hit_t hit_in, hit;
  logic hit_in_ready, hit_valid, w1_valid_reg;

  assign hit_in = '{word: c1_line[64 * c1_addr_reg[5:3] +: 64], meta: c1_meta_reg};

  urdma_fifo #(.WIDTH($bits(hit_t)), .DEPTH(HITS)) hit_fifo (
    .clk, .rst,
    .in_valid(c1_valid_reg && !c1_wait), .in_ready(hit_in_ready), .in_data(hit_in),
    .out_valid(hit_valid), .out_ready(out_ready && !w1_valid_reg), .out_data(hit),
    .count(hit_count)
  );

  // ---- requests that wait for a fill ---------------------------------------------------------------------
  waiter_t wait_in, head;
  logic wait_in_ready, head_valid, head_go;
  logic [SEQ_W-1:0] head_age, head_seen;

  assign wait_in = '{fill: c1_hit ? c1_tag.fill : fill_next_reg, seen: fill_next_reg, sel: c1_addr_reg[5:3], meta: c1_meta_reg};

  urdma_fifo #(.WIDTH($bits(waiter_t)), .DEPTH(WAITERS)) wait_fifo (
    .clk, .rst,
    .in_valid(c1_valid_reg && c1_wait), .in_ready(wait_in_ready), .in_data(wait_in),
    .out_valid(head_valid), .out_ready(head_go), .out_data(head),
    .count(wait_count)
  );

  // The oldest fill that anything in the FIFO, or in c1, may wait for is MAX_FILLS + 1 before head.seen.
  assign head_seen = fill_next_reg - head.seen;
  assign kept_room = !head_valid || head_seen < SEQ_W'(FILLS - MAX_FILLS - 3);

  // fill number f has arrived when fill_done has passed it
  assign head_age = fill_done_reg - head.fill;
  assign head_go = head_valid && (!w1_valid_reg || out_ready) && head_age != '0 && !head_age[SEQ_W-1];

  logic [512:0] fill_word;
  urdma_ram_sdp #(.WIDTH(513), .DEPTH(FILLS)) fill_ram (
    .clk,
    .wr_en(rd_rsp_valid),
    .wr_addr(fill_done_reg[FILL_W-1:0]),
    .wr_data({rd_rsp.err, rd_rsp.data}),
    .rd_en(head_go),
    .rd_addr(head.fill[FILL_W-1:0]),
    .rd_data(fill_word)
  );

  logic [2:0] w1_sel_reg;
  logic [META_W-1:0] w1_meta_reg;

  always_ff @(posedge clk) begin
    if (head_go) begin
      w1_sel_reg <= head.sel;
      w1_meta_reg <= head.meta;
    end
    if (rst) w1_valid_reg <= 1'b0;
    else if (!w1_valid_reg || out_ready) w1_valid_reg <= head_go;
  end

  // ---- answers: waiting requests have priority ------------------------------------------------------------
  assign out_valid = w1_valid_reg || hit_valid;
  assign out_meta = w1_valid_reg ? w1_meta_reg : hit.meta;
  assign out_word = w1_valid_reg ? fill_word[64 * w1_sel_reg +: 64] : hit.word;
  assign out_err = w1_valid_reg && fill_word[512];
  assign out_waited = w1_valid_reg;

  assign busy = c1_valid_reg || hit_valid || head_valid || w1_valid_reg || fills_out != '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && c1_miss) a_req_room: assert (req_in_ready)
      else $error("%m: no room for a fill request");
  always_ff @(posedge clk)
    if (!rst && c1_valid_reg) a_room: assert (c1_wait ? wait_in_ready : hit_in_ready)
      else $error("%m: no room for a request");
  always_ff @(posedge clk)
    if (!rst && head_valid) a_kept: assert (fill_next_reg - head.fill <= SEQ_W'(FILLS))
      else $error("%m: a fill is lost before its turn");
  always_ff @(posedge clk)
    if (!rst && rd_rsp_valid) a_rsp: assert (fills_out != '0 && rd_rsp.last)
      else $error("%m: DMA answer that nobody asked for");

  // Cases that the tests must reach (make coverage).
  c_flush_at_look: cover property (@(posedge clk) !rst && flush && c1_valid_reg && c1_need_reg && c1_line_valid_reg && c1_tag.tag == c1_addr_reg[63 -: TAG_W]);
  c_flush_during_fill: cover property (@(posedge clk) !rst && flush && fills_out > SEQ_W'(1));
  c_fill_overtaken: cover property (@(posedge clk) !rst && rd_rsp_valid && stale_reg != '0);
  c_overtaken: cover property (@(posedge clk) !rst && hit_valid && out_ready && !w1_valid_reg && head_valid);
  c_fill_failed: cover property (@(posedge clk) !rst && rd_rsp_valid && rd_rsp.err);
`endif

endmodule

`resetall
