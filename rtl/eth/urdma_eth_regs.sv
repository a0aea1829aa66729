// SPDX-License-Identifier: Apache-2.0
// Registers of the Ethernet function (docs/hardware-interface.md, section 12), 0x2000 to 0x3fff.
//
//  reg_*     an access; reg_rdata has the data of a read in the next cycle
//  cfg, *_ring, buf64, moderation   the values of the registers, within the limits
//  vlan_*    membership of a VLAN, one cycle after its number
//
// Address and size of a ring do not change while its side is enabled or active. A side that is still active is not enabled
// again. The VLAN table is cleared by a sweep of 64 cycles after reset.

`resetall
`default_nettype none

module urdma_eth_regs
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
(
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    init_done,

  input  wire logic                    reg_valid,
  input  wire reg_req_t                reg_req,
  output      logic [63:0]             reg_rdata,
  input  wire logic [47:0]             mac,

  output      eth_cfg_t                cfg,
  output      eth_ring_t [ETHQ_N-1:0]  tx_ring,
  output      eth_ring_t [ETHQ_N-1:0]  rx_ring,
  output      eth_ring_t [ETHQ_N-1:0]  cq_ring,
  output      logic [ETHQ_N-1:0][6:0]  buf64,
  output      eth_int_t [ETHQ_N-1:0]   moderation,

  input  wire logic [ETHQ_N-1:0]       tx_active,
  input  wire logic [ETHQ_N-1:0]       rx_active,
  input  wire logic [ETHQ_N-1:0]       cq_active,
  input  wire logic [ETHQ_N-1:0]       tx_err,
  input  wire logic [ETHQ_N-1:0]       rx_err,
  input  wire logic [ETHQ_N-1:0][15:0] tx_ci,
  input  wire logic [ETHQ_N-1:0][15:0] rx_ci,
  input  wire logic [ETHQ_N-1:0][31:0] cq_pi,

  input  wire logic [11:0]             vlan_id,
  output      logic                    vlan_member
);

  logic [63:0] reg_rdata_reg;
  assign reg_rdata = reg_rdata_reg;

  localparam int MIN_LOG = 6;

  typedef struct packed {
    logic [2:0]       enable;    // tx, rx, cq
    logic [63:12]     tx_base, rx_base, cq_base;
    logic [4:0]       log_tx, log_rx, log_cq;
    logic [6:0]       buf64;
    eth_int_t         int_;
  } queue_t;

  logic [5:0] ctrl_reg;
  logic [3:0] rss_reg;
  logic [319:0] key_reg;
  logic [ETH_UC_N-1:0][48:0] uc_reg;
  logic [255:0] mc_reg;
  logic [127:0][ETHQ_W-1:0] table_reg;
  queue_t [ETHQ_N-1:0] queue_reg;
  logic [63:0] vlan_mem [URDMA_ETH_VLAN_WORDS];
  logic [6:0] sweep_reg;

  // ---- which register ---------------------------------------------------------------------------------------
  logic [15:0] addr;
  logic [63:0] mask, wdata;
  logic write, at_key, at_uc, at_mc, at_table, at_vlan, at_queue;
  logic [2:0] key_idx;
  logic [ETHQ_W-1:0] q;
  logic [6:0] qreg;

  assign addr = {reg_req.addr[15:3], 3'd0};
  assign write = reg_valid && reg_req.write;
  assign wdata = reg_req.wdata;
  always_comb for (int i = 0; i < 8; i++) mask[8*i+:8] = {8{reg_req.strb[i]}};

  assign at_key = addr >= 16'(URDMA_REG_ETH_RSS_KEY) && addr < 16'(URDMA_REG_ETH_RSS_KEY + 8 * URDMA_ETH_RSS_KEY_WORDS);
  assign at_uc = addr >= 16'(URDMA_REG_ETH_UC) && addr < 16'(URDMA_REG_ETH_UC + 8 * ETH_UC_N);
  assign at_mc = addr >= 16'(URDMA_REG_ETH_MC_HASH) && addr < 16'(URDMA_REG_ETH_MC_HASH + 8 * URDMA_ETH_MC_HASH_WORDS);
  assign at_table = addr >= 16'(URDMA_REG_ETH_RSS_TABLE) && addr < 16'(URDMA_REG_ETH_RSS_TABLE + 8 * URDMA_ETH_RSS_TABLE_WORDS);
  assign at_vlan = addr >= 16'(URDMA_REG_ETH_VLAN) && addr < 16'(URDMA_REG_ETH_VLAN + 8 * URDMA_ETH_VLAN_WORDS);
  assign at_queue = addr >= 16'(URDMA_REG_ETHQ) && addr < 16'(URDMA_REG_ETHQ + URDMA_ETHQ_STRIDE * ETHQ_N);
  assign key_idx = addr[5:3];
  assign q = addr[7+:ETHQ_W];
  assign qreg = addr[6:0];

  // ---- writes ---------------------------------------------------------------------------------------------------
  function automatic logic [63:0] merge(input logic [63:0] old, input logic [63:0] value, input logic [63:0] m);
    return (old & ~m) | (value & m);
  endfunction

  queue_t queue, queue_next;
  logic [2:0] still;  // the sides whose ring may be set up
  logic [63:0] size, int_word;

  assign queue = queue_reg[q];
  assign still = ~(queue.enable | {cq_active[q], rx_active[q], tx_active[q]});

  always_comb begin
    size = '0;
    size[URDMA_RF_ETHQ_LOG_TX_LSB+:5] = queue.log_tx;
    size[URDMA_RF_ETHQ_LOG_RX_LSB+:5] = queue.log_rx;
    size[URDMA_RF_ETHQ_LOG_CQ_LSB+:5] = queue.log_cq;
    size[URDMA_RF_ETHQ_RX_BUF_LSB+:7] = queue.buf64;
    int_word = '0;
    int_word[URDMA_RF_ETHQ_VECTOR_LSB+:VEC_W] = queue.int_.vec;
    int_word[URDMA_RF_ETHQ_RX_FRAMES_LSB+:8] = queue.int_.rx_frames;
    int_word[URDMA_RF_ETHQ_TX_FRAMES_LSB+:8] = queue.int_.tx_frames;
    int_word[URDMA_RF_ETHQ_RX_USECS_LSB+:16] = queue.int_.rx_usecs;
    int_word[URDMA_RF_ETHQ_TX_USECS_LSB+:16] = queue.int_.tx_usecs;
  end

  /* verilator lint_off UNUSEDSIGNAL */  // not every bit of a word is a register
  logic [63:0] new_size, new_int;
  /* verilator lint_on UNUSEDSIGNAL */
  assign new_size = merge(size, wdata, mask);
  assign new_int = merge(int_word, wdata, mask);

  always_comb begin
    queue_next = queue;
    case (qreg)
      7'(URDMA_ETHQ_CTRL): begin
        if (reg_req.strb[0]) queue_next.enable = wdata[2:0] & (queue.enable | still);
      end
      7'(URDMA_ETHQ_TX_BASE): if (still[0]) queue_next.tx_base = (queue.tx_base & ~mask[63:12]) | (wdata[63:12] & mask[63:12]);
      7'(URDMA_ETHQ_RX_BASE): if (still[1]) queue_next.rx_base = (queue.rx_base & ~mask[63:12]) | (wdata[63:12] & mask[63:12]);
      7'(URDMA_ETHQ_CQ_BASE): if (still[2]) queue_next.cq_base = (queue.cq_base & ~mask[63:12]) | (wdata[63:12] & mask[63:12]);
      7'(URDMA_ETHQ_SIZE): begin
        if (still[0]) queue_next.log_tx = new_size[URDMA_RF_ETHQ_LOG_TX_LSB+:5];
        if (still[1]) begin
          queue_next.log_rx = new_size[URDMA_RF_ETHQ_LOG_RX_LSB+:5];
          queue_next.buf64 = new_size[URDMA_RF_ETHQ_RX_BUF_LSB+:7];
        end
        if (still[2]) queue_next.log_cq = new_size[URDMA_RF_ETHQ_LOG_CQ_LSB+:5];
      end
      7'(URDMA_ETHQ_INT):
        queue_next.int_ = '{vec: new_int[URDMA_RF_ETHQ_VECTOR_LSB+:VEC_W],
                            rx_frames: new_int[URDMA_RF_ETHQ_RX_FRAMES_LSB+:8],
                            tx_frames: new_int[URDMA_RF_ETHQ_TX_FRAMES_LSB+:8],
                            rx_usecs: new_int[URDMA_RF_ETHQ_RX_USECS_LSB+:16],
                            tx_usecs: new_int[URDMA_RF_ETHQ_TX_USECS_LSB+:16]};
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      ctrl_reg <= '0;
      rss_reg <= '0;
      key_reg <= '0;
      uc_reg <= '0;
      mc_reg <= '0;
      table_reg <= '0;
      queue_reg <= '0;
    end else if (write) begin
      if (addr == 16'(URDMA_REG_ETH_CTRL) && reg_req.strb[0]) ctrl_reg <= wdata[5:0];
      if (addr == 16'(URDMA_REG_ETH_RSS) && reg_req.strb[0]) rss_reg <= wdata[3:0];
      if (at_key) for (int i = 0; i < 8; i++) if (reg_req.strb[i]) key_reg[64*key_idx+8*i+:8] <= wdata[8*i+:8];
      if (at_uc) uc_reg[addr[6:3]] <= (uc_reg[addr[6:3]] & ~mask[48:0]) | (wdata[48:0] & mask[48:0]);
      if (at_mc) mc_reg[64*addr[4:3]+:64] <= merge(mc_reg[64*addr[4:3]+:64], wdata, mask);
      if (at_table) for (int i = 0; i < 8; i++) if (reg_req.strb[i]) table_reg[{addr[6:3], 3'(i)}] <= wdata[8*i+:ETHQ_W];
      if (at_queue) queue_reg[q] <= queue_next;
    end
  end

  // ---- VLANs: a memory with two read ports ---------------------------------------------------------------------
  logic [5:0] vlan_wr_addr;
  logic vlan_wr;
  logic [63:0] vlan_wr_data, vlan_word_reg;
  logic [5:0] vlan_bit_reg;

  assign init_done = sweep_reg[6];
  assign vlan_wr = !init_done || (write && at_vlan);
  assign vlan_wr_addr = init_done ? addr[8:3] : sweep_reg[5:0];
  assign vlan_wr_data = init_done ? merge(vlan_mem[addr[8:3]], wdata, mask) : '0;
  assign vlan_member = vlan_word_reg[vlan_bit_reg];

  always_ff @(posedge clk) begin
    if (vlan_wr) vlan_mem[vlan_wr_addr] <= vlan_wr_data;
    vlan_word_reg <= vlan_mem[vlan_id[11:6]];
    vlan_bit_reg <= vlan_id[5:0];
    if (rst) sweep_reg <= '0;
    else if (!init_done) sweep_reg <= sweep_reg + 1'b1;
  end

  // ---- reads -------------------------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    if (reg_valid && !reg_req.write) begin
      reg_rdata_reg <= '0;
      if (addr == 16'(URDMA_REG_ETH_CTRL)) reg_rdata_reg <= 64'(ctrl_reg);
      if (addr == 16'(URDMA_REG_ETH_RSS)) reg_rdata_reg <= 64'(rss_reg);
      if (at_key) reg_rdata_reg <= key_reg[64*key_idx+:64];
      if (at_uc) reg_rdata_reg <= 64'(uc_reg[addr[6:3]]);
      if (at_mc) reg_rdata_reg <= mc_reg[64*addr[4:3]+:64];
      if (at_table) for (int i = 0; i < 8; i++) reg_rdata_reg[8*i+:8] <= 8'(table_reg[{addr[6:3], 3'(i)}]);
      if (at_vlan) reg_rdata_reg <= vlan_mem[addr[8:3]];
      if (at_queue) begin
        case (qreg)
          7'(URDMA_ETHQ_CTRL): begin
            reg_rdata_reg[URDMA_RF_ETHQ_TX_ENABLE_LSB] <= queue.enable[0];
            reg_rdata_reg[URDMA_RF_ETHQ_RX_ENABLE_LSB] <= queue.enable[1];
            reg_rdata_reg[URDMA_RF_ETHQ_CQ_ENABLE_LSB] <= queue.enable[2];
            reg_rdata_reg[URDMA_RF_ETHQ_TX_ACTIVE_LSB] <= tx_active[q] || queue.enable[0];
            reg_rdata_reg[URDMA_RF_ETHQ_RX_ACTIVE_LSB] <= rx_active[q] || queue.enable[1];
            reg_rdata_reg[URDMA_RF_ETHQ_CQ_ACTIVE_LSB] <= cq_active[q] || queue.enable[2];
            reg_rdata_reg[URDMA_RF_ETHQ_TX_ERR_LSB] <= tx_err[q];
            reg_rdata_reg[URDMA_RF_ETHQ_RX_ERR_LSB] <= rx_err[q];
          end
          7'(URDMA_ETHQ_TX_BASE): reg_rdata_reg <= {queue.tx_base, 12'd0};
          7'(URDMA_ETHQ_RX_BASE): reg_rdata_reg <= {queue.rx_base, 12'd0};
          7'(URDMA_ETHQ_CQ_BASE): reg_rdata_reg <= {queue.cq_base, 12'd0};
          7'(URDMA_ETHQ_SIZE): reg_rdata_reg <= size;
          7'(URDMA_ETHQ_INT): reg_rdata_reg <= int_word;
          7'(URDMA_ETHQ_STATE): begin
            reg_rdata_reg[URDMA_RF_ETHQ_TX_CI_LSB+:16] <= tx_ci[q];
            reg_rdata_reg[URDMA_RF_ETHQ_RX_CI_LSB+:16] <= rx_ci[q];
            reg_rdata_reg[URDMA_RF_ETHQ_CQ_PI_LSB+:32] <= cq_pi[q];
          end
          default: ;
        endcase
      end
    end
  end

  // ---- decoded fields ----------------------------------------------------------------------------------------------
  function automatic logic [4:0] limited(input logic [4:0] v, input int max);
    return (32'(v) < MIN_LOG) ? 5'(MIN_LOG) : (32'(v) > max) ? 5'(max) : v;
  endfunction

  always_comb begin
    cfg.rx_enable = ctrl_reg[URDMA_RF_ETH_RX_ENABLE_LSB];
    cfg.promisc = ctrl_reg[URDMA_RF_ETH_PROMISC_LSB];
    cfg.allmulti = ctrl_reg[URDMA_RF_ETH_ALLMULTI_LSB];
    cfg.vlan_strip = ctrl_reg[URDMA_RF_ETH_VLAN_STRIP_LSB];
    cfg.vlan_filter = ctrl_reg[URDMA_RF_ETH_VLAN_FILTER_LSB];
    cfg.loopback = ctrl_reg[URDMA_RF_ETH_LOOPBACK_LSB];
    cfg.hash_ipv4 = rss_reg[URDMA_RF_ETH_RSS_IPV4_LSB];
    cfg.hash_ipv6 = rss_reg[URDMA_RF_ETH_RSS_IPV6_LSB];
    cfg.hash_tcp = rss_reg[URDMA_RF_ETH_RSS_TCP_LSB];
    cfg.hash_udp = rss_reg[URDMA_RF_ETH_RSS_UDP_LSB];
    cfg.key = key_reg;
    cfg.mac = mac;
    for (int i = 0; i < ETH_UC_N; i++) {cfg.uc_valid[i], cfg.uc[i]} = uc_reg[i];
    cfg.mc_hash = mc_reg;
    cfg.table_ = table_reg;
    for (int i = 0; i < ETHQ_N; i++) begin
      tx_ring[i] = '{enable: queue_reg[i].enable[0], base: {queue_reg[i].tx_base, 12'd0},
                     log_entries: limited(queue_reg[i].log_tx, ETH_LOG_RING)};
      rx_ring[i] = '{enable: queue_reg[i].enable[1], base: {queue_reg[i].rx_base, 12'd0},
                     log_entries: limited(queue_reg[i].log_rx, ETH_LOG_RING)};
      cq_ring[i] = '{enable: queue_reg[i].enable[2], base: {queue_reg[i].cq_base, 12'd0},
                     log_entries: limited(queue_reg[i].log_cq, ETH_LOG_CQ)};
      buf64[i] = (queue_reg[i].buf64 == '0) ? 7'd1 : (queue_reg[i].buf64 > 7'd64) ? 7'd64 : queue_reg[i].buf64;
      moderation[i] = queue_reg[i].int_;
    end
  end

endmodule

`resetall
