// SPDX-License-Identifier: Apache-2.0
// Types and sizes of the Ethernet function's transmit side.
/* verilator lint_off UNUSEDPARAM */
package urdma_eth_tx_pkg;

  import urdma_pkg::*;

  localparam int AHEAD_W = 7;   // log2 of descriptors of a queue that may be fetched ahead
  localparam int CHUNK_W = 4;   // log2 of descriptors a read brings at most; reads end at multiples of it
  localparam int LINE_W = 10;   // log2 of lines of 64 bytes in the frame buffer
  localparam int FRAG_W = 8;    // log2 of payload reads in flight
  localparam int FLY_W = 7;     // log2 of frames between their first read and the output
  localparam int PIECES_W = $clog2(ETH_TX_DESCS + 1);

  // A frame whose descriptors have been checked. done = 0: its list is too long, and its end comes later.
  typedef struct packed {
    logic [ETHQ_W-1:0]   q;
    logic                bad;
    logic                done;
    logic [PIECES_W-1:0] pieces;   // in the FIFO of pieces
    logic [13:0]         len;      // bytes in memory
    logic                vlan;
    logic [15:0]         tci;
    logic                csum;
    logic [11:0]         start;
    logic [11:0]         at;
    logic [15:0]         ci;       // index after its last descriptor
  } etx_frame_t;

  typedef struct packed {
    logic [63:0] addr;
    logic [13:0] len;
  } etx_piece_t;

  // Where the data of one payload read goes.
  typedef struct packed {
    logic [LINE_W-1:0] line;       // of its first byte
    logic [13:0]       pos;        // of its first byte in the frame
    logic [12:0]       len;
    logic              last;       // of the frame
    logic              csum;
    logic [11:0]       start;
  } etx_frag_t;

  // A frame in the buffer, or a bad one in its place among them.
  typedef struct packed {
    logic [ETHQ_W-1:0] q;
    logic              bad;
    logic [13:0]       len;
    logic              vlan;
    logic [15:0]       tci;
    logic              csum;
    logic [11:0]       at;
    logic [15:0]       ci;
  } etx_sent_t;

  // All data of a frame have arrived.
  typedef struct packed {
    logic        err;
    logic [15:0] sum;              // ones' complement sum from CSUM_START on, first byte in [7:0]
  } etx_here_t;

  typedef struct packed {
    logic [ETHQ_W-1:0] q;
    logic              bad;
    logic [15:0]       ci;
  } etx_fin_t;

  // Ones' complement sum.
  function automatic logic [15:0] oc_add(input logic [15:0] a, input logic [15:0] b);
    logic [16:0] t;
    t = {1'b0, a} + {1'b0, b};
    return t[15:0] + 16'(t[16]);
  endfunction

endpackage
/* verilator lint_on UNUSEDPARAM */
