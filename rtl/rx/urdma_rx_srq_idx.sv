// SPDX-License-Identifier: Apache-2.0
// Finds the WQE of its SRQ that an operation uses: the index comes from the ring of indices in host memory.
//
//  in_*    operations of the responder, in order; out_*: the same. For an operation with a WQE of an SRQ, wqe is now its
//          place in the array
//  kill_*  the index of this SRQ cannot be read, or is beyond the array
//  mr_*    address of a line of the ring; rd_*: the line, 64 bytes
//
// The first operation that uses a WQE reads its index, and the QP keeps the index for the operations after it. A read brings
// a line of the ring. The indices of this line that were posted when it was requested serve the next messages as well:
// tag_reg holds the last TAGS lines with their SRQ and the number of indices left. The indices of an SRQ are used in order,
// so positions need no comparison; only `fresh` shows that the SRQ is a new one.
//
// Operations without such a WQE pass without a register while no operation waits here. With SRQs the rate is one operation in
// 2 cycles, and OPS of them may wait for their lines. The LINES lines are used in turn. A waiting operation keeps its line:
// it uses one of the last TAGS lines, and operations after it request at most TAGS - 1 more.
//
// If the index cannot be read, the QP goes to ERR: OK_NONE with srq_bad. The bytes of a WRITE are not written then either.

`resetall
`default_nettype none

module urdma_rx_srq_idx
  import urdma_pkg::*;
  import urdma_rx_pkg::*;
#(
  // operations that wait, a power of two
  parameter int OPS = 128,
  // lines whose indices may be used, a power of two
  parameter int TAGS = 32
) (
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic              in_valid,
  output      logic              in_ready,
  input  wire op_t               in,
  input  wire fetch_t            in_fetch,
  input  wire find_t             in_find,

  output      logic              out_valid,
  input  wire logic              out_ready,
  output      op_t               out,
  output      fetch_t            out_fetch,

  output      logic              kill_valid,
  output      logic [SRQN_W-1:0] kill_srqn,
  input  wire logic              kill_ready,

  output      logic              mr_req_valid,
  output      mr_req_t           mr_req,
  input  wire logic              mr_req_ready,
  input  wire logic              mr_rsp_valid,
  input  wire mr_rsp_t           mr_rsp,
  output      logic              mr_rsp_ready,
  output      logic              rd_req_valid,
  output      dma_rd_req_t       rd_req,
  input  wire logic              rd_req_ready,
  input  wire logic              rd_rsp_valid,
  input  wire dma_rd_rsp_t       rd_rsp
);

  localparam int LINES = 2 * TAGS;
  localparam int LW = $clog2(LINES);
  localparam int TW = $clog2(TAGS);
  localparam int PER_LINE = 32;    // indices

  typedef struct packed {
    logic [SRQN_W-1:0] srqn;
    logic [5:0]        left;       // indices for operations to come
    logic [LW-1:0]     line;
  } tag_t;

  typedef struct packed {
    op_t           op;
    fetch_t        fetch;
    logic [SRQN_W-1:0] srqn;
    logic          uses;           // a WQE of an SRQ
    logic          asked;          // this operation requested the line
    logic [LW-1:0] line;
  } wait_t;

  // ---- an operation arrives --------------------------------------------------------------------------------
  tag_t tag_reg [TAGS];
  logic [LW-1:0] next_reg;         // line to ask for next
  logic [TW:0] asked_reg;          // operations here that have requested a line
  logic [TAGS-1:0] match;
  logic uses, hit, miss, wait_any, wait_push, wait_room, head_valid, head_pop, ask_room, take;
  logic [LW-1:0] hit_line;
  logic [16:0] entries, span, to_end;
  logic [5:0] in_line;             // indices in the line, from this one on
  logic [$clog2(OPS):0] wait_count;
  wait_t wait_in, head;

  assign uses = in.srq && (in.kind == OK_DATA || in.cqe);
  assign wait_any = wait_count != '0;

  always_comb begin
    hit_line = '0;
    for (int i = 0; i < TAGS; i++) begin
      match[i] = tag_reg[i].left != '0 && tag_reg[i].srqn == in_find.srqn;
      if (match[i]) hit_line |= tag_reg[i].line;
    end
  end
  assign hit = in.srq_new && !in_find.fresh && match != '0;
  assign miss = in.srq_new && !hit;

  // up to the end of the line, of the ring, of the posted indices
  assign entries = 17'd1 << in_fetch.rq.log_entries;
  assign to_end = entries - 17'(in.wqe);
  assign span = (17'(in_find.left) < to_end) ? 17'(in_find.left) : to_end;
  assign in_line = 6'(PER_LINE) - 6'(in.wqe[4:0]);

  assign wait_push = uses || wait_any;
  assign take = in_valid && in_ready;
  assign in_ready = wait_push ? wait_room && (!miss || (ask_room && !asked_reg[TW] && asked_reg[TW-1:0] != '1)) : out_ready;

  always_ff @(posedge clk) begin
    for (int i = 0; i < TAGS; i++) begin
      if (take && in.srq_new && match[i]) tag_reg[i].left <= miss ? '0 : tag_reg[i].left - 6'd1;
      if (take && miss && TW'(i) == next_reg[TW-1:0])
        tag_reg[i] <= '{srqn: in_find.srqn, left: ((span < 17'(in_line)) ? span[5:0] : in_line) - 6'd1, line: next_reg};
      if (rst) tag_reg[i].left <= '0;
    end
    if (rst) begin
      next_reg <= '0;
      asked_reg <= '0;
    end else begin
      if (take && miss) next_reg <= next_reg + 1'b1;
      asked_reg <= asked_reg + (TW+1)'(take && miss) - (TW+1)'(head_pop && head.asked);
    end
  end

  assign wait_in = '{op: in, fetch: in_fetch, srqn: in_find.srqn, uses: uses, asked: miss, line: hit ? hit_line : next_reg};
  urdma_fifo #(.WIDTH($bits(wait_t)), .DEPTH(OPS)) u_wait (
    .clk, .rst,
    .in_valid(take && wait_push), .in_ready(wait_room), .in_data(wait_in),
    .out_valid(head_valid), .out_ready(head_pop), .out_data(head), .count(wait_count)
  );

  // ---- its line ------------------------------------------------------------------------------------------------
  // The ring of indices follows the WQEs, and each line of it lies in one page.
  logic ask_valid, addr_ok, rd_valid;
  logic [LW-1:0] addr_reg, rd_line;   // line whose address comes next, whose bytes come next
  logic [LINES-1:0] here_reg, bad_reg;
  mr_req_t ask_in;

  always_comb begin
    ask_in = '0;
    ask_in.ring = 1'b1;
    ask_in.pt = in_fetch.rq.pt;
    ask_in.qpn = in.qpn;
    ask_in.va = (64'd1 << (6'(in_fetch.rq.log_entries) + 6'(in_fetch.rq.log_stride))) + 64'({in.wqe[15:5], 6'd0});
    ask_in.len = 13'd64;
  end
  urdma_fifo #(.WIDTH($bits(mr_req_t)), .DEPTH(4)) u_ask (
    .clk, .rst,
    .in_valid(take && miss), .in_ready(ask_room), .in_data(ask_in),
    .out_valid(ask_valid), .out_ready(mr_req_ready), .out_data(mr_req), .count()
  );
  assign mr_req_valid = ask_valid;

  assign addr_ok = mr_rsp.status == MR_OK;
  assign rd_req_valid = mr_rsp_valid && addr_ok;
  assign rd_req = '{addr: mr_rsp.addr, len: mr_rsp.len};
  assign mr_rsp_ready = !addr_ok || rd_req_ready;

  // As deep as there are lines: always room.
  urdma_fifo #(.WIDTH(LW), .DEPTH(LINES)) u_rd (
    .clk, .rst,
    .in_valid(rd_req_valid && rd_req_ready), .in_ready(), .in_data(addr_reg),
    .out_valid(rd_valid), .out_ready(rd_rsp_valid), .out_data(rd_line), .count()
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      addr_reg <= '0;
      here_reg <= '0;
    end else begin
      if (mr_rsp_valid && mr_rsp_ready) begin
        addr_reg <= addr_reg + 1'b1;
        here_reg[addr_reg] <= !addr_ok;
        bad_reg[addr_reg] <= !addr_ok;
      end
      if (rd_rsp_valid) begin
        here_reg[rd_line] <= 1'b1;
        bad_reg[rd_line] <= rd_rsp.err;
      end
      if (take && miss) here_reg[next_reg] <= 1'b0;
    end
  end

  // ---- at its turn: read, then go on ---------------------------------------------------------------------------
  typedef enum logic [1:0] {H_READ, H_OUT, H_BAD} head_e;
  head_e state_reg;
  logic [511:0] line;
  logic [15:0] kept, index;
  logic ready, bad;

  assign ready = head_valid && head.uses && state_reg == H_READ && (!head.op.srq_new || here_reg[head.line]);

  urdma_ram_sdp #(.WIDTH(512), .DEPTH(LINES)) u_lines (
    .clk, .wr_en(rd_rsp_valid), .wr_addr(rd_line), .wr_data(rd_rsp.data),
    .rd_en(ready), .rd_addr(head.line), .rd_data(line)
  );
  urdma_ram_sdp #(.WIDTH(16), .DEPTH(1 << QPN_W)) u_kept (
    .clk, .wr_en(head_pop && head.op.srq_new), .wr_addr(head.op.qpn), .wr_data(index),
    .rd_en(ready), .rd_addr(head.op.qpn), .rd_data(kept)
  );
  // The kept index is of the same SRQ, unless an XRC SRQ number had 2**SRQ_LIFE_W lives within one message (urdma_rx_xrc).
  // Even then it is masked to a place in the array.
  assign index = head.op.srq_new ? line[16*head.op.wqe[4:0] +: 16]
      : kept & 16'((17'd1 << head.fetch.rq.log_entries) - 17'd1);
  assign bad = head.op.srq_new && (bad_reg[head.line] || (index >> head.fetch.rq.log_entries) != '0);

  always_ff @(posedge clk) begin
    if (rst) begin
      state_reg <= H_READ;
    end else begin
      case (state_reg)
        H_READ: if (ready) state_reg <= H_OUT;
        H_OUT: if (kill_valid && kill_ready) state_reg <= H_BAD;
        default: ;
      endcase
      if (head_pop) state_reg <= H_READ;
    end
  end

  assign kill_valid = state_reg == H_OUT && bad;
  assign kill_srqn = head.srqn;
  assign head_pop = head_valid && out_ready && (!head.uses || (state_reg == H_OUT && !bad) || state_reg == H_BAD);

  always_comb begin
    out = head.op;
    out_fetch = head.fetch;
    out_valid = head_valid && (!head.uses || (state_reg == H_OUT && !bad) || state_reg == H_BAD);
    if (head.uses) out.wqe = index;
    if (state_reg == H_BAD) begin
      out.kind = OK_NONE;
      out.srq_bad = 1'b1;
      out.srq_new = 1'b0;
      out.cqe = 1'b0;
      out.inv = 1'b0;
    end
    if (!wait_any) begin
      out = in;
      out_fetch = in_fetch;
      out_valid = in_valid && !uses;
    end
  end

  assign busy = wait_any;

  logic unused;
  assign unused = &{1'b0, rd_valid, mr_rsp.last, rd_rsp.last};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && in_valid && in.srq_new) a_one: assert ($onehot0(match))
      else $error("%m: two lines of one SRQ");
  // Cases that the tests must reach (make coverage).
  c_fresh: cover property (@(posedge clk) !rst && take && in.srq_new && in_find.fresh && match != '0);
  c_asked_most: cover property (@(posedge clk) !rst && in_valid && miss && !asked_reg[TW] && asked_reg[TW-1:0] == '1);
  c_bad_addr: cover property (@(posedge clk) !rst && mr_rsp_valid && !addr_ok);
  c_bad_read: cover property (@(posedge clk) !rst && rd_rsp_valid && rd_rsp.err);
  c_behind: cover property (@(posedge clk) !rst && take && wait_any && !uses);
`endif

endmodule

`resetall
