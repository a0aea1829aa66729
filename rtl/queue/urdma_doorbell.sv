// SPDX-License-Identifier: Apache-2.0
// Doorbells: ownership check and distribution.
//
//   pcie_db -> look-up FIFO -> QP configuration read (SQ, RQ), directory read (SRQ) -> verdict -> out FIFO -> tx, rx, cq, eq
//       |
//       +--> eth, in the next cycle
//
// Everything else stays in order. A doorbell is taken only when both FIFOs have room for it, because the answer of the
// configuration port cannot be refused. No doorbell is lost: pcie_db_ready falls instead. Doorbells of the Ethernet function
// need no look-up and do not wait. So such a doorbell takes effect before any later register access from PCIe, and a queue
// pair that was disabled and set up again sees no earlier doorbell.
//
// flush_req/flush_done: done when every doorbell that was inside at the rise of flush_req has left. After that
// no doorbell checked against an older configuration can reach tx or rx.

`resetall
`default_nettype none

module urdma_doorbell
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_trace_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  input  wire logic                   ready,        // 0: the NIC is being initialised, doorbells are dropped
  output      logic                   busy,

  input  wire logic                   pcie_db_valid,
  input  wire db_t                    pcie_db,
  output      logic                   pcie_db_ready,

  output      logic                   qpr_req_valid,
  output      logic [QPN_W-1:0]       qpr_req_qpn,
  input  wire logic                   qpr_req_ready,
  input  wire logic                   qpr_rsp_valid,
  input  wire logic                   qpr_rsp_open,  // QP valid and not in RESET
  input  wire logic                   qpr_rsp_has_sq,  // QP valid, and has that queue
  input  wire logic                   qpr_rsp_has_rq,
  input  wire logic [DBP_W-1:0]       qpr_rsp_page,

  // owner of an SRQ, answered in the next cycle
  output      logic                   srq_req_valid,
  output      logic [SRQN_W-1:0]      srq_req_srqn,
  input  wire logic                   srq_rsp_valid,
  input  wire logic                   srq_rsp_open,  // the SRQ exists
  input  wire logic [DBP_W-1:0]       srq_rsp_page,

  output      logic                   sq_db_valid,
  output      wq_db_t                 sq_db,
  input  wire logic                   sq_db_ready,
  output      logic                   rq_db_valid,
  output      wq_db_t                 rq_db,
  input  wire logic                   rq_db_ready,
  output      logic                   srq_db_valid,
  output      srq_db_t                srq_db,
  input  wire logic                   srq_db_ready,
  output      logic                   cq_db_valid,
  output      cq_db_t                 cq_db,
  input  wire logic                   cq_db_ready,
  output      logic                   eq_db_valid,
  output      eq_db_t                 eq_db,
  input  wire logic                   eq_db_ready,
  output      logic                   eth_db_valid,   // always taken
  output      eth_db_t                eth_db,

  input  wire logic                   flush_req,
  output      logic                   flush_done,

  output      logic [URDMA_CNT_N-1:0] cnt,
  output      logic                   trace_sq_db_valid,
  output      tr_sq_db_t              trace_sq_db,
  output      logic                   trace_rq_db_valid,
  output      tr_rq_db_t              trace_rq_db
);

  localparam int DEPTH = 16;

  typedef enum logic [2:0] {K_SQ, K_RQ, K_SRQ, K_CQ, K_EQ, K_ETH} kind_e;

  typedef struct packed {
    kind_e            kind;
    logic             ok;      // passed the checks that need no look-up
    logic [DBP_W-1:0] page;
    logic [11:0]      obj;
    logic [1:0]       arm;
    logic [31:0]      index;
  } item_t;

  // ---- entry: checks that can be made at once ----------------------------------------------------
  item_t in;
  logic known, in_range, need_lookup, need_srq, direct, take, room, enter;
  logic [23:0] obj;

  assign obj = pcie_db.data[URDMA_DBW_OBJ_LSB +: URDMA_DBW_OBJ_W];

  always_comb begin
    known = 1'b1;
    in_range = 1'b0;
    in.kind = K_SQ;
    unique case (pcie_db.offset)
      12'(URDMA_DB_SQ): begin
        in.kind = K_SQ;
        in_range = (obj >> QPN_W) == '0;
      end
      12'(URDMA_DB_RQ): begin
        in.kind = K_RQ;
        in_range = (obj >> QPN_W) == '0;
      end
      12'(URDMA_DB_SRQ): begin
        in.kind = K_SRQ;
        in_range = (obj >> SRQN_W) == '0;
      end
      12'(URDMA_DB_CQ): begin
        in.kind = K_CQ;
        in_range = (obj >> CQN_W) == '0;
      end
      12'(URDMA_DB_EQ): begin
        in.kind = K_EQ;
        in_range = (obj >> EQN_W) == '0 && pcie_db.page == '0;
      end
      12'(URDMA_DB_ETH_TX), 12'(URDMA_DB_ETH_RX), 12'(URDMA_DB_ETH_CQ): begin
        in.kind = K_ETH;
        in_range = (obj >> ETHQ_W) == '0 && pcie_db.page == '0;
      end
      default: known = 1'b0;
    endcase
    in.ok = in_range;
    in.page = pcie_db.page;
    in.obj = obj[11:0];
    in.arm = pcie_db.data[URDMA_DBW_ARM_LSB +: URDMA_DBW_ARM_W];
    in.index = pcie_db.data[URDMA_DBW_INDEX_LSB +: URDMA_DBW_INDEX_W];
  end
  assign need_lookup = in_range && known && (in.kind == K_SQ || in.kind == K_RQ);
  assign need_srq = in_range && known && in.kind == K_SRQ;
  assign direct = in_range && known && in.kind == K_ETH;  // a doorbell out of range is dropped and counted like others

  // Places: a doorbell inside occupies one place in both FIFOs, of DEPTH.
  logic [$clog2(DEPTH):0] inside_reg;
  logic leave;
  assign room = (inside_reg != ($clog2(DEPTH) + 1)'(DEPTH));
  assign qpr_req_valid = pcie_db_valid && ready && room && need_lookup;
  assign qpr_req_qpn = in.obj[QPN_W-1:0];
  assign pcie_db_ready = rst || !ready || !known || direct || (room && (!need_lookup || qpr_req_ready));
  assign take = pcie_db_valid && pcie_db_ready && !rst && ready;
  assign srq_req_valid = take && need_srq;
  assign srq_req_srqn = in.obj[SRQN_W-1:0];
  assign enter = take && known && !direct;

  always_ff @(posedge clk) begin
    if (rst) inside_reg <= '0;
    else if (enter && !leave) inside_reg <= inside_reg + 1'b1;
    else if (leave && !enter) inside_reg <= inside_reg - 1'b1;
  end

  // ---- waiting for the configuration --------------------------------------------------------------
  item_t wait_item;
  logic wait_valid, wait_pop, wait_lookup, wait_srq;
  urdma_fifo #(.WIDTH($bits(item_t)), .DEPTH(DEPTH)) wait_fifo (
    .clk(clk), .rst(rst),
    .in_valid(enter), .in_ready(), .in_data(in),
    .out_valid(wait_valid), .out_ready(wait_pop), .out_data(wait_item), .count()
  );

  // Answers come at the earliest in the cycle after the request, when its item is at the FIFO's output or behind older ones.
  // By then older items without a look-up have left, or they wait for answers that come first.
  logic [1:0] rsp_verdict;  // {foreign, closed}
  logic [DBP_W-1:0] rsp_page;  // travels in parallel to the look-ups, with:
  logic rsp_rq;                // for the receive queue
  logic verd_valid;
  logic [1:0] verd;
  assign rsp_verdict = {!(rsp_rq ? qpr_rsp_has_rq : qpr_rsp_has_sq) || qpr_rsp_page != rsp_page, !qpr_rsp_open};

  /* verilator lint_off UNUSEDSIGNAL */
  logic page_valid;
  /* verilator lint_on UNUSEDSIGNAL */
  urdma_fifo #(.WIDTH(1 + DBP_W), .DEPTH(DEPTH)) page_fifo (
    .clk(clk), .rst(rst),
    .in_valid(enter && need_lookup), .in_ready(), .in_data({in.kind == K_RQ, in.page}),
    .out_valid(page_valid), .out_ready(qpr_rsp_valid), .out_data({rsp_rq, rsp_page}), .count()
  );
  urdma_fifo #(.WIDTH(2), .DEPTH(DEPTH)) verdict_fifo (
    .clk(clk), .rst(rst),
    .in_valid(qpr_rsp_valid), .in_ready(), .in_data(rsp_verdict),
    .out_valid(verd_valid), .out_ready(wait_pop && wait_lookup), .out_data(verd), .count()
  );

  // SRQs: one bit is enough, because every existing SRQ takes doorbells
  logic srq_good, srq_verd_valid, srq_foreign;
  logic [DBP_W-1:0] srq_page_reg;
  assign srq_good = srq_rsp_open && srq_rsp_page == srq_page_reg;
  always_ff @(posedge clk) if (srq_req_valid) srq_page_reg <= in.page;
  urdma_fifo #(.WIDTH(1), .DEPTH(DEPTH)) srq_verdict_fifo (
    .clk(clk), .rst(rst),
    .in_valid(srq_rsp_valid), .in_ready(), .in_data(!srq_good),
    .out_valid(srq_verd_valid), .out_ready(wait_pop && wait_srq), .out_data(srq_foreign), .count()
  );

  // ---- verdict and output -------------------------------------------------------------------------
  logic judged, foreign, closed, good, out_free;
  assign wait_lookup = wait_item.ok && (wait_item.kind == K_SQ || wait_item.kind == K_RQ);
  assign wait_srq = wait_item.ok && wait_item.kind == K_SRQ;
  assign judged = wait_valid && (!wait_lookup || verd_valid) && (!wait_srq || srq_verd_valid);
  assign foreign = !wait_item.ok || (wait_lookup && verd[1]) || (wait_srq && srq_foreign);
  assign closed = wait_lookup && !verd[1] && verd[0];
  assign good = !foreign && !closed;

  /* verilator lint_off UNUSEDSIGNAL */
  item_t out_reg;
  /* verilator lint_on UNUSEDSIGNAL */
  logic out_valid_reg, out_done;
  always_comb begin
    unique case (out_reg.kind)
      K_SQ: out_done = sq_db_ready;
      K_RQ: out_done = rq_db_ready;
      K_SRQ: out_done = srq_db_ready;
      K_CQ: out_done = cq_db_ready;
      K_EQ: out_done = eq_db_ready;
      default: out_done = 1'b1;
    endcase
  end
  assign out_free = !out_valid_reg || out_done;
  // a bad doorbell waits for those before it, too: the flush below counts in order
  assign wait_pop = judged && out_free;
  assign leave = wait_pop;

  always_ff @(posedge clk) begin
    if (wait_pop && good) out_reg <= wait_item;
    if (rst) out_valid_reg <= 1'b0;
    else if (wait_pop && good) out_valid_reg <= 1'b1;
    else if (out_done) out_valid_reg <= 1'b0;
  end

  assign sq_db_valid = out_valid_reg && out_reg.kind == K_SQ;
  assign rq_db_valid = out_valid_reg && out_reg.kind == K_RQ;
  assign srq_db_valid = out_valid_reg && out_reg.kind == K_SRQ;
  assign cq_db_valid = out_valid_reg && out_reg.kind == K_CQ;
  assign eq_db_valid = out_valid_reg && out_reg.kind == K_EQ;
  assign sq_db = '{qpn: out_reg.obj[QPN_W-1:0], pi: out_reg.index[15:0]};
  assign rq_db = '{qpn: out_reg.obj[QPN_W-1:0], pi: out_reg.index[15:0]};
  assign srq_db = '{srqn: out_reg.obj[SRQN_W-1:0], pi: out_reg.index[15:0]};
  assign cq_db = '{cqn: out_reg.obj[CQN_W-1:0], page: out_reg.page, arm: out_reg.arm, ci: out_reg.index};
  assign eq_db = '{eqn: out_reg.obj[EQN_W-1:0], arm: out_reg.arm, ci: out_reg.index};

  logic eth_db_valid_reg;
  eth_db_t eth_db_reg;
  logic [$clog2(DEPTH):0] ok_left_reg;  // see counters
  assign eth_db_valid = eth_db_valid_reg;
  assign eth_db = eth_db_reg;

  always_ff @(posedge clk) begin
    if (take && direct)
      eth_db_reg <= '{kind: (pcie_db.offset == 12'(URDMA_DB_ETH_TX)) ? EDB_TX
                            : (pcie_db.offset == 12'(URDMA_DB_ETH_RX)) ? EDB_RX : EDB_CQ,
                      q: in.obj[ETHQ_W-1:0], arm: in.arm == 2'(URDMA_DB_ARM_ANY), index: in.index};
    eth_db_valid_reg <= !rst && take && direct;
  end

  assign busy = pcie_db_valid || inside_reg != '0 || out_valid_reg || eth_db_valid_reg || ok_left_reg != '0;

  // ---- flush ----------------------------------------------------------------------------------------
  // Doorbells still to leave, counted down from the number inside when flush_req rose.
  logic flush_seen_reg, flush_done_reg;
  localparam int FW = $clog2(DEPTH) + 2;
  logic [FW-1:0] flush_left_reg, now_inside;
  logic [1:0] leaving;  // a bad one dropped, and the previous one handed over
  assign leaving = 2'(wait_pop && !good) + 2'(out_valid_reg && out_done);
  // a doorbell that enters in this cycle counts: its look-up may have been granted just now
  assign now_inside = FW'(inside_reg) + FW'(out_valid_reg) + FW'(enter);
  assign flush_done = flush_done_reg;

  always_ff @(posedge clk) begin
    if (rst || !flush_req) begin
      flush_seen_reg <= 1'b0;
      flush_done_reg <= 1'b0;
    end else begin
      flush_seen_reg <= 1'b1;
      if (!flush_seen_reg) flush_left_reg <= now_inside - FW'(leaving);
      else if (flush_left_reg == '0) flush_done_reg <= 1'b1;
      else if (flush_left_reg <= FW'(leaving)) flush_left_reg <= '0;
      else flush_left_reg <= flush_left_reg - FW'(leaving);
    end
  end

  // ---- counters, lanes ------------------------------------------------------------------------------
  // urdma_cq checks the doorbells of CQs, and so counts them. Up to two good doorbells may leave per cycle, but only one
  // enters: at most DEPTH wait to be counted.
  logic [1:0] ok;
  assign ok = 2'(wait_pop && good && wait_item.kind != K_CQ) + 2'(eth_db_valid_reg);

  always_ff @(posedge clk) begin
    if (rst) ok_left_reg <= '0;
    else if (ok[1]) ok_left_reg <= ok_left_reg + 1'b1;
    else if (ok == 2'd0 && ok_left_reg != '0) ok_left_reg <= ok_left_reg - 1'b1;
  end

  always_comb begin
    cnt = '0;
    cnt[URDMA_CNT_DB_OK] = ok != 2'd0 || ok_left_reg != '0;
    cnt[URDMA_CNT_DB_OWNER] = wait_pop && foreign;
    cnt[URDMA_CNT_DB_BAD] = (take && !known) || (wait_pop && closed);
  end

  assign trace_sq_db_valid = sq_db_valid && sq_db_ready;
  assign trace_sq_db = '{qpn: sq_db.qpn, pi: sq_db.pi};
  assign trace_rq_db_valid = rq_db_valid && rq_db_ready;
  assign trace_rq_db = '{qpn: rq_db.qpn, pi: rq_db.pi};

endmodule

`resetall
