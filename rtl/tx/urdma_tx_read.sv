// SPDX-License-Identifier: Apache-2.0
// Payload read: sends pieces to mr, and turns mr's answers into DMA reads with a place in the packet buffer for each.
//
// A packet has its lines of the buffer and its place at commit before mr sees its first piece. So data always find room in
// the buffer, and a piece that mr has checked waits only for DMA reads, never for the MAC: urdma_tx_keys, and rx through it,
// rely on that. Pieces pass through mr ahead of the reads (early translation), as many as the answer FIFO has room for: mr's
// answers are always taken at once.
//
// A piece that mr refuses gives its packet a status: a local error, or for a READ response (remote) the status to report to
// the requester, REM_ACCESS_ERR, or REM_OP_ERR if the requester is not at fault. The other pieces are read all the same,
// which keeps the counts simple. When the reads of the last piece have been requested, commit gets an issued_t: status, and
// the number of reads that must have arrived.

`resetall
`default_nettype none

module urdma_tx_read
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              busy,

  input  wire logic              piece_valid,
  input  wire piece_t            piece,
  output      logic              piece_ready,

  output      logic              mr_req_valid,
  output      mr_req_t           mr_req,
  input  wire logic              mr_req_ready,
  input  wire logic              mr_rsp_valid,
  input  wire mr_rsp_t           mr_rsp,
  output      logic              mr_rsp_ready,
  output      logic              rd_req_valid,
  output      dma_rd_req_t       rd_req,
  input  wire logic              rd_req_ready,

  // to gather
  output      logic              frag_valid,
  output      frag_t             frag,
  input  wire logic              frag_ready,
  output      logic              inl_valid,      // an inline packet of this many bytes goes to this line
  output      logic [LINE_W-1:0] inl_line,
  output      logic [12:0]       inl_len,
  input  wire logic              inl_ready,

  // to urdma_tx_keys: a piece goes to mr; its reads have been requested (or refused)
  output      logic              chk_valid,
  output      logic [BUCKET_W-1:0] chk_bucket,
  output      logic              asked_valid,
  output      logic [BUCKET_W-1:0] asked_bucket,
  output      logic [SEQ_W-1:0]  asked_seq,
  input  wire logic              asked_ready,

  // to commit
  output      logic              issued_valid,
  output      issued_t           issued,
  input  wire logic              issued_ready,

  input  wire logic              line_free,      // pulse: lines are freed
  input  wire logic [6:0]        line_free_n,
  input  wire logic              pkt_gone        // pulse: commit has taken an issued_t
);

  localparam int AHEAD = 32;     // pieces in translation
  localparam int MAX_LINES = 64; // of a packet

  // ---- to mr ------------------------------------------------------------------------------------------
  logic p_valid, p_pop, m_in_ready, m_valid, m_pop;
  piece_t p;
  piece_meta_t m;
  logic m_remote;
  logic [3:0] p_count;
  logic [$clog2(AHEAD):0] m_count;
  logic is_mem;

  // Lines and the place at commit, taken with the first piece of a packet.
  logic [LINE_W:0] free_reg, free;  // lines owned by no packet
  logic [PKT_W-1:0] pkts_reg;    // packets between here and commit, which has 2**(PKT_W-1) places
  logic p_first, p_room, lines_ok_reg;

  urdma_fifo #(.WIDTH($bits(piece_t)), .DEPTH(8)) piece_fifo (
    .clk, .rst, .in_valid(piece_valid), .in_ready(piece_ready), .in_data(piece),
    .out_valid(p_valid), .out_ready(p_pop), .out_data(p), .count(p_count)
  );

  assign is_mem = p.meta.kind == PIECE_MEM;
  assign p_room = !p.meta.first || (lines_ok_reg && !pkts_reg[PKT_W-1]);
  assign mr_req_valid = p_valid && p_room && is_mem && m_in_ready;
  assign p_pop = p_valid && p_room && m_in_ready && (!is_mem || mr_req_ready);
  assign chk_valid = p_pop && is_mem;
  assign chk_bucket = p.key[8+:BUCKET_W];
  always_comb begin
    mr_req = '0;
    mr_req.key = p.key;
    mr_req.pd = p.pd;
    mr_req.qpn = p.qpn;
    if (p.remote) mr_req.acc = ACC_W'(1 << URDMA_ACC_REMOTE_READ_LSB);
    mr_req.va = p.va;
    mr_req.len = p.len;
  end

  function automatic logic [6:0] lines_of(input logic [12:0] len);
    return 7'((len + 13'd63) >> 6);
  endfunction

  assign p_first = p_pop && p.meta.first;
  assign free = free_reg - (p_first ? (LINE_W+1)'(lines_of(p.meta.pkt_len)) : '0) + (line_free ? (LINE_W+1)'(line_free_n) : '0);

  always_ff @(posedge clk) begin
    if (rst) begin
      free_reg <= (LINE_W+1)'(1 << LINE_W);
      lines_ok_reg <= 1'b0;
      pkts_reg <= '0;
    end else begin
      free_reg <= free;
      lines_ok_reg <= free >= (LINE_W+1)'(MAX_LINES);
      pkts_reg <= pkts_reg + PKT_W'(p_first) - PKT_W'(pkt_gone);
    end
  end

  urdma_fifo #(.WIDTH(1 + BUCKET_W + $bits(piece_meta_t)), .DEPTH(AHEAD)) meta_fifo (
    .clk, .rst, .in_valid(p_pop), .in_ready(m_in_ready), .in_data({p.remote, chk_bucket, p.meta}),
    .out_valid(m_valid), .out_ready(m_pop), .out_data({m_remote, asked_bucket, m}), .count(m_count)
  );

  // A piece is answered by at most two fragments.
  logic a_valid, a_pop;
  mr_rsp_t a;
  logic [$clog2(2*AHEAD):0] a_count;
  urdma_fifo #(.WIDTH($bits(mr_rsp_t)), .DEPTH(2 * AHEAD)) answer_fifo (
    .clk, .rst, .in_valid(mr_rsp_valid), .in_ready(mr_rsp_ready), .in_data(mr_rsp),
    .out_valid(a_valid), .out_ready(a_pop), .out_data(a), .count(a_count)
  );

  // ---- lines, reads ---------------------------------------------------------------------------------------
  logic [LINE_W-1:0] alloc_reg;  // next line to allocate
  logic open_reg;                // the packet at the head has its lines
  logic [LINE_W+5:0] place_reg;  // byte in the buffer where its next fragment goes
  logic [7:0] status_reg;        // of the packet so far
  logic [SEQ_W-1:0] frag_seq_reg, inl_seq_reg;
  logic [PKT_W-1:0] slot_reg;
  logic rd_req_valid_reg;
  dma_rd_req_t rd_req_reg;

  logic open_now, a_ok, out_ok, do_frag, do_inl, piece_done, pkt_done;
  logic [LINE_W+5:0] place;
  logic [7:0] a_status, status;

  assign place = open_reg ? place_reg : {alloc_reg, 6'd0};
  assign a_ok = (a.status == MR_OK);
  always_comb begin
    case (a.status)
      MR_OK: a_status = 8'(URDMA_WC_SUCCESS);
      MR_DMA_ERR: a_status = m_remote ? 8'(URDMA_WC_REM_OP_ERR) : 8'(URDMA_WC_LOC_QP_OP_ERR);
      default: a_status = m_remote ? 8'(URDMA_WC_REM_ACCESS_ERR) : 8'(URDMA_WC_LOC_PROT_ERR);
    endcase
  end
  assign status = (open_reg && (status_reg != '0)) ? status_reg : (m.kind == PIECE_MEM) ? a_status : 8'd0;

  assign rd_req_valid = rd_req_valid_reg;
  assign rd_req = rd_req_reg;
  assign out_ok = (!rd_req_valid_reg || rd_req_ready) && frag_ready;

  // One fragment, or one refused, inline or empty piece per cycle. asked_ready is needed only at the end of a piece but is
  // always required.
  always_comb begin
    a_pop = 1'b0;
    do_frag = 1'b0;
    do_inl = 1'b0;
    piece_done = 1'b0;
    if (m_valid && asked_ready) begin
      case (m.kind)
        PIECE_MEM: if (a_valid) begin
          if (a_ok) begin
            a_pop = out_ok;
            do_frag = out_ok;
          end else begin
            a_pop = 1'b1;
          end
          piece_done = a_pop && a.last;
        end
        PIECE_INLINE: begin
          do_inl = inl_ready;
          piece_done = inl_ready;
        end
        default: piece_done = 1'b1;
      endcase
    end
  end
  assign open_now = !open_reg && (a_pop || do_inl);
  assign m_pop = piece_done;
  assign pkt_done = piece_done && m.last;

  assign frag_valid = do_frag;
  assign frag = '{line: place[6+:LINE_W], off: place[5:0], len: a.len, pkt_last: m.last && a.last, slot: slot_reg};
  assign inl_valid = do_inl;
  assign inl_line = alloc_reg;
  assign inl_len = m.pkt_len;
  assign asked_valid = piece_done && (m.kind == PIECE_MEM);
  assign asked_seq = frag_seq_reg + SEQ_W'(do_frag);
  assign issued_valid = pkt_done;
  assign issued = '{status: status, slot: slot_reg,
                    seq: (m.kind == PIECE_INLINE) ? inl_seq_reg + 1'b1 : asked_seq};

  always_ff @(posedge clk) begin
    if (do_frag) rd_req_reg <= '{addr: a.addr, len: a.len};
    if (a_pop || do_inl) begin
      place_reg <= do_frag ? place + (LINE_W+6)'(a.len) : place;
      status_reg <= status;
    end
    if (rst) begin
      rd_req_valid_reg <= 1'b0;
      alloc_reg <= '0;
      open_reg <= 1'b0;
      frag_seq_reg <= '0;
      inl_seq_reg <= '0;
      slot_reg <= '0;
    end else begin
      if (do_frag) rd_req_valid_reg <= 1'b1;
      else if (rd_req_ready) rd_req_valid_reg <= 1'b0;
      if (open_now) alloc_reg <= alloc_reg + LINE_W'(lines_of(m.pkt_len));
      if (pkt_done) open_reg <= 1'b0;
      else if (open_now) open_reg <= 1'b1;
      frag_seq_reg <= frag_seq_reg + SEQ_W'(do_frag);
      inl_seq_reg <= inl_seq_reg + SEQ_W'(do_inl);
      if (pkt_done) slot_reg <= slot_reg + 1'b1;
    end
  end

  assign busy = piece_valid || (p_count != '0) || (m_count != '0) || rd_req_valid_reg;

  logic unused;
  assign unused = ^{a_count, m.first, issued_ready};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && mr_rsp_valid) a_answer: assert (mr_rsp_ready)
      else $error("%m: mr answers more than it was asked");
  always_ff @(posedge clk)
    if (!rst && pkt_done) a_issued: assert (issued_ready)
      else $error("%m: commit has no place for a packet");
  always_ff @(posedge clk)
    if (!rst) a_lines: assert (free_reg <= (LINE_W+1)'(1 << LINE_W))
      else $error("%m: more lines than there are");
  always_ff @(posedge clk)
    if (!rst && m_valid) a_first: assert ((m.first == !open_reg) || (m.kind == PIECE_MEM))
      else $error("%m: a packet's lines and its pieces do not agree");
`endif

endmodule

`resetall
