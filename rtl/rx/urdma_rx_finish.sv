// SPDX-License-Identifier: Apache-2.0
// Second half of placement: CQE, acknowledgement, error and flush, when an operation's bytes are written.
//
//  rec_*     records of operations, in order; left: the last step of the oldest record not yet reported has left the DMA
//            write port; rec_done: a record is done
//  none      no record waits, and the acknowledgement of the last one has been taken
//  cqe_* ack_* err_* rdone_*  leave in parallel, but an error waits until the NAK of its operation has been taken:
//            urdma_tx_resp must know the NAK before the QP goes to ERR
//            cqe_* to urdma_rx_cqe_wait: cqe_gone: it waits there; cqe_void, with that: the operation has no CQE any more;
//            cqe_none: all CQEs have been taken
//  rst_*     (responder) a QP begins a new life with WQE rst_idx
//  done_*    completed WQEs of a QP, for QUERY; latency 1. 0 for a QP with an SRQ
//  kick_*    a QP whose flush is not complete, or whose WQE is to be used again
//
// One word per QP: its life, and how many WQEs of its receive queue are completed. A flush begins there. For a QP with an SRQ
// the word holds the WQE in use instead: that of a partly placed message. A flush completes this WQE, raises LAST_WQE after
// it, and is done. An operation that has no effect but is the first to use a WQE completes it at once, so there is never a
// second one to remember.

`resetall
`default_nettype none

module urdma_rx_finish
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_rx_pkg::*;
#(
  // flush completions of a QP before other QPs get a turn
  parameter int FLUSH_TURN = 16
) (
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,
  output      logic             busy,

  input  wire logic             rec_valid,
  output      logic             rec_ready,
  input  wire rec_t             rec_in,
  input  wire logic             left,
  output      logic             none,

  output      logic             rdone_valid,
  output      rdone_t           rdone,
  input  wire logic             rdone_ready,
  output      logic             cqe_valid,
  output      cqe_req_t         cqe,
  output      logic             cqe_gone,
  output      logic             cqe_void,
  input  wire logic             cqe_ready,
  input  wire logic             cqe_none,
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

  output      logic             rec_done,
  output      logic             fence_out
);

  typedef struct packed {
    logic        open;             // QP with an SRQ: WQE idx is in use
    logic [1:0]  gen;
    logic [15:0] idx;
  } done_t;

  typedef enum logic [1:0] {F_IDLE, F_READ, F_RUN, F_KICK} f_e;

  logic [QPN_W:0] init_reg;
  f_e f_reg;
  rec_t rec;
  logic head_valid, f_start, f_kill_reg, f_kill, done_we, f_end, flush_more, open_reg, cqe_put, cqe_drop, out_put, out_free;
  logic [4:0] count, left_reg;     // left_reg: records whose last step has left
  logic [4:0] turn_reg;
  logic [15:0] idx_reg, cqe_wqe;
  logic [7:0] cqe_status;
  done_t done_wdata, done_q;
  /* verilator lint_off UNUSEDSIGNAL */  // QUERY does not look at the life
  done_t done_q2;
  /* verilator lint_on UNUSEDSIGNAL */
  cqe_req_t cqe_new;
  ack_req_t ack_reg;
  rdone_t rdone_reg;
  qp_err_t err_reg;
  kick_t kick_reg;
  logic ack_valid_reg, err_valid_reg, rdone_valid_reg;

  assign init_done = init_reg[QPN_W];

  urdma_fifo #(.WIDTH($bits(rec_t)), .DEPTH(16)) u_rec (
    .clk, .rst,
    .in_valid(rec_valid), .in_ready(rec_ready), .in_data(rec_in),
    .out_valid(head_valid), .out_ready(f_end), .out_data(rec), .count
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      init_reg <= '0;
      left_reg <= '0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      left_reg <= left_reg + 5'(left) - 5'(f_end);
    end
  end

  assign out_free = cqe_ready && (!ack_valid_reg || ack_ready) && (!err_valid_reg || (err_valid && err_ready))
      && (!rdone_valid_reg || rdone_ready);
  assign f_start = f_reg == F_IDLE && head_valid && left_reg != '0;
  // a new life of the QP begins between read and write
  assign f_kill = f_kill_reg || (rst_valid && rst_qpn == rec.op.qpn) || done_q.gen != rec.op.gen;
  assign flush_more = rec.op.srq ? open_reg : idx_reg != rec.op.wqe;

  always_comb begin
    f_end = 1'b0;
    done_we = 1'b0;
    done_wdata = '{open: 1'b0, gen: rec.op.gen, idx: rec.op.wqe + 16'd1};
    if (rec.op.srq) begin
      done_wdata.open = !rec.op.cqe;
      done_wdata.idx = rec.op.wqe;
    end
    cqe_put = 1'b0;
    cqe_drop = 1'b0;
    out_put = 1'b0;
    cqe_status = rec.op.status;
    cqe_wqe = rec.op.wqe;
    fence_out = 1'b0;
    if (f_reg == F_RUN) begin
      if (rec.op.kind == OK_FENCE) begin
        fence_out = cqe_none && !ack_valid_reg && !err_valid_reg && !rdone_valid_reg;
        f_end = fence_out;
      end else if (f_kill || !(rec.live || rec.lost)) begin
        cqe_drop = rec.gone && cqe_ready;
        f_end = !rec.gone || cqe_ready;
      end else if (rec.lost) begin
        cqe_status = 8'(URDMA_WC_FLUSH_ERR);
        cqe_put = out_free;
        f_end = out_free;
      end else if (rec.op.kind == OK_FLUSH) begin
        cqe_status = 8'(URDMA_WC_FLUSH_ERR);
        cqe_wqe = idx_reg;
        done_wdata.open = 1'b0;
        done_wdata.idx = idx_reg;
        if (!flush_more || turn_reg == 5'(FLUSH_TURN)) begin
          // LAST_WQE goes out when the CQ has taken the CQE
          f_end = !rst_valid && (!rec.op.srq || (out_free && cqe_none));
          done_we = f_end;
          out_put = f_end && rec.op.srq;
        end else begin
          cqe_put = out_free;
        end
      end else if (out_free && !((rec.op.cqe || rec.op.srq) && rst_valid)) begin
        out_put = 1'b1;
        cqe_put = rec.op.cqe;
        done_we = rec.op.cqe || (rec.op.srq && rec.op.kind == OK_DATA);
        f_end = 1'b1;
      end
    end
  end

  assign rec_done = f_end;
  assign none = count == '0 && f_reg == F_IDLE && !ack_valid_reg;
  assign kick_valid = f_reg == F_KICK;
  assign kick = kick_reg;

  urdma_rx_cqe u_cqe (.op(rec.op), .status(cqe_status), .wqe(cqe_wqe), .cqe(cqe_new));

  // Two copies: one for this block, one for QUERY.
  logic mem_we;
  logic [QPN_W-1:0] mem_addr;
  done_t mem_data;
  assign mem_we = !init_done || rst_valid || done_we;
  assign mem_addr = !init_done ? init_reg[QPN_W-1:0] : rst_valid ? rst_qpn : rec.op.qpn;
  assign mem_data = !init_done ? '0 : rst_valid ? '{open: 1'b0, gen: rst_gen, idx: rst_idx} : done_wdata;

  urdma_ram_sdp #(.WIDTH($bits(done_t)), .DEPTH(1 << QPN_W)) u_done (
    .clk, .wr_en(mem_we), .wr_addr(mem_addr), .wr_data(mem_data),
    .rd_en(f_start), .rd_addr(rec.op.qpn), .rd_data(done_q)
  );

  urdma_ram_sdp #(.WIDTH($bits(done_t)), .DEPTH(1 << QPN_W)) u_done_q (
    .clk, .wr_en(mem_we), .wr_addr(mem_addr), .wr_data(mem_data),
    .rd_en(done_en), .rd_addr(done_qpn), .rd_data(done_q2)
  );
  assign done_idx = done_q2.idx;

  always_ff @(posedge clk) begin
    if (out_put) begin
      ack_reg <= '{kind: (rec.op.kind == OK_READ || rec.op.mpe) ? RSP_READ : RSP_ACK, dup: rec.op.dup, qpn: rec.op.qpn, psn: rec.op.psn,
          syndrome: rec.op.syndrome, msn: rec.op.msn, pd: rec.op.pd, va: rec.op.arg[127:64], key: rec.op.arg[63:32], len: rec.op.arg[31:0]};
      err_reg <= '{qpn: rec.op.qpn, only_event: !rec.op.err, event_type: rec.op.err ? rec.op.ev
          : (rec.op.kind == OK_FLUSH) ? 8'(URDMA_EV_LAST_WQE) : 8'(URDMA_EV_COMM_EST)};
      rdone_reg <= '{qpn: rec.op.qpn, status: rec.op.status};
    end
    if (f_reg == F_READ) begin
      idx_reg <= done_q.idx;
      open_reg <= done_q.open;
      turn_reg <= '0;
    end else if (cqe_put) begin
      if (!rec.op.srq) idx_reg <= idx_reg + 16'd1;
      open_reg <= 1'b0;
      turn_reg <= turn_reg + 5'd1;
    end
    if (f_end) kick_reg <= '{qpn: rec.op.qpn, back: rec.back, gen: rec.op.gen, wqe: rec.op.wqe};
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      f_reg <= F_IDLE;
      f_kill_reg <= 1'b0;
      ack_valid_reg <= 1'b0;
      err_valid_reg <= 1'b0;
      rdone_valid_reg <= 1'b0;
    end else begin
      case (f_reg)
        F_IDLE: if (f_start) f_reg <= (rec.op.kind == OK_FLUSH) ? F_READ : F_RUN;
        F_READ: f_reg <= F_RUN;
        F_RUN: begin
          if (f_end) begin
            f_reg <= (!f_kill && (rec.back || (rec.op.kind == OK_FLUSH && rec.live && flush_more))) ? F_KICK : F_IDLE;
          end
        end
        default: if (kick_ready) f_reg <= F_IDLE;
      endcase
      if (f_reg == F_IDLE) f_kill_reg <= f_start && rst_valid && rst_qpn == rec.op.qpn;
      else if (rst_valid && rst_qpn == rec.op.qpn) f_kill_reg <= 1'b1;

      if (out_put && rec.op.ack) ack_valid_reg <= 1'b1;
      else if (ack_ready) ack_valid_reg <= 1'b0;
      if (out_put && (rec.op.err || rec.op.est)) err_valid_reg <= 1'b1;
      else if (err_valid && err_ready) err_valid_reg <= 1'b0;
      if (out_put && rec.rdone) rdone_valid_reg <= 1'b1;
      else if (rdone_ready) rdone_valid_reg <= 1'b0;
    end
  end

  assign cqe_valid = cqe_put || cqe_drop;
  assign cqe = cqe_new;
  assign cqe_gone = rec.gone;
  assign cqe_void = cqe_drop;
  assign ack_valid = ack_valid_reg;
  assign ack = ack_reg;
  assign err_valid = err_valid_reg && !ack_valid_reg;
  assign err = err_reg;
  assign rdone_valid = rdone_valid_reg;
  assign rdone = rdone_reg;
  assign busy = head_valid || f_reg != F_IDLE || ack_valid_reg || err_valid_reg || rdone_valid_reg || !init_done;

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_reset_at_end: cover property (@(posedge clk) !rst && f_reg == F_RUN && rst_valid && rst_qpn == rec.op.qpn);
  c_lost: cover property (@(posedge clk) !rst && f_reg == F_RUN && rec.lost && !f_kill);
  c_flush_open: cover property (@(posedge clk) !rst && f_reg == F_RUN && rec.op.kind == OK_FLUSH && rec.op.srq && open_reg);
`endif

endmodule

`resetall
