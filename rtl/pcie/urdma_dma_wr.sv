// SPDX-License-Identifier: Apache-2.0
// DMA write engine: takes write requests from N clients, one request after the other (round-robin), splits them at multiples
// of the maximum payload size in the host's address space (so also at 4 KB), and offers only complete TLPs to the RQ
// multiplexer. Requests for device memory leave after step 1, towards urdma_devmem; they are not in the counts with which
// others wait for writes.
//
// Three steps, each a cycle:
//  1 the client's beat enters the head register;
//  2 the head and the beat before it form a beat of a TLP (one byte rotation), which enters the FIFO;
//  3 the FIFO offers it, as soon as the last beat of its TLP is in (PG213 allows no gap within a TLP).
// The engine makes a beat of a TLP every cycle: 256 bytes of payload take 5 beats. Two beats of TLPs may need bytes of a
// request's last beat.

`resetall
`default_nettype none

module urdma_dma_wr
  import urdma_pkg::*;
  import urdma_pcie_pkg::*;
#(
  // clients
  parameter int N = WR_N,
  // beats of TLPs that may wait for RQ; must hold the largest TLP (17 beats at 1024 bytes)
  parameter int FIFO_DEPTH = 64
) (
  input  wire logic           clk,
  input  wire logic           rst,

  input  wire logic [2:0]     cfg_max_payload,  // 128 bytes << n, 1024 at most

  // start no new request; open: a request is under way
  input  wire logic           stop,
  output      logic           open,

  // clients
  input  wire logic [N-1:0]   wr_valid,
  input  wire dma_wr_t [N-1:0] wr,
  output      logic [N-1:0]   wr_ready,

  // TLPs
  output      logic           tlp_valid,
  output      rq_beat_t       tlp_beat,
  input  wire logic           tlp_ready,

  // beats of requests for device memory; addr and len are those of the request in each beat
  output      logic           dm_valid,
  output      dma_wr_t        dm,
  input  wire logic           dm_ready,

  // pulses: the last beat of a request has been accepted: for the host, for device memory
  output      logic           wr_accept,
  output      logic           dm_accept,
  output      logic           busy
);

  localparam int IW = (N > 1) ? $clog2(N) : 1;

  // ---- 1: choose a client, fill the head -------------------------------------------------------
  logic [N-1:0] grant, sel;
  logic [IW-1:0] grant_idx, owner_reg, sel_idx;
  logic locked_reg, in_xfer, head_free;
  logic arb_valid;

  urdma_arb_rr #(.N(N)) u_arb (
    .clk, .rst,
    .req(stop ? '0 : wr_valid), .advance(in_xfer && !locked_reg),
    .grant, .grant_idx, .grant_valid(arb_valid)
  );

  logic head_valid_reg, head_last_reg, head_host, pop, dm_pop, accept, in_dm;
  logic [511:0] head_data_reg;
  logic [63:0] head_addr_reg;
  logic [12:0] head_len_reg;

  always_comb begin
    sel_idx = locked_reg ? owner_reg : grant_idx;
    sel = grant;
    if (locked_reg) begin
      sel = '0;
      sel[owner_reg] = 1'b1;
    end
    head_host = head_valid_reg && !head_addr_reg[63];
    head_free = !head_valid_reg || pop || dm_pop;
    wr_ready = head_free ? sel : '0;
    in_xfer = head_free && (locked_reg ? wr_valid[owner_reg] : arb_valid);
  end

  assign open = locked_reg;
  assign in_dm = locked_reg ? head_addr_reg[63] : wr[sel_idx].addr[63];
  assign accept = in_xfer && wr[sel_idx].last;
  assign wr_accept = accept && !in_dm;
  assign dm_accept = accept && in_dm;

  assign dm_valid = head_valid_reg && head_addr_reg[63];
  assign dm = '{addr: head_addr_reg, len: head_len_reg, data: head_data_reg, last: head_last_reg};
  assign dm_pop = dm_valid && dm_ready;

  always_ff @(posedge clk) begin
    if (in_xfer) begin
      head_data_reg <= wr[sel_idx].data;
      head_last_reg <= wr[sel_idx].last;
      if (!locked_reg) begin
        head_addr_reg <= wr[sel_idx].addr;
        head_len_reg <= wr[sel_idx].len;
        owner_reg <= grant_idx;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      locked_reg <= 1'b0;
      head_valid_reg <= 1'b0;
    end else begin
      if (in_xfer) locked_reg <= !wr[sel_idx].last;
      if (head_free) head_valid_reg <= in_xfer;
    end
  end

  // ---- 2: assemble TLP beats -------------------------------------------------------------------
  // The request is a stream of bytes; prev_reg is the beat before the head. An output beat is a window of 64 bytes
  // of that stream. off is where the window starts, relative to the start of prev_reg: -15..63. It is negative
  // where a TLP starts in the first 16 bytes of prev_reg, since the descriptor takes the first 16 lanes. The
  // window needs the head if it ends (with its valid lanes) beyond prev_reg.
  logic active_reg;            // a request is under way; else the head starts one
  logic mid_reg;               // within a TLP
  logic [511:0] prev_reg;
  logic signed [7:0] off_reg;
  logic [63:0] addr_reg;       // of the current TLP
  logic [12:0] rem_reg;        // bytes of the request from the current TLP on
  logic [10:0] left_reg;       // lanes of the current TLP still to send, with the offset in its first dword
  logic tlp_end_req_reg;       // the current TLP is the last of the request

  logic [63:0] cur_addr;
  logic [12:0] cur_rem;
  logic [10:0] mps, to_boundary, tlp_bytes, left;
  logic [1:0] a1, end_off;
  logic end_req;
  logic [10:0] tlp_dwords;
  logic signed [7:0] off, off_end, off_next;
  logic [6:0] lanes;           // valid lanes of this beat, 1..64
  logic last_beat, need_head, shift, go, fifo_ready, fifo_valid;
  rq_beat_t beat;
  rq_desc_t desc;

  always_comb begin
    case (cfg_max_payload)
      3'd0: mps = 11'd128;
      3'd1: mps = 11'd256;
      3'd2: mps = 11'd512;
      default: mps = 11'd1024;
    endcase

    // the TLP that starts now, if one does
    cur_addr = active_reg ? addr_reg : head_addr_reg;
    cur_rem = active_reg ? rem_reg : head_len_reg;
    a1 = cur_addr[1:0];
    to_boundary = mps - (cur_addr[10:0] & (mps - 11'd1));
    end_req = mid_reg ? tlp_end_req_reg : (cur_rem <= {2'd0, to_boundary});
    tlp_bytes = (cur_rem <= {2'd0, to_boundary}) ? cur_rem[10:0] : to_boundary;
    tlp_dwords = (tlp_bytes + {9'd0, a1} + 11'd3) >> 2;
    end_off = a1 + tlp_bytes[1:0];

    off = active_reg ? off_reg : (8'sd48 - $signed({6'd0, a1}));
    left = mid_reg ? left_reg : (tlp_bytes + {9'd0, a1} + 11'd16);
    last_beat = (left <= 11'd64);
    lanes = last_beat ? left[6:0] : 7'd64;
    // where the next window starts; beyond 63 it is beyond prev_reg, which the head then replaces
    off_end = off + $signed({1'b0, lanes});
    off_next = last_beat ? (off_end - 8'sd16) : off_end;
    need_head = off_end > 8'sd64;
    shift = off_next >= 8'sd64;
    fifo_valid = (active_reg || head_host) && (head_host || !(need_head || shift));
    go = fifo_valid && fifo_ready;
    pop = go && ((last_beat && end_req) ? need_head : shift);

    desc = '0;
    desc.addr = cur_addr[63:2];
    desc.dword_count = tlp_dwords;
    desc.req_type = REQ_MEM_WR;

    beat = '0;
    if (fifo_valid) begin
      beat.data = ror_bytes(off[7] ? prev_reg : ((prev_reg & ~lanes_below({1'b0, off[5:0]}))
                                                | (head_data_reg & lanes_below({1'b0, off[5:0]}))), off[5:0]);
      beat.data &= lanes_below(lanes);
      if (!mid_reg) begin
        beat.data[127:0] = desc;
        if (a1 != 2'd0) beat.data[135:128] = '0;
        if (a1[1]) beat.data[143:136] = '0;
        if (a1 == 2'd3) beat.data[151:144] = '0;
      end
      beat.first_be = be_from(a1) & ((tlp_dwords == 11'd1) ? be_upto(end_off) : 4'hf);
      beat.last_be = (tlp_dwords == 11'd1) ? 4'h0 : be_upto(end_off);
      beat.last_dw = 4'((lanes - 7'd1) >> 2);
      beat.last = last_beat;
      beat.req_end = last_beat && end_req;
    end
  end

  always_ff @(posedge clk) begin
    if (go) begin
      if (shift) prev_reg <= head_data_reg;
      off_reg <= shift ? (off_next - 8'sd64) : off_next;
      left_reg <= left - 11'd64;
      if (!mid_reg) begin
        addr_reg <= cur_addr + {53'd0, tlp_bytes};
        rem_reg <= cur_rem - {2'd0, tlp_bytes};
        tlp_end_req_reg <= end_req;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      active_reg <= 1'b0;
      mid_reg <= 1'b0;
    end else if (go) begin
      active_reg <= !(last_beat && end_req);
      mid_reg <= !last_beat;
    end
  end

  // ---- 3: hold the beats until their TLP is complete -------------------------------------------
  localparam int CW = $clog2(FIFO_DEPTH) + 1;
  logic [CW-1:0] whole_reg, fifo_count;  // complete TLPs in the FIFO
  logic out_valid, tlp_in, tlp_out;

  urdma_fifo #(.WIDTH($bits(rq_beat_t)), .DEPTH(FIFO_DEPTH)) u_fifo (
    .clk, .rst,
    .in_valid(fifo_valid), .in_ready(fifo_ready), .in_data(beat),
    .out_valid, .out_ready(tlp_valid && tlp_ready), .out_data(tlp_beat),
    .count(fifo_count)
  );

  assign tlp_valid = out_valid && (whole_reg != '0);
  assign tlp_in = go && last_beat;
  assign tlp_out = tlp_valid && tlp_ready && tlp_beat.last;

  always_ff @(posedge clk) begin
    if (rst) whole_reg <= '0;
    else if (tlp_in && !tlp_out) whole_reg <= whole_reg + 1'b1;
    else if (tlp_out && !tlp_in) whole_reg <= whole_reg - 1'b1;
  end

  assign busy = locked_reg || head_valid_reg || active_reg || (fifo_count != '0);

`ifndef SYNTHESIS
  // the client's side of the port, see urdma_pkg
  for (genvar i = 0; i < N; i++) begin : g_assert
    urdma_hold #(.WIDTH($bits(dma_wr_t))) hold (
      .clk, .rst(rst || stop), .valid(wr_valid[i]), .ready(wr_ready[i]), .data(wr[i])
    );
  end
  logic [6:0] beats_reg;  // beats of the current request that are still to come
  always_ff @(posedge clk) begin
    if (rst) beats_reg <= '0;
    else if (in_xfer) begin
      if (!locked_reg) beats_reg <= 7'((wr[sel_idx].len + 13'd63) >> 6) - 7'd1;
      else beats_reg <= beats_reg - 7'd1;
    end
  end
  always_ff @(posedge clk)
    if (!rst && in_xfer && !locked_reg) a_len: assert (wr[sel_idx].len != '0 && wr[sel_idx].len <= 13'd4096)
      else $error("%m: length out of 1..4096");
  always_ff @(posedge clk)
    if (!rst && in_xfer && !locked_reg) a_first_last: assert (wr[sel_idx].last == (wr[sel_idx].len <= 13'd64))
      else $error("%m: last does not agree with len");
  always_ff @(posedge clk)
    if (!rst && in_xfer && locked_reg) a_last: assert (wr[sel_idx].last == (beats_reg == 7'd1))
      else $error("%m: last does not agree with len");
  always_ff @(posedge clk)
    if (!rst && go && last_beat && end_req) a_pop: assert (!pop || head_last_reg)
      else $error("%m: request ended before its last beat");
`endif

endmodule

`resetall
