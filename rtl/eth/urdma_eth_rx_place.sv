// SPDX-License-Identifier: Apache-2.0
// Moves frames from the frame buffer to the host's buffers, then writes their completions.
//
//  frm_*    frames that wait, in order
//  rd_*     read port of the frame buffer, latency 1; free_*: its lines freed, in order
//  open to done_*  urdma_eth_rx_desc
//  wr_*     DMA writes, one for each buffer
//  rxc_*    completions, each when the frame's last beat is accepted
//
//  n1, n2   the next frame: its lines, then the buffers it needs (both in parallel to the frame being split)
//  check    the queue is open and has that many buffers posted; otherwise the frame is dropped
//  cut      a piece for each buffer, one per cycle, when its address has arrived. Posted addresses always arrive, so the wait
//           ends. A failed read also ends the wait: the frame is dropped
//  d        the piece with its address
//  write    beats
//
// A dropped frame takes the same path as a piece without data, so that lines are freed in order.

`resetall
`default_nettype none

module urdma_eth_rx_place
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_trace_pkg::*;
  import urdma_eth_rx_pkg::*;
(
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    busy,

  input  wire logic                    frm_valid,
  input  wire frame_t                  frm,
  output      logic                    frm_ready,

  output      logic                    rd_en,
  output      logic [LINE_W-1:0]       rd_line,
  input  wire logic [511:0]            rd_data,
  output      logic                    free_valid,
  output      logic [7:0]              free_lines,

  input  wire logic [ETHQ_N-1:0]       open,
  input  wire logic [ETHQ_N-1:0]       failed,
  input  wire logic [ETHQ_N-1:0][6:0]  size,
  input  wire logic [ETHQ_N-1:0][15:0] pi,
  input  wire logic [ETHQ_N-1:0][15:0] ap,
  input  wire logic [ETHQ_N-1:0][15:0] rp,
  output      logic                    take_valid,
  output      logic [ETHQ_W-1:0]       take_q,
  input  wire logic [63:0]             addr,
  output      logic                    back_valid,
  output      logic [ETHQ_W-1:0]       back_q,
  output      logic [15:0]             back_rp,
  output      logic                    want_valid,
  output      logic [ETHQ_W-1:0]       want_q,
  output      logic                    begun_valid,
  output      logic [ETHQ_W-1:0]       begun_q,
  output      logic [1:0]              done_valid,
  output      logic [1:0][ETHQ_W-1:0]  done_q,

  input  wire logic                    rdma_first,
  output      logic                    wr_valid,
  output      dma_wr_t                 wr,
  input  wire logic                    wr_ready,
  output      logic                    rxc_valid,
  output      eth_rxc_t                rxc,
  input  wire logic                    rxc_ready,

  output      logic [URDMA_CNT_N-1:0]  cnt,
  output      logic                    trace_eth_buf_valid,
  output      tr_eth_buf_t             trace_eth_buf
);

  logic [URDMA_CNT_N-1:0] cnt_reg;
  assign cnt = cnt_reg;

  localparam int PIECES = 8;
  localparam int RXCS = 16;
  localparam int WAIT_W = 11;      // while rdma_first, a frame begins every 2**WAIT_W cycles

  // ---- n1, n2: requirements of the next frame ----------------------------------------------------------
  // x / size as x * recip >> 14: exact for all x up to MAX_LINES + 63.
  typedef logic [64:0][14:0] recip_t;
  function automatic recip_t recip_map();
    recip_map[0] = '0;
    for (int i = 1; i <= 64; i++) recip_map[i] = 15'((16384 + i - 1) / i);
  endfunction
  localparam recip_t RECIP = recip_map();

  logic n1_valid_reg, n2_valid_reg, n1_go, n2_go;
  frame_t n1_reg, n2_reg;
  logic [6:0] n1_size_reg, n2_size_reg;
  logic [7:0] n1_lines_reg, n2_lines_reg;
  logic [7:0] n1_up_reg, n2_need_reg;
  logic [14:0] n1_recip_reg;

  assign n1_go = n1_valid_reg && (!n2_valid_reg || n2_go);
  assign frm_ready = !n1_valid_reg || n1_go;

  always_ff @(posedge clk) begin
    if (frm_valid && frm_ready) begin
      logic [7:0] l;
      l = 8'((frm.len + 14'd63) >> 6);
      n1_reg <= frm;
      n1_lines_reg <= l;
      n1_size_reg <= size[frm.q];
      n1_up_reg <= l + 8'(size[frm.q]) - 8'd1;
      n1_recip_reg <= RECIP[size[frm.q]];
    end
    if (n1_go) begin
      logic [22:0] product;
      product = 23'(n1_up_reg) * 23'(n1_recip_reg);
      n2_reg <= n1_reg;
      n2_lines_reg <= n1_lines_reg;
      n2_size_reg <= n1_size_reg;
      n2_need_reg <= 8'(product >> 14);
    end
    if (rst) begin
      n1_valid_reg <= 1'b0;
      n2_valid_reg <= 1'b0;
    end else begin
      if (frm_ready) n1_valid_reg <= frm_valid;
      if (n1_go) n2_valid_reg <= 1'b1;
      else if (n2_go) n2_valid_reg <= 1'b0;
    end
  end

  // ---- check and cut -----------------------------------------------------------------------------------
  typedef struct packed {
    logic        drop;             // no data: free the lines
    logic        begun;            // drop: part of the frame may have been written
    logic        first;            // of the frame
    logic        last;
    logic [7:0]  lines;            // drop
    logic [12:0] len;              // else, bytes
    logic        mcast;
    eth_rxc_t    rxc;
  } piece_t;

  typedef struct packed {
    piece_t      p;
    logic [63:0] addr;
  } piece_addr_t;

  logic cur_valid_reg, cur_first_reg;
  frame_t cur_reg;
  logic [6:0] cur_size_reg;
  logic [13:0] cur_left_reg;       // bytes
  logic [7:0] cur_bufs_reg;
  logic [15:0] cur_index_reg;
  logic d_valid_reg;
  piece_t d_reg;
  logic [3:0] piece_count;
  logic room, ok, drop, give_up, cut, cur_last;
  logic [12:0] cur_size;           // bytes

  assign room = piece_count < 4'(PIECES - 1) || (piece_count == 4'(PIECES - 1) && !d_valid_reg);
  // if the size differs, the queue was restarted after the frame arrived
  assign ok = open[n2_reg.q] && n2_size_reg == size[n2_reg.q] && 16'(pi[n2_reg.q] - rp[n2_reg.q]) >= 16'(n2_need_reg);
  assign n2_go = n2_valid_reg && !cur_valid_reg && room;
  assign drop = n2_go && !ok;
  assign begun_valid = n2_go && ok;
  assign begun_q = n2_reg.q;
  // enable may have fallen; only an error ends a frame early
  assign want_valid = cur_valid_reg && ap[cur_reg.q] == rp[cur_reg.q];
  assign want_q = cur_reg.q;
  assign give_up = want_valid && failed[cur_reg.q] && room;
  assign cut = cur_valid_reg && !want_valid && room;
  assign take_valid = cut;
  assign take_q = cur_reg.q;
  assign back_valid = give_up;
  assign back_q = cur_reg.q;
  assign back_rp = cur_index_reg;
  assign cur_size = {cur_size_reg, 6'd0};

  assign cur_last = cur_left_reg <= 14'(cur_size);

  always_ff @(posedge clk) begin
    if (begun_valid) begin
      cur_reg <= n2_reg;
      cur_size_reg <= n2_size_reg;
      cur_left_reg <= n2_reg.len;
      cur_first_reg <= 1'b1;
      cur_bufs_reg <= '0;
      cur_index_reg <= rp[n2_reg.q];
    end else if (cut) begin
      cur_left_reg <= cur_left_reg - 14'(cur_size);
      cur_first_reg <= 1'b0;
      cur_bufs_reg <= cur_bufs_reg + 8'd1;
    end
    if (cut || give_up || drop) begin
      d_reg.drop <= !cut;
      d_reg.begun <= give_up;
      d_reg.first <= cur_first_reg;
      d_reg.last <= cur_last;
      d_reg.lines <= give_up ? 8'((cur_left_reg + 14'd63) >> 6) : n2_lines_reg;
      d_reg.len <= cur_last ? cur_left_reg[12:0] : cur_size;
      d_reg.mcast <= cur_reg.mcast;
      d_reg.rxc <= '{q: cur_reg.q, vlan: cur_reg.vlan, tci: cur_reg.tci, hash_type: cur_reg.hash_type,
          hash: cur_reg.hash, bufs: cur_bufs_reg + 8'd1, len: 16'(cur_reg.len), csum: cur_reg.csum, index: cur_index_reg};
    end
    if (rst) begin
      cur_valid_reg <= 1'b0;
      d_valid_reg <= 1'b0;
    end else begin
      if (begun_valid) cur_valid_reg <= 1'b1;
      else if ((cut && cur_last) || give_up) cur_valid_reg <= 1'b0;
      d_valid_reg <= cut || give_up || drop;
    end
  end

  // ---- write ---------------------------------------------------------------------------------------------
  piece_addr_t c;
  logic c_valid, c_pop, d_ready;

  urdma_fifo #(.WIDTH($bits(piece_addr_t)), .DEPTH(PIECES)) u_pieces (
    .clk(clk), .rst(rst), .in_valid(d_valid_reg), .in_ready(d_ready), .in_data({d_reg, addr}),
    .out_valid(c_valid), .out_ready(c_pop), .out_data(c), .count(piece_count)
  );

  logic mid_reg;                   // within the piece
  logic [12:0] left_reg, left;     // bytes of the piece to come
  logic issue, issue_last, skip, may_begin;
  logic [LINE_W-1:0] line_reg;
  logic [WAIT_W-1:0] wait_reg;
  logic w_valid_reg, w_last_reg, w_end_reg, w_mcast_reg, w_done;
  logic [63:0] w_addr_reg;
  logic [12:0] w_len_reg;
  eth_rxc_t w_rxc_reg;
  logic [4:0] rxc_count;
  logic rxc_in_ready;

  assign left = mid_reg ? left_reg : c.p.len;
  assign issue_last = left <= 13'd64;
  // A write that has begun waits for nothing: completions must pass it on the way to the host, so room for its own completion
  // is checked before (and for that of the frame on wr_*).
  assign may_begin = mid_reg || ((!c.p.first || !rdma_first || (&wait_reg)) && (!c.p.last || rxc_count <= 5'(RXCS - 2)));
  assign issue = c_valid && !c.p.drop && (!w_valid_reg || wr_ready) && may_begin;
  // a frame given up in the middle ends when the beats already issued are written
  assign skip = c_valid && c.p.drop && (!c.p.begun || !w_valid_reg || wr_ready);
  assign c_pop = skip || (issue && issue_last);
  assign rd_en = issue;
  assign rd_line = line_reg;
  assign free_valid = issue || skip;
  assign free_lines = skip ? c.p.lines : 8'd1;
  assign w_done = w_valid_reg && wr_ready && w_end_reg;

  assign wr_valid = w_valid_reg;
  assign wr = '{addr: w_addr_reg, len: w_len_reg, data: rd_data, last: w_last_reg};

  always_ff @(posedge clk) begin
    if (issue) begin
      left_reg <= left - 13'd64;
      w_last_reg <= issue_last;
      w_end_reg <= issue_last && c.p.last;
      if (!mid_reg) begin
        w_addr_reg <= c.addr;
        w_len_reg <= c.p.len;
        w_rxc_reg <= c.p.rxc;
        w_mcast_reg <= c.p.mcast;
      end
    end
    if (rst) begin
      mid_reg <= 1'b0;
      line_reg <= '0;
      wait_reg <= '1;
      w_valid_reg <= 1'b0;
    end else begin
      if (issue) mid_reg <= !issue_last;
      line_reg <= line_reg + (issue ? LINE_W'(1) : skip ? LINE_W'(c.p.lines) : '0);
      if (!rdma_first) wait_reg <= '1;
      else if (issue && !mid_reg && c.p.first) wait_reg <= '0;
      else if (!(&wait_reg)) wait_reg <= wait_reg + 1'b1;
      if (issue) w_valid_reg <= 1'b1;
      else if (wr_ready) w_valid_reg <= 1'b0;
    end
  end

  // ---- completions -------------------------------------------------------------------------------------
  urdma_fifo #(.WIDTH($bits(eth_rxc_t)), .DEPTH(RXCS)) u_rxc (
    .clk(clk), .rst(rst), .in_valid(w_done), .in_ready(rxc_in_ready), .in_data(w_rxc_reg),
    .out_valid(rxc_valid), .out_ready(rxc_ready), .out_data(rxc), .count(rxc_count)
  );

  assign done_valid = {skip && c.p.begun, rxc_valid && rxc_ready};
  assign done_q = {c.p.rxc.q, rxc.q};

  always_ff @(posedge clk) begin
    cnt_reg <= '0;
    if (!rst) begin
      cnt_reg[URDMA_CNT_ETH_RX_NO_BUF] <= drop || give_up;
      cnt_reg[URDMA_CNT_ETH_RX_FRAMES] <= w_done;
      cnt_reg[URDMA_CNT_ETH_RX_MCAST] <= w_done && w_mcast_reg;
    end
  end

  // One frame at a time: a frame begins when the one before has all its pieces, or has been given up.
  assign trace_eth_buf_valid = drop || give_up || (cut && cur_last);
  assign trace_eth_buf = drop ? '{len: 15'(n2_reg.len) + (n2_reg.vlan ? 15'd4 : 15'd0), drop: 1'b1}
      : '{len: 15'(cur_reg.len) + (cur_reg.vlan ? 15'd4 : 15'd0), drop: give_up};

  assign busy = n1_valid_reg || n2_valid_reg || cur_valid_reg || d_valid_reg || c_valid || w_valid_reg || rxc_valid;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && d_valid_reg) a_piece: assert (d_ready)
      else $error("%m: a piece is lost");
  always_ff @(posedge clk)
    if (!rst && w_done) a_rxc: assert (rxc_in_ready)
      else $error("%m: a completion is lost");
`endif

  logic unused;
  assign unused = &{1'b0, d_ready, rxc_in_ready};

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_given_up: cover property (@(posedge clk) !rst && give_up);
`endif

endmodule

`resetall
