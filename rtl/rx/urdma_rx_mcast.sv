// SPDX-License-Identifier: Apache-2.0
// Multicast groups of UD: which groups this NIC is in, and a copy of a datagram for each member (IBA volume 1, 10.5).
//
//  look_*    (from the parser) a RoCE frame to a group's MAC address. hit, idx and copies follow in the next cycle and hold
//            until the next look: this NIC is in the group, its index, and its number of members
//  took_*    (from the parser) a datagram to a group goes to the packet queue
//  full      the waiting copies are as many as half of the packet buffer has lines: no further datagram to a group is
//            accepted
//  dgram_*   (from the packet queue) the datagram at its head is to group idx
//  copy_*    the next member. The copy marked last takes the datagram out of the queue and frees its lines. Each datagram has
//            one, if need be with a QP number that no QP has
//  op_*      from urdma_ctl: ATTACH, DETACH, and LEAVE, which ends every membership of a QP. The answer is valid with
//            op_ready
//  any       some group has a member
//
// A member is one of MEMBERS slots: QP and group. All slots are compared at once, so an operation takes a few cycles, and a
// datagram needs no list: it goes to the slots that belonged to its group when its turn began. A slot released since then
// gets a copy to no QP, so the number of copies is known from the beginning.
//
// When an operation is answered, no more copies go to the QP through a released slot: a slot with a copy under way is
// released after that copy. A slot that a datagram has still to visit gets no new member, because that member would receive a
// datagram twice.
//
// A datagram counts as if each member had been sent one: its lines times its members are waiting. So groups cannot delay the
// packets behind them for longer than their share of the buffer would.

`resetall
`default_nettype none

module urdma_rx_mcast
  import urdma_pkg::*;
  import urdma_rx_pkg::*;
(
  input  wire logic               clk,
  input  wire logic               rst,

  // parser
  input  wire logic               look_valid,
  input  wire mc_look_t           look,
  output      logic               hit,
  output      logic [MCG_W-1:0]   hit_idx,
  output      logic [MCM_W:0]     hit_copies,
  input  wire logic               took_valid,
  input  wire mc_cost_t           took,
  output      logic               full,
  output      logic               loop_room,   // the same for looped frames, which begin before the last ones are counted

  // packet queue
  input  wire logic               dgram_valid,
  input  wire logic [MCG_W-1:0]   dgram_idx,
  input  wire logic [127:0]       dgram_dip,
  input  wire mc_cost_t           dgram_cost,
  output      logic               copy_valid,
  output      logic [23:0]        copy_qpn,
  output      logic               copy_last,
  input  wire logic               copy_ready,

  // operations
  input  wire logic               op_valid,
  input  wire mc_op_t             op,
  output      logic               op_ready,
  output      mc_status_e         op_status,
  output      logic               any
);

  localparam int GROUPS = 1 << MCG_W;
  localparam int MEMBERS = 1 << MCM_W;
  localparam logic [23:0] NO_QPN = '1;
  localparam int LIMIT = 1 << (BUF_W - 1);       // lines of waiting copies
  localparam int COST_W = MCM_W + 8;             // of one datagram: up to 256 * 65

  typedef logic [MEMBERS-1:0] set_t;

  logic [GROUPS-1:0] grp_valid_reg;
  logic [GROUPS-1:0][127:0] grp_gid_reg;
  logic [GROUPS-1:0][MCM_W:0] grp_count_reg;
  set_t valid_reg;
  logic [MEMBERS-1:0][QPN_W-1:0] qpn_reg;
  logic [MEMBERS-1:0][MCG_W-1:0] of_reg;

  function automatic set_t first_of(input set_t s);
    return s & (~s + set_t'(1));
  endfunction

  function automatic logic [QPN_W-1:0] qpn_at(input set_t one, input logic [MEMBERS-1:0][QPN_W-1:0] t);
    logic [QPN_W-1:0] r;
    r = '0;
    for (int i = 0; i < MEMBERS; i++) if (one[i]) r |= t[i];
    return r;
  endfunction

  function automatic logic [MCG_W-1:0] group_at(input set_t one, input logic [MEMBERS-1:0][MCG_W-1:0] t);
    logic [MCG_W-1:0] r;
    r = '0;
    for (int i = 0; i < MEMBERS; i++) if (one[i]) r |= t[i];
    return r;
  endfunction

  function automatic logic [GROUPS-1:0] groups_of(input logic [127:0] gid, input logic [GROUPS-1:0] v,
                                                  input logic [GROUPS-1:0][127:0] t);
    for (int i = 0; i < GROUPS; i++) groups_of[i] = v[i] && t[i] == gid;
  endfunction

  function automatic logic [MCG_W-1:0] number_of(input logic [GROUPS-1:0] one);
    number_of = '0;
    for (int i = 0; i < GROUPS; i++) if (one[i]) number_of |= MCG_W'(i);
  endfunction

  assign any = grp_valid_reg != '0;

  // ---- parser ------------------------------------------------------------------------------------------------------------
  logic hit_reg;
  logic [MCG_W-1:0] hit_idx_reg;
  assign hit = hit_reg;
  assign hit_idx = hit_idx_reg;
  assign hit_copies = grp_count_reg[hit_idx_reg];

  // The MAC address that goes with a group: RFC 1112, 6.4; RFC 2464, 7
  function automatic logic mac_fits(input mc_look_t l);
    if (l.ipv4) return l.dmac == {l.dip[127:112], 1'b0, l.dip[110:104], 24'h5e0001};
    return l.dmac == {l.dip[127:96], 16'h3333};
  endfunction

  always_ff @(posedge clk) begin
    if (look_valid) begin
      logic [GROUPS-1:0] g;
      g = groups_of(look.dip, grp_valid_reg, grp_gid_reg);
      hit_reg <= g != '0 && mac_fits(look) && look.ipv4 == (look.dip[7:0] == 8'd0);
      hit_idx_reg <= number_of(g);
    end
  end

  // ---- waiting datagrams -------------------------------------------------------------------------------------------------
  logic gone;
  logic [COST_W-1:0] more_reg, less_reg;
  logic [COST_W+3:0] waits_reg;                  // beyond LIMIT: datagrams that were in the parser's stages
  assign gone = copy_valid && copy_ready && copy_last;
  assign full = waits_reg >= (COST_W+4)'(LIMIT);
  assign loop_room = waits_reg < (COST_W+4)'(LIMIT / 4);

  always_ff @(posedge clk) begin
    if (rst) begin
      more_reg <= '0;
      less_reg <= '0;
      waits_reg <= '0;
    end else begin
      more_reg <= took_valid ? COST_W'(took.copies) * COST_W'(took.lines) : '0;
      less_reg <= gone ? COST_W'(dgram_cost.copies) * COST_W'(dgram_cost.lines) : '0;
      waits_reg <= waits_reg + (COST_W+4)'(more_reg) - (COST_W+4)'(less_reg);
    end
  end

  // ---- copies --------------------------------------------------------------------------------------------------------------
  // FIND: the members; PICK: the first of them; LOAD: its QP; OUT: offered
  typedef enum logic [2:0] {C_IDLE, C_FIND, C_PICK, C_LOAD, C_OUT} copy_e;
  copy_e copy_state_reg;
  set_t left_reg, at_reg;                        // members to come, and the current one
  logic [QPN_W-1:0] copy_qpn_reg;
  logic copy_none_reg;
  logic [127:0] find_gid_reg;
  set_t open;                                    // slots that a datagram has still to visit
  logic slot_set, slot_clear;                    // an operation writes the slot slot_one_reg, below
  set_t slot_one_reg;

  assign copy_valid = copy_state_reg == C_OUT;
  assign copy_qpn = copy_none_reg ? NO_QPN : 24'(copy_qpn_reg);
  assign copy_last = left_reg == '0;
  assign open = (copy_state_reg == C_PICK ? left_reg : '0) | (copy_state_reg == C_LOAD ? left_reg | at_reg : '0)
      | (copy_state_reg == C_OUT ? left_reg : '0);

  always_ff @(posedge clk) begin
    if (rst) begin
      copy_state_reg <= C_IDLE;
    end else begin
      case (copy_state_reg)
        C_IDLE: if (dgram_valid) copy_state_reg <= C_FIND;
        C_FIND: copy_state_reg <= C_PICK;
        C_PICK: copy_state_reg <= C_LOAD;
        C_LOAD: copy_state_reg <= C_OUT;
        default: if (copy_ready) copy_state_reg <= copy_last ? C_IDLE : C_LOAD;
      endcase
    end
    // A datagram whose destination QPN is not the multicast QPN goes to no member. So does one whose group no longer exists:
    // its index may be reused.
    if (dgram_valid && copy_state_reg == C_IDLE) find_gid_reg <= grp_gid_reg[dgram_idx];
    if (copy_state_reg == C_FIND)
      for (int i = 0; i < MEMBERS; i++)
        left_reg[i] <= valid_reg[i] && of_reg[i] == dgram_idx && dgram_cost.copies != '0 && find_gid_reg == dgram_dip;
    if (copy_state_reg == C_PICK || (copy_valid && copy_ready)) begin
      at_reg <= first_of(left_reg);
      left_reg <= left_reg & ~first_of(left_reg);
    end
    if (copy_state_reg == C_LOAD) begin
      copy_qpn_reg <= qpn_at(at_reg, qpn_reg);
      copy_none_reg <= (at_reg & valid_reg & ~(slot_clear ? slot_one_reg : '0)) == '0;
    end
  end

  // ---- operations ------------------------------------------------------------------------------------------------------------
  // IDLE: find the group, or a free one; SLOTS: the memberships concerned, or the free slots; PICK: one of them; ACT
  typedef enum logic [2:0] {O_IDLE, O_SLOTS, O_PICK, O_ACT, O_DONE} op_e;
  op_e op_state_reg;
  logic op_known_reg, op_new_reg;                // the group exists; a new one fits
  logic [MCG_W-1:0] op_idx_reg;                  // index of the group
  set_t op_set_reg, op_free_reg;
  logic op_found_reg;
  mc_status_e op_status_reg;
  logic [MCG_W-1:0] act_idx;

  assign op_ready = op_state_reg == O_DONE;
  assign op_status = op_status_reg;
  // A slot may still be open for a datagram: the operation waits for the datagram to end. A group's index gets no new GID
  // either while a datagram reads the old one.
  assign slot_set = op_state_reg == O_ACT && op.kind == MC_ATTACH && slot_one_reg != '0
      && !(copy_state_reg == C_IDLE && dgram_valid);
  assign slot_clear = op_state_reg == O_ACT && op.kind != MC_ATTACH && op_found_reg && !(copy_valid && (slot_one_reg & at_reg) != '0);
  assign act_idx = op.kind == MC_LEAVE ? group_at(slot_one_reg, of_reg) : op_idx_reg;

  always_ff @(posedge clk) begin
    if (rst) begin
      op_state_reg <= O_IDLE;
      valid_reg <= '0;
      grp_valid_reg <= '0;
      grp_count_reg <= '0;
    end else begin
      case (op_state_reg)
        O_IDLE: if (op_valid) op_state_reg <= O_SLOTS;
        O_SLOTS: op_state_reg <= O_PICK;
        O_PICK: begin
          op_state_reg <= O_ACT;
          op_status_reg <= MC_OK;
          if (op.kind == MC_ATTACH && op_found_reg) begin
            op_status_reg <= MC_EXISTS;
            op_state_reg <= O_DONE;
          end else if (op.kind == MC_ATTACH && ((&valid_reg) || (!op_known_reg && !op_new_reg))) begin
            op_status_reg <= MC_FULL;
            op_state_reg <= O_DONE;
          end else if (op.kind != MC_ATTACH && !op_found_reg) begin
            if (op.kind == MC_DETACH) op_status_reg <= MC_NONE;
            op_state_reg <= O_DONE;
          end
        end
        O_ACT: begin
          if (slot_set) begin
            valid_reg <= valid_reg | slot_one_reg;
            grp_valid_reg[op_idx_reg] <= 1'b1;
            grp_count_reg[op_idx_reg] <= grp_count_reg[op_idx_reg] + 1'b1;
            op_state_reg <= O_DONE;
          end
          if (slot_clear) begin
            valid_reg <= valid_reg & ~slot_one_reg;
            grp_count_reg[act_idx] <= grp_count_reg[act_idx] - 1'b1;
            if (grp_count_reg[act_idx] == (MCM_W+1)'(1)) grp_valid_reg[act_idx] <= 1'b0;
            op_state_reg <= op.kind == MC_LEAVE ? O_PICK : O_DONE;
          end
          // a datagram has still to visit every free slot, or a datagram begins
          if (op.kind == MC_ATTACH && !slot_set) op_state_reg <= O_SLOTS;
        end
        default: op_state_reg <= O_IDLE;  // O_DONE
      endcase
    end
    if (op_state_reg == O_IDLE && op_valid) begin
      logic [GROUPS-1:0] g, f;
      g = groups_of(op.gid, grp_valid_reg, grp_gid_reg);
      f = ~grp_valid_reg & (grp_valid_reg + GROUPS'(1));
      op_known_reg <= g != '0;
      op_new_reg <= f != '0;
      op_idx_reg <= number_of(g != '0 ? g : f);
    end
    if (op_state_reg == O_SLOTS) begin
      set_t s;
      for (int i = 0; i < MEMBERS; i++)
        s[i] = valid_reg[i] && qpn_reg[i] == op.qpn && (op.kind == MC_LEAVE || (op_known_reg && of_reg[i] == op_idx_reg));
      op_set_reg <= s;
      op_found_reg <= s != '0;
      op_free_reg <= ~valid_reg & ~open;
    end
    if (op_state_reg == O_PICK) slot_one_reg <= first_of(op.kind == MC_ATTACH ? op_free_reg : op_set_reg);
    if (slot_clear) begin
      op_set_reg <= op_set_reg & ~slot_one_reg;
      op_found_reg <= (op_set_reg & ~slot_one_reg) != '0;
    end
    if (slot_set) begin
      grp_gid_reg[op_idx_reg] <= op.gid;
      for (int i = 0; i < MEMBERS; i++) if (slot_one_reg[i]) begin
        qpn_reg[i] <= op.qpn;
        of_reg[i] <= op_idx_reg;
      end
    end
  end

`ifndef SYNTHESIS
  // Cases that the tests must reach (make coverage).
  c_left: cover property (@(posedge clk) !rst && copy_valid && copy_none_reg && copy_ready && dgram_cost.copies != '0);
  c_wait: cover property (@(posedge clk) !rst && op_state_reg == O_ACT && op.kind != MC_ATTACH && !slot_clear);
  always_ff @(posedge clk)
    if (!rst) a_any: assert (any == (valid_reg != '0))
      else $error("%m: groups without members, or members without a group");
`endif

endmodule

`resetall
