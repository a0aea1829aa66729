// SPDX-License-Identifier: Apache-2.0
// Reads the bytes of frames from host memory.
//
// Frames get their lines of the buffer in order, all lines of a frame before its first read request, so there is always room
// for the data. A piece of more than 4096 bytes becomes several reads. The pieces of bad frames are discarded; the frames
// keep their place in the order. One read or one piece per cycle.

`resetall
`default_nettype none

module urdma_eth_tx_read
  import urdma_pkg::*;
  import urdma_eth_tx_pkg::*;
(
  input  wire logic        clk,
  input  wire logic        rst,
  output      logic        busy,

  input  wire logic        piece_valid,
  input  wire etx_piece_t      piece,
  output      logic        piece_room,
  input  wire logic        frame_valid,
  input  wire etx_frame_t      frame,
  output      logic        frame_room,

  output      logic        rd_req_valid,
  output      dma_rd_req_t rd_req,
  input  wire logic        rd_req_ready,

  output      logic        frag_valid,
  output      etx_frag_t       frag,
  input  wire logic        frag_ready,
  output      logic        sent_valid,
  output      etx_sent_t       sent,
  input  wire logic        sent_ready,

  input  wire logic [7:0]  free_n       // lines freed
);

  localparam int PIECE_DEPTH = 64;
  localparam int FRAME_DEPTH = 32;

  logic p_valid, p_pop, f_valid, f_pop, p_in_ready, f_in_ready;
  etx_piece_t p;
  etx_frame_t f;
  logic [$clog2(PIECE_DEPTH):0] p_count;
  logic [$clog2(FRAME_DEPTH):0] f_count;
  urdma_fifo #(.WIDTH($bits(etx_piece_t)), .DEPTH(PIECE_DEPTH)) piece_fifo (
    .clk, .rst, .in_valid(piece_valid), .in_ready(p_in_ready), .in_data(piece),
    .out_valid(p_valid), .out_ready(p_pop), .out_data(p), .count(p_count)
  );
  urdma_fifo #(.WIDTH($bits(etx_frame_t)), .DEPTH(FRAME_DEPTH)) frame_fifo (
    .clk, .rst, .in_valid(frame_valid), .in_ready(f_in_ready), .in_data(frame),
    .out_valid(f_valid), .out_ready(f_pop), .out_data(f), .count(f_count)
  );
  assign piece_room = (p_count <= ($clog2(PIECE_DEPTH)+1)'(PIECE_DEPTH - 4));
  assign frame_room = (f_count <= ($clog2(FRAME_DEPTH)+1)'(FRAME_DEPTH - 4));

  logic [LINE_W:0] free_reg;        // lines owned by no frame
  logic [LINE_W-1:0] alloc_reg;     // next line to allocate
  logic open_reg;                   // the frame at the head has its lines, and a read or piece of it is done
  logic [13:0] pos_reg, pos;        // bytes of it requested
  logic [13:0] done_reg, left;      // bytes of the piece at the head requested; still to request
  logic [PIECES_W-1:0] n_reg, n;    // pieces of it done
  logic rd_req_valid_reg;
  dma_rd_req_t rd_req_reg;

  logic [7:0] lines;
  logic room, go, do_read, last_read, last_piece, give;
  assign lines = 8'((f.len + 14'd63) >> 6);
  assign room = open_reg || (free_reg >= (LINE_W+1)'(lines));
  assign pos = open_reg ? pos_reg : '0;
  assign n = open_reg ? n_reg : '0;
  assign left = p.len - done_reg;
  assign last_read = (left <= 14'd4096);
  assign last_piece = (n + 1'b1 == f.pieces);

  always_comb begin
    do_read = 1'b0;
    go = 1'b0;
    if (f_valid && sent_ready) begin
      if (f.bad) begin
        go = 1'b1;
      end else begin
        do_read = p_valid && room && frag_ready && (!rd_req_valid_reg || rd_req_ready);
        go = do_read && last_read;
      end
    end
  end
  assign p_pop = go && (f.pieces != '0);
  assign f_pop = go && ((f.pieces == '0) || last_piece);
  assign give = do_read && !open_reg;

  assign rd_req_valid = rd_req_valid_reg;
  assign rd_req = rd_req_reg;
  assign frag_valid = do_read;
  assign frag = '{line: alloc_reg + (give ? '0 : LINE_W'(pos[13:6]) - LINE_W'(lines)), pos: pos, len: last_read ? left[12:0] : 13'd4096,
                  last: last_read && last_piece, csum: f.csum, start: f.start};
  assign sent_valid = f_pop && f.done;
  assign sent = '{q: f.q, bad: f.bad, len: f.len, vlan: f.vlan, tci: f.tci, csum: f.csum, at: f.at, ci: f.ci};

  always_ff @(posedge clk) begin
    if (do_read) begin
      rd_req_reg.addr <= p.addr + 64'(done_reg);
      rd_req_reg.len <= frag.len;
    end
    if (do_read || go) begin
      pos_reg <= pos + (do_read ? 14'(frag.len) : '0);
      n_reg <= n + PIECES_W'(go);
    end
    if (rst) begin
      rd_req_valid_reg <= 1'b0;
      free_reg <= (LINE_W+1)'(1 << LINE_W);
      alloc_reg <= '0;
      open_reg <= 1'b0;
      done_reg <= '0;
    end else begin
      if (do_read) rd_req_valid_reg <= 1'b1;
      else if (rd_req_ready) rd_req_valid_reg <= 1'b0;
      if (do_read || go) open_reg <= !f_pop;
      if (do_read) done_reg <= go ? '0 : done_reg + 14'd4096;
      if (give) alloc_reg <= alloc_reg + LINE_W'(lines);
      free_reg <= free_reg + (LINE_W+1)'(free_n) - (give ? (LINE_W+1)'(lines) : '0);
    end
  end

  assign busy = (p_count != '0) || (f_count != '0) || rd_req_valid_reg;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst) a_room: assert ((!piece_valid || p_in_ready) && (!frame_valid || f_in_ready))
      else $error("%m: a piece or frame is lost");
  always_ff @(posedge clk)
    if (!rst && f_pop && !f.bad) a_len: assert (pos + 14'(frag.len) == f.len)
      else $error("%m: a frame's length and its pieces do not agree");
`endif

  logic unused;
  assign unused = ^{p_in_ready, f_in_ready};

endmodule

`resetall
