// SPDX-License-Identifier: Apache-2.0
// Look up the QP of an item and check that a packet belongs to it.
//
//  in_*    an item is taken when its configuration is asked for
//  out_*   found items, in order
//
// Up to DEPTH items are between in and out. Their room is reserved before the configuration is requested, so the stages after
// the answer never wait. A packet that fails a check comes out with pass 0: it may own lines of the packet buffer, which are
// freed in order.
//
// A QP takes only packets of its own transport. With XRC a target takes requests and an initiator takes answers. tok_*:
// urdma_rx_xrc names the SRQ that a flush token of a target is for. For UD the addresses are not compared: the parser has
// already found that the frame is to one of the port's own.

`resetall
`default_nettype none

module urdma_rx_lookup
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_opcode_pkg::*;
  import urdma_rx_pkg::*;
  import urdma_trace_pkg::*;
#(
  // states (bit n: URDMA_QPS_ n) in which a packet is taken
  parameter logic [15:0] STATES = 16'h0000,
  // the same for READ responses and ATOMIC acknowledges
  parameter logic [15:0] RSP_STATES = 16'h0000,
  // READ responses and ATOMIC acknowledges are accepted or refused elsewhere: here no address is compared, since AV, P_Key
  // and GID entries may have changed since the request
  parameter bit RSP_DECIDED = 1'b0,
  // completions go to 0: the receive CQ, 1: the send CQ
  parameter int SEND_CQ = 0,
  // items in flight, a power of two
  parameter int DEPTH = 16
) (
  input  wire logic             clk,
  input  wire logic             rst,

  input  wire logic             in_valid,
  output      logic             in_ready,
  input  wire item_t            in,

  output      logic             qpr_req_valid,
  output      logic [QPN_W-1:0] qpr_req_qpn,
  input  wire logic             qpr_req_ready,
  input  wire logic             qpr_rsp_valid,
  input  wire qp_cfg_t          qpr_rsp,
  output      logic [GID_W-1:0] gid_idx,
  input  wire gid_t             gid,
  output      logic             tok_en,
  output      logic [QPN_W-1:0] tok_qpn,
  input  wire logic [SRQN_W-1:0] tok_srqn,     // latency 1

  output      logic             out_valid,
  input  wire logic             out_ready,
  output      found_t           out
);

  localparam int CW = $clog2(DEPTH) + 1;

  logic [CW-1:0] used_reg;
  logic room, take, give;
  item_t meta;

  assign room = !used_reg[CW-1];
  assign qpr_req_valid = in_valid && room;
  assign qpr_req_qpn = in.pkt.dqpn[QPN_W-1:0];
  assign in_ready = room && qpr_req_ready;
  assign take = in_valid && in_ready;
  assign give = out_valid && out_ready;

  always_ff @(posedge clk) begin
    if (rst) used_reg <= '0;
    else if (take && !give) used_reg <= used_reg + 1'b1;
    else if (give && !take) used_reg <= used_reg - 1'b1;
  end

  urdma_fifo #(.WIDTH($bits(item_t)), .DEPTH(DEPTH)) u_meta (
    .clk(clk), .rst(rst),
    .in_valid(take), .in_ready(), .in_data(in),
    .out_valid(), .out_ready(qpr_rsp_valid), .out_data(meta), .count()
  );

  // ---- checks: all but the GID entry's in the first cycle, the rest in the second -------------------------
  logic r1_valid_reg, r2_valid_reg;
  item_t r1_reg, r2_reg;
  /* verilator lint_off UNUSEDSIGNAL */
  qp_cfg_t r1_cfg_reg;             // fields of other readers
  /* verilator lint_on UNUSEDSIGNAL */
  logic r2_exists_reg, r2_pass_reg, r2_from_any_reg;
  logic r1_exists, r1_pass, r1_ud, r1_tgt, r1_own, r1_decided, r2_pass;
  bth_t r1_bth;
  found_t r2_found_reg, f_in;
  trace_why_e r1_why;
  logic [11:0] r2_vlan;

  // The same partition, which is not 0 (the invalid one), and at least one of the two is a full member (IBA volume 1, 10.9.3).
  function automatic logic pkeys_match(input logic [15:0] a, input logic [15:0] b);
    return a[14:0] == b[14:0] && a[14:0] != '0 && (a[15] || b[15]);
  endfunction

  assign tok_en = qpr_rsp_valid && meta.kind == IT_KICK;
  assign tok_qpn = meta.pkt.dqpn[QPN_W-1:0];

  assign gid_idx = r1_cfg_reg.sgid;
  assign r1_bth = r1_reg.pkt.bth;
  assign r1_exists = r1_cfg_reg.valid && r1_reg.pkt.dqpn[23:QPN_W] == '0;
  assign r1_ud = r1_cfg_reg.qp_type == 4'(URDMA_QPT_UD);
  assign r1_tgt = r1_cfg_reg.qp_type == 4'(URDMA_QPT_XRC_TGT);
  always_comb begin
    case (r1_bth.transport)
      XP_RC: r1_own = r1_cfg_reg.qp_type == 4'(URDMA_QPT_RC);
      XP_UC: r1_own = r1_cfg_reg.qp_type == 4'(URDMA_QPT_UC);
      XP_UD: r1_own = r1_ud;
      XP_XRC: r1_own = (r1_bth.ack || r1_bth.response) ? r1_cfg_reg.qp_type == 4'(URDMA_QPT_XRC_INI) : r1_tgt;
      default: r1_own = 1'b0;
    endcase
  end
  assign r1_decided = RSP_DECIDED && r1_bth.response;
  assign r1_pass = (r1_bth.response ? RSP_STATES[r1_cfg_reg.state] : STATES[r1_cfg_reg.state]) && r1_own && (r1_decided
      || ((r1_ud || r1_cfg_reg.dgid == r1_reg.pkt.sip) && pkeys_match(r1_cfg_reg.pkey, r1_reg.pkt.pkey)));
  // For the lanes. If nothing else is wrong, the address does not match the GID entry; that is known in the next cycle.
  always_comb begin
    r1_why = TRW_ADDRESS;
    if (!r1_exists) r1_why = TRW_NO_QP;
    else if (!r1_own) r1_why = TRW_TRANSPORT;
    else if (!(r1_bth.response ? RSP_STATES[r1_cfg_reg.state] : STATES[r1_cfg_reg.state])) r1_why = TRW_STATE;
    else if (!pkeys_match(r1_cfg_reg.pkey, r1_reg.pkt.pkey)) r1_why = TRW_PKEY;
  end
  // a tag with VLAN 0 carries a priority only
  assign r2_vlan = r2_reg.pkt.vlan_valid ? r2_reg.pkt.tci[11:0] : 12'd0;
  assign r2_pass = r2_exists_reg && (r2_reg.kind != IT_PKT || (r2_pass_reg && (r2_from_any_reg || (gid.valid
      && gid.ipv4 == r2_reg.pkt.ipv4 && gid.gid == r2_reg.pkt.dip && gid.smac == r2_reg.pkt.dmac
      && (gid.vlan_valid ? gid.vlan : 12'd0) == r2_vlan))));

  always_ff @(posedge clk) begin
    if (qpr_rsp_valid) begin
      r1_reg <= meta;
      r1_cfg_reg <= qpr_rsp;
    end
    if (r1_valid_reg) begin
      r2_reg <= r1_reg;
      // A QP that has been moved to RESET is not looked at again: none of its WQEs may complete after the fence.
      r2_exists_reg <= r1_exists && !(r1_reg.kind == IT_KICK && r1_cfg_reg.state == 4'(URDMA_QPS_RESET));
      r2_pass_reg <= r1_pass;
      r2_from_any_reg <= r1_ud || r1_decided;
      r2_found_reg.kind <= r1_reg.kind;
      r2_found_reg.pass <= 1'b0;
      r2_found_reg.why <= r1_why;
      r2_found_reg.more <= r1_reg.pkt.mc;
      r2_found_reg.qpn <= r1_reg.pkt.dqpn[QPN_W-1:0];
      r2_found_reg.bad_qkey <= r1_ud && r1_cfg_reg.qkey != be32(r1_reg.pkt.ext[31:0]);
      r2_found_reg.unrel <= r1_ud || r1_cfg_reg.qp_type == 4'(URDMA_QPT_UC);
      r2_found_reg.srq <= r1_cfg_reg.srq || r1_tgt;
      r2_found_reg.srqn <= !r1_tgt ? r1_cfg_reg.srqn : (r1_reg.kind == IT_KICK) ? tok_srqn : r1_reg.pkt.srqn[SRQN_W-1:0];
      r2_found_reg.xrc <= r1_tgt;
      r2_found_reg.no_srqn <= r1_reg.kind != IT_KICK && (!r1_bth.xrceth || r1_reg.pkt.srqn[23:SRQN_W] != '0);
      r2_found_reg.opcode <= r1_reg.pkt.opcode;
      r2_found_reg.bth <= r1_bth;
      r2_found_reg.ipv4 <= r1_reg.pkt.ipv4;
      r2_found_reg.vlan_valid <= r1_reg.pkt.vlan_valid;
      r2_found_reg.tci <= r1_reg.pkt.tci;
      r2_found_reg.se <= r1_reg.pkt.se;
      r2_found_reg.ackreq <= r1_reg.pkt.ackreq;
      r2_found_reg.psn <= r1_reg.pkt.psn;
      r2_found_reg.ext <= r1_reg.pkt.ext;
      r2_found_reg.len <= r1_reg.pkt.len;
      r2_found_reg.line <= r1_reg.pkt.line;
      r2_found_reg.lines <= r1_reg.pkt.lines;
      r2_found_reg.cqn <= (SEND_CQ != 0) ? r1_cfg_reg.send_cq : r1_cfg_reg.recv_cq;
      r2_found_reg.dest_qpn <= r1_ud ? be24(r1_reg.pkt.ext[63:40]) : r1_cfg_reg.dest_qpn;
      r2_found_reg.pd <= r1_cfg_reg.pd;
      r2_found_reg.mtu <= r1_cfg_reg.mtu;
      r2_found_reg.min_rnr <= r1_cfg_reg.min_rnr;
      r2_found_reg.rq <= r1_bth.response ? r1_cfg_reg.sq : r1_cfg_reg.rq;
      r2_found_reg.state <= r1_cfg_reg.state;
      r2_found_reg.acc <= r1_cfg_reg.acc;
      r2_found_reg.max_dest_rd_atomic <= r1_cfg_reg.max_dest_rd_atomic;
      r2_found_reg.timeout <= r1_cfg_reg.timeout;
      r2_found_reg.retry <= r1_cfg_reg.retry;
      r2_found_reg.rnr_retry <= r1_cfg_reg.rnr_retry;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      r1_valid_reg <= 1'b0;
      r2_valid_reg <= 1'b0;
    end else begin
      r1_valid_reg <= qpr_rsp_valid;
      r2_valid_reg <= r1_valid_reg;
    end
  end

  always_comb begin
    f_in = r2_found_reg;
    f_in.pass = r2_pass;
    if (r2_pass) f_in.why = TRW_NONE;
  end

  urdma_fifo #(.WIDTH($bits(found_t)), .DEPTH(DEPTH)) u_out (
    .clk(clk), .rst(rst),
    .in_valid(r2_valid_reg), .in_ready(), .in_data(f_in),
    .out_valid(out_valid), .out_ready(out_ready), .out_data(out), .count()
  );

endmodule

`resetall
