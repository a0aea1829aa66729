// SPDX-License-Identifier: Apache-2.0
// Completions of the Ethernet function, and its interrupts.
//
//  txc, rxc   results to report; one a cycle in all
//  db_*       software's consumer index, always accepted; with arm it requests one interrupt
//  pi         completions written, those still on wr_* included
//
// A completion leaves one cycle after it arrived. It counts for the interrupt when its write is accepted, so that the
// interrupt comes after it. The block checks one armed queue pair a cycle, so an interrupt is late by at most ETHQ_N
// cycles. Completions that software has not seen when it arms count as received at that moment.

`resetall
`default_nettype none

module urdma_eth_cq
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
(
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    busy,

  input  wire eth_ring_t [ETHQ_N-1:0]  ring,
  input  wire eth_int_t [ETHQ_N-1:0]   moderation,
  output      logic [ETHQ_N-1:0]       active,
  output      logic [ETHQ_N-1:0][31:0] pi,

  input  wire logic                    db_valid,
  input  wire logic [ETHQ_W-1:0]       db_q,
  input  wire logic                    db_arm,
  input  wire logic [31:0]             db_ci,

  input  wire logic                    txc_valid,
  input  wire eth_txc_t                txc,
  output      logic                    txc_ready,
  input  wire logic                    rxc_valid,
  input  wire eth_rxc_t                rxc,
  output      logic                    rxc_ready,

  output      logic                    wr_valid,
  output      dma_wr_t                 wr,
  input  wire logic                    wr_ready,

  output      logic                    irq_valid,
  output      logic [VEC_W-1:0]        irq_vec,
  input  wire logic                    irq_ready,

  input  wire logic [63:0]             cycles,
  output      logic                    timer_armed,
  output      logic [31:0]             timer_cycles
);

  localparam int CLOCK_MHZ = 250;

  // ---- completions ------------------------------------------------------------------------------------------------
  logic [ETHQ_N-1:0][31:0] pi_reg;
  logic [ETHQ_N-1:0] active_reg;
  logic w_valid_reg, w_rx_reg, turn_reg, free, pick_rx, take;
  logic [ETHQ_W-1:0] w_q_reg, q;
  logic [63:0] w_addr_reg;
  logic [255:0] w_data_reg, entry;
  logic [31:0] slot_mask;

  assign free = !w_valid_reg || wr_ready;
  assign pick_rx = rxc_valid && (!txc_valid || turn_reg);
  assign rxc_ready = free && pick_rx;
  assign txc_ready = free && txc_valid && !pick_rx;
  assign q = pick_rx ? rxc.q : txc.q;
  // a completion for a queue pair whose ring is not enabled is dropped
  assign take = free && (txc_valid || rxc_valid) && active_reg[q] && ring[q].enable;
  assign slot_mask = (32'd1 << ring[q].log_entries) - 32'd1;

  always_comb begin
    entry = '0;
    if (pick_rx) begin
      entry[URDMA_ECQE0_KIND_LSB+:URDMA_ECQE0_KIND_W] = 2'(URDMA_ECQE_RX);
      entry[URDMA_ECQE0_VLAN_LSB] = rxc.vlan;
      entry[URDMA_ECQE0_HASH_TYPE_LSB+:URDMA_ECQE0_HASH_TYPE_W] = rxc.hash_type;
      entry[URDMA_ECQE0_BUFS_LSB+:URDMA_ECQE0_BUFS_W] = rxc.bufs;
      entry[URDMA_ECQE0_LENGTH_LSB+:URDMA_ECQE0_LENGTH_W] = rxc.len;
      entry[URDMA_ECQE0_TCI_LSB+:URDMA_ECQE0_TCI_W] = rxc.tci;
      entry[URDMA_ECQE0_CSUM_LSB+:URDMA_ECQE0_CSUM_W] = rxc.csum;
      entry[URDMA_ECQE1_HASH_LSB+:URDMA_ECQE1_HASH_W] = rxc.hash;
      entry[URDMA_ECQE1_INDEX_LSB+:URDMA_ECQE1_INDEX_W] = rxc.index;
    end else begin
      entry[URDMA_ECQE0_KIND_LSB+:URDMA_ECQE0_KIND_W] = 2'(URDMA_ECQE_TX);
      entry[URDMA_ECQE0_ERR_LSB] = txc.err;
      entry[URDMA_ECQE1_INDEX_LSB+:URDMA_ECQE1_INDEX_W] = txc.ci;
    end
    entry[URDMA_ECQE3_PHASE_LSB] = (pi_reg[q] & (slot_mask + 32'd1)) == '0;
  end

  assign pi = pi_reg;
  assign active = active_reg;
  assign wr_valid = w_valid_reg;
  assign wr = '{addr: w_addr_reg, len: 13'(URDMA_ECQE_SIZE), data: 512'(w_data_reg), last: 1'b1};

  always_ff @(posedge clk) begin
    if (take) begin
      w_rx_reg <= pick_rx;
      w_q_reg <= q;
      w_addr_reg <= ring[q].base + {27'd0, pi_reg[q] & slot_mask, 5'd0};
      w_data_reg <= entry;
      w_data_reg[URDMA_ECQE3_CYCLES_LSB+:64] <= cycles;  // its top bit is replaced by the phase
      w_data_reg[URDMA_ECQE3_PHASE_LSB] <= entry[URDMA_ECQE3_PHASE_LSB];
    end
    if (free && (txc_valid || rxc_valid)) turn_reg <= !pick_rx;
    if (rst) begin
      w_valid_reg <= 1'b0;
      turn_reg <= 1'b0;
    end else if (free) begin
      w_valid_reg <= take;
    end
  end

  // ---- completions that wait for an interrupt -----------------------------------------------------------------------
  // For each kind (1: receive): how many completions, and since when the oldest waits. Moderation may change meanwhile.
  typedef struct packed {
    logic        pending;
    logic [7:0]  n;
    logic [31:0] since;
  } wait_t;

  wait_t [ETHQ_N-1:0][1:0] wait_reg;
  logic [ETHQ_N-1:0] armed_reg, irq_reg;
  logic [ETHQ_W-1:0] scan;  // derived from the time: the result is the same if the clock was stopped
  logic written, fire;
  logic [31:0] now, unseen;
  logic [ETHQ_N-1:0] irq_grant;
  logic [ETHQ_W-1:0] irq_idx;
  logic irq_any, irq_free, irq_valid_reg;
  logic [VEC_W-1:0] irq_vec_reg;

  assign now = cycles[31:0];
  assign scan = cycles[ETHQ_W-1:0];
  assign written = w_valid_reg && wr_ready;

  // cycles that are left to wait
  function automatic logic [31:0] left(input logic [31:0] since, input logic [15:0] usecs, input logic [31:0] t);
    logic [31:0] most, waited;
    most = 32'(usecs) * 32'(CLOCK_MHZ);
    waited = t - since;
    return (waited < most) ? most - waited : '0;
  endfunction

  function automatic wait_t count(input wait_t w, input logic [31:0] n, input logic [31:0] t);
    wait_t r;
    r.pending = 1'b1;
    r.n = (n > 32'd255 || 9'(w.n) + 9'(n) > 9'd255) ? 8'd255 : w.n + n[7:0];
    r.since = w.pending ? w.since : t;
    return r;
  endfunction

  function automatic logic due(input wait_t w, input logic [7:0] frames, input logic [15:0] usecs, input logic [31:0] t);
    return w.pending && ((frames == '0 && usecs == '0) || (frames != '0 && w.n >= frames)
                         || (usecs != '0 && left(w.since, usecs, t) == '0));
  endfunction

  logic [ETHQ_N-1:0] due_now;
  always_comb begin
    due_now = '0;
    // the time changes in every cycle: nothing is compared with it for a queue pair that is not armed
    for (int i = 0; i < ETHQ_N; i++) begin
      if (armed_reg[i])
        due_now[i] = due(wait_reg[i][1], moderation[i].rx_frames, moderation[i].rx_usecs, now)
                     || due(wait_reg[i][0], moderation[i].tx_frames, moderation[i].tx_usecs, now);
    end
  end
  assign fire = due_now[scan];

  // not seen by software: written before the doorbell; a completion still on wr_* is counted when its write is accepted
  assign unseen = pi_reg[db_q] - 32'(w_valid_reg && w_q_reg == db_q) - db_ci;

  always_ff @(posedge clk) begin
    if (fire) begin
      armed_reg[scan] <= 1'b0;
      irq_reg[scan] <= 1'b1;
    end
    if (irq_any && irq_free) irq_reg[irq_idx] <= 1'b0;
    if (written && armed_reg[w_q_reg])
      wait_reg[w_q_reg][w_rx_reg] <= count(wait_reg[w_q_reg][w_rx_reg], 32'd1, now);
    if (db_valid && db_arm && active_reg[db_q]) begin
      armed_reg[db_q] <= 1'b1;
      wait_reg[db_q] <= '0;
      if (written && w_q_reg == db_q)
        wait_reg[db_q][1] <= count('0, unseen + 32'd1, now);
      else if (unseen != '0 && !unseen[31])
        wait_reg[db_q][1] <= count('0, unseen, now);
    end
    // start and end of a ring
    for (int i = 0; i < ETHQ_N; i++) begin
      if (take && q == ETHQ_W'(i)) pi_reg[i] <= pi_reg[i] + 32'd1;
      if (!active_reg[i] && ring[i].enable) begin
        active_reg[i] <= 1'b1;
        pi_reg[i] <= '0;
        armed_reg[i] <= 1'b0;
        wait_reg[i] <= '0;
      end
      if (active_reg[i] && !ring[i].enable && !(w_valid_reg && w_q_reg == ETHQ_W'(i)) && !irq_reg[i] && !fire) begin
        active_reg[i] <= 1'b0;
        armed_reg[i] <= 1'b0;
      end
    end
    if (rst) begin
      armed_reg <= '0;
      irq_reg <= '0;
      active_reg <= '0;
      wait_reg <= '0;
      pi_reg <= '0;
    end
  end

  urdma_arb_rr #(.N(ETHQ_N)) irq_arb (
    .clk, .rst, .req(irq_reg), .advance(irq_free), .grant(irq_grant), .grant_idx(irq_idx), .grant_valid(irq_any)
  );
  assign irq_free = !irq_valid_reg || irq_ready;
  assign irq_valid = irq_valid_reg;
  assign irq_vec = irq_vec_reg;

  always_ff @(posedge clk) begin
    if (irq_any && irq_free) irq_vec_reg <= moderation[irq_idx].vec;
    if (rst) irq_valid_reg <= 1'b0;
    else if (irq_free) irq_valid_reg <= irq_any;
  end

  // ---- time ---------------------------------------------------------------------------------------------------------
  always_comb begin
    // a due interrupt is raised when the scan reaches its queue pair
    timer_armed = due_now != '0;
    timer_cycles = timer_armed ? '0 : '1;
    for (int i = 0; i < ETHQ_N; i++) begin
      for (int k = 0; k < 2; k++) begin
        logic [15:0] usecs;
        usecs = (k != 0) ? moderation[i].rx_usecs : moderation[i].tx_usecs;
        if (armed_reg[i] && wait_reg[i][k].pending && usecs != '0) begin
          timer_armed = 1'b1;
          if (left(wait_reg[i][k].since, usecs, now) < timer_cycles) timer_cycles = left(wait_reg[i][k].since, usecs, now);
        end
      end
    end
  end

  logic starting, stopping;
  always_comb begin
    starting = 1'b0;
    stopping = 1'b0;
    for (int i = 0; i < ETHQ_N; i++) begin
      if (ring[i].enable && !active_reg[i]) starting = 1'b1;
      if (!ring[i].enable && active_reg[i]) stopping = 1'b1;
    end
  end
  assign busy = w_valid_reg || txc_valid || rxc_valid || db_valid || irq_reg != '0 || irq_valid_reg || due_now != '0 || starting || stopping;

  logic unused;
  assign unused = &{1'b0, irq_grant};

endmodule

`resetall
