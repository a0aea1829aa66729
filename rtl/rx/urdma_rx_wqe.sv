// SPDX-License-Identifier: Apache-2.0
// Fetch of WQEs and the walk over their scatter lists. WRITEs and ATOMICs give pieces without a WQE; READ requests
// give pieces that only check their range.
//
//  in_*     operations of the responder, in order
//  rr_*     requester completion's decisions on OK_RSP operations, in their order. Such an operation waits here for its
//           decision.
//  op_*     the operations, passed to placement at once; only operations with data go through the stages here
//  piece_*  for each operation with data: its pieces (records), in order
//  mr1_*    ring address; rd_*: the WQE; mr0_*: pieces of host memory to translate and check
//  invs_*   count of SENDs with invalidate that placement has finished; count up to which it has forgotten their keys
//           (urdma_rx_inv)
//  issued   pieces given to translation so far
//
// A packet fetches the whole WQE of its message: ring translation, one DMA read, walk. LINES lines of 64 bytes are reserved
// before the ring address is requested, so up to LINES WQEs of 64 bytes are in flight. The walk takes one cycle for the
// header, one for each SGE, and one more to read the header's line, unless the WQE was there when the previous walk ended
// (ahead_reg). A WRITE or ATOMIC is one piece, and takes one cycle at its turn. Pieces are given to translation long before
// they are written, so that reads of page tables do not delay them. A piece has 4096 bytes at most, so a datagram that is
// longer because of its GRH may give two pieces in one SGE.
//
// A READ request is one piece as well, of which nothing is written: placement must know whether it is allowed before any
// later operation (IBA volume 1, 9.7.4.1). A READ of more than 4 KB gives two pieces, for its first and its last byte. A
// repeated READ needs none: tx checks all pieces when it reads them. A FLUSH gives two pieces of one byte each: its first and
// its last.
//
// The list of a READ's WQE must end where its data end: after the last response the walk passes over SGEs of length 0.
//
// The WQE of an unfinished message is kept until another one is needed, so consecutive packets of one message fetch it once:
// with long WQEs and small packets the reads would take more PCIe bandwidth than the data. The walk resumes where it ended;
// otherwise a long list would cost more cycles than a small packet has. Only packets after the first use the kept WQE, so it
// always belongs to the same life of the QP.
//
// Pieces after a SEND with invalidate are given to translation before its key is invalid. They carry their key and the number
// of such SENDs that have finished, so placement knows which invalidations translation has not seen. Placement keeps INV_N
// keys: the walk stops before a SEND with invalidate only while there is no room for one more.

`resetall
`default_nettype none

module urdma_rx_wqe
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
#(
  // operations in flight, a power of two
  parameter int OPS = 256,
  // lines of 64 bytes for WQEs on their way, a power of two, at least 8
  parameter int LINES = 256
) (
  input  wire logic        clk,
  input  wire logic        rst,
  output      logic        busy,

  input  wire logic        in_valid,
  output      logic        in_ready,
  input  wire op_t         in,
  input  wire fetch_t      in_fetch,
  input  wire logic        rr_valid,
  input  wire rr_t         rr,
  output      logic        rr_ready,

  output      logic        op_valid,
  input  wire logic        op_ready,
  output      op_t         op,

  output      logic        piece_valid,
  input  wire logic        piece_ready,
  output      piece_t      piece,
  input  wire logic [INV_W:0] invs_done,
  input  wire logic [INV_W:0] invs_kept,
  output      logic [PIECE_W-1:0] issued,

  output      logic        mr1_req_valid,
  output      mr_req_t     mr1_req,
  input  wire logic        mr1_req_ready,
  input  wire logic        mr1_rsp_valid,
  input  wire mr_rsp_t     mr1_rsp,
  output      logic        mr1_rsp_ready,
  output      logic        rd_req_valid,
  output      dma_rd_req_t rd_req,
  input  wire logic        rd_req_ready,
  input  wire logic        rd_rsp_valid,
  input  wire dma_rd_rsp_t rd_rsp,
  output      logic        mr0_req_valid,
  output      mr_req_t     mr0_req,
  input  wire logic        mr0_req_ready
);

  localparam int LW = $clog2(LINES);

  // ---- request the ring's address -------------------------------------------------------------------------
  typedef struct packed {
    logic [31:0]     moff;
    logic [12:0]     len;
    logic [PD_W-1:0] pd;
    logic [QPN_W-1:0] qpn;
    logic [3:0]      stride;       // lines
    logic            reuse;        // uses the kept WQE
    logic            keep;         // its message continues
    logic            sq;           // a send WQE
    logic            direct;       // one piece without a WQE, by key and va
    logic            data;         // 0: nothing to place, only the invalidation
    logic            inv;
    logic            atomic;
    logic            word;         // 8 bytes at once: an ATOMIC, or ATOMIC WRITE
    logic            read;         // a READ request, whose length is moff
    logic            flush;        // a FLUSH, likewise
    logic            whole;        // of all bytes that the key opens
    logic [31:0]     key;
    logic [63:0]     va;
  } walk_t;

  logic need, data, direct, fetch, is_rsp, op_fifo_ready, walk_fifo_ready, take, lines_room;
  logic [3:0] in_lines;
  logic [LW:0] lines_reg;          // reserved lines
  walk_t walk, walk_in;
  logic walk_valid, walk_pop;
  logic [15:0] in_wqe, in_slot;
  logic [31:0] in_moff;
  op_t in_op;

  always_comb begin
    in_op = in;
    if (is_rsp) begin
      in_op.take = rr.take;
      in_op.last = rr.last;
    end
  end

  assign is_rsp = in.kind == OK_RSP;
  assign direct = in.kind inside {OK_WRITE, OK_ATOMIC, OK_READ};
  assign data = (in.kind == OK_ATOMIC) ? !in.dup : (in.kind == OK_READ) ? !in.dup && in.arg[31:0] != '0
      : in.len != '0 && (in.kind inside {OK_DATA, OK_WRITE} || (is_rsp && in.pass && rr.take));
  assign fetch = data && !direct;
  assign need = data || in.inv;
  assign in_wqe = is_rsp ? rr.wqe : in.wqe;
  assign in_moff = is_rsp ? rr.off : in_fetch.moff;

  // the WQE that will be kept after the walks before this operation
  logic last_keep_reg, last_sq_reg, reuse;
  logic [QPN_W-1:0] last_qpn_reg;
  logic [15:0] last_wqe_reg;
  logic [31:0] last_end_reg;
  assign reuse = last_keep_reg && in_moff != '0 && in.qpn == last_qpn_reg && in_wqe == last_wqe_reg
      && is_rsp == last_sq_reg && in_moff == last_end_reg;
  always_ff @(posedge clk) begin
    if (take && fetch) begin
      last_qpn_reg <= in.qpn;
      last_wqe_reg <= in_wqe;
      last_sq_reg <= is_rsp;
      last_end_reg <= in_moff + 32'(in.len);
    end
    if (rst) last_keep_reg <= 1'b0;
    else if (take && fetch) last_keep_reg <= !in_op.last;
  end

  assign in_lines = 4'd1 << (in_fetch.rq.log_stride - 4'd6);
  logic [3:0] give_back;
  logic go;
  assign lines_room = lines_reg <= (LW+1)'(LINES - 8);
  assign go = op_fifo_ready && (!is_rsp || rr_valid) && (!need || walk_fifo_ready);
  assign take = in_valid && in_ready;
  assign in_ready = go && (!fetch || reuse || (lines_room && mr1_req_ready));
  assign rr_ready = take && is_rsp;
  assign mr1_req_valid = in_valid && go && fetch && !reuse && lines_room;
  assign in_slot = in_wqe & 16'((17'd1 << in_fetch.rq.log_entries) - 17'd1);
  assign mr1_req = '{
    ring: 1'b1, pt: in_fetch.rq.pt, key: '0, pd: '0, qpn: in.qpn, acc: '0, whole: 1'b0, aligned: 1'b0,
    va: 64'(in_slot) << in_fetch.rq.log_stride, len: 13'd1 << in_fetch.rq.log_stride
  };
  assign walk_in = '{
    moff: (in.kind inside {OK_READ, OK_ATOMIC}) ? in.arg[31:0] : in_moff, len: in.kind == OK_ATOMIC ? 13'd8 : in.len, pd: in_fetch.pd, qpn: in.qpn,
    stride: in_lines, reuse: reuse, keep: !in_op.last, sq: is_rsp, direct: direct, data: data, inv: in.inv,
    atomic: in.kind == OK_ATOMIC && !in.mpe, word: in.mpe ? in.kind == OK_WRITE : in.kind == OK_ATOMIC, read: in.kind == OK_READ, flush: in.kind == OK_ATOMIC && in.mpe,
    whole: in_fetch.whole, key: in_fetch.key, va: in_fetch.va
  };

  urdma_fifo #(.WIDTH($bits(op_t)), .DEPTH(OPS)) u_op (
    .clk(clk), .rst(rst),
    .in_valid(take), .in_ready(op_fifo_ready), .in_data(in_op),
    .out_valid(op_valid), .out_ready(op_ready), .out_data(op), .count()
  );

  urdma_fifo #(.WIDTH($bits(walk_t)), .DEPTH(OPS)) u_walk (
    .clk(clk), .rst(rst),
    .in_valid(take && need), .in_ready(walk_fifo_ready),
    .in_data(walk_in),
    .out_valid(walk_valid), .out_ready(walk_pop), .out_data(walk), .count()
  );

  always_ff @(posedge clk) begin
    if (rst) lines_reg <= '0;
    else lines_reg <= lines_reg + ((take && fetch && !reuse) ? (LW+1)'(in_lines) : '0) - (LW+1)'(give_back);
  end

  // ---- read the WQE ---------------------------------------------------------------------------------------
  // A ring's slot is one fragment: pages are 4 KB at least, a slot is aligned to its size.
  logic ring_ok, ring_valid, ring_good, wqe_valid, wqe_err;
  logic [$clog2(OPS):0] wqe_count;

  assign ring_ok = mr1_rsp.status == MR_OK;
  assign rd_req_valid = mr1_rsp_valid && ring_ok;
  assign rd_req = '{addr: mr1_rsp.addr, len: mr1_rsp.len};
  assign mr1_rsp_ready = !ring_ok || rd_req_ready;

  // As deep as the number of walks: always has room.
  logic fresh_pop;
  urdma_fifo #(.WIDTH(1), .DEPTH(OPS)) u_ring (
    .clk(clk), .rst(rst),
    .in_valid(mr1_rsp_valid && mr1_rsp_ready), .in_ready(), .in_data(ring_ok),
    .out_valid(ring_valid), .out_ready(fresh_pop), .out_data(ring_good), .count()
  );

  urdma_fifo #(.WIDTH(1), .DEPTH(OPS)) u_wqe (
    .clk(clk), .rst(rst),
    .in_valid(rd_rsp_valid && rd_rsp.last), .in_ready(), .in_data(rd_rsp.err),
    .out_valid(wqe_valid), .out_ready(fresh_pop && ring_good), .out_data(wqe_err), .count(wqe_count)
  );

  // Lines are written and read in order; the lines of a WQE whose ring address failed are never used.
  logic [LW-1:0] wp_reg, rp_reg, line_addr, walk_line;
  logic line_en, walk_line_en;
  logic [511:0] line;

  always_ff @(posedge clk) begin
    if (rst) wp_reg <= '0;
    else if (rd_rsp_valid) wp_reg <= wp_reg + 1'b1;
  end

  urdma_ram_sdp #(.WIDTH(512), .DEPTH(LINES)) u_lines (
    .clk(clk),
    .wr_en(rd_rsp_valid), .wr_addr(wp_reg), .wr_data(rd_rsp.data),
    .rd_en(line_en), .rd_addr(line_addr), .rd_data(line)
  );

  // ---- walk -----------------------------------------------------------------------------------------------
  typedef enum logic [1:0] {W_IDLE, W_HEAD, W_SGE} walk_e;

  walk_e state_reg;
  logic [7:0] num_reg;
  logic [4:0] unit_reg;            // 16-byte unit of the WQE that holds the SGE
  logic [31:0] skip_reg;           // bytes of the message before the packet, still to skip
  logic [12:0] rem_reg;            // bytes of the packet still to place
  logic [PIECE_W-1:0] issued_reg;
  logic [INV_W:0] invs_reg;        // SENDs with invalidate that have passed
  logic inv_room;
  logic ahead_reg;                 // line is the first one of the next WQE
  logic mr0_ready;
  mr_req_t mr0_in;

  // the kept WQE
  logic kept_reg, kept_ring_reg, kept_err_reg, drop_kept;
  logic [3:0] kept_lines_reg;
  logic [4:0] kept_unit_reg;       // where the walk ended: the SGE, SGEs left including it, bytes of it used
  logic [7:0] kept_num_reg;
  logic [31:0] kept_used_reg;

  logic emit_ok, emit, emit_end, head_bad, stay;
  logic [7:0] emit_status;
  logic emit_piece;
  logic [7:0] head_num;
  logic [127:0] sge;
  logic [31:0] sge_len, avail;
  logic [12:0] part, rem_part;
  logic cut;                       // the rest of the packet continues in the same SGE
  logic sge_skip, sge_none, w_go, w_ring, ends, rd_long, fresh, read_ahead;
  logic rd_last_reg;               // the second piece of a READ request

  assign emit_ok = piece_ready && mr0_ready;
  assign sge = line[128*unit_reg[1:0]+:128];
  assign sge_len = sge[URDMA_SGE1_LENGTH_LSB+:32];
  assign sge_none = num_reg == '0;
  assign sge_skip = sge_len <= skip_reg;
  assign avail = sge_len - skip_reg;
  assign rem_part = (rem_reg > 13'd4096) ? 13'd4096 : rem_reg;
  assign part = (avail < 32'(rem_part)) ? avail[12:0] : rem_part;
  assign cut = !sge_skip && rem_reg != rem_part && avail > 32'(rem_part);
  assign head_num = walk.sq ? line[URDMA_SQE0_NUM_SGE_LSB+:8] : line[URDMA_RQE0_NUM_SGE_LSB+:8];
  assign head_bad = head_num > {2'd0, walk.stride, 2'd0} - (walk.sq ? 8'd2 : 8'd1);
  assign inv_room = invs_reg - invs_kept != (INV_W+1)'(INV_N);
  assign w_go = walk_valid && (inv_room || !walk.inv);
  assign w_ring = walk.data && !walk.direct;
  assign rd_long = (walk.read && walk.moff > 32'd4096) || (walk.flush && !walk.whole && walk.moff > 32'd1);
  // the packet is the last response of a READ: its list must end too
  assign ends = walk.sq && !walk.keep;

  always_comb begin
    emit = 1'b0;
    emit_piece = 1'b0;
    emit_end = 1'b0;
    emit_status = '0;
    walk_line_en = 1'b0;
    walk_line = rp_reg;
    case (state_reg)
      W_IDLE: begin
        if (w_go && !walk.data) begin
          // placement waits for this record
          emit = 1'b1;
          emit_end = 1'b1;
        end else if (w_go && walk.direct) begin
          emit = 1'b1;
          emit_piece = 1'b1;
          emit_end = !rd_long || rd_last_reg;
        end else if (w_go && walk.reuse) begin
          if (kept_err_reg) begin
            emit = 1'b1;
            emit_end = 1'b1;
            emit_status = 8'(URDMA_WC_LOC_QP_OP_ERR);
          end
          walk_line_en = 1'b1;
          walk_line = rp_reg + LW'(kept_unit_reg[4:2]);
        end else if (w_go && ring_valid && !kept_reg) begin
          if (!ring_good || (wqe_valid && wqe_err)) begin
            emit = 1'b1;
            emit_end = 1'b1;
            emit_status = 8'(URDMA_WC_LOC_QP_OP_ERR);
          end
          walk_line_en = wqe_valid && !ahead_reg;
        end
      end
      W_HEAD: begin
        if (head_bad) begin
          emit = 1'b1;
          emit_end = 1'b1;
          emit_status = 8'(URDMA_WC_LOC_QP_OP_ERR);
        end
      end
      default: begin
        if (sge_none || (rem_reg == '0 && sge_len != '0)) begin
          emit = 1'b1;
          emit_end = 1'b1;
          emit_status = (sge_none && rem_reg == '0) ? 8'd0 : 8'(URDMA_WC_LOC_LEN_ERR);
        end else if (!sge_skip) begin
          emit = 1'b1;
          emit_piece = 1'b1;
          emit_end = part == rem_reg && (!ends || (avail == 32'(part) && num_reg == 8'd1));
        end
        // the next unit lies in the next line
        walk_line_en = (!emit || emit_ok) && !stay && !cut && unit_reg[1:0] == 2'd3;
        walk_line = rp_reg + LW'(unit_reg[4:2]) + 1'b1;
      end
    endcase
  end

  // The next WQE has arrived, completely in an earlier cycle: count changes one cycle after the last beat.
  assign read_ahead = state_reg == W_SGE && fresh_pop && !walk.keep && wqe_count >= ($clog2(OPS)+1)'(2);
  assign line_en = walk_line_en || read_ahead;
  assign line_addr = read_ahead ? rp_reg + LW'(walk.stride) : walk_line;
  assign fresh = w_go && w_ring && !walk.reuse && ring_valid && !kept_reg && ring_good && wqe_valid && !wqe_err;

  // bytes are left over in the SGE: the walk looks at it again and finds the error
  assign stay = ends && !sge_skip && avail != 32'(part) && part == rem_reg;
  assign walk_pop = emit && emit_end && emit_ok;
  assign drop_kept = w_go && w_ring && !walk.reuse && kept_reg;
  assign fresh_pop = walk_pop && w_ring && !walk.reuse;
  assign give_back = drop_kept ? kept_lines_reg : (walk_pop && w_ring && !walk.keep) ? walk.stride : 4'd0;
  always_ff @(posedge clk) begin
    if (fresh_pop) begin
      kept_ring_reg <= ring_good;
      kept_lines_reg <= walk.stride;
    end
    if (walk_pop && w_ring) begin
      // a walk that found an error has moved its QP to ERR; later operations have no effect
      kept_err_reg <= !emit_piece;
      kept_unit_reg <= unit_reg;
      kept_num_reg <= num_reg;
      kept_used_reg <= skip_reg + 32'(part);
    end
    if (rst) kept_reg <= 1'b0;
    else if (walk_pop && w_ring) kept_reg <= walk.keep;
    else if (drop_kept) kept_reg <= 1'b0;
  end
  assign piece_valid = emit && emit_ok;
  assign piece = '{piece: emit_piece, last: emit_end, status: emit_status, key: mr0_in.key, invs: invs_done};
  // The walk has no cycle to spare, so it does not wait until translation takes a piece.
  urdma_fifo #(.WIDTH($bits(mr_req_t)), .DEPTH(4)) u_mr0 (
    .clk(clk), .rst(rst),
    .in_valid(emit_piece && emit_ok), .in_ready(mr0_ready), .in_data(mr0_in),
    .out_valid(mr0_req_valid), .out_ready(mr0_req_ready), .out_data(mr0_req), .count()
  );

  always_comb begin
    mr0_in = '0;
    mr0_in.pd = walk.pd;
    mr0_in.qpn = walk.qpn;
    if (walk.direct) begin
      mr0_in.key = walk.key;
      mr0_in.acc = walk.atomic ? ACC_W'(1) << URDMA_ACC_REMOTE_ATOMIC_LSB : walk.flush ? ACC_W'(1) << URDMA_ACC_FLUSH_GLOBAL_LSB
          : walk.read ? ACC_W'(1) << URDMA_ACC_REMOTE_READ_LSB : ACC_W'(1) << URDMA_ACC_REMOTE_WRITE_LSB;
      mr0_in.whole = walk.flush && walk.whole;
      mr0_in.aligned = walk.word;
      mr0_in.va = rd_last_reg ? walk.va + 64'(walk.moff) - 64'd1 : walk.va;
      mr0_in.len = (rd_long || walk.flush) ? 13'd1 : walk.read ? walk.moff[12:0] : walk.len;
    end else begin
      mr0_in.key = sge[URDMA_SGE1_LKEY_LSB+:32];
      mr0_in.acc = ACC_W'(1) << URDMA_ACC_LOCAL_WRITE_LSB;
      mr0_in.va = sge[63:0] + 64'(skip_reg);
      mr0_in.len = part;
    end
  end
  assign issued = issued_reg;

  always_ff @(posedge clk) begin
    case (state_reg)
      W_IDLE: begin
        skip_reg <= walk.reuse ? kept_used_reg : walk.moff;
        rem_reg <= walk.len;
        // SGEs begin at byte 16 of a receive WQE, 32 of a send WQE
        unit_reg <= walk.reuse ? kept_unit_reg : walk.sq ? 5'd2 : 5'd1;
        num_reg <= walk.reuse ? kept_num_reg : head_num;
      end
      W_HEAD: num_reg <= head_num;
      default: begin
        if (!emit || emit_ok) begin
          if (!stay && !cut) begin
            num_reg <= num_reg - 8'd1;
            unit_reg <= unit_reg + 5'd1;
          end
          if (sge_skip) begin
            skip_reg <= skip_reg - sge_len;
          end else begin
            skip_reg <= cut ? skip_reg + 32'(part) : '0;
            rem_reg <= rem_reg - part;
          end
        end
      end
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state_reg <= W_IDLE;
      rp_reg <= '0;
      ahead_reg <= 1'b0;
      issued_reg <= '0;
      invs_reg <= '0;
      rd_last_reg <= 1'b0;
    end else begin
      if (emit_piece && emit_ok && walk.direct) rd_last_reg <= !emit_end;
      issued_reg <= issued_reg + PIECE_W'(emit_piece && emit_ok);
      if (walk_pop && walk.inv) invs_reg <= invs_reg + 1'b1;
      if (read_ahead) ahead_reg <= 1'b1;
      else if (line_en || fresh || fresh_pop) ahead_reg <= 1'b0;
      case (state_reg)
        W_IDLE: begin
          if (w_go && w_ring && walk.reuse) begin
            if (!kept_err_reg) state_reg <= W_SGE;
          end else if (fresh) begin
            state_reg <= (ahead_reg && !head_bad) ? W_SGE : W_HEAD;
          end
          if (drop_kept && kept_ring_reg) rp_reg <= rp_reg + LW'(kept_lines_reg);
        end
        W_HEAD: if (!head_bad) state_reg <= W_SGE;
        default: ;
      endcase
      if (walk_pop) begin
        state_reg <= W_IDLE;
        if (w_ring && !walk.keep && (walk.reuse ? kept_ring_reg : ring_good)) rp_reg <= rp_reg + LW'(walk.stride);
      end
    end
  end

  assign busy = in_valid || op_valid || walk_valid || mr0_req_valid;

  // The last bits of the answer do not matter for a single fragment, nor does the rest of a WQE.
  logic unused;
  assign unused = &{1'b0, mr1_rsp.last};

endmodule

`resetall
