// SPDX-License-Identifier: Apache-2.0
// Transmit rings: doorbells, prefetch of descriptors, frames built from descriptors.
//
// Free-running indexes of a queue, 16 bits:  ci <= ri <= ai <= fi <= pi
//  pi  posted (doorbell)
//  fi  requested
//  ai  arrived in the memory of descriptors
//  ri  processed, its place is free
//  ci  frame sent or dropped (urdma_eth_tx_done)
//
// Fetch: a read begins at the 64-byte line of fi and ends at pi or the next multiple of 16 descriptors, so it never goes
// beyond the ring's end. Descriptors before fi in that line are not stored a second time. A read is requested only when there
// is room for 16 descriptors. The descriptors of a read count from its last beat on, if it did not fail.
//
// Walk: queues that hold a whole frame take turns. The walk reads the frame's descriptors, one per cycle, checks them, and
// passes them on as pieces, and the frame with the last one. If more than ETH_TX_DESCS descriptors have no LAST, it takes
// them at once: they are a bad frame that ends later (skip). The queue then takes its turns like the others with the
// descriptors that have arrived. n + 2 cycles for a frame of n descriptors.
//
// A queue is active from the cycle after enable rises until, with enable low, its reads are answered and all its frames
// that the walk has found are sent and reported.

`resetall
`default_nettype none

module urdma_eth_tx_desc
  import urdma_pkg::*;
  import urdma_hw_pkg::*;
  import urdma_eth_tx_pkg::*;
(
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    busy,

  input  wire eth_ring_t [ETHQ_N-1:0]  ring,
  output      logic [ETHQ_N-1:0]       active,
  output      logic [ETHQ_N-1:0]       err,
  output      logic [ETHQ_N-1:0]       start,        // pulse: indexes are 0 from the next cycle on

  input  wire logic                    db_valid,
  input  wire logic [ETHQ_W-1:0]       db_q,
  input  wire logic [15:0]             db_pi,

  output      logic                    rd_req_valid,
  output      dma_rd_req_t             rd_req,
  input  wire logic                    rd_req_ready,
  input  wire logic                    rd_rsp_valid,
  input  wire dma_rd_rsp_t             rd_rsp,

  output      logic                    piece_valid,  // always taken: room is checked before
  output      etx_piece_t                  piece,
  input  wire logic                    piece_room,   // for 4 or more
  output      logic                    frame_valid,
  output      etx_frame_t                  frame,
  input  wire logic                    frame_room,

  input  wire logic [ETHQ_N-1:0][15:0] ci,
  input  wire logic [ETHQ_N-1:0]       told          // ci has been reported
);

  localparam int ORDER_W = 6;                        // log2 of descriptor reads in flight
  localparam int CHUNK = 1 << CHUNK_W;
  localparam int BANK_AW = ETHQ_W + AHEAD_W - 2;

  logic [ETHQ_N-1:0] active_reg, err_reg, skip_reg, enable;
  logic [15:0] pi_reg [ETHQ_N];
  logic [15:0] fi_reg [ETHQ_N];
  logic [15:0] ai_reg [ETHQ_N];
  logic [15:0] ri_reg [ETHQ_N];
  logic [15:0] found_reg [ETHQ_N];                   // ci of the newest frame passed on
  logic [AHEAD_W:0] lasts_reg [ETHQ_N];              // descriptors with LAST among those here
  logic [ORDER_W:0] flying_reg [ETHQ_N];             // reads not answered

  always_comb for (int i = 0; i < ETHQ_N; i++) enable[i] = ring[i].enable;
  assign active = active_reg;
  assign err = err_reg;
  assign start = enable & ~active_reg;

  // ---- doorbells ------------------------------------------------------------------------------------------
  // An index at or behind pi is stale. At most the ring's length may be in use.
  logic [15:0] db_ahead, db_used;
  logic db_ok, db_new, db_far;
  assign db_ahead = db_pi - pi_reg[db_q];
  assign db_used = db_pi - ci[db_q];
  assign db_ok = db_valid && active_reg[db_q] && enable[db_q] && !err_reg[db_q];
  assign db_new = db_ok && (db_ahead != 16'd0) && (db_ahead <= 16'h8000);
  assign db_far = db_used > (16'd1 << ring[db_q].log_entries);

  // ---- fetch ----------------------------------------------------------------------------------------------
  typedef struct packed {
    logic [ETHQ_W-1:0] q;
    logic [15:0]       first;
    logic [CHUNK_W:0]  n;
  } order_t;

  logic [ETHQ_N-1:0] posted, want_reg;               // want: posted and room, a cycle ago
  logic f_grant_valid, f_go, o_ready, o_valid, o_pop;
  logic [ETHQ_W-1:0] f_q;
  logic [15:0] f_left;
  logic [CHUNK_W:0] f_most;
  order_t f_order, o;
  logic [63:0] f_off;
  logic [ORDER_W:0] o_count;
  logic rd_req_valid_reg;
  dma_rd_req_t rd_req_reg;

  always_comb begin
    for (int i = 0; i < ETHQ_N; i++) posted[i] = active_reg[i] && enable[i] && !err_reg[i] && (pi_reg[i] != fi_reg[i]);
  end

  urdma_arb_rr #(.N(ETHQ_N)) fetch_arb (
    .clk, .rst, .req(want_reg & posted), .advance(f_go), .grant(), .grant_idx(f_q), .grant_valid(f_grant_valid)
  );
  assign f_go = f_grant_valid && o_ready && (!rd_req_valid_reg || rd_req_ready);
  assign f_left = pi_reg[f_q] - fi_reg[f_q];
  assign f_most = (CHUNK_W+1)'(CHUNK) - (CHUNK_W+1)'(fi_reg[f_q][CHUNK_W-1:0]);
  assign f_order = '{q: f_q, first: fi_reg[f_q], n: (f_left < 16'(f_most)) ? f_left[CHUNK_W:0] : f_most};
  // of the line of the first one, in bytes
  assign f_off = 64'({fi_reg[f_q][15:2] & ~(14'h3fff << (ring[f_q].log_entries - 5'd2)), 6'd0});

  urdma_fifo #(.WIDTH($bits(order_t)), .DEPTH(1 << ORDER_W)) order_fifo (
    .clk, .rst, .in_valid(f_go), .in_ready(o_ready), .in_data(f_order),
    .out_valid(o_valid), .out_ready(o_pop), .out_data(o), .count(o_count)
  );

  assign rd_req_valid = rd_req_valid_reg;
  assign rd_req = rd_req_reg;
  always_ff @(posedge clk) begin
    if (f_go) begin
      rd_req_reg.addr <= ring[f_q].base + f_off;
      rd_req_reg.len <= 13'({f_order.n + (CHUNK_W+1)'(f_order.first[1:0]), 4'd0});
    end
    if (rst) rd_req_valid_reg <= 1'b0;
    else if (f_go) rd_req_valid_reg <= 1'b1;
    else if (rd_req_ready) rd_req_valid_reg <= 1'b0;
  end

  // ---- answers: four descriptors a beat, each in the bank of its index ----------------------------------------
  logic [CHUNK_W-3:0] beat_reg;
  logic [3:0] lane_ok;
  logic [2:0] beat_lasts;
  logic [CHUNK_W:0] sum_lasts_reg, sum_lasts;
  logic [15:0] o_line;                               // of the beat, in lines
  logic arrive;
  assign o_pop = rd_rsp_valid && rd_rsp.last;
  assign o_line = {2'd0, o.first[15:2]} + 16'(beat_reg);
  always_comb begin
    beat_lasts = 3'd0;
    for (int i = 0; i < 4; i++) begin
      // its number in this read; a descriptor before the first wraps to a large number
      lane_ok[i] = (((CHUNK_W+2)'({beat_reg, i[1:0]}) - (CHUNK_W+2)'(o.first[1:0])) < (CHUNK_W+2)'(o.n));
      if (rd_rsp_valid) beat_lasts += 3'(lane_ok[i] && rd_rsp.data[128*i+URDMA_ETXD1_LAST_LSB]);
    end
  end
  assign sum_lasts = sum_lasts_reg + (CHUNK_W+1)'(beat_lasts);
  assign arrive = o_pop && !rd_rsp.err && !err_reg[o.q];

  always_ff @(posedge clk) begin
    if (rst) begin
      beat_reg <= '0;
      sum_lasts_reg <= '0;
    end else if (rd_rsp_valid) begin
      beat_reg <= rd_rsp.last ? '0 : beat_reg + 1'b1;
      sum_lasts_reg <= rd_rsp.last ? '0 : sum_lasts;
    end
  end

  // ---- the memory of descriptors ------------------------------------------------------------------------------
  logic w_rd;
  logic [ETHQ_W-1:0] w_q_reg;
  logic [15:0] w_idx_reg, d_idx_reg;
  logic [3:0][127:0] bank_q;
  logic [127:0] d;
  for (genvar b = 0; b < 4; b++) begin : g_bank
    urdma_ram_sdp #(.WIDTH(128), .DEPTH(1 << BANK_AW)) bank (
      .clk, .wr_en(rd_rsp_valid && lane_ok[b]), .wr_addr({o.q, o_line[AHEAD_W-3:0]}), .wr_data(rd_rsp.data[128*b+:128]),
      .rd_en(w_rd && (w_idx_reg[1:0] == b)), .rd_addr({w_q_reg, w_idx_reg[AHEAD_W-1:2]}), .rd_data(bank_q[b])
    );
  end
  assign d = bank_q[d_idx_reg[1:0]];

  // ---- walk ---------------------------------------------------------------------------------------------------
  logic [ETHQ_N-1:0] has_frame;
  logic w_busy_reg, w_skip_reg, d_valid_reg, w_grant_valid, w_pick;
  logic [ETHQ_W-1:0] w_grant;
  logic [15:0] w_end_reg;                            // descriptors present when its turn began
  logic [PIECES_W-1:0] n_reg;                        // descriptors of the frame so far
  logic [19:0] total_reg, total;
  logic bad_reg, bad, d_last, too_many, w_leave;
  logic [13:0] d_len;
  etx_frame_t head_reg, head;                            // of the first descriptor: vlan, tci, csum, start, at

  always_comb begin
    for (int i = 0; i < ETHQ_N; i++) begin
      has_frame[i] = 1'b0;
      if (active_reg[i] && enable[i])
        has_frame[i] = (lasts_reg[i] != '0) || ((AHEAD_W+1)'(ai_reg[i] - ri_reg[i]) > (AHEAD_W+1)'(ETH_TX_DESCS));
    end
  end
  urdma_arb_rr #(.N(ETHQ_N)) walk_arb (
    .clk, .rst, .req(has_frame), .advance(w_pick), .grant(), .grant_idx(w_grant), .grant_valid(w_grant_valid)
  );
  assign w_pick = w_grant_valid && !w_busy_reg;

  assign d_last = d_valid_reg && d[URDMA_ETXD1_LAST_LSB];
  assign d_len = d[URDMA_ETXD1_LENGTH_LSB+:URDMA_ETXD1_LENGTH_W];
  assign w_rd = w_busy_reg && !d_last && (w_idx_reg != w_end_reg) && piece_room && frame_room;
  assign w_leave = w_busy_reg && !d_valid_reg && (w_idx_reg == w_end_reg);
  assign too_many = (n_reg == PIECES_W'(ETH_TX_DESCS));
  assign total = total_reg + 20'(d_len);
  always_comb begin
    head = head_reg;
    if (n_reg == '0) begin
      head.vlan = d[URDMA_ETXD1_VLAN_LSB];
      head.tci = d[URDMA_ETXD1_TCI_LSB+:16];
      head.csum = d[URDMA_ETXD1_CSUM_LSB];
      head.start = d[URDMA_ETXD1_CSUM_START_LSB+:12];
      head.at = d[URDMA_ETXD1_CSUM_AT_LSB+:12];
    end
  end
  assign bad = bad_reg || (d_len == '0) || (total > 20'(ETH_MAX_FRAME)) || too_many ||
               (head.csum && ((20'(head.start) > total) || (20'(head.at) + 20'd2 > total)));

  assign piece_valid = d_valid_reg && !w_skip_reg && !too_many;
  assign piece = '{addr: d[URDMA_ETXD0_ADDR_LSB+:64], len: d_len};
  assign frame_valid = d_valid_reg && (d_last || (too_many && !w_skip_reg));
  always_comb begin
    frame = head;
    frame.q = w_q_reg;
    frame.bad = bad || w_skip_reg;
    frame.done = d_last;
    frame.pieces = w_skip_reg ? '0 : too_many ? n_reg : n_reg + 1'b1;
    frame.len = total[13:0];
    frame.ci = d_idx_reg + 16'd1;
  end

  always_ff @(posedge clk) begin
    if (w_pick) begin
      w_q_reg <= w_grant;
      w_idx_reg <= ri_reg[w_grant];
      w_end_reg <= ai_reg[w_grant];
      w_skip_reg <= skip_reg[w_grant];
      n_reg <= '0;
      total_reg <= '0;
      bad_reg <= 1'b0;
    end
    if (w_rd) begin
      w_idx_reg <= w_idx_reg + 1'b1;
      d_idx_reg <= w_idx_reg;
    end
    if (d_valid_reg) begin
      head_reg <= head;
      total_reg <= total;
      if (d_len == '0) bad_reg <= 1'b1;
      if (too_many) w_skip_reg <= 1'b1;
      else n_reg <= n_reg + 1'b1;
    end
    if (rst) begin
      w_busy_reg <= 1'b0;
      d_valid_reg <= 1'b0;
    end else begin
      if (w_pick) w_busy_reg <= 1'b1;
      else if (d_last || w_leave) w_busy_reg <= 1'b0;
      d_valid_reg <= w_rd;
    end
  end

  // ---- state of the queues ----------------------------------------------------------------------------------------
  logic [ETHQ_N-1:0] quiet, leaving;
  logic change;                                      // spares the simulator cycles in which no state can change
  assign leaving = active_reg & ~enable;
  assign change = rst || (start != '0) || (leaving != '0) || db_new || (posted != '0) || (want_reg != '0) || o_pop || d_valid_reg;
  always_comb begin
    quiet = '0;
    if (leaving != '0)
      for (int i = 0; i < ETHQ_N; i++)
        quiet[i] = (flying_reg[i] == '0) && (found_reg[i] == ci[i]) && told[i] && !(w_busy_reg && (w_q_reg == ETHQ_W'(i)));
  end

  always_ff @(posedge clk) begin
    if (change) for (int i = 0; i < ETHQ_N; i++) begin
      logic asked, answered, looked;
      asked = f_go && (f_q == ETHQ_W'(i));
      answered = o_pop && (o.q == ETHQ_W'(i));
      looked = d_valid_reg && (w_q_reg == ETHQ_W'(i));
      if (start[i]) begin
        pi_reg[i] <= '0;
        fi_reg[i] <= '0;
        ai_reg[i] <= '0;
        ri_reg[i] <= '0;
        found_reg[i] <= '0;
        lasts_reg[i] <= '0;
        skip_reg[i] <= 1'b0;
        err_reg[i] <= 1'b0;
        want_reg[i] <= 1'b0;
      end else if (active_reg[i]) begin
        if (db_new && !db_far && (db_q == ETHQ_W'(i))) pi_reg[i] <= db_pi;
        if (asked) fi_reg[i] <= fi_reg[i] + 16'(f_order.n);
        if (arrive && answered) ai_reg[i] <= o.first + 16'(o.n);
        if (looked) ri_reg[i] <= d_idx_reg + 16'd1;
        if (looked && d_last) found_reg[i] <= d_idx_reg + 16'd1;
        lasts_reg[i] <= lasts_reg[i] + ((arrive && answered) ? (AHEAD_W+1)'(sum_lasts) : '0) - (AHEAD_W+1)'(looked && d_last);
        if (looked && d_last) skip_reg[i] <= 1'b0;
        else if (looked && too_many) skip_reg[i] <= 1'b1;
        if (!enable[i]) err_reg[i] <= 1'b0;
        else if ((answered && rd_rsp.err) || (db_new && db_far && (db_q == ETHQ_W'(i)))) err_reg[i] <= 1'b1;
        want_reg[i] <= posted[i] && !asked &&
                       ((AHEAD_W+1)'(fi_reg[i] - ri_reg[i]) <= (AHEAD_W+1)'((1 << AHEAD_W) - CHUNK));
      end
      if (rst) begin
        active_reg[i] <= 1'b0;
        err_reg[i] <= 1'b0;
        want_reg[i] <= 1'b0;
        flying_reg[i] <= '0;
      end else begin
        if (start[i]) active_reg[i] <= 1'b1;
        else if (leaving[i] && quiet[i]) active_reg[i] <= 1'b0;
        if (asked && !answered) flying_reg[i] <= flying_reg[i] + 1'b1;
        else if (answered && !asked) flying_reg[i] <= flying_reg[i] - 1'b1;
      end
    end
  end

  assign busy = ((enable ^ active_reg) != '0) || (posted != '0) || (has_frame != '0) || (o_count != '0) || rd_req_valid_reg ||
                w_busy_reg;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && rd_rsp_valid) a_rsp: assert (o_valid)
      else $error("%m: descriptors that nobody asked for");
  always_ff @(posedge clk)
    if (!rst && rd_rsp_valid) a_len: assert ((rd_rsp.last == ((CHUNK_W+2)'({beat_reg, 2'd0}) + (CHUNK_W+2)'(4) >= (CHUNK_W+2)'(o.n) + (CHUNK_W+2)'(o.first[1:0]))))
      else $error("%m: a DMA answer is longer or shorter than its request");
  always_ff @(posedge clk)
    if (!rst && w_leave) a_leave: assert (w_skip_reg)
      else $error("%m: a frame without end was begun");
`endif

  logic unused;
  assign unused = ^{d, o_line};

endmodule

`resetall
