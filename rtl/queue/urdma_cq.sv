// SPDX-License-Identifier: Apache-2.0
// Completion queues: contexts, CQE writes, arming, moderation, change of ring, overflow.
//
// Ports: docs/rtl-interfaces.md. This block is the one owner of CQ contexts. Creation and destruction, doorbells and
// CQEs are operations on a context; one enters a cycle (cfg before doorbells before CQEs, which
// take turns):
//
//   c0 read context -> c1 new context, written back and forwarded -> item FIFO -> ring address from mr -> DMA write
//                                                                        -> event -> QP error
//
// An item leaves the FIFO when its CQE has been accepted by the DMA write port, then its event; so the event of
// a CQE, and the interrupt behind it, follow the CQE onto the link, and an event that a doorbell raises follows every CQE
// that it reports. 12 cycles from request to DMA write when the ring's page is known.
//
// `told` is the index up to which software is informed: it has consumed the CQEs, or they had their event, because an event
// follows all CQEs before it. An arming that finds a newer CQE raises an event at once; otherwise it waits for the next CQE.
// So no CQE has two events, and a CQE that came before its arming has one (IBA volume 1, 11.4.2.2). told and sol lie between
// ci and pi: AHEAD_W bits of them are enough.
//
// Moderation. An armed CQ that has CQEs after `told`, and must not report them yet, holds its event (`held`). The event comes
// with the CQE that reaches count, with a failed CQE, or when the period ends: each CQ that holds an event and has a period
// has a deadline in urdma_timer. An expiry waits in t_*_reg for its turn as an operation; a later setting of the same CQ's timer
// cancels it. A CQ may still hold its event when software has consumed all CQEs: this is found at the expiry.
//
// RESIZE. pos, not pi, is the position of the next CQE: it restarts with each ring, while pi, ci and `told` continue. A CQE
// occupies its place until it is consumed, in whichever ring it is.
//
// overrun: ci, told and sol advance past a CQE that is overwritten.
//
// A CQE for a full ring is lost: the CQ is dead from then on (every later CQE for it is lost too), event CQ_ERR is raised
// once, and each QP that loses a CQE is reported on err. Reports pass through a FIFO that drops when full. If they waited,
// qp_mgr could wait for an owner of QP state that waits for this block. A dropped report harms only QPs of a dead CQ.

`resetall
`default_nettype none

module urdma_cq
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  input  wire logic                   cfg_valid,
  input  wire logic [CQN_W-1:0]       cfg_cqn,
  input  wire cq_cfg_t                cfg,
  input  wire cq_cfg_op_e             cfg_op,
  input  wire logic [31:0]            cfg_ci,
  output      logic                   cfg_ready,
  output      cq_resized_t            resized,

  input  wire logic                   db_valid,
  input  wire cq_db_t                 db,
  output      logic                   db_ready,

  input  wire logic                   fence_req,
  output      logic                   fence_done,

  input  wire logic     [CQC_N-1:0]   cqe_valid,
  input  wire cqe_req_t [CQC_N-1:0]   cqe,
  output      logic     [CQC_N-1:0]   cqe_ready,

  output      logic                   mr_req_valid,
  output      mr_req_t                mr_req,
  input  wire logic                   mr_req_ready,
  input  wire logic                   mr_rsp_valid,
  input  wire mr_rsp_t                mr_rsp,
  output      logic                   mr_rsp_ready,

  output      logic                   wr_valid,
  output      dma_wr_t                wr,
  input  wire logic                   wr_ready,

  output      logic                   ev_valid,
  output      eqe_req_t               ev,
  input  wire logic                   ev_ready,

  output      logic                   err_valid,
  output      qp_err_t                err,
  input  wire logic                   err_ready,

  input  wire logic [63:0]            cycles,
  output      logic                   timer_armed,
  output      logic [31:0]            timer_cycles,
  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic                   trace_cq_db_valid,
  output      tr_cq_db_t              trace_cq_db,
  output      logic                   trace_cqe_valid,
  output      tr_cqe_t                trace_cqe
);

  localparam int ITEMS = 32;
  localparam int SEQ_W = 16;
  localparam int AHEAD_W = 21;  // counts the CQEs of a full ring, 2**20
  localparam int CLOCK_MHZ = 250;

  typedef struct packed {
    cq_cfg_t            cfg;
    logic               dead;
    logic               due;       // is in the queue of events that doorbells have raised
    logic               due_void;  // it is for an earlier life of the CQ, or a CQE's own event has reported everything
    logic               held;      // armed, and an event waits for more CQEs or the end of the period
    logic               urgent;    // there is a failed CQE after told
    logic [AHEAD_W-1:0] pos;       // CQEs written to the ring: position and phase of the next
    logic [1:0]         arm;
    logic [31:0]        pi;
    logic [31:0]        ci;
    logic [AHEAD_W-1:0] told;      // index after the newest CQE that is consumed or had its event
    logic [AHEAD_W-1:0] sol;       // index after the newest CQE that a solicited arming waits for, or ci
  } ctx_t;

  typedef enum logic [2:0] { OP_CFG, OP_DB, OP_TIME, OP_EV, OP_CQE } op_e;

  typedef struct packed {
    logic             write;
    ring_t            ring;
    logic [26:0]      offset;   // of the CQE in the ring
    logic [255:0]     cqe;
    logic             event_on;
    logic [7:0]       event_type;
    logic             lost;
    logic [EQN_W-1:0] eqn;
    logic [CQN_W-1:0] cqn;
  } item_t;

  // ---- c0: choose an operation, read its context ------------------------------------------------------------------
  logic [CQN_W:0] init_reg;
  logic room, take, due_push, due_pop, due_valid, t_valid_reg, t_go;
  logic [CQN_W-1:0] due_cqn;
  logic [CQN_W-1:0] t_cqn_reg;
  logic [CQN_W:0] due_count;
  logic [5:0] item_count;
  logic [CQC_N-1:0] grant;
  logic grant_idx, grant_valid;
  op_e op;
  logic [CQN_W-1:0] op_cqn;

  assign init_done = init_reg[CQN_W];
  assign room = init_done && item_count < 6'(ITEMS - 3);

  urdma_arb_rr #(.N(CQC_N)) arb (
    .clk, .rst, .req(cqe_valid), .advance(take && op == OP_CQE), .grant, .grant_idx, .grant_valid
  );

  always_comb begin
    op = OP_CQE;
    op_cqn = cqe[grant_idx].cqn;
    if (cfg_valid) begin
      op = OP_CFG;
      op_cqn = cfg_cqn;
    end else if (db_valid) begin
      op = OP_DB;
      op_cqn = db.cqn;
    end else if (t_go) begin
      op = OP_TIME;
      op_cqn = t_cqn_reg;
    end else if (due_valid) begin
      op = OP_EV;
      op_cqn = due_cqn;
    end
  end
  assign take = init_done && (cfg_valid || db_valid || t_go || (room && (due_valid || grant_valid)));
  assign cfg_ready = init_done;
  assign db_ready = init_done && !cfg_valid;
  assign due_pop = room && !cfg_valid && !db_valid && !t_go;
  assign cqe_ready = room && !cfg_valid && !db_valid && !t_go && !due_valid ? grant : '0;

  logic c1_valid_reg, c1_fwd_reg;
  op_e c1_op_reg;
  logic [CQN_W-1:0] c1_cqn_reg;
  cq_cfg_t c1_cfg_reg;
  cq_cfg_op_e c1_cfg_op_reg;
  logic [31:0] c1_ci_reg;
  cq_db_t c1_db_reg;
  cqe_req_t c1_cqe_reg;
  ctx_t c1_ram, c1_fwd_ctx_reg, ctx, ctx_next;

  // Doorbells never wait for anything here. Items wait for page table reads, and the completion of a read must not overtake
  // posted writes such as doorbells (PCI Express, 2.4.1). If doorbells waited for items, that would be a deadlock. So an
  // event that a doorbell raises at once is queued, each CQ at most once.
  logic due_in_ready;
  urdma_fifo #(.WIDTH(CQN_W), .DEPTH(2 ** CQN_W), .OUT_REG(1)) due_fifo (
    .clk, .rst,
    .in_valid(c1_valid_reg && due_push), .in_ready(due_in_ready), .in_data(c1_cqn_reg),
    .out_valid(due_valid), .out_ready(due_pop), .out_data(due_cqn),
    .count(due_count)
  );

  logic [$bits(ctx_t)-1:0] ram_word;

  urdma_ram_sdp #(.WIDTH($bits(ctx_t)), .DEPTH(2 ** CQN_W)) ram (
    .clk,
    .wr_en(!init_done || c1_valid_reg),
    .wr_addr(init_done ? c1_cqn_reg : init_reg[CQN_W-1:0]),
    .wr_data(init_done ? ctx_next : '0),
    .rd_en(take),
    .rd_addr(op_cqn),
    .rd_data(ram_word)
  );
  assign c1_ram = ctx_t'(ram_word);
  assign ctx = c1_fwd_reg ? c1_fwd_ctx_reg : c1_ram;

  always_ff @(posedge clk) begin
    if (take) begin
      c1_op_reg <= op;
      c1_cqn_reg <= op_cqn;
      c1_cfg_reg <= cfg;
      c1_cfg_op_reg <= cfg_op;
      c1_db_reg <= db;
      c1_ci_reg <= cfg_valid ? cfg_ci : db.ci;
      c1_cqe_reg <= cqe[grant_idx];
      c1_fwd_reg <= c1_valid_reg && c1_cqn_reg == op_cqn;
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
  cq_resized_t resized_reg;
  assign resized = resized_reg;
  logic [31:0] used, left, size, ci_step;
  logic [AHEAD_W-1:0] told_step, sol_step, news;   // distances from ci; CQEs after told
  logic [15:0] count, period;
  logic db_mine, ci_good, any_new, sol_new, sol_behind, wants, waits, failed_cqe, plain, enough, now, full, fits;
  logic arm_any, arm_sol, fire, hold, time_set, time_on, item_push, item_ready;
  item_t item_in, stamped, item;

  always_comb begin
    ctx_next = ctx;
    item_push = 1'b0;
    item_in = '0;
    item_in.ring = ctx.cfg.ring;
    item_in.eqn = ctx.cfg.eqn;
    item_in.cqn = c1_cqn_reg;
    item_in.event_type = 8'(URDMA_EV_CQ);
    item_in.cqe = c1_cqe_reg.cqe;
    used = ctx.pi - ctx.ci;
    left = ctx.pi - c1_ci_reg;
    size = 32'd1 << ctx.cfg.ring.log_entries;
    item_in.offset = 27'(32'(ctx.pos) & (size - 32'd1)) << 5;
    ci_step = c1_ci_reg - ctx.ci;
    told_step = ctx.told - AHEAD_W'(ctx.ci);
    sol_step = ctx.sol - AHEAD_W'(ctx.ci);
    // an older index (a repeated doorbell) or one never reached does not change the consumer index
    ci_good = ci_step <= used;
    sol_behind = sol_step > told_step;
    any_new = AHEAD_W'(ctx.pi) != ctx.told && ctx.pi != c1_ci_reg;
    sol_new = sol_behind && !(ci_good && AHEAD_W'(ci_step) >= sol_step);
    db_mine = ctx.cfg.valid && ctx.cfg.db_page == c1_db_reg.page;
    failed_cqe = c1_cqe_reg.cqe[URDMA_CQE0_STATUS_LSB +: URDMA_CQE0_STATUS_W] != '0;
    waits = c1_cqe_reg.solicited || failed_cqe;
    full = used >= size;
    // in the new ring; if the index is not good, used counts
    fits = (ci_good ? left : used) <= 32'd1 << c1_cfg_reg.ring.log_entries;

    // moderation: does an event wait?
    count = c1_op_reg == OP_CFG ? c1_cfg_reg.count : ctx.cfg.count;
    period = c1_op_reg == OP_CFG ? c1_cfg_reg.period : ctx.cfg.period;
    plain = count == '0 && period == '0;
    news = AHEAD_W'(ctx.pi) - ctx.told + AHEAD_W'(c1_op_reg == OP_CQE);
    enough = count != '0 && news >= AHEAD_W'(count)
             && !(c1_op_reg == OP_DB && ci_good && AHEAD_W'(left) < AHEAD_W'(count));
    now = plain || enough || ctx.urgent || (c1_op_reg == OP_CQE && failed_cqe);
    // an arming for any CQE overrides one for solicited CQEs
    arm_any = ctx.arm == 2'(URDMA_DB_ARM_ANY) || (c1_op_reg == OP_DB && c1_db_reg.arm == 2'(URDMA_DB_ARM_ANY));
    arm_sol = ctx.arm == 2'(URDMA_DB_ARM_SOLICITED) || (c1_op_reg == OP_DB && c1_db_reg.arm == 2'(URDMA_DB_ARM_SOLICITED));
    fire = 1'b0;
    hold = ctx.held;
    wants = 1'b0;

    case (c1_op_reg)
      OP_CFG: begin
        wants = ctx.held && (arm_any ? AHEAD_W'(ctx.pi) != ctx.told : sol_behind);
        unique case (c1_cfg_op_reg)
          CQO_RESIZE: begin
            if (fits) begin
              ctx_next.cfg.ring = c1_cfg_reg.ring;
              ctx_next.pos = '0;
            end
          end
          CQO_MODERATE: begin
            ctx_next.cfg.count = c1_cfg_reg.count;
            ctx_next.cfg.period = c1_cfg_reg.period;
            fire = wants && now;
          end
          default: begin
            ctx_next = '0;
            ctx_next.cfg = c1_cfg_reg;
            ctx_next.due = ctx.due;
            ctx_next.due_void = ctx.due;
            hold = 1'b0;
          end
        endcase
      end

      OP_DB: if (db_mine && c1_db_reg.arm inside {2'(URDMA_DB_ARM_ANY), 2'(URDMA_DB_ARM_SOLICITED)}) begin
        wants = arm_any ? any_new : sol_new;
        fire = wants && now;
        hold = wants;
        ctx_next.arm = arm_any ? 2'(URDMA_DB_ARM_ANY) : 2'(URDMA_DB_ARM_SOLICITED);
      end

      OP_TIME: begin
        wants = ctx.held && (arm_any ? AHEAD_W'(ctx.pi) != ctx.told : sol_behind);
        fire = wants;
        hold = 1'b0;
      end

      OP_EV: begin
        ctx_next.due = 1'b0;
        ctx_next.due_void = 1'b0;
        if (ctx.cfg.valid && !ctx.due_void) begin
          item_push = 1'b1;
          ctx_next.told = AHEAD_W'(ctx.pi);
          ctx_next.urgent = 1'b0;
        end
        item_in.event_on = 1'b1;
      end

      default: if (ctx.cfg.valid) begin
        item_push = 1'b1;
        if (ctx.dead || (full && !ctx.cfg.overrun)) begin
          item_in.lost = 1'b1;
          item_in.event_on = !ctx.dead;
          item_in.event_type = 8'(URDMA_EV_CQ_ERR);
          ctx_next.dead = 1'b1;
        end else begin
          item_in.write = 1'b1;
          ctx_next.pi = ctx.pi + 32'd1;
          ctx_next.pos = ctx.pos + 1'b1;
          if (full) begin
            ctx_next.ci = ctx.ci + 32'd1;
            if (told_step == '0) ctx_next.told = ctx.told + 1'b1;
            if (sol_step == '0) ctx_next.sol = ctx.sol + 1'b1;
          end
          if (waits) ctx_next.sol = AHEAD_W'(ctx.pi) + 1'b1;
          if (failed_cqe) ctx_next.urgent = 1'b1;
          wants = arm_any || (arm_sol && (waits || sol_behind));
          if (wants && now) begin
            item_in.event_on = 1'b1;
            ctx_next.arm = 2'(URDMA_DB_ARM_NONE);
            ctx_next.told = AHEAD_W'(ctx.pi) + 1'b1;
            ctx_next.urgent = 1'b0;
            ctx_next.due_void = ctx.due;
            hold = 1'b0;
          end else if (wants) begin
            hold = 1'b1;
          end
        end
      end
    endcase

    // consumed CQEs
    if (ci_good && ((c1_op_reg == OP_DB && db_mine) || (c1_op_reg == OP_CFG && c1_cfg_op_reg == CQO_RESIZE && fits))) begin
      ctx_next.ci = c1_ci_reg;
      if (AHEAD_W'(ci_step) > told_step) ctx_next.told = AHEAD_W'(c1_ci_reg);
      if (AHEAD_W'(ci_step) > sol_step) ctx_next.sol = AHEAD_W'(c1_ci_reg);
      if (left == '0) ctx_next.urgent = 1'b0;
    end

    // an event without a CQE
    due_push = fire && !ctx.due;
    if (fire) begin
      ctx_next.due = 1'b1;
      ctx_next.due_void = 1'b0;
      ctx_next.arm = 2'(URDMA_DB_ARM_NONE);
      hold = 1'b0;
    end
    ctx_next.held = hold;

    // the timer runs while the event is held, with a period; a new period restarts it
    time_on = hold && ctx_next.cfg.period != '0;
    time_set = c1_valid_reg && (hold != ctx.held || (c1_op_reg == OP_CFG && c1_cfg_op_reg == CQO_MODERATE && ctx.held))
               && (ctx_next.cfg.period != '0 || ctx.cfg.period != '0);
  end

  // Separate from the above, so that the simulator need not evaluate it in each cycle.
  always_comb begin
    stamped = item_in;
    stamped.cqe[URDMA_CQE3_CYCLES_LSB +: 64] = cycles;  // its top bit is replaced by the phase
    stamped.cqe[URDMA_CQE3_PHASE_LSB] = (32'(ctx.pos) & size) == '0;
  end

  always_ff @(posedge clk) begin
    if (c1_valid_reg && c1_op_reg == OP_CFG) resized_reg <= '{busy: !fits, base: ctx.pi};
  end

  // ---- time: c2 has the period, c3 sets the timer ------------------------------------------------------------------------
  logic c2_set_reg, c2_on_reg, c3_set_reg, c3_on_reg, time_init, time_busy, exp_valid, undo;
  logic [CQN_W-1:0] c2_cqn_reg, c3_cqn_reg, exp_cqn;
  logic [15:0] c2_period_reg;
  logic [23:0] c2_wait;
  logic [63:0] c3_deadline_reg;

  assign c2_wait = 24'(c2_period_reg) * 24'(CLOCK_MHZ);
  always_ff @(posedge clk) begin
    if (time_set) begin
      c2_cqn_reg <= c1_cqn_reg;
      c2_on_reg <= time_on;
      c2_period_reg <= ctx_next.cfg.period;
    end
    if (c2_set_reg) begin
      c3_cqn_reg <= c2_cqn_reg;
      c3_on_reg <= c2_on_reg;
      c3_deadline_reg <= cycles + 64'(c2_wait);
    end
    if (rst) begin
      c2_set_reg <= 1'b0;
      c3_set_reg <= 1'b0;
    end else begin
      c2_set_reg <= time_set;
      c3_set_reg <= c2_set_reg;
    end
  end

  urdma_timer #(.IDX_W(CQN_W)) timer (
    .clk, .rst, .init_done(time_init), .busy(time_busy), .cycles,
    .set_valid(c3_set_reg), .set_idx(c3_cqn_reg), .set_arm(c3_on_reg), .set_deadline(c3_deadline_reg),
    .exp_valid, .exp_idx(exp_cqn), .exp_ready(!t_valid_reg), .armed(timer_armed), .wait_cycles(timer_cycles)
  );

  // A setting that the timer has not seen yet is newer than the expiry. A configuration in c1 may set it, too.
  assign undo = (c2_set_reg && c2_cqn_reg == t_cqn_reg) || (c3_set_reg && c3_cqn_reg == t_cqn_reg);
  assign t_go = t_valid_reg && !undo && init_done && !(c1_valid_reg && c1_op_reg == OP_CFG);
  always_ff @(posedge clk) begin
    if (exp_valid && !t_valid_reg) t_cqn_reg <= exp_cqn;
    if (rst) t_valid_reg <= 1'b0;
    else if (t_valid_reg) t_valid_reg <= !undo && (!t_go || cfg_valid || db_valid);
    else t_valid_reg <= exp_valid;
  end

  // ---- ring addresses: requested when the item enters ------------------------------------------------------------------
  typedef struct packed {
    pt_t         pt;
    logic [26:0] offset;
  } ask_t;
  ask_t ask;
  logic ask_in_ready;

  urdma_fifo #(.WIDTH($bits(ask_t)), .DEPTH(ITEMS)) ask_fifo (
    .clk, .rst,
    .in_valid(c1_valid_reg && item_push && item_in.write), .in_ready(ask_in_ready),
    .in_data({item_in.ring.pt, item_in.offset}),
    .out_valid(mr_req_valid), .out_ready(mr_req_ready), .out_data(ask),
    .count()
  );
  always_comb begin
    mr_req = '0;
    mr_req.ring = 1'b1;
    mr_req.pt = ask.pt;
    mr_req.va = 64'(ask.offset);
    mr_req.len = 13'(URDMA_CQE_SIZE);
  end

  // ---- items: write, then event and error ------------------------------------------------------------------------------
  logic item_valid, item_pop, write_left, ev_left, failed, wrote_reg, evented_reg, failed_reg;
  urdma_fifo #(.WIDTH($bits(item_t)), .DEPTH(ITEMS)) item_fifo (
    .clk, .rst,
    .in_valid(c1_valid_reg && item_push), .in_ready(item_ready), .in_data(stamped),
    .out_valid(item_valid), .out_ready(item_pop), .out_data(item),
    .count(item_count)
  );

  assign write_left = item_valid && item.write && !wrote_reg;
  assign failed = mr_rsp.status != MR_OK;      // the ring's page table could not be read: the CQE is lost
  assign wr_valid = write_left && mr_rsp_valid && !failed;
  assign mr_rsp_ready = write_left && (failed || wr_ready);
  always_comb begin
    wr = '0;
    wr.addr = mr_rsp.addr;
    wr.len = 13'(URDMA_CQE_SIZE);
    wr.data = 512'(item.cqe);
    wr.last = 1'b1;
  end

  assign ev_left = item_valid && !write_left && (item.event_on || failed_reg) && !evented_reg;
  assign ev_valid = ev_left;
  assign ev.eqn = item.eqn;
  assign ev.ev_type = failed_reg ? 8'(URDMA_EV_CQ_ERR) : item.event_type;
  assign ev.obj = 24'(item.cqn);
  assign ev.data = '0;
  assign item_pop = item_valid && (write_left ? wr_valid && wr_ready && !item.event_on : !ev_left || ev_ready);

  always_ff @(posedge clk) begin
    if (rst || item_pop) begin
      wrote_reg <= 1'b0;
      evented_reg <= 1'b0;
      failed_reg <= 1'b0;
    end else begin
      if (mr_rsp_valid && mr_rsp_ready) begin
        wrote_reg <= 1'b1;
        failed_reg <= failed;
      end
      if (ev_valid && ev_ready) evented_reg <= 1'b1;
    end
  end

  qp_err_t err_in;
  logic err_in_ready;
  assign err_in.qpn = item.cqe[URDMA_CQE1_QPN_LSB +: QPN_W];
  assign err_in.only_event = 1'b0;
  assign err_in.event_type = 8'(URDMA_EV_QP_FATAL);
  urdma_fifo #(.WIDTH($bits(qp_err_t)), .DEPTH(16)) err_fifo (
    .clk, .rst,
    .in_valid(item_pop && (item.lost || failed_reg)), .in_ready(err_in_ready), .in_data(err_in),
    .out_valid(err_valid), .out_ready(err_ready), .out_data(err),
    .count()
  );

  // ---- fence: work taken before it rose has become an item after two cycles; wait for the last of these items -------------
  logic [SEQ_W-1:0] in_seq_reg, out_seq_reg, fence_seq_reg;
  logic [2:0] fence_reg;   // cycles since the fence rose
  always_ff @(posedge clk) begin
    if (rst) begin
      in_seq_reg <= '0;
      out_seq_reg <= '0;
      fence_reg <= '0;
    end else begin
      if (c1_valid_reg && item_push) in_seq_reg <= in_seq_reg + 1'b1;
      if (item_pop) out_seq_reg <= out_seq_reg + 1'b1;
      fence_reg <= fence_req ? {fence_reg[1:0], 1'b1} : '0;
      if (fence_reg == 3'b011) fence_seq_reg <= in_seq_reg;
      if (fence_done) fence_seq_reg <= out_seq_reg;   // stays done while the fence is up
    end
  end
  logic [SEQ_W-1:0] fence_age;
  assign fence_age = out_seq_reg - fence_seq_reg;
  assign fence_done = fence_req && fence_reg[2] && !fence_age[SEQ_W-1];

  assign busy = c1_valid_reg || c2_set_reg || c3_set_reg || t_valid_reg || time_busy || due_count != '0 || item_valid || err_valid || db_valid || cqe_valid != '0;

  always_comb begin
    cnt = '0;
    cnt[URDMA_CNT_CQE] = wr_valid && wr_ready;
    cnt[URDMA_CNT_CQ_OVERFLOW] = item_pop && (item.lost || failed_reg);
    cnt[URDMA_CNT_DB_OK] = c1_valid_reg && c1_op_reg == OP_DB && db_mine;
    cnt[URDMA_CNT_DB_OWNER] = c1_valid_reg && c1_op_reg == OP_DB && !db_mine;
  end

  // ---- lanes ------------------------------------------------------------------------------------------------------------
  assign trace_cq_db_valid = c1_valid_reg && c1_op_reg == OP_DB && db_mine;
  assign trace_cq_db = '{cqn: c1_cqn_reg, ci: c1_ci_reg,
                         arm: c1_db_reg.arm inside {2'(URDMA_DB_ARM_ANY), 2'(URDMA_DB_ARM_SOLICITED)}};
  assign trace_cqe_valid = wr_valid && wr_ready;
  assign trace_cqe = '{cqn: item.cqn, qpn: item.cqe[URDMA_CQE1_QPN_LSB +: QPN_W],
                       wqe: item.cqe[URDMA_CQE0_WQE_LSB +: URDMA_CQE0_WQE_W], send: !item.cqe[URDMA_CQE0_RECV_LSB],
                       status: item.cqe[URDMA_CQE0_STATUS_LSB +: URDMA_CQE0_STATUS_W]};

  logic unused_bits;
  assign unused_bits = &{1'b0, item.ring, item.offset, mr_rsp.len, mr_rsp.last, err_in_ready, ctx.cfg.ring.log_stride, due_in_ready,
                         c1_db_reg.cqn, c1_db_reg.ci, c1_cqe_reg.cqn, time_init};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && c1_valid_reg && item_push) a_item: assert (item_ready && ask_in_ready)
      else $error("%m: no room for an item");
`endif

endmodule

`resetall
