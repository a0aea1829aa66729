// SPDX-License-Identifier: Apache-2.0
// Address translation and protection: only this block turns a key, or a ring's page table, into a bus address.
//
// Ports and rules: docs/rtl-interfaces.md and mr_req_t. One request enters a cycle, from the clients in turn:
//
//   arbiter -> context lookup -> check (2 cycles) -> split at page ends -> directory cache -> table cache -> client FIFOs
//
// A request that needs no page table still passes through both caches' order FIFOs, so each client is answered in order. 13
// cycles from request to answer when nothing misses. The arbiter accepts a client's requests only while its answer FIFO has
// room for all their answers. So a client that does not accept its answers does not delay the others.
//
// Regions and windows change by operations, see urdma_mr_op.

`resetall
`default_nettype none

module urdma_mr
  import urdma_pkg::*, urdma_mr_pkg::*, urdma_hw_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    init_done,
  output      logic                    busy,

  input  wire logic    [MROC_N-1:0]    mro_valid,
  input  wire mr_op_t  [MROC_N-1:0]    mro,
  output      logic    [MROC_N-1:0]    mro_ready,
  output      logic    [MROC_N-1:0]    mro_rsp_valid,
  output      mro_status_e             mro_rsp,

  input  wire logic                    flush_req,
  output      logic                    flush_done,

  input  wire logic    [MRC_N-1:0]     req_valid,
  input  wire mr_req_t [MRC_N-1:0]     req,
  output      logic    [MRC_N-1:0]     req_ready,

  output      logic    [MRC_N-1:0]     rsp_valid,
  output      mr_rsp_t [MRC_N-1:0]     rsp,
  input  wire logic    [MRC_N-1:0]     rsp_ready,

  output      logic        [1:0]       rd_req_valid,
  output      dma_rd_req_t [1:0]       rd_req,
  input  wire logic        [1:0]       rd_req_ready,
  input  wire logic        [1:0]       rd_rsp_valid,
  input  wire dma_rd_rsp_t             rd_rsp,

  output      logic [URDMA_CNT_N-1:0]  cnt,
  output      logic                    trace_xlat_valid,
  output      tr_xlat_t                trace_xlat
);

  localparam int CLI_W = $clog2(MRC_N);
  // Answers that may wait for a client. A request has two places, so half as many requests are under way. Rings of many QPs
  // miss the cache: 64 places cover a read from the host every 3 cycles. Received payload has twice as many: 128 packets of
  // 256 bytes cover 800 cycles at line rate, the time of a page table read while payload is read at line rate.
  localparam int RSP_W = 8;
  localparam int LOOKUPS = 8;      // context lookups in flight

  function automatic int answers(input int client);
    return client == MRC_RX ? 256 : 128;
  endfunction

  // ---- arbitration -----------------------------------------------------------------------------------------
  logic [MRC_N-1:0] want, grant;
  logic [CLI_W-1:0] grant_idx;
  logic grant_valid, take;
  logic [RSP_W:0] owed_reg [MRC_N];    // answers reserved or waiting

  for (genvar i = 0; i < MRC_N; i++) begin : g_want
    assign want[i] = req_valid[i] && owed_reg[i] <= (RSP_W + 1)'(answers(i) - 2);
  end

  urdma_arb_rr #(.N(MRC_N)) arb (
    .clk, .rst, .req(want), .advance(take), .grant, .grant_idx, .grant_valid
  );

  logic ctx_rd_ready, ctx_rsp_valid, wait_ready, wait_valid, wait_pop;
  mr_ctx_t ctx_rsp, ctx_head;
  logic ctx_head_valid;
  mr_req_t grant_req, wait_req;
  logic [CLI_W-1:0] wait_cli;

  always_comb begin
    grant_req = '0;
    for (int i = 0; i < MRC_N; i++) begin
      if (grant[i]) grant_req = req[i];
    end
  end

  assign take = grant_valid && ctx_rd_ready && wait_ready;
  assign req_ready = take ? grant : '0;

  logic ctx_wr_valid, op_rd_valid, op_rsp_valid, op_busy, op_flush;
  logic [MRI_W-1:0] ctx_wr_idx, op_rd_idx;
  mr_ctx_t ctx_wr;

  logic ctx_init_done, list_init_done;
  logic list_insert, list_remove, list_head_req, list_head_valid, list_head_some;
  logic [QPN_W-1:0] list_qpn;
  logic [MRI_W-1:0] list_idx, list_head_idx;

  assign init_done = ctx_init_done && list_init_done;

  urdma_mr_ctx ctx (
    .clk, .rst, .init_done(ctx_init_done),
    .wr_valid(ctx_wr_valid), .wr_idx(ctx_wr_idx), .wr_ctx(ctx_wr),
    .rd_valid(take), .rd_ready(ctx_rd_ready), .rd_idx(grant_req.key[8 +: MRI_W]),
    .op_rd_valid, .op_rd_idx,
    .rsp_valid(ctx_rsp_valid), .op_rsp_valid, .rsp_ctx(ctx_rsp)
  );

  urdma_mr_op op (
    .clk, .rst, .enable(init_done), .busy(op_busy),
    .mro_valid, .mro, .mro_ready, .mro_rsp_valid, .mro_rsp,
    .rd_valid(op_rd_valid), .rd_idx(op_rd_idx), .rsp_valid(op_rsp_valid), .rsp_ctx(ctx_rsp),
    .wr_valid(ctx_wr_valid), .wr_idx(ctx_wr_idx), .wr_ctx(ctx_wr),
    .flush(op_flush),
    .list_insert, .list_remove, .list_head_req, .list_qpn, .list_idx, .list_head_valid, .list_head_some, .list_head_idx
  );

  urdma_mr_list list (
    .clk, .rst, .init_done(list_init_done),
    .insert(list_insert), .remove(list_remove), .head_req(list_head_req), .qpn(list_qpn), .idx(list_idx),
    .head_valid(list_head_valid), .head_some(list_head_some), .head_idx(list_head_idx)
  );

  urdma_fifo #(.WIDTH(CLI_W + $bits(mr_req_t)), .DEPTH(LOOKUPS)) wait_fifo (
    .clk, .rst,
    .in_valid(take), .in_ready(wait_ready), .in_data({grant_idx, grant_req}),
    .out_valid(wait_valid), .out_ready(wait_pop), .out_data({wait_cli, wait_req}),
    .count()
  );
  logic ctx_fifo_ready;
  urdma_fifo #(.WIDTH($bits(mr_ctx_t)), .DEPTH(LOOKUPS)) ctx_fifo (
    .clk, .rst,
    .in_valid(ctx_rsp_valid), .in_ready(ctx_fifo_ready), .in_data(ctx_rsp),
    .out_valid(ctx_head_valid), .out_ready(wait_pop), .out_data(ctx_head),
    .count()
  );

  // ---- check, cycle 1: differences and comparisons -------------------------------------------------------------
  typedef struct packed {
    logic [CLI_W-1:0] cli;
    logic [31:0]      key;       // 0 for a ring
    logic [12:0]      size;      // of the request
    logic             aligned;
    pt_t              pt;
    logic             fast;      // REG may change its page table
    logic             key_bad;
    logic             pd_bad;
    logic             acc_bad;
    logic             below;     // va below the region or window
    logic             any;       // no range
    logic             no_start;  // all of a region of any address
    logic [63:0]      rel;       // va - start of the region or window
    logic [63:0]      len;       // of the region or window
    logic [63:0]      off;       // va - first byte that the page table describes
  } k1_t;

  k1_t k1_reg;
  logic k1_valid_reg, k1_ready, k2_ready, head_window, head_2b;

  logic unused_ctx;  // fields used only by operations
  assign unused_ctx = &{1'b0, ctx_head.parent, ctx_head.bound};
  assign head_2b = ctx_head.kind == 2'(URDMA_MRK_WINDOW);
  assign head_window = head_2b || ctx_head.kind == 2'(URDMA_MRK_WINDOW_1);

  assign k1_ready = !k1_valid_reg || k2_ready;
  assign wait_pop = wait_valid && ctx_head_valid && k1_ready;

  always_ff @(posedge clk) begin
    if (k1_ready) begin
      k1_reg.cli <= wait_cli;
      k1_reg.key <= wait_req.ring ? '0 : wait_req.key;
      k1_reg.size <= wait_req.len;
      k1_reg.aligned <= wait_req.aligned;
      k1_reg.pt <= wait_req.ring ? wait_req.pt : ctx_head.pt;
      k1_reg.any <= wait_req.ring || (ctx_head.all && !wait_req.whole);
      k1_reg.fast <= !wait_req.ring && ctx_head.kind != 2'(URDMA_MRK_REGION);
      k1_reg.no_start <= ctx_head.all && wait_req.whole;
      // a window is for remote use only; its key is invalid in an SGE
      k1_reg.key_bad <= !wait_req.ring && (!ctx_head.valid || !ctx_head.usable || ctx_head.variant != wait_req.key[7:0]
                                           || wait_req.key[31:8+MRI_W] != '0
                                           || (head_window && (wait_req.acc & ACC_REMOTE) == '0));
      k1_reg.pd_bad <= !wait_req.ring && (ctx_head.pd != wait_req.pd || (head_2b && ctx_head.qpn != wait_req.qpn));
      k1_reg.acc_bad <= !wait_req.ring && (wait_req.acc & ~ctx_head.acc) != '0;
      k1_reg.below <= wait_req.va < ctx_head.va && !wait_req.whole;
      k1_reg.rel <= wait_req.whole ? '0 : wait_req.va - ctx_head.va;
      k1_reg.len <= ctx_head.len;
      k1_reg.off <= (wait_req.whole ? ctx_head.va : wait_req.va) - (wait_req.ring ? '0 : ctx_head.pt_va);
    end
    if (rst) k1_valid_reg <= 1'b0;
    else if (k1_ready) k1_valid_reg <= wait_pop;
  end

  // ---- check, cycle 2: the verdict, and the place in the page table ---------------------------------------------
  typedef struct packed {
    logic [CLI_W-1:0] cli;
    logic [31:0]      key;
    mr_status_e       status;
    logic             fast;
    logic             direct;    // address known without a page table
    logic [63:0]      addr;      // direct: bus address; else table address
    logic [1:0]       levels;
    logic [51:0]      page;      // page number in the table
    logic [30:0]      offset;    // in the page
    logic [12:0]      len;
    logic             split;     // continues in the next page
    logic [12:0]      len2;
  } k2_t;

  k2_t k2_next, k2_reg;
  logic k2_valid_reg, k2_second_reg, frag_ready;
  logic flat;                    // no page table
  logic [63:0] page_mask, room;

  always_comb begin
    page_mask = (64'd1 << k1_reg.pt.page_shift) - 64'd1;
    room = page_mask + 64'd1 - (k1_reg.off & page_mask);
    flat = k1_reg.pt.levels == 2'd0;
    k2_next.cli = k1_reg.cli;
    k2_next.key = k1_reg.key;
    k2_next.status = MR_OK;
    if (k1_reg.key_bad) k2_next.status = MR_BAD_KEY;
    else if (k1_reg.pd_bad) k2_next.status = MR_BAD_PD;
    else if (!k1_reg.any && (k1_reg.no_start || k1_reg.below || k1_reg.rel > k1_reg.len || k1_reg.len - k1_reg.rel < 64'(k1_reg.size)))
      k2_next.status = MR_BAD_RANGE;
    else if (k1_reg.aligned && k1_reg.off[2:0] != '0) k2_next.status = MR_BAD_RANGE;
    else if (k1_reg.acc_bad) k2_next.status = MR_BAD_ACCESS;
    k2_next.direct = flat || k2_next.status != MR_OK;
    k2_next.fast = k1_reg.fast;
    k2_next.levels = k1_reg.pt.levels;
    k2_next.addr = flat ? k1_reg.pt.addr + k1_reg.off : k1_reg.pt.addr;
    k2_next.page = 52'(k1_reg.off >> k1_reg.pt.page_shift);
    k2_next.offset = 31'(k1_reg.off & page_mask);
    k2_next.split = !k2_next.direct && room < 64'(k1_reg.size);
    k2_next.len = k2_next.split ? room[12:0] : k1_reg.size;
    k2_next.len2 = k1_reg.size - room[12:0];
  end

  assign k2_ready = !k2_valid_reg || (frag_ready && (!k2_reg.split || k2_second_reg));

  always_ff @(posedge clk) begin
    if (k2_ready) k2_reg <= k2_next;
    if (rst) begin
      k2_valid_reg <= 1'b0;
      k2_second_reg <= 1'b0;
    end else begin
      if (k2_ready) k2_valid_reg <= k1_valid_reg;
      if (k2_valid_reg && frag_ready && k2_reg.split) k2_second_reg <= !k2_second_reg;
    end
  end

  // ---- page tables -----------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [CLI_W-1:0] cli;
    logic [31:0]      key;
    mr_status_e       status;
    logic             fast;
    logic             direct;
    logic             looked;    // looked up in the directory
    logic             waited;    // for its entry
    logic [63:0]      addr;      // direct: bus address; else of the last-level table (known after the directory)
    logic [51:0]      page;
    logic [30:0]      offset;
    logic [12:0]      len;
    logic             last;
    logic [RSP_W-1:0] place;     // in the order of the client's answers
  } frag_t;

  logic [MRC_N-1:0][RSP_W-1:0] place;

  frag_t frag, dir_meta, tbl_meta;
  logic dir_valid, dir_ready, dir_err, dir_waited, tbl_valid, tbl_err, tbl_ready, tbl_waited;
  logic [63:0] dir_word, tbl_word;
  logic unused_low;
  assign unused_low = &{1'b0, dir_word[11:0], tbl_word[11:0], tbl_meta.fast, tbl_meta.page};  // pages are at least 4 KB

  always_comb begin
    frag.cli = k2_reg.cli;
    frag.key = k2_reg.key;
    frag.looked = !k2_reg.direct && k2_reg.levels == 2'd2;
    frag.waited = 1'b0;
    frag.status = k2_reg.status;
    frag.fast = k2_reg.fast;
    frag.direct = k2_reg.direct;
    frag.addr = k2_reg.addr;
    frag.page = k2_reg.page + 52'(k2_second_reg);
    frag.offset = k2_second_reg ? '0 : k2_reg.offset;
    frag.len = k2_second_reg ? k2_reg.len2 : k2_reg.len;
    frag.last = !k2_reg.split || k2_second_reg;
    frag.place = place[k2_reg.cli];
  end

  logic [1:0] cache_busy;

  urdma_pte_cache #(.LINES(64), .META_W($bits(frag_t))) dir_cache (
    .clk, .rst, .busy(cache_busy[1]), .flush(flush_req), .flush_fast(op_flush),
    .in_valid(k2_valid_reg), .in_ready(frag_ready),
    .in_need(frag.looked), .in_fast(frag.fast),
    .in_addr(frag.addr[63:3] + {18'd0, frag.page[51:9]}), .in_meta(frag),
    .out_valid(dir_valid), .out_ready(dir_ready), .out_word(dir_word), .out_err(dir_err), .out_meta(dir_meta), .out_waited(dir_waited),
    .rd_req_valid(rd_req_valid[1]), .rd_req(rd_req[1]), .rd_req_ready(rd_req_ready[1]),
    .rd_rsp_valid(rd_rsp_valid[1]), .rd_rsp
  );

  frag_t tbl_in;
  logic [63:3] tbl_addr;

  always_comb begin
    tbl_in = dir_meta;
    tbl_in.waited = dir_waited;
    if (dir_meta.looked) begin
      if (dir_err) begin
        tbl_in.status = MR_DMA_ERR;
        tbl_in.direct = 1'b1;
      end
      tbl_addr = {dir_word[63:12], dir_meta.page[8:0]};
    end else begin
      tbl_addr = dir_meta.addr[63:3] + {9'd0, dir_meta.page};
    end
  end

  urdma_pte_cache #(.LINES(1024), .META_W($bits(frag_t)), .FILL_W(8)) tbl_cache (
    .clk, .rst, .busy(cache_busy[0]), .flush(flush_req), .flush_fast(op_flush),
    .in_valid(dir_valid), .in_ready(dir_ready), .in_need(!tbl_in.direct), .in_fast(tbl_in.fast), .in_addr(tbl_addr), .in_meta(tbl_in),
    .out_valid(tbl_valid), .out_ready(tbl_ready), .out_word(tbl_word), .out_err(tbl_err), .out_meta(tbl_meta), .out_waited(tbl_waited),
    .rd_req_valid(rd_req_valid[0]), .rd_req(rd_req[0]), .rd_req_ready(rd_req_ready[0]),
    .rd_rsp_valid(rd_rsp_valid[0]), .rd_rsp
  );

  // ---- answers ---------------------------------------------------------------------------------------------------------
  logic ans_valid_reg;
  mr_rsp_t ans_rsp_reg;
  logic [CLI_W-1:0] ans_cli_reg;
  logic [RSP_W-1:0] ans_place_reg;
  logic [31:0] ans_key_reg;
  logic [1:0] ans_hit_reg, ans_miss_reg;  // directory, table

  assign tbl_ready = 1'b1;  // room was reserved

  always_ff @(posedge clk) begin
    ans_rsp_reg.status <= !tbl_meta.direct && tbl_err ? MR_DMA_ERR : tbl_meta.status;
    ans_rsp_reg.addr <= tbl_meta.direct ? tbl_meta.addr : {tbl_word[63:12], 12'd0} + 64'(tbl_meta.offset);
    ans_rsp_reg.len <= tbl_meta.len;
    ans_rsp_reg.last <= tbl_meta.last;
    ans_cli_reg <= tbl_meta.cli;
    ans_place_reg <= tbl_meta.place;
    ans_key_reg <= tbl_meta.key;
    ans_hit_reg[1] <= tbl_meta.looked && !tbl_meta.waited;
    ans_hit_reg[0] <= !tbl_meta.direct && !tbl_waited;
    ans_miss_reg <= {tbl_meta.waited, tbl_waited};
    if (rst) ans_valid_reg <= 1'b0;
    else ans_valid_reg <= tbl_valid;
  end

  logic [MRC_N-1:0] order_busy;

  for (genvar i = 0; i < MRC_N; i++) begin : g_rsp
    localparam int DEPTH = answers(i);
    localparam int PLACE_W = $clog2(DEPTH);
    logic taken, mine, out_valid, pop, failed, drop_reg, first_reg, one;
    logic [PLACE_W-1:0] next_place;
    mr_rsp_t out;

    assign taken = take && grant[i];
    assign mine = ans_valid_reg && ans_cli_reg == CLI_W'(i);
    assign place[i] = RSP_W'(next_place);

    urdma_reorder #(.WIDTH($bits(mr_rsp_t)), .DEPTH(DEPTH)) order (
      .clk, .rst,
      .take(k2_valid_reg && frag_ready && k2_reg.cli == CLI_W'(i)), .place(next_place),
      .in_valid(mine), .in_place(ans_place_reg[PLACE_W-1:0]), .in_data(ans_rsp_reg),
      .out_valid, .out_ready(rsp_ready[i] || drop_reg), .out_data(out), .busy(order_busy[i])
    );

    // An error ends the request. The answer for its second page is not given out.
    assign failed = out.status != MR_OK;
    assign rsp_valid[i] = out_valid && !drop_reg;
    always_comb begin
      rsp[i] = out;
      rsp[i].last = out.last || failed;
    end

    // Two places are reserved for each request. A request with a single answer frees the other place when that answer is
    // taken (first_reg: no earlier answer of the request).
    assign pop = out_valid && (rsp_ready[i] || drop_reg);
    assign one = pop && out.last && first_reg;
    always_ff @(posedge clk) begin
      if (rst) begin
        owed_reg[i] <= '0;
        first_reg <= 1'b1;
        drop_reg <= 1'b0;
      end else begin
        owed_reg[i] <= owed_reg[i] + (taken ? (RSP_W + 1)'(2) : '0) - (RSP_W + 1)'(pop) - (RSP_W + 1)'(one);
        if (pop) begin
          first_reg <= out.last;
          drop_reg <= failed && !out.last;
        end
      end
    end
  end

  assign flush_done = flush_req;
  assign busy = op_busy || wait_valid || k1_valid_reg || k2_valid_reg || cache_busy != '0 || order_busy != '0;

  always_comb begin
    cnt = '0;
    cnt[URDMA_CNT_DIR_HIT] = ans_valid_reg && ans_hit_reg[1];
    cnt[URDMA_CNT_DIR_MISS] = ans_valid_reg && ans_miss_reg[1];
    cnt[URDMA_CNT_PTE_HIT] = ans_valid_reg && ans_hit_reg[0];
    cnt[URDMA_CNT_PTE_MISS] = ans_valid_reg && ans_miss_reg[0];
    cnt[URDMA_CNT_MR_ERR] = ans_valid_reg && ans_rsp_reg.status != MR_OK && ans_rsp_reg.status != MR_DMA_ERR;
  end

  assign trace_xlat_valid = ans_valid_reg;
  assign trace_xlat = '{client: 3'(ans_cli_reg), key: ans_key_reg, dir_hit: ans_hit_reg[1], dir_miss: ans_miss_reg[1],
                        pte_hit: ans_hit_reg[0], pte_miss: ans_miss_reg[0], refused: ans_rsp_reg.status != MR_OK};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && ctx_rsp_valid) a_ctx: assert (ctx_fifo_ready)
      else $error("%m: no room for a context");
  for (genvar i = 0; i < MRC_N; i++) begin : g_assert
    always_ff @(posedge clk)
      if (!rst && req_valid[i]) a_len: assert (req[i].len != '0 && req[i].len <= 13'd4096)
        else $error("%m: length of a request");
  end
`endif

endmodule

`resetall
