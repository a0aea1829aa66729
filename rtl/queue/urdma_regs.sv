// SPDX-License-Identifier: Apache-2.0
// BAR0: registers, counters, the cycle counter, and the reset sequence of the NIC.
//
// A register access is taken every cycle; a read is answered two cycles later, in order. Reads of addresses without a
// register return 0, writes there are ignored. The Ethernet function has registers of its own (eth_reg_*).
//
// Reset sequence (after rst, and at a write of CTRL.RESET): core_rst stays up until the PCIe side has had nothing outstanding
// for DRAIN cycles in a row, so that no completion of an old read can reach a block after its reset. Then the blocks clear
// their memories; then READY is set. CTRL.RESET does not clear the counters and the cycle counter, so they survive a change
// of drivers.

`resetall
`default_nettype none

module urdma_regs
  import urdma_pkg::*, urdma_hw_pkg::*;
(
  input  wire logic                   clk,
  input  wire logic                   rst,
  output      logic                   core_rst,
  input  wire logic                   dma_busy,
  input  wire logic                   init_done,    // of all blocks, those of urdma_ctl included
  output      logic                   ready,        // STATUS.READY
  output      logic                   busy,

  input  wire logic                   reg_req_valid,
  input  wire reg_req_t               reg_req,
  output      logic                   reg_req_ready,
  output      logic                   reg_rsp_valid,
  output      logic [63:0]            reg_rsp_data,
  output      logic                   eth_reg_valid,   // an access to the registers of urdma_eth: reg_req is for it
  input  wire logic [63:0]            eth_reg_rdata,   // one cycle later

  // command queue
  output      logic                   cmdq_enable,
  output      logic [63:0]            cmdq_base,
  output      logic [63:0]            cmdq_cpl_base,
  output      logic [3:0]             cmdq_log_size,
  output      logic [15:0]            cmdq_pi,
  input  wire logic [15:0]            cmdq_ci,
  input  wire logic                   cmdq_err,

  // counters: one bit adds 1; own are those of urdma_ctl itself, which may share a counter with others
  input  wire logic [URDMA_CNT_N-1:0] cnt,
  input  wire logic [URDMA_CNT_N-1:0] cnt_own,
  input  wire logic [6:0]             tx_bytes,
  input  wire logic [6:0]             rx_bytes,
  input  wire logic                   eq0_lost,

  input  wire logic [47:0]            mac_default,
  output      logic [47:0]            mac,          // the port's address, byte 0 in [7:0]
  input  wire logic                   link_up,
  input  wire logic [63:0]            cycles
);

  logic [63:0] reg_rsp_data_reg;
  assign reg_rsp_data = reg_rsp_data_reg;

  logic reg_rsp_valid_reg;
  assign reg_rsp_valid = reg_rsp_valid_reg;

  localparam int LOG_CMDQ_MAX = 8;
  localparam int DRAIN = 16;
  localparam logic [63:0] CLOCK_HZ = 64'd250000000;
  localparam logic [63:0] SPEED_MBPS = 64'd100000;

  // What software reads; each byte lane of a field is as urdma_hw.h has it.
  localparam logic [63:0] VERSION = {32'(URDMA_MAGIC), 16'(URDMA_VERSION_MAJOR), 16'(URDMA_VERSION_MINOR)};
  localparam logic [63:0] CAP_OBJ = 64'(QPN_W) << URDMA_RF_CAP_LOG_QP_LSB
                                  | 64'(CQN_W) << URDMA_RF_CAP_LOG_CQ_LSB
                                  | 64'(MRI_W) << URDMA_RF_CAP_LOG_MR_LSB
                                  | 64'(EQN_W) << URDMA_RF_CAP_LOG_EQ_LSB
                                  | 64'(PD_W) << URDMA_RF_CAP_LOG_PD_LSB
                                  | 64'(SRQN_W) << URDMA_RF_CAP_LOG_SRQ_LSB
                                  | 64'(DBP_W) << URDMA_RF_CAP_LOG_DB_PAGES_LSB
                                  | 64'(VEC_W) << URDMA_RF_CAP_LOG_VECTORS_LSB;
  localparam logic [63:0] CAP_QUEUE = 64'd30 << URDMA_RF_CAP_MAX_SQ_SGE_LSB
                                    | 64'd30 << URDMA_RF_CAP_MAX_RQ_SGE_LSB
                                    | 64'd480 << URDMA_RF_CAP_MAX_INLINE_LSB
                                    | 64'd15 << URDMA_RF_CAP_LOG_SQ_LSB
                                    | 64'd15 << URDMA_RF_CAP_LOG_RQ_LSB
                                    | 64'd20 << URDMA_RF_CAP_LOG_CQE_LSB
                                    | 64'd16 << URDMA_RF_CAP_LOG_EQE_LSB;
  localparam logic [63:0] CAP_XPORT = 64'd30 << URDMA_RF_CAP_LOG_MAX_MSG_LSB
                                    | 64'd12 << URDMA_RF_CAP_LOG_MAX_MTU_LSB
                                    | 64'(1 << GID_W) << URDMA_RF_CAP_GIDS_LSB
                                    | 64'(1 << RDA_W) << URDMA_RF_CAP_MAX_RD_ATOMIC_LSB
                                    | 64'(LOG_CMDQ_MAX) << URDMA_RF_CAP_LOG_CMDQ_LSB
                                    | 64'd12 << URDMA_RF_CAP_LOG_DB_PAGE_SIZE_LSB;
  localparam logic [63:0] CAP_PAGES = 64'h0000_0000_ffff_f000;
  localparam logic [63:0] CAP_FEATURES = 64'd1 << URDMA_RF_FEAT_RC_SEND_LSB
                                       | 64'd1 << URDMA_RF_FEAT_RC_WRITE_LSB
                                       | 64'd1 << URDMA_RF_FEAT_RC_READ_LSB
                                       | 64'd1 << URDMA_RF_FEAT_RC_ATOMIC_LSB
                                       | 64'd1 << URDMA_RF_FEAT_RC_RETRY_LSB
                                       | 64'd1 << URDMA_RF_FEAT_MEM_MGT_LSB
                                       | 64'd1 << URDMA_RF_FEAT_MW_2B_LSB
                                       | 64'd1 << URDMA_RF_FEAT_ETH_LSB
                                       | 64'd1 << URDMA_RF_FEAT_UC_LSB
                                       | 64'd1 << URDMA_RF_FEAT_UD_LSB
                                       | 64'd1 << URDMA_RF_FEAT_MCAST_LSB
                                       | 64'd1 << URDMA_RF_FEAT_SRQ_LSB
                                       | 64'd1 << URDMA_RF_FEAT_XRC_LSB
                                       | 64'd1 << URDMA_RF_FEAT_MW_1_LSB
                                       | 64'd1 << URDMA_RF_FEAT_DM_LSB
                                       | 64'd1 << URDMA_RF_FEAT_FLUSH_LSB
                                       | 64'd1 << URDMA_RF_FEAT_ATOMIC_WRITE_LSB
                                       | 64'd1 << URDMA_RF_FEAT_CQ_MODIFY_LSB
                                       | 64'd1 << URDMA_RF_FEAT_QP_CNT_LSB
                                       | 64'd1 << URDMA_RF_FEAT_ZERO_BASED_LSB;
  localparam logic [63:0] CAP_ETH = 64'(ETHQ_N) << URDMA_RF_CAP_ETH_QUEUES_LSB
                                  | 64'(ETH_LOG_RING) << URDMA_RF_CAP_LOG_ETH_RING_LSB
                                  | 64'(ETH_MAX_FRAME) << URDMA_RF_CAP_ETH_MAX_FRAME_LSB
                                  | 64'(ETH_TX_DESCS) << URDMA_RF_CAP_ETH_TX_DESCS_LSB
                                  | 64'(ETH_UC_N) << URDMA_RF_CAP_ETH_UC_LSB
                                  | 64'(ETH_LOG_CQ) << URDMA_RF_CAP_LOG_ETH_CQ_LSB;
  localparam logic [63:0] CAP_DM = 64'(DM_W) << URDMA_RF_CAP_LOG_DM_LSB
                                 | 64'(DM_OFFSET_W) << URDMA_RF_CAP_LOG_DM_OFFSET_LSB;
  localparam logic [63:0] CAP_CNT = 64'(CSET_W) << URDMA_RF_CAP_LOG_CNT_SETS_LSB;

  typedef enum logic [1:0] {
    S_DRAIN,   // core_rst, wait for the PCIe side
    S_SETTLE,  // core_rst released; a block's init_done may still be up from before the reset
    S_INIT,    // wait for the memories' sweeps
    S_READY
  } state_e;

  state_e state_reg;
  logic [4:0] drain_reg;
  logic core_rst_reg;
  logic enable_reg, eq0_lost_reg;
  logic [47:0] mac_reg;
  logic [63:12] base_reg, cpl_base_reg;
  logic [3:0] log_size_reg;
  logic [15:0] pi_reg;
  logic rd_pend_reg, rd_is_cnt_reg, rd_is_eth_reg;

  logic wr, rd, wr_reset, queue_idle;
  logic [63:0] wmask, wdata;
  logic [15:0] addr;

  assign reg_req_ready = 1'b1;
  assign addr = {reg_req.addr[15:3], 3'd0};
  assign wr = reg_req_valid && reg_req.write;
  assign rd = reg_req_valid && !reg_req.write;
  always_comb for (int i = 0; i < 8; i++) wmask[8*i +: 8] = {8{reg_req.strb[i]}};
  assign wdata = reg_req.wdata & wmask;
  assign eth_reg_valid = reg_req_valid && addr[15:13] == 3'(URDMA_REG_ETH_CTRL >> 13);
  assign wr_reset = wr && addr == 16'(URDMA_REG_CTRL) && wdata[URDMA_RF_CTRL_RESET_LSB];
  // bases and size are fixed once the queue runs
  assign queue_idle = !enable_reg && pi_reg == '0;

  assign core_rst = core_rst_reg;
  assign ready = (state_reg == S_READY);
  assign busy = !ready || reg_req_valid || rd_pend_reg || reg_rsp_valid_reg || wr_reset;
  assign mac = mac_reg;
  assign cmdq_enable = enable_reg && ready;
  assign cmdq_base = {base_reg, 12'd0};
  assign cmdq_cpl_base = {cpl_base_reg, 12'd0};
  assign cmdq_log_size = log_size_reg;
  assign cmdq_pi = pi_reg;

  // ---- reset sequence --------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (rst || wr_reset) begin
      state_reg <= S_DRAIN;
      drain_reg <= '0;
      core_rst_reg <= 1'b1;
    end else begin
      unique case (state_reg)
        S_DRAIN: begin
          if (dma_busy) drain_reg <= '0;
          else drain_reg <= drain_reg + 1'b1;
          if (drain_reg == 5'(DRAIN) && !dma_busy) begin
            state_reg <= S_SETTLE;
            drain_reg <= '0;
            core_rst_reg <= 1'b0;
          end
        end
        S_SETTLE: begin
          drain_reg <= drain_reg + 1'b1;
          if (drain_reg == 5'd7) state_reg <= S_INIT;
        end
        S_INIT: if (init_done) state_reg <= S_READY;
        default: ;
      endcase
    end
  end

  // ---- writable registers ----------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (rst || wr_reset) begin
      enable_reg <= 1'b0;
      eq0_lost_reg <= 1'b0;
      mac_reg <= mac_default;
      base_reg <= '0;
      cpl_base_reg <= '0;
      log_size_reg <= '0;
      pi_reg <= '0;
    end else begin
      // not the losses of an EQ 0 that is being reset
      if (eq0_lost && !core_rst_reg) eq0_lost_reg <= 1'b1;
      if (wr) begin
        unique case (addr)
          16'(URDMA_REG_CTRL): if (reg_req.strb[0]) enable_reg <= wdata[URDMA_RF_CTRL_ENABLE_LSB];
          16'(URDMA_REG_MAC): mac_reg <= (mac_reg & ~wmask[47:0]) | wdata[47:0];
          16'(URDMA_REG_CMDQ_BASE): if (queue_idle) base_reg <= (base_reg & ~wmask[63:12]) | wdata[63:12];
          16'(URDMA_REG_CMDQ_CPL_BASE):
            if (queue_idle) cpl_base_reg <= (cpl_base_reg & ~wmask[63:12]) | wdata[63:12];
          16'(URDMA_REG_CMDQ_LOG_SIZE):
            if (queue_idle && reg_req.strb[0] && wdata[63:0] <= 64'(LOG_CMDQ_MAX)) log_size_reg <= wdata[3:0];
          16'(URDMA_REG_CMDQ_PI): if (reg_req.strb[1:0] == 2'b11) pi_reg <= wdata[15:0];
          default: ;
        endcase
      end
    end
  end

  // ---- counters ---------------------------------------------------------------------------------
  // Most cycles count nothing: the loop is entered only when there is a pulse.
  logic [63:0] cnt_reg [URDMA_CNT_N];
  logic cnt_any;
  assign cnt_any = (|cnt) || (|cnt_own) || (|tx_bytes) || (|rx_bytes);

  always_ff @(posedge clk) begin
    if (rst) begin
      for (int i = 0; i < URDMA_CNT_N; i++) cnt_reg[i] <= '0;
    end else if (cnt_any) begin
      for (int i = 0; i < URDMA_CNT_N; i++) begin
        if (i == URDMA_CNT_TX_BYTES) cnt_reg[i] <= cnt_reg[i] + 64'(tx_bytes);
        else if (i == URDMA_CNT_RX_BYTES) cnt_reg[i] <= cnt_reg[i] + 64'(rx_bytes);
        else if (cnt[i] || cnt_own[i]) cnt_reg[i] <= cnt_reg[i] + 64'(cnt[i]) + 64'(cnt_own[i]);
      end
    end
  end

  // ---- reads ------------------------------------------------------------------------------------
  logic [5:0] rd_cnt_reg;
  logic [63:0] rd_data_reg, status;

  always_comb begin
    status = '0;
    status[URDMA_RF_STATUS_READY_LSB] = ready;
    status[URDMA_RF_STATUS_LINK_LSB] = link_up;
    status[URDMA_RF_STATUS_CMDQ_ERR_LSB] = cmdq_err;
    status[URDMA_RF_STATUS_EQ0_LOST_LSB] = eq0_lost_reg;
  end

  always_ff @(posedge clk) begin
    rd_pend_reg <= rd;
    reg_rsp_valid_reg <= rd_pend_reg;
    if (rd) begin
      rd_is_cnt_reg <= (addr >= 16'(URDMA_REG_COUNTERS))
                       && (addr < 16'(URDMA_REG_COUNTERS + 8 * URDMA_CNT_N));
      rd_is_eth_reg <= eth_reg_valid;
      rd_cnt_reg <= addr[8:3];
      unique case (addr)
        16'(URDMA_REG_VERSION): rd_data_reg <= VERSION;
        16'(URDMA_REG_CAP_OBJ): rd_data_reg <= CAP_OBJ;
        16'(URDMA_REG_CAP_QUEUE): rd_data_reg <= CAP_QUEUE;
        16'(URDMA_REG_CAP_XPORT): rd_data_reg <= CAP_XPORT;
        16'(URDMA_REG_CAP_PAGES): rd_data_reg <= CAP_PAGES;
        16'(URDMA_REG_CAP_ETH): rd_data_reg <= CAP_ETH;
        16'(URDMA_REG_CAP_DM): rd_data_reg <= CAP_DM;
        16'(URDMA_REG_CAP_CNT): rd_data_reg <= CAP_CNT;
        16'(URDMA_REG_CAP_FEATURES): rd_data_reg <= CAP_FEATURES;
        16'(URDMA_REG_CTRL): rd_data_reg <= 64'(enable_reg) << URDMA_RF_CTRL_ENABLE_LSB;
        16'(URDMA_REG_STATUS): rd_data_reg <= status;
        16'(URDMA_REG_CYCLES): rd_data_reg <= cycles;
        16'(URDMA_REG_CLOCK_HZ): rd_data_reg <= CLOCK_HZ;
        16'(URDMA_REG_MAC): rd_data_reg <= 64'(mac_reg);
        16'(URDMA_REG_PORT_SPEED): rd_data_reg <= SPEED_MBPS;
        16'(URDMA_REG_CMDQ_BASE): rd_data_reg <= cmdq_base;
        16'(URDMA_REG_CMDQ_CPL_BASE): rd_data_reg <= cmdq_cpl_base;
        16'(URDMA_REG_CMDQ_LOG_SIZE): rd_data_reg <= 64'(log_size_reg);
        16'(URDMA_REG_CMDQ_CI): rd_data_reg <= 64'(cmdq_ci);
        default: rd_data_reg <= '0;
      endcase
    end
    if (rd_pend_reg) reg_rsp_data_reg <= rd_is_eth_reg ? eth_reg_rdata : rd_is_cnt_reg ? cnt_reg[rd_cnt_reg] : rd_data_reg;
    if (rst) begin
      rd_pend_reg <= 1'b0;
      reg_rsp_valid_reg <= 1'b0;
    end
  end

endmodule

`resetall
