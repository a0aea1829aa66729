// SPDX-License-Identifier: Apache-2.0
// QP manager: the one writer of QP configurations and of the GID table, and the sender of QP control messages.
//
// One job at a time: an error reported by the data path, the finish of a destroy or reset after its fence, or a command from
// urdma_cmdq, with this priority. A job reads the configuration, decides, writes it, sends messages to the owners (tx,
// responder, requester completion), and raises the event. So the configuration is visible before the message, and the message
// is accepted before the completion.
//
// qp_err never waits for a job: a QP has at most one report of each kind waiting (error, COMM_EST, SQ_DRAINED, LAST_WQE), and
// there is a place for each. See README.md, "No cycle of waiting".

`resetall
`default_nettype none

module urdma_qp_mgr
  import urdma_pkg::*, urdma_hw_pkg::*, urdma_ctl_pkg::*;
(
  input  wire logic                        clk,
  input  wire logic                        rst,
  output      logic                        init_done,
  output      logic                        busy,

  // commands: CREATE_QP, DESTROY_QP (unlink), MODIFY_QP, QUERY_QP, SET_GID; object known to exist or be free
  input  wire logic                        job_valid,
  input  wire logic [511:0]                job,
  output      logic                        job_ready,
  output      logic                        cpl_valid,
  output      cpl_t                        cpl,
  input  wire logic                        cpl_ready,
  // to the fence
  output      logic                        fence_valid,
  output      fence_item_t                 fence,
  // from the fence: forget the state of a QP
  input  wire logic                        fin_valid,
  input  wire logic [QPN_W-1:0]            fin_qpn,
  output      logic                        fin_ready,

  input  wire logic [QPE_N-1:0]            qp_err_valid,
  input  wire qp_err_t [QPE_N-1:0]         qp_err,
  output      logic [QPE_N-1:0]            qp_err_ready,
  output      logic                        ev_valid,
  output      eqe_req_t                    ev,
  input  wire logic                        ev_ready,

  // owners: 0 tx, 1 responder, 2 requester completion
  output      logic [2:0]                  qpc_valid,
  output      qpc_t [2:0]                  qpc,
  input  wire logic [2:0]                  qpc_ready,
  input  wire qpc_rsp_t [2:0]              qpc_rsp,

  input  wire logic [QPR_N-1:0]            qpr_req_valid,
  input  wire logic [QPR_N-1:0][QPN_W-1:0] qpr_req_qpn,
  output      logic [QPR_N-1:0]            qpr_req_ready,
  output      logic [QPR_N-1:0]            qpr_rsp_valid,
  output      qp_cfg_t                     qpr_rsp,

  input  wire logic [2:0][GID_W-1:0]       gid_idx,
  output      gid_t [2:0]                  gid,
  output      logic                        gid_wr_valid,
  output      logic [GID_W-1:0]            gid_wr_idx,
  output      gid_t                        gid_wr
);

  gid_t [2:0] gid_reg;
  assign gid = gid_reg;

  localparam int QPS = 1 << QPN_W;
  localparam int TX = 0;
  localparam int RX = 1;
  localparam int AK = 2;
  localparam int MAX_RD_ATOMIC = 1 << RDA_W;  // CAP_XPORT

  // Stored with the configuration: a reset is under way (set by MODIFY_QP, cleared by its finish).
  typedef struct packed {
    logic    resetting;
    qp_cfg_t cfg;
  } entry_t;

  typedef enum logic [2:0] {M_INIT, M_IDLE, M_READ, M_DATA, M_EXEC, M_QPC, M_EV, M_END} state_e;
  typedef enum logic [1:0] {SRC_ERR, SRC_FIN, SRC_JOB} src_e;

  state_e state_reg;
  src_e src_reg;
  logic [QPN_W-1:0] qpn_reg;
  logic [7:0] err_type_reg;
  logic err_only_event_reg;

  // ---- configuration memory, its readers -------------------------------------------------------------
  logic [QPR_N:0] rd_req, rd_grant, rd_grant_reg;
  logic [QPN_W-1:0] rd_addr;
  logic rd_any;
  entry_t rd_entry;
  logic [$clog2(QPR_N+1)-1:0] rd_idx;

  assign rd_req = {state_reg == M_READ, (state_reg == M_INIT) ? QPR_N'(0) : qpr_req_valid};
  assign qpr_req_ready = rd_grant[QPR_N-1:0];
  always_comb begin
    if (rd_idx == ($clog2(QPR_N+1))'(QPR_N)) rd_addr = qpn_reg;
    else rd_addr = qpr_req_qpn[rd_idx[$clog2(QPR_N)-1:0]];
  end

  urdma_arb_rr #(.N(QPR_N + 1)) rd_arb (
    .clk(clk), .rst(rst),
    .req(rd_req), .advance(1'b1),
    .grant(rd_grant), .grant_idx(rd_idx), .grant_valid(rd_any)
  );

  logic wr_en;
  logic [QPN_W-1:0] wr_addr, sweep_reg;
  entry_t wr_entry;
  urdma_ram_sdp #(.WIDTH($bits(entry_t)), .DEPTH(QPS)) cfg_ram (
    .clk(clk),
    .wr_en(wr_en), .wr_addr(wr_addr), .wr_data(wr_entry),
    .rd_en(rd_any), .rd_addr(rd_addr), .rd_data(rd_entry)
  );

  always_ff @(posedge clk) begin
    if (rst) rd_grant_reg <= '0;
    else rd_grant_reg <= rd_grant;
  end
  assign qpr_rsp_valid = rd_grant_reg[QPR_N-1:0];
  assign qpr_rsp = rd_entry.cfg;

  // ---- error reports ------------------------------------------------------------------------------------
  // pend_mem: the QP has a report of that kind in the FIFO. Each kind has its own bit, so an event hides no error and no
  // other event. One port: a pop delays a push by a cycle.
  localparam int KINDS = 4;
  localparam logic [KINDS-1:0] KIND_ERR = 4'b0001;
  localparam logic [KINDS-1:0] KIND_DRAINED = 4'b0010;
  localparam logic [KINDS-1:0] KIND_EST = 4'b0100;
  localparam logic [KINDS-1:0] KIND_LAST_WQE = 4'b1000;
  logic [KINDS-1:0] pend_mem [QPS];
  logic [KINDS-1:0] pend_word, pend_kind;
  logic [QPN_W-1:0] pend_addr;
  logic [QPE_N-1:0] err_grant;
  logic [$clog2(QPE_N)-1:0] err_idx;
  logic err_any, err_push, err_pop, err_out_valid, err_take;
  qp_err_t err_in, err_out;
  logic [QPN_W+2:0] err_count;

  function automatic logic [KINDS-1:0] kind_of(input logic only_event, input logic [7:0] event_type);
    if (!only_event) kind_of = KIND_ERR;
    else if (event_type == 8'(URDMA_EV_LAST_WQE)) kind_of = KIND_LAST_WQE;
    else kind_of = (event_type == 8'(URDMA_EV_SQ_DRAINED)) ? KIND_DRAINED : KIND_EST;
  endfunction
  assign pend_addr = err_pop ? err_out.qpn : err_in.qpn;
  assign pend_kind = err_pop ? kind_of(err_out.only_event, err_out.event_type)
                             : kind_of(err_in.only_event, err_in.event_type);
  assign pend_word = pend_mem[pend_addr];

  urdma_arb_rr #(.N(QPE_N)) err_arb (
    .clk(clk), .rst(rst),
    .req(qp_err_valid), .advance(err_take),
    .grant(err_grant), .grant_idx(err_idx), .grant_valid(err_any)
  );
  assign err_in = qp_err[err_idx];
  assign err_take = err_any && !err_pop && state_reg != M_INIT;
  assign qp_err_ready = err_take ? err_grant : '0;
  assign err_push = err_take && (pend_word & pend_kind) == '0;

  // a place for each kind of each QP
  urdma_fifo #(.WIDTH($bits(qp_err_t)), .DEPTH(KINDS * QPS), .OUT_REG(1)) err_fifo (
    .clk(clk), .rst(rst),
    .in_valid(err_push), .in_ready(), .in_data(err_in),
    .out_valid(err_out_valid), .out_ready(err_pop), .out_data(err_out), .count(err_count)
  );
  assign err_pop = state_reg == M_IDLE && err_out_valid;

  always_ff @(posedge clk) begin
    if (state_reg == M_INIT) pend_mem[sweep_reg] <= '0;
    else if (err_pop) pend_mem[pend_addr] <= pend_word & ~pend_kind;
    else if (err_push) pend_mem[pend_addr] <= pend_word | pend_kind;
  end

  // ---- the job --------------------------------------------------------------------------------------------
  logic [511:0] cmd;
  logic [7:0] opcode;
  logic [23:0] obj;
  entry_t cur_reg, new_entry;
  logic [7:0] status, status_reg;
  logic do_write, do_fence, do_fence_reg;
  logic [2:0] qpc_mask, qpc_left_reg;
  qpc_op_e qpc_op, qpc_op_reg;
  logic [23:0] qpc_psn, qpc_psn_reg;
  qpc_rsp_t [2:0] rsp_reg;
  logic event_due, event_reg, gid_write;
  logic [(1 << GID_W)-1:0] gid_valid_reg;

  assign cmd = job;  // stays at the FIFO's output until the job has ended
  assign opcode = cmd[URDMA_CMD0_OPCODE_LSB +: URDMA_CMD0_OPCODE_W];
  assign obj = cmd[URDMA_CMD0_OBJ_LSB +: URDMA_CMD0_OBJ_W];

  // MODIFY_QP: the transition, its attributes, their values.
  localparam int ATTR_W = URDMA_QPM_SQD_EVENT_LSB + 1;
  typedef logic [ATTR_W-1:0] attr_t;

  logic [31:0] mask;
  logic [3:0] old_state, new_state;
  attr_t required, allowed;
  logic step_ok, transition_ok, values_ok;
  logic [7:0] sgid;
  logic [7:0] modify_status;
  logic [2:0] mtu;
  logic [7:0] rd_atomic, dest_rd_atomic;

  assign mask = cmd[URDMA_CMD_MOD1_MASK_LSB +: URDMA_CMD_MOD1_MASK_W];
  assign old_state = cur_reg.cfg.state;
  assign new_state = mask[URDMA_QPM_STATE_LSB] ? cmd[URDMA_CMD_MOD1_STATE_LSB +: URDMA_CMD_MOD1_STATE_W]
                                                    : old_state;
  assign sgid = cmd[URDMA_CMD_MOD3_SGID_INDEX_LSB +: URDMA_CMD_MOD3_SGID_INDEX_W];
  assign mtu = cmd[URDMA_CMD_MOD1_MTU_LSB +: 3];
  assign rd_atomic = cmd[URDMA_CMD_MOD2_MAX_RD_ATOMIC_LSB +: URDMA_CMD_MOD2_MAX_RD_ATOMIC_W];
  assign dest_rd_atomic = cmd[URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC_LSB +: URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC_W];

  urdma_qp_rules #(.ATTR_W(ATTR_W)) rules (
    .qp_type(cur_reg.cfg.qp_type), .old_state, .new_state, .transition_ok(step_ok), .required, .allowed
  );

  always_comb begin
    // a change of attributes only is a transition from a state to itself
    transition_ok = step_ok && (mask[URDMA_QPM_STATE_LSB] || old_state == 4'(URDMA_QPS_INIT) || old_state == 4'(URDMA_QPS_RTS)
                                || old_state == 4'(URDMA_QPS_SQD));

    values_ok = 1'b1;
    if (mask[URDMA_QPM_MTU_LSB] && (cmd[URDMA_CMD_MOD1_MTU_LSB + 3] || mtu == 3'd0 || mtu > 3'd5))
      values_ok = 1'b0;
    if (mask[URDMA_QPM_AV_LSB] && ((sgid >> GID_W) != '0 || !gid_valid_reg[sgid[GID_W-1:0]])) values_ok = 1'b0;
    if (mask[URDMA_QPM_MAX_RD_ATOMIC_LSB] && rd_atomic > 8'(MAX_RD_ATOMIC)) values_ok = 1'b0;
    if (mask[URDMA_QPM_MAX_DEST_RD_ATOMIC_LSB] && dest_rd_atomic > 8'(MAX_RD_ATOMIC)) values_ok = 1'b0;

    if ((mask >> ATTR_W) != '0) modify_status = 8'(URDMA_CS_BAD_ATTR);
    else if (mask[URDMA_QPM_STATE_LSB] && new_state > 4'(URDMA_QPS_ERR)) modify_status = 8'(URDMA_CS_BAD_ATTR);
    else if (cur_reg.resetting || !transition_ok) modify_status = 8'(URDMA_CS_BAD_STATE);
    else if (mask[URDMA_QPM_CUR_STATE_LSB]
             && cmd[URDMA_CMD_MOD1_CUR_STATE_LSB +: URDMA_CMD_MOD1_CUR_STATE_W] != old_state)
      modify_status = 8'(URDMA_CS_BAD_STATE);
    else if ((mask[ATTR_W-1:0] & required) != required || (mask[ATTR_W-1:0] & ~allowed) != '0 || !values_ok)
      modify_status = 8'(URDMA_CS_BAD_ATTR);
    else modify_status = 8'(URDMA_CS_OK);
  end

  always_comb begin
    status = 8'(URDMA_CS_OK);
    new_entry = cur_reg;
    do_write = 1'b0;
    do_fence = 1'b0;
    qpc_mask = '0;
    qpc_op = QPC_QUERY;
    qpc_psn = '0;
    event_due = 1'b0;
    gid_write = 1'b0;
    if (state_reg == M_EXEC) begin
      unique case (src_reg)
        SRC_ERR: begin
          if (err_only_event_reg) begin
            event_due = cur_reg.cfg.valid
                        && ((err_type_reg == 8'(URDMA_EV_COMM_EST) && old_state == 4'(URDMA_QPS_RTR))
                            || (err_type_reg == 8'(URDMA_EV_SQ_DRAINED) && old_state == 4'(URDMA_QPS_SQD))
                            || (err_type_reg == 8'(URDMA_EV_LAST_WQE) && old_state == 4'(URDMA_QPS_ERR)));
          end else if (cur_reg.cfg.valid && old_state != 4'(URDMA_QPS_RESET) && old_state != 4'(URDMA_QPS_ERR)) begin
            new_entry.cfg.state = 4'(URDMA_QPS_ERR);
            do_write = 1'b1;
            qpc_op = QPC_ERR;
            qpc_mask = '1;
            event_due = err_type_reg != '0;
          end
        end
        SRC_FIN: begin
          new_entry.resetting = 1'b0;
          do_write = cur_reg.resetting;
          qpc_op = QPC_RESET;
          qpc_mask = '1;
        end
        default: begin
          unique case (opcode)
            8'(URDMA_CMD_SET_GID): gid_write = 1'b1;
            8'(URDMA_CMD_QUERY_QP): qpc_mask = '1;
            8'(URDMA_CMD_DESTROY_QP): begin
              new_entry = '0;
              do_write = 1'b1;
              do_fence = 1'b1;
            end
            8'(URDMA_CMD_CREATE_QP): begin
              new_entry = '0;
              new_entry.cfg.valid = 1'b1;
              new_entry.cfg.qp_type = cmd[URDMA_CMD_QP1_TYPE_LSB +: URDMA_CMD_QP1_TYPE_W];
              new_entry.cfg.sig_all = cmd[URDMA_CMD_QP1_SIG_ALL_LSB];
              new_entry.cfg.srq = cmd[URDMA_CMD_QP1_SRQ_LSB];
              new_entry.cfg.srqn = cmd[URDMA_CMD_QP5_SRQN_LSB +: SRQN_W];
              new_entry.cfg.priv = cmd[URDMA_CMD_QP1_PRIV_LSB];
              new_entry.cfg.no_loop = cmd[URDMA_CMD_QP1_MCAST_NO_LOOP_LSB];
              new_entry.cfg.pd = cmd[URDMA_CMD_QP1_PD_LSB +: PD_W];
              new_entry.cfg.db_page = cmd[URDMA_CMD_QP1_DB_PAGE_LSB +: DBP_W];
              new_entry.cfg.send_cq = cmd[URDMA_CMD_QP1_SEND_CQ_LSB +: CQN_W];
              new_entry.cfg.recv_cq = cmd[URDMA_CMD_QP2_RECV_CQ_LSB +: CQN_W];
              new_entry.cfg.sq = get_ring(cmd[URDMA_CMD_QP3_SQ_RING_LSB +: URDMA_CMD_QP3_SQ_RING_W],
                                          cmd[URDMA_CMD_QP4_SQ_ADDR_LSB +: 64]);
              new_entry.cfg.rq = get_ring(cmd[URDMA_CMD_QP5_RQ_RING_LSB +: URDMA_CMD_QP5_RQ_RING_W],
                                          cmd[URDMA_CMD_QP6_RQ_ADDR_LSB +: 64]);
              do_write = 1'b1;
            end
            default: begin  // MODIFY_QP
              status = modify_status;
              if (modify_status == 8'(URDMA_CS_OK)) begin
                do_write = 1'b1;
                new_entry.cfg.state = new_state;
                if (mask[URDMA_QPM_AV_LSB]) begin
                  new_entry.cfg.sgid = sgid[GID_W-1:0];
                  new_entry.cfg.dmac = cmd[URDMA_CMD_MOD4_DMAC_LSB +: URDMA_CMD_MOD4_DMAC_W];
                  new_entry.cfg.tclass = cmd[URDMA_CMD_MOD4_TCLASS_LSB +: URDMA_CMD_MOD4_TCLASS_W];
                  new_entry.cfg.hop_limit = cmd[URDMA_CMD_MOD4_HOP_LIMIT_LSB +: URDMA_CMD_MOD4_HOP_LIMIT_W];
                  new_entry.cfg.dgid = cmd[URDMA_CMD_MOD5_DGID_LO_LSB +: 128];
                  new_entry.cfg.flow_label = cmd[URDMA_CMD_MOD7_FLOW_LABEL_LSB +: URDMA_CMD_MOD7_FLOW_LABEL_W];
                  new_entry.cfg.udp_sport = cmd[URDMA_CMD_MOD7_UDP_SPORT_LSB +: URDMA_CMD_MOD7_UDP_SPORT_W];
                  new_entry.cfg.pcp = cmd[URDMA_CMD_MOD7_PCP_LSB +: URDMA_CMD_MOD7_PCP_W];
                end
                if (mask[URDMA_QPM_MTU_LSB]) new_entry.cfg.mtu = mtu;
                if (mask[URDMA_QPM_TIMEOUT_LSB])
                  new_entry.cfg.timeout = cmd[URDMA_CMD_MOD1_TIMEOUT_LSB +: URDMA_CMD_MOD1_TIMEOUT_W];
                if (mask[URDMA_QPM_RETRY_LSB])
                  new_entry.cfg.retry = cmd[URDMA_CMD_MOD1_RETRY_LSB +: URDMA_CMD_MOD1_RETRY_W];
                if (mask[URDMA_QPM_RNR_RETRY_LSB])
                  new_entry.cfg.rnr_retry = cmd[URDMA_CMD_MOD1_RNR_RETRY_LSB +: URDMA_CMD_MOD1_RNR_RETRY_W];
                if (mask[URDMA_QPM_MIN_RNR_LSB])
                  new_entry.cfg.min_rnr = cmd[URDMA_CMD_MOD1_MIN_RNR_LSB +: URDMA_CMD_MOD1_MIN_RNR_W];
                if (mask[URDMA_QPM_DEST_QPN_LSB])
                  new_entry.cfg.dest_qpn = cmd[URDMA_CMD_MOD2_DEST_QPN_LSB +: URDMA_CMD_MOD2_DEST_QPN_W];
                if (mask[URDMA_QPM_MAX_RD_ATOMIC_LSB]) new_entry.cfg.max_rd_atomic = rd_atomic;
                if (mask[URDMA_QPM_MAX_DEST_RD_ATOMIC_LSB]) new_entry.cfg.max_dest_rd_atomic = dest_rd_atomic;
                if (mask[URDMA_QPM_QKEY_LSB])
                  new_entry.cfg.qkey = cmd[URDMA_CMD_MOD3_QKEY_LSB +: URDMA_CMD_MOD3_QKEY_W];
                if (mask[URDMA_QPM_PKEY_LSB])
                  new_entry.cfg.pkey = cmd[URDMA_CMD_MOD7_PKEY_LSB +: URDMA_CMD_MOD7_PKEY_W];
                if (mask[URDMA_QPM_ACCESS_LSB])
                  new_entry.cfg.acc = {cmd[URDMA_CMD_MOD7_FLUSH_GLOBAL_LSB],
                                       cmd[URDMA_CMD_MOD7_ACCESS_LSB +: URDMA_CMD_MOD7_ACCESS_W]};
                unique case (new_state)
                  4'(URDMA_QPS_RESET): begin
                    // fields set by CREATE_QP stay, all others are as after it
                    new_entry = '0;
                    {new_entry.resetting, new_entry.cfg.valid} = '1;
                    new_entry.cfg.qp_type = cur_reg.cfg.qp_type;
                    {new_entry.cfg.sig_all, new_entry.cfg.priv, new_entry.cfg.no_loop}
                        = {cur_reg.cfg.sig_all, cur_reg.cfg.priv, cur_reg.cfg.no_loop};
                    new_entry.cfg.pd = cur_reg.cfg.pd;
                    new_entry.cfg.db_page = cur_reg.cfg.db_page;
                    new_entry.cfg.send_cq = cur_reg.cfg.send_cq;
                    new_entry.cfg.recv_cq = cur_reg.cfg.recv_cq;
                    new_entry.cfg.sq = cur_reg.cfg.sq;
                    new_entry.cfg.rq = cur_reg.cfg.rq;
                    {new_entry.cfg.srq, new_entry.cfg.srqn} = {cur_reg.cfg.srq, cur_reg.cfg.srqn};
                    do_fence = 1'b1;
                  end
                  4'(URDMA_QPS_RTR): begin
                    qpc_op = QPC_RQ_PSN;
                    qpc_mask[RX] = 1'b1;
                    qpc_psn = cmd[URDMA_CMD_MOD2_RQ_PSN_LSB +: URDMA_CMD_MOD2_RQ_PSN_W];
                  end
                  4'(URDMA_QPS_RTS): begin
                    if (old_state == 4'(URDMA_QPS_SQD)) begin
                      qpc_op = QPC_SQ_RUN;
                      qpc_mask[TX] = 1'b1;
                    end else begin
                      qpc_op = QPC_SQ_PSN;
                      qpc_mask[TX] = old_state != 4'(URDMA_QPS_RTS);
                      qpc_mask[AK] = old_state != 4'(URDMA_QPS_RTS);
                      qpc_psn = cmd[URDMA_CMD_MOD3_SQ_PSN_LSB +: URDMA_CMD_MOD3_SQ_PSN_W];
                    end
                  end
                  4'(URDMA_QPS_SQD): begin
                    qpc_op = QPC_SQD;
                    qpc_mask[TX] = old_state != 4'(URDMA_QPS_SQD);
                    qpc_psn = 24'(mask[URDMA_QPM_SQD_EVENT_LSB]);
                  end
                  4'(URDMA_QPS_ERR): begin
                    qpc_op = QPC_ERR;
                    if (old_state != 4'(URDMA_QPS_ERR)) qpc_mask = '1;
                  end
                  default: ;
                endcase
              end
            end
          endcase
        end
      endcase
    end
  end

  always_comb begin
    wr_en = do_write;
    wr_addr = qpn_reg;
    wr_entry = new_entry;
    if (state_reg == M_INIT) begin
      wr_en = 1'b1;
      wr_addr = sweep_reg;
      wr_entry = '0;
    end
  end

  always_ff @(posedge clk) begin
    if (state_reg == M_DATA) cur_reg <= rd_entry;
    if (state_reg == M_EXEC) begin
      status_reg <= status;
      do_fence_reg <= do_fence;
      qpc_op_reg <= qpc_op;
      qpc_psn_reg <= qpc_psn;
      event_reg <= event_due;
    end
    if (rst) begin
      state_reg <= M_INIT;
      sweep_reg <= '0;
      qpc_left_reg <= '0;
    end else begin
      unique case (state_reg)
        M_INIT: begin
          sweep_reg <= sweep_reg + 1'b1;
          if (sweep_reg == '1) state_reg <= M_IDLE;
        end
        M_IDLE: begin
          if (err_out_valid) begin
            src_reg <= SRC_ERR;
            qpn_reg <= err_out.qpn;
            err_type_reg <= err_out.event_type;
            err_only_event_reg <= err_out.only_event;
            state_reg <= M_READ;
          end else if (fin_valid && err_count == '0) begin
            // reports from before the fence are about the old QP: they go first and find it gone
            src_reg <= SRC_FIN;
            qpn_reg <= fin_qpn;
            state_reg <= M_READ;
          end else if (job_valid) begin
            src_reg <= SRC_JOB;
            qpn_reg <= obj[QPN_W-1:0];
            state_reg <= M_READ;
          end
        end
        M_READ: if (rd_grant[QPR_N]) state_reg <= M_DATA;
        M_DATA: state_reg <= M_EXEC;
        M_EXEC: begin
          qpc_left_reg <= qpc_mask;
          state_reg <= M_QPC;
        end
        M_QPC: begin
          qpc_left_reg <= qpc_left_reg & ~qpc_ready;
          if ((qpc_left_reg & ~qpc_ready) == '0) state_reg <= event_reg ? M_EV : M_END;
        end
        M_EV: if (ev_ready) state_reg <= M_END;
        default: if (src_reg != SRC_JOB || do_fence_reg || cpl_ready) state_reg <= M_IDLE;
      endcase
    end
  end

  always_ff @(posedge clk) begin
    for (int i = 0; i < 3; i++) if (state_reg == M_QPC && qpc_left_reg[i] && qpc_ready[i]) rsp_reg[i] <= qpc_rsp[i];
  end

  assign qpc_valid = (state_reg == M_QPC) ? qpc_left_reg : '0;
  assign qpc = {3{qpc_t'{op: qpc_op_reg, qpn: qpn_reg, psn: qpc_psn_reg}}};
  assign ev_valid = state_reg == M_EV;
  assign ev = '{eqn: '0, ev_type: err_type_reg, obj: 24'(qpn_reg), data: '0};
  assign fin_ready = state_reg == M_END && src_reg == SRC_FIN;
  assign job_ready = state_reg == M_END && src_reg == SRC_JOB && (do_fence_reg || cpl_ready);
  assign fence_valid = state_reg == M_END && src_reg == SRC_JOB && do_fence_reg;
  assign fence = '{kind: (opcode == 8'(URDMA_CMD_DESTROY_QP)) ? FK_QP : FK_RESET,
                   tag: cmd[URDMA_CMD0_TAG_LSB +: URDMA_CMD0_TAG_W], obj: obj, ev: cmd[URDMA_CMD0_EVENT_LSB], cq_base: '0};
  assign cpl_valid = state_reg == M_END && src_reg == SRC_JOB && !do_fence_reg;

  logic is_query;
  assign is_query = cpl_valid && opcode == 8'(URDMA_CMD_QUERY_QP);
  always_comb begin
    cpl = '0;
    cpl.status = status_reg;
    cpl.tag = cmd[URDMA_CMD0_TAG_LSB +: URDMA_CMD0_TAG_W];
    cpl.obj = obj;
    cpl.ev = cmd[URDMA_CMD0_EVENT_LSB];
    if (is_query) begin
      cpl.state = cur_reg.cfg.state;
      cpl.draining = rsp_reg[TX].draining && cur_reg.cfg.state == 4'(URDMA_QPS_SQD);
      cpl.sq_psn = rsp_reg[TX].psn;
      cpl.rq_psn = rsp_reg[RX].psn;
      cpl.sq_pi = rsp_reg[TX].pi;
      cpl.sq_ci = rsp_reg[AK].ci;
      cpl.rq_pi = rsp_reg[RX].pi;
      cpl.rq_ci = rsp_reg[RX].ci;
    end
  end

  // ---- GID table -----------------------------------------------------------------------------------------
  gid_t gid_mem [1 << GID_W];
  gid_t gid_new;
  assign gid_wr_valid = gid_write;
  assign gid_wr_idx = obj[GID_W-1:0];
  assign gid_wr = gid_new;
  always_comb begin
    gid_new = '0;
    gid_new.valid = cmd[URDMA_CMD_GID1_VALID_LSB];
    if (gid_new.valid) begin
      gid_new.ipv4 = cmd[URDMA_CMD_GID1_IPV4_LSB];
      gid_new.vlan_valid = cmd[URDMA_CMD_GID1_VLAN_VALID_LSB];
      gid_new.vlan = cmd[URDMA_CMD_GID1_VLAN_LSB +: URDMA_CMD_GID1_VLAN_W];
      gid_new.smac = cmd[URDMA_CMD_GID2_SMAC_LSB +: URDMA_CMD_GID2_SMAC_W];
      gid_new.gid = cmd[URDMA_CMD_GID3_GID_LO_LSB +: 128];
    end
  end

  always_ff @(posedge clk) begin
    if (state_reg == M_INIT) gid_mem[sweep_reg[GID_W-1:0]] <= '0;
    else if (gid_write) gid_mem[obj[GID_W-1:0]] <= gid_new;
    if (rst) gid_valid_reg <= '0;
    else if (gid_write) gid_valid_reg[obj[GID_W-1:0]] <= gid_new.valid;
    for (int i = 0; i < 3; i++) gid_reg[i] <= gid_mem[gid_idx[i]];
  end

  assign init_done = state_reg != M_INIT;
  assign busy = state_reg != M_IDLE || job_valid || fin_valid || err_count != '0 || (|qp_err_valid)
                || (|qpr_req_valid) || (|rd_grant_reg);

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_told_twice: cover property (@(posedge clk) !rst && err_take && (pend_word & pend_kind) != '0);
`endif

endmodule

`resetall
