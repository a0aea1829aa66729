// SPDX-License-Identifier: Apache-2.0
// Loops back frames to the port's own MAC address, so that the own address is reachable like any other. A datagram to a
// multicast group goes both ways.
//
//  tx_*     frames of the transmit side; out_*: frames to the MAC
//  mac_*    frames of the MAC, which cannot be stalled; rx_*: to the receive side, which cannot stall either
//  own_mac  the port's address, byte 0 in [7:0]
//  tx_eth   the frame belongs to the Ethernet function
//  tx_home  with a frame's first beat: loop the frame back, whatever its destination
//  tx_copy  with a frame's first beat: send the frame to the MAC and also loop it back. Only for frames of RDMA
//  rx_home  with rx: a looped frame of RDMA
//  room     the receive side has room for one more looped frame. 0: RDMA's, 1: the Ethernet function's
//
// A frame's first beat has its destination, so the path is known at once and no beat waits. Looped frames wait in a FIFO;
// when it is full the transmit side waits. The MAC accepts no gaps, so a frame that also goes to the MAC begins when the FIFO
// has room for all of it. One frame at a time goes to the receive side, a looped frame only when it is complete in the FIFO.
//
// Frames of the MAC have priority: a looped frame begins only when fewer than MAC_FREE beats of the MAC wait. It has at
// most MAX_BEATS beats, and the MAC delivers at most one a cycle, so the MAC's FIFO cannot overflow. While the MAC delivers
// a beat in every cycle, as a train of frames of 65 to 76 bytes at 100 Gb/s does, the FIFO does not fall to that level, and
// looped frames wait for the end of the train. A frame of the MAC that finds everything empty is delayed by 1 cycle.
//
// A looped frame is not lost for lack of room: it waits until the receive side has room. The receive side empties without
// the transmit side, so the wait ends (README.md, "Why loopback does not lock up"). Frames of the MAC may use up the room.
// After MAX_WAIT beats of the MAC a looped frame begins without room, and may be dropped and counted.

`resetall
`default_nettype none

module urdma_loopback
  import urdma_pkg::*;
#(
  // longest frame that may be looped, in beats: of the Ethernet function, with a tag
  parameter int MAX_BEATS = (ETH_MAX_FRAME + 4 + 63) / 64,
  // beats of the MAC that may wait when a looped frame begins
  parameter int MAC_FREE = 32,
  // beats of the MAC that pass before a looped frame while there is no room, a power of two
  parameter int MAX_WAIT = 4096
) (
  input  wire logic        clk,
  input  wire logic        rst,
  output      logic        busy,

  input  wire logic [47:0] own_mac,

  input  wire logic        tx_valid,
  input  wire logic        tx_eth,
  input  wire logic        tx_home,
  input  wire logic        tx_copy,
  input  wire mac_beat_t   tx,
  output      logic        tx_ready,
  output      logic        out_valid,
  output      mac_beat_t   out,
  input  wire logic        out_ready,

  input  wire logic        mac_valid,
  input  wire mac_beat_t   mac_in,
  input  wire logic  [1:0] room,
  output      logic        rx_valid,
  output      mac_beat_t   rx,
  output      logic        rx_home
);

  localparam int MAC_DEPTH = 256;
  localparam int LOOP_DEPTH = 256;
  localparam int RDMA_BEATS = 66;  // longest frame of RDMA: 4 KB and at most 86 bytes

  if (MAC_DEPTH < MAX_BEATS + MAC_FREE) begin : check_mac_depth
    $error("urdma_loopback: the MAC's FIFO is too small");
  end
  if (LOOP_DEPTH < MAX_BEATS) begin : check_loop_depth
    $error("urdma_loopback: a frame that turns round does not fit");
  end
  if (MAX_WAIT != (1 << $clog2(MAX_WAIT))) begin : check_max_wait
    $error("urdma_loopback: MAX_WAIT has to be a power of two");
  end

  // ---- path: known with the first beat, kept for the rest of the frame ----------------------------------------
  logic tx_open_reg, tx_home_reg, tx_copy_reg, home, copy, room_for_copy, copy_go;
  logic loop_in_valid, loop_in_ready, loop_valid, loop_eth, loop_pop, mac_fifo_ready, mac_fifo_valid, mac_pop;
  mac_beat_t loop_beat, mac_beat;
  logic [$clog2(LOOP_DEPTH):0] loop_count;
  logic [$clog2(MAC_DEPTH):0] mac_count;

  assign home = tx_open_reg ? tx_home_reg : (tx_home || tx.data[47:0] == own_mac);
  assign copy = !home && (tx_open_reg ? tx_copy_reg : tx_copy);
  assign room_for_copy = loop_count <= ($clog2(LOOP_DEPTH)+1)'(LOOP_DEPTH - RDMA_BEATS);
  assign copy_go = tx_open_reg || room_for_copy;
  assign out_valid = tx_valid && !home && (!copy || copy_go);
  assign out = tx;
  assign loop_in_valid = tx_valid && (home || (copy && copy_go && out_ready));
  assign tx_ready = home ? loop_in_ready : (out_ready && (!copy || copy_go));

  always_ff @(posedge clk) begin
    if (tx_valid && tx_ready) begin
      tx_home_reg <= home;
      tx_copy_reg <= copy;
    end
    if (rst) tx_open_reg <= 1'b0;
    else if (tx_valid && tx_ready) tx_open_reg <= !tx.last;
  end

  urdma_fifo #(.WIDTH(1 + $bits(mac_beat_t)), .DEPTH(LOOP_DEPTH), .OUT_REG(1)) loop_fifo (
    .clk, .rst, .in_valid(loop_in_valid), .in_ready(loop_in_ready), .in_data({tx_eth, tx}),
    .out_valid(loop_valid), .out_ready(loop_pop), .out_data({loop_eth, loop_beat}), .count(loop_count)
  );
  urdma_fifo #(.WIDTH($bits(mac_beat_t)), .DEPTH(MAC_DEPTH)) mac_fifo (
    .clk, .rst, .in_valid(mac_valid), .in_ready(mac_fifo_ready), .in_data(mac_in),
    .out_valid(mac_fifo_valid), .out_ready(mac_pop), .out_data(mac_beat), .count(mac_count)
  );

  // ---- to the receive side: whole frames, from one of the two --------------------------------------------------
  // The open frame; between frames, the choice for the next one.
  logic open_reg, from_loop_reg, from_loop, turn_reg, whole, may;
  logic [$clog2(LOOP_DEPTH):0] loop_frames_reg;  // ended frames in the FIFO
  logic [$clog2(MAX_WAIT):0] waited_reg;         // beats of the MAC that passed while the first of them waited for room

  assign whole = loop_valid && loop_frames_reg != '0;
  assign may = whole && (room[loop_eth] || waited_reg[$clog2(MAX_WAIT)]) && mac_count < ($clog2(MAC_DEPTH)+1)'(MAC_FREE);
  assign from_loop = open_reg ? from_loop_reg : may && (!mac_fifo_valid || turn_reg);
  assign loop_pop = from_loop;
  assign mac_pop = !from_loop;
  assign rx_valid = from_loop ? loop_valid : mac_fifo_valid;
  assign rx = from_loop ? loop_beat : mac_beat;
  assign rx_home = from_loop && !loop_eth;

  // If both wait: in turn, as far as the MAC's FIFO allows.
  always_ff @(posedge clk) begin
    if (rst) loop_frames_reg <= '0;
    else loop_frames_reg <= loop_frames_reg + ($clog2(LOOP_DEPTH)+1)'(loop_in_valid && loop_in_ready && tx.last)
                            - ($clog2(LOOP_DEPTH)+1)'(rx_valid && from_loop && rx.last);
  end

  always_ff @(posedge clk) begin
    if (rst || from_loop) waited_reg <= '0;
    else if (whole && !room[loop_eth] && rx_valid && !waited_reg[$clog2(MAX_WAIT)]) waited_reg <= waited_reg + 1'b1;
  end

  always_ff @(posedge clk) begin
    if (rx_valid) from_loop_reg <= from_loop;
    if (rst) begin
      open_reg <= 1'b0;
      turn_reg <= 1'b0;
    end else if (rx_valid) begin
      open_reg <= !rx.last;
      if (rx.last) turn_reg <= !from_loop;
    end
  end

  assign busy = (loop_count != '0) || (mac_count != '0);

`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && copy && loop_in_valid) a_copy: assert (loop_in_ready && !tx_eth)
      else $error("%m: a frame that goes both ways is longer than RDMA's longest");
  always_ff @(posedge clk)
    if (!rst && mac_valid) a_mac: assert (mac_fifo_ready)
      else $error("%m: a beat of the MAC is lost");
  // the length is derived from keep: the MAC's contract
  always_ff @(posedge clk)
    if (!rst && mac_valid) a_keep: assert (mac_in.keep[0] && (mac_in.last || (&mac_in.keep)))
      else $error("%m: a beat of the MAC without bytes, or one in the middle of a frame that is not full");
`endif

  logic unused;
  assign unused = mac_fifo_ready;

endmodule

`resetall
