// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: their configuration, and the producer and consumer index of the ring of indices.
//
//  op_*    from urdma_ctl: CREATE, MODIFY, QUERY, DESTROY; op_ans is valid with op_ready
//  db_*    producer indexes, ownership checked. A stale or repeated one has no effect; one that is further ahead than the
//          ring is long moves the SRQ to the error state
//  take_*  a message needs a WQE: cycle 0, always taken
//  got_*   the answer, in cycle 2. With got_commit in that cycle the message takes the WQE, and the next message gets the
//          next WQE. Without it, nothing changes
//  kill_*  the ring of indices cannot be read, or an index is beyond the array: moves the SRQ to the error state
//  ev_*    EV_SRQ_LIMIT, EV_SRQ_ERR, to EQ 0
//
// got.life counts the creations of the number and survives DESTROY: urdma_rx_xrc uses it to tell an SRQ from an earlier one.
//
// Three stages, as in the responder: S0 reads, S1 waits, S2 decides and writes. S1 sees what S2 writes, so a new one may
// enter in every cycle, also for one SRQ. Priority: takes, kills, doorbells, operations. The last three wait only for a cycle
// without a take or another of higher priority. Packets, and so takes, come in less than two cycles out of three.
//
// Events wait in a FIFO. It has two places for each SRQ and never overflows: a dead SRQ raises no second error, and MODIFY
// waits until the FIFO is empty, so that each arming has an event of its own. DESTROY waits for an empty FIFO, too; after it
// no event about the SRQ comes any more. The FIFO empties, because without MODIFY and CREATE an SRQ raises at most these two
// events.

`resetall
`default_nettype none

module urdma_srq
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
(
  input  wire logic              clk,
  input  wire logic              rst,
  output      logic              init_done,
  output      logic              busy,

  input  wire logic              op_valid,
  input  wire srq_op_t           op,
  output      logic              op_ready,
  output      srq_ans_t          op_ans,

  input  wire logic              db_valid,
  input  wire srq_db_t           db,
  output      logic              db_ready,

  input  wire logic              take_valid,
  input  wire logic [SRQN_W-1:0] take_srqn,
  output      logic              got_valid,
  output      srq_got_t          got,
  input  wire logic              got_commit,

  input  wire logic              kill_valid,
  input  wire logic [SRQN_W-1:0] kill_srqn,
  output      logic              kill_ready,

  output      logic              ev_valid,
  output      eqe_req_t          ev,
  input  wire logic              ev_ready
);

  localparam int SRQS = 1 << SRQN_W;

  typedef enum logic [1:0] {S_TAKE, S_KILL, S_DB, S_OP} src_e;

  typedef struct packed {
    logic        valid;
    logic        dead;
    logic        used;         // a WQE was taken
    logic [SRQ_LIFE_W-1:0] life;
    logic [15:0] pi;
    logic [15:0] ci;
    logic [15:0] limit;        // 0: not armed
    srq_cfg_t    cfg;
  } state_t;

  // ---- S0 ----------------------------------------------------------------------------------------------
  logic [SRQN_W:0] init_reg;
  logic s0_valid, s1_valid_reg, s2_valid_reg, op_busy_reg;
  src_e s0_src, s1_src_reg, s2_src_reg;
  logic [SRQN_W-1:0] s0_srqn, s1_srqn_reg, s2_srqn_reg;
  logic [15:0] s1_pi_reg, s2_pi_reg;
  state_t rd, st_reg, wd;
  logic wr;

  assign init_done = init_reg[SRQN_W];

  always_comb begin
    s0_valid = 1'b1;
    s0_src = S_TAKE;
    s0_srqn = take_srqn;
    if (take_valid) begin
    end else if (kill_valid) begin
      s0_src = S_KILL;
      s0_srqn = kill_srqn;
    end else if (db_valid) begin
      s0_src = S_DB;
      s0_srqn = db.srqn;
    end else begin
      s0_src = S_OP;
      s0_srqn = op.srqn;
      s0_valid = op_valid && !op_busy_reg;
    end
    if (!init_done) s0_valid = 1'b0;
  end
  assign kill_ready = s0_valid && s0_src == S_KILL;
  assign db_ready = s0_valid && s0_src == S_DB;

  urdma_ram_live #(.WIDTH($bits(state_t)), .DEPTH(SRQS)) u_state (
    .clk,
    .wr_en(!init_done || wr), .wr_addr(init_done ? s2_srqn_reg : init_reg[SRQN_W-1:0]), .wr_data(init_done ? wd : '0),
    .rd_en(s0_valid), .rd_addr(s0_srqn), .rd_data(rd)
  );

  always_ff @(posedge clk) begin
    if (s0_valid) begin
      s1_src_reg <= s0_src;
      s1_srqn_reg <= s0_srqn;
      if (s0_src == S_DB) s1_pi_reg <= db.pi;
    end
    if (s1_valid_reg) begin
      s2_src_reg <= s1_src_reg;
      s2_srqn_reg <= s1_srqn_reg;
      s2_pi_reg <= s1_pi_reg;
      st_reg <= (wr && s2_srqn_reg == s1_srqn_reg) ? wd : rd;
    end
    if (rst) begin
      init_reg <= '0;
      s1_valid_reg <= 1'b0;
      s2_valid_reg <= 1'b0;
      op_busy_reg <= 1'b0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      s1_valid_reg <= s0_valid;
      s2_valid_reg <= s1_valid_reg;
      if (s0_valid && s0_src == S_OP) op_busy_reg <= 1'b1;
      else if (s2_valid_reg && s2_src_reg == S_OP) op_busy_reg <= 1'b0;
    end
  end

  // ---- S2 ----------------------------------------------------------------------------------------------
  logic alive, quiet, db_posted, db_old, db_bad, ev_push, ev_limit;
  logic [15:0] left, left_next, mask, db_step, db_ahead;

  assign alive = st_reg.valid && !st_reg.dead;
  assign left = st_reg.pi - st_reg.ci;
  assign left_next = left - 16'd1;
  assign mask = (16'd1 << st_reg.cfg.ring.log_entries) - 16'd1;
  // A whole ring of 2**15 may be posted at once. An index between consumer and producer is stale in any case: if such a ring
  // is full, the consumer's index is 2**15 behind the producer, and also 2**15 ahead of it.
  assign db_step = s2_pi_reg - st_reg.pi;
  assign db_ahead = s2_pi_reg - st_reg.ci;
  assign db_posted = db_ahead < left;
  assign db_old = db_step > 16'h8000 || db_posted;
  assign db_bad = 17'(db_ahead) > (17'd1 << st_reg.cfg.ring.log_entries);

  always_comb begin
    wd = st_reg;
    wr = 1'b0;
    ev_push = 1'b0;
    ev_limit = 1'b0;
    op_ready = 1'b0;
    if (s2_valid_reg) begin
      unique case (s2_src_reg)
        S_TAKE: begin
          if (got_commit && got.has_wqe) begin
            wr = 1'b1;
            wd.ci = st_reg.ci + 16'd1;
            wd.used = 1'b1;
            ev_limit = left_next < st_reg.limit;
          end
        end
        S_KILL: begin
          ev_push = alive;
          wr = alive;
          wd.dead = 1'b1;
        end
        S_DB: begin
          wr = alive && !db_old;
          if (db_bad) begin
            ev_push = wr;
            wd.dead = 1'b1;
          end else begin
            wd.pi = s2_pi_reg;
          end
        end
        default: begin
          unique case (op.kind)
            SRO_CREATE: begin
              op_ready = 1'b1;
              wr = 1'b1;
              wd = '0;
              wd.valid = 1'b1;
              wd.life = st_reg.life + 1'b1;
              wd.cfg = op.cfg;
            end
            SRO_MODIFY: begin
              op_ready = quiet;
              wr = quiet;
              wd.limit = op.limit;
              ev_limit = quiet && left < op.limit;
            end
            SRO_DESTROY: begin
              op_ready = quiet;
              wr = 1'b1;
              wd = '0;
              wd.life = st_reg.life;
            end
            default: op_ready = 1'b1;
          endcase
        end
      endcase
      if (ev_limit) begin
        ev_push = 1'b1;
        wd.limit = '0;
      end
    end
  end

  assign got_valid = s2_valid_reg && s2_src_reg == S_TAKE;
  assign got = '{exists: st_reg.valid, dead: st_reg.dead, fresh: !st_reg.used, life: st_reg.life, has_wqe: alive && left != '0,
                 index: st_reg.ci & mask, left: left, cfg: st_reg.cfg};
  assign op_ans = '{ci: st_reg.ci, pi: st_reg.pi, limit: st_reg.limit};

  // ---- events --------------------------------------------------------------------------------------------
  logic [SRQN_W+1:0] ev_count;
  logic [SRQN_W:0] ev_word;
  logic ev_room;

  urdma_fifo #(.WIDTH(SRQN_W + 1), .DEPTH(2 * SRQS), .OUT_REG(1)) u_events (
    .clk, .rst,
    .in_valid(ev_push), .in_ready(ev_room), .in_data({ev_limit, s2_srqn_reg}),
    .out_valid(ev_valid), .out_ready(ev_ready), .out_data(ev_word), .count(ev_count)
  );
  assign quiet = ev_count == '0;
  assign ev = '{eqn: '0, ev_type: ev_word[SRQN_W] ? 8'(URDMA_EV_SRQ_LIMIT) : 8'(URDMA_EV_SRQ_ERR), obj: 24'(ev_word[SRQN_W-1:0]),
                data: '0};

  assign busy = s1_valid_reg || s2_valid_reg || ev_count != '0 || op_valid || db_valid || kill_valid;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && ev_push) a_room: assert (ev_room)
      else $error("%m: an event is lost");
  always_ff @(posedge clk)
    if (!rst && got_valid && got_commit) a_commit: assert (got.has_wqe)
      else $error("%m: a WQE is taken that is not there");

  // Cases that the tests must reach (make coverage).
  c_in_a_row: cover property (@(posedge clk) !rst && s1_valid_reg && wr && s2_srqn_reg == s1_srqn_reg);
  c_modify_waits: cover property (@(posedge clk) !rst && s2_valid_reg && s2_src_reg == S_OP && op.kind == SRO_MODIFY && !quiet);
  c_destroy_waits: cover property (@(posedge clk) !rst && s2_valid_reg && s2_src_reg == S_OP && op.kind == SRO_DESTROY && !quiet);
  c_kill_late: cover property (@(posedge clk) !rst && s2_valid_reg && s2_src_reg == S_KILL && !alive);
`else
  logic unused_bits;
  assign unused_bits = &{1'b0, ev_room};
`endif

endmodule

`resetall
