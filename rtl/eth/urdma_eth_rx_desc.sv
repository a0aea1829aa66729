// SPDX-License-Identifier: Apache-2.0
// The receive rings: doorbells, addresses of buffers fetched ahead, and the life of each queue.
//
//  ring, buf64   from the registers; kept from the rise of enable on
//  db_*          producer index; an index behind the last one is stale and ignored, one ahead by more than the ring's length
//                is an error
//  rd_*          reads of 64 bytes, 8 addresses
//  open          the queue accepts frames; size: bytes of its buffers / 64; failed: err, also when enable has fallen
//  pi, ap, rp    free-running: posted, on chip, taken. rp <= ap <= pi
//  take_*        takes the address at rp, which must be below ap; addr comes in the next cycle
//  back_*        sets rp back
//  want_*        placement waits for an address of this queue: it is fetched even when enable has fallen
//  begun_*, done_*  frames that placement has begun and ended; active stays until they are equal
//
// A ring's entries are read in whole lines of 8; a line that is partly posted is read again for the rest. The other entries
// of such a line are unchanged or not used: they are already taken, or not yet posted. A line is requested when its place is
// free for all of its 8 entries, and the entries that were there before are all taken. The data of a failed read are not
// stored, because the first part of the line may be in use.

`resetall
`default_nettype none

module urdma_eth_rx_desc
  import urdma_pkg::*;
  import urdma_eth_rx_pkg::*;
#(
  // reads in flight
  parameter int READS = 64
) (
  input  wire logic                    clk,
  input  wire logic                    rst,
  output      logic                    busy,

  input  wire eth_ring_t [ETHQ_N-1:0]  ring,
  input  wire logic [ETHQ_N-1:0][6:0]  buf64,
  output      logic [ETHQ_N-1:0]       active,
  output      logic [ETHQ_N-1:0]       err,

  input  wire logic                    db_valid,
  input  wire logic [ETHQ_W-1:0]       db_q,
  input  wire logic [15:0]             db_pi,

  output      logic                    rd_req_valid,
  output      dma_rd_req_t             rd_req,
  input  wire logic                    rd_req_ready,
  input  wire logic                    rd_rsp_valid,
  input  wire dma_rd_rsp_t             rd_rsp,

  output      logic [ETHQ_N-1:0]       open,
  output      logic [ETHQ_N-1:0]       failed,
  output      logic [ETHQ_N-1:0][6:0]  size,
  output      logic [ETHQ_N-1:0][15:0] pi,
  output      logic [ETHQ_N-1:0][15:0] ap,
  output      logic [ETHQ_N-1:0][15:0] rp,
  input  wire logic                    take_valid,
  input  wire logic [ETHQ_W-1:0]       take_q,
  output      logic [63:0]             addr,
  input  wire logic                    back_valid,
  input  wire logic [ETHQ_W-1:0]       back_q,
  input  wire logic [15:0]             back_rp,
  input  wire logic                    want_valid,
  input  wire logic [ETHQ_W-1:0]       want_q,
  input  wire logic                    begun_valid,
  input  wire logic [ETHQ_W-1:0]       begun_q,
  input  wire logic [1:0]              done_valid,
  input  wire logic [1:0][ETHQ_W-1:0]  done_q
);

  localparam int RW = $clog2(READS);
  localparam int PLACE_W = ADR_W - 3;  // log2 of a queue's lines on chip

  // ---- state of the queues -----------------------------------------------------------------------------
  logic [ETHQ_N-1:0] active_reg, err_reg, start, stop;
  logic [ETHQ_N-1:0][6:0] size_reg;
  logic [ETHQ_N-1:0][63:12] base_reg;
  logic [ETHQ_N-1:0][4:0] log_reg;
  logic [ETHQ_N-1:0][15:0] pi_reg, fp_reg, ap_reg, rp_reg;  // fp: requested
  logic [ETHQ_N-1:0][RW:0] reads_reg;
  logic [ETHQ_N-1:0][5:0] frames_reg;

  logic [ETHQ_N-1:0] need, grant;
  logic [ETHQ_W-1:0] g;
  logic g_valid, ask;
  logic [15:0] g_end;

  typedef struct packed {
    logic [ETHQ_W-1:0] q;
    logic [15:0]       ap;         // its value when the read has arrived
  } tag_t;
  tag_t tag;
  logic tag_ready, tag_valid;
  logic [RW:0] tag_count;

  assign active = active_reg;
  assign failed = err_reg;
  assign size = size_reg;
  assign pi = pi_reg;
  assign ap = ap_reg;
  assign rp = rp_reg;

  always_comb begin
    for (int q = 0; q < ETHQ_N; q++) begin
      start[q] = ring[q].enable && !active_reg[q];
      stop[q] = !ring[q].enable && active_reg[q] && frames_reg[q] == '0 && reads_reg[q] == '0;
      open[q] = ring[q].enable && active_reg[q] && !err_reg[q];
      err[q] = ring[q].enable && err_reg[q];
    end
  end

  // ---- doorbell ------------------------------------------------------------------------------------------
  logic db_new, db_far;
  logic [15:0] db_old, db_rp, db_step;
  assign db_old = active_reg[db_q] ? pi_reg[db_q] : 16'd0;
  assign db_rp = active_reg[db_q] ? rp_reg[db_q] : 16'd0;
  assign db_step = db_pi - db_old;
  assign db_new = db_valid && ring[db_q].enable && !db_step[15];
  assign db_far = 17'(16'(db_pi - db_rp)) > (17'd1 << (active_reg[db_q] ? log_reg[db_q] : ring[db_q].log_entries));

  // ---- fetch ---------------------------------------------------------------------------------------------
  always_comb begin
    need = '0;
    for (int q = 0; q < ETHQ_N; q++) begin
      logic [15:0] held;           // places from rp to the end of the line at fp
      held = {fp_reg[q][15:3], 3'd0} + 16'd8 - rp_reg[q];
      if (active_reg[q] && fp_reg[q] != pi_reg[q])
        need[q] = !err_reg[q] && held <= 16'(1 << ADR_W)
            && (ring[q].enable || (want_valid && want_q == ETHQ_W'(q) && fp_reg[q] == rp_reg[q]));
    end
  end

  urdma_arb_rr #(.N(ETHQ_N)) u_arb (
    .clk(clk), .rst(rst), .req(need), .advance(ask), .grant(grant), .grant_idx(g), .grant_valid(g_valid)
  );

  logic req_valid_reg;
  dma_rd_req_t req_reg;
  logic [15:0] g_entry, g_left;
  assign ask = g_valid && tag_ready && (!req_valid_reg || rd_req_ready);
  assign g_entry = fp_reg[g] & ((16'd1 << log_reg[g]) - 16'd1);
  assign g_left = pi_reg[g] - {fp_reg[g][15:3], 3'd0};
  assign g_end = {fp_reg[g][15:3], 3'd0} + (g_left > 16'd8 ? 16'd8 : g_left);
  assign rd_req_valid = req_valid_reg;
  assign rd_req = req_reg;

  always_ff @(posedge clk) begin
    if (ask) begin
      req_reg.addr <= {base_reg[g], 12'd0} + 64'({g_entry[15:3], 6'd0});
      req_reg.len <= 13'd64;
    end
    if (rst) req_valid_reg <= 1'b0;
    else if (ask) req_valid_reg <= 1'b1;
    else if (rd_req_ready) req_valid_reg <= 1'b0;
  end

  urdma_fifo #(.WIDTH($bits(tag_t)), .DEPTH(READS)) u_tags (
    .clk(clk), .rst(rst), .in_valid(ask), .in_ready(tag_ready), .in_data({g, g_end}),
    .out_valid(tag_valid), .out_ready(rd_rsp_valid), .out_data(tag), .count(tag_count)
  );

  // ---- addresses -----------------------------------------------------------------------------------------
  logic [511:0] line;
  logic [2:0] lane_reg;
  logic [15:0] tag_last;           // an entry of the line that has arrived
  assign tag_last = tag.ap - 16'd1;

  urdma_ram_sdp #(.WIDTH(512), .DEPTH(ETHQ_N << PLACE_W)) u_ram (
    .clk(clk),
    .wr_en(rd_rsp_valid && !rd_rsp.err), .wr_addr({tag.q, tag_last[3+:PLACE_W]}), .wr_data(rd_rsp.data),
    .rd_en(take_valid), .rd_addr({take_q, rp_reg[take_q][3+:PLACE_W]}), .rd_data(line)
  );
  assign addr = line[64*lane_reg+:64];

  always_ff @(posedge clk) begin
    if (take_valid) lane_reg <= rp_reg[take_q][2:0];
  end

  always_ff @(posedge clk) begin
    if (ask) fp_reg[g] <= g_end;
    if (rd_rsp_valid && !rd_rsp.err && !err_reg[tag.q]) ap_reg[tag.q] <= tag.ap;
    if (take_valid) rp_reg[take_q] <= rp_reg[take_q] + 16'd1;
    if (back_valid) rp_reg[back_q] <= back_rp;
    for (int q = 0; q < ETHQ_N; q++) begin
      if (start[q]) begin
        size_reg[q] <= buf64[q];
        base_reg[q] <= ring[q].base[63:12];
        log_reg[q] <= ring[q].log_entries;
        pi_reg[q] <= '0;
        fp_reg[q] <= '0;
        ap_reg[q] <= '0;
        rp_reg[q] <= '0;
      end
    end
    if (db_new && !db_far) pi_reg[db_q] <= db_pi;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      active_reg <= '0;
      err_reg <= '0;
      reads_reg <= '0;
      frames_reg <= '0;
    end else begin
      for (int q = 0; q < ETHQ_N; q++) begin
        if (start[q]) begin
          active_reg[q] <= 1'b1;
        end else if (stop[q]) begin
          active_reg[q] <= 1'b0;
          err_reg[q] <= 1'b0;
        end
        if (ask || rd_rsp_valid)
          reads_reg[q] <= reads_reg[q] + (RW+1)'(ask && grant[q]) - (RW+1)'(rd_rsp_valid && tag.q == ETHQ_W'(q));
        if (begun_valid || done_valid != '0)
          frames_reg[q] <= frames_reg[q] + 6'(begun_valid && begun_q == ETHQ_W'(q))
              - 6'(done_valid[0] && done_q[0] == ETHQ_W'(q)) - 6'(done_valid[1] && done_q[1] == ETHQ_W'(q));
      end
      if (rd_rsp_valid && rd_rsp.err) err_reg[tag.q] <= 1'b1;
      if (db_new && db_far) err_reg[db_q] <= 1'b1;
    end
  end

  assign busy = start != '0 || stop != '0 || need != '0 || tag_count != '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && rd_rsp_valid) a_rsp: assert (tag_valid && rd_rsp.last)
      else $error("%m: a read is answered that was not asked for, or with more than a beat");
  always_ff @(posedge clk)
    if (!rst && take_valid) a_take: assert (ap_reg[take_q] != rp_reg[take_q])
      else $error("%m: an address is taken that is not there");
  for (genvar q = 0; q < ETHQ_N; q++) begin : g_check
    always_ff @(posedge clk)
      if (!rst && start[q]) a_size: assert (buf64[q] inside {[7'd1:7'd64]}
          && ring[q].log_entries inside {[5'd6:5'd15]})
        else $error("%m: a size out of range");
  end
`endif

  logic unused;
  assign unused = &{1'b0, tag_valid, rd_rsp.last, tag_last, g_entry, db_step};

endmodule

`resetall
