// SPDX-License-Identifier: Apache-2.0
// What other blocks report to requester completion: tables for the turns, and the queue of QPs to look at.
//
//  sent_*   (tx) a message whose last packet is made, or a WQE that failed or was flushed, in order for each QP
//  made_*   (tx) a packet is made
//  rdone_*  (placement) the data of a READ or ATOMIC is written, or could not be: taken within a few cycles, whatever else waits
//  exp_*    (timers) a deadline has passed
//  kick_*   (to the look-up) QPs to look at
//  get_*    a turn reads the tables of a QP; tail, psns, placed show them from the next cycle on, and stay current
//  ent_*    a turn reads an entry of the table
//  put_*    a turn or control writes the QP's state: some of it is copied here
//  ctl_*    control; ctl_wait from the cycle before: messages that write the same memories wait
//  run_*    turns under way: 0 walks, 1 is about to write (put_*), 2 begins to walk in this cycle; news: messages for their
//           QPs
//
// Each memory here has one writer. A sent_t is only written, unless it requires a look at the QP: the WQE has a status, or is
// of UC or UD, or is acknowledged already, or the QP is in error. A made_t raises the newest PSN. If it requests an
// acknowledgement and no turn has seen that one is due, the QP is looked at, so that its timer starts.
// A turn under way has read the tables earlier and is about to change the state that the copy shows. So a message for its QP
// is passed on to it (news), psns shows it, and the turn itself requests another look if that matters.

`resetall
`default_nettype none

module urdma_rx_told
  import urdma_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_rx_cmpl_pkg::*;
(
  input  wire logic             clk,
  input  wire logic             rst,
  input  wire logic             init,           // sweep
  input  wire logic [QPN_W-1:0] init_qpn,
  output      logic             busy,

  input  wire logic             sent_valid,
  input  wire sent_t            sent,
  output      logic             sent_ready,
  input  wire logic             made_valid,
  input  wire made_t            made,
  output      logic             made_ready,
  input  wire logic             rdone_valid,
  input  wire rdone_t           rdone,
  output      logic             rdone_ready,
  input  wire logic             exp_valid,
  input  wire logic [QPN_W-1:0] exp_qpn,
  output      logic             exp_ready,

  output      logic             kick_valid,
  output      logic [QPN_W-1:0] kick_qpn,
  input  wire logic             kick_ready,

  input  wire logic             get_en,
  input  wire logic [QPN_W-1:0] get_qpn,
  output      tail_t            tail,
  output      psns_t            psns,
  output      placed_t          placed,
  input  wire logic             ent_en,
  input  wire logic [QPN_W-1:0] ent_qpn,
  input  wire logic [INFL_W-1:0] ent_idx,       // low bits of the WQE index
  output      ent_t             ent,

  input  wire logic             put_en,
  input  wire logic [QPN_W-1:0] put_qpn,
  /* verilator lint_off UNUSEDSIGNAL */  // fields that are not copied
  input  wire st_t              put,
  /* verilator lint_on UNUSEDSIGNAL */
  input  wire logic             put_look,       // a turn requests another for its QP
  input  wire logic             ctl_wait,
  input  wire logic             ctl_en,
  input  wire qpc_t             ctl,

  input  wire logic [2:0]       run_valid,
  input  wire logic [2:0][QPN_W-1:0] run_qpn,
  output      news_t [2:0]      news
);

  logic ctl_clear;                 // a new life: clear PSNs, placements
  assign ctl_clear = ctl_en && new_life(ctl.op);

  logic push_ctl, push_s, push_m, push_r, push_first;
  assign push_ctl = ctl_en && ctl.op == QPC_ERR;
  assign push_first = push_ctl || put_look;

  // ---- sent messages: written in the second cycle, when it is known whether an entry changes -----------------------
  logic sent_take, s1_valid_reg, s1_new_reg, s1_kick_reg, s1_kick, s1_run, ent_we, tail_we;
  sent_t s1_reg;
  logic s1_err;
  logic [23:0] s1_una;
  logic [QPN_W-1:0] tail_wqpn;
  tail_t tail_wdata;
  /* verilator lint_off UNUSEDSIGNAL */  // signs of differences, places in the table
  tail_t s1_tail;
  logic [15:0] s1_back, s1_off, s1_span;
  /* verilator lint_on UNUSEDSIGNAL */

  // some of the QP's state
  typedef struct packed {
    logic        err;
    logic [23:0] una;
    logic [15:0] head;
  } copy_t;
  copy_t s1_copy;

  // Not while a reset writes the tail, nor while the message before waits to kick.
  assign sent_ready = !init && !(push_s && (push_first || push_r)) && !ctl_wait;
  assign sent_take = sent_valid && sent_ready;

  urdma_ram_live #(.WIDTH($bits(copy_t)), .DEPTH(1 << QPN_W)) u_sent_copy (
    .clk, .wr_en(put_en), .wr_addr(put_qpn), .wr_data({put.err, put.una, put.head}),
    .rd_en(sent_take), .rd_addr(sent.qpn), .rd_data(s1_copy)
  );
  urdma_ram_live #(.WIDTH($bits(tail_t)), .DEPTH(1 << QPN_W)) u_sent_tail (
    .clk, .wr_en(tail_we), .wr_addr(tail_wqpn), .wr_data(tail_wdata), .rd_en(sent_take), .rd_addr(sent.qpn), .rd_data(s1_tail)
  );
  urdma_ram_live #(.WIDTH($bits(tail_t)), .DEPTH(1 << QPN_W)) u_tail (
    .clk, .wr_en(tail_we), .wr_addr(tail_wqpn), .wr_data(tail_wdata), .rd_en(get_en), .rd_addr(get_qpn), .rd_data(tail)
  );
  urdma_ram_sdp #(.WIDTH($bits(ent_t)), .DEPTH(1 << (QPN_W + INFL_W))) u_ent (
    .clk, .wr_en(ent_we), .wr_addr({s1_reg.qpn, s1_reg.wqe[INFL_W-1:0]}),
    .wr_data({s1_reg.psn, s1_reg.opcode, s1_reg.signaled, s1_reg.status, s1_reg.len}),
    .rd_en(ent_en), .rd_addr({ent_qpn, ent_idx}), .rd_data(ent)
  );

  assign tail_we = init || (s1_new_reg && !s1_reg.resent) || (ctl_en && ctl.op == QPC_RESET);
  assign tail_wqpn = init ? init_qpn : s1_new_reg ? s1_reg.qpn : ctl.qpn;
  assign tail_wdata = (!init && s1_new_reg) ? '{idx: s1_reg.wqe + 16'd1, psn: s1_reg.psn} : '0;

  assign {s1_err, s1_una} = (put_en && put_qpn == s1_reg.qpn) ? {put.err, put.una} : {s1_copy.err, s1_copy.una};
  assign s1_back = s1_tail.idx - s1_reg.wqe;
  assign s1_off = s1_reg.wqe - s1_copy.head;
  assign s1_span = s1_tail.idx - s1_copy.head;
  // An entry to change lies in [head, tail). head may have passed it meanwhile: then the entry is dead, but it is not yet
  // another message's as long as the tail is at most a ring ahead of it.
  assign ent_we = s1_new_reg && (!s1_reg.resent
      || (s1_off < s1_span && s1_back != '0 && s1_back <= 16'(1 << INFL_W)));
  assign s1_run = news[0].sent || news[1].sent;
  assign s1_kick = s1_reg.status != '0 || s1_reg.unrel || (!s1_run && (s1_err || psn_before(s1_reg.psn, s1_una)));
  assign push_s = s1_valid_reg && (s1_new_reg ? s1_kick : s1_kick_reg);

  always_ff @(posedge clk) begin
    if (sent_take) s1_reg <= sent;
    if (s1_new_reg) s1_kick_reg <= s1_kick;
    if (rst) begin
      s1_valid_reg <= 1'b0;
      s1_new_reg <= 1'b0;
    end else begin
      s1_new_reg <= sent_take;
      if (sent_take) s1_valid_reg <= 1'b1;
      else if (!(push_s && (push_first || push_r))) s1_valid_reg <= 1'b0;
    end
  end

  // ---- packets that are made -------------------------------------------------------------------------------
  logic made_take, m1_valid_reg, m1_new_reg, m1_kick_reg, m1_kick, m1_raise, m1_due, psns_we, m1_held;
  made_t m1_reg;
  logic m1_copy, m1_watch;
  psns_t m1_psns, m1_next, psns_wdata;
  logic [QPN_W-1:0] psns_wqpn;

  assign m1_held = push_m && (push_first || push_r || push_s);
  assign made_ready = !init && !m1_held && !ctl_wait;
  assign made_take = made_valid && made_ready;

  urdma_ram_live #(.WIDTH(1), .DEPTH(1 << QPN_W)) u_made_watch (
    .clk, .wr_en(put_en), .wr_addr(put_qpn), .wr_data(put.watch), .rd_en(made_take), .rd_addr(made.qpn), .rd_data(m1_copy)
  );
  urdma_ram_live #(.WIDTH($bits(psns_t)), .DEPTH(1 << QPN_W)) u_made_psns (
    .clk, .wr_en(psns_we), .wr_addr(psns_wqpn), .wr_data(psns_wdata), .rd_en(made_take), .rd_addr(made.qpn), .rd_data(m1_psns)
  );
  urdma_ram_live #(.WIDTH($bits(psns_t)), .DEPTH(1 << QPN_W)) u_psns (
    .clk, .wr_en(psns_we), .wr_addr(psns_wqpn), .wr_data(psns_wdata), .rd_en(get_en), .rd_addr(get_qpn), .rd_data(psns)
  );

  // a packet that is sent again lowers nothing
  assign m1_raise = m1_new_reg && psn_before(m1_psns.newest, m1_reg.psn);
  assign m1_due = m1_new_reg && m1_reg.asks && psn_before(m1_psns.asked, m1_reg.psn);
  assign m1_next = '{newest: m1_raise ? m1_reg.psn : m1_psns.newest, asked: m1_due ? m1_reg.psn : m1_psns.asked};
  assign psns_we = init || ctl_clear || m1_raise || m1_due;
  assign psns_wqpn = init ? init_qpn : ctl_clear ? ctl.qpn : m1_reg.qpn;
  // at the beginning of a life nothing has been sent: the PSN before its first one
  assign psns_wdata = (init || ctl_clear) ? {2{24'((!init && ctl.op == QPC_SQ_PSN) ? ctl.psn - 24'd1 : 24'hffffff)}} : m1_next;

  assign m1_watch = (put_en && put_qpn == m1_reg.qpn) ? put.watch : m1_copy;
  assign m1_kick = m1_due && !news[0].made && !news[1].made && !m1_watch;
  assign push_m = m1_valid_reg && (m1_new_reg ? m1_kick : m1_kick_reg);

  always_comb begin
    for (int i = 0; i < 3; i++) begin
      news[i].sent = s1_new_reg && s1_reg.status == '0 && run_valid[i] && run_qpn[i] == s1_reg.qpn;
      news[i].psn = s1_reg.psn;
      news[i].made = m1_new_reg && run_valid[i] && run_qpn[i] == m1_reg.qpn;
      news[i].asked = m1_next.asked;
    end
  end

  always_ff @(posedge clk) begin
    if (made_take) m1_reg <= made;
    if (m1_new_reg) m1_kick_reg <= m1_kick;
    if (rst) begin
      m1_valid_reg <= 1'b0;
      m1_new_reg <= 1'b0;
    end else begin
      m1_new_reg <= made_take;
      if (made_take) m1_valid_reg <= 1'b1;
      else if (!m1_held) m1_valid_reg <= 1'b0;
    end
  end

  // ---- from placement: count and kick, in two cycles ------------------------------------------------------
  logic r0_take, r1_valid_reg, r1_fire, placed_we;
  logic [QPN_W-1:0] r1_qpn_reg, placed_wqpn;
  logic [7:0] r1_status_reg;
  placed_t r1_placed, placed_wdata;

  assign rdone_ready = !init && !r1_valid_reg;
  assign r0_take = rdone_valid && rdone_ready;
  assign r1_fire = r1_valid_reg && !ctl_clear && !push_first;
  assign push_r = r1_fire;

  urdma_ram_live #(.WIDTH($bits(placed_t)), .DEPTH(1 << QPN_W)) u_rdone_placed (
    .clk, .wr_en(placed_we), .wr_addr(placed_wqpn), .wr_data(placed_wdata),
    .rd_en(r0_take), .rd_addr(rdone.qpn), .rd_data(r1_placed)
  );
  urdma_ram_live #(.WIDTH($bits(placed_t)), .DEPTH(1 << QPN_W)) u_placed (
    .clk, .wr_en(placed_we), .wr_addr(placed_wqpn), .wr_data(placed_wdata),
    .rd_en(get_en), .rd_addr(get_qpn), .rd_data(placed)
  );

  always_comb begin
    placed_we = init || ctl_clear || r1_fire;
    placed_wqpn = init ? init_qpn : ctl_clear ? ctl.qpn : r1_qpn_reg;
    placed_wdata = r1_placed;
    if (r1_placed.status == '0) begin
      if (r1_status_reg == '0) placed_wdata.cnt = r1_placed.cnt + 8'd1;
      else placed_wdata.status = r1_status_reg;
    end
    if (init || ctl_clear) placed_wdata = '0;
  end

  always_ff @(posedge clk) begin
    if (r0_take) begin
      r1_qpn_reg <= rdone.qpn;
      r1_status_reg <= rdone.status;
    end
    if (rst) r1_valid_reg <= 1'b0;
    else if (r0_take) r1_valid_reg <= !(ctl_clear && ctl.qpn == rdone.qpn);
    else if (r1_fire || (ctl_clear && ctl.qpn == r1_qpn_reg)) r1_valid_reg <= 1'b0;
  end

  // ---- QPs to look at ---------------------------------------------------------------------------------------
  logic [QPN_W-1:0] push_qpn;
  logic kicks_empty;

  assign exp_ready = !init && !push_first && !push_r && !push_s && !push_m;
  assign push_qpn = push_ctl ? ctl.qpn : put_look ? put_qpn : push_r ? r1_qpn_reg : push_s ? s1_reg.qpn
      : push_m ? m1_reg.qpn : exp_qpn;

  urdma_queue_once #(.W(QPN_W)) u_kicks (
    .clk, .rst, .init, .init_obj(init_qpn),
    .in_valid(push_first || push_r || push_s || push_m || (exp_valid && exp_ready)), .in_obj(push_qpn),
    .out_valid(kick_valid), .out_obj(kick_qpn), .out_ready(kick_ready), .empty(kicks_empty)
  );

  assign busy = sent_valid || made_valid || rdone_valid || s1_valid_reg || m1_valid_reg || r1_valid_reg || !kicks_empty;

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_entry_is_dead: cover property (@(posedge clk) !rst && s1_new_reg && s1_reg.resent && !ent_we);
  c_sent_in_turn: cover property (@(posedge clk) !rst && news[0].sent || news[1].sent);
  c_made_in_turn: cover property (@(posedge clk) !rst && news[0].made || news[1].made);
`endif

endmodule

`resetall
