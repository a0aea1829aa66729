// SPDX-License-Identifier: Apache-2.0
// Read cache of page table entries in host memory: one 64-bit word of a 64-byte line for each request, in order.
//
//  in_*      a request: bus address of the word (bits 63:3), and META that comes out with the answer. Without in_need the
//            request passes through in order and out_word has no meaning.
//  out_*     the answers, in request order. out_err: the line could not be read.
//  flush     invalidate all lines. A request that enters from the next cycle on is not answered with a line read before.
//  rd_*      DMA reads of 64 bytes, at most MAX_FILLS outstanding.
//
// Direct mapped. Requests after a miss continue with their lookups and start their own fills. Answers wait in a FIFO whose
// entry either holds the word (hit) or names the fill that will bring it. A buffer keeps the last FILLS fills, so a word
// can be read there even if the cache line has been replaced: at most MAX_FILLS fills are outstanding before an entry,
// ORDER can follow it, and MAX_FILLS + ORDER <= FILLS. A hit takes 4 cycles from in to out; one request a cycle. A request
// after a miss of the same line reads the tag memory before the miss has written it, so it gets the new tag by forwarding.

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
  localparam int FILLS = 2 ** FILL_W,
  localparam int MAX_FILLS = FILLS / 2,
  localparam int ORDER = FILLS / 2
) (
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic              flush,

  input  wire logic              in_valid,
  output      logic              in_ready,
  input  wire logic              in_need,
  input  wire logic [63:3]       in_addr,
  input  wire logic [META_W-1:0] in_meta,

  output      logic              out_valid,
  input  wire logic              out_ready,
  output      logic [63:0]       out_word,
  output      logic              out_err,
  output      logic [META_W-1:0] out_meta,

  output      logic              rd_req_valid,
  output      dma_rd_req_t       rd_req,
  input  wire logic              rd_req_ready,
  input  wire logic              rd_rsp_valid,
  input  wire dma_rd_rsp_t       rd_rsp,

  output      logic              cnt_hit,
  output      logic              cnt_miss
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
    logic              need;
    logic              wait_fill;
    logic [SEQ_W-1:0]  fill;
    logic [2:0]        sel;
    logic [63:0]       word;
    logic [META_W-1:0] meta;
  } order_t;

  // ---- lookup: request registered beside the RAM outputs ---------------------------------------------
  logic [LINES-1:0] valid_reg, filled_reg;
  logic c1_valid_reg, c1_need_reg, c1_line_valid_reg, c1_line_filled_reg, c1_fwd_reg;
  logic [63:3] c1_addr_reg;
  logic [META_W-1:0] c1_meta_reg;
  tag_t c1_tag, c1_ram_tag, c1_fwd_tag_reg;
  logic [511:0] c1_line;
  logic [IDX_W-1:0] in_idx, c1_idx;
  logic take, c1_hit, c1_miss, c1_fwd;
  logic [SEQ_W-1:0] fill_next_reg, fill_done_reg;  // next to ask for, next to arrive
  logic [SEQ_W-1:0] fills_out;
  logic [FILL_W-1:0] order_count;
  logic fill_room;

  // Tables tend to start at round addresses: the tag's low bits are folded into the index, highest first, so that they do
  // not all compete for the same lines.
  function automatic logic [IDX_W-1:0] index(input logic [3*IDX_W-1:0] line);
    logic [IDX_W-1:0] folded;
    for (int i = 0; i < IDX_W; i++) folded[i] = line[2*IDX_W-1-i];
    return line[0 +: IDX_W] ^ folded ^ line[2 * IDX_W +: IDX_W];
  endfunction

  assign in_idx = index(in_addr[6 +: 3 * IDX_W]);
  assign c1_idx = index(c1_addr_reg[6 +: 3 * IDX_W]);
  assign fills_out = fill_next_reg - fill_done_reg;
  // one place each for the request in c1 and the one that enters
  assign fill_room = fills_out < SEQ_W'(MAX_FILLS - 1);
  assign in_ready = fill_room && order_count < FILL_W'(ORDER - 2);
  assign take = in_valid && in_ready;
  assign c1_hit = c1_line_valid_reg && !flush && c1_tag.tag == c1_addr_reg[63 -: TAG_W];
  assign c1_miss = c1_valid_reg && c1_need_reg && !c1_hit;
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
  logic [SEQ_W-1:0] stale_reg;  // outstanding fills that a flush has overtaken

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
  logic [SEQ_W-1:0] fill_owner_mem [LINES];  // newest fill of each line: an older one may not mark it filled
  assign fill_idx = fill_idx_mem[fill_done_reg[FILL_W-1:0]];
  assign fill_good = rd_rsp_valid && !rd_rsp.err && stale_reg == '0 && fill_owner_mem[fill_idx] == fill_done_reg;

  always_ff @(posedge clk) begin
    if (take) begin
      c1_need_reg <= in_need;
      c1_addr_reg <= in_addr;
      c1_meta_reg <= in_meta;
      c1_fwd_reg <= c1_fwd;
      c1_fwd_tag_reg <= '{tag: c1_addr_reg[63 -: TAG_W], fill: fill_next_reg};
      c1_line_valid_reg <= c1_fwd || (valid_reg[in_idx] && !flush);
      c1_line_filled_reg <= !c1_fwd && filled_reg[in_idx];
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
    if (c1_miss) begin
      valid_reg[c1_idx] <= 1'b1;
      filled_reg[c1_idx] <= 1'b0;
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

  assign cnt_hit = c1_valid_reg && c1_need_reg && c1_hit;
  assign cnt_miss = c1_miss;

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

  // ---- answers in order -----------------------------------------------------------------------------------
  order_t order_in, head;
  logic order_in_ready, head_valid, head_go, out_free;
  logic [SEQ_W-1:0] head_age;

  always_comb begin
    order_in.need = c1_need_reg;
    order_in.wait_fill = c1_need_reg && !(c1_hit && c1_line_filled_reg);
    order_in.fill = c1_hit ? c1_tag.fill : fill_next_reg;
    order_in.sel = c1_addr_reg[5:3];
    order_in.word = c1_line[64 * c1_addr_reg[5:3] +: 64];
    order_in.meta = c1_meta_reg;
  end

  urdma_fifo #(.WIDTH($bits(order_t)), .DEPTH(ORDER)) order_fifo (
    .clk, .rst,
    .in_valid(c1_valid_reg), .in_ready(order_in_ready), .in_data(order_in),
    .out_valid(head_valid), .out_ready(head_go), .out_data(head),
    .count(order_count)
  );

  // fill number f has arrived when fill_done has passed it
  assign head_age = fill_done_reg - head.fill;
  assign head_go = head_valid && out_free && (!head.wait_fill || (head_age != '0 && !head_age[SEQ_W-1]));

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

  order_t h1_reg;
  logic h1_valid_reg;
  assign out_free = !h1_valid_reg || out_ready;
  assign out_valid = h1_valid_reg;
  assign out_meta = h1_reg.meta;
  assign out_word = h1_reg.wait_fill ? fill_word[64 * h1_reg.sel +: 64] : h1_reg.word;
  assign out_err = h1_reg.need && h1_reg.wait_fill && fill_word[512];

  always_ff @(posedge clk) begin
    if (head_go) h1_reg <= head;
    if (rst) h1_valid_reg <= 1'b0;
    else if (out_free) h1_valid_reg <= head_go;
  end

  logic unused_h1;
  assign unused_h1 = &{1'b0, h1_reg.fill};
  assign busy = c1_valid_reg || head_valid || h1_valid_reg || fills_out != '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && c1_miss) a_req_room: assert (req_in_ready)
      else $error("%m: no room for a fill request");
  always_ff @(posedge clk)
    if (!rst && c1_valid_reg) a_order_room: assert (order_in_ready)
      else $error("%m: no room in the order FIFO");
  always_ff @(posedge clk)
    if (!rst && rd_rsp_valid) a_rsp: assert (fills_out != '0 && rd_rsp.last)
      else $error("%m: DMA answer that nobody asked for");

  // Cases that the tests have to meet (make coverage).
  c_flush_at_look: cover property (@(posedge clk) !rst && flush && c1_valid_reg && c1_need_reg && c1_line_valid_reg && c1_tag.tag == c1_addr_reg[63 -: TAG_W]);
  c_flush_during_fill: cover property (@(posedge clk) !rst && flush && fills_out > SEQ_W'(1));
  c_fill_overtaken: cover property (@(posedge clk) !rst && rd_rsp_valid && stale_reg != '0);
  c_fill_failed: cover property (@(posedge clk) !rst && rd_rsp_valid && rd_rsp.err);
`endif

endmodule

`resetall
