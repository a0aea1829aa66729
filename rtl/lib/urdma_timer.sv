// SPDX-License-Identifier: Apache-2.0
// One deadline for each object of a kind (QP, CQ).
//
//  set_*    arm, rearm or disarm the timer of an object; always taken in the same cycle
//  exp_*    the deadline of an object has passed, which disarms its timer
//  armed, wait_cycles   a timer is armed; cycles until the earliest deadline, saturated, never too many
//
// The deadlines are in a memory, the armed bits in a bitmap. next_reg is no later than the earliest armed deadline: arming
// lowers it, rearming to a later time (as each acknowledgement does) leaves it. When it is reached, a sweep goes over the
// bitmap (two cycles a word, two an armed object), reports the expired timers and finds the new minimum. So nothing runs
// while time passes. A sweep costs 128 cycles and is due at most once for each deadline that was ever the earliest; an expiry
// is at most two sweeps late. An object that is rearmed while the sweep looks at it is left to the next sweep. cycles may
// jump ahead while the block is not busy.

`resetall
`default_nettype none

module urdma_timer #(
  parameter int IDX_W = 12          // log2 of the number of objects, at least 6
) (
  input  wire logic             clk,
  input  wire logic             rst,
  output      logic             init_done,
  output      logic             busy,

  input  wire logic [63:0]      cycles,
  input  wire logic             set_valid,
  input  wire logic [IDX_W-1:0] set_idx,
  input  wire logic             set_arm,
  input  wire logic [63:0]      set_deadline,

  output      logic             exp_valid,
  output      logic [IDX_W-1:0] exp_idx,
  input  wire logic             exp_ready,

  output      logic             armed,
  output      logic [31:0]      wait_cycles
);

  localparam int WORD_W = IDX_W - 6;

  typedef enum logic [1:0] {S_IDLE, S_WORD, S_BIT, S_CHECK} s_e;

  s_e s_reg;
  logic [WORD_W:0] init_reg;
  logic [63:0] map [1 << WORD_W];
  logic [IDX_W:0] count_reg;
  logic [63:0] next_reg, acc_reg, deadline;
  logic [63:0] word_reg, set_word, look_word, lowest, map_wdata;
  logic [WORD_W-1:0] w_reg, map_waddr;
  logic [5:0] bit_reg, bit_sel;
  logic touched_reg, was_armed, set_lower, map_we, skip, late, fire, word_last;
  logic [63:0] lower;

  assign init_done = init_reg[WORD_W];
  always_ff @(posedge clk) begin
    if (rst) init_reg <= '0;
    else if (!init_done) init_reg <= init_reg + 1'b1;
  end

  urdma_ram_sdp #(.WIDTH(64), .DEPTH(1 << IDX_W)) u_deadline (
    .clk(clk), .wr_en(set_valid && set_arm), .wr_addr(set_idx), .wr_data(set_deadline),
    .rd_en(s_reg == S_BIT), .rd_addr({w_reg, bit_sel}), .rd_data(deadline)
  );

  // ---- the bitmap: one write per cycle, set_* has priority ----------------------------------------------
  assign set_word = map[set_idx[IDX_W-1:6]];
  assign look_word = map[w_reg];
  assign was_armed = set_word[set_idx[5:0]];

  always_comb begin
    map_we = !init_done || set_valid || fire;
    map_waddr = set_valid ? set_idx[IDX_W-1:6] : w_reg;
    map_wdata = set_valid ? set_word : look_word;
    if (set_valid) map_wdata[set_idx[5:0]] = set_arm;
    else map_wdata[bit_reg] = 1'b0;
    if (!init_done) begin
      map_waddr = init_reg[WORD_W-1:0];
      map_wdata = '0;
    end
  end

  always_ff @(posedge clk) begin
    if (map_we) map[map_waddr] <= map_wdata;
  end

  always_ff @(posedge clk) begin
    if (rst) count_reg <= '0;
    else if (set_valid && set_arm && !was_armed) count_reg <= count_reg + 1'b1;
    else if (fire || (set_valid && !set_arm && was_armed)) count_reg <= count_reg - 1'b1;
  end

  // ---- the sweep ---------------------------------------------------------------------------------------
  assign lowest = word_reg & (~word_reg + 64'd1);
  always_comb begin
    bit_sel = '0;
    for (int i = 0; i < 64; i++) if (lowest[i]) bit_sel |= 6'(i);
  end

  assign exp_idx = {w_reg, bit_reg};
  // the deadline read may be old, or the timer may be off meanwhile
  assign skip = touched_reg || (set_valid && set_idx == exp_idx) || !look_word[bit_reg];
  assign late = deadline <= cycles;
  assign exp_valid = s_reg == S_CHECK && !skip && late && !set_valid;
  assign fire = exp_valid && exp_ready;
  assign word_last = &w_reg;

  assign set_lower = set_valid && set_arm;
  always_comb begin
    lower = acc_reg;
    if (s_reg == S_CHECK && !skip && !late && deadline < lower) lower = deadline;
    if (set_lower && set_deadline < lower) lower = set_deadline;
  end

  always_ff @(posedge clk) begin
    if (s_reg == S_WORD) word_reg <= look_word;
    if (s_reg == S_BIT) begin
      bit_reg <= bit_sel;
      word_reg <= word_reg & ~lowest;
      touched_reg <= set_valid && set_idx == {w_reg, bit_sel};
    end else if (set_valid && set_idx == exp_idx) begin
      touched_reg <= 1'b1;
    end
    if (s_reg == S_IDLE) begin
      w_reg <= '0;
      acc_reg <= set_lower ? set_deadline : '1;
    end else begin
      acc_reg <= lower;
      if (s_reg == S_BIT && word_reg == '0) w_reg <= w_reg + 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      s_reg <= S_IDLE;
      next_reg <= '1;
    end else begin
      case (s_reg)
        S_IDLE: begin
          if (count_reg != '0 && cycles >= next_reg) s_reg <= S_WORD;
          if (set_lower && (count_reg == '0 || set_deadline < next_reg)) next_reg <= set_deadline;
        end
        S_WORD: s_reg <= S_BIT;
        S_BIT: begin
          if (word_reg != '0) begin
            s_reg <= S_CHECK;
          end else if (word_last) begin
            s_reg <= S_IDLE;
            next_reg <= lower;
          end else begin
            s_reg <= S_WORD;
          end
        end
        default: if (skip || !late || fire) s_reg <= S_BIT;
      endcase
    end
  end

  assign armed = count_reg != '0;
  assign busy = !init_done || s_reg != S_IDLE || (armed && cycles >= next_reg);

  logic [63:0] left;
  assign left = next_reg - cycles;
  assign wait_cycles = (s_reg != S_IDLE || cycles >= next_reg) ? 32'd0 : (left[63:32] != '0) ? '1 : left[31:0];

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_armed_at_look: cover property (@(posedge clk) !rst && s_reg == S_CHECK && set_valid && set_arm && set_idx == exp_idx);
  c_stopped_at_look: cover property (@(posedge clk) !rst && s_reg == S_CHECK && set_valid && !set_arm && set_idx == exp_idx);
  c_touched_before_look: cover property (@(posedge clk) !rst && s_reg == S_CHECK && touched_reg);
  c_armed_in_sweep: cover property (@(posedge clk) !rst && s_reg != S_IDLE && set_lower && !was_armed);
`endif

endmodule

`resetall
