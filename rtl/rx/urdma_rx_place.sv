// SPDX-License-Identifier: Apache-2.0
// Writes payload to host memory; then come the CQE, the acknowledgement, the error or the flush.
//
//  op_*      operations in order; piece_*, mr_rsp_*: for operations with data, the addresses of their bytes
//  rd_*      read port of the packet buffer, latency 1; free_*: lines given back
//  wr_*      DMA writes, dense from lane 0
//  rst_*     (responder) a QP begins a new life
//  kick_*    a QP whose flush is not complete, or whose WQE is to be used again
//  op_done   operations that have left (bit 1: an ATOMIC to its unit); fence_out: the fence's token has left
//  mro_*     invalidation of a SEND with invalidate; invs_*: to the walk, see urdma_rx_inv; inv_*, reads_over: to and from
//            tx, see urdma_rx_cqe_wait
//  written   pieces written (their DMA write accepted) or given up so far
//  atm_*     ATOMICs and FLUSHes; chk_*: has this QP one under way, one that may still write? atm_hold: start none now;
//            atm_busy: the unit holds some; atm_ended: one that has begun has left
//  dead_*    an ATOMIC of the QP has failed: later operations have no effect
//  rdone_*   to requester completion
//  unrel_bad a packet of UC is dropped here, because the key of its WRITE is refused. The rest of the message has no effect
//            (urdma_rx_void). If the message was to complete a WQE, the QP is poisoned until the responder has gone back to
//            that WQE.
//
// First half, here: an operation is at its turn, its pieces arrive, and each cycle does one step: it reads a line, writes a
// beat, or ends the operation. Three registered stages follow (line, shift by 16 bytes, shift by bytes = wr_*). They move
// together when wr_* is free; a fragment whose bytes are not aligned in the buffer costs one cycle more. A failed operation
// poisons its QP: operations of the QP already queued after it lose their effect. An ATOMIC goes to its unit when all
// operations before it have left both halves, so the answers of the unit and of this block are in order. Later operations of
// the QP, except ATOMICs and FLUSHes, wait at their turn until the unit has finished with the QP; so does the fence. A FLUSH
// goes to the unit with its last piece, after every earlier ATOMIC of the QP has written: its read must come after their writes. A SEND with invalidate
// waits a few cycles at its turn for the invalidation of its key. Its CQE waits longer, in urdma_rx_cqe_wait.
// Second half, F: the record of the operation waits until its last step has left wr_*; then CQE, acknowledgement and error
// leave in parallel, and the count of completed WQEs advances.

`resetall
`default_nettype none

module urdma_rx_place
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_trace_pkg::*;
#(
  // flush completions of a QP before other QPs get a turn
  parameter int FLUSH_TURN = 16
) (
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,
  output      logic             busy,

  input  wire logic             op_valid,
  output      logic             op_ready,
  input  wire op_t              op,
  input  wire logic             piece_valid,
  output      logic             piece_ready,
  input  wire piece_t           piece,
  output      logic [INV_W:0]   invs_done,
  output      logic [INV_W:0]   invs_kept,
  output      logic [PIECE_W-1:0] written,
  input  wire logic             mr_rsp_valid,
  output      logic             mr_rsp_ready,
  input  wire mr_rsp_t          mr_rsp,

  output      logic             rd_en,
  output      logic [BUF_W-1:0] rd_line,
  input  wire logic [511:0]     rd_data,
  output      logic             free_valid,
  output      logic [6:0]       free_lines,

  output      logic             wr_valid,
  output      dma_wr_t          wr,
  input  wire logic             wr_ready,

  output      logic             mro_valid,
  output      mr_op_t           mro,
  input  wire logic             mro_ready,
  input  wire logic             mro_rsp_valid,
  input  wire mro_status_e      mro_rsp,
  output      logic             inv_valid,
  output      logic [31:0]      inv_key,
  input  wire logic             reads_over,

  output      logic             atm_valid,
  output      atm_t             atm,
  input  wire logic             atm_ready,
  input  wire logic             atm_busy,
  input  wire logic             atm_hold,
  input  wire logic             atm_ended,
  output      logic [QPN_W-1:0] chk_qpn,
  input  wire logic             chk_busy,
  input  wire logic             chk_writes,
  input  wire logic             dead_valid,
  input  wire logic [QPN_W-1:0] dead_qpn,
  output      logic             dead_ready,

  output      logic             rdone_valid,
  output      rdone_t           rdone,
  input  wire logic             rdone_ready,
  output      logic             cqe_valid,
  output      cqe_req_t         cqe,
  input  wire logic             cqe_ready,
  output      logic             ack_valid,
  output      ack_req_t         ack,
  input  wire logic             ack_ready,
  output      logic             err_valid,
  output      qp_err_t          err,
  input  wire logic             err_ready,

  input  wire logic             rst_valid,
  input  wire logic [QPN_W-1:0] rst_qpn,
  input  wire logic [1:0]       rst_gen,
  input  wire logic [15:0]      rst_idx,
  input  wire logic             done_en,
  input  wire logic [QPN_W-1:0] done_qpn,
  output      logic [15:0]      done_idx,
  output      logic             kick_valid,
  output      kick_t            kick,
  input  wire logic             kick_ready,

  output      logic             unrel_bad,
  output      logic [1:0]       op_done,
  output      logic             fence_out,
  output      logic             trace_put_valid,
  output      tr_put_t          trace_put,
  output      logic             trace_voided_valid,
  output      tr_voided_t       trace_voided
);

  logic [QPN_W:0] init_reg;
  logic finish_init, finish_busy, finish_none;
  assign init_done = init_reg[QPN_W] && finish_init;
  always_ff @(posedge clk) begin
    if (rst) init_reg <= '0;
    else if (!init_reg[QPN_W]) init_reg <= init_reg + 1'b1;
  end

  // ---- fragments and pieces ---------------------------------------------------------------------------------
  typedef struct packed {
    logic [63:0] addr;
    logic [12:0] len;
    logic        ok;
    logic        last;
    logic        dma;              // failed because a page table could not be read
  } frag_t;

  logic frag_valid, frag_pop, frag_ok, pq_valid, pq_ready, pc_valid, pc_pop, pc_void, inv_over, inv_live;
  frag_t frag;
  piece_t pq;
  /* verilator lint_off UNUSEDSIGNAL */  // its key and number are for urdma_rx_inv
  piece_t pc;
  /* verilator lint_on UNUSEDSIGNAL */

  // Translation holds its answers until their turn.
  urdma_fifo #(.WIDTH($bits(frag_t)), .DEPTH(4)) u_frag (
    .clk(clk), .rst(rst),
    .in_valid(mr_rsp_valid), .in_ready(mr_rsp_ready),
    .in_data({mr_rsp.addr, mr_rsp.len, mr_rsp.status == MR_OK, mr_rsp.last, mr_rsp.status == MR_DMA_ERR}),
    .out_valid(frag_valid), .out_ready(frag_pop), .out_data(frag), .count()
  );

  urdma_fifo #(.WIDTH($bits(piece_t)), .DEPTH(PIECES)) u_piece (
    .clk(clk), .rst(rst),
    .in_valid(piece_valid), .in_ready(piece_ready), .in_data(piece),
    .out_valid(pq_valid), .out_ready(pq_ready), .out_data(pq), .count()
  );

  // ---- an operation's turn -------------------------------------------------------------------------------------
  logic o1_valid_reg, o2_valid_reg, o1_poison_reg, o2_poison_reg, o2_kill_reg, o1_kill_reg;
  op_t o1_reg, o2_reg;
  logic [2:0] mark;                // of the operation in o1: life, poison
  logic o1_load, o1_move, o2_done, set_poison, dead_take;
  logic dead_mark;
  logic [7:0] o2_status_reg, status;

  assign o1_move = o1_valid_reg && (!o2_valid_reg || o2_done);
  assign o1_load = op_valid && (!o1_valid_reg || o1_move) && init_done;
  assign op_ready = o1_load;

  urdma_ram_sdp #(.WIDTH(3), .DEPTH(1 << QPN_W)) u_mark (
    .clk(clk),
    .wr_en(!init_done || rst_valid || set_poison),
    .wr_addr(!init_done ? init_reg[QPN_W-1:0] : rst_valid ? rst_qpn : o2_reg.qpn),
    .wr_data(!init_done ? 3'd0 : rst_valid ? {rst_gen, 1'b0} : {o2_reg.gen, 1'b1}),
    .rd_en(o1_load), .rd_addr(op.qpn), .rd_data(mark)
  );

  // The same for a failed ATOMIC. Its QP may differ from the one poisoned in the same cycle, so it has its own memory.
  assign dead_ready = init_done && !rst_valid;
  assign dead_take = dead_valid && dead_ready;
  urdma_ram_sdp #(.WIDTH(1), .DEPTH(1 << QPN_W)) u_dead (
    .clk(clk),
    .wr_en(!init_done || rst_valid || dead_valid),
    .wr_addr(!init_done ? init_reg[QPN_W-1:0] : rst_valid ? rst_qpn : dead_qpn),
    .wr_data(init_done && !rst_valid),
    .rd_en(o1_load), .rd_addr(op.qpn), .rd_data(dead_mark)
  );

  always_ff @(posedge clk) begin
    if (o1_load) o1_reg <= op;
    if (o1_move) o2_reg <= o1_reg;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      o1_valid_reg <= 1'b0;
      o2_valid_reg <= 1'b0;
      o1_poison_reg <= 1'b0;
      o2_poison_reg <= 1'b0;
      o1_kill_reg <= 1'b0;
      o2_kill_reg <= 1'b0;
      o2_status_reg <= '0;
    end else begin
      if (o1_load) o1_valid_reg <= 1'b1;
      else if (o1_move) o1_valid_reg <= 1'b0;
      // what happens to the QP after the mark was read
      if (o1_load) begin
        o1_poison_reg <= (set_poison && o2_reg.qpn == op.qpn) || (dead_take && dead_qpn == op.qpn);
        o1_kill_reg <= rst_valid && rst_qpn == op.qpn;
      end else begin
        if ((set_poison && o2_reg.qpn == o1_reg.qpn) || (dead_take && dead_qpn == o1_reg.qpn)) o1_poison_reg <= 1'b1;
        if (rst_valid && rst_qpn == o1_reg.qpn) o1_kill_reg <= 1'b1;
      end
      if (o1_move) begin
        o2_valid_reg <= 1'b1;
        o2_status_reg <= '0;
        o2_poison_reg <= mark[0] || dead_mark || o1_poison_reg || (set_poison && o2_reg.qpn == o1_reg.qpn)
            || (dead_take && dead_qpn == o1_reg.qpn);
        o2_kill_reg <= mark[2:1] != o1_reg.gen || o1_kill_reg || (rst_valid && rst_qpn == o1_reg.qpn);
      end else begin
        if (o2_done) o2_valid_reg <= 1'b0;
        else if (o2_valid_reg) o2_status_reg <= status;
        if (rst_valid && rst_qpn == o2_reg.qpn) o2_kill_reg <= 1'b1;
        if (dead_take && dead_qpn == o2_reg.qpn) o2_poison_reg <= 1'b1;
      end
    end
  end

  // ---- steps ------------------------------------------------------------------------------------------------
  logic en;                        // the three stages move
  logic need, dead, refused_unrel, void_dead, void_err, quiet, hold, is_atomic, atm_go, atm_more, rec_ready, rec_push, frag_run, frag_end;
  logic step_valid, o2_pieces;
  logic [7:0] refused;
  typedef enum logic [1:0] {I_NONE, I_REQ, I_RSP, I_DONE} i_e;
  i_e i_reg;
  logic i_bad_reg, i_skip_reg, inv_bad, gone_reg, gone_room;
  /* verilator lint_off UNUSEDSIGNAL */  // only its line number counts
  logic [12:0] pos_reg, frag_last_byte;
  /* verilator lint_on UNUSEDSIGNAL */
  logic [6:0] k_reg, k_last;
  logic sh_any;

  always_comb begin
    case (o2_reg.kind)
      OK_DATA: need = o2_reg.len != '0 || o2_reg.inv;
      OK_WRITE: need = o2_reg.len != '0;
      OK_ATOMIC: need = !o2_reg.dup;
      OK_READ: need = !o2_reg.dup && o2_reg.arg[31:0] != '0;
      OK_RSP: need = o2_reg.pass && o2_reg.take && o2_reg.len != '0;
      default: need = 1'b0;
    endcase
  end

  assign is_atomic = o2_reg.kind == OK_ATOMIC;
  assign chk_qpn = o2_reg.qpn;
  always_comb begin
    case (o2_reg.kind)
      OK_FENCE: hold = atm_busy;
      // a NAK must not overtake an earlier answer; the read of a FLUSH must not overtake a write of an earlier ATOMIC
      OK_ATOMIC: hold = (chk_busy && !atm_go && !atm_more) || (chk_writes && o2_reg.mpe);
      OK_RSP, OK_FLUSH: hold = 1'b0;
      default: hold = chk_busy;
    endcase
  end

  assign dead = o2_poison_reg || o2_kill_reg || void_dead || o2_status_reg != '0;
  assign sh_any = pos_reg[5:0] != '0;
  assign frag_last_byte = frag.len - 13'd1;
  assign k_last = {1'b0, frag_last_byte[11:6]} + 7'(sh_any);
  // A fragment that has begun is written to its end. Fragments of a READ request, or of a WRITE that is only checked, are not
  // written.
  assign frag_run = need && pc_valid && pc.piece && frag_valid && frag_ok && (!dead || k_reg != '0) && !is_atomic
      && o2_reg.kind != OK_READ && !o2_reg.check;
  assign frag_end = k_reg == k_last;

  // an ATOMIC that may go to its unit
  assign atm_go = !dead && (o2_reg.dup || (pc_valid && pc.piece && pc.last && frag_valid && frag_ok));
  // the first piece of a FLUSH may be read
  assign atm_more = !dead && pc_valid && pc.piece && !pc.last && frag_valid && frag_ok;
  assign atm_valid = o2_valid_reg && is_atomic && atm_go && !hold && finish_none && !atm_hold && !rst_valid;
  assign atm = '{qpn: o2_reg.qpn, dup: o2_reg.dup, fetch_add: o2_reg.fetch_add, flush: o2_reg.mpe, addr: frag.addr,
      swap_add: o2_reg.arg[127:64], compare: o2_reg.arg[63:0], psn: o2_reg.psn, msn: o2_reg.msn};

  // Whose fault a refused piece is: for a SEND or READ response, the local scatter list is wrong; for a WRITE, READ or
  // ATOMIC, the request is wrong.
  always_comb begin
    if (frag.dma && !pc_void) refused = 8'(URDMA_WC_LOC_QP_OP_ERR);
    else if (o2_reg.kind inside {OK_WRITE, OK_READ, OK_ATOMIC}) refused = 8'(URDMA_WC_LOC_ACCESS_ERR);
    else refused = 8'(URDMA_WC_LOC_PROT_ERR);
  end

  always_comb begin
    frag_pop = 1'b0;
    pc_pop = 1'b0;
    o2_done = 1'b0;
    o2_pieces = 1'b0;
    step_valid = 1'b0;
    status = void_err ? 8'(URDMA_WC_LOC_ACCESS_ERR) : o2_status_reg;
    // the responder owns the mark's write port while rst_valid
    if (o2_valid_reg && en && rec_ready && !hold && !rst_valid) begin
      if (i_reg != I_NONE) begin
        // the pieces of a SEND with invalidate are done
        o2_done = i_reg == I_DONE || (i_reg == I_REQ && i_skip_reg);
        if (inv_bad) status = 8'(URDMA_WC_REM_INV_REQ_ERR);
      end else if (is_atomic && atm_go) begin
        o2_done = atm_valid && atm_ready;
        frag_pop = o2_done && need;
        pc_pop = o2_done && need;
      end else if (!need) begin
        o2_done = 1'b1;
        if (o2_reg.kind == OK_RSP && o2_reg.take && !o2_reg.pass) status = 8'(URDMA_WC_FLUSH_ERR);
        if (o2_reg.srq_bad) status = 8'(URDMA_WC_LOC_QP_OP_ERR);
      end else if (pc_valid && !pc.piece) begin
        if (status == '0) status = pc.status;
        pc_pop = 1'b1;
        o2_pieces = 1'b1;
      end else if (pc_valid && frag_valid) begin
        step_valid = frag_run;
        frag_pop = !frag_run || frag_end;
        pc_pop = frag_pop && frag.last;
        o2_pieces = pc_pop && pc.last;
        if (!frag_ok && status == '0) status = refused;
      end
      if (o2_pieces && !o2_reg.inv) o2_done = 1'b1;
    end
  end

  // ---- the end of a SEND with invalidate --------------------------------------------------------------------
  // Accesses that were checked with the key before may still be under way: READ responses and messages of tx, ATOMICs. The
  // CQE waits for them; placement does not. Earlier WRITEs have already had their turn. Later pieces are refused, see
  // urdma_rx_inv.
  always_ff @(posedge clk) begin
    if (rst) begin
      i_reg <= I_NONE;
    end else begin
      case (i_reg)
        I_NONE: if (o2_pieces && o2_reg.inv) i_reg <= I_REQ;
        I_REQ: begin
          if (o2_done) i_reg <= I_NONE;
          else if (mro_valid && mro_ready) i_reg <= I_RSP;
        end
        I_RSP: if (mro_rsp_valid) i_reg <= I_DONE;
        default: if (o2_done) i_reg <= I_NONE;
      endcase
    end
    if (i_reg == I_NONE) i_skip_reg <= o2_poison_reg || o2_kill_reg || status != '0;
    if (mro_rsp_valid) i_bad_reg <= mro_rsp != MRO_OK;
    gone_reg <= mro_rsp_valid && mro_rsp == MRO_OK && !rst;
  end

  // The key may not be invalidated: the receive completes in error, the QP goes to ERR, and the requester gets no NAK (IBA
  // volume 1, 9.9.6.3, class J).
  assign inv_bad = i_reg == I_DONE && i_bad_reg && o2_status_reg == '0;
  assign inv_over = o2_done && o2_reg.inv;
  assign inv_live = i_reg == I_DONE && !i_bad_reg;

  // Later pieces that translation has already allowed are refused at their turn.
  urdma_rx_inv u_inv (
    .clk, .rst,
    .in_valid(pq_valid), .in_ready(pq_ready), .in(pq),
    .out_valid(pc_valid), .out_ready(pc_pop), .out(pc), .out_void(pc_void),
    .inv_valid(inv_over), .inv_live, .inv_key(o2_reg.imm), .invs_done, .invs_kept
  );
  assign frag_ok = frag.ok && !pc_void;

  // A refused key does not move an unreliable QP to ERR, unless the WRITE has a WQE of an SRQ for its immediate: later
  // messages have taken WQEs too, and none of them can be given back.
  assign refused_unrel = o2_reg.unrel && o2_reg.kind == OK_WRITE && status == 8'(URDMA_WC_LOC_ACCESS_ERR)
      && !(o2_reg.srq && o2_reg.cqe);
  assign void_err = void_dead && o2_reg.srq && o2_reg.cqe;
  assign quiet = (refused_unrel || (void_dead && !void_err)) && !o2_poison_reg && !o2_kill_reg;
  assign unrel_bad = o2_done && quiet;
  urdma_rx_void u_void (
    .clk, .load(o1_load), .load_qpn(op.qpn), .move(o1_move), .done(o2_done), .refused(refused_unrel), .o1(o1_reg), .o2(o2_reg),
    .dead(void_dead)
  );

  assign set_poison = o2_done && (quiet ? o2_reg.cqe : status != '0) && !o2_poison_reg && !o2_kill_reg;
  assign rd_en = step_valid;
  assign rd_line = o2_reg.line + BUF_W'(pos_reg[12:6]) + BUF_W'(k_reg);
  assign free_valid = o2_done;
  assign free_lines = o2_reg.lines;

  always_ff @(posedge clk) begin
    if (rst) begin
      pos_reg <= '0;
      k_reg <= '0;
    end else begin
      if (o2_done) pos_reg <= '0;
      else if (step_valid && frag_end) pos_reg <= pos_reg + frag.len;
      if (o2_done || (step_valid && frag_end)) k_reg <= '0;
      else if (step_valid) k_reg <= k_reg + 7'd1;
    end
  end

  // t1: the line is read; t2: shifted by 0..3 times 16 bytes; t3: by 0..15 bytes
  logic t1_beat_reg, t2_beat_reg, wr_valid_reg;
  logic t1_step_reg, t1_sh_any_reg, t1_first_reg, t2_first_reg, t1_last_reg, t2_last_reg, t3_last_reg;
  logic t1_fin_reg, t2_fin_reg, t3_fin_reg, t1_pc_reg, t2_pc_reg, t3_pc_reg, t1_swap_reg;
  logic put, t1_put_valid_reg, t2_put_valid_reg, t3_put_valid_reg;
  tr_put_t t1_put_reg, t2_put_reg, t3_put_reg;
  logic [PIECE_W-1:0] written_reg;
  logic [511:0] rd_line_data;
  logic [5:0] t1_sh_reg;
  logic [3:0] t2_sh_reg;
  logic [63:0] t1_addr_reg, t2_addr_reg, t3_addr_reg;
  logic [12:0] t1_len_reg, t2_len_reg, t3_len_reg;
  logic [511:0] hold_reg, t3_data_reg;
  logic [631:0] t2_data_reg;

  assign en = !wr_valid_reg || wr_ready;
  // the value of an ATOMIC acknowledge: host byte order in memory
  assign rd_line_data = {rd_data[511:64], t1_swap_reg ? be64(rd_data[63:0]) : rd_data[63:0]};

  always_ff @(posedge clk) begin
    if (en) begin
      if (step_valid) begin
        t1_sh_any_reg <= sh_any;
        t1_swap_reg <= o2_reg.swap;
        t1_sh_reg <= pos_reg[5:0];
        t1_first_reg <= k_reg == 7'(sh_any);
        t1_last_reg <= frag_end;
        t1_addr_reg <= frag.addr;
        t1_len_reg <= frag.len;
      end
      if (t1_step_reg && t1_sh_any_reg) hold_reg <= rd_line_data;
      if (t1_beat_reg) begin
        logic [1023:0] w;
        w = t1_sh_any_reg ? {rd_line_data, hold_reg} : {512'd0, rd_line_data};
        if (t1_sh_reg[5]) w[767:0] = w[1023:256];
        if (t1_sh_reg[4]) w[639:0] = w[767:128];
        t2_data_reg <= w[631:0];
        t2_sh_reg <= t1_sh_reg[3:0];
        t2_first_reg <= t1_first_reg;
        t2_last_reg <= t1_last_reg;
        t2_addr_reg <= t1_addr_reg;
        t2_len_reg <= t1_len_reg;
      end
      if (t2_beat_reg) begin
        logic [631:0] w;
        w = t2_data_reg;
        if (t2_sh_reg[3]) w[567:0] = w[631:64];
        if (t2_sh_reg[2]) w[535:0] = w[567:32];
        if (t2_sh_reg[1]) w[519:0] = w[535:16];
        if (t2_sh_reg[0]) w[511:0] = w[519:8];
        t3_data_reg <= w[511:0];
        t3_last_reg <= t2_last_reg;
        if (t2_first_reg) begin
          t3_addr_reg <= t2_addr_reg;
          t3_len_reg <= t2_len_reg;
        end
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      t1_step_reg <= 1'b0;
      t1_beat_reg <= 1'b0;
      t2_beat_reg <= 1'b0;
      wr_valid_reg <= 1'b0;
      t1_fin_reg <= 1'b0;
      t2_fin_reg <= 1'b0;
      t3_fin_reg <= 1'b0;
      t1_pc_reg <= 1'b0;
      t2_pc_reg <= 1'b0;
      t3_pc_reg <= 1'b0;
      t1_put_valid_reg <= 1'b0;
      t2_put_valid_reg <= 1'b0;
      t3_put_valid_reg <= 1'b0;
      written_reg <= '0;
    end else if (en) begin
      t1_step_reg <= step_valid;
      t1_beat_reg <= step_valid && !(sh_any && k_reg == '0);
      t2_beat_reg <= t1_beat_reg;
      wr_valid_reg <= t2_beat_reg;
      t1_fin_reg <= rec_push;
      t1_pc_reg <= pc_pop && pc.piece;
      t2_pc_reg <= t1_pc_reg;
      t3_pc_reg <= t2_pc_reg;
      written_reg <= written_reg + PIECE_W'(t3_pc_reg);
      t2_fin_reg <= t1_fin_reg;
      t3_fin_reg <= t2_fin_reg;
      t1_put_valid_reg <= put;
      t2_put_valid_reg <= t1_put_valid_reg;
      t3_put_valid_reg <= t2_put_valid_reg;
    end
  end

  // For the lane: the fate of an operation, reported with its last beat.
  always_comb begin
    put = 1'b0;
    if (o2_done && !dead && status == '0) begin
      case (o2_reg.kind)
        OK_DATA, OK_READ, OK_ATOMIC: put = 1'b1;
        OK_WRITE: put = !o2_reg.check;
        OK_RSP: put = o2_reg.pass && o2_reg.take;
        default: ;
      endcase
    end
  end
  always_ff @(posedge clk) begin
    if (en) begin
      t1_put_reg <= '{qpn: o2_reg.qpn, psn: o2_reg.psn, resp: o2_reg.kind == OK_RSP};
      t2_put_reg <= t1_put_reg;
      t3_put_reg <= t2_put_reg;
    end
  end
  assign trace_put_valid = t3_put_valid_reg && en;
  assign trace_put = t3_put_reg;

  // Operations refused earlier do not come here as these kinds. A WRITE that is only checked was not accepted.
  assign trace_voided_valid = o2_done && !put
      && ((o2_reg.kind inside {OK_DATA, OK_WRITE, OK_READ, OK_ATOMIC} && !o2_reg.check) || o2_reg.srq_bad);
  assign trace_voided = '{qpn: o2_reg.qpn, psn: o2_reg.psn,
                        why: quiet ? TRO_UNREL : (dead && o2_status_reg == '0) ? TRO_DEAD : TRO_REFUSED};

  assign wr_valid = wr_valid_reg;
  assign wr = '{addr: t3_addr_reg, len: t3_len_reg, data: t3_data_reg, last: t3_last_reg};

  // ---- records -------------------------------------------------------------------------------------------------
  rec_t rec_in;
  logic fin_cqe_valid, fin_cqe_ready, fin_gone, fin_void, cqes_none;
  cqe_req_t fin_cqe;

  always_comb begin
    rec_in.op = o2_reg;
    rec_in.live = 1'b1;
    rec_in.rdone = 1'b0;
    rec_in.back = quiet && o2_reg.cqe;
    rec_in.gone = o2_reg.inv && inv_live;
    rec_in.lost = o2_poison_reg && !o2_kill_reg && o2_reg.srq_new;
    if (o2_reg.kind == OK_RSP) begin
      rec_in.op.status = o2_poison_reg ? 8'(URDMA_WC_FLUSH_ERR) : status;
      rec_in.rdone = o2_reg.take && (o2_reg.last || rec_in.op.status != '0);
    end else if (status != '0) begin
      rec_in.op.status = status;
      rec_in.op.ack = !o2_reg.unrel;
      if (inv_bad) rec_in.op.msn = o2_reg.msn + 24'd1;  // the SEND itself is acknowledged
      else rec_in.op.syndrome = nak_of(status);
      rec_in.op.est = 1'b0;
      rec_in.op.mpe = 1'b0;
      rec_in.op.err = 1'b1;
      rec_in.op.ev = 8'd0;
      rec_in.op.imm_valid = 1'b0;
      if (o2_reg.kind == OK_DATA) begin
        rec_in.op.cqe = 1'b1;
      end else begin
        // ATOMIC, READ: the MSN before the request, and no answer but the NAK
        if (o2_reg.kind == OK_READ) rec_in.op.kind = OK_NONE;
        if (o2_reg.kind inside {OK_ATOMIC, OK_READ}) rec_in.op.msn = o2_reg.msn - 24'd1;
        // reported by a WQE if the message has one, else by an event
        if (!o2_reg.cqe)
          rec_in.op.ev = (status == 8'(URDMA_WC_LOC_ACCESS_ERR)) ? 8'(URDMA_EV_QP_ACCESS_ERR) : 8'(URDMA_EV_QP_FATAL);
      end
    end else if (o2_reg.kind inside {OK_DATA, OK_WRITE} && o2_reg.last) begin
      rec_in.op.msn = o2_reg.msn + 24'd1;
    end
    if (o2_kill_reg || quiet || (o2_poison_reg && !(o2_reg.kind inside {OK_FLUSH, OK_RSP}))) rec_in.live = 1'b0;
    if (o2_reg.kind == OK_FENCE) rec_in.live = 1'b1;
  end

  // An ATOMIC that went to its unit leaves no record, unless it is the first packet of a connection.
  assign rec_push = o2_done && !(is_atomic && atm_go && !o2_reg.est);

  urdma_rx_finish #(.FLUSH_TURN(FLUSH_TURN)) u_finish (
    .clk, .rst, .init_done(finish_init), .busy(finish_busy),
    .rec_valid(rec_push), .rec_ready, .rec_in, .left(t3_fin_reg && en), .none(finish_none),
    .rdone_valid, .rdone, .rdone_ready, .cqe_valid(fin_cqe_valid), .cqe(fin_cqe), .cqe_gone(fin_gone), .cqe_void(fin_void),
    .cqe_ready(fin_cqe_ready), .cqe_none(cqes_none), .ack_valid, .ack, .ack_ready, .err_valid, .err, .err_ready,
    .rst_valid, .rst_qpn, .rst_gen, .rst_idx, .done_en, .done_qpn, .done_idx, .kick_valid, .kick, .kick_ready,
    .rec_done(op_done[0]), .fence_out
  );
  assign op_done[1] = o2_done && !rec_push;

  urdma_rx_cqe_wait u_cqe_wait (
    .clk, .rst, .empty(cqes_none),
    .gone_valid(gone_reg), .gone_key(o2_reg.imm), .gone_room,
    .in_valid(fin_cqe_valid), .in_ready(fin_cqe_ready), .in(fin_cqe), .in_wait(fin_gone), .in_void(fin_void),
    .cqe_valid, .cqe, .cqe_ready,
    .atm_begun(atm_valid && atm_ready), .atm_ended, .inv_valid, .inv_key, .reads_over
  );

  assign written = written_reg;
  assign mro_valid = i_reg == I_REQ && !i_skip_reg && gone_room;
  always_comb begin
    mro = '0;
    mro.op = MRO_INV_REMOTE;
    mro.key = o2_reg.imm;
    mro.pd = o2_reg.pd;
    mro.qpn = o2_reg.qpn;
  end

  assign busy = op_valid || o1_valid_reg || o2_valid_reg || finish_busy || !cqes_none || !init_done;

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_reset_waits: cover property (@(posedge clk) !rst && o1_valid_reg && rst_valid && rst_qpn == o1_reg.qpn);
  c_reset_at_turn: cover property (@(posedge clk) !rst && o2_valid_reg && rst_valid && rst_qpn == o2_reg.qpn);
  c_atomic_holds: cover property (@(posedge clk) !rst && o2_valid_reg && hold && o2_reg.kind != OK_FENCE);
`endif

endmodule

`resetall
