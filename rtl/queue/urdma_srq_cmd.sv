// SPDX-License-Identifier: Apache-2.0
// Commands of SRQs, and the directory of SRQs: part of urdma_cmdq, whose steps it follows.
//
//  look     (X_DEC) the entry is read: for a command of SRQs its object, else the SRQ that CREATE_QP names
//  status, qp_ok  (X_CHECK) the status of the command of SRQs; the SRQ of CREATE_QP exists, and its type fits the QP
//  xrcd, cqn  the XRC domain and the CQ that CREATE_SRQ names, to be looked up: *_ok in X_CHECK
//  held     (X_CHECK) the objects that the created or destroyed SRQ refers to
//  act      (X_ACT) the status is OK: the directory is written
//  ref_*    (X_REF_*) a QP begins to use SRQ ref_srqn, or no longer uses it
//  out      (X_OUT) the operation is given to urdma_srq, until sro_ready; ans is for the completion of the command
//  fin      (X_FIN) the fence of a DESTROY_SRQ is over
//  srq_*    look-up for doorbells, answered in the next cycle: open, the SRQ exists; page, of its doorbells
//
// As with CQs, a QP's reference is dropped when the QP is unlinked, so DESTROY_SRQ may directly follow DESTROY_QP. The
// responder may then find a QP whose SRQ no longer exists.

`resetall
`default_nettype none

module urdma_srq_cmd
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_ctl_pkg::*;
#(
  // width of a reference count
  parameter int REF_W = 16
) (
  input  wire logic              clk,
  input  wire logic              rst,
  input  wire logic              init,
  input  wire logic [SRQN_W-1:0] init_srqn,

  input  wire logic [511:0]      cmd,
  input  wire logic              look,
  output      logic [15:0]       xrcd,
  output      logic [23:0]       cqn,
  input  wire logic              pd_ok,
  input  wire logic              xrcd_ok,
  input  wire logic              cq_ok,
  output      logic [7:0]        status,
  output      logic              qp_ok,
  output      srq_held_t         held,
  input  wire logic              act,
  input  wire logic              out,
  output      srq_ans_t          ans,

  input  wire logic              ref_rd,
  input  wire logic              ref_wr,
  input  wire logic [SRQN_W-1:0] ref_srqn,
  input  wire logic [REF_W-1:0]  ref_step,
  input  wire logic              fin,
  input  wire logic [SRQN_W-1:0] fin_srqn,

  output      logic              sro_valid,
  output      srq_op_t           sro,
  input  wire logic              sro_ready,
  input  wire srq_ans_t          sro_ans,

  input  wire logic              srq_req_valid,
  input  wire logic [SRQN_W-1:0] srq_req_srqn,
  output      logic              srq_rsp_valid,
  output      logic              srq_rsp_open,
  output      logic [DBP_W-1:0]  srq_rsp_page
);

  localparam logic [4:0] LOG_MAX = 5'd15;
  localparam int SRQS = 1 << SRQN_W;

  typedef struct packed {
    logic             valid;
    logic             dying;
    logic [REF_W-1:0] refs;    // QPs
    srq_held_t        held;
    logic [3:0]       log_entries;
  } ent_t;
  typedef struct packed {
    logic             open;
    logic [DBP_W-1:0] page;
  } db_ent_t;

  // ---- the current command -----------------------------------------------------------------------------
  logic [7:0] op;
  logic [23:0] obj, qp_srqn;
  logic is_create, is_destroy, is_modify, is_query, live;
  logic [11:0] page;
  logic [16:0] ring;
  logic [15:0] limit;
  logic [7:0] ring_status;
  ent_t ent, wd;
  srq_held_t named;

  assign op = cmd[URDMA_CMD0_OPCODE_LSB +: URDMA_CMD0_OPCODE_W];
  assign obj = cmd[URDMA_CMD0_OBJ_LSB +: URDMA_CMD0_OBJ_W];
  assign qp_srqn = cmd[URDMA_CMD_QP5_SRQN_LSB +: URDMA_CMD_QP5_SRQN_W];
  assign is_create = op == 8'(URDMA_CMD_CREATE_SRQ);
  assign is_modify = op == 8'(URDMA_CMD_MODIFY_SRQ);
  assign is_query = op == 8'(URDMA_CMD_QUERY_SRQ);
  assign is_destroy = op == 8'(URDMA_CMD_DESTROY_SRQ);
  assign page = cmd[URDMA_CMD_SRQ1_DB_PAGE_LSB +: URDMA_CMD_SRQ1_DB_PAGE_W];
  assign ring = cmd[URDMA_CMD_SRQ2_RING_LSB +: URDMA_CMD_SRQ2_RING_W];
  assign limit = cmd[URDMA_CMD_MSRQ1_LIMIT_LSB +: URDMA_CMD_MSRQ1_LIMIT_W];
  assign xrcd = cmd[URDMA_CMD_SRQ4_XRCD_LSB +: URDMA_CMD_SRQ4_XRCD_W];
  assign cqn = cmd[URDMA_CMD_SRQ4_CQN_LSB +: URDMA_CMD_SRQ4_CQN_W];
  assign named = '{pd: cmd[URDMA_CMD_SRQ1_PD_LSB +: PD_W], xrc: cmd[URDMA_CMD_SRQ1_XRC_LSB], xrcd: xrcd[PD_W-1:0],
                   cqn: cqn[CQN_W-1:0]};

  // ---- checks ----------------------------------------------------------------------------------------------
  assign live = ent.valid && !ent.dying;
  assign qp_ok = live && (qp_srqn >> SRQN_W) == '0 && !ent.held.xrc;
  assign held = is_create ? named : ent.held;
  assign ring_status = check_ring(ring, cmd[URDMA_CMD_SRQ3_ADDR_LSB +: 12], LOG_MAX, 4'd6, 4'd9);

  always_comb begin
    status = 8'(URDMA_CS_OK);
    if ((obj >> SRQN_W) != '0) status = 8'(URDMA_CS_BAD_OBJECT);
    else if (is_create && ent.valid) status = 8'(URDMA_CS_EXISTS);
    else if (!is_create && !live) status = 8'(URDMA_CS_BAD_OBJECT);
    else if (is_destroy && ent.refs != '0) status = 8'(URDMA_CS_BUSY);
    else if (is_modify && 17'(limit) > (17'd1 << ent.log_entries)) status = 8'(URDMA_CS_BAD_ATTR);
    else if (is_create) begin
      if (!pd_ok || (named.xrc && !xrcd_ok)) status = 8'(URDMA_CS_BAD_PD);
      else if (named.xrc && !cq_ok) status = 8'(URDMA_CS_BAD_CQ);
      else if ((page >> DBP_W) != '0) status = 8'(URDMA_CS_BAD_DB_PAGE);
      else status = ring_status;
    end
  end

  // ---- directory -------------------------------------------------------------------------------------------
  logic wr, db_wr, write_op;
  logic [SRQN_W-1:0] wa;
  db_ent_t db_ent, db_wd;

  assign write_op = act && (is_create || is_destroy);
  assign wr = init || write_op || ref_wr || fin;
  assign db_wr = init || write_op;
  always_comb begin
    wa = obj[SRQN_W-1:0];
    wd = '0;
    if (init) wa = init_srqn;
    else if (fin) wa = fin_srqn;
    else if (ref_wr) begin
      wa = ref_srqn;
      wd = ent;
      wd.refs = ent.refs + ref_step;
    end else begin
      wd.valid = 1'b1;
      wd.dying = is_destroy;
      wd.held = named;
      wd.log_entries = ring[URDMA_RING_LOG_ENTRIES_LSB +: 4];
    end
    db_wd = '0;
    if (!init && is_create) db_wd = '{open: 1'b1, page: page[DBP_W-1:0]};
  end

  urdma_ram_sdp #(.WIDTH($bits(ent_t)), .DEPTH(SRQS)) u_dir (
    .clk, .wr_en(wr), .wr_addr(wa), .wr_data(wd),
    .rd_en(look || ref_rd),
    .rd_addr(ref_rd ? ref_srqn : op == 8'(URDMA_CMD_CREATE_QP) ? qp_srqn[SRQN_W-1:0] : obj[SRQN_W-1:0]), .rd_data(ent)
  );

  // ---- doorbells: any cycle may look one up -------------------------------------------------------------------
  logic srq_rsp_valid_reg;
  always_ff @(posedge clk) srq_rsp_valid_reg <= !rst && srq_req_valid;
  assign srq_rsp_valid = srq_rsp_valid_reg;
  assign srq_rsp_open = db_ent.open;
  assign srq_rsp_page = db_ent.page;

  urdma_ram_sdp #(.WIDTH($bits(db_ent_t)), .DEPTH(SRQS)) u_page (
    .clk, .wr_en(db_wr), .wr_addr(wa), .wr_data(db_wd), .rd_en(srq_req_valid), .rd_addr(srq_req_srqn), .rd_data(db_ent)
  );

  // ---- operation -------------------------------------------------------------------------------------------------
  srq_ans_t ans_reg;
  assign ans = ans_reg;
  assign sro_valid = out;
  always_comb begin
    sro = '0;
    if (out) begin
      sro.kind = is_create ? SRO_CREATE : is_modify ? SRO_MODIFY : is_query ? SRO_QUERY : SRO_DESTROY;
      sro.srqn = obj[SRQN_W-1:0];
      if (is_modify) sro.limit = limit;
      if (is_create) begin
        sro.cfg.ring = get_ring(ring, cmd[URDMA_CMD_SRQ3_ADDR_LSB +: 64]);
        sro.cfg.pd = named.pd;
        if (named.xrc) {sro.cfg.xrc, sro.cfg.xrcd, sro.cfg.cqn} = {1'b1, named.xrcd, named.cqn};
      end
    end
  end
  always_ff @(posedge clk) if (out && sro_ready) ans_reg <= is_query ? sro_ans : '0;

  logic unused_bits;
  assign unused_bits = ^cmd;

endmodule

`resetall
