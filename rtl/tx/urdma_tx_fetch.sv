// SPDX-License-Identifier: Apache-2.0
// WQE fetch: mr translates a turn's range of the ring, one DMA read fetches it, and the data go to the WQE buffer.
//
// The scheduler has reserved the blocks and the slot of the turn, so nothing here can overflow: the job FIFO has room for
// every possible turn. here[slot]: the turn's WQEs are in the buffer; bad[slot]: they could not be read. A turn never crosses
// a 4 KB border of its ring, so mr answers with one fragment.

`resetall
`default_nettype none

module urdma_tx_fetch
  import urdma_pkg::*;
  import urdma_tx_pkg::*;
(
  input  wire logic                     clk,
  input  wire logic                     rst,
  output      logic                     busy,

  input  wire logic                     fetch_valid,
  input  wire fetch_t                   fetch,

  output      logic                     mr_req_valid,
  output      mr_req_t                  mr_req,
  input  wire logic                     mr_req_ready,
  input  wire logic                     mr_rsp_valid,
  input  wire mr_rsp_t                  mr_rsp,
  output      logic                     mr_rsp_ready,
  output      logic                     rd_req_valid,
  output      dma_rd_req_t              rd_req,
  input  wire logic                     rd_req_ready,
  input  wire logic                     rd_rsp_valid,
  input  wire dma_rd_rsp_t              rd_rsp,

  output      logic [(1<<TURN_W)-1:0]   here,
  output      logic [(1<<TURN_W)-1:0]   bad,
  input  wire logic                     rd_en,
  input  wire logic [WQB_W-1:0]         rd_blk,
  output      logic [511:0]             rd_data
);

  localparam int DEPTH = 1 << TURN_W;

  typedef struct packed {
    logic [TURN_W-1:0] slot;
    logic [WQB_W-1:0]  blk;
    logic [12:0]       len;
  } job_t;

  logic f_valid, f_pop, f_in_ready;
  fetch_t f;
  logic [TURN_W:0] f_count;
  urdma_fifo #(.WIDTH($bits(fetch_t)), .DEPTH(DEPTH)) fetch_fifo (
    .clk, .rst, .in_valid(fetch_valid), .in_ready(f_in_ready), .in_data(fetch),
    .out_valid(f_valid), .out_ready(f_pop), .out_data(f), .count(f_count)
  );

  // ---- translation ---------------------------------------------------------------------------------
  logic t_valid, t_pop, t_in_ready;
  job_t t;
  logic [TURN_W:0] t_count;
  always_comb begin
    mr_req = '0;
    mr_req.ring = 1'b1;
    mr_req.pt = f.pt;
    mr_req.va = 64'(f.va);
    mr_req.len = f.len;
  end
  assign mr_req_valid = f_valid;
  assign f_pop = f_valid && mr_req_ready;
  urdma_fifo #(.WIDTH($bits(job_t)), .DEPTH(DEPTH)) translate_fifo (
    .clk, .rst, .in_valid(f_pop), .in_ready(t_in_ready), .in_data({f.slot, f.blk, f.len}),
    .out_valid(t_valid), .out_ready(t_pop), .out_data(t), .count(t_count)
  );

  // ---- DMA ------------------------------------------------------------------------------------------
  logic d_valid, d_pop, d_in_ready;
  job_t d;
  logic [TURN_W:0] d_count;
  logic rd_req_valid_reg;
  dma_rd_req_t rd_req_reg;

  // The answer may come in the cycle in which the request is accepted; the job follows one cycle later.
  assign mr_rsp_ready = t_valid && (!rd_req_valid_reg || rd_req_ready);
  assign t_pop = mr_rsp_valid && mr_rsp_ready;
  assign rd_req_valid = rd_req_valid_reg;
  assign rd_req = rd_req_reg;
  urdma_fifo #(.WIDTH($bits(job_t)), .DEPTH(DEPTH)) dma_fifo (
    .clk, .rst, .in_valid(t_pop && (mr_rsp.status == MR_OK)), .in_ready(d_in_ready), .in_data(t),
    .out_valid(d_valid), .out_ready(d_pop), .out_data(d), .count(d_count)
  );

  always_ff @(posedge clk) begin
    if (t_pop) rd_req_reg <= '{addr: mr_rsp.addr, len: t.len};
    if (rst) rd_req_valid_reg <= 1'b0;
    else if (t_pop && (mr_rsp.status == MR_OK)) rd_req_valid_reg <= 1'b1;
    else if (rd_req_ready) rd_req_valid_reg <= 1'b0;
  end

  // ---- data into the buffer ---------------------------------------------------------------------------
  logic [4:0] beat_reg;
  logic [(1<<TURN_W)-1:0] here_reg, bad_reg;

  assign here = here_reg;
  assign bad = bad_reg;
  assign d_pop = rd_rsp_valid && rd_rsp.last;

  urdma_ram_sdp #(.WIDTH(512), .DEPTH(1 << WQB_W)) buffer (
    .clk,
    .wr_en(rd_rsp_valid), .wr_addr(d.blk + WQB_W'(beat_reg)), .wr_data(rd_rsp.data),
    .rd_en, .rd_addr(rd_blk), .rd_data
  );

  always_ff @(posedge clk) begin
    // a slot is reused only after its turn has ended: clear it when the new turn comes
    if (fetch_valid) begin
      here_reg[fetch.slot] <= 1'b0;
      bad_reg[fetch.slot] <= 1'b0;
    end
    if (d_pop) begin
      here_reg[d.slot] <= 1'b1;
      bad_reg[d.slot] <= rd_rsp.err;
    end
    if (t_pop && (mr_rsp.status != MR_OK)) begin
      here_reg[t.slot] <= 1'b1;
      bad_reg[t.slot] <= 1'b1;
    end
    if (rst) begin
      beat_reg <= '0;
      here_reg <= '0;
      bad_reg <= '0;
    end else if (rd_rsp_valid) begin
      beat_reg <= rd_rsp.last ? 5'd0 : beat_reg + 1'b1;
    end
  end

  assign busy = fetch_valid || (f_count != '0) || (t_count != '0) || (d_count != '0) || rd_req_valid_reg;

  // the FIFOs are as deep as the number of turns
  logic unused;
  assign unused = ^{f_in_ready, t_in_ready, d_in_ready, d_valid, d.len, mr_rsp.len, mr_rsp.last};

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && rd_rsp_valid) a_rsp: assert (d_valid)
      else $error("%m: WQE data that nobody asked for");
  always_ff @(posedge clk)
    if (!rst && t_pop && (mr_rsp.status == MR_OK)) a_one: assert (mr_rsp.last && (mr_rsp.len == t.len))
      else $error("%m: a turn's ring range was split by the translation");
`endif

endmodule

`resetall
