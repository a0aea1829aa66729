// SPDX-License-Identifier: Apache-2.0
// Command queue: fetch, check, execute.
//
//   fetch   DMA reads of up to BATCH commands, several under way, into a buffer of SLOTS commands; a command counts as
//           fetched when the last beat of its read has come without error
//   exec    one command at a time, about 15 cycles: look up the objects it names, check, write the directory and the
//           reference counts, configure the owner (mr, cq, eq), then complete it, or pass it to the QP manager (commands of
//           QPs, SET_GID), or to the fence (destroys, RESIZE_CQ)
//
// urdma_srq_cmd has the directory of SRQs and executes their commands; it follows the steps of exec here.
//
// All checks are made before anything is changed. The directory records which objects exist, which are being destroyed
// (dying), and how many others refer to them; a reference is dropped when its holder is unlinked. Only urdma_mr knows which
// windows are bound to a region, so DESTROY_MR asks it first. If the answer is BUSY, nothing has changed there or here.
// Otherwise new accesses no longer find the region; then the directory is written and the fence begins.
//
// After the fence of a QP's RESET or DESTROY its windows are unbound, one MRO_QP_END after the other: a window of type 2B
// belongs to the QP that bound it, not to the next one with its number.

`resetall
`default_nettype none

module urdma_cmdq
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_ctl_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   init_done,
  output      logic                   busy,

  input  wire logic                   enable,
  input  wire logic [63:0]            base,
  input  wire logic [3:0]             log_size,
  input  wire logic [15:0]            pi,
  output      logic [15:0]            ci,
  output      logic                   err,

  output      logic                   rd_req_valid,
  output      dma_rd_req_t            rd_req,
  input  wire logic                   rd_req_ready,
  input  wire logic                   rd_rsp_valid,
  input  wire dma_rd_rsp_t            rd_rsp,

  // regions and windows: CREATE, DESTROY, QP_END
  output      logic                   mro_valid,
  output      mr_op_t                 mro,
  input  wire logic                   mro_ready,
  input  wire logic                   mro_rsp_valid,
  input  wire mro_status_e            mro_rsp,
  output      logic                   cq_cfg_valid,
  output      logic [CQN_W-1:0]       cq_cfg_cqn,
  output      cq_cfg_t                cq_cfg,
  output      cq_cfg_op_e             cq_cfg_op,
  output      logic [31:0]            cq_cfg_ci,
  input  wire logic                   cq_cfg_ready,
  input  wire cq_resized_t            cq_resized,
  // counters of QPs
  output      logic                   qco_valid,
  output      qc_op_t                 qco,
  input  wire logic                   qco_ready,
  input  wire qc_ans_t                qco_ans,
  output      logic                   eq_cfg_valid,
  output      logic [EQN_W-1:0]       eq_cfg_eqn,
  output      eq_cfg_t                eq_cfg,
  input  wire logic                   eq_cfg_ready,

  // SRQs: operations, and the doorbells' look-up, answered in the next cycle
  output      logic                   sro_valid,
  output      srq_op_t                sro,
  input  wire logic                   sro_ready,
  input  wire srq_ans_t               sro_ans,
  input  wire logic                   srq_req_valid,
  input  wire logic [SRQN_W-1:0]      srq_req_srqn,
  output      logic                   srq_rsp_valid,
  output      logic                   srq_rsp_open,
  output      logic [DBP_W-1:0]       srq_rsp_page,

  // to the QP manager, in order
  output      logic                   job_valid,
  output      logic [511:0]           job,
  input  wire logic                   job_ready,

  output      logic                   fence_valid,
  output      fence_item_t            fence,
  input  wire logic                   fence_ready,
  input  wire logic                   fin_valid,
  input  wire fence_item_t            fin,
  output      logic                   fin_ready,

  output      logic                   cpl_valid,
  output      cpl_t                   cpl,
  input  wire logic                   cpl_ready,
  input  wire logic                   cpl_done       // some command has completed, here or in the QP manager
);

  localparam int BATCH = 16;
  localparam int SLOTS = 64;
  localparam int SW = $clog2(SLOTS);

  // ---- fetch -----------------------------------------------------------------------------------------
  // Free-running indexes: requested, arrived, usable, executed.
  logic [15:0] ask_reg, arrive_reg, usable_reg, exec_reg;
  logic err_reg, rd_req_valid_reg;
  dma_rd_req_t rd_req_reg;

  logic [15:0] avail, size, room, n, in_ring;
  assign size = 16'd1 << log_size;
  assign avail = pi - ask_reg;
  assign in_ring = ask_reg & (size - 16'd1);
  assign room = 16'(SLOTS) - (ask_reg - exec_reg);
  always_comb begin
    n = avail;
    if (n > 16'(BATCH)) n = 16'(BATCH);
    if (n > size - in_ring) n = size - in_ring;
    if (n > room) n = room;
  end

  assign rd_req_valid = rd_req_valid_reg;
  assign rd_req = rd_req_reg;
  assign ci = usable_reg;
  assign err = err_reg;

  always_ff @(posedge clk) begin
    if (rst) begin
      ask_reg <= '0;
      arrive_reg <= '0;
      usable_reg <= '0;
      err_reg <= 1'b0;
      rd_req_valid_reg <= 1'b0;
    end else begin
      if (rd_req_ready) rd_req_valid_reg <= 1'b0;
      if (enable && !err_reg && avail != '0) begin
        // a producer index further ahead than the ring is long is a software error
        if (avail > size) begin
          err_reg <= 1'b1;
        end else if (n != '0 && (!rd_req_valid_reg || rd_req_ready)) begin
          rd_req_valid_reg <= 1'b1;
          rd_req_reg <= '{addr: base + {42'd0, in_ring, 6'd0}, len: {n[6:0], 6'd0}};
          ask_reg <= ask_reg + n;
        end
      end
      if (rd_rsp_valid) begin
        arrive_reg <= arrive_reg + 1'b1;
        if (rd_rsp.last) begin
          if (rd_rsp.err) err_reg <= 1'b1;
          else if (!err_reg) usable_reg <= arrive_reg + 1'b1;
        end
      end
    end
  end

  logic [511:0] cmd;
  logic pop;
  urdma_ram_sdp #(.WIDTH(512), .DEPTH(SLOTS)) cmd_ram (
    .clk(clk),
    .wr_en(rd_rsp_valid), .wr_addr(arrive_reg[SW-1:0]), .wr_data(rd_rsp.data),
    .rd_en(pop), .rd_addr(exec_reg[SW-1:0]), .rd_data(cmd)
  );

  // ---- directory ---------------------------------------------------------------------------------------
  localparam int REF_W = 16;
  typedef struct packed {
    logic             valid;
    logic [REF_W-1:0] refs;    // QPs, MRs, SRQs; XRC SRQs count twice: PD and domain
  } pd_ent_t;
  typedef struct packed {
    logic             valid;
    logic             dying;
    logic [REF_W-1:0] refs;    // CQs
  } eq_ent_t;
  typedef struct packed {
    logic             valid;
    logic             dying;
    logic [EQN_W-1:0] eqn;
    logic [REF_W-1:0] refs;    // QPs, counted twice if used for both queues; XRC SRQs
  } cq_ent_t;
  typedef struct packed {
    logic             valid;
    logic             dying;
    logic [3:0]       qp_type;
    logic             srq;
    logic [SRQN_W-1:0] srqn;
    logic [PD_W-1:0]  pd;
    logic [CQN_W-1:0] scq;
    logic [CQN_W-1:0] rcq;
  } qp_ent_t;
  typedef struct packed {
    logic             valid;
    logic             dying;
    logic [PD_W-1:0]  pd;
  } mr_ent_t;

  typedef enum logic [3:0] {
    X_INIT, X_IDLE, X_DEC, X_LOOK, X_CHECK, X_ACT, X_REF, X_REF_RD, X_REF_WR, X_OUT, X_TOLD, X_MRO, X_MRO_RSP, X_FENCE,
    X_FIN, X_CPL
  } state_e;
  state_e state_reg;

  logic pd_rd, eq_rd, cq_rd, qp_rd, mr_rd, pd_wr, eq_wr, cq_wr, qp_wr, mr_wr;
  logic [PD_W-1:0] pd_ra, pd_wa;
  logic [EQN_W-1:0] eq_ra, eq_wa;
  logic [CQN_W-1:0] cq_ra, cq_wa;
  logic [QPN_W-1:0] qp_ra, qp_wa;
  logic [MRI_W-1:0] mr_ra, mr_wa;
  pd_ent_t pd_ent, pd_wd;
  eq_ent_t eq_ent, eq_wd;
  cq_ent_t cq_ent, cq_wd;
  qp_ent_t qp_ent, qp_wd;
  mr_ent_t mr_ent, mr_wd;

  urdma_ram_sdp #(.WIDTH($bits(pd_ent_t)), .DEPTH(1 << PD_W)) pd_ram (
    .clk(clk), .wr_en(pd_wr), .wr_addr(pd_wa), .wr_data(pd_wd), .rd_en(pd_rd), .rd_addr(pd_ra), .rd_data(pd_ent));
  urdma_ram_sdp #(.WIDTH($bits(eq_ent_t)), .DEPTH(1 << EQN_W)) eq_ram (
    .clk(clk), .wr_en(eq_wr), .wr_addr(eq_wa), .wr_data(eq_wd), .rd_en(eq_rd), .rd_addr(eq_ra), .rd_data(eq_ent));
  urdma_ram_sdp #(.WIDTH($bits(cq_ent_t)), .DEPTH(1 << CQN_W)) cq_ram (
    .clk(clk), .wr_en(cq_wr), .wr_addr(cq_wa), .wr_data(cq_wd), .rd_en(cq_rd), .rd_addr(cq_ra), .rd_data(cq_ent));
  urdma_ram_sdp #(.WIDTH($bits(qp_ent_t)), .DEPTH(1 << QPN_W)) qp_ram (
    .clk(clk), .wr_en(qp_wr), .wr_addr(qp_wa), .wr_data(qp_wd), .rd_en(qp_rd), .rd_addr(qp_ra), .rd_data(qp_ent));
  urdma_ram_sdp #(.WIDTH($bits(mr_ent_t)), .DEPTH(1 << MRI_W)) mr_ram (
    .clk(clk), .wr_en(mr_wr), .wr_addr(mr_wa), .wr_data(mr_wd), .rd_en(mr_rd), .rd_addr(mr_ra), .rd_data(mr_ent));

  // ---- the current command -------------------------------------------------------------------------------
  logic [7:0] op;
  logic [23:0] obj;
  logic is_create, is_destroy, op_pd, op_eq, op_cq, op_qp, op_mr, op_srq, op_known, op_job, op_mcast, op_resize, op_bind, op_cnt;
  assign op = cmd[URDMA_CMD0_OPCODE_LSB +: URDMA_CMD0_OPCODE_W];
  assign obj = cmd[URDMA_CMD0_OBJ_LSB +: URDMA_CMD0_OBJ_W];

  always_comb begin
    {is_create, is_destroy, op_pd, op_eq, op_cq, op_qp, op_mr, op_srq, op_job, op_mcast, op_resize, op_bind, op_cnt} = '0;
    op_known = 1'b1;
    unique case (op)
      8'(URDMA_CMD_NOP): ;
      8'(URDMA_CMD_ALLOC_PD): {op_pd, is_create} = '1;
      8'(URDMA_CMD_DEALLOC_PD): {op_pd, is_destroy} = '1;
      8'(URDMA_CMD_CREATE_EQ): {op_eq, is_create} = '1;
      8'(URDMA_CMD_DESTROY_EQ): {op_eq, is_destroy} = '1;
      8'(URDMA_CMD_CREATE_CQ): {op_cq, is_create} = '1;
      8'(URDMA_CMD_DESTROY_CQ): {op_cq, is_destroy} = '1;
      8'(URDMA_CMD_MODIFY_CQ): op_cq = 1'b1;
      8'(URDMA_CMD_RESIZE_CQ): {op_cq, op_resize} = '1;
      8'(URDMA_CMD_CREATE_QP): {op_qp, is_create, op_job} = '1;
      8'(URDMA_CMD_DESTROY_QP): {op_qp, is_destroy, op_job} = '1;
      8'(URDMA_CMD_MODIFY_QP), 8'(URDMA_CMD_QUERY_QP): {op_qp, op_job} = '1;
      8'(URDMA_CMD_ATTACH_MCAST), 8'(URDMA_CMD_DETACH_MCAST): {op_qp, op_job, op_mcast} = '1;
      8'(URDMA_CMD_SET_QP_CNT): {op_qp, op_bind} = '1;
      8'(URDMA_CMD_QUERY_CNT), 8'(URDMA_CMD_CLEAR_CNT): op_cnt = 1'b1;
      8'(URDMA_CMD_CREATE_MR): {op_mr, is_create} = '1;
      8'(URDMA_CMD_DESTROY_MR): {op_mr, is_destroy} = '1;
      8'(URDMA_CMD_SET_GID): op_job = 1'b1;
      8'(URDMA_CMD_CREATE_SRQ): {op_srq, is_create, op_known} = 3'b111;
      8'(URDMA_CMD_DESTROY_SRQ): {op_srq, is_destroy, op_known} = 3'b111;
      8'(URDMA_CMD_MODIFY_SRQ), 8'(URDMA_CMD_QUERY_SRQ): {op_srq, op_known} = 2'b11;
      default: op_known = 1'b0;
    endcase
  end

  // ---- checks ----------------------------------------------------------------------------------------------
  localparam int CNT_GROUPS = (URDMA_QCNT_N + URDMA_QCNT_GROUP - 1) / URDMA_QCNT_GROUP;
  logic [15:0] c_pd, c_set;
  logic [7:0] c_group;
  logic [3:0] c_type;
  logic [23:0] c_scq, c_rcq;
  logic [EQN_W-1:0] c_eqn;
  logic [11:0] c_dbp;
  logic pd_ok_reg, scq_ok_reg, own_in_range, own_exists, own_live, own_used, xrcd_ok, eq_ok, rcq_ok;
  logic [15:0] c_xrcd;
  logic [3:0] ref_type;
  logic [ACC_W-1:0] mr_acc;
  logic [1:0] mr_levels;
  logic [5:0] mr_shift;
  logic [63:0] mr_va, mr_len, mr_addr, mr_last;
  logic mr_all;
  logic [1:0] mr_kind;
  logic [7:0] status, status_reg, sq_status, rq_status, ring_status, srq_status;
  logic c_srq, srq_ok;
  logic [23:0] srq_cqn;
  srq_held_t srq_held;
  srq_ans_t srq_ans;

  always_comb begin
    unique case (1'b1)
      op_qp: c_pd = cmd[URDMA_CMD_QP1_PD_LSB +: URDMA_CMD_QP1_PD_W];
      op_srq: c_pd = cmd[URDMA_CMD_SRQ1_PD_LSB +: URDMA_CMD_SRQ1_PD_W];
      default: c_pd = cmd[URDMA_CMD_MR1_PD_LSB +: URDMA_CMD_MR1_PD_W];
    endcase
  end
  assign c_srq = cmd[URDMA_CMD_QP1_SRQ_LSB];
  assign c_type = cmd[URDMA_CMD_QP1_TYPE_LSB +: URDMA_CMD_QP1_TYPE_W];
  assign c_scq = cmd[URDMA_CMD_QP1_SEND_CQ_LSB +: URDMA_CMD_QP1_SEND_CQ_W];
  assign c_rcq = op_srq ? srq_cqn : cmd[URDMA_CMD_QP2_RECV_CQ_LSB +: URDMA_CMD_QP2_RECV_CQ_W];
  assign c_eqn = cmd[URDMA_CMD_CQ1_EQN_LSB +: URDMA_CMD_CQ1_EQN_W];
  assign c_dbp = op_qp ? cmd[URDMA_CMD_QP1_DB_PAGE_LSB +: URDMA_CMD_QP1_DB_PAGE_W]
                       : cmd[URDMA_CMD_CQ1_DB_PAGE_LSB +: URDMA_CMD_CQ1_DB_PAGE_W];
  assign c_set = cmd[URDMA_CMD_QPC1_SET_LSB +: URDMA_CMD_QPC1_SET_W];
  assign c_group = cmd[URDMA_CMD_QCNT1_GROUP_LSB +: URDMA_CMD_QCNT1_GROUP_W];
  assign mr_acc = cmd[URDMA_CMD_MR1_ACCESS_LSB +: URDMA_CMD_MR1_ACCESS_W];
  assign mr_levels = cmd[URDMA_CMD_MR1_LEVELS_LSB +: URDMA_CMD_MR1_LEVELS_W];
  assign mr_shift = cmd[URDMA_CMD_MR1_PAGE_SHIFT_LSB +: URDMA_CMD_MR1_PAGE_SHIFT_W];
  assign mr_all = cmd[URDMA_CMD_MR1_ALL_LSB];
  assign mr_kind = cmd[URDMA_CMD_MR1_KIND_LSB +: URDMA_CMD_MR1_KIND_W];
  assign mr_va = cmd[URDMA_CMD_MR2_VA_LSB +: 64];
  assign mr_len = cmd[URDMA_CMD_MR3_LENGTH_LSB +: 64];
  assign mr_addr = cmd[URDMA_CMD_MR4_ADDR_LSB +: 64];
  assign mr_last = mr_va + mr_len - 64'd1;

  // used in X_CHECK only
  always_comb begin
    own_in_range = 1'b1;
    own_exists = 1'b0;
    own_live = 1'b0;
    own_used = 1'b0;
    unique case (1'b1)
      op_pd: begin
        own_in_range = (obj >> PD_W) == '0;
        own_exists = pd_ent.valid;
        own_live = pd_ent.valid;
        own_used = pd_ent.refs != '0;
      end
      op_eq: begin
        own_in_range = (obj >> EQN_W) == '0;
        own_exists = eq_ent.valid;
        own_live = eq_ent.valid && !eq_ent.dying;
        own_used = eq_ent.refs != '0;
      end
      op_cq: begin
        own_in_range = (obj >> CQN_W) == '0;
        own_exists = cq_ent.valid;
        own_live = cq_ent.valid && !cq_ent.dying;
        own_used = cq_ent.refs != '0;
      end
      op_qp: begin
        own_in_range = (obj >> QPN_W) == '0;
        own_exists = qp_ent.valid;
        own_live = qp_ent.valid && !qp_ent.dying;
      end
      op_mr: begin
        own_in_range = (obj >> MRI_W) == '0;
        own_exists = mr_ent.valid;
        own_live = mr_ent.valid && !mr_ent.dying;
      end
      op_cnt: own_in_range = (obj >> CSET_W) == '0;
      default: own_in_range = op != 8'(URDMA_CMD_SET_GID) || (obj >> GID_W) == '0;
    endcase
    xrcd_ok = (c_xrcd >> PD_W) == '0 && pd_ent.valid;
    eq_ok = eq_ent.valid && !eq_ent.dying;
    rcq_ok = (c_rcq >> CQN_W) == '0 && cq_ent.valid && !cq_ent.dying;
  end

  always_comb begin
    status = 8'(URDMA_CS_OK);
    sq_status = 8'(URDMA_CS_OK);
    rq_status = 8'(URDMA_CS_OK);
    ring_status = check_ring(cmd[URDMA_CMD_CQ1_RING_LSB +: URDMA_CMD_CQ1_RING_W], cmd[URDMA_CMD_CQ2_ADDR_LSB +: 12],
                             5'd20, 4'd5, 4'd5);
    if (state_reg == X_CHECK) begin
      if (!op_known) status = 8'(URDMA_CS_BAD_OPCODE);
      else if (op_srq) status = srq_status;
      else if (!own_in_range) status = 8'(URDMA_CS_BAD_OBJECT);
      else if (is_create && own_exists) status = 8'(URDMA_CS_EXISTS);
      else if ((is_destroy || op_qp || op_cq) && !is_create && !own_live) status = 8'(URDMA_CS_BAD_OBJECT);
      else if (is_destroy && own_used) status = 8'(URDMA_CS_BUSY);
      else if (op_resize) status = ring_status;
      else if (op_bind && (c_set >> CSET_W) != '0) status = 8'(URDMA_CS_BAD_ATTR);
      else if (op == 8'(URDMA_CMD_QUERY_CNT) && c_group >= 8'(CNT_GROUPS)) status = 8'(URDMA_CS_BAD_ATTR);
      else if (op_mcast && qp_ent.qp_type != 4'(URDMA_QPT_UD)) status = 8'(URDMA_CS_BAD_ATTR);
      else if (is_create) begin
        unique case (1'b1)
          op_eq: begin
            if (cmd[URDMA_CMD_EQ1_LOG_ENTRIES_LSB +: URDMA_CMD_EQ1_LOG_ENTRIES_W] > 5'd16)
              status = 8'(URDMA_CS_BAD_SIZE);
            else if (cmd[URDMA_CMD_EQ2_ADDR_LSB +: 12] != '0) status = 8'(URDMA_CS_BAD_ALIGN);
          end
          op_cq: begin
            if (!eq_ok) status = 8'(URDMA_CS_BAD_EQ);
            else if ((c_dbp >> DBP_W) != '0) status = 8'(URDMA_CS_BAD_DB_PAGE);
            else status = ring_status;
          end
          op_qp: begin
            // a UD WQE has its data after the destination, at byte 96
            sq_status = check_ring(cmd[URDMA_CMD_QP3_SQ_RING_LSB +: URDMA_CMD_QP3_SQ_RING_W],
                                   cmd[URDMA_CMD_QP4_SQ_ADDR_LSB +: 12], 5'd15,
                                   c_type == 4'(URDMA_QPT_UD) ? 4'd7 : 4'd6, 4'd9);
            rq_status = check_ring(cmd[URDMA_CMD_QP5_RQ_RING_LSB +: URDMA_CMD_QP5_RQ_RING_W],
                                   cmd[URDMA_CMD_QP6_RQ_ADDR_LSB +: 12], 5'd15, 4'd6, 4'd9);
            if (!pd_ok_reg) status = 8'(URDMA_CS_BAD_PD);
            else if ((has_sq(c_type) && !scq_ok_reg) || (has_rq(c_type) && !rcq_ok)) status = 8'(URDMA_CS_BAD_CQ);
            else if (c_srq && !has_rq(c_type)) status = 8'(URDMA_CS_BAD_ATTR);
            else if (c_srq && !srq_ok) status = 8'(URDMA_CS_BAD_SRQ);
            else if ((c_dbp >> DBP_W) != '0) status = 8'(URDMA_CS_BAD_DB_PAGE);
            else if (!type_ok(c_type)) status = 8'(URDMA_CS_BAD_ATTR);
            else if (has_sq(c_type) && sq_status != 8'(URDMA_CS_OK)) status = sq_status;
            else if (has_rq(c_type) && !c_srq) status = rq_status;
          end
          op_mr: begin
            if (!pd_ok_reg) status = 8'(URDMA_CS_BAD_PD);
            // the other fields are not used for a region or window that is not usable yet
            else if (mr_kind != 2'(URDMA_MRK_REGION)) ;
            // remote write requires local write (volume 1, 10.6.3)
            else if (!mr_acc[URDMA_ACC_LOCAL_WRITE_LSB]
                     && (mr_acc[URDMA_ACC_REMOTE_WRITE_LSB] || mr_acc[URDMA_ACC_REMOTE_ATOMIC_LSB]))
              status = 8'(URDMA_CS_BAD_ATTR);
            else if (!mr_all) begin
              // an empty region has no last byte
              if (mr_levels == 2'd3 || mr_shift < 6'd12 || mr_shift > 6'd31 || (mr_len != '0 && mr_last < mr_va))
                status = 8'(URDMA_CS_BAD_SIZE);
              else if (mr_levels == 2'd0 ? (mr_addr[11:3] != '0 && !mr_addr[63]) || mr_addr[2:0] != '0 : mr_addr[5:0] != '0)
                status = 8'(URDMA_CS_BAD_ALIGN);
            end
          end
          default: ;
        endcase
      end
    end
  end

  // ---- execution ---------------------------------------------------------------------------------------------
  logic [6:0] inflight_reg;
  logic [MRI_W-1:0] sweep_reg;
  logic fin_reg;                                   // X_CPL: of a fenced command
  logic [5:0] ref_reg;                             // references to count: PD, send CQ, receive CQ, EQ, SRQ, XRC domain
  logic [PD_W-1:0] ref_pd_reg, ref_xrcd_reg;
  logic [CQN_W-1:0] ref_scq_reg, ref_rcq_reg;
  logic [EQN_W-1:0] ref_eqn_reg;
  logic [SRQN_W-1:0] ref_srqn_reg;
  logic ref_is_pd, ref_is_scq, ref_is_eq, ref_is_srq;
  logic [REF_W-1:0] ref_step;

  assign pop = state_reg == X_IDLE && !fin_valid && exec_reg != usable_reg && inflight_reg != 7'(CMD_INFLIGHT);
  assign ref_is_pd = ref_reg[0] || ref_reg[4:0] == '0;
  assign ref_is_scq = ref_reg[1];
  assign ref_is_eq = ref_reg[3] && ref_reg[2:0] == '0;
  assign ref_is_srq = ref_reg[4] && ref_reg[3:0] == '0;
  assign ref_type = is_create ? c_type : qp_ent.qp_type;
  assign ref_step = is_create ? REF_W'(1) : '1;

  always_comb begin
    {pd_rd, eq_rd, cq_rd, qp_rd, mr_rd, pd_wr, eq_wr, cq_wr, qp_wr, mr_wr} = '0;
    pd_ra = (op_pd ? obj[PD_W-1:0] : c_pd[PD_W-1:0]);
    eq_ra = (op_eq ? obj[EQN_W-1:0] : c_eqn);
    cq_ra = (op_cq ? obj[CQN_W-1:0] : c_scq[CQN_W-1:0]);
    qp_ra = obj[QPN_W-1:0];
    mr_ra = obj[MRI_W-1:0];
    pd_wa = obj[PD_W-1:0];
    eq_wa = obj[EQN_W-1:0];
    cq_wa = obj[CQN_W-1:0];
    qp_wa = obj[QPN_W-1:0];
    mr_wa = obj[MRI_W-1:0];
    pd_wd = '0;
    eq_wd = '0;
    cq_wd = '0;
    qp_wd = '0;
    mr_wd = '0;
    unique case (state_reg)
      X_INIT: begin
        {pd_wr, eq_wr, cq_wr, qp_wr, mr_wr} = '1;
        pd_wa = sweep_reg[PD_W-1:0];
        eq_wa = sweep_reg[EQN_W-1:0];
        cq_wa = sweep_reg[CQN_W-1:0];
        qp_wa = sweep_reg[QPN_W-1:0];
        mr_wa = sweep_reg;
      end
      X_DEC: {pd_rd, eq_rd, cq_rd, qp_rd, mr_rd} = '1;
      X_LOOK: begin
        cq_rd = op_qp || op_srq;
        cq_ra = c_rcq[CQN_W-1:0];
        pd_rd = op_srq;
        pd_ra = c_xrcd[PD_W-1:0];
      end
      X_ACT: begin
        if (status_reg == 8'(URDMA_CS_OK) && (is_create || is_destroy)) begin
          pd_wr = op_pd;
          pd_wd = '{valid: is_create, refs: '0};
          eq_wr = op_eq;
          eq_wd = '{valid: 1'b1, dying: is_destroy, refs: '0};
          cq_wr = op_cq;
          cq_wd = '{valid: 1'b1, dying: is_destroy, eqn: ref_eqn_reg, refs: '0};
          qp_wr = op_qp;
          qp_wd = '{valid: 1'b1, dying: is_destroy, qp_type: c_type, srq: c_srq, srqn: ref_srqn_reg,
                    pd: ref_pd_reg, scq: ref_scq_reg, rcq: ref_rcq_reg};
          mr_wr = op_mr;
          mr_wd = '{valid: 1'b1, dying: is_destroy, pd: ref_pd_reg};
        end
      end
      X_REF_RD: begin
        pd_rd = ref_is_pd;
        pd_ra = ref_reg[0] ? ref_pd_reg : ref_xrcd_reg;
        cq_rd = !ref_reg[0] && (ref_reg[1] || ref_reg[2]);
        cq_ra = ref_is_scq ? ref_scq_reg : ref_rcq_reg;
        eq_rd = ref_is_eq;
        eq_ra = ref_eqn_reg;
      end
      X_REF_WR: begin
        pd_wr = ref_is_pd;
        pd_wa = ref_reg[0] ? ref_pd_reg : ref_xrcd_reg;
        pd_wd = '{valid: pd_ent.valid, refs: pd_ent.refs + ref_step};
        cq_wr = !ref_reg[0] && (ref_reg[1] || ref_reg[2]);
        cq_wa = ref_is_scq ? ref_scq_reg : ref_rcq_reg;
        cq_wd = cq_ent;
        cq_wd.refs = cq_ent.refs + ref_step;
        eq_wr = ref_is_eq;
        eq_wa = ref_eqn_reg;
        eq_wd = eq_ent;
        eq_wd.refs = eq_ent.refs + ref_step;
      end
      X_FIN: begin
        eq_wr = fin.kind == FK_EQ;
        cq_wr = fin.kind == FK_CQ;
        qp_wr = fin.kind == FK_QP;
        mr_wr = fin.kind == FK_MR;
        eq_wa = fin.obj[EQN_W-1:0];
        cq_wa = fin.obj[CQN_W-1:0];
        qp_wa = fin.obj[QPN_W-1:0];
        mr_wa = fin.obj[MRI_W-1:0];
      end
      default: ;
    endcase
  end

  logic out_done, mro_end, told_reg, told_last;
  state_e mro_next;
  assign told_last = state_reg == X_TOLD && told_reg;
  assign out_done = (!op_eq || eq_cfg_ready) && (!op_cq || cq_cfg_ready) && (!op_srq || sro_ready)
                    && (!(op_bind || op_cnt) || qco_ready);

  always_ff @(posedge clk) begin
    if (state_reg == X_LOOK) begin
      pd_ok_reg <= (c_pd >> PD_W) == '0 && pd_ent.valid;
      scq_ok_reg <= (c_scq >> CQN_W) == '0 && cq_ent.valid && !cq_ent.dying;
    end
    if (state_reg == X_CHECK) begin
      status_reg <= status;
      // for a creation, the objects that the command names; for a destruction, those in the directory
      ref_pd_reg <= op_srq ? srq_held.pd : is_create ? c_pd[PD_W-1:0] : op_qp ? qp_ent.pd : mr_ent.pd;
      ref_xrcd_reg <= srq_held.xrcd;
      ref_srqn_reg <= is_create ? cmd[URDMA_CMD_QP5_SRQN_LSB +: SRQN_W] : qp_ent.srqn;
      ref_scq_reg <= is_create ? c_scq[CQN_W-1:0] : qp_ent.scq;
      ref_rcq_reg <= op_srq ? srq_held.cqn : is_create ? c_rcq[CQN_W-1:0] : qp_ent.rcq;
      ref_eqn_reg <= is_create ? c_eqn : cq_ent.eqn;
      ref_reg <= '0;
      if (is_create || is_destroy)
        ref_reg <= {op_srq && srq_held.xrc, op_qp && (is_create ? c_srq : qp_ent.srq), op_cq,
                    (op_qp && has_rq(ref_type)) || (op_srq && srq_held.xrc), op_qp && has_sq(ref_type),
                    op_qp || op_mr || op_srq};
    end
    if ((mro_end && mro_rsp != MRO_OK) || (told_last && cq_resized.busy)) status_reg <= 8'(URDMA_CS_BUSY);
    told_reg <= state_reg == X_TOLD;
    if (rst) begin
      state_reg <= X_INIT;
      sweep_reg <= '0;
      exec_reg <= '0;
      inflight_reg <= '0;
      fin_reg <= 1'b0;
    end else begin
      if (pop && !cpl_done) inflight_reg <= inflight_reg + 1'b1;
      else if (cpl_done && !pop) inflight_reg <= inflight_reg - 1'b1;
      unique case (state_reg)
        X_INIT: begin
          sweep_reg <= sweep_reg + 1'b1;
          if (sweep_reg == '1) state_reg <= X_IDLE;
        end
        X_IDLE: begin
          fin_reg <= fin_valid;
          if (fin_valid) begin
            state_reg <= (fin.kind == FK_QP || fin.kind == FK_RESET) ? X_MRO : X_FIN;
          end else if (pop) begin
            exec_reg <= exec_reg + 1'b1;
            state_reg <= X_DEC;
          end
        end
        X_DEC: state_reg <= X_LOOK;
        X_LOOK: state_reg <= X_CHECK;
        X_CHECK: state_reg <= (op_mr && is_destroy && status == 8'(URDMA_CS_OK)) ? X_MRO : X_ACT;
        X_ACT: state_reg <= (status_reg != 8'(URDMA_CS_OK)) ? X_CPL : X_REF;
        X_REF: state_reg <= (ref_reg == '0) ? X_OUT : X_REF_RD;
        X_REF_RD: state_reg <= X_REF_WR;
        X_REF_WR: begin
          ref_reg <= ref_reg & (ref_reg - 1'b1);
          state_reg <= X_REF;
        end
        X_OUT: begin
          if (op_job) state_reg <= X_IDLE;
          else if (op_mr && is_create) state_reg <= X_MRO;
          else if (op_resize) state_reg <= out_done ? X_TOLD : X_OUT;
          else if (out_done) state_reg <= (is_destroy && !op_pd) ? X_FENCE : X_CPL;
        end
        // RESIZE_CQ: the CQ answers in the second cycle
        X_TOLD: if (told_last) state_reg <= cq_resized.busy ? X_CPL : X_FENCE;
        // A creation ends with the operation, a destruction begins with it; QP_END repeats until no window is left.
        X_MRO: begin
          if (mro_end) state_reg <= mro_next;
          else if (mro_ready) state_reg <= X_MRO_RSP;
        end
        X_MRO_RSP: if (mro_end) state_reg <= mro_next;
        X_FENCE: if (fence_ready) state_reg <= X_IDLE;
        // a destroyed QP has no counter set
        X_FIN: if (fin.kind != FK_QP || qco_ready) state_reg <= X_CPL;
        default: if (cpl_ready) state_reg <= X_IDLE;  // X_CPL
      endcase
    end
  end

  assign eq_cfg_valid = state_reg == X_OUT && op_eq;
  assign eq_cfg_eqn = obj[EQN_W-1:0];
  always_comb begin
    eq_cfg = '0;
    if (eq_cfg_valid && is_create) begin
      eq_cfg.valid = 1'b1;
      eq_cfg.log_entries = cmd[URDMA_CMD_EQ1_LOG_ENTRIES_LSB +: URDMA_CMD_EQ1_LOG_ENTRIES_W];
      eq_cfg.addr = cmd[URDMA_CMD_EQ2_ADDR_LSB +: 64];
      eq_cfg.vec = cmd[URDMA_CMD_EQ1_VECTOR_LSB +: URDMA_CMD_EQ1_VECTOR_W];
    end
  end

  assign cq_cfg_valid = state_reg == X_OUT && op_cq;
  assign cq_cfg_cqn = obj[CQN_W-1:0];
  always_comb begin
    cq_cfg = '0;
    cq_cfg_op = CQO_SET;
    if (op_resize) cq_cfg_op = CQO_RESIZE;
    else if (!is_create && !is_destroy) cq_cfg_op = CQO_MODERATE;
    if (cq_cfg_valid && !is_destroy) begin
      cq_cfg.valid = 1'b1;
      cq_cfg.ring = get_ring(cmd[URDMA_CMD_CQ1_RING_LSB +: URDMA_CMD_CQ1_RING_W], cmd[URDMA_CMD_CQ2_ADDR_LSB +: 64]);
      cq_cfg.eqn = c_eqn;
      cq_cfg.db_page = c_dbp[DBP_W-1:0];
      cq_cfg.overrun = cmd[URDMA_CMD_CQ1_OVERRUN_LSB];
    end
    if (cq_cfg_op == CQO_MODERATE) begin
      cq_cfg.count = cmd[URDMA_CMD_MCQ1_COUNT_LSB +: URDMA_CMD_MCQ1_COUNT_W];
      cq_cfg.period = cmd[URDMA_CMD_MCQ1_PERIOD_LSB +: URDMA_CMD_MCQ1_PERIOD_W];
    end
  end
  assign cq_cfg_ci = cmd[URDMA_CMD_RCQ3_CI_LSB +: URDMA_CMD_RCQ3_CI_W];

  // ---- SRQs ----------------------------------------------------------------------------------------------------
  urdma_srq_cmd srq_cmd (
    .clk, .rst, .init(state_reg == X_INIT), .init_srqn(sweep_reg[SRQN_W-1:0]),
    .cmd, .look(state_reg == X_DEC), .xrcd(c_xrcd), .cqn(srq_cqn), .pd_ok(pd_ok_reg), .xrcd_ok, .cq_ok(rcq_ok),
    .status(srq_status), .qp_ok(srq_ok), .held(srq_held),
    .act(state_reg == X_ACT && status_reg == 8'(URDMA_CS_OK)), .out(state_reg == X_OUT && op_srq), .ans(srq_ans),
    .ref_rd(state_reg == X_REF_RD && ref_is_srq), .ref_wr(state_reg == X_REF_WR && ref_is_srq),
    .ref_srqn(ref_srqn_reg), .ref_step, .fin(state_reg == X_FIN && fin.kind == FK_SRQ), .fin_srqn(fin.obj[SRQN_W-1:0]),
    .sro_valid, .sro, .sro_ready, .sro_ans,
    .srq_req_valid, .srq_req_srqn, .srq_rsp_valid, .srq_rsp_open, .srq_rsp_page
  );

  // ---- counters of QPs -------------------------------------------------------------------------------------------
  qc_ans_t qc_ans_reg;
  assign qco_valid = (state_reg == X_OUT && (op_bind || op_cnt)) || (state_reg == X_FIN && fin.kind == FK_QP);
  always_comb begin
    qco = '{kind: QCO_BIND, qpn: obj[QPN_W-1:0], cset: c_set[CSET_W-1:0], group: c_group[1:0]};
    if (fin_reg) begin
      qco.qpn = fin.obj[QPN_W-1:0];
      qco.cset = '0;
    end else if (op_cnt) begin
      qco.kind = op == 8'(URDMA_CMD_QUERY_CNT) ? QCO_QUERY : QCO_CLEAR;
      qco.cset = obj[CSET_W-1:0];
    end
  end
  always_ff @(posedge clk) if (qco_ready) qc_ans_reg <= qco_ans;

  assign mro_valid = state_reg == X_MRO;
  always_comb begin
    if (fin_reg) mro_next = (mro_rsp == MRO_BUSY) ? X_MRO : X_FIN;
    else mro_next = is_create ? X_CPL : X_ACT;
  end
  assign mro_end = mro_rsp_valid && (state_reg == X_MRO_RSP || (mro_valid && mro_ready));
  always_comb begin
    mro = '0;
    if (mro_valid) begin
      mro.op = fin_reg ? MRO_QP_END : is_create ? MRO_CREATE : MRO_DESTROY;
      mro.key[8 +: 24] = fin_reg ? '0 : obj;
      mro.qpn = fin_reg ? fin.obj[QPN_W-1:0] : '0;
      if (!fin_reg && is_create) begin
        mro.kind = mr_kind;
        mro.key[7:0] = cmd[URDMA_CMD_MR1_VARIANT_LSB +: URDMA_CMD_MR1_VARIANT_W];
        mro.pd = c_pd[PD_W-1:0];
      end
      if (!fin_reg && is_create && mr_kind == 2'(URDMA_MRK_REGION)) begin
        mro.acc = mr_acc;
        mro.all = mr_all;
        mro.zero_based = cmd[URDMA_CMD_MR1_ZERO_BASED_LSB];
        mro.va = mr_va;
        mro.len = mr_len;
        mro.pt = '{addr: mr_addr, levels: mr_levels, page_shift: mr_shift};
      end
    end
  end

  // Never full: at most CMD_INFLIGHT commands are under way.
  urdma_fifo #(.WIDTH(512), .DEPTH(CMD_INFLIGHT), .OUT_REG(1)) job_fifo (
    .clk(clk), .rst(rst),
    .in_valid(state_reg == X_OUT && op_job), .in_ready(), .in_data(cmd),
    .out_valid(job_valid), .out_ready(job_ready), .out_data(job), .count()
  );

  assign fence_valid = state_reg == X_FENCE;
  fence_kind_e fence_kind;
  assign fence_kind = op_eq ? FK_EQ : op_resize ? FK_RESIZE : op_cq ? FK_CQ : op_srq ? FK_SRQ : FK_MR;
  assign fence = '{kind: fence_kind, tag: cmd[URDMA_CMD0_TAG_LSB +: URDMA_CMD0_TAG_W], obj: obj, ev: cmd[URDMA_CMD0_EVENT_LSB],
                   cq_base: op_resize ? cq_resized.base : '0};

  assign cpl_valid = state_reg == X_CPL;
  assign fin_ready = cpl_valid && fin_reg && cpl_ready;
  always_comb begin
    cpl = '0;
    if (fin_reg) begin
      cpl.tag = fin.tag;
      cpl.obj = fin.obj;
      cpl.ev = fin.ev;
      cpl.cq_base = fin.cq_base;
    end else begin
      cpl.status = status_reg;
      cpl.tag = cmd[URDMA_CMD0_TAG_LSB +: URDMA_CMD0_TAG_W];
      cpl.obj = obj;
      cpl.ev = cmd[URDMA_CMD0_EVENT_LSB];
      if (op_srq && status_reg == 8'(URDMA_CS_OK)) cpl.srq = srq_ans;
      if (op_cnt && status_reg == 8'(URDMA_CS_OK)) cpl.qc = qc_ans_reg;
    end
  end

`ifndef SYNTHESIS
  // the directory knows which regions exist
  always_ff @(posedge clk)
    if (!rst && mro_end) a_mro: assert (mro_rsp == MRO_OK || ((fin_reg || is_destroy) && mro_rsp == MRO_BUSY))
      else $error("%m: urdma_mr and the directory differ");
`endif

  assign init_done = state_reg != X_INIT;
  // reads under way count as busy, because their answers start work; after an error they do not
  assign busy = state_reg != X_IDLE || (enable && !err_reg && avail != '0) || rd_req_valid_reg
                || (!err_reg && ask_reg != arrive_reg) || exec_reg != usable_reg || inflight_reg != '0;

endmodule

`resetall
