// SPDX-License-Identifier: Apache-2.0
// Event queues: contexts, EQE writes, interrupts.
//
// Ports: docs/rtl-interfaces.md. The one owner of EQ contexts; one operation a cycle, as in urdma_cq:
//
//   c0 read context -> c1 new context, written back and forwarded -> item FIFO -> DMA write -> interrupt
//
// The interrupt of an EQE is requested after its DMA write was accepted. An EQE for a full or absent EQ is lost and counted;
// for EQ 0 eq0_lost pulses. An interrupt is raised at the first EQE after arming, or at once if there are EQEs at or after
// the index that the arming doorbell carries. A destruction is accepted when the block holds no more items of the EQs, so no
// EQE is written after cfg_ready.

`resetall
`default_nettype none

module urdma_eq
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  input  wire logic                   cfg_valid,
  input  wire logic [EQN_W-1:0]       cfg_eqn,
  input  wire eq_cfg_t                cfg,
  output      logic                   cfg_ready,

  input  wire logic                   db_valid,
  input  wire eq_db_t                 db,
  output      logic                   db_ready,

  input  wire logic     [EQC_N-1:0]   ev_valid,
  input  wire eqe_req_t [EQC_N-1:0]   ev,
  output      logic     [EQC_N-1:0]   ev_ready,

  output      logic                   wr_valid,
  output      dma_wr_t                wr,
  input  wire logic                   wr_ready,

  output      logic                   irq_valid,
  output      logic [VEC_W-1:0]       irq_vec,
  input  wire logic                   irq_ready,

  output      logic                   eq0_lost,

  input  wire logic [63:0]            cycles,
  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic                   trace_eqe_valid,
  output      tr_eqe_t                trace_eqe
);

  localparam int ITEMS = 16;
  localparam int CLI_W = $clog2(EQC_N);

  typedef struct packed {
    eq_cfg_t     cfg;
    logic        armed;
    logic [31:0] pi;
    logic [31:0] ci;
  } ctx_t;

  typedef enum logic [1:0] { OP_CFG, OP_DB, OP_EQE } op_e;

  typedef struct packed {
    logic             write;
    logic [63:0]      addr;
    logic [127:0]     eqe;
    logic             irq;
    logic [VEC_W-1:0] vec;
    logic [EQN_W-1:0] eqn;      // for the lane
  } item_t;

  // ---- c0: choose an operation, read its context ------------------------------------------------------------------
  logic [EQN_W:0] init_reg;
  logic room, take, drain;
  logic [4:0] item_count;
  logic [EQC_N-1:0] grant;
  logic [CLI_W-1:0] grant_idx;
  logic grant_valid, c1_valid_reg, c1_fwd_reg, item_valid;
  op_e op;
  logic [EQN_W-1:0] op_eqn;

  assign init_done = init_reg[EQN_W];
  assign drain = cfg_valid && !cfg.valid && (c1_valid_reg || item_valid);
  assign room = init_done && item_count < 5'(ITEMS - 3) && !drain;

  urdma_arb_rr #(.N(EQC_N)) arb (
    .clk, .rst, .req(ev_valid), .advance(take && op == OP_EQE), .grant, .grant_idx, .grant_valid
  );

  always_comb begin
    op = OP_EQE;
    op_eqn = ev[grant_idx].eqn;
    if (cfg_valid) begin
      op = OP_CFG;
      op_eqn = cfg_eqn;
    end else if (db_valid) begin
      op = OP_DB;
      op_eqn = db.eqn;
    end
  end
  assign take = room && (cfg_valid || db_valid || grant_valid);
  assign cfg_ready = room;
  assign db_ready = room && !cfg_valid;
  assign ev_ready = room && !cfg_valid && !db_valid ? grant : '0;

  op_e c1_op_reg;
  logic [EQN_W-1:0] c1_eqn_reg;
  eq_cfg_t c1_cfg_reg;
  eq_db_t c1_db_reg;
  eqe_req_t c1_ev_reg;
  ctx_t c1_fwd_ctx_reg, ctx, ctx_next;
  logic [$bits(ctx_t)-1:0] ram_word;

  urdma_ram_sdp #(.WIDTH($bits(ctx_t)), .DEPTH(2 ** EQN_W)) ram (
    .clk,
    .wr_en(!init_done || c1_valid_reg),
    .wr_addr(init_done ? c1_eqn_reg : init_reg[EQN_W-1:0]),
    .wr_data(init_done ? ctx_next : '0),
    .rd_en(take),
    .rd_addr(op_eqn),
    .rd_data(ram_word)
  );
  assign ctx = c1_fwd_reg ? c1_fwd_ctx_reg : ctx_t'(ram_word);

  always_ff @(posedge clk) begin
    if (take) begin
      c1_op_reg <= op;
      c1_eqn_reg <= op_eqn;
      c1_cfg_reg <= cfg;
      c1_db_reg <= db;
      c1_ev_reg <= ev[grant_idx];
      c1_fwd_reg <= c1_valid_reg && c1_eqn_reg == op_eqn;
      c1_fwd_ctx_reg <= ctx_next;
    end
    if (rst) begin
      init_reg <= '0;
      c1_valid_reg <= 1'b0;
    end else begin
      if (!init_done) init_reg <= init_reg + 1'b1;
      c1_valid_reg <= take;
    end
  end

  // ---- c1: what the operation does to the context -------------------------------------------------------------------
  logic [31:0] used, size, slot, ci_step;
  logic item_push, item_ready, lost;
  item_t item_in, stamped, item;

  always_comb begin
    ctx_next = ctx;
    item_push = 1'b0;
    lost = 1'b0;
    used = ctx.pi - ctx.ci;
    size = 32'd1 << ctx.cfg.log_entries;
    ci_step = c1_db_reg.ci - ctx.ci;
    item_in = '0;
    slot = ctx.pi & (size - 32'd1);
    item_in.addr = ctx.cfg.addr + {28'd0, slot, 4'd0};
    item_in.vec = ctx.cfg.vec;
    item_in.eqn = c1_eqn_reg;
    item_in.eqe[URDMA_EQE0_TYPE_LSB +: URDMA_EQE0_TYPE_W] = c1_ev_reg.ev_type;
    item_in.eqe[URDMA_EQE0_OBJ_LSB +: URDMA_EQE0_OBJ_W] = c1_ev_reg.obj;
    item_in.eqe[URDMA_EQE0_DATA_LSB +: URDMA_EQE0_DATA_W] = c1_ev_reg.data;

    case (c1_op_reg)
      OP_CFG: begin
        ctx_next = '0;
        ctx_next.cfg = c1_cfg_reg;
      end

      OP_DB: if (ctx.cfg.valid) begin
        if (ci_step <= used) ctx_next.ci = c1_db_reg.ci;
        if (c1_db_reg.arm != 2'(URDMA_DB_ARM_NONE)) begin
          ctx_next.armed = ctx.pi == c1_db_reg.ci;
          item_push = ctx.pi != c1_db_reg.ci;
          item_in.irq = 1'b1;
        end
      end

      default: begin
        lost = !ctx.cfg.valid || used >= size;
        if (!lost) begin
          item_push = 1'b1;
          item_in.write = 1'b1;
          item_in.irq = ctx.armed;
          ctx_next.armed = 1'b0;
          ctx_next.pi = ctx.pi + 32'd1;
        end
      end
    endcase
  end

  // Separate from the above, so that the simulator need not evaluate it in each cycle.
  always_comb begin
    stamped = item_in;
    stamped.eqe[URDMA_EQE1_CYCLES_LSB +: 64] = cycles;  // its top bit is replaced by the phase
    stamped.eqe[URDMA_EQE1_PHASE_LSB] = (ctx.pi & size) == '0;
  end

  // ---- items: write, then interrupt -----------------------------------------------------------------------------------
  logic item_pop, wrote_reg, write_left;
  urdma_fifo #(.WIDTH($bits(item_t)), .DEPTH(ITEMS)) item_fifo (
    .clk, .rst,
    .in_valid(c1_valid_reg && item_push), .in_ready(item_ready), .in_data(stamped),
    .out_valid(item_valid), .out_ready(item_pop), .out_data(item),
    .count(item_count)
  );

  assign write_left = item.write && !wrote_reg;
  assign wr_valid = item_valid && write_left;
  always_comb begin
    wr = '0;
    wr.addr = item.addr;
    wr.len = 13'(URDMA_EQE_SIZE);
    wr.data = 512'(item.eqe);
    wr.last = 1'b1;
  end
  assign irq_valid = item_valid && !write_left && item.irq;
  assign irq_vec = item.vec;
  assign item_pop = item_valid && (write_left ? wr_ready && !item.irq : !item.irq || irq_ready);

  always_ff @(posedge clk) begin
    if (rst || item_pop) wrote_reg <= 1'b0;
    else if (wr_valid && wr_ready) wrote_reg <= 1'b1;
  end

  assign busy = c1_valid_reg || item_valid || db_valid || ev_valid != '0;
  assign eq0_lost = c1_valid_reg && lost && c1_op_reg == OP_EQE && c1_eqn_reg == '0;

  always_comb begin
    cnt = '0;
    cnt[URDMA_CNT_EQE] = wr_valid && wr_ready;
    cnt[URDMA_CNT_EQ_LOST] = c1_valid_reg && c1_op_reg == OP_EQE && lost;
  end

  assign trace_eqe_valid = wr_valid && wr_ready;
  assign trace_eqe = '{eqn: item.eqn, kind: item.eqe[URDMA_EQE0_TYPE_LSB +: URDMA_EQE0_TYPE_W],
                       obj: item.eqe[URDMA_EQE0_OBJ_LSB +: URDMA_EQE0_OBJ_W]};

  logic unused_bits;
  assign unused_bits = &{1'b0, c1_ev_reg.eqn, c1_db_reg.eqn};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && c1_valid_reg && item_push) a_item: assert (item_ready)
      else $error("%m: no room for an item");

  // Cases that the tests must reach (make coverage).
  c_destroyed_with_entry: cover property (@(posedge clk) !rst && drain && item_valid && item.write);
  c_lost: cover property (@(posedge clk) !rst && c1_valid_reg && lost && ctx.cfg.valid);
`endif

endmodule

`resetall
