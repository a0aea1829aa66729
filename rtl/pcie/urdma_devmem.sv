// SPDX-License-Identifier: Apache-2.0
// Device memory: 2**DM_W bytes on the NIC, in lines of 64 bytes. Three clients:
//
//  bar   the host, through BAR 2: up to 8 bytes of an aligned 8-byte word
//  wr    DMA writes whose address has URDMA_ADDR_DM, as urdma_dma_wr sends them
//  rd    lines for DMA reads with such an address, for urdma_dma_rd
//
// The memory has a write port and a read port. If the host and the DMA engine want the same port, they take turns, so neither
// can starve the other.
//
// Order. The requests of the engine and those of the host each take effect in order. wr_done counts the writes whose last
// byte can be read; urdma_dma_rd delays a read until the writes before it are done.
//
// Bytes beyond the end of the memory are dropped.
//
// Latency: beat of wr to memory 2 cycles; bar to bar_rsp 1; rd to rd_data 1. Rate: a line per cycle each way. A write takes
// one cycle more if its alignment makes it cover one line more.

`resetall
`default_nettype none

module urdma_devmem
  import urdma_pkg::*;
  import urdma_pcie_pkg::*;
#(
  localparam int LINE_W = DM_W - 6
) (
  input  wire logic         clk,
  input  wire logic         rst,

  // the host; answers to reads in order, without back-pressure
  input  wire logic         bar_valid,
  input  wire dm_req_t      bar,
  output      logic         bar_ready,
  output      logic         bar_rsp_valid,
  output      logic [63:0]  bar_rsp_data,

  // DMA writes; addr and len count on the first beat of a request
  input  wire logic         wr_valid,
  input  wire dma_wr_t      wr,
  output      logic         wr_ready,
  output      logic         wr_done,       // pulse: a request is written

  // DMA reads; rd_data holds the line in the cycle after the transfer
  input  wire logic         rd_valid,
  input  wire logic [LINE_W-1:0] rd_line,
  output      logic         rd_ready,
  output      logic [511:0] rd_data,

  output      logic         busy
);

  // ---- DMA writes: a beat becomes the rest of one line and the start of the next -----------------
  logic mid_reg;                    // a request is under way
  logic tail_reg;                   // all its beats are here, and the last bytes are in carry_reg
  logic [LINE_W:0] line_reg;        // the next line; the top bit: beyond the end
  logic [5:0] off_reg;              // of the request's first byte in its line
  logic [12:0] rem_reg;             // bytes from the next beat on; with tail_reg: bytes in carry_reg
  logic beyond_reg;                 // the request begins beyond the end
  logic [511:0] carry_reg;          // the previous beat, rotated

  logic [5:0] off;
  logic [12:0] rem;
  logic [LINE_W:0] line;
  logic beyond, more, spill, in_go, slot_free;
  logic [6:0] n, fill;              // bytes of this beat; lanes filled by it, counted from the line's start
  logic [511:0] rotated;
  logic [63:0] lanes_from, lanes_to;

  // a line under way to the memory
  logic w_valid_reg, w_last_reg, w_drop_reg, w_go;
  logic [LINE_W-1:0] w_line_reg;
  logic [63:0] w_be_reg;
  logic [511:0] w_data_reg;

  logic unused_wr;
  assign unused_wr = &{1'b0, wr.last, wr.addr[63]};

  assign wr_ready = slot_free && !tail_reg;
  assign in_go = wr_valid && wr_ready;
  assign slot_free = !w_valid_reg || w_go;

  always_comb begin
    off = mid_reg ? off_reg : wr.addr[5:0];
    rem = mid_reg ? rem_reg : wr.len;
    line = (mid_reg || tail_reg) ? line_reg : {1'b0, wr.addr[DM_W-1:6]};
    beyond = (mid_reg || tail_reg) ? beyond_reg : (wr.addr[62:DM_W] != '0);
    more = rem > 13'd64;
    n = more ? 7'd64 : rem[6:0];
    fill = {1'b0, off} + n;
    spill = fill > 7'd64;
    rotated = rol_bytes(wr.data, off);
    // the lanes of this line that are written: from the request's first byte, or from the carried ones, to its last
    lanes_from = mid_reg || tail_reg ? '1 : ~64'd0 << off;
    lanes_to = '1;
    if (tail_reg) lanes_to = ~(~64'd0 << rem_reg[5:0]);
    else if (!spill && fill != 7'd64) lanes_to = ~(~64'd0 << fill[5:0]);
  end

  always_ff @(posedge clk) begin
    if (in_go || (tail_reg && slot_free)) begin
      w_line_reg <= line[LINE_W-1:0];
      w_drop_reg <= beyond || line[LINE_W];
      w_be_reg <= lanes_from & lanes_to;
      w_last_reg <= tail_reg || (!more && !spill);
      if (tail_reg) w_data_reg <= carry_reg;
      else if (mid_reg) w_data_reg <= (carry_reg & lanes_below({1'b0, off})) | (rotated & ~lanes_below({1'b0, off}));
      else w_data_reg <= rotated;
      line_reg <= line + 1'b1;
    end
    if (in_go) begin
      off_reg <= off;
      rem_reg <= more ? rem - 13'd64 : {6'd0, fill - 7'd64};
      beyond_reg <= beyond;
      carry_reg <= rotated;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      mid_reg <= 1'b0;
      tail_reg <= 1'b0;
      w_valid_reg <= 1'b0;
    end else begin
      if (in_go) begin
        mid_reg <= more;
        tail_reg <= !more && spill;
      end else if (slot_free) begin
        tail_reg <= 1'b0;
      end
      if (slot_free) w_valid_reg <= in_go || tail_reg;
    end
  end

  // ---- the ports of the memory -------------------------------------------------------------------
  // the host had the last turn at the port
  logic wr_turn_reg, rd_turn_reg;
  logic bar_wants_wr, bar_wants_rd, bar_wr, bar_rd;
  logic [511:0] line_data;

  always_comb begin
    bar_wants_wr = bar_valid && bar.write;
    bar_wants_rd = bar_valid && !bar.write;
    bar_wr = bar_wants_wr && !(w_valid_reg && wr_turn_reg);
    w_go = w_valid_reg && !bar_wr;
    bar_rd = bar_wants_rd && !(rd_valid && rd_turn_reg);
    rd_ready = !(bar_wants_rd && !rd_turn_reg);
    bar_ready = bar_wr || bar_rd;
  end

  assign wr_done = w_go && w_last_reg;
  assign rd_data = line_data;

  urdma_ram_be #(.BYTES(64), .DEPTH(1 << LINE_W)) u_mem (
    .clk,
    .wr_en(bar_wr || (w_go && !w_drop_reg)),
    .wr_addr(bar_wr ? bar.addr[DM_W-1:6] : w_line_reg),
    .wr_be(bar_wr ? {56'd0, bar.strb} << {bar.addr[5:3], 3'd0} : w_be_reg),
    .wr_data(bar_wr ? {8{bar.wdata}} : w_data_reg),
    .rd_en(bar_rd || (rd_valid && rd_ready)),
    .rd_addr(bar_rd ? bar.addr[DM_W-1:6] : rd_line),
    .rd_data(line_data)
  );

  logic rsp_valid_reg;
  logic [2:0] rsp_word_reg;

  assign bar_rsp_valid = rsp_valid_reg;
  assign bar_rsp_data = line_data[64*rsp_word_reg +: 64];

  always_ff @(posedge clk) begin
    if (bar_rd) rsp_word_reg <= bar.addr[5:3];
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      wr_turn_reg <= 1'b0;
      rd_turn_reg <= 1'b0;
      rsp_valid_reg <= 1'b0;
    end else begin
      if (bar_wr || w_go) wr_turn_reg <= bar_wr;
      if (bar_rd || rd_valid) rd_turn_reg <= bar_rd;
      rsp_valid_reg <= bar_rd;
    end
  end

  assign busy = mid_reg || tail_reg || w_valid_reg || rsp_valid_reg;

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && in_go) a_last: assert (wr.last == !more)
      else $error("%m: last does not agree with len");
  always_ff @(posedge clk)
    if (!rst) a_read: assert (!(bar_rd && rd_valid && rd_ready))
      else $error("%m: two reads at once");

  // Cases that the tests must reach (make coverage).
  c_write_turns: cover property (@(posedge clk) !rst && w_valid_reg && bar_wants_wr);
  c_read_turns: cover property (@(posedge clk) !rst && rd_valid && bar_wants_rd);
  c_beyond: cover property (@(posedge clk) !rst && w_go && w_drop_reg);
`endif

endmodule

`resetall
